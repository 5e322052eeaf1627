/* How vector files lie on disk; for vectors*.c only. Numbers are little-endian but where .npy says otherwise.
 *
 *   .fbin .u8bin .i8bin .ibin   u32 rows, u32 elements a row; rows            (an .ibin may carry f32 scores behind)
 *   .fvecs .bvecs .ivecs        each row: i32 elements a row, then the elements
 *   .npy                        NumPy's header, versions 1 to 3; rows in C or Fortran order
 *   .hdf5 .h5                   a two-dimensional dataset
 */
#ifndef CLI_FILES_VECTORS_FORMAT_H
#define CLI_FILES_VECTORS_FORMAT_H

#include "cli/files/vectors.h"

#include <time.h>

typedef enum layout { LAYOUT_BIN, LAYOUT_VECS, LAYOUT_NPY, LAYOUT_HDF5 } layout;

typedef struct format {
    const char *ending;
    layout layout;
    element type; /* element type of BIN and VECS */
} format;

/* Chooses the format by the path's ending; NULL: the ending is not known. */
const format *format_of(const char *path);

struct vectors_source {
    layout layout;
    int fd;            /* -1 for HDF5 */
    uint64_t size;     /* of the file */
    uint64_t data;     /* offset of the rows */
    int swapped;       /* elements are in the other byte order */
    int columns_first; /* Fortran order */
    void *hdf5;
    void *mapping; /* the whole file, or NULL */
    struct timespec written;
    unsigned char *raw; /* rows in the file's own layout */
    size_t raw_size;
};

/* Returns whether this machine is big-endian: the files are little-endian. */
int host_is_big_endian(void);

/* Adds n * size to *out. Returns 0 if n * size does not fit in 64 bits. */
int bytes_of(uint64_t n, uint64_t size, uint64_t *out);

/* Reads exactly `size` bytes at `offset`. Reports failures. */
int source_read(const vectors *vectors, uint64_t offset, void *out, size_t size);

/* Reads the header: n, dim, type, offset and layout of the rows. Returns an exit status. */
int npy_read_header(vectors *vectors);

/* Writes a version 1.0 header for (n, dim), or (n,) if dim is 0. Returns its length: a multiple of 64, the same for
 * every n. 0: it does not fit. */
size_t npy_write_header(char *out, size_t size, size_t n, size_t dim, element type);

/* Opens the dataset of "FILE.hdf5:NAME". "FILE.hdf5" opens the first dataset that has one of the role's names. */
int hdf5_open(vectors *vectors, vectors_role role);
int hdf5_read(vectors *vectors, size_t first, size_t count, void *out);
void hdf5_close(vectors *vectors);

#endif
