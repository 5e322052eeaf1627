/* Files of vectors, told by the ending of their name. Rows are counted from 0 in every message. */
#ifndef CLI_VECTORS_H
#define CLI_VECTORS_H

#include "cli/elements.h"

/* What a file is read for: chooses the dataset where a file holds several (.hdf5: train, test, neighbors). */
typedef enum vectors_role { VECTORS_BASE, VECTORS_QUERIES, VECTORS_TRUTH } vectors_role;

/* An open file; its header has been checked against its size. */
typedef struct vectors {
    const char *path; /* as it was given; must outlive this */
    size_t n, dim;    /* rows and elements a row, neither of them 0 */
    element type;     /* as it stands in the file */
    struct vectors_source *source;
} vectors;

/* Endings the command reads and writes, for the help. */
#define VECTORS_READ_ENDINGS  ".fvecs .bvecs .ivecs .fbin .u8bin .i8bin .ibin .npy .hdf5 (.h5)"
#define VECTORS_WRITE_ENDINGS ".fvecs .bvecs .ivecs .fbin .u8bin .i8bin .ibin .npy"

/* Whether this build reads .hdf5. */
int vectors_reads_hdf5(void);

/* Returns an exit status, what was wrong being reported; *out is NULL on failure. A path FILE.hdf5:NAME names the
 * dataset itself. */
int vectors_open(const char *path, vectors_role role, vectors **out);
void vectors_close(vectors *vectors);

/* Rows first to first + count - 1 as dense rows of `type`. Elements that do not fit are reported with their row;
 * `round` as in elements_convert. */
int vectors_read(vectors *vectors, size_t first, size_t count, element type, int round, void *out);

/* The whole file as dense rows of `type`, allocated, to be freed; NULL, reported, on failure. */
void *vectors_read_all(vectors *vectors, element type);

/* Reports where the file does not have `dim` elements a row; `owner` is the file that does. */
int vectors_match_dim(const vectors *vectors, size_t dim, const char *owner);

/* The type in which to read the file for an index or base, `owner`, of vectors of `dtype`: integer types must be the
 * same, floating-point ones may differ. Reported where they do not match. */
int vectors_match_type(const vectors *vectors, sl_dtype dtype, const char *owner, element *out);

/* The ids of a file of one column, allocated, to be freed: *n of them, where `base` names the file of so many vectors
 * that they are of, or where it is NULL as many as there are, which *n then is. Returns an exit status; *out is NULL on
 * failure. */
int vectors_read_ids(const char *path, const char *base, size_t *n, uint64_t **out);

/* A file being written. The element type follows from the ending, and for .npy is the caller's choice. */
typedef struct vectors_writer vectors_writer;

/* The type files of this ending hold; `npy` for .npy. Reports an ending that is not written. */
int vectors_writer_type(const char *path, element npy, element *out);

/* n rows, or VECTORS_UNCOUNTED: as many as will have been appended. */
#define VECTORS_UNCOUNTED SIZE_MAX
int vectors_create(const char *path, size_t n, size_t dim, element npy, vectors_writer **out);

/* Appends dense rows of `type`, converted where the file's is another; `source` is what messages name, and `first` the
 * row in it. */
int vectors_append(vectors_writer *writer, const void *rows, element type, size_t count, int round, const char *source,
                   size_t first);

/* Ends the file: exactly n rows have been appended, where n was told. It appears under its name. */
int vectors_commit(vectors_writer *writer);
/* Forgets the file; takes NULL. */
void vectors_discard(vectors_writer *writer);

#endif
