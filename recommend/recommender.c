#include "recommend/recommender.h"

#include "base/params.h"
#include "ranker/features/table.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

void sl_recommender_params_init_sized(sl_recommender_params *params, size_t struct_size) {
    const sl_recommender_params mine = {.struct_size = sizeof mine, .missing_score = NAN};
    sl_params_defaults(params, struct_size, &mine, sizeof mine);
}

/* ---------------------------------------------------------------------------------------------------------------
 * Pairs
 * ------------------------------------------------------------------------------------------------------------- */

/* A sl_guarded_free_fn for pairs; `allocator` is the recommender's. */
static void pair_free(const void *allocator, sl_guarded *object) {
    sl_pair *pair = (sl_pair *)object;
    sl_prepared_free(pair->prepared);
    sl_ranker_free(pair->ranker);
    sl_items_free(pair->items);
    SL_FREE(allocator, pair);
}

/* Makes a pair that keeps model and table alive. Nothing is prepared yet. */
static sl_status pair_new(const sl_recommender *recommender, sl_ranker *ranker, sl_items *items, uint64_t version,
                          sl_pair **out) {
    void *block;
    SL_TRY(sl_mem_alloc(&recommender->allocator, sizeof(sl_pair), &block));
    *out = block;
    (*out)->ranker = ranker ? sl_ranker_retain(ranker) : NULL;
    (*out)->items = sl_items_retain(items);
    (*out)->version = version;
    return SL_OK;
}

/* Verifies a mapped table, unless it's known to be sound. Preparing checks no checksums, so damaged values would get
 * into results. The caller holds the table's lock. */
static sl_status verify_once(sl_item_body *body) {
    if (__atomic_load_n(&body->soundness, __ATOMIC_RELAXED) == SL_SOUND) return SL_OK;
    return sl_item_body_verify(body, NULL);
}

static sl_status pair_make(const sl_recommender *recommender, sl_ranker *ranker, sl_items *items, uint64_t version,
                           sl_pair **out) {
    sl_pair *pair;
    if (ranker && ranker->features->outputs != 1)
        return sl_fail(SL_EINVAL,
                       "the model gives %zu scores an item, of which none is the one to rank by; use one "
                       "with logistic or squared loss",
                       ranker->features->outputs);
    SL_TRY(pair_new(recommender, ranker, items, version, &pair));
    const sl_prepare_params params = {.allocator = &recommender->allocator,
                                      .ranker = ranker,
                                      .index = recommender->index,
                                      .items = items,
                                      .kind = recommender->kind,
                                      .group = recommender->group,
                                      .threads = recommender->threads};
    sl_status status = items ? sl_items_lock(items) : SL_OK;
    if (status == SL_OK) {
        if (items && recommender->verify) status = verify_once(sl_items_body(items));
        if (status == SL_OK) status = sl_prepared_make(&params, &pair->prepared);
        if (items) sl_items_unlock(items);
    }
    if (status == SL_OK)
        *out = pair;
    else
        pair_free(&recommender->allocator, &pair->guarded);
    return status;
}

static void publish_bytes(sl_recommender *recommender, const sl_pair *pair) {
    __atomic_store_n(&recommender->item_bytes, pair->prepared->bytes, __ATOMIC_RELAXED);
}

static void put_in_use(sl_recommender *recommender, sl_pair *pair) {
    sl_hazards_replace(&recommender->pairs, &pair->guarded);
    publish_bytes(recommender, pair);
    __atomic_store_n(&recommender->version, pair->version, __ATOMIC_RELEASE);
}

/* ---------------------------------------------------------------------------------------------------------------
 * Making and freeing
 * ------------------------------------------------------------------------------------------------------------- */

static sl_status read_params(const sl_recommender_params *given, sl_recommender_params *mine) {
    sl_recommender_params_init(mine);
    SL_TRY(sl_params_in(mine, sizeof *mine, given, "sl_recommender_params_init"));
    if ((unsigned)mine->item_part <= SL_ITEM_LAYER_I8) return SL_OK;
    return sl_fail(SL_EINVAL,
                   "item_part is %d; give SL_ITEM_LAYER, SL_ITEM_LAYER_BF16, SL_ITEM_LAYER_I8 or SL_ITEM_CODES",
                   (int)mine->item_part);
}

