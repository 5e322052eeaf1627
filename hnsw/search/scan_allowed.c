#include "hnsw/search/scan_allowed.h"

#include "hnsw/search/bands.h"
#include "hnsw/search/partition_order.h"
#include "hnsw/search/score_block.h"

#include <math.h>
#include <string.h>

/* The least nodes to score together, where partitions have few allowed ones; and nodes from which on the spread of
 * their scores is trusted. */
enum { MIN_SCORED = 64, TRUSTED = 32 };
/* The scan tests whether it may end each time a sixteenth more nodes are scored. A test costs as much as some hundred
 * nodes. */
enum { TEST_EVERY = 16 };
/* After so many nodes the spread is learnt from a part of the nodes. */
enum { LEARNT_FROM_PART = 2048 };
/* Nodes after which the scan first predicts how many it will need. */
enum { FIRST_PREDICTION = 1024 };
/* Rows to prefetch ahead. */
enum { AHEAD = 16 };
/* A block's places: it's filled by words of the bitmap. */
enum { ROOM = SL_SCORE_BLOCK + 64 };
#define SQRT2 1.4142135623730951

/* Under IP the scan goes down to a part of the k-th best score: PART if PART_MISSED of the k best may be missed, and
 * PART_PER_FOLD more for e times as many. */
#define PART          0.75
#define PART_MISSED   0.01
#define PART_PER_FOLD 0.062
#define STEP          0.8f
#define LAST          1e-3f

/* How far nodes' scores lie from their centroid's score: under L2 in units of the query's distance from the centroid,
 * under cosine as they are. */
typedef struct spread {
    double count, sum;
    double above, squares; /* scores above the mean of all before: their number, and their squared distances from it */
} spread;

typedef struct allowed_scan {
    sl_walk *walk;
    const sl_search_params *params;
    const sl_scan_goal *goal;
    sl_allowed allowed;
    sl_partition_order order;
    sl_row_scorer scorer;

    /* Nodes waiting to be scored. */
    uint32_t nodes[ROOM + SL_SCORE_PAD];
    float node_scores[ROOM + SL_SCORE_PAD];
    float base[ROOM], unit[ROOM]; /* their centroid's score, and the unit of the spread about it */
    size_t waiting;

    sl_top best; /* the k best scores; an id is the node's place in the order of scoring */
    size_t scored;
    spread spread;
    size_t predicted;  /* nodes predicted when they were too many */
    size_t predict_at; /* nodes after which the scan predicts how many more it needs; doubles each time */
} allowed_scan;

size_t sl_scan_allowed_scratch(const sl_graph *graph, size_t k) {
    return k * sizeof(sl_top_entry) + sl_partition_order_scratch(graph);
}

/* Drops nodes that the callback or the bitmap refuses. Asks only about nodes that the pool would take. */
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

static void learn_spread(allowed_scan *s) {
    float sums[LANES] = {0}, squares[LANES] = {0}, above[LANES] = {0}, z[ROOM];
    const size_t count = s->waiting, whole = (count + LANES - 1) / LANES * LANES;
    for (size_t i = 0; i < count; i++)
        z[i] = (s->node_scores[i] - s->base[i]) / s->unit[i];
    memset(z + count, 0, (whole - count) * sizeof *z);
    for (size_t i = 0; i < whole; i += LANES)
        for (size_t lane = 0; lane < LANES; lane++)
            sums[lane] += z[i + lane];
    s->spread.count += (double)count;
    s->spread.sum += (double)sum_of(sums);
    const float mean = (float)(s->spread.sum / s->spread.count);
    for (size_t i = count; i < whole; i++)
        z[i] = mean;
    for (size_t i = 0; i < whole; i += LANES)
        for (size_t lane = 0; lane < LANES; lane++) {
            float over = z[i + lane] > mean ? z[i + lane] - mean : 0;
            squares[lane] += over * over;
            above[lane] += z[i + lane] > mean ? 1.0f : 0.0f;
        }
    s->spread.above += (double)sum_of(above);
    s->spread.squares += (double)sum_of(squares);
}

/* Returns how many of a class's unscored nodes are likely above the k-th best. Scores above their mean are taken for
 * normally distributed. Below it, short vectors make a longer tail.
 * Parameters: floor: gets the least score above its centroid, in deviations, that such a node needs; it tells far
 * classes. */
