/* The strategy that AUTO chooses takes few evaluations beside each forced strategy. The allowed share is large or
 * small, and lies near the queries, at random, or far away. */
#include "base/random.h"
#include "tests/support/check_main.h"
#include "tests/support/clusters.h"
#include "tests/support/indexes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N = 20000, DIM = 32, POOL = 400, Q = 20, K = 10, STRATEGIES = SL_FILTER_HOPS + 1 };

static const double shares[] = {0.5, 0.1, 0.03, 0.01, 0.001, 0.0001};
enum { SHARES = sizeof shares / sizeof *shares };
enum { NEAR, CHANCE, FAR, PLACES };
static const char *const places[PLACES] = {"near", "by chance", "far"};

static float *x;                       /* N rows, and POOL vectors behind them that queries are taken from */
static float queries[PLACES][Q * DIM]; /* near the pivot, as the pool has them, and far from it */
static uint64_t nearest[N];            /* rows, the nearest to the pivot first */
static uint64_t chance[N];             /* rows in the order of chance */
static uint8_t allowed[N];
static sl_index *index_;
static size_t partitions;

static void set_up(void) {
    x = clusters_make(N + POOL, DIM, 0.3, 33);
    const float *pivot = x + 5 * DIM, *pool = x + (size_t)N * DIM;
    static uint64_t order[POOL];
    indexes_exact(SL_METRIC_COSINE, DIM, (vector_rows){x, SL_F32, N}, (vector_rows){pivot, SL_F32, 1}, N, nearest);
    indexes_exact(SL_METRIC_COSINE, DIM, (vector_rows){pool, SL_F32, POOL}, (vector_rows){pivot, SL_F32, 1}, POOL,
                  order);
    for (size_t q = 0; q < Q; q++) {
        memcpy(queries[NEAR] + q * DIM, pool + order[q] * DIM, DIM * sizeof *pool);
        memcpy(queries[CHANCE] + q * DIM, pool + q * DIM, DIM * sizeof *pool);
        memcpy(queries[FAR] + q * DIM, pool + order[POOL - 1 - q] * DIM, DIM * sizeof *pool);
    }
    for (size_t i = 0; i < N; i++) {
        size_t at = sl_random_at(7, i) % (i + 1);
        chance[i] = chance[at];
        chance[at] = i;
    }
    sl_index_params params;
    indexes_params(&params, DIM, SL_METRIC_COSINE);
    params.codes = SL_CODES_F32;
    index_ = indexes_make(&params, x, SL_F32, N, NULL, 1);
    partitions = indexes_stats(index_).partitions;
}

static void tear_down(void) {
    sl_index_free(index_);
    free(x);
}

/* One cell: what is allowed, and the exact answer. */
typedef struct cell {
    const float *queries;
    const uint64_t *rows; /* those that are allowed */
    size_t count;
    sl_filter *filter;
    uint64_t truth[Q * K];
} cell;

static void cell_make(cell *c, int place, double share) {
    c->queries = queries[place];
    c->rows = place == CHANCE ? chance : nearest;
    c->count = (size_t)(share * N);
    float *kept = malloc(c->count * DIM * sizeof *kept);
    memset(allowed, 0, sizeof allowed);
    for (size_t i = 0; i < c->count; i++) {
        memcpy(kept + i * DIM, x + c->rows[i] * DIM, DIM * sizeof *kept);
        allowed[c->rows[i]] = 1;
    }
    indexes_exact(SL_METRIC_COSINE, DIM, (vector_rows){kept, SL_F32, c->count}, (vector_rows){c->queries, SL_F32, Q}, K,
                  c->truth);
    for (size_t i = 0; i < Q * K; i++)
        if (c->truth[i] != SL_NO_ID) c->truth[i] = c->rows[c->truth[i]];
    free(kept);
    sl_filter_params params;
    sl_filter_params_init(&params);
    params.allow = c->rows;
    params.allow_count = c->count;
    ck_ok(sl_filter_create(index_, &params, &c->filter));
}

/* Searches with one strategy, and checks that results are allowed, different and as many as possible. Returns
 * evaluations. */
static size_t ask(const cell *c, int strategy, uint64_t *ids) {
    const size_t expected = c->count < K ? c->count : K;
    static float scores[Q * K];
    sl_search_params params;
    sl_search_stats stats;
    size_t lawful = 0;
    sl_search_params_init(&params);
    params.filter = c->filter;
    params.strategy = (sl_filter_strategy)strategy;
    ck_ok(sl_index_search(index_, c->queries, SL_F32, Q, 0, K, &params, ids, scores, &stats));
    for (size_t i = 0; i < Q * K; i++) {
        size_t same = 0, place = i % K;
        for (size_t j = i - place; j < i; j++)
            same += ids[j] == ids[i];
        if (place < expected)
            lawful += ids[i] < N && allowed[ids[i]] && !same && (!place || scores[i] <= scores[i - 1]);
        else
            lawful += ids[i] == SL_NO_ID && isnan(scores[i]);
    }
    ck_assert_uint_eq(lawful, Q * K);
    ck_assert_uint_eq(stats.results, Q * expected);
    ck_assert_uint_eq(stats.exact + stats.partitions + stats.walks + stats.hops, Q);
    ck_assert_uint_eq(stats.cut, 0);
    return stats.evaluations;
}