static sl_status copy_group(sl_recommender *recommender, const char *group) {
    void *block;
    if (!group) return SL_OK;
    recommender->group_size = strlen(group) + 1;
    SL_TRY(sl_mem_alloc(&recommender->allocator, recommender->group_size, &block));
    recommender->group = block;
    memcpy(block, group, recommender->group_size);
    return SL_OK;
}

sl_status sl_recommender_create(sl_index *index, sl_ranker *ranker, sl_items *items,
                                const sl_recommender_params *params, sl_recommender **out) {
    if (!out) return sl_fail(SL_EINVAL, "out is NULL; give the address of a handle");
    *out = NULL;
    if (!index) return sl_fail(SL_EINVAL, "index is NULL");
    sl_recommender_params mine;
    SL_TRY(read_params(params, &mine));
    sl_allocator allocator = sl_allocator_of(mine.allocator);
    void *block;
    SL_TRY(sl_mem_alloc(&allocator, sizeof(sl_recommender), &block));
    sl_recommender *recommender = block;
    recommender->allocator = allocator;
    recommender->log = mine.log;
    recommender->log_ctx = mine.log_ctx;
    recommender->index = index;
    recommender->kind = mine.item_part;
    recommender->threads = mine.threads;
    recommender->verify = mine.verify;
    recommender->missing_score = mine.missing_score;
    sl_gate_init(&recommender->changes);
    sl_hazards_init(&recommender->pairs, &recommender->allocator, pair_free, &recommender->allocator);
    sl_pair *pair;
    sl_status status;
    SL_TRY_GOTO(copy_group(recommender, mine.group), fail);
    SL_TRY_GOTO(pair_make(recommender, ranker, items, 0, &pair), fail);
    put_in_use(recommender, pair);
    *out = recommender;
    return SL_OK;
fail:
    sl_recommender_free(recommender);
    return status;
}

void sl_recommender_free(sl_recommender *recommender) {
    if (!recommender) return;
    sl_hazards_free(&recommender->pairs);
    sl_gate_free(&recommender->changes);
    sl_allocator allocator = recommender->allocator;
    sl_mem_free(&allocator, recommender->group, recommender->group_size);
    SL_FREE(&allocator, recommender);
}

/* ---------------------------------------------------------------------------------------------------------------
 * Changes
 * ------------------------------------------------------------------------------------------------------------- */

static void log_version(const sl_recommender *recommender, const sl_pair *pair) {
    char text[128];
    if (!recommender->log) return;
    snprintf(text, sizeof text, "version %llu is in use, with %zu items prepared", (unsigned long long)pair->version,
             sl_catalog_size(&pair->prepared->catalog));
    recommender->log(recommender->log_ctx, SL_LOG_INFO, text);
}

sl_status sl_recommender_swap(sl_recommender *recommender, sl_ranker *ranker, sl_items *items) {
    if (!recommender) return sl_fail(SL_EINVAL, "recommender is NULL");
    SL_TRY(sl_gate_enter(&recommender->changes));
    const sl_pair *now = sl_recommender_pair(recommender);
    sl_pair *pair;
    sl_status status =
        pair_make(recommender, ranker ? ranker : now->ranker, items ? items : now->items, now->version + 1, &pair);
    if (status == SL_OK) {
        put_in_use(recommender, pair);
        (void)sl_hazards_collect(&recommender->pairs);
        log_version(recommender, pair);
    }
    sl_gate_leave(&recommender->changes);
    return status;
}

/* If many rows are outdated, replaces the pair by one without them. If there is no memory for a copy, the pair stays as
 * it is, which is correct too. */
