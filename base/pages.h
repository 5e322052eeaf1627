/* The pages of a process that are in memory, and their sizes, as the system reports them for its mappings. */
#ifndef SL_BASE_PAGES_H
#define SL_BASE_PAGES_H

#include <stddef.h>
#include <stdint.h>

typedef struct sl_span {
    const void *at;
    size_t size;
} sl_span;

typedef struct sl_pages {
    size_t page_size;  /* of the mapping that the first span begins in, or else of the first mapping that holds one; 0:
                          none does */
    uint64_t resident; /* bytes of whole pages that this process has in its page table */
    uint64_t huge;     /* resident bytes that entries of 2 MB and more map; huge pages that a mapping shares with bytes
                          outside the spans are taken to be spread evenly */
} sl_pages;

/* Sums over the spans. Returns 0, with *out all 0, if the system does not tell (/proc/self/smaps and pagemap). */
int sl_pages_count(const sl_span *spans, size_t count, sl_pages *out);

#endif
