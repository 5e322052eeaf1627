/* One handle, many threads: writers add and delete vectors of their own ids, while others search, read and save. Each
 * writer tells an oracle what was acknowledged. Each reader asks it about what it finds. */
#define _GNU_SOURCE
#include "base/random.h"
#include "hnsw/graph/index.h"
#include "hnsw/graph/version.h"
#include "tests/support/check_main.h"
#include "tests/support/indexes.h"
#include "tests/support/oracle.h"
#include "tests/support/sanitized.h"
#include "tests/support/scratch.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { DIM = ORACLE_DIM, IDS = 600, WRITERS = 2, STILL = 1000, K = 10 };

/* Ids from IDS on never change. */
static sl_index *idx;
static scratch place;
static int over;   /* atomic */
static size_t ops; /* of each writer */

static oracle *notes;

/* The vector of an id in a generation. The first is 0. */
static void vector_of(uint64_t id, uint32_t generation, float *out) {
    oracle_vector(id, generation + 1, out);
}

static void set_up(void) {
    scratch_open(&place);
    ops = SANITIZED ? 150 : 600;
    over = 0;
    sl_index_params params;
    indexes_params(&params, DIM, SL_METRIC_L2);
    params.codes = SL_CODES_F32;
    params.tags = 1;
    ck_ok(sl_index_create(&params, &idx));
    static float x[IDS + STILL][DIM];
    static uint64_t ids[IDS + STILL];
    for (size_t i = 0; i < IDS + STILL; i++) {
        ids[i] = i;
        vector_of(i, 0, x[i]);
    }
    ck_ok(sl_index_add(idx, x, SL_F32, IDS + STILL, 0, ids, NULL));
    notes = oracle_make(IDS + STILL);
    for (size_t i = 0; i < IDS + STILL; i++) {
        oracle_begin(notes, &ids[i], 1, &(uint32_t){oracle_next_version(notes, i)});
        oracle_end(notes, &ids[i], 1, 1);
    }
}

static void tear_down(void) {
    sl_index_free(idx);
    oracle_free(notes);
    notes = NULL;
    scratch_close(&place);
}

/* ---------------------------------------------------------------------------------------------------------------
 * Writers
 * ------------------------------------------------------------------------------------------------------------- */

#define WANT(condition, text)                                                                                          \
    if (!(condition)) return (void *)(uintptr_t)(text)

/* Gives an id a new vector, or deletes it: version 0. */
static sl_status change(uint64_t id, uint32_t version) {
    float x[DIM];
    sl_add_params params;
    sl_add_params_init(&params);
    params.threads = 1;
    params.replace = oracle_version(notes, id) != 0;
    oracle_vector(id, version, x);
    oracle_begin(notes, &id, 1, &version);
    sl_status status = version ? sl_index_add(idx, x, SL_F32, 1, 0, &id, &params) : sl_index_delete(idx, &id, 1);
    oracle_end(notes, &id, 1, status == SL_OK);
    return status;
}

/* Each writer has every WRITERS-th id. */
static void *write_on(void *ctx) {
    const size_t first = (size_t)(uintptr_t)ctx;
    float x[DIM], got[DIM];
    for (size_t op = 0; op < ops; op++) {
        const uint64_t id = sl_random_at(first, op) % (IDS / WRITERS) * WRITERS + first;
        const int deletes = oracle_version(notes, id) && op % 2 == 0;
        const uint32_t version = deletes ? 0 : oracle_next_version(notes, id);
        int found;
        sl_status status = change(id, version);
        WANT(status == SL_OK, sl_last_error());
        WANT(sl_index_contains(idx, id, &found) == SL_OK && found == !deletes, "contains lags behind a writer");
        status = sl_index_get(idx, &id, 1, SL_F32, got);
        WANT(status == (deletes ? SL_ENOTFOUND : SL_OK), "get lags behind a writer");
        oracle_vector(id, version, x);
        WANT(deletes || memcmp(got, x, sizeof x) == 0, "get gives another vector");
        if (!deletes) {
            const uint64_t tags = version;
            WANT(sl_index_add(idx, x, SL_F32, 1, 0, &id, NULL) == SL_EEXIST, "an id was added twice");
            WANT(sl_index_set_tags(idx, &id, 1, &tags) == SL_OK, "tags");
        } else {
            WANT(sl_index_delete(idx, &id, 1) == SL_ENOTFOUND, "an id was deleted twice");
        }
    }
    return NULL;
}

