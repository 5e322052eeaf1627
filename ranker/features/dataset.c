#include "ranker/features/dataset.h"

#include "base/crc32c.h"
#include "base/prefetch.h"
#include "base/random.h"
#include "ranker/features/table.h"

#include <string.h>

/* Rows to prefetch ahead of the one being copied. */
enum { AHEAD = 8 };

/* Gathering on several threads pays from this many rows on. */
#define ROWS_FOR_THREADS ((size_t)1024)

/* Streams of random numbers of one seed. The streams below these are for weights. */
#define STREAM_SPLIT ((uint64_t)1 << 32)
#define STREAM_ORDER ((uint64_t)2 << 32)

static double weight_of(const sl_dataset *data, uint32_t row) {
    return data->rows.weights ? (double)data->rows.weights[row] : 1;
}

sl_status sl_dataset_weight(const sl_dataset *data, const uint32_t *numbers, size_t count, double *out) {
    sl_exact_sum sum = {.pending = 0};
    for (size_t i = 0; i < count; i++)
        sl_exact_add(&sum, weight_of(data, numbers[i]));
    SL_TRY(sl_ranks_sum_exact(data->ranks, &sum, 1));
    *out = sl_exact_value(&sum);
    return SL_OK;
}

/* ---- Reading ---- */

static sl_status read_rows(sl_encoder *encoder, const sl_rows *source, sl_rows_buffer *rows) {
    SL_TRY(source->rewind(source->ctx));
    for (;;) {
        sl_table block;
        SL_TRY(sl_rows_next(source, SL_BLOCK_ROWS, &block));
        if (block.rows == 0) return SL_OK;
        if (block.rows > UINT32_MAX - rows->rows)
            return sl_fail(SL_ELIMIT, "more than %u rows; train on a sample of them", UINT32_MAX);
        SL_TRY(sl_encoder_append(encoder, &block, 0, block.rows, rows));
    }
}

/* Counts the rows of lower ranks. */
static sl_status count_before(const sl_dataset *data, uint64_t rows, uint64_t *before) {
    const sl_ranks *ranks = data->ranks;
    const sl_allocator *allocator = &data->rows.allocator;
    sl_parts parts = {.data = NULL};
    *before = 0;
    if (!ranks) return SL_OK;
    sl_status status = ranks->gather(ranks->ctx, &rows, sizeof rows, allocator, &parts);
    for (size_t r = 0; r < ranks->rank && status == SL_OK; r++)
        *before += ((const uint64_t *)(const void *)parts.data)[r];
    sl_parts_free(&parts);
    return status;
}

/* Splits the rows into training and validation rows, and reserves the order.
 * Parameters: validation rows begin at row valid_from; SIZE_MAX: the seed draws them. `before`: rows of lower ranks. */
static sl_status split_rows(sl_dataset *data, size_t valid_from, uint64_t before) {
    const sl_spec *spec = data->features->spec;
    size_t total = data->rows.rows, bytes;
    void *block;
    if (!sl_mul(2 * sizeof(uint32_t), total, &bytes)) return sl_fail(SL_ENOMEM, "%zu rows do not fit", total);
    SL_TRY(sl_mem_alloc(&data->rows.allocator, bytes, &block));
    data->block_size = bytes;
    data->train = block;
    uint64_t seed = sl_random_at(spec->seed, STREAM_SPLIT);
    /* Held-out rows fill the same array from its end. */
    size_t train = 0, end = total;
    for (size_t r = 0; r < total; r++) {
        int held_out = valid_from != SIZE_MAX ? r >= valid_from : sl_random_unit(seed, before + r) <= spec->validation;
        if (held_out)
            data->train[--end] = (uint32_t)r;
        else
            data->train[train++] = (uint32_t)r;
    }
    data->valid = data->train + end;
    data->valid_count = total - end;
    for (size_t i = 0; i < data->valid_count / 2; i++) {
        uint32_t row = data->valid[i];
        data->valid[i] = data->valid[data->valid_count - 1 - i];
        data->valid[data->valid_count - 1 - i] = row;
    }
    data->train_count = train;
    data->order = data->train + total;
    return SL_OK;
}

