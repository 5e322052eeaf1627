#include "hnsw/search/candidate_stream.h"

#include "hnsw/search/allowed.h"
#include "hnsw/search/filter.h"
#include "hnsw/search/score_block.h"

/* Candidates that the pool has room for at first. */
enum { FIRST_EF = 2048 };
/* A walk's evaluation costs as much as WALK_PRICE evaluations of a scan. Each settled candidate takes about EACH
 * evaluations of the walk. */
enum { WALK_PRICE = 2, EACH = 16 };
/* Rows to prefetch ahead. */
enum { AHEAD = 16 };
/* Places of a block, which whole words of a bitmap fill. */
enum { ROOM = SL_SCORE_BLOCK + 64 };

void sl_candidate_stream_end_query(sl_candidate_stream *stream) {
    SL_FREE_ARRAY(&stream->allocator, stream->rest, stream->rest_room);
    stream->rest = NULL;
    stream->rest_count = stream->rest_room = 0;
}

void sl_candidate_stream_free(sl_candidate_stream *stream) {
    sl_candidate_stream_end_query(stream);
    SL_FREE_ARRAY(&stream->allocator, stream->settled, stream->room);
    stream->settled = NULL;
    stream->count = stream->room = 0;
}

static sl_allowed current_allowed(const sl_candidate_stream *stream, const sl_graph *graph) {
    return stream->params->filter ? sl_filter_allowed(stream->params->filter, graph) : sl_allowed_all(graph);
}

sl_status sl_candidate_stream_begin(sl_candidate_stream *stream, sl_walk *walk, const sl_search_params *params,
                                    sl_range start) {
    size_t seeds = start.end > start.first ? start.end - start.first : 0;
    stream->allocator = walk->allocator;
    stream->params = params;
    stream->end = SL_STREAM_OPEN;
    stream->count = stream->rest_count = 0;
    stream->scanned = 0;
    SL_TRY(sl_walk_reserve(walk, seeds > FIRST_EF ? seeds : FIRST_EF));
    walk->stop = 0;
    sl_walk_begin(walk, start, walk->pool_ef, &stream->turn);
    return SL_OK;
}

/* ---------------------------------------------------------------------------------------------------------------
 * Settled candidates
 * ------------------------------------------------------------------------------------------------------------- */

static sl_status reserve_settled(sl_candidate_stream *stream, size_t more) {
    size_t need = stream->count + more;
    if (need <= stream->room) return SL_OK;
    sl_status status = SL_OK;
    stream->settled = sl_mem_grow(&stream->allocator, stream->settled, &stream->room, need > FIRST_EF ? need : FIRST_EF,
                                  sizeof *stream->settled, &status);
    return status;
}

/* Inserts a candidate into the settled ones. Most candidates arrive in falling order. */
static void insert_settled(sl_candidate_stream *stream, uint64_t key) {
    uint64_t *settled = stream->settled;
    size_t low = 0, high = stream->count;
    if (high && settled[high - 1] > key) low = high;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (settled[middle] > key)
            low = middle + 1;
        else
            high = middle;
    }
    memmove(settled + low + 1, settled + low, (stream->count - low) * sizeof *settled);
    settled[low] = key;
    stream->count++;
}

static void settle_if_allowed(sl_candidate_stream *stream, const sl_graph *graph, uint64_t key) {
    const sl_search_params *params = stream->params;
    uint32_t node = sl_pool_id(key);
    if (!sl_is_allowed(&stream->allowed, node)) return;
    if (!sl_has_id_filter(params) || sl_accepts_id(params, sl_id_of(graph, node))) insert_settled(stream, key);
}

/* Returns whether the `wanted` best are settled, if the best of the other candidates has this score. */
static int are_settled(const sl_candidate_stream *stream, size_t wanted, float score) {
    return stream->count >= wanted && (!wanted || sl_pool_score(stream->settled[wanted - 1]) >= score);
}

size_t sl_candidate_stream_take(sl_candidate_stream *stream, sl_walk *walk, size_t most) {
    size_t count = most < stream->count ? most : stream->count;
    sl_pool *pool = &walk->pool;
    stream->count -= count;
    memcpy(pool->keys, stream->settled, count * sizeof *pool->keys);
    memmove(stream->settled, stream->settled + count, stream->count * sizeof *stream->settled);
    pool->size = count;
    pool->sorted = 1;
    return count;
}

