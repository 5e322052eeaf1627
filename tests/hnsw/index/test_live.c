/* An index in a file that is written in place. Changes that one handle adds and syncs are seen by the others; changes
 * that it does not sync are not. The tests also cover who may write. */
#include "hnsw/construct/reach.h"
#include "hnsw/graph/publish.h"
#include "tests/support/faults.h"
#include "tests/support/live_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

static const void *row(const void *rows, sl_dtype dtype, size_t i) {
    return (const char *)rows + i * DIM * sl_dtype_size(dtype);
}

/* ---------------------------------------------------------------------------------------------------------------
 * The same as in memory
 * ------------------------------------------------------------------------------------------------------------- */

/* One thread and one order of adding make the same graph wherever its bytes are. */
START_TEST(grows_as_in_memory) {
    const live_kind *kind = &kinds[_i];
    unsigned char *rows = clusters_as(kind->dtype, x, (ALL + QUERIES) * DIM);
    sl_index_params params;
    params_of(kind, &params);
    sl_index *memory = indexes_make(&params, rows, kind->dtype, N, NULL, 1);
    save_with_room(memory, ROOM);
    answers before = ask(memory, rows, kind->dtype);
    sl_index *reader = opened(SL_PLACE_MAP, 0), *writer = opened(SL_PLACE_MAP, 1);
    answers mapped = ask(reader, rows, kind->dtype);
    ck_assert_mem_eq(&before, &mapped, sizeof before);

    ck_ok(indexes_add(memory, row(rows, kind->dtype, N), kind->dtype, MORE, NULL));
    ck_ok(indexes_add(writer, row(rows, kind->dtype, N), kind->dtype, MORE, NULL));
    answers grown = ask(memory, rows, kind->dtype), written = ask(writer, rows, kind->dtype);
    ck_assert_mem_eq(&grown, &written, sizeof grown);
    mapped = ask(reader, rows, kind->dtype);
    ck_assert_mem_eq(&before, &mapped, sizeof before);
    ck_assert_uint_eq(sl_index_size(reader), N);

    ck_ok(sl_index_sync(writer));
    mapped = ask(reader, rows, kind->dtype);
    ck_assert_mem_eq(&grown, &mapped, sizeof grown);
    ck_assert_uint_eq(sl_index_size(reader), ALL);
    ck_assert_uint_eq(indexes_stats(reader).n, ALL);
    indexes_sound(reader);
    indexes_sound(writer);
    sl_index_free(writer);
    sl_index_free(reader);

    for (int where = 0; where < 2; where++) {
        sl_index *again = opened(where ? SL_PLACE_MAP : SL_PLACE_DRAM, 0);
        answers last = ask(again, rows, kind->dtype);
        ck_assert_mem_eq(&grown, &last, sizeof grown);
        indexes_sound(again);
        sl_index_free(again);
    }
    sl_index_free(memory);
    free(rows);
}
END_TEST

START_TEST(from_nothing) {
    sl_index_params params;
    params_of(&kinds[_i], &params);
    unsigned char *rows = clusters_as(params.dtype, x, (ALL + QUERIES) * DIM);
    sl_index *empty;
    ck_ok(sl_index_create(&params, &empty));
    save_with_room(empty, ROOM);
    sl_index_free(empty);
    sl_index *writer = opened(SL_PLACE_MAP, 1);
    answers none = ask(writer, rows, params.dtype);
    ck_assert_uint_eq(none.ids[0], SL_NO_ID);
    for (size_t done = 0; done < ALL; done += 100) {
        ck_ok(indexes_add(writer, row(rows, params.dtype, done), params.dtype, 100, NULL));
        ck_ok(sl_index_sync(writer));
    }
    answers grown = ask(writer, rows, params.dtype);
    indexes_sound(writer);
    sl_index_free(writer);
    sl_index *reader = opened(SL_PLACE_MAP, 0);
    answers mapped = ask(reader, rows, params.dtype);
    ck_assert_mem_eq(&grown, &mapped, sizeof grown);
    indexes_sound(reader);
    sl_index_free(reader);
    free(rows);
}
END_TEST

