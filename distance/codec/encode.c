/* Encodes vectors as rows and queries, and decodes rows. codec.h has the table of a row's contents. */
#include "distance/codec/encode.h"

#include "distance/codec/encode4.h"
#include "distance/double.h"

/* Turns signed bytes into unsigned ones and back. I8 rows hold unsigned bytes; queries and I8 vectors are signed. */
static void flip_bytes(const void *from, void *to, size_t n) {
    const uint8_t *in = from;
    uint8_t *out = to;
    for (size_t i = 0; i < n; i++)
        out[i] = in[i] ^ 0x80u;
}

/* U8 rows are 128 above the terms of a query. Metrics that don't cancel the 128 put it into the bias. */
static int is_shifted(const sl_codec *codec) {
    return codec->dtype == SL_U8 && codec->metric != SL_METRIC_L2;
}

/* ---------------------------------------------------------------------------------------------------------------
 * Integer codes and their sums
 * ------------------------------------------------------------------------------------------------------------- */

typedef struct code_sums {
    int64_t linear, squares;
} code_sums;

static int64_t sum_i8(const int8_t *codes, size_t dim) {
    int32_t sum = 0;
    for (size_t i = 0; i < dim; i++)
        sum += codes[i];
    return sum;
}

/* Sums signed codes and their squares. I16 needs the squares alone, since nothing is shifted there. */
static code_sums sums_of(sl_codes kind, const void *codes, size_t dim) {
    const sl_kernels *kernels = sl_kernels_best();
    if (kind == SL_CODES_I8) return (code_sums){sum_i8(codes, dim), kernels->dot_i8(codes, codes, dim)};
    return (code_sums){0, kernels->dot_i16(codes, codes, dim)};
}

static float inverse_length(int64_t squares) {
    return squares > 0 ? (float)(1 / sqrt((double)squares)) : 0;
}

/* ---------------------------------------------------------------------------------------------------------------
 * Rows
 * ------------------------------------------------------------------------------------------------------------- */

/* Writes the fields of a row of integer codes. The row stands for codes times factor; bias and norm follow from sums
 * over the codes. */
static void put_integer_terms(const sl_codec *codec, uint8_t *row, float factor, code_sums sums, float length) {
    sl_field_put(row, codec->rows.factor, factor);
    double f = (double)factor;
    if (codec->metric == SL_METRIC_L2)
        sl_field_put(row, codec->rows.bias, -0.5 * f * f * (double)sums.squares);
    else if (codec->rows.bias)
        sl_field_put(row, codec->rows.bias, 128 * (double)sums.linear * f);
    if (codec->norm) sl_field_put(row, codec->norm, length);
}

/* Sums over the given vector; under L2, over a U8 vector minus 128. */
static code_sums native_sums(const sl_codec *codec, const void *vector) {
    if (codec->dtype != SL_U8) return sums_of(codec->codes, vector, codec->dim);
    const uint8_t *x = vector;
    int64_t linear = 0, squares = sl_kernels_best()->dot_u8(x, x, codec->dim), dim = (int64_t)codec->dim;
    for (size_t i = 0; i < codec->dim; i++)
        linear += x[i];
    if (is_shifted(codec)) return (code_sums){linear, squares};
    return (code_sums){linear - 128 * dim, squares - 256 * linear + 128 * 128 * dim};
}

static void encode_native(const sl_codec *codec, const void *vector, uint8_t *row) {
    if (codec->dtype == SL_I8)
        flip_bytes(vector, row, codec->dim);
    else
        memcpy(row, vector, sl_codes_size(codec->dim, codec->codes));
    code_sums sums = native_sums(codec, vector);
    float length = (float)sqrt((double)sums.squares);
    float factor = codec->metric == SL_METRIC_COSINE ? inverse_length(sums.squares) : 1;
    put_integer_terms(codec, row, factor, sums, length);
}

static void encode_floats(const sl_codec *codec, const float *x, uint8_t *row) {
    double norm2 = sl_dot_double(x, x, codec->dim), length = sqrt(norm2);
    memcpy(row, x, sl_codes_size(codec->dim, codec->codes));
    sl_field_put(row, codec->rows.factor, codec->metric == SL_METRIC_COSINE ? (float)(1 / length) : 1);
    if (codec->rows.bias) sl_field_put(row, codec->rows.bias, -0.5 * norm2);
    if (codec->norm) sl_field_put(row, codec->norm, length);
}

