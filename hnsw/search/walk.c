#include "hnsw/search/walk.h"

#include "distance/codec/encode.h"
#include "distance/double.h"
#include "hnsw/graph/entry.h"
#include "hnsw/graph/partition.h"
#include "hnsw/graph/vectors.h"
#include "hnsw/search/score_block.h"

#include <math.h>
#include <string.h>

enum { PREFETCH_LINES = 4, AHEAD = 4 };

/* Rows scored at a time, and cache lines prefetched meanwhile. A core that these numbers suit waits for at most some
 * two dozen lines of the first-level cache at a time, and further requests hold up all that follows. Prefetching a
 * whole turn's rows at once would therefore delay their scoring. Prefetches into the second-level cache hold nothing
 * up. */
enum { STEP = 16, LINES = 16 };

/* Kernels store whole registers, past the end of their output. */
enum { PAD = 16 };

_Static_assert(SL_TURN_WIDTH * 2 * SL_MAX_M + SL_TURN_EXTRA * SL_MAX_M <= SL_TURN_IDS, "a turn fits the pool's room");
_Static_assert(SL_NO_LINK == SL_NONE, "the end of a list");

static int has_coarse(const sl_graph *graph) {
    return sl_codec_of_walks(graph) != &graph->codec;
}

/* Returns the most ids of one turn. */
static size_t turn_ids(const sl_graph *graph) {
    return SL_TURN_WIDTH * graph->m0 + SL_TURN_EXTRA * SL_MAX_M + PAD;
}

static size_t query_bytes(const sl_graph *graph) {
    if (!has_coarse(graph)) return sl_query_size(&graph->codec);
    return sl_coarse_query_size(&graph->coarse) + sl_query4_size(&graph->codec);
}

sl_status sl_walk_init(sl_walk *walk, const sl_graph *graph, size_t max_ef) {
    *walk = (sl_walk){.graph = graph,
                      .upper = &graph->upper,
                      .codec = sl_codec_of_walks(graph),
                      .allocator = graph->allocator,
                      .max_ef = max_ef,
                      .pool_ef = max_ef,
                      .max_evaluations = SIZE_MAX,
                      .bound = -INFINITY,
                      .beam_score = -INFINITY};
    const sl_allocator *allocator = &walk->allocator;
    sl_status status;
    void *block;
    size_t covers = graph->capacity > graph->n ? graph->capacity : graph->n, row = turn_ids(graph);
    SL_TRY_GOTO(sl_visited_init(&walk->visited, allocator, covers, 16 * max_ef + SL_PARTITION_ROWS, row), fail);
    SL_TRY_GOTO(sl_pool_init(&walk->pool, allocator, &graph->kernels->walk, max_ef), fail);
    SL_TRY_GOTO(sl_mem_alloc(allocator, 3 * row * sizeof(uint32_t), &block), fail);
    walk->nodes = block;
    walk->scores = (float *)(void *)(walk->nodes + row);
    walk->slots = (uint32_t *)(void *)(walk->scores + row);
    SL_TRY_GOTO(sl_mem_alloc(allocator, query_bytes(graph), &walk->query_buffer), fail);
    SL_TRY_GOTO(sl_mem_alloc(allocator, 2 * graph->codec.dim * sizeof(float), &block), fail);
    walk->floats = block;
    return SL_OK;
fail:
    sl_walk_free(walk);
    return status;
}

void sl_walk_free(sl_walk *walk) {
    const sl_allocator *allocator = &walk->allocator;
    const sl_graph *graph = walk->graph;
    if (!graph) return;
    sl_visited_free(&walk->visited, allocator);
    sl_pool_free(&walk->pool, allocator, walk->pool_ef);
    SL_FREE_ARRAY(allocator, walk->nodes, 3 * turn_ids(graph));
    sl_mem_free(allocator, walk->query_buffer, query_bytes(graph));
    SL_FREE_ARRAY(allocator, walk->floats, 2 * graph->codec.dim);
    walk->graph = NULL;
}

sl_status sl_walk_reserve(sl_walk *walk, size_t ef) {
    sl_pool larger;
    if (ef <= walk->pool_ef) return SL_OK;
    if (ef < 2 * walk->pool_ef) ef = 2 * walk->pool_ef;
    SL_TRY(sl_pool_init(&larger, &walk->allocator, &walk->graph->kernels->walk, ef));
    sl_pool_free(&walk->pool, &walk->allocator, walk->pool_ef);
    walk->pool = larger;
    walk->pool_ef = ef;
    return SL_OK;
}

