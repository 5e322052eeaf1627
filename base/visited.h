/*
 * What a walk has already seen: a bit an id, and the list of the ids that were marked, so that starting the next walk
 * clears what this one touched and not an array of n.
 *
 * Beyond SL_VISITED_MOST ids those that are that far apart share a bit: in an index so large a walk takes an id for
 * seen that it has not seen once in some ten thousand times, and loses that evaluation.
 */
#ifndef SL_BASE_VISITED_H
#define SL_BASE_VISITED_H

#include "base/memory.h"

#define SL_VISITED_MOST ((size_t)1 << 26)

typedef struct sl_visited {
    /* An id's word is its lower bits' and its bit its upper ones': ids that are met together are often neighbours, and
     * marks in one word would wait for one another. */
    uint32_t *words;
    uint32_t mask, shift;
    size_t covers;  /* ids */
    uint32_t *list; /* ids marked since the last clearing, room for `room` and what one call adds */
    size_t count, room, expected, most;
    int lost; /* more were marked than the list holds */
} sl_visited;

/* For ids below n and walks of up to `expected` ids, told of by calls that add `most` at a time; none marked. */
sl_status sl_visited_init(sl_visited *visited, const sl_allocator *allocator, size_t n, size_t expected, size_t most);
/* The same for ids below a larger n; nothing is changed on failure. */
sl_status sl_visited_cover(sl_visited *visited, const sl_allocator *allocator, size_t n);
void sl_visited_free(sl_visited *visited, const sl_allocator *allocator);

/* Forgets all. */
void sl_visited_clear(sl_visited *visited);

/* Where the next `most` ids that are marked may be put; they stay there while those of the next call are put down. */
static inline uint32_t *sl_visited_place(sl_visited *visited) {
    if (visited->count > visited->room) {
        visited->lost = 1;
        visited->count = 0;
    }
    return visited->list + visited->count;
}

/* Marks the id; returns whether it was marked before. */
static inline int sl_visited_mark(sl_visited *visited, uint32_t id) {
    uint32_t *word = &visited->words[id & visited->mask], before = *word;
    uint32_t bit = (uint32_t)1 << (id >> visited->shift & 31);
    *word = before | bit;
    return (before & bit) != 0;
}

/* Marks n ids from `first` on, none of which is marked, and puts them at `ids`. */
void sl_visited_mark_run(sl_visited *visited, uint32_t first, size_t n, uint32_t *ids);

#endif
