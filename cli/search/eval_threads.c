#include "cli/common/clock.h"
#include "cli/common/interrupt.h"
#include "cli/common/report.h"
#include "cli/common/system.h"
#include "cli/files/ids.h"
#include "cli/search/eval.h"
#include "cli/search/search_totals.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct worker {
    eval_threads *owner;
    const size_t *cpu; /* NULL: not pinned */
    pthread_t thread;
    sl_searcher *searcher;
    int64_t began, ended;
    size_t asked; /* the count at that time */
    sl_search_stats counts;
} worker;

enum { GO_WAIT, GO_RUN, GO_STOP };

struct eval_threads {
    const eval_task *task;
    sl_index *index;
    sl_filter *filter; /* NULL: none */
    pid_t parent;
    uint64_t *ids; /* (nq, k) of the last pass */
    size_t *cpus;  /* one per worker; NULL: not pinned */
    worker *workers;
    size_t room; /* largest ef of the searchers; 0: no searchers yet */
    /* of the current pass */
    eval_setting setting;
    eval_gate *gate;
    float *latencies;
    atomic_int go;
    atomic_size_t next;
    atomic_int failed; /* the first worker to fail sets the status and the message */
    char message[640];
};

/* Stops the pass. Keeps the first failure's message for the thread that reports. */
static void fail_pass(eval_threads *threads, const char *message) {
    int none = 0;
    if (atomic_compare_exchange_strong(&threads->failed, &none, 1))
        snprintf(threads->message, sizeof threads->message, "%s", message);
}

static int pin_thread(eval_threads *threads, const size_t *cpus, size_t count) {
    if (!cpus || cpu_pin(cpus, count) == 0) return 1;
    char message[128];
    snprintf(message, sizeof message, "cannot run on CPU %zu: %s; 'taskset -p $$' shows those allowed", cpus[0],
             strerror(errno));
    fail_pass(threads, message);
    return 0;
}

static sl_search_params search_params(const eval_threads *threads) {
    sl_search_params params;
    sl_search_params_init(&params);
    params.ef = threads->setting.ef;
    params.rerank = threads->setting.rerank;
    params.stop = threads->setting.stop;
    params.probes = threads->latencies ? threads->setting.probes_one : threads->setting.probes;
    params.groups = threads->setting.groups;
    params.recall = threads->setting.recall;
    params.filter = threads->filter;
    params.max_visits = threads->task->max_visits;
    params.threads = threads->task->threads;
    return params;
}

/* Waits at the gate for the other processes. Returns 0 if it need not wait for them. */
static int wait_at_gate(const eval_threads *threads) {
    eval_gate *gate = threads->gate;
    atomic_fetch_add(&gate->arrived, 1);
    while (atomic_load_explicit(&gate->arrived, memory_order_acquire) < gate->procs) {
        if (interrupted() || getppid() != threads->parent) return 0;
        sched_yield();
    }
    return 1;
}

static void ask_queries(worker *worker) {
    eval_threads *threads = worker->owner;
    const eval_task *task = threads->task;
    sl_search_params params = search_params(threads);
    sl_search_stats stats;
    size_t asked = 0;
    int alone = 0;
    int64_t before = worker->began = now_ns();
    for (;;) {
        /* A process has finished, so the rest of the pass runs beside idle processes and is not measured. */
        if (!alone && atomic_load_explicit(&threads->gate->finished, memory_order_relaxed)) {
            alone = 1;
            worker->asked = asked;
            worker->ended = before;
        }
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
        asked++;
        search_totals_add(&worker->counts, &stats);
        int64_t after = now_ns();
        threads->latencies[q] = (float)(after - before) * 1e-3f;
        before = after;
    }
    atomic_store_explicit(&threads->gate->finished, 1, memory_order_relaxed);
    if (alone) return;
    worker->asked = asked;
    worker->ended = before;
}

static void *run_worker(void *argument) {
    worker *worker = argument;
    atomic_int *go = &worker->owner->go;
    int pinned = pin_thread(worker->owner, worker->cpu, 1);
    while (atomic_load_explicit(go, memory_order_acquire) == GO_WAIT)
        sched_yield();
    worker->began = worker->ended = 0;
    worker->asked = 0;
    worker->counts = (sl_search_stats){0};
    if (pinned && atomic_load(go) == GO_RUN) ask_queries(worker);
    return NULL;
}

void eval_threads_free(eval_threads *threads) {
    if (!threads) return;
    for (size_t i = 0; threads->workers && i < threads->task->threads; i++)
        sl_searcher_free(threads->workers[i].searcher);
    sl_filter_free(threads->filter);
    free(threads->workers);
    free(threads->cpus);
    free(threads->ids);
    free(threads);
}

static int create_workers(eval_threads *threads, size_t first_thread) {
    const eval_task *task = threads->task;
    const cpu_list *cpus = &task->cpus;
    threads->workers = allocate(task->threads, sizeof *threads->workers);
    if (!threads->workers) return EXIT_FAILED;
    if (cpus->count) {
        threads->cpus = allocate(task->threads, sizeof *threads->cpus);
        if (!threads->cpus) return EXIT_FAILED;
    }
    for (size_t i = 0; i < task->threads; i++) {
        worker *worker = &threads->workers[i];
        worker->owner = threads;
        if (cpus->count) {
            threads->cpus[i] = cpus->cpus[(first_thread + i) % cpus->count];
            worker->cpu = &threads->cpus[i];
        }
    }
    return EXIT_DONE;
}

