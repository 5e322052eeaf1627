#include "hnsw/build/centre_groups.h"

#include "base/failure.h"
#include "distance/codec/encode.h"
#include "hnsw/build/sort_by_centre.h"

#include <string.h>

/* Centres of a group, and groups that a row looks at. Up to FLAT heads, a row is compared with all. */
enum { MEMBERS = 48, LOOKED_AT = 12, FLAT = 2048 };

/* Returns 0 for heads that are compared with all rows. */
static size_t groups_of(size_t centres, int are_heads) {
    return are_heads && centres <= FLAT ? 0 : centres / MEMBERS + 1;
}

/* A group's last tile is full in part. */
static size_t columns_room(size_t centres, size_t groups) {
    return centres + groups * SL_COLUMNS_TILE;
}

static size_t most_tiles(size_t centres, size_t groups) {
    return columns_room(centres, groups) / SL_COLUMNS_TILE + 1;
}

/* ---------------------------------------------------------------------------------------------------------------
 * Bytes and comparisons
 * ------------------------------------------------------------------------------------------------------------- */

static size_t finds_bytes(const sl_codec *codec, size_t centres, size_t keep, int are_heads) {
    const size_t count = groups_of(centres, are_heads);
    size_t bytes = sl_finds_bytes(codec, keep);
    if (!count) return bytes;
    bytes += sizeof(sl_centre_finds) + most_tiles(centres, count) * sizeof(uint32_t);
    return bytes + finds_bytes(codec, count, LOOKED_AT, 1);
}

size_t sl_centre_finds_bytes(const sl_codec *codec, size_t centres, size_t keep) {
    return finds_bytes(codec, centres, keep, 0);
}

static size_t groups_bytes(const sl_codec *codec, size_t centres, int are_heads) {
    const size_t count = groups_of(centres, are_heads);
    size_t bytes = sl_columns_bytes(codec, columns_room(centres, count));
    if (!count) return bytes;
    bytes += sizeof(sl_centre_groups) + (2 * centres + 3 * count + 1) * sizeof(uint32_t);
    return bytes + groups_bytes(codec, count, 1);
}

size_t sl_centre_groups_bytes(const sl_codec *codec, size_t centres, size_t threads) {
    return groups_bytes(codec, centres, 0) + threads * finds_bytes(codec, groups_of(centres, 0), 1, 1);
}

static double row_compared(double centres, int are_heads) {
    const double count = (double)groups_of((size_t)centres, are_heads);
    if (count == 0) return centres;
    return row_compared(count, 1) + (count < LOOKED_AT ? centres : LOOKED_AT / count * centres);
}

static double arranged_compared(double centres, int are_heads) {
    const double count = (double)groups_of((size_t)centres, are_heads);
    return count == 0 ? 0 : arranged_compared(count, 1) + centres * row_compared(count, 1);
}

double sl_centre_groups_compared(size_t centres, double rows) {
    return arranged_compared((double)centres, 0) + rows * row_compared((double)centres, 0);
}

/* ---------------------------------------------------------------------------------------------------------------
 * Groups
 * ------------------------------------------------------------------------------------------------------------- */

static sl_status groups_init(sl_centre_groups *groups, const sl_centre_groups *like, int are_heads) {
    const sl_allocator *allocator = &like->allocator;
    const size_t centres = like->centres, count = groups_of(centres, are_heads);
    sl_status status = SL_OK;
    *groups = *like;
    groups->count = count;
    if (count) {
        groups->order = sl_mem_array(allocator, centres, sizeof *groups->order, &status);
        groups->of = sl_mem_array(allocator, centres, sizeof *groups->of, &status);
        groups->ends = sl_mem_array(allocator, count, sizeof *groups->ends, &status);
        groups->head_rows = sl_mem_array(allocator, count, sizeof *groups->head_rows, &status);
        groups->tiles = sl_mem_array(allocator, count + 1, sizeof *groups->tiles, &status);
        groups->heads = sl_mem_array(allocator, 1, sizeof *groups->heads, &status);
    }
    if (status == SL_OK)
        status = sl_columns_init(&groups->columns, groups->graph, groups->codec, columns_room(centres, count));
    if (status != SL_OK || !count) return status;
    sl_centre_groups heads = *like;
    heads.rows = groups->head_rows;
    heads.centres = count;
    return groups_init(groups->heads, &heads, 1);
}

sl_status sl_centre_groups_init(sl_centre_groups *groups, const sl_graph *graph, const sl_codec *codec, size_t centres,
                                size_t threads) {
    const sl_centre_groups like = {
        .allocator = graph->allocator, .graph = graph, .codec = codec, .centres = centres, .threads = threads};
    return groups_init(groups, &like, 0);
}

void sl_centre_groups_free(sl_centre_groups *groups) {
    if (groups->heads) sl_centre_groups_free(groups->heads);
    sl_mem_free(&groups->allocator, groups->heads, sizeof *groups->heads);
    sl_mem_free(&groups->allocator, groups->order, groups->centres * sizeof *groups->order);
    sl_mem_free(&groups->allocator, groups->of, groups->centres * sizeof *groups->of);
    sl_mem_free(&groups->allocator, groups->ends, groups->count * sizeof *groups->ends);
    sl_mem_free(&groups->allocator, groups->head_rows, groups->count * sizeof *groups->head_rows);
    sl_mem_free(&groups->allocator, groups->tiles, (groups->count + 1) * sizeof *groups->tiles);
    if (groups->columns.block) sl_columns_free(&groups->columns);
}

static uint32_t row_of(const sl_centre_groups *groups, size_t centre) {
    return groups->rows ? groups->rows[centre] : (uint32_t)centre;
}

