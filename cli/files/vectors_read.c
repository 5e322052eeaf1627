#define _POSIX_C_SOURCE 200809L
#include "cli/common/report.h"
#include "cli/common/system.h"
#include "cli/files/vectors_format.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define RAW_SIZE (4u << 20) /* bytes read at a time if rows cannot go straight to the caller */

static uint32_t little_u32(const unsigned char *bytes) {
    return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

/* Checks the file's size against its header. Published ground truth often has scores after the ids. */
static int check_size(const vectors *vectors) {
    const struct vectors_source *source = vectors->source;
    uint64_t row = 0, rows = 0;
    int fits = bytes_of(vectors->dim, element_size(vectors->type), &row) && bytes_of(vectors->n, row, &rows) &&
               rows <= UINT64_MAX - source->data;
    uint64_t held = source->size - source->data;
    if (fits && held == rows) return EXIT_DONE;
    if (fits && source->layout == LAYOUT_BIN && vectors->type == ELEMENT_I32 && held / 2 == rows && held % 2 == 0)
        return EXIT_DONE;
    if (!fits || held < rows)
        return report_failure("%s: its header says %zu rows of %zu %s, but the file ends in row %" PRIu64
                              "; it was cut short or is damaged, fetch or make it again",
                              vectors->path, vectors->n, vectors->dim, element_name(vectors->type),
                              row ? held / row : 0);
    return report_failure("%s: its header says %zu rows of %zu %s, but %" PRIu64 " bytes follow them; the file is "
                          "damaged or holds something else than its ending says",
                          vectors->path, vectors->n, vectors->dim, element_name(vectors->type), held - rows);
}

static int bin_read_header(vectors *vectors) {
    unsigned char header[8];
    struct vectors_source *source = vectors->source;
    if (source->size < sizeof header)
        return report_failure("%s: only %" PRIu64 " bytes long, less than a header; it was cut short or holds "
                              "something else, fetch or make it again",
                              vectors->path, source->size);
    int status = source_read(vectors, 0, header, sizeof header);
    if (status != EXIT_DONE) return status;
    vectors->n = little_u32(header);
    vectors->dim = little_u32(header + 4);
    source->data = sizeof header;
    source->swapped = host_is_big_endian();
    return EXIT_DONE;
}

static int vecs_read_header(vectors *vectors) {
    unsigned char header[4];
    struct vectors_source *source = vectors->source;
    if (source->size < sizeof header)
        return report_failure("%s: only %" PRIu64 " bytes long, less than a row; it was cut short or holds something "
                              "else, fetch or make it again",
                              vectors->path, source->size);
    int status = source_read(vectors, 0, header, sizeof header);
    if (status != EXIT_DONE) return status;
    uint32_t dim = little_u32(header);
    if (dim == 0 || dim > INT32_MAX)
        return report_failure("%s, row 0: says %" PRId32 " elements; the file is damaged or not what its ending says",
                              vectors->path, (int32_t)dim);
    uint64_t row = sizeof header + (uint64_t)dim * element_size(vectors->type);
    if (source->size % row)
        return report_failure("%s: holds %" PRIu64 " rows of %" PRIu32 " %s and %" PRIu64 " bytes of row %" PRIu64
                              "; it was cut short or its rows differ in length, fetch or make it again",
                              vectors->path, source->size / row, dim, element_name(vectors->type), source->size % row,
                              source->size / row);
    vectors->n = (size_t)(source->size / row);
    vectors->dim = dim;
    source->swapped = host_is_big_endian();
    return EXIT_DONE;
}

static int open_regular(vectors *vectors) {
    struct vectors_source *source = vectors->source;
    /* O_NONBLOCK: do not wait for the other end of a pipe. */
    source->fd = open(vectors->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat info;
    if (source->fd < 0 || fstat(source->fd, &info) != 0)
        return report_failure("%s: cannot open: %s; check the path and who may read it", vectors->path,
                              strerror(errno));
    if (!S_ISREG(info.st_mode)) return report_failure("%s: cannot read: not a regular file", vectors->path);
    if (info.st_size == 0) return report_failure("%s: the file is empty; fetch or make it again", vectors->path);
    source->size = (uint64_t)info.st_size;
    source->written = info.st_mtim;
    return EXIT_DONE;
}

static int open_source(vectors *vectors, vectors_role role) {
    struct vectors_source *source = vectors->source;
    int status = source->layout == LAYOUT_HDF5 ? hdf5_open(vectors, role) : open_regular(vectors);
    if (status == EXIT_DONE && source->layout == LAYOUT_BIN) status = bin_read_header(vectors);
    if (status == EXIT_DONE && source->layout == LAYOUT_VECS) status = vecs_read_header(vectors);
    if (status == EXIT_DONE && source->layout == LAYOUT_NPY) status = npy_read_header(vectors);
    if (status != EXIT_DONE) return status;
    if (vectors->sides == 1 && (role == VECTORS_BASE || role == VECTORS_QUERIES))
        return report_failure("%s: an array of one dimension, (%zu,); vectors are the rows of an array of two: save it "
                              "as array.reshape(-1, d), or one vector as array.reshape(1, -1)",
                              vectors->path, vectors->n);
    if ((vectors->n == 0 && role != VECTORS_LIST) || vectors->dim == 0)
        return report_failure("%s: holds %zu rows of %zu elements: nothing to read", vectors->path, vectors->n,
                              vectors->dim);
    if (source->layout == LAYOUT_BIN || source->layout == LAYOUT_NPY) return check_size(vectors);
    return EXIT_DONE;
}

/* Names of distances in published sets and in libraries, without marks between the words. Other distances have no
 * metric here. Unit vectors have the same neighbours under every metric. */
static const struct {
    const char *name;
    sl_metric metric;
    int units;
} distances[] = {{"angular", SL_METRIC_COSINE, 0},
                 {"cosine", SL_METRIC_COSINE, 0},
                 {"cos", SL_METRIC_COSINE, 0},
                 {"cosinesimilarity", SL_METRIC_COSINE, 0},
                 {"cosinedistance", SL_METRIC_COSINE, 0},
                 {"normalized", SL_METRIC_COSINE, 1},
                 {"normalised", SL_METRIC_COSINE, 1},
                 {"euclidean", SL_METRIC_L2, 0},
                 {"euclideandistance", SL_METRIC_L2, 0},
                 {"sqeuclidean", SL_METRIC_L2, 0},
                 {"squaredeuclidean", SL_METRIC_L2, 0},
                 {"euclideansquared", SL_METRIC_L2, 0},
                 {"l2", SL_METRIC_L2, 0},
                 {"l2squared", SL_METRIC_L2, 0},
                 {"squaredl2", SL_METRIC_L2, 0},
                 {"sql2", SL_METRIC_L2, 0},
                 {"l2sq", SL_METRIC_L2, 0},
                 {"l2sqr", SL_METRIC_L2, 0},
                 {"ip", SL_METRIC_IP, 0},
                 {"dot", SL_METRIC_IP, 0},
                 {"dotproduct", SL_METRIC_IP, 0},
                 {"innerproduct", SL_METRIC_IP, 0},
                 {"maxinnerproduct", SL_METRIC_IP, 0},
                 {"maximuminnerproduct", SL_METRIC_IP, 0},
                 {"mips", SL_METRIC_IP, 0}};

/* Compares names, ignoring case and marks between words. */
static int is_named(const char *stated, const char *name) {
    for (;; stated++, name++) {
        stated += strspn(stated, "_- ");
        if (tolower((unsigned char)*stated) != *name) return 0;
        if (!*name) return 1;
    }
}

int vectors_check_metric(const vectors *vectors, sl_metric metric) {
    const char *stated = vectors->stated;
    if (!*stated) return EXIT_DONE;
    for (size_t i = 0; i < sizeof distances / sizeof *distances; i++) {
        if (!is_named(stated, distances[i].name)) continue;
        if (distances[i].metric != metric && !distances[i].units)
            report_warning("%s: says that its distance is %s, and the metric here is %s: neighbors that come with it "
                           "are others",
                           vectors->path, stated, sl_metric_name(metric));
        return EXIT_DONE;
    }
    return report_failure("%s: says that its distance is %s, which is none of cosine, l2 and ip; to take its rows as "
                          "they are all the same, name the dataset: %s:%s",
                          vectors->path, stated, vectors->path, vectors->part);
}

int vectors_open(const char *path, vectors_role role, vectors **out) {
    *out = NULL;
    const format *format = format_of(path);
    if (!format) return report_failure("%s: no ending of a vector file; those read are " VECTORS_READ_ENDINGS, path);
    vectors *vectors = allocate(1, sizeof *vectors);
    struct vectors_source *source = allocate(1, sizeof *source);
    if (!vectors || !source) {
        free(vectors);
        free(source);
        return EXIT_FAILED;
    }
    *source = (struct vectors_source){.layout = format->layout, .fd = -1};
    *vectors = (struct vectors){.path = path, .type = format->type, .sides = 2, .source = source};
    int status = open_source(vectors, role);
    if (status == EXIT_DONE)
        *out = vectors;
    else
        vectors_close(vectors);
    return status;
}

void vectors_close(vectors *vectors) {
    if (!vectors) return;
    if (vectors->source->layout == LAYOUT_HDF5) hdf5_close(vectors);
    if (vectors->source->mapping) munmap(vectors->source->mapping, (size_t)vectors->source->size);
    if (vectors->source->fd >= 0) close(vectors->source->fd);
    free(vectors->source->raw);
    free(vectors->source);
    free(vectors);
}

/* Grows the raw buffer to at least `size` bytes. */
static int need_raw(struct vectors_source *source, size_t size) {
    if (size <= source->raw_size) return EXIT_DONE;
    free(source->raw);
    source->raw_size = 0;
    source->raw = allocate(size, 1);
    if (!source->raw) return EXIT_FAILED;
    source->raw_size = size;
    return EXIT_DONE;
}

/* Reads rows of .?vecs without the length before each row. All lengths must be equal. */
static int read_vecs(vectors *vectors, size_t first, size_t count, unsigned char *out) {
    struct vectors_source *source = vectors->source;
    size_t row = vectors->dim * element_size(vectors->type), pitch = row + 4;
    size_t block = pitch < RAW_SIZE ? RAW_SIZE / pitch : 1;
    int status = need_raw(source, block * pitch);
    for (size_t done = 0; status == EXIT_DONE && done < count; done += block) {
        if (block > count - done) block = count - done;
        status = source_read(vectors, (uint64_t)(first + done) * pitch, source->raw, block * pitch);
        for (size_t i = 0; status == EXIT_DONE && i < block; i++) {
            const unsigned char *from = source->raw + i * pitch;
            uint32_t dim = little_u32(from);
            if (dim != vectors->dim)
                status = report_failure("%s, row %zu: says %" PRId32 " elements where row 0 has %zu; rows must agree, "
                                        "or the file is damaged",
                                        vectors->path, first + done + i, (int32_t)dim, vectors->dim);
            else
                memcpy(out + (done + i) * row, from + 4, row);
        }
    }
    return status;
}

/* Reads Fortran order column by column, and spreads each column over the rows. */
static int read_columns(vectors *vectors, size_t first, size_t count, unsigned char *out) {
    struct vectors_source *source = vectors->source;
    size_t size = element_size(vectors->type);
    int status = need_raw(source, count * size);
    for (size_t column = 0; status == EXIT_DONE && column < vectors->dim; column++) {
        uint64_t offset = source->data + ((uint64_t)column * vectors->n + first) * size;
        status = source_read(vectors, offset, source->raw, count * size);
        for (size_t i = 0; status == EXIT_DONE && i < count; i++)
            memcpy(out + (i * vectors->dim + column) * size, source->raw + i * size, size);
    }
    return status;
}

/* Reads rows in the file's type, dense and in this machine's byte order. */
static int read_stored(vectors *vectors, size_t first, size_t count, void *out) {
    struct vectors_source *source = vectors->source;
    size_t row = vectors->dim * element_size(vectors->type);
    int status;
    if (source->layout == LAYOUT_HDF5) return hdf5_read(vectors, first, count, out);
    if (source->layout == LAYOUT_VECS)
        status = read_vecs(vectors, first, count, out);
    else if (source->columns_first)
        status = read_columns(vectors, first, count, out);
    else
        status = source_read(vectors, source->data + (uint64_t)first * row, out, count * row);
    if (status == EXIT_DONE && source->swapped) elements_swap(out, element_size(vectors->type), count * vectors->dim);
    return status;
}

static int convert_rows(const vectors *vectors, const void *rows, size_t first, size_t count, element type, int round,
                        void *out) {
    size_t n = count * vectors->dim;
    size_t fits = elements_convert(rows, vectors->type, out, type, n, round);
    if (fits == n) return EXIT_DONE;
    char value[32];
    element_print((const char *)rows + fits * element_size(vectors->type), vectors->type, value, sizeof value);
    return report_failure("%s, row %zu, element %zu: %s does not fit %s; scale or convert the data first",
                          vectors->path, first + fits / vectors->dim, fits % vectors->dim, value, element_name(type));
}

int vectors_read(vectors *vectors, size_t first, size_t count, element type, int round, void *out) {
    if (type == vectors->type) return read_stored(vectors, first, count, out);
    size_t row = vectors->dim * element_size(vectors->type), out_row = vectors->dim * element_size(type);
    size_t block = row < RAW_SIZE ? RAW_SIZE / row : 1;
    if (block > count) block = count;
    unsigned char *rows = allocate(block, row);
    int status = rows ? EXIT_DONE : EXIT_FAILED;
    for (size_t done = 0; status == EXIT_DONE && done < count; done += block) {
        if (block > count - done) block = count - done;
        status = read_stored(vectors, first + done, block, rows);
        if (status == EXIT_DONE)
            status = convert_rows(vectors, rows, first + done, block, type, round, (char *)out + done * out_row);
    }
    free(rows);
    return status;
}

const void *vectors_map(vectors *vectors, element type) {
    struct vectors_source *source = vectors->source;
    const int dense = source->layout == LAYOUT_BIN || (source->layout == LAYOUT_NPY && !source->columns_first);
    if (!dense || source->swapped || type != vectors->type || source->data % element_size(type)) return NULL;
    if (!source->mapping) {
        void *mapping = source->size > SIZE_MAX
                            ? MAP_FAILED
                            : mmap(NULL, (size_t)source->size, PROT_READ, MAP_SHARED, source->fd, 0);
        if (mapping == MAP_FAILED) return NULL;
        source->mapping = mapping;
    }
    return (const char *)source->mapping + source->data;
}

int vectors_unchanged(const vectors *vectors) {
    const struct vectors_source *source = vectors->source;
    struct stat info;
    if (source->fd < 0) return EXIT_DONE; /* HDF5's library owns the file */
    if (fstat(source->fd, &info) == 0 && (uint64_t)info.st_size == source->size &&
        info.st_mtim.tv_sec == source->written.tv_sec && info.st_mtim.tv_nsec == source->written.tv_nsec)
        return EXIT_DONE;
    return report_failure("%s: was changed while it was read; start again once nobody writes it", vectors->path);
}

int vectors_bytes(const vectors *vectors, element type, size_t *bytes) {
    uint64_t row, size;
    if (!bytes_of(vectors->dim, element_size(type), &row) || !bytes_of(vectors->n, row, &size) || size > SIZE_MAX)
        return report_failure("%s: larger than memory can be", vectors->path);
    *bytes = (size_t)size;
    return EXIT_DONE;
}

void *vectors_read_all(vectors *vectors, element type) {
    size_t bytes = 0;
    if (vectors_bytes(vectors, type, &bytes) != EXIT_DONE) return NULL;
    void *rows = allocate(1, bytes ? bytes : 1);
    if (rows && vectors_read(vectors, 0, vectors->n, type, 0, rows) == EXIT_DONE) return rows;
    free(rows);
    return NULL;
}

int vectors_match_dim(const vectors *vectors, size_t dim, const char *owner) {
    if (vectors->dim == dim) return EXIT_DONE;
    return report_failure("%s: its vectors have %zu elements, but those of %s have %zu; use vectors of the same model",
                          vectors->path, vectors->dim, owner, dim);
}

int vectors_match_type(const vectors *vectors, sl_dtype dtype, const char *owner, element *out) {
    sl_dtype own = element_dtype(vectors->type);
    int floating = own == SL_F32 || own == SL_F16;
    int owner_floating = dtype == SL_F32 || dtype == SL_F16 || dtype == SL_BF16;
    *out = element_of_dtype(own);
    if (floating ? owner_floating : own == dtype) return EXIT_DONE;
    return report_failure("%s: holds %s vectors, but %s takes %s; bring them to that type with 'shortlist convert'",
                          vectors->path, element_name(vectors->type), owner, sl_dtype_name(dtype));
}

/* Reads a column of a file in this role. */
static int read_column(const char *path, vectors_role role, const char *what, const char *base, size_t *n,
                       uint64_t **out) {
    vectors *file;
    *out = NULL;
    int status = vectors_open(path, role, &file);
    if (status != EXIT_DONE) return status;
    if (file->dim != 1 || element_is_float(file->type))
        status = report_failure("%s: holds %zu %s a row; %s are one column of whole numbers, as .npy or .ibin", path,
                                file->dim, element_name(file->type), what);
    else if (base && file->n != *n)
        status = report_failure("%s: holds %zu %s for the %zu vectors of %s; give one a vector", path, file->n, what,
                                *n, base);
    else if (!(*out = vectors_read_all(file, ELEMENT_U64)))
        status = EXIT_FAILED;
    *n = file->n;
    vectors_close(file);
    return status;
}

int vectors_read_column(const char *path, const char *what, const char *base, size_t *n, uint64_t **out) {
    return read_column(path, VECTORS_COLUMN, what, base, n, out);
}

int vectors_read_ids(const char *path, const char *base, size_t *n, uint64_t **out) {
    return read_column(path, VECTORS_COLUMN, "ids", base, n, out);
}

int vectors_read_list(const char *path, size_t *n, uint64_t **out) {
    return read_column(path, VECTORS_LIST, "ids", NULL, n, out);
}
