/* Superblocks: they tell which state of a file that is written in place is in force.
 *
 * Section SL_SECTION_LIVE holds two superblocks and the head page, a page each. The writer writes the superblocks in
 * turn. The head page holds the changing facts of its user. */
#ifndef SL_STORAGE_SUPERBLOCK_H
#define SL_STORAGE_SUPERBLOCK_H

#include "storage/redo.h"
#include "storage/store.h"

#define SL_SUPERBLOCKS 2u
#define SL_LIVE_PAGE   4096u
#define SL_LIVE_HEAD   (SL_SUPERBLOCKS * SL_LIVE_PAGE) /* of the section: where the head page begins */
#define SL_LIVE_SIZE   (SL_LIVE_HEAD + SL_LIVE_PAGE)   /* of the section */

/* No larger than a sector, which devices write whole or not at all. */
typedef struct sl_superblock {
    char magic[8];
    uint64_t sequence; /* the superblock with the larger one is in force */
    uint8_t identity[SL_REDO_IDENTITY_SIZE];
    uint64_t epoch;                             /* of the log that continues from what the file holds */
    uint64_t recoveries;                        /* how often a log was replayed */
    uint64_t recovered_groups, recovered_bytes; /* by the last replay */
    uint64_t unsummed; /* 1: the file was written directly, and its page checksums are out of force for good */
    uint64_t logged;   /* 1: a writer has the file, or died with it; the log may hold what the file does not */
    uint8_t reserved[428];
    uint32_t crc32c; /* of all fields before */
} sl_superblock;

/* How many groups of the log the file holds. The stamp is in the head page, behind the user's words and in the same
 * sector. A commit writes it with the head page, last of all. It counts only for the file and the epoch that it names.
 */
typedef struct sl_writable_stamp {
    uint8_t identity[SL_REDO_IDENTITY_SIZE];
    uint64_t epoch, groups;
} sl_writable_stamp;

#define SL_LIVE_HEAD_ROOM (512u - sizeof(sl_writable_stamp)) /* bytes of the head page for its user */

/* Makes the superblocks of a new file, with its own identity and an empty log.
 * Parameters: `unsummed` as in sl_superblock. Errors: SL_EIO: the system has no random numbers for the identity. */
sl_status sl_writable_superblocks(uint8_t pages[SL_LIVE_HEAD], uint64_t unsummed);

/* Makes section SL_SECTION_LIVE of a new file: superblocks and a head page.
 * Parameters: `section`: SL_LIVE_SIZE bytes; `head`: `size` bytes. Errors: as of sl_writable_superblocks. */
sl_status sl_writable_format(uint8_t *section, const void *head, size_t size);

/* Reads the superblock in force. The store's section must have the right size.
 * Errors: SL_ECORRUPT: neither superblock is whole. */
sl_status sl_writable_super(const sl_store *store, sl_superblock *out);

/* Returns whether the superblock out of force is damaged. */
int sl_writable_is_doubtful(const sl_store *store);

/* Returns the place in the file of the superblock of this sequence. `section`: where SL_SECTION_LIVE begins. */
uint64_t sl_superblock_at(uint64_t section, const sl_superblock *super);

/* Writes the next superblock over the older one, and syncs it. */
sl_status sl_superblock_write(const sl_file_ops *ops, int fd, const char *path, uint64_t section, sl_superblock *super);

/* The stamp in a mapping of the file. */
sl_writable_stamp *sl_stamp_at(uint8_t *base, uint64_t section);

/* Groups of the superblock's epoch that the file holds, by its stamp. */
uint64_t sl_stamp_groups(const sl_store *store, const sl_superblock *super);

/* The store's head page; NULL: the file isn't written in place. */
static inline const void *sl_writable_head(const sl_store *store) {
    const sl_file_section *section = sl_store_section(store, SL_SECTION_LIVE);
    return section ? store->base + section->offset + SL_LIVE_HEAD : NULL;
}

#endif
