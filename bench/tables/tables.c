/* Embedding tables in codes beside the same tables as floats: AUC on rows not seen, bytes, and the time of a
 * prediction. bench_tables accuracy SPEC TRAIN TEST SEED   a training, and its model with tables of every type
 *   bench_tables speed SHAPE ROWS ROUNDS         ns a row, the types by turns; shapes: criteo, small, large
 *   bench_tables code MODEL i8|i4 OUT            a model with its tables in codes and its layers as they are
 * Prints JSON. */
#include "../rank/shapes.h"
#include "../rank/timing.h"
#include "ranker/features/encode.h"
#include "ranker/quantise/quantise_tables.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_TABLES = 64, KINDS = 3, WARM = 3, REPEATS = 20 };
static const char *const type_names[KINDS] = {"f32", "i8", "i4"};

static sl_ranker *coded(const sl_ranker *from, sl_table_type type, sl_row_range range) {
    sl_table_type types[MOST_TABLES];
    sl_ranker *made;
    for (size_t t = 0; t < MOST_TABLES; t++)
        types[t] = type;
    must(sl_ranker_with_table_ranges(from, types, range, &made), "codes");
    return made;
}

/* Bytes of all tables, and of their rows alone. */
static void bytes_of(const sl_ranker *ranker, size_t *all, size_t *rows) {
    sl_ranker_info info = {.struct_size = sizeof info};
    must(sl_ranker_get_info(ranker, &info), "info");
    *all = *rows = 0;
    for (size_t t = 0; t < info.embeddings; t++) {
        sl_embedding_info table = {.struct_size = sizeof table};
        must(sl_ranker_get_embedding(ranker, t, &table), "embedding");
        *all += table.bytes;
        *rows += table.size * sl_row_bytes(table.type, table.dim);
    }
}

/* ---------------------------------------------------------------------------------------------------------------
 * Accuracy
 * ------------------------------------------------------------------------------------------------------------- */

static char *read_text(const char *path) {
    FILE *in = fopen(path, "rb");
    char *text = must_alloc(1 << 20, 1);
    if (!in) {
        perror(path);
        exit(1);
    }
    (void)!fread(text, 1, (1 << 20) - 1, in);
    fclose(in);
    return text;
}

static void print_quality(const sl_ranker *ranker, const char *path, const char *spec, const char *name,
                          const char *range, int last) {
    sl_csv_params params;
    sl_csv *csv;
    sl_rows rows = {.struct_size = sizeof rows};
    sl_metrics metrics = {.struct_size = sizeof metrics};
    size_t all, alone;
    sl_csv_params_init(&params);
    params.spec = spec;
    must(sl_csv_open(path, &params, &csv), path);
    must(sl_csv_rows(csv, &rows), path);
    must(sl_ranker_evaluate(ranker, &rows, NULL, &metrics), "evaluate");
    bytes_of(ranker, &all, &alone);
    printf(
        "{\"type\": \"%s\", \"range\": \"%s\", \"auc\": %.9f, \"logloss\": %.9f, \"bytes\": %zu, \"row_bytes\": %zu}%s",
        name, range, metrics.auc, metrics.logloss, all, alone, last ? "" : ", ");
    sl_csv_free(csv);
}

static int accuracy(char **arguments) {
    char *spec = read_text(arguments[0]);
    sl_csv_params params;
    sl_csv *csv;
    sl_rows rows = {.struct_size = sizeof rows};
    sl_train_params training;
    sl_ranker *ranker;
    sl_csv_params_init(&params);
    params.spec = spec;
    must(sl_csv_open(arguments[1], &params, &csv), arguments[1]);
    must(sl_csv_rows(csv, &rows), arguments[1]);
    sl_train_params_init(&training);
    training.seed = strtoull(arguments[3], NULL, 10);
    training.threads = 1;
    must(sl_ranker_train(spec, &rows, NULL, &training, &ranker, NULL), "train");
    printf("[");
    print_quality(ranker, arguments[2], spec, "f32", "none", 0);
    for (int type = SL_TABLE_I8; type <= SL_TABLE_I4; type++)
        for (int range = SL_ROW_MINMAX; range <= SL_ROW_MSE; range++) {
            sl_ranker *made = coded(ranker, (sl_table_type)type, (sl_row_range)range);
            print_quality(made, arguments[2], spec, type_names[type], range == SL_ROW_MSE ? "mse" : "minmax",
                          type == SL_TABLE_I4 && range == SL_ROW_MSE);
            sl_ranker_free(made);
        }
    printf("]\n");
    sl_ranker_free(ranker);
    sl_csv_free(csv);
    free(spec);
    return 0;
}

/* ---------------------------------------------------------------------------------------------------------------
 * Speed
 * ------------------------------------------------------------------------------------------------------------- */

/* Tables that no cache holds. */
static const shape large = {"large", 5, 8, 100000, 32, "128, 64, 32"};

