#include "hnsw/construct/from_leaves.h"

#include "base/clock.h"
#include "base/random.h"
#include "distance/codec/encode.h"
#include "hnsw/construct/duplicates.h"
#include "hnsw/construct/join.h"
#include "hnsw/construct/layer_lists.h"
#include "hnsw/construct/leaf_notes.h"
#include "hnsw/construct/leaves_make.h"
#include "hnsw/construct/reachability_sample.h"
#include "hnsw/construct/renumber.h"
#include "hnsw/construct/resolution.h"
#include "hnsw/graph/links.h"
#include "hnsw/graph/upper.h"
#include "hnsw/graph/vectors.h"

#include <string.h>

/* The fan-out is ef_construction over this. */
enum { EF_PER_LEAF = 50 };
/* The largest sample has an eighth of the nodes: their number is halved this many times. */
enum { FIRST_HALVINGS = 3 };
enum { MIN_FAN_OUT = 4, MIN_M = 16, MAX_M = 24 };

/* The rows that are compared: the index's own if they have the right codes, else copies in these codes. */
typedef struct compared_rows {
    sl_graph graph; /* the index's graph, with these rows for its codes */
    void *rows;     /* copies; NULL: the index's own */
    size_t size;
    int is_coarser; /* the rows are I8, and the index's own codes are finer */
    int is_too_coarse;
} compared_rows;

/* A build in I8 starts again in F32 if I8 can't tell more than one node in this many from its neighbours. */
enum { CLOSE_SHARE = 1024 };

static size_t fan_out_of(const sl_graph *graph) {
    size_t fan_out = graph->ef_construction / EF_PER_LEAF;
    return fan_out > SL_MAX_FAN_OUT ? SL_MAX_FAN_OUT : fan_out ? fan_out : 1;
}

/* Returns whether the build joins the graphs that its nodes are copied from. */
static int is_joined(const sl_build *build) {
    return build->copied && build->copied->joins != SL_JOIN_NONE && build->builder == SL_BUILDER_AUTO;
}

const char *sl_from_leaves_lacks(const sl_index *index, size_t n) {
    const sl_graph *graph = &index->graph;
    if (n < SL_FROM_LEAVES_LEAST) return "4,096 vectors or more";
    /* A place in the leaves of a partitioning is a number of 32 bits. */
    if (n > (SL_NONE - 1) / fan_out_of(graph)) return "fewer vectors or a smaller ef_construction";
    return graph->place != SL_PLACE_DRAM || index->writer ? "an index in memory" : NULL;
}

int sl_from_leaves_suits(const sl_graph *graph, size_t first, size_t n) {
    return first <= n && graph->ef_construction >= MIN_FAN_OUT * EF_PER_LEAF && graph->m >= MIN_M && graph->m <= MAX_M;
}

static sl_status copy_rows(compared_rows *c, const sl_build *build, sl_codes codes) {
    const sl_graph *graph = &build->index->graph;
    sl_graph *mine = &c->graph;
    const size_t dim = graph->codec.dim;
    float *floats;
    sl_status status = SL_OK;
    SL_TRY(sl_codec_init(&mine->codec, dim, graph->codec.metric, SL_F32, codes));
    c->size = sl_codec_rows_size(&mine->codec, graph->n);
    SL_TRY(sl_mem_alloc_raw(&graph->allocator, c->size, &c->rows));
    mine->codec.rows.base = c->rows;
    floats = sl_mem_array(&graph->allocator, 2 * dim * build->threads, sizeof *floats, &status);
    SL_TRY(status);
    const size_t pitch = mine->codec.rows.pitch;
#pragma omp parallel for schedule(static) num_threads((int)build->threads) if (build->threads > 1)
    for (size_t i = 0; i < graph->n; i++) {
        float *x = floats + sl_thread_number() * 2 * dim;
        uint8_t *row = (uint8_t *)c->rows + i * pitch;
        sl_coded_floats(graph, (uint32_t)i, x);
        memset(row, 0, pitch);
        sl_encode_row(&mine->codec, x, SL_F32, row, x + dim, NULL);
    }
    SL_FREE_ARRAY(&graph->allocator, floats, 2 * dim * build->threads);
    mine->arrays[SL_ARRAY_CODES] = (sl_array){.at = c->rows, .step = pitch, .width = pitch, .size = pitch};
    return SL_OK;
}

