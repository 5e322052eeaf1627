#include "cli/files/elements.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    size_t size;
    int is_float;
    sl_dtype dtype;
} types[] = {
    [ELEMENT_F32] = {"f32", 4, 1, SL_F32}, [ELEMENT_F16] = {"f16", 2, 1, SL_F16}, [ELEMENT_I8] = {"i8", 1, 0, SL_I8},
    [ELEMENT_U8] = {"u8", 1, 0, SL_U8},    [ELEMENT_I16] = {"i16", 2, 0, SL_I16}, [ELEMENT_I32] = {"i32", 4, 0, SL_F32},
    [ELEMENT_U64] = {"u64", 8, 0, SL_F32}, [ELEMENT_F64] = {"f64", 8, 1, SL_F32}, [ELEMENT_U16] = {"u16", 2, 0, SL_F32},
    [ELEMENT_U32] = {"u32", 4, 0, SL_F32}, [ELEMENT_I64] = {"i64", 8, 0, SL_F32},
};

const char *element_name(element type) {
    return types[type].name;
}

size_t element_size(element type) {
    return types[type].size;
}

int element_is_float(element type) {
    return types[type].is_float;
}

sl_dtype element_dtype(element type) {
    return types[type].dtype;
}

element element_of_dtype(sl_dtype dtype) {
    switch (dtype) {
    case SL_F16:
        return ELEMENT_F16;
    case SL_I8:
        return ELEMENT_I8;
    case SL_U8:
        return ELEMENT_U8;
    case SL_I16:
        return ELEMENT_I16;
    default:
        return ELEMENT_F32;
    }
}

/* Conversions go through one of two wide types: int64 between integers, double if one end is a float. Each holds every
 * narrower value exactly. u64 beyond int64 fits neither and is refused. */
#define CHUNK 512

#define LOAD(type, wide)                                                                                               \
    for (size_t i = 0; i < n; i++) {                                                                                   \
        type value;                                                                                                    \
        memcpy(&value, bytes + i * sizeof value, sizeof value);                                                        \
        out[i] = (wide)value;                                                                                          \
    }                                                                                                                  \
    return n

/* Loads elements. Returns how many: fewer than n if one does not fit. */
static size_t load_whole(const void *from, element type, size_t n, int64_t *out) {
    const unsigned char *bytes = from;
    switch (type) {
    case ELEMENT_I8:
        LOAD(int8_t, int64_t);
    case ELEMENT_U8:
        LOAD(uint8_t, int64_t);
    case ELEMENT_I16:
        LOAD(int16_t, int64_t);
    case ELEMENT_U16:
        LOAD(uint16_t, int64_t);
    case ELEMENT_I32:
        LOAD(int32_t, int64_t);
    case ELEMENT_U32:
        LOAD(uint32_t, int64_t);
    case ELEMENT_I64:
        LOAD(int64_t, int64_t);
    case ELEMENT_U64:
        for (size_t i = 0; i < n; i++) {
            uint64_t value;
            memcpy(&value, bytes + i * sizeof value, sizeof value);
            if (value > INT64_MAX) return i;
            out[i] = (int64_t)value;
        }
        return n;
    default:
        return 0;
    }
}

static void load_halves(const void *from, size_t n, double *out) {
    float floats[CHUNK];
    /* sl_convert fails only on a wrong type. */
    if (sl_convert(from, SL_F16, floats, SL_F32, n) != SL_OK) return;
    for (size_t i = 0; i < n; i++)
        out[i] = (double)floats[i];
}

static size_t load_real(const void *from, element type, size_t n, int round, double *out) {
    const unsigned char *bytes = from;
    int64_t whole[CHUNK];
    switch (type) {
    case ELEMENT_F32:
        LOAD(float, double);
    case ELEMENT_F64:
        LOAD(double, double);
    case ELEMENT_F16:
        load_halves(from, n, out);
        return n;
    default:
        n = load_whole(from, type, n, whole);
        for (size_t i = 0; i < n; i++) {
            out[i] = (double)whole[i];
            /* 2^63 itself would not convert back. */
            if (!round && (out[i] >= 0x1p63 || (int64_t)out[i] != whole[i])) return i;
        }
        return n;
    }
}

