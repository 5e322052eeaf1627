/* Rows to score, somewhere in the memory hierarchy, and the time a score takes. */
#ifndef BENCH_KERNELS_ROWS_H
#define BENCH_KERNELS_ROWS_H

#include "distance/codec/codec.h"

/* A block of memory, filled at random, on 4 KB or 2 MB pages. */
typedef struct block {
    uint8_t *base;
    size_t size;
    size_t huge; /* bytes of it that the system put on 2 MB pages */
} block;

int block_map(block *b, size_t size, int huge_pages);
void block_unmap(block *b);

/* A query, and ids of rows in random order, over rows that fill `bytes` of a block. */
typedef struct setup {
    sl_codec codec;
    sl_query_code query;
    size_t rows;
    uint32_t *ids;
    size_t id_count;
    void *query_buffer;
    float *out;
} setup;

#define BATCH 16u /* ids of one call, about what one node's new neighbours are */

int setup_init(setup *s, const block *b, size_t bytes, size_t dim, sl_codes codes, size_t id_count);
void setup_free(setup *s);

double now_ns(void);

/* For qsort of doubles. */
int by_value(const void *a, const void *b);

#define CHUNK 1024u /* rows timed together: short beside what the scheduler gives a process */

/* Gives ns a row: the first quartile over the chunks of `rounds` passes over all ids. Times that other programs disturb
 * lie above the quartile. `batch` rows go into a call; `batch` divides CHUNK. */
double time_scores(const sl_kernels *kernels, const setup *s, size_t batch, size_t ahead, size_t rounds);

#endif
