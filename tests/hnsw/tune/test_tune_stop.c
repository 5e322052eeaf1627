/* When tuning chooses a stop: if it's cheaper and serves hard queries no worse. Also its effect on queries unlike the
 * tuned ones. */
#include "base/random.h"
#include "hnsw/graph/ids.h"
#include "hnsw/graph/partition.h"
#include "hnsw/tune/hard_queries.h"
#include "tests/support/check_main.h"
#include "tests/support/indexes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DIM = 24, K = 10, N = 6000, ASKED = 2400, HALF = 1200, CLUSTERS = 40 };

/* ---------------------------------------------------------------------------------------------------------------
 * The gate
 * ------------------------------------------------------------------------------------------------------------- */

enum { MANY = 2000 };

static uint32_t alone[MANY], with[MANY];

/* Both have the hits of a recall of 0.95: most queries all ten, some 9, few 5. */
static void alike(void) {
    for (size_t q = 0; q < MANY; q++)
        alone[q] = with[q] = q % 20 == 3 ? 5 : q % 3 == 1 ? 9 : 10;
}

START_TEST(gate_lets_pass) {
    alike();
    ck_assert(sl_tune_is_no_worse(alone, with, MANY, K));
    /* Hard queries gain what easy ones lose. */
    for (size_t q = 0; q < MANY; q++)
        with[q] = alone[q] == 5 ? 7 : q % 10 == 0 ? 9 : 10;
    ck_assert(sl_tune_is_no_worse(alone, with, MANY, K));
    /* One lost query of so many is chance. */
    alike();
    with[40] = 0;
    ck_assert(sl_tune_is_no_worse(alone, with, MANY, K));
    /* The largest k there is. */
    for (size_t q = 0; q < MANY; q++)
        alone[q] = with[q] = SL_MAX_EF;
    ck_assert(sl_tune_is_no_worse(alone, with, MANY, SL_MAX_EF));
}
END_TEST

