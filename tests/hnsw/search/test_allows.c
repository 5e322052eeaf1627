/* Filters node by node: ids spread over 64 bits, in lists of every length; masks and ranges of tags and keys. Each
 * vector is also tested by itself. */
#include "base/random.h"
#include "hnsw/search/filter.h"
#include "tests/support/check_main.h"
#include "tests/support/clusters.h"
#include "tests/support/faults.h"
#include "tests/support/indexes.h"
#include "tests/support/scratch.h"

#include <stdlib.h>
#include <string.h>

enum { N = 5000, DIM = 8, ROOM = 6000 };

static float *x;
static scratch place;
static uint64_t ids[ROOM], tags[ROOM], keys[ROOM]; /* by row */
static uint64_t list[3 * ROOM];
static char in_list[ROOM];

/* The ids of an index, by row: spread over 64 bits up to the last possible one, or close together. */
static void set_up(void) {
    scratch_open(&place);
    x = clusters_make(ROOM, DIM, 0.3, 4);
    for (size_t row = 0; row < ROOM; row++) {
        ids[row] = row % 100 ? sl_random_at(3, row) : row;
        tags[row] = sl_random_at(1, row) & sl_random_at(4, row);
        keys[row] = sl_random_at(2, row) >> (row % 64);
    }
    ids[1] = UINT64_MAX - 1;
    keys[0] = 0;
    keys[1] = UINT64_MAX;
}

static void tear_down(void) {
    free(x);
    scratch_close(&place);
}

static sl_index *make(int words) {
    sl_index_params params;
    sl_add_params add;
    sl_index *index;
    indexes_params(&params, DIM, SL_METRIC_L2);
    params.m = 4;
    params.ef_construction = 10;
    params.tags = params.keys = words;
    ck_ok(sl_index_create(&params, &index));
    sl_add_params_init(&add);
    add.threads = 1;
    if (words) add.tags = tags;
    if (words) add.keys = keys;
    ck_ok(sl_index_add(index, x, SL_F32, N, 0, ids, &add));
    return index;
}

static size_t row_of(uint64_t id) {
    for (size_t row = 0; row < ROOM; row++)
        if (ids[row] == id) return row;
    ck_abort_msg("id %llu is no row's", (unsigned long long)id);
    return 0;
}

static sl_filter *filter_of(sl_index *index, const sl_filter_params *params) {
    sl_filter *filter;
    ck_ok(sl_filter_create(index, params, &filter));
    return filter;
}

static int passes(const sl_filter_params *p, size_t row) {
    if (p->any_tags && !(tags[row] & p->any_tags)) return 0;
    if ((tags[row] & p->all_tags) != p->all_tags || tags[row] & p->none_tags) return 0;
    if (keys[row] < p->key_min || keys[row] > p->key_max) return 0;
    return (!p->allow || in_list[row]) && (!p->exclude || !in_list[row]);
}

/* Each node is allowed where its row passes. */
static void expect_nodes(const sl_filter *filter, const sl_graph *graph) {
    size_t count = 0;
    static size_t rows[ROOM];
    static uint64_t known[ROOM];
    for (uint32_t node = 0; node < filter->set.n; node++) {
        /* Nodes keep their order over many filters of one index. */
        if (known[node] != sl_id_of(graph, node)) rows[node] = row_of(sl_id_of(graph, node));
        known[node] = sl_id_of(graph, node);
        int wanted = passes(&filter->source, rows[node]), got = filter->set.bits[node / 64] >> (node % 64) & 1;
        ck_assert_msg(wanted == got, "node %u, row %zu: %d, not %d", node, rows[node], got, wanted);
        count += (size_t)got;
    }
    ck_assert_uint_eq(sl_filter_count(filter), count);
}

/* ---------------------------------------------------------------------------------------------------------------
 * Lists
 * ------------------------------------------------------------------------------------------------------------- */

