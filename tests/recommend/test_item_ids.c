/* Ids of items: several vectors an id, and ids that a client chose. */
#include "recommend/catalog.h"
#include "recommend/recall.h"
#include "tests/support/check_main.h"
#include "tests/support/colliding.h"
#include "tests/support/funnel.h"
#include "tests/support/indexes.h"

#include <math.h>

enum { N = 20, CANDIDATES = 150, EF = 200 };

static funnel f;

static void set_up(void) {
    funnel_make(&f, 0, SL_METRIC_COSINE);
}

static void tear_down(void) {
    funnel_free(&f);
}

static sl_recommender *make(sl_ranker *ranker, sl_items *items) {
    sl_recommender *recommender;
    ck_ok(sl_recommender_create(f.index, ranker, items, NULL, &recommender));
    return recommender;
}

/* Makes the index anew with several vectors an id: row i belongs to ids i and i + 7, and rows 0 to 5 to id 9 too. */
static void make_multi(sl_metric metric) {
    static uint64_t more[FUNNEL_ITEMS], nines[6];
    sl_index_params params;
    funnel_free(&f);
    funnel_make(&f, 1, metric);
    sl_index_free(f.index);
    indexes_params(&params, FUNNEL_DIM, metric);
    params.codes = SL_CODES_F32;
    params.multi = 1;
    f.index = indexes_make(&params, f.vectors, SL_F32, FUNNEL_ITEMS, f.ids, 1);
    for (size_t i = 0; i < FUNNEL_ITEMS; i++)
        more[i] = f.ids[(i + 7) % FUNNEL_ITEMS];
    for (size_t i = 0; i < 6; i++)
        nines[i] = f.ids[9];
    ck_ok(indexes_add(f.index, f.vectors, SL_F32, FUNNEL_ITEMS, more));
    ck_ok(indexes_add(f.index, f.vectors, SL_F32, 6, nines));
}

/* An item that may have several vectors is recalled once, and scored, by its best. */
START_TEST(items_of_several_vectors) {
    make_multi((sl_metric)_i);
    sl_ranker *ranker = funnel_ranker(&f, MODEL_PLAIN, 1, NULL), *vectors = funnel_ranker(&f, MODEL_VECTORS, 1, NULL);
    sl_items *items = funnel_items(&f, NULL);
    sl_recommender *recommender = make(NULL, NULL), *refused;
    const sl_recommend_params params = funnel_sizes(CANDIDATES, CANDIDATES, EF);
    sl_session *session = funnel_session(recommender, params);
    uint64_t ids[CANDIDATES];
    float recall[CANDIDATES], scores[FUNNEL_ITEMS];
    sl_request request = funnel_request(&f, 5);
    ck_ok(sl_session_recommend(session, &request, &params, ids, recall, NULL, NULL));
    for (size_t i = 0; i < CANDIDATES; i++)
        for (size_t j = 0; j < i; j++)
            ck_assert_uint_ne(ids[i], ids[j]);
    ck_ok(sl_session_score(session, &request, ids, NULL, CANDIDATES, scores, NULL));
    for (size_t i = 0; i < CANDIDATES; i++)
        ck_assert(fabsf(scores[i] - recall[i]) < 1e-4f * fmaxf(1, fabsf(recall[i])));
    ck_ok(sl_session_score(session, &request, f.ids, NULL, FUNNEL_ITEMS, scores, NULL));
    for (size_t i = 0; i < FUNNEL_ITEMS; i++) {
        double best = 0;
        for (size_t row = 0; row < FUNNEL_ITEMS; row++) {
            double score;
            if (row != i && (row + 7) % FUNNEL_ITEMS != i && (i != 9 || row > 5)) continue;
            ck_ok(sl_score((sl_metric)_i, SL_F32, f.vectors + row * FUNNEL_DIM, request.vector, FUNNEL_DIM, &score));
            if (best == 0 || (_i == SL_METRIC_L2 ? score < best : score > best)) best = score;
        }
        ck_assert(fabs(scores[i] - best) < 1e-4 * fmax(1, fabs(best)));
    }
    sl_session_free(session);
    sl_recommender_free(recommender);
    recommender = make(ranker, items);
    session = funnel_session(recommender, params);
    ck_ok(sl_session_recommend(session, &request, &params, ids, NULL, NULL, NULL));
    ck_fails(sl_recommender_create(f.index, vectors, items, NULL, &refused), SL_EUNSUPPORTED, "may have several");
    ck_fails(sl_recommender_swap(recommender, vectors, items), SL_EUNSUPPORTED, "may have several");
    ck_ok(sl_session_recommend(session, &request, &params, ids, NULL, NULL, NULL));
    sl_session_free(session);
    sl_recommender_free(recommender);
    sl_items_free(items);
    sl_ranker_free(ranker);
    sl_ranker_free(vectors);
}
END_TEST

/* Ids that a client chose to meet in tables lie apart among the items and among a request's exclusions. */
START_TEST(chosen_ids_lie_apart) {
    static uint64_t chosen[COLLIDING_COUNT], ids[N];
    static const uint64_t none = SL_NO_ID;
    const sl_allocator allocator = sl_allocator_of(NULL);
    const sl_recommend_params params = funnel_sizes(N, N, EF);
    float scores[N];
    sl_catalog catalog;
    sl_recall recall;
    sl_searcher *searcher;
    size_t found;
    for (size_t i = 0; i < COLLIDING_COUNT; i++)
        chosen[i] = colliding_id(i);
    ck_ok(sl_catalog_init(&catalog, &allocator));
    ck_ok(sl_catalog_reserve(&catalog, chosen, COLLIDING_COUNT, 0));
    for (size_t i = 0; i < COLLIDING_COUNT; i++)
        ck_assert_int_eq(sl_catalog_put(&catalog, chosen[i], i), 1);
    for (size_t i = 0; i < COLLIDING_COUNT; i++)
        ck_assert_uint_eq(sl_catalog_find(&catalog, chosen[i]), i);
    const sl_id_table *table = sl_catalog_table(&catalog);
    ck_assert_int_eq(table->dense, 0);
    ck_assert_uint_lt(colliding_run(table->entries, table->size, sizeof(sl_id_entry), &none, sizeof none),
                      COLLIDING_RUN);
    sl_catalog_free(&catalog);
    sl_request request = funnel_request(&f, 0);
    request.exclude = chosen;
    request.exclude_count = COLLIDING_COUNT;
    ck_ok(sl_recall_init(&recall, f.index, &allocator));
    ck_ok(sl_searcher_create(f.index, EF, &searcher));
    ck_ok(sl_recall_run(&recall, searcher, &request, &params, ids, scores, &found));
    ck_assert_uint_eq(found, N);
    ck_assert_uint_lt(colliding_run(recall.excluded, recall.places, sizeof none, &none, sizeof none), COLLIDING_RUN);
    sl_searcher_free(searcher);
    sl_recall_free(&recall);
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("item ids");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_loop_test(tests, items_of_several_vectors, 0, 3);
    tcase_add_test(tests, chosen_ids_lie_apart);
    return check_main("item ids", &tests, 1);
}
