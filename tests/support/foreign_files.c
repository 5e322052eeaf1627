#include "tests/support/foreign_files.h"

#include "hnsw/graph/entry.h"
#include "hnsw/graph/tombstones.h"
#include "hnsw/graph/upper.h"
#include "hnsw/graph/vectors.h"

#include <stdlib.h>
#include <string.h>

void foreign_put(foreign_bytes *bytes, const void *data, size_t size) {
    if (bytes->size + size > bytes->room) {
        bytes->room = 2 * (bytes->size + size);
        bytes->at = realloc(bytes->at, bytes->room);
        if (!bytes->at) abort();
    }
    if (size) memcpy(bytes->at + bytes->size, data, size);
    bytes->size += size;
}

void foreign_put_u32(foreign_bytes *bytes, uint32_t word) {
    foreign_put(bytes, &word, sizeof word);
}

void foreign_put_u64(foreign_bytes *bytes, uint64_t word) {
    foreign_put(bytes, &word, sizeof word);
}

/* Appends a node's neighbours on a level as node numbers. Returns how many. */
static uint32_t put_links(foreign_bytes *bytes, const sl_graph *graph, uint32_t node, uint32_t slot, uint32_t level) {
    const sl_layer layer = sl_layer_at(graph, level);
    const uint32_t *links = sl_layer_links(&layer, level ? slot : node);
    uint32_t count = 0;
    for (; count < layer.degree && links[count] != SL_NONE; count++)
        foreign_put_u32(bytes, level ? graph->upper.nodes[links[count]] : links[count]);
    return count;
}

static void put_vector(foreign_bytes *bytes, const sl_graph *graph, uint32_t node) {
    uint8_t vector[64 * sizeof(float)];
    if (graph->codec.dim * sizeof(float) > sizeof vector) abort();
    sl_vector_of(graph, node, graph->codec.dtype, vector);
    foreign_put(bytes, vector, graph->codec.dim * sl_dtype_size(graph->codec.dtype));
}

/* ---------------------------------------------------------------------------------------------------------------
 * hnswlib
 * ------------------------------------------------------------------------------------------------------------- */

static void put_list(foreign_bytes *bytes, const sl_graph *graph, uint32_t node, uint32_t slot, uint32_t level) {
    const size_t at = bytes->size, degree = level ? graph->m : graph->m0;
    const uint32_t deleted = !level && sl_is_deleted(graph, node);
    foreign_put_u32(bytes, 0);
    const uint32_t count = put_links(bytes, graph, node, slot, level), head = count | deleted << 16;
    for (size_t i = count; i < degree; i++)
        foreign_put_u32(bytes, 0);
    memcpy(bytes->at + at, &head, sizeof head);
}

static void put_header(foreign_bytes *bytes, const sl_graph *graph) {
    const size_t data = 4 * (graph->m0 + 1), vector = graph->codec.dim * sl_dtype_size(graph->codec.dtype);
    const sl_entry entry = graph->n ? sl_entry_get(graph) : (sl_entry){0};
    const uint64_t counts[] = {0, graph->n + 7, graph->n, data + vector + 8, data + vector, data};
    const uint64_t degrees[] = {graph->m, graph->m0, graph->m};
    const double multiplier = 0.5;
    foreign_put(bytes, counts, sizeof counts);
    foreign_put_u32(bytes, graph->n ? entry.level : UINT32_MAX);
    foreign_put_u32(bytes, graph->n ? entry.node : UINT32_MAX);
    foreign_put(bytes, degrees, sizeof degrees);
    foreign_put(bytes, &multiplier, sizeof multiplier);
    foreign_put_u64(bytes, graph->ef_construction);
}

foreign_bytes foreign_hnswlib(const sl_index *index) {
    const sl_graph *graph = &index->graph;
    foreign_bytes bytes = {0};
    put_header(&bytes, graph);
    for (uint32_t node = 0; node < graph->n; node++) {
        put_list(&bytes, graph, node, 0, 0);
        put_vector(&bytes, graph, node);
        foreign_put_u64(&bytes, sl_id_of(graph, node));
    }
    for (uint32_t node = 0; node < graph->n; node++) {
        uint32_t slot, levels = sl_level_and_slot(graph, node, &slot);
        foreign_put_u32(&bytes, (uint32_t)(levels * 4 * (graph->m + 1)));
        for (uint32_t level = 1; level <= levels; level++)
            put_list(&bytes, graph, node, slot, level);
    }
    return bytes;
}

