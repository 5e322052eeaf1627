/* Predictions: against a plain reading of the weights, in tiles of every size, from many threads, without allocations.
 * The link counts the library's allocations. */
#include "base/random.h"
#include "ranker/features/vocabulary.h"
#include "ranker/model/model.h"
#include "tests/support/check_main.h"
#include "tests/support/faults.h"
#include "tests/support/planted.h"
#include "tests/support/system_calls.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROWS  700u
#define CLICK "\"column\": \"click\""
#define KIND  "\"column\": \"kind\", \"loss\": \"multiclass\""
#define VALUE "\"column\": \"value\", \"loss\": \"squared\""
#define DEEP  "\"hidden\": [20, 9], \"embedding_init\": 0.5"
#define TRAIN "\"epochs\": 1"

static planted rows;

static void set_up(void) {
    planted_make(&rows, ROWS, 1);
}

static void tear_down(void) {
    planted_free(&rows);
}

/* A ranker with weights everywhere, made without training. */
static sl_ranker *make_ranker(const char *label, const char *wide, const char *deep, const sl_allocator *allocator) {
    char spec[PLANTED_SPEC];
    sl_train_params params;
    sl_ranker *fresh, *ranker;
    planted_spec(spec, label, wide, deep, TRAIN, "");
    sl_train_params_init(&params);
    params.allocator = allocator;
    ck_assert_msg(sl_ranker_create(spec, &rows.source, &params, &fresh) == SL_OK, "%s", sl_last_error());
    size_t count = wide ? 2 : 0;
    sl_tensor given[2];
    float *values[2] = {NULL, NULL};
    for (size_t i = 0; i < count; i++) {
        ck_assert_int_eq(sl_ranker_get_tensor(fresh, i, &given[i]), SL_OK);
        size_t size = given[i].rows * given[i].columns;
        values[i] = malloc(size * sizeof(float));
        for (size_t w = 0; w < size; w++)
            values[i][w] = (float)(2 * sl_random_unit(77 + i, w) - 1);
        given[i].data = values[i];
    }
    ck_assert_msg(sl_ranker_with_tensors(fresh, given, count, &ranker) == SL_OK, "%s", sl_last_error());
    free(values[0]);
    free(values[1]);
    sl_ranker_free(fresh);
    return ranker;
}

static sl_predictor *predictor_of(const sl_ranker *ranker, size_t max_rows, size_t threads,
                                  const sl_allocator *allocator) {
    sl_predictor_params params;
    sl_predictor *predictor;
    sl_predictor_params_init(&params);
    params.max_rows = max_rows;
    params.threads = threads;
    params.allocator = allocator;
    ck_assert_msg(sl_predictor_create(ranker, &params, &predictor) == SL_OK, "%s", sl_last_error());
    return predictor;
}

static void predict(sl_predictor *predictor, const sl_table *table, float *scores) {
    ck_assert_msg(sl_predictor_predict(predictor, table, scores) == SL_OK, "%s", sl_last_error());
}

/* ---------------------------------------------------------------------------------------------------------------
 * Against a plain reading of what the header says
 * ------------------------------------------------------------------------------------------------------------- */

static sl_tensor tensor_of(const sl_ranker *ranker, const char *name) {
    sl_tensor tensor;
    for (size_t i = 0; i < sl_ranker_tensor_count(ranker); i++) {
        ck_assert_int_eq(sl_ranker_get_tensor(ranker, i, &tensor), SL_OK);
        if (strcmp(tensor.name, name) == 0) return tensor;
    }
    ck_abort_msg("no tensor %s", name);
}

static sl_feature_info feature_of(const sl_ranker *ranker, size_t i) {
    sl_feature_info info = {.struct_size = sizeof info};
    ck_assert_int_eq(sl_ranker_get_feature(ranker, i, &info), SL_OK);
    return info;
}

