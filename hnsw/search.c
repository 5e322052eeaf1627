#include "hnsw/search.h"

#include "base/params.h"
#include "hnsw/accept.h"
#include "hnsw/gather.h"
#include "hnsw/idle.h"
#include "hnsw/live.h"
#include "hnsw/probe.h"
#include "hnsw/replicas.h"
#include "hnsw/scan.h"
#include "hnsw/settings.h"
#include "hnsw/start.h"
#include "hnsw/tier.h"

#include <math.h>

enum { BLOCK = 256 };

struct sl_searcher {
    const sl_index *of; /* the handle it was made of */
    const sl_index *index;
    sl_index *view; /* of an index that follows a file: what `index` is, as it was when the last search began */
    sl_walk walk;
    size_t deepest;   /* how far a search with a filter goes: max_ef, or less of one that is lent to several */
    sl_top top;       /* max_ef entries */
    float *candidate; /* a vector brought back from its row, to be scored */
    void *scratch;    /* of a batch that scans */
    size_t scratch_size;
    void *start_scratch; /* of where a walk begins, which one of a batch that scans may make */
    size_t start_scratch_size;
};

void sl_search_params_init_sized(sl_search_params *params, size_t struct_size) {
    const sl_search_params mine = {.struct_size = sizeof mine, .ef = 64, .threads = 1};
    sl_params_defaults(params, struct_size, &mine, sizeof mine);
}

/* A larger block in place of a smaller one, if that is wanted, and of what it holds. */
static sl_status renew(const sl_searcher *searcher, size_t size, void **block, size_t *has) {
    const sl_allocator *allocator = &searcher->index->allocator;
    if (size <= *has) return SL_OK;
    sl_mem_free(allocator, *block, *has);
    *block = NULL;
    *has = 0;
    SL_TRY(sl_mem_alloc(allocator, size, block));
    *has = size;
    return SL_OK;
}

/* Once more where the index has come to have partitions since. */
static sl_status start_scratch(sl_searcher *searcher) {
    size_t size = sl_start_scratch(searcher->index);
    return renew(searcher, size, &searcher->start_scratch, &searcher->start_scratch_size);
}

sl_status sl_searcher_create(const sl_index *index, size_t max_ef, sl_searcher **out) {
    if (!out) return sl_fail(SL_EINVAL, "out is NULL; give the address of a handle");
    *out = NULL;
    if (!index) return sl_fail(SL_EINVAL, "index is NULL");
    if (max_ef == 0 || max_ef > SL_MAX_EF) return sl_fail(SL_EINVAL, "max_ef is %zu; give 1 to %u", max_ef, SL_MAX_EF);
    void *block;
    SL_TRY(sl_mem_alloc(&index->allocator, sizeof(sl_searcher), &block));
    sl_searcher *searcher = block;
    searcher->of = searcher->index = index;
    searcher->deepest = max_ef;
    sl_status status;
    if (index->facts) {
        SL_TRY_GOTO(sl_mem_alloc(&index->allocator, sizeof *searcher->view, &block), fail);
        searcher->view = block;
        searcher->index = index = sl_live_seen(index, searcher->view);
    }
    SL_TRY_GOTO(sl_walk_init(&searcher->walk, index, max_ef), fail);
    SL_TRY_GOTO(sl_mem_alloc(&index->allocator, max_ef * sizeof(sl_top_entry), &block), fail);
    searcher->top.entries = block;
    SL_TRY_GOTO(sl_mem_alloc(&index->allocator, index->codec.dim * sizeof(float), &block), fail);
    searcher->candidate = block;
    uint8_t *scratch;
    if (index->partitions.count) {
        SL_TRY_GOTO(sl_searcher_scratch(searcher, sl_probe_scratch(index), &scratch), fail);
        SL_TRY_GOTO(start_scratch(searcher), fail);
    }
    sl_replicas_make(index);
    *out = searcher;
    return SL_OK;
fail:
    sl_searcher_free(searcher);
    return status;
}

