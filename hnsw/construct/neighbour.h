/* Neighbours with their scores, and neighbour lists: the nearest points of each point, over all its leaves. */
#ifndef SL_HNSW_CONSTRUCT_NEIGHBOUR_H
#define SL_HNSW_CONSTRUCT_NEIGHBOUR_H

#include "base/memory.h"
#include "distance/codec/codec.h"

#include <string.h>

/*
 * A neighbour as one number: the score's rank above a hash of the point. Larger is nearer.
 *
 * No two entries of a list are equal, so a choice never depends on the order of a list. The hash shuffles points of
 * equal score. Without it the first of many duplicates would be in every list.
 */
typedef uint64_t sl_neighbour;

#define SL_POINT_HASH   0x9e3779b1u
#define SL_POINT_UNHASH 0x0e8b2f51u /* SL_POINT_HASH * SL_POINT_UNHASH == 1 modulo 2^32 */

/* Maps a score to the upper half of a number, in the same order. 0 and -0 are one score, since products with zeros give
 * both. The lower half is zero. */
static inline sl_neighbour sl_neighbour_rank(float score) {
    uint32_t bits;
    score += 0.0f;
    memcpy(&bits, &score, sizeof bits);
    return (sl_neighbour)(bits & 0x80000000u ? ~bits : bits | 0x80000000u) << 32;
}

static inline sl_neighbour sl_neighbour_of(float score, uint32_t point) {
    return sl_neighbour_rank(score) | (uint32_t)(point * SL_POINT_HASH);
}

static inline float sl_neighbour_score(sl_neighbour neighbour) {
    uint32_t bits = (uint32_t)(neighbour >> 32);
    float score;
    bits = bits & 0x80000000u ? bits & 0x7fffffffu : ~bits;
    memcpy(&score, &bits, sizeof score);
    return score;
}

static inline uint32_t sl_neighbour_point(sl_neighbour neighbour) {
    return (uint32_t)neighbour * SL_POINT_UNHASH;
}

/* Returns the same score for another point. So an entry becomes a reverse candidate. */
static inline sl_neighbour sl_neighbour_reverse(sl_neighbour neighbour, uint32_t point) {
    return (neighbour >> 32 << 32) | (uint32_t)(point * SL_POINT_HASH);
}

/* Returns a number to add to a point's scores for others, so that scores of different points compare. Products under L2
 * lack the constant |q|^2 / 2. */
static inline float sl_neighbour_shift(const sl_codec *codec, uint32_t row) {
    if (codec->metric != SL_METRIC_L2 || codec->rows.differences) return 0;
    return sl_field_get(codec->rows.base + (size_t)row * codec->rows.pitch, codec->rows.bias);
}

/* Moves the `keep` largest entries to the front, in no order. 0 < keep < n. */
void sl_neighbours_keep(sl_neighbour *entries, size_t n, size_t keep);

/* Sorts n distinct entries, the largest first. `scratch`: n entries. */
void sl_neighbours_sort(sl_neighbour *entries, size_t n, sl_neighbour *scratch);

/* Merges two runs, the largest first, into up to `limit` entries. Equal entries become one. Returns the number of
 * entries. `out` may begin na entries before b. */
size_t sl_neighbours_merge(const sl_neighbour *a, size_t na, const sl_neighbour *b, size_t nb, sl_neighbour *out,
                           size_t limit);

/* A list of up to `width` neighbours for each of n points, from point `first` on. */
typedef struct sl_neighbour_lists {
    sl_allocator allocator;
    size_t first, n, width;
    sl_neighbour *entries; /* `width` places per point; sl_neighbour_lists_make sorts the entries, the nearest first */
    uint16_t *count;       /* number of entries of each point */
} sl_neighbour_lists;

/* Returns the list of a point, and sets *count to its number of entries. */
static inline const sl_neighbour *sl_neighbour_list(const sl_neighbour_lists *lists, size_t point, size_t *count) {
    *count = lists->count[point - lists->first];
    return lists->entries + (point - lists->first) * lists->width;
}
void sl_neighbour_lists_free(sl_neighbour_lists *lists);

#endif
