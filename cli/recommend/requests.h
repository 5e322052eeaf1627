/* A file of requests, read block by block: a .csv of user features. A request may have its vector, ids to exclude,
 * and the relevant ids. */
#ifndef CLI_RECOMMEND_REQUESTS_H
#define CLI_RECOMMEND_REQUESTS_H

#include "cli/files/cell_lists.h"
#include "cli/files/vectors.h"
#include "cli/ranker/ranking_inputs.h"

typedef struct requests {
    csv_file file;
    vectors *vectors; /* row i is request i's vector; NULL: vectors are in the column `vector` */
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

/* Opens the file. `vectors_path` may be NULL. `stats` are those of the index at index_path that will be asked.
 * Returns an exit status; requests_close takes a file that was never opened. */
int requests_open(requests *requests, const char *path, const char *vectors_path, const sl_index_stats *stats,
                  const char *index_path);
void requests_close(requests *requests);

/* Reads the next block. `requests` has `count` entries, 0 at the end. */
int requests_next(requests *requests);

#endif
