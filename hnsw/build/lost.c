#include "hnsw/build/lost.h"

#include "base/failure.h"
#include "base/random.h"
#include "hnsw/search/walk.h"

/* Nodes that are looked for, of which a LOST_OF-th may be lost; the ef of a walk, and of one more for what it missed;
 * first links that a walk is to find. */
enum { LOOKED_FOR = 1024, LOST_OF = 256, EF = 200, DEEP_EF = 1000, FIRST_LINKS = 8 };
/* Nodes that a thread takes at once. */
enum { AT_ONCE = 16 };

/* Returns one of each stretch of nodes of equal length. */
static uint32_t pick(const sl_graph *graph, size_t i, size_t of) {
    const uint64_t n = graph->n, first = i * n / of, end = (i + 1) * n / of;
    return (uint32_t)(first + sl_random_at(graph->seed ^ 0x6c6f7374u, i) % (end - first));
}

static int has_found(const sl_pool *pool, uint32_t node) {
    for (size_t i = 0; i < pool->size; i++)
        if (sl_pool_id(pool->keys[i]) == node) return 1;
    return 0;
}

/* A list's first links are the nearest: a walk to the node itself is to find half of them. */
static int is_missed(sl_walk *walk, sl_entry entry, uint32_t node, size_t ef) {
    const sl_graph *graph = walk->graph;
    const uint32_t *links = sl_links(graph, node);
    size_t count = 0, found = 0;
    sl_walk_ask_node(walk, graph, node);
    sl_walk_layer(walk, 0, sl_walk_from(sl_walk_descend(walk, entry, 0)), ef);
    sl_pool_finish(&walk->pool, ef);
    for (; count < graph->m0 && count < FIRST_LINKS && links[count] != SL_NONE; count++)
        found += (size_t)has_found(&walk->pool, links[count]);
    return 2 * found < count;
}

/* What is in another cluster is missed however deep a walk is. Deeper walks find what is only hard to find. */
static int is_lost(sl_walk *walk, sl_entry entry, uint32_t node) {
    return is_missed(walk, entry, node, EF) && is_missed(walk, entry, node, DEEP_EF);
}

sl_status sl_lost_many(const sl_graph *graph, sl_entry entry, size_t threads, sl_progress *progress, int *many) {
    const size_t looked_for = graph->n < LOOKED_FOR ? graph->n : LOOKED_FOR;
    size_t lost = 0;
    sl_failure failed;
    sl_failure_init(&failed);
#pragma omp parallel num_threads((int)threads) if (threads > 1) reduction(+ : lost)
    {
        sl_walk walk;
        const sl_status status = sl_walk_init(&walk, graph, DEEP_EF);
        sl_failure_keep(&failed, 0, status);
#pragma omp for schedule(dynamic, AT_ONCE)
        for (size_t i = 0; i < looked_for; i++) {
            if (status != SL_OK || sl_progress_cancelled(progress)) continue;
            lost += (size_t)is_lost(&walk, entry, pick(graph, i, looked_for));
            sl_progress_step(progress, 0);
        }
        if (status == SL_OK) sl_walk_free(&walk);
    }
    *many = lost * LOST_OF > looked_for;
    return sl_failure_pass(&failed);
}
