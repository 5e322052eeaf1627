#define _GNU_SOURCE
#include "storage/page_verify.h"

#include "base/clock.h"
#include "base/crew.h"
#include "base/memory.h"
#include "storage/heal.h"
#include "storage/page_sums.h"
#include "storage/superblock.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define PAGE SL_SUMMED_PAGE
/* Pages read at once, and blocks that the threads share in one turn. */
enum { READ_PAGES = 16, TURN_BLOCKS = 256 };
/* A commit writes its pages first, and all their checksums behind them. A reader in between reads the page again after
 * PAUSE nanoseconds. All pages together get TRIES pauses, or LESS_TRIES once a page was found damaged. */
enum { TRIES = 10000, LESS_TRIES = 200, PAUSE = 1000000 };

/* Pages of a block: those that one page of checksums covers, 4 MB. */
#define BLOCK_PAGES (PAGE / sizeof(uint32_t))
#define BLOCK       (BLOCK_PAGES * PAGE)

typedef struct verifier {
    const sl_store *store;
    sl_page_sums sums;
    int fd;                       /* of the file, to find its holes; -1: the file has lost its name */
    int mapped;                   /* bytes come from the mapping, because it was healed or there is no fd */
    uint64_t blocks[TURN_BLOCKS]; /* numbers of this turn's blocks */
    sl_pages_found *found;        /* atomic counts */
    size_t first;                 /* number of the first damaged page, kept by sl_atomic_min */
    int beside;                   /* another process may be writing the file; 0 on the writer's own handle */
    int pauses;                   /* atomic: pauses spent on waiting for a writer */
    int failed;                   /* atomic: a read or an allocation failed; 1 + its errno, or 1: the file ended */
    sl_progress *progress;
} verifier;

static void keep_failure(verifier *v, int failed) {
    __atomic_store_n(&v->failed, failed, __ATOMIC_RELAXED);
}

/* Returns 1; or 0, with the failure kept. Messages belong to threads, and a reading thread's would end with it. */
static int read_from_file(verifier *v, void *to, size_t size, uint64_t offset) {
    if (v->mapped) {
        memcpy(to, v->store->base + offset, size);
        return 1;
    }
    sl_status status = sl_read_at(v->fd, v->store->path, to, size, offset);
    if (status == SL_OK) return 1;
    keep_failure(v, 1 + (status == SL_ECORRUPT ? 0 : errno));
    return 0;
}

/* The first byte of [from, end) in data (SEEK_DATA) or in a hole (SEEK_HOLE); `end`: there is none. */
static uint64_t seek_data_or_hole(const verifier *v, uint64_t from, uint64_t end, int whence) {
    if (v->fd < 0) return whence == SEEK_DATA ? from : end;
    off_t found = lseek(v->fd, (off_t)from, whence);
    /* ENXIO: the file ends in a hole. Any other errno: the file system knows no holes. */
    if (found < 0) return whence == SEEK_DATA && errno != ENXIO ? from : end;
    return (uint64_t)found < end ? (uint64_t)found : end;
}

/* Returns whether one of the pauses that all pages share is left. */
static int may_pause(verifier *v) {
    int most = __atomic_load_n(&v->found->bad, __ATOMIC_RELAXED) ? LESS_TRIES : TRIES;
    return __atomic_fetch_add(&v->pauses, 1, __ATOMIC_RELAXED) < most;
}

/* Reads a page with a wrong checksum again, because a writer may be between page and checksum. */
static void look_again(verifier *v, uint64_t offset, uint64_t word) {
    uint8_t page[PAGE];
    uint32_t sum;
    while (!sl_progress_cancelled(v->progress)) {
        uint64_t quiet = v->beside ? sl_writable_quiet(v->store) : 0;
        if (!read_from_file(v, &sum, sizeof sum, v->sums.words + word * sizeof sum) ||
            !read_from_file(v, page, PAGE, offset))
            return;
        if (sl_page_sum(0, page, PAGE) == sum) return;
        if (!v->beside || (quiet && sl_writable_quiet(v->store) == quiet) || !may_pause(v)) break;
        sl_pause_ns(PAUSE);
    }
    __atomic_fetch_add(&v->found->bad, 1, __ATOMIC_RELAXED);
    sl_atomic_min(&v->first, (size_t)(offset / PAGE));
}

/* Compares pages [from, to) of a block with their checksums. `pages` is NULL for a hole. */
static void compare_pages(verifier *v, uint64_t first, const uint32_t *sums, size_t from, size_t to,
                          const uint8_t *pages) {
    for (size_t i = from; i < to; i++) {
        uint32_t sum = pages ? sl_page_sum(0, pages + (i - from) * PAGE, PAGE) : 0;
        if (sum != sums[i]) look_again(v, (first + i) * PAGE, first + i);
    }
}

/* `pages` has READ_PAGES pages to read into. */
static void verify_data(verifier *v, uint64_t first, const uint32_t *sums, size_t from, size_t to, uint8_t *pages) {
    for (size_t i = from, some; i < to; i += some) {
        some = to - i < READ_PAGES ? to - i : READ_PAGES;
        if (!read_from_file(v, pages, some * PAGE, (first + i) * PAGE)) return;
        compare_pages(v, first, sums, i, i + some, pages);
        __atomic_fetch_add(&v->found->checked, some, __ATOMIC_RELAXED);
        sl_progress_step(v->progress, some * PAGE);
    }
}

