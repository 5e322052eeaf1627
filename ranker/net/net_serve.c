/* A net for serving. Weights are packed once. The activations of a tile of rows stay in the L2 cache. */
#include "base/prefetch.h"
#include "ranker/net/loops.h"
#include "ranker/net/net_layer.h"
#include "ranker/net/net_product.h"

#include <math.h>
#include <string.h>

/* Products exist for row counts of 1, 2 and multiples of this. Rows that pad a count are computed and dropped. */
#define GRANULE 4u
/* Limit on the bytes of the widest layer's inputs and outputs in a tile: half of an L2 cache of 1 MB. The weights
 * stream through the other half. */
#define TILE_BYTES    ((size_t)512 << 10)
#define MAX_TILE_ROWS 512u
/* Rows of a product on the caller's arrays, which have no room for padding: this many, then smaller powers of two. */
#define FIRST_TILE 128u
/* The largest matrix, in weights, that a product of one row reads row-major: 256 KB. */
#define SMALL_MATRIX ((size_t)64 << 10)
/* Bytes of item rows to prefetch ahead of their use. */
#define AHEAD_BYTES ((size_t)8 << 10)

struct sl_net {
    sl_allocator allocator;
    sl_net_shape shape;
    const sl_loops *loops;
    size_t tile_rows; /* a multiple of GRANULE */
    float *weights;   /* the caller's block; NULL if no layer is floats */
    sl_packed *packed[SL_MAX_LAYERS];
    sl_net_layer coded[SL_MAX_LAYERS]; /* INT8 and bf16 layers */
    int has_int8, has_bf16;
};

struct sl_net_run {
    sl_allocator allocator;
    const sl_net *net;
    size_t max_rows;
    sl_products *products;
    float *input; /* (max_rows rounded up to GRANULE, width[0]), then width[0] zeros */
    const float *zeros;
    float *tiles[2];              /* a layer's inputs and its outputs of a tile, in turn */
    size_t input_size, tile_size; /* in bytes */
    sl_net_scratch scratch;       /* of INT8 and bf16 layers */
};

static size_t tile_rows_of(const sl_net_shape *shape) {
    size_t most = 1;
    for (size_t l = 0; l < shape->layers; l++) {
        size_t both = shape->width[l] + shape->width[l + 1];
        most = both > most ? both : most;
    }
    size_t rows = TILE_BYTES / (most * sizeof(float)) / GRANULE * GRANULE;
    return rows < GRANULE ? GRANULE : rows > MAX_TILE_ROWS ? MAX_TILE_ROWS : rows;
}

static sl_status make_layer(sl_net *net, const float *weights, const sl_layer_codes *codes, size_t l) {
    const sl_net_shape *shape = &net->shape;
    const sl_layer_codes *next = codes && l + 1 < shape->layers ? &codes[l + 1] : NULL;
    if (codes && codes[l].type != SL_LAYER_F32) {
        net->has_bf16 |= codes[l].type == SL_LAYER_BF16;
        net->has_int8 |= codes[l].type != SL_LAYER_BF16;
        return sl_net_layer_create(shape, l, &codes[l], weights + sl_net_bias_at(shape, l), next, &net->allocator,
                                   &net->coded[l]);
    }
    if (!net->weights) {
        void *block;
        size_t size = sl_net_size(shape) * sizeof *weights;
        SL_TRY(sl_mem_alloc(&net->allocator, size, &block));
        net->weights = block;
        memcpy(net->weights, weights, size);
    }
    return sl_packed_create(weights + sl_net_weight_at(shape, l), net->tile_rows, shape->width[l], shape->width[l + 1],
                            &net->allocator, &net->packed[l]);
}

sl_status sl_net_create(const sl_net_shape *shape, const float *weights, const sl_layer_codes *codes,
                        const sl_allocator *allocator, sl_net **out) {
    *out = NULL;
    sl_status status;
    void *block;
    SL_TRY(sl_mem_alloc(allocator, sizeof(sl_net), &block));
    sl_net *net = block;
    net->allocator = *allocator;
    net->shape = *shape;
    net->loops = sl_loops_get();
    net->tile_rows = tile_rows_of(shape);
    for (size_t l = 0; l < shape->layers; l++)
        SL_TRY_GOTO(make_layer(net, weights, codes, l), fail);
    *out = net;
    return SL_OK;
fail:
    sl_net_free(net);
    return status;
}