void sl_searcher_free(sl_searcher *searcher) {
    if (!searcher) return;
    sl_allocator allocator = searcher->index->allocator;
    sl_mem_free(&allocator, searcher->top.entries, searcher->walk.max_ef * sizeof(sl_top_entry));
    sl_mem_free(&allocator, searcher->candidate, searcher->index->codec.dim * sizeof(float));
    sl_mem_free(&allocator, searcher->scratch, searcher->scratch_size);
    sl_mem_free(&allocator, searcher->start_scratch, searcher->start_scratch_size);
    sl_walk_free(&searcher->walk);
    sl_mem_free(&allocator, searcher->view, sizeof *searcher->view);
    sl_mem_free(&allocator, searcher, sizeof *searcher);
}

void sl_searcher_limit(sl_searcher *searcher, size_t deepest) {
    searcher->deepest = deepest;
}

size_t sl_searcher_room(const sl_searcher *searcher) {
    return searcher->walk.max_ef;
}

size_t sl_searcher_depth(const sl_searcher *searcher) {
    return searcher->walk.depth;
}

/* How many of the pool's best are scored anew. Codes of 8 bits, or 4, put few true neighbours further behind than
 * this; of a projection in 4 bits, more. */
size_t sl_rerank_count(const sl_index *index, size_t k, const sl_search_params *params) {
    size_t own = index->coarse_rows ? 3 * k + 10 : k + k / 2 + 10;
    size_t wanted = params->rerank ? params->rerank : own;
    return wanted < k ? k : wanted;
}

/* A float row against the query, larger being nearer. */
static double refined(const sl_searcher *searcher, sl_refine type, const void *row, float scale) {
    const sl_index *index = searcher->index;
    const sl_refine_kernels *kernels = &index->kernels->refine[type];
    const float *query = searcher->walk.floats;
    size_t dim = index->codec.dim;
    if (index->codec.metric == SL_METRIC_IP) return (double)kernels->dot(row, query, dim, scale);
    if (index->codec.metric == SL_METRIC_L2) return -(double)kernels->l2(row, query, dim, scale);
    float norm2;
    float dot = kernels->dot_norm(row, query, dim, scale, &norm2);
    return (double)dot / sqrt((double)norm2 * (double)searcher->walk.query_norm2);
}

static double rescored(const sl_searcher *searcher, uint32_t node, const void *query) {
    const sl_index *index = searcher->index;
    if (index->refine == SL_REFINE_BF16) {
        sl_refined_floats(index, node, searcher->candidate);
        return refined(searcher, SL_REFINE_F32, searcher->candidate, 1);
    }
    if (index->refine_pitch) {
        const uint8_t *row = sl_refine_row(index, node);
        return refined(searcher, index->refine, row, sl_refine_scale(index, row));
    }
    if (index->codec.codes == SL_CODES_F32) return refined(searcher, SL_REFINE_F32, sl_row(index, node), 1);
    sl_decode_native(&index->codec, sl_row(index, node), searcher->candidate);
    double score = sl_score_pair(index->kernels, index->codec.metric, index->codec.dtype, searcher->candidate, query,
                                 index->codec.dim);
    return index->codec.metric == SL_METRIC_L2 ? -score : score;
}

/* A score of the codes as results have it: under L2 the distance below zero, which rounding must not turn above. What
 * is no number, as of a damaged row, stays so. */
static double result_score(const sl_searcher *searcher, float score) {
    if (searcher->index->codec.metric != SL_METRIC_L2) return (double)score;
    double below = 2 * (double)score - (double)searcher->walk.query_norm2;
    return below > 0 ? 0 : below;
}

/* Of I4 codes the walk saw 4 bits; what lies beside them, or what they are a short form of, orders the best of what it
 * found. */
static void rank_by_all_bits(sl_searcher *searcher, size_t count) {
    const sl_index *index = searcher->index;
    const sl_codec *codec = sl_walk_codec(&searcher->walk);
    const sl_pool *pool = &searcher->walk.pool;
    uint32_t nodes[BLOCK];
    float scores[BLOCK];
    const sl_code_rows *finer = codec->rest.pitch ? &codec->rest : &codec->rows;
    for (size_t i = 0; i < count; i++)
        sl_prefetch(finer->base + (size_t)sl_pool_id(pool->keys[i]) * finer->pitch, finer->size);
    for (size_t done = 0, some; done < count; done += some) {
        some = count - done < BLOCK ? count - done : BLOCK;
        for (size_t i = 0; i < some; i++) {
            nodes[i] = sl_pool_id(pool->keys[done + i]);
            sl_id_prefetch(index, nodes[i]);
        }
        sl_score4(index->kernels, codec, &searcher->walk.query4, nodes, some, scores);
        for (size_t i = 0; i < some; i++)
            sl_top_push(&searcher->top, result_score(searcher, scores[i]), nodes[i]);
    }
}

