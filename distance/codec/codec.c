/* Geometry of code rows. */
#include "distance/codec/codec.h"

#include "base/memory.h"

static sl_status check_types(sl_dtype dtype, sl_codes codes) {
    if (!sl_dtype_size(dtype)) return sl_fail(SL_ETYPE, "element type %d is none of sl_dtype", (int)dtype);
    if ((unsigned)codes > SL_CODES_I4) return sl_fail(SL_EINVAL, "codes %d are none of sl_codes", (int)codes);
    sl_codes own = dtype == SL_I16 ? SL_CODES_I16 : SL_CODES_I8;
    if (!sl_dtype_is_float(dtype) && codes != own)
        return sl_fail(SL_EINVAL, "%s vectors are kept as they are, in codes %s, not %s; ask for codes %s",
                       sl_dtype_name(dtype), sl_codes_name(own), sl_codes_name(codes), sl_codes_name(own));
    return SL_OK;
}

/* Rows that begin on a cache line are read from fewer lines. That is worth up to a quarter more bytes. */
static size_t pitch_of(size_t payload) {
    size_t lines = sl_round_up(payload, SL_CACHE_LINE);
    return lines - payload <= payload / 4 ? lines : sl_round_up(payload, 16);
}

size_t sl_codes_size(size_t dim, sl_codes codes) {
    if (codes == SL_CODES_I4) return (dim + 1) / 2;
    return codes == SL_CODES_I8 ? dim : codes == SL_CODES_I16 ? 2 * dim : 4 * dim;
}

/* The rest rows are read seldom, so they are packed. */
static void init_rest(sl_codec *codec) {
    codec->rest.width = sl_round_up(codec->dim, SL_ROW_STEP);
    codec->rest.factor = sl_round_up(codec->dim, 4);
    codec->rest.pitch = codec->rest.factor + 4;
    if (codec->metric != SL_METRIC_COSINE) return;
    codec->norm = codec->rest.pitch;
    codec->rest.pitch += 4;
}

size_t sl_codec_payload(const sl_codec *codec) {
    const sl_code_rows *rows = &codec->rows;
    size_t last = rows->bias ? rows->bias : rows->factor;
    if (codec->norm && !codec->rest.pitch) last = codec->norm;
    /* All bytes within an F32 row's width must be finite, so they belong to the row. */
    return codec->codes == SL_CODES_F32 && last + 4 < rows->width ? rows->width : last + 4;
}

sl_status sl_codec_init(sl_codec *codec, size_t dim, sl_metric metric, sl_dtype dtype, sl_codes codes) {
    if (dim == 0) return sl_fail(SL_EINVAL, "dim is 0; it must be 1 to %u", SL_MAX_DIM);
    if (dim > SL_MAX_DIM) return sl_fail(SL_ELIMIT, "dim is %zu; it must be 1 to %u", dim, SL_MAX_DIM);
    if ((unsigned)metric > SL_METRIC_L2) return sl_fail(SL_EINVAL, "metric %d is none of sl_metric", (int)metric);
    SL_TRY(check_types(dtype, codes));

    *codec =
        (sl_codec){.dim = dim, .metric = metric, .dtype = sl_dtype_is_float(dtype) ? SL_F32 : dtype, .codes = codes};
    size_t size = sl_codes_size(dim, codes);
    codec->rows.width = sl_round_up(size, SL_ROW_STEP);
    codec->rows.factor = sl_round_up(size, 4);
    size_t payload = codec->rows.factor + 4;
    /* Under IP, comparing I4 rows with one another takes their lengths too. */
    if (metric == SL_METRIC_L2 || dtype == SL_U8 || (codes == SL_CODES_I4 && metric == SL_METRIC_IP)) {
        codec->rows.bias = payload;
        payload += 4;
    }
    if (codes == SL_CODES_I4) {
        init_rest(codec);
    } else if (metric == SL_METRIC_COSINE) {
        codec->norm = payload;
        payload += 4;
    }
    /* Products of large numbers round away differences that floats and 16-bit integers hold. Codes with a scale for
     * each vector can't be subtracted; bytes and their sums are small. */
    if (metric == SL_METRIC_L2 && (codes == SL_CODES_F32 || dtype == SL_I16)) codec->rows.differences = dim;
    codec->rows.pitch = pitch_of(sl_codec_payload(codec));
    codec->rows.size = codec->rows.pitch;
    codec->rest.size = codec->rest.pitch;
    return SL_OK;
}

sl_status sl_codec_clip(sl_codec *codec, sl_clip clip, double share) {
    if ((unsigned)clip > SL_CLIP_QUANTILE) return sl_fail(SL_EINVAL, "clip %d is none of sl_clip", (int)clip);
    if (clip == SL_CLIP_QUANTILE && !(share >= 0 && share <= 0.5))
        return sl_fail(SL_EINVAL, "the share of a clip by quantile is %g; give 0 to 0.5", share);
    if (clip != SL_CLIP_AUTO && (codec->dtype != SL_F32 || codec->codes == SL_CODES_F32))
        return sl_fail(SL_EINVAL, "codes %s of %s vectors are not quantised, so that nothing is clipped; use clip auto",
                       sl_codes_name(codec->codes), sl_dtype_name(codec->dtype));
    if (clip == (codec->codes == SL_CODES_I4 ? SL_CLIP_MSE : SL_CLIP_MINMAX)) clip = SL_CLIP_AUTO;
    codec->clip = (sl_clip_rule){.clip = clip, .share = clip == SL_CLIP_QUANTILE ? share : 0};
    return SL_OK;
}

size_t sl_codec_rows_size(const sl_codec *codec, size_t n) {
    size_t size;
    return sl_mul(n, codec->rows.pitch, &size) && sl_add(size, SL_ROW_STEP, &size) ? size : 0;
}

size_t sl_query4_size(const sl_codec *codec) {
    return 2 * (codec->codes == SL_CODES_I4 ? 2 * codec->rows.width + codec->rest.width : codec->rows.width);
}

size_t sl_query_size(const sl_codec *codec) {
    return codec->codes == SL_CODES_I4 ? sl_query4_size(codec) : codec->rows.width;
}
