#define _GNU_SOURCE
#include "storage/page_sums.h"

#include "base/crc32c.h"
#include "base/crew.h"
#include "storage/writable.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define PAGE SL_SUMMED_PAGE
#define LINE 64u
/* Pages that are read at a time, and blocks that are shared out among the threads together. */
enum { READ_PAGES = 16, TURN_BLOCKS = 256 };
/* A commit writes its pages, and their sums behind them all. Whoever reads between the two reads again, after so many
 * nanoseconds, and for all pages together so often: less often once a page was found damaged. */
enum { TRIES = 10000, LESS_TRIES = 200, PAUSE = 1000000 };

static_assert(SL_LIVE_PAGE == PAGE && SL_SECTION_ALIGN == PAGE, "pages of one size");

uint32_t sl_page_sum(uint32_t sum, const void *data, size_t size) {
    return ~sl_crc32c(~sum, data, size);
}

uint32_t sl_page_sum_zeros(uint32_t sum, uint64_t size) {
    return sum ? sl_crc32c_join(sum, 0, sl_crc32c_behind(size)) : 0;
}

static uint64_t pages_of(uint64_t bytes) {
    return bytes / PAGE + (bytes % PAGE != 0);
}

uint64_t sl_page_sums_size(uint64_t end) {
    return (pages_of(end) + 1) * sizeof(uint32_t);
}

sl_status sl_page_sums_find(const sl_store *store, sl_page_sums *out) {
    const sl_file_section *section = sl_store_section(store, SL_SECTION_PAGE_SUMS);
    const sl_file_section *live = sl_store_section(store, SL_SECTION_LIVE);
    *out = (sl_page_sums){0};
    if (!section) return SL_OK;
    int fits = live && live->size == SL_LIVE_SIZE && live->offset > section->offset &&
               section->size == (section->offset / PAGE + 1) * sizeof(uint32_t);
    for (uint32_t i = 0; fits && i < store->header.section_count; i++)
        fits = store->header.sections[i].offset <= section->offset || &store->header.sections[i] == live;
    if (!fits)
        return sl_fail(SL_ECORRUPT, "%s: the pages' checksums are of a wrong size or place; make it or copy it again",
                       store->path);
    *out = (sl_page_sums){section->offset, section->offset / PAGE, live->offset + SL_LIVE_HEAD};
    return SL_OK;
}

/* ---------------------------------------------------------------------------------------------------------------
 * Of a file that is being saved
 * ------------------------------------------------------------------------------------------------------------- */

/* Memory is the system's, given where it is touched: the sums of holes are only addresses. */
sl_status sl_page_summer_init(sl_page_summer *summer, uint64_t pages) {
    size_t bytes = (size_t)(pages + 1) * sizeof(uint32_t);
    void *words = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (words == MAP_FAILED) return sl_fail(SL_ENOMEM, "cannot get %zu bytes of addresses; raise their limit", bytes);
    *summer = (sl_page_summer){.words = words, .pages = pages};
    return SL_OK;
}

void sl_page_summer_free(sl_page_summer *summer) {
    if (summer->words) munmap(summer->words, (size_t)(summer->pages + 1) * sizeof(uint32_t));
    *summer = (sl_page_summer){0};
}

void sl_page_summer_add(sl_page_summer *summer, const void *data, size_t size) {
    const uint8_t *from = data;
    while (size && summer->at < summer->pages * PAGE) {
        uint32_t *word = &summer->words[summer->at / PAGE];
        size_t left = PAGE - (size_t)(summer->at % PAGE), some = size < left ? size : left;
        *word = sl_page_sum(*word, from, some);
        from += some;
        size -= some;
        summer->at += some;
    }
}

/* The page that was begun ends in zeros; those behind it are zeros alone. */
void sl_page_summer_skip(sl_page_summer *summer, uint64_t size) {
    uint64_t left = (PAGE - summer->at % PAGE) % PAGE, some = size < left ? size : left;
    if (some && summer->at < summer->pages * PAGE) {
        uint32_t *word = &summer->words[summer->at / PAGE];
        *word = sl_page_sum_zeros(*word, some);
    }
    summer->at += size;
}

/* ---------------------------------------------------------------------------------------------------------------
 * Of a file that is written in place
 * ------------------------------------------------------------------------------------------------------------- */

/* The number of the sum of a page at this offset; the number of pages for one that has none. */
static uint64_t word_of(const sl_page_sums *sums, uint64_t offset) {
    if (offset / PAGE < sums->pages) return offset / PAGE;
    return offset - offset % PAGE == sums->head ? sums->pages : sums->pages + 1;
}

