/* The nearest of some centroids, found one by one, for tests to compare choices with. */
#ifndef SL_TESTS_CENTROIDS_H
#define SL_TESTS_CENTROIDS_H

#include "hnsw/graph/index.h"
#include "hnsw/graph/partition.h"
#include "tests/support/indexes.h"

#include <stdlib.h>

/* Returns the partition or group with the best score in a range of the index's, one by one on the scalar tier. */
static inline size_t centroids_nearest(const sl_index *index, const sl_partitions *parts, sl_range range,
                                       const float *query) {
    uint8_t *buffer = aligned_alloc(64, sl_round_up(sl_query_size(&parts->codec), 64));
    float *floats = malloc(2 * index->graph.codec.dim * sizeof *floats), scores[64], best = 0;
    size_t found = range.first;
    sl_query_code code;
    ck_assert(buffer && floats);
    sl_partition_encode_query(&index->graph, query, SL_F32, buffer, floats, &code);
    for (size_t i = range.first; i < range.end; i++) {
        const uint32_t one[64] = {(uint32_t)i};
        sl_kernels_of(SL_ISA_SCALAR)->score[SL_CODES_I8](&parts->codec.rows, &code, one, 1, 0, scores);
        if (i > range.first && scores[0] <= best) continue;
        best = scores[0];
        found = i;
    }
    free(buffer);
    free(floats);
    return found;
}

#endif
