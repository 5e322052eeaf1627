/* Bands of length in partitions under IP: how they bound the nodes, and what queries skip by them. Files without bands,
 * or with false ones, can be read too. */
#include "base/random.h"
#include "distance/double.h"
#include "hnsw/graph/index.h"
#include "hnsw/graph/partition.h"
#include "hnsw/graph/vectors.h"
#include "tests/support/check_main.h"
#include "tests/support/clusters.h"
#include "tests/support/indexes.h"
#include "tests/support/scratch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N = 9000, DIM = 16, K = 10, QUERIES = 200 };

static float *x;
static const float *queries;
static scratch place;

static void set_up(void) {
    x = clusters_make(N + QUERIES, DIM, 0.5, 31);
    ck_assert_ptr_nonnull(x);
    queries = x + (size_t)N * DIM;
    scratch_open(&place);
}

static void tear_down(void) {
    scratch_close(&place);
    free(x);
}

static sl_index *make(sl_metric metric) {
    sl_index_params params;
    indexes_params(&params, DIM, metric);
    params.ef_construction = 24;
    return indexes_make(&params, x, SL_F32, N, NULL, 2);
}

typedef struct answer {
    uint64_t ids[QUERIES * K];
    double recall, evaluations;
} answer;

static uint64_t truth[QUERIES * K];

/* All queries, `together` in one call or one a call. */
static void ask(const sl_index *index, size_t probes, int together, answer *out) {
    sl_search_params params;
    sl_search_stats stats;
    sl_search_params_init(&params);
    params.probes = probes;
    out->evaluations = 0;
    for (size_t q = 0, n = together ? QUERIES : 1; q < QUERIES; q += n) {
        ck_ok(sl_index_search(index, queries + q * DIM, SL_F32, n, 0, K, &params, out->ids + q * K, NULL, &stats));
        ck_assert_uint_eq(stats.expansions, 0);
        out->evaluations += (double)stats.evaluations / QUERIES;
    }
    out->recall = indexes_recall(out->ids, truth, QUERIES, K);
}

/* ---------------------------------------------------------------------------------------------------------------
 * What they say
 * ------------------------------------------------------------------------------------------------------------- */

START_TEST(prefixes_are_the_first_nodes) {
    for (size_t count = 0; count < 700; count++) {
        uint32_t starts[] = {100, 100 + (uint32_t)count};
        sl_partitions one = {.count = 1, .starts = starts, .band_bits = SL_BAND_BITS};
        ck_assert_uint_eq(sl_partition_band_rows(count, 0), 0);
        ck_assert_uint_eq(sl_partition_band_rows(count, SL_PARTITION_BANDS), count);
        for (size_t left_out = 0; left_out < SL_PARTITION_BANDS; left_out++) {
            size_t bands = SL_PARTITION_BANDS - left_out;
            sl_range range = sl_partition_prefix(&one, left_out, 10000);
            ck_assert_uint_eq(range.first, 100);
            ck_assert_uint_eq(range.end - range.first, sl_partition_band_rows(count, bands));
            ck_assert_uint_le(sl_partition_band_rows(count, bands - 1), sl_partition_band_rows(count, bands));
        }
    }
}
END_TEST

static double length_of(const sl_index *index, uint32_t node) {
    float vector[DIM];
    sl_vector_of(&index->graph, node, SL_F32, vector);
    return sqrt(sl_dot_double(vector, vector, DIM));
}

/* Lengths fall. No length exceeds its band's bound, and no bound is larger than it must be. */
static void check_bands(const sl_index *index, size_t p) {
    const uint8_t *bands = index->graph.partitions.bands + p * SL_PARTITION_BANDS;
    sl_range range = sl_partition_nodes(&index->graph.partitions, p, index->graph.n);
    double longest = length_of(index, (uint32_t)range.first), before = longest;
    ck_assert_uint_eq(bands[0], 255);
    for (size_t b = 0; b < SL_PARTITION_BANDS; b++) {
        size_t first = range.first + sl_partition_band_rows(range.end - range.first, b);
        size_t end = range.first + sl_partition_band_rows(range.end - range.first, b + 1);
        if (first < end) ck_assert_double_le(bands[b] - 1, length_of(index, (uint32_t)first) / longest * 255);
        for (size_t node = first; node < end; node++) {
            double length = length_of(index, (uint32_t)node);
            ck_assert_double_le(length, before * (1 + 1e-6));
            ck_assert_double_le(length / longest * 255, bands[b] * (1 + 1e-6));
            before = length;
        }
    }
}

