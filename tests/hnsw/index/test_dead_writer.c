/* Files of a writer that died, was replaced or was written over, or whose calls failed. The next process finds all that
 * was acknowledged, or is told why not. */
#include "base/random.h"
#include "hnsw/graph/publish.h"
#include "tests/support/faults.h"
#include "tests/support/live_files.h"

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

/* Changes that a writer in persistent memory left half done are told from damage. The next writer puts them right. */
START_TEST(half_done_is_not_damage) {
    static const size_t words[] = {offsetof(sl_published, linked), offsetof(sl_published, deleting)};
    const uint64_t unsealed = 0;
    uint64_t word = _i == 0 ? N - 10 : 1;
    sl_index *index;
    make_live(N, ROOM);
    index = opened(SL_PLACE_MAP, 0);
    const uint64_t head = sl_store_section(index->store, SL_SECTION_LIVE)->offset + SL_LIVE_HEAD;
    int fd = open(place.path, O_RDWR);
    ck_assert_int_eq(pwrite(fd, &word, sizeof word, (off_t)(head + words[_i])), sizeof word);
    ck_assert_int_eq(pwrite(fd, &unsealed, sizeof unsealed, (off_t)(head + offsetof(sl_published, seal))),
                     sizeof unsealed);
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

/* Files that a dead writer left, with the index file as it was before: the log is all there is. */
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

/* No reader keeps writers off. */
static void lock_can_be_had(void) {
    int fd = open(place.path, O_RDONLY);
    ck_assert_int_eq(flock(fd, LOCK_EX | LOCK_NB), 0);
    close(fd);
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
    close(held);
    if (!writable) lock_can_be_had();
    sl_index_free(index);
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

/* A crashed file was renamed without its log, or is known by another name. The file is searched as it is. It is not
 * written, not copied from and not sound until the log is beside it, or an empty log gives the old one up. */
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

/* A log is removed, or cut, while its writer goes on. Changes synced before are made sure in the file. Later changes go
 * to a log of the file's own. */
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

/* A shorter file lies over the writer's. Bytes behind its end cannot be touched, and nobody tries to. */
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

/* The next process gives up a group that never became whole, so that nobody reads the group time and again. */
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
    /* The reader does not read the log again at each second of its searches. */
    ck_assert_uint_eq(reader->store->given_up, super.sequence);
    sl_index_free(reader);
    left.log[20] ^= 1;
    file_write(left.log_path, left.log, left.log_size);
    grow_by_one(N + 101);
    remains_free(&left);
}
END_TEST

/* A live writer's log is its own matter, whatever it says. A reader that gave it up would pass over what the writer
 * leaves when it dies. */
START_TEST(a_live_writers_log_is_not_given_up) {
    char path[SCRATCH_PATH];
    size_t size;
    make_live(N, ROOM);
    scratch_name(&place, "index.sl.log", path);
    sl_index *writer = opened(SL_PLACE_MAP, 1);
    ck_ok(indexes_add(writer, x + N * DIM, SL_F32, 100, NULL));
    ck_ok(sl_index_sync(writer));
    sl_index *reader = opened(SL_PLACE_MAP, 0);
    unsigned char *log = file_read(path, &size);
    log[20] ^= 1;
    file_patch(path, 20, log + 20, 1);
    /* As if a second had passed since the reader looked. */
    __atomic_store_n(&reader->store->watched, UINT64_MAX, __ATOMIC_RELAXED);
    (void)ask(reader, x, SL_F32);
    ck_assert_uint_ne(reader->store->watched, UINT64_MAX);
    ck_assert_uint_eq(reader->store->given_up, 0);
    log[20] ^= 1;
    file_patch(path, 20, log + 20, 1);
    ck_assert_uint_eq(sl_index_size(reader), N + 100);
    sl_index_free(writer);
    sl_index_free(reader);
    free(log);
}
END_TEST

/* Readers who may not write to the file see it whole all the same. Runs in a process of its own, which first becomes a
 * user without permission. */
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
            int failed = 0; /* a sync */
            sl_index *writer = NULL;
            if (open_as(SL_PLACE_MAP, 1, &files.ops, &writer) == SL_OK) {
                for (size_t i = 0; i < 3; i++) {
                    size_t n = sl_index_size(writer);
                    if (indexes_add(writer, x + n * DIM, SL_F32, 10, NULL) != SL_OK)
                        ck_assert(kind == FAULT_ALLOCATE || failed);
                    if (sl_index_sync(writer) == SL_OK)
                        safe = sl_index_size(writer);
                    else
                        failed = 1;
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

/* Nothing in the file is trusted, by a writer either, and opening reads no checksum of data that changes. Opening may
 * find wrong neighbours, or refuse, and nothing worse. */
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
    TCase *tests = tcase_create("remains");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_set_timeout(tests, 300);
    tcase_add_loop_test(tests, half_done_is_not_damage, 0, 2);
    tcase_add_test(tests, unsynced_is_lost_whole);
    tcase_add_test(tests, log_alone_brings_it_back);
    tcase_add_loop_test(tests, not_written_without_its_log, 0, 2);
    tcase_add_test(tests, a_damaged_log_is_not_passed_over);
    tcase_add_test(tests, a_live_writers_log_is_not_given_up);
    tcase_add_test(tests, its_log_outlives_another_of_its_name);
    tcase_add_loop_test(tests, a_log_that_is_lost_is_made_anew, 0, 2);
    tcase_add_test(tests, a_log_that_was_cut_takes_nothing_back);
    tcase_add_loop_test(tests, one_superblock_is_enough, 0, 2);
    tcase_add_test(tests, a_log_outlives_a_damaged_superblock);
    tcase_add_loop_test(tests, a_shorter_file_copied_over_is_noticed, 0, 2);
    tcase_add_test(tests, the_log_of_a_copy_that_took_its_name_stays);
    tcase_add_test(tests, a_group_that_was_cut_off_is_given_up);
    tcase_add_test(tests, healed_while_writers_are_kept_off);
    tcase_add_test(tests, healed_without_writing);
    tcase_add_test(tests, every_call_may_fail);
    tcase_add_test(tests, damaged_files_do_no_harm);
    tcase_add_test(tests, short_log);
    return check_main("dead_writer", &tests, 1);
}
