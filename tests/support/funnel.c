#include "tests/support/funnel.h"

#include "base/random.h"
#include "tests/support/clusters.h"
#include "tests/support/indexes.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------------------------------------------------------
 * Tables
 * ------------------------------------------------------------------------------------------------------------- */

static void *own(grid *g, size_t size) {
    void *block = calloc(size ? size : 1, 1);
    ck_assert_ptr_nonnull(block);
    ck_assert_uint_lt(g->block_count, 4 * FUNNEL_COLUMNS);
    g->blocks[g->block_count++] = block;
    return block;
}

void grid_free(grid *g) {
    for (size_t i = 0; i < g->block_count; i++)
        free(g->blocks[i]);
    *g = (grid){.table = {.rows = 0}};
}

static sl_column *add_column(grid *g, const char *name, sl_column_type type, size_t rows) {
    ck_assert_uint_lt(g->table.column_count, FUNNEL_COLUMNS);
    sl_column *column = &g->columns[g->table.column_count++];
    *column = (sl_column){.name = name, .type = type};
    g->table.struct_size = sizeof g->table;
    g->table.rows = rows;
    g->table.columns = g->columns;
    return column;
}

static size_t element_of(const sl_column *column) {
    static const size_t sizes[] = {4, 8, 4, 8, 0, 0};
    return column->type == SL_COLUMN_VECTOR ? column->dim * sizeof(float) : sizes[column->type];
}

static void gather_texts(grid *to, sl_column *out, const sl_column *from, const size_t *rows, size_t n) {
    size_t texts = n, bytes = 0, at = 0, text = 0;
    for (int pass = 0; pass < 2; pass++) {
        int64_t *offsets = pass ? own(to, (texts + 1) * sizeof *offsets) : NULL;
        int64_t *lists = pass && from->lists ? own(to, (n + 1) * sizeof *lists) : NULL;
        char *values = pass ? own(to, bytes) : NULL;
        for (size_t i = 0; i < n; i++) {
            int64_t first = (int64_t)rows[i], last = first + 1;
            if (from->lists && rows[i] != SIZE_MAX) {
                first = from->lists[rows[i]];
                last = from->lists[rows[i] + 1];
            }
            for (; first < last; first++) {
                size_t size = rows[i] == SIZE_MAX ? 0 : (size_t)(from->offsets[first + 1] - from->offsets[first]);
                if (values && size) memcpy(values + at, (const char *)from->values + from->offsets[first], size);
                at += size;
                text++;
                if (offsets) offsets[text] = (int64_t)at;
            }
            if (lists) lists[i + 1] = (int64_t)text;
        }
        bytes = at;
        texts = text;
        at = text = 0;
        out->offsets = offsets;
        out->lists = lists;
        out->values = values;
    }
}

void grid_gather(grid *to, const sl_table *from, const size_t *rows, size_t n) {
    for (size_t c = 0; c < from->column_count; c++) {
        const sl_column *in = &from->columns[c];
        sl_column *out = add_column(to, in->name, in->type, n);
        uint8_t *valid = own(to, n / 8 + 1), *values;
        out->dim = in->dim;
        out->valid = valid;
        for (size_t i = 0; i < n; i++) {
            int has = rows[i] != SIZE_MAX && (!in->valid || (in->valid[rows[i] / 8] >> rows[i] % 8 & 1));
            valid[i / 8] = (uint8_t)(valid[i / 8] | has << i % 8);
        }
        if (in->type == SL_COLUMN_TEXT || in->type == SL_COLUMN_TEXTS) {
            gather_texts(to, out, in, rows, n);
            continue;
        }
        size_t element = element_of(in);
        out->values = values = own(to, n * element);
        for (size_t i = 0; i < n; i++)
            if (rows[i] != SIZE_MAX)
                memcpy(values + i * element, (const uint8_t *)in->values + rows[i] * element, element);
    }
}

void grid_vectors(grid *to, const char *name, size_t dim, const float *values, size_t n) {
    sl_column *column = add_column(to, name, SL_COLUMN_VECTOR, n);
    column->dim = dim;
    float *copy = own(to, n * dim * sizeof *copy);
    memcpy(copy, values, n * dim * sizeof *copy);
    column->values = copy;
}

void grid_floats(grid *to, const char *name, const float *values, size_t n) {
    sl_column *column = add_column(to, name, SL_COLUMN_F32, n);
    float *copy = own(to, n * sizeof *copy);
    memcpy(copy, values, n * sizeof *copy);
    column->values = copy;
}

