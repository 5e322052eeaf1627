/* Files of ground truth: the ids of each query's true neighbours, best first. */
#ifndef CLI_TRUTH_H
#define CLI_TRUTH_H

#include "cli/vectors.h"

/* The first k columns of the file as (queries->n, k) ids, allocated, to be freed. Reports where it holds no ids, other
 * than a row for each of the queries, or fewer than k neighbours of one. Returns an exit status. */
int truth_load(const char *path, const vectors *queries, size_t k, uint64_t **out);

/* Reports an id of the truth, (nq, k), that the index lacks, and where row numbers may have been taken for ids. Reads
 * the ids of the index into its memory, but of one that numbers its vectors. */
int truth_check_ids(const char *path, const char *index_path, sl_index *index, const uint64_t *ids, size_t nq,
                    size_t k);

/* Whether a recall is no more than strangers give: the truth is then that of other ids, vectors or another metric,
 * rather than the index a bad one. n: vectors of the index. */
int truth_is_strange(double best_recall, size_t k, size_t n);

#endif
