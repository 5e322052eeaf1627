/* Vectors linked from leaves: the same bytes on every tier and at any number of threads, as good as inserted vectors,
 * sound among duplicates, and all or nothing. */
#include "base/random.h"
#include "distance/kernels.h"
#include "hnsw/construct/from_leaves.h"
#include "hnsw/construct/leaves_make.h"
#include "hnsw/construct/neighbour_lists.h"
#include "hnsw/construct/reachability_sample.h"
#include "hnsw/construct/similarity.h"
#include "hnsw/search/pool.h"
#include "tests/support/check_main.h"
#include "tests/support/clusters.h"
#include "tests/support/faults.h"
#include "tests/support/indexes.h"
#include "tests/support/sanitized.h"
#include "tests/support/scratch.h"

#include <float.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { N = 6000, DIM = 20, K = 10, QUERIES = 100, COPIES = 300 };

static float *x, *queries;
static scratch place;

static void set_up(void) {
    x = clusters_make(N + QUERIES, DIM, 1.5, 7);
    queries = x + (size_t)N * DIM;
    scratch_open(&place);
}

static void tear_down(void) {
    scratch_close(&place);
    free(x);
}

static void params_of(sl_index_params *params, sl_metric metric, sl_codes codes) {
    indexes_params(params, DIM, metric);
    params->codes = codes;
    params->ef_construction = 100;
}

static sl_index *make_index(const sl_index_params *params, const sl_add_params *add, const void *rows, sl_dtype dtype) {
    sl_index *index;
    ck_ok(sl_index_create(params, &index));
    ck_ok(sl_index_add(index, rows, dtype, N, 0, NULL, add));
    return index;
}

/* Moves the vectors into clusters far apart. Vector i is in cluster i % clusters. */
static void part_clusters(size_t clusters) {
    float *centres = clusters_make(clusters, DIM, 0, 11);
    for (size_t i = 0; i < (size_t)(N + QUERIES) * DIM; i++)
        x[i] = centres[i / DIM % clusters * DIM + i % DIM] + (float)(sl_random_unit(13, i) - 0.5) / 4;
    free(centres);
}

static sl_add_params by(sl_builder builder, size_t threads) {
    sl_add_params add;
    sl_add_params_init(&add);
    add.builder = builder;
    add.threads = threads;
    return add;
}

/* ---------------------------------------------------------------------------------------------------------------
 * The same bytes
 * ------------------------------------------------------------------------------------------------------------- */

static const struct kind {
    sl_metric metric;
    sl_dtype dtype;
    sl_codes codes;
    sl_refine refine;
    size_t clusters; /* 0: walks lose no vectors */
} kinds[] = {
    {SL_METRIC_L2, SL_F32, SL_CODES_I8, SL_REFINE_NONE, 100},
    {SL_METRIC_L2, SL_I16, SL_CODES_I4, SL_REFINE_NONE, 0},
    {SL_METRIC_COSINE, SL_F32, SL_CODES_I8, SL_REFINE_NONE, 0},
    {SL_METRIC_COSINE, SL_F32, SL_CODES_I4, SL_REFINE_NONE, 0},
    {SL_METRIC_L2, SL_F32, SL_CODES_I16, SL_REFINE_NONE, 0},
    {SL_METRIC_L2, SL_F32, SL_CODES_F32, SL_REFINE_NONE, 0},
    {SL_METRIC_L2, SL_U8, SL_CODES_I8, SL_REFINE_NONE, 0},
    {SL_METRIC_COSINE, SL_I8, SL_CODES_I4, SL_REFINE_NONE, 0},
    {SL_METRIC_IP, SL_F32, SL_CODES_I8, SL_REFINE_NONE, 0},
    {SL_METRIC_IP, SL_F32, SL_CODES_I4, SL_REFINE_NONE, 0},
    {SL_METRIC_IP, SL_U8, SL_CODES_I8, SL_REFINE_NONE, 0},
};

static unsigned char *bytes_of(const struct kind *kind, const void *rows, const sl_kernels *kernels, size_t threads,
                               size_t *size) {
    sl_index_params params;
    params_of(&params, kind->metric, kind->codes);
    params.dtype = kind->dtype;
    params.refine = kind->refine;
    sl_index *index;
    sl_add_params add = by(SL_BUILDER_LEAVES, threads);
    ck_ok(sl_index_create(&params, &index));
    index->graph.kernels = kernels;
    ck_ok(sl_index_add(index, rows, kind->dtype, N, 0, NULL, &add));
    ck_ok(indexes_save(index, place.path));
    sl_index_free(index);
    return file_read(place.path, size);
}

