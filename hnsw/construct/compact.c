/* sl_index_compact. */
#include "base/clock.h"
#include "base/params.h"
#include "hnsw/construct/reclaim.h"
#include "hnsw/construct/renumber.h"
#include "hnsw/graph/ids.h"
#include "hnsw/graph/reserve.h"
#include "hnsw/graph/version.h"

/* Lists that are looked at in one step, and the pause before the next look at searches that hold places, in ns. */
enum { LISTS = 2048, PAUSE = 1000000 };

void sl_compact_params_init_sized(sl_compact_params *params, size_t struct_size) {
    const sl_compact_params mine = {.struct_size = sizeof mine};
    sl_params_defaults(params, struct_size, &mine, sizeof mine);
}

/* Takes one step. *left becomes the number of deleted vectors that are still in the graph. *waits: 1: searches that
 * began earlier hold them. */
static sl_status take_step(sl_index *index, size_t *left, int *waits) {
    SL_TRY(sl_change_begin(index));
    sl_status status = sl_reclaim_some(index, LISTS, waits);
    *left = sl_reclaim_left(index);
    sl_change_end(index);
    return status;
}

static sl_status take_deleted_out(sl_index *index, sl_progress *progress) {
    size_t left = SIZE_MAX, before = 0;
    int waits = 0;
    for (int first = 1; left; first = 0) {
        SL_TRY(take_step(index, &left, &waits));
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

sl_status sl_index_compact(sl_index *index, const sl_compact_params *params) {
    sl_compact_params mine;
    sl_progress progress;
    if (!index) return sl_fail(SL_EINVAL, "index is NULL");
    sl_compact_params_init(&mine);
    SL_TRY(sl_params_in(&mine, sizeof mine, params, "sl_compact_params_init"));
    SL_TRY(sl_index_writable(index));
    if (index->writer)
        return sl_fail(SL_EUNSUPPORTED, "a file that is written in place keeps its deleted vectors; make it anew with "
                                        "'shortlist rebuild' or sl_index_rebuild");
    sl_progress_start(&progress, mine.progress, mine.progress_ctx, 0);
    SL_TRY(take_deleted_out(index, &progress));
    SL_TRY(trim(index));
    (void)sl_progress_end(&progress);
    return SL_OK;
}
