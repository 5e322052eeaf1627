/* Indexes of codes i4 whose walks go over coarse rows: long floating-point vectors and integers. */
#include "hnsw/graph/index.h"
#include "tests/support/check_main.h"
#include "tests/support/clusters.h"
#include "tests/support/faults.h"
#include "tests/support/hostile.h"
#include "tests/support/indexes.h"
#include "tests/support/sanitized.h"
#include "tests/support/scratch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N = 1200, QUERIES = 20, K = 10 };

static scratch place;

static void set_up(void) {
    scratch_open(&place);
}

static void tear_down(void) {
    scratch_close(&place);
}

static const struct kind {
    sl_dtype dtype;
    sl_refine refine;
    size_t dim;
    double score_error; /* by the length of the vectors */
} kinds[] = {
    {SL_F32, SL_REFINE_NONE, 130, 0.01}, {SL_F32, SL_REFINE_F32, 130, 1e-5}, {SL_BF16, SL_REFINE_BF16, 200, 1e-4},
    {SL_F32, SL_REFINE_NONE, 300, 0.01}, {SL_F16, SL_REFINE_I16, 300, 1e-4}, {SL_I8, SL_REFINE_NONE, 40, 0},
    {SL_U8, SL_REFINE_NONE, 128, 0},     {SL_I16, SL_REFINE_NONE, 200, 0},
};
#define KINDS (sizeof kinds / sizeof *kinds)

static void params_for(sl_index_params *params, const struct kind *kind, sl_metric metric) {
    indexes_params(params, kind->dim, metric);
    params->dtype = kind->dtype;
    params->codes = SL_CODES_I4;
    params->refine = kind->refine;
}

static unsigned char *vectors_for(const struct kind *kind, size_t n) {
    float *x = clusters_make(n + QUERIES, kind->dim, 0.3, 31);
    unsigned char *rows = clusters_as(kind->dtype, x, (n + QUERIES) * kind->dim);
    free(x);
    return rows;
}

typedef struct answers {
    uint64_t ids[QUERIES * K];
    float scores[QUERIES * K];
} answers;

static answers ask(const sl_index *index, const struct kind *kind, const void *queries) {
    answers a;
    memset(&a, 0, sizeof a);
    indexes_search(index, (vector_rows){queries, kind->dtype, QUERIES}, K, 200, a.ids, a.scores);
    return a;
}

static double recall_of(const answers *a, const struct kind *kind, sl_metric metric, const unsigned char *rows,
                        size_t n) {
    uint64_t truth[QUERIES * K];
    indexes_exact(metric, kind->dim, (vector_rows){rows, kind->dtype, n},
                  (vector_rows){rows + n * kind->dim * sl_dtype_size(kind->dtype), kind->dtype, QUERIES}, K, truth);
    return indexes_recall(a->ids, truth, QUERIES, K);
}

static double true_score(const struct kind *kind, sl_metric metric, const void *a, const void *b) {
    double value;
    ck_ok(sl_score(metric, kind->dtype, a, b, kind->dim, &value));
    return value;
}

/* Scores come from the rows behind the coarse ones, and are exact if those are. */
static void check_scores(const answers *a, const struct kind *kind, sl_metric metric, const unsigned char *rows,
                         size_t n) {
    size_t bytes = kind->dim * sl_dtype_size(kind->dtype);
    for (size_t i = 0; i < QUERIES * K; i++) {
        const unsigned char *query = rows + (n + i / K) * bytes, *vector = rows + a->ids[i] * bytes;
        double wanted = true_score(kind, metric, query, vector), got = (double)a->scores[i];
        if (kind->score_error == 0) {
            ck_assert_float_eq(a->scores[i], (float)wanted);
            continue;
        }
        double x = sqrt(true_score(kind, SL_METRIC_IP, query, query));
        double y = sqrt(true_score(kind, SL_METRIC_IP, vector, vector));
        double unit = metric == SL_METRIC_COSINE ? 1 : metric == SL_METRIC_IP ? x * y : (x + y) * (x + y);
        ck_assert_double_eq_tol(got, wanted, kind->score_error * unit);
    }
}

