/* Calls of many threads on single ids of one handle, recorded with their begins and ends, happened one after another in
 * some order (tests/support/history.h). Histories made by hand show that the check tells. */
#include "base/random.h"
#include "tests/support/check_main.h"
#include "tests/support/history.h"
#include "tests/support/indexes.h"
#include "tests/support/sanitized.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------------------------------------------------------
 * By hand
 * ------------------------------------------------------------------------------------------------------------- */

#define COUNT_OF(list) (sizeof(list) / sizeof *(list))
#define CK_LINEARIZABLE(...)                                                                                           \
    do {                                                                                                               \
        history_op ops_[] = {__VA_ARGS__};                                                                             \
        ck_assert_ptr_null(history_fault(ops_, COUNT_OF(ops_)));                                                       \
    } while (0)
/* The operation that begins at this count is the fault. */
#define CK_FAULT(at, ...)                                                                                              \
    do {                                                                                                               \
        history_op ops_[] = {__VA_ARGS__};                                                                             \
        const history_op *fault_ = history_fault(ops_, COUNT_OF(ops_));                                                \
        ck_assert_ptr_nonnull(fault_);                                                                                 \
        ck_assert_uint_eq(fault_->begun, at);                                                                          \
    } while (0)

static history_op op_of(history_kind kind, uint64_t begun, uint64_t ended, uint32_t version) {
    return (history_op){.begun = begun, .ended = ended, .id = 7, .version = version, .kind = kind};
}
static history_op add(uint64_t begun, uint64_t ended, uint32_t version) {
    return op_of(HISTORY_ADD, begun, ended, version);
}
static history_op replace(uint64_t begun, uint64_t ended, uint32_t version) {
    return op_of(HISTORY_REPLACE, begun, ended, version);
}
static history_op del(uint64_t begun, uint64_t ended) {
    return op_of(HISTORY_DELETE, begun, ended, 0);
}
static history_op undelete(uint64_t begun, uint64_t ended) {
    return op_of(HISTORY_UNDELETE, begun, ended, 0);
}
static history_op finds(uint64_t begun, uint64_t ended, uint32_t version) {
    return op_of(HISTORY_READ, begun, ended, version);
}
static history_op contains(uint64_t begun, uint64_t ended, uint32_t found) {
    return op_of(HISTORY_CONTAINS, begun, ended, found);
}
static history_op refused(history_op op) {
    op.refused = 1;
    return op;
}
static history_op of_id(uint32_t id, history_op op) {
    op.id = id;
    return op;
}

START_TEST(one_after_another) {
    CK_LINEARIZABLE(finds(1, 2, 0), add(3, 4, 5), finds(5, 6, 5), replace(7, 8, 6), finds(9, 10, 6), del(11, 12),
                    finds(13, 14, 0), undelete(15, 16), finds(17, 18, 6), contains(19, 20, 1));
    CK_LINEARIZABLE(refused(del(1, 2)), add(3, 4, 5), refused(add(5, 6, 6)), finds(7, 8, 5));
    CK_FAULT(5, add(1, 2, 5), replace(3, 4, 6), finds(5, 6, 5));
    CK_FAULT(3, add(1, 2, 5), finds(3, 4, 0));
    CK_FAULT(5, add(1, 2, 5), del(3, 4), contains(5, 6, 1));
    CK_FAULT(3, add(1, 2, 5), add(3, 4, 6));
    CK_FAULT(1, refused(add(1, 2, 5)));
    CK_FAULT(1, del(1, 2));
    CK_FAULT(3, add(1, 2, 5), undelete(3, 4));
    CK_FAULT(9, add(1, 2, 5), replace(3, 4, 6), del(5, 6), undelete(7, 8), finds(9, 10, 5));
    CK_FAULT(5, add(1, 2, 5), del(3, 4), refused(op_of(HISTORY_UNDELETE, 5, 6, 1)));
    CK_FAULT(3, add(1, 2, 5), refused(undelete(3, 4)));
}
END_TEST

