/* Index files that an earlier version saved, and the vectors they were made of. make.c makes the files with the library
 * of that version. test_golden.c opens them with this one. Both see the public header alone here. */
#ifndef SL_TESTS_GOLDEN_CASES_H
#define SL_TESTS_GOLDEN_CASES_H

#include <shortlist.h>

enum { GOLDEN_N = 200, GOLDEN_DIM = 12, GOLDEN_MAX_DIM = 130, GOLDEN_M = 4 };
enum { GOLDEN_K = 5, GOLDEN_EF = 24, GOLDEN_QUERIES = 6, GOLDEN_TUNING = 50 };
enum { GOLDEN_LOGGED = 3 }; /* vectors in a log */
/* In files with deleted vectors, one of every GOLDEN_DELETED vectors is deleted, the first being vector 1. */
enum { GOLDEN_DELETED = 6 };

typedef struct golden_case {
    const char *name; /* of the file, without .sl */
    sl_dtype dtype;
    sl_codes codes;
    sl_refine refine;
    sl_metric metric;
    sl_layout layout;
    size_t dim, n;
    size_t id_width; /* bytes of an id in the file: 0, 4 or 8 */
    int deleted;     /* some vectors are */
    int tuned;       /* settings are stored, and searches ask for a recall */
    size_t room;     /* 0: the file is never written in place */
    int logged;      /* the last GOLDEN_LOGGED vectors are in the file's log: the writer died after its sync */
    size_t probes;   /* of searches; 0: they walk */
} golden_case;

/* Names of the public header without their beginnings. */
#define GOLDEN(file, type, code, finer, measure, lay, width, count, ...)                                               \
    {                                                                                                                  \
        .name = file, .dtype = SL_##type, .codes = SL_CODES_##code, .refine = SL_REFINE_##finer,                       \
        .metric = SL_METRIC_##measure, .layout = SL_LAYOUT_##lay, .dim = width, .n = count, __VA_ARGS__                \
    }

static const golden_case golden_cases[] = {
    /* Arrays: each codes by each metric. */
    GOLDEN("i8-l2", F32, I8, NONE, L2, ARRAYS, GOLDEN_DIM, GOLDEN_N, .id_width = 0),
    GOLDEN("i8-ip", F32, I8, NONE, IP, ARRAYS, GOLDEN_DIM, GOLDEN_N, .id_width = 4, .deleted = 1),
    GOLDEN("i8-cosine", F32, I8, BF16, COSINE, ARRAYS, GOLDEN_DIM, GOLDEN_N, .id_width = 8, .tuned = 1),
    GOLDEN("i8-exact", I8, I8, NONE, IP, ARRAYS, GOLDEN_DIM, GOLDEN_N, .id_width = 0),
    GOLDEN("i8-bytes", U8, I8, NONE, L2, ARRAYS, GOLDEN_DIM, GOLDEN_N, .id_width = 4, .deleted = 1),
    GOLDEN("i16-l2", F32, I16, F32, L2, ARRAYS, GOLDEN_DIM, GOLDEN_N, .id_width = 0, .deleted = 1),
    GOLDEN("i16-ip", F32, I16, BF16, IP, ARRAYS, GOLDEN_DIM, GOLDEN_N, .id_width = 8),
    GOLDEN("i16-cosine", I16, I16, NONE, COSINE, ARRAYS, GOLDEN_DIM, GOLDEN_N, .id_width = 4),
    GOLDEN("f32-l2", F32, F32, NONE, L2, ARRAYS, GOLDEN_DIM, GOLDEN_N, .id_width = 8, .deleted = 1),
    GOLDEN("f32-ip", F32, F32, NONE, IP, ARRAYS, GOLDEN_DIM, GOLDEN_N, .id_width = 0),
    GOLDEN("f32-cosine", F32, F32, NONE, COSINE, ARRAYS, GOLDEN_DIM, GOLDEN_N, .id_width = 4),
    GOLDEN("i4-l2", F32, I4, NONE, L2, ARRAYS, GOLDEN_DIM, GOLDEN_N, .id_width = 0),
    GOLDEN("i4-ip", F32, I4, I16, IP, ARRAYS, GOLDEN_DIM, GOLDEN_N, .id_width = 4, .deleted = 1),
    GOLDEN("i4-cosine", I16, I4, NONE, COSINE, ARRAYS, GOLDEN_DIM, GOLDEN_N, .id_width = 8),
    GOLDEN("i4-long", F32, I4, NONE, COSINE, ARRAYS, GOLDEN_MAX_DIM, GOLDEN_N, .id_width = 0, .deleted = 1, .tuned = 1),
    /* Records: each codes, each metric. */
    GOLDEN("records-i8", F32, I8, BF16, COSINE, RECORDS, GOLDEN_DIM, GOLDEN_N, .id_width = 8, .deleted = 1, .tuned = 1),
    GOLDEN("records-i16", F32, I16, NONE, L2, RECORDS, GOLDEN_DIM, GOLDEN_N, .id_width = 0),
    GOLDEN("records-f32", F32, F32, NONE, IP, RECORDS, GOLDEN_DIM, GOLDEN_N, .id_width = 4),
    GOLDEN("records-i4", F32, I4, NONE, IP, RECORDS, GOLDEN_DIM, GOLDEN_N, .id_width = 4, .deleted = 1),
    GOLDEN("records-bytes", U8, I4, NONE, L2, RECORDS, GOLDEN_DIM, GOLDEN_N, .id_width = 0),
    /* Written in place. */
    GOLDEN("room-i8", F32, I8, BF16, L2, ARRAYS, GOLDEN_DIM, GOLDEN_N, .id_width = 0, .tuned = 1, .room = 250),
    GOLDEN("room-i16", F32, I16, NONE, IP, ARRAYS, GOLDEN_DIM, GOLDEN_N, .id_width = 4, .room = 250, .logged = 1),
    GOLDEN("room-f32", F32, F32, NONE, COSINE, ARRAYS, GOLDEN_DIM, GOLDEN_N, .id_width = 8, .deleted = 1, .room = 250),
    GOLDEN("room-i4", F32, I4, NONE, COSINE, ARRAYS, GOLDEN_DIM, GOLDEN_N, .id_width = 8, .deleted = 1, .room = 250),
    GOLDEN("room-records", F32, I8, NONE, IP, RECORDS, GOLDEN_DIM, GOLDEN_N, .id_width = 8, .deleted = 1, .room = 250,
           .logged = 1),
    GOLDEN("room-long", F32, I4, NONE, L2, RECORDS, GOLDEN_MAX_DIM, GOLDEN_N, .id_width = 4, .room = 250),
    /* Partitions are made from 4,096 vectors on. */
    GOLDEN("partitions", F32, I4, NONE, IP, ARRAYS, 4, 4096, .id_width = 0, .probes = 3),
};
enum { GOLDEN_CASES = sizeof golden_cases / sizeof *golden_cases };

