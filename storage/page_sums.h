/* Checksums of pages, in a file that is written in place: its sections have no CRC.
 *
 * Section SL_SECTION_PAGE_SUMS has a u32 for each page of 4096 bytes in front of it. The last u32 is the head page's,
 * of SL_SECTION_LIVE. The superblocks have CRCs of their own.
 *
 * A checksum is the page's CRC-32C without its two inversions, and so it's linear. A page of zeros has 0, so holes need
 * none. A changed page has the old checksum XOR that of the difference, so a writer updates it from the changed bytes
 * alone. Damage elsewhere in the page still shows then, and so does damage of the changed bytes. */
#ifndef SL_STORAGE_PAGE_SUMS_H
#define SL_STORAGE_PAGE_SUMS_H

#include "storage/store.h"

#define SL_SUMMED_PAGE 4096u

/* The number of pages that these bytes lie in. */
static inline uint64_t sl_pages_of(uint64_t bytes) {
    return bytes / SL_SUMMED_PAGE + (bytes % SL_SUMMED_PAGE != 0);
}

/* Adds bytes to a page's checksum. `sum`: the checksum of the bytes before them, 0 at first. */
uint32_t sl_page_sum(uint32_t sum, const void *data, size_t size);
/* Adds zeros to a page's checksum. */
uint32_t sl_page_sum_zeros(uint32_t sum, uint64_t size);

/* Bytes of the section in a file whose other sections end at `end`. */
uint64_t sl_page_sums_size(uint64_t end);

/* The place of a file's page checksums, and the pages that they cover. */
typedef struct sl_page_sums {
    uint64_t words; /* offset in the file; 0: the file has none */
    uint64_t pages; /* covered pages, from the file's beginning; the last word is the head page's */
    uint64_t head;  /* offset of the head page */
} sl_page_sums;

/* Finds the checksums by the section table. Errors: SL_ECORRUPT: the section has a wrong size or place. */
sl_status sl_page_sums_find(const sl_store *store, sl_page_sums *out);

/* Sums the pages of a file during a save, from its bytes in the order of writing. */
typedef struct sl_page_summer {
    uint32_t *words; /* NULL: no sums are made */
    uint64_t pages;
    uint64_t at; /* bytes summed */
} sl_page_summer;

sl_status sl_page_summer_init(sl_page_summer *summer, uint64_t pages);
void sl_page_summer_free(sl_page_summer *summer);
void sl_page_summer_add(sl_page_summer *summer, const void *data, size_t size);
void sl_page_summer_skip(sl_page_summer *summer, uint64_t size);

/* Updates checksums from the bytes that a commit is about to write. The updater maps the file as it is. A failed commit
 * changes neither the file nor its checksums. */
typedef struct sl_page_updater {
    sl_page_sums sums;
    uint8_t *file; /* mapped to be read only */
    uint64_t size;
    uint32_t shift[SL_SUMMED_PAGE / 64 + 1]; /* sl_crc32c_shift of that many lines */
    uint64_t word;                           /* number of the checksum updated last */
    uint32_t sum;                            /* its value */
} sl_page_updater;

/* Parameters: fd is open on the file of `size` bytes; path is for messages. */
sl_status sl_page_updater_init(sl_page_updater *updater, const sl_page_sums *sums, int fd, const char *path,
                               uint64_t size);
void sl_page_updater_free(sl_page_updater *updater);
/* Returns the place in the file of the checksum of the page at `offset`. */
uint64_t sl_page_sum_at(const sl_page_sums *sums, uint64_t offset);
/* Call it before the first change of a commit. */
void sl_page_updater_begin(sl_page_updater *updater);
/* Changes bytes [offset, offset + size) of one page, in whole lines of 64, to `bytes`. *word gets the number of the
 * page's checksum and *sum its new value. Changes come in ascending order of pages. */
void sl_page_updater_change(sl_page_updater *updater, uint64_t offset, const uint8_t *bytes, size_t size,
                            uint64_t *word, uint32_t *sum);

#endif
