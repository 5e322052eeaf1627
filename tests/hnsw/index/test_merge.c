/* Merging: one index of what several hold, each vector as it was, without those deleted; clashes, differences, damage
 * and want of memory told; the indexes left as they are. */
#include "distance/kernels.h"
#include "hnsw/graph/index.h"
#include "tests/support/check_main.h"
#include "tests/support/clusters.h"
#include "tests/support/faults.h"
#include "tests/support/indexes.h"
#include "tests/support/sanitized.h"
#include "tests/support/scratch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { HALF = 900, N = 2 * HALF, DIM = 24, LONG = 160, QUERIES = 60, K = 10, SECOND = 5000 };

static float *x, *queries; /* rows of LONG elements; the first DIM of each serve shorter ones */
static scratch place;

static void set_up(void) {
    x = clusters_make(N + QUERIES, LONG, 0.3, 21);
    queries = x + (size_t)N * LONG;
    scratch_open(&place);
}

static void tear_down(void) {
    scratch_close(&place);
    free(x);
}

static const struct kind {
    size_t dim;
    sl_metric metric;
    sl_dtype dtype;
    sl_codes codes;
    sl_refine refine;
} kinds[] = {
    {DIM, SL_METRIC_COSINE, SL_F32, SL_CODES_I8, SL_REFINE_NONE},
    {DIM, SL_METRIC_L2, SL_F32, SL_CODES_I4, SL_REFINE_F32},
    {DIM, SL_METRIC_IP, SL_F32, SL_CODES_I8, SL_REFINE_BF16},
    {LONG, SL_METRIC_COSINE, SL_F32, SL_CODES_I4, SL_REFINE_I16},
    {DIM, SL_METRIC_L2, SL_F32, SL_CODES_F32, SL_REFINE_NONE},
    {DIM, SL_METRIC_L2, SL_I8, SL_CODES_I8, SL_REFINE_NONE},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static void params_of(const struct kind *kind, sl_index_params *params) {
    indexes_params(params, kind->dim, kind->metric);
    params->dtype = kind->dtype;
    params->codes = kind->codes;
    params->refine = kind->refine;
    params->tags = params->keys = 1;
}

/* The rows of a kind, without gaps. */
static void *rows_of(const struct kind *kind, size_t first, size_t n) {
    float *floats = malloc(n * kind->dim * sizeof *floats);
    ck_assert_ptr_nonnull(floats);
    for (size_t i = 0; i < n; i++)
        memcpy(floats + i * kind->dim, x + (first + i) * LONG, kind->dim * sizeof *floats);
    if (kind->dtype == SL_F32) return floats;
    void *integers = clusters_as(kind->dtype, floats, n * kind->dim);
    free(floats);
    return integers;
}

/* Rows [first, first + n) under ids from `id` on, with their ids for tags and keys; every tenth is deleted. */
static sl_index *part(const sl_index_params *params, const struct kind *kind, size_t first, size_t n, uint64_t id) {
    uint64_t ids[N], gone[N];
    sl_index *index;
    sl_add_params add;
    void *rows = rows_of(kind, first, n);
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        ids[i] = id + i;
        if (i % 10 == 3) gone[count++] = id + i;
    }
    sl_add_params_init(&add);
    add.tags = params->tags ? ids : NULL;
    add.keys = params->keys ? ids : NULL;
    ck_ok(sl_index_create(params, &index));
    ck_ok(sl_index_add(index, rows, kind->dtype, n, 0, ids, &add));
    index->keeps_deleted = 1;
    ck_ok(sl_index_delete(index, gone, count));
    free(rows);
    return index;
}

static sl_index *merged_of(sl_index *const *parts, size_t count, const sl_merge_params *params) {
    sl_index *merged;
    ck_ok(sl_index_merge(parts, count, params, &merged));
    return merged;
}

