#include "cli/common/percentiles.h"
#include "cli/common/report.h"
#include "cli/common/system.h"
#include "cli/search/eval.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Memory shared with the processes. They read the gate before every query, so no other data shares its cache line. */
typedef struct shared {
    eval_gate gate;
    _Alignas(64) float latencies[];
} shared;

struct eval_runner {
    const eval_task *task;
    eval_threads *threads;
    eval_procs *procs;
    shared *shared;
    size_t bytes;
    size_t most; /* processes of the largest group */
    eval_pass *passes;
};

void eval_runner_free(eval_runner *runner) {
    if (!runner) return;
    eval_threads_free(runner->threads);
    eval_procs_free(runner->procs);
    if (runner->shared) munmap(runner->shared, runner->bytes);
    free(runner->passes);
    free(runner);
}

int eval_runner_numa(const eval_runner *runner, const sl_index *index, sl_index_numa *out) {
    if (!runner->procs) return numa_of_index(index, runner->task->index_path, out);
    *out = *eval_procs_numa(runner->procs);
    return EXIT_DONE;
}

static int map_shared(eval_runner *runner) {
    size_t queries = runner->task->nq * runner->most;
    runner->bytes = sizeof *runner->shared + queries * sizeof *runner->shared->latencies;
    void *block = mmap(NULL, runner->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (block == MAP_FAILED)
        return report_failure("cannot hold the times of %zu queries: %s", queries, strerror(errno));
    runner->shared = block;
    return EXIT_DONE;
}

int eval_runner_create(const eval_task *task, sl_index *index, eval_runner **out) {
    *out = NULL;
    eval_runner *runner = allocate(1, sizeof *runner);
    if (!runner) return EXIT_FAILED;
    runner->task = task;
    for (size_t i = 0; i < task->groups; i++)
        if (task->procs[i] > runner->most) runner->most = task->procs[i];
    runner->passes = allocate(runner->most, sizeof *runner->passes);
    int status = runner->passes ? map_shared(runner) : EXIT_FAILED;
    if (status == EXIT_DONE && task->groups == 1 && runner->most == 1)
        status = eval_threads_create(task, index, 0, &runner->threads);
    else if (status == EXIT_DONE)
        status = eval_procs_create(task, &runner->shared->gate, runner->shared->latencies, &runner->procs);
    if (status == EXIT_DONE)
        *out = runner;
    else
        eval_runner_free(runner);
    return status;
}

/* ---------------------------------------------------------------------------------------------------------------
 * One group's turn
 * ------------------------------------------------------------------------------------------------------------- */

static int run_pass(eval_runner *runner, size_t procs, eval_setting setting, int batch) {
    eval_gate *gate = &runner->shared->gate;
    atomic_store(&gate->arrived, 0);
    atomic_store(&gate->finished, 0);
    gate->procs = procs;
    if (runner->procs) return eval_procs_pass(runner->procs, procs, setting, batch, runner->passes);
    return eval_threads_pass(runner->threads, setting, gate, batch ? NULL : runner->shared->latencies, runner->passes);
}

static double queries_per_second(size_t asked, int64_t began, int64_t ended) {
    return ended > began ? (double)asked * 1e9 / (double)(ended - began) : 0;
}

/* Queries a second from the first start to the last end. */
static double joint_rate(const eval_pass *passes, size_t count) {
    int64_t began = INT64_MAX, ended = 0;
    size_t asked = 0;
    for (size_t i = 0; i < count; i++) {
        asked += passes[i].asked;
        if (passes[i].began < began) began = passes[i].began;
        if (passes[i].ended > ended) ended = passes[i].ended;
    }
    return queries_per_second(asked, began, ended);
}

/* Writes one round's figures, then each process's rate: entry i at out[i * stride]. */
static int measure_group(eval_runner *runner, size_t procs, int batch, double *out, size_t stride, eval_point *point) {
    double figures[EVAL_FIGURES];
    int status = run_pass(runner, procs, point->setting, 0);
    if (status != EXIT_DONE) return status;
    /* Every process ran the same queries. */
    point->recall = runner->passes->recall;
    point->counts = runner->passes->counts;
    figures[EVAL_QPS] = joint_rate(runner->passes, procs);
    for (size_t i = 0; i < procs; i++) {
        const eval_pass *pass = &runner->passes[i];
        out[(EVAL_FIGURES + i) * stride] = queries_per_second(pass->asked, pass->began, pass->ended);
    }
    percentiles(runner->shared->latencies, runner->task->nq * procs, &figures[EVAL_P50], &figures[EVAL_P99],
                &figures[EVAL_P999]);
    figures[EVAL_BATCH_QPS] = NAN;
    point->batch_recall = NAN;
    if (batch) {
        status = run_pass(runner, procs, point->setting, 1);
        if (status != EXIT_DONE) return status;
        figures[EVAL_BATCH_QPS] = joint_rate(runner->passes, procs);
        point->batch_recall = runner->passes->recall;
    }
    for (size_t i = 0; i < EVAL_FIGURES; i++)
        out[i * stride] = figures[i];
    return EXIT_DONE;
}

/* ---------------------------------------------------------------------------------------------------------------
 * Rounds
 * ------------------------------------------------------------------------------------------------------------- */

/* Number of a group's first figure. A group has its figures, then each process's rate. */
static size_t figures_before(const eval_task *task, size_t group) {
    size_t before = 0;
    for (size_t i = 0; i < group; i++)
        before += EVAL_FIGURES + task->procs[i];
    return before;
}

/* All rounds of one figure, in order. */
static double *figure_rounds(const eval_task *task, double *samples, size_t rounds, size_t group, size_t number) {
    return samples + (figures_before(task, group) + number) * rounds;
}

/* Computes ratios within each round: its turns are close in time, so drift affects both alike. 0: the first group has
 * no rate. */
static eval_ratio ratio_of(const double *rate, const double *first, size_t rounds, double *scratch) {
    for (size_t i = 0; i < rounds; i++)
        scratch[i] = first[i] > 0 ? rate[i] / first[i] : 0;
    double middle = median(scratch, rounds);
    return (eval_ratio){middle, scratch[0], scratch[rounds - 1]};
}

eval_group *eval_groups_create(const eval_task *task) {
    size_t all = 0;
    for (size_t i = 0; i < task->groups; i++)
        all += task->procs[i];
    eval_group *groups = allocate(1, task->groups * sizeof *groups + all * sizeof *groups->each);
    if (!groups) return NULL;
    double *each = (double *)(void *)(groups + task->groups);
    for (size_t i = 0; i < task->groups; i++) {
        groups[i].procs = task->procs[i];
        groups[i].each = each;
        each += task->procs[i];
    }
    return groups;
}

/* Computes medians over the rounds. Sorts the samples. */
static void take_medians(const eval_task *task, double *samples, size_t rounds, double *scratch, eval_group *groups) {
    for (size_t g = 0; g < task->groups; g++) {
        static const size_t rates[] = {EVAL_QPS, EVAL_BATCH_QPS};
        eval_ratio *ratios[] = {&groups[g].ratio, &groups[g].batch_ratio};
        for (size_t i = 0; i < 2; i++)
            *ratios[i] = ratio_of(figure_rounds(task, samples, rounds, g, rates[i]),
                                  figure_rounds(task, samples, rounds, 0, rates[i]), rounds, scratch);
    }
    for (size_t g = 0; g < task->groups; g++) {
        for (size_t i = 0; i < EVAL_FIGURES; i++)
            groups[g].figures[i] = median(figure_rounds(task, samples, rounds, g, i), rounds);
        for (size_t i = 0; i < groups[g].procs; i++)
            groups[g].each[i] = median(figure_rounds(task, samples, rounds, g, EVAL_FIGURES + i), rounds);
    }
}

int eval_measure(eval_runner *runner, eval_setting setting, size_t repeat, eval_point *point) {
    const eval_task *task = runner->task;
    size_t rounds = repeat ? repeat : 1, groups = task->groups;
    eval_point measured = {.setting = setting, .groups = eval_groups_create(task)};
    double *samples = allocate(figures_before(task, groups), rounds * sizeof *samples);
    double *scratch = allocate(rounds, sizeof *scratch);
    int status = measured.groups && samples && scratch ? EXIT_DONE : EXIT_FAILED;
    /* Every other round runs in reverse order, so that no group always follows the same one. */
    for (size_t i = 0; status == EXIT_DONE && i < rounds * groups; i++) {
        size_t round = i / groups, g = round % 2 ? groups - 1 - i % groups : i % groups;
        status = measure_group(runner, task->procs[g], repeat > 0, figure_rounds(task, samples, rounds, g, 0) + round,
                               rounds, &measured);
    }
    if (status == EXIT_DONE) {
        take_medians(task, samples, rounds, scratch, measured.groups);
        free(point->groups);
        *point = measured;
    } else
        free(measured.groups);
    free(samples);
    free(scratch);
    return status;
}

const double *eval_figures(const eval_task *task, const eval_point *point) {
    return point->groups[task->groups - 1].figures;
}

/* ---------------------------------------------------------------------------------------------------------------
 * Memory
 * ------------------------------------------------------------------------------------------------------------- */

static eval_memory memory_of_group(const eval_runner *runner, size_t procs) {
    eval_memory memory = {.procs = procs, .known = 1, .least = UINT64_MAX};
    for (size_t i = 0; i < procs; i++) {
        memory_use use = memory_of(runner->procs ? eval_procs_id(runner->procs, i) : getpid());
        memory.known &= use.known;
        memory.pss += use.pss;
        if (use.huge > memory.huge) memory.huge = use.huge;
        if (use.pss < memory.least) memory.least = use.pss;
        if (use.pss > memory.most) memory.most = use.pss;
    }
    return memory;
}

/* The largest requested number of processes below `limit`. 1 always comes last. 0: no more. */
static size_t next_smaller(const eval_task *task, size_t limit) {
    size_t next = limit > 1;
    for (size_t i = 0; i < task->groups; i++)
        if (task->procs[i] < limit && task->procs[i] > next) next = task->procs[i];
    return next;
}

size_t eval_runner_memory(eval_runner *runner, eval_memory *out) {
    size_t count = 0;
    for (size_t procs = runner->most; procs; procs = next_smaller(runner->task, procs)) {
        if (runner->procs) eval_procs_keep(runner->procs, procs);
        /* The numbers fall, and each goes in front of the earlier ones. */
        memmove(out + 1, out, count++ * sizeof *out);
        out[0] = memory_of_group(runner, procs);
    }
    return count;
}
