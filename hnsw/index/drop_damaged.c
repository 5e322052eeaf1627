#include "base/params.h"
#include "hnsw/graph/arrays.h"
#include "hnsw/graph/checksums.h"
#include "hnsw/graph/ids.h"
#include "hnsw/graph/publish.h"
#include "hnsw/graph/reserve.h"
#include "hnsw/graph/tombstones.h"

#include <string.h>

/* A sound node whose rows can replace a damaged node's: a neighbour, or else any node. SL_NONE: there is none. */
static uint32_t find_replacement(const sl_graph *graph, uint32_t node) {
    const sl_layer layer = sl_layer_at(graph, 0);
    uint32_t known[2 * SL_MAX_M];
    size_t count = sl_links_known(&layer, sl_links(graph, node), known);
    for (size_t i = 0; i < count; i++)
        if (known[i] != node && sl_checksum_holds(graph, known[i])) return known[i];
    for (size_t other = 0; other < graph->n; other++)
        if (other != node && sl_checksum_holds(graph, (uint32_t)other)) return (uint32_t)other;
    return SL_NONE;
}

/* Deletes a damaged node and gives it another's rows. Walks still pass it, so it stays in the graph. Its id may stay
 * damaged, because a deleted node's id doesn't count. */
static void drop_node(sl_index *index, uint32_t node, uint32_t from) {
    if (!sl_is_deleted(&index->graph, node)) {
        sl_tombstone_flip(index, node);
        index->graph.deleted_count++;
    }
    for (sl_array_kind kind = 0; kind < SL_ARRAY_KINDS; kind++) {
        const sl_array *array = &index->graph.arrays[kind];
        uint8_t *row = sl_array_row(&index->graph, kind, node);
        if (!array->at || !(sl_array_lines[kind].flags & SL_ARRAY_COPIED)) continue;
        memcpy(row, sl_array_row(&index->graph, kind, from), array->size);
        sl_writable_renew(index->writer, row, array->size);
    }
    *sl_checksum_at(&index->graph, node) = sl_checksum_of(&index->graph, node);
    sl_writable_renew(index->writer, sl_checksum_at(&index->graph, node), sizeof(uint32_t));
    sl_writable_renew(index->writer, sl_id_at(&index->graph, node), sizeof(uint64_t));
}

static sl_status check_droppable(const sl_index *index) {
    SL_TRY(sl_index_writable(index));
    if (index->writer) return SL_OK;
    return sl_fail(SL_EUNSUPPORTED, "records of an index in memory have no checksums; open its file with writable set");
}

static sl_status drop_damaged(sl_index *index, size_t threads, size_t *dropped) {
    sl_checksums_found found = sl_checksums_check(&index->graph, threads, NULL, 0, NULL);
    *dropped = 0;
    if (!found.bad) return SL_OK;
    SL_TRY(sl_version_reserve(index, 1));
    SL_TRY(sl_lives_reserve(index));
    sl_publish_deleting(index);
    for (size_t node = found.node; node < index->graph.n && *dropped < found.bad; node++) {
        if (sl_checksum_holds(&index->graph, (uint32_t)node)) continue;
        uint32_t from = find_replacement(&index->graph, (uint32_t)node);
        if (from == SL_NONE) break;
        drop_node(index, (uint32_t)node, from);
        ++*dropped;
    }
    sl_publish_deleted(index);
    sl_ids_forget(index);
    sl_version_publish_now(index);
    if (*dropped == found.bad) return SL_OK;
    return sl_fail(SL_ECORRUPT, "%s: every record is damaged; build the index again from its vectors",
                   index->store->path);
}

sl_status sl_index_drop_damaged(sl_index *index, size_t threads, size_t *dropped) {
    if (!index || !dropped) return sl_fail(SL_EINVAL, "index or dropped is NULL");
    SL_TRY(check_droppable(index));
    SL_TRY(sl_change_begin(index));
    sl_status status = drop_damaged(index, threads, dropped);
    sl_change_end(index);
    return status;
}
