#include "hnsw/build/near.h"

#include "base/failure.h"
#include "hnsw/build/leaf_notes.h"
#include "hnsw/build/product.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* Locks of all lists: a member's is that of its number modulo their count. */
enum { LOCKS = 4096 };
/* Numbers that are sorted by insertion. */
enum { RUN = 8 };

void sl_near_keep(sl_near *near, size_t n, size_t keep) {
    size_t first = 0, end = n; /* the boundary lies between them */
    while (end - first > 1) {
        /* The pivot is never the least: of two numbers it is the larger one. */
        sl_near a = near[first], b = near[first + (end - first) / 2], c = end - first == 2 ? UINT64_MAX : near[end - 1];
        sl_near pivot = a > b ? (b > c ? b : a > c ? c : a) : (a > c ? a : b > c ? c : b);
        size_t i = first, j = end - 1;
        for (;; i++, j--) {
            while (near[i] > pivot)
                i++;
            while (near[j] < pivot)
                j--;
            if (i >= j) break;
            sl_near swapped = near[i];
            near[i] = near[j];
            near[j] = swapped;
        }
        /* [first, j] is no less than the pivot, what follows no larger. */
        if (j + 1 == keep) return;
        if (j + 1 > keep)
            end = j + 1;
        else
            first = j + 1;
    }
}

/* Merges two runs of falling numbers, equal ones once, up to `limit` of them. Returns how many they are. */
static size_t merge(const sl_near *a, size_t na, const sl_near *b, size_t nb, sl_near *out, size_t limit) {
    size_t i = 0, j = 0, count = 0;
    while (i < na && j < nb && count < limit) {
        const sl_near x = a[i], y = b[j];
        out[count++] = x > y ? x : y;
        i += x >= y;
        j += y >= x;
    }
    for (; i < na && count < limit; i++)
        out[count++] = a[i];
    for (; j < nb && count < limit; j++)
        out[count++] = b[j];
    return count;
}

static void sort_run(sl_near *near, size_t n) {
    for (size_t i = 1; i < n; i++) {
        const sl_near moved = near[i];
        size_t j = i;
        for (; j > 0 && near[j - 1] < moved; j--)
            near[j] = near[j - 1];
        near[j] = moved;
    }
}

void sl_near_sort(sl_near *near, size_t n, sl_near *scratch) {
    for (size_t first = 0; first < n; first += RUN)
        sort_run(near + first, n - first < RUN ? n - first : RUN);
    for (size_t run = RUN; run < n; run *= 2)
        for (size_t first = 0; first + run < n; first += 2 * run) {
            const size_t next = n - first - run < run ? n - first - run : run;
            memcpy(scratch, near + first, run * sizeof *near);
            (void)merge(scratch, run, near + first + run, next, near + first, run + next);
        }
}

/* ---------------------------------------------------------------------------------------------------------------
 * Pairs
 * ------------------------------------------------------------------------------------------------------------- */

/* Shared by all threads. */
typedef struct sl_pairs {
    const sl_members *members;
    const sl_leaves *leaves;
    sl_near_lists *lists;
    sl_spin *locks;
    /* The least score of each full list; -INFINITY for others. A score only rises, so that a column below it is in no
     * list in the end, whenever a thread reads it. */
    float *worst;
    uint64_t *noted; /* a bit for each leaf that need not be compared */
} sl_pairs;

/* One thread's scratch. */
typedef struct pairing {
    const sl_members *members;
    sl_near_lists *lists;
    const sl_pairs *pairs;
    sl_columns columns;
    sl_finds finds;
    uint32_t *rows;          /* of the members that a leaf's own are compared with */
    sl_near *found;          /* what one leaf adds: scores, and places in the leaf */
    sl_near *told, *scratch; /* the same as entries of a list, and as much again */
    sl_leaf_note note;
    int is_noted; /* the leaf that is compared */
} pairing;

