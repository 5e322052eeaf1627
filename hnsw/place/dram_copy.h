/* Copies in DRAM of what searches of a mapped index read most: the upper layers, and of codes I4 the rows that
 * walks score. A thread of the handle's own makes them while the index answers from the mapping. */
#ifndef SL_HNSW_PLACE_DRAM_COPY_H
#define SL_HNSW_PLACE_DRAM_COPY_H

#include "hnsw/graph/index.h"

/* What a search takes in place of the index's own. */
struct sl_dram_copy {
    sl_upper upper;
    sl_codec walked; /* with its rows in the copy; of codes that are not copied, in the mapping */
};

/* Before a file with this index is taken: what was asked for can be. A file that is written in place would have to be
 * copied again with every search. */
sl_status sl_dram_copy_check(const sl_index *index, sl_tier asked);

/* Begins to fill the tier, where one was asked for or is of use, of an index that is open in all else. Without memory
 * for it or a thread the index goes without, and the log says so. */
void sl_dram_copy_start(sl_index *index, sl_tier asked);
/* Stops the filling at once, and frees what there is; the mapping must still be there. */
void sl_dram_copy_free(sl_index *index);

/* How far it is, and the bytes that have been copied. */
sl_tier_state sl_dram_copy_look(const sl_index *index, uint64_t *bytes);

/* Bytes of an index's rows that a tier has. */
size_t sl_dram_copy_row_bytes(const sl_graph *graph);

/* The copies, once all of them are there; before that NULL. */
static inline const sl_dram_copy *sl_dram_copy_now(const sl_graph *graph) {
    return __atomic_load_n(&graph->dram_copy, __ATOMIC_ACQUIRE);
}

#endif
