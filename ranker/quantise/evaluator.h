/* Measures the accuracy of layers' precisions on rows with labels. One pass over the rows measures all combinations of
 * several options per layer. Combinations that agree up to a layer share its outputs. */
#ifndef SL_RANKER_QUANTISE_EVALUATOR_H
#define SL_RANKER_QUANTISE_EVALUATOR_H

#include "ranker/net/net_layer.h"
#include "ranker/quantise/quantise.h"

/* Most options per layer in one pass. */
enum { SL_MOST_OPTIONS = 3 + SL_CALIBRATIONS };

/* One way to compute a layer. */
typedef struct sl_evaluated_option {
    sl_layer_choice choice;
    sl_net_layer coded; /* unset for a layer of floats */
} sl_evaluated_option;

typedef struct sl_evaluated_layer {
    sl_evaluated_option options[SL_MOST_OPTIONS];
    size_t count;
} sl_evaluated_layer;

typedef struct sl_evaluator {
    sl_allocator allocator;
    const sl_ranker *ranker;
    sl_rows_buffer rows; /* with labels */
    uint64_t *groups;    /* one per row; NULL: no groups */
    size_t group_room;
    float *wide;      /* (rows, outputs): wide part plus bias */
    float *reference; /* (rows, outputs): logits to compare with; NULL: none */
    sl_evaluated_layer layers[SL_MAX_LAYERS];
    sl_measure measure;
    size_t ndcg_k, threads;
    size_t most_scores; /* scores kept at a time, unless one combination has more; 0: 2^25 (128 MB) */
} sl_evaluator;

/* Reads the rows with their labels.
 * Parameters: group is a column's name, or NULL.
 * Errors: those of encoding; SL_EINVAL (no rows). */
sl_status sl_evaluator_read(sl_evaluator *evaluator, const sl_rows *source, const char *group, sl_lookup_fn lookup,
                            void *lookup_ctx);
void sl_evaluator_free(sl_evaluator *evaluator);

/* Adds an option to a layer. Errors: see sl_quantise_layers. */
sl_status sl_evaluator_add(sl_evaluator *evaluator, const sl_calibrated *calibrated, size_t layer,
                           const sl_layer_choice *choice);

/* Numbers of each layer's options. Combinations take one option per layer. */
typedef struct sl_choice_set {
    size_t options[SL_MAX_LAYERS][SL_MOST_OPTIONS];
    size_t counts[SL_MAX_LAYERS];
} sl_choice_set;
size_t sl_choice_set_size(const sl_choice_set *set, size_t layers);
/* The option that combination `number` takes in a layer. The last layer's option changes fastest. */
size_t sl_choice_of(const sl_choice_set *set, size_t layers, size_t number, size_t layer);

typedef struct sl_evaluation {
    double value; /* the measure; NaN if the rows have none */
    double error; /* root mean squared difference of the logits from the reference; NaN without a reference */
} sl_evaluation;

/* Measures every combination of the set into found[number]. Progress counts combinations. Errors: SL_ENOMEM,
 * SL_ECANCELED, those of measuring. */
sl_status sl_evaluator_measure(const sl_evaluator *evaluator, const sl_choice_set *set, sl_progress *progress,
                               sl_evaluation *found);

/* Measures two models' scores of the rows, (rows, outputs), and the standard error of the difference. */
sl_status sl_evaluator_compare(const sl_evaluator *evaluator, const float *first, const float *second, double values[2],
                               double *error);

/* A combination, and who measures it. */
typedef struct sl_evaluated {
    const sl_evaluator *evaluator;
    const sl_choice_set *set; /* holds one combination */
} sl_evaluated;
/* Makes the combination's logits the reference. Both evaluators have the same rows. Errors: SL_ENOMEM. */
sl_status sl_evaluator_set_reference(sl_evaluator *evaluator, const sl_evaluated *to);
/* Computes the standard error of the difference of two combinations' measures by the grouped jackknife (Efron and
 * Tibshirani 1993, chapter 11). It divides the rows into blocks, keeps each group in one block, and leaves out one
 * block at a time. Both evaluators have the same rows. *out is NaN if fewer than two blocks have rows. */
sl_status sl_evaluator_difference_error(const sl_evaluated *first, const sl_evaluated *second, double *out);

#endif
