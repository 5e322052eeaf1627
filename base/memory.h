/* Memory of a handle. Every allocation of the library goes through the handle's sl_allocator. */
#ifndef SL_BASE_MEMORY_H
#define SL_BASE_MEMORY_H

#include "base/status.h"

#define SL_CACHE_LINE 64u
#define SL_HUGE_PAGE  ((size_t)2 << 20)

/* Returns the allocator in use: *given, or the default one if `given` is NULL. */
sl_allocator sl_allocator_of(const sl_allocator *given);

/* Allocates `size` bytes, zeroed and cache-line aligned. Large blocks get 2 MB pages if the system grants them. A size
 * of 0 gives a valid block. On failure *out is NULL. */
sl_status sl_mem_alloc(const sl_allocator *allocator, size_t size, void **out);
/* Allocates like sl_mem_alloc, without zeroing. The system makes the pages when they are first written to. */
sl_status sl_mem_alloc_raw(const sl_allocator *allocator, size_t size, void **out);
/* Allocates an array of `count` elements as sl_mem_alloc does. Returns NULL on failure. For functions that allocate
 * several arrays: *status begins as SL_OK and gets the first failure; after a failure nothing more is allocated. */
void *sl_mem_array(const sl_allocator *allocator, size_t count, size_t element, sl_status *status);
/* Frees a block; NULL is allowed. `size` is the size it was allocated with. */
void sl_mem_free(const sl_allocator *allocator, void *block, size_t size);
/* The same for what a typed pointer points to: one struct, or an array of `count` elements. */
#define SL_FREE(allocator, block)              sl_mem_free((allocator), (block), sizeof *(block))
#define SL_FREE_ARRAY(allocator, array, count) sl_mem_free((allocator), (array), (count) * sizeof *(array))
/* Resizes a block: keeps the first min(old, new) bytes and zeroes the rest. On failure *block is unchanged. */
sl_status sl_mem_resize(const sl_allocator *allocator, void **block, size_t old_size, size_t new_size);

/* Grows an array of *capacity elements, which may be NULL, until it holds `need`: by half at least, with new elements
 * zeroed. Returns the array, unchanged after a failure. *status works as in sl_mem_array. */
void *sl_mem_grow(const sl_allocator *allocator, void *array, size_t *capacity, size_t need, size_t element,
                  sl_status *status);

/* An allocator of blocks of zeros that take memory only where they are written to, page by page. sl_mem_alloc would
 * write all of a block: use sl_mem_alloc_raw. */
extern const sl_allocator sl_sparse_allocator;
/* Makes a sparse block's bytes zeros again, and gives their memory back. `size`: of the block. */
void sl_sparse_clear(void *block, size_t size);

/* Memory of a job in bytes: `kept` stays when it ends, `most` is its peak. */
typedef struct sl_bytes {
    size_t kept, most;
} sl_bytes;

/* An allocator that counts the bytes handed out by another one. For one thread. */
typedef struct sl_counted {
    sl_allocator from;
    size_t bytes;
} sl_counted;
sl_allocator sl_counted_allocator(sl_counted *counted);

static inline size_t sl_larger(size_t a, size_t b) {
    return a > b ? a : b;
}

/* Return 0 if the product or sum doesn't fit. */
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
