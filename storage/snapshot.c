#define _GNU_SOURCE
#include "base/memory.h"
#include "storage/copy.h"
#include "storage/locks.h"
#include "storage/recover.h"
#include "storage/replace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The most tries of a copy. A writer that is opened, a log that is replayed, or a save over the file makes another one
 * necessary. */
enum { MOST_TRIES = 16 };

typedef struct snapshot {
    const sl_store *store;
    uint64_t section; /* where SL_SECTION_LIVE begins; 0: the file never changes */
    int fd;           /* open on the file; holds the locks too */
    int by_system;
    int replaced; /* 1: the name has another file now */
    sl_replacement file;
    sl_progress *progress;
} snapshot;

/* ---------------------------------------------------------------------------------------------------------------
 * Source and target
 * ------------------------------------------------------------------------------------------------------------- */

static sl_status fail_replaced(snapshot *s) {
    s->replaced = 1;
    return sl_fail(SL_EBUSY, "%s: was replaced %d times while it was copied; try again", s->store->path, MOST_TRIES);
}

static sl_status open_source(snapshot *s) {
    const sl_file_section *live = sl_store_section(s->store, SL_SECTION_LIVE);
    sl_file_ops ops = sl_file_ops_of(NULL);
    s->fd = sl_open_retrying(&ops, s->store->resolved, O_RDONLY | O_CLOEXEC, 0);
    if (s->fd < 0) return sl_fail_errno("cannot open", s->store->path);
    if (!sl_store_is(s->store, s->fd)) return fail_replaced(s);
    if (!live) return SL_OK;
    if (live->size != SL_LIVE_SIZE)
        return sl_fail(SL_ECORRUPT, "%s: section %u (%s) is of a wrong size; make it or copy it again", s->store->path,
                       live->kind, sl_section_name(live->kind));
    s->section = live->offset;
    return sl_writable_pin(s->fd, s->store->path, s->progress);
}

/* Returns whether the copy would take the log's name. Only the copy's may be relative to the process's folder. */
static int is_target(const snapshot *s, const char *log) {
    char folder[PATH_MAX];
    const char *target = strrchr(s->file.target, '/'), *last = strrchr(log, '/');
    if (!last || !realpath(s->file.folder, folder)) return strcmp(log, s->file.target) == 0;
    const size_t length = strcmp(folder, "/") == 0 ? 0 : strlen(folder);
    return (size_t)(last - log) == length && strncmp(log, folder, length) == 0 &&
           strcmp(last + 1, target ? target + 1 : s->file.target) == 0;
}

static sl_status check_target(snapshot *s) {
    char log[PATH_MAX];
    SL_TRY(sl_redo_name(s->store->resolved, log));
    if (is_target(s, log))
        return sl_fail(SL_EINVAL, "%s is the name of the index's log; give the copy another", s->file.target);
    /* A file that may not be read isn't the index: that was read. */
    if (s->file.kept >= 0 && sl_store_is(s->store, s->file.kept))
        return sl_fail(SL_EINVAL, "%s is the index itself; give the copy a name of its own", s->file.target);
    return sl_replace_keep_writers_off(&s->file);
}

/* ---------------------------------------------------------------------------------------------------------------
 * The copy
 * ------------------------------------------------------------------------------------------------------------- */

static sl_status copy_bytes(snapshot *s) {
    sl_file_copy copy = {.ops = &s->file.ops,
                         .by_system = s->by_system,
                         .from = s->fd,
                         .to = s->file.fd,
                         .from_path = s->store->path,
                         .to_path = s->file.temporary,
                         .size = s->store->size,
                         .progress = s->progress};
    return sl_copy_file(&copy);
}

/* Gives the copy its own identity, so that neither file's log passes for the other's. */
static sl_status make_own(snapshot *s, const sl_superblock *of) {
    uint8_t pages[SL_LIVE_HEAD];
    SL_TRY(sl_writable_superblocks(pages, of->unsummed));
    return sl_write_at(&s->file.ops, s->file.fd, s->file.temporary, pages, sizeof pages, s->section);
}

static sl_status fail_cut(const snapshot *s) {
    return sl_fail(SL_ECORRUPT, "%s: its log was cut while it was copied; leave the log alone, and try again",
                   s->store->path);
}

/* Copies a file that a writer may change. The bytes are read at different times. The log holds each byte that changed
 * since it was emptied, and before the file does. Replayed after the copying, it makes the whole file as of its last
 * group, if it's still the same log. If the superblock tells of another log, the copy is made again. */
static sl_status copy_changing(snapshot *s) {
    for (int i = 0; i < MOST_TRIES; i++) {
        sl_superblock before, after;
        sl_redo_found had, found;
        SL_TRY(sl_writable_super(s->store, &before));
        int known = sl_writable_look(s->store, &before, &had) == SL_OK;
        SL_TRY(copy_bytes(s));
        sl_status status = sl_writable_replay(s->store, &before, &s->file.ops, s->file.fd, s->file.temporary, &found);
        if (status == SL_OK && known && found.groups < had.groups) status = fail_cut(s);
        if (!sl_store_has_name(s->store)) return fail_replaced(s);
        SL_TRY(sl_writable_super(s->store, &after));
        if (after.sequence == before.sequence) return status == SL_OK ? make_own(s, &after) : status;
        sl_progress_start(s->progress, s->progress->report, s->progress->ctx, s->store->size);
    }
    return sl_fail(SL_EBUSY, "%s: was opened to be written %d times while it was copied; try again", s->store->path,
                   MOST_TRIES);
}

static sl_status copy_file(snapshot *s) {
    SL_TRY(check_target(s));
    SL_TRY(s->section ? copy_changing(s) : copy_bytes(s));
    return sl_replace_commit(&s->file, s->progress);
}

static sl_status take_from(snapshot *s, const char *copy, const sl_file_ops *ops) {
    sl_status status;
    SL_TRY_GOTO(open_source(s), done);
    SL_TRY_GOTO(sl_replace_begin(&s->file, copy, ops, NULL, s->fd), done);
    status = copy_file(s);
    if (status != SL_OK) status = sl_replace_discard(&s->file, status);
done:
    if (s->fd >= 0) sl_writable_unpin(s->fd);
    return status;
}

/* A replacement and a log have paths that are too much for one stack. *replaced: 1 if the name got another file. */
static sl_status take_once(const char *path, const sl_file_type *type, const char *copy, const sl_file_ops *ops,
                           sl_progress *progress, int *replaced) {
    sl_allocator allocator = sl_allocator_of(NULL);
    sl_store *store;
    void *block;
    SL_TRY(sl_store_open(path, type, SL_PLACE_MAP, &allocator, &store));
    sl_progress_start(progress, progress->report, progress->ctx, store->size);
    sl_status status = sl_mem_alloc(&allocator, sizeof(snapshot), &block);
    if (status == SL_OK) {
        snapshot *s = block;
        *s = (snapshot){.store = store, .fd = -1, .progress = progress};
        s->by_system = !ops || (!ops->write && !ops->pwrite);
        status = take_from(s, copy, ops);
        *replaced = s->replaced;
    }
    sl_mem_free(&allocator, block, sizeof(snapshot));
    sl_store_close(store, &allocator);
    return status;
}

sl_status sl_store_snapshot(const char *path, const sl_file_type *type, const char *copy, const sl_file_ops *ops,
                            sl_progress *progress) {
    sl_status status;
    int tries = 0, replaced;
    do {
        replaced = 0;
        status = take_once(path, type, copy, ops, progress, &replaced);
    } while (replaced && ++tries < MOST_TRIES);
    return status;
}
