#include "base/params.h"
#include "hnsw/graph/publish.h"

size_t sl_index_size(const sl_index *index) {
    sl_index view;
    return index ? sl_undeleted_count(sl_view_of(index, &view)) : 0;
}

/* To the part it belongs to; of records, what each holds. */
static void add_section(const sl_index *index, uint32_t kind, uint64_t size, sl_index_stats *stats) {
    switch ((sl_section_kind)kind) {
    case SL_SECTION_CODES:
    case SL_SECTION_REST:
    case SL_SECTION_COARSE:
    case SL_SECTION_PROJECTION:
        stats->bytes_codes += size;
        break;
    case SL_SECTION_LINKS:
        stats->bytes_links += size;
        break;
    case SL_SECTION_IDS:
        stats->bytes_ids += size;
        break;
    case SL_SECTION_RECORDS:
        stats->bytes_links += index->n * index->m0 * sizeof(uint32_t);
        stats->bytes_ids += index->n * sizeof(uint64_t);
        stats->bytes_codes += size - index->n * (index->m0 * sizeof(uint32_t) + sizeof(uint64_t));
        break;
    case SL_SECTION_REFINE:
        stats->bytes_refine += size;
        break;
    case SL_SECTION_UPPER_NODES:
    case SL_SECTION_UPPER_START:
    case SL_SECTION_UPPER_LINKS:
        stats->bytes_upper += size;
        break;
    case SL_SECTION_PARTITION_STARTS:
    case SL_SECTION_PARTITION_ROWS:
    case SL_SECTION_PARTITION_BANDS:
    case SL_SECTION_GROUP_STARTS:
    case SL_SECTION_GROUP_ROWS:
        stats->bytes_partitions += size;
        break;
    case SL_SECTION_TUNED:
    case SL_SECTION_LIVE:
    case SL_SECTION_SUMS:
    case SL_SECTION_PAGE_SUMS:
    case SL_SECTION_DEAD:
        break;
    }
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
        add_section(index, file.sections[i].kind, file.sections[i].size, &mine);
    mine.bytes_total = sl_store_file_size(file.sections, file.count);
    if (index->quant_error.count) mine.quant_error_mean = index->quant_error.sum / (double)index->quant_error.count;
    sl_params_out(out, &mine, sizeof mine);
    return SL_OK;
}