typedef struct timed {
    sl_ranker *ranker;
    sl_predictor *predictor;
} timed;

/* ns a row of predicting encoded rows, and of gathering their inputs alone. Each is the least of the repeats. */
static void time_one(const timed *one, const sl_encoded *rows, float *scores, float *inputs, double out[2]) {
    const sl_ranker *ranker = one->ranker;
    int64_t predicted = INT64_MAX, gathered = INT64_MAX;
    for (int i = 0; i < REPEATS; i++) {
        int64_t begin = now_ns();
        must(sl_predictor_predict_encoded(one->predictor, rows, scores), "predict");
        int64_t middle = now_ns();
        sl_deep_inputs(ranker->features, (const float *const *)ranker->weights.embeddings, &ranker->weights.coded, rows,
                       SL_ALL_SIDES, ranker->features->deep_inputs, inputs);
        int64_t end = now_ns();
        predicted = middle - begin < predicted ? middle - begin : predicted;
        gathered = end - middle < gathered ? end - middle : gathered;
    }
    out[0] = (double)predicted / (double)rows->rows;
    out[1] = (double)gathered / (double)rows->rows;
}

static int speed(char **arguments) {
    const shape *of = strcmp(arguments[0], "large") == 0 ? &large : shape_named(arguments[0]);
    size_t count = strtoull(arguments[1], NULL, 10), rounds = strtoull(arguments[2], NULL, 10), all, alone;
    if (!of) return 2;
    pin();
    timed kinds[KINDS] = {{.ranker = shape_ranker(of, 1)}};
    sl_predictor_params params;
    sl_predictor_params_init(&params);
    params.max_rows = count;
    for (int type = 0; type < KINDS; type++) {
        if (type) kinds[type].ranker = coded(kinds[0].ranker, (sl_table_type)type, SL_ROW_MINMAX);
        must(sl_predictor_create(kinds[type].ranker, &params, &kinds[type].predictor), "predictor");
    }
    rows *made = rows_make(of, count, ROWS_USER | ROWS_ITEM, 9);
    sl_encoded rows = {.struct_size = sizeof rows};
    must(sl_predictor_encode(kinds[0].predictor, &made->table, &rows), "encode");
    float *scores = must_alloc(count, sizeof *scores);
    float *inputs = must_alloc(count * kinds[0].ranker->features->deep_inputs, sizeof *inputs);
    printf("{\"shape\": \"%s\", \"rows\": %zu, \"tier\": \"%s\", \"bytes\": [", of->name, count, sl_loops_get()->name);
    for (int type = 0; type < KINDS; type++) {
        bytes_of(kinds[type].ranker, &all, &alone);
        printf("%s%zu", type ? ", " : "", all);
    }
    printf("], \"rounds\": [");
    for (size_t round = 0; round < rounds + WARM; round++) {
        double times[KINDS][2];
        for (int turn = 0; turn < KINDS; turn++) {
            int type = (turn + (int)round) % KINDS;
            time_one(&kinds[type], &rows, scores, inputs, times[type]);
        }
        if (round < WARM) continue;
        printf("%s{\"predict\": [%.2f, %.2f, %.2f], \"gather\": [%.2f, %.2f, %.2f]}", round > WARM ? ", " : "",
               times[0][0], times[1][0], times[2][0], times[0][1], times[1][1], times[2][1]);
    }
    printf("]}\n");
    for (int type = 0; type < KINDS; type++) {
        sl_predictor_free(kinds[type].predictor);
        sl_ranker_free(kinds[type].ranker);
    }
    rows_free(made);
    free(scores);
    free(inputs);
    return 0;
}

/* ---------------------------------------------------------------------------------------------------------------
 * A model's tables alone
 * ------------------------------------------------------------------------------------------------------------- */

static int code(char **arguments) {
    sl_ranker *ranker, *made;
    sl_table_type type = strcmp(arguments[1], type_names[SL_TABLE_I4]) ? SL_TABLE_I8 : SL_TABLE_I4;
    must(sl_ranker_open(arguments[0], NULL, &ranker), arguments[0]);
    made = coded(ranker, type, SL_ROW_MSE);
    must(sl_ranker_save(made, arguments[2], NULL), arguments[2]);
    sl_ranker_free(made);
    sl_ranker_free(ranker);
    return 0;
}

int main(int argc, char **argv) {
    if (argc == 6 && strcmp(argv[1], "accuracy") == 0) return accuracy(argv + 2);
    if (argc == 5 && strcmp(argv[1], "speed") == 0) return speed(argv + 2);
    if (argc == 5 && strcmp(argv[1], "code") == 0) return code(argv + 2);
    fprintf(stderr, "usage: bench_tables accuracy SPEC TRAIN TEST SEED | speed criteo|small|large ROWS ROUNDS | "
                    "code MODEL i8|i4 OUT\n");
    return 2;
}
