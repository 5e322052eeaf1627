#include "base/crc32c.h"
#include "storage/store.h"

#include <string.h>

/* What is summed at once stays in the cache between the copy and its sum; what is asked for ahead keeps the disk busy
 * meanwhile, for a mapping read at random has no read-ahead of its own. */
#define CHUNK ((uint64_t)256 << 10)
#define AHEAD ((uint64_t)8 << 20)
/* Of rows that are taken apart: what is summed is what was copied, also where the file changes meanwhile. */
#define APART ((uint64_t)32 << 10)

const sl_file_section *sl_store_section(const sl_store *store, uint32_t kind) {
    for (uint32_t i = 0; i < store->header.section_count; i++)
        if (store->header.sections[i].kind == kind) return &store->header.sections[i];
    return NULL;
}

const void *sl_store_data(const sl_store *store, const sl_file_section *section) {
    return store->base + section->offset;
}

/* Asks for the window after the one that begins at `at`, and at the section's start for that one too. */
static void read_ahead(const sl_store *store, const uint8_t *data, uint64_t at, uint64_t size) {
    if (at % AHEAD != 0) return;
    uint64_t from = at ? at + AHEAD : 0;
    if (from >= size) return;
    uint64_t window = at ? AHEAD : 2 * AHEAD;
    store->medium->advise_soon(data + from, size - from < window ? size - from : window);
}

/* Where what is scanned is copied to: nowhere, as it is, or as rows in parts. */
typedef struct target {
    uint8_t *to;
    const sl_split_rows *rows;
} target;

/* Sums the first size bytes of the section, in the file or, where there is one, in the copy made on the way. */
static sl_status scan(const sl_store *store, const sl_file_section *section, target target, uint64_t size,
                      sl_progress *progress) {
    const uint8_t *data = sl_store_data(store, section);
    const uint64_t most = target.rows ? APART : CHUNK;
    uint8_t apart[APART];
    uint32_t crc = 0;
    for (uint64_t at = 0; at < size;) {
        size_t chunk = (size_t)(size - at < most ? size - at : most);
        read_ahead(store, data, at, size);
        uint8_t *copy = target.rows ? apart : target.to ? target.to + at : NULL;
        if (copy) memcpy(copy, data + at, chunk);
        crc = sl_crc32c(crc, copy ? copy : data + at, chunk);
        if (target.rows) sl_split_scatter(target.rows, at, chunk, copy);
        at += chunk;
        sl_progress_step(progress, chunk);
        if (sl_progress_cancelled(progress)) return sl_progress_end(progress);
    }
    if (crc == section->crc32c || size < section->size || (section->flags & SL_SECTION_CHANGING)) return SL_OK;
    return sl_fail(SL_ECORRUPT, "%s: section %u is damaged (CRC %08x, not %08x); make it or copy it again", store->path,
                   section->kind, crc, section->crc32c);
}

sl_status sl_store_verify(const sl_store *store, const sl_file_section *section, sl_progress *progress) {
    return scan(store, section, (target){NULL, NULL}, section->size, progress);
}

sl_status sl_store_copy(const sl_store *store, const sl_file_section *section, void *to, sl_progress *progress) {
    return scan(store, section, (target){to, NULL}, section->size, progress);
}

sl_status sl_store_copy_first(const sl_store *store, const sl_file_section *section, void *to, uint64_t size,
                              sl_progress *progress) {
    return scan(store, section, (target){to, NULL}, size, progress);
}

sl_status sl_store_copy_rows(const sl_store *store, const sl_file_section *section, const sl_split_rows *rows,
                             uint64_t size, sl_progress *progress) {
    return scan(store, section, (target){NULL, rows}, size, progress);
}
