/* Models with coded embedding tables: they predict like their decoded weights, keep no floats, survive files, and no
 * bad file does harm. */
#include "base/random.h"
#include "ranker/quantise/quantise_tables.h"
#include "tests/support/check_main.h"
#include "tests/support/faults.h"
#include "tests/support/hostile.h"
#include "tests/support/indexes.h"
#include "tests/support/planted.h"
#include "tests/support/scratch.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 150, MOST_TABLES = 16, OUTPUTS = 3 };
#define KIND "\"column\": \"kind\", \"loss\": \"multiclass\""
#define DEEP "\"hidden\": [8], \"embedding_init\": 0.5"

static planted rows;
static scratch place;
static sl_ranker *model;

static sl_ranker *make(const char *deep, const sl_allocator *allocator) {
    char spec[PLANTED_SPEC];
    planted_spec(spec, KIND, "", deep, "\"epochs\": 1", "");
    memcpy(strstr(spec, "5000"), "  50", 4);
    sl_train_params params;
    sl_train_params_init(&params);
    params.allocator = allocator;
    sl_ranker *ranker;
    ck_ok(sl_ranker_create(spec, &rows.source, &params, &ranker));
    return ranker;
}

static void set_up(void) {
    planted_make(&rows, ROWS, 1);
    scratch_open(&place);
    model = make(DEEP, NULL);
}

static void tear_down(void) {
    sl_ranker_free(model);
    planted_free(&rows);
    scratch_close(&place);
}

static sl_ranker_info info_of(const sl_ranker *ranker) {
    sl_ranker_info info = {.struct_size = sizeof info};
    ck_ok(sl_ranker_get_info(ranker, &info));
    return info;
}

static sl_embedding_info embedding_of(const sl_ranker *ranker, size_t i) {
    sl_embedding_info info = {.struct_size = sizeof info};
    ck_ok(sl_ranker_get_embedding(ranker, i, &info));
    return info;
}

/* Table types: 0: all I8, 1: all I4, 2: alternating, with floats. */
enum { MIXES = 3 };
static void mix_types(int mix, sl_table_type types[MOST_TABLES]) {
    for (size_t t = 0; t < MOST_TABLES; t++)
        types[t] = mix == 0 ? SL_TABLE_I8 : mix == 1 ? SL_TABLE_I4 : (sl_table_type)(t % 3);
}

static sl_ranker *coded_model(int mix) {
    sl_table_type types[MOST_TABLES];
    sl_ranker *ranker;
    mix_types(mix, types);
    ck_assert_uint_le(info_of(model).embeddings, MOST_TABLES);
    ck_assert_uint_ge(info_of(model).embeddings, 3);
    ck_ok(sl_ranker_with_tables(model, types, &ranker));
    return ranker;
}

static void predict(const sl_ranker *ranker, float scores[OUTPUTS * ROWS]) {
    sl_predictor *predictor;
    ck_ok(sl_predictor_create(ranker, NULL, &predictor));
    ck_ok(sl_predictor_predict(predictor, &rows.table, scores));
    sl_predictor_free(predictor);
}

/* The model with the other model's embeddings, as floats. */
static sl_ranker *with_embeddings_of(const sl_ranker *other) {
    sl_tensor tensors[MOST_TABLES];
    size_t count = 0;
    for (size_t i = 0; i < sl_ranker_tensor_count(other); i++) {
        sl_tensor tensor;
        ck_ok(sl_ranker_get_tensor(other, i, &tensor));
        if (strncmp(tensor.name, "embedding.", 10) == 0) tensors[count++] = tensor;
    }
    sl_ranker *ranker;
    ck_ok(sl_ranker_with_tensors(model, tensors, count, &ranker));
    return ranker;
}

START_TEST(codes_predict_as_their_weights) {
    float scores[OUTPUTS * ROWS], wanted[OUTPUTS * ROWS], original[OUTPUTS * ROWS];
    sl_ranker *coded = coded_model(_i), *floats = with_embeddings_of(coded);
    predict(coded, scores);
    predict(floats, wanted);
    predict(model, original);
    float apart = 0;
    for (size_t i = 0; i < OUTPUTS * ROWS; i++) {
        ck_assert_float_eq_tol(scores[i], wanted[i], 1e-5f);
        ck_assert_float_eq_tol(scores[i], original[i], _i == 0 ? 0.01f : 0.1f);
        apart = fmaxf(apart, fabsf(scores[i] - original[i]));
    }
    ck_assert_float_gt(apart, 0);
    sl_ranker_free(floats);
    sl_ranker_free(coded);
}
END_TEST

