#include "cluster/allreduce/mpi_sum.h"

static void add_bf16(void *in, void *inout, int *count, MPI_Datatype *type) {
    const uint16_t *from = in;
    uint16_t *to = inout;
    (void)type;
    for (int i = 0; i < *count; i++)
        to[i] = sl_wire_to_bf16(sl_wire_of_bf16(from[i]) + sl_wire_of_bf16(to[i]));
}

sl_status sl_mpi_sum_op(const sl_comm *comm, MPI_Op *op) {
    sl_comm_lock(comm);
    int result = MPI_Op_create(add_bf16, 1, op);
    sl_comm_unlock(comm);
    return sl_comm_check(comm, result, "MPI_Op_create");
}

static sl_status sum_piece(const sl_comm *comm, void *data, size_t count, MPI_Datatype type, MPI_Op op) {
#ifdef SL_SMPI
    /* The simulator's own choice of algorithm serves blocking calls alone. */
    return sl_comm_check(comm, MPI_Allreduce(MPI_IN_PLACE, data, (int)count, type, op, comm->mpi), "MPI_Allreduce");
#else
    MPI_Request request;
    sl_comm_lock(comm);
    int result = MPI_Iallreduce(MPI_IN_PLACE, data, (int)count, type, op, comm->mpi, &request);
    sl_comm_unlock(comm);
    SL_TRY(sl_comm_check(comm, result, "MPI_Iallreduce"));
    return sl_comm_wait(comm, &request, 1);
#endif
}

sl_status sl_mpi_sum(sl_traffic *traffic, MPI_Op op, float *numbers, size_t count) {
    const int halves = traffic->wire == SL_WIRE_BF16;
    if (halves) sl_wire_pack(traffic->wire, numbers, count, traffic->in);
    for (size_t at = 0; at < count; at += SL_COMM_FLOATS) {
        const size_t size = count - at < SL_COMM_FLOATS ? count - at : SL_COMM_FLOATS;
        void *data = halves ? (void *)(traffic->in + at * sizeof(uint16_t)) : numbers + at;
        SL_TRY(sum_piece(&traffic->comm, data, size, halves ? MPI_UINT16_T : MPI_FLOAT, halves ? op : MPI_SUM));
        sl_comm_count(&traffic->comm, 1, size * sl_wire_size(traffic->wire));
    }
    if (halves) sl_wire_unpack(traffic->wire, traffic->in, count, numbers);
    return SL_OK;
}