static sl_status compared_rows_init(compared_rows *c, const sl_build *build, sl_codes codes) {
    const sl_graph *graph = &build->index->graph;
    *c = (compared_rows){.graph = *graph, .is_coarser = codes == SL_CODES_I8 && sl_is_finer_than_bytes(&graph->codec)};
    return graph->codec.codes == codes ? SL_OK : copy_rows(c, build, codes);
}

/* Fails if I8 can't tell too many nodes from their neighbours: `close` of n. Sets no message, since the caller then
 * links again in F32. */
static sl_status check_close(compared_rows *c, size_t close, size_t n) {
    c->is_too_coarse = close > n / CLOSE_SHARE;
    return c->is_too_coarse ? SL_EUNSUPPORTED : SL_OK;
}

/* Does the same for points after their leaves were compared. `merged`: points that only I8 makes duplicates. */
static sl_status check_close_points(compared_rows *c, const sl_neighbour_lists *neighbours, const sl_points *points,
                                    const sl_graph *own, size_t merged, size_t n) {
    uint64_t close = sl_count_close_points(neighbours, points, own, 0);
    SL_TRY(sl_share_sum(points->ranks, SL_OK, &close, 1));
    return check_close(c, merged + close, n);
}

static void compared_rows_free(compared_rows *c) {
    sl_mem_free(&c->graph.allocator, c->rows, c->size);
}

/* Lists the nodes of an upper layer and their slots. Returns how many there are. */
static size_t list_nodes(const sl_upper *upper, uint32_t level, uint32_t *nodes, uint32_t *slots) {
    size_t count = 0;
    for (uint32_t slot = 0; slot < upper->count; slot++)
        if (upper->start[slot + 1] - upper->start[slot] >= level) {
            slots[count] = slot;
            nodes[count++] = upper->nodes[slot];
        }
    return count;
}

static size_t list_width(size_t degree) {
    return 5 * degree / 4 > 8 ? 5 * degree / 4 : 8;
}

static size_t reverse_width(size_t degree) {
    return 3 * degree / 2;
}

/* Makes the lists of points without duplicates. `links`: `degree` places per point. *close: the number of points that
 * only I8 makes duplicates; NULL: the call doesn't check whether points are too close. */
static sl_status link_distinct(sl_build *build, compared_rows *c, const sl_points *points, size_t degree,
                               uint32_t *links, const size_t *close) {
    const sl_graph *graph = &build->index->graph;
    size_t width = list_width(degree);
    sl_leaves leaves = {0};
    sl_neighbour_lists neighbours = {0};
    sl_layer_lists lists = {
        .points = points, .graph = &c->graph, .degree = degree, .reverse_most = reverse_width(degree), .links = links};
    sl_status status = SL_OK;
    if (points->work) status = sl_leaf_notes_begin(points->work, points, fan_out_of(graph), width);
    status = sl_ranks_agree(points->ranks, status);
    if (status == SL_OK) status = sl_leaves_make(&leaves, points, fan_out_of(graph));
    if (status == SL_OK) status = sl_neighbour_lists_make(&neighbours, points, &leaves, width);
    if (status == SL_OK && close) status = check_close_points(c, &neighbours, points, graph, *close, build->n);
    if (status == SL_OK) status = sl_layer_lists_make(&lists, &neighbours);
    sl_neighbour_lists_free(&neighbours);
    sl_leaves_free(&leaves);
    return status;
}

