#include "hnsw/construct/build.h"

#include "hnsw/graph/links.h"

sl_status sl_build_alloc(sl_build *build) {
    sl_index *index = build->index;
    const sl_allocator *allocator = &index->graph.allocator;
    void *block;
    SL_TRY(sl_mem_alloc(allocator, build->threads * sizeof *build->inserts, &block));
    build->inserts = block;
    SL_TRY(sl_mem_alloc(allocator, build->threads * index->graph.codec.dim * sizeof(float), &block));
    build->floats = block;
    SL_TRY(sl_mem_alloc(allocator, build->threads * sizeof *build->errors, &block));
    build->errors = block;
    SL_TRY(sl_mem_alloc(allocator, sizeof *build->locks, &block));
    build->locks = block;
    for (size_t t = 0; t < build->threads; t++)
        SL_TRY(sl_insert_init(&build->inserts[t], index, build->locks));
    return SL_OK;
}

void sl_build_free(sl_build *build) {
    const sl_allocator *allocator = &build->index->graph.allocator;
    for (size_t t = 0; build->inserts && t < build->threads; t++)
        sl_insert_free(&build->inserts[t]);
    SL_FREE_ARRAY(allocator, build->inserts, build->threads);
    SL_FREE_ARRAY(allocator, build->floats, build->threads * build->index->graph.codec.dim);
    SL_FREE_ARRAY(allocator, build->errors, build->threads);
    SL_FREE(allocator, build->locks);
}

void sl_build_clear_links(sl_index *index, size_t first, size_t n) {
    const sl_array *links = &index->graph.arrays[SL_ARRAY_LINKS];
    sl_links_clear(&index->graph, first, n);
    sl_index_touch_each(index, sl_links(&index->graph, first), links->step, links->size, n);
}
