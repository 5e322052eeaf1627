/* The search for precisions. The test makes and measures all models one by one: no faster choice is within the bound.
 * The error of a drop is compared with the error of a mean. */
#include "ranker/quantise/evaluator.h"
#include "tests/support/check_main.h"
#include "tests/support/faults.h"
#include "tests/support/indexes.h"
#include "tests/support/planted.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* OPTIONS of a layer: f32, bf16, int8-dynamic, and int8 by four calibrations. */
enum { ROWS = 300, OPTIONS = 7, MOST_CHOICES = OPTIONS * OPTIONS * OPTIONS, MOST_LAYERS = 3 };
enum { TYPES = 3, MOST_TRIALS = TYPES * MOST_CHOICES };

#define CLICK "\"column\": \"click\""
#define VALUE "\"column\": \"value\", \"loss\": \"squared\""

static planted rows;

static void set_up(void) {
    planted_make(&rows, ROWS, 1);
}

static void tear_down(void) {
    planted_free(&rows);
}

/* A model whose labels are its own scores: every choice of codes is worse than F32. */
static sl_ranker *perfect(const char *deep) {
    sl_ranker *model = planted_ranker(&rows, VALUE, NULL, deep);
    planted_predict(&rows, model, rows.value);
    return model;
}

/* ---------------------------------------------------------------------------------------------------------------
 * Proof
 * ------------------------------------------------------------------------------------------------------------- */

typedef struct trials {
    size_t count, layers;
    struct one_trial {
        sl_precision precisions[MOST_LAYERS];
        sl_calibration calibrations[MOST_LAYERS];
        double drop, cost, error;
        int within;
        sl_table_type tables;
    } of[MOST_TRIALS];
} trials;

static void take(void *ctx, const sl_trial *trial) {
    trials *all = ctx;
    ck_assert_uint_lt(all->count, MOST_TRIALS);
    ck_assert_uint_eq(trial->number, all->count + 1);
    struct one_trial *one = &all->of[all->count++];
    all->layers = trial->layers;
    memcpy(one->precisions, trial->precisions, trial->layers * sizeof *trial->precisions);
    memcpy(one->calibrations, trial->calibrations, trial->layers * sizeof *trial->calibrations);
    one->drop = trial->drop;
    one->cost = trial->cost;
    one->error = trial->error;
    one->within = trial->within;
    one->tables = trial->tables;
}

/* Tables stay floats, because most tests look only at layers. */
static sl_precision_search_params within(double max_drop) {
    static sl_quantize_params floats;
    sl_precision_search_params params;
    sl_quantize_params_init(&floats);
    sl_precision_search_params_init(&params);
    params.quantize = &floats;
    params.max_drop = max_drop;
    params.threads = 1;
    return params;
}

static sl_precision_search_report search(const sl_ranker *model, const sl_precision_search_params *params,
                                         sl_ranker **made) {
    sl_precision_search_report report = {.struct_size = sizeof report};
    ck_ok(sl_ranker_search_precision(model, &rows.source, NULL, params, made, &report));
    return report;
}

static double rmse_of(const sl_ranker *ranker) {
    sl_metrics metrics = {.struct_size = sizeof metrics};
    sl_evaluate_params params;
    sl_evaluate_params_init(&params);
    params.threads = 1;
    ck_ok(sl_ranker_evaluate(ranker, &rows.source, &params, &metrics));
    return metrics.rmse;
}

/* Makes the trial's model on its own and measures it. */
static double made_alone(const sl_ranker *model, const sl_calibrated *calibrated, const struct one_trial *trial) {
    static const sl_calibration methods[] = {SL_CALIBRATION_MINMAX, SL_CALIBRATION_QUANTILE, SL_CALIBRATION_ENTROPY,
                                             SL_CALIBRATION_MSE};
    sl_allocator allocator = sl_allocator_of(NULL);
    sl_layer_choice choices[MOST_LAYERS];
    sl_coded_layers coded;
    sl_ranker *made;
    for (size_t l = 0; l < model->shape.layers; l++) {
        choices[l] = (sl_layer_choice){.type = (sl_layer_type)trial->precisions[l], .bias_correction = 1};
        choices[l].rule = sl_range_rule_of(methods[trial->calibrations[l]], 0);
    }
    ck_ok(sl_quantise_layers(model, calibrated, choices, &allocator, &coded));
    ck_ok(sl_ranker_with_coded(model, &coded, &allocator, &made));
    double rmse = rmse_of(made);
    sl_ranker_free(made);
    return rmse;
}

