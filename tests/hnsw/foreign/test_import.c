/* Files of other libraries: the same graph comes out, whatever holds it, and what is damaged is refused. The files are
 * written from indexes of our own. Files that the libraries wrote themselves are in tests/golden. */
#include "base/random.h"
#include "hnsw/graph/entry.h"
#include "hnsw/graph/upper.h"
#include "tests/support/check_main.h"
#include "tests/support/clusters.h"
#include "tests/support/faults.h"
#include "tests/support/foreign_files.h"
#include "tests/support/indexes.h"
#include "tests/support/scratch.h"

#include <math.h>
#include <shortlist_import.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { N = 700, GONE = 20, DIM = 8, Q = 50, K = 5, EF = 40 };
enum { HNSWLIB_HEADER = 96 };

static scratch place;
static float *x; /* N rows, and then Q queries */
static uint64_t ids[N];

static sl_index *make(sl_metric metric, int deletes) {
    sl_index_params params;
    indexes_params(&params, DIM, metric);
    params.codes = SL_CODES_F32;
    sl_index *index = indexes_make(&params, x, SL_F32, N, ids, 1);
    if (deletes) ck_ok(sl_index_delete(index, ids + 100, GONE));
    return index;
}

static void set_up(void) {
    scratch_open(&place);
    x = clusters_make(N + Q, DIM, 0.3, 5);
    for (size_t i = 0; i < N; i++)
        ids[i] = 1000000007 * (i + 1);
}

static void tear_down(void) {
    scratch_close(&place);
    free(x);
}

static sl_status import(sl_foreign_format format, int metric, const sl_index_params *index, sl_index **out) {
    sl_import_params params;
    sl_import_params_init(&params);
    params.format = format;
    params.metric = metric;
    params.index = index;
    params.threads = 1;
    return sl_index_import(place.path, &params, out);
}

/* The same for bytes. */
static sl_status import_bytes(const void *at, size_t size, sl_foreign_format format, int metric,
                              const sl_index_params *index, sl_index **out) {
    file_write(place.path, at, size);
    return import(format, metric, index, out);
}

/* Imports with codes that keep the floats, and frees the bytes. */
static sl_index *imported(foreign_bytes bytes, sl_foreign_format format, int metric) {
    sl_index_params params;
    sl_index *index;
    sl_index_params_init(&params);
    params.codes = SL_CODES_F32;
    ck_ok(import_bytes(bytes.at, bytes.size, format, metric, &params, &index));
    free(bytes.at);
    return index;
}

static void ck_same_list(const sl_layer *a, const sl_layer *b, uint32_t id) {
    ck_assert_mem_eq(sl_layer_links(a, id), sl_layer_links(b, id), a->degree * sizeof(uint32_t));
}

/* Asserts that two graphs have the same levels and lists. */
static void ck_same_graph(const sl_graph *a, const sl_graph *b) {
    const sl_entry one = sl_entry_get(a), other = sl_entry_get(b);
    ck_assert_uint_eq(a->n, b->n);
    ck_assert_uint_eq(a->m, b->m);
    ck_assert_uint_eq(a->upper.count, b->upper.count);
    ck_assert_uint_gt(a->upper.count, 10);
    ck_assert_uint_eq(one.node, other.node);
    ck_assert_uint_eq(one.level, other.level);
    for (uint32_t level = 0; level <= one.level; level++) {
        const sl_layer la = sl_layer_at(a, level), lb = sl_layer_at(b, level);
        for (uint32_t id = 0; id < la.count; id++)
            if (sl_layer_links(&la, id)) ck_same_list(&la, &lb, id);
    }
}

