/* Sums of all algorithms, shapes, counts and types: right, the same on every rank, and of the cost by formula. */
#define _GNU_SOURCE
#include "base/crc32c.h"
#include "base/random.h"
#include "cluster/allreduce/allreduce.h"
#include "cluster/allreduce/tuning.h"
#include "tests/cluster/ranks_main.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

/* Faults of MPI's calls for windows, which the tests replace by MPI's profiling interface. */
enum { SOUND, FENCE_LOSES, FENCE_FAILS, ALLOCATE_FAILS };
static int fault;
static uint64_t fences, completes;
static void *window_memory;
static size_t window_bytes;
static MPI_Win last_window;

int MPI_Win_allocate(MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, void *memory, MPI_Win *window) {
    if (fault == ALLOCATE_FAILS) return MPI_ERR_NO_MEM;
    int result = PMPI_Win_allocate(size, unit, info, comm, memory, window);
    memcpy(&window_memory, memory, sizeof window_memory);
    window_bytes = (size_t)size;
    last_window = *window;
    return result;
}

int MPI_Win_allocate_shared(MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, void *memory, MPI_Win *window) {
    if (fault == ALLOCATE_FAILS) return MPI_ERR_NO_MEM;
    return PMPI_Win_allocate_shared(size, unit, info, comm, memory, window);
}

int MPI_Win_fence(int assertion, MPI_Win window) {
    fences++;
    if (fault == FENCE_FAILS) return MPI_ERR_OTHER;
    int result = PMPI_Win_fence(assertion, window);
    if (fault == FENCE_LOSES && me == all - 1) memset(window_memory, 0, window_bytes);
    return result;
}

int MPI_Win_complete(MPI_Win window) {
    completes++;
    return PMPI_Win_complete(window);
}

static uint64_t hash_of(size_t count) {
    return sl_crc32c(0, numbers, count * sizeof *numbers);
}

/* Runs a sum, and checks the result, its bits on all ranks, and its cost. Returns the bits' hash. */
static uint64_t run_and_check(sl_allreduce *reduce, size_t count) {
    const sl_allreduce_cost cost = sl_allreduce_cost_of(reduce, count);
    for (size_t i = 0; i < count; i++)
        numbers[i] = number_of(me, i);
    const uint64_t fences_before = fences, completes_before = completes;
    const sl_comm_counts before = sl_comm_counted(&all_ranks);
    rank_assert_ok(sl_allreduce_run(reduce, numbers, count));
    const sl_comm_counts after = sl_comm_counted(&all_ranks);
    rank_assert(after.messages - before.messages == cost.messages);
    rank_assert(after.bytes - before.bytes == cost.bytes);
    for (size_t i = 0; i < count; i += 1 + count / 512)
        check_sum(i, sl_allreduce_bound(reduce, count));
    const sl_allreduce_params used = sl_allreduce_used(reduce, count);
    const int by_puts = used.algorithm == SL_ALLREDUCE_TORUS_PUT && used.columns > 1;
    if (!used.shared) {
        rank_assert((fences > fences_before) == (by_puts && count > 0 && used.sync == SL_SYNC_FENCE));
        rank_assert((completes > completes_before) == (by_puts && count > 0 && used.sync == SL_SYNC_PSCW));
    }
    if (count) check_sum(count - 1, sl_allreduce_bound(reduce, count));
    uint64_t least = hash_of(count), most = least;
    rank_assert_ok(sl_comm_min(&all_ranks, &least));
    rank_assert_ok(sl_comm_max(&all_ranks, &most));
    rank_assert(least == most);
    return least;
}

/* Ranks on the wire. All ranks of the tests are on one machine. */
static size_t wire_ranks(const sl_allreduce_params *used) {
    const size_t together = used->machine_ranks ? used->machine_ranks : all;
    return used->shared ? (all + together - 1) / together : all;
}

/* Bytes that all ranks send together, by a formula that knows no schedule: each number goes to all others and back,
 * and to the folded ranks. */
