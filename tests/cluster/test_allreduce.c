/* Sums of all algorithms, shapes, counts and types: right, the same on every rank, and of the cost by formula. */
#include "base/crc32c.h"
#include "base/random.h"
#include "cluster/allreduce/allreduce.h"
#include "tests/cluster/ranks_main.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT_MAX = 200003 };

static size_t me, all;
static float *numbers;

static void set_up(void) {
    me = all_ranks.rank;
    all = all_ranks.ranks;
    numbers = malloc(COUNT_MAX * sizeof *numbers);
    rank_assert(numbers != NULL);
}

static void tear_down(void) {
    free(numbers);
}

/* Number i of a rank: of both signs, and of magnitudes that differ by three powers of ten. */
static float number_of(size_t rank, size_t i) {
    const uint64_t bits = sl_random_at(rank, i);
    const float size = (bits & 1) ? 1.0f : 1e-3f;
    return size * (float)((double)(bits >> 40) * 0x1p-23 - 1.0);
}

/* Checks numbers[i] against the sum in double precision. */
static void check_sum(size_t i, double bound) {
    double sum = 0, magnitude = 0;
    for (size_t r = 0; r < all; r++) {
        sum += number_of(r, i);
        magnitude += fabs((double)number_of(r, i));
    }
    rank_assert(fabs((double)numbers[i] - sum) <= bound * magnitude * (1 + 1e-9));
}

static uint64_t hash_of(size_t count) {
    return sl_crc32c(0, numbers, count * sizeof *numbers);
}

/* Runs a sum, and checks the result, its bits on all ranks, and its cost. Returns the bits' hash. */
static uint64_t run_and_check(sl_allreduce *reduce, size_t count) {
    const sl_allreduce_cost cost = sl_allreduce_cost_of(reduce, count);
    for (size_t i = 0; i < count; i++)
        numbers[i] = number_of(me, i);
    const sl_comm_counts before = sl_comm_counted(&all_ranks);
    rank_assert_ok(sl_allreduce_run(reduce, numbers, count));
    const sl_comm_counts after = sl_comm_counted(&all_ranks);
    rank_assert(after.messages - before.messages == cost.messages);
    rank_assert(after.bytes - before.bytes == cost.bytes);
    for (size_t i = 0; i < count; i += 1 + count / 4096)
        check_sum(i, sl_allreduce_bound(reduce, count));
    if (count) check_sum(count - 1, sl_allreduce_bound(reduce, count));
    uint64_t least = hash_of(count), most = least;
    rank_assert_ok(sl_comm_min(&all_ranks, &least));
    rank_assert_ok(sl_comm_max(&all_ranks, &most));
    rank_assert(least == most);
    return least;
}

/* Bytes that all ranks send together, by a formula that knows no schedule: each number goes to all others and back,
 * and to the folded ranks. */
static uint64_t bytes_of_all(const sl_allreduce_params *used, size_t count) {
    const size_t size = used->wire == SL_WIRE_BF16 ? 2 : 4;
    size_t ranks = all, folded = 0;
    if (all == 1) return 0;
    if (used->algorithm == SL_ALLREDUCE_MPI) return all * count * size;
    if (used->algorithm == SL_ALLREDUCE_RABENSEIFNER || used->algorithm == SL_ALLREDUCE_BINE)
        for (ranks = 1; 2 * ranks <= all; ranks *= 2)
            folded = all - 2 * ranks;
    return 2 * (ranks - 1 + folded) * count * size;
}

static void check_total(const sl_allreduce *reduce, size_t count) {
    const sl_allreduce_params used = sl_allreduce_used(reduce, count);
    uint64_t bytes = sl_allreduce_cost_of(reduce, count).bytes;
    rank_assert_ok(sl_comm_sum_counts(&all_ranks, &bytes, 1));
    rank_assert(bytes == bytes_of_all(&used, count));
}

/* All counts with one object. */
static void try_params(const sl_allreduce_params *params) {
    const size_t counts[] = {0, 1, all - 1, all, 31, 10007, COUNT_MAX};
    sl_allreduce *reduce;
    rank_assert_ok(sl_allreduce_create(&all_ranks, params, COUNT_MAX, &reduce));
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        uint64_t hash = run_and_check(reduce, counts[i]);
        check_total(reduce, counts[i]);
        if (params->algorithm != SL_ALLREDUCE_MPI && counts[i] < 100)
            rank_assert(run_and_check(reduce, counts[i]) == hash);
    }
    sl_allreduce_free(reduce);
}

