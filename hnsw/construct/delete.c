/* sl_index_delete and sl_index_undelete. */
#include "hnsw/construct/reach.h"
#include "hnsw/construct/reclaim.h"
#include "hnsw/graph/ids.h"
#include "hnsw/graph/lives.h"
#include "hnsw/graph/publish.h"
#include "hnsw/graph/reserve.h"
#include "hnsw/graph/tombstones.h"

#include <stdlib.h>

/* Refuses ids[i], which is not in the index or stands twice in the list. */
static sl_status refuse_id(const uint64_t *ids, size_t i) {
    for (size_t j = 0; j < i; j++)
        if (ids[j] == ids[i])
            return sl_fail(SL_ENOTFOUND, "id %llu is given twice, as number %zu and %zu; give each once",
                           (unsigned long long)ids[i], j, i);
    return sl_fail(SL_ENOTFOUND,
                   "number %zu: id %llu is not in the index, or was deleted before; nothing was "
                   "deleted: leave it out",
                   i, (unsigned long long)ids[i]);
}

/* Refuses a list that has an id twice. */
static sl_status check_ids_differ(const sl_allocator *allocator, const uint64_t *ids, size_t n) {
    sl_status status = SL_OK;
    if (n < 2) return SL_OK;
    uint64_t *sorted = sl_ids_sorted(allocator, ids, n, &status);
    SL_TRY(status);
    size_t twice = 1;
    while (twice < n && sorted[twice] != sorted[twice - 1])
        twice++;
    const uint64_t id = twice < n ? sorted[twice] : SL_NO_ID;
    SL_FREE_ARRAY(allocator, sorted, n);
    if (id == SL_NO_ID) return SL_OK;
    size_t last = n;
    while (ids[--last] != id)
        ;
    return refuse_id(ids, last);
}

/* Lists the nodes of all ids. Errors: SL_ENOTFOUND: one is missing. */
static sl_status list_nodes(sl_index *index, const uint64_t *ids, size_t n, sl_node_list *nodes) {
    for (size_t i = 0; i < n; i++) {
        const size_t before = nodes->count;
        SL_TRY(sl_id_nodes(index, &index->graph, ids[i], nodes));
        if (nodes->count == before) return refuse_id(ids, i);
    }
    return check_ids_differ(&index->graph.allocator, ids, n);
}

/* Changes all nodes at once for readers. */
static void publish_nodes(sl_index *index, const sl_node_list *nodes,
                          void (*change)(sl_index *index, const sl_node_list *nodes)) {
    sl_publish_deleting(index);
    sl_publishing_lock(index);
    change(index, nodes);
    sl_version_publish(index);
    sl_publishing_unlock(index);
    sl_publish_deleted(index);
}

sl_status sl_index_delete(sl_index *index, const uint64_t *ids, size_t n) {
    if (!index || (n && !ids)) return sl_fail(SL_EINVAL, "index or ids is NULL");
    SL_TRY(sl_index_writable(index));
    if (n == 0) return SL_OK;
    sl_node_list nodes = {0};
    SL_TRY(sl_change_begin(index));
    sl_status status = sl_lives_reserve(index);
    if (status == SL_OK) status = list_nodes(index, ids, n, &nodes);
    /* The next change pays for these nodes, so that the delete can be taken back at once. */
    if (status == SL_OK) sl_reclaim_step(index, 0);
    if (status == SL_OK) status = sl_version_reserve(index, 1);
    if (status == SL_OK) {
        publish_nodes(index, &nodes, sl_nodes_delete);
        index->reclaim_owed += nodes.count;
    }
    sl_change_end(index);
    sl_node_list_free(&nodes, &index->graph.allocator);
    return status;
}

/* ---------------------------------------------------------------------------------------------------------------
 * Undeleting
 * ------------------------------------------------------------------------------------------------------------- */

/* The deletes of one id: the last one, by its epoch. */
typedef struct last_delete {
    uint64_t id, epoch;
} last_delete;

static int by_last_id(const void *a, const void *b) {
    const last_delete *left = a, *right = b;
    return left->id < right->id ? -1 : left->id > right->id;
}

/* The first deleted node from `from` on that this handle deleted and that still has its vector. Once a place was freed,
 * earlier deletes don't count: the last vector of an id may be gone, and an older one still there. */
