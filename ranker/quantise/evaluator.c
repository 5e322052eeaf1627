#include "ranker/quantise/evaluator.h"

#include "base/failure.h"
#include "ranker/features/table.h"
#include "ranker/net/loops.h"
#include "ranker/net/loss.h"
#include "ranker/net/net_product.h"

#include <math.h>
#include <string.h>
#include <xxhash.h>

enum { TILE = 256, BLOCKS = 20 };

#define MOST_SCORES ((size_t)1 << 25)

/* ---------------------------------------------------------------------------------------------------------------
 * Rows
 * ------------------------------------------------------------------------------------------------------------- */

static sl_status read_groups(sl_evaluator *evaluator, const sl_table *block, const char *group) {
    size_t number = sl_table_find(block, group), first = evaluator->rows.rows;
    sl_status status = SL_OK;
    if (number == SIZE_MAX) return sl_fail_no_column(block, group, " to group the rows by");
    evaluator->groups = sl_mem_grow(&evaluator->allocator, evaluator->groups, &evaluator->group_room,
                                    first + block->rows, sizeof *evaluator->groups, &status);
    SL_TRY(status);
    return sl_table_groups(block, number, evaluator->groups + first);
}

static sl_status read_rows(sl_evaluator *evaluator, sl_encoder *encoder, const sl_rows *source, const char *group) {
    SL_TRY(source->rewind(source->ctx));
    for (;;) {
        sl_table block;
        SL_TRY(sl_rows_next(source, SL_BLOCK_ROWS, &block));
        if (block.rows == 0) return SL_OK;
        if (group) SL_TRY(read_groups(evaluator, &block, group));
        SL_TRY(sl_encoder_append(encoder, &block, 0, block.rows, &evaluator->rows));
    }
}

static sl_status sum_wide(sl_evaluator *evaluator) {
    const sl_features *features = evaluator->ranker->features;
    size_t outputs = features->outputs;
    sl_encoded rows;
    void *block;
    SL_TRY(sl_mem_alloc(&evaluator->allocator, evaluator->rows.rows * outputs * sizeof *evaluator->wide, &block));
    evaluator->wide = block;
    sl_rows_buffer_view(&evaluator->rows, &rows);
    if (features->wide_size)
        sl_wide_sums(features, evaluator->ranker->weights.wide, &rows, SL_ALL_SIDES, evaluator->wide);
    for (size_t i = 0; i < evaluator->rows.rows * outputs; i++)
        evaluator->wide[i] += evaluator->ranker->weights.bias[i % outputs];
    return SL_OK;
}

sl_status sl_evaluator_read(sl_evaluator *evaluator, const sl_rows *source, const char *group, sl_lookup_fn lookup,
                            void *lookup_ctx) {
    sl_encoder *encoder;
    SL_TRY(sl_rows_check(source));
    evaluator->rows.allocator = evaluator->allocator;
    SL_TRY(sl_encoder_create(evaluator->ranker->features, SL_ALL_SIDES, 1, lookup, lookup_ctx, &evaluator->allocator,
                             &encoder));
    sl_status status = read_rows(evaluator, encoder, source, group);
    sl_encoder_free(encoder);
    SL_TRY(status);
    if (evaluator->rows.rows == 0)
        return sl_fail(SL_EINVAL, "no rows to measure accuracy on; give a source that has some");
    return sum_wide(evaluator);
}

void sl_evaluator_free(sl_evaluator *evaluator) {
    const sl_allocator *allocator = &evaluator->allocator;
    const sl_net_shape *shape = &evaluator->ranker->shape;
    for (size_t l = 0; l < shape->layers; l++)
        for (size_t o = 0; o < evaluator->layers[l].count; o++)
            sl_net_layer_free(&evaluator->layers[l].options[o].coded, allocator);
    SL_FREE_ARRAY(allocator, evaluator->wide, evaluator->rows.rows * evaluator->ranker->features->outputs);
    SL_FREE_ARRAY(allocator, evaluator->reference, evaluator->rows.rows * evaluator->ranker->features->outputs);
    SL_FREE_ARRAY(allocator, evaluator->groups, evaluator->group_room);
    sl_rows_buffer_free(&evaluator->rows);
}

