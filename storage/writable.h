/*
 * A file that is written in place while others read it, and that survives a crash at any point.
 *
 * The writer maps the file privately: what it changes stays its own until a commit. A commit writes the changed lines
 * to the redo log and syncs it; only then are they written to the file itself, where processes that have it mapped see
 * them. So the file never holds what the log does not, or has not been synced with, and a crash leaves it as the last
 * commit left it once the log is replayed. From time to time a checkpoint syncs the file and empties the log.
 *
 * In persistent memory there is a shorter way, which takes its user's care: the mapping is the file itself, what is
 * touched is flushed, and sl_writable_fence makes it durable. Stores reach the memory in any order between two fences,
 * each aligned word of 8 bytes whole: its user must write so that the file is sound after every one of them.
 *
 * Section SL_SECTION_LIVE holds two superblocks, each a page, written in turn, and the head page: its user's facts that
 * change. Its user says where it has written by sl_writable_touch.
 */
#ifndef SL_STORAGE_WRITABLE_H
#define SL_STORAGE_WRITABLE_H

#include "storage/dirty.h"
#include "storage/page_sums.h"
#include "storage/redo.h"
#include "storage/store.h"

#define SL_SUPERBLOCKS    2u
#define SL_LIVE_PAGE      4096u
#define SL_LIVE_HEAD      (SL_SUPERBLOCKS * SL_LIVE_PAGE) /* of the section: where the head page begins */
#define SL_LIVE_SIZE      (SL_LIVE_HEAD + SL_LIVE_PAGE)   /* of the section */
#define SL_LIVE_OWN_PAGES ((uint64_t)1 << 16)             /* more of its own pages are given back by the next commit */
#define SL_LIVE_LOG_BYTES ((uint64_t)256 << 20)           /* a log longer than that is emptied by the next commit */

/* No longer than a sector, which devices write whole or not at all. */
typedef struct sl_superblock {
    char magic[8];
    uint64_t sequence; /* the one of two with the larger is in force */
    uint8_t identity[SL_REDO_IDENTITY_SIZE];
    uint64_t epoch;      /* of the log that goes on from what the file holds */
    uint64_t recoveries; /* times that a log was replayed; by the last of them: */
    uint64_t recovered_groups, recovered_bytes;
    uint64_t unsummed; /* 1: the file was written directly, and its pages' sums are out of force for good */
    uint64_t logged;   /* 1: a writer has the file, or had it and died: the log may hold what the file does not */
    uint8_t reserved[428];
    uint32_t crc32c; /* of all before */
} sl_superblock;

/* Stands in the head page behind its user's words, in the same sector: how many groups of the log the file holds. A
 * commit writes it with the head page, last of all. It counts for the file and the epoch that it names. */
typedef struct sl_writable_stamp {
    uint8_t identity[SL_REDO_IDENTITY_SIZE];
    uint64_t epoch, groups;
} sl_writable_stamp;

#define SL_LIVE_HEAD_ROOM (512u - sizeof(sl_writable_stamp)) /* bytes of the head page that are its user's */

typedef struct sl_writable {
    sl_allocator allocator;
    sl_file_ops ops;
    int fd; /* holds the lock too */
    uint8_t *base;
    uint64_t size;
    uint64_t section; /* where SL_SECTION_LIVE begins */
    sl_dirty dirty;
    sl_redo *redo;
    sl_superblock super;
    sl_page_updater *updater; /* of the pages' sums; NULL: the file has none in force */
    sl_dirty renewed;         /* pages that are summed as a whole by the next commit: the first line of each */
    uint64_t *allocated;      /* a bit for each piece of the file that has blocks of its own for sure */
    uint64_t log_bytes;       /* emptied from there on */
    int direct;         /* in persistent memory, which is written to as it is: no log, and what is touched is flushed */
    uint64_t own_pages; /* at most so many of the mapping's have become this process's own */
    int failed;         /* a sync has failed: what the device holds is unknown until the file is opened anew */
    int ready;          /* it was opened whole, and its log is its own */
    int owner;          /* the process that opened it: a child that was forked from it may not write */
    const sl_store *store; /* of the file; it outlives this */
} sl_writable;

/* Bytes of the file that are locked for reading or writing (F_OFD_SETLK; nothing else in the file knows of it).
 *   CHECKPOINT  by a writer while it empties the log; by who copies the file and is to find the log as it was
 *   DIRECT      by a writer in persistent memory, who has no log, as long as it lives; by who copies
 *   WRITER      by every writer as long as it lives, so that readers can look for one without a lock of their own
 *   HEALER      by a reader while it replays what a writer has left; a writer that is opened then waits */
typedef enum sl_writable_lock {
    SL_LIVE_CHECKPOINT = 0,
    SL_LIVE_DIRECT = 1,
    SL_LIVE_WRITER = 2,
    SL_LIVE_HEALER = 3
} sl_writable_lock;

/* The superblocks of a new file, with an identity of its own and an empty log; `unsummed` as in sl_superblock. SL_EIO
 * where the system has no random numbers for it. */
sl_status sl_writable_superblocks(uint8_t pages[SL_LIVE_HEAD], uint64_t unsummed);

/* Superblocks and a head page of size bytes, for the section of a new file, `section` of SL_LIVE_SIZE bytes. Fails as
 * sl_writable_superblocks does. */
