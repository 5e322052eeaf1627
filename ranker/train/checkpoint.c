/* Writes, reads and checks checkpoints. */
#define _GNU_SOURCE
#include "ranker/train/checkpoint.h"

#include "base/crc32c.h"
#include "ranker/model/model_file.h"
#include "ranker/train/table_shards.h"
#include "ranker/train/train_reduce.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

/* Section TRAINER begins with this record. Then come floats: the block of present weights, the states of the layers'
 * optimiser, the states of the sparse parts. */
typedef struct trainer_record {
    uint32_t spec_crc;
    uint32_t rows_crc;
    uint64_t seed;
    uint64_t epoch, minibatch, best_epoch;
    double loss_sum, weight_sum;
    double best_train_loss, best_valid_loss, best_valid_auc;
    uint64_t weights, dense_states, sparse_states; /* floats */
    uint8_t precision; /* sl_train_precision - SL_TRAIN_F32; 0 in files written before there were others */
    uint8_t static_scale;
    uint16_t good_steps;
    uint32_t settings_crc; /* the trainer's */
    double loss_scale;
    uint64_t skipped;
} trainer_record;
static_assert(sizeof(trainer_record) == 128, "trainer_record");

/* Section RANGES begins with this record. Then come floats: the present numbers, the best ones, the states of their
 * optimiser. */
typedef struct ranges_record {
    uint32_t kind;    /* sl_train_ranges */
    uint32_t started; /* 0 or 1 */
    uint32_t layers;  /* bit i: layer i is in INT8 */
    uint32_t reserved;
    uint64_t size, states; /* floats of the numbers; states per number */
} ranges_record;
static_assert(sizeof(ranges_record) == 32, "ranges_record");

struct sl_checkpoint {
    sl_allocator allocator;
    const sl_train_params *params;
    const char *path;
    void *features_data; /* the features' bytes, from sl_features_write */
    void *record;        /* section TRAINER, to write or just read */
    void *ranges;        /* section RANGES, the same; NULL without layers in INT8 */
    size_t features_size, record_size, ranges_size;
    uint32_t spec_crc, rows_crc;
};

/* The parts of the record, and their sizes in floats. */
typedef struct record_parts {
    trainer_record *head;
    float *weights, *dense, *sparse;
    size_t weight_count, dense_count, sparse_count;
} record_parts;

static record_parts parts_of(const sl_trainer *trainer, void *record) {
    record_parts parts = {.head = record,
                          .weight_count = trainer->weights.block_size,
                          .dense_count = trainer->dense_size * trainer->dense_states,
                          .sparse_count = sl_sparse_state_size(trainer->sparse)};
    parts.weights = (float *)(void *)(parts.head + 1);
    parts.dense = parts.weights + parts.weight_count;
    parts.sparse = parts.dense + parts.dense_count;
    return parts;
}

static sl_status size_record(const sl_trainer *trainer, size_t *bytes) {
    size_t floats = trainer->dense_size * trainer->dense_states;
    if (sl_add(floats, trainer->weights.block_size, &floats) &&
        sl_add(floats, sl_sparse_state_size(trainer->sparse), &floats) && sl_mul(floats, sizeof(float), bytes) &&
        sl_add(*bytes, sizeof(trainer_record), bytes))
        return SL_OK;
    return sl_fail(SL_ENOMEM, "a checkpoint does not fit the address space");
}

/* Fingerprint of the training without its rows and its seed. The number of epochs counts only if the rates depend on
 * it. `forget` counts on its own, because the text may lack it. */
static uint32_t spec_crc(const sl_trainer *trainer) {
    const sl_spec *spec = trainer->spec;
    uint64_t epochs = spec->schedule == SL_SCHEDULE_CONSTANT ? 0 : trainer->epochs;
    uint32_t crc = sl_crc32c(0, spec->text, spec->text_size);
    crc = sl_crc32c(crc, &epochs, sizeof epochs);
    return sl_crc32c(crc, &spec->forget, sizeof spec->forget);
}

