#include "cluster/allreduce/wire.h"

void sl_wire_pack(sl_wire wire, const float *numbers, size_t count, void *to) {
    uint16_t *halves = to;
    if (wire == SL_WIRE_F32) {
        memcpy(to, numbers, count * sizeof *numbers);
        return;
    }
    for (size_t i = 0; i < count; i++)
        halves[i] = sl_wire_to_bf16(numbers[i]);
}

void sl_wire_unpack(sl_wire wire, const void *from, size_t count, float *numbers) {
    const uint16_t *halves = from;
    if (wire == SL_WIRE_F32) {
        memcpy(numbers, from, count * sizeof *numbers);
        return;
    }
    for (size_t i = 0; i < count; i++)
        numbers[i] = sl_wire_of_bf16(halves[i]);
}

void sl_wire_add(sl_wire wire, const void *from, size_t count, float *restrict numbers) {
    const uint16_t *restrict halves = from;
    const float *restrict floats = from;
    if (wire == SL_WIRE_F32) {
        for (size_t i = 0; i < count; i++)
            numbers[i] += floats[i];
        return;
    }
    for (size_t i = 0; i < count; i++)
        numbers[i] += sl_wire_of_bf16(halves[i]);
}

void sl_wire_round(sl_wire wire, float *numbers, size_t count) {
    if (wire == SL_WIRE_F32) return;
    for (size_t i = 0; i < count; i++)
        numbers[i] = sl_wire_of_bf16(sl_wire_to_bf16(numbers[i]));
}