START_TEST(gate_refuses) {
    /* One query in a hundred finds nothing, and the others find all there is: the mean is better. */
    alike();
    for (size_t q = 0; q < MANY; q++)
        with[q] = q % 100 == 7 ? 0 : alone[q] == 5 ? 6 : 10;
    ck_assert(!sl_tune_is_no_worse(alone, with, MANY, K));
    /* One query in twenty, already among the worst, finds a little less than before. */
    alike();
    for (size_t q = 0; q < MANY; q++)
        with[q] = alone[q] == 5 ? 4 : 10;
    ck_assert(!sl_tune_is_no_worse(alone, with, MANY, K));
    /* None below half, but the hard ones worse than they were. */
    alike();
    for (size_t q = 0; q < MANY; q++) {
        alone[q] = q % 20 == 3 ? 8 : 9;
        with[q] = q % 20 == 3 ? 6 : 10;
    }
    ck_assert(!sl_tune_is_no_worse(alone, with, MANY, K));
    /* One half of the queries gains as much as the other half loses. */
    for (size_t q = 0; q < MANY; q++) {
        alone[q] = q % 20 > 1 ? 9 : 7;
        with[q] = q % 2 ? 10 : q % 20 ? 8 : 7;
    }
    ck_assert(!sl_tune_is_no_worse(alone, with, MANY, K));
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Queries of neighbourhoods that are dense and thin, which is what a stop makes use of
 * ------------------------------------------------------------------------------------------------------------- */

static double normal(uint64_t seed, uint64_t counter) {
    double angle = 6.283185307179586 * sl_random_unit(seed, 2 * counter);
    return sqrt(-2 * log(sl_random_unit(seed, 2 * counter + 1))) * cos(angle);
}

/* n vectors around the centres of a seed, each centre with its own density. Another `own` gives other vectors of the
 * same centres. */
static float *mixture(size_t n, uint64_t seed, uint64_t own) {
    float *out = malloc(n * DIM * sizeof *out);
    ck_assert_ptr_nonnull(out);
    for (size_t i = 0; i < n; i++) {
        uint64_t cluster = sl_random_at(own, i) % CLUSTERS;
        double spread = 0.3 + 0.9 * sl_random_unit(seed ^ 1, cluster);
        for (size_t d = 0; d < DIM; d++)
            out[i * DIM + d] =
                (float)(normal(seed, cluster * DIM + d) + spread * normal(own ^ 0x6d697874, i * DIM + d));
    }
    return out;
}

/* No partitions: a walk from hundreds of start nodes among so few has little left for a stop to save. */
static sl_index *make(sl_metric metric, sl_codes codes, const float *x, size_t n) {
    sl_index_params params;
    indexes_params(&params, DIM, metric);
    params.codes = codes;
    params.m = 5;
    params.ef_construction = 40;
    sl_index *index = indexes_make(&params, x, SL_F32, n, NULL, 1);
    index->graph.partitions = (sl_partitions){0};
    indexes_publish(index);
    return index;
}

static const double targets[] = {0.9, 0.95, 0.98, 0.99};
enum { TARGETS = sizeof targets / sizeof *targets };

static void tune(sl_index *index, const float *queries, size_t nq, const uint64_t *truth, size_t count) {
    sl_tune_params params;
    sl_tune_params_init(&params);
    params.targets = targets;
    params.target_count = count;
    params.threads = 2;
    ck_ok(sl_index_tune(index, queries, SL_F32, nq, 0, truth, K, &params, NULL));
}

static sl_tuned tuned_at(const sl_index *index, size_t i) {
    sl_tuned tuned = {.struct_size = sizeof tuned};
    ck_ok(sl_index_get_tuned(index, i, &tuned));
    ck_assert_int_eq(tuned.limit, SL_LIMIT_NONE);
    return tuned;
}

/* Recall of nq queries with these settings, or with theirs by ef alone; evaluations a query into *cost. */
static double measure(const sl_index *index, const float *queries, size_t nq, const uint64_t *truth,
                      const sl_tuned *tuned, int by_ef, double *cost) {
    uint64_t *found = malloc(nq * K * sizeof *found);
    ck_assert_ptr_nonnull(found);
    sl_search_params search;
    sl_search_stats stats;
    sl_search_params_init(&search);
    search.ef = by_ef ? tuned->ef_alone : tuned->ef;
    search.stop = by_ef ? 0 : tuned->stop;
    search.rerank = tuned->rerank;
    ck_ok(sl_index_search(index, queries, SL_F32, nq, 0, K, &search, found, NULL, &stats));
    double share = indexes_recall(found, truth, nq, K);
    *cost = (double)stats.evaluations / (double)nq;
    free(found);
    return share;
}

static const struct kind {
    sl_metric metric;
    sl_codes codes;
} kinds[] = {{SL_METRIC_L2, SL_CODES_I8},
             {SL_METRIC_L2, SL_CODES_F32},
             {SL_METRIC_COSINE, SL_CODES_I4},
             {SL_METRIC_IP, SL_CODES_I16}};

START_TEST(holds_on_other_queries) {
    const struct kind *kind = &kinds[_i];
    float *x = mixture(N, 5, 6), *queries = mixture(ASKED, 5, 7);
    uint64_t truth[ASKED * K];
    sl_index *index = make(kind->metric, kind->codes, x, N);
    float *own = malloc(N * DIM * sizeof *own);
    uint64_t *ids = malloc(N * sizeof *ids);
    ck_assert(own && ids);
    for (size_t i = 0; i < N; i++)
        ids[i] = i;
    ck_ok(sl_index_get(index, ids, N, SL_F32, own));
    indexes_exact(kind->metric, DIM, (vector_rows){own, SL_F32, N}, (vector_rows){queries, SL_F32, ASKED}, K, truth);
    tune(index, queries, HALF, truth, TARGETS);
    size_t stops = 0;
    for (size_t i = 0; i < TARGETS; i++) {
        sl_tuned tuned = tuned_at(index, i);
        double cost, plain, cost_alone, plain_alone;
        double here = measure(index, queries, HALF, truth, &tuned, 0, &cost);
        (void)measure(index, queries, HALF, truth, &tuned, 1, &cost_alone);
        double other = measure(index, queries + HALF * DIM, HALF, truth + HALF * K, &tuned, 0, &plain);
        double other_alone = measure(index, queries + HALF * DIM, HALF, truth + HALF * K, &tuned, 1, &plain_alone);
        ck_assert_msg(fabs(here - tuned.recall) < 1e-9, "%.6f, not %.6f", here, tuned.recall);
        ck_assert(fabs(cost - tuned.evaluations) < 1e-6);
        if (tuned.stop == 0) {
            ck_assert_uint_eq(tuned.ef, tuned.ef_alone);
            continue;
        }
        stops++;
        ck_assert_uint_eq(tuned.ef, 2 * tuned.ef_alone);
        ck_assert(cost <= 0.97 * cost_alone);
        ck_assert(plain < plain_alone);
        ck_assert_msg(other >= tuned.target - 0.005 && other >= other_alone - 0.005, "%g gave %.4f, alone %.4f",
                      tuned.target, other, other_alone);
    }
    ck_assert_uint_ge(stops, 1);
    sl_index_free(index);
    free(own);
    free(ids);
    free(x);
    free(queries);
}
END_TEST

/* Queries from elsewhere, far from everything or about other centres. All vectors around them are equally far away, so
 * a stop comes late. It costs time, up to that of a search with its ef, and no recall. */
START_TEST(queries_unlike_those_tuned_with) {
    float *x = mixture(N, 5, 6), *queries = mixture(HALF, 5, 7);
    float *strange[] = {mixture(HALF, 50, 51), mixture(HALF, 5, 8), mixture(HALF, 5, 9)};
    uint64_t truth[HALF * K];
    for (size_t i = 0; i < HALF * DIM; i++) {
        strange[1][i] *= 2;
        strange[2][i] = -strange[2][i];
    }
    sl_index *index = make(SL_METRIC_L2, SL_CODES_F32, x, N);
    tune(index, queries, HALF, NULL, TARGETS);
    size_t stops = 0;
    for (size_t s = 0; s < sizeof strange / sizeof *strange; s++) {
        indexes_exact(SL_METRIC_L2, DIM, (vector_rows){x, SL_F32, N}, (vector_rows){strange[s], SL_F32, HALF}, K,
                      truth);
        for (size_t i = 0; i < TARGETS; i++) {
            sl_tuned tuned = tuned_at(index, i), deep = tuned;
            double cost, cost_alone, cost_deep;
            deep.ef_alone = tuned.ef;
            double here = measure(index, strange[s], HALF, truth, &tuned, 0, &cost);
            double by_ef = measure(index, strange[s], HALF, truth, &tuned, 1, &cost_alone);
            (void)measure(index, strange[s], HALF, truth, &deep, 1, &cost_deep);
            ck_assert_msg(here >= by_ef - 0.005, "%zu, %g: %.4f, by ef alone %.4f", s, tuned.target, here, by_ef);
            ck_assert(cost <= cost_deep);
            stops += tuned.stop > 0;
        }
        free(strange[s]);
    }
    ck_assert_uint_ge(stops, 6);
    sl_index_free(index);
    free(x);
    free(queries);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * A few queries that a stop fails
 * ------------------------------------------------------------------------------------------------------------- */

enum { SITES = 16, DECOYS = 30, TRUE = 10, SITE = DECOYS + TRUE, ALL = N + SITES * SITE };

/* A place away from all others, with the query in the middle. DECOYS vectors crowd on one side. The query's true
 * neighbours lie on the other side, a little nearer. */
static void make_site(size_t site, float *rows, float *query) {
    double centre[DIM], side[DIM], length = 0;
    for (size_t d = 0; d < DIM; d++) {
        centre[d] = 3 * normal(77, site * DIM + d);
        side[d] = normal(78, site * DIM + d);
        length += side[d] * side[d];
        query[d] = (float)centre[d];
    }
    for (size_t i = 0; i < SITE * DIM; i++) {
        double way = (i / DIM < DECOYS ? 1 : -0.9) / sqrt(length);
        rows[i] = (float)(centre[i % DIM] + way * side[i % DIM] + 0.01 * normal(79, site * SITE * DIM + i));
    }
}

static uint32_t node_of(sl_index *index, uint64_t id) {
    uint32_t node;
    ck_ok(sl_id_find(index, &index->graph, id, &node));
    return node;
}

/* Links lead to a site's true neighbours only from the node nearest to the site elsewhere. That node is farther away
 * than the decoys. No walk begins among the true neighbours. */
static void hide(sl_index *index, size_t site, uint64_t nearest) {
    static char hidden[ALL];
    memset(hidden, 0, sizeof hidden);
    for (size_t i = DECOYS; i < SITE; i++)
        hidden[node_of(index, N + site * SITE + i)] = 1;
    for (uint32_t node = 0; node < ALL; node++) {
        uint32_t *links = sl_links(&index->graph, node);
        size_t kept = 0;
        for (size_t j = 0; j < index->graph.m0 && links[j] < ALL && !hidden[node]; j++)
            if (!hidden[links[j]]) links[kept++] = links[j];
        while (kept < index->graph.m0 && !hidden[node])
            links[kept++] = SL_NONE;
    }
    for (size_t slot = 0; slot < index->graph.upper.count; slot++)
        if (hidden[index->graph.upper.nodes[slot]]) index->graph.upper.nodes[slot] = node_of(index, N + site * SITE);
    *sl_links(&index->graph, node_of(index, nearest)) = node_of(index, N + site * SITE + DECOYS);
}

START_TEST(refuses_where_a_few_lose) {
    enum { TARGET = 2 };
    float *x = mixture(ALL, 5, 6), *queries = mixture(ASKED + SITES, 5, 7), *hard = queries + ASKED * DIM;
    uint64_t nearest[SITES], truth[SITES * K];
    for (size_t s = 0; s < SITES; s++)
        make_site(s, x + (N + s * SITE) * DIM, hard + s * DIM);
    sl_index *index = make(SL_METRIC_L2, SL_CODES_F32, x, ALL);
    indexes_exact(SL_METRIC_L2, DIM, (vector_rows){x, SL_F32, N}, (vector_rows){hard, SL_F32, SITES}, 1, nearest);
    indexes_exact(SL_METRIC_L2, DIM, (vector_rows){x, SL_F32, ALL}, (vector_rows){hard, SL_F32, SITES}, K, truth);
    for (size_t s = 0; s < SITES; s++)
        hide(index, s, nearest[s]);
    /* Without these queries a stop is taken, with which most of them end among the decoys. */
    double cost;
    tune(index, queries, ASKED, NULL, TARGET + 1);
    sl_tuned without = tuned_at(index, TARGET);
    ck_assert(without.stop > 0);
    ck_assert(measure(index, hard, SITES, truth, &without, 0, &cost) < 0.5);
    ck_assert(measure(index, hard, SITES, truth, &without, 1, &cost) > 0.9);
    tune(index, queries, ASKED + SITES, NULL, TARGET + 1);
    sl_tuned tuned = tuned_at(index, TARGET);
    ck_assert_msg(tuned.stop == 0, "ef %zu, stop %g", tuned.ef, tuned.stop);
    ck_assert(measure(index, hard, SITES, truth, &tuned, 0, &cost) > 0.9);
    sl_index_free(index);
    free(x);
    free(queries);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Searches that a stop does not serve
 * ------------------------------------------------------------------------------------------------------------- */

static int accept_all(void *ctx, uint64_t id) {
    (void)ctx;
    (void)id;
    return 1;
}

/* With a filter, and for fewer than k, a search takes the ef that needs no stop. */
START_TEST(serves_others_by_ef_alone) {
    float *x = mixture(N, 5, 6), *queries = mixture(HALF, 5, 7);
    sl_index *index = make(SL_METRIC_L2, SL_CODES_F32, x, N);
    tune(index, queries, HALF, NULL, TARGETS - 1);
    sl_tuned tuned = tuned_at(index, TARGETS - 2), fewer = {.struct_size = sizeof fewer};
    ck_assert(tuned.stop > 0 && tuned.ef == 2 * tuned.ef_alone && tuned.least_k < K);
    ck_ok(sl_index_find_tuned(index, K - 1, tuned.target, &fewer));
    ck_assert(fewer.stop == 0 && fewer.ef == tuned.ef_alone && fewer.k == K);
    for (size_t filtered = 0; filtered < 2; filtered++) {
        uint64_t found[2][K];
        sl_search_stats stats[2];
        const size_t k = filtered ? K : K - 1;
        for (size_t by_recall = 0; by_recall < 2; by_recall++) {
            sl_search_params search;
            sl_search_params_init(&search);
            search.ef = tuned.ef_alone;
            search.rerank = tuned.rerank;
            search.recall = by_recall ? tuned.target : 0;
            search.accept = filtered ? accept_all : NULL;
            ck_ok(sl_index_search(index, queries, SL_F32, 1, 0, k, &search, found[by_recall], NULL, &stats[by_recall]));
        }
        ck_assert_mem_eq(found[0], found[1], k * sizeof **found);
        ck_assert_uint_eq(stats[0].evaluations, stats[1].evaluations);
    }
    sl_index_free(index);
    free(x);
    free(queries);
}
END_TEST

int main(void) {
    TCase *gate = tcase_create("gate"), *whole = tcase_create("stop");
    tcase_add_test(gate, gate_lets_pass);
    tcase_add_test(gate, gate_refuses);
    tcase_add_loop_test(whole, holds_on_other_queries, 0, sizeof kinds / sizeof *kinds);
    tcase_add_test(whole, queries_unlike_those_tuned_with);
    tcase_add_test(whole, refuses_where_a_few_lose);
    tcase_add_test(whole, serves_others_by_ef_alone);
    TCase *const cases[] = {gate, whole};
    return check_main("tune_stop", cases, 2);
}
