#define _GNU_SOURCE
#include "tests/support/faults.h"

#include "tests/support/sanitized.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---------------------------------------------------------------------------------------------------------------
 * Memory
 * ------------------------------------------------------------------------------------------------------------- */

/* In front of each block, at the distance of its alignment. */
typedef struct block_note {
    size_t size;
    size_t alignment;
} block_note;

static size_t lead_of(size_t alignment) {
    return alignment < sizeof(block_note) ? sizeof(block_note) : alignment;
}

static void raise_to(size_t *most, size_t value) {
    size_t seen = __atomic_load_n(most, __ATOMIC_RELAXED);
    while (value > seen && !__atomic_compare_exchange_n(most, &seen, value, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
}

/* Nothing may write to these bytes behind each block. With a sanitizer there are none, since it sees reads there too.
 */
enum { TAIL = SANITIZED ? 0 : 64, TAIL_BYTE = 0xa5 };

static void check_tail(const unsigned char *tail) {
    for (const unsigned char *at = tail; at < tail + TAIL; at++)
        if (*at != TAIL_BYTE) {
            fprintf(stderr, "byte %d behind a block was written to\n", (int)(at - tail));
            abort();
        }
}

static void *fault_alloc(void *ctx, size_t size, size_t alignment) {
    fault_allocator *faults = ctx;
    size_t call = __atomic_add_fetch(&faults->calls, 1, __ATOMIC_RELAXED);
    raise_to(&faults->largest, size);
    if (call == faults->fail_at) return NULL;
    size_t lead = lead_of(alignment);
    void *raw;
    if (size > SIZE_MAX - lead - TAIL || posix_memalign(&raw, lead, lead + size + TAIL) != 0) return NULL;
    char *block = (char *)raw + lead;
    memset(block + size, TAIL_BYTE, TAIL);
    block_note note = {size, alignment};
    memcpy(block - sizeof note, &note, sizeof note);
    __atomic_add_fetch(&faults->live_blocks, 1, __ATOMIC_RELAXED);
    raise_to(&faults->most_bytes, __atomic_add_fetch(&faults->live_bytes, size, __ATOMIC_RELAXED));
    return block;
}

static void fault_free(void *ctx, void *block, size_t size) {
    fault_allocator *faults = ctx;
    block_note note;
    memcpy(&note, (char *)block - sizeof note, sizeof note);
    if (note.size != size) {
        fprintf(stderr, "a block of %zu bytes was given back as one of %zu\n", note.size, size);
        abort();
    }
    check_tail((const unsigned char *)block + size);
    __atomic_sub_fetch(&faults->live_blocks, 1, __ATOMIC_RELAXED);
    __atomic_sub_fetch(&faults->live_bytes, size, __ATOMIC_RELAXED);
    free((char *)block - lead_of(note.alignment));
}

void fault_allocator_init(fault_allocator *faults, size_t fail_at) {
    *faults = (fault_allocator){.fail_at = fail_at};
    faults->allocator = (sl_allocator){faults, fault_alloc, fault_free};
}

/* ---------------------------------------------------------------------------------------------------------------
 * Files
 * ------------------------------------------------------------------------------------------------------------- */

/* Returns whether this call must fail; sets errno then. */
static int fails(fault_files *faults, fault_kind kind) {
    if (++faults->all_calls == faults->kill_at) raise(SIGKILL);
    if (++faults->calls[kind] == faults->fail_at[kind]) {
        errno = faults->error;
        return 1;
    }
    int restartable = kind == FAULT_OPEN || kind == FAULT_WRITE || kind == FAULT_FSYNC || kind == FAULT_PWRITE ||
                      kind == FAULT_FDATASYNC;
    if (restartable && faults->interrupt_every && faults->all_calls % faults->interrupt_every == 0) {
        errno = EINTR;
        return 1;
    }
    return 0;
}

static int fault_open(void *ctx, const char *path, int flags, unsigned mode) {
    return fails(ctx, FAULT_OPEN) ? -1 : open(path, flags, (mode_t)mode);
}

static int64_t fault_write(void *ctx, int fd, const void *data, size_t size) {
    fault_files *faults = ctx;
    if (fails(faults, FAULT_WRITE)) return -1;
    if (faults->write_limit && size > faults->write_limit) size = faults->write_limit;
    return write(fd, data, size);
}

static int fault_fsync(void *ctx, int fd) {
    return fails(ctx, FAULT_FSYNC) ? -1 : fsync(fd);
}

static int fault_close(void *ctx, int fd) {
    int failing = fails(ctx, FAULT_CLOSE);
    int error = errno;
    int result = close(fd);
    if (!failing) return result;
    errno = error;
    return -1;
}

static int fault_rename(void *ctx, const char *from, const char *to) {
    return fails(ctx, FAULT_RENAME) ? -1 : rename(from, to);
}

static int fault_unlink(void *ctx, const char *path) {
    return fails(ctx, FAULT_UNLINK) ? -1 : unlink(path);
}

static int64_t fault_pwrite(void *ctx, int fd, const void *data, size_t size, uint64_t offset) {
    fault_files *faults = ctx;
    if (fails(faults, FAULT_PWRITE)) return -1;
    if (faults->write_limit && size > faults->write_limit) size = faults->write_limit;
    return pwrite(fd, data, size, (off_t)offset);
}

static int fault_fdatasync(void *ctx, int fd) {
    return fails(ctx, FAULT_FDATASYNC) ? -1 : fdatasync(fd);
}

static int fault_ftruncate(void *ctx, int fd, uint64_t size) {
    return fails(ctx, FAULT_FTRUNCATE) ? -1 : ftruncate(fd, (off_t)size);
}

static int fault_allocate(void *ctx, int fd, uint64_t offset, uint64_t size) {
    if (fails(ctx, FAULT_ALLOCATE)) return -1;
    int error = posix_fallocate(fd, (off_t)offset, (off_t)size);
    if (error) errno = error;
    return error ? -1 : 0;
}

void fault_files_init(fault_files *faults) {
    *faults = (fault_files){.error = EIO};
    faults->ops = (sl_file_ops){.ctx = faults,
                                .open = fault_open,
                                .write = fault_write,
                                .fsync = fault_fsync,
                                .close = fault_close,
                                .rename = fault_rename,
                                .unlink = fault_unlink,
                                .pwrite = fault_pwrite,
                                .fdatasync = fault_fdatasync,
                                .ftruncate = fault_ftruncate,
                                .allocate = fault_allocate};
}

const char *fault_kind_name(fault_kind kind) {
    static const char *const names[] = {"open",   "write",  "fsync",     "close",     "rename",
                                        "unlink", "pwrite", "fdatasync", "ftruncate", "allocate"};
    return names[kind];
}
