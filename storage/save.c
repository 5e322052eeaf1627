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

/* Sums some bytes of a section before anything is written: the header comes first, and it holds the CRCs. This pass
 * runs at memory speed. */
static sl_status section_crc(saver *s, const sl_section_source *source, sl_range bytes, uint32_t *out) {
    uint32_t crc = 0;
    for (uint64_t done = bytes.first; done < bytes.end;) {
        size_t chunk = bytes.end - done < CHUNK ? (size_t)(bytes.end - done) : CHUNK;
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
        if (!(section->flags & SL_SECTION_CHANGING) && !sections[i].parted)
            SL_TRY(section_crc(s, &sections[i], (sl_range){0, sections[i].size}, &section->crc32c));
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
    return errno == ENOENT ? sl_fail_in(status, "the output's folder must be one that all machines share") : status;
}

/* The bytes that a rank has of a section. */
static sl_range bytes_of_rank(const sl_section_source *source, const sl_ranks *ranks, size_t rank) {
    if (!source->parted) return (sl_range){0, source->size};
    const sl_range rows = sl_share_of_rank(ranks, rank, source->size / source->parted, SL_SHARED_ROWS);
    return (sl_range){rows.first * source->parted, rows.end * source->parted};
}

/* Sums a section of which each rank has a part. */
static sl_status sum_parts(saver *s, const sl_section_source *source, const sl_ranks *ranks, sl_status mine,
                           uint32_t *out) {
    const sl_allocator allocator = sl_allocator_of(NULL);
    uint32_t *crcs = sl_mem_array(&allocator, ranks->ranks, sizeof *crcs, &mine);
    if (mine == SL_OK) mine = section_crc(s, source, bytes_of_rank(source, ranks, ranks->rank), &crcs[ranks->rank]);
    mine = sl_share_gather(ranks, mine, crcs, sizeof *crcs, ranks->ranks, 1);
    *out = 0;
    for (size_t r = 0; r < ranks->ranks && mine == SL_OK; r++) {
        const sl_range bytes = bytes_of_rank(source, ranks, r);
        *out = sl_crc32c_combine(*out, crcs[r], sl_crc32c_shift(bytes.end - bytes.first));
    }
    SL_FREE_ARRAY(&allocator, crcs, ranks->ranks);
    return mine;
}

/* Fills in the header, with the sums of sections of which each rank has a part. */
static sl_status fill_shared_header(saver *s, const sl_file_content *content, const sl_ranks *ranks) {
    sl_file_header *header = &s->header;
    sl_status status = fill_header(s, content);
    for (size_t i = 0; i < content->section_count; i++)
        if (content->sections[i].parted)
            status = sum_parts(s, &content->sections[i], ranks, status, &header->sections[i].crc32c);
    header->crc32c = sl_crc32c(0, header, offsetof(sl_file_header, crc32c));
    return status;
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

/* Writes the bytes of a section that lie in this part of the file. */
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

/* The file's bytes that a rank has of a section, and the whole units among them. */
typedef struct own_bytes {
    sl_range all, units;
} own_bytes;

static own_bytes own_bytes_of(const sl_section_source *source, uint64_t offset, const sl_ranks *ranks) {
    const sl_range bytes = bytes_of_rank(source, ranks, ranks->rank);
    const size_t first = bytes.first + offset, end = bytes.end + offset;
    own_bytes own = {{first, end}, {sl_round_up(first, SHARED_UNIT), end / SHARED_UNIT * SHARED_UNIT}};
    if (own.units.first >= own.units.end) own.units = (sl_range){first, first};
    return own;
}

static sl_status write_own_units(saver *s, const sl_section_source *source, uint64_t offset, const sl_ranks *ranks) {
    return write_section_part(s, source, offset, own_bytes_of(source, offset, ranks).units);
}

/* Bytes of a unit that a rank has in part. The unit's owner writes them. */
typedef struct edge {
    uint64_t at, size;
} edge;

/* Calls visit() for the bytes of each unit that this rank has in part. */
static void visit_edges(const saver *s, const sl_file_content *content, const sl_ranks *ranks,
                        void (*visit)(void *ctx, const sl_section_source *source, uint64_t offset, edge edge),
                        void *ctx) {
    for (size_t i = 0; i < content->section_count; i++) {
        const sl_section_source *source = &content->sections[i];
        const uint64_t offset = s->header.sections[i].offset;
        if (!source->parted) continue;
        const own_bytes own = own_bytes_of(source, offset, ranks);
        for (uint64_t at = own.all.first; at < own.all.end;) {
            const uint64_t next = at / SHARED_UNIT * SHARED_UNIT + SHARED_UNIT;
            const uint64_t end = next < own.all.end ? next : own.all.end;
            if (at == own.units.first && own.units.first < own.units.end) {
                at = own.units.end;
                continue;
            }
            visit(ctx, source, offset, (edge){at, end - at});
            at = end;
        }
    }
}

/* Edges on their way to the owners of their units. */
typedef struct edge_parts {
    const sl_ranks *ranks;
    uint64_t file_size;
    size_t *sizes; /* of the parts; then the bytes written of each */
    sl_parts *to;
} edge_parts;

static size_t owner_of(const edge_parts *parts, edge edge) {
    return sl_share_owner(parts->ranks, edge.at, parts->file_size, SHARED_UNIT);
}

static void count_edge(void *ctx, const sl_section_source *source, uint64_t offset, edge edge) {
    edge_parts *parts = ctx;
    (void)source;
    (void)offset;
    parts->sizes[owner_of(parts, edge)] += sizeof edge + sl_round_up(edge.size, sizeof edge);
}

static void copy_edge(void *ctx, const sl_section_source *source, uint64_t offset, edge edge) {
    edge_parts *parts = ctx;
    const size_t owner = owner_of(parts, edge);
    uint8_t *to = parts->to->data + parts->to->at[owner] + parts->sizes[owner];
    memcpy(to, &edge, sizeof edge);
    memcpy(to + sizeof edge, bytes_of(source, edge.at - offset, edge.size), edge.size);
    parts->sizes[owner] += sizeof edge + sl_round_up(edge.size, sizeof edge);
}

/* Sends each edge to the rank that writes its unit. */
static sl_status exchange_edges(const saver *s, const sl_file_content *content, const sl_ranks *ranks, sl_status mine,
                                sl_parts *from) {
    const sl_allocator allocator = sl_allocator_of(NULL);
    sl_parts to = {.data = NULL};
    size_t *sizes = sl_mem_array(&allocator, ranks->ranks, sizeof *sizes, &mine);
    edge_parts parts = {.ranks = ranks, .file_size = s->header.file_size, .sizes = sizes, .to = &to};
    if (mine == SL_OK) visit_edges(s, content, ranks, count_edge, &parts);
    if (mine == SL_OK) mine = sl_parts_create(&allocator, ranks->ranks, sizes, &to);
    if (mine == SL_OK) {
        memset(sizes, 0, ranks->ranks * sizeof *sizes);
        visit_edges(s, content, ranks, copy_edge, &parts);
    }
    mine = sl_share_exchange(ranks, mine, &to, from);
    sl_parts_free(&to);
    SL_FREE_ARRAY(&allocator, sizes, ranks->ranks);
    return mine;
}

/* Writes the edges that this rank got. */
static sl_status write_edges(saver *s, const sl_parts *edges) {
    const size_t all = edges->at[edges->ranks];
    for (size_t at = 0; at < all;) {
        edge edge;
        memcpy(&edge, edges->data + at, sizeof edge);
        at += sizeof edge;
        SL_TRY(sl_write_at(&s->file.ops, s->file.fd, s->file.temporary, edges->data + at, edge.size, edge.at));
        at += sl_round_up(edge.size, sizeof edge);
    }
    return SL_OK;
}

/* Writes the rank's part of the file, without the header. Rank 0 syncs later. */
static sl_status write_part(saver *s, const sl_file_content *content, const sl_ranks *ranks, const sl_parts *edges) {
    const sl_range part = sl_share_mine(ranks, s->header.file_size, SHARED_UNIT);
    SL_TRY(prepare_temporary(s, ranks));
    for (size_t i = 0; i < content->section_count; i++)
        if (content->sections[i].parted)
            SL_TRY(write_own_units(s, &content->sections[i], s->header.sections[i].offset, ranks));
        else
            SL_TRY(write_section_part(s, &content->sections[i], s->header.sections[i].offset, part));
    SL_TRY(write_edges(s, edges));
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
    if (status == SL_OK) status = check_headers(s, ranks, fill_shared_header(s, content, ranks));
    if (status == SL_OK) {
        sl_parts edges;
        status = exchange_edges(s, content, ranks, SL_OK, &edges);
        if (status == SL_OK) status = finish_file(s, content, ranks, write_part(s, content, ranks, &edges));
        sl_parts_free(&edges);
    }
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
