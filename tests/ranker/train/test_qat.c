/* Quantisation-aware training. The forward pass equals the folded layers, bit for bit. Gradients pass straight through
 * the rounding and nowhere else. Validation measures the folded model. Resuming gives the same bytes. */
#include "ranker/net/net_fake.h"
#include "ranker/train/checkpoint.h"
#include "tests/support/check_main.h"
#include "tests/support/hostile.h"
#include "tests/support/indexes.h"
#include "tests/support/net_reference.h"
#include "tests/support/planted.h"
#include "tests/support/scratch.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CLICK "\"column\": \"click\""
#define WIDE  "\"features\": [\"a\", \"b\", \"tags\", \"ab\"], \"rate\": 0.3, \"beta\": 0.01"
#define DEEP  "\"hidden\": [32, 16], \"rate\": 0.05"
#define ADAM  "\"hidden\": [8, 6], \"optimizer\": \"adam\", \"rate\": 0.01, \"dropout\": 0.2"
#define TRAIN "\"epochs\": 6, \"batch\": 64, \"validation\": 0.1, \"patience\": 0"
#define SHORT "\"epochs\": 2, \"batch\": 50, \"validation\": 0.2"

static planted rows, held_out;
static scratch place;

static void set_up(void) {
    planted_make(&rows, 4000, 1);
    planted_make(&held_out, 2000, 2);
    scratch_open(&place);
}

static void tear_down(void) {
    planted_free(&rows);
    planted_free(&held_out);
    scratch_close(&place);
}

/* ---------------------------------------------------------------------------------------------------------------
 * A step of the net
 * ------------------------------------------------------------------------------------------------------------- */

enum { ROWS = 37, WIDEST = 300 };

static const sl_net_shape shapes[] = {{4, {133, 128, 64, 32, 1}, SL_RELU}, {3, {45, 37, 19, 3}, SL_RELU},
                                      {3, {45, 37, 19, 3}, SL_GELU},       {3, {45, 37, 19, 3}, SL_TANH},
                                      {2, {29, 40, 2}, SL_LINEAR},         {1, {WIDEST, 5}, SL_RELU},
                                      {2, {300, WIDEST, 2}, SL_RELU}};
/* Types of the layers, from the first on: i INT8, f floats. */
static const char *const kinds[] = {"iiii", "fiii", "ifii"};
enum { SHAPES = sizeof shapes / sizeof *shapes, KINDS = sizeof kinds / sizeof *kinds };

typedef struct fixture {
    sl_net_shape shape;
    sl_fake_layer layers[SL_MAX_LAYERS];
    float *weights, *inputs, *logits, *gradient, *by_logits;
    sl_allocator allocator;
    sl_net_trainer *trainer;
    int floats; /* whether a layer is of floats */
} fixture;

/* Scales from the largest weight; every third column is clipped at 0.6 of it. Ranges leave some inputs out. */
static void range_layer(fixture *f, size_t l) {
    size_t in = f->shape.width[l], out = f->shape.width[l + 1];
    const float *weights = f->weights + sl_net_weight_at(&f->shape, l);
    float *scales = malloc(out * sizeof *scales);
    for (size_t o = 0; o < out; o++) {
        float most = 0;
        for (size_t i = 0; i < in; i++)
            most = fmaxf(most, fabsf(weights[i * out + o]));
        scales[o] = most / 127 * (o % 3 == 2 ? 0.6f : 1);
    }
    int rectified = l && f->shape.activation == SL_RELU;
    f->layers[l] = (sl_fake_layer){1, {rectified ? 0.006f : 0.0061f, rectified ? 0 : 117}, scales};
}

static void make_fixture(fixture *f, const sl_net_shape *shape, const char *kind, size_t threads, double dropout) {
    *f = (fixture){.allocator = sl_allocator_of(NULL), .shape = *shape};
    size_t outputs = shape->width[shape->layers];
    f->weights = reference_weights(shape, 3);
    f->inputs = reference_numbers(ROWS * shape->width[0], 1, 4);
    f->by_logits = reference_numbers(ROWS * outputs, 1, 7);
    f->logits = malloc(ROWS * outputs * sizeof *f->logits);
    f->gradient = malloc(sl_net_size(shape) * sizeof *f->gradient);
    for (size_t l = 0; l < shape->layers; l++) {
        if (kind[l % strlen(kind)] == 'i')
            range_layer(f, l);
        else
            f->floats = 1;
    }
    ck_ok(sl_net_trainer_create(shape, ROWS, threads, dropout, &f->allocator, &f->trainer));
    ck_ok(sl_net_trainer_set_fake(f->trainer, f->layers));
    memcpy(sl_net_trainer_input(f->trainer), f->inputs, ROWS * shape->width[0] * sizeof(float));
}

static void free_fixture(fixture *f) {
    sl_net_trainer_free(f->trainer);
    for (size_t l = 0; l < f->shape.layers; l++)
        free((void *)(uintptr_t)f->layers[l].scales);
    free(f->weights);
    free(f->inputs);
    free(f->by_logits);
    free(f->logits);
    free(f->gradient);
}

/* Two threads share the weights of the largest shape, in layers of INT8 and of floats. */
static size_t threads_of(int i) {
    return 2 - (size_t)i % 2;
}

static float steps_of_weight(float weight, float scale) {
    float steps = rintf(weight * (1 / scale));
    return steps > 127 ? 127 : steps < -127 ? -127 : steps;
}

