#define _GNU_SOURCE
#include "tests/distance/kernel_checks.h"

#include "distance/codec/convert.h"
#include "tests/distance/kernel_values.h"
#include "tests/support/sanitized.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* ---------------------------------------------------------------------------------------------------------------
 * Values
 * ------------------------------------------------------------------------------------------------------------- */

static const size_t long_dims[] = {100, 127, 128, 129, 200, 240, 256, 384, 768, 1000, 2049, 33026, 65536};
#define SHORT_DIMS 67u
#define DIM_COUNT  (SHORT_DIMS + sizeof long_dims / sizeof *long_dims)

static size_t dim_at(size_t i) {
    return i < SHORT_DIMS ? i + 1 : long_dims[i - SHORT_DIMS];
}

/* ---------------------------------------------------------------------------------------------------------------
 * Integers, one to one
 * ------------------------------------------------------------------------------------------------------------- */

typedef struct integer_type {
    const char *name;
    int size;
    int32_t least, most;
} integer_type;

static const integer_type type_i8 = {"i8", 1, INT8_MIN, INT8_MAX};
static const integer_type type_u8 = {"u8", 1, 0, UINT8_MAX};
static const integer_type type_i4 = {"i4", 0, 0, 15};
static const integer_type type_i16 = {"i16", 2, INT16_MIN, INT16_MAX};

static void put_integer(const integer_type *type, uint8_t *at, size_t i, int32_t value) {
    if (type->size == 1) {
        at[i] = (uint8_t)value;
    } else {
        int16_t half = (int16_t)value;
        memcpy(at + 2 * i, &half, sizeof half);
    }
}

static int32_t get_integer(const integer_type *type, const uint8_t *at, size_t i) {
    if (type == &type_u8) return at[i];
    if (type == &type_i8) return (int8_t)at[i];
    int16_t half;
    memcpy(&half, at + 2 * i, sizeof half);
    return half;
}

/* Value patterns that make wrong kernels wrap, saturate or overflow. */
enum { RANDOM, BOTH_LEAST, BOTH_MOST, LEAST_MOST, MOST_LEAST, ALTERNATING, EXTREMES, PATTERNS };

static int32_t pattern_value(const integer_type *type, int pattern, int second, size_t i) {
    uint32_t range = (uint32_t)(type->most - type->least) + 1;
    const int32_t extremes[] = {type->least, type->least + 1, -1, 0, 1, type->most - 1, type->most};
    switch (pattern) {
    case BOTH_LEAST:
        return type->least;
    case BOTH_MOST:
        return type->most;
    case LEAST_MOST:
        return second ? type->most : type->least;
    case MOST_LEAST:
        return second ? type->least : type->most;
    /* Neighbouring products of one sign, which make vpmaddubsw saturate. */
    case ALTERNATING:
        return i & 1 ? type->most : type->least;
    case EXTREMES: {
        int32_t value = extremes[random_bits() % (sizeof extremes / sizeof *extremes)];
        return value < type->least ? type->least : value;
    }
    default:
        return type->least + (int32_t)(random_bits() % range);
    }
}

static void reference(const integer_type *type, const uint8_t *a, const uint8_t *b, size_t dim, int64_t *dot,
                      int64_t *l2) {
    *dot = *l2 = 0;
    for (size_t i = 0; i < dim; i++) {
        int64_t x = get_integer(type, a, i), y = get_integer(type, b, i);
        *dot += x * y;
        *l2 += (x - y) * (x - y);
    }
}

static void run_pair(const sl_kernels *kernels, const integer_type *type, const uint8_t *a, const uint8_t *b,
                     size_t dim, int64_t *dot, int64_t *l2) {
    const void *x = a, *y = b;
    if (type == &type_i8) {
        *dot = kernels->dot_i8(x, y, dim);
        *l2 = kernels->l2_i8(x, y, dim);
    } else if (type == &type_u8) {
        *dot = kernels->dot_u8(x, y, dim);
        *l2 = kernels->l2_u8(x, y, dim);
    } else {
        *dot = kernels->dot_i16(x, y, dim);
        *l2 = kernels->l2_i16(x, y, dim);
    }
}

/* Two vectors; shift 0 ends both at the guard, others move them off every alignment. */
typedef struct integer_pair {
    const integer_type *type;
    guarded a, b;
    size_t dim, shift;
} integer_pair;

static void check_pair(const sl_kernels *kernels, const integer_pair *pair, int pattern, check_count *count) {
    const integer_type *type = pair->type;
    size_t dim = pair->dim, shift = pair->shift, bytes = dim * (size_t)type->size;
    uint8_t *a = pair->a.end - bytes - shift, *b = pair->b.end - bytes - 3 * shift;
    for (size_t i = 0; i < dim; i++) {
        put_integer(type, a, i, pattern_value(type, pattern, 0, i));
        put_integer(type, b, i, pattern_value(type, pattern, 1, i));
    }
    int64_t dot, l2, true_dot, true_l2;
    reference(type, a, b, dim, &true_dot, &true_l2);
    run_pair(kernels, type, a, b, dim, &dot, &l2);
    expect(count, dot == true_dot, "%s dot_%s dim %zu pattern %d shift %zu: %lld, not %lld", sl_isa_name(kernels->isa),
           type->name, dim, pattern, shift, (long long)dot, (long long)true_dot);
    expect(count, l2 == true_l2, "%s l2_%s dim %zu pattern %d shift %zu: %lld, not %lld", sl_isa_name(kernels->isa),
           type->name, dim, pattern, shift, (long long)l2, (long long)true_l2);
}

