#include "ranker/features/encode_cells.h"

#include <math.h>
#include <string.h>

sl_status sl_column_source_find(sl_column_source *source, const sl_table *table, const sl_column **out) {
    /* Names are always compared, because the next table may lie at the same address. */
    if (source->at >= table->column_count || strcmp(table->columns[source->at].name, source->name) != 0) {
        source->at = sl_table_find(table, source->name);
        if (source->at == SIZE_MAX) return sl_fail_no_column(table, source->name, "");
    }
    *out = &table->columns[source->at];
    return SL_OK;
}

#define TYPE(name) (1u << SL_COLUMN_##name)
#define NUMBERS    (TYPE(F32) | TYPE(F64) | TYPE(I32) | TYPE(I64) | TYPE(TEXT))

/* Returns the mask of column types that suit a feature. */
static unsigned types_of(const sl_feature_spec *spec) {
    if (spec->type == SL_FEATURE_MULTI) return NUMBERS | TYPE(TEXTS);
    if (spec->type != SL_FEATURE_VECTOR) return NUMBERS;
    return TYPE(VECTOR) | TYPE(TEXT) | (spec->from_index ? TYPE(I32) | TYPE(I64) : 0u);
}

sl_status sl_column_source_check(const sl_feature_spec *spec, const sl_column *column, const sl_table *table) {
    const char *origin = table->origin ? table->origin : "table";
    if (!(types_of(spec) & 1u << column->type))
        return sl_fail(SL_ETYPE, "%s: column '%s' is of type %s, which feature '%s' cannot be made from", origin,
                       column->name, sl_column_type_name(column->type), spec->name);
    if (column->type == SL_COLUMN_VECTOR && column->dim != spec->dim)
        return sl_fail(SL_EDIM, "%s: column '%s' has vectors of dim %zu, feature '%s' of dim %zu", origin, column->name,
                       column->dim, spec->name, spec->dim);
    return SL_OK;
}

sl_status sl_key_iterator_start(sl_key_iterator *iterator, const sl_feature_spec *spec, const sl_column *column,
                                size_t row) {
    *iterator = (sl_key_iterator){.column = column, .row = row, .separator = spec->separator};
    if (!sl_column_has(column, row)) return SL_OK;
    if (column->type == SL_COLUMN_TEXT && spec->type == SL_FEATURE_MULTI) {
        size_t size;
        SL_TRY(sl_cell_text(column, (int64_t)row, &iterator->at, &size));
        iterator->end = iterator->at + size;
    } else if (column->type == SL_COLUMN_TEXTS) {
        iterator->next = column->lists[row];
        iterator->last = column->lists[row + 1];
        if (iterator->next < 0 || iterator->last < iterator->next)
            return sl_fail(SL_EINVAL, "lists fall from %lld to %lld", (long long)iterator->next,
                           (long long)iterator->last);
    } else {
        iterator->single = 1;
    }
    return SL_OK;
}

sl_status sl_key_iterator_next(sl_key_iterator *iterator, sl_key *key) {
    key->kind = SL_KEY_MISSING;
    if (iterator->single) {
        iterator->single = 0;
        return sl_cell_key(iterator->column, iterator->row, key);
    }
    while (iterator->at < iterator->end && key->kind == SL_KEY_MISSING) {
        const char *to = memchr(iterator->at, iterator->separator, (size_t)(iterator->end - iterator->at));
        if (!to) to = iterator->end;
        sl_key_of_text(key, iterator->at, (size_t)(to - iterator->at));
        iterator->at = to + 1 > iterator->end ? iterator->end : to + 1;
    }
    while (iterator->next < iterator->last && key->kind == SL_KEY_MISSING) {
        const char *text;
        size_t size;
        SL_TRY(sl_cell_text(iterator->column, iterator->next++, &text, &size));
        sl_key_of_text(key, text, size);
    }
    return SL_OK;
}

double sl_feature_transform(const sl_feature_spec *spec, double value) {
    return spec->log ? copysign(log1p(fabs(value)), value) : value;
}

float sl_encode_number(const sl_feature *feature, double value) {
    if (isnan(value)) return feature->missing;
    return (float)((sl_feature_transform(feature->spec, value) - feature->mean) * feature->factor);
}
