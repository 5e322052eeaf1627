#include "peer.h"

/* gcc before 13 has no type of its own for bf16, which nothing here uses. */
#define NK_NATIVE_BF16 0
#include <numkong/dot.h>

static void dots(const int8_t *query, const int8_t *rows, size_t pitch, size_t dim, const uint32_t *ids, size_t n,
                 float *out) {
    for (size_t i = 0; i < n; i++) {
        nk_i32_t dot;
        nk_dot_i8((const nk_i8_t *)query, (const nk_i8_t *)(rows + ids[i] * pitch), dim, &dot);
        out[i] = (float)dot;
    }
}

const peer peer_numkong = {PEER_NAME, dots};
