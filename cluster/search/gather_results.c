#include "cluster/search/gather_results.h"

#include <string.h>

/* Puts the shares' results one behind the other. A part has a share's ids, then its scores. */
static sl_status join_results(const sl_comm *comm, const sl_parts *from, size_t nq, size_t k, uint64_t *ids,
                              float *scores) {
    for (size_t r = 0; r < comm->ranks; r++) {
        const size_t first = sl_comm_share(nq, r, comm->ranks) * k, end = sl_comm_share(nq, r + 1, comm->ranks) * k;
        const uint8_t *data = from->data + from->at[r];
        if (sl_part_size(from, r) != (end - first) * (sizeof *ids + sizeof *scores))
            return sl_fail(SL_EINVAL, "rank %zu has results of other queries or another k", r);
        if (first == end) continue;
        memcpy(ids + first, data, (end - first) * sizeof *ids);
        memcpy(scores + first, data + (end - first) * sizeof *ids, (end - first) * sizeof *scores);
    }
    return SL_OK;
}

sl_status sl_gather_results(const sl_comm *comm, size_t nq, size_t k, const uint64_t *ids, const float *scores,
                            uint64_t *all_ids, float *all_scores) {
    const sl_allocator allocator = sl_allocator_of(NULL);
    const size_t first = sl_comm_share(nq, comm->rank, comm->ranks);
    const size_t count = (sl_comm_share(nq, comm->rank + 1, comm->ranks) - first) * k;
    sl_parts to = {.data = NULL}, from = {.data = NULL};
    sl_status status = SL_OK;
    size_t *sizes = sl_mem_array(&allocator, comm->ranks, sizeof *sizes, &status);
    if (status == SL_OK) {
        sizes[0] = count * (sizeof *ids + sizeof *scores);
        status = sl_parts_create(&allocator, comm->ranks, sizes, &to);
    }
    if (status == SL_OK && count) {
        memcpy(to.data, ids, count * sizeof *ids);
        memcpy(to.data + count * sizeof *ids, scores, count * sizeof *scores);
    }
    status = sl_comm_agree(comm, status);
    if (status == SL_OK) status = sl_comm_exchange(comm, &to, &allocator, &from);
    if (status == SL_OK && comm->rank == 0) status = join_results(comm, &from, nq, k, all_ids, all_scores);
    sl_parts_free(&to);
    sl_parts_free(&from);
    SL_FREE_ARRAY(&allocator, sizes, comm->ranks);
    return status;
}
