/* Query batches that scan partitions find what walks over everything find, however the batch is cut and on every tier.
 * Also tests what scans leave to walks, and partitions of damaged files. */
#include "base/random.h"
#include "hnsw/construct/reach.h"
#include "hnsw/graph/index.h"
#include "hnsw/graph/partition.h"
#include "hnsw/search/searcher_pool.h"
#include "hnsw/search/settings.h"
#include "tests/support/check_main.h"
#include "tests/support/clusters.h"
#include "tests/support/faults.h"
#include "tests/support/indexes.h"
#include "tests/support/sanitized.h"
#include "tests/support/scratch.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 4300, LATER = 60, ALL = N + LATER, QUERIES = 150, MOST_QUERIES = 2500, K = 10, DIM = 48 };

static sl_search_params params_of(size_t probes, size_t threads) {
    sl_search_params params;
    sl_search_params_init(&params);
    params.probes = probes;
    params.threads = threads;
    return params;
}

typedef struct answers {
    size_t nq, k;
    uint64_t *ids;
    float *scores;
    sl_search_stats stats;
} answers;

static answers answers_new(size_t nq, size_t k) {
    answers a = {.nq = nq, .k = k, .ids = malloc(nq * k * sizeof *a.ids), .scores = malloc(nq * k * sizeof *a.scores)};
    ck_assert(a.ids && a.scores);
    return a;
}

static void answers_free(answers *a) {
    free(a->ids);
    free(a->scores);
}

static answers ask(const sl_index *index, const void *queries, sl_dtype dtype, size_t nq, size_t k,
                   const sl_search_params *params) {
    answers a = answers_new(nq, k);
    ck_ok(sl_index_search(index, queries, dtype, nq, 0, k, params, a.ids, a.scores, &a.stats));
    return a;
}

/* Checks that a batch scanned and read no links. `rows`: rows that each query scored; 0: unknown. */
static void check_scanned(const sl_index *index, const answers *a, size_t rows) {
    ck_assert_uint_eq(a->stats.expansions, 0);
    ck_assert_uint_gt(a->stats.evaluations, 0);
    if (rows) ck_assert_uint_eq(a->stats.evaluations, a->nq * (rows + index->graph.partitions.count));
}

static void check_same(const answers *a, const answers *b) {
    ck_assert_mem_eq(a->ids, b->ids, a->nq * a->k * sizeof *a->ids);
    ck_assert_mem_eq(a->scores, b->scores, a->nq * a->k * sizeof *a->scores);
}

static double recall_of(const answers *a, const answers *truth) {
    return indexes_recall(a->ids, truth->ids, a->nq, a->k);
}

/* ---------------------------------------------------------------------------------------------------------------
 * Every kind of codes
 * ------------------------------------------------------------------------------------------------------------- */

static const struct kind {
    sl_dtype dtype;
    sl_codes codes;
    sl_refine refine;
    size_t dim;
} kinds[] = {
    {SL_F32, SL_CODES_I8, SL_REFINE_NONE, 64},  {SL_F32, SL_CODES_I8, SL_REFINE_F32, 100},
    {SL_BF16, SL_CODES_I8, SL_REFINE_BF16, 33}, {SL_F32, SL_CODES_I4, SL_REFINE_NONE, 64},
    {SL_F32, SL_CODES_I4, SL_REFINE_I16, 100},  {SL_F32, SL_CODES_I4, SL_REFINE_NONE, 200},
    {SL_F32, SL_CODES_I4, SL_REFINE_F32, 384},  {SL_U8, SL_CODES_I8, SL_REFINE_NONE, 100},
    {SL_I8, SL_CODES_I8, SL_REFINE_NONE, 65},   {SL_U8, SL_CODES_I4, SL_REFINE_NONE, 128},
    {SL_I8, SL_CODES_I4, SL_REFINE_NONE, 40},
};
#define KINDS (sizeof kinds / sizeof *kinds)

/* N vectors in partitions, LATER in none; the queries follow. */
static sl_index *make_kind(const struct kind *kind, sl_metric metric, unsigned char **rows) {
    sl_index_params params;
    indexes_params(&params, kind->dim, metric);
    params.dtype = kind->dtype;
    params.codes = kind->codes;
    params.refine = kind->refine;
    params.ef_construction = 24;
    float *x = clusters_make(ALL + QUERIES, kind->dim, 0.3, 77);
    *rows = clusters_as(kind->dtype, x, (ALL + QUERIES) * kind->dim);
    free(x);
    sl_index *index = indexes_make(&params, *rows, kind->dtype, N, NULL, 2);
    ck_ok(indexes_add(index, *rows + N * kind->dim * sl_dtype_size(kind->dtype), kind->dtype, LATER, NULL));
    /* Walks are to see all of it. */
    ck_ok(sl_reach_settle(index));
    ck_assert_uint_gt(index->graph.partitions.count, 8);
    ck_assert_uint_eq(index->graph.partitions.starts[index->graph.partitions.count], N);
    return index;
}

