/*
 * Serving, side by side with ONNX Runtime: one line of JSON for each thing measured. bench/rank.sh runs it.
 *   bench_rank model SHAPE FOLDER                    a ranker with random weights: model.slr, and its weights for
 *                                                    bench/rank/graph.py to make an ONNX model of
 *   bench_rank request SHAPE FOLDER LIBRARY ROUNDS   one user and 500 candidates, by turns: ours, the peer
 *                                                    from joined rows, the peer from the user's inputs once
 *   bench_rank single SHAPE FOLDER LIBRARY ROUNDS    one row, by turns
 */
#include "peer.h"
#include "shapes.h"
#include "timing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CANDIDATES 500
#define ITEMS      100000
#define USERS      1000
#define USER_SEED  11
#define ITEM_SEED  12

static char *joined(const char *folder, const char *name) {
    size_t size = strlen(folder) + strlen(name) + 2;
    char *path = must_alloc(size, 1);
    snprintf(path, size, "%s/%s", folder, name);
    return path;
}

static sl_ranker *open_ranker(const char *folder) {
    char *path = joined(folder, "model.slr");
    sl_ranker *ranker;
    must(sl_ranker_open(path, NULL, &ranker), path);
    free(path);
    return ranker;
}

/* ---------------------------------------------------------------------------------------------------------------
 * model
 * ------------------------------------------------------------------------------------------------------------- */

static void write_weights(const sl_ranker *ranker, const char *folder) {
    char *list = joined(folder, "tensors.txt"), *bytes = joined(folder, "tensors.bin");
    FILE *names = fopen(list, "w"), *values = fopen(bytes, "wb");
    if (!names || !values) must(SL_EIO, folder);
    for (size_t i = 0; i < sl_ranker_tensor_count(ranker); i++) {
        sl_tensor tensor;
        must(sl_ranker_get_tensor(ranker, i, &tensor), "tensor");
        fprintf(names, "%s %zu %zu\n", tensor.name, tensor.rows, tensor.columns);
        fwrite(tensor.data, sizeof(float), tensor.rows * tensor.columns, values);
    }
    if (fclose(names) != 0 || fclose(values) != 0) must(SL_EIO, folder);
    free(list);
    free(bytes);
}

static void make_model(const shape *of, const char *folder) {
    sl_ranker *ranker = shape_ranker(of, 1);
    char *path = joined(folder, "model.slr");
    must(sl_ranker_save(ranker, path, NULL), path);
    write_weights(ranker, folder);
    free(path);
    sl_ranker_free(ranker);
}

/* ---------------------------------------------------------------------------------------------------------------
 * request
 * ------------------------------------------------------------------------------------------------------------- */

typedef struct bench {
    const shape *of;
    sl_ranker *ranker;
    rows *users, *items;
    peer *other, *once; /* from joined rows; from the user's inputs once beside the items' */
    uint64_t ids[CANDIDATES];
    float scores[CANDIDATES];
} bench;

static peer *open_peer(const char *folder, const char *name, const char *library) {
    char *model = joined(folder, name);
    peer *opened = peer_open(library, model);
    free(model);
    return opened;
}

static bench *bench_open(const shape *of, const char *folder, const char *library) {
    bench *b = must_alloc(1, sizeof *b);
    b->of = of;
    b->ranker = open_ranker(folder);
    b->users = rows_make(of, USERS, ROWS_USER, USER_SEED);
    b->items = rows_make(of, ITEMS, ROWS_ITEM | ROWS_ID, ITEM_SEED);
    b->other = open_peer(folder, "model.onnx", library);
    b->once = open_peer(folder, "model-once.onnx", library);
    return b;
}

static void bench_close(bench *b) {
    peer_free(b->other);
    peer_free(b->once);
    rows_free(b->users);
    rows_free(b->items);
    sl_ranker_free(b->ranker);
    free(b);
}

static void choose(bench *b, size_t round) {
    for (size_t i = 0; i < CANDIDATES; i++)
        b->ids[i] = (uint64_t)((round * 7919 + i * 199 + i * i * 31) % ITEMS);
}

