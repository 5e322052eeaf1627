/* A node gets one more array, by one line in array_table.def and a function that makes a row. The array is saved,
 * opened, moved, summed and counted like the others. The sources of hnsw/ are compiled again with that line. */
#include "hnsw/graph/arrays.h"
#include "hnsw/graph/checksums.h"
#include "hnsw/graph/vectors.h"
#include "hnsw/place/numa_place.h"
#include "tests/support/check_main.h"
#include "tests/support/scratch.h"

#include <stdlib.h>
#include <string.h>

enum { DIM = 12, N = 6000, FIRST = 700, ROOM = 8000 };

const sl_file_type one_more_file = {.magic = "SHORTLST",
                                    .name = "an index",
                                    .version = 1,
                                    .known_kinds = UINT64_MAX,
                                    .fields_end = offsetof(sl_file_header, reserved)};

static float vectors[ROOM][DIM];
static scratch place;
static const struct {
    sl_codes codes;
    sl_refine refine;
    sl_layout layout;
} kinds[] = {{SL_CODES_I8, SL_REFINE_NONE, SL_LAYOUT_ARRAYS},
             {SL_CODES_I4, SL_REFINE_I16, SL_LAYOUT_ARRAYS},
             {SL_CODES_I8, SL_REFINE_F32, SL_LAYOUT_RECORDS},
             {SL_CODES_I4, SL_REFINE_NONE, SL_LAYOUT_RECORDS}};

#define ok(call) ck_assert_msg((call) == SL_OK, "%s: %s", #call, sl_last_error())

static void square_of(const sl_graph *graph, uint32_t node, float out[2]) {
    float x[DIM], sum = 0;
    sl_coded_floats(graph, node, x);
    for (size_t i = 0; i < DIM; i++)
        sum += x[i] * x[i];
    out[0] = sum;
    out[1] = (float)sl_id_of(graph, node);
}

sl_derive_fn one_more_row;
void one_more_row(const sl_graph *graph, uint32_t node, uint8_t *row) {
    float made[2];
    square_of(graph, node, made);
    memcpy(row, made, sizeof made);
}

static void expect_rows(const sl_index *index) {
    ck_assert_uint_eq(index->graph.arrays[SL_ARRAY_SQUARES].width, ONE_MORE_WIDTH);
    for (uint32_t node = 0; node < index->graph.n; node++) {
        float row[2], wanted[2];
        memcpy(row, sl_array_row(&index->graph, SL_ARRAY_SQUARES, node), sizeof row);
        square_of(&index->graph, node, wanted);
        ck_assert_msg(row[0] == wanted[0] && row[1] == wanted[1], "node %u of %zu: %g %g, not %g %g", node,
                      index->graph.n, (double)row[0], (double)row[1], (double)wanted[0], (double)wanted[1]);
    }
}

static void add(sl_index *index, size_t first, size_t end) {
    uint64_t ids[ROOM];
    sl_add_params params;
    sl_add_params_init(&params);
    params.threads = 1;
    /* Not in the order of the nodes, so that ids are kept. */
    for (size_t i = first; i < end; i++)
        ids[i] = i ^ 1;
    ok(sl_index_add(index, vectors[first], SL_F32, end - first, 0, ids + first, &params));
}

static sl_index *make(int kind) {
    sl_index_params params;
    sl_index *index;
    sl_index_params_init(&params);
    params.dim = DIM;
    params.metric = SL_METRIC_L2;
    params.codes = kinds[kind].codes;
    params.refine = kinds[kind].refine;
    params.m = 6;
    params.ef_construction = 20;
    ok(sl_index_create(&params, &index));
    add(index, 0, FIRST);
    add(index, FIRST, N); /* more room, and numbered anew */
    ck_assert_uint_gt(index->ordered, 0);
    return index;
}

static sl_index *opened(sl_place where, int writable) {
    sl_open_params params;
    sl_index *index;
    sl_open_params_init(&params);
    params.place = where;
    params.writable = writable;
    ok(sl_index_open(place.path, &params, &index));
    return index;
}

static void save(sl_index *index, int kind, size_t room) {
    sl_save_params params;
    sl_save_params_init(&params);
    params.layout = kinds[kind].layout;
    params.room = room;
    ok(sl_index_save(index, place.path, &params));
}