/* Share of places with equal scores: of candidates that score alike, either may be the last one re-ranked. */
static double share_alike(const answers *a, const answers *b) {
    size_t alike = 0;
    for (size_t i = 0; i < a->nq * a->k; i++)
        alike += a->scores[i] == b->scores[i];
    return (double)alike / (double)(a->nq * a->k);
}

/* The batch in pieces finds what the whole does. */
static void check_pieces(const sl_index *index, const unsigned char *queries, const struct kind *kind,
                         const sl_search_params *params, const answers *whole) {
    static const size_t pieces[] = {1, 7, 64};
    const size_t row = kind->dim * sl_dtype_size(kind->dtype);
    for (size_t p = 0; p < sizeof pieces / sizeof *pieces; p++)
        for (size_t at = 0; at < QUERIES; at += pieces[p] * (p ? 1 : 9)) {
            size_t some = QUERIES - at < pieces[p] ? QUERIES - at : pieces[p];
            answers piece = ask(index, queries + at * row, kind->dtype, some, K, params);
            ck_assert_mem_eq(piece.ids, whole->ids + at * K, some * K * sizeof *piece.ids);
            ck_assert_mem_eq(piece.scores, whole->scores + at * K, some * K * sizeof *piece.scores);
            answers_free(&piece);
        }
}

/* All partitions: what a walk over everything finds. Fewer: less, but the same on any threads and in any pieces. */
START_TEST(finds_what_walks_do) {
    if (!stands_for_others(_i)) return;
    const struct kind *kind = &kinds[(size_t)_i / 3];
    unsigned char *rows;
    sl_index *index = make_kind(kind, (sl_metric)(_i % 3), &rows);
    const unsigned char *queries = rows + ALL * kind->dim * sl_dtype_size(kind->dtype);
    const size_t partitions = index->graph.partitions.count, some[] = {1, 3, partitions - 1, partitions, SIZE_MAX};
    sl_search_params walk = params_of(0, 2);
    walk.ef = ALL;
    answers truth = ask(index, queries, kind->dtype, QUERIES, K, &walk);
    ck_assert_uint_ge(truth.stats.evaluations, QUERIES * ALL);
    double before = 0;
    for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
        sl_search_params one = params_of(some[i], 1), four = params_of(some[i], 4);
        answers found = ask(index, queries, kind->dtype, QUERIES, K, &one);
        answers again = ask(index, queries, kind->dtype, QUERIES, K, &four);
        check_scanned(index, &found, some[i] < partitions ? 0 : ALL);
        check_same(&found, &again);
        check_pieces(index, queries, kind, &one, &found);
        double share = share_alike(&found, &truth);
        ck_assert_msg(share >= (some[i] < partitions ? before - 0.01 : 0.99), "kind %d, %zu partitions: %.4f of %.4f",
                      _i, some[i], share, before);
        if (some[i] >= partitions) ck_assert_double_ge(recall_of(&found, &truth), 0.99);
        before = share;
        answers_free(&found);
        answers_free(&again);
    }
    answers_free(&truth);
    sl_index_free(index);
    free(rows);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * One index
 * ------------------------------------------------------------------------------------------------------------- */

static float *x, *queries;
static fault_allocator memory;
static sl_index *idx;

static void set_up(void) {
    sl_index_params params;
    x = clusters_make(ALL + MOST_QUERIES, DIM, 0.3, 5);
    queries = x + ALL * DIM;
    fault_allocator_init(&memory, 0);
    indexes_params(&params, DIM, SL_METRIC_COSINE);
    params.ef_construction = 24;
    params.allocator = &memory.allocator;
    idx = indexes_make(&params, x, SL_F32, N, NULL, 2);
    ck_ok(indexes_add(idx, x + N * DIM, SL_F32, LATER, NULL));
    ck_ok(sl_reach_settle(idx));
}

static void tear_down(void) {
    sl_index_free(idx);
    ck_assert_uint_eq(memory.live_blocks, 0);
    free(x);
}

static void forget_searchers(void) {
    sl_searcher_pool_free(idx);
    ck_ok(sl_searcher_pool_init(idx));
}

