#include "ranker/train/train_reduce.h"

#include "base/crc32c.h"

#include <string.h>

/* ---------------------------------------------------------------------------------------------------------------
 * Dense gradients
 * ------------------------------------------------------------------------------------------------------------- */

/* Begins the sums of the gradients from float `from` on that were not handed over yet. */
static void push_from(sl_trainer *trainer, size_t from) {
    const sl_ranks *ranks = trainer->on.ranks;
    const size_t end = trainer->dense_size - trainer->pushed;
    if (trainer->push_status == SL_OK && end > from)
        trainer->push_status = ranks->sum_begin(ranks->ctx, trainer->dense_gradient + from, end - from);
    trainer->pushed = trainer->dense_size - from;
}

/* Begins a sum once enough layers are complete. The layers of a block lie in rising order, and are completed from the
 * last one down. */
static void on_layer(void *ctx, size_t layer) {
    sl_trainer *trainer = ctx;
    const size_t from = sl_net_weight_at(&trainer->shape, layer);
    const size_t bucket = trainer->on.bucket ? trainer->on.bucket : SL_TRAIN_BUCKET;
    if (!trainer->on.no_overlap && (trainer->dense_size - trainer->pushed - from >= bucket || layer == 0))
        push_from(trainer, from);
}

void sl_trainer_reduce_begin(sl_trainer *trainer) {
    if (!trainer->on.ranks) return;
    trainer->pushed = 0;
    trainer->push_status = SL_OK;
    sl_net_trainer_on_layer(trainer->net, on_layer, trainer);
}

/* ---------------------------------------------------------------------------------------------------------------
 * Sparse gradients
 * ------------------------------------------------------------------------------------------------------------- */

/* Bytes of a row's number beside its sums. */
#define ROW_NUMBER sizeof(uint32_t)

/* Returns whether the rows of all ranks are fewer bytes than the whole table. An all-reduce of the table sends each
 * float twice, less what a rank has itself; a gather sends each rank's rows to all others. */
static int rows_are_fewer(const sl_row_sums *sums, uint64_t rows_of_all) {
    const double row = (double)(ROW_NUMBER + sums->width * sizeof(float));
    return (double)rows_of_all * row <= 2.0 * (double)sums->size * (double)sums->width * sizeof(float);
}

/* Adds the rows that a rank touched. The bytes are their numbers, then their sums. */
static void add_rows(sl_row_sums *sums, const uint8_t *part, size_t bytes) {
    const size_t width = sums->width, count = bytes / (ROW_NUMBER + width * sizeof(float));
    const uint8_t *from = part + count * ROW_NUMBER;
    for (size_t i = 0; i < count; i++, from += width * sizeof(float)) {
        uint32_t row;
        int fresh;
        memcpy(&row, part + i * ROW_NUMBER, sizeof row);
        float *to = sl_row_sums_of(sums, row, &fresh);
        if (fresh) {
            memcpy(to, from, width * sizeof *to);
            continue;
        }
        for (size_t j = 0; j < width; j++) {
            float more;
            memcpy(&more, from + j * sizeof more, sizeof more);
            to[j] += more;
        }
    }
}

/* Gathers the touched rows of all ranks, and adds them up in the order of ranks. */
static sl_status reduce_rows(sl_trainer *trainer, sl_row_sums *sums) {
    const sl_ranks *ranks = trainer->on.ranks;
    const sl_allocator *allocator = &trainer->allocator;
    const size_t numbers = sums->count * ROW_NUMBER, floats = sums->count * sums->width * sizeof(float);
    sl_parts parts = {.data = NULL};
    sl_status status = SL_OK;
    uint8_t *mine = sl_mem_array(allocator, numbers + floats, 1, &status);
    if (status == SL_OK) {
        memcpy(mine, sums->rows, numbers);
        memcpy(mine + numbers, sums->sums, floats);
        status = ranks->gather(ranks->ctx, mine, numbers + floats, allocator, &parts);
    }
    if (status == SL_OK) sl_row_sums_clear(sums);
    for (size_t r = 0; r < ranks->ranks && status == SL_OK; r++)
        add_rows(sums, parts.data + parts.at[r], sl_part_size(&parts, r));
    sl_mem_free(allocator, mine, numbers + floats);
    sl_parts_free(&parts);
    return status;
}

