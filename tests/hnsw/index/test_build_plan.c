/* sl_index_plan_build beside builds whose memory is counted. */
#include "hnsw/construct/leaves_make.h"
#include "hnsw/construct/partition_make.h"
#include "tests/support/check_main.h"
#include "tests/support/clusters.h"
#include "tests/support/faults.h"
#include "tests/support/indexes.h"
#include "tests/support/scratch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { N = 12000, FEW = 3000, DIM = 24, THREADS = 2 };
#define FAR 1000.0f

static scratch place;
static float *x;
static uint64_t *own_ids;

static void set_up(void) {
    scratch_open(&place);
    x = clusters_make(N, DIM, 0.3, 5);
    own_ids = malloc(N * sizeof *own_ids);
    for (size_t i = 0; i < N; i++)
        own_ids[i] = 7 * i + 3;
}

static void tear_down(void) {
    free(own_ids);
    free(x);
    scratch_close(&place);
}

typedef struct build {
    size_t n, dim;
    sl_metric metric;
    sl_dtype dtype;
    sl_codes codes;
    sl_refine refine;
    sl_builder builder;
    int ids, alike;
    size_t room;
    sl_layout layout;
    int far; /* so far from the origin that they are compared in floats */
} build;

static const build builds[] = {
    {N, DIM, SL_METRIC_COSINE, SL_F32, SL_CODES_I4, SL_REFINE_NONE, SL_BUILDER_LEAVES, 0, 0, 0, SL_LAYOUT_ARRAYS, 0},
    {N, DIM, SL_METRIC_COSINE, SL_F32, SL_CODES_I8, SL_REFINE_F32, SL_BUILDER_LEAVES, 1, 0, 0, SL_LAYOUT_ARRAYS, 0},
    {N, DIM, SL_METRIC_L2, SL_F32, SL_CODES_I16, SL_REFINE_NONE, SL_BUILDER_LEAVES, 0, 1, 0, SL_LAYOUT_ARRAYS, 0},
    {N, DIM, SL_METRIC_COSINE, SL_F32, SL_CODES_I4, SL_REFINE_NONE, SL_BUILDER_INSERT, 0, 0, 0, SL_LAYOUT_ARRAYS, 0},
    {N, DIM, SL_METRIC_IP, SL_F32, SL_CODES_I8, SL_REFINE_NONE, SL_BUILDER_INSERT, 1, 0, 0, SL_LAYOUT_RECORDS, 0},
    {N, DIM, SL_METRIC_L2, SL_U8, SL_CODES_I8, SL_REFINE_NONE, SL_BUILDER_INSERT, 0, 0, 2 * N, SL_LAYOUT_ARRAYS, 0},
    {N, DIM, SL_METRIC_L2, SL_F32, SL_CODES_F32, SL_REFINE_NONE, SL_BUILDER_LEAVES, 0, 0, N, SL_LAYOUT_RECORDS, 0},
    {N, DIM, SL_METRIC_IP, SL_F32, SL_CODES_I4, SL_REFINE_NONE, SL_BUILDER_LEAVES, 0, 0, 0, SL_LAYOUT_ARRAYS, 0},
    {N, DIM, SL_METRIC_IP, SL_F32, SL_CODES_I8, SL_REFINE_F32, SL_BUILDER_LEAVES, 1, 1, 0, SL_LAYOUT_ARRAYS, 0},
    {FEW, DIM, SL_METRIC_L2, SL_F32, SL_CODES_I8, SL_REFINE_NONE, SL_BUILDER_AUTO, 0, 0, 0, SL_LAYOUT_ARRAYS, 0},
    {FEW, DIM, SL_METRIC_L2, SL_F32, SL_CODES_I8, SL_REFINE_NONE, SL_BUILDER_AUTO, 1, 0, 0, SL_LAYOUT_ARRAYS, 0},
    /* Coarse rows: learning their projection takes the most. */
    {N / 8, 8 * DIM, SL_METRIC_COSINE, SL_F32, SL_CODES_I4, SL_REFINE_NONE, SL_BUILDER_AUTO, 0, 0, 0, SL_LAYOUT_ARRAYS,
     0},
    {N, DIM, SL_METRIC_L2, SL_F32, SL_CODES_F32, SL_REFINE_NONE, SL_BUILDER_LEAVES, 0, 0, N, SL_LAYOUT_RECORDS, 1},
    {N, DIM, SL_METRIC_L2, SL_F32, SL_CODES_I16, SL_REFINE_NONE, SL_BUILDER_LEAVES, 0, 0, 0, SL_LAYOUT_ARRAYS, 1},
    {N, DIM, SL_METRIC_L2, SL_F32, SL_CODES_I16, SL_REFINE_NONE, SL_BUILDER_LEAVES, 1, 1, 0, SL_LAYOUT_ARRAYS, 1},
    {N, DIM, SL_METRIC_L2, SL_F32, SL_CODES_F32, SL_REFINE_NONE, SL_BUILDER_INSERT, 0, 0, 0, SL_LAYOUT_ARRAYS, 1},
};

