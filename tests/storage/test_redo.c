/* The redo log: which of its groups count, whatever bytes the log has; and what a commit owes its callers when the
 * system fails it. Nothing is logged that the device has no room for. A failed sync is never forgotten. */
#include "base/random.h"
#include "hnsw/graph/index.h"
#include "storage/writable.h"
#include "tests/support/check_main.h"
#include "tests/support/clusters.h"
#include "tests/support/faults.h"
#include "tests/support/indexes.h"
#include "tests/support/scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* With this room no array ends in the piece of the file that the head page is in. */
enum { GROUPS = 3, BYTES = 24, FILE_SIZE = 4096, N = 200, ROOM = 10000000, ROWS = N + 20, DIM = 8 };
enum { HEAD = sizeof(sl_redo_head), RECORD = sizeof(sl_redo_record) + BYTES };
enum { GROUP = sizeof(sl_redo_group) + 2 * RECORD + sizeof(sl_redo_trailer), LOG = HEAD + GROUPS * GROUP };

static const uint8_t identity[SL_REDO_IDENTITY_SIZE] = "whose log it is";

static scratch place;
static char log_path[SCRATCH_PATH];
static float *x;

static void set_up(void) {
    scratch_open(&place);
    scratch_name(&place, "index.sl.log", log_path);
    x = clusters_make(ROWS, DIM, 0.3, 17);
}

static void tear_down(void) {
    free(x);
    scratch_close(&place);
}

/* ---------------------------------------------------------------------------------------------------------------
 * Which groups count
 * ------------------------------------------------------------------------------------------------------------- */

/* Each group of an epoch has two records of BYTES, so that groups of different epochs have the same places. */
static void write_groups(sl_redo *redo, size_t count) {
    for (size_t group = 0; group < count; group++) {
        uint8_t bytes[BYTES];
        memset(bytes, (int)(16 * redo->epoch + group), sizeof bytes);
        ck_ok(sl_redo_begin(redo, 2 * RECORD));
        ck_ok(sl_redo_put(redo, 64 * group, bytes, BYTES));
        ck_ok(sl_redo_put(redo, 64 * group + 1024, bytes, BYTES));
        ck_ok(sl_redo_commit(redo));
    }
}

static sl_redo_owner owner_at(uint64_t epoch, int in_force) {
    return (sl_redo_owner){
        .path = place.path, .identity = identity, .epoch = epoch, .size = FILE_SIZE, .in_force = in_force};
}

/* The bytes of a log of GROUPS groups of that epoch. */
static unsigned char *log_of(uint64_t epoch) {
    sl_allocator allocator = sl_allocator_of(NULL);
    sl_file_ops ops = sl_file_ops_of(NULL);
    sl_redo *redo;
    size_t size;
    const sl_redo_owner owner = owner_at(epoch, 0);
    ck_ok(sl_redo_open(&owner, -1, &allocator, &ops, &redo));
    ck_ok(sl_redo_reset(redo, epoch));
    write_groups(redo, GROUPS);
    sl_redo_close(redo, 0);
    unsigned char *log = file_read(log_path, &size);
    ck_assert_uint_eq(size, LOG);
    return log;
}

static sl_status apply(void *ctx, uint64_t offset, const void *data, uint64_t size) {
    ck_assert_uint_le(offset + size, FILE_SIZE);
    memcpy((uint8_t *)ctx + offset, data, size);
    return SL_OK;
}

/* Groups that count in these bytes; each of them has been applied whole, and nothing else has. */
static uint64_t groups_in(const unsigned char *log, size_t size, uint64_t epoch) {
    static uint8_t file[FILE_SIZE];
    const sl_redo_owner owner = owner_at(epoch, 1);
    sl_redo_found found;
    file_write(log_path, log, size);
    memset(file, 0, sizeof file);
    ck_ok(sl_redo_replay(&owner, apply, file, &found));
    ck_assert_uint_eq(found.bytes, found.groups * GROUP);
    for (size_t group = 0; group < GROUPS; group++)
        for (size_t i = 0; i < BYTES; i++) {
            uint8_t wanted = group < found.groups ? (uint8_t)(16 * epoch + group) : 0;
            ck_assert_uint_eq(file[64 * group + i], wanted);
            ck_assert_uint_eq(file[64 * group + 1024 + i], wanted);
        }
    return found.groups;
}

