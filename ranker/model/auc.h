/* Computes the area under the ROC curve, and sorts rows by score. */
#ifndef SL_RANKER_MODEL_AUC_H
#define SL_RANKER_MODEL_AUC_H

#include "base/memory.h"

/* A row and its key to sort by. */
typedef struct sl_sort_entry {
    uint64_t key;
    size_t row;
} sl_sort_entry;

/* Sorts by rising key. The sort is stable. `scratch` has room for n entries. */
void sl_sort(sl_sort_entry *entries, sl_sort_entry *scratch, size_t n);

/* Returns a key that rises with the score. The score must not be NaN. Both zeros have the same key. */
uint64_t sl_score_key(float score);

/* Returns the area under the ROC curve of n rows sorted by sl_score_key. It is the share of pairs of a positive row
 * (label above 0.5) and a negative row in which the positive row has the higher score. Ties count half. Both rows'
 * weights multiply.
 * Parameters: weights NULL: all are 1. Entry e is row numbers[e.row], or row e.row if numbers is NULL.
 * Returns: NaN if either kind has no weight. */
double sl_auc_sorted(const sl_sort_entry *sorted, const float *labels, const float *weights, const uint32_t *numbers,
                     size_t n);

/* Computes the same from scores[0] to scores[n - 1]. Errors: SL_ENOMEM. */
sl_status sl_auc(const float *scores, const float *labels, const float *weights, const uint32_t *numbers, size_t n,
                 const sl_allocator *allocator, double *out);

#endif
