#include "hnsw/search/accessors.h"

#include "distance/codec/vector_check.h"
#include "hnsw/graph/deleted.h"
#include "hnsw/graph/view.h"

sl_status sl_index_accepts(const sl_index *index, sl_dtype dtype) {
    return sl_codec_accepts(&index->graph.codec, dtype);
}

size_t sl_index_list_ids(const sl_index *index, uint64_t *ids, size_t room) {
    sl_graph view;
    const sl_graph *graph = sl_view_of(index, &view);
    size_t count = 0;
    for (size_t node = 0; (node = sl_next_undeleted(graph, node)) < graph->n && count < room; node++)
        ids[count++] = sl_id_of(graph, (uint32_t)node);
    return count;
}
