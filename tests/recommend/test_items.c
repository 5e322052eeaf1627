/* Item tables give back the rows that went in, by rows, files and updates. A refused update changes nothing. */
#include "base/random.h"
#include "recommend/items.h"
#include "tests/support/check_main.h"
#include "tests/support/faults.h"
#include "tests/support/indexes.h"
#include "tests/support/item_rows.h"
#include "tests/support/scratch.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static scratch place;

static void set_up(void) {
    scratch_open(&place);
}
static void tear_down(void) {
    scratch_close(&place);
}

/* ---------------------------------------------------------------------------------------------------------------
 * In and out
 * ------------------------------------------------------------------------------------------------------------- */

START_TEST(what_goes_in_comes_out) {
    every e;
    char path[SCRATCH_PATH];
    size_t blocks[] = {EVERY_ROWS, 7, 1};
    scratch_name(&place, "items.sl", path);
    every_fill(&e, sparse_ids, EVERY_ROWS, 3);
    for (size_t b = 0; b < 3; b++) {
        sl_items *items = items_of(&e.table, blocks[b], NULL), *opened;
        ck_assert_uint_eq(sl_items_size(items), EVERY_ROWS);
        for (size_t i = 0; i < EVERY_ROWS; i++)
            expect_row(items, sparse_ids[i], 3);
        /* A message names a row by its number in the source of the table. */
        for (size_t p = 0, first = 0; p < sl_catalog_parts(&sl_items_body(items)->catalog); p++) {
            const sl_table *part = &sl_items_part_of(sl_items_body(items), p)->table;
            ck_assert_uint_eq(part->first_row, first);
            first += part->rows;
        }
        ck_ok(sl_items_save(items, path, NULL));
        sl_items_free(items);
        ck_ok(sl_items_open(path, NULL, &opened));
        ck_assert_uint_eq(sl_items_size(opened), EVERY_ROWS);
        for (size_t i = 0; i < EVERY_ROWS; i++)
            expect_row(opened, sparse_ids[i], 3);
        /* Saves over the file that the table is mapped from. */
        ck_ok(sl_items_save(opened, path, NULL));
        expect_row(opened, sparse_ids[5], 3);
        sl_items_free(opened);
    }
}
END_TEST

START_TEST(texts_are_cut) {
    every e;
    every_fill(&e, sparse_ids, EVERY_ROWS, 0);
    sl_items *items = items_of(&e.table, EVERY_ROWS, NULL);
    char text[5] = "####";
    size_t length;
    ck_ok(sl_items_text(items, 1000000007, "text", text, sizeof text, &length));
    ck_assert_str_eq(text, "t100");
    ck_assert_uint_eq(length, 13);
    ck_ok(sl_items_text(items, 1000000007, "text", NULL, 0, &length));
    ck_assert_uint_eq(length, 13);
    ck_ok(sl_items_text(items, 1000000007, "text", text, 1, NULL));
    ck_assert_str_eq(text, "");
    ck_fails(sl_items_text(items, 11, "text", text, sizeof text, NULL), SL_ENOTFOUND, "id 11");
    ck_fails(sl_items_text(items, 1, "txt", text, sizeof text, NULL), SL_ENOTFOUND, "'txt'");
    ck_fails(sl_items_text(items, 1, NULL, text, sizeof text, NULL), SL_EINVAL, "");
    sl_items_free(items);
}
END_TEST

static sl_status nothing_next(void *ctx, size_t max_rows, sl_table *block) {
    (void)max_rows;
    *block = *(const sl_table *)ctx;
    return SL_OK;
}
static sl_status nothing_rewind(void *ctx) {
    (void)ctx;
    return SL_OK;
}

START_TEST(an_empty_table_is_one) {
    every e;
    char path[SCRATCH_PATH];
    sl_items *opened;
    scratch_name(&place, "items.sl", path);
    every_fill(&e, sparse_ids, 0, 0);
    const sl_rows rows = {sizeof rows, &e.table, nothing_next, nothing_rewind};
    sl_items *items;
    ck_ok(sl_items_create(&rows, NULL, &items));
    ck_assert_uint_eq(sl_items_size(items), 0);
    ck_ok(sl_items_save(items, path, NULL));
    ck_ok(sl_items_open(path, NULL, &opened));
    ck_assert_uint_eq(sl_items_size(opened), 0);
    every_fill(&e, sparse_ids, EVERY_ROWS, 1);
    ck_ok(sl_items_update(opened, &e.table));
    ck_ok(sl_items_save(opened, path, NULL));
    for (size_t i = 0; i < EVERY_ROWS; i++)
        expect_row(opened, sparse_ids[i], 1);
    sl_items_free(items);
    sl_items_free(opened);
    ck_assert_uint_eq(sl_items_size(NULL), 0);
    sl_items_free(NULL);
}
END_TEST

