/* Rows on their way into the graph. */
#ifndef SL_HNSW_BUILD_BUILD_H
#define SL_HNSW_BUILD_BUILD_H

#include "hnsw/build/insert.h"
#include "hnsw/graph/entry.h"

/* Rows that a thread takes at once. */
#define SL_BUILD_CHUNK 16

typedef struct sl_build {
    sl_index *index;
    const uint8_t *vectors;
    sl_dtype dtype;
    size_t n, stride, first;     /* rows given, bytes between them, node of the first */
    const uint64_t *tags, *keys; /* n words each; NULL: zeros */
    size_t threads;
    sl_builder builder;
    sl_insert *inserts; /* one a thread */
    float *floats;      /* dim a thread */
    sl_quant_error *errors;
    sl_build_locks *locks;
    sl_progress progress;
} sl_build;

/* add.c: links the build's nodes, which have all else. Fails only where the build asks for SL_BUILDER_LEAVES; lists are
 * then empty. */
sl_status sl_build_link_rows(sl_build *build);
/* add.c: empties the lists of nodes [first, first + n). */
void sl_build_clear_links(sl_index *index, size_t first, size_t n);

/* undo.c: takes the build's nodes back, and puts back the entry point and the next id that there were before. Links
 * that the nodes had pushed out do not come back. A node that is left with few links looks for neighbours anew. All
 * nodes do, if most are left with few. */
void sl_build_undo(sl_build *build, sl_entry entry, uint64_t next_id);

#endif
