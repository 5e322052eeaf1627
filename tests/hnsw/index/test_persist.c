/* Saving and opening whole indexes: what was found before is found after, from any place and over any file. */
#include "hnsw/graph/index.h"
#include "tests/support/check_main.h"
#include "tests/support/clusters.h"
#include "tests/support/indexes.h"
#include "tests/support/scratch.h"

#include <stdlib.h>
#include <string.h>

enum { N = 600, DIM = 20, QUERIES = 20, K = 10, EF = 50 };

static scratch place;
static float *x;

static void set_up(void) {
    scratch_open(&place);
    x = clusters_make(N + QUERIES, DIM, 0.3, 21);
}

static void tear_down(void) {
    free(x);
    scratch_close(&place);
}

/* Answers of an index, to compare. */
typedef struct answers {
    uint64_t ids[QUERIES * K];
    float scores[QUERIES * K];
} answers;

static answers ask(const sl_index *index, const void *queries, sl_dtype dtype) {
    answers a;
    memset(&a, 0, sizeof a);
    indexes_search(index, (vector_rows){queries, dtype, QUERIES}, K, EF, a.ids, a.scores);
    return a;
}

static size_t size_of_file(const char *path) {
    size_t size;
    free(file_read(path, &size));
    return size;
}

/* ---------------------------------------------------------------------------------------------------------------
 * The same index again
 * ------------------------------------------------------------------------------------------------------------- */

static const struct kind {
    sl_dtype dtype;
    sl_codes codes;
    sl_refine refine;
} kinds[] = {
    {SL_F32, SL_CODES_I8, SL_REFINE_NONE},  {SL_F32, SL_CODES_I8, SL_REFINE_F32},
    {SL_F32, SL_CODES_I8, SL_REFINE_BF16},  {SL_F32, SL_CODES_I8, SL_REFINE_I16},
    {SL_F32, SL_CODES_I16, SL_REFINE_NONE}, {SL_F32, SL_CODES_I16, SL_REFINE_BF16},
    {SL_F32, SL_CODES_F32, SL_REFINE_NONE}, {SL_I8, SL_CODES_I8, SL_REFINE_NONE},
    {SL_U8, SL_CODES_I8, SL_REFINE_NONE},   {SL_I16, SL_CODES_I16, SL_REFINE_NONE},
    {SL_F32, SL_CODES_I4, SL_REFINE_NONE},  {SL_F32, SL_CODES_I4, SL_REFINE_I16},
    {SL_U8, SL_CODES_I4, SL_REFINE_NONE},   {SL_I16, SL_CODES_I4, SL_REFINE_NONE},
};

START_TEST(opened_as_it_was_saved) {
    const struct kind *kind = &kinds[_i];
    unsigned char *rows = clusters_as(kind->dtype, x, (N + QUERIES) * DIM);
    const unsigned char *queries = rows + N * DIM * sl_dtype_size(kind->dtype);
    for (int metric = 0; metric < 3; metric++) {
        sl_index_params params;
        indexes_params(&params, DIM, (sl_metric)metric);
        params.dtype = kind->dtype;
        params.codes = kind->codes;
        params.refine = kind->refine;
        params.seed = 77;
        sl_index *index = indexes_make(&params, rows, kind->dtype, N, NULL, 1);
        ck_ok(sl_index_save(index, place.path, NULL));
        answers before = ask(index, queries, kind->dtype);
        sl_index_stats saved = indexes_stats(index);
        ck_assert_uint_eq(saved.bytes_total, size_of_file(place.path));
        for (int where = SL_PLACE_DRAM; where <= SL_PLACE_MAP; where++) {
            sl_index *opened = indexes_open(place.path, (sl_place)where);
            answers after = ask(opened, queries, kind->dtype);
            ck_assert_mem_eq(&after, &before, sizeof after);
            sl_index_stats stats = indexes_stats(opened);
            ck_assert_int_eq(stats.place, where);
            stats.place = SL_PLACE_DRAM;
            indexes_equal(&stats, &saved);
            indexes_sound(opened);
            unsigned char was[DIM * 4], is[DIM * 4];
            uint64_t id = N / 2;
            ck_ok(sl_index_get(index, &id, 1, kind->dtype, was));
            ck_ok(sl_index_get(opened, &id, 1, kind->dtype, is));
            ck_assert_mem_eq(is, was, DIM * sl_dtype_size(kind->dtype));
            sl_index_free(opened);
        }
        sl_index_free(index);
    }
    free(rows);
}
END_TEST

