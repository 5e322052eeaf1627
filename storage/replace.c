#define _GNU_SOURCE
#include "storage/replace.h"

#include "base/clock.h"
#include "base/mounts.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* The most temporary names to try. A taken one belongs to another save, at work or killed. */
#define MAX_TEMPORARIES 10000

/* A file's name may have 255 bytes. A stem of this length leaves room for ".tmp.<pid>.<number>". */
#define MAX_STEM 200

/* Nanoseconds between two tries to lock the folder, and their number. Another save locks it from its last look at its
 * target to the rename. */
enum { LOCK_PAUSE = 2000000, LOCK_TRIES = 10 * (1000000000 / LOCK_PAUSE) };

/* ---------------------------------------------------------------------------------------------------------------
 * Names
 * ------------------------------------------------------------------------------------------------------------- */

/* The rename must only replace a file: a save to /dev/null must not put a file in its place. */
static sl_status check_target(const char *path, const struct stat *info) {
    if (S_ISREG(info->st_mode)) return SL_OK;
    if (S_ISDIR(info->st_mode)) return sl_fail(SL_EIO, "cannot save to %s: it is a folder; name a file in it", path);
    if (S_ISLNK(info->st_mode))
        return sl_fail(SL_EIO, "cannot save to %s: it is a link to nothing; remove it or create its target", path);
    return sl_fail(SL_EIO, "cannot save to %s: it is not a regular file; choose another name", path);
}

/* Resolves links, so that a save through a link replaces the file behind it and keeps the link. */
static sl_status resolve_target(sl_replacement *r, const char *path) {
    struct stat info;
    if (realpath(path, r->target)) {
        if (stat(r->target, &info) != 0) return sl_fail_errno("cannot look at", path);
        r->replaces = 1;
        r->access = sl_access_at(r->target, &info);
        return check_target(path, &info);
    }
    if (errno != ENOENT) return sl_fail_errno("cannot save to", path);
    if (lstat(path, &info) == 0) return check_target(path, &info);
    size_t length = strlen(path);
    if (length == 0) return sl_fail(SL_EINVAL, "cannot save: the path is empty; name a file");
    if (path[length - 1] == '/')
        return sl_fail(SL_EIO, "cannot save to %s: it names a folder; name a file in it", path);
    if (length >= sizeof r->target) return sl_fail(SL_EINVAL, "the path has %zu bytes; choose a shorter one", length);
    memcpy(r->target, path, length + 1);
    return SL_OK;
}

/* Finds what would make the rename fail. A mount can't be renamed over. The system checks the right to remove a name
 * before it looks at the kind of file. So rmdir fails with ENOTDIR if a file may be replaced, and with EPERM for
 * another's file in a sticky folder or an immutable file. */
static sl_status check_replaceable(const sl_replacement *r) {
    char source[512];
    if (!r->replaces) return SL_OK;
    if (sl_mount_at(SL_MOUNTS, r->target, source, sizeof source))
        return sl_fail(SL_EIO,
                       "cannot save to %s: a file is mounted there, and no other can take its place; mount its folder "
                       "instead, or choose another name (the mount: %s)",
                       r->target, source);
    return rmdir(r->target) != 0 && errno == EPERM ? sl_fail_errno("cannot replace", r->target) : SL_OK;
}

static void name_folder(sl_replacement *r) {
    const char *slash = strrchr(r->target, '/');
    size_t length = slash && slash > r->target ? (size_t)(slash - r->target) : 1;
    memcpy(r->folder, slash ? r->target : ".", length);
    r->folder[length] = '\0';
}

/* Returns whether the name fits a path. */
static int name_beside(const sl_replacement *r, const char *word, int number, char out[PATH_MAX]) {
    const char *slash = strrchr(r->target, '/');
    int folder = slash ? (int)(slash - r->target) + 1 : 0;
    int length = snprintf(out, PATH_MAX, "%.*s%.*s.%s.%ld.%d", folder, r->target, MAX_STEM, r->target + folder, word,
                          (long)getpid(), number);
    return length >= 0 && length < PATH_MAX;
}

/* Returns whether the process is gone. One on another machine or in a container may seem gone. */
static int is_gone(long process) {
    return process > 0 && kill((pid_t)process, 0) != 0 && errno == ESRCH;
}