/* Gets the ids of a feature in a row. */
static size_t ids_of(const sl_ranker_info *model, const sl_feature_info *f, const sl_encoded *e, size_t r,
                     const uint32_t **ids) {
    if (f->form == SL_FORM_ID) {
        *ids = e->ids + r * model->id_count + f->at;
        return 1;
    }
    const uint32_t *start = e->bag_start + r * model->bag_count + f->at;
    *ids = e->bag_ids + start[0];
    return start[1] - start[0];
}

static void add_wide(const sl_ranker *ranker, const sl_ranker_info *model, const sl_encoded *e, size_t r, double *out) {
    sl_tensor wide = tensor_of(ranker, "wide");
    for (size_t i = 0; i < model->features; i++) {
        sl_feature_info f = feature_of(ranker, i);
        if (f.wide_at == SIZE_MAX) continue;
        const uint32_t *ids = NULL;
        size_t count = f.form == SL_FORM_DENSE ? f.width : ids_of(model, &f, e, r, &ids);
        for (size_t k = 0; k < count; k++) {
            size_t row = f.wide_at + (ids ? ids[k] : k);
            double x = ids ? 1 : (double)e->dense[r * model->dense_width + f.at + k];
            for (size_t o = 0; o < model->outputs; o++)
                out[o] += x * (double)wide.data[row * model->outputs + o];
        }
    }
}

static void deep_inputs(const sl_ranker *ranker, const sl_ranker_info *model, const sl_encoded *e, size_t r,
                        double *out) {
    for (size_t i = 0; i < model->features; i++) {
        sl_feature_info f = feature_of(ranker, i);
        for (size_t d = 0; d < f.deep_width && f.deep_at != SIZE_MAX; d++) {
            double *to = &out[f.deep_at + d];
            *to = 0;
            if (f.form == SL_FORM_DENSE) {
                *to = (double)e->dense[r * model->dense_width + f.at + d];
                continue;
            }
            const uint32_t *ids;
            size_t count = ids_of(model, &f, e, r, &ids);
            sl_tensor table = tensor_of(ranker, f.tensor);
            for (size_t k = 0; k < count; k++) {
                double value = (double)table.data[ids[k] * table.columns + d];
                *to = f.combine == 2 && k ? fmax(*to, value) : f.combine == 2 ? value : *to + value;
            }
            if (f.form == SL_FORM_BAG && f.combine == 1 && count) *to /= (double)count;
        }
    }
}

static void add_deep(const sl_ranker *ranker, const sl_ranker_info *model, const sl_encoded *e, size_t r, double *out) {
    double x[64], y[64];
    deep_inputs(ranker, model, e, r, x);
    for (size_t layer = 0; layer < model->layers; layer++) {
        char name[40];
        snprintf(name, sizeof name, "dense.%zu.weight", layer);
        sl_tensor weight = tensor_of(ranker, name);
        snprintf(name, sizeof name, "dense.%zu.bias", layer);
        sl_tensor bias = tensor_of(ranker, name);
        for (size_t o = 0; o < weight.columns; o++) {
            y[o] = (double)bias.data[o];
            for (size_t i = 0; i < weight.rows; i++)
                y[o] += x[i] * (double)weight.data[i * weight.columns + o];
            if (layer + 1 < model->layers) y[o] = fmax(y[o], 0);
        }
        memcpy(x, y, weight.columns * sizeof *x);
    }
    for (size_t o = 0; o < model->outputs; o++)
        out[o] += x[o];
}

static void link_plainly(const sl_ranker_info *model, double *z) {
    double sum = 0;
    for (size_t o = 0; o < model->outputs; o++) {
        z[o] = model->loss == SL_LOSS_LOGISTIC ? 1 / (1 + exp(-z[o])) : z[o];
        if (model->loss == SL_LOSS_MULTICLASS) z[o] = exp(z[o]);
        sum += z[o];
    }
    for (size_t o = 0; o < model->outputs && model->loss == SL_LOSS_MULTICLASS; o++)
        z[o] /= sum;
}

