/* bf16 products of every tier of this machine: any size, any part of the inputs, and no access after the outputs. Sums
 * of small whole numbers are exact in any order, so results are compared bit for bit. */
#include "base/cpu.h"
#include "base/random.h"
#include "ranker/net/bf16.h"
#include "tests/support/check_main.h"

#include <math.h>
#include <stdlib.h>

enum { MOST_IN = 150, MOST_OUT = 144, MOST_ROWS = 14, GUARD = 77 };

static const size_t ins[] = {1, 2, 3, 31, 65, MOST_IN};
static const size_t outs[] = {1, 15, 16, 17, 63, 65, 100, MOST_OUT};
static sl_allocator allocator;

typedef struct layer {
    uint16_t numbers[MOST_IN * MOST_OUT], src[MOST_ROWS * MOST_IN];
    float bias[MOST_OUT];
    sl_bf16_weights packed;
} layer;

/* Returns a whole number from -most to most. bf16 has all of them up to 256. */
static uint16_t whole(uint64_t seed, uint64_t at, int most) {
    float value = (float)((int)(sl_random_unit(seed, at) * (2 * most + 1)) - most);
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (uint16_t)(bits >> 16);
}

static void fill_layer(layer *l, size_t in, size_t out, uint64_t seed) {
    size_t pitch = SL_BF16_GROUP * sl_bf16_groups(in);
    memset(l, 0, sizeof *l);
    for (size_t i = 0; i < in * out; i++)
        l->numbers[i] = whole(seed, i, 100);
    for (size_t i = 0; i < MOST_ROWS * pitch; i++)
        l->src[i] = whole(seed + 1, i, 200);
    for (size_t o = 0; o < out; o++)
        l->bias[o] = (float)(int)(1000 * (sl_random_unit(seed + 2, o) - 0.5));
    ck_assert_int_eq(sl_bf16_pack(l->numbers, in, out, &allocator, &l->packed), SL_OK);
}

/* Returns the output over the groups of the product. */
static float reference(const layer *l, const sl_bf16_product *p, size_t r, size_t o) {
    double sum = (double)p->bias[o];
    for (size_t g = 0; g < SL_BF16_GROUP * p->group_count; g++) {
        size_t i = SL_BF16_GROUP * p->first_group + g;
        if (i < l->packed.in)
            sum += (double)sl_bf16_value(p->src[r * p->src_pitch + g]) *
                   (double)sl_bf16_value(l->numbers[i * l->packed.out + o]);
    }
    return (float)sum;
}

static void compare_floats(const sl_bf16_loops *loops, const layer *l, sl_bf16_product p) {
    static float out[MOST_ROWS * (MOST_OUT + 3) + GUARD];
    p.dst_pitch = l->packed.out + 3;
    for (size_t i = 0; i < sizeof out / sizeof *out; i++)
        out[i] = -77.5f;
    p.floats = out;
    loops->product(&p);
    for (size_t i = 0; i < sizeof out / sizeof *out; i++) {
        size_t r = i / p.dst_pitch, o = i % p.dst_pitch;
        float wanted = r < p.rows && o < l->packed.out ? reference(l, &p, r, o) : -77.5f;
        ck_assert_msg(memcmp(&wanted, &out[i], sizeof wanted) == 0,
                      "%s, %zu x %zu x %zu, row %zu output %zu: %a not %a", loops->name, p.rows, l->packed.in,
                      l->packed.out, r, o, (double)out[i], (double)wanted);
    }
}

/* Rounds to the nearest number of 8 digits, ties to even. */
static float rounded(float value) {
    int exponent;
    if (!(value > 0)) return 0;
    frexpf(value, &exponent);
    return ldexpf(rintf(ldexpf(value, 8 - exponent)), exponent - 8);
}

static void compare_rounded(const sl_bf16_loops *loops, const layer *l, sl_bf16_product p) {
    static uint16_t out[MOST_ROWS * (MOST_OUT + 16) + GUARD];
    size_t blocks = sl_round_up(l->packed.out, SL_PANEL_BLOCK);
    p.dst_pitch = blocks + 16;
    memset(out, 0xa5, sizeof out);
    p.numbers = out;
    loops->product(&p);
    for (size_t i = 0; i < sizeof out / sizeof *out; i++) {
        size_t r = i / p.dst_pitch, o = i % p.dst_pitch;
        if (r < p.rows && o < l->packed.out)
            ck_assert_float_eq(sl_bf16_value(out[i]), rounded(reference(l, &p, r, o)));
        else if (r < p.rows && o < SL_BF16_GROUP * sl_bf16_groups(l->packed.out))
            ck_assert_uint_eq(out[i], 0); /* pads the last group of the next layer's inputs */
        else if (r >= p.rows || o >= blocks)
            ck_assert_uint_eq(out[i], 0xa5a5);
    }
}