static size_t range_floats(const sl_ranges *ranges) {
    return (2 + ranges->states) * ranges->size;
}

static sl_status prepare_sections(sl_checkpoint *checkpoint, const sl_trainer *trainer) {
    const sl_allocator *allocator = &checkpoint->allocator;
    size_t bytes = 0;
    const sl_ranks *ranks = trainer->on.ranks;
    SL_TRY(size_record(trainer, &bytes));
    /* Rank 0 alone writes and reads the file. */
    if (!ranks || ranks->rank == 0) SL_TRY(sl_mem_alloc(allocator, bytes, &checkpoint->record));
    checkpoint->record_size = bytes;
    if (trainer->ranges) {
        bytes = sizeof(ranges_record) + range_floats(trainer->ranges) * sizeof(float);
        SL_TRY(sl_mem_alloc(allocator, bytes, &checkpoint->ranges));
        checkpoint->ranges_size = bytes;
    }
    checkpoint->spec_crc = spec_crc(trainer);
    SL_TRY(sl_dataset_crc(&trainer->data, &checkpoint->rows_crc));
    return sl_features_write(trainer->features, allocator, &checkpoint->features_data, &checkpoint->features_size);
}

sl_status sl_checkpoint_create(const sl_train_params *params, const sl_trainer *trainer, sl_checkpoint **out) {
    void *block;
    *out = NULL;
    SL_TRY(sl_mem_alloc(&trainer->allocator, sizeof(sl_checkpoint), &block));
    sl_checkpoint *checkpoint = block;
    checkpoint->allocator = trainer->allocator;
    checkpoint->params = params;
    checkpoint->path = params->checkpoint;
    sl_status status = prepare_sections(checkpoint, trainer);
    if (status == SL_OK)
        *out = checkpoint;
    else
        sl_checkpoint_free(checkpoint);
    return status;
}

void sl_checkpoint_free(sl_checkpoint *checkpoint) {
    if (!checkpoint) return;
    sl_allocator allocator = checkpoint->allocator;
    if (checkpoint->record) sl_mem_free(&allocator, checkpoint->record, checkpoint->record_size);
    sl_mem_free(&allocator, checkpoint->ranges, checkpoint->ranges_size);
    sl_mem_free(&allocator, checkpoint->features_data, checkpoint->features_size);
    SL_FREE(&allocator, checkpoint);
}

/* ---------------------------------------------------------------------------------------------------------------
 * Writing
 * ------------------------------------------------------------------------------------------------------------- */

/* Copies the state into the record. */
static void fill_record(const sl_checkpoint *checkpoint, const sl_trainer *trainer) {
    record_parts parts = parts_of(trainer, checkpoint->record);
    const sl_train_position *position = &trainer->position;
    const sl_precision_state *precision = &trainer->precision;
    *parts.head = (trainer_record){.spec_crc = checkpoint->spec_crc,
                                   .rows_crc = checkpoint->rows_crc,
                                   .settings_crc = trainer->settings_crc,
                                   .seed = trainer->spec->seed,
                                   .epoch = position->epoch,
                                   .minibatch = position->minibatch,
                                   .best_epoch = position->best_epoch,
                                   .loss_sum = position->loss_sum,
                                   .weight_sum = position->weight_sum,
                                   .best_train_loss = position->best_train_loss,
                                   .best_valid_loss = position->best_valid_loss,
                                   .best_valid_auc = position->best_valid_auc,
                                   .weights = parts.weight_count,
                                   .dense_states = parts.dense_count,
                                   .sparse_states = parts.sparse_count,
                                   .precision = (uint8_t)(precision->precision - SL_TRAIN_F32),
                                   .static_scale = (uint8_t)precision->is_static,
                                   .good_steps = (uint16_t)precision->good_steps,
                                   .loss_scale = precision->loss_scale,
                                   .skipped = precision->skipped};
    memcpy(parts.weights, trainer->weights.block, parts.weight_count * sizeof(float));
    if (parts.dense_count) memcpy(parts.dense, trainer->dense_state, parts.dense_count * sizeof(float));
    sl_sparse_state_write(trainer->sparse, parts.sparse);
}

