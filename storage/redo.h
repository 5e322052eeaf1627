/*
 * The redo log of a file that is written in place.
 *
 * The log holds coming changes in groups, as bytes and their places. A group counts whole or not at all. A group is
 * synced before any of it is written to the file itself. After a crash, replaying the groups in order gives the file of
 * the last whole group. A replay may be repeated.
 *
 * The log is little-endian. A head of 64 bytes names the log's file and the file's epoch. The head is synced before the
 * first group is written. Groups follow without gaps: each has a head, records and a trailer. The file already holds a
 * log of an earlier epoch. A last group that is not whole was never acknowledged. Anything else that is not whole is
 * damage.
 */
#ifndef SL_STORAGE_REDO_H
#define SL_STORAGE_REDO_H

#include "base/memory.h"
#include "storage/ops.h"
#include "storage/redo_format.h"

#include <limits.h>

#define SL_REDO_ENDING ".log" /* of a log's name, behind that of its file */

typedef struct sl_redo {
    sl_allocator allocator;
    sl_file_ops ops;
    int fd;
    uint8_t identity[SL_REDO_IDENTITY_SIZE];
    uint64_t epoch, groups; /* groups that are whole */
    uint64_t end;           /* of the last whole group; 0: there is none */
    uint64_t at;            /* where the buffer goes */
    uint8_t *buffer;
    size_t filled;
    uint32_t crc;
    int unsure; /* a sync has failed: what the device holds is not known */
    char path[];
} sl_redo;

/* The name of the log of the file at `of`, whose links are resolved. The log lies beside the file itself, whatever
 * link named the file. */
sl_status sl_redo_name(const char *of, char path[PATH_MAX]);

/* The file of a log. */
typedef struct sl_redo_owner {
    const char *path; /* of the file, links resolved */
    const uint8_t *identity;
    uint64_t epoch;
    uint64_t size; /* of the file */
    int in_force;  /* the file says that it has a log, without which acknowledged changes may be missing */
    int doubtful;  /* one of the file's superblocks is damaged, and the other may be of an earlier epoch */
    uint64_t held; /* groups of the epoch that the file itself holds; a log in force has at least as many */
} sl_redo_owner;

/* Opens the log of a file, which is open as `file`, for writing. The log's content stays until sl_redo_reset. Links are
 * not followed. If no log is in force, a missing log is made, as private as the file, and the folder is synced. A log
 * that is not surely this file's is first renamed to NAME.old-XXXXXXXX.
 * Errors: SL_ECORRUPT: the log is in force and missing. */
sl_status sl_redo_open(const sl_redo_owner *owner, int file, const sl_allocator *allocator, const sl_file_ops *ops,
                       sl_redo **out);
/* Closes the log; takes NULL. `remove` also removes the file, unless another file has the name. A failed removal is
 * not reported. */
void sl_redo_close(sl_redo *redo, int remove);

/* Tells whether the log still has its name and its full length. */
int sl_redo_is_there(const sl_redo *redo);

/* Write a group: begin, each record, commit. `payload`: bytes of all the records with their heads. After a
 * successful commit the group outlives a power loss. After a failure other than that of a sync, the log is as it was
 * before the group. */
sl_status sl_redo_begin(sl_redo *redo, uint64_t payload);
sl_status sl_redo_put(sl_redo *redo, uint64_t offset, const void *data, uint64_t size);
sl_status sl_redo_commit(sl_redo *redo);

/* Makes a log that was found as private as the file. To be called once the log was read and found to be the file's. */
void sl_redo_give_access(const sl_redo *redo, int file);

/* Lets go of a log that belongs to another file by now, and leaves its content. Nothing more can be written to it. */
void sl_redo_leave(sl_redo *redo);

/* Makes a log that has lost its name anew, as sl_redo_open does. It must be emptied before it is used. */
sl_status sl_redo_remake(sl_redo *redo, int file);

/* Empties the log for the next epoch, durably. */
sl_status sl_redo_reset(sl_redo *redo, uint64_t epoch);

/* The content of a log. */
typedef struct sl_redo_found {
    uint64_t groups, bytes; /* bytes of the groups in the log */
} sl_redo_found;

/* Called for the bytes of each record of the whole groups, in order. A long record comes in pieces. */
typedef sl_status (*sl_redo_apply)(void *ctx, uint64_t offset, const void *data, uint64_t size);

/* Reads the log of a file. `apply` may be NULL, to count only. A record that would lie outside the file makes its group
 * not whole. A log without groups is empty. A missing log counts as empty if none is in force. A log of 0 bytes was
 * emptied by hand and counts as empty too. Beside a writer, *found counts the groups there so far, unless the log's
 * epoch is past.
 * Errors: SL_ECORRUPT names the log; `apply` may have been called by then. The log is in force and missing, or its
 * head is damaged or another file's. Or it is of a later epoch than the file, or a whole group lies behind one that
 * is not. Or the file holds more groups of the epoch than the log does. */
sl_status sl_redo_replay(const sl_redo_owner *owner, sl_redo_apply apply, void *ctx, sl_redo_found *found);

#endif
