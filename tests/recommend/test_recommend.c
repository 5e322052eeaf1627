/* From a user to the top n: scores equal a predictor's, the order follows them, and filters and groups hold. */
#include "base/random.h"
#include "ranker/quantise/quantise_tables.h"
#include "recommend/items.h"
#include "tests/support/check_main.h"
#include "tests/support/clusters.h"
#include "tests/support/faults.h"
#include "tests/support/funnel.h"
#include "tests/support/indexes.h"
#include "tests/support/scratch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N = 20, CANDIDATES = 150, EF = 200 };

static funnel f;

static void dense_ids(void) {
    funnel_make(&f, 0, SL_METRIC_COSINE);
}
static void sparse_ids(void) {
    funnel_make(&f, 1, SL_METRIC_COSINE);
}
static void tear_down(void) {
    funnel_free(&f);
}

static sl_recommender *make(sl_ranker *ranker, sl_items *items, sl_item_part part, const char *group) {
    sl_recommender_params params;
    sl_recommender *recommender;
    sl_recommender_params_init(&params);
    params.item_part = part;
    params.group = group;
    params.threads = 1;
    ck_ok(sl_recommender_create(f.index, ranker, items, &params, &recommender));
    return recommender;
}

static sl_recommend_params sizes(size_t n, size_t candidates) {
    return funnel_sizes(n, candidates, EF);
}

static sl_session *session_of(sl_recommender *recommender) {
    return funnel_session(recommender, sizes(CANDIDATES, CANDIDATES));
}

/* ---------------------------------------------------------------------------------------------------------------
 * Scores and order
 * ------------------------------------------------------------------------------------------------------------- */

/* The answer by other means: the candidates of the index, scored by a predictor, best first. */
typedef struct answer {
    uint64_t recalled[CANDIDATES], ids[CANDIDATES];
    float recall[CANDIDATES], all[CANDIDATES], scores[CANDIDATES], recall_scores[CANDIDATES];
    size_t rows[CANDIDATES];
} answer;

static void expect_answer(const sl_ranker *ranker, size_t user, answer *a) {
    indexes_search(f.index, (vector_rows){f.user_vectors + user * FUNNEL_DIM, SL_F32, 1}, CANDIDATES, EF, a->recalled,
                   a->recall);
    for (size_t i = 0; i < CANDIDATES; i++)
        a->rows[i] = funnel_row(&f, a->recalled[i]);
    funnel_predict(&f, ranker, user, &(funnel_candidates){a->recalled, a->rows, a->recall, CANDIDATES}, a->all);
}

/* Sorts the candidates by `by`. Equal ones keep the recall's order. */
static void order_answer(answer *a, const float *by) {
    int taken[CANDIDATES] = {0};
    for (size_t i = 0; i < CANDIDATES; i++) {
        size_t best = SIZE_MAX;
        for (size_t j = 0; j < CANDIDATES; j++)
            if (!taken[j] && (best == SIZE_MAX || by[j] > by[best])) best = j;
        taken[best] = 1;
        a->ids[i] = a->recalled[best];
        a->scores[i] = by[best];
        a->recall_scores[i] = a->recall[best];
    }
}

static void expect_close(const float *got, const float *wanted, size_t n) {
    for (size_t i = 0; i < n; i++)
        ck_assert_msg(fabsf(got[i] - wanted[i]) <= 1e-6f * fmaxf(1, fabsf(wanted[i])), "score %zu is %.9g, not %.9g", i,
                      (double)got[i], (double)wanted[i]);
}

/* Takes the ranker over. `model` says what it was made of. */
static void check_ranker(sl_ranker *ranker, int model, sl_item_part part) {
    sl_items *items = funnel_needs_items(model) ? funnel_items(&f, NULL) : NULL;
    sl_recommender *recommender = make(ranker, items, part, NULL);
    sl_session *session = session_of(recommender);
    const sl_recommend_params params = sizes(N, CANDIDATES);
    for (size_t user = 0; user < FUNNEL_USERS; user += 3) {
        static answer a;
        uint64_t ids[N];
        float scores[CANDIDATES], recall[N];
        sl_recommend_stats stats;
        sl_request request = funnel_request(&f, user);
        expect_answer(ranker, user, &a);
        ck_ok(sl_session_score(session, &request, a.recalled, a.recall, CANDIDATES, scores, &stats));
        expect_close(scores, a.all, CANDIDATES);
        ck_assert_uint_eq(stats.without_features, 0);
        order_answer(&a, scores);
        ck_ok(sl_session_recommend(session, &request, &params, ids, scores, recall, &stats));
        ck_assert_mem_eq(ids, a.ids, sizeof ids);
        ck_assert_mem_eq(scores, a.scores, N * sizeof *scores);
        ck_assert_mem_eq(recall, a.recall_scores, sizeof recall);
        ck_assert_uint_eq(stats.results, N);
        ck_assert_uint_eq(stats.candidates, CANDIDATES);
        ck_assert_uint_eq(stats.requests, 1);
        ck_assert_uint_eq(stats.version, 0);
        /* The scores tell items apart, so that the order is worth comparing. */
        if (model != MODEL_USER) ck_assert(scores[0] > scores[N - 1]);
    }
    sl_session_free(session);
    sl_recommender_free(recommender);
    sl_items_free(items);
    sl_ranker_free(ranker);
}

START_TEST(scores_are_the_predictors) {
    check_ranker(funnel_ranker(&f, _i / 2, 1, NULL), _i / 2, _i % 2 ? SL_ITEM_CODES : SL_ITEM_LAYER);
}
END_TEST

