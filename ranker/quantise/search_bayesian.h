/* A search for cheap choices within a bound by Bayesian optimisation. A choice's cost is known, its drop must be
 * measured. docs/internals/precision.md describes it. */
#ifndef SL_RANKER_QUANTISE_SEARCH_BAYESIAN_H
#define SL_RANKER_QUANTISE_SEARCH_BAYESIAN_H

#include "ranker/quantise/judge.h"

enum { SL_BAYESIAN_TRIALS = 100, SL_BAYESIAN_MOST_TRIALS = 1000 };

typedef struct sl_bayesian {
    size_t layers;
    sl_choice_set choices; /* of each layer; option 0 of all is the base, which drops 0 at cost 1 */
    double bound;          /* of the drop */
    size_t trials;         /* at most; below SL_BAYESIAN_MOST_TRIALS */
    uint64_t seed;
    double (*cost)(void *ctx, const size_t *options);                   /* over that of the base */
    double (*distance)(size_t a, size_t b);                             /* of two options of a layer, from 0 to 1 */
    sl_status (*judge)(void *ctx, const size_t *options, double *drop); /* one trial */
    int (*is_over)(void *ctx);                                          /* no trial may begin */
    void *ctx;
    sl_allocator allocator;
} sl_bayesian;

/* Judges choices one by one, each time the one of the largest expected improvement. Ends with the trials, when it is
 * over, or when nothing is expected of any choice. Errors: SL_ENOMEM, as of judge. */
sl_status sl_bayesian_search(const sl_bayesian *problem);

#endif
