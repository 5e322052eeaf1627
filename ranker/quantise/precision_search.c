/* Searches the fastest precisions within an accuracy bound. docs/internals/precision.md describes it. */
#include "ranker/quantise/precision_search.h"

#include "base/clock.h"
#include "ranker/quantise/quantise_aware.h"
#include "ranker/quantise/search_bayesian.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Options of a layer: floats, bf16, dynamic INT8, and from STATIC on one option per calibration. */
enum { FLOATS, BF16, DYNAMIC, STATIC };
enum { PRECISIONS = 4 };

/* Costs in multiply-adds of floats: of one multiply-add in INT8, of one in bf16, of coding or rounding an input, of
 * finding an input's range. They are the same on every machine, so a search's result does not depend on where it
 * runs. */
static const double int8_share = 0.26, bf16_share = 0.5, take_cost = 0.5, range_cost = 0.5;

typedef struct search {
    const sl_search_job *job;
    const sl_precision_search_params *params; /* the job's, and so is `quantize` */
    sl_quantize_params quantize;
    const sl_ranker *ranker;
    sl_allocator allocator;
    size_t layers;
    sl_evaluator evaluator;
    sl_evaluator base; /* for the given model, if `ranker` is its copy with coded tables */
    sl_calibrated calibrated;
    size_t static_options; /* calibrations to try per layer */
    int kept[SL_MAX_LAYERS];
    sl_progress progress;
    size_t trials;
    double base_value;
    double least_cost; /* of all choices; 0 if the strategy does not know */
    /* the best so far: the cheapest within the bound, else the one that drops least */
    size_t best[SL_MAX_LAYERS];
    double best_value, best_drop, best_cost, best_error;
    int has_best, best_within;
} search;

/* ---------------------------------------------------------------------------------------------------------------
 * Choices
 * ------------------------------------------------------------------------------------------------------------- */

static sl_precision precision_of(size_t option) {
    static const sl_precision of[] = {SL_PRECISION_F32, SL_PRECISION_BF16, SL_PRECISION_INT8_DYNAMIC};
    return option < STATIC ? of[option] : SL_PRECISION_INT8;
}

/* The calibration to try at a place: the default first, then by number. A search with many layers tries only the first
 * ones. */
static sl_calibration calibration_at(size_t place) {
    if (place == 0) return SL_CALIBRATION_MSE;
    return (sl_calibration)(place - (place <= SL_CALIBRATION_MSE));
}

/* Returns whether the layer before already writes this layer's inputs in its precision. */
static int is_input_coded(const search *s, const size_t *options, size_t layer) {
    if (!layer || s->ranker->shape.activation != SL_RELU) return 0;
    size_t before = options[layer - 1];
    return options[layer] == BF16 ? before == BF16 : options[layer] >= STATIC && before >= DYNAMIC;
}

static double cost_of(const search *s, const size_t *options) {
    double cost = 0;
    for (size_t l = 0; l < s->layers; l++) {
        double in = (double)s->ranker->shape.width[l], products = in * (double)s->ranker->shape.width[l + 1];
        if (options[l] == FLOATS) {
            cost += products;
            continue;
        }
        cost += (options[l] == BF16 ? bf16_share : int8_share) * products;
        cost += (is_input_coded(s, options, l) ? 0 : take_cost * in) + (options[l] == DYNAMIC ? range_cost * in : 0);
    }
    return cost;
}

/* The cost divided by the cost of floats. */
static double cost_share(const search *s, const size_t *options) {
    return cost_of(s, options) / (double)sl_net_multiply_adds(&s->ranker->shape);
}

static double drop_of(const search *s, double value) {
    sl_measure measure = s->evaluator.measure;
    double drop =
        measure == SL_MEASURE_AUC || measure == SL_MEASURE_NDCG ? s->base_value - value : value - s->base_value;
    return s->params->relative ? drop / fabs(s->base_value) : drop;
}