/* ---------------------------------------------------------------------------------------------------------------
 * Readers
 * ------------------------------------------------------------------------------------------------------------- */

/* Counts searches, and those that missed the vector itself. */
static size_t searches, missed; /* atomic */

static const char *check_results(const uint64_t *ids, const float *scores, const float *query, const uint32_t *before) {
    for (size_t i = 0; i < K; i++) {
        if (ids[i] >= IDS + STILL) return "a search found an id that never was";
        for (size_t j = 0; j < i; j++)
            if (ids[i] == ids[j]) return "a search found an id twice";
        if (!oracle_may_be_at(notes, ids[i], before[ids[i]], (double)scores[i], query))
            return "a search found a vector that was not there";
    }
    return NULL;
}

/* Searches for vectors that are there. Such a vector, if it stays, is found. */
static void *search_on(void *ctx) {
    sl_searcher *searcher;
    sl_search_params params;
    uint32_t before[IDS + STILL];
    float query[DIM], scores[K];
    uint64_t ids[K];
    sl_search_params_init(&params);
    params.ef = 100;
    WANT(sl_searcher_create(idx, 200, &searcher) == SL_OK, "searcher");
    for (size_t i = 0; !__atomic_load_n(&over, __ATOMIC_RELAXED); i++) {
        const size_t id = sl_random_at(99 + (uintptr_t)ctx, i) % IDS;
        oracle_look(notes, before);
        const uint32_t version = oracle_version(notes, id);
        oracle_vector(id, version, query);
        sl_status status = ctx ? sl_searcher_search(searcher, query, SL_F32, K, &params, ids, scores, NULL)
                               : sl_index_search(idx, query, SL_F32, 1, 0, K, &params, ids, scores, NULL);
        WANT(status == SL_OK, sl_last_error());
        const char *wrong = check_results(ids, scores, query, before);
        WANT(!wrong, wrong);
        if (!version || !oracle_is_unchanged(notes, id, before[id])) continue;
        __atomic_fetch_add(&searches, 1, __ATOMIC_RELAXED);
        if (ids[0] != id) __atomic_fetch_add(&missed, 1, __ATOMIC_RELAXED);
    }
    sl_searcher_free(searcher);
    return NULL;
}

enum { ALL = IDS + STILL };

typedef struct census {
    uint32_t before[ALL], seen[ALL];
    float query[DIM];
    const char *wrong;
} census;

static int count_one(void *ctx, size_t query, uint64_t id, float score) {
    census *c = ctx;
    (void)query;
    if (id >= ALL || c->seen[id]++)
        c->wrong = "a census found an id twice";
    else if (!oracle_may_be_at(notes, id, c->before[id], (double)score, c->query))
        c->wrong = "a census found a vector that was not there";
    return 0;
}

/* Compares with all vectors. An id that was there all the time is found once, also while its vector is replaced. A walk
 * may miss one, since links change beside it. */
static void *take_census(void *ctx) {
    static census c;
    sl_range_params params;
    (void)ctx;
    sl_range_params_init(&params);
    params.exact = 1;
    while (!__atomic_load_n(&over, __ATOMIC_RELAXED)) {
        oracle_look(notes, c.before);
        memset(c.seen, 0, sizeof c.seen);
        c.wrong = NULL;
        vector_of(7, 0, c.query);
        WANT(sl_index_range(idx, c.query, SL_F32, 1, 0, (double)INFINITY, &params, count_one, &c, NULL) == SL_OK,
             sl_last_error());
        WANT(!c.wrong, c.wrong);
        for (size_t id = 0; id < ALL; id++)
            WANT(c.seen[id] || oracle_may_be_absent(notes, id, c.before[id]), "a census missed an id that was there");
    }
    return NULL;
}

