/* Partitions: every node is in one, and near nodes are together. Partitions don't depend on the number of threads.
 * Files that hold partitions aren't trusted. Partitions change only the numbers of nodes. */
#include "distance/double.h"
#include "hnsw/construct/partition_make.h"
#include "hnsw/construct/renumber.h"
#include "hnsw/graph/partition.h"
#include "hnsw/graph/vectors.h"
#include "hnsw/search/settings.h"
#include "tests/support/check_main.h"
#include "tests/support/clusters.h"
#include "tests/support/faults.h"
#include "tests/support/indexes.h"
#include "tests/support/sanitized.h"
#include "tests/support/scratch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N = 6000, DIM = 12, K = 10, QUERIES = 50, EF = 80 };

static float *x;
static scratch place;

static void set_up(void) {
    x = clusters_make(2 * N + QUERIES, DIM, 0.3, 5);
    scratch_open(&place);
}

static void tear_down(void) {
    scratch_close(&place);
    free(x);
}

static sl_index *make_index(const sl_index_params *params, const void *rows, sl_dtype dtype, size_t n) {
    return indexes_make(params, rows, dtype, n, NULL, 2);
}

static sl_index *make_floats(size_t n, sl_metric metric) {
    sl_index_params params;
    indexes_params(&params, DIM, metric);
    params.ef_construction = 30;
    return make_index(&params, x, SL_F32, n);
}

static sl_index *open_at(const char *path, sl_place at) {
    sl_open_params params;
    sl_open_params_init(&params);
    params.place = at;
    sl_index *index;
    ck_ok(sl_index_open(path, &params, &index));
    return index;
}

/* Ranges follow one another, from 0 to `end`, and none is empty. */
static void check_ranges(const sl_index *index, size_t end) {
    const sl_partitions *partitions = &index->graph.partitions;
    size_t at = 0;
    for (size_t p = 0; p < partitions->count; p++) {
        sl_range range = sl_partition_nodes(partitions, p, index->graph.n);
        ck_assert_uint_eq(range.first, at);
        ck_assert_uint_gt(range.end, range.first);
        at = range.end;
    }
    ck_assert_uint_eq(at, end);
    sl_range rest = sl_partition_rest(partitions, index->graph.n);
    ck_assert_uint_eq(rest.first, end);
    ck_assert_uint_eq(rest.end, index->graph.n);
}

/* Share of the nodes whose own partition is among the `best` first when a query asks for the node. */
static double share_found(const sl_index *index, size_t best) {
    const sl_partitions *partitions = &index->graph.partitions;
    size_t count = partitions->count, found = 0, width = sl_query_size(&partitions->codec);
    uint32_t *ids = malloc(count * sizeof *ids);
    float *scores = malloc(count * sizeof *scores), floats[DIM], encoded[2 * DIM];
    void *buffer = aligned_alloc(SL_CACHE_LINE, sl_round_up(width, SL_CACHE_LINE));
    for (uint32_t p = 0; p < count; p++)
        ids[p] = p;
    for (size_t p = 0; p < count; p++)
        for (uint32_t node = partitions->starts[p]; node < partitions->starts[p + 1]; node++) {
            sl_query_code query;
            sl_vector_of(&index->graph, node, SL_F32, floats);
            sl_partition_encode_query(&index->graph, floats, SL_F32, buffer, encoded, &query);
            index->graph.kernels->score[SL_CODES_I8](&partitions->codec.rows, &query, ids, count, 0, scores);
            size_t better = 0;
            for (size_t other = 0; other < count; other++)
                better += scores[other] > scores[p];
            found += better < best;
        }
    free(ids);
    free(scores);
    free(buffer);
    return (double)found / (double)partitions->starts[count];
}

