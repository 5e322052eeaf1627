#include "hnsw/search/range_hits.h"

#include <math.h>
#include <string.h>

enum { LEAST_ROOM = 4096 };

static size_t hits_bytes(size_t room) {
    return room * (sizeof(uint32_t) + sizeof(float));
}

void sl_range_hits_free(sl_range_hits *hits, const sl_allocator *allocator) {
    sl_mem_free(allocator, hits->ids, hits_bytes(hits->room));
    *hits = (sl_range_hits){0};
}

void sl_range_hits_start(sl_range_hits *hits) {
    hits->count = hits->expanded = 0;
    hits->threshold = -INFINITY;
    hits->status = SL_OK;
}

static sl_status grow_hits(sl_range_hits *hits, const sl_allocator *allocator, size_t room) {
    void *block;
    SL_TRY(sl_mem_alloc(allocator, hits_bytes(room), &block));
    uint32_t *ids = block;
    float *scores = (float *)(void *)(ids + room);
    if (hits->count) {
        memcpy(ids, hits->ids, hits->count * sizeof *ids);
        memcpy(scores, hits->scores, hits->count * sizeof *scores);
    }
    sl_mem_free(allocator, hits->ids, hits_bytes(hits->room));
    hits->ids = ids;
    hits->scores = scores;
    hits->room = room;
    return SL_OK;
}

void sl_range_hits_add(sl_range_hits *hits, const sl_allocator *allocator, const float *scores, const uint32_t *ids,
                       size_t n) {
    if (hits->count + n > hits->room) {
        size_t room = 2 * hits->room > LEAST_ROOM ? 2 * hits->room : LEAST_ROOM;
        if (hits->status != SL_OK) return;
        hits->status = grow_hits(hits, allocator, room > n ? room : room + n);
        if (hits->status != SL_OK) return;
    }
    size_t count = hits->count;
    for (size_t i = 0; i < n; i++) {
        hits->ids[count] = ids[i];
        hits->scores[count] = scores[i];
        count += scores[i] > hits->threshold;
    }
    hits->count = count;
}

void sl_range_hits_raise_threshold(sl_range_hits *hits, float threshold) {
    size_t count = hits->count;
    hits->count = hits->expanded = 0;
    hits->threshold = threshold;
    for (size_t i = 0; i < count; i++) {
        hits->ids[hits->count] = hits->ids[i];
        hits->scores[hits->count] = hits->scores[i];
        hits->count += hits->scores[i] > threshold;
    }
}
