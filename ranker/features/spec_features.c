#include "ranker/features/spec_read.h"
#include "ranker/features/table.h"

#include <math.h>
#include <string.h>

#define MAX_DIM 4096u

enum {
    NUMERIC = 1u << SL_FEATURE_NUMERIC,
    BUCKET = 1u << SL_FEATURE_BUCKET,
    CATEGORICAL = 1u << SL_FEATURE_CATEGORICAL,
    MULTI = 1u << SL_FEATURE_MULTI,
    CROSS = 1u << SL_FEATURE_CROSS,
    VECTOR = 1u << SL_FEATURE_VECTOR,
    SCORE = 1u << SL_FEATURE_SCORE,
    CODED = CATEGORICAL | MULTI,
    NUMBER = NUMERIC | SCORE
};

static const char type_choices[] = "numeric bucket categorical multi cross vector score";
static const char *const type_names[] = {
    "a numeric feature", "a bucket", "a categorical feature", "a multi feature", "a cross", "a vector", "a score"};

static sl_status read_missing(spec_reader *r, const cJSON *value, void *target) {
    sl_feature_spec *f = target;
    f->missing_is_mean = cJSON_IsString(value) && strcmp(value->valuestring, "mean") == 0;
    if (f->missing_is_mean) return SL_OK;
    if (!cJSON_IsNumber(value)) return spec_fail(r, "takes \"mean\" or a number");
    return spec_read_real(r, value, -HUGE_VAL, HUGE_VAL, &f->missing);
}

static sl_status read_boundaries(spec_reader *r, const cJSON *value, void *target) {
    sl_feature_spec *f = target;
    if (!cJSON_IsArray(value) || !value->child) return spec_fail(r, "takes a list of rising numbers");
    size_t count = (size_t)cJSON_GetArraySize(value), i = 0;
    double *boundaries = spec_alloc(r, count, sizeof *boundaries);
    for (const cJSON *element = value->child; element; element = element->next, i++) {
        size_t outside = spec_enter_at(r, i);
        SL_TRY(spec_read_real(r, element, -HUGE_VAL, HUGE_VAL, &boundaries[i]));
        if (i && !(boundaries[i] > boundaries[i - 1])) return spec_fail(r, "is not above the boundary before it");
        spec_leave(r, outside);
    }
    f->boundaries = boundaries;
    f->boundary_count = count;
    return SL_OK;
}

static sl_status read_vocabulary(spec_reader *r, const cJSON *value, void *target) {
    sl_feature_spec *f = target;
    f->coding = SL_CODING_LISTED;
    return spec_read_values(r, value, &f->values, &f->value_count);
}

static sl_status read_hash(spec_reader *r, const cJSON *value, void *target) {
    sl_feature_spec *f = target;
    f->coding = SL_CODING_HASH;
    return spec_read_count(r, value, 1, SL_MAX_CARDINALITY - 1, &f->size);
}

static sl_status read_identity(spec_reader *r, const cJSON *value, void *target) {
    sl_feature_spec *f = target;
    f->coding = SL_CODING_IDENTITY;
    return spec_read_count(r, value, 1, SL_MAX_CARDINALITY - 1, &f->size);
}

#define AT(field) offsetof(sl_feature_spec, field)
static const spec_key feature_keys[] = {
    {.name = "name", .kind = SPEC_TEXT, .offset = AT(name)},
    {.name = "type", .kind = SPEC_CHOICE, .offset = AT(type), .choices = type_choices},
    {.name = "column", .kind = SPEC_TEXT, .offset = AT(column), .forms = ~(unsigned)CROSS},
    {.name = "side",
     .kind = SPEC_CHOICE,
     .offset = AT(side),
     .choices = "user item",
     .forms = ~(unsigned)(CROSS | SCORE)},
    {.name = "scale", .kind = SPEC_CHOICE, .offset = AT(scale), .choices = "standard minmax none", .forms = NUMBER},
    {.name = "log", .kind = SPEC_FLAG, .offset = AT(log), .forms = NUMERIC},
    {.name = "indicator", .kind = SPEC_FLAG, .offset = AT(indicator), .forms = NUMERIC},
    {.name = "missing", .kind = SPEC_OTHER, .read = read_missing, .forms = NUMBER},
    {.name = "boundaries", .kind = SPEC_OTHER, .read = read_boundaries, .forms = BUCKET},
    {.name = "quantiles", .kind = SPEC_COUNT, .offset = AT(quantiles), .low = 2, .high = 65536, .forms = BUCKET},
    {.name = "vocabulary", .kind = SPEC_OTHER, .read = read_vocabulary, .forms = CODED},
    {.name = "hash", .kind = SPEC_OTHER, .read = read_hash, .forms = CODED | CROSS},
    {.name = "identity", .kind = SPEC_OTHER, .read = read_identity, .forms = CODED},
    {.name = "min_count", .kind = SPEC_COUNT, .offset = AT(min_count), .low = 1, .high = 1e15, .forms = CODED},
    {.name = "keep", .kind = SPEC_COUNT, .offset = AT(keep), .low = 1, .high = 1e9, .forms = CODED},
    {.name = "limit", .kind = SPEC_COUNT, .offset = AT(limit), .low = 1, .high = 1e9, .forms = CODED},
    {.name = "oov", .kind = SPEC_COUNT, .offset = AT(oov), .low = 0, .high = 1e9, .forms = CODED},
    {.name = "separator", .kind = SPEC_LETTER, .offset = AT(separator), .forms = MULTI},
    {.name = "combine", .kind = SPEC_CHOICE, .offset = AT(combine), .choices = "sum mean max", .forms = MULTI | CROSS},
    {.name = "of", .kind = SPEC_OTHER, .forms = CROSS},
    {.name = "source", .kind = SPEC_CHOICE, .offset = AT(from_index), .choices = "column index", .forms = VECTOR},
    {.name = "dim",
     .kind = SPEC_COUNT,
     .offset = AT(dim),
     .low = 1,
     .high = MAX_DIM,
     .forms = CODED | BUCKET | CROSS | VECTOR},
    {.name = "shared", .kind = SPEC_OTHER, .forms = CODED},
};