/* The info shows the types, and memory is the size of the codes: the floats are gone. */
START_TEST(floats_are_not_kept) {
    sl_table_type types[MOST_TABLES];
    sl_ranker *coded = coded_model(_i);
    size_t floats = 0, codes = 0;
    mix_types(_i, types);
    for (size_t t = 0; t < info_of(coded).embeddings; t++) {
        sl_embedding_info before = embedding_of(model, t), after = embedding_of(coded, t);
        ck_assert_int_eq(before.type, SL_TABLE_F32);
        ck_assert_int_eq(after.type, types[t]);
        ck_assert_str_eq(before.tensor, after.tensor);
        ck_assert(before.size == after.size && before.dim == after.dim);
        ck_assert_uint_eq(before.bytes, before.size * before.dim * sizeof(float));
        size_t row = types[t] == SL_TABLE_F32  ? after.dim * sizeof(float)
                     : types[t] == SL_TABLE_I8 ? after.dim + 4
                                               : (after.dim + 1) / 2 + 2;
        ck_assert_uint_eq(after.bytes, after.size * row + (types[t] == SL_TABLE_F32 ? 0 : 16));
        ck_assert((coded->weights.embeddings[t] != NULL) == (types[t] == SL_TABLE_F32));
        floats += before.bytes;
        codes += after.bytes;
    }
    ck_assert_uint_lt(codes, floats);
    size_t saved = info_of(model).bytes - info_of(coded).bytes;
    /* A table of floats begins a cache line. */
    ck_assert_uint_ge(saved, floats - codes);
    ck_assert_uint_le(saved, floats - codes + MOST_TABLES * (SL_CACHE_LINE + 16));
    ck_assert_uint_eq(info_of(model).parameters, info_of(coded).parameters);
    sl_ranker_free(coded);
}
END_TEST

/* The tensor of a coded table is its decoded rows, computed once. */
START_TEST(tensors_are_decoded) {
    sl_ranker *coded = coded_model(1);
    size_t before = info_of(coded).bytes, more = 0;
    for (size_t i = 0; i < sl_ranker_tensor_count(coded); i++) {
        sl_tensor tensor, again, original;
        ck_ok(sl_ranker_get_tensor(model, i, &original));
        ck_ok(sl_ranker_get_tensor(coded, i, &tensor));
        ck_ok(sl_ranker_get_tensor(coded, i, &again));
        ck_assert_ptr_eq(tensor.data, again.data);
        ck_assert_str_eq(tensor.name, original.name);
        ck_assert(tensor.rows == original.rows && tensor.columns == original.columns);
        int is_coded = strncmp(tensor.name, "embedding.", 10) == 0;
        if (is_coded) more += tensor.rows * tensor.columns * sizeof(float);
        for (size_t j = 0; j < tensor.rows * tensor.columns; j++)
            ck_assert_float_le(fabsf(tensor.data[j] - original.data[j]), is_coded ? 0.25f : 0.0f);
    }
    ck_assert_uint_eq(info_of(coded).bytes, before + more);
    sl_ranker_free(coded);
}
END_TEST

/* Returns the first coded tensor's data. */
static void *ask(void *ranker) {
    sl_tensor tensor;
    void *first = NULL;
    for (size_t i = 2; i < 2 + info_of(ranker).embeddings; i++) {
        if (sl_ranker_get_tensor(ranker, i, &tensor) != SL_OK) return NULL;
        if (!first) first = (void *)(uintptr_t)tensor.data;
    }
    return first;
}

START_TEST(threads_ask_for_one_tensor) {
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    sl_ranker *coded = coded_model(0);
    for (size_t i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, ask, coded), 0);
    sl_tensor tensor;
    ck_ok(sl_ranker_get_tensor(coded, 2, &tensor));
    for (size_t i = 0; i < THREADS; i++) {
        void *result;
        ck_assert_int_eq(pthread_join(threads[i], &result), 0);
        ck_assert_ptr_eq(result, tensor.data);
    }
    sl_ranker_free(coded);
}
END_TEST

