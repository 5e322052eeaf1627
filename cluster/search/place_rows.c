#include "cluster/search/place_rows.h"

#include "base/thread.h"
#include "cluster/search/parts.h"

#include <string.h>

static void place_row(sl_router *router, const uint8_t *row, sl_dtype dtype, sl_opening opening, sl_route *routes,
                      sl_row_place *out) {
    const size_t count = sl_router_find(router, row, dtype, opening, routes, NULL);
    *out = (sl_row_place){.part = (uint16_t)routes[0].part, .second = SL_NO_PART};
    if (count < 2) return;
    out->second = (uint16_t)routes[1].part;
    out->reach = routes[1].reach;
}

sl_status sl_rows_place(const sl_cells *cells, sl_opening opening, size_t threads, const void *rows, sl_dtype dtype,
                        size_t count, sl_row_place *places) {
    const sl_allocator *allocator = &cells->allocator;
    const size_t row = cells->dim * sl_dtype_size(dtype), workers = sl_thread_count(threads);
    sl_status status = SL_OK;
    sl_router **routers = sl_mem_array(allocator, workers, sizeof *routers, &status);
    sl_route *routes = sl_mem_array(allocator, workers * cells->parts, sizeof *routes, &status);
    for (size_t i = 0; status == SL_OK && i < workers; i++)
        status = sl_router_create(cells, &routers[i]);
    if (status == SL_OK) {
#pragma omp parallel for schedule(dynamic, 64) num_threads((int)workers) if (workers > 1)
        for (size_t i = 0; i < count; i++)
            place_row(routers[sl_thread_number()], (const uint8_t *)rows + i * row, dtype, opening,
                      routes + sl_thread_number() * cells->parts, &places[i]);
    }
    for (size_t i = 0; routers && i < workers; i++)
        sl_router_free(routers[i]);
    SL_FREE_ARRAY(allocator, routers, workers);
    SL_FREE_ARRAY(allocator, routes, workers * cells->parts);
    return status;
}

/* ---- Copies ---- */

/* Reaches are counted by their upper bits: floats of 0 and more are in the order of their bits. */
enum { BINS = 32768 };

static size_t bin_of(float reach) {
    uint32_t bits;
    memcpy(&bits, &reach, sizeof bits);
    return bits >> 16 & (BINS - 1);
}

sl_status sl_rows_limit_copies(const sl_comm *comm, sl_row_place *places, size_t count, uint64_t most,
                               uint64_t *copies) {
    const sl_allocator allocator = sl_allocator_of(NULL);
    sl_status status = SL_OK;
    uint64_t *bins = sl_mem_array(&allocator, BINS, sizeof *bins, &status);
    size_t end = 0;
    *copies = 0;
    status = sl_comm_agree(comm, status);
    for (size_t i = 0; status == SL_OK && i < count; i++)
        if (places[i].second != SL_NO_PART) bins[bin_of(places[i].reach)]++;
    if (status == SL_OK) status = sl_comm_sum_counts(comm, bins, BINS);
    while (status == SL_OK && end < BINS && bins[end] <= most - *copies)
        *copies += bins[end++];
    for (size_t i = 0; status == SL_OK && i < count; i++)
        if (places[i].second != SL_NO_PART && bin_of(places[i].reach) >= end) places[i].second = SL_NO_PART;
    SL_FREE_ARRAY(&allocator, bins, BINS);
    return status;
}

/* ---- Rows on their way ---- */

void sl_part_rows_free(sl_part_rows *rows) {
    SL_FREE_ARRAY(&rows->allocator, rows->rows, rows->rows_room);
    SL_FREE_ARRAY(&rows->allocator, rows->numbers, rows->numbers_room);
    SL_FREE_ARRAY(&rows->allocator, rows->others, rows->others_room);
    *rows = (sl_part_rows){.rows = NULL};
}

/* A row in a message: its number, its part and the other part that holds it, then its elements. */
typedef struct sent_row {
    uint64_t number;
    uint16_t part, other;
    uint32_t unused;
} sent_row;

