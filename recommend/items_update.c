#include "ranker/features/table.h"
#include "recommend/items.h"

/* A body is compacted once its waste exceeds both this and the number of items. */
#define OUTDATED_LEAST 4096u

/* ---------------------------------------------------------------------------------------------------------------
 * Staging
 * ------------------------------------------------------------------------------------------------------------- */

/* Reads the ids of a block. refs[row] refers to that row of source 0. */
static sl_status read_ids(const sl_table *rows, const sl_column *column, uint64_t *ids, sl_row_ref *refs) {
    for (size_t row = 0; row < rows->rows; row++) {
        SL_TRY(sl_item_id(rows, column, row, &ids[row]));
        refs[row] = sl_ref_of(0, row);
    }
    return SL_OK;
}

/* Refuses a block that has an id twice. Finds it with a catalog of the block alone. */
static sl_status check_ids(const sl_items *items, const sl_table *rows, const char *column, const uint64_t *ids) {
    sl_catalog seen;
    sl_status status;
    SL_TRY(sl_catalog_init(&seen, &items->allocator));
    SL_TRY_GOTO(sl_catalog_reserve(&seen, ids, rows->rows, 0), done);
    for (size_t row = 0; row < rows->rows; row++)
        if (!sl_catalog_put(&seen, ids[row], row)) {
            status = sl_fail(SL_EEXIST, "id %llu is there twice; ids must differ", (unsigned long long)ids[row]);
            sl_fail_at(status, rows, row, column);
            goto done;
        }
done:
    sl_catalog_free(&seen);
    return status;
}

sl_status sl_items_stage(sl_items *items, const sl_table *rows, sl_item_change *change) {
    const sl_allocator *allocator = &items->allocator;
    const sl_item_schema *schema = &items->schema;
    void *columns = NULL, *ids = NULL, *refs = NULL;
    size_t n = rows->rows;
    sl_item_ids own = {.count = 0};
    sl_items_part *part = NULL;
    sl_status status;
    if (n > SL_MAX_PART_ROWS) return sl_fail(SL_ELIMIT, "%zu rows at once; give up to %u", n, SL_MAX_PART_ROWS);
    SL_TRY_GOTO(sl_mem_alloc(allocator, schema->count * sizeof(sl_column *), &columns), done);
    SL_TRY_GOTO(sl_mem_alloc(allocator, n * sizeof(uint64_t), &ids), done);
    SL_TRY_GOTO(sl_mem_alloc(allocator, n * sizeof(sl_row_ref), &refs), done);
    const sl_column **matched = columns;
    SL_TRY_GOTO(sl_item_schema_match(schema, rows, matched), done);
    const sl_item_column *id = &schema->columns[schema->id];
    SL_TRY_GOTO(read_ids(rows, matched[schema->id], ids, refs), done);
    SL_TRY_GOTO(check_ids(items, rows, id->name, ids), done);
    if (matched[schema->id]->type != id->type) {
        SL_TRY_GOTO(sl_item_ids_make(allocator, id, ids, n, &own), done);
        matched[schema->id] = &own.column;
    }
    const sl_column *const *source = matched;
    SL_TRY_GOTO(sl_items_part_make(allocator, schema, &source, refs, ids, n, &part), done);
    SL_TRY_GOTO(sl_catalog_reserve(&sl_items_body(items)->catalog, ids, n, 1), done);
    change->part = part;
    part = NULL;
done:
    sl_items_part_free(allocator, schema, part);
    sl_item_ids_free(allocator, &own);
    sl_mem_free(allocator, columns, schema->count * sizeof(sl_column *));
    sl_mem_free(allocator, ids, n * sizeof(uint64_t));
    sl_mem_free(allocator, refs, n * sizeof(sl_row_ref));
    return status;
}

void sl_items_cancel(sl_items *items, sl_item_change *change) {
    sl_items_part_free(&items->allocator, &items->schema, change->part);
    change->part = NULL;
}

/* ---------------------------------------------------------------------------------------------------------------
 * Committing
 * ------------------------------------------------------------------------------------------------------------- */

/* Replaces the body by one with the current rows alone, in one part. Rows copied from a mapped file lose its CRCs, so
 * they are verified first. */
static sl_status compact_body(sl_items *items) {
    sl_item_body *body = sl_items_body(items), *fresh;
    sl_items_part *part = NULL;
    sl_status status;
    SL_TRY(sl_item_body_verify(body, NULL));
    SL_TRY(sl_item_body_make(&items->allocator, &fresh));
    SL_TRY_GOTO(sl_item_body_compact(items, body, &part), fail);
    SL_TRY_GOTO(sl_catalog_reserve(&fresh->catalog, part->ids, part->table.rows, 1), fail);
    size_t number = sl_catalog_add(&fresh->catalog, part);
    for (size_t row = 0; row < part->table.rows; row++)
        (void)sl_catalog_put(&fresh->catalog, part->ids[row], sl_ref_of(number, row));
    sl_hazards_replace(&items->access->bodies, &fresh->guarded);
    return SL_OK;
fail:
    sl_items_part_free(&items->allocator, &items->schema, part);
    sl_item_body_free(items, fresh);
    return status;
}

/* Keeps memory in proportion to the number of items, however often they change. A part counts as four rows. */
static void compact_if_outdated(sl_items *items) {
    const sl_item_body *body = sl_items_body(items);
    size_t size = sl_catalog_size(&body->catalog), waste = body->outdated + 4 * sl_catalog_parts(&body->catalog);
    int damaged = __atomic_load_n(&body->soundness, __ATOMIC_RELAXED) == SL_DAMAGED;
    /* Without memory, or with a damaged file, the body stays as it is. That's correct too. */
    if (waste > OUTDATED_LEAST && waste > size && !damaged) (void)compact_body(items);
    (void)sl_hazards_collect(&items->access->bodies);
}

void sl_items_commit(sl_items *items, sl_item_change *change) {
    sl_item_body *body = sl_items_body(items);
    const sl_items_part *part = change->part;
    size_t number = sl_catalog_add(&body->catalog, change->part);
    for (size_t row = 0; row < part->table.rows; row++)
        body->outdated += !sl_catalog_put(&body->catalog, part->ids[row], sl_ref_of(number, row));
    __atomic_store_n(&items->size, sl_catalog_size(&body->catalog), __ATOMIC_RELAXED);
    compact_if_outdated(items);
}

sl_status sl_items_update(sl_items *items, const sl_table *rows) {
    if (!items || !rows) return sl_fail(SL_EINVAL, "items or rows is NULL");
    SL_TRY(sl_table_check(rows));
    SL_TRY(sl_items_lock(items));
    sl_item_change change;
    sl_status status = rows->rows ? sl_items_stage(items, rows, &change) : SL_OK;
    if (status == SL_OK && rows->rows) sl_items_commit(items, &change);
    sl_items_unlock(items);
    return status;
}
