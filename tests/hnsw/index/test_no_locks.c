/* File systems without locks: what reads works, what changes says why not, and what works. */
#define _GNU_SOURCE
#include "tests/support/live_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static int lacking;    /* errno of every lock; 0: there are locks */
static int only_bytes; /* flock works, the locks of bytes do not */
static int as_nfs;     /* an exclusive lock takes a file that is open to be written */

static int unwritable; /* files may be read alone */

static const int errors[] = {ENOLCK, EBADF, ENOSYS, EOPNOTSUPP};
enum { ERRORS = sizeof errors / sizeof *errors };

int __real_flock(int fd, int operation);
int __wrap_flock(int fd, int operation);
int __wrap_flock(int fd, int operation) {
    const int nfs = as_nfs && operation & LOCK_EX && (fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDONLY;
    if (operation == LOCK_UN || only_bytes || (!lacking && !nfs)) return __real_flock(fd, operation);
    errno = nfs ? EBADF : lacking;
    return -1;
}

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    const unsigned mode = flags & O_CREAT ? va_arg(arguments, unsigned) : 0;
    va_end(arguments);
    if (!unwritable || (flags & O_ACCMODE) == O_RDONLY) return __real_open(path, flags, mode);
    errno = unwritable;
    return -1;
}

int __real_fcntl(int fd, int command, ...);
int __wrap_fcntl(int fd, int command, ...);
int __wrap_fcntl(int fd, int command, ...) {
    va_list arguments;
    va_start(arguments, command);
    void *argument = va_arg(arguments, void *);
    va_end(arguments);
    if (!lacking || (command != F_OFD_SETLK && command != F_OFD_GETLK)) return __real_fcntl(fd, command, argument);
    errno = lacking;
    return -1;
}

static sl_status claim(sl_index **out) {
    sl_open_params params;
    sl_open_params_init(&params);
    params.exclusive = 1;
    params.place = SL_PLACE_DRAM;
    return sl_index_open(place.path, &params, out);
}

static void expect_whole(sl_place where, size_t n) {
    sl_index *index = opened(where, 0);
    ck_assert_uint_eq(sl_index_size(index), n);
    indexes_sound(index);
    (void)ask(index, x, SL_F32);
    sl_index_free(index);
}

START_TEST(reading_needs_no_locks) {
    make_live(N, _i / ERRORS ? ROOM : 0);
    lacking = errors[_i % ERRORS];
    expect_whole(SL_PLACE_MAP, N);
    expect_whole(SL_PLACE_DRAM, N);
}
END_TEST

/* Who reads a crashed file repairs what it reads, and leaves the file and its log as they are. */
START_TEST(a_crashed_file_is_read) {
    make_live(N, ROOM);
    write_and_die();
    const size_t files = scratch_count(&place);
    lacking = errors[_i];
    expect_whole(SL_PLACE_MAP, N + 100);
    ck_assert_uint_eq(scratch_count(&place), files);
    lacking = 0;
    expect_whole(SL_PLACE_DRAM, N + 100);
}
END_TEST

static void expect_refused(sl_status status) {
    ck_assert_int_eq(status, SL_EUNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(sl_last_error(), "has no locks"));
    ck_assert_ptr_nonnull(strstr(sl_last_error(), "works"));
    ck_assert_ptr_nonnull(strstr(sl_last_error(), place.path));
}

START_TEST(changing_says_why_not) {
    sl_index *index;
    char copy[SCRATCH_PATH];
    make_live(N, ROOM);
    lacking = errors[_i];
    expect_refused(open_as(SL_PLACE_MAP, 1, NULL, &index));
    ck_assert_ptr_null(index);
    expect_refused(claim(&index));
    expect_refused(sl_index_rebuild(place.path, NULL, NULL));
    scratch_name(&place, "copy.sl", copy);
    expect_refused(sl_index_snapshot(place.path, copy, NULL));
    only_bytes = 1;
    expect_refused(sl_index_snapshot(place.path, copy, NULL));
    only_bytes = lacking = 0;
    index = opened(SL_PLACE_MAP, 1);
    ck_assert_uint_eq(sl_index_size(index), N);
    sl_index_free(index);
    ck_assert_uint_eq(scratch_count(&place), 1);
}
END_TEST

