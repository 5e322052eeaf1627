#include "hnsw/search/settings.h"

#include "base/params.h"
#include "hnsw/graph/partition.h"
#include "hnsw/graph/version.h"
#include "hnsw/search/allowed.h"
#include "hnsw/search/scan_params.h"

#include <math.h>
#include <string.h>

#define TUNE_IT "tune the index for it (sl_index_tune, 'shortlist tune'), or give ef instead of recall"

/* Recalls are decimal fractions, and some callers compute them as floats. Recalls that differ by less than this are
 * equal. */
#define SAME_RECALL 1e-6

/* A stop this large never ends a walk. No record may have a larger one. */
#define MOST_STOP 1e6

const char *sl_tune_limit_name(sl_tune_limit limit) {
    static const char *const names[] = {"none", "codes", "graph", "ef"};
    return (unsigned)limit <= SL_LIMIT_EF ? names[limit] : "?";
}

const char *sl_tune_limit_text(sl_tune_limit limit) {
    static const char *const texts[] = {
        "reached",
        "the codes rank true neighbours behind others however many are re-ranked: build with a finer refine or codes",
        "deeper searches find no more of the true neighbours: build with a larger m or ef_construction",
        "deeper searches would find more: tune with a larger max_ef",
    };
    return (unsigned)limit <= SL_LIMIT_EF ? texts[limit] : "?";
}

/* ---------------------------------------------------------------------------------------------------------------
 * Finding
 * ------------------------------------------------------------------------------------------------------------- */

static int covers(const sl_tuned_record *record, size_t k, double recall) {
    return sl_settings_reached(record) && k <= record->k && k >= record->least_k &&
           record->target >= recall - SAME_RECALL;
}

/* Returns whether a search can use a record. If only scans reach the record's target, the search must be able to scan.
 */
static int can_use(const sl_graph *graph, const sl_tuned_record *record, const sl_search_params *params) {
    sl_search_params scan = *params;
    scan.probes = record->probes_one;
    return record->limit == SL_LIMIT_NONE || sl_can_scan(graph, &scan);
}

/* Fails with the reason why no record fits. The record of the highest target at this k explains it best, whether that
 * target was reached or not. */
static sl_status fail_not_found(const sl_graph *graph, size_t k, double recall) {
    const sl_tuned_record *highest = NULL, *missed = NULL;
    for (size_t i = 0; i < graph->tuned_count; i++) {
        const sl_tuned_record *record = &graph->tuned[i];
        if (covers(record, k, recall))
            return sl_fail(
                SL_ENOTFOUND,
                "recall %g at k %zu was reached by scanning alone, which serves no search with a filter, none "
                "where more than half is deleted, and not every processor; ask for less, or give ef instead "
                "of recall",
                recall, k);
        if (record->k != k) continue;
        if (sl_settings_reached(record))
            highest = record;
        else if (!missed || missed->target < recall - SAME_RECALL)
            missed = record;
    }
    if (missed && missed->recall >= recall)
        return sl_fail(SL_ENOTFOUND, "recall %g at k %zu is none that the index was tuned for; " TUNE_IT, recall, k);
    if (missed)
        return sl_fail(SL_ENOTFOUND, "recall %g at k %zu was out of reach when the index was tuned, %.4f the best; %s",
                       recall, k, missed->recall, sl_tune_limit_text((sl_tune_limit)missed->limit));
    if (highest)
        return sl_fail(SL_ENOTFOUND, "recall %g at k %zu: %g is the highest the index was tuned for; " TUNE_IT, recall,
                       k, highest->target);
    if (graph->tuned_count)
        return sl_fail(SL_ENOTFOUND, "the index holds no tuned settings for recall %g at k %zu, but for k %u; " TUNE_IT,
                       recall, k, graph->tuned[graph->tuned_count - 1].k);
    return sl_fail(SL_ENOTFOUND, "the index holds no tuned settings for recall %g; " TUNE_IT, recall);
}

/* Finds the first record that fits a search. Records are in order of preference. */
static sl_status find_record(const sl_graph *graph, size_t k, double recall, const sl_search_params *params,
                             size_t *out) {
    if (!(recall > 0 && recall <= 1)) return sl_fail(SL_EINVAL, "recall is %g; give above 0 and up to 1", recall);
    for (*out = 0; *out < graph->tuned_count; ++*out)
        if (covers(&graph->tuned[*out], k, recall) && can_use(graph, &graph->tuned[*out], params)) return SL_OK;
    return fail_not_found(graph, k, recall);
}

/* Returns whether a search uses the record's stop. The stop was tuned for the distance of the k-th best among all
 * nodes, so it holds for this k alone. */
static int uses_stop(const sl_graph *graph, const sl_tuned_record *record, size_t k, const sl_search_params *params) {
    return record->stop > 0 && k == record->k && sl_may_stop_early(graph, params);
}

