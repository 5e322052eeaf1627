#include "hnsw/graph/view.h"

#include "hnsw/graph/publish.h"
#include "storage/heal.h"

void sl_view_follow(const sl_index *index, sl_graph *view) {
    sl_writable_watch(index->store);
    sl_published facts;
    /* The words were read before, and a commit changes them all. */
    if (view->as_of && view->as_of == __atomic_load_n(&index->published->commit, __ATOMIC_ACQUIRE) &&
        __atomic_load_n(&index->published->seal, __ATOMIC_RELAXED))
        return;
    if (!sl_published_read_whole(index->published, &facts)) return;
    const sl_upper *upper = &view->upper;
    if (facts.n > view->capacity || facts.upper_count > upper->nodes_capacity ||
        facts.upper_rows > upper->rows_capacity || facts.dead > facts.n || facts.free > facts.dead ||
        !sl_published_has_entry(facts.entry, facts.n, facts.upper_count))
        return;
    /* A slot names a node beyond n: the two counts come from different syncs. Keep the old view. */
    if (facts.upper_count && upper->nodes[facts.upper_count - 1] >= facts.n) return;
    view->n = (size_t)facts.n;
    view->upper.count = (size_t)facts.upper_count;
    view->upper.rows = (size_t)facts.upper_rows;
    view->entry = facts.entry;
    view->next_id = facts.next_id;
    view->deleted_count = (size_t)facts.dead;
    view->free_count = (size_t)facts.free;
    view->as_of = facts.commit;
}