/* More queries than go together. */
START_TEST(large_batches) {
    static const size_t cuts[] = {1, 63, 1023, 1024, 1025, 1500};
    sl_search_params params = params_of(2, 1);
    answers whole = ask(idx, queries, SL_F32, MOST_QUERIES, K, &params);
    check_scanned(idx, &whole, 0);
    for (params.threads = 2; params.threads <= 5; params.threads += 3) {
        answers again = ask(idx, queries, SL_F32, MOST_QUERIES, K, &params);
        check_same(&whole, &again);
        ck_assert_uint_eq(whole.stats.evaluations, again.stats.evaluations);
        answers_free(&again);
    }
    for (size_t c = 0; c < sizeof cuts / sizeof *cuts; c++) {
        answers part = ask(idx, queries + 40 * DIM, SL_F32, cuts[c], K, &params);
        ck_assert_mem_eq(part.ids, whole.ids + 40 * K, cuts[c] * K * sizeof *part.ids);
        answers_free(&part);
    }
    answers_free(&whole);
}
END_TEST

/* A searcher with one query a call finds what the batch finds. It reads only what that query needs. */
START_TEST(one_query_scans_alike) {
    sl_searcher *searcher;
    ck_ok(sl_searcher_create(idx, 64, &searcher));
    for (size_t probes = 1; probes <= idx->graph.partitions.count; probes *= 3) {
        sl_search_params params = params_of(probes, 1);
        answers batch = ask(idx, queries, SL_F32, QUERIES, K, &params);
        sl_search_stats sum = {0};
        for (size_t i = 0; i < QUERIES; i++) {
            uint64_t ids[K];
            float scores[K];
            sl_search_stats stats;
            ck_ok(sl_searcher_search(searcher, queries + i * DIM, SL_F32, K, &params, ids, scores, &stats));
            ck_assert_mem_eq(ids, batch.ids + i * K, sizeof ids);
            ck_assert_mem_eq(scores, batch.scores + i * K, sizeof scores);
            ck_assert_uint_eq(stats.expansions, 0);
            sum.evaluations += stats.evaluations;
        }
        ck_assert_uint_eq(sum.evaluations, batch.stats.evaluations);
        answers_free(&batch);
    }
    sl_searcher_free(searcher);
}
END_TEST

/* Also for more than the searcher was made for: ef doesn't matter, nor who searched before. */
START_TEST(one_query_ranks_as_many) {
    static const struct { size_t k, rerank; } asked[] = {{K, 0}, {50, 0}, {50, 700}, {K, SIZE_MAX}, {K, 1}};
    const struct kind *kind = &kinds[5];
    unsigned char *rows;
    sl_index *index = make_kind(kind, SL_METRIC_COSINE, &rows);
    const unsigned char *from = rows + ALL * kind->dim * sl_dtype_size(kind->dtype);
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        sl_search_params params = params_of(3, 1);
        params.ef = 1;
        params.rerank = asked[i].rerank;
        answers many = ask(index, from, kind->dtype, 40, asked[i].k, &params);
        sl_searcher_pool_free(index);
        ck_ok(sl_searcher_pool_init(index));
        answers one = ask(index, from, kind->dtype, 1, asked[i].k, &params);
        ck_assert_mem_eq(one.ids, many.ids, asked[i].k * sizeof *one.ids);
        answers_free(&many);
        answers_free(&one);
    }
    sl_index_free(index);
    free(rows);
}
END_TEST

/* A reader's counts are those of when it asks. */
START_TEST(nothing_is_left_to_scan) {
    scratch place;
    sl_save_params save;
    sl_index *handles[2]; /* a writer, a reader */
    uint64_t ids[ALL];
    scratch_open(&place);
    sl_save_params_init(&save);
    save.room = ALL;
    ck_ok(sl_index_save(idx, place.path, &save));
    for (int reads = 0; reads < 2; reads++) {
        sl_open_params params;
        sl_open_params_init(&params);
        params.writable = !reads;
        ck_ok(sl_index_open(place.path, &params, &handles[reads]));
    }
    for (size_t i = 0; i < ALL; i++)
        ids[i] = i;
    ck_ok(sl_index_delete(handles[0], ids, ALL));
    ck_ok(sl_index_sync(handles[0]));
    for (size_t nq = 1; nq <= 40; nq += 39) {
        sl_search_params params = params_of(1, 1);
        answers found = ask(handles[1], queries, SL_F32, nq, K, &params);
        ck_assert_uint_eq(found.stats.results, 0);
        answers_free(&found);
    }
    sl_index_free(handles[1]);
    sl_index_free(handles[0]);
    scratch_close(&place);
}
END_TEST

