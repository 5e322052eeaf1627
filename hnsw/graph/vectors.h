/* The vectors of nodes, decoded. */
#ifndef SL_HNSW_GRAPH_VECTORS_H
#define SL_HNSW_GRAPH_VECTORS_H

#include "hnsw/graph/index.h"

/* Checks that `vectors` may hold rows of this type. Parameters: `stride` in bytes; 0: dense.
 * Errors: SL_EINVAL. */
sl_status sl_check_stride(const void *vectors, sl_dtype dtype, size_t dim, size_t stride);

/* Decode a node's vector: from its refine row, which must be there, and from its codes. */
void sl_refined_floats(const sl_graph *graph, uint32_t node, float *out);
void sl_coded_floats(const sl_graph *graph, uint32_t node, float *out);
/* Prefetches the memory that sl_coded_floats reads. */
void sl_coded_prefetch(const sl_graph *graph, uint32_t node);

/* Decodes a node's vector as sl_index_get returns it: as floats, or as the integers of an integer index. */
void sl_vector_of(const sl_graph *graph, uint32_t node, sl_dtype dtype, void *out);

#endif