static void refused(const unsigned char *log, size_t size, uint64_t epoch, const char *why) {
    const sl_redo_owner owner = owner_at(epoch, 1);
    sl_redo_found found;
    file_write(log_path, log, size);
    ck_fails(sl_redo_replay(&owner, NULL, NULL, &found), SL_ECORRUPT, why);
}

static unsigned char *group_at(unsigned char *log, size_t group) {
    return log + HEAD + group * GROUP;
}

START_TEST(all_that_is_whole_counts) {
    unsigned char *log = log_of(1);
    for (size_t size = 0; size <= LOG; size++)
        ck_assert_uint_eq(groups_in(log, size, 1), size < HEAD ? 0 : (size - HEAD) / GROUP);
    ck_assert_uint_eq(groups_in(log, LOG, 2), 0);
    free(log);
}
END_TEST

static sl_status apply_large(void *ctx, uint64_t offset, const void *data, uint64_t size) {
    memcpy((uint8_t *)ctx + offset, data, size);
    return SL_OK;
}

/* Records and groups around and above the size of the writer's buffer, and of the reader's window. */
START_TEST(groups_of_any_size_count) {
    static const uint64_t sizes[] = {8, 1 << 20, (1 << 20) - 64, 3 << 20, 32 << 10, (32 << 10) - 32, 40, (1 << 20) + 8};
    enum { RECORDS = sizeof sizes / sizeof *sizes, LARGE = 16 << 20 };
    sl_allocator allocator = sl_allocator_of(NULL);
    sl_file_ops ops = sl_file_ops_of(NULL);
    sl_redo *redo;
    sl_redo_found found;
    sl_redo_owner owner = owner_at(1, 0);
    uint8_t *wanted = calloc(1, LARGE), *file = calloc(1, LARGE);
    owner.size = LARGE;
    ck_ok(sl_redo_open(&owner, -1, &allocator, &ops, &redo));
    ck_ok(sl_redo_reset(redo, 1));
    for (size_t first = 0; first < RECORDS; first += RECORDS / 2) {
        uint64_t payload = 0, at = first ? LARGE / 2 : 0;
        for (size_t i = first; i < first + RECORDS / 2; i++)
            payload += sizeof(sl_redo_record) + sizes[i];
        ck_ok(sl_redo_begin(redo, payload));
        for (size_t i = first; i < first + RECORDS / 2; at += sizes[i++]) {
            for (uint64_t j = 0; j < sizes[i]; j++)
                wanted[at + j] = (uint8_t)(sl_random_at(i, j / 512) + j);
            ck_ok(sl_redo_put(redo, at, wanted + at, sizes[i]));
        }
        ck_ok(sl_redo_commit(redo));
    }
    sl_redo_close(redo, 0);
    owner.in_force = 1;
    ck_ok(sl_redo_replay(&owner, apply_large, file, &found));
    ck_assert_uint_eq(found.groups, 2);
    ck_assert_int_eq(memcmp(file, wanted, LARGE), 0);
    free(wanted);
    free(file);
}
END_TEST

/* A changed byte of the last group may be one that never reached the device. The group before did. */
START_TEST(every_byte_is_checked) {
    unsigned char *log = log_of(1);
    for (size_t at = 0; at < LOG; at++) {
        log[at] ^= 0x10;
        if (at < HEAD)
            refused(log, LOG, 1, "the log's head is damaged");
        else if (at < LOG - GROUP)
            refused(log, LOG, 1, "the log is damaged behind the first");
        else
            ck_assert_uint_eq(groups_in(log, LOG, 1), GROUPS - 1);
        log[at] ^= 0x10;
    }
    free(log);
}
END_TEST

