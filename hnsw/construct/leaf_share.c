#include "hnsw/construct/leaf_share.h"

#include "hnsw/construct/sort_by_centre.h"

#include <string.h>

static int has_bit(const uint64_t *bits, size_t i) {
    return bits[i / 64] >> (i % 64) & 1;
}

static size_t leaf_size(const sl_leaves *leaves, size_t leaf) {
    return leaves->starts[leaf + 1] - leaves->starts[leaf];
}

/* ---------------------------------------------------------------------------------------------------------------
 * The rank's leaves
 * ------------------------------------------------------------------------------------------------------------- */

/* Comparisons of a leaf. */
static uint64_t leaf_cost(const sl_leaves *leaves, size_t leaf) {
    const size_t size = leaf_size(leaves, leaf);
    return size * (leaves->targets ? SL_LEAF_TARGETS : size);
}

/* Sorts some leaves that have no note by their middle points. Returns how many there are. `of` and `ends`: scratch, one
 * entry per leaf. */
static size_t sort_leaves(const sl_leaves *leaves, sl_range some, const uint64_t *noted, uint32_t *of, uint32_t *ends,
                          uint32_t *sorted) {
    memset(of, 0xff, leaves->count * sizeof *of);
    for (size_t leaf = some.first; leaf < some.end; leaf++) {
        const size_t size = leaf_size(leaves, leaf);
        const uint64_t middle = size ? leaves->points[leaves->starts[leaf] + size / 2] : 0;
        of[leaf] = has_bit(noted, leaf) ? SL_NONE : (uint32_t)(middle * leaves->count / leaves->n);
    }
    sl_sort_by_centre(of, leaves->count, leaves->count, ends, sorted);
    return leaves->count ? ends[leaves->count - 1] : 0;
}

/* Gives each rank a run of the sorted leaves with the same share of all comparisons. */
static void take_leaves(sl_leaf_share *s, const sl_ranks *ranks, const sl_leaves *leaves, const uint32_t *sorted,
                        size_t count) {
    uint64_t all = 0, before = 0;
    for (size_t i = 0; i < count; i++)
        all += leaf_cost(leaves, sorted[i]);
    for (size_t i = 0; i < count; i++) {
        const uint64_t cost = leaf_cost(leaves, sorted[i]), middle = before + cost / 2;
        if (!all || (double)middle / (double)all * (double)ranks->ranks >= (double)ranks->rank + 1) break;
        if ((double)middle / (double)all * (double)ranks->ranks >= (double)ranks->rank)
            s->leaves[s->leaf_count++] = sorted[i];
        before += cost;
    }
}

static void mark_points(sl_leaf_share *s, const sl_leaves *leaves, size_t leaf) {
    for (size_t i = leaves->starts[leaf]; i < leaves->starts[leaf + 1]; i++)
        s->places[leaves->points[i]] = 0;
}

/* Gives a place to each point of the rank's leaves, and of those that it has a note of. */
static sl_status number_points(sl_leaf_share *s, const sl_leaves *leaves, const uint64_t *own) {
    sl_status status = SL_OK;
    memset(s->places, 0xff, leaves->n * sizeof *s->places);
    for (size_t i = 0; i < s->leaf_count; i++)
        mark_points(s, leaves, s->leaves[i]);
    for (size_t leaf = 0; leaf < leaves->count && own; leaf++)
        if (has_bit(own, leaf)) mark_points(s, leaves, leaf);
    for (size_t point = 0; point < leaves->n; point++)
        s->point_room += s->places[point] != SL_NONE;
    s->points = sl_mem_array(&s->allocator, s->point_room, sizeof *s->points, &status);
    SL_TRY(status);
    for (size_t point = 0; point < leaves->n; point++) {
        if (s->places[point] == SL_NONE) continue;
        s->places[point] = (uint32_t)s->place_count;
        s->points[s->place_count++] = (uint32_t)point;
    }
    return SL_OK;
}

sl_status sl_leaf_share_init(sl_leaf_share *s, const sl_points *points, const sl_leaves *leaves, sl_range some,
                             const uint64_t *noted, const uint64_t *own) {
    const sl_allocator *allocator = &points->graph->allocator;
    sl_status status = SL_OK;
    *s = (sl_leaf_share){.allocator = *allocator, .leaf_room = leaves->count, .n = leaves->n};
    s->leaves = sl_mem_array(allocator, s->leaf_room, sizeof *s->leaves, &status);
    s->places = sl_mem_array(allocator, leaves->n, sizeof *s->places, &status);
    uint32_t *scratch = sl_mem_array(allocator, 3 * leaves->count, sizeof *scratch, &status);
    if (status == SL_OK) {
        uint32_t *ends = scratch + leaves->count, *sorted = ends + leaves->count;
        take_leaves(s, points->ranks, leaves, sorted, sort_leaves(leaves, some, noted, scratch, ends, sorted));
        status = number_points(s, leaves, own);
    }
    SL_FREE_ARRAY(allocator, scratch, 3 * leaves->count);
    return status;
}

void sl_leaf_share_free(sl_leaf_share *s) {
    SL_FREE_ARRAY(&s->allocator, s->leaves, s->leaf_room);
    SL_FREE_ARRAY(&s->allocator, s->places, s->n);
    SL_FREE_ARRAY(&s->allocator, s->points, s->point_room);
}

/* ---------------------------------------------------------------------------------------------------------------
 * The exchange of lists
 * ------------------------------------------------------------------------------------------------------------- */

/* A list in a message: the point above the number of entries, then the entries. */
typedef uint64_t word;

