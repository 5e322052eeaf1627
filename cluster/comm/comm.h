/* The ranks of a job, and how they exchange data. A rank is one process that mpirun or srun starts.
 *
 * Every rank of a communicator makes the same calls in the same order, except for the transfers between two ranks. A
 * call that fails in MPI itself breaks the job (sl_comm_is_broken): the ranks cannot agree any more, and the program
 * ends them all.
 *
 * Threads: any thread may call, one at a time per communicator. Agreements (sl_comm_agree) are made one at a time in a
 * process. MPI runs with MPI_THREAD_SERIALIZED, so each call of MPI holds the job's lock. Waits test, and let others
 * have the lock between two tests. The thread of watch.h can then send its heartbeats at any time. The calls that make
 * communicators and windows, and fences, do wait inside MPI; a barrier comes before them, so they wait briefly. */
#ifndef SL_CLUSTER_COMM_COMM_H
#define SL_CLUSTER_COMM_COMM_H

#include "base/ranks.h"

#include <mpi.h>
#include <stdint.h>

/* Bytes of a message at most. MPI counts elements by int, so longer data go in several messages. */
#define SL_COMM_PIECE  ((size_t)1 << 30)
#define SL_COMM_FLOATS (SL_COMM_PIECE / sizeof(float))

/* Messages and bytes that this rank sent to other ranks since the start. A collective call of MPI counts as one message
 * of the bytes that the rank hands over, since only MPI knows how it goes on. */
typedef struct sl_comm_counts {
    uint64_t messages, bytes;
} sl_comm_counts;

typedef struct sl_comm_job sl_comm_job;

/* A communicator: some ranks of the job, or all of them. */
typedef struct sl_comm {
    MPI_Comm mpi;
    MPI_Comm
        agreement; /* the same ranks; only sl_comm_agree uses it, so a failing rank cannot match another call there */
    size_t rank, ranks;
    sl_comm_job *job; /* common to all communicators of this process */
} sl_comm;

/* Seconds for which a rank waits for others that may have died or gone another way, unless the environment's
 * SHORTLIST_MPI_PATIENCE gives another number. 0: it waits for ever. */
#define SL_COMM_PATIENCE 20
double sl_comm_patience(const sl_comm *comm);
/* Memory for sl_comm_agree, which outlives the call. */
uint64_t *sl_comm_first_failed(const sl_comm *comm);

/* Starts MPI with all ranks of the job. Errors: SL_EINVAL (the environment's patience), SL_EUNSUPPORTED (this MPI
 * serves one thread alone), SL_EIO, SL_ENOMEM.
 */
sl_status sl_comm_start(int *argc, char ***argv, sl_comm *out);
/* Ends MPI. Every rank calls it, after a last collective call. */
void sl_comm_end(sl_comm *comm);
/* Ends all ranks of the job at once, with this exit status. For a job that is broken. */
void sl_comm_abort(const sl_comm *comm, int status);

/* Returns the first of a rank's share of n items, which the ranks divide in order; for `rank` = ranks: n. */
static inline size_t sl_comm_share(size_t n, size_t rank, size_t ranks) {
    return n / ranks * rank + n % ranks * rank / ranks;
}

/* Makes a communicator of the ranks that give the same colour, in the order of `key`. */
sl_status sl_comm_split(const sl_comm *comm, int colour, size_t key, sl_comm *out);
/* Makes a communicator of the ranks on this rank's machine, which can share memory. */
sl_status sl_comm_split_machine(const sl_comm *comm, sl_comm *out);
void sl_comm_free(sl_comm *comm);

/* Name of this rank's machine. */
const char *sl_comm_host(const sl_comm *comm);
sl_comm_counts sl_comm_counted(const sl_comm *comm);
/* Counts what a caller sends by MPI calls of its own. */
void sl_comm_count(const sl_comm *comm, size_t messages, size_t bytes);
/* Returns whether a call of MPI failed. No rank can rely on another then. */
int sl_comm_is_broken(const sl_comm *comm);
/* Returns whether a rank that waits gives its core away at once: this machine has more ranks than cores, or
 * OMPI_MCA_mpi_yield_when_idle asks for it. */
