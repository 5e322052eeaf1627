/* Deleting: the remaining vectors are found as if the others had never been there, however many are deleted. The
 * deleted stay gone through adding, cancelling, numbering anew, tuning and batches. */
#include "base/random.h"
#include "hnsw/graph/entry.h"
#include "hnsw/graph/partition.h"
#include "hnsw/graph/publish.h"
#include "hnsw/graph/tombstones.h"
#include "tests/support/check_main.h"
#include "tests/support/clusters.h"
#include "tests/support/indexes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N = 6000, DIM = 32, Q = 60, K = 10, STEP = 3, LATER = 7000 };

static float *x; /* N vectors, Q queries behind them, and LATER more */
static const float *queries, *later;
static char gone[N];
static uint64_t found[Q * K], wanted[Q * K];
static float scores[Q * K];

/* Ids are neither nodes nor rows. */
static uint64_t id_of(size_t row) {
    return STEP * (N - 1 - row);
}

static size_t row_of(uint64_t id) {
    return N - 1 - id / STEP;
}

static void set_up(void) {
    x = clusters_make(N + Q + LATER, DIM, 0.3, 21);
    queries = x + N * DIM;
    later = queries + Q * DIM;
    memset(gone, 0, sizeof gone);
}

static void tear_down(void) {
    free(x);
}

static sl_index *make(sl_metric metric, sl_codes codes, sl_refine refine) {
    static uint64_t ids[N];
    for (size_t i = 0; i < N; i++)
        ids[i] = id_of(i);
    sl_index_params params;
    indexes_params(&params, DIM, metric);
    params.codes = codes;
    params.refine = refine;
    sl_index *index = indexes_make(&params, x, SL_F32, N, ids, 1);
    index->keeps_deleted = 1;
    return index;
}

static sl_index *make_any(void) {
    return make(SL_METRIC_COSINE, SL_CODES_I8, SL_REFINE_F32);
}

/* Deletes these rows of those there are in one call. */
static void delete_rows(sl_index *index, const size_t *rows, size_t count) {
    static uint64_t ids[N];
    for (size_t i = 0; i < count; i++) {
        ids[i] = id_of(rows[i]);
        gone[rows[i]] = 1;
    }
    ck_ok(sl_index_delete(index, ids, count));
}

/* Leaves one row in `every`, or none where it is 0. Returns how many are left. */
static size_t leave_every(sl_index *index, size_t every) {
    static size_t rows[N];
    size_t count = 0, left = 0;
    for (size_t row = 0; row < N; row++)
        if (every && sl_random_at(5, row) % every == 0)
            left += !gone[row];
        else if (!gone[row])
            rows[count++] = row;
    delete_rows(index, rows, count);
    ck_assert_uint_eq(sl_index_size(index), left);
    ck_assert_uint_eq(indexes_stats(index).n, left);
    ck_assert_uint_eq(indexes_stats(index).deleted, N - left);
    return left;
}

/* Deletes the `count` nearest rows of one query. */
static void delete_near(sl_index *index, sl_metric metric, size_t query, size_t count) {
    static uint64_t ids[N];
    static size_t rows[N];
    size_t some = 0;
    indexes_exact(metric, DIM, (vector_rows){x, SL_F32, N}, (vector_rows){queries + query * DIM, SL_F32, 1}, count,
                  ids);
    for (size_t i = 0; i < count; i++)
        if (!gone[ids[i]]) rows[some++] = (size_t)ids[i];
    delete_rows(index, rows, some);
}

/* The nearest K of each query among the rows that are left, filled up with SL_NO_ID. */
static void truth(sl_metric metric) {
    float *kept = malloc(N * DIM * sizeof *kept);
    size_t *rows = malloc(N * sizeof *rows), count = 0;
    for (size_t row = 0; row < N; row++) {
        if (gone[row]) continue;
        memcpy(kept + count * DIM, x + row * DIM, DIM * sizeof *kept);
        rows[count++] = row;
    }
    indexes_exact(metric, DIM, (vector_rows){kept, SL_F32, count}, (vector_rows){queries, SL_F32, Q}, K, wanted);
    for (size_t i = 0; i < Q * K; i++)
        if (wanted[i] != SL_NO_ID) wanted[i] = id_of(rows[wanted[i]]);
    free(kept);
    free(rows);
}

