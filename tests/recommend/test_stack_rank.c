/* Every call of the ranker, the items and the recommender takes less of its thread's stack than the header grants, and
 * a thread of a small stack may make every call. */
#include "tests/support/funnel.h"
#include "tests/support/planted.h"
#include "tests/support/scratch.h"
#include "tests/support/stack.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* DEPTH: cJSON reads texts that are nested so deep. */
enum { ROWS = 400, HIDDEN = 24, LAYERS = 3, N = 10, CANDIDATES = 60, DEPTH = 990 };

#define CLICK "\"column\": \"click\""
#define VALUE "\"column\": \"value\", \"loss\": \"squared\""
#define KIND  "\"column\": \"kind\", \"loss\": \"multiclass\""
#define DEEP  "\"hidden\": [24, 8]"
#define TRAIN "\"epochs\": 2"

static planted rows;
static funnel f;
static scratch place;
static char other[SCRATCH_PATH], csv_path[SCRATCH_PATH];
static float scores[3 * FUNNEL_ITEMS];
static size_t threads;

#define INIT(kind, params) STACK_DO(sl_##kind##_params_init_sized(params, sizeof *(params)))

/* ---------------------------------------------------------------------------------------------------------------
 * Rows and specs
 * ------------------------------------------------------------------------------------------------------------- */

static void read_csv(void) {
    char spec[PLANTED_SPEC];
    sl_csv_params params;
    sl_csv *csv;
    sl_rows source = {.struct_size = sizeof source};
    sl_table block = {.struct_size = sizeof block};
    INIT(csv, &params);
    planted_spec(spec, CLICK, "", NULL, TRAIN, "\"csv\": {\"delimiter\": \";\"}");
    params.spec = spec;
    file_write(csv_path, "a;b\n1;2\n3;\"4\n5\"\n", 16);
    STACK_OK(sl_csv_open(csv_path, &params, &csv));
    STACK_OK(sl_csv_rows(csv, &source));
    ck_ok(source.next(source.ctx, 10, &block));
    ck_assert_uint_eq(block.rows, 2);
    STACK_DO(sl_csv_free(csv));
    sl_table_cursor *cursor;
    STACK_DO(cursor = malloc(sl_table_cursor_size(PLANTED_COLUMNS)));
    STACK_DO((void)sl_table_cursor_size(PLANTED_COLUMNS));
    STACK_OK(sl_table_rows(&rows.table, cursor, &source));
    free(cursor);
}

/* Brackets within brackets: a spec is a stranger's text. */
static void nested_specs(void) {
    static const char *const pairs[] = {"[]", "{}"};
    static char text[8 * DEPTH];
    sl_ranker *made;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        for (int depth = DEPTH; depth > 0; depth -= DEPTH / 3) {
            char *at = text;
            for (int d = 0; d < depth; d++)
                at += sprintf(at, "%c%s", pairs[i][0], pairs[i][0] == '{' ? "\"a\":" : "");
            at += sprintf(at, "1");
            memset(at, pairs[i][1], (size_t)depth);
            at[depth] = 0;
            STACK_FAILS(sl_ranker_create(text, &rows.source, NULL, &made), SL_EINVAL);
        }
}

/* ---------------------------------------------------------------------------------------------------------------
 * Models
 * ------------------------------------------------------------------------------------------------------------- */

static void train(const char *label, const char *extra) {
    char spec[PLANTED_SPEC];
    sl_train_params params;
    sl_train_report report = {.struct_size = sizeof report};
    sl_ranker *made, *again;
    INIT(train, &params);
    params.threads = threads;
    params.checkpoint = other;
    params.checkpoint_steps = 1;
    planted_spec(spec, label, "", DEEP, TRAIN, extra);
    remove(other);
    for (int precision = SL_TRAIN_F32; precision <= SL_TRAIN_FP16; precision++) {
        params.precision = (sl_train_precision)precision;
        STACK_TRY(sl_ranker_train(spec, &rows.source, &rows.source, &params, &made, &report));
        if (!made) return; /* no oneDNN */
        remove(other);
        params.init = params.teacher = made;
        params.precision = SL_TRAIN_F32;
        for (int layers = SL_TRAIN_LAYERS_F32; layers <= SL_TRAIN_LAYERS_INT8; layers++) {
            params.layers = (sl_train_layers)layers;
            params.ranges = layers ? SL_TRAIN_RANGES_LEARNED : SL_TRAIN_RANGES_OBSERVED;
            STACK_OK(sl_ranker_train(spec, &rows.source, &rows.source, &params, &again, &report));
            remove(other);
            STACK_DO(sl_ranker_free(again));
        }
        params.init = params.teacher = NULL;
        params.layers = SL_TRAIN_LAYERS_F32;
        params.ranges = SL_TRAIN_RANGES_OBSERVED;
        STACK_DO(sl_ranker_free(made));
    }
}

