#include "hnsw/search/search_params.h"

#include "base/params.h"
#include "base/thread.h"
#include "distance/codec/vector_check.h"
#include "hnsw/search/allowed.h"
#include "hnsw/search/settings.h"

#include <math.h>

void sl_search_params_init_sized(sl_search_params *params, size_t struct_size) {
    const sl_search_params mine = {.struct_size = sizeof mine, .ef = 64, .threads = 1};
    sl_params_defaults(params, struct_size, &mine, sizeof mine);
}

size_t sl_search_threads(size_t nq, size_t asked) {
    size_t threads = nq > 1 ? sl_thread_count(asked) : 1;
    return threads < nq ? threads : nq > 1 ? nq : 1;
}

sl_status sl_search_params_read(const sl_graph *graph, size_t nq, size_t k, const sl_search_params *given,
                                sl_search_params *mine) {
    sl_search_params_init(mine);
    SL_TRY(sl_params_in(mine, sizeof *mine, given, "sl_search_params_init"));
    if (mine->recall == 0) return SL_OK;
    return sl_settings_apply(graph, k, nq / sl_search_threads(nq, mine->threads), mine);
}

sl_status sl_one_query_check(const sl_search_params *params) {
    if (!params->filters) return SL_OK;
    return sl_fail(SL_EINVAL, "filters are given to one query; give its filter as `filter`");
}

sl_status sl_search_check(const sl_graph *graph, sl_dtype dtype, size_t k, const sl_search_params *params) {
    if (k == 0 || k > SL_MAX_EF) return sl_fail(SL_EINVAL, "k is %zu; give 1 to %u", k, SL_MAX_EF);
    if (params->ef == 0 || params->ef > SL_MAX_EF)
        return sl_fail(SL_EINVAL, "ef is %zu; give 1 to %u", params->ef, SL_MAX_EF);
    if (!(params->stop >= 0)) return sl_fail(SL_EINVAL, "stop is %g; give 0 for none, or more", params->stop);
    SL_TRY(sl_accept_bits_check(params));
    if (params->filter && params->filters)
        return sl_fail(SL_EINVAL, "filter and filters are both given; give one for all queries, or one a query");
    if (params->has_threshold && isnan(params->threshold)) return sl_fail(SL_EINVAL, "threshold is NaN; give a score");
    if ((unsigned)params->strategy > SL_FILTER_HOPS)
        return sl_fail(SL_EINVAL, "strategy %d is unknown", (int)params->strategy);
    if (params->group_size && !sl_has(graph, SL_ARRAY_KEYS))
        return sl_fail(SL_EINVAL,
                       "group_size is %zu, and the index has no keys to group by; make it with sl_index_params.keys",
                       params->group_size);
    return sl_codec_accepts(&graph->codec, dtype);
}