static void *alloc_little(void *ctx, size_t size, size_t alignment) {
    (void)ctx;
    return size > (4 << 20) ? NULL : aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
}

static void free_little(void *ctx, void *at, size_t size) {
    (void)ctx;
    (void)size;
    free(at);
}

/* A handle's need of memory goes by the vectors that the file holds, not by those that it has room for. */
START_TEST(room_takes_no_memory) {
    static const sl_allocator little = {NULL, alloc_little, free_little};
    uint64_t ids[MORE];
    sl_open_params params;
    sl_index *writer;
    make_live(N, 10000000);
    sl_open_params_init(&params);
    params.writable = 1;
    params.allocator = &little;
    ck_ok(sl_index_open(place.path, &params, &writer));
    for (size_t i = 0; i < MORE; i++)
        ids[i] = 1000000 + i;
    for (size_t i = 0; i < MORE; i += MORE / 4)
        ck_ok(indexes_add(writer, x + (N + i) * DIM, SL_F32, MORE / 4, ids + i));
    ck_fails(indexes_add(writer, x, SL_F32, 1, ids), SL_EEXIST, "is already in the index");
    ck_ok(sl_index_sync(writer));
    sl_index_free(writer);
}
END_TEST

/* The test runs a second time under PMEM_IS_PMEM_FORCE=1, by which libpmem takes any file for persistent memory.
 * Without it an ordinary file is written by way of the log, whatever place it was opened with. */
START_TEST(in_persistent_memory) {
    const live_kind *kind = &kinds[_i];
    unsigned char *rows = clusters_as(kind->dtype, x, (ALL + QUERIES) * DIM);
    sl_index_params params;
    params_of(kind, &params);
    sl_index *memory = indexes_make(&params, rows, kind->dtype, N, NULL, 1);
    save_with_room(memory, ROOM);
    ck_ok(indexes_add(memory, row(rows, kind->dtype, N), kind->dtype, MORE, NULL));
    answers grown = ask(memory, rows, kind->dtype);
    sl_index *writer = opened(SL_PLACE_PMEM, 1), *reader = opened(SL_PLACE_PMEM, 0);
#ifdef SL_HAVE_PMEM
    const char *force = getenv("PMEM_IS_PMEM_FORCE");
    ck_assert_int_eq(writer->writer->direct, force && strcmp(force, "1") == 0);
#endif
    ck_assert_int_eq(indexes_stats(writer).place, SL_PLACE_PMEM);
    ck_ok(indexes_add(writer, row(rows, kind->dtype, N), kind->dtype, MORE, NULL));
    ck_ok(sl_index_sync(writer));
    answers written = ask(writer, rows, kind->dtype), read = ask(reader, rows, kind->dtype);
    ck_assert_mem_eq(&written, &read, sizeof read);
    ck_assert_double_ge(indexes_recall(written.ids, grown.ids, QUERIES, K), 0.95);
    indexes_sound(writer);
    indexes_sound(reader);
    sl_index_free(writer);
    sl_index_free(reader);
    for (int where = 0; where < 3; where++) {
        sl_index *again = opened((sl_place)where, 0);
        answers last = ask(again, rows, kind->dtype);
        ck_assert_mem_eq(&written, &last, sizeof last);
        indexes_sound(again);
        sl_index_free(again);
    }
    sl_index_free(memory);
    free(rows);
}
END_TEST

static int stop_at_half(void *ctx, uint64_t done, uint64_t total) {
    (void)ctx;
    return done > total / 2;
}

