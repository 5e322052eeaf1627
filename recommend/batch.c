#include "recommend/recommender.h"

#include "base/failure.h"
#include "recommend/session.h"

/* A query batch: the requests of one sl_recommend call. */
typedef struct query_batch {
    sl_session **sessions; /* one per thread */
    size_t threads;
    const sl_request *requests;
    size_t count;
    const sl_recommend_params *params;
    uint64_t *ids;
    float *scores, *recall_scores;
    sl_progress progress;
} query_batch;

static sl_status serve_request(query_batch *b, size_t i, size_t thread, sl_recommend_stats *stats) {
    size_t at = i * b->params->n;
    return sl_session_recommend(b->sessions[thread], &b->requests[i], b->params, b->ids + at,
                                b->scores ? b->scores + at : NULL, b->recall_scores ? b->recall_scores + at : NULL,
                                stats);
}

static void add_stats(sl_recommend_stats *sum, const sl_recommend_stats *one) {
    sum->requests += one->requests;
    sum->results += one->results;
    sum->candidates += one->candidates;
    sum->without_features += one->without_features;
    if (one->version > sum->version) sum->version = one->version;
}

static sl_status serve_requests(query_batch *b, sl_recommend_stats *stats) {
    sl_failure failure;
    sl_recommend_stats sum = {0};
    sl_failure_init(&failure);
#pragma omp parallel num_threads((int)b->threads) if (b->threads > 1)
    {
        size_t thread = sl_thread_number();
        sl_recommend_stats mine = {0}, one;
#pragma omp for schedule(dynamic, 1)
        for (size_t i = 0; i < b->count; i++) {
            if (sl_progress_cancelled(&b->progress)) continue;
            sl_status status = serve_request(b, i, thread, &one);
            if (status == SL_OK) add_stats(&mine, &one);
            sl_failure_keep(&failure, i, status);
            sl_progress_step(&b->progress, 1);
        }
#pragma omp critical(sl_recommend_stats)
        add_stats(&sum, &mine);
    }
    if (failure.status != SL_OK) return sl_fail_in(sl_failure_pass(&failure), "request %zu", failure.at);
    SL_TRY(sl_progress_end(&b->progress));
    if (stats) *stats = sum;
    return SL_OK;
}

sl_status sl_recommend(sl_recommender *recommender, const sl_request *requests, size_t request_count,
                       const sl_recommend_params *params, uint64_t *ids, float *scores, float *recall_scores,
                       sl_recommend_stats *stats) {
    if (!recommender) return sl_fail(SL_EINVAL, "recommender is NULL");
    sl_recommend_params mine;
    SL_TRY(sl_recommend_params_read(params, &mine));
    if (stats) *stats = (sl_recommend_stats){.version = sl_recommender_version(recommender)};
    if (request_count == 0) return SL_OK;
    if (!requests || !ids) return sl_fail(SL_EINVAL, "requests or ids is NULL");
    query_batch b = {.threads = sl_thread_count(mine.threads),
                     .requests = requests,
                     .count = request_count,
                     .params = &mine,
                     .ids = ids,
                     .scores = scores,
                     .recall_scores = recall_scores};
    if (b.threads > request_count) b.threads = request_count;
    sl_progress_start(&b.progress, mine.progress, mine.progress_ctx, request_count);
    void *block;
    SL_TRY(sl_mem_alloc(&recommender->allocator, b.threads * sizeof *b.sessions, &block));
    b.sessions = block;
    sl_status status = SL_OK;
    for (size_t t = 0; t < b.threads && status == SL_OK; t++)
        status = sl_session_create(recommender, &mine, &b.sessions[t]);
    if (status == SL_OK) status = serve_requests(&b, stats);
    for (size_t t = 0; t < b.threads; t++)
        sl_session_free(b.sessions[t]);
    sl_mem_free(&recommender->allocator, block, b.threads * sizeof *b.sessions);
    return status;
}
