#include "hnsw/graph/reserve.h"

#include "hnsw/graph/arrays.h"
#include "hnsw/graph/links.h"
#include "hnsw/graph/lives.h"
#include "hnsw/graph/version.h"

#include <string.h>

sl_status sl_index_writable(const sl_index *index) {
    if (index->writer) return sl_writable_check_owner(index->writer);
    if (index->graph.place == SL_PLACE_DRAM) return SL_OK;
    return sl_fail(SL_EREADONLY,
                   "the index is mapped from its file and read-only; open it with place dram to change it, "
                   "or with writable set where the file has room");
}

/* ---------------------------------------------------------------------------------------------------------------
 * Room in memory
 * ------------------------------------------------------------------------------------------------------------- */

static int fits_address_space(const sl_graph *graph, size_t capacity) {
    size_t bytes;
    for (sl_array_kind kind = 0; kind < SL_ARRAY_KINDS; kind++)
        if (!sl_mul(capacity, graph->arrays[kind].width, &bytes) || bytes > SIZE_MAX - SL_ROW_STEP) return 0;
    return 1;
}

static sl_status array_alloc(const sl_index *index, sl_array_kind kind, size_t capacity, void **out) {
    const sl_allocator *allocator = sl_array_allocator(index, kind);
    const size_t bytes = sl_array_bytes(&index->graph, kind, capacity);
    return sl_is_parted(&index->graph, kind) ? sl_mem_alloc_raw(allocator, bytes, out)
                                             : sl_mem_alloc(allocator, bytes, out);
}

/* Copies the rows of all nodes to new memory. */
static void copy_rows(const sl_graph *graph, void *const *to) {
    for (sl_array_kind kind = 0; kind < SL_ARRAY_KINDS; kind++)
        if (to[kind] && graph->n)
            memcpy(to[kind], graph->arrays[kind].at, sl_array_size(kind, graph->arrays[kind].width, graph->n));
}

/* Puts the new arrays into use. Readers keep the old ones as long as they need them. */
static void adopt_arrays(sl_index *index, void *const *to, const sl_lives *lives, size_t capacity) {
    const sl_graph old = index->graph;
    sl_publishing_lock(index);
    for (sl_array_kind kind = 0; kind < SL_ARRAY_KINDS; kind++)
        if (to[kind]) sl_array_put(&index->graph, kind, to[kind], old.arrays[kind].width);
    if (lives->nodes) index->graph.lives = *lives;
    index->graph.capacity = capacity;
    for (sl_array_kind kind = 0; kind < SL_ARRAY_KINDS; kind++)
        if (to[kind])
            sl_version_release(index, sl_array_allocator(index, kind), old.arrays[kind].at,
                               sl_array_bytes(&old, kind, old.capacity));
    sl_version_publish(index);
    sl_publishing_unlock(index);
}

/* Moves all arrays to new memory for `capacity` nodes. Errors: SL_ENOMEM; then none was moved. */
static sl_status resize_arrays(sl_index *index, size_t capacity) {
    void *to[SL_ARRAY_KINDS] = {NULL};
    sl_lives lives = {0};
    sl_status status = SL_OK;
    if (!fits_address_space(&index->graph, capacity))
        return sl_fail(SL_ENOMEM, "%zu vectors of %zu elements do not fit the address space", capacity,
                       index->graph.codec.dim);
    SL_TRY(sl_version_reserve(index, 1));
    for (sl_array_kind kind = 0; kind < SL_ARRAY_KINDS; kind++)
        if (sl_array_is_movable(&index->graph, kind)) SL_TRY_GOTO(array_alloc(index, kind, capacity, &to[kind]), fail);
    if (index->graph.lives.nodes) SL_TRY_GOTO(sl_lives_grow(&index->graph.lives, capacity, &lives), fail);
    copy_rows(&index->graph, to);
    adopt_arrays(index, to, &lives, capacity);
    sl_links_clear(&index->graph, index->graph.n, capacity - index->graph.n);
    return SL_OK;
fail:
    for (sl_array_kind kind = 0; kind < SL_ARRAY_KINDS; kind++)
        if (to[kind])
            sl_mem_free(sl_array_allocator(index, kind), to[kind], sl_array_bytes(&index->graph, kind, capacity));
    return status;
}

sl_status sl_capacity_trim(sl_index *index) {
    const size_t n = index->graph.n ? index->graph.n : 1;
    if (index->graph.capacity <= n + n / 8) return SL_OK;
    return sl_spill_explain(index->spill, resize_arrays(index, n));
}

sl_status sl_capacity_reserve(sl_index *index, size_t n) {
    if (n > SL_MAX_VECTORS) return sl_fail(SL_ELIMIT, "%zu vectors; an index holds up to %u", n, SL_MAX_VECTORS);
    if (n > index->graph.capacity && index->writer)
        return sl_fail(SL_ELIMIT,
                       "%s has room for %zu vectors, not for %zu; make more with 'shortlist rebuild --room' or "
                       "sl_index_rebuild, or delete vectors, and sync",
                       index->store->path, index->graph.capacity, n);
    return n > index->graph.capacity ? sl_spill_explain(index->spill, resize_arrays(index, n)) : SL_OK;
}

sl_status sl_index_reserve(sl_index *index, size_t n) {
    if (!index) return sl_fail(SL_EINVAL, "index is NULL");
    SL_TRY(sl_index_writable(index));
    SL_TRY(sl_change_begin(index));
    sl_status status = sl_capacity_reserve(index, n);
    sl_change_end(index);
    return status;
}
