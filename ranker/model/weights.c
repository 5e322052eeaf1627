#include "base/random.h"
#include "ranker/model/model.h"

#include <math.h>
#include <string.h>

/* Floats in a cache line. */
#define LINE (SL_CACHE_LINE / sizeof(float))

void sl_shape_of(const sl_features *features, sl_net_shape *out) {
    const sl_spec *spec = features->spec;
    *out = (sl_net_shape){.activation = spec->activation};
    if (!spec->has_deep || !features->deep_inputs) return;
    out->layers = spec->hidden_count + 1;
    out->width[0] = features->deep_inputs;
    for (size_t i = 0; i < spec->hidden_count; i++)
        out->width[i + 1] = spec->hidden[i];
    out->width[out->layers] = features->outputs;
}

/* Places rows * columns floats at the next cache line after *total, and adds them to it. *at gets their offset. Returns
 * 0 on overflow. */
static int place_part(size_t rows, size_t columns, size_t *at, size_t *size, size_t *total) {
    size_t end;
    *at = *total;
    if (!sl_mul(rows, columns, size) || !sl_add(*total, *size, &end) || end > SIZE_MAX / sizeof(float) - LINE) return 0;
    *total = sl_round_up(end, LINE);
    return 1;
}

/* Adds a coded table's rows. Returns 0 on overflow. */
static int add_coded_rows(const sl_table_shape *shape, sl_table_type type, sl_weights_layout *layout) {
    size_t bytes;
    return sl_mul(shape->size, sl_row_bytes(type, shape->dim), &bytes) &&
           sl_add(layout->rows_size, bytes, &layout->rows_size) && layout->rows_size <= SIZE_MAX - SL_CODES_SLACK;
}

static int is_coded(const sl_table_codes *codes, size_t table) {
    return codes && codes[table].type != SL_TABLE_F32;
}

sl_status sl_weights_layout_of(const sl_features *features, const sl_net_shape *shape, sl_weights_layout *out) {
    return sl_weights_layout_coded(features, shape, NULL, out);
}

sl_status sl_weights_layout_coded(const sl_features *features, const sl_net_shape *shape, const sl_table_codes *codes,
                                  sl_weights_layout *out) {
    sl_weights_layout layout = {0};
    size_t at, size;
    int fits = place_part(features->wide_size + 1, features->outputs, &at, &layout.wide_size, &layout.total);
    layout.embeddings_at = layout.total;
    for (size_t i = 0; i < features->table_count && fits; i++) {
        const sl_table_shape *table = &features->tables[i];
        if (is_coded(codes, i))
            fits = add_coded_rows(table, (sl_table_type)codes[i].type, &layout);
        else
            fits = place_part(table->size, table->dim, &at, &size, &layout.total);
    }
    if (layout.rows_size) layout.codes_size = features->table_count * sizeof *codes;
    layout.embeddings_size = layout.total - layout.embeddings_at;
    fits = fits &&
           place_part(1, shape->layers ? sl_net_size(shape) : 0, &layout.dense_at, &layout.dense_size, &layout.total);
    if (!fits) return sl_fail(SL_ENOMEM, "the model's weights do not fit the address space; use smaller features");
    *out = layout;
    return SL_OK;
}

sl_status sl_weights_create(const sl_features *features, const sl_net_shape *shape, const sl_allocator *allocator,
                            sl_weights *out) {
    return sl_weights_create_coded(features, shape, NULL, allocator, out);
}

/* Sets the pointers to each table, in either block. */
static void place_tables(sl_weights *weights, const sl_features *features, float *at) {
    uint8_t *rows = weights->coded.block;
    for (size_t i = 0; i < features->table_count; i++) {
        const sl_table_shape *table = &features->tables[i];
        if (is_coded(weights->coded.codes, i)) {
            weights->coded.rows[i] = rows;
            rows += table->size * sl_row_bytes((sl_table_type)weights->coded.codes[i].type, table->dim);
        } else {
            weights->embeddings[i] = at;
            at += sl_round_up(table->size * table->dim, LINE);
        }
    }
}

static sl_status create_coded(const sl_weights_layout *layout, size_t tables, const sl_table_codes *codes,
                              const sl_allocator *allocator, sl_coded_tables *out) {
    sl_status status = SL_OK;
    if (!layout->rows_size) return SL_OK;
    out->codes = sl_mem_array(allocator, tables, sizeof *out->codes, &status);
    out->rows = sl_mem_array(allocator, tables, sizeof *out->rows, &status);
    out->block = sl_mem_array(allocator, layout->rows_size + SL_CODES_SLACK, 1, &status);
    out->size = layout->rows_size;
    if (status == SL_OK) memcpy(out->codes, codes, tables * sizeof *codes);
    return status;
}

