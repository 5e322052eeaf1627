/* Which lines of a mapping were written to since they were last saved. A line is as long as the processor's, and of a
 * list of links or a row of codes one or two change: much less than a page, which is what the system could tell. */
#ifndef SL_STORAGE_DIRTY_H
#define SL_STORAGE_DIRTY_H

#include "base/status.h"

#define SL_DIRTY_LINE 64u

/* One bit a line and above it one bit a word of those, so that looking for what is marked does not depend on the size
 * of the mapping. Memory is the system's, given where it is touched: of a mapping of 1 TB 2 GB are only addresses. */
typedef struct sl_dirty {
    uint64_t *lines, *words;
    uint64_t count;  /* lines */
    uint64_t marked; /* atomic: lines that are */
} sl_dirty;

/* For a mapping of size bytes. */
sl_status sl_dirty_init(sl_dirty *dirty, uint64_t size);
void sl_dirty_free(sl_dirty *dirty);

/* Marks what holds bytes [offset, offset + size). By any number of threads at once. */
void sl_dirty_mark(sl_dirty *dirty, uint64_t offset, uint64_t size);

/* The next run of marked lines from *offset on, which is moved to its beginning; its bytes, or 0 where there is none.
 * No run is longer than `most` bytes, a multiple of SL_DIRTY_LINE. Nobody may mark meanwhile. */
uint64_t sl_dirty_next(const sl_dirty *dirty, uint64_t *offset, uint64_t most);

/* Nothing is marked from then on. Nobody may mark meanwhile. */
void sl_dirty_clear(sl_dirty *dirty);

#endif
