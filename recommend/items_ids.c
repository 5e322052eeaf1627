#include "ranker/features/number.h"
#include "ranker/features/table.h"
#include "recommend/items.h"

#include <inttypes.h>

static void fill_texts(const uint64_t *ids, size_t n, char *values, int64_t *offsets) {
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        offsets[i] = (int64_t)at;
        at += sl_digits_write(ids[i], values + at);
    }
    offsets[n] = (int64_t)at;
}

static sl_status fill_integers(const uint64_t *ids, size_t n, const sl_item_column *as, void *values) {
    int narrow = as->type == SL_COLUMN_I32;
    uint64_t most = narrow ? INT32_MAX : INT64_MAX;
    for (size_t i = 0; i < n; i++) {
        if (ids[i] > most)
            return sl_fail(SL_ETYPE,
                           "id %" PRIu64
                           " does not fit column '%s', which is %s in the item table; make the table anew "
                           "with ids as text",
                           ids[i], as->name, sl_column_type_name(as->type));
        if (narrow)
            ((int32_t *)values)[i] = (int32_t)ids[i];
        else
            ((int64_t *)values)[i] = (int64_t)ids[i];
    }
    return SL_OK;
}

sl_status sl_item_ids_make(const sl_allocator *allocator, const sl_item_column *as, const uint64_t *ids, size_t n,
                           sl_item_ids *out) {
    int text = as->type == SL_COLUMN_TEXT;
    *out = (sl_item_ids){.column = {.name = as->name, .type = as->type}};
    if (!sl_mul(n, text ? SL_DIGITS : sizeof(int64_t), &out->size) || n > SL_MAX_PART_ROWS)
        return sl_fail(SL_ENOMEM, "%zu ids do not fit into memory", n);
    out->count = text ? n + 1 : 0;
    SL_TRY(sl_mem_alloc(allocator, out->size, &out->values));
    SL_TRY(sl_mem_alloc(allocator, out->count * sizeof(int64_t), &out->offsets));
    out->column.values = out->values;
    out->column.offsets = out->offsets;
    if (!text) return fill_integers(ids, n, as, out->values);
    fill_texts(ids, n, out->values, out->offsets);
    return SL_OK;
}

void sl_item_ids_free(const sl_allocator *allocator, sl_item_ids *ids) {
    sl_mem_free(allocator, ids->values, ids->size);
    sl_mem_free(allocator, ids->offsets, ids->count * sizeof(int64_t));
    *ids = (sl_item_ids){0};
}