/* The vector, tag and key of an id are the same in both. */
static void same_vector(sl_index *a, sl_index *b, uint64_t id) {
    float one[LONG], other[LONG];
    uint64_t word;
    const sl_dtype dtype = a->graph.codec.dtype;
    const size_t bytes = a->graph.codec.dim * (dtype == SL_F32 ? sizeof(float) : 1);
    ck_ok(sl_index_get(a, &id, 1, dtype, one));
    ck_ok(sl_index_get(b, &id, 1, dtype, other));
    ck_assert_mem_eq(one, other, bytes);
    ck_ok(sl_index_get_tags(b, &id, 1, &word));
    ck_assert_uint_eq(word, id);
    ck_ok(sl_index_get_keys(b, &id, 1, &word));
    ck_assert_uint_eq(word, id);
}

static void has_all(sl_index *merged, sl_index *source, uint64_t id) {
    for (uint64_t i = 0; i < HALF; i++) {
        int found;
        ck_ok(sl_index_contains(merged, id + i, &found));
        ck_assert_int_eq(found, i % 10 != 3);
        if (found) same_vector(source, merged, id + i);
    }
}

START_TEST(takes_every_vector_as_it_is) {
    const struct kind *kind = &kinds[_i];
    sl_index_params params;
    params_of(kind, &params);
    sl_index *parts[] = {part(&params, kind, 0, HALF, 0), part(&params, kind, HALF, HALF, SECOND)};
    sl_index *merged = merged_of(parts, 2, NULL);
    const sl_index_stats stats = indexes_stats(merged), first = indexes_stats(parts[0]);
    ck_assert_uint_eq(sl_index_size(merged), N - N / 10);
    ck_assert_uint_eq(stats.deleted, 0);
    ck_assert_uint_eq(stats.m, first.m);
    ck_assert_int_eq(stats.clip, first.clip);
    ck_assert_double_ge(stats.quant_error_max, first.quant_error_max);
    has_all(merged, parts[0], 0);
    has_all(merged, parts[1], SECOND);
    ck_assert_double_ge(indexes_sound(merged).sampled_recall, 0.95);
    /* Ids go on above the largest, though its vector were deleted. */
    ck_assert_uint_eq(merged->graph.next_id, SECOND + HALF);
    sl_index_free(parts[0]);
    sl_index_free(parts[1]);
    indexes_sound(merged);
    sl_index_free(merged);
}
END_TEST

static size_t saved_bytes(sl_index *index, unsigned char **bytes) {
    size_t size;
    ck_ok(sl_index_save(index, place.path, NULL));
    *bytes = file_read(place.path, &size);
    return size;
}

/* From files of every layout the same index comes as from memory, at any number of threads. */
START_TEST(files_merge_as_memory_does) {
    static const struct kind kind = {DIM, SL_METRIC_L2, SL_F32, SL_CODES_I4, SL_REFINE_I16};
    char path[SCRATCH_PATH];
    sl_index_params params;
    sl_merge_params merge;
    params_of(&kind, &params);
    sl_merge_params_init(&merge);
    merge.threads = 1;
    sl_index *parts[] = {part(&params, &kind, 0, HALF, 0), part(&params, &kind, HALF, HALF, SECOND)};
    sl_index *files[2] = {NULL};
    for (int i = 0; i < 2; i++) {
        sl_save_params save;
        sl_save_params_init(&save);
        save.layout = i ? SL_LAYOUT_RECORDS : SL_LAYOUT_ARRAYS;
        save.room = _i ? N : 0;
        scratch_name(&place, i ? "b.sl" : "a.sl", path);
        ck_ok(sl_index_save(parts[i], path, &save));
        files[i] = indexes_open(path, SL_PLACE_MAP);
    }
    sl_index *one = merged_of(parts, 2, &merge), *other = merged_of(files, 2, &merge);
    unsigned char *bytes, *again;
    size_t size = saved_bytes(one, &bytes);
    ck_assert_uint_eq(saved_bytes(other, &again), size);
    ck_assert_mem_eq(bytes, again, size);
    free(bytes);
    free(again);
    sl_index_free(one);
    sl_index_free(other);
    for (int i = 0; i < 2; i++) {
        sl_index_free(parts[i]);
        sl_index_free(files[i]);
    }
}
END_TEST

