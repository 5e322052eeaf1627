/* Misuse of the public functions: a status and a message for each, and nothing touched. */
#include "tests/support/check_main.h"
#include "tests/support/indexes.h"

#include <stdlib.h>
#include <string.h>

enum { N = 20, DIM = 4 };

static float vectors[N * DIM];

static void fill(void) {
    for (size_t i = 0; i < N * DIM; i++)
        vectors[i] = (float)(i % 7) + 1;
}

static sl_index *small(void) {
    sl_index_params params;
    indexes_params(&params, DIM, SL_METRIC_L2);
    return indexes_make(&params, vectors, SL_F32, N, NULL, 1);
}

/* ---------------------------------------------------------------------------------------------------------------
 * Parameters of an index
 * ------------------------------------------------------------------------------------------------------------- */

typedef struct bad_params {
    const char *says;
    sl_status status;
    size_t dim;
    int metric, dtype, codes, refine;
    size_t m, ef_construction;
} bad_params;

static const bad_params refused[] = {
    {"dim is 0", SL_EINVAL, 0, 0, 0, 0, 0, 16, 200},
    {"65537", SL_ELIMIT, SL_MAX_DIM + 1, 0, 0, 0, 0, 16, 200},
    {"dim", SL_ELIMIT, SIZE_MAX, 0, 0, 0, 0, 16, 200},
    {"metric 3", SL_EINVAL, 8, 3, 0, 0, 0, 16, 200},
    {"metric -1", SL_EINVAL, 8, -1, 0, 0, 0, 16, 200},
    {"type 6", SL_ETYPE, 8, 0, 6, 0, 0, 16, 200},
    {"type -1", SL_ETYPE, 8, 0, -1, 0, 0, 16, 200},
    {"codes 4", SL_EINVAL, 8, 0, 0, 4, 0, 16, 200},
    {"use refine none, i16 or f32", SL_EINVAL, 8, 0, 0, SL_CODES_I4, SL_REFINE_BF16, 16, 200},
    {"refine is 4", SL_EINVAL, 8, 0, 0, 0, 4, 16, 200},
    {"refine is -1", SL_EINVAL, 8, 0, 0, 0, -1, 16, 200},
    {"refine none", SL_EINVAL, 8, 0, 0, SL_CODES_F32, SL_REFINE_F32, 16, 200},
    {"i8 vectors are kept exactly", SL_EINVAL, 8, 0, SL_I8, SL_CODES_I8, SL_REFINE_BF16, 16, 200},
    {"ask for codes i8", SL_EINVAL, 8, 0, SL_U8, SL_CODES_I16, 0, 16, 200},
    {"ask for codes i16", SL_EINVAL, 8, 0, SL_I16, SL_CODES_I8, 0, 16, 200},
    {"ask for codes i8", SL_EINVAL, 8, 0, SL_I8, SL_CODES_F32, 0, 16, 200},
    {"dim is 0", SL_EINVAL, 0, 0, SL_U8, SL_CODES_I4, 0, 16, 200},
    {"metric 3", SL_EINVAL, 8, 3, SL_U8, SL_CODES_I4, 0, 16, 200},
    {"i16 vectors are kept exactly", SL_EINVAL, 8, 0, SL_I16, SL_CODES_I4, SL_REFINE_F32, 16, 200},
    {"type 6", SL_ETYPE, 8, 0, 6, SL_CODES_I4, 0, 16, 200},
    {"m is 0", SL_EINVAL, 8, 0, 0, 0, 0, 0, 200},
    {"m is 1;", SL_EINVAL, 8, 0, 0, 0, 0, 1, 200},
    {"m is 257", SL_EINVAL, 8, 0, 0, 0, 0, SL_MAX_M + 1, 1000},
    {"m is 9223372036854775808", SL_EINVAL, 8, 0, 0, 0, 0, (size_t)1 << 63, 200},
    {"ef_construction is 0", SL_EINVAL, 8, 0, 0, 0, 0, 16, 0},
    {"ef_construction is 15", SL_EINVAL, 8, 0, 0, 0, 0, 16, 15},
    {"ef_construction is 65537", SL_EINVAL, 8, 0, 0, 0, 0, 16, SL_MAX_EF + 1},
};