static uint32_t layers_of(const sl_ranges *ranges) {
    uint32_t layers = 0;
    for (size_t l = 0; l < SL_MAX_LAYERS && l < ranges->shape.layers; l++)
        layers |= (uint32_t)(ranges->layers[l].is_int8 != 0) << l;
    return layers;
}

/* Assembles section RANGES. */
static sl_status fill_ranges(sl_checkpoint *checkpoint, const sl_ranges *ranges) {
    ranges_record *head = checkpoint->ranges;
    *head = (ranges_record){.kind = (uint32_t)ranges->kind,
                            .started = (uint32_t)ranges->started,
                            .layers = layers_of(ranges),
                            .size = ranges->size,
                            .states = ranges->states};
    memcpy(head + 1, ranges->numbers, range_floats(ranges) * sizeof(float));
    if (sl_all_finite(ranges->numbers, range_floats(ranges))) return SL_OK;
    return sl_fail(SL_EVALUE, "a range of the layers in INT8 is not finite any more: lower deep.rate");
}

static sl_status write_checkpoint(sl_checkpoint *checkpoint, const sl_trainer *trainer) {
    sl_weights_layout layout;
    sl_section_source sections[SL_MODEL_SECTIONS + 2];
    SL_TRY(sl_weights_layout_of(trainer->features, &trainer->shape, &layout));
    size_t floats = (checkpoint->record_size - sizeof(trainer_record)) / sizeof(float);
    if (!sl_all_finite(parts_of(trainer, checkpoint->record).weights, floats))
        return sl_fail(SL_EVALUE, "a weight is not finite any more (epoch %llu): lower deep.rate or wide.rate",
                       (unsigned long long)trainer->position.epoch);
    size_t count = sl_model_describe(trainer->features, checkpoint->features_data, checkpoint->features_size,
                                     sl_trainer_best(trainer), &layout, NULL, sections);
    if (trainer->ranges) {
        SL_TRY(fill_ranges(checkpoint, trainer->ranges));
        sections[count++] =
            (sl_section_source){.kind = SL_SECTION_RANGES, .data = checkpoint->ranges, .size = checkpoint->ranges_size};
    }
    sections[count++] =
        (sl_section_source){.kind = SL_SECTION_TRAINER, .data = checkpoint->record, .size = checkpoint->record_size};
    return sl_store_save(checkpoint->path, &(sl_file_content){&sl_ranker_file, NULL, sections, count}, NULL, NULL,
                         NULL);
}

sl_status sl_checkpoint_write(sl_checkpoint *checkpoint, sl_trainer *trainer) {
    const sl_ranks *ranks = trainer->on.ranks;
    const int writes = !ranks || ranks->rank == 0;
    SL_TRY(sl_shards_sync(trainer));
    if (writes) fill_record(checkpoint, trainer);
    SL_TRY(sl_shards_gather_states(trainer, writes ? parts_of(trainer, checkpoint->record).sparse : NULL));
    return sl_ranks_agree(ranks, writes ? write_checkpoint(checkpoint, trainer) : SL_OK);
}

/* ---------------------------------------------------------------------------------------------------------------
 * Reading
 * ------------------------------------------------------------------------------------------------------------- */

static sl_status fail_other_training(const char *path, const char *what) {
    return sl_fail(SL_EFORMAT, "%s is the checkpoint of a training with %s; name another file, or remove it", path,
                   what);
}

static sl_precision_state precision_of(const trainer_record *head) {
    return (sl_precision_state){.precision = (sl_train_precision)(SL_TRAIN_F32 + head->precision),
                                .is_static = head->static_scale,
                                .good_steps = head->good_steps,
                                .loss_scale = head->loss_scale,
                                .skipped = head->skipped};
}

static int has_plain_numbers(const trainer_record *head, const float *numbers, size_t count) {
    sl_precision_state precision = precision_of(head);
    return head->best_epoch <= head->epoch && head->epoch <= UINT32_MAX && isfinite(head->loss_sum) &&
           isfinite(head->weight_sum) && sl_precision_is_sound(&precision, UINT64_MAX) && sl_all_finite(numbers, count);
}

