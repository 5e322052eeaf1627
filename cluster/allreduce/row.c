#include "cluster/allreduce/row.h"

sl_status sl_row_create(sl_row_kind kind, const sl_row_layout *layout, const sl_allocator *allocator, sl_row *out) {
    *out = (sl_row){.kind = kind, .layout = *layout};
    if (kind == SL_ROW_BINE) return sl_levels_bine(layout->length, layout->place, allocator, &out->levels);
    return sl_levels_halving(layout->length, layout->place, allocator, &out->levels);
}

void sl_row_free(sl_row *row) {
    sl_levels_free(&row->levels);
}

/* The rank `steps` places to the left. */
static size_t place_before(const sl_row *row, size_t steps) {
    return (row->layout.place + row->layout.length - steps) % row->layout.length;
}

sl_slice sl_row_after(const sl_row *row, size_t levels, sl_slice range) {
    for (size_t l = 0; l < levels; l++)
        range = sl_slice_part(range, row->levels.level[l].ways, row->levels.level[l].digit);
    return range;
}

sl_slice sl_row_own(const sl_row *row, sl_slice range) {
    return sl_row_after(row, row->levels.count, range);
}

sl_slice sl_row_part(const sl_row *row, sl_slice range, size_t place) {
    for (size_t l = 0; l < row->levels.count; l++) {
        const size_t ways = row->levels.level[l].ways;
        range = sl_slice_part(range, ways, place % ways);
        place /= ways;
    }
    return range;
}

/* ---- Ring ---- */

/* One step round the ring: this rank's part `out` goes right, and part out - 1 comes from the left. */
static sl_status pass_on(const sl_row *row, sl_traffic *traffic, float *numbers, sl_slice range, size_t out, int adds) {
    const size_t length = row->layout.length;
    const sl_slice leaves = sl_row_part(row, range, out);
    const sl_slice comes = sl_row_part(row, range, (out + length - 1) % length);
    const size_t left = sl_row_rank(row, place_before(row, 1)), right = sl_row_rank(row, place_before(row, length - 1));
    SL_TRY(sl_traffic_receive(traffic, numbers + comes.at, comes.count, left, adds));
    SL_TRY(sl_traffic_send(traffic, numbers + leaves.at, leaves.count, right));
    return sl_traffic_finish(traffic);
}

/* ---- Levels ---- */

static sl_status scatter_level(const sl_row *row, const sl_level *level, sl_traffic *traffic, float *numbers,
                               sl_slice range) {
    const sl_slice own = sl_slice_part(range, level->ways, level->digit);
    for (size_t i = 0; i < level->ways; i++)
        if (i != level->digit)
            SL_TRY(sl_traffic_receive(traffic, numbers + own.at, own.count, sl_row_rank(row, level->places[i]), 1));
    for (size_t i = 0; i < level->ways; i++) {
        const sl_slice part = sl_slice_part(range, level->ways, i);
        if (i != level->digit)
            SL_TRY(sl_traffic_send(traffic, numbers + part.at, part.count, sl_row_rank(row, level->places[i])));
    }
    return sl_traffic_finish(traffic);
}

static sl_status gather_level(const sl_row *row, const sl_level *level, sl_traffic *traffic, float *numbers,
                              sl_slice range) {
    const sl_slice own = sl_slice_part(range, level->ways, level->digit);
    for (size_t i = 0; i < level->ways; i++) {
        const sl_slice part = sl_slice_part(range, level->ways, i);
        if (i != level->digit)
            SL_TRY(sl_traffic_receive(traffic, numbers + part.at, part.count, sl_row_rank(row, level->places[i]), 0));
    }
    for (size_t i = 0; i < level->ways; i++)
        if (i != level->digit)
            SL_TRY(sl_traffic_send(traffic, numbers + own.at, own.count, sl_row_rank(row, level->places[i])));
    return sl_traffic_finish(traffic);
}

/* ---- Reduce-scatter and all-gather ---- */

size_t sl_row_scatter_steps(const sl_row *row) {
    return row->kind == SL_ROW_RING ? row->layout.length - 1 : row->levels.count;
}

