/* k-means over a sample that the ranks share, and the cells in parts of about equal size. */
#ifndef SL_CLUSTER_SEARCH_LEARN_CELLS_H
#define SL_CLUSTER_SEARCH_LEARN_CELLS_H

#include "cluster/comm/comm.h"
#include "cluster/search/cells.h"

/* A sample of the vectors: this rank's rows of it. */
typedef struct sl_cell_sample {
    const float *rows; /* (count, dim) */
    size_t first;      /* number of the first row among those of all ranks */
    size_t count, total;
    size_t dim;
    sl_metric metric; /* of the vectors */
} sl_cell_sample;

/* Checks this rank's rows of the sample, which are at equal steps through a base of n rows.
 * Errors: SL_EVALUE (names the row of the base). */
sl_status sl_cell_sample_check(const sl_cell_sample *sample, size_t n);

/* Learns `count` cells of a checked sample, and shares them out over the parts: cells that have many sample rows
 * between them go to one part, and the parts get about equally many rows. Every rank calls it and gets the same cells,
 * at any number of ranks. Parameters: count: at most SL_CELLS_MAX and the rows of the sample, and at least `parts`. The
 * caller frees *out, also on failure. Errors: SL_EVALUE (all rows are zero, and the metric is not L2), SL_ENOMEM,
 * SL_EIO. */
sl_status sl_cells_learn(const sl_comm *comm, const sl_cell_sample *sample, size_t count, size_t parts, size_t threads,
                         sl_cells *out);

#endif
