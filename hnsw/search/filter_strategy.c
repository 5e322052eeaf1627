#include "hnsw/search/filter_strategy.h"

#include "hnsw/graph/partition.h"
#include "hnsw/search/filter.h"
#include "hnsw/search/start_nodes.h"
#include "hnsw/search/widen_beam.h"

/* Costs. Choosing the nearest partitions and searching their allowed nodes costs as much as scoring EXACT_ROWS rows per
 * partition. Without partitions, EXACT takes the place of walks if at most WALK_ROWS nodes are allowed. */
enum { EXACT_ROWS = 3, WALK_ROWS = 4096 };
/* HOPS costs as much as scoring ef times this many rows. */
enum { HOPS_ROWS = 512 };
/* A row in EXACT costs half as much as a row in PARTITIONS, which also decides when to end. */
enum { EXACT_GAIN = 2 };
/* A walk visits nodes near the query. WALK costs less than PARTITIONS if at least this share of these nodes is allowed.
 * The share is measured on the AROUND nodes before and after the walk's start nodes, because near partitions have near
 * numbers. */
#define WALK_SHARE 0.22
enum { AROUND = 1024 };
/* Under IP a walk visits the longest vectors. WALK finds enough if at least LONGEST_SHARE of them are allowed. The
 * longest vectors are in the first bands, an eighth of all nodes. The share is measured on BESIDE partitions before and
 * after the walk's start nodes. */
#define LONGEST_SHARE 0.05
enum { BESIDE = 4, LONGEST_BANDS = 10 };
/* If a walk needs a beam wider than this many times ef, another strategy takes over. The share at the walk's start was
 * misleading then. */
enum { WALK_DEEPER = 4 };
/* The same if the filter refuses at most one node in RARE. The refused nodes may be those nearest to the query, such as
 * the items that a user has seen. All nodes behind them are allowed then. */
enum { WALK_DEEPEST = 16, RARE = 4 };
/* Takes the place of WALK_SHARE in an index without partitions. */
#define OTHER_SHARE 0.1
/* The share of the k best that PARTITIONS may expect to miss. If queries are far from the allowed nodes, PARTITIONS
 * misses up to five times as many. So it aims at a fifth of the misses that a recall allows. Without a recall the share
 * is SHARE_EF / ef, and at most MOST_MISSED. */
#define OF_RECALL   0.2
#define SHARE_EF    0.64
#define MOST_MISSED 0.05

/* The facts about one search. */
typedef struct search_plan {
    sl_allowed allowed;
    sl_scan_goal goal;
    size_t ef;
    int has_partitions; /* partitions can be searched */
    sl_range start;     /* where a walk starts */
    double share;       /* allowed share of the nodes around the start */
} search_plan;

static int has_partitions(const sl_filtered_search *search) {
    const sl_graph *graph = search->walk->graph;
    const sl_filter *filter = search->params->filter;
    sl_range rest = sl_partition_rest(&graph->partitions, graph->n);
    return graph->partitions.count && (!filter || graph->partitions.count == filter->set.partitions) &&
           rest.end - rest.first <= graph->n / 4;
}

/* Returns whether PARTITIONS may be chosen: its search must be able to end once it misses few of the best. Under IP it
 * needs bands for that, since a node's score depends on its length more than on its centroid's score. */
static int can_search_partitions(const sl_filtered_search *search, const search_plan *plan) {
    const sl_graph *graph = search->walk->graph;
    return plan->has_partitions && (graph->codec.metric != SL_METRIC_IP || graph->partitions.band_bits);
}

/* Returns whether scoring all allowed nodes costs least. */
static int is_exact_cheapest(const sl_filtered_search *search, const search_plan *plan) {
    size_t rows = plan->has_partitions ? EXACT_ROWS * search->walk->graph->partitions.count : WALK_ROWS;
    return plan->allowed.count <= rows || plan->allowed.count <= plan->goal.keep;
}

/* Returns the strategy to use in place of WALK. HOPS doesn't support callbacks. */
static sl_filter_strategy strategy_instead_of_walk(const sl_filtered_search *search, const search_plan *plan) {
    if (can_search_partitions(search, plan)) return SL_FILTER_PARTITIONS;
    return !plan->has_partitions || sl_has_id_filter(search->params) ? SL_FILTER_EXACT : SL_FILTER_HOPS;
}

