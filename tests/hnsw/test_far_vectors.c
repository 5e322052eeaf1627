/* Vectors far from the origin and close to one another under L2: products of them differ by less than floats resolve.
 * With codes f32, and with integers, searches and builds find the nearest all the same, whatever is added later. Codes
 * of one scale a vector lose them, and say so. */
#include "hnsw/construct/resolution.h"
#include "hnsw/graph/index.h"
#include "tests/support/check_main.h"
#include "tests/support/cities.h"
#include "tests/support/sanitized.h"
#include "tests/support/scratch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N = SANITIZED ? 1500 : 6000, FEW = 1200, K = 10, QUERIES = 100, EF = 64, MOST_DIM = 32, CITIES = 12 };

enum { MOST = 24000 };
static float x[(MOST + QUERIES) * MOST_DIM];
static uint64_t ids[MOST];
static scratch place;

static void set_up(void) {
    scratch_open(&place);
}

static void tear_down(void) {
    scratch_close(&place);
}

/* Recall of rows from `asked` on, as queries, among rows [0, n). */
static double recall_of(const sl_index *index, size_t dim, size_t n, size_t asked, size_t ef) {
    static uint64_t found[QUERIES * K], truth[QUERIES * K];
    const vector_rows queries = {x + asked * dim, SL_F32, QUERIES};
    indexes_search(index, queries, K, ef, found, NULL);
    indexes_exact(SL_METRIC_L2, dim, (vector_rows){x, SL_F32, n}, queries, K, truth);
    return indexes_recall(found, truth, QUERIES, K);
}

