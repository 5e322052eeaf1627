#include "hnsw/search/allowed.h"

static sl_range clip_range(const sl_allowed *allowed, sl_range range) {
    if (range.end > allowed->n) range.end = allowed->n;
    if (range.first > range.end) range.first = range.end;
    return range;
}

/* Returns the allowed nodes among the 64 of a word that lie in the range. */
static inline uint64_t allowed_bits(const sl_allowed *allowed, size_t word, sl_range range) {
    uint64_t part = sl_allowed_word(allowed, word);
    if (word == range.first / 64) part &= ~(uint64_t)0 << (range.first % 64);
    if (word == range.end / 64) part &= ~(~(uint64_t)0 << (range.end % 64));
    return part;
}

size_t sl_allowed_count(const sl_allowed *allowed, sl_range range) {
    size_t count = 0;
    range = clip_range(allowed, range);
    for (size_t word = range.first / 64; word * 64 < range.end; word++)
        count += (size_t)__builtin_popcountll(allowed_bits(allowed, word, range));
    return count;
}

size_t sl_allowed_list(const sl_allowed *allowed, sl_range *range, uint32_t *nodes, size_t room) {
    const sl_range whole = clip_range(allowed, *range);
    size_t count = 0, word = whole.first / 64;
    for (; word * 64 < whole.end && count + 64 <= room; word++)
        for (uint64_t left = allowed_bits(allowed, word, whole); left; left &= left - 1)
            nodes[count++] = (uint32_t)(word * 64 + (size_t)__builtin_ctzll(left));
    size_t next = word * 64;
    range->first = next < whole.end ? next : range->end;
    return count;
}

/* The range counts places of the list if there is a list, and nodes otherwise. */
sl_range sl_allowed_begin(const sl_allowed *allowed) {
    return (sl_range){0, allowed->nodes ? allowed->node_count : allowed->n};
}

size_t sl_allowed_next(const sl_allowed *allowed, sl_range *range, uint32_t *nodes, size_t room) {
    if (!allowed->nodes) return sl_allowed_list(allowed, range, nodes, room);
    size_t count = 0;
    for (; range->first < range->end && count < room; range->first++) {
        nodes[count] = allowed->nodes[range->first];
        count += (size_t)sl_is_allowed(allowed, nodes[count]);
    }
    return count;
}

sl_status sl_accept_bits_check(const sl_search_params *params) {
    if (!params->accept_bits && params->accept_bits_count)
        return sl_fail(SL_EINVAL, "accept_bits is NULL, accept_bits_count %zu; give the bitmap, or 0",
                       params->accept_bits_count);
    return SL_OK;
}

/* Tests the bitmap first, because it costs less than the callback. */
int sl_accepts_id(const sl_search_params *params, uint64_t id) {
    if (params->accept_bits && (id >= params->accept_bits_count || !(params->accept_bits[id / 64] >> (id % 64) & 1)))
        return 0;
    return !params->accept || params->accept(params->accept_ctx, id) != 0;
}

/* Tests the filter first, because it costs least. */
void sl_pool_drop_refused(const sl_graph *graph, const sl_search_params *params, const sl_allowed *allowed,
                          sl_pool *pool) {
    const int by_id = sl_has_id_filter(params);
    size_t kept = 0;
    /* Prefetches the bits, because a filter of one user is seldom in the cache. */
    for (size_t i = 0; allowed->bits && i < pool->size; i++)
        sl_prefetch(allowed->bits + sl_pool_id(pool->keys[i]) / 64, sizeof *allowed->bits);
    for (size_t i = 0; i < pool->size; i++) {
        uint32_t node = sl_pool_id(pool->keys[i]);
        if (sl_is_allowed(allowed, node) && (!by_id || sl_accepts_id(params, sl_id_of(graph, node))))
            pool->keys[kept++] = pool->keys[i];
    }
    pool->size = kept;
}

int sl_has_enough_allowed(size_t kept, size_t seen, size_t k, size_t wanted) {
    return kept >= wanted || (kept >= k && kept >= seen - seen / 4);
}
