#include "recommend/fresh_rows.h"

static sl_status make(sl_fresh_rows *fresh, const sl_prepared *prepared, size_t room) {
    const sl_allocator *allocator = &prepared->allocator;
    sl_status status = SL_OK;
    if (fresh->preparer) return SL_OK;
    fresh->about = (sl_prepared){.allocator = *allocator,
                                 .ranker = prepared->ranker,
                                 .index = prepared->index,
                                 .shape = prepared->shape,
                                 .group = SIZE_MAX};
    fresh->room = room;
    fresh->ids = sl_mem_array(allocator, room, sizeof *fresh->ids, &status);
    fresh->refs = sl_mem_array(allocator, room, sizeof *fresh->refs, &status);
    fresh->numbers = sl_mem_array(allocator, room, sizeof *fresh->numbers, &status);
    if (status == SL_OK) status = sl_prepared_part_new(&fresh->about, room, &fresh->part);
    if (status == SL_OK) status = sl_preparer_create(&fresh->about, &fresh->preparer);
    if (status != SL_OK) sl_fresh_rows_free(fresh);
    return status;
}

void sl_fresh_rows_free(sl_fresh_rows *fresh) {
    const sl_allocator allocator = fresh->about.allocator;
    if (!fresh->room) return;
    sl_preparer_free(fresh->preparer);
    sl_prepared_part_free(&fresh->about, fresh->part);
    SL_FREE_ARRAY(&allocator, fresh->ids, fresh->room);
    SL_FREE_ARRAY(&allocator, fresh->refs, fresh->room);
    SL_FREE_ARRAY(&allocator, fresh->numbers, fresh->room);
    *fresh = (sl_fresh_rows){.room = 0};
}

/* The birth of the vector that a candidate's row was made of. */
static uint64_t birth_of_row(const sl_prepared *prepared, const sl_candidate *candidate) {
    if (candidate->part == prepared->missing) return 0;
    return candidate->part->births ? candidate->part->births[candidate->row] : 1;
}

/* Returns whether a candidate's vector is another one than its row was made of. */
static int is_other(const sl_prepared *prepared, const sl_vector_births *now, size_t i) {
    return !now->candidates[i].deleted && birth_of_row(prepared, &now->candidates[i]) != now->births[i];
}

/* Lists the candidates whose vectors are others now. Their rows in the table come from the body; NULL: there is no
 * table. */
static void list_others(sl_fresh_rows *fresh, const sl_prepared *prepared, const sl_item_body *body,
                        const sl_vector_births *now) {
    fresh->n = 0;
    for (size_t i = 0; i < now->n; i++) {
        if (!is_other(prepared, now, i)) continue;
        const sl_row_ref ref = body ? sl_catalog_find(&body->catalog, now->ids[i]) : SL_NO_REF;
        if (body && !sl_ref_is_row(ref)) continue;
        fresh->ids[fresh->n] = now->ids[i];
        fresh->refs[fresh->n] = ref;
        fresh->numbers[fresh->n++] = i;
    }
}

/* Prepares the listed rows, and gives them to their candidates. */
static sl_status prepare_listed(sl_fresh_rows *fresh, const sl_item_body *body, const sl_vector_births *now) {
    const sl_source_rows rows = {.body = body, .refs = body ? fresh->refs : NULL, .ids = fresh->ids, .n = fresh->n};
    SL_TRY(sl_preparer_fill(fresh->preparer, &rows, fresh->part));
    for (size_t i = 0; i < fresh->n; i++) {
        sl_candidate *candidate = &now->candidates[fresh->numbers[i]];
        candidate->part = fresh->part;
        candidate->row = (uint32_t)i;
        candidate->missing = 0;
    }
    return SL_OK;
}

static int any_other(const sl_prepared *prepared, const sl_vector_births *now) {
    for (size_t i = 0; i < now->n; i++)
        if (is_other(prepared, now, i)) return 1;
    return 0;
}

sl_status sl_fresh_rows_replace(sl_fresh_rows *fresh, const sl_pair *pair, const sl_vector_births *now, size_t room) {
    sl_hazard *hazard = NULL;
    sl_item_body *body = NULL;
    if (!pair->prepared->vectors || !any_other(pair->prepared, now)) return SL_OK;
    SL_TRY(make(fresh, pair->prepared, room));
    if (pair->items) SL_TRY(sl_items_begin(pair->items, &hazard, &body));
    fresh->about.group = pair->prepared->group;
    list_others(fresh, pair->prepared, body, now);
    sl_status status = fresh->n ? prepare_listed(fresh, body, now) : SL_OK;
    if (hazard) sl_items_end(hazard);
    return status;
}
