/* Deleting, replacing and adding in a file that is written in place: what other processes see of it, and when places
 * are used again. */
#include "base/random.h"
#include "hnsw/construct/reclaim.h"
#include "hnsw/graph/free_nodes.h"
#include "hnsw/graph/publish.h"
#include "hnsw/graph/version.h"
#include "tests/support/check_main.h"
#include "tests/support/clusters.h"
#include "tests/support/indexes.h"
#include "tests/support/sanitized.h"
#include "tests/support/scratch.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N = 600, ROOM = 700, DIM = 16, ROUNDS = SANITIZED ? 12 : 30, A_ROUND = 10, ROWS = 2 * N + 3 * ROUNDS * A_ROUND };
enum { NONE = -1 };

typedef struct kind {
    sl_codes codes;
    int multi;
} kind;
static const kind kinds[] = {{SL_CODES_I8, 0}, {SL_CODES_I4, 0}, {SL_CODES_F32, 1}};

/* The row that each id has; NONE: the id isn't there. */
typedef int rows_of[N];

static scratch place;
static float *x; /* ROWS rows. Each is added once */
static size_t next_row;
static rows_of synced, now; /* as of the last sync, and to the writer */
static uint64_t changed[3 * A_ROUND];
static size_t changes;
static sl_index *writer, *reader;
static int file = -1; /* the writer's descriptor of the index */
static int looks;     /* a sync is under way: the reader looks before each write */
static int dies;      /* the process ends before the first write */
static size_t looked;
static uint64_t head; /* where the head page begins */

/* ---------------------------------------------------------------------------------------------------------------
 * The reader
 * ------------------------------------------------------------------------------------------------------------- */

/* Returns whether the index finds the id with this row. */
static int finds(const sl_index *index, uint64_t id, int row) {
    sl_search_params params;
    uint64_t found;
    float score;
    sl_search_params_init(&params);
    params.ef = ROOM;
    ck_ok(sl_index_search(index, x + row * DIM, SL_F32, 1, 0, 1, &params, &found, &score, NULL));
    return found == id && fabsf(score) < 0.2F;
}

static void ck_sees(sl_index *index, uint64_t id, const rows_of rows) {
    int there;
    float vector[DIM];
    ck_ok(sl_index_contains(index, id, &there));
    ck_assert_msg(there == (rows[id] != NONE), "id %d is %s, in look %zu", (int)id, there ? "there" : "gone", looked);
    for (int i = 0; i < 2; i++) {
        const int row = i ? now[id] : synced[id];
        if (row != NONE)
            ck_assert_msg(finds(index, id, row) == (row == rows[id]), "id %d: row %d, and not %d, in look %zu", (int)id,
                          row, rows[id], looked);
    }
    if (rows[id] == NONE) return;
    ck_ok(sl_index_get(index, &id, 1, SL_F32, vector));
    for (size_t i = 0; i < DIM; i++)
        ck_assert_float_eq_tol(vector[i], x[(size_t)rows[id] * DIM + i], 0.3F);
}

static int open_noting(void *ctx, const char *path, int flags, unsigned mode) {
    (void)ctx;
    const int fd = open(path, flags, (mode_t)mode);
    if (strcmp(path, place.path) == 0) file = fd;
    return fd;
}

/* Until the head page is written, the reader finds what the last sync left. */
static int64_t pwrite_looking(void *ctx, int fd, const void *data, size_t size, uint64_t offset) {
    (void)ctx;
    if (dies && fd == file) _exit(0);
    if (looks && fd == file)
        for (size_t i = 0; i < 4; i++, looked++)
            ck_sees(reader, changed[sl_random_at(3, looked) % changes], synced);
    if (fd == file && offset >= head && offset < head + SL_LIVE_PAGE) looks = 0;
    return pwrite(fd, data, size, (off_t)offset);
}

static void sync_looking(void) {
    looks = 1;
    ck_ok(sl_index_sync(writer));
    looks = 0;
    memcpy(synced, now, sizeof now);
    for (size_t i = 0; i < changes; i++)
        ck_sees(reader, changed[i], synced);
    changes = 0;
}

/* ---------------------------------------------------------------------------------------------------------------
 * The writer
 * ------------------------------------------------------------------------------------------------------------- */