/* Rows of one category's embedding table. */
static size_t table_size(const bench *b) {
    sl_feature_info info = {.struct_size = sizeof info};
    must(sl_ranker_get_feature(b->ranker, b->of->numbers, &info), "feature");
    return info.size;
}

/* Gives the peers the rows of the joined table, encoded by ours. */
static void bind_joined(bench *b, sl_predictor *predictor, size_t user, size_t count) {
    rows *both = rows_join(b->users, user, b->items, b->ids, count);
    sl_encoded encoded = {.struct_size = sizeof encoded};
    must(sl_predictor_encode(predictor, &both->table, &encoded), "encode");
    const peer_inputs inputs = {&encoded, b->of->numbers, b->of->categories, table_size(b)};
    peer_bind(b->other, &inputs);
    peer_bind_once(b->once, &inputs);
    rows_free(both);
}

static double largest_difference(const float *a, const float *b, size_t count) {
    double largest = 0;
    for (size_t i = 0; i < count; i++)
        if (!(fabs((double)a[i] - (double)b[i]) <= largest)) largest = fabs((double)a[i] - (double)b[i]);
    return largest;
}

/* One comparison with the peer: the round, times in ns, and the largest difference of a score. */
typedef struct outcome {
    size_t round;
    double ours, theirs, difference;
} outcome;

/* `form` of the peer's inputs: "joined" or "once". */
static void report(const char *event, const bench *b, const char *part, const char *form, outcome found) {
    printf("{\"event\": \"%s\", \"shape\": \"%s\", \"items\": \"%s\", \"form\": \"%s\", \"round\": %zu, \"ours_us\": "
           "%.3f, "
           "\"theirs_us\": %.3f, \"difference\": %.3g, \"peer\": \"onnxruntime %s\"}\n",
           event, b->of->name, part, form, found.round, found.ours * 1e-3, found.theirs * 1e-3, found.difference,
           peer_version(b->other));
}

typedef struct turns {
    size_t calls;
    int64_t *ours, *theirs, *once;
} turns;

static turns turns_make(size_t calls) {
    return (turns){calls, must_alloc(calls, sizeof(int64_t)), must_alloc(calls, sizeof(int64_t)),
                   must_alloc(calls, sizeof(int64_t))};
}

static void turns_free(turns *t) {
    free(t->ours);
    free(t->theirs);
    free(t->once);
}

/* One run of a peer; raises *difference to how far its scores are from ours. */
static int64_t peer_turn(peer *other, const float *ours, size_t count, double *difference) {
    const float *theirs;
    int64_t start = now_ns();
    peer_run(other, &theirs);
    int64_t took = now_ns() - start;
    double here = largest_difference(ours, theirs, count);
    if (!(here <= *difference)) *difference = here;
    return took;
}

/* Each call another user and other candidates; the three take turns call by call. Gives the largest difference of the
 * peer's scores from ours, for joined rows and for the user's inputs given once. */
static void request_round(bench *b, sl_session *session, sl_predictor *predictor, size_t round, turns *t,
                          double difference[2]) {
    difference[0] = difference[1] = 0;
    for (size_t call = 0; call < t->calls; call++) {
        size_t user = (round * 31 + call * 17) % USERS;
        const float vector[4] = {1, 0, 0, 0};
        sl_request request = {.struct_size = sizeof request,
                              .vector = vector,
                              .dtype = SL_F32,
                              .user = &b->users->table,
                              .user_row = user};
        choose(b, round * t->calls + call);
        bind_joined(b, predictor, user, CANDIDATES);
        int64_t start = now_ns();
        must(sl_session_score(session, &request, b->ids, NULL, CANDIDATES, b->scores, NULL), "score");
        t->ours[call] = now_ns() - start;
        t->theirs[call] = peer_turn(b->other, b->scores, CANDIDATES, &difference[0]);
        t->once[call] = peer_turn(b->once, b->scores, CANDIDATES, &difference[1]);
    }
}

