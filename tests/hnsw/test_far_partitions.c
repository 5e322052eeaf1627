/* Partitions of vectors far from the origin, and of narrow clusters far from one another, under L2: filters find the
 * nearest by them. Merging and numbering begin at centroids that are exact copies. */
#include "distance/codec/encode.h"
#include "distance/double.h"
#include "hnsw/construct/join.h"
#include "hnsw/construct/renumber.h"
#include "hnsw/graph/index.h"
#include "hnsw/search/partition_order.h"
#include "tests/support/check_main.h"
#include "tests/support/cities.h"

#include <stdlib.h>
#include <string.h>

enum { HALF = SL_RENUMBER_LEAST, N = 2 * HALF, QUERIES = 100, K = 10, EF = 64, MOST_DIM = 32, CITIES = 12 };

static float x[(N + QUERIES) * MOST_DIM];

/* Recall of rows from `asked` on, as queries under a filter of rows [0, n). The look is at partitions. */
static double filtered_recall(sl_index *index, size_t dim, size_t n, size_t asked) {
    static uint64_t found[QUERIES * K], truth[QUERIES * K];
    const vector_rows queries = {x + asked * dim, SL_F32, QUERIES};
    sl_filter *filter = cities_filter(index, x, dim, n, &queries, K, truth);
    sl_search_params params;
    sl_search_params_init(&params);
    params.ef = EF;
    params.filter = filter;
    params.strategy = SL_FILTER_PARTITIONS;
    sl_search_stats stats;
    ck_ok(sl_index_search(index, queries.rows, SL_F32, QUERIES, 0, K, &params, found, NULL, &stats));
    ck_assert_uint_eq(stats.partitions, QUERIES);
    sl_filter_free(filter);
    return indexes_recall(found, truth, QUERIES, K);
}

/* Centroids in codes I8 have their scores by products, and nodes in codes F32 by differences. A look at partitions
 * compares the two. */
START_TEST(centroids_in_bytes_have_the_scores_of_floats) {
    cities_settle(x, 0, HALF + QUERIES, (cities){MOST_DIM, CITIES, 7, 3, 1});
    sl_index_params params = cities_params(MOST_DIM, SL_CODES_F32);
    sl_index *index = indexes_make(&params, x, SL_F32, HALF, NULL, 1);
    const sl_graph *graph = &index->graph;
    const sl_partitions *partitions = &graph->partitions;
    ck_assert_int_eq(partitions->codec.codes, SL_CODES_I8);
    sl_walk walk;
    sl_partition_order order = {0};
    uint8_t *scratch = aligned_alloc(64, sl_round_up(sl_partition_order_scratch(graph), 64));
    ck_assert_ptr_nonnull(scratch);
    ck_ok(sl_walk_init(&walk, graph, EF));
    for (size_t q = 0; q < QUERIES; q++) {
        const float *query = x + (HALF + q) * MOST_DIM;
        float centroid[MOST_DIM];
        sl_walk_set_query(&walk, (sl_query){query, SL_F32}, SL_ENCODE_BOTH);
        sl_partition_order_make(&order, &walk, (sl_query){query, SL_F32}, scratch);
        const double coarse = sl_dot_double(query, query, MOST_DIM) / 50;
        for (size_t p = 0; p < partitions->count; p++) {
            sl_decode_row(&partitions->codec, partitions->rows + p * partitions->codec.rows.pitch, centroid);
            const double wanted = -sl_l2_double(query, centroid, MOST_DIM) / 2;
            ck_assert_double_eq_tol((double)order.scores[p], wanted, coarse);
        }
    }
    sl_walk_free(&walk);
    free(scratch);
    ck_assert_double_ge(filtered_recall(index, MOST_DIM, HALF, HALF), 0.99);
    sl_index_free(index);
}
END_TEST

/* Two clusters that lie far apart, of one index each. Centroids have codes I8 near the origin, and else F32. Graphs
 * with partitions are joined, and numbering begins at their centroids. Smaller graphs have no partitions. */
