#include "base/params.h"
#include "hnsw/graph/arrays.h"
#include "hnsw/graph/entry.h"
#include "hnsw/graph/free_nodes.h"
#include "hnsw/graph/record.h"
#include "hnsw/graph/version.h"
#include "hnsw/index/describe.h"

size_t sl_index_size(const sl_index *index) {
    sl_reading reading;
    if (!index) return 0;
    const size_t size = sl_undeleted_count(sl_reading_begin(index, &reading));
    sl_reading_end(&reading);
    return size;
}

/* Counts the bytes of records: each part like its array, and the padding as codes. */
static void count_records(const sl_graph *graph, sl_section_source records, sl_index_stats *stats) {
    const sl_record record = sl_record_of(graph);
    for (sl_array_kind kind = 0; kind < SL_ARRAY_KINDS; kind++) {
        if (!record.size[kind] || !sl_array_lines[kind].in_stats) continue;
        const uint64_t size = graph->n * record.size[kind];
        sl_count_in_stats(&(sl_section_source){.kind = sl_array_lines[kind].section, .size = size}, stats);
        records.size -= size;
    }
    stats->bytes_codes += records.size;
}

/* Fills in what writers and readers hold back. The caller reads no version, or it would count itself. */
static void count_held(const sl_index *index, sl_index_stats *stats) {
    const sl_versions_held held = sl_versions_get_held(index);
    const size_t leaving = sl_node_set_count(&index->leaving);
    stats->in_repair = leaving < stats->deleted ? leaving : stats->deleted;
    stats->epoch = held.epoch;
    stats->oldest_epoch = held.oldest;
    stats->versions_held = held.versions;
    stats->bytes_held = held.bytes;
}

sl_status sl_index_get_stats(const sl_index *index, sl_index_stats *out) {
    if (!index) return sl_fail(SL_EINVAL, "index is NULL");
    SL_TRY(sl_params_check_out(out, "sl_index_stats"));
    sl_reading reading;
    const sl_graph *graph = sl_reading_begin(index, &reading);
    sl_description file;
    sl_index_stats mine = {.n = sl_undeleted_count(graph),
                           .dim = graph->codec.dim,
                           .m = graph->m,
                           .ef_construction = graph->ef_construction,
                           .seed = graph->seed,
                           .metric = graph->codec.metric,
                           .dtype = graph->codec.dtype,
                           .codes = graph->codes,
                           .refine = graph->refine,
                           .place = graph->place,
                           .max_level = graph->n ? sl_entry_get(graph).level : 0,
                           .quant_error_max = graph->quant_error.max,
                           .isa = sl_isa_name(graph->kernels->isa),
                           .tuned = graph->tuned_count,
                           .deleted = graph->deleted_count - graph->free_count,
                           .reusable = graph->free_count,
                           .partitions = graph->partitions.count,
                           .groups = graph->groups.count,
                           .room = index->writer || index->published ? graph->capacity : 0,
                           .clip = sl_codec_of_walks(graph)->clip.clip,
                           .clip_share = sl_codec_of_walks(graph)->clip.share,
                           .tags = graph->has_tags,
                           .keys = graph->has_keys,
                           .multi = graph->multi,
                           .layout = graph->record.pitch ? SL_LAYOUT_RECORDS : SL_LAYOUT_ARRAYS};
    sl_describe_own(graph, &file);
    for (size_t i = 0; i < file.count; i++)
        if (file.sections[i].kind == SL_SECTION_RECORDS)
            count_records(graph, file.sections[i], &mine);
        else
            sl_count_in_stats(&file.sections[i], &mine);
    mine.bytes_total = sl_store_file_size(file.sections, file.count);
    if (graph->quant_error.count) mine.quant_error_mean = graph->quant_error.sum / (double)graph->quant_error.count;
    sl_reading_end(&reading);
    count_held(index, &mine);
    sl_params_out(out, &mine, sizeof mine);
    return SL_OK;
}

typedef struct holders_list {
    sl_epoch_holder *holders;
    size_t room, count;
    uint64_t own; /* the process whose searches are listed already; 0: none */
} holders_list;

static void add_holder(void *ctx, uint64_t commit, uint64_t thread) {
    holders_list *list = ctx;
    const sl_epoch_holder holder = {.epoch = commit, .pid = (int)(thread >> 32), .tid = (int)(uint32_t)thread};
    if (list->own && thread >> 32 == list->own) return;
    if (list->count < list->room) list->holders[list->count] = holder;
    list->count++;
}

sl_status sl_index_holders(const sl_index *index, sl_epoch_holder *holders, size_t room, size_t *count) {
    if (!index || !count || (room && !holders)) return sl_fail(SL_EINVAL, "index, holders or count is NULL");
    holders_list list = {holders, room, sl_epochs_holders(&index->versions->epochs, holders, room),
                         index->writer ? 0 : sl_thread_self() >> 32};
    if (index->writer || index->published) sl_readers_each(index->store, UINT64_MAX, add_holder, &list);
    *count = list.count;
    return SL_OK;
}
