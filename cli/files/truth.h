/* Files of ground truth: the ids of each query's true neighbours, best first. */
#ifndef CLI_FILES_TRUTH_H
#define CLI_FILES_TRUTH_H

#include "cli/files/vectors.h"

/* The only ids of a truth that count: `n` ids in rising order. */
typedef struct truth_filter {
    const char *path; /* their file; NULL: masks or keys chose them */
    uint64_t *ids;
    size_t n;
} truth_filter;

/* Returns whether the filter has the id. */
int truth_allows(const truth_filter *filter, uint64_t id);

/* Reads each row's first k ids that `filter` has (NULL: every id), as (queries->n, k) ids that the caller frees.
 * Reports a file without ids, a file with another number of rows than queries, or a query with fewer than k such
 * neighbours. Returns an exit status. */
int truth_load(const char *path, const vectors *queries, size_t k, const truth_filter *filter, uint64_t **out);

/* Reports an id of the truth, (nq, k), that the index lacks, and row numbers that were probably taken for ids. Reads
 * the index's ids into its memory, unless the index numbers its vectors. */
int truth_check_ids(const char *path, const char *index_path, sl_index *index, const uint64_t *ids, size_t nq,
                    size_t k);

/* Returns whether a recall is no better than chance. The truth then belongs to other ids, other vectors or another
 * metric; the index is not bad. n: vectors of the index. */
int truth_is_strange(double best_recall, size_t k, size_t n);

#endif
