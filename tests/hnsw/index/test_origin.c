/* Who may change a file, and who finds out in time. The tests cover claims, saves over another's changes, writers whose
 * file has lost its name, and children of fork(). They also cover access that stays as narrow as it was, and files that
 * killed saves leave. */
#include "hnsw/graph/index.h"
#include "tests/support/check_main.h"
#include "tests/support/clusters.h"
#include "tests/support/indexes.h"
#include "tests/support/scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

enum { N = 300, MORE = 50, ALL = N + MORE, ROOM = 1000, DIM = 12 };

static scratch place;
static float *x;

static void make_at(const char *path, size_t n, size_t room) {
    sl_index_params params;
    indexes_params(&params, DIM, SL_METRIC_L2);
    sl_index *index = indexes_make(&params, x, SL_F32, n, NULL, 1);
    sl_save_params save;
    indexes_save_params(&save);
    save.room = room;
    ck_ok(sl_index_save(index, path, &save));
    sl_index_free(index);
}

static void set_up(void) {
    scratch_open(&place);
    x = clusters_make(ALL, DIM, 0.3, 4);
    make_at(place.path, N, 0);
}

static void tear_down(void) {
    free(x);
    scratch_close(&place);
}

static sl_status open_as(sl_place where, int writable, int exclusive, double wait_s, sl_index **out) {
    sl_open_params params;
    sl_open_params_init(&params);
    params.place = where;
    params.writable = writable;
    params.exclusive = exclusive;
    params.wait_s = wait_s;
    return sl_index_open(place.path, &params, out);
}

static sl_index *opened(sl_place where, int writable, int exclusive) {
    sl_index *index;
    ck_ok(open_as(where, writable, exclusive, 0, &index));
    return index;
}

static size_t size_now(void) {
    sl_index *index = opened(SL_PLACE_MAP, 0, 0);
    size_t size = sl_index_size(index);
    indexes_sound(index);
    sl_index_free(index);
    return size;
}

static sl_status save_over(sl_index *index) {
    return sl_index_save(index, place.path, NULL);
}

/* ---------------------------------------------------------------------------------------------------------------
 * Claims, and saves without one
 * ------------------------------------------------------------------------------------------------------------- */

/* The first and the third place are of files with room too. */
START_TEST(a_claim_keeps_others_off) {
    const sl_place where = _i % 2 ? SL_PLACE_MAP : SL_PLACE_DRAM;
    sl_index *other;
    if (_i >= 2) make_at(place.path, N, ROOM);
    sl_index *index = opened(where, 0, 1), *reader = opened(SL_PLACE_MAP, 0, 0);
    ck_fails(open_as(SL_PLACE_DRAM, 0, 1, 0, &other), SL_EBUSY, "is being written");
    if (_i >= 2) ck_fails(open_as(SL_PLACE_MAP, 1, 0, 0, &other), SL_EBUSY, "is being written");
    ck_fails(save_over(reader), SL_EBUSY, "is being written");
    for (int i = 0; i < 3; i++)
        ck_ok(save_over(index));
    ck_fails(open_as(SL_PLACE_DRAM, 0, 1, 0, &other), SL_EBUSY, "is being written");
    sl_index_free(index);
    ck_ok(open_as(SL_PLACE_DRAM, 0, 1, 0, &other));
    sl_index_free(other);
    /* The reader has the file that was replaced. */
    ck_fails(save_over(reader), SL_EBUSY, "replaced or changed by another");
    sl_index_free(reader);
    ck_assert_uint_eq(size_now(), N);
    ck_fails(open_as(SL_PLACE_MAP, 1, 1, 0, &other), SL_EINVAL, "give one");
    ck_fails(open_as(SL_PLACE_MAP, 0, 0, -1, &other), SL_EINVAL, "wait_s");
}
END_TEST

static void *free_soon(void *index) {
    nanosleep(&(struct timespec){0, 100000000}, NULL);
    sl_index_free(index);
    return NULL;
}

static int cancel(void *ctx, uint64_t done, uint64_t total) {
    (void)done;
    (void)total;
    return ++*(int *)ctx > 3;
}

