#include "recommend/prepare.h"

#include "base/failure.h"
#include "hnsw/search/accessors.h"
#include "ranker/features/table.h"
#include "recommend/side.h"

#include <string.h>

/* Bytes of a part: some huge pages, but so few that all threads get parts. */
#define PART_BYTES ((size_t)8 << 20)
/* Prepared rows are compacted once their waste exceeds both OUTDATED_LEAST and the number of items. A part counts as
 * PART_COSTS rows of waste. */
#define OUTDATED_LEAST 4096u
#define PART_COSTS     4u

/* ---------------------------------------------------------------------------------------------------------------
 * The needs of a model
 * ------------------------------------------------------------------------------------------------------------- */

/* Returns whether the model crosses user and item, which needs the item's ids. */
static int has_pair_cross(const sl_features *features) {
    for (size_t f = 0; f < features->count; f++)
        if (features->features[f].side == SL_SIDE_PAIR && features->features[f].spec->type == SL_FEATURE_CROSS)
            return 1;
    return 0;
}

static sl_dtype layer_type_of(sl_item_part kind) {
    return kind == SL_ITEM_LAYER_BF16 ? SL_BF16 : kind == SL_ITEM_LAYER_I8 ? SL_I8 : SL_F32;
}

static sl_item_shape shape_of(const sl_ranker *ranker, sl_item_part kind) {
    const sl_features *features = ranker->features;
    const size_t side = SL_SIDE_ITEM;
    const int ahead = kind != SL_ITEM_CODES;
    sl_item_shape shape = {.dense_at = features->dense_side[side],
                           .id_at = features->id_side[side],
                           .bag_at = features->bag_side[side],
                           .deep_at = features->deep_side[side],
                           .layer_type = layer_type_of(kind)};
    shape.dense_width = features->dense_side[side + 1] - shape.dense_at;
    shape.id_width = features->id_side[side + 1] - shape.id_at;
    shape.bag_width = features->bag_side[side + 1] - shape.bag_at;
    shape.deep_width = features->deep_side[side + 1] - shape.deep_at;
    shape.keeps_dense = !ahead;
    shape.keeps_ids = !ahead || has_pair_cross(features);
    shape.wide_ahead = ahead && features->wide_size > 0;
    if (ahead && ranker->net && shape.deep_width) shape.first_width = ranker->shape.width[1];
    return shape;
}

static sl_status check_vectors(const sl_features *features, const sl_index_stats *stats, size_t *item_vectors) {
    const size_t dim = stats->dim;
    for (size_t f = 0; f < features->count; f++) {
        const sl_feature *feature = &features->features[f];
        int item = sl_feature_from_index(feature, SL_SIDE_ITEM);
        *item_vectors += (size_t)item;
        if ((item || sl_feature_from_index(feature, SL_SIDE_USER)) && feature->spec->dim != dim)
            return sl_fail(SL_EDIM, "feature '%s' is a vector of %zu elements, the index's have %zu",
                           feature->spec->name, feature->spec->dim, dim);
        if (item && stats->multi)
            return sl_fail(SL_EUNSUPPORTED,
                           "feature '%s' is an item's vector in the index, where an item may have several; give an "
                           "index without multi, or the vectors as a column of items",
                           feature->spec->name);
    }
    return SL_OK;
}

static sl_status find_group(const sl_prepare_params *params, size_t *out) {
    *out = SIZE_MAX;
    if (!params->group) return SL_OK;
    if (!params->items)
        return sl_fail(SL_ENOTFOUND, "groups are named by column '%s', but there is no item table", params->group);
    *out = sl_items_column(params->items, params->group);
    if (*out == SIZE_MAX) return sl_fail_no_item_column(&params->items->schema, params->group, " of groups");
    sl_column_type type = params->items->schema.columns[*out].type;
    if (type != SL_COLUMN_TEXTS && type != SL_COLUMN_VECTOR) return SL_OK;
    return sl_fail(SL_ETYPE, "column '%s' is %s; an item is in one group, so that its column has single values",
                   params->group, sl_column_type_name(type));
}

