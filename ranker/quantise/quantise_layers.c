#include "ranker/quantise/quantise_layers.h"

#include "ranker/net/column_scale.h"
#include "ranker/net/loops.h"
#include "ranker/net/net_product.h"

#include <math.h>
#include <string.h>

/* Rows that run through the layers at a time. */
enum { TILE = 256 };

/* ---------------------------------------------------------------------------------------------------------------
 * Calibration
 * ------------------------------------------------------------------------------------------------------------- */

void sl_calibrated_free(sl_calibrated *c) {
    for (size_t l = 0; l < c->shape.layers; l++) {
        sl_observer_free(c->layers[l].observer);
        SL_FREE_ARRAY(&c->allocator, c->layers[l].inputs, c->rows * c->shape.width[l]);
    }
    *c = (sl_calibrated){.rows = 0};
}

static sl_status alloc_inputs(sl_calibrated *c) {
    for (size_t l = 0; l < c->shape.layers; l++) {
        void *block;
        size_t bytes;
        if (!sl_mul(c->rows, c->shape.width[l] * sizeof(float), &bytes))
            return sl_fail(SL_ENOMEM, "inputs of %zu rows do not fit; calibrate on fewer", c->rows);
        SL_TRY(sl_mem_alloc(&c->allocator, bytes, &block));
        c->layers[l].inputs = block;
        SL_TRY(sl_observer_create(&c->allocator, &c->layers[l].observer));
    }
    return SL_OK;
}

/* Computes the inputs of layers 1 and later from the inputs of layer 0. */
static sl_status compute_inputs(const sl_ranker *ranker, sl_calibrated *c, sl_products *products) {
    const sl_net_shape *shape = &c->shape;
    for (size_t l = 0; l + 1 < shape->layers; l++) {
        size_t in = shape->width[l], out = shape->width[l + 1];
        const float *weights = ranker->weights.dense + sl_net_weight_at(shape, l);
        for (size_t at = 0, rows; at < c->rows; at += rows) {
            rows = c->rows - at < TILE ? c->rows - at : TILE;
            sl_product_shape product = {.rows = rows,
                                        .in = in,
                                        .out = out,
                                        .stride = in,
                                        .has_bias = 1,
                                        .activation = shape->activation,
                                        .threads = 1};
            SL_TRY(sl_products_run(products, &product, c->layers[l].inputs + at * in, weights, weights + in * out,
                                   c->layers[l + 1].inputs + at * out));
        }
    }
    return SL_OK;
}

static sl_status observe_inputs(sl_calibrated *c) {
    for (size_t l = 0; l < c->shape.layers; l++) {
        sl_layer_seen *layer = &c->layers[l];
        sl_observer_add(layer->observer, layer->inputs, c->rows * c->shape.width[l]);
        if (sl_observer_seen(layer->observer).not_finite)
            return sl_fail(SL_EVALUE,
                           "inputs of layer dense.%zu are not finite: the weights before it, or huge values of the "
                           "rows to calibrate on, overflow F32; train the model with a lower deep.rate, or leave such "
                           "rows out",
                           l);
    }
    return SL_OK;
}

sl_status sl_calibrate(const sl_ranker *ranker, const sl_encoded *rows, const sl_allocator *allocator,
                       sl_calibrated *out) {
    sl_products *products = NULL;
    sl_status status;
    *out = (sl_calibrated){.allocator = *allocator, .shape = ranker->shape, .rows = rows->rows};
    SL_TRY_GOTO(alloc_inputs(out), done);
    sl_deep_inputs(ranker->features, (const float *const *)ranker->weights.embeddings, &ranker->weights.coded, rows,
                   SL_ALL_SIDES, ranker->features->deep_inputs, out->layers[0].inputs);
    SL_TRY_GOTO(sl_products_create(allocator, &products), done);
    SL_TRY_GOTO(compute_inputs(ranker, out, products), done);
    SL_TRY_GOTO(observe_inputs(out), done);
done:
    sl_products_free(products);
    if (status != SL_OK) sl_calibrated_free(out);
    return status;
}

/* ---------------------------------------------------------------------------------------------------------------
 * Weights
 * ------------------------------------------------------------------------------------------------------------- */

static void code_weights(const float *weights, const sl_coded_layer *to, size_t in, size_t out, int by_error) {
    for (size_t o = 0; o < out; o++) {
        to->scales[o] = sl_column_scale(weights + o, in, out, by_error);
        for (size_t i = 0; i < in; i++)
            to->codes[i * out + o] = sl_weight_code(weights[i * out + o], to->scales[o]);
    }
}

static sl_status round_weights(const float *weights, size_t count, size_t layer, uint16_t *to) {
    sl_loops_get()->narrow(weights, count, SL_BF16, to);
    for (size_t i = 0; i < count; i++)
        if (!isfinite(sl_bf16_value(to[i])))
            return sl_fail(SL_EVALUE, "weights of layer dense.%zu are too large for bf16; keep the layer in F32",
                           layer);
    return SL_OK;
}

/* ---------------------------------------------------------------------------------------------------------------
 * Biases
 * ------------------------------------------------------------------------------------------------------------- */

