#include "ranker/quantise/quantise.h"

#include "base/params.h"
#include "base/random.h"
#include "ranker/features/table.h"
#include "ranker/quantise/quantise_tables.h"

#include <string.h>

enum { DEFAULT_ROWS = 4096 };

void sl_quantize_params_init_sized(sl_quantize_params *params, size_t struct_size) {
    const sl_quantize_params mine = {.struct_size = sizeof mine,
                                     .precision = SL_PRECISION_INT8,
                                     .calibration = SL_CALIBRATION_MSE,
                                     .quantile = SL_RANGE_QUANTILE_DEFAULT,
                                     .bias_correction = 1,
                                     .rows = DEFAULT_ROWS};
    sl_params_defaults(params, struct_size, &mine, sizeof mine);
}

/* ---------------------------------------------------------------------------------------------------------------
 * Choices
 * ------------------------------------------------------------------------------------------------------------- */

static sl_status check_params(const sl_quantize_params *params) {
    if ((unsigned)params->precision > SL_PRECISION_BF16)
        return sl_fail(SL_EINVAL, "precision %d is none of sl_precision", (int)params->precision);
    if (!sl_calibration_exists(params->calibration))
        return sl_fail(SL_EINVAL, "calibration %d is none of sl_calibration", (int)params->calibration);
    if (!(params->quantile >= 0 && params->quantile < 1))
        return sl_fail(SL_EINVAL, "quantile is %g; give a share from 0 to below 1", params->quantile);
    if ((unsigned)params->tables > SL_TABLE_AUTO)
        return sl_fail(SL_EINVAL, "tables is %d, which is none of sl_table_type", (int)params->tables);
    if (params->rows == 0) return sl_fail(SL_EINVAL, "rows is 0; calibration needs one row at least");
    if (params->keep_count && !params->keep)
        return sl_fail(SL_EINVAL, "keep is NULL, with %zu names", params->keep_count);
    return SL_OK;
}

static sl_layer_choice choice_of(const sl_quantize_params *params, sl_precision precision) {
    sl_layer_choice choice = {.type = (sl_layer_type)precision, .bias_correction = params->bias_correction};
    choice.rule = sl_range_rule_of(params->calibration, params->symmetric != 0);
    choice.rule.quantile = params->quantile;
    return choice;
}

sl_status sl_layer_choices(const sl_ranker *ranker, const sl_quantize_params *params, sl_layer_choice *choices) {
    const sl_net_shape *shape = &ranker->shape;
    SL_TRY(check_params(params));
    if (!shape->layers)
        return sl_fail(SL_EINVAL, "the model has no deep part, and so no layers to quantise; its wide part stays F32");
    if (ranker->coded.block)
        return sl_fail(SL_EINVAL, "the model is quantised already; quantise the one that it was made from");
    for (size_t l = 0; l < shape->layers; l++) {
        sl_precision precision = params->layers ? params->layers[l] : params->precision;
        if ((unsigned)precision > SL_PRECISION_BF16)
            return sl_fail(SL_EINVAL, "precision %d of layer %zu is none of sl_precision", (int)precision, l);
        choices[l] = choice_of(params, precision);
    }
    for (size_t i = 0; i < params->keep_count; i++) {
        size_t layer = 0;
        SL_TRY(sl_layer_find(shape, params->keep[i], &layer));
        choices[layer].type = SL_LAYER_F32;
    }
    return SL_OK;
}

/* ---------------------------------------------------------------------------------------------------------------
 * Drawing rows
 * ------------------------------------------------------------------------------------------------------------- */

static sl_status count_rows(const sl_rows *source, uint64_t *count) {
    *count = 0;
    SL_TRY(source->rewind(source->ctx));
    for (;;) {
        sl_table block;
        SL_TRY(sl_rows_next(source, SL_BLOCK_ROWS, &block));
        if (block.rows == 0) return SL_OK;
        *count += block.rows;
    }
}

/* Takes each row with the probability wanted rows / rows to come (Knuth, TAOCP 2, 3.4.2, algorithm S). So every set of
 * rows is equally likely. */
