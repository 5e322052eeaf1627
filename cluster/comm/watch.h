/* A watch over the ranks: a rank that does not answer ends the job.
 *
 * mpirun ends a job if a process dies, but not if a process or its machine hangs. So a thread of each rank sends a
 * heartbeat to the next rank every second, and expects one from the rank before. Without one for sl_comm_patience,
 * the rank prints one line that names the silent rank, and ends all ranks with exit status 1. */
#ifndef SL_CLUSTER_COMM_WATCH_H
#define SL_CLUSTER_COMM_WATCH_H

#include "cluster/comm/comm.h"

typedef struct sl_watch sl_watch;

/* Starts the watch. *out is NULL for a job of one rank, in a simulation, and if the patience is 0. `name`: of the
 * program, for the line. Errors: SL_ENOMEM, SL_EIO. */
sl_status sl_watch_start(const sl_comm *comm, const char *name, sl_watch **out);
/* Stops it. Every rank calls it, before sl_comm_end. NULL is allowed. */
void sl_watch_stop(sl_watch *watch);

#endif
