#include "hnsw/construct/neighbour_lists.h"

#include "base/failure.h"
#include "hnsw/construct/leaf_notes.h"
#include "hnsw/construct/leaf_share.h"
#include "hnsw/construct/top_columns.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* Locks of all lists. List i has lock i % LOCKS. */
enum { LOCKS = 4096 };

/* ---------------------------------------------------------------------------------------------------------------
 * Pairs
 * ------------------------------------------------------------------------------------------------------------- */

/* Shared by all threads. */
typedef struct sl_leaf_pairs {
    const sl_points *points;
    const sl_leaves *leaves;
    sl_neighbour_lists *lists;
    sl_spin *locks;
    /* The lowest score of each full list; -INFINITY for other lists. It only rises. A target that scores below it can't
     * be in the final list. So the result doesn't depend on when a thread reads it. */
    float *worst;
    uint64_t *noted; /* one bit per leaf, set if its note was read; the leaf then isn't compared */
    /* In a shared build: the rank's leaves, and the places of the lists that it has. NULL: this process compares all
     * leaves, and a point's place is its number. */
    const sl_leaf_share *own;
} sl_leaf_pairs;

/* Returns the place of a point's list. */
static size_t place_of(const sl_leaf_pairs *pairs, uint32_t point) {
    return pairs->own ? pairs->own->places[point] : point;
}

/* One thread's scratch. */
typedef struct pairing {
    const sl_points *points;
    sl_neighbour_lists *lists;
    const sl_leaf_pairs *pairs;
    sl_columns columns;
    sl_top_columns top;
    uint32_t *rows;      /* of the leaf's targets */
    sl_neighbour *found; /* a point's top-k in one leaf: a score's rank above the complement of the target's place */
    sl_neighbour *entries, *scratch; /* the top-k as entries of the neighbour list; scratch of the same size */
    sl_leaf_note note;
    int is_noted; /* the leaf being compared gets a note */
} pairing;

/* Targets of a top-k: one more than the width, since a point finds itself. */
static size_t most_found(size_t width) {
    return width + 1;
}

/* Room for what a scan finds: the top-k, and up to a quarter more that tie with the last. */
static size_t found_room(size_t width) {
    return 2 * most_found(width);
}

static sl_status pairing_init(pairing *p, const sl_leaf_pairs *pairs) {
    const sl_points *points = pairs->points;
    sl_neighbour_lists *lists = pairs->lists;
    sl_status status = SL_OK;
    *p = (pairing){.points = points, .lists = lists, .pairs = pairs};
    p->rows = sl_mem_array(&lists->allocator, SL_MAX_LEAF_POINTS, sizeof *p->rows, &status);
    p->found = sl_mem_array(&lists->allocator, found_room(lists->width), sizeof *p->found, &status);
    p->entries = sl_mem_array(&lists->allocator, 2 * most_found(lists->width), sizeof *p->entries, &status);
    p->scratch = p->entries ? p->entries + most_found(lists->width) : NULL;
    if (points->work) {
        p->note.room = sl_leaf_note_room(pairs->leaves, most_found(lists->width));
        p->note.words = sl_mem_array(&lists->allocator, p->note.room, sizeof *p->note.words, &status);
    }
    if (status == SL_OK) status = sl_columns_init(&p->columns, points->graph, points->codec, SL_MAX_LEAF_POINTS);
    if (status == SL_OK) status = sl_top_columns_init(&p->top, points->graph, points->codec, most_found(lists->width));
    return status;
}

static void pairing_free(pairing *p) {
    SL_FREE_ARRAY(&p->lists->allocator, p->rows, SL_MAX_LEAF_POINTS);
    SL_FREE_ARRAY(&p->lists->allocator, p->found, found_room(p->lists->width));
    SL_FREE_ARRAY(&p->lists->allocator, p->entries, 2 * most_found(p->lists->width));
    SL_FREE_ARRAY(&p->lists->allocator, p->note.words, p->note.room);
    if (p->columns.block) sl_columns_free(&p->columns);
    if (p->top.block) sl_top_columns_free(&p->top);
}

