/* Nets with INT8 and bf16 layers. All-INT8 nets equal integer arithmetic bit for bit. Parts of the first layer add up
 * to the whole. Layers of all kinds mix in any order, and no NaN is hidden. The test runs once more for each lower tier
 * of the processor. */
#include "base/random.h"
#include "ranker/net/loops.h"
#include "ranker/net/net.h"
#include "tests/support/check_main.h"
#include "tests/support/faults.h"
#include "tests/support/indexes.h"
#include "tests/support/net_reference.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ROWS = 300, WIDEST = 260 };

static const sl_net_shape shapes[] = {
    {4, {133, 128, 64, 32, 1}, SL_RELU}, {3, {45, 37, 19, 3}, SL_RELU}, {3, {45, 37, 19, 3}, SL_GELU},
    {3, {45, 37, 19, 3}, SL_TANH},       {1, {29, 2}, SL_RELU},         {3, {70, WIDEST, 130, 1}, SL_RELU}};
enum { SHAPES = sizeof shapes / sizeof *shapes };

/* The layers' types in order: s static, y static and symmetric, d dynamic, b bf16, f floats. */
static const char *const kinds[] = {"ssss", "dddd", "fsss", "sfsf", "ssfd", "dsds", "fffd",
                                    "bbbb", "bsbf", "sbbs", "fbdb", "bbfb", "yyyy", "sysy"};
enum { KINDS = sizeof kinds / sizeof *kinds };

typedef struct fixture {
    sl_net_shape shape;
    sl_layer_codes codes[SL_MAX_LAYERS];
    float *weights, *inputs, *out;
    sl_allocator allocator;
    sl_net *net;
    sl_net_run *run;
} fixture;

/* Codes of a layer's weights, and the floats they stand for. */
static void code_layer(fixture *f, size_t l, char kind) {
    size_t in = f->shape.width[l], out = f->shape.width[l + 1];
    float *weights = f->weights + sl_net_weight_at(&f->shape, l), *scales = malloc(out * sizeof *scales);
    int8_t *codes = malloc(in * out);
    for (size_t o = 0; o < out; o++) {
        float most = 0;
        for (size_t i = 0; i < in; i++)
            most = fmaxf(most, fabsf(weights[i * out + o]));
        scales[o] = most / 127;
        for (size_t i = 0; i < in; i++) {
            codes[i * out + o] = (int8_t)lrintf(weights[i * out + o] / scales[o]);
            weights[i * out + o] = (float)codes[i * out + o] * scales[o];
        }
    }
    f->codes[l] = (sl_layer_codes){kind == 'd' ? SL_LAYER_INT8_DYNAMIC : SL_LAYER_INT8, {1, 0}, codes, scales, NULL};
}

/* Weights in bf16, and the floats they stand for. */
static void round_layer(fixture *f, size_t l) {
    size_t count = f->shape.width[l] * f->shape.width[l + 1];
    float *weights = f->weights + sl_net_weight_at(&f->shape, l);
    uint16_t *rounded = malloc(count * sizeof *rounded);
    sl_loops_get()->narrow(weights, count, SL_BF16, rounded);
    sl_loops_get()->round(weights, count, SL_BF16, weights);
    f->codes[l] = (sl_layer_codes){.type = SL_LAYER_BF16, .bf16 = rounded};
}

static void make_fixture(fixture *f, const sl_net_shape *shape, const char *kind) {
    *f = (fixture){.allocator = sl_allocator_of(NULL), .shape = *shape};
    f->weights = reference_weights(shape, 3);
    f->inputs = reference_numbers(MOST_ROWS * shape->width[0], 1, 4);
    f->out = malloc((MOST_ROWS * 3 + 1) * sizeof *f->out);
    for (size_t l = 0; l < shape->layers; l++) {
        int rectified = l && shape->activation == SL_RELU;
        if (kind[l] == 'b')
            round_layer(f, l);
        else if (kind[l] != 'f')
            code_layer(f, l, kind[l]);
        f->codes[l].input =
            kind[l] == 'y' ? (sl_int8_range){2.0f / 127, 128} : sl_int8_range_of(rectified ? 0 : -1.5f, 2);
    }
    ck_ok(sl_net_create(shape, f->weights, f->codes, &f->allocator, &f->net));
    ck_ok(sl_net_run_create(f->net, MOST_ROWS, &f->allocator, &f->run));
}