static double likely_above(const allowed_scan *s, size_t class, double *floor) {
    const spread *seen = &s->spread;
    double mean = seen->sum / seen->count, share = seen->above / seen->count;
    double deviation = seen->above > 0 ? sqrt(seen->squares / seen->above) : 0;
    float middle = sl_partition_class_score(&s->order, s->walk, class);
    double needed =
        (s->best.entries[0].score - (double)middle) / (double)sl_partition_spread_unit(s->walk, middle) - mean;
    *floor = needed / deviation;
    return s->order.left[class] ? (double)s->order.left[class] * share * erfc(needed / (deviation * SQRT2)) : 0;
}

/* Classes that need more than so many deviations have no node above the k-th best. */
#define FAR 8

/* Whether at most max_missed of the unscored nodes are likely above the k-th best.
 * Parameters: from: the class of the last partition. */
static int is_enough_scored(const allowed_scan *s, size_t from) {
    double expected = 0, floor = 0;
    for (size_t c = from; c < SL_PARTITION_CLASSES && !(floor > FAR); c++) {
        expected += likely_above(s, c, &floor);
        if (!(expected <= s->goal->max_missed)) return 0;
    }
    return 1;
}

/* Returns how many nodes to score before few are left, if the k-th best stays. */
static size_t nodes_needed(const allowed_scan *s, size_t from) {
    double above[SL_PARTITION_CLASSES], floor = 0, rest = 0;
    size_t end = from, count = 0;
    for (; end < SL_PARTITION_CLASSES && !(floor > FAR); end++)
        above[end] = likely_above(s, end, &floor);
    while (end > from && (rest += above[end - 1]) <= s->goal->max_missed)
        end--;
    for (size_t c = from; c < end; c++)
        count += s->order.left[c];
    return count;
}

/* Whether the second half of the scored nodes gave no more of the k best than may be missed. Near neighbours lie
 * further from their centroids than others, so the spread alone would end the scan too early. */
static int has_settled(const allowed_scan *s) {
    size_t late = 0;
    for (size_t i = 0; i < s->best.size; i++)
        late += s->best.entries[i].id >= s->scored / 2;
    return (double)late <= s->goal->max_missed;
}

/* The scan's next step. */
typedef enum scan_step { GO_ON, ENOUGH, TOO_MANY } scan_step;

static scan_step next_step(allowed_scan *s, size_t from) {
    if (s->best.size < s->goal->k || s->spread.count < TRUSTED) return GO_ON;
    if (has_settled(s) && is_enough_scored(s, from)) return ENOUGH;
    if (s->scored < s->predict_at || s->goal->max_nodes == SIZE_MAX) return GO_ON;
    s->predict_at = 2 * s->scored;
    s->predicted = nodes_needed(s, from);
    return s->predicted > s->goal->max_nodes || s->scored / 2 > s->goal->max_nodes ? TOO_MANY : GO_ON;
}

/* ---------------------------------------------------------------------------------------------------------------
 * The scan
 * ------------------------------------------------------------------------------------------------------------- */

/* Scores the waiting nodes. `learns`: they have a centroid. */
static void score_waiting(allowed_scan *s, int learns) {
    sl_walk *walk = s->walk;
    float *scores = s->node_scores;
    size_t taken = s->waiting;
    sl_score_block(&s->scorer, s->nodes, s->waiting, s->waiting, scores);
    walk->evaluations += s->waiting;
    /* The spread changes little once many nodes are known. */
    if (learns && (s->spread.count < LEARNT_FROM_PART || s->scored / SL_SCORE_BLOCK % 4 == 0)) learn_spread(s);
    if (sl_has_id_filter(s->params)) taken = drop_refused(walk, s->params, s->nodes, scores, taken);
    sl_pool_offer(&walk->pool, scores, s->nodes, taken);
    float least = s->best.size == s->goal->k ? (float)s->best.entries[0].score : -INFINITY;
    for (size_t i = 0; i < taken; i++) {
        if (!(scores[i] > least)) continue;
        sl_top_push(&s->best, (double)scores[i], s->scored + i);
        if (s->best.size == s->goal->k) least = (float)s->best.entries[0].score;
    }
    s->scored += s->waiting;
    s->waiting = 0;
}

/* Adds the allowed nodes of a range to the waiting ones, and scores them by blocks. */
static void scan_range(allowed_scan *s, sl_range range, float base, int learns) {
    const float unit = sl_partition_spread_unit(s->walk, base);
    while (range.first < range.end && !sl_walk_is_over_budget(s->walk)) {
        size_t before = s->waiting;
        s->waiting += sl_allowed_list(&s->allowed, &range, s->nodes + before, ROOM - before);
        for (size_t i = before; i < s->waiting; i++) {
            s->base[i] = base;
            s->unit[i] = unit;
        }
        if (s->waiting >= SL_SCORE_BLOCK) score_waiting(s, learns);
    }
}

