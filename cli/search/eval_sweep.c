#include "cli/common/report.h"
#include "cli/common/system.h"
#include "cli/search/eval_state.h"

#include <stdlib.h>
#include <string.h>

static size_t largest_ef(const eval_state *state) {
    return state->stats.n < SL_MAX_EF ? state->stats.n : SL_MAX_EF;
}

int compare_settings(eval_setting a, eval_setting b) {
    int by_ef = (a.ef > b.ef) - (a.ef < b.ef), by_rerank = (a.rerank > b.rerank) - (a.rerank < b.rerank);
    int by_stop = (a.stop > b.stop) - (a.stop < b.stop);
    int by_probes = (a.probes > b.probes) - (a.probes < b.probes);
    int by_one = (a.probes_one > b.probes_one) - (a.probes_one < b.probes_one);
    int by_groups = (a.groups > b.groups) - (a.groups < b.groups);
    int by_recall = (a.recall > b.recall) - (a.recall < b.recall);
    return by_ef       ? by_ef
           : by_rerank ? by_rerank
           : by_stop   ? by_stop
           : by_probes ? by_probes
           : by_one    ? by_one
           : by_groups ? by_groups
                       : by_recall;
}

static int measure(eval_state *state, eval_setting setting, size_t repeat, eval_point *point) {
    if (state->measure) return state->measure(state->measure_ctx, setting, repeat, point);
    return eval_measure(state->runner, setting, repeat, point);
}

/* The point of this setting, measured if it is new. `repeat`: see eval_measure. NULL: failure, reported. */
static eval_point *point_of(eval_state *state, eval_setting setting, size_t repeat) {
    size_t at = 0;
    while (at < state->count && compare_settings(state->points[at].setting, setting) < 0)
        at++;
    if (at < state->count && compare_settings(state->points[at].setting, setting) == 0) return &state->points[at];
    if (state->count == state->room) {
        size_t room = state->room ? 2 * state->room : 64;
        eval_point *larger = allocate(room, sizeof *larger);
        if (!larger) return NULL;
        if (state->count) memcpy(larger, state->points, state->count * sizeof *larger);
        free(state->points);
        state->points = larger;
        state->room = room;
    }
    eval_point point = {0};
    if (measure(state, setting, repeat, &point) != EXIT_DONE) return NULL;
    memmove(state->points + at + 1, state->points + at, (state->count - at) * sizeof *state->points);
    state->points[at] = point;
    state->count++;
    return &state->points[at];
}

/* The smallest ef with the best recall so far. Tuned settings are measured only after all of these. */
static size_t best_ef(const eval_state *state) {
    const eval_point *best = NULL;
    for (size_t i = 0; i < state->count; i++) {
        const eval_point *point = &state->points[i];
        if (!best || point->recall > best->recall) best = point;
    }
    return best ? best->setting.ef : state->options->k;
}

/* Doubles ef until it reaches the recall: *below fails (or is k - 1), *ef reaches it. *ef is 0 if the recall is out of
 * reach: the largest ef fails, or two doublings found nothing more. */
static int bracket_ef(eval_state *state, double recall, size_t *below, size_t *ef) {
    size_t largest = largest_ef(state), stalls = 0;
    double last = -1;
    *below = state->options->k - 1;
    for (*ef = state->options->k;; *ef = *ef < largest / 2 ? 2 * *ef : largest) {
        const eval_point *point = point_of(state, own_setting(state, *ef), 0);
        if (!point) return EXIT_FAILED;
        if (point->recall >= recall) return EXIT_DONE;
        stalls = point->recall > last ? 0 : stalls + 1;
        last = point->recall;
        *below = *ef;
        if (*ef == largest || stalls == 2) break;
    }
    *ef = 0;
    return EXIT_DONE;
}

/* Finds the smallest ef that reaches the recall, by bisection. */
static int find_ef(eval_state *state, double recall, size_t *out) {
    size_t below, ef;
    int status = bracket_ef(state, recall, &below, &ef);
    if (status == EXIT_DONE && ef == 0)
        ef = best_ef(state);
    else
        while (status == EXIT_DONE && ef - below > 1) {
            size_t middle = below + (ef - below) / 2;
            const eval_point *point = point_of(state, own_setting(state, middle), 0);
            if (!point)
                status = EXIT_FAILED;
            else if (point->recall >= recall)
                ef = middle;
            else
                below = middle;
        }
    *out = ef;
    return status;
}

