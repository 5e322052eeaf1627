#include "cli/common/output.h"
#include "cli/common/report.h"
#include "cli/common/system.h"
#include "cli/files/vectors_format.h"

#include <stdlib.h>
#include <string.h>

struct vectors_writer {
    const char *path;
    output *output;
    layout layout;
    element type;
    size_t n, dim, written;
    unsigned char *row; /* one converted row */
};

int vectors_writer_type(const char *path, element npy, element *out) {
    const format *format = format_of(path);
    if (!format)
        return report_failure("%s: no ending of a vector file; those written are " VECTORS_WRITE_ENDINGS, path);
    if (format->layout == LAYOUT_HDF5)
        return report_failure("%s: .hdf5 is only read; those written are " VECTORS_WRITE_ENDINGS, path);
    *out = format->layout == LAYOUT_NPY ? npy : format->type;
    return EXIT_DONE;
}

static void put_u32(unsigned char *out, size_t value) {
    for (size_t i = 0; i < 4; i++)
        out[i] = (unsigned char)(value >> (8 * i));
}

/* Makes the header. Its length does not depend on n. */
static size_t make_header(const vectors_writer *writer, size_t n, unsigned char *out, size_t size) {
    if (writer->layout == LAYOUT_NPY) return npy_write_header((char *)out, size, n, writer->dim, writer->type);
    if (writer->layout != LAYOUT_BIN) return 0;
    put_u32(out, n);
    put_u32(out + 4, writer->dim);
    return 8;
}

static int write_header(vectors_writer *writer) {
    unsigned char header[256];
    size_t n = writer->n == VECTORS_UNCOUNTED ? 0 : writer->n;
    return output_write(writer->output, header, make_header(writer, n, header, sizeof header));
}

/* Writes the header again, with the final number of rows. */
static int write_count(vectors_writer *writer) {
    unsigned char header[256];
    writer->n = writer->written;
    if (writer->layout == LAYOUT_BIN && writer->n > UINT32_MAX)
        return report_failure("%s: %zu rows are more than this format counts; write .npy", writer->path, writer->n);
    size_t length = make_header(writer, writer->n, header, sizeof header);
    return length ? output_rewrite_start(writer->output, header, length) : EXIT_DONE;
}

int vectors_create(const char *path, size_t n, size_t dim, element npy, vectors_writer **out) {
    *out = NULL;
    element type = npy;
    int status = vectors_writer_type(path, npy, &type);
    if (status != EXIT_DONE) return status;
    layout layout = format_of(path)->layout;
    if ((layout == LAYOUT_BIN && n > UINT32_MAX && n != VECTORS_UNCOUNTED) || (layout != LAYOUT_NPY && dim > INT32_MAX))
        return report_failure("%s: %zu rows of %zu are more than this format counts; write .npy", path, n, dim);
    vectors_writer *writer = allocate(1, sizeof *writer);
    if (!writer) return EXIT_FAILED;
    *writer = (vectors_writer){.path = path, .layout = layout, .type = type, .n = n, .dim = dim};
    writer->row = allocate(dim, element_size(type));
    status = writer->row ? output_create(path, &writer->output) : EXIT_FAILED;
    if (status == EXIT_DONE) status = write_header(writer);
    if (status == EXIT_DONE)
        *out = writer;
    else
        vectors_discard(writer);
    return status;
}

static int append_row(vectors_writer *writer, const void *row, element type, int round, const char *source,
                      size_t number) {
    size_t fits = elements_convert(row, type, writer->row, writer->type, writer->dim, round);
    if (fits < writer->dim) {
        char value[32];
        element_print((const char *)row + fits * element_size(type), type, value, sizeof value);
        return report_failure("%s, row %zu, element %zu: %s does not fit %s, the type of %s; choose another type%s",
                              source, number, fits, value, element_name(writer->type), writer->path,
                              round ? "" : ", or convert with --round where only the fraction is too fine");
    }
    if (host_is_big_endian() && writer->layout != LAYOUT_NPY)
        elements_swap(writer->row, element_size(writer->type), writer->dim);
    unsigned char length[4];
    put_u32(length, writer->dim);
    int status = EXIT_DONE;
    if (writer->layout == LAYOUT_VECS) status = output_write(writer->output, length, sizeof length);
    if (status == EXIT_DONE)
        status = output_write(writer->output, writer->row, writer->dim * element_size(writer->type));
    return status;
}

int vectors_append(vectors_writer *writer, const void *rows, element type, size_t count, int round, const char *source,
                   size_t first) {
    size_t pitch = writer->dim * element_size(type);
    int status = EXIT_DONE;
    for (size_t i = 0; status == EXIT_DONE && i < count; i++)
        status = append_row(writer, (const char *)rows + i * pitch, type, round, source, first + i);
    writer->written += count;
    return status;
}

int vectors_commit(vectors_writer *writer) {
    int status = writer->n == VECTORS_UNCOUNTED ? write_count(writer) : EXIT_DONE;
    if (status == EXIT_DONE && writer->written != writer->n)
        status = report_failure("%s: %zu rows written of %zu", writer->path, writer->written, writer->n);
    if (status == EXIT_DONE) {
        status = output_commit(writer->output);
        writer->output = NULL;
    }
    vectors_discard(writer);
    return status;
}

void vectors_discard(vectors_writer *writer) {
    if (!writer) return;
    output_discard(writer->output);
    free(writer->row);
    free(writer);
}