/* No result is deleted or there twice, and there are K of them where so many are left. */
static void expect_lawful(const sl_index *index) {
    size_t each = sl_index_size(index) < K ? sl_index_size(index) : K;
    for (size_t i = 0; i < Q * K; i++) {
        ck_assert_int_eq(isnan(scores[i]) != 0, found[i] == SL_NO_ID);
        ck_assert_msg((i % K < each) == (found[i] != SL_NO_ID), "query %zu, result %zu of %zu", i / K, i % K, each);
        if (found[i] == SL_NO_ID) continue;
        ck_assert(!gone[row_of(found[i])]);
        for (size_t j = i / K * K; j < i; j++)
            ck_assert_uint_ne(found[j], found[i]);
    }
}

/* By a batch, and by a searcher that is made for no more than it is asked for. */
static void search(sl_index *index, int batch, const sl_search_params *params, sl_search_stats *stats) {
    if (batch) {
        ck_ok(sl_index_search(index, queries, SL_F32, Q, 0, K, params, found, scores, stats));
        return;
    }
    sl_searcher *searcher;
    sl_search_stats one;
    *stats = (sl_search_stats){0};
    ck_ok(sl_searcher_create(index, params->ef > K ? params->ef : K, &searcher));
    for (size_t q = 0; q < Q; q++) {
        ck_ok(sl_searcher_search(searcher, queries + q * DIM, SL_F32, K, params, found + q * K, scores + q * K, &one));
        stats->results += one.results;
        stats->evaluations += one.evaluations;
        stats->expansions += one.expansions;
    }
    sl_searcher_free(searcher);
}

static sl_search_params params_of(size_t ef) {
    sl_search_params params;
    sl_search_params_init(&params);
    params.ef = ef;
    return params;
}

/* ---------------------------------------------------------------------------------------------------------------
 * What is found
 * ------------------------------------------------------------------------------------------------------------- */

