#include "ranker/prune/importance.h"

#include <math.h>

size_t sl_unit_count(const sl_net_shape *shape) {
    size_t count = 0;
    for (size_t l = 1; l < shape->layers; l++)
        count += shape->width[l];
    return count;
}

/* Adds each unit's squared change of the loss, from the gradient of one mini-batch. */
static void add_changes(const sl_trainer *trainer, double *out) {
    const sl_net_shape *shape = &trainer->shape;
    for (size_t l = 1; l < shape->layers; l++) {
        size_t at = sl_net_weight_at(shape, l), columns = shape->width[l + 1];
        for (size_t unit = 0; unit < shape->width[l]; unit++, at += columns) {
            double change = 0;
            for (size_t c = 0; c < columns; c++)
                change += (double)trainer->weights.dense[at + c] * (double)trainer->dense_gradient[at + c];
            *out++ += change * change;
        }
    }
}

sl_status sl_unit_taylor(sl_trainer *trainer, size_t rows, double *out) {
    sl_dataset *data = &trainer->data;
    size_t units = sl_unit_count(&trainer->shape), batches = 0;
    size_t count = rows && rows < data->train_count ? rows : data->train_count;
    for (size_t i = 0; i < units; i++)
        out[i] = 0;
    sl_dataset_shuffle(data, trainer->spec->seed, 0);
    for (size_t at = 0; at < count; at += trainer->minibatch_rows, batches++) {
        size_t part = count - at < trainer->minibatch_rows ? count - at : trainer->minibatch_rows;
        SL_TRY(sl_trainer_gradient(trainer, data->order + at, part));
        add_changes(trainer, out);
    }
    for (size_t i = 0; i < units; i++)
        out[i] /= (double)batches;
    return SL_OK;
}

void sl_unit_norms(const sl_net_shape *shape, const float *dense, double *out) {
    for (size_t l = 1; l < shape->layers; l++) {
        size_t width = shape->width[l], in = shape->width[l - 1], columns = shape->width[l + 1];
        const float *before = dense + sl_net_weight_at(shape, l - 1), *behind = dense + sl_net_weight_at(shape, l);
        for (size_t unit = 0; unit < width; unit++) {
            double into = 0, from = 0;
            for (size_t r = 0; r < in; r++)
                into += (double)before[r * width + unit] * (double)before[r * width + unit];
            for (size_t c = 0; c < columns; c++)
                from += (double)behind[unit * columns + c] * (double)behind[unit * columns + c];
            *out++ = sqrt(into) * sqrt(from);
        }
    }
}