/* Embedding tables in codes are gathered for users, items and pairs as the predictor gathers them. */
START_TEST(coded_tables_score_as_the_predictors) {
    static const int models[] = {MODEL_ALL, MODEL_DEEP, MODEL_PLAIN};
    enum { MOST_TABLES = 32 };
    sl_table_type types[MOST_TABLES];
    for (size_t m = 0; m < sizeof models / sizeof *models; m++) {
        sl_ranker *floats = funnel_ranker(&f, models[m], 1, NULL), *coded;
        sl_ranker_info info = {.struct_size = sizeof info};
        ck_ok(sl_ranker_get_info(floats, &info));
        ck_assert(info.embeddings && info.embeddings <= MOST_TABLES);
        for (size_t t = 0; t < MOST_TABLES; t++)
            types[t] = t % 3 == 2 ? SL_TABLE_F32 : t % 3 ? SL_TABLE_I4 : SL_TABLE_I8;
        ck_ok(sl_ranker_with_tables(floats, types, &coded));
        sl_ranker_free(floats);
        check_ranker(coded, models[m], _i ? SL_ITEM_CODES : SL_ITEM_LAYER);
    }
}
END_TEST

/* The recommender keeps handles that the caller has freed. A user's row may lie anywhere in its table. */
START_TEST(handles_are_kept) {
    sl_ranker *ranker = funnel_ranker(&f, MODEL_ALL, 1, NULL);
    sl_items *items = funnel_items(&f, NULL);
    sl_recommender *recommender = make(ranker, items, SL_ITEM_LAYER, NULL);
    static answer a;
    float scores[CANDIDATES];
    expect_answer(ranker, 17, &a);
    sl_ranker_free(ranker);
    sl_items_free(items);
    sl_session *session = session_of(recommender);
    sl_request request = funnel_request(&f, 17);
    ck_ok(sl_session_score(session, &request, a.recalled, a.recall, CANDIDATES, scores, NULL));
    expect_close(scores, a.all, CANDIDATES);
    sl_session_free(session);
    sl_recommender_free(recommender);
}
END_TEST

/* A table mapped from its file serves as the saved table does. */
START_TEST(a_mapped_table_serves) {
    scratch place;
    sl_ranker *ranker = funnel_ranker(&f, MODEL_ALL, 1, NULL);
    sl_items *items = funnel_items(&f, NULL), *opened;
    scratch_open(&place);
    ck_ok(sl_items_save(items, place.path, NULL));
    ck_ok(sl_items_open(place.path, NULL, &opened));
    sl_recommender *recommender = make(ranker, opened, SL_ITEM_LAYER, "genre");
    sl_session *session = session_of(recommender);
    static answer a;
    float scores[CANDIDATES];
    sl_request request = funnel_request(&f, 9);
    expect_answer(ranker, 9, &a);
    ck_ok(sl_session_score(session, &request, a.recalled, a.recall, CANDIDATES, scores, NULL));
    expect_close(scores, a.all, CANDIDATES);
    sl_session_free(session);
    sl_recommender_free(recommender);
    sl_items_free(items);
    sl_items_free(opened);
    sl_ranker_free(ranker);
    scratch_close(&place);
}
END_TEST

static sl_status make_verified(sl_ranker *ranker, sl_items *items, int verify, sl_recommender **out) {
    sl_recommender_params params;
    sl_recommender_params_init(&params);
    params.verify = verify;
    return sl_recommender_create(f.index, ranker, items, &params, out);
}

/* With `verify`, a table with one flipped bit does not serve, and a swap to it changes nothing. */
START_TEST(a_damaged_table_does_not_serve) {
    scratch place;
    sl_ranker *ranker = funnel_ranker(&f, MODEL_ALL, 1, NULL);
    sl_items *items = funnel_items(&f, NULL), *opened;
    sl_recommender *recommender, *other;
    scratch_open(&place);
    ck_ok(sl_items_save(items, place.path, NULL));
    ck_ok(sl_items_open(place.path, NULL, &opened));
    ck_ok(make_verified(ranker, opened, 1, &recommender));
    sl_recommender_free(recommender);
    const sl_file_section *section = sl_store_section(sl_items_body(opened)->store, SL_SECTION_COLUMNS);
    size_t at = (size_t)section->offset;
    unsigned char byte = (unsigned char)(sl_items_body(opened)->store->base[at] ^ 1);
    sl_items_free(opened);
    file_patch(place.path, at, &byte, 1);
    ck_ok(sl_items_open(place.path, NULL, &opened));
    ck_fails(make_verified(ranker, opened, 1, &recommender), SL_ECORRUPT, "values of the columns");
    ck_assert_ptr_null(recommender);
    ck_ok(make_verified(ranker, opened, 0, &recommender));
    ck_ok(make_verified(ranker, items, 1, &other));
    ck_fails(sl_recommender_swap(other, NULL, opened), SL_ECORRUPT, "values of the columns");
    ck_assert_uint_eq(sl_recommender_version(other), 0);
    ck_ok(sl_recommender_swap(recommender, NULL, opened));
    sl_recommender_free(recommender);
    sl_recommender_free(other);
    sl_items_free(items);
    sl_items_free(opened);
    sl_ranker_free(ranker);
    scratch_close(&place);
}
END_TEST

/* The ranges that were read ahead. */
static struct {
    const uint8_t *from;
    uint64_t size;
} asked[64];
static size_t asked_count;

static void note(const void *at, uint64_t size) {
    ck_assert_uint_lt(asked_count, 64);
    asked[asked_count].from = at;
    asked[asked_count++].size = size;
}

/* Tells whether all of the bytes were read ahead, by any number of calls. */
static int was_asked(const void *at, size_t size) {
    const uint8_t *byte = at, *end = byte + size;
    for (size_t i = 0; i < asked_count && byte < end; i++) {
        if (byte < asked[i].from || byte >= asked[i].from + asked[i].size) continue;
        byte = asked[i].from + asked[i].size;
        i = SIZE_MAX;
    }
    return byte >= end;
}

