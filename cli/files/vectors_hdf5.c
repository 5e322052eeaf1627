/* .hdf5 files in the layout of ann-benchmarks: train, test, neighbors. */
#include "cli/common/interrupt.h"
#include "cli/common/report.h"
#include "cli/common/system.h"
#include "cli/files/vectors_format.h"

#ifdef SHORTLIST_HAVE_HDF5

#include <errno.h>
#include <hdf5.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

typedef struct opened {
    hid_t file, set, stored; /* negative: not open */
    int named;               /* the path names the dataset */
    char dataset[128];
} opened;

int vectors_reads_hdf5(void) {
    return 1;
}

static const char *const role_names[] = {
    [VECTORS_BASE] = "train",   [VECTORS_COLUMN] = "train",    [VECTORS_LIST] = "train",
    [VECTORS_QUERIES] = "test", [VECTORS_TRUTH] = "neighbors", [VECTORS_ARRAY] = "train"};

/* Splits FILE.hdf5:NAME, unless the whole is a file. NAME may lie in groups. The caller frees the file's name. */
static char *part_path(const char *path, vectors_role role, opened *opened) {
    const char *colon = strrchr(path, ':');
    const format *whole = NULL;
    if (colon && access(path, F_OK) != 0) {
        char *file = strndup(path, (size_t)(colon - path));
        whole = file ? format_of(file) : NULL;
        if (whole && whole->layout == LAYOUT_HDF5 && colon[1] && strlen(colon + 1) < sizeof opened->dataset) {
            strcpy(opened->dataset, colon + 1);
            opened->named = 1;
            return file;
        }
        free(file);
    }
    strcpy(opened->dataset, role_names[role]);
    return strdup(path);
}

/* Finds the type of the stored elements, and the type to request, for which the library converts the byte order. */
static int find_type(vectors *vectors, const opened *opened) {
    H5T_class_t class = H5Tget_class(opened->stored);
    size_t size = H5Tget_size(opened->stored);
    if (class == H5T_FLOAT && size == 4)
        vectors->type = ELEMENT_F32;
    else if (class == H5T_FLOAT && size == 8)
        vectors->type = ELEMENT_F64;
    else if (class == H5T_INTEGER && (size == 1 || size == 2 || size == 4 || size == 8)) {
        static const element of_signed[] = {[1] = ELEMENT_I8, [2] = ELEMENT_I16, [4] = ELEMENT_I32, [8] = ELEMENT_I64};
        static const element of_unsigned[] = {
            [1] = ELEMENT_U8, [2] = ELEMENT_U16, [4] = ELEMENT_U32, [8] = ELEMENT_U64};
        vectors->type = H5Tget_sign(opened->stored) == H5T_SGN_NONE ? of_unsigned[size] : of_signed[size];
    } else
        return report_failure("%s: dataset %s holds neither float32, float64 nor integers; convert it first",
                              vectors->path, opened->dataset);
    return EXIT_DONE;
}

static int find_shape(vectors *vectors, const opened *opened) {
    hsize_t sides[2] = {0, 1};
    hid_t space = H5Dget_space(opened->set);
    int rank = space >= 0 ? H5Sget_simple_extent_ndims(space) : -1;
    int read = (rank == 1 || rank == 2) && H5Sget_simple_extent_dims(space, sides, NULL) == rank;
    if (space >= 0) H5Sclose(space);
    if (!read)
        return report_failure("%s: dataset %s has %d dimensions where 1 or 2 are read: rows, and elements a row",
                              vectors->path, opened->dataset, rank);
    if (sides[0] > SIZE_MAX || sides[1] > SIZE_MAX / 8)
        return report_failure("%s: dataset %s is larger than memory can be", vectors->path, opened->dataset);
    vectors->n = (size_t)sides[0];
    vectors->dim = (size_t)sides[1];
    vectors->sides = (size_t)rank;
    return EXIT_DONE;
}