/* By finer data or in exact integers. */
static void rank_one_by_one(sl_searcher *searcher, const void *query, size_t count) {
    const sl_index *index = searcher->index;
    const sl_pool *pool = &searcher->walk.pool;
    for (size_t i = 0; i < count && index->refine_pitch; i++)
        sl_refine_prefetch(index, sl_pool_id(pool->keys[i]));
    for (size_t i = 0; i < count && index->coarse_rows && !index->refine_pitch; i++)
        sl_prefetch(sl_row(index, sl_pool_id(pool->keys[i])), index->codec.rows.size);
    for (size_t i = 0; i < count; i++) {
        uint32_t node = sl_pool_id(pool->keys[i]);
        sl_top_push(&searcher->top, rescored(searcher, node, query), node);
    }
}

/* By the scores of the walk, which was over all there is. */
static void rank_as_walked(sl_searcher *searcher, size_t k) {
    const sl_pool *pool = &searcher->walk.pool;
    sl_top *top = &searcher->top;
    for (size_t i = 0; i < pool->size && i < k; i++) {
        double score = result_score(searcher, sl_pool_score(pool->keys[i]));
        top->entries[top->size++] = (sl_top_entry){score, sl_pool_id(pool->keys[i])};
    }
}

/* The pool's best as results, scored anew where the index has more of them than the walk saw. Only where not all in the
 * pool are scored anew does their order matter. */
static void rank(sl_searcher *searcher, const void *query, size_t k, const sl_search_params *params) {
    const sl_index *index = searcher->index;
    sl_pool *pool = &searcher->walk.pool;
    int singly = index->refine_pitch || index->codec.codes == SL_CODES_F32 || index->codec.dtype != SL_F32;
    int anew = singly || index->codes == SL_CODES_I4;
    size_t count = sl_rerank_count(index, k, params);
    if (!anew || count < pool->size) sl_pool_sort(pool);
    if (count > pool->size) count = pool->size;
    searcher->top.size = 0;
    searcher->top.k = k;
    if (singly)
        rank_one_by_one(searcher, query, count);
    else if (anew)
        rank_by_all_bits(searcher, count);
    else
        rank_as_walked(searcher, k);
    if (anew) sl_top_sort(&searcher->top);
}

static void write_results(const sl_searcher *searcher, size_t k, int nodes, uint64_t *ids, float *scores) {
    const sl_index *index = searcher->index;
    const sl_top *top = &searcher->top;
    for (size_t i = 0; i < k; i++) {
        int found = i < top->size;
        uint64_t node = found ? top->entries[i].id : SL_NO_ID;
        ids[i] = found && !nodes ? sl_id_of(index, (uint32_t)node) : node;
        if (!scores) continue;
        scores[i] = found ? sl_score_of(index, top->entries[i].score) : NAN;
    }
}

static sl_status check_search(const sl_index *index, sl_dtype dtype, size_t k, const sl_search_params *params) {
    if (k == 0 || k > SL_MAX_EF) return sl_fail(SL_EINVAL, "k is %zu; give 1 to %u", k, SL_MAX_EF);
    if (params->ef == 0 || params->ef > SL_MAX_EF)
        return sl_fail(SL_EINVAL, "ef is %zu; give 1 to %u", params->ef, SL_MAX_EF);
    if (!(params->stop >= 0)) return sl_fail(SL_EINVAL, "stop is %g; give 0 for none, or more", params->stop);
    SL_TRY(sl_accept_check(params));
    return sl_codec_accepts(&index->codec, dtype);
}

/* Once a search, so that it reads one and the same memory to its end. */
static void take_copies(sl_walk *walk) {
    const sl_index *index = walk->index;
    const sl_tier_copy *tier = sl_tier_now(index);
    walk->upper = sl_upper_here(index);
    if (tier && walk->upper == &index->upper) walk->upper = &tier->upper;
    walk->walked = tier ? &tier->walked : index->walked;
}

