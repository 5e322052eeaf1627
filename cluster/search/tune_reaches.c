#include "cluster/search/tune_reaches.h"

#include <math.h>

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

/* The other part that holds a neighbour of this part. */
static uint16_t other_part(uint64_t packed, uint32_t part) {
    const uint64_t first = packed & ((1u << PART_BITS) - 1), second = packed >> PART_BITS;
    const uint64_t other = first == part + 1u ? second : first;
    return other ? (uint16_t)(other - 1) : SL_NO_PART;
}

/* Memory of the tuning. */
typedef struct tuning {
    uint64_t *packed; /* parts of each neighbour */
    float *needed;    /* reach that each neighbour needs, sorted */
    float *others;    /* reach of each further part of each query, sorted */
    uint16_t *held;   /* other part of each neighbour that a query's first part holds */
    sl_route *routes;
    sl_router *router;
    size_t queries, found, further; /* queries: vectors of the sample that have a direction */
} tuning;

/* Routes a query as a search does, and notes the reaches of its further parts and of its
 * neighbours. */
static void route_query(const sl_split *split, const sl_reach_sample *sample, size_t q, tuning *t) {
    const uint8_t *vector = (const uint8_t *)sample->rows + q * split->facts.dim * sl_dtype_size(sample->dtype);
    const uint64_t *packed = t->packed + q * sample->k;
    size_t held = 0;
    const size_t count = sl_router_find(t->router, vector, sample->dtype, sl_split_opening(split), t->routes, NULL);
    for (size_t i = 0; i < sample->k; i++)
        if (holds(packed[i], t->routes[0].part)) t->held[held++] = other_part(packed[i], t->routes[0].part);
    sl_reaches_adjust((sl_metric)split->facts.metric, t->held, held, sample->scores[q], t->routes, count);
    for (size_t i = 1; i < count; i++)
        t->others[t->further++] = t->routes[i].reach;
    for (size_t i = 0; i < sample->k; i++)
        if (packed[i]) t->needed[t->found++] = reach_of(t->routes, count, packed[i]);
}

/* Routes the vectors of the sample. All vectors are as near to one without a direction, which tells nothing. */
static void route_sample(const sl_split *split, const sl_reach_sample *sample, tuning *t) {
    const size_t row = split->facts.dim * sl_dtype_size(sample->dtype);
    for (size_t q = 0; q < sample->count; q++) {
        if (!sl_router_has_direction(t->router, (const uint8_t *)sample->rows + q * row, sample->dtype)) continue;
        route_query(split, sample, q, t);
        t->queries++;
    }
    sl_sort_floats(t->needed, t->found);
    sl_sort_floats(t->others, t->further);
}

/* Notes the reach of each share. A share that no reach gives ends the list. */
static void note_reaches(sl_split *split, const tuning *t) {
    size_t count = 0, asked = 0;
    for (size_t i = 0; i < SHARES && t->found; i++) {
        size_t at = (size_t)ceil(shares[i] * (double)t->found);
        const float reach = fmaxf(t->needed[at ? at - 1 : 0], -1);
        if (isinf(reach)) break;
        while (asked < t->further && t->others[asked] <= reach)
            asked++;
        split->reaches[count++] =
            (sl_split_reach){.share = shares[i], .reach = reach, .asked = 1 + (float)asked / (float)t->queries};
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
    t.held = sl_mem_array(allocator, sample->k, sizeof *t.held, &status);
    t.routes = sl_mem_array(allocator, parts, sizeof *t.routes, &status);
    if (status == SL_OK) status = sl_router_create(&split->cells, &t.router);
    status = sl_comm_agree(comm, status);
    if (status == SL_OK) status = find_parts(comm, layout, places, sample, t.packed);
    if (status == SL_OK) {
        route_sample(split, sample, &t);
        note_reaches(split, &t);
    }
    sl_router_free(t.router);
    SL_FREE_ARRAY(allocator, t.packed, all);
    SL_FREE_ARRAY(allocator, t.needed, all);
    SL_FREE_ARRAY(allocator, t.others, sample->count * parts);
    SL_FREE_ARRAY(allocator, t.held, sample->k);
    SL_FREE_ARRAY(allocator, t.routes, parts);
    return status;
}
