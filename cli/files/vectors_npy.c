/* NumPy's .npy: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html */
#include "cli/common/report.h"
#include "cli/common/system.h"
#include "cli/files/vectors_format.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEADER_MAX (1u << 20)

static const unsigned char magic[6] = {0x93, 'N', 'U', 'M', 'P', 'Y'};

static const struct {
    const char *name;
    element type;
} dtypes[] = {
    {"f4", ELEMENT_F32}, {"f2", ELEMENT_F16}, {"f8", ELEMENT_F64}, {"i1", ELEMENT_I8},
    {"u1", ELEMENT_U8},  {"i2", ELEMENT_I16}, {"u2", ELEMENT_U16}, {"i4", ELEMENT_I32},
    {"u4", ELEMENT_U32}, {"i8", ELEMENT_I64}, {"u8", ELEMENT_U64},
};

/* Finds a key's value in the header's dictionary, past the colon and blanks. NULL: the key is missing. */
static const char *find_value(const char *header, const char *key) {
    const char *at = strstr(header, key);
    if (!at) return NULL;
    at += strlen(key);
    while (isspace((unsigned char)*at))
        at++;
    if (*at++ != ':') return NULL;
    while (isspace((unsigned char)*at))
        at++;
    return at;
}

/* Parses a type such as '<f4'. */
static int parse_type(vectors *vectors, const char *value) {
    struct vectors_source *source = vectors->source;
    char text[16];
    size_t length = 0;
    if (*value == '\'' || *value == '"') length = strcspn(value + 1, "'\"");
    if (length < 2 || length >= sizeof text)
        return report_failure("%s: its elements are records or of a type unknown here; save a plain array of numbers",
                              vectors->path);
    memcpy(text, value + 1, length);
    text[length] = '\0';
    const char *name = strchr("<>|=", text[0]) ? text + 1 : text;
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        if (strcmp(name, dtypes[i].name) != 0) continue;
        vectors->type = dtypes[i].type;
        source->swapped = (text[0] == '>' && !host_is_big_endian()) || (text[0] == '<' && host_is_big_endian());
        return EXIT_DONE;
    }
    return report_failure("%s: its elements are '%s'; save it as float32, float16, float64 or an integer type",
                          vectors->path, text);
}

/* Parses a shape: "(1000, 100)" or "(1000,)". */
static int parse_shape(vectors *vectors, const char *value) {
    unsigned long long sides[2] = {0, 1};
    size_t count = 0;
    int well = *value == '(';
    for (const char *at = value + 1; well && *at != ')';) {
        char *stop;
        while (isspace((unsigned char)*at))
            at++;
        if (!isdigit((unsigned char)*at)) {
            well = *at == ')';
            break;
        }
        unsigned long long side = strtoull(at, &stop, 10);
        if (count < 2) sides[count] = side;
        count++;
        at = stop;
        while (isspace((unsigned char)*at) || *at == ',')
            at++;
        well = *at == ')' || isdigit((unsigned char)*at);
    }
    if (!well) return report_failure("%s: its header has no shape; the file is damaged", vectors->path);
    if (count == 0 || count > 2)
        return report_failure("%s: an array of %zu dimensions; save one of two: rows and elements a row", vectors->path,
                              count);
    if (sides[0] > SIZE_MAX || sides[1] > SIZE_MAX)
        return report_failure("%s: its header says %llu rows of %llu: more than memory can be; the file is damaged",
                              vectors->path, sides[0], sides[1]);
    vectors->n = (size_t)sides[0];
    vectors->dim = (size_t)sides[1];
    vectors->sides = count;
    return EXIT_DONE;
}

static int parse_header(vectors *vectors, const char *header) {
    const char *type = find_value(header, "'descr'");
    const char *order = find_value(header, "'fortran_order'");
    const char *shape = find_value(header, "'shape'");
    if (!type || !order || !shape)
        return report_failure("%s: its header lacks descr, fortran_order or shape; the file is damaged", vectors->path);
    int status = parse_type(vectors, type);
    if (status == EXIT_DONE) status = parse_shape(vectors, shape);
    vectors->source->columns_first = strncmp(order, "True", 4) == 0 && vectors->dim > 1;
    return status;
}

int npy_read_header(vectors *vectors) {
    struct vectors_source *source = vectors->source;
    unsigned char start[12];
    if (source->size < 10)
        return report_failure("%s: shorter than a .npy header; fetch or make it again", vectors->path);
    int status = source_read(vectors, 0, start, source->size < sizeof start ? 10 : sizeof start);
    if (status != EXIT_DONE) return status;
    if (memcmp(start, magic, sizeof magic) != 0)
        return report_failure("%s: not a .npy file: its magic bytes are missing; check what was saved here",
                              vectors->path);
    if (start[6] < 1 || start[6] > 3)
        return report_failure("%s: .npy version %u.%u; versions 1 to 3 are read, save it with numpy.save",
                              vectors->path, start[6], start[7]);
    size_t wide = start[6] == 1 ? 2 : 4;
    if (source->size < 8 + wide)
        return report_failure("%s: cut short in its header; fetch or make it again", vectors->path);
    size_t length = 0;
    for (size_t i = 0; i < wide; i++)
        length |= (size_t)start[8 + i] << (8 * i);
    source->data = 8 + wide + length;
    if (length > HEADER_MAX || source->data > source->size)
        return report_failure("%s: its header says it is %zu bytes long; the file is cut short or damaged",
                              vectors->path, length);
    char *header = allocate(length + 1, 1);
    if (!header) return EXIT_FAILED;
    status = source_read(vectors, 8 + wide, header, length);
    if (status == EXIT_DONE) status = parse_header(vectors, header);
    free(header);
    return status;
}

size_t npy_write_header(char *out, size_t size, size_t n, size_t dim, element type) {
    const char *name = "";
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        if (dtypes[i].type == type) name = dtypes[i].name;
    char order = element_size(type) == 1 ? '|' : host_is_big_endian() ? '>' : '<';
    char text[192], second[24] = "";
    if (dim) snprintf(second, sizeof second, " %zu", dim);
    int length = snprintf(text, sizeof text, "{'descr': '%c%s', 'fortran_order': False, 'shape': (%zu,%s), }", order,
                          name, n, second);
    if (length < 0 || (size_t)length >= sizeof text) return 0;
    /* 64 bytes are too few for any shape, and 128 hold the largest. */
    size_t whole = (10 + (size_t)length + 1 + 63) / 64 * 64;
    if (whole > size) return 0;
    memset(out, ' ', whole);
    memcpy(out, magic, sizeof magic);
    out[6] = 1;
    out[7] = 0;
    out[8] = (char)((whole - 10) & 0xff);
    out[9] = (char)((whole - 10) >> 8);
    memcpy(out + 10, text, (size_t)length);
    out[whole - 1] = '\n';
    return whole;
}