/* Asserts that two indexes find the same. */
static void ck_same_answers(const sl_index *a, const sl_index *b) {
    uint64_t found[2][Q * K];
    float scores[2][Q * K];
    const vector_rows queries = {x + N * DIM, SL_F32, Q};
    indexes_search(a, queries, K, EF, found[0], scores[0]);
    indexes_search(b, queries, K, EF, found[1], scores[1]);
    ck_assert_mem_eq(found[0], found[1], sizeof found[0]);
    ck_assert_mem_eq(scores[0], scores[1], sizeof scores[0]);
}

/* ---------------------------------------------------------------------------------------------------------------
 * What comes out
 * ------------------------------------------------------------------------------------------------------------- */

static const sl_metric metrics[] = {SL_METRIC_L2, SL_METRIC_IP, SL_METRIC_COSINE};

START_TEST(hnswlib_graphs) {
    sl_index *own = make(metrics[_i], 1), *index = imported(foreign_hnswlib(own), SL_FOREIGN_HNSWLIB, (int)metrics[_i]);
    const sl_index_stats stats = indexes_stats(index);
    ck_assert_uint_eq(stats.n, N - GONE);
    ck_assert_uint_eq(stats.deleted, GONE);
    ck_assert_uint_eq(stats.ef_construction, 60);
    ck_same_graph(&own->graph, &index->graph);
    ck_same_answers(own, index);
    ck_ok(sl_index_undelete(index, ids + 100, 1));
    ck_fails(indexes_add(index, x, SL_F32, 1, ids + 3), SL_EEXIST, "id");
    indexes_sound(index);
    sl_index_free(index);
    sl_index_free(own);
}
END_TEST

/* Cosine's file is one of inner products, as Faiss has no other. */
START_TEST(faiss_graphs) {
    const int metric = metrics[_i] == SL_METRIC_COSINE ? SL_METRIC_COSINE : SL_METRIC_OF_FILE;
    sl_index *own = make(metrics[_i], 0);
    sl_index *index = imported(foreign_faiss(own, FOREIGN_IDS | FOREIGN_GRAPH), SL_FOREIGN_FAISS, metric);
    ck_assert_int_eq(indexes_stats(index).metric, metrics[_i]);
    ck_same_graph(&own->graph, &index->graph);
    ck_same_answers(own, index);
    sl_index_free(index);
    sl_index_free(own);
}
END_TEST

/* Without an id map vectors are numbered; without a graph they are linked. */
START_TEST(faiss_vectors_alone) {
    sl_index *own = make(SL_METRIC_L2, 0), *index;
    uint64_t found[Q * K], truth[Q * K];
    const vector_rows queries = {x + N * DIM, SL_F32, Q};
    indexes_exact(SL_METRIC_L2, DIM, (vector_rows){x, SL_F32, N}, queries, K, truth);
    for (unsigned parts = 0; parts <= FOREIGN_GRAPH; parts += FOREIGN_GRAPH) {
        index = imported(foreign_faiss(own, parts), SL_FOREIGN_FAISS, SL_METRIC_OF_FILE);
        indexes_search(index, queries, K, 200, found, NULL);
        ck_assert_double_ge(indexes_recall(found, truth, Q, K), 0.999);
        indexes_sound(index);
        sl_index_free(index);
    }
    index = imported(foreign_faiss(own, FOREIGN_IDS), SL_FOREIGN_FAISS, SL_METRIC_OF_FILE);
    int has;
    ck_ok(sl_index_contains(index, ids[N - 1], &has));
    ck_assert_int_eq(has, 1);
    sl_index_free(index);
    sl_index_free(own);
}
END_TEST

