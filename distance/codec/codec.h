/*
 * A codec: the contents of a row of layer 0, for each combination of codes, element type and metric.
 *
 * A row holds, in this order: codes, padding to a multiple of 4, factor, bias if the metric needs one, norm under
 * COSINE.
 *
 *   metric   factor (quantised / native integer / f32)   bias           a score is
 *   IP       scale of the row / 1 / 1                    none (*)       x.q
 *   COSINE   such that the decoded row has length 1      none (*)       x.q / (|x| |q|), the query made unit
 *   L2       scale of the row / 1 / 1                    -|x|^2 / 2     x.q - |x|^2 / 2, so |x-q|^2 = |q|^2 - 2 score
 *            F32, and I16 vectors                        the same       -|x-q|^2 / 2, by differences
 *
 * (*) A U8 vector is stored as it is, and the query as q - 128. IP and COSINE rows of U8 therefore carry the bias
 *     128 * (sum of the row) * factor. Under COSINE this bias counts times the query's scale (bias_scale). Under L2 the
 *     shift by 128 cancels, and the row's |x|^2 is that of x - 128.
 *
 * F32, F16 and BF16 vectors are quantised with one scale a vector: max|x| / 127, with codes from -127 to 127, or
 * max|x| / 32767, with codes from -32767 to 32767. A clip replaces max|x| by a smaller range. Under L2, |x|^2
 * is that of the decoded row, so that a row is at distance 0 from itself. An F32 row holds at least its width. Factor,
 * bias and norm may lie within that width, because they are finite.
 */
#ifndef SL_DISTANCE_CODEC_CODEC_H
#define SL_DISTANCE_CODEC_CODEC_H

#include "distance/codec/convert.h"
#include "distance/codec/quantise.h"

#include <math.h>
#include <string.h>

typedef struct sl_codec {
    size_t dim;
    sl_metric metric;
    sl_dtype dtype; /* I8, U8, I16: native, exact; F32 stands for all floating-point types */
    sl_codes codes;
    sl_clip_rule clip; /* of floats that are quantised */
    sl_code_rows rows; /* geometry; the owner sets the base */
    sl_code_rows rest; /* I4: geometry of the rest rows, which hold 8 more bits an element; other codes: pitch 0 */
    size_t norm;       /* COSINE: byte offset of the length of x, in the rest's row if there is one; otherwise 0 */
} sl_codec;

/*
 * Fills the geometry.
 *
 * The pitch is the payload rounded up to 64 if that adds at most a quarter, and to 16 otherwise. F32 rows always
 * hold their whole width.
 *
 * Errors: SL_EINVAL, SL_ETYPE, SL_ELIMIT, SL_EUNSUPPORTED. The message says what to do instead.
 */
sl_status sl_codec_init(sl_codec *codec, size_t dim, sl_metric metric, sl_dtype dtype, sl_codes codes);

/* Sets how the codec clips. sl_codec_init leaves the rule of the codes. A clip that is this rule becomes AUTO.
 * Errors: SL_EINVAL (no sl_clip, a bad share, or codes that are not quantised). */
sl_status sl_codec_clip(sl_codec *codec, sl_clip clip, double share);

/* Returns the bytes of a row of `rows` that hold something or must be finite. The others are padding. */
size_t sl_codec_payload(const sl_codec *codec);

/* Returns the bytes of the codes at the beginning of a row. */
size_t sl_codes_size(size_t dim, sl_codes codes);

/* Returns the bytes of an array of n rows with the readable step behind it, or 0 if size_t cannot hold them. */
size_t sl_codec_rows_size(const sl_codec *codec, size_t n);

/* Returns the bytes of a query over the codec's rows. A query over I4 rows has two parts of 8 bits. */
size_t sl_query_size(const sl_codec *codec);

/* Returns the bytes of a query in two parts of 8 bits (encode4.h). */
size_t sl_query4_size(const sl_codec *codec);

/* Fields of a row, which may lie at any address. */
static inline float sl_field_get(const uint8_t *row, size_t offset) {
    float value;
    memcpy(&value, row + offset, sizeof value);
    return value;
}
static inline int sl_field_is_finite(const uint8_t *row, size_t offset) {
    return isfinite(sl_field_get(row, offset)) != 0;
}
static inline void sl_field_put(uint8_t *row, size_t offset, double value) {
    float single = (float)value;
    memcpy(row + offset, &single, sizeof single);
}

/* Returns the score of distance 0 under L2, for a query of squared length norm2. A distance is twice the gap between
 * this score and a row's. */
static inline float sl_codec_nearest(const sl_codec *codec, float norm2) {
    return codec->rows.differences ? 0 : norm2 / 2;
}

#endif