static sl_bf16_product product_of(const layer *l, size_t rows) {
    return (sl_bf16_product){.weights = &l->packed,
                             .group_count = sl_bf16_groups(l->packed.in),
                             .src = l->src,
                             .rows = rows,
                             .src_pitch = SL_BF16_GROUP * sl_bf16_groups(l->packed.in),
                             .bias = l->bias};
}

START_TEST(products_are_exact) {
    const sl_bf16_loops *loops = sl_bf16_of((sl_isa)_i);
    static layer l;
    if (!loops) return;
    for (size_t i = 0; i < sizeof ins / sizeof *ins; i++)
        for (size_t o = 0; o < sizeof outs / sizeof *outs; o++) {
            fill_layer(&l, ins[i], outs[o], 100 * i + o);
            sl_bf16_product p = product_of(&l, 1 + (i * 5 + o) % MOST_ROWS);
            compare_floats(loops, &l, p);
            compare_rounded(loops, &l, p);
            sl_bf16_weights_free(&l.packed, &allocator);
        }
}
END_TEST

START_TEST(parts_of_the_inputs) {
    const sl_bf16_loops *loops = sl_bf16_of((sl_isa)_i);
    static layer l;
    if (!loops) return;
    fill_layer(&l, 66, 100, 5);
    for (size_t first = 0; first < 33; first += 3)
        for (size_t count = 0; first + count <= 33; count += 5) {
            sl_bf16_product p = product_of(&l, 9);
            p.first_group = first;
            p.group_count = count;
            compare_floats(loops, &l, p);
        }
    sl_bf16_weights_free(&l.packed, &allocator);
}
END_TEST

/* NaN and infinity reach the outputs of their own row, and survive the ReLU. */
START_TEST(strange_inputs_are_told) {
    const sl_bf16_loops *loops = sl_bf16_of((sl_isa)_i);
    static layer l;
    static uint16_t out[MOST_ROWS * MOST_OUT];
    if (!loops) return;
    fill_layer(&l, 64, 48, 6);
    sl_bf16_product p = product_of(&l, 5);
    l.src[1 * p.src_pitch + 7] = 0x7fc0;
    l.src[3 * p.src_pitch + 8] = 0x7f80;
    p.numbers = out;
    p.dst_pitch = MOST_OUT;
    loops->product(&p);
    for (size_t r = 0; r < 5; r++)
        for (size_t o = 0; o < 48; o++) {
            float value = sl_bf16_value(out[r * MOST_OUT + o]);
            ck_assert(r != 1 || isnan(value));
            ck_assert(r % 2 || isfinite(value));
            ck_assert(r != 3 || !isfinite(value) || value == 0);
        }
    sl_bf16_weights_free(&l.packed, &allocator);
}
END_TEST

/* bf16 instructions are used if the processor has them, at their own tiers only. */
START_TEST(the_tier_has_the_instructions) {
    const sl_bf16_loops *best = sl_bf16_of(SL_ISA_AVX512VNNI), *lower = sl_bf16_of(SL_ISA_AVX512BW);
    if (best) ck_assert_str_eq(best->name, sl_cpu_has_avx512bf16() ? "avx512bf16" : "avx512bw");
    if (lower) ck_assert_str_eq(lower->name, "avx512bw");
    ck_assert_ptr_null(sl_bf16_of(SL_ISA_COUNT));
    ck_assert_str_eq(sl_bf16_of(SL_ISA_SCALAR)->name, "scalar");
    ck_assert_ptr_eq(sl_bf16_get(), sl_bf16_of(sl_cpu_tier()));
}
END_TEST

int main(void) {
    allocator = sl_allocator_of(NULL);
    TCase *tests = tcase_create("bf16");
    tcase_add_loop_test(tests, products_are_exact, 0, SL_ISA_COUNT);
    tcase_add_loop_test(tests, parts_of_the_inputs, 0, SL_ISA_COUNT);
    tcase_add_loop_test(tests, strange_inputs_are_told, 0, SL_ISA_COUNT);
    tcase_add_test(tests, the_tier_has_the_instructions);
    return check_main("bf16", &tests, 1);
}
