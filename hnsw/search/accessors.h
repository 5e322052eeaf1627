/* Questions about an index that recommend/ needs besides shortlist.h. recommend/ sees no field of an index. */
#ifndef SL_HNSW_SEARCH_ACCESSORS_H
#define SL_HNSW_SEARCH_ACCESSORS_H

#include <shortlist.h>

/* Checks whether queries and vectors may have this element type. Errors: SL_ETYPE. */
sl_status sl_index_accepts(const sl_index *index, sl_dtype dtype);

/* Returns the max_ef of a searcher for these parameters. With a filter or groups it has room for wider beams. */
size_t sl_search_max_ef(const sl_search_params *params, size_t k);

#endif