/* The places of the points that a rank owns. Both rise, so these are a run. */
static sl_range places_of(const sl_leaf_share *s, const sl_points *points, size_t rank) {
    const sl_range owned = sl_share_of_rank(points->ranks, rank, points->n, SL_POINTS_UNIT);
    sl_range places = {s->place_count, s->place_count};
    for (size_t bound = 0; bound < 2; bound++) {
        size_t first = 0, end = s->place_count;
        while (first < end) {
            const size_t middle = first + (end - first) / 2;
            if (s->points[middle] < (bound ? owned.end : owned.first))
                first = middle + 1;
            else
                end = middle;
        }
        *(bound ? &places.end : &places.first) = first;
    }
    return places;
}

static void write_lists(const sl_leaf_share *s, const sl_neighbour_lists *local, sl_range places, word *to) {
    for (size_t i = places.first; i < places.end; i++) {
        const size_t count = local->count[i];
        *to++ = (word)s->points[i] << 32 | count;
        memcpy(to, local->entries + i * local->width, count * sizeof *to);
        to += count;
    }
}

/* Makes a part for each rank, of the lists of its points. The own part is empty. */
static sl_status make_parts(const sl_leaf_share *s, const sl_points *points, const sl_neighbour_lists *local,
                            sl_parts *to) {
    const sl_ranks *ranks = points->ranks;
    sl_status status = SL_OK;
    size_t *sizes = sl_mem_array(&s->allocator, ranks->ranks, sizeof *sizes, &status);
    SL_TRY(status);
    for (size_t r = 0; r < ranks->ranks; r++) {
        const sl_range places = places_of(s, points, r);
        for (size_t i = places.first; i < places.end && r != ranks->rank; i++)
            sizes[r] += (1 + (size_t)local->count[i]) * sizeof(word);
    }
    status = sl_parts_create(&s->allocator, ranks->ranks, sizes, to);
    for (size_t r = 0; r < ranks->ranks && status == SL_OK; r++)
        if (sizes[r]) write_lists(s, local, places_of(s, points, r), (word *)(void *)(to->data + to->at[r]));
    SL_FREE_ARRAY(&s->allocator, sizes, ranks->ranks);
    return status;
}

static void merge_list(sl_neighbour_lists *lists, size_t point, const sl_neighbour *list, size_t count,
                       sl_neighbour *scratch) {
    const size_t to = point - lists->first;
    sl_neighbour *own = lists->entries + to * lists->width;
    memcpy(scratch, own, lists->count[to] * sizeof *own);
    lists->count[to] = (uint16_t)sl_neighbours_merge(scratch, lists->count[to], list, count, own, lists->width);
}

/* Merges what the rank's own leaves gave into its lists of points [first, end). `scratch`: `width` entries. */
static void merge_local(const sl_leaf_share *s, sl_neighbour_lists *lists, const sl_neighbour_lists *local,
                        sl_range places, sl_range points, sl_neighbour *scratch) {
    for (size_t i = places.first; i < places.end && s->points[i] < points.end; i++)
        if (s->points[i] >= points.first)
            merge_list(lists, s->points[i], local->entries + i * local->width, local->count[i], scratch);
}

/* Merges the lists that one rank sent into those of points [first, end). `scratch`: `width` entries. */
static void merge_part(sl_neighbour_lists *lists, const word *at, const word *part_end, sl_range points,
                       sl_neighbour *scratch) {
    while (at < part_end) {
        const size_t point = (size_t)(*at >> 32), count = (uint32_t)*at;
        if (point >= points.end) return;
        if (point >= points.first) merge_list(lists, point, at + 1, count, scratch);
        at += 1 + count;
    }
}

/* Merges what the rank's leaves gave, and what all ranks sent. Each thread merges the lists of its share of the points.
 */
static sl_status merge_all(const sl_leaf_share *s, const sl_points *points, const sl_neighbour_lists *local,
                           const sl_parts *from, sl_neighbour_lists *lists) {
    const sl_range places = places_of(s, points, points->ranks->rank);
    const size_t threads = points->threads;
    sl_status status = SL_OK;
    sl_neighbour *scratch = sl_mem_array(&lists->allocator, threads * lists->width, sizeof *scratch, &status);
    SL_TRY(status);
#pragma omp parallel for schedule(static, 1) num_threads((int)threads) if (threads > 1)
    for (size_t t = 0; t < threads; t++) {
        const sl_range some = {lists->first + lists->n * t / threads, lists->first + lists->n * (t + 1) / threads};
        merge_local(s, lists, local, places, some, scratch + t * lists->width);
        for (size_t r = 0; r < from->ranks; r++)
            merge_part(lists, (const word *)(const void *)(from->data + from->at[r]),
                       (const word *)(const void *)(from->data + from->at[r + 1]), some, scratch + t * lists->width);
    }
    SL_FREE_ARRAY(&lists->allocator, scratch, threads * lists->width);
    return SL_OK;
}

sl_status sl_leaf_share_exchange(const sl_leaf_share *s, const sl_points *points, sl_status mine,
                                 sl_neighbour_lists *local, sl_neighbour_lists *lists) {
    sl_parts to = {.data = NULL}, from;
    if (mine == SL_OK) mine = make_parts(s, points, local, &to);
    mine = sl_share_exchange(points->ranks, mine, &to, &from);
    sl_parts_free(&to);
    if (mine == SL_OK) mine = merge_all(s, points, local, &from, lists);
    sl_neighbour_lists_free(local);
    sl_parts_free(&from);
    return sl_ranks_agree(points->ranks, mine);
}
