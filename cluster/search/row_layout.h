/* The rows of a base, in batches that the ranks read together. Rank r reads its share of each batch, so the ranks' rows
 * of a batch follow each other in the order of ranks. */
#ifndef SL_CLUSTER_SEARCH_ROW_LAYOUT_H
#define SL_CLUSTER_SEARCH_ROW_LAYOUT_H

#include "cluster/comm/comm.h"

typedef struct sl_row_layout {
    size_t n, batch; /* rows of the base, and of a batch */
    size_t rank, ranks;
} sl_row_layout;

/* Rows of one rank in one batch. */
typedef struct sl_row_span {
    size_t first, count; /* number of the first row in the base */
    size_t local;        /* rows of this rank in earlier batches */
} sl_row_span;

static inline size_t sl_layout_batches(const sl_row_layout *layout) {
    return (layout->n + layout->batch - 1) / layout->batch;
}

static inline sl_row_span sl_layout_span(const sl_row_layout *layout, size_t number) {
    const size_t start = number * layout->batch;
    const size_t rows = layout->n - start < layout->batch ? layout->n - start : layout->batch;
    const size_t from = sl_comm_share(rows, layout->rank, layout->ranks);
    const size_t full = sl_comm_share(layout->batch, layout->rank + 1, layout->ranks) -
                        sl_comm_share(layout->batch, layout->rank, layout->ranks);
    return (sl_row_span){.first = start + from,
                         .count = sl_comm_share(rows, layout->rank + 1, layout->ranks) - from,
                         .local = number * full};
}

/* Rows of this rank in all batches. */
static inline size_t sl_layout_rows(const sl_row_layout *layout) {
    if (layout->n == 0) return 0;
    const sl_row_span last = sl_layout_span(layout, sl_layout_batches(layout) - 1);
    return last.local + last.count;
}

/* Returns the number of a row among this rank's rows; SIZE_MAX: another rank reads it. */
static inline size_t sl_layout_local(const sl_row_layout *layout, size_t row) {
    const sl_row_span span = sl_layout_span(layout, row / layout->batch);
    return row >= span.first && row - span.first < span.count ? span.local + (row - span.first) : SIZE_MAX;
}

#endif
