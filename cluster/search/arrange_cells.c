#include "cluster/search/arrange_cells.h"

#include "distance/double.h"

#include <math.h>
#include <string.h>

/* A part may be this much larger than the mean. Tries differ in their first cells. Passes end when nothing moves. */
#define MOST_LOAD 1.10
enum { TRIES = 24, PASSES = 30, GROUP_TURNS = 8 };

#define NONE UINT32_MAX

typedef struct arranging {
    const sl_cells *cells;
    const sl_cell_counts *counts;
    size_t n, parts;       /* n: cells */
    double most;           /* rows of a part */
    uint32_t *part, *best; /* part of each cell: of this try, of the best try */
    uint64_t *loads;       /* rows of each part */
    uint64_t *joined;      /* (parts, n): rows between a part's cells and a cell */
    double *lonely;        /* of each free cell: squared distance from the nearest seed */
} arranging;

static const float *centre_of(const sl_cells *cells, size_t c) {
    return cells->centres + c * cells->dim;
}

/* ---- Parts ---- */

static void put(arranging *a, size_t c, uint32_t part) {
    const uint64_t *between = a->counts->between + c * a->n;
    const uint32_t old = a->part[c];
    for (size_t x = 0; x < a->n; x++) {
        if (old != NONE) a->joined[old * a->n + x] -= between[x];
        a->joined[part * a->n + x] += between[x];
    }
    if (old != NONE) a->loads[old] -= a->counts->sizes[c];
    a->loads[part] += a->counts->sizes[c];
    a->part[c] = part;
}

/* Compares the free cells with the newest seed. Returns the cell that is farthest from all seeds. */
static size_t next_seed(arranging *a, size_t newest) {
    size_t farthest = 0;
    double most = -1;
    for (size_t c = 0; c < a->n; c++) {
        if (a->part[c] != NONE) continue;
        const double distance = sl_l2_double(centre_of(a->cells, c), centre_of(a->cells, newest), a->cells->dim);
        a->lonely[c] = fmin(a->lonely[c], distance);
        if (a->lonely[c] > most) {
            most = a->lonely[c];
            farthest = c;
        }
    }
    return farthest;
}

/* Puts one cell into each part, each far from the ones before. */
static void put_seeds(arranging *a, size_t seed) {
    for (size_t c = 0; c < a->n; c++)
        a->lonely[c] = INFINITY;
    put(a, seed, 0);
    for (uint32_t p = 1; p < a->parts; p++) {
        seed = next_seed(a, seed);
        put(a, seed, p);
    }
}

/* The free cell with the largest share of its rows towards the part. */
static size_t best_free_cell(const arranging *a, size_t part) {
    size_t best = a->n;
    double most = -1;
    for (size_t c = 0; c < a->n; c++) {
        if (a->part[c] != NONE) continue;
        const double share = (double)a->joined[part * a->n + c] / (double)(a->counts->sizes[c] + 1);
        if (share > most) {
            most = share;
            best = c;
        }
    }
    return best;
}

/* Lets the smallest part take a cell until none is free. */
static void grow_parts(arranging *a) {
    for (size_t left = a->n - a->parts; left > 0; left--) {
        size_t least = 0;
        for (size_t p = 1; p < a->parts; p++)
            if (a->loads[p] < a->loads[least]) least = p;
        put(a, best_free_cell(a, least), (uint32_t)least);
    }
}

static int64_t gain_of(const arranging *a, size_t c, size_t to) {
    return (int64_t)a->joined[to * a->n + c] - (int64_t)a->joined[a->part[c] * a->n + c];
}

static int fits(const arranging *a, size_t part, uint64_t more, uint64_t less) {
    return (double)(a->loads[part] + more - less) <= a->most;
}

/* The cell of part `to` whose exchange for c gains most; n if none gains. */
static size_t best_exchange(const arranging *a, size_t c, size_t to) {
    const uint64_t *sizes = a->counts->sizes;
    const size_t from = a->part[c];
    size_t best = a->n;
    int64_t most = 0;
    for (size_t x = 0; x < a->n; x++) {
        if (a->part[x] != to || !fits(a, to, sizes[c], sizes[x]) || !fits(a, from, sizes[x], sizes[c])) continue;
        const int64_t gain = gain_of(a, c, to) + gain_of(a, x, from) - 2 * (int64_t)a->counts->between[c * a->n + x];
        if (gain > most) {
            most = gain;
            best = x;
        }
    }
    return best;
}

