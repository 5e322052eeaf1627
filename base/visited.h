/*
 * What a walk has already seen, at a cost that follows what it sees and not the size of the index: a table of bit
 * blocks, 32 neighbouring ids a block, found by the block's number and told apart by a tag. Tags hold the walk's epoch,
 * so that starting a walk clears nothing.
 *
 * Up to 32 ids times the number of slots the table is exact. Beyond that, two blocks may want one slot; the later one
 * takes it, and ids of the earlier one may be seen again: they cost an evaluation and the pool refuses the copy.
 */
#ifndef SL_HNSW_VISITED_H
#define SL_HNSW_VISITED_H

#include "base/memory.h"

typedef struct sl_visited {
    uint64_t *slots; /* tag in the upper half, bits in the lower */
    uint32_t mask;
    uint32_t slot_bits;
    uint32_t epoch; /* in the bits of a tag above those of a block's number */
} sl_visited;

/* A table for ids below n and walks of up to `expected` ids. */
sl_status sl_visited_init(sl_visited *visited, const sl_allocator *allocator, size_t n, size_t expected);
void sl_visited_free(sl_visited *visited, const sl_allocator *allocator);

/* Forgets all: constant time but for once in thousands of walks. */
void sl_visited_clear(sl_visited *visited);

/* 27 bits number the blocks of 2^32 ids; those above the slot's bits go to the tag. */
#define SL_VISITED_BLOCK_BITS 27u

/* Marks the id; returns whether it was marked before. */
static inline int sl_visited_mark(sl_visited *visited, uint32_t id) {
    uint32_t block = id >> 5;
    uint64_t *slot = &visited->slots[block & visited->mask];
    uint32_t tag = visited->epoch | (block >> visited->slot_bits);
    uint64_t entry = (uint32_t)(*slot >> 32) == tag ? *slot : (uint64_t)tag << 32;
    uint64_t bit = (uint64_t)1 << (id & 31);
    *slot = entry | bit;
    return (entry & bit) != 0;
}

#endif
