#include "hnsw/search/scan_allowed.h"

#include "hnsw/search/bands.h"
#include "hnsw/search/partition_order.h"
#include "hnsw/search/score_block.h"

#include <math.h>
#include <string.h>

/* MIN_SCORED: the least nodes to score between two tests, if partitions have few allowed ones. TRUSTED: the scan trusts
 * the spread of scores once it has learnt it from this many nodes. */
enum { MIN_SCORED = 64, TRUSTED = 32 };
/* The scan tests whether it may end each time it has scored a sixteenth more nodes. A test costs as much as scoring
 * some hundred nodes. */
enum { TEST_EVERY = 16 };
/* After this many nodes the scan learns the spread from only a part of the nodes. */
enum { LEARNT_FROM_PART = 2048 };
/* After this many nodes the scan first predicts how many it will need. */
enum { FIRST_PREDICTION = 1024 };
/* Rows to prefetch ahead. */
enum { AHEAD = 16 };
/* Places of a block, which whole words of the bitmap fill. */
enum { ROOM = SL_SCORE_BLOCK + 64 };
#define SQRT2 1.4142135623730951

/* Under IP the scan goes down to a fraction of the k-th best score. The fraction is PART if PART_MISSED of the k best
 * may be missed. It grows by PART_PER_FOLD each time this share grows by a factor of e. */
#define PART          0.75
#define PART_MISSED   0.01
#define PART_PER_FOLD 0.062
#define STEP          0.8f
#define LAST          1e-3f

/* How far nodes' scores lie from their centroid's score. The unit is the query's distance from the centroid under L2,
 * and 1 under cosine. */
typedef struct spread {
    double count, sum;
    double above, squares; /* scores above the mean of all earlier ones: their number, and the sum of their squared
                              distances from it */
} spread;

typedef struct allowed_scan {
    sl_walk *walk;
    const sl_search_params *params;
    const sl_scan_goal *goal;
    sl_allowed allowed;
    sl_partition_order order;
    sl_row_scorer scorer;

    /* Nodes that are not scored yet. */
    uint32_t nodes[ROOM + SL_SCORE_PAD];
    float node_scores[ROOM + SL_SCORE_PAD];
    float base[ROOM], unit[ROOM]; /* score of each node's centroid, and unit of the spread around it */
    size_t waiting;

    sl_top best; /* the k best scores; an entry's id says as which node, in order, it was scored */
    size_t scored;
    spread spread;
    size_t predicted;  /* nodes still needed at the last prediction */
    size_t predict_at; /* number of scored nodes at which the scan next predicts how many more it needs; doubles each
                          time */
} allowed_scan;

size_t sl_scan_allowed_scratch(const sl_graph *graph, size_t k) {
    return k * sizeof(sl_top_entry) + sl_partition_order_scratch(graph);
}

/* Drops nodes that the callback or the bitmap refuses, and nodes that the pool would not take. It asks only about the
 * others. */
static size_t drop_refused(const sl_walk *walk, const sl_search_params *params, uint32_t *nodes, float *scores,
                           size_t count) {
    float threshold = walk->pool.candidates.threshold;
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (!(scores[i] > threshold) || !sl_accepts_id(params, sl_id_of(walk->graph, nodes[i]))) continue;
        nodes[kept] = nodes[i];
        scores[kept++] = scores[i];
    }
    return kept;
}

void sl_scan_all_allowed(sl_walk *walk, const sl_search_params *params, const sl_allowed *allowed, size_t keep) {
    const sl_row_scorer scorer = sl_row_scorer_of(walk->graph->kernels, walk->codec, &walk->query, AHEAD);
    uint32_t nodes[ROOM + SL_SCORE_PAD] = {0};
    float scores[ROOM + SL_SCORE_PAD];
    sl_range left = sl_allowed_begin(allowed);
    size_t count = 0;
    int by_id = sl_has_id_filter(params);
    sl_pool_start(&walk->pool, keep, 0);
    while ((left.first < left.end && !sl_walk_is_over_budget(walk)) || count) {
        if (!sl_walk_is_over_budget(walk)) count += sl_allowed_next(allowed, &left, nodes + count, ROOM - count);
        size_t some = count < SL_SCORE_BLOCK ? count : SL_SCORE_BLOCK, taken = some;
        sl_score_block(&scorer, nodes, some, count, scores);
        walk->evaluations += some;
        uint32_t behind[64];
        memcpy(behind, nodes + some, (count - some) * sizeof *nodes);
        if (by_id) taken = drop_refused(walk, params, nodes, scores, some);
        sl_pool_offer(&walk->pool, scores, nodes, taken);
        count -= some;
        memcpy(nodes, behind, count * sizeof *nodes);
    }
    sl_pool_finish(&walk->pool, keep);
}

