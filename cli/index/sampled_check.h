/* A check of an index with a progress bar, and its results for a sample of vectors: `check` and `info`. */
#ifndef CLI_INDEX_SAMPLED_CHECK_H
#define CLI_INDEX_SAMPLED_CHECK_H

#include "cli/common/json_out.h"

#include <shortlist.h>

/* Checks the index with these parameters and shows the progress. `wanted` is --progress. */
sl_status check_index_with_progress(sl_index *index, sl_check_params *params, int wanted, sl_check_report *report);

/* Print the recall of `sample` vectors, and how many are lost: signs of badly linked regions. Without a sample, null or
 * nothing. */
void json_sampled(json *json, size_t sample, const sl_check_report *report);
void print_sampled(size_t sample, const sl_check_report *report);

/* Measures how many neighbours the index's codes lose after vectors were added. */
int measure_resolution(const char *path, const sl_index *index, size_t threads, sl_resolution *out);
/* Print what codes lose: a share as JSON (null if not measured), and a warning with the remedy if the share is large.
 * Returns whether it warned. */
void json_resolution(json *json, size_t unresolved, size_t sampled);
int warn_of_resolution(const char *path, const sl_index_stats *stats, size_t unresolved, size_t sampled);

#endif
