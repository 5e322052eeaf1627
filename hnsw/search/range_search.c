#include "hnsw/graph/vectors.h"
#include "hnsw/place/replicas.h"
#include "hnsw/search/batch_search.h"
#include "hnsw/search/filter.h"
#include "hnsw/search/rerank.h"
#include "hnsw/search/score_block.h"

#include "base/params.h"
#include "distance/codec/vector_check.h"

#include <float.h>
#include <math.h>

/* With at most this many allowed nodes, scoring all of them costs less than a walk. */
enum { FEW_ALLOWED = 4096 };
/* Scoring nodes in the order of their numbers costs about a quarter of scoring nodes that links lead to. */
enum { SCAN_GAIN = 4 };
/* A walk reports its hits each time it has found this many more. */
enum { HITS_A_REPORT = 256 };
/* A searcher keeps memory for at most this many hits. */
enum { KEPT_HITS = 1 << 17 };
/* The number of hits that estimate the bias of the walk's scores, and the number of standard deviations taken off it.
 */
enum { SAMPLE = 64 };
#define DEVIATIONS 1.0
/* Places of a block, which whole words of the bitmap fill. */
enum { ROOM = SL_SCORE_BLOCK + 64 };
enum { AHEAD = 16 };

/* One call. */
typedef struct range_call {
    double radius;
    const sl_range_params *params;
    sl_range_fn fn;
    void *ctx;
} range_call;

/* One query under way. */
typedef struct range_query {
    const range_call *call;
    sl_searcher *searcher;
    sl_query query;
    size_t number;
    sl_allowed allowed;
    size_t reported; /* hits that report_hits has looked at so far */
    size_t results;
    int ended; /* 1: the caller's fn asked to stop */
} range_query;

void sl_range_params_init_sized(sl_range_params *params, size_t struct_size) {
    const sl_range_params mine = {.struct_size = sizeof mine, .ef = 128, .threads = 1, .slack = 0.015};
    sl_params_defaults(params, struct_size, &mine, sizeof mine);
}

static int is_l2(const range_query *r) {
    return r->searcher->graph->codec.metric == SL_METRIC_L2;
}

/* Reports the nodes of a block that are within the radius. */
static void report_block(range_query *r, const uint32_t *nodes, const float *walk_scores, size_t count) {
    const sl_graph *graph = r->searcher->graph;
    double scores[SL_RESULT_BLOCK];
    for (size_t i = 0; i < count; i++)
        sl_result_prefetch(r->searcher, nodes[i]);
    sl_result_scores(r->searcher, r->query.vector, nodes, walk_scores, count, scores);
    for (size_t i = 0; i < count && !r->ended; i++) {
        float score = sl_public_score(graph, scores[i]);
        if (!sl_public_score_reaches(graph, score, r->call->radius)) continue;
        r->results++;
        r->ended = r->call->fn(r->call->ctx, r->number, sl_id_of(graph, nodes[i]), score) != 0;
    }
}

/* Reports the new hits. Skips deleted and refused nodes, which only led the walk on. */
static void report_hits(range_query *r) {
    const sl_range_hits *hits = &r->searcher->range_hits;
    uint32_t nodes[SL_RESULT_BLOCK];
    float walk_scores[SL_RESULT_BLOCK];
    while (r->reported < hits->count && !r->ended) {
        size_t count = 0;
        for (; r->reported < hits->count && count < SL_RESULT_BLOCK; r->reported++) {
            nodes[count] = hits->ids[r->reported];
            walk_scores[count] = hits->scores[r->reported];
            count += (size_t)sl_is_allowed(&r->allowed, nodes[count]);
        }
        report_block(r, nodes, walk_scores, count);
    }
}

/* ---------------------------------------------------------------------------------------------------------------
 * Scoring all nodes
 * ------------------------------------------------------------------------------------------------------------- */

/* Drops nodes that the walk has visited. */
static size_t drop_visited(const sl_visited *visited, uint32_t *nodes, size_t count) {
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t node = nodes[i];
        nodes[kept] = node;
        kept += !sl_visited_has(visited, node);
    }
    return kept;
}

/* Scores all allowed nodes that the walk hasn't visited. Reports nodes whose walk score is above the threshold and
 * whose result score is within the radius. */