static const struct {
    size_t dim, n, cities;
    float far, spread;
    sl_builder builder;
} kinds[] = {
    {2, FEW, 1, 48.85f, 0.1f, SL_BUILDER_INSERT}, {2, N, 1, 48.85f, 0.1f, SL_BUILDER_AUTO},
    {2, N, 1, 48.85f, 0.1f, SL_BUILDER_INSERT},   {8, FEW, 1, 1e6f, 100, SL_BUILDER_AUTO},
    {2, N, CITIES, 100, 0.1f, SL_BUILDER_AUTO},   {3, N, CITIES, 1e4f, 1, SL_BUILDER_INSERT},
    {16, N, 1, -3000, 0.1f, SL_BUILDER_AUTO},     {5, N, 2, 1e9f, 1e4f, SL_BUILDER_AUTO},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static sl_index *index_of_kind(int kind) {
    const size_t n = kinds[kind].n;
    sl_index *index;
    cities_settle(x, 0, n + QUERIES,
                  (cities){kinds[kind].dim, kinds[kind].cities, 7, kinds[kind].far, kinds[kind].spread});
    sl_index_params params = cities_params(kinds[kind].dim, SL_CODES_F32);
    sl_add_params adding;
    sl_add_params_init(&adding);
    adding.threads = 1;
    adding.builder = kinds[kind].builder;
    ck_ok(sl_index_create(&params, &index));
    ck_ok(sl_index_add(index, x, SL_F32, n, 0, NULL, &adding));
    return index;
}

START_TEST(floats_are_found_however_far) {
    sl_index *index = index_of_kind(_i);
    ck_assert_double_ge(recall_of(index, kinds[_i].dim, kinds[_i].n, kinds[_i].n, EF), 0.99);
    ck_ok(sl_index_save(index, place.path, NULL));
    sl_index_free(index);
    for (int mapped = 0; mapped < 2; mapped++) {
        index = indexes_open(place.path, mapped ? SL_PLACE_MAP : SL_PLACE_DRAM);
        ck_assert_double_ge(recall_of(index, kinds[_i].dim, kinds[_i].n, kinds[_i].n, EF), 0.99);
        sl_index_free(index);
    }
}
END_TEST

/* Every way of asking: filters of every strategy, pages of an iterator, a radius, stored vectors. */
START_TEST(every_search_finds_them) {
    enum { DIM = 2 };
    static const sl_filter_strategy strategies[] = {SL_FILTER_AUTO, SL_FILTER_EXACT, SL_FILTER_PARTITIONS,
                                                    SL_FILTER_WALK, SL_FILTER_HOPS};
    sl_index *index = index_of_kind(1);
    static uint64_t found[QUERIES * K], truth[QUERIES * K];
    const vector_rows queries = {x + N * DIM, SL_F32, QUERIES};
    sl_filter *filter = cities_filter(index, x, DIM, N, &queries, K, truth);
    for (size_t s = 0; s < sizeof strategies / sizeof *strategies; s++) {
        sl_search_params params;
        sl_search_params_init(&params);
        params.ef = EF;
        params.filter = filter;
        params.strategy = strategies[s];
        ck_ok(sl_index_search(index, queries.rows, SL_F32, QUERIES, 0, K, &params, found, NULL, NULL));
        const double recall = indexes_recall(found, truth, QUERIES, K);
        ck_assert_msg(recall >= 0.99, "strategy %d: recall %.3f", (int)strategies[s], recall);
    }
    sl_filter_free(filter);
    indexes_exact(SL_METRIC_L2, DIM, (vector_rows){x, SL_F32, N}, (vector_rows){x, SL_F32, QUERIES}, K, truth);
    uint64_t own[QUERIES];
    size_t hits = 0;
    for (size_t i = 0; i < QUERIES; i++)
        own[i] = i;
    ck_ok(sl_index_search_ids(index, own, QUERIES, K, NULL, found, NULL, NULL));
    for (size_t q = 0; q < QUERIES; q++)
        for (size_t i = 1; i < K; i++) /* the truth's first is the vector itself */
            for (size_t j = 0; j < K; j++)
                hits += found[q * K + j] == truth[q * K + i];
    ck_assert_uint_ge(hits * 100, QUERIES * (K - 1) * 99);
    sl_index_free(index);
}
END_TEST

static int count_one(void *ctx, size_t query, uint64_t id, float score) {
    (void)query;
    (void)id;
    (void)score;
    ++*(size_t *)ctx;
    return 0;
}

START_TEST(a_radius_and_pages_hold_them) {
    enum { DIM = 2, PAGES = 4, MANY = PAGES * K };
    sl_index *index = index_of_kind(1);
    static uint64_t truth[QUERIES * MANY];
    const float *queries = x + N * DIM;
    indexes_exact(SL_METRIC_L2, DIM, (vector_rows){x, SL_F32, N}, (vector_rows){queries, SL_F32, QUERIES}, MANY, truth);
    size_t in_pages = 0, in_radius = 0;
    for (size_t q = 0; q < QUERIES; q++) {
        const float *query = queries + q * DIM, *last = x + truth[q * MANY + MANY - 1] * DIM;
        sl_iterator *iterator;
        ck_ok(sl_iterator_create(index, query, SL_F32, NULL, &iterator));
        for (size_t page = 0; page < PAGES; page++) {
            uint64_t ids[K];
            ck_ok(sl_iterator_next(iterator, K, ids, NULL, NULL, NULL));
            for (size_t i = 0; i < K; i++)
                for (size_t j = 0; j < MANY; j++)
                    in_pages += ids[i] == truth[q * MANY + j];
        }
        sl_iterator_free(iterator);
        double radius;
        ck_ok(sl_score(SL_METRIC_L2, SL_F32, query, last, DIM, &radius));
        ck_ok(sl_index_range(index, query, SL_F32, 1, 0, radius * (1 + 1e-6), NULL, count_one, &in_radius, NULL));
    }
    ck_assert_uint_ge(in_pages * 100, QUERIES * MANY * 99);
    ck_assert_uint_ge(in_radius * 100, QUERIES * MANY * 99);
    sl_index_free(index);
}
END_TEST

/* Vectors of another mean come later: a few and many, in memory and in a file, and by merging. */
START_TEST(later_vectors_may_lie_elsewhere) {
    enum { DIM = 2 };
    const size_t later = _i ? N : FEW / 4, n = N + later;
    cities_settle(x, 0, N, (cities){DIM, 1, 3, 48.85f, 0.1f});
    cities_settle(x, N, n, (cities){DIM, 1, 5, -300, 0.1f});
    sl_index_params params = cities_params(DIM, SL_CODES_F32);
    sl_index *index = indexes_make(&params, x, SL_F32, N, NULL, 1);
    sl_save_params saving;
    sl_save_params_init(&saving);
    saving.room = n;
    ck_ok(sl_index_save(index, place.path, &saving));
    ck_ok(indexes_add(index, x + N * DIM, SL_F32, later, NULL));
    ck_assert_double_ge(recall_of(index, DIM, n, 0, EF), 0.99);
    ck_assert_double_ge(recall_of(index, DIM, n, n - QUERIES, EF), 0.99);
    sl_index_free(index);
    sl_open_params opening;
    sl_open_params_init(&opening);
    opening.writable = 1;
    opening.place = SL_PLACE_MAP;
    ck_ok(sl_index_open(place.path, &opening, &index));
    ck_ok(indexes_add(index, x + N * DIM, SL_F32, later, NULL));
    ck_ok(sl_index_sync(index));
    ck_assert_double_ge(recall_of(index, DIM, n, 0, EF), 0.99);
    ck_assert_double_ge(recall_of(index, DIM, n, n - QUERIES, EF), 0.99);
    sl_index_free(index);
}
END_TEST

START_TEST(merges_keep_them_apart) {
    enum { DIM = 2, HALF = N / 2 };
    cities_settle(x, 0, HALF, (cities){DIM, 1, 3, 48.85f, 0.1f});
    cities_settle(x, HALF, N, (cities){DIM, CITIES, 5, -300, 0.1f});
    sl_index_params params = cities_params(DIM, SL_CODES_F32);
    for (size_t i = 0; i < HALF; i++)
        ids[i] = HALF + i;
    sl_index *parts[2] = {indexes_make(&params, x, SL_F32, HALF, NULL, 1),
                          indexes_make(&params, x + HALF * DIM, SL_F32, N - HALF, ids, 1)};
    sl_merge_params merging;
    sl_merge_params_init(&merging);
    merging.threads = 1;
    for (int builder = SL_BUILDER_AUTO; builder <= SL_BUILDER_INSERT; builder++) {
        sl_index *merged;
        merging.builder = (sl_builder)builder;
        ck_ok(sl_index_merge(parts, 2, &merging, &merged));
        ck_assert_double_ge(recall_of(merged, DIM, N, 0, EF), 0.99);
        ck_assert_double_ge(recall_of(merged, DIM, N, N - QUERIES, EF), 0.99);
        sl_index_free(merged);
    }
    sl_index_free(parts[0]);
    sl_index_free(parts[1]);
}
END_TEST

/* 16-bit integers are exact: products of them are beyond what a float holds. */
START_TEST(integers_are_found) {
    enum { DIM = 2 };
    static int16_t whole[(N + QUERIES) * DIM];
    static uint64_t found[QUERIES * K], truth[QUERIES * K];
    static float scores[QUERIES * K];
    for (size_t i = 0; i < (N + QUERIES) * DIM; i++)
        whole[i] = (int16_t)(31000 + 1500 * cities_draw(9, i));
    sl_index_params params = cities_params(DIM, SL_CODES_I16);
    params.dtype = SL_I16;
    sl_index *index = indexes_make(&params, whole, SL_I16, N, NULL, 1);
    const vector_rows queries = {whole + N * DIM, SL_I16, QUERIES};
    indexes_search(index, queries, K, EF, found, scores);
    indexes_exact(SL_METRIC_L2, DIM, (vector_rows){whole, SL_I16, N}, queries, K, truth);
    size_t hits = 0;
    for (size_t q = 0; q < QUERIES; q++) {
        double farthest;
        ck_ok(
            sl_score(SL_METRIC_L2, SL_I16, whole + truth[q * K + K - 1] * DIM, whole + (N + q) * DIM, DIM, &farthest));
        for (size_t i = 0; i < K; i++) /* many are equally near */
            hits += (double)scores[q * K + i] <= farthest;
    }
    ck_assert_uint_ge(hits * 100, QUERIES * K * 99);
    sl_index_free(index);
}
END_TEST

static const struct {
    size_t dim, n, adds;
    float spread;
    int is_one_scale; /* the largest element is the same, so that vectors get the same bytes */
    size_t ef;
} clusters[] = {{4, MOST, 1, 0.1f, 1, EF}, {4, 20000, 2, 0.1f, 1, EF}, {16, 20000, 2, 20, 0, 16}};

/* Fills n rows and queries behind them. From row `first` on one row in 40 is of a small cluster far away, which hardly
 * a sample shows, and so are the queries. */
static void fill_cluster(int kind, size_t first) {
    enum { PART = 40 };
    const size_t dim = clusters[kind].dim, n = clusters[kind].n;
    cities_settle(x, 0, n + QUERIES, (cities){dim, 1, 11, 0, 1});
    for (size_t i = first; i < n + QUERIES; i += i < n ? PART : 1)
        for (size_t j = 0; j < dim; j++)
            x[i * dim + j] = j || !clusters[kind].is_one_scale
                                 ? 3000 + 1000 * cities_draw(12, j) + clusters[kind].spread * x[i * dim + j]
                                 : 6000;
}

static sl_index *linked_at_once(size_t dim, size_t first, size_t end, size_t adds) {
    const size_t rows = (end - first) / adds;
    sl_index_params params = cities_params(dim, SL_CODES_F32);
    sl_add_params adding;
    sl_index *index;
    sl_add_params_init(&adding);
    adding.builder = SL_BUILDER_LEAVES;
    ck_ok(sl_index_create(&params, &index));
    for (size_t at = first; at < end; at += rows) {
        for (size_t i = 0; i < rows; i++)
            ids[i] = at + i;
        ck_ok(sl_index_add(index, x + at * dim, SL_F32, rows, 0, ids, &adding));
    }
    return index;
}

/* Vectors of the cluster have the same bytes, or nearly so. Linking all at once, also beside what is there, compares
 * them in floats. */
START_TEST(small_clusters_are_found) {
    const size_t dim = clusters[_i].dim, n = clusters[_i].n, adds = clusters[_i].adds;
    fill_cluster(_i, n - n / adds);
    sl_index *index = linked_at_once(dim, 0, n, adds);
    ck_assert_double_ge(recall_of(index, dim, n, n, clusters[_i].ef), 0.98);
    sl_index_free(index);
}
END_TEST

/* A merge joins lists in bytes, and begins again in floats. */
START_TEST(small_clusters_are_merged) {
    const size_t dim = clusters[0].dim, n = clusters[0].n, half = n / 2;
    fill_cluster(0, 0);
    sl_index *parts[2] = {linked_at_once(dim, 0, half, 1), linked_at_once(dim, half, n, 1)}, *merged;
    ck_ok(sl_index_merge(parts, 2, NULL, &merged));
    ck_assert_double_ge(recall_of(merged, dim, n, n, EF), 0.98);
    sl_index_free(merged);
    sl_index_free(parts[0]);
    sl_index_free(parts[1]);
}
END_TEST

/* A build compares vectors in bytes where these tell neighbours apart, and in floats elsewhere. */
START_TEST(builds_choose_their_codes) {
    static const struct {
        float far;
        sl_codes codes;
    } wanted[] = {{0, SL_CODES_I8}, {1, SL_CODES_I8}, {1e4f, SL_CODES_F32}};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        sl_codes codes;
        sl_progress progress;
        sl_progress_start(&progress, NULL, NULL, 0);
        cities_settle(x, 0, FEW, (cities){MOST_DIM, 1, 3, wanted[i].far, 1});
        sl_index_params params = cities_params(MOST_DIM, SL_CODES_F32);
        sl_index *index = indexes_make(&params, x, SL_F32, FEW, NULL, 1);
        ck_ok(sl_compared_codes(&index->graph, 1 + i % 2, &progress, &codes));
        ck_assert_int_eq(codes, wanted[i].codes);
        sl_index_free(index);
    }
}
END_TEST

