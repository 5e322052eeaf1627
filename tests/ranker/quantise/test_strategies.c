/* Strategies of the search for precisions: results, bounds, measures, tables, and lack of memory. */
#include "base/random.h"
#include "ranker/quantise/evaluator.h"
#include "ranker/quantise/quantise.h"
#include "ranker/quantise/search_bayesian.h"
#include "tests/support/check_main.h"
#include "tests/support/faults.h"
#include "tests/support/indexes.h"
#include "tests/support/planted_model.h"
#include "tests/support/scratch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------------------------------------------------------
 * Searching
 * ------------------------------------------------------------------------------------------------------------- */

typedef struct told {
    size_t trials, cheaper_within;
    double least_cost; /* of the trials within the bound */
    int ordered;
    double last_cost;
} told;

/* A choice's cost by docs/internals/precision.md, divided by the multiply-adds of floats. */
static double modelled(const sl_precision *precisions) {
    double cost = 0, floats = 0;
    for (size_t l = 0; l < LAYERS; l++) {
        double in = (double)model->shape.width[l], products = in * (double)model->shape.width[l + 1];
        int bf16 = precisions[l] == SL_PRECISION_BF16, dynamic = precisions[l] == SL_PRECISION_INT8_DYNAMIC;
        int before = l ? (int)precisions[l - 1] : SL_PRECISION_F32;
        int given = bf16 ? before == SL_PRECISION_BF16
                         : !dynamic && (before == SL_PRECISION_INT8 || before == SL_PRECISION_INT8_DYNAMIC);
        floats += products;
        if (precisions[l] == SL_PRECISION_F32)
            cost += products;
        else
            cost += (bf16 ? 0.5 : 0.26) * products + (given ? 0 : 0.5 * in) + (dynamic ? 0.5 * in : 0);
    }
    return cost / floats;
}

static void take_trial(void *ctx, const sl_trial *trial) {
    told *t = ctx;
    ck_assert_uint_eq(trial->number, ++t->trials);
    ck_assert_uint_eq(trial->layers, LAYERS);
    ck_assert_double_eq_tol(trial->cost, modelled(trial->precisions), 1e-12);
    if (trial->within && (t->least_cost == 0 || trial->cost < t->least_cost)) t->least_cost = trial->cost;
    t->ordered &= trial->cost >= t->last_cost - 1e-12;
    t->last_cost = trial->cost;
}

/* Tables stay floats unless params say otherwise, because most tests look only at layers. */
static sl_status search(const sl_ranker *ranker, sl_precision_search_params *params, told *t, sl_ranker **made,
                        sl_precision_search_report *report) {
    static sl_quantize_params floats;
    sl_quantize_params_init(&floats);
    if (!params->quantize) params->quantize = &floats;
    *t = (told){.ordered = 1};
    params->trial = take_trial;
    params->trial_ctx = t;
    params->threads = 2;
    *report = (sl_precision_search_report){.struct_size = sizeof *report};
    return sl_ranker_search_precision(ranker, &rows.source, NULL, params, made, report);
}

static double auc_of(const sl_ranker *ranker) {
    sl_metrics metrics = {.struct_size = sizeof metrics};
    ck_ok(sl_ranker_evaluate(ranker, &rows.source, NULL, &metrics));
    return metrics.auc;
}

/* Units of layer 0 grow by the factor by which their outgoing weights shrink. F32 gives the same, but layer 1's inputs
 * are one large number and many that its codes cannot tell apart. */
static float larger(float value, size_t i, size_t columns) {
    return i % columns == 2 ? 3e4f * value : value;
}

static float smaller(float value, size_t i, size_t columns) {
    return i / columns == 2 ? value / 3e4f : value;
}

static sl_ranker *sensitive(void) {
    sl_ranker *first = planted_changed(model, "dense.0.weight", larger);
    sl_ranker *both = planted_changed(first, "dense.1.weight", smaller);
    sl_ranker_free(first);
    return both;
}

