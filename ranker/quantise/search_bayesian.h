/* Bayesian optimisation: searches cheap choices within a bound. A choice's cost is known, but its drop must be
 * measured. docs/internals/precision.md describes it. */
#ifndef SL_RANKER_QUANTISE_SEARCH_BAYESIAN_H
#define SL_RANKER_QUANTISE_SEARCH_BAYESIAN_H

#include "ranker/quantise/evaluator.h"

enum { SL_BAYESIAN_TRIALS = 100, SL_BAYESIAN_MOST_TRIALS = 1000 };

typedef struct sl_bayesian {
    size_t layers;
    sl_choice_set choices; /* of each layer; option 0 everywhere is the base: drop 0, cost 1 */
    double bound;          /* largest allowed drop */
    size_t trials;         /* most trials, at most SL_BAYESIAN_MOST_TRIALS */
    uint64_t seed;
    double (*cost)(void *ctx, const size_t *options);                     /* cost divided by the base's cost */
    double (*distance)(size_t a, size_t b);                               /* between two options of a layer, 0 to 1 */
    sl_status (*measure)(void *ctx, const size_t *options, double *drop); /* measures one choice */
    int (*is_over)(void *ctx);                                            /* whether the search must end */
    void *ctx;
    sl_allocator allocator;
} sl_bayesian;

/* Measures choices one by one, always the one of the largest expected improvement. Ends after `trials`, when is_over
 * says so, or when no choice promises an improvement. Errors: SL_ENOMEM, those of measure. */
sl_status sl_bayesian_search(const sl_bayesian *problem);

#endif
