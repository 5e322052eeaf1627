/* The users' ids, and getting vectors back by them. */
#include "hnsw/graph/index.h"
#include "tests/support/check_main.h"
#include "tests/support/clusters.h"
#include "tests/support/indexes.h"
#include "tests/support/scratch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DIM = 12, N = 300 };

static float *x;
static sl_index *idx;

static void set_up(void) {
    x = clusters_make(N, DIM, 0.3, 3);
    sl_index_params params;
    indexes_params(&params, DIM, SL_METRIC_COSINE);
    params.refine = SL_REFINE_F32;
    ck_ok(sl_index_create(&params, &idx));
}

static void tear_down(void) {
    sl_index_free(idx);
    free(x);
}

static const float *row(size_t i) {
    return x + i * DIM;
}

/* The id belongs to row i: a search for the row gives it, and getting it gives the row. */
static void check_id(uint64_t id, size_t i) {
    uint64_t found;
    float vector[DIM];
    indexes_search(idx, (vector_rows){row(i), SL_F32, 1}, 1, 64, &found, NULL);
    ck_assert_msg(found == id, "row %zu has id %llu, not %llu", i, (unsigned long long)found, (unsigned long long)id);
    ck_ok(sl_index_get(idx, &id, 1, SL_F32, vector));
    ck_assert_mem_eq(vector, row(i), sizeof vector);
}

START_TEST(ids_count_up_by_themselves) {
    ck_ok(indexes_add(idx, row(0), SL_F32, 10, NULL));
    ck_ok(indexes_add(idx, row(10), SL_F32, 20, NULL));
    for (size_t i = 0; i < 30; i++)
        check_id(i, i);
    ck_assert_uint_eq(indexes_stats(idx).bytes_ids, 0);
}
END_TEST

/* Own ids of every size; automatic ones go on from the largest. */
START_TEST(own_and_automatic_ids_mix) {
    static const uint64_t own[] = {5, UINT64_MAX - 100, 0, 1000, (uint64_t)1 << 32, UINT32_MAX, 77};
    ck_ok(indexes_add(idx, row(0), SL_F32, 3, NULL));
    ck_ok(indexes_add(idx, row(3), SL_F32, 2, (uint64_t[]){10, 8}));
    ck_ok(indexes_add(idx, row(5), SL_F32, 2, NULL));
    uint64_t wanted[] = {0, 1, 2, 10, 8, 11, 12};
    for (size_t i = 0; i < 7; i++)
        check_id(wanted[i], i);
    ck_assert_uint_eq(indexes_stats(idx).bytes_ids, 7 * 4);
    ck_fails(indexes_add(idx, row(7), SL_F32, 7, own), SL_EEXIST, "row 2: id 0 is already in the index");
    ck_ok(indexes_add(idx, row(7), SL_F32, 2, own));
    ck_ok(indexes_add(idx, row(9), SL_F32, 4, own + 3));
    ck_ok(indexes_add(idx, row(13), SL_F32, 2, NULL));
    check_id(5, 7);
    check_id(UINT64_MAX - 100, 8);
    check_id((uint64_t)1 << 32, 10);
    check_id(UINT64_MAX - 99, 13);
    check_id(UINT64_MAX - 98, 14);
    check_id(10, 3);
    ck_assert_uint_eq(indexes_stats(idx).bytes_ids, 15 * 8);
    /* Up to the last id there is, and no further. */
    ck_fails(indexes_add(idx, row(15), SL_F32, 200, NULL), SL_ELIMIT, "give ids");
    ck_ok(indexes_add(idx, row(15), SL_F32, 97, NULL));
    check_id(UINT64_MAX - 1, 111);
    ck_fails(indexes_add(idx, row(112), SL_F32, 1, NULL), SL_ELIMIT, "give ids");
    ck_ok(indexes_add(idx, row(112), SL_F32, 1, (uint64_t[]){78}));
    check_id(78, 112);
}
END_TEST

/* Given ids that are what automatic ones would be need not be kept. */
START_TEST(ids_that_count_up_take_no_room) {
    uint64_t ids[N];
    for (size_t i = 0; i < N; i++)
        ids[i] = i;
    ck_ok(indexes_add(idx, row(0), SL_F32, 100, ids));
    ck_ok(indexes_add(idx, row(100), SL_F32, 100, NULL));
    ck_ok(indexes_add(idx, row(200), SL_F32, 100, ids + 200));
    ck_assert_uint_eq(indexes_stats(idx).bytes_ids, 0);
    check_id(299, 299);
}
END_TEST

