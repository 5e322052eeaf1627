#define _GNU_SOURCE
#include "storage/work.h"

#include "base/crc32c.h"
#include "base/thread.h"
#include "storage/origin.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* The file's first bytes. */
typedef struct head {
    char magic[8];
    uint32_t version, crc; /* of all other fields */
    uint64_t key[2];
} head;
_Static_assert(sizeof(head) == 32, "notes begin at byte 32");

static const char magic[8] = {'S', 'L', 'W', 'O', 'R', 'K', '\r', '\n'};
enum { VERSION = 1, TRIES = 100 };

/* Seconds to wait for a locked file. */
#define PATIENCE 2.0

struct sl_work {
    sl_allocator allocator;
    sl_file_ops ops;
    sl_spin lock;  /* guards `end` */
    int fd;        /* -1: the file was removed */
    uint64_t from; /* of the note read last */
    uint64_t end;  /* of the notes read or appended */
    sl_work *next; /* an older file, which is read after this one; NULL: none */
    /* Of the first file: */
    sl_work *reading; /* the file that is read now */
    sl_work_counts counts;
    char path[];
};

static uint32_t head_crc(const head *head) {
    return sl_crc32c(sl_crc32c(0, head->magic, sizeof head->magic), head->key, sizeof head->key) ^ head->version;
}

static uint32_t note_crc(const sl_note *note, const void *bytes) {
    return sl_crc32c(sl_crc32c(0, note, offsetof(sl_note, crc)), bytes, note->size);
}

/* Returns whether all `size` bytes were there and could be read. */
static int has_read(const sl_work *work, void *to, size_t size, uint64_t at) {
    return sl_read_at(work->fd, work->path, to, size, at) == SL_OK;
}

/* A file that is no work file may be anything, so it stays. */
static sl_status check_kind(const sl_work *work) {
    struct stat info;
    char first[sizeof magic];
    if (fstat(work->fd, &info) != 0) return sl_fail_errno("cannot look at", work->path);
    if (S_ISREG(info.st_mode) && info.st_size == 0) return SL_OK;
    if (S_ISREG(info.st_mode) && info.st_size >= (off_t)sizeof first && has_read(work, first, sizeof first, 0) &&
        memcmp(first, magic, sizeof magic) == 0)
        return SL_OK;
    return sl_fail(SL_ECORRUPT, "%s: is no work file, so it is left as it is; choose another name", work->path);
}

/* Its holder may remove the file before the lock is taken. */
static int is_there(const sl_work *work) {
    struct stat mine, there;
    return fstat(work->fd, &mine) == 0 && lstat(work->path, &there) == 0 && mine.st_ino == there.st_ino &&
           mine.st_dev == there.st_dev;
}

/* A file that was just made is removed, because nobody may use it without locks. */
static sl_status fail_unlocked(const sl_work *work, int is_new) {
    if (is_new) (void)unlink(work->path);
    return sl_fail(SL_EUNSUPPORTED,
                   "%s: its file system has no locks, which keep two builds from one work file; name one on another "
                   "file system, or build without",
                   work->path);
}

static sl_status open_once(sl_work *work) {
    const int flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
    for (int tries = 0; tries < TRIES; tries++) {
        work->fd = sl_open_retrying(&work->ops, work->path, flags | O_CREAT | O_EXCL, 0600);
        const int is_new = work->fd >= 0;
        const int is_there_already = !is_new && errno == EEXIST;
        if (is_there_already) work->fd = sl_open_retrying(&work->ops, work->path, flags, 0);
        if (work->fd < 0 && is_there_already && errno == ENOENT) continue; /* it was removed meanwhile */
        if (work->fd < 0) return sl_fail_errno("cannot open the work file", work->path);
        sl_status status = sl_lock_file(work->fd, LOCK_EX, work->path);
        if (status == SL_EUNSUPPORTED) return fail_unlocked(work, is_new);
        if (status != SL_OK) return status;
        if (is_there(work)) return SL_OK;
        close(work->fd);
    }
    work->fd = -1;
    return sl_fail(SL_EBUSY, "%s: is made and removed by others all the time; choose another name", work->path);
}

/* A killed process has its files until the system has taken back its memory. */
static sl_status open_locked(sl_work *work) {
    const sl_waiting waiting = sl_waiting_for(PATIENCE, NULL, NULL);
    sl_status status;
    do {
        if (work->fd >= 0) close(work->fd);
        status = open_once(work);
    } while (status == SL_EBUSY && sl_wait_more(&waiting, &status));
    return status;
}