void sl_net_free(sl_net *net) {
    if (!net) return;
    sl_allocator allocator = net->allocator;
    for (size_t l = 0; l < net->shape.layers; l++) {
        sl_packed_free(net->packed[l]);
        sl_net_layer_free(&net->coded[l], &allocator);
    }
    SL_FREE_ARRAY(&allocator, net->weights, sl_net_size(&net->shape));
    SL_FREE(&allocator, net);
}

sl_status sl_net_run_create(const sl_net *net, size_t max_rows, const sl_allocator *allocator, sl_net_run **out) {
    *out = NULL;
    sl_status status;
    void *block;
    size_t input_bytes;
    SL_TRY(sl_mem_alloc(allocator, sizeof(sl_net_run), &block));
    sl_net_run *run = block;
    run->allocator = *allocator;
    run->net = net;
    run->max_rows = max_rows;
    if (max_rows >= SIZE_MAX - GRANULE ||
        !sl_mul(sl_round_up(max_rows, GRANULE) + 1, net->shape.width[0] * sizeof(float), &input_bytes)) {
        status = sl_fail(SL_ENOMEM, "inputs of %zu rows do not fit; ask for fewer rows at a time", max_rows);
        goto fail;
    }
    SL_TRY_GOTO(sl_mem_alloc(allocator, input_bytes, &block), fail);
    run->input = block;
    run->input_size = input_bytes;
    run->zeros = run->input + sl_round_up(max_rows, GRANULE) * net->shape.width[0];
    run->tile_size = net->tile_rows * sl_net_widest(&net->shape, 1) * sizeof(float);
    for (size_t i = 0; i < 2; i++) {
        SL_TRY_GOTO(sl_mem_alloc(allocator, run->tile_size, &block), fail);
        run->tiles[i] = block;
    }
    SL_TRY_GOTO(sl_products_create(allocator, &run->products), fail);
    size_t rows = net->tile_rows > FIRST_TILE ? net->tile_rows : FIRST_TILE;
    SL_TRY_GOTO(sl_net_scratch_create(&net->shape, net->has_int8, net->has_bf16, rows, allocator, &run->scratch), fail);
    *out = run;
    return SL_OK;
fail:
    sl_net_run_free(run);
    return status;
}

void sl_net_run_free(sl_net_run *run) {
    if (!run) return;
    sl_allocator allocator = run->allocator;
    sl_products_free(run->products);
    sl_net_scratch_free(&run->scratch, &allocator);
    for (size_t i = 0; i < 2; i++)
        sl_mem_free(&allocator, run->tiles[i], run->tile_size);
    sl_mem_free(&allocator, run->input, run->input_size);
    SL_FREE(&allocator, run);
}

float *sl_net_run_input(sl_net_run *run) {
    return run->input;
}

/* ---- Tiles ---- */

static size_t bucket_of(size_t rows) {
    return rows <= 2 ? rows : sl_round_up(rows, GRANULE);
}

/* Returns the rows of the next tile of `rows` remaining ones. Tiles have nearly equal sizes in whole granules, so that
 * a request needs products of one or two row counts. */
static size_t next_tile(size_t rows, size_t tile_rows) {
    size_t granules = (rows + GRANULE - 1) / GRANULE;
    size_t tiles = (rows + tile_rows - 1) / tile_rows;
    size_t most = (granules + tiles - 1) / tiles * GRANULE;
    return rows < most ? rows : most;
}

static sl_activation activation_of(const sl_net_shape *shape, size_t layer) {
    return layer + 1 < shape->layers ? shape->activation : SL_LINEAR;
}

/* Returns whether the net can hide NaN. oneDNN's ReLU and codes turn NaN into 0, and every ReLU turns -infinity into 0.
 * The row's outputs would then look valid. But NaN or infinity among a row's inputs makes every sum of the first layer
 * not finite. So 0 times one such sum, the taint, is added to the outputs. */
static int hides_nan(const sl_net *net) {
    return net->has_int8 || net->has_bf16 ||
           (sl_net_has_onednn() && net->shape.activation == SL_RELU && net->shape.layers > 1);
}

