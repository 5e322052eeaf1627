/* A .csv file of requests with user features, read block by block. A request may have a vector, ids to exclude, and
 * relevant ids. */
#ifndef CLI_RECOMMEND_REQUESTS_H
#define CLI_RECOMMEND_REQUESTS_H

#include "cli/files/cell_lists.h"
#include "cli/files/vectors.h"
#include "cli/ranker/ranking_inputs.h"

typedef struct requests {
    csv_file file;
    vectors *vectors; /* row i is request i's vector; NULL: column `vector` has them */
    element type;     /* type of the vectors */
    size_t dim;
    float *numbers;        /* one row of the column */
    unsigned char *matrix; /* the block's vectors */
    sl_table table;        /* the block */
    size_t first, count;   /* its requests */
    sl_request *requests;
    id_lists exclude, relevant;
    int judged; /* the file has relevant ids */
} requests;

/* Opens the file. `vectors_path` may be NULL. `stats` describes the index at index_path. Returns an exit status.
 * requests_close accepts a file that was never opened. */
int requests_open(requests *requests, const char *path, const char *vectors_path, const sl_index_stats *stats,
                  const char *index_path);
void requests_close(requests *requests);

/* Reads the next block. requests->count is 0 at the end. */
int requests_next(requests *requests);

#endif
