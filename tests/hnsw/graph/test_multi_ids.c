/* Ids of several vectors: they are added, counted, got, deleted and given words together, in memory, in files, and in
 * files that are written in place. */
#include "base/random.h"
#include "hnsw/index/describe.h"
#include "tests/support/check_main.h"
#include "tests/support/clusters.h"
#include "tests/support/faults.h"
#include "tests/support/indexes.h"
#include "tests/support/scratch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N = 5000, ROOM = 6000, DIM = 8, IDS = 700, MOST = 64 };

static scratch place;
static float *x;            /* ROOM vectors */
static uint64_t ids[ROOM];  /* of the rows */
static uint64_t tags[ROOM]; /* of the rows, unless they are deleted */
static int there[ROOM];     /* rows that are in the index and not deleted */

static void set_up(void) {
    scratch_open(&place);
    x = clusters_make(ROOM, DIM, 0.3, 4);
    memset(there, 0, sizeof there);
    for (size_t row = 0; row < ROOM; row++) {
        ids[row] = 1000 + 11 * (sl_random_at(3, row) % IDS);
        tags[row] = row;
    }
}

static void tear_down(void) {
    free(x);
    scratch_close(&place);
}

static void params_of(sl_index_params *params) {
    indexes_params(params, DIM, SL_METRIC_L2);
    params->codes = SL_CODES_F32;
    params->multi = 1;
    params->tags = 1;
}

static sl_status add_rows(sl_index *index, size_t first, size_t end) {
    sl_add_params params;
    sl_add_params_init(&params);
    params.threads = 1;
    params.tags = tags + first;
    sl_status status = sl_index_add(index, x + first * DIM, SL_F32, end - first, 0, ids + first, &params);
    for (size_t row = first; row < end && status == SL_OK; row++)
        there[row] = 1;
    return status;
}

/* Some come first, and the map of ids is made before the others come. */
static sl_index *make(void) {
    sl_index_params params;
    sl_index *index;
    int found;
    params_of(&params);
    ck_ok(sl_index_create(&params, &index));
    ck_ok(add_rows(index, 0, 900));
    ck_ok(sl_index_contains(index, ids[0], &found));
    ck_assert(found);
    ck_ok(add_rows(index, 900, 4000)); /* numbers all anew */
    ck_ok(add_rows(index, 4000, N));
    return index;
}

static size_t rows_of(uint64_t id) {
    size_t count = 0;
    for (size_t row = 0; row < ROOM; row++)
        count += there[row] && ids[row] == id;
    return count;
}

/* All of an id's vectors are got, each once. */
static void expect_vectors(sl_index *index, uint64_t id) {
    static float vectors[MOST * DIM];
    size_t wanted = rows_of(id), count;
    int found;
    ck_ok(sl_index_contains(index, id, &found));
    ck_assert_int_eq(found, wanted != 0);
    if (!wanted) {
        ck_fails(sl_index_get_all(index, id, SL_F32, vectors, MOST, &count), SL_ENOTFOUND, "is not in the index");
        return;
    }
    ck_ok(sl_index_get_all(index, id, SL_F32, vectors, MOST, &count));
    ck_assert_uint_eq(count, wanted);
    for (size_t row = 0; row < ROOM; row++) {
        size_t same = 0;
        for (size_t i = 0; i < count; i++)
            same += memcmp(vectors + i * DIM, x + row * DIM, DIM * sizeof *x) == 0;
        if (ids[row] == id) ck_assert_uint_eq(same, (size_t)there[row]);
    }
    if (count == 1) ck_ok(sl_index_get(index, &id, 1, SL_F32, vectors));
    if (count > 1) ck_fails(sl_index_get(index, &id, 1, SL_F32, vectors), SL_EUNSUPPORTED, "sl_index_get_all");
}

static void expect_all(sl_index *index) {
    static uint64_t listed[ROOM];
    size_t count, vectors = 0, different = 0;
    ck_assert_int_eq(indexes_stats(index).multi, 1);
    for (size_t i = 0; i < IDS; i += 7)
        expect_vectors(index, 1000 + 11 * i);
    for (size_t i = 0; i < IDS; i++) {
        vectors += rows_of(1000 + 11 * i);
        different += rows_of(1000 + 11 * i) != 0;
    }
    ck_assert_uint_eq(sl_index_size(index), vectors);
    ck_ok(sl_index_ids(index, listed, ROOM, &count));
    ck_assert_uint_eq(count, different);
    for (size_t i = 0; i < count; i++) {
        ck_assert_uint_gt(rows_of(listed[i]), 0);
        for (size_t j = 0; j < i; j++)
            ck_assert_uint_ne(listed[i], listed[j]);
    }
}

