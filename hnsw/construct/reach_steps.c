#include "hnsw/construct/reach_steps.h"

#include "hnsw/graph/entry.h"
#include "hnsw/graph/free_nodes.h"

void sl_reach_steps_add(sl_reach_steps *steps, size_t node) {
    if (!sl_node_set_has(&steps->missing, node)) return;
    sl_node_set_remove(&steps->missing, node);
    sl_node_set_add(&steps->todo, node);
}

sl_status sl_reach_steps_begin(sl_reach_steps *steps, const sl_index *index, const sl_node_set *shut) {
    const sl_graph *graph = &index->graph;
    *steps = (sl_reach_steps){.n = graph->n, .shut = shut};
    sl_status status = sl_node_set_reserve(index, &steps->missing);
    if (status == SL_OK) status = sl_node_set_reserve(index, &steps->todo);
    if (status != SL_OK) {
        sl_reach_steps_free(steps, index);
        return status;
    }
    sl_node_set_add_first(&steps->missing, graph->n);
    if (graph->n) sl_reach_steps_add(steps, sl_entry_get(graph).node);
    return SL_OK;
}

void sl_reach_steps_free(sl_reach_steps *steps, const sl_index *index) {
    sl_node_set_free(index, &steps->missing);
    sl_node_set_free(index, &steps->todo);
    steps->n = 0;
}

static void read_list(sl_reach_steps *steps, const sl_graph *graph, size_t node) {
    const uint32_t *links = sl_links(graph, node);
    for (size_t i = 0; i < graph->m0; i++) {
        const uint32_t to = sl_link_load(links + i);
        if (to == SL_NONE) break;
        sl_reach_steps_add(steps, to);
    }
}

int sl_reach_steps_go(sl_reach_steps *steps, const sl_graph *graph, size_t *lists) {
    while (*lists && steps->todo.count) {
        steps->at = sl_node_set_next(&steps->todo, (sl_range){steps->at, steps->n});
        if (steps->at == steps->n) {
            steps->at = 0;
            continue;
        }
        sl_node_set_remove(&steps->todo, steps->at);
        --*lists;
        if (!steps->shut || !sl_node_set_has(steps->shut, steps->at)) read_list(steps, graph, steps->at);
    }
    return !steps->todo.count;
}
