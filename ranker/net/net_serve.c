/* A net that serves: weights packed once, and tiles of rows whose activations stay in the second-level cache. */
#include "base/prefetch.h"
#include "ranker/net/loops.h"
#include "ranker/net/net_coded.h"
#include "ranker/net/net_product.h"

#include <math.h>
#include <string.h>

/* Products are made for row counts of 1, 2 and multiples of this. Rows that fill up a count are computed and
 * dropped. */
#define GRANULE 4u
/* Bytes that the widest layer's inputs and outputs of a tile may take: half of a second-level cache of 1 MB. The
 * weights stream through the other half. */
#define TILE_BYTES ((size_t)512 << 10)
#define MOST_TILE  512u
/* Rows of a product on the caller's arrays, where no row can be added: this many, then powers of two. */
#define FIRST_TILE 128u
/* The largest matrix, in weights, that a product of one row reads row-major: 256 KB. */
#define LITTLE_MATRIX ((size_t)64 << 10)
/* Bytes of item rows that are prefetched ahead of their use. */
#define AHEAD_BYTES ((size_t)8 << 10)

struct sl_net {
    sl_allocator allocator;
    sl_net_shape shape;
    const sl_loops *loops;
    size_t tile_rows; /* a multiple of GRANULE */
    float *weights;   /* the whole block, as it was given; NULL if no layer is of floats */
    sl_packed *packed[SL_MAX_LAYERS];
    sl_net_layer coded[SL_MAX_LAYERS]; /* layers that are not of floats */
    int has_int8, has_bf16;
};

struct sl_net_run {
    sl_allocator allocator;
    const sl_net *net;
    size_t max_rows;
    sl_products *products;
    float *input; /* (max_rows rounded up to GRANULE, width[0]), and width[0] zeros behind it */
    const float *zeros;
    float *tiles[2];              /* by turns a layer's inputs and its outputs, of a tile */
    size_t input_size, tile_size; /* in bytes */
    sl_net_scratch scratch;       /* of layers that are not of floats */
};

static size_t tile_rows_of(const sl_net_shape *shape) {
    size_t most = 1;
    for (size_t l = 0; l < shape->layers; l++) {
        size_t both = shape->width[l] + shape->width[l + 1];
        most = both > most ? both : most;
    }
    size_t rows = TILE_BYTES / (most * sizeof(float)) / GRANULE * GRANULE;
    return rows < GRANULE ? GRANULE : rows > MOST_TILE ? MOST_TILE : rows;
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
    sl_mem_free(&allocator, net->weights, sl_net_size(&net->shape) * sizeof(float));
    sl_mem_free(&allocator, net, sizeof *net);
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
    sl_mem_free(&allocator, run, sizeof *run);
}

float *sl_net_run_input(sl_net_run *run) {
    return run->input;
}

/* ---- Tiles ---- */

static size_t bucket_of(size_t rows) {
    return rows <= 2 ? rows : sl_round_up(rows, GRANULE);
}

/* Returns the rows of the next tile where `rows` are left. Tiles are of nearly equal size, in whole granules: a request
 * needs products of one or two row counts. */
static size_t next_tile(size_t rows, size_t tile_rows) {
    size_t granules = (rows + GRANULE - 1) / GRANULE;
    size_t tiles = (rows + tile_rows - 1) / tile_rows;
    size_t most = (granules + tiles - 1) / tiles * GRANULE;
    return rows < most ? rows : most;
}

static sl_activation activation_of(const sl_net_shape *shape, size_t layer) {
    return layer + 1 < shape->layers ? shape->activation : SL_LINEAR;
}

/* oneDNN's ReLU gives 0 for NaN, and so do codes. Every ReLU gives 0 for -infinity. The row's outputs would look as
 * good as any. A NaN or infinity among a row's inputs makes every sum of the first layer not finite. So one sum tells:
 * 0 times it is added to the outputs.
 */
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

/* Tells whether a product costs less than a call of oneDNN: one column, or one row and a matrix small enough for a near
 * cache. */
static int is_little(const sl_product_shape *product) {
    return product->out == 1 || (product->rows == 1 && product->in * product->out <= LITTLE_MATRIX);
}

