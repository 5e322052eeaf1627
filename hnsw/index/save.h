/* The checks and sizes of a save. A plan asks for them before the index has rows. */
#ifndef SL_HNSW_INDEX_SAVE_H
#define SL_HNSW_INDEX_SAVE_H

#include "hnsw/graph/index.h"

/* Checks the layout and the room. Errors: SL_EINVAL, SL_ELIMIT. */
sl_status sl_save_check(const sl_graph *graph, const sl_save_params *save);

/* Bytes of memory that a save holds until its end. Those of the proof of reachability come on top. `graph` needs no
 * arrays. */
size_t sl_save_bytes(const sl_graph *graph, const sl_save_params *save);

/* Bytes of the saved file. */
uint64_t sl_save_file_size(const sl_graph *graph, const sl_save_params *save);

#endif