static const struct {
    sl_metric metric;
    sl_dtype dtype;
    sl_codes codes;
    sl_refine refine;
    /* Share of the nodes whose partition comes first, and among the first three. By inner product larger partitions
     * come before nearer ones. */
    double nearest, near;
} kinds[] = {
    {SL_METRIC_COSINE, SL_F32, SL_CODES_I8, SL_REFINE_NONE, 0.9, 0.99},
    {SL_METRIC_COSINE, SL_F32, SL_CODES_I4, SL_REFINE_NONE, 0.9, 0.99},
    {SL_METRIC_COSINE, SL_U8, SL_CODES_I8, SL_REFINE_NONE, 0.6, 0.9},
    {SL_METRIC_L2, SL_F32, SL_CODES_I8, SL_REFINE_F32, 0.9, 0.99},
    {SL_METRIC_L2, SL_F16, SL_CODES_F32, SL_REFINE_NONE, 0.9, 0.99},
    {SL_METRIC_L2, SL_U8, SL_CODES_I8, SL_REFINE_NONE, 0.8, 0.97},
    {SL_METRIC_L2, SL_I16, SL_CODES_I16, SL_REFINE_NONE, 0.9, 0.99},
    {SL_METRIC_IP, SL_F32, SL_CODES_I16, SL_REFINE_BF16, 0.12, 0.35},
    {SL_METRIC_IP, SL_I8, SL_CODES_I8, SL_REFINE_NONE, 0.12, 0.35},
};

/* For every kind of codes, each node is in one partition near to it, and has its own id. */
START_TEST(near_nodes_lie_together) {
    sl_index_params params;
    indexes_params(&params, DIM, kinds[_i].metric);
    params.dtype = kinds[_i].dtype;
    params.codes = kinds[_i].codes;
    params.refine = kinds[_i].refine;
    params.ef_construction = 30;
    void *rows = clusters_as(kinds[_i].dtype, x, (size_t)N * DIM);
    sl_index *index = make_index(&params, rows, kinds[_i].dtype, N);
    ck_assert_uint_eq(index->graph.partitions.count, sl_partition_count(N));
    ck_assert_uint_eq(index->graph.partitions.codec.metric,
                      kinds[_i].metric == SL_METRIC_COSINE ? SL_METRIC_IP : SL_METRIC_L2);
    check_ranges(index, N);
    double nearest = share_found(index, 1), near = share_found(index, 3);
    ck_assert_msg(nearest >= kinds[_i].nearest && near >= kinds[_i].near, "kind %d: nearest %.3f, near %.3f", _i,
                  nearest, near);
    for (uint64_t id = 0; id < N; id += 97) {
        float given[DIM], got[DIM];
        ck_ok(sl_index_get(index, &id, 1, SL_F32, got));
        size_t size = sl_dtype_size(kinds[_i].dtype);
        sl_to_float(kinds[_i].dtype, (const char *)rows + id * DIM * size, given, DIM);
        double off = sl_l2_double(given, got, DIM), length = sl_dot_double(given, given, DIM);
        ck_assert_msg(off <= 1e-3 * length, "kind %d: id %llu is another vector", _i, (unsigned long long)id);
    }
    indexes_sound(index);
    sl_index_free(index);
    free(rows);
}
END_TEST

/* Another order of the same graph gives the same answers. */
START_TEST(results_stay) {
    sl_index *index = make_floats(N, SL_METRIC_COSINE);
    uint64_t before[QUERIES * K], after[QUERIES * K], ids[3] = {0, N / 2, N - 1};
    float vectors[2][3 * DIM];
    const float *queries = x + 2 * N * DIM;
    indexes_search(index, (vector_rows){queries, SL_F32, QUERIES}, K, EF, before, NULL);
    ck_ok(sl_index_get(index, ids, 3, SL_F32, vectors[0]));
    uint32_t *starts = malloc((index->graph.partitions.count + 1) * sizeof *starts);
    memcpy(starts, index->graph.partitions.starts, (index->graph.partitions.count + 1) * sizeof *starts);
    /* Another sample gives other partitions. */
    index->graph.seed++;
    index->ordered = 0;
    sl_renumber_settle(index, 0, 2, NULL);
    ck_assert_uint_eq(index->ordered, N);
    ck_assert_mem_ne(starts, index->graph.partitions.starts, (index->graph.partitions.count + 1) * sizeof *starts);
    check_ranges(index, N);
    indexes_search(index, (vector_rows){queries, SL_F32, QUERIES}, K, EF, after, NULL);
    ck_assert_mem_eq(before, after, sizeof before);
    ck_ok(sl_index_get(index, ids, 3, SL_F32, vectors[1]));
    ck_assert_mem_eq(vectors[0], vectors[1], sizeof vectors[0]);
    indexes_sound(index);
    sl_index_free(index);
    free(starts);
}
END_TEST

