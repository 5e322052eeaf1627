#include "tests/crash.h"

#include "base/random.h"
#include "tests/clusters.h"
#include "tests/indexes.h"
#include "tests/scratch.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { START = 150, SECTOR = 512, WORD = 8, DATA = 1, LOG = 2, FOLDER = 3, FILES = 4 };

typedef enum op_kind { OP_WRITE, OP_TRUNCATE, OP_SYNC, OP_CREATE, OP_UNLINK } op_kind;

struct crash_op {
    op_kind kind;
    int file;
    uint64_t offset, size;
    unsigned char *data;
};

/* ---------------------------------------------------------------------------------------------------------------
 * Recording
 * ------------------------------------------------------------------------------------------------------------- */

static void note(crash_record *record, op_kind kind, int file, uint64_t offset, const void *data, uint64_t size) {
    if (record->count == record->room) {
        record->room = record->room * 2 + 64;
        record->ops = realloc(record->ops, record->room * sizeof *record->ops);
        ck_assert_ptr_nonnull(record->ops);
    }
    crash_op op = {kind, file, offset, size, NULL};
    if (data) {
        op.data = malloc(size + 1);
        ck_assert_ptr_nonnull(op.data);
        memcpy(op.data, data, size);
    }
    record->ops[record->count++] = op;
}

static int ends_in_log(const char *path) {
    size_t length = strlen(path);
    return length > 4 && strcmp(path + length - 4, ".log") == 0;
}

static int record_open(void *ctx, const char *path, int flags, unsigned mode) {
    crash_record *record = ctx;
    int fresh = (flags & O_CREAT) && access(path, F_OK) != 0;
    int fd = open(path, flags, (mode_t)mode);
    ck_assert(fd >= 0 && fd < 64);
    record->files[fd] = flags & O_DIRECTORY ? FOLDER : ends_in_log(path) ? LOG : DATA;
    if (fresh) note(record, OP_CREATE, record->files[fd], 0, NULL, 0);
    return fd;
}

static int64_t record_pwrite(void *ctx, int fd, const void *data, size_t size, uint64_t offset) {
    crash_record *record = ctx;
    note(record, OP_WRITE, record->files[fd], offset, data, size);
    return pwrite(fd, data, size, (off_t)offset);
}

static int record_fsync(void *ctx, int fd) {
    crash_record *record = ctx;
    int file = record->files[fd];
    int lost =
        (record->lie == CRASH_LOG_NOT_SYNCED && file == LOG) || (record->lie == CRASH_DATA_NOT_SYNCED && file == DATA);
    if (!lost) note(record, OP_SYNC, file, 0, NULL, 0);
    return 0;
}

static int record_ftruncate(void *ctx, int fd, uint64_t size) {
    crash_record *record = ctx;
    note(record, OP_TRUNCATE, record->files[fd], size, NULL, 0);
    return ftruncate(fd, (off_t)size);
}

static int record_unlink(void *ctx, const char *path) {
    note(ctx, OP_UNLINK, ends_in_log(path) ? LOG : DATA, 0, NULL, 0);
    return unlink(path);
}

static void record_flush(void *ctx, const void *at, size_t size, uint64_t offset) {
    note(ctx, OP_WRITE, DATA, offset, at, size);
}

static void record_drain(void *ctx) {
    crash_record *record = ctx;
    if (record->lie != CRASH_NOT_DRAINED) note(record, OP_SYNC, DATA, 0, NULL, 0);
}

static sl_file_ops recording(crash_record *record) {
    return (sl_file_ops){.flush = record_flush,
                         .drain = record_drain,
                         .ctx = record,
                         .open = record_open,
                         .pwrite = record_pwrite,
                         .fsync = record_fsync,
                         .fdatasync = record_fsync,
                         .ftruncate = record_ftruncate,
                         .unlink = record_unlink};
}

/* ---------------------------------------------------------------------------------------------------------------
 * The workload
 * ------------------------------------------------------------------------------------------------------------- */

static void find(const crash_record *record, const sl_index *index, uint64_t *ids) {
    const float *queries = record->vectors + (record->vector_count - CRASH_QUERIES) * CRASH_DIM;
    indexes_search(index, queries, SL_F32, CRASH_QUERIES, CRASH_K, 40, ids, NULL);
}

static void mark(crash_record *record, const sl_index *index, size_t begun) {
    crash_mark *here = &record->marks[record->mark_count++];
    sl_index_stats stats = indexes_stats(index);
    *here = (crash_mark){begun, record->count, stats.n + stats.deleted, stats.deleted, {0}};
    find(record, index, here->ids);
}

