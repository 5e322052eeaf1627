#include "cli/common/json_out.h"
#include "cli/common/report.h"
#include "cli/files/truth.h"
#include "cli/index/description.h"
#include "cli/index/sampled_check.h"
#include "cli/search/eval_state.h"

/* Examines codes if no setting reaches this recall. */
#define LOW_RECALL 0.95

size_t most_procs(const eval_options *options) {
    size_t most = 0;
    for (size_t i = 0; i < options->procs.count; i++)
        if (options->procs.values[i] > most) most = options->procs.values[i];
    return most;
}

/* Returns whether the point's setting does not come from tuning. */
static int is_own(const eval_state *state, const eval_point *point) {
    return compare_settings(point->setting, own_setting(state, point->setting.ef)) == 0;
}

static void print_json(const eval_state *state) {
    const eval_options *options = state->options;
    json json;
    json_begin(&json, stdout);
    json_text(&json, "index", state->index_path);
    json_index(&json, &state->stats);
    json_text(&json, "place", sl_place_name(state->task.place));
    json_count(&json, "k", options->k);
    if (state->task.filter) {
        json_text(&json, "filter", options->filter.path);
        json_count(&json, "allowed", state->allowed);
    }
    json_count(&json, "queries", state->task.nq);
    json_count(&json, "threads", options->threads);
    json_count(&json, "procs", most_procs(options));
    json_count(&json, "repeat", options->repeat);
    json_open_array(&json, "points");
    for (size_t i = 0; i < state->count; i++) {
        json_open_object(&json, NULL);
        eval_json_point(&json, &state->task, &state->points[i]);
        json_close_object(&json);
    }
    json_close_array(&json);
    if (options->recall.count) json_open_array(&json, "at");
    for (size_t i = 0; i < options->recall.count; i++) {
        const eval_target *target = &state->targets[i];
        json_open_object(&json, NULL);
        json_real(&json, "target", target->recall);
        json_flag(&json, "reached", target->reached);
        json_flag(&json, "tuned", target->tuned);
        eval_json_point(&json, &state->task, &state->points[target->point]);
        json_close_object(&json);
    }
    if (options->recall.count) json_close_array(&json);
    if (options->numa.policy) json_numa(&json, &state->numa);
    eval_json_memory(&json, state->memory, state->memory_count);
    json_end(&json);
}

/* "1, 2 processes" */
static void print_procs(const count_list *procs) {
    for (size_t i = 0; i < procs->count; i++)
        printf("%s%zu", i ? ", " : "", procs->values[i]);
    printf(" process%s", procs->count == 1 && procs->values[0] == 1 ? "" : "es");
}

/* Prints the tuned settings. The rows below show an ef, which a scan does not use. On a processor that cannot scan,
 * searches walk with that ef. */
static void print_tuned_heading(double recall, const eval_setting *setting) {
    printf("\nas tuned for recall %.4g, re-ranking %zu", recall, setting->rerank);
    if (setting->probes) printf("; this batch scans %zu partitions", setting->probes);
    if (setting->probes_one) printf("; single queries scan %zu partitions", setting->probes_one);
    if (setting->groups && (setting->probes || setting->probes_one))
        printf(" of the %zu nearest groups", setting->groups);
    putchar('\n');
}

static void print_text(const eval_state *state) {
    const eval_options *options = state->options;
    printf("%s: ", state->index_path);
    print_index(&state->stats);
    printf("%zu queries, ", state->task.nq);
    print_procs(&options->procs);
    printf(" of %zu thread%s, index in %s, tier %s\n", options->threads, options->threads == 1 ? "" : "s",
           state->task.place == SL_PLACE_DRAM ? "memory" : "its mapped file", state->stats.isa);
    if (state->task.filter)
        printf("filter%s%s: %zu of %zu vectors are allowed\n", options->filter.path ? " " : "",
               options->filter.path ? options->filter.path : "", state->allowed, state->stats.n);
    putchar('\n');
    eval_print_heading(&state->task);
    for (size_t i = 0; i < state->count; i++)
        if (is_own(state, &state->points[i])) eval_print_point(&state->task, &state->points[i]);
    for (size_t i = 0; i < options->recall.count; i++) {
        const eval_target *target = &state->targets[i];
        if (target->tuned)
            print_tuned_heading(target->recall, &state->points[target->point].setting);
        else
            printf("\n%s %.4g%s\n", target->reached ? "smallest ef for recall" : "recall", target->recall,
                   target->reached ? "" : " is not reached; the best is");
        eval_print_point(&state->task, &state->points[target->point]);
    }
    eval_print_groups(&state->task, state->points, state->count);
    if (options->numa.policy) {
        putchar('\n');
        print_numa(&state->numa);
    }
    eval_print_memory(state->memory, state->memory_count);
}

/* Warns of codes that lose neighbours. Otherwise warns of a truth that has the index's ids but belongs to other
 * vectors. */
static void warn_of_truth(const eval_state *state) {
    double best = 0;
    for (size_t i = 0; i < state->count; i++)
        if (state->points[i].recall > best) best = state->points[i].recall;
    sl_resolution resolution;
    if (best >= LOW_RECALL) return;
    if (measure_resolution(state->index_path, state->index, 0, &resolution) == EXIT_DONE &&
        warn_of_resolution(state->index_path, &state->stats, resolution.unresolved, resolution.sampled))
        return;
    if (!truth_is_strange(best, state->task.wanted, state->task.filter ? state->allowed : state->stats.n)) return;
    report_warning("%s: recall is %.4f at most, which is chance: its ids are not those of %s for these queries and "
                   "this metric; of an index with ids of its own make the truth with 'shortlist truth --ids'",
                   state->truth_path, best, state->index_path);
}

int eval_draw(const eval_state *state) {
    if (!state->options->plot) return EXIT_DONE;
    char title[256];
    snprintf(title, sizeof title, "%zu vectors of %zu, %s, codes %s%s, refine %s, m %zu; %zu x %zu threads",
             state->stats.n, state->stats.dim, sl_metric_name(state->stats.metric), sl_codes_name(state->stats.codes),
             text_of_clip(&state->stats).text, sl_refine_name(state->stats.refine), state->stats.m,
             most_procs(state->options), state->options->threads);
    return eval_plot(state->options->plot, title, &state->task, state->points, state->count);
}

void eval_print_results(const eval_state *state) {
    if (state->options->json)
        print_json(state);
    else
        print_text(state);
    warn_of_truth(state);
}
