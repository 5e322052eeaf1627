/* All-reduces on simulated ranks: the files of cluster/allreduce, compiled by SimGrid's smpicc.
 *
 *   smpirun -np P ... simulate CASES [verify]
 *
 * CASES has a line for each sum: bytes algorithm rows columns lane sync put_reduces chunk. The algorithm "native" calls
 * MPI_Allreduce, whose algorithm --cfg=smpi/coll-selector chooses. Rank 0 prints a line for each: seconds, messages and
 * bytes that it sends, steps. Without `verify`, no number is read or written, and all ranks share one small buffer. */
#include "base/random.h"
#include "cluster/allreduce/allreduce.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct sum_case {
    size_t bytes;
    int is_native;
    sl_allreduce_params params;
} sum_case;

static sl_comm all;

static void fail(const char *what) {
    fprintf(stderr, "simulate: %s: %s\n", what, sl_last_error());
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* Returns whether the line is a case. */
static int parse_case(const char *line, sum_case *out) {
    char algorithm[32];
    int lane, sync;
    *out = (sum_case){.bytes = 0};
    sl_allreduce_params *params = &out->params;
    if (sscanf(line, "%zu %31s %zu %zu %d %d %d %zu", &out->bytes, algorithm, &params->rows, &params->columns, &lane,
               &sync, &params->put_reduces, &params->chunk) != 8)
        return 0;
    params->lane = (sl_lane)lane;
    params->sync = (sl_window_sync)sync;
    out->is_native = strcmp(algorithm, "native") == 0;
    params->algorithm = out->is_native ? SL_ALLREDUCE_MPI : sl_allreduce_of_name(algorithm);
    return params->algorithm < SL_ALLREDUCE_COUNT;
}

/* Adds nothing: the simulated time of additions is measured apart. */
static void add_nothing(void *in, void *inout, int *count, MPI_Datatype *type) {
    (void)in;
    (void)inout;
    (void)count;
    (void)type;
}

/* Number i of a rank, whose sums are exact in floats. */
static float number_of(size_t rank, size_t i) {
    return (float)(sl_random_at(rank, i) % 64);
}

static void check_sums(const float *numbers, size_t count) {
    for (size_t i = 0; i < count; i++) {
        float sum = 0;
        for (size_t r = 0; r < all.ranks; r++)
            sum += number_of(r, i);
        if (numbers[i] != sum) fail("a sum is wrong");
    }
}

/* Runs a sum and returns its time on the slowest rank. */
static double run_case(const sum_case *one, float *numbers, float *sums, MPI_Op nothing, int verify) {
    const size_t count = one->bytes / sizeof *numbers;
    sl_allreduce *reduce = NULL;
    if (!one->is_native && sl_allreduce_create(&all, &one->params, count, &reduce) != SL_OK) fail("create");
    if (reduce && sl_allreduce_used(reduce, count).algorithm != one->params.algorithm) fail("replaced");
    for (size_t i = 0; i < count && verify; i++)
        numbers[i] = number_of(all.rank, i);
    const sl_comm_counts before = sl_comm_counted(&all);
    MPI_Barrier(MPI_COMM_WORLD);
    double begin = MPI_Wtime(), taken, slowest;
    if (one->is_native)
        MPI_Allreduce(numbers, sums, (int)count, MPI_FLOAT, verify ? MPI_SUM : nothing, MPI_COMM_WORLD);
    else if (sl_allreduce_run(reduce, numbers, count) != SL_OK)
        fail("run");
    taken = MPI_Wtime() - begin;
    const sl_comm_counts after = sl_comm_counted(&all);
    MPI_Reduce(&taken, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (verify) check_sums(one->is_native ? sums : numbers, count);
    if (!one->is_native && after.messages - before.messages != sl_allreduce_cost_of(reduce, count).messages)
        fail("other messages than the formula says");
    if (all.rank == 0)
        printf("%.9g %llu %llu %zu\n", slowest, (unsigned long long)(after.messages - before.messages),
               (unsigned long long)(after.bytes - before.bytes),
               reduce ? sl_allreduce_cost_of(reduce, count).steps : 0);
    fflush(stdout);
    sl_allreduce_free(reduce);
    return slowest;
}

int main(int argc, char **argv) {
    char line[256];
    sum_case one;
    size_t largest = 0;
    const int verify = argc > 2;
    MPI_Op nothing;
    FILE *cases = argc > 1 ? fopen(argv[1], "r") : NULL;
    if (sl_comm_start(&argc, &argv, &all) != SL_OK) return EXIT_FAILURE;
    if (!cases) fail("cannot read the cases");
    MPI_Op_create(add_nothing, 1, &nothing);
    while (fgets(line, sizeof line, cases))
        if (parse_case(line, &one) && one.bytes > largest) largest = one.bytes;
    rewind(cases);
    float *numbers = verify ? malloc(largest + 4) : SMPI_SHARED_MALLOC(largest + 4);
    float *sums = verify ? malloc(largest + 4) : SMPI_SHARED_MALLOC(largest + 4);
    while (fgets(line, sizeof line, cases)) {
        if (!parse_case(line, &one)) fail(line);
        run_case(&one, numbers, sums, nothing, verify);
    }
    fclose(cases);
    MPI_Op_free(&nothing);
    if (verify) {
        free(numbers);
        free(sums);
    } else {
        SMPI_SHARED_FREE(numbers);
        SMPI_SHARED_FREE(sums);
    }
    sl_comm_end(&all);
    return EXIT_SUCCESS;
}
