#define _GNU_SOURCE
#include "storage/origin.h"

#include "base/clock.h"
#include "base/crc32c.h"
#include "storage/superblock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* Nanoseconds between two tries to open a file that another handle is changing. */
enum { WAIT_PAUSE = 5000000 };

#define OPEN_AGAIN "open it again and make the change anew, or save under another name"

static size_t origin_bytes(const char *path) {
    return sizeof(sl_origin) + strlen(path) + 1;
}

/* ---------------------------------------------------------------------------------------------------------------
 * Fingerprints
 * ------------------------------------------------------------------------------------------------------------- */

static uint32_t crc_of_supers(const uint8_t *first, const uint8_t *second) {
    return sl_crc32c(sl_crc32c(0, first, sizeof(sl_superblock)), second, sizeof(sl_superblock));
}

sl_fingerprint sl_fingerprint_of(const sl_file_header *header, const sl_section_source *sections) {
    sl_fingerprint print = {header->crc32c, 0};
    for (uint32_t i = 0; i < header->section_count; i++) {
        const uint8_t *pages = sections[i].data;
        if (sections[i].kind == SL_SECTION_LIVE) print.supers = crc_of_supers(pages, pages + SL_LIVE_PAGE);
    }
    return print;
}

static int read_all(int fd, void *to, size_t size, uint64_t offset) {
    ssize_t got;
    do
        got = pread(fd, to, size, (off_t)offset);
    while (got < 0 && errno == EINTR);
    return got == (ssize_t)size;
}

/* Nothing in the file is trusted. A file that can't be read counts as another one. */
static int read_fingerprint(int fd, sl_fingerprint *out) {
    sl_file_header header;
    uint8_t pages[SL_SUPERBLOCKS][sizeof(sl_superblock)];
    if (!read_all(fd, &header, sizeof header, 0)) return 0;
    *out = (sl_fingerprint){header.crc32c, 0};
    for (uint32_t i = 0; i < header.section_count && i < SL_MAX_SECTIONS; i++) {
        if (header.sections[i].kind != SL_SECTION_LIVE) continue;
        for (size_t page = 0; page < SL_SUPERBLOCKS; page++)
            if (!read_all(fd, pages[page], sizeof pages[page], header.sections[i].offset + page * SL_LIVE_PAGE))
                return 0;
        out->supers = crc_of_supers(pages[0], pages[1]);
    }
    return 1;
}

/* ---------------------------------------------------------------------------------------------------------------
 * The origin
 * ------------------------------------------------------------------------------------------------------------- */

static sl_status fail_replaced(const char *path) {
    return sl_fail(SL_EBUSY, "%s: was replaced or changed by another since it was opened; " OPEN_AGAIN, path);
}

/* The print of the store's own copy: a reader goes on with it even if the file is being replaced. */
static sl_fingerprint print_of(const sl_store *store) {
    const sl_file_section *live = sl_store_section(store, SL_SECTION_LIVE);
    sl_fingerprint print = {store->header.crc32c, 0};
    if (!live) return print;
    const uint8_t *pages = sl_store_data(store, live);
    print.supers = crc_of_supers(pages, pages + SL_LIVE_PAGE);
    return print;
}

sl_status sl_origin_make(const sl_store *store, const sl_allocator *allocator, sl_origin **out) {
    const char *path = store->resolved;
    void *block;
    *out = NULL;
    SL_TRY(sl_mem_alloc(allocator, origin_bytes(path), &block));
    sl_origin *origin = block;
    *origin = (sl_origin){.device = store->device,
                          .inode = store->inode,
                          .print = print_of(store),
                          .mapped = store->fd < 0 && !store->healed,
                          .access = store->access,
                          .claim = -1};
    memcpy(origin->path, path, strlen(path) + 1);
    *out = origin;
    return SL_OK;
}

/* Unlocks first: children of fork() share the lock and would keep it. */
static void let_go(sl_origin *origin) {
    if (origin->claim < 0) return;
    if (origin->owner == (int)getpid()) (void)flock(origin->claim, LOCK_UN);
    close(origin->claim);
    origin->claim = -1;
}

void sl_origin_free(sl_origin *origin, const sl_allocator *allocator) {
    if (!origin) return;
    let_go(origin);
    sl_mem_free(allocator, origin, origin_bytes(origin->path));
}

static int is_at(const sl_origin *origin, const struct stat *info) {
    return (uint64_t)info->st_dev == origin->device && (uint64_t)info->st_ino == origin->inode;
}

