#include "ranker/model/coded_layers.h"

#include "base/memory.h"
#include "ranker/net/int8.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* Offsets of a layer's arrays in the block. */
typedef struct layer_offsets {
    size_t floats, codes, end; /* floats: weights or scales, then biases; codes: INT8 codes or bf16 numbers */
} layer_offsets;

static size_t align_to_line(size_t bytes) {
    return sl_round_up(bytes, SL_CACHE_LINE);
}

/* Returns the offsets of a layer whose arrays begin at `at`. Sizes can't overflow, because those of the floats' block
 * do not. */
static layer_offsets offsets_from(const sl_net_shape *shape, size_t layer, sl_layer_type type, size_t at) {
    size_t in = shape->width[layer], out = shape->width[layer + 1];
    layer_offsets p = {.floats = at};
    size_t floats = type == SL_LAYER_F32 ? in * out + out : type == SL_LAYER_BF16 ? out : 2 * out;
    size_t element = type == SL_LAYER_F32 ? 0 : type == SL_LAYER_BF16 ? sizeof(uint16_t) : sizeof(int8_t);
    p.codes = at + align_to_line(floats * sizeof(float));
    p.end = p.codes + align_to_line(in * out * element);
    return p;
}

static const sl_coded_layer_record *records_of(const sl_coded_layers *coded) {
    return (const sl_coded_layer_record *)(const void *)coded->block;
}

static sl_layer_type type_of(const sl_coded_layers *coded, size_t layer) {
    return (sl_layer_type)records_of(coded)[layer].type;
}

static layer_offsets offsets_of(const sl_coded_layers *coded, const sl_net_shape *shape, size_t layer) {
    layer_offsets p = {.end = align_to_line(shape->layers * sizeof(sl_coded_layer_record))};
    for (size_t l = 0; l <= layer; l++)
        p = offsets_from(shape, l, type_of(coded, l), p.end);
    return p;
}

sl_coded_layer sl_coded_layers_at(const sl_coded_layers *coded, const sl_net_shape *shape, size_t layer) {
    const layer_offsets p = offsets_of(coded, shape, layer);
    size_t in = shape->width[layer], out = shape->width[layer + 1];
    float *floats = (float *)(void *)(coded->block + p.floats);
    if (type_of(coded, layer) == SL_LAYER_F32) return (sl_coded_layer){.weights = floats, .biases = floats + in * out};
    if (type_of(coded, layer) == SL_LAYER_BF16)
        return (sl_coded_layer){.biases = floats, .bf16 = (uint16_t *)(void *)(coded->block + p.codes)};
    return (sl_coded_layer){.scales = floats, .biases = floats + out, .codes = (int8_t *)coded->block + p.codes};
}

/* Sets the layers' pointers into the block. */
static void set_layers(sl_coded_layers *coded, const sl_net_shape *shape) {
    for (size_t l = 0; l < shape->layers; l++) {
        const sl_coded_layer_record *record = &records_of(coded)[l];
        sl_coded_layer parts = sl_coded_layers_at(coded, shape, l);
        coded->layers[l] = (sl_layer_codes){.type = (sl_layer_type)record->type,
                                            .input = {.scale = 1},
                                            .codes = parts.codes,
                                            .scales = parts.scales,
                                            .bf16 = parts.bf16};
        if (record->type == SL_LAYER_INT8) coded->layers[l].input = (sl_int8_range){record->scale, record->zero};
    }
}

sl_status sl_coded_layers_create(const sl_net_shape *shape, const sl_layer_type *types, const sl_int8_range *inputs,
                                 const sl_allocator *allocator, sl_coded_layers *out) {
    void *block;
    layer_offsets p = {.end = align_to_line(shape->layers * sizeof(sl_coded_layer_record))};
    *out = (sl_coded_layers){.block = NULL};
    for (size_t l = 0; l < shape->layers; l++)
        p = offsets_from(shape, l, types[l], p.end);
    SL_TRY(sl_mem_alloc(allocator, p.end, &block));
    out->block = block;
    out->size = p.end;
    sl_coded_layer_record *records = block;
    for (size_t l = 0; l < shape->layers; l++) {
        records[l] = (sl_coded_layer_record){.type = (uint32_t)types[l]};
        if (types[l] != SL_LAYER_INT8) continue;
        records[l].scale = inputs[l].scale;
        records[l].zero = inputs[l].zero;
    }
    set_layers(out, shape);
    return SL_OK;
}