static void setup(void) {
    uint32_t state = 1;
    scratch_open(&place);
    for (size_t i = 0; i < ROOM; i++)
        for (size_t d = 0; d < DIM; d++)
            vectors[i][d] = (float)((state = state * 1664525u + 1013904223u) >> 8) / 16777216.0f;
}

static void teardown(void) {
    scratch_close(&place);
}

START_TEST(saved_and_opened) {
    sl_index *index = make(_i);
    expect_rows(index);
    save(index, _i, 0);
    sl_index_free(index);
    for (sl_place where = SL_PLACE_DRAM; where <= SL_PLACE_MAP; where++) {
        index = opened(where, 0);
        expect_rows(index);
        ok(sl_index_check(index, NULL, &(sl_check_report){.struct_size = sizeof(sl_check_report)}));
        sl_index_free(index);
    }
}
END_TEST

START_TEST(written_in_place) {
    sl_index *index = make(_i);
    save(index, _i, ROOM);
    sl_index_free(index);
    index = opened(SL_PLACE_MAP, 1);
    add(index, N, ROOM);
    expect_rows(index);
    ok(sl_index_sync(index));
    sl_index_free(index);
    index = opened(SL_PLACE_MAP, 0);
    ck_assert_uint_eq(index->graph.n, ROOM);
    expect_rows(index);
    sl_index_free(index);
}
END_TEST

/* A flipped bit of the array is a damaged record; a dropped record has a sound node's row. */
START_TEST(summed_and_dropped) {
    sl_check_report report = {.struct_size = sizeof report};
    sl_check_params params;
    sl_check_params_init(&params);
    params.scrub = 1;
    sl_index *index = make(_i);
    save(index, _i, ROOM);
    sl_index_free(index);
    index = opened(SL_PLACE_MAP, 1);
    ok(sl_index_check(index, &params, &report));
    sl_array_row(&index->graph, SL_ARRAY_SQUARES, 77)[2] ^= 4;
    ck_assert_int_eq(sl_checksum_holds(&index->graph, 77), 0);
    size_t dropped;
    ok(sl_index_drop_damaged(index, 1, &dropped));
    ck_assert_uint_eq(dropped, 1);
    ck_assert_int_eq(sl_checksum_holds(&index->graph, 77), 1);
    float row[2], wanted[2];
    memcpy(row, sl_array_row(&index->graph, SL_ARRAY_SQUARES, 77), sizeof row);
    square_of(&index->graph, 77, wanted);
    ck_assert_float_eq(row[0], wanted[0]);
    sl_index_free(index);
}
END_TEST

START_TEST(counted_and_placed) {
    sl_index *index = make(_i);
    sl_index_stats stats = {.struct_size = sizeof stats};
    sl_plan plan = {.struct_size = sizeof plan};
    sl_index_params params;
    sl_span spans[SL_ARRAY_KINDS];
    size_t placed = 0;
    const size_t refine = index->graph.arrays[SL_ARRAY_REFINE].width + ONE_MORE_WIDTH;
    ok(sl_index_get_stats(index, &stats));
    ck_assert_uint_eq(stats.bytes_refine, N * refine);
    sl_index_params_init(&params);
    params.dim = DIM;
    params.codes = kinds[_i].codes;
    params.refine = kinds[_i].refine;
    ok(sl_index_plan(&params, N, &plan));
    ck_assert_uint_eq(plan.bytes_refine, N * refine);
    size_t count = sl_placed_arrays(&index->graph, spans);
    for (size_t i = 0; i < count; i++)
        placed += spans[i].at == index->graph.arrays[SL_ARRAY_SQUARES].at;
    ck_assert_uint_eq(placed, 1);
    sl_index_free(index);
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("one more array");
    const int all = sizeof kinds / sizeof *kinds;
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_loop_test(tests, saved_and_opened, 0, all);
    tcase_add_loop_test(tests, written_in_place, 0, all);
    tcase_add_loop_test(tests, summed_and_dropped, 0, all);
    tcase_add_loop_test(tests, counted_and_placed, 0, all);
    return check_main("one more array", &tests, 1);
}