START_TEST(bands_bound_lengths) {
    sl_index *index = make(SL_METRIC_IP);
    ck_assert_uint_gt(index->graph.partitions.count, 20);
    ck_assert_uint_eq(index->graph.partitions.band_bits, SL_BAND_BITS);
    for (size_t p = 0; p < index->graph.partitions.count; p++)
        check_bands(index, p);
    indexes_sound(index);
    sl_index_free(index);
}
END_TEST

START_TEST(others_have_none) {
    sl_index *index = make(_i ? SL_METRIC_L2 : SL_METRIC_COSINE);
    ck_assert_uint_gt(index->graph.partitions.count, 20);
    ck_assert_uint_eq(index->graph.partitions.band_bits, 0);
    ck_assert_ptr_null(index->graph.partitions.bands);
    sl_index_free(index);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * What queries leave out
 * ------------------------------------------------------------------------------------------------------------- */

/* Queries that read whole partitions find their results in three quarters of the vectors, or fewer: one query as well
 * as many. */
START_TEST(short_vectors_are_left_out) {
    static answer by_bands, together, whole;
    sl_index *index = make(SL_METRIC_IP);
    indexes_exact(SL_METRIC_IP, DIM, (vector_rows){x, SL_F32, N}, (vector_rows){queries, SL_F32, QUERIES}, K, truth);
    ask(index, 4, 0, &by_bands);
    ask(index, 4, 1, &together);
    ck_assert_mem_eq(by_bands.ids, together.ids, sizeof together.ids);
    ck_assert_double_eq_tol(by_bands.evaluations, together.evaluations, 1e-6);
    ask(index, 1, 0, &whole);
    ask(index, 1, 1, &together);
    ck_assert_mem_eq(whole.ids, together.ids, sizeof together.ids);
    memset(index->graph.partitions.bands, 255, index->graph.partitions.count * SL_PARTITION_BANDS);
    ask(index, 4, 0, &whole);
    double centroids = (double)index->graph.partitions.count;
    double rows = by_bands.evaluations - centroids, all = whole.evaluations - centroids;
    ck_assert_msg(rows < all * 0.75 && by_bands.recall > whole.recall - 0.005,
                  "%.4f in %.0f rows by bands, %.4f in %.0f whole", by_bands.recall, rows, whole.recall, all);
    sl_index_free(index);
}
END_TEST

/* A query of zeros, whose scores are all equal, and one with negative scores find k vectors. */
START_TEST(odd_queries_find_k) {
    enum { ODD = 4 };
    sl_index *index = make(SL_METRIC_IP);
    float asked[ODD * DIM] = {0};
    uint64_t ids[ODD * K];
    sl_search_params params;
    sl_search_params_init(&params);
    for (size_t i = 0; i < DIM; i++) {
        asked[DIM + i] = 1e-17f;
        asked[2 * DIM + i] = -1e18f;
        asked[3 * DIM + i] = -x[i];
    }
    for (params.probes = 1; params.probes <= index->graph.partitions.count; params.probes *= 4)
        for (size_t q = 0; q < ODD; q++) {
            ck_ok(sl_index_search(index, asked + q * DIM, SL_F32, 1, 0, K, &params, ids, NULL, NULL));
            for (size_t i = 0; i < K; i++)
                ck_assert_uint_lt(ids[i], N);
        }
    sl_index_free(index);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Files
 * ------------------------------------------------------------------------------------------------------------- */

/* Saves the index with so many bytes of bands; 0: without that section. */
static void save_with(const sl_index *index, uint64_t bytes) {
    indexes_save_cut(index, place.path, &(section_bytes){SL_SECTION_PARTITION_BANDS, bytes}, 1);
}

START_TEST(kept_in_files) {
    static answer before, after;
    sl_index *index = make(SL_METRIC_IP);
    ck_ok(indexes_save(index, place.path));
    ask(index, 3, 0, &before);
    for (int at = SL_PLACE_DRAM; at <= SL_PLACE_MAP; at++) {
        sl_index *opened = indexes_open(place.path, (sl_place)at);
        ck_assert_mem_eq(opened->graph.partitions.bands, index->graph.partitions.bands,
                         index->graph.partitions.count * SL_PARTITION_BANDS);
        ask(opened, 3, 0, &after);
        ck_assert_mem_eq(before.ids, after.ids, sizeof before.ids);
        indexes_sound(opened);
        sl_index_free(opened);
    }
    sl_index_free(index);
}
END_TEST

/* An old file has no bands: partitions are read whole. */
START_TEST(older_files_have_none) {
    static answer found;
    sl_index *index = make(SL_METRIC_IP);
    save_with(index, 0);
    sl_index_free(index);
    for (int at = SL_PLACE_DRAM; at <= SL_PLACE_MAP; at++) {
        index = indexes_open(place.path, (sl_place)at);
        ck_assert_uint_eq(index->graph.partitions.band_bits, 0);
        ask(index, index->graph.partitions.count, 0, &found);
        ck_assert_double_eq_tol(found.evaluations, (double)(N + index->graph.partitions.count), 1e-6);
        indexes_sound(index);
        sl_index_free(index);
    }
}
END_TEST

static void fails_to_open(const char *says) {
    for (int at = SL_PLACE_DRAM; at <= SL_PLACE_MAP; at++) {
        sl_open_params params;
        sl_index *opened;
        sl_open_params_init(&params);
        params.place = (sl_place)at;
        ck_fails(sl_index_open(place.path, &params, &opened), SL_ECORRUPT, says);
    }
}

START_TEST(wrong_sizes_are_refused) {
    sl_index *index = make(SL_METRIC_IP);
    uint64_t size = index->graph.partitions.count * SL_PARTITION_BANDS;
    save_with(index, size);
    sl_index_free(indexes_open(place.path, SL_PLACE_MAP));
    save_with(index, size - 1);
    fails_to_open("bytes of bands do not fit");
    save_with(index, SL_PARTITION_BANDS);
    fails_to_open("bytes of bands do not fit");
    sl_index_free(index);
    /* The metric has no bands. */
    index = make(SL_METRIC_L2);
    uint8_t *bands = calloc(index->graph.partitions.count, SL_PARTITION_BANDS);
    index->graph.partitions.bands = bands;
    index->graph.partitions.band_bits = SL_BAND_BITS;
    indexes_publish(index);
    save_with(index, index->graph.partitions.count * SL_PARTITION_BANDS);
    index->graph.partitions.bands = NULL;
    index->graph.partitions.band_bits = 0;
    indexes_publish(index);
    fails_to_open("of metric l2");
    free(bands);
    sl_index_free(index);
}
END_TEST

/* Opening for writing refuses them. Mapped for reading, searches scan fewer or more vectors, and a check reports it. */
START_TEST(wrong_content_is_found) {
    static answer found;
    sl_index *index = make(SL_METRIC_IP);
    for (size_t i = 0; i < index->graph.partitions.count * SL_PARTITION_BANDS; i++)
        index->graph.partitions.bands[i] = (uint8_t)sl_random_at(7, i);
    ck_ok(indexes_save(index, place.path));
    sl_index_free(index);
    index = indexes_broken(place.path, "partition 0 is broken");
    for (size_t probes = 1; probes <= index->graph.partitions.count; probes *= 3)
        for (int together = 0; together < 2; together++) {
            ask(index, probes, together, &found);
            for (size_t i = 0; i < QUERIES * K; i++)
                ck_assert(found.ids[i] == SL_NO_ID || found.ids[i] < N);
        }
    sl_index_free(index);
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("bands");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, prefixes_are_the_first_nodes);
    tcase_add_test(tests, bands_bound_lengths);
    tcase_add_loop_test(tests, others_have_none, 0, 2);
    tcase_add_test(tests, short_vectors_are_left_out);
    tcase_add_test(tests, odd_queries_find_k);
    tcase_add_test(tests, kept_in_files);
    tcase_add_test(tests, older_files_have_none);
    tcase_add_test(tests, wrong_sizes_are_refused);
    tcase_add_test(tests, wrong_content_is_found);
    TCase *const cases[] = {tests};
    return check_main("bands", cases, 1);
}