/* A cancelled add leaves what there was, also where it had been published. */
START_TEST(cancelled) {
    sl_index_params params;
    params_of(&kinds[0], &params);
    sl_index *index = indexes_make(&params, x, SL_F32, N, NULL, 1);
    save_with_room(index, ROOM);
    sl_index_free(index);
    index = opened(_i ? SL_PLACE_PMEM : SL_PLACE_MAP, 1);
    sl_add_params add;
    sl_add_params_init(&add);
    add.threads = 1;
    add.progress = stop_at_half;
    sl_status status = sl_index_add(index, row(x, SL_F32, N), SL_F32, MORE, 0, NULL, &add);
    size_t n = status == SL_ECANCELED ? N : ALL;
    ck_assert(status == SL_ECANCELED || status == SL_OK);
    ck_assert_uint_eq(sl_index_size(index), n);
    ck_ok(sl_index_sync(index));
    indexes_sound(index);
    sl_index_free(index);
    index = opened(SL_PLACE_MAP, 0);
    ck_assert_uint_eq(sl_index_size(index), n);
    indexes_sound(index);
    sl_index_free(index);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Who may do what
 * ------------------------------------------------------------------------------------------------------------- */

START_TEST(one_writer) {
    make_live(N, ROOM);
    sl_index *writer = opened(SL_PLACE_MAP, 1), *other;
    ck_fails(open_as(SL_PLACE_MAP, 1, NULL, &other), SL_EBUSY, "is being written");
    ck_assert_ptr_null(other);
    ck_fails(open_as(SL_PLACE_DRAM, 0, NULL, &other), SL_EBUSY, "is being written");
    sl_index *reader = opened(SL_PLACE_MAP, 0);
    ck_fails(indexes_add(reader, x, SL_F32, 1, NULL), SL_EREADONLY, "writable");
    ck_fails(sl_index_sync(reader), SL_EREADONLY, "writable");
    sl_index_free(reader);
    sl_index_free(writer);
    other = opened(SL_PLACE_MAP, 1);
    sl_index_free(other);
}
END_TEST

/* Further changes of the writer would go to a file without a name. */
START_TEST(no_save_over_a_file_being_written) {
    make_live(N, ROOM);
    sl_index *writer = opened(SL_PLACE_MAP, 1), *reader = opened(SL_PLACE_MAP, 0);
    ck_fails(sl_index_save(reader, place.path, NULL), SL_EBUSY, "is being written");
    ck_fails(sl_index_save(writer, place.path, NULL), SL_EBUSY, "is being written");
    ck_ok(indexes_add(writer, x, SL_F32, 1, NULL));
    ck_ok(sl_index_sync(writer));
    ck_assert_uint_eq(sl_index_size(reader), N + 1);
    sl_index_free(writer);
    ck_assert_uint_eq(scratch_count(&place), 2); /* and the table of readers */
    ck_ok(sl_index_save(reader, place.path, NULL));
    sl_index_free(reader);
}
END_TEST

/* The saved index, and its path, while another change goes on there. */
typedef struct meanwhile {
    sl_index *other, *writer;
    int done;
} meanwhile;

static int save_and_begin_to_write(void *ctx, uint64_t done, uint64_t total) {
    meanwhile *now = ctx;
    (void)done;
    (void)total;
    if (now->done++) return 0;
    save_with_room(now->other, ROOM);
    now->writer = opened(SL_PLACE_MAP, 1);
    return 0;
}

/* Another save has put a file there that is being written by the time that this one would replace it. */
START_TEST(a_file_begun_during_a_save_is_kept) {
    meanwhile now = {.done = 0};
    make_live(N, ROOM);
    now.other = opened(SL_PLACE_DRAM, 0);
    sl_index_params params;
    params_of(&kinds[0], &params);
    /* It comes from no file, so that nothing but the writer stands in its way. */
    sl_index *mine = indexes_make(&params, x, SL_F32, N, NULL, 1);
    ck_ok(indexes_add(now.other, x + N * DIM, SL_F32, 5, NULL));
    sl_save_params save;
    indexes_save_params(&save);
    save.progress = save_and_begin_to_write;
    save.progress_ctx = &now;
    ck_fails(sl_index_save(mine, place.path, &save), SL_EBUSY, "is being written");
    ck_ok(indexes_add(now.writer, x, SL_F32, 1, NULL));
    ck_ok(sl_index_sync(now.writer));
    sl_index_free(now.writer);
    sl_index *reader = opened(SL_PLACE_MAP, 0);
    ck_assert_uint_eq(sl_index_size(reader), N + 6);
    sl_index_free(reader);
    sl_index_free(now.other);
    sl_index_free(mine);
}
END_TEST

/* The system's, but for a save over the file behind its first opening to be written. */
static int open_and_be_replaced(void *ctx, const char *path, int flags, unsigned mode) {
    meanwhile *now = ctx;
    int fd = open(path, flags, mode);
    if ((flags & O_ACCMODE) == O_RDWR && !now->done++) save_with_room(now->other, ROOM);
    return fd;
}

/* Nobody would ever find what is written to a file that has lost its name. */
START_TEST(a_file_that_was_replaced_is_not_written) {
    meanwhile now = {.done = 0};
    sl_index *writer;
    make_live(N, ROOM);
    now.other = opened(SL_PLACE_DRAM, 0);
    const sl_file_ops ops = {.open = open_and_be_replaced, .ctx = &now};
    ck_fails(open_as(SL_PLACE_MAP, 1, &ops, &writer), SL_EBUSY, "was replaced");
    ck_ok(open_as(SL_PLACE_MAP, 1, &ops, &writer));
    sl_index_free(writer);
    sl_index_free(now.other);
}
END_TEST

START_TEST(room_is_what_was_asked) {
    make_live(N, N + 10);
    sl_index *writer = opened(SL_PLACE_MAP, 1);
    ck_ok(indexes_add(writer, x + N * DIM, SL_F32, 10, NULL));
    ck_fails(indexes_add(writer, x, SL_F32, 1, NULL), SL_ELIMIT, "room for 610 vectors");
    ck_ok(sl_index_sync(writer));
    indexes_sound(writer);
    sl_save_params params;
    indexes_save_params(&params);
    params.room = N;
    ck_fails(sl_index_save(writer, place.path, &params), SL_EINVAL, "room for 600 vectors, where there are 610");
    sl_index_free(writer);
    sl_index *memory = opened(SL_PLACE_DRAM, 0);
    ck_fails(sl_index_sync(memory), SL_EUNSUPPORTED, "in memory");
    ck_ok(indexes_save(memory, place.path));
    sl_index_free(memory);
    ck_fails(open_as(SL_PLACE_MAP, 1, NULL, &memory), SL_EUNSUPPORTED, "no room");
}
END_TEST

START_TEST(ids_and_settings_last) {
    make_live(N, ROOM);
    sl_index *reader = opened(SL_PLACE_MAP, 0), *writer = opened(SL_PLACE_MAP, 1);
    const uint64_t ids[] = {5000, 4000, (uint64_t)1 << 40};
    float vector[DIM];
    ck_ok(sl_index_get(reader, &(uint64_t){0}, 1, SL_F32, vector));
    ck_fails(sl_index_get(reader, ids, 1, SL_F32, vector), SL_ENOTFOUND, "5000");
    ck_ok(indexes_add(writer, x + N * DIM, SL_F32, 3, ids));
    ck_fails(indexes_add(writer, x, SL_F32, 1, ids), SL_EEXIST, "5000");
    ck_ok(sl_index_tune(writer, x, SL_F32, N, 0, NULL, K, NULL, NULL));
    ck_ok(sl_index_sync(writer));
    for (size_t i = 0; i < 3; i++)
        ck_ok(sl_index_get(reader, &ids[i], 1, SL_F32, vector));
    ck_assert_uint_eq(indexes_stats(reader).room, ROOM);
    ck_ok(sl_index_delete(writer, ids, 2));
    ck_ok(sl_index_get(reader, ids, 1, SL_F32, vector));
    ck_ok(sl_index_sync(writer));
    ck_fails(sl_index_get(reader, ids, 1, SL_F32, vector), SL_ENOTFOUND, "5000");
    ck_assert_uint_eq(sl_index_size(reader), N + 1);
    ck_ok(indexes_add(writer, x, SL_F32, 1, ids));
    ck_ok(sl_index_sync(writer));
    ck_ok(sl_index_get(reader, ids, 1, SL_F32, vector));
    ck_ok(sl_index_delete(writer, &ids[2], 1));
    sl_index_free(writer);
    ck_ok(sl_index_get(reader, &ids[2], 1, SL_F32, vector));
    writer = opened(SL_PLACE_MAP, 1);
    ck_assert_uint_gt(indexes_stats(writer).tuned, 0);
    ck_fails(indexes_add(writer, x, SL_F32, 1, ids), SL_EEXIST, "5000");
    sl_index_free(writer);
    sl_index_free(reader);
}
END_TEST

/* Takes every link to a node away. */
static void orphan(sl_index *writer, uint32_t node) {
    for (size_t from = 0; from < writer->graph.n; from++) {
        uint32_t *links = sl_links(&writer->graph, from);
        for (size_t i = 0; i < writer->graph.m0; i++) {
            if (links[i] != node) continue;
            sl_link_store(links + i, (uint32_t)(from ? 0 : 1));
            sl_index_touch(writer, links + i, sizeof *links);
        }
    }
}

/* Publishes a file as earlier versions did: a proof is owed, and a vector is not reached. */
static void leave_a_debt(sl_index *writer, uint32_t node) {
    sl_published *facts = sl_published_in_file(writer);
    orphan(writer, node);
    facts->unverified = 10;
    if (facts->seal) sl_published_seal(facts, facts->commit);
    sl_index_touch(writer, facts, sizeof *facts);
    ck_ok(sl_writable_commit(writer->writer));
}

/* A search for as many vectors as there are finds every vector that is not deleted. */
static void ck_all_found(const sl_index *index) {
    const size_t n = sl_index_size(index);
    uint64_t *ids = calloc(n, sizeof *ids);
    ck_assert_ptr_nonnull(ids);
    indexes_search(index, (vector_rows){x, SL_F32, 1}, n, n, ids, NULL);
    for (size_t i = 0; i < n; i++)
        ck_assert_msg(ids[i] != SL_NO_ID, "%zu of %zu are found", i, n);
    free(ids);
}

/* A writer that syncs, and stops, leaves nothing to its readers. */
START_TEST(what_a_sync_publishes_is_found) {
    enum { BEGIN = 3000, EACH = 50, ADDS = 10, DELETED = 700 };
    float *rows = clusters_make(BEGIN + EACH * ADDS, DIM, 1.0, 31);
    sl_index_params params;
    uint64_t ids[DELETED];
    indexes_params(&params, DIM, (sl_metric)_i);
    params.m = 2;
    params.ef_construction = 16;
    sl_index *index = indexes_make(&params, rows, SL_F32, BEGIN, NULL, 1);
    save_with_room(index, BEGIN + EACH * ADDS);
    sl_index_free(index);
    sl_index *reader = opened(SL_PLACE_MAP, 0);
    for (size_t n = BEGIN; n < BEGIN + EACH * ADDS; n += EACH) {
        sl_index *writer = opened(SL_PLACE_MAP, 1);
        ck_ok(indexes_add(writer, rows + n * DIM, SL_F32, EACH, NULL));
        ck_ok(sl_index_sync(writer));
        sl_index_free(writer);
        ck_assert_uint_eq(sl_index_size(reader), n + EACH);
        ck_all_found(reader);
    }
    for (size_t i = 0; i < DELETED; i++)
        ids[i] = 5 * i;
    sl_index *writer = opened(SL_PLACE_MAP, 1);
    ck_ok(sl_index_delete(writer, ids, DELETED));
    ck_ok(sl_index_sync(writer));
    sl_index_free(writer);
    ck_all_found(reader);
    sl_index_free(reader);
    free(rows);
}
END_TEST

/* The first sync proves what an earlier writer owed. */
START_TEST(a_sync_proves_what_was_owed) {
    make_live(N, ROOM);
    sl_index *writer = opened(SL_PLACE_MAP, 1);
    leave_a_debt(writer, N - 3);
    sl_index_free(writer);
    sl_index *reader = opened(SL_PLACE_MAP, 0);
    uint64_t ids[N];
    indexes_search(reader, (vector_rows){x, SL_F32, 1}, N, N, ids, NULL);
    ck_assert_uint_eq(ids[N - 1], SL_NO_ID);
    writer = opened(SL_PLACE_MAP, 1);
    ck_assert_uint_gt(writer->unverified, 0);
    ck_ok(sl_index_sync(writer));
    sl_index_free(writer);
    ck_all_found(reader);
    ck_assert_uint_eq(sl_published_read(reader->published).unverified, 0);
    sl_index_free(reader);
}
END_TEST

/* A reader's mapping cannot be written: what is not reached stays its writer's to mend. Searchers it has use what it
 * was tuned for, each time. */
START_TEST(readers_are_tuned_in_memory) {
    make_live(N, ROOM);
    sl_index *writer = opened(SL_PLACE_MAP, 1), *reader;
    leave_a_debt(writer, N - 3);
    reader = opened(SL_PLACE_MAP, 0);
    ck_assert_uint_gt(reader->unverified, 0);
    sl_searcher *searcher;
    ck_ok(sl_searcher_create(reader, SL_MAX_EF, &searcher));
    sl_search_params params;
    sl_search_params_init(&params);
    params.recall = 0.5;
    uint64_t ids[K];
    ck_fails(sl_searcher_search(searcher, x, SL_F32, K, &params, ids, NULL, NULL), SL_ENOTFOUND, "tune");
    for (size_t i = 0; i < 2; i++) {
        ck_ok(sl_index_tune(reader, x, SL_F32, N, 0, NULL, K, NULL, NULL));
        ck_ok(sl_searcher_search(searcher, x, SL_F32, K, &params, ids, NULL, NULL));
        ck_assert_uint_eq(ids[0], 0);
    }
    ck_assert_uint_eq(indexes_stats(writer).tuned, 0);
    sl_searcher_free(searcher);
    sl_index_free(reader);
    sl_index_free(writer);
}
END_TEST

int main(void) {
    TCase *cases[] = {tcase_create("same"), tcase_create("who")};
    for (size_t i = 0; i < 2; i++) {
        tcase_add_checked_fixture(cases[i], set_up, tear_down);
        tcase_set_timeout(cases[i], 300);
    }
    tcase_add_loop_test(cases[0], grows_as_in_memory, 0, LIVE_KINDS);
    tcase_add_loop_test(cases[0], from_nothing, 0, LIVE_KINDS);
    tcase_add_loop_test(cases[0], in_persistent_memory, 0, LIVE_KINDS);
    tcase_add_loop_test(cases[0], cancelled, 0, 2);
    tcase_add_test(cases[1], room_takes_no_memory);
    tcase_add_test(cases[1], one_writer);
    tcase_add_test(cases[1], no_save_over_a_file_being_written);
    tcase_add_test(cases[1], a_file_that_was_replaced_is_not_written);
    tcase_add_test(cases[1], a_file_begun_during_a_save_is_kept);
    tcase_add_test(cases[1], room_is_what_was_asked);
    tcase_add_test(cases[1], ids_and_settings_last);
    tcase_add_loop_test(cases[1], what_a_sync_publishes_is_found, 0, 3);
    tcase_add_test(cases[1], a_sync_proves_what_was_owed);
    tcase_add_test(cases[1], readers_are_tuned_in_memory);
    return check_main("live", cases, 2);
}