/* ---------------------------------------------------------------------------------------------------------------
 * The walk
 * ------------------------------------------------------------------------------------------------------------- */

/* Returns whether scoring all nodes costs less than walking on to `wanted` candidates, or no more than the walk has
 * cost so far. */
static int is_scan_cheaper(const sl_candidate_stream *stream, const sl_walk *walk, size_t wanted) {
    const sl_allowed *allowed = &stream->allowed;
    sl_filter_strategy strategy = stream->params->strategy;
    /* max_visits leaves too few evaluations for all nodes */
    if (allowed->count > walk->max_evaluations - walk->evaluations) return 0;
    if (!stream->params->filter) return WALK_PRICE * walk->evaluations >= allowed->count;
    if (strategy == SL_FILTER_EXACT || strategy == SL_FILTER_WALK) return strategy == SL_FILTER_EXACT;
    double share = (double)allowed->count / (double)(allowed->n ? allowed->n : 1);
    double ahead = stream->count < wanted ? (double)(wanted - stream->count) * EACH : 0;
    return WALK_PRICE * ((double)walk->evaluations * share + ahead) >= (double)allowed->count * share;
}

/* Returns why the walk stops, or OPEN if it goes on. Its best unexpanded candidate has this score. */
static sl_candidate_stream_end walk_state(const sl_candidate_stream *stream, const sl_walk *walk, size_t wanted,
                                          float score) {
    if (are_settled(stream, wanted, score)) return SL_STREAM_ENOUGH;
    if (sl_walk_is_over_budget(walk)) return SL_STREAM_OVER_BUDGET;
    return is_scan_cheaper(stream, walk, wanted) ? SL_STREAM_COSTLY : SL_STREAM_OPEN;
}

/* Pops the candidate to expand next, and settles it. Returns 0 if the walk stops. */
static int pop_next(sl_candidate_stream *stream, sl_walk *walk, size_t wanted, uint32_t *next) {
    sl_pool *pool = &walk->pool;
    size_t place = sl_pool_pop_place(pool);
    if (place == SL_NO_PLACE) {
        stream->end = SL_STREAM_EXHAUSTED;
        return 0;
    }
    const float score = pool->popped_score;
    *next = pool->candidates.ids[place];
    stream->end = walk_state(stream, walk, wanted, score);
    if (stream->end == SL_STREAM_OPEN)
        settle_if_allowed(stream, walk->graph, sl_pool_key(score, *next));
    else
        sl_pool_offer(pool, &score, next, 1);
    return stream->end == SL_STREAM_OPEN;
}

/* Makes room for the candidates of two turns, and for one candidate that is offered again. */
static sl_status reserve_turns(sl_candidate_stream *stream, sl_walk *walk) {
    SL_TRY(reserve_settled(stream, SL_TURN_WIDTH));
    if (walk->pool.candidates.count + 2 * SL_TURN_IDS + 1 <= walk->pool.room) return SL_OK;
    return sl_walk_grow_pool(walk);
}

/* Continues the walk until it stops. When this returns, the last turn is complete. */
static sl_status continue_walk(sl_candidate_stream *stream, sl_walk *walk, size_t wanted) {
    uint32_t next[SL_TURN_WIDTH];
    sl_status status = SL_OK;
    size_t next_count;
    do {
        next_count = 0;
        if (status == SL_OK) status = reserve_turns(stream, walk);
        while (status == SL_OK && next_count < SL_TURN_WIDTH && pop_next(stream, walk, wanted, &next[next_count]))
            next_count++;
    } while (sl_walk_take_turn(walk, &stream->turn, next, next_count));
    return status;
}

/* ---------------------------------------------------------------------------------------------------------------
 * Nodes that the walk has not visited
 * ------------------------------------------------------------------------------------------------------------- */

static void sift_down(uint64_t *heap, size_t size, size_t at) {
    uint64_t key = heap[at];
    for (size_t child; (child = 2 * at + 1) < size; at = child) {
        if (child + 1 < size && heap[child + 1] > heap[child]) child++;
        if (heap[child] <= key) break;
        heap[at] = heap[child];
    }
    heap[at] = key;
}

