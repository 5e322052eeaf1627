#define _GNU_SOURCE
#include "base/crc32c.h"
#include "storage/store.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BUILD_AGAIN "build it or copy it again"

/* ---------------------------------------------------------------------------------------------------------------
 * The header page
 * ------------------------------------------------------------------------------------------------------------- */

static int has_magic(const void *bytes, uint64_t size) {
    size_t length = sizeof SL_FILE_MAGIC - 1;
    return memcmp(bytes, SL_FILE_MAGIC, size < length ? (size_t)size : length) == 0;
}

static sl_status check_header(const char *path, const sl_file_header *header, uint64_t size) {
    if (!has_magic(header, size)) return sl_fail(SL_EFORMAT, "%s: not a Shortlist index", path);
    if (size < SL_HEADER_SIZE)
        return sl_fail(SL_ECORRUPT, "%s: truncated: %llu bytes, less than the header's %u; " BUILD_AGAIN, path,
                       (unsigned long long)size, SL_HEADER_SIZE);
    if (header->endian == __builtin_bswap32(SL_FILE_ENDIAN))
        return sl_fail(SL_EFORMAT, "%s: written on a big-endian machine; build it again on this one", path);
    if (header->version > SL_FILE_VERSION)
        return sl_fail(SL_EVERSION,
                       "%s: written by a newer version (format %u; this library reads up to %u), or damaged; "
                       "use a newer library",
                       path, header->version, SL_FILE_VERSION);
    uint32_t crc = sl_crc32c(0, header, offsetof(sl_file_header, crc32c));
    if (crc != header->crc32c || header->endian != SL_FILE_ENDIAN || header->version == 0 ||
        header->header_size != SL_HEADER_SIZE)
        return sl_fail(SL_ECORRUPT, "%s: the header is damaged; " BUILD_AGAIN, path);
    if (size < header->file_size)
        return sl_fail(SL_ECORRUPT, "%s: truncated: %llu bytes of %llu; " BUILD_AGAIN, path, (unsigned long long)size,
                       (unsigned long long)header->file_size);
    if (size > header->file_size)
        return sl_fail(SL_ECORRUPT, "%s: %llu bytes follow the index's %llu; " BUILD_AGAIN, path,
                       (unsigned long long)(size - header->file_size), (unsigned long long)header->file_size);
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

/* Behind the section with its slack, or 0 where the sum wraps. */
static uint64_t end_of(const sl_file_section *section) {
    uint64_t end;
    if (__builtin_add_overflow(section->offset, section->size, &end)) return 0;
    if (__builtin_add_overflow(end, SL_SECTION_SLACK, &end)) return 0;
    return end;
}

static sl_status check_section(const char *path, const sl_file_header *header, const sl_file_section *section) {
    uint64_t end = end_of(section);
    if (section->offset < SL_HEADER_SIZE || section->offset % SL_SECTION_ALIGN != 0 || end == 0 ||
        end > header->file_size)
        return sl_fail(SL_ECORRUPT, "%s: section %u lies outside the file; " BUILD_AGAIN, path, section->kind);
    int known = section->kind >= SL_SECTION_CODES && section->kind <= SL_SECTION_REFINE;
    if (!known && (section->flags & SL_SECTION_REQUIRED))
        return sl_fail(SL_EVERSION, "%s: written by a newer version (it needs section %u); use a newer library", path,
                       section->kind);
    for (const sl_file_section *other = header->sections; other < section; other++) {
        if (other->kind == section->kind)
            return sl_fail(SL_ECORRUPT, "%s: section %u is there twice; " BUILD_AGAIN, path, section->kind);
        if (other->offset < end && section->offset < end_of(other))
            return sl_fail(SL_ECORRUPT, "%s: sections %u and %u overlap; " BUILD_AGAIN, path, other->kind,
                           section->kind);
    }
    return SL_OK;
}

static sl_status check_sections(const char *path, const sl_file_header *header) {
    if (header->section_count > SL_MAX_SECTIONS)
        return sl_fail(SL_ECORRUPT, "%s: %u sections, of %u at most; " BUILD_AGAIN, path, header->section_count,
                       SL_MAX_SECTIONS);
    for (uint32_t i = 0; i < header->section_count; i++)
        SL_TRY(check_section(path, header, &header->sections[i]));
    return SL_OK;
}

/* ---------------------------------------------------------------------------------------------------------------
 * The file
 * ------------------------------------------------------------------------------------------------------------- */

static sl_status open_file(const char *path, int *fd, uint64_t *size) {
    /* Not to wait for the other end of a pipe; files know no such waiting. */
    do
        *fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    while (*fd < 0 && errno == EINTR);
    if (*fd < 0) return sl_fail_errno("cannot open", path);
    struct stat info;
    if (fstat(*fd, &info) != 0) return sl_fail_errno("cannot look at", path);
    if (S_ISDIR(info.st_mode)) return sl_fail(SL_EFORMAT, "%s: a folder; name the index file in it", path);
    if (!S_ISREG(info.st_mode)) return sl_fail(SL_EFORMAT, "%s: not a regular file; copy it to one", path);
    if (info.st_size == 0) return sl_fail(SL_EFORMAT, "%s: an empty file; build the index again", path);
    *size = (uint64_t)info.st_size;
    return SL_OK;
}

static sl_status medium_for(const char *path, sl_place place, const sl_medium **out) {
    *out = sl_medium_of(place);
    if (*out) return SL_OK;
    if (place == SL_PLACE_PMEM)
        return sl_fail(SL_EUNSUPPORTED, "%s: this build has no persistent memory; open it with place map or dram",
                       path);
    return sl_fail(SL_EINVAL, "%s: place %d is none of dram, map and pmem", path, (int)place);
}

static size_t store_bytes(const char *path) {
    return sizeof(sl_store) + strlen(path) + 1;
}

sl_status sl_store_open(const char *path, sl_place place, const sl_allocator *allocator, sl_store **out) {
    *out = NULL;
    const sl_medium *medium;
    SL_TRY(medium_for(path, place, &medium));
    void *block = NULL, *base = NULL;
    int fd = -1;
    uint64_t size = 0;
    sl_status status;
    SL_TRY_GOTO(sl_mem_alloc(allocator, store_bytes(path), &block), done);
    sl_store *store = block;
    SL_TRY_GOTO(open_file(path, &fd, &size), done);
    SL_TRY_GOTO(read_header(fd, path, size, &store->header), done);
    SL_TRY_GOTO(check_header(path, &store->header, size), done);
    SL_TRY_GOTO(check_sections(path, &store->header), done);
    SL_TRY_GOTO(medium->map(fd, path, size, &base), done);
    if (place == SL_PLACE_MAP) medium->advise_random(base, size);
    store->medium = medium;
    store->base = base;
    store->size = size;
    memcpy(store->path, path, strlen(path) + 1);
    *out = store;
done:
    /* The mapping holds the file by itself. */
    if (fd >= 0) close(fd);
    if (status != SL_OK) sl_mem_free(allocator, block, store_bytes(path));
    return status;
}

void sl_store_close(sl_store *store, const sl_allocator *allocator) {
    if (!store) return;
    store->medium->unmap((void *)(uintptr_t)store->base, store->size);
    sl_mem_free(allocator, store, store_bytes(store->path));
}
