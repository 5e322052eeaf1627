/* Measuring searches: a pass asks every query once, one query a call or all of them in one call, on threads or on
 * processes of threads. */
#ifndef CLI_EVAL_H
#define CLI_EVAL_H

#include "cli/numa.h"
#include "cli/system.h"

#include <shortlist.h>

#include <stdatomic.h>

/* What is measured; the same for every pass. */
typedef struct eval_task {
    const char *index_path, *queries_path;
    sl_place place;
    numa_choice numa;
    int prefault;
    sl_tier tier;
    const void *queries; /* nq dense rows */
    sl_dtype dtype;
    size_t nq, row; /* row: bytes of one query */
    size_t k;
    const uint64_t *truth; /* (nq, k): each row the ids of the true k nearest, in rising order */
    size_t threads;        /* a process */
    const size_t *procs;   /* counts of processes to measure side by side */
    size_t groups;         /* entries of procs; one entry of 1: this process does it all */
    cpu_list cpus;         /* to pin threads to, in turn; none: they run where the system puts them */
} eval_task;

/* What the queries of a pass are asked with. */
typedef struct eval_setting {
    size_t ef, rerank;
    double stop;       /* as of sl_search_params; 0: by ef alone */
    size_t probes;     /* of a batch */
    size_t probes_one; /* of one query a call */
    size_t groups;     /* among whose partitions these are chosen; 0: among all */
} eval_setting;

/* What is told of a group of processes, or of this one. */
enum {
    EVAL_QPS,       /* queries a second, one query a call, of all threads and processes together */
    EVAL_BATCH_QPS, /* the same with all queries in one call of each process; NAN where it was not measured */
    EVAL_P50,       /* time of one query a call, in microseconds */
    EVAL_P99,
    EVAL_P999,
    EVAL_FIGURES
};

/* By how much one group's rate exceeds that of the first, round by round: the median, the least and the most. */
typedef struct eval_ratio {
    double median, low, high;
} eval_ratio;

typedef struct eval_group {
    size_t procs;
    double figures[EVAL_FIGURES];
    double *each; /* of EVAL_QPS, each process's part */
    eval_ratio ratio, batch_ratio;
} eval_group;

typedef struct eval_point {
    eval_setting setting;
    double recall;       /* |returned and among the true k| / k, mean over the queries */
    double batch_recall; /* the same of the batch call */
    double evaluations;  /* distances computed a query, mean, one query a call */
    eval_group *groups;  /* task->groups entries, to be freed; NULL before the first measurement */
} eval_point;

/* The point's figures: those of the last group. */
const double *eval_figures(const eval_task *task, const eval_point *point);

/* One pass by one process. */
typedef struct eval_pass {
    double recall, evaluations;
    size_t asked;         /* queries answered while no process had come to its end */
    int64_t began, ended; /* of these, now_ns() */
} eval_pass;

/* Where the processes of a pass meet; in memory they share. */
typedef struct eval_gate {
    atomic_size_t arrived;
    atomic_int finished; /* one of them has no more queries */
    size_t procs;
} eval_gate;

/* A pass over the task's queries in this process. */
typedef struct eval_threads eval_threads;

/* `first_thread` is the number of the first of them, for pinning. Returns an exit status; *out is NULL on failure. */
int eval_threads_create(const eval_task *task, const sl_index *index, size_t first_thread, eval_threads **out);
void eval_threads_free(eval_threads *threads);

/* One query a call: begins once all processes have come to the gate. latencies, in microseconds, has one entry a query.
 * Where `latencies` is NULL, all queries in one call. */
int eval_threads_pass(eval_threads *threads, eval_setting setting, eval_gate *gate, float *latencies, eval_pass *pass);

/* Processes, each with its own opening of the index, its own threads, and every query of the task. */
typedef struct eval_procs eval_procs;

/* Forks as many as the largest group has; they are ready when it returns. `gate`, and nq `latencies` a process, are
 * memory they share with this process. */
int eval_procs_create(const eval_task *task, eval_gate *gate, float *latencies, eval_procs **out);
void eval_procs_free(eval_procs *procs);

/* One pass by the first `count` of them, one query a call or `batch`; passes has an entry for each. */
int eval_procs_pass(eval_procs *procs, size_t count, eval_setting setting, int batch, eval_pass *passes);

/* Where the first process's index lies, of a task with a policy. */
const sl_index_numa *eval_procs_numa(const eval_procs *procs);

/* Leaves the first `count` processes and ends the others. */
void eval_procs_keep(eval_procs *procs, size_t count);
pid_t eval_procs_id(const eval_procs *procs, size_t number);

/* Either of the two. */
typedef struct eval_runner eval_runner;

/* `index` is used where the task asks for this process alone, and may be NULL otherwise. */
int eval_runner_create(const eval_task *task, const sl_index *index, eval_runner **out);
void eval_runner_free(eval_runner *runner);

/* Where layer 0 lies, of `index`, or as the first process has it. Returns an exit status. */
int eval_runner_numa(const eval_runner *runner, const sl_index *index, sl_index_numa *out);

/* Medians of `repeat` rounds, in each of which every group has its turn, one query a call and in batches. repeat 0: one
 * round without batches. The point, zeroed before its first measurement, is measured anew; unchanged on failure. */
int eval_measure(eval_runner *runner, eval_setting setting, size_t repeat, eval_point *point);

/* The memory of a number of processes that have searched: their proportional shares, in which a page that several of
 * them hold counts for each in part. */
typedef struct eval_memory {
    size_t procs;
    int known;            /* the system tells */
    uint64_t pss;         /* of all together */
    uint64_t least, most; /* of one of them */
    uint64_t huge;        /* what one of them maps by huge pages, at most */
} eval_memory;

/* Ends the measurement: from the largest group down to one process, what each number of them holds while no others
 * are there. `out` has room for task->groups + 1; returns how many were filled, in rising order. */
size_t eval_runner_memory(eval_runner *runner, eval_memory *out);

/* Printing. */
void eval_json_point(json *json, const eval_task *task, const eval_point *point);
void eval_json_memory(json *json, const eval_memory *memory, size_t count);
void eval_print_heading(size_t k);
void eval_print_point(const eval_task *task, const eval_point *point);
/* A table of the points' groups, where there are several. */
void eval_print_groups(const eval_task *task, const eval_point *points, size_t count);
void eval_print_memory(const eval_memory *memory, size_t count);

/* Draws queries a second, one query a call, over recall as an SVG file; points in rising order of ef. */
int eval_plot(const char *path, const char *title, const eval_task *task, const eval_point *points, size_t count);

#endif