/* Checks the columns with a row of missing values, so that an empty table is checked too. */
static sl_status check_columns(const sl_prepare_params *params, sl_preparer *preparer) {
    const sl_items *items = params->items;
    if (!params->ranker) return SL_OK;
    if (!items) {
        if (!sl_side_has_columns(params->ranker->features, SL_SIDE_ITEM)) return SL_OK;
        return sl_fail(SL_ENOTFOUND, "the model has features of items, but there is no item table; give one");
    }
    const uint64_t id = 0;
    const sl_part_rows row = {.ids = &id, .n = 1};
    sl_items_part *part = NULL;
    SL_TRY(sl_items_part_make(params->allocator, &items->schema, &row, &part));
    sl_status status = sl_preparer_check(preparer, &part->table);
    sl_items_part_free(params->allocator, &items->schema, part);
    return status;
}

/* ---------------------------------------------------------------------------------------------------------------
 * The rows to prepare
 * ------------------------------------------------------------------------------------------------------------- */

/* All items: those of the table, in its order. Without a table, those of the index, if its vectors are features. */
typedef struct item_list {
    const sl_item_body *body;
    sl_row_ref *refs;
    uint64_t *ids;
    size_t n, room;
} item_list;

static sl_status list_make(const sl_prepare_params *params, int from_index, item_list *list) {
    void *block;
    const sl_item_body *body = params->items ? sl_items_body(params->items) : NULL;
    list->body = body;
    list->room = body ? sl_catalog_size(&body->catalog) : from_index ? sl_index_size(params->index) : 0;
    SL_TRY(sl_mem_alloc(params->allocator, list->room * sizeof *list->ids, &block));
    list->ids = block;
    if (!body) {
        if (!from_index) return SL_OK;
        SL_TRY(sl_index_ids(params->index, list->ids, list->room, &list->n));
        /* A damaged file may have fewer tombstones than it counts. */
        if (list->n > list->room) list->n = list->room;
        return SL_OK;
    }
    SL_TRY(sl_mem_alloc(params->allocator, list->room * sizeof *list->refs, &block));
    list->refs = block;
    list->n = sl_item_body_list(body, list->refs, list->ids);
    return SL_OK;
}

static void list_free(const sl_allocator *allocator, item_list *list) {
    SL_FREE_ARRAY(allocator, list->ids, list->room);
    SL_FREE_ARRAY(allocator, list->refs, list->room);
}

/* ---------------------------------------------------------------------------------------------------------------
 * Preparing all items
 * ------------------------------------------------------------------------------------------------------------- */

/* The list, cut into parts that threads prepare. */
typedef struct prepare_task {
    const item_list *list;
    size_t rows, count; /* rows per part; number of parts */
    size_t threads;
    sl_preparer **preparers;
    sl_prepared_part **parts;
} prepare_task;

/* Returns the rows per part. If there are enough rows, each thread gets at least four parts. */
static size_t rows_of_part(const sl_prepared *prepared, size_t n, size_t threads) {
    const sl_item_shape *shape = &prepared->shape;
    size_t bytes = sl_item_layer_bytes(shape) + shape->dense_width * sizeof(float) + 64;
    size_t rows = PART_BYTES / bytes, most = n / (4 * threads);
    if (rows > most) rows = most;
    return rows < SL_SIDE_ROWS ? SL_SIDE_ROWS : sl_round_up(rows, SL_SIDE_ROWS);
}

static sl_status prepare_one_part(prepare_task *t, size_t number, sl_preparer *preparer) {
    size_t at = number * t->rows, left = t->list->n - at;
    const sl_source_rows rows = {.body = t->list->body,
                                 .refs = t->list->refs ? t->list->refs + at : NULL,
                                 .ids = t->list->ids + at,
                                 .n = left < t->rows ? left : t->rows};
    return sl_preparer_run(preparer, &rows, &t->parts[number]);
}

