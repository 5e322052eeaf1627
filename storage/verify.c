#include "storage/store.h"

#include <string.h>

/* Bytes between two looks at the progress callback. */
#define CHUNK ((uint64_t)1 << 20)

/* The section that lies next behind `last`, or first in the file where that is NULL; NULL where there is none. */
static const sl_file_section *section_behind(const sl_store *store, const sl_file_section *last) {
    const sl_file_section *next = NULL;
    for (uint32_t i = 0; i < store->header.section_count; i++) {
        const sl_file_section *section = &store->header.sections[i];
        if (last && section->offset <= last->offset) continue;
        if (!next || section->offset < next->offset) next = section;
    }
    return next;
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

/* Bytes [at, end) of the file, behind section `before`, are zero. */
static sl_status verify_gap(const sl_store *store, const sl_file_section *before, uint64_t at, uint64_t end,
                            sl_progress *progress) {
    while (at < end) {
        uint64_t stop = end - at < CHUNK ? end : at + CHUNK;
        for (uint64_t i = at; i < stop; i++)
            if (store->base[i]) return damaged_gap(store, before, i);
        sl_progress_step(progress, stop - at);
        if (sl_progress_cancelled(progress)) return sl_progress_end(progress);
        at = stop;
    }
    return SL_OK;
}

sl_status sl_store_verify_all(const sl_store *store, sl_verified *found, sl_progress *progress) {
    *found = (sl_verified){0, 0};
    if (memcmp(store->base, &store->header, sizeof store->header) != 0)
        return sl_fail(SL_ECORRUPT, "%s: the header is another one than when it was opened; make it or copy it again",
                       store->path);
    sl_progress_step(progress, SL_HEADER_SIZE);
    found->bytes = SL_HEADER_SIZE;
    const sl_file_section *last = NULL, *next;
    while ((next = section_behind(store, last)) != NULL) {
        SL_TRY(verify_gap(store, last, found->bytes, next->offset, progress));
        found->bytes = next->offset;
        SL_TRY(sl_store_verify(store, next, progress));
        found->bytes += next->size;
        found->sections++;
        last = next;
    }
    SL_TRY(verify_gap(store, last, found->bytes, store->size, progress));
    found->bytes = store->size;
    return SL_OK;
}