static void delete_id(sl_index *index, uint64_t id) {
    ck_ok(sl_index_delete(index, &id, 1));
    for (size_t row = 0; row < ROOM; row++)
        there[row] &= ids[row] != id;
}

static sl_index *opened(int writable) {
    sl_open_params params;
    sl_index *index;
    sl_open_params_init(&params);
    params.writable = writable;
    ck_ok(sl_index_open(place.path, &params, &index));
    return index;
}

static void save(sl_index *index, size_t room) {
    sl_save_params params;
    indexes_save_params(&params);
    params.room = room;
    ck_ok(sl_index_save(index, place.path, &params));
}

START_TEST(added_and_deleted) {
    sl_index *index = make();
    expect_all(index);
    const uint64_t some[] = {ids[0], ids[1], 5}, twice[] = {ids[0], ids[0]};
    ck_fails(sl_index_delete(index, some, 3), SL_ENOTFOUND, "number 2: id 5");
    ck_fails(sl_index_delete(index, twice, 2), SL_ENOTFOUND, "given twice");
    expect_all(index);
    for (size_t i = 0; i < IDS; i += 2)
        if (rows_of(1000 + 11 * i)) delete_id(index, 1000 + 11 * i);
    expect_all(index);
    for (size_t row = N; row < ROOM; row++)
        ck_ok(add_rows(index, row, row + 1));
    expect_all(index);
    indexes_sound(index);
    sl_index_free(index);
}
END_TEST

/* One id over and over: many vectors, deleted and added again. */
START_TEST(one_id_of_many) {
    sl_index *index = make();
    size_t count;
    int found;
    uint64_t one = 7;
    for (size_t turn = 0; turn < 3; turn++) {
        for (size_t i = 0; i < 600; i++)
            ck_ok(indexes_add(index, x + i * DIM, SL_F32, 1, &one));
        ck_ok(sl_index_get_all(index, one, SL_F32, NULL, 0, &count));
        ck_assert_uint_eq(count, 600);
        ck_ok(sl_index_delete(index, &one, 1));
        ck_ok(sl_index_contains(index, one, &found));
        ck_assert(!found);
    }
    ck_assert_uint_eq(sl_index_size(index), N);
    ck_assert_uint_lt(indexes_stats(index).deleted + indexes_stats(index).reusable, 1800);
    sl_index_free(index);
}
END_TEST

/* An add that fails or is cancelled changes no id. */
START_TEST(undone) {
    sl_index *index = make();
    sl_add_params params;
    sl_add_params_init(&params);
    params.progress = indexes_cancel;
    ck_fails(sl_index_add(index, x + N * DIM, SL_F32, ROOM - N, 0, ids + N, &params), SL_ECANCELED, "");
    expect_all(index);
    uint64_t reserved[] = {ids[0], UINT64_MAX};
    ck_fails(indexes_add(index, x, SL_F32, 2, reserved), SL_EINVAL, "row 1: id 2^64 - 1 is reserved");
    expect_all(index);
    ck_ok(add_rows(index, N, ROOM));
    expect_all(index);
    sl_index_free(index);
}
END_TEST

/* Ids that are nodes' numbers until one comes again. */
START_TEST(automatic_ids) {
    sl_index_params params;
    sl_index *index;
    uint64_t listed[20];
    size_t count;
    params_of(&params);
    params.tags = 0;
    ck_ok(sl_index_create(&params, &index));
    ck_ok(indexes_add(index, x, SL_F32, 10, NULL));
    ck_assert_uint_eq(indexes_stats(index).bytes_ids, 0);
    ck_ok(indexes_add(index, x + 10 * DIM, SL_F32, 3, (uint64_t[]){3, 3, 4}));
    ck_ok(indexes_add(index, x + 13 * DIM, SL_F32, 1, NULL));
    ck_ok(sl_index_ids(index, listed, 20, &count));
    ck_assert_uint_eq(count, 11);
    ck_ok(sl_index_get_all(index, 3, SL_F32, NULL, 0, &count));
    ck_assert_uint_eq(count, 3);
    ck_ok(sl_index_delete(index, (uint64_t[]){3, 4}, 2));
    ck_assert_uint_eq(sl_index_size(index), 9);
    sl_index_free(index);
}
END_TEST

