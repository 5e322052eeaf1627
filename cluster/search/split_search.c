#include "cluster/search/split_search.h"

#include "base/clock.h"
#include "base/id_hash.h"
#include "base/thread.h"
#include "cluster/search/parts.h"
#include "distance/codec/vector_check.h"

#include <math.h>
#include <string.h>

struct sl_split_searcher {
    const sl_comm *comm;
    sl_allocator allocator;
    sl_split split;
    sl_held_parts held;
    size_t threads;
    sl_router **routers; /* one per thread; NULL in slices */
};

static sl_status create_routers(sl_split_searcher *searcher) {
    sl_status status = SL_OK;
    if (searcher->split.facts.kind == SL_SPLIT_SLICES) return SL_OK;
    searcher->routers = sl_mem_array(&searcher->allocator, searcher->threads, sizeof *searcher->routers, &status);
    for (size_t i = 0; status == SL_OK && i < searcher->threads; i++)
        status = sl_router_create(&searcher->split.cells, &searcher->routers[i]);
    return status;
}

sl_status sl_split_searcher_create(const sl_comm *comm, const char *folder, sl_place place, size_t threads,
                                   sl_split_searcher **out) {
    const sl_allocator allocator = sl_allocator_of(NULL);
    sl_status status = SL_OK;
    sl_split_searcher *searcher = sl_mem_array(&allocator, 1, sizeof *searcher, &status);
    *out = NULL;
    if (status == SL_OK) {
        *searcher = (sl_split_searcher){.comm = comm, .allocator = allocator, .threads = sl_thread_count(threads)};
        status = sl_split_read(folder, &allocator, &searcher->split);
    }
    if (status == SL_OK) status = sl_held_parts_open(comm, &searcher->split, folder, place, threads, &searcher->held);
    if (status == SL_OK) status = create_routers(searcher);
    status = sl_comm_agree(comm, status);
    if (status == SL_OK)
        *out = searcher;
    else
        sl_split_searcher_free(searcher);
    return status;
}

void sl_split_searcher_free(sl_split_searcher *searcher) {
    if (!searcher) return;
    const sl_allocator allocator = searcher->allocator;
    for (size_t i = 0; searcher->routers && i < searcher->threads; i++)
        sl_router_free(searcher->routers[i]);
    SL_FREE_ARRAY(&allocator, searcher->routers, searcher->threads);
    if (searcher->held.split) sl_held_parts_close(&searcher->held);
    sl_split_free(&searcher->split);
    SL_FREE(&allocator, searcher);
}

const sl_split *sl_split_searcher_split(const sl_split_searcher *searcher) {
    return &searcher->split;
}

/* ---- A batch of this rank's queries ---- */

typedef struct batch {
    sl_split_searcher *searcher;
    const sl_split_params *params;
    const uint8_t *queries; /* of the batch */
    sl_dtype dtype;
    size_t row, count, room; /* row: bytes of a query */
    uint64_t *ids;           /* (count, k) */
    float *scores;
    sl_split_counts *counts;
    /* owned, with room for `room` queries */
    sl_route *routes; /* parts of each */
    size_t *route_counts, *routing;
    float *bounds;
    size_t *sizes, *places; /* one per rank */
    uint64_t *merged_ids;   /* k */
    float *merged_scores;
    uint64_t *seen; /* hash table of the merged ids: seen_size places, a power of two; SL_NO_ID: free */
    size_t seen_size;
} batch;

static size_t parts_of(const batch *batch) {
    return batch->searcher->split.facts.parts;
}

/* Places of a hash table of k ids, half of them free or more. */
static size_t hash_size(size_t k) {
    size_t size = 2;
    while (size / 2 < k && size <= SIZE_MAX / 4)
        size *= 2;
    return size;
}

static sl_status batch_alloc(batch *batch) {
    const sl_allocator *allocator = &batch->searcher->allocator;
    const size_t room = batch->room, ranks = batch->searcher->comm->ranks, k = batch->params->k;
    sl_status status = SL_OK;
    batch->routes = sl_mem_array(allocator, room * parts_of(batch), sizeof *batch->routes, &status);
    batch->route_counts = sl_mem_array(allocator, room, sizeof *batch->route_counts, &status);
    batch->routing = sl_mem_array(allocator, room, sizeof *batch->routing, &status);
    batch->bounds = sl_mem_array(allocator, room, sizeof *batch->bounds, &status);
    batch->sizes = sl_mem_array(allocator, ranks, sizeof *batch->sizes, &status);
    batch->places = sl_mem_array(allocator, ranks, sizeof *batch->places, &status);
    batch->merged_ids = sl_mem_array(allocator, k, sizeof *batch->merged_ids, &status);
    batch->merged_scores = sl_mem_array(allocator, k, sizeof *batch->merged_scores, &status);
    batch->seen_size = hash_size(k);
    batch->seen = sl_mem_array(allocator, batch->seen_size, sizeof *batch->seen, &status);
    return status;
}

