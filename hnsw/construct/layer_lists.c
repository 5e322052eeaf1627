#include "hnsw/construct/layer_lists.h"

#include "base/failure.h"
#include "hnsw/construct/seen_set.h"

#include <string.h>

/* Points that a thread takes at once. */
enum { POINTS_AT_ONCE = 64 };
/* An overfull list is selected among its links and the nearest reverse links, at most this many times the degree. */
enum { MOST_REVERSE = 4 };
/* Edges of a point that get their places before any of them is written. */
enum { EDGES_AT_ONCE = 64 };

/* The reverse candidates of each point. */
typedef struct reverse_lists {
    sl_allocator allocator;
    size_t n, all;
    uint64_t *starts; /* point -> its first entry; one more entry for the end */
    sl_neighbour *entries;
} reverse_lists;

static void reverse_free(reverse_lists *t) {
    SL_FREE_ARRAY(&t->allocator, t->starts, t->n + 1);
    SL_FREE_ARRAY(&t->allocator, t->entries, t->all);
}

/* The i-th edge of `from`: returns the point it leads to, SL_NONE behind the last. *reverse gets the entry for that
 * point. */
typedef uint32_t edge_fn(const void *of, size_t from, size_t i, sl_neighbour *reverse);

static uint32_t edge_of_neighbours(const void *of, size_t from, size_t i, sl_neighbour *reverse) {
    const sl_neighbour_lists *lists = of;
    if (i >= lists->count[from]) return SL_NONE;
    sl_neighbour entry = lists->entries[from * lists->width + i];
    *reverse = sl_neighbour_reverse(entry, (uint32_t)from);
    return sl_neighbour_point(entry);
}

static uint32_t edge_of_links(const void *of, size_t from, size_t i, sl_neighbour *reverse) {
    const sl_layer_lists *lists = of;
    *reverse = from;
    return i < lists->degree ? lists->links[from * lists->degree + i] : SL_NONE;
}

/* Writes the edges of a point to the points they lead to. An atomic addition waits for all stores before it, so the
 * additions of several edges come first. */
static void write_edges(reverse_lists *t, edge_fn *edge, const void *of, size_t from) {
    sl_neighbour reverse[EDGES_AT_ONCE];
    uint64_t places[EDGES_AT_ONCE];
    uint32_t to;
    size_t first = 0, count = EDGES_AT_ONCE;
    for (; count == EDGES_AT_ONCE; first += count) {
        for (count = 0; count < EDGES_AT_ONCE && (to = edge(of, from, first + count, &reverse[count])) != SL_NONE;
             count++)
            places[count] = __atomic_fetch_add(&t->starts[to], 1, __ATOMIC_RELAXED);
        for (size_t i = 0; i < count; i++)
            t->entries[places[i]] = reverse[i];
    }
}

/* Reverses edges: gives each point the entries of all edges that lead to it, in no order. */
static sl_status reverse_edges(reverse_lists *t, const sl_points *points, edge_fn *edge, const void *of) {
    sl_status status = SL_OK;
    *t = (reverse_lists){.allocator = points->graph->allocator, .n = points->n};
    t->starts = sl_mem_array(&t->allocator, t->n + 1, sizeof *t->starts, &status);
    SL_TRY(status);
#pragma omp parallel for schedule(static) num_threads((int)points->threads) if (points->threads > 1)
    for (size_t from = 0; from < t->n; from++) {
        sl_neighbour reverse;
        uint32_t to;
        for (size_t i = 0; (to = edge(of, from, i, &reverse)) != SL_NONE; i++)
            __atomic_fetch_add(&t->starts[to], 1, __ATOMIC_RELAXED);
    }
    for (size_t m = 0; m <= t->n; m++) {
        uint64_t count = t->starts[m];
        t->starts[m] = t->all;
        t->all += count;
    }
    t->entries = sl_mem_array(&t->allocator, t->all, sizeof *t->entries, &status);
    SL_TRY(status);
    /* After filling, starts[m] is the end of m; shift by one. */
#pragma omp parallel for schedule(static) num_threads((int)points->threads) if (points->threads > 1)
    for (size_t from = 0; from < t->n; from++)
        write_edges(t, edge, of, from);
    memmove(t->starts + 1, t->starts, t->n * sizeof *t->starts);
    t->starts[0] = 0;
    return SL_OK;
}

