#include "cluster/search/tune_reaches.h"

#include <math.h>
#include <stdlib.h>

static const double shares[] = {0.7,   0.8,  0.85,  0.9,  0.92,  0.94,  0.95,  0.96,  0.965, 0.97,
                                0.975, 0.98, 0.985, 0.99, 0.993, 0.995, 0.997, 0.999, 1};
enum { SHARES = sizeof shares / sizeof *shares };
static_assert(SHARES <= SL_SPLIT_MAX_REACHES, "shares");

/* The parts of a neighbour in one number, so that ranks can be summed: 0 for those that do not know the row. */
#define PART_BITS 20

static uint64_t pack_place(const sl_row_place *place) {
    const uint64_t second = place->second == SL_NO_PART ? 0 : (uint64_t)place->second + 1;
    return second << PART_BITS | ((uint64_t)place->part + 1);
}

static int holds(uint64_t packed, uint32_t part) {
    return (packed & ((1u << PART_BITS) - 1)) == part + 1u || packed >> PART_BITS == part + 1u;
}

/* Finds the parts of all neighbours. */
static sl_status find_parts(const sl_comm *comm, const sl_row_layout *layout, const sl_row_place *places,
                            const sl_reach_sample *sample, uint64_t *packed) {
    for (size_t i = 0; i < sample->count * sample->k; i++) {
        const uint64_t row = sample->neighbours[i];
        const size_t local = row == SL_NO_ID ? SIZE_MAX : sl_layout_local(layout, (size_t)row);
        packed[i] = local == SIZE_MAX ? 0 : pack_place(&places[local]);
    }
    return sl_comm_sum_counts(comm, packed, sample->count * sample->k);
}

/* The reach at which a query asks a part that holds the neighbour; -INFINITY: the first part does; INFINITY: none is
 * routed to. */
static float reach_of(const sl_route *routes, size_t count, uint64_t packed) {
    float least = INFINITY;
    for (size_t i = 0; i < count; i++)
        if (holds(packed, routes[i].part)) least = fminf(least, i ? routes[i].reach : -INFINITY);
    return least;
}

/* Makes the reaches of the further parts as a search does: from the neighbours that the first part holds. */
static void adjust_reaches(sl_metric metric, const uint64_t *packed, size_t k, float score, sl_route *routes,
                           size_t count) {
    size_t found = 0;
    for (size_t n = 0; n < k; n++)
        found += (size_t)holds(packed[n], routes[0].part);
    for (size_t i = 1; i < count; i++) {
        size_t copies = 0;
        for (size_t n = 0; n < k; n++)
            copies += (size_t)(holds(packed[n], routes[0].part) && holds(packed[n], routes[i].part));
        routes[i].reach = sl_reach_found(metric, routes[i].reach, score, found ? (float)copies / (float)found : 0);
    }
}

static int compare_floats(const void *a, const void *b) {
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* Memory of the tuning. */
typedef struct tuning {
    uint64_t *packed; /* parts of each neighbour */
    float *needed;    /* reach that each neighbour needs, sorted */
    float *others;    /* reach of each further part of each query, sorted */
    sl_route *routes;
    sl_router *router;
    size_t found, further;
} tuning;

/* Routes every vector of the sample. */
static void route_sample(const sl_split *split, const sl_reach_sample *sample, tuning *t) {
    const size_t row = split->facts.dim * sl_dtype_size(sample->dtype);
    for (size_t q = 0; q < sample->count; q++) {
        const uint8_t *vector = (const uint8_t *)sample->rows + q * row;
        const size_t count = sl_router_find(t->router, vector, sample->dtype, sl_split_opening(split), t->routes, NULL);
        adjust_reaches((sl_metric)split->facts.metric, t->packed + q * sample->k, sample->k, sample->scores[q],
                       t->routes, count);
        for (size_t i = 1; i < count; i++)
            t->others[t->further++] = t->routes[i].reach;
        for (size_t i = 0; i < sample->k; i++)
            if (t->packed[q * sample->k + i])
                t->needed[t->found++] = reach_of(t->routes, count, t->packed[q * sample->k + i]);
    }
    qsort(t->needed, t->found, sizeof *t->needed, compare_floats);
    qsort(t->others, t->further, sizeof *t->others, compare_floats);
}

/* Notes the reach of each share. A share that no reach gives ends the list. */
static void note_reaches(sl_split *split, const sl_reach_sample *sample, const tuning *t) {
    size_t count = 0, asked = 0;
    for (size_t i = 0; i < SHARES && t->found; i++) {
        size_t at = (size_t)ceil(shares[i] * (double)t->found);
        const float reach = fmaxf(t->needed[at ? at - 1 : 0], -1);
        if (isinf(reach)) break;
        while (asked < t->further && t->others[asked] <= reach)
            asked++;
        split->reaches[count++] =
            (sl_split_reach){.share = shares[i], .reach = reach, .asked = 1 + (float)asked / (float)sample->count};
    }
    split->facts.reaches = (uint32_t)count;
}

sl_status sl_split_tune_reaches(const sl_comm *comm, sl_split *split, const sl_row_layout *layout,
                                const sl_row_place *places, const sl_reach_sample *sample) {
    const sl_allocator *allocator = &split->allocator;
    const size_t all = sample->count * sample->k, parts = split->facts.parts;
    sl_status status = SL_OK;
    tuning t = {.found = 0};
    t.packed = sl_mem_array(allocator, all, sizeof *t.packed, &status);
    t.needed = sl_mem_array(allocator, all, sizeof *t.needed, &status);
    t.others = sl_mem_array(allocator, sample->count * parts, sizeof *t.others, &status);
    t.routes = sl_mem_array(allocator, parts, sizeof *t.routes, &status);
    if (status == SL_OK) status = sl_router_create(&split->cells, &t.router);
    status = sl_comm_agree(comm, status);
    if (status == SL_OK) status = find_parts(comm, layout, places, sample, t.packed);
    if (status == SL_OK) {
        route_sample(split, sample, &t);
        note_reaches(split, sample, &t);
    }
    sl_router_free(t.router);
    SL_FREE_ARRAY(allocator, t.packed, all);
    SL_FREE_ARRAY(allocator, t.needed, all);
    SL_FREE_ARRAY(allocator, t.others, sample->count * parts);
    SL_FREE_ARRAY(allocator, t.routes, parts);
    return status;
}