static void encode_quantised(const sl_codec *codec, const float *x, uint8_t *row) {
    float unit = sl_quantise(codec->codes, codec->clip, x, codec->dim, row);
    code_sums sums = sums_of(codec->codes, row, codec->dim);
    if (codec->codes == SL_CODES_I8) flip_bytes(row, row, codec->dim);
    if (codec->metric != SL_METRIC_COSINE) {
        put_integer_terms(codec, row, unit, sums, 0);
        return;
    }
    double length = sqrt(sl_dot_double(x, x, codec->dim));
    put_integer_terms(codec, row, inverse_length(sums.squares), sums, (float)length);
}

/* Returns the value of one unit of a row's codes in the given vector. */
static double unit_of(const sl_codec *codec, const uint8_t *row) {
    if (codec->codes == SL_CODES_F32 || codec->dtype != SL_F32) return 1;
    double factor = (double)sl_field_get(row, codec->rows.factor);
    return codec->norm ? factor * (double)sl_field_get(row, codec->norm) : factor;
}

static double code_at(const sl_codec *codec, const uint8_t *row, size_t i) {
    if (codec->codes == SL_CODES_I8) return codec->dtype == SL_U8 ? row[i] : row[i] - 128;
    if (codec->codes == SL_CODES_F32) return (double)sl_field_get(row, 4 * i);
    int16_t code;
    memcpy(&code, row + 2 * i, sizeof code);
    return code;
}

static void measure_error(const sl_codec *codec, const float *x, const uint8_t *row, sl_quant_error *error) {
    double unit = unit_of(codec, row), off2 = 0, norm2 = 0;
    for (size_t i = 0; i < codec->dim; i++) {
        double value = (double)x[i], off = value - unit * code_at(codec, row, i);
        off2 += off * off;
        norm2 += value * value;
    }
    double relative = norm2 > 0 ? sqrt(off2 / norm2) : 0;
    sl_quant_error one = sl_quant_error_of(relative);
    sl_quant_error_merge(error, &one);
}

void sl_encode_row(const sl_codec *codec, const void *vector, sl_dtype dtype, uint8_t *row, float *floats,
                   sl_quant_error *error) {
    memset(row, 0, codec->rows.size);
    if (codec->dtype != SL_F32) {
        encode_native(codec, vector, row);
        return;
    }
    sl_to_float(dtype, vector, floats, codec->dim);
    if (codec->codes == SL_CODES_F32)
        encode_floats(codec, floats, row);
    else
        encode_quantised(codec, floats, row);
    if (error) measure_error(codec, floats, row, error);
}

void sl_decode_row(const sl_codec *codec, const uint8_t *row, float *out) {
    double unit = unit_of(codec, row);
    for (size_t i = 0; i < codec->dim; i++)
        out[i] = (float)(unit * code_at(codec, row, i));
}

/* Decodes the codes of `count` elements from `first` on, in single precision. Encoding takes the residual from the same
 * numbers that decoding adds it to. */
static void decode_codes(const sl_codec *codec, const uint8_t *row, size_t first, size_t count, float *out) {
    float unit = (float)unit_of(codec, row);
    if (codec->codes == SL_CODES_I8) {
        for (size_t i = 0; i < count; i++)
            out[i] = (float)((int)row[first + i] - 128) * unit;
        return;
    }
    const int16_t *codes = (const void *)row;
    for (size_t i = 0; i < count; i++)
        out[i] = (float)codes[first + i] * unit;
}

void sl_encode_residual(const sl_codec *codec, const uint8_t *row, const float *x, uint16_t *residual) {
    float left[256];
    for (size_t done = 0, count; done < codec->dim; done += count) {
        count = codec->dim - done < 256 ? codec->dim - done : 256;
        decode_codes(codec, row, done, count, left);
        for (size_t i = 0; i < count; i++)
            left[i] = x[done + i] - left[i];
        sl_from_float(SL_BF16, left, residual + done, count);
    }
}

void sl_decode_residual(const sl_codec *codec, const uint8_t *row, const uint16_t *residual, float *out) {
    decode_codes(codec, row, 0, codec->dim, out);
    for (size_t i = 0; i < codec->dim; i++) {
        uint32_t bits = (uint32_t)residual[i] << 16;
        float left;
        memcpy(&left, &bits, sizeof left);
        out[i] += left;
    }
}

void sl_decode_native(const sl_codec *codec, const uint8_t *row, void *out) {
    if (codec->dtype == SL_I8)
        flip_bytes(row, out, codec->dim);
    else
        memcpy(out, row, sl_codes_size(codec->dim, codec->codes));
}

/* ---------------------------------------------------------------------------------------------------------------
 * Queries
 * ------------------------------------------------------------------------------------------------------------- */

