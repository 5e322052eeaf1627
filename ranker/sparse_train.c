/* Steps over the weights that a batch touches. A weight's gradient is summed over the batch in the order of features
 * and rows, whatever the number of threads; then each touched weight is updated once. */
#include "base/prefetch.h"
#include "base/thread.h"
#include "ranker/sparse.h"

#include <math.h>
#include <string.h>

/* Touched rows whose weights and state are asked for ahead of their update. */
enum { SLOTS_AHEAD = 4 };
/* Floats of gradients below which a second thread costs more than it saves. */
#define WORK_OF_A_THREAD ((size_t)1 << 15)

/* Where a table's row has its gradient in this step; of an earlier step where the epoch differs. */
typedef struct row_tag {
    uint32_t epoch, slot;
} row_tag;

typedef struct table_state {
    float *state;   /* AdaGrad: sums of squares; Adam: first moments, then second ones */
    row_tag *tags;  /* one a row of the table */
    uint32_t *rows; /* of each slot */
    float *sums;    /* each slot's gradient */
    size_t slot_room;
} table_state;

struct sl_sparse_trainer {
    sl_allocator allocator;
    const sl_features *features;
    const sl_loops *loops;
    size_t threads;
    size_t wide_count; /* weights: wide_size * outputs */
    float *wide_state; /* FTRL's z, then n, of the wide weights; then both of the bias */
    float *wide_sums;  /* gradients of the step, by weight; zero between steps */
    uint32_t *wide_touched;
    uint32_t *wide_epochs; /* by row of `outputs` weights: the last step that touched it */
    uint32_t wide_epoch, epoch;
    table_state *tables;
};

/* ---------------------------------------------------------------------------------------------------------------
 * Memory
 * ------------------------------------------------------------------------------------------------------------- */

static size_t moments(const sl_features *features) {
    return features->spec->optimizer == SL_ADAM ? 2 : 1;
}

static size_t table_floats(const sl_features *features, size_t table) {
    return features->tables[table].size * features->tables[table].dim;
}

/* The most rows of a table that a batch can touch. A bag has any number of ids, so that a table of one has room for all
 * of its rows: a step cannot fail. */
static size_t slots_of(const sl_features *features, size_t table, size_t max_rows) {
    size_t size = features->tables[table].size, most = 0;
    for (size_t f = 0; f < features->count; f++) {
        const sl_feature *feature = &features->features[f];
        if (feature->tensor != table || feature->form == SL_FORM_DENSE) continue;
        if (feature->form == SL_FORM_BAG || !sl_add(most, max_rows, &most)) return size;
    }
    return most < size ? most : size;
}

static sl_status make_table(sl_sparse_trainer *trainer, size_t table, size_t max_rows) {
    const sl_table_shape *shape = &trainer->features->tables[table];
    const sl_allocator *allocator = &trainer->allocator;
    table_state *made = &trainer->tables[table];
    void *block;
    made->slot_room = slots_of(trainer->features, table, max_rows);
    SL_TRY(sl_mem_alloc(allocator, moments(trainer->features) * shape->size * shape->dim * sizeof(float), &block));
    made->state = block;
    SL_TRY(sl_mem_alloc(allocator, shape->size * sizeof(row_tag), &block));
    made->tags = block;
    SL_TRY(sl_mem_alloc(allocator, made->slot_room * sizeof *made->rows, &block));
    made->rows = block;
    SL_TRY(sl_mem_alloc(allocator, made->slot_room * shape->dim * sizeof(float), &block));
    made->sums = block;
    return SL_OK;
}

static size_t wide_state_floats(const sl_sparse_trainer *trainer) {
    return 2 * trainer->wide_count + 2 * trainer->features->outputs;
}