/* ---------------------------------------------------------------------------------------------------------------
 * Options
 * ------------------------------------------------------------------------------------------------------------- */

sl_status sl_evaluator_add(sl_evaluator *evaluator, const sl_calibrated *calibrated, size_t layer,
                           const sl_layer_choice *choice) {
    const sl_net_shape *shape = &evaluator->ranker->shape;
    sl_evaluated_layer *measured = &evaluator->layers[layer];
    sl_evaluated_option *option = &measured->options[measured->count];
    sl_layer_choice choices[SL_MAX_LAYERS] = {{.type = SL_LAYER_F32}};
    sl_coded_layers coded;
    *option = (sl_evaluated_option){.choice = *choice};
    if (choice->type != SL_LAYER_F32) {
        choices[layer] = *choice;
        SL_TRY(sl_quantise_layers(evaluator->ranker, calibrated, choices, &evaluator->allocator, &coded));
        const float *biases = sl_coded_layers_at(&coded, shape, layer).biases;
        sl_status status = sl_net_layer_create(shape, layer, &coded.layers[layer], biases, NULL, &evaluator->allocator,
                                               &option->coded);
        sl_coded_layers_free(&coded, &evaluator->allocator);
        SL_TRY(status);
    }
    measured->count++;
    return SL_OK;
}

size_t sl_choice_set_size(const sl_choice_set *set, size_t layers) {
    size_t size = 1;
    for (size_t l = 0; l < layers; l++)
        size *= set->counts[l];
    return size;
}

size_t sl_choice_of(const sl_choice_set *set, size_t layers, size_t number, size_t layer) {
    for (size_t l = layers - 1; l > layer; l--)
        number /= set->counts[l];
    return set->options[layer][number % set->counts[layer]];
}

/* ---------------------------------------------------------------------------------------------------------------
 * Running the layers
 * ------------------------------------------------------------------------------------------------------------- */

/* One thread's scratch memory: a tile's rows before each layer and after the last. */
typedef struct worker {
    float *floats[SL_MAX_LAYERS + 1];
    sl_net_scratch scratch;
    sl_products *products;
} worker;

/* One tile on its way through all combinations. */
typedef struct tile_run {
    const sl_evaluator *evaluator;
    const sl_choice_set *set;
    worker *worker;
    size_t first, rows, total;
    float *logits; /* (combinations, total, outputs) */
} tile_run;

static void free_worker(const sl_evaluator *evaluator, worker *w) {
    const sl_net_shape *shape = &evaluator->ranker->shape;
    for (size_t l = 0; l <= shape->layers; l++)
        SL_FREE_ARRAY(&evaluator->allocator, w->floats[l], TILE * shape->width[l]);
    sl_net_scratch_free(&w->scratch, &evaluator->allocator);
    sl_products_free(w->products);
}

static sl_status create_worker(const sl_evaluator *evaluator, worker *w) {
    const sl_net_shape *shape = &evaluator->ranker->shape;
    for (size_t l = 0; l <= shape->layers; l++) {
        void *block;
        SL_TRY(sl_mem_alloc(&evaluator->allocator, TILE * shape->width[l] * sizeof(float), &block));
        w->floats[l] = block;
    }
    SL_TRY(sl_net_scratch_create(shape, 1, 1, TILE, &evaluator->allocator, &w->scratch));
    return sl_products_create(&evaluator->allocator, &w->products);
}

