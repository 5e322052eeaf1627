#include "hnsw/search/within.h"

#include <math.h>
#include <string.h>

enum { LEAST_ROOM = 4096 };

static size_t bytes_of(size_t room) {
    return room * (sizeof(uint32_t) + sizeof(float));
}

void sl_within_free(sl_within *within, const sl_allocator *allocator) {
    sl_mem_free(allocator, within->ids, bytes_of(within->room));
    *within = (sl_within){0};
}

void sl_within_start(sl_within *within) {
    within->count = within->expanded = 0;
    within->floor = -INFINITY;
    within->status = SL_OK;
}

static sl_status grow(sl_within *within, const sl_allocator *allocator, size_t room) {
    void *block;
    SL_TRY(sl_mem_alloc(allocator, bytes_of(room), &block));
    uint32_t *ids = block;
    float *scores = (float *)(void *)(ids + room);
    if (within->count) {
        memcpy(ids, within->ids, within->count * sizeof *ids);
        memcpy(scores, within->scores, within->count * sizeof *scores);
    }
    sl_mem_free(allocator, within->ids, bytes_of(within->room));
    within->ids = ids;
    within->scores = scores;
    within->room = room;
    return SL_OK;
}

void sl_within_take(sl_within *within, const sl_allocator *allocator, const float *scores, const uint32_t *ids,
                    size_t n) {
    if (within->count + n > within->room) {
        size_t room = 2 * within->room > LEAST_ROOM ? 2 * within->room : LEAST_ROOM;
        if (within->status != SL_OK) return;
        within->status = grow(within, allocator, room > n ? room : room + n);
        if (within->status != SL_OK) return;
    }
    size_t count = within->count;
    for (size_t i = 0; i < n; i++) {
        within->ids[count] = ids[i];
        within->scores[count] = scores[i];
        count += scores[i] > within->floor;
    }
    within->count = count;
}

void sl_within_raise(sl_within *within, float floor) {
    size_t count = within->count;
    within->count = within->expanded = 0;
    within->floor = floor;
    for (size_t i = 0; i < count; i++) {
        within->ids[within->count] = within->ids[i];
        within->scores[within->count] = within->scores[i];
        within->count += within->scores[i] > floor;
    }
}