sl_status sl_row_scatter_step(const sl_row *row, size_t step, sl_traffic *traffic, float *numbers, sl_slice range) {
    if (row->kind == SL_ROW_RING) return pass_on(row, traffic, numbers, range, place_before(row, step + 1), 1);
    return scatter_level(row, &row->levels.level[step], traffic, numbers, sl_row_after(row, step, range));
}

sl_status sl_row_scatter(const sl_row *row, sl_traffic *traffic, float *numbers, sl_slice range, sl_slice *own) {
    *own = sl_row_own(row, range);
    for (size_t step = 0; step < sl_row_scatter_steps(row); step++)
        SL_TRY(sl_row_scatter_step(row, step, traffic, numbers, range));
    return SL_OK;
}

sl_status sl_row_gather(const sl_row *row, sl_traffic *traffic, float *numbers, sl_slice range) {
    if (row->kind == SL_ROW_RING) {
        for (size_t step = 0; step + 1 < row->layout.length; step++)
            SL_TRY(pass_on(row, traffic, numbers, range, place_before(row, step), 0));
        return SL_OK;
    }
    for (size_t l = row->levels.count; l-- > 0;)
        SL_TRY(gather_level(row, &row->levels.level[l], traffic, numbers, sl_row_after(row, l, range)));
    return SL_OK;
}

/* ---- Cost ---- */

void sl_cost_add(sl_allreduce_cost *cost, sl_wire wire, size_t transfers, size_t count) {
    const size_t bytes = count * sl_wire_size(wire);
    cost->messages += transfers * sl_comm_pieces(bytes);
    cost->bytes += transfers * bytes;
}

/* A ring sends all parts but one. */
static void ring_cost(const sl_row *row, sl_wire wire, sl_slice range, size_t kept, sl_allreduce_cost *cost) {
    const size_t length = row->layout.length;
    for (size_t i = 0; i < length; i++)
        if (i != kept) sl_cost_add(cost, wire, 1, sl_row_part(row, range, i).count);
    cost->steps += length - 1;
}

void sl_row_scatter_cost(const sl_row *row, sl_wire wire, sl_slice range, sl_allreduce_cost *cost) {
    if (row->kind == SL_ROW_RING) {
        ring_cost(row, wire, range, row->layout.place, cost);
        cost->sums += row->layout.length - 1;
        cost->roundings += wire == SL_WIRE_BF16 ? row->layout.length - 1 : 0;
        return;
    }
    for (size_t l = 0; l < row->levels.count; l++) {
        const sl_level *level = &row->levels.level[l];
        for (size_t i = 0; i < level->ways; i++)
            if (i != level->digit) sl_cost_add(cost, wire, 1, sl_slice_part(range, level->ways, i).count);
        range = sl_slice_part(range, level->ways, level->digit);
        cost->steps++;
        cost->sums += level->ways - 1;
        cost->roundings += wire == SL_WIRE_BF16;
    }
}

void sl_row_gather_cost(const sl_row *row, sl_wire wire, sl_slice range, sl_allreduce_cost *cost) {
    const size_t length = row->layout.length;
    if (row->kind == SL_ROW_RING) {
        ring_cost(row, wire, range, (row->layout.place + 1) % length, cost);
        return;
    }
    sl_row_levels_cost(row, wire, range, cost);
}

void sl_row_levels_cost(const sl_row *row, sl_wire wire, sl_slice range, sl_allreduce_cost *cost) {
    for (size_t l = 0; l < row->levels.count; l++) {
        range = sl_slice_part(range, row->levels.level[l].ways, row->levels.level[l].digit);
        sl_cost_add(cost, wire, row->levels.level[l].ways - 1, range.count);
        cost->steps++;
    }
}

/* ---- Room ---- */

size_t sl_row_transfers(const sl_row *row) {
    size_t most = 1;
    if (row->kind == SL_ROW_RING) return 1;
    for (size_t l = 0; l < row->levels.count; l++)
        most = sl_larger(most, row->levels.level[l].ways - 1);
    return most;
}

size_t sl_row_room(const sl_row *row, size_t count) {
    /* A part may be a number longer than the others. */
    if (row->kind == SL_ROW_RING) return count / row->layout.length + 1;
    return row->levels.count ? count + sl_row_transfers(row) + 1 : 0;
}
