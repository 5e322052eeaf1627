#define _GNU_SOURCE
#include "storage/readers.h"

#include "base/clock.h"
#include "base/thread.h"
#include "storage/superblock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static_assert(sizeof(sl_reader_entry) == SL_CACHE_LINE, "sl_reader_entry");

enum { ENTRIES = 1024, TABLE = ENTRIES * SL_CACHE_LINE };

struct sl_readers {
    sl_allocator allocator;
    const sl_store *store;
    uint8_t identity[16];
    sl_spin lock;  /* held while an entry is taken */
    int process;   /* the one that opened the table */
    uint64_t full; /* atomic: the second of the clock in which no entry was free */
    int fd;        /* holds the locks of entries; -1: there is no table */
    sl_reader_entry *entries;
    uint64_t taken[ENTRIES / 64]; /* the entries that it has taken, a bit each */
};

static int name_of(const sl_store *store, char path[PATH_MAX]) {
    return snprintf(path, PATH_MAX, "%s" SL_READERS_ENDING, store->resolved) < PATH_MAX;
}

/* ---------------------------------------------------------------------------------------------------------------
 * Locks
 * ------------------------------------------------------------------------------------------------------------- */

static struct flock range_of(short kind, size_t first, size_t count) {
    return (struct flock){.l_type = kind,
                          .l_whence = SEEK_SET,
                          .l_start = (off_t)(first * SL_CACHE_LINE),
                          .l_len = (off_t)(count * SL_CACHE_LINE)};
}

static int lock_entries(int fd, short kind, size_t first, size_t count) {
    struct flock range = range_of(kind, first, count);
    int result;
    do
        result = fcntl(fd, F_OFD_SETLK, &range);
    while (result != 0 && errno == EINTR);
    return result == 0;
}

/* Returns whether a living process has the entry; 1 if the system can't tell. */
static int is_locked(int fd, size_t entry) {
    struct flock range = range_of(F_WRLCK, entry, 1);
    return fcntl(fd, F_OFD_GETLK, &range) != 0 || range.l_type != F_UNLCK;
}

/* ---------------------------------------------------------------------------------------------------------------
 * A reader
 * ------------------------------------------------------------------------------------------------------------- */

/* Whoever may write the file may announce. Others could shorten the table, which ends a process that stores there. */
static void give_access(const sl_store *store, int fd) {
    struct stat info;
    const sl_access access = store->access;
    if (fstat(fd, &info) != 0 || info.st_size != 0) return;
    sl_access_give(fd, &access);
}

/* Opens the table and takes its blocks, since a store into a mapping cannot report a full device. */
static int open_table(const sl_store *store) {
    char path[PATH_MAX];
    struct stat info;
    if (!name_of(store, path)) return -1;
    const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (fd < 0) return -1;
    give_access(store, fd);
    if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && posix_fallocate(fd, 0, TABLE) == 0) return fd;
    close(fd);
    return -1;
}

static int has_name(const sl_readers *readers) {
    char path[PATH_MAX];
    struct stat named, own;
    return name_of(readers->store, path) && lstat(path, &named) == 0 && fstat(readers->fd, &own) == 0 &&
           named.st_dev == own.st_dev && named.st_ino == own.st_ino;
}

static void close_table(sl_readers *readers) {
    if (readers->entries) munmap(readers->entries, TABLE);
    if (readers->fd >= 0) close(readers->fd);
    readers->entries = NULL;
    readers->fd = -1;
}

static void map_table(sl_readers *readers) {
    readers->process = (int)getpid();
    memset(readers->taken, 0, sizeof readers->taken);
    readers->fd = open_table(readers->store);
    if (readers->fd < 0) return;
    void *base = mmap(NULL, TABLE, PROT_READ | PROT_WRITE, MAP_SHARED, readers->fd, 0);
    readers->entries = base == MAP_FAILED ? NULL : base;
    if (!readers->entries) close_table(readers);
}

sl_readers *sl_readers_open(const sl_store *store, const sl_allocator *allocator) {
    void *block;
    sl_superblock super;
    if (sl_writable_super(store, &super) != SL_OK || sl_mem_alloc(allocator, sizeof(sl_readers), &block) != SL_OK)
        return NULL;
    sl_readers *readers = block;
    *readers = (sl_readers){.allocator = *allocator, .store = store, .fd = -1};
    memcpy(readers->identity, super.identity, sizeof readers->identity);
    map_table(readers);
    if (readers->fd >= 0) return readers;
    SL_FREE(allocator, readers);
    return NULL;
}