/* The keys of a line exclude each other. The last column names the features that a key is for. */
static sl_status check_coding(spec_reader *r, const cJSON *object) {
    static const char *const codings[] = {"vocabulary", "hash", "identity", "shared"};
    static const char *const fitted[] = {"min_count", "keep", "limit"};
    const char *given = NULL;
    for (size_t i = 0; i < sizeof codings / sizeof *codings; i++) {
        if (!spec_member(object, codings[i])) continue;
        if (given) return spec_fail(r, "has both %s and %s; leave one out", given, codings[i]);
        given = codings[i];
    }
    if (!given) return SL_OK;
    for (size_t i = 0; i < sizeof fitted / sizeof *fitted; i++)
        if (spec_member(object, fitted[i]))
            return spec_fail(r, "has %s, which is of fitted vocabularies, beside %s", fitted[i], given);
    if (spec_member(object, "oov") && strcmp(given, "vocabulary") != 0)
        return spec_fail(r, "has oov, which is of vocabularies, beside %s", given);
    if (spec_member(object, "dim") && strcmp(given, "shared") == 0)
        return spec_fail(r, "has dim, which is the other feature's, beside shared");
    return SL_OK;
}

static sl_status check_needs(spec_reader *r, const cJSON *object, sl_feature_spec *f) {
    if (!f->name) return spec_fail(r, "has no name");
    if (!f->column) f->column = f->name;
    if (f->type == SL_FEATURE_BUCKET && !f->boundaries == !f->quantiles)
        return spec_fail(r, "takes either boundaries or quantiles");
    if (f->type == SL_FEATURE_CROSS && !f->size) return spec_fail(r, "has no hash: the number of the cross's buckets");
    if (f->type == SL_FEATURE_CROSS && !spec_member(object, "of"))
        return spec_fail(r, "has no \"of\": the features it crosses");
    if (f->type == SL_FEATURE_VECTOR && !f->dim) return spec_fail(r, "has no dim");
    return (1u << f->type) & CODED ? check_coding(r, object) : SL_OK;
}

static sl_status read_feature(spec_reader *r, const cJSON *object, sl_feature_spec *f) {
    *f = (sl_feature_spec){.missing_is_mean = 1,
                           .coding = SL_CODING_FITTED,
                           .min_count = 1,
                           .limit = 1000000,
                           .oov = 1,
                           .separator = '|',
                           .combine = SL_COMBINE_MEAN,
                           .shared = SIZE_MAX};
    if (!cJSON_IsObject(object)) return spec_fail(r, "takes an object: {...}");
    /* The type decides which keys are allowed. It may stand anywhere in the object. */
    const cJSON *type = spec_member(object, "type");
    if (!type) return spec_fail(r, "has no type");
    int number;
    size_t outside = spec_enter(r, "type");
    SL_TRY(spec_read_choice(r, type, type_choices, &number));
    spec_leave(r, outside);
    SL_TRY(spec_read_object(r, object, feature_keys, sizeof feature_keys / sizeof *feature_keys, 1u << number,
                            type_names[number], f));
    return check_needs(r, object, f);
}

/* ---- References between features ---- */

/* A parent must come before its cross, so that its own fields are set already. Computing them anew would take twice as
 * long for each level of crosses of two crosses. */