sl_status sl_coded_layers_copy(const sl_coded_layers *from, const sl_net_shape *shape, const sl_allocator *allocator,
                               sl_coded_layers *out) {
    void *block;
    *out = (sl_coded_layers){.block = NULL};
    if (!from->block) return SL_OK;
    SL_TRY(sl_mem_alloc(allocator, from->size, &block));
    memcpy(block, from->block, from->size);
    *out = (sl_coded_layers){.block = block, .size = from->size};
    set_layers(out, shape);
    return SL_OK;
}

sl_status sl_coded_layers_with_floats(const sl_coded_layers *from, const sl_net_shape *shape, const int *as_floats,
                                      const float *dense, const sl_allocator *allocator, sl_coded_layers *out) {
    sl_layer_type types[SL_MAX_LAYERS];
    sl_int8_range inputs[SL_MAX_LAYERS];
    int in_codes = 0;
    *out = (sl_coded_layers){.block = NULL};
    for (size_t l = 0; from->block && l < shape->layers; l++) {
        types[l] = as_floats[l] ? SL_LAYER_F32 : from->layers[l].type;
        inputs[l] = from->layers[l].input;
        in_codes |= types[l] != SL_LAYER_F32;
    }
    if (!in_codes) return SL_OK;
    SL_TRY(sl_coded_layers_create(shape, types, inputs, allocator, out));
    for (size_t l = 0; l < shape->layers; l++) {
        const layer_offsets to = offsets_of(out, shape, l), at = offsets_of(from, shape, l);
        size_t in = shape->width[l], width = shape->width[l + 1];
        if (!as_floats[l]) {
            memcpy(out->block + to.floats, from->block + at.floats, to.end - to.floats);
            continue;
        }
        const sl_coded_layer parts = sl_coded_layers_at(out, shape, l);
        memcpy(parts.weights, dense + sl_net_weight_at(shape, l), in * width * sizeof *dense);
        memcpy(parts.biases, dense + sl_net_bias_at(shape, l), width * sizeof *dense);
    }
    return SL_OK;
}

void sl_coded_layers_free(sl_coded_layers *coded, const sl_allocator *allocator) {
    sl_mem_free(allocator, coded->block, coded->size);
    *coded = (sl_coded_layers){.block = NULL};
}

/* ---- Checks ---- */

/* Returns whether a scale has a finite inverse. Below FLT_MIN, it may have none. */
static int is_scale(float scale) {
    return isfinite(scale) && scale >= FLT_MIN;
}

/* Returns the largest magnitude that an input's code stands for. It is 1 without a fixed range, because such inputs are
 * floats. */
static double input_reach(const sl_coded_layer_record *record) {
    if (record->type != SL_LAYER_INT8) return 1;
    return (double)record->scale * (record->zero > 127 ? record->zero : 255 - record->zero);
}

const char *sl_coded_layers_fault(const sl_coded_layers *coded, const sl_net_shape *shape, size_t layer) {
    const sl_coded_layer parts = sl_coded_layers_at(coded, shape, layer);
    const double reach = input_reach(&records_of(coded)[layer]), most = (double)FLT_MAX;
    size_t in = shape->width[layer], out = shape->width[layer + 1];
    if (!sl_all_finite(parts.biases, out)) return "a bias is not finite";
    if (parts.weights && !sl_all_finite(parts.weights, in * out)) return "a weight is not finite";
    for (size_t i = 0; parts.bf16 && i < in * out; i++)
        if (!isfinite(sl_bf16_value(parts.bf16[i]))) return "a weight is not finite";
    if (!parts.scales) return NULL;
    if (in > SL_INT8_MAX_INPUTS) return "it has more inputs than sums of 32 bits hold";
    if (!(reach <= most)) return "its range of inputs goes beyond floats";
    for (size_t o = 0; o < out; o++) {
        if (!(parts.scales[o] > 0)) return "a scale of its weights is not above 0";
        if (!(127 * (double)parts.scales[o] * (double)in * reach <= most)) return "a scale of its weights is too large";
    }
    return NULL;
}