static void check_same_parts(const sl_partitions *one, const sl_partitions *other) {
    ck_assert_uint_eq(one->count, other->count);
    if (!one->count) return;
    ck_assert_mem_eq(one->starts, other->starts, (one->count + 1) * sizeof *one->starts);
    ck_assert_uint_eq(one->codec.rows.pitch, other->codec.rows.pitch);
    ck_assert_uint_eq(one->codec.metric, other->codec.metric);
    ck_assert_ptr_eq(one->codec.rows.base, one->rows);
    ck_assert_mem_eq(one->rows, other->rows, one->count * one->codec.rows.pitch);
}

static void check_same(const sl_index *a, const sl_index *b) {
    ck_assert_uint_gt(a->graph.partitions.count, 0);
    check_same_parts(&a->graph.partitions, &b->graph.partitions);
    check_same_parts(&a->graph.groups, &b->graph.groups);
    for (uint32_t node = 0; node < a->graph.n; node++)
        ck_assert_uint_eq(sl_id_of(&a->graph, node), sl_id_of(&b->graph, node));
}

/* One thread and several make the same index. With this many partitions there are groups too; IP makes its groups in
 * another way. */
START_TEST(threads_change_nothing) {
    if (SANITIZED && _i == 1) return; /* too large for it */
    enum { MANY = 72000, NARROW = 4 };
    size_t n = _i == 0 ? N : _i == 1 ? MANY : MANY / 2, dim = _i ? NARROW : DIM;
    sl_index_params params;
    indexes_params(&params, dim, _i == 2 ? SL_METRIC_IP : SL_METRIC_L2);
    params.m = 4;
    params.ef_construction = 8;
    float *rows = clusters_make(n, dim, 0.3, 9);
    sl_index *index = make_index(&params, rows, SL_F32, n);
    ck_assert_uint_gt(index->graph.partitions.count, (n / SL_PARTITION_ROWS) * 9 / 10);
    ck_assert_int_eq(index->graph.groups.count > 0, _i > 0);
    check_ranges(index, n);
    ck_ok(sl_index_save(index, place.path, NULL));
    sl_index_free(index);
    sl_index *settled[2];
    for (size_t i = 0; i < 2; i++) {
        settled[i] = open_at(place.path, SL_PLACE_DRAM);
        settled[i]->ordered = 0;
        sl_renumber_settle(settled[i], 0, 1 + 2 * i, NULL);
    }
    check_same(settled[0], settled[1]);
    sl_index_free(settled[0]);
    sl_index_free(settled[1]);
    free(rows);
}
END_TEST

/* A small index has no partitions. Later vectors belong to none until they are as many as the earlier ones. */
START_TEST(made_when_an_index_has_grown) {
    enum { LEAST = 4096 };
    sl_index *index = make_floats(LEAST - 1, SL_METRIC_L2);
    ck_assert_uint_eq(index->graph.partitions.count, 0);
    sl_range rest = sl_partition_rest(&index->graph.partitions, index->graph.n);
    ck_assert_uint_eq(rest.first, 0);
    ck_assert_uint_eq(rest.end, LEAST - 1);
    ck_assert_uint_eq(indexes_stats(index).bytes_partitions, 0);
    ck_ok(indexes_add(index, x + (LEAST - 1) * DIM, SL_F32, 1, NULL));
    ck_assert_uint_eq(index->graph.partitions.count, LEAST / SL_PARTITION_ROWS);
    check_ranges(index, LEAST);
    const sl_partitions *partitions = &index->graph.partitions;
    ck_assert_uint_eq(indexes_stats(index).partitions, LEAST / SL_PARTITION_ROWS);
    ck_assert_uint_eq(indexes_stats(index).bytes_partitions,
                      (partitions->count + 1) * 4 + partitions->count * partitions->codec.rows.pitch);
    ck_ok(indexes_add(index, x + LEAST * DIM, SL_F32, 500, NULL));
    check_ranges(index, LEAST);
    /* With less than an eighth outside, a save leaves them there. With more, it takes them in. */
    ck_ok(sl_index_save(index, place.path, NULL));
    check_ranges(index, LEAST);
    ck_ok(indexes_add(index, x + (LEAST + 500) * DIM, SL_F32, 500, NULL));
    check_ranges(index, LEAST);
    ck_ok(sl_index_save(index, place.path, NULL));
    check_ranges(index, LEAST + 1000);
    ck_assert_uint_eq(index->graph.partitions.count, (LEAST + 1000) / SL_PARTITION_ROWS);
    ck_ok(indexes_add(index, x + (LEAST + 1000) * DIM, SL_F32, LEAST + 1001, NULL));
    check_ranges(index, 2 * (LEAST + 1000) + 1);
    indexes_sound(index);
    sl_index_free(index);
}
END_TEST

