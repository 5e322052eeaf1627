/*
 * Codes of 4 bits, and the 8 bits beside them.
 *
 * A number k of 0 to 15 stands for (2k - 15) * factor: sixteen levels, symmetric, none of them zero. So a row needs one
 * factor, and the query one constant.
 *
 * Encoding tries some steps. A finer step cuts a little off the range of the largest elements. Encoding takes the step
 * whose decoded row is nearest to the vector's direction, and then the factor that brings the row nearest. That is the
 * least squared error of these steps: the clip MSE.
 *
 * The rest is an I8 row of its own. Its unit is about a thousandth of the vector's largest magnitude. Both rows
 * together hold some 12 bits an element.
 */
#include "distance/codec/encode4.h"

#include "distance/double.h"
#include "distance/levels.h"

enum { LEVELS = SL_LEVELS, TRIALS = 10, BLOCK = 256 };

static size_t half_of(const sl_codec *codec) {
    return (codec->dim + 1) / 2;
}

/* Returns the inverse of the step whose levels are nearest to the direction of x. *factor gets the factor of these
 * levels. */
static float best_step(const float *x, size_t n, float *factor) {
    float most = sl_largest(x, n), best = 0;
    double best_turn = -1;
    *factor = 0;
    if (!(most > 0)) return 0;
    for (int trial = 0; trial < TRIALS; trial++) {
        /* The range goes down from all of the largest magnitude to about half of it. */
        float inverse = (float)(LEVELS / 2) / (most * (1 - 0.05f * (float)trial));
        double xy, yy;
        if (!isfinite(inverse)) break;
        sl_kernels_best()->level_sums(x, n, inverse, &xy, &yy);
        if (xy <= 0 || xy * xy <= best_turn * yy) continue;
        best_turn = xy * xy / yy;
        best = inverse;
        *factor = (float)(xy / yy);
    }
    return best;
}

/* Returns the inverse of the step that a clip other than MSE names. *factor gets the factor of its levels. */
static float named_step(sl_clip_rule rule, const float *x, size_t n, float *factor) {
    float most = rule.clip == SL_CLIP_QUANTILE ? sl_quantile(x, n, rule.share) : sl_largest(x, n);
    float inverse = (float)(LEVELS / 2) / most;
    double xy, yy;
    *factor = 0;
    if (!(most > 0) || !isfinite(inverse)) return 0;
    sl_kernels_best()->level_sums(x, n, inverse, &xy, &yy);
    *factor = (float)(xy / yy);
    return inverse;
}

static void write_levels(const sl_codec *codec, const float *x, float inverse, uint8_t *row) {
    const size_t half = half_of(codec);
    for (size_t i = 0; i < half; i++)
        row[i] = (uint8_t)sl_level_number(x[i], inverse);
    for (size_t i = half; i < codec->dim; i++)
        row[i - half] = (uint8_t)(row[i - half] | sl_level_number(x[i], inverse) << 4);
}

static float element_at(const sl_codec *codec, const uint8_t *row, size_t i) {
    const size_t half = half_of(codec);
    return sl_level_at(i < half ? row[i] & 15 : row[i - half] >> 4);
}

/* Decodes a row of levels. */
static void decode_levels(const sl_codec *codec, const uint8_t *row, float factor, float *out) {
    const size_t half = half_of(codec), rest = codec->dim - half;
    for (size_t i = 0; i < half; i++)
        out[i] = sl_level_at(row[i] & 15) * factor;
    for (size_t i = 0; i < rest; i++)
        out[half + i] = sl_level_at(row[i] >> 4) * factor;
}

/* Decodes both rows, without the separate length. */
static void decode_unit(const sl_codec *codec, const uint8_t *row, const uint8_t *rest, float *out) {
    const float finer = sl_field_get(rest, codec->rest.factor);
    decode_levels(codec, row, sl_field_get(row, codec->rows.factor), out);
    for (size_t i = 0; i < codec->dim; i++)
        out[i] += (float)((int)rest[i] - 128) * finer;
}

float sl_encode_levels(const sl_codec *codec, const float *x, uint8_t *row) {
    float factor, inverse;
    if (codec->clip.clip == SL_CLIP_MINMAX || codec->clip.clip == SL_CLIP_QUANTILE)
        inverse = named_step(codec->clip, x, codec->dim, &factor);
    else
        inverse = best_step(x, codec->dim, &factor);
    memset(row, 0, codec->rows.size);
    write_levels(codec, x, inverse, row);
    sl_field_put(row, codec->rows.factor, (double)factor);
    return factor;
}