static sl_status append_drawn(sl_encoder *encoder, const sl_rows *source, const sl_draw *draw, uint64_t total,
                              sl_rows_buffer *out) {
    uint64_t seen = 0;
    SL_TRY(source->rewind(source->ctx));
    for (;;) {
        sl_table block;
        SL_TRY(sl_rows_next(source, SL_BLOCK_ROWS, &block));
        if (block.rows == 0) return SL_OK;
        for (size_t r = 0; r < block.rows && out->rows < draw->rows; r++, seen++) {
            double left = (double)(total > seen ? total - seen : 1);
            if (sl_random_unit(draw->seed, seen) * left >= (double)(draw->rows - out->rows)) continue;
            SL_TRY(sl_encoder_append(encoder, &block, r, 1, out));
        }
    }
}

sl_status sl_draw_rows(const sl_features *features, const sl_rows *source, const sl_draw *draw, sl_rows_buffer *out) {
    const sl_allocator allocator = out->allocator;
    sl_encoder *encoder;
    uint64_t total;
    SL_TRY(sl_rows_check(source));
    SL_TRY(count_rows(source, &total));
    if (total == 0) return sl_fail(SL_EINVAL, "the source has no rows; calibration needs one at least");
    SL_TRY(sl_encoder_create(features, SL_ALL_SIDES, draw->with_labels, draw->lookup, draw->lookup_ctx, &allocator,
                             &encoder));
    sl_status status = append_drawn(encoder, source, draw, total, out);
    sl_encoder_free(encoder);
    if (status == SL_OK && out->rows == 0)
        status = sl_fail(SL_EINVAL, "the source gave no rows when it was read again; give one that can be read twice");
    return status;
}

/* ---------------------------------------------------------------------------------------------------------------
 * The public call
 * ------------------------------------------------------------------------------------------------------------- */

static int needs_rows(const sl_net_shape *shape, const sl_layer_choice *choices) {
    int needs = 0;
    for (size_t l = 0; l < shape->layers; l++)
        needs |= choices[l].type == SL_LAYER_INT8 ||
                 (choices[l].type == SL_LAYER_INT8_DYNAMIC && choices[l].bias_correction);
    return needs;
}

sl_status sl_ranker_with_coded(const sl_ranker *base, sl_coded_layers *coded, const sl_allocator *allocator,
                               sl_ranker **out) {
    sl_features *features;
    sl_weights weights;
    sl_status status = sl_ranker_copy_features(base, &features);
    if (status == SL_OK) {
        status = sl_weights_create_coded(features, &base->shape, base->weights.coded.codes, allocator, &weights);
        if (status != SL_OK) sl_features_free(features);
    }
    if (status != SL_OK) {
        sl_coded_layers_free(coded, allocator);
        return status;
    }
    sl_weights_copy(&weights, &base->weights, features, &base->shape);
    sl_coded_layers_decode(coded, &base->shape, weights.dense);
    return sl_ranker_make(features, &weights, coded, allocator, out);
}

sl_status sl_ranker_with_table_type(const sl_ranker *base, sl_table_type type, sl_ranker **out) {
    size_t count = base->features->table_count;
    void *block;
    *out = NULL;
    if (type == SL_TABLE_F32 || !count) return SL_OK;
    SL_TRY(sl_mem_alloc(&base->allocator, count * sizeof(sl_table_type), &block));
    sl_table_type *types = block;
    for (size_t t = 0; t < count; t++)
        types[t] = type;
    sl_status status = sl_ranker_with_tables(base, types, out);
    sl_mem_free(&base->allocator, block, count * sizeof *types);
    return status;
}

static int keeps_floats(const sl_net_shape *shape, const sl_layer_choice *choices) {
    for (size_t l = 0; l < shape->layers; l++)
        if (choices[l].type != SL_LAYER_F32) return 0;
    return 1;
}

