/* Traps that broke searches of other vector libraries, numbered as docs/internals/filters.md lists them. */
#include "base/visited.h"
#include "hnsw/graph/index.h"
#include "tests/hnsw/search/allowed_rows.h"
#include "tests/support/check_main.h"
#include "tests/support/faults.h"

#include <math.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static uint64_t found[Q * K];
static float scores[Q * K];

static sl_search_params params_of(const sl_filter *filter, sl_filter_strategy strategy) {
    sl_search_params params;
    sl_search_params_init(&params);
    params.filter = filter;
    params.strategy = strategy;
    return params;
}

/* Asks all queries of these parameters. Results are lawful. */
static sl_search_stats ask(const sl_index *index, const sl_search_params *params) {
    sl_search_stats stats;
    ck_ok(sl_index_search(index, queries, SL_F32, Q, 0, K, params, found, scores, &stats));
    ck_assert_uint_eq(expect_lawful(found, scores), stats.results);
    return stats;
}

static int count_one(void *ctx, size_t query, uint64_t id, float score) {
    (void)query;
    (void)id;
    (void)score;
    ++*(size_t *)ctx;
    return 0;
}

/* Counts the first query's results of every kind of search: each strategy, a range of all, an iterator. All counts are
 * equal. */
static size_t results_of_all(const sl_index *index, const sl_filter *filter) {
    sl_range_params range;
    sl_search_stats stats;
    sl_iterator *iterator;
    size_t ranged = 0, got = 0;
    sl_range_params_init(&range);
    range.exact = 1;
    range.filter = filter;
    for (int strategy = SL_FILTER_AUTO; strategy <= SL_FILTER_HOPS; strategy++) {
        const sl_search_params params = params_of(filter, (sl_filter_strategy)strategy);
        ck_ok(sl_index_search(index, queries, SL_F32, 1, 0, K, &params, found, scores, &stats));
        if (strategy == SL_FILTER_AUTO) got = stats.results;
        ck_assert_uint_eq(stats.results, got);
        for (size_t i = 0; i < K; i++)
            ck_assert((i < got) == (found[i] != SL_NO_ID) && (i < got) == !isnan(scores[i]));
    }
    ck_ok(sl_index_range(index, queries, SL_F32, 1, 0, (double)-INFINITY, &range, count_one, &ranged, NULL));
    ck_assert(got < K ? ranged == got : ranged >= K);
    const sl_search_params params = params_of(filter, SL_FILTER_AUTO);
    ck_ok(sl_iterator_create(index, queries, SL_F32, &params, &iterator));
    ck_ok(sl_iterator_next(iterator, K, found, scores, &ranged, NULL));
    ck_assert_uint_eq(ranged, got);
    sl_iterator_free(iterator);
    return got;
}

/* An empty index answers every kind of search, with and without a filter. The same filter works once it has vectors. */
START_TEST(trap_30_search_before_add) {
    sl_index_params of;
    sl_index *index;
    sl_searcher *searcher;
    indexes_params(&of, DIM, SL_METRIC_COSINE);
    ck_ok(sl_index_create(&of, &index));
    allow_every(2, 7);
    sl_filter *filter = filter_of_bits(index);
    const sl_search_params params = params_of(filter, SL_FILTER_AUTO);
    ck_ok(sl_searcher_create(index, 64, &searcher));
    ck_ok(sl_searcher_search(searcher, queries, SL_F32, K, &params, found, scores, NULL));
    ck_assert(found[0] == SL_NO_ID && found[K - 1] == SL_NO_ID);
    ck_assert_uint_eq(results_of_all(index, NULL), 0);
    ck_assert_uint_eq(results_of_all(index, filter), 0);
    uint64_t ids[500];
    for (size_t i = 0; i < 500; i++)
        ids[i] = id_of(i);
    ck_ok(indexes_add(index, x, SL_F32, 500, ids));
    ck_assert_uint_eq(results_of_all(index, NULL), K);
    ck_ok(sl_filter_refresh(filter));
    ck_assert_uint_eq(results_of_all(index, filter), K);
    ck_ok(sl_searcher_search(searcher, queries, SL_F32, K, &params, found, scores, NULL));
    ck_assert(found[K - 1] != SL_NO_ID);
    sl_searcher_free(searcher);
    sl_filter_free(filter);
    sl_index_free(index);
}
END_TEST

