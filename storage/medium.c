#define _GNU_SOURCE
#include "base/system.h"
#include "storage/pmem.h"
#include "storage/store.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

static sl_status map_shared(int fd, const char *path, uint64_t size, void **out) {
    *out = NULL;
    if (size > SIZE_MAX)
        return sl_fail(SL_EUNSUPPORTED, "%s: a file of %llu bytes does not fit this machine's addresses", path,
                       (unsigned long long)size);
    void *base = mmap(NULL, (size_t)size, PROT_READ, MAP_SHARED, fd, 0);
    if (base == MAP_FAILED) return sl_fail_errno("cannot map", path);
    *out = base;
    return SL_OK;
}

static void unmap_file(void *base, uint64_t size) {
    munmap(base, (size_t)size);
}

/* Advice only changes speed, so a refusal is ignored. It takes whole pages, which may be larger than a section's
 * alignment. errno is kept, because the caller may report it next. */
static void advise_range(const void *at, uint64_t size, int advice) {
    int error = errno;
    long page = sysconf(_SC_PAGESIZE);
    size_t before = page > 0 ? (uintptr_t)at % (size_t)page : 0;
    (void)madvise((char *)(uintptr_t)at - before, (size_t)size + before, advice);
    errno = error;
}

/* Some file systems read all 2 MB of a huge page for a missing 4 KB. A file that easily fits memory then warms up
 * sooner and has fewer TLB misses. A larger file would push out pages that others need. */
static void advise_random(const void *at, uint64_t size) {
    advise_range(at, size, MADV_RANDOM);
#ifdef MADV_HUGEPAGE
    if (size >= SL_HUGE_PAGE && size <= sl_system_memory() / 2) advise_range(at, size, MADV_HUGEPAGE);
#endif
}

static void advise_soon(const void *at, uint64_t size) {
    advise_range(at, size, MADV_WILLNEED);
}

const sl_medium *sl_medium_of(sl_place place) {
    static const sl_medium media[] = {
        {.place = SL_PLACE_DRAM,
         .map = map_shared,
         .unmap = unmap_file,
         .advise_random = advise_random,
         .advise_soon = advise_soon},
        {.place = SL_PLACE_MAP,
         .map = map_shared,
         .unmap = unmap_file,
         .advise_random = advise_random,
         .advise_soon = advise_soon},
        {.place = SL_PLACE_PMEM,
         .map = sl_pmem_map,
         .unmap = sl_pmem_unmap,
         .advise_random = advise_random,
         .advise_soon = advise_soon},
    };
    for (size_t i = 0; i < sizeof media / sizeof *media; i++)
        if (media[i].place == place) return &media[i];
    return NULL;
}
