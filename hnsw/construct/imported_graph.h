/* Vectors and their graph, which another library made. Its lists become those of the index as they are. */
#ifndef SL_HNSW_CONSTRUCT_IMPORTED_GRAPH_H
#define SL_HNSW_CONSTRUCT_IMPORTED_GRAPH_H

#include "hnsw/construct/build.h"

/* Reads a row's neighbours on a level. `out` has as many places as the index's lists on that level.
 * Returns: the number of neighbours, which are rows on that level. Threads: any number. */
typedef size_t (*sl_imported_links)(const void *ctx, size_t row, uint32_t level, uint32_t *out);

struct sl_imported_graph {
    sl_query vectors; /* the rows, n of them, `stride` bytes apart */
    size_t n, stride;
    const uint8_t *levels; /* each row's highest level, up to SL_MAX_LEVEL */
    uint32_t entry;        /* the entry point's row, on the highest level there is */
    sl_imported_links links;
    const void *ctx;
};

/* Gives the build's nodes the imported lists. The index was empty before the build, and its nodes have slots.
 * Errors: SL_ECANCELED. */
sl_status sl_imported_graph_link(sl_build *build);

#endif
