/* Choices that recall alone hardly shows when they go wrong, each by a case that is made for it. The cases are: when a
 * walk stops, how many candidates are ranked anew, which copies are linked. Two more are what a cancelled add puts
 * back, and what tuning asks on top. */
#include "hnsw/construct/select_neighbours.h"
#include "hnsw/graph/entry.h"
#include "hnsw/graph/upper.h"
#include "hnsw/search/rerank.h"
#include "hnsw/tune/tuning.h"
#include "tests/support/check_main.h"
#include "tests/support/clusters.h"
#include "tests/support/indexes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------------------------------------------------------
 * When a walk stops
 * ------------------------------------------------------------------------------------------------------------- */

/* Puts a vector at `distance` from the query, which is (0, 0) under L2 and (1, 0) under COSINE. Under COSINE the
 * distance is that of unit vectors. */
static void put_at(sl_metric metric, double distance, float vector[2]) {
    double angle = 2 * asin(distance / 2);
    vector[0] = (float)(metric == SL_METRIC_L2 ? distance : cos(angle));
    vector[1] = (float)(metric == SL_METRIC_L2 ? 0 : sin(angle));
}

/* Returns whether a walk finds the near node that only a far node links to. The far node is `times` as far from the
 * query as the node that the walk begins at. */
static int goes_on(sl_metric metric, double times, double stop) {
    const float query[2] = {metric == SL_METRIC_L2 ? 0 : 1, 0};
    float vectors[3][2];
    uint64_t found;
    put_at(metric, 1, vectors[0]);
    put_at(metric, times, vectors[1]);
    put_at(metric, 0.1, vectors[2]);
    sl_index_params params;
    indexes_params(&params, 2, metric);
    params.codes = SL_CODES_F32;
    sl_index *index = indexes_make(&params, vectors, SL_F32, 3, NULL, 1);
    for (uint32_t node = 0; node < 3; node++) {
        memset(sl_links(&index->graph, node), 0xff, index->graph.m0 * sizeof(uint32_t));
        if (node < 2) *sl_links(&index->graph, node) = node + 1;
    }
    sl_entry_set(index, 0, 0);
    sl_search_params search;
    sl_search_params_init(&search);
    search.stop = stop;
    ck_ok(sl_index_search(index, query, SL_F32, 1, 0, 1, &search, &found, NULL, NULL));
    sl_index_free(index);
    return found == 2;
}