static void batch_free(batch *batch) {
    const sl_allocator *allocator = &batch->searcher->allocator;
    const size_t room = batch->room, ranks = batch->searcher->comm->ranks, k = batch->params->k;
    SL_FREE_ARRAY(allocator, batch->routes, room * parts_of(batch));
    SL_FREE_ARRAY(allocator, batch->route_counts, room);
    SL_FREE_ARRAY(allocator, batch->routing, room);
    SL_FREE_ARRAY(allocator, batch->bounds, room);
    SL_FREE_ARRAY(allocator, batch->sizes, ranks);
    SL_FREE_ARRAY(allocator, batch->places, ranks);
    SL_FREE_ARRAY(allocator, batch->merged_ids, k);
    SL_FREE_ARRAY(allocator, batch->merged_scores, k);
    SL_FREE_ARRAY(allocator, batch->seen, batch->seen_size);
}

/* Chooses the parts of each query: all of them in slices. */
static void route_batch(batch *batch) {
    sl_split_searcher *searcher = batch->searcher;
    const size_t parts = parts_of(batch);
    const sl_opening opening = sl_split_opening(&searcher->split);
#pragma omp parallel for schedule(dynamic, 8) num_threads((int)searcher->threads) if (searcher->threads > 1)
    for (size_t q = 0; q < batch->count; q++) {
        sl_route *routes = batch->routes + q * parts;
        batch->routing[q] = 0;
        batch->route_counts[q] = parts;
        if (searcher->routers)
            batch->route_counts[q] =
                sl_router_find(searcher->routers[sl_thread_number()], batch->queries + q * batch->row, batch->dtype,
                               opening, routes, &batch->routing[q]);
        else
            for (size_t p = 0; p < parts; p++)
                routes[p] = (sl_route){.part = (uint32_t)p};
    }
    for (size_t q = 0; q < batch->count; q++) {
        batch->bounds[q] = -INFINITY;
        batch->counts->routing += batch->routing[q];
        batch->counts->evaluations += batch->routing[q];
    }
}

/* Returns whether a round asks the query's route i. Neighbourhoods ask the nearest part in round 0, the others in round
 * 1. */
static int is_asked(const batch *batch, size_t q, size_t i, int round) {
    if (!batch->searcher->routers) return round == 0;
    if (i == 0) return round == 0;
    return round == 1 && batch->routes[q * parts_of(batch) + i].reach <= batch->params->reach;
}

/* Makes the requests of a round, one message for each rank. */
static sl_status make_requests(batch *batch, int round, sl_parts *out) {
    const sl_split_searcher *searcher = batch->searcher;
    const size_t parts = parts_of(batch), ranks = searcher->comm->ranks, size = sl_part_request_size(batch->row);
    memset(batch->sizes, 0, ranks * sizeof *batch->sizes);
    for (size_t q = 0; q < batch->count; q++)
        for (size_t i = 0; i < batch->route_counts[q]; i++)
            if (is_asked(batch, q, i, round))
                batch->sizes[sl_rank_of_part(batch->routes[q * parts + i].part, parts, ranks)] += size;
    SL_TRY(sl_parts_create(&searcher->allocator, ranks, batch->sizes, out));
    memcpy(batch->places, out->at, ranks * sizeof *batch->places);
    for (size_t q = 0; q < batch->count; q++)
        for (size_t i = 0; i < batch->route_counts[q]; i++) {
            if (!is_asked(batch, q, i, round)) continue;
            const sl_route *route = &batch->routes[q * parts + i];
            const sl_part_request request = {
                .query = (uint32_t)q, .part = route->part, .cell = route->cell, .bound = batch->bounds[q]};
            size_t *place = &batch->places[sl_rank_of_part(request.part, parts, ranks)];
            memcpy(out->data + *place, &request, sizeof request);
            memcpy(out->data + *place + sizeof request, batch->queries + q * batch->row, batch->row);
            *place += size;
            batch->counts->asked++;
        }
    return SL_OK;
}

