/* Checksums of the pages of a file that is written in place. The checksums follow each commit and find each bit that
 * was changed from outside. No commit takes damaged bytes for written ones. */
#include "base/random.h"
#include "storage/page_verify.h"
#include "storage/writable.h"
#include "tests/support/check_main.h"
#include "tests/support/clusters.h"
#include "tests/support/faults.h"
#include "tests/support/indexes.h"
#include "tests/support/scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { N = 600, MORE = 200, ALL = N + MORE, ROOM = 40000, DIM = 20, FLIPS = 300 };

static scratch place;
static float *x;

static void set_up(void) {
    scratch_open(&place);
    x = clusters_make(ALL, DIM, 0.3, 21);
    sl_index_params params;
    indexes_params(&params, DIM, SL_METRIC_L2);
    sl_index *index = indexes_make(&params, x, SL_F32, N, NULL, 1);
    sl_save_params save;
    indexes_save_params(&save);
    save.room = ROOM;
    ck_ok(sl_index_save(index, place.path, &save));
    sl_index_free(index);
}

static void tear_down(void) {
    free(x);
    scratch_close(&place);
}

static sl_index *opened(sl_place where, int writable, const sl_file_ops *ops) {
    sl_index *index;
    sl_open_params params;
    sl_open_params_init(&params);
    params.place = where;
    params.writable = writable;
    params.file_ops = ops;
    ck_ok(sl_index_open(place.path, &params, &index));
    return index;
}

static sl_status checked(sl_check_report *report) {
    sl_check_params params;
    sl_check_params_init(&params);
    params.sample = 0;
    *report = (sl_check_report){.struct_size = sizeof *report};
    sl_index *index = opened(SL_PLACE_MAP, 0, NULL);
    sl_status status = sl_index_check(index, &params, report);
    sl_index_free(index);
    return status;
}

/* Everything that changes a file in place. */
static void change(const sl_file_ops *ops) {
    const uint64_t gone[] = {3, 5, 77};
    sl_index *index = opened(SL_PLACE_MAP, 1, ops);
    ck_ok(indexes_add(index, x + N * DIM, SL_F32, MORE / 2, NULL));
    ck_ok(sl_index_sync(index));
    ck_ok(sl_index_delete(index, gone, 3));
    ck_ok(sl_index_sync(index));
    ck_ok(indexes_add(index, x + (N + MORE / 2) * DIM, SL_F32, MORE / 2, NULL));
    ck_ok(sl_index_sync(index));
    sl_index_free(index);
}

/* The sum of bytes is that of their parts, one of zeros is 0, and that of a change is the change of the sum. */
START_TEST(sums_are_linear) {
    uint8_t a[SL_SUMMED_PAGE], b[SL_SUMMED_PAGE], both[SL_SUMMED_PAGE] = {0};
    ck_assert_uint_eq(sl_page_sum(0, both, sizeof both), 0);
    for (size_t i = 0; i < sizeof a; i++) {
        a[i] = (uint8_t)sl_random_at(1, i);
        b[i] = (uint8_t)sl_random_at(2, i);
        both[i] = a[i] ^ b[i];
    }
    uint32_t whole = sl_page_sum(0, a, sizeof a);
    ck_assert_uint_ne(whole, 0);
    ck_assert_uint_eq(whole ^ sl_page_sum(0, b, sizeof b), sl_page_sum(0, both, sizeof both));
    for (size_t at = 0; at <= sizeof a; at += 61)
        ck_assert_uint_eq(sl_page_sum(sl_page_sum(0, a, at), a + at, sizeof a - at), whole);
    memset(a + 1000, 0, sizeof a - 1000);
    ck_assert_uint_eq(sl_page_sum_zeros(sl_page_sum(0, a, 1000), sizeof a - 1000), sl_page_sum(0, a, sizeof a));
}
END_TEST

/* Pages of a file as saved, and of a changed one, are verified; holes are not read. */
START_TEST(every_page_is_verified) {
    sl_check_report report;
    struct stat info;
    if (_i) change(NULL);
    ck_ok(checked(&report));
    ck_assert_int_eq(report.unverified, 0);
    ck_assert_int_eq(stat(place.path, &info), 0);
    ck_assert_uint_ge(report.pages_checked, 10);
    ck_assert_uint_le(report.pages_checked, (size_t)info.st_blocks * 512 / SL_SUMMED_PAGE + 1);
    sl_index *writer = opened(SL_PLACE_MAP, 1, NULL);
    ck_ok(indexes_add(writer, x, SL_F32, 1, (const uint64_t[]){123456}));
    /* Uncommitted changes are the writer's own; the file is verified. */
    ck_assert_int_eq(indexes_sound(writer).unverified, 0);
    sl_index_free(writer);
}
END_TEST