START_TEST(bad_calls_are_refused) {
    sl_table_type types[MOST_TABLES];
    sl_ranker *none, *coded = coded_model(0), *plain = make(NULL, NULL), *same;
    mix_types(1, types);
    ck_fails(sl_ranker_with_tables(NULL, types, &none), SL_EINVAL, "from is NULL");
    ck_assert_ptr_null(none);
    ck_fails(sl_ranker_with_tables(model, types, NULL), SL_EINVAL, "out is NULL");
    ck_fails(sl_ranker_with_tables(model, NULL, &none), SL_EINVAL, "types is NULL");
    ck_fails(sl_ranker_with_tables(coded, types, &none), SL_EINVAL, "in codes already");
    types[1] = (sl_table_type)3;
    ck_fails(sl_ranker_with_tables(model, types, &none), SL_EINVAL, embedding_of(model, 1).tensor);
    sl_embedding_info info = {.struct_size = sizeof info};
    ck_fails(sl_ranker_get_embedding(model, info_of(model).embeddings, &info), SL_EINVAL, "numbered from 0");
    ck_fails(sl_ranker_get_embedding(NULL, 0, &info), SL_EINVAL, "NULL");
    /* A model without tables has nothing to code. */
    ck_ok(sl_ranker_with_tables(plain, NULL, &same));
    sl_ranker_free(same);
    sl_ranker_free(plain);
    sl_ranker_free(coded);
}
END_TEST

/* Weights so large that a decoded one would overflow. */
START_TEST(large_weights_are_refused) {
    sl_table_type types[MOST_TABLES];
    sl_ranker *large, *none;
    sl_embedding_info info = embedding_of(model, 1);
    float *weights = calloc(info.size * info.dim, sizeof *weights);
    weights[0] = 3e38f;
    weights[1] = -3e38f;
    ck_ok(sl_ranker_with_tensors(model, &(sl_tensor){info.tensor, weights, info.size, info.dim}, 1, &large));
    mix_types(0, types);
    ck_fails(sl_ranker_with_tables(large, types, &none), SL_EVALUE, info.tensor);
    ck_assert_ptr_null(none);
    sl_ranker_free(large);
    free(weights);
}
END_TEST

/* A copy keeps its codes. A table that gets other weights becomes floats, and all others stay. */
START_TEST(other_weights_replace_codes) {
    float scores[OUTPUTS * ROWS], wanted[OUTPUTS * ROWS];
    sl_tensor given[3];
    sl_ranker *coded = coded_model(1), *copy, *changed;
    ck_ok(sl_ranker_with_tensors(coded, NULL, 0, &copy));
    predict(coded, wanted);
    predict(copy, scores);
    ck_assert_mem_eq(scores, wanted, sizeof scores);
    ck_assert_uint_eq(info_of(copy).bytes, info_of(coded).bytes);
    /* The new weights: a table's own decoded ones, the first and the last tensor. */
    const size_t last = sl_ranker_tensor_count(coded) - 1;
    ck_ok(sl_ranker_get_tensor(coded, 3, &given[0]));
    ck_assert_str_eq(given[0].name, embedding_of(coded, 1).tensor);
    ck_ok(sl_ranker_get_tensor(coded, 0, &given[1]));
    ck_ok(sl_ranker_get_tensor(coded, last, &given[2]));
    ck_ok(sl_ranker_with_tensors(coded, given, 3, &changed));
    for (size_t t = 0; t < info_of(coded).embeddings; t++)
        ck_assert_int_eq(embedding_of(changed, t).type, t == 1 ? SL_TABLE_F32 : SL_TABLE_I4);
    predict(changed, scores);
    for (size_t i = 0; i < OUTPUTS * ROWS; i++)
        ck_assert_float_eq_tol(scores[i], wanted[i], 1e-5f);
    for (size_t i = 0; i <= last; i++) {
        sl_tensor before, after;
        ck_ok(sl_ranker_get_tensor(coded, i, &before));
        ck_ok(sl_ranker_get_tensor(changed, i, &after));
        ck_assert_mem_eq(before.data, after.data, before.rows * before.columns * sizeof(float));
    }
    sl_ranker_free(changed);
    sl_ranker_free(copy);
    sl_ranker_free(coded);
}
END_TEST

