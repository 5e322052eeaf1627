/* Reads the sparse weights of rows: the deep part's inputs and the wide part's sums. */
#include "ranker/model/sparse_forward.h"

#include "base/prefetch.h"
#include "ranker/net/loops.h"

#include <string.h>

/* Rows to prefetch ahead of the one being read. */
enum { ROWS_AHEAD = 3 };
/* A smaller table is in a near cache, where prefetching costs as much as reading. */
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

/* ---- The deep part's inputs ---- */

/* A table to read: floats, or rows of codes. */
typedef struct table_reader {
    const sl_loops *loops;
    const float *floats; /* NULL: the table is coded */
    const sl_table_codes *codes;
    const uint8_t *rows;
    size_t dim, row_bytes;
} table_reader;

static inline table_reader table_reader_of(const sl_loops *loops, const sl_feature *feature,
                                           const float *const *embeddings, const sl_coded_tables *coded) {
    table_reader table = {.loops = loops, .floats = embeddings[feature->tensor], .dim = feature->dim};
    if (table.floats) return table;
    table.codes = &coded->codes[feature->tensor];
    table.rows = coded->rows[feature->tensor];
    table.row_bytes = sl_row_bytes((sl_table_type)table.codes->type, feature->dim);
    return table;
}

static inline void read_row(const table_reader *table, size_t id, float *out) {
    if (table->floats)
        copy_floats(out, table->floats + id * table->dim, table->dim);
    else
        sl_row_decode(table->loops, table->codes, table->rows + id * table->row_bytes, table->dim, SL_DECODE_SET, out);
}

/* Adds a row to `out`, or keeps the larger of each pair. */
static void add_row(const table_reader *table, size_t id, int keep_larger, float *out) {
    size_t dim = table->dim;
    if (!table->floats) {
        sl_decode how = keep_larger ? SL_DECODE_MAX : SL_DECODE_ADD;
        sl_row_decode(table->loops, table->codes, table->rows + id * table->row_bytes, dim, how, out);
        return;
    }
    const float *row = table->floats + id * dim;
    if (!keep_larger) {
        table->loops->add(out, row, dim);
        return;
    }
    for (size_t d = 0; d < dim; d++)
        out[d] = row[d] > out[d] ? row[d] : out[d];
}

static void combine_bag(const table_reader *table, sl_combine combine, const uint32_t *ids, size_t count, float *out) {
    size_t dim = table->dim;
    if (count == 0) {
        memset(out, 0, dim * sizeof *out);
        return;
    }
    read_row(table, ids[0], out);
    for (size_t i = 1; i < count; i++)
        add_row(table, ids[i], combine == SL_COMBINE_MAX, out);
    if (combine == SL_COMBINE_MEAN && count > 1) {
        float share = 1.0f / (float)count;
        for (size_t d = 0; d < dim; d++)
            out[d] *= share;
    }
}

static void prefetch_embeddings(const sl_feature_list *list, const float *const *embeddings,
                                const sl_coded_tables *coded, const uint32_t *ids) {
    for (size_t f = 0; f < list->count; f++) {
        const sl_feature *feature = list->features[f];
        if (feature->form != SL_FORM_ID || feature->size * feature->dim * sizeof(float) <= NEAR_BYTES) continue;
        table_reader table = table_reader_of(NULL, feature, embeddings, coded);
        size_t id = ids[feature->at];
        if (table.floats)
            sl_prefetch(table.floats + id * table.dim, table.dim * sizeof(float));
        else if (feature->size * table.row_bytes > NEAR_BYTES)
            sl_prefetch(table.rows + id * table.row_bytes, table.row_bytes);
    }
}

/* Returns the first input of the lowest side in the mask. */
static size_t first_input(const sl_features *features, unsigned sides) {
    size_t side = 0;
    while (side < SL_SIDE_PAIR && !(sides >> side & 1))
        side++;
    return features->deep_side[side];
}

void sl_deep_inputs(const sl_features *features, const float *const *embeddings, const sl_coded_tables *coded,
                    const sl_encoded *rows, unsigned sides, size_t stride, float *out) {
    const sl_loops *loops = sl_loops_get();
    const sl_feature_list *list = &features->deep_of[sides & SL_ALL_SIDES];
    size_t first = first_input(features, sides);
    for (size_t r = 0; r < rows->rows; r++, out += stride) {
        if (r + ROWS_AHEAD < rows->rows)
            prefetch_embeddings(list, embeddings, coded, rows->ids + (r + ROWS_AHEAD) * features->id_count);
        for (size_t f = 0; f < list->count; f++) {
            const sl_feature *feature = list->features[f];
            float *to = out + (feature->deep_at - first);
            if (feature->form == SL_FORM_DENSE) {
                copy_floats(to, rows->dense + r * features->dense_width + feature->at, feature->width);
                continue;
            }
            table_reader table = table_reader_of(loops, feature, embeddings, coded);
            if (feature->form == SL_FORM_ID) {
                read_row(&table, rows->ids[r * features->id_count + feature->at], to);
            } else {
                const uint32_t *start = rows->bag_start + r * features->bag_count + feature->at;
                combine_bag(&table, feature->spec->combine, rows->bag_ids + start[0], start[1] - start[0], to);
            }
        }
    }
}

/* ---- The wide part's sums ---- */

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
