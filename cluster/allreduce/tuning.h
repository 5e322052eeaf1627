/* Tables of `shortlist-mpi tune`: the fastest all-reduce by the bytes of a sum, for one shape of a job.
 *
 * A table is text. A line for each fact of the job comes first, then a line for each range of bytes:
 *   shortlist-mpi tuning 1
 *   ranks 8
 *   machines 2
 *   machine_ranks 4
 *   wire f32
 *   mpi Open MPI v4.1.4
 *   up_to 8192 mpi 0x0 halving fence 0 shared 0 seconds 2.1e-05
 * The numbers after the algorithm are those of sl_allreduce_params: rows x columns, lane, sync, put_reduces, shared. */
#ifndef SL_CLUSTER_ALLREDUCE_TUNING_H
#define SL_CLUSTER_ALLREDUCE_TUNING_H

#include "cluster/allreduce/params.h"
#include "cluster/comm/comm.h"

#include <stdio.h>

/* Ranges of a table at most. */
enum { SL_TUNING_MAX = 32 };

/* The fastest parameters for sums of up to `bytes` bytes of floats. */
typedef struct sl_tuning_entry {
    uint64_t bytes;
    double seconds; /* of the measured sum */
    sl_allreduce_params params;
} sl_tuning_entry;

struct sl_tuning {
    uint64_t ranks, machines, machine_ranks; /* of the job; ranks of its largest machine */
    sl_wire wire;
    char mpi[128]; /* the library's version */
    uint64_t count;
    sl_tuning_entry entries[SL_TUNING_MAX]; /* by rising bytes; the last one also serves more */
};

/* Fills in the facts of this job. All ranks call it together. Errors: SL_EIO. */
sl_status sl_tuning_describe(const sl_comm *comm, sl_wire wire, sl_tuning *out);

/* Adds an entry of more bytes than the last one's. An entry that equals the last one but for the bytes replaces it. */
void sl_tuning_add(sl_tuning *tuning, const sl_tuning_entry *entry);

/* Reads a table on rank 0 and gives it to all ranks. Errors: SL_EIO (no such file), SL_EFORMAT (the message names the
 * line). All ranks fail alike. */
sl_status sl_tuning_read(const sl_comm *comm, const char *path, sl_tuning *out);

/* Writes the text of a table to a stream. */
void sl_tuning_print(const sl_tuning *tuning, FILE *file);

/* Returns whether a table was made for a job like `job`. Otherwise `why`, of `size` bytes, says what differs. */
int sl_tuning_fits(const sl_tuning *tuning, const sl_tuning *job, char *why, size_t size);

#endif
