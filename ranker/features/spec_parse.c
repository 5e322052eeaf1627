#include "ranker/features/json.h"
#include "ranker/features/spec.h"
#include "ranker/features/spec_read.h"

#include <float.h>
#include <math.h>
#include <string.h>

#define MAX_WIDTH 65536
#define MAX_SEED  ((size_t)1 << 53) /* a double holds every whole number up to this */

/* ---- csv, label, train ---- */

static sl_status read_columns(spec_reader *r, const cJSON *value, void *target) {
    sl_spec *spec = target;
    return spec_read_names(r, value, &spec->columns, &spec->column_count);
}

static sl_status read_positive(spec_reader *r, const cJSON *value, void *target) {
    return spec_read_value(r, value, &((sl_spec *)target)->positive);
}

static sl_status read_at_least(spec_reader *r, const cJSON *value, void *target) {
    sl_spec *spec = target;
    spec->has_at_least = 1;
    return spec_read_real(r, value, -HUGE_VAL, HUGE_VAL, &spec->at_least);
}

static sl_status read_classes(spec_reader *r, const cJSON *value, void *target) {
    sl_spec *spec = target;
    SL_TRY(spec_read_values(r, value, &spec->classes, &spec->class_count));
    if (spec->class_count < 2 || spec->class_count > SL_MAX_CLASSES)
        return spec_fail(r, "takes 2 to %u values", SL_MAX_CLASSES);
    return SL_OK;
}

static sl_status read_hidden(spec_reader *r, const cJSON *value, void *target) {
    sl_spec *spec = target;
    int elements = cJSON_GetArraySize(value);
    if (!cJSON_IsArray(value) || elements < 1 || elements > (int)SL_MAX_HIDDEN)
        return spec_fail(r, "takes a list of 1 to %u widths", SL_MAX_HIDDEN);
    spec->hidden_count = 0;
    for (const cJSON *element = value->child; element; element = element->next) {
        size_t outside = spec_enter_at(r, spec->hidden_count);
        SL_TRY(spec_read_count(r, element, 1, MAX_WIDTH, &spec->hidden[spec->hidden_count]));
        spec->hidden_count++;
        spec_leave(r, outside);
    }
    return SL_OK;
}

static sl_status read_seed(spec_reader *r, const cJSON *value, void *target) {
    size_t seed;
    SL_TRY(spec_read_count(r, value, 0, MAX_SEED, &seed));
    ((sl_spec *)target)->seed = seed;
    return SL_OK;
}

#define AT(field) offsetof(sl_spec, field)
#define REAL(key, field, lowest, highest)                                                                              \
    { .name = key, .kind = SPEC_REAL, .offset = AT(field), .low = lowest, .high = highest }
#define COUNT(key, field, lowest, highest)                                                                             \
    { .name = key, .kind = SPEC_COUNT, .offset = AT(field), .low = lowest, .high = highest }

