/* Embeddings and the wide part: reads, and FTRL, AdaGrad and Adam on the touched weights, against their definitions in
 * double arithmetic. */
#include "base/memory.h"
#include "base/random.h"
#include "ranker/features/encode.h"
#include "ranker/model/sparse_forward.h"
#include "ranker/train/sparse_train.h"
#include "tests/support/check_main.h"
#include "tests/support/faults.h"
#include "tests/support/indexes.h"
#include "tests/support/net_reference.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    FEATURES = 7,
    TABLES = 4,
    DENSE = 2,
    IDS = 3,
    BAGS = 3,
    DEEP = 2 + 5 + 8 + 5 + 6 + 3,
    WIDE = 2 + 13 + 13 + 9 + 20
};
#define ALL_SIDES 7u

/* Every form, side and combination. Features 1 and 3 share a table; 6 is a cross, only in the wide part. */
typedef struct model {
    sl_features features;
    sl_spec spec;
    sl_feature feature[FEATURES];
    sl_feature_spec feature_spec[FEATURES];
    sl_table_shape shapes[TABLES];
    float *tables[TABLES];
    float *wide, *bias;
} model;

static const struct {
    sl_feature_form form;
    sl_side side;
    sl_combine combine;
    size_t at, width, size, dim, tensor, wide_at, deep_at;
} plan[FEATURES] = {
    {SL_FORM_DENSE, SL_SIDE_USER, 0, 0, 2, 0, 0, SIZE_MAX, 0, 0},
    {SL_FORM_ID, SL_SIDE_USER, 0, 0, 0, 13, 5, 0, 2, 2},
    {SL_FORM_ID, SL_SIDE_ITEM, 0, 1, 0, 7, 8, 1, SIZE_MAX, 7},
    {SL_FORM_BAG, SL_SIDE_ITEM, SL_COMBINE_MEAN, 0, 0, 13, 5, 0, 15, 15},
    {SL_FORM_BAG, SL_SIDE_ITEM, SL_COMBINE_MAX, 1, 0, 9, 6, 2, SIZE_MAX, 20},
    {SL_FORM_BAG, SL_SIDE_PAIR, SL_COMBINE_SUM, 2, 0, 9, 3, 3, 28, 26},
    {SL_FORM_ID, SL_SIDE_PAIR, 0, 2, 0, 20, 0, SIZE_MAX, 37, SIZE_MAX},
};

static void make_model(model *m, size_t outputs, sl_optimizer optimizer) {
    memset(m, 0, sizeof *m);
    m->spec = (sl_spec){.optimizer = optimizer, .wide_rate = 0.1, .wide_beta = 1, .wide_l1 = 0.3, .wide_l2 = 0.02};
    for (size_t f = 0; f < FEATURES; f++) {
        m->feature_spec[f].combine = plan[f].combine;
        m->feature[f] = (sl_feature){.spec = &m->feature_spec[f],
                                     .form = plan[f].form,
                                     .side = plan[f].side,
                                     .at = plan[f].at,
                                     .width = plan[f].width,
                                     .size = plan[f].size,
                                     .dim = plan[f].dim,
                                     .tensor = plan[f].tensor,
                                     .wide_at = plan[f].wide_at,
                                     .deep_at = plan[f].deep_at};
        if (plan[f].tensor != SIZE_MAX) m->shapes[plan[f].tensor] = (sl_table_shape){f, plan[f].size, plan[f].dim};
    }
    m->features = (sl_features){.allocator = sl_allocator_of(NULL),
                                .spec = &m->spec,
                                .features = m->feature,
                                .count = FEATURES,
                                .dense_width = DENSE,
                                .id_count = IDS,
                                .bag_count = BAGS,
                                .deep_side = {0, 7, 26, DEEP},
                                .wide_size = WIDE,
                                .deep_inputs = DEEP,
                                .tables = m->shapes,
                                .table_count = TABLES,
                                .outputs = outputs};
    ck_assert_int_eq(sl_features_list(&m->features), SL_OK);
    for (size_t t = 0; t < TABLES; t++)
        m->tables[t] = reference_numbers(m->shapes[t].size * m->shapes[t].dim, 1, 20 + t);
    m->wide = reference_numbers(WIDE * outputs, 1, 30);
    m->bias = reference_numbers(outputs, 0, 31);
}

static void free_model(model *m) {
    sl_features_unlist(&m->features);
    for (size_t t = 0; t < TABLES; t++)
        free(m->tables[t]);
    free(m->wide);
    free(m->bias);
}

/* Random rows with few ids, so mini-batches touch many ids twice. Bags have 0 to 4 ids, with repetitions. */
typedef struct minibatch {
    sl_encoded rows;
    float *dense;
    uint32_t *ids, *bag_start, *bag_ids;
} minibatch;