uint64_t sl_page_sum_at(const sl_page_sums *sums, uint64_t offset) {
    return sums->words + word_of(sums, offset) * sizeof(uint32_t);
}

sl_status sl_page_updater_init(sl_page_updater *updater, const sl_page_sums *sums, int fd, const char *path,
                               uint64_t size) {
    void *file = mmap(NULL, (size_t)size, PROT_READ, MAP_SHARED, fd, 0);
    if (file == MAP_FAILED) return sl_fail_errno("cannot map", path);
    (void)madvise(file, (size_t)size, MADV_RANDOM);
    *updater = (sl_page_updater){.sums = *sums, .file = file, .size = size};
    for (size_t lines = 0; lines <= PAGE / LINE; lines++)
        updater->behind[lines] = sl_crc32c_behind(lines * LINE);
    sl_page_updater_begin(updater);
    return SL_OK;
}

void sl_page_updater_free(sl_page_updater *updater) {
    if (updater && updater->file) munmap((void *)(uintptr_t)updater->file, (size_t)updater->size);
}

void sl_page_updater_begin(sl_page_updater *updater) {
    updater->word = UINT64_MAX;
}

void sl_page_updater_change(sl_page_updater *updater, uint64_t offset, const uint8_t *bytes, size_t size,
                            uint64_t *word, uint32_t *sum) {
    *word = word_of(&updater->sums, offset);
    if (*word != updater->word)
        memcpy(&updater->sum, updater->file + updater->sums.words + *word * sizeof(uint32_t), sizeof(uint32_t));
    updater->word = *word;
    uint32_t change = sl_page_sum(0, updater->file + offset, size) ^ sl_page_sum(0, bytes, size);
    size_t behind = PAGE - (size_t)(offset % PAGE) - size;
    updater->sum ^= sl_crc32c_join(change, 0, updater->behind[behind / LINE]);
    *sum = updater->sum;
}

/* ---------------------------------------------------------------------------------------------------------------
 * Verifying
 * ------------------------------------------------------------------------------------------------------------- */

/* What is looked at together: as many pages as one page of sums is of, 4 MB. */
#define BLOCK_PAGES (PAGE / sizeof(uint32_t))
#define BLOCK       (BLOCK_PAGES * PAGE)

typedef struct verifier {
    const sl_store *store;
    sl_page_sums sums;
    int fd;                       /* of the file, which tells the holes; -1: it has lost its name */
    int mapped;                   /* bytes are the mapping's: of a healed one, or where there is no fd */
    uint64_t blocks[TURN_BLOCKS]; /* numbers of those that are looked at in this turn */
    sl_pages_found *found;        /* atomic counts */
    size_t first;                 /* number of the first damaged page, kept by sl_keep_least */
    int beside;                   /* another process may be writing it: not of the writer's own handle */
    int pauses;                   /* atomic: in which a writer was waited for */
    int failed;                   /* atomic: a read has; 1 + its errno, or 1 where the file ended */
    sl_progress *progress;
} verifier;

/* 1, or 0 with the failure kept: a message is its own thread's, and the reading thread's ends with it. */
static int fetch(verifier *v, void *to, size_t size, uint64_t offset) {
    if (v->mapped) {
        memcpy(to, v->store->base + offset, size);
        return 1;
    }
    sl_status status = sl_read_at(v->fd, v->store->path, to, size, offset);
    if (status == SL_OK) return 1;
    __atomic_store_n(&v->failed, 1 + (status == SL_ECORRUPT ? 0 : errno), __ATOMIC_RELAXED);
    return 0;
}

/* The first byte from `from` on that is no hole, or that is one; `end` where there is none before. */
static uint64_t seek(const verifier *v, uint64_t from, uint64_t end, int whence) {
    if (v->fd < 0) return whence == SEEK_DATA ? from : end;
    off_t found = lseek(v->fd, (off_t)from, whence);
    /* ENXIO: the file ends in a hole. Anything else: a file system that knows no holes. */
    if (found < 0) return whence == SEEK_DATA && errno != ENXIO ? from : end;
    return (uint64_t)found < end ? (uint64_t)found : end;
}

/* Of the pauses that all pages together have. */
static int may_pause(verifier *v) {
    int most = __atomic_load_n(&v->found->bad, __ATOMIC_RELAXED) ? LESS_TRIES : TRIES;
    return __atomic_fetch_add(&v->pauses, 1, __ATOMIC_RELAXED) < most;
}

