/* Joined graphs: as good as graphs made anew, also after many joins and without deleted vectors. The bytes are the same
 * at any number of threads. Graphs are joined only if that pays, and all or nothing. */
#include "distance/codec/encode.h"
#include "distance/kernels.h"
#include "hnsw/construct/centroid.h"
#include "hnsw/construct/join.h"
#include "hnsw/construct/kmeans.h"
#include "hnsw/graph/partition.h"
#include "tests/support/check_main.h"
#include "tests/support/clusters.h"
#include "tests/support/faults.h"
#include "tests/support/indexes.h"
#include "tests/support/sanitized.h"
#include "tests/support/scratch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N = 7600, DIM = 20, K = 10, QUERIES = 200, EF = 40, FEW = 10, PARTS = 4 };

static float *x, *queries;
static scratch place;

static void set_up(void) {
    x = clusters_make(N + QUERIES, DIM, 0.4, 12);
    queries = x + (size_t)N * DIM;
    scratch_open(&place);
}

static void tear_down(void) {
    scratch_close(&place);
    free(x);
}

static sl_index_params params_of(sl_metric metric, sl_codes codes) {
    sl_index_params params;
    indexes_params(&params, DIM, metric);
    params.codes = codes;
    params.m = 16;
    params.ef_construction = 200;
    return params;
}

/* An index of rows [first, end), whose ids are their numbers. */
static sl_index *make_part(const sl_index_params *params, size_t first, size_t end) {
    uint64_t ids[N];
    for (size_t i = first; i < end; i++)
        ids[i - first] = i;
    return indexes_make(params, x + first * DIM, SL_F32, end - first, ids, 1);
}

/* Indexes of parts of the rows, which end at `ends`; frees them again. */
static void parts_make(const sl_index_params *params, const size_t *ends, size_t count, sl_index **parts) {
    for (size_t i = 0; i < count; i++)
        parts[i] = make_part(params, i ? ends[i - 1] : 0, ends[i]);
}

static void parts_free(sl_index **parts, size_t count) {
    for (size_t i = 0; i < count; i++)
        sl_index_free(parts[i]);
}

static sl_index *merged(sl_index *const *parts, size_t count, sl_builder builder, size_t threads) {
    sl_index *index;
    sl_merge_params params;
    sl_merge_params_init(&params);
    params.builder = builder;
    params.threads = threads;
    ck_ok(sl_index_merge(parts, count, &params, &index));
    return index;
}

static double recall_of(const sl_index *index, const uint64_t *truth, size_t ef) {
    static uint64_t found[QUERIES * K];
    indexes_search(index, (vector_rows){queries, SL_F32, QUERIES}, K, ef, found, NULL);
    return indexes_recall(found, truth, QUERIES, K);
}

static unsigned char *bytes_of(sl_index *index, size_t *size) {
    ck_ok(indexes_save(index, place.path));
    sl_index_free(index);
    return file_read(place.path, size);
}

static int same(sl_index *a, sl_index *b) {
    size_t size, other;
    unsigned char *bytes = bytes_of(a, &size), *again = bytes_of(b, &other);
    const int same = size == other && memcmp(bytes, again, size) == 0;
    free(bytes);
    free(again);
    return same;
}

/* Cancels at this many steps. */
static int cancel_at(void *ctx, uint64_t done, uint64_t total) {
    (void)total;
    return done >= *(const uint64_t *)ctx;
}

/* ---------------------------------------------------------------------------------------------------------------
 * The graph
 * ------------------------------------------------------------------------------------------------------------- */

static const struct kind {
    sl_metric metric;
    sl_codes codes;
} kinds[] = {{SL_METRIC_COSINE, SL_CODES_I8}, {SL_METRIC_L2, SL_CODES_I4}, {SL_METRIC_IP, SL_CODES_F32}};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* Halves; parts of which one is small; and three parts of one size. */
static const struct split {
    size_t count, ends[3];
} splits[] = {{2, {N / 2, N}}, {2, {N / 20, N}}, {3, {N / 3, N / 3 * 2, N}}};
enum { SPLITS = sizeof splits / sizeof *splits };

