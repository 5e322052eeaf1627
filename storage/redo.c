#define _GNU_SOURCE
#include "storage/redo.h"

#include "base/crc32c.h"
#include "storage/format.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BUFFER = 1 << 20, WINDOW = 32 << 10, VERSION = 1 };
#define GROUP_MAGIC   0x50475253u /* "SRGP" */
#define TRAILER_MAGIC 0x45475253u /* "SRGE" */
static const char magic[8] = "SLREDO\0";

static_assert(sizeof(sl_redo_head) == 64, "sl_redo_head");
static_assert(sizeof(sl_redo_group) == 32, "sl_redo_group");
static_assert(sizeof(sl_redo_record) == 16, "sl_redo_record");
static_assert(sizeof(sl_redo_trailer) == 8, "sl_redo_trailer");

static uint32_t head_crc(const sl_redo_head *head) {
    return sl_crc32c(0, head, offsetof(sl_redo_head, crc32c));
}

static uint32_t group_crc(const sl_redo_group *group) {
    size_t from = offsetof(sl_redo_group, epoch);
    return sl_crc32c(0, (const char *)group + from, sizeof *group - from);
}

/* ---------------------------------------------------------------------------------------------------------------
 * Writing
 * ------------------------------------------------------------------------------------------------------------- */

sl_status sl_redo_name(const char *of, char path[PATH_MAX]) {
    if (snprintf(path, PATH_MAX, "%s" SL_REDO_ENDING, of) < PATH_MAX) return SL_OK;
    return sl_fail(SL_EINVAL, "%.60s...: the path is too long", of);
}

static sl_status fail_missing(const char *path) {
    return sl_fail(
        SL_ECORRUPT,
        "%s: the log is missing, and may alone hold what was last synced to its index; put it there from where the "
        "index was before, or make an empty file of that name to go on without it",
        path);
}

static size_t redo_bytes(const char *path) {
    return sizeof(sl_redo) + strlen(path) + 1;
}

/* Nobody may read there what may not be read in the file. */
static void keep_access(int log, int file) {
    struct stat info;
    if (fstat(file, &info) != 0) return;
    const sl_access access = sl_access_of(file, &info);
    sl_access_give(log, &access);
}

/* A file that has other names may be somebody else's. */
void sl_redo_give_access(const sl_redo *redo, int file) {
    struct stat info;
    if (fstat(redo->fd, &info) == 0 && info.st_nlink == 1) keep_access(redo->fd, file);
}

static int is_whole(const sl_redo_head *head) {
    return memcmp(head->magic, magic, sizeof head->magic) == 0 && head->version == VERSION &&
           head->endian == SL_FILE_ENDIAN && head->crc32c == head_crc(head);
}

static int is_own(const sl_redo_head *head, const uint8_t *identity) {
    return memcmp(head->identity, identity, sizeof head->identity) == 0;
}

/* The first name that nothing has, of those for what begins with this head. */
static sl_status name_aside(const sl_redo *redo, const sl_redo_head *head, char to[PATH_MAX]) {
    const uint32_t sum = sl_crc32c(0, head, sizeof *head);
    struct stat info;
    for (unsigned i = 0; i < UINT16_MAX; i++) {
        char number[8] = "";
        if (i) (void)snprintf(number, sizeof number, "-%u", i);
        if (snprintf(to, PATH_MAX, "%s.old-%08x%s", redo->path, sum, number) >= PATH_MAX)
            return sl_fail(SL_EINVAL, "%.60s...: the path is too long", redo->path);
        if (lstat(to, &info) != 0 && errno == ENOENT) return SL_OK;
    }
    return sl_fail(SL_EIO, "%s: all names for other logs are taken; move some away", redo->path);
}

static sl_status move_aside(const sl_redo *redo, const sl_redo_head *head) {
    char to[PATH_MAX];
    SL_TRY(name_aside(redo, head, to));
    return redo->ops.rename(redo->ops.ctx, redo->path, to) == 0 ? SL_OK : sl_fail_errno("cannot rename", redo->path);
}

static sl_status fail_not_a_file(const char *path) {
    return sl_fail(SL_EIO, "%s: what has the log's name is a link, a folder or a device; move it away", path);
}

