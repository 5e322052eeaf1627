#define _GNU_SOURCE
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static void *default_alloc(void *ctx, size_t size, size_t alignment) {
    (void)ctx;
    /* Blocks of 2 MB and more start on a huge page and ask for huge pages. A graph walk touches a new 4 KB page with
     * nearly every row, and the TLB misses of small pages cost a fifth of the search. */
    if (size >= SL_HUGE_PAGE && alignment < SL_HUGE_PAGE) alignment = SL_HUGE_PAGE;
    if (size > SIZE_MAX - alignment) return NULL;
    void *block = aligned_alloc(alignment, sl_round_up(size, alignment));
#ifdef MADV_HUGEPAGE
    /* If the system refuses, pages stay small: slower, but not wrong. */
    if (block && size >= SL_HUGE_PAGE) (void)madvise(block, sl_round_up(size, alignment), MADV_HUGEPAGE);
#endif
    return block;
}

static void default_free(void *ctx, void *block, size_t size) {
    (void)ctx;
    (void)size;
    free(block);
}

sl_allocator sl_allocator_of(const sl_allocator *given) {
    if (given) return *given;
    return (sl_allocator){NULL, default_alloc, default_free};
}

/* ---- Sparse blocks ---- */

static void *sparse_alloc(void *ctx, size_t size, size_t alignment) {
    (void)ctx;
    (void)alignment; /* a page at least */
    void *block = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return block == MAP_FAILED ? NULL : block;
}

static void sparse_free(void *ctx, void *block, size_t size) {
    (void)ctx;
    (void)munmap(block, size);
}

const sl_allocator sl_sparse_allocator = {NULL, sparse_alloc, sparse_free};

void sl_sparse_clear(void *block, size_t size) {
    if (madvise(block, size, MADV_DONTNEED) != 0) memset(block, 0, size);
}

static void *counted_alloc(void *ctx, size_t size, size_t alignment) {
    sl_counted *counted = ctx;
    void *block = counted->from.alloc(counted->from.ctx, size, alignment);
    if (block) counted->bytes += size;
    return block;
}

static void counted_free(void *ctx, void *block, size_t size) {
    sl_counted *counted = ctx;
    counted->bytes -= size;
    counted->from.free(counted->from.ctx, block, size);
}

sl_allocator sl_counted_allocator(sl_counted *counted) {
    return (sl_allocator){counted, counted_alloc, counted_free};
}

sl_status sl_mem_alloc_raw(const sl_allocator *allocator, size_t size, void **out) {
    *out = allocator->alloc(allocator->ctx, size ? size : 1, SL_CACHE_LINE);
    return *out ? SL_OK : sl_fail(SL_ENOMEM, "cannot allocate %zu bytes; free memory or use a smaller index", size);
}

sl_status sl_mem_alloc(const sl_allocator *allocator, size_t size, void **out) {
    SL_TRY(sl_mem_alloc_raw(allocator, size, out));
    memset(*out, 0, size ? size : 1);
    return SL_OK;
}

void *sl_mem_array(const sl_allocator *allocator, size_t count, size_t element, sl_status *status) {
    size_t bytes;
    void *block = NULL;
    if (*status != SL_OK) return NULL;
    if (sl_mul(count, element, &bytes))
        *status = sl_mem_alloc(allocator, bytes, &block);
    else
        *status = sl_fail(SL_ENOMEM, "%zu elements of %zu bytes do not fit the address space", count, element);
    return block;
}

void sl_mem_free(const sl_allocator *allocator, void *block, size_t size) {
    if (block) allocator->free(allocator->ctx, block, size ? size : 1);
}

sl_status sl_mem_resize(const sl_allocator *allocator, void **block, size_t old_size, size_t new_size) {
    void *larger;
    SL_TRY(sl_mem_alloc(allocator, new_size, &larger));
    if (*block) memcpy(larger, *block, old_size < new_size ? old_size : new_size);
    sl_mem_free(allocator, *block, old_size);
    *block = larger;
    return SL_OK;
}

void *sl_mem_grow(const sl_allocator *allocator, void *array, size_t *capacity, size_t need, size_t element,
                  sl_status *status) {
    if (*status != SL_OK || (need <= *capacity && array)) return array;
    size_t room = sl_larger(need, *capacity + *capacity / 2), bytes;
    if (sl_mul(room, element, &bytes))
        *status = sl_mem_resize(allocator, &array, *capacity * element, bytes);
    else
        *status = sl_fail(SL_ENOMEM, "an array of %zu elements does not fit", room);
    if (*status == SL_OK) *capacity = room;
    return array;
}
