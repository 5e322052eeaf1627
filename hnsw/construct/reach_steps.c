#include "hnsw/construct/reach_steps.h"

#include "hnsw/graph/entry.h"

static size_t words_of(const sl_reach_steps *steps) {
    return steps->n / 64 + 1;
}

static void reach(sl_reach_steps *steps, size_t node) {
    const uint64_t bit = (uint64_t)1 << (node % 64);
    if (node >= steps->n || steps->reached[node / 64] & bit) return;
    steps->reached[node / 64] |= bit;
    steps->again |= node / 64 < steps->word;
}

sl_status sl_reach_steps_begin(sl_reach_steps *steps, const sl_graph *graph) {
    sl_status status = SL_OK;
    *steps = (sl_reach_steps){.n = graph->n};
    steps->reached = sl_mem_array(&graph->allocator, words_of(steps), sizeof *steps->reached, &status);
    steps->followed = sl_mem_array(&graph->allocator, words_of(steps), sizeof *steps->followed, &status);
    if (status != SL_OK)
        sl_reach_steps_free(steps, graph);
    else if (graph->n)
        reach(steps, sl_entry_get(graph).node);
    return status;
}

void sl_reach_steps_free(sl_reach_steps *steps, const sl_graph *graph) {
    SL_FREE_ARRAY(&graph->allocator, steps->reached, words_of(steps));
    SL_FREE_ARRAY(&graph->allocator, steps->followed, words_of(steps));
    *steps = (sl_reach_steps){0};
}

static void read_list(sl_reach_steps *steps, const sl_graph *graph, size_t node) {
    const uint32_t *links = sl_links(graph, node);
    steps->followed[node / 64] |= (uint64_t)1 << (node % 64);
    for (size_t i = 0; i < graph->m0; i++) {
        const uint32_t to = sl_link_load(links + i);
        if (to == SL_NONE) break;
        reach(steps, to);
    }
}

int sl_reach_steps_go(sl_reach_steps *steps, const sl_graph *graph, size_t *lists) {
    while (*lists) {
        const uint64_t rest = steps->reached[steps->word] & ~steps->followed[steps->word];
        if (rest) {
            read_list(steps, graph, steps->word * 64 + (size_t)__builtin_ctzll(rest));
            --*lists;
        } else if (++steps->word == words_of(steps)) {
            steps->word = 0;
            if (!steps->again) return 1;
            steps->again = 0;
        }
    }
    return 0;
}

size_t sl_reach_steps_missing(const sl_reach_steps *steps, size_t from) {
    for (; from < steps->n; from = (from / 64 + 1) * 64) {
        const uint64_t rest = ~steps->reached[from / 64] >> (from % 64);
        if (rest) from += (size_t)__builtin_ctzll(rest);
        if (rest) return from < steps->n ? from : steps->n;
    }
    return steps->n;
}