static void add_taint(const sl_net *net, const float *taint, size_t rows, float *out) {
    size_t outputs = net->shape.width[net->shape.layers];
    for (size_t r = 0; r < rows; r++)
        for (size_t o = 0; o < outputs; o++)
            out[r * outputs + o] += taint[r];
}

/* Returns whether a product costs less than a call of oneDNN: it has one column, or one row and a matrix that fits a
 * near cache. */
static int is_small_product(const sl_product_shape *product) {
    return product->out == 1 || (product->rows == 1 && product->in * product->out <= SMALL_MATRIX);
}

static sl_status multiply(sl_net_run *run, const sl_product_shape *shape, const float *x, const float *weights,
                          float *y) {
    const float *bias = weights + shape->in * shape->out;
    if (!is_small_product(shape)) return sl_products_run(run->products, shape, x, weights, bias, y);
    const sl_loops *loops = run->net->loops;
    sl_plain_product plain = {.src = x,
                              .weights = weights,
                              .bias = bias,
                              .stride = shape->stride,
                              .rows = shape->rows,
                              .in = shape->in,
                              .out = shape->out,
                              .dst = y};
    loops->product(&plain);
    if (shape->activation != SL_LINEAR) loops->activate(y, shape->rows * shape->out, shape->activation, y);
    return SL_OK;
}

/* The rows of a tile between two layers: floats, or codes or bf16 numbers in the scratch. */
typedef struct tile_state {
    size_t rows;
    const float *x;      /* NULL: they are in the scratch */
    size_t buffer;       /* index of the tile buffer that the next floats go to */
    size_t codes_buffer; /* index of the scratch buffer with the rows; the next ones go to the other */
} tile_state;

static sl_status run_f32_layer(sl_net_run *run, size_t l, tile_state *tile, float *out) {
    const sl_net_shape *shape = &run->net->shape;
    size_t bucket = bucket_of(tile->rows);
    sl_product_shape product = {.rows = bucket,
                                .in = shape->width[l],
                                .out = shape->width[l + 1],
                                .stride = shape->width[l],
                                .has_bias = 1,
                                .activation = activation_of(shape, l),
                                .packed = run->net->packed[l],
                                .threads = 1};
    const float *weights = run->net->weights + sl_net_weight_at(shape, l);
    int to_caller = l + 1 == shape->layers && bucket == tile->rows;
    float *y = to_caller ? out : run->tiles[tile->buffer];
    SL_TRY(multiply(run, &product, tile->x, weights, y));
    tile->x = y;
    tile->buffer = !tile->buffer;
    return SL_OK;
}

static void run_coded_layer(sl_net_run *run, size_t l, tile_state *tile, float *out) {
    const sl_net_shape *shape = &run->net->shape;
    const sl_net_layer *layer = &run->net->coded[l];
    if (tile->x) {
        const sl_layer_inputs inputs = {
            .x = tile->x, .stride = shape->width[l], .rows = tile->rows, .count = shape->width[l]};
        sl_net_layer_encode_inputs(&run->scratch, layer, &inputs, tile->codes_buffer, 0);
    }
    if (sl_net_layer_outputs_codes(layer)) {
        sl_net_layer_multiply(&run->scratch, layer, tile->rows, tile->codes_buffer, NULL);
        tile->x = NULL;
        tile->codes_buffer = !tile->codes_buffer;
        return;
    }
    sl_activation activation = activation_of(shape, l);
    float *y = l + 1 == shape->layers ? out : run->tiles[tile->buffer];
    sl_net_layer_multiply(&run->scratch, layer, tile->rows, tile->codes_buffer, y);
    if (activation != SL_LINEAR) run->net->loops->activate(y, tile->rows * shape->width[l + 1], activation, y);
    tile->x = y;
    tile->buffer = !tile->buffer;
}

/* Runs layers `first` to the last. tile.x has room for bucket_of(rows) rows and is not tiles[buffer]. */
static sl_status run_layers(sl_net_run *run, size_t first, tile_state tile, float *out) {
    const sl_net_shape *shape = &run->net->shape;
    for (size_t l = first; l < shape->layers; l++) {
        if (sl_net_layer_is_coded(&run->net->coded[l]))
            run_coded_layer(run, l, &tile, out);
        else
            SL_TRY(run_f32_layer(run, l, &tile, out));
    }
    if (tile.x != out) memcpy(out, tile.x, tile.rows * shape->width[shape->layers] * sizeof *out);
    return SL_OK;
}

