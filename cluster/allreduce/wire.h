/* Numbers as they travel: f32, or bf16 (the upper half of an f32, rounded to nearest, ties to even). */
#ifndef SL_CLUSTER_ALLREDUCE_WIRE_H
#define SL_CLUSTER_ALLREDUCE_WIRE_H

#include "cluster/allreduce/params.h"

#include <string.h>

static inline size_t sl_wire_size(sl_wire wire) {
    return wire == SL_WIRE_BF16 ? sizeof(uint16_t) : sizeof(float);
}

static inline uint16_t sl_wire_to_bf16(float number) {
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1)) >> 16, quiet = bits >> 16 | 0x40u;
    return (uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? quiet : rounded);
}

static inline float sl_wire_of_bf16(uint16_t half) {
    const uint32_t bits = (uint32_t)half << 16;
    float number;
    memcpy(&number, &bits, sizeof number);
    return number;
}

/* Writes `count` numbers in the wire's type. `to` has the alignment of a float. */
void sl_wire_pack(sl_wire wire, const float *numbers, size_t count, void *to);
/* Reads them back. */
void sl_wire_unpack(sl_wire wire, const void *from, size_t count, float *numbers);
/* Adds them to numbers[0..count). */
void sl_wire_add(sl_wire wire, const void *from, size_t count, float *numbers);
/* Rounds numbers in place to what the wire can carry. */
void sl_wire_round(sl_wire wire, float *numbers, size_t count);

#endif
