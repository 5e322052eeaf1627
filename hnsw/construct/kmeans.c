#include "hnsw/construct/kmeans.h"

#include "base/random.h"
#include "distance/codec/encode.h"
#include "hnsw/construct/centroid.h"
#include "hnsw/construct/sort_by_centre.h"
#include "hnsw/graph/partition.h"
#include "hnsw/graph/vectors.h"
#include "hnsw/search/score_block.h"

#include <string.h>

enum {
    FIRST_ROWS = 16, /* training rows per centroid in the first iteration; each next iteration has twice as many */
    MOST_ROWS = 256, /* most training rows per centroid */
    TURNS = 7,       /* iterations */
    REUSED_FROM = 2, /* iterations from here to REUSED_END, if centroids of the index's partitions are reused */
    REUSED_END = 4,
    CHUNK = 64 /* rows that a thread takes at once */
};
_Static_assert(CHUNK % SL_TOP_QUERIES == 0, "a thread takes whole products");

void sl_kmeans_free_centroids(sl_kmeans *kmeans) {
    const sl_allocator *allocator = &kmeans->graph->allocator;
    SL_FREE_ARRAY(allocator, kmeans->ends, kmeans->count);
    SL_FREE_ARRAY(allocator, kmeans->splits, kmeans->count);
    sl_mem_free(allocator, kmeans->rows, sl_codec_rows_size(&kmeans->codec, kmeans->count));
    sl_centre_groups_free(&kmeans->groups);
}

sl_status sl_kmeans_alloc_centroids(sl_kmeans *kmeans) {
    const sl_allocator *allocator = &kmeans->graph->allocator;
    sl_status status = SL_OK;
    kmeans->ends = sl_mem_array(allocator, kmeans->count, sizeof *kmeans->ends, &status);
    kmeans->splits = sl_mem_array(allocator, kmeans->count, sizeof *kmeans->splits, &status);
    kmeans->rows = sl_mem_array(allocator, sl_codec_rows_size(&kmeans->codec, kmeans->count), 1, &status);
    kmeans->codec.rows.base = kmeans->rows;
    SL_TRY(status);
    return sl_centre_groups_init(&kmeans->groups, kmeans->graph, &kmeans->codec, kmeans->count, kmeans->threads);
}

void sl_kmeans_free_learners(sl_kmeans *kmeans) {
    const sl_allocator *allocator = &kmeans->graph->allocator;
    size_t dim = kmeans->codec.dim;
    for (size_t t = 0; kmeans->learners && t < kmeans->threads; t++) {
        SL_FREE_ARRAY(allocator, kmeans->learners[t].floats, 2 * dim);
        SL_FREE_ARRAY(allocator, kmeans->learners[t].sums, dim);
        sl_mem_free(allocator, kmeans->learners[t].buffer, sl_query_size(&kmeans->codec));
        sl_top_centres_free(&kmeans->learners[t].top);
    }
    SL_FREE_ARRAY(allocator, kmeans->learners, kmeans->threads);
}

sl_status sl_kmeans_alloc_learners(sl_kmeans *kmeans) {
    const sl_allocator *allocator = &kmeans->graph->allocator;
    size_t dim = kmeans->codec.dim;
    sl_status status = SL_OK;
    kmeans->learners = sl_mem_array(allocator, kmeans->threads, sizeof *kmeans->learners, &status);
    for (size_t t = 0; t < kmeans->threads && status == SL_OK; t++) {
        sl_learner *learner = &kmeans->learners[t];
        learner->floats = sl_mem_array(allocator, 2 * dim, sizeof *learner->floats, &status);
        learner->sums = sl_mem_array(allocator, dim, sizeof *learner->sums, &status);
        learner->buffer = sl_mem_array(allocator, sl_query_size(&kmeans->codec), 1, &status);
        if (status == SL_OK) status = sl_top_centres_init(&learner->top, &kmeans->groups, 1);
    }
    return status;
}

size_t sl_kmeans_bytes(const sl_codec *codec, size_t count, size_t threads) {
    return 2 * count * sizeof(uint32_t) + sl_codec_rows_size(codec, count) +
           sl_centre_groups_bytes(codec, count, threads);
}

size_t sl_kmeans_learner_bytes(const sl_codec *codec, size_t count) {
    return sizeof(sl_learner) + codec->dim * (2 * sizeof(float) + sizeof(double)) + sl_query_size(codec) +
           sl_top_centres_bytes(codec, count, 1);
}

static size_t sample_size(size_t n, size_t count, uint64_t turn) {
    const size_t rows = (size_t)FIRST_ROWS << turn, most = count * (rows < MOST_ROWS ? rows : MOST_ROWS);
    return most < n ? most : n;
}

double sl_kmeans_comparisons(size_t n, size_t count) {
    double comparisons = sl_centre_groups_comparisons(count, (double)n);
    for (uint64_t number = 0; number < TURNS; number++)
        comparisons += sl_centre_groups_comparisons(count, (double)sample_size(n, count, number));
    return comparisons;
}

void sl_kmeans_free_groups(sl_kmeans *groups) {
    if (!groups->graph) return;
    const sl_allocator *allocator = &groups->graph->allocator;
    SL_FREE_ARRAY(allocator, groups->nearest, groups->sampled);
    SL_FREE_ARRAY(allocator, groups->by_centroid, groups->sampled);
    sl_kmeans_free_centroids(groups);
}

