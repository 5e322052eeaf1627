/* Pruning: which units and weights go, what stays the same, the training afterwards, and what is refused. */
#include "base/random.h"
#include "ranker/prune/importance.h"
#include "ranker/prune/unit_pruning.h"
#include "ranker/train/train_step.h"
#include "tests/support/check_main.h"
#include "tests/support/faults.h"
#include "tests/support/indexes.h"
#include "tests/support/planted.h"
#include "tests/support/scratch.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CLICK "\"column\": \"click\""
#define WIDE  "\"features\": [\"a\", \"b\", \"tags\", \"ab\"], \"rate\": 0.3"
#define DEEP  "\"hidden\": [24, 16], \"rate\": 0.05"
#define TRAIN "\"epochs\": 8, \"batch\": 64, \"validation\": 0.1"

static planted rows, few, held_out;
static scratch place;

static void set_up(void) {
    planted_make(&rows, 4000, 1);
    planted_make(&few, 300, 3);
    planted_make(&held_out, 2000, 2);
    scratch_open(&place);
}

static void tear_down(void) {
    planted_free(&rows);
    planted_free(&few);
    planted_free(&held_out);
    scratch_close(&place);
}

static sl_ranker *trained(const char *deep) {
    char spec[PLANTED_SPEC];
    sl_ranker *ranker;
    sl_train_params params = planted_one_thread();
    planted_spec(spec, CLICK, WIDE, deep, TRAIN, "");
    ck_ok(sl_ranker_train(spec, &rows.source, NULL, &params, &ranker, NULL));
    return ranker;
}

static sl_prune_params cutting(double units, double multiply_adds, double weights) {
    sl_prune_params params;
    sl_prune_params_init(&params);
    params.units = units;
    params.multiply_adds = multiply_adds;
    params.weights = weights;
    return params;
}

static sl_metrics measured(const sl_ranker *ranker) {
    sl_metrics metrics = {.struct_size = sizeof metrics};
    ck_ok(sl_ranker_evaluate(ranker, &held_out.source, NULL, &metrics));
    return metrics;
}

static const float *tensor_of(const sl_ranker *ranker, const char *name, sl_tensor *out) {
    for (size_t i = 0; i < sl_ranker_tensor_count(ranker); i++) {
        ck_ok(sl_ranker_get_tensor(ranker, i, out));
        if (strcmp(out->name, name) == 0) return out->data;
    }
    ck_abort_msg("no tensor %s", name);
    return NULL;
}

static int same_weights(const sl_ranker *one, const sl_ranker *other) {
    for (size_t i = 0; i < sl_ranker_tensor_count(one); i++) {
        sl_tensor a, b;
        ck_ok(sl_ranker_get_tensor(one, i, &a));
        ck_ok(sl_ranker_get_tensor(other, i, &b));
        if (a.rows != b.rows || a.columns != b.columns) return 0;
        if (memcmp(a.data, b.data, a.rows * a.columns * sizeof(float)) != 0) return 0;
    }
    return 1;
}

/* ---------------------------------------------------------------------------------------------------------------
 * Units
 * ------------------------------------------------------------------------------------------------------------- */

static void choose(const sl_net_shape *shape, const double *importance, const sl_prune_params *params,
                   unsigned char *kept, sl_net_shape *out) {
    sl_allocator allocator = sl_allocator_of(NULL);
    ck_ok(sl_units_choose(shape, importance, params, &allocator, kept, out));
    size_t at = 0;
    for (size_t l = 1; l < shape->layers; l++) {
        size_t stay = 0;
        for (size_t u = 0; u < shape->width[l]; u++)
            stay += kept[at++];
        ck_assert_uint_eq(stay, out->width[l]);
    }
}

