/* Items' parts of the first layer as floats, in bf16 and in signed bytes: how they are rounded, the memory they take,
 * the scores they give, and what updates and compaction leave of them. */
#include "base/random.h"
#include "recommend/recommender.h"
#include "tests/support/check_main.h"
#include "tests/support/faults.h"
#include "tests/support/funnel.h"
#include "tests/support/indexes.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N = 10 };

/* The kinds whose rows are rounded, and how far their scores may be from those of floats. */
static const struct {
    sl_item_part part;
    sl_dtype type;
    size_t share; /* of the bytes of floats: one in so many */
    float most;
} kinds[] = {{SL_ITEM_LAYER_BF16, SL_BF16, 2, 0.01f}, {SL_ITEM_LAYER_I8, SL_I8, 4, 0.03f}};
enum { KINDS = sizeof kinds / sizeof *kinds };

static funnel f;

static void set_up(void) {
    funnel_make(&f, 0, SL_METRIC_COSINE);
}
static void tear_down(void) {
    funnel_free(&f);
}

static sl_recommender *make(sl_ranker *ranker, sl_items *items, sl_item_part part, const sl_allocator *allocator) {
    sl_recommender_params params;
    sl_recommender *recommender;
    sl_recommender_params_init(&params);
    params.item_part = part;
    params.allocator = allocator;
    params.group = items ? "genre" : NULL;
    params.threads = 1;
    ck_ok(sl_recommender_create(f.index, ranker, items, &params, &recommender));
    return recommender;
}

/* Scores all items for a user. */
static void score(sl_recommender *recommender, size_t user, float *scores) {
    sl_session *session;
    sl_recommend_params params;
    sl_recommend_params_init(&params);
    params.candidates = FUNNEL_ITEMS;
    ck_ok(sl_session_create(recommender, &params, &session));
    sl_request request = funnel_request(&f, user);
    ck_ok(sl_session_score(session, &request, f.ids, NULL, FUNNEL_ITEMS, scores, NULL));
    sl_session_free(session);
}

/* Finds an item's prepared row. */
static const sl_prepared_part *row_of(const sl_prepared *prepared, uint64_t id, size_t *row) {
    sl_row_ref ref = sl_catalog_find(&prepared->catalog, id);
    ck_assert(ref != SL_NO_REF);
    *row = sl_ref_row(ref);
    return sl_catalog_part(&prepared->catalog, sl_ref_part(ref));
}

/* ---------------------------------------------------------------------------------------------------------------
 * Rounding
 * ------------------------------------------------------------------------------------------------------------- */

/* The nearer one of the two bf16 numbers around a finite value, or the even one. */
static uint16_t nearest_bf16(float value) {
    uint32_t bits, low, high;
    float below, above;
    memcpy(&bits, &value, sizeof bits);
    low = bits & 0xffff0000;
    high = low + 0x10000;
    memcpy(&below, &low, sizeof below);
    memcpy(&above, &high, sizeof above);
    double down = fabs((double)value - (double)below), up = fabs((double)above - (double)value);
    int rises = up < down || (up == down && low & 0x10000);
    return (uint16_t)((rises ? high : low) >> 16);
}

static void expect_bytes(const float *from, size_t width, const int8_t *codes, float scale) {
    float most = 0;
    for (size_t i = 0; i < width; i++)
        most = fmaxf(most, fabsf(from[i]));
    ck_assert((double)scale * 127 >= (double)most);
    ck_assert(scale <= nextafterf(most / 127, INFINITY));
    for (size_t i = 0; i < width; i++)
        ck_assert(scale == 0 ? codes[i] == 0 : codes[i] == (int)rint((double)from[i] / (double)scale));
}

static void expect_row(const sl_prepared *exact, const sl_prepared *rounded, uint64_t id, sl_dtype type) {
    size_t i, j, width = exact->shape.first_width;
    const sl_prepared_part *from = row_of(exact, id, &i), *to = row_of(rounded, id, &j);
    const float *floats = (const float *)from->layer + i * width;
    const uint8_t *row = to->layer + j * sl_item_layer_bytes(&rounded->shape);
    ck_assert(from->marks[i].wide == to->marks[j].wide);
    ck_assert_uint_eq(from->marks[i].group, to->marks[j].group);
    if (type == SL_I8) {
        expect_bytes(floats, width, (const int8_t *)row, to->marks[j].scale);
        return;
    }
    for (size_t e = 0; e < width; e++) {
        uint16_t half;
        memcpy(&half, row + 2 * e, sizeof half);
        ck_assert_uint_eq(half, nearest_bf16(floats[e]));
    }
}

