/* The life of a communicator, and transfers between two ranks. */
#define _GNU_SOURCE
#include "cluster/comm/comm.h"

#include "base/clock.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Tests of a request before the rank lets others have the core. */
enum { EAGER_TESTS = 200 };
/* Seconds of patience at least: heartbeats come once a second. */
#define PATIENCE_MIN 3.0

struct sl_comm_job {
    pthread_mutex_t lock;
    int polls;  /* waits test requests in a loop; 0: they wait inside MPI */
    int yields; /* more ranks than cores on this machine: a wait lets others run at once */
    int broken; /* atomic */
    double patience;
    uint64_t first_failed; /* of the agreement under way. A broken one may write it late */
    sl_comm_counts counts;
    char host[MPI_MAX_PROCESSOR_NAME + 1];
};

void sl_comm_lock(const sl_comm *comm) {
    pthread_mutex_lock(&comm->job->lock);
}

void sl_comm_unlock(const sl_comm *comm) {
    pthread_mutex_unlock(&comm->job->lock);
}

int sl_comm_lock_soon(const sl_comm *comm) {
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec++;
    return pthread_mutex_timedlock(&comm->job->lock, &end) == 0;
}

void sl_comm_progress(const sl_comm *comm) {
    int any;
    sl_comm_lock(comm);
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm->mpi, &any, MPI_STATUS_IGNORE);
    sl_comm_unlock(comm);
}

int sl_comm_is_broken(const sl_comm *comm) {
    return __atomic_load_n(&comm->job->broken, __ATOMIC_ACQUIRE);
}

int sl_comm_yields(const sl_comm *comm) {
    return comm->job->yields;
}

sl_status sl_comm_check(const sl_comm *comm, int result, const char *what) {
    char text[MPI_MAX_ERROR_STRING + 1] = "";
    int length = 0;
    if (result == MPI_SUCCESS) return SL_OK;
    MPI_Error_string(result, text, &length);
    text[length] = '\0';
    __atomic_store_n(&comm->job->broken, 1, __ATOMIC_RELEASE);
    return sl_fail(SL_EIO, "%s failed: %s; another rank has probably ended, so look at its messages", what, text);
}

/* ---- Waiting ---- */

static sl_status poll_until_done(const sl_comm *comm, MPI_Request *requests, size_t count, double seconds) {
    const sl_comm_job *job = comm->job;
    const double end = seconds > 0 ? sl_now_s() + seconds : 0;
    for (size_t tests = 0;; tests++) {
        int done;
        sl_comm_lock(comm);
        int result = MPI_Testall((int)count, requests, &done, MPI_STATUSES_IGNORE);
        sl_comm_unlock(comm);
        SL_TRY(sl_comm_check(comm, result, "MPI_Testall"));
        if (done) return SL_OK;
        if (sl_comm_is_broken(comm)) return sl_fail(SL_EIO, "the job is broken: a call of MPI failed on this rank");
        if (end > 0 && tests % EAGER_TESTS == 0 && sl_now_s() > end) {
            __atomic_store_n(&comm->job->broken, 1, __ATOMIC_RELEASE);
            return sl_fail(SL_EIO, "the other ranks do not come");
        }
        if (job->yields || tests >= EAGER_TESTS) sched_yield();
    }
}

sl_status sl_comm_wait_for(const sl_comm *comm, MPI_Request *requests, size_t count, double seconds) {
    if (comm->job->polls) return poll_until_done(comm, requests, count, seconds);
    return sl_comm_check(comm, MPI_Waitall((int)count, requests, MPI_STATUSES_IGNORE), "MPI_Waitall");
}

sl_status sl_comm_wait(const sl_comm *comm, MPI_Request *requests, size_t count) {
    return sl_comm_wait_for(comm, requests, count, 0);
}

uint64_t *sl_comm_first_failed(const sl_comm *comm) {
    return &comm->job->first_failed;
}

double sl_comm_patience(const sl_comm *comm) {
    return comm->job->patience;
}

sl_status sl_comm_barrier(const sl_comm *comm) {
    MPI_Request request;
    sl_comm_lock(comm);
    int result = MPI_Ibarrier(comm->mpi, &request);
    sl_comm_unlock(comm);
    SL_TRY(sl_comm_check(comm, result, "MPI_Ibarrier"));
    return sl_comm_wait(comm, &request, 1);
}

/* ---- Life ---- */

