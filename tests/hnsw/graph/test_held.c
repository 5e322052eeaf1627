/* Statistics of versions that searches hold, of their holders, and of deleted vectors in repair. */
#define _GNU_SOURCE
#include "base/random.h"
#include "hnsw/construct/reclaim.h"
#include "hnsw/graph/lives.h"
#include "hnsw/graph/version.h"
#include "tests/support/check_main.h"
#include "tests/support/faults.h"
#include "tests/support/indexes.h"
#include "tests/support/scratch.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { N = 1500, MORE = 3000, DIM = 8 };

static fault_allocator memory;
static float x[N + MORE][DIM];
static sl_index *idx;
static uint64_t next_gone;
static size_t lives_freed; /* bytes */

void __real_sl_lives_free(sl_lives *lives);
void __wrap_sl_lives_free(sl_lives *lives);
void __wrap_sl_lives_free(sl_lives *lives) {
    lives_freed += sl_lives_bytes(lives);
    __real_sl_lives_free(lives);
}

static void set_up(void) {
    sl_index_params params;
    for (size_t i = 0; i < N + MORE; i++)
        for (size_t d = 0; d < DIM; d++)
            x[i][d] = (float)sl_random_unit(i, d);
    fault_allocator_init(&memory, 0);
    indexes_params(&params, DIM, SL_METRIC_L2);
    params.allocator = &memory.allocator;
    idx = indexes_make(&params, x, SL_F32, N, NULL, 1);
    next_gone = 100;
    lives_freed = 0;
}

static void tear_down(void) {
    sl_index_free(idx);
    ck_assert_uint_eq(memory.live_blocks, 0);
}

static void delete_some(size_t count) {
    for (size_t i = 0; i < count; i++, next_gone++)
        ck_ok(sl_index_delete(idx, &next_gone, 1));
}

/* A search that changes the index once, while it reads. */
typedef struct held_search {
    void (*change)(void);
    int changed;
    sl_index_stats during;
    sl_epoch_holder holders[4];
    size_t count;
} held_search;

static int change_once(void *ctx, uint64_t id) {
    held_search *search = ctx;
    (void)id;
    if (search->changed) return 1;
    search->changed = 1;
    search->change();
    search->during = indexes_stats(idx);
    ck_ok(sl_index_holders(idx, search->holders, 4, &search->count));
    return 1;
}

static void search_beside(void (*change)(void), held_search *search) {
    uint64_t found[3];
    sl_search_params params;
    sl_search_params_init(&params);
    *search = (held_search){.change = change};
    params.accept = change_once;
    params.accept_ctx = search;
    ck_ok(sl_index_search(idx, x[7], SL_F32, 1, 0, 3, &params, found, NULL, NULL));
    ck_assert(search->changed);
    ck_assert_uint_eq(found[0], 7);
}

static void ck_nothing_held(void) {
    const sl_index_stats stats = indexes_stats(idx);
    sl_epoch_holder holder;
    size_t count;
    ck_assert_uint_eq(stats.versions_held, 0);
    ck_assert_uint_eq(stats.bytes_held, 0);
    ck_assert_uint_eq(stats.oldest_epoch, stats.epoch);
    ck_ok(sl_index_holders(idx, &holder, 1, &count));
    ck_assert_uint_eq(count, 0);
}

static void delete_three(void) {
    delete_some(3);
}

/* Each change begins an epoch. A search holds the version that it began with, and all later ones that were replaced. */
START_TEST(a_search_holds_its_epoch) {
    held_search search;
    ck_nothing_held();
    const uint64_t before = indexes_stats(idx).epoch;
    search_beside(delete_three, &search);
    ck_assert_uint_eq(search.during.epoch, before + 3);
    ck_assert_uint_eq(search.during.oldest_epoch, before);
    ck_assert_uint_eq(search.during.versions_held, 3);
    ck_assert_uint_ge(search.during.bytes_held, 3 * sl_version_bytes());
    ck_assert_uint_eq(search.count, 1);
    ck_assert_uint_eq(search.holders[0].epoch, before);
    ck_assert_int_eq(search.holders[0].pid, getpid());
    ck_assert_int_eq(search.holders[0].tid, (int)syscall(SYS_gettid));
    /* The next change frees all that the search held. */
    ck_assert_uint_eq(indexes_stats(idx).versions_held, 3);
    ck_assert_uint_eq(indexes_stats(idx).oldest_epoch, before + 3);
    delete_some(1);
    ck_nothing_held();
}
END_TEST

