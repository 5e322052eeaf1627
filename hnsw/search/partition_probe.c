#include "hnsw/search/partition_probe.h"

#include "base/prefetch.h"
#include "hnsw/graph/partition.h"
#include "hnsw/search/bands.h"
#include "hnsw/search/partition_scan.h"

#include <math.h>
#include <string.h>

/* Rows that are scored together, and how far ahead of its scoring one of them is asked for, since partitions lie
 * anywhere; kernels read and write whole registers behind them. */
enum { BLOCK = 256, AHEAD = 32, BEHIND = 32 };
_Static_assert(BLOCK <= SL_POOL_TURN, "a block fits the pool's room");

/* Into the scratch: the number of each centroid and its score, of partitions and of groups; the query over them, and as
 * floats. */
typedef struct sl_probing {
    sl_walk *walk;
    sl_scan partitions, groups; /* the nearest of them; of partitions then shares */
    uint32_t *shares;           /* scratch of their choice */
    void *buffer;
    float *floats;
    uint32_t nodes[2 * BLOCK + BEHIND];
    size_t count; /* of nodes that wait to be scored */
} sl_probing;

static size_t places(size_t centroids) {
    return (centroids + BEHIND + 15) / 16 * 16;
}

static size_t all_places(const sl_index *index) {
    return places(index->partitions.count) + places(index->groups.count);
}

static size_t share_places(const sl_index *index) {
    return (sl_bands_scratch(&index->partitions) + 15) / 16 * 16;
}

size_t sl_probe_scratch(const sl_index *index) {
    size_t query = sl_round_up(sl_query_size(&index->partitions.codec), SL_CACHE_LINE);
    size_t words = 2 * all_places(index) + share_places(index) + index->codec.dim;
    return words * sizeof(uint32_t) + query;
}

static void lay_out(sl_probing *probing, uint8_t *scratch) {
    const sl_index *index = probing->walk->index;
    size_t partitions = places(index->partitions.count), all = all_places(index);
    uint32_t *ids = (uint32_t *)(void *)scratch;
    float *scores = (float *)(void *)(ids + all);
    probing->partitions = (sl_scan){.ids = ids, .scores = scores};
    probing->groups = (sl_scan){.ids = ids + partitions, .scores = scores + partitions};
    probing->shares = (uint32_t *)(void *)(scores + all);
    probing->buffer = probing->shares + share_places(index);
    probing->floats = (float *)(void *)((uint8_t *)probing->buffer +
                                        sl_round_up(sl_query_size(&index->partitions.codec), SL_CACHE_LINE));
}

/* Leaves the nearest of those that wait in `nearest`, for so many probes. Those whose score is no number are left out:
 * a file may hold any. */
static void take_nearest(sl_probing *probing, const sl_partitions *of, const sl_query_code *code, sl_scan *nearest,
                         size_t probes) {
    sl_walk *walk = probing->walk;
    const sl_kernels *kernels = walk->index->kernels;
    size_t count = nearest->count;
    kernels->score[SL_CODES_I8](&of->codec.rows, code, nearest->ids, count, 0, nearest->scores);
    walk->evaluations += count;
    nearest->count = 0;
    for (size_t i = 0; i < count; i++) {
        float score = nearest->scores[i];
        if (!(score > -INFINITY)) continue;
        nearest->ids[nearest->count] = nearest->ids[i];
        nearest->scores[nearest->count++] = score;
    }
    nearest->least = -INFINITY;
    sl_bands_choose(kernels, of, probes, nearest, probing->shares);
}

/* All of a range, but never more than there are, which ranges of a damaged file may seem to hold. */
static void consider(sl_scan *waiting, sl_range range, size_t all) {
    for (size_t i = range.first; i < range.end && waiting->count < all; i++)
        waiting->ids[waiting->count++] = (uint32_t)i;
}

/* The shares to look at, of partitions of the nearest groups, or of all. */
static void choose(sl_probing *probing, const void *query, sl_dtype dtype, const sl_search_params *params) {
    sl_walk *walk = probing->walk;
    const sl_index *index = walk->index;
    const sl_partitions *partitions = &index->partitions, *groups = &index->groups;
    size_t look = sl_scan_groups(index, params);
    sl_query_code code;
    sl_walk_ask_partitions(walk, query, dtype, probing->buffer, probing->floats, &code);
    if (look) {
        consider(&probing->groups, (sl_range){0, groups->count}, groups->count);
        take_nearest(probing, groups, &code, &probing->groups, look);
        for (uint32_t i = 0; i < probing->groups.count; i++)
            consider(&probing->partitions, sl_partition_nodes(groups, probing->groups.ids[i], partitions->count),
                     partitions->count);
    } else {
        consider(&probing->partitions, (sl_range){0, partitions->count}, partitions->count);
    }
    take_nearest(probing, partitions, &code, &probing->partitions, sl_scan_probes(index, params));
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

/* Leaves those out that are deleted, of the nodes that wait from the first of these on. */
static void leave_dead(sl_probing *probing, const uint64_t *dead, size_t first) {
    uint32_t *nodes = probing->nodes;
    size_t kept = first;
    for (size_t i = first; i < probing->count; i++) {
        uint32_t node = nodes[i];
        nodes[kept] = node;
        kept += !sl_is_marked(dead, node);
    }
    probing->count = kept;
}

/* Nodes of several partitions wait together, so that the next one's first rows are asked for in time. */
static void take_range(sl_probing *probing, sl_range range) {
    const sl_index *index = probing->walk->index;
    for (size_t first = range.first, some; first < range.end; first += some) {
        size_t before = probing->count, room = 2 * BLOCK - before;
        some = range.end - first < room ? range.end - first : room;
        /* By sixteens, into what is free behind them too: shares may be small, and ends of short loops not foreseen. */
        for (size_t i = 0; i < some; i += 16)
            for (size_t j = 0; j < 16; j++)
                probing->nodes[before + i + j] = (uint32_t)(first + i + j);
        probing->count += some;
        if (index->dead_count) leave_dead(probing, sl_dead(index), before);
        if (probing->count == 2 * BLOCK) score_block(probing);
    }
}

void sl_probe(sl_walk *walk, const void *query, sl_dtype dtype, const sl_search_params *params, size_t keep,
              uint8_t *scratch) {
    const sl_index *index = walk->index;
    const sl_partitions *partitions = &index->partitions;
    sl_probing probing = {.walk = walk};
    lay_out(&probing, scratch);
    choose(&probing, query, dtype, params);
    sl_pool_start(&walk->pool, keep, 0);
    for (uint32_t i = 0; i < probing.partitions.count; i++)
        take_range(&probing, sl_partition_share(partitions, probing.partitions.ids[i], index->n));
    take_range(&probing, sl_partition_rest(partitions, index->n));
    while (probing.count)
        score_block(&probing);
    sl_pool_finish(&walk->pool, keep);
}
