#include "hnsw/search/partition_order.h"

#include "hnsw/search/score_block.h"

#include <float.h>
#include <math.h>
#include <string.h>

static size_t centroid_places(const sl_graph *graph) {
    return (graph->partitions.count + SL_SCORE_BLOCK + SL_SCORE_PAD + 15) / 16 * 16;
}

static size_t query_bytes(const sl_graph *graph) {
    return sl_round_up(sl_query_size(&graph->partitions.codec), SL_CACHE_LINE);
}

size_t sl_partition_order_scratch(const sl_graph *graph) {
    return centroid_places(graph) * (sizeof(float) + sizeof(uint32_t) + 1) + query_bytes(graph) +
           graph->codec.dim * sizeof(float);
}

static void score_centroids(sl_partition_order *order, sl_walk *walk, const sl_query_code *code) {
    const sl_row_scorer centroids = sl_row_scorer_of(walk->graph->kernels, &order->partitions->codec, code, 0);
    const size_t count = order->partitions->count;
    uint32_t numbers[SL_SCORE_BLOCK + SL_SCORE_PAD] = {0};
    for (size_t first = 0, some; first < count; first += some) {
        some = count - first < SL_SCORE_BLOCK ? count - first : SL_SCORE_BLOCK;
        sl_score_range(&centroids, first, some, numbers, order->scores + first);
    }
    walk->evaluations += count;
}

static float distance_of(float nearest, float score) {
    float distance2 = 2 * (nearest - score);
    return distance2 <= 0 ? FLT_MIN : sqrtf(distance2);
}

float sl_partition_spread_unit(const sl_walk *walk, float score) {
    if (walk->graph->codec.metric != SL_METRIC_L2) return 1;
    return distance_of(walk->origin, score);
}

/* Returns the L2 score of a centroid at the query itself. */
static float nearest_of(const sl_partition_order *order, const sl_walk *walk) {
    return sl_codec_nearest(&order->partitions->codec, walk->query_norm2);
}

/* Returns about log2 of a positive float: its bits, as an integer, grow like its logarithm. Infinity and NaN stay. */
static float log_of(float positive) {
    int32_t bits;
    if (!(positive < INFINITY)) return positive;
    memcpy(&bits, &positive, sizeof bits);
    return (float)bits * 0x1p-23f;
}

/* Inverts log_of for logarithms from 0 on. Never returns more than the largest float. */
static float positive_of(float log) {
    const int32_t bits = log < 255 ? (int32_t)(log * 0x1p23f) : 0x7f7fffff;
    float positive;
    memcpy(&positive, &bits, sizeof positive);
    return positive;
}

/* Returns how far a centroid is: the logarithm of its distance under L2, else minus its score. The logarithm is needed
 * because clusters may be narrow and far apart. Classes of equal width in distance would put all of a cluster's
 * partitions into one class. */
static float farness_of(const sl_partition_order *order, const sl_walk *walk, float score) {
    return walk->graph->codec.metric == SL_METRIC_L2 ? log_of(distance_of(nearest_of(order, walk), score)) : -score;
}

float sl_partition_class_score(const sl_partition_order *order, const sl_walk *walk, size_t class) {
    float farness = order->nearest + ((float)class + 0.5f) * order->step;
    if (walk->graph->codec.metric != SL_METRIC_L2) return -farness;
    const float distance = positive_of(farness);
    return walk->origin - distance * distance / 2;
}

/* Sets the bounds of the classes. A damaged file may give centroids a score of NaN; these come last. */
static void set_class_bounds(sl_partition_order *order, const sl_walk *walk) {
    /* Centroids at the query don't count: the logarithm of distance 0 would be far below all others. */
    const float least = walk->graph->codec.metric == SL_METRIC_L2 ? log_of(FLT_MIN) : -INFINITY;
    float low = INFINITY, high = -INFINITY;
    for (size_t p = 0; p < order->partitions->count; p++) {
        float far = farness_of(order, walk, order->scores[p]);
        if (!(fabsf(far) < INFINITY) || far <= least) continue;
        low = far < low ? far : low;
        high = far > high ? far : high;
    }
    order->nearest = low < INFINITY ? low : 0;
    order->step = high > low ? (high - low) / (SL_PARTITION_CLASSES - 1) : 1.0f / SL_PARTITION_CLASSES;
}

/* Returns the class `down` steps behind the nearest; the last class for NaN. */
static size_t class_of(float down) {
    const size_t last = SL_PARTITION_CLASSES - 1;
    if (!(down > -INFINITY && down < (float)last)) return last;
    return down > 0 ? (size_t)down : 0;
}

static void sort_into_classes(sl_partition_order *order, const sl_walk *walk) {
    size_t places_of[SL_PARTITION_CLASSES + 1] = {0};
    set_class_bounds(order, walk);
    const float inverse = 1 / order->step;
    memset(order->left, 0, sizeof order->left);
    for (size_t p = 0; p < order->partitions->count; p++) {
        size_t class = class_of((farness_of(order, walk, order->scores[p]) - order->nearest) * inverse);
        size_t allowed = sl_partition_allowed(order, p);
        order->classes[p] = (uint8_t) class;
        order->left[class] += allowed;
        places_of[class + 1] += allowed != 0;
    }
    for (size_t c = 0; c < SL_PARTITION_CLASSES; c++)
        places_of[c + 1] += places_of[c];
    order->count = places_of[SL_PARTITION_CLASSES];
    for (size_t p = 0; p < order->partitions->count; p++)
        if (sl_partition_allowed(order, p)) order->order[places_of[order->classes[p]]++] = (uint32_t)p;
}

/* Moves centroids' scores to the origin of nodes' scores, because from here on they are compared with them. */
static void move_scores(const sl_partition_order *order, const sl_walk *walk) {
    const float shift = walk->origin - nearest_of(order, walk);
    for (size_t p = 0; p < order->partitions->count; p++)
        order->scores[p] += shift;
}

void sl_partition_order_make(sl_partition_order *order, sl_walk *walk, sl_query query, uint8_t *scratch) {
    const sl_graph *graph = walk->graph;
    sl_query_code code;
    order->partitions = &graph->partitions;
    order->n = graph->n;
    order->scores = (float *)(void *)(scratch + query_bytes(graph));
    order->order = (uint32_t *)(void *)(order->scores + centroid_places(graph));
    float *floats = (float *)(void *)(order->order + centroid_places(graph));
    order->classes = (uint8_t *)(floats + graph->codec.dim);
    sl_walk_partition_query(walk, query, scratch, floats, &code);
    score_centroids(order, walk, &code);
    sort_into_classes(order, walk);
    if (graph->codec.metric == SL_METRIC_L2) move_scores(order, walk);
}
