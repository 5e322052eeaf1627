/* A searcher: one thread's memory for searches, and the steps before a search. */
#ifndef SL_HNSW_SEARCH_SEARCHER_STATE_H
#define SL_HNSW_SEARCH_SEARCHER_STATE_H

#include "hnsw/graph/index.h"
#include "hnsw/search/candidate_stream.h"
#include "hnsw/search/query.h"
#include "hnsw/search/topk.h"

struct sl_searcher {
    const sl_index *of; /* the handle that the searcher was made of */
    const sl_graph *graph;
    sl_graph *view; /* of an index that follows a file: the index as it was when the last search began, and what `graph`
                       points to; else NULL */
    sl_walk walk;
    sl_candidate_stream stream; /* of searches that go on */
    size_t filter_max_ef; /* how far a search with a filter goes: max_ef, or less in a searcher that is lent to several
                             calls */
    sl_top top;           /* max_ef entries */
    float *candidate;     /* a vector decoded from its row, to be scored */
    void *scratch;        /* of a batch that scans */
    size_t scratch_size;
    void *start_scratch; /* of sl_start_nodes; apart from `scratch`, since a batch that scans may walk too */
    size_t start_scratch_size;
    sl_range_hits range_hits; /* of range searches */
    sl_filter_strategy used;  /* of the last search, if it had a filter; else AUTO */
};

/* Limits how deep a search with a filter may go; the limit is at most the room that the searcher was made with. */
void sl_searcher_limit_ef(sl_searcher *searcher, size_t max_ef);

/* Returns the max_ef that the searcher was made with. */
size_t sl_searcher_max_ef(const sl_searcher *searcher);
/* Returns the ef that the searcher's walks have room for. That is more than max_ef where the searcher has walked among
 * deleted nodes. */
size_t sl_searcher_pool_ef(const sl_searcher *searcher);

/* Gives memory of at least `size` bytes that stays the searcher's. Its content is arbitrary. */
sl_status sl_searcher_scratch(sl_searcher *searcher, size_t size, uint8_t **out);
/* Makes room for sl_start_nodes, and for searches that may not return every node. The index may have got partitions
 * since the searcher was made. */
sl_status sl_searcher_reserve_start(sl_searcher *searcher);

/* Looks at the index anew: the file says what it holds, and the handle what it is tuned for. */
void sl_searcher_refresh(sl_searcher *searcher);
/* Takes the copies that the search reads. A search takes them once, so that it reads the same memory to its end. */
void sl_searcher_choose_copies(sl_searcher *searcher);
/* Makes the searcher ready for a search of the index as it was looked at last. Checks the query and the filter, and
 * asks the walk. */
sl_status sl_searcher_prepare(sl_searcher *searcher, sl_query query, const sl_search_params *params);
/* Returns where a walk for the query begins; empty: where the upper layers lead. */
sl_status sl_searcher_start_nodes(sl_searcher *searcher, sl_query query, sl_range *near);
/* Begins the stream of the query that the searcher is ready for. The index is not empty. */
sl_status sl_searcher_begin_stream(sl_searcher *searcher, sl_query query, const sl_search_params *params);

/* For batches that find candidates without a walk. sl_searcher_set_query brings a query, which has passed
 * sl_vector_check, into the codes' form. sl_searcher_query returns that form, which is valid until the searcher's next
 * query. Ranking asks the query anew. */
void sl_searcher_set_query(sl_searcher *searcher, sl_query query);
const sl_query_code *sl_searcher_query(const sl_searcher *searcher);

#endif
