#include "ranker/features/table.h"
#include "recommend/items.h"

#include <string.h>

/* The beginnings of a column's arrays, and how many texts and bytes of text it has. */
typedef struct place {
    size_t values, offsets, lists, valid; /* offsets in data */
    size_t text;                          /* offset in text */
    size_t texts, bytes;
} place;

typedef struct builder {
    const sl_item_schema *schema;
    const sl_part_rows *from;
    size_t n;
    place *places;
    size_t data_size, text_size;
    uint8_t *data;
    char *text;
} builder;

/* The column that row i of the part is copied from, and the row there. NULL if the value is missing. */
static const sl_column *cell_of(const builder *b, size_t c, size_t i, size_t *row) {
    const sl_part_rows *from = b->from;
    const sl_column *column = from->set ? from->set[c] : NULL;
    *row = i;
    if (!column && from->body) {
        column = &sl_items_part_of(from->body, sl_ref_part(from->rows[i]))->columns[c];
        *row = sl_ref_row(from->rows[i]);
    }
    return column && sl_column_has(column, *row) ? column : NULL;
}

/* ---------------------------------------------------------------------------------------------------------------
 * Sizes
 * ------------------------------------------------------------------------------------------------------------- */

static sl_status claim_array(builder *b, size_t count, size_t element, size_t *at) {
    size_t bytes;
    *at = b->data_size;
    if (!sl_mul(count, element, &bytes) || bytes > SIZE_MAX - SL_CACHE_LINE ||
        !sl_add(b->data_size, sl_round_up(bytes, SL_CACHE_LINE), &b->data_size))
        return sl_fail(SL_ENOMEM, "the item table does not fit the address space");
    return SL_OK;
}

/* Finds a row's first text, and the number of its texts. */
static sl_status texts_of(const sl_column *column, size_t row, int64_t *first, size_t *count) {
    *first = (int64_t)row;
    *count = 1;
    if (column->type == SL_COLUMN_TEXT) return SL_OK;
    int64_t from = column->lists[row], to = column->lists[row + 1];
    if (from < 0 || to < from)
        return sl_fail(SL_EINVAL, "lists of column '%s' fall at row %zu; they must rise", column->name, row);
    *first = from;
    *count = (size_t)(to - from);
    return SL_OK;
}

static sl_status measure_texts(builder *b, size_t c) {
    place *p = &b->places[c];
    for (size_t i = 0; i < b->n; i++) {
        size_t row, count, size;
        int64_t first;
        const char *text;
        const sl_column *column = cell_of(b, c, i, &row);
        if (!column) {
            p->texts += b->schema->columns[c].type == SL_COLUMN_TEXT;
            continue;
        }
        SL_TRY(texts_of(column, row, &first, &count));
        for (size_t t = 0; t < count; t++) {
            SL_TRY(sl_cell_text(column, first + (int64_t)t, &text, &size));
            if (!sl_add(p->bytes, size, &p->bytes)) return sl_fail(SL_ENOMEM, "texts do not fit the address space");
        }
        p->texts += count;
    }
    p->text = b->text_size;
    if (!sl_add(b->text_size, p->bytes, &b->text_size)) return sl_fail(SL_ENOMEM, "texts do not fit the address space");
    return SL_OK;
}

static size_t element_of(sl_column_type type, size_t dim) {
    switch (type) {
    case SL_COLUMN_F32:
    case SL_COLUMN_I32:
        return 4;
    case SL_COLUMN_F64:
    case SL_COLUMN_I64:
        return 8;
    case SL_COLUMN_VECTOR:
        return dim * sizeof(float);
    default:
        return 0;
    }
}

static sl_status measure_columns(builder *b) {
    for (size_t c = 0; c < b->schema->count; c++) {
        const sl_item_column *column = &b->schema->columns[c];
        place *p = &b->places[c];
        if (column->type == SL_COLUMN_TEXT || column->type == SL_COLUMN_TEXTS) {
            SL_TRY(measure_texts(b, c));
            SL_TRY(claim_array(b, p->texts + 1, sizeof(int64_t), &p->offsets));
            if (column->type == SL_COLUMN_TEXTS) SL_TRY(claim_array(b, b->n + 1, sizeof(int64_t), &p->lists));
        } else {
            SL_TRY(claim_array(b, b->n, element_of(column->type, column->dim), &p->values));
        }
        SL_TRY(claim_array(b, (b->n + 7) / 8, 1, &p->valid));
    }
    return SL_OK;
}