/* Moves a cell to another part, or exchanges it. Returns whether it moved. */
static int move_cell(arranging *a, size_t c, size_t to) {
    const size_t from = a->part[c];
    if (gain_of(a, c, to) > 0 && fits(a, to, a->counts->sizes[c], 0)) {
        put(a, c, (uint32_t)to);
        return 1;
    }
    const size_t other = best_exchange(a, c, to);
    if (other == a->n) return 0;
    put(a, c, (uint32_t)to);
    put(a, other, (uint32_t)from);
    return 1;
}

/* Moves a cell to the first part that gains by it: those that it has rows towards come by their number. */
static int improve_cell(arranging *a, size_t c) {
    for (size_t p = 0; p < a->parts; p++)
        if (p != a->part[c] && a->joined[p * a->n + c] && move_cell(a, c, p)) return 1;
    return 0;
}

/* Rows that lie between cells of two parts. */
static uint64_t rows_cut(const arranging *a) {
    uint64_t cut = 0;
    for (size_t c = 0; c < a->n; c++)
        for (size_t p = 0; p < a->parts; p++)
            if (p != a->part[c]) cut += a->joined[p * a->n + c];
    return cut / 2;
}

static uint64_t try_parts(arranging *a, size_t first) {
    memset(a->loads, 0, a->parts * sizeof *a->loads);
    memset(a->joined, 0, a->parts * a->n * sizeof *a->joined);
    for (size_t c = 0; c < a->n; c++)
        a->part[c] = NONE;
    put_seeds(a, first);
    grow_parts(a);
    for (size_t pass = 0, moved = 1; moved && pass < PASSES; pass++) {
        moved = 0;
        for (size_t c = 0; c < a->n; c++)
            moved += (size_t)improve_cell(a, c);
    }
    return rows_cut(a);
}

/* Finds the part of each cell. */
static void find_parts(arranging *a) {
    uint64_t rows = 0, least = UINT64_MAX;
    for (size_t c = 0; c < a->n; c++)
        rows += a->counts->sizes[c];
    a->most = MOST_LOAD * (double)rows / (double)a->parts;
    for (size_t t = 0; t < TRIES; t++) {
        const uint64_t cut = try_parts(a, a->n * t / TRIES);
        if (cut >= least) continue;
        least = cut;
        memcpy(a->best, a->part, a->n * sizeof *a->best);
    }
}

/* ---- Groups ---- */

/* The cells of one part, and their groups. */
typedef struct grouping {
    const sl_cells *cells;
    int angular;
    const uint32_t *members; /* cells of the part */
    size_t count, groups;
    uint32_t *group;      /* of each member */
    float *centres;       /* (groups, dim) */
    uint32_t *members_of; /* members of each group */
} grouping;

/* Puts each member into the nearest group. */
static void assign_members(grouping *g) {
    const size_t dim = g->cells->dim;
    memset(g->members_of, 0, g->groups * sizeof *g->members_of);
    for (size_t i = 0; i < g->count; i++) {
        double least = INFINITY;
        for (uint32_t group = 0; group < g->groups; group++) {
            const double distance = sl_l2_double(centre_of(g->cells, g->members[i]), g->centres + group * dim, dim);
            if (distance >= least) continue;
            least = distance;
            g->group[i] = group;
        }
        g->members_of[g->group[i]]++;
    }
}

/* The centre of the first member of a group that has members. */
static const float *first_of_group(const grouping *g, uint32_t group) {
    size_t first = 0;
    while (g->group[first] != group)
        first++;
    return centre_of(g->cells, g->members[first]);
}

/* Makes each group's centre the mean of its members; a group without members keeps its centre. */
static void move_centres(grouping *g) {
    const size_t dim = g->cells->dim;
    for (uint32_t group = 0; group < g->groups; group++) {
        float *centre = g->centres + group * dim;
        if (!g->members_of[group]) continue;
        memset(centre, 0, dim * sizeof *centre);
        for (size_t i = 0; i < g->count; i++)
            for (size_t d = 0; g->group[i] == group && d < dim; d++)
                centre[d] += centre_of(g->cells, g->members[i])[d] / (float)g->members_of[group];
        /* Opposite directions may cancel each other. */
        if (g->angular && !sl_cells_scale_to_unit(centre, dim))
            memcpy(centre, first_of_group(g, group), dim * sizeof *centre);
    }
}

static void find_groups(grouping *g) {
    const size_t dim = g->cells->dim;
    for (size_t group = 0; group < g->groups; group++)
        memcpy(g->centres + group * dim, centre_of(g->cells, g->members[group * g->count / g->groups]),
               dim * sizeof *g->centres);
    assign_members(g);
    for (size_t t = 0; t < GROUP_TURNS; t++) {
        move_centres(g);
        assign_members(g);
    }
}