/* Lists `count` random rows and as many unknown ids. Every third is listed twice, and 2^64 - 1 too. */
static size_t draw_list(size_t count) {
    size_t length = 0;
    memset(in_list, 0, sizeof in_list);
    for (size_t i = 0; i < count; i++) {
        size_t row = sl_random_at(77, i) % ROOM;
        in_list[row] = 1;
        list[length++] = ids[row];
        if (i % 3 == 0) list[length++] = ids[row];
        list[length++] = i % 7 ? sl_random_at(55, i) : SL_NO_ID;
    }
    return length;
}

static const size_t lengths[] = {0, 1, 40, 100, 200, 3000, ROOM};

static void expect_lists(sl_index *index, const sl_graph *graph) {
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        sl_filter_params params;
        sl_filter_params_init(&params);
        size_t count = draw_list(lengths[i]);
        for (int excluded = 0; excluded < 2; excluded++) {
            params.allow = excluded ? NULL : list;
            params.allow_count = excluded ? 0 : count;
            params.exclude = excluded ? list : NULL;
            params.exclude_count = excluded ? count : 0;
            sl_filter *filter = filter_of(index, &params);
            expect_nodes(filter, graph);
            sl_filter_free(filter);
        }
    }
}

START_TEST(ids_over_64_bits) {
    sl_index *index = make(0);
    expect_lists(index, &index->graph);
    sl_index_free(index);
}
END_TEST

START_TEST(ids_close_together) {
    for (size_t row = 0; row < ROOM; row++)
        ids[row] = 2 * row;
    sl_index *index = make(0);
    expect_lists(index, &index->graph);
    sl_index_free(index);
}
END_TEST

/* A reader of a file that grows looks the new ids up too. */
START_TEST(ids_of_a_file_that_grows) {
    sl_save_params save;
    sl_open_params open;
    sl_index *writer = make(0), *reader;
    sl_save_params_init(&save);
    save.room = ROOM;
    ck_ok(sl_index_save(writer, place.path, &save));
    sl_index_free(writer);
    reader = indexes_open(place.path, SL_PLACE_MAP);
    expect_lists(reader, &reader->graph);
    sl_open_params_init(&open);
    open.writable = 1;
    ck_ok(sl_index_open(place.path, &open, &writer));
    ck_ok(indexes_add(writer, x + N * DIM, SL_F32, ROOM - N, ids + N));
    ck_ok(sl_index_sync(writer));
    sl_index_free(writer);
    ck_assert_uint_eq(sl_index_size(reader), ROOM);
    expect_lists(reader, &reader->graph);
    sl_index_free(reader);
}
END_TEST

/* Lists that take several chunks of look-ups, and are too short for a pass over all nodes. */
START_TEST(lists_of_several_chunks) {
    enum { MANY = 20000 };
    const size_t chunks[] = {500, 1023, 1024, 1025, 1200};
    static uint64_t chosen[1200];
    float *points = clusters_make(MANY, 2, 0.3, 4);
    uint64_t *named = malloc(MANY * sizeof *named);
    sl_index_params params;
    indexes_params(&params, 2, SL_METRIC_L2);
    params.m = 4;
    params.ef_construction = 10;
    params.multi = _i;
    for (uint64_t row = 0; row < MANY; row++)
        named[row] = row << 32;
    sl_index *index = indexes_make(&params, points, SL_F32, MANY, named, 1);
    for (size_t c = 0; c < sizeof chunks / sizeof *chunks; c++) {
        size_t wrong = 0;
        sl_filter_params given;
        for (uint64_t i = 0; i < chunks[c]; i++)
            chosen[i] = 16 * i << 32;
        sl_filter_params_init(&given);
        given.allow = chosen;
        given.allow_count = chunks[c];
        sl_filter *filter = filter_of(index, &given);
        for (uint32_t node = 0; node < MANY; node++) {
            const uint64_t row = sl_id_of(&index->graph, node) >> 32;
            wrong += (filter->set.bits[node / 64] >> (node % 64) & 1) != (row % 16 == 0 && row < 16 * chunks[c]);
        }
        ck_assert_uint_eq(wrong, 0);
        sl_filter_free(filter);
    }
    sl_index_free(index);
    free(named);
    free(points);
}
END_TEST