static void add_more(void) {
    ck_ok(indexes_add(idx, x[N], SL_F32, MORE, NULL));
}

/* The bytes are those that come back. */
START_TEST(held_bytes_are_those_that_come_back) {
    held_search search;
    search_beside(add_more, &search);
    const size_t held = search.during.bytes_held, before = memory.live_bytes;
    ck_assert_uint_eq(lives_freed, 0);
    ck_assert_uint_gt(held, N * DIM);
    ck_ok(sl_version_reserve(idx, 1));
    sl_version_publish_now(idx);
    ck_assert_uint_eq(before - memory.live_bytes + lives_freed, held);
    ck_nothing_held();
}
END_TEST

static void delete_many(void) {
    delete_some(400);
}

/* Deleted vectors wait in repair for the search, and are reusable after it. Those that the search may find wait for the
 * next repair. */
START_TEST(vectors_in_repair_are_counted) {
    held_search search;
    int waits;
    ck_assert_uint_eq(indexes_stats(idx).in_repair, 0);
    idx->keeps_deleted = 1;
    delete_some(40);
    idx->keeps_deleted = 0;
    ck_ok(sl_reclaim_some(idx, 1, &waits));
    search_beside(delete_many, &search);
    ck_assert_uint_eq(search.during.deleted, 440);
    ck_assert_uint_eq(search.during.reusable, 0);
    ck_assert_uint_eq(search.during.in_repair, 40);
    ck_ok(sl_index_compact(idx, NULL));
    ck_assert_uint_eq(indexes_stats(idx).in_repair, 0);
}
END_TEST

static void *search_here(void *ctx) {
    search_beside(delete_three, ctx);
    return (void *)syscall(SYS_gettid);
}

/* A batch call reuses searchers of other threads. The holder is the thread that searches now. */
START_TEST(holders_are_the_threads_that_search) {
    held_search search;
    pthread_t thread;
    void *tid;
    search_beside(delete_three, &search);
    ck_assert_int_eq(search.holders[0].tid, (int)syscall(SYS_gettid));
    delete_some(20);
    ck_assert_int_eq(pthread_create(&thread, NULL, search_here, &search), 0);
    pthread_join(thread, &tid);
    ck_assert_int_eq(search.holders[0].tid, (int)(long)tid);
}
END_TEST

static int list_once(void *ctx, uint64_t id) {
    held_search *search = ctx;
    (void)id;
    if (!search->changed) ck_ok(sl_index_holders(idx, search->holders, 4, &search->count));
    search->changed = 1;
    return 1;
}

/* A reader of a file announces its searches to the writer too. It lists them once. */
START_TEST(readers_of_a_file_list_their_searches_once) {
    scratch place;
    char path[SCRATCH_PATH];
    uint64_t found[3];
    held_search search = {.changed = 0};
    sl_save_params save;
    sl_search_params params;
    scratch_open(&place);
    scratch_name(&place, "live.sl", path);
    sl_save_params_init(&save);
    save.room = 2 * N;
    ck_ok(sl_index_save(idx, path, &save));
    sl_index_free(idx);
    idx = indexes_open(path, SL_PLACE_MAP);
    sl_search_params_init(&params);
    params.accept = list_once;
    params.accept_ctx = &search;
    ck_ok(sl_index_search(idx, x[7], SL_F32, 1, 0, 3, &params, found, NULL, NULL));
    ck_assert_uint_eq(search.count, 1);
    ck_assert_int_eq(search.holders[0].tid, (int)syscall(SYS_gettid));
    scratch_close(&place);
}
END_TEST

START_TEST(bad_arguments) {
    sl_epoch_holder holder;
    size_t count;
    ck_fails(sl_index_holders(NULL, &holder, 1, &count), SL_EINVAL, "NULL");
    ck_fails(sl_index_holders(idx, NULL, 1, &count), SL_EINVAL, "NULL");
    ck_fails(sl_index_holders(idx, &holder, 1, NULL), SL_EINVAL, "NULL");
    ck_ok(sl_index_holders(idx, NULL, 0, &count));
    ck_assert_uint_eq(count, 0);
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("held");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, a_search_holds_its_epoch);
    tcase_add_test(tests, held_bytes_are_those_that_come_back);
    tcase_add_test(tests, vectors_in_repair_are_counted);
    tcase_add_test(tests, holders_are_the_threads_that_search);
    tcase_add_test(tests, readers_of_a_file_list_their_searches_once);
    tcase_add_test(tests, bad_arguments);
    return check_main("held", &tests, 1);
}
