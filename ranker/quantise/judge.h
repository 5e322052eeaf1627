/* Judging choices of layers' precisions on rows with labels. One pass over the rows judges all combinations of some
 * options a layer. Combinations that agree up to a layer share its outputs. */
#ifndef SL_RANKER_QUANTISE_JUDGE_H
#define SL_RANKER_QUANTISE_JUDGE_H

#include "ranker/net/net_coded.h"
#include "ranker/quantise/quantise.h"

/* Options of a layer that are judged at once, and combinations. */
enum { SL_MOST_OPTIONS = 3 + SL_CALIBRATIONS, SL_MOST_COMBINATIONS = 4096 };

/* A way to compute a layer. */
typedef struct sl_judged_option {
    sl_layer_choice choice;
    sl_net_layer coded; /* of layers that are not of floats */
} sl_judged_option;

typedef struct sl_judged_layer {
    sl_judged_option options[SL_MOST_OPTIONS];
    size_t count;
} sl_judged_layer;

typedef struct sl_judge {
    sl_allocator allocator;
    const sl_ranker *ranker;
    sl_rows_buffer rows; /* with labels */
    uint64_t *groups;    /* one a row; NULL: none */
    size_t group_room;
    float *wide;      /* (rows, outputs): the bias included */
    float *reference; /* (rows, outputs): logits that others are compared with; NULL: none */
    sl_judged_layer layers[SL_MAX_LAYERS];
    sl_measure measure;
    size_t ndcg_k, threads;
    size_t most_scores; /* that are kept at a time, where a combination has fewer; 0: 2^25, of 128 MB */
} sl_judge;

/* Reads the rows with their labels. group: a column's name, or NULL. Errors: as of encoding; SL_EINVAL (no rows). */
sl_status sl_judge_read(sl_judge *judge, const sl_rows *source, const char *group, sl_lookup_fn lookup,
                        void *lookup_ctx);
void sl_judge_free(sl_judge *judge);

/* Adds an option to a layer. Errors: as of sl_quantise_layers. */
sl_status sl_judge_add(sl_judge *judge, const sl_calibrated *calibrated, size_t layer, const sl_layer_choice *choice);

/* Options of each layer, by their numbers. */
typedef struct sl_choice_set {
    size_t options[SL_MAX_LAYERS][SL_MOST_OPTIONS];
    size_t counts[SL_MAX_LAYERS];
} sl_choice_set;
size_t sl_choice_set_size(const sl_choice_set *set, size_t layers);
/* The number of the option that combination `number` takes in a layer. The last layer's changes fastest. */
size_t sl_choice_of(const sl_choice_set *set, size_t layers, size_t number, size_t layer);

typedef struct sl_verdict {
    double value; /* the measure; NaN where there is none */
    double error; /* root mean squared difference of the logits from the reference; NaN without one */
} sl_verdict;

/* Measures every combination of the set, into found[number]. Progress steps by combinations. Errors: SL_ENOMEM,
 * SL_ECANCELED, as of measuring. */
sl_status sl_judge_measure(const sl_judge *judge, const sl_choice_set *set, sl_progress *progress, sl_verdict *found);

/* The measures of two models' scores of the rows, (rows, outputs), and the standard error of their difference. */
sl_status sl_judge_compare(const sl_judge *judge, const float *first, const float *second, double values[2],
                           double *error);

/* A combination of one judge. */
typedef struct sl_judged {
    const sl_judge *judge;
    const sl_choice_set *set; /* of one combination */
} sl_judged;
/* Makes that combination's logits the judge's reference. Both have the same rows. Errors: SL_ENOMEM. */
sl_status sl_judge_refer(sl_judge *judge, const sl_judged *to);
/* The standard error of the difference of one combination's measure from another's, by the grouped jackknife (Efron
 * and Tibshirani 1993, chapter 11). Rows are in blocks, a group's rows in one block, and each block is left out once.
 * Both judges have the same rows. NaN where fewer than two blocks have rows. */
sl_status sl_judge_error(const sl_judged *first, const sl_judged *second, double *out);

#endif
