/* Functions on an index that recommend/ needs and shortlist.h lacks. recommend/ reads no field of an index. */
#ifndef SL_HNSW_SEARCH_ACCESSORS_H
#define SL_HNSW_SEARCH_ACCESSORS_H

#include <shortlist.h>

/* Checks whether the index takes queries and vectors of this element type. Errors: SL_ETYPE. */
sl_status sl_index_accepts(const sl_index *index, sl_dtype dtype);

/* Returns the max_ef that a searcher needs for these parameters. It is larger with a filter or groups, whose searches
 * may widen their beams. */
size_t sl_search_max_ef(const sl_search_params *params, size_t k);

#endif
