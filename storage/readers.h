/* The searches of other processes in a file that is written in place: a table beside the file, named as the file and
 * `.readers`. Each running search announces the commit by which it goes. The writer uses a place again once no search
 * announces an earlier one.
 *
 *   a reader:    sl_readers_open, sl_readers_take; for each search sl_reader_announce, load the head page, search,
 *                sl_reader_done
 *   the writer:  commits, then sl_readers_oldest
 *
 * The announcement comes before the load of the head page, in sequentially consistent order. So a writer that misses
 * the announcement has committed before that load, and the search goes by that commit.
 *
 * A reader holds a lock of its entry (F_OFD_SETLK) as long as it lives. So an entry without a lock is that of a process
 * that has died, and holds nobody up. */
#ifndef SL_STORAGE_READERS_H
#define SL_STORAGE_READERS_H

#include "storage/store.h"

#define SL_READERS_ENDING ".readers"

typedef struct sl_reader_entry {
    uint64_t since;       /* atomic: the commit; 0: it reads nothing */
    uint64_t thread;      /* atomic: the thread that announced it last, as of sl_thread_self */
    uint8_t identity[16]; /* of the file */
    uint8_t rest[SL_CACHE_LINE - 2 * sizeof(uint64_t) - 16];
} sl_reader_entry;

typedef struct sl_readers sl_readers;

/* Opens or makes the table for a reader of the store's file. Returns NULL if that fails: the process may not write
 * there, the device is full, or the file system has no locks. The writer then doesn't know of the reader's searches. */
sl_readers *sl_readers_open(const sl_store *store, const sl_allocator *allocator);
/* Removes the table, if no other reader has it. Takes NULL. */
void sl_readers_close(sl_readers *readers);

/* Returns an entry of this process, until sl_readers_close; NULL: there is none. A forked child takes entries of its
 * own. Threads: any. */
sl_reader_entry *sl_readers_take(sl_readers *readers);
/* Returns whether the calling process has taken the entry. */
int sl_reader_is_mine(const sl_reader_entry *entry);

void sl_reader_announce(sl_reader_entry *entry, uint64_t commit);
void sl_reader_done(sl_reader_entry *entry);

/* Returns the oldest commit that a living reader announces, or `newest` if none announces an older one. 0: the table
 * can't be read. */
uint64_t sl_readers_oldest(const sl_store *store, uint64_t newest);

/* Called for a running search: its commit, and its thread as of sl_thread_self. */
typedef void (*sl_reader_fn)(void *ctx, uint64_t commit, uint64_t thread);

/* Calls `fn` for each search of a living reader that began before commit `before`. Returns 0 if the table can't be
 * read.
 */
int sl_readers_each(const sl_store *store, uint64_t before, sl_reader_fn fn, void *ctx);

#endif
