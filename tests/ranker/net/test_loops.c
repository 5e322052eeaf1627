/* The loops of every tier of this machine, by name, against double arithmetic: any length, any alignment, and no access
 * after the end. */
#include "base/cpu.h"
#include "base/random.h"
#include "distance/codec/convert.h"
#include "ranker/net/loops.h"
#include "tests/support/check_main.h"
#include "tests/support/net_reference.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 300, GUARD = 20 };
#define SENTINEL (-12345.0f)

static const size_t lengths[] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  11, 13, 15, 16, 17,  19,  23,  27,
                                 31, 32, 33, 37, 45, 47, 48, 49, 57, 63, 64, 65, 67, 97, 128, 133, 255, MOST};
enum { LENGTHS = sizeof lengths / sizeof *lengths };

/* Each loop test runs for every tier. The suite prints their number. */
static const sl_loops *tier(int i) {
    const sl_loops *loops = sl_loops_of((sl_isa)i);
    if (!loops) return NULL;
    ck_assert_ptr_nonnull(loops->name);
    return loops;
}

/* Arrays of n numbers at an odd address, followed by a guard. */
typedef struct array {
    float room[MOST + 2 * GUARD];
    float *at;
    size_t n;
} array;

static void fill_array(array *a, size_t n, size_t shift, double scale, uint64_t seed) {
    for (size_t i = 0; i < MOST + 2 * GUARD; i++)
        a->room[i] = SENTINEL;
    a->at = a->room + shift;
    a->n = n;
    for (size_t i = 0; i < n; i++)
        a->at[i] = (float)(scale * (2 * sl_random_unit(seed, i) - 1));
}

static int guarded(const array *a) {
    for (const float *p = a->room; p < a->room + MOST + 2 * GUARD; p++)
        if ((p < a->at || p >= a->at + a->n) && *p != SENTINEL) return 0;
    return 1;
}

#define FOR_LENGTHS(n, shift)                                                                                          \
    for (size_t length_ = 0, n = lengths[0]; length_ < LENGTHS; n = lengths[++length_ % LENGTHS])                      \
        for (size_t shift = 0; shift < 4; shift++)

static double act_tolerance(double z, sl_activation activation) {
    return activation == SL_GELU ? 4e-7 * (1 + fabs(z)) : 4e-7 * (1 + (activation == SL_TANH ? 0 : fabs(z)));
}

START_TEST(join_adds_and_activates) {
    const sl_loops *loops = tier(_i);
    if (!loops) return;
    array user, item, pair, out;
    FOR_LENGTHS(n, shift) for (int activation = SL_RELU; activation <= SL_LINEAR; activation++) {
        for (int with_pair = 0; with_pair < 2; with_pair++) {
            fill_array(&user, n, shift, 6, 1);
            fill_array(&item, n, (shift + 1) % 4, 6, 2);
            fill_array(&pair, n, (shift + 2) % 4, 6, 3);
            fill_array(&out, n, (shift + 3) % 4, 1, 4);
            const sl_first_row row = {
                .user = user.at, .item = item.at, .pair = with_pair ? pair.at : NULL, .item_type = SL_F32};
            loops->join(&row, n, (sl_activation)activation, out.at);
            ck_assert(guarded(&out) && guarded(&user));
            for (size_t i = 0; i < n; i++) {
                double z = (double)user.at[i] + (double)item.at[i] + (with_pair ? (double)pair.at[i] : 0);
                ck_assert_double_eq_tol((double)out.at[i], reference_act(z, (sl_activation)activation),
                                        act_tolerance(20, (sl_activation)activation));
            }
        }
    }
}
END_TEST

/* An item's part of each type, at an odd address, followed by a guard that would show in a sum. */
typedef struct packed_item {
    uint8_t room[2 * MOST + 64];
    const void *at;
    float values[MOST]; /* the elements' values */
    float scale;
} packed_item;

