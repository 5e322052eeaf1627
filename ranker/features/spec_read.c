#include "ranker/features/spec_read.h"

#include "ranker/features/number.h"
#include "ranker/features/table.h"

#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* ---- Paths and errors ---- */

static size_t extend_path(spec_reader *r, int added) {
    size_t before = r->path_length, room = sizeof r->path - 1 - before;
    r->path_length += (size_t)added < room ? (size_t)added : room;
    return before;
}

size_t spec_enter(spec_reader *r, const char *key) {
    const char *dot = r->path_length ? "." : "";
    return extend_path(r, snprintf(r->path + r->path_length, sizeof r->path - r->path_length, "%s%s", dot,
                                   sl_show(key, strlen(key)).text));
}

size_t spec_enter_at(spec_reader *r, size_t index) {
    return extend_path(r, snprintf(r->path + r->path_length, sizeof r->path - r->path_length, "[%zu]", index));
}

void spec_leave(spec_reader *r, size_t length) {
    r->path_length = length;
    r->path[length] = 0;
}

sl_status spec_fail(const spec_reader *r, const char *format, ...) {
    char detail[SL_ERROR_SIZE];
    va_list args;
    va_start(args, format);
    vsnprintf(detail, sizeof detail, format, args);
    va_end(args);
    return sl_fail(SL_EINVAL, "%s: %s", r->path_length ? r->path : "the spec", detail);
}

/* ---- The arena ---- */

void *spec_alloc(spec_reader *r, size_t count, size_t size) {
    unsigned char *block = (unsigned char *)r->spec->arena + r->used;
    r->used += sl_round_up(count * size, sizeof(max_align_t));
    return block;
}

static const char *copy_text(spec_reader *r, const char *text, size_t size) {
    char *copy = spec_alloc(r, size + 1, 1);
    memcpy(copy, text, size);
    return copy;
}

/* ---- Values ---- */

const cJSON *spec_member(const cJSON *object, const char *key) {
    return cJSON_GetObjectItemCaseSensitive(object, key);
}

static sl_status read_text(spec_reader *r, const cJSON *value, const char **out) {
    if (!cJSON_IsString(value)) return spec_fail(r, "takes a text");
    if (!*value->valuestring) return spec_fail(r, "is an empty text");
    *out = copy_text(r, value->valuestring, strlen(value->valuestring));
    return SL_OK;
}

sl_status spec_read_real(spec_reader *r, const cJSON *value, double low, double high, double *out) {
    int holds = cJSON_IsNumber(value) && isfinite(value->valuedouble) && value->valuedouble >= low &&
                value->valuedouble <= high;
    if (!holds && low == SPEC_ABOVE_0) return spec_fail(r, "takes a number above 0, up to %g", high);
    if (!holds && low == -HUGE_VAL) return spec_fail(r, "takes a number");
    if (!holds) return spec_fail(r, "takes a number from %g to %g", low, high);
    *out = value->valuedouble;
    return SL_OK;
}

sl_status spec_read_count(spec_reader *r, const cJSON *value, size_t low, size_t high, size_t *out) {
    double given = cJSON_IsNumber(value) ? value->valuedouble : -1;
    if (!(given >= (double)low && given <= (double)high && given == floor(given)))
        return spec_fail(r, "takes a whole number from %zu to %zu", low, high);
    *out = (size_t)given;
    return SL_OK;
}

sl_status spec_read_value(spec_reader *r, const cJSON *value, const char **out) {
    if (cJSON_IsString(value)) return read_text(r, value, out);
    if (cJSON_IsBool(value)) {
        *out = cJSON_IsTrue(value) ? "true" : "false";
        return SL_OK;
    }
    if (!cJSON_IsNumber(value) || !isfinite(value->valuedouble))
        return spec_fail(r, "takes a text, a number, true or false");
    /* A double may have rounded a larger whole number. */
    if (fabs(value->valuedouble) >= 0x1p53)
        return spec_fail(r, "has a number of 2^53 or more, of which JSON may lose digits; give it as a text");
    char text[SL_NUMBER_TEXT];
    *out = copy_text(r, text, sl_number_write(value->valuedouble, text));
    return SL_OK;
}

static sl_status read_array(spec_reader *r, const cJSON *array,
                            sl_status (*read)(spec_reader *, const cJSON *, const char **), const char *const **out,
                            size_t *count) {
    if (!cJSON_IsArray(array) || !array->child) return spec_fail(r, "takes a list of at least one element");
    size_t elements = 0;
    for (const cJSON *element = array->child; element; element = element->next)
        elements++;
    const char **texts = spec_alloc(r, elements, sizeof *texts);
    size_t i = 0;
    for (const cJSON *element = array->child; element; element = element->next, i++) {
        size_t outside = spec_enter_at(r, i);
        SL_TRY(read(r, element, &texts[i]));
        spec_leave(r, outside);
    }
    *out = texts;
    *count = elements;
    return SL_OK;
}

