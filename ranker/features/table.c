#include "ranker/features/table.h"

#include "base/memory.h"
#include "base/params.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

/* ---- Tables and sources ---- */

const char *sl_column_type_name(sl_column_type type) {
    static const char *const names[] = {"f32", "f64", "i32", "i64", "text", "texts", "vector"};
    return (size_t)type < sizeof names / sizeof *names ? names[type] : "?";
}

static sl_status check_column(const sl_column *column, size_t number, size_t rows) {
    if (!column->name) return sl_fail(SL_EINVAL, "column %zu has no name", number);
    if ((unsigned)column->type > SL_COLUMN_VECTOR)
        return sl_fail(SL_EINVAL, "column '%s' has type %d; it takes an sl_column_type", column->name,
                       (int)column->type);
    int texts = column->type == SL_COLUMN_TEXT || column->type == SL_COLUMN_TEXTS;
    if (rows && texts && !column->offsets) return sl_fail(SL_EINVAL, "text column '%s' has no offsets", column->name);
    if (rows && column->type == SL_COLUMN_TEXTS && !column->lists)
        return sl_fail(SL_EINVAL, "column '%s' of lists of texts has no lists", column->name);
    /* A column of empty texts needs no bytes. */
    if (rows && !texts && !column->values) return sl_fail(SL_EINVAL, "column '%s' has no values", column->name);
    if (column->type == SL_COLUMN_VECTOR && (column->dim == 0 || column->dim > SL_MAX_DIM))
        return sl_fail(SL_EINVAL, "vector column '%s' has dim %zu; it takes 1 to %u", column->name, column->dim,
                       SL_MAX_DIM);
    return SL_OK;
}

sl_status sl_table_check(const sl_table *table) {
    SL_TRY(sl_params_check_out(table, "sl_table"));
    if (table->struct_size < sizeof *table)
        return sl_fail(SL_EINVAL, "struct_size of a table is %zu; set it to sizeof(sl_table)", table->struct_size);
    if (table->column_count && !table->columns) return sl_fail(SL_EINVAL, "a table with columns points at none");
    for (size_t i = 0; i < table->column_count; i++)
        SL_TRY(check_column(&table->columns[i], i, table->rows));
    return SL_OK;
}

sl_status sl_rows_check(const sl_rows *rows) {
    SL_TRY(sl_params_check_out(rows, "sl_rows"));
    if (rows->struct_size < sizeof *rows || !rows->next || !rows->rewind)
        return sl_fail(SL_EINVAL, "a source of rows needs struct_size, next and rewind");
    return SL_OK;
}

sl_status sl_rows_next(const sl_rows *rows, size_t max_rows, sl_table *block) {
    *block = (sl_table){.struct_size = sizeof *block};
    SL_TRY(rows->next(rows->ctx, max_rows, block));
    SL_TRY(sl_table_check(block));
    if (block->rows > max_rows)
        return sl_fail(SL_EINVAL, "a source of rows gave %zu rows where %zu were asked for", block->rows, max_rows);
    return SL_OK;
}

size_t sl_table_find(const sl_table *table, const char *name) {
    for (size_t i = 0; i < table->column_count; i++)
        if (strcmp(table->columns[i].name, name) == 0) return i;
    return SIZE_MAX;
}

/* ---- Texts of messages ---- */

/* Returns the length of the UTF-8 character at the start of a text; 0 if there is none. */
static size_t utf8_bytes(const char *text, size_t size) {
    const unsigned char *t = (const unsigned char *)text;
    const size_t bytes = t[0] < 0x80 ? 1 : t[0] < 0xc2 ? 0 : t[0] < 0xe0 ? 2 : t[0] < 0xf0 ? 3 : t[0] < 0xf5 ? 4 : 0;
    if (bytes > size) return 0;
    for (size_t i = 1; i < bytes; i++)
        if ((t[i] & 0xc0) != 0x80) return 0;
    /* Overlong, a surrogate, or above U+10FFFF. */
    if ((t[0] == 0xe0 && t[1] < 0xa0) || (t[0] == 0xed && t[1] > 0x9f)) return 0;
    return (t[0] == 0xf0 && t[1] < 0x90) || (t[0] == 0xf4 && t[1] > 0x8f) ? 0 : bytes;
}