/* A head that is not in force says nothing, whichever file the head names. */
START_TEST(a_log_that_is_not_in_force_may_be_anything) {
    unsigned char *log = log_of(1);
    const sl_redo_owner owner = owner_at(1, 0);
    for (size_t at = 0; at < HEAD; at++) {
        sl_redo_found found;
        log[at] ^= 0x10;
        file_write(log_path, log, LOG);
        ck_ok(sl_redo_replay(&owner, NULL, NULL, &found));
        ck_assert_uint_eq(found.groups, 0);
        log[at] ^= 0x10;
    }
    free(log);
}
END_TEST

/* Another file that has the log's name stays, under another name. */
START_TEST(what_is_in_the_way_is_moved_aside) {
    static const char *const texts[] = {"", "SLREDO",
                                        "what somebody wrote into a file of that name, longer than a head"};
    sl_allocator allocator = sl_allocator_of(NULL);
    sl_file_ops ops = sl_file_ops_of(NULL);
    unsigned char *log = log_of(1);
    sl_redo_owner owner = owner_at(1, 0);
    sl_redo *redo;
    for (size_t i = 0; i < 3; i++) {
        const size_t before = scratch_count(&place);
        file_write(log_path, texts[i], strlen(texts[i]));
        ck_ok(sl_redo_open(&owner, -1, &allocator, &ops, &redo));
        sl_redo_close(redo, 0);
        ck_assert_uint_eq(scratch_count(&place), before + (i > 0));
    }
    const size_t before = scratch_count(&place);
    for (int others = 0; others < 2; others++) {
        file_write(log_path, log, HEAD);
        if (others) owner.identity = (const uint8_t *)"another's log   ";
        ck_ok(sl_redo_open(&owner, -1, &allocator, &ops, &redo));
        sl_redo_close(redo, 0);
        ck_assert_uint_eq(scratch_count(&place), before + (size_t)others);
    }
    free(log);
}
END_TEST

/* Files that two others left under the name are told apart, though they begin alike. */
START_TEST(nothing_aside_is_overwritten) {
    static const char text[] = "sixty-four bytes and more that a service puts before each of its own logs: 0";
    sl_allocator allocator = sl_allocator_of(NULL);
    sl_file_ops ops = sl_file_ops_of(NULL);
    const sl_redo_owner owner = owner_at(1, 0);
    const size_t before = scratch_count(&place);
    sl_redo *redo;
    for (size_t i = 0; i < 3; i++) {
        file_write(log_path, text, sizeof text - i);
        ck_ok(sl_redo_open(&owner, -1, &allocator, &ops, &redo));
        sl_redo_close(redo, 1);
        ck_assert_uint_eq(scratch_count(&place), before + i + 1);
    }
}
END_TEST

/* A link under the log's name leads to somebody else's file. That file keeps its bytes, its mode and its owner. */
START_TEST(links_are_not_followed) {
    sl_allocator allocator = sl_allocator_of(NULL);
    sl_file_ops ops = sl_file_ops_of(NULL);
    sl_redo_owner owner = owner_at(1, _i & 1);
    char target[SCRATCH_PATH];
    struct stat info;
    sl_redo_found found;
    sl_redo *redo;
    unsigned char *log = log_of(1);
    scratch_name(&place, "theirs", target);
    file_write(target, log, _i & 2 ? LOG : 0);
    ck_assert_int_eq(chmod(target, 0600), 0);
    ck_assert_int_eq(unlink(log_path), 0);
    ck_assert_int_eq(_i & 4 ? link(target, log_path) : symlink(target, log_path), 0);
    int file = open(place.path, O_RDWR | O_CREAT, 0666);
    ck_assert_int_eq(fchmod(file, 0666), 0);
    if (_i & 4) {
        ck_ok(sl_redo_open(&owner, file, &allocator, &ops, &redo));
        sl_redo_give_access(redo, file);
        sl_redo_close(redo, 0);
    } else {
        ck_fails(sl_redo_open(&owner, file, &allocator, &ops, &redo), SL_EIO, "a link, a folder or a device");
        if (_i & 1) ck_fails(sl_redo_replay(&owner, NULL, NULL, &found), SL_EIO, "a link, a folder or a device");
    }
    ck_assert_int_eq(stat(target, &info), 0);
    ck_assert_uint_eq(info.st_mode & 0777, 0600);
    ck_assert_int_eq(info.st_size, _i & 2 ? LOG : 0);
    close(file);
    free(log);
}
END_TEST