static sl_status prepare_parts(prepare_task *t) {
    sl_failure failure;
    if (t->threads == 1) {
        for (size_t i = 0; i < t->count; i++)
            SL_TRY(prepare_one_part(t, i, t->preparers[0]));
        return SL_OK;
    }
    sl_failure_init(&failure);
#pragma omp parallel for schedule(dynamic, 1) num_threads((int)t->threads)
    for (size_t i = 0; i < t->count; i++)
        if (!sl_failure_before(&failure, i))
            sl_failure_keep(&failure, i, prepare_one_part(t, i, t->preparers[sl_thread_number()]));
    return sl_failure_pass(&failure);
}

/* Gives the parts to the catalog. */
static sl_status commit_parts(sl_prepared *prepared, const item_list *list, prepare_task *t) {
    SL_TRY(sl_catalog_reserve(&prepared->catalog, list->ids, list->n, t->count));
    for (size_t i = 0; i < t->count; i++) {
        sl_prepared_commit(prepared, t->parts[i]);
        t->parts[i] = NULL;
    }
    return SL_OK;
}

static sl_status prepare_list(sl_prepared *prepared, const item_list *list, prepare_task *t) {
    void *block;
    t->list = list;
    t->rows = rows_of_part(prepared, list->n, t->threads);
    t->count = (list->n + t->rows - 1) / t->rows;
    SL_TRY(sl_mem_alloc(&prepared->allocator, t->count * sizeof *t->parts, &block));
    t->parts = block;
    sl_status status = prepare_parts(t);
    if (status == SL_OK) status = commit_parts(prepared, list, t);
    for (size_t i = 0; i < t->count; i++)
        sl_prepared_part_free(prepared, t->parts[i]);
    SL_FREE_ARRAY(&prepared->allocator, t->parts, t->count);
    return status;
}

static sl_status prepare_all(sl_prepared *prepared, const sl_prepare_params *params, int from_index) {
    const sl_allocator *allocator = params->allocator;
    prepare_task t = {.threads = sl_thread_count(params->threads)};
    item_list list = {0};
    void *block = NULL;
    sl_status status;
    SL_TRY_GOTO(sl_mem_alloc(allocator, t.threads * sizeof *t.preparers, &block), done);
    t.preparers = block;
    for (size_t i = 0; i < t.threads; i++)
        SL_TRY_GOTO(sl_preparer_create(prepared, &t.preparers[i]), done);
    SL_TRY_GOTO(check_columns(params, t.preparers[0]), done);
    const uint64_t nobody = SL_NO_ID; /* the index has no vector of this id */
    const sl_source_rows missing = {.ids = &nobody, .n = 1};
    SL_TRY_GOTO(sl_preparer_run(t.preparers[0], &missing, &prepared->missing), done);
    SL_TRY_GOTO(list_make(params, from_index, &list), done);
    SL_TRY_GOTO(prepare_list(prepared, &list, &t), done);
done:
    list_free(allocator, &list);
    for (size_t i = 0; i < t.threads && t.preparers; i++)
        sl_preparer_free(t.preparers[i]);
    sl_mem_free(allocator, block, t.threads * sizeof *t.preparers);
    return status;
}

static sl_status prepared_new(const sl_allocator *allocator, sl_prepared **out) {
    void *block;
    SL_TRY(sl_mem_alloc(allocator, sizeof(sl_prepared), &block));
    *out = block;
    (*out)->allocator = *allocator;
    sl_status status = sl_catalog_init(&(*out)->catalog, allocator);
    if (status != SL_OK) sl_mem_free(allocator, block, sizeof **out);
    return status;
}

