/* sl_items_create: a table of a source's rows. */
#include "base/params.h"
#include "ranker/features/table.h"
#include "recommend/items.h"

void sl_items_params_init_sized(sl_items_params *params, size_t struct_size) {
    const sl_items_params mine = {.struct_size = sizeof mine, .id = "id"};
    sl_params_defaults(params, struct_size, &mine, sizeof mine);
}

/* Adds a block of new rows. Errors: also SL_EEXIST, for an id of an earlier block. */
static sl_status add_block(sl_items *items, const sl_table *block, size_t first_row) {
    sl_item_change change;
    sl_item_body *body = sl_items_body(items);
    SL_TRY(sl_items_stage(items, block, 0, &change));
    for (size_t row = 0; row < block->rows; row++) {
        uint64_t id = change.part->ids[row];
        if (!sl_ref_is_row(sl_catalog_find(&body->catalog, id))) continue;
        sl_items_cancel(items, &change);
        return sl_fail_at(sl_fail(SL_EEXIST, "id %llu is there twice; ids must differ", (unsigned long long)id), block,
                          row, items->schema.columns[items->schema.id].name);
    }
    /* Later messages name a row by its number in the source. */
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