static void train_all(void) {
    char spec[PLANTED_SPEC];
    sl_ranker *made;
    train(CLICK, "");
    train(VALUE, "\"weight\": {\"column\": \"weight\"}");
    train(KIND, "");
    planted_spec(spec, CLICK, "", NULL, TRAIN, "");
    STACK_OK(sl_ranker_train(spec, &rows.source, NULL, NULL, &made, NULL));
    STACK_DO(sl_ranker_free(made));
    STACK_DO((void)sl_train_precision_name(SL_TRAIN_BF16));
}

static void ask_model(const sl_ranker *model) {
    sl_ranker_info info = {.struct_size = sizeof info};
    sl_feature_info feature = {.struct_size = sizeof feature};
    sl_embedding_info table = {.struct_size = sizeof table};
    sl_layer_info layer = {.struct_size = sizeof layer};
    sl_tensor tensor;
    STACK_OK(sl_ranker_get_info(model, &info));
    STACK_DO((void)sl_ranker_class(model, 0));
    STACK_OK(sl_ranker_get_feature(model, 0, &feature));
    STACK_DO((void)sl_ranker_tensor_count(model));
    STACK_OK(sl_ranker_get_tensor(model, 0, &tensor));
    STACK_OK(sl_ranker_get_embedding(model, 0, &table));
    STACK_OK(sl_ranker_get_layer(model, 0, &layer));
}

static void predict(const sl_ranker *model) {
    sl_predictor_params params;
    sl_predictor *predictor;
    sl_encoded encoded = {.struct_size = sizeof encoded};
    sl_evaluate_params evaluate;
    sl_metrics metrics = {.struct_size = sizeof metrics};
    sl_ranker_info info = {.struct_size = sizeof info};
    INIT(predictor, &params);
    params.threads = threads;
    STACK_OK(sl_predictor_create(model, &params, &predictor));
    STACK_OK(sl_predictor_predict(predictor, &rows.table, scores));
    STACK_OK(sl_predictor_encode(predictor, &rows.table, &encoded));
    STACK_OK(sl_predictor_predict_encoded(predictor, &encoded, scores));
    STACK_DO(sl_predictor_free(predictor));
    INIT(evaluate, &evaluate);
    evaluate.threads = threads;
    evaluate.group = "a";
    ck_ok(sl_ranker_get_info(model, &info));
    STACK_TRY(sl_ranker_evaluate(model, &rows.source, &evaluate, &metrics));
    if (info.loss != SL_LOSS_LOGISTIC) return;
    STACK_OK(sl_metrics_compute(SL_LOSS_LOGISTIC, 1, scores, rows.click, rows.weight, NULL, ROWS, &evaluate, &metrics));
}

static void save_and_open(const sl_ranker *model) {
    sl_save_params save;
    sl_ranker_open_params open;
    sl_file_check_params check;
    sl_ranker_check_report report = {.struct_size = sizeof report};
    sl_ranker *opened;
    INIT(save, &save);
    STACK_OK(sl_ranker_save(model, place.path, &save));
    INIT(ranker_open, &open);
    STACK_OK(sl_ranker_open(place.path, &open, &opened));
    STACK_DO(sl_ranker_free(opened));
    INIT(file_check, &check);
    STACK_OK(sl_ranker_check(place.path, &check, &report));
}