static void pack(packed_item *item, sl_dtype type, size_t n, size_t shift) {
    size_t size = type == SL_BF16 ? 2 : 1;
    uint8_t *to = item->room + shift * size;
    memset(item->room, 0x7f, sizeof item->room);
    item->at = to;
    item->scale = 0.03125f * 1.3f;
    for (size_t i = 0; i < n; i++) {
        uint64_t bits = sl_random_at(type, i);
        if (type == SL_BF16) {
            uint16_t half = (uint16_t)((bits & 0x807f) | (0x3d00 + (bits >> 20 & 0x3ff)));
            uint32_t whole = (uint32_t)half << 16;
            memcpy(to + 2 * i, &half, sizeof half);
            memcpy(&item->values[i], &whole, sizeof whole);
        } else {
            int8_t code = i ? (int8_t)(bits & 0xff) : -128;
            memcpy(to + i, &code, 1);
            item->values[i] = (float)code * item->scale;
        }
    }
}

/* Every tier rounds each sum once, so the expected bits are known. */
START_TEST(joined_parts_are_exact) {
    const sl_loops *loops = tier(_i);
    if (!loops) return;
    static const sl_dtype types[] = {SL_BF16, SL_I8};
    static packed_item item;
    array user, pair, out, same;
    FOR_LENGTHS(n, shift) for (size_t t = 0; t < 2; t++) {
        pack(&item, types[t], n, shift);
        for (int with_pair = 0; with_pair < 2; with_pair++) {
            fill_array(&user, n, shift, 6, 1);
            fill_array(&pair, n, (shift + 2) % 4, 6, 3);
            sl_first_row row = {user.at, item.at, with_pair ? pair.at : NULL, types[t], item.scale};
            const sl_first_row floats = {user.at, item.values, row.pair, SL_F32, 1};
            for (int activation = SL_RELU; activation <= SL_LINEAR; activation++) {
                fill_array(&out, n, (shift + 3) % 4, 1, 4);
                fill_array(&same, n, (shift + 3) % 4, 1, 5);
                loops->join(&row, n, (sl_activation)activation, out.at);
                loops->join(&floats, n, (sl_activation)activation, same.at);
                ck_assert(guarded(&out));
                ck_assert_mem_eq(out.at, same.at, n * sizeof *out.at);
            }
            for (size_t i = 0; i < n; i++) {
                float sum = user.at[i] + item.values[i];
                if (with_pair) sum += pair.at[i];
                ck_assert(out.at[i] == sum);
            }
        }
    }
}
END_TEST

/* A part of NaN, or a scale of NaN, gives NaN with every activation. */
START_TEST(joined_nan_stays) {
    const sl_loops *loops = tier(_i);
    if (!loops) return;
    const float user[3] = {1, -1, 0};
    const uint16_t halves[3] = {0x7fc0, 0xffc0, 0x7fc0};
    const int8_t bytes[3] = {0, 127, -127};
    const sl_first_row rows[] = {{user, halves, NULL, SL_BF16, 1}, {user, bytes, NULL, SL_I8, NAN}};
    for (size_t r = 0; r < 2; r++) {
        for (int activation = SL_RELU; activation <= SL_LINEAR; activation++) {
            float out[3];
            loops->join(&rows[r], 3, (sl_activation)activation, out);
            for (size_t i = 0; i < 3; i++)
                ck_assert(isnan(out[i]));
        }
    }
}
END_TEST

START_TEST(activations_over_all_magnitudes) {
    const sl_loops *loops = tier(_i);
    if (!loops) return;
    for (int activation = SL_RELU; activation <= SL_LINEAR; activation++) {
        for (int exponent = -60; exponent < 240; exponent++) {
            float z[2] = {ldexpf(1.3f, exponent / 2), -ldexpf(1.7f, exponent / 2)}, out[2];
            loops->activate(z, 2, (sl_activation)activation, out);
            for (size_t i = 0; i < 2; i++)
                ck_assert_double_eq_tol((double)out[i], reference_act((double)z[i], (sl_activation)activation),
                                        act_tolerance((double)z[i], (sl_activation)activation));
        }
        float special[3] = {NAN, INFINITY, 0}, out[3];
        loops->activate(special, 3, (sl_activation)activation, out);
        ck_assert(isnan(out[0]));
        ck_assert(out[1] == (activation == SL_TANH ? 1 : INFINITY));
        ck_assert(out[2] == 0);
        /* In place. */
        loops->activate(special, 3, (sl_activation)activation, special);
        ck_assert_mem_eq(special + 1, out + 1, 2 * sizeof *out);
    }
}
END_TEST

