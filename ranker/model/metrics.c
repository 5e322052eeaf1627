#include "ranker/model/metrics.h"

#include "base/params.h"
#include "base/status.h"
#include "ranker/model/auc.h"

#include <float.h>
#include <math.h>
#include <string.h>

void sl_evaluate_params_init_sized(sl_evaluate_params *params, size_t struct_size) {
    const sl_evaluate_params mine = {.struct_size = sizeof mine, .ndcg_k = 10};
    sl_params_defaults(params, struct_size, &mine, sizeof mine);
}

/* The rows to measure, and memory to sort them. */
typedef struct measure {
    sl_loss loss;
    size_t outputs, n;
    const float *scores, *labels, *weights;
    const uint64_t *groups;
    sl_allocator allocator;
    sl_sort_entry *entries, *ideal, *scratch; /* n each */
    double *shares;                           /* the share of each class among the labels; zeros at first */
    int linear_gains;                         /* whether a row's gain is its label; else 2^label - 1 */
} measure;

static double weight_of(const measure *m, size_t row) {
    return m->weights ? (double)m->weights[row] : 1;
}

/* Gets a row's score, or the score of its likeliest class. Gets the label to compare with it: the row's label, or
 * whether that class is right. */
static void score_and_label(const measure *m, size_t row, double *score, double *label) {
    const float *scores = m->scores + row * m->outputs;
    size_t best = 0;
    for (size_t o = 1; o < m->outputs; o++)
        if (scores[o] > scores[best]) best = o;
    *score = (double)scores[best];
    *label = m->loss == SL_LOSS_MULTICLASS ? (double)(best == (size_t)m->labels[row]) : (double)m->labels[row];
}

/* ---- Input ---- */

static sl_status check_label(const measure *m, size_t row) {
    float label = m->labels[row];
    if (m->loss == SL_LOSS_LOGISTIC && label != 0 && label != 1)
        return sl_fail(SL_EVALUE, "row %zu: the label is %g; under logistic loss it is 0 or 1", row, (double)label);
    if (m->loss == SL_LOSS_MULTICLASS && !(label >= 0 && label < (float)m->outputs && label == floorf(label)))
        return sl_fail(SL_EVALUE, "row %zu: the label is %g; it is the number of one of %zu classes", row,
                       (double)label, m->outputs);
    if (!isfinite(label)) return sl_fail(SL_EVALUE, "row %zu: the label is not finite", row);
    return SL_OK;
}

size_t sl_finite_rows(const float *scores, size_t n, size_t outputs) {
    size_t at = 0;
    while (at < n * outputs && isfinite(scores[at]))
        at++;
    return at / outputs;
}

static sl_status check_row(const measure *m, size_t row) {
    SL_TRY(check_label(m, row));
    if (sl_finite_rows(m->scores + row * m->outputs, 1, m->outputs) == 0)
        return sl_fail(SL_EVALUE, "row %zu: the score is not finite", row);
    for (size_t o = 0; o < m->outputs; o++) {
        float score = m->scores[row * m->outputs + o];
        if (m->loss != SL_LOSS_SQUARED && !(score >= 0 && score <= 1))
            return sl_fail(SL_EVALUE, "row %zu: the score is %g; a probability is 0 to 1", row, (double)score);
    }
    if (m->weights && !(m->weights[row] >= 0 && isfinite(m->weights[row])))
        return sl_fail(SL_EVALUE, "row %zu: the weight is %g; it is a number of at least 0", row,
                       (double)m->weights[row]);
    return SL_OK;
}

static sl_status check_input(const measure *m) {
    if (m->loss != SL_LOSS_LOGISTIC && m->loss != SL_LOSS_MULTICLASS && m->loss != SL_LOSS_SQUARED)
        return sl_fail(SL_EINVAL, "loss %d is none of logistic, multi-class and squared", (int)m->loss);
    if (m->outputs == 0 || (m->outputs > 1) != (m->loss == SL_LOSS_MULTICLASS))
        return sl_fail(SL_EINVAL, "%zu scores a row do not fit the loss", m->outputs);
    if (m->n == 0) return sl_fail(SL_EINVAL, "there are no rows to measure");
    if (!m->scores || !m->labels) return sl_fail(SL_EINVAL, "scores or labels is NULL");
    for (size_t row = 0; row < m->n; row++)
        SL_TRY(check_row(m, row));
    return SL_OK;
}