static void index_path(const char *folder, char *path) {
    int length = snprintf(path, SCRATCH_PATH, "%s/index.sl", folder);
    ck_assert_int_lt(length, SCRATCH_PATH);
}

static void make_first(crash_record *record, const char *path) {
    sl_index_params params;
    sl_save_params save;
    indexes_params(&params, CRASH_DIM, SL_METRIC_L2);
    params.m = 4;
    params.ef_construction = 20;
    params.codes = record->codes;
    params.refine = record->codes == SL_CODES_I8 ? SL_REFINE_BF16 : SL_REFINE_NONE;
    sl_index *index = indexes_make(&params, record->vectors, SL_F32, START, NULL, 1);
    indexes_save_params(&save);
    save.room = record->vector_count;
    ck_ok(sl_index_save(index, path, &save));
    sl_index_free(index);
    record->initial = file_read(path, &record->initial_size);
}

void crash_run(crash_record *record, const char *folder, size_t steps, crash_way way, crash_lie lie, sl_codes codes) {
    char path[SCRATCH_PATH];
    *record = (crash_record){.way = way, .lie = lie, .codes = codes, .vector_count = START + 8 * steps + CRASH_QUERIES};
    record->vectors = clusters_make(record->vector_count, CRASH_DIM, 0.3, 5);
    record->marks = calloc(steps + 1, sizeof *record->marks);
    ck_assert_ptr_nonnull(record->marks);
    index_path(folder, path);
    make_first(record, path);
    sl_file_ops ops = recording(record);
    sl_open_params open_params;
    sl_open_params_init(&open_params);
    open_params.writable = 1;
    open_params.place = way == CRASH_DIRECT ? SL_PLACE_PMEM : SL_PLACE_MAP;
    open_params.file_ops = &ops;
    open_params.log_bytes = 60000;
    sl_index *index;
    ck_ok(sl_index_open(path, &open_params, &index));
    mark(record, index, 0);
    record->marks[0].ended = 0;
    for (size_t step = 0; step < steps; step++) {
        const crash_mark *last = &record->marks[record->mark_count - 1];
        const uint64_t gone[] = {last->deleted, last->deleted + 1};
        if (step % 4 == 3)
            ck_ok(sl_index_delete(index, gone, 2));
        else
            ck_ok(indexes_add(index, record->vectors + last->nodes * CRASH_DIM, SL_F32, 1 + step * 5 % 8, NULL));
        size_t begun = record->count;
        ck_ok(sl_index_sync(index));
        mark(record, index, begun);
    }
    sl_index_free(index);
    ck_assert_int_eq(unlink(path), 0);
}

void crash_free(crash_record *record) {
    for (size_t i = 0; i < record->count; i++)
        free(record->ops[i].data);
    free(record->ops);
    free(record->marks);
    free(record->initial);
    free(record->vectors);
}

/* ---------------------------------------------------------------------------------------------------------------
 * Images
 * ------------------------------------------------------------------------------------------------------------- */

typedef struct image {
    unsigned char *bytes;
    size_t size, room;
    int exists;
} image;

static void resize(image *file, size_t size) {
    if (size > file->room) {
        file->room = 2 * size;
        file->bytes = realloc(file->bytes, file->room);
        ck_assert_ptr_nonnull(file->bytes);
    }
    if (size > file->size) memset(file->bytes + file->size, 0, size - file->size);
    file->size = size;
}

static void put(image *file, const crash_op *op, uint64_t from, uint64_t size) {
    if (file->size < op->offset + from + size) resize(file, (size_t)(op->offset + from + size));
    memcpy(file->bytes + op->offset + from, op->data + from, (size_t)size);
}

/* Of a write, any sectors, or words. */
static void put_torn(image *file, const crash_op *op, uint64_t whole, uint64_t seed) {
    for (uint64_t from = 0, part = 0; from < op->size; part++) {
        uint64_t size = whole - (op->offset + from) % whole;
        if (size > op->size - from) size = op->size - from;
        if (sl_random_at(seed, part) & 1) put(file, op, from, size);
        from += size;
    }
}

static void apply(image *file, const crash_op *op) {
    switch (op->kind) {
    case OP_WRITE:
        put(file, op, 0, op->size);
        break;
    case OP_TRUNCATE:
        resize(file, (size_t)op->offset);
        break;
    case OP_CREATE:
        file->exists = 1;
        break;
    case OP_UNLINK:
        file->exists = 0;
        break;
    case OP_SYNC:
        break;
    }
}

