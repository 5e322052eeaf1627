/* The cells of a split: k-means cells of the vectors, in groups of near cells, in parts of near groups. A query finds
 * its nearest cells by way of the nearest groups.
 *
 *   parts    |          part 0           |          part 1          |
 *   groups   |   group 0   |   group 1   |   group 2   |   group 3  |
 *   cells    | c0 c1 .. c15|c16 c17 ..   | ...                      |
 *
 * Near means a small angle under cosine and inner product, and a small distance under L2. */
#ifndef SL_CLUSTER_SEARCH_CELLS_H
#define SL_CLUSTER_SEARCH_CELLS_H

#include "base/memory.h"
#include "distance/codec/codec.h"

#include <shortlist.h>

#define SL_CELLS_MAX 2048u
/* Cells of a group, about. */
#define SL_CELLS_GROUP 16u

typedef struct sl_cells {
    sl_allocator allocator;
    size_t dim, parts, groups, count;
    uint32_t *starts; /* first group of each part and the end, then first cell of each group and the end */
    float *centres, *group_centres; /* (count, dim), (groups, dim); of length 1 unless under L2 */
    sl_codec codec, group_codec;    /* of the encoded centres */
    uint8_t *rows, *group_rows;
    float *floats; /* scratch: dim */
} sl_cells;

/* Entries of `starts`. */
static inline size_t sl_cells_starts(size_t parts, size_t groups) {
    return parts + groups + 2;
}

/* First group of a part, or the end of the last; first cell of a group, or the end of the last. */
static inline size_t sl_part_groups(const sl_cells *cells, size_t part) {
    return cells->starts[part];
}
static inline size_t sl_group_cells(const sl_cells *cells, size_t group) {
    return cells->starts[cells->parts + 1 + group];
}

/* Allocates cells, whose starts and centres the caller fills in. metric: of the vectors. The caller frees, also on
 * failure. Errors: SL_ENOMEM. */
sl_status sl_cells_create(const sl_allocator *allocator, size_t dim, sl_metric metric, size_t parts, size_t groups,
                          size_t count, sl_cells *out);
void sl_cells_free(sl_cells *cells);

/* Returns whether the starts rise to the counts, and all centres are finite, of length 1 unless under L2. */
int sl_cells_are_sound(const sl_cells *cells);

/* Encodes the centres, once they are filled in. */
void sl_cells_encode(sl_cells *cells);

/* Scales a row to length 1. Returns 0, and leaves the row as it is, if it is 0. */
int sl_cells_scale_to_unit(float *row, size_t dim);

/* Sorts floats, none of which is NaN. */
void sl_sort_floats(float *values, size_t count);

/* A part that a query may ask. */
typedef struct sl_route {
    uint32_t part, cell; /* cell: the part's nearest one */
    float reach;         /* distance of the query from the plane midway between this cell and its nearest cell */
} sl_route;

/* One thread's scratch of routing. */
typedef struct sl_router sl_router;
/* Errors: SL_ENOMEM. */
sl_status sl_router_create(const sl_cells *cells, sl_router **out);
void sl_router_free(sl_router *router);

/* Which groups a vector opens, to compare itself with their cells: those that score at most `gap` less than the
 * nearest, and `least` in any case. */
typedef struct sl_opening {
    size_t least;
    float gap;
} sl_opening;

/* Returns 0 for a vector of length 0, unless under L2: no cell is nearer to it than another. */
int sl_router_has_direction(sl_router *router, const void *vector, sl_dtype dtype);

/* Finds the gap with which `count` vectors open `mean` groups on average. Vectors without a direction do not count.
 * INFINITY: all groups are to be opened. Errors: SL_ENOMEM. */
sl_status sl_router_choose_gap(sl_router *router, const void *vectors, sl_dtype dtype, size_t count, size_t mean,
                               float *gap);

/* Finds the nearest cells of a vector among those of the groups that it opens. All vectors without a direction have the
 * same routes.
 * Parameters:
 *   routes       room for cells->parts. Gets the parts that have such cells, by rising reach; the first reach is 0
 *   evaluations  grows by the centres compared; may be NULL
 * Returns the number of routes. */
size_t sl_router_find(sl_router *router, const void *vector, sl_dtype dtype, sl_opening opening, sl_route *routes,
                      size_t *evaluations);

/* Finds the nearest cell of a vector and the one after it, among all cells; nearest[1] is nearest[0] if there is only
 * one. */
void sl_router_nearest(sl_router *router, const void *vector, sl_dtype dtype, uint32_t nearest[2]);

#endif
