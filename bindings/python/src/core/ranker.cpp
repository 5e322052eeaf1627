#include "ranker.hpp"

#include "gate.hpp"
#include "index.hpp"
#include "lookup.hpp"
#include "predictor.hpp"
#include "structs.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

namespace {

// Tells a Python function of every epoch; its exception ends the training.
class Epochs {
  public:
    Epochs(nb::handle function, Progress &progress) : function_(function), progress_(progress) {}

    void attach(sl_train_params &params) {
        if (function_.is_none()) return;
        params.epoch = tell;
        params.epoch_ctx = this;
    }

  private:
    static void tell(void *self, const sl_epoch *epoch) {
        auto *epochs = static_cast<Epochs *>(self);
        epochs->progress_.guarded([&] {
            nb::dict found = dict_of(*epoch);
            or_stay([&] { return epochs->function_(found); });
        });
    }

    nb::handle function_;
    Progress &progress_;
};

// Keeps every trial of a search.
struct Trials {
    nb::list found;
    Progress &progress;

    static void take(void *self, const sl_trial *trial) {
        auto *trials = static_cast<Trials *>(self);
        trials->progress.guarded([&] { trials->found.append(dict_of(*trial)); });
    }
};

// Names of layers that stay floats, in a list of Python's.
class Kept {
  public:
    // The list has to outlive it.
    explicit Kept(nb::handle list) {
        for (nb::handle name : nb::cast<nb::list>(list))
            pointers_.push_back(text_of(name, "a layer's name in keep"));
    }

    template <class Params> void attach(Params &params) const {
        params.keep = pointers_.data();
        params.keep_count = pointers_.size();
    }

  private:
    std::vector<const char *> pointers_;
};

struct FreeRanker {
    void operator()(sl_ranker *ranker) const {
        sl_ranker_free(ranker);
    }
};
using OwnedRanker = std::unique_ptr<sl_ranker, FreeRanker>;

} // namespace

Ranker::Ranker(sl_ranker *handle) : handle_(handle), outputs_(query().outputs) {}

Ranker::~Ranker() {
    predictors_.clear();
    sl_ranker_free(handle_);
}

sl_ranker_info Ranker::query() const {
    sl_ranker_info info{};
    info.struct_size = sizeof info;
    ::check(Outcome(sl_ranker_get_info(handle_, &info)));
    return info;
}

// The model in an option, which the dict keeps alive; null where it is None.
static const sl_ranker *model_in(nb::dict options, const char *name) {
    nb::object given = options[name];
    return given.is_none() ? nullptr : nb::cast<Ranker &>(given).handle();
}

static sl_train_params train_params(nb::dict options) {
    nb::object checkpoint = options["checkpoint"];
    sl_train_params params;
    sl_train_params_init(&params);
    params.threads = batch_threads(nb::cast<size_t>(options["threads"]));
    params.epochs = nb::cast<size_t>(options["epochs"]);
    params.seed = nb::cast<uint64_t>(options["seed"]);
    params.checkpoint = checkpoint.is_none() ? nullptr : path_text(nb::borrow<nb::bytes>(checkpoint));
    params.checkpoint_steps = nb::cast<size_t>(options["checkpoint_steps"]);
    params.resume = nb::cast<bool>(options["resume"]);
    params.precision = static_cast<sl_train_precision>(nb::cast<int>(options["precision"]));
    params.loss_scale = nb::cast<double>(options["loss_scale"]);
    params.init = model_in(options, "init");
    params.teacher = model_in(options, "teacher");
    params.temperature = nb::cast<double>(options["temperature"]);
    params.soft = nb::cast<double>(options["soft"]);
    params.rate_scale = nb::cast<double>(options["rate_scale"]);
    params.layers = static_cast<sl_train_layers>(nb::cast<int>(options["layers"]));
    params.ranges = static_cast<sl_train_ranges>(nb::cast<int>(options["ranges"]));
    return params;
}

