/* Searches of a split: each rank holds some parts, and asks for its own queries.
 *
 *   home rank of a query                          rank of a part
 *   nearest cells -> parts to ask
 *          |----- query, bound ----------------------->|
 *          |                                    walk of the part
 *          |<---- k ids and scores, beam --------------|
 *   merge, drop ids that came twice
 *
 * A query of neighbourhoods first asks the part of its nearest cell. Further parts get the score that the first one's
 * beam ends with, and walk only where they may beat it. A query of slices asks all parts at once. */
#ifndef SL_CLUSTER_SEARCH_SPLIT_SEARCH_H
#define SL_CLUSTER_SEARCH_SPLIT_SEARCH_H

#include "cluster/comm/comm.h"
#include "cluster/search/split_file.h"

#include <shortlist.h>

typedef struct sl_split_searcher sl_split_searcher;

/* Opens a split. The parts are shared out among the ranks in order; a rank may have several parts, or none. Every rank
 * calls it. All ranks fail if one does.
 * Errors: of sl_split_read and of opening an index; SL_ECORRUPT (a part is of another split). */
sl_status sl_split_searcher_create(const sl_comm *comm, const char *folder, sl_place place, size_t threads,
                                   sl_split_searcher **out);
void sl_split_searcher_free(sl_split_searcher *searcher);
/* The searcher owns the split. */
const sl_split *sl_split_searcher_split(const sl_split_searcher *searcher);

/* Queries of one rank, dense. */
typedef struct sl_split_queries {
    const void *rows; /* (count, dim) */
    sl_dtype dtype;
    size_t count;
} sl_split_queries;

/* Checks queries before a search. Errors: SL_EVALUE (names the query). */
sl_status sl_split_check_queries(const sl_split *split, const sl_split_queries *queries);

typedef struct sl_split_params {
    size_t k, ef;
    double stop;  /* see sl_search_params */
    size_t batch; /* queries of each rank that are under way at a time */
    float reach;  /* neighbourhoods: a further part is asked if its reach (sl_reach_found) is at most this */
} sl_split_params;

/* Sums over this rank's queries. */
typedef struct sl_split_counts {
    uint64_t results;
    uint64_t asked;       /* parts asked */
    uint64_t evaluations; /* distances computed, those of routing included */
    uint64_t routing;     /* centres compared */
} sl_split_counts;

/* Where a search puts its results. */
typedef struct sl_split_results {
    uint64_t *ids;    /* (count, k), best first; SL_NO_ID fills the rest */
    float *scores;    /* the same; NaN fills the rest */
    float *latencies; /* microseconds from the start of a query's batch to its last answer; may be NULL */
    sl_split_counts *counts;
} sl_split_results;

/* Finds the k nearest of this rank's queries, which sl_split_check_queries has passed. Every rank calls it, with any
 * number of queries. Errors: SL_EINVAL, SL_ENOMEM, SL_EIO. All ranks fail if one does. */
sl_status sl_split_search(sl_split_searcher *searcher, const sl_split_params *params, const sl_split_queries *queries,
                          const sl_split_results *out);

#endif
