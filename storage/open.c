#define _GNU_SOURCE
#include "base/crc32c.h"
#include "storage/ops.h"
#include "storage/pmem.h"
#include "storage/store.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAKE_AGAIN "make it or copy it again"

/* ---------------------------------------------------------------------------------------------------------------
 * The header page
 * ------------------------------------------------------------------------------------------------------------- */

/* A file cut off within its magic has the magic, if the remaining bytes match. */
static int has_magic(const sl_file_header *header, uint64_t size, const sl_file_type *type) {
    size_t length = sizeof header->magic;
    return memcmp(header->magic, type->magic, size < length ? (size_t)size : length) == 0;
}

/* The name without its article. */
static const char *bare_name(const sl_file_type *type) {
    return strchr(type->name, ' ') + 1;
}

/* Those of sl_file_kind come first, in its order. */
static const sl_file_type *const types[] = {&sl_index_file, &sl_ranker_file, &sl_items_file, &sl_split_file};
enum { TYPES = sizeof types / sizeof *types, KINDS = SL_FILE_ITEMS + 1 };

static sl_status refuse_other(const char *path, const sl_file_header *header, uint64_t size, const sl_file_type *type) {
    for (size_t i = 0; i < TYPES; i++)
        if (size >= sizeof header->magic && has_magic(header, size, types[i]))
            return sl_fail(SL_EFORMAT, "%s is %s, not %s; name %s here", path, types[i]->name, type->name, type->name);
    return sl_fail(SL_EFORMAT, "%s: not a Shortlist %s; name %s here", path, bare_name(type), type->name);
}

static int all_zero(const void *bytes, size_t size) {
    const unsigned char *at = bytes;
    for (size_t i = 0; i < size; i++)
        if (at[i]) return 0;
    return 1;
}

static sl_status check_header(const char *path, const sl_file_type *type, const sl_file_header *header, uint64_t size) {
    if (!has_magic(header, size, type)) return refuse_other(path, header, size, type);
    if (size < SL_HEADER_SIZE)
        return sl_fail(SL_ECORRUPT, "%s: truncated: %llu bytes, less than the header's %u; " MAKE_AGAIN, path,
                       (unsigned long long)size, SL_HEADER_SIZE);
    if (header->endian == __builtin_bswap32(SL_FILE_ENDIAN))
        return sl_fail(SL_EFORMAT, "%s: written on a big-endian machine; make it again on this one", path);
    if (header->version > type->version)
        return sl_fail(SL_EVERSION,
                       "%s: written by a newer version (format %u; this library reads up to %u), or damaged; "
                       "use a newer library",
                       path, header->version, type->version);
    uint32_t crc = sl_crc32c(0, header, offsetof(sl_file_header, crc32c));
    if (crc != header->crc32c || header->endian != SL_FILE_ENDIAN || header->version == 0 ||
        header->header_size != SL_HEADER_SIZE)
        return sl_fail(SL_ECORRUPT, "%s: the header is damaged; " MAKE_AGAIN, path);
    if (size < header->file_size)
        return sl_fail(SL_ECORRUPT, "%s: truncated: %llu bytes of %llu; " MAKE_AGAIN, path, (unsigned long long)size,
                       (unsigned long long)header->file_size);
    if (size > header->file_size)
        return sl_fail(SL_ECORRUPT, "%s: %llu bytes follow the %s's %llu; " MAKE_AGAIN, path,
                       (unsigned long long)(size - header->file_size), bare_name(type),
                       (unsigned long long)header->file_size);
    if (type->fields_end == SL_HEADER_COMMON &&
        !all_zero((const char *)header + SL_HEADER_COMMON, offsetof(sl_file_header, sections) - SL_HEADER_COMMON))
        return sl_fail(SL_ECORRUPT, "%s: the header has fields that no header of %s has; " MAKE_AGAIN, path,
                       type->name);
    return SL_OK;
}

static sl_status read_header(int fd, const char *path, uint64_t size, sl_file_header *header) {
    size_t wanted = size < sizeof *header ? (size_t)size : sizeof *header;
    for (size_t done = 0; done < wanted;) {
        ssize_t got = pread(fd, (char *)header + done, wanted - done, (off_t)done);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return sl_fail_errno("cannot read", path);
        if (got == 0) return sl_fail(SL_ECORRUPT, "%s: became shorter while it was read; open it again", path);
        done += (size_t)got;
    }
    return SL_OK;
}

/* ---------------------------------------------------------------------------------------------------------------
 * The section table
 * ------------------------------------------------------------------------------------------------------------- */

