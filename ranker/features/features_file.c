/* Fitted features as bytes (docs/FORMAT.md). The file has the fitted values alone, because the rest follows from the
 * spec. */
#include "ranker/features/features.h"
#include "ranker/features/vocabulary.h"

#include <math.h>
#include <string.h>

#define MARK 0x31464c53u /* "SLF1" */

/* ---- Writing ---- */

typedef struct writer {
    unsigned char *bytes; /* NULL: counts the bytes only */
    size_t size;
} writer;

static void put_bytes(writer *w, const void *bytes, size_t size) {
    if (w->bytes && size) memcpy(w->bytes + w->size, bytes, size);
    w->size += size;
}

static void put_number(writer *w, uint64_t value, size_t width) {
    unsigned char bytes[8];
    for (size_t i = 0; i < width; i++)
        bytes[i] = (unsigned char)(value >> 8 * i);
    put_bytes(w, bytes, width);
}

static void put_double(writer *w, double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_number(w, bits, sizeof bits);
}

static void put_vocabulary(writer *w, const sl_vocabulary *v) {
    size_t count = sl_vocabulary_count(v);
    put_number(w, count, 4);
    for (size_t i = 0; i < count; i++) {
        size_t size;
        const char *text = sl_vocabulary_text(v, i, &size);
        put_number(w, size, 4);
        put_bytes(w, text, size);
    }
}

static void put_feature(writer *w, const sl_feature *f) {
    const sl_feature_spec *spec = f->spec;
    if (spec->type == SL_FEATURE_NUMERIC || spec->type == SL_FEATURE_SCORE) {
        put_double(w, f->mean);
        put_double(w, f->factor);
        put_double(w, (double)f->missing);
    } else if (spec->type == SL_FEATURE_BUCKET && spec->quantiles) {
        put_number(w, f->boundary_count, 4);
        for (size_t i = 0; i < f->boundary_count; i++)
            put_double(w, f->boundaries[i]);
    } else if (sl_feature_is_fitted(spec)) {
        put_vocabulary(w, f->vocabulary);
    }
}

static int has_fitted_classes(const sl_spec *spec) {
    return spec->loss == SL_LOSS_MULTICLASS && !spec->classes;
}

static void put_features(writer *w, const sl_features *features) {
    put_number(w, MARK, 4);
    put_number(w, features->count, 4);
    for (size_t i = 0; i < features->count; i++)
        put_feature(w, &features->features[i]);
    if (has_fitted_classes(features->spec)) put_vocabulary(w, features->class_numbers);
}

sl_status sl_features_write(const sl_features *features, const sl_allocator *allocator, void **data, size_t *size) {
    writer counted = {0};
    put_features(&counted, features);
    *size = counted.size;
    SL_TRY(sl_mem_alloc(allocator, counted.size, data));
    writer written = {.bytes = *data};
    put_features(&written, features);
    return SL_OK;
}

/* ---- Reading ---- */

typedef struct reader {
    const unsigned char *at;
    size_t left;
} reader;

static sl_status fail_damaged(const char *what) {
    return sl_fail(SL_ECORRUPT, "the model's fitted features are damaged: %s", what);
}

static sl_status get_number(reader *r, size_t width, uint64_t *out) {
    *out = 0;
    if (r->left < width) return fail_damaged("they end too early");
    for (size_t i = 0; i < width; i++)
        *out |= (uint64_t)r->at[i] << 8 * i;
    r->at += width;
    r->left -= width;
    return SL_OK;
}

static sl_status get_double(reader *r, double *out) {
    uint64_t bits = 0;
    SL_TRY(get_number(r, sizeof bits, &bits));
    memcpy(out, &bits, sizeof bits);
    return isfinite(*out) ? SL_OK : fail_damaged("a number is not finite");
}

static sl_status get_text(reader *r, const char **text, size_t *size) {
    uint64_t length = 0;
    *text = "";
    *size = 0;
    SL_TRY(get_number(r, 4, &length));
    if (length > r->left) return fail_damaged("a text reaches beyond the end");
    if (length == 0) return fail_damaged("a value is empty");
    *text = (const char *)r->at;
    *size = (size_t)length;
    r->at += length;
    r->left -= (size_t)length;
    return SL_OK;
}

/* Reads a vocabulary's count. Each of its texts takes at least 5 bytes. */
static sl_status get_count(reader *r, size_t limit, size_t *out) {
    uint64_t count = 0;
    *out = 0;
    SL_TRY(get_number(r, 4, &count));
    if (count > limit || count > r->left / 5) return fail_damaged("a vocabulary is larger than it can be");
    *out = (size_t)count;
    return SL_OK;
}

