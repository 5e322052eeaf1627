#include "ranker/net/row_sums.h"

#include <string.h>

sl_status sl_row_sums_create(size_t size, size_t width, size_t room, const sl_allocator *allocator, sl_row_sums *out) {
    void *block;
    *out = (sl_row_sums){.size = size, .width = width, .room = room};
    SL_TRY(sl_mem_alloc(allocator, size * sizeof *out->tags, &block));
    out->tags = block;
    SL_TRY(sl_mem_alloc(allocator, (room + 1) * sizeof *out->rows, &block));
    out->rows = block;
    SL_TRY(sl_mem_alloc(allocator, room * width * sizeof *out->sums, &block));
    out->sums = block;
    return SL_OK;
}

void sl_row_sums_free(sl_row_sums *sums, const sl_allocator *allocator) {
    SL_FREE_ARRAY(allocator, sums->tags, sums->size);
    SL_FREE_ARRAY(allocator, sums->rows, sums->room + 1);
    SL_FREE_ARRAY(allocator, sums->sums, sums->room * sums->width);
    *sums = (sl_row_sums){0};
}

void sl_row_sums_clear(sl_row_sums *sums) {
    sums->count = 0;
    if (++sums->step) return;
    /* The step's number has wrapped around. Old tags must not match new steps. */
    memset(sums->tags, 0, sums->size * sizeof *sums->tags);
    sums->step = 1;
}
