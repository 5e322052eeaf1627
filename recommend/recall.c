#include "recommend/recall.h"

#include "base/id_hash.h"
#include "base/probe.h"
#include "distance/codec/vector_check.h"
#include "hnsw/search/accessors.h"

#include <math.h>
#include <string.h>

sl_status sl_recall_init(sl_recall *recall, sl_index *index, const sl_allocator *allocator) {
    sl_index_stats stats = {.struct_size = sizeof stats};
    *recall = (sl_recall){.allocator = *allocator, .index = index};
    SL_TRY(sl_index_get_stats(index, &stats));
    recall->dim = stats.dim;
    recall->metric = stats.metric;
    recall->dtype = stats.dtype;
    recall->multi = stats.multi;
    recall->vector_room = recall->dim * sizeof(float);
    SL_TRY(sl_mem_alloc(allocator, recall->vector_room, &recall->vectors));
    return sl_mem_alloc(allocator, recall->dim * sizeof(float), &recall->query);
}

void sl_recall_free(sl_recall *recall) {
    sl_mem_free(&recall->allocator, recall->vectors, recall->vector_room);
    sl_mem_free(&recall->allocator, recall->query, recall->dim * sizeof(float));
    SL_FREE_ARRAY(&recall->allocator, recall->excluded, recall->room);
    *recall = (sl_recall){0};
}

/* ---------------------------------------------------------------------------------------------------------------
 * Exclusions
 * ------------------------------------------------------------------------------------------------------------- */

/* The place of an id among the excluded ones, or a free place. */
static uint64_t *place_of(const sl_recall *recall, uint64_t id) {
    SL_PROBE(at, sl_id_hash(recall->seed, id), recall->places) {
        if (recall->excluded[at] == SL_NO_ID || recall->excluded[at] == id) return &recall->excluded[at];
    }
}

static sl_status exclude_ids(sl_recall *recall, const uint64_t *ids, size_t count) {
    sl_status status = SL_OK;
    if (count > SIZE_MAX / 4) return sl_fail(SL_EINVAL, "exclude_count is %zu", count);
    const size_t places = sl_probe_places(count, 16);
    recall->excluded =
        sl_mem_grow(&recall->allocator, recall->excluded, &recall->room, places, sizeof *recall->excluded, &status);
    SL_TRY(status);
    recall->places = places;
    recall->seed = sl_id_seed();
    memset(recall->excluded, 0xff, places * sizeof *recall->excluded);
    for (size_t i = 0; i < count; i++)
        *place_of(recall, ids[i]) = ids[i];
    return SL_OK;
}

static int accept_id(void *ctx, uint64_t id) {
    const sl_recall *recall = ctx;
    if (recall->places && *place_of(recall, id) == id) return 0;
    if (recall->deleted && sl_ref_is_tombstone(sl_catalog_find(recall->deleted, id))) return 0;
    return !recall->request->accept || recall->request->accept(recall->request->accept_ctx, id);
}

size_t sl_recall_room(size_t candidates, size_t ef) {
    sl_search_params search;
    sl_search_params_init(&search);
    search.ef = ef;
    search.accept = accept_id;
    return sl_search_max_ef(&search, candidates);
}

sl_status sl_recall_run(sl_recall *recall, sl_searcher *searcher, const sl_request *request,
                        const sl_recommend_params *params, uint64_t *ids, float *scores, size_t *found) {
    sl_search_params search;
    sl_search_stats stats;
    sl_search_params_init(&search);
    search.ef = params->ef;
    search.accept = request->accept;
    search.accept_ctx = request->accept_ctx;
    search.accept_bits = request->accept_bits;
    search.accept_bits_count = request->accept_bits_count;
    search.filter = request->filter;
    recall->places = 0;
    if (request->exclude_count) SL_TRY(exclude_ids(recall, request->exclude, request->exclude_count));
    if (recall->places || recall->deleted) {
        recall->request = request;
        search.accept = accept_id;
        search.accept_ctx = recall;
    }
    SL_TRY(sl_searcher_search_births(searcher, request->vector, request->dtype, params->candidates, &search,
                                     &(sl_found){ids, scores, recall->births}, &stats));
    *found = stats.results;
    return SL_OK;
}

/* ---------------------------------------------------------------------------------------------------------------
 * Scores of given ids
 * ------------------------------------------------------------------------------------------------------------- */

/* Gets all vectors of an id, `size` bytes each. Errors: SL_ENOTFOUND, SL_ENOMEM. */
static sl_status get_vectors(sl_recall *recall, uint64_t id, size_t size, size_t *count) {
    *count = 1;
    if (!recall->multi) return sl_index_get(recall->index, &id, 1, recall->dtype, recall->vectors);
    for (;;) {
        const size_t room = recall->vector_room / size;
        SL_TRY(sl_index_get_all(recall->index, id, recall->dtype, recall->vectors, room, count));
        if (*count <= room) return SL_OK;
        sl_status status = SL_OK;
        recall->vectors =
            sl_mem_grow(&recall->allocator, recall->vectors, &recall->vector_room, *count * size, 1, &status);
        SL_TRY(status);
    }
}

/* The best score of an id's vectors. */
static sl_status score_best(sl_recall *recall, const void *query, uint64_t id, double *best) {
    const size_t size = recall->dim * sl_dtype_size(recall->dtype);
    size_t count;
    SL_TRY(get_vectors(recall, id, size, &count));
    for (size_t i = 0; i < count; i++) {
        const void *vector = (const char *)recall->vectors + i * size;
        double score;
        SL_TRY(sl_score(recall->metric, recall->dtype, vector, query, recall->dim, &score));
        if (i == 0 || (recall->metric == SL_METRIC_L2 ? score < *best : score > *best)) *best = score;
    }
    return SL_OK;
}

sl_status sl_recall_scores(sl_recall *recall, const sl_request *request, const uint64_t *ids, size_t count,
                           float *scores) {
    if (!request->vector) return sl_fail(SL_EINVAL, "the request's vector is NULL; scores of recall need one");
    SL_TRY(sl_index_accepts(recall->index, request->dtype));
    SL_TRY(sl_vector_check(recall->metric, request->dtype, request->vector, recall->dim));
    const void *query = request->vector;
    if (request->dtype != recall->dtype) {
        SL_TRY(sl_convert(request->vector, request->dtype, recall->query, recall->dtype, recall->dim));
        query = recall->query;
    }
    for (size_t i = 0; i < count; i++) {
        double score = (double)NAN;
        sl_status status = score_best(recall, query, ids[i], &score);
        if (status != SL_OK && status != SL_ENOTFOUND) return status;
        scores[i] = (float)score;
    }
    return SL_OK;
}
