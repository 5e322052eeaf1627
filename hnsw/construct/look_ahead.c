#include "hnsw/construct/look_ahead.h"

#include "distance/codec/vector_check.h"
#include "hnsw/graph/entry.h"
#include "hnsw/graph/vectors.h"
#include "hnsw/search/walk.h"

/* Vectors that may be added during the search and the wait behind it, also as a share of the nodes found. The new node
 * gets no links to them. */
enum { MOST_MISSED = 64, SHARE_MISSED = 4 };

static sl_status find_nodes(sl_look_ahead *ahead, const sl_graph *graph, sl_query row) {
    const size_t ef = graph->ef_construction;
    sl_status status = SL_OK;
    sl_walk walk;
    ahead->nodes = sl_mem_array(&graph->allocator, ef, sizeof *ahead->nodes, &status);
    if (status != SL_OK) return status;
    ahead->room = ef;
    SL_TRY(sl_walk_init(&walk, graph, ef));
    sl_walk_set_query(&walk, row, SL_ENCODE_WALK);
    sl_walk_layer(&walk, 0, sl_range_of_id(sl_walk_descend(&walk, sl_entry_get(graph), 0)), ef);
    sl_pool_finish(&walk.pool, ef);
    sl_pool_sort(&walk.pool);
    for (; ahead->count < walk.pool.size && ahead->count < ef; ahead->count++)
        ahead->nodes[ahead->count] = sl_pool_id(walk.pool.keys[ahead->count]);
    sl_walk_free(&walk);
    return SL_OK;
}

/* Returns whether adds of this index may look ahead. */
static int suits(const sl_index *index) {
    return sl_gate_is_shared(&index->versions->gate) && !index->graph.ranks && !index->spill;
}

void sl_look_ahead_begin(sl_look_ahead *ahead, const sl_index *index, sl_query row, size_t stride) {
    *ahead = (sl_look_ahead){0};
    if (!suits(index) || !row.vector) return;
    ahead->index = index;
    ahead->added = __atomic_load_n(&index->added, __ATOMIC_RELAXED);
    sl_reading reading;
    const sl_graph *graph = sl_reading_begin(index, &reading);
    ahead->numbering = graph->numbering;
    if (graph->n && sl_codec_accepts(&graph->codec, row.dtype) == SL_OK &&
        sl_check_stride(row.vector, row.dtype, graph->codec.dim, stride) == SL_OK &&
        sl_vector_check(graph->codec.metric, row.dtype, row.vector, graph->codec.dim) == SL_OK)
        (void)find_nodes(ahead, graph, row);
    sl_reading_end(&reading);
}

void sl_look_ahead_check(sl_look_ahead *ahead) {
    const sl_index *index = ahead->index;
    if (!index) return;
    const uint64_t missed = index->added - ahead->added;
    if (index->graph.numbering != ahead->numbering || missed > MOST_MISSED || missed * SHARE_MISSED > ahead->count)
        ahead->count = 0;
}

void sl_look_ahead_end(sl_look_ahead *ahead) {
    if (ahead->index) SL_FREE_ARRAY(&ahead->index->graph.allocator, ahead->nodes, ahead->room);
}