/* The columns that the model reads are read ahead from a mapped table, and no others. */
START_TEST(mapped_columns_are_asked_for) {
    scratch place;
    sl_ranker *ranker = funnel_ranker(&f, MODEL_ALL, 1, NULL);
    sl_items *items = funnel_items(&f, NULL), *opened;
    scratch_open(&place);
    ck_ok(sl_items_save(items, place.path, NULL));
    ck_ok(sl_items_open(place.path, NULL, &opened));
    sl_medium noting = *sl_items_body(opened)->store->medium;
    noting.advise_soon = note;
    sl_items_body(opened)->store->medium = &noting;
    asked_count = 0;
    sl_recommender *recommender = make(ranker, opened, SL_ITEM_LAYER, NULL);
    const sl_items_part *part = sl_items_part_of(sl_items_body(opened), 0);
    const sl_column *genre = &part->columns[sl_items_column(opened, "genre")];
    const sl_column *stars = &part->columns[sl_items_column(opened, "stars")];
    const sl_column *year = &part->columns[sl_items_column(opened, "year")];
    const sl_column *id = &part->columns[sl_items_column(opened, "id")];
    size_t texts = (size_t)stars->lists[FUNNEL_ITEMS];
    ck_assert(was_asked(genre->offsets, (FUNNEL_ITEMS + 1) * sizeof(int64_t)));
    ck_assert(was_asked(genre->values, (size_t)genre->offsets[FUNNEL_ITEMS]));
    ck_assert(was_asked(stars->lists, (FUNNEL_ITEMS + 1) * sizeof(int64_t)));
    ck_assert(was_asked(stars->offsets, (texts + 1) * sizeof(int64_t)));
    ck_assert(was_asked(stars->values, (size_t)stars->offsets[texts]));
    ck_assert(was_asked(year->values, FUNNEL_ITEMS * sizeof(float)));
    ck_assert(was_asked(year->valid, (FUNNEL_ITEMS + 7) / 8));
    ck_assert(!was_asked(id->values, 1));
    sl_recommender_free(recommender);
    sl_items_free(items);
    sl_items_free(opened);
    sl_ranker_free(ranker);
    scratch_close(&place);
}
END_TEST

/* More ids than candidates are scored in slices. Recall scores that are not given are computed. */
START_TEST(ranking_alone_takes_any_number) {
    sl_ranker *ranker = funnel_ranker(&f, MODEL_ALL, 1, NULL);
    sl_items *items = funnel_items(&f, NULL);
    sl_recommender *recommender = make(ranker, items, SL_ITEM_LAYER, NULL);
    sl_session *session = session_of(recommender);
    uint64_t found[FUNNEL_ITEMS];
    size_t rows[FUNNEL_ITEMS];
    float recall[FUNNEL_ITEMS], scores[FUNNEL_ITEMS], wanted[FUNNEL_ITEMS];
    sl_request request = funnel_request(&f, 4);
    indexes_search(f.index, (vector_rows){request.vector, SL_F32, 1}, FUNNEL_ITEMS, FUNNEL_ITEMS, found, recall);
    for (size_t i = 0; i < FUNNEL_ITEMS; i++)
        rows[i] = funnel_row(&f, found[i]);
    funnel_predict(&f, ranker, 4, &(funnel_candidates){found, rows, recall, FUNNEL_ITEMS}, wanted);
    ck_ok(sl_session_score(session, &request, found, recall, FUNNEL_ITEMS, scores, NULL));
    expect_close(scores, wanted, FUNNEL_ITEMS);
    ck_ok(sl_session_score(session, &request, found, NULL, FUNNEL_ITEMS, scores, NULL));
    for (size_t i = 0; i < FUNNEL_ITEMS; i++)
        ck_assert(fabsf(scores[i] - wanted[i]) < 1e-5f);
    ck_ok(sl_session_score(session, &request, NULL, NULL, 0, NULL, NULL));
    sl_session_free(session);
    sl_recommender_free(recommender);
    sl_items_free(items);
    sl_ranker_free(ranker);
}
END_TEST

START_TEST(recall_alone_keeps_its_order) {
    sl_items *items = funnel_items(&f, NULL);
    for (int with = 0; with < 2; with++) {
        sl_recommender *recommender = make(NULL, with ? items : NULL, SL_ITEM_LAYER, NULL);
        sl_session *session = session_of(recommender);
        const sl_recommend_params params = sizes(N, CANDIDATES);
        uint64_t ids[N], recalled[CANDIDATES];
        float scores[N], again[N], recall[CANDIDATES];
        sl_request request = funnel_request(&f, 3);
        request.user = NULL;
        indexes_search(f.index, (vector_rows){request.vector, SL_F32, 1}, CANDIDATES, EF, recalled, recall);
        ck_ok(sl_session_recommend(session, &request, &params, ids, scores, NULL, NULL));
        ck_assert_mem_eq(ids, recalled, sizeof ids);
        ck_assert_mem_eq(scores, recall, sizeof scores);
        ck_ok(sl_session_score(session, &request, recalled, NULL, N, again, NULL));
        for (size_t i = 0; i < N; i++)
            ck_assert(fabsf(again[i] - recall[i]) < 1e-5f);
        sl_session_free(session);
        sl_recommender_free(recommender);
    }
    sl_items_free(items);
}
END_TEST