/* One leaf adds one more than the width, for the member finds itself. */
static size_t most_found(size_t width) {
    return width + 1;
}

/* Equals may come too, up to a quarter more. */
static size_t found_room(size_t width) {
    return 2 * most_found(width);
}

static sl_status pairing_init(pairing *p, const sl_pairs *pairs) {
    const sl_members *members = pairs->members;
    sl_near_lists *lists = pairs->lists;
    sl_status status = SL_OK;
    *p = (pairing){.members = members, .lists = lists, .pairs = pairs};
    p->rows = sl_mem_array(&lists->allocator, SL_LEAF_MOST, sizeof *p->rows, &status);
    p->found = sl_mem_array(&lists->allocator, found_room(lists->width), sizeof *p->found, &status);
    p->told = sl_mem_array(&lists->allocator, 2 * most_found(lists->width), sizeof *p->told, &status);
    p->scratch = p->told ? p->told + most_found(lists->width) : NULL;
    if (members->work) {
        p->note.room = sl_leaf_note_room(pairs->leaves, most_found(lists->width));
        p->note.words = sl_mem_array(&lists->allocator, p->note.room, sizeof *p->note.words, &status);
    }
    if (status == SL_OK) status = sl_columns_init(&p->columns, members->graph, members->codec, SL_LEAF_MOST);
    if (status == SL_OK) status = sl_finds_init(&p->finds, members->graph, members->codec, most_found(lists->width));
    return status;
}

static void pairing_free(pairing *p) {
    sl_mem_free(&p->lists->allocator, p->rows, SL_LEAF_MOST * sizeof *p->rows);
    sl_mem_free(&p->lists->allocator, p->found, found_room(p->lists->width) * sizeof *p->found);
    sl_mem_free(&p->lists->allocator, p->told, 2 * most_found(p->lists->width) * sizeof *p->told);
    sl_mem_free(&p->lists->allocator, p->note.words, p->note.room * sizeof *p->note.words);
    if (p->columns.block) sl_columns_free(&p->columns);
    if (p->finds.block) sl_finds_free(&p->finds);
}

/* A score that every entry exceeds which could come into a list whose worst entry is this one: another entry of the
 * same score could, also of 0. */
static float least_of(float worst, float shift) {
    const float rounded = 8 * FLT_EPSILON * (fabsf(worst) + fabsf(shift)) + FLT_MIN;
    return worst > -INFINITY ? worst - shift - rounded : worst;
}

/* Takes the best of what a member found, of equals the first in the leaf. More equals are found where more columns were
 * left out, so they must not count. Returns how many were taken. */
static size_t take_found(pairing *p, const sl_scan *found) {
    const size_t most = most_found(p->lists->width);
    for (size_t i = 0; i < found->count; i++)
        p->found[i] = sl_near_rank(found->scores[i]) | ~found->ids[i];
    if (found->count <= most) return found->count;
    sl_near_keep(p->found, found->count, most);
    return most;
}

/* Makes entries of what a leaf tells about a member, the nearest first. Those that cannot come into its list may lack.
 * `asked`: the members that it was compared with. Returns how many they are. */
static size_t take_told(pairing *p, const uint32_t *asked, uint32_t member, const sl_near *told, size_t found) {
    const float shift = sl_near_shift(p->members->codec, sl_member_row(p->members, member));
    float worst;
    size_t count = 0;
    __atomic_load(&p->pairs->worst[member], &worst, __ATOMIC_RELAXED);
    const sl_near least = sl_near_rank(worst);
    for (size_t i = 0; i < found; i++) {
        const uint32_t other = asked[~(uint32_t)told[i]];
        p->told[count] = sl_near_of(sl_near_score(told[i]) + shift, other);
        count += other != member && p->told[count] >= least;
    }
    sl_near_sort(p->told, count, p->scratch);
    return count;
}

/* Joins what a leaf tells about a member with the member's list. A member is told of once, and with one nearness
 * wherever it is told of: entries of one member are equal. */