static uint64_t pop_rest(sl_candidate_stream *stream) {
    uint64_t best = stream->rest[0];
    stream->rest[0] = stream->rest[--stream->rest_count];
    if (stream->rest_count) sift_down(stream->rest, stream->rest_count, 0);
    return best;
}

/* Moves the walk's unexpanded candidates to `rest`, and removes all nodes that it has visited from `left`. A candidate
 * that was offered again is in the pool twice. */
static void keep_unexpanded(sl_candidate_stream *stream, const sl_candidates *all, uint64_t *left) {
    const sl_allowed of = {.bits = left, .n = stream->allowed.n};
    for (size_t i = 0; i < all->count; i++)
        if (all->open[i] != -INFINITY && sl_is_allowed(&of, all->ids[i]))
            stream->rest[stream->rest_count++] = sl_pool_key(all->scores[i], all->ids[i]);
    for (size_t i = 0; i < all->count; i++)
        if (all->ids[i] < of.n) left[all->ids[i] / 64] &= ~((uint64_t)1 << all->ids[i] % 64);
}

/* Drops NaN scores, because they come from damaged rows. */
static void keep_scored(sl_candidate_stream *stream, const float *scores, const uint32_t *nodes, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (scores[i] == scores[i]) stream->rest[stream->rest_count++] = sl_pool_key(scores[i], nodes[i]);
}

static void score_left(sl_candidate_stream *stream, sl_walk *walk, const sl_allowed *of) {
    const sl_row_scorer scorer = sl_row_scorer_of(walk->graph->kernels, walk->codec, &walk->query, AHEAD);
    uint32_t nodes[ROOM + SL_SCORE_PAD] = {0};
    float scores[ROOM + SL_SCORE_PAD];
    sl_range left = {0, of->n};
    while (left.first < left.end) {
        size_t count = sl_allowed_list(of, &left, nodes, ROOM);
        sl_score_block(&scorer, nodes, count, count, scores);
        walk->evaluations += count;
        keep_scored(stream, scores, nodes, count);
    }
}

/* Copies the allowed bits at the start, because another process may delete nodes meanwhile. */
static sl_status score_all_left(sl_candidate_stream *stream, sl_walk *walk) {
    size_t words = (stream->allowed.n + 63) / 64;
    void *block;
    sl_status status = SL_OK;
    SL_TRY(sl_mem_alloc_raw(&stream->allocator, words * sizeof(uint64_t), &block));
    uint64_t *left = block;
    for (size_t w = 0; w < words; w++)
        left[w] = sl_allowed_word(&stream->allowed, w);
    const sl_allowed of = {.bits = left, .n = stream->allowed.n};
    size_t most = sl_allowed_count(&of, (sl_range){0, of.n});
    stream->rest = sl_mem_grow(&stream->allocator, stream->rest, &stream->rest_room, most ? most : 1,
                               sizeof *stream->rest, &status);
    if (status != SL_OK) goto end;
    stream->rest_count = 0;
    keep_unexpanded(stream, &walk->pool.candidates, left);
    score_left(stream, walk, &of);
    for (size_t i = stream->rest_count / 2; i-- > 0;)
        sift_down(stream->rest, stream->rest_count, i);
    stream->scanned = 1;
end:
    sl_mem_free(&stream->allocator, block, words * sizeof(uint64_t));
    return status;
}

sl_status sl_candidate_stream_settle(sl_candidate_stream *stream, sl_walk *walk, size_t wanted) {
    const sl_graph *graph = walk->graph;
    stream->allowed = current_allowed(stream, graph);
    if (!stream->scanned) {
        stream->end = SL_STREAM_OPEN;
        SL_TRY(continue_walk(stream, walk, wanted));
        if (stream->end == SL_STREAM_ENOUGH || stream->end == SL_STREAM_OVER_BUDGET) return SL_OK;
        SL_TRY(score_all_left(stream, walk));
    }
    while (stream->rest_count && !are_settled(stream, wanted, sl_pool_score(stream->rest[0]))) {
        SL_TRY(reserve_settled(stream, 1));
        settle_if_allowed(stream, graph, pop_rest(stream));
    }
    return SL_OK;
}