/* Bytes under L2 stay bytes; the dimension tells them from floats. */
START_TEST(hnswlib_bytes) {
    sl_index_params params;
    static uint8_t rows[N][DIM];
    for (size_t i = 0; i < sizeof rows; i++)
        rows[i / DIM][i % DIM] = (uint8_t)sl_random_at(3, i);
    indexes_params(&params, DIM, SL_METRIC_L2);
    params.dtype = SL_U8;
    sl_index *own = indexes_make(&params, rows, SL_U8, N, NULL, 1), *index;
    const foreign_bytes bytes = foreign_hnswlib(own);
    params = (sl_index_params){0};
    sl_index_params_init(&params);
    params.dim = DIM;
    ck_ok(import_bytes(bytes.at, bytes.size, SL_FOREIGN_HNSWLIB, SL_METRIC_L2, &params, &index));
    ck_same_graph(&own->graph, &index->graph);
    ck_assert_int_eq(indexes_stats(index).refine, SL_REFINE_NONE);
    uint8_t row[DIM];
    const uint64_t id = 17;
    ck_ok(sl_index_get(index, &id, 1, SL_U8, row));
    ck_assert_mem_eq(row, rows[17], DIM);
    sl_index_free(index);
    sl_index_free(own);
    free(bytes.at);
}
END_TEST

