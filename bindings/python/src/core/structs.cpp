#include "structs.hpp"

namespace {

template <class T> nb::tuple tuple_of(const T (&values)[SL_DECILES]) {
    nb::list out;
    for (T value : values)
        out.append(value);
    return nb::tuple(out);
}

// A place in the model; None: the feature has none there.
nb::object place(size_t at) {
    return at == SIZE_MAX ? nb::none() : nb::object(nb::int_(at));
}

} // namespace

nb::dict dict_of(const sl_epoch &epoch) {
    nb::dict out;
    out["epoch"] = epoch.epoch;
    out["train_loss"] = epoch.train_loss;
    out["valid_loss"] = epoch.valid_loss;
    out["valid_auc"] = epoch.valid_auc;
    out["seconds"] = epoch.seconds;
    out["rows"] = epoch.rows;
    out["best"] = epoch.best != 0;
    return out;
}

nb::dict dict_of(const sl_train_report &report) {
    nb::dict out;
    out["rows"] = report.rows;
    out["valid_rows"] = report.valid_rows;
    out["epochs"] = report.epochs;
    out["best_epoch"] = report.best_epoch;
    out["train_loss"] = report.train_loss;
    out["valid_loss"] = report.valid_loss;
    out["valid_auc"] = report.valid_auc;
    out["read_s"] = report.read_s;
    out["epoch_s"] = report.epoch_s;
    out["rows_per_s"] = report.rows_per_s;
    out["wide_nonzero"] = report.wide_nonzero;
    out["precision"] = sl_train_precision_name(report.precision);
    out["emulated"] = report.emulated != 0;
    out["loss_scale"] = report.precision == SL_TRAIN_FP16 ? nb::object(nb::float_(report.loss_scale)) : nb::none();
    out["skipped_steps"] = report.skipped_steps;
    bool int8 = report.layers == SL_TRAIN_LAYERS_INT8;
    out["layers"] = int8 ? "int8" : "f32";
    out["ranges"] = !int8 ? nb::none() : nb::object(nb::str(report.ranges ? "learned" : "observed"));
    return out;
}

nb::dict dict_of(const sl_prune_report &report) {
    nb::dict out;
    nb::list before, after;
    for (size_t l = 0; l < report.hidden_layers; l++) {
        before.append(report.hidden_before[l]);
        after.append(report.hidden[l]);
    }
    out["hidden_before"] = nb::tuple(before);
    out["hidden"] = nb::tuple(after);
    out["parameters_before"] = report.parameters_before;
    out["parameters"] = report.parameters;
    out["bytes_before"] = report.bytes_before;
    out["bytes"] = report.bytes;
    out["multiply_adds_before"] = report.multiply_adds_before;
    out["multiply_adds"] = report.multiply_adds;
    out["dense_weights"] = report.dense_weights;
    out["dense_zeros"] = report.dense_zeros;
    out["rows"] = report.rows;
    out["valid_rows"] = report.valid_rows;
    out["epochs"] = report.epochs;
    out["best_epoch"] = report.best_epoch;
    out["valid_loss_before"] = report.valid_loss_before;
    out["valid_loss_cut"] = report.valid_loss_cut;
    out["valid_loss"] = report.valid_loss;
    out["valid_auc_before"] = report.valid_auc_before;
    out["valid_auc_cut"] = report.valid_auc_cut;
    out["valid_auc"] = report.valid_auc;
    out["importance_s"] = report.importance_s;
    out["read_s"] = report.read_s;
    out["epoch_s"] = report.epoch_s;
    return out;
}

nb::dict dict_of(const sl_metrics &metrics) {
    nb::dict out;
    out["rows"] = metrics.rows;
    out["logloss"] = metrics.logloss;
    out["auc"] = metrics.auc;
    out["accuracy"] = metrics.accuracy;
    out["rmse"] = metrics.rmse;
    out["base_rate"] = metrics.base_rate;
    out["calibration"] = metrics.calibration;
    out["normalized_entropy"] = metrics.normalized_entropy;
    out["group_auc"] = metrics.group_auc;
    out["ndcg"] = metrics.ndcg;
    out["ndcg_k"] = metrics.ndcg_k;
    out["ndcg_linear"] = metrics.ndcg_linear != 0;
    out["groups"] = metrics.groups;
    out["decile_rows"] = tuple_of(metrics.decile_rows);
    out["decile_score"] = tuple_of(metrics.decile_score);
    out["decile_label"] = tuple_of(metrics.decile_label);
    return out;
}