sl_status sl_prepared_make(const sl_prepare_params *params, sl_prepared **out) {
    size_t group, vectors = 0;
    sl_index_stats stats = {.struct_size = sizeof stats};
    SL_TRY(sl_index_get_stats(params->index, &stats));
    if (params->ranker) SL_TRY(check_vectors(params->ranker->features, &stats, &vectors));
    SL_TRY(find_group(params, &group));
    sl_prepared *prepared;
    SL_TRY(prepared_new(params->allocator, &prepared));
    prepared->ranker = params->ranker;
    prepared->index = params->index;
    if (params->ranker) prepared->shape = shape_of(params->ranker, params->kind);
    prepared->group = group;
    prepared->vectors = vectors > 0;
    prepared->lists_items = params->items || vectors;
    sl_status status = SL_OK;
    if (params->items) status = sl_catalog_copy_tombstones(&prepared->catalog, &sl_items_body(params->items)->catalog);
    if (status == SL_OK) status = prepare_all(prepared, params, vectors > 0);
    if (status == SL_OK)
        *out = prepared;
    else
        sl_prepared_free(prepared);
    return status;
}

void sl_prepared_free(sl_prepared *prepared) {
    if (!prepared) return;
    for (size_t p = 0; p < sl_catalog_parts(&prepared->catalog); p++)
        sl_prepared_part_free(prepared, sl_catalog_part(&prepared->catalog, p));
    sl_prepared_part_free(prepared, prepared->missing);
    sl_preparer_free(prepared->updater);
    sl_catalog_free(&prepared->catalog);
    sl_allocator allocator = prepared->allocator;
    SL_FREE(&allocator, prepared);
}

/* ---------------------------------------------------------------------------------------------------------------
 * Updates
 * ------------------------------------------------------------------------------------------------------------- */

sl_status sl_prepared_stage(sl_prepared *prepared, const sl_items_part *from, sl_prepared_part **out) {
    const sl_source_rows rows = {.part = from, .ids = from->ids, .n = from->table.rows};
    SL_TRY(sl_catalog_reserve(&prepared->catalog, from->ids, rows.n, 1));
    if (!prepared->updater) SL_TRY(sl_preparer_create(prepared, &prepared->updater));
    return sl_preparer_run(prepared->updater, &rows, out);
}

void sl_prepared_commit(sl_prepared *prepared, sl_prepared_part *part) {
    size_t number = sl_catalog_add(&prepared->catalog, part);
    prepared->bytes += sl_prepared_part_bytes(prepared, part);
    for (size_t row = 0; row < part->rows; row++)
        prepared->outdated += !sl_catalog_put(&prepared->catalog, part->items[row], sl_ref_of(number, row));
}

void sl_prepared_delete(sl_prepared *prepared, const uint64_t *ids, size_t n) {
    for (size_t i = 0; i < n; i++)
        prepared->outdated += (size_t)sl_catalog_delete(&prepared->catalog, ids[i]);
}

int sl_prepared_needs_compaction(const sl_prepared *prepared) {
    size_t waste = prepared->outdated + PART_COSTS * sl_catalog_parts(&prepared->catalog);
    return waste > OUTDATED_LEAST && waste > sl_catalog_size(&prepared->catalog);
}

