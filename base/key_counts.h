/* Counts of 64-bit keys in a hash table. A key in the table has a count of at least 1. */
#ifndef SL_BASE_KEY_COUNTS_H
#define SL_BASE_KEY_COUNTS_H

#include "base/id_hash.h"
#include "base/probe.h"

#include <string.h>

typedef struct sl_key_counts {
    uint64_t *keys;
    size_t *counts; /* 0: free place */
    size_t places;  /* a power of two */
    uint64_t seed;  /* of the hash */
} sl_key_counts;

/* Returns how many places a table of this many keys has. */
static inline size_t sl_key_counts_places(size_t keys) {
    return sl_probe_places(keys, 16);
}

/* Returns the bytes of a table. */
static inline size_t sl_key_counts_bytes(size_t places) {
    return places * (sizeof(uint64_t) + sizeof(size_t));
}

/* Starts an empty table in the caller's memory. */
static inline void sl_key_counts_start(sl_key_counts *counts, void *memory, size_t places) {
    counts->places = places;
    counts->seed = sl_id_seed();
    counts->keys = memory;
    counts->counts = (size_t *)(void *)(counts->keys + places);
    memset(counts->counts, 0, places * sizeof *counts->counts);
}

/* Returns the place of a key's count. The caller may raise a count from 0 if the table has room for another key. */
static inline size_t *sl_key_counts_of(const sl_key_counts *counts, uint64_t key) {
    SL_PROBE(at, sl_id_hash(counts->seed, key), counts->places) {
        if (counts->counts[at] && counts->keys[at] != key) continue;
        counts->keys[at] = key;
        return &counts->counts[at];
    }
}

#endif
