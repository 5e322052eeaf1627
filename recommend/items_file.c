#include "recommend/items_file.h"

#include "base/params.h"
#include "recommend/items.h"

#include <string.h>

#define MAKE_AGAIN "make it or copy it again"

/* ---------------------------------------------------------------------------------------------------------------
 * Saving
 * ------------------------------------------------------------------------------------------------------------- */

static uint64_t place_of(const void *at, const void *base) {
    return at ? (uint64_t)((const uint8_t *)at - (const uint8_t *)base) : SL_NOWHERE;
}

static sl_directory_column describe_column(const sl_item_schema *schema, const sl_items_part *part, size_t c) {
    const sl_column *column = &part->columns[c];
    int text = column->offsets != NULL;
    uint64_t texts = !text ? 0 : column->lists ? (uint64_t)column->lists[part->table.rows] : part->table.rows;
    return (sl_directory_column){.type = (uint32_t)column->type,
                                 .dim = (uint32_t)column->dim,
                                 .values = text ? SL_NOWHERE : place_of(column->values, part->data),
                                 .offsets = place_of(column->offsets, part->data),
                                 .lists = place_of(column->lists, part->data),
                                 .valid = place_of(column->valid, part->data),
                                 .text = text ? place_of(column->values, part->text) : SL_NOWHERE,
                                 .texts = texts,
                                 .text_bytes = text ? (uint64_t)column->offsets[texts] : 0,
                                 .name = place_of(schema->columns[c].name, schema->names)};
}

/* The rows and deleted ids that a save writes. */
typedef struct content {
    const sl_items_part *part;
    sl_items_part *compacted; /* NULL: the part is the body's */
    sl_deleted_ids deleted;
} content;

/* Bytes of the directory up to the end of the names, and where deleted ids begin. */
static size_t names_end(size_t columns, size_t names_size) {
    return sizeof(sl_directory_head) + columns * sizeof(sl_directory_column) + names_size;
}
static size_t deleted_begin(size_t end) {
    return sl_round_up(end, sizeof(uint64_t));
}

static sl_status make_directory(const sl_items *items, const content *saved, void **out, size_t *size) {
    const sl_item_schema *schema = &items->schema;
    const sl_deleted_ids *deleted = &saved->deleted;
    const size_t end = names_end(schema->count, schema->names_size), ids_size = deleted->n * sizeof *deleted->ids;
    const uint64_t count = deleted->n;
    *size = count ? deleted_begin(end) + ids_size + sizeof count : end;
    SL_TRY(sl_mem_alloc(&items->allocator, *size, out));
    uint8_t *at = *out;
    const sl_directory_head head = {saved->part->table.rows, (uint32_t)schema->count, (uint32_t)schema->id};
    memcpy(at, &head, sizeof head);
    for (size_t c = 0; c < schema->count; c++) {
        const sl_directory_column column = describe_column(schema, saved->part, c);
        memcpy(at + sizeof head + c * sizeof column, &column, sizeof column);
    }
    memcpy(at + end - schema->names_size, schema->names, schema->names_size);
    if (!count) return SL_OK;
    memcpy(at + deleted_begin(end), deleted->ids, ids_size);
    memcpy(at + deleted_begin(end) + ids_size, &count, sizeof count);
    return SL_OK;
}

/* Saves a part. If it lies in a mapped file, each save verifies its values before they get new CRCs. The system may
 * have read a page again since the last save, with other content. */