/* All vectors of an id get its word. */
START_TEST(words_of_an_id) {
    sl_index *index = make();
    const uint64_t some[] = {ids[5], ids[6]}, to[] = {100077, 88}, missing[] = {ids[5], 3};
    uint64_t word[2];
    ck_fails(sl_index_set_tags(index, missing, 2, to), SL_ENOTFOUND, "no tags were set");
    ck_ok(sl_index_set_tags(index, some, 2, to));
    ck_ok(sl_index_get_tags(index, some, 2, word));
    ck_assert_mem_eq(word, to, sizeof to);
    for (size_t node = 0; node < N; node++) {
        const uint64_t id = sl_id_of(&index->graph, (uint32_t)node), tag = sl_tag_of(&index->graph, (uint32_t)node);
        ck_assert_int_eq(id == some[0], tag == 100077);
    }
    sl_index_free(index);
}
END_TEST

static sl_status replace_one(sl_index *index, size_t n, const uint64_t *of, const float *rows, const float *old) {
    sl_add_params params;
    sl_add_params_init(&params);
    params.threads = 1;
    params.replace = SL_REPLACE_ONE;
    params.old = old;
    return sl_index_add(index, rows, SL_F32, n, 0, of, &params);
}

/* Sound input that replaces: row N + i of `x` takes the place of row `from[i]`. */
enum { REPLACED = 300 };
static void replace_rows(sl_index *index) {
    static float old[REPLACED * DIM];
    static size_t from[REPLACED];
    for (size_t i = 0, row = 0; i < REPLACED; row += 3) {
        if (!there[row]) continue;
        from[i] = row;
        memcpy(old + i * DIM, x + row * DIM, DIM * sizeof *x);
        ids[N + i++] = ids[row];
    }
    ck_ok(replace_one(index, REPLACED, ids + N, x + N * DIM, old));
    for (size_t i = 0; i < REPLACED; i++) {
        there[from[i]] = 0;
        there[N + i] = 1;
    }
}

/* Each new vector takes the place of one of its id, in memory and in a file that is written in place. */
START_TEST(replaces_one) {
    for (int live = 0; live < 2; live++) {
        sl_index *index = make();
        if (live) {
            save(index, ROOM);
            sl_index_free(index);
            index = opened(1);
        }
        replace_rows(index);
        ck_assert_uint_eq(sl_index_size(index), N);
        expect_all(index);
        for (size_t i = 0; i < REPLACED; i++)
            expect_vectors(index, ids[N + i]);
        indexes_sound(index);
        sl_index_free(index);
        tear_down();
        set_up();
    }
}
END_TEST

/* An id's vectors after a replacement, whose rows are `left` of x, or later ones. */
static void ck_left(sl_index *index, uint64_t id, size_t n, const float *const *left) {
    float got[MOST * DIM];
    size_t count;
    ck_ok(sl_index_get_all(index, id, SL_F32, got, MOST, &count));
    ck_assert_uint_eq(count, n);
    for (size_t i = 0; i < n; i++) {
        size_t same = 0;
        for (size_t j = 0; j < n; j++)
            same += memcmp(got + j * DIM, left[i], sizeof *got * DIM) == 0;
        ck_assert_uint_ge(same, 1);
    }
}

