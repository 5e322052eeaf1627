/* Model files: an opened model equals the saved one, a save is all or nothing, and no file does harm. */
#include "base/random.h"
#include "ranker/model/model.h"
#include "tests/support/check_main.h"
#include "tests/support/faults.h"
#include "tests/support/hostile.h"
#include "tests/support/planted.h"
#include "tests/support/scratch.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROWS  150u
#define KIND  "\"column\": \"kind\", \"loss\": \"multiclass\""
#define CLICK "\"column\": \"click\""
#define DEEP  "\"hidden\": [8]"

static planted rows;
static scratch place;
static sl_ranker *model;

/* It is small, so that tests can try every byte of a file: the cross has few buckets. */
static sl_ranker *make_ranker(const char *label, const char *wide, const char *deep, const sl_allocator *allocator) {
    char spec[PLANTED_SPEC];
    planted_spec(spec, label, wide, deep, "\"epochs\": 1", "");
    memcpy(strstr(spec, "5000"), "  50", 4);
    sl_train_params params;
    sl_train_params_init(&params);
    params.allocator = allocator;
    sl_ranker *ranker;
    sl_status status = sl_ranker_create(spec, &rows.source, &params, &ranker);
    ck_assert_msg(status == SL_OK, "%s", sl_last_error());
    return ranker;
}

static void set_up(void) {
    planted_make(&rows, ROWS, 1);
    scratch_open(&place);
    model = make_ranker(KIND, "", DEEP, NULL);
}

/* The same with coded layers. */
static void set_up_coded(void) {
    sl_quantize_params params;
    sl_ranker *coded;
    set_up();
    sl_quantize_params_init(&params);
    params.layers = (const sl_precision[]){SL_PRECISION_INT8, SL_PRECISION_BF16};
    ck_assert_msg(sl_ranker_quantize(model, &rows.source, &params, &coded) == SL_OK, "%s", sl_last_error());
    sl_ranker_free(model);
    model = coded;
}

static void tear_down(void) {
    sl_ranker_free(model);
    planted_free(&rows);
    scratch_close(&place);
}

static sl_status predict(const sl_ranker *ranker, float scores[3 * ROWS]) {
    sl_predictor *predictor;
    sl_status status = sl_predictor_create(ranker, NULL, &predictor);
    if (status == SL_OK) status = sl_predictor_predict(predictor, &rows.table, scores);
    sl_predictor_free(predictor);
    return status;
}

/* ---------------------------------------------------------------------------------------------------------------
 * What is saved comes back
 * ------------------------------------------------------------------------------------------------------------- */

static void check_round_trip(const sl_ranker *ranker) {
    float before[3 * ROWS] = {0}, after[3 * ROWS] = {0};
    char second[SCRATCH_PATH];
    sl_ranker *opened;
    scratch_name(&place, "second", second);
    ck_assert_int_eq(sl_ranker_save(ranker, place.path, NULL), SL_OK);
    ck_assert_msg(sl_ranker_open(place.path, NULL, &opened) == SL_OK, "%s", sl_last_error());
    ck_assert_int_eq(predict(ranker, before), SL_OK);
    ck_assert_int_eq(predict(opened, after), SL_OK);
    ck_assert_mem_eq(before, after, sizeof before);
    sl_ranker_info a = {.struct_size = sizeof a}, b = {.struct_size = sizeof b};
    ck_assert_int_eq(sl_ranker_get_info(ranker, &a), SL_OK);
    ck_assert_int_eq(sl_ranker_get_info(opened, &b), SL_OK);
    ck_assert_uint_eq(a.parameters, b.parameters);
    ck_assert_str_eq(a.spec, b.spec);
    for (size_t i = 0; sl_ranker_class(ranker, i); i++)
        ck_assert_str_eq(sl_ranker_class(ranker, i), sl_ranker_class(opened, i));
    for (size_t i = 0; i < a.features; i++) {
        sl_feature_info f = {.struct_size = sizeof f}, g = {.struct_size = sizeof g};
        ck_assert_int_eq(sl_ranker_get_feature(ranker, i, &f), SL_OK);
        ck_assert_int_eq(sl_ranker_get_feature(opened, i, &g), SL_OK);
        ck_assert_str_eq(f.name, g.name);
        ck_assert(f.at == g.at && f.size == g.size && f.wide_at == g.wide_at && f.deep_at == g.deep_at);
    }
    /* Saving it again gives the same file. */
    size_t size, again;
    ck_assert_int_eq(sl_ranker_save(opened, second, NULL), SL_OK);
    unsigned char *one = file_read(place.path, &size), *other = file_read(second, &again);
    ck_assert_uint_eq(size, again);
    ck_assert_mem_eq(one, other, size);
    free(one);
    free(other);
    sl_ranker_free(opened);
}

