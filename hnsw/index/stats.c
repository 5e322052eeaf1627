#include "base/params.h"
#include "hnsw/graph/record.h"
#include "hnsw/index/describe.h"

size_t sl_index_size(const sl_index *index) {
    sl_index view;
    return index ? sl_undeleted_count(sl_view_of(index, &view)) : 0;
}

/* What records hold counts for its own part, and their padding for the codes. */
static void count_records(const sl_index *index, sl_section_source records, sl_index_stats *stats) {
    const sl_record record = sl_record_of(index);
    for (sl_array_kind kind = 0; kind < SL_ARRAY_KINDS; kind++) {
        if (!record.size[kind] || !sl_array_lines[kind].in_stats) continue;
        const uint64_t size = index->n * record.size[kind];
        sl_count_in_stats(&(sl_section_source){.kind = sl_array_lines[kind].section, .size = size}, stats);
        records.size -= size;
    }
    stats->bytes_codes += records.size;
}

sl_status sl_index_get_stats(const sl_index *index, sl_index_stats *out) {
    if (!index) return sl_fail(SL_EINVAL, "index is NULL");
    SL_TRY(sl_params_check_out(out, "sl_index_stats"));
    sl_index view;
    index = sl_view_of(index, &view);
    sl_description file;
    sl_index_stats mine = {.n = sl_undeleted_count(index),
                           .dim = index->codec.dim,
                           .m = index->m,
                           .ef_construction = index->ef_construction,
                           .seed = index->seed,
                           .metric = index->codec.metric,
                           .dtype = index->codec.dtype,
                           .codes = index->codes,
                           .refine = index->refine,
                           .place = index->place,
                           .max_level = index->n ? sl_entry_get(index).level : 0,
                           .quant_error_max = index->quant_error.max,
                           .isa = sl_isa_name(index->kernels->isa),
                           .tuned = index->tuned_count,
                           .deleted = index->dead_count,
                           .partitions = index->partitions.count,
                           .groups = index->groups.count,
                           .room = index->writer || index->published ? index->capacity : 0,
                           .layout = index->record.pitch ? SL_LAYOUT_RECORDS : SL_LAYOUT_ARRAYS};
    sl_describe_own(index, &file);
    for (size_t i = 0; i < file.count; i++)
        if (file.sections[i].kind == SL_SECTION_RECORDS)
            count_records(index, file.sections[i], &mine);
        else
            sl_count_in_stats(&file.sections[i], &mine);
    mine.bytes_total = sl_store_file_size(file.sections, file.count);
    if (index->quant_error.count) mine.quant_error_mean = index->quant_error.sum / (double)index->quant_error.count;
    sl_params_out(out, &mine, sizeof mine);
    return SL_OK;
}
