#define _GNU_SOURCE
#include "storage/writable.h"

#include "base/crc32c.h"
#include "storage/pmem.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Blocks are set aside in pieces of this size. */
#define PIECE ((uint64_t)1 << 20)
/* Milliseconds that a writer waits for a reader which replays the log; one that was stopped is not waited for. */
#define HEALER_PAUSES 2000
/* The log is looked at again where a writer came or went meanwhile, so many times in all. */
#define MOST_LOOKS 16
/* The longest record. */
#define RUN ((uint64_t)1 << 20)
/* What is written again rather than left out of a write. */
#define GAP ((uint64_t)1 << 10)

static const char magic[8] = "SLSUPER";
static_assert(sizeof(sl_superblock) == 512, "sl_superblock");
static_assert(sizeof(sl_writable_stamp) == 32, "sl_writable_stamp");

/* ---------------------------------------------------------------------------------------------------------------
 * Superblocks
 * ------------------------------------------------------------------------------------------------------------- */

static uint32_t super_crc(const sl_superblock *super) {
    return sl_crc32c(0, super, offsetof(sl_superblock, crc32c));
}

static int is_whole(const sl_superblock *super) {
    return memcmp(super->magic, magic, sizeof magic) == 0 && super->crc32c == super_crc(super);
}

sl_status sl_writable_superblocks(uint8_t pages[SL_LIVE_HEAD], uint64_t unsummed) {
    sl_superblock super = {.sequence = 1, .epoch = 1, .unsummed = unsummed};
    memset(pages, 0, SL_LIVE_HEAD);
    memcpy(super.magic, magic, sizeof magic);
    if (getrandom(super.identity, sizeof super.identity, 0) != (ssize_t)sizeof super.identity)
        return sl_fail_errno("cannot get random numbers for the identity of", "the file");
    super.crc32c = super_crc(&super);
    memcpy(pages + SL_LIVE_PAGE, &super, sizeof super);
    return SL_OK;
}

sl_status sl_writable_format(uint8_t *section, const void *head, size_t size) {
    memset(section, 0, SL_LIVE_SIZE);
    memcpy(section + SL_LIVE_HEAD, head, size);
    return sl_writable_superblocks(section, 0);
}

sl_status sl_writable_super(const sl_store *store, sl_superblock *out) {
    const sl_file_section *section = sl_store_section(store, SL_SECTION_LIVE);
    *out = (sl_superblock){.sequence = 0};
    for (size_t i = 0; i < SL_SUPERBLOCKS; i++) {
        sl_superblock one;
        memcpy(&one, store->base + section->offset + i * SL_LIVE_PAGE, sizeof one);
        if (is_whole(&one) && one.sequence > out->sequence) *out = one;
    }
    if (out->sequence) return SL_OK;
    return sl_fail(SL_ECORRUPT, "%s: both superblocks are damaged; restore a copy of the file", store->path);
}

/* A new file has one, and zeros in the other's place. */
int sl_writable_is_doubtful(const sl_store *store) {
    static const sl_superblock none;
    const sl_file_section *section = sl_store_section(store, SL_SECTION_LIVE);
    int whole = 1;
    for (size_t i = 0; i < SL_SUPERBLOCKS; i++) {
        sl_superblock one;
        memcpy(&one, store->base + section->offset + i * SL_LIVE_PAGE, sizeof one);
        whole = whole && (is_whole(&one) || memcmp(&one, &none, sizeof one) == 0);
    }
    return !whole;
}

static sl_writable_stamp *stamp_in(const uint8_t *base, uint64_t section) {
    return (sl_writable_stamp *)(void *)(uintptr_t)(base + section + SL_LIVE_HEAD + SL_LIVE_HEAD_ROOM);
}

/* Groups of the superblock's epoch that the file holds, as far as it says. */
static uint64_t groups_held(const sl_store *store, const sl_superblock *super) {
    const sl_writable_stamp *stamp = stamp_in(store->base, sl_store_section(store, SL_SECTION_LIVE)->offset);
    if (memcmp(stamp->identity, super->identity, sizeof stamp->identity) != 0) return 0;
    const uint64_t groups = __atomic_load_n(&stamp->groups, __ATOMIC_ACQUIRE);
    return __atomic_load_n(&stamp->epoch, __ATOMIC_ACQUIRE) == super->epoch ? groups : 0;
}

/* ---------------------------------------------------------------------------------------------------------------
 * Locks
 * ------------------------------------------------------------------------------------------------------------- */

/* A lock of the open file, not of the process: handles of one process keep one another out too. */
static int lock_byte(int fd, short kind, sl_writable_lock byte) {
    struct flock lock = {.l_type = kind, .l_whence = SEEK_SET, .l_start = (off_t)byte, .l_len = 1};
    int result;
    do
        result = fcntl(fd, F_OFD_SETLK, &lock);
    while (result != 0 && errno == EINTR);
    return result;
}

