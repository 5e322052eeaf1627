#define _GNU_SOURCE
#include "storage/spill.h"

#include "base/thread.h"
#include "storage/ops.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* A block in a file. */
typedef struct mapped {
    void *at;
    struct mapped *next;
} mapped;

struct sl_spill {
    sl_allocator base;
    size_t limit;
    size_t used; /* bytes in memory, atomic */
    sl_spin lock;
    mapped *blocks;
    unsigned named;      /* names tried on file systems without unnamed files */
    size_t wanted;       /* bytes in memory that were refused first; 0: none */
    size_t wanted_file;  /* bytes of a file that were refused first */
    int error;           /* errno of that refusal; 0: none */
    char path[PATH_MAX]; /* "": all blocks lie in memory */
    char folder[PATH_MAX];
};

/* Reserves first, so that threads that ask at once don't exceed the limit together. */
static int reserve_bytes(sl_spill *spill, size_t size, size_t limit) {
    size_t used = __atomic_load_n(&spill->used, __ATOMIC_RELAXED);
    do {
        if (size > limit || used > limit - size) return 0;
    } while (!__atomic_compare_exchange_n(&spill->used, &used, used + size, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    return 1;
}

static void note_refusal(sl_spill *spill, size_t size) {
    const size_t used = __atomic_load_n(&spill->used, __ATOMIC_RELAXED);
    sl_spin_lock(&spill->lock);
    if (!spill->wanted) spill->wanted = size > SIZE_MAX - used ? SIZE_MAX : used + size;
    sl_spin_unlock(&spill->lock);
}

static void *take_memory(sl_spill *spill, size_t size, size_t alignment, size_t limit) {
    if (!reserve_bytes(spill, size, limit)) return NULL;
    void *block = spill->base.alloc(spill->base.ctx, size, alignment);
    if (!block) __atomic_fetch_sub(&spill->used, size, __ATOMIC_RELAXED);
    return block;
}

/* For file systems without unnamed files. The name is removed at once; whoever locks the path has it alone. */
static int open_named(sl_spill *spill) {
    char name[PATH_MAX];
    const unsigned number = __atomic_fetch_add(&spill->named, 1, __ATOMIC_RELAXED);
    if (snprintf(name, sizeof name, "%s.%u", spill->path, number) >= (int)sizeof name) {
        errno = ENAMETOOLONG;
        return -1;
    }
    (void)unlink(name);
    int fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd >= 0) (void)unlink(name);
    return fd;
}

static int open_unnamed(sl_spill *spill) {
    int fd = open(spill->folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    return fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL) ? open_named(spill) : fd;
}

/* Reserves the file's blocks at once, so that a full device is an error here, not a signal at a later write. */
static void *map_file(sl_spill *spill, size_t size) {
    const sl_file_ops ops = sl_file_ops_of(NULL);
    int fd = open_unnamed(spill);
    if (fd < 0) return NULL;
    void *at = MAP_FAILED;
    if (ops.allocate(ops.ctx, fd, 0, size) == 0) at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    const int error = errno;
    close(fd);
    errno = error;
    if (at == MAP_FAILED) return NULL;
    /* Rows are read in any order, so reading ahead would read many times too much. A refusal costs only time. */
    (void)madvise(at, size, MADV_RANDOM);
    return at;
}

static void *take_file(sl_spill *spill, size_t size) {
    mapped *block = take_memory(spill, sizeof *block, _Alignof(mapped), spill->limit);
    if (!block) return NULL;
    void *at = map_file(spill, size);
    const int error = errno;
    sl_spin_lock(&spill->lock);
    if (at) {
        *block = (mapped){at, spill->blocks};
        spill->blocks = block;
    } else if (!spill->error) {
        spill->error = error;
        spill->wanted_file = size;
    }
    sl_spin_unlock(&spill->lock);
    if (at) return at;
    __atomic_fetch_sub(&spill->used, sizeof *block, __ATOMIC_RELAXED);
    spill->base.free(spill->base.ctx, block, sizeof *block);
    return NULL;
}

static void *spill_alloc(void *ctx, size_t size, size_t alignment) {
    sl_spill *spill = ctx;
    const int large = size >= SL_SPILL_LEAST && *spill->path;
    void *block = take_memory(spill, size, alignment, large ? spill->limit / 4 * 3 : spill->limit);
    if (!block && large) return take_file(spill, size);
    if (!block) note_refusal(spill, size);
    return block;
}

/* Takes a block off the list. Returns NULL if it lies in memory. */
static mapped *find_mapped(sl_spill *spill, const void *at) {
    sl_spin_lock(&spill->lock);
    mapped **link = &spill->blocks, *block;
    while ((block = *link) && block->at != at)
        link = &block->next;
    if (block) *link = block->next;
    sl_spin_unlock(&spill->lock);
    return block;
}

static void spill_free(void *ctx, void *at, size_t size) {
    sl_spill *spill = ctx;
    mapped *block = size >= SL_SPILL_LEAST ? find_mapped(spill, at) : NULL;
    if (block) {
        (void)munmap(at, size);
        at = block;
        size = sizeof *block;
    }
    __atomic_fetch_sub(&spill->used, size, __ATOMIC_RELAXED);
    spill->base.free(spill->base.ctx, at, size);
}

sl_status sl_spill_open(const sl_allocator *base, size_t limit, const char *path, sl_spill **out) {
    void *block;
    SL_TRY(sl_mem_alloc(base, sizeof(sl_spill), &block));
    sl_spill *spill = block;
    *spill = (sl_spill){.base = *base, .limit = limit};
    *out = spill;
    if (!path) return SL_OK;
    const size_t length = strlen(path);
    const char *slash = strrchr(path, '/');
    if (length == 0 || length >= sizeof spill->path) {
        sl_spill_close(spill);
        *out = NULL;
        return sl_fail(SL_EINVAL, "the path of the work file has %zu bytes; give 1 to %zu", length,
                       sizeof spill->path - 1);
    }
    memcpy(spill->path, path, length);
    memcpy(spill->folder, slash ? path : ".", slash && slash > path ? (size_t)(slash - path) : 1);
    return SL_OK;
}

void sl_spill_close(sl_spill *spill) {
    if (!spill) return;
    sl_allocator base = spill->base;
    SL_FREE(&base, spill);
}

sl_allocator sl_spill_allocator(sl_spill *spill) {
    return (sl_allocator){spill, spill_alloc, spill_free};
}

sl_status sl_spill_explain(sl_spill *spill, sl_status status) {
    if (!spill) return status;
    sl_spin_lock(&spill->lock);
    const size_t wanted = spill->wanted, wanted_file = spill->wanted_file;
    const int error = spill->error;
    spill->wanted = spill->wanted_file = 0;
    spill->error = 0;
    sl_spin_unlock(&spill->lock);
    if (status != SL_ENOMEM) return status;
    if (error) {
        errno = error;
        status = sl_fail_errno("cannot set blocks aside beside", spill->path);
        return sl_fail_in(status, "work of %zu bytes", wanted_file);
    }
    if (!wanted) return status;
    return sl_fail(SL_ENOMEM, "work takes %zu bytes of memory or more, and %zu are allowed; allow more%s", wanted,
                   spill->limit, *spill->path ? "" : ", or choose smaller codes, a smaller refine or a smaller m");
}