void check_pairs(const sl_kernels *kernels, check_count *count) {
    const integer_type *types[] = {&type_i8, &type_u8, &type_i16};
    integer_pair pair = {.a = guarded_new(2 * SL_MAX_DIM + 64), .b = guarded_new(2 * SL_MAX_DIM + 64)};
    for (size_t t = 0; t < 3; t++)
        for (size_t d = 0; d < DIM_COUNT; d++)
            for (int pattern = 0; pattern < PATTERNS; pattern++)
                for (pair.shift = 0; pair.shift < 2; pair.shift++) {
                    pair.type = types[t];
                    pair.dim = dim_at(d);
                    check_pair(kernels, &pair, pattern, count);
                }
    guarded_free(&pair.a);
    guarded_free(&pair.b);
}

/* ---------------------------------------------------------------------------------------------------------------
 * One query against gathered rows
 * ------------------------------------------------------------------------------------------------------------- */

#define ROW_COUNT 23u
#define MAX_IDS   40u

/* An array of rows and its query. A guard page follows the readable step behind the rows. */
typedef struct scene {
    sl_codes codes;
    size_t dim, count;
    sl_code_rows rows;
    sl_query_code query;
    guarded memory, query_memory, id_memory;
} scene;

/* Returns the bytes of a row's codes. */
static size_t codes_size(sl_codes codes, size_t dim) {
    if (codes == SL_CODES_I4) return (dim + 1) / 2;
    return dim * (codes == SL_CODES_I8 ? 1 : codes == SL_CODES_I16 ? 2 : 4);
}

static size_t query_size(const scene *s) {
    return s->codes == SL_CODES_I4 ? 2 * s->rows.width : s->rows.width;
}

static const integer_type *row_type(const scene *s) {
    return s->codes == SL_CODES_I4 ? &type_i4 : s->codes == SL_CODES_I8 ? &type_u8 : &type_i16;
}

static const integer_type *query_type(const scene *s) {
    return s->codes == SL_CODES_I16 ? &type_i16 : &type_i8;
}

static void put_float(uint8_t *at, float value) {
    memcpy(at, &value, sizeof value);
}

static float get_float(const uint8_t *at) {
    float value;
    memcpy(&value, at, sizeof value);
    return value;
}

/* The first half of an I4 row's elements lies in the lower halves of the bytes. Each counts twice. */
static int32_t row_value(const scene *s, const uint8_t *row, size_t i) {
    size_t half = (s->dim + 1) / 2;
    if (s->codes != SL_CODES_I4) return get_integer(row_type(s), row, i);
    return 2 * (i < half ? row[i] & 15 : row[i - half] >> 4);
}

static void put_row_value(const scene *s, uint8_t *row, size_t i, int32_t value) {
    size_t half = (s->dim + 1) / 2;
    if (s->codes != SL_CODES_I4)
        put_integer(row_type(s), row, i, value);
    else if (i < half)
        row[i] = (uint8_t)((row[i] & 0xf0) | value);
    else
        row[i - half] = (uint8_t)((row[i - half] & 15) | value << 4);
}

/* Returns the place of an element of the query. */
static size_t query_place(const scene *s, size_t i) {
    size_t half = (s->dim + 1) / 2;
    return s->codes != SL_CODES_I4 || i < half ? i : s->rows.width + i - half;
}

static int32_t query_value(const scene *s, size_t i) {
    return get_integer(query_type(s), s->query.code, query_place(s, i));
}

/* Any bytes lie behind the codes; F32 rows are finite there. */
static void fill_rows(scene *s, int pattern) {
    uint8_t *base = s->memory.end - SL_ROW_STEP - s->count * s->rows.pitch;
    s->rows.base = base;
    for (uint8_t *at = base; at < s->memory.end; at++)
        *at = s->codes == SL_CODES_F32 ? 0 : (uint8_t)random_bits();
    for (size_t r = 0; r < s->count; r++) {
        uint8_t *row = base + r * s->rows.pitch;
        for (size_t i = 0; i < s->dim; i++) {
            if (s->codes == SL_CODES_F32)
                put_float(row + 4 * i, random_float());
            else
                put_row_value(s, row, i, pattern_value(row_type(s), pattern, 0, i));
        }
        put_float(row + s->rows.factor, random_float());
        if (s->rows.bias) put_float(row + s->rows.bias, 100 * random_float());
    }
}

static void fill_scene(scene *s, int pattern) {
    uint8_t *query = s->query_memory.end - query_size(s);
    s->query.code = query;
    memset(query, 0, query_size(s));
    for (size_t i = 0; i < s->dim; i++) {
        if (s->codes == SL_CODES_F32)
            put_float(query + 4 * i, random_float());
        else
            put_integer(query_type(s), query, query_place(s, i), pattern_value(query_type(s), pattern, 1, i));
    }
    fill_rows(s, pattern);
    s->query.scale = random_float();
    s->query.bias_scale = random_float();
    s->query.offset = 0;
    if (s->codes != SL_CODES_I8 && s->codes != SL_CODES_I4) return;
    for (size_t i = 0; i < s->dim; i++)
        s->query.offset += (s->codes == SL_CODES_I8 ? 128 : 15) * (int64_t)query_value(s, i);
}

