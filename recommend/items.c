#include "recommend/items.h"

#include "base/params.h"
#include "ranker/features/table.h"

#include <string.h>

void sl_items_params_init_sized(sl_items_params *params, size_t struct_size) {
    const sl_items_params mine = {.struct_size = sizeof mine, .id = "id"};
    sl_params_defaults(params, struct_size, &mine, sizeof mine);
}

/* ---------------------------------------------------------------------------------------------------------------
 * Handles and bodies
 * ------------------------------------------------------------------------------------------------------------- */

sl_status sl_item_body_make(const sl_allocator *allocator, sl_item_body **out) {
    void *block;
    SL_TRY(sl_mem_alloc(allocator, sizeof(sl_item_body), &block));
    *out = block;
    sl_status status = sl_catalog_init(&(*out)->catalog, allocator);
    if (status == SL_OK) return SL_OK;
    sl_mem_free(allocator, block, sizeof **out);
    return status;
}

void sl_item_body_free(const sl_items *items, sl_item_body *body) {
    for (size_t p = 0; p < sl_catalog_parts(&body->catalog); p++)
        sl_items_part_free(&items->allocator, &items->schema, sl_items_part_of(body, p));
    sl_catalog_free(&body->catalog);
    sl_store_close(body->store, &items->allocator);
    sl_mem_free(&items->allocator, body, sizeof *body);
}

/* A sl_guarded_free_fn; items is the table. */
static void free_body(const void *items, sl_guarded *body) {
    sl_item_body_free(items, (sl_item_body *)body);
}

sl_status sl_items_new(const sl_items_params *params, sl_items **out) {
    sl_allocator allocator = sl_allocator_of(params->allocator);
    void *block;
    sl_item_body *body;
    SL_TRY(sl_mem_alloc(&allocator, sizeof(sl_items), &block));
    sl_items *items = block;
    items->allocator = allocator;
    items->references = 1;
    sl_status status;
    SL_TRY_GOTO(sl_mem_alloc(&allocator, sizeof *items->access, &block), fail);
    items->access = block;
    sl_hazards_init(&items->access->bodies, &allocator, free_body, items);
    SL_TRY_GOTO(sl_item_body_make(&allocator, &body), fail);
    sl_hazards_replace(&items->access->bodies, &body->guarded);
    *out = items;
    return SL_OK;
fail:
    sl_items_free(items);
    return status;
}

sl_items *sl_items_retain(sl_items *items) {
    if (items) __atomic_add_fetch(&items->references, 1, __ATOMIC_RELAXED);
    return items;
}

void sl_items_free(sl_items *items) {
    if (!items || __atomic_sub_fetch(&items->references, 1, __ATOMIC_ACQ_REL)) return;
    if (items->access) sl_hazards_free(&items->access->bodies);
    sl_item_schema_free(&items->allocator, &items->schema);
    sl_allocator allocator = items->allocator;
    sl_origin_free(items->origin, &allocator);
    sl_mem_free(&allocator, items->access, sizeof *items->access);
    sl_mem_free(&allocator, items, sizeof *items);
}

sl_status sl_items_begin(const sl_items *items, sl_hazard **hazard, sl_item_body **body) {
    sl_hazards *bodies = &items->access->bodies;
    SL_TRY(sl_hazards_take(bodies, hazard));
    *body = (sl_item_body *)sl_hazards_protect(bodies, *hazard);
    return SL_OK;
}

void sl_items_end(sl_hazard *hazard) {
    sl_hazard_release(hazard);
    sl_hazard_give_back(hazard);
}

sl_status sl_items_lock(const sl_items *items) {
    if (__atomic_exchange_n(&items->access->changing, 1, __ATOMIC_ACQUIRE))
        return sl_fail(SL_EBUSY, "another thread is changing or saving the item table; do it after that");
    return SL_OK;
}

void sl_items_unlock(const sl_items *items) {
    __atomic_store_n(&items->access->changing, 0, __ATOMIC_RELEASE);
}

/* ---------------------------------------------------------------------------------------------------------------
 * Making one
 * ------------------------------------------------------------------------------------------------------------- */

/* Adds a block of new rows. Errors also: SL_EEXIST, for an id that an earlier block has. */
static sl_status add_block(sl_items *items, const sl_table *block, size_t first_row) {
    sl_item_change change;
    sl_item_body *body = sl_items_body(items);
    SL_TRY(sl_items_stage(items, block, &change));
    for (size_t row = 0; row < block->rows; row++) {
        uint64_t id = change.part->ids[row];
        if (sl_catalog_find(&body->catalog, id) == SL_NO_REF) continue;
        sl_items_cancel(items, &change);
        return sl_fail_at(sl_fail(SL_EEXIST, "id %llu is there twice; ids must differ", (unsigned long long)id), block,
                          row, items->schema.columns[items->schema.id].name);
    }
    /* Messages of later steps name a row by its number in the source. */
    change.part->table.first_row = first_row;
    sl_items_commit(items, &change);
    return SL_OK;
}

static sl_status read_rows(sl_items *items, const sl_rows *rows, const sl_items_params *params, sl_progress *progress) {
    SL_TRY(rows->rewind(rows->ctx));
    for (size_t first_row = 0;;) {
        sl_table block;
        SL_TRY(sl_rows_next(rows, SL_ITEMS_BLOCK, &block));
        if (!items->schema.columns && !block.column_count)
            return sl_fail(SL_EINVAL, "the source has no rows; an item table has the columns of its first ones");
        if (!items->schema.columns) SL_TRY(sl_item_schema_make(&items->allocator, &block, params->id, &items->schema));
        if (!block.rows) return sl_progress_end(progress);
        SL_TRY(add_block(items, &block, first_row));
        first_row += block.rows;
        sl_progress_step(progress, block.rows);
        if (sl_progress_cancelled(progress)) return sl_progress_end(progress);
    }
}