START_TEST(a_saved_model_comes_back) {
    static const char *const labels[] = {CLICK, KIND, "\"column\": \"value\", \"loss\": \"squared\""};
    for (size_t i = 0; i < 3; i++)
        for (int parts = 1; parts < 4; parts++) {
            sl_ranker *ranker = make_ranker(labels[i], parts & 1 ? "" : NULL, parts & 2 ? DEEP : NULL, NULL);
            check_round_trip(ranker);
            sl_ranker_free(ranker);
        }
}
END_TEST

START_TEST(coded_layers_come_back) {
    check_round_trip(model);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Saving fails
 * ------------------------------------------------------------------------------------------------------------- */

START_TEST(every_file_operation_fails_in_turn) {
    sl_ranker *old = make_ranker(CLICK, "", NULL, NULL);
    ck_assert_int_eq(sl_ranker_save(old, place.path, NULL), SL_OK);
    size_t size, now;
    unsigned char *bytes = file_read(place.path, &size);
    sl_save_params params;
    sl_save_params_init(&params);
    for (int kind = 0; kind < FAULT_KINDS; kind++)
        for (size_t call = 1;; call++) {
            fault_files faults;
            ck_assert_int_eq(sl_ranker_save(old, place.path, NULL), SL_OK);
            fault_files_init(&faults);
            faults.write_limit = 4096;
            faults.error = ENOSPC;
            faults.fail_at[kind] = call;
            params.file_ops = &faults.ops;
            sl_status status = sl_ranker_save(model, place.path, &params);
            if (status == SL_OK) break; /* after the last, or the folder's close, which loses nothing */
            ck_assert_msg(status == SL_ENOSPC, "%s: %s", fault_kind_name((fault_kind)kind), sl_last_error());
            unsigned char *kept = file_read(place.path, &now);
            int after_rename = kind == FAULT_FSYNC && call == 2;
            ck_assert_int_eq(size == now && memcmp(bytes, kept, size) == 0, !after_rename);
            free(kept);
            /* The second open is the folder's, before the rename. */
            int finished = kind == FAULT_RENAME || (kind == FAULT_OPEN && call == 2);
            ck_assert_uint_eq(scratch_take_finished(&place), (size_t)finished);
            ck_assert_uint_eq(scratch_count(&place), 1);
        }
    free(bytes);
    sl_ranker_free(old);
}
END_TEST

static int cancel(void *ctx, uint64_t done, uint64_t total) {
    (void)ctx, (void)done, (void)total;
    return 1;
}

START_TEST(bad_calls_are_refused) {
    sl_ranker *none;
    ck_assert_int_eq(sl_ranker_save(NULL, place.path, NULL), SL_EINVAL);
    ck_assert_int_eq(sl_ranker_save(model, NULL, NULL), SL_EINVAL);
    ck_assert_int_eq(sl_ranker_open(NULL, NULL, &none), SL_EINVAL);
    ck_assert_int_eq(sl_ranker_open(place.path, NULL, NULL), SL_EINVAL);
    ck_assert_int_eq(sl_ranker_open(place.path, NULL, &none), SL_EIO);
    ck_assert_ptr_null(none);
    sl_save_params params;
    sl_save_params_init(&params);
    params.progress = cancel;
    ck_assert_int_eq(sl_ranker_save(model, place.path, &params), SL_ECANCELED);
    ck_assert_uint_eq(scratch_count(&place), 0);
}
END_TEST

START_TEST(memory_may_fail_anywhere) {
    fault_allocator faults;
    fault_allocator_init(&faults, 0);
    sl_ranker *ranker = make_ranker(KIND, "", DEEP, &faults.allocator);
    sl_ranker_open_params params;
    sl_ranker_open_params_init(&params);
    params.allocator = &faults.allocator;
    size_t live = faults.live_blocks;
    sl_status status = SL_ENOMEM;
    size_t fail_at = 1;
    for (; status != SL_OK; fail_at++) {
        sl_ranker *opened = NULL, *changed = NULL;
        faults.calls = 0;
        faults.fail_at = fail_at;
        status = sl_ranker_save(ranker, place.path, NULL);
        if (status == SL_OK) status = sl_ranker_open(place.path, &params, &opened);
        if (status == SL_OK) status = sl_ranker_with_tensors(opened, NULL, 0, &changed);
        ck_assert_msg(status == SL_OK || status == SL_ENOMEM, "allocation %zu: %s", fail_at, sl_last_error());
        sl_ranker_free(opened);
        sl_ranker_free(changed);
        ck_assert_msg(faults.live_blocks == live, "allocation %zu: blocks are lost", fail_at);
    }
    ck_assert_uint_gt(fail_at, 20);
    sl_ranker_free(ranker);
    ck_assert_uint_eq(faults.live_blocks, 0);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Files made to do harm
 * ------------------------------------------------------------------------------------------------------------- */

static sl_status open_and_use(size_t file_size) {
    fault_allocator faults;
    fault_allocator_init(&faults, 0);
    sl_ranker_open_params params;
    sl_ranker_open_params_init(&params);
    params.allocator = &faults.allocator;
    sl_ranker *ranker;
    sl_status status = sl_ranker_open(place.path, &params, &ranker);
    int usual = status == SL_OK || status == SL_EFORMAT || status == SL_EVERSION || status == SL_ECORRUPT;
    ck_assert_msg(usual, "%s: %s", sl_status_name(status), sl_last_error());
    ck_assert_int_eq(ranker != NULL, status == SL_OK);
    if (status != SL_OK) ck_assert_ptr_nonnull(strstr(sl_last_error(), place.path));
    ck_assert_msg(faults.largest < 64 * file_size + (1u << 20), "%zu bytes asked for", faults.largest);
    if (ranker) {
        static float scores[64 * 3 * ROWS];
        sl_ranker_info info = {.struct_size = sizeof info};
        ck_assert_int_eq(sl_ranker_get_info(ranker, &info), SL_OK);
        if (info.outputs <= 64 * 3) (void)predict(ranker, scores);
    }
    sl_ranker_free(ranker);
    ck_assert_uint_eq(faults.live_blocks, 0);
    return status;
}

START_TEST(every_truncation_is_told) {
    size_t size;
    ck_assert_int_eq(sl_ranker_save(model, place.path, NULL), SL_OK);
    unsigned char *bytes = file_read(place.path, &size);
    for (size_t cut = 0; cut < size; cut += cut < 200 || size - cut < 200 ? 1 : 61) {
        file_write(place.path, bytes, cut);
        sl_status status = open_and_use(cut);
        ck_assert_int_eq(status, cut == 0 ? SL_EFORMAT : SL_ECORRUPT);
    }
    file_write(place.path, bytes, size);
    ck_assert_int_eq(open_and_use(size), SL_OK);
    free(bytes);
}
END_TEST

/* Returns whether the byte is a section's or the header's. */
static int counts(const sl_file_header *header, size_t at) {
    for (uint32_t i = 0; i < header->section_count; i++) {
        const sl_file_section *section = &header->sections[i];
        if (at >= section->offset && at - section->offset < section->size) return 1;
    }
    return at < SL_HEADER_SIZE;
}

/* The check finds a changed byte anywhere, and names its section. */
static void check_is_told(const sl_file_header *header, size_t at) {
    sl_ranker_check_report report = {.struct_size = sizeof report};
    sl_status status = sl_ranker_check(place.path, NULL, &report);
    ck_assert_msg(status == SL_ECORRUPT || (at < 12 && status != SL_OK), "byte %zu: %s", at, sl_status_name(status));
    for (uint32_t i = 0; i < header->section_count; i++) {
        const sl_file_section *section = &header->sections[i];
        if (at < section->offset || at - section->offset >= section->size) continue;
        ck_assert_msg(strstr(sl_last_error(), sl_section_name(section->kind)), "%s", sl_last_error());
        ck_assert_uint_lt(report.bytes_checked, at);
    }
}

START_TEST(a_sound_model_is_told_whole) {
    size_t size;
    sl_ranker_info info = {.struct_size = sizeof info};
    sl_ranker_check_report report = {.struct_size = sizeof report};
    sl_file_check_params params;
    ck_assert_int_eq(sl_ranker_save(model, place.path, NULL), SL_OK);
    free(file_read(place.path, &size));
    ck_assert_msg(sl_ranker_check(place.path, NULL, &report) == SL_OK, "%s", sl_last_error());
    ck_assert_int_eq(sl_ranker_get_info(model, &info), SL_OK);
    ck_assert_uint_eq(report.features, info.features);
    ck_assert_uint_eq(report.parameters, info.parameters);
    ck_assert_uint_eq(report.sections_checked, 5);
    ck_assert_uint_eq(report.bytes_checked, size);
    ck_assert_int_eq(report.checkpoint, 0);
    sl_file_check_params_init(&params);
    params.progress = cancel;
    ck_assert_int_eq(sl_ranker_check(place.path, &params, &report), SL_ECANCELED);
    ck_assert_int_eq(sl_ranker_check(NULL, NULL, &report), SL_EINVAL);
    ck_assert_int_eq(sl_ranker_check(place.path, NULL, NULL), SL_EINVAL);
    ck_assert_int_eq(sl_ranker_check(place.folder, NULL, &report), SL_EFORMAT);
    /* Each allocation in turn fails; nothing leaks. */
    fault_allocator faults;
    fault_allocator_init(&faults, 0);
    sl_file_check_params_init(&params);
    params.allocator = &faults.allocator;
    ck_assert_int_eq(sl_ranker_check(place.path, &params, &report), SL_OK);
    size_t calls = faults.calls;
    for (size_t i = 1; i <= calls; i++) {
        fault_allocator_init(&faults, i);
        ck_assert_int_eq(sl_ranker_check(place.path, &params, &report), SL_ENOMEM);
        ck_assert_uint_eq(faults.live_blocks, 0);
    }
}
END_TEST

START_TEST(every_changed_byte_is_told) {
    size_t size;
    sl_file_header header;
    ck_assert_int_eq(sl_ranker_save(model, place.path, NULL), SL_OK);
    unsigned char *bytes = file_read(place.path, &size);
    memcpy(&header, bytes, sizeof header);
    for (size_t at = 0; at < size; at += at < 128 ? 1 : 23) {
        unsigned char old = bytes[at], changed = (unsigned char)(old ^ (1u << at % 8));
        file_patch(place.path, at, &changed, 1);
        sl_status status = open_and_use(size);
        ck_assert_msg((status != SL_OK) == counts(&header, at), "byte %zu: %s", at, sl_status_name(status));
        check_is_told(&header, at);
        file_patch(place.path, at, &old, 1);
    }
    free(bytes);
}
END_TEST

/* Some bytes of SPEC, FEATURES or the layers change, or a section is shorter. */
START_TEST(sealed_lies_do_no_harm) {
    size_t size, opened = 0, refused = 0;
    ck_assert_int_eq(sl_ranker_save(model, place.path, NULL), SL_OK);
    unsigned char *bytes = file_read(place.path, &size), *changed = malloc(size);
    for (uint64_t round = 0; round < 1500; round++) {
        memcpy(changed, bytes, size);
        sl_file_header *header = (sl_file_header *)(void *)changed;
        const uint32_t changing[] = {0, 1, header->section_count - 1};
        sl_file_section *section = &header->sections[changing[sl_random_at(round, 0) % 3]];
        size_t changes = 1 + sl_random_at(round, 1) % 3;
        for (size_t i = 0; i < changes; i++) {
            size_t at = (size_t)(section->offset + sl_random_at(round, 2 + 2 * i) % section->size);
            uint64_t bits = sl_random_at(round, 3 + 2 * i);
            changed[at] = bits % 3 ? (unsigned char)(bits >> 8) : bits % 2 ? 0xff : (unsigned char)('0' + bits % 10);
        }
        section = &header->sections[sl_random_at(round, 20) % header->section_count];
        if (round % 5 == 0) section->size -= sl_random_at(round, 21) % section->size;
        hostile_seal_as(changed, size, &sl_ranker_file);
        file_write(place.path, changed, size);
        *(open_and_use(size) == SL_OK ? &opened : &refused) += 1;
    }
    ck_assert_uint_gt(refused, 100);
    ck_assert_uint_gt(opened, 10);
    free(bytes);
    free(changed);
}
END_TEST

/* In turn, each section is missing or has forbidden content. */
START_TEST(sections_are_held_to_their_rules) {
    size_t size;
    ck_assert_int_eq(sl_ranker_save(model, place.path, NULL), SL_OK);
    unsigned char *bytes = file_read(place.path, &size), *changed = malloc(size);
    sl_file_header *header = (sl_file_header *)(void *)changed;
    memcpy(changed, bytes, size);
    ck_assert_uint_eq(header->section_count, 5);
    for (uint32_t i = 0; i < 5; i++) {
        memcpy(changed, bytes, size);
        header->sections[i].kind = 31;
        header->sections[i].flags = 0;
        hostile_seal_as(changed, size, &sl_ranker_file);
        file_write(place.path, changed, size);
        ck_assert_int_eq(open_and_use(size), SL_ECORRUPT);
        if (header->sections[i].size % sizeof(float) || i < 2) continue;
        memcpy(changed, bytes, size);
        const float nan = NAN;
        memcpy(changed + header->sections[i].offset + 8, &nan, sizeof nan);
        hostile_seal_as(changed, size, &sl_ranker_file);
        file_write(place.path, changed, size);
        ck_assert_int_eq(open_and_use(size), SL_ECORRUPT);
        ck_assert_ptr_nonnull(strstr(sl_last_error(), "not finite"));
    }
    memcpy(changed, bytes, size);
    changed[header->sections[0].offset + 5] = 0;
    hostile_seal_as(changed, size, &sl_ranker_file);
    file_write(place.path, changed, size);
    ck_assert_int_eq(open_and_use(size), SL_ECORRUPT);
    free(bytes);
    free(changed);
}
END_TEST

START_TEST(files_of_other_kinds_are_named) {
    sl_index_params params;
    sl_index *index;
    sl_ranker *ranker;
    const float vector[] = {1, 2};
    sl_index_params_init(&params);
    params.dim = 2;
    ck_assert_int_eq(sl_index_create(&params, &index), SL_OK);
    ck_assert_int_eq(sl_index_add(index, vector, SL_F32, 1, 0, NULL, NULL), SL_OK);
    ck_assert_int_eq(sl_index_save(index, place.path, NULL), SL_OK);
    ck_assert_int_eq(sl_ranker_open(place.path, NULL, &ranker), SL_EFORMAT);
    ck_assert_ptr_nonnull(strstr(sl_last_error(), "is an index"));
    sl_index_free(index);
    ck_assert_int_eq(sl_ranker_save(model, place.path, NULL), SL_OK);
    ck_assert_int_eq(sl_index_open(place.path, NULL, &index), SL_EFORMAT);
    ck_assert_ptr_nonnull(strstr(sl_last_error(), "is a ranker model"));
}
END_TEST

int main(void) {
    TCase *saving = tcase_create("saving");
    tcase_add_test(saving, a_saved_model_comes_back);
    tcase_add_test(saving, every_file_operation_fails_in_turn);
    tcase_add_test(saving, bad_calls_are_refused);
    tcase_add_test(saving, memory_may_fail_anywhere);
    TCase *harm = tcase_create("harm");
    tcase_add_test(harm, every_truncation_is_told);
    tcase_add_test(harm, a_sound_model_is_told_whole);
    tcase_add_test(harm, every_changed_byte_is_told);
    tcase_add_test(harm, sealed_lies_do_no_harm);
    tcase_add_test(harm, sections_are_held_to_their_rules);
    tcase_add_test(harm, files_of_other_kinds_are_named);
    TCase *coded = tcase_create("coded");
    tcase_add_test(coded, coded_layers_come_back);
    tcase_add_test(coded, a_sound_model_is_told_whole);
    tcase_add_test(coded, every_changed_byte_is_told);
    tcase_add_test(coded, sealed_lies_do_no_harm);
    tcase_add_checked_fixture(saving, set_up, tear_down);
    tcase_add_checked_fixture(harm, set_up, tear_down);
    tcase_add_checked_fixture(coded, set_up_coded, tear_down);
    return check_main("model_file", (TCase *[]){saving, harm, coded}, 3);
}
