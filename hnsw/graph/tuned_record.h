/* The record of a tuned setting. search/settings.h reads and writes it. */
#ifndef SL_HNSW_GRAPH_TUNED_RECORD_H
#define SL_HNSW_GRAPH_TUNED_RECORD_H

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

#endif