static sl_status fail_bad_state(const char *path) {
    return sl_fail(SL_ECORRUPT, "%s: its state of the training is not one a training has; remove it", path);
}

static sl_status fail_other_precision(const sl_checkpoint *checkpoint, const sl_precision_state *found) {
    const sl_train_params *params = checkpoint->params;
    if (params->precision != found->precision)
        return sl_fail(SL_EFORMAT,
                       "%s is the checkpoint of a training in %s, and %s is asked for; leave the precision out to go "
                       "on with it, or name another file",
                       checkpoint->path, sl_train_precision_name(found->precision),
                       sl_train_precision_name(params->precision));
    return sl_fail(SL_EFORMAT,
                   "%s is the checkpoint of a training with %s loss scale; ask for that one, leave precision and scale "
                   "out to go on with it, or name another file",
                   checkpoint->path, found->is_static ? "another" : "an adaptive");
}

static sl_status check_record(const sl_checkpoint *checkpoint, const sl_trainer *trainer, const record_parts *parts) {
    const trainer_record *head = parts->head;
    if (head->spec_crc != checkpoint->spec_crc) return fail_other_training(checkpoint->path, "another spec");
    if (head->seed != trainer->spec->seed) return fail_other_training(checkpoint->path, "another seed");
    if (head->settings_crc != trainer->settings_crc)
        return fail_other_training(checkpoint->path,
                                   "another teacher, start model, pruning, rate scale, mini-batch or warm-up");
    if (head->rows_crc != checkpoint->rows_crc)
        return fail_other_training(checkpoint->path,
                                   "other rows, or over ranks where this is one process, or the reverse");
    int unlike = head->weights != parts->weight_count || head->dense_states != parts->dense_count ||
                 head->sparse_states != parts->sparse_count;
    size_t count = parts->weight_count + parts->dense_count + parts->sparse_count;
    uint64_t minibatches = sl_trainer_minibatches(trainer);
    if (unlike || head->minibatch > minibatches || !has_plain_numbers(head, parts->weights, count))
        return fail_bad_state(checkpoint->path);
    sl_precision_state precision = precision_of(head);
    if (!sl_precision_is_sound(&precision, head->epoch * minibatches + head->minibatch) ||
        (precision.precision != SL_TRAIN_F32 && !trainer->net))
        return fail_bad_state(checkpoint->path);
    if (!sl_precision_fits(checkpoint->params, trainer->net != NULL, &precision))
        return fail_other_precision(checkpoint, &precision);
    return SL_OK;
}

/* Refuses a checkpoint whose layers have other types, or get their ranges in another way. */
static sl_status check_kind(const sl_checkpoint *checkpoint, const sl_trainer *trainer, const sl_store *store) {
    static const char *const names[] = {"layers in INT8 and observed ranges", "layers in INT8 and learned ranges"};
    const sl_file_section *section = sl_store_section(store, SL_SECTION_RANGES);
    const sl_ranges *ranges = trainer->ranges;
    ranges_record head;
    if (!section && !ranges) return SL_OK;
    if (!section) return fail_other_training(checkpoint->path, "layers in F32");
    if (!ranges) return fail_other_training(checkpoint->path, "layers in INT8");
    if (section->size < sizeof head) return fail_bad_state(checkpoint->path);
    SL_TRY(sl_store_verify(store, section, NULL));
    memcpy(&head, store->base + section->offset, sizeof head);
    if (head.kind > SL_TRAIN_RANGES_LEARNED) return fail_bad_state(checkpoint->path);
    if (head.kind != ranges->kind) return fail_other_training(checkpoint->path, names[head.kind]);
    if (head.layers != layers_of(ranges)) return fail_other_training(checkpoint->path, "other layers in INT8");
    return SL_OK;
}

