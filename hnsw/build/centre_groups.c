#include "hnsw/build/centre_groups.h"

#include "hnsw/build/kmeans.h"

#include <string.h>

/* Centres of a group, and groups that a row looks at. */
enum { MEMBERS = 48, LOOKED_AT = 12 };

static size_t groups_of(size_t centres) {
    return centres / MEMBERS + 1;
}

/* A group's last tile is full in part. */
static size_t columns_room(size_t centres) {
    return centres + groups_of(centres) * SL_COLUMNS_TILE;
}

static size_t most_tiles(size_t centres) {
    return columns_room(centres) / SL_COLUMNS_TILE + 1;
}

size_t sl_centre_groups_bytes(const sl_codec *codec, size_t centres) {
    const size_t count = groups_of(centres);
    return (2 * centres + 2 * count + 1) * sizeof(uint32_t) + sl_columns_bytes(codec, count) +
           sl_columns_bytes(codec, columns_room(centres)) + sl_finds_bytes(codec, 1);
}

double sl_centre_groups_compared(size_t centres, double rows) {
    const double count = (double)groups_of(centres), near = count < LOOKED_AT ? count : LOOKED_AT;
    return (double)centres * count + rows * (count + near / count * (double)centres);
}

sl_status sl_centre_groups_init(sl_centre_groups *groups, const sl_graph *graph, const sl_codec *codec,
                                size_t centres) {
    const sl_allocator *allocator = &graph->allocator;
    sl_status status = SL_OK;
    *groups = (sl_centre_groups){
        .allocator = *allocator, .graph = graph, .codec = codec, .centres = centres, .count = groups_of(centres)};
    groups->order = sl_mem_array(allocator, centres, sizeof *groups->order, &status);
    groups->of = sl_mem_array(allocator, centres, sizeof *groups->of, &status);
    groups->ends = sl_mem_array(allocator, groups->count, sizeof *groups->ends, &status);
    groups->tiles = sl_mem_array(allocator, groups->count + 1, sizeof *groups->tiles, &status);
    if (status == SL_OK) status = sl_columns_init(&groups->heads, graph, codec, groups->count);
    if (status == SL_OK) status = sl_columns_init(&groups->columns, graph, codec, columns_room(centres));
    if (status == SL_OK) status = sl_finds_init(&groups->finds, graph, codec, 1);
    return status;
}

void sl_centre_groups_free(sl_centre_groups *groups) {
    sl_mem_free(&groups->allocator, groups->order, groups->centres * sizeof *groups->order);
    sl_mem_free(&groups->allocator, groups->of, groups->centres * sizeof *groups->of);
    sl_mem_free(&groups->allocator, groups->ends, groups->count * sizeof *groups->ends);
    sl_mem_free(&groups->allocator, groups->tiles, (groups->count + 1) * sizeof *groups->tiles);
    if (groups->heads.block) sl_columns_free(&groups->heads);
    if (groups->columns.block) sl_columns_free(&groups->columns);
    if (groups->finds.block) sl_finds_free(&groups->finds);
}

/* Puts each centre into the group of the head nearest to it. */
static void assign(sl_centre_groups *groups) {
    uint32_t rows[SL_PRODUCT_ROWS];
    for (size_t first = 0; first < groups->centres; first += SL_PRODUCT_ROWS) {
        const size_t left = groups->centres - first, count = left < SL_PRODUCT_ROWS ? left : SL_PRODUCT_ROWS;
        for (size_t i = 0; i < count; i++)
            rows[i] = (uint32_t)(first + i);
        sl_finds_best(&groups->finds, &groups->heads, rows, count, NULL);
        for (size_t i = 0; i < count; i++)
            groups->of[first + i] = groups->finds.scans[i].count ? groups->finds.scans[i].ids[0] : 0;
    }
}

/* Heads are centres, evenly drawn. */
void sl_centre_groups_arrange(sl_centre_groups *groups) {
    uint32_t first = 0;
    for (size_t g = 0; g < groups->count; g++)
        groups->ends[g] = (uint32_t)(g * groups->centres / groups->count);
    sl_columns_pack(&groups->heads, groups->ends, groups->count);
    assign(groups);
    sl_sort_members(groups->of, groups->centres, groups->count, groups->ends, groups->order);
    sl_columns_pack(&groups->columns, NULL, 0);
    for (size_t g = 0; g < groups->count; first = groups->ends[g++]) {
        groups->tiles[g] = (uint32_t)groups->columns.tiles;
        sl_columns_append(&groups->columns, groups->order + first, groups->ends[g] - first);
    }
    groups->tiles[groups->count] = (uint32_t)groups->columns.tiles;
}

size_t sl_centre_finds_bytes(const sl_codec *codec, size_t centres, size_t keep) {
    return most_tiles(centres) * sizeof(uint32_t) + sl_finds_bytes(codec, LOOKED_AT) + sl_finds_bytes(codec, keep);
}

sl_status sl_centre_finds_init(sl_centre_finds *finds, const sl_centre_groups *groups, size_t keep) {
    sl_status status = SL_OK;
    *finds = (sl_centre_finds){.allocator = groups->allocator, .tiles = most_tiles(groups->centres)};
    finds->asked = sl_mem_array(&finds->allocator, finds->tiles, sizeof *finds->asked, &status);
    if (status == SL_OK) status = sl_finds_init(&finds->heads, groups->graph, groups->codec, LOOKED_AT);
    if (status == SL_OK) status = sl_finds_init(&finds->finds, groups->graph, groups->codec, keep);
    return status;
}

void sl_centre_finds_free(sl_centre_finds *finds) {
    sl_mem_free(&finds->allocator, finds->asked, finds->tiles * sizeof *finds->asked);
    if (finds->heads.block) sl_finds_free(&finds->heads);
    if (finds->finds.block) sl_finds_free(&finds->finds);
}

void sl_centre_finds_ask(sl_centre_finds *finds, size_t place, const sl_query_code *query) {
    sl_finds_ask(&finds->heads, place, query, -INFINITY);
    sl_finds_ask(&finds->finds, place, query, -INFINITY);
}

void sl_centre_finds_run(sl_centre_finds *finds, const sl_centre_groups *groups, size_t count) {
    sl_finds_run(&finds->heads, &groups->heads, count, NULL);
    memset(finds->asked, 0, groups->columns.tiles * sizeof *finds->asked);
    for (size_t i = 0; i < count; i++) {
        const sl_scan *near = &finds->heads.scans[i];
        for (uint32_t j = 0; j < near->count; j++)
            for (uint32_t t = groups->tiles[near->ids[j]]; t < groups->tiles[near->ids[j] + 1]; t++)
                finds->asked[t] |= (uint32_t)1 << i;
    }
    sl_finds_run(&finds->finds, &groups->columns, count, finds->asked);
    for (size_t i = 0; i < count; i++) {
        const sl_scan *found = &finds->finds.scans[i];
        for (uint32_t j = 0; j < found->count; j++)
            found->ids[j] = groups->order[found->ids[j]];
    }
}
