#include "cli/recommend/funnel.h"

#include "cli/common/json_out.h"
#include "cli/common/percentiles.h"
#include "cli/common/progress.h"
#include "cli/common/report.h"
#include "cli/common/system.h"
#include "cli/index/description.h"
#include "cli/index/open_save.h"
#include "cli/recommend/funnel_threads.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct funnel {
    const funnel_task *task;
    sl_index *index;
    sl_index_stats stats;
    sl_ranker *ranker; /* NULL: recall alone */
    sl_items *items;
    sl_recommender *recommender, *plain; /* plain: without the model; NULL without a model */
    sl_recommend_params params;
    requests requests;
    funnel_threads *threads;
    /* of a block of requests */
    uint64_t *ids, *alone;
    float *scores, *recall_scores;
    size_t room; /* requests that they have room for */
    float *latencies;
    size_t latency_room; /* room for the latencies of all requests so far */
};

funnel_task funnel_task_of(const char *const *paths, const funnel_options *options, size_t n, size_t threads,
                           int progress) {
    return (funnel_task){.index_path = paths[0],
                         .model_path = paths[1],
                         .items_path = paths[2],
                         .requests_path = paths[3],
                         .vectors_path = options->vectors,
                         .id = options->id,
                         .group = options->group,
                         .n = n,
                         .candidates = options->candidates,
                         .ef = options->ef,
                         .max_per_group = options->max_per_group,
                         .threads = threads,
                         .item_part = options->item_part,
                         .progress = progress};
}

static int check_task(const funnel *funnel) {
    const funnel_task *task = funnel->task;
    size_t held = funnel->stats.n;
    int status = check_depth("-n", task->n, held, task->index_path);
    if (status == EXIT_DONE && task->candidates)
        status = check_depth("--candidates", task->candidates, held, task->index_path);
    if (status == EXIT_DONE && task->ef) status = check_depth("--ef", task->ef, held, task->index_path);
    if (status != EXIT_DONE || !task->candidates || task->candidates >= task->n) return status;
    return report_failure("--candidates is %zu, but -n is %zu; recall at least as many as are asked for",
                          task->candidates, task->n);
}

static void set_params(funnel *funnel) {
    const funnel_task *task = funnel->task;
    sl_recommend_params *params = &funnel->params;
    sl_recommend_params_init(params);
    params->n = task->n;
    if (params->candidates > funnel->stats.n) params->candidates = funnel->stats.n;
    if (params->candidates < task->n) params->candidates = task->n;
    if (task->candidates) params->candidates = task->candidates;
    params->ef = task->ef;
    params->max_per_group = task->max_per_group;
    params->threads = task->threads;
}

static int create_recommender(const funnel *funnel, sl_ranker *ranker, sl_recommender **out) {
    const funnel_task *task = funnel->task;
    sl_recommender_params params;
    sl_recommender_params_init(&params);
    params.threads = task->threads;
    params.group = task->group;
    params.item_part = (sl_item_part)task->item_part;
    params.log = report_log(&params.log_ctx);
    sl_status status = sl_recommender_create(funnel->index, ranker, funnel->items, &params, out);
    if (status == SL_OK) return EXIT_DONE;
    return report_status(ranker ? task->model_path : task->items_path, status);
}

static int open_parts(funnel *funnel) {
    const funnel_task *task = funnel->task;
    sl_ranker_info info;
    int status = open_index(task->index_path, (opening){.place = SL_PLACE_MAP}, &funnel->index, &funnel->stats);
    if (status == EXIT_DONE) status = check_task(funnel);
    if (status == EXIT_DONE && strcmp(task->model_path, "none") != 0)
        status = open_model(task->model_path, &funnel->ranker, &info);
    if (status == EXIT_DONE && strcmp(task->items_path, "none") != 0)
        status =
            open_items(task->items_path, &(items_opening){.id = task->id, .progress = task->progress}, &funnel->items);
    if (status == EXIT_DONE)
        status =
            requests_open(&funnel->requests, task->requests_path, task->vectors_path, &funnel->stats, task->index_path);
    if (status == EXIT_DONE) status = create_recommender(funnel, funnel->ranker, &funnel->recommender);
    if (status == EXIT_DONE && funnel->ranker) status = create_recommender(funnel, NULL, &funnel->plain);
    return status;
}