/* Vectors outside partitions are counted across all files of an index. */
START_TEST(grown_from_file_to_file) {
    enum { MORE = 500, FILES = 4 };
    sl_index *index = make_floats(N, SL_METRIC_L2);
    ck_ok(sl_index_save(index, place.path, NULL));
    for (size_t file = 0; file < FILES; file++) {
        sl_index_free(index);
        index = open_at(place.path, SL_PLACE_DRAM);
        ck_ok(indexes_add(index, x + (N + file * MORE) * DIM, SL_F32, MORE, NULL));
        ck_ok(sl_index_save(index, place.path, NULL));
        sl_range rest = sl_partition_rest(&index->graph.partitions, index->graph.n);
        ck_assert_uint_le(8 * (rest.end - rest.first), index->graph.n);
    }
    ck_assert_uint_gt(index->graph.partitions.count, N / SL_PARTITION_ROWS);
    indexes_sound(index);
    sl_index_free(index);
}
END_TEST

/* Tuned settings scan the same share of an index after renumbering. */
START_TEST(settings_keep_their_share) {
    enum { PROBES = 5 };
    sl_index *index = make_floats(N, SL_METRIC_L2);
    sl_tuned_record record = {
        .target = 0.9, .recall = 0.9, .n = N, .queries = 100, .k = K, .least_k = K, .ef = 50, .probes = PROBES};
    size_t first, count = index->graph.partitions.count;
    ck_ok(sl_settings_put(index, &record, 1, &first));
    double share = (double)PROBES / (double)count;
    ck_ok(indexes_add(index, x + N * DIM, SL_F32, N + 1, NULL));
    ck_assert_uint_ge(index->graph.partitions.count, 2 * count);
    double own = (double)index->graph.tuned[0].probes / (double)index->graph.partitions.count;
    ck_assert_msg(own >= share && own < share + 0.05, "%.3f instead of %.3f", own, share);

    /* Settings were tuned when some vectors had no partition. Scans read all of those at any number of probes, so those
     * vectors count too. */
    const double outside = 1001;
    count = index->graph.partitions.count;
    index->graph.tuned[0].n = index->graph.n + (uint64_t)outside;
    index->graph.tuned[0].probes = PROBES;
    share = (outside + (double)(PROBES * index->graph.n) / (double)count) / ((double)index->graph.n + outside);
    index->ordered = 0;
    sl_renumber_settle(index, 0, 2, NULL);
    own = (double)index->graph.tuned[0].probes / (double)index->graph.partitions.count;
    ck_assert_msg(own >= share && own < share + 0.05, "%.3f instead of %.3f", own, share);
    sl_index_free(index);
}
END_TEST

/* Tuning first does to the partitions what a save would otherwise do later. */
START_TEST(tuned_as_it_will_be_saved) {
    enum { MORE = 1000 };
    sl_index *index = make_floats(N, SL_METRIC_L2);
    ck_ok(indexes_add(index, x + N * DIM, SL_F32, MORE, NULL));
    check_ranges(index, N);
    ck_ok(sl_index_tune(index, x + 2 * N * DIM, SL_F32, QUERIES, 0, NULL, K, NULL, NULL));
    check_ranges(index, N + MORE);
    uint32_t last = index->graph.partitions.starts[1];
    ck_ok(sl_index_save(index, place.path, NULL));
    ck_assert_uint_eq(index->graph.partitions.starts[1], last);
    sl_index_free(index);
}
END_TEST

