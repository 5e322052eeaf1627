/* Recovery: what the log holds, and how it gets into the file or into memory. */
#ifndef SL_STORAGE_RECOVER_H
#define SL_STORAGE_RECOVER_H

#include "storage/superblock.h"

/* The owner of a log: the store's file, under this superblock. */
sl_redo_owner sl_recover_owner(const sl_store *store, const sl_superblock *super);

/* Counts what the file's log holds. */
sl_status sl_writable_look(const sl_store *store, const sl_superblock *super, sl_redo_found *found);

/* The same under the superblock in force, which it reads. Looks again if a writer came or went meanwhile.
 * Errors: SL_EBUSY: the file was replaced, or writers keep coming; and those of sl_redo_replay. */
sl_status sl_recover_look(const sl_store *store, sl_superblock *super, sl_redo_found *found);

/* Writes what the file's log holds to fd, which is open on `path`. */
sl_status sl_writable_replay(const sl_store *store, const sl_superblock *super, const sl_file_ops *ops, int fd,
                             const char *path, sl_redo_found *found);

/* Copies what the log holds into a private mapping of the file. */
sl_status sl_recover_into_memory(const sl_store *store, const sl_superblock *super, void *base, sl_redo_found *found);

/* Replays the log into the file, open as fd, and begins the next epoch, so the log no longer counts. After a crash in
 * between, the log is in force and the next recovery replays it again.
 * Parameters: `logged` as in sl_superblock: whether the file has a log from here on; *super: the superblock in force,
 * which becomes the next one. */
sl_status sl_recover_file(const sl_store *store, const sl_file_ops *ops, int fd, int logged, sl_superblock *super);

#endif
