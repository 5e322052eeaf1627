/* Tuned settings: the parameters with which a search reaches a recall at a k. */
#ifndef SL_HNSW_SEARCH_SETTINGS_H
#define SL_HNSW_SEARCH_SETTINGS_H

#include "hnsw/graph/tuned_record.h"

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
sl_status sl_settings_put(sl_index *index, const sl_tuned_record *records, size_t count, size_t *first);
/* Puts an array of records, which the index then owns, into the place of its own. The caller publishes it. */
void sl_settings_adopt(sl_index *index, sl_tuned_record *records, size_t count);

/* Reads section TUNED, if there is one, and checks its checksum and each record. Skips records of an unknown kind: they
 * have a reserved word other than 0. */
sl_status sl_settings_load(sl_index *index, size_t most, sl_progress *progress);

/* Rescales a copy of the settings, before new partitions and groups replace the index's own. A setting was tuned to
 * scan a certain share of the vectors. That share includes the vectors outside partitions, which every scan reads. The
 * new number of partitions holds the same share. The new number of groups is the same share of all groups. */
void sl_settings_rescale(const sl_graph *graph, const sl_partitions *partitions, const sl_partitions *groups,
                         sl_tuned_record *records);

void sl_settings_free(sl_graph *graph);

#endif