static sl_prune_params prune_params(nb::dict cuts) {
    sl_prune_params params;
    sl_prune_params_init(&params);
    params.units = nb::cast<double>(cuts["units"]);
    params.multiply_adds = nb::cast<double>(cuts["multiply_adds"]);
    params.weights = nb::cast<double>(cuts["weights"]);
    params.weights_end = nb::cast<double>(cuts["weights_end"]);
    params.criterion = static_cast<sl_prune_criterion>(nb::cast<int>(cuts["criterion"]));
    params.per_layer = nb::cast<bool>(cuts["per_layer"]);
    params.multiple = nb::cast<size_t>(cuts["multiple"]);
    params.rows = nb::cast<size_t>(cuts["rows"]);
    return params;
}

nb::tuple Ranker::prune(nb::handle rows, nb::handle valid, nb::dict cuts, nb::dict options, nb::handle lookup,
                        nb::handle function, nb::handle on_epoch) {
    std::optional<Source> source, held_out;
    if (!rows.is_none()) source.emplace(rows);
    if (!valid.is_none()) held_out.emplace(valid);
    Progress progress(function);
    Lookup find(lookup, progress);
    Epochs epochs(on_epoch, progress);
    sl_prune_params params = prune_params(cuts);
    sl_train_params training = train_params(options);
    find.attach(training);
    epochs.attach(training);
    progress.attach(training);
    sl_prune_report report{};
    report.struct_size = sizeof report;
    sl_ranker *made = nullptr;
    Outcome outcome;
    {
        Released released;
        outcome = Outcome(sl_ranker_prune(handle_, source ? source->rows() : nullptr,
                                          held_out ? held_out->rows() : nullptr, &params, &training, &made, &report));
    }
    OwnedRanker owned(made);
    progress.check(outcome);
    nb::object ranker = nb::cast(new Ranker(owned.release()), nb::rv_policy::take_ownership);
    return nb::make_tuple(ranker, dict_of(report));
}

nb::tuple Ranker::train(nb::str spec, nb::handle rows, nb::handle valid, nb::dict options, nb::handle lookup,
                        nb::handle function, nb::handle on_epoch) {
    Source source(rows);
    std::optional<Source> held_out;
    if (!valid.is_none()) held_out.emplace(valid);
    Progress progress(function);
    Lookup find(lookup, progress);
    Epochs epochs(on_epoch, progress);
    Kept kept(options["keep"]);
    sl_train_params params = train_params(options);
    kept.attach(params);
    find.attach(params);
    epochs.attach(params);
    progress.attach(params);
    sl_train_report report{};
    report.struct_size = sizeof report;
    sl_ranker *made = nullptr;
    Outcome outcome;
    {
        Released released;
        outcome = Outcome(sl_ranker_train(spec.c_str(), source.rows(), held_out ? held_out->rows() : nullptr, &params,
                                          &made, &report));
    }
    OwnedRanker owned(made);
    progress.check(outcome);
    nb::object ranker = nb::cast(new Ranker(owned.release()), nb::rv_policy::take_ownership);
    return nb::make_tuple(ranker, dict_of(report));
}

Ranker *Ranker::create(nb::str spec, nb::handle rows, uint64_t seed, nb::handle lookup) {
    Source source(rows);
    Progress progress{nb::none()};
    Lookup find(lookup, progress);
    sl_train_params params;
    sl_train_params_init(&params);
    params.seed = seed;
    find.attach(params);
    progress.attach(params);
    sl_ranker *made = nullptr;
    Outcome outcome;
    {
        Released released;
        outcome = Outcome(sl_ranker_create(spec.c_str(), source.rows(), &params, &made));
    }
    OwnedRanker owned(made);
    progress.check(outcome);
    return new Ranker(owned.release());
}

Ranker *Ranker::open(nb::bytes path) {
    const char *name = path_text(path);
    sl_ranker *made = nullptr;
    Outcome outcome;
    {
        Released released;
        outcome = Outcome(sl_ranker_open(name, nullptr, &made));
    }
    ::check(outcome);
    return new Ranker(made);
}