/* Saves. The file has each id as some moment of the save left it. */
static const char *check_saved(void) {
    static uint32_t before[IDS + STILL];
    float got[DIM];
    sl_index *saved;
    sl_check_report report = {.struct_size = sizeof report};
    const char *wrong = NULL;
    oracle_look(notes, before);
    if (sl_index_save(idx, place.path, NULL) != SL_OK) return sl_last_error();
    if (sl_index_open(place.path, NULL, &saved) != SL_OK) return sl_last_error();
    if (sl_index_check(saved, NULL, &report) != SL_OK) wrong = sl_last_error();
    for (uint64_t id = 0; id < IDS + STILL && !wrong; id++) {
        const sl_status status = sl_index_get(saved, &id, 1, SL_F32, got);
        if (status == SL_OK && !oracle_may_be(notes, id, before[id], got)) wrong = "a saved file has another vector";
        if (status != SL_OK && !oracle_may_be_absent(notes, id, before[id])) wrong = "a saved file lacks an id";
    }
    sl_index_free(saved);
    return wrong;
}

/* Filters, iterators, lists of ids, counts, saves and checks. */
static void *read_on(void *ctx) {
    static uint64_t ids[IDS + STILL];
    float x[DIM];
    (void)ctx;
    vector_of(3, 0, x);
    while (!__atomic_load_n(&over, __ATOMIC_RELAXED)) {
        size_t count;
        WANT(sl_index_ids(idx, ids, IDS + STILL, &count) == SL_OK && count >= STILL, "ids");
        sl_filter_params filter_params;
        sl_filter_params_init(&filter_params);
        filter_params.allow = ids;
        filter_params.allow_count = 40;
        sl_search_params params;
        sl_search_params_init(&params);
        sl_filter *filter;
        WANT(sl_filter_create(idx, &filter_params, &filter) == SL_OK, "filter");
        params.filter = filter;
        params.ef = 50;
        uint64_t found[K];
        /* An add may have compacted the index since. */
        while (sl_index_search(idx, x, SL_F32, 1, 0, K, &params, found, NULL, NULL) != SL_OK) {
            WANT(strstr(sl_last_error(), "renumbered"), sl_last_error());
            WANT(sl_filter_refresh(filter) == SL_OK, sl_last_error());
        }
        for (size_t i = 0; i < K; i++) {
            int listed = found[i] == SL_NO_ID;
            for (size_t j = 0; j < 40; j++)
                listed |= found[i] == ids[j];
            WANT(listed, "a filter let an id pass that is not in its list");
        }
        sl_filter_free(filter);
        sl_iterator *iterator;
        WANT(sl_iterator_create(idx, x, SL_F32, NULL, &iterator) == SL_OK, "iterator");
        for (size_t page = 0; page < 5; page++)
            WANT(sl_iterator_next(iterator, K, found, NULL, NULL, NULL) == SL_OK ||
                     strstr(sl_last_error(), "renumbered"),
                 sl_last_error());
        sl_iterator_free(iterator);
        sl_index_stats stats = {.struct_size = sizeof stats};
        WANT(sl_index_get_stats(idx, &stats) == SL_OK && stats.n >= STILL, "stats");
        sl_recall_params recall_params;
        sl_recall_report recall = {.struct_size = sizeof recall};
        sl_recall_params_init(&recall_params);
        recall_params.sample = 20;
        WANT(sl_index_recall(idx, &recall_params, &recall) == SL_OK, sl_last_error());
        WANT(recall.sampled == 20 && recall.recall > 0.8 && !recall.lost, "recall beside writers");
        const char *wrong = check_saved();
        WANT(!wrong, wrong);
    }
    return NULL;
}

/* Returns what a thread says was wrong. */
static void join(pthread_t thread) {
    void *wrong;
    ck_assert_int_eq(pthread_join(thread, &wrong), 0);
    ck_assert_msg(!wrong, "%s", (const char *)wrong);
}

