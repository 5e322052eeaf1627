#define _GNU_SOURCE
#include "storage/locks.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

/* The lock belongs to the open file, not to the process, so handles of one process keep each other out too. */
int sl_lock_byte(int fd, short kind, sl_writable_lock byte) {
    struct flock lock = {.l_type = kind, .l_whence = SEEK_SET, .l_start = (off_t)byte, .l_len = 1};
    int result;
    do
        result = fcntl(fd, F_OFD_SETLK, &lock);
    while (result != 0 && errno == EINTR);
    return result;
}

int sl_byte_is_locked(int fd, sl_writable_lock byte) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = (off_t)byte, .l_len = 1};
    return fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

int sl_lock_is_taken(void) {
    return errno == EAGAIN || errno == EACCES;
}

static sl_status fail_pin(const char *path) {
    if (!sl_lacks_locks()) return sl_fail_errno("cannot lock", path);
    return sl_fail(SL_EUNSUPPORTED,
                   "%s: its file system has no locks that keep a writer from emptying its log during a copy; reading "
                   "the file works, and where no writer is at work, copy it together with its log",
                   path);
}

sl_status sl_writable_pin(int fd, const char *path, sl_progress *progress) {
    if (sl_lock_byte(fd, F_RDLCK, SL_LIVE_DIRECT) != 0)
        return sl_lock_is_taken()
                   ? sl_fail(SL_EBUSY,
                             "%s: is being written directly in persistent memory, which leaves no log to make a "
                             "copy whole by; close its writer first",
                             path)
                   : fail_pin(path);
    /* A checkpoint takes as long as a sync of the file. */
    while (sl_lock_byte(fd, F_RDLCK, SL_LIVE_CHECKPOINT) != 0) {
        if (!sl_lock_is_taken()) return fail_pin(path);
        sl_pause_ns(1000000);
        sl_progress_step(progress, 0);
        if (sl_progress_cancelled(progress)) return sl_progress_end(progress);
    }
    return SL_OK;
}

void sl_writable_unpin(int fd) {
    (void)sl_lock_byte(fd, F_UNLCK, SL_LIVE_DIRECT);
    (void)sl_lock_byte(fd, F_UNLCK, SL_LIVE_CHECKPOINT);
    close(fd);
}

sl_status sl_writable_hold(const sl_store *store, int *held) {
    *held = open(store->resolved, O_RDONLY | O_CLOEXEC);
    if (*held < 0) return sl_fail_errno("cannot open", store->path);
    sl_status status = sl_lock_file(*held, LOCK_SH, store->path);
    if (status != SL_EUNSUPPORTED) return status;
    close(*held);
    *held = -1;
    return SL_OK;
}

/* Unlocks first: a child that was forked meanwhile shares the lock, so closing alone would not free it. */
void sl_writable_release(int held) {
    if (held < 0) return;
    (void)flock(held, LOCK_UN);
    close(held);
}
