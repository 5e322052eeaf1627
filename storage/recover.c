#define _GNU_SOURCE
#include "storage/recover.h"

#include <string.h>
#include <sys/mman.h>

/* The most looks at the log while writers come and go. */
#define MOST_LOOKS 16

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

/* A file, and its content after the replay. */
typedef struct into_end {
    into_file to;
    const uint8_t *says;
    uint64_t head; /* where its head page begins */
} into_end;

static sl_status write_end(into_end *end, uint64_t from, uint64_t to) {
    return from < to ? write_record(&end->to, from, end->says + from, to - from) : SL_OK;
}

/* Writes a record's place with its final content, because a later group may have changed it too. Leaves out the head
 * page. */
static sl_status write_last(void *ctx, uint64_t offset, const void *data, uint64_t size) {
    into_end *end = ctx;
    uint64_t behind = offset + size, head = end->head, past = head + SL_LIVE_PAGE;
    (void)data;
    SL_TRY(write_end(end, offset, behind < head ? behind : head));
    return write_end(end, offset > past ? offset : past, behind);
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
 * log first goes into a private mapping; its places are then written from there, and the head page last. */
static sl_status redo_forward(const sl_store *store, const sl_file_ops *ops, int fd, const sl_superblock *super,
                              sl_redo_found *found) {
    SL_TRY(sl_writable_look(store, super, found));
    if (!found->groups) return SL_OK;
    void *says = mmap(NULL, (size_t)store->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, fd, 0);
    if (says == MAP_FAILED) return sl_fail_errno("cannot map", store->path);
    const uint64_t head = sl_store_section(store, SL_SECTION_LIVE)->offset + SL_LIVE_HEAD;
    into_end end = {{ops, fd, store->path}, says, head};
    sl_status status = sl_recover_into_memory(store, super, says, found);
    if (status == SL_OK) status = apply_log(store, super, write_last, &end, found);
    if (status == SL_OK) status = write_end(&end, head, head + SL_LIVE_PAGE);
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
