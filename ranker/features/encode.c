/* Encodes rows of a table. Single values go column by column, so that a call branches on a feature's type once. Bags go
 * row by row, because they lie by row. */
#include "ranker/features/encode.h"

#include "ranker/features/encode_ids.h"
#include "ranker/features/vocabulary.h"

#include <math.h>
#include <string.h>

/* The columns of labels and weights in a table. */
typedef struct label_columns {
    const sl_column *label;
    const sl_column *weight; /* NULL: the spec names none, every weight is 1 */
} label_columns;

struct sl_encoder {
    sl_allocator allocator;
    const sl_features *features;
    int with_labels;
    sl_lookup_fn lookup;
    void *lookup_ctx;
    sl_column_source *sources; /* one for each feature */
    const sl_column **columns; /* one for each feature, in the table being encoded */
    unsigned char *active;     /* for each feature: whether to encode it */
    size_t *bags;              /* for each bag: its feature */
    int all_active;
    sl_column_source label, weight;
    label_columns label_columns;
};

/* The rows of one call, in the table and in the buffer. */
typedef struct row_span {
    const sl_table *table;
    size_t first, count;
    sl_rows_buffer *buffer;
} row_span;

/* ---- Creation ---- */

static void choose_features(sl_encoder *e, unsigned sides) {
    const sl_features *features = e->features;
    e->all_active = 1;
    for (size_t i = 0; i < features->count; i++) {
        const sl_feature *f = &features->features[i];
        e->active[i] = !(f->spec->sides & ~sides);
        e->all_active &= e->active[i];
        e->sources[i] = (sl_column_source){f->spec->column, SIZE_MAX};
        if (f->form == SL_FORM_BAG) e->bags[f->at] = i;
    }
    e->label = (sl_column_source){features->spec->label, SIZE_MAX};
    e->weight = (sl_column_source){features->spec->weight, SIZE_MAX};
}

sl_status sl_encoder_create(const sl_features *features, unsigned sides, int with_labels, sl_lookup_fn lookup,
                            void *lookup_ctx, const sl_allocator *given, sl_encoder **out) {
    sl_status status;
    void *block;
    *out = NULL;
    sl_allocator allocator = sl_allocator_of(given);
    SL_TRY(sl_mem_alloc(&allocator, sizeof(sl_encoder), &block));
    sl_encoder *e = block;
    *e = (sl_encoder){.allocator = allocator,
                      .features = features,
                      .with_labels = with_labels,
                      .lookup = lookup,
                      .lookup_ctx = lookup_ctx};
    status = SL_OK;
    e->sources = sl_mem_array(&allocator, features->count, sizeof *e->sources, &status);
    e->columns = sl_mem_array(&allocator, features->count, sizeof *e->columns, &status);
    e->active = sl_mem_array(&allocator, features->count, sizeof *e->active, &status);
    e->bags = sl_mem_array(&allocator, features->bag_count, sizeof *e->bags, &status);
    if (status != SL_OK) goto fail;
    choose_features(e, sides);
    *out = e;
    return SL_OK;
fail:
    sl_encoder_free(e);
    return status;
}

void sl_encoder_free(sl_encoder *e) {
    if (!e) return;
    sl_allocator allocator = e->allocator;
    SL_FREE_ARRAY(&allocator, e->sources, e->features->count);
    SL_FREE_ARRAY(&allocator, e->columns, e->features->count);
    sl_mem_free(&allocator, e->active, e->features->count);
    SL_FREE_ARRAY(&allocator, e->bags, e->features->bag_count);
    SL_FREE(&allocator, e);
}

static sl_status match_labels(sl_column_source *label, sl_column_source *weight, const sl_table *table,
                              label_columns *out) {
    out->weight = NULL;
    SL_TRY(sl_column_source_find(label, table, &out->label));
    return weight->name ? sl_column_source_find(weight, table, &out->weight) : SL_OK;
}

static sl_status match_columns(sl_encoder *e, const sl_table *table) {
    for (size_t i = 0; i < e->features->count; i++) {
        const sl_feature_spec *spec = e->features->features[i].spec;
        if (!e->active[i] || spec->type == SL_FEATURE_CROSS) continue;
        SL_TRY(sl_column_source_find(&e->sources[i], table, &e->columns[i]));
        SL_TRY(sl_column_source_check(spec, e->columns[i], table));
    }
    return e->with_labels ? match_labels(&e->label, &e->weight, table, &e->label_columns) : SL_OK;
}

/* ---- The buffer ---- */

