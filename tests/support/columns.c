#include "tests/support/columns.h"

#include "tests/support/indexes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void columns_start(columns *c) {
    memset(c, 0, sizeof *c);
    c->table = (sl_table){.struct_size = sizeof c->table, .columns = c->list, .origin = "rows.csv"};
}

static sl_column *add_column(columns *c, const char *name, sl_column_type type, size_t rows) {
    size_t number = c->table.column_count++;
    ck_assert_uint_lt(number, COLUMNS);
    if (number == 0) c->table.rows = rows;
    ck_assert_uint_eq(c->table.rows, rows);
    c->list[number] = (sl_column){.name = name, .type = type};
    return &c->list[number];
}

/* Texts between `separators` of one word, laid one behind the other. */
static size_t put_words(columns *c, size_t number, const char *words, const char *separators, size_t first) {
    size_t used = (size_t)c->offsets[number][first];
    while (*words) {
        size_t size = strcspn(words, separators);
        size_t kept = size == 1 && *words == '-' ? 0 : size;
        memcpy(c->bytes[number] + used, words, kept);
        used += kept;
        c->offsets[number][++first] = (int64_t)used;
        words += size + (words[size] != 0);
    }
    return first;
}

void columns_text(columns *c, const char *name, const char *values) {
    size_t number = c->table.column_count, rows = put_words(c, number, values, " ", 0);
    sl_column *column = add_column(c, name, SL_COLUMN_TEXT, rows);
    column->values = c->bytes[number];
    column->offsets = c->offsets[number];
}

void columns_texts(columns *c, const char *name, const char *given) {
    size_t number = c->table.column_count, rows = 0, texts = 0;
    while (*given) {
        char row[256];
        size_t size = strcspn(given, " ");
        memcpy(row, given, size);
        row[size] = 0;
        if (strcmp(row, "-") != 0) texts = put_words(c, number, row, ",", texts);
        c->lists[number][++rows] = (int64_t)texts;
        given += size + (given[size] != 0);
    }
    sl_column *column = add_column(c, name, SL_COLUMN_TEXTS, rows);
    column->values = c->bytes[number];
    column->offsets = c->offsets[number];
    column->lists = c->lists[number];
}

void columns_values(columns *c, const char *name, sl_column_type type, const void *values, size_t rows) {
    add_column(c, name, type, rows)->values = values;
}

sl_spec *columns_spec(const char *features, const sl_allocator *allocator) {
    char text[4096];
    const char *format = "{\"label\": {\"column\": \"y\"}, \"features\": [%s]}";
    ck_assert_int_lt(snprintf(text, sizeof text, format, features), (int)sizeof text);
    for (char *at = text; *at; at++)
        if (*at == '\'') *at = '"';
    sl_spec *spec;
    ck_ok(sl_spec_read(text, allocator, &spec));
    return spec;
}

/* A table's source that hands out blocks of a size of its own. */
typedef struct pieces {
    sl_rows whole;
    size_t rows;
} pieces;

static sl_status piece_next(void *ctx, size_t max_rows, sl_table *block) {
    pieces *p = ctx;
    return p->whole.next(p->whole.ctx, p->rows < max_rows ? p->rows : max_rows, block);
}

static sl_status piece_rewind(void *ctx) {
    pieces *p = ctx;
    return p->whole.rewind(p->whole.ctx);
}

sl_features *columns_fit(const char *given, const columns *c, size_t block) {
    static float labels[COLUMN_ROWS];
    columns with_label = *c;
    with_label.table.columns = with_label.list;
    if (c->table.column_count < COLUMNS) columns_values(&with_label, "y", SL_COLUMN_F32, labels, c->table.rows);
    sl_table_cursor *cursor = malloc(sl_table_cursor_size(with_label.table.column_count));
    pieces p = {.rows = block};
    ck_ok(sl_table_rows(&with_label.table, cursor, &p.whole));
    sl_rows rows = {sizeof rows, &p, piece_next, piece_rewind};
    sl_features *features;
    ck_ok(sl_features_fit(columns_spec(given, NULL), &rows, &(sl_fit_source){.lookup = NULL}, &features));
    free(cursor);
    return features;
}

void columns_encode(const sl_features *features, const columns *c, sl_rows_buffer *out) {
    sl_encoder *encoder;
    *out = (sl_rows_buffer){.allocator = sl_allocator_of(NULL)};
    ck_ok(sl_encoder_create(features, SL_ALL_SIDES, 0, NULL, NULL, NULL, &encoder));
    ck_ok(sl_encoder_append(encoder, &c->table, 0, c->table.rows, out));
    sl_encoder_free(encoder);
}

void columns_ids(const char *given, const columns *c, uint32_t *out) {
    sl_features *features = columns_fit(given, c, 4096);
    sl_rows_buffer rows;
    columns_encode(features, c, &rows);
    for (size_t i = 0; i < rows.rows; i++)
        out[i] = rows.ids[i * features->id_count];
    sl_rows_buffer_free(&rows);
    sl_features_free(features);
}

void columns_floats(const char *given, const columns *c, float *out) {
    sl_features *features = columns_fit(given, c, 4096);
    sl_rows_buffer rows;
    columns_encode(features, c, &rows);
    memcpy(out, rows.dense, rows.rows * features->dense_width * sizeof *out);
    sl_rows_buffer_free(&rows);
    sl_features_free(features);
}