sl_status sl_work_open(const char *path, const sl_allocator *allocator, sl_work **out) {
    const size_t length = strlen(path) + 1;
    void *block;
    *out = NULL;
    SL_TRY(sl_mem_alloc(allocator, sizeof(sl_work) + length, &block));
    sl_work *work = block;
    *work = (sl_work){.allocator = *allocator, .ops = sl_file_ops_of(NULL), .fd = -1, .end = sizeof(head)};
    work->reading = work;
    memcpy(work->path, path, length);
    sl_status status = open_locked(work);
    if (status == SL_OK) status = check_kind(work);
    if (status == SL_OK) {
        *out = work;
        return SL_OK;
    }
    if (work->fd >= 0) close(work->fd);
    sl_mem_free(allocator, work, sizeof *work + length);
    return status;
}

sl_status sl_work_add(sl_work *work, const char *path) {
    while (work->next)
        work = work->next;
    return sl_work_open(path, &work->allocator, &work->next);
}

static void remove_file(sl_work *work) {
    if (work->fd < 0) return;
    (void)unlink(work->path);
    close(work->fd);
    work->fd = -1;
}

void sl_work_remove(sl_work *work) {
    for (; work; work = work->next)
        remove_file(work);
}

void sl_work_close(sl_work *work) {
    while (work) {
        struct stat info;
        sl_work *next = work->next;
        if (work->fd >= 0 && fstat(work->fd, &info) == 0 && info.st_size <= (off_t)sizeof(head)) remove_file(work);
        if (work->fd >= 0) close(work->fd);
        sl_allocator allocator = work->allocator;
        sl_mem_free(&allocator, work, sizeof *work + strlen(work->path) + 1);
        work = next;
    }
}

static sl_status begin_file(sl_work *work, const uint64_t key[2]) {
    head head, mine = {.version = VERSION, .key = {key[0], key[1]}};
    if (work->fd < 0) return sl_fail(SL_EINVAL, "%s: was removed by a save", work->path);
    memcpy(mine.magic, magic, sizeof magic);
    mine.crc = head_crc(&mine);
    work->from = work->end = sizeof head;
    if (has_read(work, &head, sizeof head, 0) && memcmp(&head, &mine, sizeof head) == 0) return SL_OK;
    if (work->ops.ftruncate(work->ops.ctx, work->fd, 0) != 0) return sl_fail_errno("cannot empty", work->path);
    return sl_write_at(&work->ops, work->fd, work->path, &mine, sizeof mine, 0);
}

sl_status sl_work_begin(sl_work *work, const uint64_t key[2]) {
    work->reading = work;
    for (; work; work = work->next)
        SL_TRY(begin_file(work, key));
    return SL_OK;
}

/* If this fails, later notes are written over the rest, so a failure does no harm. */
static void cut_file(sl_work *work) {
    work->end = work->from;
    (void)work->ops.ftruncate(work->ops.ctx, work->fd, work->end);
}

/* Reads the next note of a file. Returns 0 behind the last whole one, and drops the rest. */
static int read_note(sl_work *work, sl_note *note, void *to, size_t room) {
    const uint64_t at = work->end;
    work->from = at;
    if (has_read(work, note, sizeof *note, at) && note->kind && note->size <= room &&
        has_read(work, to, note->size, at + sizeof *note) && note_crc(note, to) == note->crc) {
        work->end = at + sizeof *note + note->size;
        return 1;
    }
    cut_file(work);
    return 0;
}

int sl_work_next(sl_work *work, sl_note *note, void *to, size_t room) {
    while (!read_note(work->reading, note, to, room)) {
        if (!work->reading->next) return 0;
        work->reading = work->reading->next;
    }
    return 1;
}

void sl_work_cut(sl_work *work) {
    cut_file(work->reading);
}

void sl_work_restart(sl_work *work) {
    work->reading = work;
    work->from = sizeof(head);
    cut_file(work);
}

sl_work_mark sl_work_here(const sl_work *work) {
    sl_work_mark mark = {.end = work->reading->end};
    for (const sl_work *file = work; file != work->reading; file = file->next)
        mark.file++;
    return mark;
}

void sl_work_go_back(sl_work *work, sl_work_mark mark) {
    sl_work *file = work;
    for (size_t i = 0; i < mark.file; i++)
        file = file->next;
    work->reading = file;
    file->end = mark.end;
    while ((file = file->next))
        file->end = sizeof(head);
}

void sl_work_count(sl_work *work, sl_work_counts counts) {
    work->counts = counts;
}

sl_work_counts sl_work_counted(const sl_work *work) {
    return work->counts;
}

sl_status sl_work_append(sl_work *work, uint32_t kind, uint32_t number, const void *bytes, size_t size) {
    sl_note note = {kind, number, (uint32_t)size, 0};
    note.crc = note_crc(&note, bytes);
    sl_spin_lock(&work->lock);
    const uint64_t at = work->end;
    work->end += sizeof note + size;
    sl_spin_unlock(&work->lock);
    /* The head comes last, so that a note without its bytes has none. */
    SL_TRY(sl_write_at(&work->ops, work->fd, work->path, bytes, size, at + sizeof note));
    return sl_write_at(&work->ops, work->fd, work->path, &note, sizeof note, at);
}
