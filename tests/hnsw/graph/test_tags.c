/* Tags and keys: two words of a vector stay with its id through adding, numbering anew, saving, opening, changes in
 * place, deleting and snapshots. They are set whole or not at all, and files without them have no room for them. */
#include "base/random.h"
#include "hnsw/graph/index.h"
#include "tests/support/check_main.h"
#include "tests/support/clusters.h"
#include "tests/support/faults.h"
#include "tests/support/indexes.h"
#include "tests/support/scratch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST = 900, N = 5000, ROOM = 6000, DIM = 8 };

static scratch place;
static float *x;                           /* ROOM vectors */
static uint64_t ids[ROOM], words[2][ROOM]; /* by row: its id, tag and key */
static uint64_t got[ROOM];

static void set_up(void) {
    scratch_open(&place);
    x = clusters_make(ROOM, DIM, 0.3, 4);
    for (size_t i = 0; i < ROOM; i++) {
        ids[i] = 7 * (ROOM - i);
        words[0][i] = sl_random_at(1, i);
        words[1][i] = i % 5 ? sl_random_at(2, i) : UINT64_MAX;
    }
}

static void tear_down(void) {
    free(x);
    scratch_close(&place);
}

static const struct kind {
    sl_codes codes;
    sl_refine refine;
    sl_layout layout;
    int tags, keys;
} kinds[] = {{SL_CODES_I8, SL_REFINE_NONE, SL_LAYOUT_ARRAYS, 1, 1},
             {SL_CODES_I8, SL_REFINE_F32, SL_LAYOUT_RECORDS, 1, 1},
             {SL_CODES_I4, SL_REFINE_NONE, SL_LAYOUT_ARRAYS, 1, 0},
             {SL_CODES_I4, SL_REFINE_I16, SL_LAYOUT_RECORDS, 0, 1}};
enum { KINDS = sizeof kinds / sizeof *kinds };

static void params_of(const struct kind *kind, sl_index_params *params) {
    indexes_params(params, DIM, SL_METRIC_L2);
    params->codes = kind->codes;
    params->refine = kind->refine;
    params->tags = kind->tags;
    params->keys = kind->keys;
}

static sl_status add_rows(sl_index *index, size_t first, size_t end, int given) {
    sl_add_params params;
    sl_add_params_init(&params);
    params.threads = 1;
    if (given && indexes_stats(index).tags) params.tags = words[0] + first;
    if (given && indexes_stats(index).keys) params.keys = words[1] + first;
    return sl_index_add(index, x + first * DIM, SL_F32, end - first, 0, ids + first, &params);
}

/* A few rows come first and get zeros; the many that follow have all numbered anew. */
static sl_index *make(const struct kind *kind) {
    sl_index_params params;
    sl_index *index;
    params_of(kind, &params);
    ck_ok(sl_index_create(&params, &index));
    ck_ok(add_rows(index, 0, FIRST, 0));
    memset(words[0], 0, FIRST * sizeof **words);
    memset(words[1], 0, FIRST * sizeof **words);
    ck_ok(add_rows(index, FIRST, N, 1));
    ck_assert_uint_eq(index->ordered, N);
    return index;
}

static void expect_words(sl_index *index, size_t n) {
    const sl_graph *graph = &index->graph;
    ck_assert_uint_eq(sl_index_size(index), n);
    if (graph->has_tags) {
        ck_ok(sl_index_get_tags(index, ids, n, got));
        ck_assert_mem_eq(got, words[0], n * sizeof *got);
    }
    if (graph->has_keys) {
        ck_ok(sl_index_get_keys(index, ids, n, got));
        ck_assert_mem_eq(got, words[1], n * sizeof *got);
    }
    for (uint32_t node = 0; node < n; node++) {
        size_t row = ROOM - (size_t)sl_id_of(graph, node) / 7;
        if (graph->has_tags) ck_assert_uint_eq(sl_tag_of(graph, node), words[0][row]);
        if (graph->has_keys) ck_assert_uint_eq(sl_key_of(graph, node), words[1][row]);
    }
}

static void save(sl_index *index, const struct kind *kind, size_t room) {
    sl_save_params params;
    sl_save_params_init(&params);
    params.layout = kind->layout;
    params.room = room;
    ck_ok(sl_index_save(index, place.path, &params));
}

static sl_index *opened(int writable) {
    sl_open_params params;
    sl_index *index;
    sl_open_params_init(&params);
    params.writable = writable;
    ck_ok(sl_index_open(place.path, &params, &index));
    return index;
}

