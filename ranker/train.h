/* A training in progress: weights, states of the optimisers, rows, and how far it is. */
#ifndef SL_RANKER_TRAIN_H
#define SL_RANKER_TRAIN_H

#include "base/thread.h"
#include "ranker/forget.h"
#include "ranker/model.h"
#include "ranker/usage.h"

/* How far a training is: with the weights and the optimisers' states, all that a checkpoint must hold. */
typedef struct sl_train_state {
    uint64_t epoch;      /* whole epochs behind it */
    uint64_t batch;      /* batches of the next one behind it */
    double loss_sum;     /* of that epoch: weight * loss */
    double weight_sum;   /* and weights */
    uint64_t best_epoch; /* from 1; 0: none yet */
    double best_train_loss, best_valid_loss, best_valid_auc;
} sl_train_state;

typedef struct sl_trainer {
    sl_allocator allocator;
    sl_train_params params;
    sl_features *features;
    int gave_features; /* nonzero: to a ranker, which frees them */
    const sl_spec *spec;
    sl_net_shape shape;
    size_t threads, batch_rows, epochs;
    sl_dataset data;
    sl_minibatch batch;
    sl_forgetter forgetter;
    sl_usage usage;
    sl_weights weights; /* as they are */
    sl_weights best;    /* of the best epoch; block NULL where there are no validation rows: the last ones are best */
    const sl_loops *loops;
    sl_net_trainer *net; /* NULL without a deep part */
    sl_sparse_trainer *sparse;
    float *dense_gradient; /* of the layers' block */
    float *dense_state;    /* dense_states times as large: AdaGrad's sums, or Adam's first moments, then second ones */
    size_t dense_size, dense_states;
    float *logits, *logit_gradient; /* (batch_rows, outputs) */
    float *valid_logits;            /* (valid_count, outputs) */
    sl_train_state state;
    sl_progress progress;
    void *features_data; /* of a checkpoint: the features' bytes, and what its section TRAINER is put together in; */
    void *record;        /* NULL without checkpoints */
    size_t features_size, record_size;
    uint32_t spec_crc, rows_crc;
    double train_s; /* spent in epochs, by this call */
    uint64_t rows_done, epochs_done;
} sl_trainer;

/* ---- train.c ---- */

/* The parameters read, with their defaults; features fitted to `train`. Takes the spec's epochs and seed from params
 * where they are set. */
sl_status sl_train_fit(const char *spec, const sl_rows *train, const sl_train_params *params, sl_features **out);

/* Reads the rows and sets up everything but the position in the training, which is its beginning. `features` is taken
 * over, on failure too. params has been read with its defaults. */
sl_status sl_trainer_create(sl_features *features, const sl_rows *train, const sl_rows *valid,
                            const sl_train_params *params, sl_trainer **out);
void sl_trainer_free(sl_trainer *trainer);
/* The weights the model should have now. */
sl_weights *sl_trainer_best(sl_trainer *trainer);

/* ---- train_step.c ---- */

/* Batches of one epoch. */
size_t sl_trainer_batches(const sl_trainer *trainer);
/* The next batch of the epoch, whose order has been set: its rows, its logits, their loss's sum and the sum of its
 * weights. Changes nothing that a checkpoint holds. */
sl_status sl_trainer_forward(sl_trainer *trainer, double *loss_sum, double *weight_sum);
/* Then: the gradient, and a step of every optimiser. */
sl_status sl_trainer_update(sl_trainer *trainer);
/* Gathers the rows of these numbers, batch_rows at most; their logits, without dropout. */
sl_status sl_trainer_logits(sl_trainer *trainer, const uint32_t *numbers, size_t count, float *logits);

/* ---- train_loop.c ---- */

/* A clock's seconds. */
double sl_now_s(void);
/* Trains from the state on to the end. */
sl_status sl_trainer_run(sl_trainer *trainer);

/* ---- checkpoint.c ---- */

/* Where params.checkpoint is set: what the calls below need. */
sl_status sl_checkpoint_prepare(sl_trainer *trainer);
/* Where params.checkpoint is set, writes it; else nothing. Errors: SL_EVALUE (a weight that is not finite: nothing is
 * written), those of a save. */
sl_status sl_checkpoint_write(sl_trainer *trainer);
/* Sets weights, optimisers and state from params.checkpoint. *found is 0 where there is no such file. Errors:
 * SL_EFORMAT (a model without a training's state, or of another training), SL_ECORRUPT, those of an open. */
sl_status sl_checkpoint_read(sl_trainer *trainer, int *found);
void sl_checkpoint_release(sl_trainer *trainer);

#endif