static sl_status check_parent(spec_reader *r, size_t parent, size_t cross, int *bags) {
    const sl_feature_spec *p = &r->spec->features[parent];
    const sl_shown name = sl_show(p->name, strlen(p->name));
    if (parent >= cross) return spec_fail(r, "'%s' stands behind the cross; put it in front", name.text);
    if (!((1u << p->type) & (CODED | BUCKET | CROSS)))
        return spec_fail(r, "'%s' is %s; a cross is of buckets, categorical and multi features, and crosses", name.text,
                         type_names[p->type]);
    *bags += p->is_bag;
    return *bags > 1 ? spec_fail(r, "'%s' is the second multi feature; a cross takes one", name.text) : SL_OK;
}

static sl_status read_parents(spec_reader *r, const cJSON *of, size_t number) {
    sl_feature_spec *f = &r->spec->features[number];
    int elements = cJSON_GetArraySize(of), bags = 0;
    if (elements < 2 || elements > (int)SL_MAX_PARENTS)
        return spec_fail(r, "takes a list of 2 to %u features' names", SL_MAX_PARENTS);
    size_t *parents = spec_alloc(r, (size_t)elements, sizeof *parents);
    SL_TRY(spec_read_feature_list(r, of, parents, &f->of_count));
    f->of = parents;
    for (size_t i = 0; i < f->of_count; i++)
        SL_TRY(check_parent(r, parents[i], number, &bags));
    f->is_bag = bags;
    f->side = r->spec->features[parents[0]].side;
    for (size_t i = 0; i < f->of_count; i++) {
        const sl_feature_spec *parent = &r->spec->features[parents[i]];
        if (parent->side != f->side) f->side = SL_SIDE_PAIR;
        f->sides |= parent->sides;
    }
    return SL_OK;
}

/* Copies the owner's coding to the feature that shares it. Both then encode alike. */
static sl_status read_shared(spec_reader *r, const cJSON *array, const cJSON *shared, sl_feature_spec *f) {
    size_t owner;
    if (!cJSON_IsString(shared)) return spec_fail(r, "takes a feature's name");
    SL_TRY(spec_find_feature(r, shared->valuestring, &owner));
    const sl_feature_spec *o = &r->spec->features[owner];
    if (!((1u << o->type) & CODED) || o == f || spec_member(cJSON_GetArrayItem(array, (int)owner), "shared"))
        return spec_fail(r, "takes a categorical or multi feature with a vocabulary of its own");
    f->shared = owner;
    f->coding = o->coding;
    f->values = o->values;
    f->value_count = o->value_count;
    f->size = o->size;
    f->oov = o->oov;
    f->dim = o->dim;
    return SL_OK;
}

static sl_status read_references(spec_reader *r, const cJSON *array, const cJSON *object, size_t number) {
    sl_feature_spec *f = &r->spec->features[number];
    for (size_t i = 0; i < number; i++)
        if (strcmp(r->spec->features[i].name, f->name) == 0)
            return spec_fail(r, "the name '%s' is features[%zu]'s already", sl_show(f->name, strlen(f->name)).text, i);
    const cJSON *of = spec_member(object, "of"), *shared = spec_member(object, "shared");
    size_t outside = spec_enter(r, of ? "of" : "shared");
    if (of) SL_TRY(read_parents(r, of, number));
    if (shared) SL_TRY(read_shared(r, array, shared, f));
    spec_leave(r, outside);
    if (f->type == SL_FEATURE_SCORE) f->side = SL_SIDE_PAIR;
    if (f->type == SL_FEATURE_MULTI) f->is_bag = 1;
    if (f->type != SL_FEATURE_CROSS) f->sides = 1u << f->side;
    return SL_OK;
}

sl_status spec_read_features(spec_reader *r, const cJSON *array) {
    sl_spec *spec = r->spec;
    int elements = cJSON_GetArraySize(array);
    if (!cJSON_IsArray(array) || elements < 1 || elements > (int)SL_MAX_FEATURES)
        return spec_fail(r, "takes a list of 1 to %u features", SL_MAX_FEATURES);
    spec->feature_count = (size_t)elements;
    void *block;
    SL_TRY(sl_mem_alloc(&spec->allocator, spec->feature_count * sizeof *spec->features, &block));
    spec->features = block;
    size_t i = 0;
    for (const cJSON *object = array->child; object; object = object->next, i++) {
        size_t outside = spec_enter_at(r, i);
        SL_TRY(read_feature(r, object, &spec->features[i]));
        spec_leave(r, outside);
    }
    i = 0;
    for (const cJSON *object = array->child; object; object = object->next, i++) {
        size_t outside = spec_enter_at(r, i);
        SL_TRY(read_references(r, array, object, i));
        spec_leave(r, outside);
    }
    return SL_OK;
}
