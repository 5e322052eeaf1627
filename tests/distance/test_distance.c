/* Every tier's kernels against plain loops, the choice of a tier, conversions, and the public score. */
#define _GNU_SOURCE
#include "base/cpu.h"
#include "base/random.h"
#include "distance/codec/codec.h"
#include "tests/distance/kernel_checks.h"
#include "tests/support/check_main.h"

#include <check.h>
#include <float.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *program;

/* The tiers under test: all that this machine has, or scalar and the one that SHORTLIST_MAX_ISA names. */
static const sl_kernels *tiers[SL_ISA_COUNT + 1];
static int tier_count;

static void find_tiers(void) {
    for (int isa = 0; isa < SL_ISA_COUNT; isa++) {
        const sl_kernels *kernels = sl_kernels_of((sl_isa)isa);
        int wanted = sl_cpu_cap() == SL_ISA_COUNT || isa == SL_ISA_SCALAR || (int)sl_cpu_cap() == isa;
        if (kernels && wanted) tiers[tier_count++] = kernels;
    }
#if defined(__x86_64__)
    if (sl_cpu_cap() == SL_ISA_COUNT && avxvnni_by_evex()) tiers[tier_count++] = avxvnni_by_evex();
#endif
}

static void ck_assert_passed(const check_count *count) {
    ck_assert_msg(count->failed == 0, "%zu of %zu failed, first: %s", count->failed, count->failed + count->passed,
                  count->first);
    ck_assert_uint_gt(count->passed, 0);
}

START_TEST(pairs_are_exact) {
    check_count count = {0};
    check_pairs(tiers[_i], &count);
    ck_assert_passed(&count);
}
END_TEST

START_TEST(i8_scores_are_exact) {
    check_count count = {0};
    check_scores(tiers[_i], SL_CODES_I8, &count);
    ck_assert_passed(&count);
}
END_TEST

START_TEST(i16_scores_are_exact) {
    check_count count = {0};
    check_scores(tiers[_i], SL_CODES_I16, &count);
    ck_assert_passed(&count);
}
END_TEST

START_TEST(f32_scores_are_within_the_bound) {
    check_count count = {0};
    check_scores(tiers[_i], SL_CODES_F32, &count);
    ck_assert_passed(&count);
}
END_TEST

START_TEST(i4_scores_are_exact) {
    check_count count = {0};
    check_scores(tiers[_i], SL_CODES_I4, &count);
    ck_assert_passed(&count);
}
END_TEST

START_TEST(differences_are_squared) {
    check_count count = {0};
    check_differences(tiers[_i], &count);
    ck_assert_passed(&count);
}
END_TEST

START_TEST(unseen_links_are_found) {
    check_count count = {0};
    check_unseen(tiers[_i], &count);
    ck_assert_passed(&count);
}
END_TEST

START_TEST(candidates_are_those_of_a_list) {
    check_count count = {0};
    check_candidates(tiers[_i], &count);
    ck_assert_passed(&count);
}
END_TEST

START_TEST(queries_become_bytes) {
    check_count count = {0};
    check_split_byte(tiers[_i], &count);
    ck_assert_passed(&count);
}
END_TEST

START_TEST(codes_are_those_of_plain_loops) {
    check_count count = {0};
    check_level_sums(tiers[_i], &count);
    check_sign_bytes(tiers[_i], &count);
    ck_assert_passed(&count);
}
END_TEST

START_TEST(tiles_score_as_rows) {
    check_count count = {0};
    check_tiles(tiers[_i], SL_CODES_I8, &count);
    check_tiles(tiers[_i], SL_CODES_I4, &count);
    ck_assert_passed(&count);
}
END_TEST

START_TEST(the_best_are_kept) {
    check_count count = {0};
    check_best(tiers[_i], &count);
    ck_assert_passed(&count);
}
END_TEST

START_TEST(rows_beyond_4_gib) {
    check_count count = {0};
    check_far_rows(tiers[_i], &count);
    ck_assert_passed(&count);
}
END_TEST

