#include "hnsw/build/from_leaves.h"

#include "distance/codec/encode.h"
#include "hnsw/build/copies.h"
#include "hnsw/build/layer_lists.h"
#include "hnsw/graph/upper.h"
#include "hnsw/graph/vectors.h"

#include <string.h>

/* Of ef_construction: leaves of one partitioning that a node is in. Of a node's links: those of one upper layer that
 * layer 0 gets too. */
enum { EF_A_FOLD = 50, LONG_SHARE = 8 };
enum { LEAST_FOLDS = 2, LEAST_M = 8 };

/* The rows that are compared: the index's own where those have codes I8, else copies. */
typedef struct compared {
    sl_graph graph; /* with these rows for its codes */
    void *rows;     /* NULL: the index's own */
    size_t size;
} compared;

static size_t folds_of(const sl_graph *graph) {
    size_t folds = graph->ef_construction / EF_A_FOLD;
    return folds > SL_LEAF_FOLDS ? SL_LEAF_FOLDS : folds ? folds : 1;
}

const char *sl_from_leaves_lacks(const sl_index *index, size_t first, size_t n) {
    const sl_graph *graph = &index->graph;
    if (first != 0) return "an empty index";
    if (n < SL_FROM_LEAVES_LEAST) return "4,096 vectors or more";
    /* Places of leaves have 32 bits. */
    if (n > (SL_NONE - 1) / folds_of(graph)) return "fewer vectors or a smaller ef_construction";
    if (graph->place != SL_PLACE_DRAM || index->writer) return "an index in memory";
    return graph->codec.metric == SL_METRIC_IP ? "the metric cosine or l2" : NULL;
}

int sl_from_leaves_suits(const sl_graph *graph) {
    return graph->ef_construction >= LEAST_FOLDS * EF_A_FOLD && graph->m >= LEAST_M;
}

static sl_status copy_rows(compared *c, const sl_build *build) {
    const sl_graph *graph = &build->index->graph;
    sl_graph *mine = &c->graph;
    const size_t dim = graph->codec.dim;
    float *floats;
    sl_status status = SL_OK;
    SL_TRY(sl_codec_init(&mine->codec, dim, graph->codec.metric, SL_F32, SL_CODES_I8));
    c->size = sl_codec_rows_size(&mine->codec, graph->n);
    SL_TRY(sl_mem_take(&graph->allocator, c->size, &c->rows));
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
    sl_mem_free(&graph->allocator, floats, 2 * dim * build->threads * sizeof *floats);
    mine->arrays[SL_ARRAY_CODES] = (sl_array){.at = c->rows, .step = pitch, .width = pitch, .size = pitch};
    return SL_OK;
}

static sl_status compared_init(compared *c, const sl_build *build) {
    *c = (compared){.graph = build->index->graph};
    return c->graph.codec.codes == SL_CODES_I8 ? SL_OK : copy_rows(c, build);
}

static void compared_free(compared *c) {
    sl_mem_free(&c->graph.allocator, c->rows, c->size);
}

/* Lists the nodes of a layer above 0, and their slots. Returns how many they are. */
static size_t list_nodes(const sl_upper *upper, uint32_t level, uint32_t *nodes, uint32_t *slots) {
    size_t count = 0;
    for (uint32_t slot = 0; slot < upper->count; slot++)
        if (upper->start[slot + 1] - upper->start[slot] >= level) {
            slots[count] = slot;
            nodes[count++] = upper->nodes[slot];
        }
    return count;
}

/* Makes the lists of members that all differ. `links`: the degree times entries a member, which get numbers of members.
 */
static sl_status link_distinct(sl_build *build, const compared *c, const sl_members *members, size_t degree,
                               uint32_t *links) {
    const sl_graph *graph = &build->index->graph;
    size_t width = 5 * degree / 4 > 8 ? 5 * degree / 4 : 8;
    sl_leaves leaves = {0};
    sl_near_lists near = {0};
    sl_layer_lists lists = {
        .members = members, .graph = &c->graph, .degree = degree, .told = 3 * degree / 2, .links = links};
    sl_status status = sl_leaves_make(&leaves, members, folds_of(graph));
    lists.order = leaves.order;
    if (status == SL_OK) status = sl_near_make(&near, members, &leaves, width);
    if (status == SL_OK) status = sl_layer_lists_make(&lists, &near);
    sl_near_free(&near);
    sl_leaves_free(&leaves);
    return status;
}