sl_status sl_writable_format(uint8_t *section, const void *head, size_t size);

/* Takes the store's file for writing: SL_EBUSY where another writer has it. A log that a crash left is replayed into
 * the file first. Of place PMEM, where the file lies in persistent memory, it is written directly. The store's mapping
 * is replaced by one that can be written to; pointers into the old one are void. log_bytes 0: SL_LIVE_LOG_BYTES. */
sl_status sl_writable_open(sl_store *store, const sl_allocator *allocator, const sl_file_ops *ops, uint64_t log_bytes,
                           sl_writable **out);

/* The same for one who only reads: where a crash left a log and no writer is at work, the log is replayed, into the
 * file or, where that may not be written to, into the mapping alone. */
sl_status sl_writable_heal(sl_store *store);

/* For a store that is read while another process may write its file: to be called before each search. Once a second it
 * looks whether the writer has died and left a log, and if so replays the log into the file, which all who have it
 * mapped then see. Nothing happens where the file may not be written to. Threads: any number; one of them does the
 * work, the others go on at once. */
void sl_writable_watch(sl_store *store);

/* For a copy of an open file: from here until it is closed no writer empties the log, so that the log says all that has
 * changed since it was emptied last, unless a writer is opened anew, which the epoch tells. Waits for a checkpoint.
 * SL_EBUSY where a writer in persistent memory is at work; SL_ECANCELED. */
sl_status sl_writable_pin(int fd, const char *path, sl_progress *progress);

/* Ends that and closes the file. */
void sl_writable_unpin(int fd);

/* What the log of the store's file holds. */
sl_status sl_writable_look(const sl_store *store, const sl_superblock *super, sl_redo_found *found);

/* Writes what the log of the store's file holds to fd, which is open on `path`. */
sl_status sl_writable_replay(const sl_store *store, const sl_superblock *super, const sl_file_ops *ops, int fd,
                             const char *path, sl_redo_found *found);

/* Whether the file of a store that nobody writes holds all that was acknowledged. SL_EBUSY where a writer came and died
 * after sl_writable_heal, so that its log has to be replayed; SL_ECORRUPT where the log is missing or damaged, as of
 * sl_redo_replay. */
sl_status sl_writable_check_log(const sl_store *store);

/* The same of a file that may be written meanwhile: SL_OK then, and where it has lost its name. */
sl_status sl_writable_check_settled(const sl_store *store);

/* The number of the superblock in force; 0 while the file has a writer. Who reads the file between two calls that
 * return the same number, and not 0, has read what nobody was writing. */
uint64_t sl_writable_quiet(const sl_store *store);

/* Keeps writers off the file until it is released: SL_EBUSY where one is at work. */
sl_status sl_writable_hold(const sl_store *store, int *held);
/* Takes -1. */
void sl_writable_release(int held);

/* Whether this process may write: SL_EBUSY in a child that was forked from the one that opened the file, and where a
 * shorter file was copied over it, whose end the mapping has lost. */
sl_status sl_writable_check_owner(const sl_writable *live);

/* Makes durable and visible what was touched. SL_EBUSY in a forked child, and where the file has lost its name, by
 * which its log goes and others find it, or was written over: nothing is written then. On SL_ENOSPC and SL_EIO from
 * setting blocks aside or writing the log nothing has changed and it may be tried again; once a sync has failed, or the
 * file could not be written though the log was, every further commit fails: open the file anew. */
sl_status sl_writable_commit(sl_writable *live);

/* Syncs the file and empties the log; nothing as long as a snapshot needs the log. What was touched and not committed
 * is left out of it, and gone from the mapping. */
sl_status sl_writable_checkpoint(sl_writable *live);

/* Lets go of the file; what was not committed is lost. Takes NULL. */
void sl_writable_close(sl_writable *live);

/* The store's head page. */
static inline const void *sl_writable_head(const sl_store *store) {
    const sl_file_section *section = sl_store_section(store, SL_SECTION_LIVE);
    return section ? store->base + section->offset + SL_LIVE_HEAD : NULL;
}

/* The superblock in force of a store whose section is of the right size; SL_ECORRUPT where neither is whole. */
sl_status sl_writable_super(const sl_store *store, sl_superblock *out);
/* Whether the other one is damaged. */
int sl_writable_is_doubtful(const sl_store *store);

/* Tells that [at, at + size) of the mapping was written to. From any number of threads. */
static inline void sl_writable_touch(sl_writable *live, const void *at, size_t size) {
    uint64_t offset = (uint64_t)((const uint8_t *)at - live->base);
    if (!live->direct)
        sl_dirty_mark(&live->dirty, offset, size);
    else if (size)
        live->ops.flush(live->ops.ctx, at, size, offset);
}

/* Tells the same, and that the pages which hold the bytes are taken as they are: the next commit sums them as a whole.
 * For whoever has put right what was damaged there. */
void sl_writable_renew(sl_writable *live, const void *at, size_t size);

/* Before [at, at + size) of the mapping is written to for the first time: in persistent memory, and in a file system in
 * memory, a store finds no room too late to say so. */
sl_status sl_writable_reserve(sl_writable *live, const void *at, size_t size);

/* In persistent memory: what this thread has touched is durable before anything it writes from here on. */
static inline void sl_writable_fence(sl_writable *live) {
    if (live->direct) live->ops.drain(live->ops.ctx);
}

#endif