static sl_status make_wide(sl_sparse_trainer *trainer) {
    const sl_allocator *allocator = &trainer->allocator;
    void *block;
    SL_TRY(sl_mem_alloc(allocator, wide_state_floats(trainer) * sizeof(float), &block));
    trainer->wide_state = block;
    SL_TRY(sl_mem_alloc(allocator, trainer->wide_count * sizeof(float), &block));
    trainer->wide_sums = block;
    SL_TRY(sl_mem_alloc(allocator, trainer->features->wide_size * sizeof(uint32_t), &block));
    trainer->wide_touched = block;
    SL_TRY(sl_mem_alloc(allocator, trainer->features->wide_size * sizeof(uint32_t), &block));
    trainer->wide_epochs = block;
    return SL_OK;
}

sl_status sl_sparse_trainer_create(const sl_features *features, size_t max_rows, size_t threads,
                                   const sl_allocator *allocator, sl_sparse_trainer **out) {
    *out = NULL;
    sl_status status;
    void *block;
    SL_TRY(sl_mem_alloc(allocator, sizeof(sl_sparse_trainer), &block));
    sl_sparse_trainer *trainer = block;
    trainer->allocator = *allocator;
    trainer->features = features;
    trainer->loops = sl_loops_get();
    trainer->threads = sl_thread_count(threads);
    trainer->wide_count = features->wide_size * features->outputs;
    SL_TRY_GOTO(make_wide(trainer), fail);
    SL_TRY_GOTO(sl_mem_alloc(allocator, features->table_count * sizeof(table_state), &block), fail);
    trainer->tables = block;
    for (size_t t = 0; t < features->table_count; t++)
        SL_TRY_GOTO(make_table(trainer, t, max_rows), fail);
    *out = trainer;
    return SL_OK;
fail:
    sl_sparse_trainer_free(trainer);
    return status;
}

void sl_sparse_trainer_free(sl_sparse_trainer *trainer) {
    if (!trainer) return;
    sl_allocator allocator = trainer->allocator;
    const sl_features *features = trainer->features;
    for (size_t t = 0; t < features->table_count && trainer->tables; t++) {
        table_state *table = &trainer->tables[t];
        sl_mem_free(&allocator, table->state, moments(features) * table_floats(features, t) * sizeof(float));
        sl_mem_free(&allocator, table->tags, features->tables[t].size * sizeof(row_tag));
        sl_mem_free(&allocator, table->rows, table->slot_room * sizeof *table->rows);
        sl_mem_free(&allocator, table->sums, table->slot_room * features->tables[t].dim * sizeof(float));
    }
    sl_mem_free(&allocator, trainer->tables, features->table_count * sizeof(table_state));
    sl_mem_free(&allocator, trainer->wide_state, wide_state_floats(trainer) * sizeof(float));
    sl_mem_free(&allocator, trainer->wide_sums, trainer->wide_count * sizeof(float));
    sl_mem_free(&allocator, trainer->wide_touched, features->wide_size * sizeof(uint32_t));
    sl_mem_free(&allocator, trainer->wide_epochs, features->wide_size * sizeof(uint32_t));
    sl_mem_free(&allocator, trainer, sizeof *trainer);
}

/* ---------------------------------------------------------------------------------------------------------------
 * The wide part
 * ------------------------------------------------------------------------------------------------------------- */

/* One weight's step of FTRL-proximal (McMahan et al. 2013, Algorithm 1). A schedule's share of the rate goes into what
 * z takes of the gradient and not into the rate that z is divided by: that would draw weights back to 0 as it falls. A
 * weight that did not begin at 0 gets the z that stands for it. */
typedef struct ftrl {
    float rate, beta, l1, l2;
    float share; /* of the rate, by the schedule */
} ftrl;

static void ftrl_step(const ftrl *by, float *weight, float *z, float *n, float gradient) {
    float w = *weight, squared = gradient * gradient;
    if (*n == 0 && *z == 0 && w != 0) *z = -w * (by->beta / by->rate + by->l2) - copysignf(by->l1, w);
    float root_before = sqrtf(*n), root = sqrtf(*n + squared);
    /* (root - root_before) / rate, without the cancellation. */
    float sigma = squared > 0 ? squared / ((root + root_before) * by->rate) : 0;
    *z += by->share * gradient - sigma * w;
    *n += squared;
    if (fabsf(*z) <= by->l1)
        *weight = 0;
    else
        *weight = (copysignf(by->l1, *z) - *z) / ((by->beta + root) / by->rate + by->l2);
}

