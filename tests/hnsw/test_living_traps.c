/* Traps that broke other vector libraries while their indexes changed. docs/internals/testing.md lists them; the
 * numbers of other projects' issues stand with the tests. */
#define _GNU_SOURCE
#include "base/random.h"
#include "hnsw/graph/index.h"
#include "hnsw/graph/version.h"
#include "tests/support/check_main.h"
#include "tests/support/faults.h"
#include "tests/support/indexes.h"
#include "tests/support/sanitized.h"
#include "tests/support/scratch.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { DIM = 8, N = 1200, K = 10, MOST_THREADS = 40 };

static sl_index *idx;

/* The vector of an id in a generation. All lie close together. */
static void vector_of(uint64_t id, uint64_t generation, float *out) {
    for (size_t d = 0; d < DIM; d++)
        out[d] = (float)sl_random_unit(id * 131 + generation, d);
}

static sl_status add_one(sl_index *index, uint64_t id, uint64_t generation, int replace) {
    float row[DIM];
    sl_add_params params;
    sl_add_params_init(&params);
    params.threads = 1;
    params.replace = replace;
    vector_of(id, generation, row);
    return sl_index_add(index, row, SL_F32, 1, 0, &id, &params);
}

static void params_of(sl_index_params *params) {
    indexes_params(params, DIM, SL_METRIC_L2);
    params->codes = SL_CODES_F32;
}

/* Adds ids [first, end) of generation 0. */
static void add_ids(sl_index *index, size_t first, size_t end) {
    float *x = malloc((end - first) * DIM * sizeof *x);
    uint64_t *ids = malloc((end - first) * sizeof *ids);
    for (size_t i = first; i < end; i++) {
        ids[i - first] = i;
        vector_of(i, 0, x + (i - first) * DIM);
    }
    ck_ok(indexes_add(index, x, SL_F32, end - first, ids));
    free(ids);
    free(x);
}

/* An index of ids 0 to n - 1. */
static sl_index *make(size_t n) {
    sl_index_params params;
    sl_index *index;
    params_of(&params);
    ck_ok(sl_index_create(&params, &index));
    if (n) add_ids(index, 0, n);
    return index;
}

static void set_up(void) {
    idx = make(N);
}

static void tear_down(void) {
    sl_index_free(idx);
    idx = NULL;
}

/* Asserts that an id has its vector of a generation, and that a search finds it. */
static void ck_vector(sl_index *index, uint64_t id, uint64_t generation) {
    float wanted[DIM], got[DIM];
    uint64_t found;
    vector_of(id, generation, wanted);
    ck_ok(sl_index_get(index, &id, 1, SL_F32, got));
    ck_assert_mem_eq(got, wanted, sizeof got);
    indexes_search(index, (vector_rows){wanted, SL_F32, 1}, 1, 100, &found, NULL);
    ck_assert_uint_eq(found, id);
}

/* ---------------------------------------------------------------------------------------------------------------
 * Threads
 * ------------------------------------------------------------------------------------------------------------- */

/* Work of one thread. Returns what went wrong, or NULL. */
typedef const char *(*work_fn)(size_t number);

typedef struct worker {
    work_fn work;
    size_t number;
    pthread_t thread;
    pthread_barrier_t *start;
} worker;

static void *run(void *ctx) {
    const worker *mine = ctx;
    if (mine->start) pthread_barrier_wait(mine->start);
    return (void *)(uintptr_t)mine->work(mine->number);
}

static void spawn(worker *one, work_fn work, size_t number, pthread_barrier_t *start) {
    *one = (worker){.work = work, .number = number, .start = start};
    ck_assert_int_eq(pthread_create(&one->thread, NULL, run, one), 0);
}

static void join(const worker *one) {
    void *wrong;
    ck_assert_int_eq(pthread_join(one->thread, &wrong), 0);
    ck_assert_msg(!wrong, "thread %zu: %s", one->number, (const char *)wrong);
}

/* Runs the work on `count` threads, which begin together. */
static void together(size_t count, work_fn work) {
    worker workers[MOST_THREADS];
    pthread_barrier_t start;
    pthread_barrier_init(&start, NULL, (unsigned)count);
    for (size_t t = 0; t < count; t++)
        spawn(&workers[t], work, t, &start);
    for (size_t t = 0; t < count; t++)
        join(&workers[t]);
    pthread_barrier_destroy(&start);
}