/* Adds a column of texts: up to `most` words of `kinds` kinds, separated by "|". Some are empty. */
static void add_words(grid *g, const char *name, const char *prefix, size_t rows, size_t kinds, size_t most,
                      uint64_t seed) {
    sl_column *column = add_column(g, name, SL_COLUMN_TEXT, rows);
    int64_t *offsets = own(g, (rows + 1) * sizeof *offsets);
    char *bytes = own(g, rows * most * 16);
    size_t at = 0;
    for (size_t i = 0; i < rows; i++) {
        size_t words = 1 + sl_random_at(seed, 100 * i) % most;
        if (sl_random_at(seed, 100 * i + 1) % 9 == 0) words = 0;
        for (size_t w = 0; w < words; w++)
            at += (size_t)sprintf(bytes + at, "%s%s%u", w ? "|" : "", prefix,
                                  (unsigned)(sl_random_at(seed, 100 * i + 2 + w) % kinds));
        offsets[i + 1] = (int64_t)at;
    }
    column->values = bytes;
    column->offsets = offsets;
}

static void add_floats(grid *g, const char *name, size_t rows, double from, double to, uint64_t seed) {
    float *values = malloc(rows * sizeof *values);
    ck_assert_ptr_nonnull(values);
    for (size_t i = 0; i < rows; i++)
        values[i] = sl_random_at(seed, 2 * i) % 11 == 0
                        ? NAN
                        : (float)floor(from + (to - from) * sl_random_unit(seed, 2 * i + 1));
    grid_floats(g, name, values, rows);
    free(values);
}

static void add_integers(grid *g, const char *name, size_t rows, uint64_t kinds, uint64_t seed) {
    sl_column *column = add_column(g, name, SL_COLUMN_I32, rows);
    int32_t *values = own(g, rows * sizeof *values);
    uint8_t *valid = own(g, rows / 8 + 1);
    for (size_t i = 0; i < rows; i++) {
        values[i] = (int32_t)(sl_random_at(seed, i) % kinds);
        if (sl_random_at(seed + 1, i) % 13) valid[i / 8] = (uint8_t)(valid[i / 8] | 1 << i % 8);
    }
    column->values = values;
    column->valid = valid;
}

/* Adds a column of lists of texts. Some are empty. */
static void add_lists(grid *g, const char *name, size_t rows, uint64_t seed) {
    sl_column *column = add_column(g, name, SL_COLUMN_TEXTS, rows);
    int64_t *lists = own(g, (rows + 1) * sizeof *lists), *offsets = own(g, (3 * rows + 1) * sizeof *offsets);
    char *bytes = own(g, 3 * rows * 8);
    size_t at = 0, texts = 0;
    for (size_t i = 0; i < rows; i++) {
        for (size_t w = sl_random_at(seed, 10 * i) % 4; w > 0; w--) {
            at += (size_t)sprintf(bytes + at, "s%u", (unsigned)(sl_random_at(seed, 10 * i + w) % 7));
            offsets[++texts] = (int64_t)at;
        }
        lists[i + 1] = (int64_t)texts;
    }
    column->values = bytes;
    column->offsets = offsets;
    column->lists = lists;
}

/* ---------------------------------------------------------------------------------------------------------------
 * Items, users, index
 * ------------------------------------------------------------------------------------------------------------- */

void funnel_make(funnel *f, int sparse, sl_metric metric) {
    *f = (funnel){.index = NULL};
    int64_t *ids = own(&f->items, FUNNEL_ITEMS * sizeof *ids);
    for (size_t i = 0; i < FUNNEL_ITEMS; i++) {
        f->ids[i] = sparse ? 1000003 * (FUNNEL_ITEMS - i) + 5 : i;
        ids[i] = (int64_t)f->ids[i];
    }
    add_column(&f->items, "id", SL_COLUMN_I64, FUNNEL_ITEMS)->values = ids;
    add_words(&f->items, "genre", "g", FUNNEL_ITEMS, 6, 1, 1);
    add_words(&f->items, "tags", "t", FUNNEL_ITEMS, 9, 4, 2);
    add_floats(&f->items, "year", FUNNEL_ITEMS, 1950, 2020, 3);
    add_integers(&f->items, "brand", FUNNEL_ITEMS, 40, 4);
    add_lists(&f->items, "stars", FUNNEL_ITEMS, 5);
    add_floats(&f->users, "age", FUNNEL_USERS, 15, 90, 6);
    add_words(&f->users, "country", "c", FUNNEL_USERS, 5, 1, 7);
    add_words(&f->users, "likes", "g", FUNNEL_USERS, 6, 3, 8);
    add_integers(&f->users, "segment", FUNNEL_USERS, 10, 9);
    f->vectors = clusters_make(FUNNEL_ITEMS + FUNNEL_USERS, FUNNEL_DIM, 0.3, 1);
    f->user_vectors = f->vectors + FUNNEL_ITEMS * FUNNEL_DIM;
    sl_index_params params;
    indexes_params(&params, FUNNEL_DIM, metric);
    params.codes = SL_CODES_F32;
    f->index = indexes_make(&params, f->vectors, SL_F32, FUNNEL_ITEMS, sparse ? f->ids : NULL, 1);
}

