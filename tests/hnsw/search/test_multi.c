/* Searches of an index in which ids have several vectors: k different ids, each by its best vector. */
#include "base/random.h"
#include "tests/hnsw/search/allowed_rows.h"
#include "tests/support/check_main.h"
#include "tests/support/faults.h"
#include "tests/support/sanitized.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { EACH = 5, GROUPS = N / EACH };

static uint64_t ids[N]; /* of the rows */
static uint64_t keys[N];
static int gone[N]; /* deleted rows */

/* EACH rows per id, which lie anywhere. */
static void scatter_ids(void) {
    memset(gone, 0, sizeof gone);
    for (size_t row = 0; row < N; row++)
        ids[row] = STEP * (sl_random_at(5, row) % GROUPS);
}

/* The same, but the rows nearest to a query have one id. Returns how many. */
static size_t share_near(const float *query, float least) {
    size_t shared = 0;
    scatter_ids();
    for (size_t row = 0; row < N; row++) {
        if (!is_near(row, query, least)) continue;
        ids[row] = 3;
        shared++;
    }
    return shared;
}

static sl_index *make(const rows_kind *kind, const sl_allocator *allocator) {
    sl_index_params params;
    sl_add_params add;
    sl_index *index;
    indexes_params(&params, DIM, kind->metric);
    params.codes = kind->codes;
    params.refine = kind->refine;
    params.allocator = allocator;
    params.multi = 1;
    params.keys = 1;
    for (size_t row = 0; row < N; row++)
        keys[row] = row % 50;
    sl_add_params_init(&add);
    add.threads = 1;
    add.keys = keys;
    ck_ok(sl_index_create(&params, &index));
    ck_ok(sl_index_add(index, x, SL_F32, N, 0, ids, &add));
    return index;
}

static void allow_all(void) {
    memset(bits, 0xff, sizeof bits);
}

/* Allows ids by chance. */
static void allow_some(size_t every) {
    memset(bits, 0, sizeof bits);
    for (uint64_t id = 0; id < STEP * GROUPS; id++)
        if (sl_random_at(9, id) % every == 0) bits[id / 64] |= UINT64_C(1) << (id % 64);
}

static int has(const uint64_t *list, size_t count, uint64_t id) {
    for (size_t i = 0; i < count; i++)
        if (list[i] == id) return 1;
    return 0;
}

/* The true results of a query, best first: at most k different ids, at most `size` of one key (0: any number). */
static size_t true_ids(sl_metric metric, const float *query, size_t k, size_t size, uint64_t *out) {
    static uint64_t rows[N];
    size_t found = 0, of_key[50] = {0};
    indexes_exact(metric, DIM, (vector_rows){x, SL_F32, N}, (vector_rows){query, SL_F32, 1}, N, rows);
    for (size_t i = 0; i < N && found < k; i++) {
        const size_t row = rows[i];
        if (gone[row] || !is_allowed(ids[row]) || has(out, found, ids[row])) continue;
        if (size && of_key[keys[row]]++ >= size) continue;
        out[found++] = ids[row];
    }
    return found;
}

/* Checks that each row has different allowed ids, up to K. Returns the share of true ones. */
static double share_of(sl_metric metric, size_t asked, size_t size, const uint64_t *found) {
    uint64_t wanted[K];
    size_t hits = 0, sum = 0;
    for (size_t q = 0; q < asked; q++) {
        const uint64_t *mine = found + q * K;
        size_t count = true_ids(metric, queries + q * DIM, K, size, wanted);
        for (size_t i = 0; i < K; i++) {
            ck_assert_int_eq(mine[i] == SL_NO_ID, i >= count);
            if (i >= count) continue;
            ck_assert(is_allowed(mine[i]) && !has(mine, i, mine[i]));
            hits += (size_t)has(wanted, count, mine[i]);
        }
        sum += count;
    }
    return sum ? (double)hits / (double)sum : 1;
}

static double expect_ids(const sl_index *index, sl_metric metric, const sl_search_params *params, size_t asked) {
    static uint64_t found[Q * K], one[K];
    sl_searcher *searcher;
    ck_ok(sl_index_search(index, queries, SL_F32, asked, 0, K, params, found, NULL, NULL));
    ck_ok(sl_searcher_create(index, 1024, &searcher));
    ck_ok(sl_searcher_search(searcher, queries, SL_F32, K, params, one, NULL, NULL));
    ck_assert_mem_eq(one, found, sizeof one);
    sl_searcher_free(searcher);
    return share_of(metric, asked, params->group_size, found);
}

