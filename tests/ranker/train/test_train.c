/* Training: that it learns, what each setting does, and how failures are reported. */
#include "base/random.h"
#include "ranker/train/train_step.h"
#include "tests/support/check_main.h"
#include "tests/support/planted.h"
#include "tests/support/scratch.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CLICK "\"column\": \"click\""
#define WIDE  "\"features\": [\"a\", \"b\", \"tags\", \"ab\"], \"rate\": 0.3, \"beta\": 0.01"
#define DEEP  "\"hidden\": [32, 16], \"rate\": 0.05"
#define TRAIN "\"epochs\": 8, \"batch\": 64, \"validation\": 0"
#define SHORT "\"epochs\": 2, \"batch\": 64, \"validation\": 0.2"

static planted rows, held_out;
static scratch place;

static void set_up(void) {
    planted_make(&rows, 6000, 1);
    planted_make(&held_out, 3000, 2);
    scratch_open(&place);
}

static void tear_down(void) {
    planted_free(&rows);
    planted_free(&held_out);
    scratch_close(&place);
}

static sl_ranker *train(const char *spec, const sl_train_params *params, sl_train_report *report) {
    sl_ranker *ranker;
    sl_train_params mine = planted_one_thread();
    sl_status status = sl_ranker_train(spec, &rows.source, NULL, params ? params : &mine, &ranker, report);
    ck_assert_msg(status == SL_OK, "%s: %s", sl_status_name(status), sl_last_error());
    return ranker;
}

static sl_metrics evaluate(const sl_ranker *ranker, const planted *on) {
    sl_metrics metrics = {.struct_size = sizeof metrics};
    ck_assert_msg(sl_ranker_evaluate(ranker, &on->source, NULL, &metrics) == SL_OK, "%s", sl_last_error());
    return metrics;
}

static sl_metrics train_and_evaluate(const char *label, const char *wide, const char *deep, const char *how) {
    char spec[PLANTED_SPEC];
    planted_spec(spec, label, wide, deep, how, "");
    sl_ranker *ranker = train(spec, NULL, NULL);
    sl_metrics metrics = evaluate(ranker, &held_out);
    sl_ranker_free(ranker);
    return metrics;
}

static int same_weights(const sl_ranker *one, const sl_ranker *other) {
    int same = sl_ranker_tensor_count(one) == sl_ranker_tensor_count(other);
    for (size_t i = 0; i < sl_ranker_tensor_count(one) && same; i++) {
        sl_tensor a, b;
        ck_assert_int_eq(sl_ranker_get_tensor(one, i, &a), SL_OK);
        ck_assert_int_eq(sl_ranker_get_tensor(other, i, &b), SL_OK);
        same = a.rows == b.rows && a.columns == b.columns &&
               memcmp(a.data, b.data, a.rows * a.columns * sizeof(float)) == 0;
    }
    return same;
}

/* ---------------------------------------------------------------------------------------------------------------
 * It learns
 * ------------------------------------------------------------------------------------------------------------- */

START_TEST(joint_beats_its_parts) {
    sl_metrics joint = train_and_evaluate(CLICK, WIDE, DEEP, TRAIN);
    sl_metrics wide = train_and_evaluate(CLICK, WIDE, NULL, TRAIN);
    sl_metrics deep = train_and_evaluate(CLICK, NULL, DEEP, TRAIN);
    ck_assert_msg(joint.logloss < wide.logloss - 0.01 && joint.logloss < deep.logloss - 0.01,
                  "logloss: joint %g, wide %g, deep %g", joint.logloss, wide.logloss, deep.logloss);
    ck_assert_double_lt(wide.normalized_entropy, 0.99);
    ck_assert_double_lt(deep.normalized_entropy, 0.99);
    ck_assert_double_gt(joint.auc, 0.8);
    ck_assert_double_eq_tol(joint.calibration, 1, 0.1);
}
END_TEST

START_TEST(adam_learns) {
    sl_metrics m =
        train_and_evaluate(CLICK, WIDE, "\"hidden\": [16, 8], \"optimizer\": \"adam\", \"rate\": 0.005", TRAIN);
    ck_assert_double_gt(m.auc, 0.8);
}
END_TEST

START_TEST(values_are_learned) {
    sl_metrics m = train_and_evaluate("\"column\": \"value\", \"loss\": \"squared\"", WIDE, DEEP, TRAIN);
    ck_assert_double_lt(m.rmse, 1.3);
    ck_assert_double_eq_tol(m.calibration, 1, 0.02);
    /* Predicting the mean has the spread of the values as its error. */
    double sum = 0, squares = 0;
    for (size_t r = 0; r < held_out.rows; r++) {
        sum += (double)held_out.value[r];
        squares += (double)held_out.value[r] * (double)held_out.value[r];
    }
    double n = (double)held_out.rows;
    ck_assert_double_lt(m.rmse, 0.7 * sqrt(squares / n - sum / n * sum / n));
}
END_TEST

START_TEST(classes_are_learned) {
    sl_metrics m = train_and_evaluate("\"column\": \"kind\", \"loss\": \"multiclass\"", WIDE, DEEP, TRAIN);
    ck_assert_double_gt(m.accuracy, 0.6);
    ck_assert_double_lt(m.normalized_entropy, 0.8);
}
END_TEST

