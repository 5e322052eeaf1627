#include "ranker/quantise/search_bayesian.h"

#include "base/random.h"

#include <math.h>
#include <string.h>

/* Random choices after the base, before the model chooses. */
enum { DRAWN_FIRST = 4 };
/* Choices to consider for each trial: all of them, or a random sample and the neighbours of the best. */
enum { LOOKED_AT = 4096 };
/* Number of measured choices up to which each choice weighs the layers again. */
enum { WEIGHED = 128 };

/* The correlation of two choices has two parts. `additive` is the share of a weighted mean over layers, because layers'
 * drops nearly add up. The rest is a product. Layers weigh the same, or one has the share `foremost`. noise keeps the
 * factor's pivots above 0. */
static const double additive = 0.8, foremost = 0.7, noise = 1e-6;
/* Drops are scaled linearly up to the bound and logarithmically beyond. Otherwise one layer that spoils everything
 * would hide the others. A smaller bound than least_unit is replaced by it. */
static const double least_unit = 1e-4;
/* Smallest expected improvement to go on for, as a share of the base's cost. */
static const double least_improvement = 1e-6;

/* A Gaussian process over the choices measured so far. */
typedef struct process {
    const sl_bayesian *problem;
    size_t count, room;
    size_t (*points)[SL_MAX_LAYERS];
    double *drops;  /* scaled */
    double *factor; /* the lower Cholesky factor of the correlations, (room, room) */
    double *whole;  /* factor^-1 (drops - mean) */
    double *solved; /* scratch of a prediction */
    double mean, variance;
    double weights[SL_MAX_LAYERS]; /* weights of layers; their sum is 1 */
    size_t best[SL_MAX_LAYERS];    /* the cheapest choice within the bound */
    double best_cost;
} process;

static double scaled_drop(const sl_bayesian *problem, double drop) {
    double unit = problem->bound > least_unit ? problem->bound : least_unit;
    return asinh(drop / unit);
}

/* ---------------------------------------------------------------------------------------------------------------
 * The process (Rasmussen and Williams 2006, chapter 2)
 * ------------------------------------------------------------------------------------------------------------- */

static double correlation(const process *m, const size_t *a, const size_t *b) {
    double sum = 0, product = 1;
    for (size_t l = 0; l < m->problem->layers; l++) {
        double same = exp(-m->problem->distance(a[l], b[l]));
        sum += m->weights[l] * same;
        product *= same;
    }
    return additive * sum + (1 - additive) * product;
}

/* Solves factor * out = right for the first n unknowns. */
static void solve_factor(const process *m, const double *right, size_t n, double *out) {
    for (size_t i = 0; i < n; i++) {
        double left = right[i];
        for (size_t j = 0; j < i; j++)
            left -= m->factor[i * m->room + j] * out[j];
        out[i] = left / m->factor[i * m->room + i];
    }
}

static void correlate_all(const process *m, const size_t *options, double *out) {
    for (size_t i = 0; i < m->count; i++)
        out[i] = correlation(m, m->points[i], options);
}

/* Adds the row of choice n to the Cholesky factor. */
static void factor_row(process *m, size_t n) {
    double *row = m->factor + n * m->room, pivot = 1 + noise;
    for (size_t i = 0; i < n; i++)
        m->solved[i] = correlation(m, m->points[i], m->points[n]);
    solve_factor(m, m->solved, n, row);
    for (size_t i = 0; i < n; i++)
        pivot -= row[i] * row[i];
    row[n] = sqrt(pivot > noise ? pivot : noise);
}

/* Fits mean and variance to the drops. */
static void fit_mean_and_variance(process *m) {
    double sum = 0, square = 0;
    for (size_t i = 0; i < m->count; i++)
        sum += m->drops[i];
    m->mean = sum / (double)m->count;
    for (size_t i = 0; i < m->count; i++)
        m->solved[i] = m->drops[i] - m->mean;
    solve_factor(m, m->solved, m->count, m->whole);
    for (size_t i = 0; i < m->count; i++)
        square += m->whole[i] * m->whole[i];
    /* A few equal drops do not prove that all drops are equal. */
    m->variance = square / (double)m->count > 1 ? square / (double)m->count : 1;
}

/* Weighs layer `first` most, or all layers the same if `first` is their number. Fits the process again. */
static void weigh_layers(process *m, size_t first) {
    size_t layers = m->problem->layers;
    for (size_t l = 0; l < layers; l++)
        m->weights[l] = (first < layers ? 1 - foremost : 1) / (double)layers + (l == first ? foremost : 0);
    for (size_t n = 0; n < m->count; n++)
        factor_row(m, n);
    fit_mean_and_variance(m);
}

/* The logarithm of the drops' likelihood, up to a constant. */
static double log_likelihood(const process *m) {
    double sum = (double)m->count / 2 * log(m->variance), square = 0;
    for (size_t i = 0; i < m->count; i++) {
        sum += log(m->factor[i * m->room + i]);
        square += m->whole[i] * m->whole[i];
    }
    return -sum - square / m->variance / 2;
}

/* Chooses the layers' weights that make the drops most likely. */
static void choose_layer_weights(process *m) {
    size_t layers = m->problem->layers, best = layers;
    double most = -INFINITY;
    for (size_t first = 0; first <= layers; first++) {
        weigh_layers(m, first);
        double likelihood = log_likelihood(m);
        if (likelihood < most) continue;
        most = likelihood;
        best = first;
    }
    if (best != layers) weigh_layers(m, best);
}