static sl_status save_part(const sl_items *items, sl_item_body *body, const content *saved, const char *path,
                           const sl_save_params *params) {
    const sl_items_part *part = saved->part;
    void *directory;
    size_t size;
    SL_TRY(make_directory(items, saved, &directory, &size));
    const sl_section_source sections[] = {
        {.kind = SL_SECTION_DIRECTORY, .flags = SL_SECTION_REQUIRED, .data = directory, .size = size},
        {.kind = SL_SECTION_ITEM_IDS,
         .flags = SL_SECTION_REQUIRED,
         .data = part->ids,
         .size = part->table.rows * sizeof *part->ids},
        {.kind = SL_SECTION_COLUMNS, .flags = SL_SECTION_REQUIRED, .data = part->data, .size = part->data_size},
        {.kind = SL_SECTION_TEXT, .flags = SL_SECTION_REQUIRED, .data = part->text, .size = part->text_size},
    };
    const size_t count = sizeof sections / sizeof *sections;
    sl_progress progress;
    sl_progress_start(&progress, params->progress, params->progress_ctx,
                      sl_item_body_unverified(body) + sl_store_file_size(sections, count));
    sl_status status = sl_item_body_verify(body, &progress);
    if (status == SL_OK)
        status = sl_store_save(path, &(sl_file_content){&sl_items_file, NULL, sections, count}, params->file_ops,
                               items->origin, &progress);
    sl_mem_free(&items->allocator, directory, size);
    return status;
}

/* Gets all current rows as one part: the body's only part, or a compacted one; and the deleted ids. The lock keeps
 * changes off, so the body has all changes that have returned. The rows of a part never change, so changes need not
 * wait while they are written. */
static sl_status take_content(const sl_items *items, sl_hazard **hazard, sl_item_body **body, content *out) {
    SL_TRY(sl_items_lock(items));
    sl_status status = sl_items_begin(items, hazard, body);
    if (status == SL_OK) status = sl_catalog_deleted(&(*body)->catalog, &out->deleted);
    if (status == SL_OK && sl_catalog_parts(&(*body)->catalog) == 1 && (*body)->outdated == 0)
        out->part = sl_items_part_of(*body, 0);
    else if (status == SL_OK)
        status = sl_item_body_compact(items, *body, &out->compacted);
    sl_items_unlock(items);
    if (out->compacted) out->part = out->compacted;
    return status;
}

sl_status sl_items_save(const sl_items *items, const char *path, const sl_save_params *params) {
    if (!items || !path) return sl_fail(SL_EINVAL, "items or path is NULL");
    sl_save_params mine;
    sl_save_params_init(&mine);
    SL_TRY(sl_params_in(&mine, sizeof mine, params, "sl_save_params_init"));
    sl_hazard *hazard = NULL;
    sl_item_body *body = NULL;
    content saved = {.part = NULL};
    sl_status status = take_content(items, &hazard, &body, &saved);
    if (status == SL_OK) status = save_part(items, body, &saved, path, &mine);
    if (hazard) sl_items_end(hazard);
    sl_items_part_free(&items->allocator, &items->schema, saved.compacted);
    sl_deleted_ids_free(&items->allocator, &saved.deleted);
    return status;
}

/* ---------------------------------------------------------------------------------------------------------------
 * Opening
 * ------------------------------------------------------------------------------------------------------------- */

/* The sections of the file. Nothing in them is trusted. */
typedef struct reader {
    const char *path;
    const uint8_t *directory, *data, *text;
    uint64_t directory_size, data_size, text_size;
    const sl_file_section *ids;
    sl_directory_head head;
    const uint8_t *names;
    size_t names_size;
} reader;

static sl_status fail_broken(const reader *r, const char *what) {
    return sl_fail(SL_ECORRUPT, "%s: %s; " MAKE_AGAIN, r->path, what);
}

static sl_status find_section(const sl_store *store, uint32_t kind, const void **data, uint64_t *size) {
    const sl_file_section *section = sl_store_section(store, kind);
    if (!section)
        return sl_fail(SL_ECORRUPT, "%s: section %u (%s) is missing; " MAKE_AGAIN, store->path, kind,
                       sl_section_name(kind));
    *data = sl_store_data(store, section);
    *size = section->size;
    return SL_OK;
}

