/* Many threads: of a build, of searches beside one another and beside a check, of builds beside one another, and a
 * child process. These tests are written for the thread sanitizer, which sees races that seldom make a test fail. */
#define _GNU_SOURCE
#include "hnsw/construct/insert.h"
#include "tests/support/check_main.h"
#include "tests/support/clusters.h"
#include "tests/support/indexes.h"
#include "tests/support/scratch.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { N = 2000, DIM = 16, K = 10, QUERIES = 100, THREADS = 4 };

static float *x;

static void set_up(void) {
    x = clusters_make(N + QUERIES, DIM, 0.3, 31);
}

static void tear_down(void) {
    free(x);
}

static const float *query(size_t i) {
    return x + (N + i) * DIM;
}

static sl_index *build_of(sl_codes codes, size_t threads) {
    sl_index_params params;
    indexes_params(&params, DIM, SL_METRIC_COSINE);
    params.codes = codes;
    return indexes_make(&params, x, SL_F32, N, NULL, threads);
}

static sl_index *build(size_t threads) {
    sl_index_params params;
    indexes_params(&params, DIM, SL_METRIC_COSINE);
    params.refine = SL_REFINE_BF16;
    return indexes_make(&params, x, SL_F32, N, NULL, threads);
}

static void start(pthread_t *threads, size_t count, void *(*run)(void *), void *ctx) {
    for (size_t t = 0; t < count; t++)
        ck_assert_int_eq(pthread_create(&threads[t], NULL, run, ctx), 0);
}

/* Each thread returns NULL where all was well. */
static void join(const pthread_t *threads, size_t count) {
    for (size_t t = 0; t < count; t++) {
        void *result;
        ck_assert_int_eq(pthread_join(threads[t], &result), 0);
        ck_assert_msg(!result, "%s", (const char *)result);
    }
}

/* ---------------------------------------------------------------------------------------------------------------
 * Building
 * ------------------------------------------------------------------------------------------------------------- */

START_TEST(threads_add) {
    sl_index *index = _i ? build_of(SL_CODES_I4, THREADS) : build(THREADS);
    sl_add_params params;
    sl_add_params_init(&params);
    params.threads = THREADS;
    ck_ok(sl_index_add(index, query(0), SL_F32, QUERIES, 0, NULL, &params));
    ck_assert(indexes_sound(index).sampled_recall > 0.9);
    uint64_t ids[QUERIES];
    size_t lost = 0;
    indexes_search(index, (vector_rows){query(0), SL_F32, QUERIES}, 1, 64, ids, NULL);
    for (size_t i = 0; i < QUERIES; i++)
        lost += ids[i] != N + i;
    ck_assert_uint_le(lost, 3);
    sl_index_free(index);
}
END_TEST

START_TEST(threads_add_copies) {
    for (size_t i = 1; i < N; i++)
        memcpy(x + i * DIM, x, DIM * sizeof *x);
    sl_index *index = build(THREADS);
    indexes_sound(index);
    sl_index_free(index);
}
END_TEST

enum { AGAIN = 7 };

static void *link_again(void *ctx) {
    sl_insert_node(ctx, AGAIN);
    return NULL;
}

/* Several threads link anew what a cancelled add took back and what a crash left half linked. One thread chooses a
 * node's list while another writes its back link there. Both must hold the node's lock, or a link may come to stand
 * there twice. */
START_TEST(linking_anew_waits_for_others) {
    sl_index *index = build(1);
    sl_build_locks *locks = calloc(1, sizeof *locks);
    sl_insert insert;
    ck_ok(sl_insert_init(&insert, index, locks));
    uint32_t *links = sl_links(&index->graph, AGAIN), kept = links[0];
    for (size_t i = 1; i < index->graph.m0; i++)
        sl_link_store(links + i, SL_NONE);
    sl_spin_lock(&locks->nodes[AGAIN]);
    pthread_t other;
    start(&other, 1, link_again, &insert);
    nanosleep(&(struct timespec){0, 100000000}, NULL);
    ck_assert_uint_eq(sl_link_load(links), kept);
    ck_assert_uint_eq(sl_link_load(links + 1), SL_NONE);
    sl_spin_unlock(&locks->nodes[AGAIN]);
    join(&other, 1);
    ck_assert_uint_lt(links[1], index->graph.n);
    indexes_sound(index);
    sl_insert_free(&insert);
    free(locks);
    sl_index_free(index);
}
END_TEST