START_TEST(saved_and_opened) {
    const struct kind *kind = &kinds[_i];
    sl_index *index = make(kind);
    expect_words(index, N);
    for (size_t room = 0; room <= ROOM; room += ROOM) {
        save(index, kind, room);
        for (sl_place where = SL_PLACE_DRAM; where <= SL_PLACE_PMEM; where++) {
            sl_index *again = indexes_open(place.path, where);
            expect_words(again, N);
            indexes_sound(again);
            sl_index_stats stats = indexes_stats(again);
            ck_assert_int_eq(stats.tags, kind->tags);
            ck_assert_int_eq(stats.keys, kind->keys);
            ck_assert_uint_eq(stats.bytes_tags, kind->tags ? N * sizeof(uint64_t) : 0);
            ck_assert_uint_eq(stats.bytes_keys, kind->keys ? N * sizeof(uint64_t) : 0);
            sl_index_free(again);
        }
    }
    sl_index_free(index);
}
END_TEST

/* Sets the words of every third row to others. */
static void set_third(sl_index *index, uint64_t turn) {
    uint64_t some[ROOM], to[2][ROOM];
    size_t count = 0;
    for (size_t row = turn % 3; row < N; row += 3, count++) {
        some[count] = ids[row];
        to[0][count] = words[0][row] = ~words[0][row] + turn;
        to[1][count] = words[1][row] = words[1][row] / 2;
    }
    if (indexes_stats(index).tags) ck_ok(sl_index_set_tags(index, some, count, to[0]));
    if (indexes_stats(index).keys) ck_ok(sl_index_set_keys(index, some, count, to[1]));
}

START_TEST(set_in_memory) {
    const struct kind *kind = &kinds[_i];
    sl_index *index = make(kind);
    set_third(index, 1);
    expect_words(index, N);
    save(index, kind, 0);
    sl_index_free(index);
    index = indexes_open(place.path, SL_PLACE_DRAM);
    expect_words(index, N);
    set_third(index, 2);
    expect_words(index, N);
    sl_index_free(index);
}
END_TEST

/* Other handles and snapshots have the words from the sync on, and a handle that does not sync takes them back. */
START_TEST(set_in_place) {
    const struct kind *kind = &kinds[_i];
    char copy[SCRATCH_PATH];
    scratch_name(&place, "copy.sl", copy);
    sl_index *writer = make(kind);
    save(writer, kind, ROOM);
    sl_index_free(writer);
    writer = opened(1);
    sl_index *reader = opened(0);
    ck_ok(add_rows(writer, N, ROOM, 1));
    expect_words(reader, N);
    ck_ok(sl_index_sync(writer));
    expect_words(reader, ROOM);
    uint64_t before[2][ROOM];
    memcpy(before, words, sizeof words);
    set_third(writer, 1);
    expect_words(writer, ROOM);
    memcpy(words, before, sizeof words);
    expect_words(reader, ROOM);
    sl_index_free(writer);
    writer = opened(1);
    expect_words(writer, ROOM);
    set_third(writer, 2);
    ck_ok(sl_index_sync(writer));
    expect_words(reader, ROOM);
    indexes_sound(writer);
    ck_ok(sl_index_snapshot(place.path, copy, NULL));
    sl_index_free(writer);
    sl_index_free(reader);
    for (sl_place where = SL_PLACE_DRAM; where <= SL_PLACE_MAP; where++) {
        reader = indexes_open(where ? place.path : copy, where);
        expect_words(reader, ROOM);
        indexes_sound(reader);
        sl_index_free(reader);
    }
}
END_TEST

/* A full device is told by the call that needs blocks, which then changes nothing. */
START_TEST(a_full_device_is_told_at_once) {
    fault_files files;
    sl_open_params params;
    const uint64_t id = ids[3], other = 5;
    sl_index *index = make(&kinds[_i]), *writer;
    save(index, &kinds[_i], ROOM);
    sl_index_free(index);
    sl_open_params_init(&params);
    params.writable = 1;
    params.file_ops = &files.ops;
    for (size_t call = 0; call < 3; call++) {
        fault_files_init(&files);
        files.error = ENOSPC;
        ck_ok(sl_index_open(place.path, &params, &writer));
        int has = call == 0 ? writer->graph.has_tags : call == 1 ? writer->graph.has_keys : 1;
        for (int fails = 1; fails >= 0 && has; fails--) {
            files.fail_at[FAULT_ALLOCATE] = fails ? files.calls[FAULT_ALLOCATE] + 1 : 0;
            sl_status status = call == 0   ? sl_index_set_tags(writer, &id, 1, &other)
                               : call == 1 ? sl_index_set_keys(writer, &id, 1, &other)
                                           : sl_index_delete(writer, &id, 1);
            ck_assert_int_eq(status, fails ? SL_ENOSPC : SL_OK);
            if (fails) expect_words(writer, N);
            if (!fails && call < 2) words[call][3] = other;
        }
        ck_ok(sl_index_sync(writer));
        if (call < 2) expect_words(writer, N);
        sl_index_free(writer);
    }
}
END_TEST

