/* Our INT8 kernel and a peer's, interleaved over the same vectors. */
#ifndef BENCH_KERNELS_SIDE_BY_SIDE_H
#define BENCH_KERNELS_SIDE_BY_SIDE_H

#include "peer.h"
#include "rows.h"

typedef struct comparison {
    double ours_ns, peer_ns; /* medians, a row */
    /* Percentiles 5, 25, 50, 75 and 95 of the rounds' ratios, ours / peer's. */
    double low, quarter, ratio, three_quarters, high;
} comparison;

/* Rows of `dim` elements in L1. Returns 0 where memory is short or the two disagree about a product. */
int compare(const sl_kernels *kernels, const peer *other, size_t dim, size_t rounds, comparison *out);

#endif