/* Answers the requests of all ranks. Message r of *out goes back to rank r. */
static sl_status answer_requests(batch *batch, const sl_parts *requests, sl_parts *out) {
    sl_split_searcher *searcher = batch->searcher;
    const size_t ranks = searcher->comm->ranks, size = sl_part_request_size(batch->row), k = batch->params->k;
    for (size_t r = 0; r < ranks; r++)
        batch->sizes[r] = sl_part_size(requests, r) / size * sl_part_answer_size(k);
    SL_TRY(sl_parts_create(&searcher->allocator, ranks, batch->sizes, out));
    const sl_part_requests block = {.data = requests->data,
                                    .count = requests->at[ranks] / size,
                                    .row = batch->row,
                                    .dtype = batch->dtype,
                                    .k = k,
                                    .ef = batch->params->ef,
                                    .stop = batch->params->stop};
    return sl_held_parts_answer(&searcher->held, &block, out->data);
}

static int is_better(sl_metric metric, float a, uint64_t a_id, float b, uint64_t b_id) {
    if (a != b) return metric == SL_METRIC_L2 ? a < b : a > b;
    return a_id < b_id;
}

/* Adds an id to the merged ones. Returns 0 if it was there already. */
static int add_id(batch *batch, uint64_t id) {
    const size_t mask = batch->seen_size - 1;
    size_t at = (size_t)sl_id_hash(sl_id_seed(), id) & mask;
    while (batch->seen[at] != SL_NO_ID) {
        if (batch->seen[at] == id) return 0;
        at = (at + 1) & mask;
    }
    batch->seen[at] = id;
    return 1;
}

/* Merges an answer's results into those of its query. An id comes once. */
static void merge_results(batch *batch, size_t q, const uint64_t *ids, const float *scores) {
    const size_t k = batch->params->k;
    const sl_metric metric = (sl_metric)batch->searcher->split.facts.metric;
    uint64_t *mine = batch->ids + q * k;
    float *mine_scores = batch->scores + q * k;
    size_t a = 0, b = 0, count = 0;
    memset(batch->seen, 0xff, batch->seen_size * sizeof *batch->seen);
    while (count < k) {
        const int has_a = a < k && mine[a] != SL_NO_ID, has_b = b < k && ids[b] != SL_NO_ID;
        if (!has_a && !has_b) break;
        const int first = !has_b || (has_a && !is_better(metric, scores[b], ids[b], mine_scores[a], mine[a]));
        const uint64_t id = first ? mine[a] : ids[b];
        const float score = first ? mine_scores[a] : scores[b];
        a += (size_t)first;
        b += (size_t)!first;
        if (!add_id(batch, id)) continue;
        batch->merged_ids[count] = id;
        batch->merged_scores[count++] = score;
    }
    memcpy(mine, batch->merged_ids, count * sizeof *mine);
    memcpy(mine_scores, batch->merged_scores, count * sizeof *mine_scores);
}

/* Makes the reaches of the further parts of a query from what its first part found, if that found anything. */
static void adjust_reaches(batch *batch, size_t q, const uint16_t *others) {
    const size_t k = batch->params->k;
    const sl_metric metric = (sl_metric)batch->searcher->split.facts.metric;
    size_t found = 0;
    while (found < k && batch->ids[q * k + found] != SL_NO_ID)
        found++;
    if (found)
        sl_reaches_adjust(metric, others, found, batch->scores[q * k + found - 1], batch->routes + q * parts_of(batch),
                          batch->route_counts[q]);
}

static void take_answers(batch *batch, const sl_parts *answers, int round) {
    const size_t k = batch->params->k, size = sl_part_answer_size(k);
    const size_t count = answers->at[answers->ranks] / size;
    for (size_t i = 0; i < count; i++) {
        const uint8_t *at = answers->data + i * size;
        sl_part_answer answer;
        memcpy(&answer, at, sizeof answer);
        const uint64_t *ids = (const uint64_t *)(const void *)(at + sizeof answer);
        batch->bounds[answer.query] = answer.beam;
        batch->counts->evaluations += answer.evaluations;
        const float *scores = (const float *)(const void *)(ids + k);
        merge_results(batch, answer.query, ids, scores);
        if (batch->searcher->routers && round == 0)
            adjust_reaches(batch, answer.query, (const uint16_t *)(const void *)(scores + k));
    }
}

