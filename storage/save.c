#define _GNU_SOURCE
#include "base/crc32c.h"
#include "base/memory.h"
#include "storage/page_sums.h"
#include "storage/replace.h"
#include "storage/store.h"
#include "storage/superblock.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* Bytes of one write, and between two looks at the progress callback. File systems with large folios keep an aligned
 * write of a huge page as one huge page of the page cache. That helps whoever maps the file next. */
#define CHUNK SL_HUGE_PAGE
static_assert(SL_SPLIT_WINDOW >= CHUNK, "SL_SPLIT_WINDOW");

typedef struct saver {
    sl_replacement file;
    sl_file_header header;
    sl_progress *progress;
    uint64_t at; /* bytes written */
    sl_page_summer summer;
} saver;

/* ---------------------------------------------------------------------------------------------------------------
 * Bytes
 * ------------------------------------------------------------------------------------------------------------- */

static sl_status write_all(saver *s, const void *data, size_t size) {
    const unsigned char *from = data;
    while (size) {
        int64_t written = s->file.ops.write(s->file.ops.ctx, s->file.fd, from, size);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return sl_fail_errno("cannot write to", s->file.temporary);
        if (written == 0 || (uint64_t)written > size)
            return sl_fail(SL_EIO, "cannot write to %s: the system took %lld of %zu bytes; check the device",
                           s->file.temporary, (long long)written, size);
        sl_page_summer_add(&s->summer, from, (size_t)written);
        from += written;
        size -= (size_t)written;
        s->at += (uint64_t)written;
    }
    return SL_OK;
}

/* Writes zeros up to `offset`. A long run becomes a hole, but for its end. */
static sl_status write_zeros_to(saver *s, uint64_t offset) {
    static const unsigned char zeros[SL_SECTION_ALIGN];
    if (offset > s->at && offset - s->at > CHUNK) {
        if (lseek(s->file.fd, (off_t)(offset - sizeof zeros), SEEK_SET) < 0)
            return sl_fail_errno("cannot move in", s->file.temporary);
        sl_page_summer_skip(&s->summer, offset - sizeof zeros - s->at);
        s->at = offset - sizeof zeros;
    }
    while (s->at < offset) {
        uint64_t left = offset - s->at;
        SL_TRY(write_all(s, zeros, left < sizeof zeros ? (size_t)left : sizeof zeros));
    }
    return SL_OK;
}

static int is_zero(const uint8_t *bytes, size_t size) {
    return !bytes[0] && memcmp(bytes, bytes + 1, size - 1) == 0;
}

/* Bytes [at, at + size) of a section; at most CHUNK. */
static const unsigned char *bytes_of(const sl_section_source *source, uint64_t at, size_t size) {
    if (!source->rows) return (const unsigned char *)source->data + at;
    sl_split_gather(source->rows, at, size, source->rows->window);
    return source->rows->window;
}

static sl_status write_section(saver *s, const sl_section_source *source) {
    for (uint64_t done = 0; done < source->size;) {
        size_t room = CHUNK - (size_t)(s->at % CHUNK);
        size_t chunk = source->size - done < room ? (size_t)(source->size - done) : room;
        SL_TRY(write_all(s, bytes_of(source, done, chunk), chunk));
        done += chunk;
        sl_progress_step(s->progress, chunk);
        if (sl_progress_cancelled(s->progress)) return sl_progress_end(s->progress);
    }
    return SL_OK;
}

/* Writes the checksums of all pages before the section. Those of holes are zeros and take no blocks. */
static sl_status write_page_sums(saver *s, uint64_t size) {
    const uint8_t *words = (const uint8_t *)s->summer.words;
    const uint64_t from = s->at;
    for (uint64_t done = 0, some; done < size; done += some) {
        some = size - done < SL_SUMMED_PAGE ? size - done : SL_SUMMED_PAGE;
        if (is_zero(words + done, (size_t)some)) continue;
        SL_TRY(write_zeros_to(s, from + done));
        SL_TRY(write_all(s, words + done, (size_t)some));
        if (sl_progress_cancelled(s->progress)) return sl_progress_end(s->progress);
    }
    return write_zeros_to(s, from + size);
}