START_TEST(sigmoids) {
    const sl_loops *loops = tier(_i);
    if (!loops) return;
    float values[67];
    for (size_t n = 0; n <= 67; n++) {
        for (size_t i = 0; i < n; i++)
            values[i] = (float)i * 3.1f - 103.0f + (float)n;
        loops->sigmoid(values, n);
        for (size_t i = 0; i < n; i++) {
            double z = (double)((float)i * 3.1f - 103.0f + (float)n), expected = 1 / (1 + exp(-z));
            ck_assert_double_eq_tol((double)values[i], expected, expected * 4e-7 + (z < -86 ? 2e-38 : 0));
        }
    }
    float special[4] = {NAN, INFINITY, -INFINITY, 0};
    loops->sigmoid(special, 4);
    ck_assert(isnan(special[0]));
    ck_assert(special[1] == 1 && special[2] == 0 && special[3] == 0.5f);
}
END_TEST

START_TEST(sums) {
    const sl_loops *loops = tier(_i);
    if (!loops) return;
    array to, before, from;
    FOR_LENGTHS(n, shift) {
        fill_array(&to, n, shift, 3, 1);
        before = to;
        fill_array(&from, n, (shift + 1) % 4, 3, 2);
        loops->add(to.at, from.at, n);
        ck_assert(guarded(&to));
        for (size_t i = 0; i < n; i++)
            ck_assert(to.at[i] == before.room[shift + i] + from.at[i]);
        to.at = memcpy(to.room, before.room, sizeof before.room);
        to.at += shift;
        loops->add_scaled(to.at, from.at, -0.75f, n);
        ck_assert(guarded(&to));
        double sum = 0, size = 0;
        for (size_t i = 0; i < n; i++) {
            double x = (double)before.room[shift + i], y = (double)from.at[i];
            ck_assert_double_eq_tol((double)to.at[i], x - 0.75 * y, 1e-6);
            sum += x * y;
            size += fabs(x * y);
        }
        ck_assert_double_eq_tol((double)loops->dot(before.room + shift, from.at, n), sum, size * 1e-6 + 1e-30);
    }
}
END_TEST

static double slope(double z, sl_activation activation) {
    const double h = 1e-5;
    if (activation == SL_RELU) return z > 0; /* a finite difference would cross the corner */
    return (reference_act(z + h, activation) - reference_act(z - h, activation)) / (2 * h);
}

START_TEST(backward_multiplies_and_sums) {
    const sl_loops *loops = tier(_i);
    if (!loops) return;
    enum { ROWS = 3 };
    for (size_t n = 1; n <= 67; n++) {
        for (int activation = SL_RELU; activation <= SL_LINEAR; activation++) {
            array out, gradient, sums;
            double z[ROWS * 67], before[ROWS * 67], total[67] = {0};
            const float scale = activation == SL_TANH ? 1.25f : 1;
            size_t all = ROWS * n;
            fill_array(&out, all, n % 4, 3, n);
            fill_array(&gradient, all, (n + 1) % 4, 2, n + 1);
            fill_array(&sums, n, (n + 2) % 4, 2, n + 2);
            for (size_t i = 0; i < all; i++) {
                z[i] = (double)out.at[i];
                before[i] = (double)gradient.at[i];
                if (activation != SL_GELU) out.at[i] = (float)reference_act(z[i], (sl_activation)activation) * scale;
            }
            for (size_t i = 0; i < n; i++)
                total[i] = (double)sums.at[i];
            loops->backward(out.at, gradient.at, ROWS, n, (sl_activation)activation, scale, sums.at);
            ck_assert(guarded(&gradient) && guarded(&sums) && guarded(&out));
            for (size_t i = 0; i < all; i++) {
                double expected = before[i] * slope(z[i], (sl_activation)activation);
                ck_assert_double_eq_tol((double)gradient.at[i], expected, 3e-6);
                total[i % n] += expected;
            }
            for (size_t i = 0; i < n; i++)
                ck_assert_double_eq_tol((double)sums.at[i], total[i], 1e-5);
        }
    }
}
END_TEST