START_TEST(searched_saved_and_opened) {
    const struct kind *kind = &kinds[_i];
    unsigned char *rows = vectors_for(kind, N);
    const unsigned char *queries = rows + N * kind->dim * sl_dtype_size(kind->dtype);
    for (int metric = 0; metric < 3; metric++) {
        if (SANITIZED && metric != _i % 3) continue; /* for its size */
        sl_index_params params;
        params_for(&params, kind, (sl_metric)metric);
        /* One thread adds: its graph is the same every time. */
        sl_index *index = indexes_make(&params, rows, kind->dtype, N, NULL, 1);
        answers before = ask(index, kind, queries);
        ck_assert_double_ge(recall_of(&before, kind, (sl_metric)metric, rows, N), 0.94);
        check_scores(&before, kind, (sl_metric)metric, rows, N);
        sl_index_stats stats = indexes_stats(index);
        ck_assert_int_eq(stats.codes, SL_CODES_I4);
        ck_assert_int_eq(stats.dtype, sl_dtype_is_float(kind->dtype) ? SL_F32 : kind->dtype);
        ck_assert_double_ge(indexes_sound(index).sampled_recall, 0.98);
        ck_ok(sl_index_save(index, place.path, NULL));
        size_t size, again_size;
        unsigned char *bytes = file_read(place.path, &size);
        ck_assert_uint_eq(size, stats.bytes_total);
        for (int where = SL_PLACE_DRAM; where <= SL_PLACE_MAP; where++) {
            sl_open_params open;
            sl_index *opened;
            sl_open_params_init(&open);
            open.place = (sl_place)where;
            ck_ok(sl_index_open(place.path, &open, &opened));
            answers after = ask(opened, kind, queries);
            ck_assert_mem_eq(&after, &before, sizeof after);
            indexes_sound(opened);
            char copy[SCRATCH_PATH];
            scratch_name(&place, "copy.sl", copy);
            ck_ok(sl_index_save(opened, copy, NULL));
            unsigned char *again = file_read(copy, &again_size);
            ck_assert_uint_eq(again_size, size);
            ck_assert_mem_eq(again, bytes, size);
            free(again);
            sl_index_free(opened);
        }
        free(bytes);
        sl_index_free(index);
    }
    free(rows);
}
END_TEST

static uint32_t learned_from(const sl_index *index) {
    return sl_coarse_learned(&index->graph.coarse);
}

/* One vector at first, then more and more: the projection follows, and vectors added earlier follow too. */
START_TEST(learned_anew_while_it_grows) {
    enum { MANY = 5000 };
    const struct kind *kind = &kinds[_i];
    unsigned char *rows = vectors_for(kind, MANY);
    size_t bytes = kind->dim * sl_dtype_size(kind->dtype), n = 0, some = 1;
    sl_index_params params;
    params_for(&params, kind, SL_METRIC_L2);
    sl_index *index;
    ck_ok(sl_index_create(&params, &index));
    size_t times = 0, learned = 0;
    while (n < MANY) {
        ck_ok(indexes_add(index, rows + n * bytes, kind->dtype, some, NULL));
        n += some;
        times += learned_from(index) != learned;
        learned = learned_from(index);
        ck_assert_uint_lt(n, 8 * learned);
        some = n < 50 ? 1 : n / 3 + 1;
        if (some > MANY - n) some = MANY - n;
    }
    ck_assert_uint_ge(times, 4);
    ck_assert_uint_le(times, 6);
    indexes_sound(index);
    answers a = ask(index, kind, rows + MANY * bytes);
    ck_assert_double_ge(recall_of(&a, kind, SL_METRIC_L2, rows, MANY), 0.93);
    sl_index_free(index);
    free(rows);
}
END_TEST

/* The same in a file written in place. A reader, and a later opening, find what an index in memory finds, whether or
 * not the projection was learnt anew. */
