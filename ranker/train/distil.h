/* Distillation: a training learns the scores of another model, its teacher, beside the labels or instead of them
 * (Hinton, Vinyals and Dean 2015, arXiv 1503.02531). */
#ifndef SL_RANKER_TRAIN_DISTIL_H
#define SL_RANKER_TRAIN_DISTIL_H

#include "ranker/features/dataset.h"
#include "ranker/net/loops.h"
#include "ranker/net/loss.h"

typedef struct sl_distil {
    sl_allocator allocator;
    const sl_loops *loops;
    double share;       /* weight of the soft loss, from 0 to 1 */
    double temperature; /* 1 under squared loss */
    size_t outputs;
    /* (rows, outputs): the teacher's probabilities at the temperature; its values under squared loss */
    float *targets;
    size_t target_count;
    float *room; /* scratch of a mini-batch: logits / temperature, targets, gradient */
    size_t room_count;
} sl_distil;

/* Returns whether labels stay unread, because only the teacher counts. */
static inline int sl_distils_alone(const sl_train_params *params) {
    return params->teacher && params->soft == 1;
}

/* Scores all rows of `data` with the teacher, each source from its beginning. Rows without labels get the teacher's:
 * its probability, its likeliest class or its value. The caller frees *out on failure too.
 * Parameters: `data` was read from these sources. sl_distil_sum gets at most minibatch_rows rows.
 * Errors: SL_EINVAL (another loss or other classes), SL_EVALUE (a source that gives other rows now), errors of a
 * prediction. */
sl_status sl_distil_create(const sl_train_params *params, const sl_rows *train, const sl_rows *valid, sl_dataset *data,
                           size_t minibatch_rows, sl_distil **out);
void sl_distil_free(sl_distil *distil);

/* Returns the sum over the rows of weight * loss, as sl_loss_sum does. The loss is (1 - share) * the labels' loss +
 * share * temperature^2 * the cross entropy with the targets at the temperature. The gradient shrinks by temperature^2,
 * and the factor restores its size.
 * Parameters: numbers are the rows' numbers in the data. gradient is not NULL. */
double sl_distil_sum(sl_distil *distil, sl_loss loss, const sl_loss_rows *rows, const uint32_t *numbers, float scale,
                     float *gradient);

#endif