void sl_encode_row4(const sl_codec *codec, float *x, uint8_t *row, uint8_t *rest, sl_quant_error *error) {
    size_t dim = codec->dim;
    double length = sqrt(sl_dot_double(x, x, dim));
    memset(rest, 0, codec->rest.size);
    for (size_t i = 0; i < dim && codec->norm; i++)
        x[i] = (float)((double)x[i] / length);
    float factor = sl_encode_levels(codec, x, row), most = 0;
    for (size_t i = 0; i < dim; i++) {
        float left = fabsf(x[i] - element_at(codec, row, i) * factor);
        most = left > most ? left : most;
    }
    float unit = most / 127, scale = unit > 0 ? 1 / unit : 0;
    if (!isfinite(scale)) unit = scale = 0;
    for (size_t i = 0; i < dim; i++) {
        float left = (x[i] - element_at(codec, row, i) * factor) * scale;
        rest[i] = (uint8_t)((int)lrintf(left < -127 ? -127 : left > 127 ? 127 : left) + 128);
    }
    sl_field_put(rest, codec->rest.factor, (double)unit);
    if (codec->norm) sl_field_put(rest, codec->norm, length);

    double off2 = 0, norm2 = 0;
    for (size_t i = 0; i < dim; i++) {
        double value = (double)(element_at(codec, row, i) * factor + (float)((int)rest[i] - 128) * unit);
        norm2 += value * value;
        off2 += ((double)x[i] - value) * ((double)x[i] - value);
    }
    if (codec->rows.bias) sl_field_put(row, codec->rows.bias, -0.5 * norm2);
    if (!error) return;
    double whole = codec->norm ? 1 : length * length, relative = whole > 0 ? sqrt(off2 / whole) : 0;
    const sl_quant_error one = sl_quant_error_of(relative);
    sl_quant_error_merge(error, &one);
}

void sl_decode_row4(const sl_codec *codec, const uint8_t *row, const uint8_t *rest, float *out) {
    decode_unit(codec, row, rest, out);
    if (!codec->norm) return;
    float length = sl_field_get(rest, codec->norm);
    for (size_t i = 0; i < codec->dim; i++)
        out[i] *= length;
}

/* Makes two queries of the same eight bits: `rows` for the 4-bit rows, in two halves at the start of `buffer`, and
 * `rest` behind them. */
static void split_query(const sl_codec *codec, float *x, float scale, uint8_t *buffer, sl_query_code *rows,
                        sl_query_code *rest) {
    size_t half = half_of(codec);
    uint8_t *high = buffer + codec->rows.width, *whole = high + codec->rows.width;
    sl_split_byte(x, codec->dim, scale, (int8_t *)whole, rest);
    memcpy(buffer, whole, half);
    memcpy(high, whole + half, codec->dim - half);
    *rows = *rest;
    rows->code = buffer;
    rows->offset = (LEVELS - 1) * (rest->offset / 128);
}

void sl_encode_query4(const sl_codec *codec, const float *x, void *buffer, float *scratch, sl_query4 *out,
                      double norm2) {
    float scale = codec->norm && norm2 > 0 ? (float)(1 / sqrt(norm2)) : 1;
    memset(buffer, 0, sl_query4_size(codec));
    memcpy(scratch, x, codec->dim * sizeof *x);
    for (size_t part = 0; part < 2; part++) {
        uint8_t *own = (uint8_t *)buffer + part * sl_query4_size(codec) / 2;
        if (codec->codes == SL_CODES_I4)
            split_query(codec, scratch, scale, own, &out->rows[part], &out->rest[part]);
        else
            sl_split_byte(scratch, codec->dim, scale, (int8_t *)own, &out->rest[part]);
    }
    sl_query_code *first = codec->codes == SL_CODES_I4 ? out->rows : out->rest;
    first->bias_scale = codec->metric == SL_METRIC_L2 ? 1 : 0;
}

void sl_encode_query_levels(const sl_codec *codec, float *x, void *buffer, sl_query_code *out) {
    sl_query_code whole;
    memset(buffer, 0, sl_query4_size(codec) / 2);
    split_query(codec, x, 1, buffer, out, &whole);
}

void sl_score4(const sl_kernels *kernels, const sl_codec *codec, const sl_query4 *query, const uint32_t *ids, size_t n,
               float *out) {
    const int both = codec->codes == SL_CODES_I4;
    const sl_code_rows *finer = both ? &codec->rest : &codec->rows;
    float part[BLOCK];
    memset(out, 0, n * sizeof *out);
    for (size_t done = 0, count; done < n; done += count) {
        count = n - done < BLOCK ? n - done : BLOCK;
        for (int i = both ? 0 : 2; i < 4; i++) {
            if (i < 2)
                kernels->score[SL_CODES_I4](&codec->rows, &query->rows[i], ids + done, count, 0, part);
            else
                kernels->score[SL_CODES_I8](finer, &query->rest[i - 2], ids + done, count, 0, part);
            for (size_t j = 0; j < count; j++)
                out[done + j] += part[j];
        }
    }
}

void sl_row4_as_query(const sl_codec *codec, const uint8_t *row, void *buffer, sl_query_code *out) {
    size_t width = codec->rows.width, half = half_of(codec);
    int8_t *low = buffer, *high = low + width;
    int64_t sum = 0;
    memset(buffer, 0, 2 * width);
    for (size_t i = 0; i < half; i++) {
        low[i] = (int8_t)(2 * (row[i] & 15) - (LEVELS - 1));
        high[i] = (int8_t)(2 * (row[i] >> 4) - (LEVELS - 1));
    }
    if (codec->dim % 2) high[half - 1] = 0;
    for (size_t i = 0; i < half; i++)
        sum += low[i] + high[i];
    *out = (sl_query_code){.code = low,
                           .offset = (LEVELS - 1) * sum,
                           .scale = sl_field_get(row, codec->rows.factor),
                           .bias_scale = codec->metric == SL_METRIC_L2 ? 1 : 0};
}
