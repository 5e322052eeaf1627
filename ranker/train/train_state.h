/* The state of a training: the rows, the weights, the optimisers' states, and how far the training is.
 *
 *     train.c (public calls) -> train_loop -> train_step
 *                      \             |           |
 *                       +------> checkpoint      |
 *                                    |           |
 *                                    +-> train_state
 *
 * Calls go along the arrows only. The loop moves the state on, mini-batch by mini-batch. A checkpoint writes the state
 * to a file and reads it back. */
#ifndef SL_RANKER_TRAIN_TRAIN_STATE_H
#define SL_RANKER_TRAIN_TRAIN_STATE_H

#include "base/thread.h"
#include "ranker/model/model.h"
#include "ranker/train/distil.h"
#include "ranker/train/forget.h"
#include "ranker/train/magnitude.h"
#include "ranker/train/train_precision.h"
#include "ranker/train/train_ranges.h"
#include "ranker/train/usage.h"

/* How far a training is. The sums and the best epoch's numbers go on from here as well. */
typedef struct sl_train_position {
    uint64_t epoch;      /* whole epochs done */
    uint64_t minibatch;  /* mini-batches done of the epoch after those */
    double loss_sum;     /* over those mini-batches: weight * loss */
    double weight_sum;   /* over those mini-batches: weight */
    uint64_t best_epoch; /* from 1; 0: none yet */
    double best_train_loss, best_valid_loss, best_valid_auc;
} sl_train_position;

/* The trainer owns everything below but `spec`, which belongs to the features. */
typedef struct sl_trainer {
    /* What changes from step to step. A checkpoint holds these, and the states in `sparse`. */
    sl_train_position position;
    sl_weights weights; /* after the last step */
    sl_weights best;    /* after the best epoch; block NULL without validation rows: the last weights are the best */
    float *dense_state; /* dense_states * dense_size floats. AdaGrad: sums. Adam: first moments, then second ones */
    sl_sparse_trainer *sparse;
    sl_precision_state precision;
    sl_ranges *ranges; /* NULL unless layers are in INT8 */

    /* What stays as it was made. */
    sl_allocator allocator;
    sl_features *features;
    const sl_spec *spec;
    sl_net_shape shape;
    size_t threads, minibatch_rows, epochs;
    size_t dense_size, dense_states; /* weights of the layers; floats of optimiser state for each */
    sl_dataset data;
    sl_usage usage;
    sl_forgetter forgetter;
    const sl_loops *loops;
    double rate_scale;       /* of the spec's rates */
    sl_distil *distil;       /* NULL without a teacher */
    sl_magnitude *magnitude; /* NULL unless weights are cut as it trains */
    uint32_t course_crc; /* fingerprint of teacher, first weights given, cuts, rate_scale, ranges; 0: none of these */

    /* Room for a step. */
    sl_minibatch minibatch;
    sl_net_trainer *net;            /* NULL without a deep part */
    float *dense_gradient;          /* by the layers' weights: dense_size floats */
    float *logits, *logit_gradient; /* (minibatch_rows, outputs) */
    int overflowed;                 /* whether the gradients that were last collected are to be skipped */
    float *valid_logits;            /* (valid_count, outputs) */
} sl_trainer;

/* Reads the spec and fits its features to `train`.
 * Parameters: params has been read with its defaults. Its epochs and seed replace the spec's where they are set. */
sl_status sl_train_fit(const char *spec, const sl_rows *train, const sl_train_params *params, sl_features **out);

/* Sets the weights that the training begins with, of the trainer's layout. */
void sl_trainer_begin(sl_trainer *trainer, const sl_weights *weights);
/* Lets the training set this share of the layers' weights to 0, by the schedule of magnitude.h, over the first share
 * `end` of its steps. Errors: SL_ENOMEM. */
sl_status sl_trainer_cut(sl_trainer *trainer, double share, double end, int per_layer);
/* Tells whether the weights are those of a model that was asked for: not still to be cut, or to be quantised. */
int sl_trainer_is_whole(const sl_trainer *trainer);
/* Lets the net compute layers in INT8, where the ranges have started. Errors: SL_ENOMEM. */
sl_status sl_trainer_use_ranges(sl_trainer *trainer);
/* Folds the best weights of a training with ranges into layers in codes. Errors: as of sl_ranges_fold. */
sl_status sl_trainer_fold(sl_trainer *trainer, sl_coded *out);

/* Makes the weights that a training on these rows begins with. `data` has the labels, which set the biases. */
sl_status sl_train_first_weights(const sl_dataset *data, const sl_net_shape *shape, const sl_allocator *allocator,
                                 sl_weights *out);

/* Reads the rows and makes a trainer at the beginning of its training.
 * Parameters: the trainer takes `features` over, on failure too. valid may be NULL: see sl_dataset_read. params has
 * been read with its defaults.
 * Errors: SL_EUNSUPPORTED (a deep part in a build without oneDNN), SL_EINVAL and SL_EVALUE (rows that teach nothing),
 * those of sl_dataset_read. */
sl_status sl_trainer_create(sl_features *features, const sl_rows *train, const sl_rows *valid,
                            const sl_train_params *params, sl_trainer **out);
void sl_trainer_free(sl_trainer *trainer);
/* Frees the trainer, but for its features and its best weights: the caller owns both from then on. */
void sl_trainer_finish(sl_trainer *trainer, sl_features **features, sl_weights *best);

/* Takes up a precision. Errors: SL_ENOMEM. */
sl_status sl_trainer_use_precision(sl_trainer *trainer, const sl_precision_state *precision);
/* The weights that the model would have if the training ended here. */
const sl_weights *sl_trainer_best(const sl_trainer *trainer);
/* Mini-batches in an epoch. */
size_t sl_trainer_minibatches(const sl_trainer *trainer);
/* Mini-batches done since the training began. */
uint64_t sl_trainer_step_number(const sl_trainer *trainer);

#endif
