/* A build: rows on their way into the graph. */
#ifndef SL_HNSW_CONSTRUCT_BUILD_H
#define SL_HNSW_CONSTRUCT_BUILD_H

#include "hnsw/construct/insert.h"
#include "hnsw/graph/entry.h"

/* Rows that a thread takes at once. */
#define SL_BUILD_CHUNK 16

/* How the graphs of copied rows are joined: not at all, and all nodes are linked anew; each node walks over the larger
 * graphs; or all walk over the first graph. */
typedef enum sl_join_kind { SL_JOIN_NONE, SL_JOIN_OVER_LARGER, SL_JOIN_OVER_FIRST } sl_join_kind;

/* Rows of other graphs, whose codes are copied unchanged. */
typedef struct sl_copied {
    const sl_graph *const *graphs; /* with the index's metric, dimension, type, codes and refinement */
    size_t count;                  /* graphs */
    const uint32_t *of, *nodes;    /* for each row: the number of its graph, and its node there */
    sl_join_kind joins;            /* see join.h */
} sl_copied;

typedef struct sl_build {
    sl_index *index;
    const sl_copied *copied; /* NULL: rows are vectors */
    const uint8_t *vectors;
    sl_dtype dtype;
    size_t n, stride, first;     /* rows; bytes from one to the next; node of the first */
    const uint64_t *tags, *keys; /* n words each; NULL: zeros */
    size_t threads;
    sl_builder builder;
    sl_insert *inserts; /* one a thread */
    float *floats;      /* dim a thread */
    sl_quant_error *errors;
    sl_build_locks *locks;
    sl_progress progress;
    int64_t numbering_ns; /* time of linking that went into numbering nodes */
} sl_build;

/* Allocates everything the build needs, so nothing can fail once the graph is written to. The caller frees, also on
 * failure. Errors: SL_ENOMEM. */
sl_status sl_build_alloc(sl_build *build);
void sl_build_free(sl_build *build);
/* Empties the lists of nodes [first, first + n). */
void sl_build_clear_links(sl_index *index, size_t first, size_t n);

#endif
