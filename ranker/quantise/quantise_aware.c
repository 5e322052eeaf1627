/* Quantisation by training: trains a model further with its layers in INT8, and compares it with the original. */
#include "ranker/quantise/quantise_aware.h"

#include "base/params.h"
#include "ranker/train/train.h"

/* Reads the training's parameters, and sets those that the quantisation decides. */
static sl_status read_training(const sl_ranker *ranker, const sl_train_params *training, const sl_quantize_params *how,
                               sl_train_params *out) {
    sl_train_params given;
    sl_train_params_init(&given);
    SL_TRY(sl_params_in(&given, sizeof given, training, "sl_train_params_init"));
    given.layers = SL_TRAIN_LAYERS_INT8;
    SL_TRY(sl_train_read_params(&given, out));
    if (out->init)
        return sl_fail(SL_EINVAL,
                       "training has a model to begin with; it is the one to quantise, so leave init at NULL");
    out->init = ranker;
    if (!out->keep_count) {
        out->keep = how->keep;
        out->keep_count = how->keep_count;
    }
    out->lookup = how->lookup;
    out->lookup_ctx = how->lookup_ctx;
    out->allocator = how->allocator;
    return SL_OK;
}

sl_status sl_quantise_aware(const sl_ranker *ranker, const sl_rows *rows, const sl_train_params *training,
                            const sl_quantize_params *how, sl_ranker **out) {
    sl_train_params params;
    sl_ranker *trained, *smaller;
    *out = NULL;
    SL_TRY(read_training(ranker, training, how, &params));
    SL_TRY(sl_ranker_train(NULL, rows, NULL, &params, &trained, NULL));
    *out = trained;
    sl_status status = sl_ranker_with_table_type(trained, how->tables, &smaller);
    if (status == SL_OK && !smaller) return SL_OK;
    sl_ranker_free(trained);
    *out = smaller;
    return status;
}

static sl_status predict_scores(const sl_evaluator *evaluator, const sl_ranker *ranker, const sl_encoded *rows,
                                float *scores) {
    sl_predictor_params params;
    sl_predictor *predictor;
    sl_predictor_params_init(&params);
    params.threads = evaluator->threads;
    params.allocator = &evaluator->allocator;
    SL_TRY(sl_predictor_create(ranker, &params, &predictor));
    sl_status status = sl_predictor_predict_encoded(predictor, rows, scores);
    sl_predictor_free(predictor);
    return status;
}

sl_status sl_compare_rankers(const sl_evaluator *evaluator, const sl_ranker *other, double values[2], double *error) {
    size_t count = evaluator->rows.rows * evaluator->ranker->features->outputs, bytes;
    sl_encoded rows;
    void *block;
    if (!sl_mul(count, 2 * sizeof(float), &bytes))
        return sl_fail(SL_ENOMEM, "scores of %zu rows do not fit; give fewer", evaluator->rows.rows);
    SL_TRY(sl_mem_alloc(&evaluator->allocator, bytes, &block));
    float *first = block, *second = first + count;
    sl_rows_buffer_view(&evaluator->rows, &rows);
    rows.struct_size = sizeof rows;
    sl_status status = predict_scores(evaluator, evaluator->ranker, &rows, first);
    if (status == SL_OK) status = predict_scores(evaluator, other, &rows, second);
    if (status == SL_OK) status = sl_evaluator_compare(evaluator, first, second, values, error);
    sl_mem_free(&evaluator->allocator, block, bytes);
    return status;
}