static const struct {
    sl_codes codes;
    sl_refine refine;
} lossy[] = {{SL_CODES_I8, SL_REFINE_NONE},
             {SL_CODES_I8, SL_REFINE_F32},
             {SL_CODES_I16, SL_REFINE_NONE},
             {SL_CODES_I4, SL_REFINE_NONE}};

/* Codes of one scale a vector say what they lose; less the mean they lose nothing. */
START_TEST(codes_tell_what_they_lose) {
    for (int centred = 0; centred < 2; centred++) {
        const size_t dim = centred ? MOST_DIM : 2;
        cities_settle(x, 0, FEW, (cities){dim, 1, 3, centred ? 0 : 4885, centred ? 1 : 0.1f});
        sl_index_params params = cities_params(dim, lossy[_i].codes);
        params.refine = lossy[_i].refine;
        sl_index *index = indexes_make(&params, x, SL_F32, FEW, NULL, 1);
        sl_resolution resolution = {.struct_size = sizeof resolution};
        ck_ok(sl_index_resolution(index, 2, &resolution));
        ck_assert_uint_eq(resolution.sampled, 64);
        if (centred)
            ck_assert_uint_eq(resolution.unresolved, 0);
        else
            ck_assert_uint_ge(resolution.unresolved, 60);
        sl_check_report report = {.struct_size = sizeof report};
        ck_ok(sl_index_check(index, NULL, &report));
        ck_assert_uint_eq(report.resolution_sampled, resolution.sampled);
        ck_assert_uint_eq(report.unresolved, resolution.unresolved);
        sl_index_free(index);
    }
}
END_TEST

