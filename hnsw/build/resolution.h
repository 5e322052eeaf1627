/* A measure of whether codes tell near vectors apart. */
#ifndef SL_HNSW_BUILD_RESOLUTION_H
#define SL_HNSW_BUILD_RESOLUTION_H

#include "base/thread.h"
#include "hnsw/graph/index.h"

/*
 * Chooses the codes in which a build compares vectors: I8, or F32 where 8 bits do not tell neighbours apart. That is so
 * where neighbours lie closer than a few steps of a code, as vectors far from the origin do: a step is a part of a
 * vector's largest element. 64 vectors are compared with all others for this.
 *
 * I8 under other metrics than L2, and for an index whose own codes have no more than 12 bits. The answer depends on the
 * vectors and the seed; threads and instruction set change nothing but equal cases.
 *
 * Errors: SL_ENOMEM, SL_ECANCELED.
 */
sl_status sl_compared_codes(const sl_graph *graph, size_t threads, sl_progress *progress, sl_codes *codes);

#endif
