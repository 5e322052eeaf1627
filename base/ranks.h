/* The processes that work on one job together: its ranks. The library itself has one rank. cluster/ connects several by
 * MPI, and hands them to the library as this table of calls.
 *
 * Every rank makes the same calls in the same order. A call that fails on one rank fails on all, with one message that
 * names the rank. A NULL table stands for a job of one rank. */
#ifndef SL_BASE_RANKS_H
#define SL_BASE_RANKS_H

#include "base/exact_sum.h"
#include "base/memory.h"

/* One part of data for each rank. Part r lies from at[r] to at[r + 1]. */
typedef struct sl_parts {
    sl_allocator allocator;
    size_t ranks;
    size_t *at;
    uint8_t *data;
} sl_parts;
/* Allocates parts of these sizes. The caller frees, also on failure. Errors: SL_ENOMEM. */
sl_status sl_parts_create(const sl_allocator *allocator, size_t ranks, const size_t *sizes, sl_parts *out);
void sl_parts_free(sl_parts *parts);
static inline size_t sl_part_size(const sl_parts *parts, size_t rank) {
    return parts->at[rank + 1] - parts->at[rank];
}

typedef struct sl_ranks {
    void *ctx;
    size_t rank, ranks;
    /* Returns SL_OK if every rank gives SL_OK, else the failure of the first rank that failed. */
    sl_status (*agree)(void *ctx, sl_status mine);
    /* Gathers data of any size from each rank. Part r of *out is of rank r. The caller frees, also on failure. */
    sl_status (*gather)(void *ctx, const void *mine, size_t size, const sl_allocator *allocator, sl_parts *out);
    /* Gathers `size` bytes of each rank into `all`, in the order of ranks. */
    sl_status (*gather_same)(void *ctx, const void *mine, size_t size, void *all);
    /* Gathers sizes[r] bytes of each rank r into `all`. Every rank gives the same sizes. `mine` may be the rank's part
     * of `all`. */
    sl_status (*gather_sizes)(void *ctx, const void *mine, const size_t *sizes, void *all);
    /* Sends part r of `to` to rank r. Part r of *from is what rank r sent here. The caller frees, also on failure. */
    sl_status (*exchange)(void *ctx, const sl_parts *to, const sl_allocator *allocator, sl_parts *from);
    /* Copies the data of rank 0 to all ranks. */
    sl_status (*broadcast)(void *ctx, void *data, size_t size);
    /* Sums over the ranks, in place, with the same bits on every rank. */
    sl_status (*sum_counts)(void *ctx, uint64_t *counts, size_t count);
    sl_status (*sum_floats)(void *ctx, float *numbers, size_t count);
    /* Begins such a sum, and goes on beside the caller's work. The numbers belong to the sum until sum_wait, which
     * waits for all sums that began. */
    sl_status (*sum_begin)(void *ctx, float *numbers, size_t count);
    sl_status (*sum_wait)(void *ctx);
} sl_ranks;

/* The calls, for a table that may be NULL. */
static inline size_t sl_ranks_count(const sl_ranks *ranks) {
    return ranks ? ranks->ranks : 1;
}
static inline sl_status sl_ranks_agree(const sl_ranks *ranks, sl_status mine) {
    return ranks ? ranks->agree(ranks->ctx, mine) : mine;
}
static inline sl_status sl_ranks_sum_counts(const sl_ranks *ranks, uint64_t *counts, size_t count) {
    return ranks ? ranks->sum_counts(ranks->ctx, counts, count) : SL_OK;
}

/* Adds up the exact sums of all ranks, and their doubles in the order of ranks. */
sl_status sl_ranks_sum_exact(const sl_ranks *ranks, sl_exact_sum *sums, size_t count);
sl_status sl_ranks_sum_doubles(const sl_ranks *ranks, double *numbers, size_t count);

#endif
