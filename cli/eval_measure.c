#include "cli/eval.h"

#include "cli/percentiles.h"
#include "cli/report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct eval_runner {
    const eval_task *task;
    eval_threads *threads;
    eval_procs *procs;
    float *latencies; /* shared with the processes */
    size_t count, bytes;
};

void eval_runner_free(eval_runner *runner) {
    if (!runner) return;
    eval_threads_free(runner->threads);
    eval_procs_free(runner->procs);
    if (runner->latencies) munmap(runner->latencies, runner->bytes);
    free(runner);
}

int eval_runner_create(const eval_task *task, const sl_index *index, eval_runner **out) {
    *out = NULL;
    eval_runner *runner = allocate(1, sizeof *runner);
    if (!runner) return EXIT_FAILED;
    runner->task = task;
    runner->count = task->nq * task->procs;
    runner->bytes = runner->count * sizeof *runner->latencies;
    void *shared = mmap(NULL, runner->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int status = EXIT_DONE;
    if (shared == MAP_FAILED)
        status = report_failure("cannot hold the times of %zu queries: %s", runner->count, strerror(errno));
    else
        runner->latencies = shared;
    if (status == EXIT_DONE && task->procs == 1)
        status = eval_threads_create(task, index, 0, &runner->threads);
    else if (status == EXIT_DONE)
        status = eval_procs_create(task, runner->latencies, &runner->procs);
    if (status == EXIT_DONE)
        *out = runner;
    else
        eval_runner_free(runner);
    return status;
}

static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, size_t n) {
    qsort(values, n, sizeof *values, compare_doubles);
    return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

static int measure_once(eval_runner *runner, size_t ef, eval_point *point) {
    int status = runner->procs ? eval_procs_pass(runner->procs, ef, point)
                               : eval_threads_pass(runner->threads, ef, 0, runner->latencies, point);
    if (status != EXIT_DONE) return status;
    percentiles(runner->latencies, runner->count, &point->p50_us, &point->p99_us);
    return EXIT_DONE;
}

int eval_measure(eval_runner *runner, size_t ef, size_t repeat, eval_point *point) {
    double *figures = allocate(repeat, 3 * sizeof *figures);
    if (!figures) return EXIT_FAILED;
    int status = EXIT_DONE;
    for (size_t i = 0; status == EXIT_DONE && i < repeat; i++) {
        status = measure_once(runner, ef, point);
        figures[i] = point->qps;
        figures[repeat + i] = point->p50_us;
        figures[2 * repeat + i] = point->p99_us;
    }
    if (status == EXIT_DONE) {
        point->qps = median(figures, repeat);
        point->p50_us = median(figures + repeat, repeat);
        point->p99_us = median(figures + 2 * repeat, repeat);
    }
    free(figures);
    return status;
}