/* A child process searches with its parent's filter on as many threads, refreshes it, and makes another. */
START_TEST(trap_31_search_after_fork) {
    sl_index *index = index_of(SL_METRIC_COSINE, SL_CODES_I8, SL_REFINE_NONE, N);
    static uint64_t wanted[SL_FILTER_HOPS + 1][Q * K];
    allow_every(3, 7);
    sl_filter *filter = filter_of_bits(index);
    sl_search_params params = params_of(filter, SL_FILTER_AUTO);
    params.threads = 4;
    for (int s = SL_FILTER_AUTO; s <= SL_FILTER_HOPS; s++) {
        params.strategy = (sl_filter_strategy)s;
        ck_ok(sl_index_search(index, queries, SL_F32, Q, 0, K, &params, wanted[s], NULL, NULL));
    }
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        int fault = sl_filter_refresh(filter) != SL_OK;
        for (int s = SL_FILTER_AUTO; s <= SL_FILTER_HOPS && !fault; s++) {
            params.strategy = (sl_filter_strategy)s;
            if (s % 2) params.filter = filter_of_bits(index);
            fault = sl_index_search(index, queries, SL_F32, Q, 0, K, &params, found, NULL, NULL) != SL_OK ||
                    memcmp(found, wanted[s], sizeof found) != 0;
        }
        _exit(fault);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    params.strategy = SL_FILTER_AUTO;
    ck_ok(sl_index_search(index, queries, SL_F32, Q, 0, K, &params, found, NULL, NULL));
    ck_assert_mem_eq(found, wanted[SL_FILTER_AUTO], sizeof found);
    sl_filter_free(filter);
    sl_index_free(index);
}
END_TEST

/* A filter that refuses 99 % costs the vectors that it allows. With 99 % deleted, a search costs no more than that and
 * one walk. */
START_TEST(trap_32_a_filter_of_99_percent) {
    sl_index *index = index_of(SL_METRIC_COSINE, SL_CODES_I8, SL_REFINE_NONE, N);
    sl_search_params params = params_of(NULL, SL_FILTER_AUTO);
    static uint64_t wanted[Q * K], refused[N];
    size_t deleted = 0, count;
    allow_every(1, 7);
    const size_t plain = ask(index, &params).evaluations;
    count = allow_every(100, 7);
    sl_filter *filter = filter_of_bits(index);
    truth(SL_METRIC_COSINE, wanted);
    params.filter = filter;
    sl_search_stats stats = ask(index, &params);
    ck_assert_uint_eq(stats.results, Q * K);
    ck_assert_uint_eq(stats.evaluations, Q * count);
    ck_assert_double_gt(indexes_recall(found, wanted, Q, K), 0.97);
    for (size_t row = 0; row < N; row++)
        if (!is_allowed(id_of(row))) refused[deleted++] = id_of(row);
    index->keeps_deleted = 1;
    ck_ok(sl_index_delete(index, refused, deleted));
    stats = ask(index, NULL);
    ck_assert_uint_eq(stats.results, Q * K);
    ck_assert_uint_le(stats.evaluations, plain + Q * (count + 64));
    ck_assert_double_gt(indexes_recall(found, wanted, Q, K), 0.97);
    sl_filter_free(filter);
    sl_index_free(index);
}
END_TEST

static int accept_none(void *ctx, uint64_t id) {
    (void)id;
    ++*(size_t *)ctx;
    return 0;
}

/* A filter that allows nothing, or only deleted vectors, gives no result and scores nothing. A callback that accepts
 * nothing is called for a walk's candidates and then once for each vector. */