static uint64_t bytes_of_all(const sl_allreduce_params *used, size_t count) {
    const size_t size = used->wire == SL_WIRE_BF16 ? 2 : 4, on_wire = wire_ranks(used);
    size_t ranks = on_wire, folded = 0;
    if (on_wire == 1) return 0;
    if (used->algorithm == SL_ALLREDUCE_MPI) return on_wire * count * size;
    if (used->algorithm == SL_ALLREDUCE_RABENSEIFNER || used->algorithm == SL_ALLREDUCE_BINE) {
        for (ranks = 1; 2 * ranks <= on_wire;)
            ranks *= 2;
        folded = on_wire - ranks;
    }
    return 2 * (ranks - 1 + folded) * count * size;
}

static void check_total(const sl_allreduce *reduce, size_t count) {
    const sl_allreduce_params used = sl_allreduce_used(reduce, count);
    uint64_t bytes = sl_allreduce_cost_of(reduce, count).bytes;
    rank_assert_ok(sl_comm_sum_counts(&all_ranks, &bytes, 1));
    rank_assert(bytes == bytes_of_all(&used, count));
}

/* All counts up to `most` with one object. */
static void try_params(const sl_allreduce_params *params, size_t most) {
    const size_t counts[] = {0, 1, all - 1, all, 31, 10007, COUNT_MAX};
    sl_allreduce *reduce;
    rank_assert_ok(sl_allreduce_create(&all_ranks, params, COUNT_MAX, &reduce));
    for (size_t i = 0; i < sizeof counts / sizeof *counts && counts[i] <= most; i++) {
        uint64_t hash = run_and_check(reduce, counts[i]);
        check_total(reduce, counts[i]);
        if (params->algorithm != SL_ALLREDUCE_MPI && counts[i] < 100)
            rank_assert(run_and_check(reduce, counts[i]) == hash);
    }
    rank_assert(params->algorithm == SL_ALLREDUCE_AUTO || sl_allreduce_used(reduce, 1).algorithm == params->algorithm);
    sl_allreduce_free(reduce);
}

static void try_wires(sl_allreduce_params params, size_t most) {
    for (params.wire = SL_WIRE_F32; params.wire <= SL_WIRE_BF16; params.wire++)
        try_params(&params, most);
}

START_TEST(sums_without_shape) {
    const sl_allreduce_algorithm algorithms[] = {SL_ALLREDUCE_AUTO, SL_ALLREDUCE_MPI, SL_ALLREDUCE_RING,
                                                 SL_ALLREDUCE_RABENSEIFNER, SL_ALLREDUCE_BINE};
    for (size_t i = 0; i < sizeof algorithms / sizeof *algorithms; i++)
        try_wires((sl_allreduce_params){.algorithm = algorithms[i]}, COUNT_MAX);
}
END_TEST

START_TEST(sums_on_a_torus_of_any_shape) {
    for (size_t rows = 1; rows <= all; rows++)
        for (int lane = SL_LANE_HALVING; lane <= SL_LANE_RING && all % rows == 0; lane++)
            try_wires(
                (sl_allreduce_params){
                    .algorithm = SL_ALLREDUCE_TORUS, .rows = rows, .columns = all / rows, .lane = (sl_lane)lane},
                10007);
}
END_TEST

/* Rows of torus-put, of one shape and synchronisation. */
static void try_puts(size_t rows, sl_window_sync sync) {
    sl_allreduce_params params = {
        .algorithm = SL_ALLREDUCE_TORUS_PUT, .rows = rows, .columns = all / rows, .sync = sync};
    try_params(&params, rows == 1 ? COUNT_MAX : 31);
    params.chunk = 3001;
    params.lane = SL_LANE_RING;
    params.wire = SL_WIRE_BF16;
    try_params(&params, 10007);
    params.put_reduces = 1;
    try_wires(params, 10007);
}

