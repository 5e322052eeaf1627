#include "ranker/train/train_reduce.h"

#include "base/crc32c.h"
#include "ranker/train/table_shards.h"

#include <stdio.h>
#include <string.h>

/* ---------------------------------------------------------------------------------------------------------------
 * Dense gradients
 * ------------------------------------------------------------------------------------------------------------- */

static size_t bucket_floats(const sl_trainer *trainer) {
    return trainer->on.bucket ? trainer->on.bucket : SL_TRAIN_BUCKET;
}

/* Begins the sums of the gradients from float `from` on that were not handed over yet, a bucket at a time. */
static void push_from(sl_trainer *trainer, size_t from) {
    const sl_ranks *ranks = trainer->on.ranks;
    while (trainer->push_status == SL_OK && trainer->dense_size - trainer->pushed > from) {
        const size_t end = trainer->dense_size - trainer->pushed, bucket = bucket_floats(trainer);
        const size_t size = end - from < bucket ? end - from : bucket;
        trainer->push_status = ranks->sum_begin(ranks->ctx, trainer->dense_gradient + end - size, size);
        trainer->pushed += size;
    }
}

/* Begins a sum once enough layers are complete. The layers of a block lie in rising order, and are completed from the
 * last one down. */
static void on_layer(void *ctx, size_t layer) {
    sl_trainer *trainer = ctx;
    const size_t from = sl_net_weight_at(&trainer->shape, layer);
    if (!trainer->on.no_overlap &&
        (trainer->dense_size - trainer->pushed - from >= bucket_floats(trainer) || layer == 0))
        push_from(trainer, from);
}

void sl_trainer_reduce_begin(sl_trainer *trainer) {
    if (!trainer->on.ranks) return;
    trainer->pushed = 0;
    trainer->push_status = SL_OK;
    sl_net_trainer_on_layer(trainer->net, on_layer, trainer);
}

sl_status sl_trainer_reduce_end(sl_trainer *trainer, sl_status status) {
    const sl_ranks *ranks = trainer->on.ranks;
    char message[SL_ERROR_SIZE];
    if (!ranks) return status;
    snprintf(message, sizeof message, "%s", sl_last_error());
    (void)ranks->sum_wait(ranks->ctx);
    return sl_fail(status, "%s", message);
}

/* ---------------------------------------------------------------------------------------------------------------
 * Sparse gradients
 * ------------------------------------------------------------------------------------------------------------- */

/* What a rank tells the others of its step. Then come the gradients by the biases, and the numbers of rows that it
 * touched: of the wide part, of each table. */
typedef struct step_record {
    double loss_sum, weight_sum;
    uint32_t overflowed, not_finite, cancelled, reserved;
} step_record;

/* The step of all ranks. */
typedef struct step {
    sl_trainer *trainer;
    const sl_ranks *ranks;
    size_t tables;    /* of sparse gradients: the wide part, and embeddings if there is a net */
    uint64_t *counts; /* (ranks, tables): touched rows */
    uint64_t *total;  /* of each table: touched rows, counted once for each rank */
    int *as_rows;     /* of each table: the ranks exchange rows, not the whole table */
    size_t *sizes;    /* bytes of each rank's rows */
    size_t *at;       /* where the next table's rows begin, in the bytes of each rank */
} step;

static sl_row_sums *sums_of(const step *s, size_t table) {
    sl_sparse_gradients *gradients = &s->trainer->sparse->gradients;
    return table == 0 ? &gradients->wide : &gradients->tables[table - 1];
}

static int is_sharded(const step *s, size_t table) {
    return table > 0 && sl_is_sharded(s->trainer->sparse, table - 1);
}

/* Returns whether the rows of all ranks are fewer bytes than the whole table. An all-reduce of the table sends each
 * float twice, less what a rank has itself. A gather sends each rank's rows to all others. */
static int rows_are_fewer(const sl_row_sums *sums, uint64_t rows) {
    return rows * sl_sent_row_bytes(sums->width) <= sl_summed_table_bytes(sums->size, sums->width);
}

