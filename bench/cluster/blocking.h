/* In front of each file of a simulation: the simulator's nonblocking collective calls send a message between any two
 * ranks, so blocking ones take their place. */
#include <mpi.h>

#define MPI_Ibarrier(comm, request) (*(request) = MPI_REQUEST_NULL, MPI_Barrier(comm))
#define MPI_Ibcast(data, count, type, root, comm, request)                                                             \
    (*(request) = MPI_REQUEST_NULL, MPI_Bcast(data, count, type, root, comm))
#define MPI_Iallgather(from, count, type, to, count_to, type_to, comm, request)                                        \
    (*(request) = MPI_REQUEST_NULL, MPI_Allgather(from, count, type, to, count_to, type_to, comm))
#define MPI_Iallgatherv(from, count, type, to, counts, places, type_to, comm, request)                                 \
    (*(request) = MPI_REQUEST_NULL, MPI_Allgatherv(from, count, type, to, counts, places, type_to, comm))
#define MPI_Ialltoall(from, count, type, to, count_to, type_to, comm, request)                                         \
    (*(request) = MPI_REQUEST_NULL, MPI_Alltoall(from, count, type, to, count_to, type_to, comm))
#define MPI_Iallreduce(from, to, count, type, op, comm, request)                                                       \
    (*(request) = MPI_REQUEST_NULL, MPI_Allreduce(from, to, count, type, op, comm))
