#include "hnsw/search/scan_query.h"

#include "hnsw/graph/partition.h"
#include "hnsw/search/bands.h"
#include "hnsw/search/candidate_block.h"
#include "hnsw/search/scan_params.h"

#include <math.h>

/* One query's scan. The scratch holds the numbers and scores of centroids and groups, the query's code over centroids,
 * and the query as floats. */
typedef struct query_scan {
    sl_walk *walk;
    sl_scan partitions, groups; /* the nearest partitions and groups; band prefixes replace the partitions */
    uint32_t *words;            /* scratch of sl_bands_choose */
    void *buffer;
    float *floats;
} query_scan;

static size_t centroid_places(size_t centroids) {
    return (centroids + SL_SCORE_PAD + 15) / 16 * 16;
}

static size_t all_places(const sl_graph *graph) {
    return centroid_places(graph->partitions.count) + centroid_places(graph->groups.count);
}

static size_t word_places(const sl_graph *graph) {
    return (sl_bands_scratch(&graph->partitions) + 15) / 16 * 16;
}

size_t sl_scan_query_scratch(const sl_graph *graph) {
    size_t query = sl_round_up(sl_query_size(&graph->partitions.codec), SL_CACHE_LINE);
    size_t words = 2 * all_places(graph) + word_places(graph) + graph->codec.dim;
    return words * sizeof(uint32_t) + query;
}

static void lay_out_scratch(query_scan *scan, uint8_t *scratch) {
    const sl_graph *graph = scan->walk->graph;
    size_t partitions = centroid_places(graph->partitions.count), all = all_places(graph);
    uint32_t *ids = (uint32_t *)(void *)scratch;
    float *scores = (float *)(void *)(ids + all);
    scan->partitions = (sl_scan){.ids = ids, .scores = scores};
    scan->groups = (sl_scan){.ids = ids + partitions, .scores = scores + partitions};
    scan->words = (uint32_t *)(void *)(scores + all);
    scan->buffer = scan->words + word_places(graph);
    scan->floats = (float *)(void *)((uint8_t *)scan->buffer +
                                     sl_round_up(sl_query_size(&graph->partitions.codec), SL_CACHE_LINE));
}

/* Scores the centroids in `nearest` and keeps the nearest ones, as many as `probes` needs. Drops centroids whose score
 * is NaN, which a damaged file may hold. */
static void keep_nearest(query_scan *scan, const sl_partitions *of, const sl_query_code *code, sl_scan *nearest,
                         size_t probes) {
    sl_walk *walk = scan->walk;
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
    sl_bands_choose(kernels, of, probes, nearest, scan->words);
}

/* Adds a range of centroids. Keeps at most `all`, because ranges of a damaged file may overlap. */
static void add_candidates(sl_scan *candidates, sl_range range, size_t all) {
    for (size_t i = range.first; i < range.end && candidates->count < all; i++)
        candidates->ids[candidates->count++] = (uint32_t)i;
}

/* Chooses the band prefixes to scan, among the partitions of the nearest groups or among all partitions. */
static void choose_partitions(query_scan *scan, sl_query query, const sl_search_params *params) {
    sl_walk *walk = scan->walk;
    const sl_graph *graph = walk->graph;
    const sl_partitions *partitions = &graph->partitions, *groups = &graph->groups;
    size_t groups_to_scan = sl_scan_groups(graph, params);
    sl_query_code code;
    sl_walk_partition_query(walk, query, scan->buffer, scan->floats, &code);
    if (groups_to_scan) {
        add_candidates(&scan->groups, (sl_range){0, groups->count}, groups->count);
        keep_nearest(scan, groups, &code, &scan->groups, groups_to_scan);
        for (uint32_t i = 0; i < scan->groups.count; i++)
            add_candidates(&scan->partitions, sl_partition_nodes(groups, scan->groups.ids[i], partitions->count),
                           partitions->count);
    } else {
        add_candidates(&scan->partitions, (sl_range){0, partitions->count}, partitions->count);
    }
    keep_nearest(scan, partitions, &code, &scan->partitions, sl_scan_probes(graph, params));
}

void sl_scan_query(sl_walk *walk, sl_query query, const sl_search_params *params, size_t keep, uint8_t *scratch) {
    const sl_graph *graph = walk->graph;
    const sl_partitions *partitions = &graph->partitions;
    query_scan scan = {.walk = walk};
    sl_candidate_block block;
    lay_out_scratch(&scan, scratch);
    choose_partitions(&scan, query, params);
    sl_candidate_block_start(&block, walk, keep);
    for (uint32_t i = 0; i < scan.partitions.count; i++)
        sl_candidate_block_add_range(&block, sl_partition_prefix(partitions, scan.partitions.ids[i], graph->n));
    sl_candidate_block_add_range(&block, sl_partition_rest(partitions, graph->n));
    sl_candidate_block_end(&block, keep);
}