/* ---------------------------------------------------------------------------------------------------------------
 * Filling
 * ------------------------------------------------------------------------------------------------------------- */

static void fill_texts(builder *b, size_t c, sl_column *out) {
    place *p = &b->places[c];
    int64_t *offsets = (int64_t *)(b->data + p->offsets);
    int64_t *lists = out->type == SL_COLUMN_TEXTS ? (int64_t *)(b->data + p->lists) : NULL;
    char *bytes = b->text + p->text;
    size_t at = 0, texts = 0;
    for (size_t i = 0; i < b->n; i++) {
        size_t row, count = out->type == SL_COLUMN_TEXT;
        int64_t first = 0;
        const sl_column *column = cell_of(b, c, i, &row);
        /* Can't fail: measure_texts has read the same. */
        if (column) (void)texts_of(column, row, &first, &count);
        for (size_t t = 0; t < count; t++) {
            const char *text;
            size_t size = 0;
            if (column && sl_cell_text(column, first + (int64_t)t, &text, &size) == SL_OK && size)
                memcpy(bytes + at, text, size);
            at += size;
            offsets[++texts] = (int64_t)at;
        }
        if (lists) lists[i + 1] = (int64_t)texts;
    }
    out->values = bytes;
    out->offsets = offsets;
    out->lists = lists;
}

static void fill_values(builder *b, size_t c, sl_column *out) {
    uint8_t *values = b->data + b->places[c].values;
    size_t element = element_of(b->schema->columns[c].type, b->schema->columns[c].dim);
    for (size_t i = 0; i < b->n; i++) {
        size_t row;
        const sl_column *column = cell_of(b, c, i, &row);
        if (column) memcpy(values + i * element, (const uint8_t *)column->values + row * element, element);
    }
    out->values = values;
}

static void fill_columns(builder *b, sl_items_part *part) {
    for (size_t c = 0; c < b->schema->count; c++) {
        sl_column *out = &part->columns[c];
        uint8_t *valid = b->data + b->places[c].valid;
        if (out->type == SL_COLUMN_TEXT || out->type == SL_COLUMN_TEXTS)
            fill_texts(b, c, out);
        else
            fill_values(b, c, out);
        for (size_t i = 0; i < b->n; i++) {
            size_t row;
            if (cell_of(b, c, i, &row)) valid[i / 8] = (uint8_t)(valid[i / 8] | 1u << i % 8);
        }
        out->valid = valid;
    }
    part->data = part->own_data = b->data;
    part->text = part->own_text = (uint8_t *)b->text;
    part->data_size = b->data_size;
    part->text_size = b->text_size;
}

/* ---------------------------------------------------------------------------------------------------------------
 * Parts
 * ------------------------------------------------------------------------------------------------------------- */

sl_status sl_items_part_new(const sl_allocator *allocator, const sl_item_schema *schema, size_t rows,
                            sl_items_part **out) {
    void *block, *columns;
    SL_TRY(sl_mem_alloc(allocator, sizeof(sl_items_part), &block));
    sl_items_part *part = block;
    sl_status status = sl_mem_alloc(allocator, schema->count * sizeof *part->columns, &columns);
    if (status != SL_OK) {
        sl_mem_free(allocator, block, sizeof *part);
        return status;
    }
    part->columns = columns;
    for (size_t c = 0; c < schema->count; c++) {
        const sl_item_column *column = &schema->columns[c];
        part->columns[c] = (sl_column){.name = column->name, .type = column->type, .dim = column->dim};
    }
    part->table = (sl_table){.struct_size = sizeof part->table,
                             .rows = rows,
                             .column_count = schema->count,
                             .columns = part->columns,
                             .origin = "item table"};
    *out = part;
    return SL_OK;
}

void sl_items_part_free(const sl_allocator *allocator, const sl_item_schema *schema, sl_items_part *part) {
    if (!part) return;
    SL_FREE_ARRAY(allocator, part->ids, part->table.rows);
    sl_mem_free(allocator, part->own_data, part->data_size);
    sl_mem_free(allocator, part->own_text, part->text_size);
    SL_FREE_ARRAY(allocator, part->columns, schema->count);
    SL_FREE(allocator, part);
}