START_TEST(saving_needs_no_locks) {
    make_live(N, 0);
    lacking = errors[_i];
    sl_index *index = opened(SL_PLACE_DRAM, 0);
    ck_ok(sl_save_try(place.path));
    ck_ok(indexes_save(index, place.path));
    sl_index_free(index);
    expect_whole(SL_PLACE_MAP, N);
    ck_assert_uint_eq(scratch_count(&place), 1);
}
END_TEST

START_TEST(a_work_file_says_why_not) {
    char work[SCRATCH_PATH];
    sl_index_params params;
    sl_index *index;
    indexes_params(&params, DIM, SL_METRIC_L2);
    scratch_name(&place, "work", work);
    params.max_memory = (size_t)1 << 30;
    params.work_path = work;
    lacking = errors[_i];
    ck_fails(sl_index_create(&params, &index), SL_EUNSUPPORTED, "has no locks");
    ck_assert_uint_eq(scratch_count(&place), 0);
    /* A file that was there stays, also an empty one. */
    file_write(work, "", 0);
    ck_fails(sl_index_create(&params, &index), SL_EUNSUPPORTED, "has no locks");
    ck_assert_uint_eq(scratch_count(&place), 1);
}
END_TEST

/* NFS has locks, and takes exclusive ones of files that are open to be written. */
START_TEST(claims_over_nfs) {
    sl_index *index, *other;
    make_live(N, 0);
    as_nfs = 1;
    ck_ok(claim(&index));
    ck_fails(claim(&other), SL_EBUSY, "is being written");
    ck_ok(indexes_add(index, x + N * DIM, SL_F32, 10, NULL));
    ck_ok(indexes_save(index, place.path));
    sl_index_free(index);
    ck_ok(claim(&index));
    ck_assert_uint_eq(sl_index_size(index), N + 10);
    sl_index_free(index);
    ck_ok(sl_index_rebuild(place.path, NULL, NULL));
}
END_TEST

/* There are locks, and the file may not be written: the message says so. */
START_TEST(claims_over_nfs_need_the_right_to_write) {
    static const int refusals[] = {EACCES, EROFS};
    sl_index *index;
    make_live(N, 0);
    as_nfs = 1;
    unwritable = refusals[_i];
    ck_fails(claim(&index), SL_EIO, strerror(refusals[_i]));
    ck_assert_ptr_null(strstr(sl_last_error(), "has no locks"));
}
END_TEST

/* A work file that is a link, a folder or of a name too long. */
START_TEST(work_files_of_other_kinds) {
    static const char *const says[] = {"not a link to it", "name a file in it", "choose a shorter name"};
    char work[SCRATCH_PATH], name[300];
    sl_index_params params;
    sl_index *index;
    indexes_params(&params, DIM, SL_METRIC_L2);
    memset(name, 'w', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    scratch_name(&place, _i == 2 ? name : "work", work);
    if (_i == 0) ck_assert_int_eq(symlink("elsewhere", work), 0);
    if (_i == 1) ck_assert_int_eq(mkdir(work, 0700), 0);
    params.max_memory = (size_t)1 << 30;
    params.work_path = work;
    ck_fails(sl_index_create(&params, &index), SL_EIO, says[_i]);
    ck_assert_ptr_null(strstr(sl_last_error(), "device"));
}
END_TEST

static void set_up_locks(void) {
    lacking = only_bytes = as_nfs = unwritable = 0;
    set_up();
}

static void tear_down_locks(void) {
    lacking = only_bytes = as_nfs = unwritable = 0;
    tear_down();
}

int main(void) {
    TCase *tests = tcase_create("no_locks");
    tcase_add_checked_fixture(tests, set_up_locks, tear_down_locks);
    tcase_add_loop_test(tests, reading_needs_no_locks, 0, 2 * ERRORS);
    tcase_add_loop_test(tests, a_crashed_file_is_read, 0, ERRORS);
    tcase_add_loop_test(tests, changing_says_why_not, 0, ERRORS);
    tcase_add_loop_test(tests, saving_needs_no_locks, 0, ERRORS);
    tcase_add_loop_test(tests, a_work_file_says_why_not, 0, ERRORS);
    tcase_add_test(tests, claims_over_nfs);
    tcase_add_loop_test(tests, claims_over_nfs_need_the_right_to_write, 0, 2);
    tcase_add_loop_test(tests, work_files_of_other_kinds, 0, 3);
    return check_main("no_locks", &tests, 1);
}
