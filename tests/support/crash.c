#include "tests/support/crash.h"

#include "base/random.h"
#include "tests/support/clusters.h"
#include "tests/support/indexes.h"
#include "tests/support/scratch.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* DATA and LOG are names and, at first, the files that they mean. */
enum {
    START = 150,
    THREADS = 3,
    MANY = 60,
    REPLACED = 5, /* ids, in a step */
    GONE = 12,
    COMPACTS = 5, /* steps */
    TAGGED = 9,
    SECTOR = 512,
    WORD = 8,
    DATA = 0,
    LOG = 1,
    INITIAL = 2,
    RECOVERED_STEPS = 2,
    FOLDER = -1,
    NONE = -1
};

typedef enum op_kind { OP_WRITE, OP_TRUNCATE, OP_SYNC, OP_NAME } op_kind;

struct crash_op {
    op_kind kind;
    int file; /* that is changed, or FOLDER; of OP_NAME the one that `name` means from here on, or NONE */
    uint64_t offset, size;
    unsigned char *data;
    int name, old; /* of OP_NAME: the name, and one that means no file after it, or NONE */
};

/* ---------------------------------------------------------------------------------------------------------------
 * Recording
 * ------------------------------------------------------------------------------------------------------------- */

static crash_op *note(crash_record *record, op_kind kind, int file) {
    if (record->count == record->room) {
        record->room = record->room * 2 + 64;
        record->ops = realloc(record->ops, record->room * sizeof *record->ops);
        ck_assert_ptr_nonnull(record->ops);
    }
    crash_op *op = &record->ops[record->count++];
    *op = (crash_op){.kind = kind, .file = file, .name = NONE, .old = NONE};
    return op;
}

static void note_write(crash_record *record, int file, uint64_t offset, const void *data, uint64_t size) {
    crash_op *op = note(record, OP_WRITE, file);
    op->offset = offset;
    op->size = size;
    op->data = malloc(size + 1);
    ck_assert_ptr_nonnull(op->data);
    memcpy(op->data, data, size);
}

static void note_size(crash_record *record, int file, uint64_t size) {
    note(record, OP_TRUNCATE, file)->offset = size;
}

static void note_name(crash_record *record, int name, int file, int old) {
    crash_op *op = note(record, OP_NAME, file);
    op->name = name;
    op->old = old;
    record->named[name] = file;
    if (old != NONE) record->named[old] = NONE;
}

static int ends_in_log(const char *path) {
    size_t length = strlen(path);
    return length > 4 && strcmp(path + length - 4, ".log") == 0;
}

/* The number of a path's last part. */
static int name_of(crash_record *record, const char *path) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    for (int i = 0; i < record->name_count; i++)
        if (strcmp(record->names[i], name) == 0) return i;
    ck_assert_int_lt(record->name_count, CRASH_FILES);
    ck_assert_uint_lt(strlen(name), CRASH_NAME);
    snprintf(record->names[record->name_count], CRASH_NAME, "%s", name);
    record->named[record->name_count] = NONE;
    return record->name_count++;
}

static int new_file(crash_record *record, int is_log) {
    ck_assert_int_lt(record->file_count, CRASH_FILES);
    record->is_log[record->file_count] = (char)is_log;
    return record->file_count++;
}

static int record_open(void *ctx, const char *path, int flags, unsigned mode) {
    crash_record *record = ctx;
    int fresh = (flags & O_CREAT) && access(path, F_OK) != 0;
    int fd = open(path, flags, (mode_t)mode);
    if (fd < 0) return fd;
    ck_assert_int_lt(fd, CRASH_FILES);
    if (flags & O_DIRECTORY) {
        record->open[fd] = FOLDER;
        return fd;
    }
    int name = name_of(record, path);
    if (fresh) note_name(record, name, new_file(record, ends_in_log(path)), NONE);
    record->open[fd] = record->named[name];
    ck_assert_int_ge(record->open[fd], 0);
    if (!fresh && flags & O_TRUNC) note_size(record, record->open[fd], 0);
    return fd;
}

static int64_t record_pwrite(void *ctx, int fd, const void *data, size_t size, uint64_t offset) {
    crash_record *record = ctx;
    note_write(record, record->open[fd], offset, data, size);
    return pwrite(fd, data, size, (off_t)offset);
}