/* Returns whether the strategy tries all calibrations. The greedy strategies use the given one. */
static int tries_calibrations(const search *s) {
    return s->params->strategy == SL_STRATEGY_EXHAUSTIVE || s->params->strategy == SL_STRATEGY_BAYESIAN;
}

static int is_allowed(const search *s, size_t layer, size_t option) {
    const sl_precision_search_params *params = s->params;
    const int left[PRECISIONS] = {0, params->leave_bf16, params->leave_dynamic, params->leave_static};
    return option == FLOATS || (!s->kept[layer] && !left[option]);
}

/* Adds a layer's next option. A forbidden option becomes floats and keeps its number, because its own rows and weights
 * may not allow it. */
static sl_status add_option(search *s, size_t layer, size_t option, const sl_quantize_params *how) {
    sl_layer_choice choices[SL_MAX_LAYERS];
    sl_quantize_params one = *how;
    one.layers = NULL;
    one.keep_count = 0;
    one.precision = is_allowed(s, layer, option) ? precision_of(option) : SL_PRECISION_F32;
    SL_TRY(sl_layer_choices(s->ranker, &one, choices));
    return sl_evaluator_add(&s->evaluator, &s->calibrated, layer, &choices[layer]);
}

static sl_status add_options(search *s) {
    for (size_t l = 0; l < s->layers; l++) {
        for (size_t option = FLOATS; option < STATIC; option++)
            SL_TRY(add_option(s, l, option, &s->quantize));
        for (size_t c = 0; c < s->static_options; c++) {
            sl_quantize_params how = s->quantize;
            if (tries_calibrations(s)) how.calibration = calibration_at(c);
            SL_TRY(add_option(s, l, STATIC, &how));
        }
    }
    return SL_OK;
}

/* ---------------------------------------------------------------------------------------------------------------
 * Trials
 * ------------------------------------------------------------------------------------------------------------- */

static sl_calibration calibration_of(const search *s, size_t option) {
    if (option < STATIC || !tries_calibrations(s)) return s->quantize.calibration;
    return calibration_at(option - STATIC);
}

static int has_codes(const search *s, const size_t *options) {
    for (size_t l = 0; l < s->layers; l++)
        if (options[l] != FLOATS) return 1;
    return 0;
}

/* Returns whether a trial replaces the best. Within the bound beats outside it. Within it, the lower cost wins, then
 * the logits nearer to F32. Comparing drops there would choose the luckiest rounding on these labels. Outside the bound
 * only the drop counts. */
static int is_better(const search *s, const sl_trial *trial) {
    if (!s->has_best || trial->within != s->best_within) return !s->has_best || trial->within;
    if (!trial->within) return trial->drop < s->best_drop;
    return trial->cost != s->best_cost ? trial->cost < s->best_cost : trial->error < s->best_error;
}

/* Reports a trial and keeps it if it is the best. Returns whether it is within the bound and faster than F32. */
static int note_trial(search *s, const size_t *options, const sl_evaluation *found) {
    sl_precision precisions[SL_MAX_LAYERS];
    sl_calibration of[SL_MAX_LAYERS];
    sl_trial trial = {.struct_size = sizeof trial,
                      .number = ++s->trials,
                      .layers = s->layers,
                      .precisions = precisions,
                      .calibrations = s->params->training ? NULL : of,
                      .value = found->value,
                      .drop = drop_of(s, found->value),
                      .cost = cost_share(s, options),
                      .error = found->error,
                      .tables = s->quantize.tables};
    trial.within = trial.drop <= s->params->max_drop;
    for (size_t l = 0; l < s->layers; l++) {
        precisions[l] = precision_of(options[l]);
        of[l] = calibration_of(s, options[l]);
    }
    if (s->params->trial) s->params->trial(s->params->trial_ctx, &trial);
    /* A layer with few outputs may be slower in codes. */
    int is_faster = has_codes(s, options) && trial.cost < 1;
    if (is_faster && is_better(s, &trial)) {
        memcpy(s->best, options, sizeof s->best);
        s->best_value = trial.value;
        s->best_drop = trial.drop;
        s->best_cost = trial.cost;
        s->best_error = trial.error;
        s->best_within = trial.within;
        s->has_best = 1;
    }
    return trial.within && is_faster;
}

