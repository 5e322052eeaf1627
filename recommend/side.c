#include "recommend/side.h"

#include "ranker/features/table.h"

#include <string.h>

int sl_feature_from_index(const sl_feature *feature, sl_side side) {
    return feature->side == side && feature->spec->type == SL_FEATURE_VECTOR && feature->spec->from_index;
}

int sl_side_has_columns(const sl_features *features, sl_side side) {
    for (size_t f = 0; f < features->count; f++) {
        const sl_feature *feature = &features->features[f];
        if (feature->side == side && feature->spec->type != SL_FEATURE_CROSS && !sl_feature_from_index(feature, side))
            return 1;
    }
    return 0;
}

/* An encoder's callback that looks up a vector by id. In training, a column has the ids. Here it gives zeros, and the
 * index's vector replaces them later. */
static sl_status look_up_vector(void *ctx, const char *name, uint64_t id, float *out, size_t dim) {
    const sl_side_encoder *side = ctx;
    (void)id;
    for (size_t f = 0; f < side->features->count; f++) {
        const sl_feature *feature = &side->features->features[f];
        if (!sl_feature_from_index(feature, side->side) || strcmp(feature->spec->name, name) != 0) continue;
        memset(out, 0, dim * sizeof *out);
        return SL_OK;
    }
    return sl_fail(SL_EUNSUPPORTED,
                   "vectors of feature '%s' are looked up by id, which only \"source\": \"index\" can when serving",
                   name);
}

sl_status sl_side_encoder_init(sl_side_encoder *side, const sl_features *features, sl_side which,
                               const sl_allocator *allocator) {
    *side = (sl_side_encoder){.allocator = *allocator, .features = features, .side = which};
    side->rows.allocator = *allocator;
    for (size_t f = 0; f < features->count; f++)
        side->vectors += (size_t)sl_feature_from_index(&features->features[f], which);
    return sl_encoder_create(features, 1u << which, 0, look_up_vector, side, allocator, &side->encoder);
}

void sl_side_encoder_free(sl_side_encoder *side) {
    sl_encoder_free(side->encoder);
    if (side->features) sl_rows_buffer_free(&side->rows);
    SL_FREE_ARRAY(&side->allocator, side->columns, side->column_room);
    *side = (sl_side_encoder){0};
}

/* The column from a row on. The row is a multiple of 8, so validity bits begin at a byte. */
static sl_column column_from(const sl_column *column, size_t row) {
    static const size_t elements[] = {4, 8, 4, 8};
    sl_column out = *column;
    if (row == 0) return out;
    if (column->type == SL_COLUMN_TEXT)
        out.offsets += row;
    else if (column->type == SL_COLUMN_TEXTS)
        out.lists += row;
    else
        out.values = (const char *)column->values +
                     row * (column->type == SL_COLUMN_VECTOR ? column->dim * sizeof(float) : elements[column->type]);
    if (out.valid) out.valid += row / 8;
    return out;
}

/* Lists the table's columns, and a column of missing values for each vector that the table lacks. Returns their number.
 */
static size_t put_columns(sl_side_encoder *side, const sl_table *table, size_t from) {
    static const uint8_t none[SL_SIDE_ROWS / 8 + 1];
    size_t count = 0;
    for (; count < table->column_count; count++)
        side->columns[count] = column_from(&table->columns[count], from);
    for (size_t f = 0; f < side->features->count; f++) {
        const sl_feature *feature = &side->features->features[f];
        if (!sl_feature_from_index(feature, side->side) || sl_table_find(table, feature->spec->column) != SIZE_MAX)
            continue;
        side->columns[count++] = (sl_column){.name = feature->spec->column,
                                             .type = SL_COLUMN_VECTOR,
                                             .dim = feature->spec->dim,
                                             .values = none,
                                             .valid = none};
    }
    return count;
}

sl_status sl_side_encode(sl_side_encoder *side, const sl_table *table, size_t first, size_t count) {
    if (!side->vectors) return sl_encoder_append(side->encoder, table, first, count, &side->rows);
    size_t from = first / 8 * 8;
    sl_status status = SL_OK;
    side->columns = sl_mem_grow(&side->allocator, side->columns, &side->column_room,
                                table->column_count + side->vectors, sizeof *side->columns, &status);
    SL_TRY(status);
    sl_table mine = {.struct_size = sizeof mine,
                     .rows = first - from + count,
                     .columns = side->columns,
                     .origin = table->origin,
                     .lines = table->lines ? table->lines + from : NULL,
                     .first_row = table->first_row + from};
    mine.column_count = put_columns(side, table, from);
    return sl_encoder_append(side->encoder, &mine, first - from, count, &side->rows);
}
