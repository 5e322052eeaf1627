/* INT8 codes of one output's weights, a column of a layer's matrix. */
#ifndef SL_RANKER_NET_COLUMN_SCALE_H
#define SL_RANKER_NET_COLUMN_SCALE_H

#include <stddef.h>
#include <stdint.h>

/* Returns the scale of a column of `in` weights, `stride` floats apart. A column of zeros has scale 1.
 * Parameters: by_error 0: the largest weight becomes code 127. 1: the scale has the least squared error, and clips
 * larger weights. */
float sl_column_scale(const float *weights, size_t in, size_t stride, int by_error);
/* Returns the code of a weight, -127 to 127. */
int8_t sl_weight_code(float weight, float scale);

#endif