/* Geometry 0 packs the rows as tightly as a pitch may be, 1 begins them on cache lines, 2 leaves gaps. */
static scene scene_new(sl_codes codes, size_t dim, size_t count, int geometry, int with_bias) {
    static const size_t multiples[] = {4, 64, 16};
    scene s = {.codes = codes, .dim = dim, .count = count};
    size_t size = codes_size(codes, dim);
    s.rows.width = (size + 63) / 64 * 64;
    s.rows.factor = (size + 3) / 4 * 4 + (geometry == 2 ? 8 : 0);
    s.rows.bias = with_bias ? s.rows.factor + 4 : 0;
    size_t payload = s.rows.factor + (with_bias ? 8 : 4);
    if (codes == SL_CODES_F32 && payload < s.rows.width) payload = s.rows.width;
    s.rows.pitch = (payload + multiples[geometry] - 1) / multiples[geometry] * multiples[geometry];
    if (geometry == 2) s.rows.pitch += 80;
    s.memory = guarded_new(count * s.rows.pitch + SL_ROW_STEP);
    s.query_memory = guarded_new(query_size(&s));
    s.id_memory = guarded_new(MAX_IDS * sizeof(uint32_t));
    return s;
}

static void scene_free(scene *s) {
    guarded_free(&s->memory);
    guarded_free(&s->query_memory);
    guarded_free(&s->id_memory);
}

/* The score, and how far a float kernel may be from it. Integer codes are exact. */
static float reference_score(const scene *s, uint32_t id, double *bound) {
    const uint8_t *row = s->rows.base + (size_t)id * s->rows.pitch;
    float factor = get_float(row + s->rows.factor);
    float bias = s->rows.bias ? get_float(row + s->rows.bias) * s->query.bias_scale : 0;
    *bound = 0;
    if (s->codes != SL_CODES_F32) {
        int64_t dot = -s->query.offset;
        for (size_t i = 0; i < s->dim; i++)
            dot += (int64_t)row_value(s, row, i) * query_value(s, i);
        float score = (float)dot * s->query.scale * factor;
        return s->rows.bias ? score + bias : score;
    }
    double dot = 0, absolute = 0, scale = (double)s->query.scale * (double)factor;
    for (size_t i = 0; i < s->dim; i++) {
        double product = (double)get_float(row + 4 * i) * (double)get_float((const uint8_t *)s->query.code + 4 * i);
        dot += product;
        absolute += fabs(product);
    }
    *bound = ((double)s->dim + 4) * 0x1p-23 * (absolute * fabs(scale) + fabs((double)bias));
    return (float)(dot * scale + (double)bias);
}

static void check_ids(const sl_kernels *kernels, const scene *s, size_t n, size_t ahead, check_count *count) {
    uint32_t *ids = (uint32_t *)(void *)s->id_memory.end - n;
    float out[MAX_IDS + 1];
    for (size_t i = 0; i < n; i++)
        ids[i] = (uint32_t)(random_bits() % ROW_COUNT);
    out[n] = 12345;
    kernels->score[s->codes](&s->rows, &s->query, ids, n, ahead, out);
    expect(count, out[n] == 12345, "%s score %s dim %zu n %zu: wrote behind its results", sl_isa_name(kernels->isa),
           sl_codes_name(s->codes), s->dim, n);
    for (size_t i = 0; i < n; i++) {
        double bound;
        float score = reference_score(s, ids[i], &bound);
        expect(count, fabs((double)out[i] - (double)score) <= bound,
               "%s score %s dim %zu pitch %zu n %zu ahead %zu row %u: %.9g, not %.9g", sl_isa_name(kernels->isa),
               sl_codes_name(s->codes), s->dim, s->rows.pitch, n, ahead, ids[i], (double)out[i], (double)score);
    }
}

void check_scores(const sl_kernels *kernels, sl_codes codes, check_count *count) {
    static const size_t aheads[] = {0, 1, 8, 100};
    for (size_t d = 0; d < DIM_COUNT; d++) {
        size_t dim = dim_at(d);
        for (int geometry = 0; geometry < 3; geometry++) {
            scene s = scene_new(codes, dim, ROW_COUNT, geometry, (int)((d + (size_t)geometry) % 2));
            /* Long rows check the sums, short ones the counts. */
            int patterns = codes == SL_CODES_F32 ? 1 : PATTERNS;
            for (int pattern = 0; pattern < patterns; pattern++) {
                fill_scene(&s, pattern);
                if (dim > 2000 || pattern != RANDOM || d % 7)
                    check_ids(kernels, &s, 9, 8, count);
                else
                    for (size_t n = 0; n <= MAX_IDS; n++)
                        check_ids(kernels, &s, n, aheads[n % 4], count);
            }
            scene_free(&s);
        }
    }
}

/* ---------------------------------------------------------------------------------------------------------------
 * Many rows and many queries
 * ------------------------------------------------------------------------------------------------------------- */

#define SCANS     35u
#define SCAN_ROOM (2 * SL_TILE_ROWS + 16)

