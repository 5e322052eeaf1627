/* Files of vectors. The ending of the name decides the format. Messages count rows from 0. */
#ifndef CLI_FILES_VECTORS_H
#define CLI_FILES_VECTORS_H

#include "cli/files/elements.h"

/* The use of a file. It chooses the dataset of a file with several (.hdf5: train, test, neighbors). Vectors, of a base
 * or of queries, have two dimensions. A column may have one. A list may have no rows. Arrays have any shape. */
typedef enum vectors_role {
    VECTORS_BASE,
    VECTORS_COLUMN,
    VECTORS_LIST,
    VECTORS_QUERIES,
    VECTORS_TRUTH,
    VECTORS_ARRAY
} vectors_role;

/* An open file. Its header agrees with its size. */
typedef struct vectors {
    const char *path; /* from the caller, and must outlive this */
    size_t n, dim;    /* rows, and elements per row; above 0, except the rows of a list */
    element type;     /* type in the file */
    size_t sides;     /* dimensions of the array; 1: a list of numbers, here n rows of 1 */
    char stated[64];  /* the distance that the file names; "": none */
    const char *part; /* the dataset that the role chose; NULL: the path names it, or the file has none */
    struct vectors_source *source;
} vectors;

/* Endings that the command reads and writes, for the help. */
#define VECTORS_READ_ENDINGS  ".fvecs .bvecs .ivecs .fbin .u8bin .i8bin .ibin .npy .hdf5 (.h5)"
#define VECTORS_WRITE_ENDINGS ".fvecs .bvecs .ivecs .fbin .u8bin .i8bin .ibin .npy"

/* Returns whether this build reads .hdf5. */
int vectors_reads_hdf5(void);

/* Opens a file and reports its faults. The path FILE.hdf5:NAME names a dataset. Returns an exit status. *out is NULL on
 * failure. */
int vectors_open(const char *path, vectors_role role, vectors **out);
void vectors_close(vectors *vectors);

/* Reads rows first to first + count - 1 as dense rows of `type`. Reports an element that does not fit with its row.
 * `round`: see elements_convert. */
int vectors_read(vectors *vectors, size_t first, size_t count, element type, int round, void *out);

/* All rows, mapped; NULL if the file has no dense rows of `type` in this machine's byte order. The mapping lasts until
 * the vectors are closed. If the file becomes shorter, the process ends. */
const void *vectors_map(vectors *vectors, element type);
/* Reports a file that was written to after it was opened: the rows read may be a mixture. Returns an exit status. */
int vectors_unchanged(const vectors *vectors);

/* Refuses vectors or queries that say they are for a distance which no metric here is, such as jaccard. Warns where
 * they are for another metric than `metric`. A dataset that was named itself is taken as it is. Returns an exit status.
 */
int vectors_check_metric(const vectors *vectors, sl_metric metric);

/* Counts the bytes of all rows as dense rows of `type`. Reports rows that do not fit in memory. Returns an exit
 * status. */
int vectors_bytes(const vectors *vectors, element type, size_t *bytes);

/* Reads the whole file as dense rows of `type`, to be freed. NULL: failure, reported. */
void *vectors_read_all(vectors *vectors, element type);

/* Reports a file whose rows do not have `dim` elements. The rows of the file `owner` have `dim`. */
int vectors_match_dim(const vectors *vectors, size_t dim, const char *owner);

/* Chooses the type in which to read the file for `owner`, an index or base of `dtype` vectors. Integer types must be
 * equal. Floating-point types may differ. Reports types that do not match. */
int vectors_match_type(const vectors *vectors, sl_dtype dtype, const char *owner, element *out);

/* Reads a file with one column of ids, to be freed. `base`: the file with *n vectors that the ids belong to. NULL: *n
 * gets the number of ids. Returns an exit status. *out is NULL on failure. */
int vectors_read_ids(const char *path, const char *base, size_t *n, uint64_t **out);

/* The same for a list of any number of ids, even none. */
int vectors_read_list(const char *path, size_t *n, uint64_t **out);

/* The same for another column of whole numbers, one per vector of `base`. `what` names the column in messages:
 * "tags". */
int vectors_read_column(const char *path, const char *what, const char *base, size_t *n, uint64_t **out);

/* A file being written. Its ending decides the element type; for .npy the caller does. */
typedef struct vectors_writer vectors_writer;

/* The element type for this ending; `npy` for .npy. Reports an ending that the command does not write. */
int vectors_writer_type(const char *path, element npy, element *out);

/* Opens a file of n rows. VECTORS_UNCOUNTED: as many rows as the caller appends. */
#define VECTORS_UNCOUNTED SIZE_MAX
int vectors_create(const char *path, size_t n, size_t dim, element npy, vectors_writer **out);

/* Appends dense rows of `type`, converted to the file's type. Messages name `source` and its row, counted from
 * `first`. */
int vectors_append(vectors_writer *writer, const void *rows, element type, size_t count, int round, const char *source,
                   size_t first);

/* Finishes the file, which then appears under its name. If the caller gave n, it has appended exactly n rows. */
int vectors_commit(vectors_writer *writer);
/* Removes the file and frees. NULL is allowed. */
void vectors_discard(vectors_writer *writer);

#endif