/* The groups that a part with this many cells gets. */
static size_t groups_of(size_t cells) {
    return (cells + SL_CELLS_GROUP - 1) / SL_CELLS_GROUP;
}

/* Writes a part's groups and cells behind those of the parts before. */
static void append_part(const grouping *g, size_t *group_at, size_t *cell_at, sl_cells *out) {
    const size_t dim = out->dim;
    uint32_t *group_starts = out->starts + out->parts + 1;
    for (uint32_t group = 0; group < g->groups; group++) {
        memcpy(out->group_centres + *group_at * dim, g->centres + group * dim, dim * sizeof *g->centres);
        group_starts[(*group_at)++] = (uint32_t)*cell_at;
        for (size_t i = 0; i < g->count; i++)
            if (g->group[i] == group)
                memcpy(out->centres + (*cell_at)++ * dim, centre_of(g->cells, g->members[i]), dim * sizeof *g->centres);
    }
    group_starts[*group_at] = (uint32_t)*cell_at;
}

static size_t list_members(const arranging *a, size_t part, uint32_t *members) {
    size_t count = 0;
    for (size_t c = 0; c < a->n; c++)
        if (a->best[c] == part) members[count++] = (uint32_t)c;
    return count;
}

/* Groups the cells of each part, and writes all in their order. */
static sl_status write_parts(const arranging *a, sl_metric metric, sl_cells *out) {
    const sl_allocator *allocator = &a->cells->allocator;
    const size_t most = groups_of(a->n);
    sl_status status = SL_OK;
    size_t group_at = 0, cell_at = 0;
    uint32_t *members = sl_mem_array(allocator, a->n, sizeof *members, &status);
    grouping g = {.cells = a->cells, .angular = metric != SL_METRIC_L2, .members = members};
    g.group = sl_mem_array(allocator, a->n, sizeof *g.group, &status);
    g.centres = sl_mem_array(allocator, most * out->dim, sizeof *g.centres, &status);
    g.members_of = sl_mem_array(allocator, most, sizeof *g.members_of, &status);
    for (size_t p = 0; status == SL_OK && p < a->parts; p++) {
        g.count = list_members(a, p, members);
        g.groups = groups_of(g.count);
        out->starts[p] = (uint32_t)group_at;
        find_groups(&g);
        append_part(&g, &group_at, &cell_at, out);
    }
    if (status == SL_OK) out->starts[a->parts] = (uint32_t)group_at;
    SL_FREE_ARRAY(allocator, members, a->n);
    SL_FREE_ARRAY(allocator, g.group, a->n);
    SL_FREE_ARRAY(allocator, g.centres, most * out->dim);
    SL_FREE_ARRAY(allocator, g.members_of, most);
    return status;
}

static size_t count_groups(const arranging *a) {
    size_t groups = 0;
    for (size_t p = 0; p < a->parts; p++) {
        size_t count = 0;
        for (size_t c = 0; c < a->n; c++)
            count += a->best[c] == p;
        groups += groups_of(count);
    }
    return groups;
}

sl_status sl_cells_arrange(const sl_cells *cells, sl_metric metric, const sl_cell_counts *counts, size_t parts,
                           sl_cells *out) {
    const sl_allocator *allocator = &cells->allocator;
    const size_t n = cells->count;
    arranging a = {.cells = cells, .counts = counts, .n = n, .parts = parts};
    sl_status status = SL_OK;
    *out = (sl_cells){.dim = 0};
    a.part = sl_mem_array(allocator, n, sizeof *a.part, &status);
    a.best = sl_mem_array(allocator, n, sizeof *a.best, &status);
    a.loads = sl_mem_array(allocator, parts, sizeof *a.loads, &status);
    a.joined = sl_mem_array(allocator, parts * n, sizeof *a.joined, &status);
    a.lonely = sl_mem_array(allocator, n, sizeof *a.lonely, &status);
    if (status == SL_OK) {
        find_parts(&a);
        status = sl_cells_create(allocator, cells->dim, metric, parts, count_groups(&a), n, out);
    }
    if (status == SL_OK) status = write_parts(&a, metric, out);
    SL_FREE_ARRAY(allocator, a.part, n);
    SL_FREE_ARRAY(allocator, a.best, n);
    SL_FREE_ARRAY(allocator, a.loads, parts);
    SL_FREE_ARRAY(allocator, a.joined, parts * n);
    SL_FREE_ARRAY(allocator, a.lonely, n);
    return status;
}