/* Scans partitions in order. Returns 0 if it gave up. */
static int scan_partitions(allowed_scan *s) {
    const sl_partition_order *order = &s->order;
    size_t next_test = MIN_SCORED;
    for (size_t i = 0; i < order->count && !sl_walk_is_over_budget(s->walk); i++) {
        uint32_t partition = order->order[i];
        size_t class = order->classes[partition];
        scan_range(s, sl_partition_nodes(order->partitions, partition, order->n), order->scores[partition], 1);
        s->order.left[class] -= sl_partition_allowed(order, partition);
        if (s->scored + s->waiting < next_test && i + 1 < order->count) continue;
        if (s->waiting) score_waiting(s, 1);
        next_test = s->scored + (s->scored / TEST_EVERY > MIN_SCORED ? s->scored / TEST_EVERY : MIN_SCORED);
        scan_step next = next_step(s, class);
        if (next != GO_ON) return next == ENOUGH;
    }
    if (s->waiting) score_waiting(s, 1);
    return 1;
}

/* Scans the bands that may score `least` or more, or all bands if that is 0. order.classes counts each partition's
 * bands that are scanned already. */
static void scan_bands_above(allowed_scan *s, float least) {
    const sl_partition_order *order = &s->order;
    const sl_partitions *partitions = order->partitions;
    for (size_t i = 0; i < order->count && !sl_walk_is_over_budget(s->walk); i++) {
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
        scan_range(s, nodes, 0, 0);
        order->classes[p] = (uint8_t)bands;
    }
    if (s->waiting) score_waiting(s, 0);
}

/* Returns the part of the k-th best score that unscanned bands must reach to be scanned. A centroid's score is what the
 * best vectors there likely have; some have more. */
static float part_of_best(const allowed_scan *s) {
    double part = PART + PART_PER_FOLD * log(s->goal->max_missed / (double)s->goal->k / PART_MISSED);
    return part > 0 ? (float)part : 0;
}

/* Scans the bands that may score highest first: under IP a partition's nodes lie in bands of falling length. The least
 * score falls by STEP a round, down to a part of the k-th best. At LAST of the best it becomes 0. */
static void scan_bands(allowed_scan *s) {
    const float part = part_of_best(s), last = -s->order.nearest * LAST;
    float least = -s->order.nearest;
    memset(s->order.classes, 0, s->order.partitions->count);
    for (;;) {
        int all = least <= last;
        scan_bands_above(s, all ? 0 : least);
        float enough = s->best.size == s->goal->k ? (float)s->best.entries[0].score * part : 0;
        if (all || least <= enough || sl_walk_is_over_budget(s->walk)) return;
        least = least * STEP > enough ? least * STEP : enough;
    }
}

size_t sl_scan_allowed_partitions(sl_walk *walk, const sl_search_params *params, const sl_allowed *allowed,
                                  const sl_scan_goal *goal, sl_query query, uint8_t *scratch) {
    const sl_graph *graph = walk->graph;
    allowed_scan s;
    s.walk = walk;
    s.params = params;
    s.goal = goal;
    s.allowed = *allowed;
    s.scorer = sl_row_scorer_of(graph->kernels, walk->codec, &walk->query, AHEAD);
    s.waiting = s.scored = 0;
    s.spread = (spread){0};
    s.predict_at = FIRST_PREDICTION;
    memset(s.nodes, 0, sizeof s.nodes);
    s.best = (sl_top){(sl_top_entry *)(void *)scratch, 0, goal->k};
    s.order.allowed = goal->by_partition;
    sl_partition_order_make(&s.order, walk, query, (uint8_t *)(s.best.entries + goal->k));
    sl_pool_start(&walk->pool, goal->keep, 0);
    scan_range(&s, sl_partition_rest(&graph->partitions, graph->n), 0, 0);
    if (s.waiting) score_waiting(&s, 0);
    int ended = 1;
    s.predicted = 0;
    if (graph->codec.metric == SL_METRIC_IP)
        scan_bands(&s);
    else
        ended = scan_partitions(&s);
    sl_pool_finish(&walk->pool, goal->keep);
    return ended ? 0 : s.predicted ? s.predicted : 1;
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
