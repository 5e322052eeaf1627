/* The settings that tuning stored: a recall and a k into what a search needs to reach it. */
#ifndef SL_HNSW_SEARCH_SETTINGS_H
#define SL_HNSW_SEARCH_SETTINGS_H

#include "hnsw/graph/index.h"

#include <assert.h>

/* One record of section TUNED, and the same in memory; docs/FORMAT.md. Records are in rising order of k, those of a k
 * in rising order of target. */
struct sl_tuned_record {
    double target, recall, standard_error, evaluations;
    uint64_t n, queries;
    uint32_t k, least_k;
    uint32_t ef, rerank;
    uint32_t limit; /* sl_tune_limit, of walks; where it is not NONE, and probes_one is not 0, all else is of scans */
    float stop;
    uint32_t ef_alone;   /* without the stop, for searches that it does not serve; 0 where there is none */
    uint32_t probes;     /* partitions that batches scan instead of walking; 0 where walks are cheaper */
    uint32_t probes_one; /* that single searches do */
    uint32_t groups;     /* among whose partitions these are chosen; 0: among all */
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

/* Whether they reach the target, walking or scanning. */
static inline int sl_settings_reach(const sl_tuned_record *record) {
    return record->limit == SL_LIMIT_NONE || record->probes_one;
}

/* Puts the settings for params->recall at this k, where a thread asks so many queries in one call, into the parameters'
 * ef, rerank, stop, probes and groups. Allocates nothing. Errors: SL_EINVAL (recall), SL_ENOTFOUND. */
sl_status sl_settings_apply(const sl_index *index, size_t k, size_t queries, sl_search_params *params);

/* Takes `count` records of one k, in their order, in place of those the index has for it; *first is the number of the
 * first of them. On failure the index has what it had. Errors: SL_ENOMEM, SL_ELIMIT. */
sl_status sl_settings_put(sl_index *index, const sl_tuned_record *records, size_t count, size_t *first);

/* The records of section TUNED of the index's store, where there is one, checked against its CRC and one by one.
 * Records of a kind this library does not know, told by a reserved word that is not 0, are left out. */
sl_status sl_settings_load(sl_index *index, size_t most, sl_progress *progress);

/* Before the index takes these partitions and groups in place of its own: the settings scan as many of them as hold the
 * share of the vectors that was scanned when they were tuned, those of no partition then included, and look at as large
 * a share of the groups. */
void sl_settings_follow(sl_index *index, const sl_partitions *partitions, const sl_partitions *groups);

void sl_settings_free(sl_index *index);

#endif
