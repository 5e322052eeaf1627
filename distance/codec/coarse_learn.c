/*
 * Learns the projection of coarse rows. Subspace iteration finds the directions in which a sample varies most, and a
 * random rotation mixes them.
 *
 * All large steps are sums of weighted rows: the products of the sample with itself, those of the iteration, and the
 * rotation. One thread makes each row of a result, in a fixed order. The result is therefore the same at any number of
 * threads.
 */
#include "base/random.h"
#include "base/thread.h"
#include "distance/codec/coarse.h"
#include "distance/codec/encode.h"
#include "distance/double.h"

#include <math.h>
#include <string.h>

/* The most vectors and floats of a sample. Vectors of up to MOST_PRODUCTS elements have the products of their elements
 * summed; longer vectors are multiplied whole. */
enum { MOST_ROWS = 16384, MOST_PRODUCTS = 2048, ROUNDS = 8, BLOCK = 64 };
#define MOST_FLOATS ((size_t)1 << 24)

typedef struct learner {
    const sl_allocator *allocator;
    size_t dim, wanted, n, threads; /* n: vectors of the sample */
    size_t side;                    /* side of the square of products: dim, or n for long vectors */
    size_t square;                  /* floats that `products` has room for */
    uint64_t seed, counter;
    float *sample;   /* n rows of dim */
    float *turned;   /* long vectors only: the sample transposed, dim rows of n */
    float *products; /* side rows of side */
    float *basis;    /* wanted rows of dim */
    float *work;     /* wanted rows of dim */
    double *mean;
} learner;

size_t sl_coarse_sample(const sl_coarse *coarse) {
    size_t dim = coarse->matrix.dim, most = dim > MOST_PRODUCTS ? MOST_PRODUCTS : MOST_ROWS;
    return MOST_FLOATS / dim < most ? MOST_FLOATS / dim : most;
}

static void learner_free(learner *l) {
    size_t row = l->dim * sizeof(float);
    sl_mem_free(l->allocator, l->sample, l->n * row);
    sl_mem_free(l->allocator, l->turned, l->n * row);
    SL_FREE_ARRAY(l->allocator, l->products, l->square);
    sl_mem_free(l->allocator, l->basis, l->wanted * row);
    sl_mem_free(l->allocator, l->work, l->wanted * row);
    SL_FREE_ARRAY(l->allocator, l->mean, l->dim);
}

/* Sets the sizes of a learner for a sample of up to n vectors. */
static void set_sizes(learner *l, const sl_coarse *coarse, size_t n) {
    const size_t most = sl_coarse_sample(coarse);
    l->dim = coarse->matrix.dim;
    l->wanted = coarse->codec.dim;
    l->n = n < most ? n : most;
    l->side = l->dim > MOST_PRODUCTS ? l->n : l->dim;
    l->square = l->wanted * l->wanted;
    if (l->n > l->wanted && l->wanted < l->dim) l->square = l->side * l->side;
}

size_t sl_coarse_learn_bytes(const sl_coarse *coarse, size_t n) {
    learner l = {0};
    set_sizes(&l, coarse, n);
    const size_t rows = (l.side != l.dim ? 2 : 1) * l.n + 2 * l.wanted;
    return (rows * l.dim + l.square) * sizeof(float) + l.dim * sizeof(double);
}

static sl_status learner_alloc(learner *l) {
    size_t row = l->dim * sizeof(float);
    void *block;
    SL_TRY(sl_mem_alloc(l->allocator, l->n * row, &block));
    l->sample = block;
    if (l->side != l->dim) {
        SL_TRY(sl_mem_alloc(l->allocator, l->n * row, &block));
        l->turned = block;
    }
    SL_TRY(sl_mem_alloc(l->allocator, l->square * sizeof(float), &block));
    l->products = block;
    SL_TRY(sl_mem_alloc(l->allocator, l->wanted * row, &block));
    l->basis = block;
    SL_TRY(sl_mem_alloc(l->allocator, l->wanted * row, &block));
    l->work = block;
    SL_TRY(sl_mem_alloc(l->allocator, l->dim * sizeof(double), &block));
    l->mean = block;
    return SL_OK;
}

