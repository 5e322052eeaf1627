#include "ranker/features/encode.h"
#include "ranker/features/encode_cells.h"
#include "recommend/recommender.h"

#include <math.h>
#include <string.h>

static int is_pair(const sl_feature *feature) {
    return feature->side == SL_SIDE_PAIR;
}

static int has_pairs(const sl_features *features) {
    for (size_t f = 0; f < features->count; f++)
        if (is_pair(&features->features[f])) return 1;
    return 0;
}

static sl_status make_array(const sl_pair_rows *rows, size_t count, size_t element, void *out) {
    void *block;
    size_t bytes;
    if (!sl_mul(count, element, &bytes)) return sl_fail(SL_ENOMEM, "%zu candidates do not fit", rows->max_rows);
    SL_TRY(sl_mem_alloc(&rows->allocator, bytes, &block));
    memcpy(out, &block, sizeof block);
    return SL_OK;
}

sl_status sl_pair_rows_init(sl_pair_rows *rows, const sl_features *features, const sl_item_shape *shape,
                            size_t max_rows, const sl_allocator *allocator) {
    *rows = (sl_pair_rows){.allocator = *allocator, .features = features, .shape = *shape, .max_rows = max_rows};
    rows->needed = shape->keeps_dense || has_pairs(features);
    if (!rows->needed) return SL_OK;
    SL_TRY(make_array(rows, max_rows * features->dense_width, sizeof *rows->dense, &rows->dense));
    SL_TRY(make_array(rows, max_rows * features->id_count, sizeof *rows->ids, &rows->ids));
    return make_array(rows, max_rows * features->bag_count + 1, sizeof *rows->bag_start, &rows->bag_start);
}

void sl_pair_rows_free(sl_pair_rows *rows) {
    if (!rows->features) return;
    const sl_features *features = rows->features;
    const sl_allocator *allocator = &rows->allocator;
    SL_FREE_ARRAY(allocator, rows->dense, rows->max_rows * features->dense_width);
    SL_FREE_ARRAY(allocator, rows->ids, rows->max_rows * features->id_count);
    SL_FREE_ARRAY(allocator, rows->bag_start, rows->max_rows * features->bag_count + 1);
    SL_FREE_ARRAY(allocator, rows->bag_ids, rows->bag_room);
    *rows = (sl_pair_rows){0};
}

/* ---------------------------------------------------------------------------------------------------------------
 * Single values
 * ------------------------------------------------------------------------------------------------------------- */

/* Copies all columns of the items, if none of them is prepared ahead. */
static void put_items(sl_pair_rows *rows, const sl_candidate *candidates, size_t count) {
    const sl_features *features = rows->features;
    const sl_item_shape *shape = &rows->shape;
    float *dense = rows->dense + shape->dense_at;
    uint32_t *ids = rows->ids + shape->id_at;
    for (size_t i = 0; i < count && shape->dense_width; i++)
        memcpy(dense + i * features->dense_width, candidates[i].part->dense + candidates[i].row * shape->dense_width,
               shape->dense_width * sizeof *dense);
    for (size_t i = 0; i < count && shape->id_width; i++)
        memcpy(ids + i * features->id_count, candidates[i].part->ids + candidates[i].row * shape->id_width,
               shape->id_width * sizeof *ids);
}

/* Copies the items' columns that a cross needs. They are so few that one memcpy per row would cost more. */
static void put_parents(sl_pair_rows *rows, const sl_feature *cross, const sl_candidate *candidates, size_t count) {
    const sl_features *features = rows->features;
    const sl_item_shape *shape = &rows->shape;
    for (size_t p = 0; p < cross->spec->of_count; p++) {
        const sl_feature *parent = &features->features[cross->spec->of[p]];
        if (parent->side != SL_SIDE_ITEM || parent->form != SL_FORM_ID) continue;
        uint32_t *out = rows->ids + parent->at;
        size_t column = parent->at - shape->id_at;
        for (size_t i = 0; i < count; i++)
            out[i * features->id_count] = candidates[i].part->ids[candidates[i].row * shape->id_width + column];
    }
}

/* Writes the recall scores as a feature. */
static void put_scores(sl_pair_rows *rows, const sl_feature *feature, const float *recall_scores, size_t count) {
    size_t stride = rows->features->dense_width;
    float *out = rows->dense + feature->at;
    for (size_t i = 0; i < count; i++, out += stride) {
        out[0] = sl_encode_number(feature, (double)recall_scores[i]);
        if (feature->width > 1) out[1] = (float)(isnan(recall_scores[i]) != 0);
    }
}

/* Computes a cross of single values. All candidates share the user's ids. */
static void put_crosses(sl_pair_rows *rows, const sl_feature *cross, const sl_encoded *user, size_t count) {
    const sl_features *features = rows->features;
    uint32_t parents[SL_MAX_PARENTS];
    const sl_feature *from[SL_MAX_PARENTS];
    for (size_t p = 0; p < cross->spec->of_count; p++) {
        from[p] = &features->features[cross->spec->of[p]];
        if (from[p]->side == SL_SIDE_USER) parents[p] = user->ids[from[p]->at];
    }
    uint32_t *ids = rows->ids;
    for (size_t i = 0; i < count; i++, ids += features->id_count) {
        for (size_t p = 0; p < cross->spec->of_count; p++)
            if (from[p]->side != SL_SIDE_USER) parents[p] = ids[from[p]->at];
        ids[cross->at] = sl_cross_id(cross, parents, cross->spec->of_count);
    }
}

