/* Partitions scanned for a recall, instead of walks or where walks do not reach it. */
#include "base/random.h"
#include "hnsw/construct/reach.h"
#include "hnsw/search/scan_params.h"
#include "hnsw/search/settings.h"
#include "tests/support/check_main.h"
#include "tests/support/clusters.h"
#include "tests/support/indexes.h"
#include "tests/support/sanitized.h"
#include "tests/support/scratch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DIM = 24, HALF = 1500, K = 10 };

struct kind {
    sl_metric metric;
    sl_dtype dtype;
    sl_codes codes;
    sl_refine refine;
};

static const struct kind scanned[] = {
    {SL_METRIC_COSINE, SL_F32, SL_CODES_I8, SL_REFINE_F32},
    {SL_METRIC_L2, SL_U8, SL_CODES_I8, SL_REFINE_NONE},
    {SL_METRIC_IP, SL_F32, SL_CODES_I4, SL_REFINE_F32},
};

/* Recall of a search for this recall, and whether it walked. */
static double scanned_recall(const sl_index *index, vector_rows queries, const uint64_t *truth, double recall,
                             size_t threads, int *walked) {
    uint64_t *found = malloc(queries.count * K * sizeof *found);
    ck_assert_ptr_nonnull(found);
    sl_search_params search;
    sl_search_stats stats;
    sl_search_params_init(&search);
    search.recall = recall;
    search.threads = threads;
    ck_ok(sl_index_search(index, queries.rows, queries.dtype, queries.count, 0, K, &search, found, NULL, &stats));
    double share = indexes_recall(found, truth, queries.count, K);
    *walked = stats.expansions > 0;
    free(found);
    return share;
}

static sl_index *scanned_make(const struct kind *kind, const unsigned char *rows, size_t n) {
    sl_index_params params;
    indexes_params(&params, DIM, kind->metric);
    params.dtype = kind->dtype;
    params.codes = kind->codes;
    params.refine = kind->refine;
    return indexes_make(&params, rows, kind->dtype, n, NULL, 2);
}

/* Spread over all dimensions, so that walks have far to go. */
static float *cube_make(size_t n) {
    float *out = malloc(n * DIM * sizeof *out);
    ck_assert_ptr_nonnull(out);
    for (size_t i = 0; i < n * DIM; i++)
        out[i] = (float)(2 * sl_random_unit(19, i) - 1);
    return out;
}

static vector_rows of_them(vector_rows queries, size_t count) {
    queries.count = count;
    return queries;
}

/* Batches of each size reach the target on the queries of the tuning, and nearly so on others. The truth covers both.
 */
static void check_by_batch(const sl_index *index, vector_rows tuning, vector_rows others, const uint64_t *truth,
                           const sl_tuned *tuned) {
    const uint64_t *others_truth = truth + HALF * K;
    const double target = tuned->target;
    int walked;
    double here = scanned_recall(index, tuning, truth, target, 2, &walked);
    ck_assert_int_eq(walked, tuned->probes == 0);
    ck_assert_msg(here >= target, "%g gave %.4f where it was tuned", target, here);
    double there = scanned_recall(index, others, others_truth, target, 2, &walked);
    ck_assert_int_eq(walked, tuned->probes == 0);
    ck_assert_msg(there >= target - 0.012, "%g gave %.4f", target, there);
    (void)scanned_recall(index, of_them(others, SL_SCAN_LEAST), others_truth, target, 1, &walked);
    ck_assert_int_eq(walked, tuned->probes == 0);
    (void)scanned_recall(index, of_them(others, SL_SCAN_LEAST - 1), others_truth, target, 1, &walked);
    ck_assert_int_eq(walked, tuned->probes_one == 0);
    double alone = scanned_recall(index, of_them(tuning, SL_SCAN_LEAST), truth, target, 2, &walked);
    ck_assert_int_eq(walked, tuned->probes_one == 0);
    ck_assert_msg(alone >= target - 0.02, "%g gave %.4f to single searches", target, alone);
}

