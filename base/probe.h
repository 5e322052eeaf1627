/* Open addressing with linear probing (Knuth, The Art of Computer Programming, volume 3, algorithm 6.4L). The table and
 * its entries are the caller's, of any type. At most half of the places are used, so that probes stay short. */
#ifndef SL_BASE_PROBE_H
#define SL_BASE_PROBE_H

#include <stddef.h>

/* Returns the number of places: `least`, a power of two, doubled until it is at least twice the keys. */
static inline size_t sl_probe_places(size_t keys, size_t least) {
    size_t places = least;
    while (places < 2 * keys)
        places *= 2;
    return places;
}

/* Loops with `at` over the places where a key with this hash may be. The body must leave the loop, at the key or at
 * the first free place. `places` is a power of two. */
#define SL_PROBE(at, hash, places) for (size_t at = (size_t)(hash) & ((places)-1);; at = (at + 1) & ((places)-1))

#endif
