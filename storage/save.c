#define _GNU_SOURCE
#include "base/crc32c.h"
#include "storage/ops.h"
#include "storage/store.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Bytes between two looks at the progress callback, and of one write: where it is a whole aligned huge page, file
 * systems with large folios keep it as one in the page cache, for those who map the file next. */
#define CHUNK SL_HUGE_PAGE

/* Temporary names tried before giving up; each one taken is another save at work or what a killed one left. */
#define MAX_TEMPORARIES 10000

/* A file's name may have 255 bytes; this much of it leaves room for ".tmp.<pid>.<number>". */
#define MAX_STEM 200

typedef struct saver {
    sl_file_ops ops;
    sl_progress *progress;
    char target[PATH_MAX]; /* links resolved */
    char folder[PATH_MAX];
    char temporary[PATH_MAX];
    int fd;
    unsigned mode; /* of the file that is replaced, so that what few could read stays theirs */
    uint64_t at;   /* bytes written */
} saver;

/* ---------------------------------------------------------------------------------------------------------------
 * Names
 * ------------------------------------------------------------------------------------------------------------- */

/* What rename would replace must be a file: a save to /dev/null must not put a file in its place. */
static sl_status check_target(const char *path, const struct stat *info) {
    if (S_ISREG(info->st_mode)) return SL_OK;
    if (S_ISDIR(info->st_mode)) return sl_fail(SL_EIO, "cannot save to %s: it is a folder; name a file in it", path);
    if (S_ISLNK(info->st_mode))
        return sl_fail(SL_EIO, "cannot save to %s: it is a link to nothing; remove it or create its target", path);
    return sl_fail(SL_EIO, "cannot save to %s: it is not a regular file; choose another name", path);
}

/* Resolves links, so that a save through one replaces what it points at and the link survives. */
static sl_status resolve_target(saver *s, const char *path) {
    struct stat info;
    if (realpath(path, s->target)) {
        if (stat(s->target, &info) != 0) return sl_fail_errno("cannot look at", path);
        s->mode = info.st_mode & 0777;
        return check_target(path, &info);
    }
    if (errno != ENOENT) return sl_fail_errno("cannot save to", path);
    if (lstat(path, &info) == 0) return check_target(path, &info);
    size_t length = strlen(path);
    if (length == 0) return sl_fail(SL_EINVAL, "cannot save: the path is empty; name a file");
    if (path[length - 1] == '/')
        return sl_fail(SL_EIO, "cannot save to %s: it names a folder; name a file in it", path);
    if (length >= sizeof s->target) return sl_fail(SL_EINVAL, "the path has %zu bytes; choose a shorter one", length);
    memcpy(s->target, path, length + 1);
    return SL_OK;
}

static void name_folder(saver *s) {
    const char *slash = strrchr(s->target, '/');
    size_t length = slash && slash > s->target ? (size_t)(slash - s->target) : 1;
    memcpy(s->folder, slash ? s->target : ".", length);
    s->folder[length] = '\0';
}

static sl_status name_temporary(saver *s, int number) {
    const char *slash = strrchr(s->target, '/');
    int folder = slash ? (int)(slash - s->target) + 1 : 0;
    int length = snprintf(s->temporary, sizeof s->temporary, "%.*s%.*s.tmp.%ld.%d", folder, s->target, MAX_STEM,
                          s->target + folder, (long)getpid(), number);
    if (length < 0 || (size_t)length >= sizeof s->temporary)
        return sl_fail(SL_EINVAL, "cannot save to %.60s...: the path is too long; choose a shorter one", s->target);
    return SL_OK;
}

/* O_EXCL alone makes the name unique, among threads, processes and machines that share the folder. */
static sl_status create_temporary(saver *s) {
    for (int number = 0; number < MAX_TEMPORARIES; number++) {
        SL_TRY(name_temporary(s, number));
        do
            s->fd = s->ops.open(s->ops.ctx, s->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, s->mode);
        while (s->fd < 0 && errno == EINTR);
        if (s->fd >= 0) return SL_OK;
        if (errno != EEXIST) return sl_fail_errno("cannot create", s->temporary);
    }
    return sl_fail(SL_EIO, "cannot create %s: all such names are taken; remove what killed saves left", s->temporary);
}