static size_t next_deleted(const sl_index *index, size_t from) {
    const sl_graph *graph = &index->graph;
    for (; from < graph->n; from++)
        if (sl_is_deleted(graph, from) && graph->lives.nodes[from].died > index->freed_until &&
            graph->lives.nodes[from].born != SL_UNBORN && !sl_node_set_has(&index->leaving, from))
            break;
    return from;
}

static last_delete *find_last(last_delete *of, size_t n, uint64_t id) {
    const last_delete key = {id, 0};
    return bsearch(&key, of, n, sizeof *of, by_last_id);
}

/* Lists the nodes that the last deletes took. */
static sl_status list_deleted(sl_index *index, last_delete *of, size_t n, sl_node_list *nodes) {
    const sl_graph *graph = &index->graph;
    last_delete *found;
    for (size_t node = 0; (node = next_deleted(index, node)) < graph->n; node++)
        if ((found = find_last(of, n, sl_id_of(graph, (uint32_t)node))) && found->epoch < graph->lives.nodes[node].died)
            found->epoch = graph->lives.nodes[node].died;
    for (size_t i = 0; i < n; i++)
        if (!of[i].epoch)
            return sl_fail(SL_ENOTFOUND, "id %llu was not deleted by this handle, or its memory is used again; add it",
                           (unsigned long long)of[i].id);
    for (size_t node = 0; (node = next_deleted(index, node)) < graph->n; node++)
        if ((found = find_last(of, n, sl_id_of(graph, (uint32_t)node))) &&
            found->epoch == graph->lives.nodes[node].died)
            SL_TRY(sl_node_list_add(index, (uint32_t)node, nodes));
    return SL_OK;
}

static sl_status find_deleted(sl_index *index, const uint64_t *ids, size_t n, sl_node_list *nodes) {
    const sl_allocator *allocator = &index->graph.allocator;
    sl_node_list present = {0};
    sl_status status = sl_ids_nodes(index, ids, n, &present);
    if (status == SL_OK && present.count)
        status = sl_fail(SL_EEXIST, "id %llu is in the index; leave it out",
                         (unsigned long long)sl_id_of(&index->graph, present.nodes[0]));
    sl_node_list_free(&present, allocator);
    if (status == SL_OK && !index->graph.lives.nodes) status = sl_id_missing(ids[0]);
    last_delete *of = sl_mem_array(allocator, n, sizeof *of, &status);
    for (size_t i = 0; i < n && of; i++)
        of[i] = (last_delete){ids[i], 0};
    if (of) qsort(of, n, sizeof *of, by_last_id);
    if (status == SL_OK) status = list_deleted(index, of, n, nodes);
    if (of) SL_FREE_ARRAY(allocator, of, n);
    return status;
}

static void undelete_nodes(sl_index *index, const sl_node_list *nodes) {
    const uint64_t epoch = sl_epochs_now(&index->versions->epochs) + 1;
    for (size_t i = 0; i < nodes->count; i++) {
        sl_life_begin(index, nodes->nodes[i], epoch);
        sl_tombstone_flip(index, nodes->nodes[i]);
        sl_id_put(index, nodes->nodes[i]);
    }
    index->graph.deleted_count -= nodes->count;
    /* A chain of an id may lack its deleted vectors. */
    if (index->graph.multi) sl_ids_forget_now(index);
}

sl_status sl_index_undelete(sl_index *index, const uint64_t *ids, size_t n) {
    if (!index || (n && !ids)) return sl_fail(SL_EINVAL, "index or ids is NULL");
    SL_TRY(sl_index_writable(index));
    if (n == 0) return SL_OK;
    sl_node_list nodes = {0};
    SL_TRY(sl_change_begin(index));
    sl_status status = sl_version_reserve(index, 1);
    if (status == SL_OK) status = find_deleted(index, ids, n, &nodes);
    if (status == SL_OK) {
        publish_nodes(index, &nodes, undelete_nodes);
        /* Lists may have lost their links to a deleted vector. */
        index->unverified += nodes.count;
        if (sl_reach_settle(index) != SL_OK && index->log)
            index->log(index->log_ctx, SL_LOG_WARN, "reachability not proved for want of memory; save will");
    }
    sl_change_end(index);
    sl_node_list_free(&nodes, &index->graph.allocator);
    return status;
}
