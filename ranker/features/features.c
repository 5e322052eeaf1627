/* Makes features from a spec, lays them out, frees them. */
#include "ranker/features/features.h"

#include "ranker/features/table.h"
#include "ranker/features/vocabulary.h"

#include <math.h>
#include <string.h>

#define MAX_INPUTS (1u << 20) /* inputs of the deep part */

static sl_feature_form form_of(const sl_feature_spec *spec) {
    switch (spec->type) {
    case SL_FEATURE_NUMERIC:
    case SL_FEATURE_SCORE:
    case SL_FEATURE_VECTOR:
        return SL_FORM_DENSE;
    default:
        return spec->is_bag ? SL_FORM_BAG : SL_FORM_ID;
    }
}

static sl_status make_listed_vocabulary(sl_features *features, sl_feature *f) {
    const sl_feature_spec *spec = f->spec;
    SL_TRY(sl_vocabulary_create(&features->allocator, &f->vocabulary));
    for (size_t i = 0; i < spec->value_count; i++) {
        size_t number;
        SL_TRY(sl_vocabulary_add(f->vocabulary, spec->values[i], strlen(spec->values[i]), SIZE_MAX, &number));
        if (number != i)
            return sl_fail(SL_EINVAL, "features[%zu].vocabulary: '%s' is listed twice",
                           (size_t)(f - features->features), sl_show(spec->values[i], strlen(spec->values[i])).text);
    }
    return SL_OK;
}

static sl_status make_feature(sl_features *features, size_t number) {
    sl_feature *f = &features->features[number];
    const sl_feature_spec *spec = &features->spec->features[number];
    *f = (sl_feature){.spec = spec, .side = spec->side, .factor = 1, .tensor = SIZE_MAX};
    f->form = form_of(spec);
    f->name_hash = sl_text_hash(spec->name, strlen(spec->name));
    if (spec->boundary_count) {
        void *block;
        SL_TRY(sl_mem_alloc(&features->allocator, spec->boundary_count * sizeof *f->boundaries, &block));
        f->boundaries = block;
        f->boundary_count = spec->boundary_count;
        memcpy(f->boundaries, spec->boundaries, f->boundary_count * sizeof *f->boundaries);
    }
    int coded = spec->type == SL_FEATURE_CATEGORICAL || spec->type == SL_FEATURE_MULTI;
    if (coded && spec->coding == SL_CODING_LISTED && spec->shared == SIZE_MAX)
        return make_listed_vocabulary(features, f);
    return SL_OK;
}

sl_status sl_features_make(sl_spec *spec, sl_features **out) {
    sl_status status;
    void *block;
    *out = NULL;
    status = sl_mem_alloc(&spec->allocator, sizeof(sl_features), &block);
    if (status != SL_OK) {
        sl_spec_free(spec);
        return status;
    }
    sl_features *features = block;
    features->allocator = spec->allocator;
    features->spec = spec;
    SL_TRY_GOTO(sl_mem_alloc(&spec->allocator, spec->feature_count * sizeof *features->features, &block), fail);
    features->features = block;
    features->count = spec->feature_count;
    for (size_t i = 0; i < features->count; i++)
        SL_TRY_GOTO(make_feature(features, i), fail);
    *out = features;
    return SL_OK;
fail:
    sl_features_free(features);
    return status;
}

void sl_features_free(sl_features *features) {
    if (!features) return;
    sl_allocator allocator = features->allocator;
    for (size_t i = 0; i < features->count; i++) {
        sl_feature *f = &features->features[i];
        SL_FREE_ARRAY(&allocator, f->boundaries, f->boundary_count);
        if (f->spec && f->spec->shared == SIZE_MAX) sl_vocabulary_free(f->vocabulary);
    }
    for (size_t i = 0; i < features->class_count; i++)
        sl_mem_free(&allocator, features->classes[i], strlen(features->classes[i]) + 1);
    SL_FREE_ARRAY(&allocator, features->classes, features->class_room);
    sl_vocabulary_free(features->class_numbers);
    sl_features_unlist(features);
    SL_FREE_ARRAY(&allocator, features->tables, features->table_room);
    SL_FREE_ARRAY(&allocator, features->features, features->spec->feature_count);
    sl_spec_free(features->spec);
    SL_FREE(&allocator, features);
}

