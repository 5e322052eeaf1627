#include "ranker/quantise/search_bayesian.h"

#include "base/random.h"

#include <math.h>
#include <string.h>

/* Choices drawn by chance after the first, before the model is asked. */
enum { DRAWN_FIRST = 4 };
/* Choices that are looked at for each trial: all of them, or so many drawn, and those beside the best. */
enum { LOOKED_AT = 4096 };
/* Layers' weights are chosen anew after each choice, up to so many. */
enum { WEIGHED = 128 };

/* The correlation of two choices: a share that is a weighted mean over layers, because layers' drops nearly add up, and
 * the rest a product. Layers weigh the same, or one has a share and the others the rest. noise keeps the factor's
 * pivots above 0. */
static const double additive = 0.8, foremost = 0.7, noise = 1e-6;
/* Drops count on a scale that is linear up to the bound and logarithmic beyond: a layer that spoils everything would
 * else hide the others. A bound below this one is no unit. */
static const double least_unit = 1e-4;
/* The search ends below this share of the base's cost. */
static const double least_improvement = 1e-6;

/* A Gaussian process over the choices judged so far. */
typedef struct model {
    const sl_bayesian *problem;
    size_t count, room;
    size_t (*points)[SL_MAX_LAYERS];
    double *drops;  /* scaled */
    double *factor; /* the lower Cholesky factor of the correlations, (room, room) */
    double *whole;  /* factor^-1 (drops - mean) */
    double *solved; /* scratch of a prediction */
    double mean, variance;
    double weights[SL_MAX_LAYERS]; /* of layers; their sum is 1 */
    size_t best[SL_MAX_LAYERS];    /* the cheapest within the bound */
    double best_cost;
} model;

static double scaled(const sl_bayesian *problem, double drop) {
    double unit = problem->bound > least_unit ? problem->bound : least_unit;
    return asinh(drop / unit);
}

/* ---------------------------------------------------------------------------------------------------------------
 * The process (Rasmussen and Williams 2006, chapter 2)
 * ------------------------------------------------------------------------------------------------------------- */

static double correlation(const model *m, const size_t *a, const size_t *b) {
    double sum = 0, product = 1;
    for (size_t l = 0; l < m->problem->layers; l++) {
        double same = exp(-m->problem->distance(a[l], b[l]));
        sum += m->weights[l] * same;
        product *= same;
    }
    return additive * sum + (1 - additive) * product;
}

/* Solves factor * out = right for the first n unknowns. */
static void solve(const model *m, const double *right, size_t n, double *out) {
    for (size_t i = 0; i < n; i++) {
        double left = right[i];
        for (size_t j = 0; j < i; j++)
            left -= m->factor[i * m->room + j] * out[j];
        out[i] = left / m->factor[i * m->room + i];
    }
}

static void correlate(const model *m, const size_t *options, double *out) {
    for (size_t i = 0; i < m->count; i++)
        out[i] = correlation(m, m->points[i], options);
}

/* Adds the row of choice n to the factor of those before it. */
static void factor_row(model *m, size_t n) {
    double *row = m->factor + n * m->room, pivot = 1 + noise;
    for (size_t i = 0; i < n; i++)
        m->solved[i] = correlation(m, m->points[i], m->points[n]);
    solve(m, m->solved, n, row);
    for (size_t i = 0; i < n; i++)
        pivot -= row[i] * row[i];
    row[n] = sqrt(pivot > noise ? pivot : noise);
}

/* Fits mean and variance to the drops. */
static void fit(model *m) {
    double sum = 0, square = 0;
    for (size_t i = 0; i < m->count; i++)
        sum += m->drops[i];
    m->mean = sum / (double)m->count;
    for (size_t i = 0; i < m->count; i++)
        m->solved[i] = m->drops[i] - m->mean;
    solve(m, m->solved, m->count, m->whole);
    for (size_t i = 0; i < m->count; i++)
        square += m->whole[i] * m->whole[i];
    /* Few drops that happen to be alike do not prove that all are. */
    m->variance = square / (double)m->count > 1 ? square / (double)m->count : 1;
}

/* Weighs layer `first` the most; the number of layers: all alike. Fits the process anew. */
static void weigh(model *m, size_t first) {
    size_t layers = m->problem->layers;
    for (size_t l = 0; l < layers; l++)
        m->weights[l] = (first < layers ? 1 - foremost : 1) / (double)layers + (l == first ? foremost : 0);
    for (size_t n = 0; n < m->count; n++)
        factor_row(m, n);
    fit(m);
}

/* The logarithm of the drops' likelihood, but for a constant. */
static double log_likelihood(const model *m) {
    double sum = (double)m->count / 2 * log(m->variance), square = 0;
    for (size_t i = 0; i < m->count; i++) {
        sum += log(m->factor[i * m->room + i]);
        square += m->whole[i] * m->whole[i];
    }
    return -sum - square / m->variance / 2;
}

/* Weighs layers by the likelihood of the drops. */
static void weigh_best(model *m) {
    size_t layers = m->problem->layers, best = layers;
    double most = -INFINITY;
    for (size_t first = 0; first <= layers; first++) {
        weigh(m, first);
        double likelihood = log_likelihood(m);
        if (likelihood < most) continue;
        most = likelihood;
        best = first;
    }
    if (best != layers) weigh(m, best);
}

/* Takes a choice with its drop. */
static void learn(model *m, const size_t *options, double drop) {
    size_t n = m->count++;
    memcpy(m->points[n], options, sizeof m->points[n]);
    m->drops[n] = scaled(m->problem, drop);
    if (m->count <= WEIGHED) {
        weigh_best(m);
    } else {
        factor_row(m, n);
        fit(m);
    }
    double cost = m->problem->cost(m->problem->ctx, options);
    if (drop > m->problem->bound || cost >= m->best_cost) return;
    m->best_cost = cost;
    memcpy(m->best, options, sizeof m->best);
}

