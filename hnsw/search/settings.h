/* The settings that tuning stored. They say what a search needs to reach a recall at a k. */
#ifndef SL_HNSW_SEARCH_SETTINGS_H
#define SL_HNSW_SEARCH_SETTINGS_H

#include "hnsw/graph/index.h"

#include <assert.h>

/* One record of section TUNED, and the same in memory; docs/FORMAT.md. Records are in rising order of k, and those of
 * one k in rising order of target. */
struct sl_tuned_record {
    double target, recall, standard_error, evaluations;
    uint64_t n, queries;
    uint32_t k, least_k;
    uint32_t ef, rerank;
    uint32_t limit; /* sl_tune_limit, of walks. The other fields are those of scans, if it is not NONE and probes_one is
                       not 0 */
    float stop;
    uint32_t ef_alone;   /* ef without the stop, for searches that the stop does not serve; 0 where there is no stop */
    uint32_t probes;     /* partitions that batches scan instead of walking; 0 where walks are cheaper */
    uint32_t probes_one; /* partitions that single searches scan */
    uint32_t groups;     /* groups among whose partitions searches choose; 0: among all */
    uint32_t reserved[2];
};
static_assert(offsetof(sl_tuned_record, target) == 0, "target");
static_assert(offsetof(sl_tuned_record, recall) == 8, "recall");
static_assert(offsetof(sl_tuned_record, standard_error) == 16, "standard_error");
static_assert(offsetof(sl_tuned_record, evaluations) == 24, "evaluations");
static_assert(offsetof(sl_tuned_record, n) == 32, "n");
static_assert(offsetof(sl_tuned_record, queries) == 40, "queries");
static_assert(offsetof(sl_tuned_record, k) == 48, "k");
static_assert(offsetof(sl_tuned_record, least_k) == 52, "least_k");
static_assert(offsetof(sl_tuned_record, ef) == 56, "ef");
static_assert(offsetof(sl_tuned_record, rerank) == 60, "rerank");
static_assert(offsetof(sl_tuned_record, limit) == 64, "limit");
static_assert(offsetof(sl_tuned_record, stop) == 68, "stop");
static_assert(offsetof(sl_tuned_record, ef_alone) == 72, "ef_alone");
static_assert(offsetof(sl_tuned_record, probes) == 76, "probes");
static_assert(offsetof(sl_tuned_record, probes_one) == 80, "probes_one");
static_assert(offsetof(sl_tuned_record, groups) == 84, "groups");
static_assert(offsetof(sl_tuned_record, reserved) == 88, "reserved");
static_assert(sizeof(sl_tuned_record) == 96, "sl_tuned_record");

/* Tells whether the settings reach the target, by walks or by scans. */
static inline int sl_settings_reached(const sl_tuned_record *record) {
    return record->limit == SL_LIMIT_NONE || record->probes_one;
}

/* Puts the settings for params->recall at this k into ef, rerank, stop, probes and groups of `params`. `queries`: how
 * many a thread asks in one call. Allocates nothing. Errors: SL_EINVAL (recall), SL_ENOTFOUND. */
sl_status sl_settings_apply(const sl_graph *graph, size_t k, size_t queries, sl_search_params *params);

/* Replaces the index's records of one k by `count` others, in their order. *first becomes the number of the first. On
 * failure the index keeps its records. Errors: SL_ENOMEM, SL_ELIMIT. */
sl_status sl_settings_put(sl_graph *graph, const sl_tuned_record *records, size_t count, size_t *first);

/* Reads the records of section TUNED of the index's store, where there is one, and checks the CRC and each record.
 * Records of a kind that this library does not know have a reserved word other than 0; they are left out. */
sl_status sl_settings_load(sl_index *index, size_t most, sl_progress *progress);

/* Fits the settings to partitions and groups that the index is about to take in place of its own. When a setting was
 * tuned, it scanned some part of the vectors, those of no partition included. It scans as many of the new partitions
 * as hold that part, and looks at as large a part of the groups. */
void sl_settings_rescale(sl_graph *graph, const sl_partitions *partitions, const sl_partitions *groups);

void sl_settings_free(sl_graph *graph);

#endif