nb::dict Ranker::check(nb::bytes path, nb::handle function) {
    const char *name = path_text(path);
    Progress progress(function);
    sl_file_check_params params;
    sl_file_check_params_init(&params);
    progress.attach(params);
    sl_ranker_check_report report{};
    report.struct_size = sizeof report;
    Outcome outcome;
    {
        Released released;
        outcome = Outcome(sl_ranker_check(name, &params, &report));
    }
    progress.check(outcome.status == SL_ECORRUPT ? Outcome() : outcome);
    nb::dict found;
    found["status"] = sl_status_name(outcome.status);
    found["message"] = outcome.message.c_str();
    found["features"] = report.features;
    found["parameters"] = report.parameters;
    found["sections_checked"] = report.sections_checked;
    found["bytes_checked"] = report.bytes_checked;
    found["checkpoint"] = report.checkpoint != 0;
    return found;
}

void Ranker::save(nb::bytes path, nb::handle function) {
    const char *name = path_text(path);
    Progress progress(function);
    sl_save_params params;
    sl_save_params_init(&params);
    progress.attach(params);
    Outcome outcome;
    {
        Released released;
        outcome = Outcome(sl_ranker_save(handle_, name, &params));
    }
    progress.check(outcome);
}

void Ranker::predict(nb::handle object, size_t threads, nb::handle lookup, nb::handle scores_out) {
    const Table &table = nb::cast<Table &>(object);
    Flat<float> scores(scores_out, table.rows() * outputs_, true);
    Progress progress{nb::none()};
    Lookup find(lookup, progress);
    // Few rows get scratch of their own, which is small.
    Room room{table.rows() <= 32 ? size_t{32} : size_t{512}, batch_threads(threads)};
    bool keep = lookup.is_none();
    auto entry = keep ? predictors_.take(room) : decltype(predictors_.take(room)){nullptr, room};
    Outcome outcome;
    {
        Released released;
        Predictor predictor(handle_, room.rows, room.threads, &find, entry.handle);
        outcome = Outcome(predictor.run(
            [&](sl_predictor *handle) { return sl_predictor_predict(handle, table.view(), scores.data()); }));
        entry.handle = keep ? predictor.release() : nullptr;
    }
    if (entry.handle) predictors_.give(entry);
    progress.check(outcome);
}

nb::bytearray Ranker::predict_rows(nb::handle rows, size_t threads, nb::handle lookup) {
    Source source(rows);
    Progress progress{nb::none()};
    Lookup find(lookup, progress);
    std::vector<float> scores;
    Outcome outcome;
    {
        Released released;
        Predictor predictor(handle_, 512, batch_threads(threads), &find);
        outcome =
            Outcome(predictor.run_blocks(*source.rows(), progress, [&](sl_predictor *handle, const sl_table &table) {
                size_t before = scores.size();
                scores.resize(before + table.rows * outputs_);
                return sl_predictor_predict(handle, &table, scores.data() + before);
            }));
    }
    progress.check(outcome);
    return bytes_of(scores);
}

nb::tuple Ranker::encode(nb::handle rows, nb::handle lookup) {
    Source source(rows);
    Progress progress{nb::none()};
    Lookup find(lookup, progress);
    sl_ranker_info info = query();
    Encoded encoded;
    Outcome outcome;
    {
        Released released;
        Predictor predictor(handle_, Predictor::block, 1, &find);
        outcome =
            Outcome(predictor.run_blocks(*source.rows(), progress, [&](sl_predictor *handle, const sl_table &table) {
                sl_encoded block{};
                block.struct_size = sizeof block;
                sl_status status = sl_predictor_encode(handle, &table, &block);
                if (status == SL_OK) encoded.append_block(block, info);
                return status;
            }));
    }
    progress.check(outcome);
    return nb::make_tuple(bytes_of(encoded.dense), bytes_of(encoded.ids), bytes_of(encoded.bag_start),
                          bytes_of(encoded.bag_ids));
}