/* Returns the length of the character at the start of a text; 0 if it is a control character or not UTF-8. */
static size_t printable_bytes(const char *text, size_t size) {
    const unsigned char first = (unsigned char)text[0];
    const int controls = first < 32 || first == 127 || (first == 0xc2 && size > 1 && (unsigned char)text[1] < 0xa0);
    return controls ? 0 : utf8_bytes(text, size);
}

/* Writes an escape for a byte that messages do not show as it is. Returns the length. */
static size_t escape_byte(char byte, char *out) {
    static const char controls[] = "\0\a\b\t\n\v\f\r", letters[] = "0abtnvfr";
    const char *control = memchr(controls, byte, sizeof letters - 1);
    if (control) return (size_t)sprintf(out, "\\%c", letters[control - controls]);
    return (size_t)sprintf(out, "\\x%02x", (unsigned)(unsigned char)byte);
}

sl_shown sl_show(const char *text, size_t size) {
    enum { DOTS = 4, CHARACTER = 4 };
    sl_shown shown;
    size_t used = 0, i = 0;
    while (i < size && used < sizeof shown.text - DOTS - CHARACTER) {
        const size_t bytes = printable_bytes(text + i, size - i);
        memcpy(shown.text + used, text + i, bytes);
        used += bytes ? bytes : escape_byte(text[i], shown.text + used);
        i += bytes ? bytes : 1;
    }
    snprintf(shown.text + used, sizeof shown.text - used, "%s", i < size ? "..." : "");
    return shown;
}

/* The last bytes of the text hold the number of names left out. */
#define MORE_BYTES 32

/* Returns the name itself if all of it is printable, else its escaped form. */
static const char *show_name(const char *name, sl_shown *shown) {
    const size_t size = strlen(name);
    for (size_t i = 0, bytes; i < size; i += bytes) {
        bytes = printable_bytes(name + i, size - i);
        if (bytes) continue;
        *shown = sl_show(name, size);
        return shown->text;
    }
    return name;
}

void sl_names_add(sl_names *names, const char *name) {
    sl_shown shown;
    name = show_name(name, &shown);
    size_t left = sizeof names->text - MORE_BYTES - names->used, length = strlen(name) + (names->used ? 2 : 0);
    if (names->more || length >= left) {
        names->more++;
        return;
    }
    snprintf(names->text + names->used, left, "%s%s", names->used ? ", " : "", name);
    names->used += length;
}

const char *sl_names_text(sl_names *names) {
    if (names->more)
        snprintf(names->text + names->used, MORE_BYTES, "%s%zu more", names->used ? " and " : "", names->more);
    return names->used || names->more ? names->text : "none";
}

sl_status sl_fail_no_column(const sl_table *table, const char *name, const char *what) {
    sl_names names = {.used = 0};
    sl_shown shown;
    for (size_t c = 0; c < table->column_count; c++)
        sl_names_add(&names, table->columns[c].name);
    return sl_fail(SL_ENOTFOUND, "%s has no column '%s'%s; its columns are %s",
                   table->origin ? table->origin : "the table", show_name(name, &shown), what, sl_names_text(&names));
}

sl_status sl_fail_at(sl_status status, const sl_table *table, size_t row, const char *column) {
    const char *origin = table->origin ? table->origin : "table";
    sl_shown shown;
    column = show_name(column, &shown);
    if (table->lines)
        return sl_fail_in(status, "%s: line %llu: column '%s'", origin, (unsigned long long)table->lines[row], column);
    return sl_fail_in(status, "%s: row %llu: column '%s'", origin, (unsigned long long)(table->first_row + row),
                      column);
}

/* ---- A table in memory as a source ---- */

/* A byte for each column follows the cursor's columns. It holds the column's validity bits if a block begins within a
 * byte. */