static const struct kind {
    sl_metric metric;
    sl_codes codes;
    sl_refine refine;
} kinds[] = {
    {SL_METRIC_IP, SL_CODES_I8, SL_REFINE_F32},     {SL_METRIC_COSINE, SL_CODES_I8, SL_REFINE_F32},
    {SL_METRIC_L2, SL_CODES_I8, SL_REFINE_F32},     {SL_METRIC_L2, SL_CODES_F32, SL_REFINE_NONE},
    {SL_METRIC_COSINE, SL_CODES_I4, SL_REFINE_F32}, {SL_METRIC_L2, SL_CODES_I8, SL_REFINE_NONE},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* From half of them to all of them, in one index, step by step. The truth is that of the vectors. Codes alone put the
 * vectors in a slightly other order. */
START_TEST(what_is_left_is_found) {
    static const size_t shares[] = {2, 10, 100, 1000, 0};
    const struct kind *kind = &kinds[_i];
    sl_index *index = make(kind->metric, kind->codes, kind->refine);
    for (size_t s = 0; s < sizeof shares / sizeof *shares; s++) {
        size_t left = leave_every(index, shares[s]);
        truth(kind->metric);
        for (int batch = 0; batch < 2; batch++) {
            sl_search_params params = params_of(100);
            sl_search_stats stats;
            search(index, batch, &params, &stats);
            expect_lawful(index);
            ck_assert_uint_eq(stats.results, Q * (left < K ? left : K));
            double recall = indexes_recall(found, wanted, Q, K);
            ck_assert_msg(recall >= (kind->refine || kind->codes == SL_CODES_F32 ? 0.98 : 0.95),
                          "of %zu left %.4f are found", left, recall);
            /* Fewer than a walk among all of them would meet. */
            if (left && left < N / 50) ck_assert_uint_le(stats.evaluations, Q * (left + 100));
        }
    }
    sl_index_free(index);
}
END_TEST

/* An ef as deep as the index leaves nothing to luck. */
START_TEST(all_that_is_left_is_found) {
    sl_index *index = make_any();
    leave_every(index, 3);
    truth(SL_METRIC_COSINE);
    sl_search_params params = params_of(N);
    sl_search_stats stats;
    params.rerank = N;
    search(index, 0, &params, &stats);
    ck_assert_mem_eq(found, wanted, sizeof wanted);
    sl_index_free(index);
}
END_TEST

/* A query in whose neighbourhood nothing is left, however far that reaches. */
START_TEST(deleted_neighbourhoods) {
    static const size_t reach[] = {K, 300, 3000};
    sl_index *index = make_any();
    for (size_t r = 0; r < sizeof reach / sizeof *reach; r++) {
        delete_near(index, SL_METRIC_COSINE, 0, reach[r]);
        truth(SL_METRIC_COSINE);
        for (int batch = 0; batch < 2; batch++) {
            sl_search_params params = params_of(2 * K);
            sl_search_stats stats;
            search(index, batch, &params, &stats);
            expect_lawful(index);
            ck_assert_msg(indexes_recall(found, wanted, 1, K) >= 0.8, "%zu deleted: %.2f", reach[r],
                          indexes_recall(found, wanted, 1, K));
        }
    }
    sl_index_free(index);
}
END_TEST

/* While little is deleted walks go on ending early, but not where what they go by is deleted. */
START_TEST(walks_that_stop) {
    enum { HURT = 4, GONE = 23 }; /* all that a walk goes by, and more */
    sl_index *index = make_any();
    sl_search_params params = params_of(400);
    sl_search_stats with, alone;
    for (size_t q = 0; q < HURT; q++)
        delete_near(index, SL_METRIC_COSINE, q, GONE);
    ck_assert_uint_le(indexes_stats(index).deleted, N / 64);
    truth(SL_METRIC_COSINE);
    search(index, 1, &params, &alone);
    params.stop = 0.02;
    search(index, 1, &params, &with);
    expect_lawful(index);
    ck_assert_uint_lt(with.evaluations, alone.evaluations * 9 / 10);
    ck_assert_double_ge(indexes_recall(found, wanted, HURT, K), 0.97);
    /* From then on they do not. */
    leave_every(index, 2);
    search(index, 1, &params, &with);
    params.stop = 0;
    search(index, 1, &params, &alone);
    ck_assert_uint_eq(with.evaluations, alone.evaluations);
    sl_index_free(index);
}
END_TEST

static int accept_none(void *ctx, uint64_t id) {
    ck_assert(!gone[row_of(id)]);
    ++*(size_t *)ctx;
    return 0;
}

static int accept_even(void *ctx, uint64_t id) {
    ck_assert(!gone[row_of(id)]);
    ++*(size_t *)ctx;
    return id / STEP % 2 == 0;
}

/* Searches for as many as their beam holds. A twentieth is deleted by chance, and nearly all searches still walk once.
 */
START_TEST(full_beams_are_walked_once) {
    enum { MANY = 200 };
    static uint64_t ids[Q * MANY];
    static size_t rows[N];
    size_t count = 0, work[2];
    sl_index *index = make_any();
    sl_search_params params;
    sl_search_params_init(&params);
    params.ef = MANY;
    params.threads = 1;
    for (size_t row = 0; row < N; row++)
        if (sl_random_at(6, row) % 20 == 0) rows[count++] = row;
    for (int deleted = 0; deleted < 2; deleted++) {
        sl_search_stats stats;
        ck_ok(sl_index_search(index, queries, SL_F32, Q, 0, MANY, &params, ids, NULL, &stats));
        ck_assert_uint_eq(stats.results, Q * MANY);
        work[deleted] = stats.evaluations;
        if (!deleted) delete_rows(index, rows, count);
    }
    ck_assert_msg(work[1] < work[0] + work[0] / 4, "%zu evaluations, before %zu", work[1], work[0]);
    sl_index_free(index);
}
END_TEST

/* More is deleted near a query than near most. So it walks twice, the second time no deeper than it must. */
START_TEST(second_walks_are_no_deeper_than_needed) {
    enum { MANY = 200, NEAR = 24, EVERY = 6 };
    static uint64_t ids[MANY];
    size_t work[2] = {0, 0};
    sl_index *index = make_any();
    sl_search_params params = params_of(MANY);
    for (int deleted = 0; deleted < 2; deleted++) {
        for (size_t q = 0; q < Q; q += EVERY) {
            sl_search_stats stats;
            ck_ok(sl_index_search(index, queries + q * DIM, SL_F32, 1, 0, MANY, &params, ids, NULL, &stats));
            ck_assert_uint_eq(stats.results, MANY);
            work[deleted] += stats.evaluations;
        }
        for (size_t q = 0; q < Q && !deleted; q += EVERY)
            delete_near(index, SL_METRIC_COSINE, q, NEAR);
    }
    ck_assert_msg(work[1] > 3 * work[0] / 2, "%zu evaluations, before %zu", work[1], work[0]);
    ck_assert_msg(work[1] < 2 * work[0], "%zu evaluations, before %zu", work[1], work[0]);
    sl_index_free(index);
}
END_TEST

/* Filters are asked of what is left alone, and take no more work than they may. */
START_TEST(with_a_filter) {
    sl_index *index = make_any();
    sl_search_params params = params_of(50);
    sl_search_stats stats;
    size_t asked = 0;
    params.accept = accept_none;
    params.accept_ctx = &asked;
    search(index, 1, &params, &stats);
    size_t before = stats.evaluations, asked_before = asked;
    delete_rows(index, &(size_t){17}, 1);
    asked = 0;
    search(index, 1, &params, &stats);
    ck_assert_uint_eq(stats.results, 0);
    ck_assert_uint_le(stats.evaluations, before + before / 20);
    ck_assert_uint_le(asked, asked_before);
    leave_every(index, 4);
    params.accept = accept_even;
    search(index, 1, &params, &stats);
    ck_assert_uint_eq(stats.results, Q * K);
    for (size_t i = 0; i < Q * K; i++)
        ck_assert_uint_eq(found[i] / STEP % 2, 0);
    sl_index_free(index);
}
END_TEST

/* Copies of one vector fill each other's lists: those that are left are found among those that are not. */
START_TEST(identical_vectors) {
    enum { COPIES = 600, KEPT = 3 };
    float *copies = malloc(COPIES * DIM * sizeof *copies);
    uint64_t ids[COPIES], nearest[KEPT + 1];
    for (size_t i = 0; i < COPIES; i++)
        memcpy(copies + i * DIM, queries, DIM * sizeof *copies);
    for (size_t i = 0; i < COPIES; i++)
        ids[i] = N * STEP + i;
    sl_index *index = make_any();
    ck_ok(indexes_add(index, copies, SL_F32, COPIES, ids));
    ck_ok(sl_index_delete(index, ids + KEPT, COPIES - KEPT));
    indexes_search(index, (vector_rows){queries, SL_F32, 1}, KEPT + 1, 20, nearest, NULL);
    for (size_t i = 0; i < KEPT; i++)
        ck_assert(nearest[i] >= N * STEP && nearest[i] < N * STEP + KEPT);
    ck_assert_uint_lt(nearest[KEPT], N * STEP);
    ck_ok(sl_index_delete(index, ids, KEPT));
    indexes_search(index, (vector_rows){queries, SL_F32, 1}, 1, 20, nearest, NULL);
    ck_assert_uint_lt(nearest[0], N * STEP);
    free(copies);
    sl_index_free(index);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * The call
 * ------------------------------------------------------------------------------------------------------------- */

static void check_refused(sl_index *index, const uint64_t *ids, size_t n, const char *says) {
    float vector[DIM];
    sl_index_stats before = indexes_stats(index);
    ck_fails(sl_index_delete(index, ids, n), SL_ENOTFOUND, says);
    sl_index_stats after = indexes_stats(index);
    indexes_equal(&before, &after);
    ck_ok(sl_tombstones_check(&index->graph));
    ck_ok(sl_index_get(index, ids, 1, SL_F32, vector));
}

/* Runs once with kept ids and once with ids that are the nodes' numbers. */
START_TEST(all_or_nothing) {
    sl_index_params params;
    indexes_params(&params, DIM, SL_METRIC_COSINE);
    sl_index *index = _i ? make_any() : indexes_make(&params, x, SL_F32, N, NULL, 1);
    const uint64_t scale = _i ? STEP : 1, missing = N * STEP + 1;
    float vector[DIM];
    ck_fails(sl_index_delete(NULL, &missing, 1), SL_EINVAL, "NULL");
    ck_fails(sl_index_delete(index, NULL, 1), SL_EINVAL, "NULL");
    ck_ok(sl_index_delete(index, NULL, 0));
    check_refused(index, (uint64_t[]){5 * scale, 6 * scale, missing}, 3, "number 2: id 18001 is not in the index");
    ck_ok(sl_index_delete(index, &(uint64_t){9 * scale}, 1));
    ck_fails(sl_index_get(index, &(uint64_t){9 * scale}, 1, SL_F32, vector), SL_ENOTFOUND, _i ? "id 27" : "id 9");
    check_refused(index, (uint64_t[]){5 * scale, 9 * scale}, 2, "number 1: id");
    check_refused(index, (uint64_t[]){5 * scale, 6 * scale, 5 * scale}, 3, "twice, as number 0 and 2");
    ck_assert_uint_eq(sl_index_size(index), N - 1);
    ck_ok(sl_index_delete(index, (uint64_t[]){5 * scale, 6 * scale}, 2));
    ck_assert_uint_eq(sl_index_size(index), N - 3);
    ck_assert_uint_eq(indexes_sound(index).deleted, 3);
    sl_index_free(index);
}
END_TEST

START_TEST(of_nothing) {
    sl_index_params params;
    sl_index *index;
    indexes_params(&params, DIM, SL_METRIC_COSINE);
    ck_ok(sl_index_create(&params, &index));
    ck_fails(sl_index_delete(index, &(uint64_t){0}, 1), SL_ENOTFOUND, "id 0");
    ck_ok(sl_index_reserve(index, 100));
    ck_ok(indexes_add(index, x, SL_F32, 1, NULL));
    ck_ok(sl_index_delete(index, &(uint64_t){0}, 1));
    ck_assert_uint_eq(sl_index_size(index), 0);
    indexes_search(index, (vector_rows){queries, SL_F32, Q}, K, 10, found, scores);
    ck_assert_uint_eq(found[0], SL_NO_ID);
    ck_ok(indexes_add(index, x, SL_F32, 1, NULL));
    indexes_search(index, (vector_rows){queries, SL_F32, Q}, K, 10, found, scores);
    ck_assert_uint_eq(found[0], 1);
    ck_assert_uint_eq(found[1], SL_NO_ID);
    sl_index_free(index);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Changing on
 * ------------------------------------------------------------------------------------------------------------- */

/* A delete of many is taken back at once. */
START_TEST(many_are_taken_back) {
    static uint64_t ids[N / 2];
    sl_index_params params;
    indexes_params(&params, DIM, SL_METRIC_COSINE);
    sl_index *index = indexes_make(&params, x, SL_F32, N, NULL, 1);
    for (size_t i = 0; i < N / 2; i++)
        ids[i] = 2 * i;
    ck_ok(sl_index_delete(index, ids, N / 2));
    ck_assert_uint_eq(sl_index_size(index), N / 2);
    ck_ok(sl_index_undelete(index, ids, N / 2));
    ck_assert_uint_eq(sl_index_size(index), N);
    ck_assert_uint_eq(indexes_sound(index).unreachable, 0);
    sl_index_free(index);
}
END_TEST

/* A deleted id is free, for another vector; none that was ever given is given unasked. */
START_TEST(added_again) {
    sl_index_params params;
    indexes_params(&params, DIM, SL_METRIC_COSINE);
    params.refine = SL_REFINE_F32;
    sl_index *index = _i ? make_any() : indexes_make(&params, x, SL_F32, N, NULL, 1);
    const uint64_t scale = _i ? STEP : 1, largest = (N - 1) * scale, ids[] = {largest, 40 * scale};
    float vector[DIM];
    uint64_t nearest[2];
    for (int round = 0; round < 3; round++) {
        const float *other = later + 2 * round * DIM;
        ck_ok(sl_index_delete(index, ids, 2));
        ck_fails(sl_index_delete(index, ids, 1), SL_ENOTFOUND, "deleted before");
        ck_ok(indexes_add(index, other, SL_F32, 2, ids));
        ck_fails(indexes_add(index, other, SL_F32, 1, ids), SL_EEXIST, "already in the index");
        ck_ok(sl_index_get(index, &ids[1], 1, SL_F32, vector));
        ck_assert_mem_eq(vector, other + DIM, sizeof vector);
        indexes_search(index, (vector_rows){other, SL_F32, 1}, 2, 100, nearest, NULL);
        ck_assert_uint_eq(nearest[0], largest);
        ck_assert_uint_ne(nearest[1], largest);
    }
    ck_assert_uint_eq(sl_index_size(index), N);
    ck_ok(sl_index_delete(index, ids, 1));
    ck_ok(indexes_add(index, later, SL_F32, 1, NULL));
    ck_ok(sl_index_get(index, &(uint64_t){largest + 1}, 1, SL_F32, vector));
    ck_fails(sl_index_get(index, ids, 1, SL_F32, vector), SL_ENOTFOUND, "is not in the index");
    ck_assert_uint_eq(indexes_sound(index).duplicate_ids, 0);
    ck_fails(indexes_add(index, later, SL_F32, 2, (uint64_t[]){ids[0], ids[0]}), SL_EEXIST, "row 1");
    ck_ok(indexes_add(index, later, SL_F32, 1, ids));
    sl_index_free(index);
}
END_TEST

/* The entry point goes, and its successor, and so on; each comes back under its id. */
START_TEST(entry_points) {
    sl_index *index = make_any();
    for (size_t round = 0; round < 200; round++) {
        uint32_t node = sl_entry_get(&index->graph).node;
        for (; sl_is_deleted(&index->graph, node); node++)
            ;
        uint64_t id = sl_id_of(&index->graph, node), nearest;
        ck_ok(sl_index_delete(index, &id, 1));
        ck_ok(indexes_add(index, later + round * DIM, SL_F32, 1, &id));
        indexes_search(index, (vector_rows){later + round * DIM, SL_F32, 1}, 1, 50, &nearest, NULL);
        ck_assert_uint_eq(nearest, id);
    }
    ck_assert_uint_eq(sl_index_size(index), N);
    ck_assert_uint_eq(indexes_sound(index).deleted, 200);
    sl_index_free(index);
}
END_TEST

/* All vectors are deleted, and more than that are added: only the added ones are found. The same holds once nodes are
 * numbered anew, which moves the marks along. */
START_TEST(all_deleted_and_others_added) {
    sl_index *index = make_any();
    uint64_t nearest[K], exact[K];
    leave_every(index, 0);
    ck_assert_uint_eq(indexes_stats(index).bytes_codes > 0, 1);
    ck_ok(indexes_add(index, later, SL_F32, K / 2, NULL));
    indexes_search(index, (vector_rows){later, SL_F32, 1}, K, 50, nearest, NULL);
    ck_assert_uint_eq(nearest[0], id_of(0) + 1);
    ck_assert_uint_eq(nearest[K / 2], SL_NO_ID);
    size_t ordered = index->ordered;
    ck_ok(indexes_add(index, later + K / 2 * DIM, SL_F32, LATER - K / 2, NULL));
    ck_assert_uint_ne(index->ordered, ordered);
    ck_assert_uint_eq(index->ordered, N + LATER);
    ck_ok(sl_tombstones_check(&index->graph));
    ck_assert_uint_eq(sl_index_size(index), LATER);
    for (size_t row = 0; row < N; row++)
        ck_fails(sl_index_get(index, &(uint64_t){id_of(row)}, 1, SL_F32, x), SL_ENOTFOUND, "not in the index");
    size_t hits = 0;
    for (size_t q = 0; q < Q; q++) {
        indexes_exact(SL_METRIC_COSINE, DIM, (vector_rows){later, SL_F32, LATER},
                      (vector_rows){queries + q * DIM, SL_F32, 1}, K, exact);
        indexes_search(index, (vector_rows){queries + q * DIM, SL_F32, 1}, K, 200, nearest, NULL);
        for (size_t i = 0; i < K; i++)
            exact[i] += id_of(0) + 1;
        hits += (size_t)(indexes_recall(nearest, exact, 1, K) * K + 0.5);
    }
    ck_assert_uint_ge(hits, Q * K * 96 / 100);
    ck_assert_double_ge(indexes_sound(index).sampled_recall, 0.95);
    sl_index_free(index);
}
END_TEST

static int cancel_late(void *ctx, uint64_t done, uint64_t total) {
    (void)ctx;
    return done >= total / 2;
}

/* Vectors that a cancelled call added are removed. Vectors deleted before that call stay deleted. */
START_TEST(cancelled_adds) {
    sl_index *index = make_any();
    leave_every(index, 2);
    static uint64_t ids[N];
    size_t count = 0;
    for (size_t row = 0; row < N; row++)
        if (gone[row]) ids[count++] = id_of(row);
    sl_index_stats before = indexes_stats(index);
    sl_add_params params;
    sl_add_params_init(&params);
    params.threads = 1;
    params.progress = cancel_late;
    ck_fails(sl_index_add(index, later, SL_F32, count, 0, ids, &params), SL_ECANCELED, "");
    ck_assert_uint_eq(sl_index_size(index), before.n);
    ck_assert_uint_eq(indexes_stats(index).deleted, before.deleted);
    ck_ok(sl_tombstones_check(&index->graph));
    sl_search_params with = params_of(100);
    sl_search_stats stats;
    search(index, 1, &with, &stats);
    expect_lawful(index);
    ck_fails(sl_index_delete(index, ids, 1), SL_ENOTFOUND, "deleted before");
    ck_ok(indexes_add(index, later, SL_F32, count, ids));
    ck_assert_uint_eq(sl_index_size(index), N);
    indexes_sound(index);
    sl_index_free(index);
}
END_TEST

/* Ten times as much comes and goes as is there at any time. */
START_TEST(churn) {
    enum { STOCK = 300, ROUNDS = 10 };
    sl_index_params params;
    sl_index *index;
    uint64_t ids[STOCK], nearest[K], exact[K];
    indexes_params(&params, DIM, SL_METRIC_L2);
    params.refine = SL_REFINE_F32;
    ck_ok(sl_index_create(&params, &index));
    for (size_t i = 0; i < STOCK; i++)
        ids[i] = 7 * i;
    for (size_t round = 0; round < ROUNDS; round++) {
        const float *rows = later + round * STOCK * DIM;
        if (round) ck_ok(sl_index_delete(index, ids, STOCK));
        ck_ok(indexes_add(index, rows, SL_F32, STOCK, ids));
        ck_assert_uint_eq(sl_index_size(index), STOCK);
        for (size_t q = 0; q < Q; q++) {
            indexes_exact(SL_METRIC_L2, DIM, (vector_rows){rows, SL_F32, STOCK},
                          (vector_rows){queries + q * DIM, SL_F32, 1}, K, exact);
            indexes_search(index, (vector_rows){queries + q * DIM, SL_F32, 1}, K, 60, nearest, NULL);
            for (size_t i = 0; i < K; i++)
                exact[i] *= 7;
            ck_assert_double_ge(indexes_recall(nearest, exact, 1, K), round ? 0.99 : 0.8);
        }
    }
    ck_assert_uint_le(indexes_sound(index).deleted, STOCK / 10);
    ck_assert_uint_le(index->graph.n, STOCK + STOCK / 4);
    sl_index_free(index);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Batches, tuning, checks
 * ------------------------------------------------------------------------------------------------------------- */

/* Scans of every partition find what walks find that see everything; of a few, K of what is left. */
START_TEST(batches_that_scan) {
    sl_index *index = make(SL_METRIC_COSINE, _i ? SL_CODES_I4 : SL_CODES_I8, SL_REFINE_F32);
    ck_assert_uint_gt(index->graph.partitions.count, 10);
    sl_search_params params = params_of(100);
    sl_search_stats stats;
    leave_every(index, 2);
    truth(SL_METRIC_COSINE);
    params.probes = index->graph.partitions.count;
    params.rerank = N;
    search(index, 1, &params, &stats);
    ck_assert_uint_eq(stats.expansions, 0);
    ck_assert_mem_eq(found, wanted, sizeof wanted);
    /* A scan of mostly deleted vectors reads most for nothing. */
    params.rerank = 0;
    leave_every(index, 4);
    search(index, 1, &params, &stats);
    expect_lawful(index);
    sl_search_stats walks;
    params.probes = 0;
    search(index, 1, &params, &walks);
    ck_assert_uint_eq(stats.evaluations, walks.evaluations);
    sl_index_free(index);
}
END_TEST

/* Partitions in which nothing is left: whose query is nearest to one walks after all. */
START_TEST(partitions_that_are_gone) {
    sl_index *index = make_any();
    const sl_partitions *partitions = &index->graph.partitions;
    for (size_t p = 0; p < partitions->count; p++) {
        const sl_range nodes = sl_partition_nodes(partitions, p, index->graph.n);
        for (size_t node = nodes.first; node < nodes.end && 2 * nodes.end < N; node++)
            delete_rows(index, &(size_t){row_of(sl_id_of(&index->graph, (uint32_t)node))}, 1);
    }
    ck_assert_uint_gt(indexes_stats(index).deleted, N / 3);
    sl_search_params params = params_of(100);
    sl_search_stats stats;
    params.probes = 1;
    search(index, 1, &params, &stats);
    ck_assert_uint_lt(stats.evaluations, Q * 2 * SL_PARTITION_ROWS * 3);
    expect_lawful(index);
    sl_index_free(index);
}
END_TEST

static sl_published facts;
static sl_store no_file = {.detached = 1}; /* nobody writes to it */

static int forget_deaths(void *ctx, uint64_t done, uint64_t total) {
    (void)ctx, (void)total;
    if (done) facts.dead = 0;
    return 0;
}

/* A batch that scans has searchers with room for what it ranks. A query walks after all, while a damaged head page says
 * that nothing is deleted. The walk is as deep as ef nevertheless. */
START_TEST(deaths_that_are_forgotten) {
    sl_index *index = make_any();
    const sl_partitions *partitions = &index->graph.partitions;
    for (size_t p = 0; p < partitions->count; p++) {
        const sl_range nodes = sl_partition_nodes(partitions, p, index->graph.n);
        for (size_t node = nodes.first; node < nodes.end && 2 * nodes.end < N; node++)
            delete_rows(index, &(size_t){row_of(sl_id_of(&index->graph, (uint32_t)node))}, 1);
    }
    facts = sl_published_of(index, &index->graph);
    index->published = &facts;
    index->store = &no_file;
    index->graph.place = SL_PLACE_MAP;
    sl_search_params params = params_of(3000);
    params.probes = 1;
    params.progress = forget_deaths;
    uint64_t *ids = malloc(Q * K * sizeof *ids);
    ck_assert_ptr_nonnull(ids);
    ck_ok(sl_index_search(index, queries, SL_F32, Q, 0, K, &params, ids, NULL, NULL));
    ck_assert_uint_eq(facts.dead, 0);
    free(ids);
    index->published = NULL;
    index->store = NULL;
    index->graph.place = SL_PLACE_DRAM;
    sl_index_free(index);
}
END_TEST

/* Tuned before and tuned after, a recall is reached among what is left; the truth is that of what is left. */
START_TEST(tuning) {
    sl_index *index = make_any();
    const double target = 0.9;
    sl_tune_params with;
    sl_tune_params_init(&with);
    with.targets = &target;
    with.target_count = 1;
    sl_search_params params = params_of(1);
    sl_search_stats stats;
    params.recall = target;
    ck_ok(sl_index_tune(index, queries, SL_F32, Q, 0, NULL, K, &with, NULL));
    for (int round = 0; round < 2; round++) {
        leave_every(index, round ? 8 : 2);
        truth(SL_METRIC_COSINE);
        search(index, 1, &params, &stats);
        expect_lawful(index);
        ck_assert_double_ge(indexes_recall(found, wanted, Q, K), target - 0.02);
        ck_ok(sl_index_tune(index, queries, SL_F32, Q, 0, NULL, K, &with, NULL));
        sl_tuned tuned = {.struct_size = sizeof tuned};
        ck_ok(sl_index_get_tuned(index, 0, &tuned));
        ck_assert_uint_eq(tuned.n, sl_index_size(index));
        ck_assert_int_eq(tuned.limit, SL_LIMIT_NONE);
        search(index, 1, &params, &stats);
        ck_assert_double_eq_tol(indexes_recall(found, wanted, Q, K), tuned.recall, 1e-9);
    }
    size_t row = 0;
    while (!gone[row])
        row++;
    wanted[3] = id_of(row);
    ck_fails(sl_index_tune(index, queries, SL_F32, Q, 0, wanted, K, &with, NULL), SL_ENOTFOUND, "truth of query 0");
    leave_every(index, 0);
    ck_fails(sl_index_tune(index, queries, SL_F32, Q, 0, NULL, K, &with, NULL), SL_EINVAL, "holds 0 vectors");
    sl_index_free(index);
}
END_TEST

START_TEST(checks) {
    sl_index *index = make_any();
    size_t left = leave_every(index, 10);
    sl_check_report report = indexes_sound(index);
    ck_assert_uint_eq(report.n, left);
    ck_assert_uint_eq(report.deleted, N - left);
    ck_assert_double_ge(report.sampled_recall, 0.95);
    sl_tombstones(&index->graph)[3] ^= 1;
    ck_fails(sl_index_check(index, NULL, &report), SL_ECORRUPT, "marked as deleted");
    sl_tombstones(&index->graph)[3] ^= 1;
    leave_every(index, 0);
    ck_assert(isnan(indexes_sound(index).sampled_recall));
    sl_index_free(index);
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("delete"), *threads = tcase_create("threads");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_loop_test(tests, what_is_left_is_found, 0, KINDS);
    tcase_add_test(tests, all_that_is_left_is_found);
    tcase_add_test(tests, many_are_taken_back);
    tcase_add_test(tests, deleted_neighbourhoods);
    tcase_add_test(tests, walks_that_stop);
    tcase_add_test(tests, full_beams_are_walked_once);
    tcase_add_test(tests, second_walks_are_no_deeper_than_needed);
    tcase_add_test(tests, with_a_filter);
    tcase_add_test(tests, identical_vectors);
    tcase_add_loop_test(tests, all_or_nothing, 0, 2);
    tcase_add_test(tests, of_nothing);
    tcase_add_test(tests, entry_points);
    tcase_add_test(tests, cancelled_adds);
    tcase_add_test(tests, partitions_that_are_gone);
    tcase_add_test(tests, tuning);
    tcase_add_test(tests, checks);
    /* Several threads add beside deleted vectors, or search for what is left. */
    tcase_add_checked_fixture(threads, set_up, tear_down);
    tcase_add_loop_test(threads, added_again, 0, 2);
    tcase_add_test(threads, all_deleted_and_others_added);
    tcase_add_test(threads, churn);
    tcase_add_loop_test(threads, batches_that_scan, 0, 2);
    tcase_add_test(threads, deaths_that_are_forgotten);
    TCase *const cases[] = {tests, threads};
    return check_main("delete", cases, 2);
}