/* Each choice is measured once. A third of them become models with the same drops, up to rounding: a model's layers
 * pass codes to one another, and measured layers pass floats. */
static void check_drops(const sl_ranker *model, const trials *all) {
    sl_allocator allocator = sl_allocator_of(NULL);
    const sl_draw draw = {.rows = ROWS};
    sl_rows_buffer drawn = {.allocator = allocator};
    sl_encoded view;
    sl_calibrated calibrated;
    ck_ok(sl_draw_rows(model->features, &rows.source, &draw, &drawn));
    sl_rows_buffer_view(&drawn, &view);
    ck_ok(sl_calibrate(model, &view, &allocator, &calibrated));
    double base = rmse_of(model);
    for (size_t i = 0; i < all->count; i++) {
        double drop = i % 3 ? all->of[i].drop : made_alone(model, &calibrated, &all->of[i]) - base;
        ck_assert_double_eq_tol(all->of[i].drop, drop, 0.002 * drop + 1e-7);
        /* Labels are the F32 scores, which are logits here. */
        ck_assert_double_eq_tol(all->of[i].error, all->of[i].drop, 1e-6);
        for (size_t j = 0; j < i; j++) {
            int same = 1;
            for (size_t l = 0; l < all->layers && same; l++)
                same = all->of[i].precisions[l] == all->of[j].precisions[l] &&
                       (all->of[i].precisions[l] != SL_PRECISION_INT8 ||
                        all->of[i].calibrations[l] == all->of[j].calibrations[l]);
            ck_assert_msg(!same, "trials %zu and %zu are of one choice", j, i);
        }
    }
    sl_calibrated_free(&calibrated);
    sl_rows_buffer_free(&drawn);
}

/* The trial that a bounded search must end with: the lowest cost, then the least drop. NULL: none is within the
 * bound. */
static const struct one_trial *best_within(const trials *all, double bound) {
    const struct one_trial *best = NULL;
    for (size_t i = 0; i < all->count; i++) {
        const struct one_trial *one = &all->of[i];
        if (one->drop > bound || one->cost >= 1) continue;
        if (!best || one->cost < best->cost || (one->cost == best->cost && one->drop < best->drop)) best = one;
    }
    return best;
}

static const char *const nets[] = {"\"hidden\": [7]", "\"hidden\": [9, 4]",
                                   "\"hidden\": [6], \"activation\": \"tanh\""};

START_TEST(no_faster_choice_is_within) {
    static trials all;
    sl_ranker *model = perfect(nets[_i]), *made;
    sl_precision_search_params params = within(0);
    all.count = 0;
    params.trial = take;
    params.trial_ctx = &all;
    sl_precision_search_report report = search(model, &params, &made);
    sl_ranker_free(made);
    ck_assert(!report.within && report.proved);
    ck_assert_uint_eq(all.count, (model->shape.layers == 2 ? MOST_CHOICES / OPTIONS : MOST_CHOICES) - 1);
    check_drops(model, &all);
    for (size_t i = 0; i < all.count; i += all.count / 5) {
        params = within(all.of[i].drop);
        report = search(model, &params, &made);
        const struct one_trial *best = best_within(&all, params.max_drop);
        ck_assert_int_eq(report.proved, 1);
        ck_assert_int_eq(report.within, best != NULL);
        if (best) {
            ck_assert_double_eq(report.cost, best->cost);
            ck_assert_double_eq(report.drop, best->drop);
        }
        ck_assert_double_eq_tol(rmse_of(made) - rmse_of(model), report.drop, 0.002 * report.drop + 1e-7);
        sl_ranker_free(made);
    }
    sl_ranker_free(model);
}
END_TEST

