/* A save is all or nothing, whatever fails and whenever it is killed. */
#define _GNU_SOURCE
#include "base/random.h"
#include "storage/origin.h"
#include "tests/support/check_main.h"
#include "tests/support/faults.h"
#include "tests/support/sample_file.h"
#include "tests/support/scratch.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define OLD        1u
#define NEW        2u
#define SMALL_SIZE 3000u
#define NOBODY     65534u

static scratch place;
static sample_file old_file, new_file;

static void set_up(void) {
    scratch_open(&place);
    sample_init(&old_file, &sl_index_file, OLD, SMALL_SIZE);
    sample_init(&new_file, &sl_index_file, NEW, SMALL_SIZE + 500);
    ck_assert_int_eq(sample_save(&old_file, place.path, NULL), SL_OK);
}

static void tear_down(void) {
    sample_free(&old_file);
    sample_free(&new_file);
    scratch_close(&place);
}

static void expect_version(uint64_t version) {
    ck_assert_uint_eq(sample_version(place.path), version);
    ck_assert_uint_eq(scratch_count(&place), 1);
}

/* ---------------------------------------------------------------------------------------------------------------
 * Failing system calls
 * ------------------------------------------------------------------------------------------------------------- */

START_TEST(a_save_replaces_the_file) {
    ck_assert_int_eq(sample_save(&new_file, place.path, NULL), SL_OK);
    expect_version(NEW);
}
END_TEST

/* Each entry that is missing is the system's. */
START_TEST(missing_operations_are_the_systems) {
    for (int i = 0; i < FAULT_KINDS; i++) {
        fault_files faults;
        fault_files_init(&faults);
        if (i == FAULT_OPEN) faults.ops.open = NULL;
        if (i == FAULT_WRITE) faults.ops.write = NULL;
        if (i == FAULT_FSYNC) faults.ops.fsync = NULL;
        if (i == FAULT_CLOSE) faults.ops.close = NULL;
        if (i == FAULT_RENAME) faults.ops.rename = NULL;
        if (i == FAULT_UNLINK) faults.ops.unlink = NULL;
        ck_assert_int_eq(sample_save(i % 2 ? &old_file : &new_file, place.path, &faults.ops), SL_OK);
        ck_assert_uint_eq(faults.calls[i], 0);
        expect_version(i % 2 ? OLD : NEW);
    }
}
END_TEST

/* The order that makes it safe: data synced before the rename, the folder after it. */
START_TEST(calls_come_in_order) {
    fault_files faults;
    fault_files_init(&faults);
    ck_assert_int_eq(sample_save(&new_file, place.path, &faults.ops), SL_OK);
    ck_assert_uint_eq(faults.calls[FAULT_OPEN], 2);
    ck_assert_uint_eq(faults.calls[FAULT_FSYNC], 2);
    ck_assert_uint_eq(faults.calls[FAULT_CLOSE], 2);
    ck_assert_uint_eq(faults.calls[FAULT_RENAME], 1);
    ck_assert_uint_eq(faults.calls[FAULT_UNLINK], 0);
}
END_TEST

/* The folder holds the finished file under the name that the message tells. */
static void expect_finished(uint64_t version) {
    char name[SCRATCH_PATH];
    const char *said = strstr(sl_last_error(), "the finished file is ");
    ck_assert_ptr_nonnull(said);
    ck_assert_int_eq(sscanf(said, "the finished file is %511[^:]", name), 1);
    ck_assert_uint_eq(sample_version(name), version);
}

/* One call fails: the old file stays, nothing is left beside the file, and the message says what, where and what to do.
 * A finished file whose renaming fails stays. Two calls come after the rename. A failed sync of the folder is reported;
 * a failed close loses nothing. */
