/* Files with room that somebody wrote to do harm, opened to be written. A copy in memory is checked when it is made. A
 * writer into a mapping must not rely on that check. */
#include "base/random.h"
#include "hnsw/graph/publish.h"
#include "hnsw/graph/tombstones.h"
#include "tests/support/check_main.h"
#include "tests/support/clusters.h"
#include "tests/support/hostile.h"
#include "tests/support/indexes.h"
#include "tests/support/scratch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N = 3000, MORE = 10, ROOM = N + MORE, DIM = 8, K = 5, FIRST_ID = 1000 };

static scratch place;
static float *x;
static uint64_t ids[ROOM];
static unsigned char *bytes;
static size_t size;

static void set_up(void) {
    scratch_open(&place);
    x = clusters_make(ROOM, DIM, 0.3, 5);
    for (size_t i = 0; i < ROOM; i++)
        ids[i] = FIRST_ID + i;
    sl_index_params params;
    indexes_params(&params, DIM, SL_METRIC_L2);
    params.m = 2;
    params.ef_construction = 8;
    sl_index *index = indexes_make(&params, x, SL_F32, N, ids, 1);
    sl_save_params save;
    sl_save_params_init(&save);
    save.room = ROOM;
    ck_ok(sl_index_save(index, place.path, &save));
    sl_index_free(index);
    bytes = file_read(place.path, &size);
}

static void tear_down(void) {
    free(bytes);
    free(x);
    scratch_close(&place);
}

static unsigned char *section(uint32_t kind) {
    const sl_file_header *header = (const void *)bytes;
    for (uint32_t i = 0; i < header->section_count; i++)
        if (header->sections[i].kind == kind) return bytes + header->sections[i].offset;
    ck_abort_msg("no section %u", kind);
}

static sl_published *facts(void) {
    return (sl_published *)(void *)(section(SL_SECTION_LIVE) + SL_LIVE_HEAD);
}

static sl_status open_changed(sl_index **out) {
    hostile_seal(bytes, size);
    file_write(place.path, bytes, size);
    sl_open_params params;
    sl_open_params_init(&params);
    params.writable = 1;
    return sl_index_open(place.path, &params, out);
}

/* Each row of k is filled to its end with ids that are there. */
static void ask(const sl_index *index, size_t results) {
    uint64_t found[K];
    sl_search_stats stats;
    for (size_t q = 0; q < 20; q++) {
        ck_ok(sl_index_search(index, x + q * DIM, SL_F32, 1, 0, K, NULL, found, NULL, &stats));
        ck_assert_uint_le(stats.results, results);
        for (size_t i = 0; i < stats.results; i++)
            ck_assert(found[i] >= FIRST_ID && found[i] < FIRST_ID + ROOM);
    }
}

/* Whoever writes in place writes whole ids. */
START_TEST(narrow_ids_are_refused) {
    sl_file_header *header = (void *)bytes;
    sl_index *index;
    header->id_width = (uint32_t)_i;
    for (uint32_t i = 0; i < header->section_count; i++) {
        sl_file_section *of = &header->sections[i];
        if (of->kind != SL_SECTION_IDS) continue;
        of->size = (uint64_t)ROOM * (uint32_t)_i;
        if (!_i) *of = (sl_file_section){.kind = 900, .offset = of->offset, .size = 64};
    }
    ck_fails(open_changed(&index), SL_ECORRUPT, place.path);
}
END_TEST

/* Each slot says that its lists lie far behind all there are. */
START_TEST(lists_of_slots_outside) {
    uint32_t *starts = (void *)section(SL_SECTION_UPPER_START);
    sl_index *index;
    for (size_t i = 0; i <= facts()->upper_count; i++)
        starts[i] = 0x40000000u + 64 * (uint32_t)i;
    ck_assert_uint_gt(facts()->upper_count, 0);
    ck_ok(open_changed(&index));
    ask(index, K);
    sl_add_params params;
    sl_add_params_init(&params);
    params.progress = indexes_cancel;
    ck_assert_int_eq(sl_index_add(index, x + N * DIM, SL_F32, MORE, 0, ids + N, &params), SL_ECANCELED);
    ck_ok(sl_index_add(index, x + N * DIM, SL_F32, MORE, 0, ids + N, NULL));
    ask(index, K);
    sl_index_free(index);
}
END_TEST

