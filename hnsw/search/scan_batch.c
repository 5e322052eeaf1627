#include "hnsw/search/scan_batch.h"

#include "base/failure.h"
#include "hnsw/graph/partition.h"
#include "hnsw/place/dram_copy.h"
#include "hnsw/search/rerank.h"
#include "hnsw/search/scan_memory.h"
#include "hnsw/search/scan_params.h"
#include "hnsw/search/searcher.h"

/* One thread's work on a chunk of queries. */
typedef struct sl_scan_work {
    sl_query_batch *batch;
    sl_searcher *searcher;
    sl_scan_memory memory;
    size_t first, count; /* the first query, and their number */
    sl_search_stats stats;
} sl_scan_work;

/* ---------------------------------------------------------------------------------------------------------------
 * The queries of one thread
 * ------------------------------------------------------------------------------------------------------------- */

static sl_query work_query(const sl_scan_work *work, size_t i) {
    return sl_query_batch_query(work->batch, work->first + i);
}

/* Encodes query i over nodes, and over centroids at `place`. Re-ranking encodes the query again later. Keeping that
 * form for all queries would push their hits out of the cache. */
static void encode_query(sl_scan_work *work, size_t i, size_t place) {
    const sl_query_batch *batch = work->batch;
    sl_scan_memory *memory = &work->memory;
    const sl_query query = work_query(work, i);
    sl_query_code code;
    sl_searcher_set_query(work->searcher, query);
    sl_query_set_put(&memory->nodes, i, sl_searcher_query(work->searcher));
    sl_partition_encode_query(batch->graph, query.vector, query.dtype, memory->buffer, memory->floats, &code);
    sl_query_set_put(&memory->partitions, place, &code);
}

/* Returns the number of queries in the chunk that begins with query i. */
static size_t next_chunk(const sl_scan_work *work, size_t i) {
    return work->count - i < SL_SCAN_CHOOSE_CHUNK ? work->count - i : SL_SCAN_CHOOSE_CHUNK;
}

/* Each query chooses among all partitions. */
static void choose_among_all(sl_scan_work *work) {
    sl_scan_memory *memory = &work->memory;
    const sl_range all = {0, memory->chosen.parts->count};
    for (size_t first = 0, some; first < work->count; first += some) {
        some = next_chunk(work, first);
        for (size_t i = 0; i < some; i++)
            encode_query(work, first + i, i);
        sl_tile_scan_range(&memory->tiles, &memory->partitions, some, all);
        for (size_t i = 0; i < some; i++)
            sl_tile_scan_choose(&memory->tiles, &memory->chosen, first + i, &memory->partitions.scans[i]);
    }
}

/* Each query chooses groups, and then partitions of its groups. */
static void choose_in_groups(sl_scan_work *work) {
    sl_scan_memory *memory = &work->memory;
    sl_tile_scan *tiles = &memory->tiles;
    const sl_range all = {0, memory->chosen_groups.parts->count};
    for (size_t first = 0, some; first < work->count; first += some) {
        some = next_chunk(work, first);
        for (size_t i = 0; i < some; i++) {
            encode_query(work, first + i, first + i);
            sl_query_set_share(&memory->groups, i, &memory->partitions.scans[first + i]);
        }
        sl_tile_scan_range(tiles, &memory->groups, some, all);
        for (size_t i = 0; i < some; i++)
            sl_tile_scan_choose(tiles, &memory->chosen_groups, first + i, &memory->groups.scans[i]);
    }
    sl_tile_scan_chosen(tiles, &memory->partitions, work->count, memory->chosen.parts->count, &memory->chosen_groups,
                        (sl_choice_span){0, UINT32_MAX});
    for (size_t i = 0; i < work->count; i++)
        sl_tile_scan_choose(tiles, &memory->chosen, i, &memory->partitions.scans[i]);
}

/* Scans the chosen partitions, and the nodes added since the partitions were made. The nearest partitions go first:
 * their hits set thresholds that few others pass. */
static void scan_nodes(sl_scan_work *work) {
    sl_scan_memory *memory = &work->memory;
    sl_tile_scan *tiles = &memory->tiles;
    const sl_probe_choice *chosen = &memory->chosen;
    const size_t n = work->batch->graph->n;
    sl_tile_scan_chosen(tiles, &memory->nodes, work->count, n, chosen, (sl_choice_span){0, 1});
    sl_tile_scan_range(tiles, &memory->nodes, work->count, sl_partition_rest(chosen->parts, n));
    sl_tile_scan_chosen(tiles, &memory->nodes, work->count, n, chosen, (sl_choice_span){1, UINT32_MAX});
}