/* The file has later groups already, and its log has lost them: the earlier groups in the log do not take them back. */
START_TEST(what_the_file_holds_is_not_taken_back) {
    unsigned char *log = log_of(1);
    sl_redo_owner owner = owner_at(1, 1);
    sl_redo_found found;
    for (owner.held = 0; owner.held <= GROUPS; owner.held++)
        for (size_t size = 0; size <= LOG; size += 8) {
            const uint64_t groups = size < HEAD ? 0 : (size - HEAD) / GROUP;
            file_write(log_path, log, size);
            if (size && groups < owner.held)
                ck_fails(sl_redo_replay(&owner, NULL, NULL, &found), SL_ECORRUPT, "where its index itself holds");
            else
                ck_ok(sl_redo_replay(&owner, NULL, NULL, &found));
        }
    owner = owner_at(1, 0);
    owner.held = GROUPS;
    file_write(log_path, log, HEAD);
    ck_ok(sl_redo_replay(&owner, NULL, NULL, &found));
    free(log);
}
END_TEST

/* The log's number was closed with it: by then it may be that of a file of the host's. */
START_TEST(a_log_that_cannot_be_remade_closes_once) {
    sl_allocator allocator = sl_allocator_of(NULL);
    sl_file_ops ops = sl_file_ops_of(NULL);
    const sl_redo_owner owner = owner_at(1, 0);
    sl_redo *redo;
    ck_ok(sl_redo_open(&owner, -1, &allocator, &ops, &redo));
    ck_assert_int_eq(unlink(log_path), 0);
    ck_assert_int_eq(mkdir(log_path, 0700), 0);
    ck_fails(sl_redo_remake(redo, -1), SL_EIO, "a link, a folder or a device");
    int theirs = open("/dev/null", O_WRONLY);
    sl_redo_close(redo, 1);
    ck_assert_int_eq(write(theirs, "", 1), 1);
    close(theirs);
    ck_assert_int_eq(rmdir(log_path), 0);
}
END_TEST

static int open_no_folder(void *ctx, const char *path, int flags, unsigned mode) {
    (void)ctx;
    if (!(flags & O_DIRECTORY)) return open(path, flags, (mode_t)mode);
    errno = EMFILE;
    return -1;
}

/* A log that was made and cannot be made sure of is no log: nothing is left for others to wonder at. */
START_TEST(a_log_that_cannot_be_kept_goes) {
    sl_allocator allocator = sl_allocator_of(NULL);
    sl_file_ops ops = sl_file_ops_of(&(sl_file_ops){.open = open_no_folder});
    const sl_redo_owner owner = owner_at(1, 0);
    const size_t before = scratch_count(&place);
    sl_redo *redo;
    ck_fails(sl_redo_open(&owner, -1, &allocator, &ops, &redo), SL_EIO, "cannot open the folder");
    ck_assert_uint_eq(scratch_count(&place), before);
}
END_TEST