START_TEST(the_search_keeps_its_bound) {
    sl_precision_search_params params;
    sl_precision_search_report report;
    sl_ranker *made;
    told t;
    sl_precision_search_params_init(&params);
    params.max_drop = 0.01;
    ck_ok(search(model, &params, &t, &made, &report));
    ck_assert(report.within && report.proved && t.ordered);
    ck_assert_uint_eq(report.trials, t.trials);
    ck_assert_uint_eq(report.rows, ROWS);
    ck_assert_double_eq_tol(report.base_value, auc_of(model), 1e-6);
    ck_assert_double_eq_tol(report.value, auc_of(made), 1e-4);
    ck_assert_double_eq_tol(report.drop, report.base_value - report.value, 1e-12);
    ck_assert(report.drop <= 0.01 && report.drop_error >= 0 && report.drop_error < 0.01);
    ck_assert_double_lt(report.cost, 0.5);
    sl_ranker_free(made);
}
END_TEST

/* Every strategy keeps the sensitive layer in F32, and none is faster than the best of all choices. */
START_TEST(a_sensitive_layer_stays) {
    sl_ranker *ranker = sensitive();
    sl_precision_search_params params;
    sl_precision_search_report report;
    double least = 0;
    for (int strategy = SL_STRATEGY_EXHAUSTIVE; strategy <= SL_STRATEGY_BAYESIAN; strategy++) {
        sl_quantize_params how;
        sl_ranker *made;
        told t;
        sl_quantize_params_init(&how);
        how.calibration = SL_CALIBRATION_MINMAX;
        sl_precision_search_params_init(&params);
        params.quantize = &how;
        params.strategy = (sl_strategy)strategy;
        params.leave_dynamic = params.leave_bf16 = 1;
        params.max_drop = 0.001;
        ck_ok(search(ranker, &params, &t, &made, &report));
        ck_assert_int_eq(report.within, 1);
        ck_assert_double_eq(report.cost, t.least_cost);
        sl_layer_info layer = {.struct_size = sizeof layer};
        ck_ok(sl_ranker_get_layer(made, 1, &layer));
        ck_assert_int_eq(layer.precision, SL_PRECISION_F32);
        if (strategy == SL_STRATEGY_EXHAUSTIVE) {
            least = report.cost;
            ck_assert_int_eq(report.proved, 1);
        }
        ck_assert_double_ge(report.cost, least);
        sl_ranker_free(made);
    }
    sl_ranker_free(ranker);
}
END_TEST

/* bf16 tells apart numbers that codes cannot, so it makes the sensitive layer faster than floats. */
START_TEST(bf16_is_between_the_two) {
    sl_ranker *ranker = sensitive(), *made;
    sl_precision_search_params params;
    sl_precision_search_report report;
    sl_layer_info layer = {.struct_size = sizeof layer};
    double floats, seen[2];
    told t;
    for (int only = 0; only < 2; only++) {
        sl_precision_search_params_init(&params);
        params.leave_dynamic = 1;
        params.leave_static = only;
        params.max_drop = 0.001;
        ck_ok(search(ranker, &params, &t, &made, &report));
        ck_assert(report.within && report.proved && t.ordered);
        ck_assert_double_eq_tol(report.value, auc_of(made), 1e-4);
        ck_ok(sl_ranker_get_layer(made, 1, &layer));
        ck_assert_int_eq(layer.precision, SL_PRECISION_BF16);
        ck_ok(sl_ranker_get_layer(made, 0, &layer));
        ck_assert_int_eq(layer.precision, only ? SL_PRECISION_BF16 : SL_PRECISION_INT8);
        seen[only] = report.cost;
        sl_ranker_free(made);
    }
    params.leave_bf16 = 1;
    params.leave_static = 0;
    ck_ok(search(ranker, &params, &t, &made, &report));
    floats = report.cost;
    ck_assert(seen[0] < seen[1] && seen[0] < floats && seen[1] < 0.6);
    sl_ranker_free(made);
    sl_ranker_free(ranker);
}
END_TEST

