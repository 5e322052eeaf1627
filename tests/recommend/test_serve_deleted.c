/* A deleted item never comes back in a later answer, until an update adds it again. The index still has its vector. The
 * linker wraps all allocations, to count them. */
#include "base/random.h"
#include "recommend/recommender.h"
#include "tests/support/check_main.h"
#include "tests/support/faults.h"
#include "tests/support/funnel.h"
#include "tests/support/indexes.h"
#include "tests/support/scratch.h"
#include "tests/support/system_calls.h"

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

enum { N = 10, CANDIDATES = 60, EF = 200, THREADS = 2 };

static funnel f;

static void set_up(void) {
    funnel_make(&f, 1, SL_METRIC_COSINE);
}
static void tear_down(void) {
    funnel_free(&f);
}

static sl_recommend_params sizes(void) {
    return funnel_sizes(N, CANDIDATES, EF);
}

static sl_recommender *make(sl_ranker *ranker, sl_items *items, int part, const sl_allocator *allocator) {
    sl_recommender_params params;
    sl_recommender *recommender;
    sl_recommender_params_init(&params);
    params.item_part = (sl_item_part)part;
    params.group = "genre";
    params.threads = 1;
    params.allocator = allocator;
    ck_ok(sl_recommender_create(f.index, ranker, items, &params, &recommender));
    return recommender;
}

/* Adds the original rows of the items again. */
static void add_again(sl_recommender *recommender, const uint64_t *ids, size_t n) {
    size_t rows[FUNNEL_ITEMS];
    grid g = {.block_count = 0};
    for (size_t i = 0; i < n; i++)
        rows[i] = funnel_row(&f, ids[i]);
    grid_gather(&g, &f.items.table, rows, n);
    ck_ok(sl_recommender_update(recommender, &g.table));
    grid_free(&g);
}

static int is_even(void *ctx, uint64_t id) {
    (void)ctx;
    const size_t row = funnel_row(&f, id);
    return row != SIZE_MAX && row % 2 == 0;
}

typedef struct answer {
    uint64_t ids[N];
    float scores[N], recall[N];
} answer;

static sl_recommend_stats ask(sl_session *session, const sl_request *request, answer *a) {
    const sl_recommend_params params = sizes();
    sl_recommend_stats stats;
    ck_ok(sl_session_recommend(session, request, &params, a->ids, a->scores, a->recall, &stats));
    return stats;
}

/* Items that were deleted so far. */
typedef struct deleted {
    uint64_t ids[FUNNEL_ITEMS];
    size_t n;
} deleted;

static int is_deleted(const deleted *d, uint64_t id) {
    for (size_t i = 0; i < d->n; i++)
        if (d->ids[i] == id) return 1;
    return 0;
}

/* Every user's answers are those of a table that has all items, from a request that excludes the deleted ones. */
static void expect_as_excluded(sl_recommender *recommender, sl_recommender *whole, const deleted *d) {
    sl_session *session = funnel_session(recommender, sizes()), *other = funnel_session(whole, sizes());
    for (size_t user = 0; user < FUNNEL_USERS; user++) {
        answer got, wanted;
        sl_request request = funnel_request(&f, user);
        sl_recommend_stats stats = ask(session, &request, &got);
        ck_assert_uint_eq(stats.results, N);
        ck_assert_uint_eq(stats.candidates, CANDIDATES);
        ck_assert_uint_eq(stats.without_features, 0);
        request.exclude = d->ids;
        request.exclude_count = d->n;
        (void)ask(other, &request, &wanted);
        ck_assert_mem_eq(got.ids, wanted.ids, sizeof got.ids);
        ck_assert_mem_eq(got.recall, wanted.recall, sizeof got.recall);
        for (size_t i = 0; i < N; i++) {
            ck_assert(fabsf(got.scores[i] - wanted.scores[i]) <= 1e-5f);
            ck_assert(!is_deleted(d, got.ids[i]));
        }
    }
    sl_session_free(session);
    sl_session_free(other);
}