void Ranker::predict_encoded(size_t n, nb::handle dense, nb::handle ids, nb::handle bag_start, nb::handle bag_ids,
                             nb::handle scores_out) {
    sl_ranker_info info = query();
    Flat<const float> dense_values(dense, n * info.dense_width);
    Flat<const uint32_t> id_values(ids, n * info.id_count);
    Flat<const uint32_t> starts(bag_start, n * info.bag_count + 1);
    Flat<float> scores(scores_out, n * outputs_, true);
    for (size_t i = 0; i < n * info.bag_count; i++)
        if (starts.data()[i] > starts.data()[i + 1]) throw nb::value_error("bag_start falls");
    Flat<const uint32_t> bags(bag_ids, starts.data()[n * info.bag_count]);
    sl_encoded rows{sizeof rows, n, dense_values.data(), id_values.data(), starts.data(), bags.data()};
    Outcome outcome;
    {
        Released released;
        Predictor predictor(handle_, 512, 1, nullptr);
        outcome = Outcome(predictor.run(
            [&](sl_predictor *handle) { return sl_predictor_predict_encoded(handle, &rows, scores.data()); }));
    }
    ::check(outcome);
}

nb::dict Ranker::evaluate(nb::handle rows, nb::handle group, size_t k, size_t threads, nb::handle lookup,
                          nb::handle function) {
    Source source(rows);
    Progress progress(function);
    Lookup find(lookup, progress);
    sl_evaluate_params params;
    sl_evaluate_params_init(&params);
    params.threads = batch_threads(threads);
    params.group = text_of(group, "group");
    params.ndcg_k = k;
    find.attach(params);
    progress.attach(params);
    sl_metrics metrics{};
    metrics.struct_size = sizeof metrics;
    Outcome outcome;
    {
        Released released;
        outcome = Outcome(sl_ranker_evaluate(handle_, source.rows(), &params, &metrics));
    }
    progress.check(outcome);
    return dict_of(metrics);
}

nb::tuple Ranker::quantize(nb::handle rows, nb::handle eval, nb::dict options, nb::handle lookup, nb::handle function) {
    Source source(rows);
    std::optional<Source> measured;
    if (!eval.is_none()) measured.emplace(eval);
    Progress progress(function);
    Lookup find(lookup, progress);
    Trials trials{nb::list(), progress};
    Kept kept(options["keep"]);
    nb::object group = options["group"], training = options["training"];
    sl_quantize_params how;
    sl_quantize_params_init(&how);
    kept.attach(how);
    how.calibration = static_cast<sl_calibration>(nb::cast<int>(options["calibration"]));
    how.quantile = nb::cast<double>(options["quantile"]);
    how.symmetric = nb::cast<bool>(options["symmetric"]);
    how.bias_correction = nb::cast<bool>(options["bias_correction"]);
    how.tables = static_cast<sl_table_type>(nb::cast<int>(options["tables"]));
    how.rows = nb::cast<size_t>(options["rows"]);
    how.seed = nb::cast<uint64_t>(options["seed"]);
    find.attach(how);
    sl_precision_search_params params;
    sl_precision_search_params_init(&params);
    params.quantize = &how;
    params.max_drop = nb::cast<double>(options["max_drop"]);
    params.relative = nb::cast<bool>(options["relative"]);
    params.measure = static_cast<sl_measure>(nb::cast<int>(options["measure"]));
    params.group = text_of(group, "group");
    params.ndcg_k = nb::cast<size_t>(options["k"]);
    params.strategy = static_cast<sl_strategy>(nb::cast<int>(options["strategy"]));
    params.leave_static = nb::cast<bool>(options["leave_static"]);
    params.leave_dynamic = nb::cast<bool>(options["leave_dynamic"]);
    params.leave_bf16 = nb::cast<bool>(options["leave_bf16"]);
    params.trials = nb::cast<size_t>(options["trials"]);
    params.timeout_s = nb::cast<double>(options["timeout"]);
    params.threads = batch_threads(nb::cast<size_t>(options["threads"]));
    params.trial = Trials::take;
    params.trial_ctx = &trials;
    progress.attach(params);
    sl_train_params trained{};
    if (!training.is_none()) {
        trained = train_params(nb::borrow<nb::dict>(training));
        progress.attach(trained);
        params.training = &trained;
    }
    sl_precision_search_report report{};
    report.struct_size = sizeof report;
    sl_ranker *made = nullptr;
    Outcome outcome;
    {
        Released released;
        outcome = Outcome(sl_ranker_search_precision(handle_, source.rows(), measured ? measured->rows() : nullptr,
                                                     &params, &made, &report));
    }
    OwnedRanker owned(made);
    progress.check(outcome);
    nb::object ranker = nb::cast(new Ranker(owned.release()), nb::rv_policy::take_ownership);
    return nb::make_tuple(ranker, dict_of(report), trials.found);
}