void funnel_free(funnel *f) {
    sl_index_free(f->index);
    free(f->vectors);
    grid_free(&f->items);
    grid_free(&f->users);
}

size_t funnel_row(const funnel *f, uint64_t id) {
    for (size_t i = 0; i < FUNNEL_ITEMS; i++)
        if (f->ids[i] == id) return i;
    return SIZE_MAX;
}

sl_items *funnel_items(const funnel *f, const sl_allocator *allocator) {
    sl_table_cursor *cursor = malloc(sl_table_cursor_size(f->items.table.column_count));
    sl_rows rows = {.struct_size = sizeof rows};
    sl_items_params params;
    sl_items *items;
    sl_items_params_init(&params);
    params.allocator = allocator;
    ck_assert_ptr_nonnull(cursor);
    ck_ok(sl_table_rows(&f->items.table, cursor, &rows));
    ck_ok(sl_items_create(&rows, &params, &items));
    free(cursor);
    return items;
}

sl_recommend_params funnel_sizes(size_t n, size_t candidates, size_t ef) {
    sl_recommend_params params;
    sl_recommend_params_init(&params);
    params.n = n;
    params.candidates = candidates;
    params.ef = ef;
    return params;
}

sl_session *funnel_session(sl_recommender *recommender, sl_recommend_params sizes) {
    sl_session *session;
    ck_ok(sl_session_create(recommender, &sizes, &session));
    return session;
}

sl_request funnel_request(const funnel *f, size_t user) {
    return (sl_request){.struct_size = sizeof(sl_request),
                        .vector = f->user_vectors + user * FUNNEL_DIM,
                        .dtype = SL_F32,
                        .user = &f->users.table,
                        .user_row = user};
}

/* ---------------------------------------------------------------------------------------------------------------
 * Pairs, and models
 * ------------------------------------------------------------------------------------------------------------- */

/* Makes a table of pairs: row i is user users[i] with candidate i. */
static void join(const funnel *f, const size_t *users, const funnel_candidates *candidates, grid *out) {
    const size_t *rows = candidates->rows, n = candidates->n;
    float *vectors = calloc(2 * n * FUNNEL_DIM, sizeof *vectors), *of_users = vectors + n * FUNNEL_DIM;
    ck_assert_ptr_nonnull(vectors);
    for (size_t i = 0; i < n; i++) {
        /* An item without features has no vector as a feature either. */
        size_t row = rows[i] == SIZE_MAX ? SIZE_MAX : funnel_row(f, candidates->ids[i]);
        if (row != SIZE_MAX)
            memcpy(vectors + i * FUNNEL_DIM, f->vectors + row * FUNNEL_DIM, FUNNEL_DIM * sizeof *vectors);
        memcpy(of_users + i * FUNNEL_DIM, f->user_vectors + users[i] * FUNNEL_DIM, FUNNEL_DIM * sizeof *vectors);
    }
    *out = (grid){.block_count = 0};
    grid_gather(out, &f->users.table, users, n);
    grid_gather(out, &f->items.table, rows, n);
    grid_vectors(out, "user_vec", FUNNEL_DIM, of_users, n);
    grid_vectors(out, "item_vec", FUNNEL_DIM, vectors, n);
    grid_floats(out, "recall", candidates->recall, n);
    free(vectors);
}

#define AGE "{\"name\": \"age\", \"type\": \"numeric\", \"indicator\": true},"
#define AGE_BUCKET                                                                                                     \
    "{\"name\": \"age_bucket\", \"type\": \"bucket\", \"column\": \"age\", \"boundaries\": [25, 35, 50]},"
