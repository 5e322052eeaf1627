/* Files of item tables are not trusted: damage is refused or found, and nothing launders it. A failed save leaves the
 * old file. */
#include "recommend/items.h"
#include "tests/support/check_main.h"
#include "tests/support/faults.h"
#include "tests/support/hostile.h"
#include "tests/support/indexes.h"
#include "tests/support/item_rows.h"
#include "tests/support/scratch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static scratch place;

static void set_up(void) {
    scratch_open(&place);
}
static void tear_down(void) {
    scratch_close(&place);
}

/* ---------------------------------------------------------------------------------------------------------------
 * Files
 * ------------------------------------------------------------------------------------------------------------- */

static void make_file(char path[SCRATCH_PATH]) {
    every e;
    scratch_name(&place, "items.sl", path);
    every_fill(&e, sparse_ids, 13, 2);
    sl_items *items = items_of(&e.table, 4, NULL);
    /* The file has a list of deleted ids. */
    ck_ok(sl_items_delete(items, sparse_ids + 11, 2));
    ck_ok(sl_items_save(items, path, NULL));
    sl_items_free(items);
}

/* Leaves fsync out: files of these tests need not survive the machine. */
static int no_sync(void *ctx, int fd) {
    (void)ctx, (void)fd;
    return 0;
}

/* Does everything that a program may do with an open table. */
static sl_status use(const char *path) {
    static const char *const columns[] = {"id", "long", "int", "float", "double", "vector", "text", "list"};
    fault_allocator memory;
    sl_items *items;
    sl_items_params params;
    fault_allocator_init(&memory, 0);
    sl_items_params_init(&params);
    params.allocator = &memory.allocator;
    sl_status status = sl_items_open(path, &params, &items);
    if (status != SL_OK) {
        ck_assert_ptr_null(items);
        ck_assert_uint_eq(memory.live_blocks, 0);
        ck_assert(*sl_last_error());
        return status;
    }
    char text[256], again[SCRATCH_PATH];
    for (size_t i = 0; i < 11; i++)
        for (size_t c = 0; c < 8; c++) {
            status = sl_items_text(items, sparse_ids[i], columns[c], text, sizeof text, NULL);
            ck_assert(status == SL_OK || status == SL_ENOTFOUND);
        }
    every e;
    every_fill(&e, sparse_ids, 3, 5);
    status = sl_items_update(items, &e.table);
    ck_assert(status == SL_OK || *sl_last_error());
    scratch_name(&place, "again.sl", again);
    const sl_file_ops ops = {.fsync = no_sync};
    sl_save_params save;
    sl_save_params_init(&save);
    save.file_ops = &ops;
    sl_items_check_report report = {.struct_size = sizeof report};
    sl_status sound = sl_items_check(items, NULL, &report);
    ck_assert(sound == SL_OK || sound == SL_ECORRUPT);
    status = sl_items_save(items, again, &save);
    ck_assert_msg(status == SL_OK || (sound == SL_ECORRUPT && status == SL_ECORRUPT), "%s", sl_last_error());
    sl_items_free(items);
    ck_assert_uint_eq(memory.live_blocks, 0);
    return SL_OK;
}

/* The number of columns is bounded, in blocks and in files, because some work grows with its square. */
START_TEST(too_many_columns_are_refused) {
    static sl_column columns[SL_MAX_COLUMNS + 1];
    static char names[SL_MAX_COLUMNS + 1][8];
    static const int64_t ids[] = {1};
    for (size_t c = 0; c <= SL_MAX_COLUMNS; c++) {
        snprintf(names[c], sizeof names[c], "%zx", c);
        columns[c] = (sl_column){.name = names[c], .type = SL_COLUMN_I64, .values = ids};
    }
    const sl_table table = {
        .struct_size = sizeof table, .rows = 1, .column_count = SL_MAX_COLUMNS + 1, .columns = columns};
    pieces p;
    sl_items *items;
    pieces_of(&p, &table, 1);
    ck_fails(sl_items_create(&p.rows, NULL, &items), SL_ELIMIT, "16385 columns");
    ck_assert_ptr_null(items);
    free(p.cursor);
}
END_TEST

