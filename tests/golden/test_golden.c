/* Index files that f1b9868 saved open, pass their check and give the answers that they gave to it. */
#include "tests/golden/answers.h"
#include "tests/golden/cases.h"
#include "tests/support/check_main.h"
#include "tests/support/indexes.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static scratch place;
static char path[SCRATCH_PATH];

/* A vector in any type. */
typedef union vector {
    float floats[GOLDEN_MAX_DIM];
    int16_t words[GOLDEN_MAX_DIM];
    int8_t bytes[GOLDEN_MAX_DIM];
    uint8_t whole[GOLDEN_MAX_DIM];
} vector;

/* Numbers of the cases, by whether their files can be written in place. */
static int with_room[GOLDEN_CASES], without_room[GOLDEN_CASES];

static void set_up(void) {
    scratch_open(&place);
}

static void tear_down(void) {
    scratch_close(&place);
}

/* The file of a case, with its log, in the test's folder, at `path`. */
static const golden_case *take(int number) {
    const golden_case *it = &golden_cases[number];
    char name[64], log[SCRATCH_PATH];
    snprintf(name, sizeof name, "%s.sl", it->name);
    golden_copy(&place, name, path);
    snprintf(name, sizeof name, "%s.sl.log", it->name);
    if (it->logged) golden_copy(&place, name, log);
    return it;
}

static sl_index *open_writable(void) {
    sl_open_params params;
    sl_open_params_init(&params);
    params.writable = 1;
    sl_index *index;
    ck_ok(sl_index_open(path, &params, &index));
    return index;
}

static size_t expected_size(const golden_case *it) {
    size_t size = it->n + (it->logged ? GOLDEN_LOGGED : 0);
    for (size_t i = 0; i < it->n; i++)
        size -= (size_t)golden_deleted(it, i);
    return size;
}

static void ck_near(double got, double wanted) {
    ck_assert_msg(fabs(got - wanted) <= 1e-5 * (1 + fabs(wanted)), "%.9g instead of %.9g", got, wanted);
}

static void ck_parameters(const golden_case *it, const sl_index *index) {
    sl_index_stats stats = indexes_stats(index);
    ck_assert_int_eq(stats.metric, it->metric);
    ck_assert_int_eq(stats.dtype, it->dtype);
    ck_assert_int_eq(stats.codes, it->codes);
    ck_assert_int_eq(stats.refine, it->refine);
    ck_assert_uint_eq(stats.dim, it->dim);
    ck_assert_uint_eq(stats.n, expected_size(it));
    ck_assert_uint_eq(stats.tuned, (size_t)it->tuned);
    ck_assert_int_eq(stats.partitions > 0, it->probes > 0);
    if (stats.place != SL_PLACE_MAP) return;
    ck_assert_int_eq(stats.layout, it->layout);
    ck_assert_uint_eq(stats.room, it->room);
}

static void ck_answers(const golden_case *it, const sl_index *index) {
    sl_search_params params;
    golden_search_params(it, &params);
    for (size_t q = 0; q < GOLDEN_QUERIES; q++) {
        vector query;
        uint64_t ids[GOLDEN_K];
        float scores[GOLDEN_K];
        char key[64], *at;
        golden_query(it, q, &query);
        ck_ok(sl_index_search(index, &query, it->dtype, 1, 0, GOLDEN_K, &params, ids, scores, NULL));
        snprintf(key, sizeof key, "%s query %zu", it->name, q);
        const char *answer = golden_answer(key);
        for (size_t i = 0; i < GOLDEN_K; i++) {
            ck_assert_uint_eq(ids[i], strtoull(answer, &at, 10));
            ck_assert_int_eq(*at, '=');
            ck_near((double)scores[i], strtod(at + 1, &at));
            answer = at;
        }
    }
}

static double element(const golden_case *it, const vector *of, size_t j) {
    switch (it->dtype) {
    case SL_I8:
        return of->bytes[j];
    case SL_U8:
        return of->whole[j];
    case SL_I16:
        return of->words[j];
    default:
        return (double)of->floats[j];
    }
}