/* Opens what has the log's name, and nothing that a link there leads to. -1 in *fd where there is none. */
static sl_status open_file(const sl_redo *redo, int flags, int *fd, struct stat *info) {
    *fd = sl_open_retrying(&redo->ops, redo->path, flags | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW, 0);
    if (*fd < 0 && errno == ENOENT) return SL_OK;
    if (*fd < 0 && (errno == ELOOP || errno == EISDIR || errno == ENXIO)) return fail_not_a_file(redo->path);
    if (*fd < 0) return sl_fail_errno("cannot open the log", redo->path);
    sl_status status = SL_OK;
    if (fstat(*fd, info) != 0)
        status = sl_fail_errno("cannot look at", redo->path);
    else if (!S_ISREG(info->st_mode))
        status = fail_not_a_file(redo->path);
    if (status == SL_OK) return SL_OK;
    (void)redo->ops.close(redo->ops.ctx, *fd);
    *fd = -1;
    return status;
}

/* The log of an index that was there before may be all that is left of its last changes: only a whole one of this file
 * stays, and one without a byte goes. */
static sl_status make_way(const sl_redo *redo) {
    sl_redo_head head = {.version = 0};
    struct stat info;
    int fd;
    SL_TRY(open_file(redo, O_RDONLY, &fd, &info));
    if (fd < 0) return SL_OK;
    sl_status status = pread(fd, &head, sizeof head, 0) < 0 ? sl_fail_errno("cannot read", redo->path) : SL_OK;
    (void)redo->ops.close(redo->ops.ctx, fd);
    if (status != SL_OK) return status;
    if (is_whole(&head) && is_own(&head, redo->identity) && info.st_nlink == 1) return SL_OK;
    if (info.st_size) return move_aside(redo, &head);
    return redo->ops.unlink(redo->ops.ctx, redo->path) == 0 ? SL_OK : sl_fail_errno("cannot remove", redo->path);
}

static sl_status create_log(sl_redo *redo, int file) {
    const int flags = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
    redo->fd = sl_open_retrying(&redo->ops, redo->path, flags, 0600);
    if (redo->fd < 0) return sl_fail_errno("cannot create the log", redo->path);
    keep_access(redo->fd, file);
    sl_status status = sl_sync_folder(&redo->ops, redo->path);
    if (status != SL_OK) (void)redo->ops.unlink(redo->ops.ctx, redo->path);
    return status;
}

static sl_status open_log(sl_redo *redo, int file, int in_force) {
    struct stat info;
    if (!in_force) SL_TRY(make_way(redo));
    SL_TRY(open_file(redo, O_RDWR, &redo->fd, &info));
    if (redo->fd >= 0) return sl_sync_folder(&redo->ops, redo->path);
    return in_force ? fail_missing(redo->path) : create_log(redo, file);
}

sl_status sl_redo_open(const sl_redo_owner *owner, int file, const sl_allocator *allocator, const sl_file_ops *ops,
                       sl_redo **out) {
    *out = NULL;
    char path[PATH_MAX];
    SL_TRY(sl_redo_name(owner->path, path));
    void *block, *buffer;
    SL_TRY(sl_mem_alloc(allocator, redo_bytes(path), &block));
    sl_redo *redo = block;
    *redo = (sl_redo){.allocator = *allocator, .ops = *ops, .fd = -1};
    memcpy(redo->identity, owner->identity, sizeof redo->identity);
    memcpy(redo->path, path, strlen(path) + 1);
    sl_status status;
    SL_TRY_GOTO(sl_mem_alloc(allocator, BUFFER, &buffer), fail);
    redo->buffer = buffer;
    SL_TRY_GOTO(open_log(redo, file, owner->in_force), fail);
    *out = redo;
    return SL_OK;
fail:
    sl_redo_close(redo, 0);
    return status;
}

static int has_its_name(const sl_redo *redo, struct stat *info) {
    struct stat named;
    return redo->fd >= 0 && fstat(redo->fd, info) == 0 && lstat(redo->path, &named) == 0 &&
           named.st_dev == info->st_dev && named.st_ino == info->st_ino;
}

int sl_redo_is_there(const sl_redo *redo) {
    struct stat info;
    return has_its_name(redo, &info) && (uint64_t)info.st_size >= redo->end;
}

