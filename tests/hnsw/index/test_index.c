/* An index from empty to full: edges of searching, input that is refused, room, cancelling, and what it all takes. */
#include "tests/support/check_main.h"
#include "tests/support/clusters.h"
#include "tests/support/faults.h"
#include "tests/support/indexes.h"
#include "tests/support/scratch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DIM = 16, K = 10 };

static float *clusters(size_t n) {
    return clusters_make(n, DIM, 0.3, 5);
}

static sl_index *index_of(const float *x, size_t n) {
    sl_index_params params;
    indexes_params(&params, DIM, SL_METRIC_L2);
    params.refine = SL_REFINE_F32;
    return indexes_make(&params, x, SL_F32, n, NULL, 1);
}

/* ---------------------------------------------------------------------------------------------------------------
 * Searching
 * ------------------------------------------------------------------------------------------------------------- */

/* Fewer vectors than results: all of them, then the fill. */
START_TEST(few_vectors) {
    float *x = clusters(40);
    size_t sizes[] = {0, 1, 2, 9, 30};
    for (size_t s = 0; s < 5; s++) {
        size_t n = sizes[s];
        sl_index *index = index_of(x, n);
        uint64_t ids[60];
        float scores[60];
        unsigned char seen[40] = {0};
        sl_search_stats stats;
        ck_ok(sl_index_search(index, x + 35 * DIM, SL_F32, 1, 0, 60, NULL, ids, scores, &stats));
        ck_assert_uint_eq(stats.results, n);
        for (size_t i = 0; i < n; i++) {
            ck_assert_uint_lt(ids[i], n);
            ck_assert(!seen[ids[i]]++ && scores[i] >= 0);
        }
        for (size_t i = n; i < 60; i++)
            ck_assert(ids[i] == SL_NO_ID && isnan(scores[i]));
        sl_index_stats described = indexes_stats(index);
        ck_assert_uint_eq(described.n, n);
        sl_check_report report = indexes_sound(index);
        ck_assert(n < 2 ? isnan(report.sampled_recall) : report.sampled_recall == 1);
        sl_index_free(index);
    }
    free(x);
}
END_TEST

START_TEST(impossible_searches) {
    float *x = clusters(50);
    sl_index *index = index_of(x, 50);
    sl_searcher *searcher;
    uint64_t ids[3 * K];
    sl_search_params params;
    sl_search_params_init(&params);
    ck_fails(sl_searcher_create(index, 0, &searcher), SL_EINVAL, "max_ef is 0");
    ck_assert_ptr_null(searcher);
    ck_fails(sl_searcher_create(index, SL_MAX_EF + 1, &searcher), SL_EINVAL, "65537");
    ck_ok(sl_searcher_create(index, 64, &searcher));
    ck_fails(sl_searcher_search(searcher, x, SL_F32, 0, &params, ids, NULL, NULL), SL_EINVAL, "k is 0");
    ck_fails(sl_index_search(index, x, SL_F32, 1, 0, 0, &params, ids, NULL, NULL), SL_EINVAL, "k is 0");
    ck_fails(sl_index_search(index, x, SL_F32, 1, 0, SIZE_MAX, &params, ids, NULL, NULL), SL_EINVAL, "k is");
    ck_fails(sl_searcher_search(searcher, x, SL_F32, 65, &params, ids, NULL, NULL), SL_EINVAL, "k 65");
    params.ef = 65;
    ck_fails(sl_searcher_search(searcher, x, SL_F32, K, &params, ids, NULL, NULL), SL_EINVAL, "ef 65");
    params.ef = 0;
    ck_fails(sl_searcher_search(searcher, x, SL_F32, K, &params, ids, NULL, NULL), SL_EINVAL, "ef is 0");
    params.ef = SL_MAX_EF + 1;
    ck_fails(sl_index_search(index, x, SL_F32, 1, 0, K, &params, ids, NULL, NULL), SL_EINVAL, "ef is 65537");
    params.ef = 64;
    ck_fails(sl_searcher_search(searcher, x, SL_I8, K, &params, ids, NULL, NULL), SL_ETYPE, "f32, f16 or bf16");
    ck_fails(sl_index_search(index, x, (sl_dtype)9, 1, 0, K, &params, ids, NULL, NULL), SL_ETYPE, "type 9");
    float bad[3 * DIM];
    memcpy(bad, x, sizeof bad);
    bad[2 * DIM + 5] = NAN;
    ck_fails(sl_index_search(index, bad, SL_F32, 3, 0, K, &params, ids, NULL, NULL), SL_EVALUE,
             "query 2: element 5 is not a number");
    bad[2 * DIM + 5] = -INFINITY;
    ck_fails(sl_searcher_search(searcher, bad + 2 * DIM, SL_F32, K, &params, ids, NULL, NULL), SL_EVALUE,
             "element 5 is infinite");
    /* None of that has harmed the searcher. */
    ck_ok(sl_searcher_search(searcher, x + 7 * DIM, SL_F32, K, &params, ids, NULL, NULL));
    ck_assert_uint_eq(ids[0], 7);
    sl_searcher_free(searcher);
    sl_index_free(index);
    free(x);
}
END_TEST