/* Sums a section before anything is written: the header comes first, and it holds the CRCs. This pass runs at memory
 * speed. */
static sl_status section_crc(saver *s, const sl_section_source *source, uint32_t *out) {
    uint32_t crc = 0;
    for (uint64_t done = 0; done < source->size;) {
        size_t chunk = source->size - done < CHUNK ? (size_t)(source->size - done) : CHUNK;
        crc = sl_crc32c(crc, bytes_of(source, done, chunk), chunk);
        done += chunk;
        sl_progress_step(s->progress, 0);
        if (sl_progress_cancelled(s->progress)) return sl_progress_end(s->progress);
    }
    *out = crc;
    return SL_OK;
}

/* Returns the place at which a section behind `end` begins. */
static uint64_t section_offset(uint64_t end) {
    return (end + SL_SECTION_ALIGN - 1) / SL_SECTION_ALIGN * SL_SECTION_ALIGN;
}

static uint64_t section_end(uint64_t offset, uint64_t size) {
    return offset + size + SL_SECTION_SLACK;
}

static uint64_t section_size(const sl_section_source *source) {
    return source->room > source->size ? source->room : source->size;
}

uint64_t sl_store_file_size(const sl_section_source *sections, size_t section_count) {
    uint64_t end = SL_HEADER_SIZE;
    for (size_t i = 0; i < section_count; i++)
        end = section_end(section_offset(end), section_size(&sections[i]));
    return end;
}

/* Fills in the header. The type's own fields are the caller's and are in it already. */
static sl_status fill_header(saver *s, const sl_file_content *content) {
    sl_file_header *header = &s->header;
    const sl_section_source *sections = content->sections;
    const size_t count = content->section_count;
    if (count > SL_MAX_SECTIONS)
        return sl_fail(SL_ELIMIT, "%zu sections; a file holds %u at most", count, SL_MAX_SECTIONS);
    memcpy(header->magic, content->type->magic, sizeof header->magic);
    header->version = content->type->version;
    header->endian = SL_FILE_ENDIAN;
    header->header_size = SL_HEADER_SIZE;
    header->section_count = (uint32_t)count;
    header->file_size = sl_store_file_size(sections, count);
    uint64_t end = SL_HEADER_SIZE;
    for (size_t i = 0; i < count; i++) {
        sl_file_section *section = &header->sections[i];
        section->kind = sections[i].kind;
        section->flags = sections[i].flags;
        section->offset = section_offset(end);
        section->size = section_size(&sections[i]);
        if (!(section->flags & SL_SECTION_CHANGING)) SL_TRY(section_crc(s, &sections[i], &section->crc32c));
        end = section_end(section->offset, section->size);
    }
    header->crc32c = sl_crc32c(0, header, offsetof(sl_file_header, crc32c));
    return SL_OK;
}

/* Starts the page checksums of a file that will be written in place. They cover the head page too, which lies behind
 * them. */
static sl_status begin_sums(saver *s, const sl_section_source *sections) {
    const sl_file_header *header = &s->header;
    const sl_section_source *live = NULL;
    uint64_t pages = 0;
    for (size_t i = 0; i < header->section_count; i++) {
        if (sections[i].kind == SL_SECTION_LIVE) live = &sections[i];
        if (sections[i].kind == SL_SECTION_PAGE_SUMS) pages = header->sections[i].offset / SL_SUMMED_PAGE;
    }
    if (!pages || !live) return SL_OK;
    SL_TRY(sl_page_summer_init(&s->summer, pages));
    s->summer.words[pages] = sl_page_sum(0, (const uint8_t *)live->data + SL_LIVE_HEAD, SL_LIVE_PAGE);
    return SL_OK;
}