sl_status sl_walk_grow_pool(sl_walk *walk) {
    SL_TRY(sl_pool_grow(&walk->pool, &walk->allocator, walk->pool_ef, 2 * walk->pool_ef));
    walk->pool_ef *= 2;
    return SL_OK;
}

static void encode_floats(sl_walk *walk) {
    const sl_codec *codec = &walk->graph->codec;
    double norm2 = sl_dot_double(walk->floats, walk->floats, codec->dim);
    sl_encode_query4(codec, walk->floats, walk->query_buffer, walk->floats + codec->dim, &walk->query4, norm2);
    walk->query_norm2 = (float)norm2;
    walk->query = walk->query4.rows[0];
}

/* Encodes walk->floats over the coarse rows. Returns |q|^2. */
static double encode_coarse(sl_walk *walk) {
    const sl_graph *graph = walk->graph;
    double norm2;
    float *scratch = walk->floats + graph->codec.dim;
    memcpy(scratch, walk->floats, graph->codec.dim * sizeof *scratch);
    sl_coarse_encode_query(&graph->coarse, graph->kernels, scratch, walk->query_buffer, &walk->query, &norm2,
                           &walk->origin);
    return norm2;
}

/* Returns whether re-ranking scores all bits of the codes. */
static int reranks_all_bits(const sl_graph *graph) {
    const sl_codec *codec = &graph->codec;
    return codec->codes == SL_CODES_I4 ||
           (has_coarse(graph) && codec->dtype == SL_F32 && !sl_has(graph, SL_ARRAY_REFINE));
}

static void encode_codes(sl_walk *walk, sl_query query) {
    const sl_codec *codec = &walk->graph->codec;
    if (codec->codes == SL_CODES_I4) {
        sl_to_float(query.dtype, query.vector, walk->floats, codec->dim);
        encode_floats(walk);
    } else {
        sl_encode_query(codec, query.vector, query.dtype, walk->query_buffer, walk->floats, &walk->query,
                        &walk->query_norm2);
    }
    walk->origin = codec->metric == SL_METRIC_IP   ? 0
                   : codec->metric == SL_METRIC_L2 ? sl_codec_nearest(codec, walk->query_norm2)
                                                   : 1;
}

void sl_walk_set_query(sl_walk *walk, sl_query query, unsigned forms) {
    const sl_graph *graph = walk->graph;
    const sl_codec *codec = &graph->codec;
    if (!has_coarse(graph)) {
        encode_codes(walk, query);
        return;
    }
    sl_to_float(query.dtype, query.vector, walk->floats, codec->dim);
    double norm2 = forms & SL_ENCODE_WALK ? encode_coarse(walk) : sl_dot_double(walk->floats, walk->floats, codec->dim);
    walk->query_norm2 = (float)norm2;
    if (forms & SL_ENCODE_RERANK && reranks_all_bits(graph))
        sl_encode_query4(codec, walk->floats, (uint8_t *)walk->query_buffer + sl_coarse_query_size(&graph->coarse),
                         walk->floats + codec->dim, &walk->query4, norm2);
}

void sl_walk_partition_query(sl_walk *walk, sl_query query, void *buffer, float *floats, sl_query_code *out) {
    const sl_graph *graph = walk->graph;
    if (!reranks_all_bits(graph) || graph->partitions.codec.codes == SL_CODES_F32) {
        sl_partition_encode_query(graph, query.vector, query.dtype, buffer, floats, out);
        return;
    }
    *out = walk->query4.rest[0];
    out->bias_scale = graph->codec.metric == SL_METRIC_IP ? sqrtf(walk->query_norm2) : 1;
}

void sl_walk_set_query_node(sl_walk *walk, const sl_graph *of, uint32_t node) {
    const sl_graph *graph = walk->graph;
    if (has_coarse(graph)) {
        sl_coded_floats(of, node, walk->floats);
        walk->query_norm2 = (float)encode_coarse(walk);
    } else if (graph->codec.codes == SL_CODES_I4) {
        sl_coded_floats(of, node, walk->floats);
        encode_floats(walk);
    } else {
        sl_row_as_query(&of->codec, sl_row(of, node), walk->query_buffer, &walk->query);
    }
}