/* Quantises a row's inputs and adds the decoded inputs to `sums`. */
static void dequantise_row(const sl_int8_loops *loops, const sl_layer_codes *layer, const float *x, size_t in,
                           uint8_t *codes, double *sums) {
    sl_int8_range range = layer->input;
    if (layer->type == SL_LAYER_INT8_DYNAMIC) {
        float low, high;
        loops->extent(x, in, &low, &high);
        range = sl_int8_range_of(low, high);
    }
    loops->quantise(x, in, &range, codes);
    for (size_t i = 0; i < in; i++)
        sums[i] += (double)((float)((int)codes[i] - range.zero) * range.scale);
}

/* Adds to each bias the mean of float output - coded output (Nagel et al. 2019, arXiv 1906.04721). The mean error is
 * the difference of two products: mean inputs times weights, and the same with both decoded. */
static sl_status correct_biases(const sl_ranker *ranker, const sl_calibrated *calibrated, const sl_coded_layers *coded,
                                size_t layer) {
    const sl_int8_loops *loops = sl_int8_get();
    const sl_coded_layer to = sl_coded_layers_at(coded, &ranker->shape, layer);
    const float *weights = ranker->weights.dense + sl_net_weight_at(&ranker->shape, layer);
    size_t in = ranker->shape.width[layer], out = ranker->shape.width[layer + 1];
    size_t bytes = 2 * in * sizeof(double) + in;
    void *block;
    SL_TRY(sl_mem_alloc(&calibrated->allocator, bytes, &block));
    double *exact = block, *kept = exact + in;
    for (size_t r = 0; r < calibrated->rows; r++) {
        const float *x = calibrated->layers[layer].inputs + r * in;
        for (size_t i = 0; i < in; i++)
            exact[i] += (double)x[i];
        dequantise_row(loops, &coded->layers[layer], x, in, (uint8_t *)(kept + in), kept);
    }
    for (size_t o = 0; o < out; o++) {
        double missing = 0;
        for (size_t i = 0; i < in; i++)
            missing += exact[i] * (double)weights[i * out + o] -
                       kept[i] * (double)((float)to.codes[i * out + o] * to.scales[o]);
        to.biases[o] += (float)(missing / (double)calibrated->rows);
    }
    sl_mem_free(&calibrated->allocator, block, bytes);
    return SL_OK;
}

/* ---------------------------------------------------------------------------------------------------------------
 * Layers
 * ------------------------------------------------------------------------------------------------------------- */

static sl_status range_inputs(const sl_calibrated *calibrated, size_t layer, const sl_range_rule *rule,
                              sl_int8_range *out) {
    sl_quant_range range;
    const sl_observed seen = sl_observer_seen(calibrated->layers[layer].observer);
    if (seen.low == 0 && seen.high == 0)
        return sl_fail(SL_EINVAL,
                       "all inputs of layer dense.%zu are 0 on the rows to calibrate on; give other rows, or "
                       "keep the layer in F32, BF16 or INT8_DYNAMIC",
                       layer);
    SL_TRY(sl_observer_range(calibrated->layers[layer].observer, rule, &range));
    /* Symmetric codes are s8. Stored as u8, 128 means 0. */
    *out = (sl_int8_range){range.scale, rule->symmetric ? 128 : range.zero};
    return SL_OK;
}

sl_status sl_code_layer(const sl_ranker *ranker, const sl_calibrated *calibrated, const sl_layer_choice *choice,
                        sl_coded_layers *coded, size_t layer) {
    const sl_net_shape *shape = &ranker->shape;
    size_t in = shape->width[layer], out = shape->width[layer + 1];
    const float *weights = ranker->weights.dense + sl_net_weight_at(shape, layer);
    const sl_coded_layer to = sl_coded_layers_at(coded, shape, layer);
    memcpy(to.biases, weights + in * out, out * sizeof *weights);
    if (choice->type == SL_LAYER_F32) {
        memcpy(to.weights, weights, in * out * sizeof *weights);
        return SL_OK;
    }
    if (choice->type == SL_LAYER_BF16) return round_weights(weights, in * out, layer, to.bf16);
    code_weights(weights, &to, in, out, choice->rule.method == SL_CALIBRATION_MSE);
    if (choice->bias_correction) SL_TRY(correct_biases(ranker, calibrated, coded, layer));
    return sl_coded_layers_check(coded, shape, layer);
}

sl_status sl_quantise_layers(const sl_ranker *ranker, const sl_calibrated *calibrated, const sl_layer_choice *choices,
                             const sl_allocator *allocator, sl_coded_layers *out) {
    const sl_net_shape *shape = &ranker->shape;
    sl_layer_type types[SL_MAX_LAYERS];
    sl_int8_range inputs[SL_MAX_LAYERS];
    *out = (sl_coded_layers){.block = NULL};
    for (size_t l = 0; l < shape->layers; l++) {
        types[l] = choices[l].type;
        inputs[l] = (sl_int8_range){1, 0};
        if (types[l] == SL_LAYER_INT8) SL_TRY(range_inputs(calibrated, l, &choices[l].rule, &inputs[l]));
    }
    SL_TRY(sl_coded_layers_create(shape, types, inputs, allocator, out));
    for (size_t l = 0; l < shape->layers; l++) {
        sl_status status = sl_code_layer(ranker, calibrated, &choices[l], out, l);
        if (status == SL_OK) continue;
        sl_coded_layers_free(out, allocator);
        return status;
    }
    return SL_OK;
}