static sl_status write_file(saver *s, const sl_section_source *sections) {
    const sl_file_header *header = &s->header;
    SL_TRY(begin_sums(s, sections));
    SL_TRY(write_all(s, header, sizeof *header));
    for (size_t i = 0; i < header->section_count; i++) {
        SL_TRY(write_zeros_to(s, header->sections[i].offset));
        if (sections[i].kind == SL_SECTION_PAGE_SUMS)
            SL_TRY(write_page_sums(s, sections[i].room));
        else
            SL_TRY(write_section(s, &sections[i]));
    }
    return write_zeros_to(s, header->file_size);
}

static sl_status save_file(saver *s, const sl_file_content *content) {
    sl_status status;
    SL_TRY_GOTO(sl_replace_keep_writers_off(&s->file), done);
    SL_TRY_GOTO(fill_header(s, content), done);
    s->file.print = sl_fingerprint_of(&s->header, content->sections);
    SL_TRY_GOTO(write_file(s, content->sections), done);
    status = sl_replace_commit(&s->file, s->progress);
done:
    sl_page_summer_free(&s->summer);
    return status == SL_OK ? SL_OK : sl_replace_discard(&s->file, status);
}

/* A saver has three paths and a page: too much for the stack. */
static sl_status create_saver(const sl_file_content *content, sl_progress *progress, saver **out) {
    const sl_allocator allocator = sl_allocator_of(NULL);
    void *block;
    SL_TRY(sl_mem_alloc(&allocator, sizeof(saver), &block));
    *out = block;
    (*out)->progress = progress;
    if (content->header) memcpy(&(*out)->header, content->header, content->type->fields_end);
    return SL_OK;
}

static void free_saver(saver *s) {
    const sl_allocator allocator = sl_allocator_of(NULL);
    SL_FREE(&allocator, s);
}

sl_status sl_store_save(const char *path, const sl_file_content *content, const sl_file_ops *ops, sl_origin *origin,
                        sl_progress *progress) {
    saver *s;
    SL_TRY(create_saver(content, progress, &s));
    sl_status status = sl_replace_begin(&s->file, path, ops, origin, -1);
    if (status == SL_OK) status = save_file(s, content);
    free_saver(s);
    return status;
}

/* ---------------------------------------------------------------------------------------------------------------
 * A file that several ranks write
 * ------------------------------------------------------------------------------------------------------------- */

/* A rank writes whole units of the file, so no two ranks write to one page. */
enum { SHARED_UNIT = 64 * 1024 };

/* The other ranks open rank 0's temporary file by its name. */
static sl_status open_temporary(saver *s) {
    sl_replacement *r = &s->file;
    r->fd = sl_open_retrying(&r->ops, r->temporary, O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0);
    if (r->fd >= 0) return SL_OK;
    const sl_status status = sl_fail_errno("cannot open the temporary file of rank 0", r->temporary);
    return errno == ENOENT ? sl_fail_in(status, "the output's folder must be one that all machines ranks") : status;
}

/* Every rank has summed all sections. Equal headers prove that they have the same index. */
static sl_status check_headers(const saver *s, const sl_ranks *ranks, sl_status mine) {
    sl_file_header first = s->header;
    SL_TRY(sl_share_broadcast(ranks, mine, &first, sizeof first));
    for (size_t i = 0; i < first.section_count && mine == SL_OK; i++)
        if (memcmp(&first.sections[i], &s->header.sections[i], sizeof *first.sections) != 0)
            mine = sl_fail(SL_ECORRUPT,
                           "section %u of the index differs from that of rank 0; give all ranks the same processors, "
                           "or the same SHORTLIST_MAX_ISA, and the same version",
                           (unsigned)s->header.sections[i].kind);
    if (mine == SL_OK && memcmp(&first, &s->header, sizeof first) != 0)
        mine = sl_fail(SL_ECORRUPT, "the header of the index differs from that of rank 0");
    return sl_ranks_agree(ranks, mine);
}