/* Removes a temporary file, unless its writer lives: the writer holds a lock on it, wherever it runs. */
static void remove_abandoned(const sl_replacement *r, const char *name) {
    char path[PATH_MAX];
    struct stat info;
    if (snprintf(path, sizeof path, "%s/%s", r->folder, name) >= (int)sizeof path) return;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) return;
    if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && flock(fd, LOCK_EX | LOCK_NB) == 0) (void)unlink(path);
    close(fd);
}

/* Removes what killed saves of this target have left: NAME.tmp.<process>.<number>. */
static void remove_leftovers(const sl_replacement *r) {
    const char *slash = strrchr(r->target, '/'), *name = slash ? slash + 1 : r->target;
    size_t stem = strnlen(name, MAX_STEM);
    DIR *folder = opendir(r->folder);
    for (struct dirent *entry; folder && (entry = readdir(folder)) != NULL;) {
        char *end;
        if (strncmp(entry->d_name, name, stem) != 0 || strncmp(entry->d_name + stem, ".tmp.", 5) != 0) continue;
        const char *rest = entry->d_name + stem + 5;
        if (*rest < '1' || *rest > '9') continue;
        long process = strtol(rest, &end, 10);
        if (*end == '.' && end[1 + strspn(end + 1, "0123456789")] == '\0' && process <= INT_MAX && is_gone(process))
            remove_abandoned(r, entry->d_name);
    }
    if (folder) closedir(folder);
}

/* Gives the new file no more access than the file it replaces has, and than the file it's made from. */
static void keep_access(sl_replacement *r, int source) {
    struct stat info;
    sl_access from = {0777, 0, 0};
    int known = 1;
    if (r->origin)
        from = r->origin->access;
    else if (source >= 0 && fstat(source, &info) == 0)
        from = sl_access_of(source, &info);
    else
        known = 0;
    if (r->replaces)
        r->access.mode &= from.mode;
    else
        r->access = from;
    if (known || r->replaces) sl_access_give(r->fd, &r->access);
}