static sl_index *opened(int writable) {
    static const sl_file_ops ops = {.open = open_noting, .pwrite = pwrite_looking};
    sl_open_params params;
    sl_open_params_init(&params);
    params.writable = writable;
    if (writable) params.file_ops = &ops;
    sl_index *index;
    ck_ok(sl_index_open(place.path, &params, &index));
    return index;
}

static void make(const kind *kind) {
    sl_index_params params;
    sl_save_params save;
    indexes_params(&params, DIM, SL_METRIC_L2);
    params.codes = kind->codes;
    params.multi = kind->multi;
    uint64_t ids[N];
    for (size_t i = 0; i < N; i++)
        ids[i] = (uint64_t)(synced[i] = now[i] = (int)i);
    sl_index *index = indexes_make(&params, x, SL_F32, N, ids, 1);
    indexes_save_params(&save);
    save.room = ROOM;
    ck_ok(sl_index_save(index, place.path, &save));
    sl_index_free(index);
    next_row = N;
    writer = opened(1);
    reader = opened(0);
    head = sl_store_section(reader->store, SL_SECTION_LIVE)->offset + SL_LIVE_HEAD;
}

static void set_up(void) {
    scratch_open(&place);
    x = clusters_make(ROWS, DIM, 0.3, 19);
}

static void tear_down(void) {
    sl_index_free(reader);
    sl_index_free(writer);
    free(x);
    scratch_close(&place);
}

static void put(uint64_t id) {
    sl_add_params params;
    sl_add_params_init(&params);
    params.replace = now[id] != NONE;
    if (writer) ck_ok(sl_index_add(writer, x + next_row * DIM, SL_F32, 1, 0, &id, &params));
    now[id] = (int)next_row++;
}

static void take_out(uint64_t id) {
    if (writer) ck_ok(sl_index_delete(writer, &id, 1));
    now[id] = NONE;
}

/* Replaces, deletes and adds. Ids that were gone come back. Without a writer, only notes what one has done. */
static void change(size_t round) {
    for (size_t i = 0; i < A_ROUND; i++) {
        const uint64_t id = sl_random_at(round, i) % N, other = sl_random_at(round, i + A_ROUND) % N;
        put(changed[changes++] = id);
        if (now[other] != NONE)
            take_out(changed[changes++] = other);
        else
            put(changed[changes++] = other);
    }
}

/* ---------------------------------------------------------------------------------------------------------------
 * Tests
 * ------------------------------------------------------------------------------------------------------------- */

/* More vectors come than the file has room for. At every write of every sync the reader finds each id with the vector
 * that the last sync left. */
START_TEST(old_or_new) {
    make(&kinds[_i]);
    for (size_t round = 0; round < ROUNDS; round++) {
        change(round);
        sync_looking();
        if (round != ROUNDS / 2) continue;
        sl_index_free(writer);
        writer = opened(1);
    }
    ck_assert_uint_gt(next_row, ROOM);
    ck_assert_uint_gt(looked, ROUNDS);
    ck_assert_uint_eq(sl_index_size(reader), sl_index_size(writer));
    ck_assert_uint_eq(indexes_stats(reader).reusable, indexes_stats(writer).reusable);
    indexes_sound(writer);
    indexes_sound(reader);
}
END_TEST

/* Writes some rounds, and dies once the log of the last one is written. */
static void write_and_die(size_t rounds) {
    const pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        writer = opened(1);
        for (size_t round = 0; round < rounds; round++, changes = 0) {
            change(round);
            dies = round + 1 == rounds;
            if (sl_index_sync(writer) != SL_OK) _exit(1);
        }
        _exit(2);
    }
    int how;
    ck_assert_int_eq(waitpid(child, &how, 0), child);
    ck_assert_msg(WIFEXITED(how) && WEXITSTATUS(how) == 0, "the writer ended with %d", how);
}