START_TEST(a_claim_is_waited_for) {
    pthread_t thread;
    sl_index *index = opened(SL_PLACE_DRAM, 0, 1), *next;
    int told = 0;
    sl_open_params params;
    sl_open_params_init(&params);
    params.exclusive = 1;
    params.wait_s = 60;
    params.progress = cancel;
    params.progress_ctx = &told;
    ck_fails(sl_index_open(place.path, &params, &next), SL_ECANCELED, "cancelled");
    ck_fails(open_as(SL_PLACE_DRAM, 0, 1, 0.02, &next), SL_EBUSY, "is being written");
    ck_ok(indexes_add(index, x + N * DIM, SL_F32, MORE, NULL));
    ck_ok(save_over(index));
    ck_assert_int_eq(pthread_create(&thread, NULL, free_soon, index), 0);
    ck_ok(open_as(SL_PLACE_DRAM, 0, 1, 60, &next));
    ck_assert_uint_eq(sl_index_size(next), ALL);
    sl_index_free(next);
    pthread_join(thread, NULL);
}
END_TEST

/* Two processes changed copies of one file; the second learns of the first. */
START_TEST(no_save_undoes_another) {
    char link[SCRATCH_PATH], copy[SCRATCH_PATH];
    scratch_name(&place, "link.sl", link);
    scratch_name(&place, "copy.sl", copy);
    ck_assert_int_eq(symlink(place.path, link), 0);
    const sl_place where = _i ? SL_PLACE_MAP : SL_PLACE_DRAM;
    sl_index *first = opened(SL_PLACE_DRAM, 0, 0), *second = opened(where, 0, 0);
    ck_ok(indexes_add(first, x + N * DIM, SL_F32, MORE, NULL));
    ck_ok(save_over(first));
    ck_fails(save_over(second), SL_EBUSY, "replaced or changed by another");
    ck_fails(sl_index_save(second, link, NULL), SL_EBUSY, "open it again");
    ck_ok(sl_index_save(second, copy, NULL));
    ck_assert_uint_eq(size_now(), ALL);
    /* A process's own saves are not taken for another's. */
    ck_ok(save_over(first));
    ck_ok(sl_index_save(first, link, NULL));
    /* Nothing is undone where there is nothing. */
    ck_assert_int_eq(unlink(place.path), 0);
    ck_ok(save_over(second));
    ck_assert_uint_eq(size_now(), N);
    sl_index_free(first);
    sl_index_free(second);
}
END_TEST

/* A copy in memory does not see what is written in place meanwhile. */
START_TEST(no_save_undoes_a_sync) {
    make_at(place.path, N, ROOM);
    sl_index *copy = opened(SL_PLACE_DRAM, 0, 0), *mapped = opened(SL_PLACE_MAP, 0, 0);
    sl_index *writer = opened(SL_PLACE_MAP, 1, 0);
    ck_ok(indexes_add(writer, x + N * DIM, SL_F32, MORE, NULL));
    ck_ok(sl_index_sync(writer));
    sl_index_free(writer);
    ck_fails(save_over(copy), SL_EBUSY, "replaced or changed by another");
    ck_assert_uint_eq(size_now(), ALL);
    ck_ok(save_over(mapped));
    ck_assert_uint_eq(size_now(), ALL);
    sl_index_free(copy);
    sl_index_free(mapped);
}
END_TEST

static int open_to_write(void *ctx, uint64_t done, uint64_t total) {
    (void)done;
    (void)total;
    sl_index *other;
    *(int *)ctx |= open_as(SL_PLACE_MAP, 1, 0, 0, &other) == SL_OK;
    return 0;
}