/* All tables as floats give the same model again. */
START_TEST(floats_are_the_model) {
    float scores[OUTPUTS * ROWS], wanted[OUTPUTS * ROWS];
    sl_table_type types[MOST_TABLES] = {0};
    sl_ranker *same;
    ck_ok(sl_ranker_with_tables(model, types, &same));
    ck_assert_ptr_null(same->weights.coded.codes);
    predict(model, wanted);
    predict(same, scores);
    ck_assert_mem_eq(scores, wanted, sizeof scores);
    sl_ranker_free(same);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Files
 * ------------------------------------------------------------------------------------------------------------- */

START_TEST(codes_come_back_from_a_file) {
    float before[OUTPUTS * ROWS], after[OUTPUTS * ROWS];
    char second[SCRATCH_PATH];
    size_t size, again, floats;
    sl_ranker_check_report report = {.struct_size = sizeof report};
    sl_ranker *coded = coded_model(_i), *opened;
    scratch_name(&place, "second", second);
    ck_ok(sl_ranker_save(coded, place.path, NULL));
    ck_ok(sl_ranker_open(place.path, NULL, &opened));
    predict(coded, before);
    predict(opened, after);
    ck_assert_mem_eq(before, after, sizeof before);
    for (size_t t = 0; t < info_of(coded).embeddings; t++)
        ck_assert_int_eq(embedding_of(coded, t).type, embedding_of(opened, t).type);
    ck_assert_uint_eq(info_of(coded).bytes, info_of(opened).bytes);
    ck_ok(sl_ranker_save(opened, second, NULL));
    unsigned char *one = file_read(place.path, &size), *other = file_read(second, &again);
    ck_assert_uint_eq(size, again);
    ck_assert_mem_eq(one, other, size);
    ck_ok(sl_ranker_check(place.path, NULL, &report));
    ck_assert_uint_eq(report.sections_checked, _i == 2 ? 7 : 6);
    ck_assert_uint_eq(report.bytes_checked, size);
    free(one);
    free(other);
    ck_ok(sl_ranker_save(model, second, NULL));
    free(file_read(second, &floats));
    ck_assert_uint_lt(floats, size + 3 * SL_SECTION_ALIGN);
    sl_ranker_free(opened);
    sl_ranker_free(coded);
}
END_TEST

static const sl_file_section *section_of(const unsigned char *bytes, uint32_t kind) {
    const sl_file_header *header = (const sl_file_header *)(const void *)bytes;
    for (uint32_t i = 0; i < header->section_count; i++)
        if (header->sections[i].kind == kind) return &header->sections[i];
    ck_abort_msg("section %u is missing", kind);
    return NULL;
}

static sl_status open_and_use(void) {
    fault_allocator faults;
    fault_allocator_init(&faults, 0);
    sl_ranker_open_params params;
    sl_ranker_open_params_init(&params);
    params.allocator = &faults.allocator;
    sl_ranker *ranker;
    sl_status status = sl_ranker_open(place.path, &params, &ranker);
    if (ranker) {
        static float scores[OUTPUTS * ROWS];
        predict(ranker, scores);
        for (size_t i = 0; i < OUTPUTS * ROWS; i++)
            ck_assert(isfinite(scores[i]));
    } else {
        ck_assert_msg(strstr(sl_last_error(), place.path), "%s", sl_last_error());
    }
    sl_ranker_free(ranker);
    ck_assert_uint_eq(faults.live_blocks, 0);
    return status;
}

/* Invalid bytes in a record, with every checksum corrected. */
START_TEST(bad_records_are_refused) {
    static const struct {
        size_t at; /* in the record of table 1 */
        uint32_t word;
        const char *fault;
    } lies[] = {{0, 3, "type"},
                {0, SL_TABLE_F32, "without codes"},
                {0, SL_TABLE_I8, "bytes"},
                {4, 0x7fc00000, "not finite"},
                {4, 0x7f800000, "not finite"},
                {4, 0xbf800000, "negative"},
                {4, 0x7f000000, "too large"},
                {8, 0xff800000, "not finite"},
                {12, 0x7fc00001, "not finite"},
                {12, 0x80000001, "negative"},
                {12, 0x7f000000, "too large"}};
    size_t size;
    sl_ranker *coded = coded_model(1);
    ck_ok(sl_ranker_save(coded, place.path, NULL));
    unsigned char *bytes = file_read(place.path, &size), *changed = malloc(size);
    const char *feature = embedding_of(coded, 1).tensor + strlen("embedding.");
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        memcpy(changed, bytes, size);
        memcpy(changed + section_of(bytes, SL_SECTION_TABLE_CODES)->offset + 16 + lies[i].at, &lies[i].word, 4);
        hostile_seal_as(changed, size, &sl_ranker_file);
        file_write(place.path, changed, size);
        ck_assert_int_eq(open_and_use(), SL_ECORRUPT);
        ck_assert_msg(strstr(sl_last_error(), lies[i].fault), "%zu: %s", i, sl_last_error());
        if (strcmp(lies[i].fault, "bytes") != 0) ck_assert_ptr_nonnull(strstr(sl_last_error(), feature));
    }
    free(bytes);
    free(changed);
    sl_ranker_free(coded);
}
END_TEST

