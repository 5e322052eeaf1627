/* Rows on their way into the graph. */
#ifndef SL_HNSW_BUILD_BUILD_H
#define SL_HNSW_BUILD_BUILD_H

#include "hnsw/build/insert.h"
#include "hnsw/graph/entry.h"

/* Rows that a thread takes at once. */
#define SL_BUILD_CHUNK 16

/* Graphs that are walked over to join several: none, for their nodes are linked anew; the larger of each two; or the
 * first one alone. */
typedef enum sl_join_kind { SL_JOIN_NONE, SL_JOIN_OVER_LARGER, SL_JOIN_OVER_FIRST } sl_join_kind;

/* Rows of other graphs, whose codes are copied as they are. */
typedef struct sl_copied {
    const sl_graph *const *graphs; /* of the index's metric, dimension, type, codes and refinement */
    size_t count;                  /* graphs */
    const uint32_t *of, *nodes;    /* of each row: a number of a graph, and its node there */
    sl_join_kind joins;            /* see join.h */
} sl_copied;

typedef struct sl_build {
    sl_index *index;
    const sl_copied *copied; /* NULL: rows are vectors */
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
    int64_t numbering_ns; /* that linking took for numbering nodes */
} sl_build;

/* Bytes that adding takes at most: beside an index whose nodes are not numbered by partition yet, and beside one whose
 * nodes are. */
typedef struct sl_build_bytes {
    size_t before, after;
} sl_build_bytes;

/* add.c: adds n rows of other graphs, all or nothing, as sl_index_add adds vectors. Errors: as of sl_index_add. */
sl_status sl_build_copies(sl_index *index, const sl_copied *copied, size_t n, const uint64_t *ids,
                          const sl_add_params *params);

/* add.c: links the build's nodes, which have all else. AUTO inserts them where memory lacks for leaves, but not in
 * bounded memory. The new nodes' lists are empty after a failure.
 * Errors: SL_ENOMEM, SL_ECANCELED, SL_ENOSPC, SL_EIO. */
sl_status sl_build_link_rows(sl_build *build);
/* add.c: tells whether n nodes from `first` on are linked at once, if this builder is asked for. */
int sl_build_is_from_leaves(const sl_index *index, sl_builder builder, size_t first, size_t n);
/* add.c: refuses a builder that is none, or cannot serve for n more nodes. Errors: SL_EINVAL, SL_EUNSUPPORTED. */
sl_status sl_build_check_builder(const sl_index *index, sl_builder builder, size_t n);
/* add.c: tells the bytes that adding all nodes of an index at once takes. The index has the counts of its nodes, and
 * needs no arrays. `alike`: see sl_from_leaves_bytes. Threads: no other call on the index meanwhile.
 * Errors: SL_ENOMEM. */
sl_status sl_build_count_bytes(sl_index *index, sl_builder builder, size_t threads, int alike, sl_build_bytes *bytes);
/* add.c: empties the lists of nodes [first, first + n). */
void sl_build_clear_links(sl_index *index, size_t first, size_t n);

/* undo.c: takes the build's nodes back, and puts back the entry point and the next id that there were before. Links
 * that the nodes had pushed out do not come back. A node that is left with few links looks for neighbours anew. All
 * nodes do, if most are left with few. */
void sl_build_undo(sl_build *build, sl_entry entry, uint64_t next_id);

#endif