/* Makes a query of signed integer codes, which stay in place. One unit of the codes stands for `scale`. */
static sl_query_code integer_query(const sl_codec *codec, const void *code, code_sums sums, float scale) {
    int takes_offset = codec->codes == SL_CODES_I8 && !is_shifted(codec);
    return (sl_query_code){
        .code = code,
        .offset = takes_offset ? 128 * sums.linear : 0,
        .scale = scale,
        .bias_scale = codec->metric == SL_METRIC_COSINE ? scale : 1,
    };
}

static void encode_native_query(const sl_codec *codec, const void *query, void *buffer, sl_query_code *out,
                                float *norm2) {
    if (codec->dtype == SL_U8)
        flip_bytes(query, buffer, codec->dim);
    else
        memcpy(buffer, query, sl_codes_size(codec->dim, codec->codes));
    int64_t squares = native_sums(codec, query).squares;
    float scale = codec->metric == SL_METRIC_COSINE ? inverse_length(squares) : 1;
    *out = integer_query(codec, buffer, sums_of(codec->codes, buffer, codec->dim), scale);
    *norm2 = (float)squares;
}

static void encode_quantised_query(const sl_codec *codec, const float *x, void *buffer, sl_query_code *out,
                                   float *norm2) {
    float unit = sl_quantise(codec->codes, codec->clip, x, codec->dim, buffer);
    code_sums sums = sums_of(codec->codes, buffer, codec->dim);
    float scale = codec->metric == SL_METRIC_COSINE ? inverse_length(sums.squares) : unit;
    *out = integer_query(codec, buffer, sums, scale);
    if (codec->metric == SL_METRIC_L2)
        *norm2 = (float)((double)scale * (double)scale * (double)sums.squares);
    else
        *norm2 = (float)sl_dot_double(x, x, codec->dim);
}

void sl_encode_query(const sl_codec *codec, const void *query, sl_dtype dtype, void *buffer, float *floats,
                     sl_query_code *out, float *norm2) {
    sl_to_float(dtype, query, floats, codec->dim);
    memset(buffer, 0, sl_query_size(codec));
    if (codec->dtype != SL_F32) {
        encode_native_query(codec, query, buffer, out, norm2);
    } else if (codec->codes != SL_CODES_F32) {
        encode_quantised_query(codec, floats, buffer, out, norm2);
    } else {
        double squares = sl_dot_double(floats, floats, codec->dim);
        memcpy(buffer, floats, sl_codes_size(codec->dim, codec->codes));
        float scale = codec->metric == SL_METRIC_COSINE ? (float)(1 / sqrt(squares)) : 1;
        *out = (sl_query_code){.code = buffer, .scale = scale, .bias_scale = 1};
        *norm2 = (float)squares;
    }
}

/* Returns the sum of squares of a stored row's signed codes: for I8, its bytes minus 128. */
static int64_t row_squares(const sl_codec *codec, const uint8_t *row) {
    const sl_kernels *kernels = sl_kernels_best();
    if (codec->codes == SL_CODES_I16) return kernels->dot_i16((const void *)row, (const void *)row, codec->dim);
    int64_t squares = kernels->dot_u8(row, row, codec->dim);
    if (codec->dtype == SL_U8) return squares;
    int64_t linear = 0;
    for (size_t i = 0; i < codec->dim; i++)
        linear += row[i];
    return squares - 256 * linear + 128 * 128 * (int64_t)codec->dim;
}

float sl_row_norm2(const sl_codec *codec, const uint8_t *row) {
    if (codec->metric == SL_METRIC_COSINE) return 1;
    if (codec->metric == SL_METRIC_L2 || codec->codes == SL_CODES_I4) return -2 * sl_field_get(row, codec->rows.bias);
    const float *floats = (const void *)row;
    if (codec->codes == SL_CODES_F32) return (float)sl_dot_double(floats, floats, codec->dim);
    double factor = (double)sl_field_get(row, codec->rows.factor);
    return (float)(factor * factor * (double)row_squares(codec, row));
}

void sl_row_as_query(const sl_codec *codec, const uint8_t *row, void *buffer, sl_query_code *out) {
    if (codec->codes == SL_CODES_I4) {
        sl_row4_as_query(codec, row, buffer, out);
        return;
    }
    size_t size = sl_codes_size(codec->dim, codec->codes);
    code_sums sums = {0, 0};
    if (codec->codes == SL_CODES_I8)
        sums.linear = sl_kernels_best()->sign_bytes(row, size, buffer);
    else
        memcpy(buffer, row, size);
    memset((uint8_t *)buffer + size, 0, sl_query_size(codec) - size);
    float scale = sl_field_get(row, codec->rows.factor);
    *out = integer_query(codec, buffer, sums, scale);
}