/* Counts the points that are duplicates of many others in I8, although their own codes tell them apart. */
static sl_status count_merged(const sl_graph *graph, const sl_duplicates *duplicates, const sl_points *points,
                              size_t *merged) {
    sl_status status = SL_OK;
    uint32_t *others = sl_mem_array(&graph->allocator, duplicates->distinct, sizeof *others, &status);
    SL_TRY(status);
    memset(others, 0, duplicates->distinct * sizeof *others);
    for (size_t i = 0; i < duplicates->n; i++)
        others[duplicates->of[i]] +=
            !sl_is_duplicate(graph, duplicates->rows[duplicates->of[i]], sl_point_row(points, i));
    *merged = 0;
    for (size_t i = 0; i < duplicates->distinct; i++)
        if (others[i] >= SL_CLOSE_NEIGHBOURS) *merged += others[i];
    SL_FREE_ARRAY(&graph->allocator, others, duplicates->distinct);
    return SL_OK;
}

/* Makes the lists of points. Duplicates chain up behind their firsts. `is_counted`: checks also whether I8 tells points
 * from their neighbours. */
static sl_status link_points(sl_build *build, compared_rows *c, const sl_points *points, size_t degree, uint32_t *links,
                             int is_counted) {
    const sl_graph *graph = &build->index->graph;
    const sl_allocator *allocator = &graph->allocator;
    const int counts = is_counted && c->is_coarser;
    size_t close = 0;
    sl_duplicates duplicates;
    sl_status status = sl_duplicates_find(&duplicates, points);
    if (status != SL_OK || !duplicates.of) {
        sl_duplicates_free(&duplicates);
        return status == SL_OK ? link_distinct(build, c, points, degree, links, counts ? &close : NULL) : status;
    }
    if (counts) status = count_merged(graph, &duplicates, points, &close);
    sl_points distinct = *points;
    distinct.n = duplicates.distinct;
    distinct.rows = duplicates.rows;
    uint32_t *own = sl_mem_array(allocator, duplicates.distinct * degree, sizeof *own, &status);
    if (status == SL_OK) status = link_distinct(build, c, &distinct, degree, own, counts ? &close : NULL);
    if (status == SL_OK) status = sl_duplicates_link(&duplicates, degree, own, links);
    SL_FREE_ARRAY(allocator, own, duplicates.distinct * degree);
    sl_duplicates_free(&duplicates);
    return status;
}

/* Ranks share layers of this many points or more. A smaller layer takes less time than its exchange of data. */
enum { SHARED_POINTS = 4096 };

/* Returns `count` nodes as points. They count no steps of the progress. nodes: NULL for nodes 0 to count - 1. */
static sl_points points_of(sl_build *build, const compared_rows *c, const uint32_t *nodes, size_t count) {
    return (sl_points){.graph = &c->graph,
                       .codec = &c->graph.codec,
                       .n = count,
                       .rows = nodes,
                       .threads = build->threads,
                       .progress = &build->progress,
                       .ranks = count >= SHARED_POINTS ? c->graph.ranks : NULL};
}

static sl_status link_upper(sl_build *build, compared_rows *c, uint32_t level, uint32_t *nodes, uint32_t *slots,
                            uint32_t *links) {
    const sl_graph *graph = &build->index->graph;
    const size_t m = graph->m;
    const sl_layer layer = sl_layer_at(graph, level);
    size_t count = list_nodes(&graph->upper, level, nodes, slots);
    if (!count) return SL_OK;
    const sl_points points = points_of(build, c, nodes, count);
    SL_TRY(link_points(build, c, &points, m, links, 0));
    for (size_t i = 0; i < count; i++) {
        uint32_t *to = sl_layer_links(&layer, slots[i]);
        for (size_t j = 0; j < m; j++)
            to[j] = links[i * m + j] == SL_NONE ? SL_NONE : slots[links[i * m + j]];
    }
    sl_entry_set(build->index, level, slots[0]);
    return SL_OK;
}