/* Lower bound of scores that can still enter the list. An entry equal to the worst can still enter, also if the worst
 * is 0. */
static float lower_bound(float worst, float shift) {
    const float rounded = 8 * FLT_EPSILON * (fabsf(worst) + fabsf(shift)) + FLT_MIN;
    return worst > -INFINITY ? worst - shift - rounded : worst;
}

/* Makes a point's top-k in the leaf of what the scan found. Among equal scores, the first in the leaf win. Entries that
 * tie with the last are cut, since their number depends on the threads: a scan keeps more of them if its lower bound
 * left out more targets. Returns the number of targets. */
static size_t keep_found(pairing *p, const sl_scan *found) {
    const size_t most = most_found(p->lists->width);
    for (size_t i = 0; i < found->count; i++)
        p->found[i] = sl_neighbour_rank(found->scores[i]) | ~found->ids[i];
    if (found->count <= most) return found->count;
    sl_neighbours_keep(p->found, found->count, most);
    return most;
}

/* Turns a point's top-k in a leaf into entries of its neighbour list, the nearest first. Leaves out targets that can't
 * enter the list at `place`. `found`: n targets. Returns the number of entries. */
static size_t make_entries(pairing *p, const uint32_t *targets, uint32_t point, size_t place, const sl_neighbour *found,
                           size_t n) {
    const float shift = sl_neighbour_shift(p->points->codec, sl_point_row(p->points, point));
    float worst;
    size_t count = 0;
    __atomic_load(&p->pairs->worst[place], &worst, __ATOMIC_RELAXED);
    const sl_neighbour least = sl_neighbour_rank(worst);
    for (size_t i = 0; i < n; i++) {
        const uint32_t other = targets[~(uint32_t)found[i]];
        p->entries[count] = sl_neighbour_of(sl_neighbour_score(found[i]) + shift, other);
        count += other != point && p->entries[count] >= least;
    }
    sl_neighbours_sort(p->entries, count, p->scratch);
    return count;
}

/* Merges a point's top-k in a leaf into its neighbour list. A pair has the same score in every leaf, so a point found
 * again gives an equal entry. */
static void merge_into_list(pairing *p, const uint32_t *targets, uint32_t point, const sl_neighbour *found, size_t n) {
    sl_neighbour_lists *lists = p->lists;
    const size_t place = place_of(p->pairs, point), fresh = make_entries(p, targets, point, place, found, n);
    if (!fresh) return;
    sl_neighbour *list = lists->entries + place * lists->width;
    sl_spin *lock = &p->pairs->locks[place % LOCKS];
    sl_spin_lock(lock);
    memcpy(p->scratch, list, lists->count[place] * sizeof *list);
    const size_t count = sl_neighbours_merge(p->scratch, lists->count[place], p->entries, fresh, list, lists->width);
    lists->count[place] = (uint16_t)count;
    if (count == lists->width) {
        float worst = sl_neighbour_score(list[count - 1]);
        __atomic_store(&p->pairs->worst[place], &worst, __ATOMIC_RELAXED);
    }
    sl_spin_unlock(lock);
}

/* Merges the top-k in p->found, of n targets, and adds it to the note. */
static void merge_found(pairing *p, const uint32_t *targets, uint32_t point, size_t n) {
    sl_leaf_note *note = &p->note;
    merge_into_list(p, targets, point, p->found, n);
    if (!p->is_noted) return;
    note->words[note->count++] = n;
    memcpy(note->words + note->count, p->found, n * sizeof *note->words);
    note->count += n;
}

/* Packs the leaf's targets as columns, and returns them. */
static const uint32_t *pack_targets(pairing *p, const sl_leaves *leaves, size_t leaf) {
    size_t count;
    const uint32_t *targets = sl_leaf_targets(leaves, leaf, &count);
    for (size_t i = 0; i < count; i++)
        p->rows[i] = sl_point_row(p->points, targets[i]);
    sl_columns_pack(&p->columns, p->rows, count);
    return targets;
}

