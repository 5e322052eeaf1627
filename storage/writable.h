/* The writer of a file that others read meanwhile, and that survives a crash at any point.
 *
 * The writer maps the file privately, so its changes stay its own until a commit. A commit writes the changed lines to
 * the redo log and syncs the log. Only then does it write them to the file, where other processes see them. So the file
 * holds nothing that the log doesn't, and replaying the log after a crash gives the last commit's state. Now and then a
 * checkpoint syncs the file and empties the log.
 *
 * In persistent memory the mapping is the file itself: sl_writable_touch flushes, and sl_writable_fence makes durable.
 * Between two fences stores reach the memory in any order, but each aligned word of 8 bytes as a whole. So after every
 * store the file must be sound.
 *
 * The user reports written bytes by sl_writable_touch. */
#ifndef SL_STORAGE_WRITABLE_H
#define SL_STORAGE_WRITABLE_H

#include "storage/dirty.h"
#include "storage/page_sums.h"
#include "storage/superblock.h"

#define SL_LIVE_OWN_PAGES ((uint64_t)1 << 16)   /* beyond this number a commit drops the writer's private pages */
#define SL_LIVE_LOG_BYTES ((uint64_t)256 << 20) /* a commit empties a log longer than this */
#define SL_WRITABLE_PIECE ((uint64_t)1 << 20)   /* blocks are reserved in pieces of this many bytes */

typedef struct sl_writable {
    sl_allocator allocator;
    sl_file_ops ops;
    int fd; /* holds the locks too */
    uint8_t *base;
    uint64_t size;
    uint64_t section; /* where SL_SECTION_LIVE begins */
    sl_dirty dirty;
    sl_redo *redo;
    sl_superblock super;
    sl_page_updater *updater; /* of the page checksums; NULL: none are in force */
    sl_dirty renewed;         /* pages that the next commit sums as a whole: the first line of each */
    uint64_t *allocated;      /* a bit a piece of the file: it surely has blocks of its own */
    uint64_t log_bytes;       /* a commit empties a log longer than this */
    int direct;               /* in persistent memory, written directly: no log, and touched bytes are flushed */
    uint64_t own_pages;       /* upper bound of the mapping's pages that have become this process's own */
    int failed;               /* a sync has failed: nobody knows what the device holds until the file is opened anew */
    int ready;                /* it was opened whole, and its log is its own */
    int owner;                /* the process that opened it; a child forked from it may not write */
    const sl_store *store;    /* of the file; it outlives this */
} sl_writable;

/* Takes the store's file for writing, and replays a log that a crash left. At PLACE_PMEM a file in persistent memory is
 * written directly. A writable mapping replaces the store's, so pointers into the old one are void.
 * Parameters: log_bytes: 0: SL_LIVE_LOG_BYTES. Errors: SL_EBUSY: another writer has the file. */
sl_status sl_writable_open(sl_store *store, const sl_allocator *allocator, const sl_file_ops *ops, uint64_t log_bytes,
                           sl_writable **out);

/* Checks that this process may write. In a forked child the mapping mixes bytes from before the fork and after it, so
 * it's no state to save or check. Errors: SL_EBUSY: the process was forked from the one that opened the file; or a
 * shorter file was copied over the file, and the mapping has lost its end. */
sl_status sl_writable_check_owner(const sl_writable *file);

/* Checks that no sync has failed: a later one doesn't bring back what that has lost. Threads: the writer's. Errors:
 * SL_EIO. */
sl_status sl_writable_check_failed(const sl_writable *file);
/* Checks that the writer may go on: no sync has failed, the process may write, and nobody has written over the file. */
sl_status sl_writable_check(const sl_writable *file);

/* Makes touched bytes durable and visible. If blocks can't be reserved or the log can't be written (SL_ENOSPC, SL_EIO),
 * nothing has changed and the caller may try again. If a sync fails, or the file can't be written after the log, every
 * further commit fails: open the file anew.
 * Errors: SL_EBUSY, with nothing written: the process was forked, or the file has lost its name or was written over.
 * The log and other processes go by the name. */
sl_status sl_writable_commit(sl_writable *file);

/* Syncs the file and empties the log. Does nothing while a snapshot needs the log. Changes that were touched but not
 * committed are left out, and are gone from the mapping. */
sl_status sl_writable_checkpoint(sl_writable *file);

/* Gives the blocks of pages back that are all zeros in the file, among those that lie wholly in [at, at + size) of the
 * mapping. Does nothing where the file system can't, and until a checkpoint has emptied the log: replaying
 * a log needs no blocks that may be missing. */
void sl_writable_punch(sl_writable *file, const void *at, size_t size);

/* Closes the writer; uncommitted changes are lost. Takes NULL. */
void sl_writable_close(sl_writable *file);

/* Notes that [at, at + size) of the mapping was written. Threads: any number. */
static inline void sl_writable_touch(sl_writable *file, const void *at, size_t size) {
    uint64_t offset = (uint64_t)((const uint8_t *)at - file->base);
    if (!file->direct)
        sl_dirty_mark(&file->dirty, offset, size);
    else if (size)
        file->ops.flush(file->ops.ctx, at, size, offset);
}

/* The same after a repair of damaged bytes: the pages are right as they are, and the next commit sums them as a whole.
 */
void sl_writable_renew(sl_writable *file, const void *at, size_t size);

/* Reserves blocks for [at, at + size) of the mapping. Call it before the first store there: in persistent memory, and
 * on a file system in memory, a store that finds no room can't report it. */
sl_status sl_writable_reserve(sl_writable *file, const void *at, size_t size);

/* In persistent memory, makes this thread's touched bytes durable before anything it writes later. */
static inline void sl_writable_fence(sl_writable *file) {
    if (file->direct) file->ops.drain(file->ops.ctx);
}

#endif
