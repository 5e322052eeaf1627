/* Whole files: written atomically, opened without being trusted. What the bytes of a section mean is for the room to
 * know whose type of file it is: hnsw, ranker or recommend. */
#ifndef SL_STORAGE_STORE_H
#define SL_STORAGE_STORE_H

#include "base/memory.h"
#include "base/thread.h"
#include "storage/format.h"
#include "storage/ops.h"

/* A part of each row of a section, and where the rows' parts lie in memory: `size` bytes at `offset` of a row, `step`
 * bytes from one row's to the next's. */
typedef struct sl_part {
    uint8_t *at;
    size_t step;
    size_t size;
    size_t offset;
} sl_part;

#define SL_MAX_PARTS    4u
#define SL_SPLIT_WINDOW ((size_t)2 << 20)

/* Rows of a section that lie in memory in parts; what no part covers is 0. Of reading, parts may leave some out. */
typedef struct sl_split_rows {
    sl_part parts[SL_MAX_PARTS];
    size_t count;
    size_t row;   /* bytes of one in the section */
    void *window; /* of writing: scratch of SL_SPLIT_WINDOW bytes */
} sl_split_rows;

typedef struct sl_origin sl_origin; /* origin.h */

/* One section to write: size bytes at data, or rows; kind and flags go to the table. Where room is larger than size,
 * the section is as long as that, the rest of it zeros that take no blocks where the file system has holes. */
typedef struct sl_section_source {
    uint32_t kind;
    uint32_t flags;
    const void *data;
    uint64_t size;
    uint64_t room;
    const sl_split_rows *rows; /* NULL: data */
} sl_section_source;

/* What a file is written from. */
typedef struct sl_file_content {
    const sl_file_type *type;
    const sl_file_header *header; /* only the type's own fields count; NULL: it has none */
    const sl_section_source *sections;
    size_t section_count;
} sl_file_content;

/* Writes a file of this type to path by way of a temporary file in the same folder (unique, so that two saves at once
 * do not meet), fsync, rename, fsync of the folder. A symbolic link is written through. Of the header the fields of the
 * type's own are taken, and all others filled in; NULL for a type that has none. ops may be NULL. Steps progress by the
 * bytes of the sections and ends it before the rename, so that a cancelled save never changes path. Cancelled or
 * failed, the temporary file is removed and path is untouched; only where the last sync, that of the folder, fails does
 * path already hold the new file, and the message says so. `origin`, which may be NULL, is the file that the sections
 * come from: a new file gets its access, and one that takes its place becomes the origin. SL_EBUSY where path is being
 * written in place, is claimed by another, or is the origin and was changed by another. */
sl_status sl_store_save(const char *path, const sl_file_content *content, const sl_file_ops *ops, sl_origin *origin,
                        sl_progress *progress);

/* Bytes of the file that sl_store_save would write for these sections. */
uint64_t sl_store_file_size(const sl_section_source *sections, size_t section_count);

/* Layer 0's media, one entry each. */
typedef struct sl_medium {
    sl_place place;
    /* Maps size bytes of an open read-only file. */
    sl_status (*map)(int fd, const char *path, uint64_t size, void **out);
    void (*unmap)(void *base, uint64_t size);
    /* Advice for a range that will be read at random, and for one that is about to be read in order. */
    void (*advise_random)(const void *at, uint64_t size);
    void (*advise_soon)(const void *at, uint64_t size);
} sl_medium;

/* NULL for a place there is none of. PLACE_DRAM maps its file too, only to copy it. */
const sl_medium *sl_medium_of(sl_place place);

typedef struct sl_store {
    const sl_medium *medium;
    uint8_t *base; /* the mapping; its owner alone knows whether it may be written to */
    int fd;        /* of place DRAM, which all is copied from; else -1 */
    uint64_t size;
    uint64_t device, inode; /* of the file that is mapped */
    int dax;                /* loads from it go to persistent memory itself, and not to copies of its pages */
    size_t threads;         /* that copy and sum a section, as of sl_crew_run; 1 */
    int detached;           /* it is private: pages that are written to become this process's own */
    int writer;             /* open on the file, of the handle that writes it in place; else -1 */
    sl_access access;       /* the file's when it was opened */
    int healed;             /* and has what a crashed writer's log says, which the file has not */
    uint64_t watched;       /* atomic: the second of the clock in which sl_writable_watch last looked */
    uint64_t given_up;      /* atomic: the superblock's sequence with which it found a damaged log; 0: none */
    sl_file_header header;  /* verified copy: the file may change under the mapping, this does not */
    const char *resolved;   /* the path from the root, links resolved: whatever the process's folder is by then */
    char path[];            /* as it was given, for messages */
} sl_store;

/* Opens and maps path, a file of this type; verifies magic, version, byte order, header CRC, file size against the
 * header, that a type without fields of its own has none, and of every section: known to the type or not required,
 * offset aligned, inside the file with its slack, not overlapping another, no kind twice. Constant time. Errors:
 * SL_EIO, SL_EFORMAT (another of our types is named), SL_EVERSION, SL_ECORRUPT (truncated, damaged), SL_EUNSUPPORTED,
 * each naming the path and what is wrong. The store itself comes from the allocator. Under PLACE_MAP the whole mapping
 * is advised to be read at random. sl_store_close takes NULL. */
