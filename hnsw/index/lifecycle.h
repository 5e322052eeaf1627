/* Making an index. */
#ifndef SL_HNSW_INDEX_LIFECYCLE_H
#define SL_HNSW_INDEX_LIFECYCLE_H

#include "hnsw/graph/index.h"

/* Makes an index without arrays; its geometry is settled. Parameters: `params` is a whole struct of this version.
 * Errors: those of parameters that do not fit; SL_ENOMEM. */
sl_status sl_index_new(const sl_index_params *params, sl_index **out);

#endif