sl_status sl_items_create(const sl_rows *rows, const sl_items_params *params, sl_items **out) {
    if (!out) return sl_fail(SL_EINVAL, "out is NULL; give the address of a handle");
    *out = NULL;
    sl_items_params mine;
    sl_items_params_init(&mine);
    SL_TRY(sl_params_in(&mine, sizeof mine, params, "sl_items_params_init"));
    SL_TRY(sl_rows_check(rows));
    if (!mine.id) return sl_fail(SL_EINVAL, "the id column's name is NULL; name it, or leave \"id\"");
    sl_items *items;
    SL_TRY(sl_items_new(&mine, &items));
    sl_progress progress;
    sl_progress_start(&progress, mine.progress, mine.progress_ctx, 0);
    sl_status status = read_rows(items, rows, &mine, &progress);
    if (status == SL_OK)
        *out = items;
    else
        sl_items_free(items);
    return status;
}

/* ---------------------------------------------------------------------------------------------------------------
 * Asking it
 * ------------------------------------------------------------------------------------------------------------- */

const char *sl_items_column_name(const sl_items *items, size_t i) {
    return items && i < items->schema.count ? items->schema.columns[i].name : NULL;
}

size_t sl_items_size(const sl_items *items) {
    return items ? __atomic_load_n(&items->size, __ATOMIC_RELAXED) : 0;
}

size_t sl_items_column(const sl_items *items, const char *name) {
    for (size_t c = 0; c < items->schema.count; c++)
        if (strcmp(items->schema.columns[c].name, name) == 0) return c;
    return SIZE_MAX;
}

/* Text written into a buffer that may be too small; length counts all of the text. */
typedef struct writer {
    char *out;
    size_t size, length;
} writer;

static void write_text(writer *w, const char *text, size_t size) {
    size_t room = w->length < w->size ? w->size - w->length : 0;
    if (room) memcpy(w->out + w->length, text, size < room ? size : room);
    w->length += size;
}

static void write_float(writer *w, const sl_column *column, size_t at) {
    char text[SL_NUMBER_TEXT];
    if (column->type == SL_COLUMN_F64) {
        double value = ((const double *)column->values)[at];
        /* NaN is a missing value. */
        if (value == value) write_text(w, text, sl_number_write(value, text));
    } else {
        float value = ((const float *)column->values)[at];
        if (value == value) write_text(w, text, sl_number_write_f32(value, text));
    }
}

static void write_integer(writer *w, int64_t value) {
    char text[SL_NUMBER_TEXT];
    write_text(w, text, sl_integer_write(value, text));
}

static sl_status write_texts(writer *w, const sl_column *column, int64_t from, int64_t to) {
    for (int64_t t = from; t < to; t++) {
        const char *text;
        size_t size;
        SL_TRY(sl_cell_text(column, t, &text, &size));
        if (t > from) write_text(w, "|", 1);
        write_text(w, text, size);
    }
    return SL_OK;
}

static sl_status write_cell(writer *w, const sl_column *column, size_t row) {
    if (!sl_column_has(column, row)) return SL_OK;
    switch (column->type) {
    case SL_COLUMN_I32:
        write_integer(w, ((const int32_t *)column->values)[row]);
        break;
    case SL_COLUMN_I64:
        write_integer(w, ((const int64_t *)column->values)[row]);
        break;
    case SL_COLUMN_TEXT:
        return write_texts(w, column, (int64_t)row, (int64_t)row + 1);
    case SL_COLUMN_TEXTS:
        return write_texts(w, column, column->lists[row], column->lists[row + 1]);
    case SL_COLUMN_VECTOR:
        for (size_t i = 0; i < column->dim; i++) {
            if (i) write_text(w, " ", 1);
            write_float(w, column, row * column->dim + i);
        }
        break;
    default:
        write_float(w, column, row);
    }
    return SL_OK;
}

static sl_status text_of(const sl_item_body *body, uint64_t id, size_t column, writer *w) {
    sl_row_ref ref = sl_catalog_find(&body->catalog, id);
    if (ref == SL_NO_REF) return sl_fail(SL_ENOTFOUND, "id %llu is not in the item table", (unsigned long long)id);
    return write_cell(w, &sl_items_part_of(body, sl_ref_part(ref))->columns[column], sl_ref_row(ref));
}

sl_status sl_items_text(const sl_items *items, uint64_t id, const char *column, char *out, size_t size,
                        size_t *length) {
    if (!items || !column || (size && !out)) return sl_fail(SL_EINVAL, "items, column or out is NULL");
    size_t number = sl_items_column(items, column);
    if (number == SIZE_MAX) return sl_fail_no_item_column(&items->schema, column, "");
    writer w = {out, size ? size - 1 : 0, 0};
    sl_hazard *hazard;
    sl_item_body *body;
    SL_TRY(sl_items_begin(items, &hazard, &body));
    sl_status status = text_of(body, id, number, &w);
    sl_items_end(hazard);
    if (status != SL_OK) return status;
    if (size) out[w.length < w.size ? w.length : w.size] = '\0';
    if (length) *length = w.length;
    return SL_OK;
}
