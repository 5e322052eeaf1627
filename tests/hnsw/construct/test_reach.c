/* Every vector is reachable from the entry point. Duplicates and near-duplicates don't cut the graph apart. Nodes that
 * are cut off are found and linked. */
#include "base/random.h"
#include "hnsw/construct/reach.h"
#include "hnsw/graph/entry.h"
#include "tests/support/check_main.h"
#include "tests/support/clusters.h"
#include "tests/support/indexes.h"

#include <stdlib.h>
#include <string.h>

enum { DIM = 8 };

static void *block(size_t count) {
    void *out = calloc(count, DIM * sizeof(float));
    ck_assert_ptr_nonnull(out);
    return out;
}

/* A vector far from the clusters and from other such vectors. */
static void make_far(float *row, size_t i) {
    for (size_t d = 0; d < DIM; d++)
        row[d] = (d == i % DIM ? 300.0f : 20.0f) * (float)(1 + i) * (d % 2 ? -1.0f : 1.0f);
}

static sl_status add(sl_index *index, const float *x, size_t n, size_t threads) {
    sl_add_params params;
    sl_add_params_init(&params);
    params.threads = threads;
    return sl_index_add(index, x, SL_F32, n, 0, NULL, &params);
}

static sl_index *empty_of(sl_codes codes, sl_metric metric, size_t m) {
    sl_index_params params;
    indexes_params(&params, DIM, metric);
    params.codes = codes;
    params.m = m;
    sl_index *index;
    ck_ok(sl_index_create(&params, &index));
    return index;
}

static sl_index *empty(sl_metric metric, size_t m) {
    return empty_of(SL_CODES_I8, metric, m);
}

/* A search for the vector gives its id, or that of a duplicate. */
static int finds_itself(const sl_index *index, const float *row, uint64_t id, size_t ef) {
    uint64_t found;
    float score;
    indexes_search(index, (vector_rows){row, SL_F32, 1}, 1, ef, &found, &score);
    return found == id;
}

/* ---------------------------------------------------------------------------------------------------------------
 * Copies
 * ------------------------------------------------------------------------------------------------------------- */

/* How far apart the duplicates are, and whether they come before the others or among them. */
static const struct crowd {
    size_t duplicates, others, m, threads;
    float distance;
    int mixed;
    sl_codes codes;
} crowds[] = {
    {600, 5000, 8, 1, 0, 0, SL_CODES_I8},     {600, 5000, 8, 4, 0, 1, SL_CODES_I8},
    {600, 5000, 8, 4, 1e-3f, 0, SL_CODES_I8}, {600, 5000, 8, 4, 1e-3f, 1, SL_CODES_I8},
    {300, 1000, 2, 1, 0, 0, SL_CODES_I8},     {300, 1000, 2, 4, 1e-4f, 1, SL_CODES_I8},
    {600, 5000, 8, 1, 0, 0, SL_CODES_I4},     {600, 5000, 8, 4, 1e-3f, 1, SL_CODES_I4},
};

START_TEST(far_vectors_among_duplicates_are_found) {
    enum { FAR = 50 };
    const struct crowd *crowd = &crowds[_i];
    size_t n = crowd->duplicates + crowd->others, duplicates = 0;
    float *x = clusters_make(n + FAR, DIM, 0.3, 1);
    for (size_t i = 0; i < n; i++) {
        int is_duplicate =
            crowd->mixed ? i % (n / crowd->duplicates) == 1 && duplicates < crowd->duplicates : i < crowd->duplicates;
        if (!is_duplicate) continue;
        for (size_t d = 0; d < DIM; d++)
            x[i * DIM + d] = 1 + crowd->distance * (float)sl_random_unit(9, i * DIM + d);
        duplicates++;
    }
    ck_assert_uint_eq(duplicates, crowd->duplicates);
    for (size_t i = 0; i < FAR; i++)
        make_far(x + (n + i) * DIM, i);
    sl_index *index = empty_of(crowd->codes, SL_METRIC_L2, crowd->m);
    ck_ok(add(index, x, n, crowd->threads));
    ck_ok(add(index, x + n * DIM, FAR, crowd->threads));
    indexes_sound(index);
    size_t lost = 0;
    /* For some of the others the duplicates are the nearest, so the pool must hold more than the duplicates, and some
     * nodes on the way past them. With two links a node a walk may have to see everything on its way. It only matters
     * that it arrives. */
    size_t ef = crowd->m > 2 ? crowd->duplicates + 256 : n + FAR;
    for (size_t i = 0; i < FAR; i++)
        lost += !finds_itself(index, x + (n + i) * DIM, n + i, ef);
    ck_assert_msg(lost == 0, "%zu of %d far vectors are not found", lost, FAR);
    sl_index_free(index);
    free(x);
}
END_TEST

