/* Compares training steps with the published optimisers in double arithmetic: AdaGrad (Duchi, Hazan and Singer 2011)
 * and Adam (Kingma and Ba 2015, Algorithm 1), over the layers and the embeddings, across epochs. The settings are far
 * from the defaults and from one another, so that none can stand for another. */
#include "ranker/train/train_step.h"
#include "tests/support/check_main.h"
#include "tests/support/planted.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 60, EPOCHS = 3, MOST_DIM = 4 };

static const double rate = 0.03, l2 = 0.4, beta1 = 0.6, beta2 = 0.95, epsilon = 0.2;

/* A block of weights in double, with their moments. */
typedef struct block {
    size_t size;
    double *weights, *first, *second, *decay;
} block;

typedef struct reference {
    int adam;
    block dense;
    block *tables;
} reference;

static block block_of(const float *weights, size_t size) {
    block b = {size, calloc(size, sizeof(double)), calloc(size, sizeof(double)), calloc(size, sizeof(double)),
               calloc(size, sizeof(double))};
    for (size_t i = 0; i < size; i++)
        b.weights[i] = (double)weights[i];
    return b;
}

static void block_free(block *b) {
    free(b->weights);
    free(b->first);
    free(b->second);
    free(b->decay);
}

/* Step number `t`, from 1, of one weight. */
static void step_weight(const reference *r, block *b, size_t i, double gradient, double t) {
    double g = gradient + b->decay[i] * b->weights[i];
    if (!r->adam) {
        b->second[i] += g * g;
        b->weights[i] -= rate * g / (sqrt(b->second[i]) + epsilon);
        return;
    }
    b->first[i] = beta1 * b->first[i] + (1 - beta1) * g;
    b->second[i] = beta2 * b->second[i] + (1 - beta2) * g * g;
    double first = b->first[i] / (1 - pow(beta1, t)), second = b->second[i] / (1 - pow(beta2, t));
    b->weights[i] -= rate * first / (sqrt(second) + epsilon);
}

/* L2 decays only the matrices. */
static void mark_decay(block *dense, const sl_net_shape *shape) {
    for (size_t layer = 0; layer < shape->layers; layer++)
        for (size_t i = sl_net_weight_at(shape, layer); i < sl_net_bias_at(shape, layer); i++)
            dense->decay[i] = l2;
}

static reference reference_of(const sl_trainer *trainer, int adam) {
    size_t tables = trainer->features->table_count;
    reference r = {adam, block_of(trainer->weights.dense, trainer->dense_size), calloc(tables, sizeof(block))};
    mark_decay(&r.dense, &trainer->shape);
    for (size_t t = 0; t < tables; t++) {
        const sl_table_shape *shape = &trainer->features->tables[t];
        r.tables[t] = block_of(trainer->weights.embeddings[t], shape->size * shape->dim);
    }
    return r;
}

static void reference_free(reference *r, size_t tables) {
    for (size_t t = 0; t < tables; t++)
        block_free(&r->tables[t]);
    free(r->tables);
    block_free(&r->dense);
}

/* A table row's gradient is the sum over the batch's rows with that id. Rows without one stay. */
static void step_table(reference *r, const sl_trainer *trainer, const sl_feature *feature, double t) {
    const sl_features *features = trainer->features;
    const sl_encoded *rows = &trainer->minibatch.rows;
    const float *gradients = sl_net_trainer_input_gradient(trainer->net);
    for (uint32_t id = 0; id < feature->size; id++) {
        double sums[MOST_DIM] = {0};
        int touched = 0;
        for (size_t row = 0; row < rows->rows; row++) {
            if (rows->ids[row * features->id_count + feature->at] != id) continue;
            touched = 1;
            for (size_t d = 0; d < feature->dim; d++)
                sums[d] += (double)gradients[row * features->deep_inputs + feature->deep_at + d];
        }
        for (size_t d = 0; d < feature->dim && touched; d++)
            step_weight(r, &r->tables[feature->tensor], id * feature->dim + d, sums[d], t);
    }
}

