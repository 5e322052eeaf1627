/* Fits features. One pass over the training rows collects statistics, then the features are made from them. */
#include "ranker/features/fit_collect.h"

#include <math.h>
#include <string.h>

typedef struct fit {
    sl_features *features;
    sl_lookup_fn lookup;
    const sl_features *classes_of; /* not NULL: rows have no labels, and these features give the classes */
    sl_collector *collectors;      /* one for each feature, and one for the label */
    sl_column_source *sources;     /* one for each feature, one for the label, one for the weight */
    const sl_ranks *ranks;         /* NULL: this process has all rows */
    const uint64_t *position;      /* added to the positions of the rows of the block; NULL: nothing */
    uint64_t rows;
} fit;

static sl_collector *label_collector(const fit *f) {
    return &f->collectors[f->features->count];
}

static sl_status make_collectors(fit *f) {
    const sl_features *features = f->features;
    const sl_spec *spec = features->spec;
    const sl_allocator *allocator = &features->allocator;
    size_t count = features->count;
    sl_status status = SL_OK;
    f->collectors = sl_mem_array(allocator, count + 1, sizeof *f->collectors, &status);
    f->sources = sl_mem_array(allocator, count + 2, sizeof *f->sources, &status);
    SL_TRY(status);
    for (size_t i = 0; i < count; i++) {
        f->collectors[i] = (sl_collector){.allocator = allocator, .limit = spec->features[i].limit};
        f->sources[i] = (sl_column_source){spec->features[i].column, SIZE_MAX};
    }
    *label_collector(f) = (sl_collector){.allocator = allocator, .limit = SL_MAX_CLASSES};
    f->sources[count] = (sl_column_source){spec->label, SIZE_MAX};
    f->sources[count + 1] = (sl_column_source){spec->weight, SIZE_MAX};
    return SL_OK;
}

static void free_collectors(fit *f) {
    const sl_allocator *allocator = &f->features->allocator;
    size_t count = f->features->count;
    for (size_t i = 0; f->collectors && i <= count; i++)
        if (f->collectors[i].allocator) sl_collector_free(&f->collectors[i]);
    SL_FREE_ARRAY(allocator, f->collectors, count + 1);
    SL_FREE_ARRAY(allocator, f->sources, count + 2);
}

/* ---- During the pass ---- */

/* Squares of numbers up to this have a finite sum over any number of rows. */
#define MAX_SCALED 1e140

static sl_status collect_number(sl_collector *c, const sl_feature_spec *spec, const sl_column *column, size_t row) {
    double value;
    SL_TRY(sl_cell_number(column, row, &value));
    if (isnan(value)) return SL_OK;
    double fitted = sl_feature_transform(spec, value);
    /* A larger number would hide the spread, and later rows would be refused for it. */
    if (spec->scale != SL_SCALE_NONE && fabs(fitted) > MAX_SCALED)
        return sl_fail(SL_EVALUE, "%g is too large to be scaled together with others", value);
    sl_collect_number(c, fitted, spec->scale == SL_SCALE_STANDARD);
    return SL_OK;
}

static sl_status collect_quantile(sl_collector *c, uint64_t seed, const sl_column *column, size_t row,
                                  uint64_t position) {
    double value;
    SL_TRY(sl_cell_number(column, row, &value));
    return isnan(value) ? SL_OK : sl_collect_quantile(c, seed, position, value);
}

/* Returns a number of the row that no other row has: its line, or its place among all rows. */
static uint64_t position_of(const fit *f, const sl_table *block, size_t row) {
    return (f->position ? *f->position : 0) + (block->lines ? block->lines[row] : f->rows + row);
}

static sl_status collect_keys(sl_collector *c, const sl_feature_spec *spec, const sl_column *column, size_t row) {
    sl_key_iterator iterator;
    sl_key key;
    SL_TRY(sl_key_iterator_start(&iterator, spec, column, row));
    for (;;) {
        SL_TRY(sl_key_iterator_next(&iterator, &key));
        if (key.kind == SL_KEY_MISSING) return SL_OK;
        SL_TRY(sl_collect_key(c, &key));
    }
}

