/* The base and the queries of a truth, and the way through the base block by block. */
#ifndef CLI_SEARCH_TRUTH_SCAN_H
#define CLI_SEARCH_TRUTH_SCAN_H

#include "cli/common/progress.h"
#include "cli/files/vectors.h"

/* Bytes of rows that a block has at most, unless the caller asks for less. */
#define TRUTH_BLOCK ((size_t)64 << 20)

typedef struct truth_inputs {
    const char *base_path, *queries_path;
    sl_metric metric;
    size_t k;
    vectors *base, *queries;
    element type; /* type to read both files in */
} truth_inputs;

/* Opens both files, and checks that their metric, dimension and type fit each other, and that the base has k rows. The
 * paths, the metric and k are given. Returns an exit status. */
int truth_inputs_open(truth_inputs *inputs);
void truth_inputs_close(truth_inputs *inputs);

/* Bytes of a row of the base, or of a query, in memory. */
size_t truth_row_size(const truth_inputs *inputs);

/* Makes a scan for `count` queries from `first` on. Returns an exit status; *out is NULL on failure. */
int truth_exact_create(const truth_inputs *inputs, size_t first, size_t count, size_t threads, progress *progress,
                       sl_exact **out);

/* Works on a block of rows: the block's memory may be changed. Returns an exit status. */
typedef int (*truth_block_fn)(void *ctx, char *block, size_t first, size_t count);

/* Reads rows first to end - 1 of the base in blocks of up to `bytes` bytes, and hands each on. Returns an exit status.
 */
int truth_read_blocks(const truth_inputs *inputs, size_t first, size_t end, size_t bytes, truth_block_fn work,
                      void *ctx);

#endif
