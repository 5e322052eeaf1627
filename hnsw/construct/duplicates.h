/* Duplicates: points with the same codes. The first of them takes part in a layer. The others form a chain behind
 * it. */
#ifndef SL_HNSW_CONSTRUCT_DUPLICATES_H
#define SL_HNSW_CONSTRUCT_DUPLICATES_H

#include "hnsw/construct/points.h"

/* Returns whether two nodes have the same codes. */
int sl_is_duplicate(const sl_graph *graph, uint32_t a, uint32_t b);

/* The distinct points: the first of each set of duplicates. */
typedef struct sl_duplicates {
    sl_allocator allocator;
    size_t n, distinct;
    uint32_t *of;     /* point -> place of its first duplicate in the next two arrays; NULL: no duplicates exist */
    uint32_t *firsts; /* the distinct points, rising */
    uint32_t *rows;   /* their rows */
} sl_duplicates;

/* Finds the duplicates among points. The caller frees, also on failure. Errors: SL_ENOMEM. */
sl_status sl_duplicates_find(sl_duplicates *duplicates, const sl_points *points);
void sl_duplicates_free(sl_duplicates *duplicates);
/* Bytes for n points. `kept`: what stays allocated if there are duplicates; else nothing does. `most`: the most while
 * they are looked for. */
sl_bytes sl_duplicates_bytes(size_t n);

/* Makes the lists of all points from those of the distinct points. Each point gets the links of its first duplicate.
 * It's also linked to the duplicates just before and just behind it in number, so duplicates form a chain.
 * Parameters: `own`: a list of `degree` places per distinct point, which names places in `firsts`; unused places
 * SL_NONE. `links`: gets such a list per point, which names points. Errors: SL_ENOMEM. */
sl_status sl_duplicates_link(const sl_duplicates *duplicates, size_t degree, const uint32_t *own, uint32_t *links);

#endif