/* What a device does with the writes it has not been made to keep. */
typedef enum fate { FATE_NONE, FATE_ALL, FATE_FIRST, FATE_ANY, FATE_TORN, FATES } fate;

/* One file as a crash before op `at` leaves it. */
static void make_file(const crash_record *record, size_t at, int which, uint64_t seed, image *file) {
    size_t synced = 0, pending = 0, seen = 0;
    for (size_t i = 0; i < at; i++)
        if (record->ops[i].file == which && record->ops[i].kind == OP_SYNC) synced = i;
    for (size_t i = synced; i < at; i++)
        pending += record->ops[i].file == which;
    fate how = (fate)(sl_random_at(seed, 0) % FATES);
    size_t first = pending ? (size_t)(sl_random_at(seed, 1) % (pending + 1)) : 0;
    for (size_t i = 0; i < at; i++) {
        const crash_op *op = &record->ops[i];
        if (op->file != which) continue;
        int sure = i < synced || op->kind == OP_CREATE;
        uint64_t draw = sl_random_at(seed, 2 + i);
        if (!sure) seen++;
        if (sure || how == FATE_ALL || (how == FATE_FIRST && seen <= first) || (how == FATE_ANY && draw & 1))
            apply(file, op);
        else if (how == FATE_TORN && op->kind == OP_WRITE)
            put_torn(file, op, record->way == CRASH_DIRECT ? WORD : SECTOR, draw);
        else if (how == FATE_TORN && draw & 1)
            apply(file, op);
    }
}

/* ---------------------------------------------------------------------------------------------------------------
 * What must hold
 * ------------------------------------------------------------------------------------------------------------- */

#define WRONG(...)                                                                                                     \
    do {                                                                                                               \
        snprintf(why, 256, __VA_ARGS__);                                                                               \
        goto done;                                                                                                     \
    } while (0)

/* Ids below `maybe` may be deleted already. */
static int same_vectors(const crash_record *record, sl_index *index, const crash_mark *mark, size_t maybe) {
    float got[CRASH_DIM];
    for (uint64_t id = 0; id < mark->nodes; id++) {
        sl_status status = sl_index_get(index, &id, 1, SL_F32, got);
        if (status == SL_ENOTFOUND && id < maybe) continue;
        if (status != SL_OK || id < mark->deleted) return 0;
        for (size_t i = 0; i < CRASH_DIM; i++) {
            float off = got[i] - record->vectors[id * CRASH_DIM + i];
            if (!(off * off < 0.01F)) return 0;
        }
    }
    return 1;
}

static void no_flush(void *ctx, const void *at, size_t size, uint64_t offset) {
    (void)ctx;
    (void)at;
    (void)size;
    (void)offset;
}

static void no_drain(void *ctx) {
    (void)ctx;
}

/* Shares of the queries' true nearest. */
static double recall_of(const crash_record *record, const crash_mark *mark, const uint64_t *ids) {
    const float *queries = record->vectors + (record->vector_count - CRASH_QUERIES) * CRASH_DIM;
    uint64_t truth[CRASH_QUERIES * CRASH_K];
    indexes_exact(SL_METRIC_L2, SL_F32, CRASH_DIM, record->vectors + mark->deleted * CRASH_DIM,
                  mark->nodes - mark->deleted, queries, CRASH_QUERIES, CRASH_K, truth);
    for (size_t i = 0; i < CRASH_QUERIES * CRASH_K; i++)
        truth[i] += mark->deleted;
    return indexes_recall(ids, truth, CRASH_QUERIES, CRASH_K);
}

/* What an image finds against what its sync had found; the sums tell of small losses, this of large ones. */
static int finds_enough(crash_record *record, size_t at, const uint64_t *ids) {
    const crash_mark *mark = &record->marks[at];
    if (memcmp(ids, mark->ids, sizeof mark->ids) == 0) return 1;
    if (record->way != CRASH_DIRECT) return 0;
    double found = recall_of(record, mark, ids), wanted = recall_of(record, mark, mark->ids);
    record->recall += found;
    record->wanted += wanted;
    return found >= wanted - 0.1;
}

/* The mark of an index of so many nodes and deletes. Written directly, a delete of several that a crash cut short may
 * have taken some of them: it then is the one before it, and *maybe the next's deletes. */