/* Computes a layer's outputs with one of its options. */
static sl_status run_option(const tile_run *k, size_t layer, const sl_evaluated_option *option) {
    const sl_net_shape *shape = &k->evaluator->ranker->shape;
    size_t in = shape->width[layer], out = shape->width[layer + 1];
    sl_activation activation = layer + 1 < shape->layers ? shape->activation : SL_LINEAR;
    const float *x = k->worker->floats[layer];
    float *y = k->worker->floats[layer + 1];
    if (sl_net_layer_is_coded(&option->coded)) {
        const sl_layer_inputs inputs = {.x = x, .stride = in, .rows = k->rows, .count = in};
        sl_net_layer_encode_inputs(&k->worker->scratch, &option->coded, &inputs, 0, 0);
        sl_net_layer_multiply(&k->worker->scratch, &option->coded, k->rows, 0, y);
        if (activation != SL_LINEAR) sl_loops_get()->activate(y, k->rows * out, activation, y);
        return SL_OK;
    }
    const float *weights = k->evaluator->ranker->weights.dense + sl_net_weight_at(shape, layer);
    sl_product_shape product = {
        .rows = k->rows, .in = in, .out = out, .stride = in, .has_bias = 1, .activation = activation, .threads = 1};
    return sl_products_run(k->worker->products, &product, x, weights, weights + in * out, y);
}

/* Runs this layer and the later ones with every combination of options. *number is the next combination's number. The
 * recursion is as deep as the layers are many. */
static sl_status run_layers_from(const tile_run *k, size_t layer, size_t *number) {
    const sl_net_shape *shape = &k->evaluator->ranker->shape;
    size_t outputs = shape->width[shape->layers];
    if (layer == shape->layers) {
        memcpy(k->logits + ((*number)++ * k->total + k->first) * outputs, k->worker->floats[layer],
               k->rows * outputs * sizeof(float));
        return SL_OK;
    }
    for (size_t o = 0; o < k->set->counts[layer]; o++) {
        SL_TRY(run_option(k, layer, &k->evaluator->layers[layer].options[k->set->options[layer][o]]));
        SL_TRY(run_layers_from(k, layer + 1, number));
    }
    return SL_OK;
}

static sl_status run_tile(const sl_evaluator *evaluator, const sl_choice_set *set, worker *w, size_t tile,
                          float *logits) {
    const sl_features *features = evaluator->ranker->features;
    size_t total = evaluator->rows.rows, first = tile * TILE, number = 0;
    tile_run k = {.evaluator = evaluator,
                  .set = set,
                  .worker = w,
                  .first = first,
                  .rows = total - first < TILE ? total - first : TILE,
                  .total = total,
                  .logits = logits};
    sl_encoded all, rows;
    sl_rows_buffer_view(&evaluator->rows, &all);
    rows = sl_encoded_part(features, &all, first, k.rows);
    const sl_weights *weights = &evaluator->ranker->weights;
    sl_deep_inputs(features, (const float *const *)weights->embeddings, &weights->coded, &rows, SL_ALL_SIDES,
                   features->deep_inputs, w->floats[0]);
    return run_layers_from(&k, 0, &number);
}

/* ---------------------------------------------------------------------------------------------------------------
 * Measures
 * ------------------------------------------------------------------------------------------------------------- */

/* Turns a combination's logits into scores, in place. */
static void link_scores(const sl_evaluator *evaluator, float *logits) {
    size_t outputs = evaluator->ranker->features->outputs, rows = evaluator->rows.rows;
    for (size_t i = 0; i < rows * outputs; i++)
        logits[i] += evaluator->wide[i];
    sl_link(evaluator->ranker->features->spec->loss, outputs, rows, logits);
}

/* Rows to measure. An array may be NULL. */
typedef struct scored {
    const float *scores, *labels, *weights;
    const uint64_t *groups;
    size_t rows;
} scored;