START_TEST(sums_through_windows) {
    for (size_t rows = 1; rows <= all; rows++)
        for (int sync = SL_SYNC_FENCE; sync <= SL_SYNC_PSCW && all % rows == 0; sync++)
            try_puts(rows, (sl_window_sync)sync);
}
END_TEST

START_TEST(sums_through_shared_memory) {
    for (size_t together = 0; together < 4; together++)
        for (int a = SL_ALLREDUCE_AUTO; a < SL_ALLREDUCE_COUNT; a++) {
            sl_allreduce_params params = {
                .algorithm = (sl_allreduce_algorithm)a, .shared = 1, .machine_ranks = together};
            params.wire = a % 2 ? SL_WIRE_F32 : SL_WIRE_BF16;
            params.chunk = a == SL_ALLREDUCE_RING ? 0 : 1000;
            try_params(&params, a == SL_ALLREDUCE_RING ? COUNT_MAX : 10007);
        }
}
END_TEST

static char logged[512];

static void keep_line(void *ctx, sl_log_level level, const char *line) {
    rank_assert(level == SL_LOG_WARN && ctx == logged);
    snprintf(logged, sizeof logged, "%s", line);
}

START_TEST(windows_that_fail_are_replaced) {
    const char *const causes[] = {
        [FENCE_LOSES] = "is wrong", [FENCE_FAILS] = "MPI_Win_fence", [ALLOCATE_FAILS] = "allocate"};
    for (int f = FENCE_LOSES; f <= ALLOCATE_FAILS && all > 1; f++) {
        const sl_allreduce_params params = {.algorithm = SL_ALLREDUCE_TORUS_PUT, .log = keep_line, .log_ctx = logged};
        sl_allreduce *reduce;
        fault = f;
        logged[0] = '\0';
        rank_assert_ok(sl_allreduce_create(&all_ranks, &params, COUNT_MAX, &reduce));
        rank_assert(me > 0 || (strstr(logged, "torus replaces torus-put") && strstr(logged, causes[f])));
        rank_assert(sl_allreduce_used(reduce, 1).algorithm == SL_ALLREDUCE_TORUS);
        run_and_check(reduce, 10007);
        sl_allreduce_free(reduce);
        /* A window whose calls fail is left open. MPICH would end in an assertion. */
        if (fault == FENCE_FAILS) MPI_Win_free(&last_window);
        fault = SOUND;
    }
}
END_TEST

