/* Indexes of clipped codes: what is refused, what a file keeps, and that later adds do the same. */
#include "storage/format.h"
#include "tests/support/check_main.h"
#include "tests/support/clusters.h"
#include "tests/support/indexes.h"
#include "tests/support/scratch.h"

#include <stdlib.h>
#include <string.h>

enum { N = 500, MORE = 200, DIM = 24, LONG_DIM = 150, K = 5 };

static scratch place;

static void set_up(void) {
    scratch_open(&place);
}

static void tear_down(void) {
    scratch_close(&place);
}

static const struct {
    sl_dtype dtype;
    sl_codes codes;
    size_t dim;
    sl_clip clip;
    double share;
    sl_clip kept;
} kinds[] = {
    {SL_F32, SL_CODES_I8, DIM, SL_CLIP_MSE, 0, SL_CLIP_MSE},
    {SL_F32, SL_CODES_I8, DIM, SL_CLIP_QUANTILE, 0.1, SL_CLIP_QUANTILE},
    {SL_F32, SL_CODES_I16, DIM, SL_CLIP_QUANTILE, 0.1, SL_CLIP_QUANTILE},
    {SL_F32, SL_CODES_I8, DIM, SL_CLIP_MINMAX, 0, SL_CLIP_AUTO},
    {SL_F32, SL_CODES_I4, DIM, SL_CLIP_MSE, 0, SL_CLIP_AUTO},
    {SL_F32, SL_CODES_I4, DIM, SL_CLIP_MINMAX, 0, SL_CLIP_MINMAX},
    {SL_F32, SL_CODES_I4, DIM, SL_CLIP_QUANTILE, 0.1, SL_CLIP_QUANTILE},
    {SL_F32, SL_CODES_I4, LONG_DIM, SL_CLIP_QUANTILE, 0.1, SL_CLIP_QUANTILE},
    {SL_U8, SL_CODES_I4, DIM, SL_CLIP_QUANTILE, 0.1, SL_CLIP_QUANTILE},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static sl_index_params params_of(int kind) {
    sl_index_params params;
    indexes_params(&params, kinds[kind].dim, SL_METRIC_L2);
    params.dtype = kinds[kind].dtype;
    params.codes = kinds[kind].codes;
    params.clip = kinds[kind].clip;
    params.clip_share = kinds[kind].share;
    return params;
}

/* N + MORE vectors of the kind's type. */
static void *vectors_of(int kind) {
    size_t elements = (size_t)(N + MORE) * kinds[kind].dim;
    float *floats = clusters_make(N + MORE, kinds[kind].dim, 0.3, 5);
    void *vectors = clusters_as(kinds[kind].dtype, floats, elements);
    free(floats);
    return vectors;
}

static const void *later(int kind, const void *vectors) {
    size_t element = kinds[kind].dtype == SL_U8 ? 1 : sizeof(float);
    return (const char *)vectors + N * kinds[kind].dim * element;
}

static void expect_clip(const sl_index *index, int kind) {
    const sl_index_stats stats = indexes_stats(index);
    ck_assert_int_eq((int)stats.clip, (int)kinds[kind].kept);
    ck_assert_double_eq(stats.clip_share, kinds[kind].kept == SL_CLIP_QUANTILE ? kinds[kind].share : 0);
}

/* Added at once, added after the file was opened into memory, and added in the file: the same bytes. */
START_TEST(later_adds_clip_the_same) {
    char other[SCRATCH_PATH];
    size_t size, other_size;
    sl_index_params params = params_of(_i);
    void *vectors = vectors_of(_i);
    scratch_name(&place, "other.sl", other);
    sl_index *index = indexes_make(&params, vectors, params.dtype, N, NULL, 1);
    ck_ok(indexes_save(index, other));
    ck_ok(indexes_add(index, later(_i, vectors), params.dtype, MORE, NULL));
    ck_ok(indexes_save(index, place.path));
    expect_clip(index, _i);
    sl_index_stats stats = indexes_stats(index);
    sl_index_free(index);

    index = indexes_open(other, SL_PLACE_DRAM);
    ck_ok(indexes_add(index, later(_i, vectors), params.dtype, MORE, NULL));
    sl_index_stats again = indexes_stats(index);
    indexes_equal(&stats, &again);
    ck_ok(indexes_save(index, other));
    sl_index_free(index);
    unsigned char *bytes = file_read(place.path, &size), *others = file_read(other, &other_size);
    ck_assert_uint_eq(size, other_size);
    ck_assert_mem_eq(bytes, others, size);
    free(bytes);
    free(others);
    free(vectors);
}
END_TEST

START_TEST(files_in_place_clip_the_same) {
    uint64_t found[K], wanted[K];
    float scores[K], wanted_scores[K];
    sl_index_params params = params_of(_i);
    sl_save_params save;
    sl_open_params open;
    void *vectors = vectors_of(_i);
    sl_index *index = indexes_make(&params, vectors, params.dtype, N, NULL, 1), *file;
    indexes_save_params(&save);
    save.room = N + MORE;
    ck_ok(sl_index_save(index, place.path, &save));
    sl_open_params_init(&open);
    open.writable = 1;
    ck_ok(sl_index_open(place.path, &open, &file));
    ck_ok(indexes_add(file, later(_i, vectors), params.dtype, MORE, NULL));
    ck_ok(indexes_add(index, later(_i, vectors), params.dtype, MORE, NULL));
    ck_assert_double_eq(indexes_stats(file).quant_error_mean, indexes_stats(index).quant_error_mean);
    for (size_t i = 0; i < MORE; i += 17) {
        size_t element = params.dtype == SL_U8 ? 1 : sizeof(float);
        vector_rows query = {(const char *)later(_i, vectors) + i * params.dim * element, params.dtype, 1};
        indexes_search(file, query, K, 100, found, scores);
        indexes_search(index, query, K, 100, wanted, wanted_scores);
        ck_assert_mem_eq(found, wanted, sizeof found);
        ck_assert_mem_eq(scores, wanted_scores, sizeof scores);
        ck_assert_uint_eq(found[0], N + i);
    }
    sl_index_free(file);
    sl_index_free(index);
    free(vectors);
}
END_TEST

/* A merged or rebuilt index clips later vectors as its parts would. */
START_TEST(merges_and_rebuilds_clip_the_same) {
    sl_index_params params = params_of(_i);
    void *vectors = vectors_of(_i);
    sl_index *index = indexes_make(&params, vectors, params.dtype, N, NULL, 1), *merged, *rebuilt;
    ck_ok(indexes_save(index, place.path));
    ck_ok(sl_index_merge(&index, 1, NULL, &merged));
    ck_ok(sl_index_rebuild(place.path, NULL, NULL));
    ck_ok(sl_index_open(place.path, NULL, &rebuilt));
    expect_clip(index, _i);
    expect_clip(merged, _i);
    expect_clip(rebuilt, _i);
    ck_ok(indexes_add(index, later(_i, vectors), params.dtype, MORE, NULL));
    ck_ok(indexes_add(merged, later(_i, vectors), params.dtype, MORE, NULL));
    ck_assert_double_eq_tol(indexes_stats(merged).quant_error_mean, indexes_stats(index).quant_error_mean, 1e-9);
    sl_index_free(rebuilt);
    sl_index_free(merged);
    sl_index_free(index);
    free(vectors);
}
END_TEST

/* A file of the codes' own clip has zeros where the fields are, as files from before them have. */
START_TEST(own_clips_leave_no_trace) {
    sl_index_params params = params_of(_i);
    void *vectors = vectors_of(_i);
    size_t size;
    sl_index *index = indexes_make(&params, vectors, params.dtype, N, NULL, 1);
    ck_ok(indexes_save(index, place.path));
    unsigned char *bytes = file_read(place.path, &size);
    const unsigned char zeros[12] = {0};
    int own = kinds[_i].kept == SL_CLIP_AUTO;
    ck_assert_int_eq(bytes[offsetof(sl_file_header, clip)], (int)kinds[_i].kept);
    ck_assert_int_eq(memcmp(bytes + offsetof(sl_file_header, clip), zeros, sizeof zeros) == 0, own);
    free(bytes);
    sl_index_free(index);
    free(vectors);
}
END_TEST

START_TEST(clips_of_nothing_are_refused) {
    static const struct {
        sl_dtype dtype;
        sl_codes codes;
        sl_clip clip;
        double share;
        const char *says;
    } wrong[] = {{SL_F32, SL_CODES_F32, SL_CLIP_MSE, 0, "use clip auto"},
                 {SL_U8, SL_CODES_I8, SL_CLIP_MINMAX, 0, "use clip auto"},
                 {SL_F32, SL_CODES_I8, SL_CLIP_QUANTILE, 0.6, "0 to 0.5"},
                 {SL_F32, SL_CODES_I4, (sl_clip)4, 0, "none of sl_clip"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        sl_index_params params;
        sl_index *index;
        indexes_params(&params, DIM, SL_METRIC_COSINE);
        params.dtype = wrong[i].dtype;
        params.codes = wrong[i].codes;
        params.clip = wrong[i].clip;
        params.clip_share = wrong[i].share;
        ck_fails(sl_index_create(&params, &index), SL_EINVAL, wrong[i].says);
        ck_assert_ptr_null(index);
    }
}
END_TEST

START_TEST(clips_have_names) {
    static const char *const names[] = {"auto", "minmax", "mse", "quantile", "?"};
    for (int i = 0; i < 5; i++)
        ck_assert_str_eq(sl_clip_name((sl_clip)i), names[i]);
    sl_index_params params;
    sl_index_params_init(&params);
    ck_assert_int_eq((int)params.clip, SL_CLIP_AUTO);
    ck_assert_double_eq(params.clip_share, 0.01);
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("clipped");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_loop_test(tests, later_adds_clip_the_same, 0, KINDS);
    tcase_add_loop_test(tests, files_in_place_clip_the_same, 0, KINDS);
    tcase_add_loop_test(tests, merges_and_rebuilds_clip_the_same, 0, KINDS);
    tcase_add_loop_test(tests, own_clips_leave_no_trace, 0, KINDS);
    tcase_add_test(tests, clips_of_nothing_are_refused);
    tcase_add_test(tests, clips_have_names);
    return check_main("clipped", &tests, 1);
}