START_TEST(parts_are_rounded_to_nearest) {
    int model = _i / KINDS;
    sl_ranker *ranker = funnel_ranker(&f, model, 1, NULL);
    sl_items *items = funnel_needs_items(model) ? funnel_items(&f, NULL) : NULL;
    sl_recommender *exact = make(ranker, items, SL_ITEM_LAYER, NULL);
    sl_recommender *rounded = make(ranker, items, kinds[_i % KINDS].part, NULL);
    const sl_prepared *from = sl_recommender_pair(exact)->prepared, *to = sl_recommender_pair(rounded)->prepared;
    ck_assert_uint_eq(from->shape.first_width, to->shape.first_width);
    for (size_t i = 0; i < FUNNEL_ITEMS && from->shape.first_width; i++)
        expect_row(from, to, f.ids[i], kinds[_i % KINDS].type);
    sl_recommender_free(exact);
    sl_recommender_free(rounded);
    sl_items_free(items);
    sl_ranker_free(ranker);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Scores
 * ------------------------------------------------------------------------------------------------------------- */

static size_t differing(const float *a, const float *b, float *largest) {
    size_t count = 0;
    for (size_t i = 0; i < FUNNEL_ITEMS; i++) {
        count += a[i] != b[i];
        *largest = fmaxf(*largest, fabsf(a[i] - b[i]));
    }
    return count;
}

/* Scores are near those of floats. They are not the same where the first layer has a part of the items. */
START_TEST(scores_are_near) {
    int model = _i / KINDS;
    sl_ranker *ranker = funnel_ranker(&f, model, 1, NULL);
    sl_items *items = funnel_needs_items(model) ? funnel_items(&f, NULL) : NULL;
    sl_recommender *exact = make(ranker, items, SL_ITEM_LAYER, NULL);
    sl_recommender *rounded = make(ranker, items, kinds[_i % KINDS].part, NULL);
    int has_part = sl_recommender_pair(exact)->prepared->shape.first_width > 0;
    size_t other = 0;
    float largest = 0;
    for (size_t user = 0; user < FUNNEL_USERS; user += 7) {
        float wanted[FUNNEL_ITEMS], scores[FUNNEL_ITEMS];
        score(exact, user, wanted);
        score(rounded, user, scores);
        other += differing(wanted, scores, &largest);
    }
    ck_assert_float_le(largest, kinds[_i % KINDS].most);
    ck_assert_int_eq(other > 0, has_part);
    sl_recommender_free(exact);
    sl_recommender_free(rounded);
    sl_items_free(items);
    sl_ranker_free(ranker);
}
END_TEST

/* An item whose part is not a number is no result, whatever the type of the parts. */
START_TEST(nan_is_no_result) {
    sl_ranker *ranker = funnel_ranker(&f, MODEL_PLAIN, 1, NULL);
    sl_items *items = funnel_items(&f, NULL);
    sl_tensor tensor = {.name = NULL};
    for (size_t t = 0; t < sl_ranker_tensor_count(ranker); t++) {
        ck_ok(sl_ranker_get_tensor(ranker, t, &tensor));
        if (strstr(tensor.name, "embedding") && strstr(tensor.name, "genre")) break;
    }
    ck_assert_ptr_nonnull(strstr(tensor.name, "genre"));
    /* No file and no training gives such weights, so that they are put into the model's memory. */
    float *weights = (float *)(uintptr_t)tensor.data;
    for (size_t i = 0; i < tensor.columns; i++)
        weights[2 * tensor.columns + i] = _i ? INFINITY : NAN;
    sl_recommender *exact = make(ranker, items, SL_ITEM_LAYER, NULL);
    float wanted[FUNNEL_ITEMS], scores[FUNNEL_ITEMS];
    size_t spoilt = 0;
    score(exact, 3, wanted);
    for (size_t k = 0; k < KINDS; k++) {
        sl_recommender *rounded = make(ranker, items, kinds[k].part, NULL);
        score(rounded, 3, scores);
        for (size_t i = 0; i < FUNNEL_ITEMS; i++) {
            ck_assert_int_eq(isnan(scores[i]) != 0, isnan(wanted[i]) != 0);
            spoilt += isnan(scores[i]) != 0;
        }
        sl_recommender_free(rounded);
    }
    ck_assert_uint_gt(spoilt, 0);
    ck_assert_uint_lt(spoilt, KINDS * FUNNEL_ITEMS / 2);
    sl_recommender_free(exact);
    sl_items_free(items);
    sl_ranker_free(ranker);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Memory
 * ------------------------------------------------------------------------------------------------------------- */

START_TEST(parts_take_their_share) {
    fault_allocator memory[2];
    sl_ranker *ranker = funnel_ranker(&f, MODEL_VECTORS, 1, NULL);
    fault_allocator_init(&memory[0], 0);
    fault_allocator_init(&memory[1], 0);
    sl_recommender *exact = make(ranker, NULL, SL_ITEM_LAYER, &memory[0].allocator);
    sl_recommender *rounded = make(ranker, NULL, kinds[_i].part, &memory[1].allocator);
    const sl_prepared *from = sl_recommender_pair(exact)->prepared, *to = sl_recommender_pair(rounded)->prepared;
    size_t floats = sl_item_layer_bytes(&from->shape);
    ck_assert_uint_gt(floats, 0);
    ck_assert_uint_eq(sl_item_layer_bytes(&to->shape) * kinds[_i].share, floats);
    /* The recommender says that it saves memory, and has allocated as much less. */
    size_t saved = FUNNEL_ITEMS * (floats - floats / kinds[_i].share);
    ck_assert_uint_eq(sl_recommender_item_bytes(exact) - sl_recommender_item_bytes(rounded), saved);
    ck_assert_uint_le(memory[1].live_bytes, memory[0].live_bytes - saved);
    ck_assert_uint_ge(memory[0].live_bytes, sl_recommender_item_bytes(exact));
    ck_assert_uint_eq(sl_recommender_item_bytes(NULL), 0);
    sl_recommender_free(exact);
    sl_recommender_free(rounded);
    ck_assert_uint_eq(memory[0].live_blocks + memory[1].live_blocks, 0);
    sl_ranker_free(ranker);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Updates
 * ------------------------------------------------------------------------------------------------------------- */

static void turn(grid *g, size_t n) {
    size_t rows[FUNNEL_ITEMS];
    *g = (grid){.block_count = 0};
    for (size_t i = 0; i < n; i++)
        rows[i] = i;
    grid_gather(g, &f.items.table, rows, n);
    uint64_t *ids = (uint64_t *)(uintptr_t)g->columns[0].values;
    ck_assert_str_eq(g->columns[0].name, "id");
    for (size_t i = 0; i < n; i++)
        ids[i] = f.ids[(i + 13) % FUNNEL_ITEMS];
}

/* An updated item scores as one prepared with the new row. Rounding differs between products of few rows and of many,
 * and may move a byte to the next. */
START_TEST(updates_are_rounded_too) {
    enum { CHANGED = 40 };
    grid g;
    float before[FUNNEL_ITEMS], scores[FUNNEL_ITEMS], wanted[FUNNEL_ITEMS];
    sl_ranker *ranker = funnel_ranker(&f, MODEL_ALL, 1, NULL);
    sl_items *items = funnel_items(&f, NULL);
    sl_recommender *recommender = make(ranker, items, kinds[_i].part, NULL);
    size_t bytes = sl_recommender_item_bytes(recommender), told_apart = 0;
    score(recommender, 5, before);
    turn(&g, CHANGED);
    ck_ok(sl_recommender_update(recommender, &g.table));
    ck_assert_uint_gt(sl_recommender_item_bytes(recommender), bytes);
    score(recommender, 5, scores);
    sl_recommender *fresh = make(ranker, items, kinds[_i].part, NULL);
    score(fresh, 5, wanted);
    for (size_t i = 0; i < FUNNEL_ITEMS; i++) {
        ck_assert_float_eq_tol(scores[i], wanted[i], kinds[_i].most);
        told_apart += fabsf(scores[i] - before[i]) > kinds[_i].most;
    }
    ck_assert_uint_gt(told_apart, CHANGED / 2);
    grid_free(&g);
    sl_recommender_free(recommender);
    sl_recommender_free(fresh);
    sl_items_free(items);
    sl_ranker_free(ranker);
}
END_TEST

/* The first items' groups change places by an update. Returns the sum of the groups' hashes. */
static uint64_t stage_groups(sl_prepared *prepared, const sl_items *items) {
    const sl_item_body *body = sl_items_body(items);
    const sl_items_part *rows = sl_catalog_part(&body->catalog, sl_catalog_parts(&body->catalog) - 1);
    sl_prepared_part *part;
    uint64_t sum = 0;
    ck_ok(sl_prepared_stage(prepared, rows, &part));
    for (size_t i = 0; i < part->rows; i++)
        sum += part->marks[i].group;
    sl_prepared_commit(prepared, part);
    return sum;
}

/* Rows that are prepared after a compaction are in the groups in which they would have been before. */
START_TEST(compaction_keeps_groups) {
    grid g;
    sl_items *items = funnel_items(&f, NULL);
    sl_recommender *recommender = make(NULL, items, SL_ITEM_LAYER, NULL);
    turn(&g, 40);
    ck_ok(sl_recommender_update(recommender, &g.table));
    sl_prepared *compact, *old = (sl_prepared *)(uintptr_t)sl_recommender_pair(recommender)->prepared;
    ck_ok(sl_prepared_compact(old, &compact));
    const uint64_t sum = stage_groups(old, items);
    ck_assert_uint_ne(sum, 0);
    ck_assert_uint_eq(stage_groups(compact, items), sum);
    sl_prepared_free(compact);
    grid_free(&g);
    sl_recommender_free(recommender);
    sl_items_free(items);
}
END_TEST

/* Compaction copies rows bit for bit, scales and groups too. */
START_TEST(compaction_keeps_rows) {
    grid g;
    sl_ranker *ranker = funnel_ranker(&f, MODEL_ALL, 1, NULL);
    sl_items *items = funnel_items(&f, NULL);
    sl_recommender *recommender = make(ranker, items, kinds[_i].part, NULL);
    turn(&g, 40);
    ck_ok(sl_recommender_update(recommender, &g.table));
    const sl_prepared *old = sl_recommender_pair(recommender)->prepared;
    sl_prepared *compact;
    ck_ok(sl_prepared_compact(old, &compact));
    size_t bytes = sl_item_layer_bytes(&old->shape);
    ck_assert_uint_eq(sl_item_layer_bytes(&compact->shape), bytes);
    ck_assert_uint_lt(compact->bytes, old->bytes);
    for (size_t i = 0; i < FUNNEL_ITEMS; i++) {
        size_t at, to;
        const sl_prepared_part *from = row_of(old, f.ids[i], &at), *part = row_of(compact, f.ids[i], &to);
        ck_assert_mem_eq(from->layer + at * bytes, part->layer + to * bytes, bytes);
        ck_assert(from->marks[at].scale == part->marks[to].scale);
        ck_assert_uint_eq(from->marks[at].group, part->marks[to].group);
        ck_assert_int_eq(from->marks[at].scale > 0, kinds[_i].type == SL_I8);
    }
    sl_prepared_free(compact);
    grid_free(&g);
    sl_recommender_free(recommender);
    sl_items_free(items);
    sl_ranker_free(ranker);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Many items
 * ------------------------------------------------------------------------------------------------------------- */

/* A table of many items, whose rows are those of the few again and again. */
static sl_items *many_items(grid *g, size_t many) {
    size_t *rows = malloc(many * sizeof *rows);
    *g = (grid){.block_count = 0};
    for (size_t i = 0; i < many; i++)
        rows[i] = i % FUNNEL_ITEMS;
    grid_gather(g, &f.items.table, rows, many);
    int64_t *ids = (int64_t *)(uintptr_t)g->columns[0].values;
    for (size_t i = 0; i < many; i++)
        ids[i] = (int64_t)i;
    sl_table_cursor *cursor = malloc(sl_table_cursor_size(g->table.column_count));
    sl_rows source = {.struct_size = sizeof source};
    sl_items *items;
    ck_ok(sl_table_rows(&g->table, cursor, &source));
    ck_ok(sl_items_create(&source, NULL, &items));
    free(cursor);
    free(rows);
    return items;
}

/* Parts of more rows than are encoded at a time: each item scores as its row does among few. */
START_TEST(many_items_score_as_few) {
    enum { MANY = 7000 };
    static const int models[] = {MODEL_PLAIN, MODEL_WIDE, MODEL_SQUARED};
    static const sl_item_part parts[] = {SL_ITEM_CODES, SL_ITEM_LAYER, SL_ITEM_LAYER_BF16, SL_ITEM_LAYER_I8};
    static uint64_t ids[MANY];
    static float scores[MANY], recall[MANY];
    float wanted[FUNNEL_ITEMS];
    grid g;
    sl_ranker *ranker = funnel_ranker(&f, models[_i % 3], 1, NULL);
    sl_items *few = funnel_items(&f, NULL), *many = many_items(&g, MANY);
    sl_recommender *small = make(ranker, few, parts[_i / 3], NULL), *large = make(ranker, many, parts[_i / 3], NULL);
    sl_request request = funnel_request(&f, 4);
    sl_session *session = funnel_session(small, funnel_sizes(N, N, 64));
    for (size_t i = 0; i < MANY; i++) {
        ids[i] = i;
        recall[i] = 0.5f;
    }
    ck_ok(sl_session_score(session, &request, ids, recall, FUNNEL_ITEMS, wanted, NULL));
    sl_session_free(session);
    session = funnel_session(large, funnel_sizes(N, N, 64));
    ck_ok(sl_session_score(session, &request, ids, recall, MANY, scores, NULL));
    const sl_prepared *prepared = sl_recommender_pair(large)->prepared;
    size_t most = 0;
    for (size_t p = 0; p < sl_catalog_parts(&prepared->catalog); p++) {
        const sl_prepared_part *part = sl_catalog_part(&prepared->catalog, p);
        if (part->rows > most) most = part->rows;
    }
    ck_assert_uint_gt(most, 1000);
    size_t wrong = 0, at;
    for (size_t i = 0; i < MANY; i++) {
        const sl_prepared_part *one = row_of(prepared, i % FUNNEL_ITEMS, &at);
        const uint64_t group = one->marks[at].group;
        const sl_prepared_part *other = row_of(prepared, i, &at);
        wrong += !(fabsf(scores[i] - wanted[i % FUNNEL_ITEMS]) <= 1e-3f) || other->marks[at].group != group;
    }
    ck_assert_uint_eq(wrong, 0);
    sl_session_free(session);
    sl_recommender_free(small);
    sl_recommender_free(large);
    sl_items_free(few);
    sl_items_free(many);
    grid_free(&g);
    sl_ranker_free(ranker);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Failing allocations
 * ------------------------------------------------------------------------------------------------------------- */

static sl_status live(sl_ranker *ranker, sl_items *items, sl_item_part part, const sl_allocator *allocator,
                      const sl_table *rows) {
    sl_recommender_params params;
    sl_recommender *recommender = NULL;
    sl_session *session = NULL;
    uint64_t ids[N];
    sl_request request = funnel_request(&f, 2);
    sl_recommender_params_init(&params);
    params.allocator = allocator;
    params.item_part = part;
    params.threads = 1;
    sl_status status = sl_recommender_create(f.index, ranker, items, &params, &recommender);
    if (status == SL_OK) status = sl_session_create(recommender, NULL, &session);
    if (status == SL_OK) status = sl_session_recommend(session, &request, NULL, ids, NULL, NULL, NULL);
    if (status == SL_OK) status = sl_recommender_update(recommender, rows);
    sl_session_free(session);
    sl_recommender_free(recommender);
    return status;
}

START_TEST(every_allocation_may_fail) {
    grid g;
    sl_ranker *ranker = funnel_ranker(&f, MODEL_PLAIN, 1, NULL);
    sl_items *items = funnel_items(&f, NULL);
    sl_status status = SL_ENOMEM;
    turn(&g, 3);
    for (size_t fail_at = 1; status == SL_ENOMEM; fail_at++) {
        fault_allocator memory;
        fault_allocator_init(&memory, fail_at);
        status = live(ranker, items, kinds[_i].part, &memory.allocator, &g.table);
        ck_assert_uint_eq(memory.live_blocks, 0);
        ck_assert_uint_lt(fail_at, 1000);
        if (fail_at == 1) ck_assert_int_eq(status, SL_ENOMEM);
    }
    ck_ok(status);
    grid_free(&g);
    sl_items_free(items);
    sl_ranker_free(ranker);
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("item part");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_loop_test(tests, parts_are_rounded_to_nearest, 0, KINDS * MODELS);
    tcase_add_loop_test(tests, scores_are_near, 0, KINDS * MODELS);
    tcase_add_loop_test(tests, nan_is_no_result, 0, 2);
    tcase_add_loop_test(tests, parts_take_their_share, 0, KINDS);
    tcase_add_loop_test(tests, updates_are_rounded_too, 0, KINDS);
    tcase_add_loop_test(tests, compaction_keeps_rows, 0, KINDS);
    tcase_add_test(tests, compaction_keeps_groups);
    tcase_add_loop_test(tests, many_items_score_as_few, 0, 12);
    tcase_add_loop_test(tests, every_allocation_may_fail, 0, KINDS);
    return check_main("item part", &tests, 1);
}
