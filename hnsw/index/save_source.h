/* The graph that a save writes. It is a version. A save may copy what changes word by word: then changes go on while
 * the save writes. */
#ifndef SL_HNSW_INDEX_SAVE_SOURCE_H
#define SL_HNSW_INDEX_SAVE_SOURCE_H

#include "hnsw/graph/publish.h"
#include "hnsw/graph/version.h"

typedef struct sl_save_source {
    const sl_graph *graph; /* the version, or `fixed` */
    sl_published facts;    /* of the version */
    sl_graph fixed;        /* the version, with links, tags, keys and tombstones in `block` */
    void *block;           /* NULL: nothing is copied */
    size_t size;
    sl_reading reading;
} sl_save_source;

/* Takes the current version. The caller is alone in the gate. If other threads change the index too, and memory for the
 * copies is there, the graph stays as it is without the gate: `block` is set, and rows stay until the source is closed,
 * since places of deleted vectors are neither freed nor taken. */
void sl_save_source_open(const sl_index *index, sl_save_source *source);
void sl_save_source_close(const sl_index *index, sl_save_source *source);

#endif
