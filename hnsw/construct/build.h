/* A build: rows on their way into the graph. */
#ifndef SL_HNSW_CONSTRUCT_BUILD_H
#define SL_HNSW_CONSTRUCT_BUILD_H

#include "hnsw/construct/insert.h"
#include "hnsw/construct/look_ahead.h"
#include "hnsw/graph/entry.h"
#include "hnsw/graph/ids.h"

/* Rows that a thread takes from the shared loop at once. */
#define SL_BUILD_CHUNK 16

/* How the graphs of copied rows are joined. NONE: they aren't joined, and all nodes are linked anew. OVER_LARGER: each
 * node walks over every graph larger than its own. OVER_FIRST: nodes of the other graphs walk over the first. */
typedef enum sl_join_kind { SL_JOIN_NONE, SL_JOIN_OVER_LARGER, SL_JOIN_OVER_FIRST } sl_join_kind;

/* Rows of other graphs, whose codes are copied unchanged. */
typedef struct sl_copied {
    const sl_graph *const *graphs; /* with the index's metric, dimension, type, codes and refinement */
    size_t count;                  /* graphs */
    const uint32_t *of, *nodes;    /* for each row: the number of its graph, and its node there */
    sl_join_kind joins;            /* how the graphs are joined */
} sl_copied;

typedef struct sl_imported_graph sl_imported_graph; /* imported_graph.h */

typedef struct sl_build {
    sl_index *index;
    const sl_copied *copied;           /* NULL: the rows are `vectors` */
    const sl_imported_graph *imported; /* of the rows, which are the index's first; NULL: links are to be found */
    const uint8_t *vectors;
    sl_dtype dtype;
    size_t n, stride, first;     /* rows; bytes from one to the next; node of the first */
    const sl_look_ahead *ahead;  /* what was found for the only row; NULL: it has to be found */
    const uint64_t *tags, *keys; /* n words each, or NULL for zeros */
    size_t threads;
    sl_builder builder;
    sl_insert *inserts; /* one per thread */
    float *floats;      /* dim floats per thread */
    sl_quant_error *errors;
    sl_build_locks *locks;
    sl_progress progress;
    sl_replace replace;
    const uint8_t *old;    /* rows that tell which vectors are replaced, of the vectors' type and stride */
    sl_node_list replaced; /* nodes that are deleted in the step that shows the new ones */
    uint32_t *places;      /* the node of each row, if some rows get places that were free; else NULL */
    size_t appended;       /* rows that come behind the last node */
    int linked;            /* 1: lists may name the rows */
    int hides, hidden;     /* 1: the new nodes are to be hidden from searches; they are */
    int changed;           /* 1: the graph may have changed, and a version is reserved for it */
    int64_t numbering_ns;  /* the part of the linking time that numbered nodes */
} sl_build;

/* The node of row i. */
static inline uint32_t sl_build_node(const sl_build *build, size_t i) {
    return build->places ? build->places[i] : (uint32_t)(build->first + i);
}

/* Allocates all memory of the build, so that no allocation can fail once the graph is written to. The caller frees,
 * also on failure. Errors: SL_ENOMEM. */
sl_status sl_build_alloc(sl_build *build);
void sl_build_free(sl_build *build);
/* Empties the lists of nodes [first, first + n). */
void sl_build_clear_links(sl_index *index, size_t first, size_t n);

#endif
