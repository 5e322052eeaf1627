/* Opens any bytes as a model file and predicts with the model. Puts the checksums right first, so that the fuzzer's
 * changes reach everything behind them. */
#include "fuzz/fuzz.h"
#include "ranker/features/encode.h"
#include "ranker/model/model.h"
#include "tests/support/faults.h"
#include "tests/support/hostile.h"

/* Scores rows without any value. */
static void predict(const sl_ranker *ranker, const sl_allocator *allocator) {
    enum { ROWS = 3 };
    sl_encoder *encoder;
    sl_predictor *predictor;
    sl_predictor_params params;
    sl_rows_buffer rows = {.allocator = *allocator};
    sl_encoded encoded;
    void *scores;
    sl_predictor_params_init(&params);
    params.allocator = allocator;
    params.max_rows = ROWS;
    demand(sl_predictor_create(ranker, &params, &predictor) == SL_OK, "what opened has predictors");
    demand(sl_encoder_create(ranker->features, SL_ALL_SIDES, 0, NULL, NULL, allocator, &encoder) == SL_OK,
           "and encoders");
    demand(sl_mem_alloc(allocator, ROWS * ranker->features->outputs * sizeof(float), &scores) == SL_OK, "memory");
    sl_status status = sl_encoder_append_missing(encoder, ROWS, &rows);
    demand(status == SL_OK || status == SL_EVALUE, "a missing row is encoded, or cannot be scaled");
    sl_rows_buffer_view(&rows, &encoded);
    if (status == SL_OK)
        demand(sl_predictor_predict_encoded(predictor, &encoded, scores) == SL_OK, "encoded rows have scores");
    sl_mem_free(allocator, scores, ROWS * ranker->features->outputs * sizeof(float));
    sl_rows_buffer_free(&rows);
    sl_encoder_free(encoder);
    sl_predictor_free(predictor);
}

static void use_file(const char *path, size_t file_size) {
    fault_allocator memory;
    fault_allocator_init(&memory, 0);
    sl_ranker_open_params params;
    sl_ranker_open_params_init(&params);
    params.allocator = &memory.allocator;
    sl_ranker *ranker;
    sl_status status = sl_ranker_open(path, &params, &ranker);
    if (status == SL_OK) {
        predict(ranker, params.allocator);
    } else {
        demand(status == SL_EFORMAT || status == SL_EVERSION || status == SL_ECORRUPT, "a bad file is called one");
        demand(!ranker && *sl_last_error(), "a failed open gives no handle and a message");
    }
    demand(memory.largest <= ((size_t)16 << 20) + 64 * file_size, "memory is in proportion to the file");
    sl_ranker_free(ranker);
    demand(memory.live_blocks == 0, "a freed model gives back its memory");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    unsigned char *sealed = malloc(size + 1);
    if (!sealed) abort();
    memcpy(sealed, data, size);
    hostile_seal_as(sealed, size, &sl_ranker_file);
    with_file(sealed, size, use_file);
    free(sealed);
    return 0;
}
