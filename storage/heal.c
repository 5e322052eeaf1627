#define _GNU_SOURCE
#include "storage/heal.h"

#include "base/clock.h"
#include "storage/locks.h"
#include "storage/recover.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* Replays the log into a private mapping, for a process that may not write the file. The mapping becomes what the file
 * will be once a writer has replayed the log. */
static sl_status heal_mapping(sl_store *store, const sl_superblock *super) {
    sl_redo_found found;
    int fd = open(store->resolved, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return sl_fail_errno("cannot open", store->path);
    sl_status status = sl_store_map_privately(store, fd);
    close(fd);
    SL_TRY(status);
    SL_TRY(sl_writable_look(store, super, &found));
    store->healed = 1;
    return sl_recover_into_memory(store, super, store->base, &found);
}

/* Heals the mapping, if no writer is at work. The reader's private pages would not follow a writer. */
static sl_status heal_unwritten(sl_store *store) {
    sl_superblock super;
    int held;
    sl_status status = sl_writable_hold(store, &held);
    if (status == SL_OK) status = sl_writable_super(store, &super);
    if (status == SL_OK) status = heal_mapping(store, &super);
    sl_writable_release(held);
    return status == SL_EBUSY ? SL_OK : status;
}

/* Returns whether there is no log, or no group in it. A reader then goes on with the file's content. */
static int log_is_empty(const sl_store *store) {
    char path[PATH_MAX];
    struct stat info;
    if (sl_redo_name(store->resolved, path) != SL_OK) return 0;
    return lstat(path, &info) != 0 ? errno == ENOENT : info.st_size <= (off_t)sizeof(sl_redo_head);
}

/* Finds out whether a writer is at work. It has written what its log says, or is about to. */
static sl_status find_writer(const sl_store *store, int *found) {
    int held;
    sl_status status = sl_writable_hold(store, &held);
    sl_writable_release(held);
    *found = status == SL_EBUSY;
    return *found ? SL_OK : status;
}

/* Returns whether a writer is at work; 1 if the system can't tell. Takes no lock, which a writer being opened would
 * meet. */
static int has_writer(const sl_store *store) {
    int fd = sl_store_reopen(store);
    if (fd < 0) return 1;
    int locked = sl_byte_is_locked(fd, SL_LIVE_WRITER);
    close(fd);
    return locked;
}

/* Replays the log into the file, which is open for writing at fd. A writer that is opened meanwhile waits: see
 * lock_for_writing. */
static sl_status heal_file(const sl_store *store, const sl_file_ops *ops, int fd) {
    sl_superblock super;
    (void)sl_lock_byte(fd, F_WRLCK, SL_LIVE_HEALER);
    sl_status status = sl_lock_file(fd, LOCK_EX, store->path);
    if (status == SL_OK) status = sl_writable_super(store, &super);
    if (status == SL_OK) status = sl_recover_file(store, ops, fd, 0, &super);
    (void)flock(fd, LOCK_UN);
    (void)sl_lock_byte(fd, F_UNLCK, SL_LIVE_HEALER);
    return status;
}

sl_status sl_writable_heal(sl_store *store) {
    sl_superblock super;
    sl_redo_found found;
    int writer, fd;
    if (log_is_empty(store)) return SL_OK;
    SL_TRY(find_writer(store, &writer));
    if (writer) return SL_OK;
    SL_TRY(sl_recover_look(store, &super, &found));
    if (!found.groups) return SL_OK;
    sl_file_ops ops = sl_file_ops_of(NULL);
    sl_status status = sl_store_open_to_write(store, &ops, &fd);
    if (status == SL_EBUSY) return status;
    if (status != SL_OK) return heal_unwritten(store);
    status = heal_file(store, &ops, fd);
    close(fd);
    /* SL_EBUSY: a writer is at work, or a save over the file keeps writers off. SL_EUNSUPPORTED: there are no locks. */
    return status == SL_EBUSY || status == SL_EUNSUPPORTED ? heal_unwritten(store) : status;
}

/* Replays what a dead writer left. A log without a whole group is dropped in the same way. A damaged log is read once.
 * While a writer lives no lock is taken, so a writer being opened doesn't find the file locked. */
static void look_for_remains(sl_store *store) {
    sl_superblock super;
    sl_redo_found found;
    int fd;
    sl_file_ops ops = sl_file_ops_of(NULL);
    if (log_is_empty(store) || sl_store_open_to_write(store, &ops, &fd) != SL_OK) return;
    if (!sl_byte_is_locked(fd, SL_LIVE_WRITER) && sl_writable_super(store, &super) == SL_OK &&
        super.sequence != __atomic_load_n(&store->given_up, __ATOMIC_RELAXED)) {
        sl_status status = sl_writable_look(store, &super, &found);
        if (status == SL_OK && (found.groups || super.logged)) (void)heal_file(store, &ops, fd);
        if (status == SL_ECORRUPT) __atomic_store_n(&store->given_up, super.sequence, __ATOMIC_RELAXED);
    }
    close(fd);
}

sl_status sl_writable_check_log(const sl_store *store) {
    sl_superblock super;
    sl_redo_found found = {0};
    if (store->healed || store->writer >= 0) return SL_OK;
    SL_TRY(sl_recover_look(store, &super, &found));
    if (!found.groups) return SL_OK;
    return sl_fail(SL_EBUSY, "%s: a writer came and died while the file was opened; open it again", store->path);
}

/* Reads the superblock first: a writer opened later changes it. A writer opened earlier is found by has_writer, or has
 * finished writing. */
uint64_t sl_writable_quiet(const sl_store *store) {
    sl_superblock super;
    return sl_writable_super(store, &super) == SL_OK && !has_writer(store) ? super.sequence : 0;
}

sl_status sl_writable_check_settled(const sl_store *store) {
    uint64_t quiet = sl_writable_quiet(store);
    if (!quiet) return SL_OK;
    sl_status status = sl_writable_check_log(store);
    return sl_writable_quiet(store) == quiet ? status : SL_OK;
}

void sl_writable_watch(sl_store *store) {
    if (store->detached) return;
    uint64_t second = sl_now_coarse(), last = __atomic_load_n(&store->watched, __ATOMIC_RELAXED);
    if (second == last) return;
    /* One of many threads looks. A thread that reads the clock a second late may look once more. */
    if (__atomic_compare_exchange_n(&store->watched, &last, second, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        look_for_remains(store);
}
