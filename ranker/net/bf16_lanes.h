/* Rounding floats to bf16, on their bits. A file of a tier includes this after distance/float_lanes.h. */
#ifndef SL_RANKER_NET_BF16_LANES_H
#define SL_RANKER_NET_BF16_LANES_H

#include "distance/float_lanes.h"

typedef uint32_t U __attribute__((vector_size(LANE_BITS / 8)));
typedef uint16_t H __attribute__((vector_size(LANE_BITS / 16)));

/* Adding just under half a unit of the last place that stays, and the bit of that place, rounds to nearest with ties to
 * even. A carry raises the exponent as it should. NaN stays NaN. The number's bits are the upper half of each lane. */
static AI U bf16_lanes(F x) {
    U bits = (U)x, rounded = bits + 0x7fffu + (bits >> 16 & 1), same = (U)(x == x);
    return (rounded & same) | ((bits | 0x400000u) & ~same);
}

#endif
