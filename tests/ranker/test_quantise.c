/* Quantised models: what calibration makes of layers, what is refused, and the search for the fastest precisions within
 * an accuracy bound. */
#include "base/random.h"
#include "ranker/judge.h"
#include "ranker/quantise.h"
#include "tests/support/check_main.h"
#include "tests/support/faults.h"
#include "tests/support/indexes.h"
#include "tests/support/planted.h"
#include "tests/support/scratch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CLICK "\"column\": \"click\""
enum { ROWS = 3000, LAYERS = 4 };

static planted rows;
static sl_ranker *model;

static sl_ranker *make(const char *label, const char *wide, const char *deep) {
    char spec[PLANTED_SPEC];
    sl_ranker *made;
    planted_spec(spec, label, wide, deep, "\"epochs\": 1", "");
    ck_assert_msg(sl_ranker_create(spec, &rows.source, NULL, &made) == SL_OK, "%s", sl_last_error());
    return made;
}

static void set_up(void) {
    planted_make(&rows, ROWS, 1);
    model = make(CLICK, "", "\"hidden\": [24, 16, 8]");
}

static void tear_down(void) {
    sl_ranker_free(model);
    planted_free(&rows);
}

static void predict(const sl_ranker *ranker, float *scores) {
    sl_predictor *predictor;
    ck_ok(sl_predictor_create(ranker, NULL, &predictor));
    ck_ok(sl_predictor_predict(predictor, &rows.table, scores));
    sl_predictor_free(predictor);
}

/* A copy of the model with a tensor's values put through a function of their number. */
static sl_ranker *changed(const sl_ranker *base, const char *name,
                          float (*change)(float value, size_t i, size_t columns)) {
    sl_ranker *made = NULL;
    sl_tensor tensor;
    for (size_t t = 0; sl_ranker_get_tensor(base, t, &tensor) == SL_OK; t++) {
        if (strcmp(tensor.name, name) != 0) continue;
        size_t count = tensor.rows * tensor.columns;
        float *values = malloc(count * sizeof *values);
        for (size_t i = 0; i < count; i++)
            values[i] = change(tensor.data[i], i, tensor.columns);
        tensor.data = values;
        ck_ok(sl_ranker_with_tensors(base, &tensor, 1, &made));
        free(values);
        break;
    }
    ck_assert_ptr_nonnull(made);
    return made;
}

/* ---------------------------------------------------------------------------------------------------------------
 * Quantising
 * ------------------------------------------------------------------------------------------------------------- */

