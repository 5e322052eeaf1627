/* The encoded rows of a training, in memory: split into training and validation rows, shuffled, and gathered into
 * mini-batches. */
#ifndef SL_RANKER_FEATURES_DATASET_H
#define SL_RANKER_FEATURES_DATASET_H

#include "base/thread.h"
#include "ranker/features/encode.h"

/* The rows of a training. With several ranks, these are the rows of this rank; totals count those of all ranks. */
typedef struct sl_dataset {
    const sl_features *features;
    const sl_ranks *ranks; /* NULL: one */
    sl_rows_buffer rows;   /* training rows, then validation rows if they have a source of their own */
    uint32_t *train;       /* numbers of the training rows, rising */
    uint32_t *valid;       /* numbers of the validation rows; in the same block as `train` */
    uint32_t *order;       /* the training rows in this epoch's order; in the same block */
    int unlabelled;        /* labels were not read; a teacher may have set them */
    size_t train_count, valid_count;
    uint64_t total_train, total_valid;
    uint64_t *rank_train; /* training rows of each rank */
    size_t block_size;    /* bytes of the block at `train` */
} sl_dataset;

/* How to read rows. */
typedef struct sl_dataset_source {
    sl_lookup_fn lookup;
    void *lookup_ctx;
    int unlabelled;        /* labels and weights are not read; both arrays are NULL, and every weight is 1 */
    const sl_ranks *ranks; /* each reads a part of the rows; NULL: this process reads all */
} sl_dataset_source;

/* Reads and encodes the rows, each source from its beginning. Scales the weights of the training rows to a mean of 1,
 * and those of the validation rows too. Then only their ratios count, and learning rates suit gradients of weight 1.
 * Parameters: valid may be NULL. The spec's seed then draws the spec's "validation" fraction of `train` as validation
 * rows.
 * Errors: those of the rows; SL_EINVAL (no row left to train on); SL_ELIMIT (more than 2^32 - 1 rows). */
sl_status sl_dataset_read(const sl_features *features, const sl_rows *train, const sl_rows *valid,
                          const sl_dataset_source *source, const sl_allocator *allocator, sl_dataset *out);
void sl_dataset_free(sl_dataset *dataset);

/* Computes the sum of the weights of some rows of each rank, over all ranks. */
sl_status sl_dataset_weight(const sl_dataset *dataset, const uint32_t *numbers, size_t count, double *out);

/* Shuffles the training rows for an epoch. The order depends on the seed and the epoch alone. */
void sl_dataset_shuffle(sl_dataset *dataset, uint64_t seed, uint64_t epoch);

/* Computes a CRC of all encoded rows, labels and weights, and of the split. It leaves out labels that were not read.
 * With several ranks it is a sum over the rows of all ranks, and does not depend on how they are divided. */
sl_status sl_dataset_crc(const sl_dataset *dataset, uint32_t *crc);

/* The mean label of the training rows of all ranks, by weight. For a multi-class label: the share of each class. */
sl_status sl_dataset_label_mean(const sl_dataset *dataset, double *mean);
sl_status sl_dataset_class_shares(const sl_dataset *dataset, double *shares);

/* Finds whether all training rows with a weight above 0 have the same label. *label gets it. *one is true if there is
 * no such row. */
sl_status sl_dataset_has_one_label(const sl_dataset *dataset, int *one, float *label);

/* The part of a mini-batch that this rank gives: rows first to first + count - 1 of its epoch's order. Every rank gives
 * the same share of its rows, rounded down. before  rows of lower ranks in this mini-batch total   rows of all ranks in
 * it: up to one for each other rank more than asked for */
typedef struct sl_minibatch_part {
    size_t first, count;
    uint64_t before, total;
} sl_minibatch_part;
/* batch_rows: rows of a mini-batch of all ranks. */
sl_minibatch_part sl_dataset_minibatch(const sl_dataset *dataset, uint64_t number, uint64_t batch_rows);
/* The most rows of this rank in one mini-batch. */
size_t sl_dataset_minibatch_most(const sl_dataset *dataset, uint64_t batch_rows);

/* Copies of the rows of a mini-batch, side by side. */
typedef struct sl_minibatch {
    sl_encoded rows;
    float *labels, *weights;
    float *dense; /* `rows` points at these arrays */
    uint32_t *ids, *bag_start, *bag_ids;
    size_t bag_room;
    void *block; /* holds all arrays but bag_ids */
    size_t block_size;
} sl_minibatch;

sl_status sl_minibatch_create(const sl_features *features, size_t max_rows, const sl_allocator *allocator,
                              sl_minibatch *out);
void sl_minibatch_free(sl_minibatch *minibatch, const sl_allocator *allocator);
/* Copies the rows with these numbers into the mini-batch.
 * Parameters: count is at most max_rows. Errors: SL_ENOMEM, SL_ELIMIT. */
sl_status sl_minibatch_gather(sl_minibatch *minibatch, const sl_dataset *dataset, const uint32_t *numbers, size_t count,
                              size_t threads);

#endif