/* ---- Classes ---- */

static sl_status name_output(sl_features *features, const char *text, size_t size) {
    void *copy;
    sl_status status = SL_OK;
    features->classes = sl_mem_grow(&features->allocator, features->classes, &features->class_room,
                                    features->class_count + 1, sizeof *features->classes, &status);
    SL_TRY(status);
    SL_TRY(sl_mem_alloc(&features->allocator, size + 1, &copy));
    if (size) memcpy(copy, text, size);
    features->classes[features->class_count++] = copy;
    features->outputs = features->class_count;
    return SL_OK;
}

sl_status sl_features_add_class(sl_features *features, const char *text, size_t size) {
    size_t number;
    if (memchr(text, 0, size)) return sl_fail(SL_EVALUE, "a class of the label has a NUL in it");
    if (features->class_count == SL_MAX_CLASSES)
        return sl_fail(SL_ELIMIT, "the label has more than %u classes", SL_MAX_CLASSES);
    if (!features->class_numbers) SL_TRY(sl_vocabulary_create(&features->allocator, &features->class_numbers));
    SL_TRY(sl_vocabulary_add(features->class_numbers, text, size, SIZE_MAX, &number));
    if (number != features->class_count)
        return sl_fail(SL_EINVAL, "label.classes: '%s' is listed twice", sl_show(text, size).text);
    return name_output(features, text, size);
}

sl_status sl_features_name_outputs(sl_features *features) {
    const sl_spec *spec = features->spec;
    for (size_t i = 0; i < spec->class_count; i++)
        SL_TRY(sl_features_add_class(features, spec->classes[i], strlen(spec->classes[i])));
    if (spec->loss == SL_LOSS_MULTICLASS) return SL_OK;
    if (spec->loss == SL_LOSS_SQUARED) return name_output(features, "", 0);
    char text[2 + SL_NUMBER_TEXT] = ">=";
    if (spec->has_at_least) return name_output(features, text, 2 + sl_number_write(spec->at_least, text + 2));
    const char *positive = spec->positive ? spec->positive : "1";
    return name_output(features, positive, strlen(positive));
}

/* ---- Layout ---- */

/* Returns the default width of an embedding (docs/SPEC.md). */
static size_t default_dim(size_t size) {
    double dim = round(1.6 * pow((double)size, 0.56));
    return dim > 50 ? 50 : (size_t)dim;
}

static size_t id_count_of(const sl_feature *f) {
    const sl_feature_spec *spec = f->spec;
    if (spec->type == SL_FEATURE_BUCKET) return f->boundary_count + 2;
    if (spec->type == SL_FEATURE_CROSS) return spec->size;
    if (spec->coding == SL_CODING_HASH || spec->coding == SL_CODING_IDENTITY) return spec->size + 1;
    return 1 + spec->oov + sl_vocabulary_count(f->vocabulary);
}

/* Sets the fields that do not depend on other features' offsets. */
static sl_status size_feature(sl_features *features, sl_feature *f) {
    const sl_feature_spec *spec = f->spec;
    if (spec->shared != SIZE_MAX) f->vocabulary = features->features[spec->shared].vocabulary;
    if (f->form == SL_FORM_DENSE) {
        f->width = spec->type == SL_FEATURE_VECTOR ? spec->dim : 1 + (size_t)spec->indicator;
        return SL_OK;
    }
    f->size = id_count_of(f);
    if (f->size > SL_MAX_CARDINALITY)
        return sl_fail(SL_ELIMIT, "feature '%s' has %zu ids; up to %u are possible", spec->name, f->size,
                       SL_MAX_CARDINALITY);
    if (features->spec->has_deep && spec->in_deep) f->dim = spec->dim ? spec->dim : default_dim(f->size);
    return SL_OK;
}

