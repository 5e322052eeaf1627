/*
 * Items' parts of the first layer by type, under layers of floats and of INT8: one line of JSON for each round of each.
 * bench/rank.sh runs it. bench_item_parts SHAPE ITEMS ROUNDS
 *
 * One user and 500 candidates that are spread over ITEMS items. The kinds take turns call by call.
 */
#include "shapes.h"
#include "timing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CANDIDATES = 500, USERS = 200, CALLS = 100, BEST = 10 };
enum { USER_SEED = 11, ITEM_SEED = 12 };

/* A type of the items' parts, under layers of floats or of INT8; the first is what the others are compared with. */
static const struct {
    const char *name, *layers;
    sl_item_part part;
    int coded;
} kinds[] = {{"layer", "f32", SL_ITEM_LAYER, 0},
             {"layer-bf16", "f32", SL_ITEM_LAYER_BF16, 0},
             {"layer-i8", "f32", SL_ITEM_LAYER_I8, 0},
             {"layer", "int8", SL_ITEM_LAYER, 1},
             {"layer-bf16", "int8", SL_ITEM_LAYER_BF16, 1},
             {"layer-i8", "int8", SL_ITEM_LAYER_I8, 1}};
enum { KINDS = sizeof kinds / sizeof *kinds };

typedef struct side {
    sl_recommender *recommender;
    sl_session *session;
    int64_t times[CALLS];
    float scores[CANDIDATES];
    double difference; /* largest, from the scores of the first kind */
    size_t shared;     /* of the first kind's best items, those that are also this kind's, over all calls */
} side;

/* An allocator that counts what is in use. */
static void *counted_alloc(void *ctx, size_t size, size_t alignment) {
    void *block = aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
    if (block) *(size_t *)ctx += size;
    return block;
}

static void counted_free(void *ctx, void *block, size_t size) {
    *(size_t *)ctx -= size;
    free(block);
}

/* Recommenders are made of a model, a table and an index. */
typedef struct parts {
    sl_index *index;
    sl_ranker *rankers[2]; /* with layers of floats, with INT8 layers */
    sl_items *items;
} parts;

static sl_recommender *make(const parts *p, size_t kind, const sl_allocator *allocator) {
    sl_recommender_params params;
    sl_recommender *recommender;
    sl_recommender_params_init(&params);
    params.item_part = kinds[kind].part;
    params.threads = 1;
    params.allocator = allocator;
    must(sl_recommender_create(p->index, p->rankers[kinds[kind].coded], p->items, &params, &recommender),
         "recommender");
    return recommender;
}

static void report_bytes(const parts *p, size_t kind) {
    size_t bytes = 0;
    const sl_allocator counted = {.ctx = &bytes, .alloc = counted_alloc, .free = counted_free};
    sl_recommender *recommender = make(p, kind, &counted);
    printf("{\"event\": \"item_bytes\", \"items\": \"%s\", \"rows_bytes\": %zu, \"recommender_bytes\": %zu}\n",
           kinds[kind].name, sl_recommender_item_bytes(recommender), bytes);
    sl_recommender_free(recommender);
}

static void side_open(side *s, const parts *p, size_t kind) {
    sl_recommend_params asked;
    s->recommender = make(p, kind, NULL);
    sl_recommend_params_init(&asked);
    asked.candidates = CANDIDATES;
    must(sl_session_create(s->recommender, &asked, &s->session), "session");
}

static void choose(uint64_t *ids, size_t call, size_t items) {
    for (size_t i = 0; i < CANDIDATES; i++)
        ids[i] = (uint64_t)((call * 7919 + i * 199 + i * i * 31) * 2654435761u % items);
}

/* Tells which candidates are among the best. */
static void mark_best(const float *scores, char *best) {
    memset(best, 0, CANDIDATES);
    for (size_t n = 0; n < BEST; n++) {
        size_t at = CANDIDATES;
        for (size_t i = 0; i < CANDIDATES; i++)
            if (!best[i] && (at == CANDIDATES || scores[i] > scores[at])) at = i;
        best[at] = 1;
    }
}

