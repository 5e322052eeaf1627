/* The transfers of one step: numbers leave in the wire's type, and are added or stored when all have arrived. */
#ifndef SL_CLUSTER_ALLREDUCE_TRAFFIC_H
#define SL_CLUSTER_ALLREDUCE_TRAFFIC_H

#include "cluster/allreduce/wire.h"
#include "cluster/comm/comm.h"

/* Some of the numbers. */
typedef struct sl_slice {
    size_t at, count;
} sl_slice;

/* Part i of `parts` parts of a range. The first ones are one number longer if the count does not divide. */
static inline sl_slice sl_slice_part(sl_slice range, size_t parts, size_t i) {
    const size_t size = range.count / parts, rest = range.count % parts;
    return (sl_slice){range.at + i * size + (i < rest ? i : rest), size + (i < rest)};
}

/* Numbers that arrive: where they go, and whether they are added there. */
typedef struct sl_arrival {
    float *to;
    char *from;
    size_t count;
    int adds;
} sl_arrival;

typedef struct sl_traffic {
    sl_allocator allocator;
    sl_comm comm;
    sl_wire wire;
    size_t room, transfers; /* numbers and transfers that a step may send, and may receive */
    char *in, *out;         /* buffers of `room` numbers each; `out` is NULL for f32, which leaves as it lies */
    size_t in_used, out_used, arrival_count, request_count, request_room;
    sl_arrival *arrivals;
    MPI_Request *requests;
} sl_traffic;

/* Makes room for a step's numbers and transfers, each way. The communicator belongs to the caller. The caller frees,
 * also on failure. Errors: SL_ENOMEM. */
sl_status sl_traffic_create(const sl_comm *comm, sl_wire wire, size_t room, size_t transfers,
                            const sl_allocator *allocator, sl_traffic *out);
void sl_traffic_free(sl_traffic *traffic);

/* Begins to send numbers[0..count), which stay in place until sl_traffic_finish. */
sl_status sl_traffic_send(sl_traffic *traffic, const float *numbers, size_t count, size_t rank);
/* Begins to receive `count` numbers, to be added to `to` or to be stored there. */
sl_status sl_traffic_receive(sl_traffic *traffic, float *to, size_t count, size_t rank, int adds);
/* Waits for all transfers of the step, and adds and stores in the order of the sl_traffic_receive calls. */
sl_status sl_traffic_finish(sl_traffic *traffic);

#endif
