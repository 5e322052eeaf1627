/* The codecs of an index, and its coarse rows. */
#ifndef SL_HNSW_GRAPH_CODES_H
#define SL_HNSW_GRAPH_CODES_H

#include "hnsw/graph/index.h"

/* Sets the codecs of a new index and the widths of its arrays. Errors: SL_EINVAL and others if parameters don't fit
 * together. */
sl_status sl_codes_init(sl_graph *graph, const sl_index_params *params);

/* Returns whether all scales, biases and norms of a node's codes are finite. */
int sl_row_is_finite(const sl_graph *graph, uint32_t node);

/* Nodes that got rows: [first, first + appended) behind the last node; or the n that `places` lists, these among them.
 */
typedef struct sl_new_rows {
    size_t first, appended;
    const uint32_t *places; /* NULL: there are no others */
    size_t n;
} sl_new_rows;

/* Makes the coarse rows of new nodes from their other rows. If a new projection is due, learns it and makes the coarse
 * rows of all nodes again.
 * Errors: SL_ENOMEM; then no row has changed. */
sl_status sl_codes_extend(sl_index *index, const sl_new_rows *rows, size_t threads);
/* Scratch bytes of sl_codes_extend, for n nodes of an index that was empty. */
size_t sl_codes_bytes(const sl_graph *graph, size_t n, size_t threads);

#endif