/* Links layers from 1 up. The first node of the top layer becomes the entry point. */
static sl_status link_all_upper(sl_build *build, compared_rows *c) {
    const sl_graph *graph = &build->index->graph;
    const size_t count = graph->upper.count, m = graph->m;
    sl_status status = SL_OK;
    uint32_t *nodes = sl_mem_array(&graph->allocator, 2 * count, sizeof *nodes, &status);
    uint32_t *links = sl_mem_array(&graph->allocator, count * m, sizeof *links, &status);
    uint32_t levels = 0;
    for (size_t slot = 0; slot < count; slot++) {
        uint32_t own = graph->upper.start[slot + 1] - graph->upper.start[slot];
        if (own > levels) levels = own;
    }
    for (uint32_t level = 1; level <= levels && status == SL_OK; level++)
        status = link_upper(build, c, level, nodes, nodes + count, links);
    SL_FREE_ARRAY(&graph->allocator, nodes, 2 * count);
    SL_FREE_ARRAY(&graph->allocator, links, count * m);
    return status;
}

/* ---------------------------------------------------------------------------------------------------------------
 * Samples
 * ------------------------------------------------------------------------------------------------------------- */

static int in_sample(const sl_graph *graph, uint32_t node, unsigned halvings, unsigned draw) {
    const uint64_t purpose = 0x73616d706c65u + halvings + ((uint64_t)draw << 56);
    return sl_random_at(graph->seed ^ purpose, node) >> (64 - halvings) == 0;
}

/* Number of samples of one size. The links of a sample lead out of a cluster only if few nodes of the cluster are in
 * the sample, so larger clusters need smaller samples. Small samples are drawn more often, but take less time: twice as
 * many of a quarter the size take half the time. */
static unsigned draws_of(unsigned halvings) {
    return 1u << (halvings - FIRST_HALVINGS) / 2;
}

/* Links the nodes of a sample with each other. Appends these links to their lists while there is room. */
static sl_status link_sample(sl_build *build, compared_rows *c, uint32_t *nodes, size_t count) {
    const sl_graph *graph = &build->index->graph;
    const size_t degree = graph->m0;
    const sl_points points = points_of(build, c, nodes, count);
    sl_status status = SL_OK;
    uint32_t *links = sl_mem_array(&graph->allocator, count * degree, sizeof *links, &status);
    if (status == SL_OK) status = link_points(build, c, &points, degree, links, 0);
    for (size_t i = 0; i < count && status == SL_OK; i++)
        for (size_t j = 0; j < degree && links[i * degree + j] != SL_NONE; j++)
            sl_links_append(sl_links(graph, nodes[i]), degree, nodes[links[i * degree + j]]);
    SL_FREE_ARRAY(&graph->allocator, links, count * degree);
    return status;
}

/* Gives layer 0 links that lead out of clusters: links ever smaller samples of the new nodes. Each sample is drawn
 * anew, so that more nodes get such links. In a graph of inserted nodes, the first nodes have such links. */
static sl_status link_samples(sl_build *build, compared_rows *c) {
    const sl_graph *graph = &build->index->graph;
    sl_status status = SL_OK;
    uint32_t *nodes = sl_mem_array(&graph->allocator, build->n, sizeof *nodes, &status);
    size_t count = build->n;
    for (unsigned halvings = FIRST_HALVINGS; status == SL_OK && count > graph->m0; halvings++) {
        for (unsigned draw = 0; draw < draws_of(halvings) && status == SL_OK; draw++) {
            count = 0;
            for (uint32_t node = (uint32_t)build->first; node < graph->n; node++)
                if (in_sample(graph, node, halvings, draw)) nodes[count++] = node;
            if (count > 1) status = link_sample(build, c, nodes, count);
        }
    }
    SL_FREE_ARRAY(&graph->allocator, nodes, build->n);
    return status;
}

/* Links samples if walks miss many of the new nodes. `entry`: the entry point of these walks, as in sl_graph. */
static sl_status link_samples_if_lost(sl_build *build, compared_rows *c, uint64_t entry) {
    sl_graph walked = c->graph;
    int many_lost;
    walked.entry = entry;
    SL_TRY(sl_reachability_sample(&walked, build->first, build->threads, &build->progress, &many_lost));
    return many_lost ? link_samples(build, c) : SL_OK;
}

/* Makes the lists of layer 0 from those of the joined graphs. `own`: the graph with its own codes. `first`: the first
 * node that the build adds. */
