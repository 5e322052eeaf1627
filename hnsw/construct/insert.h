/* Inserts one node into the graph, on one of several threads (Algorithm 1, INSERT, of arXiv 1603.09320). */
#ifndef SL_HNSW_CONSTRUCT_INSERT_H
#define SL_HNSW_CONSTRUCT_INSERT_H

#include "hnsw/construct/detours.h"
#include "hnsw/construct/select_neighbours.h"
#include "hnsw/search/walk.h"

/* Locks that all threads of one build share. A thread holds the lock of a node while it writes the list of that node.
 * It holds one lock at a time. */
#define SL_LOCK_STRIPES 4096u
typedef struct sl_build_locks {
    sl_spin nodes[SL_LOCK_STRIPES];
    sl_spin entry;
} sl_build_locks;

typedef struct sl_insert {
    sl_index *index;
    sl_build_locks *locks;
    sl_walk walk;
    sl_selection selection;
    sl_detours detours;
    uint32_t *own;         /* a copy of the node's new list on one layer */
    const uint32_t *found; /* candidates for the list of the next node on layer 0; NULL: a walk finds them */
    size_t found_count;
} sl_insert;

sl_status sl_insert_init(sl_insert *insert, sl_index *index, sl_build_locks *locks);
void sl_insert_free(sl_insert *insert);
/* Counts the bytes that sl_insert_init allocates, by calling it. The index needs no arrays. Threads: no other call on
 * the index meanwhile. Errors: SL_ENOMEM. */
sl_status sl_insert_bytes(sl_index *index, size_t *bytes);

/* Links a node that has its row and slot already. Other threads don't see a new node until its own lists are written. A
 * node that others already link to is linked anew. */
void sl_insert_node(sl_insert *insert, uint32_t node);

/* Adds `id` to the list of `to` on a layer. A full list is selected again. Returns whether the list then has the id. */
int sl_insert_reverse_link(sl_insert *insert, const sl_layer *layer, uint32_t to, uint32_t id);

#endif