/* O_EXCL alone makes the name unique among all threads, processes and machines that share the folder. */
static sl_status create_temporary(sl_replacement *r, int source) {
    for (int number = 0; number < MAX_TEMPORARIES; number++) {
        if (!name_beside(r, "tmp", number, r->temporary))
            return sl_fail(SL_EINVAL, "cannot save to %.60s...: the path is too long; choose a shorter one", r->target);
        unsigned mode = r->replaces || r->origin || source >= 0 ? 0600 : 0666;
        r->fd = sl_open_retrying(&r->ops, r->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        if (r->fd >= 0) {
            (void)flock(r->fd, LOCK_EX | LOCK_NB);
            keep_access(r, source);
            return SL_OK;
        }
        if (errno != EEXIST) return sl_fail_errno("cannot create", r->temporary);
    }
    return sl_fail(SL_EIO, "cannot create %s: all such names are taken; remove what killed saves left", r->temporary);
}

/* ---------------------------------------------------------------------------------------------------------------
 * Putting the file in place
 * ------------------------------------------------------------------------------------------------------------- */

static int sync_fd(const sl_replacement *r, int fd) {
    int result;
    do
        result = r->ops.fsync(r->ops.ctx, fd);
    while (result != 0 && errno == EINTR);
    return result;
}

static sl_status sync_and_close(sl_replacement *r) {
    if (sync_fd(r, r->fd) != 0) return sl_fail_errno("cannot sync", r->temporary);
    int fd = r->fd;
    r->fd = -1;
    /* An interrupted close has closed the descriptor, and the data is synced already. */
    if (r->ops.close(r->ops.ctx, fd) != 0 && errno != EINTR) return sl_fail_errno("cannot close", r->temporary);
    return SL_OK;
}

/* Takes a free name by an empty file, which the rename replaces. O_EXCL gives no two threads the same name. */
static int name_finished(const sl_replacement *r, char kept[PATH_MAX]) {
    int fd = -1, number = 0;
    do {
        if (!name_beside(r, "finished", number, kept)) return 0;
        fd = sl_open_retrying(&r->ops, kept, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    } while (fd < 0 && errno == EEXIST && ++number < MAX_TEMPORARIES);
    if (fd < 0) return 0;
    (void)r->ops.close(r->ops.ctx, fd);
    if (r->ops.rename(r->ops.ctx, r->temporary, kept) == 0) return 1;
    (void)r->ops.unlink(r->ops.ctx, kept);
    return 0;
}

/* Keeps the finished file, which may be hours of work. Under a temporary name, the next save would remove it. */
static sl_status keep_finished(sl_replacement *r, sl_status status) {
    char kept[PATH_MAX];
    const int named = name_finished(r, kept);
    status = sl_fail_in(status, "the finished file is %s: move it to its place%s", named ? kept : r->temporary,
                        named ? "" : " before the next save, which removes it");
    r->temporary[0] = '\0';
    return status;
}

/* Opens the folder before the rename, so that a folder that can't be synced shows while nothing has changed. */
static sl_status rename_and_sync_folder(sl_replacement *r) {
    int folder = sl_open_retrying(&r->ops, r->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (folder < 0) return sl_fail_errno("cannot open the folder", r->folder);
    sl_status status = SL_OK;
    if (r->ops.rename(r->ops.ctx, r->temporary, r->target) != 0)
        status = sl_fail_errno("cannot rename the temporary file to", r->target);
    else {
        r->placed = 1;
        r->temporary[0] = '\0';
        /* EINVAL: the file system can't sync folders, and needn't. */
        if (sync_fd(r, folder) != 0 && errno != EINVAL) {
            status = sl_fail_errno("cannot sync the folder", r->folder);
            status = sl_fail_in(status, "%s is saved, but a power loss may undo it", r->target);
        }
    }
    /* Nothing was written through this descriptor, so a failed close loses nothing. */
    (void)r->ops.close(r->ops.ctx, folder);
    return status;
}

static sl_status open_replaced(sl_replacement *r) {
    r->kept = open(r->target, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    return r->kept >= 0 || errno == ENOENT || errno == EACCES ? SL_OK : sl_fail_errno("cannot open", r->target);
}

static void let_go(sl_replacement *r) {
    if (r->kept >= 0) {
        (void)flock(r->kept, LOCK_UN); /* a child that was forked meanwhile shares the lock */
        close(r->kept);
    }
    r->kept = -1;
}

sl_status sl_replace_begin(sl_replacement *r, const char *path, const sl_file_ops *ops, sl_origin *origin, int source) {
    *r = (sl_replacement){.ops = sl_file_ops_of(ops), .fd = -1, .kept = -1, .origin = origin};
    SL_TRY(resolve_target(r, path));
    SL_TRY(check_replaceable(r));
    name_folder(r);
    SL_TRY(open_replaced(r));
    remove_leftovers(r);
    sl_status status = create_temporary(r, source);
    if (status != SL_OK) let_go(r);
    return status;
}

static sl_status check_origin(sl_replacement *r) {
    sl_status status = sl_origin_check(r->origin, r->target, r->kept);
    r->outdated = status == SL_EBUSY;
    return status;
}

sl_status sl_replace_keep_writers_off(sl_replacement *r) {
    int result = 0;
    /* Runs before anything is written, and again before the file gets its name. */
    SL_TRY(check_origin(r));
    if (r->kept < 0 || sl_origin_claims(r->origin, r->target)) return SL_OK;
    do
        result = flock(r->kept, LOCK_SH | LOCK_NB);
    while (result != 0 && errno == EINTR);
    if (result == 0 || errno != EWOULDBLOCK) return SL_OK;
    return sl_fail(SL_EBUSY,
                   "%s: is being written by another process, or by a handle of this one; let it finish, or choose "
                   "another name",
                   r->target);
}

/* Another save may have put another file at the target, and a writer may have opened it. */
static sl_status keep_latest(sl_replacement *r) {
    struct stat now, kept;
    int there = stat(r->target, &now) == 0;
    if (r->kept < 0 ? !there
                    : there && fstat(r->kept, &kept) == 0 && kept.st_dev == now.st_dev && kept.st_ino == now.st_ino)
        return SL_OK;
    let_go(r);
    SL_TRY(open_replaced(r));
    return sl_replace_keep_writers_off(r);
}

/* Locks the folder from the last look at the target to the rename: one save at a time in a folder. Without locks in the
 * file system, nobody is kept off. */
static sl_status lock_folder(const sl_replacement *r, int *folder) {
    *folder = open(r->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; *folder >= 0; i++) {
        if (flock(*folder, LOCK_EX | LOCK_NB) == 0 || (errno != EWOULDBLOCK && errno != EINTR)) return SL_OK;
        if (i == LOCK_TRIES) break;
        sl_pause_ns(LOCK_PAUSE);
    }
    if (*folder < 0) return sl_fail_errno("cannot open the folder", r->folder);
    close(*folder);
    return sl_fail(SL_EBUSY,
                   "%s: another save, or another program, has had the folder %s locked for %d seconds; let it finish "
                   "and try again",
                   r->target, r->folder, LOCK_TRIES / (1000000000 / LOCK_PAUSE));
}

/* A child that was forked meanwhile shares the lock. */
static void unlock_folder(int folder) {
    (void)flock(folder, LOCK_UN);
    close(folder);
}

/* `locked` is open on the temporary file. Its lock ends before the rename, so that the file's first writer need not
 * wait. */
static sl_status put_in_place(sl_replacement *r, int locked, sl_successor *successor) {
    int folder;
    SL_TRY(lock_folder(r, &folder));
    sl_status status = keep_latest(r);
    if (status == SL_OK) status = check_origin(r);
    if (status == SL_OK && successor->claim < 0) (void)flock(locked, LOCK_UN);
    if (status == SL_OK) status = rename_and_sync_folder(r);
    if (r->placed) sl_successor_settle(r->origin, successor, r->print);
    unlock_folder(folder);
    return status;
}

/* A finished file that can't get its name is kept. Changes to an older file aren't: moved into its place, they would
 * undo the newer file's. */
sl_status sl_replace_commit(sl_replacement *r, sl_progress *progress) {
    sl_successor successor;
    const sl_status followed = sl_successor_of(r->origin, r->target, r->fd, &successor);
    /* Keeps the temporary file's lock until the rename. */
    int locked = fcntl(r->fd, F_DUPFD_CLOEXEC, 0);
    sl_status status = sync_and_close(r);
    if (status == SL_OK) status = sl_progress_end(progress);
    if (status == SL_OK) {
        status = followed == SL_OK ? put_in_place(r, locked, &successor) : followed;
        if (status != SL_OK && !r->placed && !r->outdated) status = keep_finished(r, status);
    }
    sl_successor_drop(&successor);
    if (locked >= 0) close(locked);
    if (status == SL_OK) let_go(r);
    return status;
}

sl_status sl_replace_discard(sl_replacement *r, sl_status status) {
    let_go(r);
    if (r->fd >= 0) (void)r->ops.close(r->ops.ctx, r->fd);
    if (r->temporary[0] && r->ops.unlink(r->ops.ctx, r->temporary) != 0)
        return sl_fail_in(status, "%s is left behind and can be removed", r->temporary);
    return status;
}

/* ---------------------------------------------------------------------------------------------------------------
 * Trying a replacement
 * ------------------------------------------------------------------------------------------------------------- */

/* Renames one temporary file over another. Some file systems can write files but not rename them. */
static sl_status try_renaming(sl_replacement *r) {
    char first[PATH_MAX];
    memcpy(first, r->temporary, sizeof first);
    (void)r->ops.close(r->ops.ctx, r->fd);
    r->fd = -1;
    sl_status status = create_temporary(r, -1);
    if (status == SL_OK && r->ops.rename(r->ops.ctx, first, r->temporary) == 0) return SL_OK;
    if (status == SL_OK) status = sl_fail_errno("cannot rename a file in", r->folder);
    if (r->fd >= 0) (void)r->ops.unlink(r->ops.ctx, r->temporary);
    memcpy(r->temporary, first, sizeof first);
    return status;
}

sl_status sl_replace_try(const char *path, sl_origin *origin) {
    sl_replacement r;
    int folder;
    SL_TRY(sl_replace_begin(&r, path, NULL, origin, -1));
    sl_status status = try_renaming(&r);
    if (status == SL_OK) status = lock_folder(&r, &folder);
    if (status == SL_OK) {
        unlock_folder(folder);
        status = sl_replace_keep_writers_off(&r);
    }
    return sl_replace_discard(&r, status);
}

sl_status sl_save_try(const char *path) {
    if (!path) return sl_fail(SL_EINVAL, "path is NULL");
    return sl_replace_try(path, NULL);
}