/* Returns the end of the section, slack included; 0: the sum wraps. */
static uint64_t end_of(const sl_file_section *section) {
    uint64_t end;
    if (__builtin_add_overflow(section->offset, section->size, &end)) return 0;
    if (__builtin_add_overflow(end, SL_SECTION_SLACK, &end)) return 0;
    return end;
}

static sl_status check_section(const char *path, const sl_file_type *type, const sl_file_header *header,
                               const sl_file_section *section) {
    uint64_t end = end_of(section);
    if (section->offset < SL_HEADER_SIZE || section->offset % SL_SECTION_ALIGN != 0 || end == 0 ||
        end > header->file_size)
        return sl_fail(SL_ECORRUPT, "%s: section %u (%s) lies outside the file; " MAKE_AGAIN, path, section->kind,
                       sl_section_name(section->kind));
    int known = section->kind < 64 && (type->known_kinds >> section->kind & 1);
    if (!known && (section->flags & SL_SECTION_REQUIRED))
        return sl_fail(SL_EVERSION, "%s: written by a newer version (it needs section %u); use a newer library", path,
                       section->kind);
    for (const sl_file_section *other = header->sections; other < section; other++) {
        if (other->kind == section->kind)
            return sl_fail(SL_ECORRUPT, "%s: section %u (%s) is there twice; " MAKE_AGAIN, path, section->kind,
                           sl_section_name(section->kind));
        if (other->offset < end && section->offset < end_of(other))
            return sl_fail(SL_ECORRUPT, "%s: sections %u (%s) and %u (%s) overlap; " MAKE_AGAIN, path, other->kind,
                           sl_section_name(other->kind), section->kind, sl_section_name(section->kind));
    }
    return SL_OK;
}

static sl_status check_sections(const char *path, const sl_file_type *type, const sl_file_header *header) {
    if (header->section_count > SL_MAX_SECTIONS)
        return sl_fail(SL_ECORRUPT, "%s: %u sections, of %u at most; " MAKE_AGAIN, path, header->section_count,
                       SL_MAX_SECTIONS);
    for (uint32_t i = 0; i < header->section_count; i++)
        SL_TRY(check_section(path, type, header, &header->sections[i]));
    return SL_OK;
}

/* ---------------------------------------------------------------------------------------------------------------
 * The file
 * ------------------------------------------------------------------------------------------------------------- */