/* ---------------------------------------------------------------------------------------------------------------
 * When to end
 * ------------------------------------------------------------------------------------------------------------- */

/* Sums have LANES parts, which compilers keep in registers. */
enum { LANES = 8 };
_Static_assert(ROOM % LANES == 0, "whole lanes");

static float sum_of(const float *parts) {
    float sum = 0;
    for (size_t lane = 0; lane < LANES; lane++)
        sum += parts[lane];
    return sum;
}

static void learn_spread(allowed_scan *scan) {
    float sums[LANES] = {0}, squares[LANES] = {0}, above[LANES] = {0}, z[ROOM];
    const size_t count = scan->waiting, whole = (count + LANES - 1) / LANES * LANES;
    for (size_t i = 0; i < count; i++)
        z[i] = (scan->node_scores[i] - scan->base[i]) / scan->unit[i];
    memset(z + count, 0, (whole - count) * sizeof *z);
    for (size_t i = 0; i < whole; i += LANES)
        for (size_t lane = 0; lane < LANES; lane++)
            sums[lane] += z[i + lane];
    scan->spread.count += (double)count;
    scan->spread.sum += (double)sum_of(sums);
    const float mean = (float)(scan->spread.sum / scan->spread.count);
    for (size_t i = count; i < whole; i++)
        z[i] = mean;
    for (size_t i = 0; i < whole; i += LANES)
        for (size_t lane = 0; lane < LANES; lane++) {
            float over = z[i + lane] > mean ? z[i + lane] - mean : 0;
            squares[lane] += over * over;
            above[lane] += z[i + lane] > mean ? 1.0f : 0.0f;
        }
    scan->spread.above += (double)sum_of(above);
    scan->spread.squares += (double)sum_of(squares);
}

/* Returns how many of a class's unscored nodes are likely above the k-th best. The scores above their mean are assumed
 * to follow a normal distribution. Those below have a longer tail, because of short vectors.
 * Parameters: deviations: gets how many standard deviations above the mean such a node must score; it is large for far
 * classes. */
static double likely_above(const allowed_scan *scan, size_t class, double *deviations) {
    const spread *seen = &scan->spread;
    double mean = seen->sum / seen->count, share = seen->above / seen->count;
    double deviation = seen->above > 0 ? sqrt(seen->squares / seen->above) : 0;
    float middle = sl_partition_class_score(&scan->order, scan->walk, class);
    double needed =
        (scan->best.entries[0].score - (double)middle) / (double)sl_partition_spread_unit(scan->walk, middle) - mean;
    *deviations = needed / deviation;
    return scan->order.left[class] ? (double)scan->order.left[class] * share * erfc(needed / (deviation * SQRT2)) : 0;
}

/* Classes that need more than this many deviations have no node above the k-th best. */
#define FAR 8

/* Returns whether at most max_missed of the unscored nodes are likely above the k-th best.
 * Parameters: from: the class of the partition scanned last. */
static int is_enough_scored(const allowed_scan *scan, size_t from) {
    double expected = 0, deviations = 0;
    for (size_t c = from; c < SL_PARTITION_CLASSES && !(deviations > FAR); c++) {
        expected += likely_above(scan, c, &deviations);
        if (!(expected <= scan->goal->max_missed)) return 0;
    }
    return 1;
}

/* Returns how many more nodes to score until few are left above the k-th best, if that stays the same. */
static size_t nodes_needed(const allowed_scan *scan, size_t from) {
    double above[SL_PARTITION_CLASSES], deviations = 0, rest = 0;
    size_t end = from, count = 0;
    for (; end < SL_PARTITION_CLASSES && !(deviations > FAR); end++)
        above[end] = likely_above(scan, end, &deviations);
    while (end > from && (rest += above[end - 1]) <= scan->goal->max_missed)
        end--;
    for (size_t c = from; c < end; c++)
        count += scan->order.left[c];
    return count;
}

/* Returns whether the second half of the scored nodes added no more of the k best than may be missed. Near neighbours
 * lie farther from their centroids than other nodes do, so the spread alone would end the scan too early. */