static sl_status step_alloc(step *s, sl_trainer *trainer) {
    const sl_allocator *allocator = &trainer->allocator;
    sl_status status = SL_OK;
    *s = (step){.trainer = trainer,
                .ranks = trainer->on.ranks,
                .tables = 1 + (trainer->net ? trainer->features->table_count : 0)};
    s->counts = sl_mem_array(allocator, s->ranks->ranks * s->tables, sizeof *s->counts, &status);
    s->total = sl_mem_array(allocator, s->tables, sizeof *s->total, &status);
    s->as_rows = sl_mem_array(allocator, s->tables, sizeof *s->as_rows, &status);
    s->sizes = sl_mem_array(allocator, s->ranks->ranks, sizeof *s->sizes, &status);
    s->at = sl_mem_array(allocator, s->ranks->ranks, sizeof *s->at, &status);
    return status;
}

static void step_free(step *s) {
    const sl_allocator *allocator = &s->trainer->allocator;
    SL_FREE_ARRAY(allocator, s->counts, s->ranks->ranks * s->tables);
    SL_FREE_ARRAY(allocator, s->total, s->tables);
    SL_FREE_ARRAY(allocator, s->as_rows, s->tables);
    SL_FREE_ARRAY(allocator, s->sizes, s->ranks->ranks);
    SL_FREE_ARRAY(allocator, s->at, s->ranks->ranks);
}

/* Returns scratch memory of the trainer, of this many bytes at least. */
static uint8_t *room_for(sl_trainer *trainer, size_t bytes, sl_status *status) {
    trainer->reduce_room =
        sl_mem_grow(&trainer->allocator, trainer->reduce_room, &trainer->reduce_size, bytes, 1, status);
    return trainer->reduce_room;
}

/* ---- Records ---- */

static void write_record(const step *s, uint8_t *to) {
    const sl_trainer *trainer = s->trainer;
    const size_t bias = trainer->features->outputs * sizeof(float);
    const step_record record = {.loss_sum = trainer->loss_sum,
                                .weight_sum = trainer->weight_sum,
                                .overflowed = (uint32_t)trainer->overflowed,
                                .not_finite = (uint32_t)trainer->not_finite,
                                .cancelled = (uint32_t)trainer->cancelled};
    memcpy(to, &record, sizeof record);
    memcpy(to + sizeof record, trainer->sparse->gradients.bias, bias);
    for (size_t t = 0; t < s->tables; t++) {
        const uint64_t count = trainer->overflowed && t > 0 ? 0 : sums_of(s, t)->count;
        memcpy(to + sizeof record + bias + t * sizeof count, &count, sizeof count);
    }
}

static void add_record(step *s, size_t rank, const uint8_t *from) {
    sl_trainer *trainer = s->trainer;
    float *bias = trainer->sparse->gradients.bias;
    step_record record;
    memcpy(&record, from, sizeof record);
    trainer->loss_sum += record.loss_sum;
    trainer->weight_sum += record.weight_sum;
    trainer->overflowed |= (int)record.overflowed;
    trainer->not_finite |= (int)record.not_finite;
    trainer->cancelled |= (int)record.cancelled;
    from += sizeof record;
    for (size_t o = 0; o < trainer->features->outputs; o++, from += sizeof(float)) {
        float more;
        memcpy(&more, from, sizeof more);
        bias[o] = rank ? bias[o] + more : more;
    }
    memcpy(s->counts + rank * s->tables, from, s->tables * sizeof *s->counts);
    for (size_t t = 0; t < s->tables; t++)
        s->total[t] += s->counts[rank * s->tables + t];
}