/* One index is rebuilt: deleted vectors go, and m and ef_construction may change. */
START_TEST(one_index_is_rebuilt) {
    sl_index_params params;
    sl_merge_params merge;
    params_of(&kinds[0], &params);
    sl_merge_params_init(&merge);
    merge.m = 12;
    merge.ef_construction = 90;
    sl_index *old = part(&params, &kinds[0], 0, N, 0), *merged = merged_of(&old, 1, &merge);
    const sl_index_stats stats = indexes_stats(merged);
    ck_assert_uint_eq(stats.m, 12);
    ck_assert_uint_eq(stats.ef_construction, 90);
    ck_assert_uint_eq(stats.n, N - N / 10);
    ck_assert_uint_eq(indexes_stats(old).deleted, N / 10);
    merge.m = 1;
    sl_index *none = old;
    ck_fails(sl_index_merge(&old, 1, &merge, &none), SL_EINVAL, "m is 1");
    ck_assert_ptr_null(none);
    sl_index_free(merged);
    sl_index_free(old);
}
END_TEST

/* A bound of memory, and a work file, each by itself. */
START_TEST(bounds_and_work_files_count) {
    sl_index_params params;
    sl_merge_params merge;
    params_of(&kinds[0], &params);
    sl_index *old = part(&params, &kinds[0], 0, N, 0), *none = old;
    sl_merge_params_init(&merge);
    merge.max_memory = 10000;
    ck_fails(sl_index_merge(&old, 1, &merge, &none), SL_ENOMEM, "10000 are allowed");
    ck_assert_ptr_null(none);
    file_write(place.path, "letters", 7);
    merge.max_memory = 0;
    merge.work_path = place.path;
    ck_fails(sl_index_merge(&old, 1, &merge, &none), SL_ECORRUPT, "no work file");
    ck_assert_ptr_null(none);
    sl_index_free(old);
}
END_TEST

START_TEST(clashes_are_refused_or_the_later_wins) {
    sl_index_params params;
    sl_merge_params merge;
    params_of(&kinds[4], &params);
    sl_merge_params_init(&merge);
    sl_index *parts[] = {part(&params, &kinds[4], 0, HALF, 0), part(&params, &kinds[4], HALF, HALF, HALF / 2)}, *merged;
    ck_fails(sl_index_merge(parts, 2, &merge, &merged), SL_EEXIST, "is in index 0 and in index 1");
    ck_assert_ptr_null(merged);
    merge.clash = SL_CLASH_LATER;
    merged = merged_of(parts, 2, &merge);
    for (uint64_t id = 0; id < HALF / 2 + HALF; id++) {
        int found, later;
        ck_ok(sl_index_contains(parts[1], id, &later));
        ck_ok(sl_index_contains(merged, id, &found));
        if (later || (found && id < HALF)) same_vector(parts[later], merged, id);
        ck_assert(found || !later);
    }
    sl_index_free(merged);
    merge.clash = (sl_clash)7;
    ck_fails(sl_index_merge(parts, 2, &merge, &merged), SL_EINVAL, "clash is 7");
    sl_index_free(parts[0]);
    sl_index_free(parts[1]);
}
END_TEST

/* An id that may have several vectors has those of all indexes, or those of the last one. */
START_TEST(ids_of_several_vectors_do_not_clash) {
    sl_index_params params;
    sl_merge_params merge;
    size_t count;
    params_of(&kinds[4], &params);
    params.multi = 1;
    sl_merge_params_init(&merge);
    sl_index *parts[] = {part(&params, &kinds[4], 0, HALF, 0), part(&params, &kinds[4], HALF, HALF, 0)};
    sl_index *both = merged_of(parts, 2, &merge);
    merge.clash = SL_CLASH_LATER;
    sl_index *later = merged_of(parts, 2, &merge);
    ck_ok(sl_index_get_all(both, 5, SL_F32, NULL, 0, &count));
    ck_assert_uint_eq(count, 2);
    ck_ok(sl_index_get_all(later, 5, SL_F32, NULL, 0, &count));
    ck_assert_uint_eq(count, 1);
    sl_index_free(both);
    sl_index_free(later);
    sl_index_free(parts[0]);
    sl_index_free(parts[1]);
}
END_TEST

