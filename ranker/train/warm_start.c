#include "ranker/train/warm_start.h"

#include <string.h>

/* Returns whether both models' wide and deep parts have the same features in the same places. */
static int same_places(const sl_features *features, const sl_features *other) {
    for (size_t i = 0; i < features->count; i++) {
        const sl_feature *a = &features->features[i], *b = &other->features[i];
        if (a->wide_at != b->wide_at || a->deep_at != b->deep_at || a->dim != b->dim) return 0;
    }
    return features->wide_size == other->wide_size && features->deep_inputs == other->deep_inputs;
}

/* Copies the features by writing and reading their bytes, as in a model file. Owns the spec, and frees it on failure
 * too. */
static sl_status copy_features(sl_spec *spec, const sl_features *from, sl_features **out) {
    sl_allocator allocator = spec->allocator;
    void *data;
    size_t size;
    sl_status status = sl_features_write(from, &allocator, &data, &size);
    if (status != SL_OK) {
        sl_spec_free(spec);
        return status;
    }
    status = sl_features_read(spec, data, size, out);
    sl_mem_free(&allocator, data, size);
    return status;
}

sl_status sl_warm_start_features(const char *text, const sl_features *from, const sl_train_params *params,
                                 sl_features **out) {
    sl_allocator allocator = sl_allocator_of(params->allocator);
    sl_spec *spec;
    int same = 1;
    *out = NULL;
    SL_TRY(sl_spec_read(text ? text : from->spec->text, &allocator, &spec));
    sl_status status = text ? sl_spec_same_features(text, from->spec->text, &same) : SL_OK;
    if (status == SL_OK && !same)
        status =
            sl_fail(SL_EINVAL, "the spec's \"label\" or \"features\" are not those of the model to begin with; take "
                               "its spec and change \"wide\", \"deep\" and \"train\" alone");
    if (status != SL_OK) {
        sl_spec_free(spec);
        return status;
    }
    if (params->epochs) spec->epochs = params->epochs;
    if (params->seed) spec->seed = params->seed;
    SL_TRY(copy_features(spec, from, out));
    if (same_places(*out, from)) return SL_OK;
    sl_features_free(*out);
    *out = NULL;
    return sl_fail(SL_EINVAL,
                   "the spec's \"wide\" or \"deep\" part has other features than the model to begin with; list "
                   "the same");
}

sl_status sl_warm_start_check(const sl_features *features, const sl_ranker *from) {
    sl_net_shape shape;
    sl_shape_of(features, &shape);
    int same = shape.layers == from->shape.layers;
    for (size_t l = 0; same && l <= shape.layers && shape.layers; l++)
        same = shape.width[l] == from->shape.width[l];
    if (same && (!shape.layers || shape.activation == from->shape.activation)) return SL_OK;
    return sl_fail(SL_EINVAL, "the spec's \"deep\" part has other layers than the model to begin with; give the same "
                              "\"hidden\" and \"activation\"");
}

sl_status sl_warm_start_check_floats(const sl_ranker *from) {
    if (!from->coded.block && !from->weights.coded.codes) return SL_OK;
    return sl_fail(
        SL_EINVAL,
        "a quantised model is neither trained on nor cut; take the one that it was made from, and quantise the "
        "result");
}