#define STORE_WHOLE(type, low, high)                                                                                   \
    for (size_t i = 0; i < n; i++) {                                                                                   \
        if (from[i] < (low) || from[i] > (high)) return i;                                                             \
        type value = (type)from[i];                                                                                    \
        memcpy(bytes + i * sizeof value, &value, sizeof value);                                                        \
    }                                                                                                                  \
    return n

static size_t store_whole(const int64_t *from, element type, size_t n, void *to) {
    unsigned char *bytes = to;
    switch (type) {
    case ELEMENT_I8:
        STORE_WHOLE(int8_t, INT8_MIN, INT8_MAX);
    case ELEMENT_U8:
        STORE_WHOLE(uint8_t, 0, UINT8_MAX);
    case ELEMENT_I16:
        STORE_WHOLE(int16_t, INT16_MIN, INT16_MAX);
    case ELEMENT_I32:
        STORE_WHOLE(int32_t, INT32_MIN, INT32_MAX);
    case ELEMENT_U64:
        STORE_WHOLE(uint64_t, 0, INT64_MAX);
    case ELEMENT_I64:
        memcpy(to, from, n * sizeof *from);
        return n;
    default:
        return 0;
    }
}

static size_t store_float(const double *from, int exact, size_t n, void *to) {
    float *out = to;
    for (size_t i = 0; i < n; i++) {
        out[i] = (float)from[i];
        if (isinf(out[i]) && !isinf(from[i])) return i;
        if (exact && (double)out[i] != from[i]) return i;
    }
    return n;
}

static size_t store_halves(const double *from, int exact, size_t n, void *to) {
    float floats[CHUNK], back[CHUNK];
    for (size_t i = 0; i < n; i++)
        floats[i] = (float)from[i];
    if (sl_convert(floats, SL_F32, to, SL_F16, n) != SL_OK || sl_convert(to, SL_F16, back, SL_F32, n) != SL_OK)
        return 0;
    for (size_t i = 0; i < n; i++) {
        if (isinf(back[i]) && !isinf(from[i])) return i;
        if (exact && (double)back[i] != from[i]) return i;
    }
    return n;
}

static size_t store_real(const double *from, element type, int exact, int round, size_t n, void *to) {
    int64_t whole[CHUNK];
    if (type == ELEMENT_F32) return store_float(from, exact, n, to);
    if (type == ELEMENT_F16) return store_halves(from, exact, n, to);
    size_t fits = 0;
    for (; fits < n; fits++) {
        double value = nearbyint(from[fits]);
        if (!(value >= -0x1p63 && value < 0x1p63) || (!round && value != from[fits])) break;
        whole[fits] = (int64_t)value;
    }
    return store_whole(whole, type, fits, to);
}

size_t elements_convert(const void *from, element from_type, void *to, element to_type, size_t n, int round) {
    if (from_type == to_type) {
        memcpy(to, from, n * element_size(to_type));
        return n;
    }
    int floating = element_is_float(from_type) || element_is_float(to_type);
    int exact = !round && !element_is_float(from_type);
    for (size_t done = 0; done < n;) {
        int64_t whole[CHUNK];
        double real[CHUNK];
        size_t part = n - done < CHUNK ? n - done : CHUNK;
        const char *in = (const char *)from + done * element_size(from_type);
        char *out = (char *)to + done * element_size(to_type);
        size_t loaded = floating ? load_real(in, from_type, part, round, real) : load_whole(in, from_type, part, whole);
        size_t stored =
            floating ? store_real(real, to_type, exact, round, loaded, out) : store_whole(whole, to_type, loaded, out);
        done += stored;
        if (stored < part) return done;
    }
    return n;
}

void element_print(const void *from, element type, char *out, size_t size) {
    uint64_t large;
    int64_t whole;
    double real;
    if (type == ELEMENT_U64) {
        memcpy(&large, from, sizeof large);
        snprintf(out, size, "%" PRIu64, large);
    } else if (!element_is_float(type) && load_whole(from, type, 1, &whole))
        snprintf(out, size, "%" PRId64, whole);
    else if (load_real(from, type, 1, 1, &real))
        snprintf(out, size, "%.9g", real);
}

void elements_swap(void *data, size_t size, size_t n) {
    unsigned char *bytes = data;
    for (size_t i = 0; i < n; i++, bytes += size)
        for (size_t a = 0, b = size - 1; a < b; a++, b--) {
            unsigned char kept = bytes[a];
            bytes[a] = bytes[b];
            bytes[b] = kept;
        }
}
