/* Deleted items are gone from a table, its readers and its files, until an update adds them again. A table remembers
 * which ids were deleted, within bounds. A change that fails changes nothing. */
#include "base/random.h"
#include "recommend/items.h"
#include "tests/support/check_main.h"
#include "tests/support/faults.h"
#include "tests/support/hostile.h"
#include "tests/support/indexes.h"
#include "tests/support/item_rows.h"
#include "tests/support/scratch.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static scratch place;
static char path[SCRATCH_PATH];

static void set_up(void) {
    scratch_open(&place);
    scratch_name(&place, "items.sl", path);
}
static void tear_down(void) {
    scratch_close(&place);
}

/* Saves the table and opens its file in its stead. */
static sl_items *reopen(sl_items *items) {
    sl_items *opened;
    ck_ok(sl_items_save(items, path, NULL));
    sl_items_free(items);
    ck_ok(sl_items_open(path, NULL, &opened));
    return opened;
}

static void expect_gone(const sl_items *items, uint64_t id) {
    char text[8];
    size_t length;
    ck_fails(sl_items_text(items, id, "text", text, sizeof text, &length), SL_ENOTFOUND, "is not in the item table");
}

static sl_row_ref ref_of(const sl_items *items, uint64_t id) {
    return sl_catalog_find(&sl_items_body(items)->catalog, id);
}

/* A table of n ids from `first` on, and of their doubles. */
typedef struct numbers {
    sl_table table;
    sl_column columns[2];
    int64_t *ids;
    double *values;
} numbers;

static void numbers_make(numbers *of, size_t n) {
    of->ids = malloc(n * sizeof *of->ids);
    of->values = malloc(n * sizeof *of->values);
    of->columns[0] = (sl_column){.name = "id", .type = SL_COLUMN_I64, .values = of->ids};
    of->columns[1] = (sl_column){.name = "text", .type = SL_COLUMN_F64, .values = of->values};
    of->table = (sl_table){.struct_size = sizeof of->table, .rows = n, .column_count = 2, .columns = of->columns};
}
static void numbers_fill(numbers *of, uint64_t first, uint64_t step) {
    for (size_t i = 0; i < of->table.rows; i++) {
        of->ids[i] = (int64_t)((first + i) * step);
        of->values[i] = (double)of->ids[i] / 2;
    }
}
static void numbers_free(numbers *of) {
    free(of->ids);
    free(of->values);
}

/* ---------------------------------------------------------------------------------------------------------------
 * In memory and in files
 * ------------------------------------------------------------------------------------------------------------- */

/* The ids' rows are gone, and all others are as they were. */
static void expect_without(const sl_items *items, const uint64_t *gone, size_t n, unsigned version) {
    ck_assert_uint_eq(sl_items_size(items), EVERY_ROWS - n);
    for (size_t i = 0; i < EVERY_ROWS; i++) {
        int deleted = 0;
        for (size_t g = 0; g < n; g++)
            deleted |= sparse_ids[i] == gone[g];
        if (deleted)
            expect_gone(items, sparse_ids[i]);
        else
            expect_row(items, sparse_ids[i], version);
    }
}

