#include "base/key_counts.h"
#include "base/params.h"
#include "hnsw/graph/view.h"
#include "hnsw/search/filter.h"
#include "hnsw/search/rerank.h"
#include "hnsw/search/search_params.h"
#include "hnsw/search/searcher_pool.h"

#include <math.h>

struct sl_iterator {
    const sl_index *index;
    sl_allocator allocator;
    sl_searcher *searcher;
    sl_search_params params;
    void *vector; /* a copy of the query's vector */
    size_t query_bytes;
    sl_query query;
    /* The graph of the iterator's last call, with the nodes that there were when the iterator was made. */
    sl_graph view;
    uint64_t as_of;           /* the epoch in which the iterator was made */
    sl_top ranked;            /* results for later pages, best first; k is the room */
    size_t taken;             /* candidates re-ranked so far, including those in `ranked` */
    sl_search_stats reported; /* work reported to the caller */
    /* Used only if ids have several vectors. A seen id has the value GIVEN once a page has had it. Until then it has
     * the number of the last pass over `ranked` that saw it. */
    sl_key_counts ids_seen;
    size_t ids_seen_count, passes, given;
};

#define GIVEN SIZE_MAX

/* A page's last id is expected at a certain depth. The iterator re-ranks to eleven eighths of it, as grouped_search.c
 * does. */
enum { EIGHTHS = 11 };

static sl_status read_iterator_params(const sl_graph *graph, sl_dtype dtype, const sl_search_params *given,
                                      sl_search_params *mine) {
    sl_search_params_init(mine);
    SL_TRY(sl_params_in(mine, sizeof *mine, given, "sl_search_params_init"));
    if (mine->recall != 0)
        return sl_fail(SL_EINVAL, "recall is %g, and an iterator has no k that it was tuned for; give ef",
                       mine->recall);
    if (mine->group_size)
        return sl_fail(SL_EINVAL, "group_size is %zu, and an iterator has no groups; give 0", mine->group_size);
    SL_TRY(sl_one_query_check(mine));
    return sl_search_check(graph, dtype, 1, mine);
}

static sl_status begin_query(sl_iterator *iterator, sl_query query) {
    const sl_index *index = iterator->index;
    void *block;
    SL_TRY(sl_mem_alloc(&iterator->allocator, iterator->query_bytes, &block));
    memcpy(block, query.vector, iterator->query_bytes);
    iterator->vector = block;
    iterator->query = (sl_query){block, query.dtype};
    SL_TRY(sl_searcher_pool_take(index, iterator->params.ef, &iterator->searcher));
    sl_searcher *searcher = iterator->searcher;
    sl_searcher_enter(searcher);
    iterator->view = *searcher->graph;
    iterator->as_of = iterator->view.as_of;
    sl_status status = sl_searcher_prepare(searcher, iterator->query, &iterator->params);
    if (status == SL_OK && iterator->view.n)
        status = sl_searcher_begin_stream(searcher, iterator->query, &iterator->params);
    sl_searcher_exit(searcher);
    sl_searcher_pin(searcher, &iterator->view);
    return status;
}

/* Begins a call. The iterator goes on over the nodes that it began with, wherever their arrays are now. Nodes that were
 * deleted since are left out. Errors: SL_EINVAL: the nodes have
 * other numbers now. */
static sl_status enter_iterator(sl_iterator *iterator) {
    sl_searcher *searcher = iterator->searcher;
    const sl_graph was = iterator->view, *now = sl_version_enter(iterator->index, searcher->reader);
    if (now->numbering != was.numbering) {
        sl_version_exit(iterator->index, searcher->reader);
        return sl_fail(SL_EINVAL, "the index was renumbered after the iterator was made; make another");
    }
    sl_graph *view = &iterator->view;
    *view = *now;
    if (iterator->index->published) sl_view_follow(iterator->index, view);
    if (was.n < view->n) view->n = was.n;
    if (was.upper.count < view->upper.count) view->upper.count = was.upper.count;
    if (was.upper.rows < view->upper.rows) view->upper.rows = was.upper.rows;
    view->entry = was.entry;
    sl_searcher_enter(searcher);
    sl_searcher_choose_copies(searcher);
    return SL_OK;
}

static void exit_iterator(const sl_iterator *iterator) {
    sl_searcher_exit(iterator->searcher);
    sl_version_exit(iterator->index, iterator->searcher->reader);
}

