/* Index files of other libraries. A reader of one format fills an sl_foreign, and trusts nothing in the file. */
#ifndef SL_HNSW_FOREIGN_FOREIGN_H
#define SL_HNSW_FOREIGN_FOREIGN_H

#include "hnsw/construct/imported_graph.h"

#include <shortlist_import.h>
#include <string.h>

#define SL_LINKS_DAMAGED SIZE_MAX

typedef struct sl_foreign sl_foreign;
/* Reads a row's neighbours on one of its levels into `out`, unchecked. Returns their number, at most m, on level 0 2 m;
 * SL_LINKS_DAMAGED: the file says more. */
typedef size_t (*sl_foreign_links)(const sl_foreign *foreign, size_t row, uint32_t level, uint32_t *out);

struct sl_foreign {
    sl_allocator allocator;
    const uint8_t *file; /* mapped */
    size_t size;

    size_t n, dim;
    sl_dtype dtype;
    int metric;             /* an sl_metric; SL_METRIC_OF_FILE: the file doesn't tell */
    const uint8_t *vectors; /* n rows, `stride` bytes apart, aligned to an element */
    size_t stride;
    float *copy;       /* holds the vectors, if those of the file are coded or not aligned; else NULL */
    uint64_t *ids;     /* NULL: 0 to n - 1 */
    uint64_t *deleted; /* room for n ids, if there are any */
    size_t deleted_count;

    sl_foreign_links links; /* NULL: the file has no graph, and no levels */
    size_t m, ef_construction;
    uint8_t *levels;
    uint32_t entry;
    const uint8_t *layer0; /* hnswlib: elements of `element` bytes */
    size_t element;
    uint64_t *upper_at;           /* hnswlib: byte of the file at which a row's upper lists begin */
    const uint8_t *neighbours;    /* Faiss: words of 32 bits */
    const uint8_t *neighbours_at; /* Faiss: for each row, words of 64 bits */
};

/* Fills the fields for a mapped file. `dim`: 0, or what the caller expects. On failure the caller frees what is there.
 * Errors: those of sl_index_import. */
sl_status sl_foreign_read_hnswlib(sl_foreign *foreign, size_t dim);
sl_status sl_foreign_read_faiss(sl_foreign *foreign, size_t dim);

/* Integers and floats of a file, at any address. Little-endian, as this library's own files. */
static inline uint64_t sl_foreign_u64(const uint8_t *at) {
    uint64_t word;
    memcpy(&word, at, sizeof word);
    return word;
}
static inline uint32_t sl_foreign_u32(const uint8_t *at) {
    uint32_t word;
    memcpy(&word, at, sizeof word);
    return word;
}

#endif
