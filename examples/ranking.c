/* From a user to ranked items in one process. The parts are an index over item vectors, a wide & deep model trained on
 * clicks, and one call that uses both. The clicks are made up: people click items near their taste, and the young click
 * new items. The vectors know the taste alone. The end measures and checks what ranking adds. */
#include <shortlist_rank.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { DIM = 16, ITEMS = 5000, USERS = 500, CLICKS = 40000, N = 10, CANDIDATES = 200 };

static float item_vectors[ITEMS][DIM], user_vectors[USERS][DIM];
static float year[ITEMS], age[USERS], clicked_year[CLICKS], clicker_age[CLICKS], near[CLICKS], label[CLICKS];
static int64_t item_ids[ITEMS];

static const char spec[] =
    "{\"label\": {\"column\": \"label\"}, \"features\": ["
    " {\"name\": \"age\", \"type\": \"numeric\"}, {\"name\": \"year\", \"type\": \"numeric\", \"side\": \"item\"},"
    " {\"name\": \"age_group\", \"type\": \"bucket\", \"column\": \"age\", \"quantiles\": 5},"
    " {\"name\": \"decade\", \"type\": \"bucket\", \"column\": \"year\", \"quantiles\": 5, \"side\": \"item\"},"
    " {\"name\": \"both\", \"type\": \"cross\", \"of\": [\"age_group\", \"decade\"], \"hash\": 100},"
    " {\"name\": \"near\", \"type\": \"score\"}], \"train\": {\"epochs\": 5}}";

static void must(sl_status status) {
    if (status == SL_OK) return;
    fprintf(stderr, "%s: %s\n", sl_status_name(status), sl_last_error());
    /* A build without oneDNN can't train: skip the example. */
    exit(status == SL_EUNSUPPORTED ? 77 : 1);
}

static float uniform(void) {
    return (float)rand() / (float)RAND_MAX;
}

static float inner(const float *a, const float *b) {
    float sum = 0;
    for (int d = 0; d < DIM; d++)
        sum += a[d] * b[d];
    return sum;
}

/* The chance of a click in the made-up world. */
static float chance(int user, int item) {
    float fresh = (year[item] - 0.5f) * (age[user] < 0.5f ? 6.0f : -6.0f);
    return 1 / (1 + expf(-(2 * inner(user_vectors[user], item_vectors[item]) + fresh - 1)));
}

static void make_world(void) {
    for (int i = 0; i < ITEMS; i++) {
        item_ids[i] = i;
        year[i] = uniform();
        for (int d = 0; d < DIM; d++)
            item_vectors[i][d] = uniform() - 0.5f;
    }
    for (int u = 0; u < USERS; u++) {
        age[u] = uniform();
        for (int d = 0; d < DIM; d++)
            user_vectors[u][d] = uniform() - 0.5f;
    }
    for (int c = 0; c < CLICKS; c++) {
        int user = rand() % USERS, item = rand() % ITEMS;
        clicker_age[c] = age[user];
        clicked_year[c] = year[item];
        near[c] = inner(user_vectors[user], item_vectors[item]);
        label[c] = uniform() < chance(user, item);
    }
}

/* Makes a table a source of rows. The caller frees the cursor, rows.ctx. */
static sl_rows rows_of(const sl_table *table) {
    sl_rows rows = {.struct_size = sizeof rows};
    sl_table_cursor *cursor = malloc(sl_table_cursor_size(table->column_count));
    if (!cursor) exit(1);
    must(sl_table_rows(table, cursor, &rows));
    return rows;
}

static sl_ranker *train(void) {
    const sl_column columns[] = {{.name = "age", .type = SL_COLUMN_F32, .values = clicker_age},
                                 {.name = "year", .type = SL_COLUMN_F32, .values = clicked_year},
                                 {.name = "near", .type = SL_COLUMN_F32, .values = near},
                                 {.name = "label", .type = SL_COLUMN_F32, .values = label}};
    const sl_table table = {.struct_size = sizeof table, .rows = CLICKS, .column_count = 4, .columns = columns};
    sl_rows rows = rows_of(&table);
    sl_ranker *ranker;
    must(sl_ranker_train(spec, &rows, NULL, NULL, &ranker, NULL));
    free(rows.ctx);
    return ranker;
}

static sl_index *build(void) {
    sl_index_params params;
    sl_index_params_init(&params);
    params.dim = DIM;
    params.metric = SL_METRIC_IP;
    params.refine = SL_REFINE_F32;
    sl_index *index;
    must(sl_index_create(&params, &index));
    must(sl_index_add(index, item_vectors, SL_F32, ITEMS, 0, NULL, NULL));
    return index;
}

/* Returns the mean chance of a click on the items shown, with a ranker or, to compare, without one. */
static double clicks_shown(sl_index *index, sl_ranker *ranker, sl_items *items) {
    const sl_column column = {.name = "age", .type = SL_COLUMN_F32, .values = age};
    const sl_table users = {.struct_size = sizeof users, .rows = USERS, .column_count = 1, .columns = &column};
    static sl_request requests[USERS];
    static uint64_t ids[USERS][N];
    for (size_t u = 0; u < USERS; u++)
        requests[u] = (sl_request){.struct_size = sizeof requests[u],
                                   .vector = user_vectors[u],
                                   .dtype = SL_F32,
                                   .user = &users,
                                   .user_row = u};
    sl_recommend_params asked;
    sl_recommend_params_init(&asked);
    asked.n = N;
    asked.candidates = CANDIDATES;
    sl_recommender *recommender;
    must(sl_recommender_create(index, ranker, items, NULL, &recommender));
    must(sl_recommend(recommender, requests, USERS, &asked, ids[0], NULL, NULL, NULL));
    sl_recommender_free(recommender);
    double sum = 0;
    for (int u = 0; u < USERS; u++)
        for (int i = 0; i < N; i++)
            sum += (double)chance(u, (int)ids[u][i]);
    return sum / (USERS * N);
}

int main(void) {
    srand(1);
    make_world();
    sl_ranker *ranker = train();
    sl_index *index = build();

    const sl_column columns[] = {{.name = "id", .type = SL_COLUMN_I64, .values = item_ids},
                                 {.name = "year", .type = SL_COLUMN_F32, .values = year}};
    const sl_table table = {.struct_size = sizeof table, .rows = ITEMS, .column_count = 2, .columns = columns};
    sl_rows rows = rows_of(&table);
    sl_items *items;
    must(sl_items_create(&rows, NULL, &items));
    free(rows.ctx);

    double recalled = clicks_shown(index, NULL, NULL), ranked = clicks_shown(index, ranker, items);
    printf("of %d items shown to a user, %.2f would be clicked by recall alone, %.2f by recall and rank\n", N,
           N * recalled, N * ranked);
    sl_items_free(items);
    sl_ranker_free(ranker);
    sl_index_free(index);
    return ranked > 1.2 * recalled ? 0 : 1;
}
