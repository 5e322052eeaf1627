#include "hnsw/search/filter_strategy.h"

#include "hnsw/graph/partition.h"
#include "hnsw/search/filter.h"
#include "hnsw/search/start_nodes.h"
#include "hnsw/search/widen_beam.h"

/* Prices. Comparing with EXACT_ROWS vectors a partition costs as much as finding the nearest partitions and looking at
 * what is allowed there. Without partitions EXACT takes the place of walks that meet fewer than WALK_SHARE allowed. */
enum { EXACT_ROWS = 3, WALK_ROWS = 4096 };
/* Comparing with so many rows, for each of ef, costs as much as HOPS. */
enum { HOPS_ROWS = 512 };
/* A row of EXACT costs so much less than one of PARTITIONS, which asks when to end. */
enum { EXACT_GAIN = 2 };
/* A walk meets nodes near the query. From this share of them allowed on WALK costs less than PARTITIONS. The share is
 * that of AROUND nodes on both sides of where the walk begins: numbers of near partitions follow one another. */
#define WALK_SHARE 0.22
enum { AROUND = 1024 };
/* Under IP a walk goes to the longest vectors, and serves where at least LONGEST_SHARE of these are allowed. They are
 * those of the first bands, an eighth of all, of so many partitions on both sides of where the walk begins. */
#define LONGEST_SHARE 0.05
enum { BESIDE = 4, LONGEST_BANDS = 10 };
/* A walk that needs more than so many times ef gives way to another strategy: the share around its begin misled. */
enum { WALK_DEEPER = 4 };
/* So many times ef, where at most a node in RARE is refused: these may lie nearest to the query, such as what a user
 * has seen, and all behind them is allowed. */
enum { WALK_DEEPEST = 16, RARE = 4 };
/* The same share, where PARTITIONS does not serve. */
#define OTHER_SHARE 0.1
/* The share of the k best that PARTITIONS expects to miss at most. It misses up to five times as many, where queries
 * lie far from what is allowed, and so aims at a fifth of what a recall lets it miss. Without a recall that is SHARE_EF
 * / ef, and MOST_MISSED at most. */
#define OF_RECALL   0.2
#define SHARE_EF    0.64
#define MOST_MISSED 0.05

/* The facts that one search has found out. */
typedef struct finding {
    sl_allowed allowed;
    sl_scan_goal wanted;
    size_t ef;
    int parts;     /* partitions can be looked at */
    sl_range near; /* where a walk begins */
    double share;  /* of the nodes around it that may be returned */
} finding;

static int has_partitions(const sl_filtered_search *of) {
    const sl_graph *graph = of->walk->graph;
    const sl_filter *filter = of->params->filter;
    sl_range rest = sl_partition_rest(&graph->partitions, graph->n);
    return graph->partitions.count && (!filter || graph->partitions.count == filter->set.partitions) &&
           rest.end - rest.first <= graph->n / 4;
}

/* Tells whether partitions can be looked at until few of the best are missed. Under IP that takes their bands: a node's
 * score depends on its length more than on its centroid's score. */
static int can_look(const sl_filtered_search *of, const finding *f) {
    const sl_graph *graph = of->walk->graph;
    return f->parts && (graph->codec.metric != SL_METRIC_IP || graph->partitions.band_bits);
}

/* Tells whether comparing with all that is allowed costs least. */
static int is_little(const sl_filtered_search *of, const finding *f) {
    size_t rows = f->parts ? EXACT_ROWS * of->walk->graph->partitions.count : WALK_ROWS;
    return f->allowed.count <= rows || f->allowed.count <= f->wanted.keep;
}

/* Returns what takes the place of WALK. HOPS asks no callback. */
static sl_filter_strategy without_walk(const sl_filtered_search *of, const finding *f) {
    if (can_look(of, f)) return SL_FILTER_PARTITIONS;
    return !f->parts || sl_has_id_filter(of->params) ? SL_FILTER_EXACT : SL_FILTER_HOPS;
}

