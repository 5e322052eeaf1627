/* Making an index. */
#ifndef SL_HNSW_INDEX_LIFECYCLE_H
#define SL_HNSW_INDEX_LIFECYCLE_H

#include "hnsw/graph/index.h"

/* Makes an index without arrays: only its geometry (metric, dimension, codecs, m and the like) is set. `params` must be
 * a complete struct of this library's version. Errors: SL_ENOMEM; SL_EINVAL and others if parameters don't fit
 * together. */
sl_status sl_index_new(const sl_index_params *params, sl_index **out);

#endif
