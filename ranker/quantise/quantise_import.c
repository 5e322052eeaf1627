/* Layers that another tool quantised. */
#include "ranker/quantise/quantise.h"

#include <float.h>
#include <string.h>

/* Checks the numbers that sl_coded_layers_create and sl_coded_layers_fault do not check. */
static sl_status check_int8(const sl_quantized_layer *layer, size_t number) {
    if (!layer->codes || !layer->weight_scales)
        return sl_fail(SL_EINVAL, "layer %zu is INT8, but its codes or weight_scales are NULL", number);
    if (layer->precision == SL_PRECISION_INT8_DYNAMIC) return SL_OK;
    if (layer->scale >= FLT_MIN && layer->scale <= FLT_MAX && layer->zero >= 0 && layer->zero <= 255) return SL_OK;
    return sl_fail(SL_EINVAL,
                   "layer %zu has inputs of scale %g and zero %d; give a scale above 0 and a zero from 0 to 255",
                   number, (double)layer->scale, layer->zero);
}

static sl_status check_layers(const sl_ranker *base, const sl_quantized_layer *layers, size_t count) {
    if (count != base->shape.layers)
        return sl_fail(SL_EINVAL, "%zu layers for a model of %zu; give one for each", count, base->shape.layers);
    if (base->coded.block) return sl_fail(SL_EINVAL, "the model is quantised already; begin with one of floats");
    int quantises = 0;
    for (size_t l = 0; l < count; l++) {
        sl_precision precision = layers[l].precision;
        quantises |= precision != SL_PRECISION_F32;
        if ((unsigned)precision > SL_PRECISION_BF16)
            return sl_fail(SL_EINVAL, "precision %d of layer %zu is none of sl_precision", (int)precision, l);
        if (precision == SL_PRECISION_INT8 || precision == SL_PRECISION_INT8_DYNAMIC) SL_TRY(check_int8(&layers[l], l));
    }
    return quantises ? SL_OK
                     : sl_fail(SL_EINVAL, "every layer is F32, and so the model is base; give another precision");
}

/* Copies an INT8 layer's codes, scales and biases. */
static sl_status copy_codes(const sl_net_shape *shape, size_t l, const sl_quantized_layer *layer, const float *biases,
                            sl_coded_layers *coded) {
    const sl_coded_layer to = sl_coded_layers_at(coded, shape, l);
    size_t in = shape->width[l], out = shape->width[l + 1];
    memcpy(to.codes, layer->codes, in * out);
    memcpy(to.scales, layer->weight_scales, out * sizeof *to.scales);
    memcpy(to.biases, biases, out * sizeof *biases);
    const char *fault = sl_coded_layers_fault(coded, shape, l);
    return fault ? sl_fail(SL_EINVAL, "layer %zu cannot be in INT8: %s; give it in F32", l, fault) : SL_OK;
}

static sl_status make_coded(const sl_ranker *base, const sl_quantized_layer *layers, sl_coded_layers *coded) {
    const sl_net_shape *shape = &base->shape;
    sl_layer_type types[SL_MAX_LAYERS];
    sl_int8_range inputs[SL_MAX_LAYERS];
    for (size_t l = 0; l < shape->layers; l++) {
        types[l] = (sl_layer_type)layers[l].precision;
        inputs[l] = (sl_int8_range){layers[l].scale, layers[l].zero};
    }
    SL_TRY(sl_coded_layers_create(shape, types, inputs, &base->allocator, coded));
    for (size_t l = 0; l < shape->layers; l++) {
        sl_status status;
        if (types[l] == SL_LAYER_F32 || types[l] == SL_LAYER_BF16)
            status = sl_code_layer(base, NULL, &(sl_layer_choice){.type = types[l]}, coded, l);
        else
            status = copy_codes(shape, l, &layers[l], base->weights.dense + sl_net_bias_at(shape, l), coded);
        if (status == SL_OK) continue;
        sl_coded_layers_free(coded, &base->allocator);
        return status;
    }
    return SL_OK;
}

sl_status sl_ranker_with_layers(const sl_ranker *base, const sl_quantized_layer *layers, size_t count,
                                sl_ranker **out) {
    sl_coded_layers coded;
    if (!out) return sl_fail(SL_EINVAL, "out is NULL; give the address of a handle");
    *out = NULL;
    if (!base || !layers) return sl_fail(SL_EINVAL, "base or layers is NULL");
    SL_TRY(check_layers(base, layers, count));
    SL_TRY(make_coded(base, layers, &coded));
    return sl_ranker_with_coded(base, &coded, &base->allocator, out);
}