#define COUNTRY    "{\"name\": \"country\", \"type\": \"categorical\", \"dim\": 4},"
#define LIKES      "{\"name\": \"likes\", \"type\": \"multi\", \"dim\": 3, \"combine\": \"max\"},"
#define SEGMENT    "{\"name\": \"segment\", \"type\": \"categorical\", \"hash\": 8, \"dim\": 2},"
#define USER_VEC   "{\"name\": \"user_vec\", \"type\": \"vector\", \"source\": \"index\", \"dim\": 12},"
#define USER       AGE AGE_BUCKET COUNTRY LIKES SEGMENT USER_VEC
#define GENRE      "{\"name\": \"genre\", \"type\": \"categorical\", \"dim\": 5, \"side\": \"item\"},"
#define TAGS       "{\"name\": \"tags\", \"type\": \"multi\", \"dim\": 3, \"side\": \"item\"},"
#define YEAR       "{\"name\": \"year\", \"type\": \"numeric\", \"side\": \"item\", \"scale\": \"minmax\"},"
#define YEARS      "{\"name\": \"years\", \"type\": \"bucket\", \"column\": \"year\", \"quantiles\": 5, \"side\": \"item\"},"
#define BRAND      "{\"name\": \"brand\", \"type\": \"categorical\", \"vocabulary\": [1, 2, 3, 4], \"side\": \"item\"},"
#define STARS      "{\"name\": \"stars\", \"type\": \"multi\", \"combine\": \"sum\", \"dim\": 2, \"side\": \"item\"},"
#define ITEM_CROSS "{\"name\": \"gy\", \"type\": \"cross\", \"of\": [\"genre\", \"years\"], \"hash\": 30},"
#define ITEM_VEC                                                                                                       \
    "{\"name\": \"item_vec\", \"type\": \"vector\", \"source\": \"index\", \"dim\": 12, \"side\": \"item\"},"
#define ITEM GENRE TAGS YEAR YEARS BRAND STARS ITEM_CROSS ITEM_VEC
#define CROSSES                                                                                                        \
    "{\"name\": \"cg\", \"type\": \"cross\", \"of\": [\"country\", \"genre\"], \"hash\": 20, \"dim\": 3},"             \
    "{\"name\": \"acg\", \"type\": \"cross\", \"of\": [\"genre\", \"age_bucket\", \"country\"], \"hash\": 50},"        \
    "{\"name\": \"lg\", \"type\": \"cross\", \"of\": [\"likes\", \"genre\"], \"hash\": 40, \"dim\": 2},"               \
    "{\"name\": \"ct\", \"type\": \"cross\", \"of\": [\"country\", \"tags\"], \"hash\": 40},"                          \
    "{\"name\": \"nested\", \"type\": \"cross\", \"of\": [\"cg\", \"gy\", \"segment\"], \"hash\": 60},"
#define SCORE    "{\"name\": \"recall\", \"type\": \"score\"},"
#define LOGISTIC "\"label\": {\"column\": \"y\"}"

static const struct model {
    const char *features, *wide, *deep, *label;
    int items;
} models[MODELS] = {
    [MODEL_ALL] =
        {USER ITEM CROSSES SCORE, "{}",
         "{\"features\": [\"age\", \"age_bucket\", \"country\", \"likes\", \"segment\", \"user_vec\", \"genre\", "
         "\"tags\", \"year\", \"brand\", \"stars\", \"item_vec\", \"cg\", \"lg\", \"recall\"], \"hidden\": [24, 9]}",
         LOGISTIC, 1},
    [MODEL_WIDE] = {AGE AGE_BUCKET COUNTRY LIKES SEGMENT GENRE TAGS YEAR YEARS ITEM_CROSS CROSSES, "{}", "null",
                    LOGISTIC, 1},
    [MODEL_DEEP] = {USER ITEM SCORE, "null",
                    "{\"features\": [\"age\", \"likes\", \"genre\", \"tags\", \"item_vec\", "
                    "\"user_vec\", \"recall\"], \"hidden\": [17], \"activation\": \"tanh\"}",
                    LOGISTIC, 1},
    [MODEL_PLAIN] = {AGE COUNTRY USER_VEC GENRE TAGS YEAR, "{}", "{\"hidden\": [16, 8, 4]}", LOGISTIC, 1},
    [MODEL_USER] = {AGE COUNTRY, "{}", "{\"hidden\": [6]}", LOGISTIC, 0},
    [MODEL_ITEM] = {GENRE TAGS BRAND, "{}", "{\"hidden\": [6], \"activation\": \"gelu\"}", LOGISTIC, 1},
    [MODEL_VECTORS] = {USER_VEC ITEM_VEC, "null", "{\"hidden\": [20, 10]}", LOGISTIC, 0},
    [MODEL_SCORE] = {SCORE, "null", "{\"hidden\": [5]}", LOGISTIC, 0},
    [MODEL_SHALLOW] = {AGE GENRE SCORE, "null", "{\"hidden\": [1], \"activation\": \"none\"}", LOGISTIC, 1},
    [MODEL_SQUARED] = {AGE COUNTRY LIKES GENRE TAGS SCORE, "{}", "{\"hidden\": [8]}",
                       "\"label\": {\"column\": \"y\", \"loss\": \"squared\"}", 1},
};