static int has_settled(const allowed_scan *scan) {
    size_t late = 0;
    for (size_t i = 0; i < scan->best.size; i++)
        late += scan->best.entries[i].id >= scan->scored / 2;
    return (double)late <= scan->goal->max_missed;
}

/* The scan's next step. */
typedef enum scan_step { GO_ON, ENOUGH, TOO_MANY } scan_step;

static scan_step next_step(allowed_scan *scan, size_t from) {
    if (scan->best.size < scan->goal->k || scan->spread.count < TRUSTED) return GO_ON;
    if (has_settled(scan) && is_enough_scored(scan, from)) return ENOUGH;
    if (scan->scored < scan->predict_at || scan->goal->max_nodes == SIZE_MAX) return GO_ON;
    scan->predict_at = 2 * scan->scored;
    scan->predicted = nodes_needed(scan, from);
    return scan->predicted > scan->goal->max_nodes || scan->scored / 2 > scan->goal->max_nodes ? TOO_MANY : GO_ON;
}

/* ---------------------------------------------------------------------------------------------------------------
 * The scan
 * ------------------------------------------------------------------------------------------------------------- */

/* Scores the waiting nodes.
 * Parameters: learns: 1: they have a centroid, so the spread learns from their scores. */
static void score_waiting(allowed_scan *scan, int learns) {
    sl_walk *walk = scan->walk;
    float *scores = scan->node_scores;
    size_t taken = scan->waiting;
    sl_score_block(&scan->scorer, scan->nodes, scan->waiting, scan->waiting, scores);
    walk->evaluations += scan->waiting;
    /* The spread changes little once many nodes are known. */
    if (learns && (scan->spread.count < LEARNT_FROM_PART || scan->scored / SL_SCORE_BLOCK % 4 == 0)) learn_spread(scan);
    if (sl_has_id_filter(scan->params)) taken = drop_refused(walk, scan->params, scan->nodes, scores, taken);
    sl_pool_offer(&walk->pool, scores, scan->nodes, taken);
    float least = scan->best.size == scan->goal->k ? (float)scan->best.entries[0].score : -INFINITY;
    for (size_t i = 0; i < taken; i++) {
        if (!(scores[i] > least)) continue;
        sl_top_push(&scan->best, (double)scores[i], scan->scored + i);
        if (scan->best.size == scan->goal->k) least = (float)scan->best.entries[0].score;
    }
    scan->scored += scan->waiting;
    scan->waiting = 0;
}

/* Adds the allowed nodes of a range to the waiting ones. Scores these each time they fill a block. */
static void scan_range(allowed_scan *scan, sl_range range, float base, int learns) {
    const float unit = sl_partition_spread_unit(scan->walk, base);
    while (range.first < range.end && !sl_walk_is_over_budget(scan->walk)) {
        size_t before = scan->waiting;
        scan->waiting += sl_allowed_list(&scan->allowed, &range, scan->nodes + before, ROOM - before);
        for (size_t i = before; i < scan->waiting; i++) {
            scan->base[i] = base;
            scan->unit[i] = unit;
        }
        if (scan->waiting >= SL_SCORE_BLOCK) score_waiting(scan, learns);
    }
}

/* Scans partitions in order. Returns 0 if it gave up. */
static int scan_partitions(allowed_scan *scan) {
    const sl_partition_order *order = &scan->order;
    size_t next_test = MIN_SCORED;
    for (size_t i = 0; i < order->count && !sl_walk_is_over_budget(scan->walk); i++) {
        uint32_t partition = order->order[i];
        size_t class = order->classes[partition];
        scan_range(scan, sl_partition_nodes(order->partitions, partition, order->n), order->scores[partition], 1);
        scan->order.left[class] -= sl_partition_allowed(order, partition);
        if (scan->scored + scan->waiting < next_test && i + 1 < order->count) continue;
        if (scan->waiting) score_waiting(scan, 1);
        next_test = scan->scored + (scan->scored / TEST_EVERY > MIN_SCORED ? scan->scored / TEST_EVERY : MIN_SCORED);
        scan_step next = next_step(scan, class);
        if (next != GO_ON) return next == ENOUGH;
    }
    if (scan->waiting) score_waiting(scan, 1);
    return 1;
}

/* Scans the bands that may score `least` or more, or all bands if `least` is 0. order.classes counts the bands of each
 * partition that are scanned already. */