static inline void prefetch_each(const uint8_t *rows, size_t pitch, const uint32_t *nodes, size_t n, size_t bytes) {
    for (size_t i = 0; i < n; i++)
        sl_prefetch(rows + (size_t)nodes[i] * pitch, bytes);
}

static sl_ids no_ids(const sl_walk *walk) {
    return (sl_ids){walk->nodes, 0};
}

/* Returns whether rows have more than PREFETCH_LINES lines. The kernel prefetches the further lines itself. */
static int has_long_rows(const sl_code_rows *rows) {
    return rows->size > PREFETCH_LINES * SL_PREFETCH_LINE;
}

/* Prefetches the first PREFETCH_LINES lines of rows. The kernel prefetches the rest while it scores earlier rows. Most
 * rows have one or two lines, so the loops for these have constant bounds and no branch. */
static void prefetch_rows(const sl_code_rows *rows, const uint32_t *nodes, size_t n) {
    const uint8_t *base = rows->base;
    size_t pitch = rows->pitch, size = rows->size;
    if (pitch == SL_PREFETCH_LINE)
        prefetch_each(base, SL_PREFETCH_LINE, nodes, n, SL_PREFETCH_LINE);
    else if (pitch == 2 * SL_PREFETCH_LINE)
        prefetch_each(base, 2 * SL_PREFETCH_LINE, nodes, n, 2 * SL_PREFETCH_LINE);
    else
        prefetch_each(base, pitch, nodes, n, has_long_rows(rows) ? PREFETCH_LINES * SL_PREFETCH_LINE : size);
}

/* Collects and marks the unvisited neighbours of an id. Skips links that are no ids of the layer: they are damaged, or
 * lead to a node that the writer has yet to publish. */
static size_t collect_unvisited(sl_walk *walk, const sl_layer *layer, uint32_t id, uint32_t *ids) {
    const uint32_t *links = sl_layer_links(layer, id);
    if (!links) return 0;
    size_t count = layer->graph->kernels->unvisited(&walk->visited, links, layer->degree, layer->count, ids);
    walk->visited.count += count;
    walk->expansions++;
    walk->evaluations += count;
    return count;
}

static sl_row_scorer scorer_of(const sl_walk *walk, size_t ahead) {
    return sl_row_scorer_of(walk->graph->kernels, walk->codec, &walk->query, ahead);
}

/* Scores the nodes of an upper layer's slots into walk->scores. */
static void score_slots(sl_walk *walk, const sl_layer *layer, const uint32_t *slots, size_t count) {
    const sl_graph *graph = layer->graph;
    const sl_row_scorer scorer = scorer_of(walk, AHEAD);
    for (size_t i = 0; i < count; i++) {
        uint32_t node = layer->upper->nodes[slots[i]];
        walk->nodes[i] = node < graph->n ? node : 0;
    }
    sl_score_block(&scorer, walk->nodes, count, count, walk->scores);
}

uint32_t sl_walk_descend(sl_walk *walk, sl_entry entry, uint32_t level) {
    const sl_graph *graph = walk->graph;
    const sl_upper *upper = walk->upper;
    if (entry.level == 0) return entry.node;
    uint32_t at = entry.slot;
    sl_layer top = sl_layer_in(graph, upper, entry.level);
    score_slots(walk, &top, &at, 1);
    float best = walk->scores[0];
    sl_layer bottom = sl_layer_in(graph, upper, 0);
    walk->evaluations++;
    for (uint32_t l = entry.level; l > level; l--) {
        sl_layer layer = sl_layer_in(graph, upper, l);
        for (uint32_t from = SL_NONE; from != at;) {
            from = at;
            const uint32_t *links = sl_layer_links(&layer, at);
            size_t count = links ? sl_links_known(&layer, links, walk->slots) : 0;
            score_slots(walk, &layer, walk->slots, count);
            walk->evaluations += count;
            for (size_t i = 0; i < count; i++)
                if (walk->scores[i] > best) {
                    best = walk->scores[i];
                    at = walk->slots[i];
                }
            /* The walk of layer 0 begins with these links. They arrive while the last neighbours here are scored. */
            if (l == 1 && level == 0) sl_walk_prefetch_links(&bottom, upper->nodes[at]);
        }
    }
    return level ? at : upper->nodes[at];
}