static int accept_bits_of(void *ctx, uint64_t id) {
    (void)ctx;
    return is_allowed(id);
}

/* ---------------------------------------------------------------------------------------------------------------
 * What is found
 * ------------------------------------------------------------------------------------------------------------- */

/* With filters, callbacks, partition scans and groups by key, ids come once. */
START_TEST(different_ids_of_every_kind) {
    if (SANITIZED && _i % 2) return; /* for its size */
    const rows_kind *kind = &kinds[_i];
    scatter_ids();
    sl_index *index = make(kind, NULL);
    sl_search_params params;
    const size_t everys[] = {1, 3, 100};
    for (size_t e = 0; e < 3; e++) {
        if (everys[e] == 1)
            allow_all();
        else
            allow_some(everys[e]);
        sl_filter *filter = filter_of_bits(index);
        for (int way = 0; way < 4; way++) {
            sl_search_params_init(&params);
            params.ef = 100;
            params.probes = 3;
            params.group_size = way == 3 ? 2 : 0;
            if (way == 1 || way == 3) params.filter = filter;
            if (way == 2) params.accept = accept_bits_of;
            if (everys[e] > 1 && way == 0) continue;
            double recall = expect_ids(index, kind->metric, &params, 12);
            ck_assert_msg(recall > 0.9, "one of %zu, way %d: recall %g", everys[e], way, recall);
        }
        sl_filter_free(filter);
    }
    sl_index_free(index);
}
END_TEST

/* Exact codes, all compared: the true ids with their best scores, down to fewer than K. */
START_TEST(all_compared_is_exact) {
    scatter_ids();
    sl_index *index = make(&(rows_kind){SL_METRIC_L2, SL_CODES_F32, SL_REFINE_NONE}, NULL);
    static uint64_t found[Q * K];
    static float scores[Q * K];
    const size_t everys[] = {10, 300, 2000};
    for (size_t e = 0; e < 3; e++) {
        sl_search_params params;
        sl_search_params_init(&params);
        allow_some(everys[e]);
        params.filter = filter_of_bits(index);
        params.strategy = SL_FILTER_EXACT;
        ck_assert_double_eq(expect_ids(index, SL_METRIC_L2, &params, 20), 1);
        ck_ok(sl_index_search(index, queries, SL_F32, Q, 0, K, &params, found, scores, NULL));
        for (size_t i = 0; i < Q * K && found[i] != SL_NO_ID; i++) {
            double best = INFINITY, score;
            for (size_t row = 0; row < N; row++) {
                if (ids[row] != found[i]) continue;
                ck_ok(sl_score(SL_METRIC_L2, SL_F32, x + row * DIM, queries + i / K * DIM, DIM, &score));
                if (score < best) best = score;
            }
            ck_assert_double_le(fabs((double)scores[i] - best), 1e-4 * (1 + best));
        }
        params.has_threshold = 1;
        params.threshold = (double)scores[2];
        ck_ok(sl_index_search(index, queries, SL_F32, 1, 0, K, &params, found, scores, NULL));
        ck_assert(found[2] == SL_NO_ID || found[3] == SL_NO_ID || scores[2] <= scores[3]);
        sl_filter_free((sl_filter *)(uintptr_t)params.filter);
    }
    sl_index_free(index);
}
END_TEST

/* Three ids have all vectors. Each comes with the best of its vectors that a plain search finds. With codes I4 a plain
 * search also re-ranks more of them. */
START_TEST(few_ids_miss_no_more_than_a_plain_search) {
    enum { IDS = 3, EF = 64 };
    const rows_kind *kind = &kinds[_i];
    uint64_t of_ids[IDS], of_rows[EF];
    float best[IDS], scores[EF];
    size_t worse = 0;
    for (size_t row = 0; row < N; row++)
        ids[row] = row % IDS;
    sl_index *index = make(kind, NULL), *plain = index_of(kind->metric, kind->codes, kind->refine, N);
    for (size_t q = 0; q < Q; q++) {
        const vector_rows one = {queries + q * DIM, SL_F32, 1};
        indexes_search(index, one, IDS, EF, of_ids, best);
        indexes_search(plain, one, EF, EF, of_rows, scores);
        for (size_t i = 0; i < IDS; i++) {
            size_t j = 0;
            while (j < EF && row_of(of_rows[j]) % IDS != of_ids[i])
                j++;
            ck_assert_uint_lt(of_ids[i], IDS);
            worse += j < EF && (kind->metric == SL_METRIC_L2 ? best[i] > scores[j] : best[i] < scores[j]);
        }
    }
    ck_assert_msg(worse <= (kind->codes == SL_CODES_I4 ? Q * IDS / 50 : 0), "%zu of %d are worse", worse, Q * IDS);
    sl_index_free(plain);
    sl_index_free(index);
}
END_TEST