/* Many queries per thread, few, and one: each scans as its own number of probes says. */
START_TEST(settings_tell_one_from_many) {
    enum { MANY = 300 };
    const size_t most = idx->graph.partitions.count;
    for (int which = 0; which < 4; which++) {
        sl_tuned_record record = {.target = 0.9, .recall = 0.9, .n = N, .queries = 100, .k = K, .least_k = 1, .ef = 50};
        record.probes = which & 1 ? (uint32_t)most : 0;
        record.probes_one = which & 2 ? (uint32_t)most : 0;
        size_t first;
        ck_ok(sl_settings_put(idx, &record, 1, &first));
        sl_tuned tuned = {.struct_size = sizeof tuned};
        ck_ok(sl_index_find_tuned(idx, K, 0.9, &tuned));
        ck_assert_uint_eq(tuned.probes, record.probes);
        ck_assert_uint_eq(tuned.probes_one, record.probes_one);
        const size_t sizes[] = {MANY, SL_SCAN_LEAST - 1, 20, 1};
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            sl_search_params params = params_of(0, 1);
            params.recall = 0.9;
            answers found = ask(idx, queries, SL_F32, sizes[i], K, &params);
            int scans = (i ? record.probes_one : record.probes) > 0;
            ck_assert_int_eq(found.stats.expansions == 0, scans);
            if (scans) check_scanned(idx, &found, ALL);
            answers_free(&found);
        }
    }
}
END_TEST

static double recall_with(const sl_index *index, const float *asked, const answers *truth, size_t probes) {
    sl_search_params params = params_of(probes, 1);
    answers found = ask(index, asked, SL_F32, QUERIES, K, &params);
    double recall = recall_of(&found, truth);
    answers_free(&found);
    return recall;
}

/* Under IP the best of a partition may be much better than its mean: one that reaches far comes first. */
START_TEST(partitions_are_chosen_by_their_reach) {
    enum { LARGE = 8192 };
    sl_index_params params;
    float *rows = clusters_make(LARGE + QUERIES, DIM, 0.5, 12);
    indexes_params(&params, DIM, SL_METRIC_IP);
    sl_index *index = indexes_make(&params, rows, SL_F32, LARGE, NULL, 2);
    const float *asked = rows + (size_t)LARGE * DIM;
    answers truth = answers_new(QUERIES, K);
    indexes_exact(SL_METRIC_IP, DIM, (vector_rows){rows, SL_F32, LARGE}, (vector_rows){asked, SL_F32, QUERIES}, K,
                  truth.ids);
    double with = recall_with(index, asked, &truth, 1);
    for (size_t p = 0; p < index->graph.partitions.count; p++)
        sl_field_put(index->graph.partitions.rows + p * index->graph.partitions.codec.rows.pitch,
                     index->graph.partitions.codec.rows.bias, 0);
    double without = recall_with(index, asked, &truth, 1);
    ck_assert_msg(with > without + 0.01, "%.4f with, %.4f without", with, without);
    answers_free(&truth);
    sl_index_free(index);
    free(rows);
}
END_TEST

/* Vectors added later belong to no partition, and scans score them too. */
START_TEST(later_vectors_are_found) {
    sl_search_params params = params_of(1, 2);
    answers found = ask(idx, x + N * DIM, SL_F32, LATER, 1, &params);
    check_scanned(idx, &found, 0);
    for (size_t i = 0; i < LATER; i++)
        ck_assert_uint_eq(found.ids[i], N + i);
    answers_free(&found);
}
END_TEST

/* Codes of integers score alike on every tier. */
START_TEST(tiers_find_the_same) {
    sl_search_params params = params_of(4, 1);
    answers first = ask(idx, queries, SL_F32, QUERIES, K, &params);
    for (int isa = 0; isa < SL_ISA_COUNT; isa++) {
        const sl_kernels *kernels = sl_kernels_of((sl_isa)isa);
        if (!kernels) continue;
        idx->graph.kernels = kernels;
        indexes_publish(idx);
        forget_searchers();
        answers found = ask(idx, queries, SL_F32, QUERIES, K, &params);
        check_scanned(idx, &found, 0);
        check_same(&first, &found);
        answers_free(&found);
    }
    idx->graph.kernels = sl_kernels_best();
    indexes_publish(idx);
    answers_free(&first);
}
END_TEST

static int odd_only(void *ctx, uint64_t id) {
    (void)ctx;
    return (int)(id & 1);
}