static void *build_one(void *ctx) {
    sl_index *expected = ctx, *index = NULL;
    sl_index_params params;
    indexes_params(&params, DIM, SL_METRIC_COSINE);
    params.refine = SL_REFINE_BF16;
    sl_add_params add;
    sl_add_params_init(&add);
    add.threads = 1;
    if (sl_index_create(&params, &index) != SL_OK) return "an index could not be made";
    uint64_t wanted[K], found[K];
    const char *fault = NULL;
    if (sl_index_add(index, x, SL_F32, N, 0, NULL, &add) != SL_OK) fault = "vectors could not be added";
    for (size_t q = 0; q < 10 && !fault; q++) {
        if (sl_index_search(expected, query(q), SL_F32, 1, 0, K, NULL, wanted, NULL, NULL) != SL_OK ||
            sl_index_search(index, query(q), SL_F32, 1, 0, K, NULL, found, NULL, NULL) != SL_OK)
            fault = "a search failed";
        else if (memcmp(wanted, found, sizeof wanted) != 0)
            fault = "an index built beside others is not the one built alone";
    }
    sl_index_free(index);
    return (void *)(uintptr_t)fault;
}

START_TEST(builds_beside_one_another) {
    sl_index *alone = build(1);
    pthread_t threads[THREADS];
    start(threads, THREADS, build_one, alone);
    join(threads, THREADS);
    sl_index_free(alone);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Searching
 * ------------------------------------------------------------------------------------------------------------- */

typedef struct shared {
    sl_index *index;
    uint64_t wanted[QUERIES * K];
} shared;

static void *search_all(void *ctx) {
    shared *s = ctx;
    sl_searcher *searcher;
    if (sl_searcher_create(s->index, 64, &searcher) != SL_OK) return "a searcher could not be made";
    const char *fault = NULL;
    for (size_t q = 0; q < QUERIES && !fault; q++) {
        uint64_t found[K];
        float vector[DIM];
        if (sl_searcher_search(searcher, query(q), SL_F32, K, NULL, found, NULL, NULL) != SL_OK)
            fault = "a search failed";
        else if (memcmp(found, s->wanted + q * K, sizeof found) != 0)
            fault = "a search beside others found something else";
        /* The first needs the map of ids; one of the threads makes that map. */
        else if (sl_index_get(s->index, &found[q % K], 1, SL_F32, vector) != SL_OK)
            fault = "what was found could not be got";
        else if (sl_searcher_search(searcher, vector, SL_I8, K, NULL, found, NULL, NULL) != SL_ETYPE ||
                 !strstr(sl_last_error(), "i8"))
            fault = "a thread's message is not its own";
    }
    sl_searcher_free(searcher);
    return (void *)(uintptr_t)fault;
}

static void *check_all(void *ctx) {
    shared *s = ctx;
    sl_check_params params;
    sl_check_params_init(&params);
    params.sample = 20;
    params.threads = 1;
    sl_check_report report = {.struct_size = sizeof report};
    return sl_index_check(s->index, &params, &report) == SL_OK ? NULL : "a check beside searches failed";
}

START_TEST(searches_beside_one_another) {
    scratch place;
    scratch_open(&place);
    uint64_t ids[N];
    for (size_t i = 0; i < N; i++)
        ids[i] = i + 1000;
    sl_index_params params;
    indexes_params(&params, DIM, SL_METRIC_COSINE);
    sl_index *built = indexes_make(&params, x, SL_F32, N, ids, 2);
    ck_ok(sl_index_save(built, place.path, NULL));
    sl_index_free(built);
    for (int where = SL_PLACE_DRAM; where <= SL_PLACE_MAP; where++) {
        static shared s;
        sl_open_params open;
        sl_open_params_init(&open);
        open.place = (sl_place)where;
        ck_ok(sl_index_open(place.path, &open, &s.index));
        indexes_search(s.index, (vector_rows){query(0), SL_F32, QUERIES}, K, 64, s.wanted, NULL);
        pthread_t threads[THREADS], checker;
        start(threads, THREADS, search_all, &s);
        start(&checker, 1, check_all, &s);
        join(threads, THREADS);
        join(&checker, 1);
        sl_index_free(s.index);
    }
    scratch_close(&place);
}
END_TEST

static void *search_some(void *ctx) {
    shared *s = ctx;
    uint64_t found[QUERIES * K];
    for (int round = 0; round < 5; round++)
        if (sl_index_search(s->index, query(0), SL_F32, QUERIES, 0, K, NULL, found, NULL, NULL) != SL_OK)
            return "a search failed";
    return NULL;
}

/* The first check after an add may have to mend the graph while it is being searched, and may come twice at once. */
START_TEST(mending_beside_searches) {
    for (size_t i = 1; i < N; i += 2)
        memcpy(x + i * DIM, x, DIM * sizeof *x);
    static shared s;
    s.index = build(2);
    sl_add_params params;
    sl_add_params_init(&params);
    params.threads = 1;
    ck_ok(sl_index_add(s.index, x, SL_F32, QUERIES, 0, NULL, &params));
    pthread_t threads[THREADS], checkers[2];
    start(threads, THREADS, search_some, &s);
    start(checkers, 2, check_all, &s);
    join(threads, THREADS);
    join(checkers, 2);
    indexes_sound(s.index);
    sl_index_free(s.index);
}
END_TEST

/* A batch on several threads beside others of its kind. */
static void *search_batch(void *ctx) {
    shared *s = ctx;
    uint64_t found[QUERIES * K];
    sl_search_params params;
    sl_search_params_init(&params);
    params.threads = 2;
    if (sl_index_search(s->index, query(0), SL_F32, QUERIES, 0, K, &params, found, NULL, NULL) != SL_OK)
        return "a batch failed";
    return memcmp(found, s->wanted, sizeof found) == 0 ? NULL : "a batch beside others found something else";
}

START_TEST(batches_beside_one_another) {
    static shared s;
    s.index = build(2);
    indexes_search(s.index, (vector_rows){query(0), SL_F32, QUERIES}, K, 64, s.wanted, NULL);
    pthread_t threads[THREADS];
    start(threads, THREADS, search_batch, &s);
    join(threads, THREADS);
    sl_index_free(s.index);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Processes
 * ------------------------------------------------------------------------------------------------------------- */

/* Built by threads that do not exist in the child, searched and added to there, and in the parent. */
START_TEST(a_child_goes_on) {
    sl_index *index = build(THREADS);
    uint64_t wanted[QUERIES * K], found[QUERIES * K], id;
    indexes_search(index, (vector_rows){query(0), SL_F32, QUERIES}, K, 64, wanted, NULL);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        /* On as many threads as there are: the parent's team did not come along, and waiting for it would hang. */
        sl_check_report report = {.struct_size = sizeof report};
        sl_search_params params;
        sl_search_params_init(&params);
        params.threads = THREADS;
        int fault = sl_index_check(index, NULL, &report) != SL_OK ||
                    sl_index_search(index, query(0), SL_F32, QUERIES, 0, K, &params, found, NULL, NULL) != SL_OK ||
                    memcmp(found, wanted, sizeof wanted) != 0 ||
                    indexes_add(index, query(3), SL_F32, 1, NULL) != SL_OK ||
                    sl_index_search(index, query(3), SL_F32, 1, 0, 1, NULL, &id, NULL, NULL) != SL_OK || id != N;
        _exit(fault);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    indexes_search(index, (vector_rows){query(0), SL_F32, QUERIES}, K, 64, found, NULL);
    ck_assert_mem_eq(found, wanted, sizeof found);
    ck_assert_uint_eq(sl_index_size(index), N);
    indexes_sound(index);
    sl_index_free(index);
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("threads");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_loop_test(tests, threads_add, 0, 2);
    tcase_add_test(tests, threads_add_copies);
    tcase_add_test(tests, linking_anew_waits_for_others);
    tcase_add_test(tests, builds_beside_one_another);
    tcase_add_test(tests, searches_beside_one_another);
    tcase_add_test(tests, mending_beside_searches);
    tcase_add_test(tests, batches_beside_one_another);
    tcase_add_test(tests, a_child_goes_on);
    return check_main("threads", &tests, 1);
}