/* AUTO takes at most CHEAPEST times the evaluations of the cheapest strategy that finds ENOUGH, and twice the
 * centroids. It never exceeds an exact scan and these. If few are allowed it's that scan. */
enum { CHEAPEST = 3, LOOKS = 2, LITTLE = 3 };
#define ENOUGH 0.95

static void expect_bounds(const cell *c, const char *name) {
    static uint64_t ids[Q * K];
    size_t work[STRATEGIES], cheapest = SIZE_MAX;
    double recall[STRATEGIES];
    for (int strategy = 0; strategy < STRATEGIES; strategy++) {
        work[strategy] = ask(c, strategy, ids);
        recall[strategy] = c->count > K ? indexes_recall(ids, c->truth, Q, K) : 1;
        if (strategy == SL_FILTER_EXACT) ck_assert_mem_eq(ids, c->truth, sizeof ids);
        if (strategy != SL_FILTER_AUTO && recall[strategy] >= ENOUGH && work[strategy] < cheapest)
            cheapest = work[strategy];
    }
    ck_assert_uint_eq(work[SL_FILTER_EXACT], Q * c->count);
    ck_assert_msg(work[SL_FILTER_AUTO] <= CHEAPEST * cheapest + LOOKS * Q * partitions,
                  "%zu %s: %zu evaluations, the cheapest takes %zu", c->count, name, work[SL_FILTER_AUTO], cheapest);
    ck_assert_msg(work[SL_FILTER_AUTO] <= Q * (c->count + LOOKS * partitions), "%zu %s: %zu evaluations", c->count,
                  name, work[SL_FILTER_AUTO]);
    if (c->count <= LITTLE * partitions) ck_assert_uint_eq(work[SL_FILTER_AUTO], Q * c->count);
    ck_assert_msg(recall[SL_FILTER_AUTO] > 0.85, "%zu %s: recall %g", c->count, name, recall[SL_FILTER_AUTO]);
}

START_TEST(the_choice_is_bounded) {
    ck_assert_uint_gt(partitions, 50);
    for (size_t s = 0; s < SHARES; s++) {
        cell c;
        cell_make(&c, _i, shares[s]);
        expect_bounds(&c, places[_i]);
        sl_filter_free(c.filter);
    }
}
END_TEST

/* By inner product a walk visits the longest vectors. If these are refused or deleted, AUTO doesn't start with a walk:
 * it takes the evaluations of PARTITIONS, and those of finding the start nodes. */
START_TEST(the_longest_are_refused) {
    enum { SHORT = N / 10 * 6, MOST = Q * 400 };
    static uint64_t order[N];
    static float zero[DIM];
    float *rows = clusters_make(N + Q, DIM, 1.0, 34);
    const float *of = rows + (size_t)N * DIM;
    sl_index_params params;
    indexes_params(&params, DIM, SL_METRIC_IP);
    sl_index *index = indexes_make(&params, rows, SL_F32, N, NULL, 1);
    indexes_exact(SL_METRIC_L2, DIM, (vector_rows){rows, SL_F32, N}, (vector_rows){zero, SL_F32, 1}, N, order);
    sl_filter_params given;
    sl_filter *filter;
    sl_filter_params_init(&given);
    given.allow = order;
    given.allow_count = SHORT;
    ck_ok(sl_filter_create(index, &given, &filter));
    sl_search_stats stats[3];
    static uint64_t ids[3][Q * K];
    for (int i = 0; i < 3; i++) {
        sl_search_params search;
        sl_search_params_init(&search);
        search.filter = i < 2 ? filter : NULL;
        search.strategy = i == 0 ? SL_FILTER_PARTITIONS : SL_FILTER_AUTO;
        if (i == 2) ck_ok(sl_index_delete(index, order + SHORT, N - SHORT));
        ck_ok(sl_index_search(index, of, SL_F32, Q, 0, K, &search, ids[i], NULL, &stats[i]));
        ck_assert_uint_le(stats[i].evaluations, stats[0].evaluations + MOST);
        ck_assert_double_gt(indexes_recall(ids[i], ids[0], Q, K), 0.98);
    }
    sl_filter_free(filter);
    sl_index_free(index);
    free(rows);
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("chosen");
    tcase_add_unchecked_fixture(tests, set_up, tear_down);
    tcase_add_loop_test(tests, the_choice_is_bounded, 0, PLACES);
    tcase_add_test(tests, the_longest_are_refused);
    return check_main("chosen", &tests, 1);
}
