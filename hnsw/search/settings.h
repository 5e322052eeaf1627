/* Tuned settings: the parameters with which a search reaches a recall at a k. */
#ifndef SL_HNSW_SEARCH_SETTINGS_H
#define SL_HNSW_SEARCH_SETTINGS_H

#include "hnsw/graph/index.h"

#include <assert.h>

/* A record of section TUNED, laid out in memory as in the file (docs/FORMAT.md). Records are sorted by k, and those of
 * one k by target. */
struct sl_tuned_record {
    double target, recall, standard_error, evaluations;
    uint64_t n, queries;
    uint32_t k, least_k;
    uint32_t ef, rerank;
    uint32_t limit; /* why walks miss the target (sl_tune_limit); NONE: they reach it. If they miss it and probes_one
                       isn't 0, scans reach it, and the other fields describe scans */
    float stop;
    uint32_t ef_alone;   /* ef for searches that can't use the stop; 0: the record has no stop */
    uint32_t probes;     /* partitions that each query of a batch scans; 0: walks are cheaper */
    uint32_t probes_one; /* partitions that a single search scans; 0: walks are cheaper */
    uint32_t groups;     /* groups in whose partitions a search chooses; 0: it chooses among all partitions */
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

/* Returns whether the settings reach the target, by walks or by scans. */
static inline int sl_settings_reached(const sl_tuned_record *record) {
    return record->limit == SL_LIMIT_NONE || record->probes_one;
}

/* Sets ef, rerank, stop, probes and groups of `params` for params->recall at this k. Allocates nothing.
 * Parameters: queries: how many queries of the call each thread answers.
 * Errors: SL_EINVAL (recall), SL_ENOTFOUND. */
sl_status sl_settings_apply(const sl_graph *graph, size_t k, size_t queries, sl_search_params *params);

/* Replaces the index's records of one k by `count` others, in their order. *first becomes the number of the first of
 * them. On failure the index keeps its records. Errors: SL_ENOMEM, SL_ELIMIT. */
sl_status sl_settings_put(sl_graph *graph, const sl_tuned_record *records, size_t count, size_t *first);

/* Reads section TUNED, if there is one, and checks its checksum and each record. Skips records of an unknown kind: they
 * have a reserved word other than 0. */
sl_status sl_settings_load(sl_index *index, size_t most, sl_progress *progress);

/* Rescales the settings before new partitions and groups replace the index's own. A setting was tuned to scan a certain
 * share of the vectors. That share includes the vectors outside partitions, which every scan reads. The new number of
 * partitions holds the same share. The new number of groups is the same share of all groups. */
void sl_settings_rescale(sl_graph *graph, const sl_partitions *partitions, const sl_partitions *groups);

void sl_settings_free(sl_graph *graph);

#endif
