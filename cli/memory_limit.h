/* --max-memory: an allocator for the library that refuses what would go beyond a limit. */
#ifndef CLI_MEMORY_LIMIT_H
#define CLI_MEMORY_LIMIT_H

#include <shortlist.h>

#include <stdatomic.h>

typedef struct memory_limit {
    size_t limit;
    atomic_size_t used;
    atomic_size_t wanted; /* in all, when a request was first refused; 0: none was */
} memory_limit;

/* The allocator; `limit` must outlive what it is given to. */
sl_allocator memory_limit_allocator(memory_limit *limit);

#endif
