/* Readers of a file that is written in place: they replay what a dead writer left, and can tell whether anybody writes.
 */
#ifndef SL_STORAGE_HEAL_H
#define SL_STORAGE_HEAL_H

#include "storage/store.h"

/* Replays the log that a crash left, if no writer is at work: into the file, or into the mapping alone if the file
 * can't be written. */
sl_status sl_writable_heal(sl_store *store);

/* Looks once a second whether the writer has died and left a log. If so, replays the log into the file, and all
 * mappings of the file see it. Call it before each search while another process may write. Does nothing if the file
 * can't be written. Threads: any number; one works, the others go on at once. */
void sl_writable_watch(sl_store *store);

/* Checks that the file holds all that was acknowledged. Nobody may be writing it.
 * Errors: SL_EBUSY: a writer came and died after sl_writable_heal, so its log must be replayed; SL_ECORRUPT: the log is
 * missing or damaged, as of sl_redo_replay. */
sl_status sl_writable_check_log(const sl_store *store);

/* The same beside writers: SL_OK while one is at work, and once the file has lost its name. */
sl_status sl_writable_check_settled(const sl_store *store);

/* The number of the superblock in force; 0 while the file has a writer. If two calls return the same number, and not 0,
 * nobody wrote in between. */
uint64_t sl_writable_quiet(const sl_store *store);

#endif