static void try_wires(sl_allreduce_params params) {
    for (params.wire = SL_WIRE_F32; params.wire <= SL_WIRE_BF16; params.wire++)
        try_params(&params);
}

START_TEST(sums_without_shape) {
    const sl_allreduce_algorithm algorithms[] = {SL_ALLREDUCE_AUTO, SL_ALLREDUCE_MPI, SL_ALLREDUCE_RING,
                                                 SL_ALLREDUCE_RABENSEIFNER, SL_ALLREDUCE_BINE};
    for (size_t i = 0; i < sizeof algorithms / sizeof *algorithms; i++)
        try_wires((sl_allreduce_params){.algorithm = algorithms[i]});
}
END_TEST

START_TEST(sums_on_a_torus_of_any_shape) {
    for (size_t rows = 1; rows <= all; rows++)
        for (int lane = SL_LANE_HALVING; lane <= SL_LANE_RING && all % rows == 0; lane++)
            try_wires((sl_allreduce_params){
                .algorithm = SL_ALLREDUCE_TORUS, .rows = rows, .columns = all / rows, .lane = (sl_lane)lane});
}
END_TEST

/* All ranks get this failure. */
static void refuses(sl_allreduce_params params, size_t max_count, const char *message) {
    sl_allreduce *reduce;
    rank_assert(sl_allreduce_create(&all_ranks, &params, max_count, &reduce) == SL_EINVAL);
    rank_assert(reduce == NULL);
    rank_assert(strstr(sl_last_error(), message) != NULL);
}

START_TEST(refuses_wrong_parameters) {
    sl_allreduce *reduce;
    const sl_allreduce_params ring = {.algorithm = SL_ALLREDUCE_RING};
    refuses((sl_allreduce_params){.algorithm = SL_ALLREDUCE_TORUS, .rows = all + 1}, 10, "does not fit");
    refuses((sl_allreduce_params){.algorithm = SL_ALLREDUCE_TORUS, .rows = SIZE_MAX, .columns = 2}, 10, "does not fit");
    refuses((sl_allreduce_params){.algorithm = SL_ALLREDUCE_RING, .columns = all}, 10, "has no shape");
    refuses((sl_allreduce_params){.algorithm = SL_ALLREDUCE_COUNT}, 10, "no algorithm");
    refuses((sl_allreduce_params){.lane = (sl_lane)9}, 10, "unknown");
    if (all > 1) refuses(ring, 10 + me, "different parameters");
    rank_assert_ok(sl_allreduce_create(&all_ranks, &ring, 10, &reduce));
    rank_assert(sl_allreduce_run(reduce, numbers, 11) == SL_EINVAL);
    rank_assert(run_and_check(reduce, 10) != 0);
    sl_allreduce_free(reduce);
    sl_allreduce_free(NULL);
}
END_TEST

START_TEST(names_stand_for_algorithms) {
    for (int i = 0; i < SL_ALLREDUCE_COUNT; i++)
        rank_assert(sl_allreduce_of_name(sl_allreduce_name((sl_allreduce_algorithm)i)) == (sl_allreduce_algorithm)i);
    rank_assert(sl_allreduce_of_name("rings") == SL_ALLREDUCE_COUNT);
    rank_assert(strcmp(sl_allreduce_name(SL_ALLREDUCE_TORUS_PUT), "torus-put") == 0);
}
END_TEST

int main(int argc, char **argv) {
    TCase *test = tcase_create("allreduce");
    tcase_add_checked_fixture(test, set_up, tear_down);
    tcase_set_timeout(test, 120);
    tcase_add_test(test, sums_without_shape);
    tcase_add_test(test, sums_on_a_torus_of_any_shape);
    tcase_add_test(test, refuses_wrong_parameters);
    tcase_add_test(test, names_stand_for_algorithms);
    return ranks_main(argc, argv, "allreduce", &test, 1);
}