/* Re-ranks query i's hits. If many nodes are deleted, a query may have too few hits; it walks then. */
static sl_status rerank_or_walk(sl_scan_work *work, size_t i) {
    sl_query_batch *batch = work->batch;
    sl_searcher *searcher = work->searcher;
    const sl_query_set *nodes = &work->memory.nodes;
    sl_scan *scan = &nodes->scans[i];
    const sl_query query = work_query(work, i);
    /* Keeps only the hits to re-rank, so that they need no sorting. */
    batch->graph->kernels->tile.best(scan, (uint32_t)nodes->keep, 1);
    sl_rerank_scan(searcher, query, batch->k, batch->params, scan);
    if (sl_results_count(searcher) < batch->k && nodes->target.deleted_in) {
        sl_search_params walk = *batch->params;
        walk.probes = 0;
        SL_TRY(sl_searcher_run(searcher, query, batch->k, &walk));
        sl_results_add_work(searcher, &work->stats);
    }
    sl_query_batch_write(batch, searcher, work->first + i);
    work->stats.results += sl_results_count(searcher);
    return SL_OK;
}

static sl_status scan_queries(sl_scan_work *work) {
    (work->memory.chosen_groups.wanted ? choose_in_groups : choose_among_all)(work);
    scan_nodes(work);
    for (size_t i = 0; i < work->count; i++) {
        SL_TRY(rerank_or_walk(work, i));
        sl_progress_step(&work->batch->progress, 1);
    }
    return SL_OK;
}

/* ---------------------------------------------------------------------------------------------------------------
 * The threads
 * ------------------------------------------------------------------------------------------------------------- */

/* The batch, which its threads share. */
typedef struct sl_scan_team {
    sl_query_batch *batch;
    sl_scan_shape shape;
    size_t next; /* atomic: the first query that no thread has started */
} sl_scan_team;

/* Takes chunks of queries until none is left. */
static sl_status scan_on_thread(sl_scan_team *team, size_t thread, sl_search_stats *stats) {
    sl_query_batch *batch = team->batch;
    const size_t max_queries = team->shape.max_queries;
    const sl_dram_copy *copy = sl_dram_copy_now(batch->graph);
    const sl_codec *codec = copy ? &copy->walked : sl_codec_of_walks(batch->graph);
    sl_scan_work work = {.batch = batch, .searcher = batch->searchers[thread]};
    sl_status status = sl_scan_memory_init(&work.memory, &team->shape, codec, work.searcher);
    if (status != SL_OK)
        return sl_fail(status, "cannot allocate what %zu threads need to scan for %zu queries; search on fewer",
                       batch->threads, max_queries);
    for (;;) {
        work.first = __atomic_fetch_add(&team->next, max_queries, __ATOMIC_RELAXED);
        if (work.first >= batch->nq || sl_progress_cancelled(&batch->progress)) break;
        work.count = batch->nq - work.first < max_queries ? batch->nq - work.first : max_queries;
        SL_TRY(scan_queries(&work));
    }
    *stats = work.stats;
    stats->evaluations += work.memory.tiles.evaluations;
    return SL_OK;
}

/* A searcher re-ranks no more than it has room for. */
static size_t hits_to_keep(const sl_query_batch *batch) {
    size_t keep = sl_rerank_count(batch->graph, batch->k, batch->params);
    size_t room = sl_searcher_max_ef(batch->searchers[0]);
    return keep < room ? keep : room;
}

static sl_scan_shape batch_shape(const sl_query_batch *batch) {
    const sl_graph *graph = batch->graph;
    sl_scan_shape shape = {.graph = graph,
                           .probes = sl_scan_probes(graph, batch->params),
                           .groups = sl_scan_groups(graph, batch->params),
                           .keep = hits_to_keep(batch)};
    shape.max_queries = sl_scan_chunk_size(&shape, (batch->nq + batch->threads - 1) / batch->threads);
    return shape;
}

sl_status sl_scan_batch(sl_query_batch *batch, sl_search_stats *stats) {
    sl_scan_team team = {.batch = batch, .shape = batch_shape(batch)};
    sl_failure failure;
    sl_failure_init(&failure);
#pragma omp parallel num_threads((int)batch->threads) if (batch->threads > 1)
    {
        size_t thread = sl_thread_number();
        sl_search_stats mine = {0};
        sl_numa_pin pin;
        sl_numa_pin_thread(batch->threads > 1 ? batch->numa : NULL, thread, batch->threads, &pin);
        sl_failure_keep(&failure, thread, scan_on_thread(&team, thread, &mine));
        sl_numa_unpin_thread(batch->numa, &pin);
#pragma omp critical(sl_scan_stats)
        { sl_search_stats_add(stats, &mine); }
    }
    return sl_failure_pass(&failure);
}
