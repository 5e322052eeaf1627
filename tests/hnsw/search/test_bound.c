/* A search goes on from a search of another index: it ends where no candidate is better than the other's beam. */
#include "hnsw/search/searcher.h"
#include "tests/support/check_main.h"
#include "tests/support/clusters.h"
#include "tests/support/indexes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N = 6000, DIM = 32, K = 10, QUERIES = 100, EF = 60, AFTER = 4 };

static float *x;
static const float *queries;
static sl_index *halves[2];
static sl_searcher *searchers[2];

/* The half of the space that a vector lies in. */
static size_t half_of(const float *vector) {
    return vector[0] > 0;
}

static sl_index *make_half(size_t h) {
    sl_index_params params;
    float *rows = malloc((size_t)N * DIM * sizeof *rows);
    uint64_t *ids = malloc(N * sizeof *ids);
    size_t count = 0;
    for (size_t i = 0; i < N; i++) {
        if (half_of(x + i * DIM) != h) continue;
        memcpy(rows + count * DIM, x + i * DIM, DIM * sizeof *rows);
        ids[count++] = i;
    }
    ck_assert_uint_gt(count, N / 4);
    indexes_params(&params, DIM, SL_METRIC_COSINE);
    sl_index *made = indexes_make(&params, rows, SL_F32, count, ids, 1);
    free(rows);
    free(ids);
    return made;
}

static void set_up(void) {
    x = clusters_make(N + QUERIES, DIM, 0.3, 5);
    ck_assert_ptr_nonnull(x);
    queries = x + (size_t)N * DIM;
    for (size_t h = 0; h < 2; h++) {
        halves[h] = make_half(h);
        ck_ok(sl_searcher_create(halves[h], EF, &searchers[h]));
        sl_searcher_note_beam(searchers[h]);
    }
}

static void tear_down(void) {
    for (size_t h = 0; h < 2; h++) {
        sl_searcher_free(searchers[h]);
        sl_index_free(halves[h]);
    }
    free(x);
}

/* Searches half h for query q. Returns the evaluations. */
static size_t search(size_t h, size_t q, float bound, uint64_t *ids, float *scores) {
    sl_search_params params;
    sl_search_stats stats;
    sl_search_params_init(&params);
    params.ef = EF;
    sl_searcher_set_bound(searchers[h], bound, AFTER);
    ck_ok(sl_searcher_search(searchers[h], queries + q * DIM, SL_F32, K, &params, ids, scores, &stats));
    return stats.evaluations;
}

static size_t common(const uint64_t *a, const uint64_t *b, size_t nb) {
    size_t found = 0;
    for (size_t i = 0; i < K; i++)
        for (size_t j = 0; j < nb; j++)
            found += a[i] == b[j];
    return found;
}

/* With the bound of the query's own half, the other half's search finds as many true neighbours for less work. */
START_TEST(a_bound_spares_work_and_loses_little) {
    uint64_t *truth = malloc(QUERIES * K * sizeof *truth), found[2 * K];
    float scores[K];
    size_t whole = 0, bounded = 0, hits = 0, hits_bounded = 0;
    indexes_exact(SL_METRIC_COSINE, DIM, (vector_rows){x, SL_F32, N}, (vector_rows){queries, SL_F32, QUERIES}, K,
                  truth);
    for (size_t q = 0; q < QUERIES; q++) {
        const size_t home = half_of(queries + q * DIM);
        (void)search(home, q, -INFINITY, found, scores);
        const float beam = sl_searcher_beam_score(searchers[home]);
        ck_assert(beam > -1 && beam <= scores[K - 1]);
        whole += search(1 - home, q, -INFINITY, found + K, scores);
        hits += common(truth + q * K, found, 2 * K);
        bounded += search(1 - home, q, beam, found + K, scores);
        hits_bounded += common(truth + q * K, found, 2 * K);
    }
    ck_assert_uint_lt(bounded, whole * 3 / 4);
    ck_assert_uint_ge(hits_bounded + QUERIES * K / 100, hits);
    free(truth);
}
END_TEST

/* A bound that nothing reaches ends a walk after AFTER candidates, and still gives k results. */
START_TEST(no_candidate_passes_an_infinite_bound) {
    uint64_t ids[K], again[K];
    float scores[K];
    size_t free_walk = search(0, 3, -INFINITY, ids, scores);
    ck_assert_uint_lt(search(0, 3, INFINITY, again, scores), free_walk);
    ck_assert_uint_ne(again[K - 1], SL_NO_ID);
    ck_assert_uint_eq(search(0, 3, -INFINITY, again, scores), free_walk);
    ck_assert_mem_eq(ids, again, sizeof ids);
}
END_TEST

int main(void) {
    TCase *test = tcase_create("bound");
    tcase_add_checked_fixture(test, set_up, tear_down);
    tcase_add_test(test, a_bound_spares_work_and_loses_little);
    tcase_add_test(test, no_candidate_passes_an_infinite_bound);
    return check_main("bound", &test, 1);
}