/* ---------------------------------------------------------------------------------------------------------------
 * Bytes
 * ------------------------------------------------------------------------------------------------------------- */

static sl_status write_all(saver *s, const void *data, size_t size) {
    const unsigned char *from = data;
    while (size) {
        int64_t written = s->ops.write(s->ops.ctx, s->fd, from, size);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return sl_fail_errno("cannot write to", s->temporary);
        if (written == 0 || (uint64_t)written > size)
            return sl_fail(SL_EIO, "cannot write to %s: the system took %lld of %zu bytes; check the device",
                           s->temporary, (long long)written, size);
        from += written;
        size -= (size_t)written;
        s->at += (uint64_t)written;
    }
    return SL_OK;
}

/* All but a little of what is long becomes a hole. */
static sl_status write_zeros_to(saver *s, uint64_t offset) {
    static const unsigned char zeros[SL_SECTION_ALIGN];
    if (offset > s->at && offset - s->at > CHUNK) {
        if (lseek(s->fd, (off_t)(offset - sizeof zeros), SEEK_SET) < 0)
            return sl_fail_errno("cannot move in", s->temporary);
        s->at = offset - sizeof zeros;
    }
    while (s->at < offset) {
        uint64_t left = offset - s->at;
        SL_TRY(write_all(s, zeros, left < sizeof zeros ? (size_t)left : sizeof zeros));
    }
    return SL_OK;
}

static sl_status write_section(saver *s, const sl_section_source *source) {
    const unsigned char *data = source->data;
    for (uint64_t done = 0; done < source->size;) {
        size_t room = CHUNK - (size_t)(s->at % CHUNK);
        size_t chunk = source->size - done < room ? (size_t)(source->size - done) : room;
        SL_TRY(write_all(s, data + done, chunk));
        done += chunk;
        sl_progress_step(s->progress, chunk);
        if (sl_progress_cancelled(s->progress)) return sl_progress_end(s->progress);
    }
    return SL_OK;
}

/* The header comes first in the file and holds the CRCs, and the file is written in order: one pass for them ahead of
 * the writing, at the speed of memory. */
static sl_status section_crc(saver *s, const sl_section_source *source, uint32_t *out) {
    const unsigned char *data = source->data;
    uint32_t crc = 0;
    for (uint64_t done = 0; done < source->size;) {
        size_t chunk = source->size - done < CHUNK ? (size_t)(source->size - done) : CHUNK;
        crc = sl_crc32c(crc, data + done, chunk);
        done += chunk;
        sl_progress_step(s->progress, 0);
        if (sl_progress_cancelled(s->progress)) return sl_progress_end(s->progress);
    }
    *out = crc;
    return SL_OK;
}

/* Where a section that follows `end` begins. */
static uint64_t section_offset(uint64_t end) {
    return (end + SL_SECTION_ALIGN - 1) / SL_SECTION_ALIGN * SL_SECTION_ALIGN;
}

static uint64_t section_end(uint64_t offset, uint64_t size) {
    return offset + size + SL_SECTION_SLACK;
}

static uint64_t section_size(const sl_section_source *source) {
    return source->room > source->size ? source->room : source->size;
}

uint64_t sl_store_file_size(const sl_section_source *sections, size_t section_count) {
    uint64_t end = SL_HEADER_SIZE;
    for (size_t i = 0; i < section_count; i++)
        end = section_end(section_offset(end), section_size(&sections[i]));
    return end;
}

/* What the caller gave of the type's own fields is in the header already. */
static sl_status fill_header(saver *s, const sl_file_type *type, sl_file_header *header,
                             const sl_section_source *sections, size_t count) {
    if (count > SL_MAX_SECTIONS)
        return sl_fail(SL_ELIMIT, "%zu sections; a file holds %u at most", count, SL_MAX_SECTIONS);
    memcpy(header->magic, type->magic, sizeof header->magic);
    header->version = type->version;
    header->endian = SL_FILE_ENDIAN;
    header->header_size = SL_HEADER_SIZE;
    header->section_count = (uint32_t)count;
    header->file_size = sl_store_file_size(sections, count);
    uint64_t end = SL_HEADER_SIZE;
    for (size_t i = 0; i < count; i++) {
        sl_file_section *section = &header->sections[i];
        section->kind = sections[i].kind;
        section->flags = sections[i].flags;
        section->offset = section_offset(end);
        section->size = section_size(&sections[i]);
        if (!(section->flags & SL_SECTION_CHANGING)) SL_TRY(section_crc(s, &sections[i], &section->crc32c));
        end = section_end(section->offset, section->size);
    }
    header->crc32c = sl_crc32c(0, header, offsetof(sl_file_header, crc32c));
    return SL_OK;
}

