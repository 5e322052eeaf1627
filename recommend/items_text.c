/* sl_items_text: the text of one value. */
#include "ranker/features/table.h"
#include "recommend/items.h"

#include <string.h>

const char *sl_items_column_name(const sl_items *items, size_t i) {
    return items && i < items->schema.count ? items->schema.columns[i].name : NULL;
}

/* Text in a buffer that may be too small; `length` counts all of the text. */
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

static sl_status write_value(const sl_item_body *body, uint64_t id, size_t column, writer *w) {
    sl_row_ref ref = sl_catalog_find(&body->catalog, id);
    if (!sl_ref_is_row(ref)) return sl_fail(SL_ENOTFOUND, "id %llu is not in the item table", (unsigned long long)id);
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
    sl_status status = write_value(body, id, number, &w);
    sl_items_end(hazard);
    if (status != SL_OK) return status;
    if (size) out[w.length < w.size ? w.length : w.size] = '\0';
    if (length) *length = w.length;
    return SL_OK;
}
