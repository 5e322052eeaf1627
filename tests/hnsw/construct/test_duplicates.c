/* Duplicates among points: which exist, and lists of links in which each duplicate leads to the next. */
#include "base/random.h"
#include "hnsw/construct/duplicates.h"
#include "tests/support/check_main.h"
#include "tests/support/clusters.h"
#include "tests/support/indexes.h"

#include <stdlib.h>
#include <string.h>

enum { N = 300, DIM = 24, KIND = 60, DEGREE = 8 };

static float *x;
static sl_index *idx;

static void tear_down(void) {
    sl_index_free(idx);
    idx = NULL;
    free(x);
}

/* Every fifth vector, up to KIND of them, is a duplicate of the first. */
static void make_index(sl_codes codes) {
    sl_index_params params;
    x = clusters_make(N, DIM, 0.3, 4);
    for (size_t i = 1; i < KIND; i++)
        memcpy(x + 5 * i * DIM, x, DIM * sizeof *x);
    indexes_params(&params, DIM, SL_METRIC_L2);
    params.codes = codes;
    idx = indexes_make(&params, x, SL_F32, N, NULL, 1);
}

static void find_duplicates(sl_duplicates *duplicates) {
    const sl_points points = {.graph = &idx->graph, .codec = &idx->graph.codec, .n = N, .threads = 1};
    ck_ok(sl_duplicates_find(duplicates, &points));
}

/* The lists of all firsts are full; in one case they end early. The duplicates form one chain. */
START_TEST(chains_go_through_full_lists) {
    sl_duplicates duplicates;
    make_index(SL_CODES_I8);
    find_duplicates(&duplicates);
    const size_t kinds = N - KIND + 1;
    ck_assert_uint_eq(duplicates.distinct, kinds);
    for (size_t full = 0; full <= DEGREE; full++) {
        uint32_t *own = malloc(kinds * DEGREE * sizeof *own), *links = malloc(N * DEGREE * sizeof *links);
        for (size_t i = 0; i < kinds * DEGREE; i++)
            own[i] = i % DEGREE < full ? (uint32_t)((i / DEGREE + 1 + i % DEGREE) % kinds) : SL_NONE;
        ck_ok(sl_duplicates_link(&duplicates, DEGREE, own, links));
        size_t last = SIZE_MAX;
        for (size_t i = 0; i < N; i++) {
            const uint32_t *list = links + i * DEGREE;
            const size_t kind = duplicates.of[i], next = i + 5;
            const int is_alike = duplicates.firsts[kind] == duplicates.firsts[duplicates.of[0]];
            const size_t chained = is_alike ? (size_t)(last != SIZE_MAX) + (next < 5 * KIND) : 0;
            size_t kept = 0, behind = 0, before = 0;
            for (size_t j = 0; j < DEGREE && list[j] != SL_NONE; j++, kept++) {
                before += is_alike && list[j] == last;
                behind += is_alike && list[j] == next;
            }
            ck_assert_uint_eq(before + behind, chained);
            ck_assert_uint_eq(kept, full + chained < DEGREE ? full + chained : DEGREE);
            for (size_t j = 0; j + chained < kept; j++)
                ck_assert_uint_eq(list[j], duplicates.firsts[own[kind * DEGREE + j]]);
            if (is_alike) last = i;
        }
        free(own);
        free(links);
    }
    sl_duplicates_free(&duplicates);
}
END_TEST

/* Vectors with equal walked codes but other remaining bits aren't duplicates. Nor are vectors whose hashes collide. */
START_TEST(rests_tell_apart) {
    sl_duplicates duplicates;
    make_index(SL_CODES_I4);
    const sl_graph *graph = &idx->graph;
    ck_assert_uint_gt(graph->codec.rest.pitch, 0);
    for (uint32_t i = 1; i < KIND; i++)
        ck_assert(sl_is_duplicate(graph, 0, 5 * i) && sl_is_duplicate(graph, 5 * i, 0));
    ck_assert(!sl_is_duplicate(graph, 0, 1));
    for (uint32_t i = 1; i < KIND; i++) {
        uint8_t *rest = (uint8_t *)(uintptr_t)sl_rest_row(graph, 5 * i);
        const size_t byte = i % graph->codec.rest.factor;
        rest[byte] ^= (uint8_t)(1u << i % 8);
        ck_assert_mem_eq(sl_row(graph, 0), sl_row(graph, 5 * i), graph->codec.rows.factor);
        ck_assert(!sl_is_duplicate(graph, 0, 5 * i) && !sl_is_duplicate(graph, 5 * i, 0));
        rest[byte] ^= (uint8_t)(1u << i % 8);
        if (i % 2) rest[0] ^= 1;
    }
    find_duplicates(&duplicates);
    ck_assert_uint_eq(duplicates.distinct, N - KIND + 2);
    for (size_t i = 0; i < KIND; i++)
        ck_assert_uint_eq(duplicates.firsts[duplicates.of[5 * i]], i % 2 ? 5 : 0);
    sl_duplicates_free(&duplicates);
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("duplicates");
    tcase_add_checked_fixture(tests, NULL, tear_down);
    tcase_add_test(tests, chains_go_through_full_lists);
    tcase_add_test(tests, rests_tell_apart);
    return check_main("duplicates", &tests, 1);
}