static inline size_t touch(sl_sparse_trainer *trainer, size_t count, size_t row) {
    if (trainer->wide_epochs[row] == trainer->wide_epoch) return count;
    trainer->wide_epochs[row] = trainer->wide_epoch;
    trainer->wide_touched[count] = (uint32_t)row;
    return count + 1;
}

/* Adds x times the row's gradient to the sums of the weights of `row`. */
static inline size_t add_gradient(sl_sparse_trainer *trainer, size_t count, size_t row, float x,
                                  const float *gradient) {
    size_t outputs = trainer->features->outputs;
    float *sums = trainer->wide_sums + row * outputs;
    for (size_t o = 0; o < outputs; o++)
        sums[o] += x * gradient[o];
    return touch(trainer, count, row);
}

/* The gradient of one row; the number of weight rows touched so far is passed through. */
static size_t add_row(sl_sparse_trainer *trainer, size_t count, const sl_encoded *rows, size_t r,
                      const float *gradient) {
    const sl_features *features = trainer->features;
    for (size_t f = 0; f < features->count; f++) {
        const sl_feature *feature = &features->features[f];
        size_t at = feature->wide_at;
        if (at == SIZE_MAX) continue;
        if (feature->form == SL_FORM_DENSE) {
            const float *x = rows->dense + r * features->dense_width + feature->at;
            for (size_t i = 0; i < feature->width; i++)
                count = add_gradient(trainer, count, at + i, x[i], gradient);
        } else if (feature->form == SL_FORM_ID) {
            count = add_gradient(trainer, count, at + rows->ids[r * features->id_count + feature->at], 1, gradient);
        } else {
            const uint32_t *start = rows->bag_start + r * features->bag_count + feature->at;
            for (uint32_t i = start[0]; i < start[1]; i++)
                count = add_gradient(trainer, count, at + rows->bag_ids[i], 1, gradient);
        }
    }
    return count;
}

static void next_epoch(uint32_t *epoch, void *tags, size_t bytes) {
    if (++*epoch) return;
    /* Back at 0: what earlier steps left must not look like this one's. */
    memset(tags, 0, bytes);
    *epoch = 1;
}

static void bias_step(sl_sparse_trainer *trainer, const ftrl *by, float *bias, const float *gradient, size_t rows) {
    size_t outputs = trainer->features->outputs;
    float *z = trainer->wide_state + 2 * trainer->wide_count, *n = z + outputs;
    ftrl free = *by;
    free.l1 = free.l2 = 0;
    for (size_t o = 0; o < outputs; o++) {
        double sum = 0;
        for (size_t r = 0; r < rows; r++)
            sum += gradient[r * outputs + o];
        ftrl_step(&free, &bias[o], &z[o], &n[o], (float)sum);
    }
}

void sl_wide_step(sl_sparse_trainer *trainer, float *wide, float *bias, const sl_encoded *rows, const float *gradient,
                  double rate) {
    const sl_features *features = trainer->features;
    const sl_spec *spec = features->spec;
    size_t outputs = features->outputs, count = 0;
    ftrl by = {(float)spec->wide_rate, (float)spec->wide_beta, (float)spec->wide_l1, (float)spec->wide_l2,
               (float)(rate / spec->wide_rate)};
    next_epoch(&trainer->wide_epoch, trainer->wide_epochs, features->wide_size * sizeof(uint32_t));
    for (size_t r = 0; r < rows->rows; r++)
        count = add_row(trainer, count, rows, r, gradient + r * outputs);
    float *z = trainer->wide_state, *n = z + trainer->wide_count;
    for (size_t i = 0; i < count; i++) {
        size_t first = trainer->wide_touched[i] * outputs;
        if (i + SLOTS_AHEAD < count) {
            size_t ahead = trainer->wide_touched[i + SLOTS_AHEAD] * outputs;
            sl_prefetch(wide + ahead, 1);
            sl_prefetch(z + ahead, 1);
            sl_prefetch(n + ahead, 1);
        }
        for (size_t w = first; w < first + outputs; w++) {
            ftrl_step(&by, &wide[w], &z[w], &n[w], trainer->wide_sums[w]);
            trainer->wide_sums[w] = 0;
        }
    }
    bias_step(trainer, &by, bias, gradient, rows->rows);
}