static void score_unvisited(range_query *r, float threshold) {
    sl_walk *walk = &r->searcher->walk;
    const sl_row_scorer scorer = sl_row_scorer_of(walk->graph->kernels, walk->codec, &walk->query, AHEAD);
    uint32_t nodes[ROOM + SL_SCORE_PAD] = {0};
    float scores[ROOM + SL_SCORE_PAD];
    sl_range left = sl_allowed_begin(&r->allowed);
    while (left.first < left.end && !r->ended) {
        size_t count = sl_allowed_next(&r->allowed, &left, nodes, ROOM), kept = 0;
        count = drop_visited(&walk->visited, nodes, count);
        sl_score_block(&scorer, nodes, count, count, scores);
        walk->evaluations += count;
        for (size_t i = 0; i < count; i++) {
            nodes[kept] = nodes[i];
            scores[kept] = scores[i];
            kept += scores[i] > threshold || threshold == -INFINITY;
        }
        for (size_t i = 0; i < kept; i += SL_RESULT_BLOCK)
            report_block(r, nodes + i, scores + i, kept - i < SL_RESULT_BLOCK ? kept - i : SL_RESULT_BLOCK);
    }
}

static void score_all(range_query *r) {
    sl_visited_clear(&r->searcher->walk.visited);
    score_unvisited(r, -INFINITY);
    r->searcher->strategy = SL_FILTER_EXACT;
}

/* ---------------------------------------------------------------------------------------------------------------
 * Walking
 * ------------------------------------------------------------------------------------------------------------- */

/* Returns the L2 score of a vector at distance 0, as a walk that reads all bits computes it. */
static double nearest_score(const range_query *r) {
    return (double)sl_codec_nearest(&r->searcher->graph->codec, r->searcher->walk.query_norm2);
}

/* Returns the score of a vector at the radius, as a walk that reads all bits computes it. */
static double walk_score(const range_query *r) {
    double radius = r->call->radius;
    return is_l2(r) ? nearest_score(r) - radius / 2 : radius;
}

/* Returns how far the walk's scores lie above the results' scores: the mean of a sample less DEVIATIONS of its standard
 * deviations. */
static double walk_score_bias(const range_query *r) {
    const sl_searcher *searcher = r->searcher;
    const sl_range_hits *hits = &searcher->range_hits;
    uint32_t nodes[SAMPLE];
    float walk_scores[SAMPLE];
    double scores[SAMPLE], sum = 0, squares = 0;
    size_t step = hits->count / SAMPLE + 1, count = 0, taken = 0;
    double unit = is_l2(r) ? 0.5 : 1, origin = is_l2(r) ? nearest_score(r) : 0;
    for (size_t i = 0; i < hits->count; i += step, count++) {
        nodes[count] = hits->ids[i];
        walk_scores[count] = hits->scores[i];
    }
    sl_result_scores(searcher, r->query.vector, nodes, walk_scores, count, scores);
    for (size_t i = 0; i < count; i++) {
        double over = (double)walk_scores[i] - (origin + unit * scores[i]);
        if (!(fabs(over) < INFINITY)) continue;
        sum += over;
        squares += over * over;
        taken++;
    }
    if (!taken) return 0;
    double mean = sum / (double)taken, variance = squares / (double)taken - mean * mean;
    return mean - DEVIATIONS * sqrt(variance > 0 ? variance : 0);
}

/* Rounding error of a walk's score, relative to the terms that it sums. A score at distance 0 may itself be 0. */
#define ROUNDING (4 * FLT_EPSILON)

/* Returns the walk score above which nodes are hits: vectors within the radius, or vectors that lead there. It's below
 * the scores of the query's own duplicates, and of vectors on the radius. */
static float hit_threshold(const range_query *r) {
    const sl_walk *walk = &r->searcher->walk;
    double at = walk_score(r) + walk_score_bias(r), origin = (double)walk->origin;
    double slack = r->call->params->slack, rounding = (double)ROUNDING * (fabs(origin) + fabs(at)) + (double)FLT_MIN;
    if (walk->graph->codec.metric == SL_METRIC_IP) return (float)(at - slack * fabs(at) - rounding);
    double distance = origin - at > 0 ? origin - at : 0;
    return (float)(origin - (1 + slack) * (1 + slack) * distance - rounding);
}

/* Continues the walk from the hits, until that has cost as much as scoring the rest. */
static sl_status continue_from_hits(range_query *r, size_t most) {
    sl_walk *walk = &r->searcher->walk;
    sl_range_hits *hits = &r->searcher->range_hits;
    sl_range_hits_raise_threshold(hits, hit_threshold(r));
    for (;;) {
        report_hits(r);
        SL_TRY(hits->status);
        if (r->ended || hits->expanded == hits->count) return SL_OK;
        if (walk->evaluations >= most) break;
        sl_walk_range_hits(walk, hits->count + HITS_A_REPORT, most);
    }
    r->searcher->strategy = SL_FILTER_EXACT;
    score_unvisited(r, hits->threshold);
    return SL_OK;
}