/* Deleted ids among given ones have no score. The others have the scores that they had. */
static void expect_scores(sl_recommender *recommender, sl_recommender *whole, const deleted *d) {
    static float scores[FUNNEL_ITEMS], wanted[FUNNEL_ITEMS];
    sl_session *session = funnel_session(recommender, sizes()), *other = funnel_session(whole, sizes());
    sl_request request = funnel_request(&f, 5);
    sl_recommend_stats stats;
    ck_ok(sl_session_score(session, &request, f.ids, NULL, FUNNEL_ITEMS, scores, &stats));
    ck_ok(sl_session_score(other, &request, f.ids, NULL, FUNNEL_ITEMS, wanted, NULL));
    ck_assert_uint_eq(stats.without_features, 0);
    for (size_t i = 0; i < FUNNEL_ITEMS; i++)
        ck_assert(is_deleted(d, f.ids[i]) ? isnan(scores[i]) : fabsf(scores[i] - wanted[i]) <= 1e-5f);
    sl_session_free(session);
    sl_session_free(other);
}

/* Deletes the best two of each user's answer. */
static void delete_best(sl_recommender *recommender, deleted *d) {
    sl_session *session = funnel_session(recommender, sizes());
    for (size_t user = 0; user < FUNNEL_USERS; user++) {
        answer a;
        sl_request request = funnel_request(&f, user);
        (void)ask(session, &request, &a);
        ck_ok(sl_recommender_delete(recommender, a.ids, 2));
        memcpy(d->ids + d->n, a.ids, 2 * sizeof *a.ids);
        d->n += 2;
    }
    sl_session_free(session);
}

/* Compacts rows, by an update of an item that is there. */
static void compact(sl_recommender *recommender, const deleted *d) {
    const sl_pair *before = sl_recommender_pair(recommender);
    size_t row = 0;
    while (is_deleted(d, f.ids[row]))
        row++;
    before->prepared->outdated = 1u << 20;
    sl_items_body(before->items)->outdated = 1u << 20;
    add_again(recommender, &f.ids[row], 1);
    ck_assert_ptr_ne(sl_recommender_pair(recommender), before);
}

/* By recall alone, and by a model in each kind of parts: the answers after deletions, a compaction, a swap, and over
 * the saved table. */
START_TEST(deleted_items_never_come_back) {
    static deleted d;
    const int part = _i ? _i - 1 : 0;
    scratch place;
    char path[SCRATCH_PATH];
    sl_ranker *ranker = _i ? funnel_ranker(&f, MODEL_ALL, 1, NULL) : NULL;
    sl_items *items = funnel_items(&f, NULL), *all = funnel_items(&f, NULL), *opened;
    sl_recommender *recommender = make(ranker, items, part, NULL), *whole = make(ranker, all, part, NULL);
    scratch_open(&place);
    scratch_name(&place, "items.sl", path);
    d.n = 0;
    for (size_t round = 0; round < 3; round++) {
        delete_best(recommender, &d);
        ck_assert_uint_eq(sl_items_size(items), FUNNEL_ITEMS - d.n);
        expect_as_excluded(recommender, whole, &d);
    }
    expect_scores(recommender, whole, &d);
    compact(recommender, &d);
    expect_as_excluded(recommender, whole, &d);
    expect_scores(recommender, whole, &d);
    ck_ok(sl_recommender_swap(recommender, NULL, NULL));
    expect_as_excluded(recommender, whole, &d);
    ck_ok(sl_items_save(items, path, NULL));
    ck_ok(sl_items_open(path, NULL, &opened));
    ck_ok(sl_recommender_swap(recommender, NULL, opened));
    expect_as_excluded(recommender, whole, &d);
    expect_scores(recommender, whole, &d);
    compact(recommender, &d);
    expect_as_excluded(recommender, whole, &d);
    /* An update brings items back. */
    add_again(recommender, d.ids + 100, d.n - 100);
    d.n = 100;
    expect_as_excluded(recommender, whole, &d);
    expect_scores(recommender, whole, &d);
    sl_recommender_free(recommender);
    sl_recommender_free(whole);
    sl_items_free(items);
    sl_items_free(all);
    sl_items_free(opened);
    sl_ranker_free(ranker);
    scratch_close(&place);
}
END_TEST

