/* Random numbers that depend on a seed and a counter alone, so that they are the same at any number of threads. */
#ifndef SL_BASE_RANDOM_H
#define SL_BASE_RANDOM_H

#include <stdint.h>

/* The finaliser of SplitMix64 (Steele, Lea and Flood 2014). Different inputs give different outputs. */
static inline uint64_t sl_random_mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Returns number `counter` of the sequence of a seed. */
static inline uint64_t sl_random_at(uint64_t seed, uint64_t counter) {
    return sl_random_mix(seed + (counter + 1) * 0x9e3779b97f4a7c15u);
}

/* Uniform in (0, 1]. */
static inline double sl_random_unit(uint64_t seed, uint64_t counter) {
    return (double)((sl_random_at(seed, counter) >> 11) + 1) * 0x1p-53;
}

#endif
