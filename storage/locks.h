/* Locks of a file that is written in place: a flock of the whole file, and locks of single bytes. */
#ifndef SL_STORAGE_LOCKS_H
#define SL_STORAGE_LOCKS_H

#include "storage/store.h"

/* Bytes of the file that are locked for reading or writing (F_OFD_SETLK). Nothing else in the file knows of the locks.
 *   CHECKPOINT  by a writer while it empties the log; by a copy of the file that must find the log as it was
 *   DIRECT      by a writer in persistent memory, which has no log, as long as it lives; by a copy of the file
 *   WRITER      by every writer as long as it lives; a reader that finds the byte free looks for a dead writer's log
 *   HEALER      by a reader while it replays what a writer has left; a writer that is opened meanwhile waits */
typedef enum sl_writable_lock {
    SL_LIVE_CHECKPOINT = 0,
    SL_LIVE_DIRECT = 1,
    SL_LIVE_WRITER = 2,
    SL_LIVE_HEALER = 3
} sl_writable_lock;

/* Locks or unlocks a byte without waiting: F_RDLCK, F_WRLCK or F_UNLCK. Returns 0, or -1 with errno. */
int sl_lock_byte(int fd, short kind, sl_writable_lock byte);

/* Returns whether errno, after sl_lock_byte has failed, means that another open file has the lock. On a file system
 * without such locks nobody has one. */
int sl_lock_is_taken(void);

/* Returns whether another open file has locked a byte for writing; 0 if the system can't tell. */
int sl_byte_is_locked(int fd, sl_writable_lock byte);

/* Keeps writers from emptying an open file's log, until sl_writable_unpin. The log then holds all changes since it was
 * last emptied. Only a newly opened writer can break that, and the epoch tells. Waits for a checkpoint.
 * Errors: SL_EBUSY: a writer in persistent memory is at work; SL_ECANCELED; SL_EUNSUPPORTED: the file system has no
 * such locks. */
sl_status sl_writable_pin(int fd, const char *path, sl_progress *progress);

/* Ends the pin and closes the file. */
void sl_writable_unpin(int fd);

/* Keeps writers off the file until sl_writable_release. A file system without locks has no writers; *held is then -1.
 * Errors: SL_EBUSY: a writer is at work. */
sl_status sl_writable_hold(const sl_store *store, int *held);
/* Takes -1. */
void sl_writable_release(int held);

#endif