static void check_refused(size_t first, size_t n, const uint64_t *ids, sl_status status, const char *says) {
    sl_index_stats before = indexes_stats(idx);
    ck_fails(indexes_add(idx, row(first), SL_F32, n, ids), status, says);
    sl_index_stats after = indexes_stats(idx);
    indexes_equal(&after, &before);
    uint64_t lost = ids[0];
    float vector[DIM];
    if (lost != 3 && lost != 40)
        ck_fails(sl_index_get(idx, &lost, 1, SL_F32, vector), SL_ENOTFOUND, "not in the index");
    check_id(0, 0);
}

/* Refused ids leave an index as it was, whether or not it had ids of its own before; they can be added afterwards. */
START_TEST(refused_ids_leave_no_trace) {
    const uint64_t none = SL_NO_ID;
    ck_ok(indexes_add(idx, row(0), SL_F32, 10, NULL));
    for (int own = 0; own < 2; own++) {
        check_refused(10, 3, (uint64_t[]){50, 51, 50}, SL_EEXIST, "row 2: id 50 is also that of row 0");
        check_refused(10, 3, (uint64_t[]){50, 51, 3}, SL_EEXIST, "row 2: id 3 is already in the index");
        check_refused(10, 1, (uint64_t[]){3}, SL_EEXIST, "row 0: id 3 is already");
        check_refused(10, 2, (uint64_t[]){50, none}, SL_EINVAL, "row 1: id 2^64 - 1 is reserved");
        if (own == 0) ck_ok(indexes_add(idx, row(10), SL_F32, 1, (uint64_t[]){40}));
    }
    ck_ok(indexes_add(idx, row(11), SL_F32, 3, (uint64_t[]){50, 51, 3000}));
    check_id(40, 10);
    check_id(50, 11);
    check_id(51, 12);
    check_id(3000, 13);
    ck_ok(indexes_add(idx, row(14), SL_F32, 1, NULL));
    check_id(3001, 14);
    indexes_sound(idx);
}
END_TEST

static int cancel(void *ctx, uint64_t done, uint64_t total) {
    (void)ctx;
    (void)done;
    (void)total;
    return 1;
}

START_TEST(cancelled_ids_leave_no_trace) {
    sl_add_params params;
    sl_add_params_init(&params);
    params.threads = 1;
    params.progress = cancel;
    uint64_t ids[] = {900, 901}, id = 900;
    float vector[DIM];
    ck_ok(indexes_add(idx, row(0), SL_F32, 10, NULL));
    for (int own = 0; own < 2; own++) {
        sl_index_stats before = indexes_stats(idx);
        ck_fails(sl_index_add(idx, row(100), SL_F32, 2, 0, ids, &params), SL_ECANCELED, "");
        sl_index_stats after = indexes_stats(idx);
        indexes_equal(&after, &before);
        ck_fails(sl_index_get(idx, &id, 1, SL_F32, vector), SL_ENOTFOUND, "id 900 is not in the index");
        ck_ok(indexes_add(idx, row(10 + (size_t)own), SL_F32, 1, own ? NULL : (uint64_t[]){30}));
        check_id(30 + (uint64_t)own, 10 + (size_t)own);
    }
    ck_ok(indexes_add(idx, row(100), SL_F32, 2, ids));
    check_id(901, 101);
}
END_TEST