void sl_redo_close(sl_redo *redo, int remove) {
    struct stat info;
    if (!redo) return;
    remove = remove && has_its_name(redo, &info);
    if (redo->fd >= 0) (void)redo->ops.close(redo->ops.ctx, redo->fd);
    if (remove) (void)redo->ops.unlink(redo->ops.ctx, redo->path);
    sl_mem_free(&redo->allocator, redo->buffer, BUFFER);
    sl_mem_free(&redo->allocator, redo, redo_bytes(redo->path));
}

static sl_status flush(sl_redo *redo) {
    SL_TRY(sl_write_at(&redo->ops, redo->fd, redo->path, redo->buffer, redo->filled, redo->at));
    redo->at += redo->filled;
    redo->filled = 0;
    return SL_OK;
}

static sl_status put(sl_redo *redo, const void *data, uint64_t size) {
    const uint8_t *from = data;
    while (size) {
        if (redo->filled == BUFFER) SL_TRY(flush(redo));
        size_t room = BUFFER - redo->filled, some = size < room ? (size_t)size : room;
        memcpy(redo->buffer + redo->filled, from, some);
        redo->filled += some;
        from += some;
        size -= some;
    }
    return SL_OK;
}

sl_status sl_redo_begin(sl_redo *redo, uint64_t payload) {
    redo->at = redo->end ? redo->end : sizeof(sl_redo_head);
    redo->filled = 0;
    redo->crc = 0;
    sl_redo_group group = {GROUP_MAGIC, 0, redo->epoch, redo->groups, payload};
    group.crc32c = group_crc(&group);
    return put(redo, &group, sizeof group);
}

sl_status sl_redo_put(sl_redo *redo, uint64_t offset, const void *data, uint64_t size) {
    sl_redo_record record = {offset, size};
    redo->crc = sl_crc32c(redo->crc, &record, sizeof record);
    redo->crc = sl_crc32c(redo->crc, data, (size_t)size);
    SL_TRY(put(redo, &record, sizeof record));
    return put(redo, data, size);
}

sl_status sl_redo_commit(sl_redo *redo) {
    sl_redo_trailer trailer = {TRAILER_MAGIC, redo->crc};
    SL_TRY(put(redo, &trailer, sizeof trailer));
    SL_TRY(flush(redo));
    redo->unsure = 1;
    SL_TRY(sl_sync_data(&redo->ops, redo->fd, redo->path));
    redo->unsure = 0;
    redo->end = redo->at;
    redo->groups++;
    return SL_OK;
}

sl_status sl_redo_remake(sl_redo *redo, int file) {
    struct stat info;
    if (has_its_name(redo, &info)) return SL_OK;
    sl_redo_leave(redo);
    return open_log(redo, file, 0);
}

void sl_redo_leave(sl_redo *redo) {
    if (redo->fd >= 0) (void)redo->ops.close(redo->ops.ctx, redo->fd);
    redo->fd = -1;
    redo->end = redo->groups = 0;
}

sl_status sl_redo_reset(sl_redo *redo, uint64_t epoch) {
    redo->end = 0;
    redo->groups = 0;
    redo->epoch = epoch;
    sl_redo_head head = {.version = VERSION, .endian = SL_FILE_ENDIAN, .epoch = epoch};
    memcpy(head.magic, magic, sizeof head.magic);
    memcpy(head.identity, redo->identity, sizeof head.identity);
    head.crc32c = head_crc(&head);
    if (redo->ops.ftruncate(redo->ops.ctx, redo->fd, 0) != 0) return sl_fail_errno("cannot empty the log", redo->path);
    SL_TRY(sl_write_at(&redo->ops, redo->fd, redo->path, &head, sizeof head, 0));
    return sl_sync_data(&redo->ops, redo->fd, redo->path);
}

/* ---------------------------------------------------------------------------------------------------------------
 * Reading
 * ------------------------------------------------------------------------------------------------------------- */

/* The log is read and not mapped: its writer may empty it at any time, and a look at what a mapping has lost would end
 * the process. What is missing is as if it had never been there. */
typedef struct log_reader {
    const sl_redo_owner *owner;
    const char *path;
    int fd, error; /* errno of a read that failed */
    uint64_t size;
    uint64_t from; /* where the window begins in the log, and its bytes */
    size_t held;
    uint8_t window[WINDOW];
} log_reader;