static size_t mark_of(const crash_record *record, size_t nodes, size_t deleted, size_t *maybe) {
    const crash_mark *marks = record->marks;
    for (size_t at = 0; at < record->mark_count; at++) {
        if (marks[at].nodes != nodes) continue;
        *maybe = marks[at].deleted;
        if (deleted == marks[at].deleted) return at;
        int cut = record->way == CRASH_DIRECT && at + 1 < record->mark_count && marks[at + 1].nodes == nodes;
        if (!cut || deleted <= marks[at].deleted || deleted >= marks[at + 1].deleted) continue;
        *maybe = marks[at + 1].deleted;
        return at;
    }
    return record->mark_count;
}

/* The index that opens now: which mark it is, or -1 with the reason. */
static int examine(crash_record *record, const char *path, sl_place place, int writable, char *why) {
    const sl_file_ops quiet = {.flush = no_flush, .drain = no_drain};
    sl_open_params params;
    sl_open_params_init(&params);
    params.place = place;
    params.writable = writable;
    params.file_ops = &quiet;
    sl_index *index = NULL;
    uint64_t ids[CRASH_QUERIES * CRASH_K];
    int found = -1;
    if (sl_index_open(path, &params, &index) != SL_OK) WRONG("does not open: %s", sl_last_error());
    sl_index_stats stats = indexes_stats(index);
    size_t nodes = stats.n + stats.deleted, maybe;
    size_t at = mark_of(record, nodes, stats.deleted, &maybe);
    if (at == record->mark_count) WRONG("has %zu vectors, %zu deleted, as no sync left it", nodes, stats.deleted);
    sl_check_params check;
    sl_check_params_init(&check);
    check.sample = 0;
    check.threads = 1;
    check.scrub = 1;
    sl_check_report report = {.struct_size = sizeof report};
    if (sl_index_check(index, &check, &report) != SL_OK) WRONG("is not sound: %s", sl_last_error());
    if (place != SL_PLACE_DRAM && report.records_checked != report.n + report.deleted)
        WRONG("has %zu records of %zu looked at", report.records_checked, report.n + report.deleted);
    find(record, index, ids);
    if (maybe == stats.deleted && !finds_enough(record, at, ids)) WRONG("finds other vectors than after sync %zu", at);
    if (!same_vectors(record, index, &record->marks[at], maybe)) WRONG("has lost or changed vectors of sync %zu", at);
    found = (int)at;
done:
    sl_index_free(index);
    return found;
}

int crash_try(crash_record *record, uint64_t number, const char *folder, char *why) {
    char path[SCRATCH_PATH], log[SCRATCH_PATH + 8];
    index_path(folder, path);
    snprintf(log, sizeof log, "%s.log", path);
    size_t at = (size_t)(sl_random_at(number, 0) % (record->count + 1));
    image data = {.exists = 1}, redo = {0};
    resize(&data, record->initial_size);
    memcpy(data.bytes, record->initial, record->initial_size);
    make_file(record, at, DATA, sl_random_at(number, 1), &data);
    make_file(record, at, LOG, sl_random_at(number, 2), &redo);
    file_write(path, data.bytes, data.size);
    if (redo.exists) file_write(log, redo.bytes ? redo.bytes : (unsigned char *)"", redo.size);

    size_t least = 0, most = 0;
    for (size_t i = 0; i < record->mark_count; i++) {
        if (record->marks[i].ended <= at) least = i;
        if (record->marks[i].begun < at) most = i;
    }
    int kind = (int)(number % 3), good = 0;
    sl_place place = kind == 2 ? SL_PLACE_DRAM : SL_PLACE_MAP;
    /* What was cut short is for a writer to link. */
    if (record->way == CRASH_DIRECT) place = number % 2 ? SL_PLACE_PMEM : SL_PLACE_MAP, kind = 1;
    int first = examine(record, path, place, kind == 1, why);
    if (first < 0) goto done;
    /* An add is published before it is synced. */
    if (record->way == CRASH_DIRECT && most + 1 < record->mark_count) most++;
    if ((size_t)first < least || (size_t)first > most)
        WRONG("is as sync %d left it, where %zu to %zu were due", first, least, most);
    int second = examine(record, path, SL_PLACE_MAP, kind == 0, why);
    if (second < 0) goto done;
    if (second != first) WRONG("is as sync %d left it when opened again, and was as %d", second, first);
    good = 1;
done:
    if (!good) {
        char what[256];
        snprintf(what, sizeof what, "%s", why);
        snprintf(why, 256, "image %llu, before op %zu of %zu: %.180s", (unsigned long long)number, at, record->count,
                 what);
    }
    (void)unlink(path);
    (void)unlink(log);
    free(data.bytes);
    free(redo.bytes);
    return good;
}
