/* Filters as handles: the vectors they allow, the results of each strategy, and the cost of a search. */
#include "tests/hnsw/search/allowed_rows.h"
#include "tests/support/check_main.h"
#include "tests/support/faults.h"
#include "tests/support/sanitized.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static uint64_t listed[N];

static sl_index *make(sl_metric metric, sl_codes codes) {
    return index_of(metric, codes, SL_REFINE_NONE, N);
}

/* Fills `listed` with the ids that are allowed, and returns how many there are. */
static size_t list_allowed(void) {
    size_t count = 0;
    for (size_t row = 0; row < N; row++)
        if (is_allowed(id_of(row))) listed[count++] = id_of(row);
    return count;
}

/* Allows and lists one row in `every`. */
static size_t list_every(size_t every) {
    allow_every(every, 7);
    return list_allowed();
}

static float dot(const float *a, const float *b) {
    float sum = 0;
    for (size_t d = 0; d < DIM; d++)
        sum += a[d] * b[d];
    return sum;
}

/* Allows the rows on one side of a plane: for queries on the other side, the near ones are refused. */
static size_t list_side(float side) {
    for (size_t row = 0; row < N; row++)
        allow(row, dot(x + row * DIM, x) * side > 0);
    return list_allowed();
}

static sl_filter *filter_of(sl_index *index, size_t count) {
    sl_filter_params params;
    sl_filter *filter;
    sl_filter_params_init(&params);
    params.allow = listed;
    params.allow_count = count;
    ck_ok(sl_filter_create(index, &params, &filter));
    return filter;
}

static void params_of(sl_search_params *params, const sl_filter *filter, sl_filter_strategy strategy) {
    sl_search_params_init(params);
    params->filter = filter;
    params->strategy = strategy;
}

/* Results are lawful, and there are as many as can be. */
static void expect_all(const uint64_t *ids, const float *scores, size_t count) {
    ck_assert_uint_eq(expect_lawful(ids, scores), Q * (count < K ? count : K));
}

/* ---------------------------------------------------------------------------------------------------------------
 * What a filter allows
 * ------------------------------------------------------------------------------------------------------------- */

static int even_row(void *ctx, uint64_t id) {
    ++*(size_t *)ctx;
    return row_of(id) % 2 == 0;
}

/* One row in 3 by a bitmap or a list, without every fifth, and even: alone and together. */
START_TEST(all_that_is_given_must_agree) {
    sl_index *index = make(SL_METRIC_COSINE, SL_CODES_I8);
    static uint64_t fifth[N / 5 + 2];
    list_every(3);
    for (size_t i = 0; i < N / 5; i++)
        fifth[i] = id_of(5 * i);
    fifth[N / 5] = SL_NO_ID;
    fifth[N / 5 + 1] = STEP * N + 1; /* no id of the index */
    for (int given = 0; given < 16; given++) {
        size_t asked = 0, count = list_every(3), wanted = 0;
        sl_filter_params params;
        sl_filter *filter;
        sl_filter_params_init(&params);
        if (given & 1) params.bits = bits, params.bits_count = STEP * N;
        if (given & 2) params.allow = listed, params.allow_count = count;
        if (given & 4) params.exclude = fifth, params.exclude_count = N / 5 + 2;
        if (given & 8) params.accept = even_row, params.accept_ctx = &asked;
        ck_ok(sl_filter_create(index, &params, &filter));
        for (size_t row = 0; row < N; row++)
            wanted +=
                (!(given & 3) || is_allowed(id_of(row))) && (!(given & 4) || row % 5) && (!(given & 8) || row % 2 == 0);
        ck_assert_uint_eq(sl_filter_count(filter), wanted);
        ck_assert_uint_le(asked, N);
        sl_filter_free(filter);
    }
    sl_index_free(index);
}
END_TEST

