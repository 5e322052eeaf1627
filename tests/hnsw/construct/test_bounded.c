/* An add in bounded memory: the same bytes, never beyond the bound, and it goes on after an interruption. */
#define _GNU_SOURCE
#include "base/crc32c.h"
#include "hnsw/graph/index.h"
#include "storage/work.h"
#include "tests/support/check_main.h"
#include "tests/support/clusters.h"
#include "tests/support/indexes.h"
#include "tests/support/scratch.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { N = 6000, DIM = 20, HEAD = 32 };
#define MB ((size_t)1 << 20)

static float *x;
static sl_metric metric = SL_METRIC_COSINE;
static scratch place;
static char work[SCRATCH_PATH];

static void set_up(void) {
    x = clusters_make(N + 1, DIM, 1.5, 7);
    scratch_open(&place);
    scratch_name(&place, "work", work);
}

static void tear_down(void) {
    scratch_close(&place);
    free(x);
}

/* ---------------------------------------------------------------------------------------------------------------
 * The bound
 * ------------------------------------------------------------------------------------------------------------- */

/* An allocator that notes the most bytes allocated at once. */
typedef struct counted {
    size_t now, most;
} counted;

static void *counted_alloc(void *ctx, size_t size, size_t alignment) {
    counted *counted = ctx;
    const size_t now = __atomic_add_fetch(&counted->now, size, __ATOMIC_RELAXED);
    size_t most = __atomic_load_n(&counted->most, __ATOMIC_RELAXED);
    while (now > most &&
           !__atomic_compare_exchange_n(&counted->most, &most, now, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
    void *block;
    return posix_memalign(&block, alignment, size) == 0 ? block : NULL;
}

static void counted_free(void *ctx, void *block, size_t size) {
    counted *counted = ctx;
    __atomic_fetch_sub(&counted->now, size, __ATOMIC_RELAXED);
    free(block);
}

static counted count;
static const sl_allocator counting = {&count, counted_alloc, counted_free};

static void params_of(sl_index_params *params, size_t max_memory, const char *work_path) {
    indexes_params(params, DIM, metric);
    params->ef_construction = 100;
    params->max_memory = max_memory;
    params->work_path = work_path;
    params->allocator = &counting;
}

static sl_status add(sl_index *index, const float *rows, sl_progress_fn progress, void *ctx) {
    sl_add_params params;
    sl_add_params_init(&params);
    params.builder = SL_BUILDER_LEAVES;
    params.threads = 2;
    params.progress = progress;
    params.progress_ctx = ctx;
    return sl_index_add(index, rows, SL_F32, N, 0, NULL, &params);
}

/* Builds, saves and frees. Returns the file's bytes. */
static unsigned char *build_index(size_t max_memory, const char *work_path, const float *rows, size_t *size) {
    sl_index_params params;
    sl_index *index;
    params_of(&params, max_memory, work_path);
    ck_ok(sl_index_create(&params, &index));
    ck_ok(add(index, rows, NULL, NULL));
    ck_ok(indexes_save(index, place.path));
    sl_index_free(index);
    return file_read(place.path, size);
}

static void ck_built(const unsigned char *want, size_t want_size, size_t max_memory, const char *work_path,
                     const float *rows) {
    size_t size;
    unsigned char *bytes = build_index(max_memory, work_path, rows, &size);
    ck_assert_uint_eq(size, want_size);
    ck_assert_int_eq(memcmp(bytes, want, size), 0);
    ck_assert_uint_eq(scratch_count(&place), 1); /* the index alone */
    free(bytes);
}

START_TEST(bounds_change_nothing) {
    const size_t bounds[] = {0, 8 * MB, 3 * MB};
    size_t size;
    unsigned char *bytes = build_index(0, NULL, x, &size);
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++) {
        count = (counted){0};
        ck_built(bytes, size, bounds[i], work, x);
        ck_assert_uint_eq(count.now, 0);
        ck_assert(!bounds[i] || count.most <= bounds[i] + 65536); /* the accounts of the bound come on top */
    }
    ck_built(bytes, size, 64 * MB, NULL, x);
    free(bytes);
}
END_TEST

START_TEST(beyond_the_bound) {
    sl_index_params params;
    sl_index *index;
    params_of(&params, 2 * MB, NULL);
    ck_ok(sl_index_create(&params, &index));
    ck_fails(add(index, x, NULL, NULL), SL_ENOMEM, "2097152 are allowed");
    ck_assert_uint_eq(sl_index_size(index), 0);
    sl_index_free(index);
    params_of(&params, MB / 4, work);
    ck_ok(sl_index_create(&params, &index));
    ck_fails(add(index, x, NULL, NULL), SL_ENOMEM, "262144 are allowed");
    sl_index_free(index);
    params_of(&params, 100, NULL);
    ck_fails(sl_index_create(&params, &index), SL_ENOMEM, "100 are allowed");
    params_of(&params, MB, "");
    ck_fails(sl_index_create(&params, &index), SL_EINVAL, "0 bytes");
    params_of(&params, 3 * MB, work);
    params.numa = SL_NUMA_INTERLEAVE;
    ck_fails(sl_index_create(&params, &index), SL_EINVAL, "NUMA");
    ck_assert_uint_eq(scratch_count(&place), 0);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Going on
 * ------------------------------------------------------------------------------------------------------------- */

/* Leaves the work file as a kill leaves it: two thirds of the notes, and part of one more. Returns its bytes. */
static unsigned char *break_off(size_t *size) {
    sl_index_params params;
    sl_index *index;
    params_of(&params, 0, work);
    ck_ok(sl_index_create(&params, &index));
    ck_ok(add(index, x, NULL, NULL));
    sl_index_free(index);
    unsigned char *bytes = file_read(work, size);
    *size = *size / 3 * 2;
    ck_assert_int_eq(truncate(work, (off_t)*size), 0);
    return bytes;
}

/* Counts the leaves noted in full. None is noted twice. */
static size_t count_leaves(const unsigned char *bytes, size_t size) {
    unsigned char seen[N] = {0};
    size_t leaves = 0;
    sl_note note;
    for (size_t at = HEAD; at + sizeof note <= size; at += sizeof note + note.size) {
        memcpy(&note, bytes + at, sizeof note);
        if (at + sizeof note + note.size > size) break;
        if (note.kind != 4) continue;
        ck_assert_uint_lt(note.number, N);
        ck_assert_uint_eq(seen[note.number], 0);
        seen[note.number] = 1;
        leaves++;
    }
    return leaves;
}

START_TEST(goes_on) {
    metric = (sl_metric)_i;
    size_t size, first_size, whole_size;
    unsigned char *bytes = build_index(0, NULL, x, &size), *first = break_off(&first_size);
    sl_index_params params;
    sl_index *index;
    const size_t before = count_leaves(first, first_size);
    ck_assert_uint_gt(before, 3);
    params_of(&params, 3 * MB, work);
    ck_ok(sl_index_create(&params, &index));
    ck_ok(add(index, x, NULL, NULL));
    unsigned char *whole = file_read(work, &whole_size);
    ck_assert_uint_gt(count_leaves(whole, whole_size), before);
    ck_assert_int_eq(memcmp(whole, first, first_size / 2), 0);
    sl_index_free(index);
    ck_assert_int_eq(access(work, F_OK), 0); /* nothing was saved */
    ck_built(bytes, size, 0, work, x);
    free(bytes);
    free(first);
    free(whole);
    metric = SL_METRIC_COSINE;
}
END_TEST

START_TEST(other_work_is_dropped) {
    size_t size, first_size;
    unsigned char *bytes = build_index(0, NULL, x + DIM, &size);
    free(break_off(&first_size));
    ck_built(bytes, size, 0, work, x + DIM);
    free(bytes);
}
END_TEST

/* Gives a note other bytes, and the checksum of these. */
static void forge_note(unsigned char *bytes, size_t at, size_t offset, uint64_t value) {
    sl_note note;
    memcpy(&note, bytes + at, sizeof note);
    if (offset == SIZE_MAX)
        note.number = (uint32_t)value;
    else
        memcpy(bytes + at + sizeof note + offset, &value, sizeof value);
    note.crc = sl_crc32c(sl_crc32c(0, &note, offsetof(sl_note, crc)), bytes + at + sizeof note, note.size);
    memcpy(bytes + at, &note, sizeof note);
}

/* Returns the place of the first note of a kind. */
static size_t first_note(const unsigned char *bytes, size_t size, uint32_t kind) {
    sl_note note;
    for (size_t at = HEAD; at < size; at += sizeof note + note.size) {
        memcpy(&note, bytes + at, sizeof note);
        if (note.kind == kind) return at;
    }
    ck_abort_msg("no note of kind %u", kind);
}

/* The counts, the begins of leaves, points, a leaf's number, its first count and its first place. */
static const struct lies {
    uint32_t kind;
    size_t offset;
    uint64_t value;
} lies[] = {{1, 0, UINT64_MAX},  {1, 8, 1},       {1, 0, 1},
            {2, 8, UINT64_MAX},  {2, 0, 5},       {3, 0, UINT64_MAX},
            {4, SIZE_MAX, 5000}, {4, 0, 1 << 20}, {4, 8, (uint64_t)0x80000000 << 32 | (uint32_t)~5000}};

START_TEST(notes_are_not_trusted) {
    size_t size, first_size;
    unsigned char *bytes = build_index(0, NULL, x, &size), *first = break_off(&first_size);
    unsigned char *changed = malloc(first_size);
    ck_assert_ptr_nonnull(changed);
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        memcpy(changed, first, first_size);
        forge_note(changed, first_note(first, first_size, lies[i].kind), lies[i].offset, lies[i].value);
        file_write(work, changed, first_size);
        ck_built(bytes, size, 0, work, x);
    }
    /* The file is cut off and flipped at several places. */
    for (size_t i = 1; i < 8; i++) {
        file_write(work, first, first_size * i / 8);
        ck_built(bytes, size, 0, work, x);
        memcpy(changed, first, first_size);
        changed[first_size * i / 8] ^= 4;
        file_write(work, changed, first_size);
        ck_built(bytes, size, 0, work, x);
    }
    free(bytes);
    free(first);
    free(changed);
}
END_TEST

START_TEST(other_files_stay) {
    sl_index_params params;
    sl_index *index, *second;
    size_t size;
    file_write(work, "letters", 7);
    params_of(&params, 0, work);
    ck_fails(sl_index_create(&params, &index), SL_ECORRUPT, "no work file");
    unsigned char *bytes = file_read(work, &size);
    ck_assert_uint_eq(size, 7);
    free(bytes);
    ck_assert_int_eq(unlink(work), 0);
    ck_ok(sl_index_create(&params, &index));
    ck_fails(sl_index_create(&params, &second), SL_EBUSY, "work");
    sl_index_free(index);
    ck_assert_uint_eq(scratch_count(&place), 0);
    params.work_path = "/no/such/folder/work";
    ck_fails(sl_index_create(&params, &index), SL_EIO, "folder");
}
END_TEST

/* A file that may not grow stands for a full device. The add leaves nothing, and goes on once there is room. */
START_TEST(the_device_may_be_full) {
    const size_t limits[] = {100000, MB};
    struct rlimit limit;
    size_t size;
    unsigned char *bytes = build_index(0, NULL, x, &size);
    sl_index_params params;
    sl_index *index;
    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
    const rlim_t unlimited = limit.rlim_cur;
    params_of(&params, 3 * MB, work);
    ck_ok(sl_index_create(&params, &index));
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        limit.rlim_cur = limits[i];
        ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
        ck_fails(add(index, x, NULL, NULL), SL_EIO, "limit of file sizes");
        ck_assert_uint_eq(sl_index_size(index), 0);
    }
    limit.rlim_cur = unlimited;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    ck_ok(add(index, x, NULL, NULL));
    sl_index_free(index);
    ck_built(bytes, size, 0, work, x);
    free(bytes);
}
END_TEST

