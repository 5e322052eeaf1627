/* sl_index_get_storage: the medium and the pages of an index. */
#define _POSIX_C_SOURCE 200809L
#include "base/params.h"
#include "hnsw/graph/version.h"
#include "hnsw/place/dram_copy.h"
#include "hnsw/place/numa_place.h"
#include "storage/heal.h"

#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

static sl_mapping mapping_of(const sl_index *index) {
    if (index->graph.place == SL_PLACE_DRAM) return SL_MAPPING_MEMORY;
    if (sl_index_is_direct(index)) return SL_MAPPING_DIRECT;
    return index->store->detached ? SL_MAPPING_PRIVATE : SL_MAPPING_SHARED;
}

/* Bytes of the log. The log of another process may be emptied at any time, so a reader asks stat. */
static uint64_t log_bytes(const sl_index *index) {
    char path[PATH_MAX];
    struct stat log;
    if (index->writer) return index->writer->direct ? 0 : index->writer->redo->end;
    return sl_redo_name(index->store->resolved, path) == SL_OK && stat(path, &log) == 0 ? (uint64_t)log.st_size : 0;
}

static sl_status fill_live(const sl_index *index, sl_index_storage *out) {
    sl_superblock super;
    if (index->writer)
        super = index->writer->super;
    else
        SL_TRY(sl_writable_super(index->store, &super));
    out->room = index->store->header.room;
    out->bytes_log = log_bytes(index);
    out->log_lost = !index->writer && sl_writable_check_settled(index->store) == SL_ECORRUPT;
    out->recoveries = super.recoveries;
    out->recovered_groups = super.recovered_groups;
    out->recovered_bytes = super.recovered_bytes;
    return SL_OK;
}

sl_status sl_index_get_storage(const sl_index *index, sl_index_storage *out) {
    if (!index) return sl_fail(SL_EINVAL, "index is NULL");
    SL_TRY(sl_params_check_out(out, "sl_index_storage"));
    sl_reading reading;
    const sl_graph *graph = sl_reading_begin(index, &reading);
    sl_index_storage mine = {.place = graph->place,
                             .mapping = mapping_of(index),
                             .dax = index->store && index->store->dax,
                             .writable = graph->place == SL_PLACE_DRAM || index->writer,
                             .record_bytes = graph->record.pitch};
    sl_span arrays[SL_ARRAY_KINDS];
    sl_pages pages;
    size_t count = sl_placed_arrays(graph, arrays);
    for (size_t i = 0; i < count; i++)
        mine.bytes_layer0 += arrays[i].size;
    mine.pages_known = sl_pages_count(arrays, count, &pages);
    mine.page_size = pages.page_size;
    mine.bytes_resident = pages.resident;
    mine.bytes_huge = pages.huge;
    sl_reading_end(&reading);
    mine.tier = sl_dram_copy_state(index, &mine.bytes_tier);
    if (index->store && sl_writable_head(index->store)) SL_TRY(fill_live(index, &mine));
    sl_params_out(out, &mine, sizeof mine);
    return SL_OK;
}
