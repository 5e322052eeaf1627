/* Rows, queries, ids and allowed rows for tests of filtered searches. There are enough rows for partitions. Ids are
 * neither nodes nor rows. */
#ifndef SL_TESTS_ALLOWED_ROWS_H
#define SL_TESTS_ALLOWED_ROWS_H

#include "tests/support/indexes.h"

enum { N = 6000, DIM = 32, Q = 60, K = 10, STEP = 3, WORDS = (STEP * N + 63) / 64 };

extern float *x; /* N vectors, and Q queries behind them */
extern const float *queries;
extern uint64_t bits[WORDS]; /* one bit per id: the allowed ids */

/* A checked fixture: nothing is allowed. */
void rows_set_up(void);
void rows_tear_down(void);

uint64_t id_of(size_t row);
size_t row_of(uint64_t id);

/* Tells whether a row's cosine with a query is above `least`. */
int is_near(size_t row, const float *query, float least);

/* An index of the first n rows. */
sl_index *index_of(sl_metric metric, sl_codes codes, sl_refine refine, size_t n);

/* Indexes that score results differently: by finer codes, by a copy, as the walk does, or by the vectors themselves. */
typedef struct rows_kind {
    sl_metric metric;
    sl_codes codes;
    sl_refine refine;
} rows_kind;
enum { KINDS = 5 };
extern const rows_kind kinds[KINDS];

int is_allowed(uint64_t id);
void allow(size_t row, int allowed);
/* Allows one in `every` of the rows that `which` leaves; every 0: none. Returns their number. */
size_t allow_every(size_t every, uint64_t which);

/* A filter of what is allowed. */
sl_filter *filter_of_bits(sl_index *index);

/* The K nearest allowed rows of each query, filled up with SL_NO_ID. */
void truth(sl_metric metric, uint64_t *ids);
/* Checks that results are allowed and different, and filled up at the end. Returns their number. */
size_t expect_lawful(const uint64_t *ids, const float *scores);

#endif
