/* Checks vectors before they become rows or queries. */
#ifndef SL_DISTANCE_CODEC_VECTOR_CHECK_H
#define SL_DISTANCE_CODEC_VECTOR_CHECK_H

#include "distance/codec/codec.h"

/* Checks that the codec takes vectors of this type. Errors: SL_ETYPE. */
sl_status sl_codec_accepts(const sl_codec *codec, sl_dtype dtype);

/*
 * Checks one vector of dim elements.
 *
 * Errors: SL_EVALUE for a vector
 *   - that holds NaN or infinity,
 *   - longer than 9e18: single precision could not hold its square with room to spare,
 *   - shorter than 1e-18, whose square gets lost among the subnormals, unless it is zero,
 *   - that is zero, under COSINE only.
 */
sl_status sl_vector_check(sl_metric metric, sl_dtype dtype, const void *vector, size_t dim);

#endif