sl_status sl_iterator_create(const sl_index *index, const void *query, sl_dtype dtype, const sl_search_params *params,
                             sl_iterator **out) {
    if (!out) return sl_fail(SL_EINVAL, "out is NULL; give the address of a handle");
    *out = NULL;
    if (!index || !query) return sl_fail(SL_EINVAL, "index or query is NULL");
    sl_search_params mine;
    SL_TRY(read_iterator_params(&index->graph, dtype, params, &mine));
    void *block;
    SL_TRY(sl_mem_alloc(&index->graph.allocator, sizeof(sl_iterator), &block));
    sl_iterator *iterator = block;
    *iterator = (sl_iterator){.index = index,
                              .allocator = index->graph.allocator,
                              .params = mine,
                              .query_bytes = index->graph.codec.dim * sl_dtype_size(dtype)};
    sl_status status = begin_query(iterator, (sl_query){query, dtype});
    if (status != SL_OK) {
        sl_iterator_free(iterator);
        return status;
    }
    *out = iterator;
    return SL_OK;
}

void sl_iterator_free(sl_iterator *iterator) {
    if (!iterator) return;
    sl_allocator allocator = iterator->allocator;
    if (iterator->searcher) {
        sl_candidate_stream_end_query(&iterator->searcher->stream);
        sl_searcher_pin(iterator->searcher, NULL);
    }
    sl_searcher_pool_give(iterator->index, iterator->searcher);
    SL_FREE_ARRAY(&allocator, iterator->ranked.entries, iterator->ranked.k);
    sl_mem_free(&allocator, iterator->ids_seen.keys, sl_key_counts_bytes(iterator->ids_seen.places));
    sl_mem_free(&allocator, iterator->vector, iterator->query_bytes);
    SL_FREE(&allocator, iterator);
}

/* Re-ranks up to `most` candidates of the stream. */
static sl_status rerank_more(sl_iterator *iterator, size_t most) {
    sl_searcher *searcher = iterator->searcher;
    sl_top *ranked = &iterator->ranked;
    if (most > searcher->stream.count) most = searcher->stream.count;
    sl_status status = SL_OK;
    ranked->entries = sl_mem_grow(&iterator->allocator, ranked->entries, &ranked->k, ranked->size + most,
                                  sizeof *ranked->entries, &status);
    SL_TRY(status);
    for (size_t some; most; most -= some) {
        sl_results found;
        some = most < searcher->walk.max_ef ? most : searcher->walk.max_ef;
        iterator->taken += sl_candidate_stream_take(&searcher->stream, &searcher->walk, some);
        sl_rerank_again(searcher, iterator->query.vector, some, some, &found);
        sl_top_merge(ranked, found.nodes, found.count);
    }
    return SL_OK;
}

/* Drops results that were deleted since the walk found them, also if another vector has their place by now. */
static void drop_deleted(sl_iterator *iterator) {
    const sl_allowed allowed = {.graph = &iterator->view,
                                .some_deleted = iterator->view.deleted_count != 0,
                                .by_age = 1,
                                .born_by = iterator->as_of,
                                .n = iterator->view.n};
    sl_top *ranked = &iterator->ranked;
    size_t kept = 0;
    for (size_t i = 0; i < ranked->size; i++)
        if (sl_is_allowed(&allowed, ranked->entries[i].id)) ranked->entries[kept++] = ranked->entries[i];
    ranked->size = kept;
}

/* Makes room for the ids of all results. */
static sl_status reserve_ids(sl_iterator *iterator) {
    const sl_key_counts old = iterator->ids_seen;
    const size_t places = sl_key_counts_places(iterator->ids_seen_count + iterator->ranked.size);
    void *block;
    if (places <= old.places) return SL_OK;
    SL_TRY(sl_mem_alloc_raw(&iterator->allocator, sl_key_counts_bytes(places), &block));
    sl_key_counts_start(&iterator->ids_seen, block, places);
    for (size_t i = 0; i < old.places; i++)
        if (old.counts[i]) *sl_key_counts_of(&iterator->ids_seen, old.keys[i]) = old.counts[i];
    sl_mem_free(&iterator->allocator, old.keys, sl_key_counts_bytes(old.places));
    return SL_OK;
}

/* Keeps only the best vector of each id, and no vector of an id that a page has had. */
static sl_status drop_repeated_ids(sl_iterator *iterator) {
    const sl_graph *graph = iterator->searcher->graph;
    sl_top *ranked = &iterator->ranked;
    size_t kept = 0;
    if (!sl_ids_repeat(graph)) return SL_OK;
    SL_TRY(reserve_ids(iterator));
    iterator->passes++;
    for (size_t i = 0; i < ranked->size; i++) {
        size_t *seen = sl_key_counts_of(&iterator->ids_seen, sl_id_of(graph, (uint32_t)ranked->entries[i].id));
        if (*seen == GIVEN || *seen == iterator->passes) continue;
        iterator->ids_seen_count += *seen == 0;
        *seen = iterator->passes;
        ranked->entries[kept++] = ranked->entries[i];
    }
    ranked->size = kept;
    return SL_OK;
}