/* Whether another open file has a byte locked for writing; 0 too where that is not to be known. */
static int byte_is_locked(int fd, sl_writable_lock byte) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = (off_t)byte, .l_len = 1};
    return fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

/* Of a lock that could not be had: whether somebody has it. Where a file system knows no such locks nobody does. */
static int is_taken(void) {
    return errno == EAGAIN || errno == EACCES;
}

sl_status sl_writable_pin(int fd, const char *path, sl_progress *progress) {
    if (lock_byte(fd, F_RDLCK, SL_LIVE_DIRECT) != 0)
        return is_taken() ? sl_fail(SL_EBUSY,
                                    "%s: is being written directly in persistent memory, which leaves no log to make a "
                                    "copy whole by; close its writer first",
                                    path)
                          : sl_fail_errno("cannot lock", path);
    /* A checkpoint takes as long as the file's sync. */
    while (lock_byte(fd, F_RDLCK, SL_LIVE_CHECKPOINT) != 0) {
        if (!is_taken()) return sl_fail_errno("cannot lock", path);
        nanosleep(&(struct timespec){0, 1000000}, NULL);
        sl_progress_step(progress, 0);
        if (sl_progress_cancelled(progress)) return sl_progress_end(progress);
    }
    return SL_OK;
}

void sl_writable_unpin(int fd) {
    (void)lock_byte(fd, F_UNLCK, SL_LIVE_DIRECT);
    (void)lock_byte(fd, F_UNLCK, SL_LIVE_CHECKPOINT);
    close(fd);
}

static uint64_t super_at(uint64_t section, const sl_superblock *super) {
    return section + super->sequence % SL_SUPERBLOCKS * SL_LIVE_PAGE;
}

/* The next one, over the older of the two, on the device when this returns. */
static sl_status write_super(const sl_file_ops *ops, int fd, const char *path, uint64_t section, sl_superblock *super) {
    super->sequence++;
    super->crc32c = super_crc(super);
    SL_TRY(sl_write_at(ops, fd, path, super, sizeof *super, super_at(section, super)));
    return sl_sync_data(ops, fd, path);
}

/* ---------------------------------------------------------------------------------------------------------------
 * Recovery
 * ------------------------------------------------------------------------------------------------------------- */

typedef struct into_file {
    const sl_file_ops *ops;
    int fd;
    const char *path;
} into_file;

static sl_status write_record(void *ctx, uint64_t offset, const void *data, uint64_t size) {
    const into_file *to = ctx;
    return sl_write_at(to->ops, to->fd, to->path, data, (size_t)size, offset);
}

static sl_status copy_record(void *ctx, uint64_t offset, const void *data, uint64_t size) {
    memcpy((uint8_t *)ctx + offset, data, (size_t)size);
    return SL_OK;
}

/* A file, and what it will say in the end. */
typedef struct into_end {
    into_file to;
    const uint8_t *says;
    uint64_t head; /* where its head page begins */
} into_end;

static sl_status write_end(into_end *end, uint64_t from, uint64_t to) {
    return from < to ? write_record(&end->to, from, end->says + from, to - from) : SL_OK;
}

/* Of a record the place alone counts: what a later group puts there is written at once. The head page is left out. */
static sl_status write_last(void *ctx, uint64_t offset, const void *data, uint64_t size) {
    into_end *end = ctx;
    uint64_t behind = offset + size, head = end->head, past = head + SL_LIVE_PAGE;
    (void)data;
    SL_TRY(write_end(end, offset, behind < head ? behind : head));
    return write_end(end, offset > past ? offset : past, behind);
}

static sl_redo_owner owner_of(const sl_store *store, const sl_superblock *super) {
    return (sl_redo_owner){.path = store->resolved,
                           .identity = super->identity,
                           .epoch = super->epoch,
                           .size = store->size,
                           .in_force = super->logged != 0,
                           .doubtful = sl_writable_is_doubtful(store),
                           .held = groups_held(store, super)};
}

static sl_status redo(const sl_store *store, const sl_superblock *super, sl_redo_apply apply, void *ctx,
                      sl_redo_found *found) {
    const sl_redo_owner owner = owner_of(store, super);
    return sl_redo_replay(&owner, apply, ctx, found);
}

sl_status sl_writable_look(const sl_store *store, const sl_superblock *super, sl_redo_found *found) {
    return redo(store, super, NULL, NULL, found);
}

sl_status sl_writable_replay(const sl_store *store, const sl_superblock *super, const sl_file_ops *ops, int fd,
                             const char *path, sl_redo_found *found) {
    into_file to = {ops, fd, path};
    return redo(store, super, write_record, &to, found);
}