static void free_fixture(fixture *f) {
    sl_net_run_free(f->run);
    sl_net_free(f->net);
    for (size_t l = 0; l < f->shape.layers; l++) {
        free((void *)(uintptr_t)f->codes[l].codes);
        free((void *)(uintptr_t)f->codes[l].scales);
        free((void *)(uintptr_t)f->codes[l].bf16);
    }
    free(f->weights);
    free(f->inputs);
    free(f->out);
}

/* ---------------------------------------------------------------------------------------------------------------
 * The reference
 * ------------------------------------------------------------------------------------------------------------- */

static uint8_t code_of(float value) {
    return value > 0 ? (uint8_t)lrintf(fminf(value, 255)) : 0;
}

static int gives_codes(const fixture *f, size_t l) {
    if (l + 1 == f->shape.layers || f->codes[l + 1].type != SL_LAYER_INT8) return 0;
    return f->shape.activation == SL_RELU && f->codes[l + 1].input.zero == 0;
}

static void quantise_row(const fixture *f, size_t l, const float *x, sl_int8_range *range, uint8_t *codes) {
    *range = f->codes[l].input;
    if (f->codes[l].type == SL_LAYER_INT8_DYNAMIC) {
        float low = 0, high = 0;
        for (size_t i = 0; i < f->shape.width[l]; i++) {
            low = fminf(low, x[i]);
            high = fmaxf(high, x[i]);
        }
        *range = sl_int8_range_of(low, high);
    }
    for (size_t i = 0; i < f->shape.width[l]; i++)
        codes[i] = code_of(x[i] * (1 / range->scale) + (float)range->zero);
}

/* Returns one output of an INT8 layer, in floats or, scaled, in the next layer's codes. */
static float output_of(const fixture *f, size_t l, size_t o, const uint8_t *codes, const sl_int8_range *range) {
    const sl_layer_codes *layer = &f->codes[l];
    size_t in = f->shape.width[l], out = f->shape.width[l + 1];
    float bias = f->weights[sl_net_bias_at(&f->shape, l) + o];
    int32_t sum = 0;
    for (size_t i = 0; i < in; i++)
        sum += (codes[i] - range->zero) * layer->codes[i * out + o];
    int known = layer->type == SL_LAYER_INT8;
    float factor = (known ? range->scale : 1) * layer->scales[o];
    if (gives_codes(f, l)) {
        factor /= f->codes[l + 1].input.scale;
        bias /= f->codes[l + 1].input.scale;
    }
    return (float)sum * (known ? factor : factor * range->scale) + bias;
}

/* Computes a layer of floats or bf16; for bf16, rounds its inputs first. */
static void float_layer(const fixture *f, size_t l, const float *x, float *y) {
    const sl_loops *loops = sl_loops_get();
    const float *weights = f->weights + sl_net_weight_at(&f->shape, l);
    size_t in = f->shape.width[l], out = f->shape.width[l + 1];
    float rounded[WIDEST];
    if (f->codes[l].type == SL_LAYER_BF16) {
        loops->round(x, in, SL_BF16, rounded);
        x = rounded;
    }
    const sl_plain_product product = {.src = x,
                                      .weights = weights,
                                      .bias = weights + in * out,
                                      .stride = in,
                                      .rows = 1,
                                      .in = in,
                                      .out = out,
                                      .dst = y};
    loops->product(&product);
    if (l + 1 < f->shape.layers) loops->activate(y, out, f->shape.activation, y);
}

