/* Creates and frees an item table and its bodies, and decides when threads may read them. */
#include "recommend/items.h"

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
    SL_FREE(&items->allocator, body);
}

/* A sl_guarded_free_fn; `items` is the table. */
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
    sl_gate_init(&items->access->changes);
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
    if (items->access) {
        sl_hazards_free(&items->access->bodies);
        sl_gate_free(&items->access->changes);
    }
    sl_item_schema_free(&items->allocator, &items->schema);
    sl_allocator allocator = items->allocator;
    sl_origin_free(items->origin, &allocator);
    SL_FREE(&allocator, items->access);
    SL_FREE(&allocator, items);
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
    return sl_gate_enter(&items->access->changes);
}

void sl_items_unlock(const sl_items *items) {
    sl_gate_leave(&items->access->changes);
}

size_t sl_items_size(const sl_items *items) {
    return items ? __atomic_load_n(&items->size, __ATOMIC_RELAXED) : 0;
}