static void ck_vector(const golden_case *it, sl_index *index) {
    vector got;
    char key[64], *at;
    uint64_t id = golden_id(it, 20);
    ck_ok(sl_index_get(index, &id, 1, it->dtype, &got));
    snprintf(key, sizeof key, "%s vector %llu", it->name, (unsigned long long)id);
    const char *answer = golden_answer(key);
    for (size_t j = 0; j < it->dim; j++) {
        ck_near(element(it, &got, j), strtod(answer, &at));
        answer = at;
    }
}

static void ck_tuned(const golden_case *it, const sl_index *index) {
    char key[64], *at;
    if (!it->tuned) return;
    sl_tuned tuned = indexes_tuned(index, 0);
    const double got[] = {(double)tuned.k, (double)tuned.ef, (double)tuned.rerank,
                          (double)tuned.n, tuned.recall,     tuned.evaluations};
    snprintf(key, sizeof key, "%s tuned", it->name);
    const char *answer = golden_answer(key);
    for (size_t i = 0; i < sizeof got / sizeof *got; i++) {
        ck_near(got[i], strtod(answer, &at));
        answer = at;
    }
}

/* A processor without scans walks, and may find others. */
static int scans(const sl_index *index) {
    return strcmp(indexes_stats(index).isa, "scalar") != 0;
}

START_TEST(opens_and_answers) {
    const golden_case *it = take(_i);
    for (int where = SL_PLACE_DRAM; where <= SL_PLACE_MAP; where++) {
        sl_index *index = indexes_open(path, (sl_place)where);
        ck_parameters(it, index);
        indexes_sound(index);
        if (!it->probes || scans(index)) ck_answers(it, index);
        ck_vector(it, index);
        ck_tuned(it, index);
        sl_index_free(index);
    }
}
END_TEST

/* Data that was read is written as it was: no field moved, and none was left out. */
START_TEST(saved_again_it_is_the_same_file) {
    const golden_case *it = take(without_room[_i]);
    size_t size, size_again;
    unsigned char *before = file_read(path, &size);
    sl_index *index = indexes_open(path, SL_PLACE_DRAM);
    sl_save_params params;
    sl_save_params_init(&params);
    params.layout = it->layout;
    ck_ok(sl_index_save(index, path, &params));
    sl_index_free(index);
    unsigned char *after = file_read(path, &size_again);
    ck_assert_uint_eq(size_again, size);
    for (size_t i = 0; i < size; i++)
        ck_assert_msg(after[i] == before[i], "%s: byte %zu differs", it->name, i);
    free(before);
    free(after);
}
END_TEST

/* A file with room takes a vector. The next process to open the file finds that vector. */
START_TEST(takes_another_vector) {
    const golden_case *it = take(with_room[_i]);
    size_t next = it->n + (it->logged ? GOLDEN_LOGGED : 0);
    uint64_t id = golden_id(it, next), found;
    vector added;
    golden_vector(it, next, &added);
    sl_index *index = open_writable();
    ck_assert_uint_eq(sl_index_size(index), expected_size(it));
    ck_answers(it, index);
    ck_ok(indexes_add(index, &added, it->dtype, 1, it->id_width ? &id : NULL));
    ck_ok(sl_index_sync(index));
    sl_index_free(index);
    index = indexes_open(path, SL_PLACE_MAP);
    ck_assert_uint_eq(sl_index_size(index), expected_size(it) + 1);
    indexes_sound(index);
    if (it->metric != SL_METRIC_IP) {
        indexes_search(index, (vector_rows){&added, it->dtype, 1}, 1, GOLDEN_EF, &found, NULL);
        ck_assert_uint_eq(found, id);
    }
    ck_ok(sl_index_get(index, &id, 1, it->dtype, &added));
    sl_index_free(index);
}
END_TEST

int main(void) {
    TCase *files = tcase_create("files");
    int with = 0, without = 0;
    for (int i = 0; i < GOLDEN_CASES; i++) {
        if (golden_cases[i].room)
            with_room[with++] = i;
        else
            without_room[without++] = i;
    }
    tcase_add_checked_fixture(files, set_up, tear_down);
    tcase_add_loop_test(files, opens_and_answers, 0, GOLDEN_CASES);
    tcase_add_loop_test(files, saved_again_it_is_the_same_file, 0, without);
    tcase_add_loop_test(files, takes_another_vector, 0, with);
    return check_main("golden", &files, 1);
}