/* Returns whether this machine has fewer cores than ranks. */
static int has_too_few_cores(const sl_comm *comm) {
    const char *word = getenv("OMPI_MCA_mpi_yield_when_idle");
    sl_comm machine;
    /* All ranks make the call, whatever their environments say. */
    if (sl_comm_split_machine(comm, &machine) != SL_OK) return 0;
    size_t here = machine.ranks;
    sl_comm_free(&machine);
    return (word && strcmp(word, "0") != 0) || here > (size_t)sysconf(_SC_NPROCESSORS_ONLN);
}

/* Takes the patience from the environment of rank 0, because those of other machines may differ. */
static sl_status read_patience(const sl_comm *comm, double *patience) {
    const char *word = getenv("SHORTLIST_MPI_PATIENCE");
    *patience = SL_COMM_PATIENCE;
    if (comm->rank == 0 && word && *word) {
        char *end;
        *patience = strtod(word, &end);
        const int is_time = *patience == 0 || (*patience >= PATIENCE_MIN && *patience <= 1e6);
        if (*end != '\0' || !is_time) *patience = -1;
    }
    SL_TRY(sl_comm_check(comm, MPI_Bcast(patience, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD), "MPI_Bcast"));
    if (*patience >= 0) return SL_OK;
    return sl_fail(SL_EINVAL,
                   "the environment's SHORTLIST_MPI_PATIENCE is '%s'; give %g seconds or more, or 0 to wait for ever",
                   word ? word : "", PATIENCE_MIN);
}

static sl_status set_up_job(sl_comm *comm, int thread_level) {
    sl_comm_job *job = comm->job;
    int rank, ranks, length = 0;
    pthread_mutex_init(&job->lock, NULL);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    SL_TRY(sl_comm_check(comm, MPI_Comm_rank(MPI_COMM_WORLD, &rank), "MPI_Comm_rank"));
    SL_TRY(sl_comm_check(comm, MPI_Comm_size(MPI_COMM_WORLD, &ranks), "MPI_Comm_size"));
    SL_TRY(sl_comm_check(comm, MPI_Get_processor_name(job->host, &length), "MPI_Get_processor_name"));
    SL_TRY(sl_comm_check(comm, MPI_Comm_dup(MPI_COMM_WORLD, &comm->agreement), "MPI_Comm_dup"));
    comm->mpi = MPI_COMM_WORLD;
    comm->rank = (size_t)rank;
    comm->ranks = (size_t)ranks;
    SL_TRY(read_patience(comm, &job->patience));
#ifndef SL_SMPI
    if (thread_level < MPI_THREAD_SERIALIZED)
        return sl_fail(SL_EUNSUPPORTED,
                       "this MPI serves the main thread alone; install one with MPI_THREAD_SERIALIZED");
    job->yields = has_too_few_cores(comm);
    job->polls = 1;
#else
    /* A simulated rank has one thread, and each test of a request would take simulated time. */
    (void)thread_level;
    (void)has_too_few_cores;
#endif
    return SL_OK;
}

sl_status sl_comm_start(int *argc, char ***argv, sl_comm *out) {
    int level;
    *out = (sl_comm){.mpi = MPI_COMM_NULL, .agreement = MPI_COMM_NULL};
    if (MPI_Init_thread(argc, argv, MPI_THREAD_SERIALIZED, &level) != MPI_SUCCESS)
        return sl_fail(SL_EIO, "MPI does not start; start the program by mpirun, or mend the installation of MPI");
    out->job = calloc(1, sizeof *out->job);
    if (!out->job) return sl_fail(SL_ENOMEM, "no memory for the communicator");
    return set_up_job(out, level);
}

void sl_comm_end(sl_comm *comm) {
    if (comm->agreement != MPI_COMM_NULL) MPI_Comm_free(&comm->agreement);
    MPI_Finalize();
    pthread_mutex_destroy(&comm->job->lock);
    free(comm->job);
    comm->job = NULL;
}

void sl_comm_abort(const sl_comm *comm, int status) {
    (void)comm;
    MPI_Abort(MPI_COMM_WORLD, status);
}

static sl_status finish_split(const sl_comm *comm, int result, const char *what, sl_comm *out) {
    int rank, ranks;
    SL_TRY(sl_comm_check(comm, result, what));
    sl_comm_lock(comm);
    MPI_Comm_set_errhandler(out->mpi, MPI_ERRORS_RETURN);
    MPI_Comm_rank(out->mpi, &rank);
    MPI_Comm_size(out->mpi, &ranks);
    sl_comm_unlock(comm);
    out->rank = (size_t)rank;
    out->ranks = (size_t)ranks;
    return SL_OK;
}