START_TEST(searches_see_what_was_acknowledged) {
    enum { READERS = 4 };
    pthread_t writers[WRITERS], readers[READERS];
    void *(*const reads[READERS])(void *) = {search_on, search_on, read_on, take_census};
    searches = missed = 0;
    for (size_t t = 0; t < READERS; t++)
        ck_assert_int_eq(pthread_create(&readers[t], NULL, reads[t], (void *)(uintptr_t)t), 0);
    for (size_t t = 0; t < WRITERS; t++)
        ck_assert_int_eq(pthread_create(&writers[t], NULL, write_on, (void *)(uintptr_t)t), 0);
    for (size_t t = 0; t < WRITERS; t++)
        join(writers[t]);
    __atomic_store_n(&over, 1, __ATOMIC_RELAXED);
    for (size_t t = 0; t < READERS; t++)
        join(readers[t]);
    ck_assert_uint_gt(searches, 10);
    ck_assert_uint_le(missed, searches / 50);
    size_t there = 0;
    for (size_t id = 0; id < IDS + STILL; id++)
        there += oracle_version(notes, id) != 0;
    ck_assert_uint_eq(sl_index_size(idx), there);
    indexes_sound(idx);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * One thread
 * ------------------------------------------------------------------------------------------------------------- */

static sl_status replace(sl_index *index, const uint64_t *ids, size_t n, uint32_t generation) {
    float x[4][DIM];
    sl_add_params params;
    sl_add_params_init(&params);
    params.replace = 1;
    for (size_t i = 0; i < n; i++)
        vector_of(ids[i], generation, x[i]);
    return sl_index_add(index, x, SL_F32, n, 0, ids, &params);
}

static void ck_vector(sl_index *index, uint64_t id, uint32_t generation) {
    float wanted[DIM], got[DIM];
    uint64_t found;
    vector_of(id, generation, wanted);
    ck_ok(sl_index_get(index, &id, 1, SL_F32, got));
    ck_assert_mem_eq(got, wanted, sizeof got);
    ck_ok(sl_index_search(index, wanted, SL_F32, 1, 0, 1, NULL, &found, NULL, NULL));
    ck_assert_uint_eq(found, id);
}

START_TEST(replaces) {
    const uint64_t ids[] = {5, IDS + STILL + 9, 3}, twice[] = {5, 8, 5};
    ck_ok(replace(idx, ids, 3, 2));
    ck_assert_uint_eq(sl_index_size(idx), IDS + STILL + 1);
    for (size_t i = 0; i < 3; i++)
        ck_vector(idx, ids[i], 2);
    ck_fails(replace(idx, twice, 3, 4), SL_EEXIST, "row 2: id 5 is also that of row 0");
    ck_vector(idx, 5, 2);
    ck_vector(idx, 8, 0);
    ck_ok(replace(idx, ids, 1, 4));
    ck_vector(idx, 5, 4);
    ck_ok(sl_index_delete(idx, ids, 1));
    ck_ok(replace(idx, ids, 1, 6));
    ck_vector(idx, 5, 6);
    indexes_sound(idx);
}
END_TEST

/* A replacement that is cancelled or refused leaves the vectors as they were. */
START_TEST(replaces_all_or_nothing) {
    float x[2][DIM];
    const uint64_t ids[] = {5, 6};
    sl_add_params params;
    sl_add_params_init(&params);
    params.replace = 1;
    params.progress = indexes_cancel;
    vector_of(5, 2, x[0]);
    vector_of(6, 2, x[1]);
    ck_assert_int_eq(sl_index_add(idx, x, SL_F32, 2, 0, ids, &params), SL_ECANCELED);
    params.progress = NULL;
    x[1][3] = (float)NAN;
    ck_fails(sl_index_add(idx, x, SL_F32, 2, 0, ids, &params), SL_EVALUE, "row 1");
    ck_vector(idx, 5, 0);
    ck_vector(idx, 6, 0);
    ck_assert_uint_eq(sl_index_size(idx), IDS + STILL);
    ck_assert_uint_eq(indexes_stats(idx).deleted, 0);
    indexes_sound(idx);
}
END_TEST

/* Keeps the newest version that a call meets on its way. */
static int read_meanwhile(void *ctx, uint64_t done, uint64_t total) {
    sl_reading *reading = ctx;
    (void)done, (void)total;
    if (reading->graph) sl_reading_end(reading);
    sl_reading_begin(idx, reading);
    return 0;
}

/* The node of an id's only vector in a version. */
static uint32_t only_node(const sl_graph *graph, uint64_t id) {
    uint32_t found = SL_NONE;
    for (uint32_t node = 0; node < graph->n; node++) {
        if (sl_id_of(graph, node) != id || sl_is_deleted(graph, node)) continue;
        ck_assert_uint_eq(found, SL_NONE);
        found = node;
    }
    ck_assert_uint_ne(found, SL_NONE);
    return found;
}

/* A search that begins while a replacement runs finds the old vector, also after the replacement's end. */
START_TEST(replacements_leave_running_searches) {
    float row[DIM];
    const uint64_t id = 5;
    const uint32_t old = only_node(&idx->graph, id);
    sl_reading reading = {0}, after;
    sl_add_params params;
    sl_add_params_init(&params);
    params.replace = 1;
    params.progress = read_meanwhile;
    params.progress_ctx = &reading;
    vector_of(id, 2, row);
    ck_ok(sl_index_add(idx, row, SL_F32, 1, 0, &id, &params));
    ck_assert_uint_eq(reading.graph->n, IDS + STILL + 1);
    ck_assert_uint_eq(only_node(reading.graph, id), old);
    ck_assert_uint_eq(only_node(sl_reading_begin(idx, &after), id), IDS + STILL);
    sl_reading_end(&after);
    sl_reading_end(&reading);
}
END_TEST

/* The same for the first change after an index was opened, whose file has tombstones. */
START_TEST(first_changes_leave_running_searches) {
    const uint64_t gone = 9, id = 5;
    sl_index *index;
    sl_reading reading, after;
    ck_ok(sl_index_delete(idx, &gone, 1));
    ck_ok(indexes_save(idx, place.path));
    index = indexes_open(place.path, SL_PLACE_DRAM);
    ck_ok(sl_index_reserve(index, IDS + STILL + 10));
    const sl_graph *graph = sl_reading_begin(index, &reading);
    const uint32_t old = only_node(graph, id);
    ck_ok(replace(index, &id, 1, 2));
    ck_assert_uint_eq(only_node(graph, id), old);
    ck_ok(sl_index_delete(index, &id, 1));
    ck_assert_uint_eq(only_node(graph, id), old);
    ck_assert_uint_eq(sl_undeleted_count(sl_reading_begin(index, &after)), IDS + STILL - 2);
    sl_reading_end(&after);
    sl_reading_end(&reading);
    sl_index_free(index);
}
END_TEST

/* With several vectors an id, all of an id go. */
START_TEST(replaces_all_vectors_of_an_id) {
    sl_index_params params;
    sl_index *index;
    float x[5][DIM];
    const uint64_t ids[] = {7, 7, 8, 7, 9};
    indexes_params(&params, DIM, SL_METRIC_L2);
    params.codes = SL_CODES_F32;
    params.multi = 1;
    ck_ok(sl_index_create(&params, &index));
    for (size_t i = 0; i < 5; i++)
        vector_of(100 + i, 0, x[i]);
    ck_ok(sl_index_add(index, x, SL_F32, 5, 0, ids, NULL));
    const uint64_t again[] = {7, 7};
    ck_ok(replace(index, again, 2, 2));
    size_t count;
    ck_ok(sl_index_get_all(index, 7, SL_F32, x, 5, &count));
    ck_assert_uint_eq(count, 2);
    ck_assert_uint_eq(sl_index_size(index), 4);
    ck_ok(sl_index_delete(index, ids, 1));
    ck_ok(sl_index_undelete(index, ids, 1));
    ck_ok(sl_index_get_all(index, 7, SL_F32, x, 5, &count));
    ck_assert_uint_eq(count, 2);
    indexes_sound(index);
    sl_index_free(index);
}
END_TEST

/* Replaces one of three vectors of id 7 again and again. The others are those of ids 100 and 101. */
enum { OF_SEVEN = 3 };
static uint32_t replaced; /* atomic: the generation of the third vector */

static void *replace_third(void *ctx) {
    const uint64_t id = 7;
    (void)ctx;
    for (uint32_t generation = 1; generation <= (SANITIZED ? 100 : 600); generation++) {
        float row[DIM], old[DIM];
        sl_add_params params;
        sl_add_params_init(&params);
        params.replace = SL_REPLACE_ONE;
        params.old = old;
        vector_of(id, generation, row);
        vector_of(id, generation - 1, old);
        WANT(sl_index_add(idx, row, SL_F32, 1, 0, &id, &params) == SL_OK, sl_last_error());
        __atomic_store_n(&replaced, generation, __ATOMIC_SEQ_CST);
    }
    __atomic_store_n(&over, 1, __ATOMIC_RELAXED);
    return NULL;
}

static int count_hit(void *ctx, size_t query, uint64_t id, float score) {
    (void)query, (void)score;
    *(size_t *)ctx += id == 7;
    return 0;
}

static void *read_seven(void *ctx) {
    float got[OF_SEVEN + 1][DIM], wanted[DIM];
    sl_range_params params;
    (void)ctx;
    sl_range_params_init(&params);
    params.exact = 1;
    while (!__atomic_load_n(&over, __ATOMIC_RELAXED)) {
        size_t count, hits = 0, others = 0, third = 0;
        const uint32_t before = __atomic_load_n(&replaced, __ATOMIC_SEQ_CST);
        WANT(sl_index_get_all(idx, 7, SL_F32, got, OF_SEVEN + 1, &count) == SL_OK && count == OF_SEVEN,
             "an id had a vector too many or too few");
        const uint32_t after = __atomic_load_n(&replaced, __ATOMIC_SEQ_CST) + 1;
        for (size_t i = 0; i < OF_SEVEN; i++) {
            for (size_t other = 100; other < 102; other++) {
                vector_of(other, 0, wanted);
                others += memcmp(got[i], wanted, sizeof wanted) == 0;
            }
            for (uint32_t g = before; g <= after; g++) {
                vector_of(7, g, wanted);
                third += memcmp(got[i], wanted, sizeof wanted) == 0;
            }
        }
        WANT(others == 2 && third == 1, "a replacement touched another vector of the id");
        WANT(sl_index_range(idx, got[0], SL_F32, 1, 0, 1e6, &params, count_hit, &hits, NULL) == SL_OK &&
                 hits == OF_SEVEN,
             "a search found both vectors of a replacement, or neither");
    }
    return NULL;
}

/* Readers find the old vector or the new one, and the id's others always. */
START_TEST(one_vector_of_an_id_is_replaced) {
    pthread_t threads[3];
    sl_index_params params;
    float x[5][DIM];
    const uint64_t ids[] = {7, 7, 8, 7, 9};
    sl_index_free(idx);
    indexes_params(&params, DIM, SL_METRIC_L2);
    params.codes = SL_CODES_F32;
    params.multi = 1;
    ck_ok(sl_index_create(&params, &idx));
    over = 0;
    replaced = 0;
    vector_of(100, 0, x[0]);
    vector_of(101, 0, x[1]);
    vector_of(7, 0, x[3]);
    vector_of(8, 0, x[2]);
    vector_of(9, 0, x[4]);
    ck_ok(sl_index_add(idx, x, SL_F32, 5, 0, ids, NULL));
    for (size_t t = 0; t < 3; t++)
        ck_assert_int_eq(pthread_create(&threads[t], NULL, t ? read_seven : replace_third, NULL), 0);
    for (size_t t = 0; t < 3; t++)
        join(threads[t]);
    ck_assert_uint_eq(sl_index_size(idx), 5);
    indexes_sound(idx);
}
END_TEST

START_TEST(undeletes) {
    const uint64_t ids[] = {5, 6, 7}, absent[] = {5, 7000000};
    uint64_t tags = 77, got;
    ck_fails(sl_index_undelete(idx, ids, 1), SL_EEXIST, "id 5 is in the index");
    ck_ok(replace(idx, ids, 1, 2));
    ck_ok(sl_index_set_tags(idx, ids, 1, &tags));
    ck_ok(sl_index_delete(idx, ids, 3));
    ck_fails(sl_index_undelete(idx, absent, 2), SL_ENOTFOUND, "id 7000000 was not deleted");
    ck_assert_uint_eq(sl_index_size(idx), IDS + STILL - 3);
    ck_ok(sl_index_undelete(idx, ids, 2));
    ck_vector(idx, 5, 2); /* what was replaced before stays away */
    ck_vector(idx, 6, 0);
    ck_ok(sl_index_get_tags(idx, ids, 1, &got));
    ck_assert_uint_eq(got, 77);
    ck_fails(sl_index_undelete(idx, ids, 1), SL_EEXIST, "id 5 is in the index");
    ck_ok(replace(idx, ids + 2, 1, 2));
    ck_fails(sl_index_undelete(idx, ids + 2, 1), SL_EEXIST, "id 7 is in the index");
    ck_ok(sl_index_delete(idx, ids + 2, 1));
    ck_ok(sl_index_undelete(idx, ids + 2, 1));
    ck_vector(idx, 7, 2);
    ck_assert_uint_eq(sl_index_size(idx), IDS + STILL);
    indexes_sound(idx);
}
END_TEST

/* The recall of stored vectors: all is found by wide searches, less by narrow ones, and nothing of a cut list. */
START_TEST(recall_is_measured) {
    sl_recall_params params;
    sl_recall_report wide = {.struct_size = sizeof wide}, narrow = wide, again = wide, cut = wide;
    sl_recall_params_init(&params);
    params.ef = 400;
    ck_ok(sl_index_recall(idx, &params, &wide));
    ck_assert_uint_eq(wide.sampled, 200);
    ck_assert_double_ge(wide.recall, 0.999);
    params.ef = params.k;
    ck_ok(sl_index_recall(idx, &params, &narrow));
    ck_assert_double_lt(narrow.recall, wide.recall);
    ck_assert_double_gt(narrow.standard_error, 0);
    ck_ok(sl_index_recall(idx, &params, &again));
    ck_assert(narrow.recall >= again.recall && narrow.recall <= again.recall);
    params.seconds = 1e-9;
    ck_ok(sl_index_recall(idx, &params, &again));
    ck_assert_uint_eq(again.sampled, 1);
    params.seconds = 0;
    memset(sl_links(&idx->graph, 0), 0xff, idx->graph.n * idx->graph.m0 * sizeof(uint32_t));
    ck_ok(sl_index_recall(idx, &params, &cut));
    ck_assert_uint_gt(cut.lost, 150);
    params.sample = 0;
    ck_fails(sl_index_recall(idx, &params, &cut), SL_EINVAL, "sample is 0");
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("threads"), *alone = tcase_create("alone");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, searches_see_what_was_acknowledged);
    tcase_add_test(tests, one_vector_of_an_id_is_replaced);
    tcase_add_checked_fixture(alone, set_up, tear_down);
    tcase_add_test(alone, replaces);
    tcase_add_test(alone, replaces_all_or_nothing);
    tcase_add_test(alone, replacements_leave_running_searches);
    tcase_add_test(alone, first_changes_leave_running_searches);
    tcase_add_test(alone, replaces_all_vectors_of_an_id);
    tcase_add_test(alone, undeletes);
    tcase_add_test(alone, recall_is_measured);
    TCase *const all[] = {tests, alone};
    return check_main("living", all, 2);
}