/* Bytes of the superblocks have a CRC of their own, and of two superblocks one is enough. */
static int is_superblock(const sl_store *store, uint64_t at) {
    const sl_file_section *live = sl_store_section(store, SL_SECTION_LIVE);
    return at >= live->offset && at < live->offset + SL_LIVE_HEAD;
}

/* A byte that is not 0, at random; mostly one of data, not of room. */
static uint64_t draw(const unsigned char *bytes, size_t size, const sl_store *store, uint64_t seed) {
    for (uint64_t i = 0;; i++) {
        uint64_t at = SL_HEADER_SIZE + sl_random_at(seed, i) % (size - SL_HEADER_SIZE);
        if (bytes[at] && !is_superblock(store, at)) return at;
    }
}

START_TEST(every_bit_is_found) {
    size_t size;
    sl_store *store;
    sl_pages_found found;
    sl_progress progress;
    const sl_allocator memory = sl_allocator_of(NULL);
    if (_i) change(NULL);
    unsigned char *bytes = file_read(place.path, &size);
    ck_ok(sl_store_open(place.path, &sl_index_file, SL_PLACE_MAP, &memory, &store));
    sl_progress_start(&progress, NULL, NULL, 0);
    for (uint64_t i = 0; i < FLIPS; i++) {
        uint64_t at = draw(bytes, size, store, i);
        unsigned char flipped = bytes[at] ^ (unsigned char)(1u << i % 8);
        file_patch(place.path, at, &flipped, 1);
        ck_fails(sl_page_sums_verify(store, &found, &progress), SL_ECORRUPT, "1 pages are damaged");
        ck_assert_uint_eq(found.bad, 1);
        file_patch(place.path, at, &bytes[at], 1);
    }
    ck_ok(sl_page_sums_verify(store, &found, &progress));
    /* A hole has no blocks, and is damage where there was data. */
    uint64_t page =
        sl_store_section(store, indexes_layout() == SL_LAYOUT_RECORDS ? SL_SECTION_RECORDS : SL_SECTION_CODES)->offset;
    int fd = open(place.path, O_WRONLY);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(ftruncate(fd, (off_t)page), 0);
    ck_assert_int_eq(ftruncate(fd, (off_t)size), 0);
    ck_assert_int_eq(
        pwrite(fd, bytes + page + SL_SUMMED_PAGE, size - page - SL_SUMMED_PAGE, (off_t)(page + SL_SUMMED_PAGE)),
        (ssize_t)(size - page - SL_SUMMED_PAGE));
    close(fd);
    ck_fails(sl_page_sums_verify(store, &found, &progress), SL_ECORRUPT, "1 pages are damaged");
    sl_store_close(store, &memory);
    free(bytes);
}
END_TEST

/* A file of more than a gigabyte, nearly all of it holes, with one bad page in each block of 4 MB. */
START_TEST(damage_of_large_files_is_found) {
    enum { LARGE = 12000000, BLOCK = 4 << 20, LEAST = 300 };
    sl_store *store;
    sl_page_sums sums;
    sl_pages_found found;
    sl_progress progress;
    sl_save_params save;
    const sl_allocator memory = sl_allocator_of(NULL);
    indexes_save_params(&save);
    save.room = LARGE;
    sl_index *index = opened(SL_PLACE_DRAM, 0, NULL);
    ck_ok(sl_index_save(index, place.path, &save));
    sl_index_free(index);
    ck_ok(sl_store_open(place.path, &sl_index_file, SL_PLACE_MAP, &memory, &store));
    ck_ok(sl_page_sums_find(store, &sums));
    const uint64_t blocks = sums.pages * SL_SUMMED_PAGE / BLOCK;
    ck_assert_uint_gt(blocks, LEAST);
    sl_progress_start(&progress, NULL, NULL, 0);
    ck_ok(sl_page_sums_verify(store, &found, &progress));
    for (uint64_t i = 0; i < blocks; i++) {
        /* Behind what is data in the first sections. */
        const uint64_t at = i * BLOCK + BLOCK / 2 + i;
        const unsigned char changed = store->base[at] ^ 1;
        file_patch(place.path, at, &changed, 1);
    }
    ck_fails(sl_page_sums_verify(store, &found, &progress), SL_ECORRUPT, "pages are damaged");
    ck_assert_uint_eq(found.bad, blocks);
    sl_store_close(store, &memory);
}
END_TEST

