#include "hnsw/search/results.h"

#include <math.h>

void sl_results_write(const sl_searcher *searcher, size_t k, int nodes, uint64_t *ids, float *scores) {
    const sl_graph *graph = searcher->graph;
    const sl_top *top = &searcher->top;
    for (size_t i = 0; i < k; i++) {
        int found = i < top->size;
        uint64_t node = found ? top->entries[i].id : SL_NO_ID;
        ids[i] = found && !nodes ? sl_id_of(graph, (uint32_t)node) : node;
        if (!scores) continue;
        scores[i] = found ? sl_public_score(graph, top->entries[i].score) : NAN;
    }
}

size_t sl_results_count(const sl_searcher *searcher) {
    return searcher->top.size;
}

void sl_results_add_work(const sl_searcher *searcher, sl_search_stats *stats) {
    stats->evaluations += searcher->walk.evaluations;
    stats->expansions += searcher->walk.expansions;
    stats->exact += searcher->strategy == SL_FILTER_EXACT;
    stats->partitions += searcher->strategy == SL_FILTER_PARTITIONS;
    stats->walks += searcher->strategy == SL_FILTER_WALK;
    stats->hops += searcher->strategy == SL_FILTER_HOPS;
    stats->cut += (size_t)sl_walk_is_over_budget(&searcher->walk);
}

void sl_results_add_stats(const sl_searcher *searcher, sl_search_stats *stats) {
    stats->results += searcher->top.size;
    sl_results_add_work(searcher, stats);
}

void sl_results_cut(sl_searcher *searcher, double threshold) {
    sl_top *top = &searcher->top;
    while (top->size &&
           !sl_public_score_reaches(searcher->graph,
                                    sl_public_score(searcher->graph, top->entries[top->size - 1].score), threshold))
        top->size--;
}