/* Rows of a scene, and room for the hits of its queries. */
typedef struct tiling {
    scene scene;
    sl_tile tile;
    guarded tile_memory, code_memory;
    sl_scan scans[SCANS];
    sl_query_code queries[SCANS]; /* as score[] takes them */
    uint8_t *codes;               /* of those */
    float scores[SCANS][SCAN_ROOM];
    uint32_t ids[SCANS][SCAN_ROOM];
} tiling;

/* Makes a query of the scene, and its elements in a tile's order, zero behind the query's up to a multiple of 64. */
static void fill_query(tiling *t, size_t q) {
    scene *s = &t->scene;
    size_t bytes = 4 * sl_tile_steps(s->codes, s->dim), half = bytes / 2, room = (bytes + 63) / 64 * 64;
    uint8_t *code = t->codes + q * 2 * s->rows.width, *ordered = t->code_memory.end - (q + 1) * room;
    memset(code, 0, 2 * s->rows.width);
    memset(ordered, 0, room);
    s->query = (sl_query_code){.code = code, .scale = random_float(), .bias_scale = random_float()};
    for (size_t i = 0; i < s->dim; i++) {
        put_integer(&type_i8, code, query_place(s, i), pattern_value(&type_i8, q == 1 ? BOTH_LEAST : RANDOM, 1, i));
        s->query.offset += (s->codes == SL_CODES_I8 ? 128 : 15) * (int64_t)query_value(s, i);
    }
    t->queries[q] = s->query;
    if (s->codes == SL_CODES_I4) {
        memcpy(ordered, code, half);
        memcpy(ordered + half, code + s->rows.width, half);
    } else {
        memcpy(ordered, code, bytes);
    }
    t->scans[q] = (sl_scan){.query = s->query, .ids = t->ids[q], .scores = t->scores[q]};
    t->scans[q].query.code = ordered;
}

/* Some factors and biases are NaN or infinite, as in a damaged file. */
static void spoil_rows(const scene *s) {
    static const float bad[] = {NAN, INFINITY, -INFINITY, FLT_MAX, 0};
    uint8_t *base = s->memory.end - SL_ROW_STEP - s->count * s->rows.pitch;
    for (size_t r = 0; r < s->count; r += 1 + random_bits() % 4)
        put_float(base + r * s->rows.pitch + (s->rows.bias && r % 2 ? s->rows.bias : s->rows.factor), bad[r % 5]);
}

/* Some rows are as large as they can be, and the query as small as it can be, so that sums are extreme. */
static void raise_rows(const scene *s) {
    uint8_t *base = s->memory.end - SL_ROW_STEP - s->count * s->rows.pitch;
    for (size_t r = 0; r < s->count; r += 5)
        memset(base + r * s->rows.pitch, 0xff, codes_size(s->codes, s->dim));
}

static tiling *tiling_new(sl_codes codes, size_t dim, size_t rows, int geometry, int with_bias) {
    tiling *t = calloc(1, sizeof *t);
    if (!t) exit(1);
    t->scene = scene_new(codes, dim, rows, geometry, with_bias);
    fill_scene(&t->scene, RANDOM);
    raise_rows(&t->scene);
    size_t steps = sl_tile_steps(codes, dim), terms = 2 * SL_TILE_ROWS * sizeof(float);
    t->tile_memory = guarded_new(SL_TILE_ROWS * 4 * steps + terms);
    t->code_memory = guarded_new(SCANS * ((4 * steps + 63) / 64 * 64));
    t->tile = (sl_tile){.codes = codes, .steps = steps, .bytes = t->tile_memory.end - SL_TILE_ROWS * 4 * steps};
    t->tile.factors = (float *)(void *)(t->tile.bytes - terms);
    t->tile.biases = t->tile.factors + SL_TILE_ROWS;
    t->codes = aligned_alloc(64, SCANS * 2 * t->scene.rows.width);
    if (!t->codes) exit(1);
    for (size_t q = 0; q < SCANS; q++)
        fill_query(t, q);
    return t;
}

static void tiling_free(tiling *t) {
    scene_free(&t->scene);
    guarded_free(&t->tile_memory);
    guarded_free(&t->code_memory);
    free(t->codes);
    free(t);
}

/* A query's hits, among the rows it scans, are those of the tier's own scores, in order. */
static void check_found(const sl_kernels *kernels, const tiling *t, size_t q, uint32_t first, check_count *count) {
    const scene *s = &t->scene;
    const sl_scan *scan = &t->scans[q];
    const size_t rows = scan->rows;
    uint32_t ids[SL_TILE_ROWS] = {0};
    float scores[SL_TILE_ROWS];
    size_t at = 0, wrong = 0;
    for (size_t i = 0; i < rows; i++)
        ids[i] = first + (uint32_t)i;
    kernels->score[s->codes](&s->rows, &t->queries[q], ids, rows, 0, scores);
    for (size_t i = 0; i < rows; i++) {
        if (!(scores[i] > scan->least)) continue;
        wrong += at >= scan->count || scan->ids[at] != ids[i] || !(scan->scores[at] == scores[i]);
        at++;
    }
    expect(count, at == scan->count && !wrong, "%s scan %s dim %zu rows %zu query %zu: %u found, not %zu; %zu differ",
           sl_isa_name(kernels->isa), sl_codes_name(s->codes), s->dim, rows, q, scan->count, at, wrong);
}

