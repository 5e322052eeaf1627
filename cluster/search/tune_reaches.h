/* How far a query must reach for its neighbours, learnt from stored vectors whose true neighbours are known. */
#ifndef SL_CLUSTER_SEARCH_TUNE_REACHES_H
#define SL_CLUSTER_SEARCH_TUNE_REACHES_H

#include "cluster/search/place_rows.h"
#include "cluster/search/row_layout.h"

/* Vectors with their true neighbours, the same on every rank. */
typedef struct sl_reach_sample {
    const void *rows; /* (count, dim) */
    sl_dtype dtype;
    size_t count, k;
    const uint64_t *neighbours; /* (count, k): rows of the base; SL_NO_ID: none */
    const float *scores;        /* of the k-th neighbour of each vector */
} sl_reach_sample;

/* Fills in split->reaches: for shares of neighbours up to 1, the reach within which that share lies.
 * Parameters: places: of this rank's rows in the layout. Every rank calls it and gets the same.
 * Errors: SL_ENOMEM, SL_EIO. */
sl_status sl_split_tune_reaches(const sl_comm *comm, sl_split *split, const sl_row_layout *layout,
                                const sl_row_place *places, const sl_reach_sample *sample);

#endif