static void check_plainly(const char *label, const char *wide, const char *deep) {
    sl_ranker *ranker = make_ranker(label, wide, deep, NULL);
    sl_ranker_info model = {.struct_size = sizeof model};
    ck_assert_int_eq(sl_ranker_get_info(ranker, &model), SL_OK);
    sl_predictor *predictor = predictor_of(ranker, ROWS, 1, NULL);
    float *scores = malloc(ROWS * model.outputs * sizeof *scores);
    predict(predictor, &rows.table, scores);
    sl_encoded e = {.struct_size = sizeof e};
    ck_assert_int_eq(sl_predictor_encode(predictor, &rows.table, &e), SL_OK);
    ck_assert_uint_eq(e.rows, ROWS);
    sl_tensor bias = tensor_of(ranker, "bias");
    double least = INFINITY, most = -INFINITY;
    for (size_t r = 0; r < ROWS; r++) {
        double z[3];
        for (size_t o = 0; o < model.outputs; o++)
            z[o] = (double)bias.data[o];
        if (wide) add_wide(ranker, &model, &e, r, z);
        if (deep) add_deep(ranker, &model, &e, r, z);
        link_plainly(&model, z);
        for (size_t o = 0; o < model.outputs; o++)
            ck_assert_double_eq_tol((double)scores[r * model.outputs + o], z[o], 2e-5);
        least = fmin(least, z[0]);
        most = fmax(most, z[0]);
    }
    ck_assert_double_gt(most - least, 0.1);
    free(scores);
    sl_predictor_free(predictor);
    sl_ranker_free(ranker);
}

