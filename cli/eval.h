/* Measuring searches: one pass asks every query once, one query a call, on threads or on processes of threads. */
#ifndef CLI_EVAL_H
#define CLI_EVAL_H

#include "cli/system.h"

#include <shortlist.h>

/* What is measured; the same for every pass. */
typedef struct eval_task {
    const char *index_path, *queries_path;
    sl_place place;
    const void *queries; /* nq dense rows */
    sl_dtype dtype;
    size_t nq, row; /* row: bytes of one query */
    size_t k, rerank;
    size_t max_ef;
    const uint64_t *truth; /* (nq, k): each row the ids of the true k nearest, in rising order */
    size_t threads, procs;
    cpu_list cpus; /* to pin threads to, in turn; none: they run where the system puts them */
} eval_task;

typedef struct eval_point {
    size_t ef;
    double recall;         /* |returned and among the true k| / k, mean over the queries */
    double qps;            /* queries a second, of all threads and processes together */
    double p50_us, p99_us; /* time of one query */
    double evaluations;    /* distances computed a query, mean */
} eval_point;

/* A pass over the task's queries in this process. */
typedef struct eval_threads eval_threads;

/* `first_thread` is the number of the first of them, for pinning. Returns an exit status; *out is NULL on failure. */
int eval_threads_create(const eval_task *task, const sl_index *index, size_t first_thread, eval_threads **out);
void eval_threads_free(eval_threads *threads);

/* Starts at `start_ns` of now_ns(), 0 meaning at once; latencies, in microseconds, has one entry a query. Fills the
 * point but for its percentiles. */
int eval_threads_pass(eval_threads *threads, size_t ef, int64_t start_ns, float *latencies, eval_point *point);

/* Processes, each with its own opening of the index, its own threads, and every query of the task. */
typedef struct eval_procs eval_procs;

/* Forks; they are ready when it returns. `latencies` is memory they share with this process, nq entries each. */
int eval_procs_create(const eval_task *task, float *latencies, eval_procs **out);
void eval_procs_free(eval_procs *procs);

/* One pass by each of them, started together. */
int eval_procs_pass(eval_procs *procs, size_t ef, eval_point *point);

/* Either of the two. */
typedef struct eval_runner eval_runner;

/* `index` is used where the task asks for one process, and may be NULL otherwise. */
int eval_runner_create(const eval_task *task, const sl_index *index, eval_runner **out);
void eval_runner_free(eval_runner *runner);

/* Median of `repeat` passes. */
int eval_measure(eval_runner *runner, size_t ef, size_t repeat, eval_point *point);

/* Draws queries a second over recall as an SVG file; points in rising order of ef. */
int eval_plot(const char *path, const char *title, size_t k, const eval_point *points, size_t count);

#endif
