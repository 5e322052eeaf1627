/* An index in a file that is written in place: what one handle adds and syncs is durable and seen by the others, what
 * it does not sync is not, and no failing call of the system loses what was acknowledged. */
#include "base/random.h"
#include "hnsw/graph/publish.h"
#include "tests/check_main.h"
#include "tests/clusters.h"
#include "tests/faults.h"
#include "tests/indexes.h"
#include "tests/scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N = 600, MORE = 200, ALL = N + MORE, ROOM = 1000, DIM = 20, QUERIES = 20, K = 10, EF = 60 };

static scratch place;
static float *x;

static void set_up(void) {
    scratch_open(&place);
    x = clusters_make(ALL + QUERIES, DIM, 0.3, 21);
}

static void tear_down(void) {
    free(x);
    scratch_close(&place);
}

static const struct kind {
    sl_dtype dtype;
    sl_codes codes;
    sl_refine refine;
} kinds[] = {
    {SL_F32, SL_CODES_I8, SL_REFINE_NONE}, {SL_F32, SL_CODES_I8, SL_REFINE_BF16},
    {SL_F32, SL_CODES_I16, SL_REFINE_I16}, {SL_F32, SL_CODES_F32, SL_REFINE_NONE},
    {SL_U8, SL_CODES_I8, SL_REFINE_NONE},  {SL_F32, SL_CODES_I4, SL_REFINE_NONE},
    {SL_U8, SL_CODES_I4, SL_REFINE_NONE},
};

static void params_of(const struct kind *kind, sl_index_params *params) {
    indexes_params(params, DIM, SL_METRIC_L2);
    params->dtype = kind->dtype;
    params->codes = kind->codes;
    params->refine = kind->refine;
}

static void save_with_room(sl_index *index, size_t room) {
    sl_save_params params;
    indexes_save_params(&params);
    params.room = room;
    ck_ok(sl_index_save(index, place.path, &params));
}

static sl_status open_as(sl_place where, int writable, const sl_file_ops *ops, sl_index **out) {
    sl_open_params params;
    sl_open_params_init(&params);
    params.place = where;
    params.writable = writable;
    params.file_ops = ops;
    return sl_index_open(place.path, &params, out);
}

static sl_index *opened(sl_place where, int writable) {
    sl_index *index;
    ck_ok(open_as(where, writable, NULL, &index));
    return index;
}

typedef struct answers {
    uint64_t ids[QUERIES * K];
    float scores[QUERIES * K];
} answers;

static answers ask(const sl_index *index, const void *rows, sl_dtype dtype) {
    answers a;
    memset(&a, 0, sizeof a);
    const char *queries = (const char *)rows + ALL * DIM * sl_dtype_size(dtype);
    indexes_search(index, queries, dtype, QUERIES, K, EF, a.ids, a.scores);
    return a;
}

static const void *row(const void *rows, sl_dtype dtype, size_t i) {
    return (const char *)rows + i * DIM * sl_dtype_size(dtype);
}

/* ---------------------------------------------------------------------------------------------------------------
 * The same as in memory
 * ------------------------------------------------------------------------------------------------------------- */

