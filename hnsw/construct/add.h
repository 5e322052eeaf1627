/* Adds rows to an index: vectors (sl_index_add), or rows of other graphs. */
#ifndef SL_HNSW_CONSTRUCT_ADD_H
#define SL_HNSW_CONSTRUCT_ADD_H

#include "hnsw/construct/build.h"

/* The most bytes that an add takes beside the index itself. `before`: until the nodes are numbered by partition;
 * `after`: from then on, 0 if nodes are inserted. */
typedef struct sl_build_bytes {
    size_t before, after;
} sl_build_bytes;

/* Adds n rows of other graphs, all or nothing, as sl_index_add adds vectors. Errors: those of sl_index_add. */
sl_status sl_add_copied(sl_index *index, const sl_copied *copied, size_t n, const uint64_t *ids,
                        const sl_add_params *params);
/* Adds imported vectors, with their graph, to an empty index that nobody else has. Nodes that the graph doesn't reach
 * get a link. Errors: those of sl_index_add. */
sl_status sl_add_imported(sl_index *index, const sl_imported_graph *imported, const uint64_t *ids,
                          const sl_add_params *params);
/* Sets *bytes for adding as many vectors as `index` counts, all at once. The index needs its counts, but no arrays.
 * `alike`: see sl_from_leaves_bytes. Threads: no other call on the index meanwhile. Errors: SL_ENOMEM. */
sl_status sl_build_count_bytes(sl_index *index, sl_builder builder, size_t threads, int alike, sl_build_bytes *bytes);

#endif
