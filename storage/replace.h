/* A file that takes the place of another, or of none, whole or not at all. It is written under a unique temporary
 * name in the same folder, synced and renamed; then the folder is synced. */
#ifndef SL_STORAGE_REPLACE_H
#define SL_STORAGE_REPLACE_H

#include "base/thread.h"
#include "storage/origin.h"

#include <limits.h>

typedef struct sl_replacement {
    sl_file_ops ops;
    char target[PATH_MAX]; /* links resolved, so that links stay and the file behind them is replaced */
    char folder[PATH_MAX];
    char temporary[PATH_MAX]; /* "" after the renaming */
    int fd;                   /* open on the temporary file */
    int kept;                 /* the file that is replaced, open to read; -1: there is none, or it may not be read */
    int replaces;             /* there is a file to replace */
    int placed;               /* the file has its name */
    int outdated;             /* another has changed the origin since it was read */
    sl_access access;         /* the least of that file's and the source's access */
    sl_origin *origin;        /* of what is written; NULL: it is a copy, or comes from no file */
    sl_fingerprint print;     /* of what was written, for the origin */
} sl_replacement;

/* Creates the temporary file, which stays locked while it is written. Removes this target's temporary files whose
 * process was killed. The new file gets the access of the file that it replaces, or else of the origin or of `source`,
 * an open file. If there are both, it gets what both allow. On failure there is no temporary file, and nothing to
 * discard.
 * Parameters: `origin` may be NULL, source -1. */
sl_status sl_replace_begin(sl_replacement *r, const char *path, const sl_file_ops *ops, sl_origin *origin, int source);

/* Keeps writers in place off the file that is replaced. Changes written to a file without a name are lost, and its log,
 * which goes by the name, would be taken for another file's.
 * Errors: SL_EBUSY: the file has a writer, or it is the origin and another has changed it. */
sl_status sl_replace_keep_writers_off(sl_replacement *r);

/* Puts the file in place. Ends the progress before the rename, so that a cancelled save changes nothing. Only if the
 * folder's sync fails is the new file in place on failure, and the message says so. A finished file that cannot be put
 * in place stays beside it under a name that the message tells, and that no later save removes. It is removed where
 * another has changed the origin.
 * Errors: SL_EBUSY: another has replaced or changed the origin meanwhile. */
sl_status sl_replace_commit(sl_replacement *r, sl_progress *progress);

/* Tries all this with a file of no bytes, and leaves nothing behind. The file at `path` stays as it is.
 * Parameters: `origin` as of sl_replace_begin.
 * Errors: those of a save. */
sl_status sl_replace_try(const char *path, sl_origin *origin);

/* Removes what is left of the file. Returns the status; the message tells of a file that could not be removed. */
sl_status sl_replace_discard(sl_replacement *r, sl_status status);

#endif
