/* Groups of partitions exist if there are many partitions. Files that hold groups aren't trusted. Queries that probe a
 * few groups read less. Tuning finds how few groups will do. */
#include "hnsw/construct/renumber.h"
#include "hnsw/search/scan_params.h"
#include "hnsw/search/settings.h"
#include "hnsw/search/start_nodes.h"
#include "tests/support/centroids.h"
#include "tests/support/check_main.h"
#include "tests/support/clusters.h"
#include "tests/support/faults.h"
#include "tests/support/indexes.h"
#include "tests/support/sanitized.h"
#include "tests/support/scratch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N = 34000, DIM = 8, K = 10, HALF = 400, LEAST_PARTITIONS = 129 };

static float *rows;
static const float *queries;
static uint64_t *truth; /* (HALF, K) */
#define TRUTH_BYTES ((size_t)HALF * K * sizeof *truth)
static scratch place, kept;

static void make_index(void) {
    sl_index_params params;
    indexes_params(&params, DIM, SL_METRIC_IP);
    params.m = 6;
    params.ef_construction = 20;
    sl_index *index = indexes_make(&params, rows, SL_F32, N, NULL, 1);
    indexes_exact(SL_METRIC_IP, DIM, (vector_rows){rows, SL_F32, N}, (vector_rows){queries, SL_F32, HALF}, K, truth);
    ck_ok(sl_index_save(index, kept.path, NULL));
    sl_index_free(index);
}

/* Runs once for all tests, in a process of its own; each test is a process too. OpenMP's threads don't survive in the
 * children of a process that had them. */