static void check_one_failure(fault_kind kind, size_t call, int error, sl_status wanted) {
    fault_files faults;
    fault_files_init(&faults);
    faults.write_limit = 512;
    faults.fail_at[kind] = call;
    faults.error = error;
    sl_status status = sample_save(&new_file, place.path, &faults.ops);
    int after_rename = (kind == FAULT_FSYNC || kind == FAULT_CLOSE) && call == 2;
    int harmless = kind == FAULT_CLOSE && call == 2;
    ck_assert_msg(status == (harmless ? SL_OK : wanted), "%s %zu, errno %d: %s", fault_kind_name(kind), call, error,
                  sl_status_name(status));
    if (!harmless) {
        ck_assert_ptr_nonnull(strstr(sl_last_error(), strerror(error)));
        ck_assert_ptr_nonnull(strstr(sl_last_error(), place.folder));
        ck_assert_ptr_nonnull(strchr(sl_last_error(), ';'));
    }
    if (after_rename && !harmless) ck_assert_ptr_nonnull(strstr(sl_last_error(), "is saved"));
    int finished = kind == FAULT_RENAME || (kind == FAULT_OPEN && call == 2);
    if (finished) expect_finished(NEW);
    ck_assert_uint_eq(scratch_take_finished(&place), (size_t)finished);
    expect_version(after_rename ? NEW : OLD);
    ck_assert_int_eq(sample_save(&old_file, place.path, NULL), SL_OK);
}

START_TEST(every_call_fails_in_turn) {
    static const struct {
        int error;
        sl_status status;
    } errors[] = {{EIO, SL_EIO}, {ENOSPC, SL_ENOSPC}, {EDQUOT, SL_ENOSPC}, {EROFS, SL_EIO}};
    fault_files clean;
    fault_files_init(&clean);
    clean.write_limit = 512;
    ck_assert_int_eq(sample_save(&new_file, place.path, &clean.ops), SL_OK);
    ck_assert_uint_gt(clean.calls[FAULT_WRITE], 8);
    ck_assert_int_eq(sample_save(&old_file, place.path, NULL), SL_OK);
    for (size_t e = 0; e < sizeof errors / sizeof *errors; e++)
        for (int kind = 0; kind < FAULT_KINDS; kind++)
            for (size_t call = 1; call <= clean.calls[kind]; call++)
                check_one_failure((fault_kind)kind, call, errors[e].error, errors[e].status);
}
END_TEST

static int refuse_renaming(void *ctx, const char *from, const char *to) {
    (void)from, (void)to;
    ++*(size_t *)ctx;
    errno = EBUSY;
    return -1;
}

/* If nothing can be renamed, the finished file keeps its name. */
START_TEST(a_finished_file_is_never_lost) {
    size_t calls = 0;
    sl_file_ops none = {.ctx = &calls, .rename = refuse_renaming};
    ck_assert_int_eq(sample_save(&new_file, place.path, &none), SL_EIO);
    ck_assert_uint_eq(calls, 2);
    ck_assert_ptr_nonnull(strstr(sl_last_error(), "before the next save"));
    expect_finished(NEW);
    ck_assert_uint_eq(sample_version(place.path), OLD);
    ck_assert_uint_eq(scratch_count(&place), 2);
}
END_TEST

/* Neither the next save nor the next finished file of the same name takes a finished file away. */
START_TEST(finished_files_stay) {
    fault_files faults;
    for (size_t i = 1; i <= 3; i++) {
        pid_t child = fork();
        ck_assert_int_ge(child, 0);
        if (child == 0) {
            for (int twice = 0; twice < 2; twice++) {
                fault_files_init(&faults);
                faults.fail_at[FAULT_RENAME] = 1;
                (void)!sample_save(&new_file, place.path, &faults.ops);
            }
            _exit(0);
        }
        ck_assert_int_eq(waitpid(child, NULL, 0), child);
        ck_assert_int_eq(sample_save(&old_file, place.path, NULL), SL_OK);
        ck_assert_uint_eq(scratch_count(&place), 1 + 2 * i);
    }
    ck_assert_uint_eq(scratch_take_finished(&place), 6);
    expect_version(OLD);
}
END_TEST

/* Before the new file is synced, another save puts its file at the target, and perhaps a writer opens that. */
typedef struct meanwhile {
    int comes, writes;
    int writer;
} meanwhile;

static int sync_while_another_saves(void *ctx, int fd) {
    meanwhile *other = ctx;
    if (other->comes) {
        other->comes = 0;
        ck_assert_int_eq(sample_save(&old_file, place.path, NULL), SL_OK);
        if (other->writes) {
            other->writer = open(place.path, O_RDWR | O_CLOEXEC);
            ck_assert_int_eq(flock(other->writer, LOCK_EX | LOCK_NB), 0);
        }
    }
    return fsync(fd);
}

