#include "cluster/search/merge_exact.h"

#include "cluster/search/gather_results.h"
#include "hnsw/search/exact.h"

#include <string.h>

/* A query's entries in a message: their count, then the entries. */
static size_t entries_size(const sl_exact *exact, size_t query) {
    size_t count;
    (void)sl_exact_entries(exact, query, &count);
    return sizeof(uint64_t) + count * sizeof(sl_top_entry);
}

static uint8_t *put_entries(const sl_exact *exact, size_t query, uint8_t *at) {
    size_t count;
    const sl_top_entry *entries = sl_exact_entries(exact, query, &count);
    const uint64_t stated = count;
    memcpy(at, &stated, sizeof stated);
    memcpy(at + sizeof stated, entries, count * sizeof *entries);
    return at + sizeof stated + count * sizeof *entries;
}

static const uint8_t *take_entries(sl_exact *exact, size_t query, const uint8_t *at) {
    uint64_t count;
    memcpy(&count, at, sizeof count);
    at += sizeof count;
    sl_exact_take(exact, query, (const sl_top_entry *)(const void *)at, (size_t)count);
    return at + count * sizeof(sl_top_entry);
}

/* Makes the messages to the homes of all queries: rank r merges the queries of its share. A rank sends itself none. */
static sl_status make_messages(const sl_comm *comm, const sl_exact *exact, size_t nq, size_t *sizes, sl_parts *out) {
    const sl_allocator allocator = sl_allocator_of(NULL);
    for (size_t r = 0; r < comm->ranks; r++) {
        sizes[r] = 0;
        for (size_t q = sl_comm_share(nq, r, comm->ranks); r != comm->rank && q < sl_comm_share(nq, r + 1, comm->ranks);
             q++)
            sizes[r] += entries_size(exact, q);
    }
    SL_TRY(sl_parts_create(&allocator, comm->ranks, sizes, out));
    for (size_t r = 0; r < comm->ranks; r++) {
        uint8_t *at = out->data + out->at[r];
        for (size_t q = sl_comm_share(nq, r, comm->ranks); sizes[r] && q < sl_comm_share(nq, r + 1, comm->ranks); q++)
            at = put_entries(exact, q, at);
    }
    return SL_OK;
}

/* Sends the entries of all queries to their homes, and takes over those of this rank's share. */
static sl_status merge_share(const sl_comm *comm, sl_exact *exact, size_t nq, size_t *sizes) {
    const sl_allocator allocator = sl_allocator_of(NULL);
    const size_t first = sl_comm_share(nq, comm->rank, comm->ranks),
                 end = sl_comm_share(nq, comm->rank + 1, comm->ranks);
    sl_parts to = {.data = NULL}, from = {.data = NULL};
    sl_status status = sl_comm_agree(comm, make_messages(comm, exact, nq, sizes, &to));
    if (status == SL_OK) status = sl_comm_exchange(comm, &to, &allocator, &from);
    for (size_t r = 0; status == SL_OK && r < comm->ranks; r++) {
        const uint8_t *at = from.data + from.at[r];
        for (size_t q = first; sl_part_size(&from, r) && q < end; q++)
            at = take_entries(exact, q, at);
    }
    sl_parts_free(&to);
    sl_parts_free(&from);
    return status;
}

/* Reads the results of this rank's share, and brings all to rank 0. */
static sl_status gather_share(const sl_comm *comm, const sl_exact *exact, size_t nq, size_t k, uint64_t *ids,
                              float *scores) {
    const sl_allocator allocator = sl_allocator_of(NULL);
    const size_t first = sl_comm_share(nq, comm->rank, comm->ranks);
    const size_t count = sl_comm_share(nq, comm->rank + 1, comm->ranks) - first;
    sl_status status = SL_OK;
    uint64_t *mine = sl_mem_array(&allocator, count * k, sizeof *mine, &status);
    float *mine_scores = sl_mem_array(&allocator, count * k, sizeof *mine_scores, &status);
    if (status == SL_OK) status = sl_exact_results_of(exact, first, count, mine, mine_scores);
    status = sl_comm_agree(comm, status);
    if (status == SL_OK) status = sl_gather_results(comm, nq, k, mine, mine_scores, ids, scores);
    SL_FREE_ARRAY(&allocator, mine, count * k);
    SL_FREE_ARRAY(&allocator, mine_scores, count * k);
    return status;
}

sl_status sl_merge_exact(const sl_comm *comm, sl_exact *exact, size_t nq, size_t k, uint64_t *ids, float *scores) {
    const sl_allocator allocator = sl_allocator_of(NULL);
    sl_status status = SL_OK;
    size_t *sizes = sl_mem_array(&allocator, comm->ranks, sizeof *sizes, &status);
    SL_TRY(sl_comm_agree(comm, status));
    status = merge_share(comm, exact, nq, sizes);
    if (status == SL_OK) status = gather_share(comm, exact, nq, k, ids, scores);
    SL_FREE_ARRAY(&allocator, sizes, comm->ranks);
    return status;
}
