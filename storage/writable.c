#define _GNU_SOURCE
#include "storage/writable.h"

#include "base/clock.h"
#include "storage/locks.h"
#include "storage/pmem.h"
#include "storage/recover.h"

#include <errno.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Milliseconds that a writer waits for a reader to replay the log. It doesn't wait longer, because the reader may be
 * stopped. */
#define HEALER_PAUSES 2000

/* ---------------------------------------------------------------------------------------------------------------
 * Whether the writer may go on
 * ------------------------------------------------------------------------------------------------------------- */

sl_status sl_writable_check_failed(const sl_writable *file) {
    if (!file->failed && (file->direct || !file->redo->unsure)) return SL_OK;
    return sl_fail(SL_EIO, "%s: an earlier write failed; what was acknowledged is safe: open it again",
                   file->store->path);
}

static sl_status fail_written_over(const sl_writable *file) {
    return sl_fail(SL_EBUSY,
                   "%s: was written over while it was open to be written; nothing more is written: close it, restore a "
                   "copy, and make the change anew",
                   file->store->path);
}

sl_status sl_writable_check_owner(const sl_writable *file) {
    struct stat info;
    if (file->owner == (int)getpid())
        return fstat(file->fd, &info) == 0 && (uint64_t)info.st_size < file->size ? fail_written_over(file) : SL_OK;
    return sl_fail(SL_EBUSY,
                   "%s: process %d opened it to be written, and this one was forked from that: only that one "
                   "may write, save or check it; open the file again here, to write it once it is closed there",
                   file->store->path, file->owner);
}

/* Only the writer changes the superblock. If it's another one, a file was copied over this one, and further changes of
 * the old file would damage the new one. */
static sl_status check_super(const sl_writable *file) {
    sl_superblock now;
    SL_TRY(sl_read_at(file->fd, file->store->path, &now, sizeof now, sl_superblock_at(file->section, &file->super)));
    return memcmp(&now, &file->super, sizeof now) == 0 ? SL_OK : fail_written_over(file);
}

sl_status sl_writable_check(const sl_writable *file) {
    SL_TRY(sl_writable_check_failed(file));
    SL_TRY(sl_writable_check_owner(file));
    return check_super(file);
}

static size_t pieces_bytes(uint64_t size) {
    return (size_t)(size / SL_WRITABLE_PIECE / 64 + 1) * sizeof(uint64_t);
}

/* ---------------------------------------------------------------------------------------------------------------
 * Closing
 * ------------------------------------------------------------------------------------------------------------- */

/* Marks the file as one that needs no log: nobody needs a log without a group. Returns whether the mark was written. */
static int has_done(sl_writable *file) {
    if (!file->ready || file->direct || file->redo->end || sl_writable_check(file) != SL_OK) return 0;
    file->super.logged = 0;
    /* In both superblocks, so that either is enough. */
    for (size_t i = 0; i < SL_SUPERBLOCKS; i++)
        if (sl_superblock_write(&file->ops, file->fd, file->store->path, file->section, &file->super) != SL_OK)
            return 0;
    return 1;
}

void sl_writable_close(sl_writable *file) {
    if (!file) return;
    sl_redo_close(file->redo, has_done(file));
    /* A child that was forked meanwhile shares the locks and would keep them. */
    if (file->fd >= 0 && file->owner == (int)getpid()) {
        (void)sl_lock_byte(file->fd, F_UNLCK, SL_LIVE_WRITER);
        (void)sl_lock_byte(file->fd, F_UNLCK, SL_LIVE_DIRECT);
        (void)flock(file->fd, LOCK_UN);
    }
    if (file->fd >= 0) (void)file->ops.close(file->ops.ctx, file->fd);
    sl_dirty_free(&file->dirty);
    sl_dirty_free(&file->renewed);
    sl_page_updater_free(file->updater);
    SL_FREE(&file->allocator, file->updater);
    sl_mem_free(&file->allocator, file->allocated, pieces_bytes(file->size));
    SL_FREE(&file->allocator, file);
}

/* ---------------------------------------------------------------------------------------------------------------
 * Opening
 * ------------------------------------------------------------------------------------------------------------- */

/* Takes the lock. A reader may be replaying what the last writer left, which takes a moment: waits for it. If it ends
 * between the two looks, the lock is free. */
static sl_status lock_for_writing(sl_writable *file) {
    sl_status status;
    int healed = 1;
    for (int i = 0; (status = sl_lock_file(file->fd, LOCK_EX, file->store->path)) == SL_EBUSY && healed; i++) {
        healed = i < HEALER_PAUSES && sl_byte_is_locked(file->fd, SL_LIVE_HEALER);
        if (healed) sl_pause_ns(1000000);
    }
    /* Readers look at this byte. On a file system without such locks, they leave a dead writer's log to the next
     * opener. */
    if (status == SL_OK) (void)sl_lock_byte(file->fd, F_WRLCK, SL_LIVE_WRITER);
    return status;
}