static sl_status probe(sl_searcher *searcher, const void *query, sl_dtype dtype, size_t k,
                       const sl_search_params *params) {
    sl_walk *walk = &searcher->walk;
    size_t keep = sl_rerank_count(walk->index, k, params);
    uint8_t *scratch;
    if (keep > SL_MAX_EF) keep = SL_MAX_EF;
    SL_TRY(sl_searcher_scratch(searcher, sl_probe_scratch(walk->index), &scratch));
    SL_TRY(sl_walk_deepen(walk, keep));
    sl_probe(walk, query, dtype, params, keep, scratch);
    return SL_OK;
}

/* The index as it is now: what it holds by its file, and what it is tuned for by the handle. */
static void look_anew(sl_searcher *searcher) {
    if (!searcher->view) return;
    searcher->view->tuned = searcher->of->tuned;
    searcher->view->tuned_count = searcher->of->tuned_count;
    sl_live_follow(searcher->view);
}

/* Of the index as it was looked at last. */
static sl_status run(sl_searcher *searcher, const void *query, sl_dtype dtype, size_t k,
                     const sl_search_params *params) {
    const sl_index *index = searcher->index;
    sl_walk *walk = &searcher->walk;
    SL_TRY(sl_vector_check(index->codec.metric, dtype, query, index->codec.dim));
    /* Once after the index has grown; from then on a search allocates nothing. */
    SL_TRY(sl_visited_cover(&walk->visited, &index->allocator, index->n));
    take_copies(walk);
    walk->evaluations = walk->expansions = 0;
    walk->pool.size = 0;
    if (index->n) {
        sl_walk_ask(walk, query, dtype, SL_ASK_BOTH);
        int scans = sl_scan_serves(index, params);
        if (scans) SL_TRY(probe(searcher, query, dtype, k, params));
        /* Where much is deleted a scan may find too little. */
        if (!scans || (walk->pool.size < k && index->dead_count)) {
            SL_TRY(start_scratch(searcher));
            sl_range near = sl_start_near(walk, query, dtype, searcher->start_scratch);
            sl_gather(walk, k, params, sl_rerank_count(index, k, params), searcher->deepest, near);
        }
    }
    rank(searcher, query, k, params);
    return SL_OK;
}

sl_status sl_searcher_run(sl_searcher *searcher, const void *query, sl_dtype dtype, size_t k,
                          const sl_search_params *params) {
    look_anew(searcher);
    return run(searcher, query, dtype, k, params);
}

void sl_searcher_ask(sl_searcher *searcher, const void *query, sl_dtype dtype) {
    sl_walk_ask(&searcher->walk, query, dtype, SL_ASK_WALK);
}

const sl_query_code *sl_searcher_query(const sl_searcher *searcher) {
    return &searcher->walk.query;
}

void sl_searcher_rank(sl_searcher *searcher, const void *query, sl_dtype dtype, size_t k,
                      const sl_search_params *params, const sl_scan *found) {
    take_copies(&searcher->walk);
    sl_walk_ask(&searcher->walk, query, dtype, SL_ASK_RANK);
    sl_pool_fill(&searcher->walk.pool, found->scores, found->ids, found->count);
    rank(searcher, query, k, params);
}

sl_status sl_searcher_scratch(sl_searcher *searcher, size_t size, uint8_t **out) {
    SL_TRY(renew(searcher, size, &searcher->scratch, &searcher->scratch_size));
    *out = searcher->scratch;
    return SL_OK;
}

size_t sl_searcher_results(const sl_searcher *searcher) {
    return searcher->top.size;
}

void sl_searcher_count(const sl_searcher *searcher, sl_search_stats *stats) {
    stats->evaluations += searcher->walk.evaluations;
    stats->expansions += searcher->walk.expansions;
}

static void add_stats(const sl_searcher *searcher, sl_search_stats *stats) {
    stats->results += searcher->top.size;
    sl_searcher_count(searcher, stats);
}

