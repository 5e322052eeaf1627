/* Training of the wide part and the embeddings: a row touches only a few of their weights.
 *
 *     collect                      reduce                            apply
 *     gradients summed by weight   sums of other machines added up   weights stepped by the sums
 *
 * Collecting changes no weight, and applying reads no row. One process has nothing to reduce. For several ranks,
 * train_reduce.h adds to `gradients` between the two calls. */
#ifndef SL_RANKER_TRAIN_SPARSE_TRAIN_H
#define SL_RANKER_TRAIN_SPARSE_TRAIN_H

#include "ranker/features/features.h"
#include "ranker/net/loops.h"
#include "ranker/net/row_sums.h"

/* The gradients of one mini-batch. */
typedef struct sl_sparse_gradients {
    sl_row_sums wide;    /* rows of `outputs` weights */
    float *bias;         /* outputs */
    sl_row_sums *tables; /* one per embedding table: rows of its dim */
} sl_sparse_gradients;

/* Which rows of the embedding tables this process steps: all, or of sharded tables those of one rank. */
typedef struct sl_row_owner {
    size_t rank, ranks;           /* the owner of row i of a sharded table is rank i % ranks */
    const unsigned char *sharded; /* one flag for each table; NULL: no table is sharded */
} sl_row_owner;

typedef struct sl_sparse_trainer {
    sl_allocator allocator;
    const sl_features *features;
    const sl_loops *loops;
    size_t threads;
    sl_row_owner owner;
    size_t wide_count; /* weights of the wide part: wide_size * outputs */
    float *wide_state; /* FTRL's z, then n, of the wide weights; then z and n of the bias */
    /* One per table, of the rows that this process steps. AdaGrad: sums of squares. Adam: first moments, then second
     * moments. */
    float **table_states;
    sl_sparse_gradients gradients;
} sl_sparse_trainer;

/* Makes the optimisers' states, and memory for the gradients of max_rows rows. Collecting and applying allocate
 * nothing.
 * Parameters: owner may be NULL, for all rows. Its flags stay valid as long as the trainer. */
sl_status sl_sparse_trainer_create(const sl_features *features, size_t max_rows, size_t threads,
                                   const sl_row_owner *owner, const sl_allocator *allocator, sl_sparse_trainer **out);
void sl_sparse_trainer_free(sl_sparse_trainer *trainer);

/* ---- sparse_collect.c. Sums follow the order of features and rows, whatever the number of threads. ---- */

/* Sums the gradients by the wide weights and the bias.
 * Parameters: gradient is by the logits, (rows, outputs). */
void sl_wide_collect(sl_sparse_trainer *trainer, const sl_encoded *rows, const float *gradient);
/* Sums the gradients by the embeddings.
 * Parameters: input_gradient is by the deep part's inputs, (rows, deep_inputs). The embeddings show which id of a bag
 * gave its maximum.
 * Threads: one thread per table. */
void sl_embedding_collect(sl_sparse_trainer *trainer, const float *const *embeddings, const sl_encoded *rows,
                          const float *input_gradient);

/* ---- sparse_apply.c. Untouched weights and their states do not change. ---- */

/* Steps the touched wide weights and the bias by FTRL-proximal. The bias has neither L1 nor L2.
 * Parameters: rate is the spec's rate times the schedule's factor, which falls from 1 to 0. The factor scales the
 * gradient, so the weights stop moving at the end. */
void sl_wide_apply(sl_sparse_trainer *trainer, float *wide, float *bias, double rate);
/* Steps the touched embeddings by AdaGrad or Adam. It ignores step->l2, which decays dense weights only.
 * Threads: one thread per table. */
void sl_embedding_apply(sl_sparse_trainer *trainer, float *const *embeddings, const sl_step *step);

/* ---- sparse_train.c ---- */

/* Returns whether any step had a gradient for this row of a table. */
int sl_sparse_is_touched(const sl_sparse_trainer *trainer, size_t table, size_t row);

/* The states of all rows as consecutive floats, for a checkpoint: wide_state, then the tables' states. Of sharded
 * tables sl_sparse_state_write writes the rows of this process alone, and sl_sparse_state_read reads these. */
size_t sl_sparse_state_size(const sl_sparse_trainer *trainer);
void sl_sparse_state_write(const sl_sparse_trainer *trainer, float *out);
void sl_sparse_state_read(sl_sparse_trainer *trainer, const float *in);
/* Where the states of a table begin among these floats. */
size_t sl_sparse_state_at(const sl_sparse_trainer *trainer, size_t table);

/* ---- For the files above ---- */

/* Number of weights of a table. */
static inline size_t sl_table_floats(const sl_features *features, size_t table) {
    return features->tables[table].size * features->tables[table].dim;
}
static inline int sl_is_sharded(const sl_sparse_trainer *trainer, size_t table) {
    return trainer->owner.sharded && trainer->owner.sharded[table];
}
/* Processes that the rows of a table are divided among. */
static inline size_t sl_row_owners(const sl_sparse_trainer *trainer, size_t table) {
    return sl_is_sharded(trainer, table) ? trainer->owner.ranks : 1;
}
/* Number of rows of a table that this process steps. */
static inline size_t sl_own_rows(const sl_sparse_trainer *trainer, size_t table) {
    const size_t size = trainer->features->tables[table].size;
    if (!sl_is_sharded(trainer, table)) return size;
    return (size + trainer->owner.ranks - 1 - trainer->owner.rank) / trainer->owner.ranks;
}
/* Number of threads that pay off for this many floats of gradients. */
size_t sl_sparse_threads(const sl_sparse_trainer *trainer, size_t floats);

#endif
