/* A walk starts from the nodes of the nearest partition, whatever the upper layers say. Without a usable partition it
 * descends. */
#include "hnsw/graph/entry.h"
#include "hnsw/search/start_nodes.h"
#include "tests/support/centroids.h"
#include "tests/support/check_main.h"
#include "tests/support/clusters.h"
#include "tests/support/indexes.h"
#include "tests/support/scratch.h"

#include <stdlib.h>
#include <string.h>

enum { N = 6000, DIM = 48, K = 10, QUERIES = 60, EF = 24 };

static float *x;
static const float *queries;
static sl_index *idx;

static sl_index *make(sl_metric metric, sl_codes codes) {
    sl_index_params params;
    indexes_params(&params, DIM, metric);
    params.codes = codes;
    params.ef_construction = 30;
    return indexes_make(&params, x, SL_F32, N, NULL, 1);
}

static void set_up(void) {
    x = clusters_make(N + QUERIES, DIM, 0.3, 11);
    ck_assert_ptr_nonnull(x);
    queries = x + (size_t)N * DIM;
    idx = make(SL_METRIC_L2, SL_CODES_I8);
    ck_assert_uint_gt(idx->graph.partitions.count, 10);
    ck_assert_uint_eq(idx->graph.groups.count, 0);
}

static void tear_down(void) {
    sl_index_free(idx);
    free(x);
}

static void no_partitions(sl_index *index) {
    index->graph.partitions = (sl_partitions){0};
    indexes_publish(index);
}

/* The number of the partition that begins there, or count where none does. */
static size_t partition_at(const sl_index *index, size_t node) {
    size_t p = 0;
    while (p < index->graph.partitions.count && index->graph.partitions.starts[p] != node)
        p++;
    return p;
}

static size_t nearest_of_all(const sl_index *index, const float *query) {
    const sl_partitions *partitions = &index->graph.partitions;
    return centroids_nearest(index, partitions, (sl_range){0, partitions->count}, query);
}

static sl_range start_of(sl_walk *walk, const float *query) {
    uint8_t *scratch = aligned_alloc(64, sl_round_up(sl_start_nodes_scratch(walk->graph) + 1, 64));
    sl_walk_set_query(walk, (sl_query){query, SL_F32}, SL_ENCODE_BOTH);
    sl_range range = sl_start_nodes(walk, (sl_query){query, SL_F32}, scratch);
    free(scratch);
    return range;
}

START_TEST(nearest_partition) {
    static const sl_codes codes[] = {SL_CODES_I8, SL_CODES_I16, SL_CODES_F32, SL_CODES_I4};
    sl_index *index = make((sl_metric)(_i / 4), codes[_i % 4]);
    const sl_partitions *partitions = &index->graph.partitions;
    sl_walk walk;
    size_t mean = 0;
    ck_ok(sl_walk_init(&walk, &index->graph, EF));
    for (size_t q = 0; q < QUERIES; q++) {
        walk.evaluations = 0;
        const sl_range range = start_of(&walk, queries + q * DIM);
        size_t p = partition_at(index, range.first);
        ck_assert_uint_eq(p, nearest_of_all(index, queries + q * DIM));
        ck_assert_uint_gt(range.end, range.first);
        ck_assert_uint_le(range.end, partitions->starts[p + 1]);
        ck_assert_uint_le((range.end - range.first) * sl_codec_of_walks(&index->graph)->rows.width, 32 * 1024);
        ck_assert_uint_eq(walk.evaluations, partitions->count);
        mean += walk.evaluations + range.end - range.first;
    }
    mean /= QUERIES;
    ck_assert_uint_le(sl_start_nodes_evaluations(&index->graph), 2 * mean);
    ck_assert_uint_ge(2 * sl_start_nodes_evaluations(&index->graph), mean);
    sl_walk_free(&walk);
    sl_index_free(index);
}
END_TEST