sl_status sl_store_open(const char *path, const sl_file_type *type, sl_place place, const sl_allocator *allocator,
                        sl_store **out);
void sl_store_close(sl_store *store, const sl_allocator *allocator);

/* Whether fd is open on the file that the store has mapped: not on one that has taken its place. */
int sl_store_is(const sl_store *store, int fd);
/* Whether that file still has its name. */
int sl_store_has_name(const sl_store *store);
/* The same as a status, for whoever is opening it: SL_EBUSY where it was replaced meanwhile. */
sl_status sl_store_check_name(const sl_store *store);
/* The file that the store has mapped, open to read; -1 where its name is another's by now, or nobody's, and the store
 * has not kept it open. */
int sl_store_reopen(const sl_store *store);
/* Opens it to be written to, by these operations. Errors: SL_EBUSY: its name is another file's. */
sl_status sl_store_open_to_write(const sl_store *store, const sl_file_ops *ops, int *fd);
/* Puts a private mapping of fd, open on the same file, in the place of the store's. Pages that are written to become
 * this process's own. */
sl_status sl_store_map_privately(sl_store *store, int fd);

/* A copy of the file at path, put in place of `copy` as by sl_store_save; path may be written in place meanwhile. The
 * copy has what a sync left no earlier than the call began, an identity of its own and no log. With write operations
 * of the caller's all bytes go through them; otherwise blocks are shared where the file system can. Holes stay holes.
 * The progress is started anew, in bytes. */
sl_status sl_store_snapshot(const char *path, const sl_file_type *type, const char *copy, const sl_file_ops *ops,
                            sl_progress *progress);

/* The store's file with one section changed, added, or of size 0 taken out, put in place of path as by sl_store_save.
 * All other sections keep their bytes, places and CRCs, and are not read: the system copies them, or shares their
 * blocks. Not of a file that is written in place. Errors as of sl_store_save; SL_EBUSY where the file has lost its
 * name. */
sl_status sl_store_amend(const sl_store *store, const char *path, const sl_file_ops *ops,
                         const sl_section_source *section, sl_origin *origin, sl_progress *progress);

/* The section of a kind, or NULL. */
const sl_file_section *sl_store_section(const sl_store *store, uint32_t kind);
/* Its bytes in the mapping. */
void *sl_store_data(const sl_store *store, const sl_file_section *section);
/* Reads the section against its CRC, from the file itself while that has its name: a file that became shorter is
 * SL_ECORRUPT then and no signal, and holes stay holes. SL_ECORRUPT names the path and the section. Steps progress by
 * its bytes. A section that is written in place has no CRC and is passed over: see sl_page_sums_verify. */
sl_status sl_store_verify(const sl_store *store, const sl_file_section *section, sl_progress *progress);
/* Pages of a file that is written in place which were held to their sums, see page_sums.h. */
typedef struct sl_pages_found {
    uint64_t checked; /* that were read; 0 where the file has no sums, or sums out of force */
    uint64_t bad;
} sl_pages_found;

/* What of a file was verified. */
typedef struct sl_verified {
    size_t sections; /* that have a CRC */
    uint64_t bytes;  /* of the header, sections and what lies between them */
    sl_pages_found pages;
    int unverified; /* the file is written in place, and its pages have no sums in force */
} sl_verified;

/* Every byte of the file, read from the file itself while that has its name: the header page against the copy that was
 * verified when it was opened, each section against its CRC, zeros between them; of a file that is written in place
 * each page against its sum. *found counts what was verified, also on failure: SL_ECORRUPT, naming the path and the
 * place. Steps progress by the bytes. */
sl_status sl_store_verify_all(const sl_store *store, sl_verified *found, sl_progress *progress);
/* The zeros between the sections alone, and behind the last. A new file has zeros there whatever the old one had:
 * whoever makes one from another and verifies the sections themselves calls this too. Errors: as sl_store_verify_all.
 */
sl_status sl_store_verify_gaps(const sl_store *store, sl_progress *progress);

/* Copies it into to (section->size bytes) and verifies the copy. */
sl_status sl_store_copy(const sl_store *store, const sl_file_section *section, void *to, sl_progress *progress);
/* Copies its first size bytes. Where these are not all, or it is written in place, there is no CRC to verify them by.
 */
sl_status sl_store_copy_first(const sl_store *store, const sl_file_section *section, void *to, uint64_t size,
                              sl_progress *progress);
/* The same into the parts of rows. */
sl_status sl_store_copy_rows(const sl_store *store, const sl_file_section *section, const sl_split_rows *rows,
                             uint64_t size, sl_progress *progress);
/* Bytes [at, at + size) of a section of these rows, from their parts to `bytes` and back. */
void sl_split_gather(const sl_split_rows *rows, uint64_t at, size_t size, uint8_t *bytes);
void sl_split_scatter(const sl_split_rows *rows, uint64_t at, size_t size, const uint8_t *bytes);

#endif
