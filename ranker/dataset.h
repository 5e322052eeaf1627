/* The encoded rows of a training, in memory; which of them are for validation, in what order an epoch takes the others,
 * and batches gathered from them. */
#ifndef SL_RANKER_DATASET_H
#define SL_RANKER_DATASET_H

#include "base/thread.h"
#include "ranker/features.h"

typedef struct sl_dataset {
    const sl_features *features;
    sl_rows_buffer rows; /* of training, then those of validation where they came apart */
    uint32_t *train;     /* numbers of the rows to train on, rising */
    uint32_t *valid;     /* of those to validate on; in the same block */
    uint32_t *order;     /* this epoch's, in the same block */
    size_t train_count, valid_count;
    size_t block_size; /* bytes of the block that begins at train */
} sl_dataset;

/* Reads `train` and `valid` (NULL: the share of the spec's "validation" is held out of `train`, by a choice of the
 * spec's seed) from where they begin. Errors: those of the rows; SL_EINVAL where no row is left to train on; SL_ELIMIT
 * beyond 2^32 - 1 rows. */
sl_status sl_dataset_read(const sl_features *features, const sl_rows *train, const sl_rows *valid, sl_lookup_fn lookup,
                          void *lookup_ctx, const sl_allocator *allocator, sl_dataset *out);
void sl_dataset_free(sl_dataset *dataset);

/* Sets the order of an epoch, by seed and epoch alone. */
void sl_dataset_shuffle(sl_dataset *dataset, uint64_t seed, uint64_t epoch);

/* CRC of every encoded row, label and weight, and of which are for validation. */
uint32_t sl_dataset_crc(const sl_dataset *dataset);

/* Mean label, and of a multi-class label the share of each class in `shares`, of the training rows by their weights. */
double sl_dataset_label_mean(const sl_dataset *dataset);
void sl_dataset_class_shares(const sl_dataset *dataset, double *shares);

/* Whether all training rows of a weight above 0 have one label, which goes to *label; also where there is none. */
int sl_dataset_has_one_label(const sl_dataset *dataset, float *label);

/* Rows side by side. */
typedef struct sl_minibatch {
    sl_encoded rows;
    float *labels, *weights;
    float *dense; /* what `rows` points at */
    uint32_t *ids, *bag_start, *bag_ids;
    size_t bag_room;
    void *block; /* all but bag_ids */
    size_t block_size;
} sl_minibatch;

sl_status sl_minibatch_create(const sl_features *features, size_t max_rows, const sl_allocator *allocator,
                              sl_minibatch *out);
void sl_minibatch_free(sl_minibatch *minibatch, const sl_allocator *allocator);
/* Copies the rows of these numbers, count up to max_rows. Errors: SL_ENOMEM. */
sl_status sl_minibatch_gather(sl_minibatch *minibatch, const sl_dataset *dataset, const uint32_t *numbers, size_t count,
                              size_t threads);

#endif