/* The logits of the net that serves these layers. */
static void serve(const fixture *f, float *out) {
    sl_layer_codes codes[SL_MAX_LAYERS] = {{.type = SL_LAYER_F32}};
    int8_t *made[SL_MAX_LAYERS] = {NULL};
    sl_net *net;
    sl_net_run *run;
    for (size_t l = 0; l < f->shape.layers; l++) {
        size_t in = f->shape.width[l], width = f->shape.width[l + 1];
        const float *weights = f->weights + sl_net_weight_at(&f->shape, l);
        if (!f->layers[l].is_int8) continue;
        made[l] = malloc(in * width);
        for (size_t i = 0; i < in * width; i++)
            made[l][i] = (int8_t)steps_of_weight(weights[i], f->layers[l].scales[i % width]);
        codes[l] = (sl_layer_codes){
            .type = SL_LAYER_INT8, .input = f->layers[l].input, .codes = made[l], .scales = f->layers[l].scales};
    }
    ck_ok(sl_net_create(&f->shape, f->weights, codes, &f->allocator, &net));
    ck_ok(sl_net_run_create(net, ROWS, &f->allocator, &run));
    memcpy(sl_net_run_input(run), f->inputs, ROWS * f->shape.width[0] * sizeof(float));
    ck_ok(sl_net_run_forward(run, ROWS, out));
    sl_net_run_free(run);
    sl_net_free(net);
    for (size_t l = 0; l < f->shape.layers; l++)
        free(made[l]);
}

/* In a step and in evaluation, for any number of threads. A layer of floats rounds in another order. */
START_TEST(forward_is_the_folded_layers) {
    fixture f;
    make_fixture(&f, &shapes[_i / KINDS], kinds[_i % KINDS], threads_of(_i), 0);
    size_t count = ROWS * f.shape.width[f.shape.layers];
    float *served = malloc(count * sizeof *served);
    serve(&f, served);
    for (int in_step = 0; in_step < 2; in_step++) {
        memset(f.logits, 0, count * sizeof *f.logits);
        if (in_step)
            ck_ok(sl_net_trainer_forward(f.trainer, f.weights, ROWS, 0, 1, f.logits));
        else
            ck_ok(sl_net_trainer_evaluate(f.trainer, f.weights, ROWS, f.logits));
        for (size_t i = 0; i < count; i++)
            if (f.floats)
                ck_assert_float_eq_tol(f.logits[i], served[i], 0.03f);
            else
                ck_assert_msg(f.logits[i] == served[i], "logit %zu: %.9g for %.9g", i, (double)f.logits[i],
                              (double)served[i]);
    }
    free(served);
    free_fixture(&f);
}
END_TEST

/* A step of one row, in double. */
typedef struct reference {
    double values[SL_MAX_LAYERS + 1][WIDEST], sums[SL_MAX_LAYERS + 1][WIDEST];
    double *gradient;                           /* by the weights, over all rows so far */
    double by_log_scale[SL_MAX_LAYERS][WIDEST]; /* likewise */
    sl_fake_sums by_range[SL_MAX_LAYERS];
    double by_input[WIDEST]; /* of the last row */
} reference;

/* A value's position among the codes, not rounded. */
static float place_of(double value, const sl_int8_range *range) {
    float scaled = (float)value * (1 / range->scale);
    return scaled + (float)range->zero;
}

static double faked(double value, const sl_fake_layer *layer) {
    float place = place_of(value, &layer->input), code = rintf(place < 0 ? 0 : place > 255 ? 255 : place);
    return layer->is_int8 ? ((double)code - layer->input.zero) * (double)layer->input.scale : value;
}

static double faked_weight(float weight, const sl_fake_layer *layer, size_t o) {
    return layer->is_int8 ? (double)steps_of_weight(weight, layer->scales[o]) * (double)layer->scales[o]
                          : (double)weight;
}

static void reference_rise(const fixture *f, reference *r) {
    for (size_t l = 0; l < f->shape.layers; l++) {
        size_t in = f->shape.width[l], out = f->shape.width[l + 1];
        const float *weights = f->weights + sl_net_weight_at(&f->shape, l);
        for (size_t o = 0; o < out; o++) {
            double sum = (double)weights[in * out + o];
            for (size_t i = 0; i < in; i++)
                sum += faked(r->values[l][i], &f->layers[l]) * faked_weight(weights[i * out + o], &f->layers[l], o);
            r->sums[l + 1][o] = sum;
            r->values[l + 1][o] = reference_act(sum, f->shape.activation);
        }
    }
}

static double slope(double sum, sl_activation activation) {
    const double h = 1e-6;
    return (reference_act(sum + h, activation) - reference_act(sum - h, activation)) / (2 * h);
}

/* The gradients by a layer's weights and their scales, from the gradient by its sums. */
static void reference_weights_of(const fixture *f, reference *r, size_t l, const double *by_sums) {
    size_t in = f->shape.width[l], out = f->shape.width[l + 1], at = sl_net_weight_at(&f->shape, l);
    const sl_fake_layer *layer = &f->layers[l];
    for (size_t o = 0; o < out; o++) {
        r->gradient[at + in * out + o] += by_sums[o];
        for (size_t i = 0; i < in; i++) {
            double by = faked(r->values[l][i], layer) * by_sums[o];
            if (layer->is_int8) {
                double scale = (double)layer->scales[o], place = (double)f->weights[at + i * out + o] / scale;
                int outside = fabs(place) > 127.5;
                r->by_log_scale[l][o] += by * scale * (outside ? copysign(127, place) : rint(place) - place);
                by = outside ? 0 : by;
            }
            r->gradient[at + i * out + o] += by;
        }
    }
}

/* The gradient by a layer's input, straight through the rounding within the range. */
static double reference_input_of(const fixture *f, reference *r, size_t l, size_t i, const double *by_sums) {
    size_t out = f->shape.width[l + 1];
    const float *weights = f->weights + sl_net_weight_at(&f->shape, l) + i * out;
    const sl_fake_layer *layer = &f->layers[l];
    double by = 0;
    for (size_t o = 0; o < out; o++)
        by += by_sums[o] * faked_weight(weights[o], layer, o);
    if (!layer->is_int8) return by;
    double place = (double)place_of(r->values[l][i], &layer->input), by_step = by * (double)layer->input.scale;
    if (place < -0.5) r->by_range[l].below += by_step;
    if (place > 255.5) r->by_range[l].above += by_step;
    if (place < -0.5 || place > 255.5) return 0;
    r->by_range[l].inside += by_step * (fmin(fmax(rint(place), 0), 255) - place);
    return by;
}