static sl_status measure_rows(const sl_evaluator *evaluator, const scored *s, double *out) {
    const sl_features *features = evaluator->ranker->features;
    sl_evaluate_params params;
    sl_metrics metrics = {.struct_size = sizeof metrics};
    sl_evaluate_params_init(&params);
    params.ndcg_k = evaluator->ndcg_k;
    params.allocator = &evaluator->allocator;
    SL_TRY(sl_metrics_compute(features->spec->loss, features->outputs, s->scores, s->labels, s->weights, s->groups,
                              s->rows, &params, &metrics));
    *out = evaluator->measure == SL_MEASURE_AUC       ? metrics.auc
           : evaluator->measure == SL_MEASURE_LOGLOSS ? metrics.logloss
           : evaluator->measure == SL_MEASURE_RMSE    ? metrics.rmse
                                                      : metrics.ndcg;
    return SL_OK;
}

static scored all_rows(const sl_evaluator *evaluator, const float *scores) {
    return (scored){.scores = scores,
                    .labels = evaluator->rows.labels,
                    .weights = evaluator->rows.weights,
                    .groups = evaluator->groups,
                    .rows = evaluator->rows.rows};
}

/* ---------------------------------------------------------------------------------------------------------------
 * All combinations
 * ------------------------------------------------------------------------------------------------------------- */

typedef struct evaluating {
    const sl_evaluator *evaluator;
    const sl_choice_set *set;
    worker *workers;
    size_t combinations;
    float *logits;
    sl_progress *progress;
    sl_failure failure;
} evaluating;

static void run_tiles(evaluating *j) {
    const int threads = (int)j->evaluator->threads;
    const size_t tiles = (j->evaluator->rows.rows + TILE - 1) / TILE;
    (void)threads;
#pragma omp parallel for schedule(dynamic) num_threads(threads)
    for (size_t t = 0; t < tiles; t++)
        if (!sl_failure_before(&j->failure, t) && !sl_progress_cancelled(j->progress)) {
            sl_failure_keep(&j->failure, t,
                            run_tile(j->evaluator, j->set, &j->workers[sl_thread_number()], t, j->logits));
            sl_progress_step(j->progress, 0);
        }
}

static double error_from(const float *reference, const float *logits, size_t size) {
    double sum = 0;
    if (!reference) return (double)NAN;
    for (size_t i = 0; i < size; i++) {
        double difference = (double)logits[i] - (double)reference[i];
        sum += difference * difference;
    }
    return sqrt(sum / (double)size);
}

static void measure_all(evaluating *j, sl_evaluation *found) {
    const size_t size = j->evaluator->rows.rows * j->evaluator->ranker->features->outputs;
    const int threads = (int)j->evaluator->threads;
    (void)threads;
#pragma omp parallel for schedule(dynamic) num_threads(threads)
    for (size_t c = 0; c < j->combinations; c++) {
        if (sl_failure_before(&j->failure, c) || sl_progress_cancelled(j->progress)) continue;
        found[c].error = error_from(j->evaluator->reference, j->logits + c * size, size);
        link_scores(j->evaluator, j->logits + c * size);
        scored s = all_rows(j->evaluator, j->logits + c * size);
        sl_failure_keep(&j->failure, c, measure_rows(j->evaluator, &s, &found[c].value));
        sl_progress_step(j->progress, 1);
    }
}

/* Computes the scores of all combinations into *out, of *size floats. found NULL: *out gets logits, and nothing is
 * measured. */
