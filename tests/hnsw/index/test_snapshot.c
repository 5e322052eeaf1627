/* Copies of index files: of one that never changes, of one that is being written by this process or another, of what a
 * crash left. Each stands on its own, and a copy that fails changes nothing. */
#define _GNU_SOURCE
#include "hnsw/graph/index.h"
#include "tests/support/check_main.h"
#include "tests/support/clusters.h"
#include "tests/support/faults.h"
#include "tests/support/indexes.h"
#include "tests/support/scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N = 300, STEP = 7, ALL = 4000, ROOM = 20000, DIM = 12, QUERIES = 20, K = 5, EF = 60 };

static scratch place;
static char copy_path[SCRATCH_PATH];
static float *x;

static void set_up(void) {
    scratch_open(&place);
    scratch_name(&place, "copy.sl", copy_path);
    x = clusters_make(ALL + QUERIES, DIM, 0.3, 8);
}

static void tear_down(void) {
    free(x);
    scratch_close(&place);
}

static sl_index *in_memory(size_t n) {
    sl_index_params params;
    indexes_params(&params, DIM, SL_METRIC_L2);
    return indexes_make(&params, x, SL_F32, n, NULL, 1);
}

static void make(const char *path, size_t n, size_t room) {
    sl_index *index = in_memory(n);
    sl_save_params params;
    indexes_save_params(&params);
    params.room = room;
    ck_ok(sl_index_save(index, path, &params));
    sl_index_free(index);
}

static sl_index *opened(const char *path, int writable, size_t log_bytes) {
    sl_index *index;
    sl_open_params params;
    sl_open_params_init(&params);
    params.writable = writable;
    params.log_bytes = log_bytes;
    ck_ok(sl_index_open(path, &params, &index));
    return index;
}

static sl_status snapshot_by(const sl_file_ops *ops, sl_progress_fn progress, void *ctx) {
    sl_snapshot_params params;
    sl_snapshot_params_init(&params);
    params.file_ops = ops;
    params.progress = progress;
    params.progress_ctx = ctx;
    return sl_index_snapshot(place.path, copy_path, &params);
}

static void grow(sl_index *index, size_t to) {
    for (size_t n = sl_index_size(index); n < to; n += STEP)
        ck_ok(indexes_add(index, x + n * DIM, SL_F32, STEP, NULL));
}

/* The copy is sound, can be read and written, and finds what an index in memory finds that was grown in the same steps.
 */
static size_t expect_copy(sl_index *memory) {
    uint64_t wanted[QUERIES * K], got[QUERIES * K];
    sl_index *copy = opened(copy_path, 0, 0);
    size_t n = sl_index_size(copy);
    ck_assert_uint_eq((n - N) % STEP, 0);
    ck_assert_uint_ge(n, sl_index_size(memory));
    grow(memory, n);
    indexes_sound(copy);
    indexes_search(memory, (vector_rows){x + ALL * DIM, SL_F32, QUERIES}, K, EF, wanted, NULL);
    indexes_search(copy, (vector_rows){x + ALL * DIM, SL_F32, QUERIES}, K, EF, got, NULL);
    ck_assert_mem_eq(wanted, got, sizeof got);
    sl_index_free(copy);
    return n;
}

static void expect_n(size_t n) {
    sl_index *memory = in_memory(N);
    ck_assert_uint_eq(expect_copy(memory), n);
    sl_index_free(memory);
}

/* ---------------------------------------------------------------------------------------------------------------
 * Files at rest
 * ------------------------------------------------------------------------------------------------------------- */

START_TEST(of_a_file_that_never_changes) {
    fault_files files;
    fault_files_init(&files);
    make(place.path, N, 0);
    if (_i) file_write(copy_path, "what was here", 13);
    ck_ok(_i == 2 ? snapshot_by(&files.ops, NULL, NULL) : sl_index_snapshot(place.path, copy_path, NULL));
    size_t size, copy_size;
    unsigned char *bytes = file_read(place.path, &size), *copied = file_read(copy_path, &copy_size);
    ck_assert_uint_eq(size, copy_size);
    ck_assert_mem_eq(bytes, copied, size);
    ck_assert_uint_eq(scratch_count(&place), 2);
    free(bytes);
    free(copied);
}
END_TEST

