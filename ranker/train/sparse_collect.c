/* Collecting: the gradients of a mini-batch, summed per weight. */
#include "base/prefetch.h"
#include "base/thread.h"
#include "ranker/train/sparse_train.h"

#include <string.h>

/* Rows between the prefetch of a tag and its use. */
enum { IDS_AHEAD = 8 };

/* ---------------------------------------------------------------------------------------------------------------
 * The wide part
 * ------------------------------------------------------------------------------------------------------------- */

/* Adds the gradients by one feature's weights. A weight belongs to one feature, so its sum follows the order of rows.
 * One feature at a time keeps its tags and sums in the L1 or L2 cache. */
static void add_wide_feature(sl_row_sums *sums, const sl_features *features, const sl_feature *feature,
                             const sl_encoded *rows, const float *gradient) {
    size_t outputs = features->outputs;
    uint32_t at = (uint32_t)feature->wide_at;
    if (feature->form == SL_FORM_DENSE) {
        const float *x = rows->dense + feature->at;
        for (size_t r = 0; r < rows->rows; r++, x += features->dense_width)
            for (uint32_t i = 0; i < feature->width; i++)
                sl_row_sums_add(sums, at + i, x[i], gradient + r * outputs);
    } else if (feature->form == SL_FORM_ID) {
        const uint32_t *id = rows->ids + feature->at;
        for (size_t r = 0; r < rows->rows; r++, id += features->id_count) {
            if (r + IDS_AHEAD < rows->rows) sl_prefetch(&sums->tags[at + id[IDS_AHEAD * features->id_count]], 1);
            sl_row_sums_add(sums, at + *id, 1, gradient + r * outputs);
        }
    } else {
        const uint32_t *start = rows->bag_start + feature->at;
        for (size_t r = 0; r < rows->rows; r++, start += features->bag_count)
            for (uint32_t i = start[0]; i < start[1]; i++)
                sl_row_sums_add(sums, at + rows->bag_ids[i], 1, gradient + r * outputs);
    }
}

static void collect_bias(size_t outputs, size_t rows, const float *gradient, float *out) {
    for (size_t o = 0; o < outputs; o++) {
        double sum = 0;
        for (size_t r = 0; r < rows; r++)
            sum += gradient[r * outputs + o];
        out[o] = (float)sum;
    }
}

void sl_wide_collect(sl_sparse_trainer *trainer, const sl_encoded *rows, const float *gradient) {
    const sl_features *features = trainer->features;
    sl_sparse_gradients *gradients = &trainer->gradients;
    sl_row_sums_clear(&gradients->wide);
    for (size_t f = 0; f < features->count; f++)
        if (features->features[f].wide_at != SIZE_MAX)
            add_wide_feature(&gradients->wide, features, &features->features[f], rows, gradient);
    collect_bias(features->outputs, rows->rows, gradient, gradients->bias);
}

/* ---------------------------------------------------------------------------------------------------------------
 * Embeddings
 * ------------------------------------------------------------------------------------------------------------- */

static inline void add_scaled(const sl_loops *loops, sl_row_sums *to, uint32_t row, float factor,
                              const float *gradient) {
    int fresh;
    float *sums = sl_row_sums_of(to, row, &fresh);
    if (fresh) {
        for (size_t d = 0; d < to->width; d++)
            sums[d] = gradient[d] * factor;
    } else {
        loops->add_scaled(sums, gradient, factor, to->width);
    }
}

/* Adds each dimension's gradient to the first id with the largest value. */
static void add_max(sl_row_sums *to, const uint32_t *ids, size_t count, const float *table, const float *gradient) {
    size_t dim = to->width;
    for (size_t d = 0; d < dim; d++) {
        size_t best = 0;
        for (size_t i = 1; i < count; i++)
            if (table[(size_t)ids[i] * dim + d] > table[(size_t)ids[best] * dim + d]) best = i;
        int fresh;
        float *sums = sl_row_sums_of(to, ids[best], &fresh);
        if (fresh) memset(sums, 0, dim * sizeof *sums);
        sums[d] += gradient[d];
    }
}

static void add_feature(sl_sparse_trainer *trainer, const sl_feature *feature, const float *table,
                        const sl_encoded *rows, const float *input_gradient) {
    const sl_features *features = trainer->features;
    const sl_loops *loops = trainer->loops;
    sl_row_sums *to = &trainer->gradients.tables[feature->tensor];
    for (size_t r = 0; r < rows->rows; r++) {
        const float *gradient = input_gradient + r * features->deep_inputs + feature->deep_at;
        if (feature->form == SL_FORM_ID) {
            add_scaled(loops, to, rows->ids[r * features->id_count + feature->at], 1, gradient);
            continue;
        }
        const uint32_t *start = rows->bag_start + r * features->bag_count + feature->at;
        const uint32_t *ids = rows->bag_ids + start[0];
        size_t count = start[1] - start[0];
        if (count && feature->spec->combine == SL_COMBINE_MAX) {
            add_max(to, ids, count, table, gradient);
            continue;
        }
        float factor = feature->spec->combine == SL_COMBINE_MEAN ? 1.0f / (float)count : 1;
        for (size_t i = 0; i < count; i++)
            add_scaled(loops, to, ids[i], factor, gradient);
    }
}

static void collect_table(sl_sparse_trainer *trainer, size_t table, const float *weights, const sl_encoded *rows,
                          const float *input_gradient) {
    const sl_features *features = trainer->features;
    sl_row_sums_clear(&trainer->gradients.tables[table]);
    for (size_t f = 0; f < features->count; f++) {
        const sl_feature *feature = &features->features[f];
        if (feature->tensor == table && feature->deep_at != SIZE_MAX && feature->form != SL_FORM_DENSE)
            add_feature(trainer, feature, weights, rows, input_gradient);
    }
}

void sl_embedding_collect(sl_sparse_trainer *trainer, const float *const *embeddings, const sl_encoded *rows,
                          const float *input_gradient) {
    size_t count = trainer->features->table_count;
    size_t threads = sl_sparse_threads(trainer, rows->rows * trainer->features->deep_inputs);
    if (threads <= 1) {
        for (size_t t = 0; t < count; t++)
            collect_table(trainer, t, embeddings[t], rows, input_gradient);
        return;
    }
#pragma omp parallel for num_threads((int)threads) schedule(dynamic, 1)
    for (size_t t = 0; t < count; t++)
        collect_table(trainer, t, embeddings[t], rows, input_gradient);
}
