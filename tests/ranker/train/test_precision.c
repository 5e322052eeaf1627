/* Training in bf16 and fp16: that it learns as well, what it reports, and what it does when gradients overflow. The
 * link wraps backward, so the test can make gradients overflow. */
#include "ranker/net/net.h"
#include "ranker/train/train_precision.h"
#include "tests/support/check_main.h"
#include "tests/support/planted.h"
#include "tests/support/scratch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CLICK "\"column\": \"click\""
#define WIDE  "\"features\": [\"a\", \"b\", \"tags\", \"ab\"], \"rate\": 0.3, \"beta\": 0.01"
#define DEEP  "\"hidden\": [32, 16], \"rate\": 0.05"
#define TRAIN "\"epochs\": 8, \"batch\": 64, \"validation\": 0.1, \"patience\": 0"
#define SHORT "\"epochs\": 1, \"batch\": 64, \"validation\": 0"

enum { WATCHED = 256, MOST_OVERFLOWS = 3 };

static planted rows, held_out;

/* The calls of backward: which ones overflow, and what each call sees. */
static struct watch {
    size_t calls;
    size_t overflow_at[MOST_OVERFLOWS]; /* calls, counted from 1 */
    int always;
    float first_gradient;    /* gradient by the first logit, at the first call */
    float weights[WATCHED];  /* first weights of the layers, at the last call */
    size_t unchanged;        /* calls that found the weights of the call before */
    float moves[4][WATCHED]; /* how far the weights had moved at the calls after the first */
} watch;

sl_status __real_sl_net_trainer_backward(sl_net_trainer *trainer, const float *weights, const float *output_gradient,
                                         float *gradient);
sl_status __wrap_sl_net_trainer_backward(sl_net_trainer *trainer, const float *weights, const float *output_gradient,
                                         float *gradient);

sl_status __wrap_sl_net_trainer_backward(sl_net_trainer *trainer, const float *weights, const float *output_gradient,
                                         float *gradient) {
    sl_status status = __real_sl_net_trainer_backward(trainer, weights, output_gradient, gradient);
    if (watch.calls == 0) watch.first_gradient = output_gradient[0];
    if (watch.calls > 0) watch.unchanged += memcmp(watch.weights, weights, sizeof watch.weights) == 0;
    for (size_t i = 0; watch.calls > 0 && watch.calls <= 4 && i < WATCHED; i++)
        watch.moves[watch.calls - 1][i] = weights[i] - watch.weights[i];
    memcpy(watch.weights, weights, sizeof watch.weights);
    watch.calls++;
    int overflows = watch.always;
    for (size_t i = 0; i < MOST_OVERFLOWS; i++)
        overflows |= watch.overflow_at[i] == watch.calls;
    if (overflows) gradient[watch.calls % WATCHED] = watch.calls % 2 ? INFINITY : NAN;
    return status;
}

static void set_up(void) {
    planted_make(&rows, 6000, 1);
    planted_make(&held_out, 3000, 2);
    watch = (struct watch){0};
}

static void tear_down(void) {
    planted_free(&rows);
    planted_free(&held_out);
}

/* Lines of the log that have the word, and the last of them. */
typedef struct lines {
    const char *word;
    size_t count;
    char last[200];
} lines;

static void note(void *ctx, sl_log_level level, const char *line) {
    lines *found = ctx;
    (void)level;
    if (!strstr(line, found->word)) return;
    found->count++;
    strncpy(found->last, line, sizeof found->last - 1);
}

static sl_train_params in_precision(sl_train_precision precision) {
    sl_train_params params;
    sl_train_params_init(&params);
    params.threads = 1;
    params.precision = precision;
    return params;
}

static sl_status try_training(const char *deep, const char *how, const sl_train_params *params, sl_ranker **ranker,
                              sl_train_report *report) {
    char spec[PLANTED_SPEC];
    planted_spec(spec, CLICK, WIDE, deep, how, "");
    *report = (sl_train_report){.struct_size = sizeof *report};
    watch.calls = watch.unchanged = 0;
    return sl_ranker_train(spec, &rows.source, NULL, params, ranker, report);
}

static sl_train_report train(const char *deep, const char *how, const sl_train_params *params, sl_ranker **ranker) {
    sl_train_report report;
    sl_status status = try_training(deep, how, params, ranker, &report);
    ck_assert_msg(status == SL_OK, "%s: %s", sl_status_name(status), sl_last_error());
    return report;
}