static sl_status score_all(const sl_evaluator *evaluator, const sl_choice_set *set, sl_progress *progress,
                           sl_evaluation *found, float **out, size_t *size) {
    evaluating j = {.evaluator = evaluator, .set = set, .progress = progress};
    sl_status status;
    void *block;
    *out = NULL;
    j.combinations = sl_choice_set_size(set, evaluator->ranker->shape.layers);
    sl_failure_init(&j.failure);
    if (!sl_mul(evaluator->rows.rows * evaluator->ranker->features->outputs, j.combinations, size) ||
        *size > SIZE_MAX / sizeof(float))
        return sl_fail(SL_ENOMEM, "scores of %zu combinations do not fit; give fewer rows", j.combinations);
    SL_TRY_GOTO(sl_mem_alloc(&evaluator->allocator, evaluator->threads * sizeof *j.workers, &block), done);
    j.workers = block;
    for (size_t i = 0; i < evaluator->threads; i++)
        SL_TRY_GOTO(create_worker(evaluator, &j.workers[i]), done);
    SL_TRY_GOTO(sl_mem_alloc(&evaluator->allocator, *size * sizeof(float), &block), done);
    *out = j.logits = block;
    run_tiles(&j);
    SL_TRY_GOTO(sl_failure_pass(&j.failure), done);
    if (found && !sl_progress_cancelled(progress)) measure_all(&j, found);
    status = sl_failure_pass(&j.failure);
    if (status == SL_OK && sl_progress_cancelled(progress)) status = sl_progress_end(progress);
done:
    for (size_t i = 0; j.workers && i < evaluator->threads; i++)
        free_worker(evaluator, &j.workers[i]);
    SL_FREE_ARRAY(&evaluator->allocator, j.workers, evaluator->threads);
    return status;
}

static sl_status measure_set(const sl_evaluator *evaluator, const sl_choice_set *set, sl_progress *progress,
                             sl_evaluation *found) {
    float *scores;
    size_t size;
    sl_status status = score_all(evaluator, set, progress, found, &scores, &size);
    SL_FREE_ARRAY(&evaluator->allocator, scores, size);
    return status;
}

/* The first layer with several options; the number of layers if none has. */
static size_t first_choice(const sl_choice_set *set, size_t layers) {
    size_t l = 0;
    while (l < layers && set->counts[l] == 1)
        l++;
    return l;
}

sl_status sl_evaluator_measure(const sl_evaluator *evaluator, const sl_choice_set *set, sl_progress *progress,
                               sl_evaluation *found) {
    const size_t layers = evaluator->ranker->shape.layers,
                 most = evaluator->most_scores ? evaluator->most_scores : MOST_SCORES;
    size_t each = evaluator->rows.rows * evaluator->ranker->features->outputs, at = first_choice(set, layers);
    if (at == layers || sl_choice_set_size(set, layers) <= most / each)
        return measure_set(evaluator, set, progress, found);
    /* Measures one option of that layer at a time. Such parts share only the layers before it. */
    size_t part = sl_choice_set_size(set, layers) / set->counts[at];
    for (size_t o = 0; o < set->counts[at]; o++) {
        sl_choice_set some = *set;
        some.counts[at] = 1;
        some.options[at][0] = set->options[at][o];
        SL_TRY(sl_evaluator_measure(evaluator, &some, progress, found + o * part));
    }
    return SL_OK;
}

/* ---------------------------------------------------------------------------------------------------------------
 * The error of a difference
 * ------------------------------------------------------------------------------------------------------------- */

/* The rows outside one block, copied. */
typedef struct row_copies {
    float *scores, *labels, *weights;
    uint64_t *groups;
} row_copies;

static size_t block_of(const sl_evaluator *evaluator, size_t row) {
    uint64_t key = evaluator->groups ? evaluator->groups[row] : row;
    return (size_t)(XXH3_64bits(&key, sizeof key) % BLOCKS);
}

static size_t copy_rows_outside(const sl_evaluator *evaluator, const float *scores, size_t block, row_copies *to) {
    size_t outputs = evaluator->ranker->features->outputs, n = 0;
    for (size_t r = 0; r < evaluator->rows.rows; r++) {
        if (block_of(evaluator, r) == block) continue;
        memcpy(to->scores + n * outputs, scores + r * outputs, outputs * sizeof *scores);
        to->labels[n] = evaluator->rows.labels[r];
        if (evaluator->rows.weights) to->weights[n] = evaluator->rows.weights[r];
        if (evaluator->groups) to->groups[n] = evaluator->groups[r];
        n++;
    }
    return n;
}

