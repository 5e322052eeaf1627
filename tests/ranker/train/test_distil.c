/* Distillation and warm starts: what each learns, that resuming gives the same bits, and what is refused. */
#include "base/random.h"
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
#define KIND  "\"column\": \"kind\", \"loss\": \"multiclass\""
#define VALUE "\"column\": \"value\", \"loss\": \"squared\""
#define WIDE  "\"features\": [\"a\", \"b\", \"tags\", \"ab\"], \"rate\": 0.3"
#define LARGE "\"hidden\": [32, 16], \"rate\": 0.05"
#define SMALL "\"hidden\": [8], \"rate\": 0.05"
#define TRAIN "\"epochs\": 8, \"batch\": 64, \"validation\": 0"
#define SHORT "\"epochs\": 3, \"batch\": 50, \"validation\": 0.2"

static const char *const labels[] = {CLICK, KIND, VALUE};

static planted rows, few, held_out;
static scratch place;

static void set_up(void) {
    planted_make(&rows, 6000, 1);
    planted_make(&few, 300, 3);
    planted_make(&held_out, 3000, 2);
    scratch_open(&place);
}

static void tear_down(void) {
    planted_free(&rows);
    planted_free(&few);
    planted_free(&held_out);
    scratch_close(&place);
}

static sl_train_params taught(const sl_ranker *teacher, double temperature, double soft) {
    sl_train_params params = planted_one_thread();
    params.teacher = teacher;
    params.temperature = temperature;
    params.soft = soft;
    return params;
}

static sl_ranker *train(const char *spec, planted *on, const sl_train_params *params) {
    sl_ranker *ranker;
    ck_ok(sl_ranker_train(spec, &on->source, NULL, params, &ranker, NULL));
    return ranker;
}

static sl_ranker *teacher_of(const char *label) {
    char spec[PLANTED_SPEC];
    sl_train_params params = planted_one_thread();
    planted_spec(spec, label, WIDE, LARGE, TRAIN, "");
    return train(spec, &rows, &params);
}

static sl_metrics measured(sl_ranker *ranker) {
    sl_metrics metrics = {.struct_size = sizeof metrics};
    ck_ok(sl_ranker_evaluate(ranker, &held_out.source, NULL, &metrics));
    sl_ranker_free(ranker);
    return metrics;
}

static int same_weights(const sl_ranker *one, const sl_ranker *other) {
    for (size_t i = 0; i < sl_ranker_tensor_count(one); i++) {
        sl_tensor a, b;
        ck_ok(sl_ranker_get_tensor(one, i, &a));
        ck_ok(sl_ranker_get_tensor(other, i, &b));
        if (a.rows != b.rows || a.columns != b.columns) return 0;
        if (memcmp(a.data, b.data, a.rows * a.columns * sizeof(float)) != 0) return 0;
    }
    return sl_ranker_tensor_count(one) == sl_ranker_tensor_count(other);
}

/* ---------------------------------------------------------------------------------------------------------------
 * The loss
 * ------------------------------------------------------------------------------------------------------------- */

enum { LOSS_ROWS = 7, MOST_OUTPUTS = 3 };

static double cross_entropy(const double *target, const double *logits, size_t outputs) {
    if (outputs == 1) return log(1 + exp(-fabs(logits[0]))) + fmax(logits[0], 0) - target[0] * logits[0];
    double sum = 0, agreement = 0;
    for (size_t o = 0; o < outputs; o++) {
        sum += exp(logits[o]);
        agreement += target[o] * logits[o];
    }
    return log(sum) - agreement;
}

/* A row's loss by definition: (1 - soft) * the label's + soft * T^2 * the teacher's. */
static double defined_loss(sl_loss loss, size_t outputs, const double *student, const double *teacher, double label,
                           double temperature, double soft) {
    double hard[MOST_OUTPUTS] = {0}, target[MOST_OUTPUTS], cooled[MOST_OUTPUTS], sum = 0;
    if (loss == SL_LOSS_SQUARED)
        return (1 - soft) * pow(student[0] - label, 2) + soft * pow(student[0] - teacher[0], 2);
    if (outputs == 1)
        hard[0] = label;
    else
        hard[(size_t)label] = 1;
    for (size_t o = 0; o < outputs; o++) {
        cooled[o] = student[o] / temperature;
        target[o] = exp(teacher[o] / temperature);
        sum += target[o];
    }
    for (size_t o = 0; o < outputs; o++)
        target[o] /= outputs == 1 ? 1 + sum : sum;
    return (1 - soft) * cross_entropy(hard, student, outputs) +
           soft * temperature * temperature * cross_entropy(target, cooled, outputs);
}