static void compare_leaf(pairing *p, const sl_leaves *leaves, size_t leaf) {
    const uint32_t *own = leaves->points + leaves->starts[leaf], *targets = pack_targets(p, leaves, leaf);
    const size_t size = leaves->starts[leaf + 1] - leaves->starts[leaf];
    p->note.count = 0;
    p->is_noted = p->note.words && size <= SL_MAX_LEAF_POINTS;
    for (size_t first = 0; first < size; first += SL_TOP_QUERIES) {
        size_t count = size - first < SL_TOP_QUERIES ? size - first : SL_TOP_QUERIES;
        uint32_t rows[SL_TOP_QUERIES];
        float least[SL_TOP_QUERIES];
        for (size_t i = 0; i < count; i++) {
            float worst;
            rows[i] = sl_point_row(p->points, own[first + i]);
            __atomic_load(&p->pairs->worst[place_of(p->pairs, own[first + i])], &worst, __ATOMIC_RELAXED);
            least[i] = lower_bound(worst, sl_neighbour_shift(p->points->codec, rows[i]));
        }
        sl_top_columns_of_rows(&p->top, &p->columns, rows, count, least);
        for (size_t i = 0; i < count; i++)
            merge_found(p, targets, own[first + i], keep_found(p, &p->top.scans[i]));
    }
}

static int is_noted(const sl_leaf_pairs *pairs, size_t leaf) {
    return pairs->noted[leaf / 64] >> (leaf % 64) & 1;
}

static sl_status compare_and_note(pairing *p, size_t leaf) {
    if (is_noted(p->pairs, leaf)) return SL_OK;
    compare_leaf(p, p->pairs->leaves, leaf);
    return p->is_noted ? sl_leaf_note_write(p->points->work, leaf, &p->note) : SL_OK;
}

static sl_status compare_leaves(const sl_leaf_pairs *pairs) {
    const sl_leaf_share *own = pairs->own;
    const size_t count = own ? own->leaf_count : pairs->leaves->count;
    const sl_points *points = pairs->points;
    sl_failure failed;
    sl_failure_init(&failed);
#pragma omp parallel num_threads((int)points->threads) if (points->threads > 1)
    {
        pairing p;
        sl_failure_keep(&failed, 0, pairing_init(&p, pairs));
#pragma omp for schedule(dynamic, 1)
        for (size_t i = 0; i < count; i++) {
            if (sl_failure_before(&failed, count) || sl_progress_cancelled(points->progress)) continue;
            sl_failure_keep(&failed, i, compare_and_note(&p, own ? own->leaves[i] : i));
            sl_points_step(points, SL_PAIR_PARTS, i, count);
        }
        pairing_free(&p);
    }
    SL_TRY(sl_failure_pass(&failed));
    return sl_progress_cancelled(points->progress) ? sl_progress_end(points->progress) : SL_OK;
}

/* Merges the top-k of all leaves that have a note. */
static sl_status merge_notes(const sl_leaf_pairs *pairs) {
    const sl_leaves *leaves = pairs->leaves;
    const sl_points *points = pairs->points;
    pairing p;
    size_t leaf;
    sl_status status = pairing_init(&p, pairs);
    while (status == SL_OK &&
           sl_leaf_note_read(points->work, leaves, most_found(pairs->lists->width), &leaf, &p.note)) {
        size_t count;
        const uint32_t *own = leaves->points + leaves->starts[leaf], *targets = sl_leaf_targets(leaves, leaf, &count);
        const uint64_t *words = p.note.words;
        for (size_t i = 0; i < leaves->starts[leaf + 1] - leaves->starts[leaf]; i++, words += *words + 1)
            merge_into_list(&p, targets, own[i], words + 1, *words);
        pairs->noted[leaf / 64] |= (uint64_t)1 << (leaf % 64);
    }
    pairing_free(&p);
    return status;
}