/* All near vectors have one id. The others are found, and the work is bounded. */
START_TEST(one_id_of_thousands) {
    size_t shared = share_near(queries, 0.2f);
    ck_assert_uint_gt(shared, 100);
    sl_index *index = make(&(rows_kind){SL_METRIC_COSINE, SL_CODES_I4, SL_REFINE_NONE}, NULL);
    sl_search_params params;
    sl_search_stats stats;
    uint64_t found[K];
    allow_all();
    sl_search_params_init(&params);
    double recall = expect_ids(index, SL_METRIC_COSINE, &params, 1);
    ck_assert_msg(recall >= 0.8, "%zu have one id: recall %g", shared, recall);
    ck_ok(sl_index_search(index, queries, SL_F32, 1, 0, K, &params, found, NULL, &stats));
    ck_assert_uint_le(stats.evaluations, 2 * N);
    sl_index_free(index);
    for (size_t row = 0; row < N; row++)
        ids[row] = 3;
    index = make(&(rows_kind){SL_METRIC_COSINE, SL_CODES_I4, SL_REFINE_NONE}, NULL);
    ck_ok(sl_index_search(index, queries, SL_F32, 1, 0, K, &params, found, NULL, &stats));
    ck_assert_uint_eq(stats.results, 1);
    ck_assert(found[0] == 3 && found[1] == SL_NO_ID);
    sl_index_free(index);
}
END_TEST

/* An id takes one place of its key, however many vectors it has: ids behind it are found too. */
START_TEST(many_vectors_take_one_place_of_a_key) {
    enum { MANY = 20, IDS = 3, ALL = (IDS - 1) * MANY + 1 };
    sl_index_params params;
    sl_add_params add;
    sl_search_params search;
    sl_index *index;
    uint64_t found[IDS], mine[ALL];
    float rows[ALL * DIM], query[DIM] = {1};
    memset(rows, 0, sizeof rows);
    for (size_t i = 0; i < ALL; i++) {
        mine[i] = 10 + i / MANY;
        rows[i * DIM] = 1;
        rows[i * DIM + 1] = (float)(i / MANY) + (float)(i + 1) / 100;
        keys[i] = 7;
    }
    indexes_params(&params, DIM, SL_METRIC_COSINE);
    params.codes = _i ? SL_CODES_I4 : SL_CODES_I8;
    params.multi = params.keys = 1;
    sl_add_params_init(&add);
    add.keys = keys;
    ck_ok(sl_index_create(&params, &index));
    ck_ok(sl_index_add(index, rows, SL_F32, ALL, 0, mine, &add));
    sl_search_params_init(&search);
    for (search.group_size = 1; search.group_size <= IDS; search.group_size++) {
        ck_ok(sl_index_search(index, query, SL_F32, 1, 0, IDS, &search, found, NULL, NULL));
        for (size_t i = 0; i < IDS; i++)
            ck_assert_uint_eq(found[i], i < search.group_size ? 10 + i : SL_NO_ID);
    }
    sl_index_free(index);
}
END_TEST

/* Without repeated ids, an index that would allow them costs what another does, and finds the same. */
START_TEST(ids_of_their_own_cost_nothing) {
    static uint64_t plain[Q * K], several[Q * K];
    sl_search_params params;
    sl_search_stats one, other;
    for (size_t row = 0; row < N; row++)
        ids[row] = id_of(row);
    sl_index *index = make(&kinds[0], NULL);
    sl_index *single = index_of(kinds[0].metric, kinds[0].codes, kinds[0].refine, N);
    sl_search_params_init(&params);
    ck_ok(sl_index_search(single, queries, SL_F32, Q, 0, K, &params, plain, NULL, &one));
    ck_ok(sl_index_search(index, queries, SL_F32, Q, 0, K, &params, several, NULL, &other));
    ck_assert_mem_eq(plain, several, sizeof plain);
    ck_assert_uint_le(other.evaluations, one.evaluations + one.evaluations / 50);
    sl_index_free(single);
    sl_index_free(index);
}
END_TEST

