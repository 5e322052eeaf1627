/* A query vector as the caller gave it. */
#ifndef SL_HNSW_SEARCH_QUERY_H
#define SL_HNSW_SEARCH_QUERY_H

#include <shortlist.h>

typedef struct sl_query {
    const void *vector; /* the caller's; it has the index's dimension */
    sl_dtype dtype;
} sl_query;

#endif