static void params_of(const build *b, sl_index_params *params) {
    indexes_params(params, b->dim, b->metric);
    params->dtype = b->dtype;
    params->codes = b->codes;
    params->refine = b->refine;
    params->m = 16;
    params->ef_construction = 200;
}

/* Builds and saves; returns the bytes after the add, and the most. */
static size_t run(const build *b, const sl_index_params *params, const sl_add_params *add, const sl_save_params *save,
                  fault_allocator *memory) {
    void *rows = clusters_as(b->dtype, x, b->n * b->dim);
    const size_t row = b->dim * (b->dtype == SL_U8 ? 1 : sizeof(float));
    for (size_t i = 0; b->far && i < b->n * b->dim; i++)
        ((float *)rows)[i] += FAR;
    if (b->alike) memcpy((char *)rows + row * (b->n - 1), rows, row);
    sl_index *index;
    ck_ok(sl_index_create(params, &index));
    ck_ok(sl_index_reserve(index, b->n));
    ck_ok(sl_index_add(index, rows, b->dtype, b->n, 0, b->ids ? own_ids : NULL, add));
    const size_t after = memory->live_bytes;
    ck_ok(sl_index_save(index, place.path, save));
    sl_index_free(index);
    free(rows);
    return after;
}

/* Tells whether more is told than this build takes: it might compare vectors in other codes. */
static int is_less_than_told(const build *b) {
    return b->metric == SL_METRIC_L2 && (b->codes == SL_CODES_F32 || (b->codes == SL_CODES_I16 && !b->far));
}

/* The told number is the counted one or more, by a hundredth and a page at most, or by a half where other codes
 * might be compared. */
static void ck_bounds(const build *b, uint64_t told, uint64_t counted) {
    ck_assert_uint_ge(told, counted);
    ck_assert_uint_le(told, counted + (is_less_than_told(b) ? counted / 2 : counted / 100 + 4096));
}

START_TEST(told_as_counted) {
    const build *b = &builds[_i];
    sl_index_params params;
    sl_add_params add;
    sl_save_params save;
    sl_build_plan plan = {.struct_size = sizeof plan};
    fault_allocator memory;
    struct stat file;
    params_of(b, &params);
    fault_allocator_init(&memory, 0);
    params.allocator = &memory.allocator;
    sl_add_params_init(&add);
    add.threads = THREADS;
    add.builder = b->builder;
    sl_save_params_init(&save);
    save.room = b->room;
    save.layout = b->layout;
    ck_ok(sl_index_plan_build(&params, b->n, b->ids ? own_ids : NULL, &add, &save, &plan));
    ck_assert_uint_eq(memory.live_bytes, 0);
    memory.most_bytes = 0;
    const size_t after = run(b, &params, &add, &save, &memory);
    ck_assert_uint_eq(plan.n, b->n);
    ck_assert_int_eq(plan.builder, b->builder == SL_BUILDER_LEAVES ? SL_BUILDER_LEAVES : SL_BUILDER_INSERT);
    ck_bounds(b, plan.bytes_index, after);
    ck_bounds(b, b->alike ? plan.bytes_peak_alike : plan.bytes_peak, memory.most_bytes);
    if (b->builder == SL_BUILDER_LEAVES) ck_assert_uint_gt(plan.bytes_peak_alike, plan.bytes_peak);
    /* Some partitions may be empty. */
    ck_assert_int_eq(stat(place.path, &file), 0);
    ck_assert_uint_ge(plan.bytes_file, (uint64_t)file.st_size);
    ck_assert_uint_le(plan.bytes_file, (uint64_t)file.st_size + (is_less_than_told(b) ? 16384 : 4096));
}
END_TEST

/* For n vectors in leaves of a fold: an index has one centre for 200 of them, one of 48 centres stands for a group, and
 * a row looks into twelve. Vectors are learnt from, eight a centre, and then all assigned, twice. */
static double compared_in_groups(double n) {
    const double centres = floor(n / 200) + 1, groups = floor(centres / 48) + 1;
    const double near = groups < 12 ? 1 : 12 / groups;
    return 2 * (2 * centres * groups + (n + 8 * centres) * (groups + near * centres));
}

