#include "hnsw/construct/reachability_sample.h"

#include "base/failure.h"
#include "base/random.h"
#include "hnsw/search/score_block.h"
#include "hnsw/search/walk.h"

#include <math.h>

enum {
    SAMPLED = 1024,   /* nodes that walks look for */
    LOST_SHARE = 512, /* more than one lost node in this many is too many */
    EF = 200,         /* of a walk */
    FIRST_LINKS = 8,  /* first links of a node that its walk should find */
    AT_ONCE = 16      /* nodes that a thread takes at once */
};

/* Draws one node from the i-th of `of` equal stretches, from node `from` on. */
static uint32_t draw_node(const sl_graph *graph, size_t from, size_t i, size_t of) {
    const uint64_t n = graph->n - from, first = i * n / of, end = (i + 1) * n / of;
    return (uint32_t)(from + first + sl_random_at(graph->seed ^ 0x6c6f7374u, i) % (end - first));
}

static int pool_has(const sl_pool *pool, uint32_t node) {
    for (size_t i = 0; i < pool->size; i++)
        if (sl_pool_id(pool->keys[i]) == node) return 1;
    return 0;
}

/* Returns the lowest score of a walk's results; -INFINITY if there are fewer than EF, since the walk then left nothing
 * out. */
static float worst_score(const sl_pool *pool) {
    float worst = pool->size < EF ? -INFINITY : INFINITY;
    for (size_t i = 0; i < pool->size; i++)
        worst = fminf(worst, sl_pool_score(pool->keys[i]));
    return worst;
}

/* Returns whether the walk to a node misses more than half of its first links, which are the nearest. A link that
 * scores no better than the results isn't missed: many duplicates may be nearer. */
static int is_lost(sl_walk *walk, uint32_t node) {
    const sl_graph *graph = walk->graph;
    const sl_layer layer = sl_layer_at(graph, 0);
    uint32_t links[2 * SL_MAX_M + SL_SCORE_PAD];
    float scores[FIRST_LINKS + SL_SCORE_PAD];
    size_t count = sl_links_known(&layer, sl_links(graph, node), links), missed = 0;
    count = count < FIRST_LINKS ? count : FIRST_LINKS;
    sl_walk_set_query_node(walk, graph, node);
    sl_walk_layer(walk, 0, sl_range_of_id(sl_walk_descend(walk, sl_entry_get(graph), 0)), EF);
    sl_pool_finish(&walk->pool, EF);
    const float worst = worst_score(&walk->pool);
    const sl_row_scorer scorer = sl_row_scorer_of(graph->kernels, walk->codec, &walk->query, 0);
    sl_score_block(&scorer, links, count, count, scores);
    for (size_t i = 0; i < count; i++)
        missed += scores[i] > worst && !pool_has(&walk->pool, links[i]);
    return 2 * missed > count;
}

sl_status sl_reachability_sample_bytes(const sl_graph *graph, size_t threads, size_t *bytes) {
    sl_counted counted = {.from = graph->allocator};
    sl_graph walked = *graph;
    sl_walk walk;
    walked.allocator = sl_counted_allocator(&counted);
    SL_TRY(sl_walk_init(&walk, &walked, EF));
    *bytes = threads * counted.bytes;
    sl_walk_free(&walk);
    return SL_OK;
}

sl_status sl_reachability_sample(const sl_graph *graph, size_t first, size_t threads, sl_progress *progress,
                                 int *many_lost) {
    const size_t n = graph->n - first, sampled = n < SAMPLED ? n : SAMPLED;
    const sl_range mine = sl_share_mine(graph->ranks, sampled, AT_ONCE);
    uint64_t lost = 0;
    (void)threads; /* a build without OpenMP has one thread */
    sl_failure failed;
    sl_failure_init(&failed);
#pragma omp parallel num_threads((int)threads) if (threads > 1) reduction(+ : lost)
    {
        sl_walk walk;
        const sl_status status = sl_walk_init(&walk, graph, EF);
        sl_failure_keep(&failed, 0, status);
#pragma omp for schedule(dynamic, AT_ONCE)
        for (size_t i = mine.first; i < mine.end; i++) {
            if (status != SL_OK || sl_progress_cancelled(progress)) continue;
            lost += (uint64_t)is_lost(&walk, draw_node(graph, first, i, sampled));
            sl_progress_step(progress, 0);
        }
        if (status == SL_OK) sl_walk_free(&walk);
    }
    const sl_status status = sl_share_sum(graph->ranks, sl_failure_pass(&failed), &lost, 1);
    *many_lost = lost * LOST_SHARE > sampled;
    return status;
}
