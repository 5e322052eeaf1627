#include "cluster/allreduce/scheme.h"

#include "cluster/allreduce/mpi_sum.h"

#include <stdio.h>

static int is_torus(sl_allreduce_algorithm algorithm) {
    return algorithm == SL_ALLREDUCE_TORUS || algorithm == SL_ALLREDUCE_TORUS_PUT;
}

/* The least divisor that is not below the root: columns are at least as many as rows. */
static size_t square_columns(size_t ranks) {
    size_t columns = 1;
    while (columns * columns < ranks || ranks % columns != 0)
        columns++;
    return columns;
}

sl_status sl_scheme_choose(sl_allreduce_params *params, size_t ranks) {
    if (!is_torus(params->algorithm)) {
        if (params->rows || params->columns)
            return sl_fail(SL_EINVAL, "algorithm %s has no shape; give a shape to torus and torus-put",
                           sl_allreduce_name(params->algorithm));
        return SL_OK;
    }
    if (!params->rows && !params->columns) params->columns = square_columns(ranks);
    if (!params->columns && ranks % params->rows == 0) params->columns = ranks / params->rows;
    if (!params->rows && ranks % params->columns == 0) params->rows = ranks / params->columns;
    size_t product;
    if (sl_mul(params->rows, params->columns, &product) && product == ranks) return SL_OK;
    return sl_fail(SL_EINVAL, "a torus of %zu rows and %zu columns does not fit %zu ranks; their product must be %zu",
                   params->rows, params->columns, ranks, ranks);
}

/* ---- The ranks' places ---- */

static size_t power_below(size_t number) {
    size_t power = 1;
    while (power <= number / 2)
        power *= 2;
    return power;
}

/* Lays the ranks out for recursive halving. Ranks beyond a power of two fold into their neighbours. */
static sl_status create_folded(sl_scheme *scheme, sl_row_kind kind) {
    const size_t ranks = scheme->comm.ranks, rank = scheme->comm.rank, length = power_below(ranks);
    const size_t pairs = ranks - length, pair = rank / 2;
    const sl_row_layout layout = {
        .stride = 1, .length = length, .pairs = pairs, .place = pair < pairs ? pair : rank - pairs};
    if (pair < pairs) {
        scheme->folds = rank % 2 == 1;
        scheme->folded_with = scheme->folds ? rank - 1 : rank + 1;
    }
    scheme->row_count = 1;
    return sl_row_create(kind, &layout, &scheme->allocator, &scheme->rows[0]);
}

static sl_status create_torus(sl_scheme *scheme) {
    const size_t rank = scheme->comm.rank, rows = scheme->params.rows, columns = scheme->params.columns;
    const sl_row_kind kind = scheme->params.lane == SL_LANE_RING ? SL_ROW_RING : SL_ROW_HALVING;
    const sl_row_layout row = {.first = rank - rank % columns, .stride = 1, .length = columns, .place = rank % columns};
    const sl_row_layout column = {.first = rank % columns, .stride = columns, .length = rows, .place = rank / columns};
    scheme->row_count = 2;
    SL_TRY(sl_row_create(kind, &row, &scheme->allocator, &scheme->rows[0]));
    return sl_row_create(kind, &column, &scheme->allocator, &scheme->rows[1]);
}

static sl_status create_rows(sl_scheme *scheme) {
    const sl_row_layout all = {.stride = 1, .length = scheme->comm.ranks, .place = scheme->comm.rank};
    switch (scheme->params.algorithm) {
    case SL_ALLREDUCE_RING:
        scheme->row_count = 1;
        return sl_row_create(SL_ROW_RING, &all, &scheme->allocator, &scheme->rows[0]);
    case SL_ALLREDUCE_RABENSEIFNER:
        return create_folded(scheme, SL_ROW_HALVING);
    case SL_ALLREDUCE_BINE:
        return create_folded(scheme, SL_ROW_BINE);
    case SL_ALLREDUCE_TORUS:
    case SL_ALLREDUCE_TORUS_PUT:
        return create_torus(scheme);
    default:
        return scheme->params.wire == SL_WIRE_BF16 ? sl_mpi_sum_op(&scheme->comm, &scheme->op) : SL_OK;
    }
}

/* Numbers of the largest step. */
static size_t room_of(const sl_scheme *scheme, size_t max_count) {
    size_t room = scheme->row_count == 0 && scheme->params.wire == SL_WIRE_BF16 ? max_count : 0;
    if (scheme->folded_with < scheme->comm.ranks) return max_count + 1;
    for (size_t i = 0; i < scheme->row_count; i++)
        room = sl_larger(room, sl_row_room(&scheme->rows[i], max_count));
    return room;
}

