/* Tags and keys: two optional words of 64 bits per node. index.h has the accessors of one node's words. */
#ifndef SL_HNSW_GRAPH_TAGS_H
#define SL_HNSW_GRAPH_TAGS_H

#include "hnsw/graph/index.h"

/* Checks that the index has words of this kind, if `given` is set. Errors: SL_EINVAL.
 * Parameters: `given`: whether the caller gives or reads such words; `kind`: TAGS or KEYS. */
sl_status sl_words_check(const sl_graph *graph, sl_array_kind kind, int given);
/* The same for a caller outside the gate: asks the current version. */
sl_status sl_words_check_now(const sl_index *index, sl_array_kind kind, int given);

/* Sets the words of n nodes from `first` on; zeros if `words` is NULL. Does nothing if the index has no such words. */
void sl_words_put(const sl_graph *graph, sl_array_kind kind, size_t first, size_t n, const uint64_t *words);

#endif