/* Counts the rows of all ranks. */
static sl_status count_rows(sl_dataset *data) {
    const sl_ranks *ranks = data->ranks;
    sl_status status = SL_OK;
    size_t count = sl_ranks_count(ranks);
    uint64_t totals[3] = {data->train_count, data->valid_count, data->rows.rows};
    data->rank_train = sl_mem_array(&data->rows.allocator, count, sizeof *data->rank_train, &status);
    SL_TRY(sl_ranks_agree(ranks, status));
    data->rank_train[ranks ? ranks->rank : 0] = data->train_count;
    SL_TRY(sl_ranks_sum_counts(ranks, data->rank_train, count));
    SL_TRY(sl_ranks_sum_counts(ranks, totals, 3));
    data->total_train = totals[0];
    data->total_valid = totals[1];
    if (totals[0]) return SL_OK;
    return sl_fail(SL_EINVAL, "no row is left to train on, of %llu; give more rows", (unsigned long long)totals[2]);
}

/* Scales the weights of some rows to a mean of 1 over all ranks, which have `total` of them. Leaves weights that are
 * all 0. */
static sl_status scale_weights(sl_dataset *data, const uint32_t *numbers, size_t count, uint64_t total) {
    double mean;
    if (!data->features->spec->weight || data->unlabelled) return SL_OK;
    SL_TRY(sl_dataset_weight(data, numbers, count, &mean));
    mean /= (double)total;
    if (mean == 1 || !(mean > 0)) return SL_OK;
    for (size_t i = 0; i < count; i++) {
        float *weight = &data->rows.weights[numbers[i]];
        *weight = (float)((double)*weight / mean);
    }
    return SL_OK;
}

/* Reads both sources of rows. *valid_from: the first row of `valid`; SIZE_MAX without one. */
static sl_status read_sources(sl_dataset *data, sl_encoder *encoder, const sl_rows *train, const sl_rows *valid,
                              size_t *valid_from) {
    SL_TRY(sl_ranks_agree(data->ranks, read_rows(encoder, train, &data->rows)));
    *valid_from = valid ? data->rows.rows : SIZE_MAX;
    if (!valid) return SL_OK;
    sl_status status = read_rows(encoder, valid, &data->rows);
    if (status != SL_OK) sl_fail_in(status, "validation rows");
    SL_TRY(sl_ranks_agree(data->ranks, status));
    uint64_t rows = data->rows.rows - *valid_from;
    SL_TRY(sl_ranks_sum_counts(data->ranks, &rows, 1));
    if (rows) return SL_OK;
    return sl_fail(SL_EINVAL, "there are no validation rows; give some, or hold out a share of the others");
}

static sl_status divide_rows(sl_dataset *data, size_t valid_from) {
    uint64_t before;
    SL_TRY(count_before(data, data->rows.rows, &before));
    SL_TRY(sl_ranks_agree(data->ranks, split_rows(data, valid_from, before)));
    SL_TRY(count_rows(data));
    SL_TRY(scale_weights(data, data->train, data->train_count, data->total_train));
    return scale_weights(data, data->valid, data->valid_count, data->total_valid);
}

sl_status sl_dataset_read(const sl_features *features, const sl_rows *train, const sl_rows *valid,
                          const sl_dataset_source *source, const sl_allocator *allocator, sl_dataset *out) {
    sl_dataset data = {
        .features = features, .ranks = source->ranks, .rows.allocator = *allocator, .unlabelled = source->unlabelled};
    sl_encoder *encoder;
    size_t valid_from = SIZE_MAX;
    *out = data;
    SL_TRY(sl_encoder_create(features, SL_ALL_SIDES, !source->unlabelled, source->lookup, source->lookup_ctx, allocator,
                             &encoder));
    sl_status status = read_sources(&data, encoder, train, valid, &valid_from);
    sl_encoder_free(encoder);
    if (status == SL_OK) status = divide_rows(&data, valid_from);
    if (status == SL_OK)
        *out = data;
    else
        sl_dataset_free(&data);
    return status;
}

void sl_dataset_free(sl_dataset *data) {
    sl_mem_free(&data->rows.allocator, data->train, data->block_size);
    SL_FREE_ARRAY(&data->rows.allocator, data->rank_train, sl_ranks_count(data->ranks));
    data->rank_train = NULL;
    sl_rows_buffer_free(&data->rows);
    data->train = NULL;
}

/* Fisher-Yates shuffle. Each epoch begins with the rising order, so that it does not depend on earlier epochs. */
void sl_dataset_shuffle(sl_dataset *data, uint64_t seed, uint64_t epoch) {
    uint64_t own = sl_random_at(sl_random_at(seed, STREAM_ORDER), epoch);
    if (data->ranks) own += data->ranks->rank;
    memcpy(data->order, data->train, data->train_count * sizeof *data->order);
    for (size_t i = data->train_count; i > 1; i--) {
        /* The upper half of the product is uniform below i, with a bias of 2^-32. */
        size_t other = (size_t)((sl_random_at(own, i) >> 32) * i >> 32);
        uint32_t row = data->order[i - 1];
        data->order[i - 1] = data->order[other];
        data->order[other] = row;
    }
}