/* ---------------------------------------------------------------------------------------------------------------
 * Selection
 * ------------------------------------------------------------------------------------------------------------- */

/* One thread's scratch. */
typedef struct selecting {
    const sl_layer_lists *lists;
    sl_selection selection;
    sl_seen seen;
} selecting;

static size_t most_candidates(const sl_layer_lists *lists, size_t width) {
    size_t first = width + lists->reverse_most + (lists->has_links ? lists->degree : 0),
           back = (MOST_REVERSE + 1) * lists->degree;
    return first > back ? first : back;
}

/* Rows rise with points, so a binary search finds the point of a row. */
static uint32_t point_of_row(const sl_points *points, uint32_t row) {
    if (!points->rows) return row;
    size_t first = 0, end = points->n;
    while (end - first > 1) {
        size_t middle = first + (end - first) / 2;
        if (points->rows[middle] <= row)
            first = middle;
        else
            end = middle;
    }
    return (uint32_t)first;
}

static void offer_candidate(selecting *c, uint32_t point) {
    if (sl_seen_add(&c->seen, point))
        c->selection.candidates[c->selection.candidate_count++] = sl_point_row(c->lists->points, point);
}

static void select_links(selecting *c, uint32_t point) {
    const sl_layer_lists *lists = c->lists;
    uint32_t *links = lists->links + (size_t)point * lists->degree;
    sl_select_neighbours(&c->selection, sl_point_row(lists->points, point), lists->degree);
    for (size_t i = 0; i < lists->degree; i++)
        links[i] = i < c->selection.selected_count ? point_of_row(lists->points, c->selection.selected[i]) : SL_NONE;
}

static void begin_candidates(selecting *c, uint32_t point) {
    sl_seen_clear(&c->seen);
    sl_seen_add(&c->seen, point);
    c->selection.candidate_count = 0;
}

/* Offers the links of a point. Returns how many there are. */
static size_t offer_links(selecting *c, uint32_t point) {
    const size_t degree = c->lists->degree;
    const uint32_t *links = c->lists->links + (size_t)point * degree;
    size_t count = 0;
    for (; count < degree && links[count] != SL_NONE; count++)
        offer_candidate(c, links[count]);
    return count;
}

static void select_first(selecting *c, const sl_neighbour_lists *neighbours, reverse_lists *t, uint32_t point) {
    const size_t first = t->starts[point], all = t->starts[point + 1] - first;
    const size_t nearest = all < c->lists->reverse_most ? all : c->lists->reverse_most;
    if (nearest < all) sl_neighbours_keep(t->entries + first, all, nearest);
    begin_candidates(c, point);
    if (c->lists->has_links) offer_links(c, point);
    for (size_t i = 0; i < neighbours->count[point]; i++)
        offer_candidate(c, sl_neighbour_point(neighbours->entries[(size_t)point * neighbours->width + i]));
    for (size_t i = 0; i < nearest; i++)
        offer_candidate(c, sl_neighbour_point(t->entries[first + i]));
    select_links(c, point);
}

/* Keeps the nearest `most` of a point's reverse links. */
static void keep_nearest(selecting *c, uint32_t point, sl_neighbour *entries, size_t count, size_t most) {
    const sl_points *points = c->lists->points;
    sl_similarity_set(&c->selection.similarity, sl_point_row(points, point));
    for (size_t i = 0; i < count; i++) {
        uint32_t row = sl_point_row(points, (uint32_t)entries[i]);
        float score;
        sl_similarity_many(&c->selection.similarity, &row, 1, &score);
        entries[i] = sl_neighbour_of(score, (uint32_t)entries[i]);
    }
    sl_neighbours_keep(entries, count, most);
    for (size_t i = 0; i < most; i++)
        entries[i] = sl_neighbour_point(entries[i]);
}

