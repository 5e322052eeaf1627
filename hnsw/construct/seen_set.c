#include "hnsw/construct/seen_set.h"

#include "base/probe.h"
#include "hnsw/construct/neighbour_lists.h"

#include <string.h>

enum { LEAST_PLACES = 2 };

size_t sl_seen_bytes(size_t most) {
    return 2 * sl_probe_places(most, LEAST_PLACES) * sizeof(uint32_t);
}

sl_status sl_seen_init(sl_seen *seen, const sl_allocator *allocator, size_t most) {
    sl_status status = SL_OK;
    *seen = (sl_seen){.allocator = *allocator, .places = sl_probe_places(most, LEAST_PLACES), .shift = 32};
    for (size_t places = seen->places; places > 1; places /= 2)
        seen->shift--;
    seen->table = sl_mem_array(allocator, seen->places, sizeof *seen->table, &status);
    seen->used = sl_mem_array(allocator, seen->places, sizeof *seen->used, &status);
    if (status == SL_OK) memset(seen->table, 0xff, seen->places * sizeof *seen->table);
    return status;
}

void sl_seen_free(sl_seen *seen) {
    SL_FREE_ARRAY(&seen->allocator, seen->table, seen->places);
    SL_FREE_ARRAY(&seen->allocator, seen->used, seen->places);
}

void sl_seen_clear(sl_seen *seen) {
    for (size_t i = 0; i < seen->count; i++)
        seen->table[seen->used[i]] = SL_NONE;
    seen->count = 0;
}

int sl_seen_add(sl_seen *seen, uint32_t point) {
    SL_PROBE(at, (uint32_t)(point * SL_POINT_HASH) >> seen->shift, seen->places) {
        if (seen->table[at] == point) return 0;
        if (seen->table[at] != SL_NONE) continue;
        seen->table[at] = point;
        seen->used[seen->count++] = (uint32_t)at;
        return 1;
    }
}
