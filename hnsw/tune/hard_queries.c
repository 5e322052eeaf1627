#include "hnsw/tune/hard_queries.h"

#include <math.h>

/* Queries are sorted into so many levels by how much of the truth they found. */
enum { LEVELS = 1024 };

/* The hard queries: these parts of all queries, those that found least. */
static const double tails[] = {0.01, 0.05};

/* Queries `first`, first + step, and so on, and what two ways of searching found of k for each. */
typedef struct sample {
    const uint32_t *alone, *with;
    size_t nq, k, first, step;
} sample;

typedef struct tail {
    double mean, error;
} tail;

static size_t count_of(const sample *sample) {
    return (sample->nq - sample->first + sample->step - 1) / sample->step;
}

/* Returns the recall of the `share` of the queries that found least, and its standard error. The error counts that it
 * is not certain which queries these are. */
static tail tail_of(const sample *sample, const uint32_t *hits, double share) {
    size_t counts[LEVELS + 1] = {0};
    for (size_t q = sample->first; q < sample->nq; q += sample->step)
        counts[(size_t)hits[q] * LEVELS / sample->k]++;
    const double n = ceil(share * (double)count_of(sample));
    double left = n, sum = 0, squares = 0, border = 0;
    for (size_t level = 0; level <= LEVELS && left > 0; level++) {
        double here = fmin((double)counts[level], left), recall = (double)level / LEVELS;
        sum += here * recall;
        squares += here * recall * recall;
        if (here > 0) border = recall;
        left -= here;
    }
    double mean = sum / n, variance = fmax(0, squares / n - mean * mean) + (border - mean) * (border - mean);
    /* A few queries that are alike by chance are no more certain than one hit. */
    return (tail){mean, fmax(sqrt(variance / n), 1 / ((double)sample->k * sqrt(n)))};
}

/* Tells whether no more queries fell below half of the truth than rose above it, but for as many as chance moves. */
static int keeps_half(const sample *sample, double errors) {
    size_t fell = 0, rose = 0;
    for (size_t q = sample->first; q < sample->nq; q += sample->step) {
        int before = 2 * (size_t)sample->alone[q] < sample->k, after = 2 * (size_t)sample->with[q] < sample->k;
        fell += after && !before;
        rose += before && !after;
    }
    return (double)fell - (double)rose <= errors * sqrt((double)(fell + rose));
}

/* Tells whether the mean did not fall by more than `errors` standard errors of the queries' differences. */
static int keeps_mean(const sample *sample, double errors) {
    double n = (double)count_of(sample), sum = 0, squares = 0;
    for (size_t q = sample->first; q < sample->nq; q += sample->step) {
        double difference = (double)sample->with[q] - (double)sample->alone[q];
        sum += difference;
        squares += difference * difference;
    }
    double variance = fmax(0, squares / n - sum / n * (sum / n));
    return sum / n >= -errors * sqrt(variance / n);
}

static int keeps_tails(const sample *sample, double errors) {
    for (size_t i = 0; i < sizeof tails / sizeof *tails; i++) {
        tail alone = tail_of(sample, sample->alone, tails[i]), with = tail_of(sample, sample->with, tails[i]);
        if (with.mean < alone.mean - errors * hypot(alone.error, with.error)) return 0;
    }
    return 1;
}

/* A half of the queries gets twice the tolerance: six things are asked of the halves, and chance is against each. */
int sl_tune_is_no_worse(const uint32_t *alone, const uint32_t *with, size_t nq, size_t k) {
    for (size_t part = 0; part < 3; part++) {
        const sample sample = {alone, with, nq, k, part ? part - 1 : 0, part ? 2 : 1};
        double errors = part ? 2 : 1;
        if (!keeps_tails(&sample, errors) || !keeps_half(&sample, errors)) return 0;
        if (part && !keeps_mean(&sample, errors)) return 0;
    }
    return 1;
}