static sl_status link_joined(compared_rows *c, const sl_points *points, const sl_copied *joined, const sl_graph *own,
                             size_t first) {
    const sl_graph *graph = &c->graph;
    sl_neighbour_lists neighbours = {0};
    sl_join join;
    sl_layer_lists lists = {.points = points,
                            .graph = graph,
                            .degree = graph->m0,
                            .reverse_most = graph->m0 / 2,
                            .links = sl_links(graph, 0),
                            .has_links = 1};
    sl_status status = sl_join_init(&join, joined, points);
    if (status == SL_OK) status = sl_join_neighbours(&join, &neighbours);
    if (status == SL_OK && c->is_coarser)
        status = check_close(c, sl_count_close_points(&neighbours, points, own, first), points->n - first);
    if (status == SL_OK) sl_join_append_old(&join, graph->m0, lists.links);
    if (status == SL_OK) status = sl_layer_lists_make(&lists, &neighbours);
    /* The selection drops long links, which lead out of clusters. */
    if (status == SL_OK) sl_join_append_old(&join, graph->m0, lists.links);
    sl_neighbour_lists_free(&neighbours);
    sl_join_free(&join);
    return status;
}

/* Links all nodes of a first build, by joining graphs or from leaves. */
static sl_status link_all(sl_build *build, compared_rows *c) {
    sl_graph *graph = &build->index->graph;
    sl_points points = points_of(build, c, NULL, c->graph.n);
    points.steps = graph->n;
    points.work = build->index->work;
    if (is_joined(build)) {
        SL_TRY(link_joined(c, &points, build->copied, graph, 0));
        SL_TRY(sl_join_partitions(build->copied, build->n, graph));
        return link_all_upper(build, c);
    }
    SL_TRY(link_points(build, c, &points, graph->m0, sl_links(graph, 0), 1));
    SL_TRY(link_all_upper(build, c));
    return link_samples_if_lost(build, c, graph->entry);
}

/* ---------------------------------------------------------------------------------------------------------------
 * A batch beside the index's nodes
 * ------------------------------------------------------------------------------------------------------------- */

/* A batch beside nodes of the index. It has copies of the lists from before the join, as two graphs: of the old nodes
 * and of the new ones. */
typedef struct batch {
    sl_build *build;
    sl_graph old, added;
    uint32_t *links; /* of layer 0, for all nodes */
    uint32_t *upper; /* of the upper layers */
    sl_entry entry;
    uint32_t *of, *nodes;
} batch;

static size_t links_bytes(const sl_graph *graph, size_t n) {
    return n * graph->m0 * sizeof(uint32_t);
}

static size_t upper_bytes(const sl_graph *graph) {
    return graph->upper.rows * graph->m * sizeof(uint32_t);
}

static void batch_free(batch *b) {
    const sl_graph *graph = &b->build->index->graph;
    const sl_allocator *allocator = &graph->allocator;
    sl_mem_free(allocator, b->links, links_bytes(graph, graph->n));
    sl_mem_free(allocator, b->upper, upper_bytes(graph));
    SL_FREE_ARRAY(allocator, b->of, graph->n);
    SL_FREE_ARRAY(allocator, b->nodes, graph->n);
}

static sl_status batch_init(batch *b, sl_build *build) {
    const sl_graph *graph = &build->index->graph;
    const sl_allocator *allocator = &graph->allocator;
    sl_status status = SL_OK;
    *b = (batch){.build = build, .entry = sl_entry_get(graph)};
    b->links = sl_mem_array(allocator, links_bytes(graph, graph->n), 1, &status);
    b->upper = sl_mem_array(allocator, upper_bytes(graph), 1, &status);
    b->of = sl_mem_array(allocator, graph->n, sizeof *b->of, &status);
    b->nodes = sl_mem_array(allocator, graph->n, sizeof *b->nodes, &status);
    SL_TRY(status);
    memcpy(b->links, sl_links(graph, 0), links_bytes(graph, build->first));
    if (upper_bytes(graph)) memcpy(b->upper, graph->upper.links, upper_bytes(graph));
    return SL_OK;
}