static double max_missed(const sl_filtered_search *search) {
    const sl_search_params *params = search->params;
    double share =
        params->filter && params->recall > 0 ? OF_RECALL * (1 - params->recall) : SHARE_EF / (double)params->ef;
    return (share < MOST_MISSED ? share : MOST_MISSED) * (double)search->k;
}

/* Returns the allowed share of the longest vectors around the walk's start. */
static double share_of_longest(const sl_filtered_search *search, const search_plan *plan) {
    const sl_partitions *partitions = &search->walk->graph->partitions;
    const size_t at = sl_partition_of(partitions, plan->start.first);
    size_t longest_count = 0, passing = 0;
    for (size_t p = at > BESIDE ? at - BESIDE : 0; p <= at + BESIDE && p < partitions->count; p++) {
        sl_range longest = sl_partition_nodes(partitions, p, plan->allowed.n);
        longest.end = longest.first + sl_partition_band_rows(longest.end - longest.first, LONGEST_BANDS);
        longest_count += longest.end - longest.first;
        passing += sl_allowed_count(&plan->allowed, longest);
    }
    return longest_count ? (double)passing / (double)longest_count : 0;
}

/* Finds the walk's start nodes, and the allowed share of the nodes around them. */
static void measure_share(const sl_filtered_search *search, search_plan *plan) {
    const sl_allowed *allowed = &plan->allowed;
    plan->start = sl_start_nodes(search->walk, search->query, search->scratch);
    sl_range around = {0, allowed->n};
    if (plan->start.first < plan->start.end) {
        around.first = plan->start.first > AROUND ? plan->start.first - AROUND : 0;
        around.end = plan->start.end + AROUND < allowed->n ? plan->start.end + AROUND : allowed->n;
        plan->share = around.first < around.end
                          ? (double)sl_allowed_count(allowed, around) / (double)(around.end - around.first)
                          : 0;
        if (can_search_partitions(search, plan) && search->walk->graph->partitions.band_bits &&
            share_of_longest(search, plan) < LONGEST_SHARE)
            plan->share = 0;
    } else {
        plan->share = (double)allowed->count / (double)(allowed->n ? allowed->n : 1);
    }
    /* No walk meets a free place. */
    const sl_graph *graph = search->walk->graph;
    if (graph->free_count) plan->share *= (double)graph->n / (double)(graph->n - graph->free_count);
    if (plan->share > 1) plan->share = 1;
}

static sl_filter_strategy choose_strategy(const sl_filtered_search *search, search_plan *plan) {
    const sl_filter_strategy given = search->params->filter ? search->params->strategy : SL_FILTER_AUTO;
    plan->share = 1;
    if (given == SL_FILTER_PARTITIONS && !can_search_partitions(search, plan)) return SL_FILTER_EXACT;
    if (given == SL_FILTER_HOPS && !plan->has_partitions) return SL_FILTER_EXACT;
    if (given != SL_FILTER_AUTO && given != SL_FILTER_WALK) return given;
    if (search->params->filter && given == SL_FILTER_AUTO && is_exact_cheapest(search, plan)) return SL_FILTER_EXACT;
    measure_share(search, plan);
    double least = plan->has_partitions ? WALK_SHARE : OTHER_SHARE;
    if (given == SL_FILTER_WALK || plan->share >= least) return SL_FILTER_WALK;
    return is_exact_cheapest(search, plan) ? SL_FILTER_EXACT : strategy_instead_of_walk(search, plan);
}

static int search_by_walk(const sl_filtered_search *search, const search_plan *plan) {
    const int rare =
        !sl_has_id_filter(search->params) && plan->allowed.n - plan->allowed.n / RARE <= plan->allowed.count;
    const size_t most = (rare ? WALK_DEEPEST : WALK_DEEPER) * plan->ef;
    size_t max_ef = plan->has_partitions && search->params->strategy == SL_FILTER_AUTO ? most : SL_MAX_EF;
    /* Among tombstones search->max_ef is no limit, because settings are tuned for the nodes that are left. */
    if (sl_is_filtered(search->params) && search->max_ef < max_ef) max_ef = search->max_ef;
    const sl_beam_params how = {.search = search->params,
                                .allowed = &plan->allowed,
                                .k = search->k,
                                .rerank = search->rerank,
                                .max_ef = max_ef,
                                .share = plan->share,
                                .mostly_allowed = rare,
                                .start = plan->start};
    return sl_widen_beam(search->walk, &how);
}

