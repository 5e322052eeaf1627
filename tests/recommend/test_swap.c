/* Models and tables are swapped, and rows updated, while requests run: each answer is of one version, whole. A warm
 * session takes no memory. The linker wraps all allocations, to count them. The program also wraps sl_hazard_announce,
 * so that a swap can happen just before and just after a session announces its pair. */
#include "base/random.h"
#include "recommend/recommender.h"
#include "tests/support/check_main.h"
#include "tests/support/faults.h"
#include "tests/support/funnel.h"
#include "tests/support/indexes.h"
#include "tests/support/system_calls.h"

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

enum { N = 10, CANDIDATES = 80, SCORED = 120, THREADS = 2, SWAPS = 1000 };

static funnel f;

static void set_up(void) {
    funnel_make(&f, 0, SL_METRIC_COSINE);
}
static void tear_down(void) {
    funnel_free(&f);
}

static sl_recommend_params sizes(void) {
    return funnel_sizes(N, CANDIDATES, 0);
}

static sl_item_part item_part; /* of the recommenders to be made */

static sl_recommender *make(sl_ranker *ranker, sl_items *items, const sl_allocator *allocator) {
    sl_recommender_params params;
    sl_recommender *recommender;
    sl_recommender_params_init(&params);
    params.allocator = allocator;
    params.item_part = item_part;
    params.threads = 1;
    ck_ok(sl_recommender_create(f.index, ranker, items, &params, &recommender));
    return recommender;
}

/* Makes a table with the same ids and the other columns turned, so that each item has another one's features. */
static void turn_items(grid *g) {
    size_t rows[FUNNEL_ITEMS];
    *g = (grid){.block_count = 0};
    for (size_t i = 0; i < FUNNEL_ITEMS; i++)
        rows[i] = (i + 77) % FUNNEL_ITEMS;
    grid_gather(g, &f.items.table, rows, FUNNEL_ITEMS);
    g->columns[0] = f.items.columns[0];
}

static const sl_column *find_column(const grid *g, const char *name) {
    size_t c = 0;
    while (strcmp(g->columns[c].name, name) != 0)
        c++;
    return &g->columns[c];
}

/* ---------------------------------------------------------------------------------------------------------------
 * Swaps
 * ------------------------------------------------------------------------------------------------------------- */

typedef struct answer {
    uint64_t ids[N];
    float scores[N], recall[N];
} answer;

/* A thread that asks until it is told to stop. answers[version % 2] has the right answer for each user. */
typedef struct asker {
    sl_recommender *recommender;
    answer (*answers)[FUNNEL_USERS];
    int stop; /* atomic */
    size_t asked, wrong, versions;
    sl_status failed;
} asker;

static void ask(sl_session *session, size_t user, answer *a, sl_recommend_stats *stats, sl_status *status) {
    const sl_recommend_params params = sizes();
    sl_request request = funnel_request(&f, user);
    *status = sl_session_recommend(session, &request, &params, a->ids, a->scores, a->recall, stats);
}

/* Waits until a thread has begun: on a busy machine all changes might else be over before it asks. */
static void wait_for(const size_t *asked) {
    while (!__atomic_load_n(asked, __ATOMIC_RELAXED))
        sched_yield();
}

static void *ask_on(void *ctx) {
    asker *me = ctx;
    sl_session *session;
    const sl_recommend_params params = sizes();
    uint64_t last = 0;
    me->failed = sl_session_create(me->recommender, &params, &session);
    while (me->failed == SL_OK && !__atomic_load_n(&me->stop, __ATOMIC_RELAXED)) {
        size_t user = __atomic_fetch_add(&me->asked, 1, __ATOMIC_RELAXED) % FUNNEL_USERS;
        answer a;
        sl_recommend_stats stats;
        ask(session, user, &a, &stats, &me->failed);
        if (me->failed != SL_OK) break;
        me->wrong += memcmp(&a, &me->answers[stats.version % 2][user], sizeof a) != 0;
        me->wrong += stats.version < last;
        me->versions += stats.version != last;
        last = stats.version;
    }
    /* A thread that failed at once is not waited for. */
    __atomic_fetch_add(&me->asked, 1, __ATOMIC_RELAXED);
    sl_session_free(session);
    return NULL;
}