static sl_status read_sections(const sl_store *store, reader *r) {
    const void *at = NULL;
    r->path = store->path;
    SL_TRY(find_section(store, SL_SECTION_DIRECTORY, &at, &r->directory_size));
    r->directory = at;
    uint64_t ids_size = 0;
    SL_TRY(find_section(store, SL_SECTION_ITEM_IDS, &at, &ids_size));
    r->ids = sl_store_section(store, SL_SECTION_ITEM_IDS);
    SL_TRY(find_section(store, SL_SECTION_COLUMNS, &at, &r->data_size));
    r->data = at;
    SL_TRY(find_section(store, SL_SECTION_TEXT, &at, &r->text_size));
    r->text = at;
    return sl_store_verify(store, sl_store_section(store, SL_SECTION_DIRECTORY), NULL);
}

static sl_status read_head(reader *r) {
    if (r->directory_size < sizeof r->head) return fail_broken(r, "the directory is too short");
    memcpy(&r->head, r->directory, sizeof r->head);
    uint64_t left = r->directory_size - sizeof r->head;
    if (r->head.columns > SL_MAX_COLUMNS || r->head.columns > left / sizeof(sl_directory_column) ||
        r->head.id_column >= r->head.columns)
        return fail_broken(r, "the directory does not have the columns it says");
    if (r->head.rows > SL_MAX_PART_ROWS || r->ids->size != r->head.rows * sizeof(uint64_t))
        return fail_broken(r, "there are not as many ids as rows");
    size_t columns_size = r->head.columns * sizeof(sl_directory_column);
    r->names = r->directory + sizeof r->head + columns_size;
    r->names_size = (size_t)left - columns_size;
    if (!r->names_size || r->names[r->names_size - 1]) return fail_broken(r, "the names of the columns do not end");
    return SL_OK;
}

static sl_directory_column directory_column(const reader *r, size_t c) {
    sl_directory_column column;
    memcpy(&column, r->directory + sizeof r->head + c * sizeof column, sizeof column);
    return column;
}

/* An array of `count` elements at offset `at` of COLUMNS; NULL if it doesn't lie inside. */
static const void *array_at(const reader *r, uint64_t at, uint64_t count, uint64_t element) {
    uint64_t bytes, end;
    if (__builtin_mul_overflow(count, element, &bytes) || __builtin_add_overflow(at, bytes, &end)) return NULL;
    return end <= r->data_size && at % sizeof(uint64_t) == 0 ? r->data + at : NULL;
}

/* Returns whether count + 1 numbers rise from 0 to `last`. */
static int rises(const int64_t *numbers, uint64_t count, uint64_t last) {
    if (numbers[0] != 0 || numbers[count] < 0 || (uint64_t)numbers[count] != last) return 0;
    for (uint64_t i = 0; i < count; i++)
        if (numbers[i + 1] < numbers[i]) return 0;
    return 1;
}

static sl_status open_texts(const reader *r, const sl_directory_column *from, sl_column *out) {
    uint64_t rows = r->head.rows, end;
    if (from->texts > INT64_MAX || (out->type == SL_COLUMN_TEXT && from->texts != rows))
        return fail_broken(r, "a text column has not as many texts as rows");
    out->offsets = array_at(r, from->offsets, from->texts + 1, sizeof(int64_t));
    if (!out->offsets || !rises(out->offsets, from->texts, from->text_bytes))
        return fail_broken(r, "a text column's offsets are damaged");
    if (__builtin_add_overflow(from->text, from->text_bytes, &end) || end > r->text_size)
        return fail_broken(r, "a text column's bytes lie outside the file");
    out->values = r->text + from->text;
    if (out->type == SL_COLUMN_TEXT) return SL_OK;
    out->lists = array_at(r, from->lists, rows + 1, sizeof(int64_t));
    return out->lists && rises(out->lists, rows, from->texts) ? SL_OK
                                                              : fail_broken(r, "a text column's lists are damaged");
}