/* Some rows are duplicates, and many scores of integers are equal. */
static void *rows_of(sl_dtype dtype) {
    float *floats = malloc((size_t)N * DIM * sizeof *floats);
    ck_assert_ptr_nonnull(floats);
    memcpy(floats, x, (size_t)N * DIM * sizeof *floats);
    for (size_t i = 0; i < COPIES; i++)
        memcpy(floats + i * 7 * DIM, floats + N / 2 * DIM, DIM * sizeof *floats);
    if (dtype == SL_F32) return floats;
    int8_t *bytes = malloc((size_t)N * DIM);
    int16_t *words = malloc((size_t)N * DIM * sizeof *words);
    ck_assert(bytes && words);
    for (size_t i = 0; i < (size_t)N * DIM; i++)
        words[i] = bytes[i] = (int8_t)(floats[i] < -1 ? 1 : floats[i] > 2 ? 8 : 3 + (int)(2 * floats[i]));
    free(floats);
    free(dtype == SL_I16 ? (void *)bytes : words);
    return dtype == SL_I16 ? (void *)words : bytes;
}

START_TEST(threads_and_tiers_change_nothing) {
    const struct kind *kind = &kinds[_i];
    if (SANITIZED && _i % 3) return;
    if (kind->clusters) part_clusters(kind->clusters);
    void *rows = rows_of(kind->dtype);
    size_t size, first_size;
    unsigned char *first = bytes_of(kind, rows, sl_kernels_best(), 1, &first_size);
    for (int isa = 0; isa < SL_ISA_COUNT; isa++) {
        const sl_kernels *kernels = sl_kernels_of((sl_isa)isa);
        if (!kernels || (SANITIZED && kernels != sl_kernels_best())) continue;
        unsigned char *again = bytes_of(kind, rows, kernels, (size_t)isa % 3 + 2, &size);
        ck_assert_uint_eq(size, first_size);
        ck_assert_msg(memcmp(first, again, size) == 0, "%s gives other bytes", sl_isa_name((sl_isa)isa));
        free(again);
    }
    free(first);
    free(rows);
}
END_TEST

START_TEST(zeros_are_one_number) {
    ck_assert(sl_neighbour_of(-0.0f, 5) == sl_neighbour_of(0.0f, 5));
    ck_assert(sl_neighbour_of(-0.0f, 5) > sl_neighbour_of(-FLT_MIN, 5) &&
              sl_neighbour_of(0.0f, 5) < sl_neighbour_of(FLT_MIN, 5));
    ck_assert(sl_pool_key(-0.0f, 5) == sl_pool_key(0.0f, 5));
    ck_assert(sl_pool_key(-0.0f, 6) > sl_pool_key(0.0f, 5));
}
END_TEST

/* Products with a row of zeros are 0 or -0, which are one score. A list whose worst score is 0 takes others of score 0,
 * whenever its thread gets to them. */