static void restore_lists(const batch *b) {
    const sl_graph *graph = &b->build->index->graph;
    memcpy(sl_links(graph, 0), b->links, links_bytes(graph, b->build->first));
    if (upper_bytes(graph)) memcpy(graph->upper.links, b->upper, upper_bytes(graph));
    sl_build_clear_links(b->build->index, b->build->first, b->build->n);
    sl_entry_set(b->build->index, b->entry.level, b->entry.level ? b->entry.slot : b->entry.node);
}

/* Links the new nodes of layer 0 with each other. They have no upper layers yet, so walks enter at the first of
 * them. */
static sl_status link_added(batch *b, compared_rows *c) {
    sl_build *build = b->build;
    const sl_graph *graph = &build->index->graph;
    const size_t degree = graph->m0, first = build->first;
    sl_points points = points_of(build, c, NULL, c->graph.n);
    uint32_t *own = b->links + first * degree;
    for (size_t i = 0; i < build->n; i++)
        b->nodes[i] = (uint32_t)(first + i);
    points.n = points.steps = build->n;
    points.rows = b->nodes;
    SL_TRY(link_points(build, c, &points, degree, own, 1));
    for (size_t i = 0; i < build->n * degree; i++)
        sl_links(graph, first)[i] = own[i] == SL_NONE ? SL_NONE : own[i] + (uint32_t)first;
    SL_TRY(link_samples_if_lost(build, c, first));
    memcpy(own, sl_links(graph, first), links_bytes(graph, build->n));
    return SL_OK;
}

/* Joins the two graphs. The new nodes have no upper layers yet, so they walk over the old graph, and the old ones don't
 * walk. */
static sl_status join_added(batch *b, compared_rows *c) {
    const sl_graph *graph = &b->build->index->graph, *graphs[] = {&b->old, &b->added};
    const sl_copied joined = {
        .graphs = graphs, .count = 2, .of = b->of, .nodes = b->nodes, .joins = SL_JOIN_OVER_FIRST};
    const sl_points points = points_of(b->build, c, NULL, graph->n);
    b->old = b->added = *graph;
    b->old.arrays[SL_ARRAY_LINKS].at = b->added.arrays[SL_ARRAY_LINKS].at = (uint8_t *)b->links;
    b->old.n = b->build->first;
    while (b->old.upper.count && b->old.upper.nodes[b->old.upper.count - 1] >= b->build->first)
        b->old.upper.count--;
    for (size_t i = 0; i < graph->n; i++) {
        b->of[i] = i >= b->build->first;
        b->nodes[i] = (uint32_t)i;
    }
    return link_joined(c, &points, &joined, graph, b->build->first);
}

static sl_status link_batch(sl_build *build, compared_rows *c) {
    batch b;
    sl_status status = batch_init(&b, build);
    if (status == SL_OK) {
        status = link_added(&b, c);
        if (status == SL_OK) status = join_added(&b, c);
        if (status == SL_OK) status = link_all_upper(build, c);
        if (status != SL_OK) restore_lists(&b);
    }
    batch_free(&b);
    return status;
}

static sl_status link_first(sl_build *build, compared_rows *c) {
    sl_graph *graph = &build->index->graph;
    sl_entry_set(build->index, 0, 0);
    sl_status status = link_all(build, c);
    if (status == SL_OK) return SL_OK;
    sl_build_clear_links(build->index, 0, graph->n);
    if (upper_bytes(graph)) memset(graph->upper.links, 0xff, upper_bytes(graph));
    return status;
}

/* Numbers nodes by partition. Points of a leaf then lie close together, and so do the rows and lists that selection
 * reads. */
static void number_by_partition(sl_build *build) {
    sl_index *index = build->index;
    const int64_t start = sl_now_ns();
    if (!build->first && !is_joined(build)) {
        sl_entry_set(index, 0, 0);
        sl_renumber_settle(index, 8, build->threads, &build->progress);
    }
    build->numbering_ns += sl_now_ns() - start;
}