/* Exchanges the records of a step. */
static sl_status exchange_records(step *s) {
    sl_trainer *trainer = s->trainer;
    const size_t ranks = s->ranks->ranks;
    const size_t size = sizeof(step_record) + trainer->features->outputs * sizeof(float) + s->tables * sizeof(uint64_t);
    sl_status status = SL_OK;
    uint8_t *mine = room_for(trainer, (ranks + 1) * size, &status), *all = mine + size;
    SL_TRY(status);
    write_record(s, mine);
    SL_TRY(s->ranks->gather_same(s->ranks->ctx, mine, size, all));
    trainer->loss_sum = trainer->weight_sum = 0;
    for (size_t r = 0; r < ranks; r++)
        add_record(s, r, all + r * size);
    return SL_OK;
}

/* ---- Rows ---- */

/* Adds the rows that a rank touched. The bytes are their numbers, then their sums. */
static void add_rows(sl_row_sums *sums, const uint8_t *part, size_t count) {
    const size_t width = sums->width;
    const uint8_t *from = part + count * SL_ROW_NUMBER;
    for (size_t i = 0; i < count; i++, from += width * sizeof(float)) {
        uint32_t row;
        int fresh;
        memcpy(&row, part + i * SL_ROW_NUMBER, sizeof row);
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

/* Writes the rows that this rank touched, of the tables that go as rows. */
static void pack_rows(const step *s, uint8_t *to) {
    for (size_t t = 0; t < s->tables; t++) {
        const sl_row_sums *sums = sums_of(s, t);
        if (!s->as_rows[t]) continue;
        const size_t count = s->counts[s->ranks->rank * s->tables + t], floats = count * sums->width * sizeof(float);
        memcpy(to, sums->rows, count * SL_ROW_NUMBER);
        memcpy(to + count * SL_ROW_NUMBER, sums->sums, floats);
        to += count * SL_ROW_NUMBER + floats;
    }
}

/* Adds up the rows of all ranks, in the order of ranks. */
static void unpack_rows(step *s, const uint8_t *all) {
    for (size_t r = 0, at = 0; r < s->ranks->ranks; at += s->sizes[r++])
        s->at[r] = at;
    for (size_t t = 0; t < s->tables; t++) {
        sl_row_sums *sums = sums_of(s, t);
        if (!s->as_rows[t]) continue;
        sl_row_sums_clear(sums);
        for (size_t r = 0; r < s->ranks->ranks; r++) {
            const size_t count = s->counts[r * s->tables + t];
            add_rows(sums, all + s->at[r], count);
            s->at[r] += count * sl_sent_row_bytes(sums->width);
        }
    }
}

/* Gathers the touched rows of all ranks, of all tables at once. */
static sl_status reduce_rows(step *s) {
    const size_t ranks = s->ranks->ranks;
    size_t all = 0;
    sl_status status = SL_OK;
    for (size_t r = 0; r < ranks; r++) {
        s->sizes[r] = 0;
        for (size_t t = 0; t < s->tables; t++)
            if (s->as_rows[t]) s->sizes[r] += s->counts[r * s->tables + t] * sl_sent_row_bytes(sums_of(s, t)->width);
        all += s->sizes[r];
    }
    if (all == 0) return SL_OK;
    const size_t own = s->sizes[s->ranks->rank];
    uint8_t *mine = room_for(s->trainer, own + all, &status);
    SL_TRY(status);
    pack_rows(s, mine);
    SL_TRY(s->ranks->gather_sizes(s->ranks->ctx, mine, s->sizes, mine + own));
    unpack_rows(s, mine + own);
    if (s->trainer->on.traffic) s->trainer->on.traffic->moved += all;
    return SL_OK;
}

/* ---- Tables ---- */

static int goes_whole(const step *s, size_t table) {
    return !s->as_rows[table] && !is_sharded(s, table);
}

/* Writes a whole table: the sums of touched rows, and 0. */
static void fill_table(const sl_row_sums *sums, float *table) {
    memset(table, 0, sums->size * sums->width * sizeof *table);
    for (size_t i = 0; i < sums->count; i++)
        memcpy(table + sums->rows[i] * sums->width, sums->sums + i * sums->width, sums->width * sizeof *table);
}

/* Reads a table that was summed over the ranks. A row counts as touched if one of its sums is not 0. */
static void read_table(sl_row_sums *sums, const float *table) {
    sl_row_sums_clear(sums);
    for (size_t row = 0; row < sums->size; row++) {
        const float *from = table + row * sums->width;
        int is_touched = 0, fresh;
        for (size_t j = 0; j < sums->width && !is_touched; j++)
            is_touched = from[j] != 0;
        if (is_touched) memcpy(sl_row_sums_of(sums, (uint32_t)row, &fresh), from, sums->width * sizeof *from);
    }
}

/* Sums whole tables over the ranks, all in one sum: many small ones would wait for a message's way each. */
static sl_status reduce_tables(step *s) {
    sl_trainer *trainer = s->trainer;
    size_t floats = 0, at = 0;
    sl_status status = SL_OK;
    for (size_t t = 0; t < s->tables; t++)
        if (goes_whole(s, t)) floats += sums_of(s, t)->size * sums_of(s, t)->width;
    if (floats == 0) return SL_OK;
    float *all = (float *)(void *)room_for(trainer, floats * sizeof *all, &status);
    SL_TRY(status);
    for (size_t t = 0; t < s->tables; t++) {
        if (!goes_whole(s, t)) continue;
        fill_table(sums_of(s, t), all + at);
        at += sums_of(s, t)->size * sums_of(s, t)->width;
    }
    SL_TRY(s->ranks->sum_floats(s->ranks->ctx, all, floats));
    if (trainer->on.traffic) trainer->on.traffic->moved += 2 * floats * sizeof *all;
    at = 0;
    for (size_t t = 0; t < s->tables; t++) {
        if (!goes_whole(s, t)) continue;
        read_table(sums_of(s, t), all + at);
        at += sums_of(s, t)->size * sums_of(s, t)->width;
    }
    return SL_OK;
}

/* Counts what this step sends, and what other ways would have sent. */
static void count_traffic(const step *s) {
    const sl_trainer *trainer = s->trainer;
    sl_sparse_traffic *traffic = trainer->on.traffic;
    if (!traffic) return;
    traffic->steps++;
    for (size_t t = 0; t < s->tables; t++)
        if (!is_sharded(s, t))
            sl_sparse_traffic_add_table(traffic, sums_of(s, t)->size, sums_of(s, t)->width, s->total[t]);
    sl_sparse_traffic_add_raw(traffic, trainer->sparse, &trainer->minibatch.rows, trainer->net != NULL);
}

/* Sums the sparse gradients, each table in the way that takes fewer bytes. */
static sl_status reduce_sparse(step *s) {
    for (size_t t = 0; t < s->tables; t++) {
        s->as_rows[t] = !is_sharded(s, t) && rows_are_fewer(sums_of(s, t), s->total[t]);
        if (s->total[t] == 0) sl_row_sums_clear(sums_of(s, t));
    }
    count_traffic(s);
    SL_TRY(reduce_rows(s));
    SL_TRY(reduce_tables(s));
    return s->tables > 1 ? sl_shards_reduce(s->trainer) : SL_OK;
}

static sl_status reduce_step(step *s) {
    sl_trainer *trainer = s->trainer;
    SL_TRY(exchange_records(s));
    if (trainer->overflowed || trainer->not_finite) return SL_OK;
    SL_TRY(reduce_sparse(s));
    return trainer->net ? sl_trainer_reduce_seen(trainer) : SL_OK;
}

sl_status sl_trainer_reduce(sl_trainer *trainer) {
    const sl_ranks *ranks = trainer->on.ranks;
    step s;
    sl_status status = step_alloc(&s, trainer), waited = SL_OK;
    if (trainer->net) push_from(trainer, 0);
    if (status == SL_OK) status = reduce_step(&s);
    /* The dense sums go on beside all this. They use the gradients, so wait for them after a failure too. */
    if (trainer->net) waited = ranks->sum_wait(ranks->ctx);
    step_free(&s);
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
