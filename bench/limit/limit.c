/* Prints, a JSON object a line, how long queries take and how long the distances they compute take by themselves. */
#include "files.h"
#include "hnsw/search/searcher.h"
#include "trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { K = 10, SLICES = 8, TRACE_IDS = 1 << 19, SMALL_BYTES = 16384, FAR_ROWS = 32 };

/* A replay is timed beside the queries: the ids of one of three traces, asked for one expansion ahead or long
 * ahead, without links or with them. report.py says what each stands for. */
typedef enum source { SMALL, REDRAWN, OWN, SOURCES } source;
static const struct {
    const char *name;
    source of;
    int far, links;
} replays[] = {{"cache", SMALL, 0, 0},         {"array", REDRAWN, 0, 0}, {"array_far", REDRAWN, 1, 0},
               {"array_links", REDRAWN, 0, 1}, {"own", OWN, 0, 0},       {"own_links", OWN, 0, 1}};
enum { REPLAYS = sizeof replays / sizeof *replays };

typedef struct bench {
    sl_index *index;
    sl_index_stats stats;
    matrix queries, truth;
    size_t rounds;
    clockid_t clock;
    size_t measured; /* queries: those of odd numbers; the others choose the settings */
} bench;

/* One target's search. */
typedef struct point {
    const bench *b;
    double target;
    sl_tuned tuned;
    sl_search_params params;
    sl_searcher *searcher;
    trace traces[SOURCES];
} point;

/* ns of the queries and of each replay, slice by slice. */
typedef struct times {
    double queries[SLICES], replays[REPLAYS][SLICES];
} times;

static const void *measured_query(const bench *b, size_t i) {
    return matrix_row(&b->queries, 2 * i + 1);
}

static size_t hits(const bench *b, size_t i, const uint64_t *ids) {
    const uint32_t *truth = matrix_row(&b->truth, 2 * i + 1);
    size_t found = 0;
    for (size_t j = 0; j < K; j++)
        for (size_t t = 0; t < K; t++)
            found += ids[j] == truth[t];
    return found;
}

static void ask(const point *p, size_t i, uint64_t *ids, sl_search_stats *stats) {
    must(sl_searcher_search(p->searcher, measured_query(p->b, i), p->b->stats.dtype, K, &p->params, ids, NULL, stats),
         "search");
}

/* Settings from the queries of even numbers, kept in the index. */
static void tune(bench *b, const double *targets, size_t count) {
    size_t nq = b->queries.rows / 2;
    uint64_t *truth = must_alloc(nq * K, sizeof *truth);
    for (size_t i = 0; i < nq; i++)
        for (size_t t = 0; t < K; t++)
            truth[i * K + t] = ((const uint32_t *)matrix_row(&b->truth, 2 * i))[t];
    sl_tune_params params;
    sl_tune_params_init(&params);
    params.targets = targets;
    params.target_count = count;
    must(sl_index_tune(b->index, b->queries.at, b->stats.dtype, nq, 2 * b->queries.row_bytes, truth, K, &params, NULL),
         "tuning");
    free(truth);
}

/* Counts the work of a search, and writes down the ids that the search evaluates on layer 0. */
static void count(point *p) {
    const bench *b = p->b;
    size_t found = 0, evaluations = 0, expansions = 0;
    p->traces[OWN] = trace_new(TRACE_IDS, TRACE_IDS);
    trace_record(&p->traces[OWN], b->index);
    for (size_t i = 0; i < b->measured; i++) {
        uint64_t ids[K];
        sl_search_stats stats;
        ask(p, i, ids, &stats);
        found += hits(b, i, ids);
        evaluations += stats.evaluations;
        expansions += stats.expansions;
    }
    trace_stop(b->index);
    double queries = (double)b->measured;
    printf("{\"event\": \"point\", \"target\": %g, \"limit\": \"%s\", \"ef\": %zu, \"stop\": %g, \"rerank\": %zu, "
           "\"recall\": %.5f, \"evaluations\": %.2f, \"expansions\": %.2f, \"traced\": %zu, \"traced_expansions\": "
           "%zu}\n",
           p->target, sl_tune_limit_name(p->tuned.limit), p->params.ef, p->params.stop, p->params.rerank,
           (double)found / (queries * K), (double)evaluations / queries, (double)expansions / queries,
           p->traces[OWN].count, p->traces[OWN].groups);
}

static void time_slice(const point *p, size_t slice, times *out) {
    const bench *b = p->b;
    uint64_t ids[K];
    double start = clock_ns(b->clock);
    for (size_t i = slice * b->measured / SLICES; i < (slice + 1) * b->measured / SLICES; i++)
        ask(p, i, ids, NULL);
    out->queries[slice] = clock_ns(b->clock) - start;
    for (size_t r = 0; r < REPLAYS; r++) {
        const trace *t = &p->traces[replays[r].of];
        size_t far = FAR_ROWS * t->groups / t->count + 1;
        replay how = {b->index, sl_searcher_query(p->searcher), replays[r].far ? far : 1, replays[r].links, b->clock};
        out->replays[r][slice] = trace_replay(t, &how, slice * t->groups / SLICES, (slice + 1) * t->groups / SLICES);
    }
}

static double sum(const double *slices) {
    double total = 0;
    for (size_t s = 0; s < SLICES; s++)
        total += slices[s];
    return total;
}

static void keep_least(double *least, const double *slices) {
    for (size_t s = 0; s < SLICES; s++)
        if (least[s] <= 0 || slices[s] < least[s]) least[s] = slices[s];
}