static void check_scan(const sl_kernels *kernels, tiling *t, uint32_t first, size_t rows, size_t n,
                       check_count *count) {
    static const float leasts[] = {-INFINITY, 0, -10, 100};
    sl_scan *turn[SCANS];
    for (size_t q = 0; q < n; q++) {
        turn[q] = &t->scans[n - 1 - q];
        turn[q]->count = 0;
        turn[q]->least = leasts[(q + rows) % 4];
        turn[q]->rows = (uint32_t)(rows - (q + rows) % 5 * rows / 5);
    }
    kernels->tile.pack(&t->tile, &t->scene.rows, first, rows);
    t->tile.ahead = t->tile.bytes;
    t->tile.ahead_end = t->tile.bytes + 3 * SL_CACHE_LINE;
    kernels->tile.scan(&t->tile, turn, n);
    expect(count, t->tile.ahead > t->tile.bytes && t->tile.ahead <= t->tile.ahead_end, "%s asks for what is not there",
           sl_isa_name(kernels->isa));
    for (size_t q = 0; q < n; q++)
        check_found(kernels, t, q, first, count);
}

void check_tiles(const sl_kernels *kernels, sl_codes codes, check_count *count) {
    if (!kernels->tile.scan) {
        expect(count, kernels->isa == SL_ISA_SCALAR && !kernels->tile.pack && !kernels->tile.best, "%s lacks tiles",
               sl_isa_name(kernels->isa));
        return;
    }
    for (size_t d = 0; d < DIM_COUNT && dim_at(d) <= 2049; d++) {
        /* Tiles of every size at some dims, full and ragged tiles at all dims; the last rows of the array each time. */
        size_t step = d % (SANITIZED ? 48 : 16) == 3 ? 1 : 85;
        for (size_t rows = 1; rows <= SL_TILE_ROWS; rows += step) {
            tiling *t = tiling_new(codes, dim_at(d), rows + 3, (int)(rows % 3), (int)((d + rows / 3) % 2));
            check_scan(kernels, t, 3, rows, 1 + rows % SCANS, count);
            check_scan(kernels, t, 0, rows, 1 + (rows + 4) % SCANS, count);
            spoil_rows(&t->scene);
            check_scan(kernels, t, 3, rows, SCANS, count);
            tiling_free(t);
        }
        tiling *t = tiling_new(codes, dim_at(d), SL_TILE_ROWS, 0, 1);
        check_scan(kernels, t, 0, SL_TILE_ROWS, SCANS, count);
        tiling_free(t);
    }
}

/* Scores that are hard for halving a range: equal ones, two values, one far from the others, extreme numbers. */
enum { ANY, EQUAL, TWO, ONE_FAR, LARGE, ENDLESS, ALL_ENDLESS, TINY, KINDS };

static float score_of_kind(int kind, size_t i, size_t n) {
    switch (kind) {
    case EQUAL:
        return -0.75f;
    case TWO:
        return i % 7 ? 0.25f : 0.5f;
    case ONE_FAR:
        return i == n / 2 ? 1e30f : random_float();
    case LARGE:
        return random_float() * FLT_MAX;
    case ENDLESS:
        return i % 11 ? random_float() : INFINITY;
    case ALL_ENDLESS:
        return INFINITY;
    case TINY:
        return (float)(random_bits() % 64) * FLT_TRUE_MIN;
    default:
        return random_float();
    }
}

/* Keeps the `keep` best, each with its number. Later rows worse than the worst of these are not taken. */
static void check_best_of(const sl_kernels *kernels, int kind, uint32_t n, uint32_t keep, int exact,
                          check_count *count) {
    enum { MOST = 4096 };
    static float scores[MOST], given[MOST], sorted[MOST];
    static uint32_t ids[MOST];
    sl_scan scan = {.least = -INFINITY, .count = n, .ids = ids, .scores = scores};
    for (uint32_t i = 0; i < n; i++) {
        given[i] = sorted[i] = scores[i] = score_of_kind(kind, i, n);
        ids[i] = i;
    }
    for (uint32_t i = n; i < MOST; i++)
        scores[i] = (float)(ids[i] = MOST + i);
    kernels->tile.best(&scan, keep, exact);
    uint32_t least = n < keep ? n : keep, wrong = 0;
    for (uint32_t i = n + 16; i < MOST; i++)
        wrong += ids[i] != MOST + i || scores[i] != (float)(MOST + i);
    for (uint32_t i = 0; i < scan.count; i++) {
        wrong += ids[i] >= n || given[ids[i]] != scores[i] || scores[i] < scan.least;
        for (uint32_t j = 0; j < i; j++)
            wrong += ids[i] == ids[j];
    }
    qsort(sorted, n, sizeof *sorted, falling);
    qsort(scores, scan.count, sizeof *scores, falling);
    int alike = n > keep && sorted[keep - 1] == sorted[keep];
    uint32_t most = exact && !alike ? keep : keep + keep / 4;
    for (uint32_t i = 0; i < scan.count && i < n; i++)
        wrong += scores[i] != sorted[i];
    expect(count, scan.count >= least && scan.count <= most && !wrong,
           "%s best of kind %d, %u of %u: %u left, %u wrong", sl_isa_name(kernels->isa), kind, keep, n, scan.count,
           wrong);
    expect(count, scan.count == n || !(scan.least > sorted[keep - 1]), "%s best of kind %d, %u of %u: threshold %g",
           sl_isa_name(kernels->isa), kind, keep, n, (double)scan.least);
}