/* Sums the whole table over the ranks. Then every row of it counts as touched if one of its sums is not 0. */
static sl_status reduce_table(sl_trainer *trainer, sl_row_sums *sums) {
    const sl_ranks *ranks = trainer->on.ranks;
    const size_t floats = sums->size * sums->width;
    sl_status status = SL_OK;
    trainer->table_sum = sl_mem_grow(&trainer->allocator, trainer->table_sum, &trainer->table_sum_room, floats,
                                     sizeof *trainer->table_sum, &status);
    SL_TRY(status);
    float *table = trainer->table_sum;
    memset(table, 0, floats * sizeof *table);
    for (size_t i = 0; i < sums->count; i++)
        memcpy(table + sums->rows[i] * sums->width, sums->sums + i * sums->width, sums->width * sizeof *table);
    SL_TRY(ranks->sum_floats(ranks->ctx, table, floats));
    sl_row_sums_clear(sums);
    for (size_t row = 0; row < sums->size; row++) {
        const float *from = table + row * sums->width;
        int is_touched = 0, fresh;
        for (size_t j = 0; j < sums->width && !is_touched; j++)
            is_touched = from[j] != 0;
        if (is_touched) memcpy(sl_row_sums_of(sums, (uint32_t)row, &fresh), from, sums->width * sizeof *from);
    }
    return SL_OK;
}

/* ---------------------------------------------------------------------------------------------------------------
 * A step
 * ------------------------------------------------------------------------------------------------------------- */

/* What a rank tells the others of its step. Then come the numbers of rows that it touched: of the wide part, of each
 * table. */
typedef struct step_record {
    double loss_sum, weight_sum;
    uint32_t overflowed, not_finite, cancelled, reserved;
} step_record;

static sl_row_sums *sums_of(sl_trainer *trainer, size_t number) {
    sl_sparse_gradients *gradients = &trainer->sparse->gradients;
    return number == 0 ? &gradients->wide : &gradients->tables[number - 1];
}

/* Tables of sparse gradients: the wide part, and embeddings if there is a net. */
static size_t sparse_count(const sl_trainer *trainer) {
    return 1 + (trainer->net ? trainer->features->table_count : 0);
}

/* Exchanges the records of a step. rows[i]: rows of all ranks that touched table i, counted once for each rank. */
static sl_status exchange_records(sl_trainer *trainer, uint64_t *rows, size_t tables) {
    const sl_ranks *ranks = trainer->on.ranks;
    const sl_allocator *allocator = &trainer->allocator;
    const size_t size = sizeof(step_record) + tables * sizeof(uint64_t);
    sl_parts parts = {.data = NULL};
    sl_status status = SL_OK;
    uint8_t *mine = sl_mem_array(allocator, size, 1, &status);
    SL_TRY(status);
    step_record record = {trainer->loss_sum,
                          trainer->weight_sum,
                          (uint32_t)trainer->overflowed,
                          (uint32_t)trainer->not_finite,
                          (uint32_t)trainer->cancelled,
                          0};
    memcpy(mine, &record, sizeof record);
    for (size_t i = 0; i < tables; i++) {
        uint64_t count = trainer->overflowed && i > 0 ? 0 : sums_of(trainer, i)->count;
        memcpy(mine + sizeof record + i * sizeof count, &count, sizeof count);
    }
    status = ranks->gather(ranks->ctx, mine, size, allocator, &parts);
    trainer->loss_sum = trainer->weight_sum = 0;
    for (size_t r = 0; r < ranks->ranks && status == SL_OK; r++) {
        const uint8_t *from = parts.data + parts.at[r];
        memcpy(&record, from, sizeof record);
        trainer->loss_sum += record.loss_sum;
        trainer->weight_sum += record.weight_sum;
        trainer->overflowed |= (int)record.overflowed;
        trainer->not_finite |= (int)record.not_finite;
        trainer->cancelled |= (int)record.cancelled;
        for (size_t i = 0; i < tables; i++) {
            uint64_t count;
            memcpy(&count, from + sizeof record + i * sizeof count, sizeof count);
            rows[i] += count;
        }
    }
    sl_mem_free(allocator, mine, size);
    sl_parts_free(&parts);
    return status;
}

