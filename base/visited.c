#include "hnsw/visited.h"

#include <string.h>

enum { MIN_SLOT_BITS = 6, MAX_SLOT_BITS = 18 };

sl_status sl_visited_init(sl_visited *visited, const sl_allocator *allocator, size_t n, size_t expected) {
    /* Exact where that is small; else four slots for each id a walk is expected to see keeps collisions rare. */
    size_t blocks = n / 32 + 1;
    size_t wanted = blocks < 1u << 15 || blocks < 4 * expected ? blocks : 4 * expected;
    uint32_t bits = MIN_SLOT_BITS;
    while (bits < MAX_SLOT_BITS && ((size_t)1 << bits) < wanted)
        bits++;
    void *slots;
    SL_TRY(sl_mem_alloc(allocator, sizeof(uint64_t) << bits, &slots));
    *visited = (sl_visited){.slots = slots, .mask = (1u << bits) - 1, .slot_bits = bits};
    sl_visited_clear(visited);
    return SL_OK;
}

void sl_visited_free(sl_visited *visited, const sl_allocator *allocator) {
    sl_mem_free(allocator, visited->slots, sizeof(uint64_t) * ((size_t)visited->mask + 1));
    visited->slots = NULL;
}

void sl_visited_clear(sl_visited *visited) {
    /* Zeroed slots carry epoch 0, which no walk uses. */
    visited->epoch += 1u << (SL_VISITED_BLOCK_BITS - visited->slot_bits);
    if (visited->epoch) return;
    memset(visited->slots, 0, sizeof(uint64_t) * ((size_t)visited->mask + 1));
    visited->epoch = 1u << (SL_VISITED_BLOCK_BITS - visited->slot_bits);
}