sl_status sl_weights_create_coded(const sl_features *features, const sl_net_shape *shape, const sl_table_codes *codes,
                                  const sl_allocator *allocator, sl_weights *out) {
    sl_weights_layout layout;
    sl_weights weights = {0};
    sl_status status = SL_OK;
    *out = weights;
    SL_TRY(sl_weights_layout_coded(features, shape, codes, &layout));
    weights.block = sl_mem_array(allocator, layout.total, sizeof(float), &status);
    weights.block_size = layout.total;
    weights.embeddings = sl_mem_array(allocator, features->table_count, sizeof *weights.embeddings, &status);
    if (status == SL_OK) status = create_coded(&layout, features->table_count, codes, allocator, &weights.coded);
    if (status != SL_OK) {
        sl_weights_free(&weights, features, shape, allocator);
        return status;
    }
    weights.wide = weights.block;
    weights.bias = weights.wide + features->wide_size * features->outputs;
    place_tables(&weights, features, weights.block + layout.embeddings_at);
    if (shape->layers) weights.dense = weights.block + layout.dense_at;
    *out = weights;
    return SL_OK;
}

void sl_weights_free(sl_weights *weights, const sl_features *features, const sl_net_shape *shape,
                     const sl_allocator *allocator) {
    (void)shape;
    sl_coded_tables *coded = &weights->coded;
    size_t tables = features->table_count;
    SL_FREE_ARRAY(allocator, coded->codes, tables);
    SL_FREE_ARRAY(allocator, coded->rows, tables);
    sl_mem_free(allocator, coded->block, coded->size + SL_CODES_SLACK);
    SL_FREE_ARRAY(allocator, weights->embeddings, tables);
    SL_FREE_ARRAY(allocator, weights->block, weights->block_size);
    *weights = (sl_weights){0};
}

/* Copies a table if both have it as floats, or both coded. */
static void copy_table(sl_weights *to, const sl_weights *from, const sl_table_shape *shape, size_t table) {
    if (to->embeddings[table] && from->embeddings[table])
        memcpy(to->embeddings[table], from->embeddings[table], shape->size * shape->dim * sizeof(float));
    else if (is_coded(to->coded.codes, table) && is_coded(from->coded.codes, table))
        memcpy(to->coded.rows[table], from->coded.rows[table],
               shape->size * sl_row_bytes((sl_table_type)to->coded.codes[table].type, shape->dim));
}

void sl_weights_copy(sl_weights *to, const sl_weights *from, const sl_features *features, const sl_net_shape *shape) {
    if (!to->coded.codes && !from->coded.codes) {
        memcpy(to->block, from->block, from->block_size * sizeof(float));
        return;
    }
    memcpy(to->wide, from->wide, (features->wide_size + 1) * features->outputs * sizeof(float));
    if (shape->layers) memcpy(to->dense, from->dense, sl_net_size(shape) * sizeof(float));
    for (size_t t = 0; t < features->table_count; t++)
        copy_table(to, from, &features->tables[t], t);
}

/* Returns a nearly standard normal number: the sum of twelve uniform numbers less its mean (Irwin-Hall), at most 6.
 * Sums of integers are the same on every machine, unlike logarithms and cosines of system libraries. */
static float normal_at(uint64_t seed, uint64_t counter) {
    uint32_t sum = 0;
    for (uint64_t word = 0; word < 3; word++) {
        uint64_t bits = sl_random_at(seed, 3 * counter + word);
        sum += (uint32_t)((bits & 0xffff) + (bits >> 16 & 0xffff) + (bits >> 32 & 0xffff) + (bits >> 48));
    }
    return ((float)sum - 6.0f * 65535.0f) / 65536.0f;
}

static float symmetric_at(uint64_t seed, uint64_t counter, double bound) {
    return (float)((2 * sl_random_unit(seed, counter) - 1) * bound);
}

/* Draws uniform weights. Variance 2 / in preserves magnitudes through a rectifier, which halves them (He et al. 2015,
 * arXiv 1502.01852). Variance 1 / in does so without a rectifier. Biases begin at 0. */
static void initialise_layer(float *dense, const sl_net_shape *shape, size_t layer, uint64_t seed) {
    int rectified = layer + 1 < shape->layers && (shape->activation == SL_RELU || shape->activation == SL_GELU);
    size_t in = shape->width[layer], out = shape->width[layer + 1];
    double bound = sqrt((rectified ? 6.0 : 3.0) / (double)in);
    float *weights = dense + sl_net_weight_at(shape, layer);
    for (size_t i = 0; i < in * out; i++)
        weights[i] = symmetric_at(seed, i, bound);
}

void sl_weights_initialise(sl_weights *weights, const sl_features *features, const sl_net_shape *shape, uint64_t seed) {
    uint64_t stream = 0;
    memset(weights->block, 0, weights->block_size * sizeof(float));
    float deviation = (float)features->spec->embedding_init;
    for (size_t t = 0; t < features->table_count; t++) {
        uint64_t own = sl_random_at(seed, stream++);
        size_t count = features->tables[t].size * features->tables[t].dim;
        for (size_t i = 0; i < count; i++)
            weights->embeddings[t][i] = deviation * normal_at(own, i);
    }
    for (size_t layer = 0; layer < shape->layers; layer++)
        initialise_layer(weights->dense, shape, layer, sl_random_at(seed, stream++));
}