/* Samples a random vector from each of l->n equal parts of all. */
static void take_sample(learner *l, const sl_coarse_vectors *vectors, sl_metric metric) {
    const size_t n = vectors->n;
#pragma omp parallel for schedule(static) num_threads((int)l->threads) if (l->threads > 1)
    for (size_t i = 0; i < l->n; i++) {
        size_t first = (size_t)((uint64_t)i * n / l->n), end = (size_t)((uint64_t)(i + 1) * n / l->n);
        float *x = l->sample + i * l->dim;
        vectors->get(vectors->ctx, first + (size_t)(sl_random_at(l->seed, i) % (end - first)), x);
        double norm2 = sl_dot_double(x, x, l->dim);
        if (!isfinite(norm2)) memset(x, 0, l->dim * sizeof *x);
        float scale = metric == SL_METRIC_COSINE && norm2 > 0 ? (float)(1 / sqrt(norm2)) : 1;
        for (size_t k = 0; k < l->dim; k++)
            x[k] *= scale;
    }
    l->counter = l->n;
}

/* Subtracts the mean, and scales the sample to a length of about 1, so that no product is too large. */
static void centre_sample(learner *l) {
    double spread = 0;
    for (size_t i = 0; i < l->n; i++)
        for (size_t k = 0; k < l->dim; k++)
            l->mean[k] += (double)l->sample[i * l->dim + k];
    for (size_t k = 0; k < l->dim; k++)
        l->mean[k] = (double)(float)(l->mean[k] / (double)l->n);
    for (size_t i = 0; i < l->n; i++) {
        float *x = l->sample + i * l->dim;
        for (size_t k = 0; k < l->dim; k++)
            x[k] -= (float)l->mean[k];
        spread += sl_dot_double(x, x, l->dim) / (double)l->n;
    }
    float scale = spread > 0 ? (float)(1 / sqrt(spread)) : 0;
    for (size_t i = 0; i < l->n * l->dim; i++)
        l->sample[i] *= isfinite(scale) ? scale : 0;
}

/* Adds to out[k] the sum over `count` rows of weight * row[k]. Weights lie `step` apart. */
static void add_rows(float *restrict out, size_t size, const float *rows, size_t pitch, const float *weights,
                     size_t step, size_t count) {
    size_t i = 0;
    for (; i + 4 <= count; i += 4) {
        const float *a = rows + i * pitch, *b = a + pitch, *c = b + pitch, *d = c + pitch;
        float p = weights[i * step], q = weights[(i + 1) * step], r = weights[(i + 2) * step];
        float s = weights[(i + 3) * step];
        for (size_t k = 0; k < size; k++)
            out[k] += (p * a[k] + q * b[k]) + (r * c[k] + s * d[k]);
    }
    for (; i < count; i++)
        for (size_t k = 0; k < size; k++)
            out[k] += weights[i * step] * rows[i * pitch + k];
}

/* Sums the products of the columns of `count` rows of `side` elements. */
static void multiply_columns(learner *l, const float *rows, size_t count) {
    size_t side = l->side;
    for (size_t first = 0; first < count; first += BLOCK) {
        const float *block = rows + first * side;
        size_t some = count - first < BLOCK ? count - first : BLOCK;
#pragma omp parallel for schedule(dynamic, 8) num_threads((int)l->threads) if (l->threads > 1)
        for (size_t j = 0; j < side; j++)
            add_rows(l->products + j * side + j, side - j, block + j, side, block + j, side, some);
    }
    for (size_t j = 0; j < side; j++)
        for (size_t k = 0; k < j; k++)
            l->products[j * side + k] = l->products[k * side + j];
}

/* Makes each row of `to` a combination of `rows`, by the weights in a row of `weights`. */
static void combine_rows(const learner *l, float *to, size_t size, const float *rows, const float *weights,
                         size_t count) {
#pragma omp parallel for schedule(static) num_threads((int)l->threads) if (l->threads > 1)
    for (size_t i = 0; i < l->wanted; i++) {
        memset(to + i * size, 0, size * sizeof *to);
        add_rows(to + i * size, size, rows, size, weights + i * count, 1, count);
    }
}

/* Fills a row with roughly normal numbers, each the sum of four uniform ones. */
static void random_row(learner *l, float *row, size_t size) {
    for (size_t k = 0; k < size; k++) {
        uint64_t bits = sl_random_at(l->seed, l->counter++);
        float sum = 0;
        for (int part = 0; part < 4; part++)
            sum += (float)(bits >> (16 * part) & 0xffff);
        row[k] = sum * 0x1p-16f - 2;
    }
}

static void remove_earlier(float *rows, size_t size, size_t i) {
    float *row = rows + i * size;
    for (size_t j = 0; j < i; j++) {
        const float *other = rows + j * size;
        float along = (float)sl_dot_double(row, other, size);
        for (size_t k = 0; k < size; k++)
            row[k] -= along * other[k];
    }
}