static size_t threads_for(size_t nq, const sl_search_params *params) {
    size_t threads = nq > 1 ? sl_thread_count(params->threads) : 1;
    return threads < nq ? threads : nq > 1 ? nq : 1;
}

/* As they are to be used, also where a recall was asked for, of searches for nq queries. */
static sl_status read_params(const sl_index *index, size_t nq, size_t k, const sl_search_params *given,
                             sl_search_params *mine) {
    sl_search_params_init(mine);
    SL_TRY(sl_params_in(mine, sizeof *mine, given, "sl_search_params_init"));
    if (mine->recall == 0) return SL_OK;
    return sl_settings_apply(index, k, nq / threads_for(nq, mine), mine);
}

sl_status sl_searcher_find(sl_searcher *searcher, const void *query, sl_dtype dtype, size_t k,
                           const sl_search_params *params, sl_found *found, sl_search_stats *stats) {
    sl_search_params mine;
    look_anew(searcher);
    SL_TRY(read_params(searcher->index, 1, k, params, &mine));
    SL_TRY(check_search(searcher->index, dtype, k, &mine));
    if (k > searcher->walk.max_ef || mine.ef > searcher->walk.max_ef)
        return sl_fail(SL_EINVAL, "k %zu and ef %zu%s; this searcher was made for %zu: create a larger one", k, mine.ef,
                       mine.recall > 0 ? ", tuned for this recall" : "", searcher->walk.max_ef);
    SL_TRY(run(searcher, query, dtype, k, &mine));
    *found = (sl_found){searcher->top.entries, searcher->top.size};
    if (stats) {
        *stats = (sl_search_stats){0};
        add_stats(searcher, stats);
    }
    return SL_OK;
}

void sl_searcher_rerank(sl_searcher *searcher, const void *query, size_t k, size_t rerank, sl_found *found) {
    rank(searcher, query, k, &(sl_search_params){.rerank = rerank});
    *found = (sl_found){searcher->top.entries, searcher->top.size};
}

sl_status sl_searcher_search(sl_searcher *searcher, const void *query, sl_dtype dtype, size_t k,
                             const sl_search_params *params, uint64_t *ids, float *scores, sl_search_stats *stats) {
    if (!searcher || !query || !ids) return sl_fail(SL_EINVAL, "searcher, query or ids is NULL");
    sl_found found;
    SL_TRY(sl_searcher_find(searcher, query, dtype, k, params, &found, stats));
    write_results(searcher, k, 0, ids, scores);
    return SL_OK;
}

void sl_batch_write(const sl_batch *batch, const sl_searcher *searcher, size_t i) {
    const size_t k = batch->k;
    write_results(searcher, k, batch->nodes, batch->ids + i * k, batch->scores ? batch->scores + i * k : NULL);
}

static sl_status batch_row(sl_batch *batch, size_t i, size_t thread) {
    sl_searcher *searcher = batch->searchers[thread];
    SL_TRY(sl_searcher_run(searcher, sl_batch_query(batch, i), batch->dtype, batch->k, batch->params));
    sl_batch_write(batch, searcher, i);
    return SL_OK;
}

/* Row i on one of the threads. What fails is the query itself, or there is no memory for what an index that has grown
 * needs; bad is the first that did. */
static void batch_step(sl_batch *batch, size_t i, size_t thread, sl_search_stats *sum, size_t *bad) {
    if (sl_progress_cancelled(&batch->progress)) return;
    if (batch_row(batch, i, thread) == SL_OK)
        add_stats(batch->searchers[thread], sum);
    else if (i < *bad)
        *bad = i;
    sl_progress_step(&batch->progress, 1);
}

static void batch_team(sl_batch *batch, sl_search_stats *sum, size_t *bad) {
    size_t first = SIZE_MAX;
#pragma omp parallel num_threads((int)batch->threads) reduction(min : first)
    {
        size_t thread = sl_thread_number();
        sl_search_stats mine = {0};
        sl_numa_pin pin;
        sl_numa_pin_thread(batch->index->numa, thread, batch->threads, &pin);
#pragma omp for schedule(dynamic, 4)
        for (size_t i = 0; i < batch->nq; i++)
            batch_step(batch, i, thread, &mine, &first);
        sl_numa_unpin_thread(batch->index->numa, &pin);
#pragma omp critical(sl_batch_stats)
        {
            sum->results += mine.results;
            sum->evaluations += mine.evaluations;
            sum->expansions += mine.expansions;
        }
    }
    *bad = first;
}

