/* The size of an index that is not made yet. */
#include "base/params.h"
#include "hnsw/build/renumber.h"
#include "hnsw/graph/record.h"
#include "hnsw/index/describe.h"
#include "hnsw/place/dram_copy.h"

#include <math.h>

/* An index of n vectors as far as its sizes go: it has no arrays. */
static sl_status expect_nodes(sl_index *index, size_t n) {
    double count = (double)n, p = 1 / (double)index->m;
    index->n = n;
    index->next_id = n;
    sl_array_put(index, SL_ARRAY_IDS, NULL, n < SL_RENUMBER_LEAST ? 0 : sizeof(uint32_t));
    /* A node stands on level 1 with probability 1/m, and is on 1/(m - 1) upper levels in the mean. */
    index->upper.count = (size_t)(count * p + 0.5);
    index->upper.rows = (size_t)(count * p / (1 - p) + 0.5);
    if (n < SL_RENUMBER_LEAST) return SL_OK;
    index->partitions.count = sl_partition_count(n);
    index->groups.count = sl_partition_groups(index->partitions.count);
    index->partitions.band_bits = index->codec.metric == SL_METRIC_IP ? SL_BAND_BITS : 0;
    SL_TRY(sl_partition_codec(index, &index->groups.codec));
    return sl_partition_codec(index, &index->partitions.codec);
}

/* Slots and rows rise and fall together, so that the deviation of their sum is no more than the sum of theirs. */
static uint64_t upper_deviation(const sl_index *index) {
    double count = (double)index->n, p = 1 / (double)index->m;
    double slots = sqrt(count * p * (1 - p)), rows = sqrt(count * p) / (1 - p);
    return (uint64_t)ceil(2 * sizeof(uint32_t) * slots + (double)(index->m * sizeof(uint32_t)) * rows);
}

sl_status sl_index_plan(const sl_index_params *params, uint64_t n, sl_plan *out) {
    SL_TRY(sl_params_check_out(out, "sl_plan"));
    sl_index_params given;
    sl_index_params_init(&given);
    SL_TRY(sl_params_in(&given, sizeof given, params, "sl_index_params_init"));
    if (n > SL_MAX_VECTORS)
        return sl_fail(SL_ELIMIT, "%llu vectors; an index holds up to %u", (unsigned long long)n, SL_MAX_VECTORS);
    sl_index *made;
    SL_TRY(sl_index_new(&given, &made));
    sl_index index = *made;
    sl_description file;
    sl_described_as as;
    sl_status status;
    SL_TRY_GOTO(expect_nodes(&index, (size_t)n), done);
    sl_plan mine = {.n = n, .bytes_upper_deviation = upper_deviation(&index)};
    sl_describe_own(&index, &file);
    for (size_t i = 0; i < file.count; i++)
        sl_count_in_plan(&file.sections[i], &mine);
    mine.bytes_total = sl_store_file_size(file.sections, file.count);
    mine.bytes_tier = mine.bytes_upper + sl_dram_copy_row_bytes(&index);
    as = (sl_described_as){.id_width = sizeof(uint64_t)};
    sl_describe_writable(&index, sl_room_for(&index, (size_t)n), &as, NULL, &file);
    mine.bytes_with_room = sl_store_file_size(file.sections, file.count);
    mine.record_bytes = sl_record_of(&index).pitch;
    as.layout = SL_LAYOUT_RECORDS;
    sl_describe(&index, &as, &file);
    mine.bytes_in_records = sl_store_file_size(file.sections, file.count);
    sl_params_out(out, &mine, sizeof mine);
done:
    sl_index_free(made);
    return status;
}