/* Another choice of equal cost is luckier on these labels, but its logits are worse. */
START_TEST(the_nearest_of_equal_cost_is_taken) {
    static trials all;
    sl_ranker *model = planted_ranker(&rows, CLICK, NULL, nets[1]), *made;
    sl_precision_search_params params = within(1);
    const struct one_trial *nearest = NULL;
    double luckiest = INFINITY;
    all.count = 0;
    params.trial = take;
    params.trial_ctx = &all;
    sl_precision_search_report report = search(model, &params, &made);
    sl_ranker_free(made);
    for (size_t i = 0; i < all.count; i++) {
        if (all.of[i].cost != report.cost || !all.of[i].within) continue;
        ck_assert(all.of[i].error > 0);
        if (!nearest || all.of[i].error < nearest->error) nearest = &all.of[i];
        luckiest = fmin(luckiest, all.of[i].drop);
    }
    ck_assert(nearest && report.drop == nearest->drop);
    ck_assert(luckiest < nearest->drop);
    sl_ranker_free(model);
}
END_TEST

/* The trial that a search over all table types must end with: the lowest cost within the bound, then the fewest bits
 * per table, then the nearest logits. */
static const struct one_trial *best_of_all_types(const trials *all, double bound) {
    static const int order[] = {[SL_TABLE_I4] = 0, [SL_TABLE_I8] = 1, [SL_TABLE_F32] = 2};
    const struct one_trial *best = NULL;
    for (size_t i = 0; i < all->count; i++) {
        const struct one_trial *one = &all->of[i];
        if (one->drop > bound || one->cost >= 1) continue;
        if (!best || one->cost < best->cost) best = one;
        if (one->cost > best->cost || order[one->tables] > order[best->tables]) continue;
        if (order[one->tables] < order[best->tables] || one->error < best->error) best = one;
    }
    return best;
}

START_TEST(tables_of_every_type_are_searched) {
    static trials all, some;
    sl_ranker *model = perfect(nets[0]), *made;
    sl_precision_search_params params = within(0);
    size_t of[TYPES] = {0}, found[TYPES] = {0};
    all.count = 0;
    params.quantize = NULL;
    params.trial = take;
    params.trial_ctx = &all;
    sl_precision_search_report report = search(model, &params, &made);
    sl_ranker_free(made);
    ck_assert(!report.within && report.proved);
    ck_assert_uint_eq(report.trials, all.count);
    for (size_t i = 0; i < all.count; i++)
        of[all.of[i].tables]++;
    for (size_t t = 0; t < TYPES; t++)
        ck_assert_uint_eq(of[t], MOST_CHOICES / OPTIONS - 1);
    params.trial_ctx = &some;
    for (size_t i = 0; i < all.count; i++) {
        const struct one_trial *best = best_of_all_types(&all, all.of[i].drop);
        params.max_drop = all.of[i].drop;
        some.count = 0;
        report = search(model, &params, &made);
        sl_ranker_free(made);
        ck_assert(report.within == (best != NULL) && report.proved);
        if (!best) continue;
        ck_assert_double_eq(report.cost, best->cost);
        ck_assert_double_eq(report.drop, best->drop);
        ck_assert_int_eq(report.tables, best->tables);
        found[best->tables]++;
        /* The least cost is within the bound at once, so the search tries no other type. */
        if (best->cost == some.of[0].cost && best->tables == SL_TABLE_I4)
            ck_assert_int_eq(some.of[some.count - 1].tables, SL_TABLE_I4);
    }
    ck_assert(found[SL_TABLE_I4] && found[SL_TABLE_I8] && found[SL_TABLE_F32]);
    sl_ranker_free(model);
}
END_TEST

START_TEST(threads_find_the_same) {
    sl_ranker *model = perfect(nets[1]), *made[3];
    for (size_t i = 0; i < 3; i++) {
        sl_precision_search_params params = within(0.002);
        params.threads = 1 + i;
        params.strategy = SL_STRATEGY_EXHAUSTIVE;
        (void)search(model, &params, &made[i]);
        ck_assert_uint_eq(made[i]->coded.size, made[0]->coded.size);
        ck_assert_mem_eq(made[i]->coded.block, made[0]->coded.block, made[0]->coded.size);
    }
    for (size_t i = 0; i < 3; i++)
        sl_ranker_free(made[i]);
    sl_ranker_free(model);
}
END_TEST