START_TEST(filters_walk) {
    uint64_t bits[(ALL + 63) / 64];
    memset(bits, 0xaa, sizeof bits);
    for (int by_bits = 0; by_bits < 2; by_bits++) {
        sl_search_params walk = params_of(0, 2), params;
        if (by_bits) {
            walk.accept_bits = bits;
            walk.accept_bits_count = ALL;
        } else {
            walk.accept = odd_only;
        }
        params = walk;
        params.probes = 5;
        answers walked = ask(idx, queries, SL_F32, QUERIES, K, &walk);
        answers found = ask(idx, queries, SL_F32, QUERIES, K, &params);
        ck_assert_uint_gt(found.stats.expansions, 0);
        check_same(&walked, &found);
        for (size_t i = 0; i < QUERIES * K; i++)
            ck_assert_uint_eq(found.ids[i] & 1, 1);
        answers_free(&walked);
        answers_free(&found);
    }
}
END_TEST

/* Indexes without partitions, and codes that tiles do not hold. */
START_TEST(others_walk) {
    sl_index_params params;
    indexes_params(&params, DIM, SL_METRIC_L2);
    params.ef_construction = 16;
    params.codes = _i ? SL_CODES_I16 : SL_CODES_I8;
    sl_index *index = indexes_make(&params, x, SL_F32, _i ? N : 500, NULL, 2);
    sl_search_params walk = params_of(0, 1), scan = params_of(5, 1);
    answers walked = ask(index, queries, SL_F32, 20, K, &walk), found = ask(index, queries, SL_F32, 20, K, &scan);
    check_same(&walked, &found);
    ck_assert_uint_gt(found.stats.expansions, 0);
    answers_free(&walked);
    answers_free(&found);
    sl_index_free(index);
}
END_TEST

/* Whatever is kept, over all partitions it is what walks over everything keep. */
START_TEST(any_k_and_rerank) {
    static const struct {
        size_t k, rerank;
    } asked[] = {{1, 0}, {1, 1}, {50, 1}, {50, 49}, {1000, 0}, {1000, 65536}, {3, 65536}, {3, SIZE_MAX}, {ALL + 5, 0}};
    enum { SOME = 40 };
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        sl_search_params scan = params_of(SIZE_MAX, 2), walk = params_of(0, 2);
        walk.ef = ALL;
        scan.rerank = walk.rerank = asked[i].rerank;
        answers found = ask(idx, queries, SL_F32, SOME, asked[i].k, &scan);
        answers walked = ask(idx, queries, SL_F32, SOME, asked[i].k, &walk);
        check_scanned(idx, &found, ALL);
        ck_assert_uint_eq(found.stats.results, SOME * (asked[i].k < ALL ? asked[i].k : ALL));
        if (asked[i].k < ALL) ck_assert_double_ge(share_alike(&found, &walked), 0.999);
        ck_assert_double_ge(recall_of(&found, &walked), 0.999);
        answers_free(&found);
        answers_free(&walked);
    }
}
END_TEST

/* Searchers are kept from batch to batch. Each finds what a new one finds. */
START_TEST(searchers_serve_again) {
    enum { TURNS = 7 };
    sl_search_params turns[TURNS];
    static const size_t ks[TURNS] = {5, 5, 10, 5, 300, 1, 10};
    answers fresh[TURNS];
    for (size_t i = 0; i < TURNS; i++)
        turns[i] = params_of(0, 2);
    turns[0].probes = 3;
    turns[1].ef = 200;
    turns[2].accept = odd_only;
    turns[3].probes = 9;
    turns[3].rerank = 400;
    turns[4].probes = 2;
    turns[5].ef = 1;
    turns[6].probes = 1;
    for (size_t i = 0; i < TURNS; i++) {
        forget_searchers();
        fresh[i] = ask(idx, queries, SL_F32, QUERIES, ks[i], &turns[i]);
    }
    for (size_t i = 0; i < TURNS; i++)
        for (size_t j = 0; j < TURNS; j++) {
            size_t both[2] = {i, j};
            for (size_t b = 0; b < 2; b++) {
                answers found = ask(idx, queries, SL_F32, QUERIES, ks[both[b]], &turns[both[b]]);
                ck_assert_mem_eq(found.ids, fresh[both[b]].ids, QUERIES * ks[both[b]] * sizeof *found.ids);
                answers_free(&found);
            }
        }
    for (size_t i = 0; i < TURNS; i++)
        answers_free(&fresh[i]);
}
END_TEST

typedef struct telling {
    uint64_t last, total;
    size_t calls, stop_at;
} telling;

static int tell(void *ctx, uint64_t done, uint64_t total) {
    telling *t = ctx;
    ck_assert(done >= t->last && done <= total);
    t->last = done;
    t->total = total;
    return ++t->calls == t->stop_at;
}