/* Without `old`, the nearest vector goes. Rows of one id take different ones; rows beyond the last are added. */
START_TEST(replaces_the_nearest) {
    sl_index_params params;
    sl_index *index;
    const uint64_t seven[] = {7, 7, 7, 8, 7}, absent[] = {9};
    float near[DIM], nan[DIM] = {0};
    params_of(&params);
    params.metric = SL_METRIC_IP; /* which vector goes is no matter of the metric */
    params.tags = 0;
    ck_ok(sl_index_create(&params, &index));
    ck_ok(indexes_add(index, x, SL_F32, 4, seven));
    for (size_t d = 0; d < DIM; d++)
        near[d] = x[DIM + d] + 1e-3f;
    ck_ok(replace_one(index, 1, seven, near, NULL));
    ck_left(index, 7, 3, (const float *[]){x, near, x + 2 * DIM});
    ck_ok(replace_one(index, 2, seven, x + 10 * DIM, (const float[2 * DIM]){0})); /* both are nearest to one */
    float got[MOST * DIM];
    size_t count;
    ck_ok(sl_index_get_all(index, 7, SL_F32, got, MOST, &count));
    ck_assert_uint_eq(count, 3);
    ck_ok(replace_one(index, 3, seven, x + 10 * DIM, NULL));
    ck_left(index, 7, 3, (const float *[]){x + 10 * DIM, x + 11 * DIM, x + 12 * DIM});
    ck_ok(replace_one(index, 5, seven, x + 20 * DIM, NULL));
    ck_left(index, 7, 4, (const float *[]){x + 20 * DIM, x + 21 * DIM, x + 22 * DIM, x + 24 * DIM});
    ck_left(index, 8, 1, (const float *[]){x + 23 * DIM});
    ck_ok(replace_one(index, 1, absent, x, x + DIM));
    ck_left(index, 9, 1, (const float *[]){x});
    nan[2] = (float)NAN;
    ck_fails(replace_one(index, 1, seven, x, nan), SL_EVALUE, "row of old 0");
    ck_fails(replace_one(index, 1, seven, x, (const float *)(const void *)((const char *)x + 1)), SL_EINVAL,
             "multiples");
    ck_assert_uint_eq(sl_index_size(index), 6);
    indexes_sound(index);
    sl_index_free(index);
}
END_TEST

START_TEST(saved_and_opened) {
    sl_index *index = make();
    delete_id(index, ids[3]);
    for (size_t room = 0; room <= ROOM; room += ROOM) {
        save(index, room);
        for (sl_place where = SL_PLACE_DRAM; where <= SL_PLACE_PMEM; where++) {
            sl_index *again = indexes_open(place.path, where);
            expect_all(again);
            indexes_sound(again);
            sl_index_free(again);
        }
    }
    sl_index_free(index);
    index = indexes_open(place.path, SL_PLACE_DRAM);
    ck_ok(add_rows(index, N, ROOM));
    expect_all(index);
    sl_index_free(index);
}
END_TEST

/* A reader follows what its writer synced, also where it has a map already; a snapshot has it too. */
START_TEST(written_in_place) {
    char copy[SCRATCH_PATH];
    scratch_name(&place, "copy.sl", copy);
    sl_index *writer = make();
    save(writer, ROOM);
    sl_index_free(writer);
    writer = opened(1);
    sl_index *reader = opened(0);
    expect_all(reader);
    ck_ok(add_rows(writer, N, N + 500));
    delete_id(writer, ids[8]);
    delete_id(writer, ids[N + 499]);
    ck_ok(sl_index_sync(writer));
    expect_all(writer);
    expect_all(reader);
    ck_ok(add_rows(writer, N + 500, ROOM));
    ck_ok(sl_index_sync(writer));
    expect_all(reader);
    indexes_sound(writer);
    ck_ok(sl_index_snapshot(place.path, copy, NULL));
    sl_index_free(writer);
    sl_index_free(reader);
    reader = indexes_open(copy, SL_PLACE_MAP);
    expect_all(reader);
    sl_index_free(reader);
}
END_TEST

/* The vectors of an id that are not damaged stay. */
START_TEST(damaged_vectors_go_alone) {
    sl_index *index = make();
    size_t dropped;
    save(index, ROOM);
    sl_index_free(index);
    index = opened(1);
    const uint64_t id = sl_id_of(&index->graph, 77);
    const size_t before = rows_of(id);
    size_t count;
    ck_assert_uint_gt(before, 1);
    ck_ok(sl_index_get_all(index, id, SL_F32, NULL, 0, &count));
    ck_assert_uint_eq(count, before);
    sl_row(&index->graph, 77)[1] ^= 4;
    ck_ok(sl_index_drop_damaged(index, 1, &dropped));
    ck_assert_uint_eq(dropped, 1);
    ck_ok(sl_index_get_all(index, id, SL_F32, NULL, 0, &count));
    ck_assert_uint_eq(count, before - 1);
    ck_ok(sl_index_delete(index, &id, 1));
    ck_assert_uint_eq(indexes_stats(index).deleted, before);
    ck_ok(sl_index_sync(index));
    sl_index_free(index);
}
END_TEST

