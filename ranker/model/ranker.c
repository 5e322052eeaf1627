#include "base/params.h"
#include "ranker/features/vocabulary.h"
#include "ranker/model/model.h"

#include <stdio.h>
#include <string.h>

/* A tensor's name is "embedding." and a feature's name, or "dense.N.weight". */
#define LONGEST_LAYER_NAME 32u

static const sl_feature_spec *table_spec(const sl_features *features, size_t table) {
    return features->features[features->tables[table].feature].spec;
}

/* ---- Weights by name ---- */

typedef struct tensor_names {
    sl_ranker *ranker;
    size_t used; /* bytes in use of ranker->names */
} tensor_names;

static void add_tensor(tensor_names *n, const float *data, size_t rows, size_t columns, const char *first,
                       const char *second, const char *third) {
    sl_ranker *ranker = n->ranker;
    char *name = ranker->names + n->used;
    int length = snprintf(name, ranker->names_size - n->used, "%s%s%s", first, second, third);
    n->used += (size_t)length + 1;
    ranker->tensors[ranker->tensor_count++] = (sl_tensor){name, data, rows, columns};
}

static void name_weights(sl_ranker *ranker) {
    const sl_features *features = ranker->features;
    const sl_net_shape *shape = &ranker->shape;
    tensor_names n = {ranker, 0};
    if (features->wide_size)
        add_tensor(&n, ranker->weights.wide, features->wide_size, features->outputs, "wide", "", "");
    add_tensor(&n, ranker->weights.bias, 1, features->outputs, "bias", "", "");
    for (size_t t = 0; t < features->table_count; t++)
        add_tensor(&n, ranker->weights.embeddings[t], features->tables[t].size, features->tables[t].dim, "embedding.",
                   table_spec(features, t)->name, "");
    for (size_t layer = 0; layer < shape->layers; layer++) {
        char number[24];
        snprintf(number, sizeof number, "%zu", layer);
        const float *dense = ranker->weights.dense;
        add_tensor(&n, dense + sl_net_weight_at(shape, layer), shape->width[layer], shape->width[layer + 1], "dense.",
                   number, ".weight");
        add_tensor(&n, dense + sl_net_bias_at(shape, layer), 1, shape->width[layer + 1], "dense.", number, ".bias");
    }
}

/* Returns the number of the first table's tensor. */
static size_t first_table_tensor(const sl_ranker *ranker) {
    return ranker->features->wide_size ? 2 : 1;
}

static size_t max_tensors(const sl_ranker *ranker) {
    return 2 + ranker->features->table_count + 2 * ranker->shape.layers;
}

static sl_status make_names(sl_ranker *ranker) {
    const sl_features *features = ranker->features;
    size_t size = max_tensors(ranker) * LONGEST_LAYER_NAME;
    void *block;
    for (size_t t = 0; t < features->table_count; t++)
        size += strlen(table_spec(features, t)->name);
    SL_TRY(sl_mem_alloc(&ranker->allocator, size, &block));
    ranker->names = block;
    ranker->names_size = size;
    SL_TRY(sl_mem_alloc(&ranker->allocator, max_tensors(ranker) * sizeof *ranker->tensors, &block));
    ranker->tensors = block;
    name_weights(ranker);
    SL_TRY(sl_mem_alloc(&ranker->allocator, features->table_count * sizeof *ranker->decoded, &block));
    ranker->decoded = block;
    return SL_OK;
}

/* ---- Coded tables as floats ---- */

static size_t float_bytes(const sl_table_shape *shape) {
    return shape->size * shape->dim * sizeof(float);
}

