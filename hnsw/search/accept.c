#include "hnsw/search/accept.h"

#include "hnsw/search/accessors.h"

/* How much further than asked a search with a filter looks. Work stays bounded whatever the filter says. */
enum { FURTHER = 8, LEAST = 1024 };

sl_status sl_accept_check(const sl_search_params *params) {
    if (!params->accept_bits && params->accept_bits_count)
        return sl_fail(SL_EINVAL, "accept_bits is NULL, accept_bits_count %zu; give the bitmap, or 0",
                       params->accept_bits_count);
    return SL_OK;
}

/* The bitmap is asked first: that costs less. */
int sl_accepts(const sl_search_params *params, uint64_t id) {
    if (params->accept_bits && (id >= params->accept_bits_count || !(params->accept_bits[id / 64] >> (id % 64) & 1)))
        return 0;
    return !params->accept || params->accept(params->accept_ctx, id) != 0;
}

/* The filter is asked first: that costs least. */
void sl_accept_pool(const sl_graph *graph, const sl_search_params *params, const sl_allowed *allowed, sl_pool *pool) {
    const int late = sl_accept_late(params);
    size_t kept = 0;
    /* A filter of one user is seldom in the cache. */
    for (size_t i = 0; allowed->bits && i < pool->size; i++)
        sl_prefetch(allowed->bits + sl_pool_id(pool->keys[i]) / 64, sizeof *allowed->bits);
    for (size_t i = 0; i < pool->size; i++) {
        uint32_t node = sl_pool_id(pool->keys[i]);
        if (sl_is_allowed(allowed, node) && (!late || sl_accepts(params, sl_id_of(graph, node))))
            pool->keys[kept++] = pool->keys[i];
    }
    pool->size = kept;
}

int sl_accept_enough(size_t kept, size_t seen, size_t k, size_t wanted) {
    return kept >= wanted || (kept >= k && kept >= seen - seen / 4);
}

size_t sl_accept_room(const sl_search_params *params, size_t k) {
    size_t ef = params->ef > k ? params->ef : k;
    if (!sl_accept_given(params) && !params->group_size) return ef;
    size_t room = FURTHER * ef > LEAST ? FURTHER * ef : LEAST;
    return room < SL_MAX_EF ? room : SL_MAX_EF;
}