START_TEST(shared_memory_that_fails_is_left_out) {
    const sl_allreduce_params params = {.shared = 1, .log = keep_line, .log_ctx = logged};
    sl_allreduce *reduce;
    fault = ALLOCATE_FAILS;
    logged[0] = '\0';
    rank_assert_ok(sl_allreduce_create(&all_ranks, &params, COUNT_MAX, &reduce));
    rank_assert(me > 0 || strstr(logged, "MPI_Win_allocate_shared failed"));
    rank_assert(!sl_allreduce_used(reduce, 1).shared);
    run_and_check(reduce, 10007);
    sl_allreduce_free(reduce);
    fault = SOUND;
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

#define FACTS "shortlist-mpi tuning 1\nranks 3\nmachines 2\nmachine_ranks 2\nwire bf16\nmpi Some MPI\n"
#define ENTRY "up_to 4096 torus 1x2 ring pscw 1 shared 1 seconds 0.5\n"

/* Reads a table from a file of rank 0. */
static sl_status read_table(const char *text, sl_tuning *table) {
    char path[] = "/tmp/shortlist_tuning_XXXXXX";
    if (me == 0) {
        int file = mkstemp(path);
        rank_assert(file >= 0 && write(file, text, strlen(text)) == (ssize_t)strlen(text));
        close(file);
    }
    sl_status status = sl_tuning_read(&all_ranks, path, table);
    if (me == 0) unlink(path);
    return status;
}

START_TEST(tables_are_read_as_written) {
    sl_tuning table, again;
    char *text = NULL;
    size_t size;
    rank_assert_ok(read_table(FACTS ENTRY "up_to 9000 mpi 0x0 halving fence 0 shared 0 seconds 1.5\n", &table));
    rank_assert(table.ranks == 3 && table.machines == 2 && table.machine_ranks == 2);
    rank_assert(table.wire == SL_WIRE_BF16 && table.count == 2);
    const sl_allreduce_params *params = &table.entries[0].params;
    rank_assert(params->algorithm == SL_ALLREDUCE_TORUS && params->rows == 1 && params->columns == 2);
    rank_assert(params->lane == SL_LANE_RING && params->sync == SL_SYNC_PSCW && params->put_reduces && params->shared);
    FILE *file = open_memstream(&text, &size);
    sl_tuning_print(&table, file);
    fclose(file);
    rank_assert_ok(read_table(text, &again));
    rank_assert(memcmp(&table, &again, sizeof table) == 0);
    free(text);
}
END_TEST

START_TEST(damaged_tables_are_refused) {
    const struct {
        const char *text, *says;
    } bad[] = {{"", "without entries"},
               {FACTS, "without entries"},
               {"shortlist-mpi tuning 2\n", "line 1 "},
               {"shortlist-mpi tuning 1\nranks two\n", "line 2 "},
               {"shortlist-mpi tuning 1\nranks 3 and more\n", "line 2 "},
               {"shortlist-mpi tuning 1\nranks -3\n", "line 2 "},
               {"shortlist-mpi tuning 1\nranks 3\nmachines 2\nmachine_ranks 2\nwire f64\n", "line 5 "},
               {FACTS "up_to 3 ring 0x0 halving fence 0 shared 0 seconds 1\n", "line 7 "},
               {FACTS "up_to -8 ring 0x0 halving fence 0 shared 0 seconds 1\n", "line 7 "},
               {FACTS "up_to 4096 torus 1x2 halving fence 0 shared 0 seconds 1\n", "line 7 "},
               {FACTS "up_to 4096 torus 1x3 halving fence 0 shared 1 seconds 1\n", "line 7 "},
               {FACTS "up_to 4096 rings 0x0 halving fence 0 shared 0 seconds 1\n", "line 7 "},
               {FACTS "up_to 4096 auto 0x0 halving fence 0 shared 0 seconds 1\n", "line 7 "},
               {FACTS "up_to 4096 ring 0x0 halves fence 0 shared 0 seconds 1\n", "line 7 "},
               {FACTS "up_to 4096 ring 0x0 halving fence 0 shared 3 seconds 1\n", "line 7 "},
               {FACTS "up_to 4096 ring 0x0 halving fence 0 shared 0 seconds 1 more\n", "line 7 "},
               {FACTS ENTRY ENTRY, "line 8 "}};
    sl_tuning table;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        rank_assert(read_table(bad[i].text, &table) == SL_EFORMAT);
        rank_assert(strstr(sl_last_error(), bad[i].says) != NULL);
    }
    rank_assert(sl_tuning_read(&all_ranks, "/no/table", &table) == SL_EIO);
}
END_TEST

int main(int argc, char **argv) {
    TCase *test = tcase_create("allreduce");
    tcase_add_checked_fixture(test, set_up, tear_down);
    tcase_set_timeout(test, 120);
    tcase_add_test(test, sums_without_shape);
    tcase_add_test(test, sums_on_a_torus_of_any_shape);
    tcase_add_test(test, sums_through_windows);
    tcase_add_test(test, sums_through_shared_memory);
    tcase_add_test(test, shared_memory_that_fails_is_left_out);
    tcase_add_test(test, windows_that_fail_are_replaced);
    tcase_add_test(test, refuses_wrong_parameters);
    tcase_add_test(test, names_stand_for_algorithms);
    tcase_add_test(test, tables_are_read_as_written);
    tcase_add_test(test, damaged_tables_are_refused);
    return ranks_main(argc, argv, "allreduce", &test, 1);
}
