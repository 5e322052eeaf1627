/* A file's index made anew in its place: what a merge of it makes, while others go on with the old one. Nobody changes
 * the file meanwhile, and whatever goes wrong leaves the old file whole. */
#include "hnsw/graph/index.h"
#include "tests/support/faults.h"
#include "tests/support/live_files.h"
#include "tests/support/sanitized.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { GONE = 60, LEFT = N - GONE };

/* Four files: arrays or records, without room or with it. */
enum { FILES = 4 };
static sl_layout layout_of(int file) {
    return file % 2 ? SL_LAYOUT_RECORDS : SL_LAYOUT_ARRAYS;
}
static size_t room_of(int file) {
    return file / 2 ? ROOM : 0;
}

/* An index of N vectors with their ids for tags and keys, of which every tenth is deleted. */
static sl_index *made(const live_kind *kind, const void *rows, int multi) {
    uint64_t ids[N], gone[GONE];
    sl_index *index;
    sl_index_params params;
    sl_add_params add;
    params_of(kind, &params);
    params.tags = params.keys = 1;
    params.multi = multi;
    for (uint64_t i = 0; i < N; i++)
        ids[i] = 3 * i + 1;
    for (size_t i = 0; i < GONE; i++)
        gone[i] = ids[10 * i + 9];
    sl_add_params_init(&add);
    add.threads = 1;
    add.tags = add.keys = ids;
    ck_ok(sl_index_create(&params, &index));
    ck_ok(sl_index_add(index, rows, kind->dtype, N, 0, ids, &add));
    index->keeps_deleted = 1;
    ck_ok(sl_index_delete(index, gone, GONE));
    return index;
}

static void save_as(sl_index *index, const char *path, int file) {
    sl_save_params save;
    sl_save_params_init(&save);
    save.layout = layout_of(file);
    save.room = room_of(file);
    ck_ok(sl_index_save(index, path, &save));
}

/* The first kind's index at place.path. */
static void make_file(int file) {
    sl_index *index = made(&kinds[1], x, 0);
    save_as(index, place.path, file);
    sl_index_free(index);
}

static sl_rebuild_params on_one_thread(void) {
    sl_rebuild_params params;
    sl_rebuild_params_init(&params);
    params.threads = 1;
    return params;
}

static sl_rebuild_report rebuilt(const sl_rebuild_params *params) {
    sl_rebuild_report report = {.struct_size = sizeof report};
    ck_ok(sl_index_rebuild(place.path, params, &report));
    return report;
}

/* The old file is there, whole, with nothing beside it and nobody's claim on it. */
static void is_as_it_was(const unsigned char *bytes, size_t size) {
    size_t now;
    sl_index *index;
    unsigned char *found = file_read(place.path, &now);
    ck_assert_uint_eq(now, size);
    ck_assert_mem_eq(found, bytes, size);
    free(found);
    ck_assert_uint_eq(scratch_count(&place), 1);
    sl_open_params params;
    sl_open_params_init(&params);
    params.exclusive = 1;
    ck_ok(sl_index_open(place.path, &params, &index));
    sl_index_free(index);
}

static size_t size_now(void) {
    sl_index *index = opened(SL_PLACE_MAP, 0);
    const size_t size = sl_index_size(index);
    indexes_sound(index);
    sl_index_free(index);
    return size;
}

/* ---------------------------------------------------------------------------------------------------------------
 * The rebuilt file
 * ------------------------------------------------------------------------------------------------------------- */

static void same_bytes(const char *a, const char *b) {
    size_t size, other_size;
    unsigned char *bytes = file_read(a, &size), *other = file_read(b, &other_size);
    ck_assert_uint_eq(size, other_size);
    ck_assert_mem_eq(bytes, other, size);
    free(bytes);
    free(other);
}