sl_status sl_origin_claim(sl_origin *origin, const sl_store *store) {
    const sl_file_ops ops = sl_file_ops_of(NULL);
    struct stat info;
    int fd = sl_open_retrying(&ops, origin->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
    if (fd < 0) return sl_fail_errno("cannot open", origin->path);
    sl_status status = sl_lock_file(fd, LOCK_EX, origin->path);
    /* NFS locks a file exclusively only if it's open for writing. */
    if (status == SL_EUNSUPPORTED && errno == EBADF) {
        close(fd);
        fd = sl_open_retrying(&ops, origin->path, O_RDWR | O_CLOEXEC | O_NONBLOCK, 0);
        if (fd < 0)
            return sl_fail_errno("cannot open to be written, as an exclusive lock needs over NFS,", origin->path);
        status = sl_lock_file(fd, LOCK_EX, origin->path);
    }
    /* The last holder of the lock may have put another file there. */
    if (status == SL_OK && (stat(origin->path, &info) != 0 || !is_at(origin, &info)))
        status = sl_fail(SL_EBUSY, "%s: was replaced while it was opened; open it again", origin->path);
    if (status != SL_OK) {
        close(fd);
        return status;
    }
    origin->claim = fd;
    origin->owner = (int)getpid();
    /* A writer may have come and gone since the file was opened. */
    origin->print = print_of(store);
    return SL_OK;
}

static int is_mine(const sl_origin *origin, const char *target) {
    return origin && strcmp(origin->path, target) == 0;
}

int sl_origin_is(const sl_origin *origin, const char *path) {
    char target[PATH_MAX];
    return origin && realpath(path, target) && is_mine(origin, target);
}

static int is_claimed(const sl_origin *origin) {
    return origin->claim >= 0 && origin->owner == (int)getpid();
}

int sl_origin_claims(sl_origin *origin, const char *target) {
    if (!is_mine(origin, target)) return 0;
    sl_spin_lock_owned(&origin->lock);
    int claims = is_claimed(origin);
    sl_spin_unlock(&origin->lock);
    return claims;
}

static sl_status check_unchanged(const sl_origin *origin, const char *target, int fd) {
    struct stat info;
    sl_fingerprint print;
    if (origin->claim >= 0 && origin->owner != (int)getpid())
        return sl_fail(SL_EBUSY,
                       "%s: was opened to be changed by process %d, which this one was forked from; open it "
                       "again here",
                       target, origin->owner);
    if (stat(target, &info) != 0) return errno == ENOENT ? SL_OK : sl_fail_errno("cannot look at", target);
    if (!is_at(origin, &info)) return fail_replaced(target);
    if (origin->mapped) return SL_OK;
    if (fd < 0 || !read_fingerprint(fd, &print) || print.header != origin->print.header ||
        print.supers != origin->print.supers)
        return fail_replaced(target);
    return SL_OK;
}

sl_status sl_origin_check(sl_origin *origin, const char *target, int fd) {
    if (!is_mine(origin, target)) return SL_OK;
    sl_spin_lock_owned(&origin->lock);
    sl_status status = check_unchanged(origin, target, fd);
    sl_spin_unlock(&origin->lock);
    return status;
}

sl_status sl_successor_of(sl_origin *origin, const char *target, int fd, sl_successor *out) {
    struct stat info;
    *out = (sl_successor){.claim = -1};
    if (!is_mine(origin, target)) return SL_OK;
    if (fstat(fd, &info) != 0) return sl_fail_errno("cannot look at the file that replaces", target);
    /* The lock belongs to the open file, which both descriptors share. */
    if (sl_origin_claims(origin, target) && (out->claim = fcntl(fd, F_DUPFD_CLOEXEC, 0)) < 0)
        return sl_fail_errno("cannot keep open the file that replaces", target);
    out->expected = 1;
    out->device = (uint64_t)info.st_dev;
    out->inode = (uint64_t)info.st_ino;
    return SL_OK;
}

void sl_successor_settle(sl_origin *origin, sl_successor *successor, sl_fingerprint print) {
    if (!successor->expected) return;
    sl_spin_lock_owned(&origin->lock);
    let_go(origin);
    origin->claim = successor->claim;
    origin->device = successor->device;
    origin->inode = successor->inode;
    origin->print = print;
    origin->mapped = 0;
    sl_spin_unlock(&origin->lock);
    *successor = (sl_successor){.claim = -1};
}

void sl_successor_drop(sl_successor *successor) {
    if (successor->claim >= 0) close(successor->claim);
    *successor = (sl_successor){.claim = -1};
}

/* ---------------------------------------------------------------------------------------------------------------
 * Waiting
 * ------------------------------------------------------------------------------------------------------------- */

sl_waiting sl_waiting_for(double seconds, sl_progress_fn tell, void *ctx) {
    const double most = 1e9; /* seconds; their nanoseconds fit an int64 */
    return (sl_waiting){sl_now_ns() + (int64_t)((seconds < most ? seconds : most) * 1e9), tell, ctx};
}

int sl_wait_more(const sl_waiting *waiting, sl_status *status) {
    if (sl_now_ns() >= waiting->until) return 0;
    if (waiting->tell && waiting->tell(waiting->ctx, 0, 0)) {
        *status = sl_fail(SL_ECANCELED, "cancelled while another changed the file");
        return 0;
    }
    sl_pause_ns(WAIT_PAUSE);
    return 1;
}
