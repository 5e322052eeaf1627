/* clicks FIRST COUNT SEED OUT.tsv [TRUTH]: rows FIRST to FIRST + COUNT of a synthetic click log, the same bytes on
 * every machine and at any thread count. TRUTH gets the probability that each row's label was drawn with.
 *
 * The file is laid out as the click logs that Criteo published: no header, tabs, a label of 0 or 1, 13 integers and 26
 * categories. A category is 8 hexadecimal digits. Any integer or category may be empty. The log has the shape of
 * Criteo's logs: the sizes of vocabularies (none above a million here), their skew, and the share of missing values.
 * The labels are drawn from a model that a wide & deep model can learn. The model has a weight for each category,
 * products of hidden vectors for some pairs of fields, and curves over the numbers. The model is the same for every
 * seed; a seed is another day of the same traffic. */
#include "tools/draw.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { NUMBERS = 13, CATEGORIES = 26, PAIRS = 8, RANK = 4, BLOCK_ROWS = 1 << 15, ROW_BYTES = 512 };

/* Streams of random numbers that must not meet. */
enum stream { STREAM_ROWS = 1, STREAM_NAMES, STREAM_WEIGHTS, STREAM_VECTORS };

/* Integers are floor(e^(mean + spread z)) - shift for a normal z, and missing in so many of a thousand rows. */
struct number {
    float mean, spread;
    int shift, missing;
    float slope, bend; /* of z and of z^2 - 1 in the logit */
};

static const struct number numbers[NUMBERS] = {
    {0.8f, 1.2f, 1, 450, 0.30f, 0.00f},  {1.5f, 2.0f, 3, 0, 0.10f, -0.12f},  {1.8f, 1.3f, 0, 215, -0.05f, 0.00f},
    {1.6f, 1.0f, 1, 217, -0.15f, 0.08f}, {8.0f, 1.5f, 1, 25, -0.25f, 0.00f}, {3.5f, 1.4f, 1, 223, -0.15f, 0.10f},
    {1.6f, 1.5f, 1, 43, 0.25f, 0.00f},   {2.1f, 1.1f, 1, 0, -0.05f, -0.10f}, {4.0f, 1.2f, 1, 43, 0.05f, 0.00f},
    {0.3f, 0.5f, 1, 450, 0.20f, 0.00f},  {0.9f, 0.9f, 1, 43, 0.15f, 0.00f},  {0.5f, 0.9f, 1, 765, 0.20f, 0.00f},
    {1.8f, 1.0f, 1, 215, -0.20f, 0.06f},
};

/* Categories: how many values, the logarithm of that, and missing in so many of a thousand rows. */
struct category {
    uint32_t values;
    float log;
    int missing;
};

static const struct category categories[CATEGORIES] = {
    {1460, 7.286f, 0},      {583, 6.368f, 0},       {1000000, 13.816f, 34}, {1000000, 13.816f, 34}, {305, 5.720f, 0},
    {24, 3.178f, 121},      {12517, 9.435f, 0},     {633, 6.450f, 0},       {3, 1.099f, 0},         {93145, 11.442f, 0},
    {5683, 8.645f, 0},      {1000000, 13.816f, 34}, {3194, 8.069f, 0},      {27, 3.296f, 0},        {14992, 9.615f, 0},
    {1000000, 13.816f, 34}, {10, 2.303f, 0},        {5652, 8.640f, 0},      {2173, 7.684f, 440},    {4, 1.386f, 440},
    {1000000, 13.816f, 34}, {18, 2.890f, 762},      {15, 2.708f, 0},        {286181, 12.564f, 34},  {105, 4.654f, 440},
    {142572, 11.868f, 440},
};

/* Fields whose hidden vectors are multiplied. */
static const int pairs[PAIRS][2] = {{0, 13}, {1, 16}, {4, 22}, {5, 7}, {13, 16}, {0, 8}, {17, 4}, {10, 1}};

/* These constants bring the clicks to a quarter of the rows, and the AUC of the drawn probabilities to about 0.80. */
static const float BIAS = -1.36f, WEIGHT = 0.16f, PRODUCT = 0.35f;

/* A value of a field as one number, for the streams of the model. */
static uint64_t position(int field, uint32_t value) {
    return (uint64_t)field << 32 | value;
}

static float weight_of(int field, uint32_t value) {
    return WEIGHT * normal_at(STREAM_WEIGHTS, position(field, value));
}

static float product_of(const int pair[2], const uint32_t *values) {
    float sum = 0.0f;
    for (uint64_t r = 0; r < RANK; r++)
        sum += normal_at(STREAM_VECTORS, position(pair[0], values[pair[0]]) * RANK + r) *
               normal_at(STREAM_VECTORS, position(pair[1], values[pair[1]]) * RANK + r);
    return sum * (PRODUCT / 2.0f); /* the square root of RANK */
}

/* A uniform power of the vocabulary's size: the value of rank k comes about 1/k as often as the first. */
static uint32_t draw_value(const struct category *category, double u) {
    double steps = ((double)grow((float)u * category->log) - 1.0) / ((double)grow(category->log) - 1.0);
    uint32_t value = (uint32_t)(steps * category->values);
    return value < category->values ? value : category->values - 1;
}