/* Ids may be texts of digits or integers of 32 bits, in a column of any name. */
START_TEST(ids_come_in_several_types) {
    static const char digits[] = "0718446744073709551614";
    static const int64_t offsets[] = {0, 1, 2, 22};
    static const int32_t numbers[] = {5, 6, 0};
    static const sl_column columns[] = {
        {.name = "key", .type = SL_COLUMN_TEXT, .values = digits, .offsets = offsets},
        {.name = "number", .type = SL_COLUMN_I32, .values = numbers},
    };
    const sl_table table = {.struct_size = sizeof table, .rows = 3, .column_count = 2, .columns = columns};
    pieces p;
    sl_items *items;
    sl_items_params params;
    sl_items_params_init(&params);
    pieces_of(&p, &table, 2);
    params.id = "key";
    ck_ok(sl_items_create(&p.rows, &params, &items));
    expect_text(items, 7, "number", "6");
    expect_text(items, UINT64_MAX - 1, "key", "18446744073709551614");
    sl_items_free(items);
    params.id = "number";
    ck_ok(sl_items_create(&p.rows, &params, &items));
    expect_text(items, 5, "key", "0");
    sl_items_free(items);
    free(p.cursor);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * What is refused
 * ------------------------------------------------------------------------------------------------------------- */

static void refuse(const sl_table *table, const char *id, size_t block, sl_status status, const char *text) {
    pieces p;
    sl_items *items;
    sl_items_params params;
    sl_items_params_init(&params);
    params.id = id;
    pieces_of(&p, table, block);
    ck_fails(sl_items_create(&p.rows, &params, &items), status, text);
    ck_assert_ptr_null(items);
    free(p.cursor);
}

START_TEST(bad_rows_are_refused) {
    every e;
    every_fill(&e, sparse_ids, EVERY_ROWS, 0);
    refuse(&e.table, "key", 8, SL_ENOTFOUND, "'key'");
    refuse(&e.table, "float", 8, SL_ETYPE, "f32");
    refuse(&e.table, "list", 8, SL_ETYPE, "texts");
    refuse(&e.table, "text", 8, SL_EVALUE, "'t7.0'");
    refuse(&e.table, "long", EVERY_ROWS, SL_EVALUE, "missing");
    refuse(&e.table, "int", 8, SL_EVALUE, "negative");
    refuse(&e.table, NULL, 8, SL_EINVAL, "NULL");
    e.table.rows = 0;
    refuse(&e.table, "id", 8, SL_EINVAL, "no rows");
    e.table.rows = EVERY_ROWS;
    e.ids[30] = 7;
    refuse(&e.table, "id", EVERY_ROWS, SL_EEXIST, "row 30");
    refuse(&e.table, "id", 8, SL_EEXIST, "row 30");
    every_fill(&e, sparse_ids, EVERY_ROWS, 0);
    e.columns[3].name = "int";
    refuse(&e.table, "id", 8, SL_EEXIST, "'int'");
    every_fill(&e, sparse_ids, EVERY_ROWS, 0);
    e.text_offsets[4] = -1;
    refuse(&e.table, "id", EVERY_ROWS, SL_EINVAL, "");
    every_fill(&e, sparse_ids, EVERY_ROWS, 0);
    e.lists[4] = -1;
    refuse(&e.table, "id", EVERY_ROWS, SL_EINVAL, "");
    pieces p;
    sl_items *items;
    sl_items_params params;
    sl_items_params_init(&params);
    params.progress = indexes_cancel;
    every_fill(&e, sparse_ids, EVERY_ROWS, 0);
    pieces_of(&p, &e.table, 8);
    ck_fails(sl_items_create(&p.rows, &params, &items), SL_ECANCELED, "");
    ck_fails(sl_items_create(NULL, NULL, &items), SL_EINVAL, "");
    ck_fails(sl_items_create(&p.rows, NULL, NULL), SL_EINVAL, "");
    params.struct_size = 0;
    ck_fails(sl_items_create(&p.rows, &params, &items), SL_EINVAL, "sl_items_params_init");
    free(p.cursor);
}
END_TEST

/* A table with one column, of ids as given. */
static const sl_table *only_ids(sl_column_type type, const void *values, const int64_t *offsets, size_t n) {
    static sl_column column;
    static sl_table table;
    column = (sl_column){.name = "id", .type = type, .values = values, .offsets = offsets};
    table = (sl_table){.struct_size = sizeof table, .rows = n, .column_count = 1, .columns = &column};
    return &table;
}

/* Ids are the same as integers of any width and as digits: which of them a block has does not matter. */
START_TEST(updates_take_ids_of_any_type) {
    static const int64_t longs[] = {0, 7, INT64_MAX}, offsets[] = {0, 1, 20}, ends[] = {0, 19};
    static const int32_t integers[] = {8, INT32_MAX};
    static const char digits[] = "79223372036854775809", most[] = "9223372036854775807";
    const sl_column_type types[] = {SL_COLUMN_TEXT, SL_COLUMN_I64, SL_COLUMN_I32};
    const void *const first[] = {"1", longs, integers};
    for (size_t t = 0; t < 3; t++) {
        sl_items *items = items_of(only_ids(types[t], first[t], (int64_t[]){0, 1}, 1), 1, NULL);
        ck_ok(sl_items_update(items, only_ids(SL_COLUMN_I32, integers, NULL, 2)));
        expect_text(items, INT32_MAX, "id", "2147483647");
        size_t size = sl_items_size(items);
        sl_status wide = sl_items_update(items, only_ids(SL_COLUMN_TEXT, digits, offsets, 2));
        if (types[t] == SL_COLUMN_TEXT) {
            ck_ok(wide);
            expect_text(items, 9223372036854775809u, "id", "9223372036854775809");
        } else {
            ck_fails(wide, SL_ETYPE, "id 9223372036854775809 does not fit column 'id'");
            ck_assert_uint_eq(sl_items_size(items), size);
        }
        wide = sl_items_update(items, only_ids(SL_COLUMN_I64, longs, NULL, 3));
        if (types[t] == SL_COLUMN_I32) {
            ck_fails(wide, SL_ETYPE, "which is i32 in the item table; make the table anew");
        } else {
            ck_ok(wide);
            ck_ok(sl_items_update(items, only_ids(SL_COLUMN_TEXT, most, ends, 1)));
            expect_text(items, INT64_MAX, "id", most);
        }
        sl_items_free(items);
    }
}
END_TEST

/* A refused update leaves nothing behind. */
START_TEST(bad_updates_are_refused_whole) {
    every e, next;
    every_fill(&e, sparse_ids, EVERY_ROWS, 0);
    sl_items *items = items_of(&e.table, EVERY_ROWS, NULL);
    const uint64_t ids[] = {1, 2, _i ? 3 : 500};
    sl_status (*const update)(sl_items *, const sl_table *) = _i ? sl_items_set : sl_items_update;
#define REFUSED(change, status, text)                                                                                  \
    do {                                                                                                               \
        every_fill(&next, ids, 3, 1);                                                                                  \
        change;                                                                                                        \
        ck_fails(update(items, &next.table), status, text);                                                            \
        ck_assert_uint_eq(sl_items_size(items), EVERY_ROWS);                                                           \
        for (size_t i = 0; i < EVERY_ROWS; i++)                                                                        \
            expect_row(items, sparse_ids[i], 0);                                                                       \
    } while (0)
    REFUSED(next.columns[3].name = "colour", SL_ENOTFOUND, "'colour'");
    REFUSED(next.columns[3].name = "int", SL_EEXIST, "'int'");
    REFUSED(next.columns[0].name = "int", SL_ETYPE, "'int'");
    REFUSED(next.table.column_count = 7; next.table.columns = next.columns + 1, SL_ENOTFOUND, "'id'");
    REFUSED(next.columns[3].type = SL_COLUMN_I32, SL_ETYPE, "f32");
    REFUSED(next.columns[5].dim = EVERY_DIM - 1, SL_ETYPE, "3");
    REFUSED(next.ids[2] = 1, SL_EEXIST, "row 2");
    REFUSED(next.ids[2] = -1, SL_EVALUE, "row 2");
    REFUSED(next.text_offsets[2] = -5, SL_EINVAL, "");
    REFUSED(next.table.struct_size = 0, SL_EINVAL, "sl_table");
    if (_i) REFUSED(next.ids[2] = 500, SL_ENOTFOUND, "row 2: column 'id': id 500 is not in the item table");
    ck_fails(update(NULL, &next.table), SL_EINVAL, "");
    ck_fails(update(items, NULL), SL_EINVAL, "");
    every_fill(&next, ids, 0, 1);
    ck_ok(update(items, &next.table));
    every_fill(&next, ids, 3, 1);
    ck_ok(update(items, &next.table));
    sl_items_free(items);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Updates
 * ------------------------------------------------------------------------------------------------------------- */

START_TEST(updates_replace_and_add) {
    every e;
    char path[SCRATCH_PATH];
    unsigned versions[200] = {0};
    uint64_t all[200];
    sl_items *opened;
    scratch_name(&place, "items.sl", path);
    for (size_t i = 0; i < 200; i++)
        all[i] = _i ? i * 90001 : i;
    every_fill(&e, all, EVERY_ROWS, 0);
    sl_items *items = items_of(&e.table, 9, NULL);
    size_t known = EVERY_ROWS;
    for (unsigned step = 1; step < 60; step++) {
        uint64_t ids[EVERY_ROWS];
        size_t n = 0;
        for (size_t i = 0; i < 200 && n < 5; i++) {
            if (sl_random_at(step, i) % 40) continue;
            ids[n++] = all[i];
            known += i >= EVERY_ROWS && !versions[i];
            versions[i] = step;
        }
        every_fill(&e, ids, n, step);
        ck_ok(sl_items_update(items, &e.table));
        ck_assert_uint_eq(sl_items_size(items), known);
    }
    ck_ok(sl_items_save(items, path, NULL));
    ck_ok(sl_items_open(path, NULL, &opened));
    ck_assert_uint_eq(sl_items_size(opened), known);
    for (size_t i = 0; i < 200; i++) {
        size_t length;
        if (i >= EVERY_ROWS && !versions[i]) {
            ck_fails(sl_items_text(opened, all[i], "id", NULL, 0, &length), SL_ENOTFOUND, "");
            continue;
        }
        expect_row(items, all[i], versions[i]);
        expect_row(opened, all[i], versions[i]);
    }
    /* Columns that the new rows lack are missing values. */
    every_fill(&e, all, 3, 9);
    e.table.column_count = 3;
    ck_ok(sl_items_update(opened, &e.table));
    expect_text(opened, all[1], "int", _i ? "-10" : "-10");
    expect_text(opened, all[1], "float", "");
    expect_text(opened, all[1], "text", "");
    expect_text(opened, all[1], "list", "");
    expect_text(opened, all[1], "vector", "");
    sl_items_free(items);
    sl_items_free(opened);
}
END_TEST

typedef struct versions {
    unsigned of[EVERY_ROWS][8]; /* of each row's columns */
} versions;

static void expect_versions(const sl_items *items, const versions *v) {
    for (size_t i = 0; i < EVERY_ROWS; i++)
        for (unsigned c = 0; c < 8; c++)
            expect_columns(items, sparse_ids[i], v->of[i][c], 1u << c);
}

/* Columns that a partial update lacks stay as they are: in rows of a mapped file, of earlier updates, and of a
 * compacted table. */
START_TEST(set_leaves_the_other_columns) {
    every e;
    char path[SCRATCH_PATH];
    static versions v;
    scratch_name(&place, "items.sl", path);
    memset(&v, 0, sizeof v);
    every_fill(&e, sparse_ids, EVERY_ROWS, 0);
    sl_items *items = items_of(&e.table, 9, NULL);
    if (_i) {
        ck_ok(sl_items_save(items, path, NULL));
        sl_items_free(items);
        ck_ok(sl_items_open(path, NULL, &items));
    }
    const sl_item_body *first = sl_items_body(items);
    for (unsigned step = 1; step <= 700; step++) {
        const unsigned which = (unsigned)(sl_random_at(step, 1) & 0xfe);
        const size_t from = (size_t)(sl_random_at(step, 2) % (EVERY_ROWS - 5));
        every_fill(&e, sparse_ids + from, 5, step);
        every_pick(&e, which);
        ck_ok(sl_items_set(items, &e.table));
        for (size_t i = from; i < from + 5; i++)
            for (unsigned c = 1; c < 8; c++)
                if (which >> c & 1) v.of[i][c] = step;
        if (step % 100 == 0) expect_versions(items, &v);
    }
    ck_assert_ptr_ne(sl_items_body(items), first);
    ck_assert_uint_eq(sl_items_size(items), EVERY_ROWS);
    ck_ok(sl_items_save(items, path, NULL));
    sl_items_free(items);
    ck_ok(sl_items_open(path, NULL, &items));
    expect_versions(items, &v);
    /* A missing value is a value. The id column stays as it is written, also if ids come as text. */
    static const char digits[] = "07";
    static const int64_t offsets[] = {0, 2};
    static const float missing = NAN;
    const sl_column columns[] = {{.name = "float", .type = SL_COLUMN_F32, .values = &missing},
                                 {.name = "id", .type = SL_COLUMN_TEXT, .values = digits, .offsets = offsets}};
    const sl_table table = {.struct_size = sizeof table, .rows = 1, .column_count = 2, .columns = columns};
    ck_ok(sl_items_set(items, &table));
    expect_text(items, 7, "float", "");
    expect_text(items, 7, "id", "7");
    expect_columns(items, 7, v.of[0][6], 1u << 6);
    sl_items_free(items);
}
END_TEST

/* The table counts rows that newer rows replace, and no new ones. The count decides when the table is compacted. */
START_TEST(outdated_rows_are_counted) {
    static const uint64_t some[] = {3, 4, 5, 6, 7}, others[] = {6, 7, 8};
    every e;
    every_fill(&e, some, 5, 0);
    sl_items *items = items_of(&e.table, 5, NULL);
    ck_assert_uint_eq(sl_items_body(items)->outdated, 0);
    every_fill(&e, others, 3, 1);
    ck_ok(sl_items_update(items, &e.table));
    ck_assert_uint_eq(sl_items_body(items)->outdated, 2);
    ck_ok(sl_items_update(items, &e.table));
    ck_assert_uint_eq(sl_items_body(items)->outdated, 5);
    const sl_item_body *first = sl_items_body(items);
    size_t outdated = 5, parts = 3;
    while (sl_items_body(items) == first) {
        ck_assert_uint_eq(sl_items_body(items)->outdated, outdated);
        ck_assert_uint_eq(sl_catalog_parts(&sl_items_body(items)->catalog), parts);
        ck_assert_uint_le(outdated + 4 * parts, 4096);
        ck_ok(sl_items_update(items, &e.table));
        outdated += 3;
        parts++;
    }
    ck_assert_uint_gt(outdated + 4 * parts, 4096);
    ck_assert_uint_eq(sl_items_body(items)->outdated, 0);
    ck_assert_uint_eq(sl_catalog_parts(&sl_items_body(items)->catalog), 1);
    sl_items_free(items);
}
END_TEST

/* Memory stays in proportion to the items, however often rows are replaced. */
START_TEST(updates_do_not_pile_up) {
    every e;
    fault_allocator memory;
    fault_allocator_init(&memory, 0);
    every_fill(&e, sparse_ids, EVERY_ROWS, 0);
    sl_items *items = items_of(&e.table, EVERY_ROWS, &memory.allocator);
    size_t most = 0, early = 0;
    for (unsigned step = 1; step <= 6000; step++) {
        every_fill(&e, sparse_ids + step % 30, 5, step);
        ck_ok(sl_items_update(items, &e.table));
        if (memory.live_bytes > most) most = memory.live_bytes;
        if (step == 2000) early = most;
    }
    ck_assert_uint_gt(early, 0);
    ck_assert_uint_le(most, early + early / 4);
    ck_assert_uint_eq(sl_items_size(items), EVERY_ROWS);
    expect_row(items, sparse_ids[6000 % 30], 6000);
    sl_items_free(items);
    ck_assert_uint_eq(memory.live_blocks, 0);
}
END_TEST

/* Readers see old rows or new rows, whole. So many updates run that the table is compacted under the readers. */
typedef struct reading {
    sl_items *items;
    int stop; /* atomic */
    size_t read, torn;
} reading;

static void *read_on(void *ctx) {
    reading *r = ctx;
    while (!__atomic_load_n(&r->stop, __ATOMIC_RELAXED)) {
        uint64_t id = sparse_ids[r->read % 30];
        char text[64], wanted[64];
        size_t length;
        if (sl_items_text(r->items, id, "text", text, sizeof text, &length) != SL_OK) r->torn++;
        snprintf(wanted, sizeof wanted, "t%llu.", (unsigned long long)id);
        if (id % 5 && strncmp(text, wanted, strlen(wanted)) != 0) r->torn++;
        r->torn += sl_items_size(r->items) != EVERY_ROWS;
        r->read++;
    }
    return NULL;
}

START_TEST(readers_go_on) {
    every e;
    char path[SCRATCH_PATH];
    pthread_t threads[2];
    every_fill(&e, sparse_ids, EVERY_ROWS, 0);
    scratch_name(&place, "items.sl", path);
    sl_items *items = items_of(&e.table, EVERY_ROWS, NULL);
    reading r[2] = {{.items = items}, {.items = items}};
    for (size_t t = 0; t < 2; t++)
        ck_assert_int_eq(pthread_create(&threads[t], NULL, read_on, &r[t]), 0);
    for (unsigned step = 1; step <= 4000; step++) {
        every_fill(&e, sparse_ids + step % 30, 5, step);
        ck_ok(sl_items_update(items, &e.table));
        if (step % 1000 == 0) ck_ok(sl_items_save(items, path, NULL));
    }
    for (size_t t = 0; t < 2; t++) {
        __atomic_store_n(&r[t].stop, 1, __ATOMIC_RELAXED);
        pthread_join(threads[t], NULL);
        ck_assert_uint_eq(r[t].torn, 0);
    }
    sl_items_free(items);
}
END_TEST

/* Updates that return just before a save has its lock. */
static sl_items *updated_before_the_lock;
static const unsigned last_version = 2000; /* so many updates compact the table */

sl_status __real_sl_items_lock(const sl_items *items);
sl_status __wrap_sl_items_lock(const sl_items *items);

sl_status __wrap_sl_items_lock(const sl_items *items) {
    sl_items *own = updated_before_the_lock;
    every e;
    updated_before_the_lock = NULL;
    for (unsigned version = 1; own && version <= last_version; version++) {
        every_fill(&e, sparse_ids, 5, version);
        ck_ok(sl_items_update(own, &e.table));
    }
    return __real_sl_items_lock(items);
}

START_TEST(a_save_has_what_returned_before_it) {
    every e;
    char path[SCRATCH_PATH], text[64], wanted[64];
    size_t length, i = 0;
    while (sparse_ids[i] % 5 == 0)
        i++;
    every_fill(&e, sparse_ids, EVERY_ROWS, 0);
    scratch_name(&place, "items.sl", path);
    sl_items *items = items_of(&e.table, EVERY_ROWS, NULL), *opened;
    updated_before_the_lock = items;
    ck_ok(sl_items_save(items, path, NULL));
    ck_assert_ptr_null(updated_before_the_lock);
    ck_ok(sl_items_open(path, NULL, &opened));
    ck_ok(sl_items_text(opened, sparse_ids[i], "text", text, sizeof text, &length));
    snprintf(wanted, sizeof wanted, "t%llu.%u", (unsigned long long)sparse_ids[i], last_version);
    ck_assert_str_eq(text, wanted);
    sl_items_free(opened);
    sl_items_free(items);
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("items");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, what_goes_in_comes_out);
    tcase_add_test(tests, texts_are_cut);
    tcase_add_test(tests, an_empty_table_is_one);
    tcase_add_test(tests, ids_come_in_several_types);
    tcase_add_test(tests, bad_rows_are_refused);
    tcase_add_test(tests, updates_take_ids_of_any_type);
    tcase_add_loop_test(tests, bad_updates_are_refused_whole, 0, 2);
    tcase_add_loop_test(tests, updates_replace_and_add, 0, 2);
    tcase_add_loop_test(tests, set_leaves_the_other_columns, 0, 2);
    tcase_add_test(tests, outdated_rows_are_counted);
    tcase_add_test(tests, updates_do_not_pile_up);
    TCase *threads = tcase_create("threads");
    tcase_add_checked_fixture(threads, set_up, tear_down);
    tcase_add_test(threads, readers_go_on);
    tcase_add_test(threads, a_save_has_what_returned_before_it);
    return check_main("items", (TCase *[]){tests, threads}, 2);
}