START_TEST(bad_parameters_are_refused) {
    const bad_params *bad = &refused[_i];
    sl_index_params params;
    sl_index_params_init(&params);
    params.dim = bad->dim;
    params.metric = (sl_metric)bad->metric;
    params.dtype = (sl_dtype)bad->dtype;
    params.codes = (sl_codes)bad->codes;
    params.refine = (sl_refine)bad->refine;
    params.m = bad->m;
    params.ef_construction = bad->ef_construction;
    sl_index *index = (sl_index *)&params;
    ck_fails(sl_index_create(&params, &index), bad->status, bad->says);
    ck_assert_ptr_null(index);
}
END_TEST

START_TEST(the_limits_themselves_are_allowed) {
    static float wide[SL_MAX_DIM];
    for (size_t i = 0; i < SL_MAX_DIM; i++)
        wide[i] = 1;
    sl_index_params params;
    sl_index_params_init(&params);
    params.dim = SL_MAX_DIM;
    params.m = SL_MAX_M;
    params.ef_construction = SL_MAX_EF;
    sl_index *index = indexes_make(&params, wide, SL_F32, 1, NULL, 1);
    uint64_t id;
    float score;
    indexes_search(index, (vector_rows){wide, SL_F32, 1}, 1, SL_MAX_EF, &id, &score);
    ck_assert_uint_eq(id, 0);
    ck_assert_float_eq_tol(score, 1, 1e-3f);
    sl_index_free(index);
}
END_TEST

/* The leak sanitizer asks for this: clang's OpenMP runtime loses its old table when it makes room for more threads. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) {
    return "leak:libomp";
}

/* As many threads as there can be are as many as there is work for. */
START_TEST(any_number_of_threads) {
    sl_index *index = small();
    size_t numbers[] = {300, (size_t)INT32_MAX + 1, (size_t)1 << 62, SIZE_MAX};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        sl_add_params add;
        sl_add_params_init(&add);
        add.threads = numbers[i];
        ck_ok(sl_index_add(index, vectors, SL_F32, N, 0, NULL, &add));
        sl_search_params search;
        sl_search_params_init(&search);
        search.threads = numbers[i];
        uint64_t ids[N];
        ck_ok(sl_index_search(index, vectors, SL_F32, N, 0, 1, &search, ids, NULL, NULL));
        sl_check_params check;
        sl_check_params_init(&check);
        check.threads = numbers[i];
        sl_check_report report = {.struct_size = sizeof report};
        ck_ok(sl_index_check(index, &check, &report));
        sl_exact_params params;
        sl_exact_params_init(&params);
        params.dim = DIM;
        params.k = 1;
        params.threads = numbers[i];
        sl_exact *exact;
        ck_ok(sl_exact_create(&params, vectors, N, 0, &exact));
        ck_ok(sl_exact_scan(exact, vectors, N, 0, 0));
        ck_ok(sl_exact_results(exact, ids, NULL));
        sl_exact_free(exact);
    }
    sl_index_free(index);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * NULL
 * ------------------------------------------------------------------------------------------------------------- */

