/* Reads the weights that rows touch: the deep part's inputs and the wide part's sums. */
#include "ranker/sparse.h"

#include "base/prefetch.h"
#include "ranker/loops.h"

#include <string.h>

/* Rows whose weights are prefetched ahead of their use. */
enum { ROWS_AHEAD = 3 };
/* Tables below this are in a near cache. Prefetching would cost as much as reading. */
#define NEAR_BYTES ((size_t)256 << 10)

/* Embeddings are too short for a call of memcpy. */
typedef float four __attribute__((vector_size(16), aligned(4), may_alias));

static inline void copy_floats(float *to, const float *from, size_t n) {
    size_t i = 0;
    for (; i + 4 <= n; i += 4)
        *(four *)(to + i) = *(const four *)(from + i);
    for (; i < n; i++)
        to[i] = from[i];
}

/* ---------------------------------------------------------------------------------------------------------------
 * The deep part's inputs
 * ------------------------------------------------------------------------------------------------------------- */

static void combine_bag(const sl_loops *loops, const sl_feature *feature, const float *table, const uint32_t *ids,
                        size_t count, float *out) {
    size_t dim = feature->dim;
    if (count == 0) {
        memset(out, 0, dim * sizeof *out);
        return;
    }
    copy_floats(out, table + (size_t)ids[0] * dim, dim);
    for (size_t i = 1; i < count; i++) {
        const float *row = table + (size_t)ids[i] * dim;
        if (feature->spec->combine == SL_COMBINE_MAX) {
            for (size_t d = 0; d < dim; d++)
                out[d] = row[d] > out[d] ? row[d] : out[d];
        } else {
            loops->add(out, row, dim);
        }
    }
    if (feature->spec->combine == SL_COMBINE_MEAN && count > 1) {
        float share = 1.0f / (float)count;
        for (size_t d = 0; d < dim; d++)
            out[d] *= share;
    }
}

static void prefetch_embeddings(const sl_features *features, const sl_feature_list *list,
                                const float *const *embeddings, const sl_encoded *rows, size_t row) {
    const uint32_t *ids = rows->ids + row * features->id_count;
    for (size_t f = 0; f < list->count; f++) {
        const sl_feature *feature = list->features[f];
        if (feature->form == SL_FORM_ID && feature->size * feature->dim * sizeof(float) > NEAR_BYTES)
            sl_prefetch(embeddings[feature->tensor] + (size_t)ids[feature->at] * feature->dim,
                        feature->dim * sizeof(float));
    }
}

/* The first input of the lowest side in the mask. */
static size_t first_input(const sl_features *features, unsigned sides) {
    size_t side = 0;
    while (side < SL_SIDE_PAIR && !(sides >> side & 1))
        side++;
    return features->deep_side[side];
}

void sl_deep_inputs(const sl_features *features, const float *const *embeddings, const sl_encoded *rows, unsigned sides,
                    size_t stride, float *out) {
    const sl_loops *loops = sl_loops_get();
    const sl_feature_list *list = &features->deep_of[sides & SL_ALL_SIDES];
    size_t first = first_input(features, sides);
    for (size_t r = 0; r < rows->rows; r++, out += stride) {
        if (r + ROWS_AHEAD < rows->rows) prefetch_embeddings(features, list, embeddings, rows, r + ROWS_AHEAD);
        for (size_t f = 0; f < list->count; f++) {
            const sl_feature *feature = list->features[f];
            float *to = out + (feature->deep_at - first);
            if (feature->form == SL_FORM_DENSE) {
                copy_floats(to, rows->dense + r * features->dense_width + feature->at, feature->width);
            } else if (feature->form == SL_FORM_ID) {
                size_t id = rows->ids[r * features->id_count + feature->at];
                copy_floats(to, embeddings[feature->tensor] + id * feature->dim, feature->dim);
            } else {
                const uint32_t *start = rows->bag_start + r * features->bag_count + feature->at;
                combine_bag(loops, feature, embeddings[feature->tensor], rows->bag_ids + start[0], start[1] - start[0],
                            to);
            }
        }
    }
}

/* ---------------------------------------------------------------------------------------------------------------
 * The wide part's sums
 * ------------------------------------------------------------------------------------------------------------- */

static void prefetch_wide(const sl_features *features, const sl_feature_list *list, const float *wide,
                          const sl_encoded *rows, size_t row) {
    const uint32_t *ids = rows->ids + row * features->id_count;
    for (size_t f = 0; f < list->count; f++) {
        const sl_feature *feature = list->features[f];
        if (feature->form == SL_FORM_ID)
            sl_prefetch(wide + (feature->wide_at + ids[feature->at]) * features->outputs,
                        features->outputs * sizeof(float));
    }
}

static inline void add_weight(const float *wide, size_t weight, size_t outputs, float x, float *out) {
    for (size_t o = 0; o < outputs; o++)
        out[o] += wide[weight * outputs + o] * x;
}

void sl_wide_sums(const sl_features *features, const float *wide, const sl_encoded *rows, unsigned sides, float *out) {
    size_t outputs = features->outputs;
    const sl_feature_list *list = &features->wide_of[sides & SL_ALL_SIDES];
    int far = features->wide_size * outputs * sizeof *wide > NEAR_BYTES;
    for (size_t r = 0; r < rows->rows; r++, out += outputs) {
        if (far && r + ROWS_AHEAD < rows->rows) prefetch_wide(features, list, wide, rows, r + ROWS_AHEAD);
        for (size_t f = 0; f < list->count; f++) {
            const sl_feature *feature = list->features[f];
            if (feature->form == SL_FORM_DENSE) {
                const float *x = rows->dense + r * features->dense_width + feature->at;
                for (size_t i = 0; i < feature->width; i++)
                    add_weight(wide, feature->wide_at + i, outputs, x[i], out);
            } else if (feature->form == SL_FORM_ID) {
                add_weight(wide, feature->wide_at + rows->ids[r * features->id_count + feature->at], outputs, 1, out);
            } else {
                const uint32_t *start = rows->bag_start + r * features->bag_count + feature->at;
                for (uint32_t i = start[0]; i < start[1]; i++)
                    add_weight(wide, feature->wide_at + rows->bag_ids[i], outputs, 1, out);
            }
        }
    }
}
