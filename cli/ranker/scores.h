/* A file of predictions, written block by block. It appears whole or not at all. A .npy of float32 has shape (rows,) or
 * (rows, columns). A .csv has a line per row. */
#ifndef CLI_RANKER_SCORES_H
#define CLI_RANKER_SCORES_H

#include <stddef.h>

typedef struct scores scores;

/* Checks before the work that scores can be written: the ending, and output_check. Returns an exit status. */
int scores_check(const char *path, const char *const *inputs);

/* Opens the file. Returns an exit status; *out is NULL on failure. */
int scores_create(const char *path, size_t columns, scores **out);
/* Writes the next `rows` rows of `columns` numbers. */
int scores_append(scores *scores, const float *values, size_t rows);
/* Puts the file in place and frees. */
int scores_commit(scores *scores);
/* Removes the file and frees. NULL is allowed. */
void scores_discard(scores *scores);

#endif
