/* Files of vectors, told apart by the ending of their name. Every message counts rows from 0. */
#ifndef CLI_FILES_VECTORS_H
#define CLI_FILES_VECTORS_H

#include "cli/files/elements.h"

/* The use of a file. It chooses the dataset if a file holds several (.hdf5: train, test, neighbors). Vectors, of a base
 * or of queries, are rows of two dimensions. A column may have one, and a list may have no rows. Arrays are any. */
typedef enum vectors_role {
    VECTORS_BASE,
    VECTORS_COLUMN,
    VECTORS_LIST,
    VECTORS_QUERIES,
    VECTORS_TRUTH,
    VECTORS_ARRAY
} vectors_role;

/* An open file; its header has been checked against its size. */
typedef struct vectors {
    const char *path; /* as the caller gave it; must outlive this */
    size_t n, dim;    /* rows and elements a row, neither of them 0, but for the rows of a list */
    element type;     /* as it stands in the file */
    size_t sides;     /* dimensions of the array; 1: a list of numbers, told as n rows of 1 */
    char stated[64];  /* the distance that the file is for, by its own word; "": it says none */
    const char *part; /* the dataset that the role chose; NULL: the path names it, or there are none */
    struct vectors_source *source;
} vectors;

/* Endings the command reads and writes, for the help. */
#define VECTORS_READ_ENDINGS  ".fvecs .bvecs .ivecs .fbin .u8bin .i8bin .ibin .npy .hdf5 (.h5)"
#define VECTORS_WRITE_ENDINGS ".fvecs .bvecs .ivecs .fbin .u8bin .i8bin .ibin .npy"

/* Tells whether this build reads .hdf5. */
int vectors_reads_hdf5(void);

/* Opens a file and reports its faults. A path FILE.hdf5:NAME names the dataset itself. Returns an exit status; *out
 * is NULL on failure. */
int vectors_open(const char *path, vectors_role role, vectors **out);
void vectors_close(vectors *vectors);

/* Reads rows first to first + count - 1 as dense rows of `type`. Elements that do not fit are reported with their
 * row; `round` as in elements_convert. */
int vectors_read(vectors *vectors, size_t first, size_t count, element type, int round, void *out);

/* All rows as they lie in the file, mapped; NULL where the file does not hold dense rows of `type` in this machine's
 * byte order. They are there until the vectors are closed. A file that becomes shorter ends the process. */
const void *vectors_map(vectors *vectors, element type);
/* Reports a file that was written since it was opened: what was read from it may be of both. Returns an exit
 * status. */
int vectors_unchanged(const vectors *vectors);

/* Refuses vectors or queries that say they are for a distance which no metric here is, such as jaccard. Warns where
 * they are for another metric than `metric`. A dataset that was named itself is taken as it is. Returns an exit status.
 */
int vectors_check_metric(const vectors *vectors, sl_metric metric);

/* Counts the bytes of all rows as dense rows of `type`. Reports rows that memory cannot hold. Returns an exit
 * status. */
int vectors_bytes(const vectors *vectors, element type, size_t *bytes);

/* Reads the whole file as dense rows of `type`, allocated, to be freed; NULL, reported: failure. */
void *vectors_read_all(vectors *vectors, element type);

/* Reports a file whose rows do not have `dim` elements. `owner` is the file whose rows do. */
int vectors_match_dim(const vectors *vectors, size_t dim, const char *owner);

/* Chooses the type in which to read the file for `owner`, an index or base of `dtype` vectors. Integer types must be
 * the same; floating-point ones may differ. Reports types that do not match. */
int vectors_match_type(const vectors *vectors, sl_dtype dtype, const char *owner, element *out);

/* Reads the ids of a file of one column, allocated, to be freed. `base`: the file whose *n vectors the ids belong
 * to. NULL: *n gets the number of ids. Returns an exit status; *out is NULL on failure. */
int vectors_read_ids(const char *path, const char *base, size_t *n, uint64_t **out);

/* The same of a list of any number of ids, none included. */
int vectors_read_list(const char *path, size_t *n, uint64_t **out);

/* The same of another column of whole numbers, one a vector of `base`. `what` names it in messages: "tags". */
int vectors_read_column(const char *path, const char *what, const char *base, size_t *n, uint64_t **out);

/* A file that is being written. Its element type follows from the ending; for .npy the caller chooses it. */
typedef struct vectors_writer vectors_writer;

/* The type of files with this ending; `npy` for .npy. Reports an ending that is not written. */
int vectors_writer_type(const char *path, element npy, element *out);

/* Opens a file of n rows. VECTORS_UNCOUNTED: as many as will have been appended. */
#define VECTORS_UNCOUNTED SIZE_MAX
int vectors_create(const char *path, size_t n, size_t dim, element npy, vectors_writer **out);

/* Appends dense rows of `type`, converted if the file's type is another. Messages name `source`, and `first`, the
 * row in it. */
int vectors_append(vectors_writer *writer, const void *rows, element type, size_t count, int round, const char *source,
                   size_t first);

/* Ends the file, which then appears under its name. If n was told, exactly n rows have been appended. */
int vectors_commit(vectors_writer *writer);
/* Removes the file and frees; takes NULL. */
void vectors_discard(vectors_writer *writer);

#endif