/* k above ef raises it. */
START_TEST(k_above_ef) {
    float *x = clusters(600);
    sl_index *index = index_of(x, 600);
    uint64_t ids[200];
    sl_search_stats stats;
    sl_search_params params;
    sl_search_params_init(&params);
    params.ef = 1;
    ck_ok(sl_index_search(index, x, SL_F32, 1, 0, 200, &params, ids, NULL, &stats));
    ck_assert_uint_eq(stats.results, 200);
    ck_assert_uint_eq(ids[0], 0);
    sl_index_free(index);
    free(x);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Input
 * ------------------------------------------------------------------------------------------------------------- */

static void check_unchanged(sl_index *index, const sl_index_stats *before, const float *x) {
    sl_index_stats after = indexes_stats(index);
    indexes_equal(&after, before);
    uint64_t id;
    indexes_search(index, (vector_rows){x + 3 * DIM, SL_F32, 1}, 1, 64, &id, NULL);
    ck_assert_uint_eq(id, 3);
}

START_TEST(bad_rows_are_named) {
    static const float bad[] = {NAN, INFINITY, -INFINITY, 1e30f};
    static const char *const says[] = {"row 211: element 9 is not a number", "row 211: element 9 is infinite",
                                       "row 211: element 9 is infinite", "row 211: length is 1e+30"};
    float *x = clusters(300);
    sl_index *index = index_of(x, 100);
    sl_index_stats before = indexes_stats(index);
    float *more = clusters(300);
    for (size_t i = 0; i < 4; i++)
        for (size_t threads = 1; threads <= 4; threads += 3) {
            sl_add_params params;
            sl_add_params_init(&params);
            params.threads = threads;
            more[211 * DIM + 9] = more[250 * DIM] = bad[i];
            ck_fails(sl_index_add(index, more, SL_F32, 300, 0, NULL, &params), SL_EVALUE, says[i]);
            check_unchanged(index, &before, x);
        }
    sl_index_free(index);
    free(more);
    free(x);
}
END_TEST

START_TEST(zero_vectors) {
    float zeros[2 * DIM] = {0};
    int8_t bytes[2 * DIM] = {1};
    uint64_t id;
    zeros[0] = 1;
    for (int metric = 0; metric < 3; metric++) {
        sl_index_params params;
        indexes_params(&params, DIM, (sl_metric)metric);
        sl_index *index, *integers;
        ck_ok(sl_index_create(&params, &index));
        params.dtype = SL_I8;
        ck_ok(sl_index_create(&params, &integers));
        if (metric == SL_METRIC_COSINE) {
            ck_fails(indexes_add(index, zeros, SL_F32, 2, NULL), SL_EVALUE, "row 1: zero vector");
            ck_fails(indexes_add(integers, bytes, SL_I8, 2, NULL), SL_EVALUE, "row 1: zero vector");
            ck_fails(sl_index_search(index, zeros, SL_F32, 2, 0, 1, NULL, &id, NULL, NULL), SL_EVALUE,
                     "query 1: zero vector");
        } else {
            ck_ok(indexes_add(index, zeros, SL_F32, 2, NULL));
            ck_ok(indexes_add(integers, bytes, SL_I8, 2, NULL));
            ck_ok(sl_index_search(index, zeros + DIM, SL_F32, 1, 0, 1, NULL, &id, NULL, NULL));
        }
        sl_index_free(index);
        sl_index_free(integers);
    }
}
END_TEST

START_TEST(rows_of_the_wrong_shape_or_type) {
    float *x = clusters(110);
    sl_index *index = index_of(x, 100);
    sl_index_stats before = indexes_stats(index);
    const char *bytes = (const char *)x;
    uint64_t id;
    ck_fails(sl_index_add(index, x, SL_I8, 2, 0, NULL, NULL), SL_ETYPE, "not i8");
    ck_fails(sl_index_add(index, x, (sl_dtype)-1, 2, 0, NULL, NULL), SL_ETYPE, "type -1");
    ck_fails(sl_index_add(index, x, SL_F32, 2, DIM * 4 - 4, NULL, NULL), SL_EINVAL, "stride of 60");
    ck_fails(sl_index_add(index, x, SL_F32, 2, DIM * 4 + 2, NULL, NULL), SL_EINVAL, "multiples of 4");
    ck_fails(sl_index_add(index, bytes + 1, SL_F32, 2, 0, NULL, NULL), SL_EINVAL, "multiples of 4");
    ck_fails(sl_index_search(index, bytes + 2, SL_F32, 1, 0, 1, NULL, &id, NULL, NULL), SL_EINVAL, "multiples of 4");
    ck_fails(sl_index_search(index, x, SL_F32, 1, 5, 1, NULL, &id, NULL, NULL), SL_EINVAL, "stride of 5");
    ck_fails(sl_index_add(index, x, SL_F32, SIZE_MAX, 0, NULL, NULL), SL_ELIMIT, "4294901760");
    ck_fails(sl_index_add(index, x, SL_F32, (size_t)SL_MAX_VECTORS - 99, 0, NULL, NULL), SL_ELIMIT, "100 vectors");
    ck_fails(sl_index_reserve(index, (size_t)SL_MAX_VECTORS + 1), SL_ELIMIT, "4294901760");
    check_unchanged(index, &before, x);
    sl_index_free(index);
    free(x);
}
END_TEST

/* Rows with gaps between them give the same file as dense ones. */
START_TEST(strides) {
    enum { N = 500, WIDE = DIM + 5 };
    scratch place;
    scratch_open(&place);
    float *x = clusters(N), *wide = malloc(N * WIDE * sizeof *wide);
    ck_assert_ptr_nonnull(wide);
    for (size_t i = 0; i < N * WIDE; i++)
        wide[i] = i % WIDE < DIM ? x[i / WIDE * DIM + i % WIDE] : NAN;
    sl_index *dense = index_of(x, N), *strided = index_of(x, 0);
    sl_add_params params;
    sl_add_params_init(&params);
    params.threads = 1;
    ck_ok(sl_index_add(strided, wide, SL_F32, N, WIDE * sizeof *wide, NULL, &params));
    size_t sizes[2];
    ck_ok(sl_index_save(dense, place.path, NULL));
    unsigned char *a = file_read(place.path, &sizes[0]);
    ck_ok(sl_index_save(strided, place.path, NULL));
    unsigned char *b = file_read(place.path, &sizes[1]);
    ck_assert_uint_eq(sizes[0], sizes[1]);
    ck_assert_mem_eq(a, b, sizes[0]);
    uint64_t from_dense[20 * K], from_wide[20 * K];
    indexes_search(dense, (vector_rows){x, SL_F32, 20}, K, 64, from_dense, NULL);
    ck_ok(sl_index_search(dense, wide, SL_F32, 20, WIDE * sizeof *wide, K, NULL, from_wide, NULL, NULL));
    ck_assert_mem_eq(from_dense, from_wide, sizeof from_dense);
    free(a);
    free(b);
    free(wide);
    free(x);
    sl_index_free(dense);
    sl_index_free(strided);
    scratch_close(&place);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Room, sizes
 * ------------------------------------------------------------------------------------------------------------- */

START_TEST(reserved_room_is_used) {
    enum { N = 3000 };
    float *x = clusters(N);
    uint64_t own[N];
    for (size_t i = 0; i < N; i++)
        own[i] = 7 * i;
    for (int with_ids = 0; with_ids < 2; with_ids++) {
        fault_allocator memory;
        fault_allocator_init(&memory, 0);
        sl_index_params params;
        indexes_params(&params, DIM, SL_METRIC_L2);
        params.refine = SL_REFINE_F32;
        params.allocator = &memory.allocator;
        sl_index *index = indexes_make(&params, x, SL_F32, 10, with_ids ? own : NULL, 1);
        ck_ok(sl_index_reserve(index, N));
        ck_ok(sl_index_reserve(index, 5));
        memory.largest = 0;
        for (size_t at = 10; at < N; at += 598)
            ck_ok(indexes_add(index, x + at * DIM, SL_F32, N - at < 598 ? N - at : 598, with_ids ? own + at : NULL));
        /* Links and refine rows are 64 bytes a vector, code rows 32; all else is smaller. */
        ck_assert_uint_lt(memory.largest, N * 32);
        sl_index_free(index);
        ck_assert_uint_eq(memory.live_blocks, 0);
    }
    free(x);
}
END_TEST

/* The statistics' sizes are those of the file. */
START_TEST(stats_are_those_of_the_file) {
    scratch place;
    scratch_open(&place);
    float *x = clusters(777);
    for (size_t n = 0; n <= 777; n = 7 * n + 111) {
        sl_index *index = index_of(x, n);
        size_t size;
        ck_ok(sl_index_save(index, place.path, NULL));
        free(file_read(place.path, &size));
        sl_index_stats stats = indexes_stats(index);
        ck_assert_uint_eq(stats.bytes_total, size);
        ck_assert_uint_eq(stats.bytes_refine, n * DIM * sizeof(float));
        ck_assert_uint_eq(stats.bytes_links, n * 2 * 8 * sizeof(uint32_t));
        ck_assert_uint_eq(stats.bytes_ids, 0);
        ck_assert_uint_eq(stats.bytes_codes, n * 32);
        ck_assert(n == 0 || stats.bytes_upper > 0);
        ck_assert(n == 0 || (stats.quant_error_mean > 0 && stats.quant_error_mean < stats.quant_error_max));
        ck_assert(stats.quant_error_max < 0.05);
        ck_assert_uint_eq(stats.seed, 1);
        ck_assert_int_eq(stats.place, SL_PLACE_DRAM);
        ck_assert(n == 0 || stats.max_level > 0);
        sl_index_free(index);
    }
    free(x);
    scratch_close(&place);
}
END_TEST

START_TEST(small_indexes_are_small) {
    enum { MANY = 1000, SMALL = 10, D = 32 };
    static sl_index *indexes[MANY];
    float *x = clusters_make(SMALL, D, 0.3, 1);
    fault_allocator memory;
    fault_allocator_init(&memory, 0);
    sl_index_params params;
    sl_index_params_init(&params);
    params.dim = D;
    params.refine = SL_REFINE_BF16;
    params.allocator = &memory.allocator;
    for (size_t i = 0; i < MANY; i++)
        indexes[i] = indexes_make(&params, x, SL_F32, SMALL, NULL, 1);
    ck_assert_uint_lt(memory.live_bytes / MANY, 8192);
    for (size_t i = 0; i < MANY; i++)
        sl_index_free(indexes[i]);
    ck_assert_uint_eq(memory.live_blocks, 0);
    free(x);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Building
 * ------------------------------------------------------------------------------------------------------------- */

/* An index that grows by a few vectors at a time holds and finds what one made at once does. */
START_TEST(grows_by_many_small_adds) {
    static const sl_codes codes[] = {SL_CODES_I8, SL_CODES_I4};
    enum { N = 1500, QUERIES = 50, K = 10 };
    float *x = clusters(N + QUERIES);
    sl_index_params params;
    indexes_params(&params, DIM, (sl_metric)(_i % 3));
    params.codes = codes[_i / 3];
    sl_index *index = indexes_make(&params, x, SL_F32, 1, NULL, 1);
    for (size_t n = 1, step = 1; n < N; n += step) {
        step = 1 + n % 13;
        if (step > N - n) step = N - n;
        ck_ok(indexes_add(index, x + n * DIM, SL_F32, step, NULL));
    }
    sl_index *whole = indexes_make(&params, x, SL_F32, N, NULL, 1);
    indexes_sound(index);
    ck_assert_uint_eq(sl_index_size(index), N);
    for (uint64_t id = 0; id < N; id++) {
        float one[DIM], other[DIM];
        ck_ok(sl_index_get(index, &id, 1, SL_F32, one));
        ck_ok(sl_index_get(whole, &id, 1, SL_F32, other));
        ck_assert_mem_eq(one, other, sizeof one);
    }
    uint64_t truth[QUERIES * K], found[QUERIES * K];
    indexes_exact(params.metric, DIM, (vector_rows){x, SL_F32, N}, (vector_rows){x + N * DIM, SL_F32, QUERIES}, K,
                  truth);
    indexes_search(index, (vector_rows){x + N * DIM, SL_F32, QUERIES}, K, 100, found, NULL);
    double recall = indexes_recall(found, truth, QUERIES, K);
    ck_assert_msg(recall > (params.codes == SL_CODES_I4 ? 0.95 : 0.85), "recall is %g", recall);
    sl_index_free(whole);
    sl_index_free(index);
    free(x);
}
END_TEST

START_TEST(one_thread_builds_the_same_twice) {
    enum { N = 1500 };
    scratch place;
    scratch_open(&place);
    float *x = clusters(N);
    unsigned char *files[2];
    size_t sizes[2];
    for (size_t i = 0; i < 2; i++) {
        sl_index *index = index_of(x, N);
        ck_ok(sl_index_save(index, place.path, NULL));
        files[i] = file_read(place.path, &sizes[i]);
        sl_index_free(index);
    }
    ck_assert_uint_eq(sizes[0], sizes[1]);
    ck_assert_mem_eq(files[0], files[1], sizes[0]);
    free(files[0]);
    free(files[1]);
    free(x);
    scratch_close(&place);
}
END_TEST

/* How many of the first n rows a search for them finds. */
static size_t found_of(const sl_index *index, const float *x, size_t n) {
    size_t found = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t id;
        indexes_search(index, (vector_rows){x + i * DIM, SL_F32, 1}, 1, 64, &id, NULL);
        found += id == i;
    }
    return found;
}

START_TEST(one_by_one) {
    enum { N = 3000 };
    float *x = clusters(N);
    sl_index *index = index_of(x, 0);
    for (size_t i = 0; i < N; i++)
        ck_ok(indexes_add(index, x + i * DIM, SL_F32, 1, NULL));
    ck_assert_uint_eq(sl_index_size(index), N);
    ck_assert(indexes_sound(index).sampled_recall > 0.9);
    ck_assert_uint_ge(found_of(index, x, N), N - N / 100);
    sl_index_free(index);
    free(x);
}
END_TEST

typedef struct stop {
    size_t after; /* calls */
    size_t calls;
    uint64_t last, total;
} stop;

static int stop_after(void *ctx, uint64_t done, uint64_t total) {
    stop *s = ctx;
    ck_assert_uint_le(s->last, done);
    s->last = done;
    s->total = total;
    return s->calls++ == s->after;
}

/* Cancelled at the first call and at each later one, until it runs through: nothing of it is left each time. The first
 * add of all is cancelled too. */
START_TEST(cancelled_adds_leave_no_trace) {
    enum { FIRST = 1000, N = 12000 };
    float *x = clusters(N);
    size_t threads = _i ? 4 : 1, cancelled = 0, largest = 0;
    sl_index *index = index_of(x, 0);
    sl_status status = SL_OK;
    for (size_t first = 0; first <= FIRST; first += FIRST) {
        size_t n = first ? N - first : FIRST;
        sl_index_stats before = indexes_stats(index);
        for (size_t after = 0; after < 4; after++) {
            stop s = {.after = after};
            sl_add_params params;
            sl_add_params_init(&params);
            params.threads = threads;
            params.progress = stop_after;
            params.progress_ctx = &s;
            status = sl_index_add(index, x + first * DIM, SL_F32, n, 0, NULL, &params);
            ck_assert_uint_eq(s.total, n);
            largest = s.calls > largest ? s.calls : largest;
            if (status == SL_OK) break;
            cancelled++;
            ck_fails(status, SL_ECANCELED, "progress callback");
            sl_index_stats now = indexes_stats(index);
            indexes_equal(&now, &before);
            indexes_sound(index);
            /* Also where most links had led to vectors that are gone. */
            ck_assert_uint_ge(found_of(index, x, first), first - first / 20);
        }
        if (status == SL_OK) {
            ck_assert_uint_eq(sl_index_size(index), first + n);
        } else {
            sl_add_params params;
            sl_add_params_init(&params);
            params.threads = threads;
            ck_ok(sl_index_add(index, x + first * DIM, SL_F32, n, 0, NULL, &params));
        }
    }
    ck_assert_uint_ge(cancelled, 2);
    ck_assert_uint_eq(sl_index_size(index), N);
    indexes_sound(index);
    ck_assert_uint_ge(found_of(index, x, N), N - N / 50);
    sl_index_free(index);
    free(x);
}
END_TEST

START_TEST(searches_and_checks_can_be_cancelled) {
    enum { N = 2000 };
    float *x = clusters(N);
    sl_index *index = index_of(x, N);
    uint64_t *ids = malloc(N * K * sizeof *ids);
    ck_assert_ptr_nonnull(ids);
    sl_search_params params;
    sl_search_params_init(&params);
    stop first = {0};
    params.progress = stop_after;
    params.progress_ctx = &first;
    ck_fails(sl_index_search(index, x, SL_F32, N, 0, K, &params, ids, NULL, NULL), SL_ECANCELED, "progress callback");
    ck_assert_uint_eq(first.total, N);
    sl_check_params check;
    sl_check_params_init(&check);
    stop second = {0};
    check.progress = stop_after;
    check.progress_ctx = &second;
    sl_check_report report = {.struct_size = sizeof report};
    ck_fails(sl_index_check(index, &check, &report), SL_ECANCELED, "progress callback");
    sl_index_free(index);
    free(ids);
    free(x);
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("index");
    tcase_add_test(tests, few_vectors);
    tcase_add_test(tests, impossible_searches);
    tcase_add_test(tests, k_above_ef);
    tcase_add_test(tests, bad_rows_are_named);
    tcase_add_test(tests, zero_vectors);
    tcase_add_test(tests, rows_of_the_wrong_shape_or_type);
    tcase_add_test(tests, strides);
    tcase_add_test(tests, reserved_room_is_used);
    tcase_add_test(tests, stats_are_those_of_the_file);
    tcase_add_test(tests, small_indexes_are_small);
    tcase_add_test(tests, one_thread_builds_the_same_twice);
    tcase_add_test(tests, one_by_one);
    tcase_add_loop_test(tests, grows_by_many_small_adds, 0, 6);
    tcase_add_loop_test(tests, cancelled_adds_leave_no_trace, 0, 2);
    tcase_add_test(tests, searches_and_checks_can_be_cancelled);
    return check_main("index", &tests, 1);
}