void sl_rows_buffer_free(sl_rows_buffer *buffer) {
    if (!buffer) return;
    const sl_allocator *allocator = &buffer->allocator;
    SL_FREE_ARRAY(allocator, buffer->dense, buffer->dense_room);
    SL_FREE_ARRAY(allocator, buffer->ids, buffer->id_room);
    SL_FREE_ARRAY(allocator, buffer->bag_start, buffer->start_room);
    SL_FREE_ARRAY(allocator, buffer->bag_ids, buffer->bag_room);
    SL_FREE_ARRAY(allocator, buffer->labels, buffer->label_room);
    SL_FREE_ARRAY(allocator, buffer->weights, buffer->weight_room);
    *buffer = (sl_rows_buffer){.allocator = buffer->allocator};
}

void sl_rows_buffer_view(const sl_rows_buffer *buffer, sl_encoded *out) {
    *out = (sl_encoded){.struct_size = sizeof *out,
                        .rows = buffer->rows,
                        .dense = buffer->dense,
                        .ids = buffer->ids,
                        .bag_start = buffer->bag_start,
                        .bag_ids = buffer->bag_ids};
}

sl_encoded sl_encoded_part(const sl_features *features, const sl_encoded *rows, size_t first, size_t count) {
    sl_encoded part = *rows;
    part.rows = count;
    if (features->dense_width) part.dense += first * features->dense_width;
    if (features->id_count) part.ids += first * features->id_count;
    if (features->bag_count) part.bag_start += first * features->bag_count;
    return part;
}

/* Reserves `count` more rows, but no ids of bags. */
static sl_status reserve_rows(const sl_encoder *e, const row_span *s) {
    const sl_features *features = e->features;
    sl_rows_buffer *b = s->buffer;
    size_t rows, dense, ids, starts;
    if (!sl_add(b->rows, s->count, &rows) || !sl_mul(rows, features->dense_width, &dense) ||
        !sl_mul(rows, features->id_count, &ids) || !sl_mul(rows, features->bag_count, &starts))
        return sl_fail(SL_ENOMEM, "%zu more rows do not fit into memory", s->count);
    const sl_allocator *allocator = &b->allocator;
    sl_status status = SL_OK;
    b->dense = sl_mem_grow(allocator, b->dense, &b->dense_room, dense, sizeof *b->dense, &status);
    b->ids = sl_mem_grow(allocator, b->ids, &b->id_room, ids, sizeof *b->ids, &status);
    b->bag_start = sl_mem_grow(allocator, b->bag_start, &b->start_room, starts + 1, sizeof *b->bag_start, &status);
    /* The array must exist even if all bags are empty. */
    b->bag_ids = sl_mem_grow(allocator, b->bag_ids, &b->bag_room, 0, sizeof *b->bag_ids, &status);
    if (!e->with_labels) return status;
    b->labels = sl_mem_grow(allocator, b->labels, &b->label_room, rows, sizeof *b->labels, &status);
    b->weights = sl_mem_grow(allocator, b->weights, &b->weight_room, rows, sizeof *b->weights, &status);
    return status;
}

/* ---- Single values ---- */

static sl_status encode_numbers(const sl_feature *f, const sl_column *column, const row_span *s, float *out,
                                size_t stride, size_t *row) {
    for (size_t i = 0; i < s->count; i++, out += stride) {
        double value;
        *row = s->first + i;
        SL_TRY(sl_cell_number(column, *row, &value));
        out[0] = sl_encode_number(f, value);
        if (f->width > 1) out[1] = (float)(isnan(value) != 0);
        if (!isfinite(out[0])) return sl_fail(SL_EVALUE, "%g is too large to be scaled to a float", value);
    }
    return SL_OK;
}

static sl_status encode_vectors(const sl_encoder *e, const sl_feature *f, const sl_column *column, const row_span *s,
                                float *out, size_t stride, size_t *row) {
    for (size_t i = 0; i < s->count; i++, out += stride) {
        *row = s->first + i;
        SL_TRY(sl_encode_vector(f, column, *row, e->lookup, e->lookup_ctx, out));
    }
    return SL_OK;
}

static sl_status encode_ids(const sl_feature *f, const sl_column *column, const row_span *s, uint32_t *out,
                            size_t stride, size_t *row) {
    for (size_t i = 0; i < s->count; i++, out += stride) {
        *row = s->first + i;
        SL_TRY(sl_encode_id(f, column, *row, out));
    }
    return SL_OK;
}

void sl_cross_single(const sl_features *features, const sl_feature *cross, uint32_t *ids) {
    uint32_t parents[SL_MAX_PARENTS];
    for (size_t p = 0; p < cross->spec->of_count; p++)
        parents[p] = ids[features->features[cross->spec->of[p]].at];
    ids[cross->at] = sl_cross_id(cross, parents, cross->spec->of_count);
}

