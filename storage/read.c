#define _POSIX_C_SOURCE 200809L
#include "base/crc32c.h"
#include "base/crew.h"
#include "base/memory.h"
#include "storage/store.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* A CHUNK stays in the cache between its copy and its checksum. The AHEAD bytes requested beyond it keep the disk busy,
 * because a mapping advised for random reads has no read-ahead. */
#define CHUNK ((uint64_t)256 << 10)
#define AHEAD ((uint64_t)8 << 20)
/* The chunk of a section that is only summed, or whose rows are taken apart. The checksum is made of the copied bytes,
 * so that the file may change in between. */
#define APART ((uint64_t)32 << 10)
/* Chunks that the threads share in one turn; their checksums are joined in order. A thread takes as many as fill a huge
 * page of the destination, so that no two threads request the same one. */
enum { TURN = 1024, ENDED = -1 };

const sl_file_section *sl_store_section(const sl_store *store, uint32_t kind) {
    for (uint32_t i = 0; i < store->header.section_count; i++)
        if (store->header.sections[i].kind == kind) return &store->header.sections[i];
    return NULL;
}

void *sl_store_data(const sl_store *store, const sl_file_section *section) {
    return store->base + section->offset;
}

/* Requests the window behind the one at `at`; at the section's start, the first window too. */
static void read_ahead(const sl_store *store, const uint8_t *data, uint64_t at, uint64_t size) {
    if (at % AHEAD != 0) return;
    uint64_t from = at ? at + AHEAD : 0;
    if (from >= size) return;
    uint64_t window = at ? AHEAD : 2 * AHEAD;
    store->medium->advise_soon(data + from, size - from < window ? size - from : window);
}

/* Destination of scanned bytes, and their source. They go nowhere, to memory as they are, or to the parts of rows. */
typedef struct target {
    uint8_t *to;
    const sl_split_rows *rows;
    int fd; /* -1: the scan reads the mapping */
} target;

typedef struct scanning {
    const sl_store *store;
    const uint8_t *data;
    target target;
    uint64_t size, chunk;
    uint64_t first; /* number of the turn's first chunk */
    uint32_t crcs[TURN];
    int error; /* atomic: errno of a failed read or allocation, or ENDED */
    sl_progress *progress;
} scanning;

static size_t chunk_size(const scanning *scanning, uint64_t at) {
    return (size_t)(scanning->size - at < scanning->chunk ? scanning->size - at : scanning->chunk);
}

static int keep_error(scanning *scanning, int error) {
    __atomic_store_n(&scanning->error, error, __ATOMIC_RELAXED);
    return 0;
}

/* Reads the file, if it's open: that costs the system less than mapping pages for one use, and a failure is no signal.
 * A detached mapping is copied instead, because it may be ahead of the file. Returns 1; or 0, with the error kept. */
static int copy_chunk(scanning *scanning, uint64_t at, uint8_t *to, size_t size) {
    if (scanning->target.fd < 0 || scanning->store->detached) {
        memcpy(to, scanning->data + at, size);
        return 1;
    }
    uint64_t offset = (uint64_t)(scanning->data - scanning->store->base) + at;
    for (size_t done = 0; done < size;) {
        ssize_t got = pread(scanning->target.fd, to + done, size - done, (off_t)(offset + done));
        if (got > 0) done += (size_t)got;
        if (got == 0) return keep_error(scanning, ENDED);
        if (got < 0 && errno != EINTR) return keep_error(scanning, errno);
    }
    return 1;
}

static int is_over(scanning *scanning) {
    return __atomic_load_n(&scanning->error, __ATOMIC_RELAXED) || sl_progress_cancelled(scanning->progress);
}

/* Scans chunks of a turn, beside other threads. `apart` has APART bytes for chunks whose bytes go nowhere as they are.
 */
