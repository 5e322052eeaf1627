/* Result files: ids and scores, one row per query. Both files appear together at the end. */
#ifndef CLI_FILES_RESULTS_H
#define CLI_FILES_RESULTS_H

#include <stddef.h>
#include <stdint.h>

typedef struct results results;

/* Checks before the work that results can be written: endings, and output_check. `scores_path` may be NULL. Returns an
 * exit status. */
int results_check(const char *ids_path, const char *scores_path, const char *const *inputs);

/* Reports the first of n ids that the file's type cannot hold. */
int results_check_ids(const char *ids_path, const uint64_t *ids, size_t n);

/* Opens the files. `scores_path` may be NULL, and nq may be VECTORS_UNCOUNTED. Returns an exit status. *out is NULL on
 * failure. */
int results_create(const char *ids_path, const char *scores_path, size_t nq, size_t k, results **out);

/* Writes the next `count` rows. SL_NO_ID becomes -1 in a file of 32-bit integers. Reports an id that does not fit. */
int results_append(results *results, const uint64_t *ids, const float *scores, size_t count);

/* Puts the files in place and frees. */
int results_commit(results *results);
/* Removes the files and frees. NULL is allowed. */
void results_discard(results *results);

#endif