static void place_feature(sl_features *features, sl_feature *f) {
    const sl_spec *spec = features->spec;
    size_t *const ends[] = {&features->dense_width, &features->id_count, &features->bag_count};
    int dense = f->form == SL_FORM_DENSE;
    f->at = *ends[f->form];
    *ends[f->form] += dense ? f->width : 1;
    f->wide_at = f->deep_at = SIZE_MAX;
    if (spec->has_wide && f->spec->in_wide) {
        f->wide_at = features->wide_size;
        features->wide_size += dense ? f->width : f->size;
    }
    if (spec->has_deep && f->spec->in_deep) {
        f->deep_at = features->deep_inputs;
        features->deep_inputs += dense ? f->width : f->dim;
    }
}

static void place_side(sl_features *features, size_t side) {
    for (size_t i = 0; i < features->count; i++)
        if ((size_t)features->features[i].side == side) place_feature(features, &features->features[i]);
    features->dense_side[side + 1] = features->dense_width;
    features->id_side[side + 1] = features->id_count;
    features->bag_side[side + 1] = features->bag_count;
    features->deep_side[side + 1] = features->deep_inputs;
}

/* Gets the number of the embedding table that a feature owns. Makes the table if it is new. */
static sl_status table_of(sl_features *features, size_t owner, size_t size, size_t dim, size_t *out) {
    for (*out = 0; *out < features->table_count; ++*out)
        if (features->tables[*out].feature == owner) return SL_OK;
    sl_status status = SL_OK;
    features->tables = sl_mem_grow(&features->allocator, features->tables, &features->table_room,
                                   features->table_count + 1, sizeof *features->tables, &status);
    SL_TRY(status);
    features->tables[features->table_count++] = (sl_table_shape){.feature = owner, .size = size, .dim = dim};
    return SL_OK;
}

sl_status sl_features_lay_out(sl_features *features) {
    for (size_t i = 0; i < features->count; i++)
        SL_TRY(size_feature(features, &features->features[i]));
    for (size_t side = 0; side < 3; side++)
        place_side(features, side);
    if (features->deep_inputs > MAX_INPUTS)
        return sl_fail(SL_ELIMIT, "the deep part has %zu inputs; up to %u are possible: use smaller dims",
                       features->deep_inputs, MAX_INPUTS);
    for (size_t i = 0; i < features->count; i++) {
        sl_feature *f = &features->features[i];
        size_t owner = f->spec->shared == SIZE_MAX ? i : f->spec->shared;
        if (f->dim) SL_TRY(table_of(features, owner, f->size, f->dim, &f->tensor));
    }
    return sl_features_list(features);
}

/* ---- Lists ---- */

/* Lists a part's features of the mask's sides. Takes the list's memory from *room. */
static sl_feature_list list_part(const sl_features *features, unsigned mask, int deep, const sl_feature ***room) {
    sl_feature_list list = {*room, 0};
    for (size_t i = 0; i < features->count; i++) {
        const sl_feature *f = &features->features[i];
        size_t at = deep ? f->deep_at : f->wide_at;
        if (at != SIZE_MAX && (mask >> f->side & 1u)) list.features[list.count++] = f;
    }
    *room += list.count;
    return list;
}

sl_status sl_features_list(sl_features *features) {
    void *block;
    size_t count = 2 * SL_SIDE_MASKS * features->count;
    SL_TRY(sl_mem_alloc(&features->allocator, count * sizeof *features->listed, &block));
    features->listed = block;
    features->listed_count = count;
    const sl_feature **room = features->listed;
    for (unsigned mask = 0; mask < SL_SIDE_MASKS; mask++) {
        features->deep_of[mask] = list_part(features, mask, 1, &room);
        features->wide_of[mask] = list_part(features, mask, 0, &room);
    }
    return SL_OK;
}

void sl_features_unlist(sl_features *features) {
    SL_FREE_ARRAY(&features->allocator, features->listed, features->listed_count);
    features->listed = NULL;
}
