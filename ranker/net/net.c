#include "ranker/net/net.h"

#include <string.h>

static const char *const layer_names[SL_MAX_LAYERS] = {"dense.0", "dense.1", "dense.2", "dense.3", "dense.4",
                                                       "dense.5", "dense.6", "dense.7", "dense.8"};

const char *sl_layer_name(size_t layer) {
    return layer_names[layer];
}

sl_status sl_layer_find(const sl_net_shape *shape, const char *name, size_t *out) {
    for (size_t l = 0; name && l < shape->layers; l++) {
        *out = l;
        if (strcmp(layer_names[l], name) == 0) return SL_OK;
    }
    return sl_fail(SL_ENOTFOUND, "the model has no layer '%s'; its layers are dense.0 to dense.%zu", name ? name : "",
                   shape->layers - 1);
}

size_t sl_net_weight_at(const sl_net_shape *shape, size_t layer) {
    size_t at = 0;
    for (size_t l = 0; l < layer; l++)
        at += shape->width[l] * shape->width[l + 1] + shape->width[l + 1];
    return at;
}

size_t sl_net_bias_at(const sl_net_shape *shape, size_t layer) {
    return sl_net_weight_at(shape, layer) + shape->width[layer] * shape->width[layer + 1];
}

size_t sl_net_size(const sl_net_shape *shape) {
    return sl_net_weight_at(shape, shape->layers);
}

size_t sl_net_multiply_adds(const sl_net_shape *shape) {
    size_t count = 0;
    for (size_t l = 0; l < shape->layers; l++)
        count += shape->width[l] * shape->width[l + 1];
    return count;
}

size_t sl_net_widest(const sl_net_shape *shape, size_t from) {
    size_t most = 0;
    for (size_t l = from; l <= shape->layers; l++)
        most = shape->width[l] > most ? shape->width[l] : most;
    return most;
}

size_t sl_net_zeros(const sl_net_shape *shape, const float *weights) {
    size_t count = 0;
    for (size_t l = 0; l < shape->layers; l++)
        for (size_t i = sl_net_weight_at(shape, l); i < sl_net_bias_at(shape, l); i++)
            count += weights[i] == 0;
    return count;
}

int sl_all_finite(const float *values, size_t count) {
    /* Summing magnitudes could overflow. x - x is 0 for finite numbers alone. */
    float not_finite = 0;
    for (size_t i = 0; i < count; i++)
        not_finite = not_finite != 0 ? not_finite : values[i] - values[i];
    return not_finite == 0;
}

int sl_net_has_onednn(void) {
#ifdef SL_HAVE_ONEDNN
    return 1;
#else
    return 0;
#endif
}