/* Lists and bitmaps with more ids than there are, or fewer, and with 2^64 - 1. */
START_TEST(filters_longer_and_shorter_than_the_index) {
    sl_index *index = make(SL_METRIC_COSINE, SL_CODES_I8);
    enum { LONG = 3 * STEP * N };
    static uint64_t ones[(LONG + 63) / 64], long_list[LONG + 1];
    memset(ones, 0xff, sizeof ones);
    for (uint64_t i = 0; i < LONG; i++)
        long_list[i] = i;
    long_list[LONG] = SL_NO_ID;
    const size_t counts[] = {0, 1, 64, STEP * 100 + 1, STEP * N, LONG};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        for (int by_list = 0; by_list < 2; by_list++) {
            const size_t reached = (counts[i] + STEP - 1) / STEP, wanted = reached < N ? reached : N;
            sl_filter_params params;
            sl_filter *filter;
            sl_filter_params_init(&params);
            params.bits = by_list ? NULL : ones;
            params.bits_count = by_list ? 0 : counts[i];
            params.allow = by_list ? long_list : NULL;
            params.allow_count = by_list ? counts[i] + (counts[i] == LONG) : 0;
            ck_ok(sl_filter_create(index, &params, &filter));
            ck_assert_uint_eq(sl_filter_count(filter), wanted);
            sl_filter_free(filter);
        }
    sl_index_free(index);
}
END_TEST

typedef struct failing {
    size_t asked, fail_at; /* the call, counted from 1, that fails; 0: none */
} failing;

static int odd_or_fail(void *ctx, uint64_t id) {
    failing *of = ctx;
    return ++of->asked == of->fail_at ? -1 : row_of(id) % 2 != 0;
}

/* A callback that fails is not called again. Creating a filter fails then, and a refresh leaves the filter as it was.
 */
START_TEST(a_callback_that_fails) {
    sl_index *index = make(SL_METRIC_COSINE, SL_CODES_I8);
    failing of = {0, 100};
    sl_filter_params params;
    sl_filter *filter = (sl_filter *)&of;
    sl_filter_params_init(&params);
    params.accept = odd_or_fail;
    params.accept_ctx = &of;
    ck_fails(sl_filter_create(index, &params, &filter), SL_ECANCELED, "accept returned -1 for id");
    ck_assert_ptr_null(filter);
    ck_assert_uint_eq(of.asked, 100);
    of = (failing){0, 0};
    ck_ok(sl_filter_create(index, &params, &filter));
    ck_assert_uint_eq(of.asked, N);
    of = (failing){0, N};
    ck_fails(sl_filter_refresh(filter), SL_ECANCELED, "accept returned -1");
    ck_assert_uint_eq(sl_filter_count(filter), N / 2);
    sl_filter_free(filter);
    sl_index_free(index);
}
END_TEST

