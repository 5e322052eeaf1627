#include "cli/memory_limit.h"

#include <stdlib.h>
#include <sys/mman.h>

#define HUGE_PAGE ((size_t)2 << 20)

/* Reserves first, so that threads asking at once do not pass the limit together. */
static int take(memory_limit *limit, size_t size) {
    size_t used = atomic_load(&limit->used);
    do {
        if (size > limit->limit || used > limit->limit - size) {
            size_t none = 0;
            size_t wanted = size > SIZE_MAX - used ? SIZE_MAX : used + size;
            atomic_compare_exchange_strong(&limit->wanted, &none, wanted);
            return 0;
        }
    } while (!atomic_compare_exchange_weak(&limit->used, &used, used + size));
    return 1;
}

static void *limited_alloc(void *ctx, size_t size, size_t alignment) {
    memory_limit *limit = ctx;
    /* Puts large blocks on 2 MB pages, as the library's own allocator does: a graph walk lives on TLB hits. */
    if (size >= HUGE_PAGE && alignment < HUGE_PAGE) alignment = HUGE_PAGE;
    if (size > SIZE_MAX - alignment || !take(limit, size)) return NULL;
    size_t whole = (size + alignment - 1) / alignment * alignment;
    void *block = aligned_alloc(alignment, whole);
    if (!block) atomic_fetch_sub(&limit->used, size);
#ifdef MADV_HUGEPAGE
    /* A refusal leaves small pages, which are slower but not wrong. */
    if (block && size >= HUGE_PAGE) (void)madvise(block, whole, MADV_HUGEPAGE);
#endif
    return block;
}

static void limited_free(void *ctx, void *block, size_t size) {
    memory_limit *limit = ctx;
    atomic_fetch_sub(&limit->used, size);
    free(block);
}

sl_allocator memory_limit_allocator(memory_limit *limit) {
    return (sl_allocator){limit, limited_alloc, limited_free};
}
