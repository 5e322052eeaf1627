#include "recommend/prepare_part.h"

#include "distance/codec/convert.h"
#include "distance/codec/quantise.h"
#include "hnsw/search/accessors.h"
#include "ranker/features/table.h"
#include "ranker/features/vocabulary.h"
#include "recommend/side.h"

#include <string.h>

struct sl_preparer {
    const sl_prepared *prepared;
    sl_side_encoder side; /* of the items' side */
    int encodes;          /* 1: there is a model */
    sl_net_run *run;      /* NULL: the items' part of the first layer isn't kept */
    float *sums;          /* (SL_SIDE_ROWS, first_width): that part before rounding; NULL: it's kept as floats */
    size_t bag_at;        /* ids in the part's bags so far */
    float wide[SL_SIDE_ROWS];
};

/* ---------------------------------------------------------------------------------------------------------------
 * Memory
 * ------------------------------------------------------------------------------------------------------------- */

static sl_status part_array(const sl_prepared *prepared, size_t rows, size_t width, size_t element, void *out) {
    void *block;
    size_t bytes;
    if (width == 0) return SL_OK;
    if (!sl_mul(rows, width, &bytes) || !sl_mul(bytes, element, &bytes))
        return sl_fail(SL_ENOMEM, "%zu prepared items do not fit the address space", rows);
    SL_TRY(sl_mem_alloc(&prepared->allocator, bytes, &block));
    memcpy(out, &block, sizeof block);
    return SL_OK;
}

static size_t dense_kept(const sl_item_shape *shape) {
    return shape->keeps_dense ? shape->dense_width : 0;
}
static size_t ids_kept(const sl_item_shape *shape) {
    return shape->keeps_ids ? shape->id_width : 0;
}
static size_t bags_kept(const sl_item_shape *shape) {
    return shape->keeps_ids ? shape->bag_width : 0;
}

/* The width of `sums`. */
static size_t sums_width(const sl_item_shape *shape) {
    return shape->layer_type == SL_F32 ? 0 : shape->first_width;
}

sl_status sl_prepared_part_new(const sl_prepared *prepared, size_t rows, sl_prepared_part **out) {
    const sl_item_shape *shape = &prepared->shape;
    void *block;
    SL_TRY(sl_mem_alloc(&prepared->allocator, sizeof(sl_prepared_part), &block));
    sl_prepared_part *part = block;
    part->rows = rows;
    sl_status status;
    SL_TRY_GOTO(part_array(prepared, rows, 1, sizeof *part->items, &part->items), fail);
    SL_TRY_GOTO(part_array(prepared, rows, 1, sizeof *part->marks, &part->marks), fail);
    SL_TRY_GOTO(part_array(prepared, rows, shape->first_width, sl_dtype_size(shape->layer_type), &part->layer), fail);
    SL_TRY_GOTO(part_array(prepared, rows, dense_kept(shape), sizeof *part->dense, &part->dense), fail);
    SL_TRY_GOTO(part_array(prepared, rows, ids_kept(shape), sizeof *part->ids, &part->ids), fail);
    if (bags_kept(shape))
        SL_TRY_GOTO(part_array(prepared, rows * shape->bag_width + 1, 1, sizeof *part->bag_start, &part->bag_start),
                    fail);
    *out = part;
    return SL_OK;
fail:
    sl_prepared_part_free(prepared, part);
    return status;
}

void sl_prepared_part_free(const sl_prepared *prepared, sl_prepared_part *part) {
    if (!part) return;
    const sl_allocator *allocator = &prepared->allocator;
    const sl_item_shape *shape = &prepared->shape;
    size_t rows = part->rows;
    SL_FREE_ARRAY(allocator, part->items, rows);
    SL_FREE_ARRAY(allocator, part->marks, rows);
    sl_mem_free(allocator, part->layer, rows * sl_item_layer_bytes(shape));
    SL_FREE_ARRAY(allocator, part->dense, rows * shape->dense_width);
    SL_FREE_ARRAY(allocator, part->ids, rows * shape->id_width);
    SL_FREE_ARRAY(allocator, part->bag_start, rows * shape->bag_width + 1);
    SL_FREE_ARRAY(allocator, part->bag_ids, part->bag_room);
    SL_FREE_ARRAY(allocator, part->births, rows);
    SL_FREE(allocator, part);
}