/* An index of one vector an id does not change. A file's section that says so is empty. */
START_TEST(bad_input) {
    sl_index_params params;
    sl_index *index, *broken;
    size_t count;
    float vector[DIM];
    params_of(&params);
    params.multi = 0;
    params.tags = 0;
    ck_ok(sl_index_create(&params, &index));
    ck_ok(indexes_add(index, x, SL_F32, 1, ids));
    ck_fails(indexes_add(index, x, SL_F32, 1, ids), SL_EEXIST, "already in the index");
    ck_assert_int_eq(indexes_stats(index).multi, 0);
    ck_ok(sl_index_get_all(index, ids[0], SL_F32, vector, 1, &count));
    ck_assert_uint_eq(count, 1);
    ck_fails(sl_index_get_all(index, 1, SL_F32, vector, 1, &count), SL_ENOTFOUND, "id 1 ");
    ck_fails(sl_index_get_all(index, ids[0], SL_I16, vector, 1, &count), SL_ETYPE, "f32");
    ck_fails(sl_index_get_all(index, ids[0], SL_F32, NULL, 1, &count), SL_EINVAL, "NULL");
    ck_fails(sl_index_get_all(NULL, ids[0], SL_F32, vector, 1, &count), SL_EINVAL, "NULL");
    sl_index_free(index);
    index = make();
    sl_description file;
    sl_progress progress;
    sl_describe(&index->graph, &(sl_described_as){.id_width = sizeof(uint64_t)}, &file);
    for (size_t i = 0; i < file.count; i++) {
        if (file.sections[i].kind != SL_SECTION_MULTI) continue;
        file.sections[i].data = &params;
        file.sections[i].size = 8;
    }
    sl_progress_start(&progress, NULL, NULL, 0);
    ck_ok(sl_store_save(place.path, &(sl_file_content){&sl_index_file, &file.header, file.sections, file.count}, NULL,
                        NULL, &progress));
    ck_fails(sl_index_open(place.path, NULL, &broken), SL_ECORRUPT, "several vectors an id");
    sl_index_free(index);
}
END_TEST

START_TEST(every_allocation_fails_once) {
    fault_allocator memory;
    fault_allocator_init(&memory, 0);
    sl_index_params params;
    sl_index *index;
    uint64_t listed[ROOM];
    size_t count, fails;
    params_of(&params);
    params.allocator = &memory.allocator;
    ck_ok(sl_index_create(&params, &index));
    ck_ok(add_rows(index, 0, 900));
    ck_ok(sl_index_reserve(index, N));
    for (int what = 0; what < 5; what++) {
        fails = 0;
        for (sl_status status = SL_ENOMEM; status != SL_OK; fails++) {
            memory.calls = 0;
            memory.fail_at = fails + 1;
            status = what == 0   ? sl_index_ids(index, listed, ROOM, &count)
                     : what == 1 ? sl_index_get_all(index, ids[0], SL_F32, NULL, 0, &count)
                     : what == 2 ? add_rows(index, 900, 1000)
                     : what == 3 ? replace_one(index, 1, ids, x, x) /* by itself */
                                 : sl_index_delete(index, ids, 1);
            ck_assert(status == SL_OK || status == SL_ENOMEM);
            memory.fail_at = 0;
            if (status != SL_OK) expect_vectors(index, ids[0]);
        }
        ck_assert_msg(fails >= 2, "%d: no failure", what);
    }
    for (size_t row = 0; row < ROOM; row++)
        there[row] &= ids[row] != ids[0];
    expect_all(index);
    sl_index_free(index);
    ck_assert_uint_eq(memory.live_blocks, 0);
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("multi_ids");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, added_and_deleted);
    tcase_add_test(tests, one_id_of_many);
    tcase_add_test(tests, undone);
    tcase_add_test(tests, automatic_ids);
    tcase_add_test(tests, words_of_an_id);
    tcase_add_test(tests, replaces_one);
    tcase_add_test(tests, replaces_the_nearest);
    tcase_add_test(tests, saved_and_opened);
    tcase_add_test(tests, written_in_place);
    tcase_add_test(tests, damaged_vectors_go_alone);
    tcase_add_test(tests, bad_input);
    tcase_add_test(tests, every_allocation_fails_once);
    return check_main("multi_ids", (TCase *[]){tests}, 1);
}