/* Measuring in parts gives the same values with less memory. */
START_TEST(parts_of_a_set_are_the_set) {
    enum { OPTIONS = 3, ALL = OPTIONS * OPTIONS * OPTIONS };
    sl_ranker *model = planted_ranker(&rows, CLICK, NULL, nets[1]);
    fault_allocator memory;
    sl_evaluation whole[ALL], parts[ALL];
    sl_choice_set set;
    sl_progress silent;
    fault_allocator_init(&memory, 0);
    sl_evaluator evaluator = {
        .allocator = memory.allocator, .ranker = model, .measure = SL_MEASURE_LOGLOSS, .threads = 1};
    evaluator.ndcg_k = 10;
    ck_ok(sl_evaluator_read(&evaluator, &rows.source, NULL, NULL, NULL));
    for (size_t l = 0; l < model->shape.layers; l++) {
        set.counts[l] = OPTIONS;
        for (size_t o = 0; o < OPTIONS; o++) {
            const sl_layer_type type = o % 2 ? SL_LAYER_INT8_DYNAMIC : SL_LAYER_F32;
            set.options[l][o] = o;
            ck_ok(sl_evaluator_add(&evaluator, NULL, l, &(sl_layer_choice){.type = type}));
        }
    }
    sl_progress_start(&silent, NULL, NULL, 0);
    ck_ok(sl_evaluator_measure(&evaluator, &set, &silent, whole));
    ck_assert_uint_ge(memory.largest, ALL * ROWS * sizeof(float));
    for (size_t most = 1; most < ALL * ROWS; most *= 7) {
        evaluator.most_scores = most;
        memory.largest = 0;
        ck_ok(sl_evaluator_measure(&evaluator, &set, &silent, parts));
        ck_assert_uint_lt(memory.largest, ALL * ROWS * sizeof(float));
        for (size_t i = 0; i < ALL; i++)
            ck_assert(whole[i].value == parts[i].value && isnan(parts[i].error));
    }
    sl_evaluator_free(&evaluator);
    ck_assert_uint_eq(memory.live_blocks, 0);
    sl_ranker_free(model);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Ends of searches
 * ------------------------------------------------------------------------------------------------------------- */

/* With one output, coding the inputs costs more than it saves. */
START_TEST(slower_layers_are_no_result) {
    sl_ranker *model = planted_ranker(&rows, CLICK, NULL, "\"hidden\": [1]"), *made;
    sl_precision_search_params params = within(1);
    sl_quantize_params how;
    sl_quantize_params_init(&how);
    how.keep = (const char *const[]){"dense.0"};
    how.keep_count = 1;
    params.quantize = &how;
    params.leave_static = 1;
    for (int strategy = SL_STRATEGY_EXHAUSTIVE; strategy <= SL_STRATEGY_MSE; strategy++) {
        params.strategy = (sl_strategy)strategy;
        ck_fails(sl_ranker_search_precision(model, &rows.source, NULL, &params, &made, NULL), SL_EINVAL,
                 "none is faster");
        ck_assert_ptr_null(made);
    }
    sl_ranker_free(model);
}
END_TEST

/* Biases far below 0 leave no output above 0. */
static sl_ranker *dead_behind(const char *bias) {
    sl_ranker *model = planted_ranker(&rows, CLICK, NULL, nets[1]), *made;
    static float biases[16];
    for (size_t i = 0; i < sizeof biases / sizeof *biases; i++)
        biases[i] = -1e6F;
    for (size_t i = 0; i < sl_ranker_tensor_count(model); i++) {
        sl_tensor tensor = {0};
        ck_ok(sl_ranker_get_tensor(model, i, &tensor));
        if (strcmp(tensor.name, bias) != 0) continue;
        tensor.data = biases;
        ck_ok(sl_ranker_with_tensors(model, &tensor, 1, &made));
    }
    sl_ranker_free(model);
    return made;
}

/* bf16 needs no rows, and in dynamic INT8 each row has its own range. Only a static range needs inputs other than 0. */
START_TEST(precisions_that_are_left_out_ask_for_nothing) {
    sl_ranker *model = dead_behind(_i ? "dense.1.bias" : "dense.0.bias"), *made;
    for (int strategy = SL_STRATEGY_EXHAUSTIVE; strategy <= SL_STRATEGY_BAYESIAN; strategy++)
        for (int left = 0; left < 8; left++) {
            sl_precision_search_params params = within(1);
            params.strategy = (sl_strategy)strategy;
            params.leave_static = left & 1;
            params.leave_dynamic = left >> 1 & 1;
            params.leave_bf16 = left >> 2;
            params.trials = 5;
            if (left == 7) continue;
            if (!params.leave_static) {
                ck_fails(sl_ranker_search_precision(model, &rows.source, NULL, &params, &made, NULL), SL_EINVAL,
                         "are 0 on the rows to calibrate on");
                continue;
            }
            ck_assert(search(model, &params, &made).within);
            for (size_t l = 0; l < model->shape.layers; l++) {
                sl_layer_info layer = {.struct_size = sizeof layer};
                ck_ok(sl_ranker_get_layer(made, l, &layer));
                ck_assert(layer.precision != SL_PRECISION_INT8);
                ck_assert(!params.leave_dynamic || layer.precision != SL_PRECISION_INT8_DYNAMIC);
                ck_assert(!params.leave_bf16 || layer.precision != SL_PRECISION_BF16);
            }
            sl_ranker_free(made);
        }
    sl_ranker_free(model);
}
END_TEST

/* A source that loses a row at each reading. */
typedef struct shrinking {
    const sl_rows *of;
    size_t readings;
} shrinking;

static sl_status shrink_next(void *ctx, size_t max_rows, sl_table *block) {
    shrinking *source = ctx;
    sl_status status = source->of->next(source->of->ctx, max_rows, block);
    if (block->rows > source->readings) block->rows -= source->readings;
    return status;
}

static sl_status shrink_rewind(void *ctx) {
    shrinking *source = ctx;
    source->readings++;
    return source->of->rewind(source->of->ctx);
}

START_TEST(rows_that_change_are_refused) {
    sl_ranker *model = planted_ranker(&rows, CLICK, NULL, nets[1]), *made;
    shrinking source = {&rows.source, 0};
    const sl_rows fewer = {sizeof fewer, &source, shrink_next, shrink_rewind};
    sl_precision_search_params params = within(1);
    sl_quantize_params how;
    sl_quantize_params_init(&how);
    how.tables = SL_TABLE_I8;
    params.quantize = &how;
    ck_fails(sl_ranker_search_precision(model, &rows.source, &fewer, &params, &made, NULL), SL_EVALUE,
             "another reading");
    ck_assert_ptr_null(made);
    sl_ranker_free(model);
}
END_TEST

START_TEST(a_search_tries_something) {
    sl_ranker *model = planted_ranker(&rows, CLICK, NULL, nets[1]), *made;
    for (int strategy = SL_STRATEGY_EXHAUSTIVE; strategy <= SL_STRATEGY_MSE; strategy++) {
        sl_precision_search_params params = within(1);
        params.strategy = (sl_strategy)strategy;
        params.timeout_s = 1e-9;
        sl_precision_search_report report = search(model, &params, &made);
        ck_assert(report.within && report.trials >= 1);
        sl_ranker_free(made);
    }
    sl_ranker_free(model);
}
END_TEST

/* Two rows in the wrong order have an AUC of 0. */
START_TEST(no_share_of_nothing) {
    sl_ranker *model = planted_ranker(&rows, CLICK, NULL, nets[0]), *made;
    sl_precision_search_params params = within(0.1);
    sl_metrics metrics = {.struct_size = sizeof metrics, .auc = 1};
    planted two;
    params.relative = 1;
    for (uint64_t seed = 1; metrics.auc != 0; seed++) {
        if (seed > 1) planted_free(&two);
        planted_make(&two, 2, seed);
        ck_ok(sl_ranker_evaluate(model, &two.source, NULL, &metrics));
    }
    ck_fails(sl_ranker_search_precision(model, &rows.source, &two.source, &params, &made, NULL), SL_EINVAL,
             "without relative");
    ck_assert_ptr_null(made);
    planted_free(&two);
    sl_ranker_free(model);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * The error of a drop
 * ------------------------------------------------------------------------------------------------------------- */

/* The standard error of the mean of the rows' differences in logloss. */
static double error_of_mean(const sl_ranker *first, const sl_ranker *second) {
    static float a[ROWS], b[ROWS];
    double sum = 0, squares = 0;
    planted_predict(&rows, first, a);
    planted_predict(&rows, second, b);
    for (size_t r = 0; r < ROWS; r++) {
        double p = (double)a[r], q = (double)b[r];
        double difference = rows.click[r] > 0 ? log(p / q) : log((1 - p) / (1 - q));
        sum += difference;
        squares += difference * difference;
    }
    return sqrt((squares - sum * sum / ROWS) / (ROWS - 1) / ROWS);
}

/* A model with embeddings so large that coding them matters. */
static sl_ranker *embedded(void) {
    sl_ranker *model = planted_ranker(&rows, CLICK, NULL, nets[1]), *made;
    sl_tensor tensor;
    for (size_t t = 0; sl_ranker_get_tensor(model, t, &tensor) == SL_OK; t++) {
        if (strncmp(tensor.name, "embedding.", 10) != 0) continue;
        size_t count = tensor.rows * tensor.columns;
        float *values = malloc(count * sizeof *values);
        ck_assert_ptr_nonnull(values);
        for (size_t i = 0; i < count; i++)
            values[i] = 30 * tensor.data[i];
        tensor.data = values;
        ck_ok(sl_ranker_with_tensors(model, &tensor, 1, &made));
        free(values);
        sl_ranker_free(model);
        model = made;
    }
    return model;
}

/* Logloss is a mean with a known error. Coded tables count, because the base has tables of floats. A deviation
 * estimated from 20 blocks has a deviation of a sixth. */
START_TEST(the_error_is_that_of_a_mean) {
    sl_ranker *model = embedded(), *made;
    sl_quantize_params how;
    sl_precision_search_params params = within(1);
    sl_quantize_params_init(&how);
    how.tables = (sl_table_type)_i;
    /* Coded tables cause most of the drop. */
    how.keep = (const char *const[]){"dense.0", "dense.1"};
    how.calibration = SL_CALIBRATION_MINMAX;
    how.keep_count = _i == SL_TABLE_F32 ? 0 : 2;
    params.quantize = &how;
    params.strategy = SL_STRATEGY_BASIC;
    params.measure = SL_MEASURE_LOGLOSS;
    sl_precision_search_report report = search(model, &params, &made);
    double exact = error_of_mean(model, made);
    ck_assert_double_gt(exact, 0);
    ck_assert_double_gt(report.drop_error, 0.5 * exact);
    ck_assert_double_lt(report.drop_error, 1.6 * exact);
    sl_ranker_free(made);
    sl_ranker_free(model);
}
END_TEST

/* One row, or one group, fills one block: nothing can be left out. */
START_TEST(one_block_has_no_error) {
    sl_ranker *model = planted_ranker(&rows, CLICK, NULL, nets[1]), *made;
    sl_precision_search_params params = within(1);
    planted one;
    params.measure = SL_MEASURE_LOGLOSS;
    planted_make(&one, 1, 3);
    sl_precision_search_report report = {.struct_size = sizeof report};
    ck_ok(sl_ranker_search_precision(model, &rows.source, &one.source, &params, &made, &report));
    ck_assert(isnan(report.drop_error));
    sl_ranker_free(made);
    planted_free(&one);
    planted_make(&one, 50, 3);
    for (size_t r = 0; r < 50; r++)
        one.a[r] = 7;
    params.group = "a";
    ck_ok(sl_ranker_search_precision(model, &rows.source, &one.source, &params, &made, &report));
    ck_assert(isnan(report.drop_error));
    sl_ranker_free(made);
    planted_free(&one);
    sl_ranker_free(model);
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("search"), *threads = tcase_create("threads");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_loop_test(tests, no_faster_choice_is_within, 0, sizeof nets / sizeof *nets);
    tcase_add_test(tests, parts_of_a_set_are_the_set);
    tcase_add_test(tests, slower_layers_are_no_result);
    tcase_add_loop_test(tests, precisions_that_are_left_out_ask_for_nothing, 0, 2);
    tcase_add_test(tests, rows_that_change_are_refused);
    tcase_add_test(tests, a_search_tries_something);
    tcase_add_test(tests, no_share_of_nothing);
    tcase_add_loop_test(tests, the_error_is_that_of_a_mean, SL_TABLE_F32, SL_TABLE_I4 + 1);
    tcase_add_test(tests, one_block_has_no_error);
    tcase_add_checked_fixture(threads, set_up, tear_down);
    tcase_add_test(threads, threads_find_the_same);
    tcase_add_test(threads, the_nearest_of_equal_cost_is_taken);
    tcase_add_test(threads, tables_of_every_type_are_searched);
    return check_main("precision_search", (TCase *[]){tests, threads}, 2);
}
