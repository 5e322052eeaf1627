/* What a save needs, known before there is anything to save. */
#ifndef SL_HNSW_INDEX_SAVE_H
#define SL_HNSW_INDEX_SAVE_H

#include "hnsw/graph/index.h"

/* Checks the layout and the room. Errors: SL_EINVAL, SL_ELIMIT. */
sl_status sl_save_check(const sl_graph *graph, const sl_save_params *save);

/* Bytes that a save holds until its end, without the proof of reachability. `graph` needs no arrays. */
size_t sl_save_bytes(const sl_graph *graph, const sl_save_params *save);

/* Bytes of the saved file. */
uint64_t sl_save_file_size(const sl_graph *graph, const sl_save_params *save);

#endif