/* Sums the sparse gradients, each table in the way that takes fewer bytes. */
static sl_status reduce_sparse(sl_trainer *trainer, const uint64_t *rows, size_t tables) {
    const sl_ranks *ranks = trainer->on.ranks;
    for (size_t i = 0; i < tables; i++) {
        sl_row_sums *sums = sums_of(trainer, i);
        if (rows[i] == 0)
            sl_row_sums_clear(sums);
        else
            SL_TRY(rows_are_fewer(sums, rows[i]) ? reduce_rows(trainer, sums) : reduce_table(trainer, sums));
    }
    return ranks->sum_floats(ranks->ctx, trainer->sparse->gradients.bias, trainer->features->outputs);
}

sl_status sl_trainer_reduce(sl_trainer *trainer) {
    const sl_ranks *ranks = trainer->on.ranks;
    const size_t tables = sparse_count(trainer);
    sl_status status = SL_OK;
    uint64_t *rows = sl_mem_array(&trainer->allocator, tables, sizeof *rows, &status);
    SL_TRY(status);
    if (trainer->net) push_from(trainer, 0);
    status = exchange_records(trainer, rows, tables);
    const int skips = trainer->overflowed || trainer->not_finite;
    if (status == SL_OK && !skips) status = reduce_sparse(trainer, rows, tables);
    if (status == SL_OK && !skips && trainer->net) status = sl_trainer_reduce_seen(trainer);
    /* The dense sums go on beside all this. Wait for them after a failure too: they use the gradients. */
    sl_status waited = trainer->net ? ranks->sum_wait(ranks->ctx) : SL_OK;
    SL_FREE_ARRAY(&trainer->allocator, rows, tables);
    SL_TRY(status);
    SL_TRY(waited);
    return trainer->net ? trainer->push_status : SL_OK;
}

/* ---------------------------------------------------------------------------------------------------------------
 * Ranges of INT8 layers
 * ------------------------------------------------------------------------------------------------------------- */

sl_status sl_trainer_share_ranges(sl_trainer *trainer, sl_status status) {
    const sl_ranks *ranks = trainer->on.ranks;
    if (!ranks) return status;
    /* Other ranks may have too few rows to calibrate on, and take rank 0's ranges. */
    SL_TRY(ranks->agree(ranks->ctx, ranks->rank == 0 ? status : SL_OK));
    return ranks->broadcast(ranks->ctx, trainer->ranges->numbers, trainer->ranges->size * sizeof(float));
}

sl_status sl_trainer_reduce_seen(sl_trainer *trainer) {
    const sl_ranks *ranks = trainer->on.ranks;
    sl_net_fake *fake = trainer->ranges && trainer->ranges->started ? sl_net_trainer_get_fake(trainer->net) : NULL;
    for (size_t l = 0; fake && l < trainer->shape.layers; l++) {
        sl_parts parts = {.data = NULL};
        sl_fake_seen mine = sl_net_fake_seen(fake, l), all = {.low = 0}, other;
        if (!trainer->ranges->layers[l].is_int8) continue;
        SL_TRY(ranks->gather(ranks->ctx, &mine, sizeof mine, &trainer->allocator, &parts));
        for (size_t r = 0; r < ranks->ranks; r++) {
            memcpy(&other, parts.data + parts.at[r], sizeof other);
            all.low = other.low < all.low ? other.low : all.low;
            all.high = other.high > all.high ? other.high : all.high;
            all.sums.inside += other.sums.inside;
            all.sums.below += other.sums.below;
            all.sums.above += other.sums.above;
        }
        sl_parts_free(&parts);
        sl_net_fake_set_seen(fake, l, &all);
        SL_TRY(ranks->sum_floats(ranks->ctx, fake->by_log_scale[l], trainer->shape.width[l + 1]));
    }
    return SL_OK;
}

