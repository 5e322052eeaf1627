#include "ranker/features/encode_ids.h"

#include "ranker/features/vocabulary.h"

#include <math.h>
#include <string.h>
#include <xxhash.h>

/* ---- Ids ---- */

static sl_status encode_identity(const sl_feature *feature, const sl_key *key, uint32_t *out) {
    int64_t value = key->integer;
    int holds = key->kind == SL_KEY_INTEGER || sl_integer_read(key->text, key->size, &value);
    if (!holds || value < 0 || (uint64_t)value >= feature->spec->size) {
        sl_key shown = *key;
        sl_key_text(&shown);
        return sl_fail(SL_EVALUE, "'%s' is no whole number from 0 to %zu", sl_show(shown.text, shown.size).text,
                       feature->spec->size - 1);
    }
    *out = (uint32_t)(1 + value);
    return SL_OK;
}

/* docs/FORMAT.md describes how ids are made, so that other programs can make them. */
sl_status sl_encode_key(const sl_feature *feature, sl_key *key, uint32_t *out) {
    const sl_feature_spec *spec = feature->spec;
    *out = 0;
    if (key->kind == SL_KEY_MISSING) return SL_OK;
    if (spec->coding == SL_CODING_IDENTITY) return encode_identity(feature, key, out);
    if (spec->coding != SL_CODING_HASH) {
        size_t number = key->kind == SL_KEY_INTEGER ? sl_vocabulary_find_integer(feature->vocabulary, key->integer)
                                                    : sl_vocabulary_find(feature->vocabulary, key->text, key->size);
        if (number != SIZE_MAX) {
            *out = (uint32_t)(1 + spec->oov + number);
            return SL_OK;
        }
    }
    size_t buckets = spec->coding == SL_CODING_HASH ? spec->size : spec->oov;
    if (buckets == 0) return SL_OK;
    sl_key_text(key);
    *out = (uint32_t)(1 + sl_text_hash(key->text, key->size) % buckets);
    return SL_OK;
}

/* Returns the number of boundaries that are at most x. */
static uint32_t bucket_of(const sl_feature *feature, double x) {
    size_t low = 0, high = feature->boundary_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (feature->boundaries[middle] <= x)
            low = middle + 1;
        else
            high = middle;
    }
    return (uint32_t)low;
}

sl_status sl_encode_id(const sl_feature *feature, const sl_column *column, size_t row, uint32_t *out) {
    if (feature->spec->type == SL_FEATURE_BUCKET) {
        double value;
        SL_TRY(sl_cell_number(column, row, &value));
        *out = isnan(value) ? (uint32_t)feature->boundary_count + 1 : bucket_of(feature, value);
        return SL_OK;
    }
    sl_key key;
    SL_TRY(sl_cell_key(column, row, &key));
    return sl_encode_key(feature, &key, out);
}

uint32_t sl_cross_id(const sl_feature *cross, const uint32_t *parents, size_t count) {
    unsigned char bytes[sizeof(uint64_t) + SL_MAX_PARENTS * sizeof(uint32_t)];
    size_t size = 0;
    for (unsigned shift = 0; shift < 64; shift += 8)
        bytes[size++] = (unsigned char)(cross->name_hash >> shift);
    for (size_t i = 0; i < count && i < SL_MAX_PARENTS; i++)
        for (unsigned shift = 0; shift < 32; shift += 8)
            bytes[size++] = (unsigned char)(parents[i] >> shift);
    return (uint32_t)(XXH3_64bits(bytes, size) % cross->size);
}

/* ---- Vectors ---- */

static sl_status check_floats(const float *values, size_t dim) {
    /* 0 * x is NaN if x is not finite, and so is the sum. This loop has no branch. */
    float sum = 0;
    for (size_t i = 0; i < dim; i++)
        sum += 0 * values[i];
    return sum == 0 ? SL_OK : sl_fail(SL_EVALUE, "the vector has NaN or infinity in it");
}

static sl_status read_floats(const char *at, size_t size, size_t dim, float *out) {
    const char *end = at + size;
    size_t count = 0;
    for (;;) {
        while (at < end && *at == ' ')
            at++;
        if (at == end) break;
        const char *to = memchr(at, ' ', (size_t)(end - at));
        if (!to) to = end;
        double value;
        if (!sl_number_read(at, (size_t)(to - at), &value) || !isfinite((float)value))
            return sl_fail(SL_EVALUE, "'%s' is no finite number", sl_show(at, (size_t)(to - at)).text);
        if (count < dim) out[count] = (float)value;
        count++;
        at = to;
    }
    if (count && count != dim) return sl_fail(SL_EDIM, "the vector has %zu numbers, not %zu", count, dim);
    return SL_OK;
}