/* A check fails between the sync and the renaming: the finished file stays all the same. */
START_TEST(a_finished_file_outlives_a_failed_check) {
    meanwhile other = {.comes = 1, .writes = 1, .writer = -1};
    sl_file_ops ops = {.ctx = &other, .fsync = sync_while_another_saves};
    ck_assert_int_eq(sample_save(&new_file, place.path, &ops), SL_EBUSY);
    ck_assert_ptr_nonnull(strstr(sl_last_error(), "is being written by another process"));
    expect_finished(NEW);
    ck_assert_uint_eq(scratch_take_finished(&place), 1);
    expect_version(OLD);
    close(other.writer);
}
END_TEST

/* Saves the new file as changes to the one that is there. */
static sl_status save_changes(const sl_file_ops *ops) {
    sl_allocator allocator = sl_allocator_of(NULL);
    sl_store *store;
    sl_origin *origin;
    sl_progress progress;
    sl_progress_start(&progress, NULL, NULL, 0);
    ck_assert_int_eq(sl_store_open(place.path, &sl_index_file, SL_PLACE_MAP, &allocator, &store), SL_OK);
    ck_assert_int_eq(sl_origin_make(store, &allocator, &origin), SL_OK);
    const sl_file_content content = {&sl_index_file, &new_file.header, new_file.sections, SAMPLE_SECTIONS};
    const sl_status status = sl_store_save(place.path, &content, ops, origin, &progress);
    sl_origin_free(origin, &allocator);
    sl_store_close(store, &allocator);
    return status;
}

/* Changes to a file that another has replaced would undo the other's. A failure of the renaming itself keeps them. */
START_TEST(changes_to_an_older_file_are_not_kept) {
    meanwhile other = {.comes = 1};
    sl_file_ops ops = {.ctx = &other, .fsync = sync_while_another_saves};
    ck_assert_int_eq(save_changes(&ops), SL_EBUSY);
    ck_assert_ptr_nonnull(strstr(sl_last_error(), "was replaced or changed by another"));
    ck_assert_ptr_null(strstr(sl_last_error(), "the finished file is"));
    expect_version(OLD);
    fault_files faults;
    fault_files_init(&faults);
    faults.fail_at[FAULT_RENAME] = 1;
    ck_assert_int_eq(save_changes(&faults.ops), SL_EIO);
    expect_finished(NEW);
    ck_assert_uint_eq(scratch_take_finished(&place), 1);
    expect_version(OLD);
}
END_TEST

/* Renames nothing to the target. Before the first renaming to another name, another save of the process fails too. */
static int rename_in_the_middle(void *ctx, const char *from, const char *to) {
    size_t *others = ctx;
    if (strcmp(to, place.path) == 0) {
        errno = EIO;
        return -1;
    }
    if ((*others)++ == 0) {
        sl_file_ops ops = {.ctx = ctx, .rename = rename_in_the_middle};
        ck_assert_int_eq(sample_save(&old_file, place.path, &ops), SL_EIO);
    }
    return rename(from, to);
}

/* Two threads look for a name at once. */
START_TEST(finished_files_of_one_process_get_their_own_names) {
    size_t others = 0;
    sl_file_ops ops = {.ctx = &others, .rename = rename_in_the_middle};
    ck_assert_int_eq(sample_save(&new_file, place.path, &ops), SL_EIO);
    expect_finished(NEW);
    ck_assert_uint_eq(others, 2);
    ck_assert_uint_eq(scratch_take_finished(&place), 2);
    expect_version(OLD);
}
END_TEST

START_TEST(a_failing_unlink_is_told) {
    fault_files faults;
    fault_files_init(&faults);
    faults.fail_at[FAULT_WRITE] = 2;
    faults.fail_at[FAULT_UNLINK] = 1;
    ck_assert_int_eq(sample_save(&new_file, place.path, &faults.ops), SL_EIO);
    ck_assert_ptr_nonnull(strstr(sl_last_error(), "left behind"));
    ck_assert_uint_eq(sample_version(place.path), OLD);
    ck_assert_uint_eq(scratch_count(&place), 2);
    /* Files that a failed save leaves do not stand in the way of the next save. */
    ck_assert_int_eq(sample_save(&new_file, place.path, NULL), SL_OK);
    ck_assert_uint_eq(sample_version(place.path), NEW);
    ck_assert_uint_eq(scratch_count(&place), 2);
}
END_TEST