/* The largest difference of two models' scores. */
static double furthest(const sl_ranker *one, const sl_ranker *other) {
    const sl_ranker *rankers[] = {one, other};
    float *scores = malloc(2 * held_out.rows * sizeof *scores);
    double most = 0;
    for (size_t i = 0; i < 2; i++) {
        sl_predictor *predictor;
        ck_assert_int_eq(sl_predictor_create(rankers[i], NULL, &predictor), SL_OK);
        ck_assert_int_eq(sl_predictor_predict(predictor, &held_out.table, scores + i * held_out.rows), SL_OK);
        sl_predictor_free(predictor);
    }
    for (size_t r = 0; r < held_out.rows; r++)
        most = fmax(most, fabs((double)(scores[r] - scores[held_out.rows + r])));
    free(scores);
    return most;
}

/* Rows of weight 3 count as three rows. Trains to the optimum of a convex loss, which does not depend on the size of
 * steps. */
START_TEST(weights_are_repeated_rows) {
    enum { FEW = 300 };
    static const char *how = "\"epochs\": 400, \"batch\": 1000, \"validation\": 0, \"forget\": 0";
    static const char *wide = "\"features\": [\"x\", \"y\"], \"rate\": 0.3, \"beta\": 0.001";
    char weighted[PLANTED_SPEC], plain[PLANTED_SPEC];
    planted_spec(weighted, CLICK, wide, NULL, how, "\"weight\": \"weight\"");
    planted_spec(plain, CLICK, wide, NULL, how, "");
    planted few, copies;
    planted_make(&few, FEW, 9);
    planted_make(&copies, 3 * FEW, 9);
    size_t n = 0;
    for (size_t r = 0; r < FEW; r++)
        for (int copy = 0; copy < (int)few.weight[r]; copy++, n++) {
            copies.x[n] = few.x[r];
            copies.y[n] = few.y[r];
            copies.click[n] = few.click[r];
        }
    copies.table.rows = n;
    sl_ranker *by_weight, *by_copy, *unweighted;
    sl_train_params params = planted_one_thread();
    ck_assert_int_eq(sl_ranker_train(weighted, &few.source, NULL, &params, &by_weight, NULL), SL_OK);
    ck_assert_int_eq(sl_ranker_train(plain, &copies.source, NULL, &params, &by_copy, NULL), SL_OK);
    ck_assert_int_eq(sl_ranker_train(plain, &few.source, NULL, &params, &unweighted, NULL), SL_OK);
    double same = furthest(by_weight, by_copy), other = furthest(by_weight, unweighted);
    ck_assert_msg(same < 1e-3 && other > 0.01, "%g and %g", same, other);
    sl_ranker_free(by_weight);
    sl_ranker_free(by_copy);
    sl_ranker_free(unweighted);
    planted_free(&few);
    planted_free(&copies);
}
END_TEST

/* Trains on rows with their weights times a factor. */
static sl_ranker *train_weighed(const char *spec, planted *few, float factor) {
    sl_ranker *ranker;
    sl_train_params params = planted_one_thread();
    float *own = malloc(few->rows * sizeof *own);
    memcpy(own, few->weight, few->rows * sizeof *own);
    for (size_t r = 0; r < few->rows; r++)
        few->weight[r] *= factor;
    ck_assert_msg(sl_ranker_train(spec, &few->source, NULL, &params, &ranker, NULL) == SL_OK, "%s", sl_last_error());
    memcpy(few->weight, own, few->rows * sizeof *own);
    free(own);
    return ranker;
}

/* Only ratios count: the optimisers' own constants, such as Adam's epsilon and the penalties, do not meet the size of
 * weights. */
START_TEST(only_ratios_of_weights_count) {
    static const char *const optimisers[] = {"\"optimizer\": \"adam\"", "\"optimizer\": \"adagrad\", \"l2\": 0.01"};
    char weighted[PLANTED_SPEC], plain[PLANTED_SPEC], deep[160];
    planted few;
    planted_make(&few, 600, 9);
    for (size_t i = 0; i < 2; i++) {
        snprintf(deep, sizeof deep, "\"hidden\": [8], %s", optimisers[i]);
        const char *how = "\"epochs\": 3, \"batch\": 64, \"validation\": 0.2";
        planted_spec(weighted, CLICK, WIDE, deep, how, "\"weight\": \"weight\"");
        planted_spec(plain, CLICK, WIDE, deep, how, "");
        sl_ranker *as_they_are = train_weighed(weighted, &few, 1);
        const float factors[] = {0x1p-100f, 1e-30f, 1e-7f, 3e7f, 1e35f};
        for (size_t f = 0; f < sizeof factors / sizeof *factors; f++) {
            sl_ranker *scaled = train_weighed(weighted, &few, factors[f]);
            double off = furthest(as_they_are, scaled);
            ck_assert_msg(f == 0 ? off == 0 : off < 1e-3, "%s by %g: %g", optimisers[i], (double)factors[f], off);
            sl_ranker_free(scaled);
        }
        sl_ranker_free(as_they_are);
        /* Equal weights are as good as none. */
        planted alike;
        planted_make(&alike, 600, 9);
        for (size_t r = 0; r < alike.rows; r++)
            alike.weight[r] = 1e-7f;
        sl_ranker *unweighted = train_weighed(plain, &few, 1), *same = train_weighed(weighted, &alike, 1);
        ck_assert(furthest(unweighted, same) == 0);
        sl_ranker_free(unweighted);
        sl_ranker_free(same);
        planted_free(&alike);
    }
    planted_free(&few);
}
END_TEST