static double missed(const sl_filtered_search *of) {
    const sl_search_params *params = of->params;
    double share =
        params->filter && params->recall > 0 ? OF_RECALL * (1 - params->recall) : SHARE_EF / (double)params->ef;
    return (share < MOST_MISSED ? share : MOST_MISSED) * (double)of->k;
}

/* Returns the number of the partition that holds a node, one of those that have a partition. */
static size_t partition_of(const sl_partitions *partitions, size_t node) {
    size_t first = 0, end = partitions->count;
    while (end - first > 1) {
        size_t middle = first + (end - first) / 2;
        *(partitions->starts[middle] <= node ? &first : &end) = middle;
    }
    return first;
}

/* Returns the share of the longest vectors around where a walk begins that may be returned. */
static double share_of_longest(const sl_filtered_search *of, const finding *f) {
    const sl_partitions *partitions = &of->walk->graph->partitions;
    const size_t at = partition_of(partitions, f->near.first);
    size_t met = 0, passing = 0;
    for (size_t p = at > BESIDE ? at - BESIDE : 0; p <= at + BESIDE && p < partitions->count; p++) {
        sl_range longest = sl_partition_nodes(partitions, p, f->allowed.n);
        longest.end = longest.first + sl_partition_band_rows(longest.end - longest.first, LONGEST_BANDS);
        met += longest.end - longest.first;
        passing += sl_allowed_count(&f->allowed, longest);
    }
    return met ? (double)passing / (double)met : 0;
}

/* Finds where a walk begins, and what share of the nodes around may be returned. */
static void look_around(const sl_filtered_search *of, finding *f) {
    const sl_allowed *allowed = &f->allowed;
    f->near = sl_start_nodes(of->walk, of->query, of->scratch);
    sl_range around = {0, allowed->n};
    if (f->near.first < f->near.end) {
        around.first = f->near.first > AROUND ? f->near.first - AROUND : 0;
        around.end = f->near.end + AROUND < allowed->n ? f->near.end + AROUND : allowed->n;
        f->share = around.first < around.end
                       ? (double)sl_allowed_count(allowed, around) / (double)(around.end - around.first)
                       : 0;
        if (can_look(of, f) && of->walk->graph->partitions.band_bits && share_of_longest(of, f) < LONGEST_SHARE)
            f->share = 0;
    } else {
        f->share = (double)allowed->count / (double)(allowed->n ? allowed->n : 1);
    }
}

static sl_filter_strategy choose(const sl_filtered_search *of, finding *f) {
    const sl_filter_strategy given = of->params->filter ? of->params->strategy : SL_FILTER_AUTO;
    f->share = 1;
    if (given == SL_FILTER_PARTITIONS && !can_look(of, f)) return SL_FILTER_EXACT;
    if (given == SL_FILTER_HOPS && !f->parts) return SL_FILTER_EXACT;
    if (given != SL_FILTER_AUTO && given != SL_FILTER_WALK) return given;
    if (of->params->filter && given == SL_FILTER_AUTO && is_little(of, f)) return SL_FILTER_EXACT;
    look_around(of, f);
    double least = f->parts ? WALK_SHARE : OTHER_SHARE;
    if (given == SL_FILTER_WALK || f->share >= least) return SL_FILTER_WALK;
    return is_little(of, f) ? SL_FILTER_EXACT : without_walk(of, f);
}

static int walk_finds(const sl_filtered_search *of, const finding *f) {
    const int rare = !sl_has_id_filter(of->params) && f->allowed.n - f->allowed.n / RARE <= f->allowed.count;
    const size_t most = (rare ? WALK_DEEPEST : WALK_DEEPER) * f->ef;
    size_t max_ef = f->parts && of->params->strategy == SL_FILTER_AUTO ? most : SL_MAX_EF;
    /* Deletions are no limit: settings are tuned for what is left. */
    if (sl_is_filtered(of->params) && of->max_ef < max_ef) max_ef = of->max_ef;
    const sl_beam_params how = {.search = of->params,
                                .allowed = &f->allowed,
                                .k = of->k,
                                .rerank = of->rerank,
                                .max_ef = max_ef,
                                .share = f->share,
                                .mostly_allowed = rare,
                                .start = f->near};
    return sl_widen_beam(of->walk, &how);
}