START_TEST(short_and_interrupted_writes_go_on) {
    fault_files faults;
    fault_files_init(&faults);
    faults.write_limit = 1;
    ck_assert_int_eq(sample_save(&new_file, place.path, &faults.ops), SL_OK);
    expect_version(NEW);
    ck_assert_uint_eq(faults.calls[FAULT_WRITE], sl_store_file_size(new_file.sections, SAMPLE_SECTIONS));
    for (size_t every = 2; every <= 3; every++) {
        fault_files_init(&faults);
        faults.write_limit = 7;
        faults.interrupt_every = every;
        sample_file *file = every == 2 ? &old_file : &new_file;
        ck_assert_int_eq(sample_save(file, place.path, &faults.ops), SL_OK);
        expect_version(file->header.n);
    }
}
END_TEST

/* An interrupted close closes the descriptor. A second close is forbidden: the number may be another thread's
 * descriptor. */
START_TEST(an_interrupted_close_is_a_close) {
    fault_files faults;
    fault_files_init(&faults);
    faults.fail_at[FAULT_CLOSE] = 1;
    faults.error = EINTR;
    ck_assert_int_eq(sample_save(&new_file, place.path, &faults.ops), SL_OK);
    ck_assert_uint_eq(faults.calls[FAULT_CLOSE], 2);
    expect_version(NEW);
}
END_TEST

static int64_t write_nothing(void *ctx, int fd, const void *data, size_t size) {
    (void)ctx, (void)fd, (void)data, (void)size;
    return 0;
}

static int64_t write_too_much(void *ctx, int fd, const void *data, size_t size) {
    (void)fd, (void)data, (void)size;
    ++*(size_t *)ctx;
    errno = EIO;
    return *(size_t *)ctx > 1 ? -1 : 1 << 20;
}

/* A write that takes nothing must not be tried for ever, nor one be believed that took more than there was. */
START_TEST(senseless_writes_end_the_save) {
    size_t calls = 0;
    sl_file_ops nothing = {.write = write_nothing}, too_much = {.ctx = &calls, .write = write_too_much};
    ck_assert_int_eq(sample_save(&new_file, place.path, &nothing), SL_EIO);
    ck_assert_int_eq(sample_save(&new_file, place.path, &too_much), SL_EIO);
    ck_assert_uint_eq(calls, 1);
    expect_version(OLD);
}
END_TEST

static int cancel_at(void *ctx, uint64_t done, uint64_t total) {
    (void)total;
    return done >= *(uint64_t *)ctx;
}

START_TEST(a_cancelled_save_changes_nothing) {
    uint64_t total = 0;
    for (int i = 0; i < SAMPLE_SECTIONS; i++)
        total += new_file.sections[i].size;
    uint64_t when[] = {0, 1, total};
    for (size_t i = 0; i < sizeof when / sizeof *when; i++) {
        sl_progress progress;
        sl_progress_start(&progress, cancel_at, &when[i], total);
        ck_assert_int_eq(
            sl_store_save(place.path,
                          &(sl_file_content){&sl_index_file, &new_file.header, new_file.sections, SAMPLE_SECTIONS},
                          NULL, NULL, &progress),
            SL_ECANCELED);
        expect_version(OLD);
    }
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Kills, and others at the same file
 * ------------------------------------------------------------------------------------------------------------- */

/* Saves in a child that kills itself before its call number kill_at; true if it came to that. */
static int save_and_die(size_t kill_at) {
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        fault_files faults;
        fault_files_init(&faults);
        faults.write_limit = 512;
        faults.kill_at = kill_at;
        _exit(sample_save(&new_file, place.path, &faults.ops) == SL_OK ? 0 : 1);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
    return WIFSIGNALED(status);
}

/* The temporary file of a killed process stays; what matters is that the file itself is one of the two, whole. */
START_TEST(killed_at_every_call) {
    size_t kill_at = 1, unchanged = 0;
    for (; save_and_die(kill_at); kill_at++) {
        uint64_t version = sample_version(place.path);
        ck_assert(version == OLD || version == NEW);
        unchanged += version == OLD;
        ck_assert_int_eq(sample_save(&old_file, place.path, NULL), SL_OK);
        ck_assert_uint_eq(sample_version(place.path), OLD);
    }
    /* Only the calls on the folder, its sync and its close, come when the new file is in place. */
    ck_assert_uint_eq(unchanged, kill_at - 3);
    ck_assert_uint_eq(sample_version(place.path), NEW);
}
END_TEST

static pid_t save_for_ever(sample_file *file) {
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    while (child == 0)
        if (sample_save(file, place.path, NULL) != SL_OK) _exit(1);
    return child;
}

static void stop(pid_t child) {
    int status;
    ck_assert_int_eq(kill(child, SIGKILL), 0);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFSIGNALED(status));
}