static sl_status multiply(sl_net_run *run, const sl_product_shape *shape, const float *x, const float *weights,
                          float *y) {
    const float *bias = weights + shape->in * shape->out;
    if (!is_little(shape)) return sl_products_run(run->products, shape, x, weights, bias, y);
    const sl_loops *loops = run->net->loops;
    sl_plain_product plain = {x, weights, bias, shape->stride, shape->rows, shape->in, shape->out, y};
    loops->product(&plain);
    if (shape->activation != SL_LINEAR) loops->activate(y, shape->rows * shape->out, shape->activation, y);
    return SL_OK;
}

/* Rows between two layers: floats, or codes or bf16 numbers in the scratch. */
typedef struct tile_rows {
    size_t rows;
    const float *x;    /* NULL: in the scratch */
    size_t turn;       /* of the tile that the next floats go to */
    size_t codes_turn; /* of the scratch with the rows, and of that which the next ones go to */
} tile_rows;

static sl_status run_f32(sl_net_run *run, size_t l, tile_rows *tile, float *out) {
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
    float *y = to_caller ? out : run->tiles[tile->turn];
    SL_TRY(multiply(run, &product, tile->x, weights, y));
    tile->x = y;
    tile->turn = !tile->turn;
    return SL_OK;
}

static void run_coded(sl_net_run *run, size_t l, tile_rows *tile, float *out) {
    const sl_net_shape *shape = &run->net->shape;
    const sl_net_layer *layer = &run->net->coded[l];
    if (tile->x) {
        const sl_layer_inputs inputs = {tile->x, shape->width[l], tile->rows, 0, shape->width[l]};
        sl_net_layer_take(&run->scratch, layer, &inputs, tile->codes_turn, 0);
    }
    if (sl_net_layer_gives_codes(layer)) {
        sl_net_layer_give(&run->scratch, layer, tile->rows, tile->codes_turn, NULL);
        tile->x = NULL;
        tile->codes_turn = !tile->codes_turn;
        return;
    }
    sl_activation activation = activation_of(shape, l);
    float *y = l + 1 == shape->layers ? out : run->tiles[tile->turn];
    sl_net_layer_give(&run->scratch, layer, tile->rows, tile->codes_turn, y);
    if (activation != SL_LINEAR) run->net->loops->activate(y, tile->rows * shape->width[l + 1], activation, y);
    tile->x = y;
    tile->turn = !tile->turn;
}

/* Runs layers `first` to the last. tile->x has room for bucket_of(rows) rows and is not tiles[turn]. */
static sl_status run_layers(sl_net_run *run, size_t first, tile_rows tile, float *out) {
    const sl_net_shape *shape = &run->net->shape;
    for (size_t l = first; l < shape->layers; l++) {
        if (sl_net_layer_is_coded(&run->net->coded[l]))
            run_coded(run, l, &tile, out);
        else
            SL_TRY(run_f32(run, l, &tile, out));
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
        float taint[MOST_TILE], *to = out + at * shape->width[shape->layers];
        const float *x = run->input + at * shape->width[0];
        tile = next_tile(rows - at, run->net->tile_rows);
        SL_TRY(run_layers(run, 0, (tile_rows){.rows = tile, .x = x}, to));
        if (!hides_nan(run->net)) continue;
        for (size_t r = 0; r < tile; r++, x += shape->width[0])
            taint[r] = run->net->loops->dot(x, run->zeros, shape->width[0]);
        add_taint(run->net, taint, tile, to);
    }
    return SL_OK;
}

/* Writes sums without terms, which oneDNN does not make. */
static void fill_empty(const sl_first_part *part, const float *bias, size_t width, size_t rows, float *out) {
    for (size_t r = 0; r < rows; r++) {
        if (part->with_bias)
            memcpy(out + r * width, bias, width * sizeof *out);
        else
            memset(out + r * width, 0, width * sizeof *out);
    }
}

