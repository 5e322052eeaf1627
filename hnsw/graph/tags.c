#include "hnsw/graph/tags.h"

#include "hnsw/graph/ids.h"
#include "hnsw/graph/reserve.h"

#include <string.h>

static const char *kind_name(sl_array_kind kind) {
    return kind == SL_ARRAY_TAGS ? "tags" : "keys";
}

sl_status sl_words_check(const sl_graph *graph, sl_array_kind kind, int given) {
    if (!given || sl_has(graph, kind)) return SL_OK;
    return sl_fail(SL_EINVAL, "the index has no %s; make it anew with sl_index_params.%s set", kind_name(kind),
                   kind_name(kind));
}

sl_status sl_words_check_now(const sl_index *index, sl_array_kind kind, int given) {
    sl_reading reading;
    if (!given) return SL_OK;
    sl_status status = sl_words_check(sl_reading_begin(index, &reading), kind, given);
    sl_reading_end(&reading);
    return status;
}

static uint64_t *words_at(const sl_graph *graph, sl_array_kind kind) {
    return (uint64_t *)(void *)graph->arrays[kind].at;
}

void sl_words_put(const sl_graph *graph, sl_array_kind kind, size_t first, size_t n, const uint64_t *words) {
    if (!sl_has(graph, kind) || n == 0) return;
    uint64_t *to = words_at(graph, kind) + first;
    if (words)
        memcpy(to, words, n * sizeof *to);
    else
        memset(to, 0, n * sizeof *to);
}

static sl_status check_call(const sl_index *index, sl_array_kind kind, const uint64_t *ids, size_t n,
                            const uint64_t *words) {
    if (!index) return sl_fail(SL_EINVAL, "index is NULL");
    if (n && (!ids || !words)) return sl_fail(SL_EINVAL, "ids or %s is NULL", kind_name(kind));
    return sl_words_check_now(index, kind, 1);
}

/* Finds a node of each of n ids for a writer, in memory that the caller frees. Errors: SL_ENOTFOUND names the first
 * missing id. */
static sl_status find_nodes(sl_index *index, const uint64_t *ids, size_t n, uint32_t **out) {
    const sl_allocator *allocator = &index->graph.allocator;
    void *block;
    SL_TRY(sl_mem_alloc(allocator, n * sizeof **out, &block));
    *out = block;
    sl_status status = sl_ids_lookup(index, &index->graph, ids, n, *out);
    for (size_t i = 0; i < n && status == SL_OK; i++)
        if ((*out)[i] == SL_NONE) status = sl_fail_in(sl_id_missing(ids[i]), "number %zu", i);
    if (status != SL_OK) sl_mem_free(allocator, block, n * sizeof **out);
    return status;
}

static sl_status change_words(sl_index *index, sl_array_kind kind, const uint64_t *ids, size_t n,
                              const uint64_t *words) {
    uint64_t *all = words_at(&index->graph, kind);
    uint32_t *nodes;
    if (index->writer) SL_TRY(sl_writable_reserve(index->writer, all, index->graph.n * sizeof *all));
    sl_status status = find_nodes(index, ids, n, &nodes);
    if (status != SL_OK) return sl_fail_in(status, "no %s were set", kind_name(kind));
    /* No step below can fail. */
    for (size_t i = 0; i < n; i++)
        for (uint32_t node = nodes[i]; node != SL_NONE; node = sl_id_next(index, node)) {
            __atomic_store_n(&all[node], words[i], __ATOMIC_RELAXED);
            sl_index_touch(index, &all[node], sizeof *all);
        }
    sl_index_fence(index);
    SL_FREE_ARRAY(&index->graph.allocator, nodes, n);
    return SL_OK;
}

static sl_status set_words(sl_index *index, sl_array_kind kind, const uint64_t *ids, size_t n, const uint64_t *words) {
    SL_TRY(check_call(index, kind, ids, n, words));
    SL_TRY(sl_index_writable(index));
    if (n == 0) return SL_OK;
    SL_TRY(sl_change_begin(index));
    sl_status status = change_words(index, kind, ids, n, words);
    sl_change_end(index);
    return status;
}

/* Gets the words of at most GOT_AT_ONCE ids. */
enum { GOT_AT_ONCE = 1024 };
static sl_status get_some(sl_index *index, sl_array_kind kind, const uint64_t *ids, size_t n, uint64_t *words,
                          size_t first) {
    uint32_t nodes[GOT_AT_ONCE];
    sl_reading reading;
    sl_status status = sl_ids_read(index, &reading, ids, n, nodes);
    for (size_t i = 0; i < n && status == SL_OK; i++)
        if (nodes[i] == SL_NONE)
            status = sl_fail_in(sl_id_missing(ids[i]), "number %zu", first + i);
        else
            words[i] = __atomic_load_n(&words_at(reading.graph, kind)[nodes[i]], __ATOMIC_RELAXED);
    sl_reading_end(&reading);
    return status;
}

static sl_status get_words(sl_index *index, sl_array_kind kind, const uint64_t *ids, size_t n, uint64_t *words) {
    SL_TRY(check_call(index, kind, ids, n, words));
    for (size_t done = 0, some; done < n; done += some) {
        some = n - done < GOT_AT_ONCE ? n - done : GOT_AT_ONCE;
        SL_TRY(get_some(index, kind, ids + done, some, words + done, done));
    }
    return SL_OK;
}

sl_status sl_index_set_tags(sl_index *index, const uint64_t *ids, size_t n, const uint64_t *tags) {
    return set_words(index, SL_ARRAY_TAGS, ids, n, tags);
}

sl_status sl_index_set_keys(sl_index *index, const uint64_t *ids, size_t n, const uint64_t *keys) {
    return set_words(index, SL_ARRAY_KEYS, ids, n, keys);
}

sl_status sl_index_get_tags(sl_index *index, const uint64_t *ids, size_t n, uint64_t *tags) {
    return get_words(index, SL_ARRAY_TAGS, ids, n, tags);
}

sl_status sl_index_get_keys(sl_index *index, const uint64_t *ids, size_t n, uint64_t *keys) {
    return get_words(index, SL_ARRAY_KEYS, ids, n, keys);
}