START_TEST(a_log_in_force_is_there_and_its_own) {
    static const uint8_t others[SL_REDO_IDENTITY_SIZE] = "another's log   ";
    unsigned char *log = log_of(2);
    sl_allocator allocator = sl_allocator_of(NULL);
    sl_file_ops ops = sl_file_ops_of(NULL);
    sl_redo_owner owner = owner_at(2, 1);
    sl_redo_found found;
    sl_redo *redo;
    refused(log, LOG, 1, "of a later state");
    owner.identity = others;
    ck_fails(sl_redo_replay(&owner, NULL, NULL, &found), SL_ECORRUPT, "another index's log");
    file_write(log_path, log, HEAD);
    ck_fails(sl_redo_replay(&owner, NULL, NULL, &found), SL_ECORRUPT, "another index's log");
    ck_assert_int_eq(unlink(log_path), 0);
    ck_fails(sl_redo_replay(&owner, NULL, NULL, &found), SL_ECORRUPT, "the log is missing");
    ck_fails(sl_redo_open(&owner, -1, &allocator, &ops, &redo), SL_ECORRUPT, "the log is missing");
    ck_assert_int_eq(mkdir(log_path, 0700), 0);
    ck_fails(sl_redo_replay(&owner, NULL, NULL, &found), SL_EIO, "a link, a folder or a device");
    ck_assert_int_eq(rmdir(log_path), 0);
    ck_assert_uint_eq(groups_in(log, 0, 2), 0);
    free(log);
}
END_TEST

/* The device did not keep the emptying of a log that is begun anew. Behind the new groups lie those of the epoch
 * before, whole and in the right place. */
START_TEST(groups_of_a_past_epoch_do_not_count) {
    unsigned char *past = log_of(1), *now = log_of(2);
    for (size_t kept = 0; kept <= GROUPS; kept++) {
        memcpy(past, now, HEAD + kept * GROUP);
        ck_assert_uint_eq(groups_in(past, LOG, 2), kept);
    }
    free(past);
    free(now);
}
END_TEST