/* A caller's operations stand in for persistent memory. */
static sl_status map_directly(sl_store *store, sl_writable *file) {
    void *base;
    sl_status status;
    if (store->medium->place != SL_PLACE_PMEM) return SL_OK;
    if (file->ops.flush == sl_pmem_flush) {
        status = sl_pmem_map_direct(file->store->resolved, file->size, &base);
        if (status == SL_EUNSUPPORTED) return SL_OK;
        SL_TRY(status);
    } else {
        base = mmap(NULL, (size_t)file->size, PROT_READ | PROT_WRITE, MAP_SHARED, file->fd, 0);
        if (base == MAP_FAILED) return sl_fail_errno("cannot map", file->store->path);
    }
    store->medium->unmap(store->base, store->size);
    store->base = base;
    file->direct = 1;
    return SL_OK;
}

/* A file that is written without a log can't be copied meanwhile. */
static sl_status keep_copies_off(sl_writable *file) {
    if (sl_lock_byte(file->fd, F_WRLCK, SL_LIVE_DIRECT) == 0 || !sl_lock_is_taken()) return SL_OK;
    return sl_fail(SL_EBUSY, "%s: a snapshot of it is being taken; let it finish", file->store->path);
}

/* A direct store is visible before its page's checksum could be. So the superblock first says that checksums are out of
 * force. */
static sl_status prepare_sums(const sl_store *store, sl_writable *file) {
    sl_page_sums sums;
    void *block;
    SL_TRY(sl_page_sums_find(store, &sums));
    if (sums.words && file->direct) file->super.unsummed = 1;
    if (!sums.words || file->super.unsummed) return SL_OK;
    SL_TRY(sl_mem_alloc(&file->allocator, sizeof *file->updater, &block));
    file->updater = block;
    SL_TRY(sl_page_updater_init(file->updater, &sums, file->fd, file->store->path, file->size));
    return sl_dirty_init(&file->renewed, file->size);
}

/* Makes the log before the file says that it has one. */
static sl_status take_over(sl_store *store, sl_writable *file) {
    const sl_redo_owner owner = sl_recover_owner(store, &file->super);
    if (!file->direct) SL_TRY(sl_redo_open(&owner, file->fd, &file->allocator, &file->ops, &file->redo));
    return sl_recover_file(store, &file->ops, file->fd, !file->direct, &file->super);
}

static sl_status prepare_log(sl_store *store, sl_writable *file) {
    sl_redo_give_access(file->redo, file->fd);
    SL_TRY(sl_redo_reset(file->redo, file->super.epoch));
    file->ready = 1;
    SL_TRY(sl_dirty_init(&file->dirty, file->size));
    return sl_store_map_privately(store, file->fd);
}

sl_status sl_writable_open(sl_store *store, const sl_allocator *allocator, const sl_file_ops *given, uint64_t log_bytes,
                           sl_writable **out) {
    *out = NULL;
    void *block;
    SL_TRY(sl_mem_alloc(allocator, sizeof(sl_writable), &block));
    sl_writable *file = block;
    *file = (sl_writable){.allocator = *allocator,
                          .ops = sl_file_ops_of(given),
                          .fd = -1,
                          .size = store->size,
                          .section = sl_store_section(store, SL_SECTION_LIVE)->offset,
                          .owner = (int)getpid(),
                          .store = store,
                          .log_bytes = log_bytes ? log_bytes : SL_LIVE_LOG_BYTES};
    sl_status status;
    SL_TRY_GOTO(sl_store_open_to_write(store, &file->ops, &file->fd), fail);
    SL_TRY_GOTO(lock_for_writing(file), fail);
    SL_TRY_GOTO(sl_store_check_name(store), fail);
    SL_TRY_GOTO(map_directly(store, file), fail);
    if (file->direct) SL_TRY_GOTO(keep_copies_off(file), fail);
    SL_TRY_GOTO(sl_writable_super(store, &file->super), fail);
    SL_TRY_GOTO(prepare_sums(store, file), fail);
    SL_TRY_GOTO(take_over(store, file), fail);
    SL_TRY_GOTO(sl_mem_alloc(allocator, pieces_bytes(file->size), &block), fail);
    file->allocated = block;
    if (!file->direct) SL_TRY_GOTO(prepare_log(store, file), fail);
    file->base = store->base;
    store->writer = file->fd;
    *out = file;
    return SL_OK;
fail:
    sl_writable_close(file);
    return status;
}