/* ---- Facts of the whole ---- */

/* CRC of everything that one process has. */
static uint32_t crc_of_all(const sl_dataset *data) {
    const sl_features *features = data->features;
    const sl_rows_buffer *rows = &data->rows;
    uint32_t crc = data->unlabelled ? 0 : sl_crc32c(0, rows->labels, rows->rows * sizeof *rows->labels);
    if (rows->weights) crc = sl_crc32c(crc, rows->weights, rows->rows * sizeof *rows->weights);
    if (features->dense_width)
        crc = sl_crc32c(crc, rows->dense, rows->rows * features->dense_width * sizeof *rows->dense);
    if (features->id_count) crc = sl_crc32c(crc, rows->ids, rows->rows * features->id_count * sizeof *rows->ids);
    if (features->bag_count) {
        size_t starts = rows->rows * features->bag_count + 1;
        crc = sl_crc32c(crc, rows->bag_start, starts * sizeof *rows->bag_start);
        crc = sl_crc32c(crc, rows->bag_ids, rows->bag_start[starts - 1] * sizeof *rows->bag_ids);
    }
    crc = sl_crc32c(crc, &data->train_count, sizeof data->train_count);
    return sl_crc32c(crc, data->train, rows->rows * sizeof *data->train);
}

/* CRC of one row: its numbers, its ids and the side of the split it is on. */
static uint32_t crc_of_row(const sl_dataset *data, uint32_t row, uint32_t is_valid) {
    const sl_features *features = data->features;
    const sl_rows_buffer *rows = &data->rows;
    uint32_t crc = sl_crc32c(0, &is_valid, sizeof is_valid);
    if (!data->unlabelled) crc = sl_crc32c(crc, rows->labels + row, sizeof *rows->labels);
    if (rows->weights) crc = sl_crc32c(crc, rows->weights + row, sizeof *rows->weights);
    size_t dense = features->dense_width, ids = features->id_count, bags = features->bag_count;
    if (dense) crc = sl_crc32c(crc, rows->dense + row * dense, dense * sizeof *rows->dense);
    if (ids) crc = sl_crc32c(crc, rows->ids + row * ids, ids * sizeof *rows->ids);
    for (size_t b = 0; b < bags; b++) {
        const uint32_t *start = rows->bag_start + row * bags + b, count = start[1] - start[0];
        crc = sl_crc32c(crc, &count, sizeof count);
        if (count) crc = sl_crc32c(crc, rows->bag_ids + start[0], count * sizeof *rows->bag_ids);
    }
    return crc;
}

sl_status sl_dataset_crc(const sl_dataset *data, uint32_t *crc) {
    uint64_t sum = 0;
    if (!data->ranks) {
        *crc = crc_of_all(data);
        return SL_OK;
    }
    for (size_t i = 0; i < data->train_count; i++)
        sum += crc_of_row(data, data->train[i], 0);
    for (size_t i = 0; i < data->valid_count; i++)
        sum += crc_of_row(data, data->valid[i], 1);
    SL_TRY(sl_ranks_sum_counts(data->ranks, &sum, 1));
    *crc = sl_crc32c(0, &sum, sizeof sum);
    return SL_OK;
}

sl_status sl_dataset_label_mean(const sl_dataset *data, double *mean) {
    sl_exact_sum sums[2] = {{.pending = 0}}; /* of labels, of weights */
    for (size_t i = 0; i < data->train_count; i++) {
        double own = weight_of(data, data->train[i]);
        sl_exact_add_product(&sums[0], own, (double)data->rows.labels[data->train[i]]);
        sl_exact_add(&sums[1], own);
    }
    SL_TRY(sl_ranks_sum_exact(data->ranks, sums, 2));
    double weight = sl_exact_value(&sums[1]);
    *mean = weight > 0 ? sl_exact_value(&sums[0]) / weight : 0;
    return SL_OK;
}

