/*
 * Requests to a recommender on one core, idle and while items change on another: one line of JSON a window.
 *   bench_requests SHAPE BASE QUERIES LIVE ROUNDS SECONDS RATE BOTH SEARCH_CPU WRITE_CPU
 *
 * The index holds the first LIVE rows of BASE, in length one, and the table as many items. RATE times a second the
 * writer updates an item: its row of features, and where BOTH is 1 its vector too. The windows take turns.
 */
#define _GNU_SOURCE
#include "shapes.h"
#include "timing.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { CANDIDATES = 500, USERS = 1000, WANTED = 10, MOST = 1 << 20 };
enum { USER_SEED = 11, ITEM_SEED = 12 };

enum { IDLE, ITEMS, BOTH, KINDS };
static const char *const kinds[] = {"idle", "items", "both"};

typedef struct matrix {
    uint32_t rows, dim;
    float *values;
} matrix;

typedef struct bench {
    sl_index *index;
    sl_recommender *recommender;
    sl_session *session;
    matrix base, queries;
    rows *users, *items;
    size_t live, asked, changed;
    double seconds;
    int64_t period_ns; /* of the writer */
    int search_cpu, write_cpu;
    int64_t *times;
    atomic_int stop;
    int kind;
} bench;

static void fail(const char *what) {
    fprintf(stderr, "bench_requests: %s\n", what);
    exit(1);
}

static matrix read_fbin(const char *path) {
    matrix read;
    FILE *file = fopen(path, "rb");
    if (!file || fread(&read.rows, sizeof read.rows, 1, file) != 1 || fread(&read.dim, sizeof read.dim, 1, file) != 1)
        fail(path);
    size_t count = (size_t)read.rows * read.dim;
    read.values = must_alloc(count, sizeof *read.values);
    if (fread(read.values, sizeof *read.values, count, file) != count) fail(path);
    fclose(file);
    return read;
}

static const float *row(const matrix *of, size_t number) {
    return of->values + number % of->rows * of->dim;
}

static void pin_to(int cpu) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET((size_t)cpu, &one);
    if (sched_setaffinity(0, sizeof one, &one) != 0) fail("a thread could not be pinned");
}

static void build(bench *b, const shape *of) {
    sl_index_params how;
    sl_index_params_init(&how);
    how.dim = b->base.dim;
    how.refine = SL_REFINE_BF16;
    must(sl_index_create(&how, &b->index), "index");
    must(sl_index_add(b->index, b->base.values, SL_F32, b->live, 0, NULL, NULL), "index");
    b->users = rows_make(of, USERS, ROWS_USER, USER_SEED);
    b->items = rows_make(of, b->live, ROWS_ITEM | ROWS_ID, ITEM_SEED);
    sl_recommender_params params;
    sl_recommender_params_init(&params);
    params.threads = 1;
    must(sl_recommender_create(b->index, shape_ranker(of, 1), shape_items(b->items), &params, &b->recommender),
         "recommender");
    sl_recommend_params asked;
    sl_recommend_params_init(&asked);
    asked.candidates = CANDIDATES;
    asked.n = WANTED;
    must(sl_session_create(b->recommender, &asked, &b->session), "session");
    b->times = must_alloc(MOST, sizeof *b->times);
}

/* Gives item `to` the features of item `from`. */
static void update_item(bench *b, size_t to, size_t from) {
    const rows *all = b->items;
    sl_column columns[64];
    const int64_t id = (int64_t)to;
    if (all->count > sizeof columns / sizeof *columns) fail("too many columns");
    for (size_t c = 0; c < all->count; c++) {
        columns[c] = all->columns[c];
        int is_id = columns[c].name[0] == 'i';
        columns[c].values = is_id ? (const void *)&id
                            : columns[c].type == SL_COLUMN_F32
                                ? (const void *)((const float *)columns[c].values + from)
                                : (const void *)((const int64_t *)columns[c].values + from);
    }
    sl_table table = {.struct_size = sizeof table, .rows = 1, .columns = columns, .column_count = all->count};
    must(sl_recommender_update(b->recommender, &table), "update");
}

