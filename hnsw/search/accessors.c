#include "hnsw/search/accessors.h"

#include "distance/codec/vector_check.h"
#include "hnsw/graph/ids.h"
#include "hnsw/graph/version.h"
#include "hnsw/search/allowed.h"
#include "hnsw/search/searcher.h"

/* A filtered search may widen its beam to FURTHER times ef, or to LEAST if that is more. This bound doesn't depend on
 * what the filter accepts. */
enum { FURTHER = 8, LEAST = 1024 };

sl_status sl_index_accepts(const sl_index *index, sl_dtype dtype) {
    return sl_codec_accepts(&index->graph.codec, dtype);
}

size_t sl_search_max_ef(const sl_search_params *params, size_t k) {
    size_t ef = params->ef > k ? params->ef : k;
    if (!sl_is_filtered(params) && !params->group_size) return ef;
    size_t room = FURTHER * ef > LEAST ? FURTHER * ef : LEAST;
    return room < SL_MAX_EF ? room : SL_MAX_EF;
}

static uint64_t birth_of(const sl_graph *graph, uint32_t node) {
    return graph->lives.nodes ? __atomic_load_n(&graph->lives.nodes[node].born, __ATOMIC_ACQUIRE) + 1 : 1;
}

/* Ids that are looked up while the lock is held once. */
enum { AT_ONCE = 256 };

static sl_status births_of_some(sl_index *index, const uint64_t *ids, size_t n, uint64_t *births) {
    uint32_t nodes[AT_ONCE];
    sl_reading reading;
    sl_status status = sl_ids_read(index, &reading, ids, n, nodes);
    for (size_t i = 0; i < n && status == SL_OK; i++)
        births[i] = nodes[i] == SL_NONE ? 0 : birth_of(reading.graph, nodes[i]);
    sl_reading_end(&reading);
    return status;
}

sl_status sl_index_births(sl_index *index, const uint64_t *ids, size_t n, uint64_t *births) {
    for (size_t done = 0, some; done < n; done += some) {
        some = n - done < AT_ONCE ? n - done : AT_ONCE;
        SL_TRY(births_of_some(index, ids + done, some, births + done));
    }
    return SL_OK;
}

static void write_births(const sl_graph *graph, const sl_results *found, uint64_t *births) {
    for (size_t i = 0; i < found->count; i++)
        births[i] = birth_of(graph, (uint32_t)found->nodes[i].id);
}

sl_status sl_searcher_search_births(sl_searcher *searcher, const void *query, sl_dtype dtype, size_t k,
                                    const sl_search_params *params, const sl_found *out, sl_search_stats *stats) {
    sl_results found;
    sl_searcher_enter(searcher);
    sl_status status = sl_searcher_find(searcher, (sl_query){query, dtype}, k, params, &found, stats);
    if (status == SL_OK) sl_results_write(searcher, k, 0, out->ids, out->scores);
    if (status == SL_OK && out->births) write_births(searcher->graph, &found, out->births);
    sl_searcher_exit(searcher);
    return status;
}
