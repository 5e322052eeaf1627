/* A recommender follows the index and the table that it serves: what a call has added, replaced, deleted or set is in
 * the next answer, without a swap. */
#include "base/random.h"
#include "hnsw/graph/index.h"
#include "hnsw/search/accessors.h"
#include "recommend/recommender.h"
#include "tests/support/check_main.h"
#include "tests/support/faults.h"
#include "tests/support/funnel.h"
#include "tests/support/indexes.h"
#include "tests/support/sanitized.h"
#include "tests/support/scratch.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DIM = FUNNEL_DIM, ALL = FUNNEL_ITEMS, CANDIDATES = 100, EF = 300, LIVE = 48, USER = 3 };

static funnel f;
static sl_ranker *ranker;
static sl_items *items;
static sl_recommender *recommender;
static sl_session *session;

/* Models with features of items in the table, in the index, and in both; and recall alone. */
static const int models[] = {MODEL_PLAIN, MODEL_VECTORS, MODEL_ALL, MODEL_DEEP, -1};
enum { KINDS = 5 };

static int has_vectors(int kind) {
    return models[kind] == MODEL_VECTORS || models[kind] == MODEL_ALL || models[kind] == MODEL_DEEP;
}

static fault_allocator memory; /* the recommender's and its sessions' */

static void make_on(sl_index *index, int kind) {
    sl_recommender_params params;
    sl_recommender_params_init(&params);
    fault_allocator_init(&memory, 0);
    params.allocator = &memory.allocator;
    params.item_part = (sl_item_part)(kind % 4);
    params.threads = 1;
    ranker = models[kind] >= 0 ? funnel_ranker(&f, models[kind], 1, NULL) : NULL;
    items = models[kind] == MODEL_VECTORS ? NULL : funnel_items(&f, NULL);
    ck_ok(sl_recommender_create(index, ranker, items, &params, &recommender));
    session = funnel_session(recommender, funnel_sizes(CANDIDATES, CANDIDATES, EF));
}

static void unmake(void) {
    sl_session_free(session);
    sl_recommender_free(recommender);
    ck_assert_uint_eq(memory.live_blocks, 0);
    sl_items_free(items);
    sl_ranker_free(ranker);
}

static void set_up(void) {
    funnel_make(&f, 1, SL_METRIC_COSINE);
}
static void tear_down(void) {
    funnel_free(&f);
}

/* A vector of an item, or another one in its place. */
static const float *vector_of(size_t item, int other) {
    return f.vectors + (other ? (item + 311) % ALL : item) * DIM;
}

/* The item's row of the table, or another one in its place. */
static void row_of(size_t item, int other, grid *out) {
    const size_t row = other ? (item + 77) % ALL : item;
    *out = (grid){.block_count = 0};
    grid_gather(out, &f.items.table, &row, 1);
    memcpy(out->blocks[1], &f.ids[item], sizeof f.ids[item]);
    ck_assert_ptr_eq(out->columns[0].values, out->blocks[1]);
}

static void put_vector(sl_index *index, size_t item, int other, int replace) {
    sl_add_params params;
    sl_add_params_init(&params);
    params.threads = 1;
    params.replace = replace;
    ck_ok(sl_index_add(index, vector_of(item, other), SL_F32, 1, 0, &f.ids[item], &params));
}

static void put_row(size_t item, int other, int partial) {
    grid row;
    if (!items) return;
    row_of(item, other, &row);
    ck_ok(partial ? sl_recommender_set(recommender, &row.table) : sl_recommender_update(recommender, &row.table));
    grid_free(&row);
}

typedef struct answer {
    uint64_t ids[CANDIDATES];
    float scores[CANDIDATES];
    sl_recommend_stats stats;
} answer;

/* Asks for all candidates near a vector. */
static sl_status ask(sl_session *by, const float *vector, answer *out) {
    const sl_recommend_params params = funnel_sizes(CANDIDATES, CANDIDATES, EF);
    sl_request request = funnel_request(&f, USER);
    request.vector = vector;
    return sl_session_recommend(by, &request, &params, out->ids, out->scores, NULL, &out->stats);
}

/* The number of an item in an answer; CANDIDATES: it isn't there. */
static size_t place_of(const answer *a, size_t item) {
    size_t i = 0;
    while (i < CANDIDATES && a->ids[i] != f.ids[item])
        i++;
    return i;
}

