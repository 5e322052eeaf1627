#include "ranker/train/embedding_usage.h"

#include <string.h>

static void count_row(sl_embedding_usage *usage, const sl_rows_buffer *rows, size_t r) {
    const sl_features *features = usage->features;
    for (size_t f = 0; f < features->count; f++) {
        const sl_feature *feature = &features->features[f];
        if (feature->tensor == SIZE_MAX) continue;
        uint32_t *counts = usage->counts[feature->tensor];
        if (feature->form == SL_FORM_ID) {
            counts[rows->ids[r * features->id_count + feature->at]]++;
            continue;
        }
        const uint32_t *start = rows->bag_start + r * features->bag_count + feature->at;
        for (uint32_t i = start[0]; i < start[1]; i++)
            counts[rows->bag_ids[i]]++;
    }
}

/* Adds up the counts of all ranks, a piece at a time. Counts stop at 2^32 - 1. */
static sl_status sum_counts(const sl_ranks *ranks, uint32_t *counts, size_t size) {
    uint64_t piece[4096];
    for (size_t at = 0; at < size; at += sizeof piece / sizeof *piece) {
        size_t count = size - at < sizeof piece / sizeof *piece ? size - at : sizeof piece / sizeof *piece;
        for (size_t i = 0; i < count; i++)
            piece[i] = counts[at + i];
        SL_TRY(ranks->sum_counts(ranks->ctx, piece, count));
        for (size_t i = 0; i < count; i++)
            counts[at + i] = piece[i] < UINT32_MAX ? (uint32_t)piece[i] : UINT32_MAX;
    }
    return SL_OK;
}

sl_status sl_embedding_usage_init(sl_embedding_usage *usage, const sl_dataset *data, const sl_ranks *ranks,
                                  const sl_allocator *allocator) {
    const sl_features *features = data->features;
    void *block;
    *usage = (sl_embedding_usage){.allocator = *allocator, .features = features};
    SL_TRY(sl_mem_alloc(allocator, features->table_count * sizeof *usage->counts, &block));
    usage->counts = block;
    for (size_t t = 0; t < features->table_count; t++) {
        SL_TRY(sl_mem_alloc(allocator, features->tables[t].size * sizeof(uint32_t), &block));
        usage->counts[t] = block;
    }
    for (size_t i = 0; i < data->train_count; i++)
        count_row(usage, &data->rows, data->train[i]);
    for (size_t t = 0; t < features->table_count && ranks; t++)
        SL_TRY(sum_counts(ranks, usage->counts[t], features->tables[t].size));
    return SL_OK;
}

void sl_embedding_usage_free(sl_embedding_usage *usage) {
    const sl_features *features = usage->features;
    if (!usage->counts) return;
    for (size_t t = 0; t < features->table_count; t++)
        SL_FREE_ARRAY(&usage->allocator, usage->counts[t], features->tables[t].size);
    SL_FREE_ARRAY(&usage->allocator, usage->counts, features->table_count);
    usage->counts = NULL;
}

/* Columns of a table that one pass sums. */
enum { COLUMNS = 64 };

/* Computes the mean of columns `first` to first + count - 1 over the used rows; 0 if no row is used. */
static void mean_of(const uint32_t *counts, const sl_table_shape *shape, const float *table, size_t first, size_t count,
                    float *out) {
    double sums[COLUMNS] = {0}, weight = 0;
    for (size_t row = 0; row < shape->size; row++) {
        if (!counts[row]) continue;
        for (size_t d = 0; d < count; d++)
            sums[d] += (double)counts[row] * (double)table[row * shape->dim + first + d];
        weight += (double)counts[row];
    }
    for (size_t d = 0; d < count; d++)
        out[d] = weight > 0 ? (float)(sums[d] / weight) : 0;
}

void sl_embedding_usage_fill_unused(const sl_embedding_usage *usage, const sl_sparse_trainer *trainer,
                                    float *const *embeddings) {
    float mean[COLUMNS];
    for (size_t t = 0; t < usage->features->table_count; t++) {
        const sl_table_shape *shape = &usage->features->tables[t];
        for (size_t first = 0; first < shape->dim; first += COLUMNS) {
            size_t count = shape->dim - first < COLUMNS ? shape->dim - first : COLUMNS;
            mean_of(usage->counts[t], shape, embeddings[t], first, count, mean);
            const size_t owners = sl_row_owners(trainer, t), own = owners > 1 ? trainer->owner.rank : 0;
            for (size_t row = own; row < shape->size; row += owners)
                if (!usage->counts[t][row] && !sl_sparse_is_touched(trainer, t, row))
                    memcpy(embeddings[t] + row * shape->dim + first, mean, count * sizeof *mean);
        }
    }
}