/* ---- Windows, and their proof ---- */

/* Numbers of the trial sum. Each one comes from a single rank, so its sum is exact on any wire. */
static float trial_number(size_t i, size_t turn) {
    return (float)(1 + (i + 100 * turn) % 200);
}

/* Sums numbers through the windows. Returns SL_EIO if one is wrong. */
static sl_status try_windows(sl_scheme *scheme, float *numbers, size_t count, size_t turn) {
    const size_t ranks = scheme->comm.ranks;
    for (size_t i = 0; i < count; i++)
        numbers[i] = i % ranks == scheme->comm.rank ? trial_number(i, turn) : 0;
    SL_TRY(sl_put_run(&scheme->put, &scheme->rows[0], &scheme->rows[1], &scheme->traffic, numbers, count));
    for (size_t i = 0; i < count; i++)
        if (numbers[i] != trial_number(i, turn)) return sl_fail(SL_EIO, "a sum through windows is wrong");
    return SL_OK;
}

static sl_status prove_windows(sl_scheme *scheme, size_t max_count) {
#ifdef SL_SMPI
    (void)try_windows;
    (void)scheme;
    (void)max_count;
    return SL_OK; /* a simulation of times has no numbers */
#else
    const size_t many = 8 * scheme->comm.ranks + 5, count = many < max_count ? many : max_count;
    sl_status status = SL_OK;
    float *numbers = sl_mem_array(&scheme->allocator, count, sizeof *numbers, &status);
    SL_TRY(sl_comm_agree(&scheme->comm, status));
    for (size_t turn = 0; turn < 2 && status == SL_OK; turn++)
        status = sl_comm_agree(&scheme->comm, try_windows(scheme, numbers, count, turn));
    SL_FREE_ARRAY(&scheme->allocator, numbers, count);
    return status;
#endif
}

/* Makes the windows. The two-sided torus takes over if they fail or give a wrong sum. */
static sl_status create_put(sl_scheme *scheme, size_t max_count) {
    const sl_allreduce_params *params = &scheme->params;
    char line[SL_ERROR_SIZE + 128];
    sl_status status =
        sl_put_create(&scheme->comm, &scheme->rows[0], params, max_count, &scheme->allocator, &scheme->put);
    status = sl_comm_agree(&scheme->comm, status);
    if (status == SL_OK) status = prove_windows(scheme, max_count);
    if (status == SL_OK) {
        scheme->put.is_proven = 1;
        return SL_OK;
    }
    snprintf(line, sizeof line, "all-reduce: torus replaces torus-put, since %s", sl_last_error());
    uint64_t wrecked = scheme->put.is_wrecked ? 1 : 0;
    SL_TRY(sl_comm_max(&scheme->comm, &wrecked));
    scheme->put.is_wrecked = wrecked != 0;
    if (params->log && scheme->comm.rank == 0) params->log(params->log_ctx, SL_LOG_WARN, line);
    sl_put_free(&scheme->put);
    scheme->params.algorithm = SL_ALLREDUCE_TORUS;
    return SL_OK;
}

/* ---- Life ---- */

sl_status sl_scheme_create(const sl_comm *comm, const sl_allreduce_params *params, size_t max_count,
                           const sl_allocator *allocator, sl_scheme *out) {
    size_t transfers = 1;
    *out = (sl_scheme){
        .allocator = *allocator, .comm = *comm, .params = *params, .folded_with = comm->ranks, .op = MPI_OP_NULL};
    SL_TRY(create_rows(out));
    for (size_t i = 0; i < out->row_count; i++)
        transfers = sl_larger(transfers, sl_row_transfers(&out->rows[i]));
    sl_status status =
        sl_traffic_create(comm, params->wire, room_of(out, max_count), transfers, allocator, &out->traffic);
    if (params->algorithm != SL_ALLREDUCE_TORUS_PUT || comm->ranks == 1 || max_count == 0) return status;
    SL_TRY(sl_comm_agree(comm, status));
    return create_put(out, max_count);
}

void sl_scheme_free(sl_scheme *scheme) {
    for (size_t i = 0; i < scheme->row_count; i++)
        sl_row_free(&scheme->rows[i]);
    sl_put_free(&scheme->put);
    sl_traffic_free(&scheme->traffic);
    if (scheme->op != MPI_OP_NULL && !sl_comm_is_broken(&scheme->comm)) {
        sl_comm_lock(&scheme->comm);
        MPI_Op_free(&scheme->op);
        sl_comm_unlock(&scheme->comm);
    }
}

