/* Neighbours that an add finds before it may change the index. */
#include "hnsw/construct/look_ahead.h"
#include "hnsw/construct/reclaim.h"
#include "hnsw/construct/renumber.h"
#include "hnsw/graph/ids.h"
#include "tests/support/check_main.h"
#include "tests/support/clusters.h"
#include "tests/support/indexes.h"

#include <pthread.h>
#include <stdlib.h>

enum { N = 2000, MORE = 2000, DIM = 16, Q = 100, K = 10, EF = 80, THREADS = 4 };

static float *x; /* N + MORE rows, and then Q queries */
static sl_index *idx;

static void set_up(void) {
    x = clusters_make(N + MORE + Q, DIM, 0.3, 29);
    sl_index_params params;
    indexes_params(&params, DIM, SL_METRIC_COSINE);
    idx = indexes_make(&params, x, SL_F32, N, NULL, 1);
}

static void tear_down(void) {
    sl_index_free(idx);
    free(x);
}

static sl_query row_at(size_t row) {
    return (sl_query){x + row * DIM, SL_F32};
}

static void add_rows(size_t first, size_t n) {
    ck_ok(sl_index_add(idx, x + first * DIM, SL_F32, n, 0, NULL, NULL));
}

static void *add_one(void *row) {
    add_rows(*(const size_t *)row, 1);
    return NULL;
}

/* Adds a row in another thread, so that two threads have changed the index. */
static void share(size_t row) {
    pthread_t thread;
    pthread_create(&thread, NULL, add_one, &row);
    pthread_join(thread, NULL);
}

/* Looks ahead for a row. Returns how many nodes it found. */
static size_t look(sl_look_ahead *ahead, size_t row) {
    sl_look_ahead_begin(ahead, idx, row_at(row), 0);
    return ahead->count;
}

static void leave(sl_look_ahead *ahead, size_t count) {
    sl_look_ahead_check(ahead);
    ck_assert_uint_eq(ahead->count, count);
    sl_look_ahead_end(ahead);
}

START_TEST(looks_only_if_threads_meet) {
    sl_look_ahead ahead;
    ck_assert_uint_eq(look(&ahead, N), 0);
    leave(&ahead, 0);
    share(N);
    ck_assert_uint_eq(look(&ahead, N + 1), idx->graph.ef_construction);
    leave(&ahead, idx->graph.ef_construction);
}
END_TEST

/* The nodes are those that a search finds. */
START_TEST(finds_the_nearest) {
    share(N);
    for (size_t row = N + 1; row < N + 21; row++) {
        sl_look_ahead ahead;
        uint64_t near[K];
        size_t found = 0;
        indexes_search(idx, (vector_rows){x + row * DIM, SL_F32, 1}, K, idx->graph.ef_construction, near, NULL);
        const size_t count = look(&ahead, row);
        for (size_t i = 0; i < count; i++)
            for (size_t k = 0; k < K; k++)
                found += sl_id_of(&idx->graph, ahead.nodes[i]) == near[k];
        ck_assert_uint_eq(found, K);
        leave(&ahead, count);
    }
}
END_TEST

/* A vector that the index refuses is looked for by nobody, and the add says why. */
START_TEST(bad_vectors_find_nothing) {
    sl_look_ahead ahead;
    share(N);
    const float nan[DIM] = {NAN};
    sl_look_ahead_begin(&ahead, idx, (sl_query){nan, SL_F32}, 0);
    ck_assert_uint_eq(ahead.count, 0);
    leave(&ahead, 0);
    sl_look_ahead_begin(&ahead, idx, row_at(N), DIM);
    ck_assert_uint_eq(ahead.count, 0);
    leave(&ahead, 0);
    sl_look_ahead_begin(&ahead, idx, (sl_query){(const char *)x + 1, SL_F32}, 0);
    ck_assert_uint_eq(ahead.count, 0);
    leave(&ahead, 0);
    ck_fails(sl_index_add(idx, x, SL_F32, 1, DIM, NULL, NULL), SL_EINVAL, "stride");
    ck_fails(sl_index_add(idx, nan, SL_F32, 1, 0, NULL, NULL), SL_EVALUE, "row 0");
    ck_fails(sl_index_add(idx, NULL, SL_F32, 1, 0, NULL, NULL), SL_EINVAL, "vectors is NULL");
    ck_fails(sl_index_add(idx, x, SL_I16, 1, 0, NULL, NULL), SL_ETYPE, "not i16");
}
END_TEST

START_TEST(many_adds_end_it) {
    sl_look_ahead ahead;
    share(N);
    const size_t count = look(&ahead, N + 1);
    for (size_t i = 0; i < count / 4; i++)
        add_rows(N + 2 + i, 1);
    leave(&ahead, count);
    look(&ahead, N + 1);
    add_rows(N + 100, count / 4 + 1);
    leave(&ahead, 0);
}
END_TEST

START_TEST(renumbering_ends_it) {
    sl_look_ahead ahead;
    share(N);
    for (uint64_t id = 0; id < N / 16; id++)
        ck_ok(sl_index_delete(idx, &id, 1));
    ck_assert(sl_reclaim_run(idx));
    look(&ahead, N + 1);
    ck_assert_uint_gt(ahead.count, 0);
    sl_renumber_compact(idx, 0);
    ck_assert_uint_gt(idx->graph.numbering, ahead.numbering);
    leave(&ahead, 0);
}
END_TEST