int funnel_open(const funnel_task *task, funnel **out) {
    *out = NULL;
    if (task->max_per_group && !task->group) return report_usage("--max-per-group needs --group COLUMN");
    if (task->group && !task->max_per_group) return report_usage("--group needs --max-per-group N");
    funnel *funnel = allocate(1, sizeof *funnel);
    if (!funnel) return EXIT_FAILED;
    funnel->task = task;
    int status = open_parts(funnel);
    if (status == EXIT_DONE) {
        set_params(funnel);
        size_t threads = thread_count(task->threads);
        status = funnel_threads_create(funnel->recommender, &funnel->params, threads ? threads : 1, &funnel->threads);
    }
    if (status == EXIT_DONE)
        *out = funnel;
    else
        funnel_close(funnel);
    return status;
}

void funnel_close(funnel *funnel) {
    if (!funnel) return;
    funnel_threads_free(funnel->threads);
    sl_recommender_free(funnel->recommender);
    sl_recommender_free(funnel->plain);
    requests_close(&funnel->requests);
    sl_items_free(funnel->items);
    sl_ranker_free(funnel->ranker);
    sl_index_free(funnel->index);
    free(funnel->ids);
    free(funnel->alone);
    free(funnel->scores);
    free(funnel->recall_scores);
    free(funnel->latencies);
    free(funnel);
}

const sl_items *funnel_items(const funnel *funnel) {
    return funnel->items;
}

/* Grows the arrays for the block's answers, and for the latencies of all requests up to its end. */
static int grow_block(funnel *funnel) {
    size_t count = funnel->requests.count, n = funnel->task->n, all = funnel->requests.first + count;
    if (count > funnel->room) {
        free(funnel->ids);
        free(funnel->alone);
        free(funnel->scores);
        free(funnel->recall_scores);
        funnel->room = count;
        funnel->ids = allocate(count, n * sizeof *funnel->ids);
        funnel->alone = allocate(count, n * sizeof *funnel->alone);
        funnel->scores = allocate(count, n * sizeof *funnel->scores);
        funnel->recall_scores = allocate(count, n * sizeof *funnel->recall_scores);
    }
    if (all > funnel->latency_room) {
        size_t room = 2 * all;
        float *larger = realloc(funnel->latencies, room * sizeof *larger);
        if (!larger) return report_failure("out of memory: cannot hold the times of %zu requests", room);
        funnel->latencies = larger;
        funnel->latency_room = room;
    }
    return funnel->ids && funnel->alone && funnel->scores && funnel->recall_scores ? EXIT_DONE : EXIT_FAILED;
}

/* Adds the block's quality to the sum, weighted by its judged requests. */
static int add_quality(const funnel *funnel, const uint64_t *ids, size_t judged, quality *sum) {
    const id_lists *relevant = &funnel->requests.relevant;
    quality block;
    sl_status status = sl_list_metrics(ids, funnel->requests.count, funnel->task->n, relevant->ids, relevant->start,
                                       &block.ndcg, &block.recall, &block.hit_rate);
    if (status != SL_OK) return report_status(funnel->task->requests_path, status);
    sum->ndcg += (double)judged * block.ndcg;
    sum->recall += (double)judged * block.recall;
    sum->hit_rate += (double)judged * block.hit_rate;
    return EXIT_DONE;
}

static int judge_block(funnel *funnel, funnel_report *report) {
    const requests *requests = &funnel->requests;
    size_t judged = 0;
    for (size_t i = 0; requests->judged && i < requests->count; i++)
        judged += requests->relevant.start[i + 1] > requests->relevant.start[i];
    if (!judged) return EXIT_DONE;
    report->judged += judged;
    const uint64_t *alone = funnel->plain ? funnel->alone : funnel->ids;
    if (funnel->plain) {
        sl_status status = sl_recommend(funnel->plain, requests->requests, requests->count, &funnel->params,
                                        funnel->alone, NULL, NULL, NULL);
        if (status != SL_OK) return report_rows(funnel->task->requests_path, requests->first, status);
    }
    int result = add_quality(funnel, funnel->ids, judged, &report->ranked);
    return result == EXIT_DONE ? add_quality(funnel, alone, judged, &report->alone) : result;
}

