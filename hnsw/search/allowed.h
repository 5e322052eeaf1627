/* The nodes that a search may return: those of a filter that are not deleted. */
#ifndef SL_HNSW_SEARCH_ALLOWED_H
#define SL_HNSW_SEARCH_ALLOWED_H

#include "hnsw/graph/index.h"

typedef struct sl_allowed {
    const uint64_t *bits;  /* a bit a node; NULL: all */
    const uint64_t *dead;  /* marks of deleted nodes; NULL: none is deleted */
    const uint32_t *nodes; /* the bits that are set, in rising order, `listed` of them; NULL: they are not listed */
    size_t listed;
    size_t n;     /* nodes from n on are not allowed */
    size_t count; /* at least as many as are allowed; more where bits are set for deleted nodes */
} sl_allowed;

/* All nodes of a graph that are not deleted. */
static inline sl_allowed sl_allowed_all(const sl_graph *graph) {
    return (sl_allowed){
        .dead = graph->dead_count ? sl_dead(graph) : NULL, .n = graph->n, .count = sl_undeleted_count(graph)};
}

static inline uint64_t sl_allowed_word(const sl_allowed *allowed, size_t word) {
    uint64_t bits = allowed->bits ? allowed->bits[word] : ~(uint64_t)0;
    return allowed->dead ? bits & ~allowed->dead[word] : bits;
}

static inline int sl_is_allowed(const sl_allowed *allowed, size_t node) {
    return node < allowed->n && (sl_allowed_word(allowed, node / 64) >> (node % 64) & 1);
}

/* Counts the allowed nodes of a range. */
size_t sl_allowed_count(const sl_allowed *allowed, sl_range range);

/* Writes allowed nodes of the range, in rising order, at least 64 places before `room` is full. `range->first` becomes
 * the first node that was not looked at. Returns how many were written. `room` is more than 64. */
size_t sl_allowed_take(const sl_allowed *allowed, sl_range *range, uint32_t *nodes, size_t room);

/* The same over all allowed nodes. `range` begins as what sl_allowed_whole returns, and ends empty. */
sl_range sl_allowed_whole(const sl_allowed *allowed);
size_t sl_allowed_next(const sl_allowed *allowed, sl_range *range, uint32_t *nodes, size_t room);

#endif