/* The score of an item in the answer for its own vector; NaN: it isn't in it. */
static float score_of(size_t item, int other) {
    static answer a;
    ck_ok(ask(session, vector_of(item, other), &a));
    const size_t at = place_of(&a, item);
    return at < CANDIDATES ? a.scores[at] : NAN;
}

static int alike(float a, float b) {
    return fabsf(a - b) <= 2e-3f || (isnan(a) && isnan(b));
}

/* Scores by rows that were all prepared ahead, from the index and the table as they are. */
static float score_after_a_swap(size_t item, int other) {
    ck_ok(sl_recommender_swap(recommender, NULL, NULL));
    return score_of(item, other);
}

/* The states of items: other vector or not, and other fields or not. */
static float expected[LIVE][2][2];

/* Computes the scores of all states, by rows that were prepared ahead. At the end all are in state 0, 0. */
static void compute_expected(void) {
    for (int state = 3; state >= 0; state--) {
        const int vector = state & 1, fields = state >> 1;
        for (size_t i = 0; i < LIVE; i++) {
            put_vector(f.index, i, vector, 1);
            put_row(i, fields, 0);
        }
        ck_ok(sl_recommender_swap(recommender, NULL, NULL));
        for (size_t i = 0; i < LIVE; i++) {
            expected[i][vector][fields] = score_of(i, vector);
            ck_assert(!isnan(expected[i][vector][fields]));
        }
    }
}

/* Most items score otherwise in another state, so a stale score is noticed. */
static void ck_states_differ(int kind) {
    size_t by_vector = 0, by_fields = 0;
    for (size_t i = 0; i < LIVE; i++) {
        by_vector += !alike(expected[i][0][0], expected[i][1][0]);
        by_fields += !alike(expected[i][0][0], expected[i][0][1]);
    }
    if (has_vectors(kind)) ck_assert_uint_gt(by_vector, LIVE / 2);
    if (items && ranker) ck_assert_uint_gt(by_fields, LIVE / 2);
}

/* ---------------------------------------------------------------------------------------------------------------
 * One thread
 * ------------------------------------------------------------------------------------------------------------- */

/* Each user's whole answer is the one by rows that were prepared ahead. */
static void ck_answers_are_those_after_a_swap(void) {
    static answer before[FUNNEL_USERS], after;
    for (size_t user = 0; user < FUNNEL_USERS; user++)
        ck_ok(ask(session, f.user_vectors + user * DIM, &before[user]));
    ck_ok(sl_recommender_swap(recommender, NULL, NULL));
    for (size_t user = 0; user < FUNNEL_USERS; user++) {
        ck_ok(ask(session, f.user_vectors + user * DIM, &after));
        for (size_t i = 0; i < CANDIDATES; i++) {
            const size_t row = funnel_row(&f, before[user].ids[i]), at = place_of(&after, row);
            ck_assert_uint_lt(at, CANDIDATES);
            ck_assert(alike(before[user].scores[i], after.scores[at]));
        }
    }
}

/* Deleted items lie among the candidates, and are left out. */
START_TEST(replaced_vectors_and_set_fields_are_served) {
    make_on(f.index, _i);
    compute_expected();
    ck_states_differ(_i);
    if (items) ck_ok(sl_recommender_delete(recommender, f.ids + LIVE, 5 * LIVE));
    for (size_t step = 0; step < 4 * LIVE; step++) {
        const size_t item = step % LIVE;
        const int vector = (int)(step / LIVE % 2), fields = (int)(step / LIVE / 2);
        put_vector(f.index, item, vector, 1);
        put_row(item, fields, 1);
        ck_assert_msg(alike(score_of(item, vector), expected[item][vector][fields]), "item %zu, step %zu", item, step);
    }
    for (size_t item = 0; item < ALL; item += item + 1 == LIVE ? 5 * LIVE + 1 : 1)
        put_vector(f.index, item, item % 2 == 0, 1);
    ck_answers_are_those_after_a_swap();
    unmake();
}
END_TEST

/* Gone from the index, from the table, or from both: in no later answer. Then it comes back, row and vector in either
 * order, with another vector and other fields. */
