#include "hnsw/search/accessors.h"

#include "distance/codec/vector_check.h"
#include "hnsw/graph/deleted.h"
#include "hnsw/graph/index.h"

sl_status sl_index_accepts(const sl_index *index, sl_dtype dtype) {
    return sl_codec_accepts(&index->graph.codec, dtype);
}

size_t sl_index_list_ids(const sl_index *index, uint64_t *ids, size_t room) {
    size_t count = 0;
    for (size_t node = 0; (node = sl_next_undeleted(&index->graph, node)) < index->graph.n && count < room; node++)
        ids[count++] = sl_id_of(&index->graph, (uint32_t)node);
    return count;
}
