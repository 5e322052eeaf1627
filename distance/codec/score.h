/* The score of two vectors. */
#ifndef SL_DISTANCE_CODEC_SCORE_H
#define SL_DISTANCE_CODEC_SCORE_H

#include "distance/kernels.h"

/* Returns the score of two raw vectors of one type, as exact as the type allows: sl_score without its checks. */
double sl_score_pair(const sl_kernels *kernels, sl_metric metric, sl_dtype dtype, const void *a, const void *b,
                     size_t dim);

#endif
