#include "hnsw/construct/join.h"

#include "base/failure.h"
#include "distance/codec/encode.h"
#include "hnsw/construct/seen_set.h"
#include "hnsw/graph/links.h"
#include "hnsw/graph/partition.h"

#include <string.h>

/* MOST_HITS: hits that a node takes from a much larger graph. FEWER_HITS: it takes this many fewer from a graph of its
 * own size, since nodes of that graph find it too. POOL_FACTOR: candidates that a walk keeps for each hit. */
enum { MOST_HITS = 40, FEWER_HITS = 30, POOL_FACTOR = 2 };
/* Nodes that a thread takes at once. */
enum { NODES_AT_ONCE = 64 };

/* Number of walks of a join, if copied_nodes[g] nodes of graph g are copied. */
static uint64_t walk_count(const size_t *copied_nodes, size_t count) {
    uint64_t walks = 0;
    for (size_t a = 0; a < count; a++)
        for (size_t b = 0; b < a; b++)
            walks += copied_nodes[a] < copied_nodes[b] ? copied_nodes[a] : copied_nodes[b];
    return walks;
}

/* Counts the nodes of each graph that are copied. */
static void count_copied(const sl_copied *copied, size_t n, size_t *copied_nodes) {
    for (size_t i = 0; i < n; i++)
        copied_nodes[copied->of[i]]++;
}

static int can_be_joined(const sl_copied *copied, const size_t *copied_nodes, const sl_graph *graph) {
    size_t joined = 0;
    for (size_t g = 0; g < copied->count; g++) {
        const sl_graph *from = copied->graphs[g];
        if (!copied_nodes[g]) continue;
        if (from->m != graph->m || from->ef_construction < graph->ef_construction || 2 * copied_nodes[g] < from->n)
            return 0;
        joined++;
    }
    return joined > 1;
}

sl_status sl_join_choose(const sl_graph *graph, const sl_copied *copied, size_t n, sl_join_kind *kind) {
    sl_status status = SL_OK;
    size_t *copied_nodes = sl_mem_array(&graph->allocator, copied->count, sizeof *copied_nodes, &status);
    SL_TRY(status);
    count_copied(copied, n, copied_nodes);
    if (can_be_joined(copied, copied_nodes, graph) && walk_count(copied_nodes, copied->count) <= n)
        *kind = SL_JOIN_OVER_LARGER;
    SL_FREE_ARRAY(&graph->allocator, copied_nodes, copied->count);
    return SL_OK;
}

void sl_join_free(sl_join *join) {
    const sl_allocator *allocator = &join->points->graph->allocator;
    const sl_copied *copied = join->copied;
    for (size_t g = 0; join->new_of && g < copied->count; g++)
        SL_FREE_ARRAY(allocator, join->new_of[g], copied->graphs[g]->n);
    SL_FREE_ARRAY(allocator, join->new_of, copied->count);
    SL_FREE_ARRAY(allocator, join->copied_nodes, copied->count);
}

sl_status sl_join_init(sl_join *join, const sl_copied *copied, const sl_points *points) {
    const sl_allocator *allocator = &points->graph->allocator;
    sl_status status = SL_OK;
    *join = (sl_join){.copied = copied, .points = points};
    join->new_of = sl_mem_array(allocator, copied->count, sizeof *join->new_of, &status);
    join->copied_nodes = sl_mem_array(allocator, copied->count, sizeof *join->copied_nodes, &status);
    for (size_t g = 0; g < copied->count && status == SL_OK; g++) {
        join->new_of[g] = sl_mem_array(allocator, copied->graphs[g]->n, sizeof *join->new_of[g], &status);
        if (status == SL_OK) memset(join->new_of[g], 0xff, copied->graphs[g]->n * sizeof *join->new_of[g]);
    }
    SL_TRY(status);
    for (size_t i = 0; i < points->n; i++)
        join->new_of[copied->of[i]][copied->nodes[i]] = (uint32_t)i;
    count_copied(copied, points->n, join->copied_nodes);
    return SL_OK;
}

/* Returns whether nodes of graph a walk over graph b. If two graphs have one size, the first counts as the larger. */
static int walks_over(const sl_join *join, size_t a, size_t b) {
    if (join->copied->joins == SL_JOIN_OVER_FIRST) return a != 0 && b == 0;
    return a != b &&
           (join->copied_nodes[a] < join->copied_nodes[b] || (join->copied_nodes[a] == join->copied_nodes[b] && b < a));
}

