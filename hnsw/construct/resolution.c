#include "hnsw/construct/resolution.h"

#include "base/params.h"
#include "base/random.h"
#include "distance/codec/encode.h"
#include "distance/double.h"
#include "hnsw/construct/duplicates.h"
#include "hnsw/graph/vectors.h"
#include "hnsw/graph/version.h"
#include "hnsw/search/score_block.h"
#include "hnsw/search/topk.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* Vectors of the sample, and neighbours of each that count. */
enum { SAMPLE = 64, NEAREST = SL_CLOSE_NEIGHBOURS };
/* A build compares in F32 if neighbours are within this many code steps, since I8 may then put them in any order.
 * Within half as many steps, the index's own codes lose neighbours. */
#define CLOSE_STEPS 8.0
/* One vector of the sample with such neighbours may be chance. Two aren't. */
enum { TOO_MANY = 2 };

/* The nearest vectors of each vector of the sample, among those that one thread compared. */
typedef struct nearest {
    sl_top top[SAMPLE];
    sl_top_entry entries[SAMPLE][NEAREST];
} nearest;

typedef struct sample {
    const sl_graph *graph;
    size_t count, threads;
    uint32_t nodes[SAMPLE];
    sl_query_code queries[SAMPLE];
    float own[SAMPLE]; /* the score of each for itself, and so for its duplicates */
    uint8_t *codes;
    nearest *nearest; /* one per thread */
    float *floats;
} sample;

static size_t code_bytes(const sl_graph *graph) {
    return sl_round_up(sl_query_size(&graph->codec), SL_CACHE_LINE);
}

static void sample_free(sample *s) {
    const sl_allocator *allocator = &s->graph->allocator;
    sl_mem_free(allocator, s->codes, SAMPLE * code_bytes(s->graph));
    SL_FREE_ARRAY(allocator, s->nearest, s->threads);
    SL_FREE_ARRAY(allocator, s->floats, 2 * s->graph->codec.dim);
}

/* Draws one vector from each of SAMPLE equal stretches. */
static sl_status sample_draw(sample *s) {
    const sl_graph *graph = s->graph;
    sl_status status = SL_OK;
    s->codes = sl_mem_array(&graph->allocator, SAMPLE, code_bytes(graph), &status);
    s->nearest = sl_mem_array(&graph->allocator, s->threads, sizeof *s->nearest, &status);
    s->floats = sl_mem_array(&graph->allocator, 2 * graph->codec.dim, sizeof *s->floats, &status);
    SL_TRY(status);
    s->count = graph->n < SAMPLE ? graph->n : SAMPLE;
    for (size_t i = 0; i < s->count; i++) {
        const uint64_t first = (uint64_t)i * graph->n / s->count, end = (uint64_t)(i + 1) * graph->n / s->count;
        s->nodes[i] = (uint32_t)(first + sl_random_at(graph->seed ^ 0x7265736f6c7665u, i) % (end - first));
        sl_row_as_query(&graph->codec, sl_row(graph, s->nodes[i]), s->codes + i * code_bytes(graph), &s->queries[i]);
        const sl_row_scorer scorer = sl_row_scorer_of(graph->kernels, &graph->codec, &s->queries[i], 0);
        sl_score_block(&scorer, &s->nodes[i], 1, 1, &s->own[i]);
    }
    for (size_t t = 0; t < s->threads; t++)
        for (size_t i = 0; i < SAMPLE; i++)
            s->nearest[t].top[i] = (sl_top){s->nearest[t].entries[i], 0, NEAREST};
    return SL_OK;
}

/* Compares a block of vectors with the sample. Duplicates of a vector aren't neighbours. */
static void compare_block(const sample *s, nearest *mine, size_t first, size_t count) {
    uint32_t numbers[SL_SCORE_BLOCK + SL_SCORE_PAD];
    float scores[SL_SCORE_BLOCK + SL_SCORE_PAD];
    for (size_t i = 0; i < s->count; i++) {
        const sl_row_scorer scorer = sl_row_scorer_of(s->graph->kernels, &s->graph->codec, &s->queries[i], 0);
        sl_top *top = &mine->top[i];
        sl_score_range(&scorer, first, count, numbers, scores);
        for (size_t j = 0; j < count; j++)
            if (scores[j] != s->own[i] && (top->size < top->k || (double)scores[j] >= top->entries[0].score))
                sl_top_push(top, (double)scores[j], numbers[j]);
    }
}

static sl_status compare_sample(const sample *s, sl_progress *progress) {
    const size_t n = s->graph->n, threads = s->threads;
#pragma omp parallel for schedule(static) num_threads((int)threads) if (threads > 1)
    for (size_t first = 0; first < n; first += SL_SCORE_BLOCK) {
        if (sl_progress_cancelled(progress)) continue;
        compare_block(s, &s->nearest[sl_thread_number()], first,
                      n - first < SL_SCORE_BLOCK ? n - first : SL_SCORE_BLOCK);
        sl_progress_step(progress, 0);
    }
    for (size_t t = 1; t < threads; t++)
        for (size_t i = 0; i < s->count; i++)
            for (size_t j = 0; j < s->nearest[t].top[i].size; j++)
                sl_top_push(&s->nearest[0].top[i], s->nearest[t].entries[i][j].score, s->nearest[t].entries[i][j].id);
    return sl_progress_cancelled(progress) ? sl_progress_end(progress) : SL_OK;
}

