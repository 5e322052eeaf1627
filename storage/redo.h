/*
 * The redo log of a file that is written in place: what is about to change, as bytes and where they go, in groups that
 * hold whole or not at all. A group is synced before any of it is written to the file itself, so that after a crash
 * replaying the groups of the log, in order and as often as one likes, leaves the file as the last whole group says.
 *
 * Little-endian. A head of 64 bytes says which file the log belongs to, and to which epoch of it; it is synced before
 * the first group is written. Groups follow without gaps, each a head, records and a trailer. A log of an earlier epoch
 * than the file's is in the file already. A last group that is not whole was never acknowledged. Anything else that is
 * not whole is damage.
 */
#ifndef SL_STORAGE_REDO_H
#define SL_STORAGE_REDO_H

#include "base/memory.h"
#include "storage/ops.h"

#include <limits.h>

#define SL_REDO_ENDING        ".log" /* of a log's name, behind that of its file */
#define SL_REDO_IDENTITY_SIZE 16u

typedef struct sl_redo_head {
    char magic[8];
    uint32_t version;
    uint32_t endian;
    uint8_t identity[SL_REDO_IDENTITY_SIZE]; /* the file's */
    uint64_t epoch;
    uint8_t reserved[20];
    uint32_t crc32c; /* of all before */
} sl_redo_head;

typedef struct sl_redo_group {
    uint32_t magic;
    uint32_t crc32c; /* of the rest of this head */
    uint64_t epoch;
    uint64_t number;  /* from 0 in each epoch */
    uint64_t payload; /* bytes of the records */
} sl_redo_group;

typedef struct sl_redo_record {
    uint64_t offset; /* in the file */
    uint64_t size;   /* of the bytes that follow, a multiple of 8 */
} sl_redo_record;

typedef struct sl_redo_trailer {
    uint32_t magic;
    uint32_t crc32c; /* of the records */
} sl_redo_trailer;

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

/* The name of the log of the file at `of`, links resolved: it lies beside the file itself, whatever link that was named
 * by. */
sl_status sl_redo_name(const char *of, char path[PATH_MAX]);

/* Whose log it is. */
typedef struct sl_redo_owner {
    const char *path; /* of the file, links resolved */
    const uint8_t *identity;
    uint64_t epoch;
    uint64_t size; /* of the file */
    int in_force;  /* the file says that it has a log: without it, acknowledged changes may be missing */
    int doubtful;  /* one of the file's superblocks is damaged: the other may be of an earlier epoch */
    uint64_t held; /* groups of the epoch that the file itself holds: a log in force has as many, or more */
} sl_redo_owner;

/* The log of a file, which is open as `file`, to be written. One that is not in force is made where there is none, as
 * private as the file, the folder then synced; what is not surely this file's is renamed to NAME.old-XXXXXXXX first.
 * What it holds stays until sl_redo_reset. Links are not followed. SL_ECORRUPT where it is in force and missing. */
sl_status sl_redo_open(const sl_redo_owner *owner, int file, const sl_allocator *allocator, const sl_file_ops *ops,
                       sl_redo **out);
/* Takes NULL. With `remove`, the file goes too, unless the name is another's by now; its failing is of no account. */
void sl_redo_close(sl_redo *redo, int remove);

/* Whether the log is still there under its name, and as long as it was written. */
int sl_redo_is_there(const sl_redo *redo);

/* A group of records whose heads and bytes come to `payload`: begin, each record, commit. After a commit that succeeded
 * it will outlive a power loss; after any failure but that of a sync the log is as it was before the group. */
sl_status sl_redo_begin(sl_redo *redo, uint64_t payload);
sl_status sl_redo_put(sl_redo *redo, uint64_t offset, const void *data, uint64_t size);
sl_status sl_redo_commit(sl_redo *redo);

/* Makes a log that was found as private as the file, once what it holds has been read and found to be the file's. */
void sl_redo_give_access(const sl_redo *redo, int file);

/* Lets go of the log and leaves what it holds: it is another's by now. Nothing more can be written to it. */
void sl_redo_leave(sl_redo *redo);

/* Where it has lost its name: made anew, as by sl_redo_open, and to be emptied before it is used. */
sl_status sl_redo_remake(sl_redo *redo, int file);

/* Empties it for the next epoch, durably. */
sl_status sl_redo_reset(sl_redo *redo, uint64_t epoch);

/* What a log holds. */
typedef struct sl_redo_found {
    uint64_t groups, bytes; /* bytes of the groups in the log */
} sl_redo_found;

/* Called for the bytes of each record of the whole groups, in order; those of a long one come in pieces. */
typedef sl_status (*sl_redo_apply)(void *ctx, uint64_t offset, const void *data, uint64_t size);

/* Goes through the log of a file. Records that would lie outside the file end their group's being whole. apply may be
 * NULL: only to see whether there is anything. A log without groups, also one of 0 bytes, is an empty one, and so is
 * none at all where none is in force. A log of 0 bytes is one that was emptied by hand, and is taken at its word. A
 * writer may be at work on it: found is then what there is of it, unless its epoch is past by then. SL_ECORRUPT, naming
 * the log: it is in force and missing, its head is damaged or another file's, it is of a later epoch than the file, a
 * whole group lies behind one that is not, or the file holds more groups of the epoch than the log does. `apply` may
 * have been called by then. */
sl_status sl_redo_replay(const sl_redo_owner *owner, sl_redo_apply apply, void *ctx, sl_redo_found *found);

#endif
