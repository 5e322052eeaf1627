/* A file of predictions, written block by block: .npy of float32, (rows,) or (rows, columns), or .csv, one row a line.
 * It appears whole or not at all. */
#ifndef CLI_SCORES_H
#define CLI_SCORES_H

#include <stddef.h>

typedef struct scores scores;

/* Whether scores can be written there, before the work: the ending, and output_check. Returns an exit status. */
int scores_check(const char *path, const char *const *inputs);

/* Returns an exit status; *out is NULL on failure. */
int scores_create(const char *path, size_t columns, scores **out);
/* The next `rows` rows of `columns` numbers. */
int scores_append(scores *scores, const float *values, size_t rows);
/* Puts the file in place, and frees. */
int scores_commit(scores *scores);
/* Forgets it; takes NULL. */
void scores_discard(scores *scores);

#endif