static sl_status quantise_model(const sl_ranker *ranker, const sl_rows *rows, const sl_quantize_params *params,
                                const sl_layer_choice *choices, sl_ranker **out) {
    const sl_allocator allocator = sl_allocator_of(params->allocator);
    const sl_draw draw = {
        .rows = params->rows, .seed = params->seed, .lookup = params->lookup, .lookup_ctx = params->lookup_ctx};
    sl_rows_buffer drawn = {.allocator = allocator};
    sl_calibrated calibrated = {.rows = 0};
    sl_coded_layers coded;
    sl_encoded view;
    sl_status status = SL_OK;
    int with_rows = needs_rows(&ranker->shape, choices);
    if (with_rows) {
        if (!rows) return sl_fail(SL_EINVAL, "rows is NULL; a static range or a corrected bias needs rows");
        SL_TRY_GOTO(sl_draw_rows(ranker->features, rows, &draw, &drawn), done);
        sl_rows_buffer_view(&drawn, &view);
        SL_TRY_GOTO(sl_calibrate(ranker, &view, &allocator, &calibrated), done);
    }
    SL_TRY_GOTO(sl_quantise_layers(ranker, with_rows ? &calibrated : NULL, choices, &allocator, &coded), done);
    status = sl_ranker_with_coded(ranker, &coded, &allocator, out);
done:
    sl_calibrated_free(&calibrated);
    sl_rows_buffer_free(&drawn);
    return status;
}

sl_status sl_ranker_quantize(const sl_ranker *ranker, const sl_rows *rows, const sl_quantize_params *params,
                             sl_ranker **out) {
    if (!out) return sl_fail(SL_EINVAL, "out is NULL; give the address of a handle");
    *out = NULL;
    if (!ranker) return sl_fail(SL_EINVAL, "ranker is NULL");
    sl_quantize_params mine;
    sl_quantize_params_init(&mine);
    SL_TRY(sl_params_in(&mine, sizeof mine, params, "sl_quantize_params_init"));
    sl_layer_choice choices[SL_MAX_LAYERS];
    sl_ranker *smaller;
    SL_TRY(sl_layer_choices(ranker, &mine, choices));
    if (mine.tables == SL_TABLE_AUTO)
        return sl_fail(SL_EINVAL, "tables is AUTO, which sl_ranker_search_precision alone takes; name a type");
    SL_TRY(sl_ranker_with_table_type(ranker, mine.tables, &smaller));
    if (keeps_floats(&ranker->shape, choices)) {
        *out = smaller;
        return smaller
                   ? SL_OK
                   : sl_fail(SL_EINVAL, "every layer stays F32, and so do the tables; quantise a layer or the tables");
    }
    sl_status status = quantise_model(smaller ? smaller : ranker, rows, &mine, choices, out);
    sl_ranker_free(smaller);
    return status;
}

/* ---------------------------------------------------------------------------------------------------------------
 * Describing a layer
 * ------------------------------------------------------------------------------------------------------------- */

sl_status sl_ranker_get_layer(const sl_ranker *ranker, size_t i, sl_layer_info *out) {
    if (!ranker) return sl_fail(SL_EINVAL, "ranker is NULL");
    SL_TRY(sl_params_check_out(out, "sl_layer_info"));
    const sl_net_shape *shape = &ranker->shape;
    if (i >= shape->layers) return sl_fail(SL_EINVAL, "layer %zu of %zu; they are numbered from 0", i, shape->layers);
    size_t in = shape->width[i], width = shape->width[i + 1];
    sl_layer_info info = {.struct_size = sizeof info,
                          .name = sl_layer_name(i),
                          .in = in,
                          .out = width,
                          .bytes = (in + 1) * width * sizeof(float)};
    if (ranker->coded.block && ranker->coded.layers[i].type != SL_LAYER_F32) {
        const sl_layer_codes *codes = &ranker->coded.layers[i];
        info.precision = (sl_precision)codes->type;
        info.weight_scales = codes->scales;
        info.bytes = codes->type == SL_LAYER_BF16 ? in * width * sizeof(uint16_t) + width * sizeof(float)
                                                  : in * width + 2 * width * sizeof(float);
        if (codes->type == SL_LAYER_INT8) {
            info.scale = codes->input.scale;
            info.zero = codes->input.zero;
            info.low = (float)-info.zero * info.scale;
            info.high = (float)(255 - info.zero) * info.scale;
        }
    }
    sl_params_out(out, &info, sizeof info);
    return SL_OK;
}