START_TEST(comparisons_are_with_near_groups) {
    sl_index_params params;
    sl_build_plan plan = {.struct_size = sizeof plan}, twice = plan;
    sl_add_params add;
    sl_index_params_init(&params);
    params.dim = DIM;
    ck_ok(sl_index_plan_build(&params, 100000, NULL, NULL, NULL, &plan));
    ck_ok(sl_index_plan_build(&params, 200000, NULL, NULL, NULL, &twice));
    ck_assert_int_eq(plan.builder, SL_BUILDER_LEAVES);
    ck_assert_double_eq_tol(plan.compared_linking / compared_in_groups(100000), 1, 1e-9);
    ck_assert_double_eq_tol(twice.compared_linking / compared_in_groups(200000), 1, 1e-9);
    ck_assert_double_gt(twice.compared_numbering, 2 * plan.compared_numbering);
    /* Partitions are no more than so many. */
    ck_assert_double_eq_tol(sl_partitions_comparisons(4000000000) / sl_partitions_comparisons(2000000000), 2, 0.01);
    /* Heads of groups are grouped too: at 10^9 three times, the last time in 46 groups. Learning centres takes a 25th
     * more, and grouping them less than a hundredth. */
    ck_assert_double_eq_tol(sl_leaves_comparisons(1000000000, 4, SL_METRIC_L2) / (2e9 * (46 + 3 * 576)), 1.045, 0.01);
    /* Above and below the first size at which they are. */
    ck_assert_double_eq_tol(sl_leaves_comparisons(19600000, 4, SL_METRIC_L2) / (2 * 19.6e6 * (2042 + 576)), 1.05, 0.02);
    ck_assert_double_eq_tol(sl_leaves_comparisons(19700000, 4, SL_METRIC_L2) / (2 * 19.7e6 * (43 + 2 * 576)), 1.05,
                            0.02);
    params.metric = SL_METRIC_IP;
    ck_ok(sl_index_plan_build(&params, 200000, NULL, NULL, NULL, &plan));
    ck_assert_double_eq_tol(plan.compared_linking - twice.compared_linking, 2 * 1001 * 200000.0, 1);
    params.metric = SL_METRIC_COSINE;
    ck_ok(sl_index_plan_build(&params, 100000, NULL, NULL, NULL, &plan));
    ck_assert_double_eq(plan.compared_in_leaves, 100000.0 * 2 * 4 * 800);
    ck_assert_double_eq(twice.compared_in_leaves, 2 * plan.compared_in_leaves);
    sl_add_params_init(&add);
    add.builder = SL_BUILDER_INSERT;
    ck_ok(sl_index_plan_build(&params, 100000, NULL, &add, NULL, &plan));
    ck_assert_int_eq(plan.builder, SL_BUILDER_INSERT);
    ck_assert_double_eq(plan.compared_linking, 0);
    ck_assert_double_eq(plan.compared_in_leaves, 0);
}
END_TEST

START_TEST(what_cannot_be_planned) {
    sl_index_params params;
    sl_add_params add;
    sl_save_params save;
    sl_build_plan plan = {.struct_size = sizeof plan};
    sl_index_params_init(&params);
    sl_add_params_init(&add);
    sl_save_params_init(&save);
    ck_fails(sl_index_plan_build(&params, 10, NULL, NULL, NULL, &plan), SL_EINVAL, "dim");
    params.dim = DIM;
    ck_fails(sl_index_plan_build(&params, 10, NULL, NULL, NULL, NULL), SL_EINVAL, "sl_build_plan");
    ck_fails(sl_index_plan_build(&params, (uint64_t)SL_MAX_VECTORS + 1, NULL, NULL, NULL, &plan), SL_ELIMIT,
             "4294901761 vectors");
    add.builder = SL_BUILDER_LEAVES;
    ck_fails(sl_index_plan_build(&params, 10, NULL, &add, NULL, &plan), SL_EUNSUPPORTED, "4,096");
    save.room = 5;
    ck_fails(sl_index_plan_build(&params, 10, NULL, NULL, &save, &plan), SL_EINVAL, "room for 5");
    save.room = 0;
    save.layout = (sl_layout)9;
    ck_fails(sl_index_plan_build(&params, 10, NULL, NULL, &save, &plan), SL_EINVAL, "layout 9");
    ck_ok(sl_index_plan_build(&params, 0, NULL, NULL, NULL, &plan));
    const uint64_t ids[] = {5, SL_NO_ID, 6};
    ck_ok(sl_index_plan_build(&params, 1, ids, NULL, NULL, &plan));
    ck_fails(sl_index_plan_build(&params, 3, ids, NULL, NULL, &plan), SL_EINVAL, "row 1: id 2^64 - 1 is reserved");
}
END_TEST

int main(void) {
    TCase *all = tcase_create("plan");
    tcase_add_checked_fixture(all, set_up, tear_down);
    tcase_set_timeout(all, 120);
    tcase_add_loop_test(all, told_as_counted, 0, sizeof builds / sizeof *builds);
    tcase_add_test(all, comparisons_are_with_near_groups);
    tcase_add_test(all, what_cannot_be_planned);
    return check_main("build_plan", &all, 1);
}