START_TEST(finds_what_a_new_graph_finds) {
    static uint64_t truth[QUERIES * K];
    const struct kind *kind = &kinds[_i < SPLITS ? _i : (_i + 1) % KINDS];
    const struct split *split = &splits[_i % SPLITS];
    const sl_index_params params = params_of(kind->metric, kind->codes);
    sl_index *parts[3];
    if (SANITIZED && _i) return;
    parts_make(&params, split->ends, split->count, parts);
    sl_index *joined = merged(parts, split->count, SL_BUILDER_AUTO, 2);
    sl_index *anew = merged(parts, split->count, SL_BUILDER_LEAVES, 2);
    indexes_exact(kind->metric, DIM, (vector_rows){x, SL_F32, N}, (vector_rows){queries, SL_F32, QUERIES}, K, truth);
    ck_assert_double_gt(recall_of(joined, truth, EF), recall_of(anew, truth, EF) - 0.003);
    ck_assert_uint_eq(indexes_sound(joined).sampled_lost, 0);
    ck_assert_msg(!same(joined, anew), "nothing was joined");
    parts_free(parts, split->count);
}
END_TEST

/* Four ninths of each part are deleted. The remaining neighbours get closer together. */
START_TEST(deleted_vectors_leave_no_gaps) {
    static uint64_t truth[QUERIES * K], gone[N];
    const sl_index_params params = params_of(SL_METRIC_L2, SL_CODES_I8);
    const size_t ends[] = {N * 2 / 5, N};
    float *left = malloc((size_t)N * DIM * sizeof *left);
    uint64_t ids[N];
    sl_index *parts[2];
    size_t count = 0, kept = 0;
    ck_assert_ptr_nonnull(left);
    parts_make(&params, ends, 2, parts);
    for (uint64_t id = 0; id < N; id++) {
        if (id % 9 < 4) {
            gone[count++] = id;
            continue;
        }
        memcpy(left + kept * DIM, x + id * DIM, DIM * sizeof *left);
        ids[kept++] = id;
    }
    for (size_t i = 0, first = 0; i < 2; i++) {
        size_t end = first;
        while (end < count && gone[end] < ends[i])
            end++;
        parts[i]->keeps_deleted = 1;
        ck_ok(sl_index_delete(parts[i], gone + first, end - first));
        first = end;
    }
    sl_index *joined = merged(parts, 2, SL_BUILDER_AUTO, 2), *anew = merged(parts, 2, SL_BUILDER_LEAVES, 2);
    indexes_exact(SL_METRIC_L2, DIM, (vector_rows){left, SL_F32, kept}, (vector_rows){queries, SL_F32, QUERIES}, K,
                  truth);
    for (size_t i = 0; i < (size_t)QUERIES * K; i++)
        truth[i] = ids[truth[i]];
    ck_assert_uint_eq(indexes_stats(joined).deleted, 0);
    ck_assert_double_gt(recall_of(joined, truth, FEW), recall_of(anew, truth, FEW) - 0.006);
    indexes_sound(joined);
    ck_assert_msg(!same(joined, anew), "nothing was joined");
    parts_free(parts, 2);
    free(left);
}
END_TEST