/* By the distance, and not by its square or its root. */
START_TEST(a_walk_stops_by_the_distance) {
    sl_metric metric = _i ? SL_METRIC_COSINE : SL_METRIC_L2;
    static const double stops[] = {0.1, 0.25, 0.5, 0.7};
    for (size_t i = 0; i < sizeof stops / sizeof *stops; i++) {
        ck_assert(goes_on(metric, 1 + 0.97 * stops[i], stops[i]));
        ck_assert(!goes_on(metric, 1 + 1.03 * stops[i], stops[i]));
    }
    ck_assert(goes_on(metric, 1.9, 0));
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * What is ranked anew
 * ------------------------------------------------------------------------------------------------------------- */

/* 1.5 k + 10, and behind coarse rows 3 k + 10: the latter put more true neighbours further behind. */
START_TEST(so_many_are_ranked_anew) {
    enum { DIM = 128, N = 600, QUERIES = 50, K = 10 };
    sl_index_params params;
    indexes_params(&params, DIM, SL_METRIC_L2);
    params.codes = _i ? SL_CODES_I4 : SL_CODES_I8;
    params.refine = _i ? SL_REFINE_NONE : SL_REFINE_BF16;
    sl_index *index;
    sl_status status = sl_index_create(&params, &index);
    if (_i && status == SL_EUNSUPPORTED) return;
    ck_ok(status);
    float *x = clusters_make(N + QUERIES, DIM, 0.3, 4);
    ck_ok(indexes_add(index, x, SL_F32, N, NULL));
    ck_assert_int_eq(sl_has(&index->graph, SL_ARRAY_COARSE), _i);
    const size_t own = _i ? 3 * K + 10 : K + K / 2 + 10;
    sl_search_params search;
    sl_search_params_init(&search);
    ck_assert_uint_eq(sl_rerank_count(&index->graph, K, &search), own);
    uint64_t unasked[QUERIES * K], asked[QUERIES * K];
    indexes_search(index, (vector_rows){x + N * DIM, SL_F32, QUERIES}, K, search.ef, unasked, NULL);
    search.rerank = own;
    ck_ok(sl_index_search(index, x + N * DIM, SL_F32, QUERIES, 0, K, &search, asked, NULL, NULL));
    ck_assert_mem_eq(asked, unasked, sizeof asked);
    search.rerank = K - 1;
    ck_assert_uint_eq(sl_rerank_count(&index->graph, K, &search), K);
    free(x);
    sl_index_free(index);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * What is linked
 * ------------------------------------------------------------------------------------------------------------- */

/* Two copies of the base at most, and the rest of the list for others. */
START_TEST(few_copies_are_linked) {
    enum { DIM = 8, COPIES = 20, N = 60 };
    float *x = clusters_make(N, DIM, 0.3, 6);
    for (size_t i = 1; i < COPIES; i++)
        memcpy(x + i * DIM, x, DIM * sizeof *x);
    sl_index_params params;
    indexes_params(&params, DIM, SL_METRIC_L2);
    sl_index *index = indexes_make(&params, x, SL_F32, N, NULL, 1);
    sl_selection selection;
    ck_ok(sl_selection_init(&selection, &index->graph, N));
    for (size_t limit = 1; limit <= 16; limit++) {
        size_t copies = 0;
        selection.candidate_count = 0;
        for (uint32_t node = 1; node < N; node++)
            selection.candidates[selection.candidate_count++] = node;
        sl_select_neighbours(&selection, 0, limit);
        ck_assert_uint_le(selection.selected_count, limit);
        for (size_t i = 0; i < selection.selected_count; i++)
            copies += selection.selected[i] < COPIES;
        ck_assert_uint_eq(copies, limit / 2 < 2 ? limit / 2 : 2);
        ck_assert(limit < 3 || selection.selected_count > copies);
    }
    sl_selection_free(&selection);
    sl_index_free(index);
    free(x);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * What is put back
 * ------------------------------------------------------------------------------------------------------------- */

static uint32_t highest(const sl_index *index, uint32_t from, uint32_t to) {
    uint32_t most = 0;
    for (uint32_t node = from; node < to; node++)
        if (sl_level_of(&index->graph, node) > most) most = sl_level_of(&index->graph, node);
    return most;
}

static int cancel_at_the_end(void *ctx, uint64_t done, uint64_t total) {
    (void)ctx;
    return done == total;
}

/* A cancelled add whose nodes stand above all others, with a seed for that. */
START_TEST(undoing_puts_the_entry_point_back) {
    enum { DIM = 8, N = 1000, MORE = 60 };
    float *x = clusters_make(N + MORE, DIM, 0.3, 8);
    sl_index_params params;
    sl_index *index = NULL;
    indexes_params(&params, DIM, SL_METRIC_L2);
    for (params.seed = 1;; params.seed++) {
        ck_ok(sl_index_create(&params, &index));
        if (highest(index, N, N + MORE) > highest(index, 0, N)) break;
        sl_index_free(index);
    }
    ck_ok(indexes_add(index, x, SL_F32, N, NULL));
    const uint64_t entry = index->graph.entry;
    sl_add_params add;
    sl_add_params_init(&add);
    add.threads = 1;
    add.progress = cancel_at_the_end;
    ck_fails(sl_index_add(index, x + N * DIM, SL_F32, MORE, 0, NULL, &add), SL_ECANCELED, "cancelled");
    ck_assert_uint_eq(index->graph.entry, entry);
    indexes_sound(index);
    add.progress = NULL;
    ck_ok(sl_index_add(index, x + N * DIM, SL_F32, MORE, 0, NULL, &add));
    ck_assert_uint_gt(index->graph.entry >> 32, entry >> 32);
    sl_index_free(index);
    free(x);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * What tuning asks on top
 * ------------------------------------------------------------------------------------------------------------- */

/* Half a standard error, and no more than 0.002: other queries find as much less as often as more. */
START_TEST(tuning_asks_for_a_margin) {
    enum { DIM = 24, N = 3000, QUERIES = 300, K = 10, TARGETS = 8 };
    static const double targets[TARGETS] = {0.7, 0.75, 0.8, 0.83, 0.86, 0.9, 0.92, 0.95};
    ck_assert_double_eq_tol(sl_tune_target_with_margin(0.9, &(sl_tune_point){.error = 0.002}), 0.901, 1e-12);
    ck_assert_double_eq_tol(sl_tune_target_with_margin(0.9, &(sl_tune_point){.error = 0.02}), 0.902, 1e-12);
    ck_assert_double_eq_tol(sl_tune_target_with_margin(0.9999, &(sl_tune_point){.error = 0.02}), 1, 1e-12);
    float *x = clusters_make(N + QUERIES, DIM, 0.3, 12);
    sl_index_params params;
    indexes_params(&params, DIM, SL_METRIC_L2);
    params.m = 4;
    params.ef_construction = 16;
    sl_index *index = indexes_make(&params, x, SL_F32, N, NULL, 1);
    sl_tune_params with;
    sl_tune_params_init(&with);
    with.targets = targets;
    with.target_count = TARGETS;
    ck_ok(sl_index_tune(index, x + N * DIM, SL_F32, QUERIES, 0, NULL, K, &with, NULL));
    for (size_t i = 0; i < TARGETS; i++) {
        sl_tuned tuned = indexes_tuned(index, i);
        double margin = fmin(tuned.standard_error / 2, 0.002);
        ck_assert_msg(tuned.recall >= tuned.target + margin - 1e-9, "recall %.4f for %.4f, error %.4f", tuned.recall,
                      tuned.target, tuned.standard_error);
    }
    sl_index_free(index);
    free(x);
}
END_TEST

int main(void) {
    TCase *cases[] = {tcase_create("choices")};
    tcase_set_timeout(cases[0], 300);
    tcase_add_loop_test(cases[0], a_walk_stops_by_the_distance, 0, 2);
    tcase_add_loop_test(cases[0], so_many_are_ranked_anew, 0, 2);
    tcase_add_test(cases[0], few_copies_are_linked);
    tcase_add_test(cases[0], undoing_puts_the_entry_point_back);
    tcase_add_test(cases[0], tuning_asks_for_a_margin);
    return check_main("choices", cases, 1);
}
