#include "cli/common/json_out.h"
#include "cli/common/size_text.h"
#include "cli/search/eval.h"
#include "cli/search/search_totals.h"

#include <math.h>
#include <stdio.h>

static const char *const figure_names[EVAL_FIGURES] = {"qps", "batch_qps", "p50_us", "p99_us", "p999_us"};

static void json_figures(json *json, const double *figures) {
    for (size_t i = 0; i < EVAL_FIGURES; i++)
        json_real(json, figure_names[i], figures[i]);
}

static void json_ratio(json *json, const char *name, const eval_ratio *ratio) {
    json_open_object(json, name);
    json_real(json, "median", ratio->median);
    json_real(json, "low", ratio->low);
    json_real(json, "high", ratio->high);
    json_close_object(json);
}

static void json_group(json *json, const eval_group *group, int compared) {
    json_open_object(json, NULL);
    json_count(json, "n", group->procs);
    json_figures(json, group->figures);
    json_open_array(json, "qps_each");
    for (size_t i = 0; i < group->procs; i++)
        json_real(json, NULL, group->each[i]);
    json_close_array(json);
    if (compared) json_ratio(json, "ratio", &group->ratio);
    if (compared) json_ratio(json, "batch_ratio", &group->batch_ratio);
    json_close_object(json);
}

/* Returns whether there are figures of more than one process. */
static int has_groups(const eval_task *task) {
    return task->groups > 1 || task->procs[0] > 1;
}

/* Distances computed per query. */
static double evaluations_of(const eval_task *task, const eval_point *point) {
    return (double)point->counts.evaluations / (double)task->nq;
}

void eval_json_point(json *json, const eval_task *task, const eval_point *point) {
    json_count(json, "ef", point->setting.ef);
    json_count(json, "rerank", point->setting.rerank);
    json_real(json, "stop", point->setting.stop);
    json_count(json, "probes", point->setting.probes);
    json_count(json, "probes_one", point->setting.probes_one);
    json_count(json, "groups", point->setting.groups);
    json_real(json, "recall", point->recall);
    json_real(json, "batch_recall", point->batch_recall);
    json_figures(json, eval_figures(task, point));
    json_real(json, "evaluations", evaluations_of(task, point));
    json_count(json, "results", point->counts.results);
    if (task->filter) json_strategies(json, &point->counts);
    if (task->max_visits) json_count(json, "cut", point->counts.cut);
    if (!has_groups(task)) return;
    json_open_array(json, "procs");
    for (size_t i = 0; i < task->groups; i++)
        json_group(json, &point->groups[i], task->groups > 1);
    json_close_array(json);
}

void eval_json_memory(json *json, const eval_memory *memory, size_t count) {
    json_open_array(json, "memory");
    for (size_t i = 0; i < count; i++) {
        if (!memory[i].known) continue;
        json_open_object(json, NULL);
        json_count(json, "n", memory[i].procs);
        json_count(json, "pss_bytes", memory[i].pss);
        json_count(json, "pss_least_bytes", memory[i].least);
        json_count(json, "pss_most_bytes", memory[i].most);
        json_count(json, "huge_bytes", memory[i].huge);
        json_close_object(json);
    }
    json_close_array(json);
}

void eval_print_heading(const eval_task *task) {
    char heading[32];
    snprintf(heading, sizeof heading, "recall@%zu", task->k);
    printf("%7s  %9s  %10s  %10s  %10s  %9s  %9s  %9s  %11s%s\n", "ef", heading, "queries/s", "in batch/s",
           "its recall", "p50 us", "p99 us", "p99.9 us", "evaluations", task->filter ? "  strategies" : "");
}

/* "-" stands for a figure that was not measured. */
static void print_rate(double rate) {
    if (isnan(rate))
        printf("  %10s", "-");
    else
        printf("  %10.0f", rate);
}

void eval_print_point(const eval_task *task, const eval_point *point) {
    const double *figures = eval_figures(task, point);
    printf("%7zu  %9.4f", point->setting.ef, point->recall);
    print_rate(figures[EVAL_QPS]);
    print_rate(figures[EVAL_BATCH_QPS]);
    if (isnan(figures[EVAL_BATCH_QPS]))
        printf("  %10s", "-");
    else
        printf("  %10.4f", point->batch_recall);
    printf("  %9.1f  %9.1f  %9.1f  %11.0f", figures[EVAL_P50], figures[EVAL_P99], figures[EVAL_P999],
           evaluations_of(task, point));
    if (task->filter) {
        fputs("  ", stdout);
        print_strategies(&point->counts);
    }
    if (task->max_visits) printf("  %zu cut", point->counts.cut);
    putchar('\n');
}

static void print_ratio(const eval_ratio *ratio) {
    printf("  %5.2f (%4.2f-%5.2f)", ratio->median, ratio->low, ratio->high);
}

static void print_group(size_t ef, const eval_group *group, int compared) {
    printf("%7zu  %9zu", ef, group->procs);
    print_rate(group->figures[EVAL_QPS]);
    if (compared) print_ratio(&group->ratio);
    print_rate(group->figures[EVAL_BATCH_QPS]);
    if (compared) print_ratio(&group->batch_ratio);
    for (size_t i = 0; i < group->procs; i++)
        printf("%s%.0f", i ? " " : "  ", group->each[i]);
    putchar('\n');
}

void eval_print_groups(const eval_task *task, const eval_point *points, size_t count) {
    int compared = task->groups > 1;
    char ratio[32] = "";
    if (!has_groups(task)) return;
    if (compared) snprintf(ratio, sizeof ratio, "  %18s", "ratio (range)");
    printf("\n%7s  %9s  %10s%s  %10s%s  %s\n", "ef", "processes", "queries/s", ratio, "in batch/s", ratio,
           "queries/s of each");
    for (size_t i = 0; i < count * task->groups; i++)
        print_group(points[i / task->groups].setting.ef, &points[i / task->groups].groups[i % task->groups], compared);
    if (compared) printf("ratios: to %zu process%s, within a round\n", task->procs[0], task->procs[0] == 1 ? "" : "es");
}

void eval_print_memory(const eval_memory *memory, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (!memory[i].known) continue;
        printf("%smemory of %zu process%s: %s", i ? "" : "\n", memory[i].procs, memory[i].procs == 1 ? "" : "es",
               text_of_size(memory[i].pss).text);
        if (memory[i].procs > 1)
            printf(" together, %s to %s each", text_of_size(memory[i].least).text, text_of_size(memory[i].most).text);
        printf(" (PSS), huge pages %s\n", text_of_size(memory[i].huge).text);
    }
}