/* Lists few of very many nodes, but more than one chunk. */
START_TEST(few_of_very_many_are_listed) {
    enum { MANY = 150000, EVERY = 131 };
    float *points = clusters_make(MANY, 2, 0.3, 4);
    uint64_t *chosen = malloc(MANY / EVERY * sizeof *chosen);
    sl_index_params params;
    sl_filter_params given;
    indexes_params(&params, 2, SL_METRIC_L2);
    params.m = 2;
    params.ef_construction = 4;
    sl_index *index = indexes_make(&params, points, SL_F32, MANY, NULL, 1);
    for (uint64_t i = 0; i < MANY / EVERY; i++)
        chosen[i] = EVERY * i;
    sl_filter_params_init(&given);
    given.allow = chosen;
    given.allow_count = MANY / EVERY;
    sl_filter *filter = filter_of(index, &given);
    size_t listed = 0;
    for (uint32_t node = 0; node < MANY; node++)
        if (filter->set.bits[node / 64] >> (node % 64) & 1) ck_assert_uint_eq(filter->set.nodes[listed++], node);
    ck_assert_uint_eq(listed, MANY / EVERY);
    sl_filter_free(filter);
    sl_index_free(index);
    free(chosen);
    free(points);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Tags and keys
 * ------------------------------------------------------------------------------------------------------------- */

/* Masks of none, one, several and all bits, with bits in two masks, and ranges of one key, of few and of most. */
START_TEST(masks_and_ranges) {
    sl_index *index = make(1);
    const uint64_t masks[] = {0, 1, 0x30, UINT64_MAX};
    const uint64_t ranges[][2] = {
        {0, UINT64_MAX}, {keys[5], keys[5]}, {0, 0}, {UINT64_MAX, UINT64_MAX}, {1000, UINT64_MAX / 2}};
    enum { MASKS = sizeof masks / sizeof *masks, RANGES = sizeof ranges / sizeof *ranges };
    size_t some = 0, count = draw_list(3000);
    for (size_t i = 0; i < MASKS * MASKS * MASKS * RANGES; i++) {
        sl_filter_params params;
        sl_filter_params_init(&params);
        params.any_tags = masks[i % MASKS];
        params.all_tags = masks[i / MASKS % MASKS];
        params.none_tags = masks[i / MASKS / MASKS % MASKS];
        params.key_min = ranges[i / MASKS / MASKS / MASKS][0];
        params.key_max = ranges[i / MASKS / MASKS / MASKS][1];
        if (i % 9 == 1) params.allow = list, params.allow_count = count;
        if (i % 9 == 2) params.exclude = list, params.exclude_count = count;
        sl_filter *filter = filter_of(index, &params);
        expect_nodes(filter, &index->graph);
        some += sl_filter_count(filter) > 0 && sl_filter_count(filter) < N;
        sl_filter_free(filter);
    }
    ck_assert_uint_gt(some, 50);
    sl_index_free(index);
}
END_TEST

static size_t found(const sl_index *index, const sl_filter *filter) {
    static uint64_t got[N];
    sl_search_params params;
    sl_search_stats stats;
    sl_search_params_init(&params);
    params.filter = filter;
    ck_ok(sl_index_search(index, x, SL_F32, 1, 0, N, &params, got, NULL, &stats));
    return stats.results;
}

/* A filter has the words of its last refresh, and needs none to be searched with. */
START_TEST(words_of_the_last_refresh) {
    sl_index *index = make(1);
    sl_filter_params params;
    sl_filter_params_init(&params);
    params.all_tags = 2;
    params.key_min = 7;
    sl_filter *filter = filter_of(index, &params);
    size_t before = sl_filter_count(filter), changed = 0;
    ck_assert_uint_eq(found(index, filter), before);
    for (size_t row = 0; row < N; row += 3, changed++) {
        tags[row] = ~tags[row];
        list[changed] = ids[row];
    }
    for (size_t i = 0; i < changed; i++)
        ck_ok(sl_index_set_tags(index, &list[i], 1, &tags[3 * i]));
    ck_assert_uint_eq(sl_filter_count(filter), before);
    ck_assert_uint_eq(found(index, filter), before);
    ck_ok(sl_filter_refresh(filter));
    expect_nodes(filter, &index->graph);
    ck_assert_uint_ne(sl_filter_count(filter), before);
    ck_assert_uint_eq(found(index, filter), sl_filter_count(filter));
    ck_ok(sl_index_delete(index, list, changed));
    ck_assert_uint_le(found(index, filter), N - changed);
    sl_filter_free(filter);
    sl_index_free(index);
}
END_TEST

START_TEST(bad_input) {
    sl_index *index = make(0);
    sl_filter_params params;
    sl_filter *filter;
    for (int i = 0; i < 3; i++) {
        sl_filter_params_init(&params);
        *(i == 0 ? &params.any_tags : i == 1 ? &params.all_tags : &params.none_tags) = 1;
        ck_fails(sl_filter_create(index, &params, &filter), SL_EINVAL, "the index has no tags");
        ck_assert_ptr_null(filter);
    }
    for (int i = 0; i < 2; i++) {
        sl_filter_params_init(&params);
        if (i)
            params.key_min = 1;
        else
            params.key_max--;
        ck_fails(sl_filter_create(index, &params, &filter), SL_EINVAL, "the index has no keys");
    }
    params.key_min = 9;
    params.key_max = 8;
    ck_fails(sl_filter_create(index, &params, &filter), SL_EINVAL, "key_min is 9, above key_max, 8");
    sl_filter_params_init(&params);
    ck_assert_uint_eq(params.key_max, UINT64_MAX);
    filter = filter_of(index, &params);
    ck_assert_uint_eq(sl_filter_count(filter), N);
    sl_filter_free(filter);
    sl_index_free(index);
}
END_TEST

START_TEST(every_allocation_fails_once) {
    fault_allocator memory;
    fault_allocator_init(&memory, 0);
    sl_index *index = make(1);
    sl_filter_params params;
    sl_filter_params_init(&params);
    params.allow = params.exclude = list;
    params.allow_count = params.exclude_count = draw_list(ROOM);
    params.all_tags = 1;
    params.allocator = &memory.allocator;
    sl_filter *filter = NULL;
    size_t fails = 0;
    for (sl_status status = SL_ENOMEM; status != SL_OK; fails++) {
        memory.calls = 0;
        memory.fail_at = fails + 1;
        status = sl_filter_create(index, &params, &filter);
        if (status == SL_OK) break;
        ck_assert_int_eq(status, SL_ENOMEM);
        ck_assert_ptr_null(filter);
        ck_assert_uint_eq(memory.live_blocks, 0);
    }
    ck_assert_uint_ge(fails, 9);
    sl_filter_free(filter);
    ck_assert_uint_eq(memory.live_blocks, 0);
    sl_index_free(index);
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("allows");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, ids_over_64_bits);
    tcase_add_test(tests, ids_close_together);
    tcase_add_test(tests, ids_of_a_file_that_grows);
    tcase_add_loop_test(tests, lists_of_several_chunks, 0, 2);
    tcase_add_test(tests, few_of_very_many_are_listed);
    tcase_add_test(tests, masks_and_ranges);
    tcase_add_test(tests, words_of_the_last_refresh);
    tcase_add_test(tests, bad_input);
    tcase_add_test(tests, every_allocation_fails_once);
    return check_main("allows", &tests, 1);
}