static const spec_key csv_keys[] = {
    {.name = "delimiter", .kind = SPEC_LETTER, .offset = AT(delimiter)},
    {.name = "header", .kind = SPEC_FLAG, .offset = AT(header)},
    {.name = "columns", .kind = SPEC_OTHER, .read = read_columns},
};
static const spec_key label_keys[] = {
    {.name = "column", .kind = SPEC_TEXT, .offset = AT(label)},
    {.name = "loss", .kind = SPEC_CHOICE, .offset = AT(loss), .choices = "logistic multiclass squared"},
    {.name = "positive", .kind = SPEC_OTHER, .read = read_positive},
    {.name = "at_least", .kind = SPEC_OTHER, .read = read_at_least},
    {.name = "classes", .kind = SPEC_OTHER, .read = read_classes},
};
static const spec_key wide_keys[] = {
    {.name = "features", .kind = SPEC_OTHER},
    REAL("rate", wide_rate, SPEC_ABOVE_0, 1e6),
    REAL("beta", wide_beta, 0, 1e6),
    REAL("l1", wide_l1, 0, 1e6),
    REAL("l2", wide_l2, 0, 1e6),
};
static const spec_key deep_keys[] = {
    {.name = "features", .kind = SPEC_OTHER},
    {.name = "hidden", .kind = SPEC_OTHER, .read = read_hidden},
    {.name = "activation", .kind = SPEC_CHOICE, .offset = AT(activation), .choices = "relu gelu tanh none"},
    REAL("dropout", dropout, 0, 0.9),
    {.name = "optimizer", .kind = SPEC_CHOICE, .offset = AT(optimizer), .choices = "adagrad adam"},
    REAL("rate", deep_rate, SPEC_ABOVE_0, 1e6),
    REAL("l2", deep_l2, 0, 1e6),
    REAL("beta1", beta1, 0, 0.999999),
    REAL("beta2", beta2, 0, 0.999999),
    REAL("epsilon", epsilon, SPEC_ABOVE_0, 1),
    REAL("embedding_init", embedding_init, 0, 100),
};
static const spec_key train_keys[] = {
    COUNT("epochs", epochs, 1, 1e6),
    COUNT("batch", minibatch_rows, 1, 1e6),
    REAL("validation", validation, 0, 0.9),
    REAL("forget", forget, 0, 0.5),
    COUNT("patience", patience, 0, 1e6),
    {.name = "schedule", .kind = SPEC_CHOICE, .offset = AT(schedule), .choices = "constant linear cosine"},
    {.name = "seed", .kind = SPEC_OTHER, .read = read_seed},
};

/* Reads a section. A spec may leave it out. */
#define READ_SECTION(r, root, name, keys) read_section((r), (root), (name), (keys), sizeof(keys) / sizeof *(keys))
static sl_status read_section(spec_reader *r, const cJSON *root, const char *name, const spec_key *keys, size_t count) {
    const cJSON *section = spec_member(root, name);
    if (!section) return SL_OK;
    size_t outside = spec_enter(r, name);
    SL_TRY(spec_read_object(r, section, keys, count, 1, name, r->spec));
    spec_leave(r, outside);
    return SL_OK;
}

static sl_status read_csv(spec_reader *r, const cJSON *root) {
    sl_spec *spec = r->spec;
    spec->header = -1;
    SL_TRY(READ_SECTION(r, root, "csv", csv_keys));
    if (spec->header < 0) spec->header = !spec->columns;
    if (!spec->header && !spec->columns) {
        spec_enter(r, "csv");
        return spec_fail(r, "names no columns, and says that the file has no header");
    }
    return SL_OK;
}

static sl_status read_label(spec_reader *r, const cJSON *root) {
    sl_spec *spec = r->spec;
    if (!spec_member(root, "label")) return spec_fail(r, "has no label");
    SL_TRY(READ_SECTION(r, root, "label", label_keys));
    size_t outside = spec_enter(r, "label");
    if (!spec->label) return spec_fail(r, "has no column");
    if ((spec->positive || spec->has_at_least) && spec->loss != SL_LOSS_LOGISTIC)
        return spec_fail(r, "positive and at_least are of the loss logistic");
    if (spec->positive && spec->has_at_least) return spec_fail(r, "has both positive and at_least; leave one out");
    if (spec->classes && spec->loss != SL_LOSS_MULTICLASS) return spec_fail(r, "classes are of the loss multiclass");
    spec_leave(r, outside);
    return SL_OK;
}

/* ---- wide, deep ---- */

static int is_in_part_by_default(const sl_feature_spec *f, int deep) {
    if (deep) return f->type != SL_FEATURE_CROSS;
    return f->type != SL_FEATURE_VECTOR && f->type != SL_FEATURE_SCORE;
}

static void add_to_part(sl_feature_spec *f, int deep) {
    *(deep ? &f->in_deep : &f->in_wide) = 1;
}