/* An index grows by twenty small ones, one after another. */
START_TEST(twenty_joins_lose_nothing) {
    static uint64_t truth[QUERIES * K];
    const size_t more = N / 50;
    const sl_index_params params = params_of(SL_METRIC_COSINE, SL_CODES_I8);
    if (SANITIZED) return;
    sl_index *whole = make_part(&params, 0, N - 20 * more), *anew = indexes_make(&params, x, SL_F32, N, NULL, 2);
    for (size_t first = N - 20 * more; first < N; first += more) {
        sl_index *parts[] = {whole, make_part(&params, first, first + more)};
        whole = merged(parts, 2, SL_BUILDER_AUTO, 2);
        parts_free(parts, 2);
    }
    indexes_exact(SL_METRIC_COSINE, DIM, (vector_rows){x, SL_F32, N}, (vector_rows){queries, SL_F32, QUERIES}, K,
                  truth);
    ck_assert_double_gt(recall_of(whole, truth, FEW), recall_of(anew, truth, FEW) - 0.005);
    /* Joins don't make lists longer. */
    ck_assert_double_lt(indexes_sound(whole).mean_degree, 1.25 * indexes_sound(anew).mean_degree);
    sl_index_free(whole);
    sl_index_free(anew);
}
END_TEST

/* All vectors of one index are also in the other, with other ids. */
START_TEST(duplicates_are_found) {
    const sl_index_params params = params_of(SL_METRIC_L2, SL_CODES_I8);
    uint64_t ids[N];
    for (size_t i = 0; i < N; i++)
        ids[i] = N + i;
    sl_index *parts[] = {indexes_make(&params, x, SL_F32, N / 2, NULL, 1),
                         indexes_make(&params, x, SL_F32, N / 2, ids, 1)};
    sl_index *joined = merged(parts, 2, SL_BUILDER_AUTO, 2);
    size_t both = 0;
    for (size_t i = 0; i < QUERIES; i++) {
        uint64_t found[2];
        indexes_search(joined, (vector_rows){x + i * 13 * DIM, SL_F32, 1}, 2, EF, found, NULL);
        both += (found[0] == i * 13 && found[1] == N + i * 13) || (found[1] == i * 13 && found[0] == N + i * 13);
    }
    ck_assert_uint_ge(both, QUERIES * 99 / 100);
    indexes_sound(joined);
    sl_index_free(joined);
    parts_free(parts, 2);
}
END_TEST

