/* The table of running searches: who is in it, and who holds the writer up. */
#include "base/random.h"
#include "storage/readers.h"
#include "tests/support/check_main.h"
#include "tests/support/indexes.h"
#include "tests/support/scratch.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N = 50, DIM = 4, NEWEST = 9 };

static scratch place;
static char table[SCRATCH_PATH + sizeof SL_READERS_ENDING];
static sl_store *store;
static sl_allocator allocator;

static void make_file(void) {
    static float x[N * DIM];
    sl_index_params params;
    sl_save_params save;
    for (size_t i = 0; i < N * DIM; i++)
        x[i] = (float)(i * i % 17) + 1;
    indexes_params(&params, DIM, SL_METRIC_L2);
    sl_index *index = indexes_make(&params, x, SL_F32, N, NULL, 1);
    sl_save_params_init(&save);
    save.room = 2 * N;
    ck_ok(sl_index_save(index, place.path, &save));
    sl_index_free(index);
}

static void set_up(void) {
    scratch_open(&place);
    make_file();
    allocator = sl_allocator_of(NULL);
    ck_ok(sl_store_open(place.path, &sl_index_file, SL_PLACE_MAP, &allocator, &store));
    snprintf(table, sizeof table, "%s%s", place.path, SL_READERS_ENDING);
}

static void tear_down(void) {
    sl_store_close(store, &allocator);
    scratch_close(&place);
}

static sl_readers *opened(void) {
    sl_readers *readers = sl_readers_open(store, &allocator);
    ck_assert_ptr_nonnull(readers);
    return readers;
}

static uint64_t oldest(void) {
    return sl_readers_oldest(store, NEWEST);
}

static int table_is_there(void) {
    struct stat info;
    return stat(table, &info) == 0;
}

START_TEST(the_oldest_counts) {
    ck_assert_uint_eq(oldest(), NEWEST);
    sl_readers *a = opened(), *b = opened();
    sl_reader_entry *first = sl_readers_take(a), *second = sl_readers_take(a), *third = sl_readers_take(b);
    ck_assert(first && second && third && first != second);
    ck_assert_uint_eq(oldest(), NEWEST);
    sl_reader_announce(first, 7);
    sl_reader_announce(second, 5);
    sl_reader_announce(third, 3);
    ck_assert_uint_eq(oldest(), 3);
    sl_reader_done(third);
    ck_assert_uint_eq(oldest(), 5);
    sl_reader_done(second);
    sl_reader_announce(first, NEWEST + 1);
    ck_assert_uint_eq(oldest(), NEWEST);
    sl_reader_announce(second, 4);
    sl_readers_close(a);
    ck_assert_uint_eq(oldest(), NEWEST);
    ck_assert(table_is_there());
    sl_readers_close(b);
    ck_assert(!table_is_there());
}
END_TEST

/* A search of another file under the same name, an older one, holds nobody up. */
START_TEST(other_files_dont_count) {
    sl_readers *readers = opened();
    sl_reader_entry *entry = sl_readers_take(readers);
    sl_reader_announce(entry, 2);
    ck_assert_uint_eq(oldest(), 2);
    entry->identity[0] ^= 1;
    ck_assert_uint_eq(oldest(), NEWEST);
    sl_readers_close(readers);
}
END_TEST

/* Runs a child that announces a commit and waits; returns once it has. */
static pid_t announcing_child(sl_readers *readers, uint64_t commit) {
    int ends[2];
    char byte;
    ck_assert_int_eq(pipe(ends), 0);
    const pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        sl_reader_entry *entry = sl_readers_take(readers ? readers : sl_readers_open(store, &allocator));
        if (!entry) _exit(1);
        sl_reader_announce(entry, commit);
        if (write(ends[1], "x", 1) != 1) _exit(2);
        for (;;)
            pause();
    }
    close(ends[1]);
    ck_assert_int_eq(read(ends[0], &byte, 1), 1);
    close(ends[0]);
    return child;
}

