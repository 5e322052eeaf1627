/* The area under the ROC curve, and the sorting of rows by score. */
#ifndef SL_RANKER_MODEL_AUC_H
#define SL_RANKER_MODEL_AUC_H

#include "base/memory.h"

/* Rows in order of a key. */
typedef struct sl_sort_entry {
    uint64_t key;
    size_t row;
} sl_sort_entry;

/* Sorts by key, rising. Equal keys keep their order. `room` has as many entries. */
void sl_sort(sl_sort_entry *entries, sl_sort_entry *room, size_t n);

/* Returns a key that rises with the score. The score is not NaN. Both zeros have one key. */
uint64_t sl_score_key(float score);

/* Returns the area under the ROC curve of n rows sorted by sl_score_key: the share of pairs of a positive (label above
 * 0.5) and a negative row in which the positive one has the higher score. Ties count half. A pair counts by both
 * weights.
 * Parameters: weights NULL: all 1. Entry e is row numbers[e.row], or row e.row where numbers is NULL.
 * Returns: NaN if either kind has no weight. */
double sl_auc_sorted(const sl_sort_entry *sorted, const float *labels, const float *weights, const uint32_t *numbers,
                     size_t n);

/* Computes the same from scores[0] to scores[n - 1]. Errors: SL_ENOMEM. */
sl_status sl_auc(const float *scores, const float *labels, const float *weights, const uint32_t *numbers, size_t n,
                 const sl_allocator *allocator, double *out);

#endif