/* Puts each centre into the group of the head nearest to it, on one thread of several. */
static sl_status assign_some(sl_centre_groups *groups) {
    const sl_codec *codec = groups->codec;
    sl_centre_finds finds;
    sl_status status = sl_centre_finds_init(&finds, groups->heads, 1);
#pragma omp for schedule(dynamic, 8)
    for (size_t first = 0; first < groups->centres; first += SL_PRODUCT_ROWS) {
        const size_t left = groups->centres - first, count = left < SL_PRODUCT_ROWS ? left : SL_PRODUCT_ROWS;
        if (status != SL_OK) continue;
        for (size_t i = 0; i < count; i++) {
            sl_query_code query;
            sl_row_as_query(codec, codec->rows.base + (size_t)row_of(groups, first + i) * codec->rows.pitch,
                            finds.finds.buffer, &query);
            sl_centre_finds_ask(&finds, i, &query);
        }
        sl_centre_finds_run(&finds, groups->heads, count);
        for (size_t i = 0; i < count; i++)
            groups->of[first + i] = finds.finds.scans[i].count ? finds.finds.scans[i].ids[0] : 0;
    }
    sl_centre_finds_free(&finds);
    return status;
}

static sl_status assign(sl_centre_groups *groups) {
    sl_failure failed;
    sl_failure_init(&failed);
#pragma omp parallel num_threads((int)groups->threads) if (groups->threads > 1)
    sl_failure_keep(&failed, 0, assign_some(groups));
    return sl_failure_pass(&failed);
}

/* Packs a group's centres, whose rows may be any. */
static void append(sl_centre_groups *groups, size_t first, size_t end) {
    for (size_t i = first; i < end && groups->rows; i++)
        groups->of[i] = row_of(groups, groups->order[i]);
    sl_columns_append(&groups->columns, (groups->rows ? groups->of : groups->order) + first, end - first);
}

/* Heads are centres, evenly drawn. */
sl_status sl_centre_groups_arrange(sl_centre_groups *groups) {
    size_t first = 0;
    if (!groups->count) {
        sl_columns_pack(&groups->columns, groups->rows, groups->centres);
        return SL_OK;
    }
    for (size_t g = 0; g < groups->count; g++)
        groups->head_rows[g] = row_of(groups, g * groups->centres / groups->count);
    SL_TRY(sl_centre_groups_arrange(groups->heads));
    SL_TRY(assign(groups));
    sl_sort_members(groups->of, groups->centres, groups->count, groups->ends, groups->order);
    sl_columns_pack(&groups->columns, NULL, 0);
    for (size_t g = 0; g < groups->count; first = groups->ends[g++]) {
        groups->tiles[g] = (uint32_t)groups->columns.tiles;
        append(groups, first, groups->ends[g]);
    }
    groups->tiles[groups->count] = (uint32_t)groups->columns.tiles;
    return SL_OK;
}

/* ---------------------------------------------------------------------------------------------------------------
 * Finds
 * ------------------------------------------------------------------------------------------------------------- */

sl_status sl_centre_finds_init(sl_centre_finds *finds, const sl_centre_groups *groups, size_t keep) {
    sl_status status = SL_OK;
    *finds = (sl_centre_finds){.allocator = groups->allocator};
    if (groups->count) {
        finds->tiles = most_tiles(groups->centres, groups->count);
        finds->asked = sl_mem_array(&finds->allocator, finds->tiles, sizeof *finds->asked, &status);
        finds->heads = sl_mem_array(&finds->allocator, 1, sizeof *finds->heads, &status);
    }
    if (status == SL_OK) status = sl_finds_init(&finds->finds, groups->graph, groups->codec, keep);
    return status == SL_OK && groups->count ? sl_centre_finds_init(finds->heads, groups->heads, LOOKED_AT) : status;
}

void sl_centre_finds_free(sl_centre_finds *finds) {
    if (finds->heads) sl_centre_finds_free(finds->heads);
    sl_mem_free(&finds->allocator, finds->heads, sizeof *finds->heads);
    sl_mem_free(&finds->allocator, finds->asked, finds->tiles * sizeof *finds->asked);
    if (finds->finds.block) sl_finds_free(&finds->finds);
}

void sl_centre_finds_ask(sl_centre_finds *finds, size_t place, const sl_query_code *query) {
    if (finds->heads) sl_centre_finds_ask(finds->heads, place, query);
    sl_finds_ask(&finds->finds, place, query, -INFINITY);
}

/* Puts down which queries look at a tile. */
static void ask_tiles(sl_centre_finds *finds, const sl_centre_groups *groups, size_t count) {
    memset(finds->asked, 0, groups->columns.tiles * sizeof *finds->asked);
    for (size_t i = 0; i < count; i++) {
        const sl_scan *near = &finds->heads->finds.scans[i];
        for (uint32_t j = 0; j < near->count; j++)
            for (uint32_t t = groups->tiles[near->ids[j]]; t < groups->tiles[near->ids[j] + 1]; t++)
                finds->asked[t] |= (uint32_t)1 << i;
    }
}

void sl_centre_finds_run(sl_centre_finds *finds, const sl_centre_groups *groups, size_t count) {
    if (!groups->count) {
        sl_finds_run(&finds->finds, &groups->columns, count, NULL);
        return;
    }
    sl_centre_finds_run(finds->heads, groups->heads, count);
    ask_tiles(finds, groups, count);
    sl_finds_run(&finds->finds, &groups->columns, count, finds->asked);
    for (size_t i = 0; i < count; i++) {
        const sl_scan *found = &finds->finds.scans[i];
        for (uint32_t j = 0; j < found->count; j++)
            found->ids[j] = groups->order[found->ids[j]];
    }
}
