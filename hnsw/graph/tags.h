/* Tags and keys: two optional words of 64 bits a node. index.h has the accessors of one node's words. */
#ifndef SL_HNSW_GRAPH_TAGS_H
#define SL_HNSW_GRAPH_TAGS_H

#include "hnsw/graph/index.h"

/* Checks that the index has the words that are given. Errors: SL_EINVAL.
 * Parameters: `given` is nonzero where the caller gives words, or asks for them; `kind` is TAGS or KEYS. */
sl_status sl_words_check(const sl_graph *graph, sl_array_kind kind, int given);

/* Gives n nodes from `first` on their words, zeros where `words` is NULL. An index without such words does nothing. */
void sl_words_put(const sl_graph *graph, sl_array_kind kind, size_t first, size_t n, const uint64_t *words);

#endif
