/* A file that takes the place of another, or of none, whole or not at all: written under a temporary name in the same
 * folder (unique, so that two at once do not meet), synced, renamed, the folder synced. */
#ifndef SL_STORAGE_REPLACE_H
#define SL_STORAGE_REPLACE_H

#include "base/thread.h"
#include "storage/origin.h"

#include <limits.h>

typedef struct sl_replacement {
    sl_file_ops ops;
    char target[PATH_MAX]; /* links resolved, so that what they point at is replaced and they stay */
    char folder[PATH_MAX];
    char temporary[PATH_MAX]; /* "" once it has its place */
    int fd;                   /* to write to */
    int kept;                 /* the file that is replaced, open to read; -1: none, or one that may not be read */
    int replaces;             /* there is a file to replace */
    sl_access access;         /* of that file, and of the source: what few could read stays theirs */
    sl_origin *origin;        /* of what is written; NULL: it comes from no file, or is a copy */
    sl_fingerprint print;     /* of what was written, for the origin */
} sl_replacement;

/* Creates the temporary file, locked as long as it is being written, and removes those of this target whose process was
 * killed. It gets the access of the file it replaces, or else that of the origin or of `source`, an open file; where
 * there are both, what both allow. `origin` may be NULL, source -1. On failure there is no temporary file, and nothing
 * to discard. */
sl_status sl_replace_begin(sl_replacement *r, const char *path, const sl_file_ops *ops, sl_origin *origin, int source);

/* From here on nobody can open the file that is replaced to write it in place: SL_EBUSY where somebody has, or where it
 * is the origin and another has changed it. What is
 * written to a file that has lost its name is lost, and its log, which goes by the name, would be taken for another's.
 */
sl_status sl_replace_keep_writers_off(sl_replacement *r);

/* Puts it in place: SL_EBUSY where another has replaced or changed the origin meanwhile. The progress is ended ahead of
 * the rename, so that what was cancelled changes nothing. Only where the last sync, that of the folder, fails is the
 * new file in place all the same, and the message says so. */
sl_status sl_replace_commit(sl_replacement *r, sl_progress *progress);

/* Removes what is left of it; returns the status, with a message that tells where that failed. */
sl_status sl_replace_discard(sl_replacement *r, sl_status status);

#endif
