#include "hnsw/index/sync.h"

#include "hnsw/construct/reach.h"
#include "hnsw/construct/reclaim.h"
#include "hnsw/graph/publish.h"
#include "hnsw/graph/reserve.h"
#include "hnsw/graph/version.h"
#include "hnsw/search/settings.h"

#include <string.h>

static void store_bytes(sl_index *index, void *to, const void *from, size_t size) {
    if (memcmp(to, from, size) == 0) return;
    memcpy(to, from, size);
    sl_index_touch(index, to, size);
}

/* Writes the facts to the head page and commits. A commit without a change has no number. */
static sl_status commit_facts(sl_index *index, sl_published *facts) {
    sl_published *to = sl_published_in_file(index);
    const int counts = index->file_lives.nodes != NULL;
    facts->commit = index->commit;
    facts->free = counts ? index->graph.free_count : 0;
    if (counts) sl_published_seal(facts, index->commit);
    if (counts && (index->writer->dirty.marked || memcmp(to, facts, sizeof *facts) != 0))
        sl_published_seal(facts, index->commit + 1);
    store_bytes(index, to, facts, sizeof *facts);
    SL_TRY(sl_writable_commit(index->writer));
    index->commit = facts->commit;
    return SL_OK;
}

/* Lists of a sweep that a sync goes on with. */
enum { LISTS = 65536 };

sl_status sl_sync(sl_index *index) {
    /* Published nodes can be reached. If memory for the proof is missing, or a sweep is long, the proof is left to a
     * later sync, and the additions are made durable anyway. */
    sl_reclaim_prove(index, LISTS);
    if (sl_reach_settle(index) == SL_ENOMEM && index->log)
        index->log(index->log_ctx, SL_LOG_WARN, "reachability not proved for want of memory; the next sync will");
    sl_published facts = sl_published_of(index, &index->graph);
    if (index->graph.tuned_count) {
        const size_t size = index->graph.tuned_count * sizeof *index->graph.tuned;
        SL_TRY(sl_writable_reserve(index->writer, sl_section_in_file(index, SL_SECTION_TUNED), size));
        store_bytes(index, sl_section_in_file(index, SL_SECTION_TUNED), index->graph.tuned, size);
    }
    sl_index_fence(index);
    return commit_facts(index, &facts);
}

sl_status sl_index_sync(sl_index *index) {
    if (!index) return sl_fail(SL_EINVAL, "index is NULL");
    /* This check comes first: in persistent memory, stores are out at once. */
    SL_TRY(sl_index_writable(index));
    if (!index->writer)
        return sl_fail(SL_EUNSUPPORTED,
                       "the index is in memory; save it with room, and open that file with writable set");
    SL_TRY(sl_change_begin(index));
    sl_status status = sl_sync(index);
    sl_change_end(index);
    return status;
}