START_TEST(tells_and_can_be_cancelled) {
    answers a = answers_new(MOST_QUERIES, K);
    for (size_t threads = 1; threads <= 2; threads++) {
        telling t = {.stop_at = 0};
        sl_search_params params = params_of(2, threads);
        params.progress = tell;
        params.progress_ctx = &t;
        ck_ok(sl_index_search(idx, queries, SL_F32, MOST_QUERIES, 0, K, &params, a.ids, a.scores, &a.stats));
        ck_assert_uint_eq(t.last, MOST_QUERIES);
        ck_assert_uint_eq(t.total, MOST_QUERIES);
        t = (telling){.stop_at = 1};
        ck_fails(sl_index_search(idx, queries, SL_F32, MOST_QUERIES, 0, K, &params, a.ids, a.scores, &a.stats),
                 SL_ECANCELED, "");
    }
    answers_free(&a);
    float bad[3 * DIM];
    uint64_t ids[3];
    memcpy(bad, queries, sizeof bad);
    bad[2 * DIM + 5] = NAN;
    sl_search_params params = params_of(2, 1);
    ck_fails(sl_index_search(idx, bad, SL_F32, 3, 0, 1, &params, ids, NULL, NULL), SL_EVALUE, "query 2");
}
END_TEST

/* Every allocation failing in turn. */
static void run_out(size_t nq, size_t threads) {
    sl_search_params params = params_of(2, threads);
    answers a = answers_new(nq, K);
    forget_searchers();
    size_t at = 1, blocks = memory.live_blocks;
    for (;; at++) {
        forget_searchers();
        /* The message belongs to this call, whichever thread found no memory. */
        ck_fails(sl_index_search(idx, queries, SL_F32, 1, 0, 0, &params, a.ids, NULL, NULL), SL_EINVAL, "k is 0");
        memory.calls = 0;
        memory.fail_at = at;
        sl_status status = sl_index_search(idx, queries, SL_F32, nq, 0, K, &params, a.ids, NULL, NULL);
        int failed = memory.calls >= at;
        memory.fail_at = 0;
        if (!failed) {
            ck_ok(status);
            break;
        }
        ck_fails(status, SL_ENOMEM, "");
        ck_assert(strstr(sl_last_error(), "cannot allocate") || strstr(sl_last_error(), "memory ran out"));
        forget_searchers();
        ck_assert_uint_eq(memory.live_blocks, blocks);
    }
    ck_assert_uint_gt(at, 10 * (threads < nq ? threads : nq));
    answers_free(&a);
}