static void make_minibatch(minibatch *b, size_t rows, uint64_t seed) {
    b->dense = reference_numbers(rows * DENSE, 1, seed);
    b->ids = malloc(rows * IDS * sizeof *b->ids);
    b->bag_start = malloc((rows * BAGS + 1) * sizeof *b->bag_start);
    b->bag_ids = malloc(rows * BAGS * 4 * sizeof *b->bag_ids);
    uint64_t drawn = 0;
    uint32_t at = 0;
    for (size_t r = 0; r < rows; r++) {
        for (size_t f = 0; f < FEATURES; f++)
            if (plan[f].form == SL_FORM_ID)
                b->ids[r * IDS + plan[f].at] = (uint32_t)(sl_random_at(seed, drawn++) % plan[f].size);
        for (size_t f = 0; f < FEATURES; f++) {
            if (plan[f].form != SL_FORM_BAG) continue;
            b->bag_start[r * BAGS + plan[f].at] = at;
            for (uint64_t n = sl_random_at(seed, drawn++) % 5; n; n--)
                b->bag_ids[at++] = (uint32_t)(sl_random_at(seed, drawn++) % plan[f].size);
        }
    }
    b->bag_start[rows * BAGS] = at;
    b->rows = (sl_encoded){sizeof b->rows, rows, b->dense, b->ids, b->bag_start, b->bag_ids};
}

static void free_minibatch(minibatch *b) {
    free(b->dense);
    free(b->ids);
    free(b->bag_start);
    free(b->bag_ids);
}

/* The ids of a feature in a row. */
static size_t ids_of(const minibatch *b, size_t r, size_t f, const uint32_t **ids) {
    if (plan[f].form == SL_FORM_ID) {
        *ids = b->ids + r * IDS + plan[f].at;
        return 1;
    }
    const uint32_t *start = b->bag_start + r * BAGS + plan[f].at;
    *ids = b->bag_ids + start[0];
    return start[1] - start[0];
}

/* Returns which id has the largest value in dimension d; of equal ones the first. */
static size_t largest(const uint32_t *ids, size_t n, const double *table, size_t dim, size_t d) {
    size_t best = 0;
    for (size_t i = 1; i < n; i++)
        if (table[ids[i] * dim + d] > table[ids[best] * dim + d]) best = i;
    return best;
}

static void reference_inputs(const minibatch *b, double *const *tables, size_t r, double *out) {
    const uint32_t *ids;
    for (size_t f = 0; f < FEATURES; f++) {
        if (plan[f].deep_at == SIZE_MAX) continue;
        double *to = out + plan[f].deep_at;
        for (size_t i = 0; i < plan[f].width; i++)
            to[i] = (double)b->dense[r * DENSE + plan[f].at + i];
        if (plan[f].form == SL_FORM_DENSE) continue;
        size_t n = ids_of(b, r, f, &ids), dim = plan[f].dim;
        const double *table = tables[plan[f].tensor];
        for (size_t d = 0; d < dim; d++) {
            to[d] = 0;
            if (n == 0) continue;
            if (plan[f].combine == SL_COMBINE_MAX) {
                to[d] = table[ids[largest(ids, n, table, dim, d)] * dim + d];
                continue;
            }
            for (size_t i = 0; i < n; i++)
                to[d] += table[ids[i] * dim + d] / (plan[f].combine == SL_COMBINE_MEAN ? (double)n : 1);
        }
    }
}

static void double_tables(const model *m, double **out) {
    for (size_t t = 0; t < TABLES; t++)
        out[t] = reference_doubles(m->tables[t], m->shapes[t].size * m->shapes[t].dim);
}

static void free_tables(double **tables) {
    for (size_t t = 0; t < TABLES; t++)
        free(tables[t]);
}

/* ---------------------------------------------------------------------------------------------------------------
 * Reading
 * ------------------------------------------------------------------------------------------------------------- */

