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

/* The reverse candidates of each of n points, from point `first` on. */
typedef struct reverse_lists {
    sl_allocator allocator;
    size_t first, n, all;
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
    size_t count;
    const sl_neighbour *list = sl_neighbour_list(lists, from, &count);
    if (i >= count) return SL_NONE;
    *reverse = sl_neighbour_reverse(list[i], (uint32_t)from);
    return sl_neighbour_point(list[i]);
}

static uint32_t edge_of_links(const void *of, size_t from, size_t i, sl_neighbour *reverse) {
    const sl_layer_lists *lists = of;
    *reverse = from;
    return i < lists->degree ? lists->links[from * lists->degree + i] : SL_NONE;
}

/* Returns whether the edge leads to one of t's points. In a shared build it may lead to another rank's. */
static int is_inside(const reverse_lists *t, uint32_t to) {
    return to - t->first < t->n;
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
            places[count] =
                is_inside(t, to) ? __atomic_fetch_add(&t->starts[to - t->first], 1, __ATOMIC_RELAXED) : UINT64_MAX;
        for (size_t i = 0; i < count; i++)
            if (places[i] != UINT64_MAX) t->entries[places[i]] = reverse[i];
    }
}

/* An edge that another rank sent here. */
typedef struct sent_edge {
    sl_neighbour reverse;
    uint64_t to;
} sent_edge;

/* Edges that this rank and the others send each other. Without a share both are empty. */
typedef struct edge_parts {
    sl_parts to, from;
} edge_parts;

static void edge_parts_free(edge_parts *parts) {
    sl_parts_free(&parts->to);
    sl_parts_free(&parts->from);
}

static const sent_edge *edges_of(const sl_parts *parts, size_t *count) {
    *count = parts->data ? parts->at[parts->ranks] / sizeof(sent_edge) : 0;
    return (const sent_edge *)(const void *)parts->data;
}

/* Calls visit() for each edge that leads to another rank's point. */
static void visit_outside(const reverse_lists *t, const sl_points *points, edge_fn *edge, const void *of,
                          void (*visit)(void *ctx, size_t rank, const sent_edge *sent), void *ctx) {
    for (size_t from = t->first; from < t->first + t->n; from++) {
        sent_edge sent;
        uint32_t to;
        for (size_t i = 0; (to = edge(of, from, i, &sent.reverse)) != SL_NONE; i++) {
            if (is_inside(t, to)) continue;
            sent.to = to;
            visit(ctx, sl_share_owner(points->ranks, to, points->n, SL_POINTS_UNIT), &sent);
        }
    }
}

static void count_sent(void *ctx, size_t rank, const sent_edge *sent) {
    ((size_t *)ctx)[rank] += sizeof *sent;
}

static void write_sent(void *ctx, size_t rank, const sent_edge *sent) {
    sl_parts *to = ctx;
    to->at[rank + 1] -= sizeof *sent;
    memcpy(to->data + to->at[rank + 1], sent, sizeof *sent);
}

/* Makes a part for each rank, of the edges that lead to its points. */
static sl_status make_edge_parts(const reverse_lists *t, const sl_points *points, edge_fn *edge, const void *of,
                                 sl_parts *to) {
    const size_t ranks = points->ranks->ranks;
    sl_status status = SL_OK;
    size_t *sizes = sl_mem_array(&t->allocator, ranks, sizeof *sizes, &status);
    SL_TRY(status);
    visit_outside(t, points, edge, of, count_sent, sizes);
    status = sl_parts_create(&t->allocator, ranks, sizes, to);
    if (status == SL_OK) {
        visit_outside(t, points, edge, of, write_sent, to);
        for (size_t r = 0; r < ranks; r++) /* each end has moved to its part's begin */
            to->at[r + 1] = to->at[r] + sizes[r];
    }
    SL_FREE_ARRAY(&t->allocator, sizes, ranks);
    return status;
}

/* Exchanges the edges that lead to other ranks' points. */
static sl_status exchange_edges(const reverse_lists *t, const sl_points *points, edge_fn *edge, const void *of,
                                sl_status mine, edge_parts *parts) {
    const sl_ranks *ranks = points->ranks;
    *parts = (edge_parts){.to = {.data = NULL}};
    if (!ranks) return mine;
    if (mine == SL_OK) mine = make_edge_parts(t, points, edge, of, &parts->to);
    mine = sl_share_exchange(ranks, mine, &parts->to, &parts->from);
    sl_parts_free(&parts->to);
    return mine;
}