static void same_answers(sl_index *a, sl_index *b, const void *rows, sl_dtype dtype) {
    const answers one = ask(a, rows, dtype), other = ask(b, rows, dtype);
    ck_assert_mem_eq(&one, &other, sizeof one);
    for (uint64_t i = 0; i < N; i++) {
        uint64_t id = 3 * i + 1, word;
        int found;
        float mine[DIM], its[DIM];
        ck_ok(sl_index_contains(b, id, &found));
        ck_assert_int_eq(found, i % 10 != 9);
        if (!found) continue;
        ck_ok(sl_index_get_tags(b, &id, 1, &word));
        ck_assert_uint_eq(word, id);
        ck_ok(sl_index_get_keys(b, &id, 1, &word));
        ck_assert_uint_eq(word, id);
        ck_ok(sl_index_get(a, &id, 1, SL_F32, mine));
        ck_ok(sl_index_get(b, &id, 1, SL_F32, its));
        ck_assert_mem_eq(mine, its, sizeof mine);
    }
}

/* Each kind in each file, beside a merge of one. A file without room is the same in every byte. */
START_TEST(as_a_merge_of_one) {
    const live_kind *kind = &kinds[_i / FILES];
    if (SANITIZED && _i % 3) return;
    const int file = _i % FILES;
    void *rows = clusters_as(kind->dtype, x, (ALL + QUERIES) * DIM);
    char path[SCRATCH_PATH];
    sl_index *index = made(kind, rows, _i % 3 == 0), *merged;
    sl_merge_params merge;
    sl_merge_params_init(&merge);
    merge.threads = 1;
    save_as(index, place.path, file);
    sl_index_free(index);
    index = opened(SL_PLACE_MAP, 0);
    ck_ok(sl_index_merge(&index, 1, &merge, &merged));
    const sl_index_stats before = indexes_stats(index);
    sl_index_free(index);
    scratch_name(&place, "merged.sl", path);
    save_as(merged, path, file);
    const sl_rebuild_params params = on_one_thread();
    const sl_rebuild_report report = rebuilt(&params);
    if (!room_of(file)) same_bytes(place.path, path);
    index = opened(SL_PLACE_MAP, 0);
    same_answers(merged, index, rows, kind->dtype);
    indexes_sound(index);
    const sl_index_stats after = indexes_stats(index);
    ck_assert_uint_eq(after.n, LEFT);
    ck_assert_uint_eq(after.deleted, 0);
    ck_assert_uint_eq(after.room, room_of(file));
    ck_assert_int_eq(after.layout, layout_of(file));
    ck_assert_int_eq(after.multi, before.multi);
    ck_assert_uint_eq(index->graph.next_id, 3 * (N - 1) + 2);
    ck_assert_uint_eq(report.n, LEFT);
    ck_assert_uint_eq(report.deleted, GONE);
    ck_assert_uint_eq(report.bytes_before, before.bytes_total);
    ck_assert_uint_eq(report.bytes_after, after.bytes_total);
    ck_assert_uint_lt(report.bytes_after, report.bytes_before);
    ck_assert_uint_eq(report.room, room_of(file));
    ck_assert_int_eq(report.layout, layout_of(file));
    ck_assert_str_eq(report.linked_from, kind->dtype == SL_F32 && kind->codes == SL_CODES_I4 ? "i4+8"
                                         : kind->codes == SL_CODES_I4                        ? "i8"
                                                                      : sl_codes_name(kind->codes));
    sl_index_free(index);
    sl_index_free(merged);
    free(rows);
}
END_TEST

/* A reader goes on with the file that it has, whatever comes in its place. */
START_TEST(readers_go_on) {
    make_file(_i);
    sl_index *reader = opened(SL_PLACE_MAP, 0);
    const answers before = ask(reader, x, SL_F32);
    rebuilt(NULL);
    sl_index *writer = NULL;
    if (room_of(_i)) {
        writer = opened(SL_PLACE_MAP, 1);
        ck_ok(indexes_add(writer, x + N * DIM, SL_F32, MORE, NULL));
        ck_ok(sl_index_sync(writer));
    }
    const answers after = ask(reader, x, SL_F32);
    ck_assert_mem_eq(&before, &after, sizeof before);
    ck_assert_uint_eq(sl_index_size(reader), LEFT);
    ck_assert_uint_eq(indexes_stats(reader).deleted, GONE);
    indexes_sound(reader);
    sl_index_free(reader);
    sl_index_free(writer);
    ck_assert_uint_eq(size_now(), LEFT + (writer ? MORE : 0));
    ck_assert_uint_eq(scratch_count(&place), 1);
}
END_TEST

