/* sl_index_compact. */
#include "base/clock.h"
#include "base/params.h"
#include "hnsw/construct/reclaim.h"
#include "hnsw/construct/renumber.h"
#include "hnsw/graph/arrays.h"
#include "hnsw/graph/free_nodes.h"
#include "hnsw/graph/ids.h"
#include "hnsw/graph/reserve.h"
#include "hnsw/graph/version.h"
#include "hnsw/index/sync.h"

/* Lists that are looked at in one step, and places; the pause before the next look at searches that hold places, in ns.
 */
enum { LISTS = 2048, PLACES = 65536, PAUSE = 1000000 };

void sl_compact_params_init_sized(sl_compact_params *params, size_t struct_size) {
    const sl_compact_params mine = {.struct_size = sizeof mine};
    sl_params_defaults(params, struct_size, &mine, sizeof mine);
}

/* Takes one step. *left becomes the number of vectors that were deleted up to the epoch and are still in the graph.
 * *waits: 1: searches that began earlier hold them. In a file they wait for a commit, too. */
static sl_status take_step(sl_index *index, uint64_t until, size_t *left, int *waits) {
    SL_TRY(sl_change_begin(index));
    sl_status status = sl_reclaim_some(index, LISTS, waits);
    const uint64_t commit = index->commit;
    if (status == SL_OK && *waits && index->writer) status = sl_sync(index);
    if (index->commit != commit) *waits = 0;
    *left = sl_reclaim_left(index, until);
    sl_change_end(index);
    return status;
}

/* Later deletes are left to others: they may never end. */
static sl_status take_deleted_out(sl_index *index, sl_progress *progress) {
    const uint64_t until = sl_epochs_now(&index->versions->epochs);
    size_t left = SIZE_MAX, before = 0;
    int waits = 0;
    for (int first = 1; left; first = 0) {
        SL_TRY(take_step(index, until, &left, &waits));
        if (first) progress->total = before = left;
        sl_progress_step(progress, before > left ? before - left : 0);
        before = left;
        if (sl_progress_cancelled(progress)) return sl_progress_end(progress);
        if (waits) sl_pause_ns(PAUSE);
    }
    return SL_OK;
}

/* Leaves the free places out of the arrays, and gives their memory back. */
static sl_status trim(sl_index *index) {
    SL_TRY(sl_change_begin(index));
    sl_renumber_compact(index, 0);
    sl_status status = sl_capacity_trim(index);
    if (status == SL_OK) sl_ids_forget(index);
    sl_change_end(index);
    return status;
}

/* Gives blocks back that hold nothing but the rows of free places. */
static void punch_places(sl_index *index, size_t first, size_t n) {
    for (sl_array_kind kind = 0; kind < SL_ARRAY_KINDS; kind++) {
        const int zeros = kind == SL_ARRAY_IDS || (sl_array_lines[kind].flags & SL_ARRAY_MOVED);
        if (!zeros || kind == SL_ARRAY_LINKS) continue;
        const sl_span rows = sl_array_span(&index->graph, kind, first, n);
        if (rows.size) sl_writable_punch(index->writer, rows.at, rows.size);
    }
}

/* The same for the free places of a range. */
static void punch_range(sl_index *index, sl_range range) {
    size_t first = sl_node_set_next(&index->free, range), end;
    for (; first < range.end; first = sl_node_set_next(&index->free, (sl_range){end, range.end})) {
        for (end = first + 1; end < range.end && sl_node_set_has(&index->free, end);)
            end++;
        punch_places(index, first, end - first);
    }
}

/* Gives file space back, in steps. */
static sl_status punch_file(sl_index *index, sl_progress *progress) {
    for (size_t first = 0, n = 1; first < n; first += PLACES) {
        SL_TRY(sl_change_begin(index));
        n = index->graph.n;
        sl_status status = sl_sync(index);
        if (status == SL_OK) status = sl_writable_checkpoint(index->writer);
        if (status == SL_OK) punch_range(index, (sl_range){first, n < first + PLACES ? n : first + PLACES});
        sl_change_end(index);
        SL_TRY(status);
        if (sl_progress_cancelled(progress)) return sl_progress_end(progress);
    }
    return SL_OK;
}

sl_status sl_index_compact(sl_index *index, const sl_compact_params *params) {
    sl_compact_params mine;
    sl_progress progress;
    if (!index) return sl_fail(SL_EINVAL, "index is NULL");
    sl_compact_params_init(&mine);
    SL_TRY(sl_params_in(&mine, sizeof mine, params, "sl_compact_params_init"));
    SL_TRY(sl_index_writable(index));
    if (index->writer && !index->file_lives.nodes)
        return sl_fail(SL_EUNSUPPORTED,
                       "%s: persistent memory that is written directly, and files of earlier versions, "
                       "keep their deleted vectors; make the file anew with 'shortlist rebuild' or "
                       "sl_index_rebuild",
                       index->store->path);
    sl_progress_start(&progress, mine.progress, mine.progress_ctx, 0);
    SL_TRY(take_deleted_out(index, &progress));
    SL_TRY(index->writer ? punch_file(index, &progress) : trim(index));
    (void)sl_progress_end(&progress);
    return SL_OK;
}