/* One thread and one order of adding make the same graph wherever its bytes are. */
START_TEST(grows_as_in_memory) {
    const struct kind *kind = &kinds[_i];
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

static void make_live(size_t n, size_t room) {
    sl_index_params params;
    params_of(&kinds[0], &params);
    sl_index *index = indexes_make(&params, x, SL_F32, n, NULL, 1);
    save_with_room(index, room);
    sl_index_free(index);
}

static void *alloc_little(void *ctx, size_t size, size_t alignment) {
    (void)ctx;
    return size > (4 << 20) ? NULL : aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
}

static void free_little(void *ctx, void *at, size_t size) {
    (void)ctx;
    (void)size;
    free(at);
}

/* What a handle needs in memory goes by what the file holds, not by what it has room for. */
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

/* What a writer in persistent memory has left half done is told from damage, and its successor puts it right. */
START_TEST(half_done_is_not_damage) {
    static const size_t words[] = {offsetof(sl_published, linked), offsetof(sl_published, deleting)};
    uint64_t word = _i == 0 ? N - 10 : 1;
    sl_index *index;
    make_live(N, ROOM);
    index = opened(SL_PLACE_MAP, 0);
    const uint64_t head = sl_store_section(index->store, SL_SECTION_LIVE)->offset + SL_LIVE_HEAD;
    int fd = open(place.path, O_RDWR);
    ck_assert_int_eq(pwrite(fd, &word, sizeof word, (off_t)(head + words[_i])), sizeof word);
    close(fd);
    sl_check_report report = {.struct_size = sizeof report};
    ck_fails(sl_index_check(index, NULL, &report), SL_ECORRUPT, "a writer in persistent memory died");
    sl_index_free(index);
    ck_fails(open_as(SL_PLACE_DRAM, 0, NULL, &index), SL_ECORRUPT, "a writer in persistent memory died");
    index = opened(SL_PLACE_MAP, 1);
    ck_assert_uint_eq(sl_index_size(index), N);
    sl_index_free(index);
    fd = open(place.path, O_RDONLY);
    ck_assert_int_eq(pread(fd, &word, sizeof word, (off_t)(head + words[_i])), sizeof word);
    ck_assert_uint_eq(word, _i == 0 ? N : 0);
    close(fd);
}
END_TEST

/* The test runs a second time under PMEM_IS_PMEM_FORCE=1, by which libpmem takes any file for persistent memory.
 * Without it an ordinary file is written by way of the log, whatever place it was opened with. */
START_TEST(in_persistent_memory) {
    const struct kind *kind = &kinds[_i];
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

/* What a writer goes on to write would be written to a file without a name. */
START_TEST(no_save_over_a_file_being_written) {
    make_live(N, ROOM);
    sl_index *writer = opened(SL_PLACE_MAP, 1), *reader = opened(SL_PLACE_MAP, 0);
    ck_fails(sl_index_save(reader, place.path, NULL), SL_EBUSY, "is being written");
    ck_fails(sl_index_save(writer, place.path, NULL), SL_EBUSY, "is being written");
    ck_ok(indexes_add(writer, x, SL_F32, 1, NULL));
    ck_ok(sl_index_sync(writer));
    ck_assert_uint_eq(sl_index_size(reader), N + 1);
    sl_index_free(writer);
    ck_assert_uint_eq(scratch_count(&place), 1);
    ck_ok(sl_index_save(reader, place.path, NULL));
    sl_index_free(reader);
}
END_TEST

/* What is saved, and where to, while something else goes on there. */
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
    for (size_t from = 0; from < writer->n; from++) {
        uint32_t *links = sl_links(writer, from);
        for (size_t i = 0; i < writer->m0; i++) {
            if (links[i] != node) continue;
            sl_link_store(links + i, (uint32_t)(from ? 0 : 1));
            sl_index_touch(writer, links + i, sizeof *links);
        }
    }
}

/* A reader's mapping cannot be written: what is not reached stays its writer's to mend. Searchers it has use what it
 * was tuned for, each time. */
START_TEST(readers_are_tuned_in_memory) {
    make_live(N, ROOM);
    sl_index *writer = opened(SL_PLACE_MAP, 1), *reader;
    ck_ok(indexes_add(writer, x + N * DIM, SL_F32, 10, NULL));
    orphan(writer, N + 3);
    ck_assert_uint_gt(writer->unverified, 0);
    ck_ok(sl_index_sync(writer));
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

/* ---------------------------------------------------------------------------------------------------------------
 * Ends
 * ------------------------------------------------------------------------------------------------------------- */

/* A process that adds, syncs and adds again, and is gone before it syncs. */
static void write_and_die(void) {
    pid_t child = fork();
    if (child == 0) {
        sl_index *writer;
        if (open_as(SL_PLACE_MAP, 1, NULL, &writer) != SL_OK || indexes_add(writer, x + N * DIM, SL_F32, 100, NULL) ||
            sl_index_sync(writer) != SL_OK || indexes_add(writer, x + (N + 100) * DIM, SL_F32, 100, NULL))
            _exit(1);
        _exit(0);
    }
    int how;
    ck_assert_int_eq(waitpid(child, &how, 0), child);
    ck_assert_int_eq(how, 0);
}

START_TEST(unsynced_is_lost_whole) {
    make_live(N, ROOM);
    write_and_die();
    sl_index *reader = opened(SL_PLACE_MAP, 0);
    ck_assert_uint_eq(sl_index_size(reader), N + 100);
    indexes_sound(reader);
    sl_index *writer = opened(SL_PLACE_MAP, 1);
    ck_ok(indexes_add(writer, x, SL_F32, 1, NULL));
    ck_ok(sl_index_sync(writer));
    ck_assert_uint_eq(sl_index_size(reader), N + 101);
    sl_index_free(writer);
    sl_index_free(reader);
}
END_TEST

/* The superblock says which log goes on from it: it must be the one that the writer left. */
static void take_superblock(unsigned char *old) {
    sl_store *store;
    sl_allocator allocator = sl_allocator_of(NULL);
    ck_ok(sl_store_open(place.path, &sl_index_file, SL_PLACE_MAP, &allocator, &store));
    size_t section = (size_t)sl_store_section(store, SL_SECTION_LIVE)->offset;
    memcpy(old + section, store->base + section, sizeof(sl_superblock));
    sl_store_close(store, &allocator);
}

/* What a writer that died has left, with the file as it was before: the log is all there is. */
typedef struct remains {
    unsigned char *file, *log;
    size_t file_size, log_size;
    char log_path[SCRATCH_PATH];
} remains;

static void remains_make(remains *left) {
    make_live(N, ROOM);
    left->file = file_read(place.path, &left->file_size);
    write_and_die();
    scratch_name(&place, "index.sl.log", left->log_path);
    left->log = file_read(left->log_path, &left->log_size);
    take_superblock(left->file);
}

static void remains_free(remains *left) {
    free(left->file);
    free(left->log);
}

/* Whoever opens it finds all that was synced. */
static void remains_are_whole(const remains *left, sl_place where, int writable, int keep_off) {
    file_write(place.path, left->file, left->file_size);
    file_write(left->log_path, left->log, left->log_size);
    int held = open(place.path, O_RDONLY);
    if (keep_off) ck_assert_int_eq(flock(held, LOCK_SH | LOCK_NB), 0);
    sl_index *index = opened(where, writable);
    ck_assert_uint_eq(sl_index_size(index), N + 100);
    indexes_sound(index);
    sl_index_free(index);
    close(held);
}

START_TEST(log_alone_brings_it_back) {
    remains left;
    remains_make(&left);
    for (int writable = 0; writable < 2; writable++)
        remains_are_whole(&left, SL_PLACE_MAP, writable, 0);
    remains_free(&left);
}
END_TEST

/* Who saves over a crashed file keeps writers off it, and no reader from what its log has. */
START_TEST(healed_while_writers_are_kept_off) {
    remains left;
    remains_make(&left);
    for (int where = SL_PLACE_DRAM; where <= SL_PLACE_MAP; where++)
        remains_are_whole(&left, (sl_place)where, 0, 1);
    remains_free(&left);
}
END_TEST

static sl_status check_file(void) {
    sl_check_report report = {.struct_size = sizeof report};
    sl_index *reader = opened(SL_PLACE_MAP, 0);
    sl_status status = sl_index_check(reader, NULL, &report);
    sl_index_free(reader);
    return status;
}

static void expect_log_lost(int wanted) {
    sl_index *reader = opened(SL_PLACE_MAP, 0);
    ck_assert_int_eq(indexes_storage(reader).log_lost, wanted);
    sl_index_free(reader);
}

static void grow_by_one(size_t wanted) {
    sl_index *writer = opened(SL_PLACE_MAP, 1);
    ck_ok(indexes_add(writer, x, SL_F32, 1, NULL));
    ck_ok(sl_index_sync(writer));
    ck_assert_uint_eq(sl_index_size(writer), wanted);
    sl_index_free(writer);
}

/* A crashed file that was renamed without its log, or is known by another name: it is searched as it is, and not
 * written, not copied from and not sound until the log is beside it, or is given up by an empty one. */
START_TEST(not_written_without_its_log) {
    remains left;
    sl_index *index;
    char elsewhere[SCRATCH_PATH], elsewhere_copy[SCRATCH_PATH];
    scratch_name(&place, "copy.sl", elsewhere_copy);
    remains_make(&left);
    file_write(place.path, left.file, left.file_size);
    scratch_name(&place, "elsewhere", elsewhere);
    ck_assert_int_eq(rename(left.log_path, elsewhere), 0);
    for (int i = 0; i < 2; i++) {
        ck_fails(open_as(SL_PLACE_MAP, 1, NULL, &index), SL_ECORRUPT, "index.sl.log: the log is missing");
        ck_fails(open_as(SL_PLACE_DRAM, 0, NULL, &index), SL_ECORRUPT, "the log is missing");
        ck_fails(check_file(), SL_ECORRUPT, "the log is missing");
        expect_log_lost(1);
        ck_fails(sl_index_snapshot(place.path, elsewhere_copy, NULL), SL_ECORRUPT, "the log is missing");
    }
    if (_i == 0) {
        ck_assert_int_eq(rename(elsewhere, left.log_path), 0);
        grow_by_one(N + 101);
    } else {
        file_write(left.log_path, "", 0);
        grow_by_one(N + 1);
    }
    ck_ok(check_file());
    expect_log_lost(0);
    ck_assert_int_ne(access(left.log_path, F_OK), 0);
    remains_free(&left);
}
END_TEST

/* The log of a file that was moved away is not overwritten by the writer of the file that took its name. */
START_TEST(its_log_outlives_another_of_its_name) {
    char moved[SCRATCH_PATH], moved_log[SCRATCH_PATH], aside[SCRATCH_PATH + 16];
    make_live(N, ROOM);
    write_and_die();
    scratch_name(&place, "moved.sl", moved);
    scratch_name(&place, "moved.sl.log", moved_log);
    ck_assert_int_eq(rename(place.path, moved), 0);
    make_live(N, ROOM);
    grow_by_one(N + 1);
    glob_t found;
    snprintf(aside, sizeof aside, "%s.log.old-*", place.path);
    ck_assert_int_eq(glob(aside, 0, NULL, &found), 0);
    ck_assert_uint_eq(found.gl_pathc, 1);
    ck_assert_int_eq(rename(moved, place.path), 0);
    scratch_name(&place, "index.sl.log", moved_log);
    ck_assert_int_eq(rename(found.gl_pathv[0], moved_log), 0);
    globfree(&found);
    grow_by_one(N + 101);
}
END_TEST

/* A log that is removed, or cut, while its writer goes on: what was synced before is made sure in the file, and what
 * comes goes to a log of its own. */
START_TEST(a_log_that_is_lost_is_made_anew) {
    make_live(N, ROOM);
    pid_t child = fork();
    if (child == 0) {
        char log[SCRATCH_PATH];
        sl_index *writer;
        scratch_name(&place, "index.sl.log", log);
        if (open_as(SL_PLACE_MAP, 1, NULL, &writer) != SL_OK || indexes_add(writer, x + N * DIM, SL_F32, 50, NULL) ||
            sl_index_sync(writer) != SL_OK || (_i == 0 ? unlink(log) : truncate(log, 0)) != 0 ||
            indexes_add(writer, x + (N + 50) * DIM, SL_F32, 50, NULL) || sl_index_sync(writer) != SL_OK)
            _exit(1);
        _exit(0);
    }
    int how;
    ck_assert_int_eq(waitpid(child, &how, 0), child);
    ck_assert_int_eq(how, 0);
    grow_by_one(N + 101);
    ck_ok(check_file());
}
END_TEST

/* The file of a writer that was killed holds all that was acknowledged. A log that has lost its end says less, and is
 * not replayed over it; one that was emptied by hand lets the file count. */
START_TEST(a_log_that_was_cut_takes_nothing_back) {
    static const long cuts[] = {8, 100, 3000};
    sl_index *index;
    size_t log_size, size, size_after;
    char log_path[SCRATCH_PATH], copy[SCRATCH_PATH];
    make_live(N, ROOM);
    write_and_die();
    scratch_name(&place, "index.sl.log", log_path);
    scratch_name(&place, "copy.sl", copy);
    unsigned char *log = file_read(log_path, &log_size), *file = file_read(place.path, &size);
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        file_write(log_path, log, log_size - (size_t)cuts[i]);
        for (int writable = 0; writable < 2; writable++)
            ck_fails(open_as(SL_PLACE_MAP, writable, NULL, &index), SL_ECORRUPT, "where its index itself holds 1");
        ck_fails(open_as(SL_PLACE_DRAM, 0, NULL, &index), SL_ECORRUPT, "where its index itself holds 1");
        ck_fails(sl_index_snapshot(place.path, copy, NULL), SL_ECORRUPT, "where its index itself holds 1");
        unsigned char *after = file_read(place.path, &size_after);
        ck_assert_uint_eq(size_after, size);
        ck_assert_mem_eq(after, file, size);
        free(after);
    }
    log[log_size - 1] ^= 1;
    file_write(log_path, log, log_size);
    ck_fails(open_as(SL_PLACE_MAP, 1, NULL, &index), SL_ECORRUPT, "where its index itself holds 1");
    file_write(log_path, "", 0);
    grow_by_one(N + 101);
    ck_ok(check_file());
    free(file);
    free(log);
}
END_TEST

static void flip_in_file(uint64_t at) {
    unsigned char byte;
    int fd = open(place.path, O_RDWR);
    ck_assert_int_eq(pread(fd, &byte, 1, (off_t)at), 1);
    byte ^= 1;
    ck_assert_int_eq(pwrite(fd, &byte, 1, (off_t)at), 1);
    close(fd);
}

/* Either superblock of a file that was closed says that no log is missing. */
START_TEST(one_superblock_is_enough) {
    make_live(N, ROOM);
    grow_by_one(N + 1);
    sl_index *reader = opened(SL_PLACE_MAP, 0);
    const uint64_t section = sl_store_section(reader->store, SL_SECTION_LIVE)->offset;
    sl_index_free(reader);
    flip_in_file(section + (uint64_t)_i * SL_LIVE_PAGE + 100);
    ck_ok(check_file());
    grow_by_one(N + 2);
    ck_ok(check_file());
}
END_TEST

/* The superblock that is left of a crashed file may be of the epoch before its log's: the log is not to be given up. */
START_TEST(a_log_outlives_a_damaged_superblock) {
    sl_superblock super;
    sl_index *index;
    make_live(N, ROOM);
    write_and_die();
    sl_index *reader = opened(SL_PLACE_MAP, 0);
    const uint64_t section = sl_store_section(reader->store, SL_SECTION_LIVE)->offset;
    ck_ok(sl_writable_super(reader->store, &super));
    sl_index_free(reader);
    write_and_die();
    flip_in_file(section + (super.sequence + 1) % SL_SUPERBLOCKS * SL_LIVE_PAGE + 100);
    ck_fails(open_as(SL_PLACE_MAP, 1, NULL, &index), SL_ECORRUPT, "keep the log, and restore a copy of the index");
}
END_TEST

/* A shorter file over the writer's: what is behind its end cannot be touched any more, and nobody tries to. */
START_TEST(a_shorter_file_copied_over_is_noticed) {
    make_live(N, ROOM);
    sl_index *writer = opened(SL_PLACE_MAP, 1);
    ck_ok(indexes_add(writer, x + N * DIM, SL_F32, 10, NULL));
    if (_i) ck_ok(sl_index_sync(writer));
    ck_assert_int_eq(truncate(place.path, 8192), 0);
    uint64_t id = 3;
    ck_fails(sl_index_sync(writer), SL_EBUSY, "was written over");
    ck_fails(indexes_add(writer, x + (N + 10) * DIM, SL_F32, 10, NULL), SL_EBUSY, "was written over");
    ck_fails(sl_index_delete(writer, &id, 1), SL_EBUSY, "was written over");
    sl_index_free(writer);
}
END_TEST

/* A copy of itself, from before, took the writer's name: the log under that name is what brings the copy up to date. */
START_TEST(the_log_of_a_copy_that_took_its_name_stays) {
    size_t size;
    char other[SCRATCH_PATH];
    make_live(N, ROOM);
    scratch_name(&place, "other", other);
    sl_index *writer = opened(SL_PLACE_MAP, 1);
    ck_ok(indexes_add(writer, x + N * DIM, SL_F32, 10, NULL));
    ck_ok(sl_index_sync(writer));
    unsigned char *file = file_read(place.path, &size);
    file_write(other, file, size);
    ck_ok(indexes_add(writer, x + (N + 10) * DIM, SL_F32, 10, NULL));
    ck_ok(sl_index_sync(writer));
    ck_assert_int_eq(rename(other, place.path), 0);
    sl_index_free(writer);
    grow_by_one(N + 21);
    ck_ok(check_file());
    free(file);
}
END_TEST

/* What never became a whole group is given up by whoever comes by, so that nobody reads it time and again. */
START_TEST(a_group_that_was_cut_off_is_given_up) {
    remains left;
    sl_superblock super;
    uint64_t ids[K];
    sl_search_params params;
    remains_make(&left);
    file_write(place.path, left.file, left.file_size);
    file_write(left.log_path, left.log, left.log_size - 8);
    sl_index *reader = opened(SL_PLACE_MAP, 0);
    ck_ok(sl_writable_super(reader->store, &super));
    ck_assert_uint_eq(super.logged, 1);
    sl_search_params_init(&params);
    ck_ok(sl_index_search(reader, x, SL_F32, 1, 0, K, &params, ids, NULL, NULL));
    ck_ok(sl_writable_super(reader->store, &super));
    ck_assert_uint_eq(super.logged, 0);
    ck_assert_uint_eq(sl_index_size(reader), N);
    ck_ok(sl_index_check(reader, NULL, &(sl_check_report){.struct_size = sizeof(sl_check_report)}));
    sl_index_free(reader);
    remains_free(&left);
}
END_TEST

/* The last group may be one that never reached the device; the head and all before it did. */
START_TEST(a_damaged_log_is_not_passed_over) {
    remains left;
    sl_index *index;
    remains_make(&left);
    file_write(place.path, left.file, left.file_size);
    left.log[20] ^= 1;
    file_write(left.log_path, left.log, left.log_size);
    for (int writable = 0; writable < 2; writable++)
        ck_fails(open_as(SL_PLACE_MAP, writable, NULL, &index), SL_ECORRUPT, "the log's head is damaged");
    ck_assert_int_eq(unlink(left.log_path), 0);
    sl_superblock super;
    sl_index *reader = opened(SL_PLACE_MAP, 0);
    file_write(left.log_path, left.log, left.log_size);
    (void)ask(reader, x, SL_F32);
    ck_ok(sl_writable_super(reader->store, &super));
    /* It is not read again at each second of its searches. */
    ck_assert_uint_eq(reader->store->given_up, super.sequence);
    sl_index_free(reader);
    left.log[20] ^= 1;
    file_write(left.log_path, left.log, left.log_size);
    grow_by_one(N + 101);
    remains_free(&left);
}
END_TEST

/* Readers who may not write to the file see it whole all the same. In a process of its own, which first becomes someone
 * who may not. */
START_TEST(healed_without_writing) {
    make_live(N, ROOM);
    write_and_die();
    ck_assert_int_eq(chmod(place.path, 0444), 0);
    ck_assert_int_eq(chmod(place.folder, 0555), 0);
    pid_t child = fork();
    if (child == 0) {
        if (geteuid() == 0 && setuid(65534) != 0) _exit(2);
        sl_index *reader;
        if (open_as(SL_PLACE_MAP, 0, NULL, &reader) != SL_OK || sl_index_size(reader) != N + 100) _exit(1);
        indexes_sound(reader);
        sl_index_free(reader);
        _exit(0);
    }
    int how;
    ck_assert_int_eq(waitpid(child, &how, 0), child);
    ck_assert_int_eq(how, 0);
    ck_assert_int_eq(chmod(place.folder, 0755), 0);
    sl_index *reader = opened(SL_PLACE_MAP, 0);
    ck_assert_uint_eq(sl_index_size(reader), N + 100);
    sl_index_free(reader);
}
END_TEST

/* Every call of the system's fails in turn. Whatever fails, the next to open finds all that was acknowledged. */
START_TEST(every_call_may_fail) {
    for (int kind = 0; kind < FAULT_KINDS; kind++)
        for (size_t at = 1; at < 40; at++) {
            fault_files files;
            fault_files_init(&files);
            files.error = kind == FAULT_ALLOCATE ? ENOSPC : EIO;
            files.fail_at[kind] = at;
            files.write_limit = at % 2 ? 1000 : 0;
            files.interrupt_every = at % 3 ? 7 : 0;
            make_live(N, ROOM);
            size_t safe = N;
            sl_index *writer = NULL;
            if (open_as(SL_PLACE_MAP, 1, &files.ops, &writer) == SL_OK) {
                for (size_t i = 0; i < 3; i++) {
                    size_t n = sl_index_size(writer);
                    if (indexes_add(writer, x + n * DIM, SL_F32, 10, NULL) != SL_OK)
                        ck_assert_int_eq(kind, FAULT_ALLOCATE);
                    if (sl_index_sync(writer) == SL_OK) safe = sl_index_size(writer);
                }
                sl_index_free(writer);
            }
            int reached = files.calls[kind] >= at;
            sl_index *again = opened(SL_PLACE_MAP, (int)at % 2);
            ck_assert_msg(sl_index_size(again) >= safe, "%s %zu failing lost %zu of %zu",
                          fault_kind_name((fault_kind)kind), at, safe - sl_index_size(again), safe);
            indexes_sound(again);
            sl_index_free(again);
            if (!reached) break;
        }
}
END_TEST

/* Failing must say why. */
static void may_fail(sl_status status) {
    ck_assert(status == SL_OK || *sl_last_error());
}

/* Nothing in the file is trusted, also by one who writes to it, and opening reads no checksum of what changes: it may
 * find wrong neighbours, or refuse, and that is all. */
START_TEST(damaged_files_do_no_harm) {
    make_live(N, ROOM);
    size_t size;
    unsigned char *good = file_read(place.path, &size), *bad = malloc(size);
    ck_assert_ptr_nonnull(bad);
    for (uint64_t round = 0; round < 600; round++) {
        memcpy(bad, good, size);
        /* Most of it where what matters lies: at the end, with the head page and the upper layers before it. */
        for (uint64_t i = 0; i < 1 + round % 30; i++) {
            uint64_t draw = sl_random_at(round, i), back = draw % (draw & 1 ? SL_LIVE_SIZE : size - SL_HEADER_SIZE);
            bad[size - 1 - back] = (unsigned char)(draw >> 40);
        }
        file_write(place.path, bad, size);
        sl_index *index;
        if (open_as(round % 4 == 3 ? SL_PLACE_DRAM : SL_PLACE_MAP, (int)(round % 2), NULL, &index) != SL_OK) continue;
        (void)ask(index, x, SL_F32);
        if (round % 2 || round % 4 == 3) {
            may_fail(indexes_add(index, x + N * DIM, SL_F32, 5, NULL));
            may_fail(sl_index_delete(index, &(uint64_t){round % N}, 1));
            if (round % 2) may_fail(sl_index_sync(index));
            (void)ask(index, x, SL_F32);
        }
        sl_check_report report = {.struct_size = sizeof report};
        may_fail(sl_index_check(index, NULL, &report));
        sl_index_free(index);
    }
    free(bad);
    free(good);
}
END_TEST

/* A log that is kept short is emptied time and again, and nothing is lost with it. */
START_TEST(short_log) {
    make_live(N, ROOM);
    sl_open_params params;
    sl_open_params_init(&params);
    params.writable = 1;
    params.log_bytes = 1;
    sl_index *writer;
    ck_ok(sl_index_open(place.path, &params, &writer));
    for (size_t i = 0; i < 20; i++) {
        ck_ok(indexes_add(writer, x + (N + 10 * i) * DIM, SL_F32, 10, NULL));
        ck_ok(sl_index_sync(writer));
    }
    answers grown = ask(writer, x, SL_F32);
    char log[SCRATCH_PATH];
    scratch_name(&place, "index.sl.log", log);
    struct stat info;
    ck_assert_int_eq(stat(log, &info), 0);
    ck_assert_int_eq(info.st_size, sizeof(sl_redo_head));
    sl_index_free(writer);
    ck_assert_uint_eq(scratch_count(&place), 1);
    sl_index *reader = opened(SL_PLACE_MAP, 0);
    answers mapped = ask(reader, x, SL_F32);
    ck_assert_mem_eq(&grown, &mapped, sizeof grown);
    sl_index_free(reader);
}
END_TEST

int main(void) {
    TCase *cases[] = {tcase_create("same"), tcase_create("who"), tcase_create("ends")};
    for (size_t i = 0; i < 3; i++) {
        tcase_add_checked_fixture(cases[i], set_up, tear_down);
        tcase_set_timeout(cases[i], 300);
    }
    tcase_add_loop_test(cases[0], grows_as_in_memory, 0, sizeof kinds / sizeof *kinds);
    tcase_add_loop_test(cases[0], from_nothing, 0, sizeof kinds / sizeof *kinds);
    tcase_add_loop_test(cases[0], in_persistent_memory, 0, sizeof kinds / sizeof *kinds);
    tcase_add_loop_test(cases[0], cancelled, 0, 2);
    tcase_add_test(cases[1], room_takes_no_memory);
    tcase_add_loop_test(cases[2], half_done_is_not_damage, 0, 2);
    tcase_add_test(cases[1], one_writer);
    tcase_add_test(cases[1], no_save_over_a_file_being_written);
    tcase_add_test(cases[1], a_file_that_was_replaced_is_not_written);
    tcase_add_test(cases[1], a_file_begun_during_a_save_is_kept);
    tcase_add_test(cases[1], room_is_what_was_asked);
    tcase_add_test(cases[1], ids_and_settings_last);
    tcase_add_test(cases[1], readers_are_tuned_in_memory);
    tcase_add_test(cases[2], unsynced_is_lost_whole);
    tcase_add_test(cases[2], log_alone_brings_it_back);
    tcase_add_loop_test(cases[2], not_written_without_its_log, 0, 2);
    tcase_add_test(cases[2], a_damaged_log_is_not_passed_over);
    tcase_add_test(cases[2], its_log_outlives_another_of_its_name);
    tcase_add_loop_test(cases[2], a_log_that_is_lost_is_made_anew, 0, 2);
    tcase_add_test(cases[2], a_log_that_was_cut_takes_nothing_back);
    tcase_add_loop_test(cases[2], one_superblock_is_enough, 0, 2);
    tcase_add_test(cases[2], a_log_outlives_a_damaged_superblock);
    tcase_add_loop_test(cases[2], a_shorter_file_copied_over_is_noticed, 0, 2);
    tcase_add_test(cases[2], the_log_of_a_copy_that_took_its_name_stays);
    tcase_add_test(cases[2], a_group_that_was_cut_off_is_given_up);
    tcase_add_test(cases[2], healed_while_writers_are_kept_off);
    tcase_add_test(cases[2], healed_without_writing);
    tcase_add_test(cases[2], every_call_may_fail);
    tcase_add_test(cases[2], damaged_files_do_no_harm);
    tcase_add_test(cases[2], short_log);
    return check_main("live", cases, 3);
}