static double auc_of(const sl_ranker *ranker) {
    sl_metrics metrics = {.struct_size = sizeof metrics};
    ck_assert_msg(sl_ranker_evaluate(ranker, &held_out.source, NULL, &metrics) == SL_OK, "%s", sl_last_error());
    return metrics.auc;
}

static double trained_auc(const sl_train_params *params, sl_train_report *report) {
    sl_ranker *ranker;
    *report = train(DEEP, TRAIN, params, &ranker);
    double auc = auc_of(ranker);
    sl_ranker_free(ranker);
    return auc;
}

static int same_weights(const sl_ranker *one, const sl_ranker *other) {
    int same = 1;
    for (size_t i = 0; i < sl_ranker_tensor_count(one) && same; i++) {
        sl_tensor a, b;
        ck_assert_int_eq(sl_ranker_get_tensor(one, i, &a), SL_OK);
        ck_assert_int_eq(sl_ranker_get_tensor(other, i, &b), SL_OK);
        same = memcmp(a.data, b.data, a.rows * a.columns * sizeof(float)) == 0;
    }
    return same;
}

/* ---------------------------------------------------------------------------------------------------------------
 * Each precision
 * ------------------------------------------------------------------------------------------------------------- */

static const sl_train_precision precisions[] = {SL_TRAIN_F32, SL_TRAIN_BF16, SL_TRAIN_FP16};

START_TEST(it_learns_as_well) {
    sl_train_params exact = in_precision(SL_TRAIN_F32), params = in_precision(precisions[_i]);
    sl_train_report report;
    double expected = trained_auc(&exact, &report), auc = trained_auc(&params, &report);
    ck_assert_double_gt(expected, 0.75);
    ck_assert_double_eq_tol(auc, expected, 0.005);
    ck_assert_int_eq(report.precision, precisions[_i]);
    ck_assert_uint_eq(report.skipped_steps, 0);
    ck_assert_double_eq(report.loss_scale, precisions[_i] == SL_TRAIN_FP16 ? 65536 : 0);
    ck_assert_int_eq(report.emulated, !sl_net_multiplies(sl_precision_type(precisions[_i])));
}
END_TEST

START_TEST(the_same_seed_gives_the_same_bits) {
    sl_ranker *rankers[3], *again;
    for (size_t p = 0; p < 3; p++) {
        sl_train_params params = in_precision(precisions[p]);
        train(DEEP ", \"dropout\": 0.2", SHORT, &params, &rankers[p]);
        train(DEEP ", \"dropout\": 0.2", SHORT, &params, &again);
        ck_assert(same_weights(rankers[p], again));
        sl_ranker_free(again);
    }
    sl_train_params unset = in_precision(SL_TRAIN_DEFAULT);
    train(DEEP ", \"dropout\": 0.2", SHORT, &unset, &again);
    ck_assert(same_weights(rankers[0], again));
    ck_assert(!same_weights(rankers[0], rankers[1]) && !same_weights(rankers[0], rankers[2]) &&
              !same_weights(rankers[1], rankers[2]));
    sl_ranker_free(again);
    for (size_t p = 0; p < 3; p++)
        sl_ranker_free(rankers[p]);
}
END_TEST

START_TEST(what_is_taken_is_told) {
    lines told = {.word = "training in "};
    sl_train_params params = in_precision(SL_TRAIN_AUTO);
    sl_ranker *ranker;
    params.log = note;
    params.log_ctx = &told;
    sl_train_report report = train(DEEP, SHORT, &params, &ranker);
    ck_assert_int_eq(report.precision, sl_net_multiplies(SL_BF16) ? SL_TRAIN_BF16 : SL_TRAIN_F32);
    ck_assert_int_eq(report.emulated, 0);
    ck_assert_uint_eq(told.count, 1);
    ck_assert_ptr_nonnull(strstr(told.last, sl_train_precision_name(report.precision)));
    sl_ranker_free(ranker);
    params.precision = SL_TRAIN_FP16;
    report = train(DEEP, SHORT, &params, &ranker);
    ck_assert_int_eq(report.emulated, !sl_net_multiplies(SL_F16));
    ck_assert_int_eq(strstr(told.last, "emulated") != NULL, report.emulated);
    sl_ranker_free(ranker);
    /* Without a deep part there are no products. */
    report = train(NULL, SHORT, &params, &ranker);
    ck_assert_int_eq(report.precision, SL_TRAIN_F32);
    ck_assert_int_eq(report.emulated, 0);
    ck_assert_double_eq(report.loss_scale, 0);
    sl_ranker_free(ranker);
    /* No precision was chosen. */
    told.count = 0;
    params.precision = SL_TRAIN_DEFAULT;
    report = train(DEEP, SHORT, &params, &ranker);
    ck_assert_int_eq(report.precision, SL_TRAIN_F32);
    ck_assert_uint_eq(told.count, 0);
    sl_ranker_free(ranker);
}
END_TEST