/* Reads the features of the wide or deep part. By default, a part has all features that it can have. */
static sl_status read_part_features(spec_reader *r, const cJSON *section, int deep) {
    sl_spec *spec = r->spec;
    const cJSON *list = section ? spec_member(section, "features") : NULL;
    if (!list) {
        for (size_t i = 0; i < spec->feature_count; i++)
            if (is_in_part_by_default(&spec->features[i], deep)) add_to_part(&spec->features[i], deep);
        return SL_OK;
    }
    size_t outside = spec_enter(r, "features");
    size_t count, *members = spec_alloc(r, (size_t)cJSON_GetArraySize(list), sizeof *members);
    SL_TRY(spec_read_feature_list(r, list, members, &count));
    for (size_t i = 0; i < count; i++)
        add_to_part(&spec->features[members[i]], deep);
    spec_leave(r, outside);
    return SL_OK;
}

static sl_status read_part(spec_reader *r, const cJSON *root, int deep, int *has) {
    const char *name = deep ? "deep" : "wide";
    const cJSON *section = spec_member(root, name);
    *has = !cJSON_IsNull(section);
    if (!*has) return SL_OK;
    SL_TRY(deep ? READ_SECTION(r, root, name, deep_keys) : READ_SECTION(r, root, name, wide_keys));
    size_t outside = spec_enter(r, name), members = 0;
    SL_TRY(read_part_features(r, section, deep));
    for (size_t i = 0; i < r->spec->feature_count; i++)
        members += (size_t)(deep ? r->spec->features[i].in_deep : r->spec->features[i].in_wide);
    *has = section || members;
    if (*has && members == 0) return spec_fail(r, "has no features; say \"%s\": null to leave this part out", name);
    spec_leave(r, outside);
    return SL_OK;
}

static sl_status read_parts(spec_reader *r, const cJSON *root) {
    sl_spec *spec = r->spec;
    spec->deep_rate = spec->epsilon = -1;
    SL_TRY(read_part(r, root, 0, &spec->has_wide));
    SL_TRY(read_part(r, root, 1, &spec->has_deep));
    if (!spec->has_wide && !spec->has_deep) return spec_fail(r, "leaves both wide and deep without features");
    int adam = spec->optimizer == SL_ADAM;
    if (spec->deep_rate < 0) spec->deep_rate = adam ? 0.001 : 0.02;
    if (spec->epsilon < 0) spec->epsilon = adam ? 1e-8 : 1e-10;
    return SL_OK;
}

/* ---- The whole ---- */

static void set_defaults(sl_spec *spec) {
    spec->delimiter = ',';
    spec->wide_rate = 0.05;
    spec->wide_beta = 0.01;
    static const size_t hidden[] = {128, 64, 32};
    memcpy(spec->hidden, hidden, sizeof hidden);
    spec->hidden_count = sizeof hidden / sizeof *hidden;
    spec->beta1 = 0.9;
    spec->beta2 = 0.999;
    spec->embedding_init = 0.05;
    spec->epochs = 10;
    spec->minibatch_rows = 256;
    spec->validation = 0.1;
    spec->patience = 2;
    spec->forget = 0.005;
    spec->seed = 1;
}

static sl_status read_root(spec_reader *r, const cJSON *root) {
    static const spec_key keys[] = {
        {.name = "csv"},      {.name = "label"}, {.name = "weight", .kind = SPEC_TEXT, .offset = AT(weight)},
        {.name = "features"}, {.name = "wide"},  {.name = "deep"},
        {.name = "train"}};
    set_defaults(r->spec);
    SL_TRY(spec_read_object(r, root, keys, sizeof keys / sizeof *keys, 1, "a spec", r->spec));
    SL_TRY(read_csv(r, root));
    SL_TRY(read_label(r, root));
    if (!spec_member(root, "features")) return spec_fail(r, "has no features");
    size_t outside = spec_enter(r, "features");
    SL_TRY(spec_read_features(r, spec_member(root, "features")));
    spec_leave(r, outside);
    SL_TRY(read_parts(r, root));
    return READ_SECTION(r, root, "train", train_keys);
}

