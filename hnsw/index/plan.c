/* sl_index_plan: the sizes of an index before it is made. */
#include "base/params.h"
#include "hnsw/build/partition_make.h"
#include "hnsw/build/renumber.h"
#include "hnsw/graph/record.h"
#include "hnsw/index/describe.h"
#include "hnsw/index/lifecycle.h"
#include "hnsw/place/dram_copy.h"

#include <math.h>

/* Gives an index without arrays the counts of an index of n vectors. */
static sl_status expect_nodes(sl_graph *graph, size_t n) {
    double count = (double)n, p = 1 / (double)graph->m;
    graph->n = n;
    graph->next_id = n;
    sl_array_put(graph, SL_ARRAY_IDS, NULL, n < SL_RENUMBER_LEAST ? 0 : sizeof(uint32_t));
    /* A node stands on level 1 with probability 1/m. A node is on 1/(m - 1) upper levels in the mean. */
    graph->upper.count = (size_t)(count * p + 0.5);
    graph->upper.rows = (size_t)(count * p / (1 - p) + 0.5);
    if (n < SL_RENUMBER_LEAST) return SL_OK;
    graph->partitions.count = sl_partition_count(n);
    graph->groups.count = sl_partition_groups(graph->partitions.count);
    graph->partitions.band_bits = graph->codec.metric == SL_METRIC_IP ? SL_BAND_BITS : 0;
    SL_TRY(sl_partition_codec(graph, &graph->groups.codec));
    return sl_partition_codec(graph, &graph->partitions.codec);
}

/* The standard deviation of the upper layers' bytes, at most. The deviation of a sum is at most the sum of both
 * deviations; slots and rows rise and fall together. */
static uint64_t upper_deviation(const sl_graph *graph) {
    double count = (double)graph->n, p = 1 / (double)graph->m;
    double slots = sqrt(count * p * (1 - p)), rows = sqrt(count * p) / (1 - p);
    return (uint64_t)ceil(2 * sizeof(uint32_t) * slots + (double)(graph->m * sizeof(uint32_t)) * rows);
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
    sl_graph graph = made->graph;
    sl_description file;
    sl_described_as as;
    sl_status status;
    SL_TRY_GOTO(expect_nodes(&graph, (size_t)n), done);
    sl_plan mine = {.n = n, .bytes_upper_deviation = upper_deviation(&graph)};
    sl_describe_own(&graph, &file);
    for (size_t i = 0; i < file.count; i++)
        sl_count_in_plan(&file.sections[i], &mine);
    mine.bytes_total = sl_store_file_size(file.sections, file.count);
    mine.bytes_tier = mine.bytes_upper + sl_dram_copy_row_bytes(&graph);
    as = (sl_described_as){.id_width = sizeof(uint64_t)};
    sl_describe_writable(&graph, sl_room_for(&graph, (size_t)n), &as, NULL, &file);
    mine.bytes_with_room = sl_store_file_size(file.sections, file.count);
    mine.record_bytes = sl_record_of(&graph).pitch;
    as.layout = SL_LAYOUT_RECORDS;
    sl_describe(&graph, &as, &file);
    mine.bytes_in_records = sl_store_file_size(file.sections, file.count);
    sl_params_out(out, &mine, sizeof mine);
done:
    sl_index_free(made);
    return status;
}