static sl_status walk_to_hits(range_query *r, size_t most) {
    sl_searcher *searcher = r->searcher;
    sl_walk *walk = &searcher->walk;
    const sl_graph *graph = searcher->graph;
    sl_range start;
    searcher->strategy = SL_FILTER_WALK;
    SL_TRY(sl_searcher_start_nodes(searcher, r->query, &start));
    if (start.first >= start.end) start = sl_range_of_id(sl_walk_descend(walk, sl_entry_in(graph, walk->upper), 0));
    sl_range_hits_start(&searcher->range_hits);
    walk->stop = 0;
    walk->range_hits = &searcher->range_hits;
    sl_walk_layer(walk, 0, start, r->call->params->ef);
    sl_status status = continue_from_hits(r, most);
    walk->range_hits = NULL;
    return status;
}

/* ---------------------------------------------------------------------------------------------------------------
 * The call
 * ------------------------------------------------------------------------------------------------------------- */

static sl_status answer_range_query(const sl_query_batch *batch, size_t i, sl_searcher *searcher,
                                    sl_search_stats *stats) {
    const range_call *call = batch->ctx;
    const sl_filter *filter = call->params->filter;
    range_query r = {.call = call, .searcher = searcher, .query = sl_query_batch_query(batch, i), .number = i};
    SL_TRY(sl_searcher_prepare(searcher, r.query, &(sl_search_params){.filter = filter}));
    const sl_graph *graph = searcher->graph;
    r.allowed = filter ? sl_filter_allowed(filter, graph) : sl_allowed_all(graph);
    double score = is_l2(&r) ? -call->radius : call->radius;
    if (score < INFINITY && graph->n) {
        if (call->params->exact || score == -INFINITY || r.allowed.count <= FEW_ALLOWED)
            score_all(&r);
        else
            SL_TRY(walk_to_hits(&r, r.allowed.count / SCAN_GAIN));
    }
    stats->results += r.results;
    sl_results_add_work(searcher, stats);
    if (searcher->range_hits.room > KEPT_HITS) sl_range_hits_free(&searcher->range_hits, &graph->allocator);
    return SL_OK;
}

static sl_status check_call(const sl_graph *graph, sl_dtype dtype, const range_call *call) {
    if (!call->fn) return sl_fail(SL_EINVAL, "fn is NULL; give a function that takes the results");
    if (isnan(call->radius)) return sl_fail(SL_EINVAL, "radius is NaN; give a score");
    if (call->params->ef == 0 || call->params->ef > SL_MAX_EF)
        return sl_fail(SL_EINVAL, "ef is %zu; give 1 to %u", call->params->ef, SL_MAX_EF);
    if (!(call->params->slack >= 0))
        return sl_fail(SL_EINVAL, "slack is %g; give 0 for none, or more", call->params->slack);
    return sl_codec_accepts(&graph->codec, dtype);
}

static sl_status search_range(const sl_index *index, const range_call *call, sl_query_batch *batch,
                              sl_search_stats *stats) {
    SL_TRY(check_call(batch->graph, batch->dtype, call));
    if (stats) *stats = (sl_search_stats){0};
    if (batch->nq == 0) return SL_OK;
    SL_TRY(
        sl_query_batch_begin(index, batch, call->params->threads, call->params->progress, call->params->progress_ctx));
    return sl_query_batch_run(index, batch, stats);
}

sl_status sl_index_range(const sl_index *index, const void *queries, sl_dtype dtype, size_t nq, size_t stride,
                         double radius, const sl_range_params *params, sl_range_fn fn, void *ctx,
                         sl_search_stats *stats) {
    if (!index) return sl_fail(SL_EINVAL, "index is NULL");
    sl_range_params mine;
    sl_reading reading;
    sl_range_params_init(&mine);
    SL_TRY(sl_params_in(&mine, sizeof mine, params, "sl_range_params_init"));
    const range_call call = {.radius = radius, .params = &mine, .fn = fn, .ctx = ctx};
    sl_query_batch batch = {.queries = queries,
                            .dtype = dtype,
                            .nq = nq,
                            .stride = stride,
                            .answer = answer_range_query,
                            .max_ef = mine.ef,
                            .ctx = &call};
    sl_replicas_make(index);
    batch.graph = sl_reading_begin(index, &reading);
    sl_status status = search_range(index, &call, &batch, stats);
    sl_reading_end(&reading);
    return status;
}