static void compact_if_outdated(sl_recommender *recommender) {
    const sl_pair *now = sl_recommender_pair(recommender);
    sl_pair *pair;
    if (sl_prepared_needs_compaction(now->prepared) &&
        pair_new(recommender, now->ranker, now->items, now->version, &pair) == SL_OK) {
        if (sl_prepared_compact(now->prepared, &pair->prepared) == SL_OK)
            put_in_use(recommender, pair);
        else
            pair_free(&recommender->allocator, &pair->guarded);
    }
    (void)sl_hazards_collect(&recommender->pairs);
}

static sl_status update_pair(sl_pair *pair, const sl_table *rows, int partial) {
    sl_item_change change;
    sl_prepared_part *part;
    SL_TRY(sl_items_stage(pair->items, rows, partial, &change));
    sl_status status = sl_prepared_stage(pair->prepared, change.part, &part);
    if (status != SL_OK) {
        sl_items_cancel(pair->items, &change);
        return status;
    }
    sl_prepared_commit(pair->prepared, part);
    sl_items_commit(pair->items, &change);
    return SL_OK;
}

/* A change of the table: rows of an update, or ids to delete. */
typedef struct change {
    const sl_table *rows; /* NULL: deletes */
    int partial;
    const uint64_t *ids;
    size_t n;
} change;

static sl_status delete_from_pair(sl_pair *pair, const uint64_t *ids, size_t n) {
    sl_catalog *served = &pair->prepared->catalog;
    SL_TRY(sl_items_check_deletion(pair->items, served, ids, n));
    SL_TRY(sl_catalog_reserve(served, ids, n, 0));
    sl_prepared_delete(pair->prepared, ids, n);
    sl_items_commit_deletion(pair->items, ids, n);
    return SL_OK;
}

static sl_status change_pair(sl_pair *pair, const change *c) {
    if (!c->rows) return c->n ? delete_from_pair(pair, c->ids, c->n) : SL_OK;
    return c->rows->rows ? update_pair(pair, c->rows, c->partial) : SL_OK;
}

static sl_status change_items(sl_recommender *recommender, const change *c) {
    sl_pair *pair = sl_recommender_pair(recommender);
    if (!pair->items) return sl_fail(SL_EINVAL, "there is no item table to change; swap one in");
    SL_TRY(sl_items_lock(pair->items));
    sl_status status = change_pair(pair, c);
    sl_items_unlock(pair->items);
    if (status != SL_OK) return status;
    publish_bytes(recommender, pair);
    compact_if_outdated(recommender);
    return SL_OK;
}

static sl_status change_locked(sl_recommender *recommender, const change *c) {
    SL_TRY(sl_gate_enter(&recommender->changes));
    sl_status status = change_items(recommender, c);
    sl_gate_leave(&recommender->changes);
    return status;
}

static sl_status change_rows(sl_recommender *recommender, const sl_table *rows, int partial) {
    if (!recommender || !rows) return sl_fail(SL_EINVAL, "recommender or rows is NULL");
    SL_TRY(sl_table_check(rows));
    return change_locked(recommender, &(change){.rows = rows, .partial = partial});
}

sl_status sl_recommender_update(sl_recommender *recommender, const sl_table *rows) {
    return change_rows(recommender, rows, 0);
}

sl_status sl_recommender_set(sl_recommender *recommender, const sl_table *rows) {
    return change_rows(recommender, rows, 1);
}

sl_status sl_recommender_delete(sl_recommender *recommender, const uint64_t *ids, size_t n) {
    if (!recommender || (n && !ids)) return sl_fail(SL_EINVAL, "recommender or ids is NULL");
    return change_locked(recommender, &(change){.ids = ids, .n = n});
}

uint64_t sl_recommender_version(const sl_recommender *recommender) {
    return recommender ? __atomic_load_n(&recommender->version, __ATOMIC_ACQUIRE) : 0;
}

size_t sl_recommender_item_bytes(const sl_recommender *recommender) {
    return recommender ? __atomic_load_n(&recommender->item_bytes, __ATOMIC_RELAXED) : 0;
}
