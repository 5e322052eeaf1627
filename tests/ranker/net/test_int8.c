/* INT8 products and quantisation of every tier of this machine, against integer arithmetic, bit for bit: any size, any
 * part of the inputs, also -128 and 255, and no access after the outputs. */
#include "base/cpu.h"
#include "base/random.h"
#include "ranker/net/int8.h"
#include "tests/support/check_main.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

extern const sl_int8_loops int8_avxvnni_by_evex;

enum { MOST_IN = 150, MOST_OUT = 144, MOST_ROWS = 14, GUARD = 77 };

static const size_t ins[] = {1, 3, 4, 5, 31, 64, 65, MOST_IN};
static const size_t outs[] = {1, 2, 15, 16, 17, 33, 63, 64, 65, 100, 130, MOST_OUT};
static sl_allocator allocator;

/* Each test runs for every tier, and once more for avxvnni in another encoding. NULL: the machine lacks it. */
static const sl_int8_loops *tier(int i) {
    if (i < SL_ISA_COUNT) return sl_int8_of((sl_isa)i);
#if defined(__x86_64__)
    if (sl_int8_of(SL_ISA_AVX512VNNI)) return &int8_avxvnni_by_evex;
#endif
    return NULL;
}

typedef struct layer {
    int8_t codes[MOST_IN * MOST_OUT];
    uint8_t src[MOST_ROWS * (MOST_IN + 6)];
    float factor[MOST_OUT], bias[MOST_OUT];
    int32_t zero_sums[MOST_OUT];
    sl_int8_range row_ranges[MOST_ROWS];
    sl_int8_weights packed;
} layer;

/* Returns a number of the range; its ends are more frequent than by chance. */
static int extreme(uint64_t seed, uint64_t at, int low, int high) {
    double draw = sl_random_unit(seed, at);
    if (draw < 0.15) return low;
    if (draw < 0.3) return high;
    return low + (int)(sl_random_unit(seed + 1, at) * (high - low));
}

static void fill_layer(layer *l, size_t in, size_t out, uint64_t seed) {
    memset(l, 0, sizeof *l);
    for (size_t i = 0; i < in * out; i++)
        l->codes[i] = (int8_t)extreme(seed, i, -128, 127);
    for (size_t i = 0; i < MOST_ROWS * sl_int8_pitch(in); i++)
        l->src[i] = (uint8_t)extreme(seed + 2, i, 0, 255);
    for (size_t o = 0; o < out; o++) {
        l->factor[o] = (float)(0.0001 + 0.002 * sl_random_unit(seed + 4, o));
        l->bias[o] = (float)(200 * (sl_random_unit(seed + 5, o) - 0.3));
        for (size_t i = 0; i < in; i++)
            l->zero_sums[o] += 7 * l->codes[i * out + o];
    }
    for (size_t r = 0; r < MOST_ROWS; r++)
        l->row_ranges[r] = (sl_int8_range){(float)(0.01 + sl_random_unit(seed + 6, r)), extreme(seed + 7, r, 0, 255)};
    ck_assert_int_eq(sl_int8_pack(l->codes, in, out, &allocator, &l->packed), SL_OK);
}

/* Returns the output over inputs `first` to first + count. */
static float reference(const layer *l, const sl_int8_product *p, size_t r, size_t o) {
    const sl_int8_weights *w = &l->packed;
    int64_t sum = 0, less = p->row_ranges ? 0 : p->zero_sums[o];
    for (size_t g = 0; g < SL_INT8_GROUP * p->group_count; g++) {
        size_t i = SL_INT8_GROUP * p->first_group + g;
        if (i < w->in) sum += (int64_t)p->src[r * p->src_pitch + g] * l->codes[i * w->out + o];
    }
    if (!p->row_ranges) return (float)(int32_t)(sum - less) * p->factor[o] + p->bias[o];
    return (float)(int32_t)(sum - (int64_t)p->row_ranges[r].zero * w->column_sums[o]) *
               (p->factor[o] * p->row_ranges[r].scale) +
           p->bias[o];
}

static uint8_t code_of(float value) {
    return value > 0 ? (uint8_t)lrintf(fminf(value, 255)) : 0;
}

static void compare_floats(const sl_int8_loops *loops, const layer *l, sl_int8_product p) {
    static float out[MOST_ROWS * (MOST_OUT + 3) + GUARD];
    size_t width = l->packed.out;
    p.dst_pitch = width + 3;
    for (size_t i = 0; i < sizeof out / sizeof *out; i++)
        out[i] = -77.5f;
    p.floats = out;
    loops->product(&p);
    for (size_t i = 0; i < sizeof out / sizeof *out; i++) {
        size_t r = i / p.dst_pitch, o = i % p.dst_pitch;
        float wanted = r < p.rows && o < width ? reference(l, &p, r, o) : -77.5f;
        ck_assert_msg(memcmp(&wanted, &out[i], sizeof wanted) == 0,
                      "%s, %zu x %zu x %zu, row %zu output %zu: %a not %a", loops->name, p.rows, l->packed.in, width, r,
                      o, (double)out[i], (double)wanted);
    }
}

