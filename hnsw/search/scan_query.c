#include "hnsw/search/scan_query.h"

#include "hnsw/graph/partition.h"
#include "hnsw/search/bands.h"
#include "hnsw/search/candidate_block.h"
#include "hnsw/search/scan_params.h"

#include <math.h>

/* One probe. In the scratch lie the number of each centroid and its score, of partitions and of groups, and the query
 * over them and as floats. */
typedef struct sl_probing {
    sl_walk *walk;
    sl_scan partitions, groups; /* the nearest of them; of partitions then band prefixes */
    uint32_t *words;            /* scratch of sl_bands_choose */
    void *buffer;
    float *floats;
} sl_probing;

static size_t places(size_t centroids) {
    return (centroids + SL_SCORE_PAD + 15) / 16 * 16;
}

static size_t all_places(const sl_graph *graph) {
    return places(graph->partitions.count) + places(graph->groups.count);
}

static size_t word_places(const sl_graph *graph) {
    return (sl_bands_scratch(&graph->partitions) + 15) / 16 * 16;
}

size_t sl_scan_query_scratch(const sl_graph *graph) {
    size_t query = sl_round_up(sl_query_size(&graph->partitions.codec), SL_CACHE_LINE);
    size_t words = 2 * all_places(graph) + word_places(graph) + graph->codec.dim;
    return words * sizeof(uint32_t) + query;
}

static void lay_out(sl_probing *probing, uint8_t *scratch) {
    const sl_graph *graph = probing->walk->graph;
    size_t partitions = places(graph->partitions.count), all = all_places(graph);
    uint32_t *ids = (uint32_t *)(void *)scratch;
    float *scores = (float *)(void *)(ids + all);
    probing->partitions = (sl_scan){.ids = ids, .scores = scores};
    probing->groups = (sl_scan){.ids = ids + partitions, .scores = scores + partitions};
    probing->words = (uint32_t *)(void *)(scores + all);
    probing->buffer = probing->words + word_places(graph);
    probing->floats = (float *)(void *)((uint8_t *)probing->buffer +
                                        sl_round_up(sl_query_size(&graph->partitions.codec), SL_CACHE_LINE));
}

/* Leaves in `nearest`, of the parts that wait there, the nearest for so many probes. Parts whose score is no number
 * are left out: a file may hold any. */
static void take_nearest(sl_probing *probing, const sl_partitions *of, const sl_query_code *code, sl_scan *nearest,
                         size_t probes) {
    sl_walk *walk = probing->walk;
    const sl_kernels *kernels = walk->graph->kernels;
    const sl_row_scorer scorer = sl_row_scorer_of(kernels, &of->codec, code, 0);
    size_t count = nearest->count;
    sl_score_block(&scorer, nearest->ids, count, count, nearest->scores);
    walk->evaluations += count;
    nearest->count = 0;
    for (size_t i = 0; i < count; i++) {
        float score = nearest->scores[i];
        if (!(score > -INFINITY)) continue;
        nearest->ids[nearest->count] = nearest->ids[i];
        nearest->scores[nearest->count++] = score;
    }
    nearest->least = -INFINITY;
    sl_bands_choose(kernels, of, probes, nearest, probing->words);
}

/* Lets all of a range wait, but never more than there are: ranges of a damaged file may seem to hold more. */
static void consider(sl_scan *waiting, sl_range range, size_t all) {
    for (size_t i = range.first; i < range.end && waiting->count < all; i++)
        waiting->ids[waiting->count++] = (uint32_t)i;
}

/* Leaves the band prefixes to look at in probing->partitions: of partitions of the nearest groups, or of all. */
static void choose(sl_probing *probing, sl_query query, const sl_search_params *params) {
    sl_walk *walk = probing->walk;
    const sl_graph *graph = walk->graph;
    const sl_partitions *partitions = &graph->partitions, *groups = &graph->groups;
    size_t look = sl_scan_groups(graph, params);
    sl_query_code code;
    sl_walk_partition_query(walk, query, probing->buffer, probing->floats, &code);
    if (look) {
        consider(&probing->groups, (sl_range){0, groups->count}, groups->count);
        take_nearest(probing, groups, &code, &probing->groups, look);
        for (uint32_t i = 0; i < probing->groups.count; i++)
            consider(&probing->partitions, sl_partition_nodes(groups, probing->groups.ids[i], partitions->count),
                     partitions->count);
    } else {
        consider(&probing->partitions, (sl_range){0, partitions->count}, partitions->count);
    }
    take_nearest(probing, partitions, &code, &probing->partitions, sl_scan_probes(graph, params));
}

void sl_scan_query(sl_walk *walk, sl_query query, const sl_search_params *params, size_t keep, uint8_t *scratch) {
    const sl_graph *graph = walk->graph;
    const sl_partitions *partitions = &graph->partitions;
    sl_probing probing = {.walk = walk};
    sl_candidate_block feed;
    lay_out(&probing, scratch);
    choose(&probing, query, params);
    sl_candidate_block_start(&feed, walk, keep);
    for (uint32_t i = 0; i < probing.partitions.count; i++)
        sl_candidate_block_add_range(&feed, sl_partition_prefix(partitions, probing.partitions.ids[i], graph->n));
    sl_candidate_block_add_range(&feed, sl_partition_rest(partitions, graph->n));
    sl_candidate_block_end(&feed, keep);
}
