/* Prepared rows, and the preparer that makes them from rows of the item table. */
#ifndef SL_RECOMMEND_PREPARE_PART_H
#define SL_RECOMMEND_PREPARE_PART_H

#include "ranker/model/model.h"
#include "recommend/items.h"

typedef struct sl_item_mark {
    uint64_t group; /* hash of the group's value; 0: no group */
    float wide;     /* the item's part of the wide sum */
    float scale;    /* scale of the item's part of the first layer, if layer_type is SL_I8 */
} sl_item_mark;

/* A part of the catalog: prepared rows that never change. Arrays that the model doesn't use are NULL. */
typedef struct sl_prepared_part {
    size_t rows;
    uint64_t *items;               /* ids of the rows */
    sl_item_mark *marks;           /* one per row */
    uint8_t *layer;                /* (rows, first_width) of layer_type */
    float *dense;                  /* (rows, dense_width) */
    uint32_t *ids;                 /* (rows, id_width) */
    uint32_t *bag_start, *bag_ids; /* as in sl_encoded, of bag_width bags */
    size_t bag_room;               /* capacity of bag_ids */
    uint64_t *births;              /* of the vectors that the rows were made of; NULL: all are 1, or none is used */
} sl_prepared_part;

/* The item's columns among the encoded features of the model: of each kind, columns `at` to at + width - 1. */
typedef struct sl_item_shape {
    size_t dense_at, dense_width;
    size_t id_at, id_width;
    size_t bag_at, bag_width;
    size_t deep_at, deep_width;
    size_t first_width;  /* width of the first layer; 0: the items' part of it isn't kept */
    sl_dtype layer_type; /* of the elements of that part: SL_F32, SL_BF16 or SL_I8 */
    int keeps_dense, keeps_ids;
    int wide_ahead; /* 1: the items' part of the wide sum is kept */
} sl_item_shape;

/* All items, prepared for one model.
 * Threads: as of its catalog. */
typedef struct sl_prepared {
    sl_allocator allocator;
    const sl_ranker *ranker; /* NULL: recall alone. The pair keeps it alive */
    sl_index *index;
    sl_item_shape shape;
    size_t group;    /* column of the item table, or SIZE_MAX */
    int vectors;     /* 1: the model has items' vectors in the index as features */
    int lists_items; /* 1: an id outside the catalog has no features; 0: ids need none */
    sl_catalog catalog;
    size_t outdated; /* rows that were replaced or deleted; only the changing thread uses it */
    size_t bytes;    /* bytes of the catalog's rows, with the outdated ones; only the changing thread uses it */
    sl_prepared_part *missing;   /* one row: an item without features */
    struct sl_preparer *updater; /* the changing thread's scratch; NULL before the first update */
} sl_prepared;

/* Bytes of an item's part of the first layer. */
static inline size_t sl_item_layer_bytes(const sl_item_shape *shape) {
    return shape->first_width * sl_dtype_size(shape->layer_type);
}

/* Makes a part of empty rows. Errors: SL_ENOMEM. */
sl_status sl_prepared_part_new(const sl_prepared *prepared, size_t rows, sl_prepared_part **out);
void sl_prepared_part_free(const sl_prepared *prepared, sl_prepared_part *part);
/* Bytes of the part's rows. */
size_t sl_prepared_part_bytes(const sl_prepared *prepared, const sl_prepared_part *part);

/* One thread's encoder and buffers for preparing rows. */
typedef struct sl_preparer sl_preparer;
sl_status sl_preparer_create(const sl_prepared *prepared, sl_preparer **out);
void sl_preparer_free(sl_preparer *preparer);
/* Rows to prepare. Their columns come from rows refs[i] of the body, or from all rows of the part. Without both, the
 * rows have no columns. */
typedef struct sl_source_rows {
    const sl_item_body *body;
    const sl_row_ref *refs;
    const sl_items_part *part;
    const uint64_t *ids;
    size_t n;
} sl_source_rows;
/* Prepares the rows as a new part. Rows of a body are in its order. Errors: as of a prediction. */
sl_status sl_preparer_run(sl_preparer *preparer, const sl_source_rows *rows, sl_prepared_part **out);
/* Prepares the rows as the first rows of a part, which has room for them. Rows of a body may be in any order. */
sl_status sl_preparer_fill(sl_preparer *preparer, const sl_source_rows *rows, sl_prepared_part *part);
/* Makes the array of births, all of them 1, unless the part has one. Errors: SL_ENOMEM. */
sl_status sl_prepared_part_births(const sl_prepared *prepared, sl_prepared_part *part);
/* Checks that the model's item features can be encoded from a table of one row.
 * Errors: SL_ENOTFOUND, SL_ETYPE, SL_EDIM. */
sl_status sl_preparer_check(sl_preparer *preparer, const sl_table *table);

#endif