/* Measures the rows outside one block. The measure is NaN for a block without rows: it leaves nothing out. */
static sl_status measure_without_block(const sl_evaluator *evaluator, const float *scores, size_t block,
                                       row_copies *room, double *out) {
    scored s = {.scores = room->scores,
                .labels = room->labels,
                .weights = evaluator->rows.weights ? room->weights : NULL,
                .groups = evaluator->groups ? room->groups : NULL,
                .rows = copy_rows_outside(evaluator, scores, block, room)};
    *out = (double)NAN;
    return s.rows && s.rows < evaluator->rows.rows ? measure_rows(evaluator, &s, out) : SL_OK;
}

static sl_status jackknife(const sl_evaluator *evaluator, const float *first, const float *second, row_copies *room,
                           double *out) {
    double differences[BLOCKS], mean = 0, sum = 0;
    size_t n = 0;
    for (size_t block = 0; block < BLOCKS; block++) {
        double a, b;
        SL_TRY(measure_without_block(evaluator, first, block, room, &a));
        SL_TRY(measure_without_block(evaluator, second, block, room, &b));
        if (isfinite(a - b)) differences[n++] = a - b;
    }
    for (size_t i = 0; i < n; i++)
        mean += differences[i] / (double)n;
    for (size_t i = 0; i < n; i++)
        sum += (differences[i] - mean) * (differences[i] - mean);
    *out = n > 1 ? sqrt(sum * (double)(n - 1) / (double)n) : (double)NAN;
    return SL_OK;
}

/* The jackknife, with memory of its own. */
static sl_status jackknife_error(const sl_evaluator *evaluator, const float *first, const float *second, double *out) {
    size_t rows = evaluator->rows.rows, outputs = evaluator->ranker->features->outputs;
    size_t bytes = rows * ((outputs + 2) * sizeof(float) + sizeof(uint64_t));
    void *block;
    SL_TRY(sl_mem_alloc(&evaluator->allocator, bytes, &block));
    row_copies room = {.groups = block};
    room.scores = (float *)(void *)(room.groups + rows);
    room.labels = room.scores + rows * outputs;
    room.weights = room.labels + rows;
    sl_status status = jackknife(evaluator, first, second, &room, out);
    sl_mem_free(&evaluator->allocator, block, bytes);
    return status;
}

sl_status sl_evaluator_compare(const sl_evaluator *evaluator, const float *first, const float *second, double values[2],
                               double *error) {
    const scored one = all_rows(evaluator, first), other = all_rows(evaluator, second);
    SL_TRY(measure_rows(evaluator, &one, &values[0]));
    SL_TRY(measure_rows(evaluator, &other, &values[1]));
    return jackknife_error(evaluator, first, second, error);
}

sl_status sl_evaluator_set_reference(sl_evaluator *evaluator, const sl_evaluated *to) {
    size_t size;
    sl_progress silent;
    sl_progress_start(&silent, NULL, NULL, 0);
    sl_status status = score_all(to->evaluator, to->set, &silent, NULL, &evaluator->reference, &size);
    if (status == SL_OK) return SL_OK;
    SL_FREE_ARRAY(&evaluator->allocator, evaluator->reference, size);
    evaluator->reference = NULL;
    return status;
}

sl_status sl_evaluator_difference_error(const sl_evaluated *first, const sl_evaluated *second, double *out) {
    const sl_evaluator *evaluator = second->evaluator;
    size_t sizes[2] = {0};
    float *scores[2] = {NULL};
    sl_evaluation found;
    sl_progress silent;
    sl_status status;
    sl_progress_start(&silent, NULL, NULL, 0);
    SL_TRY_GOTO(score_all(first->evaluator, first->set, &silent, &found, &scores[0], &sizes[0]), done);
    SL_TRY_GOTO(score_all(second->evaluator, second->set, &silent, &found, &scores[1], &sizes[1]), done);
    status = jackknife_error(evaluator, scores[0], scores[1], out);
done:
    for (size_t i = 0; i < 2; i++)
        SL_FREE_ARRAY(&evaluator->allocator, scores[i], sizes[i]);
    return status;
}