/* The same at every write of a replay, which writes what many commits wrote. */
START_TEST(old_or_new_in_a_replay) {
    enum { SYNCS = 8 };
    make(&kinds[_i]);
    sl_index_free(writer);
    writer = NULL;
    write_and_die(SYNCS);
    for (size_t round = 0; round + 1 < SYNCS; round++, changes = 0)
        change(round);
    memcpy(synced, now, sizeof now);
    change(SYNCS - 1);
    looks = 1;
    writer = opened(1);
    looks = 0;
    ck_assert_uint_gt(looked, 0);
    memcpy(synced, now, sizeof now);
    for (size_t i = 0; i < changes; i++)
        ck_sees(reader, changed[i], synced);
    indexes_sound(reader);
}
END_TEST

/* Words of two commits, as a reader may find them within a commit: it goes by those that it read before. */
START_TEST(words_of_two_commits) {
    make(&kinds[0]);
    const size_t at = writer->writer->section + SL_LIVE_HEAD + offsetof(sl_published, dead);
    take_out(5);
    ck_ok(sl_index_sync(writer));
    ck_assert_uint_eq(sl_index_size(reader), N - 1);
    take_out(6);
    ck_ok(sl_index_sync(writer));
    file_patch(place.path, at, &(uint64_t){100}, sizeof(uint64_t));
    ck_assert_uint_eq(sl_index_size(reader), N);
    file_patch(place.path, at, &(uint64_t){2}, sizeof(uint64_t));
    ck_assert_uint_eq(sl_index_size(reader), N - 2);
}
END_TEST

/* Takes the deleted nodes out of the graph, as far as that goes now. */
static void reclaim(void) {
    int waits;
    for (size_t i = 0; i < 100; i++)
        ck_ok(sl_reclaim_some(writer, N, &waits));
}

/* Lists lead to deleted nodes until a sync has the delete. Their places are free once a sync has the other lists. */
START_TEST(places_wait_for_a_sync) {
    make(&kinds[0]);
    for (uint64_t id = 0; id < 50; id++)
        take_out(id);
    reclaim();
    ck_assert_ptr_null(writer->reclaim);
    ck_ok(sl_index_sync(writer));
    reclaim();
    ck_assert_ptr_nonnull(writer->reclaim);
    ck_assert_uint_eq(writer->free.count, 0);
    ck_ok(sl_index_sync(writer));
    reclaim();
    ck_assert_uint_ge(writer->free.count, 49);
    ck_assert_uint_eq(indexes_stats(reader).reusable, 0);
    ck_ok(sl_index_sync(writer));
    ck_assert_uint_eq(indexes_stats(reader).reusable, writer->free.count);
}
END_TEST

/* A search in another process that began before the lists were swept holds the places, and the writer knows whose it
 * is. */
START_TEST(places_wait_for_searches) {
    sl_reading reading;
    sl_epoch_holder holder;
    size_t count;
    make(&kinds[0]);
    for (uint64_t id = 0; id < 50; id++)
        take_out(id);
    ck_ok(sl_index_sync(writer));
    const sl_graph *graph = sl_reading_begin(reader, &reading);
    const uint64_t commit = graph->as_of;
    reclaim();
    ck_ok(sl_index_sync(writer));
    reclaim();
    ck_assert_uint_eq(writer->free.count, 0);
    ck_ok(sl_index_holders(writer, &holder, 1, &count));
    ck_assert_uint_eq(count, 1);
    ck_assert_uint_eq(holder.epoch, commit);
    ck_assert_int_eq(holder.pid, (int)getpid());
    sl_reading_end(&reading);
    reclaim();
    ck_assert_uint_ge(writer->free.count, 49);
}
END_TEST

/* Free places keep nothing of their vector, and a later writer knows them. */
START_TEST(freed_places_are_empty) {
    static const uint8_t zeros[DIM];
    make(&kinds[0]);
    for (uint64_t id = 0; id < 50; id++)
        take_out(id);
    ck_ok(sl_index_sync(writer));
    reclaim();
    ck_ok(sl_index_sync(writer));
    reclaim();
    ck_ok(sl_index_sync(writer));
    const size_t count = writer->free.count;
    size_t empty = 0;
    for (size_t node = 0; node < N; node++) {
        if (!sl_node_set_has(&writer->free, node)) continue;
        ck_assert_mem_eq(sl_row(&reader->graph, (uint32_t)node), zeros, DIM);
        ck_assert_uint_eq(sl_id_of(&reader->graph, (uint32_t)node), 0);
        empty++;
    }
    ck_assert_uint_eq(empty, count);
    ck_assert_uint_ge(count, 49);
    sl_index_free(writer);
    writer = opened(1);
    ck_assert_uint_eq(indexes_stats(writer).reusable, count);
    for (uint64_t id = 0; id < 40; id++)
        put(id);
    ck_assert_uint_eq(writer->graph.n, N);
    ck_assert_uint_eq(indexes_stats(writer).reusable, count - 40);
    ck_ok(sl_index_sync(writer));
    indexes_sound(reader);
}
END_TEST

