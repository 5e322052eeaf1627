#include "tests/hnsw/search/allowed_rows.h"

#include "base/random.h"
#include "tests/support/clusters.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

float *x;
const float *queries;
uint64_t bits[WORDS];

uint64_t id_of(size_t row) {
    return STEP * (N - 1 - row);
}

size_t row_of(uint64_t id) {
    return N - 1 - id / STEP;
}

void rows_set_up(void) {
    x = clusters_make(N + Q, DIM, 0.3, 21);
    queries = x + N * DIM;
    memset(bits, 0, sizeof bits);
}

void rows_tear_down(void) {
    free(x);
}

sl_index *index_of(sl_metric metric, sl_codes codes, sl_refine refine, size_t n) {
    uint64_t *ids = malloc(n * sizeof *ids);
    for (size_t i = 0; i < n; i++)
        ids[i] = id_of(i);
    sl_index_params params;
    indexes_params(&params, DIM, metric);
    params.codes = codes;
    params.refine = refine;
    sl_index *index = indexes_make(&params, x, SL_F32, n, ids, 1);
    free(ids);
    return index;
}

int is_allowed(uint64_t id) {
    return bits[id / 64] >> (id % 64) & 1;
}

void allow(size_t row, int allowed) {
    uint64_t id = id_of(row), bit = UINT64_C(1) << (id % 64);
    bits[id / 64] = allowed ? bits[id / 64] | bit : bits[id / 64] & ~bit;
}

size_t allow_every(size_t every, uint64_t which) {
    size_t count = 0;
    for (size_t row = 0; row < N; row++) {
        int allowed = every && sl_random_at(which, row) % every == 0;
        allow(row, allowed);
        count += (size_t)allowed;
    }
    return count;
}

void truth(sl_metric metric, uint64_t *ids) {
    float *kept = malloc(N * DIM * sizeof *kept);
    size_t *rows = malloc(N * sizeof *rows), count = 0;
    for (size_t row = 0; row < N; row++) {
        if (!is_allowed(id_of(row))) continue;
        memcpy(kept + count * DIM, x + row * DIM, DIM * sizeof *kept);
        rows[count++] = row;
    }
    indexes_exact(metric, DIM, (vector_rows){kept, SL_F32, count}, (vector_rows){queries, SL_F32, Q}, K, ids);
    for (size_t i = 0; i < Q * K; i++)
        if (ids[i] != SL_NO_ID) ids[i] = id_of(rows[ids[i]]);
    free(kept);
    free(rows);
}

size_t expect_lawful(const uint64_t *ids, const float *scores) {
    size_t found = 0;
    for (size_t i = 0; i < Q * K; i++) {
        ck_assert_int_eq(isnan(scores[i]) != 0, ids[i] == SL_NO_ID);
        if (ids[i] == SL_NO_ID) continue;
        ck_assert(i % K == 0 || ids[i - 1] != SL_NO_ID);
        ck_assert_uint_lt(ids[i], STEP * N);
        ck_assert(is_allowed(ids[i]));
        for (size_t j = i / K * K; j < i; j++)
            ck_assert_uint_ne(ids[j], ids[i]);
        found++;
    }
    return found;
}

const rows_kind kinds[KINDS] = {{SL_METRIC_COSINE, SL_CODES_I4, SL_REFINE_NONE},
                                {SL_METRIC_COSINE, SL_CODES_I8, SL_REFINE_F32},
                                {SL_METRIC_L2, SL_CODES_I8, SL_REFINE_NONE},
                                {SL_METRIC_L2, SL_CODES_F32, SL_REFINE_NONE},
                                {SL_METRIC_IP, SL_CODES_I4, SL_REFINE_NONE}};

sl_filter *filter_of_bits(sl_index *index) {
    sl_filter_params params;
    sl_filter *filter;
    sl_filter_params_init(&params);
    params.bits = bits;
    params.bits_count = STEP * N;
    ck_ok(sl_filter_create(index, &params, &filter));
    return filter;
}

static float dot(const float *a, const float *b) {
    float sum = 0;
    for (size_t d = 0; d < DIM; d++)
        sum += a[d] * b[d];
    return sum;
}

int is_near(size_t row, const float *query, float least) {
    const float *of = x + row * DIM;
    return dot(of, query) > least * sqrtf(dot(of, of) * dot(query, query));
}
