/* Memory with a bound: what it takes, what lies in files, and what comes back when blocks are freed. */
#define _GNU_SOURCE
#include "storage/spill.h"
#include "tests/support/check_main.h"
#include "tests/support/faults.h"
#include "tests/support/indexes.h"
#include "tests/support/scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { SMALL = 1000, BLOCKS = 64 };
#define MB ((size_t)1 << 20)

static scratch place;
static char work[SCRATCH_PATH];
static fault_allocator memory;
static sl_spill *spill;
static sl_allocator bounded;
static void *blocks[BLOCKS];

static void set_up(void) {
    scratch_open(&place);
    scratch_name(&place, "work", work);
    fault_allocator_init(&memory, 0);
}

static void tear_down(void) {
    sl_spill_close(spill);
    ck_assert_uint_eq(memory.live_blocks, 0);
    scratch_close(&place);
}

static void open_bounded(size_t limit, const char *path) {
    ck_ok(sl_spill_open(&memory.allocator, limit, path, &spill));
    bounded = sl_spill_allocator(spill);
}

/* Takes blocks until there is no room, and writes to each. Returns how many there are. */
static size_t fill(size_t size) {
    size_t count = 0;
    while (count < BLOCKS && sl_mem_alloc_raw(&bounded, size, &blocks[count]) == SL_OK)
        memset(blocks[count++], 7, size);
    return count;
}

static void empty(size_t count, size_t size) {
    for (size_t i = 0; i < count; i++)
        sl_mem_free(&bounded, blocks[i], size);
}

/* Freed memory can be allocated again, time after time, and no more than that. */
START_TEST(freed_memory_is_taken_again) {
    enum { ROOM = 10, HALF = ROOM / 2 };
    const size_t size = _i ? 2 * MB : SMALL;
    open_bounded(ROOM * size, NULL);
    for (int turn = 0; turn < 3; turn++) {
        ck_assert_uint_eq(fill(size), ROOM);
        void *kept[HALF];
        memcpy(kept, blocks + HALF, sizeof kept);
        empty(HALF, size);
        ck_assert_uint_eq(fill(size), HALF);
        empty(HALF, size);
        memcpy(blocks, kept, sizeof kept);
        empty(HALF, size);
    }
}
END_TEST

/* Blocks in files leave the bound as it was, while they live and when they are freed. */
START_TEST(files_do_not_move_the_bound) {
    const size_t size = 2 * MB, limit = 8 * MB;
    open_bounded(limit, work);
    for (int turn = 0; turn < 3; turn++) {
        memory.most_bytes = memory.live_bytes;
        const size_t before = memory.live_bytes;
        ck_assert_uint_eq(fill(size), BLOCKS);
        empty(BLOCKS, size);
        ck_assert_uint_eq(memory.live_bytes, before);
        ck_assert_uint_le(memory.most_bytes - before, limit);
        /* Three quarters of the bound are for large blocks. */
        ck_assert_uint_eq((memory.most_bytes - before) / size, limit / 4 * 3 / size);
    }
    /* Small blocks have all of it. */
    ck_assert_uint_eq(fill(limit / BLOCKS), BLOCKS);
    void *more;
    ck_assert_int_eq(sl_mem_alloc_raw(&bounded, SMALL, &more), SL_ENOMEM);
    ck_fails(sl_spill_explain(spill, SL_ENOMEM), SL_ENOMEM, "8388608 are allowed");
    empty(BLOCKS, limit / BLOCKS);
    ck_assert_uint_eq(scratch_count(&place), 0);
}
END_TEST

/* Blocks of files are their own, in whatever order they are freed. */
START_TEST(files_hold_what_was_written) {
    const size_t size = SL_SPILL_LEAST + 5;
    open_bounded(3 * MB, work);
    ck_assert_uint_eq(fill(size), BLOCKS);
    for (size_t i = 0; i < BLOCKS; i++)
        memset(blocks[i], (int)i, size);
    for (size_t i = 1; i < BLOCKS; i += 2)
        sl_mem_free(&bounded, blocks[i], size);
    for (size_t i = BLOCKS - 2; i < BLOCKS; i -= 2) {
        const unsigned char *block = blocks[i];
        ck_assert(block[0] == i && block[size / 2] == i && block[size - 1] == i);
        sl_mem_free(&bounded, blocks[i], size);
    }
}
END_TEST

/* Folders of some file systems take no files without names. */
static int refuses_unnamed;

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...) {
    va_list list;
    va_start(list, flags);
    const unsigned mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(list, unsigned) : 0;
    va_end(list);
    if (refuses_unnamed && (flags & O_TMPFILE) == O_TMPFILE) {
        errno = EOPNOTSUPP;
        return -1;
    }
    return __real_open(path, flags, mode);
}

/* Files that have a name for a moment do as well, and what a process left that was killed in it is no obstacle. */
START_TEST(files_with_names_serve) {
    const size_t size = SL_SPILL_LEAST;
    char left[SCRATCH_PATH];
    scratch_name(&place, "work.0", left);
    file_write(left, "left", 4);
    refuses_unnamed = 1;
    open_bounded(2 * MB, work);
    ck_assert_uint_eq(fill(size), BLOCKS);
    ck_assert_uint_eq(scratch_count(&place), 0);
    for (size_t i = 0; i < BLOCKS; i++)
        memset(blocks[i], (int)i, size);
    for (size_t i = 0; i < BLOCKS; i++) {
        const unsigned char *block = blocks[i];
        ck_assert(block[0] == i && block[size - 1] == i);
    }
    empty(BLOCKS, size);
    refuses_unnamed = 0;
}
END_TEST

/* A block for which there is no file is told with its size, and leaves the bound as it was. */
START_TEST(files_that_cannot_be_made_are_told) {
    open_bounded(2 * MB, "/no/such/folder/work");
    void *block;
    for (int turn = 0; turn < 1000; turn++)
        ck_assert_int_eq(sl_mem_alloc_raw(&bounded, 2 * MB, &block), SL_ENOMEM);
    ck_fails(sl_spill_explain(spill, SL_ENOMEM), SL_EIO, "2097152 bytes");
    ck_assert_int_eq(sl_spill_explain(spill, SL_ENOMEM), SL_ENOMEM);
    ck_assert_uint_eq(memory.live_blocks, 1);
    ck_assert_uint_eq(fill(2 * MB / BLOCKS), BLOCKS);
    empty(BLOCKS, 2 * MB / BLOCKS);
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("spill");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_loop_test(tests, freed_memory_is_taken_again, 0, 2);
    tcase_add_test(tests, files_do_not_move_the_bound);
    tcase_add_test(tests, files_hold_what_was_written);
    tcase_add_test(tests, files_with_names_serve);
    tcase_add_test(tests, files_that_cannot_be_made_are_told);
    return check_main("spill", &tests, 1);
}