START_TEST(inputs_are_gathered) {
    model m;
    minibatch b;
    enum { ROWS = 23 };
    double expected[DEEP], *tables[TABLES];
    float whole[ROWS * DEEP], part[ROWS * (DEEP + 3)];
    make_model(&m, 1, SL_ADAGRAD);
    make_minibatch(&b, ROWS, 1);
    double_tables(&m, tables);
    const float *const *embeddings = (const float *const *)m.tables;
    sl_deep_inputs(&m.features, embeddings, NULL, &b.rows, ALL_SIDES, DEEP, whole);
    for (size_t r = 0; r < ROWS; r++) {
        reference_inputs(&b, tables, r, expected);
        for (size_t i = 0; i < DEEP; i++)
            ck_assert_double_eq_tol((double)whole[r * DEEP + i], expected[i], 1e-6);
    }
    /* Each side alone, for some rows, with a larger stride: writes its columns and nothing else. */
    for (size_t side = 0; side < 3; side++) {
        size_t first = m.features.deep_side[side], width = m.features.deep_side[side + 1] - first;
        for (size_t i = 0; i < ROWS * (DEEP + 3); i++)
            part[i] = -5;
        sl_encoded some = sl_encoded_part(&m.features, &b.rows, 4, 9);
        sl_deep_inputs(&m.features, embeddings, NULL, &some, 1u << side, width + 3, part);
        for (size_t r = 0; r < 9; r++)
            for (size_t i = 0; i < width + 3; i++)
                ck_assert(part[r * (width + 3) + i] == (i < width ? whole[(r + 4) * DEEP + first + i] : -5));
        ck_assert(part[9 * (width + 3)] == -5);
    }
    free_tables(tables);
    free_minibatch(&b);
    free_model(&m);
}
END_TEST

/* Coded tables give the same as their decoded floats: single ids, and bags of every kind. */
START_TEST(coded_inputs_are_the_decoded) {
    static const sl_table_type types[][TABLES] = {{SL_TABLE_I8, SL_TABLE_I8, SL_TABLE_I8, SL_TABLE_I8},
                                                  {SL_TABLE_I4, SL_TABLE_I4, SL_TABLE_I4, SL_TABLE_I4},
                                                  {SL_TABLE_I4, SL_TABLE_F32, SL_TABLE_I8, SL_TABLE_I4}};
    enum { ROWS = 23 };
    model m;
    minibatch b;
    float coded[ROWS * DEEP], wanted[ROWS * DEEP];
    const float *floats[TABLES];
    sl_table_codes codes[TABLES] = {0};
    uint8_t *rows[TABLES] = {0};
    make_model(&m, 1, SL_ADAGRAD);
    make_minibatch(&b, ROWS, 7);
    for (size_t t = 0; t < TABLES; t++) {
        const sl_table_shape *s = &m.shapes[t];
        size_t bytes = sl_row_bytes(types[_i][t], s->dim);
        floats[t] = types[_i][t] == SL_TABLE_F32 ? m.tables[t] : NULL;
        if (floats[t]) continue;
        rows[t] = malloc(s->size * bytes + SL_CODES_SLACK);
        ck_assert_int_eq(sl_table_codes_fit(m.tables[t], s->size, s->dim, types[_i][t], &codes[t]), SL_OK);
        sl_table_codes_encode(&codes[t], m.tables[t], s->size, s->dim, SL_ROW_MSE, rows[t]);
        for (size_t r = 0; r < s->size; r++)
            sl_row_decode(sl_loops_get(), &codes[t], rows[t] + r * bytes, s->dim, SL_DECODE_SET,
                          m.tables[t] + r * s->dim);
    }
    const sl_coded_tables tables = {.codes = codes, .rows = rows};
    sl_deep_inputs(&m.features, floats, &tables, &b.rows, ALL_SIDES, DEEP, coded);
    sl_deep_inputs(&m.features, (const float *const *)m.tables, NULL, &b.rows, ALL_SIDES, DEEP, wanted);
    for (size_t i = 0; i < ROWS * DEEP; i++)
        ck_assert_float_eq_tol(coded[i], wanted[i], 1e-6f);
    for (size_t t = 0; t < TABLES; t++)
        free(rows[t]);
    free_minibatch(&b);
    free_model(&m);
}
END_TEST

/* Adds x at the wide weights of row r. */
static void wide_terms(const minibatch *b, size_t r, unsigned sides, double *terms) {
    const uint32_t *ids;
    for (size_t f = 0; f < FEATURES; f++) {
        if (plan[f].wide_at == SIZE_MAX || !(sides >> plan[f].side & 1)) continue;
        for (size_t i = 0; i < plan[f].width; i++)
            terms[plan[f].wide_at + i] += (double)b->dense[r * DENSE + plan[f].at + i];
        if (plan[f].form == SL_FORM_DENSE) continue;
        size_t n = ids_of(b, r, f, &ids);
        for (size_t i = 0; i < n; i++)
            terms[plan[f].wide_at + ids[i]] += 1;
    }
}

