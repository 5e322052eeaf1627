/*
 * The nodes that a walk has seen: a bit for each id, and a list of the marked ids. The next walk clears what this one
 * marked, and not an array of n.
 *
 * Ids that are SL_VISITED_MOST apart share a bit. In an index of more ids, a walk takes about one unseen id in ten
 * thousand for a seen one, and loses its evaluation.
 */
#ifndef SL_BASE_VISITED_H
#define SL_BASE_VISITED_H

#include "base/memory.h"

#define SL_VISITED_MOST ((size_t)1 << 26)

typedef struct sl_visited {
    /* An id's lower bits select its word and its upper bits its bit. Ids that are met together are often neighbours,
     * and marks in one word would wait for one another. */
    uint32_t *words;
    uint32_t mask, shift;
    size_t covers;  /* ids */
    uint32_t *list; /* ids marked since the last clearing; there is room for `room` and the ids of one call */
    size_t count, room, expected, most;
    int overflowed; /* more were marked than the list holds */
} sl_visited;

/* Prepares for ids below n and walks of up to `expected` ids. Calls add `most` ids at a time. No id is marked. */
sl_status sl_visited_init(sl_visited *visited, const sl_allocator *allocator, size_t n, size_t expected, size_t most);
/* Extends the range to ids below a larger n. On failure nothing is changed. */
sl_status sl_visited_cover(sl_visited *visited, const sl_allocator *allocator, size_t n);
void sl_visited_free(sl_visited *visited, const sl_allocator *allocator);

/* Forgets all marks. */
void sl_visited_clear(sl_visited *visited);

/* Returns the place for the next `most` ids that are marked. They stay there while the ids of the next call are
 * written. */
static inline uint32_t *sl_visited_place(sl_visited *visited) {
    if (visited->count > visited->room) {
        visited->overflowed = 1;
        visited->count = 0;
    }
    return visited->list + visited->count;
}

/* Tells whether an id is marked. */
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

/* Marks n ids from `first` on, of which none is marked, and writes them to `ids`. */
void sl_visited_mark_run(sl_visited *visited, uint32_t first, size_t n, uint32_t *ids);

#endif