static sl_status look_up_vector(const sl_feature *feature, const sl_column *column, size_t row, sl_lookup_fn lookup,
                                void *lookup_ctx, float *out) {
    sl_key key;
    uint64_t id = 0;
    SL_TRY(sl_cell_key(column, row, &key));
    if (key.kind == SL_KEY_MISSING) return SL_OK;
    sl_key_text(&key);
    if (!sl_digits_read(key.text, key.size, &id))
        return sl_fail(SL_EVALUE, "'%s' is no id; ids are whole numbers from 0", sl_show(key.text, key.size).text);
    if (!lookup) return sl_fail(SL_EINVAL, "the column holds ids; give `lookup` to find their vectors");
    sl_status status = lookup(lookup_ctx, feature->spec->name, id, out, feature->width);
    if (status != SL_OK) return sl_fail_in(status, "id %llu", (unsigned long long)id);
    return check_floats(out, feature->width);
}

sl_status sl_encode_vector(const sl_feature *feature, const sl_column *column, size_t row, sl_lookup_fn lookup,
                           void *lookup_ctx, float *out) {
    size_t dim = feature->width;
    memset(out, 0, dim * sizeof *out);
    if (!sl_column_has(column, row)) return SL_OK;
    if (column->type == SL_COLUMN_VECTOR) {
        memcpy(out, (const float *)column->values + row * dim, dim * sizeof *out);
        return check_floats(out, dim);
    }
    if (feature->spec->from_index) return look_up_vector(feature, column, row, lookup, lookup_ctx, out);
    const char *text;
    size_t size;
    SL_TRY(sl_cell_text(column, (int64_t)row, &text, &size));
    return read_floats(text, size, dim, out);
}

/* ---- Labels and weights ---- */

static int is_word(const sl_key *key, const char *word) {
    if (key->size != strlen(word)) return 0;
    for (size_t i = 0; i < key->size; i++)
        if ((key->text[i] | 32) != word[i]) return 0;
    return 1;
}

static sl_status read_binary_label(sl_key *key, float *out) {
    int64_t value = -1;
    if (key->kind == SL_KEY_INTEGER)
        value = key->integer;
    else if (is_word(key, "true"))
        value = 1;
    else if (is_word(key, "false"))
        value = 0;
    else {
        double number;
        if (sl_number_read(key->text, key->size, &number) && (number == 0 || number == 1)) value = (int64_t)number;
    }
    if (value != 0 && value != 1) {
        sl_key_text(key);
        return sl_fail(SL_EVALUE,
                       "the label '%s' is neither 0 nor 1; say in the spec's label which value is "
                       "\"positive\", or \"at_least\" which number",
                       sl_show(key->text, key->size).text);
    }
    *out = (float)value;
    return SL_OK;
}

static sl_status read_class_label(const sl_features *features, sl_key *key, float *out) {
    sl_key_text(key);
    size_t number = sl_vocabulary_find(features->class_numbers, key->text, key->size);
    if (number == SIZE_MAX)
        return sl_fail(SL_EVALUE, "the label '%s' is none of the model's classes", sl_show(key->text, key->size).text);
    *out = (float)number;
    return SL_OK;
}

static sl_status read_numeric_label(const sl_spec *spec, const sl_column *column, size_t row, float *out) {
    double value;
    SL_TRY(sl_cell_number(column, row, &value));
    if (isnan(value)) return sl_fail(SL_EVALUE, "the label is missing");
    *out = spec->has_at_least ? (float)(value >= spec->at_least) : (float)value;
    return isfinite(*out) ? SL_OK : sl_fail(SL_EVALUE, "the label %g is too large", value);
}

sl_status sl_encode_label(const sl_features *features, const sl_column *column, size_t row, float *out) {
    const sl_spec *spec = features->spec;
    if (spec->loss == SL_LOSS_SQUARED || spec->has_at_least) return read_numeric_label(spec, column, row, out);
    sl_key key;
    SL_TRY(sl_cell_key(column, row, &key));
    if (key.kind == SL_KEY_MISSING) return sl_fail(SL_EVALUE, "the label is missing");
    if (spec->loss == SL_LOSS_MULTICLASS) return read_class_label(features, &key, out);
    if (!spec->positive) return read_binary_label(&key, out);
    sl_key_text(&key);
    *out = (float)(key.size == strlen(spec->positive) && memcmp(key.text, spec->positive, key.size) == 0);
    return SL_OK;
}

sl_status sl_encode_weight(const sl_column *column, size_t row, float *out) {
    double value;
    SL_TRY(sl_cell_number(column, row, &value));
    *out = (float)value;
    if (!(*out >= 0 && isfinite(*out))) return sl_fail(SL_EVALUE, "a weight is a number of at least 0, not %g", value);
    return SL_OK;
}