/* Writes the rank's part of a section. */
static sl_status write_section_part(saver *s, const sl_section_source *source, uint64_t offset, sl_range part) {
    const uint64_t end = offset + source->size < part.end ? offset + source->size : part.end;
    for (uint64_t at = offset > part.first ? offset : part.first; at < end;) {
        const uint64_t room = CHUNK - at % CHUNK;
        const size_t size = (size_t)(end - at < room ? end - at : room);
        SL_TRY(sl_write_at(&s->file.ops, s->file.fd, s->file.temporary, bytes_of(source, at - offset, size), size, at));
        at += size;
        sl_progress_step(s->progress, size);
        if (sl_progress_cancelled(s->progress)) return sl_progress_end(s->progress);
    }
    return SL_OK;
}

/* Rank 0 sets the size, so the gaps between sections are zeros. */
static sl_status prepare_temporary(saver *s, const sl_ranks *ranks) {
    const sl_file_ops *ops = &s->file.ops;
    if (ranks->rank) return open_temporary(s);
    if (ops->ftruncate(ops->ctx, s->file.fd, s->header.file_size) == 0) return SL_OK;
    return sl_fail_errno("cannot set the size of", s->file.temporary);
}

/* Writes the rank's part of the file, without the header. Rank 0 syncs later. */
static sl_status write_part(saver *s, const sl_file_content *content, const sl_ranks *ranks) {
    const sl_range part = sl_share_mine(ranks, s->header.file_size, SHARED_UNIT);
    SL_TRY(prepare_temporary(s, ranks));
    for (size_t i = 0; i < content->section_count; i++)
        SL_TRY(write_section_part(s, &content->sections[i], s->header.sections[i].offset, part));
    return ranks->rank ? sl_sync_data(&s->file.ops, s->file.fd, s->file.temporary) : SL_OK;
}

/* Rank 0 puts the file in place when all parts are on the device. */
static sl_status finish_file(saver *s, const sl_file_content *content, const sl_ranks *ranks, sl_status status) {
    sl_replacement *r = &s->file;
    SL_TRY(sl_ranks_agree(ranks, status));
    if (ranks->rank == 0) {
        r->print = sl_fingerprint_of(&s->header, content->sections);
        status = sl_write_at(&r->ops, r->fd, r->temporary, &s->header, sizeof s->header, 0);
        if (status == SL_OK) status = sl_replace_commit(r, s->progress);
    }
    return sl_ranks_agree(ranks, status);
}

static sl_status save_shared(saver *s, const char *path, const sl_file_content *content, const sl_ranks *ranks,
                             const sl_file_ops *ops) {
    sl_replacement *r = &s->file;
    sl_status status = SL_OK;
    int begun = 0;
    *r = (sl_replacement){.ops = sl_file_ops_of(ops), .fd = -1, .kept = -1};
    if (ranks->rank == 0) {
        status = sl_replace_begin(r, path, ops, NULL, -1);
        begun = status == SL_OK;
        if (begun) status = sl_replace_keep_writers_off(r);
    }
    status = sl_share_broadcast(ranks, status, r->temporary, sizeof r->temporary);
    if (status == SL_OK) status = check_headers(s, ranks, fill_header(s, content));
    if (status == SL_OK) status = finish_file(s, content, ranks, write_part(s, content, ranks));
    if (status != SL_OK && begun) return sl_replace_discard(r, status);
    if (ranks->rank && r->fd >= 0) (void)r->ops.close(r->ops.ctx, r->fd);
    return status;
}

sl_status sl_store_save_shared(const char *path, const sl_file_content *content, const sl_ranks *ranks,
                               const sl_file_ops *ops, sl_progress *progress) {
    saver *s = NULL;
    sl_status status = sl_ranks_agree(ranks, create_saver(content, progress, &s));
    if (status == SL_OK) status = save_shared(s, path, content, ranks, ops);
    free_saver(s);
    return status;
}