/* A save over a mapped file keeps writers off from before its view is taken: they would add what it lacks. */
START_TEST(no_writer_during_a_save_over) {
    make_at(place.path, N, ROOM);
    int written = 0;
    sl_index *mapped = opened(SL_PLACE_MAP, 0, 0);
    sl_save_params save;
    indexes_save_params(&save);
    save.room = ROOM;
    save.progress = open_to_write;
    save.progress_ctx = &written;
    ck_ok(sl_index_save(mapped, place.path, &save));
    ck_assert_int_eq(written, 0);
    sl_index_free(mapped);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Writers
 * ------------------------------------------------------------------------------------------------------------- */

/* Changes written to a file without its name would never be found. The log of that name is another file's. */
START_TEST(a_writer_notices_that_its_file_is_gone) {
    char other[SCRATCH_PATH], log[SCRATCH_PATH];
    scratch_name(&place, "other.sl", other);
    scratch_name(&place, "index.sl.log", log);
    make_at(place.path, N, ROOM);
    make_at(other, ALL, ROOM);
    sl_index *writer = opened(SL_PLACE_MAP, 1, 0);
    ck_ok(indexes_add(writer, x + N * DIM, SL_F32, MORE, NULL));
    ck_assert_int_eq(_i == 0 ? rename(other, place.path) : _i == 1 ? unlink(place.path) : rename(place.path, other), 0);
    ck_fails(sl_index_sync(writer), SL_EBUSY, "renamed, removed or replaced");
    ck_fails(sl_index_sync(writer), SL_EBUSY, "renamed, removed or replaced");
    if (_i == 0) {
        sl_index *next = opened(SL_PLACE_MAP, 1, 0);
        const uint64_t id = 5;
        ck_ok(sl_index_delete(next, &id, 1));
        ck_ok(sl_index_sync(next));
        /* Neither emptied nor removed by the one whose file it was. */
        sl_index_free(writer);
        ck_assert_int_eq(access(log, F_OK), 0);
        sl_index_free(next);
        ck_assert_uint_eq(size_now(), ALL - 1);
    } else {
        sl_index_free(writer);
    }
    if (_i == 2) {
        /* The file needs no log by then, and is a file like others. */
        ck_assert_int_ne(access(log, F_OK), 0);
        make_at(place.path, N, ROOM);
        ck_assert_int_eq(rename(other, place.path), 0);
        sl_index_free(opened(SL_PLACE_MAP, 1, 0));
        ck_assert_uint_eq(size_now(), N);
    }
}
END_TEST

/* The file copied over is another index. Changes that the writer still holds must not be mixed into that index. */
START_TEST(a_writer_notices_that_its_file_is_another) {
    char other[SCRATCH_PATH];
    size_t size;
    scratch_name(&place, "other.sl", other);
    make_at(place.path, N, ROOM);
    make_at(other, ALL, ROOM);
    unsigned char *bytes = file_read(other, &size);
    sl_index *writer = opened(SL_PLACE_MAP, 1, 0);
    ck_ok(indexes_add(writer, x + N * DIM, SL_F32, MORE, NULL));
    int file = open(place.path, O_WRONLY);
    ck_assert_int_eq(pwrite(file, bytes, size, 0), (ssize_t)size);
    close(file);
    ck_fails(sl_index_sync(writer), SL_EBUSY, "was written over");
    sl_index_free(writer);
    unsigned char *now = file_read(place.path, &size);
    ck_assert_mem_eq(now, bytes, size);
    free(now);
    free(bytes);
}
END_TEST

/* A path from the process's folder is that folder's of the opening, whatever it is later. */
START_TEST(a_process_may_change_its_folder) {
    int before = open(".", O_RDONLY | O_DIRECTORY);
    make_at(place.path, N, ROOM);
    ck_assert_int_eq(chdir(place.folder), 0);
    sl_open_params params;
    sl_open_params_init(&params);
    sl_index *reader, *writer;
    ck_ok(sl_index_open("index.sl", &params, &reader));
    params.writable = 1;
    ck_ok(sl_index_open("./index.sl", &params, &writer));
    ck_assert_int_eq(chdir("/"), 0);
    ck_ok(indexes_add(writer, x + N * DIM, SL_F32, MORE, NULL));
    ck_ok(sl_index_sync(writer));
    ck_assert_uint_eq(sl_index_size(reader), ALL);
    sl_index_free(writer);
    sl_check_report report = {.struct_size = sizeof report};
    ck_ok(sl_index_check(reader, NULL, &report));
    ck_assert_uint_gt(report.pages_checked, 0);
    sl_index_free(reader);
    ck_assert_int_eq(fchdir(before), 0);
    close(before);
}
END_TEST

/* The child's part: what it may not do, and that it can search. */
static int child_is_refused(sl_index *writer, int ends) {
    uint64_t ids[3];
    const uint64_t id = 3;
    char copy[SCRATCH_PATH];
    scratch_name(&place, "copy.sl", copy);
    if (indexes_add(writer, x, SL_F32, 1, (const uint64_t[]){9999}) != SL_EBUSY) return 1;
    if (!strstr(sl_last_error(), "forked")) return 2;
    if (sl_index_sync(writer) != SL_EBUSY || !strstr(sl_last_error(), "forked")) return 3;
    if (sl_index_delete(writer, &id, 1) != SL_EBUSY) return 4;
    if (sl_index_check(writer, NULL, NULL) != SL_EBUSY || !strstr(sl_last_error(), "forked")) return 6;
    if (sl_index_save(writer, copy, NULL) != SL_EBUSY || !strstr(sl_last_error(), "forked")) return 7;
    if (sl_index_search(writer, x + 7 * DIM, SL_F32, 1, 0, 3, NULL, ids, NULL, NULL) != SL_OK || ids[0] != 7) return 5;
    if (ends) sl_index_free(writer);
    return 0;
}

START_TEST(a_fork_makes_no_second_writer) {
    int status;
    make_at(place.path, N, ROOM);
    sl_index *writer = opened(SL_PLACE_MAP, 1, 0), *other;
    ck_ok(indexes_add(writer, x + N * DIM, SL_F32, MORE / 2, NULL));
    ck_ok(sl_index_sync(writer));
    ck_ok(indexes_add(writer, x + (N + MORE / 2) * DIM, SL_F32, MORE / 2, NULL));
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) _exit(child_is_refused(writer, 1));
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0);
    /* The child has not let go of the lock, emptied the log or taken anything back. */
    ck_fails(open_as(SL_PLACE_MAP, 1, 0, 0, &other), SL_EBUSY, "is being written");
    ck_ok(sl_index_sync(writer));
    /* A child that lives on does not keep the file locked. */
    child = fork();
    if (child == 0) {
        pause();
        _exit(0);
    }
    sl_index_free(writer);
    ck_ok(open_as(SL_PLACE_MAP, 1, 0, 0, &other));
    sl_index_free(other);
    ck_assert_int_eq(kill(child, SIGKILL), 0);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    ck_assert_uint_eq(size_now(), ALL);
}
END_TEST