/* ---------------------------------------------------------------------------------------------------------------
 * Embeddings
 * ------------------------------------------------------------------------------------------------------------- */

/* One step over one table. */
typedef struct table_step {
    const sl_sparse_trainer *trainer;
    table_state *table;
    size_t dim;
    uint32_t epoch;
    uint32_t slots; /* taken so far */
} table_step;

/* The sums of a table's row; *fresh where this is its first gradient, and the sums hold anything. */
static inline float *sums_of(table_step *step, uint32_t row, int *fresh) {
    row_tag *tag = &step->table->tags[row];
    *fresh = tag->epoch != step->epoch;
    if (*fresh) {
        *tag = (row_tag){step->epoch, step->slots};
        step->table->rows[step->slots++] = row;
    }
    return step->table->sums + (size_t)tag->slot * step->dim;
}

static inline void add_to_row(table_step *step, uint32_t row, const float *gradient, float factor) {
    int fresh;
    float *sums = sums_of(step, row, &fresh);
    if (fresh) {
        for (size_t d = 0; d < step->dim; d++)
            sums[d] = gradient[d] * factor;
    } else {
        step->trainer->loops->add_scaled(sums, gradient, factor, step->dim);
    }
}

/* Each dimension's gradient goes to the first id that had the largest value. */
static void add_max(table_step *step, const uint32_t *ids, size_t count, const float *table, const float *gradient) {
    for (size_t d = 0; d < step->dim; d++) {
        size_t best = 0;
        for (size_t i = 1; i < count; i++)
            if (table[(size_t)ids[i] * step->dim + d] > table[(size_t)ids[best] * step->dim + d]) best = i;
        int fresh;
        float *sums = sums_of(step, ids[best], &fresh);
        if (fresh) memset(sums, 0, step->dim * sizeof *sums);
        sums[d] += gradient[d];
    }
}

static void add_feature(table_step *step, const sl_feature *feature, const float *table, const sl_encoded *rows,
                        const float *input_gradient) {
    const sl_features *features = step->trainer->features;
    for (size_t r = 0; r < rows->rows; r++) {
        const float *gradient = input_gradient + r * features->deep_inputs + feature->deep_at;
        if (feature->form == SL_FORM_ID) {
            add_to_row(step, rows->ids[r * features->id_count + feature->at], gradient, 1);
            continue;
        }
        const uint32_t *start = rows->bag_start + r * features->bag_count + feature->at;
        const uint32_t *ids = rows->bag_ids + start[0];
        size_t count = start[1] - start[0];
        if (count && feature->spec->combine == SL_COMBINE_MAX) {
            add_max(step, ids, count, table, gradient);
            continue;
        }
        float factor = feature->spec->combine == SL_COMBINE_MEAN ? 1.0f / (float)count : 1;
        for (size_t i = 0; i < count; i++)
            add_to_row(step, ids[i], gradient, factor);
    }
}

static void update_rows(const table_step *step, const sl_step *by, size_t table_floats, float *weights) {
    const sl_loops *loops = step->trainer->loops;
    int adam = step->trainer->features->spec->optimizer == SL_ADAM;
    size_t dim = step->dim;
    float *state = step->table->state;
    for (size_t s = 0; s < step->slots; s++) {
        if (s + SLOTS_AHEAD < step->slots) {
            size_t ahead = step->table->rows[s + SLOTS_AHEAD] * dim;
            sl_prefetch(weights + ahead, dim * sizeof(float));
            sl_prefetch(state + ahead, dim * sizeof(float));
            if (adam) sl_prefetch(state + table_floats + ahead, dim * sizeof(float));
        }
        size_t at = step->table->rows[s] * dim;
        const float *gradient = step->table->sums + s * dim;
        if (adam)
            loops->adam(weights + at, state + at, state + table_floats + at, gradient, dim, by);
        else
            loops->adagrad(weights + at, state + at, gradient, dim, by);
    }
}

