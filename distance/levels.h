/* The sixteen levels of 4-bit codes: number k of 0 to 15 stands for 2k - 15 half steps. */
#ifndef SL_DISTANCE_LEVELS_H
#define SL_DISTANCE_LEVELS_H

#include "base/inline.h"

#include <stdint.h>
#include <string.h>

enum { SL_LEVELS = 16 };

/* Returns the number of the level nearest to value / step. `inverse` is 1 / step.
 *
 * The lower bits of 0x1.8p23 plus a small number hold the integer nearest to that number. Positive floats order as
 * their bits do, so the range is clamped in integers. Compilers vectorise both. */
static AI uint32_t sl_level_number(float value, float inverse) {
    const int32_t zero = 0x4b400000; /* the bits of 0x1.8p23f */
    const int32_t least = zero - SL_LEVELS / 2, most = zero + SL_LEVELS / 2 - 1;
    float shifted = (value * inverse - (0.5f - 0x1p-20f)) + 0x1.8p23f; /* the floor, not the nearest */
    int32_t bits;
    memcpy(&bits, &shifted, sizeof bits);
    bits = bits < least ? least : bits;
    bits = bits > most ? most : bits;
    return (uint32_t)(bits - least);
}

static AI float sl_level_at(uint32_t number) {
    return (float)(2 * (int32_t)number - (SL_LEVELS - 1));
}

#endif