static sl_status check_rows(const sl_net_run *run, size_t rows) {
    if (rows <= run->max_rows) return SL_OK;
    return sl_fail(SL_EINVAL, "%zu rows for a run of at most %zu", rows, run->max_rows);
}

sl_status sl_net_run_forward(sl_net_run *run, size_t rows, float *out) {
    SL_TRY(check_rows(run, rows));
    const sl_net_shape *shape = &run->net->shape;
    for (size_t at = 0, tile; at < rows; at += tile) {
        float taint[MAX_TILE_ROWS], *to = out + at * shape->width[shape->layers];
        const float *x = run->input + at * shape->width[0];
        tile = next_tile(rows - at, run->net->tile_rows);
        SL_TRY(run_layers(run, 0, (tile_state){.rows = tile, .x = x}, to));
        if (!hides_nan(run->net)) continue;
        for (size_t r = 0; r < tile; r++, x += shape->width[0])
            taint[r] = run->net->loops->dot(x, run->zeros, shape->width[0]);
        add_taint(run->net, taint, tile, to);
    }
    return SL_OK;
}

/* Writes sums without terms, which oneDNN does not support. */
static void fill_empty_part(const sl_first_part *part, const float *bias, size_t width, size_t rows, float *out) {
    for (size_t r = 0; r < rows; r++) {
        if (part->with_bias)
            memcpy(out + r * width, bias, width * sizeof *out);
        else
            memset(out + r * width, 0, width * sizeof *out);
    }
}

/* Runs the part of a coded first layer. Codes hide NaN and infinity, so rows with them get NaN here. */
static void run_coded_first_layer(sl_net_run *run, const sl_first_part *part, const float *x, size_t stride,
                                  size_t rows, float *out) {
    const sl_layer_inputs inputs = {.x = x, .stride = stride, .rows = rows, .from = part->from, .count = part->count};
    size_t width = run->net->shape.width[1];
    sl_net_layer_part_sums(&run->scratch, &run->net->coded[0], &inputs, part->with_bias, out);
    for (size_t r = 0; r < rows; r++) {
        float taint = run->net->loops->dot(x + r * stride, run->zeros, part->count);
        for (size_t o = 0; taint != 0 && o < width; o++)
            out[r * width + o] = NAN;
    }
}

sl_status sl_net_run_first(sl_net_run *run, const sl_first_part *part, const float *x, size_t stride, size_t rows,
                           float *out) {
    const sl_net_shape *shape = &run->net->shape;
    size_t width = shape->width[1];
    const sl_net_layer *coded = sl_net_layer_is_coded(&run->net->coded[0]) ? &run->net->coded[0] : NULL;
    const float *weights = coded ? NULL : run->net->weights + part->from * width;
    const float *bias = coded ? sl_net_layer_bias(coded) : run->net->weights + sl_net_bias_at(shape, 0);
    if (part->from > shape->width[0] || part->count > shape->width[0] - part->from)
        return sl_fail(SL_EINVAL, "inputs %zu to %zu of a layer of %zu", part->from, part->from + part->count,
                       shape->width[0]);
    if (part->count == 0) {
        fill_empty_part(part, bias, width, rows, out);
        return SL_OK;
    }
    if (coded) {
        run_coded_first_layer(run, part, x, stride, rows, out);
        return SL_OK;
    }
    for (size_t at = 0, tile; at < rows; at += tile) {
        for (tile = FIRST_TILE; tile > rows - at;)
            tile /= 2;
        sl_product_shape product = {.rows = tile,
                                    .in = part->count,
                                    .out = width,
                                    .stride = stride,
                                    .has_bias = part->with_bias != 0,
                                    .activation = SL_LINEAR,
                                    .threads = 1};
        SL_TRY(sl_products_run(run->products, &product, x + at * stride, weights, bias, out + at * width));
    }
    return SL_OK;
}

/* Parts of the first layer's sums: the user's, and for each row the item's and the pair's. */
typedef struct first_sums {
    const float *user; /* width[1] floats */
    const sl_item_rows *items;
    const float *pair; /* (rows, width[1]), or NULL */
    size_t rows, width;
    size_t item_bytes; /* bytes of one item's part */
} first_sums;

