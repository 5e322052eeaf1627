/* Calls that all ranks of a communicator make together. */
#include "cluster/comm/comm.h"

#include <limits.h>
#include <string.h>

enum { TAG_EXCHANGE = 1 };

/* Runs one nonblocking collective call, and waits for it. `sent`: bytes that this rank hands over. */
#define COLLECT(comm, sent, name, ...)                                                                                 \
    do {                                                                                                               \
        MPI_Request collect_;                                                                                          \
        sl_comm_lock(comm);                                                                                            \
        int result_ = name(__VA_ARGS__, (comm)->mpi, &collect_);                                                       \
        sl_comm_unlock(comm);                                                                                          \
        SL_TRY(sl_comm_check(comm, result_, #name));                                                                   \
        SL_TRY(sl_comm_wait(comm, &collect_, 1));                                                                      \
        if ((sent) > 0) sl_comm_count(comm, 1, sent);                                                                  \
    } while (0)

sl_status sl_comm_broadcast(const sl_comm *comm, void *data, size_t bytes, size_t root) {
    for (size_t at = 0; at < bytes; at += SL_COMM_PIECE) {
        size_t size = bytes - at < SL_COMM_PIECE ? bytes - at : SL_COMM_PIECE;
        size_t sent = comm->rank == root ? size : 0;
        COLLECT(comm, sent, MPI_Ibcast, (char *)data + at, (int)size, MPI_BYTE, (int)root);
    }
    return SL_OK;
}

sl_status sl_comm_gather(const sl_comm *comm, const void *mine, size_t bytes, void *all) {
    if (bytes == 0) return SL_OK;
    if (bytes > (size_t)INT_MAX / comm->ranks) {
        for (size_t r = 0; r < comm->ranks; r++) {
            char *part = (char *)all + r * bytes;
            if (r == comm->rank) memcpy(part, mine, bytes);
            SL_TRY(sl_comm_broadcast(comm, part, bytes, r));
        }
        return SL_OK;
    }
    COLLECT(comm, bytes, MPI_Iallgather, mine, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE);
    return SL_OK;
}

/* ---- Parts ---- */

/* Makes parts of the sizes that the ranks give. All ranks fail if one has too little memory. */
static sl_status create_agreed(const sl_comm *comm, const size_t *sizes, const sl_allocator *allocator, sl_parts *out) {
    return sl_comm_agree(comm, sl_parts_create(allocator, comm->ranks, sizes, out));
}

/* Gathers data that MPI can count by int. */
static sl_status gather_counted(const sl_comm *comm, const void *mine, const size_t *sizes, void *all) {
    sl_status status = SL_OK;
    const sl_allocator allocator = sl_allocator_of(NULL);
    int *counts = sl_mem_array(&allocator, 2 * comm->ranks, sizeof *counts, &status);
    SL_TRY(status);
    int *at = counts + comm->ranks;
    for (size_t r = 0, sum = 0; r < comm->ranks; sum += sizes[r++]) {
        counts[r] = (int)sizes[r];
        at[r] = (int)sum;
    }
    MPI_Request request;
    sl_comm_lock(comm);
    const void *own = mine == (const char *)all + at[comm->rank] ? MPI_IN_PLACE : mine;
    int result = MPI_Iallgatherv(own, counts[comm->rank], MPI_BYTE, all, counts, at, MPI_BYTE, comm->mpi, &request);
    sl_comm_unlock(comm);
    status = sl_comm_check(comm, result, "MPI_Iallgatherv");
    if (status == SL_OK) status = sl_comm_wait(comm, &request, 1);
    sl_comm_count(comm, 1, sizes[comm->rank]);
    SL_FREE_ARRAY(&allocator, counts, 2 * comm->ranks);
    return status;
}

sl_status sl_comm_gather_sizes(const sl_comm *comm, const void *mine, const size_t *sizes, void *all) {
    size_t total = 0;
    for (size_t r = 0; r < comm->ranks; r++)
        total += sizes[r];
    if (total <= INT_MAX) return gather_counted(comm, mine, sizes, all);
    char *to = all;
    for (size_t r = 0; r < comm->ranks; to += sizes[r++]) {
        if (r == comm->rank && sizes[r]) memmove(to, mine, sizes[r]);
        SL_TRY(sl_comm_broadcast(comm, to, sizes[r], r));
    }
    return SL_OK;
}

sl_status sl_comm_gather_parts(const sl_comm *comm, const void *mine, size_t bytes, const sl_allocator *allocator,
                               sl_parts *out) {
    sl_status status = SL_OK;
    size_t *sizes = sl_mem_array(allocator, comm->ranks, sizeof *sizes, &status);
    *out = (sl_parts){.data = NULL};
    status = sl_comm_agree(comm, status);
    if (status == SL_OK) status = sl_comm_gather(comm, &bytes, sizeof bytes, sizes);
    if (status == SL_OK) status = create_agreed(comm, sizes, allocator, out);
    if (status == SL_OK) status = sl_comm_gather_sizes(comm, mine, sizes, out->data);
    SL_FREE_ARRAY(allocator, sizes, comm->ranks);
    return status;
}

/* Posts the transfers of an exchange, and waits for them. */
static sl_status exchange_data(const sl_comm *comm, const sl_parts *to, sl_parts *from, MPI_Request *requests) {
    size_t used = 0;
    for (size_t i = 1; i < comm->ranks; i++) {
        size_t r = (comm->rank + comm->ranks - i) % comm->ranks, size = sl_part_size(from, r);
        if (!size) continue;
        SL_TRY(sl_comm_receive(comm, from->data + from->at[r], size, r, TAG_EXCHANGE, requests + used));
        used += sl_comm_pieces(size);
    }
    for (size_t i = 1; i < comm->ranks; i++) {
        size_t r = (comm->rank + i) % comm->ranks, size = sl_part_size(to, r);
        if (!size) continue;
        SL_TRY(sl_comm_send(comm, to->data + to->at[r], size, r, TAG_EXCHANGE, requests + used));
        used += sl_comm_pieces(size);
    }
    if (sl_part_size(to, comm->rank))
        memcpy(from->data + from->at[comm->rank], to->data + to->at[comm->rank], sl_part_size(to, comm->rank));
    return sl_comm_wait(comm, requests, used);
}

static size_t pieces_of(const sl_parts *parts) {
    size_t pieces = 0;
    for (size_t r = 0; r < parts->ranks; r++)
        pieces += sl_comm_pieces(sl_part_size(parts, r));
    return pieces;
}

sl_status sl_comm_exchange(const sl_comm *comm, const sl_parts *to, const sl_allocator *allocator, sl_parts *from) {
    sl_status status = SL_OK;
    size_t ranks = comm->ranks, *sizes = sl_mem_array(allocator, 2 * ranks, sizeof *sizes, &status);
    *from = (sl_parts){.data = NULL};
    status = sl_comm_agree(comm, status);
    if (status != SL_OK) {
        SL_FREE_ARRAY(allocator, sizes, 2 * ranks);
        return status;
    }
    for (size_t r = 0; r < ranks; r++)
        sizes[r] = sl_part_size(to, r);
    COLLECT(comm, ranks * sizeof *sizes, MPI_Ialltoall, sizes, sizeof *sizes, MPI_BYTE, sizes + ranks, sizeof *sizes,
            MPI_BYTE);
    status = create_agreed(comm, sizes + ranks, allocator, from);
    SL_FREE_ARRAY(allocator, sizes, 2 * ranks);
    SL_TRY(status);
    size_t room = pieces_of(to) + pieces_of(from);
    MPI_Request *requests = sl_mem_array(allocator, room, sizeof *requests, &status);
    status = sl_comm_agree(comm, status);
    if (status == SL_OK) status = exchange_data(comm, to, from, requests);
    SL_FREE_ARRAY(allocator, requests, room);
    return status;
}

/* ---- Sums ---- */

sl_status sl_comm_sum_floats(const sl_comm *comm, float *numbers, size_t count) {
    for (size_t at = 0; at < count; at += SL_COMM_FLOATS) {
        size_t size = count - at < SL_COMM_FLOATS ? count - at : SL_COMM_FLOATS;
        COLLECT(comm, size * sizeof *numbers, MPI_Iallreduce, MPI_IN_PLACE, numbers + at, (int)size, MPI_FLOAT,
                MPI_SUM);
    }
    return SL_OK;
}

sl_status sl_comm_sum_counts(const sl_comm *comm, uint64_t *counts, size_t count) {
    if (count == 0) return SL_OK;
    COLLECT(comm, count * sizeof *counts, MPI_Iallreduce, MPI_IN_PLACE, counts, (int)count, MPI_UINT64_T, MPI_SUM);
    return SL_OK;
}

sl_status sl_comm_min(const sl_comm *comm, uint64_t *number) {
    COLLECT(comm, sizeof *number, MPI_Iallreduce, MPI_IN_PLACE, number, 1, MPI_UINT64_T, MPI_MIN);
    return SL_OK;
}

sl_status sl_comm_max(const sl_comm *comm, uint64_t *number) {
    COLLECT(comm, sizeof *number, MPI_Iallreduce, MPI_IN_PLACE, number, 1, MPI_UINT64_T, MPI_MAX);
    return SL_OK;
}

/* ---- Agreement ---- */

/* A failure, as the ranks hand it on. */
typedef struct failure {
    int32_t status;
    char host[128], message[SL_ERROR_SIZE];
} failure;

/* Finds the first rank that failed; comm->ranks if none did. A rank that failed waits for a while alone. */
static sl_status find_first_failure(const sl_comm *comm, sl_status mine, uint64_t *first) {
    MPI_Request request;
    uint64_t *shared = sl_comm_first_failed(comm);
    *first = comm->rank;
    *shared = mine == SL_OK ? comm->ranks : comm->rank;
    sl_comm_lock(comm);
    int result = MPI_Iallreduce(MPI_IN_PLACE, shared, 1, MPI_UINT64_T, MPI_MIN, comm->agreement, &request);
    sl_comm_unlock(comm);
    SL_TRY(sl_comm_check(comm, result, "MPI_Iallreduce"));
    SL_TRY(sl_comm_wait_for(comm, &request, 1, mine == SL_OK ? 0 : sl_comm_patience(comm)));
    *first = *shared;
    return SL_OK;
}

/* Copies the failure of a rank to all. */
static sl_status broadcast_failure(const sl_comm *comm, failure *failed, size_t root) {
    MPI_Request request;
    sl_comm_lock(comm);
    int result = MPI_Ibcast(failed, sizeof *failed, MPI_BYTE, (int)root, comm->agreement, &request);
    sl_comm_unlock(comm);
    SL_TRY(sl_comm_check(comm, result, "MPI_Ibcast"));
    return sl_comm_wait(comm, &request, 1);
}

sl_status sl_comm_agree(const sl_comm *comm, sl_status mine) {
    failure failed = {.status = (int32_t)mine};
    uint64_t first;
    if (comm->ranks == 1) return mine;
    if (sl_comm_is_broken(comm))
        return mine != SL_OK ? mine : sl_fail(SL_EIO, "the job is broken: a call of MPI failed on this rank");
    /* Read before the calls below, which may set another message. */
    if (mine != SL_OK) {
        const char *message = sl_last_error();
        strncpy(failed.message, *message ? message : sl_status_text(mine), sizeof failed.message - 1);
        strncpy(failed.host, sl_comm_host(comm), sizeof failed.host - 1);
    }
    sl_status status = find_first_failure(comm, mine, &first);
    if (status != SL_OK && mine == SL_OK) return status;
    /* The others are elsewhere. */
    if (status != SL_OK) first = comm->rank;
    if (first == comm->ranks) return SL_OK;
    if (status == SL_OK) SL_TRY(broadcast_failure(comm, &failed, first));
    /* The ranks had agreed on this failure before. */
    if (strncmp(failed.message, "rank ", 5) == 0) return sl_fail((sl_status)failed.status, "%s", failed.message);
    return sl_fail((sl_status)failed.status, "rank %zu (%s): %s", (size_t)first, failed.host, failed.message);
}
