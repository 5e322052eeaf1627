/* Makes a smaller model of a trained one: cuts units, sets weights to 0, and trains on. */
#include "base/clock.h"
#include "base/params.h"
#include "ranker/features/table.h"
#include "ranker/prune/importance.h"
#include "ranker/prune/unit_pruning.h"
#include "ranker/train/train.h"
#include "ranker/train/train_loop.h"
#include "ranker/train/warm_start.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TAYLOR_ROWS 65536u

_Static_assert(SL_PRUNE_LAYERS == SL_MAX_HIDDEN, "a report has every hidden layer");

void sl_prune_params_init_sized(sl_prune_params *params, size_t struct_size) {
    const sl_prune_params mine = {.struct_size = sizeof mine, .weights_end = 0.5, .multiple = 1, .rows = TAYLOR_ROWS};
    sl_params_defaults(params, struct_size, &mine, sizeof mine);
}

/* One call of sl_ranker_prune. */
typedef struct pruning {
    sl_allocator allocator;
    const sl_ranker *ranker;
    const sl_rows *train, *valid;
    sl_prune_params params;
    sl_train_params training;
    double *importance; /* one per unit */
    unsigned char *kept;
    size_t units;
    sl_trainer *trainer;
    sl_prune_report report;
} pruning;

/* ---------------------------------------------------------------------------------------------------------------
 * Parameters
 * ------------------------------------------------------------------------------------------------------------- */

static int cuts_units(const sl_prune_params *params) {
    return params->units > 0 || params->multiply_adds > 0;
}

static sl_status check_share(const char *name, double share) {
    if (share >= 0 && share < 1) return SL_OK;
    return sl_fail(SL_EINVAL, "%s is %g; give the share to cut, from 0 to below 1", name, share);
}

static sl_status check_params(const sl_prune_params *params) {
    SL_TRY(check_share("units", params->units));
    SL_TRY(check_share("multiply_adds", params->multiply_adds));
    SL_TRY(check_share("weights", params->weights));
    if (params->units > 0 && params->multiply_adds > 0)
        return sl_fail(SL_EINVAL, "both units and multiply_adds are given; leave one at 0");
    if (!cuts_units(params) && params->weights == 0)
        return sl_fail(SL_EINVAL, "nothing is to be cut; set units, multiply_adds or weights");
    if (params->multiple == 0) return sl_fail(SL_EINVAL, "multiple is 0; give 1 for any width");
    if (!(params->weights_end > 0 && params->weights_end <= 1))
        return sl_fail(SL_EINVAL, "weights_end is %g; give a share above 0, up to 1", params->weights_end);
    if (params->criterion != SL_PRUNE_TAYLOR && params->criterion != SL_PRUNE_NORM)
        return sl_fail(SL_EINVAL, "no criterion has the number %d", (int)params->criterion);
    return SL_OK;
}

static sl_status read_all_params(pruning *p, const sl_prune_params *params, const sl_train_params *training) {
    sl_prune_params_init(&p->params);
    SL_TRY(sl_params_in(&p->params, sizeof p->params, params, "sl_prune_params_init"));
    SL_TRY(check_params(&p->params));
    SL_TRY(sl_train_read_params(training, &p->training));
    if (p->training.init)
        return sl_fail(SL_EINVAL, "training has a model to begin with; it is the pruned one, so leave init at NULL");
    if (p->training.layers != SL_TRAIN_LAYERS_F32)
        return sl_fail(SL_EINVAL, "training is of layers in INT8; prune in F32, and quantise the pruned model");
    if (!p->ranker->shape.layers)
        return sl_fail(SL_EINVAL, "the model has no deep part; its wide part becomes sparse by \"wide.l1\"");
    SL_TRY(sl_warm_start_check_floats(p->ranker));
    if (p->train) SL_TRY(sl_rows_check(p->train));
    if (p->valid) SL_TRY(sl_rows_check(p->valid));
    if (!p->train && cuts_units(&p->params) && p->params.criterion == SL_PRUNE_TAYLOR)
        return sl_fail(SL_EINVAL, "the Taylor criterion looks at rows; give training rows, or take the criterion norm");
    p->allocator = sl_allocator_of(p->training.allocator);
    p->units = sl_unit_count(&p->ranker->shape);
    if (cuts_units(&p->params) && !p->units)
        return sl_fail(SL_EINVAL, "the model has no hidden layer, and so no units to cut");
    return SL_OK;
}

/* ---------------------------------------------------------------------------------------------------------------
 * Units
 * ------------------------------------------------------------------------------------------------------------- */

