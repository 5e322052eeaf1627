#include "hnsw/probe.h"

#include "base/prefetch.h"
#include "hnsw/partition.h"
#include "hnsw/scan.h"

#include <math.h>
#include <string.h>

/* Rows that are scored together, and how far ahead of its scoring one of them is asked for; kernels read and write
 * whole registers behind them. */
enum { BLOCK = 256, AHEAD = 32, BEHIND = 32 };
_Static_assert(BLOCK <= SL_POOL_TURN, "a block fits the pool's room");

/* Into the scratch: the number of each centroid and its score, the query over them, and as floats. */
typedef struct sl_probing {
    sl_walk *walk;
    sl_scan nearest; /* of the centroids */
    void *buffer;
    float *floats;
    uint32_t nodes[2 * BLOCK + BEHIND];
    size_t count; /* of nodes that wait to be scored */
} sl_probing;

static size_t places(const sl_index *index) {
    return (index->partitions.count + BEHIND + 15) / 16 * 16;
}

size_t sl_probe_scratch(const sl_index *index) {
    size_t query = sl_round_up(sl_query_size(&index->partitions.codec), SL_CACHE_LINE);
    return places(index) * (sizeof(uint32_t) + sizeof(float)) + query + 2 * index->codec.dim * sizeof(float);
}

static void lay_out(sl_probing *probing, uint8_t *scratch) {
    const sl_index *index = probing->walk->index;
    probing->nearest.ids = (uint32_t *)(void *)scratch;
    probing->nearest.scores = (float *)(void *)(probing->nearest.ids + places(index));
    probing->buffer = probing->nearest.scores + places(index);
    probing->floats = (float *)(void *)((uint8_t *)probing->buffer +
                                        sl_round_up(sl_query_size(&index->partitions.codec), SL_CACHE_LINE));
}

/* Those whose score is a number: a file may hold any. */
static void leave_out(sl_scan *nearest, size_t partitions) {
    nearest->count = 0;
    for (size_t p = 0; p < partitions; p++) {
        float score = nearest->scores[p];
        if (!(score > -INFINITY)) continue;
        nearest->ids[nearest->count] = (uint32_t)p;
        nearest->scores[nearest->count++] = score;
    }
}

/* The partitions to look at, the nearest of all first: what it holds sets a threshold that little else passes. */
static void choose(sl_probing *probing, const void *query, sl_dtype dtype, size_t probes) {
    sl_walk *walk = probing->walk;
    const sl_index *index = walk->index;
    const sl_partitions *partitions = &index->partitions;
    sl_scan *nearest = &probing->nearest;
    sl_query_code code;
    sl_partition_ask(index, query, dtype, probing->buffer, probing->floats, &code);
    for (size_t p = 0; p < partitions->count; p++)
        nearest->ids[p] = (uint32_t)p;
    index->kernels->score[SL_CODES_I8](&partitions->codec.rows, &code, nearest->ids, partitions->count, AHEAD,
                                       nearest->scores);
    walk->evaluations += partitions->count;
    leave_out(nearest, partitions->count);
    nearest->least = -INFINITY;
    index->kernels->tile.best(nearest, (uint32_t)probes);
    sl_scan_best_first(nearest);
}

/* Scores the first of the nodes that wait, up to a block of them. Those behind them are asked for first: within a block
 * the kernel does so itself. */
static void score_block(sl_probing *probing) {
    sl_walk *walk = probing->walk;
    const sl_codec *codec = walk->walked;
    uint32_t *nodes = probing->nodes;
    size_t count = probing->count < BLOCK ? probing->count : BLOCK, left = probing->count - count;
    float scores[BLOCK + BEHIND];
    for (size_t i = count; i < probing->count && i < count + AHEAD; i++)
        sl_prefetch(codec->rows.base + (size_t)nodes[i] * codec->rows.pitch, codec->rows.size);
    walk->index->kernels->score[codec->codes](&codec->rows, &walk->query, nodes, count, AHEAD, scores);
    sl_pool_offer(&walk->pool, scores, nodes, count);
    walk->evaluations += count;
    memmove(nodes, nodes + count, left * sizeof *nodes);
    probing->count = left;
}

/* Nodes of several partitions wait together, so that the next one's first rows are asked for in time. */
static void take_range(sl_probing *probing, sl_range range) {
    const sl_index *index = probing->walk->index;
    const uint64_t *dead = index->dead_count ? index->dead : NULL;
    for (size_t node = range.first; node < range.end; node++) {
        if (dead && dead[node / 64] >> (node % 64) & 1) continue;
        probing->nodes[probing->count++] = (uint32_t)node;
        if (probing->count == 2 * BLOCK) score_block(probing);
    }
}

void sl_probe(sl_walk *walk, const void *query, sl_dtype dtype, const sl_search_params *params, size_t keep,
              uint8_t *scratch) {
    const sl_index *index = walk->index;
    const sl_partitions *partitions = &index->partitions;
    sl_probing probing = {.walk = walk};
    lay_out(&probing, scratch);
    choose(&probing, query, dtype, sl_scan_probes(index, params));
    sl_pool_start(&walk->pool, keep, 0);
    for (uint32_t i = 0; i < probing.nearest.count; i++)
        take_range(&probing, sl_partition_nodes(partitions, probing.nearest.ids[i], index->n));
    take_range(&probing, sl_partition_rest(partitions, index->n));
    while (probing.count)
        score_block(&probing);
    sl_pool_finish(&walk->pool, keep);
}