/* Reads the ranges. check_record has accepted the checkpoint. */
static sl_status read_ranges(sl_checkpoint *checkpoint, sl_trainer *trainer, const sl_store *store) {
    sl_ranges *ranges = trainer->ranges;
    const ranges_record *head = checkpoint->ranges;
    if (!ranges) return SL_OK;
    const sl_file_section *section = sl_store_section(store, SL_SECTION_RANGES);
    if (section->size != checkpoint->ranges_size) return fail_bad_state(checkpoint->path);
    SL_TRY(sl_store_copy(store, section, checkpoint->ranges, NULL));
    const float *numbers = (const float *)(const void *)(head + 1);
    if (head->kind != ranges->kind || head->size != ranges->size || head->states != ranges->states ||
        head->started > 1 || !sl_all_finite(numbers, range_floats(ranges)) ||
        (head->started && !sl_ranges_are_sound(ranges, numbers)) ||
        (trainer->position.best_epoch && !sl_ranges_are_sound(ranges, numbers + ranges->size)))
        return fail_bad_state(checkpoint->path);
    memcpy(ranges->numbers, numbers, range_floats(ranges) * sizeof(float));
    ranges->started = (int)head->started;
    return sl_trainer_use_ranges(trainer);
}

static sl_status fail_cut_off(const sl_store *store) {
    return sl_fail(SL_ECORRUPT, "%s: its state of the training is cut off; remove it", store->path);
}

/* Returns whether the record's counts match the section's size. */
static int counts_agree(const trainer_record *head, uint64_t size) {
    uint64_t left = (size - sizeof *head) / sizeof(float);
    if (size % sizeof(float) || head->weights > left || head->dense_states > left - head->weights) return 0;
    return head->sparse_states == left - head->weights - head->dense_states;
}

/* Checks section RANGES, if it exists, without a trainer. */
static sl_status check_ranges(const sl_store *store, const sl_allocator *allocator) {
    const sl_file_section *section = sl_store_section(store, SL_SECTION_RANGES);
    void *block;
    if (!section) return SL_OK;
    if (section->size < sizeof(ranges_record) || section->size > SIZE_MAX) return fail_cut_off(store);
    size_t size = (size_t)section->size, floats = (size - sizeof(ranges_record)) / sizeof(float);
    SL_TRY(sl_mem_alloc(allocator, size, &block));
    const ranges_record *head = block;
    sl_status status = sl_store_copy(store, section, block, NULL);
    if (status == SL_OK &&
        (head->kind > SL_TRAIN_RANGES_LEARNED || head->started > 1 || head->reserved || head->states > 2 ||
         size % sizeof(float) || head->size > floats || (2 + head->states) * head->size != floats ||
         !sl_all_finite((const float *)(const void *)(head + 1), floats)))
        status = fail_bad_state(store->path);
    sl_mem_free(allocator, block, size);
    return status;
}

sl_status sl_checkpoint_check(const sl_store *store, const sl_file_section *section, const sl_allocator *allocator) {
    void *block;
    if (section->size < sizeof(trainer_record) || section->size > SIZE_MAX) return fail_cut_off(store);
    size_t size = (size_t)section->size;
    SL_TRY(sl_mem_alloc(allocator, size, &block));
    const trainer_record *head = block;
    sl_status status = sl_store_copy(store, section, block, NULL);
    if (status == SL_OK &&
        (!counts_agree(head, size) ||
         !has_plain_numbers(head, (const float *)(const void *)(head + 1), (size - sizeof *head) / sizeof(float))))
        status = fail_bad_state(store->path);
    sl_mem_free(allocator, block, size);
    return status == SL_OK ? check_ranges(store, allocator) : status;
}

/* Reads the best weights: the file's model. */
static sl_status read_best(sl_trainer *trainer, const sl_store *store) {
    sl_weights_layout layout;
    if (!trainer->best.block || !trainer->position.best_epoch) return SL_OK;
    SL_TRY(sl_weights_layout_of(trainer->features, &trainer->shape, &layout));
    return sl_model_read_weights(store, &layout, &trainer->best);
}