/* Nor does a group that stands in the place of another of its epoch. */
START_TEST(groups_count_in_their_order_only) {
    unsigned char *log = log_of(1), *good = log_of(1);
    for (size_t to = 0; to < GROUPS; to++)
        for (size_t from = 0; from < GROUPS; from++) {
            memcpy(log, good, LOG);
            memcpy(group_at(log, to), group_at(good, from), GROUP);
            if (from != to && (to < GROUPS - 1 || from > to))
                refused(log, LOG, 1, "the log is damaged behind the first");
            else
                ck_assert_uint_eq(groups_in(log, LOG, 1), from == to ? GROUPS : to);
        }
    free(log);
    free(good);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * What a commit owes
 * ------------------------------------------------------------------------------------------------------------- */

static void make_live(void) {
    sl_index_params params;
    sl_save_params save;
    indexes_params(&params, DIM, SL_METRIC_L2);
    sl_index *index = indexes_make(&params, x, SL_F32, N, NULL, 1);
    indexes_save_params(&save);
    save.room = ROOM;
    ck_ok(sl_index_save(index, place.path, &save));
    sl_index_free(index);
}

static sl_index *open_live(const sl_file_ops *ops, uint64_t log_bytes) {
    sl_open_params params;
    sl_index *index;
    sl_open_params_init(&params);
    params.writable = ops != NULL;
    params.file_ops = ops;
    params.log_bytes = log_bytes;
    ck_ok(sl_index_open(place.path, &params, &index));
    return index;
}

static void add_one(sl_index *index) {
    ck_ok(indexes_add(index, x + sl_index_size(index) * DIM, SL_F32, 1, NULL));
}

/* The first sync to fail leaves an unknown state on the device, and no later sync reveals that state. The first commit
 * may fail in the log's sync. A checkpoint may fail in the sync of the file or of the emptied log. */
START_TEST(a_failed_sync_is_not_forgotten) {
    for (size_t failing = 1; failing <= 4; failing++) {
        fault_files files;
        make_live();
        fault_files_init(&files);
        sl_index *writer = open_live(&files.ops, 1);
        add_one(writer);
        files.calls[FAULT_FDATASYNC] = 0;
        files.fail_at[FAULT_FDATASYNC] = failing;
        ck_fails(sl_index_sync(writer), SL_EIO, "cannot sync");
        ck_assert_uint_eq(files.calls[FAULT_FDATASYNC], failing);
        for (size_t again = 0; again < 2; again++) {
            const uint64_t id = again;
            ck_fails(sl_index_sync(writer), SL_EIO, "an earlier write failed");
            ck_fails(indexes_add(writer, x, SL_F32, 1, NULL), SL_EIO, "an earlier write failed");
            ck_fails(sl_index_delete(writer, &id, 1), SL_EIO, "open it again");
            sl_check_report report = {.struct_size = sizeof report};
            ck_fails(sl_index_check(writer, NULL, &report), SL_EIO, "open it again");
        }
        ck_assert_uint_eq(files.calls[FAULT_FDATASYNC], failing);
        sl_index_free(writer);
        sl_index *reader = open_live(NULL, 0);
        ck_assert_uint_ge(sl_index_size(reader), N);
        ck_assert_uint_le(sl_index_size(reader), N + 1);
        indexes_sound(reader);
        sl_index_free(reader);
    }
}
END_TEST

/* A commit of so much that the writer gives its own pages back: the writer and others see what was committed, then and
 * after the next one. */
START_TEST(large_commits_lose_nothing) {
    enum { FIRST = 1000, BYTES_A_TURN = 5 << 20 };
    make_live();
    fault_files files;
    fault_files_init(&files);
    sl_index *writer = open_live(&files.ops, 0), *reader = open_live(NULL, 0);
    uint8_t *own = sl_row(&writer->graph, FIRST), *wanted = malloc(BYTES_A_TURN);
    const uint8_t *others = sl_row(&reader->graph, FIRST);
    for (uint64_t turn = 0; turn < 3; turn++) {
        const size_t size = turn == 1 ? 4096 : BYTES_A_TURN;
        for (size_t i = 0; i < size; i++)
            own[i] = wanted[i] = (uint8_t)(sl_random_at(turn, i / 64) + i);
        sl_writable_touch(writer->writer, own, size);
        ck_ok(sl_writable_commit(writer->writer));
        ck_assert_uint_eq(writer->writer->dirty.marked, 0);
        ck_assert_uint_eq(writer->writer->own_pages > 0, turn == 1);
        ck_assert_int_eq(memcmp(own, wanted, BYTES_A_TURN), 0);
        ck_assert_int_eq(memcmp(others, wanted, BYTES_A_TURN), 0);
    }
    free(wanted);
    sl_index_free(writer);
    sl_index_free(reader);
}
END_TEST

/* Calls that a sync makes to the system, in their order. */
typedef struct asked {
    int watched;                 /* from here on */
    int log;                     /* the log's descriptor */
    size_t pieces, logged;       /* set aside; writes to the log */
    uint64_t begin[64], end[64]; /* of the pieces */
} asked;

static int asked_open(void *ctx, const char *path, int flags, unsigned mode) {
    asked *a = ctx;
    int fd = open(path, flags, (mode_t)mode);
    if (fd >= 0 && strcmp(path, log_path) == 0) a->log = fd;
    return fd;
}

static int asked_allocate(void *ctx, int fd, uint64_t offset, uint64_t size) {
    asked *a = ctx;
    ck_assert_int_ne(fd, a->log);
    ck_assert_msg(a->logged == 0, "space is set aside after the log was written");
    ck_assert_uint_lt(a->pieces, 64);
    a->begin[a->pieces] = offset;
    a->end[a->pieces++] = offset + size;
    return 0;
}

/* Returns the end of the piece that has the byte at `at`. */
static uint64_t end_of_piece(const asked *a, uint64_t at) {
    for (size_t i = 0; i < a->pieces; i++)
        if (a->begin[i] <= at && at < a->end[i]) return a->end[i];
    ck_abort_msg("byte %llu is written and was not set aside", (unsigned long long)at);
}

static int64_t asked_pwrite(void *ctx, int fd, const void *data, size_t size, uint64_t offset) {
    asked *a = ctx;
    if (fd == a->log && a->watched) a->logged++;
    for (uint64_t at = offset; a->watched && fd != a->log && at < offset + size;)
        at = end_of_piece(a, at);
    return pwrite(fd, data, size, (off_t)offset);
}

/* As of a file that was once written directly. */
static void put_sums_out_of_force(void) {
    uint8_t pages[SL_LIVE_HEAD];
    struct stat info;
    ck_ok(sl_writable_superblocks(pages, 1));
    ck_assert_int_eq(stat(place.path, &info), 0);
    file_patch(place.path, (size_t)info.st_size - SL_SECTION_SLACK - SL_LIVE_SIZE, pages, sizeof pages);
}

/* Once the log has it a change must reach the file: a device without room for it has to say so before. Sums of pages,
 * where they are in force, are written to the head page's own piece. */
START_TEST(blocks_are_set_aside_before_the_log_is_written) {
    asked a = {.log = -1};
    const sl_file_ops ops = {.ctx = &a, .open = asked_open, .allocate = asked_allocate, .pwrite = asked_pwrite};
    make_live();
    if (_i) put_sums_out_of_force();
    sl_index *writer = open_live(&ops, 0);
    add_one(writer);
    ck_assert_int_ge(a.log, 0);
    a.watched = 1;
    ck_ok(sl_index_sync(writer));
    ck_assert_uint_gt(a.pieces, 0);
    ck_assert_uint_gt(a.logged, 0);
    a.watched = 0;
    sl_index_free(writer);
}
END_TEST

START_TEST(a_full_device_changes_nothing) {
    fault_files files;
    struct stat info;
    make_live();
    fault_files_init(&files);
    files.fail_at[FAULT_ALLOCATE] = 1;
    files.error = ENOSPC;
    sl_index *writer = open_live(&files.ops, 0), *reader = open_live(NULL, 0);
    ck_fails(indexes_add(writer, x + N * DIM, SL_F32, 1, NULL), SL_ENOSPC, "cannot set space aside");
    ck_assert_uint_eq(sl_index_size(writer), N);
    add_one(writer);
    files.fail_at[FAULT_ALLOCATE] = files.calls[FAULT_ALLOCATE] + 1;
    ck_fails(sl_index_sync(writer), SL_ENOSPC, "cannot set space aside");
    ck_assert_uint_eq(sl_index_size(reader), N);
    ck_assert_int_eq(stat(log_path, &info), 0);
    ck_assert_int_eq(info.st_size, HEAD);
    ck_ok(sl_index_sync(writer));
    ck_assert_uint_eq(sl_index_size(reader), N + 1);
    sl_index_free(writer);
    sl_index_free(reader);
}
END_TEST

int main(void) {
    TCase *cases[] = {tcase_create("groups"), tcase_create("commits")};
    for (size_t i = 0; i < 2; i++)
        tcase_add_checked_fixture(cases[i], set_up, tear_down);
    tcase_add_test(cases[0], all_that_is_whole_counts);
    tcase_add_test(cases[0], groups_of_any_size_count);
    tcase_add_test(cases[0], every_byte_is_checked);
    tcase_add_test(cases[0], a_log_that_is_not_in_force_may_be_anything);
    tcase_add_test(cases[0], a_log_in_force_is_there_and_its_own);
    tcase_add_test(cases[0], what_is_in_the_way_is_moved_aside);
    tcase_add_test(cases[0], nothing_aside_is_overwritten);
    tcase_add_loop_test(cases[0], links_are_not_followed, 0, 8);
    tcase_add_test(cases[0], what_the_file_holds_is_not_taken_back);
    tcase_add_test(cases[0], a_log_that_cannot_be_remade_closes_once);
    tcase_add_test(cases[0], a_log_that_cannot_be_kept_goes);
    tcase_add_test(cases[0], groups_of_a_past_epoch_do_not_count);
    tcase_add_test(cases[0], groups_count_in_their_order_only);
    tcase_add_test(cases[1], a_failed_sync_is_not_forgotten);
    tcase_add_loop_test(cases[1], blocks_are_set_aside_before_the_log_is_written, 0, 2);
    tcase_add_test(cases[1], a_full_device_changes_nothing);
    tcase_add_test(cases[1], large_commits_lose_nothing);
    return check_main("redo", cases, 2);
}
