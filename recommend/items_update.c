#include "ranker/features/table.h"
#include "recommend/items.h"

/* A body is compacted once its waste exceeds both this and the number of items. */
#define OUTDATED_LEAST 4096u

/* ---------------------------------------------------------------------------------------------------------------
 * Staging
 * ------------------------------------------------------------------------------------------------------------- */

static sl_status read_ids(const sl_table *rows, const sl_column *column, uint64_t *ids) {
    for (size_t row = 0; row < rows->rows; row++)
        SL_TRY(sl_item_id(rows, column, row, &ids[row]));
    return SL_OK;
}

/* Refuses a block that has an id twice. */
static sl_status check_ids(const sl_items *items, const sl_table *rows, const char *column, const uint64_t *ids) {
    size_t row;
    SL_TRY(sl_ids_find_repeated(&items->allocator, ids, rows->rows, &row));
    if (row == rows->rows) return SL_OK;
    sl_status status = sl_fail(SL_EEXIST, "id %llu is there twice; ids must differ", (unsigned long long)ids[row]);
    return sl_fail_at(status, rows, row, column);
}

/* A block's rows, on their way into a part. */
typedef struct staging {
    const sl_column **columns; /* the block's column for each column of the schema, or NULL */
    uint64_t *ids;
    sl_row_ref *rows; /* of a partial update: the rows whose other columns are kept; else NULL */
    sl_item_ids own;  /* the ids in the table's type */
} staging;

static void staging_free(const sl_items *items, staging *s, size_t n) {
    SL_FREE_ARRAY(&items->allocator, s->columns, items->schema.count);
    SL_FREE_ARRAY(&items->allocator, s->ids, n);
    SL_FREE_ARRAY(&items->allocator, s->rows, n);
    sl_item_ids_free(&items->allocator, &s->own);
}

/* Finds the rows whose other columns a partial update keeps. */
static sl_status find_rows(const sl_items *items, const sl_table *rows, const char *column, staging *s) {
    void *block;
    SL_TRY(sl_mem_alloc(&items->allocator, rows->rows * sizeof *s->rows, &block));
    s->rows = block;
    for (size_t row = 0; row < rows->rows; row++) {
        s->rows[row] = sl_catalog_find(&sl_items_body(items)->catalog, s->ids[row]);
        if (sl_ref_is_row(s->rows[row])) continue;
        sl_status status = sl_fail(SL_ENOTFOUND, "id %llu is not in the item table; add it by an update of whole rows",
                                   (unsigned long long)s->ids[row]);
        return sl_fail_at(status, rows, row, column);
    }
    return SL_OK;
}

/* Reads and checks the block's columns and ids. */
static sl_status read_block(const sl_items *items, const sl_table *rows, int partial, staging *s) {
    const sl_item_schema *schema = &items->schema;
    const sl_item_column *id = &schema->columns[schema->id];
    const size_t n = rows->rows;
    sl_status status = SL_OK;
    s->columns = sl_mem_array(&items->allocator, schema->count, sizeof *s->columns, &status);
    s->ids = sl_mem_array(&items->allocator, n, sizeof *s->ids, &status);
    SL_TRY(status);
    SL_TRY(sl_item_schema_match(schema, rows, s->columns));
    SL_TRY(read_ids(rows, s->columns[schema->id], s->ids));
    SL_TRY(check_ids(items, rows, id->name, s->ids));
    if (partial) {
        /* The row keeps its id as it is written there. */
        s->columns[schema->id] = NULL;
        return find_rows(items, rows, id->name, s);
    }
    if (s->columns[schema->id]->type == id->type) return SL_OK;
    SL_TRY(sl_item_ids_make(&items->allocator, id, s->ids, n, &s->own));
    s->columns[schema->id] = &s->own.column;
    return SL_OK;
}

sl_status sl_items_stage(sl_items *items, const sl_table *rows, int partial, sl_item_change *change) {
    const size_t n = rows->rows;
    sl_item_body *body = sl_items_body(items);
    staging s = {.columns = NULL};
    sl_items_part *part = NULL;
    sl_status status;
    if (n > SL_MAX_PART_ROWS) return sl_fail(SL_ELIMIT, "%zu rows at once; give up to %u", n, SL_MAX_PART_ROWS);
    SL_TRY_GOTO(read_block(items, rows, partial, &s), done);
    const sl_part_rows from = {.set = s.columns, .body = partial ? body : NULL, .rows = s.rows, .ids = s.ids, .n = n};
    SL_TRY_GOTO(sl_items_part_make(&items->allocator, &items->schema, &from, &part), done);
    SL_TRY_GOTO(sl_catalog_reserve(&body->catalog, s.ids, n, 1), done);
    change->part = part;
    part = NULL;
done:
    sl_items_part_free(&items->allocator, &items->schema, part);
    staging_free(items, &s, n);
    return status;
}

void sl_items_cancel(sl_items *items, sl_item_change *change) {
    sl_items_part_free(&items->allocator, &items->schema, change->part);
    change->part = NULL;
}

/* ---------------------------------------------------------------------------------------------------------------
 * Committing
 * ------------------------------------------------------------------------------------------------------------- */

/* Replaces the body by one with the current rows alone, in one part, and with the tombstones. Rows copied from a mapped
 * file lose its CRCs, so they are verified first. */
static sl_status compact_body(sl_items *items) {
    sl_item_body *body = sl_items_body(items), *fresh;
    sl_items_part *part = NULL;
    sl_status status;
    SL_TRY(sl_item_body_verify(body, NULL));
    SL_TRY(sl_item_body_make(&items->allocator, &fresh));
    SL_TRY_GOTO(sl_item_body_compact(items, body, &part), fail);
    SL_TRY_GOTO(sl_catalog_copy_tombstones(&fresh->catalog, &body->catalog), fail);
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
void sl_items_compact_if_outdated(sl_items *items) {
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
    sl_items_compact_if_outdated(items);
}

static sl_status change_rows(sl_items *items, const sl_table *rows, int partial) {
    if (!items || !rows) return sl_fail(SL_EINVAL, "items or rows is NULL");
    SL_TRY(sl_table_check(rows));
    SL_TRY(sl_items_lock(items));
    sl_item_change change;
    sl_status status = rows->rows ? sl_items_stage(items, rows, partial, &change) : SL_OK;
    if (status == SL_OK && rows->rows) sl_items_commit(items, &change);
    sl_items_unlock(items);
    return status;
}

sl_status sl_items_update(sl_items *items, const sl_table *rows) {
    return change_rows(items, rows, 0);
}

sl_status sl_items_set(sl_items *items, const sl_table *rows) {
    return change_rows(items, rows, 1);
}