START_TEST(learned_anew_in_a_file) {
    enum { FIRST = 30, MANY = 2000 };
    const struct kind *kind = &kinds[_i];
    unsigned char *rows = vectors_for(kind, MANY);
    const unsigned char *queries = rows + MANY * kind->dim * sl_dtype_size(kind->dtype);
    size_t bytes = kind->dim * sl_dtype_size(kind->dtype), n = FIRST, times = 0;
    sl_index_params params;
    sl_save_params save;
    sl_open_params open;
    sl_index *writer;
    params_for(&params, kind, SL_METRIC_L2);
    sl_index *index = indexes_make(&params, rows, kind->dtype, n, NULL, 1);
    indexes_save_params(&save);
    save.room = MANY;
    ck_ok(sl_index_save(index, place.path, &save));
    sl_open_params_init(&open);
    open.writable = 1;
    ck_ok(sl_index_open(place.path, &open, &writer));
    sl_index *reader = indexes_open(place.path, SL_PLACE_MAP);
    for (size_t some; n < MANY; n += some) {
        const uint32_t learned = learned_from(writer);
        some = 2 * n < MANY - n ? 2 * n : MANY - n;
        ck_ok(indexes_add(index, rows + n * bytes, kind->dtype, some, NULL));
        ck_ok(indexes_add(writer, rows + n * bytes, kind->dtype, some, NULL));
        ck_ok(sl_index_sync(writer));
        times += learned_from(writer) != learned;
        const answers wanted = ask(index, kind, queries), own = ask(writer, kind, queries);
        const answers read = ask(reader, kind, queries);
        sl_index *fresh = indexes_open(place.path, SL_PLACE_MAP);
        const answers opened = ask(fresh, kind, queries);
        ck_assert_mem_eq(&own, &wanted, sizeof wanted);
        ck_assert_mem_eq(&read, &wanted, sizeof wanted);
        ck_assert_mem_eq(&opened, &wanted, sizeof wanted);
        sl_index_free(fresh);
    }
    ck_assert_uint_ge(times, 1);
    sl_index_free(reader);
    sl_index_free(writer);
    sl_index_free(index);
    free(rows);
}
END_TEST

