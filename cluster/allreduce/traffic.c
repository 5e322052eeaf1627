#include "cluster/allreduce/traffic.h"

enum { TAG_NUMBERS = 11 };

sl_status sl_traffic_create(const sl_comm *comm, sl_wire wire, size_t room, size_t transfers,
                            const sl_allocator *allocator, sl_traffic *out) {
    const size_t size = sl_wire_size(wire);
    void *block;
    sl_status status = SL_OK;
    *out = (sl_traffic){.allocator = *allocator, .comm = *comm, .wire = wire, .transfers = transfers};
    out->request_room = 2 * (transfers + room * size / SL_COMM_PIECE);
    out->arrivals = sl_mem_array(allocator, transfers, sizeof *out->arrivals, &status);
    out->requests = sl_mem_array(allocator, out->request_room, sizeof *out->requests, &status);
    SL_TRY(status);
    SL_TRY(sl_mem_alloc_raw(allocator, room * size, &block));
    out->in = block;
    out->room = room;
    if (wire == SL_WIRE_F32) return SL_OK;
    SL_TRY(sl_mem_alloc_raw(allocator, room * size, &block));
    out->out = block;
    return SL_OK;
}

void sl_traffic_free(sl_traffic *traffic) {
    const sl_allocator *allocator = &traffic->allocator;
    if (!allocator->free) return;
    SL_FREE_ARRAY(allocator, traffic->arrivals, traffic->transfers);
    SL_FREE_ARRAY(allocator, traffic->requests, traffic->request_room);
    sl_mem_free(allocator, traffic->in, traffic->room * sl_wire_size(traffic->wire));
    sl_mem_free(allocator, traffic->out, traffic->room * sl_wire_size(traffic->wire));
    *traffic = (sl_traffic){.room = 0};
}

sl_status sl_traffic_send(sl_traffic *traffic, const float *numbers, size_t count, size_t rank) {
    const size_t bytes = count * sl_wire_size(traffic->wire);
    const void *data = numbers;
    if (traffic->wire != SL_WIRE_F32) {
        char *packed = traffic->out + traffic->out_used;
        sl_wire_pack(traffic->wire, numbers, count, packed);
        traffic->out_used += bytes;
        data = packed;
    }
    MPI_Request *requests = traffic->requests + traffic->request_count;
    traffic->request_count += sl_comm_pieces(bytes);
    return sl_comm_send(&traffic->comm, data, bytes, rank, TAG_NUMBERS, requests);
}

sl_status sl_traffic_receive(sl_traffic *traffic, float *to, size_t count, size_t rank, int adds) {
    const size_t bytes = count * sl_wire_size(traffic->wire);
    /* Floats that are stored arrive where they go. */
    const int direct = traffic->wire == SL_WIRE_F32 && !adds;
    char *from = direct ? (char *)to : traffic->in + traffic->in_used;
    if (!direct) {
        traffic->arrivals[traffic->arrival_count++] = (sl_arrival){to, from, count, adds};
        traffic->in_used += bytes;
    }
    MPI_Request *requests = traffic->requests + traffic->request_count;
    traffic->request_count += sl_comm_pieces(bytes);
    return sl_comm_receive(&traffic->comm, from, bytes, rank, TAG_NUMBERS, requests);
}

sl_status sl_traffic_finish(sl_traffic *traffic) {
    SL_TRY(sl_comm_wait(&traffic->comm, traffic->requests, traffic->request_count));
    for (size_t i = 0; i < traffic->arrival_count; i++) {
        const sl_arrival *arrival = &traffic->arrivals[i];
        if (arrival->adds)
            sl_wire_add(traffic->wire, arrival->from, arrival->count, arrival->to);
        else
            sl_wire_unpack(traffic->wire, arrival->from, arrival->count, arrival->to);
    }
    traffic->request_count = traffic->arrival_count = traffic->in_used = traffic->out_used = 0;
    return SL_OK;
}