START_TEST(deleted_items_come_back_with_what_they_have) {
    make_on(f.index, _i);
    compute_expected();
    for (size_t item = 0; item < LIVE; item++) {
        const int from_index = item % 3 != 0, from_table = items && item % 3 != 1, vector_first = item % 2;
        if (!from_index && !from_table) continue;
        if (from_index) ck_ok(sl_index_delete(f.index, &f.ids[item], 1));
        if (from_table) ck_ok(sl_recommender_delete(recommender, &f.ids[item], 1));
        ck_assert(isnan(score_of(item, 0)));
        if (from_index && vector_first) put_vector(f.index, item, 1, 0);
        if (from_index && vector_first && from_table) ck_assert(isnan(score_of(item, 1)));
        put_row(item, 1, 0);
        if (from_index && !vector_first) ck_assert(isnan(score_of(item, 1)));
        if (from_index && !vector_first) put_vector(f.index, item, 1, 0);
        ck_assert_msg(alike(score_of(item, from_index), expected[item][from_index][items != NULL]), "item %zu", item);
    }
    unmake();
}
END_TEST

/* The first vector of an id gives way to another by a delete and an add, at a new place. */
START_TEST(vectors_that_come_back_are_served) {
    enum { SOME = 12 };
    size_t moved = 0;
    make_on(f.index, _i);
    for (size_t item = 0; item < SOME; item++) {
        const float before = score_of(item, 0);
        ck_ok(sl_index_delete(f.index, &f.ids[item], 1));
        put_vector(f.index, item, 1, 0);
        const float score = score_of(item, 1);
        moved += !alike(score, before);
        ck_assert(alike(score, score_after_a_swap(item, 1)));
    }
    if (has_vectors(_i)) ck_assert_uint_gt(moved, SOME / 2);
    unmake();
}
END_TEST

/* An item that neither has had. A row without a vector is no candidate. A vector without a row has no features. */
START_TEST(new_items_are_served) {
    static answer a;
    make_on(f.index, _i);
    const size_t item = 5;
    const uint64_t id = 424242;
    const float *vector = vector_of(item, 1);
    grid row;
    row_of(item, 1, &row);
    memcpy(row.blocks[1], &id, sizeof id);
    f.ids[item] = id;
    if (items) ck_ok(sl_recommender_update(recommender, &row.table));
    ck_ok(ask(session, vector, &a));
    ck_assert_uint_eq(place_of(&a, item), CANDIDATES);
    put_vector(f.index, item, 1, 0);
    /* Nothing was deleted yet, so births take no memory. */
    uint64_t birth;
    ck_ok(sl_index_births(f.index, &id, 1, &birth));
    ck_assert_uint_eq(birth, 1);
    const float score = score_of(item, 1);
    ck_assert(!isnan(score));
    ck_assert(alike(score, score_after_a_swap(item, 1)));
    ck_ok(ask(session, vector, &a));
    ck_assert_uint_eq(a.stats.without_features, 0);
    const uint64_t unknown = 434343;
    ck_ok(sl_index_add(f.index, vector, SL_F32, 1, 0, &unknown, NULL));
    ck_ok(ask(session, vector, &a));
    ck_assert_uint_eq(a.stats.without_features, items != NULL);
    grid_free(&row);
    unmake();
}
END_TEST

/* Rows that were prepared after their vectors were replaced need no preparing by requests. */
static void ck_births_are_kept(int kind) {
    const sl_prepared *prepared = sl_recommender_pair(recommender)->prepared;
    for (size_t item = 0; item < LIVE / 2 && has_vectors(kind); item++) {
        const sl_row_ref ref = sl_catalog_find(&prepared->catalog, f.ids[item]);
        const sl_prepared_part *part = sl_catalog_part(&prepared->catalog, sl_ref_part(ref));
        uint64_t birth;
        ck_ok(sl_index_births(f.index, &f.ids[item], 1, &birth));
        ck_assert_uint_gt(birth, 1);
        ck_assert_uint_eq(part->births[sl_ref_row(ref)], birth);
    }
}

/* Setting ids alone prepares their rows ahead again. */
START_TEST(setting_ids_alone_prepares_again) {
    make_on(f.index, _i);
    for (size_t item = 0; item < LIVE && items; item++) {
        grid row;
        row_of(item, 0, &row);
        row.table.column_count = 1;
        put_vector(f.index, item, 1, 1);
        ck_ok(sl_recommender_set(recommender, &row.table));
        grid_free(&row);
    }
    if (items) ck_births_are_kept(_i);
    unmake();
}
END_TEST