START_TEST(products) {
    const sl_loops *loops = tier(_i);
    if (!loops) return;
    enum { ROWS = 7, IN = 9, STRIDE = 11 };
    for (size_t out = 1; out <= 67; out++) {
        for (size_t rows = 0; rows <= ROWS; rows++) {
            float *src = reference_numbers(ROWS * STRIDE, 1, 1), *weights = reference_numbers(IN * out, 1, 2);
            float *bias = reference_numbers(out, 1, 3), *dst = reference_numbers(ROWS * out, 1, 4);
            for (int with_bias = 0; with_bias < 2; with_bias++) {
                sl_plain_product product = {.src = src,
                                            .weights = weights,
                                            .bias = with_bias ? bias : NULL,
                                            .stride = STRIDE,
                                            .rows = rows,
                                            .in = IN,
                                            .out = out,
                                            .dst = dst};
                float kept = rows < ROWS ? dst[rows * out] : 0;
                loops->product(&product);
                ck_assert(rows == ROWS || dst[rows * out] == kept);
                for (size_t i = 0; i < rows * out; i++) {
                    double sum = with_bias ? (double)bias[i % out] : 0;
                    for (size_t k = 0; k < IN; k++)
                        sum += (double)src[i / out * STRIDE + k] * (double)weights[k * out + i % out];
                    ck_assert_double_eq_tol((double)dst[i], sum, 2e-6);
                }
            }
            free(src);
            free(weights);
            free(bias);
            free(dst);
        }
    }
}
END_TEST

/* Every tier gives the same bits. The dropped share is the requested one. A row's draws do not depend on other rows. */
START_TEST(dropout_by_rows) {
    const sl_loops *loops = tier(_i), *scalar = sl_loops_of(SL_ISA_SCALAR);
    if (!loops) return;
    enum { ROWS = 200 };
    for (size_t n = 1; n <= 67; n++) {
        sl_dropout drop = {99, 0, 65536 / 4, 4.0f / 3};
        float *values = reference_numbers(ROWS * n, 1, 1), *parts = reference_numbers(ROWS * n, 1, 1);
        float *reference = reference_numbers(ROWS * n, 1, 1), *before = reference_numbers(ROWS * n, 1, 1);
        loops->dropout(values, ROWS, n, &drop);
        scalar->dropout(reference, ROWS, n, &drop);
        ck_assert_mem_eq(values, reference, ROWS * n * sizeof(float));
        loops->dropout(parts, 77, n, &drop);
        drop.first_row = 77;
        loops->dropout(parts + 77 * n, ROWS - 77, n, &drop);
        ck_assert_mem_eq(values, parts, ROWS * n * sizeof(float));
        size_t dropped = 0;
        for (size_t i = 0; i < ROWS * n; i++) {
            dropped += values[i] == 0;
            ck_assert(values[i] == 0 || values[i] == before[i] * drop.scale);
        }
        double share = (double)dropped / (double)(ROWS * n);
        ck_assert_double_eq_tol(share, 0.25, 5 * sqrt(0.25 * 0.75 / (double)(ROWS * n)));
        free(values);
        free(parts);
        free(reference);
        free(before);
    }
}
END_TEST

static float float_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void check_rounding(const sl_loops *loops, sl_dtype type, const float *from, size_t n) {
    uint16_t narrow[MOST + 1], expected[MOST];
    float rounded[MOST + 1], value[MOST];
    narrow[n] = 0xabcd;
    rounded[n] = SENTINEL;
    loops->narrow(from, n, type, narrow);
    loops->round(from, n, type, rounded);
    ck_assert(narrow[n] == 0xabcd && rounded[n] == SENTINEL);
    sl_from_float(type, from, expected, n);
    sl_to_float(type, expected, value, n);
    for (size_t i = 0; i < n; i++) {
        float back;
        sl_to_float(type, &narrow[i], &back, 1);
        if (isnan(from[i])) {
            ck_assert(isnan(back) && isnan(rounded[i]));
            continue;
        }
        ck_assert_msg(narrow[i] == expected[i], "%a becomes %#x, not %#x", (double)from[i], narrow[i], expected[i]);
        ck_assert_mem_eq(&rounded[i], &value[i], sizeof *value);
    }
}

/* Rounding equals distance/codec's, for numbers of every exponent, middles between two numbers, and their
 * neighbours. */