static int64_t record_write(void *ctx, int fd, const void *data, size_t size) {
    crash_record *record = ctx;
    off_t at = lseek(fd, 0, SEEK_CUR);
    ck_assert_int_ge(at, 0);
    note_write(record, record->open[fd], (uint64_t)at, data, size);
    return write(fd, data, size);
}

static int record_fsync(void *ctx, int fd) {
    crash_record *record = ctx;
    int file = record->open[fd];
    crash_lie silent = file == FOLDER         ? CRASH_FOLDER_NOT_SYNCED
                       : record->is_log[file] ? CRASH_LOG_NOT_SYNCED
                                              : CRASH_DATA_NOT_SYNCED;
    if (record->lie != silent) note(record, OP_SYNC, file);
    return 0;
}

static int record_ftruncate(void *ctx, int fd, uint64_t size) {
    crash_record *record = ctx;
    note_size(record, record->open[fd], size);
    return ftruncate(fd, (off_t)size);
}

static int record_rename(void *ctx, const char *from, const char *to) {
    crash_record *record = ctx;
    int old = name_of(record, from);
    note_name(record, name_of(record, to), record->named[old], old);
    return rename(from, to);
}

static int record_unlink(void *ctx, const char *path) {
    crash_record *record = ctx;
    note_name(record, name_of(record, path), NONE, NONE);
    return unlink(path);
}

static void record_flush(void *ctx, const void *at, size_t size, uint64_t offset) {
    note_write(ctx, DATA, offset, at, size);
}

static void record_drain(void *ctx) {
    crash_record *record = ctx;
    if (record->lie != CRASH_NOT_DRAINED) note(record, OP_SYNC, DATA);
}

static sl_file_ops recording(crash_record *record) {
    return (sl_file_ops){.flush = record_flush,
                         .drain = record_drain,
                         .ctx = record,
                         .open = record_open,
                         .write = record_write,
                         .pwrite = record_pwrite,
                         .fsync = record_fsync,
                         .fdatasync = record_fsync,
                         .ftruncate = record_ftruncate,
                         .rename = record_rename,
                         .unlink = record_unlink};
}

/* ---------------------------------------------------------------------------------------------------------------
 * Images
 * ------------------------------------------------------------------------------------------------------------- */

