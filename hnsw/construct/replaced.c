#include "hnsw/construct/replaced.h"

#include "distance/codec/convert.h"
#include "hnsw/graph/lives.h"
#include "hnsw/graph/tombstones.h"
#include "hnsw/graph/vectors.h"

#include <stdlib.h>

/* A row with its id. */
typedef struct id_row {
    uint64_t id;
    size_t row;
} id_row;

static int by_id_and_row(const void *a, const void *b) {
    const id_row *left = a, *right = b;
    if (left->id != right->id) return left->id < right->id ? -1 : 1;
    return left->row < right->row ? -1 : left->row > right->row;
}

/* Rows in order of their ids. The caller frees n of them. */
static id_row *sort_rows(const sl_allocator *allocator, const uint64_t *ids, size_t n, sl_status *status) {
    id_row *rows = sl_mem_array(allocator, n, sizeof *rows, status);
    for (size_t i = 0; i < n && rows; i++)
        rows[i] = (id_row){ids[i], i};
    if (rows) qsort(rows, n, sizeof *rows, by_id_and_row);
    return rows;
}

static double squared_distance(const float *a, const float *b, size_t dim) {
    double sum = 0;
    for (size_t d = 0; d < dim; d++)
        sum += ((double)a[d] - (double)b[d]) * ((double)a[d] - (double)b[d]);
    return sum;
}

/* The place in the list of the node nearest to a row of `old`. Parameters: floats: room for two vectors. */
static size_t nearest_of(const sl_build *build, size_t row, const sl_node_list *list, float *floats) {
    const sl_graph *graph = &build->index->graph;
    const size_t dim = graph->codec.dim;
    size_t nearest = 0;
    double least = 0;
    if (list->count == 1) return 0;
    sl_to_float(build->dtype, build->old + row * build->stride, floats, dim);
    for (size_t i = 0; i < list->count; i++) {
        sl_vector_of(graph, list->nodes[i], SL_F32, floats + dim);
        const double distance = squared_distance(floats, floats + dim, dim);
        if (i > 0 && distance >= least) continue;
        nearest = i;
        least = distance;
    }
    return nearest;
}

/* Lists a node for each of some rows of one id, as long as the id has nodes left. */
static sl_status list_of_id(sl_build *build, const id_row *rows, size_t n, sl_node_list *left, float *floats) {
    left->count = 0;
    SL_TRY(sl_id_nodes(build->index, &build->index->graph, rows->id, left));
    for (size_t i = 0; i < n && left->count; i++) {
        const size_t at = nearest_of(build, rows[i].row, left, floats);
        SL_TRY(sl_node_list_add(build->index, left->nodes[at], &build->replaced));
        left->nodes[at] = left->nodes[--left->count];
    }
    return SL_OK;
}

static sl_status list_one_each(sl_build *build, const uint64_t *ids) {
    const sl_allocator *allocator = &build->index->graph.allocator;
    const size_t n = build->n, dim = build->index->graph.codec.dim;
    sl_status status = SL_OK;
    sl_node_list left = {0};
    id_row *rows = sort_rows(allocator, ids, n, &status);
    float *floats = sl_mem_array(allocator, 2 * dim, sizeof *floats, &status);
    for (size_t first = 0, end; first < n && status == SL_OK; first = end) {
        for (end = first + 1; end < n && rows[end].id == rows[first].id;)
            end++;
        status = list_of_id(build, rows + first, end - first, &left, floats);
    }
    sl_node_list_free(&left, allocator);
    SL_FREE_ARRAY(allocator, floats, 2 * dim);
    SL_FREE_ARRAY(allocator, rows, n);
    return status;
}

sl_status sl_replaced_list(sl_build *build, const uint64_t *ids) {
    sl_index *index = build->index;
    if (build->replace == SL_REPLACE_NONE || !ids) return SL_OK;
    if (sl_index_is_direct(index))
        return sl_fail(SL_EUNSUPPORTED, "replace needs a log, and persistent memory is written directly; delete, then "
                                        "add");
    if (build->replace == SL_REPLACE_ONE && index->graph.multi)
        SL_TRY(list_one_each(build, ids));
    else
        SL_TRY(sl_ids_nodes(index, ids, build->n, &build->replaced));
    return build->replaced.count ? sl_lives_reserve(index) : SL_OK;
}