static int fill_window(log_reader *log, uint64_t at) {
    ssize_t got;
    do
        got = pread(log->fd, log->window, WINDOW, (off_t)at);
    while (got < 0 && errno == EINTR);
    if (got < 0) log->error = errno;
    log->from = at;
    log->held = got > 0 ? (size_t)got : 0;
    return log->held > 0;
}

/* Bytes of the log from `at` on, *size of them or fewer, which becomes their number; NULL where there are none. */
static const uint8_t *peek(log_reader *log, uint64_t at, uint64_t *size) {
    if ((at < log->from || at >= log->from + log->held) && !fill_window(log, at)) return NULL;
    uint64_t behind = log->from + log->held - at;
    if (*size > behind) *size = behind;
    return log->window + (at - log->from);
}

static int get(log_reader *log, uint64_t at, void *to, uint64_t size) {
    for (uint64_t done = 0, some; done < size; done += some) {
        some = size - done;
        const uint8_t *bytes = peek(log, at + done, &some);
        if (!bytes) return 0;
        memcpy((uint8_t *)to + done, bytes, (size_t)some);
    }
    return 1;
}

#define RESTORE "restore it, or empty it to go on with what the index's own file holds"

/* Whether groups follow that go on from what the file holds. A log that ends within its head or with it has none. */
static sl_status read_head(log_reader *log, int *counts) {
    const sl_redo_owner *owner = log->owner;
    sl_redo_head head;
    *counts = 0;
    if (log->size < sizeof head || !get(log, 0, &head, sizeof head)) return SL_OK;
    int whole = is_whole(&head), own = whole && is_own(&head, owner->identity);
    if (!own && (!owner->in_force || (!whole && log->size == sizeof head))) return SL_OK;
    if (!whole) return sl_fail(SL_ECORRUPT, "%s: the log's head is damaged; " RESTORE, log->path);
    if (!own) return sl_fail(SL_ECORRUPT, "%s: another index's log is in the place of this one's; " RESTORE, log->path);
    if (head.epoch > owner->epoch && owner->doubtful)
        return sl_fail(SL_ECORRUPT,
                       "%s: the log does not fit the superblock that is left of its index, whose other one is damaged; "
                       "keep the log, and restore a copy of the index",
                       log->path);
    if (head.epoch > owner->epoch)
        return sl_fail(SL_ECORRUPT,
                       "%s: the log is of a later state than its index; restore both together, or remove the log to go "
                       "on with this older index",
                       log->path);
    *counts = head.epoch == owner->epoch;
    return SL_OK;
}

/* The record at `at` of records that end at `end`, and the place of the next; 0 where it cannot be one. */
static uint64_t record_at(log_reader *log, uint64_t at, uint64_t end, sl_redo_record *record) {
    if (end - at < sizeof *record || !get(log, at, record, sizeof *record)) return 0;
    at += sizeof *record;
    const uint64_t size = log->owner->size;
    if (record->size > end - at || record->size % 8 || record->size > size || record->offset > size - record->size)
        return 0;
    return at + record->size;
}

static int sum_of(log_reader *log, uint64_t at, uint64_t end, uint32_t *crc) {
    *crc = 0;
    for (uint64_t some; at < end; at += some) {
        some = end - at;
        const uint8_t *bytes = peek(log, at, &some);
        if (!bytes) return 0;
        *crc = sl_crc32c(*crc, bytes, (size_t)some);
    }
    return 1;
}

/* Behind the whole group at `at`, or 0 where there is none. */
static uint64_t group_end(log_reader *log, uint64_t at, uint64_t *number) {
    sl_redo_group group;
    sl_redo_trailer trailer;
    uint32_t crc;
    if (log->size - at < sizeof group + sizeof trailer || !get(log, at, &group, sizeof group)) return 0;
    if (group.magic != GROUP_MAGIC || group.crc32c != group_crc(&group) || group.epoch != log->owner->epoch ||
        group.payload > log->size - at - sizeof group - sizeof trailer)
        return 0;
    *number = group.number;
    uint64_t from = at + sizeof group, end = from + group.payload;
    if (!get(log, end, &trailer, sizeof trailer) || trailer.magic != TRAILER_MAGIC || !sum_of(log, from, end, &crc) ||
        trailer.crc32c != crc)
        return 0;
    sl_redo_record record;
    while (from < end)
        if (!(from = record_at(log, from, end, &record))) return 0;
    return end + sizeof trailer;
}

