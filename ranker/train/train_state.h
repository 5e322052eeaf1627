/* The state of a training: rows, weights, optimiser states, position.
 *
 *     train.c (public calls) -> train_loop -> train_step
 *                      \             |           |
 *                       +------> checkpoint      |
 *                                    |           |
 *                                    +-> train_state
 *
 * Calls follow the arrows only. The loop moves the state on, mini-batch by mini-batch. A checkpoint writes the state to
 * a file and reads it back. */
#ifndef SL_RANKER_TRAIN_TRAIN_STATE_H
#define SL_RANKER_TRAIN_TRAIN_STATE_H

#include "base/thread.h"
#include "ranker/model/model.h"
#include "ranker/train/distil.h"
#include "ranker/train/embedding_usage.h"
#include "ranker/train/forget.h"
#include "ranker/train/magnitude_pruning.h"
#include "ranker/train/sparse_traffic.h"
#include "ranker/train/train_precision.h"
#include "ranker/train/train_ranges.h"

/* Position of a training, with the sums of its epoch and the numbers of its best epoch. */
typedef struct sl_train_position {
    uint64_t epoch;      /* epochs completed */
    uint64_t minibatch;  /* mini-batches completed in the current epoch */
    double loss_sum;     /* sum of weight * loss over those mini-batches */
    double weight_sum;   /* sum of weights over those mini-batches */
    uint64_t best_epoch; /* from 1; 0: none yet */
    double best_train_loss, best_valid_loss, best_valid_auc;
} sl_train_position;

/* How the rates grow with the mini-batch: not, with its rows (Goyal et al. 2017, arXiv 1706.02677), or with their
 * square root. */
typedef enum sl_rate_scaling { SL_RATES_KEPT, SL_RATES_LINEAR, SL_RATES_SQRT } sl_rate_scaling;

/* A training on several ranks, each with a part of the rows. All ranks have the same weights after each step. */
typedef struct sl_train_ranks {
    const sl_ranks *ranks;
    const uint64_t *position; /* of the rows' source: see sl_fit_source */
    size_t batch_rows;        /* rows of a mini-batch of all ranks; 0: the spec's */
    sl_rate_scaling scaling;
    uint64_t warm_up_steps;     /* steps in which the rates rise from the spec's to the scaled ones */
    size_t bucket;              /* floats of gradients that are summed at once, at most; 0: SL_TRAIN_BUCKET */
    int no_overlap;             /* the sums begin after the backward pass, not during it */
    size_t shard;               /* embedding tables of this many bytes or more are sharded; 0: none */
    sl_sparse_traffic *traffic; /* counts the sparse gradients of the training; NULL: nobody asks */
} sl_train_ranks;

/* Floats of a bucket: 1 MB. */
#define SL_TRAIN_BUCKET ((size_t)1 << 18)

/* The trainer owns everything below except `spec`, which belongs to the features. */
typedef struct sl_trainer {
    /* Changes from step to step. A checkpoint holds these fields, and the states in `sparse`. */
    sl_train_position position;
    sl_weights weights; /* after the last step */
    sl_weights best;    /* after the best epoch; block NULL without validation rows: `weights` are the best */
    float *dense_state; /* dense_states * dense_size floats. AdaGrad: sums. Adam: first moments, then second ones */
    sl_sparse_trainer *sparse;
    sl_precision_state precision;
    sl_ranges *ranges; /* NULL unless layers are in INT8 */

    /* Constant after creation. */
    sl_allocator allocator;
    sl_features *features;
    const sl_spec *spec;
    sl_net_shape shape;
    sl_train_ranks on;      /* ranks NULL: this process trains alone */
    unsigned char *sharded; /* one flag for each embedding table; NULL: none is sharded */
    size_t threads, epochs;
    size_t minibatch_rows;           /* the most rows of this rank in a mini-batch */
    uint64_t batch_rows;             /* rows of a mini-batch of all ranks */
    size_t dense_size, dense_states; /* weights of all layers; floats of optimiser state per weight */
    sl_dataset data;
    sl_embedding_usage usage;
    sl_forgetter forgetter;
    const sl_loops *loops;
    double rate_scale;       /* factor of the spec's rates */
    double warm_up_from;     /* factor of the rates at the first step of a warm-up */
    sl_distil *distil;       /* NULL without a teacher */
    sl_magnitude *magnitude; /* NULL unless training sets weights to 0 */
    uint32_t settings_crc;   /* fingerprint of teacher, initial model, cuts, rate_scale, ranges; 0: none of them */

    /* Scratch memory for a step. */
    sl_minibatch minibatch;
    sl_minibatch_part part;         /* of the mini-batch at the trainer's position, on this rank */
    double loss_sum, weight_sum;    /* of the mini-batch: sums of weight * loss, and of weights */
    sl_net_trainer *net;            /* NULL without a deep part */
    float *dense_gradient;          /* gradient by the layers' weights: dense_size floats */
    float *logits, *logit_gradient; /* (minibatch_rows, outputs) */
    int overflowed;                 /* the last collected gradients overflowed, so the step is skipped */
    int not_finite;                 /* the last loss was not finite, on one rank or more */
    int cancelled;                  /* a rank was asked to stop */
    sl_status push_status;          /* the first failure to begin a sum over ranks */
    size_t pushed;                  /* floats at the end of dense_gradient whose sum over ranks has begun */
    uint8_t *reduce_room;           /* several ranks: scratch memory for sparse gradients */
    size_t reduce_size;
    float *valid_logits; /* (valid_count, outputs) */
} sl_trainer;