/* Copies of a vector are no neighbours that codes lose. */
START_TEST(copies_are_not_lost) {
    enum { KINDS_OF = 40 };
    cities_settle(x, 0, KINDS_OF, (cities){MOST_DIM, 1, 3, 0, 1});
    for (size_t i = KINDS_OF; i < FEW; i++)
        memcpy(x + i * MOST_DIM, x + i % KINDS_OF * MOST_DIM, MOST_DIM * sizeof *x);
    for (size_t i = 0; i < sizeof lossy / sizeof *lossy; i++) {
        sl_index_params params = cities_params(MOST_DIM, lossy[i].codes);
        params.refine = lossy[i].refine;
        sl_index *index = indexes_make(&params, x, SL_F32, FEW, NULL, 1);
        sl_resolution resolution = {.struct_size = sizeof resolution};
        ck_ok(sl_index_resolution(index, 1, &resolution));
        ck_assert_uint_eq(resolution.sampled, 64);
        ck_assert_uint_eq(resolution.unresolved, 0);
        sl_index_free(index);
    }
}
END_TEST

/* Tunes an index of N rows without refine copies, by the truth. */
static sl_status tune_lossy(sl_codes codes, cities of, sl_index **index) {
    static uint64_t truth[QUERIES * K];
    const vector_rows queries = {x + 2 * N, SL_F32, QUERIES};
    sl_index_params params = cities_params(of.dim, codes);
    params.refine = SL_REFINE_NONE;
    cities_settle(x, 0, N + QUERIES, of);
    *index = indexes_make(&params, x, SL_F32, N, NULL, 1);
    indexes_exact(SL_METRIC_L2, of.dim, (vector_rows){x, SL_F32, N}, queries, K, truth);
    return sl_index_tune(*index, queries.rows, SL_F32, QUERIES, 0, truth, K, NULL, NULL);
}

