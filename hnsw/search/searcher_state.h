/* What a searcher has, for the files that search and rank with it. */
#ifndef SL_HNSW_SEARCH_SEARCHER_STATE_H
#define SL_HNSW_SEARCH_SEARCHER_STATE_H

#include "hnsw/search/searcher.h"
#include "hnsw/search/walk.h"

struct sl_searcher {
    const sl_index *of; /* the handle it was made of */
    const sl_index *index;
    sl_index *view; /* of an index that follows a file: what `index` is, as it was when the last search began */
    sl_walk walk;
    size_t deepest;   /* how far a search with a filter goes: max_ef, or less of one that is lent to several */
    sl_top top;       /* max_ef entries */
    float *candidate; /* a vector brought back from its row, to be scored */
    void *scratch;    /* of a batch that scans */
    size_t scratch_size;
    void *start_scratch; /* of where a walk begins, which one of a batch that scans may make */
    size_t start_scratch_size;
};

/* rank.c: the pool's best as results, scored anew where the index has more of them than the walk saw. */
void sl_rank(sl_searcher *searcher, const void *query, size_t k, const sl_search_params *params);

/* searcher.c: parameters as they are to be used, also where a recall was asked for, of searches for nq queries. */
sl_status sl_search_params_read(const sl_index *index, size_t nq, size_t k, const sl_search_params *given,
                                sl_search_params *mine);
/* searcher.c: how many threads search for nq queries. */
size_t sl_search_threads(size_t nq, const sl_search_params *params);
/* searcher.c: whether a search with them can be made. */
sl_status sl_search_check(const sl_index *index, sl_dtype dtype, size_t k, const sl_search_params *params);
/* searcher.c: the results of the last search, filled up to k; ids get the nodes' numbers where `nodes`. */
void sl_searcher_write(const sl_searcher *searcher, size_t k, int nodes, uint64_t *ids, float *scores);
/* searcher.c: adds what the last search found, evaluated and expanded. */
void sl_searcher_add_stats(const sl_searcher *searcher, sl_search_stats *stats);

#endif