static void expect_equal(const block *b, const float *weights, const char *what, double t) {
    for (size_t i = 0; i < b->size; i++)
        ck_assert_msg(fabs((double)weights[i] - b->weights[i]) < 2e-6, "step %g, %s weight %zu: %.9g instead of %.9g",
                      t, what, i, (double)weights[i], b->weights[i]);
}

/* Takes one training step, and the same step of the reference with the gradients of the training. */
static void step_both(sl_trainer *trainer, reference *r, double t) {
    const sl_features *features = trainer->features;
    ck_assert_int_eq(sl_trainer_forward(trainer), SL_OK);
    ck_assert_int_eq(sl_trainer_collect(trainer), SL_OK);
    sl_trainer_apply(trainer);
    for (size_t i = 0; i < trainer->dense_size; i++)
        step_weight(r, &r->dense, i, (double)trainer->dense_gradient[i], t);
    expect_equal(&r->dense, trainer->weights.dense, "layer", t);
    for (size_t f = 0; f < features->count; f++) {
        const sl_feature *feature = &features->features[f];
        if (feature->tensor == SIZE_MAX) continue;
        step_table(r, trainer, feature, t);
        expect_equal(&r->tables[feature->tensor], trainer->weights.embeddings[feature->tensor], "embedding", t);
    }
}

static sl_trainer *trainer_of(const planted *rows, const char *optimizer) {
    char spec[PLANTED_SPEC], deep[400];
    sl_features *features;
    sl_trainer *trainer;
    sl_train_params params;
    sl_train_params_init(&params);
    params.threads = 1;
    snprintf(
        deep, sizeof deep,
        "\"features\": [\"x\", \"a\", \"b\"], \"hidden\": [7, 5], \"optimizer\": \"%s\", \"rate\": %g, \"l2\": %g, "
        "\"beta1\": %g, \"beta2\": %g, \"epsilon\": %g, \"embedding_init\": 0.5",
        optimizer, rate, l2, beta1, beta2, epsilon);
    planted_spec(spec, "\"column\": \"value\", \"loss\": \"squared\"", NULL, deep,
                 "\"epochs\": 3, \"batch\": 16, \"validation\": 0", "");
    ck_assert_msg(sl_train_fit(spec, &rows->source, &params, NULL, &features) == SL_OK, "%s", sl_last_error());
    ck_assert_msg(sl_trainer_create(features, &rows->source, NULL, &params, NULL, &trainer) == SL_OK, "%s",
                  sl_last_error());
    return trainer;
}

START_TEST(steps_are_the_published_ones) {
    if (!sl_net_has_onednn()) return;
    planted rows;
    planted_make(&rows, ROWS, 5);
    sl_trainer *trainer = trainer_of(&rows, _i ? "adam" : "adagrad");
    reference r = reference_of(trainer, _i);
    size_t batches = sl_trainer_minibatches(trainer);
    ck_assert_uint_gt(batches, 1);
    double t = 0;
    for (trainer->position.epoch = 0; trainer->position.epoch < EPOCHS; trainer->position.epoch++) {
        sl_dataset_shuffle(&trainer->data, trainer->spec->seed, trainer->position.epoch);
        for (trainer->position.minibatch = 0; trainer->position.minibatch < batches; trainer->position.minibatch++)
            step_both(trainer, &r, ++t);
    }
    /* A decayed bias would show. */
    const float *bias = trainer->weights.dense + sl_net_bias_at(&trainer->shape, 0);
    double most = 0;
    for (size_t i = 0; i < trainer->shape.width[1]; i++)
        most = fmax(most, fabs((double)bias[i]));
    ck_assert_double_gt(most, 0.02);
    reference_free(&r, trainer->features->table_count);
    sl_trainer_free(trainer);
    planted_free(&rows);
}
END_TEST

int main(void) {
    TCase *all = tcase_create("steps");
    tcase_add_loop_test(all, steps_are_the_published_ones, 0, 2);
    return check_main("optimisers", &all, 1);
}