/* The room of a file stays, or grows as asked. The file is written in place as before, with ids that go on. */
START_TEST(room_stays_and_is_written) {
    static const struct {
        size_t had, asked, gets;
    } rooms[] = {{ROOM, 0, ROOM}, {ROOM, 10, ROOM}, {ROOM, 2 * ROOM, 2 * ROOM}, {0, 2 * ROOM, 2 * ROOM}, {0, 10, LEFT}};
    make_file(rooms[_i].had ? 2 : 0);
    sl_rebuild_params params = on_one_thread();
    params.room = rooms[_i].asked;
    params.m = 10;
    params.ef_construction = 70;
    ck_assert_uint_eq(rebuilt(&params).room, rooms[_i].gets);
    sl_index *writer = opened(SL_PLACE_MAP, 1);
    const sl_index_stats stats = indexes_stats(writer);
    ck_assert_uint_eq(stats.room, rooms[_i].gets);
    ck_assert_uint_eq(stats.m, 10);
    ck_assert_uint_eq(stats.ef_construction, 70);
    const size_t more = rooms[_i].gets > LEFT + MORE ? MORE : 0;
    int found;
    ck_ok(indexes_add(writer, x + N * DIM, SL_F32, more, NULL));
    ck_ok(sl_index_sync(writer));
    ck_ok(sl_index_contains(writer, 3 * (N - 1) + 2, &found));
    ck_assert_int_eq(found, more != 0);
    sl_index_free(writer);
    ck_assert_uint_eq(size_now(), LEFT + more);
}
END_TEST

/* A writer died: what it had synced is there, and its log is gone. No later writer takes that for another's. */
START_TEST(a_dead_writers_log) {
    make_file(2 + _i);
    write_and_die();
    ck_assert_uint_eq(scratch_count(&place), 2);
    ck_assert_uint_eq(rebuilt(NULL).n, LEFT + 100);
    ck_assert_uint_eq(scratch_count(&place), 1);
    sl_index *writer = opened(SL_PLACE_MAP, 1);
    ck_ok(indexes_add(writer, x, SL_F32, 1, NULL));
    ck_ok(sl_index_sync(writer));
    sl_index_free(writer);
    ck_assert_uint_eq(size_now(), LEFT + 101);
    ck_assert_uint_eq(scratch_count(&place), 1);
}
END_TEST

/* Another file gets the new index, with the layout and room of the old one, which stays. */
START_TEST(into_another_file) {
    size_t size;
    char path[SCRATCH_PATH];
    make_file(_i);
    unsigned char *bytes = file_read(place.path, &size);
    scratch_name(&place, "other.sl", path);
    sl_rebuild_params params = on_one_thread();
    params.output = path;
    rebuilt(&params);
    sl_index *index = indexes_open(path, SL_PLACE_MAP);
    ck_assert_uint_eq(sl_index_size(index), LEFT);
    ck_assert_uint_eq(indexes_stats(index).room, room_of(_i));
    ck_assert_int_eq(indexes_stats(index).layout, layout_of(_i));
    sl_index_free(index);
    ck_assert_int_eq(unlink(path), 0);
    if (!room_of(_i)) is_as_it_was(bytes, size); /* a file with room gets a superblock from each writer */
    ck_assert_uint_eq(size_now(), LEFT);
    free(bytes);
}
END_TEST

