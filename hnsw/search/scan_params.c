#include "hnsw/search/scan_params.h"

#include "hnsw/search/allowed.h"

int sl_can_scan(const sl_graph *graph, const sl_search_params *params) {
    sl_codes codes = sl_codec_of_walks(graph)->codes;
    /* If most nodes are deleted, a scan would read more deleted rows than others. */
    return params->probes && !params->group_size && !sl_ids_repeat(graph) && !params->max_visits && graph->n &&
           graph->partitions.count && (codes == SL_CODES_I8 || codes == SL_CODES_I4) && !sl_is_filtered(params) &&
           graph->deleted_count <= graph->n / 2;
}

/* Returns `wanted` raised by the share of deleted nodes, and at most `parts`. */
static size_t raise_for_tombstones(const sl_graph *graph, size_t wanted, size_t parts) {
    if (wanted >= parts) return parts;
    wanted = (size_t)((uint64_t)wanted * graph->n / sl_undeleted_count(graph));
    return wanted < parts ? wanted : parts;
}

size_t sl_scan_probes(const sl_graph *graph, const sl_search_params *params) {
    return raise_for_tombstones(graph, params->probes, graph->partitions.count);
}

size_t sl_scan_groups(const sl_graph *graph, const sl_search_params *params) {
    size_t groups = raise_for_tombstones(graph, params->groups, graph->groups.count);
    return groups < graph->groups.count ? groups : 0;
}