static int answer_block(funnel *funnel, answers_fn take, void *ctx, funnel_report *report, double *seconds) {
    const requests *requests = &funnel->requests;
    int status = grow_block(funnel);
    if (status != EXIT_DONE) return status;
    const funnel_batch batch = {.requests = requests->requests,
                                .count = requests->count,
                                .first = requests->first,
                                .path = funnel->task->requests_path,
                                .ids = funnel->ids,
                                .scores = funnel->scores,
                                .recall_scores = funnel->recall_scores,
                                .latencies = funnel->latencies + requests->first};
    status = funnel_threads_answer(funnel->threads, &batch, &report->counts, seconds);
    if (status == EXIT_DONE) status = judge_block(funnel, report);
    const answers answers = {.first = requests->first,
                             .count = requests->count,
                             .n = funnel->task->n,
                             .ids = funnel->ids,
                             .scores = funnel->scores,
                             .recall_scores = funnel->recall_scores};
    return status == EXIT_DONE && take ? take(ctx, &answers) : status;
}

static void compute_means(quality *sum, size_t judged) {
    double part = judged ? 1 / (double)judged : NAN;
    *sum = (quality){sum->ndcg * part, sum->recall * part, sum->hit_rate * part};
}

int funnel_run(funnel *funnel, answers_fn take, void *ctx, funnel_report *report) {
    progress progress;
    double seconds = 0;
    *report = (funnel_report){0};
    progress_begin(&progress, "recommending", "requests", 0, funnel->task->progress);
    int status = requests_next(&funnel->requests);
    while (status == EXIT_DONE && funnel->requests.count) {
        status = answer_block(funnel, take, ctx, report, &seconds);
        report->requests = funnel->requests.first + funnel->requests.count;
        if (progress_step(&progress, report->requests, 0) && status == EXIT_DONE) status = report_interrupted();
        if (status == EXIT_DONE) status = requests_next(&funnel->requests);
    }
    progress_end(&progress, status == EXIT_DONE);
    if (status != EXIT_DONE) return status;
    if (!report->requests)
        return report_failure("%s: holds no requests; add a row for each", funnel->task->requests_path);
    if (report->counts.candidates && report->counts.without_features == report->counts.candidates)
        return report_failure("%s: has none of the %zu items that were recalled from %s; give the index its items' ids "
                              "with 'shortlist build --ids'",
                              funnel->task->items_path, report->counts.candidates, funnel->task->index_path);
    percentiles(funnel->latencies, report->requests, &report->p50_us, &report->p99_us, NULL);
    report->item_bytes = sl_recommender_item_bytes(funnel->recommender);
    report->qps = seconds > 0 ? (double)report->requests / seconds : 0;
    compute_means(&report->ranked, report->judged);
    compute_means(&report->alone, report->judged);
    return EXIT_DONE;
}

void json_funnel(json *json, const funnel_task *task, const funnel_report *report) {
    json_count(json, "requests", report->requests);
    json_count(json, "n", task->n);
    json_count(json, "results", report->counts.results);
    json_count(json, "candidates", report->counts.candidates);
    json_count(json, "without_features", report->counts.without_features);
    json_count(json, "item_bytes", report->item_bytes);
    json_count(json, "threads", thread_count(task->threads));
    json_real(json, "qps", report->qps);
    json_real(json, "p50_us", report->p50_us);
    json_real(json, "p99_us", report->p99_us);
    json_count(json, "judged", report->judged);
    json_real(json, "ndcg", report->ranked.ndcg);
    json_real(json, "recall", report->ranked.recall);
    json_real(json, "hit_rate", report->ranked.hit_rate);
    json_real(json, "ndcg_alone", report->alone.ndcg);
    json_real(json, "recall_alone", report->alone.recall);
    json_real(json, "hit_rate_alone", report->alone.hit_rate);
}

static void print_quality(FILE *file, const char *what, const quality *quality) {
    fprintf(file, "  %-16s %8.4f %8.4f %8.4f\n", what, quality->ndcg, quality->recall, quality->hit_rate);
}

void print_funnel(FILE *file, const funnel_task *task, const funnel_report *report) {
    double requests = (double)report->requests;
    fprintf(file, "%zu requests, %.1f candidates each; %.0f requests/s, %.0f us median, %.0f us p99 on %zu threads\n",
            report->requests, (double)report->counts.candidates / requests, report->qps, report->p50_us, report->p99_us,
            thread_count(task->threads));
    if (report->counts.without_features)
        fprintf(file, "%zu candidates are not in the item table: scored with missing values\n",
                report->counts.without_features);
    if (!report->judged) return;
    fprintf(file, "  at %-3zu of %-6zu %8s %8s %8s\n", task->n, report->judged, "NDCG", "recall", "hit rate");
    print_quality(file, "recall alone", &report->alone);
    if (strcmp(task->model_path, "none") != 0) print_quality(file, "recall + rank", &report->ranked);
}