sl_status sl_coded_layers_check(const sl_coded_layers *coded, const sl_net_shape *shape, size_t layer) {
    const char *fault = sl_coded_layers_fault(coded, shape, layer);
    if (!fault) return SL_OK;
    return sl_fail(SL_EVALUE, "layer dense.%zu in INT8: %s; keep the layer in F32", layer, fault);
}

/* ---- Blocks of files ---- */

static sl_status check_record(const sl_coded_layer_record *record, size_t layer) {
    if (record->type > SL_LAYER_BF16 || record->reserved)
        return sl_fail(SL_ECORRUPT, "layer %zu of the coded layers is of type %u, which is none; make the model again",
                       layer, record->type);
    if (record->type != SL_LAYER_INT8) {
        if (record->scale == 0 && record->zero == 0) return SL_OK;
        return sl_fail(SL_ECORRUPT, "layer %zu has a range of inputs, which its type has not; make the model again",
                       layer);
    }
    if (is_scale(record->scale) && record->zero >= 0 && record->zero <= 255) return SL_OK;
    return sl_fail(SL_ECORRUPT, "layer %zu has inputs of scale %g and zero %d; make the model again", layer,
                   (double)record->scale, record->zero);
}

static sl_status check_block(const sl_coded_layers *coded, const sl_net_shape *shape) {
    if (coded->size < shape->layers * sizeof(sl_coded_layer_record))
        return sl_fail(SL_ECORRUPT, "the coded layers are %zu bytes, too few for their records; make the model again",
                       coded->size);
    for (size_t l = 0; l < shape->layers; l++)
        SL_TRY(check_record(&records_of(coded)[l], l));
    size_t wanted = offsets_of(coded, shape, shape->layers - 1).end;
    if (coded->size != wanted)
        return sl_fail(SL_ECORRUPT, "the coded layers are %zu bytes, where their types make %zu; make the model again",
                       coded->size, wanted);
    for (size_t l = 0; l < shape->layers; l++) {
        const char *fault = sl_coded_layers_fault(coded, shape, l);
        if (fault) return sl_fail(SL_ECORRUPT, "layer %zu of the coded layers: %s; make the model again", l, fault);
    }
    return SL_OK;
}

sl_status sl_coded_layers_read(const sl_net_shape *shape, void *block, size_t size, const sl_allocator *allocator,
                               sl_coded_layers *out) {
    *out = (sl_coded_layers){.block = block, .size = size};
    sl_status status = check_block(out, shape);
    if (status == SL_OK)
        set_layers(out, shape);
    else
        sl_coded_layers_free(out, allocator);
    return status;
}

void sl_coded_layers_decode(const sl_coded_layers *coded, const sl_net_shape *shape, float *dense) {
    for (size_t l = 0; l < shape->layers; l++) {
        const sl_coded_layer parts = sl_coded_layers_at(coded, shape, l);
        size_t in = shape->width[l], out = shape->width[l + 1];
        float *to = dense + sl_net_weight_at(shape, l);
        memcpy(dense + sl_net_bias_at(shape, l), parts.biases, out * sizeof *dense);
        if (parts.weights) {
            memcpy(to, parts.weights, in * out * sizeof *dense);
            continue;
        }
        for (size_t i = 0; i < in * out; i++)
            to[i] = parts.bf16 ? sl_bf16_value(parts.bf16[i]) : (float)parts.codes[i] * parts.scales[i % out];
    }
}
