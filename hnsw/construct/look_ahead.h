/* Finds a vector's neighbours before its add may change the index. So threads that add one vector a call search side by
 * side, and only link one after another. */
#ifndef SL_HNSW_CONSTRUCT_LOOK_AHEAD_H
#define SL_HNSW_CONSTRUCT_LOOK_AHEAD_H

#include "hnsw/graph/version.h"
#include "hnsw/search/query.h"

typedef struct sl_look_ahead {
    const sl_index *index; /* NULL: nothing was found */
    uint32_t *nodes;       /* of layer 0. Meanwhile some may be deleted, and their places free or used again */
    size_t count, room;
    uint64_t numbering, added; /* of the index, when the search began */
} sl_look_ahead;

/* Searches the current version, if different threads change the index. Otherwise, without memory, or for a vector that
 * the index doesn't take, finds nothing. `stride`: of the add. Call sl_look_ahead_end. Threads: any; the caller is
 * not inside the gate. */
void sl_look_ahead_begin(sl_look_ahead *ahead, const sl_index *index, sl_query row, size_t stride);
/* Forgets all nodes if they were numbered anew, or many vectors came since. The caller has the index for a change. */
void sl_look_ahead_check(sl_look_ahead *ahead);
void sl_look_ahead_end(sl_look_ahead *ahead);

#endif
