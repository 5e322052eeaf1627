#include "hnsw/build/copies.h"

#include "base/id_hash.h"

#include <string.h>

int sl_is_copy(const sl_graph *graph, uint32_t a, uint32_t b) {
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

/* Nobody can choose vectors that meet: the process draws the seed. The first of a kind does not depend on the seed. */
static uint64_t hash_row(const sl_graph *graph, uint32_t node) {
    const sl_codec *codec = &graph->codec;
    uint64_t hash = hash_bytes(sl_id_seed(), sl_row(graph, node), codec->rows.factor + sizeof(float));
    return codec->rest.pitch ? hash_bytes(hash, sl_rest_row(graph, node), codec->rest.factor + sizeof(float)) : hash;
}

/* Finds the first of each kind. `table`: places by hash, SL_NONE where free. */
static void find(sl_copies *copies, const sl_members *members, const uint64_t *hashes, uint32_t *table, size_t places) {
    memset(table, 0xff, places * sizeof *table);
    for (size_t i = 0; i < copies->n; i++) {
        uint32_t row = sl_member_row(members, i);
        size_t at = (size_t)(hashes[i] % places);
        for (; table[at] != SL_NONE; at = (at + 1) % places) {
            uint32_t place = table[at];
            if (hashes[copies->members[place]] == hashes[i] && sl_is_copy(members->graph, copies->rows[place], row))
                break;
        }
        if (table[at] == SL_NONE) {
            table[at] = (uint32_t)copies->distinct;
            copies->members[copies->distinct] = (uint32_t)i;
            copies->rows[copies->distinct++] = row;
        }
        copies->of[i] = table[at];
    }
}

sl_status sl_copies_find(sl_copies *copies, const sl_members *members) {
    const sl_allocator *allocator = &members->graph->allocator;
    const size_t n = members->n, places = 2 * n;
    sl_status status = SL_OK;
    *copies = (sl_copies){.allocator = *allocator, .n = n};
    copies->of = sl_mem_array(allocator, n, sizeof *copies->of, &status);
    copies->members = sl_mem_array(allocator, n, sizeof *copies->members, &status);
    copies->rows = sl_mem_array(allocator, n, sizeof *copies->rows, &status);
    uint64_t *hashes = sl_mem_array(allocator, n, sizeof *hashes, &status);
    uint32_t *table = sl_mem_array(allocator, places, sizeof *table, &status);
    if (status == SL_OK) {
#pragma omp parallel for schedule(static) num_threads((int)members->threads) if (members->threads > 1)
        for (size_t i = 0; i < n; i++)
            hashes[i] = hash_row(members->graph, sl_member_row(members, i));
        find(copies, members, hashes, table, places);
    }
    sl_mem_free(allocator, hashes, n * sizeof *hashes);
    sl_mem_free(allocator, table, places * sizeof *table);
    if (status == SL_OK && copies->distinct == n) sl_copies_free(copies);
    return status;
}

sl_bytes sl_copies_bytes(size_t n) {
    const size_t kept = 3 * n * sizeof(uint32_t);
    return (sl_bytes){kept, kept + n * (sizeof(uint64_t) + 2 * sizeof(uint32_t))};
}

void sl_copies_free(sl_copies *copies) {
    sl_mem_free(&copies->allocator, copies->of, copies->n * sizeof *copies->of);
    sl_mem_free(&copies->allocator, copies->members, copies->n * sizeof *copies->members);
    sl_mem_free(&copies->allocator, copies->rows, copies->n * sizeof *copies->rows);
    *copies = (sl_copies){0};
}

/* Puts the neighbours in a chain behind the first links of the kind. */
static void make_list(const sl_copies *copies, const uint32_t *own, size_t degree, const uint32_t *chain,
                      uint32_t *to) {
    const size_t before = chain[0] != SL_NONE, behind = chain[1] != SL_NONE, chained = before + behind;
    size_t count = 0;
    for (; count + chained < degree && own[count] != SL_NONE; count++)
        to[count] = copies->members[own[count]];
    for (size_t i = 0; i < 2; i++)
        if (chain[i] != SL_NONE) to[count++] = chain[i];
    while (count < degree)
        to[count++] = SL_NONE;
}

sl_status sl_copies_link(const sl_copies *copies, size_t degree, const uint32_t *own, uint32_t *links) {
    sl_status status = SL_OK;
    uint32_t *last = sl_mem_array(&copies->allocator, copies->distinct, sizeof *last, &status);
    uint32_t *chains = sl_mem_array(&copies->allocator, 2 * copies->n, sizeof *chains, &status); /* before and behind */
    if (status == SL_OK) {
        memset(last, 0xff, copies->distinct * sizeof *last);
        memset(chains, 0xff, 2 * copies->n * sizeof *chains);
        for (size_t i = 0; i < copies->n; i++) {
            uint32_t before = last[copies->of[i]];
            chains[2 * i] = before;
            if (before != SL_NONE) chains[2 * (size_t)before + 1] = (uint32_t)i;
            last[copies->of[i]] = (uint32_t)i;
        }
        for (size_t i = 0; i < copies->n; i++)
            make_list(copies, own + (size_t)copies->of[i] * degree, degree, chains + 2 * i, links + i * degree);
    }
    sl_mem_free(&copies->allocator, last, copies->distinct * sizeof *last);
    sl_mem_free(&copies->allocator, chains, 2 * copies->n * sizeof *chains);
    return status;
}