/* A save that's cancelled while it renumbers leaves the vectors unchanged. */
START_TEST(cancelled_while_numbered_anew) {
    enum { MORE = 1000 };
    sl_index *index = make_floats(N, SL_METRIC_COSINE);
    ck_ok(indexes_add(index, x + N * DIM, SL_F32, MORE, NULL));
    sl_save_params save;
    sl_save_params_init(&save);
    save.progress = indexes_cancel;
    ck_fails(sl_index_save(index, place.path, &save), SL_ECANCELED, "");
    check_ranges(index, N);
    ck_assert_uint_eq(index->ordered, N);
    ck_ok(sl_index_save(index, place.path, NULL));
    check_ranges(index, N + MORE);
    sl_index_free(index);
}
END_TEST

static int stop_soon(void *ctx, uint64_t done, uint64_t total) {
    (void)ctx, (void)total;
    return done > 0;
}

/* Vectors of an undone add were never in a partition. */
START_TEST(cancelled_adds_leave_them) {
    sl_index *index = make_floats(N, SL_METRIC_L2);
    sl_add_params add;
    sl_add_params_init(&add);
    add.threads = 2;
    add.progress = stop_soon;
    ck_fails(sl_index_add(index, x + N * DIM, SL_F32, N, 0, NULL, &add), SL_ECANCELED, "");
    ck_assert_uint_eq(index->graph.n, N);
    check_ranges(index, N);
    indexes_sound(index);
    sl_index_free(index);
}
END_TEST

/* No mean divides equal vectors. Partitions without rows are left out. */
START_TEST(equal_vectors) {
    enum { EQUAL = 5000 };
    float *rows = malloc((size_t)EQUAL * DIM * sizeof *rows);
    for (int metric = SL_METRIC_IP; metric <= SL_METRIC_L2; metric++)
        for (size_t distinct = 1; distinct <= 3; distinct += 2) {
            for (size_t i = 0; i < EQUAL; i++)
                memcpy(rows + i * DIM, x + (i % distinct) * DIM, DIM * sizeof *rows);
            sl_index_params params;
            indexes_params(&params, DIM, (sl_metric)metric);
            params.ef_construction = 10;
            sl_index *index = make_index(&params, rows, SL_F32, EQUAL);
            ck_assert_uint_ge(index->graph.partitions.count, 1);
            ck_assert_uint_le(index->graph.partitions.count, EQUAL / SL_PARTITION_ROWS);
            check_ranges(index, EQUAL);
            ck_ok(sl_partitions_check(&index->graph));
            sl_index_free(index);
        }
    /* Zero vectors can't be scaled to unit length. */
    memset(rows, 0, (size_t)EQUAL * DIM * sizeof *rows);
    sl_index_params params;
    indexes_params(&params, DIM, SL_METRIC_IP);
    params.ef_construction = 10;
    sl_index *index = make_index(&params, rows, SL_F32, EQUAL);
    check_ranges(index, EQUAL);
    ck_ok(sl_partitions_check(&index->graph));
    sl_index_free(index);
    free(rows);
}
END_TEST