/* Sorts points by number, since threads write reverse links in any order. */
static void sort_points(sl_neighbour *entries, size_t count) {
    for (size_t i = 1; i < count; i++) {
        sl_neighbour point = entries[i];
        size_t j = i;
        for (; j > 0 && entries[j - 1] > point; j--)
            entries[j] = entries[j - 1];
        entries[j] = point;
    }
}

/* Adds a point's reverse links to its list. If they don't fit, selects the list again. */
static void select_with_reverse(selecting *c, reverse_lists *t, uint32_t point) {
    const sl_layer_lists *lists = c->lists;
    const size_t first = t->starts[point], most = MOST_REVERSE * lists->degree;
    uint32_t *links = lists->links + (size_t)point * lists->degree;
    size_t all = t->starts[point + 1] - first;
    sl_neighbour *entries = t->entries + first;
    begin_candidates(c, point);
    const size_t own = offer_links(c, point);
    if (all > most) {
        keep_nearest(c, point, entries, all, most);
        all = most;
    }
    sort_points(entries, all);
    for (size_t i = 0; i < all; i++)
        offer_candidate(c, (uint32_t)entries[i]);
    if (c->selection.candidate_count > lists->degree) {
        select_links(c, point);
        return;
    }
    for (size_t i = own; i < c->selection.candidate_count; i++)
        links[i] = point_of_row(lists->points, c->selection.candidates[i]);
}

static sl_status selecting_init(selecting *c, const sl_layer_lists *lists, size_t width) {
    *c = (selecting){.lists = lists};
    SL_TRY(sl_seen_init(&c->seen, &lists->graph->allocator, most_candidates(lists, width) + 1));
    return sl_selection_init(&c->selection, lists->graph, most_candidates(lists, width) + 1);
}

static void selecting_free(selecting *c) {
    sl_seen_free(&c->seen);
    sl_selection_free(&c->selection);
}

/* Selects all lists: with neighbours among these and the reverse candidates; with NULL, the second time, among links
 * and reverse links. */
static sl_status select_all(const sl_layer_lists *lists, const sl_neighbour_lists *neighbours, reverse_lists *t) {
    const sl_points *points = lists->points;
    sl_failure failed;
    sl_failure_init(&failed);
#pragma omp parallel num_threads((int)points->threads) if (points->threads > 1)
    {
        selecting c;
        sl_status status = selecting_init(&c, lists, neighbours ? neighbours->width : 0);
        sl_failure_keep(&failed, 0, status);
#pragma omp for schedule(dynamic, POINTS_AT_ONCE)
        for (size_t i = 0; i < points->n; i++) {
            if (status != SL_OK || sl_progress_cancelled(points->progress)) continue;
            if (neighbours)
                select_first(&c, neighbours, t, (uint32_t)i);
            else
                select_with_reverse(&c, t, (uint32_t)i);
            sl_points_step(points, 1, i, points->n);
        }
        selecting_free(&c);
    }
    SL_TRY(sl_failure_pass(&failed));
    return sl_progress_cancelled(points->progress) ? sl_progress_end(points->progress) : SL_OK;
}

/* Counts full lists, which have the most edges. */
size_t sl_layer_lists_bytes(const sl_layer_lists *lists, size_t width) {
    const size_t n = lists->points->n, edges = n * sl_larger(width, lists->degree) * sizeof(sl_neighbour);
    const size_t most = most_candidates(lists, width) + 1;
    return (n + 1) * sizeof(uint64_t) + edges +
           lists->points->threads * (sl_seen_bytes(most) + sl_selection_bytes(lists->graph, most));
}

sl_status sl_layer_lists_make(sl_layer_lists *lists, const sl_neighbour_lists *neighbours) {
    reverse_lists t;
    sl_status status = reverse_edges(&t, lists->points, edge_of_neighbours, neighbours);
    if (status == SL_OK) status = select_all(lists, neighbours, &t);
    reverse_free(&t);
    SL_TRY(status);
    status = reverse_edges(&t, lists->points, edge_of_links, lists);
    if (status == SL_OK) status = select_all(lists, NULL, &t);
    reverse_free(&t);
    return status;
}
