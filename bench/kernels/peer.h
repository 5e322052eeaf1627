/* Another library's i8 dot product, as its users call it: one row at a time, here over the same gathered rows. Compiled
 * with flags for this machine, its inline functions called directly. */
#ifndef BENCH_KERNELS_PEER_H
#define BENCH_KERNELS_PEER_H

#include <stddef.h>
#include <stdint.h>

typedef struct peer {
    const char *name;
    void (*dots)(const int8_t *query, const int8_t *rows, size_t pitch, size_t dim, const uint32_t *ids, size_t n,
                 float *out);
} peer;

extern const peer peer_simsimd;
extern const peer peer_numkong;

#endif