/* Returns how many rows are prefetched while STEP of them are scored. */
static size_t rows_a_step(const sl_code_rows *rows) {
    size_t lines = (rows->size + SL_PREFETCH_LINE - 1) / SL_PREFETCH_LINE;
    return LINES / (lines < PREFETCH_LINES ? lines : PREFETCH_LINES);
}

/* Scores nodes into walk->scores, and prefetches the rows of `next`: some with each STEP, and the rest at the end. */
static void score_prefetching(sl_walk *walk, sl_ids nodes, sl_ids next) {
    const sl_code_rows *rows = &walk->codec->rows;
    sl_row_scorer scorer = scorer_of(walk, has_long_rows(rows) ? AHEAD : 0);
    size_t each = rows_a_step(rows), prefetched = 0;
    scorer.prefetched = PREFETCH_LINES * SL_PREFETCH_LINE;
    for (size_t i = 0; i < nodes.count; i += STEP) {
        size_t left = nodes.count - i, some = left < STEP ? left : STEP;
        size_t more = next.count - prefetched < each ? next.count - prefetched : each;
        prefetch_rows(rows, next.ids + prefetched, more);
        prefetched += more;
        sl_score_block(&scorer, nodes.ids + i, some, left, walk->scores + i);
    }
    prefetch_rows(rows, next.ids + prefetched, next.count - prefetched);
}

/* Scores the ids of the last turn and offers them to the pool. On layer 0, where ids are nodes, prefetches the rows of
 * `next`. */
static void score_and_offer(sl_walk *walk, const sl_layer *layer, sl_ids found, sl_ids next) {
    if (layer->level)
        score_slots(walk, layer, found.ids, found.count);
    else
        score_prefetching(walk, found, next);
    if (!found.count) return;
    sl_pool_offer(&walk->pool, walk->scores, found.ids, found.count);
    if (walk->range_hits) sl_range_hits_add(walk->range_hits, &walk->allocator, walk->scores, found.ids, found.count);
}

void sl_walk_score(sl_walk *walk, const sl_layer *layer, sl_ids found, sl_ids next) {
    score_and_offer(walk, layer, found, next);
}

/* Marks start nodes as visited, from *first on, as many as a turn may have. Returns them. *first becomes the id after
 * them. */
static sl_ids mark_start_nodes(sl_walk *walk, const sl_layer *layer, size_t *first, size_t end) {
    size_t left = end - *first;
    sl_ids marked = {sl_visited_place(&walk->visited), left < layer->degree ? left : layer->degree};
    sl_visited_mark_run(&walk->visited, (uint32_t)*first, marked.count, marked.ids);
    walk->visited.count += marked.count;
    walk->evaluations += marked.count;
    *first += marked.count;
    return marked;
}

/* Scores the nodes of `start`, on layer 0 the entry point too: all nodes are reachable from there, and links lead one
 * way. */
static void score_start_nodes(sl_walk *walk, const sl_layer *layer, sl_range start) {
    uint32_t entry = layer->level ? SL_NONE : sl_entry_in(walk->graph, walk->upper).node;
    sl_ids waiting = no_ids(walk);
    for (size_t first = start.first; first < start.end;) {
        sl_ids next = mark_start_nodes(walk, layer, &first, start.end);
        score_and_offer(walk, layer, waiting, next);
        waiting = next;
    }
    if (entry < layer->count && (entry < start.first || entry >= start.end)) {
        size_t first = entry;
        sl_ids next = mark_start_nodes(walk, layer, &first, first + 1);
        score_and_offer(walk, layer, waiting, next);
        waiting = next;
    }
    score_and_offer(walk, layer, waiting, no_ids(walk));
}

/* Returns whether the popped candidate is too far away for its neighbours to matter: see sl_search_params.stop.
 * Compares distances: the origin less a score is half the squared distance under L2 and COSINE. */
static int is_too_far(const sl_walk *walk) {
    float near = sl_pool_kth_score(&walk->pool), popped = walk->pool.popped_score, stop = walk->stop;
    float origin = walk->origin;
    if (walk->graph->codec.metric == SL_METRIC_IP) return popped < near - stop * fabsf(near - origin);
    float farthest = (1 + stop) * (1 + stop) * (origin - near);
    return origin - popped > (farthest > 0 ? farthest : 0);
}

