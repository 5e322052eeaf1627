/* Pages of this process that are in memory, and their sizes, as the system reports them for its mappings. */
#ifndef SL_BASE_PAGES_H
#define SL_BASE_PAGES_H

#include <stddef.h>
#include <stdint.h>

typedef struct sl_span {
    const void *at;
    size_t size;
} sl_span;

typedef struct sl_pages {
    size_t page_size;  /* of the first mapping, by address, that holds a part of a span; 0: none does */
    uint64_t resident; /* bytes of whole pages in this process's page table */
    uint64_t huge; /* resident bytes on pages of 2 MB and more; if a mapping holds other bytes too, its huge pages count
                      as spread evenly */
} sl_pages;

/* Sums over the spans. Returns 0, with *out all 0, if the system doesn't show /proc/self/smaps and pagemap. */
int sl_pages_count(const sl_span *spans, size_t count, sl_pages *out);

#endif