START_TEST(null_is_refused_by_indexes) {
    sl_index *index = small(), *out = index;
    uint64_t ids[N] = {0};
    float found[DIM];
    sl_searcher *searcher;
    ck_fails(sl_index_create(NULL, &out), SL_EINVAL, "dim");
    ck_assert_ptr_null(out);
    ck_fails(sl_index_create(NULL, NULL), SL_EINVAL, "NULL");
    ck_fails(sl_index_reserve(NULL, 10), SL_EINVAL, "NULL");
    ck_fails(sl_index_add(NULL, vectors, SL_F32, N, 0, NULL, NULL), SL_EINVAL, "NULL");
    ck_fails(sl_index_add(index, NULL, SL_F32, N, 0, NULL, NULL), SL_EINVAL, "vectors is NULL");
    ck_ok(sl_index_add(index, NULL, SL_F32, 0, 0, NULL, NULL));
    ck_fails(sl_index_get(NULL, ids, 1, SL_F32, found), SL_EINVAL, "NULL");
    ck_fails(sl_index_get(index, NULL, 1, SL_F32, found), SL_EINVAL, "NULL");
    ck_fails(sl_index_get(index, ids, 1, SL_F32, NULL), SL_EINVAL, "NULL");
    ck_ok(sl_index_get(index, NULL, 0, SL_F32, NULL));
    sl_index_stats stats = {.struct_size = sizeof stats};
    ck_fails(sl_index_get_stats(NULL, &stats), SL_EINVAL, "NULL");
    ck_fails(sl_index_get_stats(index, NULL), SL_EINVAL, "NULL");
    sl_check_report report = {.struct_size = sizeof report};
    ck_fails(sl_index_check(NULL, NULL, &report), SL_EINVAL, "NULL");
    ck_fails(sl_index_check(index, NULL, NULL), SL_EINVAL, "NULL");
    ck_ok(sl_index_check(index, NULL, &report));
    ck_fails(sl_index_save(NULL, "x", NULL), SL_EINVAL, "NULL");
    ck_fails(sl_index_save(index, NULL, NULL), SL_EINVAL, "NULL");
    ck_fails(sl_index_open(NULL, NULL, &out), SL_EINVAL, "NULL");
    ck_fails(sl_index_open("x", NULL, NULL), SL_EINVAL, "NULL");
    ck_fails(sl_index_search(NULL, vectors, SL_F32, 1, 0, 1, NULL, ids, NULL, NULL), SL_EINVAL, "NULL");
    ck_fails(sl_index_search(index, NULL, SL_F32, 1, 0, 1, NULL, ids, NULL, NULL), SL_EINVAL, "NULL");
    ck_fails(sl_index_search(index, vectors, SL_F32, 1, 0, 1, NULL, NULL, NULL, NULL), SL_EINVAL, "NULL");
    ck_ok(sl_index_search(index, NULL, SL_F32, 0, 0, 1, NULL, NULL, NULL, NULL));
    ck_fails(sl_searcher_create(NULL, 10, &searcher), SL_EINVAL, "NULL");
    ck_fails(sl_searcher_create(index, 10, NULL), SL_EINVAL, "NULL");
    ck_ok(sl_searcher_create(index, 64, &searcher));
    ck_fails(sl_searcher_search(NULL, vectors, SL_F32, 1, NULL, ids, NULL, NULL), SL_EINVAL, "NULL");
    ck_fails(sl_searcher_search(searcher, NULL, SL_F32, 1, NULL, ids, NULL, NULL), SL_EINVAL, "NULL");
    ck_fails(sl_searcher_search(searcher, vectors, SL_F32, 1, NULL, NULL, NULL, NULL), SL_EINVAL, "NULL");
    ck_ok(sl_searcher_search(searcher, vectors, SL_F32, 1, NULL, ids, NULL, NULL));
    ck_assert_uint_eq(sl_index_size(NULL), 0);
    ck_assert_uint_eq(sl_index_size(index), N);
    sl_searcher_free(NULL);
    sl_searcher_free(searcher);
    sl_index_free(NULL);
    sl_index_free(index);
}
END_TEST

/* Ids that are counted from a first one end at the last that is no SL_NO_ID. A refused block changes nothing. */
START_TEST(exact_ids_end_below_no_id) {
    enum { ROWS = 8, K = 2 * ROWS };
    uint64_t ids[K];
    sl_exact *exact;
    sl_exact_params params;
    sl_exact_params_init(&params);
    params.dim = DIM;
    params.k = K;
    ck_ok(sl_exact_create(&params, vectors, 1, 0, &exact));
    for (uint64_t first = SL_NO_ID; first > SL_NO_ID - ROWS; first--)
        ck_fails(sl_exact_scan(exact, vectors, ROWS, 0, first), SL_EINVAL, "would have id 2^64 - 1, which is reserved");
    ck_fails(sl_exact_scan(exact, vectors, ROWS, 0, SL_NO_ID - 3), SL_EINVAL, "row 3 would have");
    ck_ok(sl_exact_scan(exact, vectors, 0, 0, SL_NO_ID));
    ck_ok(sl_exact_results(exact, ids, NULL));
    ck_assert_uint_eq(ids[0], SL_NO_ID);
    ck_ok(sl_exact_scan(exact, vectors, ROWS, 0, SL_NO_ID - ROWS));
    ck_ok(sl_exact_results(exact, ids, NULL));
    for (size_t i = 0; i < K; i++)
        ck_assert(i < ROWS ? ids[i] >= SL_NO_ID - ROWS && ids[i] != SL_NO_ID : ids[i] == SL_NO_ID);
    sl_exact_free(exact);
}
END_TEST

