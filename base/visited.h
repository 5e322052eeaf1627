/*
 * The visited set of a walk: a bit for each id, and a list of the marked ids. The next walk clears these ids, not an
 * array of n.
 *
 * Ids that are SL_VISITED_MOST apart share a bit. In a larger index, a walk mistakes about one unseen id in ten
 * thousand for a seen one and doesn't score it.
 */
#ifndef SL_BASE_VISITED_H
#define SL_BASE_VISITED_H

#include "base/memory.h"

#define SL_VISITED_MOST ((size_t)1 << 26)

typedef struct sl_visited {
    /* An id's lower bits select its word and its upper bits its bit. A walk often marks near numbers one after the
     * other, and marks in one word would wait for one another. */
    uint32_t *words;
    uint32_t mask, shift;
    size_t covers;  /* ids below this can be marked */
    uint32_t *list; /* ids marked since the last clearing: up to `room`, and those of one call */
    size_t count, room, expected, most;
    int overflowed; /* more ids were marked than the list holds */
} sl_visited;

/* Prepares for ids below n, walks of about `expected` ids, and calls that mark up to `most` ids. No id is marked. */
sl_status sl_visited_init(sl_visited *visited, const sl_allocator *allocator, size_t n, size_t expected, size_t most);
/* Extends the range to ids below a larger n. On failure nothing changes. */
sl_status sl_visited_cover(sl_visited *visited, const sl_allocator *allocator, size_t n);
void sl_visited_free(sl_visited *visited, const sl_allocator *allocator);

/* Forgets all marks. */
void sl_visited_clear(sl_visited *visited);

/* Returns where to write the next marked ids, up to `most`. They stay there while the next call writes its ids. */
static inline uint32_t *sl_visited_place(sl_visited *visited) {
    if (visited->count > visited->room) {
        visited->overflowed = 1;
        visited->count = 0;
    }
    return visited->list + visited->count;
}

/* Returns whether an id is marked. */
static inline int sl_visited_has(const sl_visited *visited, uint32_t id) {
    return visited->words[id & visited->mask] >> (id >> visited->shift & 31) & 1;
}

/* Marks an id. Returns whether it was marked before. */
static inline int sl_visited_mark(sl_visited *visited, uint32_t id) {
    uint32_t *word = &visited->words[id & visited->mask], before = *word;
    uint32_t bit = (uint32_t)1 << (id >> visited->shift & 31);
    *word = before | bit;
    return (before & bit) != 0;
}

/* Marks n unmarked ids from `first` on and writes them to `ids`. */
void sl_visited_mark_run(sl_visited *visited, uint32_t first, size_t n, uint32_t *ids);

#endif
