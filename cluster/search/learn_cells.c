#include "cluster/search/learn_cells.h"

#include "base/thread.h"
#include "cluster/search/arrange_cells.h"
#include "distance/codec/vector_check.h"

#include <math.h>
#include <string.h>

enum { TURNS = 10 };

/* Sums over rows are whole numbers, so they are the same in any order: steps of 2^-40 of the largest element. */
#define STEPS 0x1p40

typedef struct learning {
    const sl_comm *comm;
    const sl_cell_sample *sample;
    size_t count, threads;
    sl_cells flat; /* all cells in one group of one part */
    sl_router **routers;
    uint64_t *counts;          /* of each rank: rows that have a direction; under L2 all rows */
    size_t first, rows, total; /* of these rows: number of this rank's first, this rank's, all ranks' */
    float *unit;               /* this rank's rows; of length 1 unless under L2 */
    uint32_t *nearest;         /* the two nearest cells of each */
    double step;               /* a sum's unit */
    uint64_t *sums;            /* (count, dim), as two's complement */
    uint64_t *sizes;           /* rows of each cell */
} learning;

static sl_status alloc_learning(learning *l) {
    const sl_allocator allocator = sl_allocator_of(NULL);
    const sl_cell_sample *sample = l->sample;
    sl_status status = SL_OK;
    SL_TRY(sl_cells_create(&allocator, sample->dim, sample->metric, 1, 1, l->count, &l->flat));
    l->flat.starts[1] = 1;
    l->flat.starts[3] = (uint32_t)l->count;
    l->routers = sl_mem_array(&allocator, l->threads, sizeof *l->routers, &status);
    l->counts = sl_mem_array(&allocator, l->comm->ranks, sizeof *l->counts, &status);
    l->nearest = sl_mem_array(&allocator, 2 * sample->count, sizeof *l->nearest, &status);
    l->unit = sl_mem_array(&allocator, sample->count * sample->dim, sizeof *l->unit, &status);
    l->sums = sl_mem_array(&allocator, l->count * sample->dim, sizeof *l->sums, &status);
    l->sizes = sl_mem_array(&allocator, l->count, sizeof *l->sizes, &status);
    for (size_t i = 0; status == SL_OK && i < l->threads; i++)
        status = sl_router_create(&l->flat, &l->routers[i]);
    return status;
}

static void free_learning(learning *l) {
    const sl_allocator allocator = sl_allocator_of(NULL);
    const sl_cell_sample *sample = l->sample;
    for (size_t i = 0; l->routers && i < l->threads; i++)
        sl_router_free(l->routers[i]);
    SL_FREE_ARRAY(&allocator, l->routers, l->threads);
    SL_FREE_ARRAY(&allocator, l->counts, l->comm->ranks);
    SL_FREE_ARRAY(&allocator, l->nearest, 2 * sample->count);
    SL_FREE_ARRAY(&allocator, l->unit, sample->count * sample->dim);
    SL_FREE_ARRAY(&allocator, l->sums, l->count * sample->dim);
    SL_FREE_ARRAY(&allocator, l->sizes, l->count);
    sl_cells_free(&l->flat);
}

sl_status sl_cell_sample_check(const sl_cell_sample *sample, size_t n) {
    for (size_t r = 0; r < sample->count; r++) {
        sl_status status = sl_vector_check(sample->metric, SL_F32, sample->rows + r * sample->dim, sample->dim);
        if (status != SL_OK) return sl_fail_in(status, "row %zu", sl_comm_share(n, sample->first + r, sample->total));
    }
    return SL_OK;
}

/* Copies the rows. Zero rows have no direction, so they are left out unless under L2. */
static void copy_rows(learning *l) {
    const sl_cell_sample *sample = l->sample;
    for (size_t r = 0; r < sample->count; r++) {
        float *row = l->unit + l->rows * sample->dim;
        memcpy(row, sample->rows + r * sample->dim, sample->dim * sizeof *row);
        if (sample->metric == SL_METRIC_L2 || sl_cells_scale_to_unit(row, sample->dim)) l->rows++;
    }
}

/* Numbers the rows that are left, over all ranks. */
static sl_status number_rows(learning *l) {
    l->counts[l->comm->rank] = l->rows;
    SL_TRY(sl_comm_sum_counts(l->comm, l->counts, l->comm->ranks));
    for (size_t r = 0; r < l->comm->ranks; r++) {
        if (r < l->comm->rank) l->first += (size_t)l->counts[r];
        l->total += (size_t)l->counts[r];
    }
    if (l->total) return SL_OK;
    return sl_fail(SL_EVALUE,
                   "all %zu vectors of the sample are zero: there is no direction by which parts could be "
                   "made; leave zero vectors out, or split into slices",
                   l->sample->total);
}

/* Agrees on the unit of the sums. */
static sl_status choose_step(learning *l) {
    uint64_t most = 0;
    float largest = 0;
    for (size_t i = 0; i < l->rows * l->sample->dim; i++)
        largest = fmaxf(largest, fabsf(l->unit[i]));
    /* Floats above 0 are in the order of their bits. */
    memcpy(&most, &largest, sizeof largest);
    SL_TRY(sl_comm_max(l->comm, &most));
    memcpy(&largest, &most, sizeof largest);
    l->step = (largest > 0 ? (double)largest : 1) / STEPS;
    return SL_OK;
}

static void add_row(learning *l, size_t cell, const float *row) {
    for (size_t i = 0; i < l->sample->dim; i++)
        l->sums[cell * l->sample->dim + i] += (uint64_t)llrint((double)row[i] / l->step);
    l->sizes[cell]++;
}

/* Makes each cell's centre the mean of its rows. A cell without rows keeps its centre. So does a cell whose rows add up
 * to 0, unless under L2. */