START_TEST(rounding_to_16_bits) {
    const sl_loops *loops = tier(_i);
    if (!loops) return;
    for (sl_dtype type = SL_F16; type <= SL_BF16; type = type == SL_F16 ? SL_BF16 : (sl_dtype)(SL_BF16 + 1)) {
        uint32_t shift = type == SL_BF16 ? 16 : 13;
        float values[MOST];
        for (uint32_t exponent = 0; exponent < 256; exponent++) {
            size_t n = 0;
            for (uint32_t i = 0; i < 16; i++) {
                uint32_t sign = (i & 1) << 31, digits = (uint32_t)sl_random_at(exponent, i) & (0x7fffffu >> shift);
                uint32_t half = sign | exponent << 23 | digits << shift | 1u << (shift - 1);
                values[n++] = float_of(half);
                values[n++] = float_of(half - 1);
                values[n++] = float_of(half + 1);
                values[n++] = float_of(sign | exponent << 23 | ((uint32_t)sl_random_at(exponent, i + 99) & 0x7fffffu));
            }
            check_rounding(loops, type, values, n);
        }
        const float edges[] = {0,        -0.0f,    65504,           65519.996f, 65520,    -65520,
                               1e30f,    INFINITY, -INFINITY,       NAN,        0x1p-14f, 0x1.ffcp-15f,
                               0x1p-24f, 0x1p-25f, 0x1.000002p-25f, 0x1.8p-24f, 3.4e38f,  1e-45f};
        check_rounding(loops, type, edges, sizeof edges / sizeof *edges);
        for (size_t n = 0; n <= 67; n++)
            check_rounding(loops, type, values + n % 4, n < 60 ? n : 60);
    }
}
END_TEST

START_TEST(unscaling_finds_what_is_not_finite) {
    const sl_loops *loops = tier(_i);
    if (!loops) return;
    array values, before;
    const float strange[] = {INFINITY, -INFINITY, NAN};
    FOR_LENGTHS(n, shift) {
        fill_array(&values, n, shift, 3e38, 1);
        before = values;
        ck_assert_int_ne(loops->unscale(values.at, n, 0.25f), 0);
        ck_assert(guarded(&values));
        for (size_t i = 0; i < n; i++)
            ck_assert(values.at[i] == before.room[shift + i] * 0.25f);
        for (size_t i = 0; i < n; i++) {
            float kept = values.at[i];
            values.at[i] = strange[i % 3];
            ck_assert_int_eq(loops->unscale(values.at, n, 1), 0);
            values.at[i] = kept;
        }
    }
}
END_TEST

START_TEST(optimisers) {
    const sl_loops *loops = tier(_i);
    if (!loops) return;
    array w, s, m, v, g, w2;
    FOR_LENGTHS(n, shift) {
        fill_array(&w, n, shift, 1, 1);
        w2 = w;
        w2.at = w2.room + shift;
        fill_array(&s, n, (shift + 1) % 4, 0, 2);
        fill_array(&m, n, (shift + 2) % 4, 0, 2);
        fill_array(&v, n, (shift + 3) % 4, 0, 2);
        double x[MOST], y[MOST], sum[MOST] = {0}, first[MOST] = {0}, second[MOST] = {0};
        for (size_t i = 0; i < n; i++)
            x[i] = y[i] = (double)w.at[i];
        for (int t = 1; t <= 5; t++) {
            sl_step step = {.rate = 0.05f, .l2 = 0.01f, .beta1 = 0.9f, .beta2 = 0.999f, .epsilon = 1e-8f};
            step.correct1 = (float)(1 / (1 - pow(0.9, t)));
            step.correct2 = (float)(1 / (1 - pow(0.999, t)));
            fill_array(&g, n, shift, 1, (uint64_t)(10 + t));
            loops->adagrad(w.at, s.at, g.at, n, &step);
            loops->adam(w2.at, m.at, v.at, g.at, n, &step);
            for (size_t i = 0; i < n; i++) {
                double gx = (double)g.at[i] + 0.01 * x[i], gy = (double)g.at[i] + 0.01 * y[i];
                sum[i] += gx * gx;
                x[i] -= 0.05 * gx / (sqrt(sum[i]) + 1e-8);
                first[i] = 0.9 * first[i] + 0.1 * gy;
                second[i] = 0.999 * second[i] + 0.001 * gy * gy;
                y[i] -= 0.05 * (first[i] / (1 - pow(0.9, t))) / (sqrt(second[i] / (1 - pow(0.999, t))) + 1e-8);
            }
        }
        ck_assert(guarded(&w) && guarded(&w2) && guarded(&s) && guarded(&m) && guarded(&v) && guarded(&g));
        for (size_t i = 0; i < n; i++) {
            ck_assert_double_eq_tol((double)w.at[i], x[i], 2e-6);
            ck_assert_double_eq_tol((double)w2.at[i], y[i], 5e-6);
            ck_assert_double_eq_tol((double)s.at[i], sum[i], 2e-6);
        }
    }
}
END_TEST