/* Tuning blames the codes, and not the truth. */
START_TEST(tuning_blames_the_codes) {
    sl_index *index;
    ck_fails(tune_lossy(SL_CODES_I8, (cities){2, 1, 3, 4885, 0.1f}, &index), SL_EUNSUPPORTED, "codes i8");
    sl_index_free(index);
}
END_TEST

/* The same where some of the nearest are found: a better graph would not help. */
START_TEST(codes_stand_in_the_way) {
    sl_index *index;
    sl_tuned tuned = {.struct_size = sizeof tuned};
    size_t count = 0;
    ck_ok(tune_lossy(SL_CODES_I16, (cities){2, 2, 3, 48, 0.2f}, &index));
    for (; sl_index_get_tuned(index, count, &tuned) == SL_OK; count++) {
        ck_assert_double_gt(tuned.recall, 0.05);
        ck_assert_double_lt(tuned.recall, 0.9);
        ck_assert_int_eq(tuned.limit, SL_LIMIT_CODES);
    }
    ck_assert_uint_gt(count, 0);
    sl_index_free(index);
}
END_TEST

/* Nothing is measured where nothing can be lost. */
START_TEST(exact_codes_lose_nothing) {
    cities_settle(x, 0, FEW, (cities){2, 1, 3, 4885, 0.1f});
    sl_index_params params = cities_params(2, SL_CODES_F32);
    sl_index *index = indexes_make(&params, x, SL_F32, FEW, NULL, 1);
    sl_resolution resolution = {.struct_size = sizeof resolution, .sampled = 1, .unresolved = 1};
    ck_ok(sl_index_resolution(index, 0, &resolution));
    ck_assert_uint_eq(resolution.sampled, 0);
    ck_assert_uint_eq(resolution.unresolved, 0);
    ck_fails(sl_index_resolution(NULL, 0, &resolution), SL_EINVAL, "index is NULL");
    ck_fails(sl_index_resolution(index, 0, NULL), SL_EINVAL, "");
    sl_index_free(index);
}
END_TEST

int main(void) {
    TCase *far = tcase_create("far");
    tcase_set_timeout(far, 120);
    tcase_add_checked_fixture(far, set_up, tear_down);
    tcase_add_loop_test(far, floats_are_found_however_far, 0, KINDS);
    tcase_add_test(far, every_search_finds_them);
    tcase_add_test(far, a_radius_and_pages_hold_them);
    tcase_add_loop_test(far, later_vectors_may_lie_elsewhere, 0, 2);
    tcase_add_test(far, merges_keep_them_apart);
    tcase_add_test(far, integers_are_found);
    tcase_add_loop_test(far, small_clusters_are_found, 0, SANITIZED ? 1 : sizeof clusters / sizeof *clusters);
    tcase_add_test(far, small_clusters_are_merged);
    tcase_add_test(far, builds_choose_their_codes);
    tcase_add_loop_test(far, codes_tell_what_they_lose, 0, sizeof lossy / sizeof *lossy);
    tcase_add_test(far, copies_are_not_lost);
    tcase_add_test(far, tuning_blames_the_codes);
    tcase_add_test(far, codes_stand_in_the_way);
    tcase_add_test(far, exact_codes_lose_nothing);
    return check_main("far_vectors", &far, 1);
}