static void compare_codes(const sl_int8_loops *loops, const layer *l, sl_int8_product p) {
    static uint8_t out[MOST_ROWS * (MOST_OUT + 16) + GUARD];
    size_t whole = sl_round_up(l->packed.out, SL_PANEL_BLOCK);
    p.dst_pitch = whole + 16;
    memset(out, 0xa5, sizeof out);
    p.codes = out;
    loops->product(&p);
    for (size_t i = 0; i < sizeof out; i++) {
        size_t r = i / p.dst_pitch, o = i % p.dst_pitch;
        if (r < p.rows && o >= l->packed.out && o < whole) continue;
        uint8_t wanted = r < p.rows && o < whole ? code_of(reference(l, &p, r, o)) : 0xa5;
        ck_assert_msg(wanted == out[i], "%s, %zu x %zu x %zu, row %zu output %zu: code %u not %u", loops->name, p.rows,
                      l->packed.in, l->packed.out, r, o, out[i], wanted);
    }
}

START_TEST(products_are_exact) {
    const sl_int8_loops *loops = tier(_i);
    static layer l;
    if (!loops) return;
    for (size_t i = 0; i < sizeof ins / sizeof *ins; i++)
        for (size_t o = 0; o < sizeof outs / sizeof *outs; o++) {
            fill_layer(&l, ins[i], outs[o], 100 * i + o);
            sl_int8_product p = {.weights = &l.packed,
                                 .group_count = sl_int8_groups(ins[i]),
                                 .src = l.src,
                                 .rows = 1 + (i * 5 + o) % MOST_ROWS,
                                 .src_pitch = sl_int8_pitch(ins[i]),
                                 .zero_sums = l.zero_sums,
                                 .factor = l.factor,
                                 .bias = l.bias};
            compare_floats(loops, &l, p);
            compare_codes(loops, &l, p);
            p.row_ranges = l.row_ranges;
            p.zero_sums = l.packed.column_sums;
            compare_floats(loops, &l, p);
            sl_int8_weights_free(&l.packed, &allocator);
        }
}
END_TEST

START_TEST(parts_of_the_inputs) {
    const sl_int8_loops *loops = tier(_i);
    static layer l;
    if (!loops) return;
    fill_layer(&l, 130, 100, 5);
    for (size_t first = 0; first < 33; first += 3)
        for (size_t count = 0; first + count <= 33; count += 5) {
            sl_int8_product p = {.weights = &l.packed,
                                 .first_group = first,
                                 .group_count = count,
                                 .src = l.src,
                                 .rows = 9,
                                 .src_pitch = sl_int8_pitch(130),
                                 .zero_sums = l.zero_sums,
                                 .factor = l.factor,
                                 .bias = l.bias};
            compare_floats(loops, &l, p);
        }
    sl_int8_weights_free(&l.packed, &allocator);
}
END_TEST

/* Codes whose pairs of products would saturate sums of 16 bits. */
START_TEST(nothing_saturates) {
    const sl_int8_loops *loops = tier(_i);
    static layer l;
    static float out[MOST_OUT];
    if (!loops) return;
    for (int sign = -1; sign <= 1; sign += 2) {
        int code = sign < 0 ? -128 : 127;
        memset(l.codes, code, sizeof l.codes);
        memset(l.src, 255, sizeof l.src);
        ck_assert_int_eq(sl_int8_pack(l.codes, 128, 64, &allocator, &l.packed), SL_OK);
        for (size_t o = 0; o < 64; o++)
            l.factor[o] = 1;
        sl_int8_product p = {.weights = &l.packed,
                             .group_count = 32,
                             .src = l.src,
                             .rows = 1,
                             .src_pitch = 128,
                             .zero_sums = l.zero_sums,
                             .factor = l.factor,
                             .bias = l.bias,
                             .floats = out,
                             .dst_pitch = MOST_OUT};
        loops->product(&p);
        for (size_t o = 0; o < 64; o++)
            ck_assert_float_eq(out[o], (float)(255 * code * 128));
        sl_int8_weights_free(&l.packed, &allocator);
    }
}
END_TEST