/* However many of the nearest items are deleted: some spare ids, a larger search, or a search past them make up for
 * them. Items that the table never had are counted among the candidates alone. */
START_TEST(any_number_of_deleted_items_is_made_up_for) {
    static const size_t counts[] = {1, 3, 6, 7, 8, 9, 20, 59, 60, 61, 67, 68, 100, 400};
    enum { NEVER = 60, USER = 4 };
    static uint64_t nearest[FUNNEL_ITEMS];
    float vectors[NEVER * FUNNEL_DIM];
    uint64_t never[NEVER];
    const float *vector = f.user_vectors + USER * FUNNEL_DIM;
    const size_t n = counts[_i];
    indexes_search(f.index, (vector_rows){vector, SL_F32, 1}, n, FUNNEL_ITEMS, nearest, NULL);
    for (size_t i = 0; i < NEVER; i++) {
        never[i] = i + 1;
        ck_assert_uint_eq(funnel_row(&f, never[i]), SIZE_MAX);
        for (size_t d = 0; d < FUNNEL_DIM; d++)
            vectors[i * FUNNEL_DIM + d] = vector[d] + (float)(i * d) * 0.005f;
    }
    ck_ok(indexes_add(f.index, vectors, SL_F32, NEVER, never));
    sl_items *items = funnel_items(&f, NULL), *all = funnel_items(&f, NULL);
    sl_recommender *recommender = make(NULL, items, 0, NULL), *whole = make(NULL, all, 0, NULL);
    ck_ok(sl_recommender_delete(recommender, nearest, n));
    sl_session *session = funnel_session(recommender, sizes()), *other = funnel_session(whole, sizes());
    for (int even = 0; even < 2; even++) {
        answer got, wanted;
        sl_request request = funnel_request(&f, USER);
        request.accept = even ? is_even : NULL;
        const sl_recommend_stats stats = ask(session, &request, &got);
        request.exclude = nearest;
        request.exclude_count = n;
        const sl_recommend_stats as_excluded = ask(other, &request, &wanted);
        ck_assert_mem_eq(&got, &wanted, sizeof got);
        ck_assert_uint_eq(stats.candidates, CANDIDATES);
        ck_assert_uint_eq(as_excluded.candidates, CANDIDATES);
        ck_assert_uint_eq(stats.without_features, as_excluded.without_features);
        ck_assert_int_eq(stats.without_features == 0, even);
    }
    sl_session_free(session);
    sl_session_free(other);
    sl_recommender_free(recommender);
    sl_recommender_free(whole);
    sl_items_free(items);
    sl_items_free(all);
}
END_TEST

/* A recommender follows deletions of the table by itself with the next swap. Items that the table never had are served
 * as before, and a deleted one isn't given their score. */