sl_status sl_settings_apply(const sl_graph *graph, size_t k, size_t queries, sl_search_params *params) {
    /* The search refuses a k of 0. */
    if (k == 0) return SL_OK;
    size_t i = 0;
    SL_TRY(find_record(graph, k, params->recall, params, &i));
    const sl_tuned_record *record = &graph->tuned[i];
    int stops = uses_stop(graph, record, k, params);
    params->ef = stops || record->stop == 0 ? record->ef : record->ef_alone;
    params->rerank = record->rerank;
    params->stop = stops ? (double)record->stop : 0;
    params->probes = k != record->k ? 0 : queries < SL_SCAN_LEAST ? record->probes_one : record->probes;
    params->groups = record->groups;
    return SL_OK;
}

/* Describes how a search for k uses a record. */
static void describe_record(const sl_graph *graph, const sl_tuned_record *record, size_t k, sl_tuned *out) {
    int reached = sl_settings_reached(record);
    size_t alone = record->stop > 0 ? record->ef_alone : record->ef;
    int stops = uses_stop(graph, record, k, &(sl_search_params){0});
    const sl_tuned mine = {.target = record->target,
                           .k = record->k,
                           .least_k = record->least_k,
                           .ef = stops ? record->ef : alone,
                           .rerank = record->rerank,
                           .stop = stops ? (double)record->stop : 0,
                           .limit = reached ? SL_LIMIT_NONE : (sl_tune_limit)record->limit,
                           .recall = record->recall,
                           .standard_error = record->standard_error,
                           .evaluations = record->evaluations,
                           .n = (size_t)record->n,
                           .queries = (size_t)record->queries,
                           .ef_alone = alone,
                           .probes = k == record->k ? record->probes : 0,
                           .probes_one = k == record->k ? record->probes_one : 0,
                           .groups = k == record->k ? record->groups : 0,
                           .scan_only = reached && record->limit != SL_LIMIT_NONE};
    sl_params_out(out, &mine, sizeof mine);
}

sl_status sl_index_get_tuned(const sl_index *index, size_t i, sl_tuned *out) {
    if (!index) return sl_fail(SL_EINVAL, "index is NULL");
    SL_TRY(sl_params_check_out(out, "sl_tuned"));
    sl_reading reading;
    const sl_graph *graph = sl_reading_begin(index, &reading);
    sl_status status = SL_OK;
    if (i < graph->tuned_count)
        describe_record(graph, &graph->tuned[i], graph->tuned[i].k, out);
    else
        status = sl_fail(SL_ENOTFOUND, "settings %zu; the index holds %zu", i, graph->tuned_count);
    sl_reading_end(&reading);
    return status;
}

sl_status sl_index_find_tuned(const sl_index *index, size_t k, double recall, sl_tuned *out) {
    if (!index) return sl_fail(SL_EINVAL, "index is NULL");
    if (k == 0) return sl_fail(SL_EINVAL, "k is 0; give at least 1");
    SL_TRY(sl_params_check_out(out, "sl_tuned"));
    sl_reading reading;
    const sl_graph *graph = sl_reading_begin(index, &reading);
    size_t i = 0;
    sl_status status = find_record(graph, k, recall, &(sl_search_params){0}, &i);
    if (status == SL_OK) describe_record(graph, &graph->tuned[i], k, out);
    sl_reading_end(&reading);
    return status;
}

/* ---------------------------------------------------------------------------------------------------------------
 * Keeping
 * ------------------------------------------------------------------------------------------------------------- */

void sl_settings_free(sl_graph *graph) {
    SL_FREE_ARRAY(&graph->allocator, graph->tuned, graph->tuned_count);
    graph->tuned = NULL;
    graph->tuned_count = 0;
}

void sl_settings_adopt(sl_index *index, sl_tuned_record *records, size_t count) {
    sl_graph *graph = &index->graph;
    sl_version_release(index, &graph->allocator, graph->tuned, graph->tuned_count * sizeof *graph->tuned);
    graph->tuned = records;
    graph->tuned_count = count;
}

sl_status sl_settings_put(sl_index *index, const sl_tuned_record *records, size_t count, size_t *first) {
    sl_graph *graph = &index->graph;
    size_t before = 0, same = 0;
    while (before < graph->tuned_count && graph->tuned[before].k < records->k)
        before++;
    while (before + same < graph->tuned_count && graph->tuned[before + same].k == records->k)
        same++;
    size_t behind = graph->tuned_count - before - same, all = before + count + behind;
    if (all > SL_MAX_TUNED)
        return sl_fail(SL_ELIMIT, "%zu tuned settings; an index stores up to %u: tune for fewer k or targets", all,
                       SL_MAX_TUNED);
    sl_status status = SL_OK;
    sl_tuned_record *merged = sl_mem_array(&graph->allocator, all, sizeof *merged, &status);
    SL_TRY(status);
    if (before) memcpy(merged, graph->tuned, before * sizeof *merged);
    memcpy(merged + before, records, count * sizeof *merged);
    if (behind) memcpy(merged + before + count, graph->tuned + before + same, behind * sizeof *merged);
    status = sl_version_reserve(index, 1);
    if (status != SL_OK) {
        SL_FREE_ARRAY(&graph->allocator, merged, all);
        return status;
    }
    sl_settings_adopt(index, merged, all);
    sl_version_publish_now(index);
    *first = before;
    return SL_OK;
}

