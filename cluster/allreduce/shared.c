#define _POSIX_C_SOURCE 200809L
#include "cluster/allreduce/shared.h"

#include "base/clock.h"

#include <sched.h>
#include <string.h>

/* Numbers of a chunk, unless the caller chooses: the slots of a few ranks stay in the second cache. */
enum { CHUNK_DEFAULT = 32768 };
/* Numbers that are added up at a time. */
enum { PIECE = 2048 };
/* 64-bit words from one rank's flag to the next. */
enum { FLAG_WORDS = SL_CACHE_LINE / sizeof(uint64_t) };
/* Looks at a flag before others get the core, and before the rank sleeps between two looks. */
enum { EAGER_LOOKS = 2000, YIELDING_LOOKS = 20000 };
/* Seconds that a rank waits for another while the window is tried. */
#define TRIAL_LIMIT_S 10.0

/* ---- Waiting ---- */

static void relax(const sl_shared *shared, size_t looks) {
    if (looks >= YIELDING_LOOKS) {
        /* Others may wait for messages of this rank that still lie in MPI's buffers. */
        if (looks % 64 == 0) sl_comm_progress(&shared->ranks);
        sl_pause_ns(20000);
    } else if (shared->yields || looks >= EAGER_LOOKS)
        sched_yield();
#if defined(__x86_64__) || defined(__i386__)
    else
        __builtin_ia32_pause();
#endif
}

static sl_status wait_for(const sl_shared *shared, size_t rank) {
    const uint64_t *flag = shared->flags + rank * FLAG_WORDS;
    const double begin = shared->is_proven ? 0 : sl_now_s();
    for (size_t looks = 0; __atomic_load_n(flag, __ATOMIC_ACQUIRE) < shared->turn; looks++) {
        relax(shared, looks);
        if (sl_comm_is_broken(&shared->ranks)) return sl_fail(SL_EIO, "the job is broken: a call of MPI failed");
        if (!shared->is_proven && sl_now_s() - begin > TRIAL_LIMIT_S)
            return sl_fail(SL_EIO, "rank %zu of the machine does not show in shared memory", rank);
    }
    return SL_OK;
}

/* Waits until all ranks are here. What they wrote before is then visible. */
static sl_status meet(sl_shared *shared) {
    shared->turn++;
    __atomic_store_n(shared->flags + shared->ranks.rank * FLAG_WORDS, shared->turn, __ATOMIC_RELEASE);
    for (size_t r = 0; r < shared->ranks.ranks; r++)
        SL_TRY(wait_for(shared, r));
    return SL_OK;
}

/* ---- Life ---- */

/* Finds the ranks that share memory, and the first ones among them. */
static sl_status split(const sl_comm *comm, size_t machine_ranks, sl_shared *out) {
    sl_comm machine;
    SL_TRY(sl_comm_split_machine(comm, &machine));
    const size_t part = machine_ranks ? machine.rank / machine_ranks : 0;
    sl_status status = sl_comm_split(&machine, (int)part, machine.rank, &out->ranks);
    sl_comm_free(&machine);
    SL_TRY(status);
    const int follows = out->ranks.rank > 0;
    SL_TRY(sl_comm_split(comm, follows, comm->rank, &out->leaders));
    uint64_t machines = follows ? 0 : 1, most = out->ranks.ranks;
    SL_TRY(sl_comm_sum_counts(comm, &machines, 1));
    SL_TRY(sl_comm_max(comm, &most));
    out->machines = machines;
    out->yields = sl_comm_yields(comm);
    out->most = most;
    return SL_OK;
}

/* The first rank's segment holds all. */
static sl_status make_window(sl_shared *shared) {
    const size_t ranks = shared->ranks.ranks, flags = ranks * SL_CACHE_LINE;
    const size_t bytes = sl_round_up(flags + ranks * shared->chunk * sizeof(float), 4096);
    MPI_Aint size = shared->ranks.rank == 0 ? (MPI_Aint)bytes : 0;
    int unit;
    char *memory;
    SL_TRY(sl_comm_barrier(&shared->ranks));
    sl_comm_lock(&shared->ranks);
    int result = MPI_Win_allocate_shared(size, 1, MPI_INFO_NULL, shared->ranks.mpi, (void *)&memory, &shared->window);
    if (result == MPI_SUCCESS) result = MPI_Win_shared_query(shared->window, 0, &size, &unit, (void *)&memory);
    sl_comm_unlock(&shared->ranks);
    SL_TRY(sl_comm_agree(&shared->ranks,
                         result == MPI_SUCCESS ? SL_OK : sl_fail(SL_EIO, "MPI_Win_allocate_shared failed")));
    shared->flags = (uint64_t *)(void *)memory;
    shared->slots = (float *)(void *)(memory + flags);
    if (shared->ranks.rank == 0) memset(memory, 0, flags);
    return sl_comm_barrier(&shared->ranks);
}