/* A deleted id has no vector left, and an id that is added again has the new ones alone. */
START_TEST(deleted_and_added_again) {
    scatter_ids();
    sl_index *index = make(&kinds[1], NULL);
    sl_search_params params;
    sl_search_params_init(&params);
    params.ef = 100;
    allow_all();
    for (uint64_t id = 0; id < STEP * GROUPS; id += 2 * STEP) {
        int there;
        ck_ok(sl_index_contains(index, id, &there));
        if (!there) continue;
        ck_ok(sl_index_delete(index, &id, 1));
        for (size_t row = 0; row < N; row++)
            gone[row] |= ids[row] == id;
    }
    ck_assert(expect_ids(index, SL_METRIC_COSINE, &params, 12) > 0.9);
    for (size_t row = 0; row < N; row += 7) {
        if (!gone[row]) continue;
        ck_ok(indexes_add(index, x + row * DIM, SL_F32, 1, &ids[row]));
        gone[row] = 0;
    }
    ck_assert(expect_ids(index, SL_METRIC_COSINE, &params, 12) > 0.9);
    sl_index_free(index);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Other questions
 * ------------------------------------------------------------------------------------------------------------- */

/* Tuned with and without a given truth, searches reach the recall among different ids. */
START_TEST(tuned_for_a_recall) {
    if (SANITIZED && _i) return; /* for its size */
    static uint64_t given[Q * K];
    const double targets[] = {0.7, 0.9};
    const rows_kind *kind = &kinds[_i];
    scatter_ids();
    allow_all();
    sl_index *index = make(kind, NULL);
    for (size_t q = 0; q < Q; q++)
        ck_assert_uint_eq(true_ids(kind->metric, queries + q * DIM, K, 0, given + q * K), K);
    for (int with = 0; with < 2; with++) {
        sl_tune_params tune;
        sl_search_params params;
        sl_tune_report report = {.struct_size = sizeof report};
        sl_tune_params_init(&tune);
        tune.targets = targets;
        tune.target_count = 2;
        tune.threads = 1;
        ck_ok(sl_index_tune(index, queries, SL_F32, Q, 0, with ? given : NULL, K, &tune, &report));
        ck_assert_uint_eq(report.reached, 2);
        sl_search_params_init(&params);
        params.recall = 0.9;
        double recall = expect_ids(index, kind->metric, &params, Q);
        ck_assert_msg(recall > 0.87, "recall %g", recall);
    }
    ck_fails(sl_index_tune(index, queries, SL_F32, Q, 0, NULL, GROUPS + 1, NULL, NULL), SL_EINVAL, "ids; tune for");
    sl_index_free(index);
}
END_TEST

/* Pages give every id once, and the first ones what a search gives. */
START_TEST(an_iterator_gives_each_id_once) {
    static uint64_t given[N], page[2 * K];
    size_t count = 0, got, hits = 0;
    sl_iterator *iterator;
    share_near(queries, 0.3f);
    allow_all();
    sl_index *index = make(&kinds[_i], NULL);
    ck_ok(sl_iterator_create(index, queries, SL_F32, NULL, &iterator));
    do {
        ck_ok(sl_iterator_next(iterator, 2 * K, page, NULL, &got, NULL));
        for (size_t i = 0; i < got; i++) {
            ck_assert(!has(given, count, page[i]));
            given[count++] = page[i];
        }
        ck_assert(got == 2 * K || page[got] == SL_NO_ID);
    } while (got);
    ck_ok(sl_index_ids(index, NULL, 0, &got));
    ck_assert_uint_eq(count, got);
    uint64_t wanted[3 * K];
    ck_assert_uint_eq(true_ids(kinds[_i].metric, queries, 3 * K, 0, wanted), 3 * K);
    for (size_t i = 0; i < 3 * K; i++)
        hits += (size_t)has(wanted, 3 * K, given[i]);
    ck_assert_msg(hits >= 3 * K * 9 / 10, "%zu of %d", hits, 3 * K);
    sl_iterator_free(iterator);
    sl_index_free(index);
}
END_TEST

static int count_id(void *ctx, size_t query, uint64_t id, float score) {
    (void)query, (void)score;
    ((size_t *)ctx)[id / STEP]++;
    return 0;
}

/* An id comes once for each of its vectors within the radius. */
START_TEST(a_range_gives_vectors) {
    static size_t times[GROUPS + 1], wanted[GROUPS + 1];
    sl_range_params params;
    scatter_ids();
    sl_index *index = make(&kinds[3], NULL);
    memset(times, 0, sizeof times);
    memset(wanted, 0, sizeof wanted);
    sl_range_params_init(&params);
    params.exact = 1;
    ck_ok(sl_index_range(index, queries, SL_F32, 1, 0, INFINITY, &params, count_id, times, NULL));
    for (size_t row = 0; row < N; row++)
        wanted[ids[row] / STEP]++;
    ck_assert_mem_eq(times, wanted, sizeof times);
    sl_index_free(index);
}
END_TEST

/* Lists of every length, of ids that lie close together and far apart, reach all vectors of an id. */
START_TEST(lists_name_all_vectors) {
    static uint64_t list[GROUPS];
    scatter_ids();
    if (_i)
        for (size_t row = 0; row < N; row++)
            ids[row] = ids[row] * UINT64_C(0x9e3779b97f4a7c15) >> 1;
    sl_index *index = make(&kinds[1], NULL);
    const size_t lengths[] = {1, 20, 300, GROUPS};
    size_t all;
    ck_ok(sl_index_ids(index, list, GROUPS, &all));
    for (size_t l = 0; l < 4; l++) {
        const size_t length = lengths[l] < all ? lengths[l] : all;
        for (int excluded = 0; excluded < 2; excluded++) {
            sl_filter_params params;
            sl_filter *filter;
            size_t vectors = 0;
            sl_filter_params_init(&params);
            *(excluded ? &params.exclude : &params.allow) = list;
            *(excluded ? &params.exclude_count : &params.allow_count) = length;
            for (size_t row = 0; row < N; row++)
                vectors += (size_t)(has(list, length, ids[row]) != excluded);
            ck_ok(sl_filter_create(index, &params, &filter));
            ck_assert_uint_eq(sl_filter_count(filter), vectors);
            sl_filter_free(filter);
        }
    }
    sl_index_free(index);
}
END_TEST

START_TEST(bad_input_is_refused) {
    uint64_t found[K];
    scatter_ids();
    sl_index *index = make(&kinds[1], NULL);
    ck_fails(sl_index_search_ids(index, ids, 1, K, NULL, found, NULL, NULL), SL_EUNSUPPORTED, "sl_index_get_all");
    sl_index_free(index);
}
END_TEST

START_TEST(every_allocation_fails_once) {
    fault_allocator memory;
    fault_allocator_init(&memory, 0);
    share_near(queries, 0.2f);
    sl_index *index = make(&kinds[1], &memory.allocator);
    uint64_t found[K], pages[N];
    size_t fails = 0;
    for (int what = 0; what < 2; what++) {
        fails = 0;
        for (sl_status status = SL_ENOMEM; status != SL_OK; fails++) {
            sl_iterator *iterator = NULL;
            memory.calls = 0;
            memory.fail_at = fails + 1;
            if (what) {
                status = sl_iterator_create(index, queries, SL_F32, NULL, &iterator);
                if (status == SL_OK) status = sl_iterator_next(iterator, 500, pages, NULL, NULL, NULL);
                sl_iterator_free(iterator);
            } else {
                status = sl_index_search(index, queries, SL_F32, 1, 0, K, NULL, found, NULL, NULL);
            }
            ck_assert(status == SL_OK || status == SL_ENOMEM);
        }
        ck_assert_uint_ge(fails, 3);
    }
    memory.fail_at = 0;
    for (size_t i = 0; i < 500; i++)
        ck_assert(!has(pages, i, pages[i]));
    sl_index_free(index);
    ck_assert_uint_eq(memory.live_blocks, 0);
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("multi");
    tcase_add_checked_fixture(tests, rows_set_up, rows_tear_down);
    tcase_add_loop_test(tests, different_ids_of_every_kind, 0, KINDS);
    tcase_add_test(tests, all_compared_is_exact);
    tcase_add_loop_test(tests, few_ids_miss_no_more_than_a_plain_search, 0, KINDS);
    tcase_add_test(tests, one_id_of_thousands);
    tcase_add_loop_test(tests, many_vectors_take_one_place_of_a_key, 0, 2);
    tcase_add_test(tests, ids_of_their_own_cost_nothing);
    tcase_add_test(tests, deleted_and_added_again);
    tcase_add_loop_test(tests, tuned_for_a_recall, 0, 3);
    tcase_add_loop_test(tests, an_iterator_gives_each_id_once, 0, 3);
    tcase_add_test(tests, a_range_gives_vectors);
    tcase_add_loop_test(tests, lists_name_all_vectors, 0, 2);
    tcase_add_test(tests, bad_input_is_refused);
    tcase_add_test(tests, every_allocation_fails_once);
    return check_main("multi", (TCase *[]){tests}, 1);
}