START_TEST(every_truncation_is_refused) {
    char path[SCRATCH_PATH];
    size_t size;
    make_file(path);
    unsigned char *bytes = file_read(path, &size);
    ck_ok(use(path));
    for (size_t cut = 0; cut < size; cut += cut < 4096 || size - cut < 600 ? 1 : 97) {
        file_write(path, bytes, cut);
        sl_status status = use(path);
        ck_assert(status == SL_ECORRUPT || status == SL_EFORMAT);
    }
    free(bytes);
}
END_TEST

/* A file with a changed byte is refused, or opens and does no harm. The second run makes the CRCs right again. */
START_TEST(every_changed_byte_is_survived) {
    char path[SCRATCH_PATH];
    size_t size, opened = 0, refused = 0;
    make_file(path);
    unsigned char *bytes = file_read(path, &size);
    unsigned char *changed = malloc(size);
    for (size_t at = 0; at < size; at++) {
        /* Most bytes between the sections are left out: opening reads none of them. */
        if (bytes[at] == 0 && at > 1536 && at % 61) continue;
        for (unsigned turn = 0; turn < 3; turn++) {
            memcpy(changed, bytes, size);
            changed[at] = (unsigned char)(changed[at] ^ (turn == 0 ? 1u : turn == 1 ? 0x80u : 0xffu));
            if (_i) hostile_seal_as(changed, size, &sl_items_file);
            file_write(path, changed, size);
            sl_status status = use(path);
            ck_assert(status == SL_OK || status == SL_ECORRUPT || status == SL_EFORMAT || status == SL_EVERSION);
            if (!_i && at < 4096) ck_assert(status != SL_OK);
            opened += status == SL_OK;
            refused += status != SL_OK;
        }
    }
    ck_assert_uint_gt(opened, 10);
    ck_assert_uint_gt(refused, 10);
    free(bytes);
    free(changed);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Damage is found, and stays damage
 * ------------------------------------------------------------------------------------------------------------- */

/* Opens the file and checks it. */
static sl_status check(const char *path, sl_items_check_report *report) {
    sl_items *items;
    *report = (sl_items_check_report){.struct_size = sizeof *report};
    sl_status status = sl_items_open(path, NULL, &items);
    if (status == SL_OK) status = sl_items_check(items, NULL, report);
    sl_items_free(items);
    return status;
}

/* Opens the file, updates it unless `as_it_is`, and saves it over itself. */
static sl_status rewrite(const char *path, int as_it_is) {
    static const uint64_t ids[] = {7, 99};
    every e;
    sl_items *items;
    every_fill(&e, ids, 2, 5);
    sl_status status = sl_items_open(path, NULL, &items);
    if (status == SL_OK && !as_it_is) status = sl_items_update(items, &e.table);
    if (status == SL_OK) status = sl_items_save(items, path, NULL);
    sl_items_free(items);
    return status;
}

static const sl_file_section *section_at(const sl_file_header *header, size_t at) {
    for (uint32_t i = 0; i < header->section_count; i++)
        if (at >= header->sections[i].offset && at - header->sections[i].offset < header->sections[i].size)
            return &header->sections[i];
    return NULL;
}

START_TEST(a_sound_file_is_told_whole) {
    char path[SCRATCH_PATH];
    size_t size;
    sl_items_check_report report;
    make_file(path);
    free(file_read(path, &size));
    ck_ok(check(path, &report));
    ck_assert_uint_eq(report.rows, 11);
    ck_assert_uint_eq(report.columns, 8);
    ck_assert_uint_eq(report.sections_checked, 4);
    ck_assert_uint_eq(report.bytes_checked, size);
    ck_assert_uint_eq(report.bad_ids, 0);
    ck_ok(rewrite(path, 1));
    ck_ok(rewrite(path, 0));
    ck_ok(check(path, &report));
    ck_assert_uint_eq(report.rows, 12);
}
END_TEST

/* A flipped bit anywhere in the file is found. The message names the section, if the bit lies in one. No save makes a
 * sound file of the damaged one. */
START_TEST(every_flipped_bit_is_found_and_stays) {
    char path[SCRATCH_PATH], name[64];
    size_t size, read_in_place = 0;
    sl_file_header header;
    sl_items_check_report report;
    make_file(path);
    unsigned char *whole = file_read(path, &size), *bytes = file_read(path, &size);
    memcpy(&header, bytes, sizeof header);
    for (uint64_t i = 0; i < 1500; i++) {
        size_t at = (size_t)(sl_random_at(11, i) % size);
        /* Most bytes lie between the sections. */
        const sl_file_section *section = &header.sections[i % 5];
        if (i % 5 < 4 && section->size) at = (size_t)(section->offset + sl_random_at(12, i) % section->size);
        bytes[at] = (unsigned char)(bytes[at] ^ 1u << sl_random_at(13, i) % 8);
        file_write(path, bytes, size);
        sl_status status = check(path, &report);
        ck_assert_msg(status == SL_ECORRUPT || (at < 12 && status != SL_OK), "byte %zu: %s", at,
                      sl_status_name(status));
        section = section_at(&header, at);
        if (section) {
            snprintf(name, sizeof name, "section %u (%s) is damaged", section->kind, sl_section_name(section->kind));
            int in_place = section->kind == SL_SECTION_COLUMNS || section->kind == SL_SECTION_TEXT;
            read_in_place += (size_t)in_place;
            int unopened = in_place && !report.rows; /* opening has refused offsets or lists */
            ck_assert_msg(unopened || strstr(sl_last_error(), name), "'%s' does not say '%s'", sl_last_error(), name);
        }
        for (int as_it_is = 0; as_it_is < 2 && (section || at < SL_HEADER_SIZE); as_it_is++) {
            size_t after;
            ck_assert_int_ne(rewrite(path, as_it_is), SL_OK);
            unsigned char *left = file_read(path, &after);
            ck_assert_uint_eq(after, size);
            ck_assert_mem_eq(left, bytes, size);
            free(left);
        }
        memcpy(bytes, whole, size);
    }
    ck_assert_uint_gt(read_in_place, 300);
    free(whole);
    free(bytes);
}
END_TEST

/* So many updates run that the rows would be compacted into memory. The damage does not slip through there. */
START_TEST(updates_do_not_launder_damage) {
    enum { MANY = 3000, ROUNDS = 3 };
    static int64_t ids[MANY];
    static double values[MANY];
    char path[SCRATCH_PATH];
    size_t size;
    sl_file_header header;
    const sl_column columns[] = {{.name = "id", .type = SL_COLUMN_I64, .values = ids},
                                 {.name = "value", .type = SL_COLUMN_F64, .values = values}};
    sl_table table = {.struct_size = sizeof table, .rows = MANY, .column_count = 2, .columns = columns};
    for (size_t i = 0; i < MANY; i++)
        ids[i] = (int64_t)i, values[i] = (double)i;
    scratch_name(&place, "items.sl", path);
    sl_items *items = items_of(&table, MANY, NULL);
    ck_ok(sl_items_save(items, path, NULL));
    sl_items_free(items);
    unsigned char *bytes = file_read(path, &size);
    memcpy(&header, bytes, sizeof header);
    free(bytes);
    for (int damaged = 0; damaged < 2; damaged++) {
        const sl_file_section *section = &header.sections[2];
        ck_assert_uint_eq(section->kind, SL_SECTION_COLUMNS);
        const double wrong = 1e300;
        /* Damages the value of the last row; no update replaces that row. */
        ck_ok(sl_items_open(path, NULL, &items));
        const sl_items_part *part = sl_items_part_of(sl_items_body(items), 0);
        size_t at = (size_t)((const uint8_t *)(part->columns[1].values) - part->data) + (MANY - 1) * sizeof(double);
        sl_items_free(items);
        if (damaged) file_patch(path, (size_t)section->offset + at, &wrong, sizeof wrong);
        ck_ok(sl_items_open(path, NULL, &items));
        /* A partial update copies that value into memory. */
        const sl_column last = {.name = "id", .type = SL_COLUMN_I64, .values = &ids[MANY - 1]};
        ck_ok(sl_items_set(items,
                           &(sl_table){.struct_size = sizeof table, .rows = 1, .column_count = 1, .columns = &last}));
        table.rows = MANY - 1;
        for (size_t round = 0; round < ROUNDS; round++)
            ck_ok(sl_items_update(items, &table));
        ck_assert_int_eq(sl_items_body(items)->store == NULL, !damaged);
        sl_items_check_report report = {.struct_size = sizeof report};
        if (damaged) {
            ck_fails(sl_items_check(items, NULL, &report), SL_ECORRUPT, "values of the columns");
            ck_fails(sl_items_save(items, path, NULL), SL_ECORRUPT, "values of the columns");
        } else {
            ck_ok(sl_items_check(items, NULL, &report));
            ck_assert_uint_eq(report.sections_checked, 0);
            expect_text(items, MANY - 1, "value", "2999");
        }
        sl_items_free(items);
    }
}
END_TEST

/* A file with right checksums, but with ids that differ from its id column, is refused. */
START_TEST(ids_are_held_to_their_column) {
    char path[SCRATCH_PATH];
    size_t size;
    make_file(path);
    unsigned char *bytes = file_read(path, &size);
    sl_file_header header;
    sl_items_check_report report;
    memcpy(&header, bytes, sizeof header);
    ck_assert_uint_eq(header.sections[1].kind, SL_SECTION_ITEM_IDS);
    const uint64_t other = 123456;
    memcpy(bytes + header.sections[1].offset + 3 * sizeof other, &other, sizeof other);
    hostile_seal_as(bytes, size, &sl_items_file);
    file_write(path, bytes, size);
    ck_fails(check(path, &report), SL_ECORRUPT, "column 'id'");
    ck_assert(strstr(sl_last_error(), "row 3"));
    ck_assert_uint_eq(report.bad_ids, 1);
    ck_assert_uint_eq(report.bytes_checked, size);
    free(bytes);
}
END_TEST

typedef struct watched {
    uint64_t done, total;
    size_t calls;
} watched;

static int watch(void *ctx, uint64_t done, uint64_t total) {
    watched *w = ctx;
    ck_assert(w->calls == 0 || (total == w->total && done >= w->done));
    *w = (watched){done, total, w->calls + 1};
    return 0;
}

START_TEST(checks_and_saves_tell_how_far_they_are) {
    char path[SCRATCH_PATH];
    size_t size;
    sl_items *items;
    watched w = {0};
    sl_file_check_params params;
    sl_save_params save;
    sl_items_check_report report = {.struct_size = sizeof report};
    make_file(path);
    free(file_read(path, &size));
    ck_ok(sl_items_open(path, NULL, &items));
    sl_file_check_params_init(&params);
    params.progress = watch;
    params.progress_ctx = &w;
    ck_ok(sl_items_check(items, &params, &report));
    ck_assert(w.calls && w.done == size && w.total == size);
    w.calls = 0;
    sl_save_params_init(&save);
    save.progress = watch;
    save.progress_ctx = &w;
    ck_ok(sl_items_save(items, path, &save));
    ck_assert(w.calls && w.total > size);
    params.progress = indexes_cancel;
    ck_fails(sl_items_check(items, &params, &report), SL_ECANCELED, "");
    ck_fails(sl_items_check(NULL, NULL, &report), SL_EINVAL, "items is NULL");
    ck_fails(sl_items_check(items, NULL, NULL), SL_EINVAL, "sl_items_check_report");
    params.struct_size = 0;
    ck_fails(sl_items_check(items, &params, &report), SL_EINVAL, "sl_file_check_params_init");
    sl_items_free(items);
}
END_TEST

START_TEST(failing_saves_leave_the_old_file) {
    char path[SCRATCH_PATH];
    every e;
    make_file(path);
    every_fill(&e, sparse_ids, EVERY_ROWS, 9);
    sl_items *items = items_of(&e.table, 7, NULL), *opened;
    /* Each operation of a save fails in turn, up to the removal of its temporary file. */
    for (int kind = 0; kind < FAULT_UNLINK; kind++) {
        fault_files files;
        sl_save_params params;
        sl_save_params_init(&params);
        fault_files_init(&files);
        files.fail_at[kind] = 1;
        params.file_ops = &files.ops;
        ck_fails(sl_items_save(items, path, &params), SL_EIO, "");
        ck_ok(sl_items_open(path, NULL, &opened));
        ck_assert_uint_eq(sl_items_size(opened), 11);
        sl_items_free(opened);
        ck_assert_uint_eq(scratch_take_finished(&place), kind == FAULT_RENAME);
        ck_assert_uint_eq(scratch_count(&place), 1);
    }
    sl_save_params params;
    sl_save_params_init(&params);
    params.progress = indexes_cancel;
    ck_fails(sl_items_save(items, path, &params), SL_ECANCELED, "");
    ck_fails(sl_items_save(items, NULL, NULL), SL_EINVAL, "");
    ck_fails(sl_items_save(NULL, path, NULL), SL_EINVAL, "");
    ck_fails(sl_items_open(NULL, NULL, &opened), SL_EINVAL, "");
    ck_fails(sl_items_open(path, NULL, NULL), SL_EINVAL, "");
    ck_fails(sl_items_open(place.folder, NULL, &opened), SL_EFORMAT, "");
    sl_items_free(items);
}
END_TEST

START_TEST(failing_allocations_are_passed_on) {
    char path[SCRATCH_PATH];
    every e, next;
    fault_allocator memory;
    sl_items_params params;
    sl_items *items;
    make_file(path);
    every_fill(&e, sparse_ids, EVERY_ROWS, 9);
    every_fill(&next, sparse_ids + 3, 20, 10);
    sl_items_params_init(&params);
    params.allocator = &memory.allocator;
    size_t calls = 1;
    for (size_t i = 0; i <= calls; i++) {
        fault_allocator_init(&memory, i);
        pieces p;
        pieces_of(&p, &e.table, 11);
        sl_status status = sl_items_create(&p.rows, &params, &items);
        if (status == SL_OK) status = sl_items_update(items, &next.table);
        if (status == SL_OK) status = sl_items_save(items, path, NULL);
        sl_items_free(items);
        free(p.cursor);
        sl_items *opened = NULL;
        if (status == SL_OK) status = sl_items_open(path, &params, &opened);
        sl_items_free(opened);
        if (i == 0) calls = memory.calls;
        ck_assert_int_eq(status, i == 0 ? SL_OK : SL_ENOMEM);
        ck_assert_uint_eq(memory.live_blocks, 0);
    }
    ck_assert_uint_gt(calls, 30);
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("item files");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, too_many_columns_are_refused);
    tcase_add_test(tests, every_truncation_is_refused);
    tcase_add_loop_test(tests, every_changed_byte_is_survived, 0, 2);
    tcase_add_test(tests, a_sound_file_is_told_whole);
    tcase_add_test(tests, every_flipped_bit_is_found_and_stays);
    tcase_add_test(tests, updates_do_not_launder_damage);
    tcase_add_test(tests, ids_are_held_to_their_column);
    tcase_add_test(tests, checks_and_saves_tell_how_far_they_are);
    tcase_add_test(tests, failing_saves_leave_the_old_file);
    tcase_add_test(tests, failing_allocations_are_passed_on);
    return check_main("item files", &tests, 1);
}