/* A full file takes vectors again after deletes and syncs, however few the deletes are. */
START_TEST(full_files_take_vectors_again) {
    const uint64_t id = 2 * N;
    size_t tries = 0;
    make(&kinds[0]);
    ck_ok(indexes_add(writer, x + next_row * DIM, SL_F32, ROOM - N, NULL));
    ck_fails(indexes_add(writer, x + next_row * DIM, SL_F32, 1, &id), SL_ELIMIT, "has room for");
    take_out(3);
    while (indexes_add(writer, x + next_row * DIM, SL_F32, 1, &id) != SL_OK) {
        ck_assert_uint_lt(tries++, 10);
        ck_ok(sl_index_sync(writer));
    }
    ck_assert_uint_eq(writer->graph.n, ROOM);
    indexes_sound(writer);
}
END_TEST

static int is_in_memory(void) {
    struct statfs system;
    return statfs(place.path, &system) == 0 && system.f_type == TMPFS_MAGIC;
}

static blkcnt_t blocks(void) {
    struct stat info;
    ck_assert_int_eq(stat(place.path, &info), 0);
    return info.st_blocks;
}

/* Compaction takes all deleted vectors out and gives blocks back. The places serve later adds, also where the blocks
 * are gone. */
START_TEST(compacted) {
    make(&kinds[0]);
    for (uint64_t id = 0; id < N - 50; id++)
        take_out(id);
    ck_ok(sl_index_sync(writer));
    const blkcnt_t before = blocks();
    ck_ok(sl_index_compact(writer, NULL));
    ck_assert_uint_eq(indexes_stats(writer).deleted, 0);
    ck_assert_uint_eq(indexes_stats(reader).reusable, N - 50);
    ck_assert(is_in_memory() || indexes_layout() == SL_LAYOUT_RECORDS ||
              blocks() < before); /* records hold links, too */
    indexes_sound(writer);
    indexes_sound(reader);
    for (uint64_t id = 0; id < N - 50; id++)
        put(id);
    ck_assert_uint_eq(writer->graph.n, N);
    ck_ok(sl_index_sync(writer));
    memcpy(synced, now, sizeof now);
    for (uint64_t id = 0; id < N; id++)
        ck_sees(reader, id, now);
    indexes_sound(reader);
}
END_TEST

START_TEST(compaction_waits_and_is_cancelled) {
    sl_compact_params params;
    sl_compact_params_init(&params);
    params.progress = indexes_cancel;
    make(&kinds[0]);
    ck_ok(sl_index_compact(writer, NULL));
    for (uint64_t id = 0; id < 50; id++)
        take_out(id);
    ck_fails(sl_index_compact(writer, &params), SL_ECANCELED, "");
    indexes_sound(writer);
    ck_ok(sl_index_compact(writer, NULL));
    ck_assert_uint_eq(indexes_stats(writer).deleted, 0);
    ck_fails(sl_index_compact(reader, NULL), SL_EREADONLY, "read-only");
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("living_file");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_set_timeout(tests, 300);
    tcase_add_loop_test(tests, old_or_new, 0, sizeof kinds / sizeof *kinds);
    tcase_add_loop_test(tests, old_or_new_in_a_replay, 0, sizeof kinds / sizeof *kinds);
    tcase_add_test(tests, words_of_two_commits);
    tcase_add_test(tests, places_wait_for_a_sync);
    tcase_add_test(tests, places_wait_for_searches);
    tcase_add_test(tests, freed_places_are_empty);
    tcase_add_test(tests, full_files_take_vectors_again);
    tcase_add_test(tests, compacted);
    tcase_add_test(tests, compaction_waits_and_is_cancelled);
    return check_main("living_file", &tests, 1);
}
