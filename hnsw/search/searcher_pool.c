#include "hnsw/search/searcher_pool.h"

#include "hnsw/search/searcher_state.h"

/* The pool serves SLOTS calls at the same time; further calls make their own searchers. The pool keeps no searcher with
 * a max_ef above MOST_EF: it's large, and its searches take longer than making it. Iterators, and walks among
 * tombstones, enlarge a searcher's candidate pool. Searchers whose candidate pool is larger than MOST_POOL_EF are not
 * kept. */
enum { SLOTS = 8, LEAST_EF = 64, MOST_EF = 2048, MOST_POOL_EF = 16384 };

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

/* Rounds up to a power of two, so that one searcher fits several values of max_ef. */
static size_t rounded_max_ef(size_t max_ef) {
    size_t rounded = LEAST_EF;
    while (rounded < max_ef)
        rounded *= 2;
    return rounded < SL_MAX_EF ? rounded : SL_MAX_EF;
}

/* Takes a searcher that is large enough, or returns NULL. Frees the smaller searchers that it finds first. */
static sl_searcher *take_slot(sl_searcher **slots, size_t max_ef) {
    for (size_t i = 0; i < SLOTS && max_ef <= MOST_EF; i++) {
        if (!__atomic_load_n(&slots[i], __ATOMIC_RELAXED)) continue;
        sl_searcher *searcher = __atomic_exchange_n(&slots[i], NULL, __ATOMIC_ACQ_REL);
        if (searcher && sl_searcher_max_ef(searcher) >= max_ef) return searcher;
        sl_searcher_free(searcher);
    }
    return NULL;
}

sl_status sl_searcher_pool_take(const sl_index *index, size_t max_ef, sl_searcher **out) {
    *out = take_slot(index->searchers->slots, max_ef);
    if (!*out) SL_TRY(sl_searcher_create(index, rounded_max_ef(max_ef), out));
    sl_searcher_limit_ef(*out, max_ef);
    return SL_OK;
}

static int is_kept(const sl_searcher *searcher) {
    return sl_searcher_max_ef(searcher) <= MOST_EF && sl_searcher_pool_ef(searcher) <= MOST_POOL_EF;
}

void sl_searcher_pool_give(const sl_index *index, sl_searcher *searcher) {
    sl_searcher **slots = index->searchers->slots;
    for (size_t i = 0; searcher && i < SLOTS && is_kept(searcher); i++) {
        sl_searcher *none = NULL;
        if (__atomic_compare_exchange_n(&slots[i], &none, searcher, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) return;
    }
    sl_searcher_free(searcher);
}