/* ---- Means over the rows ---- */

/* Returns the negative logarithm of a probability, which a float may have rounded to 0. */
static double negative_log(double probability) {
    return -log(fmax(probability, (double)FLT_EPSILON));
}

static double entropy(double rate) {
    return rate > 0 && rate < 1 ? -(rate * log(rate) + (1 - rate) * log(1 - rate)) : 0;
}

/* Returns the logloss of a model that predicts the classes' shares, or a logistic label's mean, for every row. */
static double label_entropy(const measure *m, double weight, double base_rate) {
    if (m->loss != SL_LOSS_MULTICLASS) return entropy(base_rate);
    double sum = 0;
    for (size_t row = 0; row < m->n; row++)
        m->shares[(size_t)m->labels[row]] += weight_of(m, row) / weight;
    for (size_t o = 0; o < m->outputs; o++)
        if (m->shares[o] > 0) sum -= m->shares[o] * log(m->shares[o]);
    return sum;
}

static double row_logloss(const measure *m, size_t row) {
    if (m->loss == SL_LOSS_MULTICLASS)
        return negative_log((double)m->scores[row * m->outputs + (size_t)m->labels[row]]);
    double score = (double)m->scores[row];
    return negative_log(m->labels[row] > 0.5f ? score : 1 - score);
}

static void measure_means(const measure *m, sl_metrics *out) {
    const double none = (double)NAN;
    double weight = 0, labels = 0, scores = 0, logloss = 0, right = 0, squares = 0;
    int classes = m->loss == SL_LOSS_MULTICLASS, value = m->loss == SL_LOSS_SQUARED;
    for (size_t row = 0; row < m->n; row++) {
        double own = weight_of(m, row), score, label;
        score_and_label(m, row, &score, &label);
        double off = classes ? 1 - (double)m->scores[row * m->outputs + (size_t)m->labels[row]] : score - label;
        weight += own;
        labels += own * label;
        scores += own * score;
        squares += own * off * off;
        right += own * (classes ? label : (double)((score >= 0.5) == (label > 0.5)));
        if (!value) logloss += own * row_logloss(m, row);
    }
    out->rmse = sqrt(squares / weight);
    out->accuracy = value ? none : right / weight;
    out->logloss = value ? none : logloss / weight;
    out->base_rate = classes ? none : labels / weight;
    out->calibration = classes || labels == 0 ? none : scores / labels;
    double most = value ? 0 : label_entropy(m, weight, labels / weight);
    out->normalized_entropy = most > 0 ? out->logloss / most : none;
}

/* ---- Rows in order of their scores ---- */

static void measure_deciles(const measure *m, sl_metrics *out) {
    double score, label;
    for (size_t row = 0; row < m->n; row++) {
        score_and_label(m, row, &score, &label);
        m->entries[row] = (sl_sort_entry){sl_score_key((float)score), row};
    }
    sl_sort(m->entries, m->scratch, m->n);
    for (size_t d = 0; d < SL_DECILES; d++) {
        size_t from = m->n * d / SL_DECILES, to = m->n * (d + 1) / SL_DECILES;
        double weight = 0, scores = 0, labels = 0;
        for (size_t i = from; i < to; i++) {
            size_t row = m->entries[i].row;
            score_and_label(m, row, &score, &label);
            weight += weight_of(m, row);
            scores += weight_of(m, row) * score;
            labels += weight_of(m, row) * label;
        }
        out->decile_rows[d] = to - from;
        out->decile_score[d] = weight > 0 ? scores / weight : (double)NAN;
        out->decile_label[d] = weight > 0 ? labels / weight : (double)NAN;
    }
}

/* ---- Groups ---- */

/* Sorts the rows by group, and within a group by value. The second sort is stable. In the end, the keys are the
 * values'. */
static void sort_groups(const measure *m, const float *values, sl_sort_entry *entries) {
    for (size_t row = 0; row < m->n; row++)
        entries[row] = (sl_sort_entry){sl_score_key(values[row]), row};
    sl_sort(entries, m->scratch, m->n);
    for (size_t i = 0; i < m->n; i++)
        entries[i].key = m->groups[entries[i].row];
    sl_sort(entries, m->scratch, m->n);
    for (size_t i = 0; i < m->n; i++)
        entries[i].key = sl_score_key(values[entries[i].row]);
}