/* Without INT8, the greedy strategies begin with bf16. */
START_TEST(greedy_strategies_begin_with_bf16) {
    for (int strategy = SL_STRATEGY_ACCURACY_AWARE; strategy <= SL_STRATEGY_MSE; strategy++) {
        sl_precision_search_params params;
        sl_precision_search_report report;
        sl_ranker *made;
        told t;
        sl_precision_search_params_init(&params);
        params.strategy = (sl_strategy)strategy;
        params.leave_static = params.leave_dynamic = 1;
        params.max_drop = 0.1;
        ck_ok(search(model, &params, &t, &made, &report));
        ck_assert(report.within && t.trials == 1);
        for (size_t l = 0; l < LAYERS; l++) {
            sl_layer_info layer = {.struct_size = sizeof layer};
            ck_ok(sl_ranker_get_layer(made, l, &layer));
            ck_assert_int_eq(layer.precision, SL_PRECISION_BF16);
        }
        sl_ranker_free(made);
    }
}
END_TEST

typedef struct course {
    size_t trials;
    double costs[200];
} course;

static void take_course(void *ctx, const sl_trial *trial) {
    course *c = ctx;
    ck_assert_uint_lt(c->trials, 200);
    c->costs[c->trials++] = trial->cost;
}

/* It measures few of all precisions and calibrations. It finds the best for any seed, and runs the same trials for the
 * same seed. */
START_TEST(the_bayesian_strategy) {
    sl_ranker *ranker = sensitive(), *made;
    sl_precision_search_params params;
    sl_precision_search_report report;
    static course courses[4];
    double least;
    told t;
    sl_precision_search_params_init(&params);
    params.max_drop = 0.001;
    ck_ok(search(ranker, &params, &t, &made, &report));
    least = report.cost;
    sl_ranker_free(made);
    for (size_t i = 0; i < 4; i++) {
        sl_quantize_params how;
        sl_quantize_params_init(&how);
        how.seed = i / 2;
        params.quantize = &how;
        params.strategy = SL_STRATEGY_BAYESIAN;
        params.trials = i == 3 ? 7 : 0;
        params.trial = take_course;
        params.trial_ctx = &courses[i];
        courses[i] = (course){0};
        report.struct_size = sizeof report;
        ck_ok(sl_ranker_search_precision(ranker, &rows.source, NULL, &params, &made, &report));
        ck_assert(report.within && !report.proved);
        ck_assert_uint_eq(report.trials, courses[i].trials);
        ck_assert_uint_le(report.trials, params.trials ? params.trials : 30);
        ck_assert_double_ge(report.cost, least);
        if (i < 3) ck_assert_double_eq(report.cost, least);
        sl_ranker_free(made);
    }
    ck_assert_mem_eq(&courses[0], &courses[1], sizeof courses[0]);
    ck_assert(memcmp(courses[0].costs, courses[2].costs, sizeof courses[0].costs) != 0);
    params.trials = 1001;
    ck_fails(sl_ranker_search_precision(ranker, &rows.source, NULL, &params, &made, NULL), SL_EINVAL, "1000 at most");
    sl_ranker_free(ranker);
}
END_TEST

/* Every choice is slightly beyond the bound, except one that is barely cheaper than the base. */
enum { NEEDLE_LAYERS = 5, NEEDLE_OPTIONS = 3, NEEDLE_CHOICES = 243 };
typedef struct needle {
    size_t measured;
    int found;
} needle;

static double needle_cost(void *ctx, const size_t *options) {
    double cost = 1;
    (void)ctx;
    for (size_t l = 0; l < NEEDLE_LAYERS; l++)
        cost -= (l ? 0.15 + 0.01 * (double)l : 0.1) * (double)options[l] / NEEDLE_OPTIONS;
    return cost;
}

static double needle_distance(size_t a, size_t b) {
    return a == b ? 0 : 0.5;
}