/* Queries that go together, few queries, and one query. */
START_TEST(memory_may_run_out) {
    static const size_t sizes[] = {QUERIES, 10, 1};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (size_t threads = 1; threads <= 3; threads += 2)
            run_out(sizes[i], threads);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Partitions that lie
 * ------------------------------------------------------------------------------------------------------------- */

static uint64_t random_counter;

static uint32_t any(uint32_t below) {
    return (uint32_t)(sl_random_at(3, random_counter++) % below);
}

static float any_float(void) {
    static const float values[] = {NAN, INFINITY, -INFINITY, 3e38f, -3e38f, 0, 1e-40f, 1};
    return values[any(8)];
}

/* Values that the arrays of a mapped file may hold. */
static void damage(sl_partitions *partitions, unsigned char *nodes, const sl_code_rows *rows) {
    for (uint32_t times = 1 + any(8); times; times--) {
        uint32_t p = any((uint32_t)partitions->count + 1), values[] = {0, UINT32_MAX, ALL, ALL + 1, any(ALL), N - 1};
        partitions->starts[p] = values[any(6)];
        float bad = any_float();
        const sl_code_rows *centroids = &partitions->codec.rows;
        size_t of = any((uint32_t)partitions->count),
               field = any(2) && centroids->bias ? centroids->bias : centroids->factor;
        memcpy(partitions->rows + of * centroids->pitch + field, &bad, sizeof bad);
        if (partitions->band_bits)
            partitions->bands[any((uint32_t)(partitions->count * SL_PARTITION_BANDS))] = (uint8_t)any(256);
        bad = any_float();
        memcpy(nodes + any(ALL) * rows->pitch + rows->factor, &bad, sizeof bad);
    }
}

START_TEST(hostile_partitions_do_no_harm) {
    if (!stands_for_others(_i)) return;
    const struct kind *kind = &kinds[(size_t)_i / 3];
    unsigned char *vectors;
    sl_index *index = make_kind(kind, (sl_metric)(_i % 3), &vectors);
    const unsigned char *asked = vectors + ALL * kind->dim * sl_dtype_size(kind->dtype);
    sl_partitions *partitions = &index->graph.partitions;
    const sl_code_rows *rows = &sl_codec_of_walks(&index->graph)->rows;
    unsigned char *nodes = sl_walk_row(&index->graph, 0);
    ck_assert_ptr_eq(nodes, rows->base);
    const size_t sizes[] = {(partitions->count + 1) * sizeof(uint32_t),
                            partitions->count * partitions->codec.rows.pitch, ALL * rows->pitch,
                            partitions->band_bits ? partitions->count * SL_PARTITION_BANDS : 0};
    void *const arrays[] = {partitions->starts, partitions->rows, nodes, partitions->bands};
    void *copies[4];
    for (size_t i = 0; i < 4; i++) {
        copies[i] = malloc(sizes[i] + 1);
        if (sizes[i]) memcpy(copies[i], arrays[i], sizes[i]);
    }
    for (size_t round = 0; round < 60; round++) {
        damage(partitions, nodes, rows);
        static const size_t probes[] = {1, 4, SIZE_MAX, 0};
        sl_search_params params = params_of(probes[round % 4], 1 + round % 2);
        params.rerank = round % 5 ? 0 : 5000;
        answers found = ask(index, asked, kind->dtype, 30, K, &params);
        for (size_t i = 0; i < 30 * K; i++)
            ck_assert(found.ids[i] == SL_NO_ID || found.ids[i] < ALL);
        answers_free(&found);
        if (round % 10 < 9) continue;
        for (size_t i = 0; i < 4; i++)
            if (sizes[i]) memcpy(arrays[i], copies[i], sizes[i]);
    }
    for (size_t i = 0; i < 4; i++)
        free(copies[i]);
    sl_index_free(index);
    free(vectors);
}
END_TEST

/* One query scans no more than a query of many does. */
START_TEST(centroids_without_a_score_are_left_out) {
    unsigned char *vectors;
    sl_index *index = make_kind(&kinds[0], SL_METRIC_IP, &vectors);
    const unsigned char *asked = vectors + ALL * kinds[0].dim * sizeof(float);
    const sl_code_rows *centroids = &index->graph.partitions.codec.rows;
    const float bad[] = {NAN, -INFINITY};
    for (size_t p = 0; p < index->graph.partitions.count; p += 2)
        memcpy(index->graph.partitions.rows + p * centroids->pitch + centroids->bias, &bad[p / 2 % 2], sizeof *bad);
    for (size_t probes = 1; probes <= index->graph.partitions.count; probes *= 2) {
        sl_search_params params = params_of(probes, 1);
        answers many = ask(index, asked, SL_F32, 40, K, &params);
        sl_search_stats sum = {0};
        for (size_t i = 0; i < 40; i++) {
            answers one = ask(index, asked + i * kinds[0].dim * sizeof(float), SL_F32, 1, K, &params);
            ck_assert_mem_eq(one.ids, many.ids + i * K, K * sizeof *one.ids);
            sum.evaluations += one.stats.evaluations;
            answers_free(&one);
        }
        ck_assert_uint_eq(sum.evaluations, many.stats.evaluations);
        answers_free(&many);
    }
    sl_index_free(index);
    free(vectors);
}
END_TEST

/* All vectors score alike. Any of them may be chosen, but no more than there is room for. */
START_TEST(what_scores_alike_has_room) {
    enum { ALIKE = 5000, MANY = 300 };
    static const size_t keeps[] = {1, 2, 3, 10, 2048, 4000};
    float *same = calloc((ALIKE + MANY) * DIM, sizeof *same);
    ck_assert_ptr_nonnull(same);
    for (size_t i = 0; i < ALIKE; i++)
        same[i * DIM] = 1; /* the queries behind them are zero: every product is 0 */
    for (int queries_too = 0; queries_too < 2; queries_too++) {
        sl_index_params with;
        indexes_params(&with, DIM, SL_METRIC_IP);
        with.codes = queries_too ? SL_CODES_I8 : SL_CODES_I4;
        with.ef_construction = 24;
        sl_index *index = indexes_make(&with, same, SL_F32, ALIKE, NULL, 2);
        const float *asked = queries_too ? same : same + ALIKE * DIM;
        for (size_t i = 0; i < sizeof keeps / sizeof *keeps; i++)
            for (size_t probes = 1; probes <= index->graph.partitions.count; probes = 2 * probes + 1) {
                size_t k = keeps[i] < 10 ? keeps[i] : 10;
                sl_search_params params = params_of(probes, 1);
                params.rerank = keeps[i];
                params.groups = probes % 4;
                answers found = ask(index, asked, SL_F32, MANY, k, &params);
                for (size_t j = 0; j < MANY * k; j++)
                    ck_assert(found.ids[j] < ALIKE || found.ids[j] == SL_NO_ID);
                answers_free(&found);
            }
        sl_index_free(index);
    }
    free(same);
}
END_TEST

/* Only scans reached this recall. A search that cannot scan takes another setting. */
START_TEST(records_of_scans_are_for_scans) {
    const sl_tuned_record scans = {.target = 0.9,
                                   .recall = 0.9,
                                   .n = N,
                                   .queries = 100,
                                   .k = K,
                                   .least_k = K,
                                   .ef = K,
                                   .limit = SL_LIMIT_GRAPH,
                                   .probes = 3,
                                   .probes_one = 3};
    const sl_tuned_record walks = {
        .target = 0.9, .recall = 0.9, .n = N, .queries = 100, .k = 2 * K, .least_k = 1, .ef = 50};
    uint64_t ids[K];
    sl_search_stats stats;
    sl_search_params plain = params_of(0, 1), filtered = plain;
    plain.recall = filtered.recall = 0.9;
    uint64_t every = UINT64_MAX;
    filtered.accept_bits = &every;
    filtered.accept_bits_count = 64;
    size_t first;
    ck_ok(sl_settings_put(idx, &scans, 1, &first));
    ck_ok(sl_index_search(idx, queries, SL_F32, 1, 0, K, &plain, ids, NULL, &stats));
    ck_assert_uint_eq(stats.expansions, 0);
    ck_fails(sl_index_search(idx, queries, SL_F32, 1, 0, K, &filtered, ids, NULL, NULL), SL_ENOTFOUND,
             "scanning alone");
    ck_ok(sl_settings_put(idx, &walks, 1, &first));
    ck_ok(sl_index_search(idx, queries, SL_F32, 1, 0, K, &plain, ids, NULL, &stats));
    ck_assert_uint_eq(stats.expansions, 0);
    ck_ok(sl_index_search(idx, queries, SL_F32, 1, 0, K, &filtered, ids, NULL, &stats));
    ck_assert_uint_gt(stats.expansions, 0);
    /* With none for batches it is a file's lie. */
    sl_tuned_record half = scans;
    half.probes = 0;
    scratch place;
    sl_index *opened;
    scratch_open(&place);
    ck_ok(sl_settings_put(idx, &half, 1, &first));
    ck_ok(sl_index_save(idx, place.path, NULL));
    ck_fails(sl_index_open(place.path, NULL, &opened), SL_ECORRUPT, "out of range");
    scratch_close(&place);
    ck_ok(sl_settings_put(idx, &scans, 1, &first));
    uint64_t gone[ALL];
    size_t most = ALL / 2 + 1;
    for (size_t i = 0; i < most; i++)
        gone[i] = i;
    sl_tuned tuned = {.struct_size = sizeof tuned};
    ck_ok(sl_index_find_tuned(idx, K, 0.9, &tuned));
    ck_assert(tuned.scan_only && tuned.k == K);
    ck_ok(sl_index_delete(idx, gone, most));
    ck_ok(sl_index_find_tuned(idx, K, 0.9, &tuned));
    ck_assert(!tuned.scan_only && tuned.k == 2 * K);
}
END_TEST

int main(void) {
    TCase *all = tcase_create("kinds"), *one = tcase_create("one index"), *hostile = tcase_create("hostile");
    TCase *threads = tcase_create("threads");
    tcase_add_loop_test(all, finds_what_walks_do, 0, 3 * KINDS);
    tcase_add_checked_fixture(threads, set_up, tear_down);
    tcase_add_test(threads, large_batches);
    tcase_add_test(threads, tells_and_can_be_cancelled);
    tcase_add_test(threads, memory_may_run_out);
    tcase_add_checked_fixture(one, set_up, tear_down);
    tcase_add_test(one, one_query_scans_alike);
    tcase_add_test(one, one_query_ranks_as_many);
    tcase_add_test(one, what_scores_alike_has_room);
    tcase_add_test(one, nothing_is_left_to_scan);
    tcase_add_test(one, settings_tell_one_from_many);
    tcase_add_test(one, records_of_scans_are_for_scans);
    tcase_add_test(one, partitions_are_chosen_by_their_reach);
    tcase_add_test(one, later_vectors_are_found);
    tcase_add_test(one, tiers_find_the_same);
    tcase_add_test(one, filters_walk);
    tcase_add_loop_test(one, others_walk, 0, 2);
    tcase_add_test(one, any_k_and_rerank);
    tcase_add_test(one, searchers_serve_again);
    tcase_add_loop_test(hostile, hostile_partitions_do_no_harm, 0, 3 * KINDS);
    tcase_add_test(hostile, centroids_without_a_score_are_left_out);
    TCase *const cases[] = {all, threads, one, hostile};
    return check_main("scan", cases, 4);
}
