/* Functions on an index that recommend/ needs and shortlist.h lacks. recommend/ reads no field of an index. */
#ifndef SL_HNSW_SEARCH_ACCESSORS_H
#define SL_HNSW_SEARCH_ACCESSORS_H

#include <shortlist.h>

/* Checks whether the index takes queries and vectors of this element type. Errors: SL_ETYPE. */
sl_status sl_index_accepts(const sl_index *index, sl_dtype dtype);

/* Returns the max_ef that a searcher needs for these parameters. It is larger with a filter or groups, whose searches
 * may widen their beams. */
size_t sl_search_max_ef(const sl_search_params *params, size_t k);

/* Births tell whether an id still has the vector that it had: 0: it has none; else a number that no other vector of the
 * id has had on this handle, or in the file that it follows.
 * Parameters: `births` has n entries. Errors: SL_ENOMEM. Threads: waits as sl_index_get does. */
sl_status sl_index_births(sl_index *index, const uint64_t *ids, size_t n, uint64_t *births);

/* Arrays of k entries for results; births may be NULL. */
typedef struct sl_found {
    uint64_t *ids;
    float *scores;
    uint64_t *births;
} sl_found;
/* Searches as sl_searcher_search does, and writes the births of the vectors that it found. Takes no lock. */
sl_status sl_searcher_search_births(sl_searcher *searcher, const void *query, sl_dtype dtype, size_t k,
                                    const sl_search_params *params, const sl_found *out, sl_search_stats *stats);

#endif