static blkcnt_t blocks_of(const char *path) {
    struct stat info;
    ck_assert_int_eq(stat(path, &info), 0);
    return info.st_blocks;
}

/* Room for millions is some hundred megabytes, and few of its pages take blocks. Holes stay holes when the system
 * copies, and when the library writes the copy. */
START_TEST(holes_stay_holes) {
    fault_files files;
    fault_files_init(&files);
    files.write_limit = 100000;
    files.interrupt_every = 3;
    make(place.path, N, 2000000);
    ck_ok(snapshot_by(_i ? &files.ops : NULL, NULL, NULL));
    struct stat info;
    ck_assert_int_eq(stat(place.path, &info), 0);
    ck_assert_int_gt(info.st_size, 200000000);
    ck_assert_int_lt(blocks_of(place.path), 40000);
    ck_assert_int_le(blocks_of(copy_path), blocks_of(place.path) + 256);
    expect_n(N);
}
END_TEST

static sl_superblock super_of(const char *path) {
    sl_store *store;
    sl_superblock super;
    sl_allocator allocator = sl_allocator_of(NULL);
    ck_ok(sl_store_open(path, &sl_index_file, SL_PLACE_MAP, &allocator, &store));
    ck_ok(sl_writable_super(store, &super));
    sl_store_close(store, &allocator);
    return super;
}

