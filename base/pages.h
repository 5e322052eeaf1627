/* Which of a process's memory is there, and on pages of what size, as the system tells of its own mappings. */
#ifndef SL_BASE_PAGES_H
#define SL_BASE_PAGES_H

#include <stddef.h>
#include <stdint.h>

typedef struct sl_span {
    const void *at;
    size_t size;
} sl_span;

typedef struct sl_pages {
    size_t page_size;  /* of the mapping that the first span begins in, or of the first one that does; 0: of none */
    uint64_t resident; /* bytes of whole pages that this process has in its page table */
    uint64_t huge; /* of these, by entries of 2 MB and more. Where such a mapping holds more than the spans, its huge
                      pages are taken to lie among its others evenly */
} sl_pages;

/* Sums over the spans. 0 where the system does not tell (/proc/self/smaps and pagemap), with *out all 0. */
int sl_pages_count(const sl_span *spans, size_t count, sl_pages *out);

#endif
