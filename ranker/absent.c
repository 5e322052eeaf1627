/* The functions of shortlist_rank.h in a build without the ranker: each fails and says what to install. */
#include "base/params.h"

#include <shortlist_rank.h>

static sl_status absent(void) {
    return sl_fail(SL_EUNSUPPORTED, "this build of the library cannot rank: install cJSON and xxHash (libcjson-dev, "
                                    "libxxhash-dev) and build it again");
}

static void no_params(void *params, size_t struct_size) {
    sl_params_defaults(params, struct_size, &struct_size, sizeof struct_size);
}

void sl_csv_params_init_sized(sl_csv_params *params, size_t struct_size) {
    no_params(params, struct_size);
}

sl_status sl_csv_open(const char *path, const sl_csv_params *params, sl_csv **out) {
    (void)path;
    (void)params;
    if (out) *out = NULL;
    return absent();
}

void sl_csv_free(sl_csv *csv) {
    (void)csv;
}

sl_status sl_csv_rows(sl_csv *csv, sl_rows *out) {
    (void)csv;
    (void)out;
    return absent();
}

size_t sl_table_cursor_size(size_t column_count) {
    (void)column_count;
    return 0;
}

sl_status sl_table_rows(const sl_table *table, sl_table_cursor *cursor, sl_rows *out) {
    (void)table;
    (void)cursor;
    (void)out;
    return absent();
}

const char *sl_train_precision_name(sl_train_precision precision) {
    (void)precision;
    return "?";
}

void sl_train_params_init_sized(sl_train_params *params, size_t struct_size) {
    no_params(params, struct_size);
}

sl_status sl_ranker_train(const char *spec, const sl_rows *train, const sl_rows *valid, const sl_train_params *params,
                          sl_ranker **out, sl_train_report *report) {
    (void)spec;
    (void)train;
    (void)valid;
    (void)params;
    (void)report;
    if (out) *out = NULL;
    return absent();
}

void sl_prune_params_init_sized(sl_prune_params *params, size_t struct_size) {
    no_params(params, struct_size);
}

sl_status sl_ranker_prune(const sl_ranker *ranker, const sl_rows *train, const sl_rows *valid,
                          const sl_prune_params *params, const sl_train_params *training, sl_ranker **out,
                          sl_prune_report *report) {
    (void)ranker;
    (void)train;
    (void)valid;
    (void)params;
    (void)training;
    (void)report;
    if (out) *out = NULL;
    return absent();
}

sl_status sl_ranker_create(const char *spec, const sl_rows *rows, const sl_train_params *params, sl_ranker **out) {
    (void)spec;
    (void)rows;
    (void)params;
    if (out) *out = NULL;
    return absent();
}

void sl_ranker_free(sl_ranker *ranker) {
    (void)ranker;
}

sl_status sl_ranker_save(const sl_ranker *ranker, const char *path, const sl_save_params *params) {
    (void)ranker;
    (void)path;
    (void)params;
    return absent();
}

void sl_ranker_open_params_init_sized(sl_ranker_open_params *params, size_t struct_size) {
    no_params(params, struct_size);
}

sl_status sl_ranker_open(const char *path, const sl_ranker_open_params *params, sl_ranker **out) {
    (void)path;
    (void)params;
    if (out) *out = NULL;
    return absent();
}

sl_status sl_ranker_get_info(const sl_ranker *ranker, sl_ranker_info *out) {
    (void)ranker;
    (void)out;
    return absent();
}

const char *sl_ranker_class(const sl_ranker *ranker, size_t i) {
    (void)ranker;
    (void)i;
    return NULL;
}

sl_status sl_ranker_get_feature(const sl_ranker *ranker, size_t i, sl_feature_info *out) {
    (void)ranker;
    (void)i;
    (void)out;
    return absent();
}

sl_status sl_ranker_get_embedding(const sl_ranker *ranker, size_t i, sl_embedding_info *out) {
    (void)ranker;
    (void)i;
    (void)out;
    return absent();
}

size_t sl_ranker_tensor_count(const sl_ranker *ranker) {
    (void)ranker;
    return 0;
}

sl_status sl_ranker_get_tensor(const sl_ranker *ranker, size_t i, sl_tensor *out) {
    (void)ranker;
    (void)i;
    (void)out;
    return absent();
}