START_TEST(kept_in_files) {
    sl_index *index = make_floats(N, (sl_metric)_i);
    ck_ok(sl_index_save(index, place.path, NULL));
    static const sl_place places[] = {SL_PLACE_MAP, SL_PLACE_DRAM};
    for (size_t i = 0; i < 2; i++) {
        sl_index *opened = open_at(place.path, places[i]);
        check_same(index, opened);
        check_ranges(opened, N);
        indexes_sound(opened);
        sl_index_free(opened);
    }
    /* A file without partitions opens, and answers as the saved index did. */
    uint64_t saved[QUERIES * K], found[QUERIES * K];
    const float *queries = x + 2 * N * DIM;
    index->graph.partitions = (sl_partitions){0};
    indexes_publish(index);
    indexes_search(index, (vector_rows){queries, SL_F32, QUERIES}, K, EF, saved, NULL);
    ck_ok(sl_index_save(index, place.path, NULL));
    sl_index_free(index);
    for (size_t i = 0; i < 2; i++) {
        sl_index *opened = open_at(place.path, places[i]);
        ck_assert_uint_eq(opened->graph.partitions.count, 0);
        indexes_search(opened, (vector_rows){queries, SL_F32, QUERIES}, K, EF, found, NULL);
        ck_assert_mem_eq(saved, found, sizeof saved);
        indexes_sound(opened);
        sl_index_free(opened);
    }
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Files that lie
 * ------------------------------------------------------------------------------------------------------------- */

static void put_float(sl_partitions *partitions, size_t p, size_t offset, float value) {
    memcpy(partitions->rows + p * partitions->codec.rows.pitch + offset, &value, sizeof value);
}

static void late_start(sl_partitions *partitions) {
    partitions->starts[0] = 1;
}
static void early_end(sl_partitions *partitions) {
    partitions->starts[partitions->count] = 0;
}
static void far_end(sl_partitions *partitions) {
    partitions->starts[partitions->count] = SL_NONE;
}
static void one_beyond(sl_partitions *partitions) {
    partitions->starts[partitions->count] = N + 1;
}
static void falling(sl_partitions *partitions) {
    partitions->starts[3] = partitions->starts[4] + 1;
}
static void far_within(sl_partitions *partitions) {
    partitions->starts[2] = SL_NONE;
}
static void no_factor(sl_partitions *partitions) {
    put_float(partitions, 5, partitions->codec.rows.factor, (float)NAN);
}
static void endless_bias(sl_partitions *partitions) {
    put_float(partitions, partitions->count - 1, partitions->codec.rows.bias, (float)INFINITY);
}

static void (*const lies[])(sl_partitions *partitions) = {late_start, early_end,  far_end,   one_beyond,
                                                          falling,    far_within, no_factor, endless_bias};

/* Wrong content is refused if the index is to be written to. If it's mapped, ranges stay in the index and a check
 * reports it. */
START_TEST(wrong_content_is_found) {
    sl_index *index = make_floats(N, SL_METRIC_L2);
    lies[_i](&index->graph.partitions);
    ck_ok(sl_index_save(index, place.path, NULL));
    sl_index_free(index);
    index = indexes_broken(place.path, "partition");
    for (size_t p = 0; p < index->graph.partitions.count; p++) {
        sl_range range = sl_partition_nodes(&index->graph.partitions, p, index->graph.n);
        ck_assert_uint_le(range.first, range.end);
        ck_assert_uint_le(range.end, N);
    }
    sl_range rest = sl_partition_rest(&index->graph.partitions, index->graph.n);
    ck_assert_uint_le(rest.first, rest.end);
    ck_assert_uint_eq(rest.end, N);
    uint64_t ids[QUERIES * K];
    indexes_search(index, (vector_rows){x, SL_F32, QUERIES}, K, EF, ids, NULL);
    sl_index_free(index);
}
END_TEST

/* Saves the index with these sections in other sizes; 0 leaves a section out. */
static void save_with(const sl_index *index, uint64_t starts, uint64_t rows) {
    const section_bytes cut[] = {{SL_SECTION_PARTITION_STARTS, starts}, {SL_SECTION_PARTITION_ROWS, rows}};
    indexes_save_cut(index, place.path, cut, 2);
}

START_TEST(wrong_sizes_are_refused) {
    sl_index *index = make_floats(N, SL_METRIC_COSINE), *opened;
    uint64_t pitch = index->graph.partitions.codec.rows.pitch, count = index->graph.partitions.count;
    const uint64_t sizes[][2] = {{0, count * pitch},
                                 {(count + 1) * 4, 0},
                                 {count * 4, count * pitch},
                                 {(count + 1) * 4, count * pitch - 1},
                                 {(count + 1) * 4, (count - 1) * pitch},
                                 {(count + 1) * 4 - 1, count * pitch},
                                 {4, pitch},
                                 {3, pitch}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        save_with(index, sizes[i][0], sizes[i][1]);
        for (int at = SL_PLACE_DRAM; at <= SL_PLACE_MAP; at++) {
            sl_open_params params;
            sl_open_params_init(&params);
            params.place = (sl_place)at;
            ck_fails(sl_index_open(place.path, &params, &opened), SL_ECORRUPT, "partitions of");
        }
    }
    /* More partitions than vectors. */
    sl_partitions partitions = index->graph.partitions;
    size_t n = index->graph.n;
    save_with(index, (count + 1) * 4, count * pitch);
    sl_index_free(open_at(place.path, SL_PLACE_MAP));
    index->graph.partitions = (sl_partitions){0};
    index->graph.partitions.codec = partitions.codec;
    index->graph.partitions.count = n + 1;
    void *starts = calloc(n + 2, sizeof(uint32_t)), *rows = calloc(n + 1, pitch);
    index->graph.partitions.starts = starts;
    index->graph.partitions.rows = rows;
    save_with(index, (n + 2) * 4, (n + 1) * pitch);
    ck_fails(sl_index_open(place.path, NULL, &opened), SL_ECORRUPT, "partitions of");
    free(starts);
    free(rows);
    index->graph.partitions = partitions;
    sl_index_free(index);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Memory
 * ------------------------------------------------------------------------------------------------------------- */

/* Whichever allocation fails, everything stays as before. */
START_TEST(without_memory_all_stays) {
    fault_allocator memory;
    fault_allocator_init(&memory, 0);
    sl_index_params params;
    indexes_params(&params, DIM, SL_METRIC_IP);
    params.ef_construction = 20;
    params.allocator = &memory.allocator;
    sl_index *index = make_index(&params, x, SL_F32, 5000);
    size_t at = 1, size = (index->graph.partitions.count + 1) * sizeof(uint32_t);
    uint32_t *starts = malloc(size);
    memcpy(starts, index->graph.partitions.starts, size);
    index->graph.seed++;
    for (;; at++) {
        size_t blocks = memory.live_blocks;
        index->ordered = 0;
        memory.calls = 0;
        memory.fail_at = at;
        sl_renumber_settle(index, 0, 2, NULL);
        int failed = memory.calls >= at;
        memory.fail_at = 0;
        ck_assert_uint_eq(memory.live_blocks, blocks);
        check_ranges(index, 5000);
        if (!failed) break;
        ck_assert_uint_eq(index->ordered, 0);
        ck_assert_mem_eq(starts, index->graph.partitions.starts, size);
    }
    ck_assert_uint_gt(at, 20);
    ck_assert_mem_ne(starts, index->graph.partitions.starts, size);
    indexes_sound(index);
    ck_ok(sl_index_save(index, place.path, NULL));
    sl_index_free(index);
    free(starts);
    sl_open_params open;
    sl_open_params_init(&open);
    open.place = SL_PLACE_DRAM;
    open.allocator = &memory.allocator;
    for (at = 1;; at++) {
        memory.calls = 0;
        memory.fail_at = at;
        sl_status status = sl_index_open(place.path, &open, &index);
        if (status == SL_OK) break;
        ck_fails(status, SL_ENOMEM, "cannot allocate");
        ck_assert_uint_eq(memory.live_blocks, 0);
    }
    memory.fail_at = 0;
    check_ranges(index, 5000);
    sl_index_free(index);
    ck_assert_uint_eq(memory.live_blocks, 0);
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("partition"), *threads = tcase_create("threads");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_checked_fixture(threads, set_up, tear_down);
    tcase_add_loop_test(tests, near_nodes_lie_together, 0, sizeof kinds / sizeof *kinds);
    tcase_add_test(tests, results_stay);
    tcase_add_loop_test(threads, threads_change_nothing, 0, 3);
    tcase_add_test(tests, made_when_an_index_has_grown);
    tcase_add_test(tests, grown_from_file_to_file);
    tcase_add_test(tests, settings_keep_their_share);
    tcase_add_test(tests, tuned_as_it_will_be_saved);
    tcase_add_test(tests, cancelled_while_numbered_anew);
    tcase_add_test(threads, cancelled_adds_leave_them);
    tcase_add_test(tests, equal_vectors);
    tcase_add_loop_test(tests, kept_in_files, SL_METRIC_IP, SL_METRIC_L2 + 1);
    tcase_add_loop_test(tests, wrong_content_is_found, 0, sizeof lies / sizeof *lies);
    tcase_add_test(tests, wrong_sizes_are_refused);
    tcase_add_test(tests, without_memory_all_stays);
    return check_main("partition", (TCase *[]){tests, threads}, 2);
}