/* The largest sums of the longest rows, also less zero * the weights' sum. */
START_TEST(the_longest_sums_fit) {
    const sl_int8_loops *loops = tier(_i);
    const size_t in = SL_INT8_MAX_INPUTS;
    if (!loops) return;
    for (int i = 0; i < 8; i++) {
        int8_t weight = i & 1 ? -128 : 127;
        const int input = i & 2 ? 255 : 0, zero = i & 4 ? 255 : 0;
        const sl_int8_range own = {1, zero};
        const float factor[SL_PANEL_BLOCK] = {1}, bias[SL_PANEL_BLOCK] = {0};
        int8_t *codes = malloc(in);
        uint8_t *src = calloc(sl_int8_pitch(in), 1);
        sl_int8_weights packed;
        float out;
        ck_assert(codes && src);
        memset(codes, weight, in);
        memset(src, input, in);
        ck_assert_int_eq(sl_int8_pack(codes, in, 1, &allocator, &packed), SL_OK);
        sl_int8_product p = {.weights = &packed,
                             .group_count = sl_int8_groups(in),
                             .src = src,
                             .rows = 1,
                             .src_pitch = sl_int8_pitch(in),
                             .zero_sums = packed.column_sums,
                             .factor = factor,
                             .bias = bias,
                             .row_ranges = &own,
                             .floats = &out,
                             .dst_pitch = 1};
        loops->product(&p);
        ck_assert_float_eq(out, (float)((int64_t)(input - zero) * weight * (int64_t)in));
        sl_int8_weights_free(&packed, &allocator);
        free(codes);
        free(src);
    }
}
END_TEST

START_TEST(values_become_codes) {
    const sl_int8_loops *loops = tier(_i);
    if (!loops) return;
    for (size_t n = 0; n < 70; n++) {
        float values[72];
        uint8_t codes[72];
        sl_int8_range range = {0.037f, (int32_t)(n * 3)};
        for (size_t i = 0; i < 72; i++)
            values[i] = (float)(20 * (sl_random_unit(n, i) - 0.5));
        values[0] = NAN;
        values[1] = INFINITY;
        values[2] = -INFINITY;
        values[3] = 0;
        values[4] = 3.0e38f;
        memset(codes, 0x5a, sizeof codes);
        loops->quantise(values, n, &range, codes);
        for (size_t i = 0; i < 72; i++) {
            float value = values[i] * (1 / range.scale);
            ck_assert_uint_eq(codes[i], i < n ? code_of(value + (float)range.zero) : 0x5a);
        }
        if (n > 3) ck_assert_uint_eq(codes[3], (unsigned)range.zero);
    }
}
END_TEST

START_TEST(extents_of_values) {
    const sl_int8_loops *loops = tier(_i);
    if (!loops) return;
    for (size_t n = 0; n < 70; n++) {
        float values[72], low, high, least = 0, largest = 0;
        for (size_t i = 0; i < 72; i++)
            values[i] = i < n ? (float)(20 * (sl_random_unit(n, i) - 0.4)) : 1000;
        if (n > 5) values[5] = NAN;
        for (size_t i = 0; i < n; i++) {
            least = values[i] < least ? values[i] : least;
            largest = values[i] > largest ? values[i] : largest;
        }
        loops->extent(values, n, &low, &high);
        ck_assert_float_eq(low, least);
        ck_assert_float_eq(high, largest);
    }
}
END_TEST

START_TEST(ranges_have_a_zero) {
    static const float limits[][2] = {{0, 0}, {0, 3}, {-2, 0}, {-1, 5}, {2, 5}, {-7, -3}, {-3e38f, 3e38f}, {0, 1e-42f}};
    const sl_int8_range none = sl_int8_range_of(-INFINITY, INFINITY);
    ck_assert(none.scale == 1 && none.zero == 0);
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        sl_int8_range range = sl_int8_range_of(limits[i][0], limits[i][1]);
        ck_assert(range.scale > 0 && isfinite(range.scale));
        ck_assert(range.zero >= 0 && range.zero <= 255);
        /* Limits are within half a step of the values of the first and the last code. */
        ck_assert_float_ge((255.5f - (float)range.zero) * range.scale, limits[i][1] * 0.999f);
        ck_assert_float_le((-0.5f - (float)range.zero) * range.scale, limits[i][0] * 0.999f);
    }
}
END_TEST

int main(void) {
    allocator = sl_allocator_of(NULL);
    TCase *tests = tcase_create("int8");
    tcase_add_loop_test(tests, products_are_exact, 0, SL_ISA_COUNT + 1);
    tcase_add_loop_test(tests, parts_of_the_inputs, 0, SL_ISA_COUNT + 1);
    tcase_add_loop_test(tests, nothing_saturates, 0, SL_ISA_COUNT + 1);
    tcase_add_loop_test(tests, the_longest_sums_fit, 0, SL_ISA_COUNT + 1);
    tcase_add_loop_test(tests, values_become_codes, 0, SL_ISA_COUNT + 1);
    tcase_add_loop_test(tests, extents_of_values, 0, SL_ISA_COUNT + 1);
    tcase_add_test(tests, ranges_have_a_zero);
    return check_main("int8", &tests, 1);
}
