/* Training one model on all ranks of a job. */
#ifndef SL_CLUSTER_TRAIN_TRAIN_H
#define SL_CLUSTER_TRAIN_TRAIN_H

#include "cluster/allreduce/allreduce.h"
#include "ranker/train/train_state.h"

/* What to train on. All ranks give the same. */
typedef struct sl_cluster_training {
    const char *spec;         /* JSON text; NULL: that of params->init */
    const char *const *paths; /* CSV files, which every rank can read */
    size_t path_count;
    const char *valid; /* CSV file of validation rows; NULL: the spec's share of the others */
    const sl_train_params *params;
    sl_train_ranks on; /* the call sets ranks and position */
    sl_allreduce_params reduce;
} sl_cluster_training;

/* What a training exchanged. */
typedef struct sl_cluster_report {
    sl_comm_counts sent;  /* by this rank, in messages and bytes */
    uint32_t weights_crc; /* of the model's weights: the same on every rank */
    sl_allreduce_algorithm algorithm;
    sl_sparse_traffic sparse; /* of all ranks */
} sl_cluster_report;

/*
 * Trains one model. Each rank reads a part of the rows. Statistics, vocabularies, and which rows validate are those of
 * one process. *out is the same model on every rank, which is checked.
 * A failure of one rank is the failure of all.
 */
sl_status sl_cluster_train(const sl_comm *comm, const sl_cluster_training *training, sl_ranker **out,
                           sl_train_report *report, sl_cluster_report *exchanged);

#endif