/* Copies a text for a message: control characters become '?'. A text that does not fit ends in dots, never inside a
 * UTF-8 character. */
static void copy_shown(const char *text, char *out, size_t size) {
    const size_t length = strlen(text), most = length < size ? length : size - sizeof "...";
    size_t used = most;
    while (used < length && used > 0 && ((unsigned char)text[used] & 0xc0) == 0x80)
        used--;
    for (size_t i = 0; i < used; i++)
        out[i] = (unsigned char)text[i] < 32 || text[i] == 127 ? '?' : text[i];
    strcpy(out + used, used < length ? "..." : "");
}

static void read_text(hid_t attribute, hid_t stored, char *out, size_t size) {
    const int varies = H5Tis_variable_str(stored) > 0;
    const size_t length = varies ? H5T_VARIABLE : H5Tget_size(stored) + 1;
    hid_t type = H5Tcopy(H5T_C_S1);
    char *text = varies ? NULL : calloc(length, 1);
    if (type >= 0 && (varies || text) && H5Tset_size(type, length) >= 0 &&
        H5Tset_cset(type, H5Tget_cset(stored)) >= 0 && H5Aread(attribute, type, varies ? (void *)&text : text) >= 0 &&
        text)
        copy_shown(text, out, size);
    if (type >= 0) H5Tclose(type);
    if (varies && text)
        H5free_memory(text);
    else
        free(text);
}

/* Reads a text attribute of the dataset or of the file. "": there is none. */
static void read_attribute(const opened *opened, const char *name, char *out, size_t size) {
    *out = '\0';
    const hid_t owner = H5Aexists(opened->set, name) > 0 ? opened->set : opened->file;
    if (H5Aexists(owner, name) <= 0) return;
    hid_t attribute = H5Aopen(owner, name, H5P_DEFAULT);
    hid_t space = attribute >= 0 ? H5Aget_space(attribute) : -1, stored = attribute >= 0 ? H5Aget_type(attribute) : -1;
    if (space >= 0 && stored >= 0 && H5Sget_simple_extent_npoints(space) == 1 && H5Tget_class(stored) == H5T_STRING)
        read_text(attribute, stored, out, size);
    if (stored >= 0) H5Tclose(stored);
    if (space >= 0) H5Sclose(space);
    if (attribute >= 0) H5Aclose(attribute);
}

/* Reads what a published set says about itself: "type" is dense or sparse, "distance" a name. In a sparse set, `train`
 * holds all rows' elements one after the other. A dataset that the path names is read as it is. */
static int check_kind(vectors *vectors, vectors_role role, const opened *opened) {
    char kind[32], distance[sizeof vectors->stated];
    const int vectors_only = role == VECTORS_BASE || role == VECTORS_QUERIES;
    read_attribute(opened, "type", kind, sizeof kind);
    read_attribute(opened, "distance", distance, sizeof distance);
    const int sparse = strcasecmp(kind, "sparse") == 0;
    if ((vectors_only && vectors->sides == 1) ||
        (!opened->named && (vectors_only || role == VECTORS_ARRAY) && (sparse || vectors->sides == 1)))
        return report_failure("%s: dataset %s has %zu dimension%s, and the file says type '%s', distance '%s'; vectors "
                              "are dense rows of two dimensions, and sets or sparse vectors are not taken",
                              vectors->path, opened->dataset, vectors->sides, vectors->sides == 1 ? "" : "s", kind,
                              distance);
    if (opened->named) return EXIT_DONE;
    memcpy(vectors->stated, distance, sizeof distance);
    vectors->part = opened->dataset;
    return EXIT_DONE;
}