static size_t rows_ahead(const first_sums *sums) {
    return AHEAD_BYTES / sums->item_bytes + 1;
}

/* Prefetches an item's part, which may begin within a cache line. */
static void prefetch_item(const first_sums *sums, size_t r) {
    const char *row = sums->items->rows[r];
    size_t into_line = (uintptr_t)row % SL_PREFETCH_LINE;
    sl_prefetch(row - into_line, sums->item_bytes + into_line);
}

static sl_first_row first_row_of(const first_sums *sums, size_t r) {
    const sl_item_rows *items = sums->items;
    return (sl_first_row){.user = sums->user,
                          .item = items->rows[r],
                          .pair = sums->pair ? sums->pair + r * sums->width : NULL,
                          .item_type = items->type,
                          .item_scale = items->type == SL_I8 ? items->scales[r] : 1};
}

static size_t element_size(sl_dtype type) {
    return type == SL_F32 ? sizeof(float) : type == SL_BF16 ? sizeof(uint16_t) : sizeof(int8_t);
}

/* Returns the first value of the item's part. */
static float first_item_value(const sl_first_row *row) {
    if (row->item_type == SL_I8) return (float)*(const int8_t *)row->item * row->item_scale;
    if (row->item_type == SL_F32) return *(const float *)row->item;
    return sl_bf16_value(*(const uint16_t *)row->item);
}

/* Returns the second layer if it is INT8 or bf16; else NULL. */
static const sl_net_layer *coded_next(const sl_net *net) {
    return net->shape.layers > 1 && sl_net_layer_is_coded(&net->coded[1]) ? &net->coded[1] : NULL;
}

/* Computes the first layer's outputs of rows `at` to at + tile. Floats go to `out`. Inputs of a coded second layer go
 * to the scratch, through one row of `out`, which stays in a near cache. taint gets 0, or NaN for a row whose sums are
 * not finite (see hides_nan). */
static void join_tile(sl_net_run *run, const first_sums *sums, size_t at, size_t tile, float *out, float *taint) {
    const sl_loops *loops = run->net->loops;
    const sl_net_layer *next = coded_next(run->net);
    const sl_activation activation = activation_of(&run->net->shape, 0);
    size_t ahead = rows_ahead(sums);
    for (size_t r = at; r < at + tile; r++) {
        const sl_first_row row = first_row_of(sums, r);
        if (r + ahead < sums->rows) prefetch_item(sums, r + ahead);
        float *y = next ? out : out + (r - at) * sums->width;
        loops->join(&row, sums->width, activation, y);
        const sl_layer_inputs inputs = {.x = y, .stride = sums->width, .rows = 1, .count = sums->width};
        if (next) sl_net_layer_encode_inputs(&run->scratch, next, &inputs, 0, r - at);
        taint[r - at] = (row.user[0] + first_item_value(&row) + (row.pair ? row.pair[0] : 0)) * 0;
    }
}

sl_status sl_net_run_rest(sl_net_run *run, const float *user, const sl_item_rows *items, const float *pair, size_t rows,
                          float *out) {
    const sl_net_shape *shape = &run->net->shape;
    size_t width = shape->width[1], outputs = shape->width[shape->layers];
    const first_sums sums = {.user = user,
                             .items = items,
                             .pair = pair,
                             .rows = rows,
                             .width = width,
                             .item_bytes = width * element_size(items->type)};
    for (size_t r = 0; r < rows && r < rows_ahead(&sums); r++)
        prefetch_item(&sums, r);
    for (size_t at = 0, tile; at < rows; at += tile) {
        tile = next_tile(rows - at, run->net->tile_rows);
        float taint[MAX_TILE_ROWS];
        join_tile(run, &sums, at, tile, run->tiles[0], taint);
        const float *x = coded_next(run->net) ? NULL : run->tiles[0];
        SL_TRY(run_layers(run, 1, (tile_state){.rows = tile, .x = x, .buffer = 1}, out + at * outputs));
        if (hides_nan(run->net)) add_taint(run->net, taint, tile, out + at * outputs);
    }
    return SL_OK;
}