/* One round of a batch: requests out, answers back. */
static sl_status run_round(batch *batch, int round) {
    const sl_comm *comm = batch->searcher->comm;
    const sl_allocator *allocator = &batch->searcher->allocator;
    sl_parts requests = {.data = NULL}, asked = {.data = NULL}, answers = {.data = NULL}, got = {.data = NULL};
    sl_status status = sl_comm_agree(comm, make_requests(batch, round, &requests));
    if (status == SL_OK) status = sl_comm_exchange(comm, &requests, allocator, &asked);
    sl_parts_free(&requests);
    if (status == SL_OK) status = sl_comm_agree(comm, answer_requests(batch, &asked, &answers));
    sl_parts_free(&asked);
    if (status == SL_OK) status = sl_comm_exchange(comm, &answers, allocator, &got);
    sl_parts_free(&answers);
    if (status == SL_OK) take_answers(batch, &got, round);
    sl_parts_free(&got);
    return status;
}

/* Returns whether a later round asks for this query. */
static int goes_on(const batch *batch, size_t q) {
    for (size_t i = 1; i < batch->route_counts[q]; i++)
        if (is_asked(batch, q, i, 1)) return 1;
    return 0;
}

static sl_status run_batch(batch *batch, float *latencies) {
    const int64_t start = sl_now_ns();
    route_batch(batch);
    SL_TRY(run_round(batch, 0));
    const float first = (float)(sl_now_ns() - start) * 1e-3f;
    if (batch->searcher->routers) SL_TRY(run_round(batch, 1));
    const float last = (float)(sl_now_ns() - start) * 1e-3f;
    for (size_t q = 0; latencies && q < batch->count; q++)
        latencies[q] = goes_on(batch, q) ? last : first;
    for (size_t i = 0; i < batch->count * batch->params->k; i++)
        batch->counts->results += batch->ids[i] != SL_NO_ID;
    return SL_OK;
}

sl_status sl_split_check_queries(const sl_split *split, const sl_split_queries *queries) {
    const size_t row = split->facts.dim * sl_dtype_size(queries->dtype);
    for (size_t q = 0; q < queries->count; q++) {
        sl_status status = sl_vector_check((sl_metric)split->facts.metric, queries->dtype,
                                           (const uint8_t *)queries->rows + q * row, split->facts.dim);
        if (status != SL_OK) return sl_fail_in(status, "query %zu", q);
    }
    return SL_OK;
}

/* Makes the batch's memory and the searchers. */
static sl_status prepare(batch *batch) {
    const sl_split_params *params = batch->params;
    if (!params->k || !params->batch) return sl_fail(SL_EINVAL, "k or batch is 0; give at least 1");
    SL_TRY(sl_held_parts_prepare(&batch->searcher->held, params->ef > params->k ? params->ef : params->k));
    return batch_alloc(batch);
}

sl_status sl_split_search(sl_split_searcher *searcher, const sl_split_params *params, const sl_split_queries *queries,
                          const sl_split_results *out) {
    const size_t row = searcher->split.facts.dim * sl_dtype_size(queries->dtype), nq = queries->count, k = params->k;
    batch batch = {.searcher = searcher,
                   .params = params,
                   .dtype = queries->dtype,
                   .row = row,
                   .room = nq < params->batch ? nq : params->batch,
                   .counts = out->counts};
    *out->counts = (sl_split_counts){.results = 0};
    for (size_t i = 0; i < nq * k; i++) {
        out->ids[i] = SL_NO_ID;
        out->scores[i] = NAN;
    }
    sl_status status = sl_comm_agree(searcher->comm, prepare(&batch));
    uint64_t batches = params->batch ? nq / params->batch + (nq % params->batch != 0) : 0;
    if (status == SL_OK) status = sl_comm_max(searcher->comm, &batches);
    for (size_t b = 0; status == SL_OK && b < batches; b++) {
        const size_t first = b * params->batch < nq ? b * params->batch : nq;
        batch.count = nq - first < params->batch ? nq - first : params->batch;
        batch.queries = (const uint8_t *)queries->rows + first * row;
        batch.ids = out->ids + first * k;
        batch.scores = out->scores + first * k;
        status = run_batch(&batch, out->latencies ? out->latencies + first : NULL);
    }
    batch_free(&batch);
    return status;
}