/* A bit that flips in a file is found by its section's CRC, or by its page's sum. */
START_TEST(damage_is_found) {
    sl_index *index = make(&kinds[0]), *broken;
    sl_check_report report = {.struct_size = sizeof report};
    save(index, &kinds[0], _i ? ROOM : 0);
    sl_index_free(index);
    index = opened(0);
    size_t offset = (size_t)sl_store_section(index->store, SL_SECTION_TAGS)->offset + 8 * 1234;
    unsigned char byte = index->store->base[offset] ^ 16;
    file_patch(place.path, offset, &byte, 1);
    ck_fails(sl_index_check(index, NULL, &report), SL_ECORRUPT, _i ? "page" : "tags of the vectors");
    sl_index_free(index);
    sl_open_params params;
    sl_open_params_init(&params);
    params.place = SL_PLACE_DRAM;
    ck_fails(sl_index_open(place.path, &params, &broken), SL_ECORRUPT, _i ? "page" : "tags of the vectors");
    /* A section of a wrong length is not opened. */
    index = make(&kinds[0]);
    indexes_save_cut(index, place.path, &(section_bytes){SL_SECTION_KEYS, 8 * (N - 1)}, 1);
    ck_fails(sl_index_open(place.path, NULL, &broken), SL_ECORRUPT, "keys of the vectors");
    sl_index_free(index);
}
END_TEST

/* A deleted id has no words; added again, it has new ones. A cancelled add leaves the others' alone. */
START_TEST(follow_their_id) {
    sl_index *index = make(&kinds[0]);
    const uint64_t id = ids[2000], tag = 5, key = 6;
    uint64_t word;
    ck_ok(sl_index_delete(index, &id, 1));
    ck_fails(sl_index_get_tags(index, &id, 1, &word), SL_ENOTFOUND, "28000");
    ck_fails(sl_index_set_keys(index, &id, 1, &key), SL_ENOTFOUND, "28000");
    sl_add_params params;
    sl_add_params_init(&params);
    params.tags = &tag;
    params.keys = &key;
    ck_ok(sl_index_add(index, x, SL_F32, 1, 0, &id, &params));
    ck_ok(sl_index_get_tags(index, &id, 1, &word));
    ck_assert_uint_eq(word, 5);
    ck_ok(sl_index_get_keys(index, &id, 1, &word));
    ck_assert_uint_eq(word, 6);
    params.progress = indexes_cancel;
    params.tags = words[1];
    params.keys = words[0];
    ck_fails(sl_index_add(index, x, SL_F32, ROOM - N, 0, ids + N, &params), SL_ECANCELED, "");
    words[0][2000] = 5;
    words[1][2000] = 6;
    ck_ok(sl_index_get_tags(index, ids, N, got));
    ck_assert_mem_eq(got, words[0], N * sizeof *got);
    sl_index_free(index);
}
END_TEST

/* Nothing is set where one id is not there. The last word counts of an id given twice. */
START_TEST(all_or_nothing) {
    sl_index *index = make(&kinds[0]);
    const uint64_t some[] = {ids[3], ids[2], 1, ids[1]}, to[] = {1, 2, 3, 4}, twice[] = {ids[3], ids[3]};
    ck_fails(sl_index_set_tags(index, some, 4, to), SL_ENOTFOUND, "no tags were set: number 2: id 1 is not");
    ck_fails(sl_index_set_keys(index, some, 4, to), SL_ENOTFOUND, "no keys were set: number 2: id 1 is not");
    expect_words(index, N);
    ck_fails(sl_index_get_keys(index, some, 4, got), SL_ENOTFOUND, "number 2: id 1 is not");
    ck_ok(sl_index_set_tags(index, twice, 2, to));
    words[0][3] = 2;
    ck_ok(sl_index_set_tags(index, NULL, 0, NULL));
    expect_words(index, N);
    sl_index_free(index);
}
END_TEST