/* Happens between the look ahead of an add and its turn at the gate. */
static void (*meanwhile)(void);
sl_status __real_sl_gate_enter(sl_gate *gate);
sl_status __wrap_sl_gate_enter(sl_gate *gate);
sl_status __wrap_sl_gate_enter(sl_gate *gate) {
    void (*const happens)(void) = meanwhile;
    if (happens) {
        meanwhile = NULL;
        happens();
    }
    return __real_sl_gate_enter(gate);
}

static void take_out(const uint64_t *ids, size_t count) {
    ck_ok(sl_index_delete(idx, ids, count));
    ck_assert(sl_reclaim_run(idx));
    ck_assert_uint_gt(idx->free.count, N / 20);
}

/* So few that the add does not leave free places out of the numbers. */
static void some_leave(void) {
    static uint64_t ids[N / 12];
    for (size_t i = 0; i < N / 12; i++)
        ids[i] = 12 * i;
    take_out(ids, N / 12);
}

/* All that are left but one of a dozen. */
static void most_leave(void) {
    static uint64_t ids[N];
    size_t count = 0;
    for (uint64_t id = 0; id < N; id++)
        if (id % 12 > 1) ids[count++] = id;
    take_out(ids, count);
}

static size_t links_of(uint64_t id) {
    uint32_t node, links[2 * SL_MAX_M];
    const sl_layer layer = sl_layer_at(&idx->graph, 0);
    ck_ok(sl_id_find(idx, &idx->graph, id, &node));
    return sl_links_known(&layer, sl_links(&idx->graph, node), links);
}

/* Nodes that were found leave the graph. No list gets a link to a free place, and the new vector gets as many links as
 * ever, and is found. */
START_TEST(found_nodes_leave) {
    uint64_t found;
    share(N);
    for (size_t round = 0; round < 2; round++) {
        const uint64_t row = N + 1 + round;
        meanwhile = round ? most_leave : some_leave;
        add_rows(row, 1);
        for (size_t node = 0; node < idx->graph.n; node++)
            for (size_t i = 0; i < idx->graph.m0; i++)
                ck_assert(!sl_node_set_has(&idx->free, sl_links(&idx->graph, node)[i]));
        ck_assert_uint_ge(links_of(row), idx->graph.m / 2);
        ck_assert_uint_eq(indexes_sound(idx).unreachable, 0);
        indexes_search(idx, (vector_rows){x + row * DIM, SL_F32, 1}, 1, EF, &found, NULL);
        ck_assert_uint_eq(found, row);
    }
}
END_TEST

typedef struct adder {
    pthread_t thread;
    size_t number;
} adder;

static void *add_some(void *ctx) {
    const adder *self = ctx;
    for (size_t row = N + self->number; row < N + MORE; row += THREADS) {
        const uint64_t id = row, old = row - N;
        ck_ok(sl_index_add(idx, x + row * DIM, SL_F32, 1, 0, &id, NULL));
        if (row % 2) ck_ok(sl_index_delete(idx, &old, 1));
    }
    return NULL;
}

/* Adds and deletes of several threads, one vector a call: the index is as good as one that was built at once. */
START_TEST(threads_side_by_side) {
    adder adders[THREADS];
    for (size_t t = 0; t < THREADS; t++) {
        adders[t].number = t;
        pthread_create(&adders[t].thread, NULL, add_some, &adders[t]);
    }
    for (size_t t = 0; t < THREADS; t++)
        pthread_join(adders[t].thread, NULL);
    ck_assert(sl_gate_is_shared(&idx->versions->gate));
    ck_assert_uint_eq(indexes_sound(idx).unreachable, 0);

    static float rows[(N + MORE) * DIM];
    static uint64_t ids[N + MORE], exact[Q * K], found[Q * K];
    size_t n = 0;
    for (size_t row = 0; row < N + MORE; row++) {
        if (row < N && row % 2) continue;
        for (size_t i = 0; i < DIM; i++)
            rows[n * DIM + i] = x[row * DIM + i];
        ids[n++] = row;
    }
    const vector_rows queries = {x + (size_t)(N + MORE) * DIM, SL_F32, Q};
    indexes_exact(SL_METRIC_COSINE, DIM, (vector_rows){rows, SL_F32, n}, queries, K, exact);
    for (size_t i = 0; i < Q * K; i++)
        exact[i] = ids[exact[i]];
    sl_index_params params;
    indexes_params(&params, DIM, SL_METRIC_COSINE);
    sl_index *fresh = indexes_make(&params, rows, SL_F32, n, ids, 1);
    indexes_search(fresh, queries, K, EF, found, NULL);
    const double best = indexes_recall(found, exact, Q, K);
    indexes_search(idx, queries, K, EF, found, NULL);
    ck_assert_double_ge(indexes_recall(found, exact, Q, K), best - 0.01);
    sl_index_free(fresh);
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("look_ahead"), *threads = tcase_create("threads");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_checked_fixture(threads, set_up, tear_down);
    tcase_add_test(tests, looks_only_if_threads_meet);
    tcase_add_test(tests, finds_the_nearest);
    tcase_add_test(tests, bad_vectors_find_nothing);
    tcase_add_test(tests, many_adds_end_it);
    tcase_add_test(tests, renumbering_ends_it);
    tcase_add_test(tests, found_nodes_leave);
    tcase_add_test(threads, threads_side_by_side);
    TCase *all[] = {tests, threads};
    return check_main("look_ahead", all, 2);
}