static void reference_fall(const fixture *f, reference *r, const float *by_logits) {
    double by_sums[WIDEST], by_values[WIDEST];
    for (size_t o = 0; o < f->shape.width[f->shape.layers]; o++)
        by_sums[o] = (double)by_logits[o];
    for (size_t l = f->shape.layers; l-- > 0;) {
        reference_weights_of(f, r, l, by_sums);
        for (size_t i = 0; i < f->shape.width[l]; i++)
            by_values[i] = reference_input_of(f, r, l, i, by_sums);
        for (size_t i = 0; l && i < f->shape.width[l]; i++)
            by_sums[i] = by_values[i] * slope(r->sums[l][i], f->shape.activation);
    }
    memcpy(r->by_input, by_values, sizeof r->by_input);
}

static void expect_near(double found, double wanted, const char *what, size_t at) {
    ck_assert_msg(fabs(found - wanted) <= 2e-3 * (1 + fabs(wanted)), "%s %zu: %.7g for %.7g", what, at, found, wanted);
}

START_TEST(gradients_go_straight_through) {
    fixture f;
    make_fixture(&f, &shapes[_i / KINDS], kinds[_i % KINDS], threads_of(_i), 0);
    size_t width = f.shape.width[0], outputs = f.shape.width[f.shape.layers];
    reference *r = calloc(1, sizeof *r);
    r->gradient = calloc(sl_net_size(&f.shape), sizeof *r->gradient);
    ck_ok(sl_net_trainer_forward(f.trainer, f.weights, ROWS, 0, 1, f.logits));
    ck_ok(sl_net_trainer_backward(f.trainer, f.weights, f.by_logits, f.gradient));
    const float *by_inputs = sl_net_trainer_input_gradient(f.trainer);
    for (size_t row = 0; row < ROWS; row++) {
        for (size_t i = 0; i < width; i++)
            r->values[0][i] = (double)f.inputs[row * width + i];
        reference_rise(&f, r);
        reference_fall(&f, r, f.by_logits + row * outputs);
        for (size_t i = 0; i < width; i++)
            expect_near((double)by_inputs[row * width + i], r->by_input[i], "input", row * width + i);
    }
    for (size_t i = 0; i < sl_net_size(&f.shape); i++)
        expect_near((double)f.gradient[i], r->gradient[i], "weight", i);
    const sl_net_fake *fake = sl_net_trainer_get_fake(f.trainer);
    for (size_t l = 0; l < f.shape.layers; l++) {
        if (!f.layers[l].is_int8) continue;
        const sl_fake_sums sums = sl_net_fake_seen(fake, l).sums;
        expect_near(sums.inside, r->by_range[l].inside, "range inside", l);
        expect_near(sums.below, r->by_range[l].below, "range below", l);
        expect_near(sums.above, r->by_range[l].above, "range above", l);
        for (size_t o = 0; o < f.shape.width[l + 1]; o++)
            expect_near((double)fake->by_log_scale[l][o], r->by_log_scale[l][o], "scale", o);
    }
    free(r->gradient);
    free(r);
    free_fixture(&f);
}
END_TEST

/* Extremes come from inputs as serving sees them: without dropout, on every thread. */
START_TEST(extremes_are_seen_without_dropout) {
    fixture f;
    make_fixture(&f, &shapes[0], "iiii", 1 + (size_t)_i, 0.5);
    float low = 0, high = 0;
    for (size_t i = 0; i < ROWS * f.shape.width[0]; i++) {
        low = fminf(low, f.inputs[i]);
        high = fmaxf(high, f.inputs[i]);
    }
    ck_ok(sl_net_trainer_forward(f.trainer, f.weights, ROWS, 9, 1, f.logits));
    const sl_net_fake *fake = sl_net_trainer_get_fake(f.trainer);
    ck_assert_float_eq(sl_net_fake_seen(fake, 0).low, low);
    ck_assert_float_eq(sl_net_fake_seen(fake, 0).high, high);
    float dropped = sl_net_fake_seen(fake, 1).high;
    ck_ok(sl_net_trainer_evaluate(f.trainer, f.weights, ROWS, f.logits));
    ck_assert_float_eq(sl_net_fake_seen(fake, 1).high, dropped);
    ck_assert_float_gt(dropped, 0);
    free_fixture(&f);
}
END_TEST

/* Codes do not hide NaN or infinity. */
START_TEST(nan_and_infinity_are_not_hidden) {
    fixture f;
    const float strange[] = {NAN, INFINITY, -INFINITY};
    make_fixture(&f, &shapes[0], "iiii", 1, 0);
    for (size_t i = 0; i < 3; i++) {
        sl_net_trainer_input(f.trainer)[f.shape.width[0] + 5] = strange[i];
        ck_ok(sl_net_trainer_forward(f.trainer, f.weights, ROWS, 0, 1, f.logits));
        ck_assert(isfinite(f.logits[0]) && isnan(f.logits[1]) && isfinite(f.logits[2]));
    }
    sl_net_trainer_input(f.trainer)[f.shape.width[0] + 5] = 0;
    for (size_t l = 0; l < f.shape.layers; l++) {
        float *weight = &f.weights[sl_net_weight_at(&f.shape, l)], kept = *weight;
        *weight = NAN;
        ck_ok(sl_net_trainer_forward(f.trainer, f.weights, ROWS, 0, 1, f.logits));
        ck_assert(isnan(f.logits[0]));
        *weight = kept;
    }
    free_fixture(&f);
}
END_TEST