static void compare(side *s, const float *exact) {
    char wanted[CANDIDATES], got[CANDIDATES];
    mark_best(exact, wanted);
    mark_best(s->scores, got);
    for (size_t i = 0; i < CANDIDATES; i++) {
        s->shared += (size_t)(wanted[i] && got[i]);
        double here = fabs((double)exact[i] - (double)s->scores[i]);
        if (!(here <= s->difference)) s->difference = here;
    }
}

static void run_round(side *sides, const rows *users, size_t items, size_t round) {
    static uint64_t ids[CANDIDATES];
    const float vector[4] = {1, 0, 0, 0};
    for (size_t call = 0; call < CALLS; call++) {
        sl_request request = {.struct_size = sizeof request,
                              .vector = vector,
                              .dtype = SL_F32,
                              .user = &users->table,
                              .user_row = (round * 31 + call * 17) % USERS};
        choose(ids, round * CALLS + call, items);
        for (size_t turn = 0; turn < KINDS; turn++) {
            side *s = &sides[(turn + call) % KINDS];
            int64_t start = now_ns();
            must(sl_session_score(s->session, &request, ids, NULL, CANDIDATES, s->scores, NULL), "score");
            s->times[call] = now_ns() - start;
        }
        for (size_t k = 0; k < KINDS; k++)
            compare(&sides[k], sides[0].scores);
    }
}

static void measure(const shape *of, size_t items, size_t rounds) {
    static side sides[KINDS];
    rows *users = rows_make(of, USERS, ROWS_USER, USER_SEED),
         *all = rows_make(of, items, ROWS_ITEM | ROWS_ID, ITEM_SEED);
    sl_ranker *floats = shape_ranker(of, 1);
    const parts p = {shape_index(), {floats, shape_quantized(of, floats, 2)}, shape_items(all)};
    for (size_t k = 0; k < KINDS; k++)
        if (!kinds[k].coded) report_bytes(&p, k);
    for (size_t k = 0; k < KINDS; k++)
        side_open(&sides[k], &p, k);
    for (size_t round = 0; round <= rounds; round++) {
        for (size_t k = 0; k < KINDS; k++)
            sides[k].difference = 0, sides[k].shared = 0;
        run_round(sides, users, items, round);
        for (size_t k = 0; k < KINDS && round; k++) /* round 0 warms up */
            printf(
                "{\"event\": \"item_part\", \"shape\": \"%s\", \"items\": \"%s\", \"layers\": \"%s\", \"rows\": %zu, "
                "\"round\": %zu, "
                "\"us\": %.3f, \"least_us\": %.3f, \"difference\": %.3g, \"best_shared\": %.4f}\n",
                of->name, kinds[k].name, kinds[k].layers, items, round - 1,
                percentile(sides[k].times, CALLS, 0.5) * 1e-3, percentile(sides[k].times, CALLS, 0) * 1e-3,
                sides[k].difference, (double)sides[k].shared / (CALLS * BEST));
    }
    for (size_t k = 0; k < KINDS; k++) {
        sl_session_free(sides[k].session);
        sl_recommender_free(sides[k].recommender);
    }
    sl_items_free(p.items);
    for (size_t i = 0; i < 2; i++)
        sl_ranker_free(p.rankers[i]);
    sl_index_free(p.index);
    rows_free(all);
    rows_free(users);
}

int main(int argc, char **argv) {
    const shape *of = argc == 4 ? shape_named(argv[1]) : NULL;
    size_t items = of ? strtoul(argv[2], NULL, 10) : 0;
    if (!items) {
        fprintf(stderr, "usage: bench_item_parts SHAPE ITEMS ROUNDS; SHAPE: criteo, small, first\n");
        return 2;
    }
    pin();
    measure(of, items, strtoul(argv[3], NULL, 10));
    return 0;
}