/* ---------------------------------------------------------------------------------------------------------------
 * Faiss
 * ------------------------------------------------------------------------------------------------------------- */

void foreign_faiss_class(foreign_bytes *bytes, const char *letters, size_t dim, size_t n, uint32_t metric) {
    const uint64_t unused[2] = {1 << 20, 1 << 20};
    const uint8_t trained = 1;
    foreign_put(bytes, letters, 4);
    foreign_put_u32(bytes, (uint32_t)dim);
    foreign_put_u64(bytes, n);
    foreign_put(bytes, unused, sizeof unused);
    foreign_put(bytes, &trained, sizeof trained);
    foreign_put_u32(bytes, metric);
}

enum { FAISS_LEVELS = 12 };

static void put_levels(foreign_bytes *bytes, const sl_graph *graph) {
    foreign_put_u64(bytes, graph->n);
    for (uint32_t node = 0; node < graph->n; node++) {
        uint32_t slot;
        foreign_put_u32(bytes, 1 + sl_level_and_slot(graph, node, &slot));
    }
}

/* Appends where each node's lists begin. Returns the words of all lists. */
static size_t put_offsets(foreign_bytes *bytes, const sl_graph *graph) {
    size_t words = 0;
    foreign_put_u64(bytes, graph->n + 1);
    for (uint32_t node = 0; node < graph->n; node++) {
        uint32_t slot;
        foreign_put_u64(bytes, words);
        words += (2 + sl_level_and_slot(graph, node, &slot)) * graph->m;
    }
    foreign_put_u64(bytes, words);
    return words;
}

static void put_faiss_graph(foreign_bytes *bytes, const sl_graph *graph) {
    foreign_put_u64(bytes, FAISS_LEVELS);
    for (size_t i = 0; i < FAISS_LEVELS; i++)
        foreign_put(bytes, &(double){0.1}, sizeof(double));
    foreign_put_u64(bytes, FAISS_LEVELS + 1);
    for (size_t i = 0; i <= FAISS_LEVELS; i++)
        foreign_put_u32(bytes, (uint32_t)(i ? (i + 1) * graph->m : 0));
    put_levels(bytes, graph);
    foreign_put_u64(bytes, put_offsets(bytes, graph));
    for (uint32_t node = 0; node < graph->n; node++) {
        uint32_t slot, levels = sl_level_and_slot(graph, node, &slot);
        for (uint32_t level = 0; level <= levels; level++)
            for (uint32_t count = put_links(bytes, graph, node, slot, level); count < (level ? graph->m : graph->m0);
                 count++)
                foreign_put_u32(bytes, UINT32_MAX);
    }
    const sl_entry entry = graph->n ? sl_entry_get(graph) : (sl_entry){0};
    foreign_put_u32(bytes, graph->n ? entry.node : UINT32_MAX);
    foreign_put_u32(bytes, graph->n ? entry.level : UINT32_MAX);
    foreign_put_u32(bytes, (uint32_t)graph->ef_construction);
    foreign_put_u32(bytes, 16);
    foreign_put_u32(bytes, 1);
}

foreign_bytes foreign_faiss(const sl_index *index, unsigned parts) {
    const sl_graph *graph = &index->graph;
    const uint32_t metric = graph->codec.metric == SL_METRIC_L2;
    const size_t dim = graph->codec.dim;
    foreign_bytes bytes = {0};
    if (parts & FOREIGN_IDS) foreign_faiss_class(&bytes, "IxMp", dim, graph->n, metric);
    if (parts & FOREIGN_GRAPH) {
        foreign_faiss_class(&bytes, "IHNf", dim, graph->n, metric);
        put_faiss_graph(&bytes, graph);
    }
    foreign_faiss_class(&bytes, metric ? "IxF2" : "IxFI", dim, graph->n, metric);
    foreign_put_u64(&bytes, graph->n * dim);
    for (uint32_t node = 0; node < graph->n; node++)
        put_vector(&bytes, graph, node);
    if (!(parts & FOREIGN_IDS)) return bytes;
    foreign_put_u64(&bytes, graph->n);
    for (uint32_t node = 0; node < graph->n; node++)
        foreign_put_u64(&bytes, sl_id_of(graph, node));
    return bytes;
}
