#include "peer.h"

#include <simsimd/simsimd.h>

static void dots(const int8_t *query, const int8_t *rows, size_t pitch, size_t dim, const uint32_t *ids, size_t n,
                 float *out) {
    for (size_t i = 0; i < n; i++) {
        simsimd_distance_t dot;
        simsimd_dot_i8((const simsimd_i8_t *)query, (const simsimd_i8_t *)(rows + ids[i] * pitch), dim, &dot);
        out[i] = (float)dot;
    }
}

const peer peer_simsimd = {PEER_NAME, dots};