START_TEST(trap_33_a_filter_that_accepts_nothing) {
    sl_index *index = index_of(SL_METRIC_COSINE, SL_CODES_I8, SL_REFINE_NONE, N);
    for (int deletes = 0; deletes < 2; deletes++) {
        uint64_t gone[N];
        size_t count = deletes ? allow_every(3, 7) : 0, deleted = 0;
        sl_filter *filter = filter_of_bits(index);
        ck_assert_uint_eq(sl_filter_count(filter), count);
        for (size_t row = 0; row < N; row++)
            if (is_allowed(id_of(row))) gone[deleted++] = id_of(row);
        ck_ok(sl_index_delete(index, gone, deleted));
        for (int strategy = SL_FILTER_AUTO; strategy <= SL_FILTER_HOPS; strategy++) {
            const sl_search_params params = params_of(filter, (sl_filter_strategy)strategy);
            sl_search_stats stats = ask(index, &params);
            ck_assert_uint_eq(sl_filter_count(filter), 0);
            const size_t most = strategy == SL_FILTER_AUTO || strategy == SL_FILTER_EXACT ? 64 : N + 64;
            ck_assert_uint_eq(stats.results + stats.cut, 0);
            ck_assert_uint_eq(stats.exact + stats.partitions + stats.walks + stats.hops, Q);
            ck_assert_uint_le(stats.evaluations, deletes ? Q * most : 0);
        }
        ck_assert_uint_eq(results_of_all(index, filter), 0);
        sl_filter_free(filter);
    }
    size_t asked = 0;
    sl_search_params params = params_of(NULL, SL_FILTER_AUTO);
    params.accept = accept_none;
    params.accept_ctx = &asked;
    sl_search_stats stats = ask(index, &params);
    ck_assert_uint_eq(stats.results, 0);
    ck_assert_uint_le(asked, Q * (N + 4 * params.ef));
    ck_assert_uint_le(stats.evaluations, Q * (2 * N + 8 * params.ef * DIM));
    sl_index_free(index);
}
END_TEST

/* The marks of the last walk over 64 million nodes are cleared before the next, and nothing else is written. */
START_TEST(trap_34_visited_of_64_million_nodes) {
    fault_allocator memory;
    fault_allocator_init(&memory, 0);
    sl_visited visited;
    ck_ok(sl_visited_init(&visited, &memory.allocator, 64000000, 16 * 64, 32));
    ck_assert_uint_le(memory.live_bytes, SL_VISITED_MOST / 8 + 16384);
    const uint32_t far = 63999999 & visited.mask;
    for (int walk = 0; walk < 2; walk++) {
        for (uint32_t i = 0; i < 1000; i++) {
            sl_visited_place(&visited)[0] = 31000 * i;
            ck_assert(!sl_visited_mark(&visited, 31000 * i));
            visited.count++;
        }
        visited.words[far] = 5; /* not listed: a pass over all words would clear it */
        sl_visited_clear(&visited);
        ck_assert_uint_eq(visited.words[far], 5);
    }
    sl_visited_free(&visited, &memory.allocator);
    ck_assert_uint_eq(memory.live_blocks, 0);
}
END_TEST

/* A thousand indexes of ten vectors, each with a filter that has served a search, take some KiB each. */
START_TEST(trap_35_a_thousand_small_indexes) {
    enum { MANY = 1000, SMALL = 10 };
    static sl_index *indexes[MANY];
    static sl_filter *filters[MANY];
    fault_allocator memory;
    fault_allocator_init(&memory, 0);
    sl_index_params of;
    indexes_params(&of, DIM, SL_METRIC_COSINE);
    of.allocator = &memory.allocator;
    const uint64_t allowed[] = {1, 4, 7};
    sl_filter_params params;
    sl_filter_params_init(&params);
    params.allow = allowed;
    params.allow_count = 3;
    params.allocator = &memory.allocator;
    size_t results = 0;
    for (size_t i = 0; i < MANY; i++) {
        indexes[i] = indexes_make(&of, x + i * DIM, SL_F32, SMALL, NULL, 1);
        ck_ok(sl_filter_create(indexes[i], &params, &filters[i]));
        sl_search_stats stats;
        const sl_search_params search = params_of(filters[i], SL_FILTER_AUTO);
        ck_ok(sl_index_search(indexes[i], queries, SL_F32, 1, 0, K, &search, found, scores, &stats));
        results += stats.results;
    }
    ck_assert_uint_eq(results, 3 * MANY);
    ck_assert_msg(memory.live_bytes / MANY < 65536, "%zu bytes each", memory.live_bytes / MANY);
    for (size_t i = 0; i < MANY; i++) {
        sl_filter_free(filters[i]);
        sl_index_free(indexes[i]);
    }
    ck_assert_uint_eq(memory.live_blocks, 0);
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("traps");
    tcase_add_checked_fixture(tests, rows_set_up, rows_tear_down);
    tcase_add_test(tests, trap_30_search_before_add);
    tcase_add_test(tests, trap_31_search_after_fork);
    tcase_add_test(tests, trap_32_a_filter_of_99_percent);
    tcase_add_test(tests, trap_33_a_filter_that_accepts_nothing);
    tcase_add_test(tests, trap_34_visited_of_64_million_nodes);
    tcase_add_test(tests, trap_35_a_thousand_small_indexes);
    return check_main("traps", &tests, 1);
}
