/* Ids that a client chose to meet in tables of ids: the map of ids, a long list, and counts of ids and group keys. */
#include "base/key_counts.h"
#include "hnsw/search/ids_to_nodes.h"
#include "tests/support/check_main.h"
#include "tests/support/colliding.h"
#include "tests/support/indexes.h"

#include <stdlib.h>

enum { N = COLLIDING_COUNT, DIM = 2 };

static uint64_t ids[N];
static float x[N][DIM];
static sl_index *idx;

static void set_up(void) {
    sl_index_params params;
    for (size_t i = 0; i < N; i++) {
        ids[i] = colliding_id(i);
        x[i][0] = (float)i;
    }
    indexes_params(&params, DIM, SL_METRIC_L2);
    params.m = 4;
    params.ef_construction = 8;
    idx = indexes_make(&params, x, SL_F32, N, ids, 1);
}

static void tear_down(void) {
    sl_index_free(idx);
}

START_TEST(the_map_spreads_chosen_ids) {
    static const uint32_t none = SL_NONE;
    int found;
    for (size_t i = 0; i < N; i++) {
        ck_ok(sl_index_contains(idx, ids[i], &found));
        ck_assert_int_eq(found, 1);
    }
    const sl_id_map *map = &idx->id_map;
    ck_assert_uint_lt(colliding_run(map->entries, map->size, sizeof none, &none, sizeof none), COLLIDING_RUN);
}
END_TEST

static size_t largest;

static void *allocate(void *ctx, size_t size, size_t alignment) {
    (void)ctx;
    if (size > largest) largest = size;
    return aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
}
static void release(void *ctx, void *block, size_t size) {
    (void)ctx;
    (void)size;
    free(block);
}

/* The ids of the list go into runs, and a table is made for the longest run. A run with all of them would take more
 * than their entries do, 16 bytes per id. */
START_TEST(a_list_spreads_chosen_ids) {
    const sl_allocator allocator = {.alloc = allocate, .free = release};
    uint64_t nodes[N / 64 + 1] = {0};
    size_t count = 0;
    largest = 0;
    ck_ok(sl_nodes_of_ids(idx, &idx->graph, &allocator, ids, N, nodes));
    for (size_t i = 0; i < N / 64 + 1; i++)
        count += (size_t)__builtin_popcountll(nodes[i]);
    ck_assert_uint_eq(count, N);
    ck_assert_uint_ge(largest, (size_t)N * 16);
    ck_assert_uint_lt(largest, (size_t)N * 17);
}
END_TEST

START_TEST(counts_spread_chosen_keys) {
    static const size_t none = 0;
    sl_key_counts counts;
    const size_t places = sl_key_counts_places(N);
    void *memory = malloc(sl_key_counts_bytes(places));
    ck_assert_ptr_nonnull(memory);
    sl_key_counts_start(&counts, memory, places);
    for (size_t i = 0; i < 2 * N; i++)
        ++*sl_key_counts_of(&counts, ids[i % N]);
    for (size_t i = 0; i < N; i++)
        ck_assert_uint_eq(*sl_key_counts_of(&counts, ids[i]), 2);
    ck_assert_uint_lt(colliding_run(counts.counts, places, sizeof none, &none, sizeof none), COLLIDING_RUN);
    free(memory);
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("id_places");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, the_map_spreads_chosen_ids);
    tcase_add_test(tests, a_list_spreads_chosen_ids);
    tcase_add_test(tests, counts_spread_chosen_keys);
    return check_main("id_places", &tests, 1);
}