/* Damage that was there before a writer came stays damage, in the lines it writes and beside them. */
START_TEST(no_commit_hides_damage) {
    size_t size;
    sl_store *store;
    sl_check_report report;
    const sl_allocator memory = sl_allocator_of(NULL);
    unsigned char *bytes = file_read(place.path, &size);
    ck_ok(sl_store_open(place.path, &sl_index_file, SL_PLACE_MAP, &memory, &store));
    const sl_file_section *links =
        sl_store_section(store, indexes_layout() == SL_LAYOUT_RECORDS ? SL_SECTION_RECORDS : SL_SECTION_LINKS);
    for (uint64_t i = 0; i < 20; i++) {
        file_write(place.path, bytes, size);
        uint64_t at = links->offset + sl_random_at(9, i) % (N * 16 * sizeof(uint32_t));
        unsigned char flipped = bytes[at] ^ (unsigned char)(1u << i % 8);
        file_patch(place.path, at, &flipped, 1);
        ck_assert_int_eq(checked(&report), SL_ECORRUPT);
        change(NULL);
        ck_assert_int_eq(checked(&report), SL_ECORRUPT);
        ck_assert_uint_ge(report.bad_pages, 1);
    }
    sl_store_close(store, &memory);
    free(bytes);
}
END_TEST

/* Whoever writes a new file from a damaged one is refused; over its own file the settings alone are written, and the
 * damage stays. Files with room and without. */
START_TEST(no_save_hides_damage) {
    size_t size;
    sl_check_report report;
    sl_index *index;
    char copy[SCRATCH_PATH];
    scratch_name(&place, "copy.sl", copy);
    if (_i) {
        index = opened(SL_PLACE_DRAM, 0, NULL);
        ck_ok(indexes_save(index, place.path));
        sl_index_free(index);
    }
    unsigned char *bytes = file_read(place.path, &size);
    unsigned char flipped = bytes[3 * SL_SUMMED_PAGE + 5] ^ 4;
    file_patch(place.path, 3 * SL_SUMMED_PAGE + 5, &flipped, 1);
    free(bytes);
    ck_assert_int_eq(checked(&report), SL_ECORRUPT);
    index = opened(SL_PLACE_MAP, 0, NULL);
    ck_fails(sl_index_save(index, copy, NULL), SL_ECORRUPT, "damaged");
    ck_assert_int_ne(access(copy, F_OK), 0);
    sl_status status = indexes_save(index, place.path);
    ck_assert_int_eq(status, _i ? SL_OK : SL_ECORRUPT);
    sl_index_free(index);
    ck_assert_int_eq(checked(&report), SL_ECORRUPT);
    sl_open_params params;
    sl_open_params_init(&params);
    params.place = SL_PLACE_DRAM;
    ck_fails(sl_index_open(place.path, &params, &index), SL_ECORRUPT, "damaged");
    ck_ok(sl_index_snapshot(place.path, copy, NULL));
    ck_assert_int_eq(rename(copy, place.path), 0);
    ck_assert_int_eq(checked(&report), SL_ECORRUPT);
}
END_TEST

/* Links have no checksum but their page's, and a changed one is a link like any other. */
START_TEST(no_copy_of_damaged_links) {
    sl_store *store;
    sl_index *index;
    sl_open_params params;
    const sl_allocator memory = sl_allocator_of(NULL);
    ck_ok(sl_store_open(place.path, &sl_index_file, SL_PLACE_MAP, &memory, &store));
    const sl_file_section *links = sl_store_section(store, SL_SECTION_UPPER_LINKS);
    unsigned char flipped = *(const unsigned char *)sl_store_data(store, links) ^ 1;
    file_patch(place.path, links->offset, &flipped, 1);
    sl_store_close(store, &memory);
    sl_open_params_init(&params);
    params.place = SL_PLACE_DRAM;
    ck_fails(sl_index_open(place.path, &params, &index), SL_ECORRUPT, "1 pages are damaged");
}
END_TEST

/* A writer that is held up between the pages and their sums, and a check beside it meanwhile. */
typedef struct halfway {
    sl_file_section sums; /* where they are */
    ino_t inode;
    int begun;
    pthread_t checker;
    sl_status status;
    sl_check_report report;
} halfway;

static void *check_beside(void *ctx) {
    halfway *half = ctx;
    half->status = checked(&half->report);
    return NULL;
}

