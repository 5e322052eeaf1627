#define _GNU_SOURCE
#include "storage/copy.h"

#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>
#ifdef __linux__
#include <linux/fs.h>
#endif

/* Bytes of one write, and between two looks at the progress callback: see save.c. */
#define CHUNK SL_HUGE_PAGE

static int share_blocks(const sl_file_copy *copy) {
#ifdef FICLONE
    return copy->by_system && ioctl(copy->to, FICLONE, copy->from) == 0;
#else
    (void)copy;
    return 0;
#endif
}

/* Finds the next run of data from *at on: *at becomes its beginning, *end its end. Returns 0 if there is none. On a
 * file system without holes, all is data. */
static int next_data(const sl_file_copy *copy, uint64_t *at, uint64_t *end) {
    *end = copy->size;
    if (*at >= copy->size) return 0;
    off_t data = lseek(copy->from, (off_t)*at, SEEK_DATA);
    if (data < 0) return errno != ENXIO;
    off_t hole = lseek(copy->from, data, SEEK_HOLE);
    if (data > (off_t)*at) *at = (uint64_t)data;
    if (hole > data && (uint64_t)hole < *end) *end = (uint64_t)hole;
    return *at < *end;
}

static sl_status read_some(const sl_file_copy *copy, uint8_t *buffer, size_t size, uint64_t at, size_t *got) {
    ssize_t result;
    do
        result = pread(copy->from, buffer, size, (off_t)at);
    while (result < 0 && errno == EINTR);
    if (result < 0) return sl_fail_errno("cannot read", copy->from_path);
    if (result == 0) return sl_fail(SL_EIO, "%s: became shorter while it was copied; try again", copy->from_path);
    *got = (size_t)result;
    return SL_OK;
}

/* Copies some bytes of [at, at + size); *got: how many. Ignores an error of copy_file_range: if it matters, the reading
 * or writing that follows meets it too. */
static sl_status copy_some(const sl_file_copy *copy, uint8_t *buffer, uint64_t at, size_t size, size_t *got) {
    off_t from = (off_t)at, to = (off_t)at;
    ssize_t moved = copy->by_system ? copy_file_range(copy->from, &from, copy->to, &to, size, 0) : 0;
    *got = moved > 0 ? (size_t)moved : 0;
    if (*got) return SL_OK;
    SL_TRY(read_some(copy, buffer, size, at, got));
    return sl_write_at(copy->ops, copy->to, copy->to_path, buffer, *got, at);
}

static sl_status copy_range(const sl_file_copy *copy, uint8_t *buffer, uint64_t at, uint64_t end) {
    while (at < end) {
        size_t room = CHUNK - (size_t)(at % CHUNK), got;
        SL_TRY(copy_some(copy, buffer, at, end - at < room ? (size_t)(end - at) : room, &got));
        at += got;
        sl_progress_step(copy->progress, got);
        if (sl_progress_cancelled(copy->progress)) return sl_progress_end(copy->progress);
    }
    return SL_OK;
}

static sl_status set_size(const sl_file_copy *copy, uint64_t size) {
    int failed = copy->ops->ftruncate(copy->ops->ctx, copy->to, size) != 0;
    return failed ? sl_fail_errno("cannot set the size of", copy->to_path) : SL_OK;
}

/* A file that is cut to nothing and made longer is one hole until it's written. */
static sl_status copy_data(const sl_file_copy *copy, uint8_t *buffer) {
    SL_TRY(set_size(copy, 0));
    SL_TRY(set_size(copy, copy->size));
    uint64_t done = 0, at = 0, end;
    while (next_data(copy, &at, &end)) {
        if (at > done) sl_progress_step(copy->progress, at - done);
        SL_TRY(copy_range(copy, buffer, at, end));
        done = at = end;
    }
    return SL_OK;
}

sl_status sl_copy_file(const sl_file_copy *copy) {
    if (share_blocks(copy)) return SL_OK;
    sl_allocator allocator = sl_allocator_of(NULL);
    void *buffer;
    SL_TRY(sl_mem_alloc(&allocator, CHUNK, &buffer));
    sl_status status = copy_data(copy, buffer);
    sl_mem_free(&allocator, buffer, CHUNK);
    return status;
}
