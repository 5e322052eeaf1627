#define _GNU_SOURCE
#include "storage/writable.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/statfs.h>
#include <unistd.h>

/* Most file systems have pages of this size or smaller. */
#define PAGE ((uint64_t)4096)

/* The file's bytes count: the mapping may have changes that are not committed. */
static int is_zero(const sl_writable *file, uint64_t offset) {
    static const uint8_t zeros[PAGE];
    uint8_t bytes[PAGE];
    return pread(file->fd, bytes, PAGE, (off_t)offset) == (ssize_t)PAGE && memcmp(bytes, zeros, PAGE) == 0;
}

/* Blocks of these pieces have to be reserved again. */
static void forget_pieces(sl_writable *file, uint64_t offset, uint64_t size) {
    for (uint64_t piece = offset / SL_WRITABLE_PIECE; piece <= (offset + size - 1) / SL_WRITABLE_PIECE; piece++)
        file->allocated[piece / 64] &= ~((uint64_t)1 << (piece % 64));
}

void sl_writable_punch(sl_writable *file, const void *at, size_t size) {
    const uint64_t offset = (uint64_t)((const uint8_t *)at - file->base);
    const uint64_t end = (offset + size) / PAGE * PAGE;
    struct statfs system;
    /* A read of a hole takes memory in a file system in memory. */
    if (file->redo->end || fstatfs(file->fd, &system) != 0 || system.f_type == TMPFS_MAGIC) return;
    for (uint64_t from = (offset + PAGE - 1) / PAGE * PAGE, to; from < end; from = to + PAGE) {
        for (to = from; to < end && is_zero(file, to);)
            to += PAGE;
        if (to == from) continue;
        forget_pieces(file, from, to - from);
        if (fallocate(file->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)from, (off_t)(to - from)) != 0)
            return;
    }
}