static void join(pairing *p, const uint32_t *asked, uint32_t member, const sl_near *told, size_t found) {
    sl_near_lists *lists = p->lists;
    const size_t fresh = take_told(p, asked, member, told, found);
    if (!fresh) return;
    sl_near *list = lists->near + (size_t)member * lists->width;
    sl_spin *lock = &p->pairs->locks[member % LOCKS];
    sl_spin_lock(lock);
    memcpy(p->scratch, list, lists->count[member] * sizeof *list);
    const size_t count = merge(p->scratch, lists->count[member], p->told, fresh, list, lists->width);
    lists->count[member] = (uint16_t)count;
    if (count == lists->width) {
        float worst = sl_near_score(list[count - 1]);
        __atomic_store(&p->pairs->worst[member], &worst, __ATOMIC_RELAXED);
    }
    sl_spin_unlock(lock);
}

/* The same of what was just found, which is noted too. */
static void join_found(pairing *p, const uint32_t *asked, uint32_t member, size_t found) {
    sl_leaf_note *note = &p->note;
    join(p, asked, member, p->found, found);
    if (!p->is_noted) return;
    note->words[note->count++] = found;
    memcpy(note->words + note->count, p->found, found * sizeof *note->words);
    note->count += found;
}

/* Packs the members that a leaf's own are compared with, and returns them. */
static const uint32_t *pack_asked(pairing *p, const sl_leaves *leaves, size_t leaf) {
    size_t count;
    const uint32_t *asked = sl_leaf_asked(leaves, leaf, &count);
    for (size_t i = 0; i < count; i++)
        p->rows[i] = sl_member_row(p->members, asked[i]);
    sl_columns_pack(&p->columns, p->rows, count);
    return asked;
}

static void compare_leaf(pairing *p, const sl_leaves *leaves, size_t leaf) {
    const uint32_t *own = leaves->rows + leaves->starts[leaf], *asked = pack_asked(p, leaves, leaf);
    const size_t size = leaves->starts[leaf + 1] - leaves->starts[leaf];
    p->note.count = 0;
    p->is_noted = p->note.words && size <= SL_LEAF_MOST;
    for (size_t first = 0; first < size; first += SL_PRODUCT_ROWS) {
        size_t count = size - first < SL_PRODUCT_ROWS ? size - first : SL_PRODUCT_ROWS;
        uint32_t rows[SL_PRODUCT_ROWS];
        float least[SL_PRODUCT_ROWS];
        for (size_t i = 0; i < count; i++) {
            float worst;
            rows[i] = sl_member_row(p->members, own[first + i]);
            __atomic_load(&p->pairs->worst[own[first + i]], &worst, __ATOMIC_RELAXED);
            least[i] = least_of(worst, sl_near_shift(p->members->codec, rows[i]));
        }
        sl_finds_best(&p->finds, &p->columns, rows, count, least);
        for (size_t i = 0; i < count; i++)
            join_found(p, asked, own[first + i], take_found(p, &p->finds.scans[i]));
    }
}

static int is_noted(const sl_pairs *pairs, size_t leaf) {
    return pairs->noted[leaf / 64] >> (leaf % 64) & 1;
}

static sl_status compare_and_note(pairing *p, size_t leaf) {
    if (is_noted(p->pairs, leaf)) return SL_OK;
    compare_leaf(p, p->pairs->leaves, leaf);
    return p->is_noted ? sl_leaf_note_put(p->members->work, leaf, &p->note) : SL_OK;
}