void check_best(const sl_kernels *kernels, check_count *count) {
    static const uint32_t keeps[] = {1, 2, 3, 10, 25, 64, 1000};
    if (!kernels->tile.best) {
        expect(count, kernels->isa == SL_ISA_SCALAR, "%s lacks tiles", sl_isa_name(kernels->isa));
        return;
    }
    for (int kind = 0; kind < KINDS; kind++)
        for (size_t k = 0; k < sizeof keeps / sizeof *keeps; k++)
            for (uint32_t n = 0; n <= 3 * keeps[k] + SL_TILE_ROWS; n += 1 + n / 3) {
                check_best_of(kernels, kind, n, keeps[k], 0, count);
                check_best_of(kernels, kind, n, keeps[k], 1, count);
            }
}

/* Rows of 100 bytes, read as I8 and their first 64 bytes as I4. */
static void check_far(const sl_kernels *kernels, uint8_t *base, size_t size, size_t pitch, check_count *count) {
    enum { COUNT = 20 };
    static const sl_codes codes[] = {SL_CODES_I8, SL_CODES_I4};
    _Alignas(64) int8_t code[2][128] = {{0}};
    for (size_t i = 0; i < 100; i++)
        code[0][i] = (int8_t)random_bits();
    for (size_t i = 0; i < 128; i++)
        code[1][i] = (int8_t)random_bits();
    uint32_t ids[COUNT];
    float out[COUNT], expected[2][COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        ids[i] = (uint32_t)((size - SL_ROW_STEP - pitch) / pitch - 3 * i * i);
        if (i % 3 == 1) ids[i] = (uint32_t)(((uint64_t)1 << 32) / pitch + i);
        uint8_t *row = base + (size_t)ids[i] * pitch;
        int32_t dot = 0, dot4 = 0;
        for (size_t k = 0; k < 100; k++) {
            row[k] = (uint8_t)random_bits();
            dot += row[k] * code[0][k];
            if (k < 64) dot4 += 2 * ((row[k] & 15) * code[1][k] + (row[k] >> 4) * code[1][64 + k]);
        }
        put_float(row + 100, (float)(i + 1));
        expected[0][i] = (float)dot * (float)(i + 1);
        expected[1][i] = (float)dot4 * (float)(i + 1);
    }
    for (size_t c = 0; c < 2; c++) {
        sl_code_rows rows = {.base = base, .pitch = pitch, .width = c ? 64 : 128, .factor = 100};
        sl_query_code query = {.code = code[c], .scale = 1, .bias_scale = 1};
        kernels->score[codes[c]](&rows, &query, ids, COUNT, 8, out);
        for (size_t i = 0; i < COUNT; i++)
            expect(count, out[i] == expected[c][i], "%s far %s row %u of pitch %zu: %g, not %g",
                   sl_isa_name(kernels->isa), sl_codes_name(codes[c]), ids[i], pitch, (double)out[i],
                   (double)expected[c][i]);
    }
}

void check_far_rows(const sl_kernels *kernels, check_count *count) {
    size_t size = ((size_t)17 << 30) / 2;
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    static const size_t pitches[] = {128, 144, 65552};
    for (size_t p = 0; p < 3; p++) {
        uint8_t *base = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, -1, 0);
        if (base == MAP_FAILED) {
            expect(count, 0, "no address space of %zu bytes", size);
            return;
        }
        check_far(kernels, base, size, pitches[p], count);
        munmap(base, size);
    }
}

/* ---------------------------------------------------------------------------------------------------------------
 * What a walk does before and after it scores
 * ------------------------------------------------------------------------------------------------------------- */

#define MOST_LINKS 80u

/* Lists of different ids; ended lists; with one id or many that are too large before the end; with an id twice. Half of
 * the ids are seen already. */
enum { FULL, ENDED, TOO_LARGE, LARGE_AND_ENDED, TWICE, LISTS };

static void fill_links(uint32_t *links, size_t degree, uint32_t count, int kind) {
    uint32_t first = (uint32_t)random_bits() % count, step = 1 + 2 * ((uint32_t)random_bits() % 50);
    for (size_t i = 0; i < degree; i++)
        links[i] = (uint32_t)((first + (uint64_t)i * step) % count);
    if (!degree) return;
    size_t at = random_bits() % degree;
    if (kind == TOO_LARGE) links[at] = count;
    for (size_t i = 0; i < degree && kind == LARGE_AND_ENDED; i++)
        if (random_bits() % 2) links[i] = count + (uint32_t)(random_bits() % (SL_NO_LINK - count + 1));
    if (kind == ENDED || kind == LARGE_AND_ENDED) links[at] = SL_NO_LINK;
    if (kind == TWICE) links[at] = links[random_bits() % degree];
}