size_t sl_prepared_part_bytes(const sl_prepared *prepared, const sl_prepared_part *part) {
    const sl_item_shape *shape = &prepared->shape;
    size_t row = sizeof *part->items + sizeof *part->marks + sl_item_layer_bytes(shape);
    row += dense_kept(shape) * sizeof *part->dense + ids_kept(shape) * sizeof *part->ids;
    row += bags_kept(shape) * sizeof *part->bag_start;
    if (part->births) row += sizeof *part->births;
    return part->rows * row + part->bag_room * sizeof *part->bag_ids;
}

sl_status sl_preparer_create(const sl_prepared *prepared, sl_preparer **out) {
    void *block;
    SL_TRY(sl_mem_alloc(&prepared->allocator, sizeof(sl_preparer), &block));
    sl_preparer *preparer = block;
    preparer->prepared = prepared;
    const sl_ranker *ranker = prepared->ranker;
    sl_status status = SL_OK;
    if (ranker) {
        preparer->encodes = 1;
        SL_TRY_GOTO(sl_side_encoder_init(&preparer->side, ranker->features, SL_SIDE_ITEM, &prepared->allocator), fail);
        if (prepared->shape.first_width)
            SL_TRY_GOTO(sl_net_run_create(ranker->net, SL_SIDE_ROWS, &prepared->allocator, &preparer->run), fail);
        SL_TRY_GOTO(part_array(prepared, SL_SIDE_ROWS, sums_width(&prepared->shape), sizeof(float), &preparer->sums),
                    fail);
    }
    *out = preparer;
    return SL_OK;
fail:
    sl_preparer_free(preparer);
    return status;
}

void sl_preparer_free(sl_preparer *preparer) {
    if (!preparer) return;
    sl_net_run_free(preparer->run);
    sl_side_encoder_free(&preparer->side);
    const sl_prepared *prepared = preparer->prepared;
    SL_FREE_ARRAY(&prepared->allocator, preparer->sums, SL_SIDE_ROWS * sums_width(&prepared->shape));
    SL_FREE(&prepared->allocator, preparer);
}

/* ---------------------------------------------------------------------------------------------------------------
 * Keeping encoded rows
 * ------------------------------------------------------------------------------------------------------------- */

sl_status sl_prepared_part_births(const sl_prepared *prepared, sl_prepared_part *part) {
    if (part->births) return SL_OK;
    SL_TRY(part_array(prepared, part->rows, 1, sizeof *part->births, &part->births));
    for (size_t i = 0; i < part->rows; i++)
        part->births[i] = 1;
    return SL_OK;
}

/* Notes the births of the vectors that rows `at` to at + n - 1 will get. A vector that is replaced after that is newer
 * than noted, never older. */
static sl_status note_births(const sl_prepared *prepared, sl_prepared_part *part, size_t at, size_t n) {
    uint64_t births[SL_SIDE_ROWS];
    size_t first = 0;
    if (!prepared->vectors) return SL_OK;
    SL_TRY(sl_index_births(prepared->index, part->items + at, n, births));
    while (first < n && births[first] == 1)
        first++;
    if (first < n) SL_TRY(sl_prepared_part_births(prepared, part));
    if (part->births) memcpy(part->births + at, births, n * sizeof *births);
    return SL_OK;
}

/* Puts the index's vectors into the encoded rows. An item that the index lacks keeps a missing vector. */
static sl_status put_vectors(sl_preparer *preparer, const uint64_t *ids, size_t n) {
    const sl_prepared *prepared = preparer->prepared;
    const sl_features *features = prepared->ranker->features;
    for (size_t f = 0; f < features->count && preparer->side.vectors; f++) {
        const sl_feature *feature = &features->features[f];
        if (!sl_feature_from_index(feature, SL_SIDE_ITEM)) continue;
        for (size_t i = 0; i < n; i++) {
            sl_status status =
                sl_index_get(prepared->index, &ids[i], 1, SL_F32, sl_side_vector(&preparer->side, feature, i));
            if (status != SL_OK && status != SL_ENOTFOUND) return status;
        }
    }
    return SL_OK;
}

static sl_status keep_bags(sl_preparer *preparer, const sl_encoded *view, sl_prepared_part *part, size_t at) {
    const sl_item_shape *shape = &preparer->prepared->shape;
    const size_t bag_count = preparer->prepared->ranker->features->bag_count, width = shape->bag_width;
    if (!bags_kept(shape)) return SL_OK;
    for (size_t i = 0; i < view->rows; i++) {
        const uint32_t *start = view->bag_start + i * bag_count + shape->bag_at;
        size_t count = start[width] - start[0], used = preparer->bag_at;
        if (used + count > UINT32_MAX)
            return sl_fail(SL_ELIMIT, "items' multi-valued features have too many values; drop some of them");
        sl_status status = SL_OK;
        part->bag_ids = sl_mem_grow(&preparer->prepared->allocator, part->bag_ids, &part->bag_room, used + count,
                                    sizeof *part->bag_ids, &status);
        SL_TRY(status);
        if (count) memcpy(part->bag_ids + used, view->bag_ids + start[0], count * sizeof(uint32_t));
        for (size_t b = 0; b < width; b++)
            part->bag_start[(at + i) * width + b + 1] = (uint32_t)(used + start[b + 1] - start[0]);
        preparer->bag_at = used + count;
    }
    return SL_OK;
}