/* Numbering starts from existing centroids, and from rows if these are too few or no vectors. */
START_TEST(centroids_serve) {
    const sl_index_params params = params_of(SL_METRIC_L2, SL_CODES_I8);
    sl_index *index = make_part(&params, 0, N);
    sl_progress progress;
    sl_progress_start(&progress, NULL, NULL, 0);
    const sl_partitions *had = &index->graph.partitions;
    const size_t pitch = had->codec.rows.pitch;
    for (int few = 0; few < 2; few++) {
        sl_kmeans kmeans = {.graph = &index->graph,
                            .count = few ? 2 * had->count : had->count,
                            .sampled = N,
                            .threads = 1,
                            .progress = &progress};
        float there[DIM], begun_at[DIM], apart = 0;
        ck_ok(sl_partition_codec(&index->graph, SL_CODES_I8, &kmeans.codec));
        ck_ok(sl_kmeans_alloc_centroids(&kmeans));
        ck_ok(sl_kmeans_alloc_learners(&kmeans));
        ck_assert_int_eq(sl_centroids_reusable(&kmeans), !few);
        sl_centroids_start(&kmeans);
        for (size_t p = 0; p < had->count; p++) {
            sl_decode_row(&had->codec, had->rows + p * pitch, there);
            sl_decode_row(&kmeans.codec, kmeans.rows + p * pitch, begun_at);
            for (size_t j = 0; j < DIM; j++)
                apart = fmaxf(apart, fabsf(there[j] - begun_at[j]));
        }
        ck_assert_int_eq(apart < 0.01F, !few);
        if (!few) { /* a row replaces the first centroid, which is damaged */
            const float bad = NAN;
            memcpy(had->rows + had->codec.rows.factor, &bad, sizeof bad);
            sl_centroids_start(&kmeans);
            sl_decode_row(&kmeans.codec, kmeans.rows, begun_at);
            ck_assert_float_finite(begun_at[0]);
        }
        sl_kmeans_free_learners(&kmeans);
        sl_kmeans_free_centroids(&kmeans);
    }
    sl_index_free(index);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * A batch beside vectors that are there
 * ------------------------------------------------------------------------------------------------------------- */

enum { THERE = N / 5 };

/* An index of the first rows. Under L2 some of them are deleted. */
static sl_index *make_first(const struct kind *kind) {
    const sl_index_params params = params_of(kind->metric, kind->codes);
    sl_index *index = make_part(&params, 0, THERE);
    index->keeps_deleted = 1;
    for (uint64_t id = 0; kind->metric == SL_METRIC_L2 && id < THERE; id += 4)
        ck_ok(sl_index_delete(index, &id, 1));
    return index;
}

static sl_status add_rest(sl_index *index, sl_builder builder, size_t threads, sl_progress_fn progress, void *ctx) {
    sl_add_params add;
    sl_add_params_init(&add);
    add.builder = builder;
    add.threads = threads;
    add.progress = progress;
    add.progress_ctx = ctx;
    return sl_index_add(index, x + (size_t)THERE * DIM, SL_F32, N - THERE, 0, NULL, &add);
}

START_TEST(a_batch_is_joined) {
    static uint64_t truth[QUERIES * K];
    const struct kind *kind = &kinds[_i];
    if (SANITIZED && _i) return;
    sl_index *joined = make_first(kind), *again = make_first(kind), *inserted = make_first(kind);
    const size_t gone = kind->metric == SL_METRIC_L2 ? THERE / 4 : 0;
    ck_ok(add_rest(joined, SL_BUILDER_AUTO, 1, NULL, NULL));
    ck_ok(add_rest(again, SL_BUILDER_LEAVES, 3, NULL, NULL));
    ck_ok(add_rest(inserted, SL_BUILDER_INSERT, 2, NULL, NULL));
    indexes_exact(kind->metric, DIM, (vector_rows){x, SL_F32, N}, (vector_rows){queries, SL_F32, QUERIES}, K, truth);
    ck_assert_double_gt(recall_of(joined, truth, EF), recall_of(inserted, truth, EF) - 0.003);
    ck_assert_uint_eq(indexes_stats(joined).deleted, gone);
    ck_assert_uint_eq(indexes_sound(joined).sampled_lost, 0);
    ck_assert(same(joined, again));
    sl_index_free(inserted);
}
END_TEST

START_TEST(a_batch_can_be_cancelled) {
    if (SANITIZED && _i != 1) return;
    sl_index *index = make_first(&kinds[1]);
    uint64_t at = (uint64_t)_i * N / 3;
    ck_fails(add_rest(index, SL_BUILDER_AUTO, 1, cancel_at, &at), SL_ECANCELED, "");
    ck_assert_uint_eq(sl_index_size(index), THERE - THERE / 4);
    indexes_sound(index);
    sl_index_free(index);
}
END_TEST

/* An index whose lists aren't those of vectors inserted one after another: some lack a link. */
static sl_index *make_thinned(const sl_index_params *params) {
    sl_index *index = make_part(params, 0, THERE);
    for (size_t node = 0; node < THERE; node += 7) {
        uint32_t *links = sl_links(&index->graph, node);
        size_t count = 0;
        while (count < index->graph.m0 && links[count] != SL_NONE)
            count++;
        if (count > 8) links[count - 1] = SL_NONE;
    }
    return index;
}

/* Without memory for leaves all lists stay as before, or vectors are inserted. */
START_TEST(memory_may_run_out_for_a_batch) {
    const sl_builder builder = _i ? SL_BUILDER_AUTO : SL_BUILDER_LEAVES;
    if (SANITIZED && _i) return;
    fault_allocator memory;
    sl_index_params params = params_of(SL_METRIC_L2, SL_CODES_I8);
    fault_allocator_init(&memory, 0);
    params.allocator = &memory.allocator;
    size_t all = 1, step = 1, failures = 0;
    for (size_t at = 0; at <= all; at += step) {
        sl_index *index = make_thinned(&params), *untouched = make_thinned(&params);
        memory.calls = 0;
        memory.fail_at = at;
        const sl_status status = add_rest(index, builder, 1, NULL, NULL);
        if (!at) all = memory.calls;
        if (!at) step = all / (SANITIZED || _i ? 3 : 9) + 1;
        memory.fail_at = 0;
        ck_assert(status == SL_OK || status == SL_ENOMEM);
        ck_assert_uint_eq(sl_index_size(index), status == SL_OK ? N : THERE);
        failures += status == SL_ENOMEM;
        indexes_sound(index);
        if (status == SL_ENOMEM)
            ck_assert(same(index, untouched));
        else
            parts_free((sl_index *[]){index, untouched}, 2);
        ck_assert_uint_eq(memory.live_blocks, 0);
    }
    ck_assert(_i || failures > 0);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * The same bytes, and where graphs are not joined
 * ------------------------------------------------------------------------------------------------------------- */

START_TEST(threads_and_tiers_change_nothing) {
    const struct kind *kind = &kinds[_i];
    const sl_index_params params = params_of(kind->metric, kind->codes);
    sl_index *parts[3];
    if (SANITIZED && _i) return;
    size_t size, first_size;
    parts_make(&params, splits[2].ends, 3, parts);
    unsigned char *first = bytes_of(merged(parts, 3, SL_BUILDER_AUTO, 1), &first_size);
    for (int isa = 0; isa < SL_ISA_COUNT; isa++) {
        const sl_kernels *kernels = sl_kernels_of((sl_isa)isa);
        if (!kernels || (SANITIZED && kernels != sl_kernels_best())) continue;
        for (size_t i = 0; i < 3; i++)
            parts[i]->graph.kernels = kernels;
        unsigned char *again = bytes_of(merged(parts, 3, SL_BUILDER_AUTO, (size_t)isa % 3 + 2), &size);
        ck_assert_uint_eq(size, first_size);
        ck_assert_mem_eq(first, again, size);
        free(again);
    }
    free(first);
    parts_free(parts, 3);
}
END_TEST

/* Cases in which joining doesn't pay. Four parts of one size take more walks than there are vectors; other parameters
 * make other lists; a mostly deleted index has few lists left. */
START_TEST(are_made_anew_where_joining_does_not_serve) {
    const size_t ends[] = {N / 4, N / 2, N / 4 * 3, N};
    sl_index_params params = params_of(SL_METRIC_L2, SL_CODES_I8);
    sl_index *parts[PARTS];
    if (SANITIZED) return;
    parts_make(&params, ends, PARTS, parts);
    ck_assert(same(merged(parts, PARTS, SL_BUILDER_AUTO, 2), merged(parts, PARTS, SL_BUILDER_LEAVES, 2)));
    parts_free(parts + 1, PARTS - 1);
    for (int poor = 0; poor < 2; poor++) {
        params.m = poor ? 16 : 18;
        params.ef_construction = poor ? 100 : 200;
        parts[1] = make_part(&params, N / 4, N);
        ck_assert(same(merged(parts, 2, SL_BUILDER_AUTO, 2), merged(parts, 2, SL_BUILDER_LEAVES, 2)));
        sl_index_free(parts[1]);
    }
    params = params_of(SL_METRIC_L2, SL_CODES_I8);
    parts[1] = make_part(&params, N / 4, N);
    for (uint64_t id = 0; id < N / 4; id++)
        if (id % 10 != 0 && id < N / 6) {
            parts[0]->keeps_deleted = 1;
            ck_ok(sl_index_delete(parts[0], &id, 1));
        }
    ck_assert(same(merged(parts, 2, SL_BUILDER_AUTO, 2), merged(parts, 2, SL_BUILDER_LEAVES, 2)));
    parts_free(parts, 2);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * All or nothing
 * ------------------------------------------------------------------------------------------------------------- */

START_TEST(a_join_can_be_cancelled) {
    const sl_index_params params = params_of(SL_METRIC_L2, SL_CODES_I8);
    sl_index *parts[2], *none = NULL;
    uint64_t at = (uint64_t)_i * N / 2;
    sl_merge_params merge;
    if (SANITIZED && _i) return;
    parts_make(&params, splits[0].ends, 2, parts);
    sl_merge_params_init(&merge);
    merge.progress = cancel_at;
    merge.progress_ctx = &at;
    merge.threads = 2;
    ck_fails(sl_index_merge(parts, 2, &merge, &none), SL_ECANCELED, "");
    ck_assert_ptr_null(none);
    indexes_sound(parts[0]);
    indexes_sound(parts[1]);
    parts_free(parts, 2);
}
END_TEST

/* A merge that fails for lack of memory leaves nothing. One that goes on by inserting is sound. */
START_TEST(memory_may_run_out) {
    fault_allocator memory;
    sl_index_params params = params_of(SL_METRIC_L2, SL_CODES_I8);
    fault_allocator_init(&memory, 0);
    params.allocator = &memory.allocator;
    sl_index *parts[2], *joined;
    parts_make(&params, splits[1].ends, 2, parts);
    sl_index_free(merged(parts, 2, SL_BUILDER_AUTO, 1)); /* the maps of ids stay */
    memory.calls = 0;
    sl_index_free(merged(parts, 2, SL_BUILDER_AUTO, 1));
    const size_t all = memory.calls, before = memory.live_blocks, step = all / (SANITIZED ? 4 : 6) + 1;
    size_t failures = 0;
    for (memory.fail_at = 1; memory.fail_at <= all; memory.fail_at += step) {
        sl_merge_params merge;
        sl_merge_params_init(&merge);
        merge.threads = 1;
        memory.calls = 0;
        const sl_status status = sl_index_merge(parts, 2, &merge, &joined);
        ck_assert(status == SL_OK || status == SL_ENOMEM);
        ck_assert((joined != NULL) == (status == SL_OK));
        failures += status == SL_ENOMEM;
        sl_index_free(joined);
        ck_assert_uint_eq(memory.live_blocks, before);
    }
    ck_assert_uint_gt(failures, 0);
    memory.fail_at = 0;
    parts_free(parts, 2);
    ck_assert_uint_eq(memory.live_blocks, 0);
}
END_TEST

int main(void) {
    TCase *tests[] = {tcase_create("join"), tcase_create("threads")};
    for (int i = 0; i < 2; i++) {
        tcase_set_timeout(tests[i], 300);
        tcase_add_checked_fixture(tests[i], set_up, tear_down);
    }
    tcase_add_loop_test(tests[0], finds_what_a_new_graph_finds, 0, SPLITS + 2);
    tcase_add_test(tests[0], deleted_vectors_leave_no_gaps);
    tcase_add_test(tests[0], twenty_joins_lose_nothing);
    tcase_add_test(tests[0], duplicates_are_found);
    tcase_add_test(tests[0], centroids_serve);
    tcase_add_loop_test(tests[0], a_batch_can_be_cancelled, 0, 3);
    tcase_add_loop_test(tests[0], memory_may_run_out_for_a_batch, 0, 2);
    tcase_add_test(tests[0], are_made_anew_where_joining_does_not_serve);
    tcase_add_test(tests[0], memory_may_run_out);
    tcase_add_loop_test(tests[1], a_batch_is_joined, 0, KINDS);
    tcase_add_loop_test(tests[1], threads_and_tiers_change_nothing, 0, KINDS);
    tcase_add_loop_test(tests[1], a_join_can_be_cancelled, 0, 3);
    return check_main("join", tests, 2);
}