static sl_status fail_replaced(const sl_store *store) {
    return sl_fail(SL_EBUSY, "%s: was replaced while it was opened; open it again", store->path);
}

/* What there is to replay, by the superblock in force. A writer that came or went meanwhile has changed both; a file
 * that took this one's name has a log of its own there. */
static sl_status look_at_log(const sl_store *store, sl_superblock *super, sl_redo_found *found) {
    for (int i = 0; i < MOST_LOOKS; i++) {
        sl_superblock now;
        SL_TRY(sl_writable_super(store, super));
        sl_status status = redo(store, super, NULL, NULL, found);
        if (status == SL_OK) return SL_OK;
        if (!sl_store_has_name(store)) return fail_replaced(store);
        SL_TRY(sl_writable_super(store, &now));
        if (now.sequence == super->sequence) return status;
    }
    return sl_fail(SL_EBUSY, "%s: writers come and go while it is opened; try again", store->path);
}

/* Replays the log into the file beside readers that have it mapped: they never see it as an earlier sync left it. The
 * log goes into a private mapping first; its places are then written as they are there, and the head page last. */
static sl_status redo_forward(const sl_store *store, const sl_file_ops *ops, int fd, const sl_superblock *super,
                              sl_redo_found *found) {
    SL_TRY(redo(store, super, NULL, NULL, found));
    if (!found->groups) return SL_OK;
    void *says = mmap(NULL, (size_t)store->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, fd, 0);
    if (says == MAP_FAILED) return sl_fail_errno("cannot map", store->path);
    const uint64_t head = sl_store_section(store, SL_SECTION_LIVE)->offset + SL_LIVE_HEAD;
    into_end end = {{ops, fd, store->path}, says, head};
    sl_status status = redo(store, super, copy_record, says, found);
    if (status == SL_OK) status = redo(store, super, write_last, &end, found);
    if (status == SL_OK) status = write_end(&end, head, head + SL_LIVE_PAGE);
    munmap(says, (size_t)store->size);
    return status;
}

/* Replays what the log holds into the file, and goes over to the next epoch, so that the log counts no more, whatever
 * is left in it. A crash in between leaves the log in force, and what it says is said again. `logged` as in
 * sl_superblock: whether the file has a log from here on. */
static sl_status recover(const sl_store *store, const sl_file_ops *ops, int fd, int logged, sl_superblock *super) {
    sl_redo_found found;
    SL_TRY(redo_forward(store, ops, fd, super, &found));
    super->epoch++;
    super->logged = (uint64_t)logged;
    if (found.groups) {
        SL_TRY(sl_sync_data(ops, fd, store->path));
        super->recoveries++;
        super->recovered_groups = found.groups;
        super->recovered_bytes = found.bytes;
    }
    const sl_file_section *section = sl_store_section(store, SL_SECTION_LIVE);
    return write_super(ops, fd, store->path, section->offset, super);
}

/* The file again, to be written to: the same that the store has mapped. */
static sl_status open_same(const sl_store *store, const sl_file_ops *ops, int *fd) {
    *fd = sl_open_retrying(ops, store->resolved, O_RDWR | O_CLOEXEC, 0);
    if (*fd < 0) return sl_fail_errno("cannot open for writing", store->path);
    if (sl_store_is(store, *fd)) return SL_OK;
    (void)ops->close(ops->ctx, *fd);
    *fd = -1;
    return fail_replaced(store);
}

/* From the opening to the lock a save may have put another file in the place of this one, which nobody would find what
 * is written to. */
static sl_status check_name(const sl_store *store) {
    return sl_store_has_name(store) ? SL_OK : fail_replaced(store);
}

/* A private mapping in the place of the store's; its pages become this process's own where they are written to. */
static sl_status map_privately(sl_store *store, int fd) {
    void *base = mmap(NULL, (size_t)store->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, fd, 0);
    if (base == MAP_FAILED) return sl_fail_errno("cannot map", store->path);
    store->medium->unmap((void *)(uintptr_t)store->base, store->size);
    store->base = base;
    store->detached = 1;
    store->medium->advise_random(base, store->size);
    return SL_OK;
}