typedef void change_fn(sl_index_params *params);
static void other_dim(sl_index_params *params) {
    params->dim = DIM - 1;
}
static void other_metric(sl_index_params *params) {
    params->metric = SL_METRIC_L2;
}
static void other_type(sl_index_params *params) {
    params->dtype = SL_I8;
}
static void other_codes(sl_index_params *params) {
    params->codes = SL_CODES_I16;
}
static void other_refine(sl_index_params *params) {
    params->refine = SL_REFINE_F32;
}
static void other_tags(sl_index_params *params) {
    params->tags = 0;
}
static void other_keys(sl_index_params *params) {
    params->keys = 0;
}
static void other_multi(sl_index_params *params) {
    params->multi = 1;
}
static const struct change {
    change_fn *make;
    const char *says;
} changes[] = {{other_dim, "dimensions"},        {other_metric, "metrics"},
               {other_type, "types of vectors"}, {other_codes, "codes"},
               {other_refine, "refinements"},    {other_tags, "different tags"},
               {other_keys, "different keys"},   {other_multi, "rules of vectors an id"}};

START_TEST(different_indexes_are_refused) {
    sl_index_params params;
    params_of(&kinds[0], &params);
    sl_index *parts[2], *merged;
    ck_ok(sl_index_create(&params, &parts[0]));
    changes[_i].make(&params);
    ck_ok(sl_index_create(&params, &parts[1]));
    ck_fails(sl_index_merge(parts, 2, NULL, &merged), SL_EINVAL, changes[_i].says);
    ck_assert_ptr_null(merged);
    ck_fails(sl_index_merge(parts, 0, NULL, &merged), SL_EINVAL, "no indexes");
    ck_fails(sl_index_merge(NULL, 1, NULL, &merged), SL_EINVAL, "no indexes");
    ck_fails(sl_index_merge(parts, 2, NULL, NULL), SL_EINVAL, "out is NULL");
    sl_index_free(parts[1]);
    parts[1] = NULL;
    ck_fails(sl_index_merge(parts, 2, NULL, &merged), SL_EINVAL, "index 1 is NULL");
    sl_index_free(parts[0]);
}
END_TEST

START_TEST(empty_indexes_merge) {
    sl_index_params params;
    params_of(&kinds[0], &params);
    sl_index *parts[3];
    for (int i = 0; i < 3; i++)
        ck_ok(sl_index_create(&params, &parts[i]));
    sl_index *merged = merged_of(parts, 3, NULL);
    ck_assert_uint_eq(sl_index_size(merged), 0);
    sl_index_free(merged);
    sl_index_free(parts[1]);
    parts[1] = part(&params, &kinds[0], 0, HALF, 0);
    merged = merged_of(parts, 3, NULL);
    ck_assert_uint_eq(sl_index_size(merged), HALF - HALF / 10);
    sl_index_free(merged);
    for (int i = 0; i < 3; i++)
        sl_index_free(parts[i]);
}
END_TEST

/* A scale that is no number, one of a vector longer than any that is added, and codes of no direction. */
START_TEST(damage_is_told) {
    const float bads[] = {NAN, 1e30F, 0}, bad = bads[_i];
    sl_index_params params;
    params_of(&kinds[0], &params);
    sl_index *old = part(&params, &kinds[0], 0, HALF, 100), *merged;
    memcpy(sl_row(&old->graph, 7) + old->graph.codec.rows.factor, &bad, sizeof bad);
    ck_fails(sl_index_merge(&old, 1, NULL, &merged), SL_ECORRUPT, "index 0: the vector of id 107 is damaged");
    ck_assert_ptr_null(merged);
    sl_index_free(old);
}
END_TEST