/* ---- Run ---- */

/* Adds up the numbers of ranks that fold, before the rows, or hands the sums back, after them. */
static sl_status fold(sl_scheme *scheme, float *numbers, size_t count, int back) {
    if (scheme->folded_with == scheme->comm.ranks) return SL_OK;
    if (scheme->folds == !back)
        SL_TRY(sl_traffic_send(&scheme->traffic, numbers, count, scheme->folded_with));
    else
        SL_TRY(sl_traffic_receive(&scheme->traffic, numbers, count, scheme->folded_with, !back));
    return sl_traffic_finish(&scheme->traffic);
}

static sl_status run_rows(sl_scheme *scheme, float *numbers, size_t count) {
    sl_slice ranges[3] = {{0, count}};
    const size_t rows = scheme->row_count;
    for (size_t i = 0; i < rows; i++)
        SL_TRY(sl_row_scatter(&scheme->rows[i], &scheme->traffic, numbers, ranges[i], &ranges[i + 1]));
    /* The ranks that get the sums get them rounded. */
    sl_wire_round(scheme->params.wire, numbers + ranges[rows].at, ranges[rows].count);
    for (size_t i = rows; i-- > 0;)
        SL_TRY(sl_row_gather(&scheme->rows[i], &scheme->traffic, numbers, ranges[i]));
    return SL_OK;
}

sl_status sl_scheme_run(sl_scheme *scheme, float *numbers, size_t count) {
    if (count == 0 || scheme->comm.ranks == 1) return SL_OK;
    if (scheme->params.algorithm == SL_ALLREDUCE_MPI) return sl_mpi_sum(&scheme->traffic, scheme->op, numbers, count);
    if (scheme->params.algorithm == SL_ALLREDUCE_TORUS_PUT)
        return sl_put_run(&scheme->put, &scheme->rows[0], &scheme->rows[1], &scheme->traffic, numbers, count);
    SL_TRY(fold(scheme, numbers, count, 0));
    if (!scheme->folds) SL_TRY(run_rows(scheme, numbers, count));
    return fold(scheme, numbers, count, 1);
}

/* ---- Cost ---- */

/* One transfer for each call of MPI. The library's additions may follow one another. */
static void mpi_cost(const sl_scheme *scheme, size_t count, sl_allreduce_cost *cost) {
    sl_cost_add(cost, scheme->params.wire, 1, count);
    if (scheme->params.wire == SL_WIRE_BF16) {
        cost->messages = (count + SL_COMM_FLOATS - 1) / SL_COMM_FLOATS;
        cost->roundings = scheme->comm.ranks;
    }
    cost->steps = 1;
    cost->sums += scheme->comm.ranks - 1;
}

static void rows_cost(const sl_scheme *scheme, size_t count, sl_allreduce_cost *cost) {
    sl_slice ranges[3] = {{0, count}};
    for (size_t i = 0; i < scheme->row_count; i++) {
        sl_row_scatter_cost(&scheme->rows[i], scheme->params.wire, ranges[i], cost);
        ranges[i + 1] = sl_row_own(&scheme->rows[i], ranges[i]);
    }
    for (size_t i = scheme->row_count; i-- > 0;)
        sl_row_gather_cost(&scheme->rows[i], scheme->params.wire, ranges[i], cost);
}

void sl_scheme_cost(const sl_scheme *scheme, size_t count, sl_allreduce_cost *cost) {
    const sl_wire wire = scheme->params.wire;
    sl_allreduce_cost rows = {.messages = 0};
    const int halves = wire == SL_WIRE_BF16;
    if (count == 0 || scheme->comm.ranks == 1) return;
    if (scheme->params.algorithm == SL_ALLREDUCE_MPI) {
        mpi_cost(scheme, count, cost);
        return;
    }
    if (scheme->params.algorithm == SL_ALLREDUCE_TORUS_PUT)
        sl_put_cost(&scheme->put, &scheme->rows[0], &scheme->rows[1], count, &rows);
    else
        rows_cost(scheme, count, &rows);
    if (!scheme->folds) {
        cost->messages += rows.messages;
        cost->bytes += rows.bytes;
    }
    if (scheme->folded_with < scheme->comm.ranks) sl_cost_add(cost, wire, 1, count);
    const int others_fold = scheme->row_count == 1 && scheme->rows[0].layout.pairs > 0;
    cost->steps += rows.steps + (others_fold ? 2 : 0);
    cost->sums += rows.sums + (size_t)others_fold;
    cost->roundings += rows.roundings + (size_t)halves + (size_t)(halves && others_fold);
}