static void update_vector(bench *b, size_t to, size_t from) {
    const uint64_t id = to;
    sl_add_params how;
    sl_add_params_init(&how);
    how.threads = 1;
#ifdef SL_ADDS_REPLACE
    how.replace = 1;
#else
    must(sl_index_delete(b->index, &id, 1), "delete");
#endif
    must(sl_index_add(b->index, row(&b->base, from), SL_F32, 1, 0, &id, &how), "add");
}

static void *write_items(void *given) {
    bench *b = given;
    pin_to(b->write_cpu);
    int64_t next = now_ns();
    while (!atomic_load(&b->stop)) {
        size_t to = b->changed * 7919 % b->live, from = (b->changed * 104729 + 1) % b->live;
        update_item(b, to, from);
        if (b->kind == BOTH) update_vector(b, to, b->live + b->changed);
        b->changed++;
        next += b->period_ns;
        struct timespec at = {.tv_sec = next / 1000000000, .tv_nsec = next % 1000000000};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
    }
    return NULL;
}

static size_t requests(bench *b) {
    sl_recommend_params asked;
    sl_recommend_params_init(&asked);
    asked.candidates = CANDIDATES;
    asked.n = WANTED;
    uint64_t ids[WANTED];
    float scores[WANTED];
    size_t count = 0;
    int64_t end = now_ns() + (int64_t)(b->seconds * 1e9);
    while (count < MOST && now_ns() < end) {
        const sl_request request = {.struct_size = sizeof request,
                                    .vector = row(&b->queries, b->asked),
                                    .dtype = SL_F32,
                                    .user = &b->users->table,
                                    .user_row = b->asked % USERS};
        b->asked++;
        int64_t start = now_ns();
        must(sl_session_recommend(b->session, &request, &asked, ids, scores, NULL, NULL), "recommend");
        b->times[count++] = now_ns() - start;
    }
    return count;
}

static void window(bench *b, int kind, size_t round) {
    pthread_t writer;
    b->kind = kind;
    atomic_store(&b->stop, 0);
    size_t before = b->changed;
    int64_t start = now_ns();
    if (kind != IDLE && pthread_create(&writer, NULL, write_items, b) != 0) fail("no thread");
    size_t count = requests(b);
    atomic_store(&b->stop, 1);
    if (kind != IDLE) pthread_join(writer, NULL);
    double took = (double)(now_ns() - start) * 1e-9;
    double p50 = percentile(b->times, count, 0.5), p99 = percentile(b->times, count, 0.99);
    printf("{\"event\": \"requests\", \"kind\": \"%s\", \"round\": %zu, \"requests\": %zu, \"p50_us\": %.1f, "
           "\"p99_us\": %.1f, \"updates_per_s\": %.1f}\n",
           kinds[kind], round, count, p50 * 1e-3, p99 * 1e-3, (double)(b->changed - before) / took);
    fflush(stdout);
}

int main(int argc, char **argv) {
    const shape *of = argc == 11 ? shape_named(argv[1]) : NULL;
    if (!of) {
        fprintf(stderr,
                "usage: bench_requests SHAPE BASE QUERIES LIVE ROUNDS SECONDS RATE BOTH SEARCH_CPU WRITE_CPU\n");
        return 2;
    }
    static bench b;
    b.base = read_fbin(argv[2]);
    b.queries = read_fbin(argv[3]);
    b.live = strtoul(argv[4], NULL, 10);
    size_t rounds = strtoul(argv[5], NULL, 10), used = atoi(argv[8]) ? KINDS : BOTH;
    b.seconds = strtod(argv[6], NULL);
    b.period_ns = (int64_t)(1e9 / strtod(argv[7], NULL));
    b.search_cpu = atoi(argv[9]);
    b.write_cpu = atoi(argv[10]);
    if (b.live == 0 || b.live > b.base.rows || b.base.dim != b.queries.dim) fail("LIVE or the matrices do not fit");
    build(&b, of);
    pin_to(b.search_cpu);
    requests(&b); /* warms up */
    for (size_t round = 0; round < rounds; round++)
        for (size_t turn = 0; turn < used; turn++)
            window(&b, (int)((turn + round) % used), round);
    return 0;
}
