/* Memory of a handle: every allocation of the library goes through the handle's sl_allocator. */
#ifndef SL_BASE_MEMORY_H
#define SL_BASE_MEMORY_H

#include "base/status.h"

#define SL_CACHE_LINE 64u
#define SL_HUGE_PAGE  ((size_t)2 << 20)

/* The allocator in use: *given, or the default one where given is NULL. */
sl_allocator sl_allocator_of(const sl_allocator *given);

/* size bytes, zeroed, cache-line aligned; large blocks on 2 MB pages where granted. *out is NULL on failure. size 0
 * gives a valid block. */
sl_status sl_mem_alloc(const sl_allocator *allocator, size_t size, void **out);
/* The same, but it holds anything: its pages are made when they are first written to. */
sl_status sl_mem_take(const sl_allocator *allocator, size_t size, void **out);
/* An array of `count` elements, as sl_mem_alloc gives it; NULL on failure. For functions that allocate several: a
 * failure goes to *status, which begins as SL_OK, and once it is a failure nothing more is allocated. */
void *sl_mem_array(const sl_allocator *allocator, size_t count, size_t element, sl_status *status);
/* Takes NULL. size as it was asked for. */
void sl_mem_free(const sl_allocator *allocator, void *block, size_t size);
/* A block of new_size with the first min(old, new) bytes kept and the rest zeroed; *block is unchanged on failure. */
sl_status sl_mem_resize(const sl_allocator *allocator, void **block, size_t old_size, size_t new_size);

/* Makes room for `need` elements in an array of *capacity, growing by half at least; zeroes the new ones. */
sl_status sl_mem_grow(const sl_allocator *allocator, void **block, size_t *capacity, size_t need, size_t element);

/* False where the product or sum does not fit. */
static inline int sl_mul(size_t a, size_t b, size_t *out) {
    return !__builtin_mul_overflow(a, b, out);
}
static inline int sl_add(size_t a, size_t b, size_t *out) {
    return !__builtin_add_overflow(a, b, out);
}
static inline size_t sl_round_up(size_t value, size_t multiple) {
    return (value + multiple - 1) / multiple * multiple;
}

#endif
