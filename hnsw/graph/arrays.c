#include "hnsw/graph/index.h"

#include <string.h>

size_t sl_refine_bytes(const sl_index *index, size_t n) {
    return n * index->refine_pitch + SL_ROW_STEP;
}

size_t sl_rest_bytes(const sl_index *index, size_t n) {
    return index->codec.rest.pitch ? n * index->codec.rest.pitch + SL_ROW_STEP : 0;
}

static size_t links_bytes(const sl_index *index, size_t n) {
    return n * index->m0 * sizeof(uint32_t);
}

void sl_index_release_arrays(sl_index *index) {
    const sl_allocator *allocator = &index->allocator, *layer0 = &index->layer0;
    if (index->place != SL_PLACE_DRAM) {
        /* Everything but the id map lies in the mapping. */
        sl_writable_close(index->writer);
        index->writer = NULL;
        index->ids = NULL;
        index->id_width = 0;
        sl_ids_free(index);
    } else {
        sl_partitions_free(allocator, &index->partitions);
        sl_partitions_free(allocator, &index->groups);
        sl_ids_free(index);
        sl_mem_free(layer0, index->rows, sl_codec_rows_size(&index->codec, index->capacity));
        sl_mem_free(layer0, index->rest_rows, sl_rest_bytes(index, index->capacity));
        sl_mem_free(layer0, index->coarse_rows, sl_coarse_bytes(index, index->capacity));
        sl_mem_free(allocator, index->projection, sl_projection_bytes(index));
        sl_mem_free(layer0, index->links, links_bytes(index, index->capacity));
        sl_mem_free(layer0, index->refine_rows, sl_refine_bytes(index, index->capacity));
        sl_mem_free(layer0, index->dead, sl_dead_bytes(index->capacity));
        sl_upper_free(index);
    }
    sl_store_close(index->store, allocator);
    index->store = NULL;
}

sl_status sl_index_writable(const sl_index *index) {
    if (index->writer) return sl_writable_check_owner(index->writer);
    if (index->place == SL_PLACE_DRAM) return SL_OK;
    return sl_fail(SL_EREADONLY,
                   "the index is mapped from its file and read-only; open it with place dram to change it, "
                   "or with writable set where the file has room");
}

/* The arrays of layer 0 that a larger capacity needs, all of them or none. */
static sl_status move_arrays(sl_index *index, size_t capacity) {
    const sl_allocator *allocator = &index->layer0;
    size_t old_rows = sl_codec_rows_size(&index->codec, index->capacity);
    size_t new_rows = sl_codec_rows_size(&index->codec, capacity), bytes;
    void *rows, *rest = NULL, *coarse = NULL, *links = NULL, *refine = NULL, *dead = NULL;
    sl_status status;
    if (!new_rows || !sl_mul(capacity, index->m0 * sizeof(uint32_t), &bytes) ||
        !sl_mul(capacity, index->refine_pitch, &bytes) || bytes > SIZE_MAX - SL_ROW_STEP ||
        !sl_mul(capacity, index->codec.rest.pitch, &bytes) || bytes > SIZE_MAX - SL_ROW_STEP ||
        !sl_mul(capacity, index->coarse.codec.rows.pitch, &bytes) || bytes > SIZE_MAX - SL_ROW_STEP)
        return sl_fail(SL_ENOMEM, "%zu vectors of %zu elements do not fit the address space", capacity,
                       index->codec.dim);
    SL_TRY(sl_mem_alloc(allocator, new_rows, &rows));
    if (index->codec.rest.pitch) SL_TRY_GOTO(sl_mem_alloc(allocator, sl_rest_bytes(index, capacity), &rest), fail);
    if (sl_coarse_bytes(index, capacity))
        SL_TRY_GOTO(sl_mem_alloc(allocator, sl_coarse_bytes(index, capacity), &coarse), fail);
    SL_TRY_GOTO(sl_mem_alloc(allocator, links_bytes(index, capacity), &links), fail);
    if (index->refine_pitch) SL_TRY_GOTO(sl_mem_alloc(allocator, sl_refine_bytes(index, capacity), &refine), fail);
    if (index->dead) SL_TRY_GOTO(sl_mem_alloc(allocator, sl_dead_bytes(capacity), &dead), fail);
    SL_TRY_GOTO(sl_ids_resize(index, capacity), fail);

    if (index->n) {
        memcpy(rows, index->rows, index->n * index->codec.rows.pitch);
        if (rest) memcpy(rest, index->rest_rows, index->n * index->codec.rest.pitch);
        if (coarse) memcpy(coarse, index->coarse_rows, index->n * index->coarse.codec.rows.pitch);
        memcpy(links, index->links, links_bytes(index, index->n));
        if (refine) memcpy(refine, index->refine_rows, index->n * index->refine_pitch);
        if (dead) memcpy(dead, index->dead, sl_dead_bytes(index->n));
    }
    memset((char *)links + links_bytes(index, index->n), 0xff, links_bytes(index, capacity - index->n));
    sl_mem_free(allocator, index->rows, old_rows);
    sl_mem_free(allocator, index->rest_rows, sl_rest_bytes(index, index->capacity));
    sl_mem_free(allocator, index->coarse_rows, sl_coarse_bytes(index, index->capacity));
    sl_mem_free(allocator, index->links, links_bytes(index, index->capacity));
    sl_mem_free(allocator, index->refine_rows, sl_refine_bytes(index, index->capacity));
    sl_mem_free(allocator, index->dead, sl_dead_bytes(index->capacity));
    index->rows = rows;
    index->codec.rows.base = rows;
    index->rest_rows = rest;
    index->codec.rest.base = rest;
    index->coarse_rows = coarse;
    index->coarse.codec.rows.base = coarse;
    index->links = links;
    index->refine_rows = refine;
    index->dead = dead;
    index->capacity = capacity;
    return SL_OK;
fail:
    sl_mem_free(allocator, rows, new_rows);
    sl_mem_free(allocator, rest, sl_rest_bytes(index, capacity));
    sl_mem_free(allocator, coarse, sl_coarse_bytes(index, capacity));
    sl_mem_free(allocator, links, links_bytes(index, capacity));
    sl_mem_free(allocator, refine, sl_refine_bytes(index, capacity));
    sl_mem_free(allocator, dead, sl_dead_bytes(capacity));
    return status;
}

sl_status sl_index_reserve(sl_index *index, size_t n) {
    if (!index) return sl_fail(SL_EINVAL, "index is NULL");
    SL_TRY(sl_index_writable(index));
    if (n > SL_MAX_VECTORS) return sl_fail(SL_ELIMIT, "%zu vectors; an index holds up to %u", n, SL_MAX_VECTORS);
    if (n > index->capacity && index->writer)
        return sl_fail(SL_ELIMIT,
                       "%s has room for %zu vectors, not for %zu; save the index to another file with more room",
                       index->store->path, index->capacity, n);
    return n > index->capacity ? move_arrays(index, n) : SL_OK;
}
