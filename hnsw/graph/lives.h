/* Lives: when nodes were added and deleted. A search finds the nodes that were there when it began, though writers add
 * and delete meanwhile. index.h has the accessors.
 *
 * A handle's own searches go by epochs. In a file that is written in place, section SL_SECTION_LIFETIMES has the same
 * array for other processes, in commits: a change belongs to the next commit. */
#ifndef SL_HNSW_GRAPH_LIVES_H
#define SL_HNSW_GRAPH_LIVES_H

#include "hnsw/graph/index.h"

/* Makes room for the lives of `capacity` nodes, and keeps those that there are. Untouched lives take no memory. The old
 * lives stay: the caller frees them once no reader has them. Errors: SL_ENOMEM. */
sl_status sl_lives_grow(const sl_lives *from, size_t capacity, sl_lives *out);
void sl_lives_free(sl_lives *lives);
/* Bytes of the lives, untouched ones too. */
size_t sl_lives_bytes(const sl_lives *lives);

/* Bytes of the lives of `capacity` nodes, and the lives in such a block. */
size_t sl_lives_room(size_t capacity);
sl_lives sl_lives_in(void *block, size_t capacity);

/* Notes that a node is added or deleted in an epoch that has not begun. The tombstone changes after this. */
void sl_life_begin(sl_index *index, size_t node, uint64_t epoch);
void sl_life_end(sl_index *index, size_t node, uint64_t epoch);
/* Notes in an epoch that has not begun that a node was never added, or that its place is free. */
void sl_life_unborn(sl_index *index, size_t node, uint64_t epoch);
/* Forgets the lives of nodes behind the last one. */
void sl_lives_clear(sl_index *index, size_t first, size_t n);

#endif