/* A short list is looked up id by id, a long one by a bitmap: both allow the same. */
START_TEST(lists_of_any_length) {
    sl_index *index = make(SL_METRIC_L2, SL_CODES_I8);
    const size_t every[] = {1, 2, 17, 100, 0};
    for (size_t e = 0; e < sizeof every / sizeof *every; e++) {
        size_t count = list_every(every[e]);
        sl_filter *allow = filter_of(index, count), *exclude;
        sl_filter_params params;
        sl_filter_params_init(&params);
        params.exclude = listed;
        params.exclude_count = count;
        ck_ok(sl_filter_create(index, &params, &exclude));
        ck_assert_uint_eq(sl_filter_count(allow), count);
        ck_assert_uint_eq(sl_filter_count(exclude), N - count);
        sl_filter_free(allow);
        sl_filter_free(exclude);
    }
    sl_index_free(index);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * What is found
 * ------------------------------------------------------------------------------------------------------------- */

static const size_t shares[] = {1, 2, 10, 100, 1000, 0};
enum { SHARES = sizeof shares / sizeof *shares };

START_TEST(every_strategy_finds_what_there_is) {
    if (!stands_for_others(_i)) return;
    const sl_metric metric = (sl_metric)(_i % 3);
    sl_index *index = make(metric, _i / 3 ? SL_CODES_I4 : SL_CODES_F32);
    static uint64_t wanted[Q * K], ids[Q * K];
    static float scores[Q * K];
    for (size_t s = 0; s < SHARES; s++) {
        size_t count = list_every(shares[s]);
        sl_filter *filter = filter_of(index, count);
        truth(metric, wanted);
        for (int strategy = SL_FILTER_AUTO; strategy <= SL_FILTER_HOPS; strategy++) {
            sl_search_params params;
            sl_search_stats stats;
            params_of(&params, filter, (sl_filter_strategy)strategy);
            ck_ok(sl_index_search(index, queries, SL_F32, Q, 0, K, &params, ids, scores, &stats));
            expect_all(ids, scores, count);
            ck_assert_uint_eq(stats.exact + stats.partitions + stats.walks + stats.hops, Q);
            if (strategy == SL_FILTER_EXACT) ck_assert_uint_eq(stats.exact, Q);
            if (strategy == SL_FILTER_EXACT && _i / 3 == 0) ck_assert_mem_eq(ids, wanted, sizeof ids);
            if (strategy == SL_FILTER_PARTITIONS && count) ck_assert_uint_eq(stats.partitions, Q);
            double recall = indexes_recall(ids, wanted, Q, K);
            ck_assert_msg(count == 0 || recall > 0.85, "strategy %d, one in %zu: recall %g", strategy, shares[s],
                          recall);
            if (strategy == SL_FILTER_HOPS && count > K) ck_assert_uint_eq(stats.hops, Q);
            /* One in ten allowed: a vector has three such neighbours. */
            if (strategy == SL_FILTER_HOPS && shares[s] == 10) ck_assert_double_gt(recall, 0.99);
        }
        sl_filter_free(filter);
    }
    sl_index_free(index);
}
END_TEST

/* Queries on both sides of a plane, one side of which is refused. */
START_TEST(what_is_near_may_be_refused) {
    const sl_metric metric = (sl_metric)_i;
    sl_index *index = make(metric, SL_CODES_I8);
    static uint64_t wanted[Q * K], ids[Q * K];
    static float scores[Q * K];
    for (float side = -1; side < 2; side += 2) {
        size_t count = list_side(side);
        sl_filter *filter = filter_of(index, count);
        truth(metric, wanted);
        for (int strategy = SL_FILTER_AUTO; strategy <= SL_FILTER_PARTITIONS; strategy++) {
            sl_search_params params;
            params_of(&params, filter, (sl_filter_strategy)strategy);
            ck_ok(sl_index_search(index, queries, SL_F32, Q, 0, K, &params, ids, scores, NULL));
            expect_all(ids, scores, count);
            double recall = indexes_recall(ids, wanted, Q, K);
            ck_assert_msg(recall > 0.9, "side %g, strategy %d: recall %g", (double)side, strategy, recall);
        }
        sl_filter_free(filter);
    }
    sl_index_free(index);
}
END_TEST

/* A search asks late what the filter does not know. */
START_TEST(a_callback_beside_a_filter) {
    sl_index *index = make(SL_METRIC_COSINE, SL_CODES_F32);
    static uint64_t wanted[Q * K], ids[Q * K];
    static float scores[Q * K];
    size_t count = list_every(4), both = 0;
    sl_filter *filter = filter_of(index, count);
    for (size_t row = 0; row < N; row++)
        if (row % 2) allow(row, 0);
    for (size_t row = 0; row < N; row++)
        both += is_allowed(id_of(row)) != 0;
    truth(SL_METRIC_COSINE, wanted);
    for (int strategy = SL_FILTER_AUTO; strategy <= SL_FILTER_HOPS; strategy++) {
        size_t asked = 0;
        sl_search_params params;
        params_of(&params, filter, (sl_filter_strategy)strategy);
        params.accept = even_row;
        params.accept_ctx = &asked;
        ck_ok(sl_index_search(index, queries, SL_F32, Q, 0, K, &params, ids, scores, NULL));
        expect_all(ids, scores, both);
        ck_assert_uint_gt(asked, 0);
        if (strategy == SL_FILTER_EXACT) ck_assert_mem_eq(ids, wanted, sizeof ids);
    }
    sl_filter_free(filter);
    sl_index_free(index);
}
END_TEST

/* Many threads, and one query at a time, find what one thread finds. */
START_TEST(threads_share_a_filter) {
    sl_index *index = make(SL_METRIC_COSINE, SL_CODES_I4);
    static uint64_t one[Q * K], four[Q * K], single[K];
    for (size_t s = 0; s < SHARES; s++) {
        sl_filter *filter = filter_of(index, list_every(shares[s]));
        sl_search_params params;
        sl_search_stats alone, together;
        params_of(&params, filter, SL_FILTER_AUTO);
        ck_ok(sl_index_search(index, queries, SL_F32, Q, 0, K, &params, one, NULL, &alone));
        params.threads = 4;
        ck_ok(sl_index_search(index, queries, SL_F32, Q, 0, K, &params, four, NULL, &together));
        ck_assert_mem_eq(one, four, sizeof one);
        ck_assert_mem_eq(&alone, &together, sizeof alone);
        for (size_t q = 0; q < Q; q++) {
            ck_ok(sl_index_search(index, queries + q * DIM, SL_F32, 1, 0, K, &params, single, NULL, NULL));
            ck_assert_mem_eq(single, one + q * K, sizeof single);
        }
        sl_filter_free(filter);
    }
    sl_index_free(index);
}
END_TEST

/* A filter that allows much, one that allows little, and one that allows none. */
enum { UNLIKE = 3 };

static void unlike_filters(sl_index *index, sl_filter **filters) {
    const size_t every[UNLIKE] = {2, 500, 0};
    for (size_t i = 0; i < UNLIKE; i++)
        filters[i] = filter_of(index, list_every(every[i]));
}

/* Each query of a batch finds what it finds alone, by its own filter, or by none. */
START_TEST(each_query_has_its_filter) {
    sl_index *index = make(SL_METRIC_COSINE, SL_CODES_I4);
    static uint64_t ids[Q * K], single[K];
    sl_filter *unlike[UNLIKE];
    const sl_filter *filters[Q];
    unlike_filters(index, unlike);
    for (size_t q = 0; q < Q; q++)
        filters[q] = q % 4 < UNLIKE ? unlike[q % 4] : NULL;
    for (int way = 0; way < 4; way++) {
        sl_search_params params;
        sl_search_stats stats, alone, sum = {0};
        params_of(&params, NULL, SL_FILTER_AUTO);
        params.threads = way % 2 ? 4 : 1;
        params.probes = way / 2 ? 8 : 0; /* scans serve queries without a filter alone */
        params.filters = filters;
        ck_ok(sl_index_search(index, queries, SL_F32, Q, 0, K, &params, ids, NULL, &stats));
        params.filters = NULL;
        for (size_t q = 0; q < Q; q++) {
            params.filter = filters[q];
            ck_ok(sl_index_search(index, queries + q * DIM, SL_F32, 1, 0, K, &params, single, NULL, &alone));
            ck_assert_mem_eq(single, ids + q * K, sizeof single);
            sum.evaluations += alone.evaluations;
            sum.results += alone.results;
        }
        ck_assert_uint_eq(stats.evaluations, sum.evaluations);
        ck_assert_uint_eq(stats.results, sum.results);
        ck_assert_uint_eq(stats.exact + stats.partitions + stats.walks + stats.hops, Q / 4 * UNLIKE);
    }
    for (size_t i = 0; i < UNLIKE; i++)
        sl_filter_free(unlike[i]);
    sl_index_free(index);
}
END_TEST

/* Each user has seen the nearest vectors. The filter refuses few in all: a walk that goes on past them finds the next.
 */
START_TEST(the_nearest_were_seen) {
    enum { SEEN = 100 };
    sl_index *index = make(SL_METRIC_COSINE, SL_CODES_I4);
    static uint64_t seen[Q * SEEN], ids[Q * K], wanted[Q * K];
    sl_filter *filters[Q];
    const sl_filter *given[Q];
    sl_filter_params of;
    sl_search_params params;
    sl_search_stats stats;
    params_of(&params, NULL, SL_FILTER_AUTO);
    params.ef = 400;
    ck_ok(sl_index_search(index, queries, SL_F32, Q, 0, SEEN, &params, seen, NULL, NULL));
    sl_filter_params_init(&of);
    of.exclude_count = SEEN;
    for (size_t q = 0; q < Q; q++) {
        of.exclude = seen + q * SEEN;
        ck_ok(sl_filter_create(index, &of, &filters[q]));
        given[q] = filters[q];
    }
    params_of(&params, NULL, SL_FILTER_EXACT);
    params.filters = given;
    ck_ok(sl_index_search(index, queries, SL_F32, Q, 0, K, &params, wanted, NULL, NULL));
    params.strategy = SL_FILTER_AUTO;
    ck_ok(sl_index_search(index, queries, SL_F32, Q, 0, K, &params, ids, NULL, &stats));
    ck_assert_uint_eq(stats.results, Q * K);
    ck_assert_uint_ge(stats.walks, Q - Q / 10);
    ck_assert_uint_lt(stats.evaluations, Q * N / 2);
    ck_assert_double_ge(indexes_recall(ids, wanted, Q, K), 0.95);
    for (size_t q = 0; q < Q; q++)
        sl_filter_free(filters[q]);
    sl_index_free(index);
}
END_TEST

START_TEST(filters_that_cannot_serve_are_refused) {
    sl_index *index = index_of(SL_METRIC_COSINE, SL_CODES_I8, SL_REFINE_NONE, 100),
             *other = index_of(SL_METRIC_L2, SL_CODES_I8, SL_REFINE_NONE, 100);
    sl_filter *mine = filter_of(index, 100), *strange = filter_of(other, 100);
    const sl_filter *filters[Q] = {mine, NULL, strange};
    sl_search_params params;
    sl_searcher *searcher;
    sl_iterator *iterator;
    uint64_t ids[Q * K];
    params_of(&params, NULL, SL_FILTER_AUTO);
    params.filters = filters;
    ck_fails(sl_index_search(index, queries, SL_F32, Q, 0, K, &params, ids, NULL, NULL), SL_EINVAL, "query 2");
    ck_assert_ptr_nonnull(strstr(sl_last_error(), "another index"));
    ck_ok(sl_index_search(index, queries, SL_F32, 2, 0, K, &params, ids, NULL, NULL));
    ck_ok(sl_searcher_create(index, 64, &searcher));
    ck_fails(sl_searcher_search(searcher, queries, SL_F32, K, &params, ids, NULL, NULL), SL_EINVAL, "one query");
    ck_fails(sl_iterator_create(index, queries, SL_F32, &params, &iterator), SL_EINVAL, "one query");
    params.filter = mine;
    ck_fails(sl_index_search(index, queries, SL_F32, 1, 0, K, &params, ids, NULL, NULL), SL_EINVAL, "both given");
    sl_searcher_free(searcher);
    sl_filter_free(mine);
    sl_filter_free(strange);
    sl_index_free(index);
    sl_index_free(other);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * What it costs
 * ------------------------------------------------------------------------------------------------------------- */

/* EXACT scores the allowed vectors. PARTITIONS scores fewer, and the centroids. AUTO scores at most a few times as many
 * as EXACT, whatever is allowed, and no more than EXACT if few are. */
START_TEST(work_is_bounded) {
    sl_index *index = make(SL_METRIC_COSINE, SL_CODES_I8);
    sl_index_stats about = {.struct_size = sizeof about};
    static uint64_t ids[Q * K];
    ck_ok(sl_index_get_stats(index, &about));
    ck_assert_uint_gt(about.partitions, 10);
    for (size_t s = 0; s < SHARES; s++) {
        size_t count = list_every(shares[s]), evaluations[SL_FILTER_HOPS + 1];
        sl_filter *filter = filter_of(index, count);
        for (int strategy = SL_FILTER_AUTO; strategy <= SL_FILTER_HOPS; strategy++) {
            sl_search_params params;
            sl_search_stats stats;
            params_of(&params, filter, (sl_filter_strategy)strategy);
            ck_ok(sl_index_search(index, queries, SL_F32, Q, 0, K, &params, ids, NULL, &stats));
            evaluations[strategy] = stats.evaluations;
        }
        ck_assert_uint_eq(evaluations[SL_FILTER_EXACT], Q * count);
        ck_assert_uint_le(evaluations[SL_FILTER_PARTITIONS], Q * (count + about.partitions));
        if (shares[s] == 1) ck_assert_uint_lt(evaluations[SL_FILTER_PARTITIONS], Q * count / 2);
        if (shares[s] >= 100 || shares[s] == 0) ck_assert_uint_eq(evaluations[SL_FILTER_AUTO], Q * count);
        ck_assert_uint_le(evaluations[SL_FILTER_AUTO], Q * (count + 3 * about.partitions));
        sl_filter_free(filter);
    }
    sl_index_free(index);
}
END_TEST

/* No strategy exceeds the bound by more than some hundred evaluations and the centroids. */
START_TEST(visits_are_bounded) {
    enum { MOST = 500 };
    sl_index *index = make(SL_METRIC_COSINE, SL_CODES_I8);
    sl_index_stats about = {.struct_size = sizeof about};
    static uint64_t ids[Q * K];
    ck_ok(sl_index_get_stats(index, &about));
    sl_filter *filter = filter_of(index, list_every(2));
    for (int strategy = SL_FILTER_AUTO; strategy <= SL_FILTER_HOPS; strategy++) {
        sl_search_params params;
        sl_search_stats stats;
        params_of(&params, filter, (sl_filter_strategy)strategy);
        params.max_visits = MOST;
        ck_ok(sl_index_search(index, queries, SL_F32, Q, 0, K, &params, ids, NULL, &stats));
        ck_assert_uint_le(stats.evaluations, Q * (MOST + 400 + about.partitions));
        ck_assert_uint_le(stats.cut, Q);
        if (strategy == SL_FILTER_EXACT) ck_assert_uint_eq(stats.cut, Q);
    }
    sl_filter_free(filter);
    sl_index_free(index);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * An index that changes, and bad input
 * ------------------------------------------------------------------------------------------------------------- */

/* Half of what is allowed, then all of it. */
START_TEST(deleted_vectors_are_not_allowed) {
    sl_index *index = make(SL_METRIC_COSINE, SL_CODES_I8);
    static uint64_t ids[Q * K];
    static float scores[Q * K];
    size_t count = list_every(10), deleted = 0;
    sl_filter *filter = filter_of(index, count);
    for (size_t to = count / 2; deleted < count; to = count) {
        ck_ok(sl_index_delete(index, listed + deleted, to - deleted));
        for (; deleted < to; deleted++)
            allow(row_of(listed[deleted]), 0);
        ck_assert_uint_eq(sl_filter_count(filter), count - deleted);
        for (int strategy = SL_FILTER_AUTO; strategy <= SL_FILTER_HOPS; strategy++) {
            sl_search_params params;
            params_of(&params, filter, (sl_filter_strategy)strategy);
            ck_ok(sl_index_search(index, queries, SL_F32, Q, 0, K, &params, ids, scores, NULL));
            expect_all(ids, scores, count - deleted);
        }
    }
    sl_filter_free(filter);
    sl_index_free(index);
}
END_TEST

/* A refresh allows vectors added later, also after the nodes were renumbered. */
START_TEST(a_refresh_sees_what_was_added) {
    const size_t first = N - 400;
    sl_index *index = index_of(SL_METRIC_COSINE, SL_CODES_I8, SL_REFINE_NONE, first);
    size_t before = 0, count = list_every(5);
    sl_filter *filter = filter_of(index, count);
    for (size_t row = 0; row < first; row++)
        before += is_allowed(id_of(row)) != 0;
    ck_assert_uint_eq(sl_filter_count(filter), before);
    for (size_t i = first; i < N; i++)
        listed[i] = id_of(i);
    ck_ok(sl_index_add(index, x + first * DIM, SL_F32, N - first, 0, listed + first, NULL));
    ck_assert_uint_eq(sl_filter_count(filter), before);
    ck_ok(sl_filter_refresh(filter));
    ck_assert_uint_eq(sl_filter_count(filter), count);
    sl_filter_free(filter);
    sl_index_free(index);
}
END_TEST

START_TEST(renumbered_nodes_want_a_refresh) {
    sl_index *index = index_of(SL_METRIC_COSINE, SL_CODES_I8, SL_REFINE_NONE, N / 3);
    static uint64_t ids[Q * K];
    size_t count = list_every(2);
    sl_filter *filter = filter_of(index, count);
    sl_search_params params;
    params_of(&params, filter, SL_FILTER_AUTO);
    for (size_t i = N / 3; i < N; i++)
        listed[i] = id_of(i);
    ck_ok(sl_index_add(index, x + N / 3 * DIM, SL_F32, N - N / 3, 0, listed + N / 3, NULL));
    ck_fails(sl_index_search(index, queries, SL_F32, Q, 0, K, &params, ids, NULL, NULL), SL_EINVAL,
             "sl_filter_refresh");
    ck_ok(sl_filter_refresh(filter));
    ck_ok(sl_index_search(index, queries, SL_F32, Q, 0, K, &params, ids, NULL, NULL));
    for (size_t i = 0; i < Q * K; i++)
        ck_assert(is_allowed(ids[i]));
    sl_filter_free(filter);
    sl_index_free(index);
}
END_TEST

static int take_any(void *ctx, size_t query, uint64_t id, float score) {
    (void)ctx;
    (void)query;
    (void)id;
    (void)score;
    return 0;
}

/* A filter of another index serves no kind of question. */
static void expect_refused_elsewhere(sl_index *index, const sl_filter *filter) {
    sl_range_params range;
    sl_search_params params;
    sl_iterator *iterator;
    uint64_t ids[K], id = id_of(0);
    params_of(&params, filter, SL_FILTER_AUTO);
    sl_range_params_init(&range);
    range.filter = filter;
    ck_fails(sl_index_range(index, queries, SL_F32, 1, 0, 1, &range, take_any, NULL, NULL), SL_EINVAL, "another index");
    ck_fails(sl_iterator_create(index, queries, SL_F32, &params, &iterator), SL_EINVAL, "another index");
    ck_fails(sl_index_search_ids(index, &id, 1, K, &params, ids, NULL, NULL), SL_EINVAL, "another index");
}

START_TEST(bad_input_is_refused) {
    sl_index *index = index_of(SL_METRIC_COSINE, SL_CODES_I8, SL_REFINE_NONE, 100),
             *other = index_of(SL_METRIC_L2, SL_CODES_I8, SL_REFINE_NONE, 100);
    sl_filter *filter = filter_of(index, 100), *none = filter;
    uint64_t ids[K];
    sl_filter_params given;
    sl_search_params params;
    params_of(&params, filter, SL_FILTER_AUTO);
    ck_fails(sl_index_search(other, queries, SL_F32, 1, 0, K, &params, ids, NULL, NULL), SL_EINVAL, "another index");
    expect_refused_elsewhere(other, filter);
    params.strategy = (sl_filter_strategy)9;
    ck_fails(sl_index_search(index, queries, SL_F32, 1, 0, K, &params, ids, NULL, NULL), SL_EINVAL, "strategy");
    sl_filter_params_init(&given);
    given.bits_count = 1;
    ck_fails(sl_filter_create(index, &given, &none), SL_EINVAL, "bits is NULL");
    ck_assert_ptr_null(none);
    sl_filter_params_init(&given);
    given.allow_count = 1;
    ck_fails(sl_filter_create(index, &given, &none), SL_EINVAL, "allow is NULL");
    sl_filter_params_init(&given);
    given.exclude_count = 1;
    ck_fails(sl_filter_create(index, &given, &none), SL_EINVAL, "exclude is NULL");
    ck_fails(sl_filter_create(NULL, NULL, &none), SL_EINVAL, "index is NULL");
    ck_fails(sl_filter_create(index, NULL, NULL), SL_EINVAL, "out is NULL");
    ck_fails(sl_filter_refresh(NULL), SL_EINVAL, "filter is NULL");
    ck_assert_uint_eq(sl_filter_count(NULL), 0);
    sl_filter_free(NULL);
    sl_filter_free(filter);
    sl_index_free(index);
    sl_index_free(other);
}
END_TEST

/* An index without a vector, and filters of no list. */
START_TEST(empty_ones) {
    sl_index_params of;
    sl_index *index;
    indexes_params(&of, DIM, SL_METRIC_COSINE);
    ck_ok(sl_index_create(&of, &index));
    sl_filter *filter;
    sl_search_params params;
    uint64_t ids[K];
    ck_ok(sl_filter_create(index, NULL, &filter));
    ck_assert_uint_eq(sl_filter_count(filter), 0);
    params_of(&params, filter, SL_FILTER_AUTO);
    ck_ok(sl_index_search(index, queries, SL_F32, 1, 0, K, &params, ids, NULL, NULL));
    ck_assert(ids[0] == SL_NO_ID);
    ck_ok(indexes_add(index, x, SL_F32, 50, NULL));
    ck_ok(sl_filter_refresh(filter));
    ck_assert_uint_eq(sl_filter_count(filter), 50);
    sl_filter_free(filter);
    sl_index_free(index);
}
END_TEST

/* A refresh that runs out of memory leaves the filter as it was. */
START_TEST(every_allocation_fails_once) {
    fault_allocator memory;
    fault_allocator_init(&memory, 0);
    sl_index *index = make(SL_METRIC_COSINE, SL_CODES_I8);
    size_t count = list_every(2);
    sl_filter_params params;
    sl_filter_params_init(&params);
    params.allow = listed;
    params.allow_count = count;
    params.bits = bits;
    params.bits_count = STEP * N;
    params.allocator = &memory.allocator;
    sl_filter *filter = NULL;
    size_t fails = 0;
    for (sl_status status = SL_ENOMEM; status != SL_OK; fails++) {
        memory.calls = 0;
        memory.fail_at = fails + 1;
        status = sl_filter_create(index, &params, &filter);
        memory.fail_at = 0;
        if (status == SL_OK) break;
        ck_assert_int_eq(status, SL_ENOMEM);
        ck_assert_ptr_null(filter);
        ck_assert_uint_eq(memory.live_blocks, 0);
    }
    ck_assert_uint_ge(fails, 5);
    for (size_t at = 1; at <= 3; at++) {
        memory.calls = 0;
        memory.fail_at = at;
        ck_assert_int_eq(sl_filter_refresh(filter), SL_ENOMEM);
        memory.fail_at = 0;
        ck_assert_uint_eq(sl_filter_count(filter), count);
    }
    sl_filter_free(filter);
    ck_assert_uint_eq(memory.live_blocks, 0);
    sl_index_free(index);
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("filter"), *threads = tcase_create("threads");
    tcase_add_checked_fixture(tests, rows_set_up, rows_tear_down);
    tcase_add_checked_fixture(threads, rows_set_up, rows_tear_down);
    tcase_add_test(tests, all_that_is_given_must_agree);
    tcase_add_test(tests, lists_of_any_length);
    tcase_add_test(tests, filters_longer_and_shorter_than_the_index);
    tcase_add_test(tests, a_callback_that_fails);
    tcase_add_loop_test(tests, every_strategy_finds_what_there_is, 0, 6);
    tcase_add_loop_test(tests, what_is_near_may_be_refused, 0, 3);
    tcase_add_test(tests, a_callback_beside_a_filter);
    tcase_add_test(tests, the_nearest_were_seen);
    tcase_add_test(tests, filters_that_cannot_serve_are_refused);
    tcase_add_test(tests, work_is_bounded);
    tcase_add_test(tests, visits_are_bounded);
    tcase_add_test(tests, deleted_vectors_are_not_allowed);
    tcase_add_test(tests, a_refresh_sees_what_was_added);
    tcase_add_test(tests, renumbered_nodes_want_a_refresh);
    tcase_add_test(tests, bad_input_is_refused);
    tcase_add_test(tests, empty_ones);
    tcase_add_test(tests, every_allocation_fails_once);
    tcase_add_test(threads, threads_share_a_filter);
    tcase_add_test(threads, each_query_has_its_filter);
    return check_main("filter", (TCase *[]){tests, threads}, 2);
}
