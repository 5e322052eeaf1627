#include "hnsw/build/leaves.h"

#include <string.h>

size_t sl_leaves_asked_room(size_t asked) {
    return SL_PARTITIONINGS * asked * SL_LEAF_ASKED;
}

sl_status sl_leaves_alloc(sl_leaves *leaves, size_t folds, size_t asked) {
    sl_status status = SL_OK;
    leaves->room = leaves->n * folds * SL_PARTITIONINGS;
    leaves->most = 2;
    leaves->starts = sl_mem_array(&leaves->allocator, leaves->most, sizeof *leaves->starts, &status);
    leaves->rows = sl_mem_array(&leaves->allocator, leaves->room, sizeof *leaves->rows, &status);
    if (!asked) return status;
    leaves->asked_room = sl_leaves_asked_room(asked);
    leaves->asked = sl_mem_array(&leaves->allocator, leaves->asked_room, sizeof *leaves->asked, &status);
    return status;
}

void sl_leaves_free(sl_leaves *leaves) {
    sl_mem_free(&leaves->allocator, leaves->starts, leaves->most * sizeof *leaves->starts);
    sl_mem_free(&leaves->allocator, leaves->rows, leaves->room * sizeof *leaves->rows);
    sl_mem_free(&leaves->allocator, leaves->asked, leaves->asked_room * sizeof *leaves->asked);
    *leaves = (sl_leaves){0};
}

sl_status sl_leaves_append(sl_leaves *leaves, const uint32_t *which, size_t size) {
    void *starts = leaves->starts;
    sl_status status = sl_mem_grow(&leaves->allocator, &starts, &leaves->most, leaves->count + 2, sizeof(uint64_t));
    leaves->starts = starts;
    SL_TRY(status);
    memmove(leaves->rows + leaves->places, which, size * sizeof *which);
    leaves->places += size;
    leaves->starts[++leaves->count] = leaves->places;
    return SL_OK;
}