START_TEST(the_least_important_go) {
    const sl_net_shape shape = {.layers = 3, .width = {5, 6, 4, 1}};
    const double importance[] = {9, 1, 8, 2, 7, 3, 0.5, 20, 0.1, 30};
    const unsigned char half[] = {1, 0, 1, 0, 1, 0, 0, 1, 0, 1};
    sl_net_shape out;
    unsigned char kept[10];
    sl_prune_params params = cutting(0.5, 0, 0);
    choose(&shape, importance, &params, kept, &out);
    ck_assert_mem_eq(kept, half, sizeof half);
    /* A share of 0.4 cuts units 0.1, 0.5, 1 and 2 over all layers. Per layer it cuts half of each, because a smaller
     * share is only 3 units. */
    params.units = 0.4;
    choose(&shape, importance, &params, kept, &out);
    ck_assert_uint_eq(out.width[1], 4);
    ck_assert_uint_eq(out.width[2], 2);
    ck_assert(!kept[1] && !kept[3] && !kept[6] && !kept[8]);
    params.per_layer = 1;
    choose(&shape, importance, &params, kept, &out);
    ck_assert_uint_eq(out.width[1], 3);
    ck_assert_uint_eq(out.width[2], 2);
    /* Rounding up to multiples brings back the best cut units. */
    params.per_layer = 0;
    params.multiple = 3;
    choose(&shape, importance, &params, kept, &out);
    ck_assert_uint_eq(out.width[1], 6);
    ck_assert_uint_eq(out.width[2], 3);
    ck_assert(kept[6] && !kept[8]);
    /* By multiply-adds: 29 of 5 * 6 + 6 * 4 + 4 = 58 may stay. 4 and 2 units have 30. */
    params = cutting(0, 0.5, 0);
    choose(&shape, importance, &params, kept, &out);
    ck_assert_uint_le(sl_net_multiply_adds(&out), 29);
    ck_assert_uint_eq(out.width[1], 3);
    ck_assert_uint_eq(out.width[2], 2);
    /* 3.6 of 10 units are 4. */
    params = cutting(0.36, 0, 0);
    choose(&shape, importance, &params, kept, &out);
    ck_assert_uint_eq(out.width[1] + out.width[2], 6);
    params = cutting(0.9, 0, 0);
    sl_allocator allocator = sl_allocator_of(NULL);
    ck_fails(sl_units_choose(&shape, importance, &params, &allocator, kept, &out), SL_EINVAL, "cannot be cut");
}
END_TEST

/* The change of the loss without a unit, from losses with its output slightly smaller. */
START_TEST(taylor_is_the_change_of_the_loss) {
    char spec[PLANTED_SPEC];
    sl_features *features;
    sl_trainer *trainer;
    sl_train_params params = planted_one_thread();
    planted_spec(spec, CLICK, WIDE, "\"hidden\": [7, 5], \"dropout\": 0.3, \"activation\": \"tanh\"",
                 "\"batch\": 300, \"validation\": 0", "");
    ck_ok(sl_train_fit(spec, &few.source, &params, NULL, &features));
    ck_ok(sl_trainer_create(features, &few.source, NULL, &params, NULL, &trainer));
    const sl_net_shape *shape = &trainer->shape;
    double importance[12];
    ck_assert_uint_eq(sl_unit_count(shape), 12);
    size_t used = _i ? 100 : few.rows; /* rows, of all there are */
    ck_ok(sl_unit_taylor(trainer, _i ? used : 0, importance));
    size_t unit = 0;
    for (size_t l = 1; l < shape->layers; l++)
        for (size_t u = 0; u < shape->width[l]; u++, unit++) {
            float *out = trainer->weights.dense + sl_net_weight_at(shape, l) + u * shape->width[l + 1];
            double losses[2];
            for (size_t side = 0; side < 2; side++) {
                float by = side ? 1.01f : 0.99f;
                for (size_t c = 0; c < shape->width[l + 1]; c++)
                    out[c] *= by;
                ck_ok(sl_trainer_logits(trainer, trainer->data.order, used, trainer->logits));
                losses[side] = 0;
                for (size_t r = 0; r < used; r++) {
                    double z = (double)trainer->logits[r], y = (double)trainer->minibatch.labels[r];
                    losses[side] += (fmax(z, 0) - z * y + log(1 + exp(-fabs(z)))) / (double)used;
                }
                for (size_t c = 0; c < shape->width[l + 1]; c++)
                    out[c] /= by;
            }
            double change = (losses[1] - losses[0]) / 0.02;
            ck_assert_msg(fabs(sqrt(importance[unit]) - fabs(change)) < 1e-5 + 0.02 * fabs(change), "unit %zu: %g, %g",
                          unit, sqrt(importance[unit]), change);
        }
    sl_trainer_free(trainer);
}
END_TEST

