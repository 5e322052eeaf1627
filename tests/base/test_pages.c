/* The library asks for huge pages for large arrays, in memory and in mapped files, and leaves a caller's allocator
 * alone. The tests look at the advice it gives. The system decides what it grants. */
#define _GNU_SOURCE
#include "base/memory.h"
#include "base/system.h"
#include "tests/support/check_main.h"
#include "tests/support/faults.h"
#include "tests/support/sample_file.h"
#include "tests/support/scratch.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LARGE (3 * SL_HUGE_PAGE + 12345)

/* Returns the flags of the mapping that holds the address, as /proc/self/smaps writes them: " rd wr mr hg ". Returns 0
 * if the system does not show them. */
static int flags_of(const void *address, char *flags, size_t size) {
    char line[512];
    int within = 0, told = 0;
    FILE *file = fopen("/proc/self/smaps", "re");
    while (file && !told && fgets(line, sizeof line, file)) {
        uintptr_t from, to;
        if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " ", &from, &to) == 2)
            within = (uintptr_t)address >= from && (uintptr_t)address < to;
        else if (within && strncmp(line, "VmFlags:", 8) == 0)
            told = 1;
    }
    if (file) fclose(file);
    snprintf(flags, size, "%s", told ? line + 8 : "");
    return told;
}

static int has_flag(const void *address, const char *flag) {
    char flags[512];
    ck_assert(flags_of(address, flags, sizeof flags));
    return strstr(flags, flag) != NULL;
}

START_TEST(large_blocks) {
    sl_allocator allocator = sl_allocator_of(NULL);
    void *block;
    ck_assert_int_eq(sl_mem_alloc(&allocator, LARGE, &block), SL_OK);
    ck_assert_uint_eq((uintptr_t)block % SL_HUGE_PAGE, 0);
    ck_assert(has_flag(block, " hg"));
    ck_assert(has_flag((char *)block + LARGE - 1, " hg"));
    sl_mem_free(&allocator, block, LARGE);
}
END_TEST

START_TEST(a_callers_memory_is_left_alone) {
    fault_allocator own;
    void *block;
    fault_allocator_init(&own, 0);
    ck_assert_int_eq(sl_mem_alloc(&own.allocator, LARGE, &block), SL_OK);
    ck_assert(!has_flag(block, " hg"));
    sl_mem_free(&own.allocator, block, LARGE);
}
END_TEST

/* Maps a file of this size, and returns whether its mapping has the flag. */
static int mapped_with(size_t size, sl_place place, const char *flag) {
    sl_allocator allocator = sl_allocator_of(NULL);
    scratch s;
    sample_file sample;
    sl_store *store;
    scratch_open(&s);
    sample_init(&sample, &sl_index_file, 1, size);
    ck_assert_int_eq(sample_save(&sample, s.path, NULL), SL_OK);
    ck_assert_int_eq(sl_store_open(s.path, &sl_index_file, place, &allocator, &store), SL_OK);
    int has = has_flag(store->base, flag);
    sl_store_close(store, &allocator);
    sample_free(&sample);
    scratch_close(&s);
    return has;
}

START_TEST(mapped_files) {
    ck_assert_uint_gt(sl_system_memory(), 4 * LARGE);
    ck_assert(mapped_with(LARGE, SL_PLACE_MAP, " hg"));
    ck_assert(mapped_with(LARGE, SL_PLACE_MAP, " rr"));
    ck_assert(!mapped_with(SL_HUGE_PAGE / 4, SL_PLACE_MAP, " hg"));
    /* Read once, in order, and left. */
    ck_assert(!mapped_with(LARGE, SL_PLACE_DRAM, " hg"));
    ck_assert(!mapped_with(LARGE, SL_PLACE_DRAM, " rr"));
}
END_TEST

/* Counts how a save writes, seen from its file operations. */
typedef struct writes {
    uint64_t at;
    size_t whole, across; /* aligned huge pages written at once; writes that touch two */
} writes;

static int64_t count_write(void *ctx, int fd, const void *data, size_t size) {
    writes *writes = ctx;
    int64_t done = write(fd, data, size);
    writes->whole += writes->at % SL_HUGE_PAGE == 0 && size == SL_HUGE_PAGE;
    writes->across += size && writes->at / SL_HUGE_PAGE != (writes->at + size - 1) / SL_HUGE_PAGE;
    if (done > 0) writes->at += (uint64_t)done;
    return done;
}

/* So that the page cache has it in huge pages from the start. */
START_TEST(files_are_written_by_huge_pages) {
    writes writes = {0};
    sl_file_ops ops = {.ctx = &writes, .write = count_write};
    scratch s;
    sample_file sample;
    scratch_open(&s);
    sample_init(&sample, &sl_index_file, 1, 7 * SL_HUGE_PAGE);
    ck_assert_int_eq(sample_save(&sample, s.path, &ops), SL_OK);
    ck_assert_uint_gt(writes.at, 6 * SL_HUGE_PAGE);
    ck_assert_uint_ge(writes.whole, 3);
    ck_assert_uint_eq(writes.across, 0);
    sample_free(&sample);
    scratch_close(&s);
}
END_TEST

int main(void) {
    sl_system system = {.struct_size = sizeof system};
    char flags[512];
    if (sl_system_query(&system) != SL_OK || system.huge_page_size != SL_HUGE_PAGE) {
        printf("skipped: the system has no huge pages of 2 MB\n");
        return 77;
    }
    if (!flags_of(&system, flags, sizeof flags)) {
        printf("skipped: the system does not tell the flags of a mapping\n");
        return 77;
    }
    TCase *tests = tcase_create("pages");
    tcase_add_test(tests, large_blocks);
    tcase_add_test(tests, a_callers_memory_is_left_alone);
    tcase_add_test(tests, mapped_files);
    tcase_add_test(tests, files_are_written_by_huge_pages);
    return check_main("pages", &tests, 1);
}