/* Returns the value of code i by definition. */
static double decoded(const uint8_t *codes, int bits, size_t i, float scale, float offset) {
    unsigned code = bits == 8 ? codes[i] : (unsigned)codes[i / 2] >> 4 * (i % 2) & 15u;
    return (double)offset + (double)scale * code;
}

/* Blocks have the exact size, so that a sanitizer sees one byte too many. */
START_TEST(codes_are_decoded) {
    const sl_loops *loops = tier(_i / 2);
    const int bits = _i % 2 ? 8 : 4;
    if (!loops) return;
    array out;
    FOR_LENGTHS(n, shift) for (int how = SL_DECODE_SET; how <= SL_DECODE_MAX; how++) {
        size_t bytes = (n * (size_t)bits + 7) / 8 + SL_CODES_SLACK;
        uint8_t *codes = malloc(bytes);
        float before[MOST];
        for (size_t i = 0; i < bytes; i++)
            codes[i] = (uint8_t)(i == 1 ? 255 : sl_random_at(n, i));
        fill_array(&out, n, shift, 3, 5);
        memcpy(before, out.at, n * sizeof *before);
        (bits == 8 ? loops->decode8 : loops->decode4)(codes, 0.03f, -2.5f, n, (sl_decode)how, out.at);
        ck_assert(guarded(&out));
        for (size_t i = 0; i < n; i++) {
            double x = decoded(codes, bits, i, 0.03f, -2.5f), was = (double)before[i];
            double wanted = how == SL_DECODE_SET ? x : how == SL_DECODE_ADD ? was + x : fmax(was, x);
            ck_assert_double_eq_tol((double)out.at[i], wanted, 2e-6);
        }
        free(codes);
    }
}
END_TEST

START_TEST(the_tier_in_use) {
    ck_assert_ptr_eq(sl_loops_get(), sl_loops_of(sl_cpu_tier()));
    ck_assert_ptr_null(sl_loops_of(SL_ISA_COUNT));
    size_t tiers = 0;
    for (int isa = 0; isa < SL_ISA_COUNT; isa++)
        tiers += sl_loops_of((sl_isa)isa) != NULL;
    ck_assert_uint_ge(tiers, 1);
    ck_assert_int_eq(sl_loops_of(SL_ISA_AVX2) != NULL, sl_cpu_tiers() >> SL_ISA_AVX2 & 1);
    ck_assert_int_eq(sl_loops_of(SL_ISA_AVX512BW) != NULL, sl_cpu_tiers() >> SL_ISA_AVX512BW & 1);
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("loops");
    tcase_add_test(tests, the_tier_in_use);
    tcase_add_loop_test(tests, join_adds_and_activates, 0, SL_ISA_COUNT);
    tcase_add_loop_test(tests, joined_parts_are_exact, 0, SL_ISA_COUNT);
    tcase_add_loop_test(tests, joined_nan_stays, 0, SL_ISA_COUNT);
    tcase_add_loop_test(tests, activations_over_all_magnitudes, 0, SL_ISA_COUNT);
    tcase_add_loop_test(tests, sigmoids, 0, SL_ISA_COUNT);
    tcase_add_loop_test(tests, sums, 0, SL_ISA_COUNT);
    tcase_add_loop_test(tests, backward_multiplies_and_sums, 0, SL_ISA_COUNT);
    tcase_add_loop_test(tests, products, 0, SL_ISA_COUNT);
    tcase_add_loop_test(tests, dropout_by_rows, 0, SL_ISA_COUNT);
    tcase_add_loop_test(tests, rounding_to_16_bits, 0, SL_ISA_COUNT);
    tcase_add_loop_test(tests, unscaling_finds_what_is_not_finite, 0, SL_ISA_COUNT);
    tcase_add_loop_test(tests, optimisers, 0, SL_ISA_COUNT);
    tcase_add_loop_test(tests, codes_are_decoded, 0, 2 * SL_ISA_COUNT);
    return check_main("loops", &tests, 1);
}
