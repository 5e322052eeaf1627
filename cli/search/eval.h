/* Measures searches. A pass runs every query once, on threads or on processes with threads: one query per call, or all
 * in one call. */
#ifndef CLI_SEARCH_EVAL_H
#define CLI_SEARCH_EVAL_H

#include "cli/common/json_out.h"
#include "cli/common/numa.h"
#include "cli/common/options.h"
#include "cli/common/system.h"
#include "cli/files/ids.h"

#include <shortlist.h>

#include <stdatomic.h>

/* The task of a measurement, the same for every pass. */
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
    const filter_choice *filter; /* vectors that may be found; NULL: all */
    const uint64_t *truth;       /* (nq, wanted): ids of the true nearest, each row in rising order */
    size_t wanted;               /* k, or fewer if the filter allows fewer */
    size_t max_visits;           /* see sl_search_params */
    size_t threads;              /* of each process */
    const size_t *procs;         /* numbers of processes to measure side by side */
    size_t groups;               /* entries of procs; one entry of 1: this process measures alone */
    cpu_list cpus;               /* CPUs to pin threads to, in turn; none: the system places the threads */
} eval_task;

/* The search settings of a pass. */
typedef struct eval_setting {
    size_t ef, rerank;
    double stop;       /* see sl_search_params; 0: by ef alone */
    size_t probes;     /* for a batch */
    size_t probes_one; /* with one query per call */
    size_t groups;     /* groups of partitions to choose the probes from; 0: all partitions */
    double recall;     /* above 0: the library takes stored settings for this recall, as a search with a filter does */
} eval_setting;

/* Figures of a group of processes, or of this one. */
enum {
    EVAL_QPS,       /* queries per second of all threads and processes together, one query per call */
    EVAL_BATCH_QPS, /* the same with all queries in one call of each process; NAN: not measured */
    EVAL_P50,       /* microseconds of a call with one query */
    EVAL_P99,
    EVAL_P999,
    EVAL_FIGURES
};

/* A group's rate divided by the first group's, per round: median, least and most. */
typedef struct eval_ratio {
    double median, low, high;
} eval_ratio;

typedef struct eval_group {
    size_t procs;
    double figures[EVAL_FIGURES];
    double *each; /* per process, its part of EVAL_QPS */
    eval_ratio ratio, batch_ratio;
} eval_group;

typedef struct eval_point {
    eval_setting setting;
    double recall;          /* share of the true k among the results, mean over the queries */
    double batch_recall;    /* the same for the batch call */
    sl_search_stats counts; /* of all queries, one query per call */
    eval_group *groups;     /* task->groups entries, to be freed; NULL before the first measurement */
} eval_point;

/* Allocates the task's groups and their arrays in one block. NULL: no memory, reported. */
eval_group *eval_groups_create(const eval_task *task);

/* The point's figures, which are the last group's. */
const double *eval_figures(const eval_task *task, const eval_point *point);

/* A pass by one process. */
typedef struct eval_pass {
    double recall;
    sl_search_stats counts;
    size_t asked;         /* queries answered before the first process finished */
    int64_t began, ended; /* times of these queries, from now_ns() */
} eval_pass;

/* A place in which a pass's processes wait for each other, in shared memory. */
typedef struct eval_gate {
    atomic_size_t arrived;
    atomic_int finished; /* one process has no more queries */
    size_t procs;
} eval_gate;

/* A pass over the task's queries in this process. */
typedef struct eval_threads eval_threads;

/* Makes the threads, and the task's filter. `first_thread`: number of the first thread, for pinning. Returns an exit
 * status. *out is NULL on failure. */
int eval_threads_create(const eval_task *task, sl_index *index, size_t first_thread, eval_threads **out);
void eval_threads_free(eval_threads *threads);

/* Runs a pass with one query per call, after all processes reached the gate. `latencies`: microseconds, one per query.
 * NULL: all queries in one call. */
int eval_threads_pass(eval_threads *threads, eval_setting setting, eval_gate *gate, float *latencies, eval_pass *pass);

/* The processes of a measurement. Each opens the index for itself, has its own threads, and runs every query of the
 * task. */
typedef struct eval_procs eval_procs;

/* Forks the processes of the largest group. All are ready when the call returns. They share the memory of `gate` and of
 * `latencies` (nq per process) with this process. */
int eval_procs_create(const eval_task *task, eval_gate *gate, float *latencies, eval_procs **out);
void eval_procs_free(eval_procs *procs);

/* Runs a pass on the first `count` processes, one query per call or as a `batch`. `passes` has one entry per
 * process. */
int eval_procs_pass(eval_procs *procs, size_t count, eval_setting setting, int batch, eval_pass *passes);

/* The memory nodes of the first process's index, for a task with a policy. */
const sl_index_numa *eval_procs_numa(const eval_procs *procs);

/* Ends all but the first `count` processes. */
void eval_procs_keep(eval_procs *procs, size_t count);
pid_t eval_procs_id(const eval_procs *procs, size_t number);

/* Runs passes by threads or by processes. */
typedef struct eval_runner eval_runner;

/* Makes a runner. `index`: used if the task asks for this process alone; may be NULL otherwise. */
int eval_runner_create(const eval_task *task, sl_index *index, eval_runner **out);
void eval_runner_free(eval_runner *runner);

/* Finds where layer 0 lies: of `index`, or of the first process. Returns an exit status. */
int eval_runner_numa(const eval_runner *runner, const sl_index *index, sl_index_numa *out);

/* Measures a point again: medians of `repeat` rounds. In a round, every group has its turn, one query per call and in
 * batches. repeat 0: one round without batches. A new point is zeroed. On failure the point does not change. */
int eval_measure(eval_runner *runner, eval_setting setting, size_t repeat, eval_point *point);

/* Memory of several processes after searches, as proportional shares: a page of n processes counts 1 / n for each. */
typedef struct eval_memory {
    size_t procs;
    int known;            /* whether the system knows */
    uint64_t pss;         /* of all processes together */
    uint64_t least, most; /* of one process */
    uint64_t huge;        /* most bytes that one process maps by huge pages */
} eval_memory;

/* Ends the measurement. Reads the memory of each number of processes while only these run, from the largest number down
 * to one. `out` has task->groups + 1 entries. Returns how many it filled, in rising order. */
size_t eval_runner_memory(eval_runner *runner, eval_memory *out);

/* Printing. */
void eval_json_point(json *json, const eval_task *task, const eval_point *point);
void eval_json_memory(json *json, const eval_memory *memory, size_t count);
/* With a filter, each point also prints its strategies. */
void eval_print_heading(const eval_task *task);
void eval_print_point(const eval_task *task, const eval_point *point);
/* Prints a table of the points' groups, if there are several. */
void eval_print_groups(const eval_task *task, const eval_point *points, size_t count);
void eval_print_memory(const eval_memory *memory, size_t count);

/* Draws queries per second (one query per call) over recall as an SVG file. Points come in rising order of ef. */
int eval_plot(const char *path, const char *title, const eval_task *task, const eval_point *points, size_t count);

#endif
