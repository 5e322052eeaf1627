#define _POSIX_C_SOURCE 200809L
#include "cluster/allreduce/put.h"

#include <sched.h>

/* Numbers of a chunk, unless the caller chooses. */
#define CHUNK_DEFAULT ((size_t)1 << 24)

enum { TAG_READY = 12 };

/* Turns a result into a status. Until the windows are proven, the job goes on without them. */
static sl_status check(sl_put *put, int result, const char *what) {
    if (result == MPI_SUCCESS) return SL_OK;
    put->is_wrecked = 1;
    if (put->is_proven) return sl_comm_check(&put->comm, result, what);
    return sl_fail(SL_EIO, "%s failed", what);
}

/* One call of MPI under the lock. */
#define CALL(put, name, ...)                                                                                           \
    do {                                                                                                               \
        sl_comm_lock(&(put)->comm);                                                                                    \
        int call_ = name(__VA_ARGS__);                                                                                 \
        sl_comm_unlock(&(put)->comm);                                                                                  \
        SL_TRY(check(put, call_, #name));                                                                              \
    } while (0)

/* ---- Life ---- */

static size_t bytes_of(const sl_put *put, size_t numbers) {
    return numbers * sl_wire_size(put->wire);
}

/* The ranks of a group, this one included. A group is a level's; the last one is the whole row. */
static size_t group_size(const sl_row *row, size_t group) {
    return group < row->levels.count ? row->levels.level[group].ways : row->layout.length;
}
static size_t group_place(const sl_row *row, size_t group, size_t i) {
    return group < row->levels.count ? row->levels.level[group].places[i] : i;
}

/* Makes the next group, of its partners without this rank. */
static sl_status make_group(sl_put *put, MPI_Group all, const sl_row *row) {
    sl_status status = SL_OK;
    const size_t group = put->group_count, count = group_size(row, group);
    int *ranks = sl_mem_array(&put->allocator, count, sizeof *ranks, &status), used = 0;
    SL_TRY(status);
    for (size_t i = 0; i < count; i++)
        if (group_place(row, group, i) != put->comm.rank) ranks[used++] = (int)group_place(row, group, i);
    sl_comm_lock(&put->comm);
    int result = MPI_Group_incl(all, used, ranks, &put->groups[put->group_count]);
    sl_comm_unlock(&put->comm);
    SL_FREE_ARRAY(&put->allocator, ranks, count);
    SL_TRY(check(put, result, "MPI_Group_incl"));
    put->group_count++;
    return SL_OK;
}

static sl_status make_groups(sl_put *put, const sl_row *row) {
    sl_status status = SL_OK;
    MPI_Group all;
    put->groups = sl_mem_array(&put->allocator, SL_LEVELS_MAX + 1, sizeof *put->groups, &status);
    put->requests = sl_mem_array(&put->allocator, 2 * put->comm.ranks, sizeof *put->requests, &status);
    SL_TRY(status);
    CALL(put, MPI_Comm_group, put->comm.mpi, &all);
    for (size_t group = 0; group <= row->levels.count && status == SL_OK; group++)
        status = make_group(put, all, row);
    sl_comm_lock(&put->comm);
    MPI_Group_free(&all);
    sl_comm_unlock(&put->comm);
    return status;
}

static sl_status make_window(sl_put *put) {
    const size_t numbers = put->halves * put->chunk + (put->reduces ? put->comm.ranks * put->part : 0);
    /* MPICH 4.0 puts numbers at wrong addresses of other ranks if the sizes of windows are not aligned. */
    const size_t bytes = sl_round_up(bytes_of(put, numbers), 4096);
    SL_TRY(sl_comm_barrier(&put->comm));
    CALL(put, MPI_Win_allocate, (MPI_Aint)bytes, 1, MPI_INFO_NULL, put->comm.mpi, &put->memory, &put->window);
    CALL(put, MPI_Win_set_errhandler, put->window, MPI_ERRORS_RETURN);
    return SL_OK;
}

sl_status sl_put_create(const sl_comm *comm, const sl_row *row, const sl_allreduce_params *params, size_t max_count,
                        const sl_allocator *allocator, sl_put *out) {
    size_t chunk = params->chunk ? params->chunk : CHUNK_DEFAULT;
    *out = (sl_put){.allocator = *allocator, .wire = params->wire, .sync = params->sync, .window = MPI_WIN_NULL};
    /* One MPI_Put moves a chunk at most. */
    chunk = chunk < SL_COMM_FLOATS ? chunk : SL_COMM_FLOATS;
    out->chunk = chunk < max_count ? chunk : max_count;
    out->halves = chunk < max_count ? 2 : 1;
    out->reduces = params->put_reduces && row->layout.length > 1;
    SL_TRY(sl_comm_split(comm, (int)row->layout.first, row->layout.place, &out->comm));
    out->part = out->chunk / out->comm.ranks + 1;
    sl_status status = SL_OK;
    if (out->reduces && out->wire == SL_WIRE_BF16)
        out->packed = sl_mem_array(allocator, out->chunk, sizeof(uint16_t), &status);
    if (status == SL_OK && out->sync == SL_SYNC_PSCW) status = make_groups(out, row);
    SL_TRY(sl_comm_agree(comm, status));
    return make_window(out);
}

void sl_put_free(sl_put *put) {
    const sl_allocator *allocator = &put->allocator;
    if (!allocator->free) return;
    if (!put->is_wrecked && put->window != MPI_WIN_NULL && !sl_comm_is_broken(&put->comm) &&
        sl_comm_barrier(&put->comm) == SL_OK) {
        sl_comm_lock(&put->comm);
        MPI_Win_free(&put->window);
        sl_comm_unlock(&put->comm);
    }
    for (size_t i = 0; i < put->group_count && !sl_comm_is_broken(&put->comm); i++) {
        sl_comm_lock(&put->comm);
        MPI_Group_free(&put->groups[i]);
        sl_comm_unlock(&put->comm);
    }
    SL_FREE_ARRAY(allocator, put->requests, 2 * put->comm.ranks);
    SL_FREE_ARRAY(allocator, put->groups, SL_LEVELS_MAX + 1);
    sl_mem_free(allocator, put->packed, put->chunk * sizeof(uint16_t));
    if (!put->is_wrecked) sl_comm_free(&put->comm);
    *put = (sl_put){.chunk = 0};
}

/* ---- Epochs: times in which partners may put into each other's windows ---- */

/* All ranks of the row have made their earlier puts, and those are in place. */
static sl_status fence(sl_put *put) {
    /* So no rank waits long inside of MPI_Win_fence, with the lock. */
    SL_TRY(sl_comm_barrier(&put->comm));
    CALL(put, MPI_Win_fence, 0, put->window);
    return SL_OK;
}

/* Waits until all partners have closed what they had open before. */
static sl_status meet(sl_put *put, const sl_row *row, size_t group) {
    size_t used = 0;
    for (size_t i = 0; i < group_size(row, group); i++) {
        const int rank = (int)group_place(row, group, i);
        if ((size_t)rank == put->comm.rank) continue;
        CALL(put, MPI_Irecv, NULL, 0, MPI_BYTE, rank, TAG_READY, put->comm.mpi, &put->requests[used++]);
        CALL(put, MPI_Isend, NULL, 0, MPI_BYTE, rank, TAG_READY, put->comm.mpi, &put->requests[used++]);
    }
    return sl_comm_wait(&put->comm, put->requests, used);
}

/* Opens the windows to a group's ranks. `first`: of a chunk. A later fence is the one that closed the step before.
 *
 * MPICH 4 counts the posts of all ranks together: the post of a rank that is already at its next group would be
 * counted here, and MPI_Win_start would never return. So partners meet before they post. */
static sl_status open_windows(sl_put *put, const sl_row *row, size_t group, int first) {
    if (put->sync == SL_SYNC_FENCE) return first ? fence(put) : SL_OK;
    SL_TRY(meet(put, row, group));
    CALL(put, MPI_Win_post, put->groups[group], 0, put->window);
    CALL(put, MPI_Win_start, put->groups[group], 0, put->window);
    return SL_OK;
}

/* Closes them again: what the partners have put is in place. */
static sl_status close_windows(sl_put *put) {
    int done = 0;
    if (put->sync == SL_SYNC_FENCE) return fence(put);
    CALL(put, MPI_Win_complete, put->window);
#ifdef SL_SMPI
    (void)done;
    CALL(put, MPI_Win_wait, put->window);
#else
    while (!done) {
        CALL(put, MPI_Win_test, put->window, &done);
        if (!done) sched_yield();
        if (sl_comm_is_broken(&put->comm)) return sl_fail(SL_EIO, "the job is broken: a call of MPI failed");
    }
#endif
    return SL_OK;
}

/* ---- The steps of a chunk ---- */

/* A chunk that is reduced, or gathered. */
typedef struct chunk {
    sl_slice range;
    size_t buffer; /* half of the window that gathers it */
} chunk;

/* Offset in the window of number `at` of a chunk. */
static size_t gathered_at(const sl_put *put, const chunk *chunk, size_t at) {
    return bytes_of(put, chunk->buffer * put->chunk + at - chunk->range.at);
}

static sl_status put_bytes(sl_put *put, const void *from, size_t bytes, size_t place, size_t offset) {
    CALL(put, MPI_Put, from, (int)bytes, MPI_BYTE, (int)place, (MPI_Aint)offset, (int)bytes, MPI_BYTE, put->window);
    sl_comm_count(&put->comm, 1, bytes);
    return SL_OK;
}

/* Puts what this rank has of a chunk into the windows of a level's partners. */
static sl_status put_level(sl_put *put, const sl_row *row, size_t l, const chunk *chunk) {
    const sl_level *level = &row->levels.level[l];
    const sl_slice own = sl_row_after(row, l + 1, chunk->range);
    const size_t offset = gathered_at(put, chunk, own.at);
    for (size_t i = 0; i < level->ways; i++)
        if (i != level->digit)
            SL_TRY(put_bytes(put, put->memory + offset, bytes_of(put, own.count), level->places[i], offset));
    return SL_OK;
}

/* Offset in the window of the part that a rank puts here to be summed. */
static size_t slot_at(const sl_put *put, size_t place) {
    return bytes_of(put, put->halves * put->chunk + place * put->part);
}

/* Puts the parts of a chunk into their owners' windows. */
static sl_status put_parts(sl_put *put, const sl_row *row, const float *numbers, sl_slice range) {
    for (size_t i = 1; i < put->comm.ranks; i++) {
        const size_t owner = (put->comm.rank + i) % put->comm.ranks;
        const sl_slice part = sl_row_part(row, range, owner);
        const void *from = numbers + part.at;
        if (put->wire == SL_WIRE_BF16) {
            char *packed = put->packed + bytes_of(put, part.at - range.at);
            sl_wire_pack(put->wire, numbers + part.at, part.count, packed);
            from = packed;
        }
        SL_TRY(put_bytes(put, from, bytes_of(put, part.count), owner, slot_at(put, put->comm.rank)));
    }
    return SL_OK;
}

static void add_parts(const sl_put *put, float *numbers, sl_slice own) {
    for (size_t place = 0; place < put->comm.ranks; place++)
        if (place != put->comm.rank)
            sl_wire_add(put->wire, put->memory + slot_at(put, place), own.count, numbers + own.at);
}

/* A run: the rows, and where the numbers lie. */
typedef struct run {
    const sl_row *row, *column;
    sl_traffic *traffic;
    float *numbers;
} run;

/* One step: level `step` from the last of chunk `gathered` is put while chunk `reduced` makes a step of its
 * reduce-scatter. Either may have no such step. */
static sl_status make_step(sl_put *put, const run *run, size_t step, const chunk *gathered, const chunk *reduced) {
    const size_t levels = run->row->levels.count;
    const int puts_sums = gathered && step < levels, puts_parts = reduced && put->reduces && step == 0;
    if (puts_sums || puts_parts)
        SL_TRY(open_windows(put, run->row, puts_parts ? levels : levels - 1 - step, step == 0));
    if (puts_sums) SL_TRY(put_level(put, run->row, levels - 1 - step, gathered));
    if (puts_parts)
        SL_TRY(put_parts(put, run->row, run->numbers, reduced->range));
    else if (reduced && !put->reduces && step < sl_row_scatter_steps(run->row))
        SL_TRY(sl_row_scatter_step(run->row, step, run->traffic, run->numbers, reduced->range));
    return puts_sums || puts_parts ? close_windows(put) : SL_OK;
}

/* Sums this rank's part of a chunk along the column, and lays it into the window. */
static sl_status sum_column(const sl_put *put, const run *run, const chunk *chunk) {
    const sl_slice own = sl_row_own(run->row, chunk->range);
    sl_slice least;
    if (put->reduces) add_parts(put, run->numbers, own);
    SL_TRY(sl_row_scatter(run->column, run->traffic, run->numbers, own, &least));
    sl_wire_round(put->wire, run->numbers + least.at, least.count);
    SL_TRY(sl_row_gather(run->column, run->traffic, run->numbers, own));
    sl_wire_pack(put->wire, run->numbers + own.at, own.count, put->memory + gathered_at(put, chunk, own.at));
    return SL_OK;
}

static size_t steps_of(const sl_put *put, const sl_row *row) {
    return sl_larger(row->levels.count, put->reduces ? 1 : sl_row_scatter_steps(row));
}

sl_status sl_put_run(sl_put *put, const sl_row *row, const sl_row *column, sl_traffic *traffic, float *numbers,
                     size_t count) {
    const run run = {row, column, traffic, numbers};
    chunk before = {.buffer = 1};
    for (size_t at = 0; at < count || before.range.count; at += put->chunk) {
        const size_t left = at < count ? count - at : 0;
        const chunk now = {{at, left < put->chunk ? left : put->chunk}, !before.buffer};
        const chunk *gathered = before.range.count ? &before : NULL, *reduced = left ? &now : NULL;
        for (size_t step = 0; step < steps_of(put, row); step++)
            SL_TRY(make_step(put, &run, step, gathered, reduced));
        if (gathered)
            sl_wire_unpack(put->wire, put->memory + gathered_at(put, &before, before.range.at), before.range.count,
                           numbers + before.range.at);
        if (reduced) SL_TRY(sum_column(put, &run, &now));
        before = now;
    }
    return SL_OK;
}

/* ---- Cost ---- */

void sl_put_cost(const sl_put *put, const sl_row *row, const sl_row *column, size_t count, sl_allreduce_cost *cost) {
    sl_allreduce_cost chunk = {.messages = 0};
    for (size_t at = 0; at < count; at += put->chunk) {
        const sl_slice range = {at, count - at < put->chunk ? count - at : put->chunk};
        const sl_slice own = sl_row_own(row, range);
        chunk = (sl_allreduce_cost){.messages = 0};
        if (put->reduces) {
            for (size_t i = 0; i < row->layout.length; i++)
                if (i != row->layout.place) sl_cost_add(&chunk, put->wire, 1, sl_row_part(row, range, i).count);
            chunk.steps = 1;
            chunk.sums = row->layout.length - 1;
            chunk.roundings = put->wire == SL_WIRE_BF16;
        } else {
            sl_row_scatter_cost(row, put->wire, range, &chunk);
        }
        sl_row_scatter_cost(column, put->wire, own, &chunk);
        sl_row_gather_cost(column, put->wire, own, &chunk);
        sl_row_levels_cost(row, put->wire, range, &chunk);
        cost->messages += chunk.messages;
        cost->bytes += chunk.bytes;
        cost->steps += chunk.steps;
    }
    cost->sums += chunk.sums;
    cost->roundings += chunk.roundings;
}