/* The first thing a program does after opening may be anything. */
START_TEST(opened_and_used_at_once) {
    sl_index_params params;
    indexes_params(&params, DIM, SL_METRIC_L2);
    uint64_t ids[N], id;
    for (size_t i = 0; i < N; i++)
        ids[i] = 3 * i + 1;
    float vector[DIM];
    sl_index *index = indexes_make(&params, x, SL_F32, N, ids, 1);
    ck_ok(sl_index_save(index, place.path, NULL));
    sl_index_free(index);
    for (int where = SL_PLACE_DRAM; where <= SL_PLACE_MAP; where++) {
        index = indexes_open(place.path, (sl_place)where);
        indexes_search(index, (vector_rows){x + 5 * DIM, SL_F32, 1}, 1, EF, &id, NULL);
        ck_assert_uint_eq(id, 16);
        sl_index_free(index);
        index = indexes_open(place.path, (sl_place)where);
        ck_ok(sl_index_get(index, &ids[7], 1, SL_F32, vector));
        id = 2;
        ck_fails(sl_index_get(index, &id, 1, SL_F32, vector), SL_ENOTFOUND, "id 2 ");
        sl_index_free(index);
    }
    index = indexes_open(place.path, SL_PLACE_DRAM);
    ck_fails(indexes_add(index, x, SL_F32, 1, &ids[3]), SL_EEXIST, "id 10 is already");
    ck_ok(indexes_add(index, x + N * DIM, SL_F32, 1, NULL));
    indexes_search(index, (vector_rows){x + N * DIM, SL_F32, 1}, 1, EF, &id, NULL);
    ck_assert_uint_eq(id, 3 * (N - 1) + 2);
    sl_index_free(index);
}
END_TEST

START_TEST(empty_indexes_are_kept) {
    sl_index_params params;
    indexes_params(&params, DIM, SL_METRIC_L2);
    params.refine = SL_REFINE_I16;
    sl_index *index = indexes_make(&params, x, SL_F32, 0, NULL, 1);
    ck_ok(sl_index_save(index, place.path, NULL));
    sl_index_free(index);
    for (int round = 0; round < 2; round++) {
        uint64_t id = 0;
        index = indexes_open(place.path, SL_PLACE_MAP);
        ck_assert_uint_eq(sl_index_size(index), 0);
        indexes_sound(index);
        indexes_search(index, (vector_rows){x, SL_F32, 1}, 1, EF, &id, NULL);
        ck_assert_uint_eq(id, SL_NO_ID);
        ck_ok(sl_index_save(index, place.path, NULL));
        sl_index_free(index);
    }
    index = indexes_open(place.path, SL_PLACE_DRAM);
    ck_ok(indexes_add(index, x, SL_F32, N, NULL));
    indexes_sound(index);
    sl_index *never_saved = indexes_make(&params, x, SL_F32, N, NULL, 1);
    answers a = ask(index, x + N * DIM, SL_F32), b = ask(never_saved, x + N * DIM, SL_F32);
    ck_assert_mem_eq(&a, &b, sizeof a);
    sl_index_free(index);
    sl_index_free(never_saved);
}
END_TEST

