#define _GNU_SOURCE
#include "storage/ops.h"

#include "storage/pmem.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

static int system_open(void *ctx, const char *path, int flags, unsigned mode) {
    (void)ctx;
    return open(path, flags, (mode_t)mode);
}

static int64_t system_write(void *ctx, int fd, const void *data, size_t size) {
    (void)ctx;
    return write(fd, data, size);
}

static int system_fsync(void *ctx, int fd) {
    (void)ctx;
    return fsync(fd);
}

static int system_close(void *ctx, int fd) {
    (void)ctx;
    return close(fd);
}

static int system_rename(void *ctx, const char *from, const char *to) {
    (void)ctx;
    return rename(from, to);
}

static int system_unlink(void *ctx, const char *path) {
    (void)ctx;
    return unlink(path);
}

static int64_t system_pwrite(void *ctx, int fd, const void *data, size_t size, uint64_t offset) {
    (void)ctx;
    return pwrite(fd, data, size, (off_t)offset);
}

static int system_fdatasync(void *ctx, int fd) {
    (void)ctx;
    return fdatasync(fd);
}

static int system_ftruncate(void *ctx, int fd, uint64_t size) {
    (void)ctx;
    return ftruncate(fd, (off_t)size);
}

static int system_allocate(void *ctx, int fd, uint64_t offset, uint64_t size) {
    (void)ctx;
    int error = posix_fallocate(fd, (off_t)offset, (off_t)size);
    if (error == 0) return 0;
    errno = error;
    return -1;
}

sl_file_ops sl_file_ops_of(const sl_file_ops *given) {
    sl_file_ops ops = {0};
    if (given) ops = *given;
    if (!ops.open) ops.open = system_open;
    if (!ops.write) ops.write = system_write;
    if (!ops.fsync) ops.fsync = system_fsync;
    if (!ops.close) ops.close = system_close;
    if (!ops.rename) ops.rename = system_rename;
    if (!ops.unlink) ops.unlink = system_unlink;
    if (!ops.pwrite) ops.pwrite = system_pwrite;
    if (!ops.fdatasync) ops.fdatasync = system_fdatasync;
    if (!ops.ftruncate) ops.ftruncate = system_ftruncate;
    if (!ops.allocate) ops.allocate = system_allocate;
    if (!ops.flush || !ops.drain) {
        ops.flush = sl_pmem_flush;
        ops.drain = sl_pmem_drain;
    }
    return ops;
}

sl_status sl_write_at(const sl_file_ops *ops, int fd, const char *path, const void *data, size_t size,
                      uint64_t offset) {
    const uint8_t *from = data;
    while (size) {
        int64_t written = ops->pwrite(ops->ctx, fd, from, size, offset);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return sl_fail_errno("cannot write to", path);
        if (written == 0 || (uint64_t)written > size)
            return sl_fail(SL_EIO, "cannot write to %s: the system took %lld of %zu bytes; check the device", path,
                           (long long)written, size);
        from += written;
        size -= (size_t)written;
        offset += (uint64_t)written;
    }
    return SL_OK;
}

sl_status sl_read_at(int fd, const char *path, void *to, size_t size, uint64_t offset) {
    for (size_t done = 0; done < size;) {
        ssize_t got = pread(fd, (uint8_t *)to + done, size - done, (off_t)(offset + done));
        if (got == 0) return sl_fail(SL_ECORRUPT, "%s: became shorter while it was read; open it again", path);
        if (got > 0) done += (size_t)got;
        if (got < 0 && errno != EINTR) return sl_fail_errno("cannot read", path);
    }
    return SL_OK;
}

sl_status sl_sync_data(const sl_file_ops *ops, int fd, const char *path) {
    int result;
    do
        result = ops->fdatasync(ops->ctx, fd);
    while (result != 0 && errno == EINTR);
    return result == 0 ? SL_OK : sl_fail_errno("cannot sync", path);
}

int sl_open_retrying(const sl_file_ops *ops, const char *path, int flags, unsigned mode) {
    int fd;
    do
        fd = ops->open(ops->ctx, path, flags, mode);
    while (fd < 0 && errno == EINTR);
    return fd;
}

int sl_lacks_locks(void) {
    return errno == ENOLCK || errno == EBADF || errno == ENOSYS || errno == EOPNOTSUPP;
}

sl_status sl_lock_file(int fd, int kind, const char *path) {
    int result;
    do
        result = flock(fd, kind | LOCK_NB);
    while (result != 0 && errno == EINTR);
    if (result == 0) return SL_OK;
    if (sl_lacks_locks()) {
        const int error = errno;
        sl_status status = sl_fail(SL_EUNSUPPORTED,
                                   "%s: its file system has no locks, without which nobody may change the file; "
                                   "reading it works, at place map and dram, and so does saving a new file: copy it to "
                                   "a file system that has locks, or mount this one with them",
                                   path);
        errno = error;
        return status;
    }
    if (errno != EWOULDBLOCK) return sl_fail_errno("cannot lock", path);
    return sl_fail(SL_EBUSY, "%s: is being written by another process, or by another handle of this one; let it finish",
                   path);
}

#define ACCESS_LIST "system.posix_acl_access"

static sl_access access_as(const struct stat *info, int listed) {
    return (sl_access){info->st_mode & (listed ? 0707 : 0777), info->st_uid, info->st_gid};
}

sl_access sl_access_of(int fd, const struct stat *info) {
    const int listed = fgetxattr(fd, ACCESS_LIST, NULL, 0) > 0;
    return access_as(info, listed);
}

sl_access sl_access_at(const char *path, const struct stat *info) {
    const int listed = getxattr(path, ACCESS_LIST, NULL, 0) > 0;
    return access_as(info, listed);
}

void sl_access_give(int fd, const sl_access *access) {
    unsigned mode = access->mode;
    struct stat now;
    if (fstat(fd, &now) != 0) return;
    if (now.st_uid != access->user && fchown(fd, access->user, (gid_t)-1) != 0) errno = 0;
    if (now.st_gid != access->group && fchown(fd, (uid_t)-1, access->group) != 0)
        mode = (mode & 0707) | (mode & 07) << 3;
    if ((now.st_mode & 0777) != mode && fchmod(fd, (mode_t)mode) != 0) errno = 0;
}

sl_status sl_sync_folder(const sl_file_ops *ops, const char *path) {
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    size_t length = slash ? (size_t)(slash - path) : 1;
    if (length >= sizeof folder) return sl_fail(SL_EINVAL, "%.60s...: the path is too long", path);
    if (slash && length == 0) length = 1;
    memcpy(folder, slash ? path : ".", length);
    folder[length] = '\0';
    int fd = sl_open_retrying(ops, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (fd < 0) return sl_fail_errno("cannot open the folder", folder);
    /* EINVAL: the file system can't sync folders, and needn't. */
    int failed = ops->fsync(ops->ctx, fd) != 0 && errno != EINVAL;
    sl_status status = failed ? sl_fail_errno("cannot sync the folder", folder) : SL_OK;
    (void)ops->close(ops->ctx, fd);
    return status;
}