/* ---------------------------------------------------------------------------------------------------------------
 * Candidates from other graphs
 * ------------------------------------------------------------------------------------------------------------- */

/* One thread's scratch. */
typedef struct join_scratch {
    const sl_join *join;
    sl_walk *walks;   /* one for each graph that is walked over */
    uint32_t *starts; /* for each graph: where the next walk starts; SL_NONE: at the end of a descent */
    sl_similarity similarity;
    sl_seen seen;
    size_t count, room; /* candidates */
    uint32_t *nodes;
    float *scores;
    sl_neighbour *entries;
} join_scratch;

/* Most candidates of a node: the hits of its walks, and all neighbours of its links. All graphs have the same m. */
static size_t candidates_room(const sl_join *join) {
    const size_t degree = join->points->graph->m0;
    return join->copied->count * MOST_HITS + degree * degree;
}

static sl_status scratch_init(join_scratch *j, const sl_join *join) {
    const sl_graph *graph = join->points->graph;
    const sl_allocator *allocator = &graph->allocator;
    const size_t count = join->copied->count;
    sl_status status = SL_OK;
    *j = (join_scratch){.join = join, .room = candidates_room(join)};
    j->walks = sl_mem_array(allocator, count, sizeof *j->walks, &status);
    j->starts = sl_mem_array(allocator, count, sizeof *j->starts, &status);
    j->nodes = sl_mem_array(allocator, j->room, sizeof *j->nodes, &status);
    j->scores = sl_mem_array(allocator, j->room, sizeof *j->scores, &status);
    j->entries = sl_mem_array(allocator, j->room, sizeof *j->entries, &status);
    if (status == SL_OK) status = sl_seen_init(&j->seen, allocator, j->room + 1);
    if (status == SL_OK) status = sl_similarity_init(&j->similarity, graph);
    for (size_t g = 0; g < count && status == SL_OK; g++)
        if (join->copied_nodes[g])
            status = sl_walk_init(&j->walks[g], join->copied->graphs[g], POOL_FACTOR * MOST_HITS);
    return status;
}

static void scratch_free(join_scratch *j) {
    const sl_allocator *allocator = &j->join->points->graph->allocator;
    const size_t count = j->join->copied->count;
    for (size_t g = 0; j->walks && g < count; g++)
        sl_walk_free(&j->walks[g]);
    sl_similarity_free(&j->similarity);
    sl_seen_free(&j->seen);
    SL_FREE_ARRAY(allocator, j->walks, count);
    SL_FREE_ARRAY(allocator, j->starts, count);
    SL_FREE_ARRAY(allocator, j->nodes, j->room);
    SL_FREE_ARRAY(allocator, j->scores, j->room);
    SL_FREE_ARRAY(allocator, j->entries, j->room);
}

static void offer_candidate(join_scratch *j, size_t g, uint32_t node) {
    const uint32_t to = node < j->join->copied->graphs[g]->n ? j->join->new_of[g][node] : SL_NONE;
    if (to != SL_NONE && j->count < j->room && sl_seen_add(&j->seen, to)) j->nodes[j->count++] = to;
}

static size_t hits_wanted(const sl_join *join, size_t from, size_t over) {
    const size_t walking = join->copied_nodes[from], walked = join->copied_nodes[over];
    return MOST_HITS - (walking < walked ? FEWER_HITS * walking / walked : FEWER_HITS);
}

/* Walks over another graph to a node's nearest. The walk starts where the walk of the node before ended. */
static void walk_over(join_scratch *j, size_t from, uint32_t node, size_t over) {
    const sl_graph *graph = j->join->copied->graphs[over];
    const size_t hits = hits_wanted(j->join, from, over);
    sl_walk *walk = &j->walks[over];
    const sl_pool *pool = &walk->pool;
    uint32_t start = j->starts[over];
    uint64_t best = 0;
    sl_walk_set_query_node(walk, j->join->copied->graphs[from], node);
    if (start == SL_NONE) start = sl_walk_descend(walk, sl_entry_get(graph), 0);
    sl_walk_layer(walk, 0, sl_range_of_id(start), POOL_FACTOR * hits);
    sl_pool_finish(&walk->pool, hits);
    for (size_t i = 0; i < pool->size; i++) {
        best = pool->keys[i] > best ? pool->keys[i] : best;
        offer_candidate(j, over, sl_pool_id(pool->keys[i]));
    }
    j->starts[over] = best ? sl_pool_id(best) : SL_NONE;
}

