#include "hnsw/search/nearest_allowed.h"

#include "hnsw/search/bands.h"
#include "hnsw/search/score_block.h"
#include "hnsw/search/topk.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* Partitions are put into classes by the scores of their centroids, and looked at class by class. Sorting costs more
 * than it gains. */
enum { CLASSES = 128 };
/* Nodes that are scored together, at least, while partitions have few allowed ones; and nodes from which on the spread
 * of their scores is believed. */
enum { SOME = 64, BELIEVED = 32 };
/* Rows that are asked for ahead. */
enum { AHEAD = 16 };
/* Places for a block that is filled by words of the bitmap. */
enum { ROOM = SL_SCORE_BLOCK + 64 };

/* Under IP, the part of the k-th best score that a search looks down to. With PART_MISSED of the k best to be missed it
 * is PART, and PART_A_FOLD more for e times as many. */
#define PART        0.75
#define PART_MISSED 0.01
#define PART_A_FOLD 0.062
#define STEP        0.8f
#define LAST        1e-3f

/* How far scores of nodes lie from those of their centroids, in units of the query's distance from the centroid under
 * L2. Cosine has no unit. */
typedef struct spread {
    double count, sum;
    double above, squares; /* of those above the mean of all before: how many, and their squared distances from it */
} spread;

typedef struct seek {
    sl_walk *walk;
    const sl_search_params *params;
    const sl_wanted *wanted;
    sl_allowed allowed;
    const uint32_t *by_partition;
    const sl_partitions *partitions;
    sl_scorer scorer;

    /* The order of partitions. */
    float *scores;
    uint8_t *classes;
    uint32_t *order;      /* those with allowed nodes, by class */
    size_t count;         /* of `order` */
    float near, step;     /* class c begins at the farness near + c * step */
    size_t left[CLASSES]; /* allowed nodes of each class that were not looked at */

    /* Nodes that wait to be scored. */
    uint32_t nodes[ROOM + SL_SCORE_BEHIND];
    float node_scores[ROOM + SL_SCORE_BEHIND];
    float base[ROOM], unit[ROOM]; /* their centroid's score, and the unit of the spread about it */
    size_t waiting;

    sl_top best; /* the k best scores; their ids are numbers of nodes in the order of the look */
    size_t scored;
    spread spread;
} seek;

static size_t places(size_t count) {
    return (count + SL_SCORE_BLOCK + SL_SCORE_BEHIND + 15) / 16 * 16;
}

static size_t query_bytes(const sl_graph *graph) {
    return sl_round_up(sl_query_size(&graph->partitions.codec), SL_CACHE_LINE);
}

size_t sl_nearest_scratch(const sl_graph *graph, size_t k) {
    size_t all = places(graph->partitions.count);
    return k * sizeof(sl_top_entry) + all * (sizeof(float) + sizeof(uint32_t) + 1) + SL_CACHE_LINE +
           query_bytes(graph) + graph->codec.dim * sizeof(float);
}

/* Leaves out nodes that the search's callback or bitmap refuse, of those that the pool would take. */
static size_t leave_refused(const sl_walk *walk, const sl_search_params *params, uint32_t *nodes, float *scores,
                            size_t count) {
    float floor = walk->pool.all.floor;
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (!(scores[i] > floor) || !sl_accepts(params, sl_id_of(walk->graph, nodes[i]))) continue;
        nodes[kept] = nodes[i];
        scores[kept++] = scores[i];
    }
    return kept;
}

void sl_all_allowed(sl_walk *walk, const sl_search_params *params, const sl_allowed *allowed, size_t keep) {
    const sl_scorer scorer = sl_scorer_of(walk->graph->kernels, walk->walked, &walk->query, AHEAD);
    uint32_t nodes[ROOM + SL_SCORE_BEHIND] = {0};
    float scores[ROOM + SL_SCORE_BEHIND];
    sl_range left = {0, allowed->n};
    size_t count = 0;
    int asks = sl_accept_late(params);
    sl_pool_start(&walk->pool, keep, 0);
    while (left.first < left.end || count) {
        count += sl_allowed_take(allowed, &left, nodes + count, ROOM - count);
        size_t some = count < SL_SCORE_BLOCK ? count : SL_SCORE_BLOCK, taken = some;
        sl_score_block(&scorer, nodes, some, count, scores);
        walk->evaluations += some;
        uint32_t behind[64];
        memcpy(behind, nodes + some, (count - some) * sizeof *nodes);
        if (asks) taken = leave_refused(walk, params, nodes, scores, some);
        sl_pool_offer(&walk->pool, scores, nodes, taken);
        count -= some;
        memcpy(nodes, behind, count * sizeof *nodes);
    }
    sl_pool_finish(&walk->pool, keep);
}