static void check_unvisited_list(const sl_kernels *kernels, sl_visited *visited, uint32_t *plain_words, uint32_t count,
                                 size_t degree, int kind, check_count *result) {
    size_t bytes = ((size_t)visited->mask + 1) * sizeof(uint32_t);
    guarded list = guarded_new(degree * sizeof(uint32_t)), room = guarded_new((degree + 16) * sizeof(uint32_t));
    uint32_t *links = (uint32_t *)(void *)list.end - degree, *found = (uint32_t *)(void *)room.end - (degree + 16);
    uint32_t plain[MOST_LINKS];
    sl_visited reference = *visited;
    reference.words = plain_words;
    fill_links(links, degree, count, kind);
    memset(visited->words, 0, bytes);
    for (size_t i = 0; i < degree; i++)
        if (links[i] < count && random_bits() % 2) (void)sl_visited_mark(visited, links[i]);
    memcpy(plain_words, visited->words, bytes);
    size_t wanted = 0;
    for (size_t i = 0; i < degree && links[i] != SL_NO_LINK; i++)
        if (links[i] < count && !sl_visited_mark(&reference, links[i])) plain[wanted++] = links[i];
    size_t kept = kernels->unvisited(visited, links, degree, count, found);
    expect(result, kept == wanted && memcmp(found, plain, wanted * sizeof *plain) == 0,
           "%s unseen degree %zu count %u kind %d: %zu ids, not the %zu", sl_isa_name(kernels->isa), degree, count,
           kind, kept, wanted);
    expect(result, memcmp(plain_words, visited->words, bytes) == 0, "%s unseen degree %zu kind %d: other marks",
           sl_isa_name(kernels->isa), degree, kind);
    guarded_free(&list);
    guarded_free(&room);
}

void check_unseen(const sl_kernels *kernels, check_count *count) {
    static const struct {
        uint32_t count, shift;
    } tables[] = {{100, 2}, {64, 1}, {5000, 8}, {1u << 20, 15}, {UINT32_MAX, 6}, {0x80000001u, 6}};
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++) {
        size_t words = (size_t)1 << tables[t].shift;
        uint32_t *block = calloc(2 * words, sizeof *block);
        if (!block) exit(1);
        sl_visited visited = {.words = block, .mask = (uint32_t)words - 1, .shift = tables[t].shift};
        for (size_t degree = 0; degree <= MOST_LINKS; degree++)
            for (int kind = 0; kind < LISTS; kind++)
                check_unvisited_list(kernels, &visited, block + words, tables[t].count, degree, kind, count);
        free(block);
    }
}

/* ---------------------------------------------------------------------------------------------------------------
 * Floats, one to one
 * ------------------------------------------------------------------------------------------------------------- */

static size_t refine_size(sl_refine type) {
    return type == SL_REFINE_F32 ? 4 : 2;
}

static double refine_value(sl_refine type, const uint8_t *row, size_t i) {
    if (type == SL_REFINE_F32) return (double)get_float(row + 4 * i);
    return get_integer(&type_i16, row, i);
}

static void fill_refine(sl_refine type, uint8_t *row, float *query, size_t dim) {
    for (size_t i = 0; i < dim; i++) {
        uint8_t whole[4];
        put_float(whole, random_float());
        query[i] = random_float();
        if (type == SL_REFINE_F32)
            memcpy(row + 4 * i, whole, 4);
        else
            put_integer(&type_i16, row, i, pattern_value(&type_i16, i % 5 ? RANDOM : EXTREMES, 0, i));
    }
}

/* A kernel's sum over a vector, the true sum, and the sum of the terms' magnitudes. */
typedef struct float_sum {
    const char *name; /* of the kernel */
    float value;
    double wanted, absolute;
} float_sum;

static void expect_near(check_count *count, const char *tier, sl_refine type, size_t dim, float_sum sum) {
    double bound = ((double)dim + 4) * 0x1p-23 * sum.absolute;
    expect(count, fabs((double)sum.value - sum.wanted) <= bound, "%s %s %s dim %zu: %.9g, not %.9g", tier, sum.name,
           sl_refine_name(type), dim, (double)sum.value, sum.wanted);
}

static void check_refine_dim(const sl_kernels *kernels, sl_refine type, const guarded *rows, const guarded *queries,
                             size_t dim, size_t shift, check_count *count) {
    uint8_t *row = rows->end - dim * refine_size(type) - shift;
    float *query = (float *)(void *)(queries->end - 4 * dim);
    float scale = type == SL_REFINE_I16 ? 0x1.3p-15f : shift ? 0.7f : 1;
    fill_refine(type, row, query, dim);
    double dot = 0, dot_absolute = 0, l2 = 0, l2_absolute = 0, norm2 = 0;
    for (size_t i = 0; i < dim; i++) {
        double x = refine_value(type, row, i) * (double)scale, q = (double)query[i];
        dot += x * q;
        dot_absolute += fabs(x * q);
        l2 += (x - q) * (x - q);
        l2_absolute += (fabs(x) + fabs(q)) * (fabs(x) + fabs(q));
        norm2 += x * x;
    }
    const sl_refine_kernels *k = &kernels->refine[type];
    float row_norm2 = -1;
    const float_sum sums[] = {{"dot", k->dot(row, query, dim, scale), dot, dot_absolute},
                              {"l2", k->l2(row, query, dim, scale), l2, l2_absolute},
                              {"dot_norm", k->dot_norm(row, query, dim, scale, &row_norm2), dot, dot_absolute}};
    for (size_t i = 0; i < sizeof sums / sizeof *sums; i++)
        expect_near(count, sl_isa_name(kernels->isa), type, dim, sums[i]);
    expect_near(count, sl_isa_name(kernels->isa), type, dim, (float_sum){"norm", row_norm2, norm2, norm2});
}

