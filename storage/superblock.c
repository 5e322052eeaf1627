#define _GNU_SOURCE
#include "storage/superblock.h"

#include "base/crc32c.h"

#include <assert.h>
#include <string.h>
#include <sys/random.h>

static const char magic[8] = "SLSUPER";
static_assert(sizeof(sl_superblock) == 512, "sl_superblock");
static_assert(sizeof(sl_writable_stamp) == 32, "sl_writable_stamp");

static uint32_t super_crc(const sl_superblock *super) {
    return sl_crc32c(0, super, offsetof(sl_superblock, crc32c));
}

static int is_whole(const sl_superblock *super) {
    return memcmp(super->magic, magic, sizeof magic) == 0 && super->crc32c == super_crc(super);
}

sl_status sl_writable_superblocks(uint8_t pages[SL_LIVE_HEAD], uint64_t unsummed) {
    sl_superblock super = {.sequence = 1, .epoch = 1, .unsummed = unsummed};
    memset(pages, 0, SL_LIVE_HEAD);
    memcpy(super.magic, magic, sizeof magic);
    if (getrandom(super.identity, sizeof super.identity, 0) != (ssize_t)sizeof super.identity)
        return sl_fail_errno("cannot get random numbers for the identity of", "the file");
    super.crc32c = super_crc(&super);
    memcpy(pages + SL_LIVE_PAGE, &super, sizeof super);
    return SL_OK;
}

sl_status sl_writable_format(uint8_t *section, const void *head, size_t size) {
    memset(section, 0, SL_LIVE_SIZE);
    memcpy(section + SL_LIVE_HEAD, head, size);
    return sl_writable_superblocks(section, 0);
}

sl_status sl_writable_super(const sl_store *store, sl_superblock *out) {
    const sl_file_section *section = sl_store_section(store, SL_SECTION_LIVE);
    *out = (sl_superblock){.sequence = 0};
    for (size_t i = 0; i < SL_SUPERBLOCKS; i++) {
        sl_superblock one;
        memcpy(&one, store->base + section->offset + i * SL_LIVE_PAGE, sizeof one);
        if (is_whole(&one) && one.sequence > out->sequence) *out = one;
    }
    if (out->sequence) return SL_OK;
    return sl_fail(SL_ECORRUPT, "%s: both superblocks are damaged; restore a copy of the file", store->path);
}

/* A new file has one superblock, and zeros in place of the other. */
int sl_writable_is_doubtful(const sl_store *store) {
    static const sl_superblock none;
    const sl_file_section *section = sl_store_section(store, SL_SECTION_LIVE);
    int whole = 1;
    for (size_t i = 0; i < SL_SUPERBLOCKS; i++) {
        sl_superblock one;
        memcpy(&one, store->base + section->offset + i * SL_LIVE_PAGE, sizeof one);
        whole = whole && (is_whole(&one) || memcmp(&one, &none, sizeof one) == 0);
    }
    return !whole;
}

sl_writable_stamp *sl_stamp_at(uint8_t *base, uint64_t section) {
    return (sl_writable_stamp *)(void *)(base + section + SL_LIVE_HEAD + SL_LIVE_HEAD_ROOM);
}

uint64_t sl_stamp_groups(const sl_store *store, const sl_superblock *super) {
    const sl_writable_stamp *stamp = sl_stamp_at(store->base, sl_store_section(store, SL_SECTION_LIVE)->offset);
    if (memcmp(stamp->identity, super->identity, sizeof stamp->identity) != 0) return 0;
    const uint64_t groups = __atomic_load_n(&stamp->groups, __ATOMIC_ACQUIRE);
    return __atomic_load_n(&stamp->epoch, __ATOMIC_ACQUIRE) == super->epoch ? groups : 0;
}

uint64_t sl_superblock_at(uint64_t section, const sl_superblock *super) {
    return section + super->sequence % SL_SUPERBLOCKS * SL_LIVE_PAGE;
}

sl_status sl_superblock_write(const sl_file_ops *ops, int fd, const char *path, uint64_t section,
                              sl_superblock *super) {
    super->sequence++;
    super->crc32c = super_crc(super);
    SL_TRY(sl_write_at(ops, fd, path, super, sizeof *super, sl_superblock_at(section, super)));
    return sl_sync_data(ops, fd, path);
}