/* ---------------------------------------------------------------------------------------------------------------
 * The order of partitions
 * ------------------------------------------------------------------------------------------------------------- */

static void score_centroids(seek *s, const sl_query_code *code) {
    const sl_graph *graph = s->walk->graph;
    const sl_scorer centroids = sl_scorer_of(graph->kernels, &s->partitions->codec, code, 0);
    const size_t count = s->partitions->count;
    for (size_t first = 0, some; first < count; first += some) {
        some = count - first < SL_SCORE_BLOCK ? count - first : SL_SCORE_BLOCK;
        sl_score_run(&centroids, first, some, s->nodes, s->scores + first);
    }
    s->walk->evaluations += count;
}

/* Under L2 the score is (|q|^2 - d^2) / 2, and those around a centroid differ by about the query's distance d from it.
 */
static float unit_of(const sl_walk *walk, float score) {
    if (walk->graph->codec.metric != SL_METRIC_L2) return 1;
    float distance2 = walk->query_norm2 - 2 * score;
    return distance2 > 0 ? sqrtf(distance2) : FLT_MIN;
}

/* The larger the farther: a distance under L2, else a score below zero. */
static float farness_of(const sl_walk *walk, float score) {
    return walk->graph->codec.metric == SL_METRIC_L2 ? unit_of(walk, score) : -score;
}

static float score_at(const sl_walk *walk, float farness) {
    return walk->graph->codec.metric == SL_METRIC_L2 ? (walk->query_norm2 - farness * farness) / 2 : -farness;
}

/* Settles the bounds of the classes. A file's centroids may have scores that are no numbers: those come last. */
static void find_classes(seek *s) {
    float low = INFINITY, high = -INFINITY;
    for (size_t p = 0; p < s->partitions->count; p++) {
        float far = farness_of(s->walk, s->scores[p]);
        if (!(fabsf(far) < INFINITY)) continue;
        low = far < low ? far : low;
        high = far > high ? far : high;
    }
    s->near = low < INFINITY ? low : 0;
    s->step = high > low ? (high - low) / (CLASSES - 1) : 1;
}

static void order_partitions(seek *s) {
    size_t places_of[CLASSES + 1] = {0};
    find_classes(s);
    const float inverse = 1 / s->step;
    memset(s->left, 0, sizeof s->left);
    for (size_t p = 0; p < s->partitions->count; p++) {
        float down = (farness_of(s->walk, s->scores[p]) - s->near) * inverse;
        size_t class = down < CLASSES - 1 ? (size_t)down : CLASSES - 1;
        s->classes[p] = (uint8_t) class;
        s->left[class] += s->by_partition[p];
        places_of[class + 1] += s->by_partition[p] != 0;
    }
    for (size_t c = 0; c < CLASSES; c++)
        places_of[c + 1] += places_of[c];
    s->count = places_of[CLASSES];
    for (size_t p = 0; p < s->partitions->count; p++)
        if (s->by_partition[p]) s->order[places_of[s->classes[p]]++] = (uint32_t)p;
}

/* ---------------------------------------------------------------------------------------------------------------
 * When to end
 * ------------------------------------------------------------------------------------------------------------- */

static void learn_spread(seek *s) {
    float sum = 0, squares = 0, above = 0, z[ROOM];
    for (size_t i = 0; i < s->waiting; i++) {
        z[i] = (s->node_scores[i] - s->base[i]) / s->unit[i];
        sum += z[i];
    }
    s->spread.count += (double)s->waiting;
    s->spread.sum += (double)sum;
    const float mean = (float)(s->spread.sum / s->spread.count);
    for (size_t i = 0; i < s->waiting; i++) {
        float over = z[i] - mean;
        over = over > 0 ? over : 0;
        squares += over * over;
        above += over > 0 ? 1.0f : 0.0f;
    }
    s->spread.above += (double)above;
    s->spread.squares += (double)squares;
}