/* Collects one feature over a block. Features without fitting need no pass: the encoder checks their cells. */
static sl_status collect_feature(fit *f, size_t number, const sl_table *block, const sl_column *column) {
    const sl_feature_spec *spec = &f->features->spec->features[number];
    sl_collector *c = &f->collectors[number];
    uint64_t seed = f->features->spec->seed + number;
    int numeric = spec->type == SL_FEATURE_NUMERIC || spec->type == SL_FEATURE_SCORE;
    if (!numeric && !spec->quantiles && !sl_feature_is_fitted(spec)) return SL_OK;
    for (size_t row = 0; row < block->rows; row++) {
        sl_status status = numeric           ? collect_number(c, spec, column, row)
                           : spec->quantiles ? collect_quantile(c, seed, column, row, position_of(f, block, row))
                                             : collect_keys(c, spec, column, row);
        if (status != SL_OK) return sl_fail_at(status, block, row, column->name);
    }
    return SL_OK;
}

static sl_status collect_classes(fit *f, const sl_table *block, const sl_column *column) {
    for (size_t row = 0; row < block->rows; row++) {
        sl_key key;
        sl_status status = sl_cell_key(column, row, &key);
        if (status == SL_OK && key.kind == SL_KEY_MISSING) status = sl_fail(SL_EVALUE, "the label is missing");
        if (status == SL_OK) status = sl_collect_key(label_collector(f), &key);
        if (status != SL_OK) return sl_fail_at(status, block, row, column->name);
    }
    return SL_OK;
}

static sl_status collect_block(fit *f, const sl_table *block) {
    const sl_spec *spec = f->features->spec;
    const sl_column *column;
    for (size_t i = 0; i < f->features->count; i++) {
        const sl_feature_spec *feature = &spec->features[i];
        if (feature->type == SL_FEATURE_CROSS) continue;
        SL_TRY(sl_column_source_find(&f->sources[i], block, &column));
        SL_TRY(sl_column_source_check(feature, column, block));
        int ids = column->type == SL_COLUMN_I32 || column->type == SL_COLUMN_I64;
        if (feature->type == SL_FEATURE_VECTOR && ids && !f->lookup)
            return sl_fail(SL_EINVAL, "column '%s' holds ids; give `lookup` to find their vectors", column->name);
        SL_TRY(collect_feature(f, i, block, column));
    }
    size_t count = f->features->count;
    if (f->classes_of) return SL_OK;
    if (spec->weight) SL_TRY(sl_column_source_find(&f->sources[count + 1], block, &column));
    SL_TRY(sl_column_source_find(&f->sources[count], block, &column));
    int classes = spec->loss == SL_LOSS_MULTICLASS && !spec->classes;
    return classes ? collect_classes(f, block, column) : SL_OK;
}

/* ---- After the pass ---- */

static sl_status fit_number(sl_feature *feature, const sl_collector *c) {
    const sl_feature_spec *spec = feature->spec;
    double spread = 1;
    if (spec->scale == SL_SCALE_STANDARD) {
        feature->mean = sl_collector_mean(c);
        spread = sl_collector_spread(c);
    } else if (spec->scale == SL_SCALE_MINMAX) {
        feature->mean = c->low;
        spread = c->high - c->low;
    }
    /* A column of one value has no spread to divide by. Numbers near the largest double overflow it. */
    feature->factor = isnormal(spread) && isnormal(1 / spread) ? 1 / spread : 1;
    if (!isfinite(feature->mean)) feature->mean = 0;
    double missing = spec->missing_is_mean ? sl_collector_mean(c) : sl_feature_transform(spec, spec->missing);
    float encoded = (float)((missing - feature->mean) * feature->factor);
    feature->missing = isfinite(encoded) ? encoded : 0;
    /* A mean that overflows counts as none. A number that the user gave is refused. */
    if (isfinite(encoded) || spec->missing_is_mean) return SL_OK;
    return sl_fail(SL_EVALUE, "feature '%s': missing, %g, is too large to be scaled to a float", spec->name,
                   spec->missing);
}

static sl_status fit_vocabulary(const sl_allocator *allocator, sl_feature *feature, sl_collector *c) {
    const sl_feature_spec *spec = feature->spec;
    SL_TRY(sl_vocabulary_create(allocator, &feature->vocabulary));
    if (!c->texts) return SL_OK;
    uint32_t *order;
    size_t count, number;
    SL_TRY(sl_collector_texts_by_count(c, spec->min_count, spec->keep, &order, &count));
    sl_status status = SL_OK;
    for (size_t i = 0; i < count && status == SL_OK; i++) {
        size_t size;
        const char *text = sl_vocabulary_text(c->texts, order[i], &size);
        status = sl_vocabulary_add(feature->vocabulary, text, size, SIZE_MAX, &number);
    }
    SL_FREE_ARRAY(allocator, order, sl_vocabulary_count(c->texts));
    return status;
}

