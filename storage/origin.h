/* The file that a handle was opened from: whether another has changed it, and the claim to change it. */
#ifndef SL_STORAGE_ORIGIN_H
#define SL_STORAGE_ORIGIN_H

#include "base/thread.h"
#include "storage/ops.h"
#include "storage/store.h"

/* Two CRCs that change with the file's contents: the header's, which covers every section's CRC, and that of the
 * superblocks, which each writer of a file with room advances. */
typedef struct sl_fingerprint {
    uint32_t header, supers;
} sl_fingerprint;

/* The origin of a handle. Saves of one handle may run on several threads. */
struct sl_origin {
    sl_spin lock; /* guards all fields but path and access */
    uint64_t device, inode;
    sl_fingerprint print;
    int mapped; /* 1: the handle sees the file itself, so changed contents are no surprise */
    sl_access access;
    int claim;   /* open on the file and holding its lock; -1: the handle has no claim */
    int owner;   /* the process that took the claim */
    char path[]; /* links resolved */
};

/* Makes the origin of a store that was just opened. Reads the superblocks of a file with room. */
sl_status sl_origin_make(const sl_store *store, const sl_allocator *allocator, sl_origin **out);
/* Frees the origin and drops the claim. Takes NULL. */
void sl_origin_free(sl_origin *origin, const sl_allocator *allocator);

/* Keeps every other handle from changing or replacing the file, until the origin is freed.
 * Errors: SL_EBUSY: another handle is about to change the file, or the file has been replaced. */
sl_status sl_origin_claim(sl_origin *origin, const sl_store *store);

/* Returns whether a path names the handle's file, as far as names can tell. */
int sl_origin_is(const sl_origin *origin, const char *path);

/* Returns whether this process holds the claim to the file at `target`. */
int sl_origin_claims(sl_origin *origin, const char *target);

/* Checks `target` before the handle's content replaces it. `fd` is open on the target; -1: there is none.
 * Errors: SL_EBUSY: another has replaced or changed the target, which is the handle's file; or a child of fork() would
 * use its parent's claim. */
sl_status sl_origin_check(sl_origin *origin, const char *target, int fd);

/* A file that is about to replace the handle's file. sl_successor_of takes it open and locked as `fd`. After the
 * rename, sl_successor_settle makes it the handle's file and gives it the claim. */
typedef struct sl_successor {
    int expected; /* 1: the file replaces the handle's */
    uint64_t device, inode;
    int claim;
} sl_successor;
sl_status sl_successor_of(sl_origin *origin, const char *target, int fd, sl_successor *out);
void sl_successor_settle(sl_origin *origin, sl_successor *successor, sl_fingerprint print);
/* Closes a successor that was not renamed. */
void sl_successor_drop(sl_successor *successor);

/* Waiting for a file that another handle is changing. sl_wait_more returns 1 after a moment, for another try. It
 * returns 0 when time is up, or if the progress callback cancels, with SL_ECANCELED in *status. */
typedef struct sl_waiting {
    int64_t until; /* ns of CLOCK_MONOTONIC */
    sl_progress_fn tell;
    void *ctx;
} sl_waiting;
sl_waiting sl_waiting_for(double seconds, sl_progress_fn tell, void *ctx);
int sl_wait_more(const sl_waiting *waiting, sl_status *status);

/* The print of sections that will be written under this header. */
sl_fingerprint sl_fingerprint_of(const sl_file_header *header, const sl_section_source *sections);

#endif