/* Tells whether fewer than `missed` of the nodes that were not looked at are likely above the k-th best. Above their
 * mean scores are taken for normally distributed; below it, short vectors make a longer tail. `from`: the class of the
 * partition that was looked at last. */
static int few_are_left(const seek *s, size_t from) {
    const spread *seen = &s->spread;
    double mean = seen->sum / seen->count, expected = 0, share = seen->above / seen->count;
    double deviation = seen->above > 0 ? sqrt(seen->squares / seen->above) : 0, least = s->best.entries[0].score;
    for (size_t c = from; c < CLASSES; c++) {
        if (!s->left[c]) continue;
        float middle = score_at(s->walk, s->near + ((float)c + 0.5f) * s->step);
        double needed = (least - (double)middle) / (double)unit_of(s->walk, middle) - mean;
        if (needed > 8 * deviation) break;
        expected += (double)s->left[c] * share * erfc(needed / (deviation * 1.4142135623730951));
        if (!(expected <= s->wanted->missed)) return 0;
    }
    return 1;
}

/* Tells whether the second half of the nodes looked at gave no more of the k best than may be missed. Near neighbours
 * lie further from their centroids than others, so that the spread alone ends too early. */
static int is_calm(const seek *s) {
    size_t late = 0;
    for (size_t i = 0; i < s->best.size; i++)
        late += s->best.entries[i].id >= s->scored / 2;
    return (double)late <= s->wanted->missed;
}

static int is_enough(const seek *s, size_t from) {
    return s->best.size == s->wanted->k && s->spread.count >= BELIEVED && is_calm(s) && few_are_left(s, from);
}

/* ---------------------------------------------------------------------------------------------------------------
 * The look at partitions
 * ------------------------------------------------------------------------------------------------------------- */

/* Scores the nodes that wait. `learns`: they have a centroid. */
static void score_waiting(seek *s, int learns) {
    sl_walk *walk = s->walk;
    float *scores = s->node_scores;
    size_t taken = s->waiting;
    sl_score_block(&s->scorer, s->nodes, s->waiting, s->waiting, scores);
    walk->evaluations += s->waiting;
    if (learns) learn_spread(s);
    if (sl_accept_late(s->params)) taken = leave_refused(walk, s->params, s->nodes, scores, taken);
    sl_pool_offer(&walk->pool, scores, s->nodes, taken);
    float least = s->best.size == s->wanted->k ? (float)s->best.entries[0].score : -INFINITY;
    for (size_t i = 0; i < taken; i++) {
        if (!(scores[i] > least)) continue;
        sl_top_push(&s->best, (double)scores[i], s->scored + i);
        if (s->best.size == s->wanted->k) least = (float)s->best.entries[0].score;
    }
    s->scored += s->waiting;
    s->waiting = 0;
}

/* Lets the allowed nodes of a range wait, and scores them by blocks. */
static void look_at(seek *s, sl_range range, float base, int learns) {
    const float unit = unit_of(s->walk, base);
    while (range.first < range.end) {
        size_t before = s->waiting;
        s->waiting += sl_allowed_take(&s->allowed, &range, s->nodes + before, ROOM - before);
        for (size_t i = before; i < s->waiting; i++) {
            s->base[i] = base;
            s->unit[i] = unit;
        }
        if (s->waiting >= SL_SCORE_BLOCK) score_waiting(s, learns);
    }
}

static void look_at_partitions(seek *s) {
    const size_t n = s->walk->graph->n;
    for (size_t i = 0; i < s->count; i++) {
        uint32_t partition = s->order[i];
        look_at(s, sl_partition_nodes(s->partitions, partition, n), s->scores[partition], 1);
        s->left[s->classes[partition]] -= s->by_partition[partition];
        if (s->waiting < SOME && i + 1 < s->count) continue;
        if (s->waiting) score_waiting(s, 1);
        if (is_enough(s, s->classes[partition])) return;
    }
}

