/* A searcher: one thread's memory for searches, and the steps before a search. */
#ifndef SL_HNSW_SEARCH_SEARCHER_STATE_H
#define SL_HNSW_SEARCH_SEARCHER_STATE_H

#include "hnsw/graph/version.h"
#include "hnsw/search/candidate_stream.h"
#include "hnsw/search/query.h"
#include "hnsw/search/topk.h"

struct sl_searcher {
    const sl_index *index;  /* the handle that the searcher was made from */
    const sl_graph *graph;  /* what the search reads. Between searches the handle's own, for its geometry alone */
    sl_graph *view;         /* the graph as it was when the last search began, if the index follows a file. Else NULL */
    const sl_graph *pinned; /* the graph that all searches read until it's changed; NULL: the current version */
    sl_epoch_reader *reader; /* announces a search; NULL: there was no memory for it */
    sl_walk walk;
    sl_candidate_stream stream; /* of iterators and grouped searches */
    size_t filter_max_ef;       /* the widest beam of a filtered search: max_ef, or less in a pooled searcher */
    sl_top top;                 /* max_ef entries */
    float *decoded;             /* room for one decoded vector, which re-ranking scores */
    void *scratch;              /* of partition scans and grouped searches */
    size_t scratch_size;
    sl_range start;      /* nodes where walks begin; empty: sl_start_nodes finds them for each query */
    void *start_scratch; /* of sl_start_nodes and filtered searches. Apart from `scratch`: a query of a batch scan may
                            walk too */
    size_t start_scratch_size;
    sl_range_hits range_hits;    /* of range searches */
    sl_filter_strategy strategy; /* strategy of the last search, if it had a filter; else AUTO */
};

/* Limits the beam of filtered searches. max_ef: at most the searcher's own. */
void sl_searcher_limit_ef(sl_searcher *searcher, size_t max_ef);

/* Returns the max_ef that the searcher was made with. */
size_t sl_searcher_max_ef(const sl_searcher *searcher);
/* Returns the ef that the pool has room for. It exceeds max_ef once the searcher has walked among tombstones. */
size_t sl_searcher_pool_ef(const sl_searcher *searcher);

/* Gives at least `size` bytes of scratch with arbitrary content. The searcher owns them. Errors: SL_ENOMEM. */
sl_status sl_searcher_scratch(sl_searcher *searcher, size_t size, uint8_t **out);
/* Makes room for sl_start_nodes and filtered searches: the index may have new partitions. Errors: SL_ENOMEM. */
sl_status sl_searcher_reserve_start(sl_searcher *searcher);

/* Begins a use of the current version, or of the pinned graph. A handle that follows a file takes the counts
 * from the file. End the use by sl_searcher_exit, once the results are read. */
void sl_searcher_enter(sl_searcher *searcher);
void sl_searcher_exit(sl_searcher *searcher);
/* Makes all searches read a graph that the caller protects. NULL: the current version again. */
void sl_searcher_pin(sl_searcher *searcher, const sl_graph *graph);
/* Chooses the copies of rows and upper layers that this search reads to its end. */
void sl_searcher_choose_copies(sl_searcher *searcher);
/* Prepares a search after sl_searcher_enter. Checks the query and the filter, and sets the walk's query.
 * Errors: SL_EVALUE, SL_EINVAL, SL_ENOMEM. */
sl_status sl_searcher_prepare(sl_searcher *searcher, sl_query query, const sl_search_params *params);
/* Finds the nodes where the query's walk starts. If the range is empty, the walk starts at the end of the descent.
 * Errors: SL_ENOMEM. */
sl_status sl_searcher_start_nodes(sl_searcher *searcher, sl_query query, sl_range *start);
/* Begins the candidate stream of the prepared query. The index must not be empty. */
sl_status sl_searcher_begin_stream(sl_searcher *searcher, sl_query query, const sl_search_params *params);

/* sl_searcher_set_query encodes a checked query for a batch scan. sl_searcher_query returns the code, which is valid
 * until the searcher's next query. Re-ranking encodes the query again. */
void sl_searcher_set_query(sl_searcher *searcher, sl_query query);
const sl_query_code *sl_searcher_query(const sl_searcher *searcher);

#endif