static void requests_report(const bench *b, turns *t, const char *part, size_t round, const double difference[2]) {
    double ours = percentile(t->ours, t->calls, 0.5);
    report("request", b, part, "joined", (outcome){round, ours, percentile(t->theirs, t->calls, 0.5), difference[0]});
    report("request", b, part, "once", (outcome){round, ours, percentile(t->once, t->calls, 0.5), difference[1]});
}

static void measure_requests(bench *b, sl_item_part part, size_t rounds) {
    sl_index *index = shape_index();
    sl_items *items = shape_items(b->items);
    sl_recommender_params params;
    sl_recommender_params_init(&params);
    params.item_part = part;
    sl_recommender *recommender;
    must(sl_recommender_create(index, b->ranker, items, &params, &recommender), "recommender");
    sl_recommend_params asked;
    sl_recommend_params_init(&asked);
    asked.candidates = CANDIDATES;
    sl_session *session;
    must(sl_session_create(recommender, &asked, &session), "session");
    sl_predictor *predictor;
    must(sl_predictor_create(b->ranker, NULL, &predictor), "predictor");
    turns t = turns_make(100);
    double difference[2];
    request_round(b, session, predictor, rounds, &t, difference);
    for (size_t round = 0; round < rounds; round++) {
        request_round(b, session, predictor, round, &t, difference);
        requests_report(b, &t, part == SL_ITEM_LAYER ? "layer" : "codes", round, difference);
    }
    turns_free(&t);
    sl_predictor_free(predictor);
    sl_session_free(session);
    sl_recommender_free(recommender);
    sl_items_free(items);
    sl_index_free(index);
}

/* ---------------------------------------------------------------------------------------------------------------
 * single
 * ------------------------------------------------------------------------------------------------------------- */

/* Ours begins with the row's columns, theirs with its encoded form. */
static void measure_single(bench *b, size_t rounds) {
    sl_predictor *predictor;
    must(sl_predictor_create(b->ranker, NULL, &predictor), "predictor");
    turns t = turns_make(2000);
    for (size_t round = 0; round <= rounds; round++) {
        choose(b, round);
        bind_joined(b, predictor, round % USERS, 1);
        rows *row = rows_join(b->users, round % USERS, b->items, b->ids, 1);
        double difference = 0;
        for (size_t call = 0; call < t.calls; call++) {
            int64_t start = now_ns();
            must(sl_predictor_predict(predictor, &row->table, b->scores), "predict");
            t.ours[call] = now_ns() - start;
            t.theirs[call] = peer_turn(b->other, b->scores, 1, &difference);
        }
        if (round) /* round 0 warms up */
            report(
                "single", b, "", "joined",
                (outcome){round - 1, percentile(t.ours, t.calls, 0.5), percentile(t.theirs, t.calls, 0.5), difference});
        rows_free(row);
    }
    turns_free(&t);
    sl_predictor_free(predictor);
}

static int usage(void) {
    fprintf(stderr, "usage: bench_rank model SHAPE FOLDER | request|single SHAPE FOLDER LIBRARY ROUNDS; "
                    "SHAPE: criteo, small\n");
    return 2;
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    const shape *of = argc > 2 ? shape_named(argv[2]) : NULL;
    if (!of) return usage();
    if (strcmp(what, "model") == 0 && argc == 4) {
        make_model(of, argv[3]);
        return 0;
    }
    if (argc != 6 || (strcmp(what, "request") != 0 && strcmp(what, "single") != 0)) return usage();
    bench *b = bench_open(of, argv[3], argv[4]);
    pin();
    size_t rounds = strtoul(argv[5], NULL, 10);
    if (strcmp(what, "single") == 0)
        measure_single(b, rounds);
    else {
        measure_requests(b, SL_ITEM_LAYER, rounds);
        measure_requests(b, SL_ITEM_CODES, rounds);
    }
    bench_close(b);
    return 0;
}
