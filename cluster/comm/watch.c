#include "cluster/comm/watch.h"

#include "base/clock.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TAG_BEAT = 7 };
/* What a heartbeat says. */
enum { BEAT_ALIVE = 0, BEAT_LEAVES = 1 };

struct sl_watch {
    sl_comm comm;
    const char *name;
    double patience;
    char host[128]; /* machine of the rank before */
    pthread_t thread;
    int has_thread;
    int stops; /* atomic */
    MPI_Request sent, received;
    char out, in;
};

/* After a longer pause of its own loop, this process was stopped. The neighbour is not blamed for it. */
static double stood_still_s(const sl_watch *watch) {
    return watch->patience < 10 ? watch->patience / 2 : 5;
}

static size_t rank_before(const sl_watch *watch) {
    return (watch->comm.rank + watch->comm.ranks - 1) % watch->comm.ranks;
}

static void end_job(const sl_watch *watch) {
    fprintf(stderr,
            "%s: rank %zu (%s) has not answered for %.0f s, so the job ends; look at that machine. Finished parts and "
            "checkpoints stay usable\n",
            watch->name, rank_before(watch), watch->host, watch->patience);
    fflush(stderr);
    sl_comm_abort(&watch->comm, 1);
}

/* Sends a heartbeat if the last one is gone. Returns whether it did. */
static int send_beat(sl_watch *watch, int says) {
    int gone = 0;
    if (MPI_Test(&watch->sent, &gone, MPI_STATUS_IGNORE) != MPI_SUCCESS || !gone) return 0;
    watch->out = (char)says;
    return MPI_Isend(&watch->out, 1, MPI_CHAR, (int)((watch->comm.rank + 1) % watch->comm.ranks), TAG_BEAT,
                     watch->comm.mpi, &watch->sent) == MPI_SUCCESS;
}

/* Takes all heartbeats that came. Returns whether there was one. *leaves: the rank before has left. After a call that
 * fails there is no request, and none comes any more. */
static int take_beats(sl_watch *watch, int *leaves) {
    int any = 0;
    while (!*leaves && watch->received != MPI_REQUEST_NULL) {
        int came = 0;
        if (MPI_Test(&watch->received, &came, MPI_STATUS_IGNORE) != MPI_SUCCESS || !came) break;
        any = 1;
        *leaves = watch->in == BEAT_LEAVES;
        if (!*leaves && MPI_Irecv(&watch->in, 1, MPI_CHAR, (int)rank_before(watch), TAG_BEAT, watch->comm.mpi,
                                  &watch->received) != MPI_SUCCESS)
            watch->received = MPI_REQUEST_NULL;
    }
    return any;
}

/* Takes the job's lock. Another thread of this rank keeps it while it waits inside MPI for a rank that stands still;
 * then the process ends, and mpirun ends the others. Each try is short, so a process that was stopped gets another. */
static void lock(const sl_watch *watch) {
    for (int tries = 0; !sl_comm_lock_soon(&watch->comm); tries++) {
        if (tries < watch->patience) continue;
        fprintf(stderr,
                "%s: rank %zu (%s) has waited inside MPI for %.0f s for a rank that stands still, so the job ends; "
                "finished parts and checkpoints stay usable\n",
                watch->name, watch->comm.rank, sl_comm_host(&watch->comm), watch->patience);
        fflush(stderr);
        _exit(1);
    }
}

/* Beats until it is told to stop, and until the rank before has left. */
static void *run_watch(void *ctx) {
    sl_watch *watch = ctx;
    double heard = sl_now_s(), beat = 0, last = heard;
    int said_bye = 0, leaves = 0;
    while (!said_bye || !leaves) {
        int stops = __atomic_load_n(&watch->stops, __ATOMIC_ACQUIRE);
        double now = sl_now_s();
        if (now - last > stood_still_s(watch)) heard = now;
        last = now;
        lock(watch);
        if (stops && !said_bye)
            said_bye = send_beat(watch, BEAT_LEAVES);
        else if (!stops && now - beat >= 1 && send_beat(watch, BEAT_ALIVE))
            beat = now;
        if (take_beats(watch, &leaves)) heard = now;
        sl_comm_unlock(&watch->comm);
        if (!leaves && now - heard > watch->patience) end_job(watch);
        sl_pause_ns(stops ? 1000000 : 100000000);
    }
    return NULL;
}

/* Learns the machine of the rank before, and begins to listen to it. */
static sl_status begin_watch(sl_watch *watch) {
    const sl_comm *comm = &watch->comm;
    MPI_Request requests[2];
    char mine[sizeof watch->host] = "";
    strncpy(mine, sl_comm_host(comm), sizeof mine - 1);
    SL_TRY(sl_comm_receive(comm, watch->host, sizeof watch->host, rank_before(watch), TAG_BEAT, &requests[0]));
    SL_TRY(sl_comm_send(comm, mine, sizeof mine, (comm->rank + 1) % comm->ranks, TAG_BEAT, &requests[1]));
    SL_TRY(sl_comm_wait(comm, requests, 2));
    watch->sent = MPI_REQUEST_NULL;
    sl_comm_lock(comm);
    int result = MPI_Irecv(&watch->in, 1, MPI_CHAR, (int)rank_before(watch), TAG_BEAT, comm->mpi, &watch->received);
    sl_comm_unlock(comm);
    return sl_comm_check(comm, result, "MPI_Irecv");
}

sl_status sl_watch_start(const sl_comm *comm, const char *name, sl_watch **out) {
    const double patience = sl_comm_patience(comm);
    *out = NULL;
#ifdef SL_SMPI
    (void)run_watch;
    (void)begin_watch;
    (void)name;
    (void)comm;
    return SL_OK;
#else
    if (comm->ranks == 1 || patience == 0) return SL_OK;
    sl_watch *watch = calloc(1, sizeof *watch);
    sl_status status = sl_comm_agree(comm, watch ? SL_OK : sl_fail(SL_ENOMEM, "no memory for the watch"));
    if (status != SL_OK) {
        free(watch);
        return status;
    }
    watch->name = name;
    watch->patience = patience;
    status = sl_comm_split(comm, 0, comm->rank, &watch->comm);
    if (status == SL_OK) status = begin_watch(watch);
    if (status == SL_OK) watch->has_thread = pthread_create(&watch->thread, NULL, run_watch, watch) == 0;
    if (status == SL_OK && !watch->has_thread)
        status = sl_fail(SL_ENOMEM, "no thread for the watch over the ranks; raise the limit of processes (ulimit -u)");
    status = sl_comm_agree(comm, status);
    if (status == SL_OK)
        *out = watch;
    else if (!sl_comm_is_broken(comm))
        sl_watch_stop(watch);
    return status;
#endif
}

void sl_watch_stop(sl_watch *watch) {
    if (!watch) return;
    __atomic_store_n(&watch->stops, 1, __ATOMIC_RELEASE);
    if (watch->has_thread)
        pthread_join(watch->thread, NULL);
    else
        (void)run_watch(watch); /* the neighbours wait for this rank's last word */
    MPI_Wait(&watch->sent, MPI_STATUS_IGNORE);
    sl_comm_free(&watch->comm);
    free(watch);
}