static void quantise(const sl_ranker *model) {
    sl_quantize_params params;
    sl_quantized_layer given[LAYERS];
    sl_layer_info layer = {.struct_size = sizeof layer};
    int8_t codes[64 * HIDDEN] = {1};
    sl_ranker *made;
    INIT(quantize, &params);
    for (int precision = SL_PRECISION_INT8; precision <= SL_PRECISION_BF16; precision++)
        for (int how = SL_CALIBRATION_MINMAX; how <= SL_CALIBRATION_MSE; how++) {
            params.precision = (sl_precision)precision;
            params.calibration = (sl_calibration)how;
            params.tables = how % 2 ? SL_TABLE_I4 : SL_TABLE_I8;
            STACK_OK(sl_ranker_quantize(model, &rows.source, &params, &made));
            ask_model(made);
            predict(made);
            save_and_open(made);
            STACK_DO(sl_ranker_free(made));
        }
    params.precision = SL_PRECISION_INT8;
    ck_ok(sl_ranker_quantize(model, &rows.source, &params, &made));
    for (size_t i = 0; i < LAYERS; i++) {
        ck_ok(sl_ranker_get_layer(made, i, &layer));
        ck_assert_uint_le(layer.in * layer.out, sizeof codes);
        given[i] = (sl_quantized_layer){SL_PRECISION_INT8, layer.scale, layer.zero, codes, layer.weight_scales};
    }
    sl_ranker *again;
    STACK_OK(sl_ranker_with_layers(model, given, LAYERS, &again));
    STACK_DO(sl_ranker_free(again));
    STACK_DO(sl_ranker_free(made));
}

static void search_precisions(const sl_ranker *model) {
    sl_precision_search_params params;
    sl_precision_search_report report = {.struct_size = sizeof report};
    sl_train_params training;
    sl_ranker *made;
    INIT(train, &training);
    training.threads = threads;
    training.epochs = 1;
    for (int strategy = SL_STRATEGY_EXHAUSTIVE; strategy <= SL_STRATEGY_BAYESIAN + 1; strategy++) {
        INIT(precision_search, &params);
        params.strategy = (sl_strategy)(strategy % (SL_STRATEGY_BAYESIAN + 1));
        params.training = strategy > SL_STRATEGY_BAYESIAN ? &training : NULL;
        params.trials = params.training ? 0 : 12;
        params.threads = threads;
        STACK_TRY(sl_ranker_search_precision(model, &rows.source, NULL, &params, &made, &report));
        STACK_DO(sl_ranker_free(made));
    }
}

static void make_smaller(const sl_ranker *model) {
    sl_prune_params params;
    sl_prune_report report = {.struct_size = sizeof report};
    sl_train_params training;
    sl_tensor tensor;
    sl_ranker *made;
    INIT(prune, &params);
    INIT(train, &training);
    training.threads = threads;
    params.units = 0.3;
    params.weights = 0.5;
    STACK_TRY(sl_ranker_prune(model, &rows.source, NULL, &params, &training, &made, &report));
    STACK_DO(sl_ranker_free(made));
    params.criterion = SL_PRUNE_NORM;
    STACK_OK(sl_ranker_prune(model, NULL, NULL, &params, NULL, &made, &report));
    STACK_DO(sl_ranker_free(made));
    ck_ok(sl_ranker_get_tensor(model, 0, &tensor));
    STACK_OK(sl_ranker_with_tensors(model, &tensor, 1, &made));
    STACK_DO(sl_ranker_free(made));
}

static void use_models(void) {
    static const char *const labels[] = {CLICK, VALUE, KIND};
    for (size_t i = 0; i < sizeof labels / sizeof *labels; i++) {
        char spec[PLANTED_SPEC];
        sl_ranker *model;
        planted_spec(spec, labels[i], "", DEEP, TRAIN, "");
        STACK_OK(sl_ranker_create(spec, &rows.source, NULL, &model));
        ask_model(model);
        predict(model);
        save_and_open(model);
        quantise(model);
        search_precisions(model);
        make_smaller(model);
        STACK_DO(sl_ranker_free(model));
    }
    const uint64_t ids[] = {1, 2, 3, 4}, relevant[] = {2, 9};
    const size_t start[] = {0, 1, 2};
    double ndcg, recall, hits;
    STACK_OK(sl_list_metrics(ids, 2, 2, relevant, start, &ndcg, &recall, &hits));
}

/* ---------------------------------------------------------------------------------------------------------------
 * Items and requests
 * ------------------------------------------------------------------------------------------------------------- */

