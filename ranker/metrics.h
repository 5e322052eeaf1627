/* What the loop that trains and the public metrics share. */
#ifndef SL_RANKER_METRICS_H
#define SL_RANKER_METRICS_H

#include "base/memory.h"

#include <shortlist_rank.h>

/* Rows in order of a key. */
typedef struct sl_sort_entry {
    uint64_t key;
    size_t row;
} sl_sort_entry;

/* Sorts by key, rising; equal keys stay in order. `room` has as many entries. */
void sl_sort(sl_sort_entry *entries, sl_sort_entry *room, size_t n);

/* A key that rises with the score, which is no NaN; both zeros have the same. */
uint64_t sl_score_key(float score);

/* The area under the ROC curve of n rows sorted by sl_score_key, ties counting half: the share of pairs of a positive
 * (label above 0.5) and a negative row, each pair by both weights (NULL: 1), in which the positive one has the higher
 * score. Entry e is of row numbers[e.row], or of row e.row where numbers is NULL. NaN where either kind has no weight.
 */
double sl_auc_sorted(const sl_sort_entry *sorted, const float *labels, const float *weights, const uint32_t *numbers,
                     size_t n);

/* The same of scores[0] to scores[n - 1]. Errors: SL_ENOMEM. */
sl_status sl_auc(const float *scores, const float *labels, const float *weights, const uint32_t *numbers, size_t n,
                 const sl_allocator *allocator, double *out);

#endif