/* Returns how many of the new partitions a scan needs to read the same share of all vectors. Vectors outside partitions
 * count as read.
 * Parameters: in: the share of the vectors that was in a partition. */
static uint32_t rescale_probes(uint32_t probes, double in, const sl_partitions *own, const sl_partitions *now) {
    if (!probes) return 0;
    double share = 1 - in + in * probes / (double)own->count, wanted = ceil(share * (double)now->count);
    return wanted < (double)now->count ? (uint32_t)wanted : (uint32_t)now->count;
}

void sl_settings_rescale(const sl_graph *graph, const sl_partitions *partitions, const sl_partitions *groups,
                         sl_tuned_record *records) {
    const sl_partitions *own = &graph->partitions, *own_groups = &graph->groups;
    for (size_t i = 0; i < graph->tuned_count && own->count; i++) {
        sl_tuned_record *record = &records[i];
        if (!record->n) continue;
        /* If nodes of the partitions were deleted, n may be less than the number of nodes in partitions. */
        double in = own->starts[own->count], n = fmax((double)record->n, in);
        record->probes = rescale_probes(record->probes, in / n, own, partitions);
        record->probes_one = rescale_probes(record->probes_one, in / n, own, partitions);
        record->groups = own_groups->count ? rescale_probes(record->groups, 1, own_groups, groups) : 0;
    }
}

/* Returns whether a number lies in [least, most]. False for NaN. */
static int is_between(double value, double least, double most) {
    return value >= least && value <= most;
}

static int is_sound(const sl_tuned_record *record) {
    return is_between(record->target, 0, 1) && record->target > 0 && is_between(record->recall, 0, 1) &&
           is_between(record->standard_error, 0, 1) && is_between(record->evaluations, 0, 1e18) && record->k > 0 &&
           record->k <= SL_MAX_EF && record->least_k > 0 && record->least_k <= record->k && record->ef >= record->k &&
           record->ef <= SL_MAX_EF && record->rerank <= SL_MAX_EF && record->limit <= SL_LIMIT_EF &&
           record->probes <= SL_MAX_PARTITIONS && record->probes_one <= SL_MAX_PARTITIONS &&
           (record->limit == SL_LIMIT_NONE || !record->probes_one ||
            (record->probes && record->stop == 0 && record->least_k == record->k)) &&
           record->groups <= SL_MAX_GROUPS && is_between((double)record->stop, 0, MOST_STOP) &&
           (record->stop > 0 ? record->ef_alone >= record->k && record->ef_alone <= record->ef : !record->ef_alone);
}

static int is_known(const sl_tuned_record *record) {
    for (size_t i = 0; i < sizeof record->reserved / sizeof *record->reserved; i++)
        if (record->reserved[i]) return 0;
    return 1;
}

static int in_order(const sl_tuned_record *a, const sl_tuned_record *b) {
    return a->k < b->k || (a->k == b->k && a->target < b->target);
}

/* Checks `count` records and moves the known ones to the front. *kept is their number. */
static sl_status check_records(const sl_index *index, sl_tuned_record *records, size_t count, size_t *kept) {
    *kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (!is_known(&records[i])) continue;
        if (!is_sound(&records[i]) || (*kept && !in_order(&records[*kept - 1], &records[i])))
            return sl_fail(SL_ECORRUPT, "%s: tuned settings %zu are out of range or order; make it or copy it again",
                           index->store->path, i);
        records[(*kept)++] = records[i];
    }
    return SL_OK;
}

sl_status sl_settings_load(sl_index *index, size_t most, sl_progress *progress) {
    const sl_file_section *section = sl_store_section(index->store, SL_SECTION_TUNED);
    if (!section) return SL_OK;
    if (section->size == 0 || section->size % sizeof(sl_tuned_record) ||
        section->size / sizeof(sl_tuned_record) > SL_MAX_TUNED)
        return sl_fail(SL_ECORRUPT, "%s: section %u (%s) is %llu bytes, where records of tuned settings are %zu",
                       index->store->path, section->kind, sl_section_name(section->kind),
                       (unsigned long long)section->size, sizeof(sl_tuned_record));
    size_t count = (size_t)section->size / sizeof(sl_tuned_record);
    if (count > most) count = most;
    if (!count) return SL_OK;
    size_t size = count * sizeof(sl_tuned_record);
    void *block;
    SL_TRY(sl_mem_alloc(&index->graph.allocator, size, &block));
    index->graph.tuned = block;
    index->graph.tuned_count = count;
    SL_TRY(sl_store_copy_first(index->store, section, index->graph.tuned, size, progress));
    size_t kept;
    SL_TRY(check_records(index, index->graph.tuned, count, &kept));
    if (kept == count) return SL_OK;
    SL_TRY(sl_mem_resize(&index->graph.allocator, &block, size, kept * sizeof(sl_tuned_record)));
    index->graph.tuned = block;
    index->graph.tuned_count = kept;
    return SL_OK;
}
