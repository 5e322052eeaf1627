/* Vectors of cities: close to one another and far from the origin, under L2. */
#ifndef SL_TESTS_CITIES_H
#define SL_TESTS_CITIES_H

#include "base/random.h"
#include "tests/support/indexes.h"

/* From -1 to 1. */
static inline float cities_draw(uint64_t seed, uint64_t i) {
    return (float)(sl_random_at(seed, i) >> 40) * 0x1p-23f - 1;
}

/* Fills rows [first, end) of x: places up to `spread` away from one of the cities, which are about `far` from the
 * origin. */
static inline void cities_settle(float *x, size_t first, size_t end, size_t dim, size_t cities, uint64_t seed,
                                 float far, float spread) {
    for (size_t i = first; i < end; i++) {
        const size_t city = i % cities;
        for (size_t j = 0; j < dim; j++)
            x[i * dim + j] =
                far * (1 + cities_draw(seed, city * dim + j) / 2) + spread * cities_draw(seed + 1, i * dim + j);
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

#endif