/* The largest grade. 2^label - 1 is then exact enough in a float, and sums stay finite. */
#define MAX_GRADE 30.0f

/* Chooses how labels count in NDCG. A grade is a whole label from 0 to MAX_GRADE, and gains 2^label - 1 (Burges et al.
 * 2005). If one label is no grade, all gains are linear (Jarvelin and Kekalainen 2002). Negative labels are refused,
 * because the best order of a group could gain 0 or less. */
static sl_status choose_gains(measure *m) {
    for (size_t row = 0; row < m->n; row++) {
        float label = m->labels[row];
        if (label < 0)
            return sl_fail(
                SL_EVALUE,
                "row %zu: the label is %g; NDCG takes labels of at least 0. Measure without groups, or shift "
                "the labels",
                row, (double)label);
        if (label > MAX_GRADE || label != floorf(label)) m->linear_gains = 1;
    }
    return SL_OK;
}

static double row_gain(const measure *m, size_t row) {
    double label = (double)m->labels[row];
    return m->linear_gains ? label : exp2(label) - 1;
}

/* Returns the discounted cumulative gain of the k rows with the largest keys, which are last. Rows with equal keys get
 * the mean of their ranks' discounts (McSherry and Najork 2008), so that their order does not count. */
static double dcg(const measure *m, const sl_sort_entry *sorted, size_t count, size_t k) {
    double sum = 0;
    for (size_t rank = 0; rank < count && rank < k;) {
        uint64_t key = sorted[count - 1 - rank].key;
        double gains = 0, discounts = 0;
        size_t first = rank;
        for (; rank < count && sorted[count - 1 - rank].key == key; rank++) {
            gains += row_gain(m, sorted[count - 1 - rank].row);
            if (rank < k) discounts += 1 / log2((double)rank + 2);
        }
        sum += gains / (double)(rank - first) * discounts;
    }
    return sum;
}

static void measure_groups(const measure *m, size_t k, sl_metrics *out) {
    double auc_sum = 0, auc_rows = 0, ndcg_sum = 0, ndcg_groups = 0;
    sort_groups(m, m->scores, m->entries);
    sort_groups(m, m->labels, m->ideal);
    for (size_t from = 0, to; from < m->n; from = to) {
        uint64_t group = m->groups[m->entries[from].row];
        for (to = from; to < m->n && m->groups[m->entries[to].row] == group; to++)
            ;
        out->groups++;
        double best = dcg(m, m->ideal + from, to - from, k);
        if (m->labels[m->ideal[to - 1].row] > 0) {
            ndcg_sum += fmin(dcg(m, m->entries + from, to - from, k) / best, 1); /* rounding can exceed 1 */
            ndcg_groups++;
        }
        double auc = m->loss == SL_LOSS_LOGISTIC
                         ? sl_auc_sorted(m->entries + from, m->labels, m->weights, NULL, to - from)
                         : (double)NAN;
        if (isnan(auc)) continue;
        auc_sum += auc * (double)(to - from);
        auc_rows += (double)(to - from);
    }
    if (auc_rows > 0) out->group_auc = auc_sum / auc_rows;
    if (ndcg_groups > 0) out->ndcg = ndcg_sum / ndcg_groups;
}

/* ---- The public calls ---- */

static sl_status measure_all(measure *m, size_t ndcg_k, sl_metrics *out) {
    size_t bytes, shares;
    void *block;
    if (!sl_mul(m->n, 3 * sizeof *m->entries, &bytes) || !sl_mul(m->outputs, sizeof *m->shares, &shares) ||
        !sl_add(bytes, shares, &bytes))
        return sl_fail(SL_ENOMEM, "%zu rows do not fit", m->n);
    SL_TRY(sl_mem_alloc(&m->allocator, bytes, &block));
    m->entries = block;
    m->ideal = m->entries + m->n;
    m->scratch = m->ideal + m->n;
    m->shares = (double *)(void *)(m->scratch + m->n);
    measure_means(m, out);
    measure_deciles(m, out);
    if (m->loss == SL_LOSS_LOGISTIC) /* measure_deciles has sorted the rows */
        out->auc = sl_auc_sorted(m->entries, m->labels, m->weights, NULL, m->n);
    if (m->groups) measure_groups(m, ndcg_k, out);
    sl_mem_free(&m->allocator, block, bytes);
    return SL_OK;
}