static int is_missing(uint64_t seed, uint64_t counter, int per_mille) {
    return sl_random_at(seed, counter) % 1000 < (uint64_t)per_mille;
}

/* Writes the row's numbers and adds their part of the logit. */
static char *write_numbers(uint64_t seed, char *at, float *logit) {
    for (uint64_t i = 0; i < NUMBERS; i++) {
        const struct number *number = &numbers[i];
        float z = normal_at(seed, 2 * i);
        *at++ = '\t';
        if (is_missing(seed, 2 * i + 1, number->missing)) continue;
        *logit += number->slope * z + number->bend * (z * z - 1.0f);
        at += sprintf(at, "%d", (int)grow(number->mean + number->spread * z) - number->shift);
    }
    return at;
}

/* The same of the categories. A missing one is a value of its own in the model. */
static char *write_categories(uint64_t seed, char *at, float *logit) {
    uint32_t values[CATEGORIES];
    for (int field = 0; field < CATEGORIES; field++) {
        uint64_t counter = 2 * (uint64_t)(NUMBERS + field);
        values[field] = draw_value(&categories[field], 1.0 - sl_random_unit(seed, counter));
        *at++ = '\t';
        if (is_missing(seed, counter + 1, categories[field].missing)) {
            values[field] = UINT32_MAX;
        } else {
            uint32_t name = (uint32_t)sl_random_at(STREAM_NAMES, position(field, values[field]));
            at += sprintf(at, "%08" PRIx32, name);
        }
        *logit += weight_of(field, values[field]);
    }
    for (int p = 0; p < PAIRS; p++)
        *logit += product_of(pairs[p], values);
    return at;
}

/* Writes a row, of at most ROW_BYTES, and returns its length. */
static size_t write_row(uint64_t stream, uint64_t row, char *out, float *probability) {
    uint64_t seed = sl_random_at(stream, row);
    float logit = BIAS;
    char *end = write_categories(seed, write_numbers(seed, out + 1, &logit), &logit);
    *end++ = '\n';
    *probability = 1.0f / (1.0f + grow(-logit));
    *out = sl_random_unit(seed, 2 * (NUMBERS + CATEGORIES)) < (double)*probability ? '1' : '0';
    return (size_t)(end - out);
}

/* The rows of one block lie ROW_BYTES apart. */
struct block {
    char *rows;
    size_t *lengths;
    float *probabilities;
};

static int write_block(const struct block *block, size_t count, FILE *file, FILE *truth) {
    for (size_t i = 0; i < count; i++) {
        if (fwrite(block->rows + i * ROW_BYTES, block->lengths[i], 1, file) != 1) return 0;
        if (truth && fprintf(truth, "%.4f\n", (double)block->probabilities[i]) < 0) return 0;
    }
    return 1;
}

static int write_rows(uint64_t stream, uint64_t first, uint64_t count, FILE *file, FILE *truth) {
    struct block block = {malloc((size_t)BLOCK_ROWS * ROW_BYTES), malloc(BLOCK_ROWS * sizeof *block.lengths),
                          malloc(BLOCK_ROWS * sizeof *block.probabilities)};
    int ok = block.rows && block.lengths && block.probabilities;
    if (!ok) errno = ENOMEM;
    for (uint64_t done = 0; ok && done < count; done += BLOCK_ROWS) {
        size_t n = count - done < BLOCK_ROWS ? (size_t)(count - done) : BLOCK_ROWS;
#pragma omp parallel for schedule(static)
        for (size_t i = 0; i < n; i++)
            block.lengths[i] = write_row(stream, first + done + i, block.rows + i * ROW_BYTES, &block.probabilities[i]);
        ok = write_block(&block, n, file, truth);
    }
    free(block.rows);
    free(block.lengths);
    free(block.probabilities);
    return ok;
}

/* Closes a file that was written; NULL is none. */
static int finish(FILE *file) {
    return !file || fclose(file) == 0;
}

int main(int argc, char **argv) {
    unsigned long long first = 0, count = 0, seed = 0;
    if ((argc != 5 && argc != 6) || !parse_number(argv[1], UINT32_MAX, &first) ||
        !parse_number(argv[2], UINT32_MAX, &count) || !parse_number(argv[3], UINT64_MAX, &seed) || count == 0) {
        fprintf(stderr, "usage: clicks FIRST COUNT SEED OUT.tsv [TRUTH]\n"
                        "FIRST from 0 and COUNT from 1 to 4294967295, SEED from 0\n");
        return 2;
    }
    FILE *file = fopen(argv[4], "wb");
    FILE *truth = file && argc == 6 ? fopen(argv[5], "wb") : NULL;
    int ok = file && (argc == 5 || truth) &&
             write_rows(sl_random_at((uint64_t)seed, STREAM_ROWS), first, count, file, truth);
    ok = finish(file) && ok;
    ok = finish(truth) && ok;
    if (!ok) fprintf(stderr, "clicks: cannot write %s or its truth: %s\n", argv[4], strerror(errno));
    return ok ? 0 : 1;
}