/* Compaction of prepared rows keeps what they were made of. Given ids are scored as candidates are. */
START_TEST(compaction_and_given_ids_follow_too) {
    make_on(f.index, _i);
    compute_expected();
    for (size_t item = 0; item < LIVE; item++)
        put_vector(f.index, item, item % 2 == 0, 1);
    for (size_t item = 0; item < LIVE / 2; item++)
        put_row(item, 0, 0);
    const sl_pair *before = sl_recommender_pair(recommender);
    before->prepared->outdated = 1u << 20;
    if (items) {
        put_row(0, 0, 0);
        ck_assert_ptr_ne(sl_recommender_pair(recommender), before);
        ck_births_are_kept(_i);
    }
    for (size_t item = 0; item < LIVE; item++) {
        const int other = item % 2 == 0;
        sl_request request = funnel_request(&f, USER);
        float score;
        request.vector = vector_of(item, other);
        ck_assert(alike(score_of(item, other), expected[item][other][0]));
        ck_ok(sl_session_score(session, &request, &f.ids[item], NULL, 1, &score, NULL));
        ck_assert(alike(score, expected[item][other][0]));
    }
    unmake();
}
END_TEST

/* Each allocation fails in turn, of a request that prepares rows for the first time. Later ones take no memory. */
START_TEST(failed_requests_leave_nothing) {
    static answer a;
    size_t refused = 0;
    make_on(f.index, _i);
    (void)score_of(7, 0);
    for (size_t item = 0; item < LIVE; item++)
        put_vector(f.index, item, 1, 1);
    for (size_t fail_at = 1;; fail_at++) {
        memory.fail_at = memory.calls + fail_at;
        const sl_status status = ask(session, vector_of(7, 1), &a);
        memory.fail_at = 0;
        if (status == SL_OK) break;
        ck_assert_int_eq(status, SL_ENOMEM);
        refused++;
    }
    ck_assert_uint_ge(refused, has_vectors(_i) ? 5 : 0);
    const size_t calls = memory.calls;
    const float score = score_of(7, 1);
    ck_assert_uint_eq(memory.calls, calls);
    ck_assert(!isnan(score));
    ck_assert(alike(score, score_after_a_swap(7, 1)));
    unmake();
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * A file that another handle writes
 * ------------------------------------------------------------------------------------------------------------- */

/* A recommender over a mapped file follows the writer's syncs. */
START_TEST(a_file_of_another_writer_is_followed) {
    scratch place;
    char path[SCRATCH_PATH];
    sl_save_params save;
    sl_open_params open;
    sl_index *writer;
    scratch_open(&place);
    scratch_name(&place, "live.sl", path);
    sl_save_params_init(&save);
    save.room = 2 * ALL;
    ck_ok(sl_index_save(f.index, path, &save));
    sl_open_params_init(&open);
    open.place = SL_PLACE_MAP;
    open.writable = 1;
    ck_ok(sl_index_open(path, &open, &writer));
    sl_index *reader = indexes_open(path, SL_PLACE_MAP);
    make_on(reader, _i);
    ck_assert(!isnan(score_of(1, 0)));
    ck_ok(sl_index_delete(writer, &f.ids[1], 1));
    put_vector(writer, 2, 1, 1);
    ck_ok(sl_index_sync(writer));
    ck_assert(isnan(score_of(1, 0)));
    float score = score_of(2, 1);
    ck_assert(!isnan(score) && alike(score, score_after_a_swap(2, 1)));
    put_vector(writer, 1, 1, 0);
    ck_assert(isnan(score_of(1, 1)));
    ck_ok(sl_index_sync(writer));
    score = score_of(1, 1);
    ck_assert(!isnan(score) && alike(score, score_after_a_swap(1, 1)));
    /* Another writer's first add, of an id that the first one deleted. */
    ck_ok(sl_index_delete(writer, &f.ids[3], 1));
    ck_ok(sl_index_sync(writer));
    sl_index_free(writer);
    ck_ok(sl_index_open(path, &open, &writer));
    put_vector(writer, 3, 1, 0);
    ck_ok(sl_index_sync(writer));
    score = score_of(3, 1);
    ck_assert(!isnan(score) && alike(score, score_after_a_swap(3, 1)));
    unmake();
    sl_index_free(reader);
    sl_index_free(writer);
    scratch_close(&place);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Threads
 * ------------------------------------------------------------------------------------------------------------- */

enum { WRITERS = 2, ASKERS = 2 };

/* The state of an item, as calls acknowledged it. CHANGING: a call changes it. The rest counts changes. */
enum { VECTOR = 1, FIELDS = 2, IN_INDEX = 4, IN_TABLE = 8, CHANGING = 16, ONE_MORE = 32 };
static uint32_t notes[LIVE]; /* atomic */
static int over;             /* atomic */
static size_t asked;         /* atomic: answers that were compared with the state of their item */
static grid rows[LIVE][2];

static uint32_t note_of(size_t item) {
    return __atomic_load_n(&notes[item], __ATOMIC_SEQ_CST);
}
static void note(size_t item, uint32_t value) {
    __atomic_store_n(&notes[item], value, __ATOMIC_SEQ_CST);
}
static int is_served(uint32_t state) {
    return (state & IN_INDEX) && (state & IN_TABLE);
}

typedef struct worker {
    size_t first;
    sl_status failed;
    char what[256];
    size_t done, found, absent, skipped;
} worker;

static sl_status add_vector(size_t item, uint32_t state) {
    sl_add_params params;
    sl_add_params_init(&params);
    params.threads = 1;
    params.replace = (state & IN_INDEX) != 0;
    return sl_index_add(f.index, vector_of(item, (state & VECTOR) != 0), SL_F32, 1, 0, &f.ids[item], &params);
}

/* Makes one change, and returns the state that it leaves. */
static uint32_t change(worker *me, size_t item, uint32_t state, uint64_t random) {
    const uint64_t *id = &f.ids[item];
    const sl_table *row = &rows[item][(state & FIELDS) != 0].table, *other = &rows[item][(state & FIELDS) == 0].table;
    if (!(state & IN_TABLE)) {
        me->failed = sl_recommender_update(recommender, row);
        return state | IN_TABLE;
    }
    if (!(state & IN_INDEX)) {
        state ^= VECTOR;
        me->failed = add_vector(item, state);
        return state | IN_INDEX;
    }
    const unsigned what = (unsigned)(random % (items ? 6 : 4));
    if (what < 2) {
        me->failed = add_vector(item, state ^ VECTOR);
        return state ^ VECTOR;
    }
    if (what < 4) {
        me->failed = sl_index_delete(f.index, id, 1);
        return state & ~(uint32_t)IN_INDEX;
    }
    if (what == 4) {
        me->failed = sl_recommender_set(recommender, other);
        return state ^ FIELDS;
    }
    me->failed = sl_recommender_delete(recommender, id, 1);
    return state & ~(uint32_t)IN_TABLE;
}

static void *write_on(void *ctx) {
    worker *me = ctx;
    const size_t steps = SANITIZED ? 120 : 800, enough = SANITIZED ? 20 : 100;
    for (size_t step = 0; me->failed == SL_OK; step++) {
        if (step >= steps && __atomic_load_n(&asked, __ATOMIC_RELAXED) >= enough) break;
        const uint64_t random = sl_random_at(me->first, step);
        const size_t item = me->first + WRITERS * (random % (LIVE / WRITERS));
        const uint32_t before = note_of(item);
        note(item, before | CHANGING);
        const uint32_t after = change(me, item, before, random >> 32);
        note(item, after + ONE_MORE);
        me->done++;
    }
    if (me->failed != SL_OK) strncpy(me->what, sl_last_error(), sizeof me->what - 1);
    return NULL;
}

/* Compares an answer with the state of an item, which did not change during the request. */
static void compare(worker *me, const answer *a, size_t item, uint32_t state, int is_target) {
    const size_t at = place_of(a, item);
    if (!is_served(state)) {
        me->absent++;
        if (at == CANDIDATES) return;
        snprintf(me->what, sizeof me->what, "item %zu is served in state %u", item, state);
        me->failed = SL_EINVAL;
    } else if (is_target) {
        const float wanted = expected[item][(state & VECTOR) != 0][(state & FIELDS) != 0];
        me->found++;
        __atomic_fetch_add(&asked, 1, __ATOMIC_RELAXED);
        if (at < CANDIDATES && alike(a->scores[at], wanted)) return;
        snprintf(me->what, sizeof me->what, "item %zu at %zu has %g, not %g, in state %u", item, at,
                 at < CANDIDATES ? (double)a->scores[at] : 0, (double)wanted, state);
        me->failed = SL_EINVAL;
    }
}

static void ask_once(worker *me, sl_session *by, size_t target) {
    uint32_t before[LIVE];
    answer a;
    for (size_t item = 0; item < LIVE; item++)
        before[item] = note_of(item);
    me->failed = ask(by, vector_of(target, (before[target] & VECTOR) != 0), &a);
    for (size_t item = 0; item < LIVE && me->failed == SL_OK; item++) {
        if ((before[item] & CHANGING) || note_of(item) != before[item])
            me->skipped++;
        else
            compare(me, &a, item, before[item], item == target);
    }
}

static void *ask_on(void *ctx) {
    worker *me = ctx;
    sl_session *by;
    const sl_recommend_params params = funnel_sizes(CANDIDATES, CANDIDATES, EF);
    me->failed = sl_session_create(recommender, &params, &by);
    while (me->failed == SL_OK && !__atomic_load_n(&over, __ATOMIC_RELAXED))
        ask_once(me, by, sl_random_at(99 + me->first, me->done++) % LIVE);
    /* Writers go on until enough was asked. */
    if (me->failed != SL_OK) __atomic_store_n(&asked, SIZE_MAX / 2, __ATOMIC_RELAXED);
    sl_session_free(by);
    return NULL;
}

static void run_together(worker *writers, worker *askers) {
    pthread_t threads[WRITERS + ASKERS];
    for (size_t t = 0; t < WRITERS; t++) {
        writers[t] = (worker){.first = t};
        ck_assert_int_eq(pthread_create(&threads[t], NULL, write_on, &writers[t]), 0);
    }
    for (size_t t = 0; t < ASKERS; t++) {
        askers[t] = (worker){.first = t};
        ck_assert_int_eq(pthread_create(&threads[WRITERS + t], NULL, ask_on, &askers[t]), 0);
    }
    for (size_t t = 0; t < WRITERS; t++)
        pthread_join(threads[t], NULL);
    __atomic_store_n(&over, 1, __ATOMIC_RELAXED);
    for (size_t t = 0; t < ASKERS; t++)
        pthread_join(threads[WRITERS + t], NULL);
}

/* Writers add, replace, delete and set items of their own, beside requests. Each answer has what was acknowledged
 * before the request began, with its present score, and nothing that was deleted. */
START_TEST(answers_have_what_was_acknowledged) {
    worker writers[WRITERS], askers[ASKERS];
    make_on(f.index, _i);
    compute_expected();
    ck_states_differ(_i);
    over = 0;
    asked = 0;
    for (size_t item = 0; item < LIVE; item++) {
        note(item, IN_INDEX | IN_TABLE);
        for (int fields = 0; fields < 2; fields++)
            row_of(item, fields, &rows[item][fields]);
    }
    run_together(writers, askers);
    for (size_t t = 0; t < WRITERS; t++)
        ck_assert_msg(writers[t].failed == SL_OK, "%s", writers[t].what);
    for (size_t t = 0; t < ASKERS; t++) {
        ck_assert_msg(askers[t].failed == SL_OK, "%s", askers[t].what);
    }
    for (size_t item = 0; item < LIVE; item++) {
        const uint32_t state = note_of(item);
        const int vector = (state & VECTOR) != 0, fields = (state & FIELDS) != 0;
        const float wanted = is_served(state) ? expected[item][vector][fields] : NAN;
        ck_assert(alike(score_of(item, vector), wanted));
        ck_assert(alike(score_after_a_swap(item, vector), wanted));
        grid_free(&rows[item][0]);
        grid_free(&rows[item][1]);
    }
    unmake();
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("follow");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_loop_test(tests, replaced_vectors_and_set_fields_are_served, 0, KINDS);
    tcase_add_loop_test(tests, deleted_items_come_back_with_what_they_have, 0, KINDS);
    tcase_add_loop_test(tests, vectors_that_come_back_are_served, 0, KINDS);
    tcase_add_loop_test(tests, new_items_are_served, 0, KINDS);
    tcase_add_loop_test(tests, compaction_and_given_ids_follow_too, 0, KINDS);
    tcase_add_loop_test(tests, setting_ids_alone_prepares_again, 0, KINDS);
    tcase_add_loop_test(tests, failed_requests_leave_nothing, 0, KINDS);
    tcase_add_loop_test(tests, a_file_of_another_writer_is_followed, 0, KINDS);
    TCase *threads = tcase_create("threads");
    tcase_add_checked_fixture(threads, set_up, tear_down);
    tcase_add_loop_test(threads, answers_have_what_was_acknowledged, 0, KINDS);
    return check_main("follow", (TCase *[]){tests, threads}, 2);
}