sl_status sl_dataset_class_shares(const sl_dataset *data, double *shares) {
    size_t outputs = data->features->outputs;
    sl_status status = SL_OK;
    sl_exact_sum *sums = sl_mem_array(&data->rows.allocator, outputs, sizeof *sums, &status);
    double weight = 0;
    status = sl_ranks_agree(data->ranks, status);
    if (status != SL_OK) {
        SL_FREE_ARRAY(&data->rows.allocator, sums, outputs);
        return status;
    }
    for (size_t i = 0; i < data->train_count; i++)
        sl_exact_add(&sums[(size_t)data->rows.labels[data->train[i]]], weight_of(data, data->train[i]));
    status = sl_ranks_sum_exact(data->ranks, sums, outputs);
    for (size_t o = 0; o < outputs; o++)
        weight += shares[o] = sl_exact_value(&sums[o]);
    for (size_t o = 0; o < outputs; o++)
        shares[o] = weight > 0 ? shares[o] / weight : 1.0 / (double)outputs;
    SL_FREE_ARRAY(&data->rows.allocator, sums, outputs);
    return status;
}

/* The labels that some rows with a weight have. */
typedef struct labels_seen {
    uint64_t rows;
    float first;
    int32_t differ;
} labels_seen;

static void see_label(labels_seen *seen, float label) {
    if (seen->rows++ == 0)
        seen->first = label;
    else
        seen->differ |= label != seen->first;
}

sl_status sl_dataset_has_one_label(const sl_dataset *data, int *one, float *label) {
    labels_seen seen = {.rows = 0}, other;
    const sl_ranks *ranks = data->ranks;
    for (size_t i = 0; i < data->train_count; i++)
        if (weight_of(data, data->train[i]) != 0) see_label(&seen, data->rows.labels[data->train[i]]);
    sl_parts parts = {.data = NULL};
    if (ranks) {
        SL_TRY(ranks->gather(ranks->ctx, &seen, sizeof seen, &data->rows.allocator, &parts));
        seen.rows = 0;
        for (size_t r = 0; r < parts.ranks; r++) {
            memcpy(&other, parts.data + parts.at[r], sizeof other);
            if (other.rows) see_label(&seen, other.first);
            seen.differ |= other.differ;
        }
        sl_parts_free(&parts);
    }
    *one = !seen.differ;
    *label = seen.rows ? seen.first : 0;
    return SL_OK;
}

/* ---- Mini-batches over ranks ---- */

/* Returns rows * part / whole, rounded down; part is at most whole. */
static uint64_t share_of(uint64_t rows, uint64_t part, uint64_t whole) {
    __extension__ typedef unsigned __int128 wide;
    return (uint64_t)((wide)rows * part / whole);
}

sl_minibatch_part sl_dataset_minibatch(const sl_dataset *data, uint64_t number, uint64_t batch_rows) {
    const uint64_t all = data->total_train;
    const uint64_t from = number < all / batch_rows + 1 ? number * batch_rows : all;
    const uint64_t to = all - from < batch_rows ? all : from + batch_rows;
    const size_t rank = data->ranks ? data->ranks->rank : 0;
    sl_minibatch_part part = {.first = 0};
    for (size_t r = 0; r < sl_ranks_count(data->ranks); r++) {
        uint64_t first = share_of(data->rank_train[r], from, all), end = share_of(data->rank_train[r], to, all);
        if (r < rank) part.before += end - first;
        part.total += end - first;
        if (r != rank) continue;
        part.first = (size_t)first;
        part.count = (size_t)(end - first);
    }
    return part;
}

size_t sl_dataset_minibatch_most(const sl_dataset *data, uint64_t batch_rows) {
    const uint64_t all = data->total_train, step = batch_rows < all ? batch_rows : all;
    return (size_t)share_of(data->train_count, step, all) + (data->ranks != NULL);
}

/* ---- Batches ---- */

sl_status sl_minibatch_create(const sl_features *features, size_t max_rows, const sl_allocator *allocator,
                              sl_minibatch *out) {
    const size_t word = sizeof(uint32_t);
    size_t per_row = features->dense_width + features->id_count + features->bag_count + 2, bytes;
    void *block;
    *out = (sl_minibatch){0};
    /* Each array is rounded up to a cache line. */
    if (!sl_mul(max_rows, per_row * word, &bytes) || !sl_add(bytes, 6 * SL_CACHE_LINE, &bytes))
        return sl_fail(SL_ENOMEM, "a batch of %zu rows does not fit; use smaller ones", max_rows);
    SL_TRY(sl_mem_alloc(allocator, bytes, &block));
    sl_minibatch minibatch = {.block = block, .block_size = bytes, .labels = block};
    const size_t line = SL_CACHE_LINE / word;
    minibatch.weights = minibatch.labels + sl_round_up(max_rows, line);
    minibatch.dense = minibatch.weights + sl_round_up(max_rows, line);
    minibatch.ids = (uint32_t *)(void *)(minibatch.dense + sl_round_up(max_rows * features->dense_width, line));
    minibatch.bag_start = minibatch.ids + sl_round_up(max_rows * features->id_count, line);
    *out = minibatch;
    return SL_OK;
}