int sl_search_is_over(const sl_search_job *job, size_t trials) {
    const sl_precision_search_params *params = job->params;
    return (params->trials && trials >= params->trials) ||
           (params->timeout_s > 0 && sl_now_s() - job->start >= params->timeout_s);
}

static int is_over(const search *s) {
    return sl_search_is_over(s->job, s->trials);
}

static sl_status check_value(const search *s, double value) {
    static const char *const names[] = {"", "AUC", "logloss", "NDCG", "RMSE"};
    if (isfinite(value)) return SL_OK;
    return sl_fail(SL_EINVAL,
                   "the rows have no %s: the loss, the labels or the groups do not give one; name another "
                   "measure or other rows",
                   names[s->evaluator.measure]);
}

/* Makes a set that holds one choice. */
static void set_of(const size_t *options, size_t layers, sl_choice_set *out) {
    for (size_t l = 0; l < layers; l++) {
        out->counts[l] = 1;
        out->options[l][0] = options[l];
    }
}

/* Measures one choice. */
static sl_status try_one(search *s, const size_t *options, sl_evaluation *found) {
    sl_choice_set set;
    set_of(options, s->layers, &set);
    SL_TRY(sl_evaluator_measure(&s->evaluator, &set, &s->progress, found));
    return check_value(s, found->value);
}

static sl_status try_and_note(search *s, const size_t *options, double *drop, int *within) {
    sl_evaluation found;
    SL_TRY(try_one(s, options, &found));
    *within = note_trial(s, options, &found);
    *drop = drop_of(s, found.value);
    return SL_OK;
}

/* ---------------------------------------------------------------------------------------------------------------
 * All choices, the fastest first
 * ------------------------------------------------------------------------------------------------------------- */

/* A precision for each layer. The number has one base-4 digit per layer, from FLOATS to STATIC. */
typedef struct precisions {
    double cost;
    size_t number;
} precisions;

static void digits_of(const search *s, size_t number, size_t *options) {
    for (size_t l = 0; l < s->layers; l++, number /= PRECISIONS)
        options[l] = number % PRECISIONS;
}

