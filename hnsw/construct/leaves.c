#include "hnsw/construct/leaves.h"

#include <string.h>

size_t sl_leaves_targets_room(size_t targets) {
    return SL_PARTITIONINGS * targets * SL_LEAF_TARGETS;
}

sl_status sl_leaves_alloc(sl_leaves *leaves, size_t fan_out, size_t targets) {
    sl_status status = SL_OK;
    leaves->room = leaves->n * fan_out * SL_PARTITIONINGS;
    leaves->most = 2;
    leaves->starts = sl_mem_array(&leaves->allocator, leaves->most, sizeof *leaves->starts, &status);
    leaves->points = sl_mem_array(&leaves->allocator, leaves->room, sizeof *leaves->points, &status);
    if (!targets) return status;
    leaves->targets_room = sl_leaves_targets_room(targets);
    leaves->targets = sl_mem_array(&leaves->allocator, leaves->targets_room, sizeof *leaves->targets, &status);
    return status;
}

void sl_leaves_free(sl_leaves *leaves) {
    SL_FREE_ARRAY(&leaves->allocator, leaves->starts, leaves->most);
    SL_FREE_ARRAY(&leaves->allocator, leaves->points, leaves->room);
    SL_FREE_ARRAY(&leaves->allocator, leaves->targets, leaves->targets_room);
    *leaves = (sl_leaves){0};
}

sl_status sl_leaves_append(sl_leaves *leaves, const uint32_t *which, size_t size) {
    sl_status status = SL_OK;
    leaves->starts = sl_mem_grow(&leaves->allocator, leaves->starts, &leaves->most, leaves->count + 2,
                                 sizeof *leaves->starts, &status);
    SL_TRY(status);
    memmove(leaves->points + leaves->places, which, size * sizeof *which);
    leaves->places += size;
    leaves->starts[++leaves->count] = leaves->places;
    return SL_OK;
}