/* Returns an upper bound of the bytes that reading takes from the arena. A node takes at most one text, one number's
 * text and one element of a list. */
static size_t arena_size(const cJSON *node) {
    size_t size = 0;
    for (; node; node = node->next) {
        size += 96 + (cJSON_IsString(node) ? strlen(node->valuestring) : 0);
        if (node->child) size += arena_size(node->child);
    }
    return size;
}

/* ---- Texts of specs that have been read before ---- */

static int same_member(const cJSON *root, const cJSON *other, const char *name) {
    return cJSON_Compare(spec_member(root, name), spec_member(other, name), 1);
}

sl_status sl_spec_same_features(const char *json, const char *text, int *same) {
    cJSON *root, *other = NULL;
    SL_TRY(sl_json_parse(json, &root));
    sl_status status = sl_json_parse(text, &other);
    *same = status == SL_OK && same_member(root, other, "label") && same_member(root, other, "features");
    cJSON_Delete(root);
    cJSON_Delete(other);
    return status;
}

static int set_hidden(cJSON *root, const size_t *hidden, size_t count) {
    cJSON *deep = cJSON_GetObjectItemCaseSensitive(root, "deep"), *list = cJSON_CreateArray();
    if (!deep) deep = cJSON_AddObjectToObject(root, "deep");
    for (size_t i = 0; i < count && list; i++)
        if (!cJSON_AddItemToArray(list, cJSON_CreateNumber((double)hidden[i]))) break;
    if (!deep || (size_t)cJSON_GetArraySize(list) != count) {
        cJSON_Delete(list);
        return 0;
    }
    cJSON_DeleteItemFromObjectCaseSensitive(deep, "hidden");
    if (cJSON_AddItemToObject(deep, "hidden", list)) return 1;
    cJSON_Delete(list);
    return 0;
}

sl_status sl_spec_with_hidden(const char *json, const size_t *hidden, size_t count, char **out) {
    cJSON *root;
    *out = NULL;
    SL_TRY(sl_json_parse(json, &root));
    if (set_hidden(root, hidden, count)) *out = sl_json_print(root);
    cJSON_Delete(root);
    return *out ? SL_OK : sl_fail(SL_ENOMEM, "the spec of the smaller model does not fit in memory");
}

/* ---- Reading ---- */

static sl_status keep_text(sl_spec *spec, const char *json) {
    void *block;
    spec->text_size = strlen(json);
    SL_TRY(sl_mem_alloc(&spec->allocator, spec->text_size + 1, &block));
    spec->text = block;
    memcpy(spec->text, json, spec->text_size);
    return SL_OK;
}

sl_status sl_spec_read(const char *json, const sl_allocator *given, sl_spec **out) {
    *out = NULL;
    if (!json) return sl_fail(SL_EINVAL, "the spec is NULL");
    sl_allocator allocator = sl_allocator_of(given);
    sl_status status;
    void *block;
    SL_TRY(sl_mem_alloc(&allocator, sizeof(sl_spec), &block));
    sl_spec *spec = block;
    spec->allocator = allocator;
    cJSON *root = NULL;
    SL_TRY_GOTO(keep_text(spec, json), done);
    SL_TRY_GOTO(sl_json_parse(json, &root), done);
    size_t size = arena_size(root);
    SL_TRY_GOTO(sl_mem_alloc(&allocator, size, &spec->arena), done);
    spec->arena_size = size;
    spec_reader reader = {.spec = spec};
    SL_TRY_GOTO(read_root(&reader, root), done);
    *out = spec;
done:
    cJSON_Delete(root);
    if (status != SL_OK) sl_spec_free(spec);
    return status;
}

void sl_spec_free(sl_spec *spec) {
    if (!spec) return;
    sl_allocator allocator = spec->allocator;
    sl_mem_free(&allocator, spec->text, spec->text_size + 1);
    sl_mem_free(&allocator, spec->arena, spec->arena_size);
    SL_FREE_ARRAY(&allocator, spec->features, spec->feature_count);
    SL_FREE(&allocator, spec);
}