typedef struct image {
    unsigned char *bytes;
    size_t size, room;
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

static void put_bytes(image *file, const crash_op *op, uint64_t from, uint64_t size) {
    if (file->size < op->offset + from + size) resize(file, (size_t)(op->offset + from + size));
    memcpy(file->bytes + op->offset + from, op->data + from, (size_t)size);
}

/* Any sectors, or words, of a write. */
static void put_torn(image *file, const crash_op *op, uint64_t whole, uint64_t seed) {
    for (uint64_t from = 0, part = 0; from < op->size; part++) {
        uint64_t size = whole - (op->offset + from) % whole;
        if (size > op->size - from) size = op->size - from;
        if (sl_random_at(seed, part) & 1) put_bytes(file, op, from, size);
        from += size;
    }
}

static void apply(image *file, const crash_op *op) {
    switch (op->kind) {
    case OP_WRITE:
        put_bytes(file, op, 0, op->size);
        break;
    case OP_TRUNCATE:
        resize(file, (size_t)op->offset);
        break;
    case OP_NAME:
    case OP_SYNC:
        break;
    }
}

/* Fate of writes and names that no sync has made safe. */
typedef enum fate { FATE_NONE, FATE_ALL, FATE_FIRST, FATE_ANY, FATE_TORN, FATES } fate;

/* Fate of the ops on one file, or on the names. Ops before `synced` are kept. The first few of the others
 * are kept, or a draw decides. */
typedef struct survival {
    fate how;
    size_t synced, first;
    uint64_t seed;
} survival;

static survival survival_of(const crash_record *record, size_t at, int file, op_kind changes, uint64_t seed) {
    survival what = {.how = (fate)(sl_random_at(seed, 0) % FATES), .seed = seed};
    size_t pending = 0;
    for (size_t i = 0; i < at; i++)
        if (record->ops[i].kind == OP_SYNC && record->ops[i].file == file) what.synced = i;
    for (size_t i = what.synced; i < at; i++)
        pending += changes == OP_NAME ? record->ops[i].kind == OP_NAME : record->ops[i].file == file;
    what.first = pending ? (size_t)(sl_random_at(seed, 1) % (pending + 1)) : 0;
    return what;
}

/* Returns whether op i is kept as a whole; `seen` ops that were not synced come before it. */
static int is_kept(const survival *what, size_t i, size_t seen) {
    return i < what->synced || what->how == FATE_ALL || (what->how == FATE_FIRST && seen < what->first) ||
           (what->how >= FATE_ANY && sl_random_at(what->seed, 2 + i) & 1);
}

/* The file that each name means after a crash before op `at`. */
static void make_names(const crash_record *record, size_t at, const survival *what, int named[CRASH_FILES]) {
    size_t seen = 0;
    for (int name = 0; name < CRASH_FILES; name++)
        named[name] = name < INITIAL && record->initial[name].bytes ? name : NONE;
    for (size_t i = 0; i < at; i++) {
        const crash_op *op = &record->ops[i];
        if (op->kind != OP_NAME) continue;
        if (is_kept(what, i, seen)) {
            named[op->name] = op->file;
            if (op->old != NONE) named[op->old] = NONE;
        }
        seen += i >= what->synced;
    }
}

/* The bytes of one file after a crash before op `at`. */
static image make_file(const crash_record *record, size_t at, int which, const survival *what) {
    image file = {0};
    size_t seen = 0;
    if (which < INITIAL && record->initial[which].bytes) {
        resize(&file, record->initial[which].size);
        memcpy(file.bytes, record->initial[which].bytes, file.size);
    }
    for (size_t i = 0; i < at; i++) {
        const crash_op *op = &record->ops[i];
        if (op->file != which || op->kind == OP_NAME) continue;
        if (i >= what->synced && what->how == FATE_TORN && op->kind == OP_WRITE)
            put_torn(&file, op, record->way == CRASH_DIRECT ? WORD : SECTOR, sl_random_at(what->seed, 2 + i));
        else if (is_kept(what, i, seen))
            apply(&file, op);
        seen += i >= what->synced;
    }
    return file;
}

static void path_of(const char *folder, const char *name, char path[SCRATCH_PATH]) {
    int length = snprintf(path, SCRATCH_PATH, "%s/%s", folder, name);
    ck_assert_int_lt(length, SCRATCH_PATH);
}

/* ---------------------------------------------------------------------------------------------------------------
 * The workload
 * ------------------------------------------------------------------------------------------------------------- */

static void find_neighbours(const crash_record *record, const sl_index *index, uint64_t *ids) {
    const float *queries = record->vectors + (record->vector_count - CRASH_QUERIES) * CRASH_DIM;
    indexes_search(index, (vector_rows){queries, SL_F32, CRASH_QUERIES}, CRASH_K, 40, ids, NULL);
}

/* Ids are given in order, and deleted in order. */
static void count_ids(const crash_record *record, const sl_index *index, size_t *nodes, size_t *deleted) {
    uint64_t *ids = malloc(record->vector_count * sizeof *ids), last = 0;
    size_t count;
    ck_assert_ptr_nonnull(ids);
    ck_ok(sl_index_ids(index, ids, record->vector_count, &count));
    for (size_t i = 0; i < count && i < record->vector_count; i++)
        if (ids[i] > last) last = ids[i];
    *nodes = (size_t)last + 1;
    *deleted = *nodes - count;
    free(ids);
}

static void add_mark(crash_record *record, sl_index *index, size_t begun) {
    crash_mark *here = &record->marks[record->mark_count++];
    *here = (crash_mark){.begun = begun, .ended = record->count};
    count_ids(record, index, &here->nodes, &here->deleted);
    here->rows = malloc(record->vector_count * sizeof *here->rows);
    ck_assert_ptr_nonnull(here->rows);
    memcpy(here->rows, record->rows, record->vector_count * sizeof *here->rows);
    here->tags = calloc(here->nodes, sizeof *here->tags);
    ck_assert_ptr_nonnull(here->tags);
    for (uint64_t id = here->deleted; id < here->nodes; id++)
        ck_ok(sl_index_get_tags(index, &id, 1, &here->tags[id]));
    find_neighbours(record, index, here->ids);
}

static void set_initial(crash_record *record, int name, const char *path) {
    record->initial[name].bytes = file_read(path, &record->initial[name].size);
    record->named[name] = name;
}

static sl_index *make_first(const crash_record *record) {
    sl_index_params params;
    indexes_params(&params, CRASH_DIM, SL_METRIC_L2);
    params.m = 4;
    params.ef_construction = 20;
    params.codes = record->codes;
    params.refine = record->codes == SL_CODES_I8 ? SL_REFINE_BF16 : SL_REFINE_NONE;
    params.tags = 1;
    return indexes_make(&params, record->vectors, SL_F32, START, NULL, 1);
}

static void save(const crash_record *record, sl_index *index, const char *path, const sl_file_ops *ops) {
    sl_save_params params;
    indexes_save_params(&params);
    params.room = record->vector_count;
    params.file_ops = ops;
    ck_ok(sl_index_save(index, path, &params));
}

/* Sometimes adds enough vectors for several threads to link. Never in direct writing: a writer then links that many
 * anew after a crash, and recall depends on the order of threads. */
static size_t rows_of(const crash_record *record, size_t step) {
    return record->way != CRASH_DIRECT && step % 8 == 5 ? MANY : 1 + step * 5 % 8;
}

static void add_some(const crash_record *record, sl_index *index, size_t step) {
    const crash_mark *last = &record->marks[record->mark_count - 1];
    const float *rows = record->vectors + last->nodes * CRASH_DIM;
    uint64_t tags[MANY];
    for (size_t i = 0; i < MANY; i++)
        tags[i] = sl_random_at(step, i);
    sl_add_params params;
    sl_add_params_init(&params);
    params.tags = tags;
    params.threads = rows_of(record, step) == MANY ? THREADS : 1;
    ck_ok(sl_index_add(index, rows, SL_F32, rows_of(record, step), 0, NULL, &params));
}

/* Gives some ids other vectors, that this step doesn't delete. */
static void replace_some(crash_record *record, sl_index *index, size_t step) {
    const crash_mark *last = &record->marks[record->mark_count - 1];
    sl_add_params params;
    sl_add_params_init(&params);
    params.replace = 1;
    params.threads = 1;
    for (size_t i = 0; i < REPLACED; i++) {
        const size_t first = last->deleted + GONE;
        const uint64_t id = first + sl_random_at(step, 2 * MANY + i) % (last->nodes - first);
        const uint64_t tag = sl_random_at(step, 3 * MANY + i);
        record->rows[id] = (uint32_t)(sl_random_at(step, 4 * MANY + i) % (record->vector_count - CRASH_QUERIES));
        params.tags = &tag;
        ck_ok(sl_index_add(index, record->vectors + record->rows[id] * CRASH_DIM, SL_F32, 1, 0, &id, &params));
    }
}

/* Deletes the first ids. In direct writing places are not used again, and two deletes are enough. */
static void delete_some(const crash_record *record, sl_index *index) {
    const crash_mark *last = &record->marks[record->mark_count - 1];
    uint64_t gone[GONE];
    for (size_t i = 0; i < GONE; i++)
        gone[i] = last->deleted + i;
    ck_ok(sl_index_delete(index, gone, record->way == CRASH_DIRECT ? 2 : GONE));
}

/* Sets tags of ids all over the index that are not deleted. */
static void set_some(const crash_record *record, sl_index *index) {
    const crash_mark *last = &record->marks[record->mark_count - 1];
    uint64_t ids[TAGGED], tags[TAGGED];
    for (size_t i = 0; i < TAGGED; i++) {
        ids[i] = last->nodes - 1 - i * (last->nodes - last->deleted - 2) / TAGGED;
        tags[i] = sl_random_at(record->mark_count, MANY + i);
    }
    ck_ok(sl_index_set_tags(index, ids, TAGGED, tags));
}

/* Takes deleted vectors out, with commits of its own. */
static void compact(crash_record *record, sl_index *index) {
    const size_t before = indexes_stats(index).deleted;
    ck_ok(sl_index_compact(index, NULL));
    record->marks[record->mark_count - 1].compacted = 1;
    record->compacted |= indexes_stats(index).deleted < before;
}

static void write_in_place(crash_record *record, const char *path, size_t steps) {
    sl_file_ops ops = recording(record);
    sl_open_params open_params;
    sl_open_params_init(&open_params);
    open_params.writable = 1;
    open_params.place = record->way == CRASH_DIRECT ? SL_PLACE_PMEM : SL_PLACE_MAP;
    open_params.file_ops = &ops;
    open_params.log_bytes = 150000;
    sl_index *index;
    ck_ok(sl_index_open(path, &open_params, &index));
    add_mark(record, index, 0);
    record->marks[0].ended = 0;
    for (size_t step = 0; step < steps; step++) {
        set_some(record, index);
        if (step % 4 == 3)
            delete_some(record, index);
        else
            add_some(record, index, step);
        if (record->way != CRASH_DIRECT) replace_some(record, index, step);
        /* An add may leave a node that no search reaches until its writer has looked; to a reader that is damage. The
         * threads of an add make another graph each time. */
        if (record->way != CRASH_DIRECT) indexes_sound(index);
        size_t begun = record->count;
        ck_ok(sl_index_sync(index));
        add_mark(record, index, begun);
        if (record->way != CRASH_DIRECT && step % COMPACTS == 0) compact(record, index);
    }
    const sl_index_stats stats = indexes_stats(index);
    const size_t places = stats.n + stats.deleted + stats.reusable;
    record->reused = places < record->marks[record->mark_count - 1].nodes;
    sl_index_free(index);
}

static void save_again_and_again(crash_record *record, sl_index *index, const char *path, size_t steps) {
    sl_file_ops ops = recording(record);
    add_mark(record, index, 0);
    for (size_t step = 0; step < steps; step++) {
        set_some(record, index);
        add_some(record, index, step);
        size_t begun = record->count;
        save(record, index, path, &ops);
        add_mark(record, index, begun);
    }
}

static void record_init(crash_record *record, size_t steps, crash_way way, crash_lie lie, sl_codes codes) {
    *record = (crash_record){.way = way, .lie = lie, .codes = codes, .file_count = INITIAL};
    record->vector_count = START + CRASH_QUERIES;
    for (size_t step = 0; step < steps; step++)
        record->vector_count += rows_of(record, step);
    record->vectors = clusters_make(record->vector_count, CRASH_DIM, 0.3, 5);
    record->marks = calloc(steps + 1, sizeof *record->marks);
    record->rows = malloc(record->vector_count * sizeof *record->rows);
    ck_assert(record->marks && record->rows);
    for (size_t row = 0; row < record->vector_count; row++)
        record->rows[row] = (uint32_t)row;
    ck_assert_int_eq(name_of(record, "index.sl"), DATA);
    ck_assert_int_eq(name_of(record, "index.sl.log"), LOG);
    record->is_log[LOG] = 1;
}

static void remove_files(const crash_record *record, const char *folder) {
    char path[SCRATCH_PATH];
    for (int name = 0; name < record->name_count; name++) {
        path_of(folder, record->names[name], path);
        (void)unlink(path);
    }
}

/* Makes the files of the first names after a power failure at `at`, on a device that keeps only what it must. */
static void keep_least(const crash_record *of, size_t at, crash_file files[INITIAL]) {
    int named[CRASH_FILES];
    survival kept = survival_of(of, at, FOLDER, OP_NAME, 0);
    kept.how = FATE_NONE;
    make_names(of, at, &kept, named);
    for (int name = 0; name < INITIAL; name++) {
        files[name] = (crash_file){0};
        if (named[name] == NONE) continue;
        kept = survival_of(of, at, named[name], OP_WRITE, 0);
        kept.how = FATE_NONE;
        image file = make_file(of, at, named[name], &kept);
        files[name] = (crash_file){file.bytes, file.size};
    }
}

/* Finds the sync of another workload's record after which the log holds most of the acknowledged changes. This record
 * starts from a power failure there. */
static crash_mark lose_power(const crash_record *of, crash_record *record, const char *folder) {
    crash_mark best = {0};
    char path[SCRATCH_PATH];
    for (size_t i = 0; i + RECOVERED_STEPS < of->mark_count; i++) {
        crash_file files[INITIAL];
        keep_least(of, of->marks[i].ended, files);
        int better = files[LOG].size > record->initial[LOG].size;
        if (better) best = of->marks[i];
        for (int name = 0; name < INITIAL; name++) {
            free(better ? record->initial[name].bytes : files[name].bytes);
            if (better) record->initial[name] = files[name];
        }
    }
    for (int name = 0; name < INITIAL; name++) {
        ck_assert_ptr_nonnull(record->initial[name].bytes);
        path_of(folder, record->names[name], path);
        file_write(path, record->initial[name].bytes, record->initial[name].size);
        record->named[name] = name;
    }
    return best;
}

static void recover(crash_record *record, const char *folder, const char *path, size_t steps) {
    crash_record of;
    crash_run(&of, folder, steps, CRASH_LOGGED, CRASH_HONEST, record->codes);
    crash_mark lost = lose_power(&of, record, folder);
    memcpy(record->rows, lost.rows, record->vector_count * sizeof *record->rows);
    write_in_place(record, path, RECOVERED_STEPS);
    ck_assert_uint_eq(record->marks[0].nodes, lost.nodes);
    ck_assert_uint_eq(record->marks[0].deleted, lost.deleted);
    ck_assert_mem_eq(record->marks[0].ids, lost.ids, sizeof lost.ids);
    ck_assert_mem_eq(record->marks[0].tags, lost.tags, lost.nodes * sizeof *lost.tags);
    crash_free(&of);
}

void crash_run(crash_record *record, const char *folder, size_t steps, crash_way way, crash_lie lie, sl_codes codes) {
    char path[SCRATCH_PATH];
    record_init(record, steps, way, lie, codes);
    path_of(folder, record->names[DATA], path);
    if (way == CRASH_RECOVERED) {
        recover(record, folder, path, steps);
    } else {
        sl_index *index = make_first(record);
        save(record, index, path, NULL);
        set_initial(record, DATA, path);
        if (way == CRASH_SAVED)
            save_again_and_again(record, index, path, steps);
        else
            write_in_place(record, path, steps);
        sl_index_free(index);
    }
    remove_files(record, folder);
}

void crash_free(crash_record *record) {
    for (size_t i = 0; i < record->count; i++)
        free(record->ops[i].data);
    free(record->ops);
    for (size_t i = 0; i < record->mark_count; i++) {
        free(record->marks[i].tags);
        free(record->marks[i].rows);
    }
    free(record->rows);
    free(record->marks);
    for (int i = 0; i < INITIAL; i++)
        free(record->initial[i].bytes);
    free(record->vectors);
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
            float off = got[i] - record->vectors[mark->rows[id] * CRASH_DIM + i];
            if (!(off * off < 0.01F)) return 0;
        }
    }
    return 1;
}

