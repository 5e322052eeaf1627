/* The calls for CSV files: parameters, opening, blocks of rows. */
#define _GNU_SOURCE
#include "base/params.h"
#include "ranker/features/csv.h"
#include "ranker/features/spec.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define MAX_BLOCK_ROWS  65536u             /* rows of a block */
#define MAX_BLOCK_CELLS ((size_t)1 << 22)  /* cells of a block: each has an offset */
#define MAX_BLOCK_BYTES ((size_t)64 << 20) /* bytes of a block's texts; the last row may exceed it */

void sl_csv_params_init_sized(sl_csv_params *params, size_t struct_size) {
    sl_csv_params mine = {.struct_size = sizeof mine, .delimiter = ',', .header = 1};
    sl_params_defaults(params, struct_size, &mine, sizeof mine);
}

/* ---- Columns ---- */

static sl_status make_columns(sl_csv *csv, size_t count) {
    void *fields, *columns;
    if (count > SL_CSV_COLUMN_LIMIT)
        return sl_fail(SL_ELIMIT, "%s: %zu columns; a file may have %u", csv->path, count, SL_CSV_COLUMN_LIMIT);
    SL_TRY(sl_mem_alloc(&csv->allocator, count * sizeof *csv->fields, &fields));
    csv->fields = fields;
    csv->column_count = count;
    SL_TRY(sl_mem_alloc(&csv->allocator, count * sizeof *csv->columns, &columns));
    csv->columns = columns;
    return SL_OK;
}

static sl_status name_column(sl_csv *csv, size_t i, const char *name, size_t size) {
    csv_field *field = &csv->fields[i];
    void *copy;
    if (size == 0) return sl_fail(SL_EFORMAT, "%s: column %zu has no name", csv->path, i + 1);
    if (memchr(name, 0, size)) return sl_fail(SL_EFORMAT, "%s: the name of column %zu has a NUL", csv->path, i + 1);
    SL_TRY(sl_mem_alloc(&csv->allocator, size + 1, &copy));
    field->name = copy;
    field->name_size = size + 1;
    memcpy(field->name, name, size);
    for (size_t other = 0; other < i; other++)
        if (strcmp(csv->fields[other].name, field->name) == 0)
            return sl_fail(SL_EFORMAT, "%s: columns %zu and %zu are both named '%s'", csv->path, other + 1, i + 1,
                           field->name);
    return SL_OK;
}

/* Names the columns by the header. The parser of rows reads it into one column, with any number of fields. */
static sl_status name_by_header(sl_csv *csv) {
    size_t count;
    const int64_t *starts;
    const char *bytes;
    SL_TRY(csv_read_header(csv, &bytes, &starts, &count));
    if (count == 0) return sl_fail(SL_EFORMAT, "%s: no header: the file is empty", csv->path);
    SL_TRY(make_columns(csv, count));
    for (size_t i = 0; i < count; i++)
        SL_TRY(name_column(csv, i, bytes + starts[i], (size_t)(starts[i + 1] - starts[i])));
    return SL_OK;
}

static sl_status name_by_caller(sl_csv *csv, const char *const *names, size_t count) {
    SL_TRY(make_columns(csv, count));
    for (size_t i = 0; i < count; i++)
        SL_TRY(name_column(csv, i, names[i] ? names[i] : "", names[i] ? strlen(names[i]) : 0));
    return SL_OK;
}

/* ---- Opening ---- */

static sl_status check_params(const sl_csv_params *params) {
    if (!params->delimiter || strchr("\"\r\n", params->delimiter))
        return sl_fail(SL_EINVAL, "delimiter is a quote, a line break or NUL; give another character");
    if (!params->header && (!params->names || params->name_count == 0))
        return sl_fail(SL_EINVAL, "names is empty; name the columns of a file without a header");
    return SL_OK;
}

static sl_status open_file(sl_csv *csv, const char *path) {
    void *copy;
    csv->path_size = strlen(path) + 1;
    SL_TRY(sl_mem_alloc(&csv->allocator, csv->path_size, &copy));
    csv->path = copy;
    memcpy(csv->path, path, csv->path_size);
    do
        csv->fd = open(path, O_RDONLY | O_CLOEXEC);
    while (csv->fd < 0 && errno == EINTR);
    return csv->fd < 0 ? sl_fail_errno("cannot open", path) : SL_OK;
}

static sl_status open_csv(const char *path, const sl_csv_params *params, const sl_allocator *allocator, sl_csv **out) {
    sl_status status;
    void *block;
    SL_TRY(check_params(params));
    SL_TRY(sl_mem_alloc(allocator, sizeof(sl_csv), &block));
    sl_csv *csv = block;
    csv->allocator = *allocator;
    csv->delimiter = params->delimiter;
    csv->has_header = params->header != 0;
    csv->fd = -1;
    csv->end_byte = UINT64_MAX;
    SL_TRY_GOTO(open_file(csv, path), fail);
    SL_TRY_GOTO(csv_start(csv), fail);
    int named = params->names && params->name_count;
    if (!named) SL_TRY_GOTO(name_by_header(csv), fail);
    if (named) SL_TRY_GOTO(name_by_caller(csv, params->names, params->name_count), fail);
    if (named && csv->has_header) SL_TRY_GOTO(csv_skip_header(csv), fail);
    *out = csv;
    return SL_OK;
fail:
    sl_csv_free(csv);
    return status;
}