/* In persistent memory what the child wrote would be in the file at once: the second run of these tests has some. The
 * child's parent goes on meanwhile. */
START_TEST(a_forked_child_changes_nothing_at_all) {
    int begun[2], status;
    char byte = 0;
    make_at(place.path, N, ROOM);
    sl_index *writer = opened(SL_PLACE_PMEM, 1, 0);
    ck_ok(indexes_add(writer, x + N * DIM, SL_F32, MORE / 2, NULL));
    ck_ok(sl_index_sync(writer));
    ck_assert_int_eq(pipe(begun), 0);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        if (read(begun[0], &byte, 1) != 1) _exit(10);
        int direct = indexes_storage(writer).mapping == SL_MAPPING_DIRECT;
        int result = child_is_refused(writer, 0);
        /* Only who may write can repair what it owes a proof. */
        writer->unverified = 1;
        sl_status tuned = sl_index_tune(writer, x, SL_F32, 60, 0, NULL, 3, NULL, NULL);
        if (direct ? tuned != SL_EBUSY || !strstr(sl_last_error(), "forked") : tuned != SL_OK) result = 11;
        sl_index_free(writer);
        _exit(result);
    }
    ck_ok(indexes_add(writer, x + (N + MORE / 2) * DIM, SL_F32, MORE / 2, NULL));
    ck_ok(sl_index_sync(writer));
    ck_assert_int_eq(write(begun[1], &byte, 1), 1);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0);
    ck_assert_uint_eq(size_now(), ALL);
    ck_assert_uint_eq(sl_index_size(writer), ALL);
    sl_index_free(writer);
    ck_assert_uint_eq(size_now(), ALL);
    close(begun[0]);
    close(begun[1]);
}
END_TEST

/* Claims are not inherited either. */
START_TEST(a_fork_makes_no_second_changer) {
    int status;
    sl_index *index = opened(SL_PLACE_DRAM, 0, 1);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) _exit(save_over(index) != SL_EBUSY || !strstr(sl_last_error(), "forked"));
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0);
    ck_ok(save_over(index));
    sl_index_free(index);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Access, and what is left behind
 * ------------------------------------------------------------------------------------------------------------- */

static unsigned mode_of(const char *path) {
    struct stat info;
    ck_assert_int_eq(stat(path, &info), 0);
    return info.st_mode & 0777;
}

/* An access control list by which a user may read and write, and the group may not. The list's mask stands where the
 * group's bits are. Returns 0 where the file system knows no such lists. */
static int give_list(const char *path) {
    const struct {
        uint32_t version;
        struct {
            uint16_t tag, allowed;
            uint32_t user;
        } entries[5];
    } list = {
        2,
        {{0x01, 6, UINT32_MAX}, {0x02, 6, 1234}, {0x04, 0, UINT32_MAX}, {0x10, 6, UINT32_MAX}, {0x20, 0, UINT32_MAX}}};
    int given = setxattr(path, "system.posix_acl_access", &list, sizeof list, 0);
    ck_assert(given == 0 || errno == EOPNOTSUPP);
    return given == 0;
}

/* Files made beside and from it have no list, and give its group nothing. */
START_TEST(a_list_is_not_taken_for_the_group) {
    char path[SCRATCH_PATH];
    make_at(place.path, N, ROOM);
    ck_assert_int_eq(chmod(place.path, 0600), 0);
    if (!give_list(place.path)) return;
    ck_assert_uint_eq(mode_of(place.path), 0660);
    umask(0);
    sl_index *writer = opened(SL_PLACE_MAP, 1, 0);
    scratch_name(&place, "index.sl.log", path);
    ck_assert_uint_eq(mode_of(path), 0600);
    scratch_name(&place, "copy.sl", path);
    ck_ok(sl_index_snapshot(place.path, path, NULL));
    ck_assert_uint_eq(mode_of(path), 0600);
    sl_index_free(writer);
    sl_index *index = opened(SL_PLACE_DRAM, 0, 0);
    ck_ok(save_over(index));
    ck_assert_uint_eq(mode_of(place.path), 0600);
    sl_index_free(index);
}
END_TEST