/* Reads the spec and fits its features to `train`.
 * Parameters: params comes from sl_train_read_params. Nonzero epochs and seed replace the spec's. on NULL: this process
 * trains alone. */
sl_status sl_train_fit(const char *spec, const sl_rows *train, const sl_train_params *params, const sl_train_ranks *on,
                       sl_features **out);

/* Sets the initial weights, in the trainer's layout. */
void sl_trainer_set_weights(sl_trainer *trainer, const sl_weights *weights);
/* Makes the training set this share of the layers' weights to 0. It follows the schedule of magnitude_pruning.h over
 * the first `end` (a share) of its steps. Errors: SL_ENOMEM. */
sl_status sl_trainer_cut_weights(sl_trainer *trainer, double share, double end, int per_layer);
/* Returns whether the present weights are a model that the caller asked for: all cuts are done, and INT8 has begun. */
int sl_trainer_model_is_complete(const sl_trainer *trainer);
/* Makes the net compute layers in INT8, if the ranges have started. Errors: SL_ENOMEM. */
sl_status sl_trainer_use_ranges(sl_trainer *trainer);
/* Folds the best weights of a training with ranges into coded layers. Errors: see sl_ranges_fold. */
sl_status sl_trainer_fold(sl_trainer *trainer, sl_coded_layers *out);

/* Makes the initial weights of a training on these rows. The labels in `data` set the biases. */
sl_status sl_train_first_weights(const sl_dataset *data, const sl_net_shape *shape, const sl_allocator *allocator,
                                 sl_weights *out);

/* Reads the rows and makes a trainer at the start of its training.
 * Parameters: the trainer owns `features` from now on, and frees them on failure too. valid may be NULL: see
 * sl_dataset_read. params comes from sl_train_read_params.
 * Errors: SL_EUNSUPPORTED (a deep part in a build without oneDNN), SL_EINVAL and SL_EVALUE (rows that teach nothing),
 * errors of sl_dataset_read. */
sl_status sl_trainer_create(sl_features *features, const sl_rows *train, const sl_rows *valid,
                            const sl_train_params *params, const sl_train_ranks *on, sl_trainer **out);
void sl_trainer_free(sl_trainer *trainer);
/* Frees the trainer except its features and its best weights. The caller owns both from now on. */
void sl_trainer_release(sl_trainer *trainer, sl_features **features, sl_weights *best);

/* Sets the precision and its state. Errors: SL_ENOMEM. */
sl_status sl_trainer_use_precision(sl_trainer *trainer, const sl_precision_state *precision);
/* The weights of the model if the training ended here. */
const sl_weights *sl_trainer_best(const sl_trainer *trainer);
/* Mini-batches in an epoch. */
size_t sl_trainer_minibatches(const sl_trainer *trainer);
/* Mini-batches completed since the training began. */
uint64_t sl_trainer_step_number(const sl_trainer *trainer);

#endif