/* Adds a choice and its drop to the process. */
static void add_drop(process *m, const size_t *options, double drop) {
    size_t n = m->count++;
    memcpy(m->points[n], options, sizeof m->points[n]);
    m->drops[n] = scaled_drop(m->problem, drop);
    if (m->count <= WEIGHED) {
        choose_layer_weights(m);
    } else {
        factor_row(m, n);
        fit_mean_and_variance(m);
    }
    double cost = m->problem->cost(m->problem->ctx, options);
    if (drop > m->problem->bound || cost >= m->best_cost) return;
    m->best_cost = cost;
    memcpy(m->best, options, sizeof m->best);
}

/* The logarithm of the probability that the drop is within the bound. */
static double log_chance(const process *m, const size_t *options) {
    double mean = m->mean, left = 1 + noise;
    correlate_all(m, options, m->solved);
    /* In place: solving an unknown reads no earlier right side. */
    solve_factor(m, m->solved, m->count, m->solved);
    for (size_t i = 0; i < m->count; i++) {
        mean += m->solved[i] * m->whole[i];
        left -= m->solved[i] * m->solved[i];
    }
    double error = sqrt(m->variance * (left > noise ? left : noise));
    double z = (scaled_drop(m->problem, m->problem->bound) - mean) / error;
    /* The tail of the normal distribution, where the probability would underflow. */
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

static size_t random_below(uint64_t seed, uint64_t at, size_t below) {
    size_t number = (size_t)(sl_random_unit(seed, at) * (double)below);
    return number < below ? number : below - 1;
}

static int is_measured(const process *m, const size_t *options) {
    for (size_t i = 0; i < m->count; i++)
        if (memcmp(m->points[i], options, m->problem->layers * sizeof *options) == 0) return 1;
    return 0;
}

/* The best candidate so far, and its expected improvement. */
typedef struct candidate {
    size_t options[SL_MAX_LAYERS];
    double worth; /* the logarithm of the expected improvement; -infinity: none yet */
} candidate;

/* Keeps the choice if it is the best candidate. Its improvement is the saved cost, if the drop is within the bound
 * (Gardner et al. 2014). */
static void consider_choice(const process *m, const size_t *options, candidate *best) {
    double saved = m->best_cost - m->problem->cost(m->problem->ctx, options);
    if (!(saved > 0) || log(saved) <= best->worth || is_measured(m, options)) return;
    double worth = log(saved) + log_chance(m, options);
    if (worth <= best->worth) return;
    best->worth = worth;
    memcpy(best->options, options, sizeof best->options);
}

static void find_candidate(const process *m, candidate *best) {
    const sl_bayesian *problem = m->problem;
    size_t all = sl_choice_set_size(&problem->choices, problem->layers), options[SL_MAX_LAYERS] = {0};
    for (size_t i = 0; i < all && i < LOOKED_AT; i++) {
        choice_of(problem, all <= LOOKED_AT ? i : random_below(problem->seed + 1 + m->count, i, all), options);
        consider_choice(m, options, best);
    }
    for (size_t l = 0; l < problem->layers; l++)
        for (size_t o = 0; o < problem->choices.counts[l]; o++) {
            memcpy(options, m->best, sizeof options);
            options[l] = problem->choices.options[l][o];
            consider_choice(m, options, best);
        }
}

/* Finds the next choice to measure. Returns 0 if there is none. */
static int next_choice(const process *m, size_t trial, size_t *options) {
    const sl_bayesian *problem = m->problem;
    candidate best = {.worth = -INFINITY};
    if (trial && trial <= DRAWN_FIRST) {
        choice_of(problem, random_below(problem->seed, trial, sl_choice_set_size(&problem->choices, problem->layers)),
                  options);
        if (!is_measured(m, options) && problem->cost(problem->ctx, options) < m->best_cost) return 1;
    }
    find_candidate(m, &best);
    memcpy(options, best.options, sizeof best.options);
    return best.worth >= log(least_improvement);
}

/* ---------------------------------------------------------------------------------------------------------------
 * The search
 * ------------------------------------------------------------------------------------------------------------- */

static void free_process(process *m) {
    const sl_allocator *allocator = &m->problem->allocator;
    SL_FREE_ARRAY(allocator, m->points, m->room);
    SL_FREE_ARRAY(allocator, m->drops, 3 * m->room);
    SL_FREE_ARRAY(allocator, m->factor, m->room * m->room);
}

static sl_status create_process(const sl_bayesian *problem, process *m) {
    const sl_allocator *allocator = &problem->allocator;
    void *block;
    *m = (process){.problem = problem, .room = problem->trials + 1, .best_cost = 1};
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
    process m;
    sl_status status;
    SL_TRY_GOTO(create_process(problem, &m), done);
    for (size_t l = 0; l < problem->layers; l++)
        m.best[l] = options[l] = problem->choices.options[l][0];
    add_drop(&m, options, 0);
    for (size_t trial = 0; trial < problem->trials && !problem->is_over(problem->ctx); trial++) {
        double drop;
        if (!next_choice(&m, trial, options)) break;
        SL_TRY_GOTO(problem->measure(problem->ctx, options, &drop), done);
        add_drop(&m, options, drop);
    }
done:
    free_process(&m);
    return status;
}
