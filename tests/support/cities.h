/* Vectors of cities: close to one another and far from the origin, under L2. */
#ifndef SL_TESTS_CITIES_H
#define SL_TESTS_CITIES_H

#include "base/random.h"
#include "tests/support/indexes.h"

#include <stdlib.h>
#include <string.h>

/* Returns a random number from -1 to 1. */
static inline float cities_draw(uint64_t seed, uint64_t i) {
    return (float)(sl_random_at(seed, i) >> 40) * 0x1p-23f - 1;
}

/* Places up to `spread` away from one of the cities, which are about `far` from the origin. */
typedef struct cities {
    size_t dim, count;
    uint64_t seed;
    float far, spread;
} cities;

/* Fills rows [first, end) of x. */
static inline void cities_settle(float *x, size_t first, size_t end, cities of) {
    for (size_t i = first; i < end; i++) {
        const size_t city = i % of.count;
        for (size_t j = 0; j < of.dim; j++)
            x[i * of.dim + j] = of.far * (1 + cities_draw(of.seed, city * of.dim + j) / 2) +
                                of.spread * cities_draw(of.seed + 1, i * of.dim + j);
    }
}

static inline sl_index_params cities_params(size_t dim, sl_codes codes) {
    sl_index_params params;
    indexes_params(&params, dim, SL_METRIC_L2);
    params.codes = codes;
    params.m = 16;
    params.ef_construction = 200;
    return params;
}

/* Makes a filter that allows every seventh of rows [0, n) of x, and the true neighbours of the queries among these. */
static inline sl_filter *cities_filter(sl_index *index, const float *x, size_t dim, size_t n,
                                       const vector_rows *queries, size_t k, uint64_t *truth) {
    const size_t step = 7;
    uint64_t *allowed = malloc((n / step + 1) * sizeof *allowed);
    float *rows = malloc((n / step + 1) * dim * sizeof *rows);
    sl_filter_params filtering;
    sl_filter *filter;
    size_t count = 0;
    ck_assert(allowed && rows);
    for (size_t i = 0; i < n; i += step, count++) {
        allowed[count] = i;
        memcpy(rows + count * dim, x + i * dim, dim * sizeof *rows);
    }
    indexes_exact(SL_METRIC_L2, dim, (vector_rows){rows, SL_F32, count}, *queries, k, truth);
    for (size_t i = 0; i < queries->count * k; i++)
        truth[i] = allowed[truth[i]];
    sl_filter_params_init(&filtering);
    filtering.allow = allowed;
    filtering.allow_count = count;
    ck_ok(sl_filter_create(index, &filtering, &filter));
    free(rows);
    free(allowed);
    return filter;
}

#endif