static uint8_t *shifted_bits(sl_table_cursor *cursor) {
    sl_column *columns = cursor->columns;
    return (uint8_t *)(columns + cursor->table->column_count);
}

size_t sl_table_cursor_size(size_t column_count) {
    size_t size;
    if (!sl_mul(column_count, sizeof(sl_column) + 1, &size) || !sl_add(size, sizeof(sl_table_cursor), &size))
        return SIZE_MAX;
    return size;
}

static int has_validity(const sl_table *table) {
    for (size_t i = 0; i < table->column_count; i++)
        if (table->columns[i].valid) return 1;
    return 0;
}

/* Makes a column that begins at row `first`. Validity has no offset: if the row begins a byte, the pointer moves; else
 * the rest of that byte is copied to *bits. */
static void column_from_row(const sl_column *from, size_t first, uint8_t *bits, sl_column *to) {
    static const size_t sizes[] = {[SL_COLUMN_F32] = sizeof(float),
                                   [SL_COLUMN_F64] = sizeof(double),
                                   [SL_COLUMN_I32] = sizeof(int32_t),
                                   [SL_COLUMN_I64] = sizeof(int64_t),
                                   [SL_COLUMN_TEXTS] = 0,
                                   [SL_COLUMN_VECTOR] = sizeof(float)};
    *to = *from;
    size_t step = sizes[from->type] * (from->type == SL_COLUMN_VECTOR ? from->dim : 1);
    if (step) to->values = (const char *)from->values + step * first;
    if (from->type == SL_COLUMN_TEXT) to->offsets = from->offsets + first;
    if (from->type == SL_COLUMN_TEXTS) to->lists = from->lists + first;
    if (!from->valid) return;
    *bits = (uint8_t)(from->valid[first / 8] >> (first % 8));
    to->valid = first % 8 ? bits : from->valid + first / 8;
}

static sl_status cursor_next(void *ctx, size_t max_rows, sl_table *block) {
    sl_table_cursor *cursor = ctx;
    const sl_table *table = cursor->table;
    size_t at = cursor->at, rows = table->rows - at;
    *block = (sl_table){.struct_size = sizeof *block, .origin = table->origin};
    if (max_rows == 0) return sl_fail(SL_EINVAL, "max_rows is 0; ask for at least one row");
    if (rows > max_rows) rows = max_rows;
    if (rows && has_validity(table)) {
        if (at % 8 && rows > 8 - at % 8) rows = 8 - at % 8;
        if (rows > 8 && at + rows < table->rows) rows -= rows % 8;
    }
    if (rows == 0) return SL_OK;
    sl_column *columns = cursor->columns;
    for (size_t i = 0; i < table->column_count; i++)
        column_from_row(&table->columns[i], at, shifted_bits(cursor) + i, &columns[i]);
    block->rows = rows;
    block->column_count = table->column_count;
    block->columns = columns;
    block->lines = table->lines ? table->lines + at : NULL;
    block->first_row = table->first_row + at;
    cursor->at = at + rows;
    return SL_OK;
}

static sl_status cursor_rewind(void *ctx) {
    ((sl_table_cursor *)ctx)->at = 0;
    return SL_OK;
}

sl_status sl_table_rows(const sl_table *table, sl_table_cursor *cursor, sl_rows *out) {
    SL_TRY(sl_table_check(table));
    if (!cursor || !out) return sl_fail(SL_EINVAL, "cursor or out is NULL");
    cursor->table = table;
    cursor->at = 0;
    *out = (sl_rows){.struct_size = sizeof *out, .ctx = cursor, .next = cursor_next, .rewind = cursor_rewind};
    return SL_OK;
}

/* ---- Cells ---- */

sl_status sl_cell_text(const sl_column *column, int64_t t, const char **text, size_t *size) {
    int64_t from = column->offsets[t], to = column->offsets[t + 1];
    *text = "";
    *size = 0;
    if (from < 0 || to < from)
        return sl_fail(SL_EINVAL, "offsets fall from %lld to %lld", (long long)from, (long long)to);
    if (to == from) return SL_OK; /* a column of empty texts may have no bytes */
    *text = (const char *)column->values + from;
    *size = (size_t)(to - from);
    return SL_OK;
}

