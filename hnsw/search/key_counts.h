/* Counts of 64-bit keys, by hash. Each key that is counted has one at least. */
#ifndef SL_HNSW_SEARCH_KEY_COUNTS_H
#define SL_HNSW_SEARCH_KEY_COUNTS_H

#include "base/id_hash.h"

#include <stddef.h>
#include <string.h>

typedef struct sl_key_counts {
    uint64_t *keys;
    size_t *counts; /* 0: a free place */
    size_t places;  /* a power of two */
    uint64_t seed;  /* of the keys' places */
} sl_key_counts;

/* Returns places for so many keys. */
static inline size_t sl_key_counts_places(size_t keys) {
    size_t places = 16;
    while (places < 2 * keys)
        places *= 2;
    return places;
}

/* Returns the bytes of memory that so many places take. */
static inline size_t sl_key_counts_bytes(size_t places) {
    return places * (sizeof(uint64_t) + sizeof(size_t));
}

/* Empties a tally, which lies in the caller's memory. */
static inline void sl_key_counts_start(sl_key_counts *tally, void *memory, size_t places) {
    tally->places = places;
    tally->seed = sl_id_seed();
    tally->keys = memory;
    tally->counts = (size_t *)(void *)(tally->keys + places);
    memset(tally->counts, 0, places * sizeof *tally->counts);
}

/* The count of a key, which the caller may raise from 0 where there is room for one more. */
static inline size_t *sl_key_counts_of(const sl_key_counts *tally, uint64_t key) {
    size_t at = (size_t)sl_id_hash(tally->seed, key) & (tally->places - 1);
    while (tally->counts[at] && tally->keys[at] != key)
        at = (at + 1) & (tally->places - 1);
    tally->keys[at] = key;
    return &tally->counts[at];
}

#endif
