/* Reachability, some lists at a time. */
#include "hnsw/construct/reach_steps.h"
#include "hnsw/graph/entry.h"
#include "hnsw/graph/free_nodes.h"
#include "hnsw/graph/links.h"
#include "tests/support/check_main.h"
#include "tests/support/clusters.h"
#include "tests/support/indexes.h"

#include <stdlib.h>

enum { N = 1000, DIM = 8, CUT = 37 };

static float *x;
static sl_index *idx;

static void set_up(void) {
    sl_index_params params;
    x = clusters_make(N, DIM, 0.3, 3);
    indexes_params(&params, DIM, SL_METRIC_L2);
    idx = indexes_make(&params, x, SL_F32, N, NULL, 1);
}

static void tear_down(void) {
    sl_index_free(idx);
    free(x);
}

static int is_cut(uint32_t node) {
    return node % CUT == 5 && node != sl_entry_get(&idx->graph).node;
}

/* Takes all links to some nodes away. */
static void cut(void) {
    const size_t degree = idx->graph.m0;
    for (size_t node = 0; node < N; node++) {
        uint32_t *links = sl_links(&idx->graph, node), kept[2 * SL_MAX_M];
        size_t count = 0;
        for (size_t i = 0; i < degree && links[i] != SL_NONE; i++)
            if (!is_cut(links[i])) kept[count++] = links[i];
        sl_links_store(idx, links, degree, kept, count);
    }
}

/* Goes on, so many lists at a time. Returns the steps it took. */
static size_t go(sl_reach_steps *steps, size_t at_once) {
    for (size_t taken = 1;; taken++) {
        size_t lists = at_once;
        if (sl_reach_steps_go(steps, &idx->graph, &lists)) return taken;
        ck_assert_uint_eq(lists, 0);
        ck_assert_uint_le(taken, N + 1);
    }
}

START_TEST(finds_what_is_missing) {
    static const size_t at_once[] = {1, 7, N + 1};
    sl_reach_steps steps;
    if (_i >= 3) cut();
    ck_ok(sl_reach_steps_begin(&steps, idx, NULL));
    const size_t taken = go(&steps, at_once[_i % 3]);
    ck_assert_uint_ge(taken, (_i >= 3 ? N - N / CUT - 1 : N) / at_once[_i % 3]);
    for (uint32_t node = 0; node < N; node++)
        ck_assert_int_eq(sl_node_set_has(&steps.missing, node), _i >= 3 && is_cut(node));
    sl_reach_steps_free(&steps, idx);
}
END_TEST

/* A node that is linked between two steps, from a list that is read later, is no longer missing. So is what it leads
 * to. Nodes that come meanwhile don't count. */
START_TEST(changes_meanwhile) {
    sl_reach_steps steps;
    size_t lists = 1;
    const uint32_t to = 5 + CUT * 20;
    ck_assert(is_cut(to));
    cut();
    ck_ok(sl_reach_steps_begin(&steps, idx, NULL));
    ck_assert_int_eq(sl_reach_steps_go(&steps, &idx->graph, &lists), 0);
    const size_t from = sl_node_set_next(&steps.todo, (sl_range){0, N});
    ck_assert_uint_lt(from, N);
    sl_link_store(sl_links(&idx->graph, from), to);
    ck_ok(sl_index_reserve(idx, 4 * N));
    ck_ok(sl_index_add(idx, x, SL_F32, 10, 0, NULL, NULL));
    (void)go(&steps, 3);
    ck_assert(!sl_node_set_has(&steps.missing, to));
    ck_assert_uint_ge(steps.missing.count, N / CUT - 2);
    ck_assert_uint_eq(sl_node_set_next(&steps.missing, (sl_range){N, 2 * N}), 2 * N);
    sl_reach_steps_free(&steps, idx);
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("reach_steps");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_loop_test(tests, finds_what_is_missing, 0, 6);
    tcase_add_test(tests, changes_meanwhile);
    return check_main("reach_steps", &tests, 1);
}