int funnel_needs_items(int model) {
    return models[model].items;
}

sl_status funnel_fit(const funnel *f, const char *spec, const sl_allocator *allocator, sl_ranker **out) {
    enum { PAIRS = 2 * FUNNEL_ITEMS };
    static size_t users[PAIRS], rows[PAIRS];
    static uint64_t ids[PAIRS];
    static float recall[PAIRS], labels[PAIRS];
    for (size_t i = 0; i < PAIRS; i++) {
        users[i] = i % FUNNEL_USERS;
        rows[i] = i % FUNNEL_ITEMS;
        ids[i] = f->ids[rows[i]];
        recall[i] = (float)sl_random_unit(10, i);
        labels[i] = (float)(sl_random_at(11, i) % 2);
    }
    grid pairs;
    join(f, users, &(funnel_candidates){ids, rows, recall, PAIRS}, &pairs);
    grid_floats(&pairs, "y", labels, PAIRS);
    sl_table_cursor *cursor = malloc(sl_table_cursor_size(pairs.table.column_count));
    sl_rows source = {.struct_size = sizeof source};
    sl_train_params params;
    sl_train_params_init(&params);
    params.allocator = allocator;
    ck_assert_ptr_nonnull(cursor);
    ck_ok(sl_table_rows(&pairs.table, cursor, &source));
    sl_status status = sl_ranker_create(spec, &source, &params, out);
    free(cursor);
    grid_free(&pairs);
    return status;
}

static sl_ranker *shake(sl_ranker *ranker, uint64_t seed) {
    enum { MOST = 64 };
    sl_tensor tensors[MOST];
    float *values[MOST];
    sl_ranker *shaken;
    size_t count = sl_ranker_tensor_count(ranker);
    ck_assert_uint_le(count, MOST);
    for (size_t t = 0; t < count; t++) {
        ck_ok(sl_ranker_get_tensor(ranker, t, &tensors[t]));
        size_t size = tensors[t].rows * tensors[t].columns;
        float *data = values[t] = malloc((size ? size : 1) * sizeof *data);
        ck_assert_ptr_nonnull(data);
        double width =
            strncmp(tensors[t].name, "dense", 5) == 0 && tensors[t].rows > 1 ? 2 / sqrt((double)tensors[t].rows) : 0.6;
        for (size_t i = 0; i < size; i++)
            data[i] = (float)(width * (2 * sl_random_unit(seed + t, i) - 1));
        tensors[t].data = data;
    }
    ck_ok(sl_ranker_with_tensors(ranker, tensors, count, &shaken));
    for (size_t t = 0; t < count; t++)
        free(values[t]);
    sl_ranker_free(ranker);
    return shaken;
}

sl_ranker *funnel_ranker(const funnel *f, int model, uint64_t seed, const sl_allocator *allocator) {
    const struct model *m = &models[model];
    char spec[8192];
    int size = snprintf(spec, sizeof spec, "{%s, \"features\": [%s", m->label, m->features);
    spec[size - 1] = ']';
    snprintf(spec + size, sizeof spec - (size_t)size, ", \"wide\": %s, \"deep\": %s}", m->wide, m->deep);
    sl_ranker *ranker;
    ck_ok(funnel_fit(f, spec, allocator, &ranker));
    return shake(ranker, 1000 * seed);
}

void funnel_predict(const funnel *f, const sl_ranker *ranker, size_t user, const funnel_candidates *candidates,
                    float *scores) {
    size_t n = candidates->n;
    size_t *users = malloc((n ? n : 1) * sizeof *users);
    ck_assert_ptr_nonnull(users);
    for (size_t i = 0; i < n; i++)
        users[i] = user;
    grid pairs;
    sl_predictor *predictor;
    join(f, users, candidates, &pairs);
    ck_ok(sl_predictor_create(ranker, NULL, &predictor));
    ck_ok(sl_predictor_predict(predictor, &pairs.table, scores));
    sl_predictor_free(predictor);
    grid_free(&pairs);
    free(users);
}
