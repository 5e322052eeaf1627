/* The models whose speed is compared, and rows of their shape. */
#ifndef BENCH_RANK_SHAPES_H
#define BENCH_RANK_SHAPES_H

#include <shortlist_rank.h>

#include <stddef.h>

typedef struct shape {
    const char *name;
    size_t numbers, categories; /* columns; the first half of each is the user's, the rest the item's */
    size_t buckets, dim;        /* of each category */
    const char *hidden;
} shape;

/* "criteo" (845-1024-512-256-1, as Intel's large wide & deep for that data) or "small" (133-128-64-32-1), or
 * "first" (845-1024-1: little but joining parts of the first layer); NULL. */
const shape *shape_named(const char *name);

/* The spec's JSON text, to be freed. */
char *shape_spec(const shape *of);

/* Random rows as columns: floats in I1…, integers in C1…, which are skewed as clicks are. */
typedef struct rows {
    sl_table table;
    sl_column *columns;
    char (*names)[32];
    size_t count;
} rows;

enum { ROWS_USER = 1, ROWS_ITEM = 2, ROWS_ID = 4 }; /* which columns; ROWS_ID: "id", 0 to n - 1 */
rows *rows_make(const shape *of, size_t n, unsigned which, uint64_t seed);
void rows_free(rows *made);
/* `n` rows that hold row `user` of users beside rows ids[i] of items, to be freed by rows_free. */
rows *rows_join(const rows *users, size_t user, const rows *items, const uint64_t *ids, size_t n);

/* A ranker of the shape, fitted to random rows, every weight of it random, so that each of them counts in a score. */
sl_ranker *shape_ranker(const shape *of, uint64_t seed);
/* That ranker with INT8 layers, calibrated on random rows. */
sl_ranker *shape_quantized(const shape *of, const sl_ranker *ranker, uint64_t seed);

/* An item table of the rows. */
sl_items *shape_items(const rows *from);
/* An index that only has to be there: ranking alone is measured. */
sl_index *shape_index(void);

/* Ends the program with the library's message where status is a failure. */
void must(sl_status status, const char *what);
void *must_alloc(size_t count, size_t size);

#endif
