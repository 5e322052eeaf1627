/* Build an index over clustered vectors, search it, and compare with exact search. */
#include <shortlist.h>

#include <stdio.h>
#include <stdlib.h>

enum { DIM = 64, ITEMS = 5000, QUERIES = 200, CLUSTERS = 100, K = 10 };

static float centres[CLUSTERS * DIM], items[ITEMS * DIM], queries[QUERIES * DIM];
static uint64_t found[QUERIES * K], truth[QUERIES * K];

static void must(sl_status status) {
    if (status == SL_OK) return;
    fprintf(stderr, "%s: %s\n", sl_status_name(status), sl_last_error());
    exit(1);
}

/* A number in [-1, 1) from a linear congruential generator. */
static float number(void) {
    static uint64_t state = 7;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (float)(state >> 40) / 8388608.0f - 1.0f;
}

static void make_data(void) {
    for (size_t i = 0; i < CLUSTERS * DIM; i++)
        centres[i] = number();
    for (size_t i = 0; i < ITEMS * DIM; i++)
        items[i] = centres[i % (CLUSTERS * DIM)] + 0.5f * number();
    for (size_t i = 0; i < QUERIES * DIM; i++)
        queries[i] = centres[i % (CLUSTERS * DIM)] + 0.5f * number();
}

/* Returns the share of the true neighbours that were found. */
static double recall(void) {
    size_t hits = 0;
    for (size_t i = 0; i < QUERIES * K; i++)
        for (size_t j = i / K * K; j < i / K * K + K; j++)
            hits += found[i] == truth[j];
    return (double)hits / (QUERIES * K);
}

int main(void) {
    make_data();

    sl_index_params params;
    sl_index_params_init(&params); /* cosine, 8-bit codes */
    params.dim = DIM;
    params.refine = SL_REFINE_BF16;
    sl_index *index;
    must(sl_index_create(&params, &index));
    must(sl_index_add(index, items, SL_F32, ITEMS, 0, NULL, NULL));
    must(sl_index_search(index, queries, SL_F32, QUERIES, 0, K, NULL, found, NULL, NULL));
    sl_index_free(index);

    sl_exact_params exact_params;
    sl_exact_params_init(&exact_params);
    exact_params.dim = DIM;
    exact_params.k = K;
    sl_exact *exact;
    must(sl_exact_create(&exact_params, queries, QUERIES, 0, &exact));
    must(sl_exact_scan(exact, items, ITEMS, 0, 0));
    must(sl_exact_results(exact, truth, NULL));
    sl_exact_free(exact);

    printf("query 0: nearest item %llu\n", (unsigned long long)found[0]);
    printf("recall@%d over %d queries: %.3f\n", K, QUERIES, recall());
    return recall() >= 0.95 ? 0 : 1;
}