/* A page whose sum is another is read again while there is a writer, which may be between the two. */
static void look_again(verifier *v, uint64_t offset, uint64_t word) {
    uint8_t page[PAGE];
    uint32_t sum;
    while (!sl_progress_cancelled(v->progress)) {
        uint64_t quiet = v->beside ? sl_writable_quiet(v->store) : 0;
        if (!fetch(v, &sum, sizeof sum, v->sums.words + word * sizeof sum) || !fetch(v, page, PAGE, offset)) return;
        if (sl_page_sum(0, page, PAGE) == sum) return;
        if (!v->beside || (quiet && sl_writable_quiet(v->store) == quiet) || !may_pause(v)) break;
        nanosleep(&(struct timespec){0, PAUSE}, NULL);
    }
    __atomic_fetch_add(&v->found->bad, 1, __ATOMIC_RELAXED);
    sl_keep_least(&v->first, (size_t)(offset / PAGE));
}

/* Pages [from, to) of a block, which are holes or were read. */
static void compare(verifier *v, uint64_t first, const uint32_t *sums, size_t from, size_t to, const uint8_t *pages) {
    for (size_t i = from; i < to; i++) {
        uint32_t sum = pages ? sl_page_sum(0, pages + (i - from) * PAGE, PAGE) : 0;
        if (sum != sums[i]) look_again(v, (first + i) * PAGE, first + i);
    }
}

static void verify_data(verifier *v, uint64_t first, const uint32_t *sums, size_t from, size_t to) {
    uint8_t pages[READ_PAGES * PAGE];
    for (size_t i = from, some; i < to; i += some) {
        some = to - i < READ_PAGES ? to - i : READ_PAGES;
        if (!fetch(v, pages, some * PAGE, (first + i) * PAGE)) return;
        compare(v, first, sums, i, i + some, pages);
        __atomic_fetch_add(&v->found->checked, some, __ATOMIC_RELAXED);
        sl_progress_step(v->progress, some * PAGE);
    }
}

static void verify_block(verifier *v, uint64_t block) {
    uint32_t sums[BLOCK_PAGES];
    const uint64_t first = block * BLOCK_PAGES, left = v->sums.pages - first;
    const size_t count = left < BLOCK_PAGES ? (size_t)left : BLOCK_PAGES;
    const uint64_t end = (first + count) * PAGE;
    if (!fetch(v, sums, count * sizeof *sums, v->sums.words + first * sizeof *sums)) return;
    for (size_t at = 0; at < count;) {
        size_t data = (size_t)(seek(v, (first + at) * PAGE, end, SEEK_DATA) / PAGE - first);
        compare(v, first, sums, at, data, NULL);
        size_t hole = (size_t)(pages_of(seek(v, (first + data) * PAGE, end, SEEK_HOLE)) - first);
        /* Data and holes may change places meanwhile. */
        at = data < count && hole > data ? hole : count;
        verify_data(v, first, sums, data, at);
    }
}

static void verify_blocks(void *ctx, size_t from, size_t to) {
    verifier *v = ctx;
    for (size_t i = from; i < to; i++)
        if (!__atomic_load_n(&v->failed, __ATOMIC_RELAXED) && !sl_progress_cancelled(v->progress))
            verify_block(v, v->blocks[i]);
}

/* The first block from `from` on that has data or sums; `end` where there is none. */
static uint64_t next_block(const verifier *v, uint64_t from, uint64_t end) {
    uint64_t sums_end = v->sums.words + v->sums.pages * sizeof(uint32_t);
    uint64_t data = seek(v, from * BLOCK, v->sums.pages * PAGE, SEEK_DATA);
    uint64_t sums = seek(v, v->sums.words + from * PAGE, sums_end, SEEK_DATA);
    uint64_t by_data = data < v->sums.pages * PAGE ? data / BLOCK : end;
    uint64_t by_sums = sums < sums_end ? (sums - v->sums.words) / PAGE : end;
    return by_data < by_sums ? by_data : by_sums;
}

static sl_status interruption(const verifier *v) {
    errno = v->failed - 1;
    if (v->failed > 1) return sl_fail_errno("cannot read", v->store->path);
    if (v->failed) return sl_fail(SL_ECORRUPT, "%s: became shorter while it was read; open it again", v->store->path);
    return sl_progress_cancelled(v->progress) ? sl_progress_end(v->progress) : SL_OK;
}

static sl_status verdict(const verifier *v) {
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
        SL_TRY(interruption(v));
    }
    look_again(v, v->sums.head, v->sums.pages);
    v->found->checked++;
    SL_TRY(interruption(v));
    return verdict(v);
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