START_TEST(null_is_refused_by_the_rest) {
    sl_exact *exact;
    sl_exact_params params;
    sl_exact_params_init(&params);
    params.dim = DIM;
    params.k = 3;
    uint64_t ids[3];
    double score;
    float out[DIM];
    ck_fails(sl_exact_create(&params, vectors, 1, 0, NULL), SL_EINVAL, "NULL");
    ck_fails(sl_exact_create(&params, NULL, 1, 0, &exact), SL_EINVAL, "NULL");
    ck_assert_ptr_null(exact);
    ck_fails(sl_exact_create(NULL, vectors, 1, 0, &exact), SL_EINVAL, "k is 0");
    ck_ok(sl_exact_create(&params, vectors, 1, 0, &exact));
    ck_fails(sl_exact_scan(NULL, vectors, N, 0, 0), SL_EINVAL, "NULL");
    ck_fails(sl_exact_scan(exact, NULL, N, 0, 0), SL_EINVAL, "NULL");
    ck_ok(sl_exact_scan(exact, NULL, 0, 0, 0));
    ck_fails(sl_exact_results(NULL, ids, NULL), SL_EINVAL, "NULL");
    ck_fails(sl_exact_results(exact, NULL, NULL), SL_EINVAL, "NULL");
    ck_ok(sl_exact_results(exact, ids, NULL));
    ck_assert_uint_eq(ids[0], SL_NO_ID);
    sl_exact_free(exact);
    sl_exact_free(NULL);
    ck_fails(sl_score(SL_METRIC_IP, SL_F32, NULL, vectors, DIM, &score), SL_EINVAL, "NULL");
    ck_fails(sl_score(SL_METRIC_IP, SL_F32, vectors, NULL, DIM, &score), SL_EINVAL, "NULL");
    ck_fails(sl_score(SL_METRIC_IP, SL_F32, vectors, vectors, DIM, NULL), SL_EINVAL, "NULL");
    ck_fails(sl_convert(NULL, SL_F32, out, SL_F16, DIM), SL_EINVAL, "NULL");
    ck_fails(sl_convert(vectors, SL_F32, NULL, SL_F16, DIM), SL_EINVAL, "NULL");
    ck_fails(sl_system_query(NULL), SL_EINVAL, "NULL");
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * struct_size
 * ------------------------------------------------------------------------------------------------------------- */

static sl_index *shared;

static sl_status call_create(void *params) {
    sl_index *index;
    sl_status status = sl_index_create(params, &index);
    sl_index_free(index);
    return status;
}
static sl_status call_add(void *params) {
    return sl_index_add(shared, vectors, SL_F32, 1, 0, NULL, params);
}
static sl_status call_search(void *params) {
    uint64_t id;
    return sl_index_search(shared, vectors, SL_F32, 1, 0, 1, params, &id, NULL, NULL);
}
static sl_status call_check(void *params) {
    sl_check_report report = {.struct_size = sizeof report};
    return sl_index_check(shared, params, &report);
}
static sl_status call_save(void *params) {
    return sl_index_save(shared, "/dev/null/x", params);
}
static sl_status call_open(void *params) {
    sl_index *index;
    return sl_index_open("/dev/null/x", params, &index);
}
static sl_status call_exact(void *params) {
    sl_exact *exact;
    sl_status status = sl_exact_create(params, vectors, 1, 0, &exact);
    sl_exact_free(exact);
    return status;
}
static sl_status call_tune_with(const void *params, void *report) {
    static float queries[SL_TUNE_LEAST_QUERIES * DIM];
    for (size_t i = 0; i < SL_TUNE_LEAST_QUERIES * DIM; i++)
        queries[i] = vectors[i % (N * DIM)];
    return sl_index_tune(shared, queries, SL_F32, SL_TUNE_LEAST_QUERIES, 0, NULL, 1, params, report);
}
static sl_status call_tune(void *params) {
    return call_tune_with(params, NULL);
}
static sl_status call_tune_report(void *out) {
    return call_tune_with(NULL, out);
}
static sl_status call_tuned(void *out) {
    ck_ok(call_tune_with(NULL, NULL));
    return sl_index_get_tuned(shared, 0, out);
}
static sl_status call_stats(void *out) {
    return sl_index_get_stats(shared, out);
}
static sl_status call_report(void *out) {
    return sl_index_check(shared, NULL, out);
}
static sl_status call_storage(void *out) {
    return sl_index_get_storage(shared, out);
}
static sl_status call_plan_params(void *params) {
    sl_plan out = {.struct_size = sizeof out};
    return sl_index_plan(params, 1000, &out);
}
static sl_status call_plan(void *out) {
    sl_index_params params;
    sl_index_params_init(&params);
    params.dim = DIM;
    return sl_index_plan(&params, 1000, out);
}
static sl_status call_build_plan_params(void *params) {
    sl_build_plan out = {.struct_size = sizeof out};
    return sl_index_plan_build(params, 1000, NULL, NULL, NULL, &out);
}
static sl_status call_build_plan(void *out) {
    sl_index_params params;
    sl_index_params_init(&params);
    params.dim = DIM;
    return sl_index_plan_build(&params, 1000, NULL, NULL, NULL, out);
}
static sl_status call_add_times(void *out) {
    sl_add_params params;
    sl_add_params_init(&params);
    params.times = out;
    return sl_index_add(shared, vectors, SL_F32, 1, 0, NULL, &params);
}
static sl_status call_system(void *out) {
    return sl_system_query(out);
}

/* Every struct with a struct_size: filled as its user would, the call it goes to, and what that gives when the struct
 * is in order. */
typedef union any_struct {
    sl_index_params index;
    sl_add_params add;
    sl_search_params search;
    sl_check_params check;
    sl_save_params save;
    sl_open_params open;
    sl_exact_params exact;
    sl_tune_params tune;
    sl_tune_report tune_report;
    sl_tuned tuned;
    sl_index_stats stats;
    sl_check_report report;
    sl_index_storage storage;
    sl_plan plan;
    sl_build_plan build_plan;
    sl_add_times times;
    sl_system system;
    unsigned char bytes[600];
} any_struct;

static const struct user {
    sl_status (*call)(void *);
    size_t size;
    sl_status good;
    int is_output;
    const char *remedy;
} users[] = {
    {call_create, sizeof(sl_index_params), SL_OK, 0, "sl_index_params_init"},
    {call_add, sizeof(sl_add_params), SL_OK, 0, "sl_add_params_init"},
    {call_search, sizeof(sl_search_params), SL_OK, 0, "sl_search_params_init"},
    {call_check, sizeof(sl_check_params), SL_OK, 0, "sl_check_params_init"},
    {call_save, sizeof(sl_save_params), SL_EIO, 0, "sl_save_params_init"},
    {call_open, sizeof(sl_open_params), SL_EIO, 0, "sl_open_params_init"},
    {call_exact, sizeof(sl_exact_params), SL_OK, 0, "sl_exact_params_init"},
    {call_tune, sizeof(sl_tune_params), SL_OK, 0, "sl_tune_params_init"},
    {call_tune_report, sizeof(sl_tune_report), SL_OK, 1, "sizeof(sl_tune_report)"},
    {call_tuned, sizeof(sl_tuned), SL_OK, 1, "sizeof(sl_tuned)"},
    {call_stats, sizeof(sl_index_stats), SL_OK, 1, "sizeof(sl_index_stats)"},
    {call_report, sizeof(sl_check_report), SL_OK, 1, "sizeof(sl_check_report)"},
    {call_storage, sizeof(sl_index_storage), SL_OK, 1, "sizeof(sl_index_storage)"},
    {call_plan_params, sizeof(sl_index_params), SL_OK, 0, "sl_index_params_init"},
    {call_plan, sizeof(sl_plan), SL_OK, 1, "sizeof(sl_plan)"},
    {call_build_plan_params, sizeof(sl_index_params), SL_OK, 0, "sl_index_params_init"},
    {call_build_plan, sizeof(sl_build_plan), SL_OK, 1, "sizeof(sl_build_plan)"},
    {call_add_times, sizeof(sl_add_times), SL_OK, 1, "sizeof(sl_add_times)"},
    {call_system, sizeof(sl_system), SL_OK, 1, "sizeof(sl_system)"},
};

static void prepare(const struct user *user, any_struct *s) {
    memset(s, 0, sizeof *s);
    if (user->call == call_create || user->call == call_plan_params || user->call == call_build_plan_params) {
        sl_index_params_init(&s->index);
        s->index.dim = DIM;
    }
    if (user->call == call_add) sl_add_params_init(&s->add);
    if (user->call == call_search) sl_search_params_init(&s->search);
    if (user->call == call_check) sl_check_params_init(&s->check);
    if (user->call == call_save) sl_save_params_init(&s->save);
    if (user->call == call_open) sl_open_params_init(&s->open);
    if (user->call == call_tune) sl_tune_params_init(&s->tune);
    if (user->call == call_exact) {
        sl_exact_params_init(&s->exact);
        s->exact.dim = DIM;
        s->exact.k = 1;
    }
    if (user->is_output) memcpy(s->bytes, &user->size, sizeof user->size);
    size_t size;
    memcpy(&size, s->bytes, sizeof size);
    ck_assert_uint_eq(size, user->size);
}

START_TEST(structs_of_other_versions) {
    const struct user *user = &users[_i];
    any_struct s;
    shared = small();
    size_t sizes[] = {user->size, user->size + 64, 0, 3, SIZE_MAX};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        prepare(user, &s);
        memcpy(s.bytes, &sizes[i], sizeof sizes[i]);
        if (i < 2)
            ck_assert_int_eq(user->call(&s), user->good);
        else
            ck_fails(user->call(&s), SL_EINVAL, user->remedy);
    }
    /* A newer caller's struct: what it asks for is not known here; what it wants filled is zero. */
    size_t larger = user->size + 8;
    prepare(user, &s);
    memcpy(s.bytes, &larger, sizeof larger);
    memset(s.bytes + user->size, 0xaa, 16);
    if (user->is_output) {
        ck_ok(user->call(&s));
        for (size_t i = 0; i < 16; i++)
            ck_assert_uint_eq(s.bytes[user->size + i], i < 8 ? 0 : 0xaa);
    } else {
        ck_fails(user->call(&s), SL_EUNSUPPORTED, user->remedy);
    }
    sl_index_free(shared);
}
END_TEST