sl_status sl_ranker_with_tensors(const sl_ranker *base, const sl_tensor *tensors, size_t count, sl_ranker **out) {
    (void)base;
    (void)tensors;
    (void)count;
    if (out) *out = NULL;
    return absent();
}

void sl_predictor_params_init_sized(sl_predictor_params *params, size_t struct_size) {
    no_params(params, struct_size);
}

sl_status sl_ranker_get_layer(const sl_ranker *ranker, size_t i, sl_layer_info *out) {
    (void)ranker;
    (void)i;
    (void)out;
    return absent();
}

sl_status sl_ranker_with_layers(const sl_ranker *base, const sl_quantized_layer *layers, size_t count,
                                sl_ranker **out) {
    (void)base;
    (void)layers;
    (void)count;
    if (out) *out = NULL;
    return absent();
}

void sl_quantize_params_init_sized(sl_quantize_params *params, size_t struct_size) {
    no_params(params, struct_size);
}

sl_status sl_ranker_quantize(const sl_ranker *ranker, const sl_rows *rows, const sl_quantize_params *params,
                             sl_ranker **out) {
    (void)ranker;
    (void)rows;
    (void)params;
    if (out) *out = NULL;
    return absent();
}

void sl_precision_search_params_init_sized(sl_precision_search_params *params, size_t struct_size) {
    no_params(params, struct_size);
}

sl_status sl_ranker_search_precision(const sl_ranker *ranker, const sl_rows *rows, const sl_rows *eval,
                                     const sl_precision_search_params *params, sl_ranker **out,
                                     sl_precision_search_report *report) {
    (void)ranker;
    (void)rows;
    (void)eval;
    (void)params;
    (void)report;
    if (out) *out = NULL;
    return absent();
}

sl_status sl_predictor_create(const sl_ranker *ranker, const sl_predictor_params *params, sl_predictor **out) {
    (void)ranker;
    (void)params;
    if (out) *out = NULL;
    return absent();
}

void sl_predictor_free(sl_predictor *predictor) {
    (void)predictor;
}

sl_status sl_predictor_predict(sl_predictor *predictor, const sl_table *table, float *scores) {
    (void)predictor;
    (void)table;
    (void)scores;
    return absent();
}

sl_status sl_predictor_predict_encoded(sl_predictor *predictor, const sl_encoded *rows, float *scores) {
    (void)predictor;
    (void)rows;
    (void)scores;
    return absent();
}

sl_status sl_predictor_encode(sl_predictor *predictor, const sl_table *table, sl_encoded *out) {
    (void)predictor;
    (void)table;
    (void)out;
    return absent();
}

void sl_evaluate_params_init_sized(sl_evaluate_params *params, size_t struct_size) {
    no_params(params, struct_size);
}

sl_status sl_ranker_evaluate(const sl_ranker *ranker, const sl_rows *rows, const sl_evaluate_params *params,
                             sl_metrics *out) {
    (void)ranker;
    (void)rows;
    (void)params;
    (void)out;
    return absent();
}

sl_status sl_metrics_compute(sl_loss loss, size_t outputs, const float *scores, const float *labels,
                             const float *weights, const uint64_t *groups, size_t n, const sl_evaluate_params *params,
                             sl_metrics *out) {
    (void)loss;
    (void)outputs;
    (void)scores;
    (void)labels;
    (void)weights;
    (void)groups;
    (void)n;
    (void)params;
    (void)out;
    return absent();
}

sl_status sl_list_metrics(const uint64_t *ids, size_t lists, size_t k, const uint64_t *relevant, const size_t *start,
                          double *ndcg, double *recall, double *hit_rate) {
    (void)ids;
    (void)lists;
    (void)k;
    (void)relevant;
    (void)start;
    (void)ndcg;
    (void)recall;
    (void)hit_rate;
    return absent();
}

void sl_file_check_params_init_sized(sl_file_check_params *params, size_t struct_size) {
    no_params(params, struct_size);
}

sl_status sl_ranker_check(const char *path, const sl_file_check_params *params, sl_ranker_check_report *report) {
    (void)path;
    (void)params;
    (void)report;
    return absent();
}

sl_status sl_items_check(const sl_items *items, const sl_file_check_params *params, sl_items_check_report *report) {
    (void)items;
    (void)params;
    (void)report;
    return absent();
}

void sl_items_params_init_sized(sl_items_params *params, size_t struct_size) {
    no_params(params, struct_size);
}