START_TEST(all_the_same) {
    enum { N = 5000, K = 10 };
    float *x = block(N);
    for (size_t i = 0; i < N * DIM; i++)
        x[i] = (float)(1 + i % DIM);
    sl_metric metric = (sl_metric)(_i % 3);
    sl_index *index = empty_of(_i < 6 ? SL_CODES_I8 : SL_CODES_I4, metric, _i / 3 == 1 ? 2 : 8);
    ck_ok(add(index, x, N, _i < 3 ? 4 : 1));
    indexes_sound(index);
    uint64_t ids[K];
    float scores[K];
    indexes_search(index, (vector_rows){x, SL_F32, 1}, K, 64, ids, scores);
    for (size_t i = 0; i < K; i++) {
        ck_assert_uint_lt(ids[i], N);
        ck_assert(scores[i] == scores[0]);
        for (size_t j = 0; j < i; j++)
            ck_assert_uint_ne(ids[i], ids[j]);
    }
    sl_index_free(index);
    free(x);
}
END_TEST

START_TEST(threads_leave_nothing_out) {
    enum { N = 6000 };
    float *x = clusters_make(N, DIM, 0.5, 4);
    sl_index *index = empty((sl_metric)_i, 6);
    ck_ok(add(index, x, N / 3, 4));
    ck_ok(add(index, x + N / 3 * DIM, N - N / 3, 4));
    double recall = indexes_sound(index).sampled_recall;
    ck_assert_msg(recall > (_i == SL_METRIC_IP ? 0.8 : 0.9), "recall is %.3f", recall);
    size_t lost = 0;
    for (size_t i = 0; i < N; i += 7)
        lost += !finds_itself(index, x + i * DIM, i, 64);
    /* By inner product a longer vector may be nearer than the vector itself. */
    if (_i != SL_METRIC_IP) ck_assert_msg(lost <= 8, "%zu of %d are not found", lost, N / 7);
    sl_index_free(index);
    free(x);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Cuts
 * ------------------------------------------------------------------------------------------------------------- */

enum { CUT_N = 2000 };

static sl_index *connected(float **x) {
    *x = clusters_make(CUT_N, DIM, 0.3, 2);
    sl_index *index = empty(SL_METRIC_L2, 8);
    ck_ok(add(index, *x, CUT_N, 1));
    indexes_sound(index);
    return index;
}

/* Removes the links that drop() names from every list, and closes the gaps. */
static void drop_links(sl_index *index, int (*drop)(uint32_t from, uint32_t to)) {
    for (uint32_t node = 0; node < index->graph.n; node++) {
        uint32_t *links = sl_links(&index->graph, node);
        size_t kept = 0;
        for (size_t i = 0; i < index->graph.m0; i++)
            if (links[i] != SL_NONE && !drop(node, links[i])) links[kept++] = links[i];
        memset(links + kept, 0xff, (index->graph.m0 - kept) * sizeof *links);
    }
}

static uint32_t lonely; /* not the entry point */

static int to_lonely(uint32_t from, uint32_t to) {
    (void)from;
    return to == lonely;
}
static int into_island(uint32_t from, uint32_t to) {
    return (to >= 500 && to < 600) != (from >= 500 && from < 600);
}
static int any(uint32_t from, uint32_t to) {
    (void)from;
    (void)to;
    return 1;
}

/* An island whose nodes still link to one another may have gaps of its own; 0 stands for "at least one". */
static const struct cut {
    int (*drop)(uint32_t from, uint32_t to);
    size_t unreachable, no_in_link;
} cuts[] = {{to_lonely, 1, 1}, {into_island, 100, 0}, {any, CUT_N - 1, CUT_N - 1}};

START_TEST(cuts_are_found_and_mended) {
    const struct cut *cut = &cuts[_i];
    float *x;
    sl_index *index = connected(&x);
    uint32_t entry = sl_entry_get(&index->graph).node;
    lonely = entry == 77 ? 78 : 77;
    if (entry >= 500 && entry < 600) sl_entry_set(index, 0, 3);
    drop_links(index, cut->drop);
    sl_check_report report = {.struct_size = sizeof report};
    ck_fails(sl_index_check(index, NULL, &report), SL_ECORRUPT, "cannot be reached");
    ck_assert_uint_eq(report.unreachable, cut->unreachable);
    if (cut->no_in_link) ck_assert_uint_eq(report.no_in_link, cut->no_in_link);
    ck_assert_uint_eq(report.bad_links, 0);

    index->unverified = 1;
    ck_ok(sl_reach_settle(index));
    ck_assert_uint_eq(index->unverified, 0);
    indexes_sound(index);
    if (cut->drop == to_lonely) ck_assert(finds_itself(index, x + lonely * DIM, lonely, 64));
    sl_index_free(index);
    free(x);
}
END_TEST

/* Sound links stay untouched. */
START_TEST(mending_nothing_changes_nothing) {
    float *x;
    sl_index *index = connected(&x);
    size_t size = index->graph.n * index->graph.m0 * sizeof(uint32_t);
    uint32_t *before = malloc(size);
    ck_assert_ptr_nonnull(before);
    memcpy(before, sl_links(&index->graph, 0), size);
    index->unverified = index->graph.n;
    ck_ok(sl_reach_settle(index));
    ck_assert_mem_eq(sl_links(&index->graph, 0), before, size);
    free(before);
    sl_index_free(index);
    free(x);
}
END_TEST

/* A tree: each of the first ten nodes links to four others, which fills its list. Each of those links is the only path
 * to its end. The vectors around the one that nobody links to are those ten, so it must hang on a leaf far away. */
START_TEST(full_lists_are_not_robbed_of_their_tree) {
    enum { INNER = 10, TREE = 4 * INNER + 1, N = TREE + 1 };
    float *x = block(N);
    for (size_t i = 0; i < N; i++)
        x[i * DIM] = i < INNER ? 1 + 0.01f * (float)i : 100 + (float)i;
    x[(N - 1) * DIM] = 1;
    sl_index_params params;
    indexes_params(&params, DIM, SL_METRIC_L2);
    params.m = params.ef_construction = 2;
    sl_index *index = indexes_make(&params, x, SL_F32, N, NULL, 1);
    memset(sl_links(&index->graph, 0), 0xff, N * 4 * sizeof(uint32_t));
    for (uint32_t i = 0; i < 4 * INNER; i++)
        sl_links(&index->graph, 0)[i] = i + 1;
    sl_entry_set(index, 0, 0);
    indexes_publish(index);
    sl_check_report report = {.struct_size = sizeof report};
    ck_fails(sl_index_check(index, NULL, &report), SL_ECORRUPT, "cannot be reached");
    ck_assert_uint_eq(report.unreachable, 1);
    index->unverified = 1;
    indexes_sound(index);
    for (uint32_t i = 0; i < 4 * INNER; i++)
        ck_assert_uint_eq(sl_links(&index->graph, 0)[i], i + 1);
    sl_index_free(index);
    free(x);
}
END_TEST

/* Links to the next four nodes take every place of every list. There is room only in place of a link that isn't the
 * only path to its end. */
START_TEST(full_lists_make_room) {
    enum { N = 400, CUT_OFF = 5 };
    float *x = clusters_make(N, DIM, 0.3, 8);
    sl_index *index = empty(SL_METRIC_COSINE, 2);
    ck_ok(add(index, x, N, 1));
    uint32_t ring = N - CUT_OFF;
    for (uint32_t node = 0; node < N; node++)
        for (uint32_t i = 0; i < 4; i++)
            sl_links(&index->graph, node)[i] = (node + i + 1) % ring;
    sl_entry_set(index, 0, 0);
    indexes_publish(index);
    sl_check_report report = {.struct_size = sizeof report};
    ck_fails(sl_index_check(index, NULL, &report), SL_ECORRUPT, "cannot be reached");
    ck_assert_uint_eq(report.unreachable, CUT_OFF);
    ck_assert_uint_eq(report.no_in_link, CUT_OFF);
    index->unverified = 1;
    report = indexes_sound(index);
    ck_assert_uint_eq(report.min_degree, 4);
    sl_index_free(index);
    free(x);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Small adds
 * ------------------------------------------------------------------------------------------------------------- */

static size_t reached_of(const sl_index *index) {
    sl_reach reach;
    ck_ok(sl_reach_init(&reach, &index->graph, index->graph.n, 0));
    const size_t reached = sl_reach_from_entry(&reach);
    sl_reach_free(&reach);
    return reached;
}

static sl_index *with_few_links(sl_metric metric, size_t m, const float *x, size_t n) {
    sl_index_params params;
    indexes_params(&params, DIM, metric);
    params.m = m;
    params.ef_construction = 16;
    return indexes_make(&params, x, SL_F32, n, NULL, 1);
}

/* Each metric, with few links and with more, on one thread and on four. Only the add itself proves reachability. */
START_TEST(small_adds_leave_nothing_out) {
    enum { BEGIN = 4000, EACH = 60, ADDS = 20, ALL = BEGIN + EACH * ADDS };
    const sl_metric metric = (sl_metric)(_i % 3);
    float *x = clusters_make(ALL, DIM, 1.0, 21);
    sl_index *index = with_few_links(metric, _i / 3 % 2 ? 6 : 2, x, BEGIN);
    for (size_t n = BEGIN; n < ALL; n += EACH) {
        ck_ok(add(index, x + n * DIM, EACH, _i < 6 ? 1 : 4));
        ck_assert_uint_eq(index->unverified, 0);
        ck_assert_uint_eq(reached_of(index), n + EACH);
    }
    uint64_t *ids = calloc(ALL, sizeof *ids);
    ck_assert_ptr_nonnull(ids);
    indexes_search(index, (vector_rows){x, SL_F32, 1}, ALL, ALL, ids, NULL);
    for (size_t i = 0; i < ALL; i++)
        ck_assert_uint_ne(ids[i], SL_NO_ID);
    indexes_sound(index);
    free(ids);
    sl_index_free(index);
    free(x);
}
END_TEST

/* Nobody links to the entry point. A vector that becomes the entry point must lead to it. The seed decides which vector
 * does. */
START_TEST(a_new_entry_point_leads_to_the_old_one) {
    enum { BEGIN = 200, END = 220, SEEDS = 60 };
    float *x = clusters_make(END, DIM, 0.3, 22);
    size_t changes = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        sl_index_params params;
        indexes_params(&params, DIM, (sl_metric)_i);
        params.m = 2;
        params.seed = seed;
        sl_index *index = indexes_make(&params, x, SL_F32, BEGIN, NULL, 1);
        for (size_t n = BEGIN; n < END; n++) {
            lonely = sl_entry_get(&index->graph).node;
            drop_links(index, to_lonely);
            index->unverified = 1;
            ck_ok(sl_reach_settle(index));
            ck_ok(add(index, x + n * DIM, 1, 1));
            ck_assert_uint_eq(index->unverified, 0);
            ck_assert_uint_eq(reached_of(index), n + 1);
            changes += sl_entry_get(&index->graph).node != lonely;
        }
        sl_index_free(index);
    }
    ck_assert_uint_gt(changes, 0);
    free(x);
}
END_TEST

static int cancel_late(void *ctx, uint64_t done, uint64_t total) {
    (void)ctx;
    return done > 3 * total / 4;
}

/* New vectors lie between a few old ones, and become the paths between them. A cancelled add removes these. */
START_TEST(a_cancelled_add_leaves_nothing_out) {
    enum { BEGIN = 4000, EACH = 240, OLD = 60 };
    float *x = clusters_make(BEGIN + EACH, DIM, 1.0, 23);
    for (size_t i = 0; i < EACH; i++)
        for (size_t d = 0; d < DIM; d++)
            x[(BEGIN + i) * DIM + d] = 0.5f * (x[i % OLD * DIM + d] + x[i * 7 % OLD * DIM + d]);
    sl_index *index = with_few_links(SL_METRIC_L2, 2, x, BEGIN);
    sl_add_params params;
    sl_add_params_init(&params);
    params.progress = cancel_late;
    for (size_t i = 0; i < 3; i++) {
        ck_fails(sl_index_add(index, x + BEGIN * DIM, SL_F32, EACH, 0, NULL, &params), SL_ECANCELED, "");
        ck_assert_uint_eq(index->unverified, 0);
        ck_assert_uint_eq(reached_of(index), BEGIN);
    }
    sl_index_free(index);
    free(x);
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("reach"), *threads = tcase_create("threads");
    tcase_set_timeout(tests, 60);
    tcase_set_timeout(threads, 60);
    tcase_add_loop_test(tests, small_adds_leave_nothing_out, 0, 12);
    tcase_add_loop_test(tests, a_new_entry_point_leads_to_the_old_one, 0, 3);
    tcase_add_test(tests, a_cancelled_add_leaves_nothing_out);
    tcase_add_loop_test(tests, far_vectors_among_duplicates_are_found, 0, sizeof crowds / sizeof *crowds);
    tcase_add_loop_test(tests, all_the_same, 0, 9);
    tcase_add_loop_test(threads, threads_leave_nothing_out, 0, 3);
    tcase_add_loop_test(tests, cuts_are_found_and_mended, 0, sizeof cuts / sizeof *cuts);
    tcase_add_test(tests, mending_nothing_changes_nothing);
    tcase_add_test(tests, full_lists_are_not_robbed_of_their_tree);
    tcase_add_test(tests, full_lists_make_room);
    return check_main("reach", (TCase *[]){tests, threads}, 2);
}