/* Counts the edges that lead to each point, and turns the counts into places. Returns the number of edges. */
static uint64_t count_edges(reverse_lists *t, const sl_points *points, edge_fn *edge, const void *of,
                            const edge_parts *parts) {
    const size_t threads = points->threads;
    size_t received;
    uint64_t all = 0;
    const sent_edge *sent = edges_of(&parts->from, &received);
#pragma omp parallel for schedule(static) num_threads((int)threads) if (threads > 1)
    for (size_t from = t->first; from < t->first + t->n; from++) {
        sl_neighbour reverse;
        uint32_t to;
        for (size_t i = 0; (to = edge(of, from, i, &reverse)) != SL_NONE; i++)
            if (is_inside(t, to)) __atomic_fetch_add(&t->starts[to - t->first], 1, __ATOMIC_RELAXED);
    }
    for (size_t i = 0; i < received; i++)
        t->starts[sent[i].to - t->first]++;
    for (size_t m = 0; m <= t->n; m++) {
        uint64_t count = t->starts[m];
        t->starts[m] = all;
        all += count;
    }
    return all;
}

/* Reverses edges: gives each of this process's points the entries of all edges that lead to it, in no order. */
static sl_status reverse_edges(reverse_lists *t, const sl_points *points, edge_fn *edge, const void *of) {
    const sl_range mine = sl_points_mine(points);
    sl_status status = SL_OK;
    edge_parts parts;
    *t = (reverse_lists){.allocator = points->graph->allocator, .first = mine.first, .n = mine.end - mine.first};
    t->starts = sl_mem_array(&t->allocator, t->n + 1, sizeof *t->starts, &status);
    status = exchange_edges(t, points, edge, of, status, &parts);
    if (status == SL_OK) {
        t->all = count_edges(t, points, edge, of, &parts);
        t->entries = sl_mem_array(&t->allocator, t->all, sizeof *t->entries, &status);
    }
    if (status == SL_OK) {
        size_t received;
        const sent_edge *sent = edges_of(&parts.from, &received);
        /* After filling, starts[m] is the end of m; shift by one. */
#pragma omp parallel for schedule(static) num_threads((int)points->threads) if (points->threads > 1)
        for (size_t from = t->first; from < t->first + t->n; from++)
            write_edges(t, edge, of, from);
        for (size_t i = 0; i < received; i++)
            t->entries[t->starts[sent[i].to - t->first]++] = sent[i].reverse;
        memmove(t->starts + 1, t->starts, t->n * sizeof *t->starts);
        t->starts[0] = 0;
    }
    edge_parts_free(&parts);
    return status;
}

/* Returns the reverse entries of a point, and sets *count to their number. */
static sl_neighbour *reverse_of(const reverse_lists *t, uint32_t point, size_t *count) {
    const uint64_t *starts = t->starts + (point - t->first);
    *count = starts[1] - starts[0];
    return t->entries + starts[0];
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
    size_t all, listed;
    sl_neighbour *reverse = reverse_of(t, point, &all);
    const sl_neighbour *list = sl_neighbour_list(neighbours, point, &listed);
    const size_t nearest = all < c->lists->reverse_most ? all : c->lists->reverse_most;
    if (nearest < all) sl_neighbours_keep(reverse, all, nearest);
    begin_candidates(c, point);
    if (c->lists->has_links) offer_links(c, point);
    for (size_t i = 0; i < listed; i++)
        offer_candidate(c, sl_neighbour_point(list[i]));
    for (size_t i = 0; i < nearest; i++)
        offer_candidate(c, sl_neighbour_point(reverse[i]));
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
    const size_t most = MOST_REVERSE * lists->degree;
    uint32_t *links = lists->links + (size_t)point * lists->degree;
    size_t all;
    sl_neighbour *entries = reverse_of(t, point, &all);
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
    const sl_range mine = sl_points_mine(points);
    sl_failure failed;
    sl_failure_init(&failed);
#pragma omp parallel num_threads((int)points->threads) if (points->threads > 1)
    {
        selecting c;
        sl_status status = selecting_init(&c, lists, neighbours ? neighbours->width : 0);
        sl_failure_keep(&failed, 0, status);
#pragma omp for schedule(dynamic, POINTS_AT_ONCE)
        for (size_t i = mine.first; i < mine.end; i++) {
            if (status != SL_OK || sl_progress_cancelled(points->progress)) continue;
            if (neighbours)
                select_first(&c, neighbours, t, (uint32_t)i);
            else
                select_with_reverse(&c, t, (uint32_t)i);
            sl_points_step(points, 1, i - mine.first, mine.end - mine.first);
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
    SL_TRY(sl_ranks_agree(lists->points->ranks, status));
    status = reverse_edges(&t, lists->points, edge_of_links, lists);
    if (status == SL_OK) status = select_all(lists, NULL, &t);
    reverse_free(&t);
    return sl_share_gather(lists->points->ranks, status, lists->links, lists->degree * sizeof *lists->links,
                           lists->points->n, SL_POINTS_UNIT);
}
