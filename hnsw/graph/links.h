/* Lists of links that change word by word. In persistent memory, a crash between two stores leaves them valid. */
#ifndef SL_HNSW_GRAPH_LINKS_H
#define SL_HNSW_GRAPH_LINKS_H

#include "hnsw/graph/index.h"

/* Makes a list hold these ids alone. New ones take the places of those that go, and then places behind all others.
 * After each single store, the list has every link that stays, at most one of them twice. */
void sl_links_replace(const sl_index *index, uint32_t *links, size_t degree, const uint32_t *ids, size_t count);

/* Appends an id to a list, unless the list is full or has the id. */
void sl_links_append(uint32_t *links, size_t degree, uint32_t id);

/* Removes links that a crash left twice in a list. */
void sl_links_dedupe(const sl_index *index, uint32_t *links, size_t degree);

/* Empties the lists of nodes [first, first + n) on layer 0. They may hold zeros before, as unused room in a file
 * does. */
void sl_links_clear(sl_graph *graph, size_t first, size_t n);

/* Writes a list: `count` links, and SL_NONE behind them. Readers may see a mixture of the old list and the new one. */
void sl_links_store(const sl_index *index, uint32_t *links, size_t degree, const uint32_t *ids, size_t count);

/* Copies words of lists that other threads may be changing. */
void sl_links_copy(uint32_t *to, const uint32_t *from, size_t count);

#endif
