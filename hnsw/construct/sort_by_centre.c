#include "hnsw/construct/sort_by_centre.h"

#include "hnsw/graph/index.h"

#include <string.h>

void sl_sort_by_centre(const uint32_t *of, size_t n, size_t count, uint32_t *ends, uint32_t *sorted) {
    uint32_t begin = 0;
    memset(ends, 0, count * sizeof *ends);
    for (size_t i = 0; i < n; i++)
        if (of[i] != SL_NONE) ends[of[i]]++;
    for (size_t p = 0; p < count; p++) {
        uint32_t size = ends[p];
        ends[p] = begin;
        begin += size;
    }
    /* After filling, ends[p] is the end of centre p, no longer its begin. */
    for (size_t i = 0; i < n; i++)
        if (of[i] != SL_NONE) sorted[ends[of[i]]++] = (uint32_t)i;
}