int hdf5_open(vectors *vectors, vectors_role role) {
    opened *opened = allocate(1, sizeof *opened);
    if (!opened) return EXIT_FAILED;
    *opened = (struct opened){.file = -1, .set = -1, .stored = -1};
    vectors->source->hdf5 = opened;
    char *file = part_path(vectors->path, role, opened);
    if (!file) return report_failure("out of memory");
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL); /* else the library prints its stack on stderr */
    int error = access(file, R_OK) == 0 ? 0 : errno;
    opened->file = error ? -1 : H5Fopen(file, H5F_ACC_RDONLY, H5P_DEFAULT);
    free(file);
    if (error)
        return report_failure("%s: cannot open: %s; check the path and who may read it", vectors->path,
                              strerror(error));
    if (opened->file < 0)
        return report_failure("%s: cannot open it as HDF5: cut short or not HDF5; fetch it again", vectors->path);
    opened->set = H5Dopen2(opened->file, opened->dataset, H5P_DEFAULT);
    if (opened->set < 0)
        return report_failure("%s: has no dataset %s; name the one to read, FILE.hdf5:NAME", vectors->path,
                              opened->dataset);
    opened->stored = H5Dget_type(opened->set);
    int status = find_type(vectors, opened);
    if (status == EXIT_DONE) status = find_shape(vectors, opened);
    return status == EXIT_DONE ? check_kind(vectors, role, opened) : status;
}

static hid_t memory_type(element type) {
    switch (type) {
    case ELEMENT_F32:
        return H5T_NATIVE_FLOAT;
    case ELEMENT_F64:
        return H5T_NATIVE_DOUBLE;
    case ELEMENT_I8:
        return H5T_NATIVE_INT8;
    case ELEMENT_U8:
        return H5T_NATIVE_UINT8;
    case ELEMENT_I16:
        return H5T_NATIVE_INT16;
    case ELEMENT_U16:
        return H5T_NATIVE_UINT16;
    case ELEMENT_I32:
        return H5T_NATIVE_INT32;
    case ELEMENT_U32:
        return H5T_NATIVE_UINT32;
    case ELEMENT_I64:
        return H5T_NATIVE_INT64;
    default:
        return H5T_NATIVE_UINT64;
    }
}

int hdf5_read(vectors *vectors, size_t first, size_t count, void *out) {
    const opened *opened = vectors->source->hdf5;
    if (interrupted()) return report_interrupted();
    hsize_t start[2] = {first, 0}, sides[2] = {count, vectors->dim};
    hid_t space = H5Dget_space(opened->set);
    int rank = space >= 0 ? H5Sget_simple_extent_ndims(space) : 0;
    hid_t memory = rank > 0 ? H5Screate_simple(rank, sides, NULL) : -1;
    int read = memory >= 0 && H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, sides, NULL) >= 0 &&
               H5Dread(opened->set, memory_type(vectors->type), memory, space, H5P_DEFAULT, out) >= 0;
    if (memory >= 0) H5Sclose(memory);
    if (space >= 0) H5Sclose(space);
    if (read) return EXIT_DONE;
    return report_failure("%s: cannot read rows %zu to %zu of dataset %s; the file is cut short or damaged, fetch it "
                          "again",
                          vectors->path, first, first + count - 1, opened->dataset);
}

void hdf5_close(vectors *vectors) {
    opened *opened = vectors->source->hdf5;
    if (!opened) return;
    if (opened->stored >= 0) H5Tclose(opened->stored);
    if (opened->set >= 0) H5Dclose(opened->set);
    if (opened->file >= 0) H5Fclose(opened->file);
    free(opened);
}

#else

int vectors_reads_hdf5(void) {
    return 0;
}

int hdf5_open(vectors *vectors, vectors_role role) {
    (void)role;
    return report_failure("%s: this build reads no .hdf5; install libhdf5 (Debian: libhdf5-dev) and build again",
                          vectors->path);
}

/* Never reached: nothing is open without hdf5_open. */
int hdf5_read(vectors *vectors, size_t first, size_t count, void *out) {
    (void)out;
    return report_failure("%s: cannot read %zu rows from %zu", vectors->path, count, first);
}

void hdf5_close(vectors *vectors) {
    (void)vectors;
}

#endif
