/* The redo log of a file that is written in place.
 *
 * The log holds coming changes in groups, as bytes and their places. A group counts as a whole or not at all. It's
 * synced before any of it is written to the file. After a crash, replaying the groups in order gives the file of the
 * last whole group. A replay may be repeated.
 *
 * The log is little-endian. Its head of 64 bytes names the file and the epoch, and is synced before the first group is
 * written. Groups follow without gaps: a head, records, a trailer. Groups of earlier epochs are already applied. A last
 * group that isn't whole was never acknowledged. Anything else that isn't whole is damage. */
#ifndef SL_STORAGE_REDO_H
#define SL_STORAGE_REDO_H

#include "base/memory.h"
#include "storage/ops.h"
#include "storage/redo_format.h"

#include <limits.h>

#define SL_REDO_ENDING ".log" /* a log's name is its file's name and this */

typedef struct sl_redo {
    sl_allocator allocator;
    sl_file_ops ops;
    int fd;
    uint8_t identity[SL_REDO_IDENTITY_SIZE];
    uint64_t epoch, groups; /* groups: whole ones */
    uint64_t end;           /* of the last whole group; 0: there is none */
    uint64_t at;            /* where the buffer goes */
    uint8_t *buffer;
    size_t filled;
    uint32_t crc;
    int unsure; /* a sync has failed, so nobody knows what the device holds */
    char path[];
} sl_redo;

/* The name of the log of the file at `of`, whose links are resolved. The log lies beside the file itself, whatever
 * links lead there. */
sl_status sl_redo_name(const char *of, char path[PATH_MAX]);

/* A log's file. */
typedef struct sl_redo_owner {
    const char *path; /* its path, with links resolved */
    const uint8_t *identity;
    uint64_t epoch;
    uint64_t size; /* of the file */
    int in_force;  /* the file says that it has a log; without the log, acknowledged changes may be missing */
    int doubtful;  /* a superblock of the file is damaged, and the other may be of an earlier epoch */
    uint64_t held; /* groups of the epoch that the file holds; a log in force has at least as many */
} sl_redo_owner;

/* Opens the log of a file for writing; the file is open as `file`. The log's content stays until sl_redo_reset. Links
 * aren't followed. If no log is in force, a missing one is made, as private as the file, and the folder is synced. A
 * log that isn't surely this file's is renamed to NAME.old-XXXXXXXX.
 * Errors: SL_ECORRUPT: a log is in force but missing. */
sl_status sl_redo_open(const sl_redo_owner *owner, int file, const sl_allocator *allocator, const sl_file_ops *ops,
                       sl_redo **out);
/* Closes the log; takes NULL. `remove` also removes it, unless another file has its name. A failed removal isn't
 * reported. */
void sl_redo_close(sl_redo *redo, int remove);

/* Returns whether the log still has its name and its full length. */
int sl_redo_is_there(const sl_redo *redo);

/* Write a group: begin, each record, commit. `payload`: bytes of all records with their heads. A committed group
 * outlives a power loss. After a failure, unless a sync failed, the log is as it was before the group. */
sl_status sl_redo_begin(sl_redo *redo, uint64_t payload);
sl_status sl_redo_put(sl_redo *redo, uint64_t offset, const void *data, uint64_t size);
sl_status sl_redo_commit(sl_redo *redo);

/* Makes an existing log as private as the file. Call it once the log was read and is known to be the file's. */
void sl_redo_give_access(const sl_redo *redo, int file);

/* Closes a log that belongs to another file by now, without touching it. Nothing more can be written to it. */
void sl_redo_leave(sl_redo *redo);

/* Makes a log again that has lost its name, as sl_redo_open does. Empty it before use. */
sl_status sl_redo_remake(sl_redo *redo, int file);

/* Empties the log durably, for the next epoch. */
sl_status sl_redo_reset(sl_redo *redo, uint64_t epoch);

/* The content of a log. */
typedef struct sl_redo_found {
    uint64_t groups, bytes; /* bytes of these groups in the log */
} sl_redo_found;

/* Called for the bytes of each record of whole groups, in order. Long records come in pieces. */
typedef sl_status (*sl_redo_apply)(void *ctx, uint64_t offset, const void *data, uint64_t size);

/* Reads a file's log. `apply` may be NULL, to count only. A record outside the file makes its group not whole. A log
 * without groups is empty; so is one of 0 bytes, which somebody emptied by hand, and a missing one if no log is in
 * force. Beside a writer, *found counts the groups so far, unless the log's epoch has passed.
 * Errors: SL_ECORRUPT names the log; `apply` may have been called already. The log is in force but missing; its head is
 * damaged or another file's; it's of a later epoch than the file; a whole group follows one that isn't; or the file
 * holds more groups of the epoch than the log. */
sl_status sl_redo_replay(const sl_redo_owner *owner, sl_redo_apply apply, void *ctx, sl_redo_found *found);

#endif
