#include "base/share.h"

sl_status sl_share_gather(const sl_ranks *ranks, sl_status mine, void *items, size_t size, size_t n, size_t unit) {
    const sl_allocator allocator = sl_allocator_of(NULL);
    if (!ranks) return mine;
    size_t *sizes = sl_mem_array(&allocator, ranks->ranks, sizeof *sizes, &mine);
    for (size_t r = 0; r < ranks->ranks && mine == SL_OK; r++) {
        const sl_range range = sl_share_of_rank(ranks, r, n, unit);
        sizes[r] = (range.end - range.first) * size;
    }
    mine = sl_ranks_agree(ranks, mine);
    if (mine == SL_OK) {
        const uint8_t *own = (const uint8_t *)items + sl_share_mine(ranks, n, unit).first * size;
        mine = ranks->gather_sizes(ranks->ctx, own, sizes, items);
    }
    SL_FREE_ARRAY(&allocator, sizes, ranks->ranks);
    return mine;
}

sl_status sl_share_broadcast(const sl_ranks *ranks, sl_status mine, void *data, size_t bytes) {
    if (!ranks) return mine;
    SL_TRY(sl_ranks_agree(ranks, mine));
    return ranks->broadcast(ranks->ctx, data, bytes);
}

sl_status sl_share_exchange(const sl_ranks *ranks, sl_status mine, const sl_parts *to, sl_parts *from) {
    *from = (sl_parts){.data = NULL};
    if (!ranks) return mine;
    SL_TRY(sl_ranks_agree(ranks, mine));
    return ranks->exchange(ranks->ctx, to, &to->allocator, from);
}

sl_status sl_share_sum(const sl_ranks *ranks, sl_status mine, uint64_t *counts, size_t count) {
    if (!ranks) return mine;
    SL_TRY(sl_ranks_agree(ranks, mine));
    return ranks->sum_counts(ranks->ctx, counts, count);
}