sl_status sl_shared_create(const sl_comm *comm, const sl_allreduce_params *params, size_t max_count, sl_shared *out) {
    const size_t chunk = params->chunk ? params->chunk : CHUNK_DEFAULT;
    *out = (sl_shared){.window = MPI_WIN_NULL, .chunk = chunk < max_count ? chunk : max_count};
    out->chunk = sl_round_up(out->chunk, SL_CACHE_LINE / sizeof(float));
    SL_TRY(split(comm, params->machine_ranks, out));
#ifdef SL_SMPI
    return sl_fail(SL_EUNSUPPORTED, "simulated ranks share no memory");
#else
    return make_window(out);
#endif
}

void sl_shared_free(sl_shared *shared) {
    if (!shared->ranks.job) return;
    if (shared->window != MPI_WIN_NULL && !sl_comm_is_broken(&shared->ranks) &&
        sl_comm_barrier(&shared->ranks) == SL_OK) {
        sl_comm_lock(&shared->ranks);
        MPI_Win_free(&shared->window);
        sl_comm_unlock(&shared->ranks);
    }
    sl_comm_free(&shared->leaders);
    sl_comm_free(&shared->ranks);
    *shared = (sl_shared){.chunk = 0};
}

/* ---- Sums ---- */

/* The part of a chunk of `count` numbers that a rank adds up, in whole cache lines. All chunks of a sum have the same
 * slices, so a rank may fill its slot while others still copy its sums. */
static sl_slice slice_of(const sl_shared *shared, size_t count, size_t rank) {
    const size_t line = SL_CACHE_LINE / sizeof(float);
    const sl_slice lines = sl_slice_part((sl_slice){0, (shared->span + line - 1) / line}, shared->ranks.ranks, rank);
    const size_t from = lines.at * line < count ? lines.at * line : count;
    const size_t to = (lines.at + lines.count) * line;
    return (sl_slice){from, (to < count ? to : count) - from};
}

static float *slot_of(const sl_shared *shared, size_t rank) {
    return shared->slots + rank * shared->chunk;
}

/* Copies all slices but this rank's between the chunk and slots: into the own slot, or out of the owners' slots. */
static void copy_slices(const sl_shared *shared, float *numbers, size_t count, int out) {
    for (size_t r = 0; r < shared->ranks.ranks; r++) {
        const sl_slice slice = slice_of(shared, count, r);
        if (r == shared->ranks.rank) continue;
        if (out)
            memcpy(numbers + slice.at, slot_of(shared, r) + slice.at, slice.count * sizeof *numbers);
        else
            memcpy(slot_of(shared, shared->ranks.rank) + slice.at, numbers + slice.at, slice.count * sizeof *numbers);
    }
}

static void add_slices(const sl_shared *shared, float *numbers, size_t count) {
    const sl_slice slice = slice_of(shared, count, shared->ranks.rank);
    float *sums = slot_of(shared, shared->ranks.rank);
    /* In pieces that stay in the first cache. */
    for (size_t at = slice.at, end = slice.at + slice.count; at < end; at += PIECE) {
        const size_t size = end - at < PIECE ? end - at : PIECE;
        for (size_t r = 0; r < shared->ranks.ranks; r++)
            if (r != shared->ranks.rank) sl_wire_add(SL_WIRE_F32, slot_of(shared, r) + at, size, numbers + at);
        memcpy(sums + at, numbers + at, size * sizeof *numbers);
    }
}

sl_status sl_shared_reduce(sl_shared *shared, float *numbers, size_t count) {
    const int gets_sums = shared->machines == 1 || shared->ranks.rank == 0;
    const size_t span = count < shared->chunk ? count : shared->chunk;
    if (shared->ranks.ranks == 1) return SL_OK;
    if (span != shared->span) SL_TRY(meet(shared));
    shared->span = span;
    for (size_t at = 0; at < count; at += shared->chunk) {
        const size_t size = count - at < shared->chunk ? count - at : shared->chunk;
        copy_slices(shared, numbers + at, size, 0);
        SL_TRY(meet(shared));
        add_slices(shared, numbers + at, size);
        SL_TRY(meet(shared));
        if (gets_sums) copy_slices(shared, numbers + at, size, 1);
    }
    return SL_OK;
}

sl_status sl_shared_spread(sl_shared *shared, float *numbers, size_t count) {
    const size_t step = shared->chunk * shared->ranks.ranks;
    if (shared->ranks.ranks == 1) return SL_OK;
    shared->span = 0;
    for (size_t at = 0; at < count; at += step) {
        const size_t size = count - at < step ? count - at : step;
        SL_TRY(meet(shared));
        if (shared->ranks.rank == 0) memcpy(shared->slots, numbers + at, size * sizeof *numbers);
        SL_TRY(meet(shared));
        if (shared->ranks.rank > 0) memcpy(numbers + at, shared->slots, size * sizeof *numbers);
    }
    return SL_OK;
}