/* Takes the index's stored settings for the recall. Without them, finds the smallest ef that reaches it on these
 * queries. */
static int find_setting(eval_state *state, double recall, eval_setting *out, int *is_tuned) {
    sl_tuned tuned = {.struct_size = sizeof tuned};
    *is_tuned = state->index && !state->options->rerank &&
                sl_index_find_tuned(state->index, state->options->k, recall, &tuned) == SL_OK &&
                tuned.ef <= largest_ef(state);
    *out = *is_tuned ? (eval_setting){.ef = tuned.ef,
                                      .rerank = tuned.rerank,
                                      .stop = tuned.stop,
                                      .probes = tuned.probes,
                                      .probes_one = tuned.probes_one,
                                      .groups = tuned.groups}
                     : own_setting(state, 0);
    /* Not all stored settings fit a filter, so the library chooses among them. */
    if (*is_tuned && state->task.filter) *out = (eval_setting){.ef = tuned.ef_alone, .recall = recall};
    /* A search with the recall does the same. */
    if (state->task.nq / thread_count(state->task.threads) < SL_SCAN_LEAST) out->probes = out->probes_one;
    return *is_tuned ? EXIT_DONE : find_ef(state, recall, &out->ef);
}

/* Finds the settings by single passes, then measures each in full. */
static int measure_targets(eval_state *state) {
    const fraction_list *recall = &state->options->recall;
    eval_setting found[OPTION_LIST_MAX];
    int status = EXIT_DONE;
    for (size_t i = 0; status == EXIT_DONE && i < recall->count; i++) {
        status = find_setting(state, recall->values[i], &found[i], &state->targets[i].tuned);
        progress_step(&state->progress, i + 1, recall->count + 1);
    }
    for (size_t i = 0; status == EXIT_DONE && i < recall->count; i++) {
        eval_point *point = point_of(state, found[i], 0);
        status = point ? measure(state, found[i], state->options->repeat, point) : EXIT_FAILED;
        if (status != EXIT_DONE) break;
        state->targets[i].recall = recall->values[i];
        state->targets[i].reached = point->recall >= recall->values[i];
    }
    /* Places are final only when all points exist. */
    for (size_t i = 0; status == EXIT_DONE && i < recall->count; i++) {
        const eval_point *point = point_of(state, found[i], 0);
        if (!point) return EXIT_FAILED;
        state->targets[i].point = (size_t)(point - state->points);
    }
    return status;
}

static int measure_list(eval_state *state) {
    static const size_t usual[] = {10, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024};
    const count_list *asked = &state->options->ef;
    const size_t *values = asked->count ? asked->values : usual;
    size_t count = asked->count ? asked->count : sizeof usual / sizeof *usual;
    size_t k = state->options->k, largest = largest_ef(state);
    for (size_t i = 0; i < count; i++) {
        /* A search keeps at least k candidates. */
        size_t ef = values[i] < k ? k : values[i];
        if (ef > largest) ef = largest;
        if (!point_of(state, own_setting(state, ef), state->options->repeat)) return EXIT_FAILED;
        progress_step(&state->progress, i + 1, count);
    }
    return EXIT_DONE;
}

int eval_sweep(eval_state *state) {
    const eval_options *options = state->options;
    eval_point warm = {0};
    int status = state->measure ? EXIT_DONE : eval_runner_create(&state->task, state->index, &state->runner);
    progress_begin(&state->progress, "measuring", "settings",
                   options->recall.count ? options->recall.count + 1 : options->ef.count, options->progress);
    /* Brings the index and the code into the caches. */
    if (status == EXIT_DONE) status = measure(state, own_setting(state, options->k), 1, &warm);
    free(warm.groups);
    if (status == EXIT_DONE) status = options->recall.count ? measure_targets(state) : measure_list(state);
    if (status == EXIT_DONE && options->numa.policy)
        status = eval_runner_numa(state->runner, state->index, &state->numa);
    if (status == EXIT_DONE && state->runner) state->memory_count = eval_runner_memory(state->runner, state->memory);
    progress_end(&state->progress, status == EXIT_DONE);
    return status;
}
