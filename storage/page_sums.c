#define _GNU_SOURCE
#include "storage/page_sums.h"

#include "base/crc32c.h"
#include "storage/superblock.h"

#include <assert.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE SL_SUMMED_PAGE
#define LINE 64u

static_assert(SL_LIVE_PAGE == PAGE && SL_SECTION_ALIGN == PAGE, "pages of one size");

uint32_t sl_page_sum(uint32_t sum, const void *data, size_t size) {
    return ~sl_crc32c(~sum, data, size);
}

uint32_t sl_page_sum_zeros(uint32_t sum, uint64_t size) {
    return sum ? sl_crc32c_combine(sum, 0, sl_crc32c_shift(size)) : 0;
}

uint64_t sl_page_sums_size(uint64_t end) {
    return (sl_pages_of(end) + 1) * sizeof(uint32_t);
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
 * In a save
 * ------------------------------------------------------------------------------------------------------------- */

/* The system supplies this memory on first touch, so checksums of holes are only addresses. */
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

/* The page that was begun ends in zeros, and all pages behind it are zeros. */
void sl_page_summer_skip(sl_page_summer *summer, uint64_t size) {
    uint64_t left = (PAGE - summer->at % PAGE) % PAGE, some = size < left ? size : left;
    if (some && summer->at < summer->pages * PAGE) {
        uint32_t *word = &summer->words[summer->at / PAGE];
        *word = sl_page_sum_zeros(*word, some);
    }
    summer->at += size;
}

/* ---------------------------------------------------------------------------------------------------------------
 * In a file that is written in place
 * ------------------------------------------------------------------------------------------------------------- */

/* The number of the page's checksum. A page without one gets a number behind all of them. */
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
        updater->shift[lines] = sl_crc32c_shift(lines * LINE);
    sl_page_updater_begin(updater);
    return SL_OK;
}

void sl_page_updater_free(sl_page_updater *updater) {
    if (updater && updater->file) munmap(updater->file, (size_t)updater->size);
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
    updater->sum ^= sl_crc32c_combine(change, 0, updater->shift[behind / LINE]);
    *sum = updater->sum;
}
