#include "hnsw/construct/centre_groups.h"

#include "base/failure.h"
#include "distance/codec/encode.h"
#include "hnsw/construct/sort_by_centre.h"

#include <string.h>

/* GROUP_CENTRES: mean centres of a group. PROBED: groups whose centres a row is compared with. FLAT_HEADS: so many
 * heads aren't grouped; a row is compared with all of them. */
enum { GROUP_CENTRES = 48, PROBED = 12, FLAT_HEADS = 2048 };

/* Returns how many groups the centres, or the heads (one centre of each group), are put into. 0: they are not grouped,
 * and a row is compared with all of them. */
static size_t group_count(size_t centres, int are_heads) {
    return are_heads && centres <= FLAT_HEADS ? 0 : centres / GROUP_CENTRES + 1;
}

/* Columns of all groups at most. The last tile of a group may be partly empty. */
static size_t columns_room(size_t centres, size_t groups) {
    return centres + groups * SL_COLUMNS_TILE;
}

static size_t most_tiles(size_t centres, size_t groups) {
    return columns_room(centres, groups) / SL_COLUMNS_TILE + 1;
}

/* ---------------------------------------------------------------------------------------------------------------
 * Bytes and comparisons
 * ------------------------------------------------------------------------------------------------------------- */

static size_t top_bytes(const sl_codec *codec, size_t centres, size_t keep, int are_heads) {
    const size_t count = group_count(centres, are_heads);
    size_t bytes = sl_top_columns_bytes(codec, keep);
    if (!count) return bytes;
    bytes += sizeof(sl_top_centres) + most_tiles(centres, count) * sizeof(uint32_t);
    return bytes + top_bytes(codec, count, PROBED, 1);
}

size_t sl_top_centres_bytes(const sl_codec *codec, size_t centres, size_t keep) {
    return top_bytes(codec, centres, keep, 0);
}

static size_t groups_bytes(const sl_codec *codec, size_t centres, int are_heads) {
    const size_t count = group_count(centres, are_heads);
    size_t bytes = sl_columns_bytes(codec, columns_room(centres, count));
    if (!count) return bytes;
    bytes += sizeof(sl_centre_groups) + (2 * centres + 3 * count + 1) * sizeof(uint32_t);
    return bytes + groups_bytes(codec, count, 1);
}

size_t sl_centre_groups_bytes(const sl_codec *codec, size_t centres, size_t threads) {
    return groups_bytes(codec, centres, 0) + threads * top_bytes(codec, group_count(centres, 0), 1, 1);
}

static double row_comparisons(double centres, int are_heads) {
    const double count = (double)group_count((size_t)centres, are_heads);
    if (count == 0) return centres;
    return row_comparisons(count, 1) + (count < PROBED ? centres : PROBED / count * centres);
}

static double arrange_comparisons(double centres, int are_heads) {
    const double count = (double)group_count((size_t)centres, are_heads);
    return count == 0 ? 0 : arrange_comparisons(count, 1) + centres * row_comparisons(count, 1);
}

double sl_centre_groups_comparisons(size_t centres, double rows) {
    return arrange_comparisons((double)centres, 0) + rows * row_comparisons((double)centres, 0);
}

/* ---------------------------------------------------------------------------------------------------------------
 * Groups
 * ------------------------------------------------------------------------------------------------------------- */

