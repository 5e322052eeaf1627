/* Graphs of vectors of very different lengths: the cost of inner product beside cosine. */
#include "tests/support/check_main.h"
#include "tests/support/indexes.h"

#include <math.h>
#include <stdlib.h>

enum { N = 6000, DIM = 24, QUERIES = 200, K = 10, DEEPEST = 2000 };

static double uniform(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return ((double)(*state >> 11) + 0.5) * 0x1p-53;
}

static double normal(uint64_t *state) {
    double length = sqrt(-2 * log(uniform(state)));
    return length * cos(6.283185307179586 * uniform(state));
}

/* Vectors in all directions. The logarithms of their lengths have this deviation. */
static float *vectors_make(size_t n, double spread) {
    float *x = malloc(n * DIM * sizeof *x);
    uint64_t state = 1;
    ck_assert_ptr_nonnull(x);
    for (size_t i = 0; i < n; i++) {
        double length = exp(spread * normal(&state));
        for (size_t j = 0; j < DIM; j++)
            x[i * DIM + j] = (float)(length * normal(&state));
    }
    return x;
}

static sl_index *build_index(const float *x, sl_metric metric, sl_codes codes) {
    sl_index_params params;
    indexes_params(&params, DIM, metric);
    params.codes = codes;
    params.refine = codes == SL_CODES_I8 ? SL_REFINE_BF16 : SL_REFINE_NONE;
    params.m = 12;
    params.ef_construction = 100;
    return indexes_make(&params, x, SL_F32, N, NULL, 1);
}

/* Counts the evaluations of all queries at the smallest ef that reaches recall 0.95. */
static size_t cost(const sl_index *index, const float *queries, sl_metric metric, const float *x) {
    uint64_t truth[QUERIES * K], ids[QUERIES * K];
    indexes_exact(metric, DIM, (vector_rows){x, SL_F32, N}, (vector_rows){queries, SL_F32, QUERIES}, K, truth);
    sl_search_params params;
    sl_search_stats stats;
    sl_search_params_init(&params);
    for (params.ef = K; params.ef < DEEPEST; params.ef += 1 + params.ef / 12) {
        ck_ok(sl_index_search(index, queries, SL_F32, QUERIES, 0, K, &params, ids, NULL, &stats));
        if (indexes_recall(ids, truth, QUERIES, K) >= 0.95) return stats.evaluations;
    }
    return SIZE_MAX;
}

static const struct kind {
    double spread;
    sl_codes codes;
} kinds[] = {{0.5, SL_CODES_I8}, {1.0, SL_CODES_I8}, {1.5, SL_CODES_I8}, {1.0, SL_CODES_I4}};

/* Searches by inner product cost at most a tenth more than by cosine on the same vectors, however much lengths differ.
 * All short vectors are reachable. */
START_TEST(spread_lengths_cost_nothing) {
    const struct kind *kind = kinds + _i;
    float *x = vectors_make(N + QUERIES, kind->spread), *queries = x + (size_t)N * DIM;
    size_t costs[2];
    for (int ip = 0; ip < 2; ip++) {
        sl_metric metric = ip ? SL_METRIC_IP : SL_METRIC_COSINE;
        sl_index *index = build_index(x, metric, kind->codes);
        costs[ip] = cost(index, queries, metric, x);
        (void)indexes_sound(index);
        sl_index_free(index);
    }
    ck_assert_msg(costs[1] <= costs[0] + costs[0] / 10, "spread %g: by inner product %zu evaluations, by cosine %zu",
                  kind->spread, costs[1] / QUERIES, costs[0] / QUERIES);
    free(x);
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("lengths");
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, spread_lengths_cost_nothing, 0, sizeof kinds / sizeof *kinds);
    return check_main("lengths", &tests, 1);
}
