#define _GNU_SOURCE
#include "storage/pmem.h"

#include <errno.h>
#include <sys/mman.h>

#ifdef SL_HAVE_PMEM
#include <libpmem.h>
#endif

/* A mapping whose stores need no sync of the file. Only DAX file systems have such mappings. */
static void *map_sync(int fd, size_t size) {
#if defined(MAP_SYNC) && defined(MAP_SHARED_VALIDATE)
    return mmap(NULL, size, PROT_READ, MAP_SHARED_VALIDATE | MAP_SYNC, fd, 0);
#else
    (void)fd;
    (void)size;
    return MAP_FAILED;
#endif
}

sl_status sl_pmem_map(int fd, const char *path, uint64_t size, void **out) {
    *out = NULL;
    void *base = map_sync(fd, (size_t)size);
    if (base == MAP_FAILED) base = mmap(NULL, (size_t)size, PROT_READ, MAP_SHARED, fd, 0);
    if (base == MAP_FAILED) return sl_fail_errno("cannot map", path);
    *out = base;
    return SL_OK;
}

int sl_pmem_is_dax(int fd) {
    int error = errno;
    void *base = map_sync(fd, 1);
    if (base != MAP_FAILED) munmap(base, 1);
    errno = error;
    return base != MAP_FAILED;
}

#ifdef SL_HAVE_PMEM

void sl_pmem_unmap(void *base, uint64_t size) {
    pmem_unmap(base, (size_t)size);
}

sl_status sl_pmem_map_direct(const char *path, uint64_t size, void **out) {
    size_t length;
    int is_pmem;
    *out = NULL;
    void *base = pmem_map_file(path, 0, 0, 0, &length, &is_pmem);
    if (!base) return sl_fail_errno("cannot map", path);
    if (is_pmem && length == size) {
        *out = base;
        return SL_OK;
    }
    pmem_unmap(base, length);
    return sl_fail(SL_EUNSUPPORTED, "%s: does not lie in persistent memory", path);
}

void sl_pmem_flush(void *ctx, const void *at, size_t size, uint64_t offset) {
    (void)ctx;
    (void)offset;
    pmem_flush(at, size);
}

void sl_pmem_drain(void *ctx) {
    (void)ctx;
    pmem_drain();
}

#else

void sl_pmem_unmap(void *base, uint64_t size) {
    munmap(base, (size_t)size);
}

sl_status sl_pmem_map_direct(const char *path, uint64_t size, void **out) {
    (void)size;
    *out = NULL;
    return sl_fail(SL_EUNSUPPORTED, "%s: this build has no libpmem", path);
}

void sl_pmem_flush(void *ctx, const void *at, size_t size, uint64_t offset) {
    (void)ctx;
    (void)at;
    (void)size;
    (void)offset;
}

void sl_pmem_drain(void *ctx) {
    (void)ctx;
}

#endif
