#define _GNU_SOURCE
#include "storage/locks.h"
#include "storage/writable.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

/* The longest record. */
#define RUN ((uint64_t)1 << 20)
/* Touched lines less than this apart are written together with the gap. */
#define GAP ((uint64_t)1 << 10)

typedef sl_status (*run_fn)(sl_writable *file, uint64_t offset, uint64_t size);

/* Calls `run` for each run of touched lines in [from, to). Gaps of less than `gap` bytes don't end a run. */
static sl_status for_each_run(sl_writable *file, uint64_t from, uint64_t to, uint64_t gap, run_fn run) {
    uint64_t begin = from, end = from, offset = from, size;
    while (offset < to && (size = sl_dirty_next(&file->dirty, &offset, RUN)) != 0 && offset < to) {
        if (size > to - offset) size = to - offset;
        if (end > begin && (offset - end >= gap || offset + size - begin > RUN)) {
            SL_TRY(run(file, begin, end - begin));
            end = begin;
        }
        if (end == begin) begin = offset;
        end = offset += size;
    }
    return end > begin ? run(file, begin, end - begin) : SL_OK;
}

/* Reserves blocks for bytes that will be written. A full device then fails here, before the log records the bytes. A
 * file system that can't reserve blocks reports a full device at the write. */
static sl_status set_aside(sl_writable *file, uint64_t offset, uint64_t size) {
    for (uint64_t piece = offset / SL_WRITABLE_PIECE; piece <= (offset + size - 1) / SL_WRITABLE_PIECE; piece++) {
        if (file->allocated[piece / 64] >> (piece % 64) & 1) continue;
        uint64_t at = piece * SL_WRITABLE_PIECE,
                 length = file->size - at < SL_WRITABLE_PIECE ? file->size - at : SL_WRITABLE_PIECE;
        if (file->ops.allocate(file->ops.ctx, file->fd, at, length) != 0 && errno != EOPNOTSUPP && errno != EINVAL)
            return sl_fail_errno("cannot set space aside in", file->store->path);
        file->allocated[piece / 64] |= (uint64_t)1 << (piece % 64);
    }
    return SL_OK;
}

sl_status sl_writable_reserve(sl_writable *file, const void *at, size_t size) {
    return size ? set_aside(file, (uint64_t)((const uint8_t *)at - file->base), size) : SL_OK;
}

void sl_writable_renew(sl_writable *file, const void *at, size_t size) {
    sl_writable_touch(file, at, size);
    if (!file->updater || !size) return;
    uint64_t first = (uint64_t)((const uint8_t *)at - file->base) / SL_SUMMED_PAGE;
    uint64_t last = ((uint64_t)((const uint8_t *)at - file->base) + size - 1) / SL_SUMMED_PAGE;
    for (uint64_t page = first; page <= last; page++)
        sl_dirty_mark(&file->renewed, page * SL_SUMMED_PAGE, 1);
}

static int is_renewed(const sl_writable *file, uint64_t page) {
    uint64_t at = page * SL_SUMMED_PAGE;
    return sl_dirty_next(&file->renewed, &at, SL_DIRTY_LINE) != 0 && at == page * SL_SUMMED_PAGE;
}

/* The checksum of the page that holds the touched bytes [offset, offset + size). */
static uint32_t sum_page(sl_writable *file, uint64_t offset, uint64_t size, uint64_t *word) {
    uint64_t page = offset / SL_SUMMED_PAGE;
    uint32_t sum;
    sl_page_updater_change(file->updater, offset, file->base + offset, (size_t)size, word, &sum);
    if (file->renewed.marked && is_renewed(file, page))
        return sl_page_sum(0, file->base + page * SL_SUMMED_PAGE, SL_SUMMED_PAGE);
    return sum;
}

/* Writes the checksums of a run's pages into the mapping. They lie behind all pages that have one. */
static sl_status sum_run(sl_writable *file, uint64_t offset, uint64_t size) {
    for (uint64_t some, word; size; offset += some, size -= some) {
        uint64_t left = SL_SUMMED_PAGE - offset % SL_SUMMED_PAGE;
        some = size < left ? size : left;
        SL_TRY(set_aside(file, sl_page_sum_at(&file->updater->sums, offset), sizeof(uint32_t)));
        uint32_t sum = sum_page(file, offset, some, &word);
        uint32_t *to = (uint32_t *)(void *)(file->base + file->updater->sums.words) + word;
        if (*to == sum) continue;
        *to = sum;
        sl_writable_touch(file, to, sizeof *to);
    }
    return SL_OK;
}

static sl_status update_sums(sl_writable *file) {
    if (!file->updater) return SL_OK;
    const sl_page_sums *sums = &file->updater->sums;
    sl_page_updater_begin(file->updater);
    SL_TRY(for_each_run(file, 0, sums->words, SL_SUMMED_PAGE, sum_run));
    return for_each_run(file, sums->head, sums->head + SL_LIVE_PAGE, SL_SUMMED_PAGE, sum_run);
}

/* Nobody finds changes in a file that has lost its name, and the log of that name may be another file's. */
static sl_status check_name_of(const sl_writable *file) {
    if (sl_store_has_name(file->store)) return SL_OK;
    return sl_fail(SL_EBUSY,
                   "%s: was renamed, removed or replaced while it was open to be written; what was synced is in "
                   "that file, and nothing more is written: open the index again and make the change anew",
                   file->store->path);
}

