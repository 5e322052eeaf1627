#include "hnsw/construct/duplicates.h"

#include "base/id_hash.h"

#include <string.h>

int sl_is_duplicate(const sl_graph *graph, uint32_t a, uint32_t b) {
    const sl_codec *codec = &graph->codec;
    if (memcmp(sl_row(graph, a), sl_row(graph, b), codec->rows.factor + sizeof(float)) != 0) return 0;
    return !codec->rest.pitch ||
           memcmp(sl_rest_row(graph, a), sl_rest_row(graph, b), codec->rest.factor + sizeof(float)) == 0;
}

static uint64_t hash_bytes(uint64_t hash, const uint8_t *bytes, size_t size) {
    for (size_t i = 0; i < size; i += sizeof hash) {
        uint64_t word = 0;
        memcpy(&word, bytes + i, size - i < sizeof word ? size - i : sizeof word);
        hash = sl_random_at(hash, word);
    }
    return hash;
}

/* Nobody can choose vectors whose hashes collide, since each process draws a seed. The result doesn't depend on the
 * seed. */
static uint64_t hash_row(const sl_graph *graph, uint32_t node) {
    const sl_codec *codec = &graph->codec;
    uint64_t hash = hash_bytes(sl_id_seed(), sl_row(graph, node), codec->rows.factor + sizeof(float));
    return codec->rest.pitch ? hash_bytes(hash, sl_rest_row(graph, node), codec->rest.factor + sizeof(float)) : hash;
}

/* Finds the first of each set of duplicates. `table`: places of firsts, by hash; SL_NONE: free. */
static void find_firsts(sl_duplicates *duplicates, const sl_points *points, const uint64_t *hashes, uint32_t *table,
                        size_t places) {
    memset(table, 0xff, places * sizeof *table);
    for (size_t i = 0; i < duplicates->n; i++) {
        uint32_t row = sl_point_row(points, i);
        size_t at = (size_t)(hashes[i] % places);
        for (; table[at] != SL_NONE; at = (at + 1) % places) {
            uint32_t place = table[at];
            if (hashes[duplicates->firsts[place]] == hashes[i] &&
                sl_is_duplicate(points->graph, duplicates->rows[place], row))
                break;
        }
        if (table[at] == SL_NONE) {
            table[at] = (uint32_t)duplicates->distinct;
            duplicates->firsts[duplicates->distinct] = (uint32_t)i;
            duplicates->rows[duplicates->distinct++] = row;
        }
        duplicates->of[i] = table[at];
    }
}

sl_status sl_duplicates_find(sl_duplicates *duplicates, const sl_points *points) {
    const sl_allocator *allocator = &points->graph->allocator;
    const size_t n = points->n, places = 2 * n;
    sl_status status = SL_OK;
    *duplicates = (sl_duplicates){.allocator = *allocator, .n = n};
    duplicates->of = sl_mem_array(allocator, n, sizeof *duplicates->of, &status);
    duplicates->firsts = sl_mem_array(allocator, n, sizeof *duplicates->firsts, &status);
    duplicates->rows = sl_mem_array(allocator, n, sizeof *duplicates->rows, &status);
    uint64_t *hashes = sl_mem_array(allocator, n, sizeof *hashes, &status);
    uint32_t *table = sl_mem_array(allocator, places, sizeof *table, &status);
    if (status == SL_OK) {
#pragma omp parallel for schedule(static) num_threads((int)points->threads) if (points->threads > 1)
        for (size_t i = 0; i < n; i++)
            hashes[i] = hash_row(points->graph, sl_point_row(points, i));
        find_firsts(duplicates, points, hashes, table, places);
    }
    SL_FREE_ARRAY(allocator, hashes, n);
    SL_FREE_ARRAY(allocator, table, places);
    if (status == SL_OK && duplicates->distinct == n) sl_duplicates_free(duplicates);
    return status;
}

sl_bytes sl_duplicates_bytes(size_t n) {
    const size_t kept = 3 * n * sizeof(uint32_t);
    return (sl_bytes){kept, kept + n * (sizeof(uint64_t) + 2 * sizeof(uint32_t))};
}

void sl_duplicates_free(sl_duplicates *duplicates) {
    SL_FREE_ARRAY(&duplicates->allocator, duplicates->of, duplicates->n);
    SL_FREE_ARRAY(&duplicates->allocator, duplicates->firsts, duplicates->n);
    SL_FREE_ARRAY(&duplicates->allocator, duplicates->rows, duplicates->n);
    *duplicates = (sl_duplicates){0};
}

/* Writes the list of a point: the links of its first duplicate, then the links of the chain. `chain`: the duplicates
 * just before and just behind the point. */
static void write_list(const sl_duplicates *duplicates, const uint32_t *own, size_t degree, const uint32_t *chain,
                       uint32_t *to) {
    const size_t before = chain[0] != SL_NONE, behind = chain[1] != SL_NONE, chained = before + behind;
    size_t count = 0;
    for (; count + chained < degree && own[count] != SL_NONE; count++)
        to[count] = duplicates->firsts[own[count]];
    for (size_t i = 0; i < 2; i++)
        if (chain[i] != SL_NONE) to[count++] = chain[i];
    while (count < degree)
        to[count++] = SL_NONE;
}

sl_status sl_duplicates_link(const sl_duplicates *duplicates, size_t degree, const uint32_t *own, uint32_t *links) {
    sl_status status = SL_OK;
    uint32_t *last = sl_mem_array(&duplicates->allocator, duplicates->distinct, sizeof *last, &status);
    uint32_t *chains = sl_mem_array(&duplicates->allocator, 2 * duplicates->n, sizeof *chains,
                                    &status); /* each point's duplicates before and behind it */
    if (status == SL_OK) {
        memset(last, 0xff, duplicates->distinct * sizeof *last);
        memset(chains, 0xff, 2 * duplicates->n * sizeof *chains);
        for (size_t i = 0; i < duplicates->n; i++) {
            uint32_t before = last[duplicates->of[i]];
            chains[2 * i] = before;
            if (before != SL_NONE) chains[2 * (size_t)before + 1] = (uint32_t)i;
            last[duplicates->of[i]] = (uint32_t)i;
        }
        for (size_t i = 0; i < duplicates->n; i++)
            write_list(duplicates, own + (size_t)duplicates->of[i] * degree, degree, chains + 2 * i,
                       links + i * degree);
    }
    SL_FREE_ARRAY(&duplicates->allocator, last, duplicates->distinct);
    SL_FREE_ARRAY(&duplicates->allocator, chains, 2 * duplicates->n);
    return status;
}