static int needle_is_over(void *ctx) {
    (void)ctx;
    return 0;
}

static sl_status needle_measure(void *ctx, const size_t *options, double *drop) {
    needle *n = ctx;
    const size_t only[NEEDLE_LAYERS] = {1};
    int is_needle = memcmp(options, only, sizeof only) == 0;
    n->measured++;
    n->found |= is_needle;
    *drop = is_needle ? 0.009 : 0.0101;
    return SL_OK;
}

/* Measures more choices than the number after which layer weights stay fixed. */
START_TEST(the_bayesian_strategy_learns_on) {
    needle n = {0};
    sl_bayesian problem = {.layers = NEEDLE_LAYERS,
                           .bound = 0.01,
                           .trials = SL_BAYESIAN_MOST_TRIALS - 1,
                           .cost = needle_cost,
                           .distance = needle_distance,
                           .measure = needle_measure,
                           .is_over = needle_is_over,
                           .ctx = &n,
                           .allocator = sl_allocator_of(NULL)};
    for (size_t l = 0; l < NEEDLE_LAYERS; l++) {
        problem.choices.counts[l] = NEEDLE_OPTIONS;
        for (size_t o = 0; o < NEEDLE_OPTIONS; o++)
            problem.choices.options[l][o] = o;
    }
    ck_ok(sl_bayesian_search(&problem));
    ck_assert_msg(n.found && n.measured > 128 && n.measured < NEEDLE_CHOICES, "%zu measured", n.measured);
}
END_TEST

START_TEST(what_no_choice_reaches) {
    sl_ranker *ranker = sensitive(), *made;
    sl_precision_search_params params;
    sl_precision_search_report report;
    sl_quantize_params how;
    told t;
    sl_quantize_params_init(&how);
    how.keep = (const char *const[]){"dense.0", "dense.2", "dense.3"};
    how.keep_count = 3;
    sl_precision_search_params_init(&params);
    params.quantize = &how;
    params.max_drop = 0;
    params.leave_dynamic = params.leave_bf16 = 1;
    ck_ok(search(ranker, &params, &t, &made, &report));
    ck_assert(!report.within && report.proved);
    ck_assert_uint_eq(report.blame, 1);
    ck_assert_double_gt(report.blame_drop, 0.001);
    ck_assert_double_eq_tol(report.blame_drop, report.drop, 1e-9);
    sl_ranker_free(made);
    sl_ranker_free(ranker);
}
END_TEST

START_TEST(searches_end_early) {
    sl_ranker *ranker = sensitive(), *made;
    sl_precision_search_params params;
    sl_precision_search_report report;
    told t;
    sl_precision_search_params_init(&params);
    params.trials = 1;
    params.max_drop = 0;
    ck_ok(search(ranker, &params, &t, &made, &report));
    ck_assert(!report.proved && !report.within);
    sl_ranker_free(made);
    sl_ranker_free(ranker);
}
END_TEST

/* Coded tables count against the bound like layers: the base is the model with tables of floats. */
START_TEST(tables_in_codes) {
    sl_precision_search_params params;
    sl_precision_search_report report;
    sl_quantize_params how;
    for (int type = SL_TABLE_I8; type <= SL_TABLE_I4; type++) {
        sl_ranker *made;
        sl_embedding_info table = {.struct_size = sizeof table};
        told t;
        sl_quantize_params_init(&how);
        how.tables = (sl_table_type)type;
        sl_precision_search_params_init(&params);
        params.quantize = &how;
        params.max_drop = 0.1;
        ck_ok(search(model, &params, &t, &made, &report));
        ck_assert_double_eq_tol(report.base_value, auc_of(model), 1e-6);
        ck_assert_double_eq_tol(report.value, auc_of(made), 1e-4);
        ck_ok(sl_ranker_get_embedding(made, 0, &table));
        ck_assert_int_eq(table.type, type);
        sl_ranker_free(made);
        how.precision = SL_PRECISION_F32;
        ck_ok(sl_ranker_quantize(model, NULL, &how, &made));
        ck_ok(sl_ranker_get_embedding(made, 0, &table));
        ck_assert_int_eq(table.type, type);
        sl_ranker_free(made);
    }
}
END_TEST