static int by_cost(const void *a, const void *b) {
    const precisions *x = a, *y = b;
    if (x->cost != y->cost) return x->cost < y->cost ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

/* Lists the allowed precisions by rising cost. Returns how many there are. */
static size_t list_precisions(const search *s, size_t all, precisions *list) {
    size_t count = 0;
    for (size_t number = 0; number < all; number++) {
        size_t options[SL_MAX_LAYERS];
        int fits = 1;
        digits_of(s, number, options);
        for (size_t l = 0; l < s->layers; l++)
            fits &= is_allowed(s, l, options[l]);
        if (fits && has_codes(s, options)) list[count++] = (precisions){cost_of(s, options), number};
    }
    qsort(list, count, sizeof *list, by_cost);
    return count;
}

/* Measures all calibrations of one choice of precisions. */
static sl_status try_precisions(search *s, size_t number, int *within) {
    sl_choice_set set;
    size_t chosen[SL_MAX_LAYERS];
    void *block;
    digits_of(s, number, chosen);
    for (size_t l = 0; l < s->layers; l++) {
        set.counts[l] = chosen[l] == STATIC ? s->static_options : 1;
        for (size_t c = 0; c < set.counts[l]; c++)
            set.options[l][c] = chosen[l] + c;
    }
    size_t size = sl_choice_set_size(&set, s->layers);
    SL_TRY(sl_mem_alloc(&s->allocator, size * sizeof(sl_evaluation), &block));
    sl_evaluation *found = block;
    sl_status status = sl_evaluator_measure(&s->evaluator, &set, &s->progress, found);
    for (size_t i = 0; i < size && status == SL_OK; i++) {
        size_t options[SL_MAX_LAYERS];
        for (size_t l = 0; l < s->layers; l++)
            options[l] = sl_choice_of(&set, s->layers, i, l);
        status = check_value(s, found[i].value);
        if (status == SL_OK) *within |= note_trial(s, options, &found[i]);
    }
    sl_mem_free(&s->allocator, block, size * sizeof(sl_evaluation));
    return status;
}

static sl_status search_all(search *s, int *proved) {
    size_t all = 1;
    void *block;
    for (size_t l = 0; l < s->layers; l++)
        all *= PRECISIONS;
    SL_TRY(sl_mem_alloc(&s->allocator, all * sizeof(precisions), &block));
    precisions *list = block;
    size_t count = list_precisions(s, all, list), i = 0;
    int within = 0;
    sl_status status = SL_OK;
    double whole = (double)sl_net_multiply_adds(&s->ranker->shape);
    if (count) s->least_cost = list[0].cost / whole;
    while (count && list[count - 1].cost / whole >= s->job->below)
        count--;
    /* Tries all choices of equal cost before it stops, so that the best of them wins. */
    for (; i < count && status == SL_OK && !(i && is_over(s)); i++) {
        if (within && list[i].cost > list[i - 1].cost) break;
        status = try_precisions(s, list[i].number, &within);
    }
    *proved = within || i == count;
    sl_mem_free(&s->allocator, block, all * sizeof(precisions));
    return status;
}

/* ---------------------------------------------------------------------------------------------------------------
 * Greedy searches, which set layers back to floats
 * ------------------------------------------------------------------------------------------------------------- */

static size_t first_option(const search *s, size_t layer) {
    static const size_t order[] = {STATIC, DYNAMIC, BF16};
    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        if (is_allowed(s, layer, order[i])) return order[i];
    return FLOATS;
}

/* Sets the layer that gains most back to floats, measuring every layer again, until the choice is within the bound. */
static sl_status search_aware(search *s, size_t *options, int within) {
    while (!within && has_codes(s, options) && !is_over(s)) {
        size_t best = SIZE_MAX;
        double least = 0;
        int reached = 0;
        for (size_t l = 0; l < s->layers && !is_over(s); l++) {
            size_t kept = options[l];
            double drop;
            if (kept == FLOATS) continue;
            options[l] = FLOATS;
            SL_TRY(try_and_note(s, options, &drop, &reached));
            options[l] = kept;
            if (best != SIZE_MAX && drop >= least) continue;
            best = l;
            least = drop;
            within = reached;
        }
        if (best == SIZE_MAX) break;
        options[best] = FLOATS;
    }
    return SL_OK;
}

/* Orders the layers by falling key. */
static void order_layers(const search *s, const double *keys, size_t *order) {
    for (size_t l = 0; l < s->layers; l++) {
        size_t at = l;
        for (; at && keys[order[at - 1]] < keys[l]; at--)
            order[at] = order[at - 1];
        order[at] = l;
    }
}

/* Sets layers back to floats one after the other, in the given order, until the choice is within the bound. */
static sl_status set_layers_back(search *s, size_t *options, const size_t *order, int within) {
    for (size_t i = 0; i < s->layers && !within && !is_over(s); i++) {
        double drop;
        if (options[order[i]] == FLOATS) continue;
        options[order[i]] = FLOATS;
        SL_TRY(try_and_note(s, options, &drop, &within));
    }
    return SL_OK;
}

/* Sets each layer back alone, then several together, from the one that gained most on. */
static sl_status search_basic(search *s, size_t *options, double start, int within) {
    double gains[SL_MAX_LAYERS] = {0};
    size_t order[SL_MAX_LAYERS];
    for (size_t l = 0; l < s->layers && !within && !is_over(s); l++) {
        size_t kept = options[l];
        double drop;
        if (kept == FLOATS) continue;
        options[l] = FLOATS;
        SL_TRY(try_and_note(s, options, &drop, &within));
        options[l] = kept;
        gains[l] = start - drop;
    }
    order_layers(s, gains, order);
    return set_layers_back(s, options, order, within);
}

/* The squared error of a layer's outputs divided by the squared outputs of floats, on the calibration rows. */
static sl_status layer_error(const search *s, size_t layer, size_t option, double *out) {
    const sl_net_shape *shape = &s->ranker->shape;
    size_t in = shape->width[layer], outputs = shape->width[layer + 1];
    const float *weights = s->ranker->weights.dense + sl_net_weight_at(shape, layer);
    const sl_net_layer *coded = &s->evaluator.layers[layer].options[option].coded;
    sl_net_scratch scratch;
    void *block;
    double error = 0, square = 0;
    SL_TRY(sl_net_scratch_create(shape, coded->int8 != NULL, coded->bf16 != NULL, 1, &s->allocator, &scratch));
    sl_status status = sl_mem_alloc(&s->allocator, outputs * sizeof(float), &block);
    float *y = block;
    for (size_t r = 0; r < s->calibrated.rows && status == SL_OK; r++) {
        const float *x = s->calibrated.layers[layer].inputs + r * in;
        const sl_layer_inputs inputs = {.x = x, .stride = in, .rows = 1, .count = in};
        sl_net_layer_encode_inputs(&scratch, coded, &inputs, 0, 0);
        sl_net_layer_multiply(&scratch, coded, 1, 0, y);
        for (size_t o = 0; o < outputs; o++) {
            double exact = (double)weights[in * outputs + o];
            for (size_t i = 0; i < in; i++)
                exact += (double)x[i] * (double)weights[i * outputs + o];
            error += (exact - (double)y[o]) * (exact - (double)y[o]);
            square += exact * exact;
        }
    }
    *out = square > 0 ? error / square : 0;
    if (status == SL_OK) SL_FREE_ARRAY(&s->allocator, y, outputs);
    sl_net_scratch_free(&scratch, &s->allocator);
    return status;
}

static sl_status search_mse(search *s, size_t *options, int within) {
    double errors[SL_MAX_LAYERS] = {0};
    size_t order[SL_MAX_LAYERS];
    if (within) return SL_OK;
    for (size_t l = 0; l < s->layers; l++)
        if (options[l] != FLOATS) SL_TRY(layer_error(s, l, options[l], &errors[l]));
    order_layers(s, errors, order);
    return set_layers_back(s, options, order, within);
}

/* Starts with every layer in the fewest bits that are allowed. */
static sl_status search_greedy(search *s) {
    size_t options[SL_MAX_LAYERS];
    double drop;
    int within;
    for (size_t l = 0; l < s->layers; l++)
        options[l] = first_option(s, l);
    s->least_cost = cost_share(s, options);
    SL_TRY(try_and_note(s, options, &drop, &within));
    if (s->params->strategy == SL_STRATEGY_ACCURACY_AWARE) return search_aware(s, options, within);
    if (s->params->strategy == SL_STRATEGY_BASIC) return search_basic(s, options, drop, within);
    return search_mse(s, options, within);
}

/* ---------------------------------------------------------------------------------------------------------------
 * Bayesian optimisation
 * ------------------------------------------------------------------------------------------------------------- */

static double bayesian_cost(void *ctx, const size_t *options) {
    return cost_share(ctx, options);
}

/* Two calibrations of one precision are close. */
static double bayesian_distance(size_t a, size_t b) {
    return a == b ? 0 : a >= STATIC && b >= STATIC ? 0.3 : 1;
}

static sl_status bayesian_measure(void *ctx, const size_t *options, double *drop) {
    int within;
    return try_and_note(ctx, options, drop, &within);
}

static int bayesian_is_over(void *ctx) {
    return is_over(ctx);
}

static sl_status search_bayesian(search *s) {
    sl_bayesian problem = {.layers = s->layers,
                           .bound = s->params->max_drop,
                           .trials = s->params->trials ? s->params->trials - s->trials : SL_BAYESIAN_TRIALS,
                           .seed = s->quantize.seed,
                           .cost = bayesian_cost,
                           .distance = bayesian_distance,
                           .measure = bayesian_measure,
                           .is_over = bayesian_is_over,
                           .ctx = s,
                           .allocator = s->allocator};
    for (size_t l = 0; l < s->layers; l++)
        for (size_t option = FLOATS; option < STATIC + s->static_options; option++)
            if (is_allowed(s, l, option < STATIC ? option : STATIC))
                problem.choices.options[l][problem.choices.counts[l]++] = option;
    return sl_bayesian_search(&problem);
}

/* ---------------------------------------------------------------------------------------------------------------
 * The search
 * ------------------------------------------------------------------------------------------------------------- */

static sl_measure measure_of(const sl_ranker *ranker, sl_measure asked) {
    if (asked != SL_MEASURE_DEFAULT) return asked;
    sl_loss loss = ranker->features->spec->loss;
    return loss == SL_LOSS_LOGISTIC ? SL_MEASURE_AUC : loss == SL_LOSS_SQUARED ? SL_MEASURE_RMSE : SL_MEASURE_LOGLOSS;
}

/* The number of calibrations per layer that bounds the combinations of one choice of precisions. */
static size_t static_options_of(const search *s) {
    enum { MOST = 256 };
    size_t count = tries_calibrations(s) ? SL_CALIBRATIONS : 1;
    while (count > 1 && pow((double)count, (double)s->layers) > MOST)
        count--;
    return count;
}

static sl_status prepare_search(search *s, const sl_rows *rows, const sl_rows *eval) {
    const sl_quantize_params *how = &s->quantize;
    const sl_draw draw = {.rows = how->rows, .seed = how->seed, .lookup = how->lookup, .lookup_ctx = how->lookup_ctx};
    sl_layer_choice choices[SL_MAX_LAYERS];
    sl_rows_buffer drawn = {.allocator = s->allocator};
    sl_encoded view;
    SL_TRY(sl_layer_choices(s->ranker, how, choices));
    for (size_t l = 0; l < s->layers; l++)
        s->kept[l] = choices[l].type == SL_LAYER_F32;
    sl_status status = sl_draw_rows(s->ranker->features, rows, &draw, &drawn);
    sl_rows_buffer_view(&drawn, &view);
    if (status == SL_OK) status = sl_calibrate(s->ranker, &view, &s->allocator, &s->calibrated);
    sl_rows_buffer_free(&drawn);
    SL_TRY(status);
    SL_TRY(sl_evaluator_read(&s->evaluator, eval ? eval : rows, s->params->group, how->lookup, how->lookup_ctx));
    s->static_options = static_options_of(s);
    return add_options(s);
}

/* Finds the layer whose codes alone cost the most accuracy. */
static sl_status find_blame(search *s, sl_precision_search_report *report) {
    for (size_t l = 0; l < s->layers; l++) {
        size_t options[SL_MAX_LAYERS] = {FLOATS};
        sl_evaluation found;
        options[l] = s->best[l];
        if (options[l] == FLOATS) continue;
        SL_TRY(try_one(s, options, &found));
        if (report->blame != SIZE_MAX && drop_of(s, found.value) <= report->blame_drop) continue;
        report->blame = l;
        report->blame_drop = drop_of(s, found.value);
    }
    return SL_OK;
}

static sl_status make_best(search *s, sl_ranker **out) {
    sl_layer_choice choices[SL_MAX_LAYERS];
    sl_coded_layers coded;
    for (size_t l = 0; l < s->layers; l++)
        choices[l] = s->evaluator.layers[l].options[s->best[l]].choice;
    SL_TRY(sl_quantise_layers(s->ranker, &s->calibrated, choices, &s->allocator, &coded));
    return sl_ranker_with_coded(s->ranker, &coded, &s->allocator, out);
}

static sl_status conclude_search(search *s, sl_precision_search_report *report, sl_ranker **out) {
    sl_choice_set floats, best;
    const size_t none[SL_MAX_LAYERS] = {FLOATS};
    if (!s->has_best)
        return sl_fail(SL_EINVAL, "no layer may be quantised, or none is faster than in F32: keep fewer layers in F32");
    report->value = s->best_value;
    report->drop = s->best_drop;
    report->cost = s->best_cost;
    report->within = s->best_within;
    set_of(none, s->layers, &floats);
    set_of(s->best, s->layers, &best);
    const sl_evaluated given = {s->base.ranker ? &s->base : &s->evaluator, &floats}, made = {&s->evaluator, &best};
    SL_TRY(sl_evaluator_difference_error(&given, &made, &report->drop_error));
    if (s->params->relative) report->drop_error /= fabs(s->base_value);
    if (!report->within) SL_TRY(find_blame(s, report));
    return make_best(s, out);
}

/* Measures the given model, whose tables are floats. */
static sl_status measure_base(search *s, const sl_ranker *given, const sl_rows *eval) {
    const size_t none[SL_MAX_LAYERS] = {FLOATS};
    sl_choice_set floats;
    sl_evaluation found;
    set_of(none, s->layers, &floats);
    if (s->ranker == given) {
        SL_TRY(try_one(s, none, &found));
        s->base_value = found.value;
        return sl_evaluator_set_reference(&s->evaluator, &(sl_evaluated){&s->evaluator, &floats});
    }
    s->base = (sl_evaluator){.allocator = s->allocator,
                             .ranker = given,
                             .measure = s->evaluator.measure,
                             .ndcg_k = s->evaluator.ndcg_k,
                             .threads = s->evaluator.threads};
    SL_TRY(sl_evaluator_read(&s->base, eval, s->params->group, s->quantize.lookup, s->quantize.lookup_ctx));
    if (s->base.rows.rows != s->evaluator.rows.rows)
        return sl_fail(SL_EVALUE, "the rows are others at another reading; give a source whose rows stay the same");
    for (size_t l = 0; l < s->layers; l++)
        SL_TRY(sl_evaluator_add(&s->base, NULL, l, &(sl_layer_choice){.type = SL_LAYER_F32}));
    SL_TRY(sl_evaluator_measure(&s->base, &floats, &s->progress, &found));
    s->base_value = found.value;
    SL_TRY(check_value(s, s->base_value));
    return sl_evaluator_set_reference(&s->evaluator, &(sl_evaluated){&s->base, &floats});
}

static sl_status check_base(const search *s) {
    if (!s->params->relative || s->base_value != 0) return SL_OK;
    return sl_fail(SL_EINVAL, "the measure of F32 is 0, and max_drop is a share of it; give it without relative");
}

/* ---------------------------------------------------------------------------------------------------------------
 * One choice, trained
 * ------------------------------------------------------------------------------------------------------------- */

/* Measures the one choice that training makes: all layers in INT8 except the kept ones. */
static sl_status search_by_training(search *s, const sl_ranker *base, const sl_rows *rows, const sl_rows *eval,
                                    sl_precision_search_report *report, sl_ranker **out) {
    const sl_quantize_params *how = &s->quantize;
    size_t options[SL_MAX_LAYERS];
    sl_layer_info layer = {.struct_size = sizeof layer};
    double values[2];
    SL_TRY(sl_evaluator_read(&s->evaluator, eval ? eval : rows, s->params->group, how->lookup, how->lookup_ctx));
    SL_TRY(sl_quantise_aware(base, rows, s->params->training, how, out));
    SL_TRY(sl_compare_rankers(&s->evaluator, *out, values, &report->drop_error));
    for (size_t i = 0; i < 2; i++)
        SL_TRY(check_value(s, values[i]));
    for (size_t l = 0; l < s->layers; l++) {
        SL_TRY(sl_ranker_get_layer(*out, l, &layer));
        options[l] = layer.precision == SL_PRECISION_F32 ? FLOATS : STATIC;
    }
    s->base_value = values[0];
    SL_TRY(check_base(s));
    note_trial(s, options, &(sl_evaluation){values[1], (double)NAN});
    report->base_value = values[0];
    report->rows = s->evaluator.rows.rows;
    report->trials = s->trials;
    report->value = s->best_value;
    report->drop = s->best_drop;
    report->cost = s->best_cost;
    report->within = s->best_within;
    if (s->params->relative) report->drop_error /= fabs(s->base_value);
    report->seconds = sl_now_s() - s->job->start;
    return SL_OK;
}

static sl_status search_choices(search *s, const sl_ranker *given, const sl_rows *rows, const sl_rows *eval,
                                sl_precision_search_report *report, sl_ranker **out) {
    SL_TRY(prepare_search(s, rows, eval));
    SL_TRY(measure_base(s, given, eval ? eval : rows));
    SL_TRY(check_base(s));
    report->base_value = s->base_value;
    report->rows = s->evaluator.rows.rows;
    if (s->params->strategy == SL_STRATEGY_EXHAUSTIVE)
        SL_TRY(search_all(s, &report->proved));
    else if (s->params->strategy == SL_STRATEGY_BAYESIAN)
        SL_TRY(search_bayesian(s));
    else
        SL_TRY(search_greedy(s));
    report->trials = s->trials;
    if (!s->has_best && s->job->below <= 1) return SL_OK;
    SL_TRY(conclude_search(s, report, out));
    report->seconds = sl_now_s() - s->job->start;
    return sl_progress_end(&s->progress);
}

sl_status sl_search_precisions(const sl_search_job *job, sl_ranker **out, sl_precision_search_report *report,
                               int *is_least) {
    const sl_precision_search_params *params = job->params;
    const sl_ranker *ranker = job->ranker;
    search s = {.job = job, .params = params, .quantize = job->quantize, .layers = ranker->shape.layers};
    sl_ranker *smaller;
    *out = NULL;
    /* Training needs tables of floats, and codes them at the end. */
    SL_TRY(sl_ranker_with_table_type(ranker, params->training ? SL_TABLE_F32 : s.quantize.tables, &smaller));
    s.ranker = smaller ? smaller : ranker;
    s.trials = job->trials;
    s.allocator = sl_allocator_of(s.quantize.allocator);
    s.evaluator = (sl_evaluator){.allocator = s.allocator,
                                 .ranker = s.ranker,
                                 .measure = measure_of(ranker, params->measure),
                                 .ndcg_k = params->ndcg_k,
                                 .threads = sl_thread_count(params->threads)};
    sl_progress_start(&s.progress, params->progress, params->progress_ctx, 0);
    sl_status status = params->training ? search_by_training(&s, ranker, job->rows, job->eval, report, out)
                                        : search_choices(&s, ranker, job->rows, job->eval, report, out);
    *is_least = report->within && report->cost <= s.least_cost;
    sl_evaluator_free(&s.evaluator);
    if (s.base.ranker) sl_evaluator_free(&s.base);
    sl_calibrated_free(&s.calibrated);
    sl_ranker_free(smaller);
    if (status == SL_OK) return SL_OK;
    sl_ranker_free(*out);
    *out = NULL;
    return status;
}