/* `path` is for messages. */
static sl_status open_file(const char *resolved, const char *path, const sl_file_type *type, int *fd,
                           struct stat *info) {
    /* O_NONBLOCK: opening a pipe must not wait for its other end. Regular files never wait. */
    do
        *fd = open(resolved, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    while (*fd < 0 && errno == EINTR);
    if (*fd < 0) return sl_fail_errno("cannot open", path);
    if (fstat(*fd, info) != 0) return sl_fail_errno("cannot look at", path);
    if (S_ISDIR(info->st_mode)) return sl_fail(SL_EFORMAT, "%s: a folder; name the %s in it", path, bare_name(type));
    if (!S_ISREG(info->st_mode)) return sl_fail(SL_EFORMAT, "%s: not a regular file; copy it to one", path);
    if (info->st_size == 0) return sl_fail(SL_EFORMAT, "%s: an empty file; make the %s again", path, bare_name(type));
    return SL_OK;
}

static sl_status medium_for(const char *path, sl_place place, const sl_medium **out) {
    *out = sl_medium_of(place);
    if (*out) return SL_OK;
    return sl_fail(SL_EINVAL, "%s: place %d is none of dram, map and pmem", path, (int)place);
}

static size_t store_bytes(const char *path, const char *resolved) {
    return sizeof(sl_store) + strlen(path) + 1 + strlen(resolved) + 1;
}

static void keep_paths(sl_store *store, const char *path, const char *resolved) {
    char *behind = store->path + strlen(path) + 1;
    memcpy(store->path, path, strlen(path) + 1);
    memcpy(behind, resolved, strlen(resolved) + 1);
    store->resolved = behind;
}

sl_status sl_store_open(const char *path, const sl_file_type *type, sl_place place, const sl_allocator *allocator,
                        sl_store **out) {
    *out = NULL;
    const sl_medium *medium;
    SL_TRY(medium_for(path, place, &medium));
    char found[PATH_MAX];
    const char *resolved = realpath(path, found) ? found : path;
    void *block = NULL, *base = NULL;
    int fd = -1;
    uint64_t size = 0;
    struct stat info;
    sl_status status;
    SL_TRY_GOTO(sl_mem_alloc(allocator, store_bytes(path, resolved), &block), done);
    sl_store *store = block;
    SL_TRY_GOTO(open_file(resolved, path, type, &fd, &info), done);
    size = (uint64_t)info.st_size;
    SL_TRY_GOTO(read_header(fd, path, size, &store->header), done);
    SL_TRY_GOTO(check_header(path, type, &store->header, size), done);
    SL_TRY_GOTO(check_sections(path, type, &store->header), done);
    SL_TRY_GOTO(medium->map(fd, path, size, &base), done);
    if (place != SL_PLACE_DRAM) medium->advise_random(base, size);
    store->medium = medium;
    store->allocator = *allocator;
    store->base = base;
    store->fd = place == SL_PLACE_DRAM ? fd : -1;
    store->size = size;
    store->device = (uint64_t)info.st_dev;
    store->inode = (uint64_t)info.st_ino;
    store->dax = sl_pmem_is_dax(fd);
    store->threads = 1;
    store->detached = store->healed = 0;
    store->watched = store->given_up = 0;
    store->writer = -1;
    store->access = sl_access_of(fd, &info);
    keep_paths(store, path, resolved);
    *out = store;
done:
    /* The mapping alone keeps the file. */
    if (fd >= 0 && (status != SL_OK || store->fd < 0)) close(fd);
    if (status != SL_OK) sl_mem_free(allocator, block, store_bytes(path, resolved));
    return status;
}

void sl_store_close(sl_store *store, const sl_allocator *allocator) {
    if (!store) return;
    store->medium->unmap(store->base, store->size);
    if (store->fd >= 0) close(store->fd);
    sl_mem_free(allocator, store, store_bytes(store->path, store->resolved));
}

int sl_store_reopen(const sl_store *store) {
    const sl_file_ops ops = sl_file_ops_of(NULL);
    const int kept = store->fd >= 0 ? store->fd : store->writer;
    if (kept >= 0) return fcntl(kept, F_DUPFD_CLOEXEC, 0);
    int fd = sl_open_retrying(&ops, store->resolved, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
    if (fd < 0 || sl_store_is(store, fd)) return fd;
    close(fd);
    return -1;
}

int sl_store_is(const sl_store *store, int fd) {
    struct stat info;
    return fstat(fd, &info) == 0 && (uint64_t)info.st_dev == store->device && (uint64_t)info.st_ino == store->inode;
}

int sl_store_has_name(const sl_store *store) {
    struct stat info;
    return stat(store->resolved, &info) == 0 && (uint64_t)info.st_dev == store->device &&
           (uint64_t)info.st_ino == store->inode;
}

static sl_status fail_replaced(const sl_store *store) {
    return sl_fail(SL_EBUSY, "%s: was replaced while it was opened; open it again", store->path);
}

sl_status sl_store_open_to_write(const sl_store *store, const sl_file_ops *ops, int *fd) {
    *fd = sl_open_retrying(ops, store->resolved, O_RDWR | O_CLOEXEC, 0);
    if (*fd < 0) return sl_fail_errno("cannot open for writing", store->path);
    if (sl_store_is(store, *fd)) return SL_OK;
    (void)ops->close(ops->ctx, *fd);
    *fd = -1;
    return fail_replaced(store);
}

sl_status sl_store_check_name(const sl_store *store) {
    return sl_store_has_name(store) ? SL_OK : fail_replaced(store);
}

sl_status sl_store_map_privately(sl_store *store, int fd) {
    void *base = mmap(NULL, (size_t)store->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, fd, 0);
    if (base == MAP_FAILED) return sl_fail_errno("cannot map", store->path);
    store->medium->unmap(store->base, store->size);
    store->base = base;
    store->detached = 1;
    store->medium->advise_random(base, store->size);
    return SL_OK;
}

sl_status sl_file_kind_of(const char *path, sl_file_kind *out) {
    /* A name that fits any type, for messages. */
    static const sl_file_type any = {.name = "an index, model or item table"};
    if (!path || !out) return sl_fail(SL_EINVAL, "path or out is NULL");
    sl_file_header header;
    struct stat info;
    int fd = -1;
    sl_status status;
    SL_TRY_GOTO(open_file(path, path, &any, &fd, &info), done);
    SL_TRY_GOTO(read_header(fd, path, (uint64_t)info.st_size, &header), done);
    for (size_t i = 0; i < KINDS; i++) {
        if (!has_magic(&header, (uint64_t)info.st_size, types[i])) continue;
        *out = (sl_file_kind)i;
        goto done;
    }
    status = sl_fail(SL_EFORMAT, "%s: not a Shortlist %s; name one of these here", path, bare_name(&any));
done:
    if (fd >= 0) close(fd);
    return status;
}