static void print_times(const point *p, const char *event, const times *t) {
    printf("{\"event\": \"%s\", \"target\": %g, \"query_us\": %.3f", event, p->target,
           sum(t->queries) / (double)p->b->measured / 1e3);
    for (size_t r = 0; r < REPLAYS; r++)
        printf(", \"%s\": %.4f", replays[r].name, sum(t->replays[r]) / (double)p->traces[OWN].count);
    printf("}\n");
}

/* Runs rounds in which each slice of the queries has the replays right behind it. Other work of the machine so falls
 * on both. The least of every slice over the rounds is kept too. */
static void measure(const point *p) {
    times least = {0};
    for (size_t round = 0; round < p->b->rounds; round++) {
        times t;
        for (size_t slice = 0; slice < SLICES; slice++)
            time_slice(p, slice, &t);
        print_times(p, "round", &t);
        keep_least(least.queries, t.queries);
        for (size_t r = 0; r < REPLAYS; r++)
            keep_least(least.replays[r], t.replays[r]);
    }
    print_times(p, "least", &least);
}

/* Gives the settings that tuning stored for the target, or for the best recall below the target. */
static sl_tuned settings_of(const bench *b, double target) {
    sl_tuned tuned = {.struct_size = sizeof tuned};
    for (size_t i = 0;; i++) {
        must(sl_index_get_tuned(b->index, i, &tuned), "the settings of a target");
        if (tuned.target != target || tuned.k != K) continue;
        if (tuned.scan_only) {
            fprintf(stderr, "limit: walks do not reach %g, only scans do; give other recalls\n", target);
            exit(1);
        }
        return tuned;
    }
}

static void run(const bench *b, double target) {
    point p = {.b = b, .target = target, .tuned = settings_of(b, target)};
    sl_search_params_init(&p.params);
    p.params.ef = p.tuned.ef;
    p.params.rerank = p.tuned.rerank;
    p.params.stop = p.tuned.stop;
    size_t room = p.params.ef > p.params.rerank ? p.params.ef : p.params.rerank;
    must(sl_searcher_create(b->index, room > K ? room : K, &p.searcher), "searcher");
    count(&p);
    size_t small = SMALL_BYTES / sl_codec_of_walks(&b->index->graph)->rows.pitch, n = b->stats.n;
    if (small < 8) small = 8;
    p.traces[SMALL] = trace_redrawn(&p.traces[OWN], small < n ? small : n, n);
    p.traces[REDRAWN] = trace_redrawn(&p.traces[OWN], n, n);
    measure(&p);
    for (size_t s = 0; s < SOURCES; s++)
        trace_free(&p.traces[s]);
    sl_searcher_free(p.searcher);
}

static void open_all(bench *b, char **paths) {
    sl_open_params params;
    sl_open_params_init(&params);
    params.place = SL_PLACE_DRAM;
    must(sl_index_open(paths[0], &params, &b->index), paths[0]);
    b->stats.struct_size = sizeof b->stats;
    must(sl_index_get_stats(b->index, &b->stats), paths[0]);
    b->queries = matrix_read(paths[1], sl_dtype_size(b->stats.dtype));
    b->truth = matrix_read(paths[2], sizeof(uint32_t));
    b->measured = b->queries.rows / 2;
    if (b->queries.columns != b->stats.dim || b->truth.rows != b->queries.rows || b->truth.columns < K ||
        b->measured < SL_TUNE_LEAST_QUERIES) {
        fprintf(stderr, "limit: %s and %s do not fit the index, or hold fewer than %u queries or %d neighbours\n",
                paths[1], paths[2], 2 * SL_TUNE_LEAST_QUERIES, K);
        exit(1);
    }
    size_t pitch = sl_codec_of_walks(&b->index->graph)->rows.pitch;
    printf("{\"event\": \"about\", \"codes\": \"%s\", \"m\": %zu, \"n\": %zu, \"dim\": %zu, \"row_bytes\": %zu, "
           "\"rows_bytes\": %zu, \"links_bytes\": %zu, \"total_bytes\": %zu, \"queries\": %zu, \"isa\": \"%s\"}\n",
           sl_codes_name(b->index->graph.codes), b->stats.m, b->stats.n, b->stats.dim, pitch, pitch * b->stats.n,
           (size_t)b->stats.bytes_links, (size_t)b->stats.bytes_total, b->measured, b->stats.isa);
}

int main(int argc, char **argv) {
    if (argc < 7 || (strcmp(argv[5], "wall") != 0 && strcmp(argv[5], "cpu") != 0)) {
        fprintf(stderr, "usage: bench_limit INDEX QUERIES TRUTH ROUNDS wall|cpu RECALL...\n");
        return 2;
    }
    bench b = {.rounds = strtoul(argv[4], NULL, 10),
               .clock = strcmp(argv[5], "cpu") == 0 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC};
    open_all(&b, argv + 1);
    size_t targets = (size_t)argc - 6;
    double *recalls = must_alloc(targets, sizeof *recalls);
    for (size_t i = 0; i < targets; i++)
        recalls[i] = strtod(argv[6 + i], NULL);
    tune(&b, recalls, targets);
    for (size_t i = 0; i < targets; i++)
        run(&b, recalls[i]);
    free(recalls);
    free(b.queries.at);
    free(b.truth.at);
    sl_index_free(b.index);
    return 0;
}