static size_t sent_size(size_t row) {
    return (sizeof(sent_row) + row + 7) / 8 * 8;
}

static sl_status append_row(sl_part_rows *part, const sent_row *sent, const uint8_t *row) {
    sl_status status = SL_OK;
    part->rows = sl_mem_grow(&part->allocator, part->rows, &part->rows_room, (part->count + 1) * part->row, 1, &status);
    part->numbers = sl_mem_grow(&part->allocator, part->numbers, &part->numbers_room, part->count + 1,
                                sizeof *part->numbers, &status);
    part->others =
        sl_mem_grow(&part->allocator, part->others, &part->others_room, part->count + 1, sizeof *part->others, &status);
    SL_TRY(status);
    memcpy(part->rows + part->count * part->row, row, part->row);
    part->others[part->count] = sent->other == SL_NO_PART ? 0 : (uint64_t)sent->other + 1;
    part->numbers[part->count++] = sent->number;
    return SL_OK;
}

/* Rows on their way out. */
typedef struct sending {
    const sl_comm *comm;
    const sl_placed_rows *rows;
    size_t parts;
    size_t *places; /* next byte of each rank's message */
    uint8_t *out;   /* NULL: only count the bytes */
} sending;

static void send_row(sending *sending, size_t i, uint16_t part, uint16_t other) {
    const sl_placed_rows *rows = sending->rows;
    const sent_row sent = {.number = rows->first + i, .part = part, .other = other};
    size_t *place = &sending->places[sl_rank_of_part(part, sending->parts, sending->comm->ranks)];
    if (sending->out) {
        memcpy(sending->out + *place, &sent, sizeof sent);
        memcpy(sending->out + *place + sizeof sent, rows->rows + i * rows->row, rows->row);
    }
    *place += sent_size(rows->row);
}

/* Writes all rows to their messages, or counts their bytes. */
static void send_all(sending *sending) {
    for (size_t i = 0; i < sending->rows->count; i++) {
        const sl_row_place *place = &sending->rows->places[i];
        send_row(sending, i, place->part, place->second);
        if (place->second != SL_NO_PART) send_row(sending, i, place->second, place->part);
    }
}

static sl_status take_rows(const sl_comm *comm, size_t parts, size_t row, const sl_parts *got, sl_part_rows *mine) {
    const size_t first = sl_comm_share(parts, comm->rank, comm->ranks);
    for (size_t at = 0; at < got->at[got->ranks]; at += sent_size(row)) {
        sent_row sent;
        memcpy(&sent, got->data + at, sizeof sent);
        SL_TRY(append_row(&mine[sent.part - first], &sent, got->data + at + sizeof sent));
    }
    return SL_OK;
}

sl_status sl_rows_send(const sl_comm *comm, size_t parts, const sl_placed_rows *rows, sl_part_rows *mine) {
    const sl_allocator allocator = sl_allocator_of(NULL);
    sl_parts to = {.data = NULL}, got = {.data = NULL};
    sl_status status = SL_OK;
    size_t *sizes = sl_mem_array(&allocator, comm->ranks, sizeof *sizes, &status);
    sending sending = {.comm = comm, .rows = rows, .parts = parts, .places = sizes};
    if (status == SL_OK) {
        send_all(&sending);
        status = sl_parts_create(&allocator, comm->ranks, sizes, &to);
    }
    if (status == SL_OK) {
        memcpy(sizes, to.at, comm->ranks * sizeof *sizes);
        sending.out = to.data;
        send_all(&sending);
    }
    status = sl_comm_agree(comm, status);
    if (status == SL_OK) status = sl_comm_exchange(comm, &to, &allocator, &got);
    sl_parts_free(&to);
    if (status == SL_OK) status = sl_comm_agree(comm, take_rows(comm, parts, rows->row, &got, mine));
    sl_parts_free(&got);
    SL_FREE_ARRAY(&allocator, sizes, comm->ranks);
    return status;
}