static void end_child(pid_t child) {
    ck_assert_int_eq(kill(child, SIGKILL), 0);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
}

START_TEST(the_dead_hold_nobody_up) {
    const pid_t child = announcing_child(NULL, 3);
    ck_assert_uint_eq(oldest(), 3);
    end_child(child);
    ck_assert_uint_eq(oldest(), NEWEST);
    /* Its entry is used again, and the table goes with the next reader. */
    sl_readers *readers = opened();
    ck_assert_ptr_nonnull(sl_readers_take(readers));
    ck_assert_uint_eq(oldest(), NEWEST);
    sl_readers_close(readers);
    ck_assert(!table_is_there());
}
END_TEST

/* A child has entries of its own, and its end leaves the parent's alone. */
START_TEST(children_announce_for_themselves) {
    sl_readers *readers = opened();
    sl_reader_entry *mine = sl_readers_take(readers);
    sl_reader_announce(mine, 6);
    const pid_t child = announcing_child(readers, 4);
    ck_assert_uint_eq(oldest(), 4);
    sl_reader_done(mine);
    ck_assert_uint_eq(oldest(), 4);
    sl_reader_announce(mine, 6);
    end_child(child);
    ck_assert_uint_eq(oldest(), 6);
    sl_readers_close(readers);
}
END_TEST

START_TEST(full_and_missing_tables) {
    sl_readers *readers = opened();
    size_t taken = 0;
    while (sl_readers_take(readers))
        taken++;
    ck_assert_uint_eq(taken, 1024);
    ck_assert_ptr_null(sl_readers_take(readers));
    sl_readers_close(readers);
    ck_assert_int_eq(mkdir(table, 0700), 0);
    ck_assert_ptr_null(sl_readers_open(store, &allocator));
    ck_assert_uint_eq(oldest(), NEWEST);
    ck_assert_int_eq(rmdir(table), 0);
    ck_assert_int_eq(symlink(place.path, table), 0);
    ck_assert_ptr_null(sl_readers_open(store, &allocator));
    ck_assert_uint_eq(oldest(), NEWEST);
}
END_TEST

/* Bytes that nobody announced hold nobody up, and searches announce over them. */
START_TEST(forged_tables) {
    static const size_t sizes[] = {1, 63, 64, 65, 4096, 1 << 16, (1 << 16) + 1, 1 << 20};
    static unsigned char bytes[1 << 20];
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (size_t at = 0; at < sizes[i]; at++)
            bytes[at] = i % 2 ? 0xff : (unsigned char)sl_random_at(i, at);
        file_write(table, bytes, sizes[i]);
        ck_assert_uint_eq(oldest(), NEWEST);
        sl_readers *readers = sl_readers_open(store, &allocator);
        sl_reader_entry *entry = readers ? sl_readers_take(readers) : NULL;
        if (entry) {
            sl_reader_announce(entry, 5);
            ck_assert_uint_eq(oldest(), 5);
        }
        if (readers) sl_readers_close(readers);
        (void)unlink(table);
    }
}
END_TEST

/* A table that was removed by its last reader is not announced in. */
START_TEST(a_removed_table_is_made_anew) {
    sl_readers *readers = opened();
    ck_assert_int_eq(unlink(table), 0);
    sl_reader_entry *entry = sl_readers_take(readers);
    ck_assert_ptr_nonnull(entry);
    sl_reader_announce(entry, 5);
    ck_assert_uint_eq(oldest(), 5);
    sl_readers_close(readers);
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("readers");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, the_oldest_counts);
    tcase_add_test(tests, other_files_dont_count);
    tcase_add_test(tests, the_dead_hold_nobody_up);
    tcase_add_test(tests, children_announce_for_themselves);
    tcase_add_test(tests, full_and_missing_tables);
    tcase_add_test(tests, forged_tables);
    tcase_add_test(tests, a_removed_table_is_made_anew);
    return check_main("readers", &tests, 1);
}
