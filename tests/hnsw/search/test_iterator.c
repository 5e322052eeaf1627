/* Iterators: their pages together are one search, nothing comes twice, and the index may change meanwhile. */
#include "hnsw/graph/version.h"
#include "tests/hnsw/search/allowed_rows.h"
#include "tests/support/check_main.h"
#include "tests/support/faults.h"
#include "tests/support/sanitized.h"
#include "tests/support/scratch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PAGES = 10, ALL = PAGES * K };

static sl_index *make(sl_metric metric, sl_codes codes) {
    return index_of(metric, codes, SL_REFINE_NONE, N);
}

static sl_iterator *iterator_of(const sl_index *index, size_t q, const sl_search_params *params) {
    sl_iterator *iterator;
    ck_ok(sl_iterator_create(index, queries + q * DIM, SL_F32, params, &iterator));
    return iterator;
}

static void allow_all(void) {
    for (size_t row = 0; row < N; row++)
        allow(row, 1);
}

/* The results of an iterator: each id once. */
static uint8_t given[N];

/* Returns whether a result is allowed, new, and no better than the one before. Notes it. */
static int is_lawful(sl_metric metric, uint64_t id, const float *score, int first) {
    uint8_t *times = &given[row_of(id)];
    return is_allowed(id) && ++*times == 1 &&
           (first || (metric == SL_METRIC_L2 ? score[0] >= score[-1] : score[0] <= score[-1]));
}

/* Reads a page, checks its results and its fill. Returns their number. One assertion a page: Check writes each. */
static size_t take_page(sl_iterator *iterator, sl_metric metric, size_t k) {
    static uint64_t ids[N];
    static float scores[N];
    size_t got, lawful = 0;
    sl_search_stats stats;
    ck_ok(sl_iterator_next(iterator, k, ids, scores, &got, &stats));
    for (size_t i = 0; i < k; i++)
        if (i < got ? is_lawful(metric, ids[i], scores + i, i == 0) : ids[i] == SL_NO_ID && isnan(scores[i])) lawful++;
    ck_assert(got <= k && lawful == k && stats.results == got);
    return got;
}

/* Takes all there is, by pages of `k`. */
static size_t take_all(sl_iterator *iterator, sl_metric metric, size_t k) {
    size_t sum = 0, got;
    do
        sum += got = take_page(iterator, metric, k);
    while (got == k);
    ck_assert_uint_eq(take_page(iterator, metric, k), 0);
    return sum;
}

static size_t count_allowed(void) {
    size_t count = 0;
    for (size_t row = 0; row < N; row++)
        count += is_allowed(id_of(row)) != 0;
    return count;
}

/* ---------------------------------------------------------------------------------------------------------------
 * Pages and one search
 * ------------------------------------------------------------------------------------------------------------- */

/* Ten pages of 10 find what one search for 100 finds, with the same work. The first page is a search for 10. */
static void expect_one_search(const sl_index *index, sl_metric metric) {
    static uint64_t wanted[Q * ALL], whole[Q * ALL], pages[Q * ALL], first[Q * K];
    size_t searched = 0, paged = 0;
    sl_search_params params;
    sl_search_stats stats;
    sl_search_params_init(&params);
    indexes_exact(metric, DIM, (vector_rows){x, SL_F32, N}, (vector_rows){queries, SL_F32, Q}, ALL, wanted);
    for (size_t i = 0; i < Q * ALL; i++)
        wanted[i] = id_of(wanted[i]);
    ck_ok(sl_index_search(index, queries, SL_F32, Q, 0, ALL, &params, whole, NULL, &stats));
    searched = stats.evaluations;
    ck_ok(sl_index_search(index, queries, SL_F32, Q, 0, K, &params, first, NULL, NULL));
    for (size_t q = 0; q < Q; q++) {
        sl_iterator *iterator = iterator_of(index, q, &params);
        for (size_t page = 0; page < PAGES; page++) {
            ck_ok(sl_iterator_next(iterator, K, pages + q * ALL + page * K, NULL, NULL, &stats));
            paged += stats.evaluations;
        }
        sl_iterator_free(iterator);
        ck_assert_mem_eq(pages + q * ALL, first + q * K, K * sizeof *first);
    }
    double recall = indexes_recall(pages, wanted, Q, ALL), one = indexes_recall(whole, wanted, Q, ALL);
    ck_assert_msg(recall > one - 0.01, "recall %g by pages, %g by one search", recall, one);
    ck_assert_msg(paged < searched + searched / 20, "%zu evaluations by pages, %zu by one search", paged, searched);
}

