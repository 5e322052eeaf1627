#include "hnsw/search/ids_to_nodes.h"

#include "base/id_hash.h"
#include "base/probe.h"
#include "hnsw/graph/ids.h"

#include <string.h>

/* If the list has at least one id per LONG nodes, one pass over all nodes costs less than looking each id up. */
enum { LONG = 16 };
/* A long list becomes a bitmap over ids, if that takes at most this many bits per node. */
enum { BITS_A_NODE = 32 };
/* Otherwise the ids of the list are joined with those of the nodes by hash, if there are at most this many. */
enum { TOGETHER = 1 << 23 };
/* Entries whose hashes have equal first bits form a run. There are so few runs that a core can write to all of them
 * without TLB misses. */
enum { RUN_BITS = 8, RUNS = 1 << RUN_BITS };
/* Ids looked up in the map at a time. */
enum { LOOKED_UP = 1024 };

static void set_bit(uint64_t *bits, uint64_t at, uint64_t value) {
    bits[at / 64] |= value << (at % 64);
}

/* ---------------------------------------------------------------------------------------------------------------
 * By the map of ids
 * ------------------------------------------------------------------------------------------------------------- */

/* Looks each id up in the map. Here an id may have any number of nodes. */
static sl_status nodes_by_chains(sl_index *index, const sl_graph *graph, const uint64_t *ids, size_t count,
                                 uint64_t *nodes) {
    sl_node_list found = {0};
    sl_status status = SL_OK;
    for (size_t i = 0; i < count && status == SL_OK; i++) {
        found.count = 0;
        status = sl_id_nodes(index, graph, ids[i], &found);
        for (size_t j = 0; j < found.count; j++)
            if (found.nodes[j] < graph->n) set_bit(nodes, found.nodes[j], 1);
    }
    sl_node_list_free(&found, &graph->allocator);
    return status;
}

static sl_status nodes_by_map(sl_index *index, const sl_graph *graph, const uint64_t *ids, size_t count,
                              uint64_t *nodes) {
    uint32_t found[LOOKED_UP];
    for (size_t done = 0; done < count; done += LOOKED_UP) {
        const size_t n = count - done < LOOKED_UP ? count - done : LOOKED_UP;
        SL_TRY(sl_ids_lookup(index, graph, ids + done, n, found));
        for (size_t i = 0; i < n; i++)
            if (found[i] < graph->n) set_bit(nodes, found[i], 1);
    }
    return SL_OK;
}

/* ---------------------------------------------------------------------------------------------------------------
 * By a bitmap over ids
 * ------------------------------------------------------------------------------------------------------------- */

void sl_nodes_of_id_bits(const sl_graph *graph, const uint64_t *bits, uint64_t count, uint64_t *nodes) {
    for (size_t first = 0; first < graph->n; first += 64) {
        const size_t end = graph->n - first < 64 ? graph->n - first : 64;
        uint64_t word = 0;
        for (size_t i = 0; i < end; i++) {
            uint64_t id = sl_id_of(graph, (uint32_t)(first + i));
            word |= (id < count ? bits[id / 64] >> (id % 64) & 1 : 0) << i;
        }
        nodes[first / 64] |= word;
    }
}

static sl_status nodes_by_bitmap(const sl_graph *graph, const sl_allocator *allocator, const uint64_t *ids,
                                 size_t count, uint64_t *nodes) {
    const uint64_t most = graph->next_id;
    const size_t bytes = ((size_t)most / 64 + 1) * sizeof(uint64_t);
    void *block;
    SL_TRY(sl_mem_alloc(allocator, bytes, &block));
    uint64_t *bits = block;
    /* Unknown ids share the bit behind the last node's, so the loop has no branch. */
    for (size_t i = 0; i < count; i++)
        set_bit(bits, ids[i] < most ? ids[i] : most, 1);
    sl_nodes_of_id_bits(graph, bits, most, nodes);
    sl_mem_free(allocator, block, bytes);
    return SL_OK;
}

/* ---------------------------------------------------------------------------------------------------------------
 * By hash
 * ------------------------------------------------------------------------------------------------------------- */

typedef struct entry {
    uint64_t id;
    uint32_t hash; /* low bits of the id's hash */
    uint32_t node; /* for a list: the id's place in it */
} entry;