static int over; /* atomic */
static void end(void) {
    __atomic_store_n(&over, 1, __ATOMIC_RELAXED);
}
static int goes_on(void) {
    return !__atomic_load_n(&over, __ATOMIC_RELAXED);
}

#define WANT(condition, text)                                                                                          \
    if (!(condition)) return text

/* ---------------------------------------------------------------------------------------------------------------
 * Deletes and places
 * ------------------------------------------------------------------------------------------------------------- */

/* 99 % of the vectors are deleted, a few at a time. A search finds exactly what is left (hnswlib 608). */
START_TEST(trap_15_most_are_deleted) {
    enum { LEFT = N / 100, AT_ONCE = 13 };
    static uint64_t ids[N];
    for (size_t i = 0; i < N; i++)
        ids[i] = i * 7 % N;
    for (size_t done = LEFT; done < N; done += AT_ONCE)
        ck_ok(sl_index_delete(idx, ids + done, done + AT_ONCE < N ? AT_ONCE : N - done));
    ck_assert_uint_eq(sl_index_size(idx), LEFT);
    for (size_t q = 0; q < 50; q++) {
        float query[DIM], x[LEFT * DIM];
        uint64_t found[K], exact[K];
        vector_of(q, 9, query);
        for (size_t i = 0; i < LEFT; i++)
            vector_of(ids[i], 0, x + i * DIM);
        indexes_exact(SL_METRIC_L2, DIM, (vector_rows){x, SL_F32, LEFT}, (vector_rows){query, SL_F32, 1}, K, exact);
        indexes_search(idx, (vector_rows){query, SL_F32, 1}, K, 64, found, NULL);
        for (size_t i = 0; i < K; i++)
            ck_assert_uint_eq(found[i], ids[exact[i]]);
    }
    indexes_sound(idx);
}
END_TEST

enum { SIXTEEN = 16, IDS_EACH = 40, TURNS = SANITIZED ? 3 : 20 };

static const char *recycle(size_t number) {
    for (uint64_t turn = 1; turn <= TURNS; turn++)
        for (uint64_t i = 0; i < IDS_EACH; i++) {
            const uint64_t id = i * SIXTEEN + number;
            WANT(sl_index_delete(idx, &id, 1) == SL_OK, sl_last_error());
            WANT(add_one(idx, id, turn, 0) == SL_OK, sl_last_error());
        }
    return NULL;
}

/* Sixteen threads delete and add, in places that become free (usearch 396). */
START_TEST(trap_16_sixteen_threads_recycle) {
    together(SIXTEEN, recycle);
    ck_assert_uint_eq(sl_index_size(idx), N);
    ck_assert_uint_le(idx->graph.n, N + N / 2);
    for (uint64_t id = 0; id < N; id++)
        ck_vector(idx, id, id < SIXTEEN * IDS_EACH ? TURNS : 0);
    ck_assert_uint_eq(indexes_sound(idx).unreachable, 0);
}
END_TEST

static const char *recycle_on(size_t number) {
    for (uint64_t turn = 1; goes_on(); turn++) {
        const uint64_t id = turn % IDS_EACH * SIXTEEN + number;
        WANT(sl_index_delete(idx, &id, 1) == SL_OK, sl_last_error());
        WANT(add_one(idx, id, turn, 0) == SL_OK, sl_last_error());
    }
    return NULL;
}

/* A compaction ends, though others go on to delete. */
START_TEST(compactions_end) {
    enum { OTHERS = 3, COMPACTIONS = 3 };
    worker others[OTHERS];
    over = 0;
    for (size_t t = 0; t < OTHERS; t++)
        spawn(&others[t], recycle_on, t, NULL);
    for (size_t i = 0; i < COMPACTIONS; i++)
        ck_ok(sl_index_compact(idx, NULL));
    end();
    for (size_t t = 0; t < OTHERS; t++)
        join(&others[t]);
    ck_assert_uint_eq(sl_index_size(idx), N);
    ck_assert_uint_eq(indexes_sound(idx).unreachable, 0);
}
END_TEST

/* An index whose room is used up is saved with deleted vectors. Threads that add to the opened one don't wait for each
 * other's places (valkey-search 1017). */