/* Element j of vector i, from -1 to 1: whole 256ths, so that every machine has the same. */
static inline float golden_element(size_t i, size_t j) {
    uint64_t mixed = (i + 1) * UINT64_C(0x9e3779b97f4a7c15) + (j + 1) * UINT64_C(0xd1b54a32d192ed03);
    mixed = (mixed ^ (mixed >> 31)) * UINT64_C(0xbf58476d1ce4e5b9);
    return (float)((double)(mixed >> 55) / 256 - 1);
}

/* Vector i in the type of the case. Queries are the vectors behind those of the file and its log. */
static inline void golden_vector(const golden_case *it, size_t i, void *out) {
    for (size_t j = 0; j < it->dim; j++) {
        int whole = (int)(golden_element(i, j) * 127);
        switch (it->dtype) {
        case SL_I8:
            ((int8_t *)out)[j] = (int8_t)whole;
            break;
        case SL_U8:
            ((uint8_t *)out)[j] = (uint8_t)(whole + 127);
            break;
        case SL_I16:
            ((int16_t *)out)[j] = (int16_t)(whole * 250);
            break;
        default:
            ((float *)out)[j] = golden_element(i, j);
            break;
        }
    }
}

static inline void golden_query(const golden_case *it, size_t q, void *out) {
    golden_vector(it, it->n + GOLDEN_LOGGED + q, out);
}

static inline uint64_t golden_id(const golden_case *it, size_t i) {
    if (it->id_width == 0) return i;
    return it->id_width == 4 ? 7 * i + 3 : (UINT64_C(1) << 40) + 11 * i;
}

static inline int golden_deleted(const golden_case *it, size_t i) {
    return it->deleted && i < it->n && i % GOLDEN_DELETED == 1;
}

static inline void golden_search_params(const golden_case *it, sl_search_params *params) {
    sl_search_params_init(params);
    params->ef = GOLDEN_EF;
    params->probes = it->probes;
    if (it->tuned) params->recall = 0.9;
}

#endif
