#define _GNU_SOURCE
#include "base/crc32c.h"
#include "ranker/model_file.h"
#include "ranker/train.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

/* Section TRAINER begins with it; behind it, as floats: the block of the weights as they are, the states of the layers'
 * optimiser, those of the sparse parts. */
typedef struct trainer_record {
    uint32_t spec_crc;
    uint32_t rows_crc;
    uint64_t seed;
    uint64_t epoch, batch, best_epoch;
    double loss_sum, weight_sum;
    double best_train_loss, best_valid_loss, best_valid_auc;
    uint64_t weights, dense_states, sparse_states; /* floats */
    uint64_t reserved[3];
} trainer_record;
static_assert(sizeof(trainer_record) == 128, "trainer_record");

typedef struct record_parts {
    trainer_record *head;
    float *weights, *dense, *sparse;
    size_t weight_count, dense_count, sparse_count;
} record_parts;

static record_parts parts_of(const sl_trainer *trainer) {
    record_parts parts = {.head = trainer->record,
                          .weight_count = trainer->weights.block_size,
                          .dense_count = trainer->dense_size * trainer->dense_states,
                          .sparse_count = sl_sparse_state_size(trainer->sparse)};
    parts.weights = (float *)(void *)(parts.head + 1);
    parts.dense = parts.weights + parts.weight_count;
    parts.sparse = parts.dense + parts.dense_count;
    return parts;
}

/* What makes a training what it is, but for the rows and the seed. The number of epochs matters where the rates depend
 * on it; the default of `forget` is not in the text. */
static uint32_t spec_crc(const sl_trainer *trainer) {
    const sl_spec *spec = trainer->spec;
    uint64_t epochs = spec->schedule == SL_SCHEDULE_CONSTANT ? 0 : trainer->epochs;
    uint32_t crc = sl_crc32c(0, spec->text, spec->text_size);
    crc = sl_crc32c(crc, &epochs, sizeof epochs);
    return sl_crc32c(crc, &spec->forget, sizeof spec->forget);
}

sl_status sl_checkpoint_prepare(sl_trainer *trainer) {
    void *block;
    size_t floats = 0, bytes;
    if (!trainer->params.checkpoint) return SL_OK;
    record_parts parts = parts_of(trainer);
    if (!sl_add(parts.weight_count, parts.dense_count, &floats) || !sl_add(floats, parts.sparse_count, &floats) ||
        !sl_mul(floats, sizeof(float), &bytes) || !sl_add(bytes, sizeof(trainer_record), &bytes))
        return sl_fail(SL_ENOMEM, "a checkpoint does not fit the address space");
    SL_TRY(sl_mem_alloc(&trainer->allocator, bytes, &block));
    trainer->record = block;
    trainer->record_size = bytes;
    trainer->spec_crc = spec_crc(trainer);
    trainer->rows_crc = sl_dataset_crc(&trainer->data);
    return sl_features_write(trainer->features, &trainer->allocator, &trainer->features_data, &trainer->features_size);
}

void sl_checkpoint_release(sl_trainer *trainer) {
    sl_mem_free(&trainer->allocator, trainer->record, trainer->record_size);
    sl_mem_free(&trainer->allocator, trainer->features_data, trainer->features_size);
}

/* ---------------------------------------------------------------------------------------------------------------
 * Writing
 * ------------------------------------------------------------------------------------------------------------- */

static void fill_record(const sl_trainer *trainer) {
    record_parts parts = parts_of(trainer);
    const sl_train_state *state = &trainer->state;
    *parts.head = (trainer_record){.spec_crc = trainer->spec_crc,
                                   .rows_crc = trainer->rows_crc,
                                   .seed = trainer->spec->seed,
                                   .epoch = state->epoch,
                                   .batch = state->batch,
                                   .best_epoch = state->best_epoch,
                                   .loss_sum = state->loss_sum,
                                   .weight_sum = state->weight_sum,
                                   .best_train_loss = state->best_train_loss,
                                   .best_valid_loss = state->best_valid_loss,
                                   .best_valid_auc = state->best_valid_auc,
                                   .weights = parts.weight_count,
                                   .dense_states = parts.dense_count,
                                   .sparse_states = parts.sparse_count};
    memcpy(parts.weights, trainer->weights.block, parts.weight_count * sizeof(float));
    if (parts.dense_count) memcpy(parts.dense, trainer->dense_state, parts.dense_count * sizeof(float));
    sl_sparse_state_write(trainer->sparse, parts.sparse);
}

sl_status sl_checkpoint_write(sl_trainer *trainer) {
    sl_weights_layout layout;
    sl_section_source sections[SL_MODEL_SECTIONS + 1];
    const char *path = trainer->params.checkpoint;
    if (!path) return SL_OK;
    SL_TRY(sl_weights_layout_of(trainer->features, &trainer->shape, &layout));
    fill_record(trainer);
    size_t floats = (trainer->record_size - sizeof(trainer_record)) / sizeof(float);
    if (!sl_all_finite(parts_of(trainer).weights, floats))
        return sl_fail(SL_EVALUE, "a weight is not finite any more (epoch %llu): lower deep.rate or wide.rate",
                       (unsigned long long)trainer->state.epoch);
    size_t count = sl_model_describe(trainer->features, trainer->features_data, trainer->features_size,
                                     sl_trainer_best(trainer), &layout, sections);
    sections[count++] = (sl_section_source){SL_SECTION_TRAINER, 0, trainer->record, trainer->record_size, 0, NULL};
    return sl_store_save(path, &(sl_file_content){&sl_ranker_file, NULL, sections, count}, NULL, NULL, NULL);
}

