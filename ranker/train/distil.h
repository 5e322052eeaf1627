/* Distillation: a training learns the scores of another model, its teacher, beside the labels or in their place
 * (Hinton, Vinyals and Dean 2015, arXiv 1503.02531). */
#ifndef SL_RANKER_TRAIN_DISTIL_H
#define SL_RANKER_TRAIN_DISTIL_H

#include "ranker/features/dataset.h"
#include "ranker/net/loops.h"
#include "ranker/net/loss.h"

typedef struct sl_distil {
    sl_allocator allocator;
    const sl_loops *loops;
    double share;       /* of the soft loss */
    double temperature; /* 1 under squared loss */
    size_t outputs;
    /* (rows, outputs): the teacher's probabilities at the temperature. Values under squared loss. */
    float *targets;
    size_t target_count;
    float *room; /* for a mini-batch: logits by the temperature, targets, gradient */
    size_t room_count;
} sl_distil;

/* Tells whether labels are left unread, as the teacher alone is learned. */
static inline int sl_distils_alone(const sl_train_params *params) {
    return params->teacher && params->soft == 1;
}

/* Asks the teacher about all rows of `data`, each source from its beginning. Rows without labels get labels of the
 * teacher: its probability, its likeliest class or its value. Free it on failure too.
 * Parameters: `data` has been read from these sources. minibatch_rows bounds the rows of sl_distil_sum.
 * Errors: SL_EINVAL (another loss or other classes), SL_EVALUE (a source that gives other rows now), those of a
 * prediction. */
sl_status sl_distil_create(const sl_train_params *params, const sl_rows *train, const sl_rows *valid, sl_dataset *data,
                           size_t minibatch_rows, sl_distil **out);
void sl_distil_free(sl_distil *distil);

/* Returns the sum over the rows of weight * loss, as sl_loss_sum does. The loss is (1 - share) * the labels' loss +
 * share * temperature^2 * the cross entropy with the targets at the temperature. The square keeps the size of the
 * gradient, which falls by it.
 * Parameters: the rows' numbers in the data. gradient is not NULL. */
double sl_distil_sum(sl_distil *distil, sl_loss loss, const sl_loss_rows *rows, const uint32_t *numbers, float scale,
                     float *gradient);

#endif