/* Each page reports its own work; the pages together report the work of one search for all of them. */
START_TEST(pages_tell_of_their_own_work) {
    sl_index *index = make(SL_METRIC_COSINE, SL_CODES_I4);
    static uint64_t ids[ALL];
    for (size_t q = 0; q < 5; q++) {
        sl_search_stats whole, first, page, sum = {0};
        ck_ok(sl_index_search(index, queries + q * DIM, SL_F32, 1, 0, ALL, NULL, ids, NULL, &whole));
        sl_iterator *iterator = iterator_of(index, q, NULL);
        for (size_t i = 0; i < PAGES; i++) {
            ck_ok(sl_iterator_next(iterator, K, ids, NULL, NULL, &page));
            if (i == 0) first = page;
            sum.evaluations += page.evaluations;
            sum.expansions += page.expansions;
            sum.results += page.results;
        }
        ck_assert_uint_gt(first.expansions, 0);
        ck_assert_uint_eq(sum.results, ALL);
        ck_assert_uint_le(sum.evaluations, whole.evaluations + whole.evaluations / 5);
        ck_assert_uint_ge(sum.expansions, whole.expansions - whole.expansions / 5);
        ck_assert_uint_le(sum.expansions, whole.expansions + whole.expansions / 5);
        /* A page that is had already takes no work. */
        sl_iterator_free(iterator);
        iterator = iterator_of(index, q, NULL);
        ck_ok(sl_iterator_next(iterator, ALL, ids, NULL, NULL, &page));
        ck_ok(sl_iterator_next(iterator, 1, ids, NULL, NULL, &page));
        ck_assert_uint_lt(page.expansions, first.expansions);
        sl_iterator_free(iterator);
    }
    sl_index_free(index);
}
END_TEST