/* ---------------------------------------------------------------------------------------------------------------
 * Reading
 * ------------------------------------------------------------------------------------------------------------- */

static sl_status other_training(const sl_trainer *trainer, const char *what) {
    return sl_fail(SL_EFORMAT, "%s is the checkpoint of a training with %s; name another file, or remove it",
                   trainer->params.checkpoint, what);
}

static int has_plain_numbers(const trainer_record *head, const float *numbers, size_t count) {
    return head->best_epoch <= head->epoch && head->epoch <= UINT32_MAX && isfinite(head->loss_sum) &&
           isfinite(head->weight_sum) && sl_all_finite(numbers, count);
}

static sl_status no_training(const char *path) {
    return sl_fail(SL_ECORRUPT, "%s: its state of the training is not one a training has; remove it", path);
}

static sl_status check_record(const sl_trainer *trainer, const record_parts *parts) {
    const trainer_record *head = parts->head;
    if (head->spec_crc != trainer->spec_crc) return other_training(trainer, "another spec");
    if (head->seed != trainer->spec->seed) return other_training(trainer, "another seed");
    if (head->rows_crc != trainer->rows_crc) return other_training(trainer, "other rows");
    int unlike = head->weights != parts->weight_count || head->dense_states != parts->dense_count ||
                 head->sparse_states != parts->sparse_count;
    size_t count = parts->weight_count + parts->dense_count + parts->sparse_count;
    if (unlike || head->batch > sl_trainer_batches(trainer) || !has_plain_numbers(head, parts->weights, count))
        return no_training(trainer->params.checkpoint);
    return SL_OK;
}

static sl_status cut_off(const sl_store *store) {
    return sl_fail(SL_ECORRUPT, "%s: its state of the training is cut off; remove it", store->path);
}

/* Whether the numbers behind the head are as many as it says. */
static int counts_agree(const trainer_record *head, uint64_t size) {
    uint64_t left = (size - sizeof *head) / sizeof(float);
    if (size % sizeof(float) || head->weights > left || head->dense_states > left - head->weights) return 0;
    return head->sparse_states == left - head->weights - head->dense_states;
}

sl_status sl_checkpoint_check(const sl_store *store, const sl_file_section *section, const sl_allocator *allocator) {
    void *block;
    if (section->size < sizeof(trainer_record) || section->size > SIZE_MAX) return cut_off(store);
    size_t size = (size_t)section->size;
    SL_TRY(sl_mem_alloc(allocator, size, &block));
    const trainer_record *head = block;
    sl_status status = sl_store_copy(store, section, block, NULL);
    if (status == SL_OK &&
        (!counts_agree(head, size) ||
         !has_plain_numbers(head, (const float *)(const void *)(head + 1), (size - sizeof *head) / sizeof(float))))
        status = no_training(store->path);
    sl_mem_free(allocator, block, size);
    return status;
}

/* The best weights are the file's model. */
static sl_status read_best(sl_trainer *trainer, const sl_store *store) {
    sl_weights_layout layout;
    if (!trainer->best.block || !trainer->state.best_epoch) return SL_OK;
    SL_TRY(sl_weights_layout_of(trainer->features, &trainer->shape, &layout));
    return sl_model_read_weights(store, &layout, &trainer->best);
}

static sl_status read_store(sl_trainer *trainer, const sl_store *store) {
    const sl_file_section *section = sl_store_section(store, SL_SECTION_TRAINER);
    if (!section)
        return sl_fail(SL_EFORMAT, "%s is a finished model, not a checkpoint; name another file", store->path);
    if (section->size < sizeof(trainer_record)) return cut_off(store);
    /* A training of other features has a record of another size. */
    if (section->size != trainer->record_size) return other_training(trainer, "another spec or other rows");
    record_parts parts = parts_of(trainer);
    SL_TRY(sl_store_copy(store, section, trainer->record, NULL));
    SL_TRY(check_record(trainer, &parts));
    const trainer_record *head = parts.head;
    memcpy(trainer->weights.block, parts.weights, parts.weight_count * sizeof(float));
    if (parts.dense_count) memcpy(trainer->dense_state, parts.dense, parts.dense_count * sizeof(float));
    sl_sparse_state_read(trainer->sparse, parts.sparse);
    trainer->state = (sl_train_state){.epoch = head->epoch,
                                      .batch = head->batch,
                                      .loss_sum = head->loss_sum,
                                      .weight_sum = head->weight_sum,
                                      .best_epoch = head->best_epoch,
                                      .best_train_loss = head->best_train_loss,
                                      .best_valid_loss = head->best_valid_loss,
                                      .best_valid_auc = head->best_valid_auc};
    return read_best(trainer, store);
}

sl_status sl_checkpoint_read(sl_trainer *trainer, int *found) {
    const char *path = trainer->params.checkpoint;
    sl_store *store;
    *found = path && (access(path, F_OK) == 0 || errno != ENOENT);
    if (!*found) return SL_OK;
    SL_TRY(sl_store_open(path, &sl_ranker_file, SL_PLACE_DRAM, &trainer->allocator, &store));
    sl_status status = read_store(trainer, store);
    /* The next checkpoint is written over it. */
    if (status == SL_OK) status = sl_store_verify_gaps(store, NULL);
    sl_store_close(store, &trainer->allocator);
    return status;
}
