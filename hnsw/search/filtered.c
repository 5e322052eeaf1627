#include "hnsw/search/filtered.h"

#include "hnsw/search/start.h"
#include "hnsw/search/widen.h"

/* Prices. Comparing with EXACT_ROWS vectors a partition costs as much as finding the nearest partitions and looking at
 * what is allowed there. Without partitions EXACT takes the place of walks that meet fewer than WALK_SHARE allowed. */
enum { EXACT_ROWS = 3, WALK_ROWS = 4096 };
/* A walk meets nodes near the query. From this share of them allowed on it costs less than PARTITIONS. The share is
 * that of AROUND nodes on both sides of where the walk begins: numbers of near partitions follow one another. */
#define WALK_SHARE 0.45
enum { AROUND = 1024 };
/* The share of the k best that PARTITIONS expects to miss at most. It misses up to five times as many, where queries
 * lie far from what is allowed, and so aims at a fifth of what a recall lets it miss. Without a recall that is SHARE_EF
 * / ef, and MOST_MISSED at most. */
#define OF_RECALL   0.2
#define SHARE_EF    0.64
#define MOST_MISSED 0.05

static size_t rest_of(const sl_graph *graph) {
    sl_range rest = sl_partition_rest(&graph->partitions, graph->n);
    return rest.end - rest.first;
}

/* Tells whether partitions can be looked at until few of the best are missed. Under IP that takes their bands: a node's
 * score depends on its length more than on its centroid's score. */
static int has_partitions(const sl_filtered *of) {
    const sl_graph *graph = of->walk->graph;
    const sl_partitions *partitions = &graph->partitions;
    return (graph->codec.metric != SL_METRIC_IP || partitions->band_bits) && partitions->count &&
           graph->partitions.count == of->params->filter->set.partitions && rest_of(graph) <= graph->n / 4;
}

static double missed(const sl_filtered *of) {
    const sl_search_params *params = of->params;
    double share = params->recall > 0 ? OF_RECALL * (1 - params->recall) : SHARE_EF / (double)params->ef;
    return (share < MOST_MISSED ? share : MOST_MISSED) * (double)of->k;
}

/* The share of nodes around `near` that are allowed. */
static double share_near(const sl_allowed *allowed, sl_range near) {
    if (near.first >= near.end) return (double)allowed->count / (double)(allowed->n ? allowed->n : 1);
    near.first = near.first > AROUND ? near.first - AROUND : 0;
    near.end = near.end + AROUND < allowed->n ? near.end + AROUND : allowed->n;
    if (near.first >= near.end) return 0;
    return (double)sl_allowed_count(allowed, near) / (double)(near.end - near.first);
}

/* Chooses, and finds where a walk would begin. */
static sl_filter_strategy choose(const sl_filtered *of, const sl_allowed *allowed, size_t keep, sl_range *near,
                                 double *share) {
    const sl_graph *graph = of->walk->graph;
    int parts = has_partitions(of);
    size_t rows = parts ? EXACT_ROWS * graph->partitions.count : WALK_ROWS;
    sl_filter_strategy wanted = of->params->strategy;
    *share = 1;
    if (wanted == SL_FILTER_PARTITIONS || wanted == SL_FILTER_EXACT) return parts ? wanted : SL_FILTER_EXACT;
    if (wanted == SL_FILTER_AUTO && (allowed->count <= rows || allowed->count <= keep)) return SL_FILTER_EXACT;
    *near = sl_start_near(of->walk, of->query, of->dtype, of->start_scratch);
    *share = share_near(allowed, *near);
    if (wanted == SL_FILTER_WALK || *share >= WALK_SHARE) return SL_FILTER_WALK;
    return parts ? SL_FILTER_PARTITIONS : SL_FILTER_EXACT;
}

/* Walks with a pool that has room for what the filter takes away. Tells whether enough is left. */
static int walk_finds(sl_filtered *of, const sl_allowed *allowed, sl_range near, double share) {
    sl_search_params params = *of->params;
    size_t ef = params.ef > of->k ? params.ef : of->k;
    if (of->params->strategy == SL_FILTER_AUTO && share > 0 && share < 1) {
        double deeper = (double)ef / share;
        ef = deeper < (double)of->deepest ? (size_t)deeper : of->deepest > ef ? of->deepest : ef;
    }
    params.ef = ef;
    sl_widen(of->walk, of->k, &params, of->ranked, of->deepest > ef ? of->deepest : ef, near);
    size_t left = allowed->count < of->k ? allowed->count : of->k;
    return of->walk->pool.size >= left;
}

sl_status sl_filtered_find(sl_filtered *of, sl_filter_strategy *used) {
    sl_walk *walk = of->walk;
    const sl_allowed allowed = sl_filter_allowed(of->params->filter, walk->graph);
    size_t keep = of->ranked < SL_MAX_EF ? of->ranked : SL_MAX_EF;
    sl_range near = {0, 0};
    double share;
    SL_TRY(sl_walk_deepen(walk, keep));
    *used = choose(of, &allowed, keep, &near, &share);
    if (*used == SL_FILTER_WALK) {
        if (walk_finds(of, &allowed, near, share)) return SL_OK;
        *used = has_partitions(of) ? SL_FILTER_PARTITIONS : SL_FILTER_EXACT;
    }
    const sl_wanted wanted = {.k = of->k, .keep = keep, .missed = missed(of)};
    if (*used == SL_FILTER_PARTITIONS)
        sl_nearest_allowed(walk, of->params, of->query, of->dtype, &wanted, of->scratch);
    else
        sl_all_allowed(walk, of->params, &allowed, keep);
    return SL_OK;
}