static void keep_codes(const sl_item_shape *shape, const sl_features *features, const sl_encoded *view,
                       sl_prepared_part *part, size_t at) {
    for (size_t i = 0; i < view->rows && part->dense; i++)
        memcpy(part->dense + (at + i) * shape->dense_width, view->dense + i * features->dense_width + shape->dense_at,
               shape->dense_width * sizeof(float));
    for (size_t i = 0; i < view->rows && part->ids; i++)
        memcpy(part->ids + (at + i) * shape->id_width, view->ids + i * features->id_count + shape->id_at,
               shape->id_width * sizeof(uint32_t));
}

/* Rounds sums to rows of the part, from row `at` on. In 8 bits, a row with NaN or infinity becomes NaN by its scale. */
static void round_layer(const sl_item_shape *shape, const float *sums, size_t rows, sl_prepared_part *part, size_t at) {
    const size_t width = shape->first_width, bytes = sl_item_layer_bytes(shape);
    for (size_t i = 0; i < rows; i++) {
        const float *from = sums + i * width;
        uint8_t *to = part->layer + (at + i) * bytes;
        if (shape->layer_type == SL_I8)
            part->marks[at + i].scale = sl_quantise(SL_CODES_I8, (sl_clip_rule){SL_CLIP_MINMAX, 0}, from, width, to);
        else
            sl_from_float(shape->layer_type, from, to, width);
    }
}

/* Computes the encoded rows' part of the first layer. */
static sl_status keep_layer(sl_preparer *preparer, const sl_encoded *view, sl_prepared_part *part, size_t at) {
    const sl_ranker *ranker = preparer->prepared->ranker;
    const sl_item_shape *shape = &preparer->prepared->shape;
    const sl_first_part first = {shape->deep_at, shape->deep_width, 0};
    float *inputs = sl_net_run_input(preparer->run);
    float *sums = preparer->sums ? preparer->sums : (float *)part->layer + at * shape->first_width;
    sl_deep_inputs(ranker->features, (const float *const *)ranker->weights.embeddings, &ranker->weights.coded, view,
                   1u << SL_SIDE_ITEM, shape->deep_width, inputs);
    SL_TRY(sl_net_run_first(preparer->run, &first, inputs, shape->deep_width, view->rows, sums));
    if (preparer->sums) round_layer(shape, sums, view->rows, part, at);
    return SL_OK;
}

/* Keeps the encoded rows as rows of the part, from row `at` on. */
static sl_status keep_encoded(sl_preparer *preparer, sl_prepared_part *part, size_t at) {
    const sl_prepared *prepared = preparer->prepared;
    const sl_ranker *ranker = prepared->ranker;
    const sl_item_shape *shape = &prepared->shape;
    sl_encoded view;
    sl_rows_buffer_view(&preparer->side.rows, &view);
    SL_TRY(note_births(prepared, part, at, view.rows));
    SL_TRY(put_vectors(preparer, part->items + at, view.rows));
    if (shape->first_width) SL_TRY(keep_layer(preparer, &view, part, at));
    if (shape->wide_ahead) {
        memset(preparer->wide, 0, view.rows * sizeof *preparer->wide);
        sl_wide_sums(ranker->features, ranker->weights.wide, &view, 1u << SL_SIDE_ITEM, preparer->wide);
        for (size_t i = 0; i < view.rows; i++)
            part->marks[at + i].wide = preparer->wide[i];
    }
    keep_codes(shape, ranker->features, &view, part, at);
    return keep_bags(preparer, &view, part, at);
}

/* ---------------------------------------------------------------------------------------------------------------
 * Rows
 * ------------------------------------------------------------------------------------------------------------- */

static sl_status group_of(const sl_table *table, size_t column, size_t row, uint64_t *out) {
    sl_key key;
    SL_TRY(sl_cell_key(&table->columns[column], row, &key));
    *out = 0;
    if (key.kind == SL_KEY_MISSING) return SL_OK;
    sl_key_text(&key);
    uint64_t hash = sl_text_hash(key.text, key.size);
    /* 0 means that there is no group, so no hash may be 0. */
    *out = hash ? hash : 1;
    return SL_OK;
}

