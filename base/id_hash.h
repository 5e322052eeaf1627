/* A hash of ids for tables in memory. It differs from process to process, so that nobody can choose ids that collide.
 * No file and no order of results may depend on it. */
#ifndef SL_BASE_ID_HASH_H
#define SL_BASE_ID_HASH_H

#include "base/random.h"

/* Returns the seed of this process, which its forked children share. The first call draws it. A table keeps the seed
 * that it was filled with.
 * Threads: any number. */
uint64_t sl_id_seed(void);

static inline uint64_t sl_id_hash(uint64_t seed, uint64_t id) {
    return sl_random_mix(id ^ seed);
}

#endif