/* Offers the neighbours of linked nodes that weren't copied. */
static void offer_behind_gaps(join_scratch *j, size_t g, uint32_t node) {
    const sl_graph *graph = j->join->copied->graphs[g];
    const sl_layer layer = sl_layer_at(graph, 0);
    uint32_t own[2 * SL_MAX_M], behind[2 * SL_MAX_M];
    const size_t count = sl_links_known(&layer, sl_links(graph, node), own);
    for (size_t i = 0; i < count; i++) {
        if (j->join->new_of[g][own[i]] != SL_NONE) continue;
        const size_t more = sl_links_known(&layer, sl_links(graph, own[i]), behind);
        for (size_t k = 0; k < more; k++)
            offer_candidate(j, g, behind[k]);
    }
}

/* Makes the neighbour list of a point, of its nearest candidates. */
static void list_nearest(join_scratch *j, sl_neighbour_lists *neighbours, uint32_t point) {
    const sl_points *points = j->join->points;
    const float shift = sl_neighbour_shift(points->codec, sl_point_row(points, point));
    const size_t count = j->count < neighbours->width ? j->count : neighbours->width;
    sl_similarity_set(&j->similarity, point);
    sl_similarity_many(&j->similarity, j->nodes, j->count, j->scores);
    for (size_t i = 0; i < j->count; i++)
        j->entries[i] = sl_neighbour_of(j->scores[i] + shift, j->nodes[i]);
    if (count < j->count) sl_neighbours_keep(j->entries, j->count, count);
    memcpy(neighbours->entries + (size_t)point * neighbours->width, j->entries, count * sizeof *j->entries);
    neighbours->count[point] = (uint16_t)count;
}

static void join_node(join_scratch *j, sl_neighbour_lists *neighbours, size_t g, uint32_t node) {
    const uint32_t point = j->join->new_of[g][node];
    if (point == SL_NONE) return;
    j->count = 0;
    sl_seen_add(&j->seen, point);
    for (size_t other = 0; other < j->join->copied->count; other++)
        if (walks_over(j->join, g, other)) walk_over(j, g, node, other);
    offer_behind_gaps(j, g, node);
    if (j->count) list_nearest(j, neighbours, point);
    sl_seen_clear(&j->seen);
}

static void join_chunk(join_scratch *j, sl_neighbour_lists *neighbours, size_t g, size_t chunk) {
    const size_t n = j->join->copied->graphs[g]->n, first = chunk * NODES_AT_ONCE;
    memset(j->starts, 0xff, j->join->copied->count * sizeof *j->starts);
    for (size_t node = first; node < n && node < first + NODES_AT_ONCE; node++)
        join_node(j, neighbours, g, (uint32_t)node);
}

/* Makes the neighbour lists of all nodes, chunk by chunk. A chunk's first walk starts at the entry point. So no walk's
 * start depends on the threads. */
static sl_status join_all(const sl_join *join, sl_neighbour_lists *neighbours) {
    const sl_points *points = join->points;
    sl_failure failed;
    sl_failure_init(&failed);
#pragma omp parallel num_threads((int)points->threads) if (points->threads > 1)
    {
        join_scratch j;
        sl_failure_keep(&failed, 0, scratch_init(&j, join));
        for (size_t g = 0; g < join->copied->count; g++) {
            const size_t chunks = (join->copied->graphs[g]->n + NODES_AT_ONCE - 1) / NODES_AT_ONCE;
#pragma omp for schedule(dynamic, 1)
            for (size_t chunk = 0; chunk < chunks; chunk++) {
                if (sl_failure_before(&failed, 1) || sl_progress_cancelled(points->progress)) continue;
                join_chunk(&j, neighbours, g, chunk);
                sl_progress_step(points->progress, 0);
            }
        }
        scratch_free(&j);
    }
    SL_TRY(sl_failure_pass(&failed));
    return sl_progress_cancelled(points->progress) ? sl_progress_end(points->progress) : SL_OK;
}

sl_status sl_join_neighbours(const sl_join *join, sl_neighbour_lists *neighbours) {
    const sl_allocator *allocator = &join->points->graph->allocator;
    const size_t n = join->points->n;
    sl_status status = SL_OK;
    *neighbours = (sl_neighbour_lists){.allocator = *allocator, .n = n, .width = MOST_HITS};
    neighbours->entries = sl_mem_array(allocator, n * MOST_HITS, sizeof *neighbours->entries, &status);
    neighbours->count = sl_mem_array(allocator, n, sizeof *neighbours->count, &status);
    return status == SL_OK ? join_all(join, neighbours) : status;
}

