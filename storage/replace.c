#define _GNU_SOURCE
#include "storage/replace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* Temporary names tried before giving up; each one taken is another save at work or what a killed one left. */
#define MAX_TEMPORARIES 10000

/* A file's name may have 255 bytes; this much of it leaves room for ".tmp.<pid>.<number>". */
#define MAX_STEM 200

/* ---------------------------------------------------------------------------------------------------------------
 * Names
 * ------------------------------------------------------------------------------------------------------------- */

/* What rename would replace must be a file: a save to /dev/null must not put a file in its place. */
static sl_status check_target(const char *path, const struct stat *info) {
    if (S_ISREG(info->st_mode)) return SL_OK;
    if (S_ISDIR(info->st_mode)) return sl_fail(SL_EIO, "cannot save to %s: it is a folder; name a file in it", path);
    if (S_ISLNK(info->st_mode))
        return sl_fail(SL_EIO, "cannot save to %s: it is a link to nothing; remove it or create its target", path);
    return sl_fail(SL_EIO, "cannot save to %s: it is not a regular file; choose another name", path);
}

/* Resolves links, so that a save through one replaces what it points at and the link survives. */
static sl_status resolve_target(sl_replacement *r, const char *path) {
    struct stat info;
    if (realpath(path, r->target)) {
        if (stat(r->target, &info) != 0) return sl_fail_errno("cannot look at", path);
        r->mode = info.st_mode & 0777;
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

static void name_folder(sl_replacement *r) {
    const char *slash = strrchr(r->target, '/');
    size_t length = slash && slash > r->target ? (size_t)(slash - r->target) : 1;
    memcpy(r->folder, slash ? r->target : ".", length);
    r->folder[length] = '\0';
}

static sl_status name_temporary(sl_replacement *r, int number) {
    const char *slash = strrchr(r->target, '/');
    int folder = slash ? (int)(slash - r->target) + 1 : 0;
    int length = snprintf(r->temporary, sizeof r->temporary, "%.*s%.*s.tmp.%ld.%d", folder, r->target, MAX_STEM,
                          r->target + folder, (long)getpid(), number);
    if (length < 0 || (size_t)length >= sizeof r->temporary)
        return sl_fail(SL_EINVAL, "cannot save to %.60s...: the path is too long; choose a shorter one", r->target);
    return SL_OK;
}

/* O_EXCL alone makes the name unique, among threads, processes and machines that share the folder. */
static sl_status create_temporary(sl_replacement *r) {
    for (int number = 0; number < MAX_TEMPORARIES; number++) {
        SL_TRY(name_temporary(r, number));
        r->fd = sl_open_retrying(&r->ops, r->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, r->mode);
        if (r->fd >= 0) return SL_OK;
        if (errno != EEXIST) return sl_fail_errno("cannot create", r->temporary);
    }
    return sl_fail(SL_EIO, "cannot create %s: all such names are taken; remove what killed saves left", r->temporary);
}

/* ---------------------------------------------------------------------------------------------------------------
 * Into place
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
    /* Interrupted, the descriptor is closed all the same, and the data is synced already. */
    if (r->ops.close(r->ops.ctx, fd) != 0 && errno != EINTR) return sl_fail_errno("cannot close", r->temporary);
    return SL_OK;
}

/* Opened before the rename, so that a folder that cannot be synced is found out while nothing has changed. */
static sl_status rename_and_sync_folder(sl_replacement *r) {
    int folder = sl_open_retrying(&r->ops, r->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (folder < 0) return sl_fail_errno("cannot open the folder", r->folder);
    sl_status status = SL_OK;
    if (r->ops.rename(r->ops.ctx, r->temporary, r->target) != 0)
        status = sl_fail_errno("cannot rename the temporary file to", r->target);
    else {
        r->temporary[0] = '\0';
        /* EINVAL: a file system that cannot sync folders and needs no telling. */
        if (sync_fd(r, folder) != 0 && errno != EINVAL) {
            status = sl_fail_errno("cannot sync the folder", r->folder);
            status = sl_fail_in(status, "%s is saved, but a power loss may undo it", r->target);
        }
    }
    /* Nothing was written through it, so its close has nothing to lose. */
    (void)r->ops.close(r->ops.ctx, folder);
    return status;
}

static sl_status open_replaced(sl_replacement *r) {
    r->kept = open(r->target, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    return r->kept >= 0 || errno == ENOENT || errno == EACCES ? SL_OK : sl_fail_errno("cannot open", r->target);
}

static void let_go(sl_replacement *r) {
    if (r->kept >= 0) close(r->kept);
    r->kept = -1;
}

sl_status sl_replace_begin(sl_replacement *r, const char *path, const sl_file_ops *ops) {
    *r = (sl_replacement){.ops = sl_file_ops_of(ops), .fd = -1, .kept = -1, .mode = 0666};
    SL_TRY(resolve_target(r, path));
    name_folder(r);
    SL_TRY(open_replaced(r));
    sl_status status = create_temporary(r);
    if (status != SL_OK) let_go(r);
    return status;
}

sl_status sl_replace_keep_writers_off(sl_replacement *r) {
    int result = 0;
    if (r->kept < 0) return SL_OK;
    do
        result = flock(r->kept, LOCK_SH | LOCK_NB);
    while (result != 0 && errno == EINTR);
    if (result == 0 || errno != EWOULDBLOCK) return SL_OK;
    return sl_fail(SL_EBUSY,
                   "%s: is being written by another process, or by a handle of this one; let it finish, or choose "
                   "another name",
                   r->target);
}

/* Another save may have put another file there meanwhile, which somebody has begun to write. */
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

sl_status sl_replace_commit(sl_replacement *r, sl_progress *progress) {
    SL_TRY(sync_and_close(r));
    SL_TRY(sl_progress_end(progress));
    SL_TRY(keep_latest(r));
    sl_status status = rename_and_sync_folder(r);
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