/* From either place, to another file, over its own, and on again. */
START_TEST(opened_indexes_are_saved) {
    char other[SCRATCH_PATH];
    scratch_name(&place, "other.sl", other);
    sl_index_params params;
    indexes_params(&params, DIM, SL_METRIC_COSINE);
    params.refine = SL_REFINE_BF16;
    sl_index *index = indexes_make(&params, x, SL_F32, N, NULL, 1);
    ck_ok(sl_index_save(index, place.path, NULL));
    answers before = ask(index, x + N * DIM, SL_F32);
    sl_index_free(index);
    size_t size, size_now;
    unsigned char *bytes = file_read(place.path, &size);
    for (int where = SL_PLACE_DRAM; where <= SL_PLACE_MAP; where++) {
        index = indexes_open(place.path, (sl_place)where);
        for (int own = 0; own < 2; own++) {
            ck_ok(sl_index_save(index, own ? place.path : other, NULL));
            unsigned char *now = file_read(own ? place.path : other, &size_now);
            ck_assert_uint_eq(size_now, size);
            ck_assert_mem_eq(now, bytes, size);
            free(now);
            answers after = ask(index, x + N * DIM, SL_F32);
            ck_assert_mem_eq(&after, &before, sizeof after);
        }
        sl_index_free(index);
    }
    ck_assert_uint_eq(scratch_count(&place), 2);
    free(bytes);
}
END_TEST

/* Mapped twice, copied, added to and saved over, all of the same file: the mapped ones stay what they were. */
START_TEST(open_more_than_once) {
    sl_index_params params;
    indexes_params(&params, DIM, SL_METRIC_L2);
    sl_index *first = indexes_make(&params, x, SL_F32, N / 2, NULL, 1);
    ck_ok(sl_index_save(first, place.path, NULL));
    sl_index_free(first);
    first = indexes_open(place.path, SL_PLACE_MAP);
    sl_index *second = indexes_open(place.path, SL_PLACE_MAP), *copy = indexes_open(place.path, SL_PLACE_DRAM);
    answers before = ask(first, x + N * DIM, SL_F32);
    ck_ok(indexes_add(copy, x + N / 2 * DIM, SL_F32, N - N / 2, NULL));
    ck_ok(sl_index_save(copy, place.path, NULL));
    answers a = ask(first, x + N * DIM, SL_F32), b = ask(second, x + N * DIM, SL_F32);
    ck_assert_mem_eq(&a, &before, sizeof a);
    ck_assert_mem_eq(&b, &before, sizeof b);
    sl_index_free(first);
    b = ask(second, x + N * DIM, SL_F32);
    ck_assert_mem_eq(&b, &before, sizeof b);
    indexes_sound(second);
    sl_index_free(second);
    second = indexes_open(place.path, SL_PLACE_MAP);
    ck_assert_uint_eq(sl_index_size(second), N);
    a = ask(second, x + N * DIM, SL_F32);
    b = ask(copy, x + N * DIM, SL_F32);
    ck_assert_mem_eq(&a, &b, sizeof a);
    indexes_sound(second);
    sl_index_free(second);
    sl_index_free(copy);
}
END_TEST

START_TEST(mapped_indexes_are_read_only) {
    sl_index_params params;
    indexes_params(&params, DIM, SL_METRIC_L2);
    sl_index *index = indexes_make(&params, x, SL_F32, N, NULL, 1);
    ck_ok(sl_index_save(index, place.path, NULL));
    sl_index_free(index);
    index = indexes_open(place.path, SL_PLACE_MAP);
    ck_fails(indexes_add(index, x, SL_F32, 1, NULL), SL_EREADONLY, "open it with place dram");
    ck_fails(sl_index_reserve(index, 10), SL_EREADONLY, "open it with place dram");
    ck_fails(sl_index_delete(index, &(uint64_t){0}, 1), SL_EREADONLY, "open it with place dram");
    ck_assert_uint_eq(sl_index_size(index), N);
    sl_index_free(index);

    sl_open_params open;
    sl_open_params_init(&open);
    open.place = (sl_place)3;
    ck_fails(sl_index_open(place.path, &open, &index), SL_EINVAL, "place 3");
    ck_fails(sl_index_open("/dev/null/nothing", NULL, &index), SL_EIO, "/dev/null/nothing");
}
END_TEST