START_TEST(predictions_are_what_the_weights_say) {
    static const char *const labels[] = {CLICK, VALUE, KIND};
    for (size_t i = 0; i < 3; i++) {
        check_plainly(labels[i], "", DEEP);
        check_plainly(labels[i], "", NULL);
        check_plainly(labels[i], NULL, DEEP);
    }
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * However it is cut
 * ------------------------------------------------------------------------------------------------------------- */

START_TEST(tiles_and_threads_change_nothing) {
    sl_ranker *ranker = make_ranker(CLICK, "", DEEP, NULL);
    static float whole[ROWS], parts[ROWS];
    sl_predictor *predictor = predictor_of(ranker, ROWS, 1, NULL);
    predict(predictor, &rows.table, whole);
    sl_predictor_free(predictor);
    for (size_t threads = 1; threads <= 3; threads++)
        for (size_t max_rows = 1; max_rows <= 1000; max_rows = max_rows * 3 + 1) {
            predictor = predictor_of(ranker, max_rows, threads, NULL);
            memset(parts, 0, sizeof parts);
            predict(predictor, &rows.table, parts);
            for (size_t r = 0; r < ROWS; r++)
                ck_assert_double_eq_tol((double)whole[r], (double)parts[r], 1e-6);
            sl_predictor_free(predictor);
        }
    sl_ranker_free(ranker);
}
END_TEST

/* A bad row of the second thread: the caller gets its message. There are as many tiles as threads, and then more. */
START_TEST(a_bad_row_of_any_thread_is_named) {
    sl_ranker *ranker = make_ranker(CLICK, "", DEEP, NULL);
    static float scores[ROWS];
    rows.x[400] = rows.x[ROWS - 1] = INFINITY;
    for (size_t threads = 1; threads <= 3; threads++)
        for (size_t max_rows = 40; max_rows <= ROWS; max_rows += 330) {
            sl_predictor *predictor = predictor_of(ranker, max_rows, threads, NULL);
            ck_assert_int_eq(sl_predictor_predict(NULL, &rows.table, scores), SL_EINVAL);
            ck_assert_int_eq(sl_predictor_predict(predictor, &rows.table, scores), SL_EVALUE);
            ck_assert_msg(strstr(sl_last_error(), "row 400: column 'x': the number is infinite") != NULL, "%s",
                          sl_last_error());
            sl_predictor_free(predictor);
        }
    sl_ranker_free(ranker);
}
END_TEST

START_TEST(encoded_rows_give_the_same) {
    sl_ranker *ranker = make_ranker(KIND, "", DEEP, NULL);
    sl_predictor *encoder = predictor_of(ranker, ROWS, 1, NULL), *predictor = predictor_of(ranker, 64, 2, NULL);
    static float by_table[3 * ROWS], by_code[3 * ROWS];
    sl_encoded e = {.struct_size = sizeof e};
    ck_assert_int_eq(sl_predictor_encode(encoder, &rows.table, &e), SL_OK);
    predict(predictor, &rows.table, by_table);
    ck_assert_int_eq(sl_predictor_predict_encoded(predictor, &e, by_code), SL_OK);
    ck_assert_mem_eq(by_table, by_code, sizeof by_table);
    ck_assert_int_eq(sl_predictor_encode(predictor, &rows.table, &e), SL_ELIMIT);
    sl_predictor_free(encoder);
    sl_predictor_free(predictor);
    sl_ranker_free(ranker);
}
END_TEST

START_TEST(bags_may_all_be_empty) {
    sl_ranker *ranker = make_ranker(CLICK, "", DEEP, NULL);
    sl_predictor *predictor = predictor_of(ranker, ROWS, 1, NULL);
    static const int64_t empty[3];
    float scores[2], again[2];
    sl_column columns[PLANTED_COLUMNS];
    memcpy(columns, rows.columns, sizeof columns);
    sl_table table = rows.table;
    table.rows = 2;
    table.columns = columns;
    for (size_t i = 0; i < PLANTED_COLUMNS; i++)
        if (strcmp(columns[i].name, "tags") == 0) columns[i].offsets = empty;
    predict(predictor, &table, scores);
    sl_encoded encoded = {.struct_size = sizeof encoded};
    ck_assert_int_eq(sl_predictor_encode(predictor, &table, &encoded), SL_OK);
    for (int i = 0; i < 2; i++) {
        ck_assert_msg(sl_predictor_predict_encoded(predictor, &encoded, again) == SL_OK, "%s", sl_last_error());
        ck_assert_mem_eq(scores, again, sizeof scores);
        encoded.bag_ids = NULL;
    }
    sl_predictor_free(predictor);
    sl_ranker_free(ranker);
}
END_TEST

START_TEST(ids_out_of_range_are_refused) {
    sl_ranker *ranker = make_ranker(CLICK, "", DEEP, NULL);
    sl_ranker_info model = {.struct_size = sizeof model};
    ck_assert_int_eq(sl_ranker_get_info(ranker, &model), SL_OK);
    sl_predictor *predictor = predictor_of(ranker, ROWS, 1, NULL);
    static float scores[ROWS];
    sl_encoded e = {.struct_size = sizeof e};
    for (size_t i = 0; i < model.features; i++) {
        sl_feature_info f = feature_of(ranker, i);
        if (f.form == SL_FORM_DENSE) continue;
        ck_assert_int_eq(sl_predictor_encode(predictor, &rows.table, &e), SL_OK);
        const uint32_t *ids = NULL;
        size_t r = 100;
        while (ids_of(&model, &f, &e, r, &ids) == 0)
            r++;
        *(uint32_t *)(uintptr_t)ids = (uint32_t)f.size;
        ck_assert_int_eq(sl_predictor_predict_encoded(predictor, &e, scores), SL_EINVAL);
        ck_assert_ptr_nonnull(strstr(sl_last_error(), f.name));
        *(uint32_t *)(uintptr_t)ids = (uint32_t)f.size - 1;
        ck_assert_int_eq(sl_predictor_predict_encoded(predictor, &e, scores), SL_OK);
    }
    ck_assert_int_eq(sl_predictor_encode(predictor, &rows.table, &e), SL_OK);
    ((uint32_t *)(uintptr_t)e.bag_start)[9] = UINT32_MAX;
    ck_assert_int_eq(sl_predictor_predict_encoded(predictor, &e, scores), SL_EINVAL);
    /* Each array alone is missing. */
    for (size_t i = 0; i < 4; i++) {
        ck_assert_int_eq(sl_predictor_encode(predictor, &rows.table, &e), SL_OK);
        if (i == 0) e.ids = NULL;
        if (i == 1) e.dense = NULL;
        if (i == 2) e.bag_start = NULL;
        if (i == 3) e.bag_ids = NULL;
        ck_assert_int_eq(sl_predictor_predict_encoded(predictor, &e, scores), SL_EINVAL);
    }
    sl_predictor_free(predictor);
    sl_ranker_free(ranker);
}
END_TEST

START_TEST(columns_that_are_missing_are_named) {
    sl_ranker *ranker = make_ranker(CLICK, "", DEEP, NULL);
    sl_predictor *predictor = predictor_of(ranker, 50, 2, NULL);
    static float scores[ROWS], again[ROWS];
    predict(predictor, &rows.table, scores);
    sl_table table = rows.table;
    sl_column columns[PLANTED_COLUMNS];
    /* Unused columns such as the label may be missing, and columns come in any order. */
    for (size_t i = 0; i < 5; i++)
        columns[i] = rows.columns[4 - i];
    table.columns = columns;
    table.column_count = 5;
    predict(predictor, &table, again);
    ck_assert_mem_eq(scores, again, sizeof scores);
    table.column_count = 4;
    ck_assert_int_eq(sl_predictor_predict(predictor, &table, again), SL_ENOTFOUND);
    ck_assert_ptr_nonnull(strstr(sl_last_error(), "'x'"));
    /* A bad row in a tile of another thread. */
    float *x = rows.x;
    float kept = x[ROWS - 20];
    x[ROWS - 20] = INFINITY;
    ck_assert_int_eq(sl_predictor_predict(predictor, &rows.table, again), SL_EVALUE);
    ck_assert_ptr_nonnull(strstr(sl_last_error(), "680"));
    x[ROWS - 20] = kept;
    predict(predictor, &rows.table, again);
    ck_assert_mem_eq(scores, again, sizeof scores);
    sl_predictor_free(predictor);
    sl_ranker_free(ranker);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Threads and memory
 * ------------------------------------------------------------------------------------------------------------- */

typedef struct caller {
    const sl_ranker *ranker;
    const float *wanted;
    int wrong;
} caller;

static void *call(void *ctx) {
    caller *c = ctx;
    float scores[ROWS];
    sl_predictor_params params;
    sl_predictor *predictor;
    sl_predictor_params_init(&params);
    params.max_rows = 128;
    c->wrong = sl_predictor_create(c->ranker, &params, &predictor) != SL_OK;
    for (int i = 0; i < 20 && !c->wrong; i++)
        c->wrong = sl_predictor_predict(predictor, &rows.table, scores) != SL_OK ||
                   memcmp(scores, c->wanted, sizeof scores) != 0;
    sl_predictor_free(predictor);
    return NULL;
}

START_TEST(one_ranker_serves_many_threads) {
    enum { CALLERS = 4 };
    sl_ranker *ranker = make_ranker(CLICK, "", DEEP, NULL);
    static float wanted[ROWS];
    sl_predictor *predictor = predictor_of(ranker, 128, 1, NULL);
    predict(predictor, &rows.table, wanted);
    caller callers[CALLERS];
    pthread_t threads[CALLERS];
    for (size_t i = 0; i < CALLERS; i++) {
        callers[i] = (caller){ranker, wanted, 0};
        ck_assert_int_eq(pthread_create(&threads[i], NULL, call, &callers[i]), 0);
    }
    for (size_t i = 0; i < CALLERS; i++) {
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
        ck_assert_int_eq(callers[i].wrong, 0);
    }
    sl_predictor_free(predictor);
    sl_ranker_free(ranker);
}
END_TEST

/* The predictor's threads do not survive fork(). Waiting for them would hang. */
START_TEST(a_child_predicts) {
    sl_ranker *ranker = make_ranker(CLICK, "", DEEP, NULL);
    static float wanted[ROWS], found[ROWS];
    sl_predictor *predictor = predictor_of(ranker, 128, 2, NULL);
    predict(predictor, &rows.table, wanted);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0)
        _exit(sl_predictor_predict(predictor, &rows.table, found) != SL_OK || memcmp(found, wanted, sizeof found) != 0);
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    sl_predictor_free(predictor);
    sl_ranker_free(ranker);
}
END_TEST

START_TEST(a_warm_prediction_takes_no_memory) {
    for (int deep = 0; deep < 2; deep++)
        for (size_t threads = 1; threads <= 2; threads++) {
            fault_allocator faults;
            fault_allocator_init(&faults, 0);
            sl_ranker *ranker = make_ranker(KIND, "", deep ? DEEP : NULL, NULL);
            sl_predictor *predictor = predictor_of(ranker, 100, threads, &faults.allocator);
            static float scores[3 * ROWS];
            predict(predictor, &rows.table, scores);
            /* Check's assertions allocate, so none stands here. */
            size_t before = faults.calls, system = system_calls(), failed = 0;
            for (int i = 0; i < 5; i++)
                failed += sl_predictor_predict(predictor, &rows.table, scores) != SL_OK;
            before = faults.calls - before;
            system = system_calls() - system;
            ck_assert_uint_eq(failed, 0);
            ck_assert_uint_eq(before, 0);
            ck_assert_uint_eq(system, 0);
            sl_predictor_free(predictor);
            ck_assert_uint_eq(faults.live_blocks, 0);
            sl_ranker_free(ranker);
        }
}
END_TEST

START_TEST(memory_may_fail_anywhere) {
    fault_allocator faults;
    fault_allocator_init(&faults, 0);
    sl_ranker *ranker = make_ranker(CLICK, "", DEEP, NULL);
    static float scores[ROWS];
    sl_status status = SL_ENOMEM;
    for (size_t fail_at = 1; status != SL_OK; fail_at++) {
        sl_predictor_params params;
        sl_predictor *predictor;
        sl_predictor_params_init(&params);
        params.allocator = &faults.allocator;
        faults.calls = 0;
        faults.fail_at = fail_at;
        status = sl_predictor_create(ranker, &params, &predictor);
        if (status == SL_OK) status = sl_predictor_predict(predictor, &rows.table, scores);
        ck_assert(status == SL_OK || status == SL_ENOMEM);
        if (status != SL_OK && predictor) predict(predictor, &rows.table, scores);
        sl_predictor_free(predictor);
        ck_assert_uint_eq(faults.live_blocks, 0);
    }
    sl_ranker_free(ranker);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * The ranker itself
 * ------------------------------------------------------------------------------------------------------------- */

START_TEST(a_ranker_describes_itself) {
    sl_ranker *ranker = make_ranker(KIND, "", DEEP, NULL);
    sl_ranker_info info = {.struct_size = sizeof info};
    ck_assert_int_eq(sl_ranker_get_info(ranker, &info), SL_OK);
    ck_assert_int_eq(info.loss, SL_LOSS_MULTICLASS);
    ck_assert_uint_eq(info.outputs, 3);
    ck_assert_uint_eq(info.features, 6);
    ck_assert_uint_eq(info.layers, 3);
    ck_assert_uint_eq(info.first_width, 20);
    ck_assert_uint_eq(info.deep_inputs, 2 + 4 + 4 + 3);
    ck_assert_ptr_nonnull(strstr(info.spec, "\"multiclass\""));
    size_t parameters = 0;
    for (size_t i = 0; i < sl_ranker_tensor_count(ranker); i++) {
        sl_tensor tensor;
        ck_assert_int_eq(sl_ranker_get_tensor(ranker, i, &tensor), SL_OK);
        parameters += tensor.rows * tensor.columns;
    }
    ck_assert_uint_eq(info.parameters, parameters);
    /* Weights and vocabularies, each as often as memory holds it. */
    size_t least = 4 * parameters;
    for (size_t i = 0; i < ranker->features->count; i++)
        if (ranker->features->features[i].vocabulary)
            least += sl_vocabulary_bytes(ranker->features->features[i].vocabulary);
    ck_assert_uint_ge(info.bytes, least);
    ck_assert_uint_eq(tensor_of(ranker, "wide").rows, info.wide_size);
    ck_assert_uint_eq(tensor_of(ranker, "embedding.tags").columns, 3);
    ck_assert_uint_eq(tensor_of(ranker, "dense.2.weight").rows, 9);
    ck_assert_uint_eq(tensor_of(ranker, "dense.2.bias").columns, 3);
    ck_assert_str_eq(sl_ranker_class(ranker, 1), "mid");
    ck_assert_ptr_null(sl_ranker_class(ranker, 3));
    sl_tensor none;
    sl_feature_info feature = {.struct_size = sizeof feature};
    ck_assert_int_eq(sl_ranker_get_tensor(ranker, 100, &none), SL_EINVAL);
    ck_assert_int_eq(sl_ranker_get_feature(ranker, 6, &feature), SL_EINVAL);
    ck_assert_int_eq(sl_ranker_get_info(NULL, &info), SL_EINVAL);
    ck_assert_int_eq(sl_ranker_get_info(ranker, NULL), SL_EINVAL);
    sl_ranker_free(ranker);
}
END_TEST

START_TEST(weights_from_outside) {
    sl_ranker *base = make_ranker(VALUE, "", DEEP, NULL), *other;
    float bias = 1000, nothing = NAN;
    sl_tensor given = {"bias", &bias, 1, 1};
    ck_assert_int_eq(sl_ranker_with_tensors(base, &given, 1, &other), SL_OK);
    static float before[ROWS], after[ROWS];
    float old = tensor_of(base, "bias").data[0];
    sl_predictor *predictor = predictor_of(base, ROWS, 1, NULL);
    predict(predictor, &rows.table, before);
    sl_predictor_free(predictor);
    sl_ranker_free(base);
    predictor = predictor_of(other, ROWS, 1, NULL);
    predict(predictor, &rows.table, after);
    for (size_t r = 0; r < ROWS; r++)
        ck_assert_double_eq_tol((double)(after[r] - before[r]), 1000 - (double)old, 1e-3);
    sl_predictor_free(predictor);
    sl_ranker *none;
    given.name = "dense.9.weight";
    ck_assert_int_eq(sl_ranker_with_tensors(other, &given, 1, &none), SL_ENOTFOUND);
    ck_assert_ptr_null(none);
    given = (sl_tensor){"dense.0.bias", &bias, 1, 1};
    ck_assert_int_eq(sl_ranker_with_tensors(other, &given, 1, &none), SL_EDIM);
    /* Rows alone are wrong, then columns. */
    sl_tensor weight = tensor_of(other, "dense.0.weight");
    given = weight;
    given.rows--;
    ck_assert_int_eq(sl_ranker_with_tensors(other, &given, 1, &none), SL_EDIM);
    given = weight;
    given.columns--;
    ck_assert_int_eq(sl_ranker_with_tensors(other, &given, 1, &none), SL_EDIM);
    given = (sl_tensor){"bias", &nothing, 1, 1};
    ck_assert_int_eq(sl_ranker_with_tensors(other, &given, 1, &none), SL_EVALUE);
    ck_assert_int_eq(sl_ranker_with_tensors(NULL, NULL, 0, &none), SL_EINVAL);
    sl_ranker_free(other);
}
END_TEST

START_TEST(handles_are_counted) {
    fault_allocator faults;
    fault_allocator_init(&faults, 0);
    sl_ranker *ranker = make_ranker(CLICK, "", DEEP, &faults.allocator);
    ck_assert_ptr_eq(sl_ranker_retain(ranker), ranker);
    sl_ranker_free(ranker);
    ck_assert_uint_gt(faults.live_blocks, 0);
    sl_predictor *predictor = predictor_of(ranker, 10, 1, NULL);
    sl_predictor_free(predictor);
    sl_ranker_free(ranker);
    ck_assert_uint_eq(faults.live_blocks, 0);
    sl_ranker_free(NULL);
    sl_predictor_free(NULL);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Evaluation
 * ------------------------------------------------------------------------------------------------------------- */

START_TEST(evaluation_measures_predictions) {
    sl_ranker *ranker = make_ranker(CLICK, "", DEEP, NULL);
    sl_predictor *predictor = predictor_of(ranker, ROWS, 1, NULL);
    static float scores[ROWS];
    static uint64_t groups[ROWS];
    predict(predictor, &rows.table, scores);
    for (size_t r = 0; r < ROWS; r++)
        groups[r] = (uint64_t)rows.a[r];
    sl_metrics wanted = {.struct_size = sizeof wanted}, found = {.struct_size = sizeof found};
    sl_evaluate_params params;
    sl_evaluate_params_init(&params);
    params.group = "a";
    params.ndcg_k = 5;
    ck_assert_int_eq(sl_metrics_compute(SL_LOSS_LOGISTIC, 1, scores, rows.click, NULL, groups, ROWS, &params, &wanted),
                     SL_OK);
    for (params.threads = 1; params.threads <= 2; params.threads++) {
        ck_assert_msg(sl_ranker_evaluate(ranker, &rows.source, &params, &found) == SL_OK, "%s", sl_last_error());
        ck_assert_uint_eq(found.rows, ROWS);
        ck_assert_uint_eq(found.groups, wanted.groups);
        ck_assert_double_eq_tol(found.logloss, wanted.logloss, 1e-6);
        ck_assert_double_eq_tol(found.auc, wanted.auc, 1e-4);
        ck_assert_double_eq_tol(found.group_auc, wanted.group_auc, 1e-4);
        ck_assert_double_eq_tol(found.ndcg, wanted.ndcg, 1e-4);
    }
    params.group = "nothing";
    ck_assert_int_eq(sl_ranker_evaluate(ranker, &rows.source, &params, &found), SL_ENOTFOUND);
    ck_assert_ptr_nonnull(strstr(sl_last_error(), "nothing"));
    ck_assert_int_eq(sl_ranker_evaluate(ranker, NULL, NULL, &found), SL_EINVAL);
    ck_assert_int_eq(sl_ranker_evaluate(ranker, &rows.source, NULL, NULL), SL_EINVAL);
    sl_predictor_free(predictor);
    sl_ranker_free(ranker);
}
END_TEST

int main(void) {
    TCase *all = tcase_create("predictions");
    tcase_add_checked_fixture(all, set_up, tear_down);
    tcase_add_test(all, predictions_are_what_the_weights_say);
    tcase_add_test(all, tiles_and_threads_change_nothing);
    tcase_add_test(all, a_bad_row_of_any_thread_is_named);
    tcase_add_test(all, encoded_rows_give_the_same);
    tcase_add_test(all, bags_may_all_be_empty);
    tcase_add_test(all, ids_out_of_range_are_refused);
    tcase_add_test(all, columns_that_are_missing_are_named);
    tcase_add_test(all, one_ranker_serves_many_threads);
    tcase_add_test(all, a_child_predicts);
    tcase_add_test(all, a_warm_prediction_takes_no_memory);
    tcase_add_test(all, memory_may_fail_anywhere);
    tcase_add_test(all, a_ranker_describes_itself);
    tcase_add_test(all, weights_from_outside);
    tcase_add_test(all, handles_are_counted);
    tcase_add_test(all, evaluation_measures_predictions);
    return check_main("predict", &all, 1);
}
