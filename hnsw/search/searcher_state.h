/* The fields of a searcher, for the files that search and rank with it. */
#ifndef SL_HNSW_SEARCH_SEARCHER_STATE_H
#define SL_HNSW_SEARCH_SEARCHER_STATE_H

#include "hnsw/search/searcher.h"
#include "hnsw/search/stream.h"

struct sl_searcher {
    const sl_index *of; /* the handle that the searcher was made of */
    const sl_graph *graph;
    sl_graph *view; /* of an index that follows a file: the index as it was when the last search began, and what `graph`
                       points to; else NULL */
    sl_walk walk;
    sl_stream stream; /* of searches that go on */
    size_t
        deepest; /* how far a search with a filter goes: max_ef, or less in a searcher that is lent to several calls */
    sl_top top;  /* max_ef entries */
    float *candidate; /* a vector decoded from its row, to be scored */
    void *scratch;    /* of a batch that scans */
    size_t scratch_size;
    void *start_scratch; /* of sl_start_near; apart from `scratch`, since a batch that scans may walk too */
    size_t start_scratch_size;
    sl_within within;        /* of range searches */
    sl_filter_strategy used; /* of the last search, if it had a filter; else AUTO */
};

/* rank.c: makes the pool's best the results. They are scored anew where the index has more of their vectors than the
 * walk saw. */
void sl_rank(sl_searcher *searcher, const void *query, size_t k, const sl_search_params *params);

/* searcher.c: looks at the index anew: the file says what it holds, and the handle what it is tuned for. */
void sl_searcher_look(sl_searcher *searcher);
/* searcher.c: makes the searcher ready for a search of the index as it was looked at last. Checks the query and the
 * filter, and asks the walk. */
sl_status sl_searcher_prepare(sl_searcher *searcher, const void *query, sl_dtype dtype, const sl_search_params *params);
/* searcher.c: begins the stream of the query that the searcher is ready for. The index is not empty. */
sl_status sl_searcher_stream(sl_searcher *searcher, const void *query, sl_dtype dtype, const sl_search_params *params);

/* rank.c: gives nodes the scores that results have, larger is nearer under every metric. A score of a damaged row may
 * be NaN. Parameters: `walked`: what the walk scored them. `count`: up to SL_RESULT_BLOCK. */
enum { SL_RESULT_BLOCK = 256 };
/* rank.c: asks for the memory that sl_result_scores reads. */
void sl_result_ask(const sl_searcher *searcher, uint32_t node);
void sl_result_scores(const sl_searcher *searcher, const void *query, const uint32_t *nodes, const float *walked,
                      size_t count, double *out);

/* searcher.c: returns where a walk for the query begins; empty: where the upper layers lead. */
sl_status sl_searcher_start(sl_searcher *searcher, const void *query, sl_dtype dtype, sl_range *near);
/* rank.c: leaves results that are worse than the threshold out. */
void sl_cut_off(sl_searcher *searcher, double threshold);

/* searcher.c: reads the parameters of searches for nq queries into `mine`, with the settings for the recall where one
 * was asked for. */
sl_status sl_search_params_read(const sl_graph *graph, size_t nq, size_t k, const sl_search_params *given,
                                sl_search_params *mine);
/* searcher.c: returns how many threads search for nq queries where `asked` were asked for. */
size_t sl_search_threads(size_t nq, size_t asked);
/* searcher.c: checks that a search with these parameters can be made. */
sl_status sl_search_check(const sl_graph *graph, sl_dtype dtype, size_t k, const sl_search_params *params);
/* searcher.c: refuses filters of several queries. */
sl_status sl_one_query_check(const sl_search_params *params);
/* searcher.c: writes the results of the last search, filled up to k. ids get numbers of nodes where `nodes` is set. */
void sl_searcher_write(const sl_searcher *searcher, size_t k, int nodes, uint64_t *ids, float *scores);
/* searcher.c: adds to stats what the last search found, evaluated and expanded. */
void sl_searcher_add_stats(const sl_searcher *searcher, sl_search_stats *stats);

#endif
