/* The file that a handle was opened from: whether another has changed it, and the claim to change it. */
#ifndef SL_STORAGE_ORIGIN_H
#define SL_STORAGE_ORIGIN_H

#include "base/thread.h"
#include "storage/ops.h"
#include "storage/store.h"

/* Two CRCs that change whenever the file's contents do. `header` is the header's, which covers the CRC of every
 * section. `supers` is that of the superblocks, which each writer of a file with room moves on. */
typedef struct sl_fingerprint {
    uint32_t header, supers;
} sl_fingerprint;

/* The origin of a handle. Saves of one handle may run on several threads. */
struct sl_origin {
    sl_spin lock; /* guards all but path and access */
    uint64_t device, inode;
    sl_fingerprint print;
    int mapped; /* the handle sees the file itself, so that changed contents are no news */
    sl_access access;
    int claim;   /* open on the file, and holds its lock; -1: the handle keeps nobody off */
    int owner;   /* the process that took the claim */
    char path[]; /* links resolved */
};

/* Makes the origin of a store that was just opened. Reads the superblocks of a file with room. */
sl_status sl_origin_make(const sl_store *store, const sl_allocator *allocator, sl_origin **out);
/* Frees the origin and lets go of the claim. Takes NULL. */
void sl_origin_free(sl_origin *origin, const sl_allocator *allocator);

/* Keeps every other handle from changing or replacing the file, until the origin is freed.
 * Errors: SL_EBUSY: another handle is about to change the file, or the file has been replaced. */
sl_status sl_origin_claim(sl_origin *origin, const sl_store *store);

/* Tells whether a path names the handle's file, as far as names tell. */
int sl_origin_is(const sl_origin *origin, const char *path);

/* Tells whether this process holds a claim to the file at `target`. */
int sl_origin_claims(sl_origin *origin, const char *target);

/* Checks `target` before the handle's content replaces it. `fd` is open on the target; -1: there is none.
 * Errors: SL_EBUSY: the target is the handle's file and was replaced or changed by another, or a child of fork()
 * would use its parent's claim. */
sl_status sl_origin_check(sl_origin *origin, const char *target, int fd);

/* A file that is about to take the place of the handle's file. sl_successor_of takes it open and locked as `fd`.
 * After the renaming, sl_successor_settle makes it the handle's file and hands the claim over. */
typedef struct sl_successor {
    int expected; /* the file takes that place */
    uint64_t device, inode;
    int claim;
} sl_successor;
sl_status sl_successor_of(sl_origin *origin, const char *target, int fd, sl_successor *out);
void sl_successor_settle(sl_origin *origin, sl_successor *successor, sl_fingerprint print);
/* Lets go of a successor that was not renamed. */
void sl_successor_drop(sl_successor *successor);

/* Waits for a file that another handle is about to change. sl_wait_more returns 1 after a moment, for one more try.
 * It returns 0 when the time is over, or when the progress callback cancels, with SL_ECANCELED in *status. */
typedef struct sl_waiting {
    int64_t until; /* ns of CLOCK_MONOTONIC */
    sl_progress_fn tell;
    void *ctx;
} sl_waiting;
sl_waiting sl_waiting_for(double seconds, sl_progress_fn tell, void *ctx);
int sl_wait_more(const sl_waiting *waiting, sl_status *status);

/* The print of sections that are about to be written under this header. */
sl_fingerprint sl_fingerprint_of(const sl_file_header *header, const sl_section_source *sections);

#endif
