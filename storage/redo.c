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

enum { BUFFER = 1 << 20, VERSION = 1 };
static const char magic[8] = "SLREDO\0";

static_assert(sizeof(sl_redo_head) == 64, "sl_redo_head");
static_assert(sizeof(sl_redo_group) == 32, "sl_redo_group");
static_assert(sizeof(sl_redo_record) == 16, "sl_redo_record");
static_assert(sizeof(sl_redo_trailer) == 8, "sl_redo_trailer");

static uint32_t head_crc(const sl_redo_head *head) {
    return sl_crc32c(0, head, offsetof(sl_redo_head, crc32c));
}

uint32_t sl_redo_group_crc(const sl_redo_group *group) {
    size_t from = offsetof(sl_redo_group, epoch);
    return sl_crc32c(0, (const char *)group + from, sizeof *group - from);
}

sl_status sl_redo_name(const char *of, char path[PATH_MAX]) {
    if (snprintf(path, PATH_MAX, "%s" SL_REDO_ENDING, of) < PATH_MAX) return SL_OK;
    return sl_fail(SL_EINVAL, "%.60s...: the path is too long", of);
}

sl_status sl_redo_fail_missing(const char *path) {
    return sl_fail(
        SL_ECORRUPT,
        "%s: the log is missing, and may alone hold what was last synced to its index; put it there from where the "
        "index was before, or make an empty file of that name to go on without it",
        path);
}

static size_t redo_bytes(const char *path) {
    return sizeof(sl_redo) + strlen(path) + 1;
}

/* Whoever may not read the file may not read it in the log either. */
static void keep_access(int log, int file) {
    struct stat info;
    if (fstat(file, &info) != 0) return;
    const sl_access access = sl_access_of(file, &info);
    sl_access_give(log, &access);
}

/* A log with more than one name may be another program's file, so its access stays. */
void sl_redo_give_access(const sl_redo *redo, int file) {
    struct stat info;
    if (fstat(redo->fd, &info) == 0 && info.st_nlink == 1) keep_access(redo->fd, file);
}

int sl_redo_head_is_whole(const sl_redo_head *head) {
    return memcmp(head->magic, magic, sizeof head->magic) == 0 && head->version == VERSION &&
           head->endian == SL_FILE_ENDIAN && head->crc32c == head_crc(head);
}

int sl_redo_head_is_own(const sl_redo_head *head, const uint8_t *identity) {
    return memcmp(head->identity, identity, sizeof head->identity) == 0;
}

/* Chooses the first free name for a log with this head. */
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

sl_status sl_redo_fail_not_a_file(const char *path) {
    return sl_fail(SL_EIO, "%s: what has the log's name is a link, a folder or a device; move it away", path);
}

/* Opens the log by its name, but follows no link there. *fd is -1 if there is nothing. */
static sl_status open_file(const sl_redo *redo, int flags, int *fd, struct stat *info) {
    *fd = sl_open_retrying(&redo->ops, redo->path, flags | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW, 0);
    if (*fd < 0 && errno == ENOENT) return SL_OK;
    if (*fd < 0 && (errno == ELOOP || errno == EISDIR || errno == ENXIO)) return sl_redo_fail_not_a_file(redo->path);
    if (*fd < 0) return sl_fail_errno("cannot open the log", redo->path);
    sl_status status = SL_OK;
    if (fstat(*fd, info) != 0)
        status = sl_fail_errno("cannot look at", redo->path);
    else if (!S_ISREG(info->st_mode))
        status = sl_redo_fail_not_a_file(redo->path);
    if (status == SL_OK) return SL_OK;
    (void)redo->ops.close(redo->ops.ctx, *fd);
    *fd = -1;
    return status;
}

/* Makes room for a new log. The log found there may hold the last changes of another index, so only a whole log of this
 * file stays. An empty file is removed, and any other is renamed. */
static sl_status make_way(const sl_redo *redo) {
    sl_redo_head head = {.version = 0};
    struct stat info;
    int fd;
    SL_TRY(open_file(redo, O_RDONLY, &fd, &info));
    if (fd < 0) return SL_OK;
    sl_status status = pread(fd, &head, sizeof head, 0) < 0 ? sl_fail_errno("cannot read", redo->path) : SL_OK;
    (void)redo->ops.close(redo->ops.ctx, fd);
    if (status != SL_OK) return status;
    if (sl_redo_head_is_whole(&head) && sl_redo_head_is_own(&head, redo->identity) && info.st_nlink == 1) return SL_OK;
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
    return in_force ? sl_redo_fail_missing(redo->path) : create_log(redo, file);
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

static sl_status flush_buffer(sl_redo *redo) {
    SL_TRY(sl_write_at(&redo->ops, redo->fd, redo->path, redo->buffer, redo->filled, redo->at));
    redo->at += redo->filled;
    redo->filled = 0;
    return SL_OK;
}

static sl_status buffer_bytes(sl_redo *redo, const void *data, uint64_t size) {
    const uint8_t *from = data;
    while (size) {
        if (redo->filled == BUFFER) SL_TRY(flush_buffer(redo));
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
    sl_redo_group group = {
        .magic = SL_REDO_GROUP_MAGIC, .epoch = redo->epoch, .number = redo->groups, .payload = payload};
    group.crc32c = sl_redo_group_crc(&group);
    return buffer_bytes(redo, &group, sizeof group);
}

sl_status sl_redo_put(sl_redo *redo, uint64_t offset, const void *data, uint64_t size) {
    sl_redo_record record = {offset, size};
    redo->crc = sl_crc32c(redo->crc, &record, sizeof record);
    redo->crc = sl_crc32c(redo->crc, data, (size_t)size);
    SL_TRY(buffer_bytes(redo, &record, sizeof record));
    return buffer_bytes(redo, data, size);
}

sl_status sl_redo_commit(sl_redo *redo) {
    sl_redo_trailer trailer = {SL_REDO_TRAILER_MAGIC, redo->crc};
    SL_TRY(buffer_bytes(redo, &trailer, sizeof trailer));
    SL_TRY(flush_buffer(redo));
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