/* Every list names a vector that is not there yet, and the add that makes that vector is taken back. More lists then
 * lack links than the vector's own lists have places to note them. */
START_TEST(links_to_what_comes) {
    uint32_t *links = (void *)section(SL_SECTION_LINKS);
    sl_index *index;
    float vector[DIM];
    sl_add_params params;
    sl_add_params_init(&params);
    params.progress = indexes_cancel;
    params.threads = 1;
    for (size_t i = 0; i < N * 4; i++)
        links[i] = N;
    ck_ok(open_changed(&index));
    ck_assert_int_eq(sl_index_add(index, x + N * DIM, SL_F32, 1, 0, ids + N, &params), SL_ECANCELED);
    ck_assert_uint_eq(sl_index_size(index), N);
    for (size_t i = 0; i < N; i++) {
        ck_ok(sl_index_get(index, &ids[i], 1, SL_F32, vector));
        ck_assert(fabsf(vector[0] - x[i * DIM]) < 0.1f);
    }
    indexes_sound(index);
    sl_index_free(index);
}
END_TEST

/* More marks than vectors, or more deleted than are marked. */
START_TEST(more_deleted_than_there_are) {
    sl_index *index;
    if (_i == 0) {
        memset(section(SL_SECTION_DEAD), 0xff, sl_tombstones_bytes(ROOM));
        facts()->deleting = 1;
    } else {
        facts()->dead = N;
    }
    ck_ok(open_changed(&index));
    ck_assert_uint_eq(sl_index_size(index), 0);
    ask(index, 0);
    sl_status status = sl_index_delete(index, &ids[3], 1);
    ck_assert_int_eq(status, _i == 0 ? SL_ENOTFOUND : SL_OK);
    ck_assert_uint_eq(sl_index_size(index), 0);
    ask(index, 0);
    sl_index_free(index);
}
END_TEST

/* A damaged file may lose vectors, so a change works or is refused. */
static void bear(sl_status status) {
    ck_assert_msg(status == SL_OK || status == SL_ENOTFOUND || status == SL_EEXIST, "%s", sl_last_error());
}

/* Links and upper layers of any numbers, beside deletes that take nodes out of the graph. */
START_TEST(deletes_beside_any_numbers) {
    static const uint32_t kinds[] = {SL_SECTION_LINKS, SL_SECTION_UPPER_LINKS, SL_SECTION_UPPER_START,
                                     SL_SECTION_UPPER_NODES, SL_SECTION_LIFETIMES};
    uint32_t *words = (void *)section(kinds[_i]);
    const size_t count = kinds[_i] == SL_SECTION_LINKS ? N * 4 : kinds[_i] == SL_SECTION_LIFETIMES ? N * 4 : 8;
    for (size_t i = 0; i < count; i++)
        if (sl_random_at(7, i) % 3 == 0) words[i] = sl_random_at(9, i) % 2 ? 0x7ffffff0 : (uint32_t)sl_random_at(8, i);
    sl_index *index;
    if (open_changed(&index) != SL_OK) return;
    for (size_t i = 0; i < N / 2; i++)
        bear(sl_index_delete(index, &ids[i], 1));
    ck_ok(sl_index_sync(index));
    bear(sl_index_compact(index, NULL));
    bear(sl_index_add(index, x, SL_F32, 10, 0, ids, NULL));
    ck_ok(sl_index_sync(index));
    sl_index_free(index);
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("lies");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_loop_test(tests, narrow_ids_are_refused, 0, 1);
    tcase_add_loop_test(tests, narrow_ids_are_refused, 4, 5);
    tcase_add_test(tests, lists_of_slots_outside);
    tcase_add_test(tests, links_to_what_comes);
    tcase_add_loop_test(tests, deletes_beside_any_numbers, 0, 5);
    tcase_add_loop_test(tests, more_deleted_than_there_are, 0, 2);
    return check_main("lies_live", &tests, 1);
}