START_TEST(at_the_same_time) {
    /* Either state may be found, but none after its successor. */
    CK_LINEARIZABLE(add(1, 2, 5), replace(3, 10, 6), finds(4, 5, 5), finds(6, 7, 6), finds(11, 12, 6));
    CK_FAULT(6, add(1, 2, 5), replace(3, 10, 6), finds(4, 5, 6), finds(6, 7, 5));
    CK_FAULT(4, add(1, 2, 5), replace(3, 10, 6), finds(4, 5, 0));
    /* Begins and ends of one count overlap. */
    CK_LINEARIZABLE(add(1, 3, 5), finds(3, 4, 0));
    /* Two adds: one is refused. */
    CK_LINEARIZABLE(add(1, 6, 5), refused(add(2, 5, 6)), finds(7, 8, 5));
    CK_FAULT(1, add(1, 6, 5), add(2, 5, 6));
    CK_FAULT(7, add(1, 6, 5), refused(add(2, 5, 6)), finds(7, 8, 6));
    /* Two readers agree on the order of two replacements. */
    CK_LINEARIZABLE(replace(1, 20, 5), replace(2, 19, 6), finds(3, 4, 5), finds(5, 6, 6), finds(21, 22, 6));
    CK_FAULT(7, replace(1, 20, 5), replace(2, 19, 6), finds(3, 4, 5), finds(5, 6, 6), finds(7, 8, 5));
    CK_FAULT(21, replace(1, 20, 5), replace(2, 19, 6), finds(3, 4, 5), finds(5, 6, 6), finds(21, 22, 5));
    /* One long operation beside many: it happened between two of them. */
    CK_LINEARIZABLE(add(2, 3, 5), finds(1, 20, 7), replace(4, 5, 6), replace(6, 7, 7), replace(8, 9, 8));
    CK_FAULT(1, add(2, 3, 5), finds(1, 20, 9), replace(4, 5, 6), replace(6, 7, 7), replace(8, 9, 8));
}
END_TEST

START_TEST(each_id_by_itself) {
    CK_LINEARIZABLE(of_id(1, add(1, 2, 5)), of_id(2, finds(3, 4, 0)), of_id(1, finds(5, 6, 5)));
    CK_FAULT(3, of_id(1, add(1, 2, 5)), of_id(2, finds(3, 4, 5)), of_id(1, finds(5, 6, 5)));
}
END_TEST

/* Walks that missed what was there are counted, also where a later operation shows the miss. */
START_TEST(missed_by_walks) {
    history_op ops[] = {
        add(1, 2, 5), op_of(HISTORY_WALK, 3, 4, 5),   op_of(HISTORY_WALK, 5, 6, 0), finds(7, 8, 5),
        del(9, 20),   op_of(HISTORY_WALK, 10, 11, 0), contains(12, 13, 1),          op_of(HISTORY_WALK, 21, 22, 0)};
    size_t n = COUNT_OF(ops);
    ck_assert_uint_eq(history_missed(ops, &n, 5), 2);
    ck_assert_uint_eq(n, COUNT_OF(ops) - 2);
    ck_assert_ptr_null(history_fault(ops, n));
}
END_TEST

/* Operations of several threads in an order of their own: from begin to end they overlap with others. `lie` gives the
 * version that one of the reads finds. */
static const history_op *random_history(uint64_t seed, size_t count, uint32_t *lie) {
    static history_op ops[2000];
    uint32_t now = 0;
    for (size_t i = 0; i < count; i++) {
        const uint64_t what = sl_random_at(seed, 4 * i) % 4, at = 100 * (i + 1);
        const history_kind kind = what == 0   ? (now ? HISTORY_DELETE : HISTORY_ADD)
                                  : what == 1 ? HISTORY_REPLACE
                                              : HISTORY_READ;
        if (kind == HISTORY_ADD || kind == HISTORY_REPLACE) now = (uint32_t)i + 1;
        if (kind == HISTORY_DELETE) now = 0;
        const uint32_t found = lie && i == count / 2 ? *lie : now;
        ops[i] = op_of(lie && i == count / 2 ? HISTORY_READ : kind, at - sl_random_at(seed, 4 * i + 1) % 500,
                       at + sl_random_at(seed, 4 * i + 2) % 500, found);
        if (at < 500) ops[i].begun = at;
    }
    return history_fault(ops, count);
}

