/* What is known ahead of each item for one model: its part of the first layer and of the wide sum, or its encoded
 * features, and the group it is in. */
#ifndef SL_RECOMMEND_PREPARE_H
#define SL_RECOMMEND_PREPARE_H

#include "ranker/model.h"
#include "recommend/items.h"

typedef struct sl_item_mark {
    uint64_t group; /* a hash of the group's value; 0: in none */
    float wide;     /* its part of the wide sum */
} sl_item_mark;

/* Rows of a catalog's part. Arrays that the model has no use for are NULL. Never changed once it is there. */
typedef struct sl_prepared_part {
    size_t rows;
    uint64_t *items;               /* their ids */
    sl_item_mark *marks;           /* a row each */
    float *layer;                  /* (rows, first_width) */
    float *dense;                  /* (rows, dense_width) */
    uint32_t *ids;                 /* (rows, id_width) */
    uint32_t *bag_start, *bag_ids; /* as in sl_encoded, of bag_width bags */
    size_t bag_room;               /* ids that bag_ids has room for */
} sl_prepared_part;

/* The item's share of what the model's features are encoded to: columns at to at + width. */
typedef struct sl_item_shape {
    size_t dense_at, dense_width;
    size_t id_at, id_width;
    size_t bag_at, bag_width;
    size_t deep_at, deep_width;
    size_t first_width; /* 0 where no item's part of the first layer is kept */
    int keeps_dense, keeps_ids;
    int wide_ahead; /* the wide sum is known ahead */
} sl_item_shape;

typedef struct sl_prepared {
    sl_allocator allocator;
    const sl_ranker *ranker; /* or NULL; whoever keeps this keeps it */
    sl_index *index;
    sl_item_shape shape;
    size_t group;    /* column of the item table, or SIZE_MAX */
    int lists_items; /* whether an id that is not in the catalog is one whose features are not known */
    sl_catalog catalog;
    size_t outdated;             /* rows that newer ones stand for */
    sl_prepared_part *missing;   /* one row: of an item without features */
    struct sl_preparer *updater; /* the changing thread's scratch, once there has been an update */
} sl_prepared;

typedef struct sl_prepare_params {
    const sl_allocator *allocator;
    const sl_ranker *ranker;
    sl_index *index;
    sl_items *items; /* or NULL; locked against changes */
    sl_item_part kind;
    const char *group;
    size_t threads;
} sl_prepare_params;

/* Errors: as of sl_recommender_create. */
sl_status sl_prepared_make(const sl_prepare_params *params, sl_prepared **out);
void sl_prepared_free(sl_prepared *prepared);
/* One more part, of all rows of a part of the item table, with the room it needs in the catalog; not yet in it. */
sl_status sl_prepared_stage(sl_prepared *prepared, const sl_items_part *part, sl_prepared_part **out);
/* Puts it there. Cannot fail. */
void sl_prepared_commit(sl_prepared *prepared, sl_prepared_part *part);
void sl_prepared_part_free(const sl_prepared *prepared, sl_prepared_part *part);
/* Whether so much of it is outdated that a copy of what counts is worth making; and the copy. */
int sl_prepared_is_worn(const sl_prepared *prepared);
sl_status sl_prepared_copy(const sl_prepared *prepared, sl_prepared **out);

/* prepare_part.c */
sl_status sl_prepared_part_new(const sl_prepared *prepared, size_t rows, sl_prepared_part **out);

/* A thread's scratch for preparing rows. */
typedef struct sl_preparer sl_preparer;
sl_status sl_preparer_create(const sl_prepared *prepared, sl_preparer **out);
void sl_preparer_free(sl_preparer *preparer);
/* Rows to prepare: refs of the body's parts; or all rows of one part; or, both NULL, rows without columns. */
typedef struct sl_item_rows {
    const sl_item_body *body;
    const sl_row_ref *refs;
    const sl_items_part *part;
    const uint64_t *ids;
    size_t n;
} sl_item_rows;
sl_status sl_preparer_run(sl_preparer *preparer, const sl_item_rows *rows, sl_prepared_part **out);
/* Whether the model's item features can be made from the columns of a table of one row. Errors: SL_ENOTFOUND, SL_ETYPE,
 * SL_EDIM. */
sl_status sl_preparer_check(sl_preparer *preparer, const sl_table *table);

#endif
