#include "ranker/features/encode_cells.h"

#include <math.h>
#include <string.h>

sl_status sl_source_find(sl_source *source, const sl_table *table, const sl_column **out) {
    /* Names are always compared: the memory of the last table may hold another one. */
    if (source->at >= table->column_count || strcmp(table->columns[source->at].name, source->name) != 0) {
        source->at = sl_table_find(table, source->name);
        if (source->at == SIZE_MAX) return sl_fail_no_column(table, source->name, "");
    }
    *out = &table->columns[source->at];
    return SL_OK;
}

#define TYPE(name) (1u << SL_COLUMN_##name)
#define NUMBERS    (TYPE(F32) | TYPE(F64) | TYPE(I32) | TYPE(I64) | TYPE(TEXT))

/* Column types that a feature can be made from. */
static unsigned types_of(const sl_feature_spec *spec) {
    if (spec->type == SL_FEATURE_MULTI) return NUMBERS | TYPE(TEXTS);
    if (spec->type != SL_FEATURE_VECTOR) return NUMBERS;
    return TYPE(VECTOR) | TYPE(TEXT) | (spec->from_index ? TYPE(I32) | TYPE(I64) : 0u);
}

sl_status sl_source_check(const sl_feature_spec *spec, const sl_column *column, const sl_table *table) {
    const char *origin = table->origin ? table->origin : "table";
    if (!(types_of(spec) & 1u << column->type))
        return sl_fail(SL_ETYPE, "%s: column '%s' is of type %s, which feature '%s' cannot be made from", origin,
                       column->name, sl_column_type_name(column->type), spec->name);
    if (column->type == SL_COLUMN_VECTOR && column->dim != spec->dim)
        return sl_fail(SL_EDIM, "%s: column '%s' has vectors of dim %zu, feature '%s' of dim %zu", origin, column->name,
                       column->dim, spec->name, spec->dim);
    return SL_OK;
}

sl_status sl_key_walk_start(sl_key_walk *walk, const sl_feature_spec *spec, const sl_column *column, size_t row) {
    *walk = (sl_key_walk){.column = column, .row = row, .separator = spec->separator};
    if (!sl_column_has(column, row)) return SL_OK;
    if (column->type == SL_COLUMN_TEXT && spec->type == SL_FEATURE_MULTI) {
        size_t size;
        SL_TRY(sl_cell_text(column, (int64_t)row, &walk->at, &size));
        walk->end = walk->at + size;
    } else if (column->type == SL_COLUMN_TEXTS) {
        walk->next = column->lists[row];
        walk->last = column->lists[row + 1];
        if (walk->next < 0 || walk->last < walk->next)
            return sl_fail(SL_EINVAL, "lists fall from %lld to %lld", (long long)walk->next, (long long)walk->last);
    } else {
        walk->single = 1;
    }
    return SL_OK;
}

sl_status sl_key_walk_next(sl_key_walk *walk, sl_key *key) {
    key->kind = SL_KEY_MISSING;
    if (walk->single) {
        walk->single = 0;
        return sl_cell_key(walk->column, walk->row, key);
    }
    while (walk->at < walk->end && key->kind == SL_KEY_MISSING) {
        const char *to = memchr(walk->at, walk->separator, (size_t)(walk->end - walk->at));
        if (!to) to = walk->end;
        sl_key_of_text(key, walk->at, (size_t)(to - walk->at));
        walk->at = to + 1 > walk->end ? walk->end : to + 1;
    }
    while (walk->next < walk->last && key->kind == SL_KEY_MISSING) {
        const char *text;
        size_t size;
        SL_TRY(sl_cell_text(walk->column, walk->next++, &text, &size));
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