static void scan_chunks(scanning *scanning, size_t from, size_t to, uint8_t *apart) {
    const target *target = &scanning->target;
    for (size_t i = from; i < to && !is_over(scanning); i++) {
        uint64_t at = (scanning->first + i) * scanning->chunk;
        size_t size = chunk_size(scanning, at);
        uint8_t *copy = target->to ? target->to + at : apart;
        if (target->fd < 0) read_ahead(scanning->store, scanning->data, at, scanning->size);
        if (!copy_chunk(scanning, at, copy, size)) return;
        scanning->crcs[i] = sl_crc32c(0, copy, size);
        if (target->rows) sl_split_scatter(target->rows, at, size, copy);
        sl_progress_step(scanning->progress, size);
    }
}

static void scan_range(void *ctx, size_t from, size_t to) {
    scanning *scanning = ctx;
    const sl_allocator *allocator = &scanning->store->allocator;
    void *apart = NULL;
    if (!scanning->target.to && sl_mem_alloc_raw(allocator, APART, &apart) != SL_OK) {
        keep_error(scanning, ENOMEM);
        return;
    }
    scan_chunks(scanning, from, to, apart);
    sl_mem_free(allocator, apart, APART);
}

/* Scans the turn that begins at `first`, and joins its checksums to the earlier ones. */
static sl_status scan_turn(scanning *scanning, uint64_t chunks, uint32_t *crc) {
    const sl_store *store = scanning->store;
    size_t count = (size_t)(chunks - scanning->first < TURN ? chunks - scanning->first : TURN);
    sl_crew_run(store->threads, count, (size_t)(SL_HUGE_PAGE / scanning->chunk), scan_range, scanning);
    errno = scanning->error;
    if (errno == ENDED) return sl_fail(SL_ECORRUPT, "%s: became shorter while it was read; open it again", store->path);
    if (errno) return sl_fail_errno("cannot read", store->path);
    if (sl_progress_cancelled(scanning->progress)) return sl_progress_end(scanning->progress);
    const uint32_t shift = sl_crc32c_shift(scanning->chunk);
    for (size_t i = 0; i < count; i++) {
        size_t size = chunk_size(scanning, (scanning->first + i) * scanning->chunk);
        *crc = sl_crc32c_combine(*crc, scanning->crcs[i], size == scanning->chunk ? shift : sl_crc32c_shift(size));
    }
    return SL_OK;
}

/* Sums the section's first `size` bytes, in the copy that it makes on the way. */
static sl_status scan_section(const sl_store *store, const sl_file_section *section, target target, uint64_t size,
                              sl_progress *progress) {
    scanning scanning = {.store = store,
                         .data = sl_store_data(store, section),
                         .target = target,
                         .size = size,
                         .chunk = target.to ? CHUNK : APART,
                         .progress = progress};
    const uint64_t chunks = (size + scanning.chunk - 1) / scanning.chunk;
    uint32_t crc = 0;
    for (; scanning.first < chunks; scanning.first += TURN)
        SL_TRY(scan_turn(&scanning, chunks, &crc));
    if (crc == section->crc32c || size < section->size || (section->flags & SL_SECTION_CHANGING)) return SL_OK;
    return sl_fail(SL_ECORRUPT, "%s: section %u (%s) is damaged (CRC %08x, not %08x); make it or copy it again",
                   store->path, section->kind, sl_section_name(section->kind), crc, section->crc32c);
}

sl_status sl_store_verify(const sl_store *store, const sl_file_section *section, sl_progress *progress) {
    if (section->flags & SL_SECTION_CHANGING) return SL_OK;
    int fd = store->fd >= 0 ? store->fd : sl_store_reopen(store);
    sl_status status = scan_section(store, section, (target){NULL, NULL, fd}, section->size, progress);
    if (fd >= 0 && fd != store->fd) close(fd);
    return status;
}

sl_status sl_store_copy(const sl_store *store, const sl_file_section *section, void *to, sl_progress *progress) {
    return scan_section(store, section, (target){to, NULL, store->fd}, section->size, progress);
}

sl_status sl_store_copy_first(const sl_store *store, const sl_file_section *section, void *to, uint64_t size,
                              sl_progress *progress) {
    return scan_section(store, section, (target){to, NULL, store->fd}, size, progress);
}

sl_status sl_store_copy_rows(const sl_store *store, const sl_file_section *section, const sl_split_rows *rows,
                             uint64_t size, sl_progress *progress) {
    return scan_section(store, section, (target){NULL, rows, store->fd}, size, progress);
}
