#include "tests/support/item_rows.h"

#include "tests/support/indexes.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void every_fill(every *e, const uint64_t *ids, size_t n, unsigned version) {
    size_t at = 0, text = 0, texts = 0;
    memset(e, 0, sizeof *e);
    for (size_t i = 0; i < n; i++) {
        e->ids[i] = (int64_t)ids[i];
        e->longs[i] = (int64_t)ids[i] * 1000 + version;
        e->integers[i] = -(int32_t)(ids[i] % 1000) - (int32_t)version;
        e->floats[i] = ids[i] % 7 == 0 ? NAN : (float)(ids[i] % 1000) + 0.5f * (float)version;
        e->doubles[i] = (double)ids[i] / 3 + version;
        for (size_t d = 0; d < EVERY_DIM; d++)
            e->vectors[i * EVERY_DIM + d] = (float)(ids[i] % 1000 + d + version);
        if (ids[i] % 5) at += (size_t)sprintf(e->text + at, "t%llu.%u", (unsigned long long)ids[i], version);
        e->text_offsets[i + 1] = (int64_t)at;
        for (size_t w = 0; w < ids[i] % 4; w++) {
            text += (size_t)sprintf(e->list_text + text, "w%zu.%u", w, version);
            e->list_offsets[++texts] = (int64_t)text;
        }
        e->lists[i + 1] = (int64_t)texts;
        if (ids[i] % 6) e->valid[i / 8] = (uint8_t)(e->valid[i / 8] | 1u << i % 8);
    }
    const sl_column columns[] = {
        {.name = "id", .type = SL_COLUMN_I64, .values = e->ids},
        {.name = "long", .type = SL_COLUMN_I64, .values = e->longs, .valid = e->valid},
        {.name = "int", .type = SL_COLUMN_I32, .values = e->integers},
        {.name = "float", .type = SL_COLUMN_F32, .values = e->floats},
        {.name = "double", .type = SL_COLUMN_F64, .values = e->doubles, .valid = e->valid},
        {.name = "vector", .type = SL_COLUMN_VECTOR, .dim = EVERY_DIM, .values = e->vectors, .valid = e->valid},
        {.name = "text", .type = SL_COLUMN_TEXT, .values = e->text, .offsets = e->text_offsets},
        {.name = "list",
         .type = SL_COLUMN_TEXTS,
         .values = e->list_text,
         .offsets = e->list_offsets,
         .lists = e->lists},
    };
    memcpy(e->columns, columns, sizeof columns);
    e->table = (sl_table){.struct_size = sizeof e->table, .rows = n, .column_count = 8, .columns = e->columns};
}

void every_pick(every *e, unsigned which) {
    size_t kept = 1;
    for (size_t c = 1; c < 8; c++)
        if (which >> c & 1) e->columns[kept++] = e->columns[c];
    e->table.column_count = kept;
}

void expect_text(const sl_items *items, uint64_t id, const char *column, const char *wanted) {
    char text[128];
    size_t length;
    ck_ok(sl_items_text(items, id, column, text, sizeof text, &length));
    ck_assert_msg(!strcmp(text, wanted), "%s of %llu is '%s', not '%s'", column, (unsigned long long)id, text, wanted);
    ck_assert_uint_eq(length, strlen(wanted));
}

void expect_columns(const sl_items *items, uint64_t id, unsigned version, unsigned which) {
    char text[128];
    int has = id % 6 != 0;
    const struct {
        const char *column, *format;
        int there;
        long long number;
    } numbers[] = {{"id", "%lld", 1, (long long)id},
                   {"long", "%lld", has, (long long)id * 1000 + version},
                   {"int", "%lld", 1, -(long long)(id % 1000) - version},
                   {"float", version % 2 ? "%lld.5" : "%lld", id % 7 != 0, (long long)(id % 1000 + version / 2)}};
    for (size_t c = 0; c < 4; c++) {
        snprintf(text, sizeof text, numbers[c].format, numbers[c].number);
        if (which >> c & 1) expect_text(items, id, numbers[c].column, numbers[c].there ? text : "");
    }
    ck_ok(sl_items_text(items, id, "double", text, sizeof text, NULL));
    if (which >> 4 & 1 && has)
        ck_assert(fabs(strtod(text, NULL) - ((double)id / 3 + version)) < 1e-12 * (double)id + 1e-12);
    const unsigned first = (unsigned)(id % 1000) + version;
    snprintf(text, sizeof text, "%u %u %u", first, first + 1, first + 2);
    if (which >> 5 & 1) expect_text(items, id, "vector", has ? text : "");
    snprintf(text, sizeof text, "t%llu.%u", (unsigned long long)id, version);
    if (which >> 6 & 1) expect_text(items, id, "text", id % 5 ? text : "");
    *text = '\0';
    for (size_t w = 0, at = 0; w < id % 4; w++)
        at += (size_t)sprintf(text + at, "%sw%zu.%u", w ? "|" : "", w, version);
    if (which >> 7 & 1) expect_text(items, id, "list", text);
}

void expect_row(const sl_items *items, uint64_t id, unsigned version) {
    expect_columns(items, id, version, 0xff);
}

static sl_status piece_next(void *ctx, size_t max_rows, sl_table *block) {
    pieces *p = ctx;
    return p->whole.next(p->whole.ctx, max_rows < p->most ? max_rows : p->most, block);
}
static sl_status piece_rewind(void *ctx) {
    pieces *p = ctx;
    return p->whole.rewind(p->whole.ctx);
}
void pieces_of(pieces *p, const sl_table *table, size_t most) {
    *p = (pieces){.most = most, .whole = {.struct_size = sizeof p->whole}};
    p->cursor = malloc(sl_table_cursor_size(table->column_count));
    ck_ok(sl_table_rows(table, p->cursor, &p->whole));
    p->rows = (sl_rows){sizeof p->rows, p, piece_next, piece_rewind};
}

sl_items *items_of(const sl_table *table, size_t most, const sl_allocator *allocator) {
    pieces p;
    sl_items *items;
    sl_items_params params;
    sl_items_params_init(&params);
    params.allocator = allocator;
    pieces_of(&p, table, most);
    ck_ok(sl_items_create(&p.rows, &params, &items));
    free(p.cursor);
    return items;
}

const uint64_t sparse_ids[EVERY_ROWS] = {7,  1,  2,  1000000007, 3,  4,  5,  6,  8,  9,  1ull << 50, 12, 13, 14,
                                         15, 16, 17, 18,         19, 20, 21, 22, 23, 24, 25,         26, 27, 28,
                                         29, 30, 31, 32,         33, 34, 35, 36, 37, 38, 39,         0};