/* Settings name a number of partitions. Batches of many queries scan that many and reach the recall; other queries
 * walk. */
START_TEST(batches_scan_for_a_recall) {
    enum { LARGE = 5000 };
    static const double targets[] = {0.8, 0.9, 0.995};
    const struct kind *kind = &scanned[_i];
    float *floats = cube_make(LARGE + 2 * HALF);
    unsigned char *rows = clusters_as(kind->dtype, floats, (LARGE + 2 * HALF) * DIM);
    const unsigned char *asked = rows + LARGE * DIM * sl_dtype_size(kind->dtype);
    const unsigned char *other = asked + HALF * DIM * sl_dtype_size(kind->dtype);
    uint64_t *truth = malloc(2 * HALF * K * sizeof *truth);
    ck_assert_ptr_nonnull(truth);
    sl_index *index = scanned_make(kind, rows, LARGE);
    indexes_exact(kind->metric, DIM, (vector_rows){rows, kind->dtype, LARGE},
                  (vector_rows){asked, kind->dtype, 2 * HALF}, K, truth);
    sl_tune_params with;
    sl_tune_params_init(&with);
    with.targets = targets;
    with.target_count = 3;
    ck_ok(sl_index_tune(index, asked, kind->dtype, HALF, 0, truth, K, &with, NULL));
    size_t before = 0;
    const sl_isa isa = index->graph.kernels->isa;
    const int scans_are_cheap = isa == SL_ISA_AVX512VNNI || isa == SL_ISA_AMXINT8;
    for (size_t i = 0; i < 3; i++) {
        sl_tuned tuned = indexes_tuned(index, i);
        ck_assert_uint_le(tuned.probes, index->graph.partitions.count);
        ck_assert(tuned.probes == 0 || tuned.probes >= before);
        before = tuned.probes ? tuned.probes : before;
        /* For the highest recall under inner product walks go far, and single queries scan too. */
        int far = i == 2 && kind->metric == SL_METRIC_IP && scans_are_cheap;
        ck_assert(!far || tuned.probes_one > 0);
        check_by_batch(index, (vector_rows){asked, kind->dtype, HALF}, (vector_rows){other, kind->dtype, HALF}, truth,
                       &tuned);
        ck_assert(tuned.probes_one == 0 || tuned.probes_one == tuned.probes);
        /* Few partitions: a measurement of ten says nothing about how many hold fewer. */
        sl_tuned fewer = {.struct_size = sizeof fewer};
        if (tuned.least_k < K) {
            ck_ok(sl_index_find_tuned(index, K - 1, targets[i], &fewer));
            ck_assert_uint_eq(fewer.probes, 0);
            ck_assert_uint_eq(fewer.probes_one, 0);
        }
    }
    ck_assert(before || !scans_are_cheap); /* where a scan is worth most */
    sl_index_free(index);
    free(truth);
    free(rows);
    free(floats);
}
END_TEST

/* Every sixteenth node is one that no link leads to. */
static void cut_off_some(sl_index *index) {
    for (size_t node = 0; node < index->graph.n; node++) {
        uint32_t *links = sl_links(&index->graph, node);
        size_t kept = 0;
        for (size_t i = 0; i < index->graph.m0; i++)
            if (links[i] % 16) links[kept++] = links[i];
        memset(links + kept, 0xff, (index->graph.m0 - kept) * sizeof *links);
    }
}

static int is_even(void *ctx, uint64_t id) {
    (void)ctx;
    return id % 2 == 0;
}