int sl_comm_yields(const sl_comm *comm);

/* ---- For own calls of MPI: between lock and unlock, no call may wait for another rank for long ---- */

void sl_comm_lock(const sl_comm *comm);
void sl_comm_unlock(const sl_comm *comm);
/* Takes the lock within a second, or returns 0. */
int sl_comm_lock_soon(const sl_comm *comm);
/* Lets MPI push on with transfers, for a rank that waits for something else. */
void sl_comm_progress(const sl_comm *comm);
/* Turns the result of an MPI call into a status, and breaks the job on failure. `what` names the call. */
sl_status sl_comm_check(const sl_comm *comm, int result, const char *what);
/* Waits until all requests are complete. Null requests count as complete. The second call breaks the job after so many
 * seconds; 0: never. */
sl_status sl_comm_wait(const sl_comm *comm, MPI_Request *requests, size_t count);
sl_status sl_comm_wait_for(const sl_comm *comm, MPI_Request *requests, size_t count, double seconds);

/* ---- Between two ranks. Data longer than SL_COMM_PIECE take several requests: see sl_comm_pieces ---- */

/* Requests for a transfer of this many bytes; 1 for no bytes. */
static inline size_t sl_comm_pieces(size_t bytes) {
    return bytes ? (bytes + SL_COMM_PIECE - 1) / SL_COMM_PIECE : 1;
}
/* Begin a transfer, and return its requests, sl_comm_pieces(bytes) of them. The data stay in place until the wait. */
sl_status sl_comm_send(const sl_comm *comm, const void *data, size_t bytes, size_t to, int tag, MPI_Request *requests);
sl_status sl_comm_receive(const sl_comm *comm, void *data, size_t bytes, size_t from, int tag, MPI_Request *requests);

/* ---- Among all ranks ---- */

sl_status sl_comm_barrier(const sl_comm *comm);
sl_status sl_comm_broadcast(const sl_comm *comm, void *data, size_t bytes, size_t root);
/* Gathers `bytes` bytes of each rank, in the order of ranks. all: ranks * bytes. */
sl_status sl_comm_gather(const sl_comm *comm, const void *mine, size_t bytes, void *all);

/* Gathers sizes[r] bytes of each rank r into `all`. Every rank gives the same sizes. `mine` may be the rank's part of
 * `all`. */
sl_status sl_comm_gather_sizes(const sl_comm *comm, const void *mine, const size_t *sizes, void *all);
/* Gathers data of any size from each rank. Part r of *out is of rank r. The caller frees, also on failure. */
sl_status sl_comm_gather_parts(const sl_comm *comm, const void *mine, size_t bytes, const sl_allocator *allocator,
                               sl_parts *out);
/* Sends part r of `to` to rank r. Part r of *from is what rank r sent here. The caller frees, also on failure. */
sl_status sl_comm_exchange(const sl_comm *comm, const sl_parts *to, const sl_allocator *allocator, sl_parts *from);

/* Sums over the ranks, in place, with the same bits on every rank. Those of floats are MPI_Allreduce's. */
sl_status sl_comm_sum_floats(const sl_comm *comm, float *numbers, size_t count);
sl_status sl_comm_sum_counts(const sl_comm *comm, uint64_t *counts, size_t count);
/* The smallest and the largest of the ranks' numbers. */
sl_status sl_comm_min(const sl_comm *comm, uint64_t *number);
sl_status sl_comm_max(const sl_comm *comm, uint64_t *number);

/* Agrees on success. Returns SL_OK if every rank gives SL_OK. Otherwise every rank gets the status and the message of
 * the first rank that failed; the message then begins with that rank and its machine. Call it after each step that may
 * fail on one rank alone, before a rank waits for others.
 *
 * A rank that failed between two such calls finds nobody here, because the others wait for it in another call. After
 * the patience it breaks the job and returns its own failure. */
sl_status sl_comm_agree(const sl_comm *comm, sl_status mine);

#endif