sl_bytes sl_neighbour_lists_bytes(const sl_points *points, size_t width) {
    const size_t n = points->n, kept = n * (width * sizeof(sl_neighbour) + sizeof(uint16_t));
    const size_t pairing =
        SL_MAX_LEAF_POINTS * sizeof(uint32_t) + (found_room(width) + 2 * most_found(width)) * sizeof(sl_neighbour) +
        sl_columns_bytes(points->codec, SL_MAX_LEAF_POINTS) + sl_top_columns_bytes(points->codec, most_found(width));
    return (sl_bytes){kept, kept + LOCKS * sizeof(sl_spin) + n * sizeof(float) + points->threads * pairing};
}

/* Words of a set of leaves. */
static size_t leaf_words(const sl_leaves *leaves) {
    return leaves->count / 64 + 1;
}

/* Makes n lists of what the leaves give. `own`: see sl_leaf_pairs. `bounds`: a score that each point's entries must
 * reach at least; NULL: none. `has_notes`: notes are merged too. */
static sl_status make_lists(sl_neighbour_lists *lists, const sl_points *points, const sl_leaves *leaves,
                            const sl_leaf_share *own, size_t width, const float *bounds, int has_notes) {
    const sl_allocator *allocator = &points->graph->allocator;
    const size_t n = own ? own->place_count : points->n;
    sl_status status = SL_OK;
    *lists = (sl_neighbour_lists){.allocator = *allocator, .n = n, .width = width};
    lists->entries = sl_mem_array(allocator, n * width, sizeof *lists->entries, &status);
    lists->count = sl_mem_array(allocator, n, sizeof *lists->count, &status);
    sl_leaf_pairs pairs = {.points = points, .leaves = leaves, .lists = lists, .own = own};
    pairs.locks = sl_mem_array(allocator, LOCKS, sizeof *pairs.locks, &status);
    pairs.worst = sl_mem_array(allocator, n, sizeof *pairs.worst, &status);
    pairs.noted = sl_mem_array(allocator, leaf_words(leaves), sizeof *pairs.noted, &status);
    for (size_t i = 0; i < n && status == SL_OK; i++)
        pairs.worst[i] = bounds ? bounds[own->points[i]] : -INFINITY;
    if (status == SL_OK && has_notes) status = merge_notes(&pairs);
    if (status == SL_OK) status = compare_leaves(&pairs);
    SL_FREE_ARRAY(allocator, pairs.locks, LOCKS);
    SL_FREE_ARRAY(allocator, pairs.worst, n);
    SL_FREE_ARRAY(allocator, pairs.noted, leaf_words(leaves));
    return status;
}

/* Finds the leaves that the rank has notes of, and sets their bits. The notes can then be read from the first again. */
static sl_status find_noted(const sl_points *points, const sl_leaves *leaves, size_t width, uint64_t *noted) {
    const sl_allocator *allocator = &points->graph->allocator;
    const sl_work_mark mark = sl_work_here(points->work);
    sl_leaf_note note = {.room = sl_leaf_note_room(leaves, most_found(width))};
    sl_status status = SL_OK;
    size_t leaf;
    note.words = sl_mem_array(allocator, note.room, sizeof *note.words, &status);
    while (status == SL_OK && sl_leaf_note_read(points->work, leaves, most_found(width), &leaf, &note))
        noted[leaf / 64] |= (uint64_t)1 << (leaf % 64);
    sl_work_go_back(points->work, mark);
    SL_FREE_ARRAY(allocator, note.words, note.room);
    return status;
}

/* Finds the leaves with notes. sets: a set of leaves per rank, and after them the set of all. */
static sl_status gather_noted(const sl_points *points, const sl_leaves *leaves, size_t width, uint64_t *sets,
                              sl_status mine) {
    const sl_ranks *ranks = points->ranks;
    const size_t words = leaf_words(leaves);
    if (mine == SL_OK && points->work) mine = find_noted(points, leaves, width, sets + ranks->rank * words);
    SL_TRY(sl_share_gather(ranks, mine, sets, words * sizeof *sets, ranks->ranks, 1));
    sl_work_counts counts = {.pieces = leaves->count};
    uint64_t *all = sets + ranks->ranks * words;
    for (size_t i = 0; i < ranks->ranks * words; i++)
        all[i % words] |= sets[i];
    for (size_t i = 0; i < words; i++)
        counts.noted += (uint64_t)__builtin_popcountll(all[i]);
    if (points->work) sl_work_count(points->work, counts);
    return SL_OK;
}