/* An older caller's struct ends early: the rest keeps its defaults, and is not written to. */
START_TEST(structs_of_older_programs) {
    any_struct s;
    shared = small();
    sl_index_params_init(&s.index);
    s.index.dim = DIM;
    s.index.struct_size = offsetof(sl_index_params, m);
    memset(s.bytes + s.index.struct_size, 0xee, 32);
    sl_index *index;
    ck_ok(sl_index_create(&s.index, &index));
    sl_index_stats stats = indexes_stats(index);
    ck_assert_uint_eq(stats.m, 16);
    ck_assert_uint_eq(stats.ef_construction, 200);
    ck_assert_uint_eq(stats.dim, DIM);
    sl_index_free(index);

    /* A search from before there were filters: what lies behind its struct is none. */
    memset(&s, 0xee, sizeof s);
    sl_search_params_init_sized(&s.search, offsetof(sl_search_params, accept));
    ck_assert_int_eq(s.bytes[offsetof(sl_search_params, accept)], 0xee);
    uint64_t id;
    sl_search_stats found;
    ck_ok(sl_index_search(shared, vectors, SL_F32, 1, 0, 1, &s.search, &id, NULL, &found));
    ck_assert_uint_eq(found.results, 1);
    sl_searcher *searcher;
    ck_ok(sl_searcher_create(shared, 64, &searcher));
    ck_ok(sl_searcher_search(searcher, vectors, SL_F32, 1, &s.search, &id, NULL, &found));
    ck_assert_uint_eq(found.results, 1);
    sl_searcher_free(searcher);

    memset(&s, 0xee, sizeof s);
    s.stats.struct_size = offsetof(sl_index_stats, seed);
    ck_ok(sl_index_get_stats(shared, &s.stats));
    ck_assert_uint_eq(s.stats.n, N);
    for (size_t i = offsetof(sl_index_stats, seed); i < sizeof s; i++)
        ck_assert_uint_eq(s.bytes[i], 0xee);
    sl_index_free(shared);
}
END_TEST

int main(void) {
    fill();
    TCase *tests = tcase_create("api");
    tcase_add_loop_test(tests, bad_parameters_are_refused, 0, sizeof refused / sizeof *refused);
    tcase_add_test(tests, the_limits_themselves_are_allowed);
    tcase_add_test(tests, any_number_of_threads);
    tcase_add_test(tests, null_is_refused_by_indexes);
    tcase_add_test(tests, null_is_refused_by_the_rest);
    tcase_add_test(tests, exact_ids_end_below_no_id);
    tcase_add_loop_test(tests, structs_of_other_versions, 0, sizeof users / sizeof *users);
    tcase_add_test(tests, structs_of_older_programs);
    return check_main("api", &tests, 1);
}
