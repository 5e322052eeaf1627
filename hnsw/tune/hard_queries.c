#include "hnsw/tune/hard_queries.h"

#include <math.h>

/* Queries are sorted by their recall into this many levels. */
enum { LEVELS = 1024 };

/* The hard queries are those with the lowest recall: these shares of all queries. */
static const double tails[] = {0.01, 0.05};

/* Queries `first`, first + step, and so on, with the hits of two settings. */
typedef struct sample {
    const uint32_t *alone, *with;
    size_t nq, k, first, step;
} sample;

typedef struct tail {
    double mean, error;
} tail;

static size_t sample_size(const sample *sample) {
    return (sample->nq - sample->first + sample->step - 1) / sample->step;
}

/* Returns the mean recall of the `share` of queries with the lowest recall, and its standard error. The error includes
 * the uncertainty about which queries these are. */
static tail lowest_recall(const sample *sample, const uint32_t *hits, double share) {
    size_t counts[LEVELS + 1] = {0};
    for (size_t q = sample->first; q < sample->nq; q += sample->step)
        counts[(size_t)hits[q] * LEVELS / sample->k]++;
    const double n = ceil(share * (double)sample_size(sample));
    double left = n, sum = 0, squares = 0, border = 0;
    for (size_t level = 0; level <= LEVELS && left > 0; level++) {
        double here = fmin((double)counts[level], left), recall = (double)level / LEVELS;
        sum += here * recall;
        squares += here * recall * recall;
        if (here > 0) border = recall;
        left -= here;
    }
    double mean = sum / n, variance = fmax(0, squares / n - mean * mean) + (border - mean) * (border - mean);
    /* If a few queries agree by chance, the mean is still no more certain than one hit. */
    return (tail){mean, fmax(sqrt(variance / n), 1 / ((double)sample->k * sqrt(n)))};
}

/* Returns whether, up to chance, no more queries fell below half of their true neighbours than rose above it. */
static int keeps_half(const sample *sample, double errors) {
    size_t fell = 0, rose = 0;
    for (size_t q = sample->first; q < sample->nq; q += sample->step) {
        int before = 2 * (size_t)sample->alone[q] < sample->k, after = 2 * (size_t)sample->with[q] < sample->k;
        fell += after && !before;
        rose += before && !after;
    }
    return (double)fell - (double)rose <= errors * sqrt((double)(fell + rose));
}

/* Returns whether the mean did not fall by more than `errors` standard errors of the differences. */
static int keeps_mean(const sample *sample, double errors) {
    double n = (double)sample_size(sample), sum = 0, squares = 0;
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
        tail alone = lowest_recall(sample, sample->alone, tails[i]),
             with = lowest_recall(sample, sample->with, tails[i]);
        if (with.mean < alone.mean - errors * hypot(alone.error, with.error)) return 0;
    }
    return 1;
}

/* Each half of the queries gets twice the tolerance: the halves must pass six tests, and each test may fail by chance.
 */
int sl_tune_is_no_worse(const uint32_t *alone, const uint32_t *with, size_t nq, size_t k) {
    for (size_t part = 0; part < 3; part++) {
        const sample sample = {
            .alone = alone, .with = with, .nq = nq, .k = k, .first = part ? part - 1 : 0, .step = part ? 2 : 1};
        double errors = part ? 2 : 1;
        if (!keeps_tails(&sample, errors) || !keeps_half(&sample, errors)) return 0;
        if (part && !keeps_mean(&sample, errors)) return 0;
    }
    return 1;
}