START_TEST(long_histories) {
    uint32_t never = 1000000;
    for (uint64_t seed = 0; seed < 20; seed++) {
        ck_assert_ptr_null(random_history(seed, 2000, NULL));
        ck_assert_ptr_nonnull(random_history(seed, 2000, &never));
    }
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Of an index
 * ------------------------------------------------------------------------------------------------------------- */

/* Vectors of an id lie above its centre, each version one STEP higher. Centres lie far from each other, so the nearest
 * to a centre is the id's vector, and the distance tells the version. Behind IDS are ids that stay. */
enum { BITS = 5, IDS = 1 << BITS, STILL = 200, DIM = BITS + 1, K = 3 };
#define APART 4.0F
#define STEP  (1.0 / 4096)

enum { WRITERS = 2, THREADS = WRITERS + 3, FEW = 4 };
#define MOST         ((size_t)100000)
#define MISSED_SHARE 1000 /* of so many walks one may miss what is there, since links change beside it */

static sl_index *idx;
static uint64_t count;         /* atomic: of begins and ends */
static uint32_t versions[IDS]; /* atomic: the latest of each id */
static int over;               /* atomic */
static history_op *histories[THREADS];
static size_t lengths[THREADS];

static void vector_of(size_t id, double height, float *out) {
    for (size_t d = 0; d < BITS; d++)
        out[d] = id >> d & 1 ? APART : 0;
    out[BITS] = (float)height;
}

static double height_of(uint32_t version) {
    return 1 + version * STEP;
}

static void set_up(void) {
    sl_index_params params;
    indexes_params(&params, DIM, SL_METRIC_L2);
    params.codes = SL_CODES_F32;
    ck_ok(sl_index_create(&params, &idx));
    static float x[STILL][DIM];
    uint64_t ids[STILL];
    for (size_t i = 0; i < STILL; i++) {
        ids[i] = IDS + i;
        vector_of(i % IDS, 10 + 0.01 * (double)i, x[i]);
    }
    ck_ok(sl_index_add(idx, x, SL_F32, STILL, 0, ids, NULL));
    memset(versions, 0, sizeof versions);
    memset(lengths, 0, sizeof lengths);
    count = 0;
    over = 0;
    for (size_t t = 0; t < THREADS; t++) {
        histories[t] = malloc(MOST * sizeof **histories);
        ck_assert_ptr_nonnull(histories[t]);
    }
}

static void tear_down(void) {
    sl_index_free(idx);
    for (size_t t = 0; t < THREADS; t++)
        free(histories[t]);
}

/* The next operation of a thread, on one of the ids at random. Half of the operations meet at a few ids. */
static history_op *begin(size_t thread, history_kind kind) {
    history_op *op = &histories[thread][lengths[thread]];
    const uint64_t random = sl_random_at(thread, lengths[thread]);
    *op = (history_op){.id = (uint32_t)(random / 2 % (random % 2 ? IDS : FEW)), .kind = kind};
    op->begun = __atomic_fetch_add(&count, 1, __ATOMIC_SEQ_CST);
    return op;
}

static void end(size_t thread, history_op *op) {
    op->ended = __atomic_fetch_add(&count, 1, __ATOMIC_SEQ_CST);
    lengths[thread]++;
}

#define WANT(condition, text)                                                                                          \
    if (!(condition)) return (void *)(uintptr_t)(text)

static sl_status add_version(history_op *op) {
    float x[DIM];
    const uint64_t id = op->id;
    sl_add_params params;
    sl_add_params_init(&params);
    params.threads = 1;
    params.replace = op->kind == HISTORY_REPLACE;
    op->version = __atomic_add_fetch(&versions[id], 1, __ATOMIC_SEQ_CST);
    vector_of(id, height_of(op->version), x);
    return sl_index_add(idx, x, SL_F32, 1, 0, &id, &params);
}

static sl_status change(history_op *op) {
    const uint64_t id = op->id;
    if (op->kind == HISTORY_DELETE) return sl_index_delete(idx, &id, 1);
    if (op->kind == HISTORY_UNDELETE) return sl_index_undelete(idx, &id, 1);
    return add_version(op);
}

/* Both writers change all ids. */
static void *write_on(void *ctx) {
    static const history_kind kinds[] = {HISTORY_REPLACE, HISTORY_ADD, HISTORY_DELETE, HISTORY_REPLACE,
                                         HISTORY_UNDELETE};
    const size_t thread = (size_t)(uintptr_t)ctx;
    for (size_t i = 0; i < (SANITIZED ? 1000 : 15000); i++) {
        history_op *op = begin(thread, kinds[sl_random_at(77 + thread, i) % COUNT_OF(kinds)]);
        const sl_status status = change(op);
        end(thread, op);
        op->refused = status != SL_OK;
        if (op->kind == HISTORY_UNDELETE) op->version = status == SL_EEXIST;
        WANT(status == SL_OK || status == SL_EEXIST || status == SL_ENOTFOUND, sl_last_error());
    }
    return NULL;
}

/* Scratch of a reader. */
typedef struct reader {
    sl_searcher *searcher;
    sl_search_params params;
    size_t searches;
} reader;

static uint32_t version_of(double height) {
    return (uint32_t)lround((height - 1) / STEP);
}

/* Searches with a beam that reaches all. Returns what is wrong, or NULL. */
static const char *walk_to(reader *reader, history_op *op) {
    float query[DIM], scores[K];
    uint64_t ids[K];
    vector_of(op->id, 0, query);
    const sl_status status =
        reader->searches++ % 2
            ? sl_searcher_search(reader->searcher, query, SL_F32, K, &reader->params, ids, scores, NULL)
            : sl_index_search(idx, query, SL_F32, 1, 0, K, &reader->params, ids, scores, NULL);
    if (status != SL_OK) return sl_last_error();
    for (size_t i = 1; i < K; i++)
        if (ids[i] == op->id) return "a search found an id twice, or behind others";
    if (ids[0] == op->id) op->version = version_of(sqrt((double)scores[0]));
    return NULL;
}

static int note_hit(void *ctx, size_t query, uint64_t id, float score) {
    history_op *op = ctx;
    (void)query;
    if (id == op->id) op->version = op->version ? UINT32_MAX : version_of(sqrt((double)score));
    return 0;
}

/* Compares with all vectors. Only the id's lie so near. */
static const char *compare_all(history_op *op) {
    float query[DIM];
    sl_range_params params;
    sl_range_params_init(&params);
    params.exact = 1;
    vector_of(op->id, 0, query);
    const double radius = (double)(APART * APART);
    if (sl_index_range(idx, query, SL_F32, 1, 0, radius, &params, note_hit, op, NULL) != SL_OK) return sl_last_error();
    return op->version == UINT32_MAX ? "a search that compares with all found an id twice" : NULL;
}

static const char *get_id(history_op *op) {
    float x[DIM];
    const uint64_t id = op->id;
    const sl_status status = sl_index_get(idx, &id, 1, SL_F32, x);
    if (status == SL_OK) op->version = version_of((double)x[BITS]);
    return status == SL_OK || status == SL_ENOTFOUND ? NULL : sl_last_error();
}

static const char *contains_id(history_op *op) {
    int found = 0;
    const sl_status status = sl_index_contains(idx, op->id, &found);
    op->version = (uint32_t)found;
    return status == SL_OK ? NULL : sl_last_error();
}

static void *read_on(void *ctx) {
    const size_t thread = (size_t)(uintptr_t)ctx;
    reader reader = {0};
    const char *wrong = NULL;
    sl_search_params_init(&reader.params);
    reader.params.ef = 4 * (IDS + STILL);
    WANT(sl_searcher_create(idx, reader.params.ef, &reader.searcher) == SL_OK, "searcher");
    while (!wrong && lengths[thread] < MOST && !__atomic_load_n(&over, __ATOMIC_RELAXED)) {
        static const history_kind kinds[] = {HISTORY_WALK, HISTORY_CONTAINS, HISTORY_READ, HISTORY_READ};
        const size_t what = lengths[thread] % 4;
        history_op *op = begin(thread, kinds[what]);
        wrong = what == 0   ? walk_to(&reader, op)
                : what == 1 ? contains_id(op)
                : what == 2 ? get_id(op)
                            : compare_all(op);
        end(thread, op);
    }
    sl_searcher_free(reader.searcher);
    return (void *)(uintptr_t)wrong;
}

static void join(pthread_t thread) {
    void *wrong;
    ck_assert_int_eq(pthread_join(thread, &wrong), 0);
    ck_assert_msg(!wrong, "%s", (const char *)wrong);
}

/* Moves walks that found nothing behind the other operations, and returns the number of the others. */
static size_t part_misses(history_op *ops, size_t n) {
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        if (ops[i].kind == HISTORY_WALK && !ops[i].version) continue;
        const history_op op = ops[i];
        ops[i] = ops[kept];
        ops[kept++] = op;
    }
    return kept;
}

