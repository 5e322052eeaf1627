/* Items prepared for one model before requests come. Each item has its part of the first layer and of the wide sum, or
 * its encoded features; and its group. */
#ifndef SL_RECOMMEND_PREPARE_H
#define SL_RECOMMEND_PREPARE_H

#include "recommend/prepare_part.h"

typedef struct sl_prepare_params {
    const sl_allocator *allocator;
    const sl_ranker *ranker;
    sl_index *index;
    sl_items *items; /* NULL: no table. The caller holds its lock */
    sl_item_part kind;
    const char *group; /* the name of the column of groups, or NULL */
    size_t threads;
} sl_prepare_params;

/* Prepares all items. Errors: as of sl_recommender_create. */
sl_status sl_prepared_make(const sl_prepare_params *params, sl_prepared **out);
void sl_prepared_free(sl_prepared *prepared);
/* Prepares all rows of `from`, a part of the item table, and makes room for them in the catalog. Readers see nothing
 * yet. */
sl_status sl_prepared_stage(sl_prepared *prepared, const sl_items_part *from, sl_prepared_part **out);
/* Puts the prepared part to use. Can't fail. */
void sl_prepared_commit(sl_prepared *prepared, sl_prepared_part *part);
/* Deletes ids whose room is reserved in the catalog. Can't fail. */
void sl_prepared_delete(sl_prepared *prepared, const uint64_t *ids, size_t n);
/* Returns whether enough rows are outdated to compact. */
int sl_prepared_needs_compaction(const sl_prepared *prepared);
/* Copies the current rows into one part of a new sl_prepared. Errors: SL_ENOMEM, SL_ELIMIT. */
sl_status sl_prepared_compact(const sl_prepared *prepared, sl_prepared **out);

#endif