/* A vector of wrong codes may be sound: the file's checksum tells. */
START_TEST(damaged_files_are_refused) {
    size_t size;
    char path[SCRATCH_PATH];
    sl_index_params params;
    params_of(&kinds[0], &params);
    sl_index *sound = part(&params, &kinds[0], 0, HALF, 0);
    scratch_name(&place, "damaged.sl", path);
    ck_ok(sl_index_save(sound, path, NULL));
    unsigned char *bytes = file_read(path, &size);
    bytes[5000] ^= 4;
    file_write(path, bytes, size);
    free(bytes);
    sl_index *damaged = indexes_open(path, SL_PLACE_MAP), *both[] = {sound, damaged}, *merged;
    ck_fails(sl_index_merge(&damaged, 1, NULL, &merged), SL_ECORRUPT, "damaged.sl");
    ck_fails(sl_index_merge(both, 2, NULL, &merged), SL_ECORRUPT, "damaged.sl");
    ck_assert_ptr_null(merged);
    sl_index_free(damaged);
    sl_index_free(sound);
}
END_TEST

START_TEST(a_merge_can_be_cancelled) {
    sl_index_params params;
    sl_merge_params merge;
    params_of(&kinds[0], &params);
    sl_merge_params_init(&merge);
    merge.progress = indexes_cancel;
    sl_index *old = part(&params, &kinds[0], 0, HALF, 0), *merged;
    ck_fails(sl_index_merge(&old, 1, &merge, &merged), SL_ECANCELED, "");
    ck_assert_ptr_null(merged);
    indexes_sound(old);
    sl_index_free(old);
}
END_TEST

START_TEST(memory_may_run_out) {
    fault_allocator memory;
    sl_index_params params;
    params_of(&kinds[1], &params);
    fault_allocator_init(&memory, 0);
    params.allocator = &memory.allocator;
    sl_index *parts[] = {part(&params, &kinds[1], 0, 300, 0), part(&params, &kinds[1], HALF, 300, SECOND)}, *merged;
    /* The maps of ids stay with the indexes. */
    merged = merged_of(parts, 2, NULL);
    sl_index_free(merged);
    const size_t before = memory.live_blocks, step = SANITIZED ? 3 : 1;
    size_t failures = 0;
    for (memory.fail_at = 1;; memory.fail_at += step) {
        memory.calls = 0;
        sl_status status = sl_index_merge(parts, 2, NULL, &merged);
        ck_assert(status == SL_OK || status == SL_ENOMEM);
        ck_assert((merged != NULL) == (status == SL_OK));
        failures += status == SL_ENOMEM;
        sl_index_free(merged);
        ck_assert_uint_eq(memory.live_blocks, before);
        if (memory.calls < memory.fail_at) break;
    }
    ck_assert_uint_gt(failures, 10 / step);
    memory.fail_at = 0;
    sl_index_free(parts[0]);
    sl_index_free(parts[1]);
    ck_assert_uint_eq(memory.live_blocks, 0);
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("merge");
    tcase_set_timeout(tests, 120);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_loop_test(tests, takes_every_vector_as_it_is, 0, KINDS);
    tcase_add_loop_test(tests, files_merge_as_memory_does, 0, 2);
    tcase_add_test(tests, one_index_is_rebuilt);
    tcase_add_test(tests, bounds_and_work_files_count);
    tcase_add_test(tests, clashes_are_refused_or_the_later_wins);
    tcase_add_test(tests, ids_of_several_vectors_do_not_clash);
    tcase_add_loop_test(tests, different_indexes_are_refused, 0, sizeof changes / sizeof *changes);
    tcase_add_test(tests, empty_indexes_merge);
    tcase_add_loop_test(tests, damage_is_told, 0, 3);
    tcase_add_test(tests, damaged_files_are_refused);
    tcase_add_test(tests, a_merge_can_be_cancelled);
    tcase_add_test(tests, memory_may_run_out);
    return check_main("merge", &tests, 1);
}