nb::list Ranker::layers() {
    nb::list out;
    size_t count = query().layers;
    for (size_t i = 0; i < count; i++) {
        sl_layer_info layer{};
        layer.struct_size = sizeof layer;
        ::check(Outcome(sl_ranker_get_layer(handle_, i, &layer)));
        out.append(dict_of(layer));
    }
    return out;
}

nb::dict Ranker::info() {
    return dict_of(query());
}

nb::list Ranker::classes() {
    nb::list out;
    for (size_t i = 0; const char *text = sl_ranker_class(handle_, i); i++)
        out.append(text);
    return out;
}

nb::list Ranker::features() {
    nb::list out;
    size_t count = query().features;
    for (size_t i = 0; i < count; i++) {
        sl_feature_info feature{};
        feature.struct_size = sizeof feature;
        ::check(Outcome(sl_ranker_get_feature(handle_, i, &feature)));
        out.append(dict_of(feature));
    }
    return out;
}

nb::list Ranker::embeddings() {
    nb::list out;
    size_t count = query().embeddings;
    for (size_t i = 0; i < count; i++) {
        sl_embedding_info table{};
        table.struct_size = sizeof table;
        ::check(Outcome(sl_ranker_get_embedding(handle_, i, &table)));
        out.append(dict_of(table));
    }
    return out;
}

nb::dict Ranker::tensors(nb::handle self) {
    sl_ranker *handle = nb::cast<Ranker &>(self).handle();
    nb::dict out;
    size_t count = sl_ranker_tensor_count(handle);
    for (size_t i = 0; i < count; i++) {
        sl_tensor tensor{};
        ::check(Outcome(sl_ranker_get_tensor(handle, i, &tensor)));
        size_t shape[] = {tensor.rows, tensor.columns};
        out[tensor.name] = nb::ndarray<nb::numpy, const float>(tensor.data, 2, shape, self).cast();
    }
    return out;
}

Ranker *Ranker::with_tensors(nb::dict tensors) {
    std::vector<std::unique_ptr<Rows>> held;
    std::vector<std::string> names;
    std::vector<sl_tensor> given;
    names.reserve(nb::len(tensors));
    for (auto [name, array] : tensors) {
        size_t columns = nb::cast<size_t>(array.attr("shape")[1]);
        held.push_back(std::make_unique<Rows>(array, SL_F32, columns));
        const Rows &rows = *held.back();
        if (rows.count() > 1 && rows.stride() != columns * sizeof(float)) throw nb::value_error("not a dense matrix");
        names.push_back(nb::cast<nb::str>(name).c_str());
        given.push_back({names.back().c_str(), static_cast<const float *>(rows.data()), rows.count(), columns});
    }
    sl_ranker *made = nullptr;
    Outcome outcome;
    {
        Released released;
        outcome = Outcome(sl_ranker_with_tensors(handle_, given.data(), given.size(), &made));
    }
    ::check(outcome);
    return new Ranker(made);
}