/* ---------------------------------------------------------------------------------------------------------------
 * Old lists
 * ------------------------------------------------------------------------------------------------------------- */

/* Appends old links to a list while it's shorter than the old list. If lists could grow, an index that's merged again
 * and again would have full lists. */
static void append_old_list(const sl_join *join, size_t point, uint32_t *links) {
    const size_t g = join->copied->of[point];
    const sl_graph *graph = join->copied->graphs[g];
    const sl_layer layer = sl_layer_at(graph, 0);
    uint32_t old[2 * SL_MAX_M];
    const size_t count = sl_links_known(&layer, sl_links(graph, join->copied->nodes[point]), old);
    for (size_t i = 0; i < count; i++)
        if (join->new_of[g][old[i]] != SL_NONE) sl_links_append(links, count, join->new_of[g][old[i]]);
}

void sl_join_append_old(const sl_join *join, size_t degree, uint32_t *links) {
    const sl_points *points = join->points;
#pragma omp parallel for schedule(static) num_threads((int)points->threads) if (points->threads > 1)
    for (size_t point = 0; point < points->n; point++)
        append_old_list(join, point, links + point * degree);
}

/* ---------------------------------------------------------------------------------------------------------------
 * Old partitions
 * ------------------------------------------------------------------------------------------------------------- */

/* Appends a graph's centroids to those already there. `floats`: scratch for two vectors. */
static void append_centroids(const sl_partitions *from, const sl_partitions *out, float *floats) {
    const sl_codec *codec = &out->codec;
    for (size_t p = 0; p < from->count; p++) {
        const uint8_t *row = from->codec.rows.base + p * from->codec.rows.pitch;
        uint8_t *to = out->rows + (out->count + p) * codec->rows.pitch;
        if (from->codec.codes == codec->codes) {
            memcpy(to, row, codec->rows.pitch);
            continue;
        }
        sl_decode_row(&from->codec, row, floats);
        sl_encode_row(codec, floats, SL_F32, to, floats + codec->dim, NULL);
    }
}

/* Appends a graph's partitions to those already there. Its nodes begin at row *row; *row becomes the first row after
 * them. */
static void append_partitions(const sl_copied *copied, size_t g, size_t n, size_t *row, sl_partitions *out) {
    const sl_graph *graph = copied->graphs[g];
    const sl_partitions *from = &graph->partitions;
    for (size_t p = 0; p < from->count; p++) {
        const size_t first = sl_partition_nodes(from, p, graph->n).first;
        while (*row < n && copied->of[*row] == g && copied->nodes[*row] < first)
            ++*row;
        out->starts[out->count++] = (uint32_t)*row;
    }
    while (*row < n && copied->of[*row] == g)
        ++*row;
}

sl_status sl_join_partitions(const sl_copied *copied, size_t n, sl_graph *graph) {
    sl_partitions out = {0};
    size_t count = 0, row = 0;
    sl_codes codes = SL_CODES_I8;
    for (size_t g = 0; g < copied->count; g++) {
        const sl_partitions *from = &copied->graphs[g]->partitions;
        count += from->count;
        if (from->count && from->codec.codes == SL_CODES_F32) codes = SL_CODES_F32;
    }
    sl_status status = sl_partition_codec(graph, codes, &out.codec);
    float *floats = sl_mem_array(&graph->allocator, 2 * graph->codec.dim, sizeof *floats, &status);
    out.starts = sl_mem_array(&graph->allocator, count + 1, sizeof *out.starts, &status);
    out.rows = sl_mem_array(&graph->allocator, sl_codec_rows_size(&out.codec, count), 1, &status);
    out.codec.rows.base = out.rows;
    for (size_t g = 0; g < copied->count && status == SL_OK; g++) {
        append_centroids(&copied->graphs[g]->partitions, &out, floats);
        append_partitions(copied, g, n, &row, &out);
    }
    SL_FREE_ARRAY(&graph->allocator, floats, 2 * graph->codec.dim);
    out.count = count;
    if (status == SL_OK) out.starts[count] = (uint32_t)row;
    graph->partitions = out;
    return status;
}