/* Codes hide what is not finite: such rows get NaN. */
static void run_coded_first(sl_net_run *run, const sl_first_part *part, const float *x, size_t stride, size_t rows,
                            float *out) {
    const sl_layer_inputs inputs = {x, stride, rows, part->from, part->count};
    size_t width = run->net->shape.width[1];
    sl_net_layer_part(&run->scratch, &run->net->coded[0], &inputs, part->with_bias, out);
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
        fill_empty(part, bias, width, rows, out);
        return SL_OK;
    }
    if (coded) {
        run_coded_first(run, part, x, stride, rows, out);
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

/* Sums of the first layer in parts: the user's, and of each row the item's and the pair's. */
typedef struct first_sums {
    const float *user; /* width[1] floats */
    const sl_item_rows *items;
    const float *pair; /* (rows, width[1]), or NULL */
    size_t rows, width;
    size_t item_bytes; /* of one item's part */
} first_sums;

static size_t rows_ahead(const first_sums *sums) {
    return AHEAD_BYTES / sums->item_bytes + 1;
}

/* Prefetches an item's part, which may begin anywhere in a line. */
static void expect_item(const first_sums *sums, size_t r) {
    const char *row = sums->items->rows[r];
    size_t into_line = (uintptr_t)row % SL_PREFETCH_LINE;
    sl_prefetch(row - into_line, sums->item_bytes + into_line);
}

static sl_first_row row_of(const first_sums *sums, size_t r) {
    const sl_item_rows *items = sums->items;
    return (sl_first_row){.user = sums->user,
                          .item = items->rows[r],
                          .pair = sums->pair ? sums->pair + r * sums->width : NULL,
                          .item_type = items->type,
                          .item_scale = items->type == SL_I8 ? items->scales[r] : 1};
}

static size_t element_of(sl_dtype type) {
    return type == SL_F32 ? sizeof(float) : type == SL_BF16 ? sizeof(uint16_t) : sizeof(int8_t);
}

/* Returns the first element of the item's part. */
static float first_of_item(const sl_first_row *row) {
    if (row->item_type == SL_I8) return (float)*(const int8_t *)row->item * row->item_scale;
    if (row->item_type == SL_F32) return *(const float *)row->item;
    return sl_bf16_value(*(const uint16_t *)row->item);
}

/* The second layer where it is not of floats; else NULL. */
static const sl_net_layer *coded_next(const sl_net *net) {
    return net->shape.layers > 1 && sl_net_layer_is_coded(&net->coded[1]) ? &net->coded[1] : NULL;
}

/* Computes the first layer's outputs of rows `at` to at + tile. Floats go into `out`. The second layer's inputs go into
 * the scratch, by way of one row of `out`, which stays in a near cache. taint gets 0, or NaN for a row whose sums are
 * not finite (see add_taint). */
static void join_tile(sl_net_run *run, const first_sums *sums, size_t at, size_t tile, float *out, float *taint) {
    const sl_loops *loops = run->net->loops;
    const sl_net_layer *next = coded_next(run->net);
    const sl_activation activation = activation_of(&run->net->shape, 0);
    size_t ahead = rows_ahead(sums);
    for (size_t r = at; r < at + tile; r++) {
        const sl_first_row row = row_of(sums, r);
        if (r + ahead < sums->rows) expect_item(sums, r + ahead);
        float *y = next ? out : out + (r - at) * sums->width;
        loops->join(&row, sums->width, activation, y);
        const sl_layer_inputs inputs = {y, sums->width, 1, 0, sums->width};
        if (next) sl_net_layer_take(&run->scratch, next, &inputs, 0, r - at);
        taint[r - at] = (row.user[0] + first_of_item(&row) + (row.pair ? row.pair[0] : 0)) * 0;
    }
}

sl_status sl_net_run_rest(sl_net_run *run, const float *user, const sl_item_rows *items, const float *pair, size_t rows,
                          float *out) {
    const sl_net_shape *shape = &run->net->shape;
    size_t width = shape->width[1], outputs = shape->width[shape->layers];
    const first_sums sums = {user, items, pair, rows, width, width * element_of(items->type)};
    for (size_t r = 0; r < rows && r < rows_ahead(&sums); r++)
        expect_item(&sums, r);
    for (size_t at = 0, tile; at < rows; at += tile) {
        tile = next_tile(rows - at, run->net->tile_rows);
        float taint[MOST_TILE];
        join_tile(run, &sums, at, tile, run->tiles[0], taint);
        const float *x = coded_next(run->net) ? NULL : run->tiles[0];
        SL_TRY(run_layers(run, 1, (tile_rows){.rows = tile, .x = x, .turn = 1}, out + at * outputs));
        if (hides_nan(run->net)) add_taint(run->net, taint, tile, out + at * outputs);
    }
    return SL_OK;
}
