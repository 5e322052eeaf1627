/* Lines of a mapping that were written to since the last save. A line is as long as the processor's. A list of links
 * or a row of codes has one or two changed lines, much less than the pages that the system could tell. */
#ifndef SL_STORAGE_DIRTY_H
#define SL_STORAGE_DIRTY_H

#include "base/status.h"

#define SL_DIRTY_LINE 64u

/* One bit a line, and one bit a word of those. Looking for marked lines so does not depend on the mapping's size.
 * The system gives the memory where it is touched: for a mapping of 1 TB, 2 GB are only addresses. */
typedef struct sl_dirty {
    uint64_t *lines, *words;
    uint64_t count;  /* lines */
    uint64_t marked; /* atomic: marked lines */
} sl_dirty;

/* Makes the marks of a mapping of `size` bytes. */
sl_status sl_dirty_init(sl_dirty *dirty, uint64_t size);
void sl_dirty_free(sl_dirty *dirty);

/* Marks the lines of bytes [offset, offset + size). Threads: any number. */
void sl_dirty_mark(sl_dirty *dirty, uint64_t offset, uint64_t size);

/* Finds the next run of marked lines from *offset on, and moves *offset to its beginning. Returns the run's bytes;
 * 0: there is none. A run has at most `most` bytes, a multiple of SL_DIRTY_LINE. Threads: nobody may mark meanwhile. */
uint64_t sl_dirty_next(const sl_dirty *dirty, uint64_t *offset, uint64_t most);

/* Clears all marks. Threads: nobody may mark meanwhile. */
void sl_dirty_clear(sl_dirty *dirty);

#endif