/* The same for members of which some are alike. */
static sl_status link_members(sl_build *build, const compared *c, const sl_members *members, size_t degree,
                              uint32_t *links) {
    const sl_allocator *allocator = &build->index->graph.allocator;
    sl_copies copies;
    sl_status status = sl_copies_find(&copies, members);
    if (status != SL_OK || !copies.of) {
        sl_copies_free(&copies);
        return status == SL_OK ? link_distinct(build, c, members, degree, links) : status;
    }
    sl_members kinds = *members;
    kinds.n = copies.distinct;
    kinds.rows = copies.rows;
    uint32_t *own = sl_mem_array(allocator, copies.distinct * degree, sizeof *own, &status);
    if (status == SL_OK) status = link_distinct(build, c, &kinds, degree, own);
    if (status == SL_OK) status = sl_copies_link(&copies, degree, own, links);
    sl_mem_free(allocator, own, copies.distinct * degree * sizeof *own);
    sl_copies_free(&copies);
    return status;
}

static sl_status link_upper(sl_build *build, const compared *c, uint32_t level, uint32_t *nodes, uint32_t *slots,
                            uint32_t *links) {
    const sl_graph *graph = &build->index->graph;
    const size_t m = graph->m;
    const sl_layer layer = sl_layer_at(graph, level);
    size_t count = list_nodes(&graph->upper, level, nodes, slots);
    if (!count) return SL_OK;
    const sl_members members = {&c->graph, &c->graph.codec, count, nodes, build->threads, &build->progress, 0};
    SL_TRY(link_members(build, c, &members, m, links));
    for (size_t i = 0; i < count; i++) {
        uint32_t *to = sl_layer_links(&layer, slots[i]);
        for (size_t j = 0; j < m; j++)
            to[j] = links[i * m + j] == SL_NONE ? SL_NONE : slots[links[i * m + j]];
    }
    sl_entry_set(build->index, level, slots[0]);
    return SL_OK;
}

/* Links layers from 1 up. The first node of the highest is the entry point. */
static sl_status link_all_upper(sl_build *build, const compared *c) {
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
    sl_mem_free(&graph->allocator, nodes, 2 * count * sizeof *nodes);
    sl_mem_free(&graph->allocator, links, count * m * sizeof *links);
    return status;
}

/* Puts a link of layer `level` into a node's list of layer 0: behind its links, or for the last of those that are not
 * such links too. */
static void put_long(uint32_t *list, size_t degree, size_t *kept, uint32_t node) {
    size_t count = 0;
    for (; count < degree && list[count] != SL_NONE; count++)
        if (list[count] == node) return;
    if (count == degree) count = --*kept;
    list[count] = node;
}

/* Gives nodes of upper layers some links of theirs on layer 0 too. Walks begin anywhere on layer 0: these links lead
 * from one region to another, as those of the first nodes do where nodes are inserted. */
static void link_regions(const sl_graph *graph) {
    const sl_upper *upper = &graph->upper;
    const size_t most = graph->m0 / LONG_SHARE;
    for (uint32_t slot = 0; slot < upper->count; slot++) {
        uint32_t *list = sl_links(graph, upper->nodes[slot]);
        size_t kept = graph->m0;
        for (uint32_t row = upper->start[slot]; row < upper->start[slot + 1]; row++)
            for (size_t i = 0; i < most && kept > graph->m0 / 2; i++) {
                uint32_t to = upper->links[(size_t)row * graph->m + i];
                if (to == SL_NONE) break;
                put_long(list, graph->m0, &kept, upper->nodes[to]);
            }
    }
}

static sl_status link_all(sl_build *build, const compared *c) {
    sl_index *index = build->index;
    const sl_graph *graph = &index->graph;
    const sl_members members = {&c->graph, &c->graph.codec, graph->n, NULL, build->threads, &build->progress, graph->n};
    sl_entry_set(index, 0, 0);
    SL_TRY(link_members(build, c, &members, graph->m0, sl_links(graph, 0)));
    SL_TRY(link_all_upper(build, c));
    link_regions(graph);
    return SL_OK;
}

sl_status sl_from_leaves_link(sl_build *build) {
    sl_index *index = build->index;
    compared c;
    sl_status status = compared_init(&c, build);
    if (status == SL_OK) status = link_all(build, &c);
    compared_free(&c);
    if (status != SL_OK) {
        size_t upper = index->graph.upper.rows * index->graph.m * sizeof(uint32_t);
        sl_build_clear_links(index, 0, index->graph.n);
        if (upper) memset(index->graph.upper.links, 0xff, upper);
    }
    return status;
}
