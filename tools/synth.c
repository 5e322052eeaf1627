/*
 * synth N DIM SEED base|queries OUT.fbin: synthetic vectors, the same bytes on every machine and at any thread count.
 *
 * The vectors have the properties that make real embeddings hard or easy to search. Clusters are of very unequal size,
 * with a low intrinsic dimension inside each, and a little noise in all dimensions. Lengths have a log-normal spread,
 * so that the inner product and the cosine differ. A row is
 *
 *     exp(0.35 g) · (centre + 0.8 · Σ zᵣ axisᵣ + 0.2 · noise)
 *
 * Centres have a length of about 1, and are drawn over SPAN shared directions. The RANK axes have a length of about
 * 1/√RANK; clusters share them in GROUPS groups. g, z and noise are normal. Every number is a function of the seed and
 * its own position. All threads make rows in blocks, and 10^8 rows need no more memory than 10^4.
 */
#include "tools/draw.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SPAN = 32, RANK = 24, GROUPS = 64, MAX_CLUSTERS = 1024, BLOCK_BYTES = 1 << 25 };

/* Streams of random numbers that must not meet: each is a seed of its own. */
enum stream { STREAM_DIRECTIONS = 1, STREAM_CENTRES, STREAM_AXES, STREAM_BASE, STREAM_QUERIES };

struct model {
    size_t dim, clusters;
    float *centres; /* (clusters, dim) */
    float *axes;    /* (GROUPS, RANK, dim) */
};

static uint64_t stream_seed(uint64_t seed, enum stream stream) {
    return sl_random_at(seed, (uint64_t)stream);
}

/* out += weight · row */
static void add_scaled(float *restrict out, const float *restrict row, float weight, size_t dim) {
    for (size_t i = 0; i < dim; i++)
        out[i] += weight * row[i];
}

static void fill_normal(float *out, size_t n, uint64_t seed, float scale) {
    for (size_t i = 0; i < n; i++)
        out[i] = scale * normal_at(seed, i);
}

static int model_make(struct model *model, size_t dim, size_t clusters, uint64_t seed) {
    *model = (struct model){.dim = dim, .clusters = clusters};
    float *directions = malloc(SPAN * dim * sizeof *directions);
    model->centres = calloc(clusters * dim, sizeof *model->centres);
    model->axes = malloc((size_t)GROUPS * RANK * dim * sizeof *model->axes);
    if (!directions || !model->centres || !model->axes) {
        free(directions);
        return 0;
    }
    float unit = 1.0f / sqrtf((float)dim);
    fill_normal(directions, SPAN * dim, stream_seed(seed, STREAM_DIRECTIONS), unit / sqrtf((float)SPAN));
    fill_normal(model->axes, (size_t)GROUPS * RANK * dim, stream_seed(seed, STREAM_AXES), unit / sqrtf((float)RANK));
    uint64_t centre_seed = stream_seed(seed, STREAM_CENTRES);
    for (size_t c = 0; c < clusters; c++) {
        for (size_t s = 0; s < SPAN; s++) {
            add_scaled(model->centres + c * dim, directions + s * dim, normal_at(centre_seed, c * SPAN + s), dim);
        }
    }
    free(directions);
    return 1;
}

static void model_free(struct model *model) {
    free(model->centres);
    free(model->axes);
}

static void make_row(const struct model *model, uint64_t stream, uint64_t row, float *out) {
    uint64_t seed = sl_random_at(stream, row);
    uint64_t counter = 0;
    /* The square of a uniform number: a tenth of the clusters holds a third of the rows. */
    double u = (double)(sl_random_at(seed, counter++) >> 11) * 0x1p-53;
    size_t cluster = (size_t)(u * u * (double)model->clusters);
    const float *axes = model->axes + (cluster % GROUPS) * RANK * model->dim;
    float length = grow(0.35f * normal_at(seed, counter++));
    memcpy(out, model->centres + cluster * model->dim, model->dim * sizeof *out);
    for (size_t r = 0; r < RANK; r++) {
        add_scaled(out, axes + r * model->dim, 0.8f * normal_at(seed, counter++), model->dim);
    }
    float noise = 0.2f / sqrtf((float)model->dim);
    for (size_t i = 0; i < model->dim; i++)
        out[i] = length * (out[i] + noise * normal_at(seed, counter + i));
}

static int write_rows(const struct model *model, size_t n, uint64_t stream, FILE *file) {
    size_t row_bytes = model->dim * sizeof(float);
    size_t block = BLOCK_BYTES / row_bytes ? BLOCK_BYTES / row_bytes : 1;
    float *rows = malloc(block * row_bytes);
    if (!rows) return 0;
    uint32_t header[2] = {(uint32_t)n, (uint32_t)model->dim};
    int ok = fwrite(header, sizeof header, 1, file) == 1;
    for (size_t first = 0; ok && first < n; first += block) {
        size_t count = n - first < block ? n - first : block;
#pragma omp parallel for schedule(static)
        for (size_t i = 0; i < count; i++)
            make_row(model, stream, first + i, rows + i * model->dim);
        ok = fwrite(rows, row_bytes, count, file) == count;
    }
    free(rows);
    return ok;
}

int main(int argc, char **argv) {
    unsigned long long n = 0, dim = 0, seed = 0;
    int is_base = argc == 6 && strcmp(argv[4], "base") == 0;
    if (argc != 6 || (!is_base && strcmp(argv[4], "queries") != 0) || !parse_number(argv[1], UINT32_MAX, &n) ||
        !parse_number(argv[2], 65536, &dim) || !parse_number(argv[3], UINT64_MAX, &seed) || n == 0 || dim == 0) {
        fprintf(stderr, "usage: synth N DIM SEED base|queries OUT.fbin\n"
                        "N from 1 to 4294967295, DIM from 1 to 65536, SEED from 0\n");
        return 2;
    }
    int status = 1;
    /* The model must not depend on N, or queries would come from other clusters than the base. Fewer clusters bound the
     * memory where rows are long. */
    size_t clusters = ((size_t)1 << 28) / ((size_t)dim * sizeof(float));
    if (clusters > MAX_CLUSTERS) clusters = MAX_CLUSTERS;
    struct model model = {0};
    FILE *file = NULL;
    if (!model_make(&model, (size_t)dim, clusters, seed)) {
        fprintf(stderr, "synth: out of memory\n");
        goto done;
    }
    file = fopen(argv[5], "wb");
    if (!file || !write_rows(&model, (size_t)n, stream_seed(seed, is_base ? STREAM_BASE : STREAM_QUERIES), file)) {
        fprintf(stderr, "synth: cannot write %s: %s\n", argv[5], strerror(errno));
        goto done;
    }
    status = 0;
done:
    if (file && fclose(file) != 0 && status == 0) {
        fprintf(stderr, "synth: cannot write %s: %s\n", argv[5], strerror(errno));
        status = 1;
    }
    model_free(&model);
    return status;
}