static sl_status apply_record(log_reader *log, uint64_t at, const sl_redo_record *record, sl_redo_apply apply,
                              void *ctx) {
    for (uint64_t done = 0, some; done < record->size; done += some) {
        some = record->size - done;
        const uint8_t *bytes = peek(log, at + done, &some);
        if (!bytes) return sl_fail(SL_EIO, "the log became shorter while it was read; try again");
        SL_TRY(apply(ctx, record->offset + done, bytes, some));
    }
    return SL_OK;
}

static sl_status apply_group(log_reader *log, uint64_t at, uint64_t next, sl_redo_apply apply, void *ctx) {
    uint64_t end = next - sizeof(sl_redo_trailer), behind;
    for (at += sizeof(sl_redo_group); at < end; at = behind) {
        sl_redo_record record;
        behind = record_at(log, at, end, &record);
        if (!behind) return sl_fail(SL_EIO, "the log changed while it was read; try again");
        SL_TRY(apply_record(log, at + sizeof record, &record, apply, ctx));
    }
    return SL_OK;
}

/* A group is written once the one before it was synced: where group `number`, which should be at `at`, is not whole and
 * a later one is, it was whole once. Sizes in the log are multiples of 8. */
static sl_status check_behind(log_reader *log, uint64_t at, uint64_t number) {
    for (uint64_t other; at < log->size && !log->error; at += 8)
        if (group_end(log, at, &other) && other > number)
            return sl_fail(SL_ECORRUPT, "%s: the log is damaged behind the first %llu of its changes; " RESTORE,
                           log->path, (unsigned long long)number);
    return SL_OK;
}

static sl_status replay(log_reader *log, sl_redo_apply apply, void *ctx, sl_redo_found *found) {
    int counts;
    SL_TRY(read_head(log, &counts));
    if (!counts) return SL_OK;
    uint64_t at = sizeof(sl_redo_head), next, number;
    while ((next = group_end(log, at, &number)) != 0 && number == found->groups) {
        if (apply) SL_TRY(apply_group(log, at, next, apply, ctx));
        found->groups++;
        found->bytes += next - at;
        at = next;
    }
    return check_behind(log, at, found->groups);
}

/* Its first groups would take back what the file has of the others. */
static sl_status check_held(const log_reader *log, const sl_redo_found *found) {
    const sl_redo_owner *owner = log->owner;
    if (!owner->in_force || log->size == 0 || found->groups >= owner->held) return SL_OK;
    return sl_fail(SL_ECORRUPT,
                   "%s: the log is damaged: %llu of its changes are whole, where its index itself holds %llu; " RESTORE,
                   log->path, (unsigned long long)found->groups, (unsigned long long)owner->held);
}

sl_status sl_redo_replay(const sl_redo_owner *owner, sl_redo_apply apply, void *ctx, sl_redo_found *found) {
    char path[PATH_MAX];
    struct stat info;
    *found = (sl_redo_found){0};
    SL_TRY(sl_redo_name(owner->path, path));
    int fd;
    do
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    while (fd < 0 && errno == EINTR);
    if (fd < 0 && errno == ELOOP) return owner->in_force ? fail_not_a_file(path) : SL_OK;
    if (fd < 0 && errno == ENOENT) return owner->in_force ? fail_missing(path) : SL_OK;
    if (fd < 0) return sl_fail_errno("cannot open the log", path);
    sl_status status = SL_OK;
    if (fstat(fd, &info) != 0)
        status = sl_fail_errno("cannot look at the log", path);
    else if (S_ISREG(info.st_mode)) {
        log_reader log = {.owner = owner, .path = path, .fd = fd, .size = (uint64_t)info.st_size};
        status = replay(&log, apply, ctx, found);
        errno = log.error;
        if (log.error) status = sl_fail_errno("cannot read the log", path);
        if (status == SL_OK) status = check_held(&log, found);
    } else if (owner->in_force)
        status = fail_not_a_file(path);
    close(fd);
    return status;
}