sl_status sl_items_part_make(const sl_allocator *allocator, const sl_item_schema *schema, const sl_part_rows *from,
                             sl_items_part **out) {
    const size_t n = from->n;
    builder b = {.schema = schema, .from = from, .n = n};
    sl_items_part *part = NULL;
    void *places = NULL, *data = NULL, *text = NULL, *own_ids;
    sl_status status;
    if (n > SL_MAX_PART_ROWS) return sl_fail(SL_ELIMIT, "%zu items; a table holds %u", n, SL_MAX_PART_ROWS);
    SL_TRY_GOTO(sl_mem_alloc(allocator, schema->count * sizeof *b.places, &places), done);
    b.places = places;
    SL_TRY_GOTO(measure_columns(&b), done);
    SL_TRY_GOTO(sl_mem_alloc(allocator, b.data_size, &data), done);
    SL_TRY_GOTO(sl_mem_alloc(allocator, b.text_size, &text), done);
    SL_TRY_GOTO(sl_items_part_new(allocator, schema, n, &part), done);
    SL_TRY_GOTO(sl_mem_alloc(allocator, n * sizeof *from->ids, &own_ids), done);
    if (n) memcpy(own_ids, from->ids, n * sizeof *from->ids);
    part->ids = own_ids;
    b.data = data;
    b.text = text;
    fill_columns(&b, part);
    data = text = NULL;
    *out = part;
    part = NULL;
done:
    sl_items_part_free(allocator, schema, part);
    sl_mem_free(allocator, data, b.data_size);
    sl_mem_free(allocator, text, b.text_size);
    sl_mem_free(allocator, places, schema->count * sizeof *b.places);
    return status;
}

/* ---------------------------------------------------------------------------------------------------------------
 * Reading ahead
 * ------------------------------------------------------------------------------------------------------------- */

static void read_ahead(const sl_store *store, const void *array, size_t element, size_t first, size_t count) {
    if (count) store->medium->advise_soon((const uint8_t *)array + first * element, count * element);
}

void sl_items_part_read_ahead(const sl_item_body *body, const sl_items_part *part, size_t c, size_t first,
                              size_t count) {
    const sl_column *column = &part->columns[c];
    const sl_store *store = body->store;
    if (part->own_data || !count) return;
    read_ahead(store, column->valid, 1, first / 8, (first + count - 1) / 8 - first / 8 + 1);
    if (!column->offsets) {
        read_ahead(store, column->values, element_of(column->type, column->dim), first, count);
        return;
    }
    /* Opening has checked these offsets and lists. */
    size_t text = first, texts = count;
    if (column->lists) {
        read_ahead(store, column->lists, sizeof *column->lists, first, count + 1);
        text = (size_t)column->lists[first];
        texts = (size_t)column->lists[first + count] - text;
    }
    read_ahead(store, column->offsets, sizeof *column->offsets, text, texts + 1);
    size_t from = (size_t)column->offsets[text];
    read_ahead(store, column->values, 1, from, (size_t)column->offsets[text + texts] - from);
}

/* ---------------------------------------------------------------------------------------------------------------
 * All current rows as one part
 * ------------------------------------------------------------------------------------------------------------- */

size_t sl_item_body_list(const sl_item_body *body, sl_row_ref *refs, uint64_t *ids) {
    size_t n = 0;
    for (size_t p = 0; p < sl_catalog_parts(&body->catalog); p++) {
        const sl_items_part *part = sl_items_part_of(body, p);
        for (size_t row = 0; row < part->table.rows; row++) {
            if (sl_catalog_find(&body->catalog, part->ids[row]) != sl_ref_of(p, row)) continue;
            refs[n] = sl_ref_of(p, row);
            ids[n++] = part->ids[row];
        }
    }
    return n;
}

sl_status sl_item_body_compact(const sl_items *items, const sl_item_body *body, sl_items_part **out) {
    const sl_allocator *allocator = &items->allocator;
    const size_t room = sl_catalog_size(&body->catalog);
    void *rows = NULL, *ids = NULL;
    sl_status status;
    SL_TRY_GOTO(sl_mem_alloc(allocator, room * sizeof(sl_row_ref), &rows), done);
    SL_TRY_GOTO(sl_mem_alloc(allocator, room * sizeof(uint64_t), &ids), done);
    const sl_part_rows from = {.body = body, .rows = rows, .ids = ids, .n = sl_item_body_list(body, rows, ids)};
    SL_TRY_GOTO(sl_items_part_make(allocator, &items->schema, &from, out), done);
done:
    sl_mem_free(allocator, rows, room * sizeof(sl_row_ref));
    sl_mem_free(allocator, ids, room * sizeof(uint64_t));
    return status;
}