/* The number of rows from the first on that follow one another in one part. */
static size_t run_length(const sl_row_ref *rows, size_t n) {
    size_t length = 1;
    while (length < n && rows[length] == rows[0] + length)
        length++;
    return length;
}

/* Encodes `count` rows of a table from row `first` on, as rows of the part from row `at` on. */
static sl_status encode_run(sl_preparer *preparer, const sl_table *table, size_t first, size_t count,
                            sl_prepared_part *part, size_t at) {
    size_t group = preparer->prepared->group;
    for (size_t i = 0; i < count && group != SIZE_MAX; i++)
        SL_TRY(group_of(table, group, first + i, &part->marks[at + i].group));
    return preparer->encodes ? sl_side_encode(&preparer->side, table, first, count) : SL_OK;
}

/* Prepares rows `at` to at + n - 1 of the part, at most SL_SIDE_ROWS. */
static sl_status prepare_block(sl_preparer *preparer, const sl_source_rows *rows, size_t at, size_t n,
                               sl_prepared_part *part) {
    if (preparer->encodes) preparer->side.rows.rows = 0;
    if (rows->part) {
        SL_TRY(encode_run(preparer, &rows->part->table, at, n, part, at));
    } else if (rows->body) {
        for (size_t i = 0, length; i < n; i += length) {
            const sl_row_ref *ref = &rows->refs[at + i];
            length = run_length(ref, n - i);
            const sl_items_part *from = sl_items_part_of(rows->body, sl_ref_part(*ref));
            SL_TRY(encode_run(preparer, &from->table, sl_ref_row(*ref), length, part, at + i));
        }
    } else if (preparer->encodes) {
        SL_TRY(sl_encoder_append_missing(preparer->side.encoder, n, &preparer->side.rows));
    }
    return preparer->encodes ? keep_encoded(preparer, part, at) : SL_OK;
}

/* Returns whether the model encodes a feature from the column. */
static int is_column_read(const sl_prepared *prepared, const char *column) {
    const sl_features *features = prepared->ranker ? prepared->ranker->features : NULL;
    for (size_t f = 0; features && f < features->count; f++) {
        const sl_feature *feature = &features->features[f];
        if (feature->side == SL_SIDE_ITEM && feature->spec->column && strcmp(feature->spec->column, column) == 0)
            return 1;
    }
    return 0;
}

/* Reads ahead the values of the rows. They are in the order of parts, and only part 0 can lie in a file. */
static void read_rows_ahead(const sl_preparer *preparer, const sl_source_rows *rows) {
    const sl_prepared *prepared = preparer->prepared;
    size_t n = rows->body && rows->body->store ? rows->n : 0;
    while (n && sl_ref_part(rows->refs[n - 1]) != 0)
        n--;
    if (!n) return;
    const sl_items_part *part = sl_items_part_of(rows->body, 0);
    size_t first = sl_ref_row(rows->refs[0]), count = sl_ref_row(rows->refs[n - 1]) - first + 1;
    for (size_t c = 0; c < part->table.column_count; c++)
        if (c == prepared->group || is_column_read(prepared, part->columns[c].name))
            sl_items_part_read_ahead(rows->body, part, c, first, count);
}

sl_status sl_preparer_fill(sl_preparer *preparer, const sl_source_rows *rows, sl_prepared_part *part) {
    if (rows->n) memcpy(part->items, rows->ids, rows->n * sizeof *rows->ids);
    preparer->bag_at = 0;
    for (size_t at = 0; at < rows->n; at += SL_SIDE_ROWS)
        SL_TRY(prepare_block(preparer, rows, at, rows->n - at < SL_SIDE_ROWS ? rows->n - at : SL_SIDE_ROWS, part));
    return SL_OK;
}

sl_status sl_preparer_run(sl_preparer *preparer, const sl_source_rows *rows, sl_prepared_part **out) {
    sl_prepared_part *part;
    SL_TRY(sl_prepared_part_new(preparer->prepared, rows->n, &part));
    read_rows_ahead(preparer, rows);
    sl_status status = sl_preparer_fill(preparer, rows, part);
    if (status == SL_OK)
        *out = part;
    else
        sl_prepared_part_free(preparer->prepared, part);
    return status;
}

sl_status sl_preparer_check(sl_preparer *preparer, const sl_table *table) {
    preparer->side.rows.rows = 0;
    return sl_side_encode(&preparer->side, table, 0, 1);
}
