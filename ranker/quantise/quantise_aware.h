/* Quantisation-aware training of a trained model, and its loss of accuracy. */
#ifndef SL_RANKER_QUANTISE_QUANTISE_AWARE_H
#define SL_RANKER_QUANTISE_QUANTISE_AWARE_H

#include "ranker/quantise/evaluator.h"

/* Trains a model of floats further with its layers in INT8, except the kept ones, and codes its tables.
 * Parameters: `how` gives keep, tables, lookup and allocator.
 * Errors: see sl_ranker_train. */
sl_status sl_quantise_aware(const sl_ranker *ranker, const sl_rows *rows, const sl_train_params *training,
                            const sl_quantize_params *how, sl_ranker **out);

/* Measures the evaluator's ranker and another ranker of the same features on the evaluator's rows, by the scores that
 * they serve. */
sl_status sl_compare_rankers(const sl_evaluator *evaluator, const sl_ranker *other, double values[2], double *error);

#endif
