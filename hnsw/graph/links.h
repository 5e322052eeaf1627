/* Lists of links that change word by word in persistent memory. A crash between two stores leaves them valid. */
#ifndef SL_HNSW_GRAPH_LINKS_H
#define SL_HNSW_GRAPH_LINKS_H

#include "hnsw/graph/index.h"

/* Makes a full list hold `count` ids and nothing else. The list lacks at most one of the ids. After each store the
 * list has every link that stays; one of these may stand twice. */
void sl_links_replace(const sl_index *index, uint32_t *links, size_t degree, const uint32_t *ids, size_t count);

/* Puts an id at the end of a list that has room and lacks it. */
void sl_links_append(uint32_t *links, size_t degree, uint32_t id);

/* Takes away links that stand twice in a list, as a crash may leave them. */
void sl_links_dedupe(const sl_index *index, uint32_t *links, size_t degree);

/* Writes empty lists of layer 0 for the nodes [first, first + n). Room in a file holds zeros instead. */
void sl_links_clear(sl_graph *graph, size_t first, size_t n);

#endif