sl_status sl_csv_open(const char *path, const sl_csv_params *given, sl_csv **out) {
    if (!out) return sl_fail(SL_EINVAL, "out is NULL");
    *out = NULL;
    if (!path) return sl_fail(SL_EINVAL, "path is NULL");
    sl_csv_params params;
    sl_csv_params_init(&params);
    SL_TRY(sl_params_in(&params, sizeof params, given, "sl_csv_params_init"));
    sl_allocator allocator = sl_allocator_of(params.allocator);
    sl_spec *spec = NULL;
    if (params.spec) {
        SL_TRY(sl_spec_read(params.spec, &allocator, &spec));
        params.delimiter = spec->delimiter;
        params.header = spec->header;
        params.names = spec->columns;
        params.name_count = spec->column_count;
    }
    sl_status status = open_csv(path, &params, &allocator, out);
    sl_spec_free(spec);
    return status;
}

void sl_csv_free(sl_csv *csv) {
    if (!csv) return;
    sl_allocator allocator = csv->allocator;
    for (size_t i = 0; i < csv->column_count; i++) {
        csv_field *field = &csv->fields[i];
        sl_mem_free(&allocator, field->name, field->name_size);
        sl_mem_free(&allocator, field->bytes, field->room);
        SL_FREE_ARRAY(&allocator, field->offsets, field->offset_room);
    }
    csv_field *header = &csv->header;
    sl_mem_free(&allocator, header->bytes, header->room);
    SL_FREE_ARRAY(&allocator, header->offsets, header->offset_room);
    SL_FREE_ARRAY(&allocator, csv->fields, csv->column_count);
    SL_FREE_ARRAY(&allocator, csv->columns, csv->column_count);
    SL_FREE_ARRAY(&allocator, csv->lines, csv->line_room);
    sl_mem_free(&allocator, csv->buffer, csv->buffer_room);
    sl_mem_free(&allocator, csv->path, csv->path_size);
    if (csv->fd >= 0) close(csv->fd);
    SL_FREE(&allocator, csv);
}

/* ---- Blocks ---- */

static sl_status reserve_rows(sl_csv *csv, size_t rows) {
    sl_status status = SL_OK;
    csv->lines = sl_mem_grow(&csv->allocator, csv->lines, &csv->line_room, rows, sizeof *csv->lines, &status);
    for (size_t i = 0; i < csv->column_count; i++) {
        csv_field *field = &csv->fields[i];
        field->offsets = sl_mem_grow(&csv->allocator, field->offsets, &field->offset_room, rows + 1,
                                     sizeof *field->offsets, &status);
        field->used = 0;
    }
    return status;
}

static sl_status next_block(void *ctx, size_t max_rows, sl_table *block) {
    sl_csv *csv = ctx;
    *block = (sl_table){.struct_size = sizeof *block, .origin = csv->path};
    if (max_rows == 0) return sl_fail(SL_EINVAL, "max_rows is 0; ask for at least one row");
    if (max_rows > MAX_BLOCK_ROWS) max_rows = MAX_BLOCK_ROWS;
    if (max_rows > MAX_BLOCK_CELLS / csv->column_count) max_rows = MAX_BLOCK_CELLS / csv->column_count;
    SL_TRY(reserve_rows(csv, max_rows));
    size_t rows = 0, bytes = 0;
    while (rows < max_rows && bytes < MAX_BLOCK_BYTES) {
        size_t size;
        SL_TRY(csv_read_row(csv, rows, &size));
        if (size == 0) break;
        bytes += size;
        rows++;
    }
    for (size_t i = 0; i < csv->column_count; i++) {
        const csv_field *field = &csv->fields[i];
        csv->columns[i] =
            (sl_column){.name = field->name, .type = SL_COLUMN_TEXT, .values = field->bytes, .offsets = field->offsets};
    }
    block->rows = rows;
    block->column_count = csv->column_count;
    block->columns = csv->columns;
    block->lines = csv->lines;
    return SL_OK;
}

static sl_status rewind_file(void *ctx) {
    sl_csv *csv = ctx;
    if (lseek(csv->fd, (off_t)csv->first_byte, SEEK_SET) < 0) return sl_fail_errno("cannot read again", csv->path);
    if (csv->first_byte) {
        csv->at = csv->end = 0;
        csv->at_end = 0;
        csv->read = csv->first_byte;
        csv->line = csv->first_line;
        return SL_OK;
    }
    SL_TRY(csv_start(csv));
    return csv->has_header ? csv_skip_header(csv) : SL_OK;
}

sl_status csv_set_part(sl_csv *csv, uint64_t first_byte, uint64_t first_line, uint64_t end_byte) {
    csv->first_byte = first_byte;
    csv->first_line = first_line;
    csv->end_byte = end_byte;
    return rewind_file(csv);
}

sl_status sl_csv_rows(sl_csv *csv, sl_rows *out) {
    if (!csv || !out) return sl_fail(SL_EINVAL, "csv or out is NULL");
    *out = (sl_rows){.struct_size = sizeof *out, .ctx = csv, .next = next_block, .rewind = rewind_file};
    return SL_OK;
}
