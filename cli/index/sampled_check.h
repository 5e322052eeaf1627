/* A check of an index with its progress told, and what it finds of a sample of the vectors: `check` and `info`. */
#ifndef CLI_INDEX_SAMPLED_CHECK_H
#define CLI_INDEX_SAMPLED_CHECK_H

#include "cli/common/json_out.h"

#include <shortlist.h>

/* Checks the index with these parameters, and tells the progress; `wanted` is --progress. */
sl_status check_index_told(sl_index *index, sl_check_params *params, int wanted, sl_check_report *report);

/* Tell the recall of `sample` vectors, and how many of them are lost: regions that are badly linked. null, or nothing,
 * where none was searched for. */
void json_sampled(json *json, size_t sample, const sl_check_report *report);
void print_sampled(size_t sample, const sl_check_report *report);

/* Measures what the index's codes lose, once vectors were added. */
int measure_resolution(const char *path, const sl_index *index, size_t threads, sl_resolution *out);
/* Tell what codes lose: a share as JSON, null where nothing was measured, and a warning that names the remedy where the
 * share is large. Returns whether it warned. */
void json_resolution(json *json, size_t unresolved, size_t sampled);
int warn_of_resolution(const char *path, const sl_index_stats *stats, size_t unresolved, size_t sampled);

#endif