/* Returns how many rows PARTITIONS may score before another strategy costs less. */
static size_t max_rows_by_partitions(const search_plan *plan) {
    size_t by_hops = HOPS_ROWS * plan->ef, by_all = plan->allowed.count / EXACT_GAIN;
    return by_hops < by_all ? by_hops : by_all;
}

/* Walks from the best candidates of the pool, or from near allowed nodes if the pool is empty. Returns whether it found
 * enough. */
static int search_by_hops(const sl_filtered_search *search, search_plan *plan) {
    sl_walk *walk = search->walk;
    uint32_t seeds[SL_SEEDS + 65];
    const sl_top best = {(sl_top_entry *)(void *)search->scratch, 0, search->k};
    size_t count = walk->pool.size < SL_SEEDS ? walk->pool.size : SL_SEEDS;
    sl_pool_sort(&walk->pool);
    for (size_t i = 0; i < count; i++)
        seeds[i] = sl_pool_id(walk->pool.keys[i]);
    if (!count)
        count = sl_allowed_seeds(walk, &plan->allowed, plan->goal.by_partition, search->query,
                                 (uint8_t *)(best.entries + search->k), seeds);
    if (sl_walk_reserve(walk, sl_walk_allowed_pool_ef(plan->ef)) != SL_OK) return 0;
    sl_walk_allowed(walk, &plan->allowed, seeds, count, plan->ef, plan->goal.keep, best);
    if (sl_has_id_filter(search->params))
        sl_pool_drop_refused(walk->graph, search->params, &plan->allowed, &walk->pool);
    return walk->pool.size >= search->k || sl_walk_is_over_budget(walk);
}

sl_filter_strategy sl_search_filtered(sl_filtered_search *search) {
    sl_walk *walk = search->walk;
    const sl_filter *filter = search->params->filter;
    const size_t ef = search->params->ef > search->k ? search->params->ef : search->k;
    /* Settings are tuned for walks that keep ef candidates. So a search among tombstones keeps no more either. */
    const size_t room = sl_is_filtered(search->params) ? SL_MAX_EF : ef;
    size_t keep = search->rerank < room ? search->rerank : room;
    if (sl_walk_reserve(walk, keep) != SL_OK) keep = walk->pool_ef;
    search_plan plan = {.allowed = filter ? sl_filter_allowed(filter, walk->graph) : sl_allowed_all(walk->graph),
                        .goal = {.k = search->k, .keep = keep, .max_missed = max_missed(search), .max_nodes = SIZE_MAX},
                        .ef = ef,
                        .has_partitions = has_partitions(search)};
    if (filter) plan.goal.by_partition = filter->set.by_partition;
    walk->pool.size = 0;
    if (!plan.allowed.count) return SL_FILTER_EXACT;
    sl_filter_strategy used = choose_strategy(search, &plan);
    if (used == SL_FILTER_WALK) {
        if (search_by_walk(search, &plan)) return used;
        used = is_exact_cheapest(search, &plan) ? SL_FILTER_EXACT : strategy_instead_of_walk(search, &plan);
    }
    walk->pool.size = 0;
    if (used == SL_FILTER_PARTITIONS) {
        if (search->params->strategy == SL_FILTER_AUTO && !sl_has_id_filter(search->params))
            plan.goal.max_nodes = max_rows_by_partitions(&plan);
        size_t left =
            sl_scan_allowed_partitions(walk, search->params, &plan.allowed, &plan.goal, search->query, search->scratch);
        if (!left) return used;
        used = left > plan.allowed.count / EXACT_GAIN ? SL_FILTER_EXACT : SL_FILTER_HOPS;
    }
    if (used == SL_FILTER_HOPS && search_by_hops(search, &plan)) return used;
    sl_scan_all_allowed(walk, search->params, &plan.allowed, keep);
    return SL_FILTER_EXACT;
}