static const struct {
    size_t half;
    float far[2], spread[2];
    sl_codes codes[2];
} halves[] = {{HALF, {4885, -3000}, {0.1f, 0.1f}, {SL_CODES_F32, SL_CODES_F32}},
              {HALF, {1, 4885}, {1, 0.1f}, {SL_CODES_I8, SL_CODES_F32}},
              {HALF, {4885, 1}, {0.1f, 1}, {SL_CODES_F32, SL_CODES_I8}},
              {HALF / 2, {4885, 1}, {0.1f, 1}, {SL_CODES_I8, SL_CODES_I8}}};

/* Joins the partitions of two graphs of so many nodes each: the centroids are those that were there, to the last bit.
 */
static void centroids_stay(sl_index *const *parts, size_t half) {
    const sl_graph *graphs[] = {&parts[0]->graph, &parts[1]->graph};
    const size_t n = 2 * half, dim = graphs[0]->codec.dim;
    uint32_t *of = malloc(n * sizeof *of), *nodes = malloc(n * sizeof *nodes);
    ck_assert(of && nodes);
    for (size_t i = 0; i < n; i++) {
        of[i] = i >= half;
        nodes[i] = (uint32_t)(i % half);
    }
    const sl_copied copied = {graphs, 2, of, nodes, SL_JOIN_OVER_LARGER};
    const sl_index_params params = cities_params(dim, SL_CODES_F32);
    sl_index *joined;
    ck_ok(sl_index_create(&params, &joined));
    ck_ok(sl_join_partitions(&copied, n, &joined->graph));
    const sl_partitions *got = &joined->graph.partitions;
    ck_assert_uint_eq(got->count, graphs[0]->partitions.count + graphs[1]->partitions.count);
    ck_assert_int_eq(got->codec.codes, SL_CODES_F32);
    for (size_t p = 0; p < got->count; p++) {
        const size_t second = p >= graphs[0]->partitions.count;
        const size_t own = p - (second ? graphs[0]->partitions.count : 0);
        const sl_partitions *had = &graphs[second]->partitions;
        float wanted[MOST_DIM], centroid[MOST_DIM];
        sl_decode_row(&had->codec, had->rows + own * had->codec.rows.pitch, wanted);
        sl_decode_row(&got->codec, got->rows + p * got->codec.rows.pitch, centroid);
        ck_assert_mem_eq(centroid, wanted, dim * sizeof *wanted);
        ck_assert_uint_eq(got->starts[p], had->starts[own] + second * half);
    }
    sl_index_free(joined);
    free(of);
    free(nodes);
}

START_TEST(merged_partitions_serve_filters) {
    enum { DIM = 8 };
    const size_t half = halves[_i].half, n = 2 * half;
    sl_index_params params = cities_params(DIM, SL_CODES_F32);
    uint64_t ids[HALF];
    sl_index *parts[2], *merged;
    for (size_t h = 0; h < 2; h++) {
        for (size_t i = 0; i < half; i++)
            ids[i] = h * half + i;
        cities_settle(x, h * half, h * half + half, (cities){DIM, 1, 3 + h, halves[_i].far[h], halves[_i].spread[h]});
        parts[h] = indexes_make(&params, x + h * half * DIM, SL_F32, half, ids, 1);
        ck_assert_int_eq(parts[h]->graph.partitions.count > 0, half == HALF);
        ck_assert_int_eq(parts[h]->graph.partitions.codec.codes, halves[_i].codes[h]);
    }
    if (half == HALF) centroids_stay(parts, half);
    sl_merge_params merging;
    sl_merge_params_init(&merging);
    merging.threads = 1;
    ck_ok(sl_index_merge(parts, 2, &merging, &merged));
    ck_assert_int_eq(merged->graph.partitions.codec.codes, SL_CODES_F32);
    for (size_t asked = 0; asked < n; asked += n - QUERIES) {
        const double recall = filtered_recall(merged, DIM, n, asked);
        ck_assert_msg(recall >= 0.99, "queries from %zu: recall %.3f", asked, recall);
    }
    for (size_t h = 0; h < 2; h++)
        sl_index_free(parts[h]);
    sl_index_free(merged);
}
END_TEST

int main(void) {
    TCase *far = tcase_create("far");
    tcase_set_timeout(far, 120);
    tcase_add_test(far, centroids_in_bytes_have_the_scores_of_floats);
    tcase_add_loop_test(far, merged_partitions_serve_filters, 0, sizeof halves / sizeof *halves);
    return check_main("far_partitions", &far, 1);
}
