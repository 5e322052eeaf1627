/* Duplicates: points with the same codes. The first of them takes part in a layer, and the others chain up behind
 * it. */
#ifndef SL_HNSW_CONSTRUCT_DUPLICATES_H
#define SL_HNSW_CONSTRUCT_DUPLICATES_H

#include "hnsw/construct/points.h"

/* Whether two nodes have the same codes. */
int sl_is_duplicate(const sl_graph *graph, uint32_t a, uint32_t b);

/* The distinct points: the first of each set of duplicates. */
typedef struct sl_duplicates {
    sl_allocator allocator;
    size_t n, distinct;
    uint32_t *of;     /* point -> place of its first in the next two arrays; NULL: no duplicates exist */
    uint32_t *firsts; /* points, rising */
    uint32_t *rows;
} sl_duplicates;

/* Finds the duplicates among points. The caller frees, also on failure. Errors: SL_ENOMEM. */
sl_status sl_duplicates_find(sl_duplicates *duplicates, const sl_points *points);
void sl_duplicates_free(sl_duplicates *duplicates);
/* Memory kept if duplicates exist, else none; and the most that finding them takes. */
sl_bytes sl_duplicates_bytes(size_t n);

/* Makes the lists of all points from those of the distinct ones. Duplicates form a chain in the order of their numbers,
 * and each has the links of the first besides. own: `degree` places a distinct point, unused ones SL_NONE. links:
 * `degree` places a point. Errors: SL_ENOMEM. */
sl_status sl_duplicates_link(const sl_duplicates *duplicates, size_t degree, const uint32_t *own, uint32_t *links);

#endif