START_TEST(scores_stay_near) {
    static float exact[ROWS], coded[ROWS];
    sl_quantize_params params;
    sl_ranker *made;
    sl_quantize_params_init(&params);
    params.precision = _i < 4 ? SL_PRECISION_INT8 : _i < 6 ? SL_PRECISION_INT8_DYNAMIC : SL_PRECISION_BF16;
    params.calibration = (sl_calibration)(_i % 4);
    params.symmetric = _i == 5;
    ck_ok(sl_ranker_quantize(model, &rows.source, &params, &made));
    predict(model, exact);
    predict(made, coded);
    double worst = 0, moved = 0;
    for (size_t r = 0; r < ROWS; r++) {
        worst = fmax(worst, fabs((double)exact[r] - (double)coded[r]));
        moved += exact[r] != coded[r];
    }
    /* Entropy clips more than scores of an untrained net bear. */
    ck_assert_double_lt(worst, params.calibration == SL_CALIBRATION_ENTROPY ? 0.3 : 0.03);
    ck_assert_double_gt(moved, ROWS / 2);
    for (size_t l = 0; l < LAYERS; l++) {
        sl_layer_info layer = {.struct_size = sizeof layer};
        ck_ok(sl_ranker_get_layer(made, l, &layer));
        ck_assert_int_eq(layer.precision, params.precision);
        ck_assert((layer.weight_scales == NULL) == (params.precision == SL_PRECISION_BF16));
        if (params.precision == SL_PRECISION_INT8) {
            ck_assert(layer.low <= 0 && layer.high > 0 && layer.scale > 0);
            ck_assert(!l || layer.zero == 0);
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

/* A layer that is given other weights, or other biases, is one of floats; the others keep their codes. */
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
        made = changed(coded, names[i], same);
        for (size_t l = 0; l < LAYERS; l++) {
            sl_layer_info layer = {.struct_size = sizeof layer};
            ck_ok(sl_ranker_get_layer(made, l, &layer));
            ck_assert_int_eq(layer.precision, l == layers[i] ? SL_PRECISION_F32 : params.layers[l]);
            if (layer.weight_scales)
                ck_assert_mem_eq(layer.weight_scales, coded->coded.layers[l].scales, layer.out * sizeof(float));
        }
        predict(coded, before);
        predict(made, after);
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
    predict(ranker, scores);
    for (size_t r = 0; r < ROWS; r++)
        sum += (double)scores[r];
    return sum / ROWS;
}

static float coarse(float value, size_t i, size_t columns) {
    return i / columns == 3 ? 8 * value : value;
}

/* An input with a large weight makes the codes of the others coarse, and their mean error large. */
START_TEST(biases_make_up_for_the_mean) {
    sl_ranker *squared = make("\"column\": \"value\", \"loss\": \"squared\"", NULL, "\"hidden\": [24, 16, 8]");
    sl_ranker *rough = changed(squared, "dense.3.weight", coarse), *with, *without;
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

/* As many rows as were asked for, the same for a seed and others for another, in the source's order. */
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
    other = make(CLICK, "", NULL);
    ck_fails(sl_ranker_quantize(other, &rows.source, NULL, &made), SL_EINVAL, "no deep part");
    sl_ranker_free(other);
    other = changed(model, "dense.0.weight", huge);
    ck_fails(sl_ranker_quantize(other, &rows.source, NULL, &made), SL_EVALUE, "not finite");
    sl_ranker_free(other);
    /* Inputs and weights of the last layer are floats, and their products are not. */
    sl_ranker *higher = changed(model, "dense.2.weight", raised);
    other = changed(higher, "dense.3.weight", raised);
    ck_fails(sl_ranker_quantize(other, &rows.source, NULL, &made), SL_EVALUE, "dense.3 in INT8");
    sl_ranker_free(higher);
    sl_ranker_free(other);
    other = changed(model, "dense.0.bias", below);
    ck_fails(sl_ranker_quantize(other, &rows.source, NULL, &made), SL_EINVAL, "layer dense.1 are 0");
    ck_assert_ptr_null(made);
    sl_ranker_free(other);
}
END_TEST

/* Weights are the base's, rounded; nothing of the rows goes into the model, and half of the layers' bytes are left. */
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
    other = changed(model, "dense.1.weight", beyond);
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

/* Gives a quantised model's layers to the model of floats that it was made from. */
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
    sl_ranker *base = changed(model, "dense.0.bias", numbered), *made, *again;
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

/* Tells whether a copy of the block is read, with a part of it changed. */
static int is_read(const sl_ranker *made, size_t at, const void *change, size_t size) {
    sl_allocator allocator = sl_allocator_of(NULL);
    void *block;
    sl_coded read;
    ck_ok(sl_mem_alloc(&allocator, made->coded.size, &block));
    memcpy(block, made->coded.block, made->coded.size);
    memcpy((uint8_t *)block + at, change, size);
    sl_status status = sl_coded_read(&made->shape, block, made->coded.size, &allocator, &read);
    sl_coded_free(&read, &allocator);
    if (status != SL_OK) ck_assert_int_eq(status, SL_ECORRUPT);
    return status == SL_OK;
}

/* Every number of a block that a maker would not have written. */
START_TEST(blocks_are_not_trusted) {
    sl_allocator allocator = sl_allocator_of(NULL);
    const float no_range[] = {0, -1, NAN, INFINITY, -INFINITY, 1e-39f, 3e38f, 1e30f};
    const float no_scale[] = {0, -1, NAN, INFINITY, 3e38f}, no_bias[] = {NAN, INFINITY, -INFINITY};
    const int32_t no_zero[] = {-1, 256};
    const uint32_t types[] = {SL_LAYER_F32, SL_LAYER_INT8_DYNAMIC, 77}, one = 1;
    const float least = 1e-37f, most = 1e8f;
    sl_ranker *made;
    sl_coded read;
    void *block;
    ck_ok(sl_ranker_quantize(model, &rows.source, NULL, &made));
    const sl_coded_layer parts = sl_coded_layer_of(&made->coded, &made->shape, 1);
    const size_t record = sizeof(sl_coded_record), range = record + offsetof(sl_coded_record, scale);
    const size_t scales = (size_t)((uint8_t *)parts.scales - made->coded.block);
    const size_t biases = (size_t)((uint8_t *)parts.biases - made->coded.block);
    ck_assert(is_read(made, range, &least, sizeof least) && is_read(made, range, &most, sizeof most));
    /* 1e30 is a range by itself: here it meets a scale of weights with which it goes beyond floats. */
    memcpy(parts.scales, &most, sizeof most);
    for (size_t i = 0; i < sizeof no_range / sizeof *no_range; i++)
        ck_assert_msg(!is_read(made, range, &no_range[i], sizeof *no_range), "range %zu", i);
    for (size_t i = 0; i < sizeof no_scale / sizeof *no_scale; i++)
        ck_assert_msg(!is_read(made, scales + 8, &no_scale[i], sizeof *no_scale), "scale %zu", i);
    for (size_t i = 0; i < sizeof no_bias / sizeof *no_bias; i++)
        ck_assert_msg(!is_read(made, biases + 4, &no_bias[i], sizeof *no_bias), "bias %zu", i);
    for (size_t i = 0; i < sizeof no_zero / sizeof *no_zero; i++)
        ck_assert_msg(!is_read(made, record + offsetof(sl_coded_record, zero), &no_zero[i], 4), "zero %zu", i);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        ck_assert_msg(!is_read(made, record, &types[i], sizeof *types), "type %zu", i);
    ck_assert(!is_read(made, record + offsetof(sl_coded_record, reserved), &one, sizeof one));
    ck_ok(sl_mem_alloc(&allocator, 40, &block));
    ck_assert_int_eq(sl_coded_read(&made->shape, block, 40, &allocator, &read), SL_ECORRUPT);
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
    const sl_coded *sound = &made->coded;
    const sl_coded_layer parts = sl_coded_layer_of(sound, &made->shape, 1);
    for (size_t i = 0; i < 7; i++) {
        uint8_t *block;
        sl_coded read;
        size_t size = sound->size;
        ck_ok(sl_mem_alloc(&allocator, size, (void **)&block));
        memcpy(block, sound->block, size);
        sl_coded_record *record = (sl_coded_record *)(void *)block + 1;
        uint16_t *weights = (uint16_t *)(void *)(block + ((uint8_t *)parts.bf16 - sound->block));
        if (i == 1) weights[3] = 0x7f80;
        if (i == 2) weights[24 * 16 - 1] = 0xffc0;
        if (i == 3) memcpy(block + ((uint8_t *)parts.biases - sound->block), &(const float){NAN}, sizeof(float));
        if (i == 4) record->scale = 1;
        if (i == 5) record->type = SL_LAYER_F32;
        if (i == 6) size -= 64;
        ck_assert_msg(sl_coded_read(&made->shape, block, size, &allocator, &read) == (i ? SL_ECORRUPT : SL_OK),
                      "change %zu", i);
        sl_coded_free(&read, &allocator);
    }
    sl_ranker_free(made);
}
END_TEST

/* As many inputs as sums of 32 bits hold, and one more. */
START_TEST(layers_are_not_too_wide) {
    sl_allocator allocator = sl_allocator_of(NULL);
    for (size_t more = 0; more < 2; more++) {
        const sl_net_shape shape = {.layers = 1, .width = {SL_INT8_MOST_INPUTS + more, 1}};
        const sl_layer_type type = SL_LAYER_INT8_DYNAMIC;
        sl_coded made, read;
        ck_ok(sl_coded_create(&shape, &type, NULL, &allocator, &made));
        *sl_coded_layer_of(&made, &shape, 0).scales = 1;
        sl_status status = sl_coded_read(&shape, made.block, made.size, &allocator, &read);
        if (more)
            ck_fails(status, SL_ECORRUPT, "more inputs");
        else
            ck_ok(status);
        sl_coded_free(&read, &allocator);
    }
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Searching
 * ------------------------------------------------------------------------------------------------------------- */

typedef struct told {
    size_t trials, cheaper_within;
    double least_cost; /* of those within */
    int ordered;
    double last_cost;
} told;

/* The cost of a choice by docs/internals/precision.md, over the multiply-adds of floats. */
static double modelled(const sl_precision *precisions) {
    double cost = 0, floats = 0;
    for (size_t l = 0; l < LAYERS; l++) {
        double in = (double)model->shape.width[l], products = in * (double)model->shape.width[l + 1];
        int bf16 = precisions[l] == SL_PRECISION_BF16, dynamic = precisions[l] == SL_PRECISION_INT8_DYNAMIC;
        int before = l ? (int)precisions[l - 1] : SL_PRECISION_F32;
        int given = bf16 ? before == SL_PRECISION_BF16
                         : !dynamic && (before == SL_PRECISION_INT8 || before == SL_PRECISION_INT8_DYNAMIC);
        floats += products;
        if (precisions[l] == SL_PRECISION_F32)
            cost += products;
        else
            cost += (bf16 ? 0.5 : 0.26) * products + (given ? 0 : 0.5 * in) + (dynamic ? 0.5 * in : 0);
    }
    return cost / floats;
}

static void take_trial(void *ctx, const sl_trial *trial) {
    told *t = ctx;
    ck_assert_uint_eq(trial->number, ++t->trials);
    ck_assert_uint_eq(trial->layers, LAYERS);
    ck_assert_double_eq_tol(trial->cost, modelled(trial->precisions), 1e-12);
    if (trial->within && (t->least_cost == 0 || trial->cost < t->least_cost)) t->least_cost = trial->cost;
    t->ordered &= trial->cost >= t->last_cost - 1e-12;
    t->last_cost = trial->cost;
}

/* Tables stay floats, unless params say how: most tests look at the layers alone. */
static sl_status search(const sl_ranker *ranker, sl_precision_search_params *params, told *t, sl_ranker **made,
                        sl_precision_search_report *report) {
    static sl_quantize_params floats;
    sl_quantize_params_init(&floats);
    if (!params->quantize) params->quantize = &floats;
    *t = (told){.ordered = 1};
    params->trial = take_trial;
    params->trial_ctx = t;
    params->threads = 2;
    *report = (sl_precision_search_report){.struct_size = sizeof *report};
    return sl_ranker_search_precision(ranker, &rows.source, NULL, params, made, report);
}

static double auc_of(const sl_ranker *ranker) {
    sl_metrics metrics = {.struct_size = sizeof metrics};
    ck_ok(sl_ranker_evaluate(ranker, &rows.source, NULL, &metrics));
    return metrics.auc;
}

/* Units of layer 0 grow by as much as their weights behind shrink: F32 gives the same, and layer 1's inputs are one
 * large number and many that its codes cannot tell apart. */
static float larger(float value, size_t i, size_t columns) {
    return i % columns == 2 ? 3e4f * value : value;
}

static float smaller(float value, size_t i, size_t columns) {
    return i / columns == 2 ? value / 3e4f : value;
}

static sl_ranker *sensitive(void) {
    sl_ranker *first = changed(model, "dense.0.weight", larger);
    sl_ranker *both = changed(first, "dense.1.weight", smaller);
    sl_ranker_free(first);
    return both;
}

START_TEST(the_search_keeps_its_bound) {
    sl_precision_search_params params;
    sl_precision_search_report report;
    sl_ranker *made;
    told t;
    sl_precision_search_params_init(&params);
    params.max_drop = 0.01;
    ck_ok(search(model, &params, &t, &made, &report));
    ck_assert(report.within && report.proved && t.ordered);
    ck_assert_uint_eq(report.trials, t.trials);
    ck_assert_uint_eq(report.rows, ROWS);
    ck_assert_double_eq_tol(report.base_value, auc_of(model), 1e-6);
    ck_assert_double_eq_tol(report.value, auc_of(made), 1e-4);
    ck_assert_double_eq_tol(report.drop, report.base_value - report.value, 1e-12);
    ck_assert(report.drop <= 0.01 && report.drop_error >= 0 && report.drop_error < 0.01);
    ck_assert_double_lt(report.cost, 0.5);
    sl_ranker_free(made);
}
END_TEST

/* Every strategy keeps the sensitive layer in F32, and none finds a faster model than all choices give. */
START_TEST(a_sensitive_layer_stays) {
    sl_ranker *ranker = sensitive();
    sl_precision_search_params params;
    sl_precision_search_report report;
    double least = 0;
    for (int strategy = SL_STRATEGY_EXHAUSTIVE; strategy <= SL_STRATEGY_BAYESIAN; strategy++) {
        sl_quantize_params how;
        sl_ranker *made;
        told t;
        sl_quantize_params_init(&how);
        how.calibration = SL_CALIBRATION_MINMAX;
        sl_precision_search_params_init(&params);
        params.quantize = &how;
        params.strategy = (sl_strategy)strategy;
        params.leave_dynamic = params.leave_bf16 = 1;
        params.max_drop = 0.001;
        ck_ok(search(ranker, &params, &t, &made, &report));
        ck_assert_int_eq(report.within, 1);
        ck_assert_double_eq(report.cost, t.least_cost);
        sl_layer_info layer = {.struct_size = sizeof layer};
        ck_ok(sl_ranker_get_layer(made, 1, &layer));
        ck_assert_int_eq(layer.precision, SL_PRECISION_F32);
        if (strategy == SL_STRATEGY_EXHAUSTIVE) {
            least = report.cost;
            ck_assert_int_eq(report.proved, 1);
        }
        ck_assert_double_ge(report.cost, least);
        sl_ranker_free(made);
    }
    sl_ranker_free(ranker);
}
END_TEST

/* Numbers that codes cannot tell apart are no trouble for bf16: with it, the sensitive layer is faster than floats. */
START_TEST(bf16_is_between_the_two) {
    sl_ranker *ranker = sensitive(), *made;
    sl_precision_search_params params;
    sl_precision_search_report report;
    sl_layer_info layer = {.struct_size = sizeof layer};
    double floats, seen[2];
    told t;
    for (int only = 0; only < 2; only++) {
        sl_precision_search_params_init(&params);
        params.leave_dynamic = 1;
        params.leave_static = only;
        params.max_drop = 0.001;
        ck_ok(search(ranker, &params, &t, &made, &report));
        ck_assert(report.within && report.proved && t.ordered);
        ck_assert_double_eq_tol(report.value, auc_of(made), 1e-4);
        ck_ok(sl_ranker_get_layer(made, 1, &layer));
        ck_assert_int_eq(layer.precision, SL_PRECISION_BF16);
        ck_ok(sl_ranker_get_layer(made, 0, &layer));
        ck_assert_int_eq(layer.precision, only ? SL_PRECISION_BF16 : SL_PRECISION_INT8);
        seen[only] = report.cost;
        sl_ranker_free(made);
    }
    params.leave_bf16 = 1;
    params.leave_static = 0;
    ck_ok(search(ranker, &params, &t, &made, &report));
    floats = report.cost;
    ck_assert(seen[0] < seen[1] && seen[0] < floats && seen[1] < 0.6);
    sl_ranker_free(made);
    sl_ranker_free(ranker);
}
END_TEST

/* Without INT8 the greedy strategies begin with bf16. */
START_TEST(greedy_strategies_begin_with_bf16) {
    for (int strategy = SL_STRATEGY_ACCURACY_AWARE; strategy <= SL_STRATEGY_MSE; strategy++) {
        sl_precision_search_params params;
        sl_precision_search_report report;
        sl_ranker *made;
        told t;
        sl_precision_search_params_init(&params);
        params.strategy = (sl_strategy)strategy;
        params.leave_static = params.leave_dynamic = 1;
        params.max_drop = 0.1;
        ck_ok(search(model, &params, &t, &made, &report));
        ck_assert(report.within && t.trials == 1);
        for (size_t l = 0; l < LAYERS; l++) {
            sl_layer_info layer = {.struct_size = sizeof layer};
            ck_ok(sl_ranker_get_layer(made, l, &layer));
            ck_assert_int_eq(layer.precision, SL_PRECISION_BF16);
        }
        sl_ranker_free(made);
    }
}
END_TEST

typedef struct course {
    size_t trials;
    double costs[200];
} course;

static void take_course(void *ctx, const sl_trial *trial) {
    course *c = ctx;
    ck_assert_uint_lt(c->trials, 200);
    c->costs[c->trials++] = trial->cost;
}

/* All choices of precision and calibration, of which few are judged: the best is found, by any seed, and the same
 * trials by the same. */
START_TEST(the_bayesian_strategy) {
    sl_ranker *ranker = sensitive(), *made;
    sl_precision_search_params params;
    sl_precision_search_report report;
    static course courses[4];
    double least;
    told t;
    sl_precision_search_params_init(&params);
    params.max_drop = 0.001;
    ck_ok(search(ranker, &params, &t, &made, &report));
    least = report.cost;
    sl_ranker_free(made);
    for (size_t i = 0; i < 4; i++) {
        sl_quantize_params how;
        sl_quantize_params_init(&how);
        how.seed = i / 2;
        params.quantize = &how;
        params.strategy = SL_STRATEGY_BAYESIAN;
        params.trials = i == 3 ? 7 : 0;
        params.trial = take_course;
        params.trial_ctx = &courses[i];
        courses[i] = (course){0};
        report.struct_size = sizeof report;
        ck_ok(sl_ranker_search_precision(ranker, &rows.source, NULL, &params, &made, &report));
        ck_assert(report.within && !report.proved);
        ck_assert_uint_eq(report.trials, courses[i].trials);
        ck_assert_uint_le(report.trials, params.trials ? params.trials : 30);
        ck_assert_double_ge(report.cost, least);
        if (i < 3) ck_assert_double_eq(report.cost, least);
        sl_ranker_free(made);
    }
    ck_assert_mem_eq(&courses[0], &courses[1], sizeof courses[0]);
    ck_assert(memcmp(courses[0].costs, courses[2].costs, sizeof courses[0].costs) != 0);
    params.trials = 1001;
    ck_fails(sl_ranker_search_precision(ranker, &rows.source, NULL, &params, &made, NULL), SL_EINVAL, "1000 at most");
    sl_ranker_free(ranker);
}
END_TEST

START_TEST(what_no_choice_reaches) {
    sl_ranker *ranker = sensitive(), *made;
    sl_precision_search_params params;
    sl_precision_search_report report;
    sl_quantize_params how;
    told t;
    sl_quantize_params_init(&how);
    how.keep = (const char *const[]){"dense.0", "dense.2", "dense.3"};
    how.keep_count = 3;
    sl_precision_search_params_init(&params);
    params.quantize = &how;
    params.max_drop = 0;
    params.leave_dynamic = params.leave_bf16 = 1;
    ck_ok(search(ranker, &params, &t, &made, &report));
    ck_assert(!report.within && report.proved);
    ck_assert_uint_eq(report.blame, 1);
    ck_assert_double_gt(report.blame_drop, 0.001);
    ck_assert_double_eq_tol(report.blame_drop, report.drop, 1e-9);
    sl_ranker_free(made);
    sl_ranker_free(ranker);
}
END_TEST

START_TEST(searches_end_early) {
    sl_ranker *ranker = sensitive(), *made;
    sl_precision_search_params params;
    sl_precision_search_report report;
    told t;
    sl_precision_search_params_init(&params);
    params.trials = 1;
    params.max_drop = 0;
    ck_ok(search(ranker, &params, &t, &made, &report));
    ck_assert(!report.proved && !report.within);
    sl_ranker_free(made);
    sl_ranker_free(ranker);
}
END_TEST

/* Tables in codes count against the bound as layers do: the base is the model with tables of floats. */
START_TEST(tables_in_codes) {
    sl_precision_search_params params;
    sl_precision_search_report report;
    sl_quantize_params how;
    for (int type = SL_TABLE_I8; type <= SL_TABLE_I4; type++) {
        sl_ranker *made;
        sl_embedding_info table = {.struct_size = sizeof table};
        told t;
        sl_quantize_params_init(&how);
        how.tables = (sl_table_type)type;
        sl_precision_search_params_init(&params);
        params.quantize = &how;
        params.max_drop = 0.1;
        ck_ok(search(model, &params, &t, &made, &report));
        ck_assert_double_eq_tol(report.base_value, auc_of(model), 1e-6);
        ck_assert_double_eq_tol(report.value, auc_of(made), 1e-4);
        ck_ok(sl_ranker_get_embedding(made, 0, &table));
        ck_assert_int_eq(table.type, type);
        sl_ranker_free(made);
        how.precision = SL_PRECISION_F32;
        ck_ok(sl_ranker_quantize(model, NULL, &how, &made));
        ck_ok(sl_ranker_get_embedding(made, 0, &table));
        ck_assert_int_eq(table.type, type);
        sl_ranker_free(made);
    }
}
END_TEST

START_TEST(measures) {
    sl_precision_search_params params;
    sl_precision_search_report report;
    sl_ranker *made;
    told t;
    for (int measure = SL_MEASURE_AUC; measure <= SL_MEASURE_RMSE; measure++) {
        sl_precision_search_params_init(&params);
        params.measure = (sl_measure)measure;
        params.strategy = SL_STRATEGY_BASIC;
        params.max_drop = 0.1;
        params.relative = 1;
        params.group = "a";
        ck_ok(search(model, &params, &t, &made, &report));
        ck_assert(report.within && isfinite(report.value));
        sl_ranker_free(made);
    }
    params.measure = SL_MEASURE_NDCG;
    params.group = NULL;
    ck_fails(search(model, &params, &t, &made, &report), SL_EINVAL, "groups");
    params.group = "nothing";
    ck_fails(search(model, &params, &t, &made, &report), SL_ENOTFOUND, "nothing");
    params.max_drop = -1;
    ck_fails(search(model, &params, &t, &made, &report), SL_EINVAL, "max_drop");
    sl_precision_search_params_init(&params);
    params.leave_static = params.leave_dynamic = params.leave_bf16 = 1;
    ck_fails(search(model, &params, &t, &made, &report), SL_EINVAL, "leave");
    sl_ranker *squared = make("\"column\": \"value\", \"loss\": \"squared\"", NULL, "\"hidden\": [24, 16, 8]");
    sl_precision_search_params_init(&params);
    params.measure = SL_MEASURE_AUC;
    ck_fails(search(squared, &params, &t, &made, &report), SL_EINVAL, "no AUC");
    sl_ranker_free(squared);
}
END_TEST

START_TEST(searches_without_memory) {
    static const sl_strategy strategies[] = {SL_STRATEGY_MSE, SL_STRATEGY_BAYESIAN};
    sl_quantize_params how;
    sl_precision_search_params params;
    sl_quantize_params_init(&how);
    sl_precision_search_params_init(&params);
    params.quantize = &how;
    params.strategy = strategies[_i];
    params.trials = _i ? 3 : 0;
    params.threads = 1;
    params.max_drop = 0;
    how.rows = 20;
    for (size_t at = 1;; at += at < 100 ? 3 : 37) {
        fault_allocator faults;
        sl_ranker *made;
        fault_allocator_init(&faults, at);
        how.allocator = &faults.allocator;
        sl_status status = sl_ranker_search_precision(model, &rows.source, NULL, &params, &made, NULL);
        sl_ranker_free(made);
        ck_assert_uint_eq(faults.live_blocks, 0);
        if (status == SL_OK) break;
        ck_assert_int_eq(status, SL_ENOMEM);
    }
}
END_TEST

int main(void) {
    TCase *quantising = tcase_create("quantising"), *searching = tcase_create("threads");
    tcase_add_checked_fixture(quantising, set_up, tear_down);
    tcase_add_loop_test(quantising, scores_stay_near, 0, 7);
    tcase_add_test(quantising, layers_are_kept);
    tcase_add_test(quantising, given_layers_become_floats);
    tcase_add_test(quantising, biases_make_up_for_the_mean);
    tcase_add_test(quantising, rows_are_drawn);
    tcase_add_test(quantising, bad_calls_are_refused);
    tcase_add_test(quantising, dynamic_needs_no_rows);
    tcase_add_test(quantising, bf16_needs_no_rows);
    tcase_add_test(quantising, memory_may_run_out);
    tcase_add_test(quantising, given_layers_are_kept);
    tcase_add_test(quantising, given_layers_are_not_trusted);
    tcase_add_test(quantising, blocks_are_not_trusted);
    tcase_add_test(quantising, bf16_blocks_are_not_trusted);
    tcase_add_test(quantising, layers_are_not_too_wide);
    tcase_add_loop_test(quantising, searches_without_memory, 0, 2);
    tcase_add_checked_fixture(searching, set_up, tear_down);
    tcase_add_test(searching, the_search_keeps_its_bound);
    tcase_add_test(searching, a_sensitive_layer_stays);
    tcase_add_test(searching, bf16_is_between_the_two);
    tcase_add_test(searching, greedy_strategies_begin_with_bf16);
    tcase_add_test(searching, the_bayesian_strategy);
    tcase_add_test(searching, what_no_choice_reaches);
    tcase_add_test(searching, searches_end_early);
    tcase_add_test(searching, tables_in_codes);
    tcase_add_test(searching, measures);
    return check_main("quantise", (TCase *[]){quantising, searching}, 2);
}