START_TEST(zero_rows_have_one_order) {
    const struct kind kind = {SL_METRIC_IP, SL_F32, _i % 2 ? SL_CODES_I8 : SL_CODES_I4, SL_REFINE_NONE, 0};
    const size_t every = _i < 2 ? 3 : N - 1, turns = SANITIZED ? 1 : 8;
    size_t size, first_size;
    for (size_t i = 0; i < N; i++)
        for (size_t d = 0; d < DIM; d++)
            x[i * DIM + d] = i % every ? (float)(sl_random_unit(29, i * DIM + d) - 0.5) : 0;
    unsigned char *first = bytes_of(&kind, x, sl_kernels_best(), 1, &first_size);
    for (size_t turn = 0; turn < turns; turn++) {
        unsigned char *again = bytes_of(&kind, x, sl_kernels_best(), 32, &size);
        ck_assert_uint_eq(size, first_size);
        ck_assert_msg(memcmp(first, again, size) == 0, "turn %zu gives other bytes", turn);
        free(again);
    }
    free(first);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * The graph
 * ------------------------------------------------------------------------------------------------------------- */

static double recall_of(const sl_index *index, const uint64_t *truth, size_t ef) {
    static uint64_t found[QUERIES * K];
    indexes_search(index, (vector_rows){queries, SL_F32, QUERIES}, K, ef, found, NULL);
    return indexes_recall(found, truth, QUERIES, K);
}

START_TEST(finds_what_inserting_finds) {
    static uint64_t truth[QUERIES * K];
    const sl_metric metric = (sl_metric)_i;
    sl_index_params params;
    params_of(&params, metric, SL_CODES_F32);
    const sl_add_params leaves = by(SL_BUILDER_LEAVES, 2), insert = by(SL_BUILDER_INSERT, 1);
    sl_index *at_once = make_index(&params, &leaves, x, SL_F32), *inserted = make_index(&params, &insert, x, SL_F32);
    indexes_exact(metric, DIM, (vector_rows){x, SL_F32, N}, (vector_rows){queries, SL_F32, QUERIES}, K, truth);
    for (size_t ef = 10; ef <= 80; ef *= 2)
        ck_assert_double_ge(recall_of(at_once, truth, ef), recall_of(inserted, truth, ef) - 0.005);
    ck_assert_double_ge(recall_of(at_once, truth, 80), 0.97);
    indexes_sound(at_once);
    sl_index_free(at_once);
    sl_index_free(inserted);
}
END_TEST

/* Counts the entries of a point's list that are among the equally many best by inner product. */
static size_t best_found(const sl_index *index, const sl_neighbour_lists *lists, uint32_t point) {
    static sl_neighbour best[N];
    sl_similarity similarity;
    size_t found = 0;
    ck_ok(sl_similarity_init(&similarity, &index->graph));
    sl_similarity_set(&similarity, point);
    for (uint32_t other = 0; other < N; other++) {
        float score;
        sl_similarity_many(&similarity, &other, 1, &score);
        best[other] = other == point ? 0 : sl_neighbour_of(score, other);
    }
    sl_similarity_free(&similarity);
    sl_neighbours_keep(best, N, lists->width);
    for (size_t i = 0; i < lists->width; i++)
        for (size_t j = 0; j < lists->count[point]; j++)
            found += sl_neighbour_point(best[i]) == sl_neighbour_point(lists->entries[point * lists->width + j]);
    return found;
}

/* Under inner product the best of a vector are long, and few lie in its direction. One leaf of each partitioning finds
 * most of them. */
START_TEST(long_vectors_are_found) {
    enum { WIDTH = 20, STEP = 30 };
    sl_index_params params;
    sl_leaves leaves;
    sl_neighbour_lists lists;
    sl_progress progress;
    params_of(&params, SL_METRIC_IP, SL_CODES_I8);
    const sl_add_params add = by(SL_BUILDER_LEAVES, 2);
    sl_index *index = make_index(&params, &add, x, SL_F32);
    sl_progress_start(&progress, NULL, NULL, 0);
    const sl_points points = {
        .graph = &index->graph, .codec = &index->graph.codec, .n = N, .threads = 2, .progress = &progress};
    ck_ok(sl_leaves_make(&leaves, &points, 1));
    ck_ok(sl_neighbour_lists_make(&lists, &points, &leaves, WIDTH));
    size_t found = 0;
    for (uint32_t point = 0; point < N; point += STEP)
        found += best_found(index, &lists, point);
    ck_assert_msg(found >= N / STEP * WIDTH * 95 / 100, "%zu of %d are found", found, N / STEP * WIDTH);
    sl_neighbour_lists_free(&lists);
    sl_leaves_free(&leaves);
    sl_index_free(index);
}
END_TEST

/* The mean squared distance of points from the centre of their leaf. */
static double leaves_spread(const sl_leaves *leaves) {
    double sum = 0;
    for (size_t leaf = 0; leaf < leaves->count; leaf++)
        for (size_t d = 0; d < DIM; d++) {
            const uint64_t first = leaves->starts[leaf], end = leaves->starts[leaf + 1];
            double mean = 0;
            for (uint64_t i = first; i < end; i++)
                mean += (double)x[(size_t)leaves->points[i] * DIM + d] / (double)(end - first);
            for (uint64_t i = first; i < end; i++)
                sum += pow((double)x[(size_t)leaves->points[i] * DIM + d] - mean, 2);
        }
    return sum / (double)leaves->places;
}

/* Under L2 leaves are as tight far from the origin as near it. The vectors lie in two squares, on both sides of the
 * origin. */
START_TEST(leaves_far_from_the_origin) {
    double spread[2];
    for (int far = 0; far < 2; far++) {
        sl_index_params params;
        sl_leaves leaves;
        sl_progress progress;
        for (size_t i = 0; i < (size_t)N * DIM; i++)
            x[i] = (float)(i / DIM % 2 ? 1 : -1) * (i % DIM < 2 ? (float)sl_random_unit(13, i) : far ? 10 : 0);
        params_of(&params, SL_METRIC_L2, SL_CODES_I8);
        const sl_add_params add = by(SL_BUILDER_LEAVES, 2);
        sl_index *index = make_index(&params, &add, x, SL_F32);
        sl_progress_start(&progress, NULL, NULL, 0);
        const sl_points points = {
            .graph = &index->graph, .codec = &index->graph.codec, .n = N, .threads = 2, .progress = &progress};
        ck_ok(sl_leaves_make(&leaves, &points, 1));
        /* Nodes have an order of their own. */
        for (size_t i = 0; i < leaves.places; i++)
            leaves.points[i] = (uint32_t)sl_id_of(&index->graph, leaves.points[i]);
        spread[far] = leaves_spread(&leaves);
        sl_leaves_free(&leaves);
        sl_index_free(index);
    }
    ck_assert_double_le(spread[1], 1.3 * spread[0]);
}
END_TEST

/* The recall of walks from the entry point, as if there were no partitions. */
static double recall_from_above(sl_index *index, const uint64_t *truth, size_t ef) {
    const size_t count = index->graph.partitions.count;
    index->graph.partitions.count = 0;
    const double recall = recall_of(index, truth, ef);
    index->graph.partitions.count = count;
    return recall;
}

/* Clusters of sixty vectors, so lists of nearest nodes don't lead out of a cluster. Links between clusters exist
 * too. */
START_TEST(clusters_stay_in_touch) {
    enum { CLUSTERS = N / 60 };
    static uint64_t truth[QUERIES * K];
    sl_index_params params;
    params_of(&params, SL_METRIC_L2, SL_CODES_F32);
    part_clusters(CLUSTERS);
    const sl_add_params leaves = by(SL_BUILDER_LEAVES, 2), insert = by(SL_BUILDER_INSERT, 1);
    sl_index *at_once = make_index(&params, &leaves, x, SL_F32), *inserted = make_index(&params, &insert, x, SL_F32);
    indexes_exact(SL_METRIC_L2, DIM, (vector_rows){x, SL_F32, N}, (vector_rows){queries, SL_F32, QUERIES}, K, truth);
    for (size_t ef = 10; ef <= 80; ef *= 2)
        ck_assert_double_ge(recall_from_above(at_once, truth, ef), recall_from_above(inserted, truth, ef) - 0.005);
    sl_index_free(at_once);
    sl_index_free(inserted);
}
END_TEST

static int loses_many(const sl_index *index) {
    sl_progress progress = {0};
    int many;
    sl_progress_start(&progress, NULL, NULL, 0);
    ck_ok(sl_reachability_sample(&index->graph, 0, 2, &progress, &many));
    return many;
}

/* Cuts all links of layer 0 from one cluster to another. */
static void cut_between(sl_index *index, size_t clusters) {
    const sl_graph *graph = &index->graph;
    for (size_t node = 0; node < graph->n; node++) {
        uint32_t *links = sl_links(graph, node);
        size_t kept = 0;
        for (size_t i = 0; i < graph->m0 && links[i] != SL_NONE; i++)
            if ((sl_id_of(graph, (uint32_t)node) - sl_id_of(graph, links[i])) % clusters == 0) links[kept++] = links[i];
        while (kept < graph->m0)
            links[kept++] = SL_NONE;
    }
}

static size_t links_of(const sl_index *index) {
    const sl_graph *graph = &index->graph;
    size_t count = 0;
    for (size_t i = 0; i < graph->n * graph->m0; i++)
        count += sl_links(graph, 0)[i] != SL_NONE;
    return count;
}

/* Walks reach all clusters by the links between them, and few clusters without these. */
START_TEST(lost_nodes_are_noticed) {
    enum { CLUSTERS = 500 };
    const sl_metric metric = (sl_metric)_i;
    sl_index_params params;
    params_of(&params, metric, SL_CODES_I8);
    const sl_add_params leaves = by(SL_BUILDER_LEAVES, 2);
    sl_index *index = make_index(&params, &leaves, x, SL_F32);
    ck_assert(!loses_many(index));
    ck_assert_uint_lt(links_of(index), 8 * N); /* no samples were linked: they'd make it 9 a vector */
    sl_index_free(index);
    part_clusters(CLUSTERS);
    index = make_index(&params, &leaves, x, SL_F32);
    ck_assert(!loses_many(index));
    cut_between(index, CLUSTERS);
    ck_assert(loses_many(index));
    sl_index_free(index);
}
END_TEST

/* A thread whose stack is as small as the header allows. */
static void *build_on_small_stack(void *unused) {
    sl_index_params params;
    params_of(&params, SL_METRIC_COSINE, SL_CODES_I4);
    const sl_add_params leaves = by(SL_BUILDER_LEAVES, 1);
    sl_index *index = make_index(&params, &leaves, x, SL_F32), *merged, *opened;
    sl_search_params search;
    sl_search_params_init(&search);
    search.threads = 1;
    search.probes = 4;
    static uint64_t ids[QUERIES * K];
    ck_ok(sl_index_search(index, queries, SL_F32, QUERIES, 0, K, &search, ids, NULL, NULL));
    ck_ok(sl_index_merge(&index, 1, NULL, &merged));
    ck_ok(indexes_save(merged, place.path));
    ck_ok(sl_index_open(place.path, NULL, &opened));
    ck_ok(sl_index_search(opened, queries, SL_F32, QUERIES, 0, K, &search, ids, NULL, NULL));
    sl_index_free(opened);
    sl_index_free(merged);
    sl_index_free(index);
    return unused;
}

START_TEST(small_stacks_serve) {
    pthread_t thread;
    pthread_attr_t attributes;
    if (SANITIZED) return;
    ck_assert_int_eq(pthread_attr_init(&attributes), 0);
    ck_assert_int_eq(pthread_attr_setstacksize(&attributes, 64 << 10), 0);
    ck_assert_int_eq(pthread_create(&thread, &attributes, build_on_small_stack, NULL), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    pthread_attr_destroy(&attributes);
}
END_TEST

/* AUTO links from leaves where they give the better graph. Two runs on several threads then have the same bytes. */
START_TEST(auto_chooses) {
    sl_index_params params;
    params_of(&params, (sl_metric)_i, SL_CODES_I8);
    const sl_add_params automatic = by(SL_BUILDER_AUTO, 2), leaves = by(SL_BUILDER_LEAVES, 2);
    const sl_add_params insert = by(SL_BUILDER_INSERT, 1), alone = by(SL_BUILDER_AUTO, 1);
    params.m = 16;
    for (int few = 0; few < 2; few++) {
        params.ef_construction = few ? 199 : 200;
        sl_index *one = make_index(&params, few ? &alone : &automatic, x, SL_F32);
        sl_index *other = make_index(&params, few ? &insert : &leaves, x, SL_F32);
        size_t links = one->graph.m0 * N * sizeof(uint32_t);
        ck_assert_mem_eq(sl_links(&one->graph, 0), sl_links(&other->graph, 0), links);
        sl_index_free(one);
        sl_index_free(other);
    }
}
END_TEST

/* Nine of ten vectors are duplicates of one. A search finds each other vector among them, and as many duplicates as it
 * asks for. */
START_TEST(duplicates_hide_nothing) {
    enum { MANY = N / 10 * 9 };
    static uint64_t found[MANY];
    sl_index_params params;
    params_of(&params, SL_METRIC_L2, _i ? SL_CODES_I4 : SL_CODES_I8);
    for (size_t i = 0; i < N; i++)
        if (i % 10) memcpy(x + i * DIM, x + DIM, DIM * sizeof *x);
    const sl_add_params add = by(SL_BUILDER_LEAVES, 2);
    sl_index *index = make_index(&params, &add, x, SL_F32);
    indexes_sound(index);
    indexes_search(index, (vector_rows){x + DIM, SL_F32, 1}, MANY, MANY, found, NULL);
    for (size_t i = 0; i < MANY; i++)
        ck_assert_uint_ne(found[i] % 10, 0);
    size_t lost = 0;
    for (size_t i = 0; i < N; i += 10) {
        indexes_search(index, (vector_rows){x + i * DIM, SL_F32, 1}, 1, 20, found, NULL);
        lost += found[0] != i;
    }
    ck_assert_msg(lost <= 2, "%zu others are not found", lost);
    sl_index_free(index);
}
END_TEST

START_TEST(all_may_be_alike) {
    static uint64_t found[N];
    sl_index_params params;
    params_of(&params, SL_METRIC_COSINE, SL_CODES_I8);
    for (size_t i = 1; i < N; i++)
        memcpy(x + i * DIM, x, DIM * sizeof *x);
    const sl_add_params add = by(SL_BUILDER_LEAVES, 2);
    sl_index *index = make_index(&params, &add, x, SL_F32);
    indexes_sound(index);
    indexes_search(index, (vector_rows){x, SL_F32, 1}, N, N, found, NULL);
    ck_assert_uint_ne(found[N - 1], SL_NO_ID);
    sl_index_free(index);
}
END_TEST

/* Later vectors are inserted, and found among the others. */
START_TEST(grows_by_inserting) {
    static uint64_t found[QUERIES];
    sl_index_params params;
    params_of(&params, SL_METRIC_COSINE, SL_CODES_I4);
    sl_add_params add = by(SL_BUILDER_LEAVES, 2);
    sl_index *index = make_index(&params, &add, x, SL_F32);
    add.builder = SL_BUILDER_AUTO;
    ck_ok(sl_index_add(index, queries, SL_F32, QUERIES, 0, NULL, &add));
    indexes_search(index, (vector_rows){queries, SL_F32, QUERIES}, 1, 60, found, NULL);
    for (size_t q = 0; q < QUERIES; q++)
        ck_assert_uint_eq(found[q], N + q);
    indexes_sound(index);
    sl_index_free(index);
}
END_TEST

/* The most links a node may have: each node of the lowest layer has some hundred candidates. */
START_TEST(nodes_may_have_many_links) {
    static uint64_t found[QUERIES], truth[QUERIES];
    sl_index_params params;
    params_of(&params, SL_METRIC_L2, SL_CODES_I8);
    params.m = SL_MAX_M;
    params.ef_construction = SL_MAX_M;
    const sl_add_params add = by(SL_BUILDER_LEAVES, 2);
    sl_index *index = make_index(&params, &add, x, SL_F32);
    indexes_sound(index);
    indexes_exact(SL_METRIC_L2, DIM, (vector_rows){x, SL_F32, N}, (vector_rows){queries, SL_F32, QUERIES}, 1, truth);
    indexes_search(index, (vector_rows){queries, SL_F32, QUERIES}, 1, 40, found, NULL);
    ck_assert_double_ge(indexes_recall(found, truth, QUERIES, 1), 0.95);
    sl_index_free(index);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Refused, cancelled, without memory
 * ------------------------------------------------------------------------------------------------------------- */

START_TEST(says_what_it_lacks) {
    sl_index_params params;
    sl_index *index;
    const sl_add_params add = by(SL_BUILDER_LEAVES, 1), bad = by((sl_builder)3, 1);
    params_of(&params, SL_METRIC_L2, SL_CODES_I8);
    ck_ok(sl_index_create(&params, &index));
    ck_fails(sl_index_add(index, x, SL_F32, 4095, 0, NULL, &add), SL_EUNSUPPORTED, "4,096 vectors");
    ck_fails(sl_index_add(index, x, SL_F32, N, 0, NULL, &bad), SL_EINVAL, "builder is 3");
    ck_ok(sl_index_add(index, x, SL_F32, 4096, 0, NULL, &add));
    ck_fails(sl_index_add(index, x + 4096 * DIM, SL_F32, 10, 0, NULL, &add), SL_EUNSUPPORTED, "4,096 vectors");
    ck_assert_uint_eq(sl_index_size(index), 4096);
    sl_index_free(index);
}
END_TEST

typedef struct teller {
    uint64_t last, stop_at;
} teller;

static int tell(void *ctx, uint64_t done, uint64_t total) {
    teller *teller = ctx;
    ck_assert_uint_ge(done, teller->last);
    ck_assert_uint_le(done, total);
    teller->last = done;
    return done >= teller->stop_at;
}

START_TEST(tells_and_can_be_cancelled) {
    teller teller = {.stop_at = 0};
    sl_index_params params;
    sl_index *index;
    sl_add_params add = by(SL_BUILDER_LEAVES, 2);
    params_of(&params, SL_METRIC_L2, SL_CODES_I8);
    add.progress = tell;
    add.progress_ctx = &teller;
    ck_ok(sl_index_create(&params, &index));
    /* Cancels at the first report, while centres are learnt; while pairs are compared; while links are selected. */
    for (size_t i = 0; i < 3; i++) {
        teller = (struct teller){.stop_at = i * N / 3 + (i > 0)};
        ck_fails(sl_index_add(index, x, SL_F32, N, 0, NULL, &add), SL_ECANCELED, "");
        ck_assert_uint_eq(sl_index_size(index), 0);
    }
    teller.last = 0;
    teller.stop_at = UINT64_MAX;
    ck_ok(sl_index_add(index, x, SL_F32, N, 0, NULL, &add));
    ck_assert_uint_eq(teller.last, N);
    indexes_sound(index);
    sl_index_free(index);
}
END_TEST

/* Whichever allocation fails, the call fails and leaves the index as before, or succeeds. AUTO inserts instead. */
START_TEST(memory_may_run_out) {
    fault_allocator memory;
    const size_t step = (SANITIZED ? 61 : 7) * (_i ? 5 : 1);
    sl_index_params params;
    params_of(&params, SL_METRIC_L2, SL_CODES_I4);
    params.ef_construction = _i ? 200 : 100;
    params.m = _i ? 16 : 4;
    part_clusters(100);
    const sl_add_params add = by(_i ? SL_BUILDER_AUTO : SL_BUILDER_LEAVES, 1);
    size_t failures = 0;
    for (size_t fail_at = 1;; fail_at += step) {
        sl_index *index;
        fault_allocator_init(&memory, fail_at);
        params.allocator = &memory.allocator;
        sl_status status = sl_index_create(&params, &index);
        if (status == SL_OK) {
            status = sl_index_add(index, x, SL_F32, SL_FROM_LEAVES_LEAST, 0, NULL, &add);
            ck_assert_uint_eq(sl_index_size(index), status == SL_OK ? SL_FROM_LEAVES_LEAST : 0);
            sl_index_free(index);
        }
        ck_assert_uint_eq(memory.live_blocks, 0);
        ck_assert(status == SL_OK || status == SL_ENOMEM);
        failures += status == SL_ENOMEM;
        if (memory.calls < fail_at) break;
    }
    ck_assert_uint_gt(failures, 0);
}
END_TEST

int main(void) {
    TCase *tests[] = {tcase_create("leaves"), tcase_create("threads")};
    for (int i = 0; i < 2; i++) {
        tcase_set_timeout(tests[i], 300);
        tcase_add_checked_fixture(tests[i], set_up, tear_down);
    }
    tcase_add_loop_test(tests[1], threads_and_tiers_change_nothing, 0, sizeof kinds / sizeof *kinds);
    tcase_add_test(tests[1], zeros_are_one_number);
    tcase_add_loop_test(tests[1], zero_rows_have_one_order, 0, 4);
    tcase_add_loop_test(tests[0], finds_what_inserting_finds, SL_METRIC_IP, SL_METRIC_L2 + 1);
    tcase_add_test(tests[0], long_vectors_are_found);
    tcase_add_test(tests[0], leaves_far_from_the_origin);
    tcase_add_test(tests[0], clusters_stay_in_touch);
    tcase_add_test(tests[0], small_stacks_serve);
    tcase_add_loop_test(tests[0], lost_nodes_are_noticed, SL_METRIC_COSINE, SL_METRIC_L2 + 1);
    tcase_add_loop_test(tests[0], auto_chooses, SL_METRIC_IP, SL_METRIC_L2 + 1);
    tcase_add_loop_test(tests[0], duplicates_hide_nothing, 0, 2);
    tcase_add_test(tests[0], all_may_be_alike);
    tcase_add_test(tests[0], grows_by_inserting);
    tcase_add_test(tests[0], nodes_may_have_many_links);
    tcase_add_test(tests[0], says_what_it_lacks);
    tcase_add_test(tests[1], tells_and_can_be_cancelled);
    tcase_add_loop_test(tests[0], memory_may_run_out, 0, 2);
    return check_main("leaves", tests, 2);
}