/* Batches that scan all partitions score coarse rows too, and find the exact results. */
START_TEST(scanned_in_batches) {
    enum { MANY = 5000 };
    const struct kind *kind = &kinds[_i];
    unsigned char *rows = vectors_for(kind, MANY);
    for (int metric = 0; metric < 3; metric++) {
        if (SANITIZED && metric != _i % 3) continue; /* for its size */
        sl_index_params params;
        params_for(&params, kind, (sl_metric)metric);
        sl_index *index = indexes_make(&params, rows, kind->dtype, MANY, NULL, 1);
        indexes_sound(index);
        sl_search_params search;
        sl_search_params_init(&search);
        search.ef = 200;
        search.probes = MANY;
        answers a;
        memset(&a, 0, sizeof a);
        ck_ok(sl_index_search(index, rows + MANY * kind->dim * sl_dtype_size(kind->dtype), kind->dtype, QUERIES, 0, K,
                              &search, a.ids, a.scores, NULL));
        ck_assert_double_ge(recall_of(&a, kind, (sl_metric)metric, rows, MANY), 0.94);
        check_scores(&a, kind, (sl_metric)metric, rows, MANY);
        sl_index_free(index);
    }
    free(rows);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Adds that do not come to an end
 * ------------------------------------------------------------------------------------------------------------- */

static int stop_at_once(void *ctx, uint64_t done, uint64_t total) {
    (void)ctx, (void)total;
    return done > 0;
}

START_TEST(cancelled_adds) {
    const struct kind *kind = &kinds[_i];
    unsigned char *rows = vectors_for(kind, N);
    size_t bytes = kind->dim * sl_dtype_size(kind->dtype);
    for (size_t first = 0; first <= 100; first += 100) {
        sl_index_params params;
        sl_index *index;
        params_for(&params, kind, SL_METRIC_COSINE);
        ck_ok(sl_index_create(&params, &index));
        if (first) ck_ok(indexes_add(index, rows, kind->dtype, first, NULL));
        sl_add_params add;
        sl_add_params_init(&add);
        add.threads = 1;
        add.progress = stop_at_once;
        ck_assert_int_eq(sl_index_add(index, rows + first * bytes, kind->dtype, N - first, 0, NULL, &add),
                         SL_ECANCELED);
        ck_assert_uint_eq(sl_index_size(index), first);
        if (first) indexes_sound(index);
        ck_ok(sl_index_save(index, place.path, NULL));
        ck_ok(indexes_add(index, rows + first * bytes, kind->dtype, N - first, NULL));
        if (!first) ck_assert_uint_eq(learned_from(index), N);
        indexes_sound(index);
        answers a = ask(index, kind, rows + N * bytes);
        ck_assert_double_ge(recall_of(&a, kind, SL_METRIC_COSINE, rows, N), 0.94);
        sl_index_free(index);
    }
    free(rows);
}
END_TEST

/* An add that learns anew runs out of memory somewhere: the index answers as before, and the add can be repeated. */
START_TEST(adds_without_memory) {
    enum { FIRST = 60, MORE = 500 };
    const struct kind *kind = &kinds[_i];
    unsigned char *rows = vectors_for(kind, N);
    const unsigned char *queries = rows + N * kind->dim * sl_dtype_size(kind->dtype);
    fault_allocator memory;
    fault_allocator_init(&memory, 0);
    sl_index_params params;
    params_for(&params, kind, SL_METRIC_IP);
    params.allocator = &memory.allocator;
    for (size_t first = 0; first <= FIRST; first += FIRST) {
        sl_index *index;
        ck_ok(sl_index_create(&params, &index));
        if (first) ck_ok(indexes_add(index, rows, kind->dtype, first, NULL));
        answers before = ask(index, kind, queries);
        size_t failures = 0;
        for (size_t at = 1;; at++, failures++) {
            memory.calls = 0;
            memory.fail_at = at;
            sl_status status = indexes_add(index, rows, kind->dtype, MORE, NULL);
            memory.fail_at = 0;
            /* The last blocks are those of the proof, which can wait. */
            if (status == SL_OK) break;
            ck_fails(status, SL_ENOMEM, "cannot allocate");
            ck_assert_uint_eq(sl_index_size(index), first);
            answers after = ask(index, kind, queries);
            ck_assert_mem_eq(&after, &before, sizeof after);
        }
        ck_assert_uint_gt(failures, 15);
        indexes_sound(index);
        sl_index_free(index);
        ck_assert_uint_eq(memory.live_blocks, 0);
    }
    free(rows);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Files that lie
 * ------------------------------------------------------------------------------------------------------------- */

static const sl_file_section *section_of(const unsigned char *bytes, uint32_t kind) {
    const sl_file_header *header = (const void *)bytes;
    for (uint32_t i = 0; i < header->section_count; i++)
        if (header->sections[i].kind == kind) return &header->sections[i];
    ck_abort_msg("no section %u", kind);
    return NULL;
}

static void make_file(const struct kind *kind, sl_metric metric) {
    unsigned char *rows = vectors_for(kind, N);
    sl_index_params params;
    params_for(&params, kind, metric);
    sl_index *index = indexes_make(&params, rows, kind->dtype, N, NULL, 1);
    ck_ok(sl_index_save(index, place.path, NULL));
    sl_index_free(index);
    free(rows);
}

/* Changes every word of the section that may be a float, with a valid seal. */
static void fill_section(uint32_t kind, uint32_t word) {
    size_t size;
    unsigned char *bytes = file_read(place.path, &size);
    const sl_file_section *section = section_of(bytes, kind);
    for (uint64_t at = 0; at + 4 <= section->size; at += 4)
        memcpy(bytes + section->offset + at, &word, sizeof word);
    hostile_seal(bytes, size);
    file_write(place.path, bytes, size);
    free(bytes);
}

static size_t bad_vectors_of(const char *path) {
    sl_index *index;
    ck_ok(sl_index_open(path, NULL, &index));
    sl_check_params params;
    sl_check_params_init(&params);
    params.sample = 0;
    sl_check_report report = {.struct_size = sizeof report};
    sl_status status = sl_index_check(index, &params, &report);
    ck_assert_int_eq(status, report.bad_vectors ? SL_ECORRUPT : SL_OK);
    sl_index_free(index);
    return report.bad_vectors;
}

static const uint32_t words[] = {0x7fc00000, 0x7f800000, 0xff800000, 0x7f7fffff, 0xff7fffff, 0, 0xffffffff, 0x80808080};

START_TEST(projections_are_not_believed) {
    for (size_t w = 0; w < sizeof words / sizeof *words; w++) {
        make_file(&kinds[w % 2 ? 0 : 6], (sl_metric)(w % 3));
        fill_section(SL_SECTION_PROJECTION, words[w]);
        float value;
        memcpy(&value, &words[w], sizeof value);
        size_t size;
        free(file_read(place.path, &size));
        ck_assert_int_eq(hostile_use(place.path, size, SL_PLACE_DRAM, NULL), isfinite(value) ? SL_OK : SL_ECORRUPT);
        ck_assert_int_eq(hostile_use(place.path, size, SL_PLACE_MAP, NULL), SL_OK);
        ck_assert_uint_eq(bad_vectors_of(place.path), isfinite(value) ? 0 : N);
    }
}
END_TEST

START_TEST(coarse_rows_are_not_believed) {
    for (size_t w = 0; w < sizeof words / sizeof *words; w++) {
        make_file(&kinds[w % 2 ? 0 : 6], (sl_metric)(w % 3));
        fill_section(SL_SECTION_COARSE, words[w]);
        float value;
        memcpy(&value, &words[w], sizeof value);
        size_t size;
        free(file_read(place.path, &size));
        for (int where = SL_PLACE_DRAM; where <= SL_PLACE_MAP; where++)
            ck_assert_int_eq(hostile_use(place.path, size, (sl_place)where, NULL), SL_OK);
        ck_assert_uint_eq(bad_vectors_of(place.path), isfinite(value) ? 0 : N);
    }
}
END_TEST

/* Sections of other sizes than the header implies, or none. */
START_TEST(sections_must_fit) {
    static const uint32_t sections[] = {SL_SECTION_COARSE, SL_SECTION_PROJECTION};
    make_file(&kinds[0], SL_METRIC_L2);
    size_t size;
    unsigned char *bytes = file_read(place.path, &size);
    for (size_t s = 0; s < 2; s++)
        for (int change = 0; change < 2; change++) {
            sl_file_section *section = (sl_file_section *)(uintptr_t)section_of(bytes, sections[s]), was = *section;
            section->size -= 4;
            if (change) *section = (sl_file_section){.kind = 31, .offset = was.offset, .size = was.size};
            hostile_seal(bytes, size);
            file_write(place.path, bytes, size);
            *section = was;
            sl_index *index;
            ck_fails(sl_index_open(place.path, NULL, &index), SL_ECORRUPT, "where the header implies");
        }
    free(bytes);
}
END_TEST

static int run(void) {
    TCase *use = tcase_create("use"), *files = tcase_create("files");
    tcase_add_checked_fixture(use, set_up, tear_down);
    tcase_add_checked_fixture(files, set_up, tear_down);
    tcase_set_timeout(use, 300);
    tcase_add_loop_test(use, searched_saved_and_opened, 0, (int)KINDS);
    tcase_add_loop_test(use, learned_anew_while_it_grows, 5, 7);
    tcase_add_loop_test(use, learned_anew_in_a_file, 5, 7);
    tcase_add_loop_test(use, learned_anew_while_it_grows, 3, 4);
    tcase_add_loop_test(use, scanned_in_batches, 0, 1);
    tcase_add_loop_test(use, scanned_in_batches, 6, 7);
    tcase_add_loop_test(use, cancelled_adds, 3, 4);
    tcase_add_loop_test(use, cancelled_adds, 6, 7);
    tcase_add_loop_test(use, adds_without_memory, 0, 1);
    tcase_add_loop_test(use, adds_without_memory, 5, 6);
    tcase_add_test(files, projections_are_not_believed);
    tcase_add_test(files, coarse_rows_are_not_believed);
    tcase_add_test(files, sections_must_fit);
    TCase *const all[] = {use, files};
    return check_main("coarse_index", all, 2);
}

int main(void) {
    return run();
}
