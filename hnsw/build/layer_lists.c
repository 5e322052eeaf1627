#include "hnsw/build/layer_lists.h"

#include "base/failure.h"
#include "hnsw/build/met.h"

#include <string.h>

/* Members that a thread takes at once. */
enum { CHUNK = 64 };
/* Links that go back to a member are chosen among the nearest so many times the degree of them. */
enum { MOST_BACK = 4 };
/* Tellings that find their places before any is written. */
enum { TOLD_AT_ONCE = 64 };

/* Entries that others tell each member. */
typedef struct tellings {
    sl_allocator allocator;
    size_t n, all;
    uint64_t *starts; /* member -> its first entry, and one more */
    sl_near *near;
} tellings;

static void tellings_free(tellings *t) {
    sl_mem_free(&t->allocator, t->starts, (t->n + 1) * sizeof *t->starts);
    sl_mem_free(&t->allocator, t->near, t->all * sizeof *t->near);
}

/* Calls that go over all pairs of a teller and the member it tells: the i-th member that `from` tells, or SL_NONE. */
typedef uint32_t told_fn(const void *of, size_t from, size_t i, sl_near *near);

static uint32_t told_by_near(const void *of, size_t from, size_t i, sl_near *near) {
    const sl_near_lists *lists = of;
    if (i >= lists->count[from]) return SL_NONE;
    sl_near entry = lists->near[from * lists->width + i];
    *near = sl_near_told(entry, (uint32_t)from);
    return sl_near_member(entry);
}

static uint32_t told_by_links(const void *of, size_t from, size_t i, sl_near *near) {
    const sl_layer_lists *lists = of;
    *near = from;
    return i < lists->degree ? lists->links[from * lists->degree + i] : SL_NONE;
}

/* Writes what a member tells. A locked addition waits for all stores before it, so that the stores come last. */
static void tell_from(tellings *t, told_fn *told, const void *of, size_t from) {
    sl_near near[TOLD_AT_ONCE];
    uint64_t places[TOLD_AT_ONCE];
    uint32_t to;
    size_t first = 0, count = TOLD_AT_ONCE;
    for (; count == TOLD_AT_ONCE; first += count) {
        for (count = 0; count < TOLD_AT_ONCE && (to = told(of, from, first + count, &near[count])) != SL_NONE; count++)
            places[count] = __atomic_fetch_add(&t->starts[to], 1, __ATOMIC_RELAXED);
        for (size_t i = 0; i < count; i++)
            t->near[places[i]] = near[i];
    }
}

/* Turns lists round: what each member is told, in no order. */
static sl_status tell(tellings *t, const sl_members *members, told_fn *told, const void *of) {
    sl_status status = SL_OK;
    *t = (tellings){.allocator = members->graph->allocator, .n = members->n};
    t->starts = sl_mem_array(&t->allocator, t->n + 1, sizeof *t->starts, &status);
    SL_TRY(status);
#pragma omp parallel for schedule(static) num_threads((int)members->threads) if (members->threads > 1)
    for (size_t from = 0; from < t->n; from++) {
        sl_near near;
        uint32_t to;
        for (size_t i = 0; (to = told(of, from, i, &near)) != SL_NONE; i++)
            __atomic_fetch_add(&t->starts[to], 1, __ATOMIC_RELAXED);
    }
    for (size_t m = 0; m <= t->n; m++) {
        uint64_t count = t->starts[m];
        t->starts[m] = t->all;
        t->all += count;
    }
    t->near = sl_mem_array(&t->allocator, t->all, sizeof *t->near, &status);
    SL_TRY(status);
    /* Filling moves begins to ends, which are the begins of the next. */
#pragma omp parallel for schedule(static) num_threads((int)members->threads) if (members->threads > 1)
    for (size_t from = 0; from < t->n; from++)
        tell_from(t, told, of, from);
    memmove(t->starts + 1, t->starts, t->n * sizeof *t->starts);
    t->starts[0] = 0;
    return SL_OK;
}

/* ---------------------------------------------------------------------------------------------------------------
 * Choosing
 * ------------------------------------------------------------------------------------------------------------- */

/* One thread's scratch. */
typedef struct choosing {
    const sl_layer_lists *lists;
    sl_select select;
    sl_met met;
} choosing;

static size_t most_candidates(const sl_layer_lists *lists, size_t width) {
    size_t first = width + lists->told + (lists->has_links ? lists->degree : 0), back = (MOST_BACK + 1) * lists->degree;
    return first > back ? first : back;
}

/* Members are rows of the graph in rising order, so that halving finds a row's member. */
static uint32_t member_of(const sl_members *members, uint32_t row) {
    if (!members->rows) return row;
    size_t first = 0, end = members->n;
    while (end - first > 1) {
        size_t middle = first + (end - first) / 2;
        if (members->rows[middle] <= row)
            first = middle;
        else
            end = middle;
    }
    return (uint32_t)first;
}

static void offer(choosing *c, uint32_t member) {
    if (sl_met_add(&c->met, member)) c->select.nodes[c->select.count++] = sl_member_row(c->lists->members, member);
}

static void choose(choosing *c, uint32_t member) {
    const sl_layer_lists *lists = c->lists;
    uint32_t *links = lists->links + (size_t)member * lists->degree;
    sl_select_run(&c->select, sl_member_row(lists->members, member), lists->degree);
    for (size_t i = 0; i < lists->degree; i++)
        links[i] = i < c->select.chosen_count ? member_of(lists->members, c->select.chosen[i]) : SL_NONE;
}