/* Computes one row's outputs. `room` holds two rows. */
static float *outputs_of(const fixture *f, const float *x, float *room) {
    uint8_t codes[WIDEST], next[WIDEST];
    int has_codes = 0;
    float *y = room;
    for (size_t l = 0; l < f->shape.layers; l++) {
        sl_int8_range range = f->codes[l].input;
        if (f->codes[l].type == SL_LAYER_F32 || f->codes[l].type == SL_LAYER_BF16) {
            float_layer(f, l, x, y);
        } else {
            if (!has_codes) quantise_row(f, l, x, &range, codes);
            for (size_t o = 0; o < f->shape.width[l + 1]; o++) {
                y[o] = output_of(f, l, o, codes, &range);
                next[o] = code_of(y[o]);
            }
            has_codes = gives_codes(f, l);
            memcpy(codes, next, sizeof codes);
            if (!has_codes && l + 1 < f->shape.layers)
                sl_loops_get()->activate(y, f->shape.width[l + 1], f->shape.activation, y);
        }
        x = y;
        y = x == room ? room + WIDEST : room;
    }
    return (float *)(uintptr_t)x;
}

/* ---------------------------------------------------------------------------------------------------------------
 * Tests
 * ------------------------------------------------------------------------------------------------------------- */

static int is_exact(const char *kind, size_t layers) {
    return memchr(kind, 'f', layers) == NULL && memchr(kind, 'b', layers) == NULL;
}

/* Layers of floats and bf16 sum in another order, so a later code may differ by one. */
static void compare(const fixture *f, const char *kind, size_t row, const float *out) {
    int coded = strcspn(kind, "syd") < f->shape.layers;
    float room[2 * WIDEST], *wanted = outputs_of(f, f->inputs + row * f->shape.width[0], room);
    for (size_t o = 0; o < f->shape.width[f->shape.layers]; o++) {
        if (is_exact(kind, f->shape.layers))
            ck_assert_msg(memcmp(&out[o], &wanted[o], sizeof *out) == 0, "%s, row %zu output %zu: %a not %a", kind, row,
                          o, (double)out[o], (double)wanted[o]);
        else
            ck_assert_double_eq_tol((double)out[o], (double)wanted[o], coded ? 0.03 : 0.003);
    }
}

START_TEST(forward_is_the_integer_reference) {
    static const size_t row_counts[] = {1, 2, 3, 5, 6, 7, 12, 13, 64, 85, 86, 129, MOST_ROWS};
    const sl_net_shape *shape = &shapes[_i % SHAPES];
    const char *kind = kinds[_i / SHAPES];
    fixture f;
    make_fixture(&f, shape, kind);
    for (size_t n = 0; n < sizeof row_counts / sizeof *row_counts; n++) {
        size_t rows = row_counts[n], outputs = shape->width[shape->layers];
        memcpy(sl_net_run_input(f.run), f.inputs, rows * shape->width[0] * sizeof(float));
        f.out[rows * outputs] = -77;
        ck_ok(sl_net_run_forward(f.run, rows, f.out));
        for (size_t r = 0; r < rows; r++)
            compare(&f, kind, r, f.out + r * outputs);
        ck_assert(f.out[rows * outputs] == -77);
    }
    free_fixture(&f);
}
END_TEST

