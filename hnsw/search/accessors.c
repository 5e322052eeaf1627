#include "hnsw/search/accessors.h"

#include "distance/codec/vector_check.h"
#include "hnsw/graph/index.h"
#include "hnsw/search/allowed.h"

/* A filtered search may widen its beam to FURTHER times ef, or to LEAST if that is more. This bound doesn't depend on
 * what the filter accepts. */
enum { FURTHER = 8, LEAST = 1024 };

sl_status sl_index_accepts(const sl_index *index, sl_dtype dtype) {
    return sl_codec_accepts(&index->graph.codec, dtype);
}

size_t sl_search_max_ef(const sl_search_params *params, size_t k) {
    size_t ef = params->ef > k ? params->ef : k;
    if (!sl_is_filtered(params) && !params->group_size) return ef;
    size_t room = FURTHER * ef > LEAST ? FURTHER * ef : LEAST;
    return room < SL_MAX_EF ? room : SL_MAX_EF;
}