static sl_status compare_leaves(const sl_pairs *pairs) {
    const sl_leaves *leaves = pairs->leaves;
    const sl_members *members = pairs->members;
    sl_failure failed;
    sl_failure_init(&failed);
#pragma omp parallel num_threads((int)members->threads) if (members->threads > 1)
    {
        pairing p;
        sl_failure_keep(&failed, 0, pairing_init(&p, pairs));
#pragma omp for schedule(dynamic, 1)
        for (size_t leaf = 0; leaf < leaves->count; leaf++) {
            if (sl_failure_before(&failed, leaves->count) || sl_progress_cancelled(members->progress)) continue;
            sl_failure_keep(&failed, leaf, compare_and_note(&p, leaf));
            sl_members_step(members, SL_PAIR_PARTS, leaf, leaves->count);
        }
        pairing_free(&p);
    }
    SL_TRY(sl_failure_pass(&failed));
    return sl_progress_cancelled(members->progress) ? sl_progress_end(members->progress) : SL_OK;
}

/* Joins what noted leaves told. */
static sl_status take_notes(const sl_pairs *pairs) {
    const sl_leaves *leaves = pairs->leaves;
    const sl_members *members = pairs->members;
    pairing p;
    size_t leaf;
    sl_status status = pairing_init(&p, pairs);
    while (status == SL_OK &&
           sl_leaf_note_take(members->work, leaves, most_found(pairs->lists->width), &leaf, &p.note)) {
        size_t count;
        const uint32_t *own = leaves->rows + leaves->starts[leaf], *asked = sl_leaf_asked(leaves, leaf, &count);
        const uint64_t *words = p.note.words;
        for (size_t i = 0; i < leaves->starts[leaf + 1] - leaves->starts[leaf]; i++, words += *words + 1)
            join(&p, asked, own[i], words + 1, *words);
        pairs->noted[leaf / 64] |= (uint64_t)1 << (leaf % 64);
    }
    pairing_free(&p);
    return status;
}

sl_bytes sl_near_bytes(const sl_members *members, size_t width) {
    const size_t n = members->n, kept = n * (width * sizeof(sl_near) + sizeof(uint16_t));
    const size_t pairing =
        SL_LEAF_MOST * sizeof(uint32_t) + (found_room(width) + 2 * most_found(width)) * sizeof(sl_near) +
        sl_columns_bytes(members->codec, SL_LEAF_MOST) + sl_finds_bytes(members->codec, most_found(width));
    return (sl_bytes){kept, kept + LOCKS * sizeof(sl_spin) + n * sizeof(float) + members->threads * pairing};
}

sl_status sl_near_make(sl_near_lists *lists, const sl_members *members, const sl_leaves *leaves, size_t width) {
    const sl_allocator *allocator = &members->graph->allocator;
    const size_t n = members->n;
    sl_status status = SL_OK;
    *lists = (sl_near_lists){.allocator = *allocator, .n = n, .width = width};
    lists->near = sl_mem_array(allocator, n * width, sizeof *lists->near, &status);
    lists->count = sl_mem_array(allocator, n, sizeof *lists->count, &status);
    sl_pairs pairs = {.members = members, .leaves = leaves, .lists = lists};
    pairs.locks = sl_mem_array(allocator, LOCKS, sizeof *pairs.locks, &status);
    pairs.worst = sl_mem_array(allocator, n, sizeof *pairs.worst, &status);
    pairs.noted = sl_mem_array(allocator, leaves->count / 64 + 1, sizeof *pairs.noted, &status);
    for (size_t i = 0; i < n && status == SL_OK; i++)
        pairs.worst[i] = -INFINITY;
    if (status == SL_OK && members->work) status = take_notes(&pairs);
    if (status == SL_OK) status = compare_leaves(&pairs);
    sl_mem_free(allocator, pairs.locks, LOCKS * sizeof *pairs.locks);
    sl_mem_free(allocator, pairs.worst, n * sizeof *pairs.worst);
    sl_mem_free(allocator, pairs.noted, (leaves->count / 64 + 1) * sizeof *pairs.noted);
    return status;
}

void sl_near_free(sl_near_lists *lists) {
    sl_mem_free(&lists->allocator, lists->near, lists->n * lists->width * sizeof *lists->near);
    sl_mem_free(&lists->allocator, lists->count, lists->n * sizeof *lists->count);
    *lists = (sl_near_lists){0};
}