START_TEST(refine_is_within_the_bound) {
    check_count count = {0};
    check_refine(tiers[_i], SL_REFINE_F32, &count);
    check_refine(tiers[_i], SL_REFINE_I16, &count);
    ck_assert_passed(&count);
}
END_TEST

START_TEST(conversions_round_to_nearest_even) {
    check_count count = {0};
    check_conversions(&count);
    ck_assert_passed(&count);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * The choice of a tier
 * ------------------------------------------------------------------------------------------------------------- */

START_TEST(tables_are_complete) {
    ck_assert_ptr_nonnull(sl_kernels_of(SL_ISA_SCALAR));
    ck_assert_ptr_null(sl_kernels_of(SL_ISA_COUNT));
    ck_assert_ptr_null(sl_kernels_of((sl_isa)-1));
    for (int isa = 0; isa < SL_ISA_COUNT; isa++) {
        const sl_kernels *kernels = sl_kernels_of((sl_isa)isa);
        ck_assert_int_eq(kernels != NULL, (int)(sl_cpu_tiers() >> isa & 1));
        if (kernels) ck_assert_int_eq((int)kernels->isa, isa);
    }
    ck_assert_ptr_eq(sl_kernels_best(), sl_kernels_of(sl_cpu_tier()));
    ck_assert_str_eq(sl_isa_name(SL_ISA_AVX512VNNI), "avx512vnni");
    ck_assert_str_eq(sl_isa_name(SL_ISA_COUNT), "?");
}
END_TEST

/* The library reads the variable once, so each word needs a process of its own. */
static void tier_under(const char *word, const char *mode, char *tier, size_t size) {
    char command[512];
    snprintf(command, sizeof command, "SHORTLIST_MAX_ISA='%s' '%s' %s", word, program, mode);
    FILE *pipe = popen(command, "r");
    ck_assert_ptr_nonnull(pipe);
    ck_assert_ptr_nonnull(fgets(tier, (int)size, pipe));
    tier[strcspn(tier, "\n")] = 0;
    ck_assert_int_eq(pclose(pipe), 0);
}

START_TEST(environment_caps_the_tier) {
    char tier[64];
    tier_under("scalar", "tier", tier, sizeof tier);
    ck_assert_str_eq(tier, "scalar");
    tier_under("no-such-tier", "tier", tier, sizeof tier);
    ck_assert_str_eq(tier, "scalar");
    int best = SL_ISA_SCALAR;
    for (int isa = 0; isa < SL_ISA_COUNT; isa++) {
        if (isa == SL_ISA_NEON) continue;
        if (sl_cpu_tiers() >> isa & 1) best = isa;
        tier_under(sl_isa_name((sl_isa)isa), "tier", tier, sizeof tier);
        /* Under a cap of this process's own, AMX is not looked for. */
        if (isa == SL_ISA_AMXINT8 && sl_cpu_cap() != SL_ISA_COUNT) continue;
        ck_assert_str_eq(tier, sl_isa_name((sl_isa)best));
    }
    /* NEON is on another ladder: on x86 it allows only scalar. */
    int neon = sl_cpu_tiers() >> SL_ISA_NEON & 1;
    tier_under("neon", "tier", tier, sizeof tier);
    ck_assert_str_eq(tier, neon ? "neon" : "scalar");
    char highest[64];
    tier_under("amxint8", "tier", highest, sizeof highest);
    tier_under("", "tier", tier, sizeof tier);
    ck_assert_str_eq(tier, neon ? "neon" : highest);
}
END_TEST

/* Linux refuses matrices to a process whose signal stack is too small for them. */
START_TEST(small_signal_stacks_keep_their_process_from_matrices) {
    char tier[64], usual[64];
    tier_under("", "tier", usual, sizeof usual);
    tier_under("", "tier-of-a-small-stack", tier, sizeof tier);
    ck_assert_str_eq(tier, strcmp(usual, "amxint8") == 0 ? "avx512vnni" : usual);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Public calls
 * ------------------------------------------------------------------------------------------------------------- */

START_TEST(types_have_sizes_and_names) {
    static const struct {
        sl_dtype dtype;
        size_t size;
        const char *name;
    } types[] = {{SL_F32, 4, "f32"}, {SL_F16, 2, "f16"}, {SL_BF16, 2, "bf16"},
                 {SL_I8, 1, "i8"},   {SL_U8, 1, "u8"},   {SL_I16, 2, "i16"}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        ck_assert_uint_eq(sl_dtype_size(types[i].dtype), types[i].size);
        ck_assert_str_eq(sl_dtype_name(types[i].dtype), types[i].name);
    }
    ck_assert_uint_eq(sl_dtype_size((sl_dtype)6), 0);
    ck_assert_uint_eq(sl_dtype_size((sl_dtype)-1), 0);
    ck_assert_str_eq(sl_dtype_name((sl_dtype)6), "?");
}
END_TEST

START_TEST(convert_between_types) {
    enum { N = 1000 };
    float from[N], to[N];
    uint16_t halves[N], others[N];
    for (int i = 0; i < N; i++)
        from[i] = (float)(i - 500) / 64; /* 9 bits: every type holds these */
    static const sl_dtype wide[] = {SL_F16, SL_BF16};
    for (size_t t = 0; t < 2; t++) {
        ck_assert_int_eq(sl_convert(from, SL_F32, halves, wide[t], N), SL_OK);
        ck_assert_int_eq(sl_convert(halves, wide[t], others, wide[1 - t], N), SL_OK);
        ck_assert_int_eq(sl_convert(others, wide[1 - t], to, SL_F32, N), SL_OK);
        for (int i = 0; i < N; i++)
            ck_assert(i % 2 ? fabsf(to[i] - from[i]) <= fabsf(from[i]) / 256 : to[i] == from[i]);
    }
    const int8_t bytes[] = {-128, -1, 0, 127};
    ck_assert_int_eq(sl_convert(bytes, SL_I8, to, SL_F32, 4), SL_OK);
    ck_assert(to[0] == -128 && to[1] == -1 && to[2] == 0 && to[3] == 127);
    ck_assert_int_eq(sl_convert(bytes, SL_U8, to, SL_F32, 4), SL_OK);
    ck_assert(to[0] == 128 && to[1] == 255 && to[2] == 0 && to[3] == 127);
    const int16_t words[] = {-32768, 32767};
    ck_assert_int_eq(sl_convert(words, SL_I16, to, SL_F32, 2), SL_OK);
    ck_assert(to[0] == -32768 && to[1] == 32767);
    ck_assert_int_eq(sl_convert(NULL, SL_F32, NULL, SL_F16, 0), SL_OK);
}
END_TEST

START_TEST(convert_refuses) {
    float x[2] = {0};
    int8_t y[8] = {0};
    ck_assert_int_eq(sl_convert(x, SL_F32, y, SL_I8, 2), SL_ETYPE);
    ck_assert_ptr_nonnull(strstr(sl_last_error(), "f32 to i8"));
    ck_assert_int_eq(sl_convert(y, SL_I8, x, SL_F16, 2), SL_ETYPE);
    ck_assert_int_eq(sl_convert(y, (sl_dtype)9, x, SL_F32, 2), SL_ETYPE);
    ck_assert_int_eq(sl_convert(y, SL_F32, x, (sl_dtype)9, 2), SL_ETYPE);
    ck_assert_int_eq(sl_convert(NULL, SL_F32, x, SL_F32, 2), SL_EINVAL);
    ck_assert_int_eq(sl_convert(x, SL_F32, NULL, SL_F32, 2), SL_EINVAL);
}
END_TEST

START_TEST(score_of_floats) {
    enum { N = 1001 };
    float a[N], b[N];
    long double ab = 0, aa = 0, bb = 0, l2 = 0;
    for (uint64_t i = 0; i < N; i++) {
        a[i] = (float)(sl_random_unit(1, 2 * i) - 0.5);
        b[i] = (float)(sl_random_unit(1, 2 * i + 1) - 0.5);
        ab += (long double)a[i] * (long double)b[i];
        aa += (long double)a[i] * (long double)a[i];
        bb += (long double)b[i] * (long double)b[i];
        l2 += ((long double)a[i] - (long double)b[i]) * ((long double)a[i] - (long double)b[i]);
    }
    double score;
    ck_assert_int_eq(sl_score(SL_METRIC_IP, SL_F32, a, b, N, &score), SL_OK);
    ck_assert_double_eq_tol(score, (double)ab, 1e-12);
    ck_assert_int_eq(sl_score(SL_METRIC_COSINE, SL_F32, a, b, N, &score), SL_OK);
    ck_assert_double_eq_tol(score, (double)(ab / sqrtl(aa * bb)), 1e-12);
    ck_assert_int_eq(sl_score(SL_METRIC_L2, SL_F32, a, b, N, &score), SL_OK);
    ck_assert_double_eq_tol(score, (double)l2, 1e-12);
    ck_assert_int_eq(sl_score(SL_METRIC_COSINE, SL_F32, a, a, N, &score), SL_OK);
    ck_assert_double_eq(score, 1);

    uint16_t halves[2] = {0x3c00, 0xc000}; /* 1, -2 as f16 */
    ck_assert_int_eq(sl_score(SL_METRIC_IP, SL_F16, halves, halves, 2, &score), SL_OK);
    ck_assert_double_eq(score, 5);
}
END_TEST

START_TEST(score_of_integers_is_exact) {
    enum { N = SL_MAX_DIM };
    static int16_t least[N], most[N];
    static uint8_t full[N], none[N];
    for (int i = 0; i < N; i++) {
        least[i] = INT16_MIN;
        most[i] = INT16_MAX;
        full[i] = 255;
    }
    double score;
    ck_assert_int_eq(sl_score(SL_METRIC_IP, SL_I16, least, least, N, &score), SL_OK);
    ck_assert_double_eq(score, 0x1p46);
    ck_assert_int_eq(sl_score(SL_METRIC_L2, SL_I16, least, most, N, &score), SL_OK);
    ck_assert_double_eq(score, 65535.0 * 65535.0 * 65536.0);
    ck_assert_int_eq(sl_score(SL_METRIC_COSINE, SL_I16, least, least, N, &score), SL_OK);
    ck_assert_double_eq(score, 1);
    ck_assert_int_eq(sl_score(SL_METRIC_IP, SL_U8, full, full, N, &score), SL_OK);
    ck_assert_double_eq(score, 255.0 * 255.0 * 65536.0);
    ck_assert_int_eq(sl_score(SL_METRIC_L2, SL_U8, full, none, N, &score), SL_OK);
    ck_assert_double_eq(score, 255.0 * 255.0 * 65536.0);
    ck_assert_int_eq(sl_score(SL_METRIC_IP, SL_I8, full, full, N, &score), SL_OK);
    ck_assert_double_eq(score, 65536);
}
END_TEST

START_TEST(score_refuses) {
    float x[4] = {1, 2, 3, 4}, zero[4] = {0}, nan[4] = {1, 2, NAN, 4};
    double score;
    ck_assert_int_eq(sl_score(SL_METRIC_IP, SL_F32, NULL, x, 4, &score), SL_EINVAL);
    ck_assert_int_eq(sl_score(SL_METRIC_IP, SL_F32, x, NULL, 4, &score), SL_EINVAL);
    ck_assert_int_eq(sl_score(SL_METRIC_IP, SL_F32, x, x, 4, NULL), SL_EINVAL);
    ck_assert_int_eq(sl_score((sl_metric)3, SL_F32, x, x, 4, &score), SL_EINVAL);
    ck_assert_int_eq(sl_score(SL_METRIC_IP, (sl_dtype)6, x, x, 4, &score), SL_ETYPE);
    ck_assert_int_eq(sl_score(SL_METRIC_IP, SL_F32, x, x, 0, &score), SL_EINVAL);
    ck_assert_int_eq(sl_score(SL_METRIC_IP, SL_F32, x, x, SL_MAX_DIM + 1, &score), SL_ELIMIT);
    ck_assert_int_eq(sl_score(SL_METRIC_COSINE, SL_F32, x, zero, 4, &score), SL_EVALUE);
    ck_assert_ptr_nonnull(strstr(sl_last_error(), "sl_score: b: zero vector"));
    ck_assert_int_eq(sl_score(SL_METRIC_IP, SL_F32, nan, x, 4, &score), SL_EVALUE);
    ck_assert_ptr_nonnull(strstr(sl_last_error(), "sl_score: a: element 2 is not a number"));
}
END_TEST

static int run_suite(void) {
    TCase *kernels = tcase_create("kernels");
    tcase_add_loop_test(kernels, pairs_are_exact, 0, tier_count);
    tcase_add_loop_test(kernels, i8_scores_are_exact, 0, tier_count);
    tcase_add_loop_test(kernels, i16_scores_are_exact, 0, tier_count);
    tcase_add_loop_test(kernels, f32_scores_are_within_the_bound, 0, tier_count);
    tcase_add_loop_test(kernels, i4_scores_are_exact, 0, tier_count);
    tcase_add_loop_test(kernels, differences_are_squared, 0, tier_count);
    tcase_add_loop_test(kernels, unseen_links_are_found, 0, tier_count);
    tcase_add_loop_test(kernels, candidates_are_those_of_a_list, 0, tier_count);
    tcase_add_loop_test(kernels, queries_become_bytes, 0, tier_count);
    tcase_add_loop_test(kernels, codes_are_those_of_plain_loops, 0, tier_count);
    tcase_add_loop_test(kernels, tiles_score_as_rows, 0, tier_count);
    tcase_add_loop_test(kernels, the_best_are_kept, 0, tier_count);
    tcase_add_loop_test(kernels, rows_beyond_4_gib, 0, tier_count);
    tcase_add_loop_test(kernels, refine_is_within_the_bound, 0, tier_count);
    TCase *choice = tcase_create("choice");
    tcase_add_test(choice, tables_are_complete);
    tcase_add_test(choice, environment_caps_the_tier);
    tcase_add_test(choice, small_signal_stacks_keep_their_process_from_matrices);
    TCase *public_calls = tcase_create("public");
    tcase_add_test(public_calls, conversions_round_to_nearest_even);
    tcase_add_test(public_calls, types_have_sizes_and_names);
    tcase_add_test(public_calls, convert_between_types);
    tcase_add_test(public_calls, convert_refuses);
    tcase_add_test(public_calls, score_of_floats);
    tcase_add_test(public_calls, score_of_integers_is_exact);
    tcase_add_test(public_calls, score_refuses);
    TCase *const all[] = {kernels, choice, public_calls};
    return check_main("distance", all, 3);
}

int main(int argc, char **argv) {
    program = argv[0];
    if (argc > 1) {
        static char small[6144]; /* room for a signal's frame with AVX-512 and without matrices */
        const stack_t stack = {.ss_sp = small, .ss_size = sizeof small};
        if (strcmp(argv[1], "tier-of-a-small-stack") == 0 && sigaltstack(&stack, NULL) != 0) return 1;
        puts(sl_isa_name(sl_cpu_tier()));
        return 0;
    }
    if (sl_cpu_cap() != SL_ISA_COUNT && !sl_kernels_of(sl_cpu_cap())) {
        printf("skipped: this machine lacks %s\n", sl_isa_name(sl_cpu_cap()));
        return 77;
    }
    find_tiers();
    return run_suite();
}