static void step_table(sl_sparse_trainer *trainer, size_t table, float *weights, const sl_encoded *rows,
                       const float *input_gradient, const sl_step *by) {
    const sl_features *features = trainer->features;
    table_step step = {trainer, &trainer->tables[table], features->tables[table].dim, trainer->epoch, 0};
    for (size_t f = 0; f < features->count; f++) {
        const sl_feature *feature = &features->features[f];
        if (feature->tensor == table && feature->deep_at != SIZE_MAX && feature->form != SL_FORM_DENSE)
            add_feature(&step, feature, weights, rows, input_gradient);
    }
    update_rows(&step, by, table_floats(features, table), weights);
}

void sl_embedding_step(sl_sparse_trainer *trainer, float *const *embeddings, const sl_encoded *rows,
                       const float *input_gradient, const sl_step *step) {
    const sl_features *features = trainer->features;
    sl_step by = *step;
    by.l2 = 0; /* it decays dense weights alone: a row that is not touched would be spared */
    if (!++trainer->epoch) {
        for (size_t t = 0; t < features->table_count; t++)
            memset(trainer->tables[t].tags, 0, features->tables[t].size * sizeof(row_tag));
        trainer->epoch = 1;
    }
    size_t worth = rows->rows * features->deep_inputs / WORK_OF_A_THREAD + 1;
    size_t threads = worth < trainer->threads ? worth : trainer->threads;
    if (threads <= 1) {
        for (size_t t = 0; t < features->table_count; t++)
            step_table(trainer, t, embeddings[t], rows, input_gradient, &by);
        return;
    }
#pragma omp parallel for num_threads((int)threads) schedule(dynamic, 1)
    for (size_t t = 0; t < features->table_count; t++)
        step_table(trainer, t, embeddings[t], rows, input_gradient, &by);
}

int sl_sparse_is_touched(const sl_sparse_trainer *trainer, size_t table, size_t row) {
    const sl_features *features = trainer->features;
    size_t dim = features->tables[table].dim;
    /* Sums of squares, or second moments: nothing takes them back to 0. */
    size_t squares = (moments(features) - 1) * table_floats(features, table);
    const float *state = trainer->tables[table].state + squares + row * dim;
    for (size_t d = 0; d < dim; d++)
        if (state[d] != 0) return 1;
    return 0;
}

/* ---------------------------------------------------------------------------------------------------------------
 * The state, for checkpoints
 * ------------------------------------------------------------------------------------------------------------- */

size_t sl_sparse_state_size(const sl_sparse_trainer *trainer) {
    size_t size = wide_state_floats(trainer);
    for (size_t t = 0; t < trainer->features->table_count; t++)
        size += moments(trainer->features) * table_floats(trainer->features, t);
    return size;
}

void sl_sparse_state_write(const sl_sparse_trainer *trainer, float *out) {
    size_t size = wide_state_floats(trainer);
    memcpy(out, trainer->wide_state, size * sizeof *out);
    for (size_t t = 0; t < trainer->features->table_count; t++) {
        out += size;
        size = moments(trainer->features) * table_floats(trainer->features, t);
        memcpy(out, trainer->tables[t].state, size * sizeof *out);
    }
}

void sl_sparse_state_read(sl_sparse_trainer *trainer, const float *in) {
    size_t size = wide_state_floats(trainer);
    memcpy(trainer->wide_state, in, size * sizeof *in);
    for (size_t t = 0; t < trainer->features->table_count; t++) {
        in += size;
        size = moments(trainer->features) * table_floats(trainer->features, t);
        memcpy(trainer->tables[t].state, in, size * sizeof *in);
    }
}