static void begin(choosing *c, uint32_t member) {
    sl_met_clear(&c->met);
    sl_met_add(&c->met, member);
    c->select.count = 0;
}

/* Offers the members of a member's list. Returns how many they are. */
static size_t offer_links(choosing *c, uint32_t member) {
    const size_t degree = c->lists->degree;
    const uint32_t *links = c->lists->links + (size_t)member * degree;
    size_t count = 0;
    for (; count < degree && links[count] != SL_NONE; count++)
        offer(c, links[count]);
    return count;
}

static void choose_first(choosing *c, const sl_near_lists *near, tellings *t, uint32_t member) {
    const size_t first = t->starts[member], all = t->starts[member + 1] - first;
    const size_t told = all < c->lists->told ? all : c->lists->told;
    if (told < all) sl_near_keep(t->near + first, all, told);
    begin(c, member);
    if (c->lists->has_links) offer_links(c, member);
    for (size_t i = 0; i < near->count[member]; i++)
        offer(c, sl_near_member(near->near[(size_t)member * near->width + i]));
    for (size_t i = 0; i < told; i++)
        offer(c, sl_near_member(t->near[first + i]));
    choose(c, member);
}

/* Leaves the nearest so many links that go back to a member. */
static void leave_nearest(choosing *c, uint32_t member, sl_near *near, size_t count, size_t most) {
    const sl_members *members = c->lists->members;
    sl_nearness_set(&c->select.nearness, sl_member_row(members, member));
    for (size_t i = 0; i < count; i++) {
        uint32_t row = sl_member_row(members, (uint32_t)near[i]);
        float score;
        sl_nearness_many(&c->select.nearness, &row, 1, &score);
        near[i] = sl_near_of(score, (uint32_t)near[i]);
    }
    sl_near_keep(near, count, most);
    for (size_t i = 0; i < most; i++)
        near[i] = sl_near_member(near[i]);
}

/* Sorts members by number: links that go back are there in any order. */
static void sort_members(sl_near *near, size_t count) {
    for (size_t i = 1; i < count; i++) {
        sl_near member = near[i];
        size_t j = i;
        for (; j > 0 && near[j - 1] > member; j--)
            near[j] = near[j - 1];
        near[j] = member;
    }
}

/* Adds the links that go back to a member to its list, or chooses its list anew where they are too many. */
static void choose_back(choosing *c, tellings *t, uint32_t member) {
    const sl_layer_lists *lists = c->lists;
    const size_t first = t->starts[member], most = MOST_BACK * lists->degree;
    uint32_t *links = lists->links + (size_t)member * lists->degree;
    size_t all = t->starts[member + 1] - first;
    sl_near *near = t->near + first;
    begin(c, member);
    const size_t own = offer_links(c, member);
    if (all > most) {
        leave_nearest(c, member, near, all, most);
        all = most;
    }
    sort_members(near, all);
    for (size_t i = 0; i < all; i++)
        offer(c, (uint32_t)near[i]);
    if (c->select.count > lists->degree) {
        choose(c, member);
        return;
    }
    for (size_t i = own; i < c->select.count; i++)
        links[i] = member_of(lists->members, c->select.nodes[i]);
}

static sl_status choosing_init(choosing *c, const sl_layer_lists *lists, size_t width) {
    *c = (choosing){.lists = lists};
    SL_TRY(sl_met_init(&c->met, &lists->graph->allocator, most_candidates(lists, width) + 1));
    return sl_select_init(&c->select, lists->graph, most_candidates(lists, width) + 1);
}

static void choosing_free(choosing *c) {
    sl_met_free(&c->met);
    sl_select_free(&c->select);
}

/* Chooses all lists: the first time with `near`, the second time without, where links go back. */
static sl_status choose_all(const sl_layer_lists *lists, const sl_near_lists *near, tellings *t) {
    const sl_members *members = lists->members;
    sl_failure failed;
    sl_failure_init(&failed);
#pragma omp parallel num_threads((int)members->threads) if (members->threads > 1)
    {
        choosing c;
        sl_status status = choosing_init(&c, lists, near ? near->width : 0);
        sl_failure_keep(&failed, 0, status);
#pragma omp for schedule(dynamic, CHUNK)
        for (size_t i = 0; i < members->n; i++) {
            if (status != SL_OK || sl_progress_cancelled(members->progress)) continue;
            if (near)
                choose_first(&c, near, t, (uint32_t)i);
            else
                choose_back(&c, t, (uint32_t)i);
            sl_members_step(members, 1, i, members->n);
        }
        choosing_free(&c);
    }
    SL_TRY(sl_failure_pass(&failed));
    return sl_progress_cancelled(members->progress) ? sl_progress_end(members->progress) : SL_OK;
}

/* Lists that are full tell the most. */
size_t sl_layer_lists_bytes(const sl_layer_lists *lists, size_t width) {
    const size_t n = lists->members->n, told = n * sl_larger(width, lists->degree) * sizeof(sl_near);
    const size_t most = most_candidates(lists, width) + 1;
    return (n + 1) * sizeof(uint64_t) + told +
           lists->members->threads * (sl_met_bytes(most) + sl_select_bytes(lists->graph, most));
}

sl_status sl_layer_lists_make(sl_layer_lists *lists, const sl_near_lists *near) {
    tellings t;
    sl_status status = tell(&t, lists->members, told_by_near, near);
    if (status == SL_OK) status = choose_all(lists, near, &t);
    tellings_free(&t);
    SL_TRY(status);
    status = tell(&t, lists->members, told_by_links, lists);
    if (status == SL_OK) status = choose_all(lists, NULL, &t);
    tellings_free(&t);
    return status;
}