static sl_status read_store(sl_checkpoint *checkpoint, sl_trainer *trainer, const sl_store *store) {
    const sl_file_section *section = sl_store_section(store, SL_SECTION_TRAINER);
    if (!section)
        return sl_fail(SL_EFORMAT, "%s is a finished model, not a checkpoint; name another file", store->path);
    if (section->size < sizeof(trainer_record)) return fail_cut_off(store);
    SL_TRY(check_kind(checkpoint, trainer, store));
    /* Other features make a record of another size. */
    if (section->size != checkpoint->record_size) return fail_other_training(store->path, "another spec or other rows");
    record_parts parts = parts_of(trainer, checkpoint->record);
    SL_TRY(sl_store_copy(store, section, checkpoint->record, NULL));
    SL_TRY(check_record(checkpoint, trainer, &parts));
    const trainer_record *head = parts.head;
    const sl_precision_state precision = precision_of(head);
    SL_TRY(sl_trainer_use_precision(trainer, &precision));
    memcpy(trainer->weights.block, parts.weights, parts.weight_count * sizeof(float));
    if (parts.dense_count) memcpy(trainer->dense_state, parts.dense, parts.dense_count * sizeof(float));
    sl_sparse_state_read(trainer->sparse, parts.sparse);
    trainer->position = (sl_train_position){.epoch = head->epoch,
                                            .minibatch = head->minibatch,
                                            .loss_sum = head->loss_sum,
                                            .weight_sum = head->weight_sum,
                                            .best_epoch = head->best_epoch,
                                            .best_train_loss = head->best_train_loss,
                                            .best_valid_loss = head->best_valid_loss,
                                            .best_valid_auc = head->best_valid_auc};
    SL_TRY(read_ranges(checkpoint, trainer, store));
    return read_best(trainer, store);
}

static sl_status read_checkpoint(sl_checkpoint *checkpoint, sl_trainer *trainer, int *found) {
    sl_store *store;
    *found = access(checkpoint->path, F_OK) == 0 || errno != ENOENT;
    if (!*found) return SL_OK;
    SL_TRY(sl_store_open(checkpoint->path, &sl_ranker_file, SL_PLACE_DRAM, &checkpoint->allocator, &store));
    sl_status status = read_store(checkpoint, trainer, store);
    /* The next checkpoint replaces this file. */
    if (status == SL_OK) status = sl_store_verify_gaps(store, NULL);
    sl_store_close(store, &checkpoint->allocator);
    return status;
}

/* Gives all ranks the states of the sparse parts, which rank 0 has in its record. */
static sl_status broadcast_sparse(const sl_checkpoint *checkpoint, sl_trainer *trainer) {
    const sl_ranks *ranks = trainer->on.ranks;
    const size_t count = sl_sparse_state_size(trainer->sparse);
    sl_status status = SL_OK;
    float *own = ranks->rank == 0 ? NULL : sl_mem_array(&checkpoint->allocator, count, sizeof *own, &status);
    float *states = ranks->rank == 0 ? parts_of(trainer, checkpoint->record).sparse : own;
    status = ranks->agree(ranks->ctx, status);
    if (status == SL_OK) status = ranks->broadcast(ranks->ctx, states, count * sizeof *states);
    if (status == SL_OK) sl_sparse_state_read(trainer->sparse, states);
    SL_FREE_ARRAY(&checkpoint->allocator, own, count);
    return status;
}

sl_status sl_checkpoint_read(sl_checkpoint *checkpoint, sl_trainer *trainer, int *found) {
    const sl_ranks *ranks = trainer->on.ranks;
    *found = 0;
    if (!ranks) return read_checkpoint(checkpoint, trainer, found);
    SL_TRY(ranks->agree(ranks->ctx, ranks->rank == 0 ? read_checkpoint(checkpoint, trainer, found) : SL_OK));
    SL_TRY(ranks->broadcast(ranks->ctx, found, sizeof *found));
    if (!*found) return SL_OK;
    SL_TRY(sl_trainer_broadcast(trainer));
    return broadcast_sparse(checkpoint, trainer);
}