START_TEST(nothing_in_it) {
    sl_index_params params;
    indexes_params(&params, DIM, SL_METRIC_L2);
    sl_index *own;
    ck_ok(sl_index_create(&params, &own));
    for (int faiss = 0; faiss < 2; faiss++) {
        sl_index *index = imported(faiss ? foreign_faiss(own, FOREIGN_GRAPH) : foreign_hnswlib(own),
                                   (sl_foreign_format)faiss, SL_METRIC_L2);
        ck_assert_uint_eq(sl_index_size(index), 0);
        ck_ok(indexes_add(index, x, SL_F32, N, NULL));
        indexes_sound(index);
        sl_index_free(index);
    }
    sl_index_free(own);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Files that the libraries wrote themselves: see tests/golden/foreign/make.py
 * ------------------------------------------------------------------------------------------------------------- */

enum { GOLDEN_N = 240, GOLDEN_DIM = 6, GOLDEN_GONE = 20, GOLDEN_CODED = 50 };

static uint64_t golden_id(size_t row) {
    return 10 * row + 5;
}

static void golden_rows(float rows[GOLDEN_N][GOLDEN_DIM]) {
    for (uint64_t i = 0; i < GOLDEN_N * GOLDEN_DIM; i++)
        rows[i / GOLDEN_DIM][i % GOLDEN_DIM] = (float)((i * 2654435761 >> 7) % 1000) / 500 - 1;
}

static sl_index *import_golden(const char *name, sl_foreign_format format, int metric) {
    char path[1024];
    sl_import_params params;
    sl_index_params how;
    sl_index *index;
    sl_import_params_init(&params);
    sl_index_params_init(&how);
    how.codes = SL_CODES_F32;
    params.format = format;
    params.metric = metric;
    params.index = &how;
    snprintf(path, sizeof path, "%s/%s", FOREIGN_FILES, name);
    ck_ok(sl_index_import(path, &params, &index));
    indexes_sound(index);
    return index;
}

/* Each of the rows from `first` on finds itself, by a walk. */
static void ck_finds_itself(const sl_index *index, float rows[GOLDEN_N][GOLDEN_DIM], size_t first) {
    for (size_t row = first; row < GOLDEN_N; row++) {
        uint64_t id;
        float score;
        indexes_search(index, (vector_rows){rows[row], SL_F32, 1}, 1, EF, &id, &score);
        ck_assert_uint_eq(id, golden_id(row));
        ck_assert(score <= 0);
    }
}

START_TEST(golden_hnswlib) {
    float rows[GOLDEN_N][GOLDEN_DIM];
    const uint64_t gone = golden_id(3);
    uint64_t id;
    golden_rows(rows);
    sl_index *index = import_golden("hnswlib-0.8.0.bin", SL_FOREIGN_HNSWLIB, SL_METRIC_L2);
    const sl_index_stats stats = indexes_stats(index);
    ck_assert_uint_eq(stats.n, GOLDEN_N - GOLDEN_GONE);
    ck_assert_uint_eq(stats.deleted, GOLDEN_GONE);
    ck_assert_uint_eq(stats.m, 4);
    ck_finds_itself(index, rows, GOLDEN_GONE);
    indexes_search(index, (vector_rows){rows[3], SL_F32, 1}, 1, EF, &id, NULL);
    ck_assert_uint_ne(id, gone);
    ck_ok(sl_index_undelete(index, &gone, 1));
    indexes_search(index, (vector_rows){rows[3], SL_F32, 1}, 1, EF, &id, NULL);
    ck_assert_uint_eq(id, gone);
    sl_index_free(index);
}
END_TEST

START_TEST(golden_faiss) {
    float rows[GOLDEN_N][GOLDEN_DIM];
    golden_rows(rows);
    sl_index *index = import_golden("faiss-1.15.1-hnsw-flat.faiss", SL_FOREIGN_FAISS, SL_METRIC_OF_FILE);
    ck_finds_itself(index, rows, 0);
    ck_assert_int_eq(indexes_stats(index).metric, SL_METRIC_L2);
    sl_index_free(index);
}
END_TEST

static void ck_decoded(const char *name, size_t n, const float *wanted) {
    sl_index *index = import_golden(name, SL_FOREIGN_FAISS, SL_METRIC_OF_FILE);
    ck_assert_uint_eq(sl_index_size(index), n);
    for (uint64_t row = 0; row < n; row++) {
        float got[GOLDEN_DIM];
        ck_ok(sl_index_get(index, &row, 1, SL_F32, got));
        for (size_t d = 0; d < GOLDEN_DIM; d++)
            ck_assert_float_eq_tol(got[d], wanted[row * GOLDEN_DIM + d], 1e-6F);
    }
    sl_index_free(index);
}

START_TEST(golden_faiss_codes) {
    size_t size;
    float *wanted = (void *)file_read(FOREIGN_FILES "/decoded.f32", &size);
    ck_assert_uint_eq(size, (GOLDEN_N + GOLDEN_CODED) * GOLDEN_DIM * sizeof *wanted);
    ck_decoded("faiss-1.15.1-hnsw-sq8.faiss", GOLDEN_N, wanted);
    ck_decoded("faiss-1.15.1-sq6.faiss", GOLDEN_CODED, wanted + GOLDEN_N * GOLDEN_DIM);
    free(wanted);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Scalar quantisers
 * ------------------------------------------------------------------------------------------------------------- */

enum { ROWS = 9 };

/* One row of each quantiser, and the floats that Faiss decodes it to. */
typedef struct coded {
    uint32_t type;
    unsigned bits;
    int uniform, direct;
} coded;

static const coded kinds[] = {{0, 8, 0, 0}, {1, 4, 0, 0}, {2, 8, 1, 0},  {3, 4, 1, 0}, {4, 16, 0, 0},
                              {5, 8, 0, 1}, {6, 6, 0, 0}, {7, 16, 0, 0}, {8, 8, 0, 1}};

static double range_of(const coded *kind, size_t d, int width) {
    const double place = kind->uniform ? 3 : (double)d;
    return width ? 2 + 0.25 * place : -1 - 0.5 * place;
}

static double decoded(const coded *kind, unsigned code, size_t d) {
    if (kind->bits == 16) return 1 + 0.25 * (code % 8);
    if (kind->direct) return kind->type == 8 ? (double)code - 128 : (double)code;
    return range_of(kind, d, 0) + (code + 0.5) / ((1u << kind->bits) - 1) * range_of(kind, d, 1);
}

/* 1 to 2.75 in steps of 0.25: fp16 has 10 bits behind the point, bf16 7. */
static uint16_t half_of(const coded *kind, unsigned code) {
    return (uint16_t)(kind->type == 4 ? code % 8 < 4 ? 0x3c00 | code % 8 << 8 : 0x4000 | (code % 8 - 4) << 7
                      : code % 8 < 4  ? 0x3f80 | code % 8 << 5
                                      : 0x4000 | (code % 8 - 4) << 4);
}

static void put_code(unsigned char *row, const coded *kind, size_t d, unsigned code) {
    const uint16_t half = half_of(kind, code);
    if (kind->bits == 16) memcpy(row + 2 * d, &half, 2);
    for (unsigned bit = 0; bit < kind->bits && kind->bits < 16; bit++)
        row[(d * kind->bits + bit) / 8] |= (unsigned char)((code >> bit & 1) << (d * kind->bits + bit) % 8);
}

static void put_quantiser(foreign_bytes *bytes, const coded *kind) {
    const size_t ranges = kind->bits == 16 || kind->direct ? 0 : kind->uniform ? 1 : DIM;
    foreign_put_u32(bytes, kind->type);
    foreign_put_u32(bytes, 0);
    foreign_put_u32(bytes, 0);
    foreign_put_u64(bytes, DIM);
    foreign_put_u64(bytes, (DIM * kind->bits + 7) / 8);
    foreign_put_u64(bytes, 2 * ranges);
    for (size_t i = 0; i < 2 * ranges; i++)
        foreign_put(bytes, &(float){(float)range_of(kind, i % ranges, i >= ranges)}, sizeof(float));
}

START_TEST(faiss_codes) {
    const coded *kind = &kinds[_i];
    const size_t size = (DIM * kind->bits + 7) / 8;
    foreign_bytes bytes = {0};
    foreign_faiss_class(&bytes, "IxSQ", DIM, ROWS, 1);
    put_quantiser(&bytes, kind);
    foreign_put_u64(&bytes, ROWS * size);
    for (size_t row = 0; row < ROWS; row++) {
        unsigned char codes[2 * DIM] = {0};
        for (size_t d = 0; d < DIM; d++)
            put_code(codes, kind, d, (unsigned)(37 * row + 11 * d) & ((1u << (kind->bits < 16 ? kind->bits : 8)) - 1));
        foreign_put(&bytes, codes, size);
    }
    sl_index *index = imported(bytes, SL_FOREIGN_FAISS, SL_METRIC_OF_FILE);
    for (uint64_t row = 0; row < ROWS; row++) {
        float got[DIM];
        ck_ok(sl_index_get(index, &row, 1, SL_F32, got));
        for (size_t d = 0; d < DIM; d++) {
            const unsigned code = (unsigned)(37 * row + 11 * d) & ((1u << (kind->bits < 16 ? kind->bits : 8)) - 1);
            ck_assert_double_eq_tol((double)got[d], decoded(kind, code, d), 1e-5);
        }
    }
    sl_index_free(index);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * What is refused
 * ------------------------------------------------------------------------------------------------------------- */

/* Asserts that hnswlib bytes with a word of `width` bytes changed at `at` are refused. */
static void ck_changed(const foreign_bytes *bytes, size_t at, uint64_t word, size_t width, sl_status status,
                       const char *text) {
    sl_index *index;
    unsigned char was[8];
    memcpy(was, bytes->at + at, width);
    memcpy(bytes->at + at, &word, width);
    ck_fails(import_bytes(bytes->at, bytes->size, SL_FOREIGN_HNSWLIB, SL_METRIC_L2, NULL, &index), status, text);
    ck_assert_ptr_null(index);
    ck_assert_ptr_nonnull(strstr(sl_last_error(), place.path));
    memcpy(bytes->at + at, was, width);
}

START_TEST(hnswlib_lies) {
    sl_index *own = make(SL_METRIC_L2, 1), *index;
    const foreign_bytes bytes = foreign_hnswlib(own);
    const size_t element = 4 * (2 * 8 + 1) + 4 * DIM + 8, upper = HNSWLIB_HEADER + N * element;
    ck_changed(&bytes, 0, 8, 8, SL_EFORMAT, "no index of hnswlib");
    ck_changed(&bytes, 8, N - 1, 8, SL_ECORRUPT, "room for 699");
    ck_changed(&bytes, 16, UINT64_MAX / 2, 8, SL_ECORRUPT, "vectors");
    ck_changed(&bytes, 24, element + 4, 8, SL_EFORMAT, "no index of hnswlib");
    ck_changed(&bytes, 32, 0, 8, SL_EFORMAT, "no index of hnswlib");
    ck_changed(&bytes, 40, UINT64_MAX, 8, SL_EFORMAT, "no index of hnswlib");
    ck_changed(&bytes, 48, 200, 4, SL_ECORRUPT, "entry point");
    ck_changed(&bytes, 48, 20, 4, SL_ECORRUPT, "entry point");
    ck_changed(&bytes, 52, N, 4, SL_ECORRUPT, "entry point");
    ck_changed(&bytes, 56, 9, 8, SL_EFORMAT, "no index of hnswlib");
    ck_changed(&bytes, 64, 1 << 20, 8, SL_EFORMAT, "no index of hnswlib");
    ck_changed(&bytes, HNSWLIB_HEADER, 17, 2, SL_ECORRUPT, "more links on level 0");
    ck_changed(&bytes, HNSWLIB_HEADER + 4, N, 4, SL_ECORRUPT, "links row 0 on level 0 to row 700");
    ck_changed(&bytes, HNSWLIB_HEADER + element - 8, ids[1], 8, SL_EEXIST, "");
    ck_changed(&bytes, HNSWLIB_HEADER + element - 8, UINT64_MAX, 8, SL_EINVAL, "");
    ck_changed(&bytes, HNSWLIB_HEADER + element - 12, 0x7fc00000, 4, SL_EVALUE, "row 0");
    ck_changed(&bytes, upper, 5, 4, SL_ECORRUPT, "upper lists for element 0");
    ck_fails(import_bytes(bytes.at, bytes.size, SL_FOREIGN_HNSWLIB, SL_METRIC_OF_FILE, NULL, &index), SL_EINVAL,
             "does not tell its metric");
    ck_fails(import_bytes(bytes.at, bytes.size, SL_FOREIGN_FAISS, SL_METRIC_L2, NULL, &index), SL_EFORMAT,
             "no index of Faiss");
    ck_ok(import_bytes(bytes.at, bytes.size, SL_FOREIGN_HNSWLIB, SL_METRIC_L2, NULL, &index));
    ck_assert_int_eq(indexes_stats(index).refine, SL_REFINE_BF16);
    sl_index_free(index);
    free(bytes.at);
    sl_index_free(own);
}
END_TEST

/* A link on an upper level to a row that is not there. */
START_TEST(hnswlib_links_to_other_levels) {
    sl_index *own = make(SL_METRIC_L2, 0);
    const foreign_bytes bytes = foreign_hnswlib(own);
    const size_t element = 4 * (2 * 8 + 1) + 4 * DIM + 8;
    size_t at = HNSWLIB_HEADER + N * element;
    uint32_t low = 0, slot;
    while (sl_slot_of(&own->graph, low) != SL_NONE)
        low++;
    for (uint32_t row = 0; !sl_level_and_slot(&own->graph, row, &slot); row++)
        at += 4;
    ck_changed(&bytes, at + 8, low, 4, SL_ECORRUPT, "on level 1 to row");
    free(bytes.at);
    sl_index_free(own);
}
END_TEST

START_TEST(hnswlib_of_other_kinds) {
    sl_index *own = make(SL_METRIC_L2, 0), *index;
    foreign_bytes bytes = foreign_hnswlib(own);
    sl_index_params params;
    sl_index_params_init(&params);
    params.dim = DIM + 1;
    ck_fails(import_bytes(bytes.at, bytes.size, SL_FOREIGN_HNSWLIB, SL_METRIC_L2, &params, &index), SL_EDIM,
             "8 dimensions of float32, or 32 of uint8");
    for (size_t i = 0; i < HNSWLIB_HEADER; i += i == 48 || i == 52 ? 4 : 8)
        for (size_t width = i == 48 || i == 52 ? 4 : 8, j = 0; j < width / 2; j++) {
            const unsigned char byte = bytes.at[i + j];
            bytes.at[i + j] = bytes.at[i + width - 1 - j];
            bytes.at[i + width - 1 - j] = byte;
        }
    ck_fails(import_bytes(bytes.at, bytes.size, SL_FOREIGN_HNSWLIB, SL_METRIC_L2, NULL, &index), SL_EFORMAT,
             "big-endian");
    ck_fails(import_bytes("", 0, SL_FOREIGN_HNSWLIB, SL_METRIC_L2, NULL, &index), SL_EFORMAT, "is empty");
    ck_assert_int_eq(unlink(place.path), 0);
    ck_fails(import(SL_FOREIGN_HNSWLIB, SL_METRIC_L2, NULL, &index), SL_EIO, "cannot open");
    free(bytes.at);
    sl_index_free(own);
}
END_TEST

static void ck_faiss(foreign_bytes bytes, int metric, sl_status status, const char *text) {
    sl_index *index;
    ck_fails(import_bytes(bytes.at, bytes.size, SL_FOREIGN_FAISS, metric, NULL, &index), status, text);
    free(bytes.at);
}

START_TEST(faiss_of_other_kinds) {
    sl_index *own = make(SL_METRIC_L2, 0);
    foreign_bytes bytes = {0};
    foreign_faiss_class(&bytes, "IxPT", DIM, N, 1);
    ck_faiss(bytes, SL_METRIC_OF_FILE, SL_EUNSUPPORTED, "class 'IxPT'");
    bytes = (foreign_bytes){0};
    foreign_faiss_class(&bytes, "IHNp", DIM, N, 1);
    ck_faiss(bytes, SL_METRIC_OF_FILE, SL_EUNSUPPORTED, "class 'IHNp'");
    bytes = (foreign_bytes){0};
    foreign_faiss_class(&bytes, "IxF2", DIM, N, 23);
    ck_faiss(bytes, SL_METRIC_OF_FILE, SL_EUNSUPPORTED, "metric 23");
    bytes = foreign_faiss(own, FOREIGN_GRAPH);
    bytes.size -= 4 * N * DIM + 8 + 37;
    foreign_put(&bytes, "null", 4);
    ck_faiss(bytes, SL_METRIC_OF_FILE, SL_EUNSUPPORTED, "without its vectors");
    ck_faiss(foreign_faiss(own, FOREIGN_GRAPH), SL_METRIC_COSINE, SL_EINVAL, "has metric l2, and cosine was asked for");
    bytes = foreign_faiss(own, FOREIGN_GRAPH);
    foreign_put(&bytes, "more", 4);
    ck_faiss(bytes, SL_METRIC_OF_FILE, SL_ECORRUPT, "behind its last array");
    sl_index_free(own);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Damage of every kind
 * ------------------------------------------------------------------------------------------------------------- */

/* Files of both formats, from an index of `n` rows. */
static foreign_bytes small_file(size_t n, int faiss) {
    sl_index_params params;
    indexes_params(&params, DIM, SL_METRIC_L2);
    params.m = 2;
    sl_index *own = indexes_make(&params, x, SL_F32, n, NULL, 1);
    const foreign_bytes bytes = faiss ? foreign_faiss(own, FOREIGN_IDS | FOREIGN_GRAPH) : foreign_hnswlib(own);
    sl_index_free(own);
    return bytes;
}

START_TEST(cut_anywhere) {
    const foreign_bytes bytes = small_file(12, _i);
    sl_index *index;
    for (size_t size = 0; size < bytes.size; size++) {
        const sl_status status = import_bytes(bytes.at, size, (sl_foreign_format)_i, SL_METRIC_L2, NULL, &index);
        ck_assert_msg(status == SL_ECORRUPT || status == SL_EFORMAT, "%zu bytes gave %s: %s", size,
                      sl_status_name(status), sl_last_error());
    }
    free(bytes.at);
}
END_TEST

/* Whatever a byte becomes, the file is refused, or gives a sound index. */
START_TEST(any_byte_changed) {
    const foreign_bytes bytes = small_file(40, _i);
    size_t sound = 0;
    for (size_t at = 0; at < bytes.size; at++) {
        const unsigned char was = bytes.at[at];
        sl_index *index;
        bytes.at[at] = (unsigned char)(was ^ (at % 3 ? 1u << at % 8 : 0xff));
        if (import_bytes(bytes.at, bytes.size, (sl_foreign_format)_i, SL_METRIC_L2, NULL, &index) == SL_OK) {
            indexes_sound(index);
            sound++;
        }
        sl_index_free(index);
        bytes.at[at] = was;
    }
    ck_assert_uint_gt(sound, 100);
    free(bytes.at);
}
END_TEST

START_TEST(every_allocation_may_fail) {
    const foreign_bytes bytes = small_file(40, _i);
    fault_allocator faults;
    sl_index_params params;
    sl_index *index;
    sl_status status = SL_ENOMEM;
    sl_index_params_init(&params);
    params.allocator = &faults.allocator;
    for (size_t fail_at = 1; status != SL_OK; fail_at++) {
        fault_allocator_init(&faults, fail_at);
        status = import_bytes(bytes.at, bytes.size, (sl_foreign_format)_i, SL_METRIC_L2, &params, &index);
        ck_assert(status == SL_OK || status == SL_ENOMEM);
        sl_index_free(index);
        ck_assert_uint_eq(faults.live_blocks, 0);
    }
    free(bytes.at);
}
END_TEST

START_TEST(cancelled) {
    sl_index *own = make(SL_METRIC_L2, 0), *index;
    const foreign_bytes bytes = foreign_hnswlib(own);
    sl_import_params params;
    sl_import_params_init(&params);
    params.metric = SL_METRIC_L2;
    params.progress = indexes_cancel;
    file_write(place.path, bytes.at, bytes.size);
    ck_fails(sl_index_import(place.path, &params, &index), SL_ECANCELED, "");
    ck_assert_ptr_null(index);
    free(bytes.at);
    sl_index_free(own);
}
END_TEST

int main(void) {
    TCase *out = tcase_create("what comes out"), *refused = tcase_create("what is refused"),
          *damage = tcase_create("damage");
    TCase *const all[] = {out, refused, damage};
    for (size_t i = 0; i < 3; i++)
        tcase_add_checked_fixture(all[i], set_up, tear_down);
    tcase_add_loop_test(out, hnswlib_graphs, 0, 3);
    tcase_add_loop_test(out, faiss_graphs, 0, 3);
    tcase_add_test(out, faiss_vectors_alone);
    tcase_add_test(out, hnswlib_bytes);
    tcase_add_test(out, nothing_in_it);
    tcase_add_test(out, golden_hnswlib);
    tcase_add_test(out, golden_faiss);
    tcase_add_test(out, golden_faiss_codes);
    tcase_add_loop_test(out, faiss_codes, 0, sizeof kinds / sizeof *kinds);
    tcase_add_test(refused, hnswlib_lies);
    tcase_add_test(refused, hnswlib_links_to_other_levels);
    tcase_add_test(refused, hnswlib_of_other_kinds);
    tcase_add_test(refused, faiss_of_other_kinds);
    tcase_add_loop_test(damage, cut_anywhere, 0, 2);
    tcase_add_loop_test(damage, any_byte_changed, 0, 2);
    tcase_add_loop_test(damage, every_allocation_may_fail, 0, 2);
    tcase_add_test(damage, cancelled);
    return check_main("import", all, 3);
}