START_TEST(through_a_link) {
    struct stat info;
    char path[SCRATCH_PATH];
    make_file(_i);
    ck_assert_int_eq(chmod(place.path, 0640), 0);
    scratch_name(&place, "link.sl", path);
    ck_assert_int_eq(symlink(place.path, path), 0);
    ck_ok(sl_index_rebuild(path, NULL, NULL));
    ck_assert_int_eq(lstat(path, &info), 0);
    ck_assert(S_ISLNK(info.st_mode));
    ck_assert_int_eq(stat(place.path, &info), 0);
    ck_assert_uint_eq(info.st_mode & 0777, 0640);
    sl_index *index = opened(SL_PLACE_MAP, 0);
    ck_assert_uint_eq(indexes_stats(index).deleted, 0);
    sl_index_free(index);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Others at the same file
 * ------------------------------------------------------------------------------------------------------------- */

static sl_index *claimed(int writable) {
    sl_index *index;
    sl_open_params params;
    sl_open_params_init(&params);
    params.writable = writable;
    params.exclusive = !writable;
    ck_ok(sl_index_open(place.path, &params, &index));
    return index;
}

static void *free_soon(void *index) {
    nanosleep(&(struct timespec){0, 100000000}, NULL);
    sl_index_free(index);
    return NULL;
}

START_TEST(another_changer_is_waited_for) {
    pthread_t thread;
    const int writable = _i >= 2;
    make_file(_i);
    sl_index *other = claimed(writable);
    sl_rebuild_params params = on_one_thread();
    ck_fails(sl_index_rebuild(place.path, &params, NULL), SL_EBUSY, "is being written");
    params.wait_s = 60;
    params.progress = indexes_cancel;
    ck_fails(sl_index_rebuild(place.path, &params, NULL), SL_ECANCELED, "cancelled");
    if (writable) {
        ck_ok(indexes_add(other, x + N * DIM, SL_F32, MORE, NULL));
        ck_ok(sl_index_sync(other));
    }
    params.progress = NULL;
    ck_assert_int_eq(pthread_create(&thread, NULL, free_soon, other), 0);
    ck_assert_uint_eq(rebuilt(&params).n, LEFT + (writable ? MORE : 0));
    pthread_join(thread, NULL);
}
END_TEST

/* Tries at each step what a rebuild must keep off. `tried` counts the steps. */
typedef struct intruder {
    int tried, room;
    sl_index *reader; /* opened before */
} intruder;

static int intrude(void *ctx, uint64_t done, uint64_t total) {
    intruder *who = ctx;
    sl_index *other;
    sl_open_params params;
    (void)done;
    if (!total) return 0;
    who->tried++;
    sl_open_params_init(&params);
    params.exclusive = 1;
    ck_fails(sl_index_open(place.path, &params, &other), SL_EBUSY, "is being written");
    if (who->room) ck_fails(open_as(SL_PLACE_MAP, 1, NULL, &other), SL_EBUSY, "is being written");
    ck_fails(sl_index_save(who->reader, place.path, NULL), SL_EBUSY, "is being written");
    return 0;
}

/* The new file is claimed as the old one was, until the call is over. */
START_TEST(nobody_changes_it_meanwhile) {
    make_file(_i);
    intruder who = {0, room_of(_i) != 0, opened(SL_PLACE_MAP, 0)};
    sl_rebuild_params params = on_one_thread();
    params.progress = intrude;
    params.progress_ctx = &who;
    rebuilt(&params);
    ck_assert_int_ge(who.tried, 3);
    ck_fails(sl_index_save(who.reader, place.path, NULL), SL_EBUSY, "replaced or changed by another");
    sl_index_free(who.reader);
    sl_index_free(claimed(room_of(_i) != 0));
    ck_assert_uint_eq(size_now(), LEFT);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Failures
 * ------------------------------------------------------------------------------------------------------------- */

/* Plain arrays, and records with room. */
enum { BOTH = 2 };
static int both_of(int i) {
    return i ? 3 : 0;
}

/* The old file has all that it had, and nobody claims it. No more than `beside` files lie beside it. */
static void expect_old(size_t beside) {
    sl_index *index = opened(SL_PLACE_MAP, 0);
    ck_assert_uint_eq(sl_index_size(index), LEFT);
    ck_assert_uint_eq(indexes_stats(index).deleted, GONE);
    indexes_sound(index);
    sl_index_free(index);
    ck_assert_uint_le(scratch_count(&place), 1 + beside);
    sl_index_free(claimed(0));
}

START_TEST(every_call_may_fail) {
    static const fault_kind failing[] = {FAULT_OPEN, FAULT_WRITE, FAULT_FSYNC, FAULT_CLOSE, FAULT_RENAME};
    for (size_t i = SANITIZED ? (size_t)_i : 0; i < sizeof failing / sizeof *failing; i += SANITIZED ? BOTH : 1) {
        make_file(both_of(_i));
        for (size_t at = 1;; at++) {
            fault_files faults;
            fault_files_init(&faults);
            faults.error = ENOSPC;
            faults.write_limit = 200000;
            faults.fail_at[failing[i]] = at;
            sl_rebuild_params params = on_one_thread();
            params.file_ops = &faults.ops;
            sl_status status = sl_index_rebuild(place.path, &params, NULL);
            /* The finished file stays where the renaming failed, or the opening of the folder before it. After the
             * renaming, only the folder is synced and closed. */
            const size_t finished = scratch_take_finished(&place);
            if (status == SL_OK || (!finished && faults.calls[FAULT_RENAME])) break;
            ck_assert_int_eq(status, SL_ENOSPC);
            if (failing[i] != FAULT_OPEN) ck_assert_uint_eq(finished, failing[i] == FAULT_RENAME);
            expect_old(0);
        }
        ck_assert_uint_eq(size_now(), LEFT);
        ck_assert_uint_eq(scratch_count(&place), 1);
    }
}
END_TEST

/* A writer that could not be opened leaves an empty log, which the next one removes. */
START_TEST(memory_may_lack) {
    fault_allocator faults;
    make_file(both_of(_i));
    for (size_t at = 1;; at += 1 + at / (SANITIZED ? 2 : 8)) {
        fault_allocator_init(&faults, at);
        sl_rebuild_params params = on_one_thread();
        params.allocator = &faults.allocator;
        sl_status status = sl_index_rebuild(place.path, &params, NULL);
        ck_assert_uint_eq(faults.live_blocks, 0);
        if (status == SL_OK) break;
        ck_assert_int_eq(status, SL_ENOMEM);
        expect_old(1);
    }
    ck_assert_uint_eq(size_now(), LEFT);
    ck_assert_uint_eq(scratch_count(&place), 1);
}
END_TEST

/* The last calls look at the new file, when nothing can fail any more. */
START_TEST(memory_may_lack_at_the_end) {
    size_t calls = 0, untold = 0;
    for (size_t back = 0; back < 8; back++) {
        fault_allocator faults;
        make_file(0);
        fault_allocator_init(&faults, back ? calls - back + 1 : 0);
        sl_rebuild_params params = on_one_thread();
        params.allocator = &faults.allocator;
        sl_rebuild_report report = {.struct_size = sizeof report};
        sl_status status = sl_index_rebuild(place.path, &params, &report);
        ck_assert_uint_eq(faults.live_blocks, 0);
        if (!back) {
            calls = faults.calls;
            ck_assert_uint_gt(report.bytes_after, 0);
        }
        if (status != SL_OK) {
            expect_old(1);
        } else if (back) {
            ck_assert_uint_eq(report.n, LEFT);
            untold += report.bytes_after == 0;
        }
    }
    ck_assert_uint_gt(untold, 0);
}
END_TEST

static int cancel_at(void *ctx, uint64_t done, uint64_t total) {
    (void)done, (void)total;
    return --*(int *)ctx == 0;
}

/* Each step asks at least once. */
START_TEST(cancelled) {
    int steps = 0;
    make_file(both_of(_i));
    for (int at = 1;; at++, steps++) {
        int left = at;
        sl_rebuild_params params = on_one_thread();
        params.progress = cancel_at;
        params.progress_ctx = &left;
        sl_status status = sl_index_rebuild(place.path, &params, NULL);
        if (status == SL_OK) break;
        ck_assert_int_eq(status, SL_ECANCELED);
        expect_old(0);
    }
    ck_assert_int_ge(steps, 3);
    ck_assert_uint_eq(size_now(), LEFT);
}
END_TEST

static int rebuild_and_die(size_t kill_at) {
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        fault_files faults;
        fault_files_init(&faults);
        faults.write_limit = 200000;
        faults.kill_at = kill_at;
        sl_rebuild_params params = on_one_thread();
        params.file_ops = &faults.ops;
        _exit(sl_index_rebuild(place.path, &params, NULL) == SL_OK ? 0 : 1);
    }
    int how;
    ck_assert_int_eq(waitpid(child, &how, 0), child);
    ck_assert(WIFSIGNALED(how) || WEXITSTATUS(how) == 0);
    return WIFSIGNALED(how);
}

/* A killed rebuild leaves one of the two files, which anybody may change. The next one removes what it left. */
START_TEST(killed_at_every_call) {
    size_t old = 0, kill_at = 1;
    if (SANITIZED) return; /* a killed process tells a sanitizer nothing */
    for (; make_file(both_of(_i)), rebuild_and_die(kill_at); kill_at++) {
        sl_index *index = opened(SL_PLACE_MAP, 0);
        ck_assert_uint_eq(sl_index_size(index), LEFT);
        old += indexes_stats(index).deleted == GONE;
        indexes_sound(index);
        sl_index_free(index);
        sl_index_free(claimed(room_of(both_of(_i)) != 0));
        ck_assert_uint_le(scratch_count(&place), 2);
        rebuilt(NULL);
        ck_assert_uint_eq(scratch_count(&place), 1);
    }
    /* Only the calls on the folder, its sync and its close, come when the new file is in place. */
    ck_assert_uint_eq(old, kill_at - 3);
    ck_assert_uint_eq(size_now(), LEFT);
}
END_TEST

START_TEST(damage_is_refused) {
    size_t size;
    make_file(_i);
    unsigned char *bytes = file_read(place.path, &size);
    const sl_rebuild_params params = on_one_thread();
    bytes[5000] ^= 4;
    file_write(place.path, bytes, size);
    ck_fails(sl_index_rebuild(place.path, &params, NULL), SL_ECORRUPT, "index.sl");
    if (!room_of(_i)) {
        unsigned char *now = file_read(place.path, &size);
        ck_assert_mem_eq(now, bytes, size);
        free(now);
    }
    ck_assert_uint_eq(scratch_count(&place), 1);
    free(bytes);
}
END_TEST

/* A bound of memory, and a work file, each by itself: what is too small or no work file is told, and the rest changes
 * nothing of the new index. */
START_TEST(bounds_and_work_files_count) {
    size_t size;
    char work[SCRATCH_PATH], free_of_both[SCRATCH_PATH], bounded[SCRATCH_PATH];
    make_file(0);
    unsigned char *bytes = file_read(place.path, &size);
    scratch_name(&place, "work", work);
    sl_rebuild_params params = on_one_thread();
    params.max_memory = 10000;
    ck_fails(sl_index_rebuild(place.path, &params, NULL), SL_ENOMEM, "10000 are allowed");
    file_write(work, "letters", 7);
    params.max_memory = 0;
    params.work_path = work;
    ck_fails(sl_index_rebuild(place.path, &params, NULL), SL_ECORRUPT, "no work file");
    ck_assert_int_eq(unlink(work), 0);
    is_as_it_was(bytes, size);
    scratch_name(&place, "free.sl", free_of_both);
    scratch_name(&place, "bounded.sl", bounded);
    params = on_one_thread();
    params.output = free_of_both;
    ck_ok(sl_index_rebuild(place.path, &params, NULL));
    params.output = bounded;
    params.max_memory = (size_t)16 << 20;
    params.work_path = work;
    ck_ok(sl_index_rebuild(place.path, &params, NULL));
    same_bytes(free_of_both, bounded);
    ck_assert_uint_eq(scratch_count(&place), 3);
    free(bytes);
}
END_TEST

START_TEST(wrong_arguments) {
    size_t size;
    char path[SCRATCH_PATH];
    sl_rebuild_report unset = {.struct_size = 0};
    make_file(0);
    unsigned char *bytes = file_read(place.path, &size);
    ck_fails(sl_index_rebuild(NULL, NULL, NULL), SL_EINVAL, "path is NULL");
    ck_fails(sl_index_rebuild(place.path, NULL, &unset), SL_EINVAL, "sl_rebuild_report");
    scratch_name(&place, "none.sl", path);
    ck_fails(sl_index_rebuild(path, NULL, NULL), SL_EIO, "none.sl");
    sl_rebuild_params params = on_one_thread();
    params.room = (size_t)SL_MAX_VECTORS + 1;
    ck_fails(sl_index_rebuild(place.path, &params, NULL), SL_ELIMIT, "room for");
    params = on_one_thread();
    params.m = 1;
    ck_fails(sl_index_rebuild(place.path, &params, NULL), SL_EINVAL, "m is 1");
    params = on_one_thread();
    params.builder = SL_BUILDER_LEAVES;
    ck_fails(sl_index_rebuild(place.path, &params, NULL), SL_EUNSUPPORTED, "builder leaves");
    params = on_one_thread();
    params.wait_s = -1;
    ck_fails(sl_index_rebuild(place.path, &params, NULL), SL_EINVAL, "wait_s");
    params = on_one_thread();
    params.output = "/none/at/all.sl";
    ck_fails(sl_index_rebuild(place.path, &params, NULL), SL_EIO, "/none/at/all.sl");
    is_as_it_was(bytes, size);
    free(bytes);
}
END_TEST

/* An index of which all is deleted becomes an empty one that takes adds. */
START_TEST(nothing_is_left) {
    uint64_t ids[N];
    size_t count;
    make_file(2 + _i);
    sl_index *writer = opened(SL_PLACE_MAP, 1);
    ck_ok(sl_index_ids(writer, ids, N, &count));
    ck_ok(sl_index_delete(writer, ids, count));
    ck_ok(sl_index_sync(writer));
    sl_index_free(writer);
    const sl_rebuild_report report = rebuilt(NULL);
    ck_assert_uint_eq(report.n, 0);
    ck_assert_uint_eq(report.deleted, N);
    writer = opened(SL_PLACE_MAP, 1);
    ck_ok(indexes_add(writer, x, SL_F32, MORE, NULL));
    ck_ok(sl_index_sync(writer));
    sl_index_free(writer);
    ck_assert_uint_eq(size_now(), MORE);
}
END_TEST

int main(void) {
    TCase *cases[] = {tcase_create("made"), tcase_create("others"), tcase_create("fails")};
    for (size_t i = 0; i < 3; i++) {
        tcase_add_checked_fixture(cases[i], set_up, tear_down);
        tcase_set_timeout(cases[i], 300);
    }
    tcase_add_loop_test(cases[0], as_a_merge_of_one, 0, LIVE_KINDS * FILES);
    tcase_add_loop_test(cases[0], readers_go_on, 0, FILES);
    tcase_add_loop_test(cases[0], room_stays_and_is_written, 0, 5);
    tcase_add_loop_test(cases[0], a_dead_writers_log, 0, 2);
    tcase_add_loop_test(cases[0], into_another_file, 0, FILES);
    tcase_add_loop_test(cases[0], through_a_link, 0, FILES);
    tcase_add_loop_test(cases[0], nothing_is_left, 0, 2);
    tcase_add_loop_test(cases[1], another_changer_is_waited_for, 0, FILES);
    tcase_add_loop_test(cases[1], nobody_changes_it_meanwhile, 0, FILES);
    tcase_add_loop_test(cases[2], every_call_may_fail, 0, BOTH);
    tcase_add_loop_test(cases[2], memory_may_lack, 0, BOTH);
    tcase_add_test(cases[2], memory_may_lack_at_the_end);
    tcase_add_loop_test(cases[2], cancelled, 0, BOTH);
    tcase_add_loop_test(cases[2], killed_at_every_call, 0, BOTH);
    tcase_add_loop_test(cases[2], damage_is_refused, 0, FILES);
    tcase_add_test(cases[2], wrong_arguments);
    tcase_add_test(cases[2], bounds_and_work_files_count);
    return check_main("rebuild", cases, 3);
}
