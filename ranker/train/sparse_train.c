/* Optimiser states of the wide part and the embeddings: memory, and bytes for a checkpoint. */
#include "ranker/train/sparse_train.h"

#include "base/thread.h"

#include <string.h>

/* Floats of gradients per thread: with fewer, a thread costs more than it saves. */
#define WORK_OF_A_THREAD ((size_t)1 << 15)

/* ---------------------------------------------------------------------------------------------------------------
 * Memory
 * ------------------------------------------------------------------------------------------------------------- */

/* Floats of optimiser state per weight of a table. */
static size_t states_per_weight(const sl_features *features) {
    return features->spec->optimizer == SL_ADAM ? 2 : 1;
}

/* Floats of a table's states, of the rows of all processes. */
static size_t state_floats(const sl_features *features, size_t table) {
    return states_per_weight(features) * sl_table_floats(features, table);
}

/* Floats of one kind of a table's states, of the rows that this process steps. */
static size_t own_floats(const sl_sparse_trainer *trainer, size_t table) {
    return sl_own_rows(trainer, table) * trainer->features->tables[table].dim;
}

/* Upper bound of the table's rows that a mini-batch touches. A bag has any number of ids, so a table of bags gets room
 * for all of its rows. Collecting then cannot fail. */
static size_t table_room(const sl_features *features, size_t table, size_t max_rows) {
    size_t size = features->tables[table].size, most = 0;
    for (size_t f = 0; f < features->count; f++) {
        const sl_feature *feature = &features->features[f];
        if (feature->tensor != table || feature->form == SL_FORM_DENSE) continue;
        if (feature->form == SL_FORM_BAG || !sl_add(most, max_rows, &most)) return size;
    }
    return most < size ? most : size;
}

/* Upper bound of the rows of wide weights that a mini-batch touches. A dense feature touches the same weights in every
 * row. */
static size_t wide_room(const sl_features *features, size_t max_rows) {
    size_t most = 0;
    for (size_t f = 0; f < features->count; f++) {
        const sl_feature *feature = &features->features[f];
        if (feature->wide_at == SIZE_MAX) continue;
        size_t more = feature->form == SL_FORM_DENSE ? feature->width : max_rows;
        if (feature->form == SL_FORM_BAG || !sl_add(most, more, &most)) return features->wide_size;
    }
    return most < features->wide_size ? most : features->wide_size;
}

static sl_status make_table_state(sl_sparse_trainer *trainer, size_t table, size_t max_rows) {
    const sl_features *features = trainer->features;
    const sl_table_shape *shape = &features->tables[table];
    void *block;
    SL_TRY(sl_mem_alloc(&trainer->allocator, states_per_weight(features) * own_floats(trainer, table) * sizeof(float),
                        &block));
    trainer->table_states[table] = block;
    return sl_row_sums_create(shape->size, shape->dim, table_room(features, table, max_rows), &trainer->allocator,
                              &trainer->gradients.tables[table]);
}

static sl_status make_table_states(sl_sparse_trainer *trainer, size_t max_rows) {
    size_t count = trainer->features->table_count;
    void *block;
    SL_TRY(sl_mem_alloc(&trainer->allocator, count * sizeof *trainer->table_states, &block));
    trainer->table_states = block;
    SL_TRY(sl_mem_alloc(&trainer->allocator, count * sizeof *trainer->gradients.tables, &block));
    trainer->gradients.tables = block;
    for (size_t t = 0; t < count; t++)
        SL_TRY(make_table_state(trainer, t, max_rows));
    return SL_OK;
}

static size_t wide_state_floats(const sl_sparse_trainer *trainer) {
    return 2 * trainer->wide_count + 2 * trainer->features->outputs;
}

static sl_status make_wide_state(sl_sparse_trainer *trainer, size_t max_rows) {
    const sl_features *features = trainer->features;
    void *block;
    SL_TRY(sl_mem_alloc(&trainer->allocator, wide_state_floats(trainer) * sizeof(float), &block));
    trainer->wide_state = block;
    SL_TRY(sl_mem_alloc(&trainer->allocator, features->outputs * sizeof(float), &block));
    trainer->gradients.bias = block;
    return sl_row_sums_create(features->wide_size, features->outputs, wide_room(features, max_rows),
                              &trainer->allocator, &trainer->gradients.wide);
}