/* Returns how many vectors PARTITIONS may compare with, before another strategy costs less. */
static size_t most_by_partitions(const finding *f) {
    size_t by_hops = HOPS_ROWS * f->ef, by_all = f->allowed.count / EXACT_GAIN;
    return by_hops < by_all ? by_hops : by_all;
}

/* Walks from the best of the pool, or from near allowed nodes where it is empty. Returns whether enough were found. */
static int hops_find(const sl_filtered_search *of, finding *f) {
    sl_walk *walk = of->walk;
    uint32_t seeds[SL_SEEDS + 65];
    const sl_top best = {(sl_top_entry *)(void *)of->scratch, 0, of->k};
    size_t count = walk->pool.size < SL_SEEDS ? walk->pool.size : SL_SEEDS;
    sl_pool_sort(&walk->pool);
    for (size_t i = 0; i < count; i++)
        seeds[i] = sl_pool_id(walk->pool.keys[i]);
    if (!count)
        count = sl_allowed_seeds(walk, &f->allowed, f->wanted.by_partition, of->query,
                                 (uint8_t *)(best.entries + of->k), seeds);
    if (sl_walk_reserve(walk, sl_walk_allowed_pool_ef(f->ef)) != SL_OK) return 0;
    sl_walk_allowed(walk, &f->allowed, seeds, count, f->ef, f->wanted.keep, best);
    if (sl_has_id_filter(of->params)) sl_pool_drop_refused(walk->graph, of->params, &f->allowed, &walk->pool);
    return walk->pool.size >= of->k || sl_walk_is_over_budget(walk);
}

sl_filter_strategy sl_search_filtered(sl_filtered_search *of) {
    sl_walk *walk = of->walk;
    const sl_filter *filter = of->params->filter;
    const size_t ef = of->params->ef > of->k ? of->params->ef : of->k;
    /* Settings are tuned for walks, which keep ef among deleted nodes too. */
    const size_t room = sl_is_filtered(of->params) ? SL_MAX_EF : ef;
    size_t keep = of->rerank < room ? of->rerank : room;
    if (sl_walk_reserve(walk, keep) != SL_OK) keep = walk->pool_ef;
    finding f = {.allowed = filter ? sl_filter_allowed(filter, walk->graph) : sl_allowed_all(walk->graph),
                 .wanted = {.k = of->k, .keep = keep, .max_missed = missed(of), .max_nodes = SIZE_MAX},
                 .ef = ef,
                 .parts = has_partitions(of)};
    if (filter) f.wanted.by_partition = filter->set.by_partition;
    walk->pool.size = 0;
    if (!f.allowed.count) return SL_FILTER_EXACT;
    sl_filter_strategy used = choose(of, &f);
    if (used == SL_FILTER_WALK) {
        if (walk_finds(of, &f)) return used;
        used = is_little(of, &f) ? SL_FILTER_EXACT : without_walk(of, &f);
    }
    walk->pool.size = 0;
    if (used == SL_FILTER_PARTITIONS) {
        if (of->params->strategy == SL_FILTER_AUTO && !sl_has_id_filter(of->params))
            f.wanted.max_nodes = most_by_partitions(&f);
        size_t left = sl_scan_allowed_partitions(walk, of->params, &f.allowed, &f.wanted, of->query, of->scratch);
        if (!left) return used;
        used = left > f.allowed.count / EXACT_GAIN ? SL_FILTER_EXACT : SL_FILTER_HOPS;
    }
    if (used == SL_FILTER_HOPS && hops_find(of, &f)) return used;
    sl_scan_all_allowed(walk, of->params, &f.allowed, keep);
    return SL_FILTER_EXACT;
}