static sl_status log_run(sl_writable *file, uint64_t offset, uint64_t size) {
    return sl_redo_put(file->redo, offset, file->base + offset, size);
}

static sl_status write_run(sl_writable *file, uint64_t offset, uint64_t size) {
    return sl_write_at(&file->ops, file->fd, file->store->path, file->base + offset, (size_t)size, offset);
}

/* Bytes of the group's records. */
static uint64_t payload_of(sl_writable *file) {
    uint64_t payload = 0, offset = 0, size;
    while ((size = sl_dirty_next(&file->dirty, &offset, RUN)) != 0) {
        if (size > file->size - offset) size = file->size - offset;
        payload += sizeof(sl_redo_record) + size;
        offset += size;
    }
    return payload;
}

/* Sets the stamp before pages are summed and logged, so that the log and the page's checksum cover it. */
static void stamp_head_page(sl_writable *file) {
    sl_writable_stamp *to = sl_stamp_at(file->base, file->section);
    *to = (sl_writable_stamp){.epoch = file->redo->epoch, .groups = file->redo->groups + 1};
    memcpy(to->identity, file->super.identity, sizeof to->identity);
    sl_writable_touch(file, to, sizeof *to);
}

static sl_status write_log(sl_writable *file) {
    SL_TRY(sl_redo_begin(file->redo, payload_of(file)));
    SL_TRY(for_each_run(file, 0, file->size, 0, log_run));
    sl_status status = sl_redo_commit(file->redo);
    if (!file->redo->unsure) return status;
    return sl_fail_in(status, "%s: whether the change is in shows when the file is opened again", file->store->path);
}

/* Writes the head page last, so that a reader of the new head page finds what it speaks of. Gaps between touched lines
 * are the same in mapping and file, and writing one again costs less than another call. */
static sl_status write_through(sl_writable *file) {
    uint64_t head = file->section + SL_LIVE_HEAD, behind = head + SL_LIVE_PAGE;
    SL_TRY(for_each_run(file, 0, head, GAP, write_run));
    SL_TRY(for_each_run(file, behind, file->size, GAP, write_run));
    return for_each_run(file, head, behind, GAP, write_run);
}

/* Nothing is dirty, so the private pages equal the file's: drop them. */
static void give_back_pages(sl_writable *file) {
    (void)madvise(file->base, (size_t)file->size, MADV_DONTNEED);
    file->own_pages = 0;
}

/* If another file has the name, the log of that name may be the other file's. */
static int is_replaced(const sl_writable *file) {
    struct stat info;
    return !sl_store_has_name(file->store) && lstat(file->store->resolved, &info) == 0;
}

static sl_status checkpoint_file(sl_writable *file) {
    file->failed = 1; /* until the checkpoint is complete */
    SL_TRY(sl_sync_data(&file->ops, file->fd, file->store->path));
    if (sl_store_has_name(file->store)) SL_TRY(sl_redo_remake(file->redo, file->fd));
    file->super.epoch++;
    SL_TRY(sl_superblock_write(&file->ops, file->fd, file->store->path, file->section, &file->super));
    if (is_replaced(file))
        sl_redo_leave(file->redo);
    else
        SL_TRY(sl_redo_reset(file->redo, file->super.epoch));
    file->failed = 0;
    return SL_OK;
}

sl_status sl_writable_commit(sl_writable *file) {
    SL_TRY(sl_writable_check(file));
    SL_TRY(check_name_of(file));
    sl_writable_fence(file);
    if (file->direct) return SL_OK;
    if (!file->dirty.marked) return SL_OK;
    /* A log that has lost its name may alone hold the last commits, so a checkpoint first puts them into the file. */
    if (!sl_redo_is_there(file->redo)) SL_TRY(checkpoint_file(file));
    stamp_head_page(file);
    SL_TRY(for_each_run(file, 0, file->size, 0, set_aside));
    SL_TRY(update_sums(file));
    SL_TRY(write_log(file));
    sl_status status = write_through(file);
    if (status != SL_OK) {
        file->failed = 1;
        return sl_fail_in(status, "%s: the change is in the log, and is made when the file is opened again",
                          file->store->path);
    }
    file->own_pages += file->dirty.marked;
    sl_dirty_clear(&file->dirty);
    if (file->updater) sl_dirty_clear(&file->renewed);
    if (file->own_pages > SL_LIVE_OWN_PAGES) give_back_pages(file);
    return file->redo->end > file->log_bytes ? sl_writable_checkpoint(file) : SL_OK;
}

sl_status sl_writable_checkpoint(sl_writable *file) {
    SL_TRY(sl_writable_check(file));
    if (file->direct || file->redo->end == 0) return SL_OK;
    /* A snapshot needs the log until it's complete. */
    if (sl_lock_byte(file->fd, F_WRLCK, SL_LIVE_CHECKPOINT) != 0 && sl_lock_is_taken()) return SL_OK;
    sl_status status = checkpoint_file(file);
    if (status == SL_OK) give_back_pages(file);
    (void)sl_lock_byte(file->fd, F_UNLCK, SL_LIVE_CHECKPOINT);
    return status;
}