sl_status sl_items_create(const sl_rows *rows, const sl_items_params *params, sl_items **out) {
    (void)rows;
    (void)params;
    if (out) *out = NULL;
    return absent();
}

sl_status sl_items_open(const char *path, const sl_items_params *params, sl_items **out) {
    (void)path;
    (void)params;
    if (out) *out = NULL;
    return absent();
}

sl_status sl_items_save(const sl_items *items, const char *path, const sl_save_params *params) {
    (void)items;
    (void)path;
    (void)params;
    return absent();
}

void sl_items_free(sl_items *items) {
    (void)items;
}

sl_status sl_items_update(sl_items *items, const sl_table *rows) {
    (void)items;
    (void)rows;
    return absent();
}

sl_status sl_items_set(sl_items *items, const sl_table *rows) {
    (void)items;
    (void)rows;
    return absent();
}

sl_status sl_items_delete(sl_items *items, const uint64_t *ids, size_t n) {
    (void)items;
    (void)ids;
    (void)n;
    return absent();
}

const char *sl_items_column_name(const sl_items *items, size_t i) {
    (void)items;
    (void)i;
    return NULL;
}

size_t sl_items_size(const sl_items *items) {
    (void)items;
    return 0;
}

sl_status sl_items_text(const sl_items *items, uint64_t id, const char *column, char *out, size_t size,
                        size_t *length) {
    (void)items;
    (void)id;
    (void)column;
    (void)out;
    (void)size;
    (void)length;
    return absent();
}

void sl_recommender_params_init_sized(sl_recommender_params *params, size_t struct_size) {
    no_params(params, struct_size);
}

sl_status sl_recommender_create(sl_index *index, sl_ranker *ranker, sl_items *items,
                                const sl_recommender_params *params, sl_recommender **out) {
    (void)index;
    (void)ranker;
    (void)items;
    (void)params;
    if (out) *out = NULL;
    return absent();
}

void sl_recommender_free(sl_recommender *recommender) {
    (void)recommender;
}

sl_status sl_recommender_swap(sl_recommender *recommender, sl_ranker *ranker, sl_items *items) {
    (void)recommender;
    (void)ranker;
    (void)items;
    return absent();
}

sl_status sl_recommender_update(sl_recommender *recommender, const sl_table *rows) {
    (void)recommender;
    (void)rows;
    return absent();
}

sl_status sl_recommender_set(sl_recommender *recommender, const sl_table *rows) {
    (void)recommender;
    (void)rows;
    return absent();
}

sl_status sl_recommender_delete(sl_recommender *recommender, const uint64_t *ids, size_t n) {
    (void)recommender;
    (void)ids;
    (void)n;
    return absent();
}

uint64_t sl_recommender_version(const sl_recommender *recommender) {
    (void)recommender;
    return 0;
}

size_t sl_recommender_item_bytes(const sl_recommender *recommender) {
    (void)recommender;
    return 0;
}

void sl_recommend_params_init_sized(sl_recommend_params *params, size_t struct_size) {
    no_params(params, struct_size);
}

sl_status sl_session_create(sl_recommender *recommender, const sl_recommend_params *params, sl_session **out) {
    (void)recommender;
    (void)params;
    if (out) *out = NULL;
    return absent();
}

void sl_session_free(sl_session *session) {
    (void)session;
}

sl_status sl_session_recommend(sl_session *session, const sl_request *request, const sl_recommend_params *params,
                               uint64_t *ids, float *scores, float *recall_scores, sl_recommend_stats *stats) {
    (void)session;
    (void)request;
    (void)params;
    (void)ids;
    (void)scores;
    (void)recall_scores;
    (void)stats;
    return absent();
}

sl_status sl_session_score(sl_session *session, const sl_request *request, const uint64_t *ids,
                           const float *recall_scores, size_t count, float *scores, sl_recommend_stats *stats) {
    (void)session;
    (void)request;
    (void)ids;
    (void)recall_scores;
    (void)count;
    (void)scores;
    (void)stats;
    return absent();
}

sl_status sl_recommend(sl_recommender *recommender, const sl_request *requests, size_t request_count,
                       const sl_recommend_params *params, uint64_t *ids, float *scores, float *recall_scores,
                       sl_recommend_stats *stats) {
    (void)recommender;
    (void)requests;
    (void)request_count;
    (void)params;
    (void)ids;
    (void)scores;
    (void)recall_scores;
    (void)stats;
    return absent();
}