sl_status sl_comm_split(const sl_comm *comm, int colour, size_t key, sl_comm *out) {
    *out = (sl_comm){.mpi = MPI_COMM_NULL, .agreement = MPI_COMM_NULL, .job = comm->job};
    SL_TRY(sl_comm_barrier(comm));
    sl_comm_lock(comm);
    int result = MPI_Comm_split(comm->mpi, colour, (int)key, &out->mpi);
    if (result == MPI_SUCCESS) result = MPI_Comm_dup(out->mpi, &out->agreement);
    sl_comm_unlock(comm);
    return finish_split(comm, result, "MPI_Comm_split", out);
}

sl_status sl_comm_split_machine(const sl_comm *comm, sl_comm *out) {
    *out = (sl_comm){.mpi = MPI_COMM_NULL, .agreement = MPI_COMM_NULL, .job = comm->job};
    SL_TRY(sl_comm_barrier(comm));
    sl_comm_lock(comm);
    int result = MPI_Comm_split_type(comm->mpi, MPI_COMM_TYPE_SHARED, (int)comm->rank, MPI_INFO_NULL, &out->mpi);
    if (result == MPI_SUCCESS) result = MPI_Comm_dup(out->mpi, &out->agreement);
    sl_comm_unlock(comm);
    return finish_split(comm, result, "MPI_Comm_split_type", out);
}

void sl_comm_free(sl_comm *comm) {
    if (!comm->job || comm->mpi == MPI_COMM_NULL) return;
    if (sl_comm_is_broken(comm)) return;
    sl_comm_lock(comm);
    MPI_Comm_free(&comm->agreement);
    MPI_Comm_free(&comm->mpi);
    sl_comm_unlock(comm);
    comm->mpi = MPI_COMM_NULL;
}

const char *sl_comm_host(const sl_comm *comm) {
    return comm->job->host;
}

sl_comm_counts sl_comm_counted(const sl_comm *comm) {
    sl_comm_lock(comm);
    sl_comm_counts counts = comm->job->counts;
    sl_comm_unlock(comm);
    return counts;
}

void sl_comm_count(const sl_comm *comm, size_t messages, size_t bytes) {
    sl_comm_lock(comm);
    comm->job->counts.messages += messages;
    comm->job->counts.bytes += bytes;
    sl_comm_unlock(comm);
}

/* ---- Transfers ---- */

/* Sizes of piece i of some bytes. */
static size_t piece_size(size_t bytes, size_t i) {
    size_t left = bytes - i * SL_COMM_PIECE;
    return left < SL_COMM_PIECE ? left : SL_COMM_PIECE;
}

sl_status sl_comm_send(const sl_comm *comm, const void *data, size_t bytes, size_t to, int tag, MPI_Request *requests) {
    size_t pieces = sl_comm_pieces(bytes);
    int result = MPI_SUCCESS;
    for (size_t i = 0; i < pieces; i++)
        requests[i] = MPI_REQUEST_NULL;
    sl_comm_lock(comm);
    for (size_t i = 0; i < pieces && result == MPI_SUCCESS; i++)
        result = MPI_Isend((const char *)data + i * SL_COMM_PIECE, (int)piece_size(bytes, i), MPI_BYTE, (int)to, tag,
                           comm->mpi, &requests[i]);
    comm->job->counts.messages += pieces;
    comm->job->counts.bytes += bytes;
    sl_comm_unlock(comm);
    return sl_comm_check(comm, result, "MPI_Isend");
}

sl_status sl_comm_receive(const sl_comm *comm, void *data, size_t bytes, size_t from, int tag, MPI_Request *requests) {
    size_t pieces = sl_comm_pieces(bytes);
    int result = MPI_SUCCESS;
    for (size_t i = 0; i < pieces; i++)
        requests[i] = MPI_REQUEST_NULL;
    sl_comm_lock(comm);
    for (size_t i = 0; i < pieces && result == MPI_SUCCESS; i++)
        result = MPI_Irecv((char *)data + i * SL_COMM_PIECE, (int)piece_size(bytes, i), MPI_BYTE, (int)from, tag,
                           comm->mpi, &requests[i]);
    sl_comm_unlock(comm);
    return sl_comm_check(comm, result, "MPI_Irecv");
}
