/* A file that replaces another, or none, as a whole or not at all: it's written under a unique temporary name in the
 * same folder, synced and renamed, and then the folder is synced. */
#ifndef SL_STORAGE_REPLACE_H
#define SL_STORAGE_REPLACE_H

#include "base/thread.h"
#include "storage/origin.h"

#include <limits.h>

typedef struct sl_replacement {
    sl_file_ops ops;
    char target[PATH_MAX]; /* with links resolved, so that links stay and the file behind them is replaced */
    char folder[PATH_MAX];
    char temporary[PATH_MAX]; /* "" after the rename */
    int fd;                   /* open on the temporary file */
    int kept;                 /* the file to replace, open for reading; -1: there is none, or it may not be read */
    int replaces;             /* there is a file to replace */
    int placed;               /* the file has its name */
    int outdated;             /* another has changed the origin since it was read */
    sl_access access;         /* what both that file's and the source's access allow */
    sl_origin *origin;        /* of the written content; NULL: it's a copy, or comes from no file */
    sl_fingerprint print;     /* of the written content, for the origin */
} sl_replacement;

/* Creates the temporary file, which stays locked while it's written. Removes temporary files of this target whose
 * process was killed. The new file gets the access of the file it replaces, or else of the origin or of `source`, an
 * open file; if there are both, what both allow. After a failure there is nothing to discard.
 * Parameters: `origin` may be NULL, source -1. */
sl_status sl_replace_begin(sl_replacement *r, const char *path, const sl_file_ops *ops, sl_origin *origin, int source);

/* Keeps in-place writers off the file to replace. Their changes would be lost with its name, and its log would pass for
 * the new file's.
 * Errors: SL_EBUSY: the file has a writer, or it's the origin and another has changed it. */
sl_status sl_replace_keep_writers_off(sl_replacement *r);

/* Puts the file in place. Ends the progress before the rename, so a cancelled save changes nothing. On failure the new
 * file is in place only if the folder's sync failed, and the message says so. A finished file that can't be put in
 * place stays beside it, under a name that the message tells and no later save removes. It's removed if another has
 * changed the origin.
 * Errors: SL_EBUSY: another has replaced or changed the origin meanwhile. */
sl_status sl_replace_commit(sl_replacement *r, sl_progress *progress);

/* Tries all this with an empty file, and leaves nothing behind. The file at `path` stays as it is.
 * Parameters: `origin` as of sl_replace_begin. Errors: those of a save. */
sl_status sl_replace_try(const char *path, sl_origin *origin);

/* Removes what is left of the file. Returns the status; the message names a file that couldn't be removed. */
sl_status sl_replace_discard(sl_replacement *r, sl_status status);

#endif