/* Tuned for a recall that only scans reach: as reported, and as searched for. */
static void check_scanned_target(const sl_index *index, const struct kind *kind, const unsigned char *asked,
                                 const uint64_t *truth, double target) {
    sl_tuned tuned = indexes_tuned(index, 1), fewer = {.struct_size = sizeof fewer};
    uint64_t ids[K];
    int walked;
    ck_assert(tuned.limit == SL_LIMIT_NONE && tuned.scan_only && tuned.least_k == K);
    ck_assert(tuned.probes > 0 && tuned.probes_one == tuned.probes && tuned.recall >= target);
    for (size_t threads = 1; threads <= 2; threads++) {
        double recall = scanned_recall(index, (vector_rows){asked, kind->dtype, HALF}, truth, target, threads, &walked);
        ck_assert(!walked && fabs(recall - tuned.recall) < 0.002);
    }
    ck_assert(scanned_recall(index, (vector_rows){asked, kind->dtype, 1}, truth, target, 1, &walked) > 0.5 && !walked);
    sl_search_params search;
    sl_search_params_init(&search);
    search.recall = target;
    search.accept = is_even;
    ck_fails(sl_index_search(index, asked, kind->dtype, 1, 0, K, &search, ids, NULL, NULL), SL_ENOTFOUND,
             "scanning alone");
    ck_fails(sl_index_find_tuned(index, K - 1, target, &fewer), SL_ENOTFOUND, "no tuned settings");
    sl_searcher *small_one;
    ck_ok(sl_searcher_create(index, tuned.ef, &small_one));
    search.accept = NULL;
    ck_ok(sl_searcher_search(small_one, asked, kind->dtype, K, &search, ids, NULL, NULL));
    sl_searcher_free(small_one);
}

/* Scans reach vectors that no walk reaches, and only scans serve this recall; the same from the file. */
START_TEST(scans_reach_what_walks_do_not) {
    enum { LARGE = 5000 };
    if (SANITIZED && _i != 2) return; /* for its size */
    static const double targets[] = {0.6, 0.97};
    const struct kind *kind = &scanned[_i];
    float *floats = cube_make(LARGE + HALF);
    unsigned char *rows = clusters_as(kind->dtype, floats, (LARGE + HALF) * DIM);
    const unsigned char *asked = rows + LARGE * DIM * sl_dtype_size(kind->dtype);
    uint64_t *truth = malloc(HALF * K * sizeof *truth);
    ck_assert_ptr_nonnull(truth);
    sl_index *index = scanned_make(kind, rows, LARGE), *opened;
    indexes_exact(kind->metric, DIM, (vector_rows){rows, kind->dtype, LARGE}, (vector_rows){asked, kind->dtype, HALF},
                  K, truth);
    ck_ok(sl_reach_settle(index));
    cut_off_some(index);
    sl_tune_params with;
    sl_tune_report report = {.struct_size = sizeof report};
    sl_tune_params_init(&with);
    with.targets = targets;
    with.target_count = 2;
    ck_ok(sl_index_tune(index, asked, kind->dtype, HALF, 0, truth, K, &with, &report));
    scratch place;
    sl_tuned low = indexes_tuned(index, 0), high = indexes_tuned(index, 1);
    ck_assert(low.limit == SL_LIMIT_NONE && !low.scan_only);
    ck_assert_uint_eq(report.reached, 2);
    check_scanned_target(index, kind, asked, truth, targets[1]);
    scratch_open(&place);
    ck_ok(sl_index_save(index, place.path, NULL));
    ck_ok(sl_index_open(place.path, NULL, &opened));
    sl_tuned kept = indexes_tuned(opened, 1);
    ck_same_tuned(&kept, &high);
    check_scanned_target(opened, kind, asked, truth, targets[1]);
    sl_index_free(opened);
    scratch_close(&place);
    sl_index_free(index);
    free(truth);
    free(rows);
    free(floats);
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("probes");
    tcase_set_timeout(tests, 300);
    tcase_add_loop_test(tests, batches_scan_for_a_recall, 0, sizeof scanned / sizeof *scanned);
    tcase_add_loop_test(tests, scans_reach_what_walks_do_not, 0, sizeof scanned / sizeof *scanned);
    return check_main("tune probes", &tests, 1);
}
