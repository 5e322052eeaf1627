/* What an index that may be written to is held to once, when it is opened, so that writers need not doubt what they
 * read. A mapped one is checked as it is walked. */
#ifndef SL_HNSW_INDEX_OPEN_CHECK_H
#define SL_HNSW_INDEX_OPEN_CHECK_H

#include "hnsw/graph/index.h"

/* Of an index in DRAM whose file has not been closed yet. SL_ECORRUPT says what breaks which rule. */
sl_status sl_open_check(const sl_graph *graph, size_t threads);

#endif