static void verify_block(verifier *v, uint64_t block, uint8_t *pages) {
    uint32_t sums[BLOCK_PAGES];
    const uint64_t first = block * BLOCK_PAGES, left = v->sums.pages - first;
    const size_t count = left < BLOCK_PAGES ? (size_t)left : BLOCK_PAGES;
    const uint64_t end = (first + count) * PAGE;
    if (!read_from_file(v, sums, count * sizeof *sums, v->sums.words + first * sizeof *sums)) return;
    for (size_t at = 0; at < count;) {
        size_t data = (size_t)(seek_data_or_hole(v, (first + at) * PAGE, end, SEEK_DATA) / PAGE - first);
        compare_pages(v, first, sums, at, data, NULL);
        size_t hole = (size_t)(sl_pages_of(seek_data_or_hole(v, (first + data) * PAGE, end, SEEK_HOLE)) - first);
        /* Data and holes may change meanwhile. */
        at = data < count && hole > data ? hole : count;
        verify_data(v, first, sums, data, at, pages);
    }
}

static void verify_blocks(void *ctx, size_t from, size_t to) {
    verifier *v = ctx;
    void *pages;
    if (sl_mem_alloc_raw(&v->store->allocator, READ_PAGES * PAGE, &pages) != SL_OK) {
        keep_failure(v, 1 + ENOMEM);
        return;
    }
    for (size_t i = from; i < to; i++)
        if (!__atomic_load_n(&v->failed, __ATOMIC_RELAXED) && !sl_progress_cancelled(v->progress))
            verify_block(v, v->blocks[i], pages);
    sl_mem_free(&v->store->allocator, pages, READ_PAGES * PAGE);
}

/* The first block of [from, end) with data or checksums; `end`: there is none. */
static uint64_t next_block(const verifier *v, uint64_t from, uint64_t end) {
    uint64_t sums_end = v->sums.words + v->sums.pages * sizeof(uint32_t);
    uint64_t data = seek_data_or_hole(v, from * BLOCK, v->sums.pages * PAGE, SEEK_DATA);
    uint64_t sums = seek_data_or_hole(v, v->sums.words + from * PAGE, sums_end, SEEK_DATA);
    uint64_t by_data = data < v->sums.pages * PAGE ? data / BLOCK : end;
    uint64_t by_sums = sums < sums_end ? (sums - v->sums.words) / PAGE : end;
    return by_data < by_sums ? by_data : by_sums;
}

static sl_status check_interrupted(const verifier *v) {
    errno = v->failed - 1;
    if (v->failed > 1) return sl_fail_errno("cannot read", v->store->path);
    if (v->failed) return sl_fail(SL_ECORRUPT, "%s: became shorter while it was read; open it again", v->store->path);
    return sl_progress_cancelled(v->progress) ? sl_progress_end(v->progress) : SL_OK;
}

static sl_status report_damage(const verifier *v) {
    const sl_file_header *header = &v->store->header;
    if (!v->found->bad) return SL_OK;
    uint64_t at = (uint64_t)v->first * PAGE;
    uint32_t kind = 0;
    for (uint32_t i = 0; i < header->section_count; i++)
        if (header->sections[i].offset <= at && at - header->sections[i].offset < header->sections[i].size)
            kind = header->sections[i].kind;
    return sl_fail(SL_ECORRUPT,
                   "%s: %llu pages are damaged, the first at byte %llu, of section %u (%s); make the file "
                   "or copy it again",
                   v->store->path, (unsigned long long)v->found->bad, (unsigned long long)at, kind,
                   sl_section_name(kind));
}

static sl_status verify_turns(verifier *v) {
    const uint64_t blocks = (v->sums.pages + BLOCK_PAGES - 1) / BLOCK_PAGES;
    for (uint64_t block = 0; block < blocks;) {
        size_t count = 0;
        while (count < TURN_BLOCKS && (block = next_block(v, block, blocks)) < blocks)
            v->blocks[count++] = block++;
        sl_crew_run(v->store->threads, count, 1, verify_blocks, v);
        SL_TRY(check_interrupted(v));
    }
    look_again(v, v->sums.head, v->sums.pages);
    v->found->checked++;
    SL_TRY(check_interrupted(v));
    return report_damage(v);
}

sl_status sl_page_sums_verify(const sl_store *store, sl_pages_found *found, sl_progress *progress) {
    sl_superblock super;
    verifier v = {.store = store, .found = found, .first = SIZE_MAX, .progress = progress};
    *found = (sl_pages_found){0};
    SL_TRY(sl_page_sums_find(store, &v.sums));
    if (!v.sums.words) return SL_OK;
    SL_TRY(sl_writable_super(store, &super));
    if (super.unsummed) return SL_OK;
    v.fd = sl_store_reopen(store);
    v.mapped = store->healed || v.fd < 0;
    v.beside = !v.mapped && !store->detached;
    sl_status status = verify_turns(&v);
    if (v.fd >= 0) close(v.fd);
    return status;
}
