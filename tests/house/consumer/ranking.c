/* The second header as a user of the installed library writes it; compiled as C and as C++. Makes a model, trained
 * where the library can train, and predicts. Exits with 3 where the library was built without the ranker. */
#include <shortlist_rank.h>

#include <stdio.h>

enum { ROWS = 64 };

static const char *const spec = "{\"label\": {\"column\": \"liked\"},"
                                " \"features\": [{\"name\": \"age\", \"type\": \"numeric\"},"
                                "                {\"name\": \"city\", \"type\": \"categorical\", \"hash\": 8}],"
                                " \"deep\": {\"hidden\": [8]},"
                                " \"train\": {\"epochs\": 1, \"batch\": 16, \"validation\": 0}}";

static sl_status make_ranker(const sl_rows *rows, sl_ranker **ranker) {
    sl_system system;
    system.struct_size = sizeof system;
    sl_status status = sl_system_query(&system);
    if (status != SL_OK) return status;
    if (system.has_onednn) return sl_ranker_train(spec, rows, NULL, NULL, ranker, NULL);
    return sl_ranker_create(spec, rows, NULL, ranker);
}

static sl_status score(const sl_table *table, float *scores) {
    static union {
        sl_table_cursor cursor;
        char room[4096];
    } memory;
    sl_rows rows;
    rows.struct_size = sizeof rows;
    sl_ranker *ranker = NULL;
    sl_predictor *predictor = NULL;
    sl_status status = sl_table_rows(table, &memory.cursor, &rows);
    if (status == SL_OK) status = make_ranker(&rows, &ranker);
    if (status == SL_OK) status = sl_predictor_create(ranker, NULL, &predictor);
    if (status == SL_OK) status = sl_predictor_predict(predictor, table, scores);
    sl_predictor_free(predictor);
    sl_ranker_free(ranker);
    return status;
}

int main(void) {
    static float age[ROWS], liked[ROWS], scores[ROWS];
    static int32_t city[ROWS];
    for (int i = 0; i < ROWS; i++) {
        age[i] = (float)(20 + i % 40);
        city[i] = i % 5;
        liked[i] = (float)(i % 2);
    }
    const sl_column columns[] = {
        {"age", SL_COLUMN_F32, 0, age, NULL, NULL, NULL},
        {"city", SL_COLUMN_I32, 0, city, NULL, NULL, NULL},
        {"liked", SL_COLUMN_F32, 0, liked, NULL, NULL, NULL},
    };
    static sl_table table;
    table.struct_size = sizeof table;
    table.rows = ROWS;
    table.column_count = 3;
    table.columns = columns;
    sl_status status = score(&table, scores);
    if (status != SL_OK) {
        fprintf(stderr, "ranking: %s\n", sl_last_error());
        return status == SL_EUNSUPPORTED ? 3 : 1;
    }
    for (int i = 0; i < ROWS; i++) {
        if (!(scores[i] > 0.0f && scores[i] < 1.0f)) {
            fprintf(stderr, "ranking: row %d has the score %g\n", i, (double)scores[i]);
            return 1;
        }
    }
    return 0;
}
