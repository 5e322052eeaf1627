/* Ids that collide in tables whose hash has no seed, as a client may choose them, and a measure of collisions. */
#ifndef SL_TESTS_COLLIDING_H
#define SL_TESTS_COLLIDING_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Tables of spread ids have shorter runs of taken places: 43 are expected of COLLIDING_COUNT ids. */
enum { COLLIDING_COUNT = 4000, COLLIDING_RUN = 400 };

/* Inverts z ^ z >> by. */
static inline uint64_t colliding_unshift(uint64_t z, unsigned by) {
    uint64_t out = z;
    for (unsigned done = by; done < 64; done += by)
        out = z ^ out >> by;
    return out;
}

/* Returns the inverse of an odd number modulo 2^64, by Newton's steps. */
static inline uint64_t colliding_inverse(uint64_t odd) {
    uint64_t inverse = odd;
    for (int step = 0; step < 5; step++)
        inverse *= 2 - odd * inverse;
    return inverse;
}

/* Returns the id whose hash is i << 24 with seed 0: the first 8 and the last 24 bits are 0. i is below 2^32. */
static inline uint64_t colliding_id(uint64_t i) {
    uint64_t z = colliding_unshift(i << 24, 31) * colliding_inverse(0x94d049bb133111ebu);
    z = colliding_unshift(z, 27) * colliding_inverse(0xbf58476d1ce4e5b9u);
    return colliding_unshift(z, 30);
}

/* Returns the longest run of taken places of a table. Each place takes `stride` bytes. A free one begins with the
 * `width` bytes of `empty`. */
static inline size_t colliding_run(const void *table, size_t places, size_t stride, const void *empty, size_t width) {
    size_t longest = 0, run = 0;
    for (size_t i = 0; i < places; i++) {
        run = memcmp((const char *)table + i * stride, empty, width) != 0 ? run + 1 : 0;
        if (run > longest) longest = run;
    }
    return longest;
}

#endif
