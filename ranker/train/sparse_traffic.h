/* Bytes that the sparse gradients of a training on ranks take, beside those of other ways to send them. */
#ifndef SL_RANKER_TRAIN_SPARSE_TRAFFIC_H
#define SL_RANKER_TRAIN_SPARSE_TRAFFIC_H

#include "ranker/train/sparse_train.h"

/* Sums over the steps of a training. Rows count once for each rank that sends them, and a table that is summed counts
 * twice. A rank itself sends (ranks - 1) / ranks of these bytes if messages go round a ring. Sharded tables are left
 * out. */
typedef struct sl_sparse_traffic {
    uint64_t steps;
    uint64_t moved;  /* handed to the calls that exchange rows and sum tables */
    uint64_t least;  /* for each table and step, the lesser of `unique` and `dense` */
    uint64_t unique; /* touched rows with their numbers, one of each */
    uint64_t dense;  /* whole tables */
    uint64_t raw;    /* a row with its number for each occurrence: of this rank's mini-batches alone */
} sl_sparse_traffic;

/* Bytes of a row's number. */
#define SL_ROW_NUMBER sizeof(uint32_t)

static inline uint64_t sl_sent_row_bytes(size_t width) {
    return SL_ROW_NUMBER + width * sizeof(float);
}
static inline uint64_t sl_summed_table_bytes(size_t size, size_t width) {
    return (uint64_t)2 * size * width * sizeof(float);
}

/* Counts a table of this step. Parameters: size rows of `width` floats; `rows`: touched rows, counted once for each
 * rank. */
void sl_sparse_traffic_add_table(sl_sparse_traffic *traffic, size_t size, size_t width, uint64_t rows);
/* Counts the occurrences in a mini-batch. `is_deep`: the model has embeddings. */
void sl_sparse_traffic_add_raw(sl_sparse_traffic *traffic, const sl_sparse_trainer *trainer, const sl_encoded *rows,
                               int is_deep);

#endif