/* In direct writing, tags count at once, so those of the next sync may be there. Ids below `maybe` may be deleted
 * already. */
static int same_tags(const crash_record *record, sl_index *index, size_t at, size_t maybe) {
    const crash_mark *mark = &record->marks[at];
    const crash_mark *next = record->way == CRASH_DIRECT && at + 1 < record->mark_count ? mark + 1 : mark;
    for (uint64_t id = maybe; id < mark->nodes; id++) {
        uint64_t tag;
        if (sl_index_get_tags(index, &id, 1, &tag) != SL_OK) return 0;
        if (tag != mark->tags[id] && tag != next->tags[id]) return 0;
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

/* Returns shares of the queries' true nearest. */
static double recall_of(const crash_record *record, const crash_mark *mark, const uint64_t *ids) {
    const float *queries = record->vectors + (record->vector_count - CRASH_QUERIES) * CRASH_DIM;
    uint64_t truth[CRASH_QUERIES * CRASH_K];
    indexes_exact(SL_METRIC_L2, CRASH_DIM,
                  (vector_rows){record->vectors + mark->deleted * CRASH_DIM, SL_F32, mark->nodes - mark->deleted},
                  (vector_rows){queries, SL_F32, CRASH_QUERIES}, CRASH_K, truth);
    for (size_t i = 0; i < CRASH_QUERIES * CRASH_K; i++)
        truth[i] += mark->deleted;
    return indexes_recall(ids, truth, CRASH_QUERIES, CRASH_K);
}

/* Compares an image's results with those of its sync. The sums show small losses, this comparison large ones. */
static int finds_enough(crash_record *record, size_t at, const uint64_t *ids) {
    const crash_mark *mark = &record->marks[at];
    if (memcmp(ids, mark->ids, sizeof mark->ids) == 0) return 1;
    if (record->way != CRASH_DIRECT && !mark->compacted) return 0;
    double found = recall_of(record, mark, ids), wanted = recall_of(record, mark, mark->ids);
    record->recall += found;
    record->wanted += wanted;
    return found >= wanted - 0.1;
}

/* Finds the mark of an index of this many nodes and deletes. In direct writing, a crash may cut a delete of several
 * short after some of them. The mark is then the one before that delete, and *maybe has the next mark's deletes. */
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

/* Returns the mark of the index that opens, or -1 with the reason. */
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
    size_t nodes, deleted, maybe;
    count_ids(record, index, &nodes, &deleted);
    size_t at = mark_of(record, nodes, deleted, &maybe);
    if (at == record->mark_count) WRONG("has %zu ids, %zu deleted, as no sync left it", nodes, deleted);
    /* This comes before the check, which lets a writer link unreached nodes. */
    find_neighbours(record, index, ids);
    sl_check_params check;
    sl_check_params_init(&check);
    check.sample = 0;
    check.threads = 1;
    check.scrub = 1;
    sl_check_report report = {.struct_size = sizeof report};
    if (sl_index_check(index, &check, &report) != SL_OK) WRONG("is not sound: %s", sl_last_error());
    if (place != SL_PLACE_DRAM && report.records_checked != report.n + report.deleted + stats.reusable)
        WRONG("has %zu records of %zu looked at", report.records_checked, report.n + report.deleted + stats.reusable);
    if (maybe == deleted && !finds_enough(record, at, ids)) WRONG("finds other vectors than after sync %zu", at);
    if (!same_vectors(record, index, &record->marks[at], maybe)) WRONG("has lost or changed vectors of sync %zu", at);
    if (!same_tags(record, index, at, maybe)) WRONG("has other tags than sync %zu left", at);
    found = (int)at;
done:
    sl_index_free(index);
    return found;
}

/* Writes to the folder the files that a crash before op `at` leaves. */
static void make_image(const crash_record *record, size_t at, uint64_t seed, const char *folder) {
    int named[CRASH_FILES];
    char path[SCRATCH_PATH];
    survival what = survival_of(record, at, FOLDER, OP_NAME, sl_random_at(seed, CRASH_FILES));
    make_names(record, at, &what, named);
    for (int name = 0; name < record->name_count; name++) {
        if (named[name] == NONE) continue;
        what = survival_of(record, at, named[name], OP_WRITE, sl_random_at(seed, (uint64_t)named[name]));
        image file = make_file(record, at, named[name], &what);
        path_of(folder, record->names[name], path);
        file_write(path, file.bytes ? file.bytes : (unsigned char *)"", file.size);
        free(file.bytes);
    }
}

/* Chooses the op before which the power fails: any, or the next sync, when the most is unsafe. */
static size_t moment(const crash_record *record, uint64_t number) {
    size_t at = (size_t)(sl_random_at(number, 0) % (record->count + 1));
    if (sl_random_at(number, 2) & 1) return at;
    while (at < record->count && record->ops[at].kind != OP_SYNC)
        at++;
    return at;
}

int crash_try(crash_record *record, uint64_t number, const char *folder, char *why) {
    char path[SCRATCH_PATH];
    path_of(folder, record->names[DATA], path);
    size_t at = moment(record, number);
    make_image(record, at, sl_random_at(number, 1), folder);

    size_t least = 0, most = 0;
    for (size_t i = 0; i < record->mark_count; i++) {
        if (record->marks[i].ended <= at) least = i;
        if (record->marks[i].begun < at) most = i;
    }
    int kind = (int)(number % 3), good = 0;
    sl_place place = kind == 2 ? SL_PLACE_DRAM : SL_PLACE_MAP;
    /* A writer links the nodes of an add that was cut short. */
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
    remove_files(record, folder);
    return good;
}
