/* sl_index_plan, sl_index_plan_build: the sizes of an index before it's made, and the cost of making it. */
#include "base/params.h"
#include "base/thread.h"
#include "hnsw/construct/add.h"
#include "hnsw/construct/from_leaves.h"
#include "hnsw/construct/link_rows.h"
#include "hnsw/construct/partition_make.h"
#include "hnsw/construct/reach.h"
#include "hnsw/construct/renumber.h"
#include "hnsw/graph/arrays.h"
#include "hnsw/graph/ids.h"
#include "hnsw/graph/partition.h"
#include "hnsw/graph/record.h"
#include "hnsw/graph/upper.h"
#include "hnsw/graph/version.h"
#include "hnsw/index/describe.h"
#include "hnsw/index/lifecycle.h"
#include "hnsw/index/save.h"
#include "hnsw/place/dram_copy.h"

#include <math.h>

/* Sets the expected counts of partitions, in an index without arrays. */
static sl_status expect_partitions(sl_graph *graph) {
    const size_t n = graph->n;
    if (n < SL_RENUMBER_LEAST) return SL_OK;
    graph->partitions.count = sl_partition_count(n);
    graph->groups.count = sl_partition_groups(graph->partitions.count);
    graph->partitions.band_bits = graph->codec.metric == SL_METRIC_IP ? SL_BAND_BITS : 0;
    SL_TRY(sl_partition_codec(graph, sl_partition_codes_at_most(graph), &graph->partitions.codec));
    graph->groups.codec = graph->partitions.codec;
    return SL_OK;
}

/* Sets the expected counts of n vectors, in an index without arrays. */
static sl_status expect_nodes(sl_graph *graph, size_t n) {
    double count = (double)n, p = 1 / (double)graph->m;
    graph->n = n;
    graph->next_id = n;
    sl_array_put(graph, SL_ARRAY_IDS, NULL, n < SL_RENUMBER_LEAST ? 0 : sizeof(uint32_t));
    /* A node is on level 1 with probability 1/m, and on 1/(m - 1) upper levels on average. */
    graph->upper.count = (size_t)(count * p + 0.5);
    graph->upper.rows = (size_t)(count * p / (1 - p) + 0.5);
    return expect_partitions(graph);
}

/* An upper bound of the standard deviation of the upper layers' bytes. Slots and rows rise together, and the deviation
 * of a sum is at most the sum of both. */
static uint64_t upper_deviation(const sl_graph *graph) {
    double count = (double)graph->n, p = 1 / (double)graph->m;
    double slots = sqrt(count * p * (1 - p)), rows = sqrt(count * p) / (1 - p);
    return (uint64_t)ceil(2 * sizeof(uint32_t) * slots + (double)(graph->m * sizeof(uint32_t)) * rows);
}

static sl_status check_count(uint64_t n) {
    if (n <= SL_MAX_VECTORS) return SL_OK;
    return sl_fail(SL_ELIMIT, "%llu vectors; an index holds up to %u", (unsigned long long)n, SL_MAX_VECTORS);
}

