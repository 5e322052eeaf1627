#include "cluster/train/train.h"

#include "base/crc32c.h"
#include "cluster/train/reducer.h"
#include "ranker/features/csv_parts.h"
#include "ranker/train/train.h"

/* The rows of this rank. */
typedef struct own_rows {
    sl_csv_parts *train_parts, *valid_parts;
    sl_rows train, valid;
} own_rows;

static void rows_close(own_rows *rows) {
    sl_csv_parts_free(rows->train_parts);
    sl_csv_parts_free(rows->valid_parts);
}

static sl_status rows_open(const sl_cluster_training *training, const sl_ranks *ranks, own_rows *rows) {
    sl_csv_params params;
    sl_csv_params_init(&params);
    params.spec = training->spec;
    *rows = (own_rows){.train_parts = NULL};
    SL_TRY(sl_csv_parts_open(training->paths, training->path_count, &params, ranks, &rows->train_parts));
    SL_TRY(sl_csv_parts_rows(rows->train_parts, &rows->train));
    if (!training->valid) return SL_OK;
    SL_TRY(sl_csv_parts_open(&training->valid, 1, &params, ranks, &rows->valid_parts));
    return sl_csv_parts_rows(rows->valid_parts, &rows->valid);
}

/* Computes a checksum of a model: its spec, weights, and layers in codes. NULL has 0. */
static uint32_t crc_of(const sl_ranker *ranker) {
    if (!ranker) return 0;
    const sl_weights *weights = &ranker->weights;
    uint32_t crc = sl_crc32c(0, ranker->features->spec->text, ranker->features->spec->text_size);
    if (ranker->coded.block) crc = sl_crc32c(crc, ranker->coded.block, ranker->coded.size);
    return sl_crc32c(crc, weights->block, weights->block_size * sizeof(float));
}

/* Checks that all ranks have the same model. `what` names it. */
static sl_status check_model(const sl_comm *comm, const sl_ranker *ranker, const char *what) {
    const uint32_t mine = crc_of(ranker);
    uint32_t first = mine;
    SL_TRY(sl_comm_broadcast(comm, &first, sizeof first, 0));
    return sl_comm_agree(comm, mine == first ? SL_OK : sl_fail(SL_EVALUE, "its %s is not that of rank 0", what));
}

static sl_status train_rows(const sl_comm *comm, const sl_cluster_training *training, const sl_ranks *ranks,
                            sl_ranker **out, sl_train_report *report, sl_cluster_report *exchanged) {
    own_rows rows;
    sl_train_ranks on = training->on;
    SL_TRY(check_model(comm, training->params->teacher, "teacher"));
    SL_TRY(check_model(comm, training->params->init, "model to begin with"));
    sl_status status = rows_open(training, ranks, &rows);
    if (status == SL_OK) {
        on.ranks = ranks;
        on.position = sl_csv_parts_position(rows.train_parts);
        exchanged->sparse = (sl_sparse_traffic){.steps = 0};
        on.traffic = &exchanged->sparse;
        status = sl_train_on_ranks(training->spec, &rows.train, training->valid ? &rows.valid : NULL, training->params,
                                   &on, out, report);
    }
    rows_close(&rows);
    if (status == SL_OK) status = ranks->sum_counts(ranks->ctx, &exchanged->sparse.raw, 1);
    if (status != SL_OK) return status;
    exchanged->weights_crc = crc_of(*out);
    return check_model(comm, *out, "model");
}

sl_status sl_cluster_train(const sl_comm *comm, const sl_cluster_training *training, sl_ranker **out,
                           sl_train_report *report, sl_cluster_report *exchanged) {
    const sl_comm_counts before = sl_comm_counted(comm);
    const size_t bucket = training->on.bucket ? training->on.bucket : SL_TRAIN_BUCKET;
    const sl_ranks *ranks;
    sl_reducer *reducer;
    *out = NULL;
    SL_TRY(sl_reducer_create(comm, &training->reduce, bucket, &reducer, &ranks));
    sl_status status = train_rows(comm, training, ranks, out, report, exchanged);
    /* A rank may have failed in a step of its own. */
    status = sl_comm_agree(comm, status);
    exchanged->algorithm = sl_reducer_algorithm(reducer);
    sl_reducer_free(reducer);
    if (status != SL_OK) {
        sl_ranker_free(*out);
        *out = NULL;
        return status;
    }
    const sl_comm_counts after = sl_comm_counted(comm);
    exchanged->sent = (sl_comm_counts){after.messages - before.messages, after.bytes - before.bytes};
    return SL_OK;
}