static sl_status fit_feature(fit *f, size_t number) {
    sl_feature *feature = &f->features->features[number];
    sl_collector *c = &f->collectors[number];
    switch (feature->spec->type) {
    case SL_FEATURE_NUMERIC:
    case SL_FEATURE_SCORE:
        return fit_number(feature, c);
    case SL_FEATURE_BUCKET:
        if (!feature->spec->quantiles) return SL_OK;
        return sl_collector_boundaries(c, feature->spec->quantiles, &feature->boundaries, &feature->boundary_count);
    default:
        break;
    }
    return sl_feature_is_fitted(feature->spec) ? fit_vocabulary(&f->features->allocator, feature, c) : SL_OK;
}

static sl_status fit_classes(fit *f) {
    const sl_collector *c = label_collector(f);
    if (!c->texts) return SL_OK;
    size_t count = sl_vocabulary_count(c->texts);
    if (count < 2) return sl_fail(SL_EVALUE, "the label '%s' has one class only", f->features->spec->label);
    uint32_t *order;
    SL_TRY(sl_collector_texts_by_value(c, &order));
    sl_status status = SL_OK;
    for (size_t i = 0; i < count && status == SL_OK; i++) {
        size_t size;
        const char *text = sl_vocabulary_text(c->texts, order[i], &size);
        status = sl_features_add_class(f->features, text, size);
    }
    SL_FREE_ARRAY(&f->features->allocator, order, count);
    return status;
}

/* Copies the classes of an existing model. */
static sl_status copy_classes(fit *f) {
    const sl_features *from = f->classes_of;
    if (f->features->spec->loss != SL_LOSS_MULTICLASS || f->features->spec->classes) return SL_OK;
    for (size_t i = 0; i < from->class_count; i++)
        SL_TRY(sl_features_add_class(f->features, from->classes[i], strlen(from->classes[i])));
    return SL_OK;
}

static sl_status collect_rows(fit *f, const sl_rows *rows) {
    sl_table block;
    SL_TRY(make_collectors(f));
    for (;;) {
        SL_TRY(sl_rows_next(rows, SL_BLOCK_ROWS, &block));
        if (block.rows == 0) return SL_OK;
        SL_TRY(collect_block(f, &block));
        f->rows += block.rows;
    }
}

/* Adds up what all ranks have collected. */
static sl_status merge_ranks(fit *f) {
    const sl_spec *spec = f->features->spec;
    size_t failed = 0;
    sl_status status = sl_collectors_merge(f->collectors, f->features->count + 1, f->ranks, &failed);
    if (status != SL_ELIMIT) return status;
    return sl_fail(SL_ELIMIT, "column '%s' has more than %zu distinct values over all ranks",
                   failed < f->features->count ? spec->features[failed].column : spec->label,
                   f->collectors[failed].limit);
}

static sl_status fit_rows(fit *f, const sl_rows *rows) {
    SL_TRY(sl_ranks_agree(f->ranks, collect_rows(f, rows)));
    SL_TRY(merge_ranks(f));
    SL_TRY(sl_ranks_sum_counts(f->ranks, &f->rows, 1));
    if (f->rows == 0) return sl_fail(SL_EVALUE, "there are no rows to fit the features to");
    for (size_t i = 0; i < f->features->count; i++)
        SL_TRY(fit_feature(f, i));
    SL_TRY(f->classes_of ? copy_classes(f) : fit_classes(f));
    SL_TRY(sl_features_name_outputs(f->features));
    return sl_features_lay_out(f->features);
}

/* Takes over the spec. Vectors are not fitted, but their lookup must be there. */
static sl_status fit_spec(sl_spec *spec, const sl_rows *rows, fit *f, sl_features **out) {
    *out = NULL;
    SL_TRY(sl_features_make(spec, &f->features));
    sl_status status = sl_rows_check(rows);
    if (status == SL_OK) status = fit_rows(f, rows);
    free_collectors(f);
    if (status == SL_OK)
        *out = f->features;
    else
        sl_features_free(f->features);
    return status;
}

sl_status sl_features_fit(sl_spec *spec, const sl_rows *rows, const sl_fit_source *source, sl_features **out) {
    return fit_spec(spec, rows,
                    &(fit){.lookup = source->lookup,
                           .classes_of = source->classes_of,
                           .ranks = source->ranks,
                           .position = source->position},
                    out);
}
