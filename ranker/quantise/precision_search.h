/* The search for precisions with embedding tables of one type. search_tables.c makes one of each type. */
#ifndef SL_RANKER_QUANTISE_PRECISION_SEARCH_H
#define SL_RANKER_QUANTISE_PRECISION_SEARCH_H

#include "ranker/model/model.h"

typedef struct sl_search_job {
    const sl_ranker *ranker;
    const sl_rows *rows, *eval;
    const sl_precision_search_params *params; /* checked; `quantize` is not read */
    sl_quantize_params quantize;              /* of one type of tables */
    double below;                             /* EXHAUSTIVE looks for choices of a lower cost alone */
    size_t trials;                            /* that were made before; numbers go on from them */
    double start;                             /* sl_now_s() */
} sl_search_job;

/* Searches. *out is NULL if no choice costs less than `below`. *is_least becomes nonzero if no choice costs less than
 * the result. Errors: as of sl_ranker_search_precision. */
sl_status sl_search_precisions(const sl_search_job *job, sl_ranker **out, sl_precision_search_report *report,
                               int *is_least);

/* Tells whether no further trial may begin, after so many. */
int sl_search_is_over(const sl_search_job *job, size_t trials);

#endif
