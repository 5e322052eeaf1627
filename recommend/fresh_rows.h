/* Rows that a request prepares itself: of candidates whose vector in the index is another than when their row was
 * prepared ahead. So a model with items' vectors as features follows the index. */
#ifndef SL_RECOMMEND_FRESH_ROWS_H
#define SL_RECOMMEND_FRESH_ROWS_H

#include "recommend/recommender.h"

/* One thread's such rows, for one model. */
typedef struct sl_fresh_rows {
    sl_prepared about;      /* what a preparer reads of prepared items; without rows */
    sl_preparer *preparer;  /* NULL before the model's first such request */
    sl_prepared_part *part; /* `room` rows */
    uint64_t *ids;          /* those of this request, and their rows in the table, and their numbers as candidates */
    sl_row_ref *refs;
    size_t *numbers;
    size_t room, n; /* n: in this request */
} sl_fresh_rows;

/* A request's candidates, with the births of the vectors that they have now. */
typedef struct sl_vector_births {
    sl_candidate *candidates;
    const uint64_t *ids, *births;
    size_t n;
} sl_vector_births;

/* Replaces the rows of such candidates, if the model has items' vectors as features. Items that the table lacks keep
 * their rows.
 * Parameters: `room` is the most that n can be, in any call.
 * Allocates at the first such candidate of a model, and if bags have more ids than ever before.
 * Errors: as of a prediction. */
sl_status sl_fresh_rows_replace(sl_fresh_rows *fresh, const sl_pair *pair, const sl_vector_births *now, size_t room);
/* Takes a zeroed struct. Call it before the model is freed. */
void sl_fresh_rows_free(sl_fresh_rows *fresh);

#endif