void sl_minibatch_free(sl_minibatch *minibatch, const sl_allocator *allocator) {
    SL_FREE_ARRAY(allocator, minibatch->bag_ids, minibatch->bag_room);
    sl_mem_free(allocator, minibatch->block, minibatch->block_size);
    *minibatch = (sl_minibatch){0};
}

/* Sets the start of each bag in the mini-batch. */
static sl_status place_bags(sl_minibatch *minibatch, const sl_dataset *data, const uint32_t *numbers, size_t count) {
    size_t bags = data->features->bag_count, at = 0;
    const uint32_t *start = data->rows.bag_start;
    for (size_t i = 0; i < count; i++) {
        const uint32_t *row = start + numbers[i] * bags;
        if (i + AHEAD < count) sl_prefetch(start + numbers[i + AHEAD] * bags, 1);
        for (size_t b = 0; b < bags; b++)
            minibatch->bag_start[i * bags + b] = (uint32_t)(at + (row[b] - row[0]));
        at += row[bags] - row[0];
    }
    if (at > UINT32_MAX) return sl_fail(SL_ELIMIT, "a batch of %zu multi-valued ids; use smaller batches", at);
    minibatch->bag_start[count * bags] = (uint32_t)at;
    sl_status status = SL_OK;
    minibatch->bag_ids = sl_mem_grow(&data->rows.allocator, minibatch->bag_ids, &minibatch->bag_room, at,
                                     sizeof *minibatch->bag_ids, &status);
    return status;
}

static void copy_bags(sl_minibatch *minibatch, const sl_dataset *data, const uint32_t *numbers, size_t i) {
    size_t bags = data->features->bag_count;
    const uint32_t *from = data->rows.bag_start + numbers[i] * bags, *to = minibatch->bag_start + i * bags;
    for (uint32_t k = 0; k < to[bags] - to[0]; k++)
        minibatch->bag_ids[to[0] + k] = data->rows.bag_ids[from[0] + k];
}

/* Prefetches the cache lines of a row. A row may begin within a line. */
static void prefetch_row(const void *at, size_t bytes) {
    size_t offset = (uintptr_t)at % SL_PREFETCH_LINE;
    sl_prefetch((const char *)at - offset, bytes + offset);
}

static void copy_rows(sl_minibatch *minibatch, const sl_dataset *data, const uint32_t *numbers, size_t from,
                      size_t to) {
    const sl_rows_buffer *rows = &data->rows;
    size_t dense = data->features->dense_width, ids = data->features->id_count;
    for (size_t i = from; i < to; i++) {
        size_t row = numbers[i];
        if (i + AHEAD < to) {
            size_t ahead = numbers[i + AHEAD];
            prefetch_row(rows->labels + ahead, sizeof(float));
            if (dense) prefetch_row(rows->dense + ahead * dense, dense * sizeof(float));
            if (ids) prefetch_row(rows->ids + ahead * ids, ids * sizeof(uint32_t));
        }
        minibatch->labels[i] = rows->labels[row];
        minibatch->weights[i] = rows->weights ? rows->weights[row] : 1.0f;
        for (size_t c = 0; c < dense; c++)
            minibatch->dense[i * dense + c] = rows->dense[row * dense + c];
        for (size_t c = 0; c < ids; c++)
            minibatch->ids[i * ids + c] = rows->ids[row * ids + c];
        if (data->features->bag_count) copy_bags(minibatch, data, numbers, i);
    }
}

sl_status sl_minibatch_gather(sl_minibatch *minibatch, const sl_dataset *data, const uint32_t *numbers, size_t count,
                              size_t threads) {
    if (data->features->bag_count) SL_TRY(place_bags(minibatch, data, numbers, count));
    minibatch->rows = (sl_encoded){.struct_size = sizeof minibatch->rows,
                                   .rows = count,
                                   .dense = minibatch->dense,
                                   .ids = minibatch->ids,
                                   .bag_start = minibatch->bag_start,
                                   .bag_ids = minibatch->bag_ids};
    if (threads == 1 || count < ROWS_FOR_THREADS) {
        copy_rows(minibatch, data, numbers, 0, count);
        return SL_OK;
    }
#pragma omp parallel for schedule(static) num_threads((int)threads)
    for (size_t t = 0; t < threads; t++)
        copy_rows(minibatch, data, numbers, count * t / threads, count * (t + 1) / threads);
    return SL_OK;
}