static sl_status open_column(const reader *r, const sl_directory_column *from, sl_column *out) {
    static const uint64_t elements[] = {4, 8, 4, 8};
    uint64_t rows = r->head.rows;
    out->valid = array_at(r, from->valid, (rows + 7) / 8, 1);
    if (!out->valid) return fail_broken(r, "a column's bits lie outside the file");
    if (out->type == SL_COLUMN_TEXT || out->type == SL_COLUMN_TEXTS) return open_texts(r, from, out);
    uint64_t element = out->type == SL_COLUMN_VECTOR ? (uint64_t)out->dim * sizeof(float) : elements[out->type];
    out->values = array_at(r, from->values, rows, element);
    return out->values ? SL_OK : fail_broken(r, "a column's values lie outside the file");
}

/* Makes the schema from an empty block with the file's names and types, so that the usual checks apply. */
static sl_status open_schema(const reader *r, sl_items *items) {
    void *block;
    size_t size = r->head.columns * sizeof(sl_column);
    SL_TRY(sl_mem_alloc(&items->allocator, size, &block));
    sl_column *columns = block;
    sl_status status = SL_OK;
    for (size_t c = 0; c < r->head.columns && status == SL_OK; c++) {
        sl_directory_column from = directory_column(r, c);
        int vector = from.type == SL_COLUMN_VECTOR;
        if (from.type > SL_COLUMN_VECTOR || from.name >= r->names_size ||
            (vector && (from.dim == 0 || from.dim > SL_MAX_DIM)))
            status = fail_broken(r, "a column is of no known type or has no name");
        else
            columns[c] = (sl_column){
                .name = (const char *)r->names + from.name, .type = (sl_column_type)from.type, .dim = from.dim};
    }
    const sl_table table = {.struct_size = sizeof table, .column_count = r->head.columns, .columns = columns};
    if (status == SL_OK) {
        status = sl_item_schema_make(&items->allocator, &table, columns[r->head.id_column].name, &items->schema);
        if (status != SL_OK && status != SL_ENOMEM) status = sl_fail_in(SL_ECORRUPT, "%s", r->path);
    }
    sl_mem_free(&items->allocator, block, size);
    return status;
}

static sl_status open_part(const reader *r, sl_items *items) {
    sl_items_part *part;
    sl_item_body *body = sl_items_body(items);
    void *ids;
    SL_TRY(sl_items_part_new(&items->allocator, &items->schema, (size_t)r->head.rows, &part));
    part->data = r->data;
    part->text = r->text;
    part->data_size = (size_t)r->data_size;
    part->text_size = (size_t)r->text_size;
    sl_status status;
    SL_TRY_GOTO(sl_mem_alloc(&items->allocator, (size_t)r->ids->size, &ids), fail);
    part->ids = ids;
    SL_TRY_GOTO(sl_store_copy(body->store, r->ids, ids, NULL), fail);
    for (size_t c = 0; c < r->head.columns; c++) {
        sl_directory_column from = directory_column(r, c);
        SL_TRY_GOTO(open_column(r, &from, &part->columns[c]), fail);
    }
    SL_TRY_GOTO(sl_catalog_reserve(&body->catalog, part->ids, part->table.rows, 1), fail);
    size_t number = sl_catalog_add(&body->catalog, part);
    for (size_t row = 0; row < part->table.rows; row++)
        if (part->ids[row] == SL_NO_ID || !sl_catalog_put(&body->catalog, part->ids[row], sl_ref_of(number, row)))
            return fail_broken(r, "an id is there twice, or is none");
    items->size = part->table.rows;
    return SL_OK;
fail:
    sl_items_part_free(&items->allocator, &items->schema, part);
    return status;
}

/* Finds where the last name ends. Opening the schema has checked that names end inside the directory. */
static size_t names_end_of(const reader *r) {
    size_t end = 0;
    for (size_t c = 0; c < r->head.columns; c++) {
        const size_t name = (size_t)directory_column(r, c).name,
                     after = name + strlen((const char *)r->names + name) + 1;
        if (after > end) end = after;
    }
    return names_end(r->head.columns, end);
}