/* The logarithm of the chance that the drop is within the bound. */
static double log_chance(const model *m, const size_t *options) {
    double mean = m->mean, left = 1 + noise;
    correlate(m, options, m->solved);
    /* In place: an unknown needs no right side before its own. */
    solve(m, m->solved, m->count, m->solved);
    for (size_t i = 0; i < m->count; i++) {
        mean += m->solved[i] * m->whole[i];
        left -= m->solved[i] * m->solved[i];
    }
    double error = sqrt(m->variance * (left > noise ? left : noise));
    double z = (scaled(m->problem, m->problem->bound) - mean) / error;
    /* The tail of the normal distribution, where its chance is no double. */
    if (z < -20) return -z * z / 2 - log(-z * 2.5066282746310002);
    return log(erfc(-z / sqrt(2)) / 2);
}

/* ---------------------------------------------------------------------------------------------------------------
 * Choices
 * ------------------------------------------------------------------------------------------------------------- */

static void choice_of(const sl_bayesian *problem, size_t number, size_t *options) {
    for (size_t l = 0; l < problem->layers; l++)
        options[l] = sl_choice_of(&problem->choices, problem->layers, number, l);
}

static size_t drawn(uint64_t seed, uint64_t at, size_t below) {
    size_t number = (size_t)(sl_random_unit(seed, at) * (double)below);
    return number < below ? number : below - 1;
}

static int is_judged(const model *m, const size_t *options) {
    for (size_t i = 0; i < m->count; i++)
        if (memcmp(m->points[i], options, m->problem->layers * sizeof *options) == 0) return 1;
    return 0;
}

/* The best choice so far, and what is expected of it. */
typedef struct candidate {
    size_t options[SL_MAX_LAYERS];
    double worth; /* the logarithm of the expected improvement; -infinity: none yet */
} candidate;

/* The improvement is the cost saved, if the drop is within the bound (Gardner et al. 2014). */
static void consider(const model *m, const size_t *options, candidate *best) {
    double saved = m->best_cost - m->problem->cost(m->problem->ctx, options);
    if (!(saved > 0) || log(saved) <= best->worth || is_judged(m, options)) return;
    double worth = log(saved) + log_chance(m, options);
    if (worth <= best->worth) return;
    best->worth = worth;
    memcpy(best->options, options, sizeof best->options);
}

static void look_around(const model *m, candidate *best) {
    const sl_bayesian *problem = m->problem;
    size_t all = sl_choice_set_size(&problem->choices, problem->layers), options[SL_MAX_LAYERS] = {0};
    for (size_t i = 0; i < all && i < LOOKED_AT; i++) {
        choice_of(problem, all <= LOOKED_AT ? i : drawn(problem->seed + 1 + m->count, i, all), options);
        consider(m, options, best);
    }
    for (size_t l = 0; l < problem->layers; l++)
        for (size_t o = 0; o < problem->choices.counts[l]; o++) {
            memcpy(options, m->best, sizeof options);
            options[l] = problem->choices.options[l][o];
            consider(m, options, best);
        }
}

/* Finds the next choice to judge. Returns 0 if there is none. */
static int next_choice(const model *m, size_t trial, size_t *options) {
    const sl_bayesian *problem = m->problem;
    candidate best = {.worth = -INFINITY};
    if (trial && trial <= DRAWN_FIRST) {
        choice_of(problem, drawn(problem->seed, trial, sl_choice_set_size(&problem->choices, problem->layers)),
                  options);
        if (!is_judged(m, options) && problem->cost(problem->ctx, options) < m->best_cost) return 1;
    }
    look_around(m, &best);
    memcpy(options, best.options, sizeof best.options);
    return best.worth >= log(least_improvement);
}

/* ---------------------------------------------------------------------------------------------------------------
 * The search
 * ------------------------------------------------------------------------------------------------------------- */

static void free_model(model *m) {
    const sl_allocator *allocator = &m->problem->allocator;
    sl_mem_free(allocator, m->points, m->room * sizeof *m->points);
    sl_mem_free(allocator, m->drops, 3 * m->room * sizeof *m->drops);
    sl_mem_free(allocator, m->factor, m->room * m->room * sizeof *m->factor);
}

static sl_status make_model(const sl_bayesian *problem, model *m) {
    const sl_allocator *allocator = &problem->allocator;
    void *block;
    *m = (model){.problem = problem, .room = problem->trials + 1, .best_cost = 1};
    SL_TRY(sl_mem_alloc(allocator, m->room * sizeof *m->points, &block));
    m->points = block;
    SL_TRY(sl_mem_alloc(allocator, 3 * m->room * sizeof *m->drops, &block));
    m->drops = block;
    m->whole = m->drops + m->room;
    m->solved = m->whole + m->room;
    SL_TRY(sl_mem_alloc(allocator, m->room * m->room * sizeof *m->factor, &block));
    m->factor = block;
    return SL_OK;
}

sl_status sl_bayesian_search(const sl_bayesian *problem) {
    size_t options[SL_MAX_LAYERS] = {0};
    model m;
    sl_status status;
    SL_TRY_GOTO(make_model(problem, &m), done);
    for (size_t l = 0; l < problem->layers; l++)
        m.best[l] = options[l] = problem->choices.options[l][0];
    learn(&m, options, 0);
    for (size_t trial = 0; trial < problem->trials && !problem->is_over(problem->ctx); trial++) {
        double drop;
        if (!next_choice(&m, trial, options)) break;
        SL_TRY_GOTO(problem->judge(problem->ctx, options, &drop), done);
        learn(&m, options, drop);
    }
done:
    free_model(&m);
    return status;
}
