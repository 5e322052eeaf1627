/* Metrics against values worked out by hand, and against definitions that count every pair. */
#include "base/random.h"
#include "ranker/model/auc.h"
#include "ranker/model/metrics.h"
#include "ranker/model/model.h"
#include "ranker/net/loss.h"
#include "tests/support/check_main.h"
#include "tests/support/faults.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 400 };

static float scores[ROWS], labels[ROWS], weights[ROWS];
static uint64_t groups[ROWS];

static sl_metrics measure(sl_loss loss, size_t outputs, size_t n, const float *w, const uint64_t *g) {
    sl_metrics out = {.struct_size = sizeof out};
    ck_assert_msg(sl_metrics_compute(loss, outputs, scores, labels, w, g, n, NULL, &out) == SL_OK, "%s",
                  sl_last_error());
    return out;
}

static void fill_rows(uint64_t seed, size_t levels) {
    for (size_t i = 0; i < ROWS; i++) {
        scores[i] = (float)(sl_random_at(seed, 4 * i) % levels) / (float)levels;
        labels[i] = sl_random_unit(seed, 4 * i + 1) < 0.3 + 0.4 * (double)scores[i];
        weights[i] = (float)(sl_random_at(seed, 4 * i + 2) % 4);
        groups[i] = sl_random_at(seed, 4 * i + 3) % 23;
    }
}

/* ---------------------------------------------------------------------------------------------------------------
 * The area under the curve
 * ------------------------------------------------------------------------------------------------------------- */

/* Returns the share of ordered pairs of a positive and a negative row, of one group unless group is UINT64_MAX. */
static double pairs(size_t n, const float *w, uint64_t group) {
    double won = 0, all = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++) {
            if (labels[i] < 0.5f || labels[j] > 0.5f) continue;
            if (group != UINT64_MAX && (groups[i] != group || groups[j] != group)) continue;
            double weight = w ? (double)w[i] * (double)w[j] : 1;
            all += weight;
            won += weight * (scores[i] > scores[j] ? 1 : scores[i] == scores[j] ? 0.5 : 0);
        }
    return won / all;
}

START_TEST(auc_counts_pairs) {
    static const size_t levels[] = {2, 7, 100, 1u << 30};
    for (size_t i = 0; i < 4; i++) {
        fill_rows(i, levels[i]);
        ck_assert_double_eq_tol(measure(SL_LOSS_LOGISTIC, 1, ROWS, NULL, NULL).auc, pairs(ROWS, NULL, UINT64_MAX),
                                1e-12);
        ck_assert_double_eq_tol(measure(SL_LOSS_LOGISTIC, 1, ROWS, weights, NULL).auc, pairs(ROWS, weights, UINT64_MAX),
                                1e-12);
    }
}
END_TEST

START_TEST(auc_of_one_class_is_not_a_number) {
    fill_rows(1, 10);
    for (int label = 0; label < 2; label++) {
        for (size_t i = 0; i < ROWS; i++)
            labels[i] = (float)label;
        sl_metrics m = measure(SL_LOSS_LOGISTIC, 1, ROWS, NULL, groups);
        ck_assert(isnan(m.auc) && isnan(m.group_auc) && isnan(m.normalized_entropy));
        ck_assert(isfinite(m.logloss));
        ck_assert_int_eq(isnan(m.ndcg), label == 0);
        ck_assert_int_eq(isnan(m.calibration), label == 0);
    }
}
END_TEST

START_TEST(auc_of_groups_is_their_mean_by_rows) {
    fill_rows(3, 9);
    double sum = 0, rows = 0;
    for (uint64_t g = 0; g < 23; g++) {
        double positive = 0, count = 0;
        for (size_t i = 0; i < ROWS; i++) {
            count += groups[i] == g;
            positive += groups[i] == g && labels[i] > 0.5f;
        }
        if (positive == 0 || positive == count) continue;
        sum += count * pairs(ROWS, NULL, g);
        rows += count;
    }
    sl_metrics m = measure(SL_LOSS_LOGISTIC, 1, ROWS, NULL, groups);
    ck_assert_double_eq_tol(m.group_auc, sum / rows, 1e-12);
    ck_assert_uint_eq(m.groups, 23);
}
END_TEST

