/* --max-memory: an allocator that refuses requests beyond a limit. */
#ifndef CLI_MEMORY_LIMIT_H
#define CLI_MEMORY_LIMIT_H

#include <shortlist.h>

#include <stdatomic.h>

typedef struct memory_limit {
    size_t limit;
    atomic_size_t used;
    atomic_size_t wanted; /* bytes in all when a request was first refused; 0: none was */
} memory_limit;

/* The allocator. `limit` must outlive its users. */
sl_allocator memory_limit_allocator(memory_limit *limit);

#endif