/* No link leads into the partition from elsewhere, and neither does the descent. */
static void cut_off(sl_range island) {
    for (size_t node = 0; node < N; node++) {
        uint32_t *links = sl_links(&idx->graph, node);
        size_t kept = 0;
        for (size_t i = 0; i < idx->graph.m0 && links[i] < N; i++) {
            int inside = links[i] >= island.first && links[i] < island.end;
            if (!inside || (node >= island.first && node < island.end)) links[kept++] = links[i];
        }
        while (kept < idx->graph.m0)
            links[kept++] = SL_NONE;
    }
    for (size_t slot = 0; slot < idx->graph.upper.count; slot++)
        if (idx->graph.upper.nodes[slot] >= island.first && idx->graph.upper.nodes[slot] < island.end)
            idx->graph.upper.nodes[slot] = island.first ? 0 : N - 1;
}

START_TEST(an_island_is_found) {
    const size_t p = nearest_of_all(idx, queries);
    const sl_range island = sl_partition_nodes(&idx->graph.partitions, p, N);
    uint64_t found[K];
    size_t inside[2] = {0, 0};
    cut_off(island);
    for (int without = 0; without < 2; without++) {
        if (without) no_partitions(idx);
        indexes_search(idx, (vector_rows){queries, SL_F32, 1}, K, EF, found, NULL);
        for (size_t i = 0; i < K; i++)
            for (size_t node = island.first; node < island.end; node++)
                inside[without] += sl_id_of(&idx->graph, (uint32_t)node) == found[i];
    }
    ck_assert_uint_gt(inside[0], K / 2);
    ck_assert_uint_eq(inside[1], 0);
}
END_TEST

/* No link leads out of a partition. */
static void lock_in(sl_range island) {
    for (size_t node = island.first; node < island.end; node++) {
        uint32_t *links = sl_links(&idx->graph, node);
        size_t kept = 0;
        for (size_t i = 0; i < idx->graph.m0 && links[i] != SL_NONE; i++)
            if (links[i] >= island.first && links[i] < island.end) links[kept++] = links[i];
        while (kept < idx->graph.m0)
            links[kept++] = SL_NONE;
    }
}

/* A vector that the entry point reaches is found from any partition where a walk starts. */
START_TEST(the_entry_point_begins_too) {
    enum { MANY = 1000 };
    const uint32_t entry = sl_entry_get(&idx->graph).node;
    static uint64_t found[MANY];
    size_t q = 0;
    sl_range island;
    do
        island = sl_partition_nodes(&idx->graph.partitions, nearest_of_all(idx, queries + q++ * DIM), N);
    while (entry >= island.first && entry < island.end);
    ck_assert_uint_lt(island.end - island.first, MANY / 2);
    lock_in(island);
    indexes_search(idx, (vector_rows){queries + (q - 1) * DIM, SL_F32, 1}, MANY, MANY, found, NULL);
    ck_assert_uint_ne(found[MANY - 1], SL_NO_ID);
}
END_TEST

/* As many evaluations or fewer find as much: the walk starts near the query. */
START_TEST(walks_find_more) {
    static uint64_t truth[QUERIES * K], found[QUERIES * K];
    double recall[2];
    indexes_exact(SL_METRIC_L2, DIM, (vector_rows){x, SL_F32, N}, (vector_rows){queries, SL_F32, QUERIES}, K, truth);
    for (int without = 0; without < 2; without++) {
        if (without) no_partitions(idx);
        indexes_search(idx, (vector_rows){queries, SL_F32, QUERIES}, K, K, found, NULL);
        recall[without] = indexes_recall(found, truth, QUERIES, K);
    }
    ck_assert_msg(recall[0] >= recall[1] + 0.01, "%g, by the way down %g", recall[0], recall[1]);
}
END_TEST

/* Also where more nodes are near than it begins at. */
START_TEST(wherever_rows_lie) {
    static uint64_t before[QUERIES * K], after[QUERIES * K];
    scratch place;
    scratch_open(&place);
    sl_index *index = make(SL_METRIC_COSINE, _i ? SL_CODES_F32 : SL_CODES_I8);
    indexes_search(index, (vector_rows){queries, SL_F32, QUERIES}, K, K, before, NULL);
    for (int layout = SL_LAYOUT_ARRAYS; layout <= SL_LAYOUT_RECORDS; layout++) {
        sl_save_params params;
        sl_save_params_init(&params);
        params.layout = (sl_layout)layout;
        ck_ok(sl_index_save(index, place.path, &params));
        sl_index *opened = indexes_open(place.path, SL_PLACE_MAP);
        indexes_search(opened, (vector_rows){queries, SL_F32, QUERIES}, K, K, after, NULL);
        ck_assert_mem_eq(before, after, sizeof before);
        sl_index_free(opened);
    }
    sl_index_free(index);
    scratch_close(&place);
}
END_TEST