/* Checks what the threads have recorded. */
static void check_histories(void) {
    char text[100];
    size_t n = 0, walks = 0, done[HISTORY_READ] = {0};
    history_op *all = malloc(THREADS * MOST * sizeof *all);
    ck_assert_ptr_nonnull(all);
    for (size_t t = 0; t < THREADS; t++) {
        memcpy(all + n, histories[t], lengths[t] * sizeof *all);
        n += lengths[t];
    }
    for (size_t i = 0; i < n; i++) {
        walks += all[i].kind == HISTORY_WALK;
        if (all[i].kind < HISTORY_READ) done[all[i].kind] += !all[i].refused;
    }
    for (int kind = 0; kind < HISTORY_READ; kind++)
        ck_assert_uint_gt(done[kind], 20);
    ck_assert_uint_gt(walks, 100);
    const history_op *fault = history_fault(all, part_misses(all, n));
    ck_assert_msg(!fault, "no order of %zu operations explains %s", n, history_text(fault, text, sizeof text));
    const size_t operations = n, most = walks / MISSED_SHARE + 1, missed = history_missed(all, &n, most);
    ck_assert_msg(missed <= most, "%zu of %zu walks or more missed what was there", missed, walks);
    printf("%zu operations of %d ids: linearizable, but %zu of %zu walks missed a vector\n", operations, IDS, missed,
           walks);
    free(all);
}

START_TEST(calls_of_one_handle) {
    pthread_t threads[THREADS];
    for (size_t t = 0; t < THREADS; t++)
        ck_assert_int_eq(pthread_create(&threads[t], NULL, t < WRITERS ? write_on : read_on, (void *)(uintptr_t)t), 0);
    for (size_t t = 0; t < THREADS; t++) {
        join(threads[t]);
        if (t == WRITERS - 1) __atomic_store_n(&over, 1, __ATOMIC_RELAXED);
    }
    check_histories();
    indexes_sound(idx);
}
END_TEST

int main(void) {
    TCase *by_hand = tcase_create("by hand"), *of_index = tcase_create("of an index");
    tcase_add_test(by_hand, one_after_another);
    tcase_add_test(by_hand, at_the_same_time);
    tcase_add_test(by_hand, each_id_by_itself);
    tcase_add_test(by_hand, missed_by_walks);
    tcase_add_test(by_hand, long_histories);
    tcase_add_checked_fixture(of_index, set_up, tear_down);
    tcase_add_test(of_index, calls_of_one_handle);
    TCase *const all[] = {by_hand, of_index};
    return check_main("linearizable", all, 2);
}
