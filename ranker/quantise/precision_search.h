/* Searches precisions for embedding tables of one type. search_tables.c runs one search per type. */
#ifndef SL_RANKER_QUANTISE_PRECISION_SEARCH_H
#define SL_RANKER_QUANTISE_PRECISION_SEARCH_H

#include "ranker/model/model.h"

typedef struct sl_search_job {
    const sl_ranker *ranker;
    const sl_rows *rows, *eval;
    const sl_precision_search_params *params; /* checked; its `quantize` is not read */
    sl_quantize_params quantize;              /* with one type of tables */
    double below;                             /* EXHAUSTIVE considers only choices of a lower cost */
    size_t trials;                            /* trials of earlier searches; numbers continue after them */
    double start;                             /* sl_now_s() */
} sl_search_job;

/* Searches. *out is NULL if no choice costs less than `below`. *is_least becomes nonzero if the result has the lowest
 * cost of all choices. Errors: see sl_ranker_search_precision. */
sl_status sl_search_precisions(const sl_search_job *job, sl_ranker **out, sl_precision_search_report *report,
                               int *is_least);

/* Returns whether the search ends after this many trials: by their number or by the time. */
int sl_search_is_over(const sl_search_job *job, size_t trials);

#endif