START_TEST(killed_at_any_moment) {
    for (unsigned round = 0; round < 40; round++) {
        pid_t child = save_for_ever(round % 2 ? &old_file : &new_file);
        usleep((useconds_t)(sl_random_at(11, round) % 4000));
        stop(child);
        ck_assert_uint_ne(sample_version(place.path), 0);
    }
}
END_TEST

START_TEST(two_processes_save_at_once) {
    pid_t first = save_for_ever(&old_file), second = save_for_ever(&new_file);
    for (int i = 0; i < 300; i++)
        ck_assert_uint_ne(sample_version(place.path), 0);
    ck_assert_int_eq(waitpid(first, NULL, WNOHANG), 0);
    ck_assert_int_eq(waitpid(second, NULL, WNOHANG), 0);
    stop(first);
    stop(second);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Places to save to
 * ------------------------------------------------------------------------------------------------------------- */

static void expect_refusal(const char *path, const char *word) {
    ck_assert_int_eq(sample_save(&new_file, path, NULL), *path ? SL_EIO : SL_EINVAL);
    ck_assert_msg(strstr(sl_last_error(), word), "'%s' does not say '%s'", sl_last_error(), word);
    ck_assert_msg(strstr(sl_last_error(), path), "'%s' does not name '%s'", sl_last_error(), path);
}

START_TEST(what_cannot_be_saved_to) {
    char path[SCRATCH_PATH];
    struct stat info;
    expect_refusal("", "empty");
    scratch_name(&place, "missing/index.sl", path);
    expect_refusal(path, "its folder exists");
    scratch_name(&place, "index.sl/below", path);
    expect_refusal(path, "Not a directory");
    scratch_name(&place, "folder", path);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    expect_refusal(path, "folder");
    scratch_name(&place, "folder/", path);
    expect_refusal(path, "folder");
    scratch_name(&place, "new/", path);
    expect_refusal(path, "folder");
    scratch_name(&place, "pipe", path);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    expect_refusal(path, "not a regular file");
    ck_assert_int_eq(stat(path, &info), 0);
    ck_assert(S_ISFIFO(info.st_mode));
    scratch_name(&place, "nowhere", path);
    ck_assert_int_eq(symlink("missing/file", path), 0);
    expect_refusal(path, "link to nothing");
    ck_assert_uint_eq(scratch_count(&place), 4);
    ck_assert_uint_eq(sample_version(place.path), OLD);
}
END_TEST

/* The try says what a save would say, and leaves everything as it is. */
START_TEST(a_try_fails_where_a_save_would) {
    char path[SCRATCH_PATH], name[NAME_MAX + 2];
    ck_assert_int_eq(sl_save_try(place.path), SL_OK);
    expect_version(OLD);
    scratch_name(&place, "new", path);
    ck_assert_int_eq(sl_save_try(path), SL_OK);
    expect_version(OLD);
    scratch_name(&place, "missing/new", path);
    ck_assert_int_eq(sl_save_try(path), SL_EIO);
    ck_assert_int_eq(sl_save_try(place.folder), SL_EIO);
    ck_assert_int_eq(sl_save_try(NULL), SL_EINVAL);
    memset(name, 'n', NAME_MAX + 1);
    name[NAME_MAX + 1] = '\0';
    scratch_name(&place, name, path);
    ck_assert_int_eq(sl_save_try(path), SL_EIO);
    ck_assert_ptr_nonnull(strstr(sl_last_error(), "too long"));
    expect_version(OLD);
}
END_TEST

/* In a sticky folder nobody takes another's file away, though everybody may make files. */
START_TEST(anothers_file_in_a_sticky_folder) {
    if (geteuid() != 0) return;
    ck_assert_int_eq(chmod(place.folder, 01777), 0);
    ck_assert_int_eq(chmod(place.path, 0666), 0);
    ck_assert_int_eq(chown(place.folder, 1, 1), 0);
    ck_assert_int_eq(seteuid(NOBODY), 0);
    ck_assert_int_eq(sl_save_try(place.path), SL_EIO);
    ck_assert_ptr_nonnull(strstr(sl_last_error(), "cannot replace"));
    fault_files faults;
    fault_files_init(&faults);
    ck_assert_int_eq(sample_save(&new_file, place.path, &faults.ops), SL_EIO);
    ck_assert_uint_eq(faults.calls[FAULT_WRITE], 0);
    ck_assert_int_eq(seteuid(0), 0);
    expect_version(OLD);
}
END_TEST

/* A save waits ten seconds for the folder's lock, and so does the try. */
START_TEST(a_folder_that_another_has_locked) {
    int folder = open(place.folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ck_assert_int_eq(flock(folder, LOCK_EX), 0);
    ck_assert_int_eq(sl_save_try(place.path), SL_EBUSY);
    ck_assert_ptr_nonnull(strstr(sl_last_error(), "had the folder"));
    close(folder);
    expect_version(OLD);
}
END_TEST

START_TEST(a_read_only_folder) {
    int root = geteuid() == 0;
    ck_assert_int_eq(chmod(place.folder, 0555), 0);
    if (root) ck_assert_int_eq(seteuid(NOBODY), 0);
    expect_refusal(place.path, "permission");
    if (root) ck_assert_int_eq(seteuid(0), 0);
    ck_assert_int_eq(chmod(place.folder, 0700), 0);
    expect_version(OLD);
}
END_TEST

START_TEST(a_link_is_written_through) {
    char link[SCRATCH_PATH];
    struct stat info;
    scratch_name(&place, "link", link);
    ck_assert_int_eq(symlink("index.sl", link), 0);
    ck_assert_int_eq(sample_save(&new_file, link, NULL), SL_OK);
    ck_assert_int_eq(lstat(link, &info), 0);
    ck_assert(S_ISLNK(info.st_mode));
    ck_assert_int_eq(lstat(place.path, &info), 0);
    ck_assert(S_ISREG(info.st_mode));
    ck_assert_uint_eq(sample_version(place.path), NEW);
    ck_assert_uint_eq(scratch_count(&place), 2);
}
END_TEST

START_TEST(names_short_and_long) {
    char path[SCRATCH_PATH], name[NAME_MAX + 1];
    memset(name, 'n', NAME_MAX);
    name[NAME_MAX] = '\0';
    scratch_name(&place, name, path);
    ck_assert_int_eq(sample_save(&new_file, path, NULL), SL_OK);
    ck_assert_uint_eq(sample_version(path), NEW);
    ck_assert_int_eq(chdir(place.folder), 0);
    ck_assert_int_eq(sample_save(&new_file, "n", NULL), SL_OK);
    ck_assert_uint_eq(sample_version("n"), NEW);
    ck_assert_uint_eq(scratch_count(&place), 3);
    char *endless = malloc(PATH_MAX + 100);
    ck_assert_ptr_nonnull(endless);
    for (size_t i = 0; i < PATH_MAX + 99; i++)
        endless[i] = i % 2 ? '/' : '.';
    endless[PATH_MAX + 99] = '\0';
    ck_assert_int_ne(sample_save(&new_file, endless, NULL), SL_OK);
    free(endless);
    ck_assert_int_eq(chdir("/"), 0);
}
END_TEST

START_TEST(permissions_follow_the_umask) {
    char path[SCRATCH_PATH];
    struct stat info;
    scratch_name(&place, "fresh", path);
    mode_t before = umask(027);
    ck_assert_int_eq(sample_save(&new_file, path, NULL), SL_OK);
    umask(before);
    ck_assert_int_eq(stat(path, &info), 0);
    ck_assert_uint_eq(info.st_mode & 0777u, 0640);
}
END_TEST

START_TEST(too_many_sections_are_refused) {
    static sl_section_source sections[SL_MAX_SECTIONS + 1];
    sl_file_header header = {0};
    sl_progress progress;
    sl_progress_start(&progress, NULL, NULL, 0);
    for (uint32_t i = 0; i <= SL_MAX_SECTIONS; i++)
        sections[i] = (sl_section_source){1000 + i, 0, "", 0, 0, NULL, 0};
    ck_assert_int_eq(sl_store_save(place.path,
                                   &(sl_file_content){&sl_index_file, &header, sections, SL_MAX_SECTIONS + 1}, NULL,
                                   NULL, &progress),
                     SL_ELIMIT);
    expect_version(OLD);
    ck_assert_int_eq(sl_store_save(place.path, &(sl_file_content){&sl_index_file, &header, sections, SL_MAX_SECTIONS},
                                   NULL, NULL, &progress),
                     SL_OK);
    sl_allocator memory = sl_allocator_of(NULL);
    sl_store *store;
    ck_assert_int_eq(sl_store_open(place.path, &sl_index_file, SL_PLACE_MAP, &memory, &store), SL_OK);
    ck_assert_uint_eq(store->header.section_count, SL_MAX_SECTIONS);
    sl_store_close(store, &memory);
}
END_TEST

/* Whoever saves a model over an index gets a model, whole, or keeps the index. */
START_TEST(types_replace_one_another) {
    const sl_file_type *const types[] = {&sl_ranker_file, &sl_items_file, &sl_index_file};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        sample_file sample;
        sample_init(&sample, types[i], 50 + i, SMALL_SIZE);
        fault_files faults;
        fault_files_init(&faults);
        faults.fail_at[FAULT_WRITE] = 2;
        ck_assert_int_ne(sample_save(&sample, place.path, &faults.ops), SL_OK);
        ck_assert_int_eq(sample_holds(&sample, place.path), 0);
        ck_assert_int_eq(sample_save(&sample, place.path, NULL), SL_OK);
        ck_assert_int_eq(sample_holds(&sample, place.path), 1);
        ck_assert_uint_eq(scratch_count(&place), 1);
        sample_free(&sample);
    }
}
END_TEST

/* Header fields that are not the type's own do not reach the file, whatever the caller's header holds. */
START_TEST(headers_hold_what_is_the_types) {
    sl_file_header given, zeros = {.crc32c = 0}, found;
    memset(&given, 0xee, sizeof given);
    const sl_file_type *const types[] = {&sl_index_file, &sl_ranker_file, &sl_items_file};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        sl_progress progress;
        sl_progress_start(&progress, NULL, NULL, 0);
        ck_assert_int_eq(
            sl_store_save(place.path, &(sl_file_content){types[i], &given, NULL, 0}, NULL, NULL, &progress), SL_OK);
        size_t size;
        unsigned char *bytes = file_read(place.path, &size);
        ck_assert_uint_eq(size, SL_HEADER_SIZE);
        memcpy(&found, bytes, sizeof found);
        free(bytes);
        ck_assert_mem_eq(found.magic, types[i]->magic, sizeof found.magic);
        ck_assert_uint_eq(found.version, types[i]->version);
        size_t own = types[i]->fields_end - SL_HEADER_COMMON;
        if (own) ck_assert_mem_eq(&found.n, &given.n, own);
        ck_assert_mem_eq((char *)&found + types[i]->fields_end, &zeros,
                         offsetof(sl_file_header, crc32c) - types[i]->fields_end);
    }
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("save");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, a_save_replaces_the_file);
    tcase_add_test(tests, missing_operations_are_the_systems);
    tcase_add_test(tests, calls_come_in_order);
    tcase_add_test(tests, every_call_fails_in_turn);
    tcase_add_test(tests, a_finished_file_is_never_lost);
    tcase_add_test(tests, finished_files_stay);
    tcase_add_test(tests, a_finished_file_outlives_a_failed_check);
    tcase_add_test(tests, changes_to_an_older_file_are_not_kept);
    tcase_add_test(tests, finished_files_of_one_process_get_their_own_names);
    tcase_add_test(tests, a_failing_unlink_is_told);
    tcase_add_test(tests, short_and_interrupted_writes_go_on);
    tcase_add_test(tests, an_interrupted_close_is_a_close);
    tcase_add_test(tests, senseless_writes_end_the_save);
    tcase_add_test(tests, a_cancelled_save_changes_nothing);
    tcase_add_test(tests, killed_at_every_call);
    tcase_add_test(tests, killed_at_any_moment);
    tcase_add_test(tests, two_processes_save_at_once);
    tcase_add_test(tests, what_cannot_be_saved_to);
    tcase_add_test(tests, a_try_fails_where_a_save_would);
    tcase_add_test(tests, anothers_file_in_a_sticky_folder);
    tcase_add_test(tests, a_folder_that_another_has_locked);
    tcase_add_test(tests, a_read_only_folder);
    tcase_add_test(tests, a_link_is_written_through);
    tcase_add_test(tests, names_short_and_long);
    tcase_add_test(tests, permissions_follow_the_umask);
    tcase_add_test(tests, too_many_sections_are_refused);
    tcase_add_test(tests, types_replace_one_another);
    tcase_add_test(tests, headers_hold_what_is_the_types);
    return check_main("save", &tests, 1);
}