/* Entries sorted by the first bits of their hashes. */
typedef struct runs {
    entry *entries;
    size_t count, starts[RUNS + 1];
} runs;

static size_t run_of(uint64_t hash) {
    return (size_t)(hash >> (64 - RUN_BITS));
}

/* Sorts the ids of a list into runs, or the nodes' ids if `ids` is NULL. */
static sl_status make_runs(const sl_graph *graph, const sl_allocator *allocator, const uint64_t *ids, runs *out) {
    size_t next[RUNS] = {0};
    const uint64_t seed = sl_id_seed();
    void *block;
    SL_TRY(sl_mem_alloc_raw(allocator, out->count * sizeof(entry), &block));
    out->entries = block;
    for (size_t i = 0; i < out->count; i++)
        next[run_of(sl_id_hash(seed, ids ? ids[i] : sl_id_of(graph, (uint32_t)i)))]++;
    for (size_t run = 0, at = 0; run < RUNS; run++) {
        size_t size = next[run];
        out->starts[run] = next[run] = at;
        out->starts[run + 1] = at += size;
    }
    for (size_t i = 0; i < out->count; i++) {
        const uint64_t id = ids ? ids[i] : sl_id_of(graph, (uint32_t)i), hash = sl_id_hash(seed, id);
        out->entries[next[run_of(hash)]++] = (entry){id, (uint32_t)hash, (uint32_t)i};
    }
    return SL_OK;
}

/* Returns the number of places in a run's table. Three of four places stay free, so nearly every id is in its first
 * place. */
static size_t table_size(const runs *list, size_t run) {
    return sl_probe_places(2 * (list->starts[run + 1] - list->starts[run]), 16);
}

/* Returns the place of an id, or the free place where it belongs. SL_NO_ID, which no node has, marks free places. */
static size_t place_of(const uint64_t *table, size_t size, const entry *e) {
    SL_PROBE(at, e->hash, size) {
        if (table[at] == SL_NO_ID || table[at] == e->id) return at;
    }
}

static void join_run(const runs *list, const runs *all, size_t run, uint64_t *table, uint64_t *nodes) {
    const size_t size = table_size(list, run);
    memset(table, 0xff, size * sizeof *table);
    for (size_t i = list->starts[run]; i < list->starts[run + 1]; i++)
        table[place_of(table, size, &list->entries[i])] = list->entries[i].id;
    for (size_t i = all->starts[run]; i < all->starts[run + 1]; i++) {
        const entry *e = &all->entries[i];
        set_bit(nodes, e->node, table[place_of(table, size, e)] != SL_NO_ID);
    }
}

static sl_status nodes_by_hash(const sl_graph *graph, const sl_allocator *allocator, const uint64_t *ids, size_t count,
                               uint64_t *nodes) {
    runs list = {.count = count}, all = {.count = graph->n};
    size_t most = 0;
    void *table = NULL;
    sl_status status;
    SL_TRY_GOTO(make_runs(graph, allocator, ids, &list), done);
    SL_TRY_GOTO(make_runs(graph, allocator, NULL, &all), done);
    for (size_t run = 0; run < RUNS; run++)
        if (table_size(&list, run) > most) most = table_size(&list, run);
    SL_TRY_GOTO(sl_mem_alloc_raw(allocator, most * sizeof(uint64_t), &table), done);
    for (size_t run = 0; run < RUNS; run++)
        join_run(&list, &all, run, table, nodes);
done:
    sl_mem_free(allocator, table, most * sizeof(uint64_t));
    SL_FREE_ARRAY(allocator, list.entries, list.count);
    SL_FREE_ARRAY(allocator, all.entries, all.count);
    return status;
}

sl_status sl_nodes_of_ids(sl_index *index, const sl_graph *graph, const sl_allocator *allocator, const uint64_t *ids,
                          size_t count, uint64_t *nodes) {
    if (count >= graph->n / LONG) {
        if (graph->next_id / BITS_A_NODE <= graph->n) return nodes_by_bitmap(graph, allocator, ids, count, nodes);
        if (count <= TOGETHER && graph->n <= TOGETHER - count)
            return nodes_by_hash(graph, allocator, ids, count, nodes);
    }
    if (sl_ids_repeat(graph)) return nodes_by_chains(index, graph, ids, count, nodes);
    return nodes_by_map(index, graph, ids, count, nodes);
}