/* Copies a part's current rows to row *at of `to` and on, and their bags to *bags and on. Advances both. */
static void copy_rows(const sl_prepared *prepared, size_t number, sl_prepared_part *to, size_t *at, size_t *bags) {
    const sl_prepared_part *from = sl_catalog_part(&prepared->catalog, number);
    const sl_item_shape *shape = &prepared->shape;
    const size_t width = shape->bag_width;
    for (size_t row = 0; row < from->rows; row++) {
        if (sl_catalog_find(&prepared->catalog, from->items[row]) != sl_ref_of(number, row)) continue;
        size_t i = (*at)++;
        to->items[i] = from->items[row];
        to->marks[i] = from->marks[row];
        if (to->births) to->births[i] = from->births ? from->births[row] : 1;
#define SL_COPY(field, columns)                                                                                        \
    if (from->field) memcpy(to->field + i * (columns), from->field + row * (columns), (columns) * sizeof *to->field)
        SL_COPY(layer, sl_item_layer_bytes(shape));
        SL_COPY(dense, shape->dense_width);
        SL_COPY(ids, shape->id_width);
#undef SL_COPY
        if (!from->bag_start) continue;
        const uint32_t *start = from->bag_start + row * width;
        memcpy(to->bag_ids + *bags, from->bag_ids + start[0], (start[width] - start[0]) * sizeof *to->bag_ids);
        for (size_t b = 0; b < width; b++)
            to->bag_start[i * width + b + 1] = (uint32_t)(*bags + start[b + 1] - start[0]);
        *bags += start[width] - start[0];
    }
}

/* Counts the bag ids of the current rows. */
static size_t count_bags(const sl_prepared *prepared) {
    const size_t width = prepared->shape.bag_width;
    size_t count = 0;
    for (size_t p = 0; p < sl_catalog_parts(&prepared->catalog); p++) {
        const sl_prepared_part *part = sl_catalog_part(&prepared->catalog, p);
        for (size_t row = 0; row < part->rows && part->bag_start; row++)
            if (sl_catalog_find(&prepared->catalog, part->items[row]) == sl_ref_of(p, row))
                count += part->bag_start[(row + 1) * width] - part->bag_start[row * width];
    }
    return count;
}

static int has_births(const sl_prepared *prepared) {
    int has = 0;
    for (size_t p = 0; p < sl_catalog_parts(&prepared->catalog); p++) {
        const sl_prepared_part *part = sl_catalog_part(&prepared->catalog, p);
        has |= part->births != NULL;
    }
    return has;
}

sl_status sl_prepared_compact(const sl_prepared *prepared, sl_prepared **out) {
    sl_prepared *copy;
    sl_prepared_part *part = NULL;
    void *ids;
    size_t at = 0, bags = 0, room = count_bags(prepared);
    if (room > UINT32_MAX) return sl_fail(SL_ELIMIT, "items' bags have more than 2^32 ids");
    SL_TRY(prepared_new(&prepared->allocator, &copy));
    copy->ranker = prepared->ranker;
    copy->index = prepared->index;
    copy->shape = prepared->shape;
    copy->group = prepared->group;
    copy->vectors = prepared->vectors;
    copy->lists_items = prepared->lists_items;
    sl_status status;
    const uint64_t nobody = SL_NO_ID;
    const sl_source_rows missing = {.ids = &nobody, .n = 1};
    SL_TRY_GOTO(sl_preparer_create(copy, &copy->updater), done);
    SL_TRY_GOTO(sl_preparer_run(copy->updater, &missing, &copy->missing), done);
    SL_TRY_GOTO(sl_prepared_part_new(copy, sl_catalog_size(&prepared->catalog), &part), done);
    if (has_births(prepared)) SL_TRY_GOTO(sl_prepared_part_births(copy, part), done);
    if (room) {
        SL_TRY_GOTO(sl_mem_alloc(&copy->allocator, room * sizeof *part->bag_ids, &ids), done);
        part->bag_ids = ids;
        part->bag_room = room;
    }
    for (size_t p = 0; p < sl_catalog_parts(&prepared->catalog); p++)
        copy_rows(prepared, p, part, &at, &bags);
    SL_TRY_GOTO(sl_catalog_copy_tombstones(&copy->catalog, &prepared->catalog), done);
    SL_TRY_GOTO(sl_catalog_reserve(&copy->catalog, part->items, part->rows, 1), done);
    sl_prepared_commit(copy, part);
    part = NULL;
    *out = copy;
    copy = NULL;
done:
    if (part) sl_prepared_part_free(copy, part);
    sl_prepared_free(copy);
    return status;
}