sl_status sl_metrics_compute(sl_loss loss, size_t outputs, const float *scores, const float *labels,
                             const float *weights, const uint64_t *groups, size_t n, const sl_evaluate_params *params,
                             sl_metrics *out) {
    sl_evaluate_params mine;
    sl_evaluate_params_init(&mine);
    SL_TRY(sl_params_in(&mine, sizeof mine, params, "sl_evaluate_params_init"));
    SL_TRY(sl_params_check_out(out, "sl_metrics"));
    measure m = {.loss = loss,
                 .outputs = outputs,
                 .n = n,
                 .scores = scores,
                 .labels = labels,
                 .weights = weights,
                 .groups = groups,
                 .allocator = sl_allocator_of(mine.allocator)};
    SL_TRY(check_input(&m));
    if (mine.ndcg_k == 0) return sl_fail(SL_EINVAL, "ndcg_k is 0; ask for at least 1");
    if (outputs > 1) m.groups = NULL; /* multi-class has no measures within groups */
    if (m.groups) SL_TRY(choose_gains(&m));
    const double none = (double)NAN;
    sl_metrics metrics = {.struct_size = sizeof metrics,
                          .rows = n,
                          .auc = none,
                          .group_auc = none,
                          .ndcg = none,
                          .ndcg_k = mine.ndcg_k,
                          .ndcg_linear = m.linear_gains};
    SL_TRY(measure_all(&m, mine.ndcg_k, &metrics));
    sl_params_out(out, &metrics, sizeof metrics);
    return SL_OK;
}

/* ---- Lists ---- */

static int contains_id(const uint64_t *ids, size_t count, uint64_t id) {
    for (size_t i = 0; i < count; i++)
        if (ids[i] == id) return 1;
    return 0;
}

/* Sums the discounted gain of a list's relevant ids, each at its first place. *hits gets their number. */
static double list_gain(const uint64_t *ids, size_t k, const uint64_t *relevant, size_t count, size_t *hits) {
    double sum = 0;
    *hits = 0;
    for (size_t i = 0; i < k && ids[i] != SL_NO_ID; i++) {
        if (!contains_id(relevant, count, ids[i]) || contains_id(ids, i, ids[i])) continue;
        sum += 1 / log2((double)i + 2);
        ++*hits;
    }
    return sum;
}

sl_status sl_list_metrics(const uint64_t *ids, size_t lists, size_t k, const uint64_t *relevant, const size_t *start,
                          double *ndcg, double *recall, double *hit_rate) {
    double ndcg_sum = 0, recall_sum = 0, hit_sum = 0, counted = 0;
    if (!start || (lists && k && !ids)) return sl_fail(SL_EINVAL, "ids or start is NULL");
    if (k == 0) return sl_fail(SL_EINVAL, "k is 0; lists have one entry at least");
    for (size_t i = 0; i < lists; i++) {
        if (start[i + 1] < start[i] || (start[i + 1] > start[i] && !relevant))
            return sl_fail(SL_EINVAL, "list %zu: start falls, or relevant is NULL", i);
        size_t count = start[i + 1] - start[i], hits;
        if (count == 0) continue;
        double found = list_gain(ids + i * k, k, relevant + start[i], count, &hits), best = 0;
        for (size_t rank = 0; rank < k && rank < count; rank++)
            best += 1 / log2((double)rank + 2);
        ndcg_sum += found / best;
        recall_sum += (double)hits / (double)count;
        hit_sum += hits > 0;
        counted++;
    }
    /* All three are NaN if no list has a relevant id. */
    if (ndcg) *ndcg = counted > 0 ? ndcg_sum / counted : (double)NAN;
    if (recall) *recall = counted > 0 ? recall_sum / counted : (double)NAN;
    if (hit_rate) *hit_rate = counted > 0 ? hit_sum / counted : (double)NAN;
    return SL_OK;
}