sl_status sl_kmeans_init_groups(sl_kmeans *groups, const sl_kmeans *grouped, size_t count) {
    const sl_allocator *allocator = &grouped->graph->allocator;
    *groups = (sl_kmeans){.graph = grouped->graph,
                          .grouped = grouped,
                          .count = count,
                          .threads = grouped->threads,
                          .sampled = grouped->count,
                          .learners = grouped->learners,
                          .progress = grouped->progress};
    sl_status status = sl_partition_codec(grouped->graph, grouped->codec.codes, &groups->codec);
    groups->nearest = sl_mem_array(allocator, groups->sampled, sizeof *groups->nearest, &status);
    groups->by_centroid = sl_mem_array(allocator, groups->sampled, sizeof *groups->by_centroid, &status);
    SL_TRY(status);
    return sl_kmeans_alloc_centroids(groups);
}

/* Returns whether a node's codes can be compared with centroids as they are. */
static int has_query_codes(const sl_kmeans *kmeans) {
    const sl_codec *codec = &kmeans->graph->codec;
    return !kmeans->grouped && codec->codes == SL_CODES_I8 && kmeans->codec.codes == SL_CODES_I8 &&
           codec->dtype == SL_F32 && codec->metric != SL_METRIC_IP;
}

/* Makes a row ready to be compared with centroids. Under COSINE its length doesn't count. */
static void encode_row_query(const sl_kmeans *kmeans, const sl_learner *learner, size_t i, sl_query_code *query) {
    const sl_graph *graph = kmeans->graph;
    float norm2;
    if (has_query_codes(kmeans)) {
        sl_codec codec = graph->codec;
        codec.metric = kmeans->codec.metric;
        sl_row_as_query(&codec, sl_row(graph, sl_kmeans_node(kmeans, i)), learner->buffer, query);
        return;
    }
    if (!kmeans->grouped && graph->codec.metric == SL_METRIC_COSINE)
        sl_coded_floats(graph, sl_kmeans_node(kmeans, i), learner->floats);
    else
        sl_kmeans_vector(kmeans, i, learner->floats);
    sl_encode_query(&kmeans->codec, learner->floats, SL_F32, learner->buffer, learner->floats + kmeans->codec.dim,
                    query, &norm2);
}

/* Returns the centroid that scores best, the first of equals; 0 if all scores are NaN. */
static uint32_t best_centroid(const sl_scan *found) {
    sl_scored best = {-INFINITY, 0};
    sl_score_keep_best(found->ids, found->scores, found->count, &best);
    return best.id;
}

static void assign_rows(const sl_kmeans *kmeans, sl_learner *learner, size_t first, size_t end) {
    for (; first < end; first += SL_TOP_QUERIES) {
        size_t count = end - first < SL_TOP_QUERIES ? end - first : SL_TOP_QUERIES;
        for (size_t i = 0; i < count; i++) {
            sl_query_code query;
            encode_row_query(kmeans, learner, first + i, &query);
            sl_top_centres_query(&learner->top, i, &query);
        }
        sl_top_centres_scan(&learner->top, &kmeans->groups, count);
        for (size_t i = 0; i < count; i++)
            kmeans->nearest[first + i] = best_centroid(&learner->top.best.scans[i]);
    }
}

/* Assigns the rows of the sample to centroids, and sorts them by centroid. */
static sl_status assign_sample(sl_kmeans *kmeans) {
    const sl_range mine = sl_share_mine(kmeans->ranks, kmeans->sampled, CHUNK);
    sl_status status = sl_centre_groups_arrange(&kmeans->groups);
#pragma omp parallel for schedule(dynamic, 1) num_threads((int)kmeans->threads) if (kmeans->threads > 1)
    for (size_t first = mine.first; first < mine.end; first += CHUNK) {
        size_t end = mine.end - first < CHUNK ? mine.end : first + CHUNK;
        sl_learner *learner = &kmeans->learners[sl_thread_number()];
        if (status != SL_OK || sl_progress_cancelled(kmeans->progress)) continue;
        assign_rows(kmeans, learner, first, end);
        sl_progress_step(kmeans->progress, 0);
    }
    SL_TRY(sl_share_gather(kmeans->ranks, status, kmeans->nearest, sizeof *kmeans->nearest, kmeans->sampled, CHUNK));
    sl_sort_by_centre(kmeans->nearest, kmeans->sampled, kmeans->count, kmeans->ends, kmeans->by_centroid);
    return SL_OK;
}

static sl_status lloyd_turn(sl_kmeans *kmeans, uint64_t number) {
    SL_TRY(assign_sample(kmeans));
    SL_TRY(sl_centroids_move(kmeans));
    sl_centroids_refill(kmeans, number);
    return SL_OK;
}

sl_status sl_kmeans_learn(sl_kmeans *kmeans) {
    const int reused = sl_centroids_reusable(kmeans);
    const uint64_t first = reused ? REUSED_FROM : 0, end = reused ? REUSED_END : TURNS;
    kmeans->sampled = sample_size(kmeans->graph->n, kmeans->count, 0);
    sl_centroids_start(kmeans);
    for (uint64_t number = first; number < end && !sl_progress_cancelled(kmeans->progress); number++) {
        kmeans->sampled = sample_size(kmeans->graph->n, kmeans->count, number);
        SL_TRY(lloyd_turn(kmeans, number));
    }
    kmeans->sampled = kmeans->graph->n;
    return assign_sample(kmeans);
}

sl_status sl_kmeans_learn_groups(sl_kmeans *groups) {
    sl_centroids_start(groups);
    for (uint64_t number = 0; number < TURNS && !sl_progress_cancelled(groups->progress); number++)
        SL_TRY(lloyd_turn(groups, number));
    return assign_sample(groups);
}