sl_status spec_read_values(spec_reader *r, const cJSON *array, const char *const **out, size_t *count) {
    return read_array(r, array, spec_read_value, out, count);
}

sl_status spec_read_names(spec_reader *r, const cJSON *array, const char *const **out, size_t *count) {
    return read_array(r, array, read_text, out, count);
}

sl_status spec_read_choice(spec_reader *r, const cJSON *value, const char *choices, int *out) {
    const char *given = cJSON_IsString(value) ? value->valuestring : "";
    size_t size = strlen(given);
    int number = 0;
    for (const char *word = choices; *word; number++) {
        size_t length = strcspn(word, " ");
        if (length == size && memcmp(word, given, size) == 0) {
            *out = number;
            return SL_OK;
        }
        word += length + (word[length] == ' ');
    }
    return spec_fail(r, "takes one of: %s", choices);
}

static sl_status read_letter(spec_reader *r, const cJSON *value, char *out) {
    const char *text = cJSON_IsString(value) ? value->valuestring : "";
    if (strlen(text) != 1 || strchr("\"\r\n", *text))
        return spec_fail(r, "takes a text of one character (of one byte; no quote or line break)");
    *out = *text;
    return SL_OK;
}

/* ---- Objects ---- */

static sl_status read_member(spec_reader *r, const cJSON *value, const spec_key *key, void *target) {
    char *field = (char *)target + key->offset;
    int number;
    _Static_assert(sizeof number == sizeof(sl_loss) && sizeof number == sizeof(sl_coding), "enumerations are ints");
    switch (key->kind) {
    case SPEC_REAL:
        return spec_read_real(r, value, key->low, key->high, (double *)(void *)field);
    case SPEC_COUNT:
        return spec_read_count(r, value, (size_t)key->low, (size_t)key->high, (size_t *)(void *)field);
    case SPEC_TEXT:
        return read_text(r, value, (const char **)(void *)field);
    case SPEC_LETTER:
        return read_letter(r, value, field);
    case SPEC_CHOICE:
        SL_TRY(spec_read_choice(r, value, key->choices, &number));
        break;
    case SPEC_FLAG:
        if (!cJSON_IsBool(value)) return spec_fail(r, "takes true or false");
        number = cJSON_IsTrue(value);
        break;
    default:
        return key->read ? key->read(r, value, target) : SL_OK;
    }
    memcpy(field, &number, sizeof number);
    return SL_OK;
}

static const spec_key *find_key(const spec_key *keys, size_t count, const char *name) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(keys[i].name, name) == 0) return &keys[i];
    return NULL;
}

sl_status spec_read_object(spec_reader *r, const cJSON *object, const spec_key *keys, size_t count, unsigned form,
                           const char *what, void *target) {
    if (!cJSON_IsObject(object)) return spec_fail(r, "takes an object: {...}");
    for (const cJSON *value = object->child; value; value = value->next) {
        size_t outside = spec_enter(r, value->string);
        const spec_key *key = find_key(keys, count, value->string);
        if (!key) return spec_fail(r, "no such key; see docs/SPEC.md");
        if (key->forms && !(key->forms & form)) return spec_fail(r, "%s has no such key; see docs/SPEC.md", what);
        if (spec_member(object, value->string) != value) return spec_fail(r, "is given twice");
        SL_TRY(read_member(r, value, key, target));
        spec_leave(r, outside);
    }
    return SL_OK;
}

/* ---- Features by name ---- */

sl_status spec_find_feature(spec_reader *r, const char *name, size_t *out) {
    *out = 0;
    for (size_t i = 0; i < r->spec->feature_count; i++) {
        if (strcmp(r->spec->features[i].name, name) != 0) continue;
        *out = i;
        return SL_OK;
    }
    return spec_fail(r, "no feature has the name '%s'", sl_show(name, strlen(name)).text);
}

sl_status spec_read_feature_list(spec_reader *r, const cJSON *array, size_t *out, size_t *count) {
    if (!cJSON_IsArray(array)) return spec_fail(r, "takes a list of features' names");
    *count = 0;
    for (const cJSON *element = array->child; element; element = element->next) {
        size_t outside = spec_enter_at(r, *count), number = 0;
        if (!cJSON_IsString(element)) return spec_fail(r, "takes a feature's name");
        SL_TRY(spec_find_feature(r, element->valuestring, &number));
        for (size_t i = 0; i < *count; i++)
            if (out[i] == number)
                return spec_fail(r, "'%s' is listed twice",
                                 sl_show(element->valuestring, strlen(element->valuestring)).text);
        out[(*count)++] = number;
        spec_leave(r, outside);
    }
    return SL_OK;
}