static int64_t write_late(void *ctx, int fd, const void *data, size_t size, uint64_t offset) {
    halfway *half = ctx;
    struct stat info;
    int sums = offset < half->sums.offset + half->sums.size && offset + size > half->sums.offset;
    if (!half->begun && sums && fstat(fd, &info) == 0 && info.st_ino == half->inode) {
        half->begun = 1;
        ck_assert_int_eq(pthread_create(&half->checker, NULL, check_beside, half), 0);
        nanosleep(&(struct timespec){0, 500000000}, NULL);
    }
    return pwrite(fd, data, size, (off_t)offset);
}

/* The check waits for the sums, longer than the writer takes. */
START_TEST(a_page_is_read_again) {
    sl_store *store;
    struct stat info;
    halfway half = {0};
    const sl_allocator memory = sl_allocator_of(NULL);
    ck_ok(sl_store_open(place.path, &sl_index_file, SL_PLACE_MAP, &memory, &store));
    half.sums = *sl_store_section(store, SL_SECTION_PAGE_SUMS);
    sl_store_close(store, &memory);
    ck_assert_int_eq(stat(place.path, &info), 0);
    half.inode = info.st_ino;
    sl_index *index = opened(SL_PLACE_MAP, 1, &(sl_file_ops){.ctx = &half, .pwrite = write_late});
    ck_ok(indexes_add(index, x + N * DIM, SL_F32, MORE, NULL));
    ck_ok(sl_index_sync(index));
    ck_assert_int_eq(half.begun, 1);
    ck_assert_int_eq(pthread_join(half.checker, NULL), 0);
    ck_assert_int_eq(half.status, SL_OK);
    ck_assert_uint_eq(half.report.bad_pages, 0);
    sl_index_free(index);
}
END_TEST

/* A commit that fails leaves the sums as the file has them: the next one sums the same changes once. */
START_TEST(failed_commits_are_summed_once) {
    sl_check_report report;
    fault_files faults;
    fault_files_init(&faults);
    faults.error = ENOSPC;
    sl_index *index = opened(SL_PLACE_MAP, 1, &faults.ops);
    ck_ok(indexes_add(index, x + N * DIM, SL_F32, MORE, NULL));
    faults.fail_at[FAULT_PWRITE] = faults.calls[FAULT_PWRITE] + 1;
    ck_assert_int_eq(sl_index_sync(index), SL_ENOSPC);
    ck_ok(sl_index_sync(index));
    sl_index_free(index);
    ck_ok(checked(&report));
    ck_assert_uint_eq(report.n, ALL);
}
END_TEST

/* Bytes written directly are not summed. The file goes on saying so, and a copy of the file says so too. */
START_TEST(written_directly) {
    sl_check_report report;
    char copy[SCRATCH_PATH];
    fault_files faults;
    fault_files_init(&faults);
    scratch_name(&place, "copy.sl", copy);
    sl_index *index = opened(SL_PLACE_PMEM, 1, &faults.ops);
    if (indexes_storage(index).mapping != SL_MAPPING_DIRECT) {
        /* Not in persistent memory: the log serves, and sums stay in force. */
        sl_index_free(index);
        ck_ok(checked(&report));
        ck_assert_int_eq(report.unverified, 0);
        return;
    }
    ck_ok(indexes_add(index, x + N * DIM, SL_F32, MORE, NULL));
    ck_ok(sl_index_sync(index));
    sl_index_free(index);
    ck_ok(sl_index_snapshot(place.path, copy, NULL));
    for (int i = 0; i < 2; i++) {
        ck_ok(checked(&report));
        ck_assert_int_eq(report.unverified, 1);
        ck_assert_uint_eq(report.pages_checked, 0);
        ck_assert_int_eq(rename(copy, place.path), i ? -1 : 0);
    }
    change(NULL);
    ck_ok(checked(&report));
    ck_assert_int_eq(report.unverified, 1);
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("page_sums");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_set_timeout(tests, 300);
    tcase_add_test(tests, sums_are_linear);
    tcase_add_loop_test(tests, every_page_is_verified, 0, 2);
    tcase_add_loop_test(tests, every_bit_is_found, 0, 2);
    tcase_add_test(tests, damage_of_large_files_is_found);
    tcase_add_test(tests, no_commit_hides_damage);
    tcase_add_loop_test(tests, no_save_hides_damage, 0, 2);
    tcase_add_test(tests, no_copy_of_damaged_links);
    tcase_add_test(tests, a_page_is_read_again);
    tcase_add_test(tests, failed_commits_are_summed_once);
    tcase_add_test(tests, written_directly);
    return check_main("page_sums", &tests, 1);
}
