/* A copy in DRAM of a mapped index's most read arrays: the upper layers, and under codes I4 the rows that walks score.
 * A thread of the handle fills it while searches read the mapping. */
#ifndef SL_HNSW_PLACE_DRAM_COPY_H
#define SL_HNSW_PLACE_DRAM_COPY_H

#include "hnsw/graph/index.h"

/* The arrays that searches use in place of the index's own. */
struct sl_dram_copy {
    sl_upper upper;
    sl_codec walked; /* its rows lie in the copy; or in the mapping, if the codes aren't copied */
};

/* Checks, early in opening, that the file may have a copy in DRAM. A file that is written in place would need a new
 * copy for every search. Errors: SL_EINVAL, SL_EUNSUPPORTED. */
sl_status sl_dram_copy_check(const sl_index *index, sl_tier asked);

/* Starts the copy, if the user asked for it or it helps. It's the last step of opening. If memory or threads are
 * missing, the index goes without a copy and the log says so. */
void sl_dram_copy_start(sl_index *index, sl_tier asked);
/* Stops the thread at once and frees the copy. The mapping must still exist. */
void sl_dram_copy_free(sl_index *index);

/* The state of the copy. `*bytes` gets the bytes copied so far. */
sl_tier_state sl_dram_copy_state(const sl_index *index, uint64_t *bytes);

/* Bytes of layer 0 in the copy. */
size_t sl_dram_copy_row_bytes(const sl_graph *graph);

/* The copy, once it's whole; NULL before. */
static inline const sl_dram_copy *sl_dram_copy_now(const sl_graph *graph) {
    return graph->dram_copy ? __atomic_load_n(graph->dram_copy, __ATOMIC_ACQUIRE) : NULL;
}

#endif
