/* Members with the same codes. One of them takes part in a layer, and the others hang on to it. */
#ifndef SL_HNSW_BUILD_DUPLICATES_H
#define SL_HNSW_BUILD_DUPLICATES_H

#include "hnsw/build/points.h"

/* Tells whether two nodes have the same codes. */
int sl_is_duplicate(const sl_graph *graph, uint32_t a, uint32_t b);

/* The first of each kind of member. */
typedef struct sl_duplicates {
    sl_allocator allocator;
    size_t n, distinct;
    uint32_t *of;     /* member -> place of the first of its kind in the next two; NULL: no two members are alike */
    uint32_t *firsts; /* rising */
    uint32_t *rows;
} sl_duplicates;

/* Finds the copies among members. The caller frees, also on failure. Errors: SL_ENOMEM. */
sl_status sl_duplicates_find(sl_duplicates *duplicates, const sl_points *points);
void sl_duplicates_free(sl_duplicates *duplicates);
/* The bytes that are kept are those where some of n members are alike; else nothing is kept. */
sl_bytes sl_duplicates_bytes(size_t n);

/* Makes the lists of all members from those of the first of each kind. Those of one kind form a chain, in the order of
 * their numbers; a copy has the links of the first besides. own: `degree` places a kind, SL_NONE
 * behind them. links: `degree` members a member. Errors: SL_ENOMEM. */
sl_status sl_duplicates_link(const sl_duplicates *duplicates, size_t degree, const uint32_t *own, uint32_t *links);

#endif
