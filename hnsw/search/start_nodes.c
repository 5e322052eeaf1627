#include "hnsw/search/start_nodes.h"

#include "hnsw/graph/partition.h"
#include "hnsw/search/score_block.h"

#include <math.h>

/* The most centroids to search without groups. */
enum { UNGROUPED = SL_SCORE_BLOCK };

/* Bytes of codes to read, or 16 rows if those are larger. Reading more costs more than it helps. Counts the width of
 * rows and not their pitch, which is different in records. So a search starts at the same nodes in every medium. */
#define MOST_BYTES ((size_t)32 * 1024)

/* Returns whether the nearest partition gives start nodes. If partitions are larger, the index has the largest possible
 * number of partitions, or has grown since they were made. Nobody has measured whether a few nodes of so large a
 * partition help. An old file may have many partitions without groups, and searching all centroids takes longer than a
 * descent.
 */
static int has_start_nodes(const sl_graph *graph) {
    size_t partitions = graph->partitions.count;
    return partitions && graph->n / partitions <= 2 * (size_t)SL_PARTITION_ROWS &&
           (graph->groups.count || partitions <= UNGROUPED);
}

static size_t query_bytes(const sl_graph *graph) {
    return sl_round_up(sl_query_size(&graph->partitions.codec), SL_CACHE_LINE);
}

size_t sl_start_nodes_scratch(const sl_graph *graph) {
    return has_start_nodes(graph) ? query_bytes(graph) + graph->codec.dim * sizeof(float) : 0;
}

/* Returns the most start nodes. */
static size_t max_start_nodes(const sl_codec *walked) {
    size_t most = MOST_BYTES / walked->rows.width;
    return most > 16 ? most : 16;
}

size_t sl_start_nodes_evaluations(const sl_graph *graph) {
    const sl_partitions *partitions = &graph->partitions, *groups = &graph->groups;
    if (!has_start_nodes(graph)) return 0;
    size_t mean = graph->n / partitions->count, most = max_start_nodes(sl_codec_of_walks(graph));
    size_t centroids = groups->count ? groups->count + partitions->count / groups->count : partitions->count;
    return centroids + (mean < most ? mean : most);
}

/* Returns the nearest centroid of a range. If all scores are NaN, as in a damaged file, it's the first. */
static size_t nearest_centroid(sl_walk *walk, const sl_partitions *of, sl_range range, const sl_query_code *code) {
    const sl_row_scorer scorer = sl_row_scorer_of(walk->graph->kernels, &of->codec, code, 0);
    sl_scored best = {-INFINITY, (uint32_t)range.first};
    sl_score_best_in(&scorer, range.first, range.end, &best);
    walk->evaluations += range.end - range.first;
    return best.id;
}

sl_range sl_start_nodes(sl_walk *walk, sl_query query, uint8_t *scratch) {
    const sl_graph *graph = walk->graph;
    const sl_partitions *partitions = &graph->partitions, *groups = &graph->groups;
    sl_range range = {0, partitions->count};
    sl_query_code code;
    if (!has_start_nodes(graph)) return (sl_range){0, 0};
    sl_walk_partition_query(walk, query, scratch, (float *)(void *)(scratch + query_bytes(graph)), &code);
    if (groups->count) {
        size_t group = nearest_centroid(walk, groups, (sl_range){0, groups->count}, &code);
        range = sl_partition_nodes(groups, group, partitions->count);
    }
    if (range.first == range.end) return range;
    range = sl_partition_nodes(partitions, nearest_centroid(walk, partitions, range, &code), graph->n);
    size_t most = max_start_nodes(walk->codec);
    if (range.end - range.first > most) range.end = range.first + most;
    return range;
}