static void answers_as_without(void) {
    static uint64_t with[QUERIES * K], without[QUERIES * K];
    indexes_search(idx, (vector_rows){queries, SL_F32, QUERIES}, K, EF, with, NULL);
    no_partitions(idx);
    indexes_search(idx, (vector_rows){queries, SL_F32, QUERIES}, K, EF, without, NULL);
    ck_assert_mem_eq(with, without, sizeof with);
}

/* The most partitions there may be, each with many vectors. */
START_TEST(large_partitions_are_left) {
    ck_assert_uint_gt(sl_start_nodes_scratch(&idx->graph), 0);
    sl_partitions *partitions = &idx->graph.partitions;
    const size_t count = partitions->count;
    const uint32_t last = partitions->starts[1];
    partitions->count = N / (2 * SL_PARTITION_ROWS + 1);
    ck_assert_uint_eq(sl_start_nodes_scratch(&idx->graph), 0);
    ck_assert_uint_eq(sl_start_nodes_evaluations(&idx->graph), 0);
    partitions->count = 1;
    partitions->starts[1] = N;
    indexes_publish(idx);
    static uint64_t before[QUERIES * K], after[QUERIES * K];
    indexes_search(idx, (vector_rows){queries, SL_F32, QUERIES}, K, EF, before, NULL);
    partitions->starts[1] = last;
    partitions->count = count;
    indexes_publish(idx);
    no_partitions(idx);
    indexes_search(idx, (vector_rows){queries, SL_F32, QUERIES}, K, EF, after, NULL);
    ck_assert_mem_eq(before, after, sizeof before);
}
END_TEST

/* A file may name partitions of no nodes, or of nodes that are not there. */
START_TEST(empty_ones_are_left) {
    for (size_t p = 0; p <= idx->graph.partitions.count; p++)
        idx->graph.partitions.starts[p] = _i == 0   ? 0
                                          : _i == 1 ? UINT32_MAX
                                                    : (uint32_t)(idx->graph.partitions.count - p);
    answers_as_without();
}
END_TEST

/* Partitions that go on behind the last node, and centroids that are no numbers. */
START_TEST(lies_do_no_harm) {
    const sl_partitions *partitions = &idx->graph.partitions;
    for (size_t p = 0; _i == 0 && p <= partitions->count; p++)
        partitions->starts[p] = p % 2 ? UINT32_MAX : N - 5;
    if (_i == 1) memset(partitions->rows, 0xff, partitions->count * partitions->codec.rows.pitch);
    uint64_t found[QUERIES * K];
    sl_walk walk;
    ck_ok(sl_walk_init(&walk, &idx->graph, EF));
    size_t some = 0;
    for (size_t q = 0; q < QUERIES; q++) {
        const sl_range range = start_of(&walk, queries + q * DIM);
        ck_assert_uint_le(range.end, N);
        some += range.first < range.end;
    }
    ck_assert_uint_gt(some, 0);
    sl_walk_free(&walk);
    indexes_search(idx, (vector_rows){queries, SL_F32, QUERIES}, K, EF, found, NULL);
    for (size_t i = 0; i < QUERIES * K; i++)
        ck_assert_uint_lt(found[i], N);
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("start");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_loop_test(tests, nearest_partition, 0, 12);
    tcase_add_test(tests, an_island_is_found);
    tcase_add_test(tests, the_entry_point_begins_too);
    tcase_add_test(tests, walks_find_more);
    tcase_add_loop_test(tests, wherever_rows_lie, 0, 2);
    tcase_add_test(tests, large_partitions_are_left);
    tcase_add_loop_test(tests, empty_ones_are_left, 0, 3);
    tcase_add_loop_test(tests, lies_do_no_harm, 0, 2);
    return check_main("start", &tests, 1);
}