/* Compares loss and gradient on the first rows of a training with their definition in double. */
static void check_loss(sl_ranker *teacher, const char *label, double temperature, double soft) {
    char spec[PLANTED_SPEC];
    sl_train_params params = taught(teacher, temperature, soft);
    sl_features *features;
    sl_trainer *trainer;
    sl_predictor *predictor;
    planted_spec(spec, label, WIDE, SMALL, SHORT, "");
    ck_ok(sl_train_fit(spec, &few.source, &params, NULL, &features));
    ck_ok(sl_trainer_create(features, &few.source, NULL, &params, NULL, &trainer));
    ck_ok(sl_predictor_create(teacher, NULL, &predictor));
    size_t outputs = features->outputs;
    sl_loss loss = features->spec->loss;
    float *taught_logits = malloc(few.rows * outputs * sizeof(float));
    ck_ok(sl_predictor_logits(predictor, &few.table, taught_logits));
    float logits[LOSS_ROWS * MOST_OUTPUTS], gradient[LOSS_ROWS * MOST_OUTPUTS], given[LOSS_ROWS], weights[LOSS_ROWS];
    uint32_t numbers[LOSS_ROWS];
    double wanted = 0;
    for (uint32_t r = 0; r < LOSS_ROWS; r++) {
        numbers[r] = 11 * r + 2;
        given[r] = trainer->data.rows.labels[numbers[r]];
        weights[r] = 0.5f + (float)r;
        for (size_t o = 0; o < outputs; o++)
            logits[r * outputs + o] = (float)(4 * sl_random_unit(5, r * outputs + o) - 2);
    }
    const sl_loss_rows judged = {LOSS_ROWS, outputs, logits, given, weights};
    double got = sl_distil_sum(trainer->distil, loss, &judged, numbers, 0.25f, gradient);
    for (size_t r = 0; r < LOSS_ROWS; r++) {
        double student[MOST_OUTPUTS], teachers[MOST_OUTPUTS], step = 1e-5;
        for (size_t o = 0; o < outputs; o++) {
            student[o] = (double)logits[r * outputs + o];
            teachers[o] = (double)taught_logits[numbers[r] * outputs + o];
        }
        double weight = (double)weights[r], label_ = (double)given[r];
        wanted += weight * defined_loss(loss, outputs, student, teachers, label_, temperature, soft);
        for (size_t o = 0; o < outputs; o++) {
            double middle = student[o];
            student[o] = middle + step;
            double above = defined_loss(loss, outputs, student, teachers, label_, temperature, soft);
            student[o] = middle - step;
            double below = defined_loss(loss, outputs, student, teachers, label_, temperature, soft);
            student[o] = middle;
            double slope = 0.25 * weight * (above - below) / (2 * step);
            ck_assert_double_eq_tol((double)gradient[r * outputs + o], slope, 1e-4 * (1 + fabs(slope)));
        }
    }
    ck_assert_double_eq_tol(got, wanted, 1e-4 * (1 + fabs(wanted)));
    free(taught_logits);
    sl_predictor_free(predictor);
    sl_trainer_free(trainer);
}

