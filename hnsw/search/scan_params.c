#include "hnsw/search/scan_params.h"

#include "hnsw/search/allowed.h"

int sl_can_scan(const sl_graph *graph, const sl_search_params *params) {
    sl_codes codes = sl_codec_of_walks(graph)->codes;
    /* A scan reads more deleted nodes than others, where most are deleted. */
    return params->probes && !params->group_size && !sl_ids_repeat(graph) && !params->max_visits && graph->n &&
           graph->partitions.count && (codes == SL_CODES_I8 || codes == SL_CODES_I4) && !sl_is_filtered(params) &&
           graph->deleted_count <= graph->n / 2;
}

/* As many more than wanted, of so many parts, as nodes are deleted. */
static size_t among_undeleted(const sl_graph *graph, size_t wanted, size_t parts) {
    if (wanted >= parts) return parts;
    wanted = (size_t)((uint64_t)wanted * graph->n / sl_undeleted_count(graph));
    return wanted < parts ? wanted : parts;
}

size_t sl_scan_probes(const sl_graph *graph, const sl_search_params *params) {
    return among_undeleted(graph, params->probes, graph->partitions.count);
}

size_t sl_scan_groups(const sl_graph *graph, const sl_search_params *params) {
    size_t groups = among_undeleted(graph, params->groups, graph->groups.count);
    return groups < graph->groups.count ? groups : 0;
}