START_TEST(measures) {
    sl_precision_search_params params;
    sl_precision_search_report report;
    sl_ranker *made;
    told t;
    for (int measure = SL_MEASURE_AUC; measure <= SL_MEASURE_RMSE; measure++) {
        sl_precision_search_params_init(&params);
        params.measure = (sl_measure)measure;
        params.strategy = SL_STRATEGY_BASIC;
        params.max_drop = 0.1;
        params.relative = 1;
        params.group = "a";
        ck_ok(search(model, &params, &t, &made, &report));
        ck_assert(report.within && isfinite(report.value));
        sl_ranker_free(made);
    }
    params.measure = SL_MEASURE_NDCG;
    params.group = NULL;
    ck_fails(search(model, &params, &t, &made, &report), SL_EINVAL, "groups");
    params.group = "nothing";
    ck_fails(search(model, &params, &t, &made, &report), SL_ENOTFOUND, "nothing");
    params.max_drop = -1;
    ck_fails(search(model, &params, &t, &made, &report), SL_EINVAL, "max_drop");
    sl_precision_search_params_init(&params);
    params.leave_static = params.leave_dynamic = params.leave_bf16 = 1;
    ck_fails(search(model, &params, &t, &made, &report), SL_EINVAL, "leave");
    sl_ranker *squared =
        planted_ranker(&rows, "\"column\": \"value\", \"loss\": \"squared\"", NULL, "\"hidden\": [24, 16, 8]");
    sl_precision_search_params_init(&params);
    params.measure = SL_MEASURE_AUC;
    ck_fails(search(squared, &params, &t, &made, &report), SL_EINVAL, "no AUC");
    sl_ranker_free(squared);
}
END_TEST

START_TEST(searches_without_memory) {
    static const sl_strategy strategies[] = {SL_STRATEGY_MSE, SL_STRATEGY_BAYESIAN};
    sl_quantize_params how;
    sl_precision_search_params params;
    sl_quantize_params_init(&how);
    sl_precision_search_params_init(&params);
    params.quantize = &how;
    params.strategy = strategies[_i];
    params.trials = _i ? 3 : 0;
    params.threads = 1;
    params.max_drop = 0;
    how.rows = 20;
    for (size_t at = 1;; at += at < 100 ? 3 : 37) {
        fault_allocator faults;
        sl_ranker *made;
        fault_allocator_init(&faults, at);
        how.allocator = &faults.allocator;
        sl_status status = sl_ranker_search_precision(model, &rows.source, NULL, &params, &made, NULL);
        sl_ranker_free(made);
        ck_assert_uint_eq(faults.live_blocks, 0);
        if (status == SL_OK) break;
        ck_assert_int_eq(status, SL_ENOMEM);
    }
}
END_TEST

int main(void) {
    TCase *searching = tcase_create("threads"), *memory = tcase_create("memory");
    tcase_add_checked_fixture(memory, set_up, tear_down);
    tcase_add_loop_test(memory, searches_without_memory, 0, 2);
    tcase_add_checked_fixture(searching, set_up, tear_down);
    tcase_add_test(searching, the_search_keeps_its_bound);
    tcase_add_test(searching, a_sensitive_layer_stays);
    tcase_add_test(searching, bf16_is_between_the_two);
    tcase_add_test(searching, greedy_strategies_begin_with_bf16);
    tcase_add_test(searching, the_bayesian_strategy);
    tcase_add_test(searching, the_bayesian_strategy_learns_on);
    tcase_add_test(searching, what_no_choice_reaches);
    tcase_add_test(searching, searches_end_early);
    tcase_add_test(searching, tables_in_codes);
    tcase_add_test(searching, measures);
    return check_main("strategies", (TCase *[]){memory, searching}, 2);
}