START_TEST(deleted_ids_are_gone) {
    static const uint64_t gone[] = {7, 1000000007, UINT64_C(1) << 50, 0}, twice[] = {3, 4, 5, 4}, absent[] = {3, 11},
                          before[] = {3, 4, 7};
    every e;
    every_fill(&e, sparse_ids, EVERY_ROWS, 1);
    sl_items *items = items_of(&e.table, 9, NULL);
    if (_i) items = reopen(items);
    ck_fails(sl_items_delete(items, twice, 4), SL_ENOTFOUND, "id 4 is given twice, as number 1 and 3");
    ck_fails(sl_items_delete(items, absent, 2), SL_ENOTFOUND, "number 1: id 11 is not in the item table");
    ck_fails(sl_items_delete(NULL, gone, 4), SL_EINVAL, "");
    ck_fails(sl_items_delete(items, NULL, 4), SL_EINVAL, "");
    ck_ok(sl_items_delete(items, NULL, 0));
    expect_without(items, gone, 0, 1);
    ck_ok(sl_items_delete(items, gone, 4));
    expect_without(items, gone, 4, 1);
    ck_fails(sl_items_delete(items, before, 3), SL_ENOTFOUND, "number 2: id 7");
    every_fill(&e, gone, 1, 2);
    ck_fails(sl_items_set(items, &e.table), SL_ENOTFOUND, "row 0: column 'id': id 7 is not in the item table");
    expect_without(items, gone, 4, 1);
    items = reopen(items);
    expect_without(items, gone, 4, 1);
    sl_items_check_report report = {.struct_size = sizeof report};
    ck_ok(sl_items_check(items, NULL, &report));
    ck_assert_uint_eq(report.rows, EVERY_ROWS - 4);
    /* An update brings ids back, with their new rows. */
    every_fill(&e, gone, 2, 2);
    ck_ok(sl_items_update(items, &e.table));
    for (int turn = 0; turn < 2; turn++) {
        ck_assert_uint_eq(sl_items_size(items), EVERY_ROWS - 2);
        expect_row(items, gone[0], 2);
        expect_row(items, gone[1], 2);
        expect_gone(items, gone[2]);
        items = reopen(items);
    }
    ck_ok(sl_items_delete(items, gone, 2));
    expect_without(items, gone, 4, 1);
    sl_items_free(items);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Many changes
 * ------------------------------------------------------------------------------------------------------------- */

enum { MANY = 200, PICKED = 5 };

typedef struct model {
    uint64_t ids[MANY];
    unsigned versions[MANY][EVERY_COLUMNS];
    int there[MANY];
    size_t size;
} model;

static void expect_model(const sl_items *items, const model *m) {
    ck_assert_uint_eq(sl_items_size(items), m->size);
    for (size_t i = 0; i < MANY; i++) {
        if (!m->there[i]) expect_gone(items, m->ids[i]);
        for (unsigned c = 0; c < EVERY_COLUMNS && m->there[i]; c++)
            expect_columns(items, m->ids[i], m->versions[i][c], 1u << c);
    }
}

/* Picks distinct items, or such that are there. Returns how many. */
static size_t pick(const model *m, unsigned step, int there, size_t *picked) {
    size_t n = 0, at = (size_t)(sl_random_at(step, 0) % MANY);
    for (size_t i = 0; i < MANY && n < PICKED; i++, at = (at + 37) % MANY)
        if (!there || m->there[at]) picked[n++] = at;
    return n;
}

static void change(sl_items *items, model *m, unsigned step) {
    const unsigned kind = (unsigned)(sl_random_at(step, 1) % 3), which = (unsigned)(sl_random_at(step, 2) & 0xfe);
    size_t picked[PICKED], n = pick(m, step, kind != 0, picked);
    uint64_t ids[PICKED];
    every e;
    for (size_t i = 0; i < n; i++)
        ids[i] = m->ids[picked[i]];
    every_fill(&e, ids, n, step);
    if (kind == 0) ck_ok(sl_items_update(items, &e.table));
    if (kind == 1) every_pick(&e, which);
    if (kind == 1) ck_ok(sl_items_set(items, &e.table));
    if (kind == 2) ck_ok(sl_items_delete(items, ids, n));
    for (size_t i = 0; i < n; i++) {
        const int was = m->there[picked[i]];
        m->there[picked[i]] = kind != 2;
        m->size = m->size + (size_t)(kind != 2) - (size_t)was;
        for (unsigned c = 0; c < EVERY_COLUMNS && kind < 2; c++)
            if (kind == 0 || which >> c & 1) m->versions[picked[i]][c] = step;
    }
}

/* Updates, partial updates and deletions in any order, in memory and over files. */
START_TEST(changes_of_all_kinds_agree_with_a_model) {
    static model m;
    every e;
    memset(&m, 0, sizeof m);
    for (size_t i = 0; i < MANY; i++)
        m.ids[i] = _i ? i * 90001 : i;
    every_fill(&e, m.ids, EVERY_ROWS, 0);
    sl_items *items = items_of(&e.table, 9, NULL);
    for (size_t i = 0; i < EVERY_ROWS; i++)
        m.there[i] = 1;
    m.size = EVERY_ROWS;
    size_t bodies = 0;
    const sl_item_body *last = NULL;
    for (unsigned step = 1; step <= 4000; step++) {
        change(items, &m, step);
        bodies += sl_items_body(items) != last;
        last = sl_items_body(items);
        if (step % 400 == 0) expect_model(items, &m);
        if (step % 1600 == 0) items = reopen(items);
    }
    ck_assert_uint_gt(bodies, 5);
    items = reopen(items);
    expect_model(items, &m);
    sl_items_free(items);
}
END_TEST

/* Eighty times as many ids come and go as are there at one time. Memory is level. */
START_TEST(turnover_takes_no_more_memory) {
    enum { LIVE = 8000, ROUND = 4000, ROUNDS = 80 * LIVE / ROUND };
    const uint64_t step = _i ? 90001 : 1;
    fault_allocator memory;
    fault_allocator_init(&memory, 0);
    numbers of;
    numbers_make(&of, LIVE);
    numbers_fill(&of, 0, step);
    sl_items *items = items_of(&of.table, LIVE, &memory.allocator);
    of.table.rows = ROUND;
    size_t most = 0, early = 0;
    for (size_t round = 0; round < ROUNDS; round++) {
        uint64_t gone[ROUND];
        for (size_t i = 0; i < ROUND; i++)
            gone[i] = (round * ROUND + i) * step;
        ck_ok(sl_items_delete(items, gone, ROUND));
        numbers_fill(&of, LIVE + round * ROUND, step);
        ck_ok(sl_items_update(items, &of.table));
        ck_assert_uint_eq(sl_items_size(items), LIVE);
        if (memory.live_bytes > most) most = memory.live_bytes;
        /* By then there are all tombstones that a table of this size keeps, and ids are too large for an array. */
        if (round == ROUNDS / 2) early = most;
    }
    ck_assert_uint_gt(ROUNDS / 2 * ROUND, 2 * SL_TOMBSTONES_LEAST);
    ck_assert_msg(most <= early + early / 10, "%zu bytes, after half of the rounds %zu", most, early);
    for (size_t i = 0; i < LIVE; i++)
        ck_assert(sl_ref_is_row(ref_of(items, (ROUNDS * ROUND + i) * step)));
    sl_items_free(items);
    ck_assert_uint_eq(memory.live_blocks, 0);
    numbers_free(&of);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Tombstones
 * ------------------------------------------------------------------------------------------------------------- */

/* Makes the table compact itself with the next change. */
static void make_outdated(sl_items *items) {
    sl_items_body(items)->outdated = 1u << 20;
}

/* Compacts the table, by a change that changes nothing. */
static void compact(sl_items *items, uint64_t id) {
    const sl_item_body *before = sl_items_body(items);
    every e;
    every_fill(&e, &id, 1, 0);
    every_pick(&e, 0);
    make_outdated(items);
    ck_ok(sl_items_set(items, &e.table));
    ck_assert_ptr_ne(sl_items_body(items), before);
}

/* The size of the directory, which holds the deleted ids. */
static uint64_t directory_size(void) {
    size_t size;
    sl_file_header header;
    unsigned char *bytes = file_read(path, &size);
    memcpy(&header, bytes, sizeof header);
    free(bytes);
    ck_assert_uint_eq(header.sections[0].kind, SL_SECTION_DIRECTORY);
    return header.sections[0].size;
}

START_TEST(tombstones_outlive_compaction_and_files) {
    static const uint64_t gone[] = {7, 1000000007, UINT64_C(1) << 50, 0};
    every e;
    every_fill(&e, sparse_ids, EVERY_ROWS, 0);
    sl_items *items = reopen(items_of(&e.table, EVERY_ROWS, NULL));
    const uint64_t plain = directory_size();
    ck_ok(sl_items_delete(items, gone, 4));
    for (int turn = 0; turn < 4; turn++) {
        for (size_t i = 0; i < 4; i++)
            ck_assert(sl_ref_is_tombstone(ref_of(items, gone[i])));
        ck_assert(ref_of(items, 11) == SL_NO_REF);
        if (turn % 2)
            items = reopen(items);
        else
            compact(items, 3);
    }
    ck_assert_uint_ge(directory_size(), plain + 5 * sizeof(uint64_t));
    ck_assert_uint_lt(directory_size(), plain + 6 * sizeof(uint64_t));
    /* A table without deleted ids has the file that it had before there were any. */
    every_fill(&e, gone, 4, 0);
    ck_ok(sl_items_update(items, &e.table));
    for (size_t i = 0; i < 4; i++)
        ck_assert(sl_ref_is_row(ref_of(items, gone[i])));
    items = reopen(items);
    ck_assert_uint_eq(directory_size(), plain);
    sl_items_free(items);
}
END_TEST

static void expect_remembered(const sl_items *items, uint64_t first, size_t n) {
    sl_deleted_ids deleted;
    ck_ok(sl_catalog_deleted(&sl_items_body(items)->catalog, &deleted));
    ck_assert_uint_eq(deleted.n, n);
    for (size_t i = 0; i < n; i++)
        ck_assert_uint_eq(deleted.ids[i], first + i);
    sl_deleted_ids_free(&items->allocator, &deleted);
}

/* A table remembers as many deletions as it ever had items, and at least SL_TOMBSTONES_LEAST: the newest. */
START_TEST(the_oldest_deletions_are_forgotten) {
    const size_t live = _i ? SL_TOMBSTONES_LEAST + 9000 : 7000, rounds = _i ? 2 : 11, all = rounds * live;
    const size_t remembered = _i ? live : SL_TOMBSTONES_LEAST;
    numbers of;
    numbers_make(&of, live);
    numbers_fill(&of, 0, 1);
    uint64_t *ids = malloc(live * sizeof *ids);
    sl_items *items = items_of(&of.table, live, NULL);
    for (size_t round = 0; round < rounds; round++) {
        for (size_t i = 0; i < live; i++)
            ids[i] = round * live + i;
        ck_ok(sl_items_delete(items, ids, live));
        ck_assert_uint_eq(sl_items_size(items), 0);
        /* A purge of all items is remembered whole. */
        if (round == 0) expect_remembered(items, 0, live);
        if (round == 0) items = reopen(items);
        if (round == 0) expect_remembered(items, 0, live);
        if (round + 1 == rounds) break;
        numbers_fill(&of, (round + 1) * live, 1);
        ck_ok(sl_items_update(items, &of.table));
    }
    expect_remembered(items, all - remembered, remembered);
    items = reopen(items);
    expect_remembered(items, all - remembered, remembered);
    ck_assert(sl_ref_is_tombstone(ref_of(items, all - 1)));
    ck_assert(ref_of(items, 0) == SL_NO_REF);
    sl_items_free(items);
    free(ids);
    numbers_free(&of);
}
END_TEST

/* Deletions have numbers of 32 bits. The last number serves for all later ones, until the table is compacted. */
START_TEST(deletions_outlast_their_numbers) {
    every e;
    every_fill(&e, sparse_ids, EVERY_ROWS, 0);
    sl_items *items = items_of(&e.table, EVERY_ROWS, NULL);
    sl_items_body(items)->catalog.deletions = UINT32_MAX - 3;
    for (size_t i = 0; i < 6; i++)
        ck_ok(sl_items_delete(items, &sparse_ids[i], 1));
    for (int turn = 0; turn < 2; turn++) {
        sl_deleted_ids deleted;
        for (size_t i = 0; i < 6; i++)
            ck_assert(sl_ref_is_tombstone(ref_of(items, sparse_ids[i])));
        ck_ok(sl_catalog_deleted(&sl_items_body(items)->catalog, &deleted));
        ck_assert_uint_eq(deleted.n, 6);
        ck_assert_mem_eq(deleted.ids, sparse_ids, 2 * sizeof *deleted.ids);
        sl_deleted_ids_free(&items->allocator, &deleted);
        compact(items, sparse_ids[20]);
        ck_assert_uint_eq(sl_items_body(items)->catalog.deletions, 6);
    }
    sl_items_free(items);
}
END_TEST

/* Opens the file with the directory's deleted ids, or its size, changed. */
static void refuse_list(const unsigned char *bytes, size_t size, size_t at, uint64_t word, uint64_t cut) {
    sl_file_header header;
    sl_items *items;
    unsigned char *changed = malloc(size);
    memcpy(changed, bytes, size);
    memcpy(&header, bytes, sizeof header);
    memcpy(changed + header.sections[0].offset + at, &word, sizeof word);
    header.sections[0].size -= cut;
    memcpy(changed, &header, sizeof header);
    hostile_seal_as(changed, size, &sl_items_file);
    file_write(path, changed, size);
    ck_fails(sl_items_open(path, NULL, &items), SL_ECORRUPT, "make it or copy it again");
    free(changed);
}

START_TEST(lists_of_deleted_ids_are_not_trusted) {
    static const uint64_t gone[] = {1000000007, UINT64_C(1) << 50, 39};
    every e;
    size_t size;
    every_fill(&e, sparse_ids, EVERY_ROWS, 0);
    sl_items *items = items_of(&e.table, EVERY_ROWS, NULL);
    ck_ok(sl_items_delete(items, gone, 3));
    items = reopen(items);
    sl_items_free(items);
    const size_t end = directory_size(), count = end - 8, last = end - 16, first = end - 32;
    unsigned char *bytes = file_read(path, &size);
    static const uint64_t counts[] = {0, 1, 2, 4, 5, UINT64_MAX >> 8, UINT64_MAX};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        refuse_list(bytes, size, count, counts[i], 0);
    refuse_list(bytes, size, first, 39, 0);      /* twice */
    refuse_list(bytes, size, last, 7, 0);        /* has a row */
    refuse_list(bytes, size, last, SL_NO_ID, 0); /* none */
    for (uint64_t cut = 1; cut < 32; cut++)
        refuse_list(bytes, size, last, 39, cut);
    free(bytes);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Failures
 * ------------------------------------------------------------------------------------------------------------- */

enum { UPDATE, SET, DELETE, KINDS };

static sl_status change_some(sl_items *items, int kind) {
    every e;
    if (kind == DELETE) return sl_items_delete(items, sparse_ids, 9);
    every_fill(&e, sparse_ids, 9, 8);
    return kind == SET ? sl_items_set(items, &e.table) : sl_items_update(items, &e.table);
}

/* Each allocation fails in turn: the table is as it was, or has all of the change. If there is no memory to compact it,
 * it stays as it is. */
START_TEST(failed_changes_change_nothing) {
    static const uint64_t gone[] = {34, 35};
    const int kind = _i / 2, compacts = _i % 2;
    size_t refused = 0, changed = 0;
    for (size_t fail_at = 1;; fail_at++) {
        fault_allocator memory;
        every e;
        fault_allocator_init(&memory, 0);
        every_fill(&e, sparse_ids, EVERY_ROWS, 1);
        sl_items *items = items_of(&e.table, EVERY_ROWS, &memory.allocator);
        ck_ok(sl_items_delete(items, gone, 2));
        if (compacts) make_outdated(items);
        memory.calls = 0;
        memory.fail_at = fail_at;
        sl_status status = change_some(items, kind);
        const size_t calls = memory.calls;
        memory.fail_at = 0;
        ck_assert(status == SL_OK || status == SL_ENOMEM);
        refused += status != SL_OK;
        changed += status == SL_OK;
        ck_assert_uint_eq(sl_items_size(items), EVERY_ROWS - 2 - (status == SL_OK && kind == DELETE ? 9 : 0));
        for (size_t i = 0; i < EVERY_ROWS; i++) {
            const unsigned version = i < 9 && status == SL_OK ? 8 : 1;
            if (sparse_ids[i] == 34 || sparse_ids[i] == 35 || (version == 8 && kind == DELETE))
                ck_assert(sl_ref_is_tombstone(ref_of(items, sparse_ids[i])));
            else
                expect_row(items, sparse_ids[i], version);
        }
        sl_items_free(items);
        ck_assert_uint_eq(memory.live_blocks, 0);
        if (calls < fail_at) break;
    }
    ck_assert_uint_gt(refused, 1);
    ck_assert_uint_gt(changed, compacts ? 5 : 0);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Readers
 * ------------------------------------------------------------------------------------------------------------- */

/* Readers meet whole rows, or tombstones. The columns "long" and "int" are always changed together, so that both tell
 * the same version of any one row. */
typedef struct reading {
    sl_items *items;
    int stop; /* atomic */
    size_t rows, tombstones, torn;
    unsigned last;
} reading;

static const uint64_t read_ids[] = {1, 2, 3, 4, 5, 7, 8, 9, 1000000007, UINT64_C(1) << 40, 31, 32, 33};
enum { READ = sizeof read_ids / sizeof *read_ids };

static void read_row(reading *r, uint64_t id) {
    sl_hazard *hazard;
    sl_item_body *body;
    char text[64];
    if (sl_items_begin(r->items, &hazard, &body) != SL_OK) {
        r->torn++;
        return;
    }
    const sl_row_ref ref = sl_catalog_find(&body->catalog, id);
    if (sl_ref_is_row(ref)) {
        const sl_items_part *part = sl_items_part_of(body, sl_ref_part(ref));
        const size_t row = sl_ref_row(ref);
        const int64_t by_long = ((const int64_t *)part->columns[1].values)[row] - (int64_t)(id * 1000);
        const int64_t by_int = -(int64_t)((const int32_t *)part->columns[2].values)[row] - (int64_t)(id % 1000);
        r->torn += by_long != by_int || part->ids[row] != id;
        r->rows++;
    } else {
        r->torn += ref == SL_NO_REF;
        r->tombstones++;
    }
    sl_items_end(hazard);
    sl_status status = sl_items_text(r->items, id, "text", text, sizeof text, NULL);
    r->torn += status != SL_OK && status != SL_ENOTFOUND;
}

static void *read_on(void *ctx) {
    reading *r = ctx;
    for (size_t i = 0; !__atomic_load_n(&r->stop, __ATOMIC_RELAXED); i++) {
        read_row(r, read_ids[i % READ]);
        r->torn += sl_items_size(r->items) > READ;
    }
    return NULL;
}

START_TEST(readers_see_whole_rows_or_none) {
    enum { STEPS = 4000 };
    every e;
    pthread_t threads[2];
    every_fill(&e, read_ids, READ, 0);
    sl_items *items = items_of(&e.table, READ, NULL);
    reading r[2] = {{.items = items}, {.items = items}};
    int there[READ];
    for (size_t i = 0; i < READ; i++)
        there[i] = 1;
    for (size_t t = 0; t < 2; t++)
        ck_assert_int_eq(pthread_create(&threads[t], NULL, read_on, &r[t]), 0);
    for (unsigned step = 1; step <= STEPS; step++) {
        const size_t at = (size_t)(sl_random_at(step, 5) % READ);
        every_fill(&e, &read_ids[at], 1, step);
        const unsigned kind = (unsigned)(sl_random_at(step, 6) % 3);
        if (kind == 1) every_pick(&e, 6);
        if (kind == 0 || !there[at])
            ck_ok(kind == 1 ? sl_items_update(items, &(sl_table){.struct_size = sizeof e.table,
                                                                 .rows = 1,
                                                                 .column_count = 3,
                                                                 .columns = e.columns})
                            : sl_items_update(items, &e.table));
        else if (kind == 1)
            ck_ok(sl_items_set(items, &e.table));
        else
            ck_ok(sl_items_delete(items, &read_ids[at], 1));
        there[at] = kind != 2 || !there[at];
        if (step % 1000 == 0) ck_ok(sl_items_save(items, path, NULL));
    }
    for (size_t t = 0; t < 2; t++) {
        __atomic_store_n(&r[t].stop, 1, __ATOMIC_RELAXED);
        pthread_join(threads[t], NULL);
        ck_assert_uint_eq(r[t].torn, 0);
        ck_assert_uint_gt(r[t].rows, 100);
    }
    sl_items_free(items);
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("deleted items");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_loop_test(tests, deleted_ids_are_gone, 0, 2);
    tcase_add_loop_test(tests, changes_of_all_kinds_agree_with_a_model, 0, 2);
    tcase_add_loop_test(tests, turnover_takes_no_more_memory, 0, 2);
    tcase_add_test(tests, tombstones_outlive_compaction_and_files);
    tcase_add_loop_test(tests, the_oldest_deletions_are_forgotten, 0, 2);
    tcase_add_test(tests, deletions_outlast_their_numbers);
    tcase_add_test(tests, lists_of_deleted_ids_are_not_trusted);
    tcase_add_loop_test(tests, failed_changes_change_nothing, 0, 2 * KINDS);
    TCase *threads = tcase_create("threads");
    tcase_add_checked_fixture(threads, set_up, tear_down);
    tcase_add_test(threads, readers_see_whole_rows_or_none);
    return check_main("deleted items", (TCase *[]){tests, threads}, 2);
}
