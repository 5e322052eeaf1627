#include "hnsw/search/scan_memory.h"

#include "hnsw/search/bands.h"

/* Queries of a chunk. Dozens of them share a partition, and their hits still fit a second-level cache, or nearly so. */
enum { TOGETHER = 1024, CHOOSING = SL_SCAN_CHOOSE_CHUNK };

/* The most hits of a chunk. If each query keeps thousands, chunks have fewer queries. */
#define MOST_FOUND ((size_t)1 << 23)

size_t sl_scan_chunk_size(const sl_scan_shape *shape, size_t queries) {
    size_t wanted = sl_bands_candidates(&shape->graph->partitions, shape->probes), groups = shape->groups;
    size_t room = sl_scan_hit_room(shape->keep) + 3 * wanted + (groups ? sl_scan_hit_room(wanted) + 2 * groups : 0);
    size_t fits = MOST_FOUND / room > CHOOSING ? MOST_FOUND / room : CHOOSING;
    if (queries > TOGETHER) queries = TOGETHER;
    return queries < fits ? queries : fits;
}

/* Cuts pieces off a block, each on its own cache lines. Without a block it only counts their bytes. */
typedef struct sl_carver {
    uint8_t *block;
    size_t used;
} sl_carver;

static void *carve(sl_carver *carver, size_t count, size_t size) {
    void *piece = carver->block ? carver->block + carver->used : NULL;
    carver->used += sl_round_up(count * size, SL_CACHE_LINE);
    return piece;
}

/* Carves room for `queries` queries. */
static void carve_set(sl_carver *carver, sl_query_set *set, size_t queries, int has_codes) {
    size_t room = queries * sl_scan_hit_room(set->keep);
    set->scans = carve(carver, queries, sizeof *set->scans);
    set->codes = has_codes ? carve(carver, queries, sl_tile_code_bytes(&set->target)) : NULL;
    set->ids = carve(carver, room, sizeof *set->ids);
    set->scores = carve(carver, room, sizeof *set->scores);
}

static void carve_choice(sl_carver *carver, sl_probe_choice *choice, size_t queries) {
    choice->chosen = carve(carver, queries * sl_probe_choice_room(choice), sizeof *choice->chosen);
    choice->counts = carve(carver, queries, sizeof *choice->counts);
}

static size_t larger(size_t a, size_t b) {
    return a > b ? a : b;
}

static void carve_sweep(sl_carver *carver, sl_scan_memory *memory, size_t max_queries) {
    sl_tile_scan *tiles = &memory->tiles;
    const sl_scan_rows *nodes = &memory->nodes.target, *centroids = &memory->partitions.target;
    const sl_probe_choice *chosen = &memory->chosen, *groups = &memory->chosen_groups;
    size_t turn = larger(max_queries, CHOOSING);
    size_t steps = larger(sl_tile_steps(nodes->codes, nodes->dim), sl_tile_steps(centroids->codes, centroids->dim));
    tiles->queries = carve(carver, turn, sizeof *tiles->queries);
    tiles->row_counts = carve(carver, turn, sizeof *tiles->row_counts);
    tiles->starts = carve(carver, larger(sl_probe_choice_prefixes(chosen), sl_probe_choice_prefixes(groups)) + 1,
                          sizeof *tiles->starts);
    tiles->pairs = carve(carver, max_queries * larger(sl_probe_choice_room(chosen), sl_probe_choice_room(groups)),
                         sizeof *tiles->pairs);
    tiles->words = carve(carver, sl_bands_scratch(chosen->parts), sizeof *tiles->words);
    tiles->tile.bytes = carve(carver, SL_TILE_ROWS, 4 * steps);
    tiles->tile.factors = carve(carver, SL_TILE_ROWS, sizeof(float));
    tiles->tile.biases = carve(carver, SL_TILE_ROWS, sizeof(float));
}

static void carve_all(sl_carver *carver, sl_scan_memory *memory, size_t max_queries) {
    const int has_groups = memory->chosen_groups.wanted != 0;
    carve_set(carver, &memory->nodes, max_queries, 1);
    carve_set(carver, &memory->partitions, has_groups ? max_queries : CHOOSING, 1);
    carve_set(carver, &memory->groups, has_groups ? CHOOSING : 0, 0);
    carve_choice(carver, &memory->chosen, max_queries);
    carve_choice(carver, &memory->chosen_groups, max_queries);
    carve_sweep(carver, memory, max_queries);
    memory->floats = carve(carver, memory->partitions.target.dim, sizeof *memory->floats);
    memory->buffer = carve(carver, 1, sl_query_size(&memory->chosen.parts->codec));
}

static sl_probe_choice make_choice(const sl_partitions *parts, size_t probes) {
    return (sl_probe_choice){.parts = parts, .probes = probes, .wanted = sl_bands_candidates(parts, probes)};
}

static sl_query_set centroid_set(const sl_probe_choice *choice, size_t dim) {
    return (sl_query_set){
        .target = {.rows = &choice->parts->codec.rows, .codes = choice->parts->codec.codes, .dim = dim},
        .keep = choice->wanted};
}

sl_status sl_scan_memory_init(sl_scan_memory *memory, const sl_scan_shape *shape, const sl_codec *codec,
                              sl_searcher *searcher) {
    const sl_graph *graph = shape->graph;
    *memory = (sl_scan_memory){.tiles = {.kernels = graph->kernels},
                               .nodes = {.target = {.rows = &codec->rows,
                                                    .codes = codec->codes,
                                                    .dim = codec->dim,
                                                    .deleted_in = graph->deleted_count ? graph : NULL},
                                         .keep = shape->keep},
                               .chosen = make_choice(&graph->partitions, shape->probes),
                               .chosen_groups = make_choice(&graph->groups, shape->groups)};
    memory->partitions = centroid_set(&memory->chosen, graph->codec.dim);
    memory->groups = centroid_set(&memory->chosen_groups, graph->codec.dim);
    sl_carver carver = {0};
    carve_all(&carver, memory, shape->max_queries);
    uint8_t *block;
    SL_TRY(sl_searcher_scratch(searcher, carver.used, &block));
    carver = (sl_carver){.block = block};
    carve_all(&carver, memory, shape->max_queries);
    return SL_OK;
}