/* Partitions instead of walks, once every query has been looked at. */
static sl_status batch_scan(sl_batch *batch, sl_search_stats *stats) {
    const sl_codec *codec = &batch->index->codec;
    for (size_t i = 0; i < batch->nq; i++) {
        sl_status status = sl_vector_check(codec->metric, batch->dtype, sl_batch_query(batch, i), codec->dim);
        if (status != SL_OK) return sl_fail_in(status, "query %zu", i);
    }
    sl_search_stats sum = {0};
    SL_TRY(sl_scan_run(batch, &sum));
    SL_TRY(sl_progress_end(&batch->progress));
    if (stats) *stats = sum;
    return SL_OK;
}

static sl_status batch_run(sl_batch *batch, sl_search_stats *stats) {
    size_t bad = SIZE_MAX;
    sl_search_stats sum = {0};
    /* Entering a parallel region takes as long as a good part of a short search, also with one thread. */
    if (batch->threads > 1)
        batch_team(batch, &sum, &bad);
    else
        for (size_t i = 0; i < batch->nq; i++)
            batch_step(batch, i, 0, &sum, &bad);
    /* Once more, since the message of another thread is not seen on the one that called. */
    if (bad != SIZE_MAX) {
        sl_status status = batch_row(batch, bad, 0);
        if (status == SL_OK) return sl_fail(SL_ENOMEM, "memory ran out meanwhile; search again");
        return sl_fail_in(status, "query %zu", bad);
    }
    SL_TRY(sl_progress_end(&batch->progress));
    if (stats) *stats = sum;
    return SL_OK;
}

sl_status sl_index_search(const sl_index *index, const void *queries, sl_dtype dtype, size_t nq, size_t stride,
                          size_t k, const sl_search_params *params, uint64_t *ids, float *scores,
                          sl_search_stats *stats) {
    if (!index) return sl_fail(SL_EINVAL, "index is NULL");
    sl_search_params mine;
    sl_index view;
    const sl_index *seen = sl_live_seen(index, &view);
    SL_TRY(read_params(seen, nq, k, params, &mine));
    SL_TRY(check_search(index, dtype, k, &mine));
    if (stats) *stats = (sl_search_stats){0};
    if (nq == 0) return SL_OK;
    if (!queries || !ids) return sl_fail(SL_EINVAL, "queries or ids is NULL");
    SL_TRY(sl_check_stride(queries, dtype, index->codec.dim, stride));
    sl_batch batch = {.index = seen,
                      .threads = threads_for(nq, &mine),
                      .queries = queries,
                      .dtype = dtype,
                      .nq = nq,
                      .stride = stride ? stride : index->codec.dim * sl_dtype_size(dtype),
                      .k = k,
                      .params = &mine,
                      .ids = ids,
                      .scores = scores};
    sl_progress_start(&batch.progress, mine.progress, mine.progress_ctx, nq);
    sl_replicas_make(index);
    sl_searcher *alone = NULL;
    void *several = NULL;
    if (batch.threads > 1) SL_TRY(sl_mem_alloc(&index->allocator, batch.threads * sizeof *batch.searchers, &several));
    batch.searchers = several ? several : &alone;
    sl_status status = SL_OK;
    int scans = nq / batch.threads >= SL_SCAN_FEW && sl_scan_serves(batch.index, &mine);
    size_t room = scans ? sl_rerank_count(index, k, &mine) : sl_accept_room(&mine, k);
    if (room > SL_MAX_EF) room = SL_MAX_EF;
    for (size_t t = 0; t < batch.threads && status == SL_OK; t++)
        status = sl_idle_take(index, room, &batch.searchers[t]);
    if (status == SL_OK) status = scans ? batch_scan(&batch, stats) : batch_run(&batch, stats);
    for (size_t t = 0; t < batch.threads; t++)
        sl_idle_give(index, batch.searchers[t]);
    sl_mem_free(&index->allocator, several, batch.threads * sizeof *batch.searchers);
    return status;
}
