/* Whole files: written atomically, and opened without trust. The room of the file's type (hnsw, ranker or recommend)
 * knows what a section's bytes mean. */
#ifndef SL_STORAGE_STORE_H
#define SL_STORAGE_STORE_H

#include "base/memory.h"
#include "base/share.h"
#include "base/thread.h"
#include "storage/format.h"
#include "storage/ops.h"

/* A part of each row of a section: `size` bytes at `offset` of the row. In memory, `at` is the first row's part, and
 * the next row's is `step` bytes behind. */
typedef struct sl_part {
    uint8_t *at;
    size_t step;
    size_t size;
    size_t offset;
} sl_part;

#define SL_MAX_PARTS    4u
#define SL_SPLIT_WINDOW ((size_t)2 << 20)

/* Rows of a section whose parts lie apart in memory. Bytes that no part covers are 0. When a section is read, parts may
 * leave bytes out. */
typedef struct sl_split_rows {
    sl_part parts[SL_MAX_PARTS];
    size_t count;
    size_t row;   /* bytes of a row in the section */
    void *window; /* for writing: scratch of SL_SPLIT_WINDOW bytes */
} sl_split_rows;

typedef struct sl_origin sl_origin; /* origin.h */

/* A section to write: `size` bytes at data, or rows. kind and flags go to the table. A larger room adds zeros up to
 * `room` bytes, which take no blocks on a file system with holes. */
typedef struct sl_section_source {
    uint32_t kind;
    uint32_t flags;
    const void *data;
    uint64_t size;
    uint64_t room;
    const sl_split_rows *rows; /* NULL: the bytes are at data */
    size_t parted;             /* of several ranks: bytes of a row, of which each rank has those of sl_share_mine(ranks,
                                  size / parted, SL_SHARED_ROWS) alone; 0: each rank has all bytes */
} sl_section_source;

/* The content of a file to write. */
typedef struct sl_file_content {
    const sl_file_type *type;
    const sl_file_header *header; /* only the type's own fields count; NULL: it has none */
    const sl_section_source *sections;
    size_t section_count;
} sl_file_content;

/* Writes a file to path: a unique temporary file in the same folder, fsync, rename, fsync of the folder. Writes through
 * a symbolic link. Fills in the header but for the type's own fields. Steps progress by the sections' bytes and ends it
 * before the rename, so a cancelled save never changes path. A save that fails or is cancelled removes the temporary
 * file and leaves path alone. If only the folder's sync fails, path holds the new file and the message says so.
 * Parameters: ops may be NULL. `origin`: the file that the sections come from, or NULL. A new file gets its access, and
 * a file that replaces it becomes the origin.
 * Errors: SL_EBUSY: path is being written in place, another has claimed it, or it's the origin and another has changed
 * it. */
sl_status sl_store_save(const char *path, const sl_file_content *content, const sl_file_ops *ops, sl_origin *origin,
                        sl_progress *progress);
/* Writes the same file by several ranks. All ranks call with the same content, on a file system that they share. Each
 * writes a part of the file and syncs it. Rank 0 writes the header last, and renames. No section may have room.
 * Errors: also SL_ECORRUPT: the ranks' sections differ. */
sl_status sl_store_save_shared(const char *path, const sl_file_content *content, const sl_ranks *ranks,
                               const sl_file_ops *ops, sl_progress *progress);

/* Bytes of the file that sl_store_save would write for these sections. */
uint64_t sl_store_file_size(const sl_section_source *sections, size_t section_count);

/* How a file's bytes become readable in one place. */
typedef struct sl_medium {
    sl_place place;
    /* Maps size bytes of an open read-only file. */
    sl_status (*map)(int fd, const char *path, uint64_t size, void **out);
    void (*unmap)(void *base, uint64_t size);
    /* Advise the system of a range that will be read at random, or in order soon. */
    void (*advise_random)(const void *at, uint64_t size);
    void (*advise_soon)(const void *at, uint64_t size);
} sl_medium;

/* The medium of a place; NULL: there is no such place. PLACE_DRAM maps its file too, but only to copy it. */
const sl_medium *sl_medium_of(sl_place place);

typedef struct sl_store {
    const sl_medium *medium;
    uint8_t *base;          /* the mapping; only its owner knows whether it may be written */
    int fd;                 /* of PLACE_DRAM: the file that all is copied from; else -1 */
    sl_allocator allocator; /* of the store, and of what its reading takes */
    uint64_t size;
    uint64_t device, inode; /* of the mapped file */
    int dax;                /* loads go to persistent memory itself, not to copies of its pages */
    size_t threads;         /* threads that copy and sum a section, as of sl_crew_run; 1 at first */
    int detached;           /* the mapping is private: written pages become this process's own */
    int writer;             /* the fd of the handle that writes the file in place; else -1 */
    sl_access access;       /* of the file when it was opened */
    int healed;             /* the mapping holds a crashed writer's log, and the file does not */
    uint64_t watched;       /* atomic: the second of the clock in which sl_writable_watch last looked */
    uint64_t given_up;      /* atomic: sequence of the superblock under which that found a damaged log; 0: none */
    sl_file_header header;  /* verified copy, which does not change with the file */
    const char *resolved;   /* path from the root, links resolved: right even if the process changes its folder */
    char path[];            /* as the caller gave it, for messages */
} sl_store;