/* Rows may hold anything: they decode to finite numbers. Sections may be short or missing. */
START_TEST(sealed_lies_do_no_harm) {
    size_t size, opened = 0, refused = 0;
    sl_ranker *coded = coded_model(2);
    ck_ok(sl_ranker_save(coded, place.path, NULL));
    unsigned char *bytes = file_read(place.path, &size), *changed = malloc(size);
    for (uint64_t round = 0; round < 600; round++) {
        uint32_t kind = round % 2 ? SL_SECTION_TABLE_CODES : SL_SECTION_TABLE_ROWS;
        memcpy(changed, bytes, size);
        sl_file_header *header = (sl_file_header *)(void *)changed;
        size_t number = (size_t)(section_of(changed, kind) - header->sections);
        sl_file_section *section = &header->sections[number];
        for (uint64_t i = 0; i < 1 + sl_random_at(round, 1) % 3; i++)
            changed[section->offset + sl_random_at(round, 2 + 2 * i) % section->size] =
                (unsigned char)sl_random_at(round, 3 + 2 * i);
        if (round % 5 == 0) section->size -= sl_random_at(round, 21) % section->size;
        if (round % 7 == 0) section->kind = 63, section->flags = 0;
        hostile_seal_as(changed, size, &sl_ranker_file);
        file_write(place.path, changed, size);
        sl_status status = open_and_use();
        ck_assert_msg(status == SL_OK || status == SL_ECORRUPT, "round %d: %s", (int)round, sl_last_error());
        *(status == SL_OK ? &opened : &refused) += 1;
    }
    ck_assert_uint_gt(refused, 100);
    ck_assert_uint_gt(opened, 100);
    free(bytes);
    free(changed);
    sl_ranker_free(coded);
}
END_TEST

START_TEST(memory_may_fail_anywhere) {
    fault_allocator faults;
    fault_allocator_init(&faults, 0);
    sl_table_type types[MOST_TABLES];
    sl_ranker *ranker = make(DEEP, &faults.allocator);
    sl_ranker_open_params params;
    sl_ranker_open_params_init(&params);
    params.allocator = &faults.allocator;
    mix_types(2, types);
    size_t live = faults.live_blocks, fail_at = 1;
    for (sl_status status = SL_ENOMEM; status != SL_OK; fail_at++) {
        sl_ranker *coded = NULL, *opened = NULL, *copy = NULL;
        sl_tensor tensor;
        faults.calls = 0;
        faults.fail_at = fail_at;
        status = sl_ranker_with_tables(ranker, types, &coded);
        if (status == SL_OK) status = sl_ranker_save(coded, place.path, NULL);
        if (status == SL_OK) status = sl_ranker_open(place.path, &params, &opened);
        if (status == SL_OK) status = sl_ranker_with_tensors(opened, NULL, 0, &copy);
        for (size_t i = 0; status == SL_OK && i < sl_ranker_tensor_count(opened); i++)
            status = sl_ranker_get_tensor(opened, i, &tensor);
        ck_assert_msg(status == SL_OK || status == SL_ENOMEM, "allocation %zu: %s", fail_at, sl_last_error());
        sl_ranker_free(coded);
        sl_ranker_free(opened);
        sl_ranker_free(copy);
        ck_assert_msg(faults.live_blocks == live, "allocation %zu: blocks are lost", fail_at);
    }
    ck_assert_uint_gt(fail_at, 40);
    sl_ranker_free(ranker);
    ck_assert_uint_eq(faults.live_blocks, 0);
}
END_TEST

int main(void) {
    TCase *models = tcase_create("models");
    tcase_add_loop_test(models, codes_predict_as_their_weights, 0, MIXES);
    tcase_add_loop_test(models, floats_are_not_kept, 0, MIXES);
    tcase_add_test(models, tensors_are_decoded);
    tcase_add_test(models, bad_calls_are_refused);
    tcase_add_test(models, large_weights_are_refused);
    tcase_add_test(models, other_weights_replace_codes);
    tcase_add_test(models, floats_are_the_model);
    TCase *threads = tcase_create("threads");
    tcase_add_test(threads, threads_ask_for_one_tensor);
    TCase *files = tcase_create("files");
    tcase_add_loop_test(files, codes_come_back_from_a_file, 0, MIXES);
    tcase_add_test(files, bad_records_are_refused);
    tcase_add_test(files, sealed_lies_do_no_harm);
    tcase_add_test(files, memory_may_fail_anywhere);
    tcase_add_checked_fixture(models, set_up, tear_down);
    tcase_add_checked_fixture(threads, set_up, tear_down);
    tcase_add_checked_fixture(files, set_up, tear_down);
    return check_main("quantise tables", (TCase *[]){models, threads, files}, 3);
}
