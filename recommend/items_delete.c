/* sl_items_delete: ids lose their rows, and get tombstones. */
#include "recommend/items.h"

static sl_status refuse_repeated(const uint64_t *ids, size_t at) {
    size_t first = 0;
    while (ids[first] != ids[at])
        first++;
    return sl_fail(SL_ENOTFOUND, "id %llu is given twice, as number %zu and %zu; give each once",
                   (unsigned long long)ids[at], first, at);
}

static int has_row(const sl_catalog *catalog, uint64_t id) {
    return sl_ref_is_row(sl_catalog_find(catalog, id));
}

sl_status sl_items_check_deletion(const sl_items *items, const sl_catalog *served, const uint64_t *ids, size_t n) {
    const sl_catalog *catalog = &sl_items_body(items)->catalog;
    size_t repeated;
    for (size_t i = 0; i < n; i++)
        if (!has_row(catalog, ids[i]) && !(served && has_row(served, ids[i])))
            return sl_fail(SL_ENOTFOUND,
                           "number %zu: id %llu is not in the item table, or was deleted before; nothing was deleted: "
                           "leave it out",
                           i, (unsigned long long)ids[i]);
    SL_TRY(sl_ids_find_repeated(&items->allocator, ids, n, &repeated));
    return repeated == n ? SL_OK : refuse_repeated(ids, repeated);
}

void sl_items_commit_deletion(sl_items *items, const uint64_t *ids, size_t n) {
    sl_item_body *body = sl_items_body(items);
    for (size_t i = 0; i < n; i++)
        if (has_row(&body->catalog, ids[i])) body->outdated += (size_t)sl_catalog_delete(&body->catalog, ids[i]);
    __atomic_store_n(&items->size, sl_catalog_size(&body->catalog), __ATOMIC_RELAXED);
    sl_items_compact_if_outdated(items);
}

sl_status sl_items_delete(sl_items *items, const uint64_t *ids, size_t n) {
    if (!items || (n && !ids)) return sl_fail(SL_EINVAL, "items or ids is NULL");
    SL_TRY(sl_items_lock(items));
    sl_status status = sl_items_check_deletion(items, NULL, ids, n);
    if (status == SL_OK && n) sl_items_commit_deletion(items, ids, n);
    sl_items_unlock(items);
    return status;
}