void check_refine(const sl_kernels *kernels, sl_refine type, check_count *count) {
    guarded rows = guarded_new(4 * SL_MAX_DIM + 64), queries = guarded_new(4 * SL_MAX_DIM);
    for (size_t d = 0; d < DIM_COUNT; d++)
        for (size_t shift = 0; shift < 2; shift++)
            check_refine_dim(kernels, type, &rows, &queries, dim_at(d), shift, count);
    guarded_free(&rows);
    guarded_free(&queries);
}

/* ---------------------------------------------------------------------------------------------------------------
 * Conversions
 * ------------------------------------------------------------------------------------------------------------- */

/* Returns a 16-bit float by its definition. */
static double half_value(uint32_t half, int exponent_bits) {
    int fraction_bits = 15 - exponent_bits, bias = (1 << (exponent_bits - 1)) - 1;
    int exponent = (int)(half >> fraction_bits & ((1u << exponent_bits) - 1));
    double fraction = (double)(half & ((1u << fraction_bits) - 1));
    double sign = half >> 15 ? -1 : 1, one = ldexp(1, fraction_bits);
    if (exponent == (1 << exponent_bits) - 1) return fraction > 0 ? (double)NAN : sign * (double)INFINITY;
    if (exponent == 0) return sign * ldexp(fraction, 1 - bias - fraction_bits);
    return sign * ldexp(one + fraction, exponent - bias - fraction_bits);
}

static uint16_t converted(sl_dtype dtype, float value) {
    uint16_t half;
    sl_from_float(dtype, &value, &half, 1);
    return half;
}

static void check_half(sl_dtype dtype, uint16_t half, check_count *count) {
    int exponent_bits = dtype == SL_F16 ? 5 : 8;
    double wanted = half_value(half, exponent_bits);
    float value;
    sl_to_float(dtype, &half, &value, 1);
    if (isnan(wanted)) {
        uint16_t back = converted(dtype, value);
        int same_sign = !signbit(value) == !(half >> 15) && (back ^ half) >> 15 == 0;
        expect(count, isnan(value) && isnan(half_value(back, exponent_bits)) && same_sign, "%s %04x: NaN is lost",
               sl_dtype_name(dtype), half);
        return;
    }
    expect(count, (double)value == wanted && !signbit(value) == !signbit(wanted), "%s %04x: %g, not %g",
           sl_dtype_name(dtype), half, (double)value, wanted);
    expect(count, converted(dtype, value) == half, "%s %04x: comes back as %04x", sl_dtype_name(dtype), half,
           converted(dtype, value));
}

/* A value half way between two neighbours rounds to the even one, any other to the nearer. The neighbour above the
 * largest finite value is the next power of two. */
static void check_rounding(sl_dtype dtype, uint16_t half, check_count *count) {
    int exponent_bits = dtype == SL_F16 ? 5 : 8;
    uint16_t above = (uint16_t)(half + 1);
    double low = half_value(half, exponent_bits), high = half_value(above, exponent_bits);
    if (isinf(high)) high = low + (low - half_value((uint16_t)(half - 1), exponent_bits));
    float middle = (float)((low + high) / 2);
    uint16_t even = half & 1 ? above : half;
    expect(count, converted(dtype, middle) == even, "%s above %04x: a tie goes to %04x", sl_dtype_name(dtype), half,
           converted(dtype, middle));
    expect(count, converted(dtype, nextafterf(middle, 0)) == half, "%s above %04x: just below the middle",
           sl_dtype_name(dtype), half);
    expect(count, converted(dtype, nextafterf(middle, INFINITY)) == above, "%s above %04x: just above the middle",
           sl_dtype_name(dtype), half);
    expect(count, converted(dtype, -middle) == (even | 0x8000u), "%s above %04x: sign", sl_dtype_name(dtype), half);
}

void check_conversions(check_count *count) {
    static const sl_dtype dtypes[] = {SL_F16, SL_BF16};
    for (size_t t = 0; t < 2; t++) {
        sl_dtype dtype = dtypes[t];
        uint16_t infinity = dtype == SL_F16 ? 0x7c00 : 0x7f80;
        for (uint32_t half = 0; half < 65536; half++)
            check_half(dtype, (uint16_t)half, count);
        for (uint16_t half = 0; half < infinity; half++)
            check_rounding(dtype, half, count);
        for (uint32_t sign = 0; sign < 2; sign++) { /* a NaN whose payload lies in the bits that are dropped */
            uint32_t bits = sign << 31 | 0x7f800001u;
            float nan;
            memcpy(&nan, &bits, sizeof nan);
            expect(count, isnan(half_value(converted(dtype, nan), dtype == SL_F16 ? 5 : 8)), "%s of a NaN %08x",
                   sl_dtype_name(dtype), bits);
        }
        expect(count, converted(dtype, FLT_MAX) == infinity, "%s of the largest float", sl_dtype_name(dtype));
        expect(count, converted(dtype, -INFINITY) == (infinity | 0x8000u), "%s of -infinity", sl_dtype_name(dtype));
    }
    expect(count, converted(SL_F16, FLT_TRUE_MIN) == 0, "f16 of the least float");
    expect(count, converted(SL_F16, -1e-20f) == 0x8000u, "f16 of a small negative float");
}