/* Measures the validation loss and the units' importance of the ranker as it is, with a trainer made for this. */
static sl_status measure_original(pruning *p) {
    sl_train_params params = p->training;
    sl_features *features;
    sl_trainer *trainer;
    sl_epoch epoch = {0};
    if (!p->train) return SL_OK;
    double begin = sl_now_s();
    params.init = p->ranker;
    SL_TRY(sl_warm_start_features(NULL, p->ranker->features, &params, &features));
    SL_TRY(sl_trainer_create(features, p->train, p->valid, &params, NULL, &trainer));
    sl_status status = sl_train_validate(trainer, &epoch);
    if (status == SL_OK && cuts_units(&p->params) && p->params.criterion == SL_PRUNE_TAYLOR)
        status = sl_unit_taylor(trainer, p->params.rows, p->importance);
    sl_trainer_free(trainer);
    p->report.valid_loss_before = epoch.valid_loss;
    p->report.valid_auc_before = epoch.valid_auc;
    p->report.importance_s = sl_now_s() - begin;
    return status;
}

/* Copies the features for the narrower layers. */
static sl_status narrow_features(const pruning *p, const sl_net_shape *shape, sl_features **out) {
    char *text;
    *out = NULL;
    SL_TRY(sl_spec_with_hidden(p->ranker->features->spec->text, shape->width + 1, shape->layers - 1, &text));
    sl_status status = sl_warm_start_features(text, p->ranker->features, &p->training, out);
    free(text);
    return status;
}

/* Copies the weights except those of cut units. The layers come last in the block. */
static sl_status narrow_weights(const pruning *p, const sl_features *features, const sl_net_shape *shape,
                                sl_weights *out) {
    const sl_ranker *ranker = p->ranker;
    sl_weights_layout layout;
    SL_TRY(sl_weights_create(features, shape, &p->allocator, out));
    sl_status status = sl_weights_layout_of(features, shape, &layout);
    if (status != SL_OK) {
        sl_weights_free(out, features, shape, &p->allocator);
        return status;
    }
    memcpy(out->block, ranker->weights.block, layout.dense_at * sizeof(float));
    sl_units_copy(&ranker->shape, p->kept, ranker->weights.dense, out->dense);
    return SL_OK;
}

/* Chooses units, and makes the smaller model's features and weights. */
static sl_status narrow_model(pruning *p, sl_features **features, sl_weights *weights) {
    sl_net_shape shape = p->ranker->shape;
    *features = NULL;
    if (p->params.criterion == SL_PRUNE_NORM) sl_unit_norms(&shape, p->ranker->weights.dense, p->importance);
    memset(p->kept, 1, p->units);
    if (cuts_units(&p->params))
        SL_TRY(sl_units_choose(&p->ranker->shape, p->importance, &p->params, &p->allocator, p->kept, &shape));
    if (cuts_units(&p->params))
        SL_TRY(narrow_features(p, &shape, features));
    else
        SL_TRY(sl_warm_start_features(NULL, p->ranker->features, &p->training, features));
    sl_status status = narrow_weights(p, *features, &shape, weights);
    if (status != SL_OK) sl_features_free(*features);
    return status;
}

/* ---------------------------------------------------------------------------------------------------------------
 * Training on
 * ------------------------------------------------------------------------------------------------------------- */

/* Trains the smaller model. Owns the features, and frees them on failure too. */
static sl_status train_on(pruning *p, sl_features *features, const sl_weights *weights, sl_ranker **out) {
    sl_trainer *trainer;
    sl_epoch epoch = {0};
    sl_train_report trained = {.struct_size = sizeof trained};
    double begin = sl_now_s();
    SL_TRY(sl_trainer_create(features, p->train, p->valid, &p->training, NULL, &trainer));
    sl_trainer_set_weights(trainer, weights);
    sl_status status = SL_OK;
    if (p->params.weights > 0)
        status = sl_trainer_cut_weights(trainer, p->params.weights, p->params.weights_end, p->params.per_layer);
    if (status == SL_OK) status = sl_train_validate(trainer, &epoch);
    if (status != SL_OK) {
        sl_trainer_free(trainer);
        return status;
    }
    SL_TRY(sl_train_to_ranker(trainer, &p->training, sl_now_s() - begin, out, &trained));
    p->report.valid_loss_cut = epoch.valid_loss;
    p->report.valid_auc_cut = epoch.valid_auc;
    p->report.valid_loss = trained.valid_loss;
    p->report.valid_auc = trained.valid_auc;
    p->report.rows = trained.rows;
    p->report.valid_rows = trained.valid_rows;
    p->report.epochs = trained.epochs;
    p->report.best_epoch = trained.best_epoch;
    p->report.read_s = trained.read_s;
    p->report.epoch_s = trained.epoch_s;
    return SL_OK;
}

