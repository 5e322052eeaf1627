/* Verifies a whole file. */
#define _POSIX_C_SOURCE 200809L
#include "storage/heal.h"
#include "storage/page_verify.h"
#include "storage/superblock.h"

#include <string.h>
#include <unistd.h>

typedef struct verifier {
    const sl_store *store;
    int fd; /* of the file; -1: bytes come from the mapping alone */
    sl_verified *found;
    sl_progress *progress;
    int gaps_alone; /* 1: skips sections */
} verifier;

/* The section that follows `last` in the file; NULL: there is none. NULL for `last` gives the first section. */
static const sl_file_section *section_behind(const sl_store *store, const sl_file_section *last) {
    const sl_file_section *next = NULL;
    for (uint32_t i = 0; i < store->header.section_count; i++) {
        const sl_file_section *section = &store->header.sections[i];
        if (last && section->offset <= last->offset) continue;
        if (!next || section->offset < next->offset) next = section;
    }
    return next;
}

static sl_status read_bytes(const verifier *v, uint64_t at, void *to, size_t size) {
    if (v->fd < 0) {
        memcpy(to, v->store->base + at, size);
        return SL_OK;
    }
    return sl_read_at(v->fd, v->store->path, to, size, at);
}

static sl_status verify_header(const verifier *v) {
    sl_file_header header;
    SL_TRY(read_bytes(v, 0, &header, sizeof header));
    if (memcmp(&header, &v->store->header, sizeof header) != 0)
        return sl_fail(SL_ECORRUPT, "%s: the header is another one than when it was opened; make it or copy it again",
                       v->store->path);
    sl_progress_step(v->progress, SL_HEADER_SIZE);
    v->found->bytes = SL_HEADER_SIZE;
    return SL_OK;
}

static sl_status damaged_gap(const sl_store *store, const sl_file_section *before, uint64_t at) {
    const unsigned long long byte = (unsigned long long)at;
    if (!before)
        return sl_fail(SL_ECORRUPT,
                       "%s: byte %llu, between the header and the first section, is not zero; make it or copy it again",
                       store->path, byte);
    return sl_fail(SL_ECORRUPT, "%s: byte %llu, behind section %u (%s), is not zero; make it or copy it again",
                   store->path, byte, before->kind, sl_section_name(before->kind));
}

/* Checks that the bytes from section `before` to `end` are zero. */
static sl_status verify_gap(const verifier *v, const sl_file_section *before, uint64_t end) {
    uint8_t bytes[SL_SECTION_ALIGN];
    for (uint64_t at = v->found->bytes, some; at < end; at += some) {
        some = end - at < sizeof bytes ? end - at : sizeof bytes;
        SL_TRY(read_bytes(v, at, bytes, (size_t)some));
        for (size_t i = 0; i < some; i++)
            if (bytes[i]) return damaged_gap(v->store, before, at + i);
        sl_progress_step(v->progress, some);
        if (sl_progress_cancelled(v->progress)) return sl_progress_end(v->progress);
    }
    v->found->bytes = end;
    return SL_OK;
}

/* A section that is written in place has no CRC. Its pages are verified instead. */
static sl_status verify_section(const verifier *v, const sl_file_section *section) {
    if (!v->gaps_alone) {
        SL_TRY(sl_store_verify(v->store, section, v->progress));
        v->found->sections += !(section->flags & SL_SECTION_CHANGING);
    }
    v->found->bytes += section->size;
    return SL_OK;
}

static sl_status verify_sections(const verifier *v) {
    const sl_file_section *last = NULL, *next;
    while ((next = section_behind(v->store, last)) != NULL) {
        SL_TRY(verify_gap(v, last, next->offset));
        SL_TRY(verify_section(v, next));
        last = next;
    }
    return verify_gap(v, last, v->store->size);
}

static sl_status verify_pages(const verifier *v) {
    if (!sl_writable_head(v->store)) return SL_OK;
    sl_status status = sl_page_sums_verify(v->store, &v->found->pages, v->progress);
    v->found->unverified = status == SL_OK && !v->found->pages.checked;
    return status;
}

sl_status sl_store_verify_all(const sl_store *store, sl_verified *found, sl_progress *progress) {
    *found = (sl_verified){.sections = 0};
    int fd = sl_store_reopen(store);
    verifier v = {.store = store, .fd = store->healed ? -1 : fd, .found = found, .progress = progress};
    sl_status status = sl_writable_head(store) ? sl_writable_check_settled(store) : SL_OK;
    /* Pages come first, because they tell how much is damaged. Records then tell whose data it is. */
    if (status == SL_OK) status = verify_header(&v);
    if (status == SL_OK) status = verify_pages(&v);
    if (status == SL_OK) status = verify_sections(&v);
    /* A writer that died meanwhile may have left pages without their checksums. */
    if (status == SL_ECORRUPT && sl_writable_head(store) && sl_writable_check_settled(store) == SL_EBUSY)
        status = SL_EBUSY;
    if (fd >= 0) close(fd);
    return status;
}

sl_status sl_store_verify_gaps(const sl_store *store, sl_progress *progress) {
    sl_verified found = {.bytes = SL_HEADER_SIZE};
    int fd = store->fd >= 0 ? store->fd : sl_store_reopen(store);
    verifier v = {
        .store = store, .fd = store->healed ? -1 : fd, .found = &found, .progress = progress, .gaps_alone = 1};
    sl_status status = verify_sections(&v);
    if (fd >= 0 && fd != store->fd) close(fd);
    return status;
}