/* A child shares its parent's locks, and leaves them. */
void sl_readers_close(sl_readers *readers) {
    char path[PATH_MAX];
    if (!readers) return;
    if (readers->fd >= 0 && readers->process == (int)getpid()) {
        (void)lock_entries(readers->fd, F_UNLCK, 0, ENTRIES);
        if (lock_entries(readers->fd, F_WRLCK, 0, ENTRIES) && has_name(readers) && name_of(readers->store, path))
            (void)unlink(path);
        (void)lock_entries(readers->fd, F_UNLCK, 0, ENTRIES);
    }
    close_table(readers);
    SL_FREE(&readers->allocator, readers);
}

static sl_reader_entry *take_free(sl_readers *readers) {
    for (size_t i = 0; i < ENTRIES && readers->fd >= 0; i++) {
        sl_reader_entry *entry = &readers->entries[i];
        uint64_t *taken = &readers->taken[i / 64], bit = (uint64_t)1 << (i % 64);
        if (*taken & bit || !lock_entries(readers->fd, F_WRLCK, i, 1)) continue;
        *taken |= bit;
        __atomic_store_n(&entry->since, 0, __ATOMIC_SEQ_CST);
        __atomic_store_n(&entry->thread, sl_thread_self(), __ATOMIC_SEQ_CST);
        memcpy(entry->identity, readers->identity, sizeof entry->identity);
        return entry;
    }
    return NULL;
}

sl_reader_entry *sl_readers_take(sl_readers *readers) {
    const uint64_t second = (uint64_t)(sl_now_ns() / 1000000000) + 1;
    if (__atomic_load_n(&readers->full, __ATOMIC_RELAXED) == second) return NULL;
    sl_spin_lock_owned(&readers->lock);
    /* The locks of a parent are shared with it, so a child opens the table anew. Announcements of the parent's threads
     * may lie in the old mapping: it stays. */
    if (readers->process != (int)getpid()) {
        if (readers->fd >= 0) close(readers->fd);
        map_table(readers);
    }
    sl_reader_entry *entry = take_free(readers);
    /* The last reader has just removed the table. */
    if (entry && !has_name(readers)) {
        if (readers->fd >= 0) close(readers->fd);
        map_table(readers);
        entry = take_free(readers);
    }
    __atomic_store_n(&readers->full, entry ? 0 : second, __ATOMIC_RELAXED);
    sl_spin_unlock(&readers->lock);
    return entry;
}

int sl_reader_is_mine(const sl_reader_entry *entry) {
    return __atomic_load_n(&entry->thread, __ATOMIC_RELAXED) >> 32 == sl_thread_self() >> 32;
}

void sl_reader_announce(sl_reader_entry *entry, uint64_t commit) {
    __atomic_store_n(&entry->thread, sl_thread_self(), __ATOMIC_RELAXED);
    __atomic_store_n(&entry->since, commit, __ATOMIC_SEQ_CST);
}

void sl_reader_done(sl_reader_entry *entry) {
    __atomic_store_n(&entry->since, 0, __ATOMIC_RELEASE);
}

/* ---------------------------------------------------------------------------------------------------------------
 * The writer
 * ------------------------------------------------------------------------------------------------------------- */

/* Opens the table. *unknown: 1: there is one that can't be read. */
static int open_to_look(const sl_store *store, int *unknown) {
    char path[PATH_MAX];
    struct stat info;
    *unknown = 0;
    if (!name_of(store, path)) return -1;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) {
        *unknown = errno != ENOENT && errno != ELOOP;
        return -1;
    }
    if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode)) return fd;
    close(fd);
    return -1;
}

int sl_readers_each(const sl_store *store, uint64_t before, sl_reader_fn fn, void *ctx) {
    enum { AT_ONCE = 64 };
    int unknown;
    sl_superblock super;
    sl_reader_entry some[AT_ONCE];
    /* The commit is out before the table is read. */
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (sl_writable_super(store, &super) != SL_OK) return 0;
    const int fd = open_to_look(store, &unknown);
    if (fd < 0) return !unknown;
    for (size_t first = 0; first < ENTRIES; first += AT_ONCE) {
        if (pread(fd, some, sizeof some, (off_t)(first * SL_CACHE_LINE)) != (ssize_t)sizeof some) break;
        for (size_t i = 0; i < AT_ONCE; i++)
            if (some[i].since && some[i].since < before && memcmp(some[i].identity, super.identity, 16) == 0 &&
                is_locked(fd, first + i))
                fn(ctx, some[i].since, some[i].thread);
    }
    close(fd);
    return 1;
}

static void keep_oldest(void *ctx, uint64_t since, uint64_t thread) {
    uint64_t *oldest = ctx;
    (void)thread;
    if (since < *oldest) *oldest = since;
}

uint64_t sl_readers_oldest(const sl_store *store, uint64_t newest) {
    uint64_t oldest = newest;
    return sl_readers_each(store, newest, keep_oldest, &oldest) ? oldest : 0;
}