START_TEST(swaps_are_whole) {
    static answer answers[2][FUNNEL_USERS];
    static const int models[][2] = {{MODEL_ALL, MODEL_DEEP}, {MODEL_PLAIN, MODEL_PLAIN}};
    grid turned;
    sl_ranker *rankers[2];
    sl_items *items[2];
    turn_items(&turned);
    for (size_t v = 0; v < 2; v++) {
        rankers[v] = funnel_ranker(&f, models[_i][v], 1 + v, NULL);
        items[v] = funnel_items(&f, NULL);
        if (v) ck_ok(sl_items_update(items[v], &turned.table));
        sl_recommender *alone = make(rankers[v], items[v], NULL);
        sl_session *session = funnel_session(alone, sizes());
        for (size_t u = 0; u < FUNNEL_USERS; u++) {
            sl_recommend_stats stats;
            sl_status status;
            ask(session, u, &answers[v][u], &stats, &status);
            ck_ok(status);
        }
        sl_session_free(session);
        sl_recommender_free(alone);
    }
    ck_assert_int_ne(memcmp(answers[0], answers[1], sizeof answers[0]), 0);
    fault_allocator memory;
    fault_allocator_init(&memory, 0);
    sl_recommender *recommender = make(rankers[0], items[0], &memory.allocator);
    asker askers[THREADS];
    pthread_t threads[THREADS];
    size_t early = 0, most = 0;
    for (size_t t = 0; t < THREADS; t++) {
        askers[t] = (asker){.recommender = recommender, .answers = answers};
        ck_assert_int_eq(pthread_create(&threads[t], NULL, ask_on, &askers[t]), 0);
        wait_for(&askers[t].asked);
    }
    for (size_t s = 1; s <= SWAPS; s++) {
        ck_ok(sl_recommender_swap(recommender, rankers[s % 2], items[s % 2]));
        size_t live = __atomic_load_n(&memory.live_bytes, __ATOMIC_RELAXED);
        if (live > most) most = live;
        if (s == SWAPS / 4) early = most;
    }
    for (size_t t = 0; t < THREADS; t++) {
        __atomic_store_n(&askers[t].stop, 1, __ATOMIC_RELAXED);
        pthread_join(threads[t], NULL);
        ck_assert_int_eq(askers[t].failed, SL_OK);
        ck_assert_uint_eq(askers[t].wrong, 0);
    }
    ck_assert_uint_eq(sl_recommender_version(recommender), SWAPS);
    /* Unused versions do not pile up. Each thread uses one at a time. */
    ck_assert_uint_le(most, 3 * early);
    sl_recommender_free(recommender);
    ck_assert_uint_eq(memory.live_blocks, 0);
    for (size_t v = 0; v < 2; v++) {
        sl_ranker_free(rankers[v]);
        sl_items_free(items[v]);
    }
    grid_free(&turned);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Announcing, and looking again
 * ------------------------------------------------------------------------------------------------------------- */

/* The number of next announcements that get a swap just before them, and just after them. */
static struct {
    sl_recommender *recommender; /* NULL: no announcement gets one */
    size_t before, after, announced;
} between;

void __real_sl_hazard_announce(sl_hazard *hazard, const sl_guarded *object);
void __wrap_sl_hazard_announce(sl_hazard *hazard, const sl_guarded *object);

void __wrap_sl_hazard_announce(sl_hazard *hazard, const sl_guarded *object) {
    if (!between.recommender) {
        __real_sl_hazard_announce(hazard, object);
        return;
    }
    between.announced++;
    if (between.before && between.before--) ck_ok(sl_recommender_swap(between.recommender, NULL, NULL));
    __real_sl_hazard_announce(hazard, object);
    if (between.after && between.after--) ck_ok(sl_recommender_swap(between.recommender, NULL, NULL));
}

/* A swap between a session's load of the pair and its announcement frees that pair: the session must look again. A swap
 * after the announcement must leave the pair, and the session may not go on with it either. */
START_TEST(a_session_looks_again) {
    size_t swaps = (size_t)_i / 2;
    int after = _i % 2;
    sl_items *items = funnel_items(&f, NULL);
    sl_recommender *recommender = make(NULL, items, NULL);
    sl_hazard *hazard;
    ck_ok(sl_hazards_take(&recommender->pairs, &hazard));
    between.recommender = recommender;
    between.announced = 0;
    between.before = after ? 0 : swaps;
    between.after = after ? swaps : 0;
    const sl_pair *pair = sl_recommender_begin(recommender, hazard);
    ck_assert_uint_eq(between.announced, swaps + 1);
    ck_assert_ptr_eq(pair, sl_recommender_pair(recommender));
    ck_assert_ptr_eq(hazard->used, &pair->guarded);
    ck_assert_uint_eq(pair->version, swaps);
    /* A swap keeps what was announced before it. The next swap frees it if no session announces it then. */
    size_t retired = 0;
    for (const sl_guarded *old = recommender->pairs.retired; old; old = old->next)
        retired++;
    ck_assert_uint_eq(retired, after && swaps);
    ck_ok(sl_recommender_swap(recommender, NULL, NULL));
    ck_assert_ptr_eq(recommender->pairs.retired, &pair->guarded);
    ck_assert_ptr_null(pair->guarded.next);
    sl_hazard_release(hazard);
    ck_assert_ptr_null(hazard->used);
    ck_ok(sl_recommender_swap(recommender, NULL, NULL));
    ck_assert_ptr_null(recommender->pairs.retired);
    sl_hazard_give_back(hazard);
    between.recommender = NULL;
    sl_recommender_free(recommender);
    sl_items_free(items);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Updates
 * ------------------------------------------------------------------------------------------------------------- */

/* The number of outdated rows decides when the prepared rows are compacted, not the number of updates. */
START_TEST(what_is_outdated_is_counted) {
    sl_items *items = funnel_items(&f, NULL);
    sl_recommender *recommender = make(NULL, items, NULL);
    const sl_pair *first = sl_recommender_pair(recommender);
    size_t outdated = first->prepared->outdated, parts = sl_catalog_parts(&first->prepared->catalog);
    ck_assert_uint_eq(outdated, 0);
    while (sl_recommender_pair(recommender) == first) {
        ck_ok(sl_recommender_update(recommender, &f.items.table));
        outdated += FUNNEL_ITEMS;
        parts++;
        ck_assert_uint_le(outdated, 4 * FUNNEL_ITEMS + 4096);
        if (sl_recommender_pair(recommender) == first) ck_assert_uint_eq(first->prepared->outdated, outdated);
    }
    ck_assert_uint_gt(outdated + 4 * parts, 4096);
    ck_assert_uint_le(outdated - FUNNEL_ITEMS + 4 * (parts - 1), 4096);
    ck_assert_uint_eq(sl_recommender_pair(recommender)->prepared->outdated, 0);
    ck_assert_uint_eq(sl_catalog_parts(&sl_recommender_pair(recommender)->prepared->catalog), 1);
    sl_recommender_free(recommender);
    sl_items_free(items);
}
END_TEST

typedef struct scorer {
    sl_recommender *recommender;
    float scores[2][SCORED]; /* before and after an item's row is replaced */
    int stop;                /* atomic */
    size_t asked, torn;
    sl_status failed;
} scorer;

/* Returns whether scores are equal but for rounding. Rounding differs between products of few rows and of many. That
 * may move an element of a rounded part to the next number of its type. */
static int alike(float a, float b) {
    float most = item_part == SL_ITEM_LAYER_BF16 || item_part == SL_ITEM_LAYER_I8 ? 1e-3f : 1e-5f;
    return fabsf(a - b) <= most * (1 + fabsf(b));
}

static void *score_on(void *ctx) {
    scorer *me = ctx;
    sl_session *session;
    const sl_recommend_params params = sizes();
    sl_request request = funnel_request(&f, 3);
    me->failed = sl_session_create(me->recommender, &params, &session);
    while (me->failed == SL_OK && !__atomic_load_n(&me->stop, __ATOMIC_RELAXED)) {
        float scores[SCORED];
        me->failed = sl_session_score(session, &request, f.ids, NULL, SCORED, scores, NULL);
        for (size_t i = 0; i < SCORED; i++)
            me->torn += !alike(scores[i], me->scores[0][i]) && !alike(scores[i], me->scores[1][i]);
        __atomic_add_fetch(&me->asked, 1, __ATOMIC_RELAXED);
    }
    __atomic_fetch_add(&me->asked, 1, __ATOMIC_RELAXED);
    sl_session_free(session);
    return NULL;
}

static void score_all(sl_ranker *ranker, sl_items *items, float *scores) {
    sl_recommender *recommender = make(ranker, items, NULL);
    sl_session *session = funnel_session(recommender, sizes());
    sl_request request = funnel_request(&f, 3);
    ck_ok(sl_session_score(session, &request, f.ids, NULL, SCORED, scores, NULL));
    sl_session_free(session);
    sl_recommender_free(recommender);
}

/* In each of many steps, replaces ten rows of the items by turned ones, or back. Sets state[i] to 1 if item i has its
 * turned row at the end. Memory stays within few times what it was before the first compaction. */
static void update_on(sl_recommender *recommender, const grid *turned, const fault_allocator *memory, int *state) {
    enum { STEPS = 1500, EARLY = 290, ROWS = 10 };
    size_t early = 0, most = 0;
    for (size_t step = 0; step < STEPS; step++) {
        const grid *from = step % 2 ? &f.items : turned;
        size_t rows[ROWS];
        for (size_t i = 0; i < ROWS; i++) {
            rows[i] = (sl_random_at(7, step) + 53 * i) % SCORED;
            state[rows[i]] = step % 2 == 0;
        }
        grid g = {.block_count = 0};
        grid_gather(&g, &from->table, rows, ROWS);
        ck_ok(sl_recommender_update(recommender, &g.table));
        grid_free(&g);
        size_t live = __atomic_load_n(&memory->live_bytes, __ATOMIC_RELAXED);
        if (live > most) most = live;
        if (step == EARLY) early = most;
    }
    /* Beside the copy in use and the one that is made, each thread may keep an outdated one from being freed. */
    ck_assert_uint_le(most, (2 + THREADS) * early);
}

/* The recommender serves the last state of each item, as does a new one. `wanted` has the scores of the original rows
 * and of the turned ones. */
static void expect_state(sl_recommender *recommender, sl_ranker *ranker, sl_items *items, float (*wanted)[SCORED],
                         const int *state) {
    float scores[2][SCORED];
    sl_session *session = funnel_session(recommender, sizes());
    sl_request request = funnel_request(&f, 3);
    ck_ok(sl_session_score(session, &request, f.ids, NULL, SCORED, scores[0], NULL));
    score_all(ranker, items, scores[1]);
    size_t told_apart = 0;
    for (size_t i = 0; i < SCORED; i++) {
        ck_assert(alike(scores[0][i], scores[1][i]));
        ck_assert(alike(scores[0][i], wanted[state[i]][i]));
        told_apart += !alike(scores[0][i], wanted[!state[i]][i]);
    }
    ck_assert_uint_gt(told_apart, SCORED / 10 * 9);
    sl_session_free(session);
}

/* Rows are replaced and put back so often that the prepared rows are compacted while requests run. */
START_TEST(updates_are_whole) {
    grid turned;
    sl_ranker *ranker = funnel_ranker(&f, MODEL_ALL, 1, NULL);
    sl_items *items = funnel_items(&f, NULL);
    scorer scorers[THREADS] = {{.stop = 0}};
    pthread_t threads[THREADS];
    fault_allocator memory;
    int state[FUNNEL_ITEMS] = {0};
    item_part = (sl_item_part)_i;
    turn_items(&turned);
    score_all(ranker, items, scorers[0].scores[0]);
    ck_ok(sl_items_update(items, &turned.table));
    score_all(ranker, items, scorers[0].scores[1]);
    ck_ok(sl_items_update(items, &f.items.table));
    memcpy(scorers[1].scores, scorers[0].scores, sizeof scorers[0].scores);
    fault_allocator_init(&memory, 0);
    sl_recommender *recommender = make(ranker, items, &memory.allocator);
    for (size_t t = 0; t < THREADS; t++) {
        scorers[t].recommender = recommender;
        ck_assert_int_eq(pthread_create(&threads[t], NULL, score_on, &scorers[t]), 0);
        wait_for(&scorers[t].asked);
    }
    update_on(recommender, &turned, &memory, state);
    for (size_t t = 0; t < THREADS; t++) {
        __atomic_store_n(&scorers[t].stop, 1, __ATOMIC_RELAXED);
        pthread_join(threads[t], NULL);
        ck_assert_int_eq(scorers[t].failed, SL_OK);
        ck_assert_uint_eq(scorers[t].torn, 0);
    }
    expect_state(recommender, ranker, items, scorers[0].scores, state);
    sl_recommender_free(recommender);
    ck_assert_uint_eq(memory.live_blocks, 0);
    sl_items_free(items);
    sl_ranker_free(ranker);
    grid_free(&turned);
}
END_TEST

/* A thread that makes one change, number `kind`, of a recommender and its table. */
typedef struct changer {
    sl_recommender *recommender;
    sl_items *items;
    int kind;
    int over; /* atomic */
    sl_status status;
} changer;

enum { CHANGES = 7 };

static void *change_here(void *ctx) {
    changer *me = ctx;
    const uint64_t id = f.ids[me->kind];
    const sl_status status = me->kind == 0   ? sl_recommender_swap(me->recommender, NULL, NULL)
                             : me->kind == 1 ? sl_recommender_update(me->recommender, &f.items.table)
                             : me->kind == 2 ? sl_recommender_set(me->recommender, &f.items.table)
                             : me->kind == 3 ? sl_recommender_delete(me->recommender, &id, 1)
                             : me->kind == 4 ? sl_items_update(me->items, &f.items.table)
                             : me->kind == 5 ? sl_items_set(me->items, &f.items.table)
                                             : sl_items_delete(me->items, &id, 1);
    me->status = status;
    __atomic_store_n(&me->over, 1, __ATOMIC_RELEASE);
    return NULL;
}

/* Waits until a thread waits at the gate. */
static void wait_at(sl_gate *gate) {
    for (size_t waiting = 0; !waiting; sched_yield()) {
        pthread_mutex_lock(&gate->lock);
        waiting = gate->waiting;
        pthread_mutex_unlock(&gate->lock);
    }
}

/* Each change waits while another thread changes the table, or swaps or updates. Requests go on. */
START_TEST(changes_wait_for_another) {
    sl_items *items = funnel_items(&f, NULL);
    sl_recommender *recommender = make(NULL, items, NULL);
    sl_session *session = funnel_session(recommender, sizes());
    for (int holds_table = 0; holds_table < 2; holds_table++)
        for (int kind = 0; kind < (holds_table ? CHANGES : 4); kind++) {
            changer me = {.recommender = recommender, .items = items, .kind = kind};
            sl_gate *gate = holds_table ? &items->access->changes : &recommender->changes;
            pthread_t thread;
            sl_request request = funnel_request(&f, 3);
            float score;
            ck_ok(sl_gate_enter(gate));
            ck_assert_int_eq(pthread_create(&thread, NULL, change_here, &me), 0);
            wait_at(gate);
            ck_ok(sl_session_score(session, &request, f.ids, NULL, 1, &score, NULL));
            ck_assert_int_eq(__atomic_load_n(&me.over, __ATOMIC_ACQUIRE), 0);
            sl_gate_leave(gate);
            pthread_join(thread, NULL);
            ck_assert_int_eq(me.status, SL_OK);
            ck_ok(sl_recommender_update(recommender, &f.items.table));
        }
    ck_assert_uint_eq(sl_recommender_version(recommender), 2);
    sl_session_free(session);
    sl_recommender_free(recommender);
    sl_items_free(items);
}
END_TEST

/* New items are served once the recommender is told of them. A refused update changes nothing. */
START_TEST(updates_add_items) {
    sl_ranker *ranker = funnel_ranker(&f, MODEL_ALL, 1, NULL);
    size_t some[FUNNEL_ITEMS / 2], others[FUNNEL_ITEMS / 2];
    for (size_t i = 0; i < FUNNEL_ITEMS / 2; i++) {
        some[i] = 2 * i;
        others[i] = 2 * i + 1;
    }
    grid first = {.block_count = 0}, second = {.block_count = 0};
    grid_gather(&first, &f.items.table, some, FUNNEL_ITEMS / 2);
    grid_gather(&second, &f.items.table, others, FUNNEL_ITEMS / 2);
    sl_table_cursor *cursor = malloc(sl_table_cursor_size(first.table.column_count));
    sl_rows rows = {.struct_size = sizeof rows};
    sl_items *items, *all = funnel_items(&f, NULL);
    ck_ok(sl_table_rows(&first.table, cursor, &rows));
    ck_ok(sl_items_create(&rows, NULL, &items));
    sl_recommender *recommender = make(ranker, items, NULL), *alone = make(NULL, NULL, NULL);
    sl_session *session = funnel_session(recommender, sizes());
    sl_request request = funnel_request(&f, 3);
    float scores[SCORED], wanted[SCORED];
    sl_recommend_stats stats;
    ck_ok(sl_session_score(session, &request, f.ids, NULL, SCORED, scores, &stats));
    ck_assert_uint_eq(stats.without_features, SCORED / 2);
    second.columns[3].name = "unheard of";
    ck_fails(sl_recommender_update(recommender, &second.table), SL_ENOTFOUND, "unheard of");
    second.columns[3].name = f.items.columns[3].name;
    ck_ok(sl_session_score(session, &request, f.ids, NULL, SCORED, scores, &stats));
    ck_assert_uint_eq(stats.without_features, SCORED / 2);
    ck_assert_uint_eq(sl_items_size(items), FUNNEL_ITEMS / 2);
    ck_ok(sl_recommender_update(recommender, &second.table));
    ck_assert_uint_eq(sl_items_size(items), FUNNEL_ITEMS);
    ck_ok(sl_session_score(session, &request, f.ids, NULL, SCORED, scores, &stats));
    ck_assert_uint_eq(stats.without_features, 0);
    ck_assert_uint_eq(stats.version, 0);
    score_all(ranker, all, wanted);
    ck_assert_mem_eq(scores, wanted, sizeof scores);
    ck_fails(sl_recommender_update(alone, &second.table), SL_EINVAL, "no item table");
    sl_session_free(session);
    sl_recommender_free(recommender);
    sl_recommender_free(alone);
    sl_items_free(items);
    sl_items_free(all);
    sl_ranker_free(ranker);
    grid_free(&first);
    grid_free(&second);
    free(cursor);
}
END_TEST

/* Sets two columns of half of the items. Scores are those of a table that has the same values. */
START_TEST(set_prepares_whole_rows) {
    sl_ranker *ranker = funnel_ranker(&f, MODEL_ALL, 1, NULL);
    sl_items *items = funnel_items(&f, NULL), *other = funnel_items(&f, NULL);
    item_part = (sl_item_part)_i;
    sl_recommender *recommender = make(ranker, items, NULL);
    sl_session *session = funnel_session(recommender, sizes());
    sl_request request = funnel_request(&f, 3);
    float scores[SCORED], before[SCORED], wanted[SCORED];
    uint64_t missing = UINT64_C(1) << 50;
    grid turned;
    turn_items(&turned);
    const sl_column columns[] = {turned.columns[0], *find_column(&turned, "genre"), *find_column(&turned, "year")};
    sl_table table = {.struct_size = sizeof table, .rows = FUNNEL_ITEMS / 2, .column_count = 3, .columns = columns};
    score_all(ranker, items, before);
    ck_ok(sl_recommender_set(recommender, &table));
    ck_ok(sl_items_set(other, &table));
    score_all(ranker, other, wanted);
    ck_ok(sl_session_score(session, &request, f.ids, NULL, SCORED, scores, NULL));
    size_t moved = 0;
    for (size_t i = 0; i < SCORED; i++) {
        ck_assert(alike(scores[i], wanted[i]));
        moved += !alike(scores[i], before[i]);
    }
    ck_assert_uint_gt(moved, SCORED / 2);
    /* A row that the table lacks has no other columns: nothing is set. */
    const sl_column unknown[] = {{.name = "id", .type = SL_COLUMN_I64, .values = &missing}, columns[1]};
    table = (sl_table){.struct_size = sizeof table, .rows = 1, .column_count = 2, .columns = unknown};
    ck_fails(sl_recommender_set(recommender, &table), SL_ENOTFOUND, "row 0");
    ck_fails(sl_recommender_set(recommender, NULL), SL_EINVAL, "");
    sl_session_free(session);
    sl_recommender_free(recommender);
    sl_items_free(items);
    sl_items_free(other);
    sl_ranker_free(ranker);
    grid_free(&turned);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Memory
 * ------------------------------------------------------------------------------------------------------------- */

/* A session that has met a model, and requests of some size, takes no more memory. */
START_TEST(a_warm_session_takes_no_memory) {
    fault_allocator memory;
    fault_allocator_init(&memory, 0);
    sl_ranker *ranker = funnel_ranker(&f, _i, 1, NULL), *other = funnel_ranker(&f, _i, 2, NULL);
    sl_items *items = funnel_items(&f, NULL);
    sl_recommender_params params;
    sl_recommender *recommender;
    sl_recommender_params_init(&params);
    params.allocator = &memory.allocator;
    params.group = "genre";
    ck_ok(sl_recommender_create(f.index, ranker, items, &params, &recommender));
    sl_session *session = funnel_session(recommender, sizes());
    sl_recommend_params asked = sizes();
    asked.max_per_group = 3;
    sl_request request = funnel_request(&f, 0);
    request.exclude = f.ids;
    request.exclude_count = 50;
    for (int swapped = 0; swapped < 2; swapped++) {
        if (swapped) ck_ok(sl_recommender_swap(recommender, other, NULL));
        answer a;
        size_t calls = 0, system_before = 0;
        sl_status status = SL_OK;
        for (size_t user = 0; user < 2 * FUNNEL_USERS && status == SL_OK; user++) {
            if (user == FUNNEL_USERS) {
                calls = memory.calls;
                system_before = system_calls();
            }
            request.user_row = user % FUNNEL_USERS;
            request.vector = f.user_vectors + request.user_row * FUNNEL_DIM;
            status = sl_session_recommend(session, &request, &asked, a.ids, a.scores, a.recall, NULL);
        }
        size_t system_after = system_calls();
        ck_ok(status);
        ck_assert_uint_eq(memory.calls, calls);
        ck_assert_uint_eq(system_after, system_before);
        ck_assert_uint_gt(system_before, 0);
    }
    sl_session_free(session);
    sl_recommender_free(recommender);
    ck_assert_uint_eq(memory.live_blocks, 0);
    sl_items_free(items);
    sl_ranker_free(ranker);
    sl_ranker_free(other);
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("swap");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_loop_test(tests, swaps_are_whole, 0, 2);
    tcase_add_loop_test(tests, a_session_looks_again, 0, 6);
    tcase_add_test(tests, what_is_outdated_is_counted);
    tcase_add_loop_test(tests, updates_are_whole, 0, 4);
    tcase_add_test(tests, changes_wait_for_another);
    tcase_add_test(tests, updates_add_items);
    tcase_add_loop_test(tests, set_prepares_whole_rows, 0, 4);
    tcase_add_loop_test(tests, a_warm_session_takes_no_memory, 0, MODELS);
    return check_main("swap", &tests, 1);
}
