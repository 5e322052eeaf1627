#include "cluster/construct/share.h"

#include <stdio.h>

static sl_status agree(void *ctx, sl_status mine) {
    sl_rank_share *s = ctx;
    if (s->failed != SL_OK) return sl_fail(s->failed, "%s", s->message);
    if (mine == SL_OK && s->stops && s->stops()) mine = sl_fail(SL_ECANCELED, "interrupted");
    mine = sl_comm_agree(s->comm, mine);
    if (mine == SL_OK) return SL_OK;
    s->failed = mine;
    snprintf(s->message, sizeof s->message, "%s", sl_last_error());
    return mine;
}

static const sl_comm *comm_of(void *ctx) {
    return ((sl_rank_share *)ctx)->comm;
}

static sl_status gather_sizes(void *ctx, const void *mine, const size_t *sizes, void *all) {
    return sl_comm_gather_sizes(comm_of(ctx), mine, sizes, all);
}

static sl_status exchange(void *ctx, const sl_parts *to, const sl_allocator *allocator, sl_parts *from) {
    return sl_comm_exchange(comm_of(ctx), to, allocator, from);
}

static sl_status broadcast(void *ctx, void *data, size_t size) {
    return sl_comm_broadcast(comm_of(ctx), data, size, 0);
}

static sl_status sum_counts(void *ctx, uint64_t *counts, size_t count) {
    return sl_comm_sum_counts(comm_of(ctx), counts, count);
}

void sl_rank_share_init(sl_rank_share *s, const sl_comm *comm, int (*stops)(void)) {
    *s = (sl_rank_share){.ranks = {.ctx = s,
                                   .rank = comm->rank,
                                   .ranks = comm->ranks,
                                   .agree = agree,
                                   .gather_sizes = gather_sizes,
                                   .exchange = exchange,
                                   .broadcast = broadcast,
                                   .sum_counts = sum_counts},
                         .comm = comm,
                         .stops = stops};
}

sl_status sl_rank_share_end(sl_rank_share *s, sl_status mine) {
    return agree(s, mine);
}