/* The copy and the file are two from then on, each with writers and a log of its own. */
START_TEST(stands_on_its_own) {
    make(place.path, N, ROOM);
    ck_ok(sl_index_snapshot(place.path, copy_path, NULL));
    sl_superblock a = super_of(place.path), b = super_of(copy_path);
    ck_assert_mem_ne(a.identity, b.identity, sizeof a.identity);
    sl_index *first = opened(place.path, 1, 0), *second = opened(copy_path, 1, 0);
    grow(first, N + 10 * STEP);
    grow(second, N + 3 * STEP);
    ck_ok(sl_index_sync(first));
    ck_ok(sl_index_sync(second));
    /* Nor is what the one has left taken for the other's. */
    char log[SCRATCH_PATH], copy_log[SCRATCH_PATH];
    size_t size;
    scratch_name(&place, "index.sl.log", log);
    scratch_name(&place, "copy.sl.log", copy_log);
    unsigned char *bytes = file_read(log, &size);
    sl_index_free(second);
    file_write(copy_log, bytes, size);
    expect_n(N + 3 * STEP);
    sl_index_free(first);
    free(bytes);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Beside a writer
 * ------------------------------------------------------------------------------------------------------------- */

START_TEST(has_what_the_last_sync_left) {
    make(place.path, N, ROOM);
    sl_index *writer = opened(place.path, 1, 0);
    grow(writer, N + 4 * STEP);
    ck_ok(sl_index_sync(writer));
    grow(writer, N + 9 * STEP);
    ck_ok(sl_index_snapshot(place.path, copy_path, NULL));
    expect_n(N + 4 * STEP);
    sl_index_free(writer);
}
END_TEST

typedef struct meanwhile {
    sl_index *writer;
    size_t steps, times;
    int reopen;
} meanwhile;

/* The file's beginning is copied already, and its end is not. */
static int write_meanwhile(void *ctx, uint64_t done, uint64_t total) {
    meanwhile *m = ctx;
    if (done == total || m->times++) return 0;
    grow(m->writer, sl_index_size(m->writer) + m->steps * STEP);
    ck_ok(sl_index_sync(m->writer));
    if (m->reopen) {
        sl_index_free(m->writer);
        m->writer = opened(place.path, 1, 1);
    }
    return 0;
}

static int replace_meanwhile(void *ctx, uint64_t done, uint64_t total) {
    (void)done;
    (void)total;
    (void)rename(ctx, place.path);
    return 0;
}

/* The file has two blocks to copy. */
static int replace_each_time(void *ctx, uint64_t done, uint64_t total) {
    if (done < total) ck_assert_int_eq(renameat2(AT_FDCWD, ctx, AT_FDCWD, place.path, RENAME_EXCHANGE), 0);
    return 0;
}

/* Another file's log goes by the name then, so the copy is made again. */
START_TEST(of_a_file_that_is_replaced) {
    char other[SCRATCH_PATH];
    scratch_name(&place, "other.sl", other);
    make(place.path, N, ROOM);
    make(other, N + STEP, ROOM);
    ck_ok(snapshot_by(NULL, replace_meanwhile, other));
    expect_n(N + STEP);
    ck_assert_int_eq(unlink(copy_path), 0);
    make(other, N, ROOM);
    ck_fails(snapshot_by(NULL, replace_each_time, other), SL_EBUSY, "was replaced 16 times while it was copied");
    ck_assert_int_ne(access(copy_path, F_OK), 0);
}
END_TEST

static int empty_meanwhile(void *ctx, uint64_t done, uint64_t total) {
    (void)done;
    (void)total;
    (void)truncate(ctx, 0);
    return 0;
}

/* The log that was there when the copying began would have made the copy whole. */
START_TEST(of_a_file_whose_log_is_emptied) {
    char log[SCRATCH_PATH];
    fault_files files;
    fault_files_init(&files);
    make(place.path, N, ROOM);
    sl_index *writer = opened(place.path, 1, 0);
    grow(writer, N + 4 * STEP);
    ck_ok(sl_index_sync(writer));
    scratch_name(&place, "index.sl.log", log);
    ck_fails(snapshot_by(&files.ops, empty_meanwhile, log), SL_ECORRUPT, "its log was cut while it was copied");
    ck_assert_int_ne(access(copy_path, F_OK), 0);
    ck_ok(sl_index_snapshot(place.path, copy_path, NULL));
    expect_n(N + 4 * STEP);
    sl_index_free(writer);
}
END_TEST

/* A log of one byte would be emptied by each sync: not while a copy is made, and soon after it. */
START_TEST(a_checkpoint_waits) {
    struct stat info;
    char log[SCRATCH_PATH];
    fault_files files;
    fault_files_init(&files);
    make(place.path, N, ROOM);
    meanwhile m = {opened(place.path, 1, 1), 50, 0, _i};
    ck_ok(snapshot_by(&files.ops, write_meanwhile, &m));
    ck_assert_uint_gt(m.times, 0);
    scratch_name(&place, "index.sl.log", log);
    ck_assert_int_eq(stat(log, &info), 0);
    if (!m.reopen) ck_assert_int_gt(info.st_size, sizeof(sl_redo_head));
    expect_n(N + 50 * STEP);
    grow(m.writer, N + 51 * STEP);
    ck_ok(sl_index_sync(m.writer));
    ck_assert_int_eq(stat(log, &info), 0);
    ck_assert_int_eq(info.st_size, sizeof(sl_redo_head));
    sl_index_free(m.writer);
    ck_ok(sl_index_snapshot(place.path, copy_path, NULL));
    expect_n(N + 51 * STEP);
}
END_TEST

/* Adds and syncs for as long as it lives, the log being emptied every few syncs. */
static void write_on(size_t *synced) {
    sl_index *writer = opened(place.path, 1, 100000);
    for (size_t n = N; n + STEP <= ALL; n += STEP) {
        if (indexes_add(writer, x + n * DIM, SL_F32, STEP, NULL) != SL_OK || sl_index_sync(writer) != SL_OK) _exit(1);
        __atomic_store_n(synced, n + STEP, __ATOMIC_RELEASE);
    }
    for (;;)
        pause();
}

/* However the writer and the copying meet: what was acknowledged is in the copy, and the copy is of one moment. */
START_TEST(beside_another_process) {
    size_t *synced = mmap(NULL, sizeof *synced, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(synced, MAP_FAILED);
    make(place.path, N, ROOM);
    *synced = N;
    pid_t child = fork();
    if (child == 0) write_on(synced);
    sl_index *memory = in_memory(N);
    size_t copies = 0, moved = 0, n = 0;
    while (n + STEP <= ALL) {
        fault_files files;
        fault_files_init(&files);
        size_t before = __atomic_load_n(synced, __ATOMIC_ACQUIRE), last = n;
        ck_ok(snapshot_by(copies++ % 2 ? &files.ops : NULL, NULL, NULL));
        n = expect_copy(memory);
        ck_assert_uint_ge(n, before);
        moved += n != last;
        ck_assert_int_eq(waitpid(child, NULL, WNOHANG), 0);
    }
    ck_assert_uint_gt(moved, 3);
    ck_assert_int_eq(kill(child, SIGKILL), 0);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    sl_index_free(memory);
    munmap(synced, sizeof *synced);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * After a crash
 * ------------------------------------------------------------------------------------------------------------- */

static void write_and_die(const char *path) {
    pid_t child = fork();
    if (child == 0) {
        sl_index *writer = opened(path, 1, 0);
        for (size_t i = 1; i <= 5; i++) {
            grow(writer, N + i * STEP);
            if (i < 5 && sl_index_sync(writer) != SL_OK) _exit(1);
        }
        _exit(0);
    }
    int how;
    ck_assert_int_eq(waitpid(child, &how, 0), child);
    ck_assert_int_eq(how, 0);
}

/* The file is as it was before the changes in its log; only the log knows them. */
START_TEST(of_what_a_crash_left) {
    char log[SCRATCH_PATH];
    size_t size, log_size, size_after;
    make(place.path, N, ROOM);
    sl_index_free(opened(place.path, 1, 0));
    unsigned char *old = file_read(place.path, &size);
    write_and_die(place.path);
    scratch_name(&place, "index.sl.log", log);
    ck_ok(sl_index_snapshot(place.path, copy_path, NULL));
    expect_n(N + 4 * STEP);
    /* The superblocks alone are the writer's. */
    sl_store *store;
    sl_allocator allocator = sl_allocator_of(NULL);
    ck_ok(sl_store_open(place.path, &sl_index_file, SL_PLACE_MAP, &allocator, &store));
    size_t section = (size_t)sl_store_section(store, SL_SECTION_LIVE)->offset;
    memcpy(old + section, store->base + section, SL_LIVE_HEAD);
    sl_store_close(store, &allocator);
    file_write(place.path, old, size);
    unsigned char *kept = file_read(log, &log_size);
    ck_ok(sl_index_snapshot(place.path, copy_path, NULL));
    expect_n(N + 4 * STEP);
    /* The source of a copy is only read. */
    unsigned char *after = file_read(place.path, &size_after);
    ck_assert_uint_eq(size, size_after);
    ck_assert_mem_eq(old, after, size);
    free(after);
    after = file_read(log, &size_after);
    ck_assert_uint_eq(log_size, size_after);
    ck_assert_mem_eq(kept, after, log_size);
    free(after);
    free(kept);
    free(old);
}
END_TEST

/* The log lies beside the file, whatever name its writer had for it. */
START_TEST(of_what_was_written_through_a_link) {
    char link[SCRATCH_PATH];
    make(place.path, N, ROOM);
    scratch_name(&place, "link.sl", link);
    ck_assert_int_eq(symlink("index.sl", link), 0);
    write_and_die(link);
    ck_assert_uint_eq(scratch_count(&place), 3);
    ck_ok(sl_index_snapshot(place.path, copy_path, NULL));
    expect_n(N + 4 * STEP);
    ck_ok(sl_index_snapshot(link, copy_path, NULL));
    expect_n(N + 4 * STEP);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * What does not work, and changes nothing
 * ------------------------------------------------------------------------------------------------------------- */

static void expect_old(void) {
    size_t size;
    unsigned char *bytes = file_read(copy_path, &size);
    ck_assert_uint_eq(size, 3);
    ck_assert_mem_eq(bytes, "old", 3);
    free(bytes);
    ck_assert_uint_eq(scratch_count(&place), 2);
}

START_TEST(every_call_may_fail) {
    make(place.path, N, _i ? ROOM : 0);
    for (int kind = 0; kind < FAULT_KINDS; kind++)
        for (size_t at = 1;; at++) {
            fault_files files;
            fault_files_init(&files);
            files.error = at % 2 ? ENOSPC : EIO;
            files.fail_at[kind] = at;
            files.write_limit = 50000;
            file_write(copy_path, "old", 3);
            sl_status status = snapshot_by(&files.ops, NULL, NULL);
            if (files.calls[kind] < at) {
                ck_assert_int_eq(status, SL_OK);
                break;
            }
            /* The folder's are the last two of all. */
            int closes_folder = kind == FAULT_CLOSE && at == 2, syncs_folder = kind == FAULT_FSYNC && at == 2;
            ck_assert_msg(closes_folder || status == (at % 2 ? SL_ENOSPC : SL_EIO), "%s %zu: %s",
                          fault_kind_name((fault_kind)kind), at, sl_status_name(status));
            const size_t finished = scratch_take_finished(&place);
            if (kind != FAULT_OPEN) ck_assert_uint_eq(finished, kind == FAULT_RENAME);
            if (syncs_folder) ck_assert_ptr_nonnull(strstr(sl_last_error(), "is saved"));
            if (syncs_folder || closes_folder)
                expect_n(N);
            else
                expect_old();
        }
}
END_TEST

static int stop(void *ctx, uint64_t done, uint64_t total) {
    (void)ctx;
    (void)done;
    (void)total;
    return 1;
}

START_TEST(cancelled) {
    make(place.path, N, ROOM);
    file_write(copy_path, "old", 3);
    ck_fails(snapshot_by(NULL, stop, NULL), SL_ECANCELED, "cancelled");
    expect_old();
}
END_TEST

static void refuse(const char *copy, sl_status status, const char *text) {
    ck_fails(sl_index_snapshot(place.path, copy, NULL), status, text);
}

START_TEST(onto_what_must_not_be) {
    char name[SCRATCH_PATH];
    size_t size, after;
    make(place.path, N, ROOM);
    unsigned char *bytes = file_read(place.path, &size);
    refuse(place.path, SL_EINVAL, "is the index itself");
    scratch_name(&place, "other", name);
    ck_assert_int_eq(link(place.path, name), 0);
    refuse(name, SL_EINVAL, "is the index itself");
    ck_assert_int_eq(unlink(name), 0);
    ck_assert_int_eq(symlink(place.path, name), 0);
    refuse(name, SL_EINVAL, "is the index itself");
    scratch_name(&place, "index.sl.log", name);
    refuse(name, SL_EINVAL, "log");
    int before = open(".", O_RDONLY | O_DIRECTORY);
    ck_assert_int_eq(chdir(place.folder), 0);
    refuse("index.sl.log", SL_EINVAL, "log");
    refuse("./index.sl.log", SL_EINVAL, "log");
    ck_assert_int_eq(fchdir(before), 0);
    close(before);
    refuse(place.folder, SL_EIO, "folder");
    refuse(NULL, SL_EINVAL, "NULL");
    ck_fails(sl_index_snapshot(copy_path, place.path, NULL), SL_EIO, "copy.sl");
    file_write(copy_path, "no index", 8);
    ck_fails(sl_index_snapshot(copy_path, place.path, NULL), SL_EFORMAT, "not a Shortlist index");
    unsigned char *now = file_read(place.path, &after);
    ck_assert_uint_eq(size, after);
    ck_assert_mem_eq(bytes, now, size);
    free(bytes);
    free(now);
}
END_TEST

/* With two writers, the one of a file that has lost its name would go on writing to the other's log. */
START_TEST(onto_what_is_being_written) {
    make(place.path, N, ROOM);
    make(copy_path, N, ROOM);
    sl_index *writer = opened(copy_path, 1, 0);
    refuse(copy_path, SL_EBUSY, "is being written");
    sl_index_free(writer);
    sl_index *reader = opened(copy_path, 0, 0);
    ck_ok(sl_index_snapshot(place.path, copy_path, NULL));
    indexes_sound(reader);
    sl_index_free(reader);
}
END_TEST

static void no_flush(void *ctx, const void *at, size_t size, uint64_t offset) {
    (void)ctx;
    (void)at;
    (void)size;
    (void)offset;
}

static void no_drain(void *ctx) {
    (void)ctx;
}

static sl_status open_directly(sl_index **out) {
    const sl_file_ops ops = {.flush = no_flush, .drain = no_drain};
    sl_open_params params;
    sl_open_params_init(&params);
    params.place = SL_PLACE_PMEM;
    params.writable = 1;
    params.file_ops = &ops;
    return sl_index_open(place.path, &params, out);
}

static int open_meanwhile(void *ctx, uint64_t done, uint64_t total) {
    sl_index *index;
    (void)done;
    (void)total;
    *(sl_status *)ctx = open_directly(&index);
    ck_assert_ptr_null(index);
    return 0;
}

/* Without a log there is nothing to make a copy whole by, so that either keeps the other off. */
START_TEST(beside_a_writer_in_persistent_memory) {
    sl_index *writer;
    make(place.path, N, ROOM);
    ck_ok(open_directly(&writer));
    ck_assert(writer->writer->direct);
    grow(writer, N + STEP);
    ck_ok(sl_index_sync(writer));
    refuse(copy_path, SL_EBUSY, "persistent memory");
    ck_assert_uint_eq(scratch_count(&place), 1);
    sl_index_free(writer);
    sl_status status = SL_OK;
    ck_ok(snapshot_by(NULL, open_meanwhile, &status));
    ck_assert_int_eq(status, SL_EBUSY);
    ck_ok(open_directly(&writer));
    sl_index_free(writer);
    sl_index *copy = opened(copy_path, 0, 0);
    ck_assert_uint_eq(sl_index_size(copy), N + STEP);
    indexes_sound(copy);
    sl_index_free(copy);
}
END_TEST

int main(void) {
    TCase *cases[] = {tcase_create("rest"), tcase_create("writer"), tcase_create("crash"), tcase_create("fails")};
    for (size_t i = 0; i < 4; i++) {
        tcase_add_checked_fixture(cases[i], set_up, tear_down);
        tcase_set_timeout(cases[i], 300);
    }
    tcase_add_loop_test(cases[0], of_a_file_that_never_changes, 0, 3);
    tcase_add_loop_test(cases[0], holes_stay_holes, 0, 2);
    tcase_add_test(cases[0], stands_on_its_own);
    tcase_add_test(cases[1], has_what_the_last_sync_left);
    tcase_add_test(cases[1], of_a_file_that_is_replaced);
    tcase_add_test(cases[1], of_a_file_whose_log_is_emptied);
    tcase_add_loop_test(cases[1], a_checkpoint_waits, 0, 2);
    tcase_add_test(cases[1], beside_another_process);
    tcase_add_test(cases[2], of_what_a_crash_left);
    tcase_add_test(cases[2], of_what_was_written_through_a_link);
    tcase_add_loop_test(cases[3], every_call_may_fail, 0, 2);
    tcase_add_test(cases[3], cancelled);
    tcase_add_test(cases[3], onto_what_must_not_be);
    tcase_add_test(cases[3], onto_what_is_being_written);
    tcase_add_test(cases[3], beside_a_writer_in_persistent_memory);
    return check_main("snapshot", cases, 4);
}
