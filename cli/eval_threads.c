#include "cli/eval.h"

#include "cli/report.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct worker {
    eval_threads *owner;
    size_t number; /* over all processes */
    pthread_t thread;
    sl_searcher *searcher;
    int64_t began, ended;
    size_t evaluations;
} worker;

enum { GO_WAIT, GO_RUN, GO_STOP };

struct eval_threads {
    const eval_task *task;
    uint64_t *ids; /* (nq, k) of the last pass */
    worker *workers;
    /* of the pass under way */
    size_t ef;
    float *latencies;
    atomic_int go;
    atomic_size_t next;
    atomic_int failed; /* the first worker to fail sets it and the message */
    char message[640];
};

/* Stops the pass; the message of the first failure is kept for the thread that reports. */
static void fail_pass(eval_threads *threads, const char *message) {
    int none = 0;
    if (atomic_compare_exchange_strong(&threads->failed, &none, 1))
        snprintf(threads->message, sizeof threads->message, "%s", message);
}

static int pin(worker *worker) {
    const cpu_list *cpus = &worker->owner->task->cpus;
    if (!cpus->count) return 1;
    size_t cpu = cpus->cpus[worker->number % cpus->count];
    if (cpu_pin(cpu) == 0) return 1;
    char message[128];
    snprintf(message, sizeof message, "cannot run on CPU %zu: %s; 'taskset -p $$' shows those allowed", cpu,
             strerror(errno));
    fail_pass(worker->owner, message);
    return 0;
}

static void ask(worker *worker) {
    eval_threads *threads = worker->owner;
    const eval_task *task = threads->task;
    sl_search_params params;
    sl_search_stats stats;
    sl_search_params_init(&params);
    params.ef = threads->ef;
    params.rerank = task->rerank;
    worker->evaluations = 0;
    int64_t before = worker->began = now_ns();
    for (;;) {
        size_t q = atomic_fetch_add_explicit(&threads->next, 1, memory_order_relaxed);
        if (q >= task->nq || atomic_load_explicit(&threads->failed, memory_order_relaxed) || interrupted()) break;
        sl_status status = sl_searcher_search(worker->searcher, (const char *)task->queries + q * task->row,
                                              task->dtype, task->k, &params, threads->ids + q * task->k, NULL, &stats);
        if (status != SL_OK) {
            char message[600];
            snprintf(message, sizeof message, "%s, row %zu: %s", task->queries_path, q, sl_last_error());
            fail_pass(threads, message);
            break;
        }
        worker->evaluations += stats.evaluations;
        int64_t after = now_ns();
        threads->latencies[q] = (float)(after - before) * 1e-3f;
        before = after;
    }
    worker->ended = before;
}

static void *run_worker(void *argument) {
    worker *worker = argument;
    atomic_int *go = &worker->owner->go;
    int pinned = pin(worker);
    while (atomic_load_explicit(go, memory_order_acquire) == GO_WAIT)
        sched_yield();
    worker->began = worker->ended = 0;
    if (pinned && atomic_load(go) == GO_RUN) ask(worker);
    return NULL;
}

void eval_threads_free(eval_threads *threads) {
    if (!threads) return;
    for (size_t i = 0; threads->workers && i < threads->task->threads; i++)
        sl_searcher_free(threads->workers[i].searcher);
    free(threads->workers);
    free(threads->ids);
    free(threads);
}

int eval_threads_create(const eval_task *task, const sl_index *index, size_t first_thread, eval_threads **out) {
    *out = NULL;
    eval_threads *threads = allocate(1, sizeof *threads);
    if (!threads) return EXIT_FAILED;
    threads->task = task;
    threads->ids = allocate(task->nq, task->k * sizeof *threads->ids);
    threads->workers = allocate(task->threads, sizeof *threads->workers);
    int result = threads->ids && threads->workers ? EXIT_DONE : EXIT_FAILED;
    for (size_t i = 0; result == EXIT_DONE && i < task->threads; i++) {
        worker *worker = &threads->workers[i];
        worker->owner = threads;
        worker->number = first_thread + i;
        sl_status status = sl_searcher_create(index, task->max_ef, &worker->searcher);
        if (status != SL_OK) result = report_status(task->index_path, status);
    }
    if (result == EXIT_DONE)
        *out = threads;
    else
        eval_threads_free(threads);
    return result;
}

static int contains(const uint64_t *sorted, size_t n, uint64_t id) {
    size_t low = 0;
    while (n) {
        size_t half = n / 2;
        if (sorted[low + half] < id) {
            low += half + 1;
            n -= half + 1;
        } else if (sorted[low + half] > id)
            n = half;
        else
            return 1;
    }
    return 0;
}

static double recall_of(const eval_threads *threads) {
    const eval_task *task = threads->task;
    size_t hits = 0;
    for (size_t q = 0; q < task->nq; q++)
        for (size_t i = 0; i < task->k; i++)
            hits += (size_t)contains(task->truth + q * task->k, task->k, threads->ids[q * task->k + i]);
    return (double)hits / ((double)task->nq * (double)task->k);
}

/* Runs the workers, this thread being the first of them; returns once all have ended. */
static int run_workers(eval_threads *threads, int64_t start_ns) {
    size_t started = 1, count = threads->task->threads;
    int error = 0;
    atomic_store(&threads->go, GO_WAIT);
    while (started < count && !error) {
        worker *worker = &threads->workers[started];
        error = pthread_create(&worker->thread, NULL, run_worker, worker);
        started += !error;
    }
    while (!error && now_ns() < start_ns)
        ;
    atomic_store_explicit(&threads->go, error ? GO_STOP : GO_RUN, memory_order_release);
    run_worker(&threads->workers[0]);
    for (size_t i = 1; i < started; i++)
        pthread_join(threads->workers[i].thread, NULL);
    if (error) return report_failure("cannot start %zu threads: %s; ask for fewer", count, strerror(error));
    if (threads->failed) return report_failure("%s", threads->message);
    return interrupted() ? report_interrupted() : EXIT_DONE;
}

int eval_threads_pass(eval_threads *threads, size_t ef, int64_t start_ns, float *latencies, eval_point *point) {
    threads->ef = ef;
    threads->latencies = latencies;
    atomic_store(&threads->next, 0);
    atomic_store(&threads->failed, 0);
    int status = run_workers(threads, start_ns);
    if (status != EXIT_DONE) return status;
    int64_t began = INT64_MAX, ended = 0;
    size_t evaluations = 0;
    for (size_t i = 0; i < threads->task->threads; i++) {
        const worker *worker = &threads->workers[i];
        evaluations += worker->evaluations;
        if (worker->began < began) began = worker->began;
        if (worker->ended > ended) ended = worker->ended;
    }
    double nq = (double)threads->task->nq;
    *point = (eval_point){.ef = ef,
                          .recall = recall_of(threads),
                          .qps = ended > began ? nq * 1e9 / (double)(ended - began) : 0,
                          .evaluations = (double)evaluations / nq};
    return EXIT_DONE;
}
