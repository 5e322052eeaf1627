/* Files of ground truth: the ids of each query's true neighbours, best first. */
#ifndef CLI_TRUTH_H
#define CLI_TRUTH_H

#include "cli/vectors.h"

/* The first k columns of the file as (queries->n, k) ids, allocated, to be freed. Reports where it holds no ids, other
 * than a row for each of the queries, or fewer than k neighbours of one. Returns an exit status. */
int truth_load(const char *path, const vectors *queries, size_t k, uint64_t **out);

#endif