static sl_status parse_cell(const sl_column *column, size_t row, double *out) {
    const char *text = NULL;
    size_t size = 0;
    SL_TRY(sl_cell_text(column, (int64_t)row, &text, &size));
    if (size == 0) {
        *out = (double)NAN;
        return SL_OK;
    }
    if (!sl_number_read(text, size, out))
        return sl_fail(SL_EVALUE, "'%s' is no finite number", sl_show(text, size).text);
    return SL_OK;
}

sl_status sl_cell_number(const sl_column *column, size_t row, double *out) {
    *out = (double)NAN;
    if (!sl_column_has(column, row)) return SL_OK;
    switch (column->type) {
    case SL_COLUMN_F32:
        *out = (double)((const float *)column->values)[row];
        break;
    case SL_COLUMN_F64:
        *out = ((const double *)column->values)[row];
        break;
    case SL_COLUMN_I32:
        *out = (double)((const int32_t *)column->values)[row];
        return SL_OK;
    case SL_COLUMN_I64:
        *out = (double)((const int64_t *)column->values)[row];
        return SL_OK;
    case SL_COLUMN_TEXT:
        return parse_cell(column, row, out);
    default:
        return sl_fail(SL_ETYPE, "a column of type %s has no numbers", sl_column_type_name(column->type));
    }
    if (isinf(*out)) return sl_fail(SL_EVALUE, "the number is infinite");
    return SL_OK;
}

/* A float with an integer value is the same category as the integer. */
static sl_status key_of_float(const sl_column *column, size_t row, sl_key *key) {
    int single = column->type == SL_COLUMN_F32;
    float narrow = single ? ((const float *)column->values)[row] : 0;
    double value = single ? (double)narrow : ((const double *)column->values)[row];
    if (isnan(value)) {
        key->kind = SL_KEY_MISSING;
        return SL_OK;
    }
    if (isinf(value)) return sl_fail(SL_EVALUE, "the number is infinite");
    if (sl_number_is_integer(value, &key->integer)) {
        key->kind = SL_KEY_INTEGER;
        return SL_OK;
    }
    size_t size = single ? sl_number_write_f32(narrow, key->room) : sl_number_write(value, key->room);
    sl_key_of_text(key, key->room, size);
    return SL_OK;
}

sl_status sl_cell_key(const sl_column *column, size_t row, sl_key *key) {
    key->kind = SL_KEY_MISSING;
    if (!sl_column_has(column, row)) return SL_OK;
    switch (column->type) {
    case SL_COLUMN_I32:
        key->integer = ((const int32_t *)column->values)[row];
        break;
    case SL_COLUMN_I64:
        key->integer = ((const int64_t *)column->values)[row];
        break;
    case SL_COLUMN_F32:
    case SL_COLUMN_F64:
        return key_of_float(column, row, key);
    case SL_COLUMN_TEXT: {
        const char *text;
        size_t size;
        SL_TRY(sl_cell_text(column, (int64_t)row, &text, &size));
        sl_key_of_text(key, text, size);
        return SL_OK;
    }
    default:
        return sl_fail(SL_ETYPE, "a column of type %s has no single categories", sl_column_type_name(column->type));
    }
    key->kind = SL_KEY_INTEGER;
    return SL_OK;
}

sl_status sl_table_groups(const sl_table *table, size_t column, uint64_t *out) {
    for (size_t r = 0; r < table->rows; r++) {
        sl_key key;
        sl_status status = sl_cell_key(&table->columns[column], r, &key);
        if (status != SL_OK) return sl_fail_at(status, table, r, table->columns[column].name);
        sl_key_text(&key);
        out[r] = key.kind == SL_KEY_MISSING ? 0 : XXH3_64bits(key.text, key.size);
    }
    return SL_OK;
}