/* Compares the rank's share of some leaves, and merges what they gave into the lists of the points' owners. */
static sl_status compare_some(sl_neighbour_lists *lists, const sl_points *points, const sl_leaves *leaves,
                              sl_range some, const uint64_t *noted, const uint64_t *own_notes, const float *bounds) {
    sl_neighbour_lists local = {0};
    sl_leaf_share own;
    sl_status status = sl_leaf_share_init(&own, points, leaves, some, noted, own_notes);
    if (status == SL_OK)
        status = make_lists(&local, points, leaves, &own, lists->width, bounds, points->work && own_notes);
    status = sl_leaf_share_exchange(&own, points, status, &local, lists);
    sl_leaf_share_free(&own);
    return status;
}

/* Gives every rank the lowest score of each full list, -INFINITY for other lists. */
static sl_status gather_bounds(const sl_neighbour_lists *lists, const sl_points *points, float *bounds,
                               sl_status mine) {
    for (size_t i = 0; i < lists->n && mine == SL_OK; i++)
        bounds[lists->first + i] =
            lists->count[i] < lists->width ? -INFINITY : sl_neighbour_score(lists->entries[(i + 1) * lists->width - 1]);
    return sl_share_gather(points->ranks, mine, bounds, sizeof *bounds, points->n, SL_POINTS_UNIT);
}

/* Compares all leaves. The first half, which is about one partitioning, gives bounds for the second: without them, a
 * point whose leaves are on several ranks would be compared with a bound on none. */
static sl_status compare_halves(sl_neighbour_lists *lists, const sl_points *points, const sl_leaves *leaves,
                                const uint64_t *noted, const uint64_t *own_notes) {
    const sl_allocator *allocator = &points->graph->allocator;
    const size_t half = leaves->count / 2;
    sl_status status = compare_some(lists, points, leaves, (sl_range){0, half}, noted, own_notes, NULL);
    float *bounds = sl_mem_array(allocator, points->n, sizeof *bounds, &status);
    status = gather_bounds(lists, points, bounds, status);
    if (status == SL_OK)
        status = compare_some(lists, points, leaves, (sl_range){half, leaves->count}, noted, NULL, bounds);
    SL_FREE_ARRAY(allocator, bounds, points->n);
    return status;
}

/* Makes the lists of the rank's points, from the leaves of all ranks. */
static sl_status make_shared(sl_neighbour_lists *lists, const sl_points *points, const sl_leaves *leaves,
                             size_t width) {
    const sl_allocator *allocator = &points->graph->allocator;
    const size_t words = leaf_words(leaves), ranks = points->ranks->ranks;
    const sl_range mine = sl_points_mine(points);
    sl_status status = SL_OK;
    *lists =
        (sl_neighbour_lists){.allocator = *allocator, .first = mine.first, .n = mine.end - mine.first, .width = width};
    lists->entries = sl_mem_array(allocator, lists->n * width, sizeof *lists->entries, &status);
    lists->count = sl_mem_array(allocator, lists->n, sizeof *lists->count, &status);
    uint64_t *sets = sl_mem_array(allocator, (ranks + 1) * words, sizeof *sets, &status);
    status = gather_noted(points, leaves, width, sets, status);
    if (status == SL_OK)
        status = compare_halves(lists, points, leaves, sets + ranks * words, sets + points->ranks->rank * words);
    SL_FREE_ARRAY(allocator, sets, (ranks + 1) * words);
    return status;
}

sl_status sl_neighbour_lists_make(sl_neighbour_lists *lists, const sl_points *points, const sl_leaves *leaves,
                                  size_t width) {
    if (points->ranks) return make_shared(lists, points, leaves, width);
    return make_lists(lists, points, leaves, NULL, width, NULL, points->work != NULL);
}