static const char *add_eight(size_t number) {
    for (uint64_t i = 0; i < 8; i++)
        WANT(add_one(idx, N + i * 8 + number, 0, 0) == SL_OK, sl_last_error());
    return NULL;
}

START_TEST(valkey_1017_full_when_opened) {
    scratch place;
    static uint64_t ids[64];
    scratch_open(&place);
    for (size_t i = 0; i < 64; i++)
        ids[i] = i;
    ck_ok(sl_index_delete(idx, ids, 64));
    ck_ok(indexes_save(idx, place.path));
    sl_index_free(idx);
    idx = indexes_open(place.path, SL_PLACE_DRAM);
    const size_t saved = idx->graph.n;
    ck_assert_uint_gt(saved, N - 64);
    together(8, add_eight);
    ck_assert_uint_eq(sl_index_size(idx), N);
    ck_assert_uint_lt(idx->graph.n, saved + 64);
    for (uint64_t id = 64; id < N + 64; id++)
        ck_vector(idx, id, 0);
    indexes_sound(idx);
    scratch_close(&place);
}
END_TEST

/* The same in a file that is written in place: its room is fixed, so adds are refused at once. */
static const char *add_beyond(size_t number) {
    WANT(add_one(idx, N + number, 0, 0) == SL_ELIMIT, "an add beyond the room was not refused");
    return NULL;
}

START_TEST(valkey_1017_full_in_place) {
    scratch place;
    sl_save_params save;
    sl_open_params open;
    scratch_open(&place);
    indexes_save_params(&save);
    save.room = N;
    ck_ok(sl_index_save(idx, place.path, &save));
    sl_index_free(idx);
    sl_open_params_init(&open);
    open.writable = 1;
    ck_ok(sl_index_open(place.path, &open, &idx));
    together(8, add_beyond);
    ck_assert_uint_eq(sl_index_size(idx), N);
    ck_vector(idx, 5, 0);
    indexes_sound(idx);
    scratch_close(&place);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Reading while vectors come
 * ------------------------------------------------------------------------------------------------------------- */

enum { COMING = SANITIZED ? 300 : 1500 };
static size_t begun, acknowledged; /* atomic: ids 0 to it - 1 */
static scratch places[2];

static const char *add_in_order(size_t number) {
    (void)number;
    for (size_t id = 0; id < COMING; id++) {
        __atomic_store_n(&begun, id + 1, __ATOMIC_SEQ_CST);
        WANT(add_one(idx, id, 0, 0) == SL_OK, sl_last_error());
        __atomic_store_n(&acknowledged, id + 1, __ATOMIC_SEQ_CST);
    }
    end();
    return NULL;
}

/* Returns whether a count is that of a moment since `before`. */
static int fits(size_t count, size_t before) {
    return count >= before && count <= __atomic_load_n(&begun, __ATOMIC_SEQ_CST);
}

/* Returns whether the index has exactly ids 0 to count - 1, with their vectors. */
static int has_first(sl_index *index, const uint64_t *ids, size_t count) {
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        float wanted[DIM], got[DIM];
        vector_of(ids[i], 0, wanted);
        sum += ids[i];
        if (ids[i] >= count || sl_index_get(index, &ids[i], 1, SL_F32, got) != SL_OK) return 0;
        if (memcmp(got, wanted, sizeof got) != 0) return 0;
    }
    return count == 0 || sum == count * (count - 1) / 2;
}

static const char *export(size_t number) {
    static uint64_t all[2][COMING];
    uint64_t *ids = all[number];
    while (goes_on()) {
        size_t count, before = __atomic_load_n(&acknowledged, __ATOMIC_SEQ_CST);
        sl_index_stats stats = {.struct_size = sizeof stats};
        WANT(fits(sl_index_size(idx), before), "a size that never was");
        WANT(sl_index_get_stats(idx, &stats) == SL_OK && fits(stats.n, before), "stats of no moment");
        WANT(sl_index_ids(idx, ids, COMING, &count) == SL_OK && fits(count, before), "a list of no moment");
        WANT(has_first(idx, ids, count), "a list without an id, or with another vector");
        WANT(sl_index_save(idx, places[number].path, NULL) == SL_OK, sl_last_error());
        sl_index *saved;
        WANT(sl_index_open(places[number].path, NULL, &saved) == SL_OK, sl_last_error());
        const int whole =
            sl_index_ids(saved, ids, COMING, &count) == SL_OK && fits(count, before) && has_first(saved, ids, count);
        sl_index_free(saved);
        WANT(whole, "a saved file without an id, or with another vector");
    }
    return NULL;
}