/* A large index numbers its nodes in the order of a walk. Nothing of that is seen from outside. */
START_TEST(ids_outlive_the_order_of_nodes) {
    enum { MANY = 6000 };
    static uint64_t own[2 * MANY];
    float *rows = clusters_make(2 * MANY, DIM, 0.3, 14);
    for (size_t i = 0; i < 2 * MANY; i++)
        own[i] = _i ? 7 * i + 1 : i;
    for (size_t half = 0; half < 2; half++) {
        ck_ok(indexes_add(idx, rows + half * MANY * DIM, SL_F32, MANY, _i ? own + half * MANY : NULL));
        indexes_sound(idx);
        size_t n = (half + 1) * MANY, lost = 0, wrong = 0;
        for (size_t i = 0; i < n; i++) {
            uint64_t found;
            float vector[DIM];
            if (i % 10 == 0) indexes_search(idx, (vector_rows){rows + i * DIM, SL_F32, 1}, 1, 64, &found, NULL);
            lost += i % 10 == 0 && found != own[i];
            wrong += sl_index_get(idx, &own[i], 1, SL_F32, vector) != SL_OK ||
                     memcmp(vector, rows + i * DIM, sizeof vector) != 0;
        }
        ck_assert_uint_eq(wrong, 0);
        ck_assert_msg(lost <= n / 1000, "%zu are not found", lost);
    }
    ck_fails(indexes_add(idx, rows, SL_F32, 1, &own[MANY / 2]), SL_EEXIST, "already in the index");
    ck_ok(indexes_add(idx, rows, SL_F32, 1, NULL));
    uint64_t last = own[2 * MANY - 1] + 1;
    float vector[DIM];
    ck_ok(sl_index_get(idx, &last, 1, SL_F32, vector));
    ck_assert_mem_eq(vector, rows, sizeof vector);
    free(rows);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Getting
 * ------------------------------------------------------------------------------------------------------------- */

START_TEST(unknown_ids_are_named) {
    float vectors[2 * DIM];
    uint64_t ids[] = {3, 12345};
    ck_fails(sl_index_get(idx, ids, 1, SL_F32, vectors), SL_ENOTFOUND, "id 3 ");
    ck_ok(indexes_add(idx, row(0), SL_F32, 10, NULL));
    ck_fails(sl_index_get(idx, ids, 2, SL_F32, vectors), SL_ENOTFOUND, "id 12345 ");
    ck_ok(indexes_add(idx, row(10), SL_F32, 1, (uint64_t[]){99}));
    ck_fails(sl_index_get(idx, ids, 2, SL_F32, vectors), SL_ENOTFOUND, "id 12345 ");
    ids[1] = SL_NO_ID;
    ck_fails(sl_index_get(idx, ids, 2, SL_F32, vectors), SL_ENOTFOUND, "18446744073709551615");
    ck_fails(sl_index_get(idx, ids, 1, SL_F16, vectors), SL_ETYPE, "f32");
    ck_fails(sl_index_get(idx, ids, 1, SL_I8, vectors), SL_ETYPE, "f32");
    ck_fails(sl_index_get(idx, ids, 1, (sl_dtype)77, vectors), SL_ETYPE, "");
}
END_TEST

/* How far what is got may be from what was given, of the vector's length; 0: equal. */
static const struct tier {
    sl_codes codes;
    sl_refine refine;
    double error;
} tiers[] = {
    {SL_CODES_I8, SL_REFINE_NONE, 0.01}, {SL_CODES_I8, SL_REFINE_BF16, 3e-5},  {SL_CODES_I8, SL_REFINE_I16, 4e-5},
    {SL_CODES_I8, SL_REFINE_F32, 0},     {SL_CODES_I16, SL_REFINE_NONE, 4e-5}, {SL_CODES_I16, SL_REFINE_BF16, 1e-7},
    {SL_CODES_F32, SL_REFINE_NONE, 0},   {SL_CODES_I4, SL_REFINE_NONE, 1e-3},  {SL_CODES_I4, SL_REFINE_I16, 4e-5},
    {SL_CODES_I4, SL_REFINE_F32, 0},
};

START_TEST(floats_come_back) {
    const struct tier *tier = &tiers[_i];
    for (int metric = 0; metric < 3; metric++) {
        sl_index_params params;
        indexes_params(&params, DIM, (sl_metric)metric);
        params.codes = tier->codes;
        params.refine = tier->refine;
        sl_index *index = indexes_make(&params, x, SL_F32, N, NULL, 1);
        double worst = 0;
        for (uint64_t i = 0; i < N; i++) {
            float vector[DIM];
            double off = 0, norm = 0;
            ck_ok(sl_index_get(index, &i, 1, SL_F32, vector));
            ck_ok(sl_score(SL_METRIC_L2, SL_F32, vector, row(i), DIM, &off));
            ck_ok(sl_score(SL_METRIC_IP, SL_F32, row(i), row(i), DIM, &norm));
            if (sqrt(off / norm) > worst) worst = sqrt(off / norm);
        }
        ck_assert_msg(worst <= tier->error, "%s, %s, %s: off by %g", sl_metric_name((sl_metric)metric),
                      sl_codes_name(tier->codes), sl_refine_name(tier->refine), worst);
        /* A tier that did better than its precision allows would not be that tier. */
        ck_assert_msg(worst >= tier->error / 20, "%s, %s: off by only %g", sl_codes_name(tier->codes),
                      sl_refine_name(tier->refine), worst);
        sl_index_free(index);
    }
}
END_TEST

START_TEST(integers_come_back_exactly) {
    sl_dtype dtype = (sl_dtype)(SL_I8 + _i);
    size_t size = sl_dtype_size(dtype) * DIM;
    unsigned char *given = clusters_as(dtype, x, N * DIM), got[2 * DIM * 2];
    /* Extremes: -128, 0, 255, -32768. */
    memset(given, _i == 1 ? 0xff : 0x80, size);
    if (dtype == SL_I16)
        for (size_t d = 0; d < DIM; d++)
            ((int16_t *)(void *)given)[d] = INT16_MIN;
    for (int metric = 0; metric < 3; metric++) {
        sl_index_params params;
        indexes_params(&params, DIM, (sl_metric)metric);
        params.dtype = dtype;
        if (dtype == SL_I16) params.codes = SL_CODES_I16;
        sl_index *index = indexes_make(&params, given, dtype, N, NULL, 1);
        for (uint64_t i = 0; i + 1 < N; i++) {
            uint64_t two[] = {i + 1, i};
            float floats[DIM], wanted[DIM];
            ck_ok(sl_index_get(index, two, 2, dtype, got));
            ck_assert_mem_eq(got, given + (i + 1) * size, size);
            ck_assert_mem_eq(got + size, given + i * size, size);
            ck_ok(sl_index_get(index, &i, 1, SL_F32, floats));
            ck_ok(sl_convert(given + i * size, dtype, wanted, SL_F32, DIM));
            ck_assert_mem_eq(floats, wanted, sizeof floats);
        }
        sl_dtype other = dtype == SL_I8 ? SL_U8 : SL_I8;
        ck_fails(sl_index_get(index, (uint64_t[]){1}, 1, other, got), SL_ETYPE, sl_dtype_name(dtype));
        ck_fails(sl_index_add(index, given, other, 1, 0, NULL, NULL), SL_ETYPE, sl_dtype_name(dtype));
        ck_fails(sl_index_add(index, given, SL_F32, 1, 0, NULL, NULL), SL_ETYPE, sl_dtype_name(dtype));
        sl_index_free(index);
    }
    free(given);
}
END_TEST

static int has(uint64_t id) {
    int found = 2;
    ck_ok(sl_index_contains(idx, id, &found));
    return found;
}

/* The list has each of n ids that are multiples of `step`, but for one, and nothing else. */
static void expect_listed(size_t n, uint64_t step, uint64_t but) {
    uint64_t ids[N + 1], sum = 0, wanted = 0;
    size_t count;
    ck_ok(sl_index_ids(idx, NULL, 0, &count));
    ck_assert_uint_eq(count, sl_index_size(idx));
    ck_ok(sl_index_ids(idx, ids, N + 1, &count));
    ck_assert_uint_eq(count, sl_index_size(idx));
    for (size_t i = 0; i < n; i++)
        wanted += i * step == but ? 0 : i * step;
    for (size_t i = 0; i < count; i++) {
        ck_assert(has(ids[i]));
        ck_assert_uint_ne(ids[i], but);
        sum += ids[i];
    }
    ck_assert_uint_eq(sum, wanted);
}

/* Ids that count up, and ids of a user's own, which have a map. */
START_TEST(ids_are_told_and_listed) {
    const uint64_t step = _i ? (uint64_t)1 << 40 : 1, gone = 7 * step;
    uint64_t ids[N];
    size_t count = 5;
    for (size_t i = 0; i < N; i++)
        ids[i] = i * step;
    ck_assert(!has(0));
    ck_ok(sl_index_ids(idx, ids, 0, &count));
    ck_assert_uint_eq(count, 0);
    ck_ok(indexes_add(idx, x, SL_F32, N, ids));
    ck_assert(has(0) && has(gone) && has((N - 1) * step));
    ck_assert(!has(N * step) && !has(SL_NO_ID) && (step == 1 || !has(1)));
    ck_assert_str_eq(sl_last_error(), "");
    ck_ok(sl_index_delete(idx, &gone, 1));
    ck_assert(!has(gone));
    expect_listed(N, step, gone);
    ck_ok(indexes_add(idx, x, SL_F32, 1, &gone));
    ck_assert(has(gone));
    uint64_t few[] = {SL_NO_ID, SL_NO_ID, SL_NO_ID};
    ck_ok(sl_index_ids(idx, few, 2, &count));
    ck_assert_uint_eq(count, N);
    ck_assert(has(few[0]) && has(few[1]) && few[2] == SL_NO_ID);
    ck_fails(sl_index_ids(idx, NULL, 1, &count), SL_EINVAL, "NULL");
    ck_fails(sl_index_ids(NULL, few, 2, &count), SL_EINVAL, "NULL");
    ck_fails(sl_index_contains(idx, 0, NULL), SL_EINVAL, "NULL");
    ck_fails(sl_index_contains(NULL, 0, &(int){0}), SL_EINVAL, "NULL");
}
END_TEST

/* A reader's map holds the ids of a file that grows to many times the size that it had when the map was made. More are
 * looked up than in one hold of the lock. */
START_TEST(readers_follow_a_file_that_grows) {
    enum { FIRST = 1000, LAST = 4 * FIRST + 500, STEP = 700, UNKNOWN = 1 };
    static uint64_t ids[LAST + UNKNOWN];
    float *points = clusters_make(LAST, 2, 0.3, 3), vectors[2];
    sl_index_params params;
    sl_save_params save;
    sl_open_params open;
    sl_index *writer;
    scratch place;
    int found;
    scratch_open(&place);
    indexes_params(&params, 2, SL_METRIC_L2);
    params.m = 4;
    params.ef_construction = 10;
    for (uint64_t i = 0; i < LAST + UNKNOWN; i++)
        ids[i] = i << 32 | 5;
    sl_index *index = indexes_make(&params, points, SL_F32, FIRST, ids, 1);
    sl_save_params_init(&save);
    save.room = LAST;
    ck_ok(sl_index_save(index, place.path, &save));
    sl_index_free(index);
    sl_open_params_init(&open);
    open.writable = 1;
    ck_ok(sl_index_open(place.path, &open, &writer));
    sl_index *reader = indexes_open(place.path, SL_PLACE_MAP);
    for (size_t n = FIRST; n <= LAST; n += STEP) {
        ck_ok(sl_index_contains(reader, ids[n - 1], &found));
        ck_assert_int_eq(found, 1);
        /* A full map has no free place, at which a look-up of an unknown id would end. */
        ck_assert_uint_ge(reader->id_map.size, 2 * n);
        ck_ok(sl_index_contains(reader, ids[LAST], &found));
        ck_assert_int_eq(found, 0);
        if (n + STEP > LAST) break;
        ck_ok(indexes_add(writer, points + n * 2, SL_F32, STEP, ids + n));
        ck_ok(sl_index_sync(writer));
    }
    const size_t n = sl_index_size(reader);
    ck_assert_uint_eq(n, LAST);
    float *got = malloc(n * sizeof vectors);
    ck_ok(sl_index_get(reader, ids, n, SL_F32, got));
    for (size_t i = 0; i < n; i += 97) {
        ck_ok(sl_index_get(writer, &ids[i], 1, SL_F32, vectors));
        ck_assert_mem_eq(got + 2 * i, vectors, sizeof vectors);
    }
    free(got);
    free(points);
    sl_index_free(reader);
    sl_index_free(writer);
    scratch_close(&place);
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("ids");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, ids_count_up_by_themselves);
    tcase_add_test(tests, own_and_automatic_ids_mix);
    tcase_add_test(tests, ids_that_count_up_take_no_room);
    tcase_add_test(tests, refused_ids_leave_no_trace);
    tcase_add_test(tests, cancelled_ids_leave_no_trace);
    tcase_add_loop_test(tests, ids_outlive_the_order_of_nodes, 0, 2);
    tcase_add_test(tests, unknown_ids_are_named);
    tcase_add_loop_test(tests, ids_are_told_and_listed, 0, 2);
    tcase_add_test(tests, readers_follow_a_file_that_grows);
    tcase_add_loop_test(tests, floats_come_back, 0, sizeof tiers / sizeof *tiers);
    tcase_add_loop_test(tests, integers_come_back_exactly, 0, 3);
    return check_main("ids", &tests, 1);
}