/* Gets a coded table as floats. The first call makes them. If several threads make them at once, one result is kept. */
static sl_status decode_table(const sl_ranker *ranker, size_t table, const float **out) {
    const sl_table_shape *shape = &ranker->features->tables[table];
    const sl_coded_tables *coded = &ranker->weights.coded;
    const sl_loops *loops = sl_loops_get();
    float **place = &ranker->decoded[table], *made = __atomic_load_n(place, __ATOMIC_ACQUIRE), *other = NULL;
    if (made) {
        *out = made;
        return SL_OK;
    }
    void *block;
    size_t bytes;
    if (!sl_mul(shape->size, shape->dim * sizeof(float), &bytes))
        return sl_fail(SL_ENOMEM, "tensor '%s' does not fit as floats", sl_ranker_table_name(ranker, table));
    SL_TRY(sl_mem_alloc(&ranker->allocator, bytes, &block));
    made = block;
    size_t row_bytes = sl_row_bytes((sl_table_type)coded->codes[table].type, shape->dim);
    for (size_t r = 0; r < shape->size; r++)
        sl_row_decode(loops, &coded->codes[table], coded->rows[table] + r * row_bytes, shape->dim, SL_DECODE_SET,
                      made + r * shape->dim);
    if (!__atomic_compare_exchange_n(place, &other, made, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        sl_mem_free(&ranker->allocator, made, bytes);
        made = other;
    }
    *out = made;
    return SL_OK;
}

/* ---- Life ---- */

static void destroy_ranker(sl_ranker *ranker) {
    sl_allocator allocator = ranker->allocator;
    sl_net_free(ranker->net);
    for (size_t t = 0; t < ranker->features->table_count && ranker->decoded; t++)
        sl_mem_free(&allocator, ranker->decoded[t], float_bytes(&ranker->features->tables[t]));
    SL_FREE_ARRAY(&allocator, ranker->decoded, ranker->features->table_count);
    if (ranker->tensors) SL_FREE_ARRAY(&allocator, ranker->tensors, max_tensors(ranker));
    sl_mem_free(&allocator, ranker->names, ranker->names_size);
    sl_weights_free(&ranker->weights, ranker->features, &ranker->shape, &allocator);
    sl_coded_layers_free(&ranker->coded, &allocator);
    sl_features_free(ranker->features);
    SL_FREE(&allocator, ranker);
}

static const sl_layer_codes *layer_codes(const sl_ranker *ranker) {
    return ranker->coded.block ? ranker->coded.layers : NULL;
}

sl_status sl_ranker_make(sl_features *features, sl_weights *weights, sl_coded_layers *coded,
                         const sl_allocator *allocator, sl_ranker **out) {
    void *block;
    *out = NULL;
    sl_status status = sl_mem_alloc(allocator, sizeof(sl_ranker), &block);
    if (status != SL_OK) {
        if (coded) sl_coded_layers_free(coded, allocator);
        sl_weights_free(weights, features, NULL, allocator);
        sl_features_free(features);
        return status;
    }
    sl_ranker *ranker = block;
    ranker->allocator = *allocator;
    ranker->references = 1;
    ranker->features = features;
    ranker->weights = *weights;
    *weights = (sl_weights){0};
    if (coded) {
        ranker->coded = *coded;
        *coded = (sl_coded_layers){.block = NULL};
    }
    sl_shape_of(features, &ranker->shape);
    SL_TRY_GOTO(make_names(ranker), fail);
    if (ranker->shape.layers)
        SL_TRY_GOTO(sl_net_create(&ranker->shape, ranker->weights.dense, layer_codes(ranker), allocator, &ranker->net),
                    fail);
    *out = ranker;
    return SL_OK;
fail:
    destroy_ranker(ranker);
    return status;
}

sl_ranker *sl_ranker_retain(sl_ranker *ranker) {
    if (ranker) (void)__atomic_add_fetch(&ranker->references, 1, __ATOMIC_RELAXED);
    return ranker;
}

void sl_ranker_free(sl_ranker *ranker) {
    if (ranker && __atomic_sub_fetch(&ranker->references, 1, __ATOMIC_ACQ_REL) == 0) destroy_ranker(ranker);
}

/* ---- Information ---- */

sl_status sl_ranker_get_info(const sl_ranker *ranker, sl_ranker_info *out) {
    if (!ranker) return sl_fail(SL_EINVAL, "ranker is NULL");
    SL_TRY(sl_params_check_out(out, "sl_ranker_info"));
    const sl_features *features = ranker->features;
    const sl_net_shape *shape = &ranker->shape;
    sl_ranker_info info = {.struct_size = sizeof info,
                           .loss = features->spec->loss,
                           .outputs = features->outputs,
                           .features = features->count,
                           .dense_width = features->dense_width,
                           .id_count = features->id_count,
                           .bag_count = features->bag_count,
                           .deep_inputs = shape->layers ? features->deep_inputs : 0,
                           .layers = shape->layers,
                           .first_width = shape->layers ? shape->width[1] : 0,
                           .wide_size = features->wide_size,
                           .spec = features->spec->text,
                           .uses_onednn = sl_net_has_onednn(),
                           .embeddings = features->table_count,
                           .multiply_adds = sl_net_multiply_adds(shape),
                           .dense_zeros = sl_net_zeros(shape, ranker->weights.dense)};
    for (size_t t = 0; t < ranker->tensor_count; t++)
        info.parameters += ranker->tensors[t].rows * ranker->tensors[t].columns;
    /* The layers' weights exist twice: by name, and packed for predictions. Coded layers also exist as in the file. */
    size_t packed = shape->layers ? sl_net_size(shape) * sizeof(float) : 0;
    info.bytes = ranker->weights.block_size * sizeof(float) + ranker->weights.coded.size +
                 (ranker->coded.block ? 2 * ranker->coded.size : packed);
    for (size_t t = 0; t < features->table_count; t++)
        if (__atomic_load_n(&ranker->decoded[t], __ATOMIC_ACQUIRE)) info.bytes += float_bytes(&features->tables[t]);
    for (size_t i = 0; i < features->count; i++)
        if (features->features[i].vocabulary && features->features[i].spec->shared == SIZE_MAX)
            info.bytes += sl_vocabulary_bytes(features->features[i].vocabulary);
    sl_params_out(out, &info, sizeof info);
    return SL_OK;
}

const char *sl_ranker_class(const sl_ranker *ranker, size_t i) {
    return ranker && i < ranker->features->class_count ? ranker->features->classes[i] : NULL;
}

const char *sl_ranker_table_name(const sl_ranker *ranker, size_t table) {
    return ranker->tensors[first_table_tensor(ranker) + table].name;
}

sl_status sl_ranker_get_feature(const sl_ranker *ranker, size_t i, sl_feature_info *out) {
    if (!ranker) return sl_fail(SL_EINVAL, "ranker is NULL");
    SL_TRY(sl_params_check_out(out, "sl_feature_info"));
    const sl_features *features = ranker->features;
    if (i >= features->count)
        return sl_fail(SL_EINVAL, "feature %zu of %zu; they are numbered from 0", i, features->count);
    const sl_feature *feature = &features->features[i];
    sl_feature_info info = {.struct_size = sizeof info,
                            .name = feature->spec->name,
                            .form = feature->form,
                            .side = feature->side,
                            .at = feature->at,
                            .width = feature->width,
                            .size = feature->size,
                            .wide_at = feature->wide_at,
                            .deep_at = feature->deep_at,
                            .combine = (int)feature->spec->combine};
    if (feature->deep_at != SIZE_MAX) info.deep_width = feature->form == SL_FORM_DENSE ? feature->width : feature->dim;
    if (feature->tensor != SIZE_MAX) info.tensor = sl_ranker_table_name(ranker, feature->tensor);
    sl_params_out(out, &info, sizeof info);
    return SL_OK;
}

sl_status sl_ranker_get_embedding(const sl_ranker *ranker, size_t i, sl_embedding_info *out) {
    if (!ranker) return sl_fail(SL_EINVAL, "ranker is NULL");
    SL_TRY(sl_params_check_out(out, "sl_embedding_info"));
    const sl_features *features = ranker->features;
    if (i >= features->table_count)
        return sl_fail(SL_EINVAL, "embedding table %zu of %zu; they are numbered from 0", i, features->table_count);
    const sl_table_shape *shape = &features->tables[i];
    const sl_table_codes *codes = ranker->weights.coded.codes;
    sl_embedding_info info = {.struct_size = sizeof info,
                              .tensor = sl_ranker_table_name(ranker, i),
                              .type = codes ? (sl_table_type)codes[i].type : SL_TABLE_F32,
                              .size = shape->size,
                              .dim = shape->dim};
    info.bytes = shape->size * sl_row_bytes(info.type, shape->dim);
    if (info.type != SL_TABLE_F32) info.bytes += sizeof *codes;
    sl_params_out(out, &info, sizeof info);
    return SL_OK;
}

size_t sl_ranker_tensor_count(const sl_ranker *ranker) {
    return ranker ? ranker->tensor_count : 0;
}

sl_status sl_ranker_get_tensor(const sl_ranker *ranker, size_t i, sl_tensor *out) {
    if (!ranker || !out) return sl_fail(SL_EINVAL, "ranker or out is NULL");
    if (i >= ranker->tensor_count)
        return sl_fail(SL_EINVAL, "tensor %zu of %zu; they are numbered from 0", i, ranker->tensor_count);
    sl_tensor tensor = ranker->tensors[i];
    if (!tensor.data) SL_TRY(decode_table(ranker, i - first_table_tensor(ranker), &tensor.data));
    *out = tensor;
    return SL_OK;
}

/* ---- Other weights ---- */

sl_status sl_ranker_copy_features(const sl_ranker *base, sl_features **out) {
    void *data = NULL;
    size_t size = 0;
    sl_spec *spec;
    *out = NULL;
    SL_TRY(sl_features_write(base->features, &base->allocator, &data, &size));
    sl_status status = sl_spec_read(base->features->spec->text, &base->allocator, &spec);
    if (status == SL_OK) status = sl_features_read(spec, data, size, out);
    sl_mem_free(&base->allocator, data, size);
    return status;
}

/* Checks a given tensor against the model's, and gets its number. */
static sl_status find_tensor(const sl_ranker *base, const sl_tensor *given, size_t *number) {
    if (!given->name || !given->data) return sl_fail(SL_EINVAL, "a tensor's name or data is NULL");
    const sl_tensor *known = NULL;
    for (*number = 0; *number < base->tensor_count && !known; ++*number)
        if (strcmp(base->tensors[*number].name, given->name) == 0) known = &base->tensors[*number];
    if (!known)
        return sl_fail(SL_ENOTFOUND, "the model has no tensor '%s'; sl_ranker_get_tensor lists them", given->name);
    *number = (size_t)(known - base->tensors);
    if (given->rows != known->rows || given->columns != known->columns)
        return sl_fail(SL_EDIM, "tensor '%s' is (%zu, %zu); the model's is (%zu, %zu)", given->name, given->rows,
                       given->columns, known->rows, known->columns);
    if (!sl_all_finite(given->data, known->rows * known->columns))
        return sl_fail(SL_EVALUE, "tensor '%s' has a NaN or infinite weight", given->name);
    return SL_OK;
}

/* Returns the number of a tensor's table; SIZE_MAX if it is not an embedding. */
static size_t table_of_tensor(const sl_ranker *ranker, size_t tensor) {
    size_t from = first_table_tensor(ranker);
    return tensor >= from && tensor - from < ranker->features->table_count ? tensor - from : SIZE_MAX;
}

/* Marks the layers with a given weight or bias. */
static void mark_given_layers(const sl_ranker *base, const sl_tensor *tensors, size_t count, int given[SL_MAX_LAYERS]) {
    size_t from = first_table_tensor(base) + base->features->table_count, number;
    memset(given, 0, SL_MAX_LAYERS * sizeof *given);
    for (size_t i = 0; i < count; i++)
        if (find_tensor(base, &tensors[i], &number) == SL_OK && number >= from) given[(number - from) / 2] = 1;
}

/* Copies a given tensor to its place in `weights`. */
static void copy_tensor(const sl_ranker *base, const sl_tensor *given, size_t number, sl_weights *weights) {
    const float *data = base->tensors[number].data;
    size_t table = table_of_tensor(base, number);
    float *to;
    if (table != SIZE_MAX)
        to = weights->embeddings[table];
    else if (number < first_table_tensor(base))
        to = weights->wide + (data - base->weights.wide);
    else
        to = weights->dense + (data - base->weights.dense);
    memcpy(to, given->data, given->rows * given->columns * sizeof(float));
}

/* Allocates weights for the base's with other tensors. A given coded table becomes floats. `codes` is a copy of the
 * base's records, or NULL. */
static sl_status create_weights(const sl_ranker *base, const sl_tensor *tensors, size_t count, sl_table_codes *codes,
                                sl_weights *out) {
    for (size_t i = 0; i < count; i++) {
        size_t number;
        SL_TRY(find_tensor(base, &tensors[i], &number));
        size_t table = table_of_tensor(base, number);
        if (codes && table != SIZE_MAX) codes[table] = (sl_table_codes){.type = SL_TABLE_F32};
    }
    return sl_weights_create_coded(base->features, &base->shape, codes, &base->allocator, out);
}

static sl_status weights_with_tensors(const sl_ranker *base, const sl_tensor *tensors, size_t count, sl_weights *out) {
    const sl_table_codes *codes = base->weights.coded.codes;
    size_t size = codes ? base->features->table_count * sizeof *codes : 0, number;
    void *copy = NULL;
    if (codes) {
        SL_TRY(sl_mem_alloc(&base->allocator, size, &copy));
        memcpy(copy, codes, size);
    }
    sl_status status = create_weights(base, tensors, count, copy, out);
    sl_mem_free(&base->allocator, copy, size);
    if (status != SL_OK) return status;
    sl_weights_copy(out, &base->weights, base->features, &base->shape);
    for (size_t i = 0; i < count; i++)
        if (find_tensor(base, &tensors[i], &number) == SL_OK) copy_tensor(base, &tensors[i], number, out);
    return SL_OK;
}

sl_status sl_ranker_with_tensors(const sl_ranker *base, const sl_tensor *tensors, size_t count, sl_ranker **out) {
    if (!out) return sl_fail(SL_EINVAL, "out is NULL; give the address of a handle");
    *out = NULL;
    if (!base || (count && !tensors)) return sl_fail(SL_EINVAL, "base or tensors is NULL");
    int given[SL_MAX_LAYERS];
    sl_coded_layers coded;
    sl_features *features;
    sl_weights weights;
    SL_TRY(weights_with_tensors(base, tensors, count, &weights));
    mark_given_layers(base, tensors, count, given);
    sl_status status =
        sl_coded_layers_with_floats(&base->coded, &base->shape, given, weights.dense, &base->allocator, &coded);
    if (status == SL_OK) {
        status = sl_ranker_copy_features(base, &features);
        if (status == SL_OK) return sl_ranker_make(features, &weights, &coded, &base->allocator, out);
        sl_coded_layers_free(&coded, &base->allocator);
    }
    sl_weights_free(&weights, base->features, &base->shape, &base->allocator);
    return status;
}