/* Finds the deleted ids behind the names, at *ids, which may be unaligned. */
static sl_status find_deleted(const reader *r, const uint8_t **ids, uint64_t *count) {
    const size_t begin = deleted_begin(names_end_of(r));
    *count = 0;
    if (r->directory_size <= begin) return SL_OK;
    if (r->directory_size < begin + sizeof *count) return fail_broken(r, "the list of deleted ids is cut short");
    const uint64_t size = r->directory_size - begin - sizeof *count;
    memcpy(count, r->directory + begin + size, sizeof *count);
    if (size % sizeof(uint64_t) || *count != size / sizeof(uint64_t))
        return fail_broken(r, "there are not as many deleted ids as the directory says");
    *ids = r->directory + begin;
    return SL_OK;
}

static sl_status open_deleted(const reader *r, sl_items *items) {
    sl_catalog *catalog = &sl_items_body(items)->catalog;
    const uint8_t *from = NULL;
    uint64_t count;
    void *block;
    SL_TRY(find_deleted(r, &from, &count));
    if (!count) return SL_OK;
    const size_t n = (size_t)count;
    SL_TRY(sl_mem_alloc(&items->allocator, n * sizeof(uint64_t), &block));
    uint64_t *ids = block;
    memcpy(ids, from, n * sizeof *ids);
    sl_status status = sl_catalog_reserve(catalog, ids, n, 0);
    for (size_t i = 0; i < n && status == SL_OK; i++) {
        if (ids[i] == SL_NO_ID || sl_catalog_find(catalog, ids[i]) != SL_NO_REF)
            status = fail_broken(r, "a deleted id is there twice or has a row, or is none");
        else
            (void)sl_catalog_delete(catalog, ids[i]);
    }
    if (n > catalog->most) catalog->most = n;
    SL_FREE_ARRAY(&items->allocator, ids, n);
    return status;
}

static sl_status open_store(sl_items *items, sl_store *store, sl_progress *progress) {
    reader r = {0};
    SL_TRY(read_sections(store, &r));
    SL_TRY(read_head(&r));
    SL_TRY(open_schema(&r, items));
    SL_TRY(open_part(&r, items));
    SL_TRY(open_deleted(&r, items));
    sl_progress_step(progress, r.head.rows);
    return sl_progress_end(progress);
}

static sl_status take_origin(sl_items *items, const sl_store *store, int exclusive) {
    SL_TRY(sl_origin_make(store, &items->allocator, &items->origin));
    return exclusive ? sl_origin_claim(items->origin, store) : SL_OK;
}

static sl_status open_once(const char *path, const sl_items_params *params, sl_items **out) {
    sl_items *items;
    SL_TRY(sl_items_new(params, &items));
    sl_progress progress;
    sl_progress_start(&progress, params->progress, params->progress_ctx, 0);
    sl_store **store = &sl_items_body(items)->store;
    sl_status status = sl_store_open(path, &sl_items_file, SL_PLACE_MAP, &items->allocator, store);
    if (status == SL_OK) status = take_origin(items, *store, params->exclusive);
    if (status == SL_OK) status = open_store(items, *store, &progress);
    if (status == SL_OK)
        *out = items;
    else
        sl_items_free(items);
    return status;
}

sl_status sl_items_open(const char *path, const sl_items_params *params, sl_items **out) {
    if (!out) return sl_fail(SL_EINVAL, "out is NULL; give the address of a handle");
    *out = NULL;
    if (!path) return sl_fail(SL_EINVAL, "path is NULL");
    sl_items_params mine;
    sl_items_params_init(&mine);
    SL_TRY(sl_params_in(&mine, sizeof mine, params, "sl_items_params_init"));
    if (!(mine.wait_s >= 0)) return sl_fail(SL_EINVAL, "wait_s is %g; give 0 or more seconds", mine.wait_s);
    sl_waiting waiting = sl_waiting_for(mine.wait_s, mine.progress, mine.progress_ctx);
    sl_status status;
    do
        status = open_once(path, &mine, out);
    while (status == SL_EBUSY && sl_wait_more(&waiting, &status));
    return status;
}