nb::dict dict_of(const sl_feature_info &feature) {
    static const char *const forms[] = {"dense", "id", "bag"};
    static const char *const sides[] = {"user", "item", "pair"};
    static const char *const combines[] = {"sum", "mean", "max"};
    nb::dict out;
    out["name"] = feature.name;
    out["form"] = forms[feature.form];
    out["side"] = sides[feature.side];
    out["at"] = feature.at;
    out["width"] = feature.form == SL_FORM_DENSE ? feature.width : 0;
    out["size"] = feature.form == SL_FORM_DENSE ? 0 : feature.size;
    out["wide_at"] = place(feature.wide_at);
    out["deep_at"] = place(feature.deep_at);
    out["deep_width"] = feature.deep_at == SIZE_MAX ? 0 : feature.deep_width;
    out["tensor"] = feature.tensor ? nb::object(nb::str(feature.tensor)) : nb::none();
    out["combine"] = feature.form == SL_FORM_BAG ? nb::object(nb::str(combines[feature.combine])) : nb::none();
    return out;
}

nb::dict dict_of(const sl_embedding_info &table) {
    static const char *const types[] = {"f32", "i8", "i4"};
    nb::dict out;
    out["tensor"] = table.tensor;
    out["type"] = types[table.type];
    out["size"] = table.size;
    out["dim"] = table.dim;
    out["bytes"] = table.bytes;
    return out;
}

nb::dict dict_of(const sl_ranker_info &info) {
    static const char *const losses[] = {"logistic", "multiclass", "squared"};
    nb::dict out;
    out["loss"] = losses[info.loss];
    out["outputs"] = info.outputs;
    out["features"] = info.features;
    out["dense_width"] = info.dense_width;
    out["id_count"] = info.id_count;
    out["bag_count"] = info.bag_count;
    out["deep_inputs"] = info.deep_inputs;
    out["layers"] = info.layers;
    out["first_width"] = info.first_width;
    out["wide_size"] = info.wide_size;
    out["parameters"] = info.parameters;
    out["bytes"] = info.bytes;
    out["spec"] = info.spec;
    out["uses_onednn"] = info.uses_onednn != 0;
    out["embeddings"] = info.embeddings;
    out["multiply_adds"] = info.multiply_adds;
    out["dense_zeros"] = info.dense_zeros;
    return out;
}

static const char *const precisions[] = {"f32", "int8", "int8-dynamic", "bf16"};
const char *calibration_name(sl_calibration calibration) {
    switch (calibration) {
#define SL_X(name, number, text)                                                                                       \
    case SL_CALIBRATION_##name:                                                                                        \
        return text;
        SL_CALIBRATION_MAP(SL_X)
#undef SL_X
    }
    return "?";
}
static const char *const tables[] = {"f32", "i8", "i4"};

nb::dict dict_of(const sl_layer_info &layer) {
    nb::dict out;
    out["name"] = layer.name;
    out["inputs"] = layer.in;
    out["outputs"] = layer.out;
    out["precision"] = precisions[layer.precision];
    out["scale"] = layer.scale;
    out["zero"] = layer.zero;
    out["low"] = layer.low;
    out["high"] = layer.high;
    out["weight_scales"] = nb::none();
    if (layer.weight_scales) {
        nb::list scales;
        for (size_t i = 0; i < layer.out; i++)
            scales.append(layer.weight_scales[i]);
        out["weight_scales"] = nb::tuple(scales);
    }
    out["bytes"] = layer.bytes;
    return out;
}

nb::dict dict_of(const sl_trial &trial) {
    nb::dict out;
    nb::list layers, ranges;
    for (size_t l = 0; l < trial.layers; l++) {
        bool known = trial.precisions[l] == SL_PRECISION_INT8 && trial.calibrations;
        layers.append(precisions[trial.precisions[l]]);
        ranges.append(known ? nb::object(nb::str(calibration_name(trial.calibrations[l]))) : nb::none());
    }
    out["precisions"] = nb::tuple(layers);
    out["calibrations"] = nb::tuple(ranges);
    out["value"] = trial.value;
    out["drop"] = trial.drop;
    out["cost"] = trial.cost;
    out["within"] = trial.within != 0;
    out["error"] = trial.error;
    out["tables"] = tables[trial.tables];
    return out;
}

nb::dict dict_of(const sl_precision_search_report &report) {
    nb::dict out;
    out["rows"] = report.rows;
    out["base_value"] = report.base_value;
    out["value"] = report.value;
    out["drop"] = report.drop;
    out["drop_error"] = report.drop_error;
    out["cost"] = report.cost;
    out["within"] = report.within != 0;
    out["proved"] = report.proved != 0;
    out["blame"] = place(report.blame);
    out["blame_drop"] = report.blame_drop;
    out["seconds"] = report.seconds;
    out["tables"] = tables[report.tables];
    return out;
}
