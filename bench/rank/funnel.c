/*
 * Recall and ranking on one core, times of single requests: one line of JSON for each round of each kind. bench/rank.sh
 * runs it.
 *   bench_funnel SHAPE INDEX QUERIES ROUNDS
 *
 * The kinds take turns request by request: recall alone, ranking by layers of floats, ranking by INT8 layers and items'
 * parts in bytes.
 */
#include "shapes.h"
#include "timing.h"

#include <stdio.h>
#include <stdlib.h>

enum { CANDIDATES = 500, USERS = 1000, WANTED = 10 };
enum { USER_SEED = 11, ITEM_SEED = 12 };

static const char *const kinds[] = {"none", "f32", "int8"};
enum { NONE, FLOATS, CODED, KINDS };

typedef struct side {
    sl_recommender *recommender;
    sl_session *session;
    int64_t *times;
    uint64_t ids[WANTED];
    size_t shared; /* of the best items by floats, those that are among this kind's */
} side;

typedef struct queries {
    uint32_t n, dim;
    float *values;
} queries;

static queries read_fbin(const char *path) {
    queries read;
    FILE *file = fopen(path, "rb");
    if (!file || fread(&read.n, sizeof read.n, 1, file) != 1 || fread(&read.dim, sizeof read.dim, 1, file) != 1)
        must(SL_EIO, path);
    size_t count = (size_t)read.n * read.dim;
    read.values = must_alloc(count, sizeof *read.values);
    if (fread(read.values, sizeof *read.values, count, file) != count) must(SL_EIO, path);
    fclose(file);
    return read;
}

static void side_open(side *s, sl_index *index, sl_ranker *ranker, sl_items *items, size_t kind) {
    sl_recommender_params params;
    sl_recommend_params asked;
    sl_recommender_params_init(&params);
    params.threads = 1;
    if (kind == CODED) params.item_part = SL_ITEM_LAYER_I8;
    must(sl_recommender_create(index, ranker, ranker ? items : NULL, &params, &s->recommender), "recommender");
    sl_recommend_params_init(&asked);
    asked.candidates = CANDIDATES;
    must(sl_session_create(s->recommender, &asked, &s->session), "session");
}

static void ask(side *s, const sl_request *request, size_t call) {
    float scores[WANTED];
    sl_recommend_params asked;
    sl_recommend_params_init(&asked);
    asked.candidates = CANDIDATES;
    asked.n = WANTED;
    int64_t start = now_ns();
    must(sl_session_recommend(s->session, request, &asked, s->ids, scores, NULL, NULL), "recommend");
    s->times[call] = now_ns() - start;
}

static void count_shared(side *s, const side *exact) {
    for (size_t i = 0; i < WANTED; i++)
        for (size_t j = 0; j < WANTED; j++)
            s->shared += s->ids[i] == exact->ids[j];
}

static void run_round(side *sides, const rows *users, const queries *asked) {
    for (uint32_t q = 0; q < asked->n; q++) {
        const sl_request request = {.struct_size = sizeof request,
                                    .vector = asked->values + (size_t)q * asked->dim,
                                    .dtype = SL_F32,
                                    .user = &users->table,
                                    .user_row = q % USERS};
        for (size_t turn = 0; turn < KINDS; turn++)
            ask(&sides[(turn + q) % KINDS], &request, q);
        for (size_t k = 0; k < KINDS; k++)
            count_shared(&sides[k], &sides[FLOATS]);
    }
}

static void report(side *s, const char *shape, size_t kind, size_t round, size_t requests) {
    double p50 = percentile(s->times, requests, 0.5), p99 = percentile(s->times, requests, 0.99);
    printf("{\"event\": \"funnel\", \"shape\": \"%s\", \"layers\": \"%s\", \"round\": %zu, \"requests\": %zu, "
           "\"p50_us\": %.1f, \"p99_us\": %.1f, \"max_us\": %.1f, \"best_shared\": %.4f}\n",
           shape, kinds[kind], round, requests, p50 * 1e-3, p99 * 1e-3, (double)s->times[requests - 1] * 1e-3,
           (double)s->shared / (double)(requests * WANTED));
    fflush(stdout);
}

static void measure(const shape *of, const char *index_path, const char *queries_path, size_t rounds) {
    static side sides[KINDS];
    sl_index *index;
    must(sl_index_open(index_path, NULL, &index), index_path);
    queries asked = read_fbin(queries_path);
    rows *users = rows_make(of, USERS, ROWS_USER, USER_SEED);
    rows *all = rows_make(of, sl_index_size(index), ROWS_ITEM | ROWS_ID, ITEM_SEED);
    sl_items *items = shape_items(all);
    rows_free(all);
    sl_ranker *rankers[KINDS] = {NULL, shape_ranker(of, 1), NULL};
    rankers[CODED] = shape_quantized(of, rankers[FLOATS], 2);
    for (size_t k = 0; k < KINDS; k++) {
        side_open(&sides[k], index, rankers[k], items, k);
        sides[k].times = must_alloc(asked.n, sizeof *sides[k].times);
    }
    for (size_t round = 0; round <= rounds; round++) {
        for (size_t k = 0; k < KINDS; k++)
            sides[k].shared = 0;
        run_round(sides, users, &asked);
        for (size_t k = 0; k < KINDS && round; k++) /* round 0 warms up */
            report(&sides[k], of->name, k, round - 1, asked.n);
    }
    for (size_t k = 0; k < KINDS; k++) {
        sl_session_free(sides[k].session);
        sl_recommender_free(sides[k].recommender);
        sl_ranker_free(rankers[k]);
        free(sides[k].times);
    }
    sl_items_free(items);
    rows_free(users);
    free(asked.values);
    sl_index_free(index);
}

int main(int argc, char **argv) {
    const shape *of = argc == 5 ? shape_named(argv[1]) : NULL;
    if (!of) {
        fprintf(stderr, "usage: bench_funnel SHAPE INDEX QUERIES ROUNDS; SHAPE: criteo, small\n");
        return 2;
    }
    pin();
    measure(of, argv[2], argv[3], strtoul(argv[4], NULL, 10));
    return 0;
}
