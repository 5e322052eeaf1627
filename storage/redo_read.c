#define _GNU_SOURCE
#include "storage/redo.h"

#include "base/crc32c.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Searches have it on their stack too, because they allocate nothing. */
enum { WINDOW = 8 << 10 };

/* The log is read, not mapped: its writer may empty it at any time, and touching a lost page of a mapping would end the
 * process. Missing bytes count as never written. */
typedef struct log_reader {
    const sl_redo_owner *owner;
    const char *path;
    int fd, error; /* errno of a read that failed */
    uint64_t size;
    uint64_t from; /* where the window begins in the log; its bytes */
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

/* The log's bytes from `at` on. *size becomes their number, at most what was asked for. NULL: there are none. */
static const uint8_t *peek_bytes(log_reader *log, uint64_t at, uint64_t *size) {
    if ((at < log->from || at >= log->from + log->held) && !fill_window(log, at)) return NULL;
    uint64_t behind = log->from + log->held - at;
    if (*size > behind) *size = behind;
    return log->window + (at - log->from);
}

static int read_bytes(log_reader *log, uint64_t at, void *to, uint64_t size) {
    for (uint64_t done = 0, some; done < size; done += some) {
        some = size - done;
        const uint8_t *bytes = peek_bytes(log, at + done, &some);
        if (!bytes) return 0;
        memcpy((uint8_t *)to + done, bytes, (size_t)some);
    }
    return 1;
}

#define RESTORE "restore it, or empty it to go on with what the index's own file holds"

/* Finds whether groups follow that continue from the file's state. A log that ends within or right behind its head has
 * none. */
static sl_status read_head(log_reader *log, int *counts) {
    const sl_redo_owner *owner = log->owner;
    sl_redo_head head;
    *counts = 0;
    if (log->size < sizeof head || !read_bytes(log, 0, &head, sizeof head)) return SL_OK;
    int whole = sl_redo_head_is_whole(&head), own = whole && sl_redo_head_is_own(&head, owner->identity);
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

/* Reads the record at `at`; records end at `end`. Returns the next one's place; 0: there can't be one. */
static uint64_t record_at(log_reader *log, uint64_t at, uint64_t end, sl_redo_record *record) {
    if (end - at < sizeof *record || !read_bytes(log, at, record, sizeof *record)) return 0;
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
        const uint8_t *bytes = peek_bytes(log, at, &some);
        if (!bytes) return 0;
        *crc = sl_crc32c(*crc, bytes, (size_t)some);
    }
    return 1;
}

/* The end of the whole group at `at`; 0: there is none. */
static uint64_t group_end(log_reader *log, uint64_t at, uint64_t *number) {
    sl_redo_group group;
    sl_redo_trailer trailer;
    uint32_t crc;
    if (log->size - at < sizeof group + sizeof trailer || !read_bytes(log, at, &group, sizeof group)) return 0;
    if (group.magic != SL_REDO_GROUP_MAGIC || group.crc32c != sl_redo_group_crc(&group) ||
        group.epoch != log->owner->epoch || group.payload > log->size - at - sizeof group - sizeof trailer)
        return 0;
    *number = group.number;
    uint64_t from = at + sizeof group, end = from + group.payload;
    if (!read_bytes(log, end, &trailer, sizeof trailer) || trailer.magic != SL_REDO_TRAILER_MAGIC ||
        !sum_of(log, from, end, &crc) || trailer.crc32c != crc)
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
        const uint8_t *bytes = peek_bytes(log, at + done, &some);
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

/* Tells damage from a cut-off end. A group is written only after the one before it was synced. So if a later group is
 * whole, group `number` at `at` was whole once. Sizes in the log are multiples of 8. */
static sl_status check_behind(log_reader *log, uint64_t at, uint64_t number) {
    for (uint64_t other; at < log->size && !log->error; at += 8)
        if (group_end(log, at, &other) && other > number)
            return sl_fail(SL_ECORRUPT, "%s: the log is damaged behind the first %llu of its changes; " RESTORE,
                           log->path, (unsigned long long)number);
    return SL_OK;
}

static sl_status replay_groups(log_reader *log, sl_redo_apply apply, void *ctx, sl_redo_found *found) {
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

/* A log with fewer groups than the file holds would take back the file's later changes. */
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
    if (fd < 0 && errno == ELOOP) return owner->in_force ? sl_redo_fail_not_a_file(path) : SL_OK;
    if (fd < 0 && errno == ENOENT) return owner->in_force ? sl_redo_fail_missing(path) : SL_OK;
    if (fd < 0) return sl_fail_errno("cannot open the log", path);
    sl_status status = SL_OK;
    if (fstat(fd, &info) != 0)
        status = sl_fail_errno("cannot look at the log", path);
    else if (S_ISREG(info.st_mode)) {
        log_reader log = {.owner = owner, .path = path, .fd = fd, .size = (uint64_t)info.st_size};
        status = replay_groups(&log, apply, ctx, found);
        errno = log.error;
        if (log.error) status = sl_fail_errno("cannot read the log", path);
        if (status == SL_OK) status = check_held(&log, found);
    } else if (owner->in_force)
        status = sl_redo_fail_not_a_file(path);
    close(fd);
    return status;
}
