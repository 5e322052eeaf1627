#include "cluster/train/reducer.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Sums that may wait for the courier at once: a net has fewer layers. */
enum { QUEUE = 64 };

typedef struct sum_job {
    float *numbers;
    size_t count;
} sum_job;

struct sl_reducer {
    sl_ranks table;
    sl_comm comm; /* of the main thread */
    sl_comm sums; /* of the courier */
    sl_allreduce *reduce;
    size_t bucket;
    pthread_t courier;
    int has_courier;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    sum_job jobs[QUEUE]; /* jobs[done % QUEUE] is next */
    size_t begun, done;
    int ends;
    sl_status status; /* the courier's first failure */
    char message[SL_ERROR_SIZE];
};

/* ---- The courier ---- */

static void *run_courier(void *ctx) {
    sl_reducer *reducer = ctx;
    pthread_mutex_lock(&reducer->lock);
    for (;;) {
        while (reducer->begun == reducer->done && !reducer->ends)
            pthread_cond_wait(&reducer->changed, &reducer->lock);
        if (reducer->begun == reducer->done) break;
        const sum_job job = reducer->jobs[reducer->done % QUEUE];
        pthread_mutex_unlock(&reducer->lock);
        sl_status status = sl_allreduce_run(reducer->reduce, job.numbers, job.count);
        pthread_mutex_lock(&reducer->lock);
        if (status != SL_OK && reducer->status == SL_OK) {
            reducer->status = status;
            strncpy(reducer->message, sl_last_error(), sizeof reducer->message - 1);
        }
        reducer->done++;
        pthread_cond_broadcast(&reducer->changed);
    }
    pthread_mutex_unlock(&reducer->lock);
    return NULL;
}

static sl_status sum_begin(void *ctx, float *numbers, size_t count) {
    sl_reducer *reducer = ctx;
    pthread_mutex_lock(&reducer->lock);
    while (reducer->begun - reducer->done == QUEUE)
        pthread_cond_wait(&reducer->changed, &reducer->lock);
    reducer->jobs[reducer->begun++ % QUEUE] = (sum_job){numbers, count};
    pthread_cond_broadcast(&reducer->changed);
    pthread_mutex_unlock(&reducer->lock);
    return SL_OK;
}

static sl_status sum_wait(void *ctx) {
    sl_reducer *reducer = ctx;
    pthread_mutex_lock(&reducer->lock);
    while (reducer->begun != reducer->done)
        pthread_cond_wait(&reducer->changed, &reducer->lock);
    sl_status status = reducer->status;
    pthread_mutex_unlock(&reducer->lock);
    return status == SL_OK ? SL_OK : sl_fail(status, "%s", reducer->message);
}

/* ---- The main thread's calls ---- */

static sl_status agree(void *ctx, sl_status mine) {
    return sl_comm_agree(&((sl_reducer *)ctx)->comm, mine);
}

static sl_status gather(void *ctx, const void *mine, size_t size, const sl_allocator *allocator, sl_parts *out) {
    return sl_comm_gather_parts(&((sl_reducer *)ctx)->comm, mine, size, allocator, out);
}

static sl_status gather_same(void *ctx, const void *mine, size_t size, void *all) {
    return sl_comm_gather(&((sl_reducer *)ctx)->comm, mine, size, all);
}

static sl_status gather_sizes(void *ctx, const void *mine, const size_t *sizes, void *all) {
    return sl_comm_gather_sizes(&((sl_reducer *)ctx)->comm, mine, sizes, all);
}

static sl_status exchange(void *ctx, const sl_parts *to, const sl_allocator *allocator, sl_parts *from) {
    return sl_comm_exchange(&((sl_reducer *)ctx)->comm, to, allocator, from);
}

static sl_status broadcast(void *ctx, void *data, size_t size) {
    return sl_comm_broadcast(&((sl_reducer *)ctx)->comm, data, size, 0);
}

static sl_status sum_counts(void *ctx, uint64_t *counts, size_t count) {
    return sl_comm_sum_counts(&((sl_reducer *)ctx)->comm, counts, count);
}

static sl_status sum_floats(void *ctx, float *numbers, size_t count) {
    return sl_comm_sum_floats(&((sl_reducer *)ctx)->comm, numbers, count);
}

/* ---- Life ---- */

static sl_status start_courier(sl_reducer *reducer, const sl_comm *comm, const sl_allreduce_params *params) {
    sl_status status = SL_OK;
    SL_TRY(sl_comm_split(comm, 0, comm->rank, &reducer->comm));
    SL_TRY(sl_comm_split(comm, 0, comm->rank, &reducer->sums));
    SL_TRY(sl_allreduce_create(&reducer->sums, params, reducer->bucket, &reducer->reduce));
    reducer->has_courier = pthread_create(&reducer->courier, NULL, run_courier, reducer) == 0;
    if (!reducer->has_courier)
        status = sl_fail(SL_ENOMEM, "no thread for the sums; raise the limit of processes (ulimit -u)");
    return sl_comm_agree(comm, status);
}

void sl_reducer_free(sl_reducer *reducer) {
    if (!reducer) return;
    pthread_mutex_lock(&reducer->lock);
    reducer->ends = 1;
    pthread_cond_broadcast(&reducer->changed);
    pthread_mutex_unlock(&reducer->lock);
    if (reducer->has_courier) pthread_join(reducer->courier, NULL);
    sl_allreduce_free(reducer->reduce);
    sl_comm_free(&reducer->sums);
    sl_comm_free(&reducer->comm);
    pthread_mutex_destroy(&reducer->lock);
    pthread_cond_destroy(&reducer->changed);
    free(reducer);
}

sl_status sl_reducer_create(const sl_comm *comm, const sl_allreduce_params *params, size_t bucket, sl_reducer **out,
                            const sl_ranks **table) {
    *out = NULL;
    *table = NULL;
    sl_reducer *reducer = calloc(1, sizeof *reducer);
    SL_TRY(sl_comm_agree(comm, reducer ? SL_OK : sl_fail(SL_ENOMEM, "no memory for the ranks' calls")));
    reducer->table = (sl_ranks){.ctx = reducer,
                                .rank = comm->rank,
                                .ranks = comm->ranks,
                                .agree = agree,
                                .gather = gather,
                                .gather_same = gather_same,
                                .gather_sizes = gather_sizes,
                                .exchange = exchange,
                                .broadcast = broadcast,
                                .sum_counts = sum_counts,
                                .sum_floats = sum_floats,
                                .sum_begin = sum_begin,
                                .sum_wait = sum_wait};
    reducer->bucket = bucket;
    pthread_mutex_init(&reducer->lock, NULL);
    pthread_cond_init(&reducer->changed, NULL);
    sl_status status = start_courier(reducer, comm, params);
    if (status != SL_OK) {
        sl_reducer_free(reducer);
        return status;
    }
    *out = reducer;
    *table = &reducer->table;
    return SL_OK;
}

sl_allreduce_algorithm sl_reducer_algorithm(const sl_reducer *reducer) {
    return sl_allreduce_used(reducer->reduce, reducer->bucket).algorithm;
}
