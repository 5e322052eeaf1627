/* The levels of a reduce-scatter by halving, and of the all-gather back.
 *
 * At each level a rank's range is divided into `ways` parts, two by default. The rank keeps part `digit` and sends the
 * others to its partners of the level, and they send it theirs of part `digit`. At the end each rank has the sums of a
 * range of its own. Partners share their range, and the rank's partners of all later levels share the part that it
 * keeps. */
#ifndef SL_CLUSTER_ALLREDUCE_LEVELS_H
#define SL_CLUSTER_ALLREDUCE_LEVELS_H

#include "base/memory.h"

/* More levels than a number of ranks has prime factors. */
#define SL_LEVELS_MAX 64

typedef struct sl_level {
    size_t ways, digit;
    size_t *places; /* partner of each part; places[digit] is this rank's own place */
} sl_level;

typedef struct sl_levels {
    sl_allocator allocator;
    size_t count;
    sl_level level[SL_LEVELS_MAX];
} sl_levels;

/* Levels of the prime factors of `length` ranks, for the rank at `place`: recursive halving if length is a power of
 * two. The first, which moves most, is among neighbours. The caller frees, also on failure. Errors: SL_ENOMEM. */
sl_status sl_levels_halving(size_t length, size_t place, const sl_allocator *allocator, sl_levels *out);
/* Levels of a Bine butterfly (De Sensi et al. 2025, arXiv 2508.17311). The partner of level i is (1 - (-2)^(i+1)) / 3
 * places to the right of an even place, and to the left of an odd one: 1, -1, 3, -5, ... `length` is a power of two. */
sl_status sl_levels_bine(size_t length, size_t place, const sl_allocator *allocator, sl_levels *out);
void sl_levels_free(sl_levels *levels);

#endif
