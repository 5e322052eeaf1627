/* Changes one section of a file. The other sections keep their bytes, places and CRCs. They aren't read, so damage in
 * them stays damage. Only the zeros between them are read. */
#define _GNU_SOURCE
#include "base/crc32c.h"
#include "base/memory.h"
#include "storage/copy.h"
#include "storage/replace.h"

#include <string.h>
#include <unistd.h>

typedef struct amendment {
    const sl_store *store;
    const sl_section_source *section;
    sl_file_header header; /* of the new file */
    sl_file_section old;   /* the section's old entry; size 0: there was none */
    uint64_t kept;         /* bytes of the old file that are kept */
    sl_replacement file;
    int from;
} amendment;

static uint64_t section_end_of(const sl_file_section *section) {
    return section->offset + section->size + SL_SECTION_SLACK;
}

/* Puts the section behind all others. */
static sl_status make_header(amendment *a) {
    sl_file_header *header = &a->header;
    const sl_section_source *section = a->section;
    uint32_t count = 0;
    *header = a->store->header;
    a->kept = SL_HEADER_SIZE;
    for (uint32_t i = 0; i < header->section_count; i++) {
        const sl_file_section *one = &header->sections[i];
        if (one->kind == section->kind) {
            a->old = *one;
            continue;
        }
        if (section_end_of(one) > a->kept) a->kept = section_end_of(one);
        header->sections[count++] = *one;
    }
    if (count == SL_MAX_SECTIONS)
        return sl_fail(SL_ELIMIT, "%s: has %u sections, and no place for one more", a->store->path, count);
    memset(header->sections + count, 0, (SL_MAX_SECTIONS - count) * sizeof *header->sections);
    header->file_size = a->kept;
    if (section->size) {
        sl_file_section *one = &header->sections[count++];
        *one = (sl_file_section){.kind = section->kind, .flags = section->flags, .size = section->size};
        one->offset = (a->kept + SL_SECTION_ALIGN - 1) / SL_SECTION_ALIGN * SL_SECTION_ALIGN;
        one->crc32c = sl_crc32c(0, section->data, (size_t)section->size);
        header->file_size = section_end_of(one);
    }
    header->section_count = count;
    header->crc32c = sl_crc32c(0, header, offsetof(sl_file_header, crc32c));
    return SL_OK;
}

static sl_status copy_kept(amendment *a, const sl_file_ops *ops, sl_progress *progress) {
    sl_file_copy copy = {.ops = &a->file.ops,
                         .by_system = !ops || (!ops->write && !ops->pwrite),
                         .from = a->from,
                         .to = a->file.fd,
                         .from_path = a->store->path,
                         .to_path = a->file.temporary,
                         .size = a->kept,
                         .progress = progress};
    return sl_copy_file(&copy);
}

static sl_status set_size(const amendment *a, uint64_t size) {
    if (a->file.ops.ftruncate(a->file.ops.ctx, a->file.fd, size) == 0) return SL_OK;
    return sl_fail_errno("cannot set the size of", a->file.temporary);
}

/* Writes zeros over the old section, as there are zeros between sections. */
static sl_status clear_old(const amendment *a) {
    static const uint8_t zeros[SL_SECTION_ALIGN];
    uint64_t end = a->old.offset + a->old.size < a->kept ? a->old.offset + a->old.size : a->kept;
    for (uint64_t at = a->old.offset, some; at < end; at += some) {
        some = end - at < sizeof zeros ? end - at : sizeof zeros;
        SL_TRY(sl_write_at(&a->file.ops, a->file.fd, a->file.temporary, zeros, (size_t)some, at));
    }
    return SL_OK;
}

static sl_status write_changes(const amendment *a) {
    const sl_file_header *header = &a->header;
    /* A file that shares blocks with the old one has all its bytes. */
    SL_TRY(set_size(a, a->kept));
    SL_TRY(clear_old(a));
    SL_TRY(set_size(a, header->file_size));
    SL_TRY(sl_write_at(&a->file.ops, a->file.fd, a->file.temporary, header, sizeof *header, 0));
    if (!a->section->size) return SL_OK;
    return sl_write_at(&a->file.ops, a->file.fd, a->file.temporary, a->section->data, (size_t)a->section->size,
                       header->sections[header->section_count - 1].offset);
}

static sl_status amend_file(amendment *a, const char *path, const sl_file_ops *ops, sl_origin *origin,
                            sl_progress *progress) {
    SL_TRY(make_header(a));
    /* The zeros behind the kept bytes are written anew, so they are verified first. */
    SL_TRY(sl_store_verify_gaps(a->store, progress));
    SL_TRY(sl_replace_begin(&a->file, path, ops, origin, -1));
    a->file.print = (sl_fingerprint){a->header.crc32c, 0};
    sl_status status = sl_replace_keep_writers_off(&a->file);
    if (status == SL_OK) status = copy_kept(a, ops, progress);
    if (status == SL_OK) status = write_changes(a);
    if (status == SL_OK) status = sl_replace_commit(&a->file, progress);
    return status == SL_OK ? SL_OK : sl_replace_discard(&a->file, status);
}

/* An amendment has three paths and a page: too much for the stack. */
sl_status sl_store_amend(const sl_store *store, const char *path, const sl_file_ops *ops,
                         const sl_section_source *section, sl_origin *origin, sl_progress *progress) {
    void *block;
    const int from = sl_store_reopen(store);
    if (from < 0)
        return sl_fail(SL_EBUSY,
                       "%s: was replaced or changed by another since it was opened; open it again and make "
                       "the change anew, or save under another name",
                       store->path);
    sl_status status = sl_mem_alloc(&store->allocator, sizeof(amendment), &block);
    if (status == SL_OK) {
        amendment *a = block;
        a->store = store;
        a->section = section;
        a->from = from;
        status = amend_file(a, path, ops, origin, progress);
    }
    sl_mem_free(&store->allocator, block, sizeof(amendment));
    close(from);
    return status;
}