/* ---------------------------------------------------------------------------------------------------------------
 * The whole state
 * ------------------------------------------------------------------------------------------------------------- */

/* Copies rank 0's states of the sparse parts. */
static sl_status broadcast_sparse(sl_trainer *trainer) {
    const sl_ranks *ranks = trainer->on.ranks;
    const size_t size = sl_sparse_state_size(trainer->sparse);
    sl_status status = SL_OK;
    float *states = sl_mem_array(&trainer->allocator, size, sizeof *states, &status);
    SL_TRY(ranks->agree(ranks->ctx, status));
    sl_sparse_state_write(trainer->sparse, states);
    status = ranks->broadcast(ranks->ctx, states, size * sizeof *states);
    if (status == SL_OK) sl_sparse_state_read(trainer->sparse, states);
    SL_FREE_ARRAY(&trainer->allocator, states, size);
    return status;
}

static sl_status broadcast_ranges(sl_trainer *trainer) {
    const sl_ranks *ranks = trainer->on.ranks;
    sl_ranges *ranges = trainer->ranges;
    if (!ranges) return SL_OK;
    SL_TRY(ranks->broadcast(ranks->ctx, &ranges->started, sizeof ranges->started));
    SL_TRY(ranks->broadcast(ranks->ctx, ranges->numbers, ranges->size * sizeof(float)));
    SL_TRY(ranks->broadcast(ranks->ctx, ranges->best, ranges->size * sizeof(float)));
    if (ranges->states)
        SL_TRY(ranks->broadcast(ranks->ctx, ranges->state, ranges->states * ranges->size * sizeof(float)));
    return ranks->agree(ranks->ctx, sl_trainer_use_ranges(trainer));
}

sl_status sl_trainer_broadcast(sl_trainer *trainer) {
    const sl_ranks *ranks = trainer->on.ranks;
    sl_precision_state precision = trainer->precision;
    if (!ranks) return SL_OK;
    SL_TRY(ranks->broadcast(ranks->ctx, &trainer->position, sizeof trainer->position));
    SL_TRY(ranks->broadcast(ranks->ctx, &precision, sizeof precision));
    SL_TRY(ranks->agree(ranks->ctx, sl_trainer_use_precision(trainer, &precision)));
    SL_TRY(ranks->broadcast(ranks->ctx, trainer->weights.block, trainer->weights.block_size * sizeof(float)));
    if (trainer->best.block)
        SL_TRY(ranks->broadcast(ranks->ctx, trainer->best.block, trainer->best.block_size * sizeof(float)));
    if (trainer->net)
        SL_TRY(ranks->broadcast(ranks->ctx, trainer->dense_state,
                                trainer->dense_size * trainer->dense_states * sizeof(float)));
    SL_TRY(broadcast_sparse(trainer));
    return broadcast_ranges(trainer);
}

sl_status sl_trainer_check_same(const sl_trainer *trainer) {
    const sl_ranks *ranks = trainer->on.ranks;
    sl_parts parts = {.data = NULL};
    sl_status status = SL_OK;
    if (!ranks) return SL_OK;
    uint32_t mine = sl_crc32c(0, trainer->weights.block, trainer->weights.block_size * sizeof(float)), first;
    SL_TRY(ranks->gather(ranks->ctx, &mine, sizeof mine, &trainer->allocator, &parts));
    memcpy(&first, parts.data, sizeof first);
    if (mine != first)
        status = sl_fail(SL_EVALUE,
                         "its weights are not those of rank 0 after epoch %llu; give all machines the same instruction "
                         "set by SHORTLIST_MAX_ISA, the same build and the same number of threads",
                         (unsigned long long)trainer->position.epoch + 1);
    sl_parts_free(&parts);
    return ranks->agree(ranks->ctx, status);
}