/* Links the new nodes, compared in these codes. Sets *again if I8 can't tell them apart; then nothing was linked. */
static sl_status link_in_codes(sl_build *build, sl_codes codes, int *again) {
    compared_rows c;
    sl_status status = compared_rows_init(&c, build, codes);
    if (status == SL_OK) status = build->first ? link_batch(build, &c) : link_first(build, &c);
    *again = c.is_too_coarse;
    compared_rows_free(&c);
    return *again ? SL_OK : status;
}

sl_status sl_from_leaves_link(sl_build *build) {
    sl_index *index = build->index;
    const uint64_t done = build->progress.done;
    sl_codes codes;
    int again;
    number_by_partition(build);
    SL_TRY(sl_compared_codes(&index->graph, build->threads, &build->progress, &codes));
    SL_TRY(link_in_codes(build, codes, &again));
    if (!again) return SL_OK;
    index->graph.bytes_are_coarse = 1;
    index->ordered = build->first ? index->ordered : 0;
    __atomic_store_n(&build->progress.done, done, __ATOMIC_RELAXED);
    number_by_partition(build); /* centroids, too, then get codes F32 */
    return link_in_codes(build, SL_CODES_F32, &again);
}

/* ---------------------------------------------------------------------------------------------------------------
 * Memory and comparisons
 * ------------------------------------------------------------------------------------------------------------- */

static size_t distinct_bytes(const sl_points *points, size_t fan_out, size_t degree) {
    const sl_bytes leaves = sl_leaves_bytes(points, fan_out),
                   neighbours = sl_neighbour_lists_bytes(points, list_width(degree));
    const sl_layer_lists lists = {
        .points = points, .graph = points->graph, .degree = degree, .reverse_most = reverse_width(degree)};
    const size_t selecting = neighbours.kept + sl_layer_lists_bytes(&lists, list_width(degree));
    return sl_larger(leaves.most, leaves.kept + sl_larger(neighbours.most, selecting));
}

/* Bytes of linking, if vectors are compared in these codes. */
static sl_status bytes_in_codes(const sl_graph *graph, size_t threads, int alike, sl_codes codes, size_t *bytes) {
    const size_t n = graph->n, dim = graph->codec.dim, degree = graph->m0;
    sl_codec codec = graph->codec;
    size_t copied = 0;
    if (codec.codes != codes) {
        SL_TRY(sl_codec_init(&codec, dim, codec.metric, SL_F32, codes));
        copied = sl_codec_rows_size(&codec, n) + 2 * dim * threads * sizeof(float);
    }
    const sl_points points = {.graph = graph, .codec = &codec, .n = n, .threads = threads};
    const sl_bytes duplicates = sl_duplicates_bytes(n);
    size_t linking = distinct_bytes(&points, fan_out_of(graph), degree);
    if (alike) linking += duplicates.kept + n * degree * sizeof(uint32_t);
    size_t walks;
    SL_TRY(sl_reachability_sample_bytes(graph, threads, &walks));
    *bytes = copied + sl_larger(duplicates.most, sl_larger(linking, walks));
    return SL_OK;
}

/* Only a build learns whether I8 tells the vectors apart. */
sl_status sl_from_leaves_bytes(const sl_graph *graph, size_t threads, int alike, size_t *bytes) {
    size_t floats = 0;
    SL_TRY(bytes_in_codes(graph, threads, alike, SL_CODES_I8, bytes));
    if (sl_is_finer_than_bytes(&graph->codec)) SL_TRY(bytes_in_codes(graph, threads, alike, SL_CODES_F32, &floats));
    *bytes = sl_larger(*bytes, floats);
    return SL_OK;
}

double sl_from_leaves_comparisons(const sl_graph *graph) {
    return sl_leaves_comparisons(graph->n, fan_out_of(graph), graph->codec.metric);
}

double sl_from_leaves_pairs(const sl_graph *graph) {
    return sl_leaves_pairs(graph->n, fan_out_of(graph));
}