/* Returns the distance from a vector of the sample to the farthest of its NEAREST neighbours. */
static double distance_of(const sample *s, size_t i) {
    const size_t dim = s->graph->codec.dim;
    sl_coded_floats(s->graph, s->nodes[i], s->floats);
    sl_coded_floats(s->graph, (uint32_t)s->nearest[0].top[i].entries[0].id, s->floats + dim);
    return sqrt(sl_l2_double(s->floats, s->floats + dim, dim));
}

/* Returns whether the neighbours are too close for I8. */
static int is_close_for_bytes(const sample *s, size_t i) {
    const double distance = distance_of(s, i);
    return distance < CLOSE_STEPS * (double)sl_largest(s->floats, s->graph->codec.dim) / 127;
}

/* Returns whether the neighbours are too close for the index's own codes. */
static int is_unresolved(const sample *s, size_t i) {
    const sl_codec *codec = &s->graph->codec;
    const double factor = (double)sl_field_get(sl_row(s->graph, s->nodes[i]), codec->rows.factor);
    /* 4-bit levels are two factors apart. */
    const double step = codec->codes == SL_CODES_I4 ? 2 * factor : factor, distance = distance_of(s, i);
    /* Scores are differences of products as large as the squared vector, in floats. */
    const double rounding = 4 * sqrt((double)FLT_EPSILON * sl_dot_double(s->floats, s->floats, codec->dim));
    return distance < CLOSE_STEPS / 2 * step || distance < rounding;
}

/* Finds the neighbours of a sample, and counts the vectors for which close() holds. */
static sl_status count_close(const sl_graph *graph, size_t threads, sl_progress *progress,
                             int (*close)(const sample *s, size_t i), sl_resolution *out) {
    sample s = {.graph = graph, .threads = threads};
    sl_status status = sample_draw(&s);
    if (status == SL_OK) status = compare_sample(&s, progress);
    out->sampled = s.count;
    for (size_t i = 0; status == SL_OK && i < s.count; i++)
        out->unresolved += s.nearest[0].top[i].size > 0 && close(&s, i);
    sample_free(&s);
    return status;
}

int sl_is_finer_than_bytes(const sl_codec *codec) {
    return codec->metric == SL_METRIC_L2 && codec->codes != SL_CODES_I8 && codec->codes != SL_CODES_I4;
}

/* Returns whether a point's neighbours are closer than `step` times CLOSE_STEPS. Its duplicates in `own` aren't
 * neighbours. */
static int has_close(const sl_neighbour_lists *neighbours, const sl_points *points, const sl_graph *own, size_t point,
                     double step) {
    size_t listed, count, close = 0;
    const sl_neighbour *list = sl_neighbour_list(neighbours, point, &listed);
    count = listed;
    for (size_t i = 0; i < listed; i++) {
        if (-2 * (double)sl_neighbour_score(list[i]) >= CLOSE_STEPS * CLOSE_STEPS * step * step)
            continue; /* a score is half the squared distance */
        const uint32_t other = sl_point_row(points, sl_neighbour_point(list[i]));
        const int is_duplicate = sl_is_duplicate(own, sl_point_row(points, point), other);
        close += !is_duplicate;
        count -= (size_t)is_duplicate;
    }
    return count && close >= (count < NEAREST ? count : NEAREST);
}

size_t sl_count_close_points(const sl_neighbour_lists *neighbours, const sl_points *points, const sl_graph *own,
                             size_t first) {
    const sl_code_rows *rows = &points->codec->rows;
    const size_t begin = sl_larger(first, neighbours->first), end = neighbours->first + neighbours->n;
    size_t close = 0;
#pragma omp parallel for schedule(static) num_threads((int)points->threads) if (points->threads > 1) reduction(+ : close)
    for (size_t i = begin; i < end; i++) {
        const uint8_t *row = rows->base + (size_t)sl_point_row(points, i) * rows->pitch;
        close += has_close(neighbours, points, own, i, (double)sl_field_get(row, rows->factor)) != 0;
    }
    return close;
}

sl_status sl_compared_codes(const sl_graph *graph, size_t threads, sl_progress *progress, sl_codes *codes) {
    sl_resolution bytes = {0};
    *codes = SL_CODES_I8;
    if (!sl_is_finer_than_bytes(&graph->codec)) return SL_OK;
    if (graph->bytes_are_coarse) {
        *codes = SL_CODES_F32;
        return SL_OK;
    }
    SL_TRY(count_close(graph, threads, progress, is_close_for_bytes, &bytes));
    if (bytes.unresolved >= TOO_MANY) *codes = SL_CODES_F32;
    return SL_OK;
}

sl_status sl_index_resolution(const sl_index *index, size_t threads, sl_resolution *out) {
    if (!index) return sl_fail(SL_EINVAL, "index is NULL");
    SL_TRY(sl_params_check_out(out, "sl_resolution"));
    sl_reading reading;
    const sl_graph *graph = sl_reading_begin(index, &reading);
    const sl_codec *codec = &graph->codec;
    sl_resolution mine = {0};
    sl_status status = SL_OK;
    sl_progress progress;
    sl_progress_start(&progress, NULL, NULL, 0);
    if (graph->n && codec->metric == SL_METRIC_L2 && codec->dtype == SL_F32 && codec->codes != SL_CODES_F32)
        status = count_close(graph, sl_thread_count(threads), &progress, is_unresolved, &mine);
    sl_reading_end(&reading);
    if (status == SL_OK) sl_params_out(out, &mine, sizeof mine);
    return status;
}