/* Looks at the bands that may score `least` or more, or at all where that is 0. s->classes counts the bands of each
 * partition that were looked at before. */
static void look_down_to(seek *s, float least) {
    const sl_partitions *partitions = s->partitions;
    for (size_t i = 0; i < s->count; i++) {
        uint32_t p = s->order[i];
        size_t bands = SL_PARTITION_BANDS, done = s->classes[p];
        if (!(s->scores[p] >= least) && least > 0) continue;
        if (least > 0) bands = sl_bands_above(partitions->bands + (size_t)p * SL_PARTITION_BANDS, s->scores[p], least);
        if (bands <= done) continue;
        sl_range nodes = sl_partition_nodes(partitions, p, s->walk->graph->n);
        size_t count = nodes.end - nodes.first;
        nodes.end = nodes.first + sl_partition_banded(count, bands);
        nodes.first += sl_partition_banded(count, done);
        look_at(s, nodes, 0, 0);
        s->classes[p] = (uint8_t)bands;
    }
    if (s->waiting) score_waiting(s, 0);
}

/* The part of the k-th best score that the rest must be able to reach, to be looked at. The score of a centroid is what
 * the best vectors there are likely to have; some have more. */
static float part_of_best(const seek *s) {
    double part = PART + PART_A_FOLD * log(s->wanted->missed / (double)s->wanted->k / PART_MISSED);
    return part > 0 ? (float)part : 0;
}

/* Looks at what may score high first: under IP a partition's nodes lie by falling length, in bands. The score that is
 * looked down to falls by STEP a turn, until it is a part of the k-th best. At LAST of the best it falls to nothing. */
static void look_at_bands(seek *s) {
    const float part = part_of_best(s), last = -s->near * LAST;
    float least = -s->near;
    memset(s->classes, 0, s->partitions->count);
    for (;;) {
        int all = least <= last;
        look_down_to(s, all ? 0 : least);
        float enough = s->best.size == s->wanted->k ? (float)s->best.entries[0].score * part : 0;
        if (all || least <= enough) return;
        least = least * STEP > enough ? least * STEP : enough;
    }
}

/* Divides the scratch, and encodes the query over centroids. */
static void begin(seek *s, const void *query, sl_dtype dtype, uint8_t *scratch, sl_query_code *code) {
    const sl_graph *graph = s->walk->graph;
    size_t all = places(s->partitions->count);
    uint8_t *buffer = scratch;
    s->best = (sl_top){(sl_top_entry *)(void *)(buffer + query_bytes(graph)), 0, s->wanted->k};
    s->scores = (float *)(void *)(s->best.entries + s->wanted->k);
    s->order = (uint32_t *)(void *)(s->scores + all);
    float *floats = (float *)(void *)(s->order + all);
    s->classes = (uint8_t *)(floats + graph->codec.dim);
    sl_walk_ask_partitions(s->walk, query, dtype, buffer, floats, code);
}

void sl_nearest_allowed(sl_walk *walk, const sl_search_params *params, const void *query, sl_dtype dtype,
                        const sl_wanted *wanted, uint8_t *scratch) {
    const sl_graph *graph = walk->graph;
    sl_query_code code;
    seek s;
    s.walk = walk;
    s.params = params;
    s.wanted = wanted;
    s.allowed = sl_filter_allowed(params->filter, graph);
    s.by_partition = params->filter->set.by_partition;
    s.partitions = &graph->partitions;
    s.scorer = sl_scorer_of(graph->kernels, walk->walked, &walk->query, AHEAD);
    s.waiting = s.scored = 0;
    s.spread = (spread){0};
    memset(s.nodes, 0, sizeof s.nodes);
    begin(&s, query, dtype, scratch, &code);
    score_centroids(&s, &code);
    order_partitions(&s);
    sl_pool_start(&walk->pool, wanted->keep, 0);
    look_at(&s, sl_partition_rest(s.partitions, graph->n), 0, 0);
    if (s.waiting) score_waiting(&s, 0);
    if (graph->codec.metric == SL_METRIC_IP)
        look_at_bands(&s);
    else
        look_at_partitions(&s);
    sl_pool_finish(&walk->pool, wanted->keep);
}
