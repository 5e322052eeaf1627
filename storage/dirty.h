/* The lines of a mapping that were written since the last commit. A line is a cache line: a list of links or a row of
 * codes changes one or two, far less than a page. */
#ifndef SL_STORAGE_DIRTY_H
#define SL_STORAGE_DIRTY_H

#include "base/status.h"

#define SL_DIRTY_LINE 64u

/* One bit a line, and one bit a word of those bits, so finding marked lines doesn't depend on the mapping's size. The
 * system supplies the memory on first touch: 2 GB for a mapping of 1 TB are only addresses. */
typedef struct sl_dirty {
    uint64_t *lines, *words;
    uint64_t count;  /* lines */
    uint64_t marked; /* atomic: marked lines */
} sl_dirty;

/* Makes the marks for a mapping of `size` bytes. */
sl_status sl_dirty_init(sl_dirty *dirty, uint64_t size);
void sl_dirty_free(sl_dirty *dirty);

/* Marks the lines of bytes [offset, offset + size). Threads: any number. */
void sl_dirty_mark(sl_dirty *dirty, uint64_t offset, uint64_t size);

/* Finds the next run of marked lines from *offset on; *offset becomes its beginning. Returns its bytes, at most `most`,
 * a multiple of SL_DIRTY_LINE; 0: there is none. Threads: nobody may mark meanwhile. */
uint64_t sl_dirty_next(const sl_dirty *dirty, uint64_t *offset, uint64_t most);

/* Clears all marks. Threads: nobody may mark meanwhile. */
void sl_dirty_clear(sl_dirty *dirty);

#endif