sl_status sl_sparse_trainer_create(const sl_features *features, size_t max_rows, size_t threads,
                                   const sl_row_owner *owner, const sl_allocator *allocator, sl_sparse_trainer **out) {
    *out = NULL;
    void *block;
    SL_TRY(sl_mem_alloc(allocator, sizeof(sl_sparse_trainer), &block));
    sl_sparse_trainer *trainer = block;
    trainer->allocator = *allocator;
    trainer->features = features;
    trainer->loops = sl_loops_get();
    trainer->threads = sl_thread_count(threads);
    if (owner) trainer->owner = *owner;
    trainer->wide_count = features->wide_size * features->outputs;
    sl_status status = make_wide_state(trainer, max_rows);
    if (status == SL_OK) status = make_table_states(trainer, max_rows);
    if (status == SL_OK)
        *out = trainer;
    else
        sl_sparse_trainer_free(trainer);
    return status;
}

void sl_sparse_trainer_free(sl_sparse_trainer *trainer) {
    if (!trainer) return;
    sl_allocator allocator = trainer->allocator;
    const sl_features *features = trainer->features;
    sl_sparse_gradients *gradients = &trainer->gradients;
    size_t count = features->table_count;
    for (size_t t = 0; t < count && trainer->table_states; t++)
        SL_FREE_ARRAY(&allocator, trainer->table_states[t], states_per_weight(features) * own_floats(trainer, t));
    for (size_t t = 0; t < count && gradients->tables; t++)
        sl_row_sums_free(&gradients->tables[t], &allocator);
    SL_FREE_ARRAY(&allocator, trainer->table_states, count);
    SL_FREE_ARRAY(&allocator, gradients->tables, count);
    SL_FREE_ARRAY(&allocator, trainer->wide_state, wide_state_floats(trainer));
    SL_FREE_ARRAY(&allocator, gradients->bias, features->outputs);
    sl_row_sums_free(&gradients->wide, &allocator);
    SL_FREE(&allocator, trainer);
}

size_t sl_sparse_threads(const sl_sparse_trainer *trainer, size_t floats) {
    size_t worth = floats / WORK_OF_A_THREAD + 1;
    return worth < trainer->threads ? worth : trainer->threads;
}

int sl_sparse_is_touched(const sl_sparse_trainer *trainer, size_t table, size_t row) {
    const sl_features *features = trainer->features;
    size_t dim = features->tables[table].dim;
    /* Squares only add up here, so no step makes them 0 again. */
    size_t squares = (states_per_weight(features) - 1) * own_floats(trainer, table);
    const float *state = trainer->table_states[table] + squares + row / sl_row_owners(trainer, table) * dim;
    for (size_t d = 0; d < dim; d++)
        if (state[d] != 0) return 1;
    return 0;
}

/* ---------------------------------------------------------------------------------------------------------------
 * The state, for checkpoints
 * ------------------------------------------------------------------------------------------------------------- */

size_t sl_sparse_state_at(const sl_sparse_trainer *trainer, size_t table) {
    size_t at = wide_state_floats(trainer);
    for (size_t t = 0; t < table; t++)
        at += state_floats(trainer->features, t);
    return at;
}

size_t sl_sparse_state_size(const sl_sparse_trainer *trainer) {
    return sl_sparse_state_at(trainer, trainer->features->table_count);
}

/* Where the states of own row `row` of a table lie among those of all rows, of state number `state`. */
static size_t place_of(const sl_sparse_trainer *trainer, size_t table, size_t state, size_t row) {
    const size_t dim = trainer->features->tables[table].dim, owners = sl_row_owners(trainer, table);
    const size_t first = owners > 1 ? trainer->owner.rank : 0;
    return sl_sparse_state_at(trainer, table) + state * sl_table_floats(trainer->features, table) +
           (first + row * owners) * dim;
}

void sl_sparse_state_write(const sl_sparse_trainer *trainer, float *out) {
    memcpy(out, trainer->wide_state, wide_state_floats(trainer) * sizeof *out);
    for (size_t t = 0; t < trainer->features->table_count; t++) {
        const size_t rows = sl_own_rows(trainer, t), dim = trainer->features->tables[t].dim;
        for (size_t i = 0; i < states_per_weight(trainer->features) * rows; i++)
            memcpy(out + place_of(trainer, t, i / rows, i % rows), trainer->table_states[t] + i * dim,
                   dim * sizeof *out);
    }
}

void sl_sparse_state_read(sl_sparse_trainer *trainer, const float *in) {
    memcpy(trainer->wide_state, in, wide_state_floats(trainer) * sizeof *in);
    for (size_t t = 0; t < trainer->features->table_count; t++) {
        const size_t rows = sl_own_rows(trainer, t), dim = trainer->features->tables[t].dim;
        for (size_t i = 0; i < states_per_weight(trainer->features) * rows; i++)
            memcpy(trainer->table_states[t] + i * dim, in + place_of(trainer, t, i / rows, i % rows), dim * sizeof *in);
    }
}