/* The log, a snapshot, a save under another name and one over the file; and never more than the file replaced allows.
 */
START_TEST(private_stays_private) {
    char path[SCRATCH_PATH];
    make_at(place.path, N, ROOM);
    ck_assert_int_eq(chmod(place.path, 0600), 0);
    umask(0);
    sl_index *writer = opened(SL_PLACE_MAP, 1, 0);
    ck_ok(indexes_add(writer, x + N * DIM, SL_F32, MORE, NULL));
    ck_ok(sl_index_sync(writer));
    scratch_name(&place, "index.sl.log", path);
    ck_assert_uint_eq(mode_of(path), 0600);
    scratch_name(&place, "copy.sl", path);
    ck_ok(sl_index_snapshot(place.path, path, NULL));
    ck_assert_uint_eq(mode_of(path), 0600);
    ck_assert_int_eq(chmod(path, 0644), 0);
    ck_ok(sl_index_snapshot(place.path, path, NULL));
    ck_assert_uint_eq(mode_of(path), 0600);
    sl_index_free(writer);
    sl_index *index = opened(SL_PLACE_DRAM, 0, 0);
    scratch_name(&place, "saved.sl", path);
    ck_ok(sl_index_save(index, path, NULL));
    ck_assert_uint_eq(mode_of(path), 0600);
    ck_ok(save_over(index));
    ck_assert_uint_eq(mode_of(place.path), 0600);
    sl_index_free(index);
    /* Wider than the umask, where the file was. */
    ck_assert_int_eq(chmod(place.path, 0666), 0);
    umask(077);
    index = opened(SL_PLACE_DRAM, 0, 0);
    ck_ok(save_over(index));
    ck_assert_uint_eq(mode_of(place.path), 0666);
    sl_index_free(index);
    /* New files are the umask's. */
    umask(027);
    scratch_name(&place, "new.sl", path);
    make_at(path, N, 0);
    ck_assert_uint_eq(mode_of(path), 0640);
}
END_TEST

static void leave(const char *name, long process) {
    char file[SCRATCH_PATH], path[SCRATCH_PATH];
    snprintf(file, sizeof file, "%s.tmp.%ld.0", name, process);
    scratch_name(&place, file, path);
    file_write(path, "half", 4);
}

/* The files are those of saves to this name whose process has ended; nobody else's. */
START_TEST(leftovers_are_removed) {
    pid_t child = fork();
    if (child == 0) _exit(0);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    leave("index.sl", child);
    leave("index.sl", (long)getppid());
    leave("index.sl.more", child);
    leave("other.sl", child);
    ck_assert_uint_eq(scratch_count(&place), 5);
    sl_index *index = opened(SL_PLACE_DRAM, 0, 0);
    ck_ok(save_over(index));
    sl_index_free(index);
    ck_assert_uint_eq(scratch_count(&place), 4);
    char path[SCRATCH_PATH], name[64];
    snprintf(name, sizeof name, "index.sl.tmp.%ld.0", (long)child);
    scratch_name(&place, name, path);
    ck_assert_int_ne(access(path, F_OK), 0);
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("origin");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, a_claim_keeps_others_off, 0, 4);
    tcase_add_test(tests, a_claim_is_waited_for);
    tcase_add_loop_test(tests, no_save_undoes_another, 0, 2);
    tcase_add_test(tests, no_save_undoes_a_sync);
    tcase_add_test(tests, no_writer_during_a_save_over);
    tcase_add_loop_test(tests, a_writer_notices_that_its_file_is_gone, 0, 3);
    tcase_add_test(tests, a_writer_notices_that_its_file_is_another);
    tcase_add_test(tests, a_process_may_change_its_folder);
    tcase_add_test(tests, a_fork_makes_no_second_writer);
    tcase_add_test(tests, a_forked_child_changes_nothing_at_all);
    tcase_add_test(tests, a_fork_makes_no_second_changer);
    tcase_add_test(tests, private_stays_private);
    tcase_add_test(tests, a_list_is_not_taken_for_the_group);
    tcase_add_test(tests, leftovers_are_removed);
    return check_main("origin", &tests, 1);
}
