#include "cli/recommend/funnel_threads.h"

#include "cli/common/clock.h"
#include "cli/common/interrupt.h"
#include "cli/common/report.h"
#include "cli/common/system.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct worker {
    funnel_threads *owner;
    pthread_t thread;
    sl_session *session;
    sl_recommend_stats counts; /* of the current block */
} worker;

struct funnel_threads {
    const sl_recommend_params *params;
    worker *workers;
    size_t count;
    /* of the current block */
    const funnel_batch *batch;
    atomic_size_t next;
    atomic_int failed; /* the first worker to fail sets the status and the message */
    char message[640];
};

static void add_counts(sl_recommend_stats *sum, const sl_recommend_stats *more) {
    sum->requests += more->requests;
    sum->results += more->results;
    sum->candidates += more->candidates;
    sum->without_features += more->without_features;
    sum->version = more->version;
}

static void keep_failure(funnel_threads *threads, size_t request, sl_status status) {
    const char *message = sl_last_error();
    int none = 0;
    if (!atomic_compare_exchange_strong(&threads->failed, &none, 1)) return;
    snprintf(threads->message, sizeof threads->message, "%s, request %zu: %s", threads->batch->path,
             threads->batch->first + request, *message ? message : sl_status_text(status));
}

static void *answer_requests(void *argument) {
    worker *worker = argument;
    funnel_threads *threads = worker->owner;
    const funnel_batch *batch = threads->batch;
    size_t n = threads->params->n;
    worker->counts = (sl_recommend_stats){0};
    int64_t before = now_ns();
    for (;;) {
        size_t i = atomic_fetch_add_explicit(&threads->next, 1, memory_order_relaxed);
        if (i >= batch->count || atomic_load_explicit(&threads->failed, memory_order_relaxed) || interrupted()) break;
        sl_recommend_stats counts;
        sl_status status =
            sl_session_recommend(worker->session, &batch->requests[i], threads->params, batch->ids + i * n,
                                 batch->scores + i * n, batch->recall_scores + i * n, &counts);
        if (status != SL_OK) {
            keep_failure(threads, i, status);
            break;
        }
        add_counts(&worker->counts, &counts);
        int64_t after = now_ns();
        batch->latencies[i] = (float)(after - before) * 1e-3f;
        before = after;
    }
    return NULL;
}

void funnel_threads_free(funnel_threads *threads) {
    if (!threads) return;
    for (size_t i = 0; threads->workers && i < threads->count; i++)
        sl_session_free(threads->workers[i].session);
    free(threads->workers);
    free(threads);
}

int funnel_threads_create(sl_recommender *recommender, const sl_recommend_params *params, size_t count,
                          funnel_threads **out) {
    *out = NULL;
    funnel_threads *threads = allocate(1, sizeof *threads);
    if (!threads) return EXIT_FAILED;
    threads->params = params;
    threads->count = count;
    threads->workers = allocate(count, sizeof *threads->workers);
    int result = threads->workers ? EXIT_DONE : EXIT_FAILED;
    for (size_t i = 0; result == EXIT_DONE && i < count; i++) {
        threads->workers[i].owner = threads;
        sl_status status = sl_session_create(recommender, params, &threads->workers[i].session);
        if (status != SL_OK) result = report_status(NULL, status);
    }
    if (result == EXIT_DONE)
        *out = threads;
    else
        funnel_threads_free(threads);
    return result;
}

int funnel_threads_answer(funnel_threads *threads, const funnel_batch *batch, sl_recommend_stats *counts,
                          double *seconds) {
    size_t started = 1, wanted = threads->count < batch->count ? threads->count : batch->count;
    int error = 0;
    threads->batch = batch;
    atomic_store(&threads->next, 0);
    double start = now_seconds();
    while (started < wanted && !error) {
        worker *worker = &threads->workers[started];
        error = pthread_create(&worker->thread, NULL, answer_requests, worker);
        started += !error;
    }
    /* Works without the threads that could not be made. */
    answer_requests(&threads->workers[0]);
    for (size_t i = 1; i < started; i++)
        pthread_join(threads->workers[i].thread, NULL);
    *seconds += now_seconds() - start;
    for (size_t i = 0; i < started; i++)
        add_counts(counts, &threads->workers[i].counts);
    if (threads->failed) return report_failure("%s", threads->message);
    return interrupted() ? report_interrupted() : EXIT_DONE;
}
