/* Readers of a file that is written in place: they finish what a dead writer left, and tell whether anybody writes. */
#ifndef SL_STORAGE_HEAL_H
#define SL_STORAGE_HEAL_H

#include "storage/store.h"

/* Replays the log that a crash left, if no writer is at work. The log goes into the file, or into the mapping alone if
 * the file may not be written to. */
sl_status sl_writable_heal(sl_store *store);

/* Looks once a second whether the writer has died and left a log. If so, the call replays the log into the file, which
 * all who have the file mapped then see. To be called before each search while another process may write the file.
 * Does nothing if the file may not be written to. Threads: any number; one of them works, the others go on at once. */
void sl_writable_watch(sl_store *store);

/* Tells whether the file of a store that nobody writes holds all that was acknowledged.
 * Errors: SL_EBUSY: a writer came and died after sl_writable_heal, so that its log has to be replayed; SL_ECORRUPT: the
 * log is missing or damaged, as of sl_redo_replay. */
sl_status sl_writable_check_log(const sl_store *store);

/* The same for a file that may be written meanwhile: SL_OK while it is, and once the file has lost its name. */
sl_status sl_writable_check_settled(const sl_store *store);

/* Returns the number of the superblock in force; 0 while the file has a writer. If two calls return the same number,
 * and not 0, nobody wrote between them. */
uint64_t sl_writable_quiet(const sl_store *store);

#endif