/* The loops of all tiers agree. */
START_TEST(loops_are_the_same_on_every_tier) {
    enum { N = 67 };
    float *values = reference_numbers(N, 3, 11), units[N], steps[N], again[N], peaks[N], best[N];
    const sl_int8_range range = {0.01f, 120};
    uint8_t codes[N + 64];
    const sl_loops *first = sl_loops_of(SL_ISA_SCALAR);
    for (size_t i = 0; i < N; i++)
        units[i] = 30 + (float)i;
    for (int isa = 0; isa < SL_ISA_COUNT; isa++) {
        const sl_loops *loops = sl_loops_of((sl_isa)isa);
        if (!loops) continue;
        for (size_t n = 0; n <= N; n++) {
            loops->fake(values, n, &range, steps);
            sl_int8_get()->quantise(values, n, &range, codes);
            for (size_t i = 0; i < n; i++)
                ck_assert_float_eq(steps[i], (float)codes[i] - 120);
            first->fake_weights(values, 1, n, n, units, steps);
            loops->fake_weights(values, 1, n, n, units, again);
            ck_assert_mem_eq(steps, again, n * sizeof *steps);
            first->scale_to_steps(values, 1, n, units, values, steps);
            loops->scale_to_steps(values, 1, n, units, values, again);
            ck_assert_mem_eq(steps, again, n * sizeof *steps);
            memset(peaks, 0, sizeof peaks);
            loops->peaks(values, 2, n / 2, n / 2, peaks);
            for (size_t i = 0; i < n / 2; i++)
                best[i] = fmaxf(fabsf(values[i]), fabsf(values[n / 2 + i]));
            ck_assert_mem_eq(peaks, best, n / 2 * sizeof *best);
        }
    }
    free(values);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Training
 * ------------------------------------------------------------------------------------------------------------- */

static sl_train_params in_int8(sl_train_ranges ranges) {
    sl_train_params params = planted_one_thread();
    params.layers = SL_TRAIN_LAYERS_INT8;
    params.ranges = ranges;
    return params;
}

static sl_train_report train(const char *deep, const char *how, const sl_train_params *params, sl_ranker **ranker) {
    char spec[PLANTED_SPEC];
    sl_train_report report = {.struct_size = sizeof report};
    planted_spec(spec, CLICK, WIDE, deep, how, "");
    sl_status status = sl_ranker_train(spec, &rows.source, &held_out.source, params, ranker, &report);
    ck_assert_msg(status == SL_OK, "%s: %s", sl_status_name(status), sl_last_error());
    return report;
}

static sl_metrics metrics_of(const sl_ranker *ranker) {
    sl_metrics metrics = {.struct_size = sizeof metrics};
    ck_ok(sl_ranker_evaluate(ranker, &held_out.source, NULL, &metrics));
    return metrics;
}

static sl_layer_info layer_of(const sl_ranker *ranker, size_t layer) {
    sl_layer_info info = {.struct_size = sizeof info};
    ck_ok(sl_ranker_get_layer(ranker, layer, &info));
    return info;
}

static const char *const activations[] = {"relu", "gelu", "tanh"};

/* Training learns as well as in F32. Validation measures the resulting model. */
START_TEST(it_learns_as_well_and_is_judged_folded) {
    sl_ranker *exact, *ranker;
    char deep[128];
    sl_train_params plain = planted_one_thread(), params = in_int8((sl_train_ranges)(_i % 2));
    snprintf(deep, sizeof deep, DEEP ", \"activation\": \"%s\"", activations[_i / 2]);
    sl_train_report wanted = train(deep, TRAIN, &plain, &exact), report = train(deep, TRAIN, &params, &ranker);
    ck_assert_double_gt(wanted.valid_auc, 0.7);
    ck_assert_double_gt(report.valid_auc, wanted.valid_auc - 0.005);
    ck_assert_int_eq(wanted.layers, SL_TRAIN_LAYERS_F32);
    ck_assert_int_eq(report.layers, SL_TRAIN_LAYERS_INT8);
    ck_assert_int_eq(report.ranges, params.ranges);
    const sl_metrics metrics = metrics_of(ranker);
    ck_assert_double_eq_tol(metrics.auc, report.valid_auc, 2e-6);
    ck_assert_double_eq_tol(metrics.logloss, report.valid_loss, 2e-7);
    for (size_t l = 0; l < 3; l++)
        ck_assert_int_eq(layer_of(ranker, l).precision, SL_PRECISION_INT8);
    ck_assert_int_eq(layer_of(ranker, 1).zero == 0, _i / 2 == 0);
    sl_ranker_free(exact);
    sl_ranker_free(ranker);
}
END_TEST

/* Epochs after the best one leave no trace: the best weights fold with their own ranges. */
START_TEST(the_best_epoch_has_its_own_ranges) {
    sl_train_params params = in_int8((sl_train_ranges)_i);
    sl_ranker *ranker;
    planted_free(&rows);
    planted_make(&rows, 400, 5);
    sl_train_report report = train("\"hidden\": [32, 16], \"rate\": 0.2",
                                   "\"epochs\": 12, \"batch\": 32, \"patience\": 0", &params, &ranker);
    ck_assert_uint_eq(report.epochs, 12);
    ck_assert_uint_lt(report.best_epoch, 10);
    ck_assert_double_eq_tol(metrics_of(ranker).logloss, report.valid_loss, 2e-7);
    sl_ranker_free(ranker);
}
END_TEST

/* A warm start is in INT8 from its first step. A tiny rate keeps the weights, and observed ranges follow the extremes.
 * Learned ranges stay, like the weights. */
START_TEST(ranges_begin_where_calibration_puts_them) {
    sl_ranker *base, *observed, *learned, *calibrated;
    sl_train_params plain = planted_one_thread();
    train(DEEP, TRAIN, &plain, &base);
    ck_ok(sl_ranker_quantize(base, &rows.source, NULL, &calibrated));
    sl_train_params params = in_int8(SL_TRAIN_RANGES_OBSERVED);
    params.init = base;
    params.rate_scale = 1e-7;
    params.epochs = 1;
    train(DEEP, TRAIN, &params, &observed);
    params.ranges = SL_TRAIN_RANGES_LEARNED;
    train(DEEP, TRAIN, &params, &learned);
    for (size_t l = 0; l < 3; l++) {
        sl_layer_info from = layer_of(calibrated, l), by_extremes = layer_of(observed, l), held = layer_of(learned, l);
        ck_assert_float_eq_tol(held.scale / from.scale, 1, 0.03f);
        ck_assert_float_eq_tol(by_extremes.scale / from.scale, 1.1f, 0.25f);
        for (size_t o = 0; o < held.out; o++)
            ck_assert_float_eq_tol(held.weight_scales[o] / from.weight_scales[o], 1, 0.001f);
        ck_assert_float_ne(held.scale, by_extremes.scale);
    }
    sl_ranker_free(calibrated);
    sl_ranker_free(learned);
    sl_ranker_free(observed);
    sl_ranker_free(base);
}
END_TEST

/* Scales of inputs and of nearly all weights change with longer training. */
START_TEST(learned_ranges_move) {
    sl_ranker *base, *once, *longer;
    sl_train_params plain = planted_one_thread(), params = in_int8(SL_TRAIN_RANGES_LEARNED);
    train(DEEP, TRAIN, &plain, &base);
    params.init = base;
    params.epochs = 1;
    train(DEEP, TRAIN, &params, &once);
    params.epochs = 5;
    train(DEEP, TRAIN, &params, &longer);
    size_t moved = 0, all = 0;
    for (size_t l = 0; l < 3; l++) {
        sl_layer_info a = layer_of(once, l), b = layer_of(longer, l);
        ck_assert_float_ne(a.scale, b.scale);
        for (size_t o = 0; o < a.out; o++, all++)
            moved += a.weight_scales[o] != b.weight_scales[o];
    }
    ck_assert_uint_gt(moved, all * 9 / 10);
    sl_ranker_free(longer);
    sl_ranker_free(once);
    sl_ranker_free(base);
}
END_TEST

/* Threads share the columns of a large layer. */
START_TEST(observed_scales_are_of_the_largest_weights) {
    const sl_net_shape shape = {.layers = 2, .width = {WIDEST, 1100, 3}, .activation = SL_RELU};
    sl_allocator allocator = sl_allocator_of(NULL);
    sl_train_params params = in_int8(SL_TRAIN_RANGES_OBSERVED);
    float *weights = reference_weights(&shape, 5);
    params.threads = 1 + (size_t)_i;
    sl_ranges *ranges;
    ck_ok(sl_ranges_create(&params, &shape, 1, &allocator, &ranges));
    sl_ranges_set_layers(ranges, weights);
    for (size_t l = 0; l < shape.layers; l++)
        for (size_t o = 0; o < shape.width[l + 1]; o++) {
            const float *column = weights + sl_net_weight_at(&shape, l) + o;
            float most = 0;
            for (size_t i = 0; i < shape.width[l]; i++)
                most = fmaxf(most, fabsf(column[i * shape.width[l + 1]]));
            ck_assert_float_eq(ranges->layers[l].scales[o], most / 127);
        }
    sl_ranges_free(ranges);
    free(weights);
}
END_TEST

/* L2 decays weights but not ranges: AdaGrad and Adam leave a range without a gradient. */
START_TEST(learned_ranges_do_not_decay) {
    enum { NUMBERS = 2 + 5 + 2 + 1 };
    const sl_net_shape shape = {.layers = 2, .width = {3, 5, 1}, .activation = SL_RELU};
    const float numbers[NUMBERS] = {-2, 3, 0.01f, 0.02f, 40, 5e-6f, 1, 0, 0.3f, 7};
    const sl_step step = {
        .rate = 0.1f, .l2 = 0.5f, .beta1 = 0.9f, .beta2 = 0.999f, .epsilon = 1e-8f, .correct1 = 10, .correct2 = 1000};
    sl_allocator allocator = sl_allocator_of(NULL);
    sl_train_params params = in_int8(SL_TRAIN_RANGES_LEARNED);
    static const float weights[3 * 5 + 5 + 5 + 1];
    float steps[3 * 5 + 5 + 5 + 1];
    sl_ranges *ranges;
    sl_net_fake *fake;
    ck_ok(sl_ranges_create(&params, &shape, 1 + (size_t)_i, &allocator, &ranges));
    ck_assert_uint_eq(ranges->size, NUMBERS);
    memcpy(ranges->numbers, numbers, sizeof numbers);
    sl_ranges_set_layers(ranges, weights);
    ck_ok(sl_net_fake_create(&shape, 1, ranges->layers, &allocator, &fake));
    sl_net_fake_weights(fake, weights, steps);
    sl_ranges_step(ranges, fake, &step);
    for (size_t i = 0; i < NUMBERS; i++)
        ck_assert_float_eq_tol(ranges->numbers[i], numbers[i], 1e-5f * fabsf(numbers[i]) + 1e-30f);
    sl_net_fake_free(fake);
    sl_ranges_free(ranges);
}
END_TEST

START_TEST(kept_layers_stay_floats) {
    static const char *const keep[] = {"dense.1"};
    sl_train_params params = in_int8(SL_TRAIN_RANGES_OBSERVED);
    sl_ranker *ranker, *opened;
    params.keep = keep;
    params.keep_count = 1;
    params.precision = SL_TRAIN_AUTO;
    sl_train_report report = train(DEEP, TRAIN, &params, &ranker);
    ck_assert_int_eq(report.precision, SL_TRAIN_F32);
    ck_assert_int_eq(layer_of(ranker, 0).precision, SL_PRECISION_INT8);
    ck_assert_int_eq(layer_of(ranker, 1).precision, SL_PRECISION_F32);
    ck_assert_int_eq(layer_of(ranker, 2).precision, SL_PRECISION_INT8);
    ck_assert_double_eq_tol(metrics_of(ranker).auc, report.valid_auc, 1e-5);
    /* The file is like any INT8 model's. */
    ck_ok(sl_ranker_save(ranker, place.path, NULL));
    ck_ok(sl_ranker_open(place.path, NULL, &opened));
    ck_assert_double_eq(metrics_of(opened).auc, metrics_of(ranker).auc);
    sl_ranker_free(opened);
    sl_ranker_free(ranker);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Checkpoints
 * ------------------------------------------------------------------------------------------------------------- */

/* The call of backward that fails, counted from 1; 0: none. */
static size_t stop_at, backwards;

sl_status __real_sl_net_trainer_backward(sl_net_trainer *trainer, const float *weights, const float *output_gradient,
                                         float *gradient);
sl_status __wrap_sl_net_trainer_backward(sl_net_trainer *trainer, const float *weights, const float *output_gradient,
                                         float *gradient);

sl_status __wrap_sl_net_trainer_backward(sl_net_trainer *trainer, const float *weights, const float *output_gradient,
                                         float *gradient) {
    if (++backwards == stop_at) return SL_ECANCELED;
    return __real_sl_net_trainer_backward(trainer, weights, output_gradient, gradient);
}

static void save(const sl_ranker *ranker, const char *name, unsigned char **bytes, size_t *size) {
    char path[SCRATCH_PATH];
    scratch_name(&place, name, path);
    ck_ok(sl_ranker_save(ranker, path, NULL));
    *bytes = file_read(path, size);
}

/* Trains, fails in the middle of every fifth step, and resumes each time. Returns how often. */
static size_t train_in_pieces(const char *spec, sl_train_params params, sl_ranker **out) {
    sl_status status = SL_ECANCELED;
    size_t pieces = 0;
    params.checkpoint = place.path;
    params.checkpoint_steps = 1;
    params.resume = 1;
    stop_at = 5;
    for (; status == SL_ECANCELED; pieces++) {
        backwards = 0;
        status = sl_ranker_train(spec, &rows.source, NULL, &params, out, NULL);
        ck_assert_msg(status == SL_OK || status == SL_ECANCELED, "%s", sl_last_error());
        ck_assert_uint_lt(pieces, 1000);
    }
    stop_at = 0;
    return pieces;
}

/* With observed and learned ranges, from scratch and from a model, by AdaGrad and Adam. */
START_TEST(interrupted_it_goes_on_to_the_same_bytes) {
    char spec[PLANTED_SPEC];
    sl_train_params params = in_int8((sl_train_ranges)(_i & 1));
    sl_ranker *base = NULL, *whole, *pieces;
    size_t sizes[2];
    unsigned char *bytes[2];
    planted_free(&rows);
    planted_make(&rows, 700, 3);
    planted_spec(spec, CLICK, WIDE, _i & 4 ? ADAM : "\"hidden\": [8, 6], \"dropout\": 0.1", SHORT, "");
    if (_i & 2) {
        sl_train_params plain = planted_one_thread();
        ck_ok(sl_ranker_train(spec, &rows.source, NULL, &plain, &base, NULL));
        params.init = base;
        params.rate_scale = 0.3;
    }
    ck_ok(sl_ranker_train(spec, &rows.source, NULL, &params, &whole, NULL));
    ck_assert_uint_gt(train_in_pieces(spec, params, &pieces), 3);
    save(whole, "whole.slr", &bytes[0], &sizes[0]);
    save(pieces, "pieces.slr", &bytes[1], &sizes[1]);
    ck_assert_uint_eq(sizes[0], sizes[1]);
    ck_assert_mem_eq(bytes[0], bytes[1], sizes[0]);
    free(bytes[0]);
    free(bytes[1]);
    sl_ranker_free(pieces);
    sl_ranker_free(whole);
    sl_ranker_free(base);
}
END_TEST

static void expect_refusal(const char *spec, sl_train_params params, const char *words) {
    sl_ranker *ranker;
    params.checkpoint = place.path;
    params.resume = 1;
    params.epochs = 3;
    ck_assert_int_eq(sl_ranker_train(spec, &rows.source, NULL, &params, &ranker, NULL), SL_EFORMAT);
    ck_assert_msg(strstr(sl_last_error(), words) != NULL, "%s", sl_last_error());
}

START_TEST(checkpoints_of_another_kind_are_refused) {
    static const char *const keep[] = {"dense.0"};
    char spec[PLANTED_SPEC];
    planted_spec(spec, CLICK, WIDE, "\"hidden\": [8, 6]", SHORT, "");
    sl_train_params plain = planted_one_thread(), params = in_int8(SL_TRAIN_RANGES_OBSERVED), other = params;
    sl_ranker *ranker;
    params.checkpoint = plain.checkpoint = place.path;
    ck_ok(sl_ranker_train(spec, &rows.source, NULL, &plain, &ranker, NULL));
    expect_refusal(spec, params, "a training with layers in F32");
    sl_ranker_free(ranker);
    ck_ok(sl_ranker_train(spec, &rows.source, NULL, &params, &ranker, NULL));
    expect_refusal(spec, plain, "a training with layers in INT8");
    other.ranges = SL_TRAIN_RANGES_LEARNED;
    expect_refusal(spec, other, "observed ranges");
    params.keep = keep;
    params.keep_count = 1;
    expect_refusal(spec, params, "other layers in INT8");
    sl_ranker_free(ranker);
    /* The checkpoint opens as the model of floats that it trains. */
    ck_ok(sl_ranker_open(place.path, NULL, &ranker));
    ck_assert_int_eq(layer_of(ranker, 0).precision, SL_PRECISION_F32);
    sl_ranker_free(ranker);
}
END_TEST

/* A check and a resume find false ranges under correct checksums. */
START_TEST(ranges_of_checkpoints_are_checked) {
    char spec[PLANTED_SPEC];
    planted_spec(spec, CLICK, WIDE, "\"hidden\": [8, 6]", SHORT, "");
    sl_train_params params = in_int8(SL_TRAIN_RANGES_LEARNED);
    sl_ranker *ranker;
    sl_ranker_check_report report = {.struct_size = sizeof report};
    size_t size;
    params.checkpoint = place.path;
    ck_ok(sl_ranker_train(spec, &rows.source, NULL, &params, &ranker, NULL));
    sl_ranker_free(ranker);
    unsigned char *bytes = file_read(place.path, &size);
    sl_file_header header;
    memcpy(&header, bytes, sizeof header);
    const sl_file_section *section = &header.sections[header.section_count - 2];
    ck_assert_uint_eq(section->kind, SL_SECTION_RANGES);
    ck_ok(sl_ranker_check(place.path, NULL, &report));
    /* An unknown kind; a flag of 2; fewer numbers; more states; a range of NaN; a range without 0. */
    const uint64_t seven = 7, one = 1, nan = 0x7fc00000, positive = 0x3f800000;
    const struct {
        size_t at;
        const uint64_t *value;
        size_t width;
        int by_check;
    } lies[] = {{0, &seven, 4, 1},  {4, &seven, 4, 1}, {16, &one, 8, 1},
                {24, &seven, 8, 1}, {36, &nan, 4, 1},  {32, &positive, 4, 0}};
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        unsigned char *changed = file_read(place.path, &size);
        memcpy(changed + section->offset + lies[i].at, lies[i].value, lies[i].width);
        hostile_seal_as(changed, size, &sl_ranker_file);
        file_write(place.path, changed, size);
        if (lies[i].by_check) ck_assert_int_eq(sl_ranker_check(place.path, NULL, &report), SL_ECORRUPT);
        params.resume = 1;
        ck_assert_int_eq(sl_ranker_train(spec, &rows.source, NULL, &params, &ranker, NULL), SL_ECORRUPT);
        file_write(place.path, bytes, size);
        free(changed);
    }
    free(bytes);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Refusals
 * ------------------------------------------------------------------------------------------------------------- */

static void expect(sl_status wanted, const char *deep, const sl_train_params *params, const char *words) {
    char spec[PLANTED_SPEC];
    sl_ranker *ranker;
    planted_spec(spec, CLICK, WIDE, deep, SHORT, "");
    ck_assert_int_eq(sl_ranker_train(spec, &rows.source, NULL, params, &ranker, NULL), wanted);
    ck_assert_msg(strstr(sl_last_error(), words) != NULL, "%s", sl_last_error());
    ck_assert_ptr_null(ranker);
}

START_TEST(what_cannot_be_is_refused) {
    static const char *const none[] = {"dense.7"}, *const all[] = {"dense.0", "dense.1", "dense.2"};
    const sl_train_params good = in_int8(SL_TRAIN_RANGES_OBSERVED);
    sl_train_params params = good;
    params.keep = none;
    params.keep_count = 1;
    expect(SL_ENOTFOUND, DEEP, &params, "no layer 'dense.7'");
    params.keep = all;
    params.keep_count = 3;
    expect(SL_EINVAL, DEEP, &params, "every layer is kept");
    params.keep = NULL;
    expect(SL_EINVAL, DEEP, &params, "keep is NULL");
    expect(SL_EINVAL, NULL, &good, "no deep part");
    params = good;
    params.precision = SL_TRAIN_BF16;
    expect(SL_EINVAL, DEEP, &params, "leave precision bf16 out");
    params = good;
    params.layers = (sl_train_layers)2;
    expect(SL_EINVAL, DEEP, &params, "none of sl_train_layers");
    params = good;
    params.ranges = (sl_train_ranges)2;
    expect(SL_EINVAL, DEEP, &params, "none of sl_train_ranges");
    params = planted_one_thread();
    params.ranges = SL_TRAIN_RANGES_LEARNED;
    expect(SL_EINVAL, DEEP, &params, "layers in INT8");
    /* A coded model has no floats to train. */
    sl_ranker *quantised;
    train(DEEP, SHORT, &good, &quantised);
    params = planted_one_thread();
    params.init = quantised;
    expect(SL_EINVAL, DEEP, &params, "a quantised model");
    params = good;
    params.init = quantised;
    expect(SL_EINVAL, DEEP, &params, "a quantised model");
    /* Prune first, then quantise. */
    sl_prune_params prune;
    sl_ranker *base, *out;
    sl_train_params plain = planted_one_thread();
    train(DEEP, SHORT, &plain, &base);
    sl_prune_params_init(&prune);
    prune.units = 0.5;
    ck_assert_int_eq(sl_ranker_prune(base, &rows.source, NULL, &prune, &good, &out, NULL), SL_EINVAL);
    ck_assert_ptr_nonnull(strstr(sl_last_error(), "prune in F32"));
    sl_ranker_free(base);
    sl_ranker_free(quantised);
}
END_TEST

/* The net of a ranker with these weights of a layer. */
static sl_ranker *with_layer(const sl_ranker *base, const char *name, size_t height, size_t width, float value) {
    sl_ranker *out;
    float *values = malloc(height * width * sizeof *values);
    for (size_t i = 0; i < height * width; i++)
        values[i] = value;
    const sl_tensor tensor = {name, values, height, width};
    ck_ok(sl_ranker_with_tensors(base, &tensor, 1, &out));
    free(values);
    return out;
}

/* Inputs that are all 0, not finite, or one value. */
START_TEST(ranges_of_nothing_are_refused) {
    sl_ranker *base, *strange, *out;
    sl_train_params plain = planted_one_thread(), params = in_int8((sl_train_ranges)_i);
    train("\"hidden\": [8, 6]", SHORT, &plain, &base);
    params.rate_scale = 0.01;
    params.epochs = 1;
    strange = with_layer(base, "dense.0.bias", 1, 8, -1e9f);
    params.init = strange;
    expect(SL_EINVAL, "\"hidden\": [8, 6]", &params, "all inputs of layer dense.1 are 0");
    sl_ranker_free(strange);
    strange = with_layer(base, "dense.0.weight", 13, 8, 3e38f);
    params.init = strange;
    expect(SL_EVALUE, "\"hidden\": [8, 6]", &params, "not finite");
    sl_ranker_free(strange);
    /* One value is a range from 0 on. */
    strange = with_layer(base, "dense.0.weight", 13, 8, 0);
    sl_ranker *constant = with_layer(strange, "dense.0.bias", 1, 8, 2.5f);
    params.init = constant;
    train("\"hidden\": [8, 6]", SHORT, &params, &out);
    ck_assert_float_eq_tol(layer_of(out, 1).high, 2.5f, 0.3f);
    ck_assert(isfinite(metrics_of(out).auc));
    sl_ranker_free(out);
    sl_ranker_free(constant);
    sl_ranker_free(strange);
    sl_ranker_free(base);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * The search
 * ------------------------------------------------------------------------------------------------------------- */

static size_t trials;

static void note_trial(void *ctx, const sl_trial *trial) {
    (void)ctx;
    trials++;
    ck_assert_ptr_null(trial->calibrations);
    ck_assert_uint_eq(trial->layers, 3);
    ck_assert_int_eq(trial->precisions[0], SL_PRECISION_F32);
    ck_assert_int_eq(trial->precisions[1], SL_PRECISION_INT8);
}

/* The model trains on in INT8. Its scores are compared with the original's. */
START_TEST(a_model_is_quantised_by_training) {
    static const char *const keep[] = {"dense.0"};
    sl_ranker *base, *out;
    sl_train_params plain = planted_one_thread(), training = planted_one_thread();
    sl_quantize_params how;
    sl_precision_search_params params;
    sl_precision_search_report report = {.struct_size = sizeof report};
    train(DEEP, TRAIN, &plain, &base);
    sl_quantize_params_init(&how);
    how.keep = keep;
    how.keep_count = 1;
    how.tables = SL_TABLE_I8;
    sl_precision_search_params_init(&params);
    params.quantize = &how;
    params.max_drop = 0.01;
    params.threads = 1;
    params.training = &training;
    params.trial = note_trial;
    training.rate_scale = 0.02;
    training.epochs = 1;
    training.teacher = base;
    trials = 0;
    ck_ok(sl_ranker_search_precision(base, &rows.source, &held_out.source, &params, &out, &report));
    ck_assert_uint_eq(trials, 1);
    ck_assert_uint_eq(report.rows, 2000);
    ck_assert_int_eq(report.within, 1);
    ck_assert_double_eq_tol(report.base_value, metrics_of(base).auc, 1e-9);
    ck_assert_double_eq_tol(report.value, metrics_of(out).auc, 1e-9);
    ck_assert_double_eq_tol(report.drop, report.base_value - report.value, 1e-12);
    ck_assert(report.drop_error > 0 && report.drop_error < 0.01);
    ck_assert_double_lt(report.cost, 1);
    sl_embedding_info table = {.struct_size = sizeof table};
    ck_ok(sl_ranker_get_embedding(out, 0, &table));
    ck_assert_int_eq(table.type, SL_TABLE_I8);
    sl_ranker_free(out);
    /* A bound that the result misses. */
    params.max_drop = 0;
    params.trial = NULL;
    training.rate_scale = 10;
    training.teacher = NULL;
    ck_ok(sl_ranker_search_precision(base, &rows.source, &held_out.source, &params, &out, &report));
    ck_assert_int_eq(report.within, report.drop <= 0);
    sl_ranker_free(out);
    training.init = base;
    ck_assert_int_eq(sl_ranker_search_precision(base, &rows.source, NULL, &params, &out, NULL), SL_EINVAL);
    ck_assert_ptr_nonnull(strstr(sl_last_error(), "leave init at NULL"));
    ck_assert_ptr_null(out);
    sl_ranker_free(base);
}
END_TEST

/* Every allocation fails in turn; nothing is lost. */
START_TEST(memory_may_fail_anywhere) {
    char spec[PLANTED_SPEC];
    planted_spec(spec, CLICK, WIDE, "\"hidden\": [8]", "\"epochs\": 1, \"batch\": 32", "");
    planted_check_memory(spec, in_int8(SL_TRAIN_RANGES_LEARNED));
}
END_TEST

int main(void) {
    TCase *all = tcase_create("qat");
    tcase_add_checked_fixture(all, set_up, tear_down);
    tcase_add_loop_test(all, forward_is_the_folded_layers, 0, SHAPES * KINDS);
    tcase_add_loop_test(all, gradients_go_straight_through, 0, SHAPES * KINDS);
    tcase_add_loop_test(all, extremes_are_seen_without_dropout, 0, 2);
    tcase_add_test(all, nan_and_infinity_are_not_hidden);
    tcase_add_test(all, loops_are_the_same_on_every_tier);
    tcase_add_loop_test(all, it_learns_as_well_and_is_judged_folded, 0, 6);
    tcase_add_loop_test(all, the_best_epoch_has_its_own_ranges, 0, 2);
    tcase_add_test(all, ranges_begin_where_calibration_puts_them);
    tcase_add_test(all, learned_ranges_move);
    tcase_add_loop_test(all, learned_ranges_do_not_decay, 0, 2);
    tcase_add_loop_test(all, observed_scales_are_of_the_largest_weights, 0, 3);
    tcase_add_test(all, kept_layers_stay_floats);
    tcase_add_loop_test(all, interrupted_it_goes_on_to_the_same_bytes, 0, 8);
    tcase_add_test(all, checkpoints_of_another_kind_are_refused);
    tcase_add_test(all, ranges_of_checkpoints_are_checked);
    tcase_add_test(all, what_cannot_be_is_refused);
    tcase_add_loop_test(all, ranges_of_nothing_are_refused, 0, 2);
    tcase_add_test(all, a_model_is_quantised_by_training);
    tcase_add_test(all, memory_may_fail_anywhere);
    return check_main("qat", &all, 1);
}
