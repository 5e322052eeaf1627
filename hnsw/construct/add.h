/* Adds rows to an index: vectors (sl_index_add), or rows of other graphs. */
#ifndef SL_HNSW_CONSTRUCT_ADD_H
#define SL_HNSW_CONSTRUCT_ADD_H

#include "hnsw/construct/build.h"

/* The most bytes that adding takes beside the index: before its nodes are numbered by partition, and after. */
typedef struct sl_build_bytes {
    size_t before, after;
} sl_build_bytes;

/* Adds n rows of other graphs, all or nothing, as sl_index_add adds vectors. Errors: those of sl_index_add. */
sl_status sl_add_copied(sl_index *index, const sl_copied *copied, size_t n, const uint64_t *ids,
                        const sl_add_params *params);
/* Counts the bytes that adding all nodes of an index at once takes. The index has the counts of its nodes, and needs no
 * arrays. `alike`: see sl_from_leaves_bytes. Threads: no other call on the index meanwhile. Errors: SL_ENOMEM. */
sl_status sl_build_count_bytes(sl_index *index, sl_builder builder, size_t threads, int alike, sl_build_bytes *bytes);

#endif
