/* The file that a handle was opened from: whether it is still what it was then, and the claim to change it. */
#ifndef SL_STORAGE_ORIGIN_H
#define SL_STORAGE_ORIGIN_H

#include "base/thread.h"
#include "storage/ops.h"
#include "storage/store.h"

/* Two CRCs that change whenever a file's contents do: the header's, which covers the CRC of every section, and that of
 * the superblocks, which each writer of a file with room moves on. */
typedef struct sl_fingerprint {
    uint32_t header, supers;
} sl_fingerprint;

/* Saves of one handle may run on several threads. */
struct sl_origin {
    sl_spin lock; /* of all but the path and access */
    uint64_t device, inode;
    sl_fingerprint print;
    int mapped; /* the handle sees the file itself, so that its contents are no news */
    sl_access access;
    int claim;   /* open on the file, and holds its lock; -1: nobody is kept off */
    int owner;   /* the process that took the claim */
    char path[]; /* links resolved */
};

/* The origin of a store that was just opened; of a file with room its superblocks are read here. */
sl_status sl_origin_make(const sl_store *store, const sl_allocator *allocator, sl_origin **out);
/* Takes NULL. Lets go of the claim. */
void sl_origin_free(sl_origin *origin, const sl_allocator *allocator);

/* Keeps every other handle from changing the file, or replacing it, until the origin is freed. SL_EBUSY where one is
 * about to, or the file has been replaced. */
sl_status sl_origin_claim(sl_origin *origin, const sl_store *store);

/* Whether a path names the handle's file, as far as names tell. */
int sl_origin_is(const sl_origin *origin, const char *path);

/* Whether this process holds a claim to the file at `target`. */
int sl_origin_claims(sl_origin *origin, const char *target);

/* Before `target`, open as fd (-1: there is none), is replaced by what the handle holds: SL_EBUSY where it is the
 * handle's file and was replaced or changed by another, and where a child of fork() would use its parent's claim. */
sl_status sl_origin_check(sl_origin *origin, const char *target, int fd);

/* A file that is about to take the place of the handle's, open and locked as fd. After the renaming it is the handle's,
 * and so is the claim to it. */
typedef struct sl_successor {
    int expected; /* it takes that place */
    uint64_t device, inode;
    int claim;
} sl_successor;
sl_status sl_successor_of(sl_origin *origin, const char *target, int fd, sl_successor *out);
void sl_successor_settle(sl_origin *origin, sl_successor *successor, sl_fingerprint print);
/* It was not renamed after all. */
void sl_successor_drop(sl_successor *successor);

/* For a file that another is about to change: one more try, after a moment, until the time is over or the progress
 * callback cancels, which makes *status SL_ECANCELED. */
typedef struct sl_waiting {
    int64_t until; /* ns of CLOCK_MONOTONIC */
    sl_progress_fn tell;
    void *ctx;
} sl_waiting;
sl_waiting sl_waiting_for(double seconds, sl_progress_fn tell, void *ctx);
int sl_wait_more(const sl_waiting *waiting, sl_status *status);

/* Of sections that are about to be written under this header. */
sl_fingerprint sl_fingerprint_of(const sl_file_header *header, const sl_section_source *sections);

#endif