static void scan_bands_above(allowed_scan *scan, float least) {
    const sl_partition_order *order = &scan->order;
    const sl_partitions *partitions = order->partitions;
    for (size_t i = 0; i < order->count && !sl_walk_is_over_budget(scan->walk); i++) {
        uint32_t p = order->order[i];
        size_t bands = SL_PARTITION_BANDS, done = order->classes[p];
        float score = order->scores[p];
        if (!(score >= least) && least > 0) continue;
        if (least > 0) bands = sl_bands_above(partitions->bands + (size_t)p * SL_PARTITION_BANDS, score, least);
        if (bands <= done) continue;
        sl_range nodes = sl_partition_nodes(partitions, p, order->n);
        size_t count = nodes.end - nodes.first;
        nodes.end = nodes.first + sl_partition_band_rows(count, bands);
        nodes.first += sl_partition_band_rows(count, done);
        scan_range(scan, nodes, 0, 0);
        order->classes[p] = (uint8_t)bands;
    }
    if (scan->waiting) score_waiting(scan, 0);
}

/* Returns the fraction of the k-th best score that bands must reach for the scan to go on. A centroid's score is what
 * the best vectors near it are likely to score, and some score more. */
static float part_of_best(const allowed_scan *scan) {
    double part = PART + PART_PER_FOLD * log(scan->goal->max_missed / (double)scan->goal->k / PART_MISSED);
    return part > 0 ? (float)part : 0;
}

/* Scans the bands that may score highest first. Under IP a partition's nodes lie in bands of falling length. Each round
 * multiplies the least score by STEP, down to a fraction of the k-th best. At LAST of the best score it becomes 0. */
static void scan_bands(allowed_scan *scan) {
    const float part = part_of_best(scan), last = -scan->order.nearest * LAST;
    float least = -scan->order.nearest;
    memset(scan->order.classes, 0, scan->order.partitions->count);
    for (;;) {
        int all = least <= last;
        scan_bands_above(scan, all ? 0 : least);
        float enough = scan->best.size == scan->goal->k ? (float)scan->best.entries[0].score * part : 0;
        if (all || least <= enough || sl_walk_is_over_budget(scan->walk)) return;
        least = least * STEP > enough ? least * STEP : enough;
    }
}

size_t sl_scan_allowed_partitions(sl_walk *walk, const sl_search_params *params, const sl_allowed *allowed,
                                  const sl_scan_goal *goal, sl_query query, uint8_t *scratch) {
    const sl_graph *graph = walk->graph;
    allowed_scan scan;
    scan.walk = walk;
    scan.params = params;
    scan.goal = goal;
    scan.allowed = *allowed;
    scan.scorer = sl_row_scorer_of(graph->kernels, walk->codec, &walk->query, AHEAD);
    scan.waiting = scan.scored = 0;
    scan.spread = (spread){0};
    scan.predict_at = FIRST_PREDICTION;
    memset(scan.nodes, 0, sizeof scan.nodes);
    scan.best = (sl_top){(sl_top_entry *)(void *)scratch, 0, goal->k};
    scan.order.allowed = goal->by_partition;
    sl_partition_order_make(&scan.order, walk, query, (uint8_t *)(scan.best.entries + goal->k));
    sl_pool_start(&walk->pool, goal->keep, 0);
    scan_range(&scan, sl_partition_rest(&graph->partitions, graph->n), 0, 0);
    if (scan.waiting) score_waiting(&scan, 0);
    int ended = 1;
    scan.predicted = 0;
    if (graph->codec.metric == SL_METRIC_IP)
        scan_bands(&scan);
    else
        ended = scan_partitions(&scan);
    sl_pool_finish(&walk->pool, goal->keep);
    return ended ? 0 : scan.predicted ? scan.predicted : 1;
}

size_t sl_allowed_seeds(sl_walk *walk, const sl_allowed *allowed, const uint32_t *by_partition, sl_query query,
                        uint8_t *scratch, uint32_t *seeds) {
    sl_partition_order order = {.allowed = by_partition};
    size_t count = 0;
    sl_partition_order_make(&order, walk, query, scratch);
    for (size_t i = 0; i < order.count && count < SL_SEEDS; i++) {
        sl_range range = sl_partition_nodes(order.partitions, order.order[i], order.n);
        while (range.first < range.end && count < SL_SEEDS)
            count += sl_allowed_list(allowed, &range, seeds + count, SL_SEEDS + 65 - count);
    }
    return count < SL_SEEDS ? count : SL_SEEDS;
}