START_TEST(weights_of_zero_are_told_as_such) {
    static const char *const labels[] = {CLICK, "\"column\": \"value\", \"loss\": \"squared\"",
                                         "\"column\": \"kind\", \"loss\": \"multiclass\""};
    char spec[PLANTED_SPEC];
    planted few, apart;
    sl_ranker *ranker;
    sl_metrics metrics = {.struct_size = sizeof metrics};
    sl_train_params params = planted_one_thread();
    planted_make(&few, 50, 3);
    planted_make(&apart, 20, 4);
    for (size_t i = 0; i < sizeof labels / sizeof *labels; i++) {
        planted_spec(spec, labels[i], WIDE, NULL, TRAIN, "\"weight\": \"weight\"");
        memset(few.weight, 0, 50 * sizeof *few.weight);
        ck_assert_int_eq(sl_ranker_train(spec, &few.source, &apart.source, &params, &ranker, NULL), SL_EVALUE);
        ck_assert_ptr_nonnull(strstr(sl_last_error(), "all 50 rows to train on have the weight 0 in column 'weight'"));
        few.weight[3] = few.weight[4] = 1e-30f;
        ck_assert_int_eq(sl_ranker_create(spec, &few.source, &params, &ranker), SL_OK);
        ck_assert_int_eq(sl_ranker_evaluate(ranker, &few.source, NULL, &metrics), SL_OK);
        ck_assert(isfinite(metrics.rmse));
        memset(few.weight, 0, 50 * sizeof *few.weight);
        ck_assert_int_eq(sl_ranker_evaluate(ranker, &few.source, NULL, &metrics), SL_EVALUE);
        ck_assert_ptr_nonnull(strstr(sl_last_error(), "all 50 rows have the weight 0 in column 'weight'"));
        few.weight[3] = few.weight[4] = 1e-30f;
        sl_ranker_free(ranker);
        memset(apart.weight, 0, 20 * sizeof *apart.weight);
        ck_assert_int_eq(sl_ranker_train(spec, &few.source, &apart.source, &params, &ranker, NULL), SL_EVALUE);
        ck_assert_ptr_nonnull(strstr(sl_last_error(), "all 20 rows of validation have the weight 0"));
    }
    planted_free(&few);
    planted_free(&apart);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Gradients
 * ------------------------------------------------------------------------------------------------------------- */

static sl_trainer *trainer_of(const char *spec, const sl_train_params *params) {
    sl_features *features;
    sl_trainer *trainer;
    ck_assert_msg(sl_train_fit(spec, &rows.source, params, NULL, &features) == SL_OK, "%s", sl_last_error());
    ck_assert_msg(sl_trainer_create(features, &rows.source, NULL, params, NULL, &trainer) == SL_OK, "%s",
                  sl_last_error());
    sl_dataset_shuffle(&trainer->data, trainer->spec->seed, 0);
    return trainer;
}

static double batch_loss(sl_trainer *trainer) {
    ck_assert_int_eq(sl_trainer_forward(trainer), SL_OK);
    return trainer->loss_sum / (double)trainer->minibatch.rows.rows;
}

/* The first step of AdaGrad and FTRL leaves the square of each weight's gradient in the optimiser's state, and the
 * weight shows the gradient's sign. So the test knows the step's gradient for every weight. */
typedef struct learned {
    float *before, *gradient; /* copies of the weights' block */
} learned;

static void take_gradient(float *gradient, const float *before, const float *after, const float *squares, size_t n) {
    for (size_t i = 0; i < n; i++)
        gradient[i] = (after[i] > before[i] ? -1.0f : 1.0f) * sqrtf(squares[i]);
}

static learned learn_step(sl_trainer *trainer) {
    size_t size = trainer->weights.block_size, outputs = trainer->features->outputs;
    learned l = {malloc(size * sizeof(float)), calloc(size, sizeof(float))};
    memcpy(l.before, trainer->weights.block, size * sizeof(float));
    float *state = malloc(sl_sparse_state_size(trainer->sparse) * sizeof(float));
    (void)batch_loss(trainer);
    ck_assert_int_eq(sl_trainer_collect(trainer), SL_OK);
    sl_trainer_apply(trainer);
    sl_sparse_state_write(trainer->sparse, state);
    size_t wide = trainer->features->wide_size * outputs;
    const float *after = trainer->weights.block;
    take_gradient(l.gradient, l.before, after, state + wide, wide);
    take_gradient(l.gradient + wide, l.before + wide, after + wide, state + 2 * wide + outputs, outputs);
    const float *squares = state + 2 * (wide + outputs);
    for (size_t t = 0; t < trainer->features->table_count; t++) {
        size_t count = trainer->features->tables[t].size * trainer->features->tables[t].dim;
        size_t at = (size_t)(trainer->weights.embeddings[t] - after);
        take_gradient(l.gradient + at, l.before + at, after + at, squares, count);
        squares += count;
    }
    size_t dense = (size_t)(trainer->weights.dense - after);
    take_gradient(l.gradient + dense, l.before + dense, trainer->weights.dense, trainer->dense_state,
                  trainer->dense_size);
    free(state);
    memcpy(trainer->weights.block, l.before, size * sizeof(float));
    return l;
}

/* Moves the weight to both sides. The gradient lies between the two slopes, even if a maximum moves to another id.
 * Allows for differences below the resolution of a float loss. */
static void check_slope(sl_trainer *trainer, const learned *l, size_t at, const char *part) {
    const double step = 0.01;
    double here = batch_loss(trainer), found = (double)l->gradient[at];
    trainer->weights.block[at] = l->before[at] + (float)step;
    double above = (batch_loss(trainer) - here) / step;
    trainer->weights.block[at] = l->before[at] - (float)step;
    double below = (here - batch_loss(trainer)) / step;
    trainer->weights.block[at] = l->before[at];
    double spare = 1e-4 + 0.01 * fabs(found);
    ck_assert_msg(found >= fmin(above, below) - spare && found <= fmax(above, below) + spare,
                  "%s, weight %zu: %g, but the slopes are %g and %g", part, at, found, below, above);
}

static size_t check_part(sl_trainer *trainer, const learned *l, const float *from, size_t count, const char *part) {
    size_t first = (size_t)(from - trainer->weights.block), touched = 0, every = count / 40 + 1;
    for (size_t i = 0; i < count; i++) {
        touched += l->gradient[first + i] != 0;
        if (i % every == 0 || (l->gradient[first + i] != 0 && touched % every == 0))
            check_slope(trainer, l, first + i, part);
    }
    return touched;
}

static void check_gradients(const char *label, const char *combine) {
    char spec[PLANTED_SPEC], deep[200];
    snprintf(deep, sizeof deep,
             "\"hidden\": [12, 7], \"activation\": \"tanh\", \"rate\": 0.01, \"embedding_init\": 0.5");
    planted_spec(spec, label, "\"beta\": 1", deep, "\"epochs\": 1, \"batch\": 48, \"validation\": 0",
                 "\"weight\": \"weight\"");
    /* As long as the replaced text: "mean" in quotes. */
    char *tags = strstr(spec, PLANTED_COMBINE);
    ck_assert_ptr_nonnull(tags);
    memcpy(tags + strlen(PLANTED_COMBINE), combine, strlen(combine));
    sl_train_params params = planted_one_thread();
    sl_trainer *trainer = trainer_of(spec, &params);
    learned l = learn_step(trainer);
    size_t outputs = trainer->features->outputs;
    ck_assert_uint_gt(check_part(trainer, &l, trainer->weights.wide, trainer->features->wide_size * outputs, "wide"),
                      40);
    ck_assert_uint_eq(check_part(trainer, &l, trainer->weights.bias, outputs, "bias"), outputs);
    for (size_t t = 0; t < trainer->features->table_count; t++) {
        const sl_table_shape *shape = &trainer->features->tables[t];
        size_t count = shape->size * shape->dim;
        ck_assert_uint_gt(check_part(trainer, &l, trainer->weights.embeddings[t], count, "embedding"), 10);
    }
    ck_assert_uint_gt(check_part(trainer, &l, trainer->weights.dense, trainer->dense_size, "dense"), 200);
    free(l.before);
    free(l.gradient);
    sl_trainer_free(trainer);
}

START_TEST(gradients_are_slopes) {
    check_gradients(CLICK, "\"mean\"");
    check_gradients("\"column\": \"value\", \"loss\": \"squared\"", "\"sum\" ");
    check_gradients("\"column\": \"kind\", \"loss\": \"multiclass\"", "\"max\" ");
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Settings
 * ------------------------------------------------------------------------------------------------------------- */

START_TEST(same_seed_same_bits) {
    char spec[PLANTED_SPEC];
    planted_spec(spec, CLICK, WIDE, DEEP ", \"dropout\": 0.2", SHORT, "");
    for (size_t threads = 1; threads <= 2; threads++) {
        sl_train_params params = planted_one_thread();
        params.threads = threads;
        sl_ranker *one = train(spec, &params, NULL), *again = train(spec, &params, NULL);
        params.seed = 5;
        sl_ranker *other = train(spec, &params, NULL);
        ck_assert(same_weights(one, again));
        ck_assert(!same_weights(one, other));
        sl_ranker_free(one);
        sl_ranker_free(again);
        sl_ranker_free(other);
    }
}
END_TEST

/* Batches and layers large enough for threads to share every part of the work. */
START_TEST(threads_share_a_batch) {
    char spec[PLANTED_SPEC];
    planted_spec(spec, CLICK, WIDE, "\"hidden\": [256, 128]", "\"epochs\": 3, \"batch\": 3000, \"validation\": 0", "");
    sl_train_params params = planted_one_thread();
    sl_ranker *one = train(spec, &params, NULL);
    params.threads = 3;
    sl_ranker *shared = train(spec, &params, NULL), *again = train(spec, &params, NULL);
    ck_assert(same_weights(shared, again));
    ck_assert_double_lt(furthest(one, shared), 1e-3);
    params.seed = 2;
    sl_ranker *other = train(spec, &params, NULL);
    ck_assert_double_gt(furthest(one, other), 1e-2);
    sl_ranker_free(one);
    sl_ranker_free(shared);
    sl_ranker_free(again);
    sl_ranker_free(other);
}
END_TEST

/* A mini-batch that touches enough table rows for several threads. */
START_TEST(threads_share_tables) {
    char spec[PLANTED_SPEC];
    for (size_t r = 0; r < rows.rows; r++)
        rows.a[r] = rows.b[r] = (int32_t)r;
    planted_spec(spec, CLICK, NULL, "\"hidden\": [4]", "\"epochs\": 2, \"batch\": 6000, \"validation\": 0", "");
    sl_train_params params = planted_one_thread();
    sl_ranker *one = train(spec, &params, NULL);
    params.threads = 2;
    sl_ranker *shared = train(spec, &params, NULL);
    ck_assert_double_lt(furthest(one, shared), 1e-4);
    sl_ranker_free(one);
    sl_ranker_free(shared);
}
END_TEST

/* Each of these changes the result, and the model still learns. */
START_TEST(dropout_decay_and_schedules_matter) {
    static const char *const deeps[] = {DEEP, DEEP ", \"dropout\": 0.3", DEEP ", \"l2\": 0.01", DEEP, DEEP};
    static const char *const trains[] = {SHORT, SHORT, SHORT, SHORT ", \"schedule\": \"linear\"",
                                         SHORT ", \"schedule\": \"cosine\""};
    sl_metrics all[5];
    for (size_t i = 0; i < 5; i++) {
        all[i] = train_and_evaluate(CLICK, WIDE, deeps[i], trains[i]);
        ck_assert_double_lt(all[i].normalized_entropy, 0.97);
        for (size_t j = 0; j < i; j++)
            ck_assert(all[i].logloss != all[j].logloss);
    }
}
END_TEST

/* How far the last step of a training of two epochs moves the layers' weights. */
static double last_move(const char *schedule) {
    char spec[PLANTED_SPEC], how[200];
    snprintf(how, sizeof how, "\"epochs\": 2, \"batch\": 64, \"validation\": 0, \"schedule\": \"%s\"", schedule);
    planted_spec(spec, CLICK, WIDE, DEEP, how, "");
    sl_train_params params = planted_one_thread();
    sl_trainer *trainer = trainer_of(spec, &params);
    trainer->position.epoch = 1;
    trainer->position.minibatch = sl_trainer_minibatches(trainer) - 1;
    learned l = {malloc(trainer->weights.block_size * sizeof(float)), NULL};
    memcpy(l.before, trainer->weights.block, trainer->weights.block_size * sizeof(float));
    (void)batch_loss(trainer);
    ck_assert_int_eq(sl_trainer_collect(trainer), SL_OK);
    sl_trainer_apply(trainer);
    double moved = 0;
    for (size_t i = 0; i < trainer->dense_size; i++)
        moved += fabs((double)(trainer->weights.dense[i] -
                               l.before[trainer->weights.dense - trainer->weights.block + (ptrdiff_t)i]));
    free(l.before);
    sl_trainer_free(trainer);
    return moved;
}

START_TEST(schedules_end_at_nothing) {
    double constant = last_move("constant"), linear = last_move("linear"), cosine = last_move("cosine");
    double steps = 2 * 94;
    ck_assert_double_eq_tol(linear / constant, 1 / steps, 0.1 / steps);
    ck_assert_double_lt(cosine, linear);
    ck_assert_double_gt(cosine, 0);
}
END_TEST

static void note_epoch(void *ctx, const sl_epoch *epoch) {
    sl_epoch *notes = ctx;
    notes[epoch->epoch] = *epoch;
}

/* Few rows and many weights: the model overfits soon, and the validation loss rises. */
START_TEST(stopping_early_keeps_the_best) {
    char spec[PLANTED_SPEC];
    sl_epoch notes[60] = {{0}};
    planted_spec(spec, CLICK, "\"rate\": 1", "\"hidden\": [32], \"rate\": 0.1",
                 "\"epochs\": 50, \"batch\": 32, \"patience\": 3", "");
    sl_train_params params = planted_one_thread();
    params.epoch = note_epoch;
    params.epoch_ctx = notes;
    sl_train_report report = {.struct_size = sizeof report};
    sl_ranker *ranker;
    ck_assert_int_eq(sl_ranker_train(spec, &rows.source, &held_out.source, &params, &ranker, &report), SL_OK);
    ck_assert_uint_lt(report.epochs, 50);
    ck_assert_uint_eq(report.epochs - report.best_epoch, 3);
    ck_assert_uint_eq(report.rows, rows.rows);
    ck_assert_uint_eq(report.valid_rows, held_out.rows);
    for (size_t e = 1; e <= report.epochs; e++) {
        ck_assert_uint_eq(notes[e].epoch, e);
        ck_assert_uint_eq(notes[e].rows, rows.rows);
        ck_assert_double_ge(notes[e].valid_loss, report.valid_loss);
        int best = 1;
        for (size_t earlier = 1; earlier < e; earlier++)
            best = best && notes[e].valid_loss < notes[earlier].valid_loss;
        ck_assert_int_eq(notes[e].best != 0, best);
    }
    ck_assert_double_gt(notes[report.epochs].valid_loss, report.valid_loss);
    sl_metrics metrics = evaluate(ranker, &held_out);
    ck_assert_double_eq_tol(metrics.logloss, report.valid_loss, 1e-5);
    ck_assert_double_eq_tol(metrics.auc, report.valid_auc, 1e-6);
    ck_assert(report.train_loss == notes[report.best_epoch].train_loss);
    ck_assert_double_gt(report.rows_per_s, 0);
    ck_assert_uint_gt(report.wide_nonzero, 0);
    sl_ranker_free(ranker);
}
END_TEST

START_TEST(the_share_of_validation_is_held_out) {
    char spec[PLANTED_SPEC];
    planted_spec(spec, CLICK, WIDE, NULL, "\"epochs\": 1, \"validation\": 0.25", "");
    sl_train_params params = planted_one_thread();
    sl_trainer *trainer = trainer_of(spec, &params);
    const sl_dataset *data = &trainer->data;
    ck_assert_uint_eq(data->train_count + data->valid_count, rows.rows);
    ck_assert_double_eq_tol((double)data->valid_count / (double)rows.rows, 0.25, 0.03);
    unsigned char *seen = calloc(rows.rows, 1);
    for (size_t i = 0; i < data->train_count; i++)
        seen[data->train[i]]++;
    for (size_t i = 0; i < data->valid_count; i++)
        seen[data->valid[i]]++;
    for (size_t i = 0; i < rows.rows; i++)
        ck_assert_uint_eq(seen[i], 1);
    /* An epoch's order is a permutation, different each time. */
    uint32_t *first = malloc(data->train_count * sizeof *first);
    memcpy(first, data->order, data->train_count * sizeof *first);
    for (size_t i = 0; i < data->train_count; i++)
        seen[first[i]]++;
    for (size_t i = 0; i < data->train_count; i++)
        ck_assert_uint_eq(seen[data->train[i]], 2);
    sl_dataset_shuffle(&trainer->data, 1, 1);
    ck_assert(memcmp(first, data->order, data->train_count * sizeof *first) != 0);
    sl_dataset_shuffle(&trainer->data, 1, 0);
    ck_assert(memcmp(first, data->order, data->train_count * sizeof *first) == 0);
    free(first);
    free(seen);
    sl_trainer_free(trainer);
}
END_TEST

START_TEST(l1_leaves_few_weights) {
    char spec[PLANTED_SPEC];
    sl_train_report all = {.struct_size = sizeof all}, few = {.struct_size = sizeof few};
    planted_spec(spec, CLICK, WIDE, NULL, SHORT, "");
    sl_ranker_free(train(spec, NULL, &all));
    planted_spec(spec, CLICK, WIDE ", \"l1\": 0.3", NULL, SHORT, "");
    sl_ranker_free(train(spec, NULL, &few));
    ck_assert_uint_lt(few.wide_nonzero, all.wide_nonzero / 2);
    ck_assert_uint_gt(few.wide_nonzero, 0);
}
END_TEST

START_TEST(a_model_begins_at_the_mean) {
    char spec[PLANTED_SPEC];
    sl_train_params params = planted_one_thread();
    sl_ranker *ranker;
    sl_tensor bias;
    planted_spec(spec, "\"column\": \"value\", \"loss\": \"squared\"", WIDE, DEEP, TRAIN, "");
    ck_assert_int_eq(sl_ranker_create(spec, &rows.source, &params, &ranker), SL_OK);
    ck_assert_int_eq(sl_ranker_get_tensor(ranker, 1, &bias), SL_OK);
    double sum = 0;
    for (size_t r = 0; r < rows.rows; r++)
        sum += (double)rows.value[r];
    ck_assert_str_eq(bias.name, "bias");
    ck_assert_double_eq_tol((double)bias.data[0], sum / (double)rows.rows, 1e-4);
    sl_ranker_free(ranker);
    planted_spec(spec, CLICK, WIDE, NULL, TRAIN, "");
    ck_assert_int_eq(sl_ranker_create(spec, &rows.source, &params, &ranker), SL_OK);
    sl_metrics metrics = evaluate(ranker, &rows);
    ck_assert_double_eq_tol(metrics.calibration, 1, 1e-5);
    sl_ranker_free(ranker);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * What goes wrong
 * ------------------------------------------------------------------------------------------------------------- */

START_TEST(a_loss_that_is_no_number_stops_it) {
    char spec[PLANTED_SPEC];
    planted_spec(spec, "\"column\": \"value\", \"loss\": \"squared\"", WIDE,
                 "\"hidden\": [16, 8], \"optimizer\": \"adam\", \"rate\": 1e6", SHORT, "");
    sl_train_params params = planted_one_thread();
    params.checkpoint = place.path;
    params.checkpoint_steps = 1;
    sl_ranker *ranker = (sl_ranker *)&place;
    ck_assert_int_eq(sl_ranker_train(spec, &rows.source, NULL, &params, &ranker, NULL), SL_EVALUE);
    ck_assert_ptr_null(ranker);
    ck_assert_ptr_nonnull(strstr(sl_last_error(), "not finite"));
    ck_assert_ptr_nonnull(strstr(sl_last_error(), "rate"));
    /* Unchanged values are from before. */
    ck_assert_int_eq(sl_ranker_open(place.path, NULL, &ranker), SL_OK);
    sl_metrics metrics = evaluate(ranker, &held_out);
    ck_assert(isfinite(metrics.rmse));
    sl_ranker_free(ranker);
}
END_TEST

static int cancel(void *ctx, uint64_t done, uint64_t total) {
    uint64_t *calls = ctx;
    ck_assert_uint_le(done, total);
    return ++*calls == 1;
}

START_TEST(it_can_be_cancelled) {
    char spec[PLANTED_SPEC];
    planted_spec(spec, CLICK, WIDE, NULL, SHORT, "");
    uint64_t calls = 0;
    sl_train_params params = planted_one_thread();
    params.progress = cancel;
    params.progress_ctx = &calls;
    sl_ranker *ranker;
    ck_assert_int_eq(sl_ranker_train(spec, &rows.source, NULL, &params, &ranker, NULL), SL_ECANCELED);
    ck_assert_ptr_null(ranker);
}
END_TEST

START_TEST(bad_calls_are_refused) {
    char spec[PLANTED_SPEC];
    planted_spec(spec, CLICK, WIDE, NULL, SHORT, "");
    sl_ranker *ranker;
    sl_train_params params = planted_one_thread();
    sl_train_report unset = {0};
    ck_assert_int_eq(sl_ranker_train(spec, &rows.source, NULL, &params, NULL, NULL), SL_EINVAL);
    ck_assert_int_eq(sl_ranker_train(NULL, &rows.source, NULL, &params, &ranker, NULL), SL_EINVAL);
    ck_assert_int_eq(sl_ranker_train(spec, NULL, NULL, &params, &ranker, NULL), SL_EINVAL);
    ck_assert_int_eq(sl_ranker_train(spec, &rows.source, NULL, &params, &ranker, &unset), SL_EINVAL);
    params.resume = 1;
    ck_assert_int_eq(sl_ranker_train(spec, &rows.source, NULL, &params, &ranker, NULL), SL_EINVAL);
    params.resume = 0;
    sl_table none = rows.table;
    none.rows = 0;
    sl_rows source = {.struct_size = sizeof source};
    ck_assert_int_eq(sl_table_rows(&none, rows.cursor, &source), SL_OK);
    ck_assert_int_ne(sl_ranker_train(spec, &source, NULL, &params, &ranker, NULL), SL_OK);
    ck_assert_ptr_null(ranker);
    planted held_out;
    planted_make(&held_out, 10, 2);
    held_out.table.rows = 0;
    ck_assert_int_eq(sl_table_rows(&held_out.table, held_out.cursor, &source), SL_OK);
    ck_assert_int_eq(sl_table_rows(&rows.table, rows.cursor, &rows.source), SL_OK);
    sl_status status = sl_ranker_train(spec, &rows.source, &source, &params, &ranker, NULL);
    ck_assert_msg(status == SL_EINVAL, "%s", sl_last_error());
    ck_assert_ptr_nonnull(strstr(sl_last_error(), "no validation rows"));
    planted_free(&held_out);
}
END_TEST

/* The first `count` of the rows, all of them with this label. */
static sl_status train_uniform(const char *spec, planted *few, size_t count, float label, sl_ranker **out) {
    sl_rows source = {.struct_size = sizeof source};
    sl_train_params params = planted_one_thread();
    few->table.rows = count;
    for (size_t r = 0; r < count; r++) {
        few->click[r] = label;
        memcpy(few->kinds + few->kind_offsets[r], "low", 3);
    }
    ck_assert_int_eq(sl_table_rows(&few->table, few->cursor, &source), SL_OK);
    return sl_ranker_train(spec, &source, NULL, &params, out, NULL);
}

/* One row, or one class, teaches nothing. Equal values still teach their mean. */
START_TEST(too_little_to_learn_is_refused) {
    char spec[PLANTED_SPEC];
    planted few;
    sl_ranker *ranker;
    planted_make(&few, 50, 3);
    planted_spec(spec, "\"column\": \"value\", \"loss\": \"squared\"", WIDE, NULL, TRAIN, "");
    ck_assert_int_eq(train_uniform(spec, &few, 1, 1, &ranker), SL_EINVAL);
    ck_assert_ptr_nonnull(strstr(sl_last_error(), "1 row is left to train on, of 1; give more rows"));
    ck_assert_ptr_null(ranker);
    ck_assert_int_eq(train_uniform(spec, &few, 2, 1, &ranker), SL_OK);
    sl_ranker_free(ranker);
    planted_spec(spec, CLICK, WIDE, NULL, TRAIN, "");
    for (int label = 0; label <= 1; label++) {
        ck_assert_int_eq(train_uniform(spec, &few, 50, (float)label, &ranker), SL_EVALUE);
        ck_assert_ptr_nonnull(strstr(sl_last_error(), label ? "all 50 rows to train on have the label 1"
                                                            : "all 50 rows to train on have the label 0"));
        ck_assert_ptr_nonnull(strstr(sl_last_error(), "at_least"));
        ck_assert_ptr_null(ranker);
    }
    /* Rows of weight 0 do not count. */
    few.click[7] = 0;
    sl_rows source = {.struct_size = sizeof source};
    sl_train_params params = planted_one_thread();
    ck_assert_int_eq(sl_table_rows(&few.table, few.cursor, &source), SL_OK);
    ck_assert_int_eq(sl_ranker_train(spec, &source, NULL, &params, &ranker, NULL), SL_OK);
    sl_ranker_free(ranker);
    few.weight[7] = 0;
    planted_spec(spec, CLICK, WIDE, NULL, TRAIN, "\"weight\": \"weight\"");
    ck_assert_int_eq(sl_ranker_train(spec, &source, NULL, &params, &ranker, NULL), SL_EVALUE);
    planted_spec(spec, "\"column\": \"kind\", \"loss\": \"multiclass\", \"classes\": [\"low\", \"mid\", \"top\"]", WIDE,
                 NULL, TRAIN, "");
    ck_assert_int_eq(train_uniform(spec, &few, 50, 0, &ranker), SL_EVALUE);
    ck_assert_ptr_nonnull(strstr(sl_last_error(), "of class 'low'"));
    planted_free(&few);
}
END_TEST

/* Every allocation fails in turn; nothing is lost, and the calls after it work. */
START_TEST(memory_may_fail_anywhere) {
    char spec[PLANTED_SPEC];
    planted_spec(spec, CLICK, WIDE, DEEP, "\"epochs\": 1, \"batch\": 50, \"validation\": 0.3", "");
    sl_train_params params = planted_one_thread();
    params.checkpoint = place.path;
    planted_check_memory(spec, params);
}
END_TEST

START_TEST(without_onednn_only_the_wide_part_trains) {
    char spec[PLANTED_SPEC];
    sl_ranker *ranker;
    sl_train_params params = planted_one_thread();
    planted_spec(spec, CLICK, WIDE, DEEP, SHORT, "");
    sl_status status = sl_ranker_train(spec, &rows.source, NULL, &params, &ranker, NULL);
    ck_assert_int_eq(status, sl_net_has_onednn() ? SL_OK : SL_EUNSUPPORTED);
    if (status == SL_EUNSUPPORTED) ck_assert_ptr_nonnull(strstr(sl_last_error(), "oneDNN"));
    sl_ranker_free(ranker);
    sl_metrics wide = train_and_evaluate(CLICK, WIDE, NULL, SHORT);
    ck_assert_double_lt(wide.normalized_entropy, 1);
}
END_TEST

int main(void) {
    TCase *learning = tcase_create("learning");
    TCase *settings = tcase_create("settings");
    TCase *failures = tcase_create("failures");
    TCase *cases[] = {learning, settings, failures};
    for (size_t i = 0; i < 3; i++)
        tcase_add_checked_fixture(cases[i], set_up, tear_down);
    if (sl_net_has_onednn()) {
        tcase_add_test(learning, joint_beats_its_parts);
        tcase_add_test(learning, adam_learns);
        tcase_add_test(learning, values_are_learned);
        tcase_add_test(learning, classes_are_learned);
        tcase_add_test(learning, gradients_are_slopes);
        tcase_add_test(learning, only_ratios_of_weights_count);
        tcase_add_test(settings, same_seed_same_bits);
        tcase_add_test(settings, threads_share_a_batch);
        tcase_add_test(settings, threads_share_tables);
        tcase_add_test(settings, dropout_decay_and_schedules_matter);
        tcase_add_test(settings, schedules_end_at_nothing);
        tcase_add_test(settings, stopping_early_keeps_the_best);
        tcase_add_test(settings, a_model_begins_at_the_mean);
        tcase_add_test(failures, a_loss_that_is_no_number_stops_it);
        tcase_add_test(failures, memory_may_fail_anywhere);
    }
    tcase_add_test(learning, weights_are_repeated_rows);
    tcase_add_test(learning, weights_of_zero_are_told_as_such);
    tcase_add_test(settings, the_share_of_validation_is_held_out);
    tcase_add_test(settings, l1_leaves_few_weights);
    tcase_add_test(failures, it_can_be_cancelled);
    tcase_add_test(failures, bad_calls_are_refused);
    tcase_add_test(failures, too_little_to_learn_is_refused);
    tcase_add_test(failures, without_onednn_only_the_wide_part_trains);
    return check_main("train", cases, 3);
}
