#include "base/visited.h"

#include <assert.h>
#include <string.h>

enum { MOST_SHIFT = 21 };
static_assert((size_t)32 << MOST_SHIFT == SL_VISITED_MOST, "SL_VISITED_MOST");

static size_t words_size(const sl_visited *visited) {
    return sizeof(uint32_t) << visited->shift;
}

static size_t list_size(const sl_visited *visited) {
    return visited->room + visited->most;
}

sl_status sl_visited_init(sl_visited *visited, const sl_allocator *allocator, size_t n, size_t expected, size_t most) {
    sl_status status;
    void *block;
    size_t room = expected < n ? expected : n;
    *visited = (sl_visited){.covers = n, .room = room + 2 * most, .expected = expected, .most = most};
    while (visited->shift < MOST_SHIFT && ((size_t)32 << visited->shift) < n)
        visited->shift++;
    visited->mask = ((uint32_t)1 << visited->shift) - 1;
    SL_TRY_GOTO(sl_mem_alloc(allocator, words_size(visited), &block), fail);
    visited->words = block;
    SL_TRY_GOTO(sl_mem_alloc(allocator, list_size(visited) * sizeof(uint32_t), &block), fail);
    visited->list = block;
    return SL_OK;
fail:
    sl_visited_free(visited, allocator);
    return status;
}

sl_status sl_visited_cover(sl_visited *visited, const sl_allocator *allocator, size_t n) {
    sl_visited larger;
    if (n <= visited->covers) return SL_OK;
    SL_TRY(sl_visited_init(&larger, allocator, n, visited->expected, visited->most));
    sl_visited_free(visited, allocator);
    *visited = larger;
    return SL_OK;
}

void sl_visited_free(sl_visited *visited, const sl_allocator *allocator) {
    sl_mem_free(allocator, visited->words, words_size(visited));
    SL_FREE_ARRAY(allocator, visited->list, list_size(visited));
    *visited = (sl_visited){0};
}

void sl_visited_clear(sl_visited *visited) {
    /* Clears the marked words one by one, or all words in a row, whichever writes less. */
    size_t size = words_size(visited);
    if (visited->overflowed || visited->count > size / 64)
        memset(visited->words, 0, size);
    else
        for (size_t i = 0; i < visited->count; i++)
            visited->words[visited->list[i] & visited->mask] = 0;
    visited->count = 0;
    visited->overflowed = 0;
}

void sl_visited_mark_run(sl_visited *visited, uint32_t first, size_t n, uint32_t *ids) {
    for (size_t i = 0; i < n; i++)
        ids[i] = first + (uint32_t)i;
    /* Ids in a row use the same bit of adjacent words. After the last word, the first word follows with the next bit.
     */
    for (size_t done = 0, some; done < n; done += some) {
        uint32_t id = first + (uint32_t)done, bit = (uint32_t)1 << (id >> visited->shift & 31);
        uint32_t *words = visited->words + (id & visited->mask);
        some = (size_t)visited->mask + 1 - (id & visited->mask);
        if (some > n - done) some = n - done;
        for (size_t i = 0; i < some; i++)
            words[i] |= bit;
    }
}
