/* The state of `eval`, which its files share. cmd_eval.c reads options and inputs, eval_sweep.c chooses what to
 * measure, eval_results.c prints the results. */
#ifndef CLI_SEARCH_EVAL_STATE_H
#define CLI_SEARCH_EVAL_STATE_H

#include "cli/common/options.h"
#include "cli/common/progress.h"
#include "cli/files/vectors.h"
#include "cli/search/eval.h"

typedef struct eval_options {
    count_list ef, pin, procs;
    fraction_list recall;
    const char *plot;
    filter_choice filter;
    size_t k, rerank, max_visits, threads, repeat;
    int place; /* -1: DRAM for one process, the mapped file for several */
    numa_choice numa;
    int prefault, tier;
    int progress, json;
} eval_options;

/* The result of --recall for one target. */
typedef struct eval_target {
    double recall;
    size_t point; /* number in points */
    int reached;
    int tuned; /* the index holds the settings for this recall */
} eval_target;

typedef struct eval_state {
    const eval_options *options;
    const char *index_path, *queries_path, *truth_path;
    sl_index *index;
    sl_index_stats stats;
    vectors *queries;
    void *rows;
    uint64_t *truth;
    size_t allowed; /* vectors that the filter allows */
    eval_task task;
    eval_runner *runner;
    /* Measures a setting as eval_measure does; NULL: the runner does. shortlist-mpi measures on all ranks. */
    int (*measure)(void *ctx, eval_setting setting, size_t repeat, eval_point *point);
    void *measure_ctx;
    progress progress;
    eval_point *points; /* in rising order of ef */
    size_t count, room;
    eval_target targets[OPTION_LIST_MAX];
    sl_index_numa numa; /* with --numa */
    eval_memory memory[OPTION_LIST_MAX + 1];
    size_t memory_count;
} eval_state;

/* The setting for an ef that this command found, or that the user gave. */
static inline eval_setting own_setting(const eval_state *state, size_t ef) {
    return (eval_setting){.ef = ef, .rerank = state->options->rerank};
}

/* Orders two settings: below 0, 0 or above 0. */
int compare_settings(eval_setting a, eval_setting b);

/* The largest number of --procs. */
size_t most_procs(const eval_options *options);

/* Measures the points that --ef or --recall asks for, and fills the state's points, targets and memory. Returns an
 * exit status. */
int eval_sweep(eval_state *state);

/* Draws --plot. Returns an exit status. */
int eval_draw(const eval_state *state);
/* Prints the results on stdout, as text or as JSON. Warns on stderr if the truth is no better than chance. */
void eval_print_results(const eval_state *state);

#endif
