/* Items divided among ranks: which items a rank takes, and how ranks exchange what they computed.
 *
 * The calls that exchange take the caller's status so far. If a rank has failed, all ranks get the failure of the first
 * such rank, and no data move. Without ranks (NULL) this process takes all items, and gets its own status back. */
#ifndef SL_BASE_SHARE_H
#define SL_BASE_SHARE_H

#include "base/ranks.h"

/* Numbers from `first` to `end` - 1. */
typedef struct sl_range {
    size_t first, end;
} sl_range;

/* Rows that a rank takes at once, of arrays and of lists with a row for each vector. */
enum { SL_SHARED_ROWS = 64 };

/* n items are shared out in whole units of `unit` items. A loop that takes a unit at a time then sees the same units at
 * any number of ranks. */

/* Returns the items of a rank. */
static inline sl_range sl_share_of_rank(const sl_ranks *ranks, size_t rank, size_t n, size_t unit) {
    const size_t units = n / unit + (n % unit != 0);
    const size_t first = units * rank / ranks->ranks * unit, end = units * (rank + 1) / ranks->ranks * unit;
    return (sl_range){first < n ? first : n, end < n ? end : n};
}
/* Returns the items of this process. */
static inline sl_range sl_share_mine(const sl_ranks *ranks, size_t n, size_t unit) {
    return ranks ? sl_share_of_rank(ranks, ranks->rank, n, unit) : (sl_range){0, n};
}
/* Returns the rank that takes an item. */
static inline size_t sl_share_owner(const sl_ranks *ranks, size_t item, size_t n, size_t unit) {
    const size_t units = n / unit + (n % unit != 0);
    return ((item / unit + 1) * ranks->ranks - 1) / units;
}

/* Gathers n items of `size` bytes each, in place. Each rank has those of sl_share_mine. */
sl_status sl_share_gather(const sl_ranks *ranks, sl_status mine, void *items, size_t size, size_t n, size_t unit);
/* Gives every rank the bytes that rank 0 has. */
sl_status sl_share_broadcast(const sl_ranks *ranks, sl_status mine, void *data, size_t bytes);
/* Sends part r of `to` to rank r. Part r of *from is what rank r sent here. The caller frees, also on failure. */
sl_status sl_share_exchange(const sl_ranks *ranks, sl_status mine, const sl_parts *to, sl_parts *from);
/* Adds up the ranks' counts, in place. */
sl_status sl_share_sum(const sl_ranks *ranks, sl_status mine, uint64_t *counts, size_t count);

#endif
