/*
 * The writer of a file that is written in place while others read it, and that survives a crash at any point.
 *
 * The writer maps the file privately, so that its changes stay its own until a commit. A commit writes the changed
 * lines to the redo log and syncs the log. Only then does it write them to the file, and other processes see them. The
 * file therefore holds nothing that the log does not. Replaying the log after a crash gives the last commit's state.
 * From time to time a checkpoint syncs the file and empties the log.
 *
 * In persistent memory the mapping is the file itself. sl_writable_touch flushes, and sl_writable_fence makes durable.
 * Between two fences stores reach the memory in any order, each aligned word of 8 bytes whole. The user must therefore
 * write so that the file is sound after every store.
 *
 * The user tells by sl_writable_touch which bytes it has written to.
 */
#ifndef SL_STORAGE_WRITABLE_H
#define SL_STORAGE_WRITABLE_H

#include "storage/dirty.h"
#include "storage/page_sums.h"
#include "storage/superblock.h"

#define SL_LIVE_OWN_PAGES ((uint64_t)1 << 16)   /* a commit gives back the writer's own pages if there are more */
#define SL_LIVE_LOG_BYTES ((uint64_t)256 << 20) /* a commit empties a log longer than that */
#define SL_WRITABLE_PIECE ((uint64_t)1 << 20)   /* blocks are set aside in pieces of so many bytes */

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
    sl_page_updater *updater; /* of the pages' sums; NULL: the file has none in force */
    sl_dirty renewed;         /* pages that the next commit sums as a whole: the first line of each */
    uint64_t *allocated;      /* a bit for each piece of the file that has blocks of its own for sure */
    uint64_t log_bytes;       /* a commit empties a log longer than that */
    int direct;               /* in persistent memory, written to as it is: no log, and touched bytes are flushed */
    uint64_t own_pages;       /* at most so many of the mapping's have become this process's own */
    int failed;               /* a sync has failed: the device's content is unknown until the file is opened anew */
    int ready;                /* it was opened whole, and its log is its own */
    int owner;                /* the process that opened it: a child that was forked from it may not write */
    const sl_store *store;    /* of the file; it outlives this */
} sl_writable;

/* Takes the store's file for writing, and replays a log that a crash left. At place PMEM a file in persistent memory is
 * written directly. A mapping that can be written to replaces the store's; pointers into the old one are void.
 * Parameters: log_bytes: 0: SL_LIVE_LOG_BYTES. Errors: SL_EBUSY: another writer has the file. */
sl_status sl_writable_open(sl_store *store, const sl_allocator *allocator, const sl_file_ops *ops, uint64_t log_bytes,
                           sl_writable **out);

/* Tells whether this process may write. A forked child's mapping has bytes of before the fork beside bytes of after it,
 * and is no state of the index to save or check. Errors: SL_EBUSY: the process was forked from the one that opened the
 * file. Or a shorter file was copied over the file, so that the mapping has lost its end. */
sl_status sl_writable_check_owner(const sl_writable *file);

/* Tells whether the writer may go on: no sync has failed, the process may write, and nobody has written over the file.
 */
sl_status sl_writable_check(const sl_writable *file);

/* Makes durable and visible what was touched. After SL_ENOSPC or SL_EIO from setting blocks aside or writing the log,
 * nothing has changed and the caller may try again. After a failed sync, or if the log was written but the file could
 * not be, every further commit fails: open the file anew.
 * Errors: SL_EBUSY, and nothing is written: the process was forked, the file has lost its name, or it was written over.
 * The log and other processes go by the name. */
sl_status sl_writable_commit(sl_writable *file);

/* Syncs the file and empties the log; does nothing while a snapshot needs the log. Changes that were touched and not
 * committed are left out, and are gone from the mapping. */
sl_status sl_writable_checkpoint(sl_writable *file);

/* Lets go of the file; changes that were not committed are lost. Takes NULL. */
void sl_writable_close(sl_writable *file);

/* Tells that [at, at + size) of the mapping was written to. Threads: any number. */
static inline void sl_writable_touch(sl_writable *file, const void *at, size_t size) {
    uint64_t offset = (uint64_t)((const uint8_t *)at - file->base);
    if (!file->direct)
        sl_dirty_mark(&file->dirty, offset, size);
    else if (size)
        file->ops.flush(file->ops.ctx, at, size, offset);
}

/* Tells the same, and that the pages with these bytes are right as they are: the next commit sums them as a whole. To
 * be called by a repair of damaged bytes. */
void sl_writable_renew(sl_writable *file, const void *at, size_t size);

/* Sets blocks aside for [at, at + size) of the mapping. To be called before the first store there: in persistent
 * memory, and in a file system in memory, a store that finds no room cannot report it. */
sl_status sl_writable_reserve(sl_writable *file, const void *at, size_t size);

/* In persistent memory: makes durable what this thread has touched, before anything that it writes afterwards. */
static inline void sl_writable_fence(sl_writable *file) {
    if (file->direct) file->ops.drain(file->ops.ctx);
}

#endif