START_TEST(swaps_follow_the_table) {
    enum { GONE = 200 };
    sl_ranker *ranker = funnel_ranker(&f, MODEL_ALL, 1, NULL);
    sl_items *items = funnel_items(&f, NULL);
    sl_recommender_params params;
    sl_recommender *recommender;
    sl_recommender_params_init(&params);
    params.missing_score = 0.25f;
    params.threads = 1;
    ck_ok(sl_recommender_create(f.index, ranker, items, &params, &recommender));
    const float strange[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    const uint64_t never = 999;
    ck_ok(indexes_add(f.index, strange, SL_F32, 1, &never));
    ck_ok(sl_items_delete(items, f.ids, GONE));
    sl_session *session = funnel_session(recommender, sizes());
    sl_request request = funnel_request(&f, 2);
    float scores[GONE];
    uint64_t ids[GONE];
    sl_recommend_stats stats;
    memcpy(ids, f.ids, sizeof ids);
    ids[7] = never;
    ck_ok(sl_session_score(session, &request, ids, NULL, GONE, scores, &stats));
    ck_assert_uint_eq(stats.without_features, 1);
    for (size_t i = 0; i < GONE; i++)
        ck_assert(!isnan(scores[i]));
    ck_ok(sl_recommender_swap(recommender, NULL, NULL));
    ck_ok(sl_session_score(session, &request, ids, NULL, GONE, scores, &stats));
    ck_assert_uint_eq(stats.without_features, 1);
    for (size_t i = 0; i < GONE; i++)
        ck_assert(i == 7 ? scores[i] == 0.25f : isnan(scores[i]));
    sl_session_free(session);
    sl_recommender_free(recommender);
    sl_items_free(items);
    sl_ranker_free(ranker);
}
END_TEST

/* A request's own conditions hold beside. In batches too. */
START_TEST(conditions_of_a_request_hold_too) {
    static deleted d;
    sl_ranker *ranker = funnel_ranker(&f, MODEL_ALL, 1, NULL);
    sl_items *items = funnel_items(&f, NULL);
    sl_recommender *recommender = make(ranker, items, 0, NULL);
    sl_recommend_params params = sizes();
    uint64_t ids[FUNNEL_USERS * N];
    sl_request requests[FUNNEL_USERS];
    d.n = 0;
    delete_best(recommender, &d);
    params.max_per_group = 4;
    params.threads = 2;
    for (size_t user = 0; user < FUNNEL_USERS; user++) {
        requests[user] = funnel_request(&f, user);
        requests[user].accept = is_even;
        requests[user].exclude = f.ids + 100;
        requests[user].exclude_count = user % 2 ? 100 : 0;
    }
    ck_ok(sl_recommend(recommender, requests, FUNNEL_USERS, &params, ids, NULL, NULL, NULL));
    for (size_t i = 0; i < FUNNEL_USERS * N; i++) {
        const size_t row = funnel_row(&f, ids[i]);
        ck_assert(row % 2 == 0 && !is_deleted(&d, ids[i]));
        ck_assert(i / N % 2 == 0 || row < 100 || row >= 200);
    }
    sl_recommender_free(recommender);
    sl_items_free(items);
    sl_ranker_free(ranker);
}
END_TEST

/* Two recommenders serve one table. Each deletes for itself what the table has lost already. */
START_TEST(recommenders_of_one_table_delete_each) {
    static deleted d;
    sl_items *items = funnel_items(&f, NULL), *all = funnel_items(&f, NULL);
    sl_recommender *first = make(NULL, items, 0, NULL), *second = make(NULL, items, 0, NULL);
    sl_recommender *whole = make(NULL, all, 0, NULL);
    d.n = 0;
    delete_best(first, &d);
    const size_t most = sl_items_body(items)->outdated;
    ck_assert_uint_eq(most, d.n);
    expect_as_excluded(second, whole, &(deleted){.n = 0});
    ck_ok(sl_recommender_delete(second, d.ids, d.n));
    ck_assert_uint_eq(sl_items_body(items)->outdated, most);
    ck_assert_uint_eq(sl_items_size(items), FUNNEL_ITEMS - d.n);
    expect_as_excluded(first, whole, &d);
    expect_as_excluded(second, whole, &d);
    ck_fails(sl_recommender_delete(second, d.ids, 1), SL_ENOTFOUND, "number 0");
    ck_fails(sl_items_delete(items, d.ids, 1), SL_ENOTFOUND, "number 0");
    sl_recommender_free(first);
    sl_recommender_free(second);
    sl_recommender_free(whole);
    sl_items_free(items);
    sl_items_free(all);
}
END_TEST

START_TEST(bad_deletions_are_refused_whole) {
    sl_items *items = funnel_items(&f, NULL);
    sl_recommender *recommender = make(NULL, items, 0, NULL), *alone;
    sl_recommender_params params;
    sl_recommender_params_init(&params);
    ck_ok(sl_recommender_create(f.index, NULL, NULL, &params, &alone));
    uint64_t ids[] = {f.ids[0], f.ids[1], 12345};
    ck_fails(sl_recommender_delete(recommender, ids, 3), SL_ENOTFOUND, "number 2: id 12345");
    ids[2] = f.ids[0];
    ck_fails(sl_recommender_delete(recommender, ids, 3), SL_ENOTFOUND, "is given twice, as number 0 and 2");
    ck_fails(sl_recommender_delete(recommender, NULL, 3), SL_EINVAL, "NULL");
    ck_fails(sl_recommender_delete(NULL, ids, 3), SL_EINVAL, "NULL");
    ck_fails(sl_recommender_delete(alone, ids, 2), SL_EINVAL, "no item table");
    ck_ok(sl_recommender_delete(recommender, NULL, 0));
    ck_assert_uint_eq(sl_items_size(items), FUNNEL_ITEMS);
    ck_assert_uint_eq(sl_catalog_size(&sl_recommender_pair(recommender)->prepared->catalog), FUNNEL_ITEMS);
    ck_ok(sl_recommender_delete(recommender, ids, 2));
    ck_assert_uint_eq(sl_items_size(items), FUNNEL_ITEMS - 2);
    sl_recommender_free(recommender);
    sl_recommender_free(alone);
    sl_items_free(items);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Memory
 * ------------------------------------------------------------------------------------------------------------- */

/* Each allocation fails in turn: nothing is deleted, or all is. */
START_TEST(failed_deletions_delete_nothing) {
    size_t refused = 0, done = 0;
    for (size_t fail_at = 1;; fail_at++) {
        fault_allocator memory;
        fault_allocator_init(&memory, 0);
        sl_items *items = funnel_items(&f, &memory.allocator);
        sl_recommender *recommender = make(NULL, items, 0, &memory.allocator);
        sl_pair *pair = sl_recommender_pair(recommender);
        /* Both are compacted. */
        if (_i) pair->prepared->outdated = sl_items_body(items)->outdated = 1u << 20;
        memory.calls = 0;
        memory.fail_at = fail_at;
        sl_status status = sl_recommender_delete(recommender, f.ids, 20);
        const size_t calls = memory.calls;
        memory.fail_at = 0;
        ck_assert(status == SL_OK || status == SL_ENOMEM);
        refused += status != SL_OK;
        done += status == SL_OK;
        const size_t left = FUNNEL_ITEMS - (status == SL_OK ? 20 : 0);
        ck_assert_uint_eq(sl_items_size(items), left);
        ck_assert_uint_eq(sl_catalog_size(&sl_recommender_pair(recommender)->prepared->catalog), left);
        sl_recommender_free(recommender);
        sl_items_free(items);
        ck_assert_uint_eq(memory.live_blocks, 0);
        if (calls < fail_at) break;
    }
    ck_assert_uint_gt(refused, 1);
    ck_assert_uint_gt(done, _i ? 10 : 0);
}
END_TEST

/* Requests that meet deleted items for the first time take no memory. */
START_TEST(a_warm_session_takes_no_memory) {
    static deleted d;
    fault_allocator memory;
    fault_allocator_init(&memory, 0);
    sl_ranker *ranker = funnel_ranker(&f, MODEL_ALL, 1, NULL);
    sl_items *items = funnel_items(&f, NULL);
    sl_recommender *recommender = make(ranker, items, 0, &memory.allocator);
    sl_session *session = funnel_session(recommender, sizes());
    sl_request request = funnel_request(&f, 0);
    const sl_recommend_params params = sizes();
    answer a;
    (void)ask(session, &request, &a);
    d.n = 0;
    delete_best(recommender, &d);
    const size_t calls = memory.calls, before = system_calls();
    sl_status status = sl_session_recommend(session, &request, &params, a.ids, a.scores, a.recall, NULL);
    const size_t after = system_calls();
    ck_ok(status);
    ck_assert_uint_eq(memory.calls, calls);
    ck_assert_uint_eq(after, before);
    ck_assert_uint_gt(before, 0);
    sl_session_free(session);
    sl_recommender_free(recommender);
    sl_items_free(items);
    sl_ranker_free(ranker);
}
END_TEST

/* Items come and go by the recommender. Its rows and the table's take no more memory in time. */
START_TEST(turnover_takes_no_more_memory) {
    enum { LIVE = 4000, ROUNDS = 120 };
    static int64_t ids[LIVE];
    static uint64_t gone[LIVE];
    const sl_column column = {.name = "id", .type = SL_COLUMN_I64, .values = ids};
    const sl_table table = {.struct_size = sizeof table, .rows = LIVE, .column_count = 1, .columns = &column};
    fault_allocator memory;
    fault_allocator_init(&memory, 0);
    sl_table_cursor *cursor = malloc(sl_table_cursor_size(1));
    sl_rows rows = {.struct_size = sizeof rows};
    sl_items_params of_items;
    sl_recommender_params params;
    sl_items *items;
    sl_recommender *recommender;
    sl_items_params_init(&of_items);
    sl_recommender_params_init(&params);
    of_items.allocator = params.allocator = &memory.allocator;
    for (size_t i = 0; i < LIVE; i++)
        ids[i] = (int64_t)i * 1000003;
    ck_ok(sl_table_rows(&table, cursor, &rows));
    ck_ok(sl_items_create(&rows, &of_items, &items));
    ck_ok(sl_recommender_create(f.index, NULL, items, &params, &recommender));
    size_t most = 0, early = 0;
    for (size_t round = 1; round <= ROUNDS; round++) {
        for (size_t i = 0; i < LIVE; i++) {
            gone[i] = (uint64_t)ids[i];
            ids[i] = (int64_t)(round * LIVE + i) * 1000003;
        }
        ck_ok(sl_recommender_delete(recommender, gone, LIVE));
        ck_ok(sl_recommender_update(recommender, &table));
        if (memory.live_bytes > most) most = memory.live_bytes;
        if (round == ROUNDS / 4) early = most;
    }
    ck_assert_uint_eq(sl_items_size(items), LIVE);
    ck_assert_uint_gt(ROUNDS / 4 * LIVE, 2 * SL_TOMBSTONES_LEAST);
    ck_assert_msg(most <= early + early / 10, "%zu bytes, after a quarter of the rounds %zu", most, early);
    sl_recommender_free(recommender);
    sl_items_free(items);
    ck_assert_uint_eq(memory.live_blocks, 0);
    free(cursor);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Beside requests
 * ------------------------------------------------------------------------------------------------------------- */

/* Each item's number of changes: odd while it's deleted. The changing thread counts after it deleted an item, and
 * before it adds the item again. An answer may have an item unless it was deleted before the request began, and until
 * it ended. */
static size_t changes[FUNNEL_ITEMS]; /* atomic */

typedef struct asker {
    sl_recommender *recommender;
    int stop; /* atomic */
    size_t asked, wrong, met;
    sl_status failed;
} asker;

static size_t changes_of(size_t row) {
    return __atomic_load_n(&changes[row], __ATOMIC_ACQUIRE);
}

static void ask_once(asker *me, sl_session *session, size_t user) {
    size_t before[FUNNEL_ITEMS];
    answer a;
    float scores[FUNNEL_ITEMS];
    const sl_recommend_params params = sizes();
    sl_request request = funnel_request(&f, user);
    for (size_t row = 0; row < FUNNEL_ITEMS; row++)
        before[row] = changes_of(row);
    me->failed = sl_session_recommend(session, &request, &params, a.ids, a.scores, a.recall, NULL);
    for (size_t i = 0; i < N && me->failed == SL_OK; i++) {
        const size_t row = funnel_row(&f, a.ids[i]);
        me->wrong += a.ids[i] == SL_NO_ID || isnan(a.scores[i]);
        me->wrong += row < FUNNEL_ITEMS && before[row] % 2 && changes_of(row) == before[row];
    }
    for (size_t row = 0; row < FUNNEL_ITEMS; row++)
        before[row] = changes_of(row);
    if (me->failed == SL_OK) me->failed = sl_session_score(session, &request, f.ids, NULL, FUNNEL_ITEMS, scores, NULL);
    for (size_t row = 0; row < FUNNEL_ITEMS && me->failed == SL_OK; row++) {
        if (changes_of(row) != before[row]) continue;
        me->wrong += before[row] % 2 && !isnan(scores[row]);
        me->met += isnan(scores[row]) != 0;
    }
}

static void *ask_on(void *ctx) {
    asker *me = ctx;
    sl_session *session;
    const sl_recommend_params params = sizes();
    me->failed = sl_session_create(me->recommender, &params, &session);
    while (me->failed == SL_OK && !__atomic_load_n(&me->stop, __ATOMIC_RELAXED))
        ask_once(me, session, __atomic_fetch_add(&me->asked, 1, __ATOMIC_RELAXED) % FUNNEL_USERS);
    __atomic_fetch_add(&me->asked, 1, __ATOMIC_RELAXED);
    sl_session_free(session);
    return NULL;
}

static void flip(sl_recommender *recommender, size_t row) {
    if (changes[row] % 2) {
        __atomic_fetch_add(&changes[row], 1, __ATOMIC_RELEASE);
        add_again(recommender, &f.ids[row], 1);
    } else {
        ck_ok(sl_recommender_delete(recommender, &f.ids[row], 1));
        __atomic_fetch_add(&changes[row], 1, __ATOMIC_RELEASE);
    }
}

/* So many items are deleted and added again that rows are compacted beside requests. */
START_TEST(no_later_answer_has_a_deleted_item) {
    enum { STEPS = 3000 };
    sl_ranker *ranker = funnel_ranker(&f, MODEL_ALL, 1, NULL);
    sl_items *items = funnel_items(&f, NULL);
    sl_recommender *recommender = make(ranker, items, 0, NULL);
    const sl_pair *first = sl_recommender_pair(recommender);
    asker askers[THREADS];
    pthread_t threads[THREADS];
    memset(changes, 0, sizeof changes);
    for (size_t t = 0; t < THREADS; t++) {
        askers[t] = (asker){.recommender = recommender};
        ck_assert_int_eq(pthread_create(&threads[t], NULL, ask_on, &askers[t]), 0);
        while (!__atomic_load_n(&askers[t].asked, __ATOMIC_RELAXED))
            sched_yield();
    }
    for (size_t step = 0; step < STEPS; step++)
        flip(recommender, (size_t)(sl_random_at(9, step) % (FUNNEL_ITEMS / 2)));
    for (size_t t = 0; t < THREADS; t++) {
        __atomic_store_n(&askers[t].stop, 1, __ATOMIC_RELAXED);
        pthread_join(threads[t], NULL);
        ck_assert_int_eq(askers[t].failed, SL_OK);
        ck_assert_uint_eq(askers[t].wrong, 0);
        ck_assert_uint_gt(askers[t].met, 0);
    }
    ck_assert_ptr_ne(sl_recommender_pair(recommender), first);
    sl_recommender_free(recommender);
    sl_items_free(items);
    sl_ranker_free(ranker);
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("serve deleted");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_loop_test(tests, deleted_items_never_come_back, 0, 5);
    tcase_add_loop_test(tests, any_number_of_deleted_items_is_made_up_for, 0, 14);
    tcase_add_test(tests, swaps_follow_the_table);
    tcase_add_test(tests, conditions_of_a_request_hold_too);
    tcase_add_test(tests, recommenders_of_one_table_delete_each);
    tcase_add_test(tests, bad_deletions_are_refused_whole);
    tcase_add_loop_test(tests, failed_deletions_delete_nothing, 0, 2);
    tcase_add_test(tests, a_warm_session_takes_no_memory);
    tcase_add_test(tests, turnover_takes_no_more_memory);
    TCase *threads = tcase_create("threads");
    tcase_add_checked_fixture(threads, set_up, tear_down);
    tcase_add_test(threads, no_later_answer_has_a_deleted_item);
    return check_main("serve deleted", (TCase *[]){tests, threads}, 2);
}