/* Makes a model with units whose outgoing weights are 0. *base has the same weights otherwise. */
static sl_ranker *with_idle_units(const sl_ranker *base) {
    static float weights[24 * 16], last[16];
    sl_tensor tensor;
    sl_ranker *made;
    memcpy(weights, tensor_of(base, "dense.1.weight", &tensor), sizeof weights);
    memset(weights + 5 * 16, 0, 16 * sizeof *weights);
    memset(weights + 23 * 16, 0, 16 * sizeof *weights);
    memcpy(last, tensor_of(base, "dense.2.weight", &tensor), sizeof last);
    last[0] = 0;
    const sl_tensor given[] = {{"dense.1.weight", weights, 24, 16}, {"dense.2.weight", last, 16, 1}};
    ck_ok(sl_ranker_with_tensors(base, given, 2, &made));
    return made;
}

START_TEST(idle_units_go_and_scores_stay) {
    sl_ranker *base = trained(DEEP), *idle = with_idle_units(base), *narrow;
    for (int criterion = SL_PRUNE_TAYLOR; criterion <= SL_PRUNE_NORM; criterion++) {
        sl_prune_params params = cutting(3.0 / 40, 0, 0);
        sl_train_params training = planted_one_thread();
        sl_prune_report report = {.struct_size = sizeof report};
        params.criterion = (sl_prune_criterion)criterion;
        training.rate_scale = 1e-9;
        training.epochs = 1;
        int with_rows = criterion == SL_PRUNE_TAYLOR;
        ck_ok(sl_ranker_prune(idle, with_rows ? &rows.source : NULL, NULL, &params, &training, &narrow, &report));
        ck_assert_uint_eq(report.hidden_layers, 2);
        ck_assert_uint_eq(report.hidden_before[0], 24);
        ck_assert_uint_eq(report.hidden[0], 22);
        ck_assert_uint_eq(report.hidden[1], 15);
        ck_assert_uint_lt(report.bytes, report.bytes_before);
        ck_assert_uint_lt(report.parameters, report.parameters_before);
        size_t inputs = report.multiply_adds_before - 24 * 16 - 16;
        ck_assert_uint_eq(report.multiply_adds, inputs / 24 * 22 + 22 * 15 + 15);
        if (with_rows) ck_assert_double_eq_tol(report.valid_loss_cut, report.valid_loss_before, 1e-6);
        if (!with_rows) ck_assert(isnan(report.valid_loss) && report.rows == 0);
        float *one = malloc(held_out.rows * sizeof *one), *other = malloc(held_out.rows * sizeof *one);
        sl_predictor *p;
        ck_ok(sl_predictor_create(idle, NULL, &p));
        ck_ok(sl_predictor_predict(p, &held_out.table, one));
        sl_predictor_free(p);
        ck_ok(sl_predictor_create(narrow, NULL, &p));
        ck_ok(sl_predictor_predict(p, &held_out.table, other));
        sl_predictor_free(p);
        for (size_t r = 0; r < held_out.rows; r++)
            ck_assert_float_eq_tol(one[r], other[r], with_rows ? 1e-3f : 1e-5f);
        free(one);
        free(other);
        /* The narrower model's file opens like any model's. */
        sl_ranker *opened;
        ck_ok(sl_ranker_save(narrow, place.path, NULL));
        ck_ok(sl_ranker_open(place.path, NULL, &opened));
        ck_assert(same_weights(narrow, opened));
        sl_ranker_free(opened);
        sl_ranker_free(narrow);
    }
    sl_ranker_free(idle);
    sl_ranker_free(base);
}
END_TEST