static sl_status make_centres(learning *l) {
    const size_t dim = l->sample->dim;
    SL_TRY(sl_comm_sum_counts(l->comm, l->sums, l->count * dim));
    SL_TRY(sl_comm_sum_counts(l->comm, l->sizes, l->count));
    for (size_t c = 0; c < l->count; c++) {
        float *centre = l->flat.centres + c * dim;
        int is_zero = 1;
        if (!l->sizes[c]) continue;
        for (size_t i = 0; i < dim; i++)
            is_zero = is_zero && l->sums[c * dim + i] == 0;
        if (is_zero && l->sample->metric != SL_METRIC_L2) continue;
        for (size_t i = 0; i < dim; i++)
            centre[i] = (float)((double)(int64_t)l->sums[c * dim + i] * l->step / (double)l->sizes[c]);
        if (l->sample->metric != SL_METRIC_L2) (void)sl_cells_scale_to_unit(centre, dim);
    }
    memcpy(l->flat.group_centres, l->flat.centres, dim * sizeof *l->flat.centres);
    sl_cells_encode(&l->flat);
    return SL_OK;
}

static void clear_sums(learning *l) {
    memset(l->sums, 0, l->count * l->sample->dim * sizeof *l->sums);
    memset(l->sizes, 0, l->count * sizeof *l->sizes);
}

/* The first centres: rows at equal steps through the sample. */
static sl_status choose_centres(learning *l) {
    clear_sums(l);
    for (size_t c = 0; c < l->count; c++) {
        const size_t row = sl_comm_share(l->total, c, l->count);
        if (row >= l->first && row - l->first < l->rows) add_row(l, c, l->unit + (row - l->first) * l->sample->dim);
    }
    return make_centres(l);
}

static void find_nearest(learning *l) {
#pragma omp parallel for schedule(static) num_threads((int)l->threads) if (l->threads > 1)
    for (size_t r = 0; r < l->rows; r++)
        sl_router_nearest(l->routers[sl_thread_number()], l->unit + r * l->sample->dim, SL_F32, l->nearest + 2 * r);
}

static sl_status take_turn(learning *l) {
    find_nearest(l);
    clear_sums(l);
    for (size_t r = 0; r < l->rows; r++)
        add_row(l, l->nearest[2 * r], l->unit + r * l->sample->dim);
    return make_centres(l);
}

/* Counts the rows between each two cells: those whose two nearest cells these are. */
static sl_status count_between(learning *l, uint64_t *between) {
    find_nearest(l);
    memset(l->sizes, 0, l->count * sizeof *l->sizes);
    for (size_t r = 0; r < l->rows; r++) {
        const size_t a = l->nearest[2 * r], b = l->nearest[2 * r + 1];
        l->sizes[a]++;
        if (a == b) continue;
        between[a * l->count + b]++;
        between[b * l->count + a]++;
    }
    SL_TRY(sl_comm_sum_counts(l->comm, l->sizes, l->count));
    return sl_comm_sum_counts(l->comm, between, l->count * l->count);
}

/* Rank 0 arranges the cells, and all others take over what it found: other machines may round otherwise. */
static sl_status arrange(learning *l, const uint64_t *between, size_t parts, sl_cells *out) {
    const sl_allocator allocator = sl_allocator_of(NULL);
    const size_t dim = l->sample->dim;
    uint64_t groups = 0;
    sl_status status = SL_OK;
    if (l->comm->rank == 0)
        status = sl_cells_arrange(&l->flat, l->sample->metric, &(sl_cell_counts){l->sizes, between}, parts, out);
    SL_TRY(sl_comm_agree(l->comm, status));
    if (l->comm->rank == 0) groups = out->groups;
    SL_TRY(sl_comm_broadcast(l->comm, &groups, sizeof groups, 0));
    if (l->comm->rank != 0)
        status = sl_cells_create(&allocator, dim, l->sample->metric, parts, (size_t)groups, l->count, out);
    SL_TRY(sl_comm_agree(l->comm, status));
    SL_TRY(sl_comm_broadcast(l->comm, out->starts, sl_cells_starts(parts, out->groups) * sizeof *out->starts, 0));
    SL_TRY(sl_comm_broadcast(l->comm, out->centres, l->count * dim * sizeof *out->centres, 0));
    SL_TRY(sl_comm_broadcast(l->comm, out->group_centres, out->groups * dim * sizeof *out->group_centres, 0));
    sl_cells_encode(out);
    return SL_OK;
}

sl_status sl_cells_learn(const sl_comm *comm, const sl_cell_sample *sample, size_t count, size_t parts, size_t threads,
                         sl_cells *out) {
    const sl_allocator allocator = sl_allocator_of(NULL);
    learning l = {.comm = comm, .sample = sample, .count = count, .threads = sl_thread_count(threads)};
    uint64_t *between = NULL;
    *out = (sl_cells){.dim = 0};
    sl_status status = alloc_learning(&l);
    if (status == SL_OK) between = sl_mem_array(&allocator, count * count, sizeof *between, &status);
    status = sl_comm_agree(comm, status);
    if (status == SL_OK) copy_rows(&l);
    if (status == SL_OK) status = number_rows(&l);
    if (status == SL_OK) status = choose_step(&l);
    if (status == SL_OK) status = choose_centres(&l);
    for (size_t t = 0; status == SL_OK && t < TURNS; t++)
        status = take_turn(&l);
    if (status == SL_OK) status = count_between(&l, between);
    if (status == SL_OK) status = arrange(&l, between, parts, out);
    SL_FREE_ARRAY(&allocator, between, count * count);
    free_learning(&l);
    return status;
}
