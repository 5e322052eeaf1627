/* Quantised models: calibrated layers, layers of other tools, refusals, and files. */
#include "base/random.h"
#include "ranker/quantise/evaluator.h"
#include "ranker/quantise/quantise.h"
#include "tests/support/check_main.h"
#include "tests/support/faults.h"
#include "tests/support/indexes.h"
#include "tests/support/planted_model.h"
#include "tests/support/scratch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------------------------------------------------------
 * Quantising
 * ------------------------------------------------------------------------------------------------------------- */

static const struct {
    sl_precision precision;
    sl_calibration calibration;
    int symmetric;
} kinds[] = {
    {SL_PRECISION_INT8, SL_CALIBRATION_MINMAX, 0},
    {SL_PRECISION_INT8, SL_CALIBRATION_QUANTILE, 0},
    {SL_PRECISION_INT8, SL_CALIBRATION_MSE, 0},
    {SL_PRECISION_INT8, SL_CALIBRATION_ENTROPY, 0},
    {SL_PRECISION_INT8, SL_CALIBRATION_MINMAX, 1},
    {SL_PRECISION_INT8, SL_CALIBRATION_QUANTILE, 1},
    {SL_PRECISION_INT8, SL_CALIBRATION_MSE, 1},
    {SL_PRECISION_INT8_DYNAMIC, SL_CALIBRATION_MINMAX, 0},
    {SL_PRECISION_INT8_DYNAMIC, SL_CALIBRATION_MINMAX, 1},
    {SL_PRECISION_BF16, SL_CALIBRATION_MINMAX, 0},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

START_TEST(scores_stay_near) {
    static float exact[ROWS], coded[ROWS];
    sl_quantize_params params;
    sl_ranker *made;
    sl_quantize_params_init(&params);
    params.precision = kinds[_i].precision;
    params.calibration = kinds[_i].calibration;
    params.symmetric = kinds[_i].symmetric;
    ck_ok(sl_ranker_quantize(model, &rows.source, &params, &made));
    planted_predict(&rows, model, exact);
    planted_predict(&rows, made, coded);
    double worst = 0, moved = 0;
    for (size_t r = 0; r < ROWS; r++) {
        worst = fmax(worst, fabs((double)exact[r] - (double)coded[r]));
        moved += exact[r] != coded[r];
    }
    /* Entropy clips more than an untrained net's scores can take. */
    ck_assert_double_lt(worst, params.calibration == SL_CALIBRATION_ENTROPY ? 0.3 : 0.03);
    ck_assert_double_gt(moved, ROWS / 2);
    for (size_t l = 0; l < LAYERS; l++) {
        sl_layer_info layer = {.struct_size = sizeof layer};
        ck_ok(sl_ranker_get_layer(made, l, &layer));
        ck_assert_int_eq(layer.precision, params.precision);
        ck_assert((layer.weight_scales == NULL) == (params.precision == SL_PRECISION_BF16));
        if (params.precision == SL_PRECISION_INT8) {
            ck_assert(layer.low <= 0 && layer.high > 0 && layer.scale > 0);
            ck_assert_int_eq(layer.zero == 0, l && !params.symmetric);
        }
    }
    sl_ranker_free(made);
}
END_TEST

START_TEST(layers_are_kept) {
    sl_quantize_params params;
    sl_ranker *made;
    sl_quantize_params_init(&params);
    params.keep = (const char *const[]){"dense.0", "dense.3"};
    params.keep_count = 2;
    ck_ok(sl_ranker_quantize(model, &rows.source, &params, &made));
    for (size_t l = 0; l < LAYERS; l++) {
        sl_layer_info layer = {.struct_size = sizeof layer};
        ck_ok(sl_ranker_get_layer(made, l, &layer));
        ck_assert_int_eq(layer.precision, l % 3 ? SL_PRECISION_INT8 : SL_PRECISION_F32);
    }
    sl_ranker_free(made);
}
END_TEST

static float same(float value, size_t i, size_t columns) {
    (void)i;
    (void)columns;
    return value;
}

/* A layer that gets other weights or biases becomes floats. The others keep their codes. */
START_TEST(given_layers_become_floats) {
    static const char *const names[] = {"bias", "dense.0.weight", "dense.3.bias"};
    static const size_t layers[] = {SIZE_MAX, 0, 3};
    static float before[ROWS], after[ROWS];
    sl_ranker *coded, *made;
    sl_quantize_params params;
    sl_quantize_params_init(&params);
    params.layers =
        (const sl_precision[]){SL_PRECISION_INT8, SL_PRECISION_F32, SL_PRECISION_INT8_DYNAMIC, SL_PRECISION_INT8};
    ck_ok(sl_ranker_quantize(model, &rows.source, &params, &coded));
    for (size_t i = 0; i < 3; i++) {
        made = planted_changed(coded, names[i], same);
        for (size_t l = 0; l < LAYERS; l++) {
            sl_layer_info layer = {.struct_size = sizeof layer};
            ck_ok(sl_ranker_get_layer(made, l, &layer));
            ck_assert_int_eq(layer.precision, l == layers[i] ? SL_PRECISION_F32 : params.layers[l]);
            if (layer.weight_scales)
                ck_assert_mem_eq(layer.weight_scales, coded->coded.layers[l].scales, layer.out * sizeof(float));
        }
        planted_predict(&rows, coded, before);
        planted_predict(&rows, made, after);
        for (size_t r = 0; r < ROWS; r++)
            ck_assert_float_le(fabsf(before[r] - after[r]), i ? 0.05f : 0);
        sl_ranker_free(made);
    }
    sl_ranker_free(coded);
}
END_TEST

static double mean_value(const sl_ranker *ranker) {
    static float scores[ROWS];
    double sum = 0;
    planted_predict(&rows, ranker, scores);
    for (size_t r = 0; r < ROWS; r++)
        sum += (double)scores[r];
    return sum / ROWS;
}

static float coarse(float value, size_t i, size_t columns) {
    return i / columns == 3 ? 8 * value : value;
}

/* An input with a large weight makes the other codes coarse, and their mean error large. */
START_TEST(biases_make_up_for_the_mean) {
    sl_ranker *squared =
        planted_ranker(&rows, "\"column\": \"value\", \"loss\": \"squared\"", NULL, "\"hidden\": [24, 16, 8]");
    sl_ranker *rough = planted_changed(squared, "dense.3.weight", coarse), *with, *without;
    sl_quantize_params params;
    sl_quantize_params_init(&params);
    params.calibration = SL_CALIBRATION_MINMAX;
    params.keep = (const char *const[]){"dense.0", "dense.1", "dense.2"};
    params.keep_count = 3;
    params.rows = ROWS;
    ck_ok(sl_ranker_quantize(rough, &rows.source, &params, &with));
    params.bias_correction = 0;
    ck_ok(sl_ranker_quantize(rough, &rows.source, &params, &without));
    double exact = mean_value(rough);
    ck_assert_double_lt(fabs(mean_value(with) - exact), 0.1 * fabs(mean_value(without) - exact));
    sl_ranker_free(squared);
    sl_ranker_free(rough);
    sl_ranker_free(with);
    sl_ranker_free(without);
}
END_TEST

/* With one calibration row, the mean error is that row's, and the corrected biases remove it. */
START_TEST(biases_make_up_for_the_only_row) {
    sl_ranker *squared =
        planted_ranker(&rows, "\"column\": \"value\", \"loss\": \"squared\"", NULL, "\"hidden\": [24, 16, 8]");
    sl_ranker *rough = planted_changed(squared, "dense.3.weight", coarse), *with, *without;
    sl_quantize_params params;
    planted only;
    float exact, corrected, off;
    planted_make(&only, 1, 1);
    sl_quantize_params_init(&params);
    params.calibration = SL_CALIBRATION_MINMAX;
    params.keep = (const char *const[]){"dense.0", "dense.1", "dense.2"};
    params.keep_count = 3;
    ck_ok(sl_ranker_quantize(rough, &only.source, &params, &with));
    params.bias_correction = 0;
    ck_ok(sl_ranker_quantize(rough, &only.source, &params, &without));
    planted_predict(&only, rough, &exact);
    planted_predict(&only, with, &corrected);
    planted_predict(&only, without, &off);
    ck_assert_float_gt(fabsf(off - exact), 1e-4f);
    ck_assert_float_eq_tol(corrected, exact, 1e-6f);
    sl_ranker_free(squared);
    sl_ranker_free(rough);
    sl_ranker_free(with);
    sl_ranker_free(without);
    planted_free(&only);
}
END_TEST

/* A large weight, and others that differ in codes only if the large one is clipped by a hundredth. */
static float worth_a_clip(float value, size_t i, size_t columns) {
    (void)value;
    return i / columns == 0 ? -1 : 50 * 0.99f / 127;
}

/* Codes are symmetric: a clipped weight below 0 gets -127. */
START_TEST(codes_of_weights_are_symmetric) {
    sl_ranker *base = planted_changed(model, "dense.1.weight", worth_a_clip), *made;
    sl_quantize_params params;
    sl_quantize_params_init(&params);
    ck_assert_int_eq(params.calibration, SL_CALIBRATION_MSE);
    ck_ok(sl_ranker_quantize(base, &rows.source, &params, &made));
    for (size_t l = 0; l < LAYERS; l++)
        for (size_t i = 0; i < made->shape.width[l] * made->shape.width[l + 1]; i++)
            ck_assert_int_ge(made->coded.layers[l].codes[i], -127);
    for (size_t o = 0; o < 16; o++) {
        ck_assert_float_eq_tol(made->coded.layers[1].scales[o], 0.99f / 127, 1e-6f);
        ck_assert_int_eq(made->coded.layers[1].codes[o], -127);
    }
    sl_ranker_free(made);
    sl_ranker_free(base);
}
END_TEST

/* Draws the requested number of rows, equal for equal seeds and different for others, in the source's order. */
START_TEST(rows_are_drawn) {
    sl_allocator allocator = sl_allocator_of(NULL);
    for (size_t n = 1; n <= ROWS + 1; n = n == 1 ? 7 : n == 7 ? 500 : ROWS + (n == ROWS)) {
        sl_rows_buffer drawn[3];
        for (size_t i = 0; i < 3; i++) {
            const sl_draw draw = {.rows = n, .seed = i / 2};
            drawn[i] = (sl_rows_buffer){.allocator = allocator};
            ck_ok(sl_draw_rows(model->features, &rows.source, &draw, &drawn[i]));
            ck_assert_uint_eq(drawn[i].rows, n < ROWS ? n : ROWS);
        }
        size_t width = model->features->dense_width * drawn[0].rows * sizeof(float);
        ck_assert_mem_eq(drawn[0].dense, drawn[1].dense, width);
        ck_assert(n >= ROWS || memcmp(drawn[0].dense, drawn[2].dense, width) != 0);
        for (size_t i = 0; i < 3; i++)
            sl_rows_buffer_free(&drawn[i]);
        if (n > ROWS) break;
    }
}
END_TEST

static float huge(float value, size_t i, size_t columns) {
    (void)i;
    (void)columns;
    return value < 0 ? -3e38f : 3e38f;
}

/* Rounds to infinity in bf16. */
static float beyond(float value, size_t i, size_t columns) {
    (void)columns;
    return i == 5 ? 3.4e38f : value;
}

static float raised(float value, size_t i, size_t columns) {
    (void)i;
    (void)columns;
    return 1e25f * value;
}

static float below(float value, size_t i, size_t columns) {
    (void)value;
    (void)i;
    (void)columns;
    return -1e6f;
}

START_TEST(bad_calls_are_refused) {
    sl_quantize_params params;
    sl_ranker *made, *other;
    planted none;
    sl_quantize_params_init(&params);
    ck_fails(sl_ranker_quantize(NULL, &rows.source, NULL, &made), SL_EINVAL, "NULL");
    ck_fails(sl_ranker_quantize(model, NULL, NULL, &made), SL_EINVAL, "rows is NULL");
    params.keep = (const char *const[]){"dense.4"};
    params.keep_count = 1;
    ck_fails(sl_ranker_quantize(model, &rows.source, &params, &made), SL_ENOTFOUND, "dense.0 to dense.3");
    params.keep = (const char *const[]){"dense.3", "dense.0", "dense.1", "dense.2"};
    params.keep_count = 4;
    ck_fails(sl_ranker_quantize(model, &rows.source, &params, &made), SL_EINVAL, "every layer stays F32");
    params.keep_count = 0;
    params.rows = 0;
    ck_fails(sl_ranker_quantize(model, &rows.source, &params, &made), SL_EINVAL, "rows is 0");
    params.rows = 10;
    params.quantile = 1;
    ck_fails(sl_ranker_quantize(model, &rows.source, &params, &made), SL_EINVAL, "quantile is 1");
    planted_make(&none, 0, 1);
    ck_fails(sl_ranker_quantize(model, &none.source, NULL, &made), SL_EINVAL, "no rows");
    planted_free(&none);
    ck_ok(sl_ranker_quantize(model, &rows.source, NULL, &other));
    ck_fails(sl_ranker_quantize(other, &rows.source, NULL, &made), SL_EINVAL, "quantised already");
    sl_ranker_free(other);
    other = planted_ranker(&rows, CLICK, "", NULL);
    ck_fails(sl_ranker_quantize(other, &rows.source, NULL, &made), SL_EINVAL, "no deep part");
    sl_ranker_free(other);
    other = planted_changed(model, "dense.0.weight", huge);
    ck_fails(sl_ranker_quantize(other, &rows.source, NULL, &made), SL_EVALUE, "the weights before it");
    sl_ranker_free(other);
    /* Inputs and weights of the last layer fit a float, but their products do not. */
    sl_ranker *higher = planted_changed(model, "dense.2.weight", raised);
    other = planted_changed(higher, "dense.3.weight", raised);
    ck_fails(sl_ranker_quantize(other, &rows.source, NULL, &made), SL_EVALUE, "dense.3 in INT8");
    sl_ranker_free(higher);
    sl_ranker_free(other);
    other = planted_changed(model, "dense.0.bias", below);
    ck_fails(sl_ranker_quantize(other, &rows.source, NULL, &made), SL_EINVAL, "layer dense.1 are 0");
    ck_assert_ptr_null(made);
    sl_ranker_free(other);
}
END_TEST

/* Weights are the base's, rounded. The rows have no effect, and the layers take half the bytes. */
START_TEST(bf16_needs_no_rows) {
    sl_quantize_params params;
    sl_ranker *made, *again, *other;
    sl_quantize_params_init(&params);
    params.precision = SL_PRECISION_BF16;
    ck_ok(sl_ranker_quantize(model, NULL, &params, &made));
    ck_ok(sl_ranker_quantize(model, &rows.source, &params, &again));
    ck_assert_uint_eq(made->coded.size, again->coded.size);
    ck_assert_mem_eq(made->coded.block, again->coded.block, made->coded.size);
    for (size_t t = 0;; t++) {
        sl_tensor base, tensor;
        if (sl_ranker_get_tensor(model, t, &base) != SL_OK) break;
        ck_ok(sl_ranker_get_tensor(made, t, &tensor));
        int rounds = strncmp(base.name, "dense.", 6) == 0 && strstr(base.name, "weight");
        for (size_t i = 0; i < base.rows * base.columns; i++) {
            float off = fabsf(base.data[i] - tensor.data[i]);
            ck_assert(rounds ? off <= fabsf(base.data[i]) / 256 : off == 0);
        }
    }
    sl_layer_info layer = {.struct_size = sizeof layer};
    ck_ok(sl_ranker_get_layer(made, 1, &layer));
    ck_assert_uint_eq(layer.bytes, 24 * 16 * 2 + 16 * 4);
    sl_ranker_free(made);
    sl_ranker_free(again);
    other = planted_changed(model, "dense.1.weight", beyond);
    ck_fails(sl_ranker_quantize(other, NULL, &params, &made), SL_EVALUE, "dense.1 are too large for bf16");
    sl_ranker_free(other);
}
END_TEST

START_TEST(dynamic_needs_no_rows) {
    sl_quantize_params params;
    sl_ranker *made;
    sl_quantize_params_init(&params);
    params.precision = SL_PRECISION_INT8_DYNAMIC;
    ck_fails(sl_ranker_quantize(model, NULL, &params, &made), SL_EINVAL, "rows is NULL");
    params.bias_correction = 0;
    ck_ok(sl_ranker_quantize(model, NULL, &params, &made));
    sl_ranker_free(made);
}
END_TEST

START_TEST(memory_may_run_out) {
    sl_quantize_params params;
    sl_quantize_params_init(&params);
    params.rows = 50;
    for (size_t at = 1;; at += at < 200 ? 1 : 13) {
        fault_allocator faults;
        sl_ranker *made;
        fault_allocator_init(&faults, at);
        params.allocator = &faults.allocator;
        sl_status status = sl_ranker_quantize(model, &rows.source, &params, &made);
        sl_ranker_free(made);
        ck_assert_uint_eq(faults.live_blocks, 0);
        if (status == SL_OK) break;
        ck_assert_int_eq(status, SL_ENOMEM);
    }
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Layers of other tools
 * ------------------------------------------------------------------------------------------------------------- */

/* Copies a quantised model's layers for the model of floats that it was made from. */
static void given_of(const sl_ranker *made, sl_quantized_layer given[LAYERS]) {
    for (size_t l = 0; l < LAYERS; l++) {
        const sl_layer_codes *codes = &made->coded.layers[l];
        given[l] = (sl_quantized_layer){(sl_precision)codes->type, codes->input.scale, codes->input.zero, codes->codes,
                                        codes->scales};
    }
}

static float numbered(float value, size_t i, size_t columns) {
    (void)columns;
    return value + 0.01f * (float)i;
}

START_TEST(given_layers_are_kept) {
    const sl_precision layers[] = {SL_PRECISION_INT8, SL_PRECISION_BF16, SL_PRECISION_F32, SL_PRECISION_INT8_DYNAMIC};
    sl_quantized_layer given[LAYERS];
    sl_quantize_params params;
    sl_ranker *base = planted_changed(model, "dense.0.bias", numbered), *made, *again;
    sl_quantize_params_init(&params);
    params.layers = layers;
    params.bias_correction = 0;
    ck_ok(sl_ranker_quantize(base, &rows.source, &params, &made));
    given_of(made, given);
    ck_ok(sl_ranker_with_layers(base, given, LAYERS, &again));
    ck_assert_uint_eq(again->coded.size, made->coded.size);
    ck_assert_mem_eq(again->coded.block, made->coded.block, made->coded.size);
    sl_ranker_free(again);
    ck_fails(sl_ranker_with_layers(made, given, LAYERS, &again), SL_EINVAL, "quantised already");
    ck_fails(sl_ranker_with_layers(base, given, LAYERS - 1, &again), SL_EINVAL, "3 layers for a model of 4");
    ck_fails(sl_ranker_with_layers(NULL, given, LAYERS, &again), SL_EINVAL, "NULL");
    ck_fails(sl_ranker_with_layers(base, NULL, LAYERS, &again), SL_EINVAL, "NULL");
    ck_assert_ptr_null(again);
    sl_ranker_free(made);
    sl_ranker_free(base);
}
END_TEST

START_TEST(given_layers_are_not_trusted) {
    static const float bad[] = {0, -1, NAN, INFINITY, 3e38f};
    static float scales[24];
    sl_quantized_layer given[LAYERS];
    sl_ranker *made, *again;
    ck_ok(sl_ranker_quantize(model, &rows.source, NULL, &made));
    for (size_t i = 0; i < 14; i++) {
        given_of(made, given);
        memcpy(scales, given[0].weight_scales, sizeof scales);
        given[0].weight_scales = scales;
        if (i < 4) given[1].scale = bad[i];
        if (i >= 4 && i < 9) scales[23] = bad[i - 4];
        if (i == 9) given[2].zero = -1;
        if (i == 10) given[2].zero = 256;
        if (i == 11) given[0].codes = NULL;
        if (i == 12) given[0].weight_scales = NULL;
        if (i == 13) given[3].precision = (sl_precision)4;
        ck_assert_msg(sl_ranker_with_layers(model, given, LAYERS, &again) == SL_EINVAL, "change %zu", i);
        ck_assert_ptr_null(again);
    }
    sl_ranker_free(made);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Files
 * ------------------------------------------------------------------------------------------------------------- */

/* Returns whether a copy of the block opens with a part of it changed. */
static int is_read(const sl_ranker *made, size_t at, const void *change, size_t size) {
    sl_allocator allocator = sl_allocator_of(NULL);
    void *block;
    sl_coded_layers read;
    ck_ok(sl_mem_alloc(&allocator, made->coded.size, &block));
    memcpy(block, made->coded.block, made->coded.size);
    memcpy((uint8_t *)block + at, change, size);
    sl_status status = sl_coded_layers_read(&made->shape, block, made->coded.size, &allocator, &read);
    sl_coded_layers_free(&read, &allocator);
    if (status != SL_OK) ck_assert_int_eq(status, SL_ECORRUPT);
    return status == SL_OK;
}

/* Every number of a block that no writer would write. */
START_TEST(blocks_are_not_trusted) {
    sl_allocator allocator = sl_allocator_of(NULL);
    const float no_range[] = {0, -1, NAN, INFINITY, -INFINITY, 1e-39f, 3e38f, 1e30f};
    const float no_scale[] = {0, -1, NAN, INFINITY, 3e38f}, no_bias[] = {NAN, INFINITY, -INFINITY};
    const int32_t no_zero[] = {-1, 256};
    const uint32_t types[] = {SL_LAYER_F32, SL_LAYER_INT8_DYNAMIC, 77}, one = 1;
    const float least = 1e-37f, most = 1e8f;
    sl_ranker *made;
    sl_coded_layers read;
    void *block;
    ck_ok(sl_ranker_quantize(model, &rows.source, NULL, &made));
    const sl_coded_layer parts = sl_coded_layers_at(&made->coded, &made->shape, 1);
    const size_t record = sizeof(sl_coded_layer_record), range = record + offsetof(sl_coded_layer_record, scale);
    const size_t scales = (size_t)((uint8_t *)parts.scales - made->coded.block);
    const size_t biases = (size_t)((uint8_t *)parts.biases - made->coded.block);
    ck_assert(is_read(made, range, &least, sizeof least) && is_read(made, range, &most, sizeof most));
    /* 1e30 is a valid range, but with this scale of weights it overflows floats. */
    memcpy(parts.scales, &most, sizeof most);
    for (size_t i = 0; i < sizeof no_range / sizeof *no_range; i++)
        ck_assert_msg(!is_read(made, range, &no_range[i], sizeof *no_range), "range %zu", i);
    for (size_t i = 0; i < sizeof no_scale / sizeof *no_scale; i++)
        ck_assert_msg(!is_read(made, scales + 8, &no_scale[i], sizeof *no_scale), "scale %zu", i);
    for (size_t i = 0; i < sizeof no_bias / sizeof *no_bias; i++)
        ck_assert_msg(!is_read(made, biases + 4, &no_bias[i], sizeof *no_bias), "bias %zu", i);
    for (size_t i = 0; i < sizeof no_zero / sizeof *no_zero; i++)
        ck_assert_msg(!is_read(made, record + offsetof(sl_coded_layer_record, zero), &no_zero[i], 4), "zero %zu", i);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        ck_assert_msg(!is_read(made, record, &types[i], sizeof *types), "type %zu", i);
    ck_assert(!is_read(made, record + offsetof(sl_coded_layer_record, reserved), &one, sizeof one));
    ck_ok(sl_mem_alloc(&allocator, 40, &block));
    ck_assert_int_eq(sl_coded_layers_read(&made->shape, block, 40, &allocator, &read), SL_ECORRUPT);
    sl_ranker_free(made);
}
END_TEST

/* Checks cover weights and biases of float layers too. */
START_TEST(kept_layers_are_not_trusted) {
    const float none[] = {NAN, INFINITY, -INFINITY}, some = 7;
    sl_quantize_params params;
    sl_ranker *made;
    sl_quantize_params_init(&params);
    params.keep = (const char *const[]){"dense.1"};
    params.keep_count = 1;
    ck_ok(sl_ranker_quantize(model, &rows.source, &params, &made));
    const sl_coded_layer parts = sl_coded_layers_at(&made->coded, &made->shape, 1);
    const size_t weights = (size_t)((uint8_t *)parts.weights - made->coded.block);
    const size_t biases = (size_t)((uint8_t *)parts.biases - made->coded.block), last = (24 * 16 - 1) * sizeof(float);
    ck_assert(is_read(made, weights, &some, sizeof some));
    for (size_t i = 0; i < 3; i++) {
        ck_assert(!is_read(made, weights, &none[i], sizeof none[i]));
        ck_assert(!is_read(made, weights + last, &none[i], sizeof none[i]));
        ck_assert(!is_read(made, biases, &none[i], sizeof none[i]));
    }
    sl_ranker_free(made);
}
END_TEST

START_TEST(bf16_blocks_are_not_trusted) {
    sl_allocator allocator = sl_allocator_of(NULL);
    sl_quantize_params params;
    sl_ranker *made;
    sl_quantize_params_init(&params);
    params.precision = SL_PRECISION_BF16;
    ck_ok(sl_ranker_quantize(model, NULL, &params, &made));
    const sl_coded_layers *sound = &made->coded;
    const sl_coded_layer parts = sl_coded_layers_at(sound, &made->shape, 1);
    for (size_t i = 0; i < 7; i++) {
        sl_coded_layers read;
        size_t size = sound->size;
        sl_status status = SL_OK;
        uint8_t *block = sl_mem_array(&allocator, size, 1, &status);
        ck_ok(status);
        memcpy(block, sound->block, size);
        sl_coded_layer_record *record = (sl_coded_layer_record *)(void *)block + 1;
        uint16_t *weights = (uint16_t *)(void *)(block + ((uint8_t *)parts.bf16 - sound->block));
        if (i == 1) weights[3] = 0x7f80;
        if (i == 2) weights[24 * 16 - 1] = 0xffc0;
        if (i == 3) memcpy(block + ((uint8_t *)parts.biases - sound->block), &(const float){NAN}, sizeof(float));
        if (i == 4) record->scale = 1;
        if (i == 5) record->type = SL_LAYER_F32;
        if (i == 6) size -= 64;
        ck_assert_msg(sl_coded_layers_read(&made->shape, block, size, &allocator, &read) == (i ? SL_ECORRUPT : SL_OK),
                      "change %zu", i);
        sl_coded_layers_free(&read, &allocator);
    }
    sl_ranker_free(made);
}
END_TEST

/* As many inputs as 32-bit sums hold, and one more. */
START_TEST(layers_are_not_too_wide) {
    sl_allocator allocator = sl_allocator_of(NULL);
    for (size_t more = 0; more < 2; more++) {
        const sl_net_shape shape = {.layers = 1, .width = {SL_INT8_MAX_INPUTS + more, 1}};
        const sl_layer_type type = SL_LAYER_INT8_DYNAMIC;
        sl_coded_layers made, read;
        ck_ok(sl_coded_layers_create(&shape, &type, NULL, &allocator, &made));
        *sl_coded_layers_at(&made, &shape, 0).scales = 1;
        sl_status status = sl_coded_layers_read(&shape, made.block, made.size, &allocator, &read);
        if (more)
            ck_fails(status, SL_ECORRUPT, "more inputs");
        else
            ck_ok(status);
        sl_coded_layers_free(&read, &allocator);
    }
}
END_TEST

/* The rows are finite, so the message blames the weights. */
START_TEST(weights_that_overflow_are_blamed) {
    sl_ranker *squared =
        planted_ranker(&rows, "\"column\": \"value\", \"loss\": \"squared\"", NULL, "\"hidden\": [24, 16, 8]");
    sl_ranker *other = planted_changed(squared, "dense.0.weight", huge);
    sl_metrics metrics = {.struct_size = sizeof metrics};
    ck_fails(sl_ranker_evaluate(other, &rows.source, NULL, &metrics), SL_EVALUE, "is not finite: the model's weights");
    sl_ranker_free(other);
    sl_ranker_free(squared);
}
END_TEST

int main(void) {
    TCase *quantising = tcase_create("quantising");
    tcase_add_checked_fixture(quantising, set_up, tear_down);
    tcase_add_loop_test(quantising, scores_stay_near, 0, KINDS);
    tcase_add_test(quantising, layers_are_kept);
    tcase_add_test(quantising, weights_that_overflow_are_blamed);
    tcase_add_test(quantising, given_layers_become_floats);
    tcase_add_test(quantising, biases_make_up_for_the_mean);
    tcase_add_test(quantising, biases_make_up_for_the_only_row);
    tcase_add_test(quantising, codes_of_weights_are_symmetric);
    tcase_add_test(quantising, rows_are_drawn);
    tcase_add_test(quantising, bad_calls_are_refused);
    tcase_add_test(quantising, dynamic_needs_no_rows);
    tcase_add_test(quantising, bf16_needs_no_rows);
    tcase_add_test(quantising, memory_may_run_out);
    tcase_add_test(quantising, given_layers_are_kept);
    tcase_add_test(quantising, given_layers_are_not_trusted);
    tcase_add_test(quantising, blocks_are_not_trusted);
    tcase_add_test(quantising, kept_layers_are_not_trusted);
    tcase_add_test(quantising, bf16_blocks_are_not_trusted);
    tcase_add_test(quantising, layers_are_not_too_wide);
    return check_main("quantise", &quantising, 1);
}