float sl_walk_stop_score(const sl_walk *walk) {
    const float near = sl_pool_kth_score(&walk->pool), stop = walk->stop, origin = walk->origin;
    if (walk->graph->codec.metric == SL_METRIC_IP) return near - stop * fabsf(near - origin);
    return origin - (1 + stop) * (1 + stop) * fmaxf(origin - near, 0);
}

/* Returns whether the walk ends at the popped candidate, by its stop or by its bound. */
static int is_at_end(const sl_walk *walk) {
    const sl_pool *pool = &walk->pool;
    return (pool->popped_score < walk->bound && pool->expanded > walk->bound_after) ||
           (walk->stop > 0 && is_too_far(walk));
}

/* Pipelines three steps, so that each reads memory that the last turn prefetched. The caller has chosen candidates and
 * prefetched their links. This turn reads the links of the candidates chosen before, and prefetches the rows they lead
 * to. It scores the rows that were prefetched before. */
static inline int step_walk(sl_walk *walk, const sl_layer *layer, sl_walk_turn *turn, const uint32_t *next,
                            size_t next_count) {
    sl_ids found = {sl_visited_place(&walk->visited), 0};
    for (size_t i = 0; i < turn->count; i++)
        found.count += collect_unvisited(walk, layer, turn->chosen[i], found.ids + found.count);
    score_and_offer(walk, layer, turn->waiting, found);
    if (!next_count && !turn->count && !turn->waiting.count) return 0;
    memcpy(turn->chosen, next, sizeof turn->chosen);
    turn->count = next_count;
    turn->waiting = found;
    return 1;
}

void sl_walk_layer(sl_walk *walk, uint32_t level, sl_range start, size_t ef) {
    sl_layer layer = sl_layer_in(walk->graph, walk->upper, level);
    sl_visited_clear(&walk->visited);
    sl_pool_start(&walk->pool, ef, walk->stop > 0 ? walk->stop_rank : 0);
    if (start.first >= layer.count) return;
    const int ends_early = walk->stop > 0 || walk->bound > -INFINITY;
    score_start_nodes(walk, &layer, start);
    uint32_t next[SL_TURN_WIDTH];
    sl_walk_turn turn = {.waiting = no_ids(walk)};
    size_t next_count;
    do {
        next_count = 0;
        while (next_count < SL_TURN_WIDTH && !sl_walk_is_over_budget(walk) &&
               (next[next_count] = sl_pool_pop(&walk->pool)) != SL_POOL_NONE) {
            if (ends_early && is_at_end(walk)) break;
            sl_walk_prefetch_links(&layer, next[next_count++]);
        }
    } while (step_walk(walk, &layer, &turn, next, next_count));
}

void sl_walk_begin(sl_walk *walk, sl_range start, size_t ef, sl_walk_turn *turn) {
    const sl_layer layer = sl_layer_in(walk->graph, walk->upper, 0);
    *turn = (sl_walk_turn){.waiting = no_ids(walk)};
    sl_visited_clear(&walk->visited);
    sl_pool_start(&walk->pool, ef, 0);
    if (start.first < layer.count) score_start_nodes(walk, &layer, start);
}

int sl_walk_take_turn(sl_walk *walk, sl_walk_turn *turn, const uint32_t *next, size_t next_count) {
    const sl_layer layer = sl_layer_in(walk->graph, walk->upper, 0);
    for (size_t i = 0; i < next_count; i++)
        sl_walk_prefetch_links(&layer, next[i]);
    return step_walk(walk, &layer, turn, next, next_count);
}

void sl_walk_range_hits(sl_walk *walk, size_t count, size_t evaluations) {
    sl_range_hits *hits = walk->range_hits;
    uint32_t next[SL_TURN_WIDTH];
    sl_walk_turn turn = {.waiting = no_ids(walk)};
    size_t next_count;
    do {
        next_count = 0;
        if (hits->count < count && walk->evaluations < evaluations)
            while (next_count < SL_TURN_WIDTH && hits->expanded < hits->count)
                next[next_count++] = hits->ids[hits->expanded++];
    } while (sl_walk_take_turn(walk, &turn, next, next_count));
}
