/* The codecs of an index, and its coarse rows. */
#ifndef SL_HNSW_GRAPH_CODES_H
#define SL_HNSW_GRAPH_CODES_H

#include "hnsw/graph/index.h"

/* Settles the codecs of a new index and the widths of its arrays. Errors: those of the parameters that do not fit. */
sl_status sl_codes_init(sl_graph *graph, const sl_index_params *params);

/* Tells whether all scales, biases and norms of a node's codes are finite. */
int sl_row_is_finite(const sl_graph *graph, uint32_t node);

/* Makes the coarse rows of nodes [first, first + n), whose other rows are there. The function learns the projection
 * when that is due, and then makes the coarse rows of all nodes again.
 * Errors: SL_ENOMEM. A failure changes no row. */
sl_status sl_codes_extend(sl_index *index, size_t first, size_t n, size_t threads);
/* Bytes that this takes for a while, of n nodes of an index that had none. */
size_t sl_codes_bytes(const sl_graph *graph, size_t n, size_t threads);

#endif