int eval_threads_create(const eval_task *task, sl_index *index, size_t first_thread, eval_threads **out) {
    *out = NULL;
    eval_threads *threads = allocate(1, sizeof *threads);
    if (!threads) return EXIT_FAILED;
    threads->task = task;
    threads->index = index;
    threads->parent = getppid();
    threads->ids = allocate(task->nq, task->k * sizeof *threads->ids);
    int status = threads->ids ? create_workers(threads, first_thread) : EXIT_FAILED;
    if (status == EXIT_DONE && task->filter)
        status = filter_make(task->filter, task->index_path, index, &threads->filter);
    if (status == EXIT_DONE)
        *out = threads;
    else
        eval_threads_free(threads);
    return status;
}

/* A filtered search may walk deeper than ef: as deep as sl_index_search lets it. */
static size_t room_beside_filter(size_t ef) {
    size_t room = 8 * ef < 1024 ? 1024 : 8 * ef;
    return room < SL_MAX_EF ? room : SL_MAX_EF;
}

/* Makes searchers for walks of this depth and somewhat more, so that a search for a depth makes few of them. Searchers
 * for the deepest possible walk would take memory that a real process does not need. */
static int make_searchers(eval_threads *threads, size_t ef) {
    const eval_task *task = threads->task;
    if (ef <= threads->room) return EXIT_DONE;
    size_t room = ef < SL_MAX_EF / 2 ? ef + ef / 2 : SL_MAX_EF;
    if (threads->filter) room = room_beside_filter(ef);
    threads->room = 0;
    for (size_t i = 0; i < task->threads; i++) {
        sl_searcher **searcher = &threads->workers[i].searcher;
        sl_searcher_free(*searcher);
        sl_status status = sl_searcher_create(threads->index, room, searcher);
        if (status != SL_OK) return report_status(task->index_path, status);
    }
    threads->room = room;
    return EXIT_DONE;
}

static int contains_id(const uint64_t *sorted, size_t n, uint64_t id) {
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
            hits += (size_t)contains_id(task->truth + q * task->wanted, task->wanted, threads->ids[q * task->k + i]);
    return (double)hits / ((double)task->nq * (double)task->wanted);
}

/* Runs the workers; this thread is the first of them. Returns when all have ended. */
static int run_workers(eval_threads *threads) {
    size_t started = 1, count = threads->task->threads;
    int error = 0;
    atomic_store(&threads->go, GO_WAIT);
    while (started < count && !error) {
        worker *worker = &threads->workers[started];
        error = pthread_create(&worker->thread, NULL, run_worker, worker);
        started += !error;
    }
    int open = wait_at_gate(threads);
    atomic_store_explicit(&threads->go, error || !open ? GO_STOP : GO_RUN, memory_order_release);
    run_worker(&threads->workers[0]);
    for (size_t i = 1; i < started; i++)
        pthread_join(threads->workers[i].thread, NULL);
    if (error) return report_failure("cannot start %zu threads: %s; ask for fewer", count, strerror(error));
    if (threads->failed) return report_failure("%s", threads->message);
    return interrupted() || !open ? report_interrupted() : EXIT_DONE;
}

static int keep_going(void *ctx, uint64_t done, uint64_t total) {
    (void)ctx;
    (void)done;
    (void)total;
    return interrupted();
}

/* Runs a batch. OpenMP makes its threads at the first batch. They may run on the calling thread's CPUs. */
static int run_batch(eval_threads *threads, eval_pass *pass) {
    const eval_task *task = threads->task;
    sl_search_params params = search_params(threads);
    sl_search_stats stats;
    params.progress = keep_going;
    int pinned = pin_thread(threads, threads->cpus, task->threads), open = wait_at_gate(threads);
    if (!pinned) return report_failure("%s", threads->message);
    if (!open) return report_interrupted();
    pass->began = now_ns();
    sl_status status = sl_index_search(threads->index, task->queries, task->dtype, task->nq, task->row, task->k,
                                       &params, threads->ids, NULL, &stats);
    pass->ended = now_ns();
    if (status != SL_OK) return report_status(task->queries_path, status);
    pass->asked = task->nq;
    pass->counts = stats;
    return EXIT_DONE;
}

/* Runs one query per call, and adds up the workers' figures. */
static int run_single(eval_threads *threads, eval_pass *pass) {
    size_t ef = threads->setting.ef, k = threads->task->k;
    int status = make_searchers(threads, ef > k ? ef : k);
    if (status == EXIT_DONE) status = run_workers(threads);
    if (status != EXIT_DONE) return status;
    pass->began = INT64_MAX;
    for (size_t i = 0; i < threads->task->threads; i++) {
        const worker *worker = &threads->workers[i];
        pass->asked += worker->asked;
        search_totals_add(&pass->counts, &worker->counts);
        if (worker->began < pass->began) pass->began = worker->began;
        if (worker->ended > pass->ended) pass->ended = worker->ended;
    }
    return EXIT_DONE;
}

int eval_threads_pass(eval_threads *threads, eval_setting setting, eval_gate *gate, float *latencies, eval_pass *pass) {
    threads->setting = setting;
    threads->gate = gate;
    threads->latencies = latencies;
    atomic_store(&threads->next, 0);
    atomic_store(&threads->failed, 0);
    *pass = (eval_pass){0};
    int status = latencies ? run_single(threads, pass) : run_batch(threads, pass);
    if (status != EXIT_DONE) return status;
    pass->recall = recall_of(threads);
    return EXIT_DONE;
}