START_TEST(sorting_keeps_equals_in_order) {
    sl_sort_entry entries[ROWS], room[ROWS];
    for (size_t i = 0; i < ROWS; i++)
        entries[i] = (sl_sort_entry){sl_random_at(5, i) % 50 << 40, i};
    sl_sort(entries, room, ROWS);
    for (size_t i = 1; i < ROWS; i++) {
        ck_assert_uint_ge(entries[i].key, entries[i - 1].key);
        if (entries[i].key == entries[i - 1].key) ck_assert_uint_gt(entries[i].row, entries[i - 1].row);
    }
    ck_assert_uint_eq(sl_score_key(-0.0f), sl_score_key(0.0f));
    ck_assert_uint_lt(sl_score_key(-2.0f), sl_score_key(-1.0f));
    ck_assert_uint_lt(sl_score_key(-1e-30f), sl_score_key(0.0f));
    ck_assert_uint_lt(sl_score_key(1.0f), sl_score_key(1.5f));
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Means
 * ------------------------------------------------------------------------------------------------------------- */

static void set_rows(size_t outputs, const float *s, const float *l, size_t n) {
    memcpy(scores, s, n * outputs * sizeof *s);
    memcpy(labels, l, n * sizeof *l);
}

START_TEST(logistic_by_hand) {
    set_rows(1, (float[]){0.5f, 0.25f, 0.75f, 0.125f}, (float[]){1, 0, 1, 1}, 4);
    sl_metrics m = measure(SL_LOSS_LOGISTIC, 1, 4, NULL, NULL);
    double logloss = -(log(0.5) + log(0.75) + log(0.75) + log(0.125)) / 4;
    ck_assert_double_eq_tol(m.logloss, logloss, 1e-12);
    ck_assert_double_eq_tol(m.accuracy, 0.75, 1e-12);
    ck_assert_double_eq_tol(m.base_rate, 0.75, 1e-12);
    ck_assert_double_eq_tol(m.calibration, 1.625 / 3, 1e-12);
    ck_assert_double_eq_tol(m.rmse, sqrt((0.25 + 0.0625 + 0.0625 + 0.765625) / 4), 1e-12);
    ck_assert_double_eq_tol(m.normalized_entropy, logloss / -(0.75 * log(0.75) + 0.25 * log(0.25)), 1e-12);
    ck_assert_double_eq_tol(m.auc, 2.0 / 3, 1e-12);
    ck_assert(isnan(m.group_auc) && isnan(m.ndcg));
    ck_assert_uint_eq(m.rows, 4);
}
END_TEST

START_TEST(certain_and_wrong_stays_finite) {
    set_rows(1, (float[]){0, 1}, (float[]){1, 0}, 2);
    ck_assert_double_eq_tol(measure(SL_LOSS_LOGISTIC, 1, 2, NULL, NULL).logloss, -log(0x1p-23), 1e-9);
}
END_TEST

START_TEST(squared_by_hand) {
    set_rows(1, (float[]){3, -1, 2}, (float[]){1, -1, 5}, 3);
    sl_metrics m = measure(SL_LOSS_SQUARED, 1, 3, (float[]){1, 2, 1}, NULL);
    ck_assert_double_eq_tol(m.rmse, sqrt((4 + 0 + 9) / 4.0), 1e-12);
    ck_assert_double_eq_tol(m.base_rate, 1, 1e-12);
    ck_assert_double_eq_tol(m.calibration, 3.0 / 4, 1e-12);
    ck_assert(isnan(m.logloss) && isnan(m.accuracy) && isnan(m.auc) && isnan(m.normalized_entropy));
}
END_TEST

START_TEST(multiclass_by_hand) {
    set_rows(3, (float[]){0.5f, 0.25f, 0.25f, 0.125f, 0.125f, 0.75f, 0.5f, 0.25f, 0.25f}, (float[]){0, 1, 0}, 3);
    sl_metrics m = measure(SL_LOSS_MULTICLASS, 3, 3, NULL, NULL);
    double logloss = -(log(0.5) + log(0.125) + log(0.5)) / 3;
    ck_assert_double_eq_tol(m.logloss, logloss, 1e-12);
    ck_assert_double_eq_tol(m.accuracy, 2.0 / 3, 1e-12);
    ck_assert_double_eq_tol(m.rmse, sqrt((0.25 + 0.765625 + 0.25) / 3), 1e-12);
    ck_assert_double_eq_tol(m.normalized_entropy, logloss / -(2.0 / 3 * log(2.0 / 3) + log(1.0 / 3) / 3), 1e-12);
    ck_assert(isnan(m.auc) && isnan(m.base_rate) && isnan(m.calibration));
    /* The last row has the most confident score, and is wrong. */
    ck_assert_double_eq_tol(m.decile_score[9], 0.75, 1e-12);
    ck_assert_double_eq_tol(m.decile_label[9], 0, 1e-12);
}
END_TEST

START_TEST(weights_are_repeated_rows) {
    fill_rows(8, 1u << 20);
    sl_metrics by_weight = measure(SL_LOSS_LOGISTIC, 1, ROWS / 4, weights, NULL);
    static float few_scores[ROWS], few_labels[ROWS];
    size_t n = 0;
    for (size_t i = 0; i < ROWS / 4; i++)
        for (size_t copy = 0; copy < (size_t)weights[i]; copy++) {
            few_scores[n] = scores[i];
            few_labels[n++] = labels[i];
        }
    set_rows(1, few_scores, few_labels, n);
    sl_metrics by_copy = measure(SL_LOSS_LOGISTIC, 1, n, NULL, NULL);
    ck_assert_double_eq_tol(by_weight.logloss, by_copy.logloss, 1e-12);
    ck_assert_double_eq_tol(by_weight.auc, by_copy.auc, 1e-12);
    ck_assert_double_eq_tol(by_weight.rmse, by_copy.rmse, 1e-12);
    ck_assert_double_eq_tol(by_weight.accuracy, by_copy.accuracy, 1e-12);
    ck_assert_double_eq_tol(by_weight.calibration, by_copy.calibration, 1e-12);
    ck_assert_double_eq_tol(by_weight.normalized_entropy, by_copy.normalized_entropy, 1e-12);
}
END_TEST

START_TEST(deciles_are_tenths_in_order) {
    for (size_t i = 0; i < 25; i++) {
        scores[i] = (float)((i * 7) % 25) / 32;
        labels[i] = scores[i] > 0.5f;
    }
    sl_metrics m = measure(SL_LOSS_LOGISTIC, 1, 25, NULL, NULL);
    size_t rows = 0;
    for (size_t d = 0; d < SL_DECILES; d++) {
        size_t from = 25 * d / 10, to = 25 * (d + 1) / 10;
        double sum = 0, positive = 0;
        for (size_t i = from; i < to; i++) {
            sum += (double)i / 32;
            positive += (double)i / 32 > 0.5;
        }
        ck_assert_uint_eq(m.decile_rows[d], to - from);
        ck_assert_double_eq_tol(m.decile_score[d], sum / (double)(to - from), 1e-7);
        ck_assert_double_eq_tol(m.decile_label[d], positive / (double)(to - from), 1e-12);
        rows += m.decile_rows[d];
    }
    ck_assert_uint_eq(rows, 25);
    m = measure(SL_LOSS_LOGISTIC, 1, 3, NULL, NULL);
    ck_assert_uint_eq(m.decile_rows[0], 0);
    ck_assert(isnan(m.decile_score[0]));
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Lists
 * ------------------------------------------------------------------------------------------------------------- */

static double discount(double rank) {
    return 1 / log2(rank + 2);
}

START_TEST(ndcg_by_hand) {
    /* Group 7 by score: labels 0, 3, (1, 0: a tie); group 9 has no positive label. */
    set_rows(1, (float[]){0.9f, 0.8f, 0.5f, 0.5f, 0.2f}, (float[]){0, 3, 1, 0, 0}, 5);
    sl_metrics m = measure(SL_LOSS_SQUARED, 1, 5, NULL, (uint64_t[]){7, 7, 7, 7, 9});
    double found = 7 * discount(1) + 0.5 * (discount(2) + discount(3));
    ck_assert_double_eq_tol(m.ndcg, found / (7 * discount(0) + 1 * discount(1)), 1e-12);
    ck_assert_uint_eq(m.groups, 2);
    ck_assert_uint_eq(m.ndcg_k, 10);
    sl_evaluate_params params;
    sl_evaluate_params_init(&params);
    params.ndcg_k = 3;
    ck_assert_int_eq(
        sl_metrics_compute(SL_LOSS_SQUARED, 1, scores, labels, NULL, (uint64_t[]){7, 7, 7, 7, 9}, 5, &params, &m),
        SL_OK);
    /* The tie covers ranks three and four. */
    found = 7 * discount(1) + 0.5 * discount(2);
    ck_assert_double_eq_tol(m.ndcg, found / (7 * discount(0) + 1 * discount(1)), 1e-12);
}
END_TEST

/* Returns group 7's NDCG at 10 for labels whose scores fall. */
static sl_metrics graded(const float *given, size_t n) {
    static const float falling[] = {9, 8, 7, 6};
    static const uint64_t same[] = {7, 7, 7, 7};
    set_rows(1, falling, given, n);
    return measure(SL_LOSS_SQUARED, 1, n, NULL, same);
}

/* Gains are 2^label - 1 for whole labels up to 30, which are grades, and else the labels. No label makes NDCG infinite,
 * NaN, or more than 1. */
START_TEST(gains_are_bounded) {
    sl_metrics m = graded((float[]){1, 30, 0}, 3);
    double most = exp2(30) - 1;
    ck_assert_double_eq_tol(m.ndcg, (discount(0) + most * discount(1)) / (most * discount(0) + discount(1)), 1e-12);
    ck_assert_int_eq(m.ndcg_linear, 0);
    m = graded((float[]){1, 31, 0}, 3);
    ck_assert_double_eq_tol(m.ndcg, (discount(0) + 31 * discount(1)) / (31 * discount(0) + discount(1)), 1e-12);
    ck_assert_int_eq(m.ndcg_linear, 1);
    m = graded((float[]){0.5f, 2, 0}, 3);
    ck_assert_double_eq_tol(m.ndcg, (0.5 * discount(0) + 2 * discount(1)) / (2 * discount(0) + 0.5 * discount(1)),
                            1e-12);
    ck_assert_int_eq(m.ndcg_linear, 1);
    static const float large[] = {1000, 2000, 1024, 1e-30f, 3e38f, 3.4e38f};
    for (size_t i = 0; i + 1 < sizeof large / sizeof *large; i++) {
        m = graded(large + i, 2);
        ck_assert(m.ndcg > 0 && m.ndcg <= 1);
        ck_assert_int_eq(m.ndcg == 1, large[i] > large[i + 1]);
    }
}
END_TEST

/* A perfect order has NDCG 1, and no rounding above it. */
START_TEST(ndcg_is_at_most_1) {
    for (uint64_t seed = 0; seed < 200; seed++) {
        for (size_t i = 0; i < 40; i++) {
            labels[i] = (float)sl_random_unit(seed, i);
            scores[i] = labels[i];
            groups[i] = i % 3;
        }
        sl_metrics m = measure(SL_LOSS_SQUARED, 1, 40, NULL, groups);
        ck_assert(m.ndcg <= 1 && m.ndcg > 1 - 1e-12);
    }
}
END_TEST

START_TEST(labels_below_0_have_no_ndcg) {
    set_rows(1, (float[]){3, 2, 1}, (float[]){5, -2, 1}, 3);
    sl_metrics m = {.struct_size = sizeof m};
    sl_evaluate_params params;
    sl_evaluate_params_init(&params);
    ck_assert_int_eq(
        sl_metrics_compute(SL_LOSS_SQUARED, 1, scores, labels, NULL, (uint64_t[]){1, 1, 1}, 3, &params, &m), SL_EVALUE);
    ck_assert_ptr_nonnull(strstr(sl_last_error(), "row 1: the label is -2; NDCG takes labels of at least 0"));
    ck_assert_uint_eq(m.groups, 0);
    /* Without groups, the other metrics stay. */
    m = measure(SL_LOSS_SQUARED, 1, 3, NULL, NULL);
    ck_assert(isfinite(m.rmse) && isnan(m.ndcg));
    params.ndcg_k = 0;
    ck_assert_int_eq(sl_metrics_compute(SL_LOSS_SQUARED, 1, scores, labels, NULL, NULL, 3, &params, &m), SL_EINVAL);
    ck_assert_ptr_nonnull(strstr(sl_last_error(), "ndcg_k is 0"));
}
END_TEST

START_TEST(lists_by_hand) {
    const uint64_t ids[] = {5, 6, 7, 8, /**/ 1, 1, 2, SL_NO_ID, /**/ 3, 4, 5, 6, /**/ 9, 9, 9, 9};
    const uint64_t relevant[] = {6, 8, 100, /**/ 1, /**/ 50, 60};
    const size_t start[] = {0, 3, 4, 6, 6};
    double ndcg, recall, hits;
    ck_assert_int_eq(sl_list_metrics(ids, 4, 4, relevant, start, &ndcg, &recall, &hits), SL_OK);
    double first = (discount(1) + discount(3)) / (discount(0) + discount(1) + discount(2));
    ck_assert_double_eq_tol(ndcg, (first + 1 + 0) / 3, 1e-12);
    ck_assert_double_eq_tol(recall, (2.0 / 3 + 1 + 0) / 3, 1e-12);
    ck_assert_double_eq_tol(hits, 2.0 / 3, 1e-12);
    ck_assert_int_eq(sl_list_metrics(ids, 4, 4, relevant, start, NULL, NULL, NULL), SL_OK);
    ck_assert_int_eq(sl_list_metrics(ids, 0, 4, relevant, start, &ndcg, NULL, NULL), SL_OK);
    ck_assert(isnan(ndcg));
    const size_t falling[] = {3, 2};
    ck_assert_int_eq(sl_list_metrics(ids, 1, 4, relevant, falling, &ndcg, NULL, NULL), SL_EINVAL);
    ck_assert_int_eq(sl_list_metrics(ids, 1, 0, relevant, start, &ndcg, NULL, NULL), SL_EINVAL);
    ck_assert_int_eq(sl_list_metrics(NULL, 1, 4, relevant, start, &ndcg, NULL, NULL), SL_EINVAL);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Refusals
 * ------------------------------------------------------------------------------------------------------------- */

static void refuse(sl_loss loss, size_t outputs, size_t n, const float *w, sl_status wanted) {
    sl_metrics out = {.struct_size = sizeof out};
    ck_assert_int_eq(sl_metrics_compute(loss, outputs, scores, labels, w, NULL, n, NULL, &out), wanted);
}

START_TEST(bad_values_are_refused) {
    static const float bad_scores[] = {NAN, INFINITY, -0.1f, 1.5f};
    for (size_t i = 0; i < 4; i++) {
        fill_rows(2, 10);
        scores[3] = bad_scores[i];
        refuse(SL_LOSS_LOGISTIC, 1, 10, NULL, SL_EVALUE);
        ck_assert_ptr_nonnull(strstr(sl_last_error(), "row 3"));
    }
    fill_rows(2, 10);
    labels[4] = 0.5f;
    refuse(SL_LOSS_LOGISTIC, 1, 10, NULL, SL_EVALUE);
    labels[4] = NAN;
    refuse(SL_LOSS_SQUARED, 1, 10, NULL, SL_EVALUE);
    labels[4] = 3;
    refuse(SL_LOSS_MULTICLASS, 2, 10, NULL, SL_EVALUE);
    labels[4] = 0;
    weights[5] = -1;
    refuse(SL_LOSS_LOGISTIC, 1, 10, weights, SL_EVALUE);
    refuse(SL_LOSS_LOGISTIC, 2, 10, NULL, SL_EINVAL);
    refuse(SL_LOSS_MULTICLASS, 1, 10, NULL, SL_EINVAL);
    refuse((sl_loss)7, 1, 10, NULL, SL_EINVAL);
    refuse(SL_LOSS_LOGISTIC, 1, 0, NULL, SL_EINVAL);
    ck_assert_int_eq(sl_metrics_compute(SL_LOSS_LOGISTIC, 1, scores, labels, NULL, NULL, 10, NULL, NULL), SL_EINVAL);
    sl_metrics unset = {0};
    ck_assert_int_eq(sl_metrics_compute(SL_LOSS_LOGISTIC, 1, scores, labels, NULL, NULL, 10, NULL, &unset), SL_EINVAL);
}
END_TEST

START_TEST(memory_may_fail) {
    fault_allocator faults;
    sl_evaluate_params params;
    sl_evaluate_params_init(&params);
    fault_allocator_init(&faults, 1);
    params.allocator = &faults.allocator;
    sl_metrics out = {.struct_size = sizeof out};
    fill_rows(2, 10);
    ck_assert_int_eq(sl_metrics_compute(SL_LOSS_LOGISTIC, 1, scores, labels, NULL, NULL, ROWS, &params, &out),
                     SL_ENOMEM);
    ck_assert_int_eq(sl_metrics_compute(SL_LOSS_LOGISTIC, 1, scores, labels, NULL, NULL, ROWS, &params, &out), SL_OK);
    ck_assert_uint_eq(faults.live_blocks, 0);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Losses
 * ------------------------------------------------------------------------------------------------------------- */

START_TEST(the_exponential_is_close) {
    for (float x = -86.9f; x <= 0; x += 0.00137f) {
        double exact = exp((double)x);
        ck_assert_double_le(fabs((double)sl_exp_negative(x) - exact), 2.5e-7 * exact);
    }
    ck_assert(sl_exp_negative(0) == 1.0f);
    ck_assert(sl_exp_negative(-1000) == 0 && sl_exp_negative(-INFINITY) == 0);
    ck_assert(isnan(sl_exp_negative(NAN)));
}
END_TEST

static double exact_loss(sl_loss loss, size_t outputs, const double *z, double label) {
    if (loss == SL_LOSS_SQUARED) return (z[0] - label) * (z[0] - label);
    if (loss == SL_LOSS_LOGISTIC) return fmax(z[0], 0) - z[0] * label + log1p(exp(-fabs(z[0])));
    double most = z[0], sum = 0;
    for (size_t o = 0; o < outputs; o++)
        most = fmax(most, z[o]);
    for (size_t o = 0; o < outputs; o++)
        sum += exp(z[o] - most);
    return most + log(sum) - z[(size_t)label];
}

/* Values and gradients against the definitions and their differences, for small and huge logits. */
static void check_loss(sl_loss loss, size_t outputs) {
    enum { N = 101 };
    float logits[N * 3], gradient[N * 3], label[N], weight[N];
    double sum = 0;
    for (size_t r = 0; r < N; r++) {
        for (size_t o = 0; o < outputs; o++)
            logits[r * outputs + o] = (float)((2 * sl_random_unit(6, r * 4 + o) - 1) * (r % 2 ? 3 : 60));
        label[r] = loss == SL_LOSS_SQUARED ? (float)r / 10 : (float)(r % (outputs > 1 ? outputs : 2));
        weight[r] = (float)(r % 3);
    }
    const sl_loss_rows rows = {.rows = N, .outputs = outputs, .logits = logits, .labels = label, .weights = weight};
    double total = sl_loss_sum(loss, &rows, 0.25f, gradient);
    for (size_t r = 0; r < N; r++) {
        double z[3];
        for (size_t o = 0; o < outputs; o++)
            z[o] = (double)logits[r * outputs + o];
        sum += (double)weight[r] * exact_loss(loss, outputs, z, (double)label[r]);
        for (size_t o = 0; o < outputs; o++) {
            double at = z[o], step = 1e-5;
            z[o] = at + step;
            double above = exact_loss(loss, outputs, z, (double)label[r]);
            z[o] = at - step;
            double slope = (above - exact_loss(loss, outputs, z, (double)label[r])) / (2 * step);
            z[o] = at;
            double wanted = 0.25 * (double)weight[r] * slope;
            ck_assert_double_le(fabs((double)gradient[r * outputs + o] - wanted), 1e-6 + 1e-5 * fabs(wanted));
        }
    }
    ck_assert_double_le(fabs(total - sum), 1e-6 * fabs(sum));
    ck_assert(sl_loss_sum(loss, &rows, 1, NULL) == total);
}

START_TEST(losses_and_their_gradients) {
    check_loss(SL_LOSS_LOGISTIC, 1);
    check_loss(SL_LOSS_SQUARED, 1);
    check_loss(SL_LOSS_MULTICLASS, 3);
}
END_TEST

static int loss_is_finite(sl_loss loss, const float *logits, float label) {
    const float weight = 1;
    float gradient[2];
    const sl_loss_rows row = {1, loss == SL_LOSS_MULTICLASS ? 2 : 1, logits, &label, &weight};
    return isfinite(sl_loss_sum(loss, &row, 1, gradient));
}

START_TEST(a_loss_of_no_number_is_none) {
    float bad[] = {NAN, 1};
    ck_assert(!loss_is_finite(SL_LOSS_LOGISTIC, bad, 1));
    ck_assert(!loss_is_finite(SL_LOSS_MULTICLASS, bad, 0));
    bad[0] = INFINITY;
    ck_assert(!loss_is_finite(SL_LOSS_LOGISTIC, bad, 0));
    ck_assert(!loss_is_finite(SL_LOSS_MULTICLASS, bad, 1));
}
END_TEST

START_TEST(links_make_probabilities) {
    float values[] = {-200, -3, 0, 3, 200};
    sl_link(SL_LOSS_LOGISTIC, 1, 5, values);
    ck_assert(values[0] == 0 && values[2] == 0.5f && values[4] == 1);
    ck_assert_double_eq_tol((double)values[1], 1 / (1 + exp(3.0)), 1e-7);
    ck_assert_double_eq_tol((double)values[3], 1 / (1 + exp(-3.0)), 1e-7);
    float rows[] = {1, 2, 3, 500, -500, 0};
    sl_link(SL_LOSS_MULTICLASS, 3, 2, rows);
    ck_assert_double_eq_tol((double)rows[0], exp(1.0) / (exp(1.0) + exp(2.0) + exp(3.0)), 1e-7);
    ck_assert_double_eq_tol((double)(rows[0] + rows[1] + rows[2]), 1, 1e-6);
    ck_assert(rows[3] == 1 && rows[4] == 0 && rows[5] == 0);
    float plain[] = {7};
    sl_link(SL_LOSS_SQUARED, 1, 1, plain);
    ck_assert(plain[0] == 7);
}
END_TEST

int main(void) {
    TCase *measures = tcase_create("measures");
    tcase_add_test(measures, auc_counts_pairs);
    tcase_add_test(measures, auc_of_one_class_is_not_a_number);
    tcase_add_test(measures, auc_of_groups_is_their_mean_by_rows);
    tcase_add_test(measures, sorting_keeps_equals_in_order);
    tcase_add_test(measures, logistic_by_hand);
    tcase_add_test(measures, certain_and_wrong_stays_finite);
    tcase_add_test(measures, squared_by_hand);
    tcase_add_test(measures, multiclass_by_hand);
    tcase_add_test(measures, weights_are_repeated_rows);
    tcase_add_test(measures, deciles_are_tenths_in_order);
    tcase_add_test(measures, ndcg_by_hand);
    tcase_add_test(measures, gains_are_bounded);
    tcase_add_test(measures, ndcg_is_at_most_1);
    tcase_add_test(measures, labels_below_0_have_no_ndcg);
    tcase_add_test(measures, lists_by_hand);
    tcase_add_test(measures, bad_values_are_refused);
    tcase_add_test(measures, memory_may_fail);
    TCase *losses = tcase_create("losses");
    tcase_add_test(losses, the_exponential_is_close);
    tcase_add_test(losses, losses_and_their_gradients);
    tcase_add_test(losses, a_loss_of_no_number_is_none);
    tcase_add_test(losses, links_make_probabilities);
    return check_main("metrics", (TCase *[]){measures, losses}, 2);
}
