#include "hnsw/search/accessors.h"

#include "distance/codec/vector_check.h"
#include "hnsw/graph/index.h"

sl_status sl_index_accepts(const sl_index *index, sl_dtype dtype) {
    return sl_codec_accepts(&index->graph.codec, dtype);
}