START_TEST(loss_and_gradient_are_as_defined) {
    for (size_t i = 0; i < sizeof labels / sizeof *labels; i++) {
        sl_ranker *teacher = teacher_of(labels[i]);
        check_loss(teacher, labels[i], 1, 0.5);
        check_loss(teacher, labels[i], 3, 0.7);
        check_loss(teacher, labels[i], 0.5, 1);
        check_loss(teacher, labels[i], 2, 0);
        sl_ranker_free(teacher);
    }
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Learning
 * ------------------------------------------------------------------------------------------------------------- */

/* The same rows without the columns of labels and weights. */
typedef struct unlabelled {
    sl_column columns[PLANTED_COLUMNS];
    sl_table table;
    sl_table_cursor *cursor;
    sl_rows source;
} unlabelled;

static void take_labels(unlabelled *out, const planted *from) {
    size_t count = 0;
    for (size_t c = 0; c < PLANTED_COLUMNS; c++) {
        const char *name = from->columns[c].name;
        int is_label =
            !strcmp(name, "click") || !strcmp(name, "value") || !strcmp(name, "kind") || !strcmp(name, "weight");
        if (!is_label) out->columns[count++] = from->columns[c];
    }
    out->table = from->table;
    out->table.columns = out->columns;
    out->table.column_count = count;
    out->cursor = malloc(sl_table_cursor_size(count));
    out->source.struct_size = sizeof out->source;
    ck_ok(sl_table_rows(&out->table, out->cursor, &out->source));
}

START_TEST(a_student_needs_no_labels) {
    unlabelled bare;
    take_labels(&bare, &rows);
    for (size_t i = 0; i < sizeof labels / sizeof *labels; i++) {
        char spec[PLANTED_SPEC];
        sl_ranker *teacher = teacher_of(labels[i]), *student;
        sl_train_params params = taught(teacher, 2, 1);
        sl_train_report report = {.struct_size = sizeof report};
        planted_spec(spec, labels[i], WIDE, "\"hidden\": [16, 8], \"rate\": 0.05",
                     "\"epochs\": 12, \"batch\": 64, \"validation\": 0.1", "\"weight\": \"weight\"");
        ck_ok(sl_ranker_train(spec, &bare.source, NULL, &params, &student, &report));
        ck_assert(isfinite(report.valid_loss) && isnan(report.valid_auc));
        ck_assert_uint_gt(report.valid_rows, 300);
        sl_metrics theirs = measured(teacher), ours = measured(student);
        if (i == 0) ck_assert_msg(ours.auc > theirs.auc - 0.04, "AUC %g of %g", ours.auc, theirs.auc);
        if (i == 1) ck_assert_double_gt(ours.accuracy, theirs.accuracy - 0.05);
        if (i == 2) ck_assert_double_lt(ours.rmse, 2 * theirs.rmse);
        /* With soft below 1, missing labels are an error. */
        params.soft = 0.9;
        ck_fails(sl_ranker_train(spec, &bare.source, NULL, &params, &student, NULL), SL_ENOTFOUND, "");
    }
    free(bare.cursor);
}
END_TEST

/* With few rows, a teacher that saw many says more than the labels. */
START_TEST(a_teacher_says_more_than_labels) {
    char spec[PLANTED_SPEC];
    sl_ranker *teacher = teacher_of(CLICK);
    planted_spec(spec, CLICK, WIDE, SMALL, TRAIN, "");
    sl_train_params alone = planted_one_thread(), with = taught(teacher, 2, 0.9);
    sl_metrics labelled = measured(train(spec, &few, &alone)), distilled = measured(train(spec, &few, &with));
    ck_assert_msg(distilled.logloss < labelled.logloss - 0.02, "logloss %g distilled, %g by labels", distilled.logloss,
                  labelled.logloss);
    sl_ranker_free(teacher);
}
END_TEST

START_TEST(without_a_soft_share_labels_teach) {
    char spec[PLANTED_SPEC];
    planted_spec(spec, CLICK, WIDE, SMALL, SHORT, "");
    sl_ranker *teacher = teacher_of(CLICK);
    sl_train_params alone = planted_one_thread(), with = taught(teacher, 4, 0);
    sl_ranker *one = train(spec, &few, &alone), *other = train(spec, &few, &with);
    ck_assert(same_weights(one, other));
    sl_ranker_free(one);
    sl_ranker_free(other);
    sl_ranker_free(teacher);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Beginning with a model
 * ------------------------------------------------------------------------------------------------------------- */

START_TEST(training_begins_with_the_model) {
    sl_ranker *start = teacher_of(CLICK), *tuned;
    sl_train_params params = planted_one_thread();
    params.init = start;
    params.epochs = 1;
    params.rate_scale = 1e-7;
    /* Other rows: the model's vocabularies encode their values, and the spec is the model's. */
    ck_ok(sl_ranker_train(NULL, &few.source, NULL, &params, &tuned, NULL));
    for (size_t i = 0; i < sl_ranker_tensor_count(start); i++) {
        sl_tensor a, b;
        ck_ok(sl_ranker_get_tensor(start, i, &a));
        ck_ok(sl_ranker_get_tensor(tuned, i, &b));
        ck_assert_str_eq(a.name, b.name);
        ck_assert_uint_eq(a.rows, b.rows);
        if (strncmp(a.name, "dense", 5) != 0) continue;
        for (size_t w = 0; w < a.rows * a.columns; w++)
            ck_assert_float_eq_tol(a.data[w], b.data[w], 1e-5f);
    }
    sl_metrics before = measured(start), after = measured(tuned);
    ck_assert_double_eq_tol(before.logloss, after.logloss, 1e-3);
}
END_TEST

/* In a warm start, the seed of the parameters counts: rows come in another order. */
START_TEST(the_seed_counts_with_a_model) {
    char spec[PLANTED_SPEC];
    sl_train_params params = planted_one_thread();
    planted_spec(spec, CLICK, WIDE, LARGE, "\"epochs\": 1, \"batch\": 10, \"validation\": 0", "");
    params.init = teacher_of(CLICK);
    sl_ranker *made[3];
    for (size_t i = 0; i < 3; i++) {
        params.seed = 7 + i / 2;
        made[i] = train(spec, &few, &params);
    }
    ck_assert(same_weights(made[0], made[1]) && !same_weights(made[0], made[2]));
    for (size_t i = 0; i < 3; i++)
        sl_ranker_free(made[i]);
    sl_ranker_free((sl_ranker *)(uintptr_t)params.init);
}
END_TEST

START_TEST(fine_tuning_learns_on) {
    char first[PLANTED_SPEC], longer[PLANTED_SPEC];
    sl_train_params params = planted_one_thread();
    planted_spec(first, CLICK, WIDE, SMALL, "\"epochs\": 1, \"batch\": 64, \"validation\": 0", "");
    planted_spec(longer, CLICK, WIDE, "\"hidden\": [8], \"rate\": 0.03, \"dropout\": 0.1", TRAIN, "");
    params.init = NULL;
    sl_ranker *start = train(first, &rows, &params);
    params.init = start;
    sl_ranker *tuned = train(longer, &rows, &params);
    sl_metrics before = measured(start), after = measured(tuned);
    ck_assert_msg(after.auc > before.auc + 0.01, "AUC %g, then %g", before.auc, after.auc);
}
END_TEST

/* The first step of AdaGrad moves a weight by the rate, whatever its gradient. */
START_TEST(the_rate_is_scaled) {
    char spec[PLANTED_SPEC];
    sl_train_params params = planted_one_thread();
    sl_features *features;
    sl_trainer *trainer;
    planted_spec(spec, CLICK, WIDE, "\"hidden\": [8], \"rate\": 0.0625", SHORT, "");
    params.rate_scale = 0.5;
    ck_ok(sl_train_fit(spec, &few.source, &params, NULL, &features));
    ck_ok(sl_trainer_create(features, &few.source, NULL, &params, NULL, &trainer));
    float *before = malloc(trainer->dense_size * sizeof *before), most = 0;
    memcpy(before, trainer->weights.dense, trainer->dense_size * sizeof *before);
    sl_dataset_shuffle(&trainer->data, 1, 0);
    ck_ok(sl_trainer_forward(trainer));
    ck_ok(sl_trainer_collect(trainer));
    sl_trainer_apply(trainer);
    for (size_t i = 0; i < trainer->dense_size; i++)
        most = fmaxf(most, fabsf(trainer->weights.dense[i] - before[i]));
    ck_assert_float_eq_tol(most, 0.03125f, 1e-5f);
    free(before);
    sl_trainer_free(trainer);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Interrupted, and refused
 * ------------------------------------------------------------------------------------------------------------- */

static int stop_at_once(void *ctx, uint64_t done, uint64_t total) {
    (void)ctx, (void)total;
    return done > 0;
}

/* Cancels a training and lets it go on. */
static void check_resumed(const char *spec, sl_train_params params) {
    sl_ranker *none;
    sl_ranker *whole = train(spec, &few, &params);
    params.checkpoint = place.path;
    params.resume = 1;
    params.progress = stop_at_once;
    ck_fails(sl_ranker_train(spec, &few.source, NULL, &params, &none, NULL), SL_ECANCELED, "");
    params.progress = NULL;
    sl_ranker *rest = train(spec, &few, &params);
    ck_assert(same_weights(whole, rest));
    sl_ranker_free(whole);
    sl_ranker_free(rest);
}

START_TEST(interrupted_it_goes_on_to_the_same_bits) {
    char spec[PLANTED_SPEC];
    sl_ranker *teacher = teacher_of(CLICK);
    /* Long enough for a call of progress. */
    planted_spec(spec, CLICK, WIDE, LARGE, "\"epochs\": 100, \"batch\": 10, \"validation\": 0.1, \"patience\": 0", "");
    sl_train_params params = taught(teacher, 2, 0.5);
    check_resumed(spec, params);
    ck_assert_int_eq(unlink(place.path), 0);
    params.soft = 1;
    check_resumed(spec, params);
    ck_assert_int_eq(unlink(place.path), 0);
    params = planted_one_thread();
    params.init = teacher;
    params.rate_scale = 0.1;
    check_resumed(spec, params);
    sl_ranker_free(teacher);
}
END_TEST

START_TEST(other_trainings_are_refused) {
    char spec[PLANTED_SPEC];
    sl_ranker *teacher = teacher_of(CLICK), *none;
    planted_spec(spec, CLICK, WIDE, LARGE, SHORT, "");
    sl_train_params params = taught(teacher, 2, 0.5);
    params.checkpoint = place.path;
    sl_ranker_free(train(spec, &few, &params));
    params.resume = 1;
    sl_ranker_free(train(spec, &few, &params));
    sl_train_params others[5];
    for (size_t i = 0; i < 5; i++)
        others[i] = params;
    others[0].temperature = 3;
    others[1].soft = 0.4;
    others[2].teacher = NULL;
    others[3].init = teacher;
    others[4].rate_scale = 0.5;
    for (size_t i = 0; i < 5; i++)
        ck_fails(sl_ranker_train(spec, &few.source, NULL, &others[i], &none, NULL), SL_EFORMAT, "another teacher");
    sl_ranker_free(teacher);
}
END_TEST

/* Expects SL_EINVAL and a message that contains `text`. */
static void refuse(const char *spec, sl_train_params params, const char *text) {
    sl_ranker *none;
    ck_fails(sl_ranker_train(spec, &few.source, NULL, &params, &none, NULL), SL_EINVAL, text);
    ck_assert_ptr_null(none);
}

START_TEST(what_means_nothing_is_refused) {
    char spec[PLANTED_SPEC], other[PLANTED_SPEC];
    sl_ranker *clicks = teacher_of(CLICK), *kinds = teacher_of(KIND);
    const double wrong[] = {-0.1, 0, (double)NAN, (double)INFINITY};
    planted_spec(spec, CLICK, WIDE, LARGE, SHORT, "");
    refuse(spec, taught(clicks, 1e-300, 0.5), "temperature");
    refuse(spec, taught(clicks, 1e300, 0.5), "temperature");
    for (size_t i = 0; i < 4; i++) {
        refuse(spec, taught(clicks, wrong[i], 0.5), "temperature");
        if (i != 1) refuse(spec, taught(clicks, 2, wrong[i]), "soft");
        sl_train_params params = planted_one_thread();
        params.rate_scale = wrong[i];
        refuse(spec, params, "rate_scale");
    }
    refuse(spec, taught(clicks, 2, 1.01), "soft");
    refuse(spec, taught(kinds, 2, 0.5), "another loss");
    planted_spec(other, "\"column\": \"kind\", \"loss\": \"multiclass\", \"classes\": [\"low\", \"top\", \"mid\"]",
                 WIDE, LARGE, SHORT, "");
    refuse(other, taught(kinds, 2, 0.5), "class 1 is 'mid' for the teacher and 'top'");
    planted_spec(other,
                 "\"column\": \"kind\", \"loss\": \"multiclass\", \"classes\": [\"low\", \"mid\", \"top\", \"x\"]",
                 WIDE, LARGE, SHORT, "");
    refuse(other, taught(kinds, 2, 0.5), "the teacher has 3 outputs, the spec's model 4");
    sl_train_params params = planted_one_thread();
    params.init = clicks;
    planted_spec(other, CLICK, WIDE, "\"hidden\": [32, 17]", SHORT, "");
    refuse(other, params, "other layers");
    planted_spec(other, CLICK, WIDE, "\"hidden\": [32, 16], \"activation\": \"tanh\"", SHORT, "");
    refuse(other, params, "other layers");
    planted_spec(other, CLICK, NULL, LARGE, SHORT, "");
    refuse(other, params, "\"wide\" or \"deep\"");
    planted_spec(other, VALUE, WIDE, LARGE, SHORT, "");
    refuse(other, params, "\"label\" or \"features\"");
    params.init = NULL;
    refuse(NULL, params, "NULL");
    sl_ranker_free(clicks);
    sl_ranker_free(kinds);
}
END_TEST

/* Rows that change at some reading. */
typedef struct fickle {
    const sl_rows *first, *then, *now;
    size_t changes_at, rewinds; /* readings, counted from 1 */
} fickle;

static sl_status fickle_next(void *ctx, size_t max_rows, sl_table *block) {
    const fickle *f = ctx;
    return f->now->next(f->now->ctx, max_rows, block);
}

static sl_status fickle_rewind(void *ctx) {
    fickle *f = ctx;
    f->now = ++f->rewinds < f->changes_at ? f->first : f->then;
    return f->now->rewind(f->now->ctx);
}

/* The teacher reads the rows last. By then there may be more than fit, or fewer: of the training rows, or of the
 * validation rows. */
START_TEST(rows_that_change_are_refused) {
    char spec[PLANTED_SPEC];
    sl_ranker *teacher = teacher_of(CLICK);
    planted fewer;
    planted_make(&fewer, 299, 3);
    const sl_rows *others[] = {&rows.source, &fewer.source};
    planted_spec(spec, CLICK, WIDE, SMALL, SHORT, "");
    for (size_t i = 0; i < 4; i++)
        for (size_t at = 1, last = i < 2 ? 3 : 2; at <= last + 1; at++) {
            fault_allocator faults;
            fickle f = {.first = &few.source, .then = others[i % 2], .changes_at = at};
            const sl_rows source = {sizeof source, &f, fickle_next, fickle_rewind};
            sl_train_params params = taught(teacher, 2, 0.5);
            sl_ranker *ranker;
            fault_allocator_init(&faults, 0);
            params.allocator = &faults.allocator;
            sl_status status = i < 2 ? sl_ranker_train(spec, &source, NULL, &params, &ranker, NULL)
                                     : sl_ranker_train(spec, &held_out.source, &source, &params, &ranker, NULL);
            if (at == last)
                ck_fails(status, SL_EVALUE, "the rows are others at another reading");
            else
                ck_ok(status);
            ck_assert_uint_eq(f.rewinds, last);
            sl_ranker_free(ranker);
            ck_assert_uint_eq(faults.live_blocks, 0);
        }
    planted_free(&fewer);
    sl_ranker_free(teacher);
}
END_TEST

/* Every allocation fails in turn; nothing is lost. */
START_TEST(memory_may_fail_anywhere) {
    char spec[PLANTED_SPEC];
    sl_ranker *teacher = teacher_of(KIND);
    planted_spec(spec, KIND, WIDE, "\"hidden\": [32, 16]", "\"epochs\": 1, \"batch\": 32", "");
    planted_check_memory(spec, taught(teacher, 2, 1));
    sl_train_params params = taught(teacher, 2, 0.5);
    params.init = teacher;
    planted_check_memory(spec, params);
    sl_ranker_free(teacher);
}
END_TEST

int main(void) {
    TCase *all = tcase_create("distil");
    tcase_add_checked_fixture(all, set_up, tear_down);
    tcase_add_test(all, loss_and_gradient_are_as_defined);
    tcase_add_test(all, a_student_needs_no_labels);
    tcase_add_test(all, a_teacher_says_more_than_labels);
    tcase_add_test(all, without_a_soft_share_labels_teach);
    tcase_add_test(all, training_begins_with_the_model);
    tcase_add_test(all, the_seed_counts_with_a_model);
    tcase_add_test(all, fine_tuning_learns_on);
    tcase_add_test(all, the_rate_is_scaled);
    tcase_add_test(all, interrupted_it_goes_on_to_the_same_bits);
    tcase_add_test(all, other_trainings_are_refused);
    tcase_add_test(all, what_means_nothing_is_refused);
    tcase_add_test(all, rows_that_change_are_refused);
    tcase_add_test(all, memory_may_fail_anywhere);
    return check_main("distil", &all, 1);
}