Ranker *Ranker::with_layers(nb::list layers) {
    std::vector<std::unique_ptr<Flat<int8_t>>> codes;
    std::vector<std::unique_ptr<Flat<float>>> scales;
    std::vector<sl_quantized_layer> given;
    for (nb::handle item : layers) {
        nb::tuple layer = nb::cast<nb::tuple>(item);
        sl_quantized_layer to{};
        to.precision = static_cast<sl_precision>(nb::cast<int>(layer[0]));
        if (nb::len(layer) > 1) {
            sl_layer_info info{};
            info.struct_size = sizeof info;
            ::check(Outcome(sl_ranker_get_layer(handle_, given.size(), &info)));
            to.scale = nb::cast<float>(layer[1]);
            to.zero = nb::cast<int>(layer[2]);
            codes.push_back(std::make_unique<Flat<int8_t>>(layer[3], info.in * info.out));
            scales.push_back(std::make_unique<Flat<float>>(layer[4], info.out));
            to.codes = codes.back()->data();
            to.weight_scales = scales.back()->data();
        }
        given.push_back(to);
    }
    sl_ranker *made = nullptr;
    Outcome outcome;
    {
        Released released;
        outcome = Outcome(sl_ranker_with_layers(handle_, given.data(), given.size(), &made));
    }
    ::check(outcome);
    return new Ranker(made);
}

void define_ranker(nb::module_ &m) {
    nb::class_<Ranker>(m, "Ranker")
        .def_static("train", &Ranker::train, nb::arg("spec"), nb::arg("rows"), nb::arg("valid").none(),
                    nb::arg("options"), nb::arg("lookup").none(), nb::arg("progress").none(),
                    nb::arg("on_epoch").none())
        .def("prune", &Ranker::prune, nb::arg("rows").none(), nb::arg("valid").none(), nb::arg("cuts"),
             nb::arg("options"), nb::arg("lookup").none(), nb::arg("progress").none(), nb::arg("on_epoch").none())
        .def_static("create", &Ranker::create, nb::arg("spec"), nb::arg("rows"), nb::arg("seed"),
                    nb::arg("lookup").none())
        .def_static("open", &Ranker::open, nb::arg("path"))
        .def_static("check", &Ranker::check, nb::arg("path"), nb::arg("progress").none())
        .def("save", &Ranker::save, nb::arg("path"), nb::arg("progress").none())
        .def("predict", &Ranker::predict, nb::arg("table"), nb::arg("threads"), nb::arg("lookup").none(),
             nb::arg("scores_out"))
        .def("predict_rows", &Ranker::predict_rows, nb::arg("rows"), nb::arg("threads"), nb::arg("lookup").none())
        .def("encode", &Ranker::encode, nb::arg("rows"), nb::arg("lookup").none())
        .def("predict_encoded", &Ranker::predict_encoded, nb::arg("n"), nb::arg("dense"), nb::arg("ids"),
             nb::arg("bag_start"), nb::arg("bag_ids"), nb::arg("scores_out"))
        .def("evaluate", &Ranker::evaluate, nb::arg("rows"), nb::arg("group").none(), nb::arg("k"), nb::arg("threads"),
             nb::arg("lookup").none(), nb::arg("progress").none())
        .def("quantize", &Ranker::quantize, nb::arg("rows"), nb::arg("eval").none(), nb::arg("options"),
             nb::arg("lookup").none(), nb::arg("progress").none())
        .def("layers", &Ranker::layers)
        .def("info", &Ranker::info)
        .def("classes", &Ranker::classes)
        .def("features", &Ranker::features)
        .def("embeddings", &Ranker::embeddings)
        .def_static("tensors", &Ranker::tensors, nb::arg("ranker"))
        .def("with_tensors", &Ranker::with_tensors, nb::arg("tensors"))
        .def("with_layers", &Ranker::with_layers, nb::arg("layers"));
}