/* Sizes, counts, lists and files are those of one moment while vectors are added (memgraph 3846). */
START_TEST(trap_17_exports_while_adding) {
    worker workers[3];
    tear_down();
    idx = make(0);
    over = 0;
    begun = acknowledged = 0;
    for (size_t t = 0; t < 2; t++)
        scratch_open(&places[t]);
    for (size_t t = 0; t < 3; t++)
        spawn(&workers[t], t < 2 ? export : add_in_order, t, NULL);
    for (size_t t = 0; t < 3; t++)
        join(&workers[t]);
    for (size_t t = 0; t < 2; t++)
        scratch_close(&places[t]);
    ck_assert_uint_eq(sl_index_size(idx), COMING);
    indexes_sound(idx);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Copies, and one id
 * ------------------------------------------------------------------------------------------------------------- */

enum { ADDERS = 8, COPIES = 60 };

/* The even threads add one at a time, the odd ones all at once on two threads. */
static const char *add_copies(size_t number) {
    float copies[COPIES * DIM];
    uint64_t ids[COPIES];
    sl_add_params params;
    sl_add_params_init(&params);
    params.threads = 2;
    for (size_t i = 0; i < COPIES; i++) {
        ids[i] = N + i * ADDERS + number;
        vector_of(0, 0, copies + i * DIM);
    }
    for (size_t i = 0; i < COPIES && number % 2 == 0; i++)
        WANT(sl_index_add(idx, copies, SL_F32, 1, 0, &ids[i], NULL) == SL_OK, sl_last_error());
    WANT(number % 2 == 0 || sl_index_add(idx, copies, SL_F32, COPIES, 0, ids, &params) == SL_OK, sl_last_error());
    return NULL;
}

/* Threads add one and the same vector, with two links a node (hnswlib 389). All are found, and all others too. */
START_TEST(trap_18_copies_from_threads) {
    enum { ALIKE = ADDERS * COPIES + 1 };
    static uint64_t found[ALIKE];
    static float scores[ALIKE];
    sl_index_params params;
    float query[DIM];
    tear_down();
    params_of(&params);
    params.m = 2;
    ck_ok(sl_index_create(&params, &idx));
    add_ids(idx, 0, N);
    together(ADDERS, add_copies);
    ck_assert_uint_eq(sl_index_size(idx), N + ALIKE - 1);
    ck_assert_uint_eq(indexes_sound(idx).unreachable, 0);
    vector_of(0, 0, query);
    indexes_search(idx, (vector_rows){query, SL_F32, 1}, ALIKE, N + ALIKE, found, scores);
    for (size_t i = 0; i < ALIKE; i++)
        ck_assert(scores[i] <= 0 && (found[i] == 0 || found[i] >= N));
}
END_TEST

enum { RACES = 60 };
static uint32_t winners[RACES], refused; /* atomic: 1 + the thread that added the id; adds that were refused */

static const char *add_the_same(size_t number) {
    for (uint64_t race = 0; race < RACES; race++) {
        const sl_status status = add_one(idx, N + race, 1 + number, 0);
        WANT(status == SL_OK || status == SL_EEXIST, sl_last_error());
        if (status == SL_EEXIST)
            __atomic_fetch_add(&refused, 1, __ATOMIC_RELAXED);
        else
            WANT(__atomic_exchange_n(&winners[race], 1 + (uint32_t)number, __ATOMIC_RELAXED) == 0, "two adds won");
    }
    return NULL;
}

/* Threads add the same ids at once. One wins, and the others get SL_EEXIST. */
START_TEST(one_of_two_adds_wins) {
    memset(winners, 0, sizeof winners);
    refused = 0;
    together(2, add_the_same);
    ck_assert_uint_eq(refused, RACES);
    ck_assert_uint_eq(sl_index_size(idx), N + RACES);
    for (uint64_t race = 0; race < RACES; race++)
        ck_vector(idx, N + race, winners[race]);
    indexes_sound(idx);
}
END_TEST

enum { UPDATERS = 4, UPDATED = 12, UPDATES = SANITIZED ? 10 : 60 };

static const char *update_all(size_t number) {
    for (uint64_t turn = 1; turn <= UPDATES; turn++)
        for (uint64_t id = 0; id < UPDATED; id++) {
            WANT(add_one(idx, id, turn * UPDATERS + number, 1) == SL_OK, sl_last_error());
            WANT(add_one(idx, N + number, turn, 1) == SL_OK, sl_last_error());
        }
    return NULL;
}

/* Returns whether a vector is one that update_all gives the id, whole. */
static int is_update(uint64_t id, const float *got, uint64_t first) {
    for (uint64_t generation = first; generation < (UPDATES + 1) * UPDATERS; generation++) {
        float wanted[DIM];
        vector_of(id, generation, wanted);
        if (memcmp(got, wanted, sizeof wanted) == 0) return 1;
    }
    return 0;
}

static const char *read_updates(size_t number) {
    for (uint64_t id = number % UPDATED; goes_on(); id = (id + 1) % UPDATED) {
        float got[DIM];
        uint64_t found[K];
        WANT(sl_index_get(idx, &id, 1, SL_F32, got) == SL_OK, "an id was missing during an update");
        WANT(is_update(id, got, 0), "a vector that nobody gave the id");
        WANT(sl_index_search(idx, got, SL_F32, 1, 0, K, NULL, found, NULL, NULL) == SL_OK, sl_last_error());
        for (size_t i = 0; i < K; i++)
            for (size_t j = 0; j < i; j++)
                WANT(found[i] != found[j], "a search found an id twice");
    }
    return NULL;
}

/* Threads give the same ids new vectors, beside inserts and reads (valkey-search 1079). The last update stays. */
START_TEST(valkey_1079_updates_race) {
    worker readers[2];
    over = 0;
    for (size_t t = 0; t < 2; t++)
        spawn(&readers[t], read_updates, 5 * t, NULL);
    together(UPDATERS, update_all);
    end();
    for (size_t t = 0; t < 2; t++)
        join(&readers[t]);
    ck_assert_uint_eq(sl_index_size(idx), N + UPDATERS);
    for (uint64_t id = 0; id < UPDATED; id++) {
        float got[DIM];
        ck_ok(sl_index_get(idx, &id, 1, SL_F32, got));
        ck_assert(is_update(id, got, UPDATES * UPDATERS));
    }
    for (uint64_t t = 0; t < UPDATERS; t++)
        ck_vector(idx, N + t, UPDATES);
    indexes_sound(idx);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Memory
 * ------------------------------------------------------------------------------------------------------------- */

static const char *do_everything(size_t number) {
    const uint64_t id = N + number;
    float row[DIM], got[DIM];
    uint64_t found;
    vector_of(id, 0, row);
    WANT(add_one(idx, id, 0, 0) == SL_OK, sl_last_error());
    WANT(sl_index_search(idx, row, SL_F32, 1, 0, 1, NULL, &found, NULL, NULL) == SL_OK && found == id, "not found");
    WANT(sl_index_get(idx, &id, 1, SL_F32, got) == SL_OK && memcmp(got, row, sizeof got) == 0, "get");
    WANT(sl_index_delete(idx, &id, 1) == SL_OK, sl_last_error());
    WANT(sl_index_search(idx, row, SL_F32, 1, 0, 1, NULL, &found, NULL, NULL) == SL_OK && found != id, "found");
    return NULL;
}

/* Threads come and go. None asks for a place beforehand, and the index was just opened (usearch 757). What the index
 * keeps for threads is used again. */
START_TEST(usearch_757_threads_without_places) {
    enum { WAVES = 6 };
    fault_allocator memory;
    scratch place;
    sl_open_params open;
    size_t blocks = 0;
    scratch_open(&place);
    ck_ok(indexes_save(idx, place.path));
    tear_down();
    fault_allocator_init(&memory, 0);
    sl_open_params_init(&open);
    open.place = SL_PLACE_DRAM;
    open.allocator = &memory.allocator;
    ck_ok(sl_index_open(place.path, &open, &idx));
    for (size_t wave = 0; wave < WAVES; wave++) {
        together(MOST_THREADS, do_everything);
        if (wave == 0) blocks = memory.live_blocks;
    }
    ck_assert_uint_le(memory.live_blocks, blocks + 2 * MOST_THREADS);
    ck_assert_uint_eq(sl_index_size(idx), N);
    indexes_sound(idx);
    tear_down();
    ck_assert_uint_eq(memory.live_blocks, 0);
    scratch_close(&place);
}
END_TEST

/* Memory for small blocks alone. Keeps the size of the last block that was refused. */
enum { SMALL_BLOCK = 1 << 24 };
static size_t refused_size, asked;

static void *small_alloc(void *ctx, size_t size, size_t alignment) {
    void *block;
    (void)ctx;
    asked++;
    if (size > SMALL_BLOCK) refused_size = size;
    return size <= SMALL_BLOCK && posix_memalign(&block, alignment, size) == 0 ? block : NULL;
}

static void small_free(void *ctx, void *block, size_t size) {
    (void)ctx;
    (void)size;
    free(block);
}

/* Counts whose bytes exceed 2^64, or that don't fit in 32 bits. Each is refused before any memory is asked for
 * (usearch 763). */
START_TEST(usearch_763_sizes_that_overflow) {
    const size_t counts[] = {(size_t)SL_MAX_VECTORS + 1, (size_t)1 << 32, SIZE_MAX / (DIM * sizeof(float)) + 2,
                             ((size_t)1 << 59) + 1,      SIZE_MAX / 2,    SIZE_MAX};
    const sl_allocator allocator = {NULL, small_alloc, small_free};
    scratch place;
    sl_index_params params;
    float row[DIM];
    scratch_open(&place);
    tear_down();
    params_of(&params);
    params.allocator = &allocator;
    ck_ok(sl_index_create(&params, &idx));
    add_ids(idx, 0, 100);
    vector_of(5, 0, row);
    const size_t before = asked;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        sl_save_params save;
        indexes_save_params(&save);
        save.room = counts[i];
        ck_fails(sl_index_reserve(idx, counts[i]), SL_ELIMIT, "4294901760");
        ck_fails(sl_index_add(idx, row, SL_F32, counts[i], 0, NULL, NULL), SL_ELIMIT, "4294901760");
        ck_fails(sl_index_save(idx, place.path, &save), SL_ELIMIT, "4294901760");
    }
    ck_fails(sl_index_add(idx, row, SL_F32, SL_MAX_VECTORS - 99, 0, NULL, NULL), SL_ELIMIT, "100 vectors");
    ck_assert_uint_eq(asked, before);
    /* Memory for the most vectors that there may be is missing. Their bytes are not cut to 32 bits. */
    refused_size = 0;
    ck_fails(sl_index_reserve(idx, SL_MAX_VECTORS), SL_ENOMEM, "memory");
    ck_assert_uint_ge(refused_size, (size_t)SL_MAX_VECTORS * DIM);
    ck_assert_uint_eq(sl_index_size(idx), 100);
    ck_vector(idx, 5, 0);
    add_ids(idx, 100, 200);
    indexes_sound(idx);
    tear_down();
    scratch_close(&place);
}
END_TEST

/* Entries of the map of ids that name a node. */
static size_t entries_used(void) {
    size_t used = 0;
    for (size_t i = 0; i < idx->id_map.size; i++)
        used += idx->id_map.entries[i] != SL_NONE;
    return used;
}

/* Ids come and go, none twice. Deleted ids leave the map, so that it neither fills up nor loses an id that is there
 * (usearch 769). */
START_TEST(usearch_769_ids_under_churn) {
    enum { ROUNDS = SANITIZED ? 4 : 20 };
    int found;
    const uint64_t step = 1000003;
    add_ids(idx, step, step + 1); /* ids are no longer the numbers of nodes */
    ck_ok(sl_index_contains(idx, step, &found));
    const size_t size = idx->id_map.size;
    for (uint64_t round = 0; round < ROUNDS; round++)
        for (uint64_t i = 0; i < N; i++) {
            const uint64_t old = i + round * step, new = i + (round + 1) * step + 1;
            if (round == 0 || i > 0) ck_ok(sl_index_delete(idx, &(uint64_t){round ? old + 1 : old}, 1));
            ck_ok(add_one(idx, new, 0, 0));
            if (i % 300 == 0) {
                ck_ok(sl_index_contains(idx, new, &found));
                ck_assert(found);
                ck_assert_uint_le(idx->id_map.size, 2 * size);
                ck_assert_uint_le(entries_used(), idx->graph.n);
            }
        }
    static uint64_t ids[2 * N];
    size_t count;
    ck_ok(sl_index_ids(idx, ids, 2 * N, &count));
    ck_assert_uint_eq(count, sl_index_size(idx));
    for (size_t i = 0; i < count; i++)
        ck_vector(idx, ids[i], 0);
    indexes_sound(idx);
}
END_TEST

/* The cost of some adds and replacements: calls of the allocator, and versions. */
typedef struct work_done {
    size_t calls;
    uint64_t epochs;
} work_done;

static work_done add_some(sl_index *index, fault_allocator *memory, uint64_t first) {
    const size_t calls = memory->calls;
    const uint64_t epochs = sl_epochs_now(&index->versions->epochs);
    for (uint64_t id = first; id < first + 200; id++)
        ck_ok(add_one(index, id, 0, 0));
    for (uint64_t id = 0; id < 100; id++)
        ck_ok(add_one(index, id, 1, 1));
    return (work_done){memory->calls - calls, sl_epochs_now(&index->versions->epochs) - epochs};
}

static void search_much(sl_index *index) {
    static float queries[200 * DIM];
    static uint64_t found[200 * K];
    for (size_t q = 0; q < 200; q++)
        vector_of(q, 3, queries + q * DIM);
    for (size_t threads = 1; threads <= 4; threads += 3) {
        sl_search_params params;
        sl_search_params_init(&params);
        params.threads = threads;
        ck_ok(sl_index_search(index, queries, SL_F32, 200, 0, K, &params, found, NULL, NULL));
    }
    sl_iterator *iterator;
    ck_ok(sl_iterator_create(index, queries, SL_F32, NULL, &iterator));
    ck_ok(sl_iterator_next(iterator, K, found, NULL, NULL, NULL));
    sl_iterator_free(iterator);
}

/* Adds and replacements cost the same, and make the same graph, after searches as before any (valkey-search 316). */
START_TEST(valkey_316_adding_after_searches) {
    fault_allocator memory[2];
    sl_index *indexes[2];
    work_done done[2][3];
    for (size_t i = 0; i < 2; i++) {
        sl_index_params params;
        fault_allocator_init(&memory[i], 0);
        params_of(&params);
        params.allocator = &memory[i].allocator;
        ck_ok(sl_index_create(&params, &indexes[i]));
        add_ids(indexes[i], 0, N);
        for (size_t phase = 0; phase < 3; phase++) {
            if (i) search_much(indexes[i]);
            done[i][phase] = add_some(indexes[i], &memory[i], N + 200 * phase);
        }
    }
    for (size_t phase = 0; phase < 3; phase++) {
        ck_assert_uint_eq(done[1][phase].calls, done[0][phase].calls);
        ck_assert_uint_eq(done[1][phase].epochs, done[0][phase].epochs);
    }
    const sl_graph *a = &indexes[0]->graph, *b = &indexes[1]->graph;
    ck_assert_uint_eq(a->n, b->n);
    ck_assert_mem_eq(sl_links(a, 0), sl_links(b, 0), a->n * a->m0 * sizeof(uint32_t));
    for (size_t i = 0; i < 2; i++)
        sl_index_free(indexes[i]);
}
END_TEST

/* An allocator that overwrites freed blocks and keeps them until the end, so that nobody else gets them. */
typedef struct kept_block {
    struct kept_block *next;
    void *raw;
    char rest[64 - 2 * sizeof(void *)];
} kept_block;
static kept_block *kept; /* atomic */
static size_t freed;     /* atomic */

static void *poison_alloc(void *ctx, size_t size, size_t alignment) {
    void *raw;
    (void)ctx;
    if (alignment < sizeof(kept_block)) alignment = sizeof(kept_block);
    if (posix_memalign(&raw, alignment, alignment + size) != 0) return NULL;
    kept_block *note = (kept_block *)(void *)((char *)raw + alignment) - 1;
    note->raw = raw;
    return note + 1;
}

static void poison_free(void *ctx, void *block, size_t size) {
    (void)ctx;
    memset(block, 0xa5, size);
    __atomic_fetch_add(&freed, 1, __ATOMIC_RELAXED);
    kept_block *note = (kept_block *)block - 1;
    note->next = __atomic_load_n(&kept, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&kept, &note->next, note, 1, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        ;
}

enum { GENERATIONS = SANITIZED ? 3 : 8 };

/* Returns whether a score is that of a vector that the id ever has. */
static int is_score(const float *query, uint64_t id, float score) {
    for (uint64_t generation = 0; generation <= GENERATIONS; generation++) {
        float x[DIM], sum = 0;
        vector_of(id, generation, x);
        for (size_t d = 0; d < DIM; d++)
            sum += (query[d] - x[d]) * (query[d] - x[d]);
        if (score >= sum - 1e-4f && score <= sum + 1e-4f) return 1;
    }
    return 0;
}

static const char *search_on(size_t number) {
    for (uint64_t i = 0; goes_on(); i++) {
        float query[DIM], scores[K];
        uint64_t found[K];
        vector_of(i % N, 77 + number, query);
        WANT(sl_index_search(idx, query, SL_F32, 1, 0, K, NULL, found, scores, NULL) == SL_OK, sl_last_error());
        for (size_t j = 0; j < K; j++)
            WANT(found[j] < N && is_score(query, found[j], scores[j]), "a search read what is no vector");
    }
    return NULL;
}

/* Deletes, compactions and adds free memory beside searches. No search reads it (Redis 15669). */
START_TEST(redis_15669_deletes_beside_searches) {
    enum { SEARCHERS = 3 };
    const sl_allocator allocator = {NULL, poison_alloc, poison_free};
    worker searchers[SEARCHERS];
    sl_index_params params;
    static uint64_t ids[N / 2];
    tear_down();
    params_of(&params);
    params.allocator = &allocator;
    over = 0;
    freed = 0;
    kept = NULL;
    ck_ok(sl_index_create(&params, &idx));
    add_ids(idx, 0, N);
    for (size_t t = 0; t < SEARCHERS; t++)
        spawn(&searchers[t], search_on, t, NULL);
    for (uint64_t generation = 1; generation <= GENERATIONS; generation++) {
        for (size_t i = 0; i < N / 2; i++)
            ids[i] = 2 * i + generation % 2;
        for (size_t done = 0; done < N / 2; done += 50)
            ck_ok(sl_index_delete(idx, ids + done, 50));
        ck_ok(sl_index_compact(idx, NULL));
        for (size_t i = 0; i < N / 2; i++)
            ck_ok(add_one(idx, ids[i], generation, 0));
    }
    end();
    for (size_t t = 0; t < SEARCHERS; t++)
        join(&searchers[t]);
    ck_assert_uint_gt(freed, 10 * GENERATIONS);
    indexes_sound(idx);
    tear_down();
    for (kept_block *note = kept, *next; note; note = next) {
        next = note->next;
        free(note->raw);
    }
}
END_TEST

int main(void) {
    TCase *threads = tcase_create("threads"), *alone = tcase_create("alone");
    tcase_add_checked_fixture(threads, set_up, tear_down);
    tcase_add_test(threads, trap_16_sixteen_threads_recycle);
    tcase_add_test(threads, compactions_end);
    tcase_add_test(threads, trap_17_exports_while_adding);
    tcase_add_test(threads, trap_18_copies_from_threads);
    tcase_add_test(threads, one_of_two_adds_wins);
    tcase_add_test(threads, usearch_757_threads_without_places);
    tcase_add_test(threads, valkey_1017_full_when_opened);
    tcase_add_test(threads, valkey_1017_full_in_place);
    tcase_add_test(threads, valkey_1079_updates_race);
    tcase_add_test(threads, redis_15669_deletes_beside_searches);
    tcase_add_checked_fixture(alone, set_up, tear_down);
    tcase_add_test(alone, trap_15_most_are_deleted);
    tcase_add_test(alone, usearch_763_sizes_that_overflow);
    tcase_add_test(alone, usearch_769_ids_under_churn);
    tcase_add_test(alone, valkey_316_adding_after_searches);
    TCase *const all[] = {threads, alone};
    return check_main("living_traps", all, 2);
}