/* Opens and maps path, a file of this type, in constant time. Verifies the header: magic, version, byte order, CRC, and
 * the file's size. A type without fields of its own must have zeros there. Verifies each section: its kind is known or
 * not required and comes once; it's aligned, lies inside the file with its slack, and overlaps no other. At PLACE_MAP
 * the mapping is advised for random reads. The allocator gives the store itself. sl_store_close takes NULL.
 * Errors, which name the path and the fault: SL_EIO, SL_EFORMAT (names another of our types), SL_EVERSION, SL_ECORRUPT
 * (truncated, damaged), SL_EUNSUPPORTED. */
sl_status sl_store_open(const char *path, const sl_file_type *type, sl_place place, const sl_allocator *allocator,
                        sl_store **out);
void sl_store_close(sl_store *store, const sl_allocator *allocator);

/* Returns whether fd is open on the file that the store maps, not on one that replaced it. */
int sl_store_is(const sl_store *store, int fd);
/* Returns whether the mapped file still has its name. */
int sl_store_has_name(const sl_store *store);
/* Errors: SL_EBUSY: the file was replaced while it was opened. */
sl_status sl_store_check_name(const sl_store *store);
/* Opens the mapped file for reading. -1: it has lost its name, and the store hasn't kept it open. */
int sl_store_reopen(const sl_store *store);
/* Opens the mapped file for writing, with these operations. Errors: SL_EBUSY: another file has its name. */
sl_status sl_store_open_to_write(const sl_store *store, const sl_file_ops *ops, int *fd);
/* Replaces the store's mapping by a private one of fd, which is open on the same file. Written pages become this
 * process's own. */
sl_status sl_store_map_privately(sl_store *store, int fd);

/* Copies the file at path, which may be written in place meanwhile, and puts the copy in place as sl_store_save does.
 * The copy holds at least what was synced when the call began. It has its own identity, and no log. If the caller's
 * operations write, all bytes go through them; otherwise the file system may share blocks. Holes stay holes. Starts the
 * progress anew, in bytes. */
sl_status sl_store_snapshot(const char *path, const sl_file_type *type, const char *copy, const sl_file_ops *ops,
                            sl_progress *progress);

/* Changes, adds or removes (size 0) a section of the store's file, and puts the new file at path as sl_store_save does.
 * The other sections keep their bytes, places and CRCs: the system copies them or shares their blocks, and they aren't
 * read. Not for files that are written in place.
 * Errors: as of sl_store_save; SL_EBUSY: the file has lost its name. */
sl_status sl_store_amend(const sl_store *store, const char *path, const sl_file_ops *ops,
                         const sl_section_source *section, sl_origin *origin, sl_progress *progress);

/* The section of a kind, or NULL. */
const sl_file_section *sl_store_section(const sl_store *store, uint32_t kind);
/* The section's bytes in the mapping. */
void *sl_store_data(const sl_store *store, const sl_file_section *section);
/* Verifies the section by its CRC. Reads the file itself while it has its name, so that a file that became shorter
 * gives SL_ECORRUPT, not a signal, and holes stay holes. Steps progress by the bytes. Skips a section that is written
 * in place, which has no CRC: see sl_page_sums_verify.
 * Errors: SL_ECORRUPT names the path and the section. */
sl_status sl_store_verify(const sl_store *store, const sl_file_section *section, sl_progress *progress);
/* Pages of a file that is written in place, verified by checksums: see page_sums.h. */
typedef struct sl_pages_found {
    uint64_t checked; /* pages read; 0: the file has no checksums, or they are out of force */
    uint64_t bad;
} sl_pages_found;

/* Counts of a verification. */
typedef struct sl_verified {
    size_t sections; /* sections with a CRC */
    uint64_t bytes;  /* of the header, the sections and the gaps between them */
    sl_pages_found pages;
    int unverified; /* 1: the file is written in place and has no page checksums in force */
} sl_verified;

/* Verifies every byte of the file, and reads the file itself while it has its name. The header page must equal the copy
 * verified at opening, sections must fit their CRCs, and gaps must be zeros. In a file that is written in place, pages
 * must fit their checksums. Fills in *found even on failure. Steps progress by the bytes.
 * Errors: SL_ECORRUPT names the path and the place. */
sl_status sl_store_verify_all(const sl_store *store, sl_verified *found, sl_progress *progress);
/* Verifies only the zeros between the sections and behind the last. A new file has zeros there whatever the old one
 * had. So a program that makes a file from another, and verifies the sections itself, calls this too. Errors: as of
 * sl_store_verify_all. */
sl_status sl_store_verify_gaps(const sl_store *store, sl_progress *progress);

/* Copies the section into `to` (section->size bytes) and verifies the copy. */
sl_status sl_store_copy(const sl_store *store, const sl_file_section *section, void *to, sl_progress *progress);
/* Copies the section's first `size` bytes. A part has no CRC to verify it by, nor has a section that is written in
 * place. */
sl_status sl_store_copy_first(const sl_store *store, const sl_file_section *section, void *to, uint64_t size,
                              sl_progress *progress);
/* Copies the section into the parts of rows. */
sl_status sl_store_copy_rows(const sl_store *store, const sl_file_section *section, const sl_split_rows *rows,
                             uint64_t size, sl_progress *progress);
/* Move bytes [at, at + size) of a section with these rows: gather from the parts into `bytes`, or scatter them back. */
void sl_split_gather(const sl_split_rows *rows, uint64_t at, size_t size, uint8_t *bytes);
void sl_split_scatter(const sl_split_rows *rows, uint64_t at, size_t size, const uint8_t *bytes);

#endif
