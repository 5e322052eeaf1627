/* Times MPI_Allreduce of floats: median, least and most seconds of ROUNDS sums of COUNT numbers, on the slowest rank.
 * Usage: library_sum COUNT ROUNDS. Any MPI compiles it. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int order(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv) {
    int rank, rounds = argc > 2 ? atoi(argv[2]) : 0;
    const int count = argc > 1 ? atoi(argv[1]) : 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    float *numbers = calloc((size_t)count + 1, sizeof *numbers);
    double *seconds = calloc((size_t)rounds + 1, sizeof *seconds);
    if (rounds < 1 || !numbers || !seconds) MPI_Abort(MPI_COMM_WORLD, 1);
    /* The first sum touches the buffers, and does not count. */
    for (int round = -1; round < rounds; round++) {
        MPI_Barrier(MPI_COMM_WORLD);
        double begin = MPI_Wtime(), taken;
        MPI_Allreduce(MPI_IN_PLACE, numbers, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        taken = MPI_Wtime() - begin;
        MPI_Allreduce(MPI_IN_PLACE, &taken, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        if (round >= 0) seconds[round] = taken;
    }
    qsort(seconds, (size_t)rounds, sizeof *seconds, order);
    if (rank == 0) printf("%.9g %.9g %.9g\n", seconds[rounds / 2], seconds[0], seconds[rounds - 1]);
    free(numbers);
    free(seconds);
    MPI_Finalize();
    return 0;
}