/* Without a way to write to the file: as it will be once a writer has replayed the log. */
static sl_status heal_mapping(sl_store *store, const sl_superblock *super) {
    sl_redo_found found;
    int fd = open(store->resolved, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return sl_fail_errno("cannot open", store->path);
    sl_status status = map_privately(store, fd);
    close(fd);
    SL_TRY(status);
    SL_TRY(redo(store, super, NULL, NULL, &found));
    store->healed = 1;
    return redo(store, super, copy_record, (void *)(uintptr_t)store->base, &found);
}

sl_status sl_writable_hold(const sl_store *store, int *held) {
    *held = open(store->resolved, O_RDONLY | O_CLOEXEC);
    if (*held < 0) return sl_fail_errno("cannot open", store->path);
    return sl_lock_file(*held, LOCK_SH, store->path);
}

/* A child that was forked meanwhile has the lock too. */
void sl_writable_release(int held) {
    if (held < 0) return;
    (void)flock(held, LOCK_UN);
    close(held);
}

/* The same as a crashed writer's log has it; of one that is at work nothing, since pages that are the reader's own
 * would not follow it. */
static sl_status heal_unwritten(sl_store *store) {
    sl_superblock super;
    int held;
    sl_status status = sl_writable_hold(store, &held);
    if (status == SL_OK) status = sl_writable_super(store, &super);
    if (status == SL_OK) status = heal_mapping(store, &super);
    sl_writable_release(held);
    return status == SL_EBUSY ? SL_OK : status;
}

/* There is none, or no group in it. A reader goes on with what the file holds. */
static int log_is_empty(const sl_store *store) {
    char path[PATH_MAX];
    struct stat info;
    if (sl_redo_name(store->resolved, path) != SL_OK) return 0;
    return lstat(path, &info) != 0 ? errno == ENOENT : info.st_size <= (off_t)sizeof(sl_redo_head);
}

/* A writer that is at work has written to the file what its log says, or is about to. */
static sl_status find_writer(const sl_store *store, int *found) {
    int held;
    sl_status status = sl_writable_hold(store, &held);
    sl_writable_release(held);
    *found = status == SL_EBUSY;
    return *found ? SL_OK : status;
}

/* Without a lock, which a writer that is opened at that moment would find; what cannot be told counts as a writer. */
static int has_writer(const sl_store *store) {
    int fd = sl_store_reopen(store);
    if (fd < 0) return 1;
    int locked = byte_is_locked(fd, SL_LIVE_WRITER);
    close(fd);
    return locked;
}

/* Into the file, open to be written at fd. A writer that is opened meanwhile waits for it (lock_for_writing). */
static sl_status heal_file(const sl_store *store, const sl_file_ops *ops, int fd) {
    sl_superblock super;
    (void)lock_byte(fd, F_WRLCK, SL_LIVE_HEALER);
    sl_status status = sl_lock_file(fd, LOCK_EX, store->path);
    if (status == SL_OK) status = sl_writable_super(store, &super);
    if (status == SL_OK) status = recover(store, ops, fd, 0, &super);
    (void)flock(fd, LOCK_UN);
    (void)lock_byte(fd, F_UNLCK, SL_LIVE_HEALER);
    return status;
}

sl_status sl_writable_heal(sl_store *store) {
    sl_superblock super;
    sl_redo_found found;
    int writer, fd;
    if (log_is_empty(store)) return SL_OK;
    SL_TRY(find_writer(store, &writer));
    if (writer) return SL_OK;
    SL_TRY(look_at_log(store, &super, &found));
    if (!found.groups) return SL_OK;
    sl_file_ops ops = sl_file_ops_of(NULL);
    sl_status status = open_same(store, &ops, &fd);
    if (status == SL_EBUSY) return status;
    if (status != SL_OK) return heal_unwritten(store);
    status = heal_file(store, &ops, fd);
    close(fd);
    /* A writer, or somebody who only keeps writers off, as a save over the file does. */
    return status == SL_EBUSY ? heal_unwritten(store) : status;
}

/* What a writer that died has left, where there is any, also a log without a whole group, which ends with it. A damaged
 * one is read once. Without a lock as long as a writer lives: one that is opened
 * meanwhile must not find the file taken. */
static void look_for_remains(sl_store *store) {
    sl_superblock super;
    sl_redo_found found;
    int fd;
    sl_file_ops ops = sl_file_ops_of(NULL);
    if (log_is_empty(store) || open_same(store, &ops, &fd) != SL_OK) return;
    if (!byte_is_locked(fd, SL_LIVE_WRITER) && sl_writable_super(store, &super) == SL_OK &&
        super.sequence != __atomic_load_n(&store->given_up, __ATOMIC_RELAXED)) {
        sl_status status = redo(store, &super, NULL, NULL, &found);
        if (status == SL_OK && (found.groups || super.logged)) (void)heal_file(store, &ops, fd);
        if (status == SL_ECORRUPT) __atomic_store_n(&store->given_up, super.sequence, __ATOMIC_RELAXED);
    }
    close(fd);
}

sl_status sl_writable_check_log(const sl_store *store) {
    sl_superblock super;
    sl_redo_found found = {0};
    if (store->healed || store->writer >= 0) return SL_OK;
    SL_TRY(look_at_log(store, &super, &found));
    if (!found.groups) return SL_OK;
    return sl_fail(SL_EBUSY, "%s: a writer came and died while the file was opened; open it again", store->path);
}

/* The superblock first: a writer that is opened after it was read changes it, and one that was opened before is found,
 * or has written all that it will. */
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
    struct timespec now;
    if (store->detached || clock_gettime(CLOCK_MONOTONIC_COARSE, &now) != 0) return;
    uint64_t second = (uint64_t)now.tv_sec, last = __atomic_load_n(&store->watched, __ATOMIC_RELAXED);
    if (second == last) return;
    /* One of many threads; who reads the clock a second late may look once more. */
    if (__atomic_compare_exchange_n(&store->watched, &last, second, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        look_for_remains(store);
}

/* ---------------------------------------------------------------------------------------------------------------
 * The writer
 * ------------------------------------------------------------------------------------------------------------- */

static size_t pieces_bytes(uint64_t size) {
    return (size_t)(size / PIECE / 64 + 1) * sizeof(uint64_t);
}

/* What a failed sync has lost, another does not bring back. */
static sl_status check_failed(const sl_writable *live) {
    if (!live->failed && (live->direct || !live->redo->unsure)) return SL_OK;
    return sl_fail(SL_EIO, "%s: an earlier write failed; what was acknowledged is safe: open it again",
                   live->store->path);
}

static sl_status fail_written_over(const sl_writable *live) {
    return sl_fail(SL_EBUSY,
                   "%s: was written over while it was open to be written; nothing more is written: close it, restore a "
                   "copy, and make the change anew",
                   live->store->path);
}

sl_status sl_writable_check_owner(const sl_writable *live) {
    struct stat info;
    if (live->owner == (int)getpid())
        return fstat(live->fd, &info) == 0 && (uint64_t)info.st_size < live->size ? fail_written_over(live) : SL_OK;
    return sl_fail(SL_EBUSY,
                   "%s: process %d opened it to be written, and this one was forked from that: only that one "
                   "may write; open the file again here once it is closed there",
                   live->store->path, live->owner);
}

/* What is written to a file without a name nobody finds, and its log may be another file's by now. */
static sl_status check_name_of(const sl_writable *live) {
    if (sl_store_has_name(live->store)) return SL_OK;
    return sl_fail(SL_EBUSY,
                   "%s: was renamed, removed or replaced while it was open to be written; what was synced is in "
                   "that file, and nothing more is written: open the index again and make the change anew",
                   live->store->path);
}

/* Nobody but its writer changes the superblock: a copy over the file brings another, and what goes on from the old one
 * would be written into the new. */
static sl_status check_super(const sl_writable *live) {
    sl_superblock now;
    SL_TRY(sl_read_at(live->fd, live->store->path, &now, sizeof now, super_at(live->section, &live->super)));
    return memcmp(&now, &live->super, sizeof now) == 0 ? SL_OK : fail_written_over(live);
}

static sl_status check_writer(const sl_writable *live) {
    SL_TRY(sl_writable_check_owner(live));
    return check_super(live);
}

/* The file needs no log from here on, whatever its name is by now. A log without a group is of no use to anyone then.
 */
static int has_done(sl_writable *live) {
    if (!live->ready || live->direct || live->redo->end || check_failed(live) != SL_OK || check_writer(live) != SL_OK)
        return 0;
    live->super.logged = 0;
    /* Both, so that either is enough. */
    for (size_t i = 0; i < SL_SUPERBLOCKS; i++)
        if (write_super(&live->ops, live->fd, live->store->path, live->section, &live->super) != SL_OK) return 0;
    return 1;
}

void sl_writable_close(sl_writable *live) {
    if (!live) return;
    sl_redo_close(live->redo, has_done(live));
    /* A child that was forked meanwhile has the lock too, and would keep it. */
    if (live->fd >= 0 && live->owner == (int)getpid()) {
        (void)lock_byte(live->fd, F_UNLCK, SL_LIVE_WRITER);
        (void)lock_byte(live->fd, F_UNLCK, SL_LIVE_DIRECT);
        (void)flock(live->fd, LOCK_UN);
    }
    if (live->fd >= 0) (void)live->ops.close(live->ops.ctx, live->fd);
    sl_dirty_free(&live->dirty);
    sl_dirty_free(&live->renewed);
    sl_page_updater_free(live->updater);
    sl_mem_free(&live->allocator, live->updater, sizeof *live->updater);
    sl_mem_free(&live->allocator, live->allocated, pieces_bytes(live->size));
    sl_mem_free(&live->allocator, live, sizeof *live);
}

/* A reader that replays what the last writer left is done in a moment and is waited for. Where it ends between the two
 * looks, the lock is free. */
static sl_status lock_for_writing(sl_writable *live) {
    sl_status status;
    int healed = 1;
    for (int i = 0; (status = sl_lock_file(live->fd, LOCK_EX, live->store->path)) == SL_EBUSY && healed; i++) {
        healed = i < HEALER_PAUSES && byte_is_locked(live->fd, SL_LIVE_HEALER);
        if (healed) nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    /* Readers look at it. A file system without such locks has readers that leave dead writers to who opens next. */
    if (status == SL_OK) (void)lock_byte(live->fd, F_WRLCK, SL_LIVE_WRITER);
    return status;
}

/* With operations of the caller's own, as if it were persistent memory. */
static sl_status map_directly(sl_store *store, sl_writable *live) {
    void *base;
    sl_status status;
    if (store->medium->place != SL_PLACE_PMEM) return SL_OK;
    if (live->ops.flush == sl_pmem_flush) {
        status = sl_pmem_map_direct(live->store->resolved, live->size, &base);
        if (status == SL_EUNSUPPORTED) return SL_OK;
        SL_TRY(status);
    } else {
        base = mmap(NULL, (size_t)live->size, PROT_READ | PROT_WRITE, MAP_SHARED, live->fd, 0);
        if (base == MAP_FAILED) return sl_fail_errno("cannot map", live->store->path);
    }
    store->medium->unmap((void *)(uintptr_t)store->base, store->size);
    store->base = base;
    live->direct = 1;
    return SL_OK;
}

/* What is written without a log cannot be copied meanwhile. */
static sl_status keep_copies_off(sl_writable *live) {
    if (lock_byte(live->fd, F_WRLCK, SL_LIVE_DIRECT) == 0 || !is_taken()) return SL_OK;
    return sl_fail(SL_EBUSY, "%s: a snapshot of it is being taken; let it finish", live->store->path);
}

/* What is written directly is seen before its page's sum could be: the superblock says so first. */
static sl_status prepare_sums(const sl_store *store, sl_writable *live) {
    sl_page_sums sums;
    void *block;
    SL_TRY(sl_page_sums_find(store, &sums));
    if (sums.words && live->direct) live->super.unsummed = 1;
    if (!sums.words || live->super.unsummed) return SL_OK;
    SL_TRY(sl_mem_alloc(&live->allocator, sizeof *live->updater, &block));
    live->updater = block;
    SL_TRY(sl_page_updater_init(live->updater, &sums, live->fd, live->store->path, live->size));
    return sl_dirty_init(&live->renewed, live->size);
}

/* The log is there before the file says that it has one. */
static sl_status take_over(sl_store *store, sl_writable *live) {
    const sl_redo_owner owner = owner_of(store, &live->super);
    if (!live->direct) SL_TRY(sl_redo_open(&owner, live->fd, &live->allocator, &live->ops, &live->redo));
    return recover(store, &live->ops, live->fd, !live->direct, &live->super);
}

static sl_status prepare_log(sl_store *store, sl_writable *live) {
    sl_redo_give_access(live->redo, live->fd);
    SL_TRY(sl_redo_reset(live->redo, live->super.epoch));
    live->ready = 1;
    SL_TRY(sl_dirty_init(&live->dirty, live->size));
    return map_privately(store, live->fd);
}

sl_status sl_writable_open(sl_store *store, const sl_allocator *allocator, const sl_file_ops *given, uint64_t log_bytes,
                           sl_writable **out) {
    *out = NULL;
    void *block;
    SL_TRY(sl_mem_alloc(allocator, sizeof(sl_writable), &block));
    sl_writable *live = block;
    *live = (sl_writable){.allocator = *allocator,
                          .ops = sl_file_ops_of(given),
                          .fd = -1,
                          .size = store->size,
                          .section = sl_store_section(store, SL_SECTION_LIVE)->offset,
                          .owner = (int)getpid(),
                          .store = store,
                          .log_bytes = log_bytes ? log_bytes : SL_LIVE_LOG_BYTES};
    sl_status status;
    SL_TRY_GOTO(open_same(store, &live->ops, &live->fd), fail);
    SL_TRY_GOTO(lock_for_writing(live), fail);
    SL_TRY_GOTO(check_name(store), fail);
    SL_TRY_GOTO(map_directly(store, live), fail);
    if (live->direct) SL_TRY_GOTO(keep_copies_off(live), fail);
    SL_TRY_GOTO(sl_writable_super(store, &live->super), fail);
    SL_TRY_GOTO(prepare_sums(store, live), fail);
    SL_TRY_GOTO(take_over(store, live), fail);
    SL_TRY_GOTO(sl_mem_alloc(allocator, pieces_bytes(live->size), &block), fail);
    live->allocated = block;
    if (!live->direct) SL_TRY_GOTO(prepare_log(store, live), fail);
    live->base = (uint8_t *)(uintptr_t)store->base;
    store->writer = live->fd;
    *out = live;
    return SL_OK;
fail:
    sl_writable_close(live);
    return status;
}

/* ---------------------------------------------------------------------------------------------------------------
 * Commits
 * ------------------------------------------------------------------------------------------------------------- */

typedef sl_status (*run_fn)(sl_writable *live, uint64_t offset, uint64_t size);

/* Each run of touched lines of [from, to), those with less than `gap` bytes between them as one. */
static sl_status for_each_run(sl_writable *live, uint64_t from, uint64_t to, uint64_t gap, run_fn run) {
    uint64_t begin = from, end = from, offset = from, size;
    while (offset < to && (size = sl_dirty_next(&live->dirty, &offset, RUN)) != 0 && offset < to) {
        if (size > to - offset) size = to - offset;
        if (end > begin && (offset - end >= gap || offset + size - begin > RUN)) {
            SL_TRY(run(live, begin, end - begin));
            end = begin;
        }
        if (end == begin) begin = offset;
        end = offset += size;
    }
    return end > begin ? run(live, begin, end - begin) : SL_OK;
}

/* Blocks for what will be written, so that a full device is found before the log says that it was. A file system that
 * cannot set blocks aside says so when it is written to. */
static sl_status set_aside(sl_writable *live, uint64_t offset, uint64_t size) {
    for (uint64_t piece = offset / PIECE; piece <= (offset + size - 1) / PIECE; piece++) {
        if (live->allocated[piece / 64] >> (piece % 64) & 1) continue;
        uint64_t at = piece * PIECE, length = live->size - at < PIECE ? live->size - at : PIECE;
        if (live->ops.allocate(live->ops.ctx, live->fd, at, length) != 0 && errno != EOPNOTSUPP && errno != EINVAL)
            return sl_fail_errno("cannot set space aside in", live->store->path);
        live->allocated[piece / 64] |= (uint64_t)1 << (piece % 64);
    }
    return SL_OK;
}

sl_status sl_writable_reserve(sl_writable *live, const void *at, size_t size) {
    return size ? set_aside(live, (uint64_t)((const uint8_t *)at - live->base), size) : SL_OK;
}

void sl_writable_renew(sl_writable *live, const void *at, size_t size) {
    sl_writable_touch(live, at, size);
    if (!live->updater || !size) return;
    uint64_t first = (uint64_t)((const uint8_t *)at - live->base) / SL_SUMMED_PAGE;
    uint64_t last = ((uint64_t)((const uint8_t *)at - live->base) + size - 1) / SL_SUMMED_PAGE;
    for (uint64_t page = first; page <= last; page++)
        sl_dirty_mark(&live->renewed, page * SL_SUMMED_PAGE, 1);
}

static int is_renewed(const sl_writable *live, uint64_t page) {
    uint64_t at = page * SL_SUMMED_PAGE;
    return sl_dirty_next(&live->renewed, &at, SL_DIRTY_LINE) != 0 && at == page * SL_SUMMED_PAGE;
}

/* The sum of the page that holds bytes [offset, offset + size), which were touched. */
static uint32_t sum_page(sl_writable *live, uint64_t offset, uint64_t size, uint64_t *word) {
    uint64_t page = offset / SL_SUMMED_PAGE;
    uint32_t sum;
    sl_page_updater_change(live->updater, offset, live->base + offset, (size_t)size, word, &sum);
    if (live->renewed.marked && is_renewed(live, page))
        return sl_page_sum(0, live->base + page * SL_SUMMED_PAGE, SL_SUMMED_PAGE);
    return sum;
}

/* Into the mapping, behind all that is looked at. */
static sl_status sum_run(sl_writable *live, uint64_t offset, uint64_t size) {
    for (uint64_t some, word; size; offset += some, size -= some) {
        uint64_t left = SL_SUMMED_PAGE - offset % SL_SUMMED_PAGE;
        some = size < left ? size : left;
        SL_TRY(set_aside(live, sl_page_sum_at(&live->updater->sums, offset), sizeof(uint32_t)));
        uint32_t sum = sum_page(live, offset, some, &word);
        uint32_t *to = (uint32_t *)(void *)(live->base + live->updater->sums.words) + word;
        if (*to == sum) continue;
        *to = sum;
        sl_writable_touch(live, to, sizeof *to);
    }
    return SL_OK;
}

static sl_status update_sums(sl_writable *live) {
    if (!live->updater) return SL_OK;
    const sl_page_sums *sums = &live->updater->sums;
    sl_page_updater_begin(live->updater);
    SL_TRY(for_each_run(live, 0, sums->words, SL_SUMMED_PAGE, sum_run));
    return for_each_run(live, sums->head, sums->head + SL_LIVE_PAGE, SL_SUMMED_PAGE, sum_run);
}

static sl_status log_run(sl_writable *live, uint64_t offset, uint64_t size) {
    return sl_redo_put(live->redo, offset, live->base + offset, size);
}

static sl_status write_run(sl_writable *live, uint64_t offset, uint64_t size) {
    return sl_write_at(&live->ops, live->fd, live->store->path, live->base + offset, (size_t)size, offset);
}

/* A sum over the runs: what the group's records will take. */
static uint64_t payload_of(sl_writable *live) {
    uint64_t payload = 0, offset = 0, size;
    while ((size = sl_dirty_next(&live->dirty, &offset, RUN)) != 0) {
        if (size > live->size - offset) size = live->size - offset;
        payload += sizeof(sl_redo_record) + size;
        offset += size;
    }
    return payload;
}

/* With what is committed: it is in the log and in the page's sum. */
static void stamp(sl_writable *live) {
    sl_writable_stamp *to = stamp_in(live->base, live->section);
    *to = (sl_writable_stamp){.epoch = live->redo->epoch, .groups = live->redo->groups + 1};
    memcpy(to->identity, live->super.identity, sizeof to->identity);
    sl_writable_touch(live, to, sizeof *to);
}

static sl_status write_log(sl_writable *live) {
    SL_TRY(sl_redo_begin(live->redo, payload_of(live)));
    SL_TRY(for_each_run(live, 0, live->size, 0, log_run));
    sl_status status = sl_redo_commit(live->redo);
    if (!live->redo->unsure) return status;
    return sl_fail_in(status, "%s: whether the change is in shows when the file is opened again", live->store->path);
}

/* The head page last: whoever reads it then finds in place what it speaks of. Between lines that were touched the
 * mapping holds what the file does, and writing that again costs less than another call. */
static sl_status write_through(sl_writable *live) {
    uint64_t head = live->section + SL_LIVE_HEAD, behind = head + SL_LIVE_PAGE;
    SL_TRY(for_each_run(live, 0, head, GAP, write_run));
    SL_TRY(for_each_run(live, behind, live->size, GAP, write_run));
    return for_each_run(live, head, behind, GAP, write_run);
}

/* The pages that are this process's own say what the file says, where nothing is touched. */
static void give_back_pages(sl_writable *live) {
    (void)madvise(live->base, (size_t)live->size, MADV_DONTNEED);
    live->own_pages = 0;
}

/* Another file has the name by now: the log under it may be that one's. */
static int is_replaced(const sl_writable *live) {
    struct stat info;
    return !sl_store_has_name(live->store) && lstat(live->store->resolved, &info) == 0;
}

static sl_status checkpoint(sl_writable *live) {
    live->failed = 1; /* until all of it is done */
    SL_TRY(sl_sync_data(&live->ops, live->fd, live->store->path));
    if (sl_store_has_name(live->store)) SL_TRY(sl_redo_remake(live->redo, live->fd));
    live->super.epoch++;
    SL_TRY(write_super(&live->ops, live->fd, live->store->path, live->section, &live->super));
    if (is_replaced(live))
        sl_redo_leave(live->redo);
    else
        SL_TRY(sl_redo_reset(live->redo, live->super.epoch));
    live->failed = 0;
    return SL_OK;
}

sl_status sl_writable_commit(sl_writable *live) {
    SL_TRY(check_failed(live));
    SL_TRY(check_writer(live));
    SL_TRY(check_name_of(live));
    sl_writable_fence(live);
    if (live->direct) return SL_OK;
    if (!live->dirty.marked) return SL_OK;
    /* Of what a log without its name says, the file must be sure before another is begun. */
    if (!sl_redo_is_there(live->redo)) SL_TRY(checkpoint(live));
    stamp(live);
    SL_TRY(for_each_run(live, 0, live->size, 0, set_aside));
    SL_TRY(update_sums(live));
    SL_TRY(write_log(live));
    sl_status status = write_through(live);
    if (status != SL_OK) {
        live->failed = 1;
        return sl_fail_in(status, "%s: the change is in the log, and is made when the file is opened again",
                          live->store->path);
    }
    live->own_pages += live->dirty.marked;
    sl_dirty_clear(&live->dirty);
    if (live->updater) sl_dirty_clear(&live->renewed);
    if (live->own_pages > SL_LIVE_OWN_PAGES) give_back_pages(live);
    return live->redo->end > live->log_bytes ? sl_writable_checkpoint(live) : SL_OK;
}

sl_status sl_writable_checkpoint(sl_writable *live) {
    SL_TRY(check_failed(live));
    SL_TRY(check_writer(live));
    if (live->direct || live->redo->end == 0) return SL_OK;
    /* A snapshot needs the log as long as it is being taken. */
    if (lock_byte(live->fd, F_WRLCK, SL_LIVE_CHECKPOINT) != 0 && is_taken()) return SL_OK;
    sl_status status = checkpoint(live);
    if (status == SL_OK) give_back_pages(live);
    (void)lock_byte(live->fd, F_UNLCK, SL_LIVE_CHECKPOINT);
    return status;
}