/* The inputs are cut anywhere into user, item and pair. Together they give the same as uncut. */
START_TEST(parts_are_the_whole) {
    const sl_net_shape *shape = &shapes[_i % SHAPES];
    const char *kind = kinds[_i / SHAPES];
    static const size_t cuts[][2] = {{0, 0}, {1, 2}, {4, 9}, {7, 7}, {11, 22}, {0, 29}};
    size_t in = shape->width[0], width = shape->width[1], rows = 140;
    fixture f;
    if (shape->layers == 1 || kind[0] == 'd') return; /* parts have other ranges */
    make_fixture(&f, shape, kind);
    for (size_t c = 0; c < sizeof cuts / sizeof *cuts; c++) {
        size_t from[4] = {0, cuts[c][0], cuts[c][1], in};
        float *sums[3], out[MOST_ROWS * 3];
        const void *items[MOST_ROWS];
        for (size_t p = 0; p < 3; p++) {
            sl_first_part part = {from[p], from[p + 1] - from[p], p == 0};
            sums[p] = malloc(rows * width * sizeof **sums);
            ck_ok(sl_net_run_first(f.run, &part, f.inputs + from[p], p ? in : 0, rows, sums[p]));
        }
        for (size_t r = 0; r < rows; r++)
            items[r] = sums[1] + r * width;
        /* All rows have the first row's user part. */
        memcpy(sl_net_run_input(f.run), f.inputs, rows * in * sizeof(float));
        for (size_t r = 0; r < rows; r++)
            memcpy(sl_net_run_input(f.run) + r * in, f.inputs, from[1] * sizeof(float));
        ck_ok(sl_net_run_forward(f.run, rows, f.out));
        ck_ok(sl_net_run_rest(f.run, sums[0], &(sl_item_rows){SL_F32, items, NULL}, sums[2], rows, out));
        for (size_t i = 0; i < rows * shape->width[shape->layers]; i++)
            ck_assert_double_eq_tol((double)out[i], (double)f.out[i], 0.03);
        for (size_t p = 0; p < 3; p++)
            free(sums[p]);
    }
    free_fixture(&f);
}
END_TEST

START_TEST(nan_is_not_hidden) {
    const sl_net_shape *shape = &shapes[_i % SHAPES];
    size_t in = shape->width[0], outputs = shape->width[shape->layers], rows = 9;
    static const float strange[] = {NAN, INFINITY, -INFINITY};
    fixture f;
    if (strspn(kinds[_i / SHAPES], "f") >= shape->layers) return; /* floats alone */
    make_fixture(&f, shape, kinds[_i / SHAPES]);
    memcpy(sl_net_run_input(f.run), f.inputs, rows * in * sizeof(float));
    for (size_t s = 0; s < 3; s++)
        sl_net_run_input(f.run)[(2 * s + 1) * in + in / 2] = strange[s];
    ck_ok(sl_net_run_forward(f.run, rows, f.out));
    for (size_t i = 0; i < rows * outputs; i++)
        ck_assert(!isfinite(f.out[i]) == (i / outputs % 2 == 1 && i / outputs < 6));
    sl_first_part part = {0, in, 1};
    float *sums = malloc(rows * shape->width[1] * sizeof *sums);
    ck_ok(sl_net_run_first(f.run, &part, sl_net_run_input(f.run), in, rows, sums));
    for (size_t r = 0; r < rows; r++)
        ck_assert(!isfinite(sums[r * shape->width[1]]) == (r % 2 == 1 && r < 6));
    free(sums);
    free_fixture(&f);
}
END_TEST

START_TEST(without_memory) {
    fixture f;
    make_fixture(&f, &shapes[1], _i ? "bdfb" : "sdfs");
    for (size_t at = 1;; at++) {
        sl_net *net = NULL;
        sl_net_run *run = NULL;
        fault_allocator faults;
        fault_allocator_init(&faults, at);
        sl_status status = sl_net_create(&f.shape, f.weights, f.codes, &faults.allocator, &net);
        if (status == SL_OK) status = sl_net_run_create(net, 64, &faults.allocator, &run);
        sl_net_run_free(run);
        sl_net_free(net);
        ck_assert_uint_eq(faults.live_blocks, 0);
        if (status == SL_OK) break;
        ck_assert_int_eq(status, SL_ENOMEM);
    }
    free_fixture(&f);
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("net_int8");
    tcase_add_loop_test(tests, forward_is_the_integer_reference, 0, SHAPES * KINDS);
    tcase_add_loop_test(tests, parts_are_the_whole, 0, SHAPES * KINDS);
    tcase_add_loop_test(tests, nan_is_not_hidden, 0, SHAPES * KINDS);
    tcase_add_loop_test(tests, without_memory, 0, 2);
    return check_main("net_int8", &tests, 1);
}
