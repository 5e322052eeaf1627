#include "ranker/features/table.h"
#include "recommend/items.h"

#include <inttypes.h>
#include <string.h>

static sl_status check_names(const sl_table *block) {
    for (size_t c = 0; c < block->column_count; c++)
        if (sl_table_find(block, block->columns[c].name) != c)
            return sl_fail(SL_EEXIST, "column '%s' is there twice; names must differ", block->columns[c].name);
    return SL_OK;
}

static sl_status check_id_column(const sl_column *column) {
    if (column->type == SL_COLUMN_I32 || column->type == SL_COLUMN_I64 || column->type == SL_COLUMN_TEXT) return SL_OK;
    return sl_fail(SL_ETYPE, "the id column '%s' is %s; ids are i32, i64 or text", column->name,
                   sl_column_type_name(column->type));
}

static void copy_columns(sl_item_schema *schema, const sl_table *block) {
    char *at = schema->names;
    for (size_t c = 0; c < schema->count; c++) {
        const sl_column *column = &block->columns[c];
        size_t size = strlen(column->name) + 1;
        memcpy(at, column->name, size);
        schema->columns[c] = (sl_item_column){at, column->type, column->type == SL_COLUMN_VECTOR ? column->dim : 0};
        at += size;
    }
}

sl_status sl_item_schema_make(const sl_allocator *allocator, const sl_table *block, const char *id,
                              sl_item_schema *out) {
    void *memory;
    *out = (sl_item_schema){.count = block->column_count};
    if (block->column_count > SL_MAX_COLUMNS)
        return sl_fail(SL_ELIMIT, "%zu columns; an item table has %u at most", block->column_count, SL_MAX_COLUMNS);
    SL_TRY(check_names(block));
    out->id = sl_table_find(block, id);
    if (out->id == SIZE_MAX)
        return sl_fail_no_column(block, id, " of ids: name the one that holds them (--id COLUMN, or id in a program)");
    SL_TRY(check_id_column(&block->columns[out->id]));
    for (size_t c = 0; c < out->count; c++)
        out->names_size += strlen(block->columns[c].name) + 1;
    sl_status status;
    SL_TRY_GOTO(sl_mem_alloc(allocator, out->count * sizeof *out->columns, &memory), fail);
    out->columns = memory;
    SL_TRY_GOTO(sl_mem_alloc(allocator, out->names_size, &memory), fail);
    out->names = memory;
    copy_columns(out, block);
    return SL_OK;
fail:
    sl_item_schema_free(allocator, out);
    return status;
}

void sl_item_schema_free(const sl_allocator *allocator, sl_item_schema *schema) {
    SL_FREE_ARRAY(allocator, schema->columns, schema->count);
    sl_mem_free(allocator, schema->names, schema->names_size);
    *schema = (sl_item_schema){0};
}

sl_status sl_fail_no_item_column(const sl_item_schema *schema, const char *name, const char *remedy) {
    sl_names names = {.used = 0};
    for (size_t c = 0; c < schema->count; c++)
        sl_names_add(&names, schema->columns[c].name);
    return sl_fail(SL_ENOTFOUND, "the item table has no column '%s'%s; its columns are %s",
                   sl_show(name, strlen(name)).text, remedy, sl_names_text(&names));
}

static sl_status match_column(const sl_item_schema *schema, const sl_column *column, const sl_column **out) {
    for (size_t c = 0; c < schema->count; c++) {
        const sl_item_column *mine = &schema->columns[c];
        if (strcmp(mine->name, column->name) != 0) continue;
        if (out[c]) return sl_fail(SL_EEXIST, "column '%s' is there twice; names must differ", mine->name);
        if (c == schema->id)
            SL_TRY(check_id_column(column));
        else if (mine->type != column->type)
            return sl_fail(SL_ETYPE, "column '%s' is %s, in the item table it is %s; convert it", mine->name,
                           sl_column_type_name(column->type), sl_column_type_name(mine->type));
        if (mine->type == SL_COLUMN_VECTOR && mine->dim != column->dim)
            return sl_fail(SL_ETYPE, "vectors of column '%s' have %zu elements, in the item table %zu", mine->name,
                           column->dim, mine->dim);
        out[c] = column;
        return SL_OK;
    }
    return sl_fail_no_item_column(schema, column->name, "; leave it out, or make the table anew with it");
}

sl_status sl_item_schema_match(const sl_item_schema *schema, const sl_table *block, const sl_column **out) {
    memset(out, 0, schema->count * sizeof *out);
    for (size_t c = 0; c < block->column_count; c++)
        SL_TRY(match_column(schema, &block->columns[c], out));
    if (out[schema->id]) return SL_OK;
    return sl_fail_no_column(block, schema->columns[schema->id].name, " of ids");
}

static sl_status read_id(const sl_column *column, size_t row, uint64_t *out) {
    sl_key key;
    SL_TRY(sl_cell_key(column, row, &key));
    if (key.kind == SL_KEY_MISSING) return sl_fail(SL_EVALUE, "the id is missing");
    if (key.kind == SL_KEY_INTEGER) {
        if (key.integer < 0) return sl_fail(SL_EVALUE, "id %" PRId64 " is negative; ids are from 0", key.integer);
        *out = (uint64_t)key.integer;
    } else if (!sl_digits_read(key.text, key.size, out)) {
        return sl_fail(SL_EVALUE, "id '%s' is no number from 0 below 2^64 - 1", sl_show(key.text, key.size).text);
    }
    if (*out == SL_NO_ID) return sl_fail(SL_EVALUE, "id 2^64 - 1 is reserved; choose another");
    return SL_OK;
}

sl_status sl_item_id(const sl_table *block, const sl_column *column, size_t row, uint64_t *out) {
    sl_status status = read_id(column, row, out);
    return status == SL_OK ? SL_OK : sl_fail_at(status, block, row, column->name);
}

size_t sl_items_column(const sl_items *items, const char *name) {
    for (size_t c = 0; c < items->schema.count; c++)
        if (strcmp(items->schema.columns[c].name, name) == 0) return c;
    return SIZE_MAX;
}