/* Cuts weights at once and makes the ranker. Owns features and weights, and frees them on failure too. */
static sl_status make_untrained(pruning *p, sl_features *features, sl_weights *weights, sl_ranker **out) {
    sl_net_shape shape;
    sl_magnitude *magnitude;
    sl_shape_of(features, &shape);
    if (p->params.weights > 0) {
        sl_status status =
            sl_magnitude_create(&shape, p->params.weights, 1, p->params.per_layer, &p->allocator, &magnitude);
        if (status != SL_OK) {
            sl_weights_free(weights, features, &shape, &p->allocator);
            sl_features_free(features);
            return status;
        }
        sl_magnitude_cut(magnitude, weights->dense, p->params.weights);
        sl_magnitude_free(magnitude);
    }
    return sl_ranker_make(features, weights, NULL, &p->allocator, out);
}

static sl_status make_pruned(pruning *p, sl_features *features, sl_weights *weights, sl_ranker **out) {
    if (!p->train) return make_untrained(p, features, weights, out);
    /* The training frees the features. The weights need only the number of tables for their memory to be freed. */
    size_t tables = features->table_count;
    sl_status status = train_on(p, features, weights, out);
    SL_FREE_ARRAY(&p->allocator, weights->embeddings, tables);
    SL_FREE_ARRAY(&p->allocator, weights->block, weights->block_size);
    return status;
}

/* ---------------------------------------------------------------------------------------------------------------
 * The public call
 * ------------------------------------------------------------------------------------------------------------- */

static sl_status fill_report(pruning *p, const sl_ranker *made, sl_prune_report *out) {
    sl_ranker_info before = {.struct_size = sizeof before}, after = {.struct_size = sizeof after};
    sl_prune_report *report = &p->report;
    SL_TRY(sl_ranker_get_info(p->ranker, &before));
    SL_TRY(sl_ranker_get_info(made, &after));
    report->hidden_layers = made->shape.layers - 1;
    for (size_t l = 0; l < report->hidden_layers; l++) {
        report->hidden_before[l] = p->ranker->shape.width[l + 1];
        report->hidden[l] = made->shape.width[l + 1];
    }
    report->parameters_before = before.parameters;
    report->parameters = after.parameters;
    report->bytes_before = before.bytes;
    report->bytes = after.bytes;
    report->multiply_adds_before = before.multiply_adds;
    report->multiply_adds = report->dense_weights = after.multiply_adds;
    report->dense_zeros = after.dense_zeros;
    sl_params_out(out, report, sizeof *report);
    return SL_OK;
}

static sl_status alloc_unit_arrays(pruning *p) {
    size_t bytes;
    void *block;
    if (!sl_mul(p->units, sizeof *p->importance, &bytes)) return sl_fail(SL_ENOMEM, "%zu units do not fit", p->units);
    SL_TRY(sl_mem_alloc(&p->allocator, bytes, &block));
    p->importance = block;
    SL_TRY(sl_mem_alloc(&p->allocator, p->units, &block));
    p->kept = block;
    return SL_OK;
}

static sl_status prune_ranker(pruning *p, sl_ranker **out) {
    sl_features *features;
    sl_weights weights;
    SL_TRY(alloc_unit_arrays(p));
    SL_TRY(measure_original(p));
    SL_TRY(narrow_model(p, &features, &weights));
    return make_pruned(p, features, &weights, out);
}

sl_status sl_ranker_prune(const sl_ranker *ranker, const sl_rows *train, const sl_rows *valid,
                          const sl_prune_params *params, const sl_train_params *training, sl_ranker **out,
                          sl_prune_report *report) {
    if (!out) return sl_fail(SL_EINVAL, "out is NULL; give the address of a handle");
    *out = NULL;
    if (!ranker) return sl_fail(SL_EINVAL, "ranker is NULL");
    if (report) SL_TRY(sl_params_check_out(report, "sl_prune_report"));
    const double none = (double)NAN;
    pruning p = {.ranker = ranker,
                 .train = train,
                 .valid = train ? valid : NULL,
                 .report = {.struct_size = sizeof p.report,
                            .valid_loss_before = none,
                            .valid_loss_cut = none,
                            .valid_loss = none,
                            .valid_auc_before = none,
                            .valid_auc_cut = none,
                            .valid_auc = none}};
    SL_TRY(read_all_params(&p, params, training));
    sl_status status = prune_ranker(&p, out);
    if (status == SL_OK && report) status = fill_report(&p, *out, report);
    if (status != SL_OK) {
        sl_ranker_free(*out);
        *out = NULL;
    }
    SL_FREE_ARRAY(&p.allocator, p.importance, p.units);
    sl_mem_free(&p.allocator, p.kept, p.units);
    return status;
}