static int make_unit(float *row, size_t size) {
    double length = sqrt(sl_dot_double(row, row, size));
    float scale = (float)(1 / length);
    if (!isfinite(scale)) return 0;
    for (size_t k = 0; k < size; k++)
        row[k] *= scale;
    return 1;
}

/* Gram-Schmidt, twice for each row. If the earlier rows leave only rounding errors of a row, a random row replaces
 * it. */
static void make_orthonormal(learner *l, float *rows, size_t size) {
    for (size_t i = 0; i < l->wanted; i++) {
        float *row = rows + i * size;
        for (int ready = make_unit(row, size); !ready;) {
            random_row(l, row, size);
            ready = make_unit(row, size);
        }
        remove_earlier(rows, size, i);
        while (sl_dot_double(row, row, size) < 1e-8 || !make_unit(row, size)) {
            random_row(l, row, size);
            (void)make_unit(row, size);
            remove_earlier(rows, size, i);
        }
        remove_earlier(rows, size, i);
        (void)make_unit(row, size);
    }
}

static void random_basis(learner *l, float *rows, size_t size) {
    for (size_t i = 0; i < l->wanted; i++)
        random_row(l, rows + i * size, size);
    make_orthonormal(l, rows, size);
}

/* Subspace iteration: finds the `wanted` directions of the largest products, in `basis`. */
static void iterate_subspace(learner *l) {
    random_basis(l, l->basis, l->side);
    for (int round = 0; round < ROUNDS; round++) {
        combine_rows(l, l->work, l->side, l->products, l->basis, l->side);
        float *swap = l->basis;
        l->basis = l->work;
        l->work = swap;
        make_orthonormal(l, l->basis, l->side);
    }
}

/* Learns the directions. A sample of long vectors has fewer vectors than elements. Their directions are combinations of
 * vectors, found from products of whole vectors. */
static void learn_directions(learner *l) {
    if (l->side == l->dim) {
        multiply_columns(l, l->sample, l->n);
        iterate_subspace(l);
        return;
    }
    for (size_t i = 0; i < l->n; i++)
        for (size_t k = 0; k < l->dim; k++)
            l->turned[k * l->n + i] = l->sample[i * l->dim + k];
    multiply_columns(l, l->turned, l->dim);
    iterate_subspace(l);
    combine_rows(l, l->work, l->dim, l->sample, l->basis, l->n);
    memcpy(l->basis, l->work, l->wanted * l->dim * sizeof(float));
    make_orthonormal(l, l->basis, l->dim);
}

/* If all directions are wanted, they are only rotated. If there are no more vectors than directions, the vectors are
 * the directions, and random ones fill up. */
static void learn_basis(learner *l) {
    if (l->wanted == l->dim) {
        random_basis(l, l->basis, l->dim);
        return;
    }
    if (l->n > l->wanted) {
        learn_directions(l);
    } else {
        memcpy(l->basis, l->sample, l->n * l->dim * sizeof(float));
        make_orthonormal(l, l->basis, l->dim);
    }
    /* The products are not needed any more; their memory takes the rotation. */
    random_basis(l, l->products, l->wanted);
    combine_rows(l, l->work, l->dim, l->basis, l->products, l->wanted);
    memcpy(l->basis, l->work, l->wanted * l->dim * sizeof(float));
}

static void write_projection(const learner *l, const sl_coarse *coarse, size_t n, uint8_t *to) {
    const sl_codec *matrix = &coarse->matrix;
    for (size_t i = 0; i < l->wanted; i++)
        sl_encode_row(matrix, l->basis + i * l->dim, SL_F32, to + i * matrix->rows.pitch, l->work, NULL);
    to += l->wanted * matrix->rows.pitch;
    for (size_t k = 0; k < l->dim; k++)
        ((float *)(void *)to)[k] = (float)l->mean[k];
    uint32_t learned = (uint32_t)n;
    memcpy(to + l->dim * sizeof(float), &learned, sizeof learned);
}

sl_status sl_coarse_learn(const sl_coarse *coarse, const sl_allocator *allocator, const sl_coarse_vectors *vectors,
                          uint64_t seed, size_t threads, uint8_t *projection) {
    learner l = {.allocator = allocator, .threads = threads, .seed = seed};
    set_sizes(&l, coarse, vectors->n);
    sl_status status = learner_alloc(&l);
    if (status == SL_OK) {
        take_sample(&l, vectors, coarse->metric);
        centre_sample(&l);
        learn_basis(&l);
        write_projection(&l, coarse, vectors->n, projection);
    }
    learner_free(&l);
    return status;
}
