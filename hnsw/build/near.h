/* The nearest members of each member, as its leaves tell them. */
#ifndef SL_HNSW_BUILD_NEAR_H
#define SL_HNSW_BUILD_NEAR_H

#include "hnsw/build/leaves.h"

#include <string.h>

/* A near member as one number: the larger, the nearer. No two members have the same number in a list, so that a choice
 * never depends on the order of a list. Members of one nearness are in an order by chance, since the first of many
 * copies would else be in every list. */
typedef uint64_t sl_near;

#define SL_NEAR_ODD     0x9e3779b1u
#define SL_NEAR_INVERSE 0x0e8b2f51u /* SL_NEAR_ODD * SL_NEAR_INVERSE is 1, modulo 2^32 */

/* Rises as the score does: 0 and -0, which a product with zeros gives, are one score. The lower half is zero. */
static inline sl_near sl_near_rank(float score) {
    uint32_t bits;
    score += 0.0f;
    memcpy(&bits, &score, sizeof bits);
    return (sl_near)(bits & 0x80000000u ? ~bits : bits | 0x80000000u) << 32;
}

static inline sl_near sl_near_of(float score, uint32_t member) {
    return sl_near_rank(score) | (uint32_t)(member * SL_NEAR_ODD);
}

static inline float sl_near_score(sl_near near) {
    uint32_t bits = (uint32_t)(near >> 32);
    float score;
    bits = bits & 0x80000000u ? bits & 0x7fffffffu : ~bits;
    memcpy(&score, &bits, sizeof score);
    return score;
}

static inline uint32_t sl_near_member(sl_near near) {
    return (uint32_t)near * SL_NEAR_INVERSE;
}

/* The same nearness, told of another member. */
static inline sl_near sl_near_told(sl_near near, uint32_t member) {
    return (near >> 32 << 32) | (uint32_t)(member * SL_NEAR_ODD);
}

/* Returns a number to be added to a member's scores for others. Scores of different members then compare: products
 * under L2 lack the constant |q|^2 / 2. */
static inline float sl_near_shift(const sl_codec *codec, uint32_t row) {
    if (codec->metric != SL_METRIC_L2 || codec->rows.differences) return 0;
    return sl_field_get(codec->rows.base + (size_t)row * codec->rows.pitch, codec->rows.bias);
}

/* Moves the `keep` largest of n > keep to the front. */
void sl_near_keep(sl_near *near, size_t n, size_t keep);

/* Sorts n different numbers, the largest first. `scratch`: n entries. */
void sl_near_sort(sl_near *near, size_t n, sl_near *scratch);

/* Lists of up to `width` near members for each of n. */
typedef struct sl_near_lists {
    sl_allocator allocator;
    size_t n, width;
    sl_near *near;   /* width entries a member; those of sl_near_make the nearest first */
    uint16_t *count; /* of each member */
} sl_near_lists;

/* Lists the `width` nearest of those that each member is compared with in its leaves. Leaves that were noted are not
 * compared again, and the others are noted. The result depends on the leaves alone. The caller frees, also on failure.
 * Errors: SL_ENOMEM, SL_ECANCELED, SL_ENOSPC, SL_EIO. */
sl_status sl_near_make(sl_near_lists *lists, const sl_members *members, const sl_leaves *leaves, size_t width);
void sl_near_free(sl_near_lists *lists);
sl_bytes sl_near_bytes(const sl_members *members, size_t width);

#endif
