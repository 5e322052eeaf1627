/* Gradients by the rows of one array of weights, summed over a mini-batch. Only touched rows have sums: rows that get a
 * gradient from the mini-batch.
 *
 *     tags:  row 7 -> (step 41, place 0)   row 3 -> (step 41, place 1)   row 9 -> (step 12, ...)  stale
 *     rows:  7 | 3 | ...
 *     sums:  gradient of row 7 | gradient of row 3 | ...
 *
 * The array may have millions of rows, so nothing is cleared: a tag of an earlier step is stale. */
#ifndef SL_RANKER_NET_ROW_SUMS_H
#define SL_RANKER_NET_ROW_SUMS_H

#include "base/memory.h"

#include <stdint.h>

typedef struct sl_row_tag {
    uint32_t step, place;
} sl_row_tag;

typedef struct sl_row_sums {
    size_t width;   /* floats per row */
    size_t count;   /* rows touched in this step */
    uint32_t *rows; /* their numbers in the order of first touches; room for one more, which sl_row_sums_of writes */
    float *sums;    /* (count, width), in the same order */
    uint32_t step;
    sl_row_tag *tags;  /* one for each row of the array */
    size_t size, room; /* rows of the array; most rows that a step touches */
} sl_row_sums;

/* Allocates the sums. Free *out on failure too. Errors: SL_ENOMEM. */
sl_status sl_row_sums_create(size_t size, size_t width, size_t room, const sl_allocator *allocator, sl_row_sums *out);
void sl_row_sums_free(sl_row_sums *sums, const sl_allocator *allocator);
/* Begins a step, with no row touched. */
void sl_row_sums_clear(sl_row_sums *sums);

/* Touches a row and returns its sums. *fresh: this is its first touch in this step, and its sums hold old numbers. It
 * has no branch, because a branch on `fresh` could not be predicted. */
static inline float *sl_row_sums_of(sl_row_sums *sums, uint32_t row, int *fresh) {
    sl_row_tag *tag = &sums->tags[row];
    int is_fresh = tag->step != sums->step;
    uint32_t place = is_fresh ? (uint32_t)sums->count : tag->place;
    *tag = (sl_row_tag){.step = sums->step, .place = place};
    sums->rows[sums->count] = row;
    sums->count += (size_t)is_fresh;
    *fresh = is_fresh;
    return sums->sums + place * sums->width;
}

/* Adds factor times `gradient` to a row's sums. */
static inline void sl_row_sums_add(sl_row_sums *sums, uint32_t row, float factor, const float *gradient) {
    int fresh;
    float *to = sl_row_sums_of(sums, row, &fresh);
    for (size_t i = 0; i < sums->width; i++)
        to[i] = (fresh ? 0 : to[i]) + factor * gradient[i];
}

#endif