static sl_status encode_single(const sl_encoder *e, size_t number, const row_span *s) {
    const sl_features *features = e->features;
    const sl_feature *f = &features->features[number];
    const sl_column *column = e->columns[number];
    size_t row = s->first;
    uint32_t *ids = s->buffer->ids + s->buffer->rows * features->id_count;
    float *dense = s->buffer->dense + s->buffer->rows * features->dense_width;
    sl_status status;
    if (f->spec->type == SL_FEATURE_CROSS) {
        for (size_t i = 0; i < s->count; i++)
            sl_cross_single(features, f, ids + i * features->id_count);
        return SL_OK;
    }
    if (f->form == SL_FORM_ID)
        status = encode_ids(f, column, s, ids + f->at, features->id_count, &row);
    else if (f->spec->type == SL_FEATURE_VECTOR)
        status = encode_vectors(e, f, column, s, dense + f->at, features->dense_width, &row);
    else
        status = encode_numbers(f, column, s, dense + f->at, features->dense_width, &row);
    return status == SL_OK ? SL_OK : sl_fail_at(status, s->table, row, column->name);
}

/* ---- Bags ---- */

/* Reserves `count` more ids after those in use. */
static sl_status reserve_bag_ids(sl_rows_buffer *b, size_t used, size_t count) {
    if (count > UINT32_MAX - used) return sl_fail(SL_ELIMIT, "more than %u ids in bags; encode fewer rows", UINT32_MAX);
    if (used + count <= b->bag_room) return SL_OK;
    sl_status status = SL_OK;
    b->bag_ids = sl_mem_grow(&b->allocator, b->bag_ids, &b->bag_room, used + count + 63, sizeof *b->bag_ids, &status);
    return status;
}

static sl_status append_bag_id(sl_rows_buffer *b, size_t *used, uint32_t id) {
    SL_TRY(reserve_bag_ids(b, *used, 1));
    b->bag_ids[(*used)++] = id;
    return SL_OK;
}

static sl_status encode_multi(const sl_encoder *e, size_t number, size_t row, sl_rows_buffer *b, size_t *used) {
    const sl_feature *f = &e->features->features[number];
    sl_key_iterator iterator;
    sl_key key;
    SL_TRY(sl_key_iterator_start(&iterator, f->spec, e->columns[number], row));
    for (;;) {
        uint32_t id;
        SL_TRY(sl_key_iterator_next(&iterator, &key));
        if (key.kind == SL_KEY_MISSING) return SL_OK;
        SL_TRY(sl_encode_key(f, &key, &id));
        SL_TRY(append_bag_id(b, used, id));
    }
}

size_t sl_cross_bag_parent(const sl_features *features, const sl_feature *cross) {
    size_t p = 0;
    while (features->features[cross->spec->of[p]].form != SL_FORM_BAG)
        p++;
    return features->features[cross->spec->of[p]].at;
}

size_t sl_cross_bag(const sl_features *features, const sl_feature *cross, const uint32_t *ids,
                    const uint32_t *bag_start, const uint32_t *bag_ids, uint32_t *out) {
    uint32_t parents[SL_MAX_PARENTS];
    size_t bag_parent = 0, bag = sl_cross_bag_parent(features, cross), count = bag_start[bag + 1] - bag_start[bag];
    for (size_t p = 0; p < cross->spec->of_count; p++) {
        const sl_feature *parent = &features->features[cross->spec->of[p]];
        if (parent->form == SL_FORM_ID)
            parents[p] = ids[parent->at];
        else
            bag_parent = p;
    }
    for (size_t i = 0; i < count; i++) {
        parents[bag_parent] = bag_ids[bag_start[bag] + i];
        out[i] = sl_cross_id(cross, parents, cross->spec->of_count);
    }
    return count;
}

/* Parameters: `to` is the row's number in the buffer. */
static sl_status encode_bag_cross(const sl_features *features, const sl_feature *f, size_t to, sl_rows_buffer *b,
                                  size_t *used) {
    const uint32_t *start = b->bag_start + to * features->bag_count;
    size_t parent = sl_cross_bag_parent(features, f);
    SL_TRY(reserve_bag_ids(b, *used, start[parent + 1] - start[parent]));
    *used += sl_cross_bag(features, f, b->ids + to * features->id_count, start, b->bag_ids, b->bag_ids + *used);
    return SL_OK;
}

static sl_status encode_bags(const sl_encoder *e, const row_span *s) {
    const sl_features *features = e->features;
    sl_rows_buffer *b = s->buffer;
    size_t bags = features->bag_count, used = b->bag_start[b->rows * bags];
    for (size_t i = 0; i < s->count; i++) {
        size_t to = b->rows + i;
        uint32_t *start = b->bag_start + to * bags;
        for (size_t bag = 0; bag < bags; bag++) {
            size_t number = e->bags[bag];
            const sl_feature *f = &features->features[number];
            start[bag] = (uint32_t)used;
            sl_status status = SL_OK;
            int cross = f->spec->type == SL_FEATURE_CROSS;
            if (e->active[number] && cross)
                status = encode_bag_cross(features, f, to, b, &used);
            else if (e->active[number])
                status = encode_multi(e, number, s->first + i, b, &used);
            if (status != SL_OK) return sl_fail_at(status, s->table, s->first + i, f->spec->column);
            /* A cross of this bag reads the bag's end: the start of the next bag. */
            start[bag + 1] = (uint32_t)used;
        }
    }
    return SL_OK;
}

