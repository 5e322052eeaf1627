#include "hnsw/index/recover.h"

#include "hnsw/construct/link_rows.h"
#include "hnsw/graph/links.h"
#include "hnsw/graph/publish.h"
#include "hnsw/graph/tombstones.h"
#include "hnsw/graph/upper.h"

/* Removes double links from the lists that the crash may have interrupted: those of the node's neighbours. */
static void dedupe_neighbours(const sl_index *index, uint32_t node) {
    uint32_t slot, top = sl_level_and_slot(&index->graph, node, &slot);
    for (uint32_t level = 0; level <= top && level <= SL_MAX_LEVEL; level++) {
        sl_layer layer = sl_layer_at(&index->graph, level);
        const uint32_t *own = sl_layer_links(&layer, level ? slot : node);
        uint32_t known[2 * SL_MAX_M];
        size_t count = own ? sl_links_known(&layer, own, known) : 0;
        for (size_t i = 0; i < count; i++) {
            uint32_t *links = sl_layer_links(&layer, known[i]);
            if (links) sl_links_dedupe(index, links, layer.degree);
        }
    }
}

static sl_status relink_nodes(sl_index *index, size_t linked) {
    for (size_t node = linked; node < index->graph.n; node++)
        dedupe_neighbours(index, (uint32_t)node);
    SL_TRY(sl_build_relink(index, linked));
    index->unverified += index->graph.n - linked;
    sl_publish_linked(index, index->graph.n);
    return SL_OK;
}

sl_status sl_index_recover(sl_index *index) {
    sl_published facts = sl_published_read(sl_published_in_file(index));
    const sl_upper *upper = &index->graph.upper;
    sl_upper_truncate(&index->graph, index->graph.n);
    if (facts.deleting) {
        index->graph.deleted_count = sl_tombstones_count(&index->graph);
        sl_publish_deleted(index);
    }
    int whole = facts.linked == index->graph.n && !facts.deleting;
    if (facts.linked < index->graph.n) SL_TRY(relink_nodes(index, (size_t)facts.linked));
    return whole && upper->count == facts.upper_count && upper->rows == facts.upper_rows ? SL_OK : sl_index_sync(index);
}
