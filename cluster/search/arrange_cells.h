/* Cells in parts and groups. */
#ifndef SL_CLUSTER_SEARCH_ARRANGE_CELLS_H
#define SL_CLUSTER_SEARCH_ARRANGE_CELLS_H

#include "cluster/search/cells.h"

typedef struct sl_cell_counts {
    const uint64_t *sizes;   /* rows of each cell */
    const uint64_t *between; /* (count, count), symmetric: rows between each two cells */
} sl_cell_counts;

/* Shares the cells out over the parts, so that few rows lie between cells of two parts and the parts' sizes are about
 * equal. Each part's cells are put into groups of near ones. *out has the cells in their new order; the caller frees,
 * also on failure. Errors: SL_ENOMEM. */
sl_status sl_cells_arrange(const sl_cells *cells, sl_metric metric, const sl_cell_counts *counts, size_t parts,
                           sl_cells *out);

#endif
