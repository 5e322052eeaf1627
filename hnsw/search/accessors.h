/* The questions that recommend/ asks about an index besides those of shortlist.h. recommend/ sees no field of an
 * index. */
#ifndef SL_HNSW_SEARCH_ACCESSORS_H
#define SL_HNSW_SEARCH_ACCESSORS_H

#include <shortlist.h>

/* Tells whether queries and vectors may have this element type. Errors: SL_ETYPE. */
sl_status sl_index_accepts(const sl_index *index, sl_dtype dtype);

/* The max_ef of a searcher for these parameters. A filter, or groups, get room for walks that have to look
 * further. */
size_t sl_search_max_ef(const sl_search_params *params, size_t k);

#endif