/* ---- Labels and weights ---- */

/* Encodes a row's label and weight. */
static sl_status encode_label(const sl_features *features, const sl_table *table, size_t row,
                              const label_columns *columns, float *label, float *weight) {
    sl_status status = sl_encode_label(features, columns->label, row, label);
    if (status != SL_OK) return sl_fail_at(status, table, row, columns->label->name);
    *weight = 1;
    if (!columns->weight) return SL_OK;
    status = sl_encode_weight(columns->weight, row, weight);
    return status == SL_OK ? SL_OK : sl_fail_at(status, table, row, columns->weight->name);
}

/* Encodes the labels and weights of rows `first` to first + count. */
static sl_status encode_labels(const sl_features *features, const sl_table *table, size_t first, size_t count,
                               const label_columns *columns, float *labels, float *weights) {
    for (size_t i = 0; i < count; i++)
        SL_TRY(encode_label(features, table, first + i, columns, &labels[i], &weights[i]));
    return SL_OK;
}

sl_status sl_labels_read(const sl_features *features, const sl_table *table, float *labels, float *weights) {
    sl_column_source label_source = {features->spec->label, SIZE_MAX},
                     weight_source = {features->spec->weight, SIZE_MAX};
    label_columns columns;
    SL_TRY(sl_table_check(table));
    SL_TRY(match_labels(&label_source, &weight_source, table, &columns));
    return encode_labels(features, table, 0, table->rows, &columns, labels, weights);
}

/* ---- Rows ---- */

/* Encodes rows into the buffer's end. Their columns are matched already. */
static sl_status append_rows(const sl_encoder *e, const row_span *s) {
    const sl_features *features = e->features;
    sl_rows_buffer *b = s->buffer;
    SL_TRY(reserve_rows(e, s));
    if (b->rows == 0) b->bag_start[0] = 0;
    if (!e->all_active) {
        size_t dense = features->dense_width, ids = features->id_count;
        memset(b->dense + b->rows * dense, 0, s->count * dense * sizeof *b->dense);
        memset(b->ids + b->rows * ids, 0, s->count * ids * sizeof *b->ids);
    }
    for (size_t i = 0; i < features->count; i++)
        if (e->active[i] && features->features[i].form != SL_FORM_BAG) SL_TRY(encode_single(e, i, s));
    return features->bag_count ? encode_bags(e, s) : SL_OK;
}

sl_status sl_encoder_append(sl_encoder *e, const sl_table *table, size_t first, size_t count, sl_rows_buffer *buffer) {
    SL_TRY(sl_table_check(table));
    if (first > table->rows || count > table->rows - first)
        return sl_fail(SL_EINVAL, "rows %zu to %zu of a table of %zu", first, first + count, table->rows);
    if (count == 0) return SL_OK;
    SL_TRY(match_columns(e, table));
    row_span s = {.table = table, .first = first, .count = count, .buffer = buffer};
    SL_TRY(append_rows(e, &s));
    if (e->with_labels)
        SL_TRY(encode_labels(e->features, table, first, count, &e->label_columns, buffer->labels + buffer->rows,
                             buffer->weights + buffer->rows));
    buffer->rows += count;
    return SL_OK;
}

/* Encodes a row without values: one empty text stands for every feature's column. */
sl_status sl_encoder_append_missing(sl_encoder *e, size_t count, sl_rows_buffer *buffer) {
    static const int64_t offsets[] = {0, 0};
    static const sl_column empty = {.name = "missing", .type = SL_COLUMN_TEXT, .values = "", .offsets = offsets};
    const sl_table table = {.struct_size = sizeof table, .rows = 1, .column_count = 1, .columns = &empty};
    for (size_t i = 0; i < e->features->count; i++)
        e->columns[i] = &empty;
    size_t rows = buffer->rows;
    sl_status status = SL_OK;
    for (size_t i = 0; i < count && status == SL_OK; i++) {
        status = append_rows(e, &(row_span){.table = &table, .count = 1, .buffer = buffer});
        if (status == SL_OK && e->with_labels) buffer->labels[buffer->rows] = buffer->weights[buffer->rows] = 0;
        buffer->rows += status == SL_OK;
    }
    if (status != SL_OK) buffer->rows = rows;
    return status;
}