START_TEST(half_the_units_rank_nearly_as_well) {
    sl_ranker *base = trained(DEEP), *taylor, *small;
    sl_prune_params params = cutting(0, 0.5, 0);
    sl_train_params training = planted_one_thread();
    sl_prune_report report = {.struct_size = sizeof report};
    training.rate_scale = 0.3;
    training.teacher = base;
    ck_ok(sl_ranker_prune(base, &rows.source, NULL, &params, &training, &taylor, &report));
    ck_assert_uint_le(report.multiply_adds, report.multiply_adds_before / 2);
    ck_assert_double_gt(report.valid_loss_cut, report.valid_loss);
    ck_assert_uint_gt(report.valid_rows, 100);
    double before = measured(base).auc, after = measured(taylor).auc;
    ck_assert_msg(after > before - 0.01, "AUC %g, then %g", before, after);
    sl_ranker_free(taylor);
    /* The narrow net ranks without training, and better than a random one. */
    training.teacher = NULL;
    training.epochs = 1;
    training.rate_scale = 1e-9;
    ck_ok(sl_ranker_prune(base, &rows.source, NULL, &params, &training, &small, &report));
    ck_assert_double_gt(measured(small).auc, before - 0.1);
    sl_ranker_free(small);
    sl_ranker_free(base);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Weights
 * ------------------------------------------------------------------------------------------------------------- */

START_TEST(the_smallest_weights_are_cut) {
    const sl_net_shape shape = {.layers = 2, .width = {3, 4, 2}};
    const float whole[] = {/* 3 x 4 */ 5,        -1,    6,     2,    -7, 0.5f,  8,  -9, 10, 11, -12, 13,
                           /* 4 biases */ 0.01f, 0,     0.02f, 0,
                           /* 4 x 2 */ 0.1f,     -0.1f, 0.1f,  0.3f, 20, -0.2f, 21, 22,
                           /* 2 biases */ 0,     0.05f};
    enum { SIZE = sizeof whole / sizeof *whole };
    sl_allocator allocator = sl_allocator_of(NULL);
    sl_magnitude *magnitude;
    float dense[SIZE];
    for (int per_layer = 0; per_layer < 2; per_layer++) {
        ck_assert_uint_eq(sl_net_size(&shape), SIZE);
        ck_ok(sl_magnitude_create(&shape, 0.25, 1, per_layer, &allocator, &magnitude));
        memcpy(dense, whole, sizeof whole);
        sl_magnitude_cut(magnitude, dense, 0.25);
        ck_assert_uint_eq(sl_net_zeros(&shape, dense), 5);
        for (size_t i = 0; i < SIZE; i++) {
            static const unsigned char gone[2][SIZE] = {{[16] = 1, [17] = 1, [18] = 1, [19] = 1, [21] = 1},
                                                        {[1] = 1, [5] = 1, [3] = 1, [16] = 1, [17] = 1}};
            ck_assert_float_eq(dense[i], gone[per_layer][i] ? 0 : whole[i]);
        }
        /* Among equal units, the first go. */
        memcpy(dense, whole, sizeof whole);
        sl_magnitude_cut(magnitude, dense, per_layer ? 0.125 : 0.1);
        ck_assert(dense[16] == 0 && (per_layer || dense[17] == 0));
        ck_assert_float_eq(dense[18], 0.1f);
        sl_magnitude_free(magnitude);
    }
}
END_TEST

/* The share of zeros follows the cubic schedule, and no zero comes back, whatever the optimiser does. */
START_TEST(the_schedule_is_cubic_and_zeros_stay) {
    const sl_net_shape shape = {.layers = 2, .width = {40, 20, 10}};
    enum { STEPS = 250, SIZE = 40 * 20 + 20 + 20 * 10 + 10 };
    sl_allocator allocator = sl_allocator_of(NULL);
    sl_magnitude *magnitude;
    static float dense[SIZE];
    static unsigned char gone[SIZE];
    for (size_t i = 0; i < SIZE; i++)
        dense[i] = (float)(2 * sl_random_unit(1, i) - 1);
    ck_ok(sl_magnitude_create(&shape, 0.8, STEPS, 0, &allocator, &magnitude));
    size_t zeros = 0;
    for (uint64_t step = 0; step < STEPS + 20; step++) {
        sl_magnitude_note_zeros(magnitude, dense);
        for (size_t i = 0; i < SIZE; i++)
            dense[i] += (float)(0.1 * sl_random_unit(step + 2, i) - 0.05);
        sl_magnitude_restore_and_cut(magnitude, dense, step);
        size_t now = sl_net_zeros(&shape, dense);
        for (size_t l = 0; l < 2; l++)
            for (size_t i = sl_net_weight_at(&shape, l); i < sl_net_bias_at(&shape, l); i++) {
                ck_assert(!gone[i] || dense[i] == 0);
                gone[i] = dense[i] == 0;
            }
        double left = 1 - fmin((double)(step + 1) / STEPS, 1), wanted = 1000 * 0.8 * (1 - left * left * left);
        /* Cuts come every 2.5 steps. The first takes the most. */
        ck_assert_msg((double)now <= wanted + 1 && (double)now >= wanted - 30, "step %zu: %zu zeros, not %g",
                      (size_t)step, now, wanted);
        ck_assert_uint_ge(now, zeros);
        ck_assert_int_eq(sl_magnitude_is_done(magnitude, step + 1), now == 800);
        zeros = now;
    }
    ck_assert_uint_eq(zeros, 800);
    sl_magnitude_free(magnitude);
}
END_TEST

START_TEST(a_sparse_model_is_trained) {
    sl_ranker *base = trained("\"hidden\": [24, 16], \"optimizer\": \"adam\", \"rate\": 0.003"), *sparse;
    sl_prune_params params = cutting(0, 0, 0.7);
    sl_train_params training = planted_one_thread();
    sl_prune_report report = {.struct_size = sizeof report};
    ck_ok(sl_ranker_prune(base, &rows.source, NULL, &params, &training, &sparse, &report));
    ck_assert_uint_eq(report.dense_zeros, (size_t)(0.7 * (double)report.dense_weights));
    ck_assert_uint_eq(report.multiply_adds, report.multiply_adds_before);
    ck_assert_uint_ge(report.best_epoch, 4);
    ck_assert_msg(measured(sparse).auc > measured(base).auc - 0.02, "AUC %g, then %g", measured(base).auc,
                  measured(sparse).auc);
    sl_ranker_info info = {.struct_size = sizeof info};
    ck_ok(sl_ranker_get_info(sparse, &info));
    ck_assert_uint_eq(info.dense_zeros, report.dense_zeros);
    sl_ranker_free(sparse);
    /* Without rows, all weights are cut at once. Units and weights can go together. */
    params.units = 0.25;
    params.criterion = SL_PRUNE_NORM;
    ck_ok(sl_ranker_prune(base, NULL, NULL, &params, NULL, &sparse, &report));
    ck_assert_uint_eq(report.dense_zeros, (size_t)(0.7 * (double)report.dense_weights));
    ck_assert_uint_eq(report.hidden[0] + report.hidden[1], 30);
    sl_ranker_free(sparse);
    sl_ranker_free(base);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Interrupted, and refused
 * ------------------------------------------------------------------------------------------------------------- */

static int stop_at_once(void *ctx, uint64_t done, uint64_t total) {
    (void)ctx, (void)total;
    return done > 0;
}

START_TEST(interrupted_it_goes_on_to_the_same_bits) {
    sl_ranker *base = trained(DEEP), *whole, *rest;
    sl_prune_params params = cutting(0.25, 0, 0.5);
    sl_train_params training = planted_one_thread();
    training.epochs = 60;
    ck_ok(sl_ranker_prune(base, &few.source, NULL, &params, &training, &whole, NULL));
    training.checkpoint = place.path;
    training.resume = 1;
    training.progress = stop_at_once;
    sl_status status = sl_ranker_prune(base, &few.source, NULL, &params, &training, &rest, NULL);
    ck_assert_int_eq(status, SL_ECANCELED);
    training.progress = NULL;
    ck_ok(sl_ranker_prune(base, &few.source, NULL, &params, &training, &rest, NULL));
    ck_assert(same_weights(whole, rest));
    sl_ranker_free(rest);
    params.weights = 0.6;
    ck_fails(sl_ranker_prune(base, &few.source, NULL, &params, &training, &rest, NULL), SL_EFORMAT, "pruning");
    params = cutting(0.5, 0, 0.5);
    ck_fails(sl_ranker_prune(base, &few.source, NULL, &params, &training, &rest, NULL), SL_EFORMAT, "another spec");
    sl_ranker_free(whole);
    sl_ranker_free(base);
}
END_TEST

static void refuse(const sl_ranker *base, const sl_rows *on, sl_prune_params params, const char *text) {
    sl_ranker *none;
    ck_fails(sl_ranker_prune(base, on, NULL, &params, NULL, &none, NULL), SL_EINVAL, text);
    ck_assert_ptr_null(none);
}

START_TEST(what_means_nothing_is_refused) {
    sl_ranker *base = trained(DEEP), *wide = trained(NULL), *none;
    const double wrong[] = {-0.1, 1, 2, (double)NAN};
    const sl_rows *on = &few.source;
    for (size_t i = 0; i < 4; i++) {
        refuse(base, on, cutting(wrong[i], 0, 0), "units is");
        refuse(base, on, cutting(0, wrong[i], 0), "multiply_adds is");
        refuse(base, on, cutting(0, 0, wrong[i]), "weights is");
    }
    refuse(base, on, cutting(0, 0, 0), "nothing is to be cut");
    refuse(base, on, cutting(0.5, 0.5, 0), "both units and multiply_adds");
    refuse(base, NULL, cutting(0.5, 0, 0), "Taylor criterion looks at rows");
    refuse(wide, on, cutting(0.5, 0, 0), "no deep part");
    refuse(base, on, cutting(0.99, 0, 0), "cannot be cut");
    refuse(base, on, cutting(0, 0.999, 0), "cannot be cut");
    sl_prune_params params = cutting(0.5, 0, 0);
    params.multiple = 0;
    refuse(base, on, params, "multiple is 0");
    const size_t multiples[] = {SIZE_MAX, SIZE_MAX / 2 + 1, 1000};
    for (size_t i = 0; i < sizeof multiples / sizeof *multiples; i++) {
        params.multiple = multiples[i];
        refuse(base, on, params, "rounded up to what they are");
    }
    refuse(base, on, cutting(1e-300, 0, 0), "less than a unit");
    params = cutting(0.5, 0, 0.5);
    params.weights_end = 0;
    refuse(base, on, params, "weights_end");
    params = cutting(0.5, 0, 0);
    params.criterion = (sl_prune_criterion)7;
    refuse(base, on, params, "criterion has the number 7");
    sl_train_params training = planted_one_thread();
    training.init = base;
    params = cutting(0.5, 0, 0);
    ck_fails(sl_ranker_prune(base, on, NULL, &params, &training, &none, NULL), SL_EINVAL, "leave init at NULL");
    ck_fails(sl_ranker_prune(NULL, on, NULL, &params, NULL, &none, NULL), SL_EINVAL, "ranker is NULL");
    sl_ranker_free(base);
    sl_ranker_free(wide);
}
END_TEST

/* Every allocation fails in turn; nothing is lost. */
START_TEST(memory_may_fail_anywhere) {
    sl_ranker *base = trained(DEEP);
    planted fewer;
    planted_make(&fewer, 60, 4);
    fault_allocator faults;
    fault_allocator_init(&faults, 0);
    sl_train_params training = planted_one_thread();
    training.allocator = &faults.allocator;
    training.epochs = 1;
    training.teacher = base;
    for (int with_rows = 0; with_rows < 2; with_rows++) {
        sl_prune_params params = cutting(0.5, 0, 0.5);
        params.criterion = with_rows ? SL_PRUNE_TAYLOR : SL_PRUNE_NORM;
        sl_status status = SL_ENOMEM;
        for (size_t fail_at = 1; status != SL_OK; fail_at++) {
            sl_ranker *ranker;
            faults.calls = 0;
            faults.fail_at = fail_at;
            status = sl_ranker_prune(base, with_rows ? &fewer.source : NULL, NULL, &params, &training, &ranker, NULL);
            ck_assert_msg(status == SL_OK || status == SL_ENOMEM, "allocation %zu: %s", fail_at, sl_last_error());
            sl_ranker_free(ranker);
            ck_assert_msg(faults.live_blocks == 0, "allocation %zu: %zu blocks are lost", fail_at, faults.live_blocks);
            ck_assert_uint_lt(fail_at, 5000);
        }
    }
    planted_free(&fewer);
    sl_ranker_free(base);
}
END_TEST

int main(void) {
    TCase *all = tcase_create("prune");
    tcase_add_checked_fixture(all, set_up, tear_down);
    tcase_add_test(all, the_least_important_go);
    tcase_add_loop_test(all, taylor_is_the_change_of_the_loss, 0, 2);
    tcase_add_test(all, idle_units_go_and_scores_stay);
    tcase_add_test(all, half_the_units_rank_nearly_as_well);
    tcase_add_test(all, the_smallest_weights_are_cut);
    tcase_add_test(all, the_schedule_is_cubic_and_zeros_stay);
    tcase_add_test(all, a_sparse_model_is_trained);
    tcase_add_test(all, interrupted_it_goes_on_to_the_same_bits);
    tcase_add_test(all, what_means_nothing_is_refused);
    tcase_add_test(all, memory_may_fail_anywhere);
    return check_main("prune", &all, 1);
}
