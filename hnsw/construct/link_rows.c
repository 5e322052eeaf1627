#include "hnsw/construct/link_rows.h"

#include "hnsw/construct/from_leaves.h"
#include "hnsw/construct/imported_graph.h"
#include "hnsw/graph/entry.h"
#include "hnsw/graph/upper.h"

/* The first rows of an empty index are inserted one by one. The other rows, inserted on all threads, then find
 * neighbours in a graph. */
enum { ALONE = 256 };

int sl_build_is_from_leaves(const sl_index *index, sl_builder builder, size_t first, size_t n) {
    if (builder == SL_BUILDER_AUTO && !sl_from_leaves_suits(&index->graph, first, n)) return 0;
    return builder != SL_BUILDER_INSERT && !sl_from_leaves_lacks(index, n);
}

sl_status sl_build_check_builder(const sl_index *index, sl_builder builder, size_t n) {
    const char *lacks;
    if (builder < SL_BUILDER_AUTO || builder > SL_BUILDER_LEAVES) return sl_fail(SL_EINVAL, "builder is %d", builder);
    if (builder != SL_BUILDER_LEAVES || !(lacks = sl_from_leaves_lacks(index, n))) return SL_OK;
    return sl_fail(SL_EUNSUPPORTED, "builder leaves needs %s; take builder auto", lacks);
}

static void insert_rows(sl_build *build) {
    sl_index *index = build->index;
    size_t done = 0;
    if (build->first == 0) {
        uint32_t slot, level = sl_level_and_slot(&index->graph, 0, &slot);
        sl_entry_set(index, level, level ? slot : 0);
        size_t alone = build->n < ALONE ? build->n : ALONE;
        for (done = 1; done < alone; done++)
            sl_insert_node(&build->inserts[0], (uint32_t)done);
    }
    sl_progress_step(&build->progress, done);
    if (build->ahead) {
        build->inserts[0].found = build->ahead->nodes;
        build->inserts[0].found_count = build->ahead->count;
    }
#pragma omp parallel for schedule(dynamic, SL_BUILD_CHUNK) num_threads((int)build->threads) if (build->threads > 1)
    for (size_t i = done; i < build->n; i++) {
        if (sl_progress_cancelled(&build->progress)) continue;
        sl_insert_node(&build->inserts[sl_thread_number()], sl_build_node(build, i));
        sl_progress_step(&build->progress, 1);
    }
    build->inserts[0].found_count = 0; /* it was for this row alone */
}

sl_status sl_build_link_rows(sl_build *build) {
    const sl_index *index = build->index;
    if (build->imported) return sl_imported_graph_link(build);
    if (sl_build_is_from_leaves(index, build->builder, build->first, build->n)) {
        sl_status status = sl_from_leaves_link(build);
        if (status != SL_ENOMEM || index->spill || build->builder == SL_BUILDER_LEAVES) return status;
        if (index->log) index->log(index->log_ctx, SL_LOG_WARN, "vectors are inserted for want of memory for leaves");
    }
    insert_rows(build);
    return SL_OK;
}

sl_status sl_build_relink(sl_index *index, size_t first) {
    const size_t n = index->graph.n - first;
    sl_build build = {.index = index, .first = first, .n = n, .appended = n, .threads = sl_thread_count(0)};
    sl_progress_start(&build.progress, NULL, NULL, 0);
    sl_status status = sl_build_alloc(&build);
    if (status == SL_OK) status = sl_build_link_rows(&build);
    sl_build_free(&build);
    return status;
}