static sl_items *make_items(void) {
    sl_table_cursor *cursor = malloc(sl_table_cursor_size(f.items.table.column_count));
    sl_rows source = {.struct_size = sizeof source};
    sl_items_params params;
    sl_file_check_params check;
    sl_items_check_report report = {.struct_size = sizeof report};
    sl_items *items;
    char text[64];
    size_t length;
    INIT(items, &params);
    STACK_OK(sl_table_rows(&f.items.table, cursor, &source));
    STACK_OK(sl_items_create(&source, &params, &items));
    STACK_OK(sl_items_save(items, place.path, NULL));
    STACK_DO(sl_items_free(items));
    STACK_OK(sl_items_open(place.path, &params, &items));
    INIT(file_check, &check);
    STACK_OK(sl_items_check(items, &check, &report));
    STACK_OK(sl_items_update(items, &f.items.table));
    STACK_OK(sl_items_set(items, &f.items.table));
    STACK_OK(sl_items_delete(items, f.ids, 3));
    STACK_OK(sl_items_update(items, &f.items.table));
    STACK_DO((void)sl_items_size(items));
    STACK_DO((void)sl_items_column_name(items, 0));
    STACK_OK(sl_items_text(items, f.ids[3], "tags", text, sizeof text, &length));
    STACK_OK(sl_items_text(items, f.ids[4], "year", text, sizeof text, &length));
    free(cursor);
    return items;
}

static void serve(sl_recommender *recommender) {
    sl_recommend_params params;
    sl_session *session;
    sl_recommend_stats stats;
    sl_request requests[3];
    uint64_t ids[3 * N];
    INIT(recommend, &params);
    params.n = N;
    params.candidates = CANDIDATES;
    params.threads = threads;
    params.max_per_group = 3;
    for (size_t i = 0; i < 3; i++)
        requests[i] = funnel_request(&f, i);
    STACK_OK(sl_session_create(recommender, &params, &session));
    STACK_OK(sl_session_recommend(session, requests, &params, ids, scores, NULL, &stats));
    STACK_OK(sl_session_score(session, requests, ids, NULL, N, scores, &stats));
    STACK_DO(sl_session_free(session));
    STACK_OK(sl_recommend(recommender, requests, 3, &params, ids, scores, NULL, &stats));
    STACK_DO((void)sl_recommender_version(recommender));
    STACK_DO((void)sl_recommender_item_bytes(recommender));
}

static void recommend(void) {
    sl_recommender_params params;
    sl_recommender *recommender;
    sl_items *items = make_items();
    for (int part = SL_ITEM_LAYER; part <= SL_ITEM_LAYER_I8; part++) {
        sl_ranker *ranker = funnel_ranker(&f, MODEL_ALL, 1, NULL), *next = funnel_ranker(&f, MODEL_PLAIN, 2, NULL);
        INIT(recommender, &params);
        params.item_part = (sl_item_part)part;
        params.threads = threads;
        params.group = "genre";
        params.verify = 1;
        STACK_OK(sl_recommender_create(f.index, ranker, items, &params, &recommender));
        serve(recommender);
        STACK_OK(sl_recommender_update(recommender, &f.items.table));
        STACK_OK(sl_recommender_set(recommender, &f.items.table));
        STACK_OK(sl_recommender_delete(recommender, f.ids, 3));
        serve(recommender);
        STACK_OK(sl_recommender_update(recommender, &f.items.table));
        STACK_OK(sl_recommender_swap(recommender, next, NULL));
        serve(recommender);
        STACK_DO(sl_recommender_free(recommender));
        sl_ranker_free(ranker);
        sl_ranker_free(next);
    }
    STACK_DO(sl_items_free(items));
}

/* ---------------------------------------------------------------------------------------------------------------
 * All calls
 * ------------------------------------------------------------------------------------------------------------- */

static void (*const all[])(void) = {read_csv, nested_specs, train_all, use_models, recommend};

static void set_up(void) {
    scratch_open(&place);
    scratch_name(&place, "other", other);
    scratch_name(&place, "rows.csv", csv_path);
    planted_make(&rows, ROWS, 1);
    funnel_make(&f, 0, SL_METRIC_COSINE);
}

static void tear_down(void) {
    funnel_free(&f);
    planted_free(&rows);
    scratch_close(&place);
}

int main(void) {
    const stack_suite suite = {"stack of the ranker",    SL_TEST_HEADER, set_up, tear_down, all,
                               sizeof all / sizeof *all, &threads};
    return stack_main(&suite);
}
