#include "hnsw/search/searcher_pool.h"

#include "hnsw/search/searcher_state.h"

/* SLOTS calls at once find a searcher each; further calls make their own. Searchers for an ef above MOST_EF are not
 * kept: they are large, and making one is little beside their searches. Walks of iterators and among deleted nodes make
 * searchers deeper, and those up to MOST_DEPTH are kept. */
enum { SLOTS = 8, LEAST_EF = 64, MOST_EF = 2048, MOST_DEPTH = 16384 };

struct sl_searcher_pool {
    sl_searcher *slots[SLOTS];
};

sl_status sl_searcher_pool_init(sl_index *index) {
    void *block;
    SL_TRY(sl_mem_alloc(&index->graph.allocator, sizeof(sl_searcher_pool), &block));
    index->searchers = block;
    return SL_OK;
}

void sl_searcher_pool_free(sl_index *index) {
    for (size_t i = 0; index->searchers && i < SLOTS; i++)
        sl_searcher_free(index->searchers->slots[i]);
    sl_mem_free(&index->graph.allocator, index->searchers, sizeof(sl_searcher_pool));
    index->searchers = NULL;
}

/* Returns a power of two, so that a searcher made for a little less serves as well. */
static size_t room_for(size_t max_ef) {
    size_t room = LEAST_EF;
    while (room < max_ef)
        room *= 2;
    return room < SL_MAX_EF ? room : SL_MAX_EF;
}

/* Returns a searcher that is large enough, or NULL. Smaller ones are freed. */
static sl_searcher *find(sl_searcher **slots, size_t max_ef) {
    for (size_t i = 0; i < SLOTS && max_ef <= MOST_EF; i++) {
        if (!__atomic_load_n(&slots[i], __ATOMIC_RELAXED)) continue;
        sl_searcher *searcher = __atomic_exchange_n(&slots[i], NULL, __ATOMIC_ACQ_REL);
        if (searcher && sl_searcher_max_ef(searcher) >= max_ef) return searcher;
        sl_searcher_free(searcher);
    }
    return NULL;
}

sl_status sl_searcher_pool_take(const sl_index *index, size_t max_ef, sl_searcher **out) {
    *out = find(index->searchers->slots, max_ef);
    if (!*out) SL_TRY(sl_searcher_create(index, room_for(max_ef), out));
    sl_searcher_limit_ef(*out, max_ef);
    return SL_OK;
}

static int is_kept(const sl_searcher *searcher) {
    return sl_searcher_max_ef(searcher) <= MOST_EF && sl_searcher_pool_ef(searcher) <= MOST_DEPTH;
}

void sl_searcher_pool_give(const sl_index *index, sl_searcher *searcher) {
    sl_searcher **slots = index->searchers->slots;
    for (size_t i = 0; searcher && i < SLOTS && is_kept(searcher); i++) {
        sl_searcher *none = NULL;
        if (__atomic_compare_exchange_n(&slots[i], &none, searcher, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) return;
    }
    sl_searcher_free(searcher);
}
