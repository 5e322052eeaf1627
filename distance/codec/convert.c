/* Element types, and all conversions between them. All arithmetic is on integers or on normal floats, so that a
 * caller's flush-to-zero mode changes nothing. */
#include "distance/codec/convert.h"

#include "base/status.h"

#include <string.h>

size_t sl_dtype_size(sl_dtype dtype) {
    static const size_t sizes[] = {[SL_F32] = 4, [SL_F16] = 2, [SL_BF16] = 2, [SL_I8] = 1, [SL_U8] = 1, [SL_I16] = 2};
    return (unsigned)dtype < sizeof sizes / sizeof *sizes ? sizes[dtype] : 0;
}

const char *sl_dtype_name(sl_dtype dtype) {
    static const char *const names[] = {
        [SL_F32] = "f32", [SL_F16] = "f16", [SL_BF16] = "bf16", [SL_I8] = "i8", [SL_U8] = "u8", [SL_I16] = "i16"};
    return (unsigned)dtype < sizeof names / sizeof *names ? names[dtype] : "?";
}

static uint32_t bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float float_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Binary16 has a bias of 15 and 10 bits of fraction; binary32 has 127 and 23. */
#define F16_SHIFT     13
#define F16_REBIAS    (112u << 23)
#define F16_INFINITY  0x7c00u
#define F16_QUIET     0x0200u
#define F32_INFINITY  0x7f800000u
#define F32_MAGNITUDE 0x7fffffffu

static float f16_to_float(uint16_t half) {
    uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
    uint32_t magnitude = half & 0x7fffu;
    uint32_t bits = (magnitude << F16_SHIFT) + F16_REBIAS;
    if (magnitude >= F16_INFINITY)
        bits += F16_REBIAS;
    else if (magnitude <
             1u << 10) /* subnormal: fraction * 2^-24; the subtraction takes away the leading 1 that it lacks */
        bits = bits_of(float_of(bits + (1u << 23)) - 0x1p-14f);
    return float_of(sign | bits);
}

static uint16_t float_to_f16(float value) {
    uint32_t bits = bits_of(value);
    uint32_t sign = bits >> 16 & 0x8000u;
    uint32_t magnitude = bits & F32_MAGNITUDE;
    uint32_t half;
    if (magnitude > F32_INFINITY) /* NaN: the upper bits of its payload stay, and it must not become an infinity */
        half = F16_INFINITY | F16_QUIET | (magnitude >> F16_SHIFT & 0x3ffu);
    else if (magnitude >= bits_of(65520.0f)) /* half way above the largest number, whose fraction is odd */
        half = F16_INFINITY;
    else if (magnitude >= bits_of(0x1p-14f))
        half = (magnitude - F16_REBIAS + 0xfffu + (magnitude >> F16_SHIFT & 1)) >> F16_SHIFT;
    else if (magnitude <= bits_of(0x1p-25f))
        half = 0;
    else /* subnormal: the addition leaves 2^-24 as the last place, and rounds */
        half = bits_of(float_of(magnitude) + 0.5f) - bits_of(0.5f);
    return (uint16_t)(sign | half);
}

static float bf16_to_float(uint16_t half) {
    return float_of((uint32_t)half << 16);
}

static uint16_t float_to_bf16(float value) {
    uint32_t bits = bits_of(value);
    if ((bits & F32_MAGNITUDE) > F32_INFINITY) return (uint16_t)(bits >> 16 | 0x40u);
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
}

/* Loads element i; a vector need not be aligned to its elements. */
static uint16_t load_half(const void *src, size_t i) {
    uint16_t value;
    memcpy(&value, (const uint8_t *)src + 2 * i, sizeof value);
    return value;
}

void sl_to_float(sl_dtype dtype, const void *src, float *dst, size_t n) {
    switch (dtype) {
    case SL_F32:
        memcpy(dst, src, n * sizeof *dst);
        break;
    case SL_F16:
        for (size_t i = 0; i < n; i++)
            dst[i] = f16_to_float(load_half(src, i));
        break;
    case SL_BF16:
        for (size_t i = 0; i < n; i++)
            dst[i] = bf16_to_float(load_half(src, i));
        break;
    case SL_I8:
        for (size_t i = 0; i < n; i++)
            dst[i] = ((const int8_t *)src)[i];
        break;
    case SL_U8:
        for (size_t i = 0; i < n; i++)
            dst[i] = ((const uint8_t *)src)[i];
        break;
    case SL_I16:
        for (size_t i = 0; i < n; i++)
            dst[i] = (int16_t)load_half(src, i);
        break;
    }
}

void sl_from_float(sl_dtype dtype, const float *src, void *dst, size_t n) {
    if (dtype == SL_F32) {
        memcpy(dst, src, n * sizeof *src);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        uint16_t half = dtype == SL_F16 ? float_to_f16(src[i]) : float_to_bf16(src[i]);
        memcpy((uint8_t *)dst + 2 * i, &half, sizeof half);
    }
}

sl_status sl_convert(const void *from, sl_dtype from_dtype, void *to, sl_dtype to_dtype, size_t n) {
    size_t from_size = sl_dtype_size(from_dtype), to_size = sl_dtype_size(to_dtype);
    if (!from_size) return sl_fail(SL_ETYPE, "sl_convert: element type %d is none of sl_dtype", (int)from_dtype);
    if (!to_size) return sl_fail(SL_ETYPE, "sl_convert: element type %d is none of sl_dtype", (int)to_dtype);
    if (!sl_dtype_is_float(to_dtype) || (!sl_dtype_is_float(from_dtype) && to_dtype != SL_F32))
        return sl_fail(SL_ETYPE,
                       "sl_convert: %s to %s is not a conversion it does; floating-point types convert to one another, "
                       "integer types to f32",
                       sl_dtype_name(from_dtype), sl_dtype_name(to_dtype));
    if (n == 0) return SL_OK;
    if (!from || !to) return sl_fail(SL_EINVAL, "sl_convert: %s is NULL", from ? "to" : "from");
    /* The values of every type are floats, so the way over float rounds once. */
    float block[256];
    for (size_t done = 0, count; done < n; done += count) {
        count = n - done < 256 ? n - done : 256;
        sl_to_float(from_dtype, (const uint8_t *)from + done * from_size, block, count);
        sl_from_float(to_dtype, block, (uint8_t *)to + done * to_size, count);
    }
    return SL_OK;
}