sl_status sl_index_plan(const sl_index_params *params, uint64_t n, sl_plan *out) {
    SL_TRY(sl_params_check_out(out, "sl_plan"));
    sl_index_params given;
    sl_index_params_init(&given);
    SL_TRY(sl_params_in(&given, sizeof given, params, "sl_index_params_init"));
    SL_TRY(check_count(n));
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

/* ---------------------------------------------------------------------------------------------------------------
 * A build
 * ------------------------------------------------------------------------------------------------------------- */

/* Sets the counts of n nodes with these ids, in an index without arrays. The seed draws the levels, so the upper layers
 * are the build's. Returns the bytes of ids and their map during the add. */
static size_t expect_these(sl_graph *graph, size_t n, const uint64_t *ids) {
    const int numbers = sl_ids_are_numbers(graph, ids, n);
    const size_t bytes = numbers ? 0 : sl_ids_bytes(graph, n);
    const sl_upper_size upper = sl_upper_count(graph, 0, n, NULL);
    graph->upper.count = upper.count;
    graph->upper.rows = upper.rows;
    graph->next_id = numbers ? n : 0;
    for (size_t i = 0; i < n && !numbers; i++)
        if (ids[i] >= graph->next_id) graph->next_id = ids[i] + 1;
    graph->n = graph->capacity = n;
    sl_array_put(graph, SL_ARRAY_IDS, NULL, numbers && n < SL_RENUMBER_LEAST ? 0 : sizeof(uint64_t));
    return bytes;
}

/* Bytes of the arrays and the upper layers, without ids. */
static size_t array_bytes(const sl_graph *graph) {
    size_t bytes = graph->upper.count ? sl_upper_copy_size(graph) : sizeof(uint32_t);
    for (sl_array_kind kind = 0; kind < SL_ARRAY_KINDS; kind++)
        if (kind != SL_ARRAY_IDS) bytes += sl_array_bytes(graph, kind, graph->n);
    return bytes;
}

static sl_status plan_memory(sl_index *index, const sl_add_params *add, const sl_save_params *save, size_t early_ids,
                             sl_build_plan *out) {
    sl_graph *graph = &index->graph;
    const size_t asked = sl_thread_count(add->threads), threads = asked < graph->n ? asked : graph->n;
    const size_t arrays = array_bytes(graph), ids = sl_array_bytes(graph, SL_ARRAY_IDS, graph->n);
    sl_build_bytes adding, alike;
    sl_bytes partitions = {0, 0};
    SL_TRY(sl_build_count_bytes(index, add->builder, threads, 0, &adding));
    SL_TRY(sl_build_count_bytes(index, add->builder, threads, 1, &alike));
    if (graph->n >= SL_RENUMBER_LEAST) SL_TRY(sl_partitions_bytes(graph, threads, &partitions));
    const size_t later_ids = graph->n >= SL_RENUMBER_LEAST ? ids : early_ids;
    const size_t after = arrays + later_ids + partitions.kept;
    const size_t saving = after + sl_save_bytes(graph, save);
    out->bytes_index += after;
    /* An add reserves the version that it will publish. */
    const size_t before = arrays + early_ids + sl_version_bytes();
    const size_t least = sl_larger(saving, before + adding.before);
    out->bytes_peak_alike = out->bytes_peak + sl_larger(least, after + sl_version_bytes() + alike.after);
    out->bytes_peak += sl_larger(least, after + sl_version_bytes() + adding.after);
    return SL_OK;
}

/* Refuses ids as an add does. */
static sl_status check_ids(const uint64_t *ids, size_t n) {
    for (size_t i = 0; ids && i < n; i++)
        if (ids[i] == SL_NO_ID) return sl_fail(SL_EINVAL, "row %zu: id 2^64 - 1 is reserved; choose another", i);
    return SL_OK;
}

static sl_status plan_build(sl_index *index, const uint64_t *ids, const sl_add_params *add, const sl_save_params *save,
                            sl_build_plan *out) {
    sl_graph *graph = &index->graph;
    const size_t n = (size_t)out->n;
    SL_TRY(sl_build_check_builder(index, add->builder, n));
    SL_TRY(check_ids(ids, n));
    const size_t early_ids = expect_these(graph, n, ids);
    SL_TRY(sl_save_check(graph, save));
    const int leaves = sl_build_is_from_leaves(index, add->builder, 0, n);
    out->builder = leaves ? SL_BUILDER_LEAVES : SL_BUILDER_INSERT;
    out->compared_linking = leaves ? sl_from_leaves_comparisons(graph) : 0;
    out->compared_in_leaves = leaves ? sl_from_leaves_pairs(graph) : 0;
    out->compared_numbering = n < SL_RENUMBER_LEAST ? 0 : sl_partitions_comparisons(n);
    SL_TRY(plan_memory(index, add, save, early_ids, out));
    sl_graph described = *graph;
    SL_TRY(expect_partitions(&described));
    out->bytes_file = sl_save_file_size(&described, save);
    return SL_OK;
}

sl_status sl_index_plan_build(const sl_index_params *params, uint64_t n, const uint64_t *ids, const sl_add_params *add,
                              const sl_save_params *save, sl_build_plan *out) {
    SL_TRY(sl_params_check_out(out, "sl_build_plan"));
    sl_index_params given;
    sl_add_params adding;
    sl_save_params saving;
    sl_index_params_init(&given);
    sl_add_params_init(&adding);
    sl_save_params_init(&saving);
    SL_TRY(sl_params_in(&given, sizeof given, params, "sl_index_params_init"));
    SL_TRY(sl_params_in(&adding, sizeof adding, add, "sl_add_params_init"));
    SL_TRY(sl_params_in(&saving, sizeof saving, save, "sl_save_params_init"));
    SL_TRY(check_count(n));
    sl_counted counted = {.from = sl_allocator_of(given.allocator)};
    const sl_allocator allocator = sl_counted_allocator(&counted);
    given.allocator = &allocator;
    sl_index *index;
    SL_TRY(sl_index_new(&given, &index));
    sl_build_plan mine = {.n = n, .bytes_index = counted.bytes, .bytes_peak = counted.bytes};
    sl_status status = plan_build(index, ids, &adding, &saving, &mine);
    /* The index has counts but no arrays to free. */
    index->graph.n = index->graph.capacity = 0;
    index->graph.upper = (sl_upper){0};
    sl_index_free(index);
    if (status == SL_OK) sl_params_out(out, &mine, sizeof mine);
    return status;
}