/* Deleted vectors stay deleted from file to file. A file from before deleting existed has no deleted vectors. */
START_TEST(deleted_ones_stay_away) {
    sl_index_params params;
    indexes_params(&params, DIM, SL_METRIC_L2);
    sl_index *index = indexes_make(&params, x, SL_F32, N, NULL, 1);
    uint64_t gone[N / 2];
    float vector[DIM];
    for (size_t i = 0; i < N / 2; i++)
        gone[i] = 2 * i;
    ck_ok(sl_index_save(index, place.path, NULL));
    size_t whole = size_of_file(place.path);
    for (size_t round = 1; round <= 2; round++) {
        index->keeps_deleted = 1;
        ck_ok(sl_index_delete(index, gone + (round - 1) * N / 4, N / 4));
        answers wanted = ask(index, x + N * DIM, SL_F32);
        ck_ok(sl_index_save(index, place.path, NULL));
        ck_assert_uint_eq(size_of_file(place.path), indexes_stats(index).bytes_total);
        ck_assert_uint_gt(size_of_file(place.path), whole);
        sl_index_free(index);
        for (int where = SL_PLACE_MAP; where >= SL_PLACE_DRAM; where--) {
            index = indexes_open(place.path, (sl_place)where);
            ck_assert_uint_eq(sl_index_size(index), N - round * (N / 4));
            ck_assert_uint_eq(indexes_sound(index).deleted, round * (N / 4));
            answers got = ask(index, x + N * DIM, SL_F32);
            ck_assert_mem_eq(&got, &wanted, sizeof got);
            ck_fails(sl_index_get(index, gone, 1, SL_F32, vector), SL_ENOTFOUND, "id 0 is not in the index");
            if (where == SL_PLACE_MAP) sl_index_free(index);
        }
    }
    ck_ok(indexes_add(index, x, SL_F32, N / 2, gone));
    ck_ok(sl_index_save(index, place.path, NULL));
    sl_index_free(index);
    index = indexes_open(place.path, SL_PLACE_MAP);
    ck_assert_uint_eq(sl_index_size(index), N);
    ck_ok(sl_index_get(index, &gone[3], 1, SL_F32, vector));
    ck_assert_uint_eq(indexes_sound(index).duplicate_ids, 0);
    sl_index_free(index);
}
END_TEST

static int cancel(void *ctx, uint64_t done, uint64_t total) {
    (void)ctx;
    (void)done;
    (void)total;
    return 1;
}