START_TEST(names) {
    const char *const expected[] = {"default", "f32", "bf16", "fp16", "auto", "?", "?"};
    for (int p = 0; p < 7; p++)
        ck_assert_str_eq(sl_train_precision_name((sl_train_precision)p), expected[p]);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * The loss scale
 * ------------------------------------------------------------------------------------------------------------- */

START_TEST(the_scale_adapts) {
    sl_train_params params = in_precision(SL_TRAIN_FP16);
    sl_precision_state state = sl_precision_start(&params, 1);
    ck_assert_double_eq(state.loss_scale, 65536);
    for (size_t i = 0; i < 1999; i++)
        sl_precision_good_step(&state);
    ck_assert_double_eq(state.loss_scale, 65536);
    sl_precision_good_step(&state);
    ck_assert_double_eq(state.loss_scale, 131072);
    /* An overflow restarts the count. */
    for (size_t i = 0; i < 1999; i++)
        sl_precision_good_step(&state);
    ck_assert_int_eq(sl_precision_overflow(&state), SL_OK);
    ck_assert_double_eq(state.loss_scale, 65536);
    sl_precision_good_step(&state);
    ck_assert_double_eq(state.loss_scale, 65536);
    ck_assert_uint_eq(state.skipped, 1);
    for (size_t i = 0; i < 50 * 2000; i++)
        sl_precision_good_step(&state);
    ck_assert_double_eq(state.loss_scale, 0x1p24);
    ck_assert(sl_precision_is_sound(&state, 2));
    for (size_t i = 0; i < 24; i++)
        ck_assert_int_eq(sl_precision_overflow(&state), SL_OK);
    ck_assert_double_eq(state.loss_scale, 1);
    ck_assert_int_eq(sl_precision_overflow(&state), SL_EVALUE);
    /* A static scale does not change, and neither does a precision without one. */
    params.loss_scale = 1000;
    state = sl_precision_start(&params, 1);
    for (size_t i = 0; i < 5000; i++)
        sl_precision_good_step(&state);
    ck_assert_int_eq(sl_precision_overflow(&state), SL_OK);
    ck_assert_double_eq(state.loss_scale, 1000);
    params = in_precision(SL_TRAIN_BF16);
    state = sl_precision_start(&params, 1);
    for (size_t i = 0; i < 5000; i++)
        sl_precision_good_step(&state);
    ck_assert(state.loss_scale == 0 && sl_precision_is_sound(&state, 0));
}
END_TEST

/* The gradients are the losses' times the scale. Later steps do not see the scale. */
START_TEST(the_gradients_are_scaled) {
    sl_ranker *ranker;
    sl_train_params params = in_precision(SL_TRAIN_BF16);
    train(DEEP, SHORT, &params, &ranker);
    sl_ranker_free(ranker);
    float plain = watch.first_gradient;
    params = in_precision(SL_TRAIN_FP16);
    sl_train_report report = train(DEEP, SHORT, &params, &ranker);
    sl_ranker_free(ranker);
    ck_assert_float_eq_tol(watch.first_gradient, 65536 * plain, 0.01f * 65536 * fabsf(plain));
    params.loss_scale = 512;
    report = train(DEEP, SHORT, &params, &ranker);
    sl_ranker_free(ranker);
    ck_assert_float_eq_tol(watch.first_gradient, 512 * plain, 0.01f * 512 * fabsf(plain));
    ck_assert_double_eq(report.loss_scale, 512);
}
END_TEST

/* Overflowing steps are skipped, each halves the scale, and the model is as good as without them. */
START_TEST(overflow_is_skipped_and_forgotten) {
    lines told = {.word = "step skipped"};
    sl_train_params params = in_precision(SL_TRAIN_FP16);
    sl_train_report report;
    double usual = trained_auc(&params, &report);
    ck_assert_uint_eq(watch.unchanged, 0);
    watch.overflow_at[0] = 5;
    watch.overflow_at[1] = 6;
    watch.overflow_at[2] = 200;
    params.log = note;
    params.log_ctx = &told;
    double auc = trained_auc(&params, &report);
    ck_assert_uint_eq(report.skipped_steps, 3);
    ck_assert_double_eq(report.loss_scale, 8192);
    ck_assert_uint_eq(told.count, 3);
    ck_assert_ptr_nonnull(strstr(told.last, "loss scale now 8192"));
    ck_assert_uint_eq(watch.unchanged, 3); /* the weights after each of them */
    ck_assert_double_eq_tol(auc, usual, 0.005);
    params.loss_scale = 4096;
    auc = trained_auc(&params, &report);
    ck_assert_uint_eq(report.skipped_steps, 3);
    ck_assert_double_eq(report.loss_scale, 4096);
    ck_assert_double_eq_tol(auc, usual, 0.005);
}
END_TEST

/* Adam's first step moves every weight with a gradient by the rate, even after skipped steps. */
START_TEST(adam_does_not_count_skipped_steps) {
    sl_train_params params = in_precision(SL_TRAIN_FP16);
    sl_ranker *ranker;
    watch.overflow_at[0] = 1;
    watch.overflow_at[1] = 2;
    train("\"hidden\": [32, 16], \"optimizer\": \"adam\", \"rate\": 0.001", SHORT, &params, &ranker);
    sl_ranker_free(ranker);
    size_t moved = 0, by_the_rate = 0;
    for (size_t i = 0; i < WATCHED; i++) {
        ck_assert(watch.moves[0][i] == 0 && watch.moves[1][i] == 0);
        moved += watch.moves[2][i] != 0;
        by_the_rate += fabsf(fabsf(watch.moves[2][i]) - 0.001f) < 2e-5f;
    }
    ck_assert_uint_gt(moved, WATCHED / 4);
    ck_assert_uint_gt(by_the_rate, moved * 9 / 10);
}
END_TEST

START_TEST(gradients_that_always_overflow_stop_it) {
    sl_train_params params = in_precision(SL_TRAIN_FP16);
    sl_train_report report;
    sl_ranker *ranker;
    watch.always = 1;
    ck_assert_int_eq(try_training(DEEP, TRAIN, &params, &ranker, &report), SL_EVALUE);
    ck_assert_ptr_null(ranker);
    ck_assert_ptr_nonnull(strstr(sl_last_error(), "loss scale of 1"));
    ck_assert_uint_eq(watch.calls, 17);
    params.loss_scale = 64;
    ck_assert_int_eq(try_training(DEEP, TRAIN, &params, &ranker, &report), SL_EVALUE);
    ck_assert_ptr_nonnull(strstr(sl_last_error(), "every step so far was skipped"));
    ck_assert_ptr_nonnull(strstr(sl_last_error(), "64"));
    /* bf16 and f32 have no scale: the weights diverge, and the loss shows it. */
    params = in_precision(SL_TRAIN_BF16);
    ck_assert_int_eq(try_training(DEEP, TRAIN, &params, &ranker, &report), SL_EVALUE);
    ck_assert_ptr_nonnull(strstr(sl_last_error(), "training loss"));
}
END_TEST

START_TEST(inputs_beyond_fp16_are_told) {
    const char plain[] = "{\"name\": \"x\", \"type\": \"numeric\"", unscaled[] = ", \"scale\": \"none\"";
    char spec[PLANTED_SPEC];
    for (size_t i = 0; i < 6000; i += 5)
        rows.x[i] = 1e6f;
    planted_spec(spec, CLICK, WIDE, DEEP, SHORT, "");
    char *at = strstr(spec, plain);
    ck_assert_ptr_nonnull(at);
    at += sizeof plain - 1;
    ck_assert_uint_lt(strlen(spec) + sizeof unscaled, sizeof spec);
    memmove(at + sizeof unscaled - 1, at, strlen(at) + 1);
    memcpy(at, unscaled, sizeof unscaled - 1);
    sl_train_params params = in_precision(SL_TRAIN_FP16);
    sl_ranker *ranker;
    ck_assert_int_eq(sl_ranker_train(spec, &rows.source, NULL, &params, &ranker, NULL), SL_EVALUE);
    ck_assert_msg(strstr(sl_last_error(), "65,504") != NULL, "%s", sl_last_error());
}
END_TEST

/* A resumed training knows how many steps were good and how many were skipped. An epoch has 1,500 steps, so the scale
 * doubles only in the second one. */
START_TEST(the_count_goes_on_from_a_checkpoint) {
    scratch place;
    scratch_open(&place);
    const char *how = "\"epochs\": 2, \"batch\": 4, \"validation\": 0";
    sl_train_params params = in_precision(SL_TRAIN_FP16);
    sl_ranker *whole, *resumed;
    watch.overflow_at[0] = 3;
    sl_train_report all = train(DEEP, how, &params, &whole);
    ck_assert_uint_eq(all.skipped_steps, 1);
    ck_assert_double_eq(all.loss_scale, 65536); /* halved, then doubled */
    params.checkpoint = place.path;
    params.epochs = 1;
    sl_train_report half = train(DEEP, how, &params, &resumed);
    sl_ranker_free(resumed);
    ck_assert_double_eq(half.loss_scale, 32768);
    watch.overflow_at[0] = 0;
    params.epochs = 0;
    params.resume = 1;
    sl_train_report rest = train(DEEP, how, &params, &resumed);
    ck_assert_uint_eq(watch.calls, 1500);
    ck_assert_uint_eq(rest.skipped_steps, 1);
    ck_assert_double_eq(rest.loss_scale, 65536);
    ck_assert(same_weights(whole, resumed));
    sl_ranker_free(whole);
    sl_ranker_free(resumed);
    scratch_close(&place);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Refusals
 * ------------------------------------------------------------------------------------------------------------- */

START_TEST(bad_parameters_are_refused) {
    const struct {
        int precision;
        double scale;
        const char *says;
    } bad[] = {{5, 0, "precision is 5"},
               {-1, 0, "precision is -1"},
               {SL_TRAIN_FP16, 0.5, "loss_scale is 0.5"},
               {SL_TRAIN_FP16, -4, "loss_scale is -4"},
               {SL_TRAIN_FP16, NAN, "loss_scale is"},
               {SL_TRAIN_FP16, INFINITY, "loss_scale is inf"},
               {SL_TRAIN_FP16, 0x1.8p24, "from 1 to 2^24"},
               {SL_TRAIN_BF16, 8, "fp16 alone"},
               {SL_TRAIN_AUTO, 8, "fp16 alone"},
               {SL_TRAIN_DEFAULT, 8, "fp16 alone"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        sl_train_params params = in_precision((sl_train_precision)bad[i].precision);
        sl_train_report report;
        sl_ranker *ranker;
        params.loss_scale = bad[i].scale;
        ck_assert_int_eq(try_training(DEEP, SHORT, &params, &ranker, &report), SL_EINVAL);
        ck_assert_ptr_null(ranker);
        ck_assert_msg(strstr(sl_last_error(), bad[i].says) != NULL, "%s", sl_last_error());
    }
}
END_TEST

/* Every allocation fails in turn, also for rounded operands. */
START_TEST(memory_may_fail_anywhere) {
    char spec[PLANTED_SPEC];
    planted_spec(spec, CLICK, NULL, DEEP, "\"epochs\": 1, \"batch\": 50, \"validation\": 0.3", "");
    planted_check_memory(spec, in_precision(precisions[1 + _i]));
}
END_TEST

int main(void) {
    TCase *taken = tcase_create("taken"), *scale = tcase_create("scale"), *refused = tcase_create("refused");
    TCase *cases[] = {taken, scale, refused};
    for (size_t i = 0; i < 3; i++)
        tcase_add_checked_fixture(cases[i], set_up, tear_down);
    tcase_add_loop_test(taken, it_learns_as_well, 0, 3);
    tcase_add_test(taken, the_same_seed_gives_the_same_bits);
    tcase_add_test(taken, what_is_taken_is_told);
    tcase_add_test(taken, names);
    tcase_add_test(scale, the_scale_adapts);
    tcase_add_test(scale, the_gradients_are_scaled);
    tcase_add_test(scale, overflow_is_skipped_and_forgotten);
    tcase_add_test(scale, adam_does_not_count_skipped_steps);
    tcase_add_test(scale, the_count_goes_on_from_a_checkpoint);
    tcase_add_test(scale, gradients_that_always_overflow_stop_it);
    tcase_add_test(scale, inputs_beyond_fp16_are_told);
    tcase_add_test(refused, bad_parameters_are_refused);
    tcase_add_loop_test(refused, memory_may_fail_anywhere, 0, 2);
    return check_main("precision", cases, 3);
}