static sl_status get_number_feature(reader *r, sl_feature *f) {
    double missing;
    SL_TRY(get_double(r, &f->mean));
    SL_TRY(get_double(r, &f->factor));
    SL_TRY(get_double(r, &missing));
    f->missing = (float)missing;
    if (!(f->factor > 0)) return fail_damaged("a scale is not above 0");
    return isfinite(f->missing) ? SL_OK : fail_damaged("a missing value is too large");
}

static sl_status get_boundaries(reader *r, const sl_allocator *allocator, sl_feature *f) {
    uint64_t count = 0;
    void *block;
    SL_TRY(get_number(r, 4, &count));
    if (count >= f->spec->quantiles || count > r->left / 8) return fail_damaged("there are too many boundaries");
    if (count == 0) return SL_OK;
    SL_TRY(sl_mem_alloc(allocator, (size_t)count * sizeof *f->boundaries, &block));
    f->boundaries = block;
    f->boundary_count = (size_t)count;
    for (size_t i = 0; i < f->boundary_count; i++) {
        SL_TRY(get_double(r, &f->boundaries[i]));
        if (i && !(f->boundaries[i] > f->boundaries[i - 1])) return fail_damaged("boundaries do not rise");
    }
    return SL_OK;
}

static sl_status get_vocabulary(reader *r, const sl_allocator *allocator, sl_feature *f) {
    const sl_feature_spec *spec = f->spec;
    size_t count;
    SL_TRY(get_count(r, spec->keep && spec->keep < spec->limit ? spec->keep : spec->limit, &count));
    SL_TRY(sl_vocabulary_create(allocator, &f->vocabulary));
    for (size_t i = 0; i < count; i++) {
        const char *text = NULL;
        size_t size = 0, number;
        SL_TRY(get_text(r, &text, &size));
        SL_TRY(sl_vocabulary_add(f->vocabulary, text, size, SIZE_MAX, &number));
        if (number != i) return fail_damaged("a value is listed twice");
    }
    return SL_OK;
}

static sl_status get_classes(reader *r, sl_features *features) {
    size_t count;
    SL_TRY(get_count(r, SL_MAX_CLASSES, &count));
    if (count < 2) return fail_damaged("there are fewer than two classes");
    for (size_t i = 0; i < count; i++) {
        const char *text = NULL;
        size_t size = 0;
        SL_TRY(get_text(r, &text, &size));
        sl_status status = sl_features_add_class(features, text, size);
        if (status != SL_OK) return status == SL_ENOMEM ? status : fail_damaged("a class cannot be one");
    }
    return SL_OK;
}

static sl_status get_feature(reader *r, sl_features *features, size_t number) {
    sl_feature *f = &features->features[number];
    const sl_feature_spec *spec = f->spec;
    if (spec->type == SL_FEATURE_NUMERIC || spec->type == SL_FEATURE_SCORE) return get_number_feature(r, f);
    if (spec->type == SL_FEATURE_BUCKET && spec->quantiles) return get_boundaries(r, &features->allocator, f);
    return sl_feature_is_fitted(spec) ? get_vocabulary(r, &features->allocator, f) : SL_OK;
}

static sl_status get_features(reader *r, sl_features *features) {
    uint64_t mark = 0, count = 0;
    SL_TRY(get_number(r, 4, &mark));
    SL_TRY(get_number(r, 4, &count));
    if (mark != MARK || count != features->count) return fail_damaged("they do not belong to the spec");
    for (size_t i = 0; i < features->count; i++) {
        sl_status status = get_feature(r, features, i);
        if (status != SL_OK) return sl_fail_in(status, "feature '%s'", features->features[i].spec->name);
    }
    if (has_fitted_classes(features->spec)) SL_TRY(get_classes(r, features));
    if (r->left) return fail_damaged("something follows them");
    SL_TRY(sl_features_name_outputs(features));
    return sl_features_lay_out(features);
}

sl_status sl_features_read(sl_spec *spec, const void *data, size_t size, sl_features **out) {
    sl_features *features;
    *out = NULL;
    SL_TRY(sl_features_make(spec, &features));
    reader r = {.at = data, .left = size};
    sl_status status = get_features(&r, features);
    if (status == SL_OK)
        *out = features;
    else
        sl_features_free(features);
    return status;
}