/* Under every metric, computed recall scores equal the search's. */
START_TEST(computed_recall_is_the_searches) {
    funnel_free(&f);
    funnel_make(&f, _i % 2, (sl_metric)(_i / 2));
    sl_recommender *recommender = make(NULL, NULL, SL_ITEM_LAYER, NULL);
    sl_session *session = session_of(recommender);
    uint64_t ids[CANDIDATES];
    float recall[CANDIDATES], scores[CANDIDATES];
    sl_request request = funnel_request(&f, 5);
    indexes_search(f.index, (vector_rows){request.vector, SL_F32, 1}, CANDIDATES, EF, ids, recall);
    ck_ok(sl_session_score(session, &request, ids, NULL, CANDIDATES, scores, NULL));
    for (size_t i = 0; i < CANDIDATES; i++)
        ck_assert(fabsf(scores[i] - recall[i]) < 1e-4f * fmaxf(1, fabsf(recall[i])));
    /* A request's vector may be of another type than the index's. */
    void *halves = clusters_as(SL_F16, request.vector, FUNNEL_DIM);
    request.vector = halves;
    request.dtype = SL_F16;
    indexes_search(f.index, (vector_rows){halves, SL_F16, 1}, CANDIDATES, EF, ids, recall);
    ck_ok(sl_session_score(session, &request, ids, NULL, CANDIDATES, scores, NULL));
    for (size_t i = 0; i < CANDIDATES; i++)
        ck_assert(fabsf(scores[i] - recall[i]) < 1e-4f * fmaxf(1, fabsf(recall[i])));
    free(halves);
    request = funnel_request(&f, 5);
    ids[0] = SL_NO_ID - 1;
    ck_ok(sl_session_score(session, &request, ids, NULL, 1, scores, NULL));
    ck_assert(isnan(scores[0]));
    request.dtype = SL_U8;
    ck_fails(sl_session_score(session, &request, ids, NULL, 1, scores, NULL), SL_ETYPE, "");
    sl_session_free(session);
    sl_recommender_free(recommender);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Filters, groups
 * ------------------------------------------------------------------------------------------------------------- */

static int even(void *ctx, uint64_t id) {
    (void)ctx;
    return id % 2 == 0;
}

static int fifth(void *ctx, uint64_t id) {
    (void)ctx;
    return id % 5 == 0;
}

/* Tells whether an id passes: bit 0 of `filters` excludes the nearest, the others are even ids, bits and fifths. */
static int passes(uint64_t id, unsigned filters, const uint64_t *nearest) {
    for (size_t i = 0; i < CANDIDATES && filters & 1; i++)
        if (nearest[i] == id) return 0;
    return (!(filters & 2) || id % 2 == 0) && (!(filters & 4) || id % 8 != 3) && (!(filters & 8) || id % 5 == 0);
}

/* Each kind of filter is obeyed, alone and with the others, and n results remain. */
START_TEST(exclusions_are_never_returned) {
    sl_ranker *ranker = funnel_ranker(&f, MODEL_PLAIN, 1, NULL);
    sl_items *items = funnel_items(&f, NULL);
    sl_recommender *recommender = make(ranker, items, SL_ITEM_LAYER, NULL);
    sl_session *session = session_of(recommender);
    const sl_recommend_params params = sizes(N, 60);
    uint64_t bits[FUNNEL_ITEMS / 64 + 1];
    memset(bits, 0xf7, sizeof bits);
    sl_filter_params fifths;
    sl_filter_params_init(&fifths);
    fifths.accept = fifth;
    sl_filter *filter;
    ck_ok(sl_filter_create(f.index, &fifths, &filter));
    for (unsigned filters = 0; filters < 16; filters++) {
        uint64_t nearest[CANDIDATES], ids[N];
        sl_request request = funnel_request(&f, filters);
        indexes_search(f.index, (vector_rows){request.vector, SL_F32, 1}, CANDIDATES, EF, nearest, NULL);
        if (filters & 1) {
            request.exclude = nearest;
            request.exclude_count = CANDIDATES;
        }
        if (filters & 2) request.accept = even;
        if (filters & 4) {
            request.accept_bits = bits;
            request.accept_bits_count = 64 * (FUNNEL_ITEMS / 64 + 1);
        }
        if (filters & 8) request.filter = filter;
        sl_recommend_stats stats;
        ck_ok(sl_session_recommend(session, &request, &params, ids, NULL, NULL, &stats));
        ck_assert_uint_eq(stats.results, N);
        size_t allowed = 0;
        for (size_t item = 0; item < FUNNEL_ITEMS; item++)
            allowed += (size_t)passes(f.ids[item], filters, nearest);
        ck_assert_uint_eq(stats.candidates, allowed < 60 ? allowed : 60);
        for (size_t i = 0; i < N; i++) {
            ck_assert(passes(ids[i], filters, nearest));
            for (size_t j = 0; j < i; j++)
                ck_assert_uint_ne(ids[i], ids[j]);
        }
    }
    sl_filter_free(filter);
    /* Excluding all ids leaves no result, which is not an error. */
    uint64_t ids[N];
    float scores[N];
    sl_recommend_stats stats;
    sl_request request = funnel_request(&f, 0);
    request.exclude = f.ids;
    request.exclude_count = FUNNEL_ITEMS;
    ck_ok(sl_session_recommend(session, &request, &params, ids, scores, scores, &stats));
    ck_assert_uint_eq(stats.results, 0);
    ck_assert_uint_eq(ids[0], SL_NO_ID);
    ck_assert(isnan(scores[N - 1]));
    sl_session_free(session);
    sl_recommender_free(recommender);
    sl_items_free(items);
    sl_ranker_free(ranker);
}
END_TEST

static void genre_of(const sl_items *items, uint64_t id, char out[16]) {
    ck_ok(sl_items_text(items, id, "genre", out, 16, NULL));
}

/* The first of each group up to the bound are kept, in order. Items in no group are not bounded. */
START_TEST(groups_are_bounded) {
    sl_ranker *ranker = _i ? funnel_ranker(&f, MODEL_PLAIN, 1, NULL) : NULL;
    sl_items *items = funnel_items(&f, NULL);
    sl_recommender *recommender = make(ranker, items, SL_ITEM_LAYER, "genre");
    sl_session *session = session_of(recommender);
    for (size_t most = 1; most < 5; most++) {
        sl_recommend_params params = sizes(CANDIDATES, CANDIDATES);
        uint64_t all[CANDIDATES], ids[N], wanted[N];
        char genres[CANDIDATES][16];
        size_t kept = 0;
        sl_request request = funnel_request(&f, 3 + most);
        sl_recommend_stats stats;
        ck_ok(sl_session_recommend(session, &request, &params, all, NULL, NULL, NULL));
        for (size_t i = 0; i < CANDIDATES && kept < N; i++) {
            size_t before = 0;
            genre_of(items, all[i], genres[kept]);
            for (size_t j = 0; j < kept; j++)
                before += *genres[kept] && !strcmp(genres[j], genres[kept]);
            if (before < most) wanted[kept++] = all[i];
        }
        params.n = N;
        params.max_per_group = most;
        ck_ok(sl_session_recommend(session, &request, &params, ids, NULL, NULL, &stats));
        ck_assert_uint_eq(stats.results, kept);
        ck_assert_mem_eq(ids, wanted, kept * sizeof *ids);
        for (size_t i = kept; i < N; i++)
            ck_assert_uint_eq(ids[i], SL_NO_ID);
    }
    sl_session_free(session);
    sl_recommender_free(recommender);
    sl_items_free(items);
    sl_ranker_free(ranker);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Items without features
 * ------------------------------------------------------------------------------------------------------------- */

static sl_items *items_of(const grid *g) {
    sl_table_cursor *cursor = malloc(sl_table_cursor_size(g->table.column_count));
    sl_rows source = {.struct_size = sizeof source};
    sl_items *items;
    ck_ok(sl_table_rows(&g->table, cursor, &source));
    ck_ok(sl_items_create(&source, NULL, &items));
    free(cursor);
    return items;
}

static sl_items *some_items(size_t step, grid *g) {
    size_t rows[FUNNEL_ITEMS], n = 0;
    for (size_t i = 0; i < FUNNEL_ITEMS; i++)
        if (i % step) rows[n++] = i;
    *g = (grid){.block_count = 0};
    grid_gather(g, &f.items.table, rows, n);
    return items_of(g);
}

/* Preparing all items, on one thread and on several. */
START_TEST(a_bad_item_is_named_by_any_thread) {
    grid g;
    sl_ranker *ranker = funnel_ranker(&f, MODEL_ALL, 1, NULL);
    sl_items_free(some_items(3, &g));
    for (size_t c = 0; c < g.table.column_count; c++)
        if (strcmp(g.columns[c].name, "year") == 0) ((float *)g.columns[c].values)[300] = INFINITY;
    sl_items *items = items_of(&g);
    sl_recommender_params params;
    sl_recommender *recommender;
    sl_recommender_params_init(&params);
    for (params.threads = 1; params.threads <= 3; params.threads++) {
        ck_fails(sl_recommender_create(NULL, NULL, NULL, NULL, &recommender), SL_EINVAL, "index");
        ck_fails(sl_recommender_create(f.index, ranker, items, &params, &recommender), SL_EVALUE,
                 "item table: row 300: column 'year': the number is infinite");
    }
    sl_items_free(items);
    sl_ranker_free(ranker);
    grid_free(&g);
}
END_TEST

START_TEST(missing_items_are_scored_and_counted) {
    grid g;
    sl_ranker *ranker = funnel_ranker(&f, MODEL_ALL, 1, NULL);
    sl_items *items = some_items(3, &g);
    sl_recommender_params params;
    sl_recommender_params_init(&params);
    params.item_part = (sl_item_part)(_i % 2);
    if (_i / 2) params.missing_score = -7;
    sl_recommender *recommender;
    ck_ok(sl_recommender_create(f.index, ranker, items, &params, &recommender));
    sl_session *session = session_of(recommender);
    static answer a;
    float scores[CANDIDATES];
    size_t missing = 0;
    sl_recommend_stats stats;
    sl_request request = funnel_request(&f, 8);
    expect_answer(ranker, 8, &a);
    for (size_t i = 0; i < CANDIDATES; i++)
        if (a.rows[i] % 3 == 0) a.rows[i] = SIZE_MAX, missing++;
    funnel_predict(&f, ranker, 8, &(funnel_candidates){a.recalled, a.rows, a.recall, CANDIDATES}, a.all);
    for (size_t i = 0; i < CANDIDATES && _i / 2; i++)
        if (a.rows[i] == SIZE_MAX) a.all[i] = -7;
    ck_ok(sl_session_score(session, &request, a.recalled, a.recall, CANDIDATES, scores, &stats));
    ck_assert_uint_eq(stats.without_features, missing);
    ck_assert_uint_gt(missing, 10);
    expect_close(scores, a.all, CANDIDATES);
    sl_session_free(session);
    sl_recommender_free(recommender);
    sl_items_free(items);
    sl_ranker_free(ranker);
    grid_free(&g);
}
END_TEST

/* Vectors added to the index later are candidates like the others. A swap prepares them ahead, and changes nothing. */
START_TEST(the_index_may_grow) {
    sl_ranker *ranker = funnel_ranker(&f, MODEL_VECTORS, 1, NULL);
    sl_recommender *recommender = make(ranker, NULL, SL_ITEM_LAYER, NULL);
    enum { MORE = 20 };
    float more[MORE * FUNNEL_DIM];
    for (size_t i = 0; i < MORE; i++)
        memcpy(more + i * FUNNEL_DIM, f.user_vectors + FUNNEL_DIM, FUNNEL_DIM * sizeof *more);
    ck_ok(indexes_add(f.index, more, SL_F32, MORE, NULL));
    sl_session *session = session_of(recommender);
    const sl_recommend_params params = sizes(N, CANDIDATES);
    sl_request request = funnel_request(&f, 1);
    uint64_t ids[N], again[N];
    float scores[N], rescored[N];
    sl_recommend_stats stats;
    ck_ok(sl_session_recommend(session, &request, &params, ids, scores, NULL, &stats));
    ck_assert_uint_eq(stats.without_features, 0);
    ck_ok(sl_recommender_swap(recommender, NULL, NULL));
    ck_ok(sl_session_recommend(session, &request, &params, again, rescored, NULL, &stats));
    ck_assert_mem_eq(again, ids, sizeof ids);
    expect_close(rescored, scores, N);
    ck_assert_uint_eq(stats.without_features, 0);
    ck_assert_uint_eq(stats.version, 1);
    sl_session_free(session);
    sl_recommender_free(recommender);
    sl_ranker_free(ranker);
}
END_TEST

/* A deleted vector is no candidate. A vector added under its id has its own features. */
START_TEST(the_index_may_shrink) {
    enum { GONE = FUNNEL_ITEMS / 2, AGAIN = 5 };
    uint64_t gone[GONE], ids[N];
    for (size_t i = 0; i < GONE; i++)
        gone[i] = f.ids[2 * i];
    ck_ok(sl_index_delete(f.index, gone, GONE));
    ck_ok(indexes_add(f.index, f.user_vectors, SL_F32, AGAIN, gone));
    sl_ranker *ranker = funnel_ranker(&f, MODEL_VECTORS, 1, NULL);
    sl_recommender *recommender = make(ranker, NULL, SL_ITEM_LAYER, NULL);
    sl_session *session = session_of(recommender);
    const sl_recommend_params params = sizes(N, CANDIDATES);
    for (size_t user = 0; user < FUNNEL_USERS; user++) {
        sl_request request = funnel_request(&f, user);
        sl_recommend_stats stats;
        ck_ok(sl_session_recommend(session, &request, &params, ids, NULL, NULL, &stats));
        ck_assert_uint_eq(stats.results, N);
        ck_assert_uint_eq(stats.candidates, CANDIDATES);
        ck_assert_uint_eq(stats.without_features, 0);
        for (size_t i = 0; i < N; i++) {
            size_t row = funnel_row(&f, ids[i]);
            ck_assert(row % 2 || row < 2 * AGAIN);
        }
    }
    sl_session_free(session);
    sl_recommender_free(recommender);
    sl_ranker_free(ranker);
}
END_TEST

START_TEST(an_empty_index_gives_nothing) {
    sl_index_params index_params;
    sl_index *index;
    indexes_params(&index_params, FUNNEL_DIM, SL_METRIC_COSINE);
    ck_ok(sl_index_create(&index_params, &index));
    sl_ranker *ranker = funnel_ranker(&f, MODEL_ALL, 1, NULL);
    sl_items *items = funnel_items(&f, NULL);
    sl_recommender *recommender;
    sl_session *session;
    ck_ok(sl_recommender_create(index, ranker, items, NULL, &recommender));
    ck_ok(sl_session_create(recommender, NULL, &session));
    sl_request request = funnel_request(&f, 1);
    uint64_t ids[10];
    sl_recommend_stats stats;
    ck_ok(sl_session_recommend(session, &request, NULL, ids, NULL, NULL, &stats));
    ck_assert_uint_eq(stats.results + stats.candidates, 0);
    ck_assert_uint_eq(ids[9], SL_NO_ID);
    sl_session_free(session);
    sl_recommender_free(recommender);
    sl_items_free(items);
    sl_ranker_free(ranker);
    sl_index_free(index);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Many users
 * ------------------------------------------------------------------------------------------------------------- */

START_TEST(a_query_batch_is_its_requests) {
    sl_ranker *ranker = funnel_ranker(&f, MODEL_ALL, 1, NULL);
    sl_items *items = funnel_items(&f, NULL);
    sl_recommender *recommender = make(ranker, items, SL_ITEM_LAYER, "genre");
    sl_session *session = session_of(recommender);
    sl_recommend_params params = sizes(N, CANDIDATES);
    params.max_per_group = 4;
    sl_request requests[FUNNEL_USERS];
    static uint64_t ids[FUNNEL_USERS][N], one[N];
    static float scores[FUNNEL_USERS][N], recall[FUNNEL_USERS][N], one_scores[N], one_recall[N];
    sl_recommend_stats stats, sum = {0};
    for (size_t u = 0; u < FUNNEL_USERS; u++)
        requests[u] = funnel_request(&f, u);
    for (size_t threads = 1; threads <= 2; threads++) {
        sl_recommend_stats all;
        params.threads = threads;
        sum = (sl_recommend_stats){0};
        ck_ok(sl_recommend(recommender, requests, FUNNEL_USERS, &params, ids[0], scores[0], recall[0], &all));
        for (size_t u = 0; u < FUNNEL_USERS; u++) {
            ck_ok(sl_session_recommend(session, &requests[u], &params, one, one_scores, one_recall, &stats));
            size_t found = stats.results;
            ck_assert_mem_eq(ids[u], one, sizeof one);
            ck_assert_mem_eq(scores[u], one_scores, found * sizeof *one_scores);
            ck_assert_mem_eq(recall[u], one_recall, found * sizeof *one_recall);
            sum.results += stats.results;
            sum.candidates += stats.candidates;
        }
        ck_assert_uint_eq(all.requests, FUNNEL_USERS);
        ck_assert_uint_eq(all.results, sum.results);
        ck_assert_uint_eq(all.candidates, sum.candidates);
    }
    requests[7].user_row = FUNNEL_USERS;
    ck_fails(sl_recommend(recommender, requests, FUNNEL_USERS, &params, ids[0], NULL, NULL, NULL), SL_EINVAL,
             "request 7: user_row is");
    params.progress = indexes_cancel;
    ck_fails(sl_recommend(recommender, requests, 3, &params, ids[0], NULL, NULL, NULL), SL_ECANCELED, "");
    ck_ok(sl_recommend(recommender, NULL, 0, NULL, NULL, NULL, NULL, &stats));
    ck_assert_uint_eq(stats.requests, 0);
    sl_session_free(session);
    sl_recommender_free(recommender);
    sl_items_free(items);
    sl_ranker_free(ranker);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * What is refused
 * ------------------------------------------------------------------------------------------------------------- */

static void refuse(sl_ranker *ranker, sl_items *items, const char *group, sl_status status, const char *text) {
    sl_recommender_params params;
    sl_recommender *recommender;
    sl_recommender_params_init(&params);
    params.group = group;
    params.threads = 1 + (size_t)(group == NULL);
    ck_fails(sl_recommender_create(f.index, ranker, items, &params, &recommender), status, text);
    ck_assert_ptr_null(recommender);
}

START_TEST(model_and_table_must_agree) {
    sl_ranker *all = funnel_ranker(&f, MODEL_ALL, 1, NULL);
    sl_items *items = funnel_items(&f, NULL);
    refuse(all, NULL, NULL, SL_ENOTFOUND, "no item table");
    refuse(all, items, "colour", SL_ENOTFOUND, "'colour'");
    refuse(all, items, "stars", SL_ETYPE, "'stars'");
    refuse(all, NULL, "genre", SL_ENOTFOUND, "genre");
    /* The first table lacks a column. The second has the column with another type. */
    for (size_t c = 1; c < f.items.table.column_count; c++) {
        grid g = f.items;
        const char *name = g.columns[c].name;
        g.columns[c].name = "other";
        g.table.columns = g.columns;
        sl_items *wrong = items_of(&g);
        refuse(all, wrong, NULL, SL_ENOTFOUND, name);
        sl_items_free(wrong);
        float vector[FUNNEL_ITEMS] = {0};
        g.columns[c] = (sl_column){.name = name, .type = SL_COLUMN_VECTOR, .dim = 1, .values = vector};
        wrong = items_of(&g);
        refuse(all, wrong, NULL, SL_ETYPE, name);
        sl_items_free(wrong);
    }
    sl_index *wide = NULL, *own = f.index;
    sl_index_params params;
    indexes_params(&params, FUNNEL_DIM + 1, SL_METRIC_L2);
    ck_ok(sl_index_create(&params, &wide));
    f.index = wide;
    refuse(all, items, NULL, SL_EDIM, "_vec");
    f.index = own;
    sl_index_free(wide);
    sl_ranker *classes;
    ck_ok(funnel_fit(&f,
                     "{\"label\": {\"column\": \"y\", \"loss\": \"multiclass\", \"classes\": [\"0\", \"1\", \"2\"]}, "
                     "\"features\": [{\"name\": \"age\", \"type\": \"numeric\"}]}",
                     NULL, &classes));
    refuse(classes, items, NULL, SL_EINVAL, "3 scores");
    sl_ranker_free(classes);
    sl_items_free(items);
    sl_ranker_free(all);
}
END_TEST

/* A swap that fails leaves the pair in use. */
START_TEST(a_failed_swap_changes_nothing) {
    sl_ranker *plain = funnel_ranker(&f, MODEL_PLAIN, 1, NULL), *all = funnel_ranker(&f, MODEL_ALL, 1, NULL);
    grid g = f.items;
    g.columns[1].name = "other";
    g.table.columns = g.columns;
    sl_items *items = funnel_items(&f, NULL), *wrong = items_of(&g);
    sl_recommender *recommender = make(plain, items, SL_ITEM_LAYER, NULL);
    sl_session *session = session_of(recommender);
    static answer a;
    float scores[CANDIDATES];
    sl_recommend_stats stats;
    sl_request request = funnel_request(&f, 2);
    expect_answer(plain, 2, &a);
    ck_fails(sl_recommender_swap(recommender, all, wrong), SL_ENOTFOUND, "genre");
    ck_assert_uint_eq(sl_recommender_version(recommender), 0);
    ck_ok(sl_session_score(session, &request, a.recalled, a.recall, CANDIDATES, scores, &stats));
    expect_close(scores, a.all, CANDIDATES);
    ck_assert_uint_eq(stats.version, 0);
    sl_session_free(session);
    sl_recommender_free(recommender);
    sl_items_free(items);
    sl_items_free(wrong);
    sl_ranker_free(plain);
    sl_ranker_free(all);
}
END_TEST

/* Each line makes one field of a good request, or of good parameters, wrong. */
static void refuse_each(sl_session *session) {
    const sl_request good = funnel_request(&f, 2);
    static const float infinite[FUNNEL_DIM] = {INFINITY};
    uint64_t ids[N];
#define REFUSED(wrong, status, text)                                                                                   \
    do {                                                                                                               \
        sl_request request = good;                                                                                     \
        sl_recommend_params params = sizes(N, CANDIDATES);                                                             \
        wrong;                                                                                                         \
        ck_fails(sl_session_recommend(session, &request, &params, ids, NULL, NULL, NULL), status, text);               \
    } while (0)
    REFUSED(request.struct_size = 0, SL_EINVAL, "sl_request");
    REFUSED(request.vector = NULL, SL_EINVAL, "vector");
    REFUSED(request.vector = infinite, SL_EVALUE, "");
    REFUSED(request.dtype = SL_I8, SL_ETYPE, "");
    REFUSED(request.user = NULL, SL_ENOTFOUND, "the request");
    REFUSED(request.user = &f.items.table, SL_ENOTFOUND, "column");
    REFUSED(request.user_row = FUNNEL_USERS, SL_EINVAL, "user_row");
    REFUSED(request.exclude_count = 1, SL_EINVAL, "exclude");
    REFUSED(request.accept_bits_count = 1, SL_EINVAL, "accept_bits");
    REFUSED(params.max_per_group = 2, SL_EINVAL, "max_per_group is 2");
    REFUSED(params.n = 0, SL_EINVAL, "n is 0");
    REFUSED(params.candidates = N - 1, SL_EINVAL, "candidates 19");
    REFUSED(params.candidates = CANDIDATES + 1, SL_EINVAL, "larger");
    REFUSED(params.ef = EF + 1, SL_EINVAL, "larger");
    REFUSED(params.ef = SL_MAX_EF + 1, SL_EINVAL, "ef");
    REFUSED(params.struct_size = 1, SL_EINVAL, "sl_recommend_params_init");
#undef REFUSED
}

START_TEST(bad_requests_are_refused) {
    sl_ranker *ranker = funnel_ranker(&f, MODEL_ALL, 1, NULL);
    sl_items *items = funnel_items(&f, NULL);
    sl_recommender *recommender = make(ranker, items, SL_ITEM_LAYER, NULL);
    sl_session *session = session_of(recommender), *none;
    const sl_recommend_params params = sizes(N, CANDIDATES);
    const sl_request good = funnel_request(&f, 2);
    uint64_t ids[N];
    refuse_each(session);
    ck_fails(sl_session_recommend(session, NULL, NULL, ids, NULL, NULL, NULL), SL_EINVAL, "");
    ck_fails(sl_session_recommend(session, &good, &params, NULL, NULL, NULL, NULL), SL_EINVAL, "");
    ck_fails(sl_session_recommend(NULL, &good, &params, ids, NULL, NULL, NULL), SL_EINVAL, "");
    ck_fails(sl_session_score(session, &good, ids, NULL, 1, NULL, NULL), SL_EINVAL, "");
    ck_fails(sl_recommend(NULL, &good, 1, &params, ids, NULL, NULL, NULL), SL_EINVAL, "");
    ck_fails(sl_recommend(recommender, NULL, 1, &params, ids, NULL, NULL, NULL), SL_EINVAL, "");
    ck_fails(sl_recommender_swap(NULL, NULL, NULL), SL_EINVAL, "");
    ck_fails(sl_recommender_update(recommender, NULL), SL_EINVAL, "");
    ck_fails(sl_session_create(NULL, NULL, &none), SL_EINVAL, "");
    ck_ok(sl_session_recommend(session, &good, &params, ids, NULL, NULL, NULL));
    sl_session_free(session);
    sl_recommender_free(recommender);
    sl_items_free(items);
    sl_ranker_free(ranker);
}
END_TEST

START_TEST(bad_recommenders_are_refused) {
    sl_recommender_params bad;
    sl_recommender *other;
    sl_recommender_params_init(&bad);
    static const int parts[] = {-1, 4, 7};
    for (size_t i = 0; i < 3; i++) {
        bad.item_part = (sl_item_part)parts[i];
        ck_fails(sl_recommender_create(f.index, NULL, NULL, &bad, &other), SL_EINVAL, "item_part");
    }
    ck_fails(sl_recommender_create(NULL, NULL, NULL, NULL, &other), SL_EINVAL, "index");
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Memory
 * ------------------------------------------------------------------------------------------------------------- */

static fault_allocator memory;

/* Calls each function once, with an allocator that fails at one call. Returns the first failure. */
static sl_status everything(sl_ranker *ranker, sl_ranker *other, const sl_table *rows) {
    sl_items *items = NULL;
    sl_recommender *recommender = NULL;
    sl_session *session = NULL;
    sl_table_cursor *cursor = malloc(sl_table_cursor_size(f.items.table.column_count));
    sl_rows source = {.struct_size = sizeof source};
    sl_items_params items_params;
    sl_recommender_params params;
    const sl_recommend_params asked = sizes(N, CANDIDATES);
    sl_request request = funnel_request(&f, 2);
    uint64_t ids[2 * N];
    request.exclude = f.ids;
    request.exclude_count = 30;
    sl_items_params_init(&items_params);
    items_params.allocator = &memory.allocator;
    sl_recommender_params_init(&params);
    params.allocator = &memory.allocator;
    params.group = "genre";
    params.threads = 1;
    ck_ok(sl_table_rows(&f.items.table, cursor, &source));
    sl_status status = sl_items_create(&source, &items_params, &items);
    if (status == SL_OK) status = sl_recommender_create(f.index, ranker, items, &params, &recommender);
    if (status == SL_OK) status = sl_session_create(recommender, &asked, &session);
    if (status == SL_OK) status = sl_session_recommend(session, &request, &asked, ids, NULL, NULL, NULL);
    if (status == SL_OK) status = sl_recommender_update(recommender, rows);
    if (status == SL_OK) status = sl_recommender_swap(recommender, other, NULL);
    if (status == SL_OK) status = sl_session_recommend(session, &request, &asked, ids, NULL, NULL, NULL);
    if (status == SL_OK) status = sl_recommend(recommender, &request, 1, &asked, ids, NULL, NULL, NULL);
    sl_session_free(session);
    sl_recommender_free(recommender);
    sl_items_free(items);
    free(cursor);
    return status;
}

START_TEST(every_failing_allocation_is_passed_on) {
    sl_ranker *ranker = funnel_ranker(&f, MODEL_ALL, 1, NULL), *other = funnel_ranker(&f, MODEL_DEEP, 2, NULL);
    size_t rows[] = {3, 5, 8};
    grid g = {.block_count = 0};
    grid_gather(&g, &f.items.table, rows, 3);
    fault_allocator_init(&memory, 0);
    ck_ok(everything(ranker, other, &g.table));
    ck_assert_uint_eq(memory.live_blocks, 0);
    size_t calls = memory.calls;
    ck_assert_uint_gt(calls, 100);
    for (size_t i = 1; i <= calls; i++) {
        fault_allocator_init(&memory, i);
        ck_assert_int_eq(everything(ranker, other, &g.table), SL_ENOMEM);
        ck_assert_uint_eq(memory.live_blocks, 0);
        ck_assert_uint_eq(memory.live_bytes, 0);
    }
    grid_free(&g);
    sl_ranker_free(ranker);
    sl_ranker_free(other);
}
END_TEST

int main(void) {
    TCase *dense = tcase_create("dense ids"), *sparse = tcase_create("sparse ids");
    TCase *const cases[] = {dense, sparse};
    tcase_add_checked_fixture(dense, dense_ids, tear_down);
    tcase_add_checked_fixture(sparse, sparse_ids, tear_down);
    for (size_t c = 0; c < 2; c++) {
        tcase_add_loop_test(cases[c], scores_are_the_predictors, 0, 2 * MODELS);
        tcase_add_loop_test(cases[c], coded_tables_score_as_the_predictors, 0, 2);
        tcase_add_test(cases[c], a_query_batch_is_its_requests);
        tcase_add_test(cases[c], a_bad_item_is_named_by_any_thread);
        tcase_add_loop_test(cases[c], missing_items_are_scored_and_counted, 0, 4);
        tcase_add_test(cases[c], the_index_may_grow);
        tcase_add_test(cases[c], the_index_may_shrink);
    }
    tcase_add_test(dense, handles_are_kept);
    tcase_add_test(dense, a_mapped_table_serves);
    tcase_add_test(dense, a_damaged_table_does_not_serve);
    tcase_add_test(dense, mapped_columns_are_asked_for);
    tcase_add_test(dense, ranking_alone_takes_any_number);
    tcase_add_test(dense, recall_alone_keeps_its_order);
    tcase_add_loop_test(dense, computed_recall_is_the_searches, 0, 6);
    tcase_add_test(dense, exclusions_are_never_returned);
    tcase_add_loop_test(dense, groups_are_bounded, 0, 2);
    tcase_add_test(dense, an_empty_index_gives_nothing);
    tcase_add_test(dense, model_and_table_must_agree);
    tcase_add_test(dense, a_failed_swap_changes_nothing);
    tcase_add_test(dense, bad_requests_are_refused);
    tcase_add_test(dense, bad_recommenders_are_refused);
    tcase_add_test(dense, every_failing_allocation_is_passed_on);
    return check_main("recommend", cases, 2);
}
