#include "tests/support/clusters.h"

#include "base/random.h"

#include <math.h>
#include <stdlib.h>

enum { CLUSTERS = 40, LATENT = 10 };

/* Standard normal. */
static double normal(uint64_t seed, uint64_t counter) {
    double angle = 6.283185307179586 * sl_random_unit(seed, 2 * counter);
    return sqrt(-2 * log(sl_random_unit(seed, 2 * counter + 1))) * cos(angle);
}

static void *block_of(size_t count, size_t size) {
    void *block = malloc(count * size + 1);
    if (!block) abort();
    return block;
}

float *clusters_make(size_t n, size_t dim, double spread, uint64_t seed) {
    float *out = block_of(n * dim, sizeof *out);
    double *mix = block_of((LATENT + 1) * dim, sizeof *mix), latent[LATENT];
    for (size_t i = 0; i < LATENT * dim; i++)
        mix[i] = normal(seed, i);
    for (size_t i = 0; i < n; i++) {
        uint64_t own = sl_random_at(seed ^ 0x636c7573, i), cluster = own % CLUSTERS;
        for (size_t j = 0; j < LATENT; j++)
            latent[j] = normal(seed + 1, cluster * LATENT + j) + 0.5 * normal(own, j);
        double length = exp(spread * normal(own, LATENT)) / 10;
        for (size_t d = 0; d < dim; d++) {
            double sum = 0.3 * normal(own, LATENT + 1 + d);
            for (size_t j = 0; j < LATENT; j++)
                sum += latent[j] * mix[j * dim + d];
            out[i * dim + d] = (float)(length * sum);
        }
    }
    free(mix);
    return out;
}

static double largest(const float *from, size_t count) {
    double most = 0;
    for (size_t i = 0; i < count; i++)
        if (fabs((double)from[i]) > most) most = fabs((double)from[i]);
    return most;
}

void *clusters_as(sl_dtype dtype, const float *from, size_t count) {
    void *out = block_of(count, sl_dtype_size(dtype));
    if (dtype == SL_F32 || dtype == SL_F16 || dtype == SL_BF16) {
        if (sl_convert(from, SL_F32, out, dtype, count) != SL_OK) abort();
        return out;
    }
    double scale = (dtype == SL_I16 ? 32767 : 127) / largest(from, count);
    for (size_t i = 0; i < count; i++) {
        long value = lround((double)from[i] * scale);
        if (dtype == SL_I8) ((int8_t *)out)[i] = (int8_t)value;
        if (dtype == SL_U8) ((uint8_t *)out)[i] = (uint8_t)(value + 128);
        if (dtype == SL_I16) ((int16_t *)out)[i] = (int16_t)value;
    }
    return out;
}
