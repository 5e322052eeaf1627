#include "hnsw/build/met.h"

#include "hnsw/build/near.h"

#include <string.h>

static size_t met_places(size_t most) {
    size_t places = 2;
    while (places < 2 * most)
        places *= 2;
    return places;
}

size_t sl_met_bytes(size_t most) {
    return 2 * met_places(most) * sizeof(uint32_t);
}

sl_status sl_met_init(sl_met *met, const sl_allocator *allocator, size_t most) {
    sl_status status = SL_OK;
    *met = (sl_met){.allocator = *allocator, .places = met_places(most), .shift = 32};
    for (size_t places = met->places; places > 1; places /= 2)
        met->shift--;
    met->table = sl_mem_array(allocator, met->places, sizeof *met->table, &status);
    met->used = sl_mem_array(allocator, met->places, sizeof *met->used, &status);
    if (status == SL_OK) memset(met->table, 0xff, met->places * sizeof *met->table);
    return status;
}

void sl_met_free(sl_met *met) {
    sl_mem_free(&met->allocator, met->table, met->places * sizeof *met->table);
    sl_mem_free(&met->allocator, met->used, met->places * sizeof *met->used);
}

void sl_met_clear(sl_met *met) {
    for (size_t i = 0; i < met->count; i++)
        met->table[met->used[i]] = SL_NONE;
    met->count = 0;
}

int sl_met_add(sl_met *met, uint32_t member) {
    size_t at = (uint32_t)(member * SL_NEAR_ODD) >> met->shift;
    for (; met->table[at] != SL_NONE; at = (at + 1) & (met->places - 1))
        if (met->table[at] == member) return 0;
    met->table[at] = member;
    met->used[met->count++] = (uint32_t)at;
    return 1;
}