START_TEST(bad_input) {
    const uint64_t id = 0, word = 1;
    sl_index_params params;
    sl_index *index;
    sl_add_params add;
    indexes_params(&params, DIM, SL_METRIC_L2);
    index = indexes_make(&params, x, SL_F32, 100, NULL, 1);
    sl_add_params_init(&add);
    add.tags = &word;
    ck_fails(sl_index_add(index, x, SL_F32, 1, 0, NULL, &add), SL_EINVAL,
             "no tags; make it anew with sl_index_params.t");
    add.tags = NULL;
    add.keys = &word;
    ck_fails(sl_index_add(index, x, SL_F32, 1, 0, NULL, &add), SL_EINVAL,
             "no keys; make it anew with sl_index_params.k");
    ck_assert_uint_eq(sl_index_size(index), 100);
    ck_fails(sl_index_set_tags(index, &id, 1, &word), SL_EINVAL, "no tags");
    ck_fails(sl_index_set_keys(index, &id, 1, &word), SL_EINVAL, "no keys");
    ck_fails(sl_index_get_tags(index, &id, 1, got), SL_EINVAL, "no tags");
    ck_fails(sl_index_get_keys(index, &id, 0, got), SL_EINVAL, "no keys");
    ck_assert_int_eq(indexes_stats(index).tags + indexes_stats(index).keys, 0);
    sl_index_free(index);
    params.tags = params.keys = 1;
    index = indexes_make(&params, x, SL_F32, 100, NULL, 1);
    ck_fails(sl_index_set_tags(NULL, &id, 1, &word), SL_EINVAL, "index is NULL");
    ck_fails(sl_index_set_tags(index, NULL, 1, &word), SL_EINVAL, "ids or tags is NULL");
    ck_fails(sl_index_set_keys(index, &id, 1, NULL), SL_EINVAL, "ids or keys is NULL");
    ck_fails(sl_index_get_keys(index, &id, 1, NULL), SL_EINVAL, "ids or keys is NULL");
    ck_ok(sl_index_save(index, place.path, NULL));
    sl_index_free(index);
    index = opened(0);
    ck_fails(sl_index_set_tags(index, &id, 1, &word), SL_EREADONLY, "read-only");
    ck_ok(sl_index_get_tags(index, &id, 1, got));
    ck_assert_uint_eq(got[0], 0);
    sl_index_free(index);
}
END_TEST

/* An index without vectors keeps what it will have. */
START_TEST(empty_and_planned) {
    sl_index_params params;
    sl_index *index;
    sl_plan plain = {.struct_size = sizeof plain}, plan = plain;
    params_of(&kinds[0], &params);
    ck_ok(sl_index_plan(&params, N, &plan));
    ck_assert_uint_eq(plan.bytes_tags, N * sizeof(uint64_t));
    ck_assert_uint_eq(plan.bytes_keys, N * sizeof(uint64_t));
    params.tags = params.keys = 0;
    ck_ok(sl_index_plan(&params, N, &plain));
    ck_assert_uint_eq(plain.bytes_tags + plain.bytes_keys, 0);
    ck_assert_uint_eq(plan.bytes_layer0, plain.bytes_layer0 + 2 * N * sizeof(uint64_t));
    ck_assert_uint_gt(plan.bytes_with_room, plain.bytes_with_room);
    params_of(&kinds[0], &params);
    for (size_t room = 0; room <= ROOM; room += ROOM) {
        ck_ok(sl_index_create(&params, &index));
        save(index, &kinds[0], room);
        sl_index_free(index);
        sl_open_params open;
        sl_open_params_init(&open);
        open.writable = room != 0;
        open.place = room ? SL_PLACE_MAP : SL_PLACE_DRAM;
        ck_ok(sl_index_open(place.path, &open, &index));
        ck_ok(add_rows(index, 0, N, 1));
        expect_words(index, N);
        sl_index_free(index);
    }
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("tags");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_loop_test(tests, saved_and_opened, 0, KINDS);
    tcase_add_loop_test(tests, set_in_memory, 0, KINDS);
    tcase_add_loop_test(tests, set_in_place, 0, KINDS);
    tcase_add_loop_test(tests, a_full_device_is_told_at_once, 0, KINDS);
    tcase_add_loop_test(tests, damage_is_found, 0, 2);
    tcase_add_test(tests, follow_their_id);
    tcase_add_test(tests, all_or_nothing);
    tcase_add_test(tests, bad_input);
    tcase_add_test(tests, empty_and_planned);
    return check_main("tags", &tests, 1);
}