START_TEST(wide_sums_are_sums) {
    enum { ROWS = 19, OUTPUTS = 3 };
    model m;
    minibatch b;
    make_model(&m, OUTPUTS, SL_ADAGRAD);
    make_minibatch(&b, ROWS, 2);
    for (unsigned sides = 0; sides < 8; sides++) {
        float out[ROWS * OUTPUTS];
        for (size_t i = 0; i < ROWS * OUTPUTS; i++)
            out[i] = 0.5f;
        sl_encoded some = sl_encoded_part(&m.features, &b.rows, 2, ROWS - 2);
        sl_wide_sums(&m.features, m.wide, &some, sides, out);
        for (size_t r = 0; r < ROWS - 2; r++) {
            double terms[WIDE] = {0};
            wide_terms(&b, r + 2, sides, terms);
            for (size_t o = 0; o < OUTPUTS; o++) {
                double sum = 0.5;
                for (size_t w = 0; w < WIDE; w++)
                    sum += terms[w] * (double)m.wide[w * OUTPUTS + o];
                ck_assert_double_eq_tol((double)out[r * OUTPUTS + o], sum, 1e-5);
            }
        }
        ck_assert(out[(ROWS - 2) * OUTPUTS] == 0.5f);
    }
    free_minibatch(&b);
    free_model(&m);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * The wide part's steps
 * ------------------------------------------------------------------------------------------------------------- */

/* FTRL as in McMahan et al. 2013, with sigma as written there. */
typedef struct ftrl {
    double w, z, n;
} ftrl;

static void ftrl_step(ftrl *at, double g, double share, const sl_spec *spec, double l1, double l2) {
    double sigma = (sqrt(at->n + g * g) - sqrt(at->n)) / spec->wide_rate;
    at->z += share * g - sigma * at->w;
    at->n += g * g;
    double shrunk = at->z > 0 ? at->z - l1 : at->z + l1;
    at->w = fabs(at->z) <= l1 ? 0 : -shrunk / ((spec->wide_beta + sqrt(at->n)) / spec->wide_rate + l2);
}

static sl_sparse_trainer *make_trainer(const model *m, size_t rows, size_t threads, const sl_allocator *allocator) {
    sl_allocator own = sl_allocator_of(allocator);
    sl_sparse_trainer *trainer;
    ck_ok(sl_sparse_trainer_create(&m->features, rows, threads, NULL, &own, &trainer));
    return trainer;
}

static void wide_step(sl_sparse_trainer *trainer, model *m, const sl_encoded *rows, const float *gradient,
                      double rate) {
    sl_wide_collect(trainer, rows, gradient);
    sl_wide_apply(trainer, m->wide, m->bias, rate);
}

/* Steps from zero weights, with a schedule that falls at the end. */
START_TEST(ftrl_is_mcmahans) {
    enum { ROWS = 31, STEPS = 12 };
    size_t outputs = _i ? 3 : 1;
    model m;
    make_model(&m, outputs, SL_ADAGRAD);
    memset(m.wide, 0, WIDE * outputs * sizeof(float));
    sl_sparse_trainer *trainer = make_trainer(&m, ROWS, 1, NULL);
    ftrl *expected = calloc(WIDE * outputs, sizeof *expected), bias[3] = {{0, 0, 0}};
    size_t zero = 0;
    for (size_t step = 0; step < STEPS; step++) {
        minibatch b;
        make_minibatch(&b, ROWS, 40 + step);
        double share = step < 8 ? 1 : 0.25;
        float *gradient = reference_numbers(ROWS * outputs, 0.3, 60 + step);
        double *sums = calloc(WIDE * outputs, sizeof *sums), totals[3] = {0};
        int touched[WIDE] = {0};
        for (size_t r = 0; r < ROWS; r++) {
            double terms[WIDE] = {0};
            wide_terms(&b, r, ALL_SIDES, terms);
            for (size_t o = 0; o < outputs; o++) {
                for (size_t w = 0; w < WIDE; w++)
                    sums[w * outputs + o] += terms[w] * (double)gradient[r * outputs + o];
                totals[o] += (double)gradient[r * outputs + o];
            }
            for (size_t w = 0; w < WIDE; w++)
                touched[w] |= terms[w] != 0;
        }
        wide_step(trainer, &m, &b.rows, gradient, share * m.spec.wide_rate);
        for (size_t w = 0; w < WIDE * outputs; w++)
            if (touched[w / outputs]) ftrl_step(&expected[w], sums[w], share, &m.spec, m.spec.wide_l1, m.spec.wide_l2);
        for (size_t o = 0; o < outputs; o++) {
            ftrl_step(&bias[o], totals[o], share, &m.spec, 0, 0);
            ck_assert_double_eq_tol((double)m.bias[o], bias[o].w, 1e-5);
        }
        for (size_t w = 0; w < WIDE * outputs; w++)
            ck_assert_double_eq_tol((double)m.wide[w], expected[w].w, 1e-5);
        free(gradient);
        free(sums);
        free_minibatch(&b);
    }
    /* L1 left some touched weights at exactly 0, but not all. */
    for (size_t w = 0; w < WIDE * outputs; w++)
        zero += m.wide[w] == 0 && expected[w].n > 0;
    ck_assert_uint_gt(zero, 0);
    ck_assert_uint_lt(zero, WIDE * outputs / 2);
    sl_sparse_trainer_free(trainer);
    free(expected);
    free_model(&m);
}
END_TEST

/* A large L1 empties the wide part. The bias has no L1 and goes on. */
START_TEST(l1_empties) {
    model m;
    minibatch b;
    make_model(&m, 1, SL_ADAGRAD);
    m.spec.wide_l1 = 1e6;
    make_minibatch(&b, 20, 5);
    float *gradient = reference_numbers(20, 1, 6);
    sl_sparse_trainer *trainer = make_trainer(&m, 20, 1, NULL);
    memset(m.wide, 0, WIDE * sizeof(float));
    for (size_t step = 0; step < 5; step++)
        wide_step(trainer, &m, &b.rows, gradient, m.spec.wide_rate);
    for (size_t w = 0; w < WIDE; w++)
        ck_assert(m.wide[w] == 0);
    ck_assert(m.bias[0] != 0);
    sl_sparse_trainer_free(trainer);
    free(gradient);
    free_minibatch(&b);
    free_model(&m);
}
END_TEST

/* Weights that do not begin at 0 move from their values, not from 0. Untouched weights stay, and at rate 0 all stay. */
START_TEST(ftrl_begins_where_the_weights_are) {
    model m;
    minibatch b;
    make_model(&m, 1, SL_ADAGRAD);
    make_minibatch(&b, 1, 5);
    m.bias[0] = 2;
    float before[WIDE], gradient[1] = {1e-3f};
    double terms[WIDE] = {0};
    wide_terms(&b, 0, ALL_SIDES, terms);
    memcpy(before, m.wide, sizeof before);
    sl_sparse_trainer *trainer = make_trainer(&m, 1, 1, NULL);
    wide_step(trainer, &m, &b.rows, gradient, m.spec.wide_rate);
    for (size_t w = 0; w < WIDE; w++) {
        if (terms[w] == 0) ck_assert(m.wide[w] == before[w]);
        ck_assert_double_eq_tol((double)m.wide[w], (double)before[w], 1e-3);
    }
    ck_assert_double_eq_tol((double)m.bias[0], 2, 1e-3);
    ck_assert(m.bias[0] < 2);
    memcpy(before, m.wide, sizeof before);
    wide_step(trainer, &m, &b.rows, gradient, 0);
    for (size_t w = 0; w < WIDE; w++)
        ck_assert_double_eq_tol((double)m.wide[w], (double)before[w], 1e-6);
    sl_sparse_trainer_free(trainer);
    free_minibatch(&b);
    free_model(&m);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Embeddings' steps
 * ------------------------------------------------------------------------------------------------------------- */

/* A loss with a given gradient by the inputs. */
static double loss_of(const minibatch *b, double *const *tables, const float *gradient) {
    double inputs[DEEP], loss = 0;
    for (size_t r = 0; r < b->rows.rows; r++) {
        reference_inputs(b, tables, r, inputs);
        for (size_t i = 0; i < DEEP; i++)
            loss += inputs[i] * (double)gradient[r * DEEP + i];
    }
    return loss;
}

static int row_is_touched(const minibatch *b, size_t table, uint32_t row) {
    const uint32_t *ids;
    for (size_t r = 0; r < b->rows.rows; r++)
        for (size_t f = 0; f < FEATURES; f++) {
            if (plan[f].tensor != table) continue;
            size_t n = ids_of(b, r, f, &ids);
            for (size_t i = 0; i < n; i++)
                if (ids[i] == row) return 1;
        }
    return 0;
}

static void reference_update(double *w, double *state, double g, const sl_step *step, int adam) {
    if (!adam) {
        state[0] += g * g;
        *w -= (double)step->rate * g / (sqrt(state[0]) + (double)step->epsilon);
        return;
    }
    state[0] = 0.9 * state[0] + 0.1 * g;
    state[1] = 0.999 * state[1] + 0.001 * g * g;
    *w -= (double)step->rate * state[0] * (double)step->correct1 /
          (sqrt(state[1] * (double)step->correct2) + (double)step->epsilon);
}

/* Compares one step with tables in double arithmetic and gradients by finite differences. A max bag touches only rows
 * with the largest value of a dimension, so the test compares rows with a gradient. */
static void reference_step(const minibatch *b, const model *m, double **tables, double **state, const float *gradient,
                           const sl_step *step, int adam) {
    const double h = 1e-4;
    double *next[TABLES];
    double_tables(m, next);
    for (size_t t = 0; t < TABLES; t++) {
        size_t dim = m->shapes[t].dim;
        for (size_t row = 0; row < m->shapes[t].size; row++) {
            int touched = row_is_touched(b, t, (uint32_t)row), any = 0;
            double g[8];
            for (size_t d = 0; d < dim; d++) {
                double *w = &tables[t][row * dim + d], at = *w;
                *w = at + h;
                double up = loss_of(b, tables, gradient);
                *w = at - h;
                g[d] = touched ? (up - loss_of(b, tables, gradient)) / (2 * h) : 0;
                *w = at;
                any |= fabs(g[d]) > 1e-12;
            }
            for (size_t d = 0; d < dim; d++) {
                size_t i = row * dim + d;
                next[t][i] = tables[t][i];
                if (any) reference_update(&next[t][i], &state[t][2 * i], g[d], step, adam);
            }
        }
    }
    for (size_t t = 0; t < TABLES; t++)
        memcpy(tables[t], next[t], m->shapes[t].size * m->shapes[t].dim * sizeof(double));
    free_tables(next);
}

static void embedding_collect(sl_sparse_trainer *trainer, const model *m, const sl_encoded *rows,
                              const float *gradient) {
    sl_embedding_collect(trainer, (const float *const *)m->tables, rows, gradient);
}

static void embedding_step(sl_sparse_trainer *trainer, model *m, const sl_encoded *rows, const float *gradient,
                           const sl_step *step) {
    embedding_collect(trainer, m, rows, gradient);
    sl_embedding_apply(trainer, m->tables, step);
}

START_TEST(embedding_steps) {
    enum { ROWS = 6, STEPS = 4 };
    int adam = _i;
    model m;
    make_model(&m, 1, adam ? SL_ADAM : SL_ADAGRAD);
    double *tables[TABLES], *state[TABLES];
    double_tables(&m, tables);
    for (size_t t = 0; t < TABLES; t++)
        state[t] = calloc(2 * m.shapes[t].size * m.shapes[t].dim, sizeof(double));
    sl_sparse_trainer *trainer = make_trainer(&m, ROWS, 1, NULL);
    for (size_t s = 0; s < STEPS; s++) {
        minibatch b;
        make_minibatch(&b, ROWS, 70 + s);
        float *gradient = reference_numbers(ROWS * DEEP, 1, 80 + s);
        sl_step step = {.rate = 0.01f, .l2 = 5, .beta1 = 0.9f, .beta2 = 0.999f, .epsilon = 1e-6f};
        step.correct1 = (float)(1 / (1 - pow(0.9, (double)s + 1)));
        step.correct2 = (float)(1 / (1 - pow(0.999, (double)s + 1)));
        reference_step(&b, &m, tables, state, gradient, &step, adam);
        embedding_step(trainer, &m, &b.rows, gradient, &step);
        for (size_t t = 0; t < TABLES; t++)
            for (size_t i = 0; i < m.shapes[t].size * m.shapes[t].dim; i++)
                ck_assert_double_eq_tol((double)m.tables[t][i], tables[t][i], 2e-5);
        free(gradient);
        free_minibatch(&b);
    }
    sl_sparse_trainer_free(trainer);
    free_tables(tables);
    free_tables(state);
    free_model(&m);
}
END_TEST

/* After 2^32 steps, the rows of the first step are fresh. */
START_TEST(steps_are_counted_anew) {
    sl_allocator allocator = sl_allocator_of(NULL);
    sl_row_sums sums;
    int fresh;
    ck_ok(sl_row_sums_create(3, 1, 3, &allocator, &sums));
    sl_row_sums_clear(&sums);
    sl_row_sums_of(&sums, 2, &fresh);
    sums.step = UINT32_MAX;
    for (int step = 0; step < 3; step++) {
        sl_row_sums_clear(&sums);
        for (uint32_t row = 3; row-- > 0;) {
            sl_row_sums_of(&sums, row, &fresh);
            ck_assert_int_eq(fresh, 1);
        }
        ck_assert_uint_eq(sums.count, 3);
    }
    sl_row_sums_free(&sums, &allocator);
}
END_TEST

static void run_steps(model *m, sl_sparse_trainer *trainer, size_t rows, uint64_t first, uint64_t end) {
    sl_step step = {.rate = 0.05f, .beta1 = 0.9f, .beta2 = 0.999f, .epsilon = 1e-8f, .correct1 = 1.5f, .correct2 = 2};
    for (uint64_t s = first; s < end; s++) {
        minibatch b;
        make_minibatch(&b, rows, 100 + s);
        float *gradient = reference_numbers(rows * DEEP, 1, 200 + s);
        embedding_step(trainer, m, &b.rows, gradient, &step);
        wide_step(trainer, m, &b.rows, gradient, m->spec.wide_rate);
        free(gradient);
        free_minibatch(&b);
    }
}

static void check_equal(const model *a, const model *b) {
    for (size_t t = 0; t < TABLES; t++)
        ck_assert_mem_eq(a->tables[t], b->tables[t], a->shapes[t].size * a->shapes[t].dim * sizeof(float));
    ck_assert_mem_eq(a->wide, b->wide, WIDE * a->features.outputs * sizeof(float));
    ck_assert_mem_eq(a->bias, b->bias, a->features.outputs * sizeof(float));
}

START_TEST(threads_change_nothing) {
    enum { ROWS = 3000 }; /* enough for a second thread */
    model one, two;
    make_model(&one, 1, _i ? SL_ADAM : SL_ADAGRAD);
    make_model(&two, 1, _i ? SL_ADAM : SL_ADAGRAD);
    sl_sparse_trainer *first = make_trainer(&one, ROWS, 1, NULL), *second = make_trainer(&two, ROWS, 2, NULL);
    run_steps(&one, first, ROWS, 0, 4);
    run_steps(&two, second, ROWS, 0, 4);
    check_equal(&one, &two);
    sl_sparse_trainer_free(first);
    sl_sparse_trainer_free(second);
    free_model(&one);
    free_model(&two);
}
END_TEST

/* Adds the rows that another machine collected. */
static void reduce_rows(sl_row_sums *to, const sl_row_sums *from) {
    for (size_t i = 0; i < from->count; i++)
        sl_row_sums_add(to, from->rows[i], 1, from->sums + i * from->width);
}

static void reduce(sl_sparse_gradients *to, const sl_sparse_gradients *from, size_t outputs) {
    reduce_rows(&to->wide, &from->wide);
    for (size_t o = 0; o < outputs; o++)
        to->bias[o] += from->bias[o];
    for (size_t t = 0; t < TABLES; t++)
        reduce_rows(&to->tables[t], &from->tables[t]);
}

static void check_near(const model *a, const model *b) {
    for (size_t t = 0; t < TABLES; t++)
        for (size_t i = 0; i < a->shapes[t].size * a->shapes[t].dim; i++)
            ck_assert_double_eq_tol((double)a->tables[t][i], (double)b->tables[t][i], 1e-4);
    for (size_t i = 0; i < WIDE * a->features.outputs; i++)
        ck_assert_double_eq_tol((double)a->wide[i], (double)b->wide[i], 1e-4);
    for (size_t o = 0; o < a->features.outputs; o++)
        ck_assert_double_eq_tol((double)a->bias[o], (double)b->bias[o], 1e-4);
}

/* Two machines collect half a mini-batch each and add the other's sums. Both take the step of the whole mini-batch. */
START_TEST(sums_of_two_machines_are_reduced) {
    enum { ROWS = 24, OUTPUTS = 2, STEPS = 3 };
    model whole, halves[2];
    sl_sparse_trainer *one, *two[2];
    sl_step step = {.rate = 0.05f, .beta1 = 0.9f, .beta2 = 0.999f, .epsilon = 1e-3f, .correct1 = 1.5f, .correct2 = 2};
    sl_optimizer optimizer = _i ? SL_ADAM : SL_ADAGRAD;
    const sl_encoded empty = {.rows = 0};
    make_model(&whole, OUTPUTS, optimizer);
    one = make_trainer(&whole, ROWS, 1, NULL);
    for (size_t h = 0; h < 2; h++) {
        make_model(&halves[h], OUTPUTS, optimizer);
        two[h] = make_trainer(&halves[h], ROWS, 1, NULL);
    }
    for (size_t s = 0; s < STEPS; s++) {
        minibatch b;
        make_minibatch(&b, ROWS, 300 + s);
        float *by_logits = reference_numbers(ROWS * OUTPUTS, 1, 400 + s);
        float *by_inputs = reference_numbers(ROWS * DEEP, 1, 500 + s);
        wide_step(one, &whole, &b.rows, by_logits, whole.spec.wide_rate);
        embedding_step(one, &whole, &b.rows, by_inputs, &step);
        for (size_t h = 0; h < 2; h++) {
            sl_encoded own = sl_encoded_part(&whole.features, &b.rows, h * ROWS / 2, ROWS / 2);
            sl_wide_collect(two[h], &own, by_logits + h * ROWS / 2 * OUTPUTS);
            embedding_collect(two[h], &halves[h], &own, by_inputs + h * ROWS / 2 * DEEP);
        }
        /* The first machine's sums as sent, without the received ones. */
        sl_sparse_trainer *sent = make_trainer(&halves[0], ROWS, 1, NULL);
        sl_wide_collect(sent, &empty, NULL);
        embedding_collect(sent, &halves[0], &empty, NULL);
        reduce(&sent->gradients, &two[0]->gradients, OUTPUTS);
        reduce(&two[0]->gradients, &two[1]->gradients, OUTPUTS);
        reduce(&two[1]->gradients, &sent->gradients, OUTPUTS);
        sl_sparse_trainer_free(sent);
        for (size_t h = 0; h < 2; h++) {
            sl_wide_apply(two[h], halves[h].wide, halves[h].bias, whole.spec.wide_rate);
            sl_embedding_apply(two[h], halves[h].tables, &step);
        }
        check_equal(&halves[0], &halves[1]);
        check_near(&halves[0], &whole);
        free(by_logits);
        free(by_inputs);
        free_minibatch(&b);
    }
    for (size_t h = 0; h < 2; h++) {
        sl_sparse_trainer_free(two[h]);
        free_model(&halves[h]);
    }
    sl_sparse_trainer_free(one);
    free_model(&whole);
}
END_TEST

/* Writes the state after some steps. Another trainer reads it and continues as if nothing happened. */
START_TEST(state_goes_on) {
    model whole, halves;
    make_model(&whole, 2, _i ? SL_ADAM : SL_ADAGRAD);
    make_model(&halves, 2, _i ? SL_ADAM : SL_ADAGRAD);
    sl_sparse_trainer *one = make_trainer(&whole, 9, 1, NULL), *first = make_trainer(&halves, 9, 1, NULL);
    sl_sparse_trainer *second = make_trainer(&halves, 9, 1, NULL);
    run_steps(&whole, one, 9, 0, 8);
    run_steps(&halves, first, 9, 0, 3);
    size_t embeddings = 13 * 5 + 7 * 8 + 9 * 6 + 9 * 3;
    ck_assert_uint_eq(sl_sparse_state_size(first), 2 * WIDE * 2 + 2 * 2 + (_i ? 2 : 1) * embeddings);
    float *state = malloc(sl_sparse_state_size(first) * sizeof *state);
    sl_sparse_state_write(first, state);
    sl_sparse_trainer_free(first);
    sl_sparse_state_read(second, state);
    run_steps(&halves, second, 9, 3, 8);
    check_equal(&whole, &halves);
    free(state);
    sl_sparse_trainer_free(one);
    sl_sparse_trainer_free(second);
    free_model(&whole);
    free_model(&halves);
}
END_TEST

START_TEST(every_allocation_may_fail) {
    model m;
    make_model(&m, 1, SL_ADAM);
    sl_status status = SL_ENOMEM;
    for (size_t fail_at = 1; status == SL_ENOMEM; fail_at++) {
        fault_allocator memory;
        fault_allocator_init(&memory, fail_at);
        sl_sparse_trainer *trainer;
        status = sl_sparse_trainer_create(&m.features, 10, 1, NULL, &memory.allocator, &trainer);
        if (status == SL_OK) {
            size_t calls = memory.calls;
            run_steps(&m, trainer, 10, 0, 3);
            ck_assert_uint_eq(memory.calls, calls);
        } else {
            ck_assert_ptr_null(trainer);
        }
        sl_sparse_trainer_free(trainer);
        ck_assert_uint_eq(memory.live_blocks, 0);
        ck_assert_uint_lt(fail_at, 100);
    }
    ck_ok(status);
    free_model(&m);
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("sparse");
    tcase_add_test(tests, inputs_are_gathered);
    tcase_add_loop_test(tests, coded_inputs_are_the_decoded, 0, 3);
    tcase_add_test(tests, wide_sums_are_sums);
    tcase_add_loop_test(tests, ftrl_is_mcmahans, 0, 2);
    tcase_add_test(tests, l1_empties);
    tcase_add_test(tests, ftrl_begins_where_the_weights_are);
    tcase_add_loop_test(tests, embedding_steps, 0, 2);
    tcase_add_test(tests, steps_are_counted_anew);
    tcase_add_loop_test(tests, threads_change_nothing, 0, 2);
    tcase_add_loop_test(tests, sums_of_two_machines_are_reduced, 0, 2);
    tcase_add_loop_test(tests, state_goes_on, 0, 2);
    tcase_add_test(tests, every_allocation_may_fail);
    return check_main("sparse", &tests, 1);
}
