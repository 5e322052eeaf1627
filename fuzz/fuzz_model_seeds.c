/* Writes a small valid model of every loss into a folder, and each with its embedding tables in codes: fuzz_model
 * starts from them. */
#include "ranker/quantise/quantise_tables.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

enum { ROWS = 4, KINDS = 3 };

static const char *const losses[KINDS] = {"logistic", "multiclass", "squared"};

/* A spec with every type of feature and both parts. */
static const char spec_format[] =
    "{\"label\": {\"column\": \"y\", \"loss\": \"%s\"}, \"features\": ["
    "{\"name\": \"n\", \"type\": \"numeric\", \"indicator\": true}, {\"name\": \"a\", \"type\": \"categorical\"},"
    "{\"name\": \"q\", \"column\": \"n\", \"type\": \"bucket\", \"quantiles\": 3},"
    "{\"name\": \"g\", \"type\": \"multi\", \"column\": \"a\", \"hash\": 5, \"side\": \"item\"},"
    "{\"name\": \"x\", \"type\": \"cross\", \"of\": [\"a\", \"g\"], \"hash\": 7},"
    "{\"name\": \"v\", \"type\": \"vector\", \"dim\": 2}, {\"name\": \"s\", \"type\": \"score\", \"column\": \"n\"}],"
    "\"deep\": {\"hidden\": [4, 3]}}";

static int report(sl_status status) {
    if (status == SL_OK) return 0;
    fprintf(stderr, "%s\n", sl_last_error());
    return 1;
}

/* Replaces a model by one with coded tables, of both widths in turn, and quantised layers. */
static sl_status code_model(const sl_rows *rows, sl_ranker **ranker) {
    sl_table_type types[16];
    sl_ranker *layers, *coded = NULL;
    sl_quantize_params params;
    sl_quantize_params_init(&params);
    params.layers = (const sl_precision[]){SL_PRECISION_INT8, SL_PRECISION_BF16, SL_PRECISION_INT8_DYNAMIC};
    for (size_t t = 0; t < sizeof types / sizeof *types; t++)
        types[t] = t % 2 ? SL_TABLE_I8 : SL_TABLE_I4;
    sl_status status = sl_ranker_quantize(*ranker, rows, &params, &layers);
    if (status == SL_OK) {
        status = sl_ranker_with_tables(layers, types, &coded);
        sl_ranker_free(layers);
    }
    if (status != SL_OK) return status;
    sl_ranker_free(*ranker);
    *ranker = coded;
    return SL_OK;
}

static int write_model(const char *loss, int coded, const char *path) {
    static const float labels[ROWS] = {0, 1, 1, 0}, numbers[ROWS] = {3, 1, 4, 1.5f}, vectors[2 * ROWS] = {1, 2, 3, 4};
    static const int64_t offsets[ROWS + 1] = {0, 1, 2, 5, 5};
    static const sl_column columns[] = {
        {.name = "y", .type = SL_COLUMN_F32, .values = labels},
        {.name = "n", .type = SL_COLUMN_F32, .values = numbers},
        {.name = "a", .type = SL_COLUMN_TEXT, .values = "pqp|r", .offsets = offsets},
        {.name = "v", .type = SL_COLUMN_VECTOR, .values = vectors, .dim = 2},
    };
    enum { COLUMNS = sizeof columns / sizeof *columns };
    const sl_table table = {
        .struct_size = sizeof table, .rows = ROWS, .column_count = COLUMNS, .columns = columns, .origin = "rows"};
    char spec[sizeof spec_format + 16];
    union {
        sl_table_cursor cursor;
        char room[sizeof(sl_table_cursor) + COLUMNS * (sizeof(sl_column) + 1)];
    } at;
    sl_rows rows;
    sl_ranker *ranker = NULL;
    snprintf(spec, sizeof spec, spec_format, loss);
    sl_status status = sl_table_rows(&table, &at.cursor, &rows);
    if (status == SL_OK) status = sl_ranker_create(spec, &rows, NULL, &ranker);
    if (status == SL_OK && coded) status = code_model(&rows, &ranker);
    if (status == SL_OK) status = sl_ranker_save(ranker, path, NULL);
    sl_ranker_free(ranker);
    return report(status);
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: fuzz_model_seeds FOLDER\n");
        return 2;
    }
    if (mkdir(argv[1], 0777) != 0 && errno != EEXIST) {
        perror(argv[1]);
        return 1;
    }
    for (int kind = 0; kind < 2 * KINDS; kind++) {
        char path[4096];
        const char *loss = losses[kind / 2];
        int length = snprintf(path, sizeof path, "%s/%s%s.slr", argv[1], loss, kind % 2 ? "_coded" : "");
        if (length < 0 || (size_t)length >= sizeof path || write_model(loss, kind % 2, path)) return 1;
    }
    return 0;
}