/* Settles and re-ranks as many candidates as a search for all results so far and k more. *found: whether that gave new
 * candidates. */
static sl_status search_further(sl_iterator *iterator, size_t k, int *found) {
    sl_searcher *searcher = iterator->searcher;
    const sl_search_params *params = &iterator->params;
    const size_t before = iterator->taken, total = before - iterator->ranked.size + k;
    size_t ef = params->ef > total ? params->ef : total;
    size_t wanted = sl_rerank_count(searcher->graph, total, params);
    if (wanted > ef) wanted = ef;
    SL_TRY(sl_candidate_stream_settle(&searcher->stream, &searcher->walk, ef > before ? ef - before : 0));
    SL_TRY(rerank_more(iterator, wanted > before ? wanted - before : 0));
    *found = iterator->taken > before;
    return SL_OK;
}

/* If ids have several vectors, re-ranks more candidates until the ids of a page are sure. */
static sl_status make_page_sure(sl_iterator *iterator, size_t k) {
    sl_searcher *searcher = iterator->searcher;
    if (!iterator->ids_seen_count) return SL_OK;
    const double ids = (double)(iterator->given + k) / (double)iterator->ids_seen_count,
                 taken = (double)iterator->taken;
    const size_t sure = (size_t)(taken * ids * EIGHTHS / 8);
    if (sure <= iterator->taken) return SL_OK;
    SL_TRY(sl_candidate_stream_settle(&searcher->stream, &searcher->walk, sure - iterator->taken));
    SL_TRY(rerank_more(iterator, sure - iterator->taken));
    drop_deleted(iterator);
    return drop_repeated_ids(iterator);
}

/* Prepares a page's results. After a failure no result is lost. */
static sl_status prepare_page(sl_iterator *iterator, size_t k) {
    const sl_searcher *searcher = iterator->searcher;
    sl_walk *walk = &iterator->searcher->walk;
    int found = 1;
    if (iterator->params.filter) SL_TRY(sl_filter_check(iterator->params.filter, searcher->index, searcher->graph));
    drop_deleted(iterator);
    if (iterator->params.max_visits) walk->max_evaluations = walk->evaluations + iterator->params.max_visits;
    do {
        SL_TRY(search_further(iterator, k, &found));
        drop_deleted(iterator);
        SL_TRY(drop_repeated_ids(iterator));
    } while (found && iterator->ranked.size < k);
    return make_page_sure(iterator, k);
}

/* Moves up to k results into a page, and fills up with SL_NO_ID and NaN. Returns the number of results. */
static size_t fill_page(sl_iterator *iterator, size_t k, uint64_t *ids, float *scores) {
    const sl_graph *graph = iterator->searcher->graph;
    sl_top *ranked = &iterator->ranked;
    size_t got = k < ranked->size ? k : ranked->size;
    for (size_t i = 0; i < k; i++) {
        ids[i] = i < got ? sl_id_of(graph, (uint32_t)ranked->entries[i].id) : SL_NO_ID;
        if (i < got && iterator->ids_seen_count) *sl_key_counts_of(&iterator->ids_seen, ids[i]) = GIVEN;
        if (scores) scores[i] = i < got ? sl_public_score(graph, ranked->entries[i].score) : NAN;
    }
    iterator->given += got;
    ranked->size -= got;
    if (ranked->size) memmove(ranked->entries, ranked->entries + got, ranked->size * sizeof *ranked->entries);
    return got;
}

/* Reports the work since the last page. */
static void report_work(sl_iterator *iterator, size_t k, size_t got, sl_search_stats *stats) {
    sl_search_stats sum = {0};
    sl_results_add_work(iterator->searcher, &sum);
    *stats = sum;
    stats->results = got;
    stats->cut = got < k && iterator->searcher->stream.end == SL_STREAM_OVER_BUDGET;
    stats->evaluations -= iterator->reported.evaluations;
    stats->expansions -= iterator->reported.expansions;
    iterator->reported = sum;
}

sl_status sl_iterator_next(sl_iterator *iterator, size_t k, uint64_t *ids, float *scores, size_t *got,
                           sl_search_stats *stats) {
    if (!iterator || !ids) return sl_fail(SL_EINVAL, "iterator or ids is NULL");
    if (k == 0 || k > SL_MAX_EF) return sl_fail(SL_EINVAL, "k is %zu; give 1 to %u", k, SL_MAX_EF);
    SL_TRY(enter_iterator(iterator));
    sl_status status = iterator->view.n ? prepare_page(iterator, k) : SL_OK;
    if (status == SL_OK) {
        size_t page = fill_page(iterator, k, ids, scores);
        if (got) *got = page;
        if (stats) report_work(iterator, k, page, stats);
    }
    exit_iterator(iterator);
    return status;
}