static sl_status groups_init(sl_centre_groups *groups, const sl_centre_groups *like, int are_heads) {
    const sl_allocator *allocator = &like->allocator;
    const size_t centres = like->centres, count = group_count(centres, are_heads);
    sl_status status = SL_OK;
    *groups = *like;
    groups->count = count;
    if (count) {
        groups->order = sl_mem_array(allocator, centres, sizeof *groups->order, &status);
        groups->group_of = sl_mem_array(allocator, centres, sizeof *groups->group_of, &status);
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
    SL_FREE(&groups->allocator, groups->heads);
    SL_FREE_ARRAY(&groups->allocator, groups->order, groups->centres);
    SL_FREE_ARRAY(&groups->allocator, groups->group_of, groups->centres);
    SL_FREE_ARRAY(&groups->allocator, groups->ends, groups->count);
    SL_FREE_ARRAY(&groups->allocator, groups->head_rows, groups->count);
    SL_FREE_ARRAY(&groups->allocator, groups->tiles, groups->count + 1);
    if (groups->columns.block) sl_columns_free(&groups->columns);
}

static uint32_t row_of(const sl_centre_groups *groups, size_t centre) {
    return groups->rows ? groups->rows[centre] : (uint32_t)centre;
}

/* Puts each centre into the group of the nearest head, on one thread of several. */
static sl_status assign_some_centres(sl_centre_groups *groups) {
    const sl_codec *codec = groups->codec;
    sl_top_centres top;
    sl_status status = sl_top_centres_init(&top, groups->heads, 1);
#pragma omp for schedule(dynamic, 8)
    for (size_t first = 0; first < groups->centres; first += SL_TOP_QUERIES) {
        const size_t left = groups->centres - first, count = left < SL_TOP_QUERIES ? left : SL_TOP_QUERIES;
        if (status != SL_OK) continue;
        for (size_t i = 0; i < count; i++) {
            sl_query_code query;
            sl_row_as_query(codec, codec->rows.base + (size_t)row_of(groups, first + i) * codec->rows.pitch,
                            top.best.buffer, &query);
            sl_top_centres_query(&top, i, &query);
        }
        sl_top_centres_scan(&top, groups->heads, count);
        for (size_t i = 0; i < count; i++)
            groups->group_of[first + i] = top.best.scans[i].count ? top.best.scans[i].ids[0] : 0;
    }
    sl_top_centres_free(&top);
    return status;
}

static sl_status assign_centres(sl_centre_groups *groups) {
    sl_failure failed;
    sl_failure_init(&failed);
#pragma omp parallel num_threads((int)groups->threads) if (groups->threads > 1)
    sl_failure_keep(&failed, 0, assign_some_centres(groups));
    return sl_failure_pass(&failed);
}

/* Packs the centres of a group as columns. group_of, read by now, is overwritten with their rows. */
static void append_group(sl_centre_groups *groups, size_t first, size_t end) {
    for (size_t i = first; i < end && groups->rows; i++)
        groups->group_of[i] = row_of(groups, groups->order[i]);
    sl_columns_append(&groups->columns, (groups->rows ? groups->group_of : groups->order) + first, end - first);
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
    SL_TRY(assign_centres(groups));
    sl_sort_by_centre(groups->group_of, groups->centres, groups->count, groups->ends, groups->order);
    sl_columns_pack(&groups->columns, NULL, 0);
    for (size_t g = 0; g < groups->count; first = groups->ends[g++]) {
        groups->tiles[g] = (uint32_t)groups->columns.tiles;
        append_group(groups, first, groups->ends[g]);
    }
    groups->tiles[groups->count] = (uint32_t)groups->columns.tiles;
    return SL_OK;
}

/* ---------------------------------------------------------------------------------------------------------------
 * Top centres
 * ------------------------------------------------------------------------------------------------------------- */

sl_status sl_top_centres_init(sl_top_centres *top, const sl_centre_groups *groups, size_t keep) {
    sl_status status = SL_OK;
    *top = (sl_top_centres){.allocator = groups->allocator};
    if (groups->count) {
        top->tiles = most_tiles(groups->centres, groups->count);
        top->tile_queries = sl_mem_array(&top->allocator, top->tiles, sizeof *top->tile_queries, &status);
        top->heads = sl_mem_array(&top->allocator, 1, sizeof *top->heads, &status);
    }
    if (status == SL_OK) status = sl_top_columns_init(&top->best, groups->graph, groups->codec, keep);
    return status == SL_OK && groups->count ? sl_top_centres_init(top->heads, groups->heads, PROBED) : status;
}

void sl_top_centres_free(sl_top_centres *top) {
    if (top->heads) sl_top_centres_free(top->heads);
    SL_FREE(&top->allocator, top->heads);
    SL_FREE_ARRAY(&top->allocator, top->tile_queries, top->tiles);
    if (top->best.block) sl_top_columns_free(&top->best);
}

void sl_top_centres_query(sl_top_centres *top, size_t place, const sl_query_code *query) {
    if (top->heads) sl_top_centres_query(top->heads, place, query);
    sl_top_columns_query(&top->best, place, query, -INFINITY);
}

/* Marks the tiles that each query scans. */
static void mark_tiles(sl_top_centres *top, const sl_centre_groups *groups, size_t count) {
    memset(top->tile_queries, 0, groups->columns.tiles * sizeof *top->tile_queries);
    for (size_t i = 0; i < count; i++) {
        const sl_scan *near = &top->heads->best.scans[i];
        for (uint32_t j = 0; j < near->count; j++)
            for (uint32_t t = groups->tiles[near->ids[j]]; t < groups->tiles[near->ids[j] + 1]; t++)
                top->tile_queries[t] |= (uint32_t)1 << i;
    }
}

void sl_top_centres_scan(sl_top_centres *top, const sl_centre_groups *groups, size_t count) {
    if (!groups->count) {
        sl_top_columns_scan(&top->best, &groups->columns, count, NULL);
        return;
    }
    sl_top_centres_scan(top->heads, groups->heads, count);
    mark_tiles(top, groups, count);
    sl_top_columns_scan(&top->best, &groups->columns, count, top->tile_queries);
    for (size_t i = 0; i < count; i++) {
        const sl_scan *found = &top->best.scans[i];
        for (uint32_t j = 0; j < found->count; j++)
            found->ids[j] = groups->order[found->ids[j]];
    }
}
