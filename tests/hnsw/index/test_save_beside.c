/* Saves beside changes. The file holds the index as it was when the save began to write. */
#define _GNU_SOURCE
#include "hnsw/construct/reclaim.h"
#include "hnsw/graph/index.h"
#include "hnsw/graph/version.h"
#include "tests/support/check_main.h"
#include "tests/support/clusters.h"
#include "tests/support/faults.h"
#include "tests/support/indexes.h"
#include "tests/support/scratch.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { N = 2500, MORE = 3000, DIM = 80, FREED = 80, DELETED = 30, CHANGES = 6 };

static scratch place;
static float *x; /* N rows, and MORE that come during saves */
static sl_index *idx;
static fault_allocator memory;
static size_t come; /* rows of MORE that are in the index */

typedef struct kind {
    sl_codes codes;
    sl_refine refine;
    int multi, words;
    sl_layout layout;
    size_t room;
} kind;

static const kind kinds[] = {
    {SL_CODES_I8, SL_REFINE_BF16, 0, 1, SL_LAYOUT_ARRAYS, 0},
    {SL_CODES_I8, SL_REFINE_NONE, 0, 1, SL_LAYOUT_RECORDS, 0},
    {SL_CODES_F32, SL_REFINE_NONE, 1, 1, SL_LAYOUT_ARRAYS, 4 * N},
    {SL_CODES_I4, SL_REFINE_NONE, 0, 0, SL_LAYOUT_ARRAYS, 0},
    {SL_CODES_I4, SL_REFINE_F32, 0, 1, SL_LAYOUT_RECORDS, 4 * N},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static void set_up(void) {
    scratch_open(&place);
    x = clusters_make(N + MORE, DIM, 0.3, 7);
}

static void tear_down(void) {
    sl_index_free(idx);
    idx = NULL;
    ck_assert_uint_eq(memory.live_blocks, 0);
    free(x);
    scratch_close(&place);
}

static sl_status add(size_t first, size_t n, int replace) {
    static uint64_t ids[N + MORE];
    sl_add_params params;
    sl_add_params_init(&params);
    params.threads = 1;
    params.replace = replace;
    for (size_t i = 0; i < n; i++)
        ids[i] = 5 + 3 * (first + i);
    if (replace)
        for (size_t i = 0; i < n; i++)
            ids[i] = 5 + 3 * (DELETED + FREED + i);
    return sl_index_add(idx, x + first * DIM, SL_F32, n, 0, ids, &params);
}

static void delete_rows(size_t first, size_t n) {
    for (size_t row = first; row < first + n; row++)
        ck_ok(sl_index_delete(idx, &(uint64_t){5 + 3 * row}, 1));
}

static void *add_half(void *ctx) {
    (void)ctx;
    return add(0, N / 2, 0) == SL_OK ? NULL : idx;
}

/* An index that two threads have changed, with free places, and with deleted vectors that wait for a search. */
static void make(const kind *of) {
    sl_index_params params;
    pthread_t thread;
    void *failed;
    fault_allocator_init(&memory, 0);
    indexes_params(&params, DIM, SL_METRIC_L2);
    params.codes = of->codes;
    params.refine = of->refine;
    params.multi = of->multi;
    params.tags = params.keys = of->words;
    params.allocator = &memory.allocator;
    ck_ok(sl_index_create(&params, &idx));
    ck_ok(sl_index_reserve(idx, N + CHANGES * 50)); /* the arrays stay until the last change */
    ck_assert_int_eq(pthread_create(&thread, NULL, add_half, NULL), 0);
    ck_assert_int_eq(pthread_join(thread, &failed), 0);
    ck_assert_ptr_null(failed);
    ck_ok(add(N / 2, N / 2 - 100, 0));
    ck_ok(add(N - 100, 100, 0)); /* upper layers have grown, and have room for more */
    come = 0;
    delete_rows(0, FREED);
    ck_assert(sl_reclaim_run(idx));
    sl_reading reading;
    (void)sl_reading_begin(idx, &reading);
    delete_rows(FREED, DELETED);
    ck_assert(!sl_reclaim_run(idx));
    sl_reading_end(&reading);
    ck_assert_uint_ge(idx->free.count, FREED - 1);
}

/* Changes of all kinds. The last ones compact the index. */
static void change(size_t turn) {
    const uint64_t changed = 5 + 3 * (DELETED + FREED + 40 + turn), word = 1000 + turn;
    const int words = sl_has(&idx->graph, SL_ARRAY_TAGS);
    ck_ok(add(N + come, 40, 0));
    ck_ok(add(N + come, 10, 1));
    if (words) ck_ok(sl_index_set_tags(idx, &changed, 1, &word));
    if (words) ck_ok(sl_index_set_keys(idx, &changed, 1, &word));
    delete_rows(N / 2 + turn * 60, 60);
    come += 40;
    if (turn == CHANGES - 1) ck_ok(add(N + come, MORE - come, 0)); /* grows, renumbers, and learns codes again */
}

/* File operations that change the index before they do their work. */
static size_t turns;
static void change_meanwhile(void) {
    if (turns < CHANGES) change(turns++);
}

static int open_and_change(void *ctx, const char *path, int flags, unsigned mode) {
    (void)ctx;
    if (flags & O_CREAT) change_meanwhile();
    return open(path, flags, (mode_t)mode);
}

static int64_t write_and_change(void *ctx, int fd, const void *data, size_t size) {
    (void)ctx;
    change_meanwhile();
    return write(fd, data, size < 20000 ? size : 20000);
}

static sl_status save(const kind *of, const char *path, const sl_file_ops *ops) {
    sl_save_params params;
    sl_save_params_init(&params);
    params.layout = of->layout;
    params.room = of->room;
    params.file_ops = ops;
    return sl_index_save(idx, path, &params);
}

/* A file with room has a number of its own, which a save without room leaves out. */
static void save_without_room(const char *path, char *copy, const char *name) {
    scratch_name(&place, name, copy);
    sl_index *opened = indexes_open(path, SL_PLACE_MAP);
    ck_ok(sl_index_save(opened, copy, NULL));
    sl_index_free(opened);
}

static void ck_same_files(const kind *of, const char *a, const char *b) {
    char copies[2][SCRATCH_PATH];
    size_t sizes[2];
    if (of->room) {
        save_without_room(a, copies[0], "a.sl");
        save_without_room(b, copies[1], "b.sl");
        a = copies[0];
        b = copies[1];
    }
    unsigned char *bytes[2] = {file_read(a, &sizes[0]), file_read(b, &sizes[1])};
    ck_assert_uint_eq(sizes[0], sizes[1]);
    for (size_t i = 0; i < sizes[0]; i++)
        if (bytes[0][i] != bytes[1][i]) ck_abort_msg("byte %zu differs", i);
    free(bytes[0]);
    free(bytes[1]);
}

/* A file that is saved beside changes is that of a quiet index, to the byte. */
START_TEST(saves_one_moment) {
    const kind *of = &kinds[_i];
    char quiet[SCRATCH_PATH];
    fault_files files;
    scratch_name(&place, "quiet.sl", quiet);
    make(of);
    ck_ok(save(of, quiet, NULL));
    fault_files_init(&files);
    files.ops.open = open_and_change;
    files.ops.write = write_and_change;
    turns = 0;
    ck_ok(save(of, place.path, &files.ops));
    ck_assert_uint_eq(turns, CHANGES);
    ck_assert_uint_eq(sl_index_size(idx), N - FREED - DELETED - 60 * CHANGES + MORE);
    ck_same_files(of, quiet, place.path);
    indexes_sound(idx);
    ck_ok(save(of, place.path, NULL));
    for (size_t i = 0; i < 2; i++) {
        sl_index *opened = indexes_open(i ? place.path : quiet, SL_PLACE_MAP);
        ck_assert_uint_eq(sl_index_size(opened), i ? sl_index_size(idx) : N - FREED - DELETED);
        indexes_sound(opened);
        sl_index_free(opened);
    }
}
END_TEST

/* After a save, however it ends, deleted vectors become free places, and adds take them. */
static void ck_places_move(void) {
    ck_assert(!sl_version_places_stay(idx));
    ck_assert(sl_reclaim_run(idx));
    const size_t n = idx->graph.n, count = idx->free.count;
    ck_assert_uint_ge(count, FREED + DELETED - 2);
    ck_ok(add(N, FREED / 2, 0));
    ck_assert_uint_eq(idx->graph.n, n);
    indexes_sound(idx);
}

START_TEST(places_move_again) {
    sl_save_params params;
    make(kinds);
    sl_save_params_init(&params);
    params.progress = indexes_cancel;
    if (_i)
        ck_fails(sl_index_save(idx, place.path, &params), SL_ECANCELED, "cancelled");
    else
        ck_ok(sl_index_save(idx, place.path, NULL));
    ck_places_move();
}
END_TEST

/* An index of one thread's first half and another's second, which adds and deletes in each save. */
enum { LIVE = 1000, TURN = 100, SAVES = 40 };
static size_t oldest;
static int open_and_turn_over(void *ctx, const char *path, int flags, unsigned mode) {
    (void)ctx;
    if (!(flags & O_CREAT)) return open(path, flags, (mode_t)mode);
    for (size_t i = 0; i < TURN; i++, oldest++) {
        const uint64_t old = oldest, id = oldest + LIVE;
        ck_ok(sl_index_delete(idx, &old, 1));
        ck_ok(sl_index_add(idx, x + id % (N + MORE) * DIM, SL_F32, 1, 0, &id, NULL));
    }
    return open(path, flags, (mode_t)mode);
}

static void *add_live(void *ctx) {
    for (uint64_t id = ctx ? LIVE / 2 : 0; id < (ctx ? LIVE : LIVE / 2); id++)
        ck_ok(sl_index_add(idx, x + id * DIM, SL_F32, 1, 0, &id, NULL));
    return NULL;
}

/* Changes that only come during saves still get places of deleted vectors. */
START_TEST(saves_without_end) {
    sl_index_params params;
    pthread_t thread;
    fault_files files;
    sl_save_params save_params;
    fault_allocator_init(&memory, 0);
    fault_files_init(&files);
    files.ops.open = open_and_turn_over;
    sl_save_params_init(&save_params);
    save_params.file_ops = &files.ops;
    indexes_params(&params, DIM, SL_METRIC_L2);
    params.allocator = &memory.allocator;
    ck_ok(sl_index_create(&params, &idx));
    ck_assert_int_eq(pthread_create(&thread, NULL, add_live, NULL), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    (void)add_live(idx);
    oldest = 0;
    for (size_t i = 0; i < SAVES; i++) {
        ck_ok(sl_index_save(idx, place.path, &save_params));
        ck_assert_uint_eq(sl_index_size(idx), LIVE);
        ck_assert_uint_le(idx->graph.n, LIVE + 4 * TURN);
    }
    indexes_sound(idx);
}
END_TEST

/* Without memory for copies, changes wait for the save. */
START_TEST(every_allocation_fails_once) {
    const kind *of = &kinds[1];
    char quiet[SCRATCH_PATH];
    scratch_name(&place, "quiet.sl", quiet);
    make(of);
    ck_ok(save(of, quiet, NULL));
    size_t failed = 0, passed = 0;
    for (size_t at = 1;; at++) {
        memory.calls = 0;
        memory.fail_at = at;
        const sl_status status = save(of, place.path, NULL);
        const int over = memory.calls < at;
        memory.fail_at = 0;
        ck_assert(status == SL_OK || status == SL_ENOMEM);
        failed += status != SL_OK;
        passed += status == SL_OK && !over;
        if (status == SL_OK) ck_same_files(of, quiet, place.path);
        ck_assert(!sl_version_places_stay(idx));
        if (over) break;
    }
    ck_assert_uint_ge(failed, 1);
    ck_assert_uint_ge(passed, 1);
    ck_places_move();
}
END_TEST

/* An index that one thread alone has changed takes no copy of its links. */
START_TEST(one_thread_takes_no_copies) {
    sl_index_params params;
    fault_allocator_init(&memory, 0);
    indexes_params(&params, DIM, SL_METRIC_L2);
    params.allocator = &memory.allocator;
    ck_ok(sl_index_create(&params, &idx));
    ck_ok(add(0, N, 0));
    memory.most_bytes = memory.live_bytes;
    ck_ok(sl_index_save(idx, place.path, NULL));
    ck_assert_uint_lt(memory.most_bytes - memory.live_bytes, N * idx->graph.m0 * sizeof(uint32_t));
    pthread_t thread;
    ck_ok(sl_index_delete(idx, &(uint64_t){5}, 1));
    ck_assert_int_eq(pthread_create(&thread, NULL, add_half, NULL), 0); /* refused: the ids are there */
    pthread_join(thread, NULL);
    memory.most_bytes = memory.live_bytes;
    ck_ok(sl_index_save(idx, place.path, NULL));
    ck_assert_uint_gt(memory.most_bytes - memory.live_bytes, N * idx->graph.m0 * sizeof(uint32_t));
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("save_beside");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_loop_test(tests, saves_one_moment, 0, KINDS);
    tcase_add_loop_test(tests, places_move_again, 0, 2);
    tcase_add_test(tests, every_allocation_fails_once);
    tcase_add_test(tests, one_thread_takes_no_copies);
    tcase_add_test(tests, saves_without_end);
    return check_main("save_beside", &tests, 1);
}