static sl_status write_file(saver *s, const sl_file_header *header, const sl_section_source *sections) {
    SL_TRY(write_all(s, header, sizeof *header));
    for (size_t i = 0; i < header->section_count; i++) {
        SL_TRY(write_zeros_to(s, header->sections[i].offset));
        SL_TRY(write_section(s, &sections[i]));
    }
    return write_zeros_to(s, header->file_size);
}

/* ---------------------------------------------------------------------------------------------------------------
 * Into place
 * ------------------------------------------------------------------------------------------------------------- */

static int sync_fd(const saver *s, int fd) {
    int result;
    do
        result = s->ops.fsync(s->ops.ctx, fd);
    while (result != 0 && errno == EINTR);
    return result;
}

static sl_status sync_and_close(saver *s) {
    if (sync_fd(s, s->fd) != 0) return sl_fail_errno("cannot sync", s->temporary);
    int fd = s->fd;
    s->fd = -1;
    /* Interrupted, the descriptor is closed all the same, and the data is synced already. */
    if (s->ops.close(s->ops.ctx, fd) != 0 && errno != EINTR) return sl_fail_errno("cannot close", s->temporary);
    return SL_OK;
}

/* Opened before the rename, so that a folder that cannot be synced is found out while nothing has changed. */
static sl_status rename_and_sync_folder(saver *s) {
    int folder = s->ops.open(s->ops.ctx, s->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (folder < 0) return sl_fail_errno("cannot open the folder", s->folder);
    sl_status status = SL_OK;
    if (s->ops.rename(s->ops.ctx, s->temporary, s->target) != 0)
        status = sl_fail_errno("cannot rename the temporary file to", s->target);
    else {
        s->temporary[0] = '\0';
        /* EINVAL: a file system that cannot sync folders and needs no telling. */
        if (sync_fd(s, folder) != 0 && errno != EINVAL) {
            status = sl_fail_errno("cannot sync the folder", s->folder);
            status = sl_fail_in(status, "%s is saved, but a power loss may undo it", s->target);
        }
    }
    /* Nothing was written through it, so its close has nothing to lose. */
    (void)s->ops.close(s->ops.ctx, folder);
    return status;
}

static sl_status discard(saver *s, sl_status status) {
    if (s->fd >= 0) (void)s->ops.close(s->ops.ctx, s->fd);
    if (s->temporary[0] && s->ops.unlink(s->ops.ctx, s->temporary) != 0)
        return sl_fail_in(status, "%s is left behind and can be removed", s->temporary);
    return status;
}

sl_status sl_store_save(const char *path, const sl_file_type *type, const sl_file_ops *ops,
                        const sl_file_header *header, const sl_section_source *sections, size_t section_count,
                        sl_progress *progress) {
    saver s = {.ops = sl_file_ops_of(ops), .progress = progress, .fd = -1, .mode = 0666};
    sl_file_header mine = {.crc32c = 0};
    if (header) memcpy(&mine, header, type->fields_end);
    SL_TRY(resolve_target(&s, path));
    name_folder(&s);
    SL_TRY(create_temporary(&s));
    sl_status status;
    SL_TRY_GOTO(fill_header(&s, type, &mine, sections, section_count), done);
    SL_TRY_GOTO(write_file(&s, &mine, sections), done);
    SL_TRY_GOTO(sync_and_close(&s), done);
    SL_TRY_GOTO(sl_progress_end(progress), done);
    SL_TRY_GOTO(rename_and_sync_folder(&s), done);
done:
    return status == SL_OK ? SL_OK : discard(&s, status);
}
