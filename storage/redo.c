#define _GNU_SOURCE
#include "storage/redo.h"

#include "base/crc32c.h"
#include "storage/format.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BUFFER = 1 << 20, VERSION = 1 };
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

static size_t redo_bytes(const char *path) {
    return sizeof(sl_redo) + strlen(path) + 1;
}

sl_status sl_redo_open(const char *of, const sl_allocator *allocator, const sl_file_ops *ops,
                       const uint8_t identity[SL_REDO_IDENTITY_SIZE], sl_redo **out) {
    *out = NULL;
    size_t length = strlen(of) + strlen(SL_REDO_ENDING) + 1;
    void *block, *buffer;
    SL_TRY(sl_mem_alloc(allocator, sizeof(sl_redo) + length, &block));
    sl_redo *redo = block;
    *redo = (sl_redo){.allocator = *allocator, .ops = *ops, .fd = -1};
    memcpy(redo->identity, identity, sizeof redo->identity);
    snprintf(redo->path, length, "%s%s", of, SL_REDO_ENDING);
    sl_status status;
    SL_TRY_GOTO(sl_mem_alloc(allocator, BUFFER, &buffer), fail);
    redo->buffer = buffer;
    redo->fd = sl_open_retrying(ops, redo->path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (redo->fd < 0) {
        status = sl_fail_errno("cannot open the log", redo->path);
        goto fail;
    }
    SL_TRY_GOTO(sl_sync_folder(ops, redo->path), fail);
    *out = redo;
    return SL_OK;
fail:
    sl_redo_close(redo, 0);
    return status;
}

void sl_redo_close(sl_redo *redo, int remove) {
    if (!redo) return;
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
    redo->at = redo->end;
    redo->filled = 0;
    redo->crc = 0;
    if (redo->end == 0) {
        sl_redo_head head = {.version = VERSION, .endian = SL_FILE_ENDIAN, .epoch = redo->epoch};
        memcpy(head.magic, magic, sizeof head.magic);
        memcpy(head.identity, redo->identity, sizeof head.identity);
        head.crc32c = head_crc(&head);
        SL_TRY(put(redo, &head, sizeof head));
    }
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

sl_status sl_redo_reset(sl_redo *redo, uint64_t epoch) {
    redo->end = 0;
    redo->groups = 0;
    redo->epoch = epoch;
    if (redo->ops.ftruncate(redo->ops.ctx, redo->fd, 0) != 0) return sl_fail_errno("cannot empty the log", redo->path);
    return SL_OK;
}

/* ---------------------------------------------------------------------------------------------------------------
 * Reading
 * ------------------------------------------------------------------------------------------------------------- */

typedef struct log_view {
    const uint8_t *bytes;
    uint64_t size, file_size;
} log_view;

static int is_head(const log_view *log, const uint8_t *identity, uint64_t epoch) {
    sl_redo_head head;
    if (log->size < sizeof head) return 0;
    memcpy(&head, log->bytes, sizeof head);
    return memcmp(head.magic, magic, sizeof head.magic) == 0 && head.version == VERSION &&
           head.endian == SL_FILE_ENDIAN && head.crc32c == head_crc(&head) && head.epoch == epoch &&
           memcmp(head.identity, identity, sizeof head.identity) == 0;
}

/* The record at `at` of records that end at `end`, and the place of the next; 0 where it cannot be one. */
static uint64_t record_at(const log_view *log, uint64_t at, uint64_t end, sl_redo_record *record) {
    if (end - at < sizeof *record) return 0;
    memcpy(record, log->bytes + at, sizeof *record);
    at += sizeof *record;
    if (record->size > end - at || record->size % 8 || record->size > log->file_size ||
        record->offset > log->file_size - record->size)
        return 0;
    return at + record->size;
}

/* Behind the whole group `number` at `at`, or 0 where there is none. */
static uint64_t group_end(const log_view *log, uint64_t at, uint64_t epoch, uint64_t number) {
    sl_redo_group group;
    sl_redo_trailer trailer;
    if (log->size - at < sizeof group + sizeof trailer) return 0;
    memcpy(&group, log->bytes + at, sizeof group);
    if (group.magic != GROUP_MAGIC || group.crc32c != group_crc(&group) || group.epoch != epoch ||
        group.number != number || group.payload > log->size - at - sizeof group - sizeof trailer)
        return 0;
    uint64_t from = at + sizeof group, end = from + group.payload;
    memcpy(&trailer, log->bytes + end, sizeof trailer);
    if (trailer.magic != TRAILER_MAGIC || trailer.crc32c != sl_crc32c(0, log->bytes + from, (size_t)group.payload))
        return 0;
    sl_redo_record record;
    while (from < end)
        if (!(from = record_at(log, from, end, &record))) return 0;
    return end + sizeof trailer;
}

static sl_status apply_group(const log_view *log, uint64_t at, uint64_t next, sl_redo_apply apply, void *ctx) {
    uint64_t end = next - sizeof(sl_redo_trailer);
    at += sizeof(sl_redo_group);
    while (at < end) {
        sl_redo_record record = {0};
        uint64_t behind = record_at(log, at, end, &record);
        SL_TRY(apply(ctx, record.offset, log->bytes + at + sizeof record, record.size));
        at = behind;
    }
    return SL_OK;
}

static sl_status replay(const log_view *log, const uint8_t *identity, uint64_t epoch, sl_redo_apply apply, void *ctx,
                        sl_redo_found *found) {
    if (!is_head(log, identity, epoch)) return SL_OK;
    uint64_t at = sizeof(sl_redo_head), next;
    while ((next = group_end(log, at, epoch, found->groups)) != 0) {
        if (apply) SL_TRY(apply_group(log, at, next, apply, ctx));
        found->groups++;
        found->bytes += next - at;
        at = next;
    }
    return SL_OK;
}

sl_status sl_redo_replay(const char *of, const uint8_t identity[SL_REDO_IDENTITY_SIZE], uint64_t epoch,
                         uint64_t file_size, sl_redo_apply apply, void *ctx, sl_redo_found *found) {
    char path[PATH_MAX];
    struct stat info;
    *found = (sl_redo_found){0};
    if (snprintf(path, sizeof path, "%s%s", of, SL_REDO_ENDING) >= (int)sizeof path)
        return sl_fail(SL_EINVAL, "%.60s...: the path is too long", of);
    int fd;
    do
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    while (fd < 0 && errno == EINTR);
    if (fd < 0) return errno == ENOENT ? SL_OK : sl_fail_errno("cannot open the log", path);
    sl_status status = SL_OK;
    if (fstat(fd, &info) != 0)
        status = sl_fail_errno("cannot look at the log", path);
    else if (S_ISREG(info.st_mode) && info.st_size > 0) {
        void *bytes = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_SHARED, fd, 0);
        log_view log = {bytes, (uint64_t)info.st_size, file_size};
        status = bytes == MAP_FAILED ? sl_fail_errno("cannot map the log", path)
                                     : replay(&log, identity, epoch, apply, ctx, found);
        if (bytes != MAP_FAILED) munmap(bytes, (size_t)info.st_size);
    }
    close(fd);
    return status;
}