START_TEST(cancelled_saves_and_opens) {
    sl_index_params params;
    indexes_params(&params, DIM, SL_METRIC_L2);
    sl_index *index = indexes_make(&params, x, SL_F32, N, NULL, 1), *opened;
    sl_save_params save;
    sl_save_params_init(&save);
    save.progress = cancel;
    ck_fails(sl_index_save(index, place.path, &save), SL_ECANCELED, "progress callback");
    ck_assert_uint_eq(scratch_count(&place), 0);
    ck_ok(sl_index_save(index, place.path, NULL));
    sl_open_params open;
    sl_open_params_init(&open);
    open.place = SL_PLACE_DRAM;
    open.progress = cancel;
    ck_fails(sl_index_open(place.path, &open, &opened), SL_ECANCELED, "progress callback");
    ck_assert_ptr_null(opened);
    sl_index_free(index);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Size
 * ------------------------------------------------------------------------------------------------------------- */

START_TEST(ids_take_what_they_need) {
    static const struct {
        uint64_t first, step;
        size_t width;
    } cases[] = {{0, 1, 0},
                 {1, 1, 4},
                 {0, 2, 4},
                 {UINT32_MAX - N + 1, 1, 4},
                 {UINT32_MAX - N + 2, 1, 8},
                 {UINT64_MAX - N, 1, 8}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        uint64_t ids[N];
        for (size_t i = 0; i < N; i++)
            ids[i] = cases[c].first + i * cases[c].step;
        sl_index_params params;
        indexes_params(&params, DIM, SL_METRIC_L2);
        sl_index *index = indexes_make(&params, x, SL_F32, N, ids, 1);
        ck_ok(sl_index_save(index, place.path, NULL));
        ck_assert_uint_eq(indexes_stats(index).bytes_ids, N * cases[c].width);
        ck_assert_uint_eq(indexes_stats(index).bytes_total, size_of_file(place.path));
        answers before = ask(index, x + N * DIM, SL_F32);
        sl_index_free(index);
        for (int where = SL_PLACE_DRAM; where <= SL_PLACE_MAP; where++) {
            index = indexes_open(place.path, (sl_place)where);
            answers after = ask(index, x + N * DIM, SL_F32);
            ck_assert_mem_eq(&after, &before, sizeof after);
            ck_assert_uint_eq(indexes_stats(index).bytes_ids, N * cases[c].width);
            indexes_sound(index);
            sl_index_free(index);
        }
        /* Narrow ids become wide ones when one is added that needs it. */
        index = indexes_open(place.path, SL_PLACE_DRAM);
        ck_ok(indexes_add(index, x + N * DIM, SL_F32, 1, (uint64_t[]){(uint64_t)1 << 50}));
        float vector[DIM];
        ck_ok(sl_index_get(index, &ids[N / 3], 1, SL_F32, vector));
        ck_assert_uint_eq(indexes_stats(index).bytes_ids, (N + 1) * 8);
        indexes_sound(index);
        sl_index_free(index);
    }
}
END_TEST

/* Compares with the memory of another library for the same vectors, m and ids. A vector takes 4 bytes an element, 132
 * bytes of links, 8 of id and 8.8 of upper layers. */
START_TEST(files_are_small) {
    enum { MANY = 5000, WIDE = 100 };
    static const struct {
        sl_refine refine;
        double share;
    } cases[] = {{SL_REFINE_NONE, 0.5}, {SL_REFINE_BF16, 0.85}, {SL_REFINE_F32, 1.25}};
    const double other = 4 * WIDE + 132 + 8 + 8.8;
    float *wide = clusters_make(MANY, WIDE, 0.3, 2);
    for (size_t c = 0; c < 3; c++) {
        sl_index_params params;
        sl_index_params_init(&params);
        params.dim = WIDE;
        params.ef_construction = 20;
        params.refine = cases[c].refine;
        sl_index *index = indexes_make(&params, wide, SL_F32, MANY, NULL, 2);
        ck_ok(sl_index_save(index, place.path, NULL));
        sl_index_stats stats = indexes_stats(index);
        uint64_t sum = stats.bytes_codes + stats.bytes_links + stats.bytes_ids + stats.bytes_upper +
                       stats.bytes_refine + stats.bytes_partitions;
        double bytes = (double)sum / MANY;
        ck_assert_msg(bytes < cases[c].share * other, "%s: %.1f bytes a vector, %.3f of %.1f",
                      sl_refine_name(cases[c].refine), bytes, bytes / other, other);
        /* Beside the vectors there is a page of header and what brings each of nine sections to a page's end. */
        ck_assert_uint_le(size_of_file(place.path), sum + 4096 + 9 * (4096 + 64));
        sl_index_free(index);
    }
    free(wide);
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("persist");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_loop_test(tests, opened_as_it_was_saved, 0, sizeof kinds / sizeof *kinds);
    tcase_add_test(tests, opened_and_used_at_once);
    tcase_add_test(tests, empty_indexes_are_kept);
    tcase_add_test(tests, opened_indexes_are_saved);
    tcase_add_test(tests, open_more_than_once);
    tcase_add_test(tests, mapped_indexes_are_read_only);
    tcase_add_test(tests, deleted_ones_stay_away);
    tcase_add_test(tests, cancelled_saves_and_opens);
    tcase_add_test(tests, ids_take_what_they_need);
    tcase_add_test(tests, files_are_small);
    return check_main("persist", &tests, 1);
}