static sl_index *added_by(const sl_kernels *kernels, const char *work_path) {
    sl_index_params params;
    sl_index *index;
    params_of(&params, 0, work_path);
    params.codes = SL_CODES_F32;
    ck_ok(sl_index_create(&params, &index));
    index->graph.kernels = kernels;
    ck_ok(add(index, x, NULL, NULL));
    return index;
}

/* Notes hold integer products alone, which don't depend on the tier. Float sums come later. */
START_TEST(goes_on_on_another_tier) {
    size_t size, again_size;
    metric = (sl_metric)_i;
    sl_index *index = added_by(sl_kernels_best(), NULL);
    ck_ok(indexes_save(index, place.path));
    sl_index_free(index);
    unsigned char *bytes = file_read(place.path, &size);
    sl_index_free(added_by(sl_kernels_of(SL_ISA_SCALAR), work));
    ck_assert_int_eq(access(work, F_OK), 0);
    index = added_by(sl_kernels_best(), work);
    ck_ok(indexes_save(index, place.path));
    sl_index_free(index);
    unsigned char *again = file_read(place.path, &again_size);
    ck_assert_uint_eq(again_size, size);
    ck_assert_int_eq(memcmp(again, bytes, size), 0);
    free(bytes);
    free(again);
    metric = SL_METRIC_COSINE;
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("bounded");
    tcase_set_timeout(tests, 300);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, bounds_change_nothing);
    tcase_add_test(tests, beyond_the_bound);
    tcase_add_loop_test(tests, goes_on, SL_METRIC_IP, SL_METRIC_L2 + 1);
    tcase_add_loop_test(tests, goes_on_on_another_tier, SL_METRIC_IP, SL_METRIC_L2 + 1);
    tcase_add_test(tests, other_work_is_dropped);
    tcase_add_test(tests, notes_are_not_trusted);
    tcase_add_test(tests, other_files_stay);
    tcase_add_test(tests, the_device_may_be_full);
    return check_main("bounded", &tests, 1);
}