static void make_once(void) {
    int status;
    rows = clusters_make(N + HALF, DIM, 0.3, 21);
    ck_assert_ptr_nonnull(rows);
    queries = rows + (size_t)N * DIM;
    truth = mmap(NULL, TRUTH_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(truth, MAP_FAILED);
    scratch_open(&kept);
    pid_t child = fork();
    if (child == 0) {
        make_index();
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
}

static void free_once(void) {
    scratch_close(&kept);
    free(rows);
    munmap(truth, TRUTH_BYTES);
}

static sl_index *idx;

static void set_up(void) {
    scratch_open(&place);
    idx = indexes_open(kept.path, SL_PLACE_DRAM);
}

static void tear_down(void) {
    sl_index_free(idx);
    scratch_close(&place);
}

/* Groups hold all partitions, one after another. */
static void check_groups(const sl_index *index) {
    const sl_partitions *groups = &index->graph.groups;
    size_t at = 0, all = index->graph.partitions.count;
    ck_assert_uint_ge(all, LEAST_PARTITIONS);
    ck_assert_uint_le(groups->count, all / SL_GROUP_PARTITIONS);
    ck_assert_uint_ge(groups->count, all / SL_GROUP_PARTITIONS * 9 / 10);
    for (size_t g = 0; g < groups->count; g++) {
        sl_range range = sl_partition_nodes(groups, g, all);
        ck_assert_uint_eq(range.first, at);
        ck_assert_uint_gt(range.end, range.first);
        at = range.end;
    }
    ck_assert_uint_eq(at, all);
    ck_ok(sl_partitions_check(&index->graph));
}

typedef struct answer {
    uint64_t ids[HALF * K];
    double recall, evaluations;
} answer;

/* Asks the first half of the queries, one a call or all in one call. */
static void answer_queries(const sl_index *index, size_t probes, size_t groups, int together, answer *out) {
    sl_search_params params;
    sl_search_stats stats;
    sl_search_params_init(&params);
    params.probes = probes;
    params.groups = groups;
    out->evaluations = 0;
    for (size_t q = 0; q < HALF; q += together ? HALF : 1) {
        ck_ok(sl_index_search(index, queries + q * DIM, SL_F32, together ? HALF : 1, 0, K, &params, out->ids + q * K,
                              NULL, &stats));
        out->evaluations += (double)stats.evaluations / HALF;
    }
    out->recall = indexes_recall(out->ids, truth, HALF, K);
}

START_TEST(few_have_none) {
    sl_index_params params;
    indexes_params(&params, DIM, SL_METRIC_IP);
    params.m = 4;
    params.ef_construction = 8;
    sl_index *small = indexes_make(&params, rows, SL_F32, (LEAST_PARTITIONS - 1) * SL_PARTITION_ROWS, NULL, 2);
    ck_assert_uint_eq(small->graph.groups.count, 0);
    ck_assert_uint_gt(small->graph.partitions.count, 0);
    sl_index_free(small);
    check_groups(idx);
    const sl_partitions *groups = &idx->graph.groups, *partitions = &idx->graph.partitions;
    ck_assert_uint_eq(indexes_stats(idx).partitions, partitions->count);
    ck_assert_uint_eq(indexes_stats(idx).groups, groups->count);
    ck_assert_uint_eq(indexes_stats(idx).bytes_partitions,
                      (partitions->count + groups->count + 2) * sizeof(uint32_t) +
                          (partitions->count + groups->count) * partitions->codec.rows.pitch +
                          partitions->count * SL_PARTITION_BANDS);
    sl_plan plan = {.struct_size = sizeof plan};
    indexes_params(&params, DIM, SL_METRIC_IP);
    ck_ok(sl_index_plan(&params, N, &plan));
    ck_assert_uint_eq(plan.bytes_partitions, indexes_stats(idx).bytes_partitions);
}
END_TEST

/* More groups find more and cost more. All groups give the same as no groups. */
START_TEST(fewer_groups_read_less) {
    enum { PROBES = 6 };
    static answer all, some, before;
    answer_queries(idx, PROBES, 0, 0, &all);
    size_t count = idx->graph.groups.count;
    const size_t alike[] = {count, count + 1, SIZE_MAX};
    for (size_t i = 0; i < sizeof alike / sizeof *alike; i++) {
        answer_queries(idx, PROBES, alike[i], 0, &some);
        ck_assert_mem_eq(some.ids, all.ids, sizeof all.ids);
        ck_assert_double_eq(some.evaluations, all.evaluations);
    }
    before.recall = 0;
    for (size_t groups = 1; groups < count; groups *= 2) {
        answer_queries(idx, PROBES, groups, 0, &some);
        ck_assert_msg(some.recall > before.recall, "%zu groups found %.4f, half as many %.4f", groups, some.recall,
                      before.recall);
        before = some;
    }
    answer_queries(idx, PROBES, count / 2, 0, &some);
    ck_assert_msg(some.recall > all.recall - 0.02, "%.4f, of all %.4f", some.recall, all.recall);
    ck_assert_msg(some.evaluations < all.evaluations - 50, "%.0f, of all %.0f", some.evaluations, all.evaluations);
}
END_TEST

/* A walk starts in the nearest partition of the nearest group, and looks at no others. */
START_TEST(walks_begin_in_a_group) {
    const sl_partitions *partitions = &idx->graph.partitions, *groups = &idx->graph.groups;
    size_t size = sl_round_up(sl_start_nodes_scratch(&idx->graph), 64), most = 0;
    uint8_t *scratch = aligned_alloc(64, size);
    sl_walk walk;
    ck_assert_ptr_nonnull(scratch);
    ck_ok(sl_walk_init(&walk, &idx->graph, K));
    for (size_t g = 0; g < groups->count; g++)
        if (groups->starts[g + 1] - groups->starts[g] > most) most = groups->starts[g + 1] - groups->starts[g];
    for (size_t q = 0; q < HALF; q++) {
        walk.evaluations = 0;
        sl_walk_set_query(&walk, (sl_query){queries + q * DIM, SL_F32}, SL_ENCODE_BOTH);
        sl_range range = sl_start_nodes(&walk, (sl_query){queries + q * DIM, SL_F32}, scratch);
        sl_range near = {0, groups->count};
        near = sl_partition_nodes(groups, centroids_nearest(idx, groups, near, queries + q * DIM), partitions->count);
        size_t p = centroids_nearest(idx, partitions, near, queries + q * DIM);
        ck_assert_uint_eq(range.first, partitions->starts[p]);
        ck_assert_uint_le(range.end, partitions->starts[p + 1]);
        ck_assert_uint_gt(walk.evaluations, groups->count);
        ck_assert_uint_le(walk.evaluations, groups->count + most);
    }
    sl_walk_free(&walk);
    free(scratch);
}
END_TEST

/* With deletions a query looks at more groups, in proportion. It finds among the remaining vectors what it found among
 * all. */
START_TEST(more_groups_where_some_are_deleted) {
    enum { GONE = N / 5 * 2 };
    sl_search_params params;
    sl_search_params_init(&params);
    params.groups = 3;
    ck_assert_uint_eq(sl_scan_groups(&idx->graph, &params), 3);
    uint64_t *ids = malloc(GONE * sizeof *ids);
    ck_assert_ptr_nonnull(ids);
    for (size_t i = 0; i < GONE; i++)
        ids[i] = i;
    idx->keeps_deleted = 1;
    ck_ok(sl_index_delete(idx, ids, GONE));
    ck_assert_uint_eq(sl_scan_groups(&idx->graph, &params), 5);
    params.groups = idx->graph.groups.count - 1;
    ck_assert_uint_eq(sl_scan_groups(&idx->graph, &params), 0);
    free(ids);
}
END_TEST

/* Many queries find what each finds alone, except for a few more partitions that chance leaves. */
START_TEST(together_as_alone) {
    static answer alone, together;
    for (size_t groups = 1; groups <= idx->graph.groups.count; groups += 3)
        for (size_t probes = 2; probes <= 200; probes *= 10) {
            answer_queries(idx, probes, groups, 0, &alone);
            answer_queries(idx, probes, groups, 1, &together);
            double off = fabs(alone.recall - together.recall);
            ck_assert_msg(off < 0.01, "%zu groups, %zu probes: recall %.4f, together %.4f", groups, probes,
                          alone.recall, together.recall);
            off = fabs(alone.evaluations / together.evaluations - 1);
            ck_assert_msg(off < 0.03, "%zu groups, %zu probes: %.0f evaluations, together %.0f", groups, probes,
                          alone.evaluations, together.evaluations);
        }
}
END_TEST

START_TEST(kept_in_files) {
    static answer with, without;
    answer_queries(idx, 4, 5, 0, &with);
    ck_ok(indexes_save(idx, place.path));
    static const sl_place places[] = {SL_PLACE_MAP, SL_PLACE_DRAM};
    for (size_t i = 0; i < 2; i++) {
        sl_index *opened = indexes_open(place.path, places[i]);
        ck_assert_uint_eq(idx->graph.groups.count, opened->graph.groups.count);
        ck_assert_mem_eq(idx->graph.groups.starts, opened->graph.groups.starts,
                         (idx->graph.groups.count + 1) * sizeof(uint32_t));
        check_groups(opened);
        answer_queries(opened, 4, 5, 0, &without);
        ck_assert_mem_eq(with.ids, without.ids, sizeof with.ids);
        indexes_sound(opened);
        sl_index_free(opened);
    }
    /* A file from before there were groups: queries look at all partitions. */
    answer_queries(idx, 4, 0, 0, &with);
    idx->graph.groups = (sl_partitions){0};
    indexes_publish(idx);
    ck_ok(indexes_save(idx, place.path));
    for (size_t i = 0; i < 2; i++) {
        sl_index *opened = indexes_open(place.path, places[i]);
        ck_assert_uint_eq(opened->graph.groups.count, 0);
        answer_queries(opened, 4, 5, 0, &without);
        ck_assert_mem_eq(with.ids, without.ids, sizeof with.ids);
        indexes_sound(opened);
        sl_index_free(opened);
    }
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Files that lie
 * ------------------------------------------------------------------------------------------------------------- */

static void late_start(sl_partitions *groups) {
    groups->starts[0] = 1;
}
static void early_end(sl_partitions *groups) {
    groups->starts[groups->count]--;
}
static void far_end(sl_partitions *groups) {
    groups->starts[groups->count] = SL_NONE;
}
static void falling(sl_partitions *groups) {
    groups->starts[3] = groups->starts[4] + 1;
}
static void far_within(sl_partitions *groups) {
    groups->starts[2] = SL_NONE;
}
static void no_factor(sl_partitions *groups) {
    sl_field_put(groups->rows + groups->codec.rows.pitch, groups->codec.rows.factor, NAN);
}
static void endless_bias(sl_partitions *groups) {
    sl_field_put(groups->rows, groups->codec.rows.bias, INFINITY);
}

static void (*const lies[])(sl_partitions *groups) = {late_start, early_end, far_end,     falling,
                                                      far_within, no_factor, endless_bias};

/* Wrong content is refused if the index is to be written to. If it's mapped, all it leads to are vectors, and a check
 * reports it. */
START_TEST(wrong_content_is_found) {
    static answer found;
    lies[_i](&idx->graph.groups);
    ck_ok(indexes_save(idx, place.path));
    sl_index *opened = indexes_broken(place.path, "group");
    for (size_t groups = 1; groups <= opened->graph.groups.count; groups += 5) {
        for (int together = 0; together < 2; together++) {
            answer_queries(opened, 300, groups, together, &found);
            for (size_t i = 0; i < HALF * K; i++)
                ck_assert(found.ids[i] == SL_NO_ID || found.ids[i] < N);
        }
    }
    sl_index_free(opened);
}
END_TEST

/* Every other group claims to hold all partitions. A query that probes several of these groups is still scanned for
 * once a partition: there is room for no more. The nearest partition goes first, and may be scanned twice. */
START_TEST(groups_may_overlap) {
    static answer found;
    sl_partitions *groups = &idx->graph.groups;
    for (size_t g = 0; g < groups->count; g++)
        groups->starts[g] = g % 2 ? (uint32_t)idx->graph.partitions.count : 0;
    idx->graph.partitions.starts[1] = 1;
    ck_ok(indexes_save(idx, place.path));
    sl_index *opened = indexes_open(place.path, SL_PLACE_MAP);
    for (size_t probes = 1; probes <= 300; probes = 3 * probes + 1) {
        answer_queries(opened, probes, groups->count - 1, 1, &found);
        for (size_t i = 0; i < HALF * K; i++)
            for (size_t j = i - i % K, before = 0; j < i; j++) {
                before += found.ids[j] == found.ids[i];
                ck_assert(before < 2 || found.ids[i] == SL_NO_ID);
            }
    }
    sl_index_free(opened);
}
END_TEST

/* Saves the index with sections left out or of other sizes; SIZE_MAX leaves a section unchanged. */
static void save_with(uint64_t partitions, uint64_t starts, uint64_t codes) {
    section_bytes cut[4] = {{0}};
    size_t count = 0;
    if (starts != SIZE_MAX) cut[count++] = (section_bytes){SL_SECTION_GROUP_STARTS, starts};
    if (codes != SIZE_MAX) cut[count++] = (section_bytes){SL_SECTION_GROUP_ROWS, codes};
    if (!partitions) {
        cut[count++] = (section_bytes){SL_SECTION_PARTITION_STARTS, 0};
        cut[count++] = (section_bytes){SL_SECTION_PARTITION_ROWS, 0};
    }
    indexes_save_cut(idx, place.path, cut, count);
}

START_TEST(wrong_sizes_are_refused) {
    uint64_t pitch = idx->graph.groups.codec.rows.pitch, count = idx->graph.groups.count;
    const uint64_t sizes[][3] = {{1, 0, SIZE_MAX},         {1, SIZE_MAX, 0},
                                 {1, count * 4, SIZE_MAX}, {1, SIZE_MAX, count * pitch - 1},
                                 {1, 4, SIZE_MAX},         {0, SIZE_MAX, SIZE_MAX}};
    sl_index *opened;
    save_with(1, SIZE_MAX, SIZE_MAX);
    sl_index_free(indexes_open(place.path, SL_PLACE_MAP));
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        save_with(sizes[i][0], sizes[i][1], sizes[i][2]);
        for (int at = SL_PLACE_DRAM; at <= SL_PLACE_MAP; at++) {
            sl_open_params params;
            sl_open_params_init(&params);
            params.place = (sl_place)at;
            ck_fails(sl_index_open(place.path, &params, &opened), SL_ECORRUPT, "groups of partitions of");
        }
    }
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Memory, cancelling
 * ------------------------------------------------------------------------------------------------------------- */

/* Whichever allocation fails, everything stays as before. Some stand for the many of each thread and iteration. */
START_TEST(without_memory_all_stays) {
    fault_allocator memory;
    fault_allocator_init(&memory, 0);
    sl_open_params params;
    sl_open_params_init(&params);
    params.place = SL_PLACE_DRAM;
    params.allocator = &memory.allocator;
    sl_index *index;
    ck_ok(sl_index_open(kept.path, &params, &index));
    index->graph.seed++;
    size_t at = 1, size = (index->graph.groups.count + 1) * sizeof(uint32_t);
    for (;; at += 1 + at / 16) {
        size_t blocks = memory.live_blocks;
        index->ordered = 0;
        memory.calls = 0;
        memory.fail_at = at;
        sl_renumber_settle(index, 0, 2, NULL);
        int failed = memory.calls >= at;
        memory.fail_at = 0;
        ck_assert_uint_eq(memory.live_blocks, blocks);
        check_groups(index);
        if (!failed) break;
        ck_assert_mem_eq(index->graph.groups.starts, idx->graph.groups.starts, size);
    }
    ck_assert_uint_gt(at, 35);
    ck_assert_uint_eq(index->ordered, N);
    indexes_sound(index);
    sl_index_free(index);
    ck_assert_uint_eq(memory.live_blocks, 0);
}
END_TEST

/* From the second search on, alone or in a batch, by scans or walks. */
START_TEST(warm_searches_allocate_nothing) {
    static answer found;
    fault_allocator memory;
    fault_allocator_init(&memory, 0);
    sl_open_params params;
    sl_open_params_init(&params);
    params.allocator = &memory.allocator;
    sl_index *index;
    ck_ok(sl_index_open(kept.path, &params, &index));
    for (int i = 0; i < 4; i++) {
        size_t probes = i < 2 ? 5 : 0;
        answer_queries(index, probes, 4, i % 2, &found);
        memory.calls = 0;
        answer_queries(index, probes, 4, i % 2, &found);
        ck_assert_uint_eq(memory.calls, 0);
    }
    sl_index_free(index);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Settings
 * ------------------------------------------------------------------------------------------------------------- */

/* A renumbered index has other groups; its settings look at an equal share of them. */
START_TEST(settings_keep_their_share) {
    sl_tuned_record record = {.target = 0.9,
                              .recall = 0.9,
                              .n = N,
                              .queries = 100,
                              .k = K,
                              .least_k = K,
                              .ef = 50,
                              .probes = 5,
                              .probes_one = 6,
                              .groups = 7};
    size_t first, before = idx->graph.groups.count;
    ck_ok(sl_settings_put(idx, &record, 1, &first));
    ck_ok(indexes_add(idx, rows, SL_F32, N, NULL));
    idx->ordered = 0;
    sl_renumber_settle(idx, 0, 2, NULL);
    size_t now = idx->graph.groups.count;
    ck_assert_uint_gt(now, 2 * before - 2);
    ck_assert_uint_ge(idx->graph.tuned->groups * before, 7 * now);
    ck_assert_uint_lt((idx->graph.tuned->groups - 1) * before, 7 * now);
    /* An index without groups. */
    sl_partitions none = {0};
    sl_settings_rescale(&idx->graph, &idx->graph.partitions, &none, idx->graph.tuned);
    ck_assert_uint_eq(idx->graph.tuned->groups, 0);
}
END_TEST

/* Tuning finds that some groups are cheaper than all, if there are many. The recall holds on other queries, one by one
 * and together. */
START_TEST(tuned_for_a_recall) {
    if (SANITIZED) return; /* too large for it */
    enum { LARGE = 100000, WIDE = 8 };
    static const double targets[] = {0.6, 0.7, 0.8};
    sl_index_params params;
    float *many = clusters_make(LARGE + 2 * HALF, WIDE, 0.3, 22), *wide_queries = many + (size_t)LARGE * WIDE;
    uint64_t *nearest = malloc((size_t)2 * HALF * K * sizeof *nearest), *found = malloc(HALF * K * sizeof *found);
    ck_assert(nearest && found);
    indexes_params(&params, WIDE, SL_METRIC_IP);
    params.m = 6;
    params.ef_construction = 12;
    sl_index *index = indexes_make(&params, many, SL_F32, LARGE, NULL, 2);
    indexes_exact(SL_METRIC_IP, WIDE, (vector_rows){many, SL_F32, LARGE},
                  (vector_rows){wide_queries, SL_F32, (size_t)2 * HALF}, K, nearest);
    sl_tune_params tune;
    sl_tune_params_init(&tune);
    tune.targets = targets;
    tune.target_count = 3;
    ck_ok(sl_index_tune(index, wide_queries, SL_F32, HALF, 0, nearest, K, &tune, NULL));
    ck_ok(indexes_save(index, place.path));
    sl_index_free(index);
    index = indexes_open(place.path, SL_PLACE_MAP);
    for (size_t i = 0; i < 3; i++) {
        sl_tuned tuned = {.struct_size = sizeof tuned};
        ck_ok(sl_index_get_tuned(index, i, &tuned));
        ck_assert_uint_gt(tuned.probes, 0);
        ck_assert_uint_gt(tuned.groups, 0);
        ck_assert_uint_lt(tuned.groups, index->graph.groups.count);
        for (size_t together = 0; together < 2; together++) {
            sl_search_params search;
            sl_search_stats stats;
            double evaluations = 0;
            sl_search_params_init(&search);
            search.recall = targets[i];
            for (size_t q = 0, n = together ? HALF : 1; q < HALF; q += n) {
                ck_ok(sl_index_search(index, wide_queries + (HALF + q) * WIDE, SL_F32, n, 0, K, &search, found + q * K,
                                      NULL, &stats));
                ck_assert_int_eq(stats.expansions == 0, (together ? tuned.probes : tuned.probes_one) > 0);
                evaluations += (double)stats.evaluations / HALF;
            }
            double recall = indexes_recall(found, nearest + (size_t)HALF * K, HALF, K);
            ck_assert_msg(recall > targets[i] - 0.02, "%g gave %.4f on other queries", targets[i], recall);
            /* Among all partitions this many would cost more. */
            search.recall = 0;
            search.probes = tuned.probes;
            ck_ok(sl_index_search(index, wide_queries, SL_F32, HALF, 0, K, &search, found, NULL, &stats));
            ck_assert(!together || evaluations < (double)stats.evaluations / HALF);
        }
    }
    sl_index_free(index);
    free(many);
    free(nearest);
    free(found);
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("groups");
    tcase_add_unchecked_fixture(tests, make_once, free_once);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, few_have_none);
    tcase_add_test(tests, fewer_groups_read_less);
    tcase_add_test(tests, walks_begin_in_a_group);
    tcase_add_test(tests, together_as_alone);
    tcase_add_test(tests, kept_in_files);
    tcase_add_loop_test(tests, wrong_content_is_found, 0, sizeof lies / sizeof *lies);
    tcase_add_test(tests, groups_may_overlap);
    tcase_add_test(tests, wrong_sizes_are_refused);
    tcase_add_test(tests, without_memory_all_stays);
    tcase_add_test(tests, warm_searches_allocate_nothing);
    tcase_add_test(tests, more_groups_where_some_are_deleted);
    tcase_add_test(tests, settings_keep_their_share);
    tcase_add_test(tests, tuned_for_a_recall);
    return check_main("groups", &tests, 1);
}