/* Settings of a search count. */
START_TEST(ef_makes_pages_better) {
    sl_index *index = make(SL_METRIC_COSINE, SL_CODES_I4);
    size_t work[2];
    uint64_t ids[K];
    for (size_t i = 0; i < 2; i++) {
        sl_search_params params;
        sl_search_stats stats;
        sl_search_params_init(&params);
        params.ef = i ? 400 : 20;
        sl_iterator *iterator = iterator_of(index, 0, &params);
        ck_ok(sl_iterator_next(iterator, K, ids, NULL, NULL, &stats));
        work[i] = stats.evaluations;
        sl_iterator_free(iterator);
    }
    ck_assert_uint_gt(work[1], 2 * work[0]);
    sl_index_free(index);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Everything once
 * ------------------------------------------------------------------------------------------------------------- */

static const size_t shares[] = {1, 2, 10, 100, 1000, 0};
enum { SHARES = sizeof shares / sizeof *shares };

/* Whatever is allowed and deleted, and by pages of any size. */
static void expect_all_once(sl_index *index, sl_metric metric) {
    const size_t pages[] = {1000, 7, N, 33, 10, 1};
    for (size_t s = 0; s < SHARES; s++) {
        const size_t count = allow_every(shares[s], 7);
        sl_filter *filter = filter_of_bits(index);
        for (int strategy = SL_FILTER_AUTO; strategy <= SL_FILTER_WALK; strategy++) {
            sl_search_params params;
            sl_search_params_init(&params);
            params.filter = filter;
            params.strategy = (sl_filter_strategy)strategy;
            memset(given, 0, sizeof given);
            sl_iterator *iterator = iterator_of(index, s, &params);
            ck_assert_uint_eq(take_all(iterator, metric, pages[s]), count);
            sl_iterator_free(iterator);
        }
        sl_filter_free(filter);
    }
    for (size_t row = 0; row < N; row++) {
        const uint64_t id = id_of(row);
        if (row % 5 == 0) ck_ok(sl_index_delete(index, &id, 1));
        allow(row, row % 5 != 0);
    }
    memset(given, 0, sizeof given);
    sl_iterator *iterator = iterator_of(index, 0, NULL);
    ck_assert_uint_eq(take_all(iterator, metric, 100), count_allowed());
    sl_iterator_free(iterator);
}

/* Under each metric, and over codes that are ranked anew, as walked, and by whole vectors. */
START_TEST(pages_of_every_kind) {
    if (!stands_for_others(_i)) return;
    const sl_metric metric = (sl_metric)(_i % 3);
    sl_index *index = make(metric, (sl_codes)(_i / 3));
    expect_one_search(index, metric);
    expect_all_once(index, metric);
    sl_index_free(index);
}
END_TEST

/* The k best of all pages are those of an exact search, where all is compared. */
START_TEST(a_selective_filter_is_exact) {
    sl_index *index = make(SL_METRIC_L2, SL_CODES_F32);
    static uint64_t wanted[Q * K], ids[K];
    const size_t count = allow_every(50, 7);
    sl_filter *filter = filter_of_bits(index);
    truth(SL_METRIC_L2, wanted);
    sl_search_params params;
    sl_search_params_init(&params);
    params.filter = filter;
    for (size_t q = 0; q < Q; q++) {
        sl_search_stats stats;
        sl_iterator *iterator = iterator_of(index, q, &params);
        ck_ok(sl_iterator_next(iterator, K, ids, NULL, NULL, &stats));
        ck_assert_mem_eq(ids, wanted + q * K, sizeof ids);
        ck_assert_uint_lt(stats.evaluations, count + 1000);
        sl_iterator_free(iterator);
    }
    sl_filter_free(filter);
    sl_index_free(index);
}
END_TEST

typedef struct asked {
    uint8_t times[N];
    size_t sum;
} asked;

static int count_asked(void *ctx, uint64_t id) {
    asked *of = ctx;
    of->times[row_of(id)]++;
    of->sum++;
    return is_allowed(id);
}

/* About an id at most once, and about few where pages are few. */
START_TEST(callbacks_are_asked_once) {
    sl_index *index = make(SL_METRIC_COSINE, SL_CODES_I8);
    const size_t count = allow_every(3, 7);
    static asked of;
    sl_search_params params;
    sl_search_params_init(&params);
    params.accept = count_asked;
    params.accept_ctx = &of;
    memset(given, 0, sizeof given);
    memset(&of, 0, sizeof of);
    sl_iterator *iterator = iterator_of(index, 0, &params);
    ck_assert_uint_eq(take_page(iterator, SL_METRIC_COSINE, K), K);
    ck_assert_uint_lt(of.sum, 600);
    ck_assert_uint_eq(take_all(iterator, SL_METRIC_COSINE, K), count - K);
    for (size_t row = 0; row < N; row++)
        ck_assert_uint_eq(of.times[row], 1);
    sl_iterator_free(iterator);
    /* A bitmap says the same. */
    sl_search_params_init(&params);
    params.accept_bits = bits;
    params.accept_bits_count = STEP * N;
    memset(given, 0, sizeof given);
    iterator = iterator_of(index, 0, &params);
    ck_assert_uint_eq(take_all(iterator, SL_METRIC_COSINE, 100), count);
    sl_iterator_free(iterator);
    sl_index_free(index);
}
END_TEST

/* Vectors that are all the same, and fewer vectors than a page has. */
START_TEST(copies_and_few) {
    static float same[200 * DIM];
    for (size_t i = 0; i < 200 * DIM; i++)
        same[i] = x[i % DIM];
    sl_index_params of;
    indexes_params(&of, DIM, SL_METRIC_COSINE);
    for (size_t n = 0; n <= 200; n = n ? n * 200 : 1) {
        sl_index *index = indexes_make(&of, same, SL_F32, n, NULL, 1);
        sl_iterator *iterator = iterator_of(index, 0, NULL);
        uint64_t ids[7];
        uint8_t seen[200] = {0};
        size_t got, sum = 0;
        do {
            ck_ok(sl_iterator_next(iterator, 7, ids, NULL, &got, NULL));
            for (size_t i = 0; i < got; i++)
                ck_assert_uint_eq(seen[ids[i]]++, 0);
            sum += got;
        } while (got);
        ck_assert_uint_eq(sum, n);
        sl_iterator_free(iterator);
        sl_index_free(index);
    }
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * An index that changes
 * ------------------------------------------------------------------------------------------------------------- */

/* Vectors deleted between two pages don't come, wherever the iterator holds them. */
/* A page has the results that its evaluations found. Later pages go on to the last vector. */
START_TEST(visits_are_bounded) {
    enum { MOST = 200, SPARE = 500 };
    sl_index *index = make(SL_METRIC_COSINE, SL_CODES_I4);
    sl_search_params params;
    sl_search_stats stats;
    static uint64_t ids[200];
    size_t found = 0, cut = 0;
    sl_search_params_init(&params);
    params.max_visits = MOST;
    memset(given, 0, sizeof given);
    sl_iterator *iterator = iterator_of(index, 0, &params);
    for (size_t got = 200; got == 200 || stats.cut;) {
        ck_ok(sl_iterator_next(iterator, 200, ids, NULL, &got, &stats));
        cut += stats.cut;
        for (size_t i = 0; i < got; i++)
            ck_assert_uint_eq(++given[row_of(ids[i])], 1);
        found += got;
        ck_assert_uint_le(stats.evaluations, MOST + SPARE);
    }
    ck_assert_uint_eq(found, N);
    ck_assert_uint_gt(cut, 3);
    sl_iterator_free(iterator);
    sl_index_free(index);
}
END_TEST

START_TEST(deleted_vectors_never_come) {
    sl_index *index = make(SL_METRIC_COSINE, SL_CODES_I4);
    allow_all();
    memset(given, 0, sizeof given);
    sl_iterator *iterator = iterator_of(index, 0, NULL);
    size_t sum = take_page(iterator, SL_METRIC_COSINE, K), deleted = 0;
    static uint64_t near[ALL];
    ck_ok(sl_index_search(index, queries, SL_F32, 1, 0, ALL, NULL, near, NULL, NULL));
    for (size_t i = 0; i < ALL; i += 2) {
        if (given[row_of(near[i])]) continue;
        ck_ok(sl_index_delete(index, &near[i], 1));
        allow(row_of(near[i]), 0);
        deleted++;
    }
    ck_assert_uint_gt(deleted, ALL / 3);
    sum += take_page(iterator, SL_METRIC_COSINE, K);
    sum += take_all(iterator, SL_METRIC_COSINE, 500);
    ck_assert_uint_eq(sum + deleted, N);
    sl_iterator_free(iterator);
    sl_index_free(index);
}
END_TEST

START_TEST(changes_are_told) {
    const size_t first = N - 400;
    static uint64_t more[N], ids[K];
    for (size_t i = 0; i < N; i++)
        more[i] = id_of(i);
    sl_index *index = index_of(SL_METRIC_COSINE, SL_CODES_I8, SL_REFINE_NONE, first);
    sl_iterator *iterator = iterator_of(index, 0, NULL);
    ck_ok(sl_iterator_next(iterator, K, ids, NULL, NULL, NULL));
    ck_ok(sl_index_add(index, x + first * DIM, SL_F32, N - first, 0, more + first, NULL));
    /* It goes on over the vectors that it began with. */
    size_t got, all = K;
    do {
        ck_ok(sl_iterator_next(iterator, K, ids, NULL, &got, NULL));
        for (size_t i = 0; i < got; i++)
            for (size_t j = first; j < N; j++)
                ck_assert_uint_ne(ids[i], id_of(j));
        all += got;
    } while (got);
    ck_assert_uint_eq(all, first);
    sl_iterator_free(iterator);
    iterator = iterator_of(index, 0, NULL);
    ck_ok(sl_iterator_next(iterator, K, ids, NULL, NULL, NULL));
    index->graph.numbering++;
    indexes_publish(index);
    ck_fails(sl_iterator_next(iterator, K, ids, NULL, NULL, NULL), SL_EINVAL, "renumbered");
    ck_fails(sl_iterator_next(iterator, K, ids, NULL, NULL, NULL), SL_EINVAL, "make another");
    sl_iterator_free(iterator);
    sl_index_free(index);
}
END_TEST

/* A handle reads a file that another writes: the iterator goes on with the index it began with. */
START_TEST(a_writer_elsewhere_disturbs_nothing) {
    const size_t first = N - 400;
    static uint64_t more[N];
    scratch place;
    scratch_open(&place);
    sl_index *index = index_of(SL_METRIC_COSINE, SL_CODES_I8, SL_REFINE_NONE, first), *writer;
    sl_save_params save;
    sl_open_params open;
    indexes_save_params(&save);
    save.room = N;
    ck_ok(sl_index_save(index, place.path, &save));
    sl_index_free(index);
    sl_open_params_init(&open);
    open.writable = 1;
    ck_ok(sl_index_open(place.path, &open, &writer));
    index = indexes_open(place.path, SL_PLACE_MAP);
    allow_all();
    memset(given, 0, sizeof given);
    sl_iterator *iterator = iterator_of(index, 0, NULL);
    ck_assert_uint_eq(take_page(iterator, SL_METRIC_COSINE, K), K);
    for (size_t i = first; i < N; i++)
        more[i] = id_of(i);
    ck_ok(sl_index_add(writer, x + first * DIM, SL_F32, N - first, 0, more + first, NULL));
    ck_ok(sl_index_sync(writer));
    ck_assert_uint_eq(take_all(iterator, SL_METRIC_COSINE, 100), first - K);
    sl_iterator_free(iterator);
    memset(given, 0, sizeof given);
    iterator = iterator_of(index, 0, NULL);
    ck_assert_uint_eq(take_all(iterator, SL_METRIC_COSINE, 100), N);
    sl_iterator_free(iterator);
    sl_index_free(index);
    sl_index_free(writer);
    scratch_close(&place);
}
END_TEST

START_TEST(bad_input_is_refused) {
    sl_index *index = index_of(SL_METRIC_COSINE, SL_CODES_I8, SL_REFINE_NONE, 100),
             *other = index_of(SL_METRIC_COSINE, SL_CODES_I8, SL_REFINE_NONE, 100);
    sl_iterator *iterator;
    sl_search_params params;
    uint64_t ids[K];
    float bad[DIM] = {NAN};
    ck_fails(sl_iterator_create(NULL, queries, SL_F32, NULL, &iterator), SL_EINVAL, "index");
    ck_assert_ptr_null(iterator);
    ck_fails(sl_iterator_create(index, NULL, SL_F32, NULL, &iterator), SL_EINVAL, "query");
    ck_fails(sl_iterator_create(index, queries, SL_F32, NULL, NULL), SL_EINVAL, "out is NULL");
    ck_fails(sl_iterator_create(index, queries, SL_I8, NULL, &iterator), SL_ETYPE, "");
    ck_fails(sl_iterator_create(index, bad, SL_F32, NULL, &iterator), SL_EVALUE, "");
    ck_assert_ptr_null(iterator);
    sl_search_params_init(&params);
    params.recall = 0.9;
    ck_fails(sl_iterator_create(index, queries, SL_F32, &params, &iterator), SL_EINVAL, "give ef");
    sl_search_params_init(&params);
    params.ef = 0;
    ck_fails(sl_iterator_create(index, queries, SL_F32, &params, &iterator), SL_EINVAL, "ef is 0");
    sl_search_params_init(&params);
    params.filter = filter_of_bits(other);
    ck_fails(sl_iterator_create(index, queries, SL_F32, &params, &iterator), SL_EINVAL, "another index");
    sl_filter_free((sl_filter *)(uintptr_t)params.filter);
    iterator = iterator_of(index, 0, NULL);
    ck_fails(sl_iterator_next(NULL, K, ids, NULL, NULL, NULL), SL_EINVAL, "iterator");
    ck_fails(sl_iterator_next(iterator, K, NULL, NULL, NULL, NULL), SL_EINVAL, "ids is NULL");
    ck_fails(sl_iterator_next(iterator, 0, ids, NULL, NULL, NULL), SL_EINVAL, "k is 0");
    ck_fails(sl_iterator_next(iterator, SL_MAX_EF + 1, ids, NULL, NULL, NULL), SL_EINVAL, "k is");
    ck_ok(sl_iterator_next(iterator, K, ids, NULL, NULL, NULL));
    sl_iterator_free(iterator);
    sl_iterator_free(NULL);
    sl_index_free(index);
    sl_index_free(other);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Memory and threads
 * ------------------------------------------------------------------------------------------------------------- */

/* A call that runs out of memory may be repeated, and nothing is lost. */
START_TEST(every_allocation_fails_once) {
    fault_allocator memory;
    fault_allocator_init(&memory, 0);
    sl_index_params of;
    indexes_params(&of, DIM, SL_METRIC_COSINE);
    of.allocator = &memory.allocator;
    static uint64_t ids[N];
    for (size_t i = 0; i < N; i++)
        ids[i] = id_of(i);
    sl_index *index = indexes_make(&of, x, SL_F32, N, ids, 1);
    sl_iterator *iterator = NULL;
    size_t fails = 0, sum = 0, got = 1;
    for (sl_status status = SL_ENOMEM; status != SL_OK; fails++) {
        memory.calls = 0;
        memory.fail_at = fails + 1;
        status = sl_iterator_create(index, queries, SL_F32, NULL, &iterator);
        ck_assert(status == SL_OK || (status == SL_ENOMEM && !iterator));
    }
    ck_assert_uint_ge(fails, 4);
    allow_all();
    memset(given, 0, sizeof given);
    for (fails = 0; got; sum += got) {
        memory.calls = 0;
        memory.fail_at = 1;
        for (; sl_iterator_next(iterator, 70, ids, NULL, &got, NULL) != SL_OK; fails++, memory.calls = 0)
            memory.fail_at++;
        memory.fail_at = 0;
        for (size_t i = 0; i < got; i++)
            given[row_of(ids[i])]++;
    }
    for (size_t row = 0; row < N; row++)
        ck_assert_uint_eq(given[row], 1);
    ck_assert_uint_ge(fails, 6);
    ck_assert_uint_eq(sum, N);
    sl_iterator_free(iterator);
    sl_index_free(index);
    ck_assert_uint_eq(memory.live_blocks, 0);
}
END_TEST

/* Iterators side by side give what each gives alone, beside searches. */
START_TEST(iterators_side_by_side) {
    sl_index *index = make(SL_METRIC_COSINE, SL_CODES_I4);
    static uint64_t alone[Q * ALL], together[Q * ALL];
#pragma omp parallel for num_threads(4) schedule(dynamic)
    for (size_t job = 0; job < Q; job++) {
        sl_iterator *iterator;
        uint64_t ids[K];
        sl_status status = sl_iterator_create(index, queries + job * DIM, SL_F32, NULL, &iterator);
        for (size_t page = 0; page < PAGES && status == SL_OK; page++) {
            status = sl_iterator_next(iterator, K, together + job * ALL + page * K, NULL, NULL, NULL);
            if (status == SL_OK)
                status = sl_index_search(index, queries + job * DIM, SL_F32, 1, 0, K, NULL, ids, NULL, NULL);
        }
        sl_iterator_free(iterator);
    }
    for (size_t q = 0; q < Q; q++) {
        sl_iterator *iterator = iterator_of(index, q, NULL);
        for (size_t page = 0; page < PAGES; page++)
            ck_ok(sl_iterator_next(iterator, K, alone + q * ALL + page * K, NULL, NULL, NULL));
        sl_iterator_free(iterator);
    }
    ck_assert_mem_eq(alone, together, sizeof alone);
    sl_index_free(index);
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("iterator"), *threads = tcase_create("threads");
    tcase_add_checked_fixture(tests, rows_set_up, rows_tear_down);
    tcase_add_checked_fixture(threads, rows_set_up, rows_tear_down);
    tcase_add_test(tests, ef_makes_pages_better);
    tcase_add_test(tests, pages_tell_of_their_own_work);
    tcase_add_loop_test(tests, pages_of_every_kind, 0, 12);
    tcase_add_test(tests, a_selective_filter_is_exact);
    tcase_add_test(tests, callbacks_are_asked_once);
    tcase_add_test(tests, copies_and_few);
    tcase_add_test(tests, visits_are_bounded);
    tcase_add_test(tests, deleted_vectors_never_come);
    tcase_add_test(tests, changes_are_told);
    tcase_add_test(tests, a_writer_elsewhere_disturbs_nothing);
    tcase_add_test(tests, bad_input_is_refused);
    tcase_add_test(tests, every_allocation_fails_once);
    tcase_add_test(threads, iterators_side_by_side);
    return check_main("iterator", (TCase *[]){tests, threads}, 2);
}
