#define _GNU_SOURCE
#include "storage/recover.h"

#include "storage/dirty.h"

#include <string.h>
#include <sys/mman.h>

/* The most looks at the log while writers come and go. */
#define MOST_LOOKS 16
/* The longest write. */
#define RUN ((uint64_t)1 << 20)

typedef struct into_file {
    const sl_file_ops *ops;
    int fd;
    const char *path;
} into_file;

static sl_status write_record(void *ctx, uint64_t offset, const void *data, uint64_t size) {
    const into_file *to = ctx;
    return sl_write_at(to->ops, to->fd, to->path, data, (size_t)size, offset);
}

static sl_status copy_record(void *ctx, uint64_t offset, const void *data, uint64_t size) {
    memcpy((uint8_t *)ctx + offset, data, (size_t)size);
    return SL_OK;
}

/* A file, its content after the replay, and the lines that the replay changes. */
typedef struct into_end {
    into_file to;
    uint8_t *says;
    sl_dirty changed;
} into_end;

static sl_status note_record(void *ctx, uint64_t offset, const void *data, uint64_t size) {
    into_end *end = ctx;
    sl_dirty_mark(&end->changed, offset, size);
    return copy_record(end->says, offset, data, size);
}

/* Writes the changed lines of [from, to). */
static sl_status write_lines(into_end *end, uint64_t from, uint64_t to) {
    uint64_t offset = from, size;
    while ((size = sl_dirty_next(&end->changed, &offset, RUN)) != 0 && offset < to) {
        if (size > to - offset) size = to - offset;
        SL_TRY(write_record(&end->to, offset, end->says + offset, size));
        offset += size;
    }
    return SL_OK;
}

/* Writes as a commit does: from the file's beginning to its end, the head page last. */
static sl_status write_end(into_end *end, uint64_t head, uint64_t size) {
    SL_TRY(write_lines(end, 0, head));
    SL_TRY(write_lines(end, head + SL_LIVE_PAGE, size));
    return write_record(&end->to, head, end->says + head, SL_LIVE_PAGE);
}

sl_redo_owner sl_recover_owner(const sl_store *store, const sl_superblock *super) {
    return (sl_redo_owner){.path = store->resolved,
                           .identity = super->identity,
                           .epoch = super->epoch,
                           .size = store->size,
                           .in_force = super->logged != 0,
                           .doubtful = sl_writable_is_doubtful(store),
                           .held = sl_stamp_groups(store, super)};
}

static sl_status apply_log(const sl_store *store, const sl_superblock *super, sl_redo_apply apply, void *ctx,
                           sl_redo_found *found) {
    const sl_redo_owner owner = sl_recover_owner(store, super);
    return sl_redo_replay(&owner, apply, ctx, found);
}

sl_status sl_writable_look(const sl_store *store, const sl_superblock *super, sl_redo_found *found) {
    return apply_log(store, super, NULL, NULL, found);
}

sl_status sl_writable_replay(const sl_store *store, const sl_superblock *super, const sl_file_ops *ops, int fd,
                             const char *path, sl_redo_found *found) {
    into_file to = {ops, fd, path};
    return apply_log(store, super, write_record, &to, found);
}

sl_status sl_recover_into_memory(const sl_store *store, const sl_superblock *super, void *base, sl_redo_found *found) {
    return apply_log(store, super, copy_record, base, found);
}

/* Looks by the superblock in force. If a writer comes or goes meanwhile, superblock and log change, and it looks again.
 * A file that took this one's name has its own log there. */
sl_status sl_recover_look(const sl_store *store, sl_superblock *super, sl_redo_found *found) {
    for (int i = 0; i < MOST_LOOKS; i++) {
        sl_superblock now;
        SL_TRY(sl_writable_super(store, super));
        sl_status status = sl_writable_look(store, super, found);
        if (status == SL_OK) return SL_OK;
        SL_TRY(sl_store_check_name(store));
        SL_TRY(sl_writable_super(store, &now));
        if (now.sequence == super->sequence) return status;
    }
    return sl_fail(SL_EBUSY, "%s: writers come and go while it is opened; try again", store->path);
}

/* Replays the log into the file beside readers that have it mapped, without showing them an earlier sync's state. The
 * log first goes into a private mapping; its places are then written from there. */
static sl_status redo_forward(const sl_store *store, const sl_file_ops *ops, int fd, const sl_superblock *super,
                              sl_redo_found *found) {
    SL_TRY(sl_writable_look(store, super, found));
    if (!found->groups) return SL_OK;
    void *says = mmap(NULL, (size_t)store->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, fd, 0);
    if (says == MAP_FAILED) return sl_fail_errno("cannot map", store->path);
    into_end end = {.to = {ops, fd, store->path}, .says = says};
    sl_status status = sl_dirty_init(&end.changed, store->size);
    if (status == SL_OK) status = apply_log(store, super, note_record, &end, found);
    if (status == SL_OK)
        status = write_end(&end, sl_store_section(store, SL_SECTION_LIVE)->offset + SL_LIVE_HEAD, store->size);
    sl_dirty_free(&end.changed);
    munmap(says, (size_t)store->size);
    return status;
}

sl_status sl_recover_file(const sl_store *store, const sl_file_ops *ops, int fd, int logged, sl_superblock *super) {
    sl_redo_found found;
    SL_TRY(redo_forward(store, ops, fd, super, &found));
    super->epoch++;
    super->logged = (uint64_t)logged;
    if (found.groups) {
        SL_TRY(sl_sync_data(ops, fd, store->path));
        super->recoveries++;
        super->recovered_groups = found.groups;
        super->recovered_bytes = found.bytes;
    }
    const sl_file_section *section = sl_store_section(store, SL_SECTION_LIVE);
    return sl_superblock_write(ops, fd, store->path, section->offset, super);
}