/* ---------------------------------------------------------------------------------------------------------------
 * Bags
 * ------------------------------------------------------------------------------------------------------------- */

static sl_status make_room(sl_pair_rows *rows, size_t need) {
    sl_status status = SL_OK;
    if (need > UINT32_MAX) return sl_fail(SL_ELIMIT, "the candidates' bags have more than 2^32 ids");
    rows->bag_ids = sl_mem_grow(&rows->allocator, rows->bag_ids, &rows->bag_room, need, sizeof *rows->bag_ids, &status);
    return status;
}

/* Writes the bags of a candidate's item from *at on. */
static sl_status put_item_bags(sl_pair_rows *rows, const sl_candidate *candidate, uint32_t *start, size_t *at) {
    const sl_item_shape *shape = &rows->shape;
    const size_t width = shape->keeps_ids ? shape->bag_width : 0;
    for (size_t b = 0; b <= shape->bag_width; b++)
        start[shape->bag_at + b] = (uint32_t)*at;
    if (!width) return SL_OK;
    const uint32_t *from = candidate->part->bag_start + candidate->row * width;
    size_t count = from[width] - from[0];
    SL_TRY(make_room(rows, *at + count));
    if (count) memcpy(rows->bag_ids + *at, candidate->part->bag_ids + from[0], count * sizeof *rows->bag_ids);
    for (size_t b = 0; b <= width; b++)
        start[shape->bag_at + b] = (uint32_t)(*at + from[b] - from[0]);
    *at += count;
    return SL_OK;
}

/* Computes a cross with one multi-valued parent, the user's or the item's: an id for each of its values. */
static sl_status put_bag_cross(sl_pair_rows *rows, const sl_feature *cross, const sl_encoded *user, size_t row,
                               size_t *at) {
    const sl_features *features = rows->features;
    const uint32_t *start = rows->bag_start + row * features->bag_count, *own = rows->ids + row * features->id_count;
    uint32_t parents[SL_MAX_PARENTS];
    size_t turn = 0, from = 0, to = 0;
    const sl_feature *bag = NULL;
    for (size_t p = 0; p < cross->spec->of_count; p++) {
        const sl_feature *parent = &features->features[cross->spec->of[p]];
        if (parent->form == SL_FORM_ID) {
            parents[p] = (parent->side == SL_SIDE_USER ? user->ids : own)[parent->at];
            continue;
        }
        bag = parent;
        turn = p;
        from = (parent->side == SL_SIDE_USER ? user->bag_start : start)[parent->at];
        to = (parent->side == SL_SIDE_USER ? user->bag_start : start)[parent->at + 1];
    }
    if (!bag) return SL_OK;
    SL_TRY(make_room(rows, *at + (to - from)));
    const uint32_t *ids = bag->side == SL_SIDE_USER ? user->bag_ids : rows->bag_ids;
    for (; from < to; from++) {
        parents[turn] = ids[from];
        rows->bag_ids[(*at)++] = sl_cross_id(cross, parents, cross->spec->of_count);
    }
    return SL_OK;
}

/* Writes all bags. A row has them in the order of the sides. The user's bags stay empty, because nothing here is
 * computed from them. */
static sl_status put_bags(sl_pair_rows *rows, const sl_encoded *user, const sl_candidate *candidates, size_t count) {
    const sl_features *features = rows->features;
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t *start = rows->bag_start + i * features->bag_count;
        for (size_t b = 0; b < rows->shape.bag_at; b++)
            start[b] = (uint32_t)at;
        SL_TRY(put_item_bags(rows, &candidates[i], start, &at));
        for (size_t f = 0; f < features->count; f++) {
            const sl_feature *feature = &features->features[f];
            if (!is_pair(feature) || feature->form != SL_FORM_BAG) continue;
            start[feature->at] = (uint32_t)at;
            SL_TRY(put_bag_cross(rows, feature, user, i, &at));
            start[feature->at + 1] = (uint32_t)at;
        }
    }
    return SL_OK;
}

sl_status sl_pair_rows_fill(sl_pair_rows *rows, const sl_encoded *user, const sl_candidate *candidates,
                            const float *recall_scores, size_t count, sl_encoded *out) {
    const sl_features *features = rows->features;
    if (rows->shape.keeps_dense) put_items(rows, candidates, count);
    for (size_t f = 0; f < features->count; f++) {
        const sl_feature *feature = &features->features[f];
        if (!is_pair(feature)) continue;
        if (feature->spec->type == SL_FEATURE_CROSS && !rows->shape.keeps_dense)
            put_parents(rows, feature, candidates, count);
        if (feature->form == SL_FORM_DENSE)
            put_scores(rows, feature, recall_scores, count);
        else if (feature->form == SL_FORM_ID)
            put_crosses(rows, feature, user, count);
    }
    if (features->bag_count) SL_TRY(put_bags(rows, user, candidates, count));
    *out = (sl_encoded){.struct_size = sizeof *out,
                        .rows = count,
                        .dense = rows->dense,
                        .ids = rows->ids,
                        .bag_start = rows->bag_start,
                        .bag_ids = rows->bag_ids};
    return SL_OK;
}
